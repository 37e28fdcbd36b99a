//! A hash to its place: which block, which words of it, which bits of each. Pure arithmetic on values, the same on
//! every platform; `bits.rs` applies the result to memory.
//!
//! The bits of the hash are used as follows. The block is the hash scaled to the number of blocks by a widening
//! multiplication, which takes it from the high bits. The pattern is cut from the high end of a product of the whole
//! hash: per word first the bits that select the word in its group, then 6 bits for each of its bits. Where the
//! product's 64 bits do not reach for another word, it is multiplied again. (An arithmetic progression
//! inside the line, as in double hashing, would put a floor of about 1e-3 under the false-positive rate: two
//! keys of a line then share all their bits far too often.)
//!
//! Version 1 of the layout: a change to any of this changes the bits of every filter.

use crate::sizing::LINE_WORDS;

/// The block of `hash` among `blocks`.
#[inline(always)]
pub(crate) fn block(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

/// 2^64 divided by the golden ratio, made odd: Knuth's multiplier for multiplicative hashing.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// One word of a key's line, and the positions in it of the key's bits (some may be the same).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<const S: usize> {
    pub(crate) word: usize,
    pub(crate) bits: [u64; S],
}

/// The places in its line of the `W` words with up to `S` bits each that `hash` touches.
#[inline(always)]
pub(crate) fn pattern<const W: usize, const S: usize>(hash: u64) -> [Place<S>; W] {
    let group = LINE_WORDS / W;
    let select_bits = group.ilog2();
    let words_per_product = 64 / (select_bits as usize + 6 * S);
    let mut product = hash;
    let mut left = 64;
    core::array::from_fn(|i| {
        if i % words_per_product == 0 {
            product = product.wrapping_mul(MULTIPLIER);
            left = 64;
        }
        left -= select_bits;
        // (A shift by 64 would be one where nothing is selected.)
        let select = if group == 1 {
            0
        } else {
            (product >> left) as usize % group
        };
        let bits = core::array::from_fn(|_| {
            left -= 6;
            (product >> left) % 64
        });
        Place {
            word: i * group + select,
            bits,
        }
    })
}

impl<const S: usize> Place<S> {
    /// The word's bits as a mask.
    #[inline(always)]
    pub(crate) fn mask(&self) -> u64 {
        self.bits.iter().fold(0, |mask, bit| mask | 1 << bit)
    }
}
