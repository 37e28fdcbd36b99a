//! The streams of Guava and Spark, both ways (`writeTo` and `readFrom`): a header, which ends with
//! an `int` for the number of longs, and the longs, all big-endian (`java.io.DataOutputStream`).
//! `guava/layout.rs` and `spark/layout.rs` read and make the headers.

use super::formulas::{MAX_WORDS, Shape};
use super::{JavaBloom, JavaFormat, Layout};
use crate::error::ReadError;
use crate::flat::Flat;
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::{acquire_if, as_chunks};

/// Bytes of a whole stream.
fn bytes(header: usize, words: usize) -> u64 {
    const { assert!(MAX_WORDS < 1 << 32) };
    header as u64 + 8 * words as u64
}

fn truncated(bytes: u64, needed: u64) -> ReadError {
    ReadError::truncated(format!("the stream ends after {bytes} bytes of {needed}"))
}

fn check_limit(shape: Shape, limit: u64) -> Result<(), ReadError> {
    ReadError::check_limit(8 * shape.words as u64, limit)
}

/// The streams of Guava and Spark.
impl<F: JavaFormat> JavaBloom<F> {
    /// The filter as `writeTo` of its system writes it: a header of 6 bytes for Guava, 12 for
    /// Spark's V1 and 16 for V2, and 8 bytes for every 64 bits.
    ///
    /// Beside inserts, it holds at least every key whose insertion happened before. Aborts if the
    /// allocation fails; [`write_to`](Self::write_to) allocates nothing.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1, 0.03)?;
    /// assert_eq!(filter.to_bytes(), [1, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    /// filter.insert("a");
    /// assert_eq!(filter.to_bytes()[6..], [0x20, 0x02, 0, 0x08, 0, 0x80, 0x02, 0]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (header, len) = self.layout.format.header(self.layout.shape);
        let mut stream = Vec::with_capacity(len + 8 * self.layout.shape.words);
        stream.extend_from_slice(&header[..len]);
        stream.extend(self.flat.words().flat_map(u64::to_be_bytes));
        acquire_if(true);
        stream
    }

    /// The length in bytes of the stream that begins with `head`. The header says it: 6 bytes for
    /// Guava, 12 for Spark's V1 and 16 for V2.
    ///
    /// A stream of Guava has no magic number. To recognize one among files of other formats,
    /// compare this length with that of the file.
    ///
    /// # Errors
    ///
    /// Fails if `head` is shorter than the header, or if no stream begins with it: strategy or
    /// version are unknown, the number of hash functions is out of range, or the number of longs is
    /// 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let stream = GuavaBloom::with_capacity(100, 0.03)?.to_bytes();
    /// assert_eq!(GuavaBloom::stream_len(&stream[..6])?, stream.len() as u64);
    /// assert!(GuavaBloom::stream_len(b"a line of text").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream_len(head: &[u8]) -> Result<u64, ReadError> {
        let (layout, header) = Self::layout_of(head)?;
        Ok(bytes(header, layout.shape.words))
    }

    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the filter does, strategy or version are unknown, the number
    /// of hash functions is out of range (1 to 255 for Guava, 1 to 65,536 for Spark), the number of
    /// longs is 0 or negative, or the allocation fails. Allocates nothing unless all of the filter
    /// is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(100, 0.03)?;
    /// filter.insert("a");
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (copy, rest) = GuavaBloom::from_bytes(&bytes)?;
    /// assert!(copy == filter);
    /// assert_eq!(rest, b"more");
    ///
    /// bytes[1] = 0;
    /// let error = GuavaBloom::from_bytes(&bytes).unwrap_err();
    /// assert_eq!(error.to_string(), "0 hash functions is not in 1 to 255");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "readFrom")]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), ReadError> {
        Self::from_bytes_within(bytes, u64::MAX)
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of at most `limit` bytes.
    pub(super) fn from_bytes_within(stream: &[u8], limit: u64) -> Result<(Self, &[u8]), ReadError> {
        let (layout, header) = Self::layout_of(stream)?;
        let shape = layout.shape;
        check_limit(shape, limit)?;
        let (longs, _) = as_chunks(&stream[header..]);
        let Some(longs) = longs.get(..shape.words) else {
            return Err(truncated(stream.len() as u64, bytes(header, shape.words)));
        };
        let mut flat = Flat::new(shape.words, shape.hash_functions).map_err(ReadError::out_of_memory)?;
        flat.bits
            .store_words(0, longs.iter().map(|long| u64::from_be_bytes(*long)));
        Ok((Self::read_with(layout, flat), &stream[header + 8 * shape.words..]))
    }

    /// The layout of the stream that begins with `head`, and the length of its header.
    fn layout_of(head: &[u8]) -> Result<(Layout<F>, usize), ReadError> {
        let mut end = 0;
        let layout = F::read_header(&mut |part| {
            let start = end;
            end += part.len();
            let bytes = head.get(start..end);
            part.copy_from_slice(bytes.ok_or_else(|| truncated(head.len() as u64, end as u64))?);
            Ok(())
        })?;
        Ok((layout, end))
    }

    fn read_with(layout: Layout<F>, flat: Flat) -> Self {
        Self {
            flat,
            layout,
            expected_keys: layout.shape.keys_for_half(),
        }
    }
}

