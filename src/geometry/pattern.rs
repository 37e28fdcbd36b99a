//! Turns a hash into a block and a pattern: the words of the block, and the bits of each. Pure
//! arithmetic on values, the same on every platform. `bits.rs` applies the result to memory.
//!
//! The bits of the hash are used as follows. The block is the hash scaled to the number of blocks
//! by a widening multiplication, which takes it from the high bits. The pattern is the bytes of a
//! product of the whole hash, from the highest down:
//!
//! ```text
//! one byte of the product:  s s p p p p p p
//! p: the position of a bit in its word
//! s: spare; in the first byte of a word they select it among the words of its sector
//! ```
//!
//! A sector is one of `W` equal parts of the block, and gives one word. With `W` = 1 it has eight
//! words, and a byte of its own for the three bits that select one. If the bytes of the product do
//! not suffice for another word, the product is multiplied again. (An arithmetic progression inside
//! the line, as in double hashing, would put a floor of about 1e-3 under the false-positive rate:
//! two keys of a line would then share all their bits far too often.)
//!
//! The lowest byte is not used: it depends on the lowest 6 bits of the hash alone. Some hashes are
//! poor there. Murmur3 gives even hashes only if the seed is the length of the keys. (With seed 4
//! and `u32` keys, patterns of that byte set 5% fewer bits than they should.)
//!
//! Positions are bytes because every instruction set shuffles bytes: one instruction brings all
//! positions of a key to their places, another one fetches their bits.
//!
//! A key with a second line has its block and its pattern there from another hash ([`second`]).
//!
//! Version 1 of the layout: a change to any of this changes the bits of every filter.

use crate::geometry::layout::LINE_WORDS;

/// The block of `hash` among `blocks`.
#[inline(always)]
pub(crate) fn block(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

/// The hash by which a key finds its second line and the pattern there.
///
/// A bijection. Its bits depend on those of `hash` in another way than the block and the products
/// do, which take them from products of the hash itself. So the two lines are independent: the
/// tests measure the product of their rates, down to 1e-7.
#[inline(always)]
pub(crate) fn second(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(SECOND)
}

/// An odd constant without a pattern, from Pelle Evensen's mixer.
pub(crate) const SECOND: u64 = 0x9fb2_1c65_1e98_df25;

/// The fields of one word of the pattern in the product: the same for all keys of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordFields {
    /// Whether the product is multiplied (again) before this word is cut from it.
    pub(crate) multiply: bool,
    /// The shift that brings the number of the selected word down.
    pub(crate) select: u32,
    /// The shift that brings the lowest position down. The next ones follow by shifts by 8.
    pub(crate) positions: u32,
}

/// The bit fields of all words of a pattern. They are data, not code: the vector kernels are
/// compiled once for a number of words, whatever the number of bits in each.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom))),
    allow(dead_code, reason = "a part is for AVX-512")
)]
// Each array of 64 bytes is a line of the cache: a lookup of four words took 0.25 ns longer where
// its multipliers lay across two (Zen 4).
#[repr(C, align(64))]
pub(crate) struct BitFields {
    /// For each word: the hash times this is its product, shifted up so that the word's fields are
    /// the highest.
    pub(crate) multipliers: [u64; LINE_WORDS],
    /// Where eight positions of each word begin in its product, a byte each. (A byte that is left
    /// repeats a position.)
    pub(crate) byte_shifts: [u64; LINE_WORDS],
    /// For each word: the bits of its product that select it.
    pub(crate) selects: [u64; LINE_WORDS],
    /// One for each word that a key touches; the others are unused.
    pub(crate) words: [WordFields; LINE_WORDS],
    /// For each word, which eight bytes are its positions: of its product, or of the packed ones.
    /// (A byte that is left repeats a position.)
    pub(crate) bytes: [u64; LINE_WORDS],
    /// Whether all positions fit into eight bytes. Then `bytes` are those of the packed products:
    /// the first one, with the bytes of a second one after those that it gives.
    pub(crate) is_packed: bool,
    /// The shift that brings the second product to its place among the packed; 0 if there is none.
    pub(crate) second_at: u32,
    /// Bits per word.
    pub(crate) bits: usize,
}

