//! What travels: bits that were added to chunks, as bytes. Made by the node that pushes, read by the server's script
//! (`exchange.lua`), kept in the set's log, and read by the nodes that pull.
//!
//! A delta is a sequence of records, one per chunk, all numbers little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | the chunk's number |
//! | 2 | `n`: below 2^15 the number of bits that follow; from there on, less 2^15, the number of bytes |
//! | 2 `n` | the bits: each by the offset that Redis gives it in the chunk, where the highest bit of a byte comes first |
//! | or `n` - 2^15 | the words of the whole chunk: those bits set that were added |

use crate::sizing::{LINE_BYTES, LINE_WORDS};
use alloc::vec::Vec;

/// Blocks of a chunk, the last one's perhaps less. An offset of a bit in it takes all of 16 bits.
pub(super) const CHUNK_BLOCKS: usize = 128;
pub(super) const CHUNK_WORDS: usize = CHUNK_BLOCKS * LINE_WORDS;
pub(super) const CHUNK_BYTES: usize = CHUNK_BLOCKS * LINE_BYTES;

/// Bits of a chunk from which on it travels whole. That takes four times the bytes of so many bits; but the server sets a bit by a call of its
/// script of 0.7 to 1.5 µs, and ORs a whole chunk in 20.
const WHOLE: usize = CHUNK_BYTES / 2 / 4;
/// In the record of a whole chunk, added to its number of bytes.
const WHOLE_FLAG: u16 = 1 << 15;

/// Bytes of a delta, in its records, beyond which the next one is begun: so the server works on one for some milliseconds at most.
pub(super) const FULL: usize = 32 << 10;

/// Bits to be pushed.
#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) bytes: Vec<u8>,
    /// The chunks of its records, in their order.
    pub(super) chunks: Vec<u32>,
}

impl Delta {
    /// Adds a record, where `added`, the words of a chunk, has any bits.
    pub(super) fn push(&mut self, chunk: u32, added: &[u64]) {
        let ones: usize = added.iter().map(|word| word.count_ones() as usize).sum();
        if ones == 0 {
            return;
        }
        self.chunks.push(chunk);
        self.bytes.extend(chunk.to_le_bytes());
        if ones >= WHOLE {
            self.bytes
                .extend((WHOLE_FLAG | (size_of_val(added) as u16)).to_le_bytes());
            self.bytes.extend(added.iter().flat_map(|word| word.to_le_bytes()));
            return;
        }
        self.bytes.extend((ones as u16).to_le_bytes());
        for (i, &word) in added.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let bit = 64 * i as u32 + rest.trailing_zeros();
                self.bytes.extend((bit as u16 ^ 7).to_le_bytes());
                rest &= rest - 1;
            }
        }
    }
}

/// Reads a delta of a filter of `filter_words` words: calls `each` with the chunk, the place of a word in it, and bits of that word.
///
/// What comes before the first error has been called for.
pub(super) fn decode(
    mut bytes: &[u8],
    filter_words: usize,
    mut each: impl FnMut(usize, usize, u64),
) -> Result<(), &'static str> {
    while !bytes.is_empty() {
        let (chunk, n);
        (chunk, bytes) = bytes.split_first_chunk().ok_or("ends within a record")?;
        (n, bytes) = bytes.split_first_chunk().ok_or("ends within a record")?;
        let (chunk, n) = (u32::from_le_bytes(*chunk) as usize, u16::from_le_bytes(*n));
        let words = chunk_words(chunk, filter_words).ok_or("names a chunk beyond the filter's last")?;
        if n & WHOLE_FLAG != 0 {
            let len = usize::from(n ^ WHOLE_FLAG);
            if len != 8 * words {
                return Err("has a whole chunk of another length");
            }
            let (all, rest) = bytes.split_at_checked(len).ok_or("ends within a chunk")?;
            for (i, word) in all.as_chunks().0.iter().enumerate() {
                each(chunk, i, u64::from_le_bytes(*word));
            }
            bytes = rest;
        } else {
            let (bits, rest) = bytes.split_at_checked(2 * usize::from(n)).ok_or("ends within a record")?;
            for bit in bits.as_chunks().0 {
                let bit = usize::from(u16::from_le_bytes(*bit) ^ 7);
                if bit >= 64 * words {
                    return Err("has a bit beyond the filter's last");
                }
                each(chunk, bit / 64, 1 << (bit % 64));
            }
            bytes = rest;
        }
    }
    Ok(())
}

/// How many words the chunk of a filter of so many words has, if it is one of its chunks.
pub(super) fn chunk_words(chunk: usize, filter_words: usize) -> Option<usize> {
    let rest = filter_words.checked_sub(chunk.checked_mul(CHUNK_WORDS)?)?;
    (rest > 0).then_some(rest.min(CHUNK_WORDS))
}