#[cfg(feature = "std")]
mod io {
    use super::{JavaBloom, JavaFormat, ReadError, Shape, bytes, check_limit, truncated};
    use crate::flat::{Flat, LINE_WORDS};
    use lanebloom::internal::{Bits, acquire_if, as_chunks};
    use std::io::{self, ErrorKind, Read, Write};

    /// Bytes read or written at once, on the stack.
    const BUFFER: usize = 8 << 10;
    /// Lines allocated before their bytes arrive: 64 KiB.
    const AT_FIRST: usize = 1 << 10;

    /// The streams of Guava and Spark, by `std::io` (feature `std`).
    impl<F: JavaFormat> JavaBloom<F> {
        /// Writes the filter as `writeTo` of its system does: the bytes of
        /// [`to_bytes`](Self::to_bytes). It writes 8 KiB at a time, and does not flush.
        ///
        /// Beside inserts, it writes at least every key whose insertion happened before.
        ///
        /// Fails if the writer fails.
        ///
        /// ```
        /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let mut stream = Vec::new();
        /// filter.write_to(&mut stream)?;
        /// assert_eq!(stream, filter.to_bytes());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "writeTo")]
        pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
            let (header, len) = self.layout.format.header(self.layout.shape);
            writer.write_all(&header[..len])?;
            let mut buffer = [0; BUFFER];
            let mut longs = self.flat.words();
            loop {
                let mut len = 0;
                for (place, long) in buffer.chunks_exact_mut(8).zip(&mut longs) {
                    place.copy_from_slice(&long.to_be_bytes());
                    len += place.len();
                }
                if len == 0 {
                    return Ok(());
                }
                acquire_if(true);
                writer.write_all(&buffer[..len])?;
            }
        }

        /// Reads a filter that `writeTo` of its system or [`write_to`](Self::write_to) wrote, whose
        /// bits take `max_bytes` bytes at most. Leaves the bytes after it unread.
        ///
        /// The length that the stream declares is checked before anything is allocated, and memory
        /// grows with the bytes that arrive: at most three times as much as has arrived, or 64 KiB.
        /// It reads 8 KiB at a time, so the reader need not be buffered.
        ///
        /// # Errors
        ///
        /// Fails as [`from_bytes`](Self::from_bytes) does, if the reader fails (its error is the
        /// [source](std::error::Error::source)), or if the bits take more than `max_bytes`.
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom_formats::GuavaBloom;
        ///
        /// let filter = GuavaBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let stream = [filter.to_bytes(), b"more".to_vec()].concat();
        ///
        /// let mut reader = &stream[..];
        /// let copy = GuavaBloom::read_from(&mut reader, 1 << 20)?;
        /// assert!(copy == filter);
        /// assert_eq!(reader, b"more");
        ///
        /// let error = GuavaBloom::read_from(&stream[..], 512).unwrap_err();
        /// let text = "the filter takes 920 bytes, more than the limit of 512 bytes";
        /// assert_eq!(error.to_string(), text);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "readFrom")]
        pub fn read_from(mut reader: impl Read, max_bytes: usize) -> Result<Self, ReadError> {
            let mut header = 0;
            let layout = F::read_header(&mut |part| {
                let start = header;
                header += part.len();
                fill(&mut reader, part, start as u64, header as u64)
            })?;
            let flat = read_longs(reader, header, layout.shape, max_bytes as u64)?;
            Ok(Self::read_with(layout, flat))
        }
    }

    /// Reads the longs that follow a header of this length, unless they take more than `limit`
    /// bytes. Memory grows with the bytes that arrive.
    fn read_longs(mut reader: impl Read, header: usize, shape: Shape, limit: u64) -> Result<Flat, ReadError> {
        check_limit(shape, limit)?;
        let all_lines = shape.words.div_ceil(LINE_WORDS);
        let mut bits = Bits::new(all_lines.min(AT_FIRST)).map_err(ReadError::out_of_memory)?;
        let mut buffer = [0; BUFFER];
        let mut words = 0;
        while words < shape.words {
            if words == LINE_WORDS * bits.blocks() {
                let mut more = Bits::new(all_lines.min(2 * bits.blocks())).map_err(ReadError::out_of_memory)?;
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
    fn fill(reader: &mut impl Read, part: &mut [u8], before: u64, needed: u64) -> Result<(), ReadError> {
        let mut len = 0;
        while len < part.len() {
            match reader.read(&mut part[len..]) {
                Ok(0) => return Err(truncated(before + len as u64, needed)),
                Ok(more) => len += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::io(error)),
            }
        }
        Ok(())
    }
}
