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

/// Where in the product the fields of one word of the pattern lie: the same for all keys, hence known when compiling,
/// to the scalar code below as to the vectors of `simd/`.
#[derive(Clone, Copy)]
pub(crate) struct Cut<const S: usize> {
    /// Whether the product is multiplied (again) before this word is cut from it.
    pub(crate) multiply: bool,
    /// The words to choose from, the first of them, and how far to shift the number of the choice down.
    pub(crate) group: usize,
    pub(crate) first: usize,
    pub(crate) select: u32,
    /// How far to shift each bit's position down. The 6 lowest bits of what comes out are the position.
    pub(crate) bits: [u32; S],
}

impl<const S: usize> Cut<S> {
    /// The cuts of a pattern of `W` words.
    pub(crate) const fn pattern<const W: usize>() -> [Self; W] {
        let group = LINE_WORDS / W;
        let select_bits = group.ilog2();
        let word_bits = select_bits + 6 * S as u32;
        let words_per_product = (64 / word_bits) as usize;
        let mut cuts = [Self {
            multiply: false,
            group,
            first: 0,
            select: 0,
            bits: [0; S],
        }; W];
        let mut i = 0;
        while i < W {
            let cut = &mut cuts[i];
            cut.multiply = i % words_per_product == 0;
            cut.first = i * group;
            let mut left = 64 - (i % words_per_product) as u32 * word_bits - select_bits;
            // (Where nothing is selected the choice is masked away; a shift by 64 would be an error.)
            cut.select = if left == 64 { 0 } else { left };
            let mut bit = 0;
            while bit < S {
                left -= 6;
                cut.bits[bit] = left;
                bit += 1;
            }
            i += 1;
        }
        cuts
    }
}

/// 2^64 divided by the golden ratio, made odd: Knuth's multiplier for multiplicative hashing.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// One word of a key's line, and the positions in it of the key's bits (some may be the same).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<const S: usize> {
    pub(crate) word: usize,
    pub(crate) bits: [u64; S],
}

/// The places in its line of the `W` words with up to `S` bits each that `hash` touches.
#[inline(always)]
pub(crate) fn pattern<const W: usize, const S: usize>(hash: u64) -> [Place<S>; W] {
    let mut product = hash;
    let mut places = [Place { word: 0, bits: [0; S] }; W];
    // Loops, as in `Lines::holds`: the closures of `from_fn` and `map` become calls where there are 4 words or 4 bits and more, and what
    // is called is compiled for the oldest CPU. A lookup in L1 took 14 to 33 ns instead of 3.2 to 6 (Emerald Rapids).
    for (place, cut) in places.iter_mut().zip(const { &Cut::<S>::pattern::<W>() }) {
        if cut.multiply {
            product = product.wrapping_mul(MULTIPLIER);
        }
        place.word = cut.first + (product >> cut.select) as usize % cut.group;
        for (bit, shift) in place.bits.iter_mut().zip(cut.bits) {
            *bit = (product >> shift) % 64;
        }
    }
    places
}

impl<const S: usize> Place<S> {
    /// The word's bits as a mask.
    #[inline(always)]
    pub(crate) fn mask(&self) -> u64 {
        self.bits.iter().fold(0, |mask, bit| mask | 1 << bit)
    }
}
