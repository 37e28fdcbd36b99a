//! The bits that were added to chunks, as bytes on the wire. The pushing node makes them. The
//! server's script (`exchange.lua`) reads them and keeps them in the set's log. The pulling nodes
//! read them.
//!
//! A delta is a sequence of records, one per chunk, all numbers little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | the chunk's number |
//! | 2 | `n`: below 2^15 the number of bits that follow; from there on, less 2^15, the number of bytes |
//! | 2 `n` | the bits: each by the offset that Redis gives it in the chunk, where the highest bit of a byte comes first |
//! | or `n` - 2^15 | the words of the whole chunk: those bits set that were added |
//!
//! The script itself writes records with `n` = 0: the server has lost these chunks.
//!
//! It is not the delta of the [snapshot format](lanebloom::docs::format). That delta takes a third
//! less (for 1000 keys in a filter for a million, 7.9 bytes a key instead of 12.8) and as much of
//! the script's time. But it has no whole chunks that Redis could OR: 50,000 keys take 1.3 s in the
//! script, and 9 ms with this delta.

/// 64-bit words of a block, which is a cache line.
pub(super) const BLOCK_WORDS: usize = 8;

/// Blocks of a chunk; the last chunk may have fewer. The offset of a bit in it takes all of 16
/// bits.
pub(super) const CHUNK_BLOCKS: usize = 128;
pub(super) const CHUNK_WORDS: usize = CHUNK_BLOCKS * BLOCK_WORDS;
pub(super) const CHUNK_BYTES: usize = 8 * CHUNK_WORDS;

/// From this many bits on, a chunk travels whole. That takes four times the bytes of the bits
/// alone. But the script takes 0.7 to 1.5 µs to set a bit, and 20 µs to OR a whole chunk.
const WHOLE: usize = CHUNK_BYTES / 2 / 4;
/// In the record of a whole chunk, added to its number of bytes.
const WHOLE_FLAG: u16 = 1 << 15;

/// A delta of this many bytes is full, so the server works on one delta for some milliseconds.
const FULL_BYTES: usize = 32 << 10;
/// A delta of this many chunks is full too: a script's call takes less than 8000 arguments, and
/// each chunk needs two.
const FULL_CHUNKS: usize = 1024;

/// Bits to push.
#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) bytes: Vec<u8>,
    /// The chunks of its records, in their order.
    pub(super) chunks: Vec<u32>,
}

impl Delta {
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES || self.chunks.len() >= FULL_CHUNKS
    }

    /// Adds a record of the bits in `added`, the words of a chunk.
    pub(super) fn push(&mut self, chunk: u32, added: &[u64]) {
        let ones: usize = added.iter().map(|word| word.count_ones() as usize).sum();
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

/// Reads a delta of a filter of `filter_words` words. Calls `each` with the chunk, and the place of
/// a word in it with bits of that word; with the chunk alone if it is lost. It does so for
/// everything before the first error.
pub(super) fn decode(
    mut bytes: &[u8],
    filter_words: usize,
    mut each: impl FnMut(usize, Option<(usize, u64)>),
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
                each(chunk, Some((i, u64::from_le_bytes(*word))));
            }
            bytes = rest;
        } else {
            if n == 0 {
                each(chunk, None);
            }
            let (bits, rest) = bytes
                .split_at_checked(2 * usize::from(n))
                .ok_or("ends within a record")?;
            for bit in bits.as_chunks().0 {
                let bit = usize::from(u16::from_le_bytes(*bit) ^ 7);
                if bit >= 64 * words {
                    return Err("has a bit beyond the filter's last");
                }
                each(chunk, Some((bit / 64, 1 << (bit % 64))));
            }
            bytes = rest;
        }
    }
    Ok(())
}

