//! A header, and then the longs of a filter, big-endian (`java.io.DataOutputStream`), both ways.
//! The header is the caller's: `guava/stream.rs`, `spark/stream.rs`.

use super::error::ReadError;
use super::formulas::{MAX_WORDS, Shape};
use crate::flat::Flat;
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::{acquire, as_chunks};

#[cfg(feature = "std")]
pub(crate) use io::{fill, read_longs, write};

/// The number of longs that a stream declares, as Java's `int`.
pub(crate) fn words(length: [u8; 4]) -> Result<usize, ReadError> {
    match i32::from_be_bytes(length) {
        length @ ..=0 => Err(ReadError::Invalid(format!(
            "a length of {length} longs is not in 1 to {MAX_WORDS}"
        ))),
        length => Ok(length as usize),
    }
}

/// Bytes of a whole stream.
pub(crate) fn bytes(header: usize, words: usize) -> u64 {
    const { assert!(MAX_WORDS < 1 << 32) };
    header as u64 + 8 * words as u64
}

/// The whole stream.
pub(crate) fn to_bytes(header: &[u8], flat: &Flat) -> Vec<u8> {
    let mut stream = Vec::with_capacity(header.len() + 8 * flat.word_count());
    stream.extend_from_slice(header);
    stream.extend(flat.words().flat_map(u64::to_be_bytes));
    acquire();
    stream
}

/// The `N` bytes with which a stream begins.
pub(crate) fn header<const N: usize>(stream: &[u8]) -> Result<[u8; N], ReadError> {
    let header = stream.first_chunk().copied();
    header.ok_or(ReadError::Truncated {
        bytes: stream.len() as u64,
        needed: N as u64,
    })
}

/// The filter whose longs are in `stream` after a header of so many bytes, and the bytes after it.
/// Allocates nothing unless all longs are there, and take at most `limit` bytes.
pub(crate) fn from_bytes(stream: &[u8], header: usize, shape: Shape, limit: u64) -> Result<(Flat, &[u8]), ReadError> {
    check_limit(shape, limit)?;
    let (longs, _) = as_chunks(&stream[header..]);
    let Some(longs) = longs.get(..shape.words) else {
        return Err(ReadError::Truncated {
            bytes: stream.len() as u64,
            needed: bytes(header, shape.words),
        });
    };
    let mut flat = Flat::new(shape.words, shape.hash_functions).map_err(ReadError::OutOfMemory)?;
    let longs = longs.iter().map(|long| u64::from_be_bytes(*long));
    flat.bits.store_words(0, longs);
    Ok((flat, &stream[header + 8 * shape.words..]))
}

fn check_limit(shape: Shape, limit: u64) -> Result<(), ReadError> {
    let needed = 8 * shape.words as u64;
    if needed > limit {
        return Err(ReadError::OverLimit { needed, limit });
    }
    Ok(())
}

#[cfg(feature = "std")]
mod io {
    use super::{ReadError, Shape, bytes, check_limit};
    use crate::flat::{Flat, LINE_WORDS};
    use lanebloom::internal::{Bits, acquire, as_chunks, as_chunks_mut};
    use std::io::{self, ErrorKind, Read, Write};

    /// Bytes read or written at once, on the stack.
    const BUFFER: usize = 8 << 10;
    /// Lines allocated before their bytes arrive: 64 KiB.
    const AT_FIRST: usize = 1 << 10;

    /// Writes the whole stream, [`BUFFER`] bytes at a time.
    pub(crate) fn write(header: &[u8], flat: &Flat, mut writer: impl Write) -> io::Result<()> {
        writer.write_all(header)?;
        let mut buffer = [0; BUFFER];
        let mut longs = flat.words();
        loop {
            let mut len = 0;
            for (place, long) in as_chunks_mut(&mut buffer).0.iter_mut().zip(&mut longs) {
                *place = long.to_be_bytes();
                len += place.len();
            }
            if len == 0 {
                return Ok(());
            }
            acquire();
            writer.write_all(&buffer[..len])?;
        }
    }

    /// Reads the longs that follow a header of so many bytes, unless they take more than `limit`
    /// bytes. Memory grows with the bytes that arrive.
    pub(crate) fn read_longs(
        mut reader: impl Read,
        header: usize,
        shape: Shape,
        limit: u64,
    ) -> Result<Flat, ReadError> {
        check_limit(shape, limit)?;
        let all_lines = shape.words.div_ceil(LINE_WORDS);
        let allocate = |lines: usize| Bits::new(lines).map_err(ReadError::OutOfMemory);
        let mut bits = allocate(all_lines.min(AT_FIRST))?;
        let mut buffer = [0; BUFFER];
        let mut words = 0;
        while words < shape.words {
            if words == LINE_WORDS * bits.blocks() {
                let mut more = allocate(all_lines.min(2 * bits.blocks()))?;
                more.store_words(0, bits.words().flatten());
                bits = more;
            }
            // Up to the end of the allocation: the end of a line, or of the filter.
            let free = shape.words.min(LINE_WORDS * bits.blocks()) - words;
            let part = &mut buffer[..BUFFER.min(8 * free)];
            fill(&mut reader, part, bytes(header, words), bytes(header, shape.words))?;
            let (longs, _) = as_chunks(part);
            bits.store_words(words, longs.iter().map(|long| u64::from_be_bytes(*long)));
            words += longs.len();
        }
        Ok(Flat::of(bits, shape.words, shape.hash_functions))
    }

    /// Fills `part`; `before` bytes came before these, of `needed` in all.
    pub(crate) fn fill(reader: &mut impl Read, part: &mut [u8], before: u64, needed: u64) -> Result<(), ReadError> {
        let mut len = 0;
        while len < part.len() {
            match reader.read(&mut part[len..]) {
                Ok(0) => {
                    let bytes = before + len as u64;
                    return Err(ReadError::Truncated { bytes, needed });
                }
                Ok(more) => len += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
        }
        Ok(())
    }
}