impl BitFields {
    /// The bit fields of a pattern of `words` words with `bits` bits each.
    pub(crate) const fn new(words: usize, bits: usize) -> Self {
        let select_bits = (LINE_WORDS / words).ilog2();
        let word_bits = word_bits(words, bits);
        let words_per_product = words_per_product(words, bits);
        let unused = WordFields {
            multiply: false,
            select: 0,
            positions: 0,
        };
        let mut fields = Self {
            bits,
            words: [unused; LINE_WORDS],
            byte_shifts: [0; LINE_WORDS],
            selects: [0; LINE_WORDS],
            multipliers: [0; LINE_WORDS],
            bytes: [0; LINE_WORDS],
            is_packed: words * bits <= 8,
            second_at: 0,
        };
        let (mut i, mut power) = (0, 1u64);
        while i < words {
            let before = (i % words_per_product) as u32 * word_bits;
            let end = 64 - before;
            if before == 0 {
                power = power.wrapping_mul(MULTIPLIER);
            }
            fields.words[i] = WordFields {
                multiply: i % words_per_product == 0,
                // With one word to select from, the number is masked away; a shift by 64 would be
                // an error.
                select: (end - select_bits) % 64,
                positions: end - word_bits,
            };
            fields.byte_shifts[i] = eight(end - word_bits, bits);
            fields.selects[i] = ((1 << select_bits) - 1) << fields.words[i].select;
            fields.multipliers[i] = power << before;
            let lowest = if fields.is_packed {
                64 - (i as u32 + 1) * word_bits
            } else {
                end - word_bits
            };
            // A multiple of 8, divided by 8, is the number of a byte.
            fields.bytes[i] = eight(lowest, bits) >> 3;
            if fields.is_packed && i == words_per_product {
                fields.second_at = i as u32 * word_bits;
            }
            i += 1;
        }
        fields
    }
}

/// How many words are cut from one product: from seven of its bytes.
pub(crate) const fn words_per_product(words: usize, bits: usize) -> usize {
    56 / word_bits(words, bits) as usize
}

/// The bits of the product that a word takes.
const fn word_bits(words: usize, bits: usize) -> u32 {
    // The three bits that select one of eight words do not fit beside a position.
    8 * (bits as u32 + (words == 1) as u32)
}

/// Where eight positions begin, a byte each. The last one is repeated.
const fn eight(lowest: u32, bits: usize) -> u64 {
    let (mut bytes, mut i) = ([0; 8], 0);
    while i < 8 {
        let number = if i < bits { i } else { bits - 1 };
        bytes[i] = lowest as u8 + 8 * number as u8;
        i += 1;
    }
    u64::from_le_bytes(bytes)
}

/// 2^64 divided by the golden ratio, made odd: Knuth's multiplier for multiplicative hashing.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A word of a key's block, and the positions of the key's bits in it: the low 6 bits of each byte,
/// the last one lowest. (Positions may repeat.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordBits {
    pub(crate) word: usize,
    positions: u64,
}

/// The pattern of `hash`: the `W` words of its block that it touches, with the bits in each.
///
/// This and [`Lines::holds`](crate::words::bits::Lines::holds) use loops. With 4 words or 4 bits
/// and more, the closures of `from_fn` and `map` become calls, and a called function is compiled
/// for the oldest CPU. A lookup in L1 then took 14 to 33 ns instead of 3.2 to 6 (Emerald Rapids).
#[inline(always)]
pub(crate) fn pattern<const W: usize>(hash: u64, fields: &BitFields) -> [WordBits; W] {
    let sector = LINE_WORDS / W;
    let mut product = hash;
    let mut pattern = [WordBits { word: 0, positions: 0 }; W];
    for (i, part) in pattern.iter_mut().enumerate() {
        let cut = fields.words[i];
        if i == 0 || cut.multiply {
            product = product.wrapping_mul(MULTIPLIER);
        }
        part.word = i * sector + (product >> cut.select) as usize % sector;
        part.positions = product >> cut.positions;
    }
    pattern
}

impl WordBits {
    /// The positions of the first `bits` bits.
    #[inline(always)]
    pub(crate) fn positions(&self, bits: usize) -> impl Iterator<Item = u64> + use<> {
        let positions = self.positions;
        (0..bits).map(move |bit| (positions >> (8 * bit)) % 64)
    }

    /// The first `bits` bits as a mask.
    #[inline(always)]
    pub(crate) fn mask(&self, bits: usize) -> u64 {
        let mut mask = 0;
        for position in self.positions(bits) {
            mask |= 1 << position;
        }
        mask
    }
}