/// The number of words of a chunk, if a filter of `filter_words` words has that chunk.
pub(super) fn chunk_words(chunk: usize, filter_words: usize) -> Option<usize> {
    let rest = filter_words.checked_sub(chunk.checked_mul(CHUNK_WORDS)?)?;
    (rest > 0).then_some(rest.min(CHUNK_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words of a delta, for a filter of `words` words.
    fn decoded(bytes: &[u8], words: usize) -> Result<Vec<u64>, &'static str> {
        let mut all = vec![0; words];
        decode(bytes, words, |chunk, added| {
            if let Some((word, bits)) = added {
                all[chunk * CHUNK_WORDS + word] |= bits;
            }
        })?;
        Ok(all)
    }

    fn delta_of(words: &[u64]) -> Delta {
        let mut delta = Delta::default();
        for (chunk, words) in (0..).zip(words.chunks(CHUNK_WORDS)) {
            if words.iter().any(|&word| word != 0) {
                delta.push(chunk, words);
            }
        }
        delta
    }

    /// Words. One in `sparseness` has bits.
    fn words(len: usize, seed: u64, sparseness: u64) -> Vec<u64> {
        let mix = |i: u64| {
            (i ^ seed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        (0..len as u64)
            .map(|i| {
                if mix(i).is_multiple_of(sparseness) {
                    mix(!i) & mix(i << 1)
                } else {
                    0
                }
            })
            .collect()
    }

    #[test]
    fn the_bytes_are_these() {
        let mut chunk = vec![0; CHUNK_WORDS];
        // Bits 0, 9 and 65535, which Redis counts as 7, 14 and 65528.
        (chunk[0], chunk[CHUNK_WORDS - 1]) = (1 | 1 << 9, 1 << 63);
        let mut delta = Delta::default();
        delta.push(0x0102_0304, &chunk);
        assert_eq!(delta.bytes, [4, 3, 2, 1, 3, 0, 7, 0, 14, 0, 0xf8, 0xff]);
        assert_eq!(delta.chunks, [0x0102_0304]);
        // Whole from 1024 bits on.
        chunk.fill(1);
        chunk[7] = 0;
        assert_eq!(delta_of(&chunk).bytes.len(), 6 + 2 * 1023);
        chunk[7] = 1 << 63;
        let bytes = delta_of(&chunk).bytes;
        assert_eq!(bytes.len(), 6 + CHUNK_BYTES);
        assert_eq!(bytes[..14], [0, 0, 0, 0, 0, 0x80 + 0x20, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[6 + 8 * 7 + 7], 0x80);
    }

    #[test]
    fn a_record_without_bits_names_a_lost_chunk() {
        let mut lost = Vec::new();
        let each = |chunk, added: Option<_>| lost.push((chunk, added.is_none()));
        decode(&[1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 7, 0], 3 * CHUNK_WORDS, each).unwrap();
        assert_eq!(lost, [(1, true), (2, false)]);
        assert!(decode(&[3, 0, 0, 0, 0, 0], 3 * CHUNK_WORDS, |_, _| ()).is_err());
    }

    #[test]
    fn a_chunk_is_within_the_filter() {
        assert_eq!(chunk_words(0, 8), Some(8));
        assert_eq!(chunk_words(0, CHUNK_WORDS), Some(CHUNK_WORDS));
        assert_eq!(chunk_words(1, CHUNK_WORDS), None);
        assert_eq!(chunk_words(1, CHUNK_WORDS + 8), Some(8));
        assert_eq!(chunk_words(usize::MAX, usize::MAX), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 1024 }))]

        #[test]
        fn what_is_pushed_is_what_is_read(lines in 1..300usize, seed: u64, sparseness in 1..2000u64) {
            let words = words(8 * lines, seed, sparseness);
            let delta = delta_of(&words);
            prop_assert_eq!(decoded(&delta.bytes, words.len()), Ok(words));
        }

        /// A delta that is cut off within a record, or of a larger filter, is an error.
        #[test]
        fn what_is_cut_off_is_an_error(lines in 1..300usize, seed: u64, sparseness in 1..2000u64, cut: prop::sample::Index) {
            let words = words(8 * lines, seed, sparseness);
            let delta = delta_of(&words);
            prop_assume!(!delta.bytes.is_empty());
            let mut ends = vec![0];
            for (chunk, words) in (0..).zip(words.chunks(CHUNK_WORDS)) {
                let mut one = Delta::default();
                if words.iter().any(|&word| word != 0) {
                    one.push(chunk, words);
                }
                ends.push(ends.last().unwrap() + one.bytes.len());
            }
            let cut = cut.index(delta.bytes.len());
            prop_assert_eq!(decoded(&delta.bytes[..cut], words.len()).is_ok(), ends.contains(&cut));
            let last = words.iter().rposition(|&word| word != 0).unwrap();
            prop_assert!(decoded(&delta.bytes, last).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, chunk in 0..3u32, n: u16, lines in 1..300usize) {
            let head = [&chunk.to_le_bytes()[..], &n.to_le_bytes()].concat();
            let _ = decoded(&bytes, 8 * lines);
            let _ = decoded(&[&head[..], &bytes].concat(), 8 * lines);
        }
    }
}
