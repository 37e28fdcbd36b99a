//! Turns a hash into a block and a pattern: the words of the block, and the bits in each. This is
//! pure arithmetic, the same on every platform. `bits.rs` applies the result to memory.
//!
//! ```text
//! x       = hash * BLOCK_MULTIPLIER
//! block   = x * blocks / 2^64           by a widening multiplication
//! product = (x ^ x >> 24) * MULTIPLIER
//! pattern = the bytes of the product, from the highest down
//!
//! one byte of the product:  s s p p p p p p
//! p: the position of a bit in its word
//! s: spare; in the first byte of a word they select it among those of its sector
//! ```
//!
//! A sector is one of `W` equal parts of the block; the pattern has one word in each. With `W` = 1
//! the sector has eight words, and a byte of its own for the three bits that select one. If the
//! bytes of the product do not suffice for another word, the product is multiplied again. (An
//! arithmetic progression inside the line, as in double hashing, would put a floor of about 1e-3
//! under the false-positive rate: two keys of a line would share all their bits far too often.)
//!
//! # Why two products
//!
//! Programs divide their keys among filters by bits of the same hash: by the highest ones
//! (consistent hashing, ranges of tokens, prefixes of digests), by the lowest (`hash % n`), or by
//! both. All keys of such a filter share these bits. With the block in the high bits of the hash
//! itself, keys of one sixteenth of the range would crowd in one sixteenth of the blocks, and a
//! filter for 1% would find 99.5% of absent keys. High bits of a product depend on all bits of the
//! hash, so whatever bits the keys share, they take all blocks evenly.
//!
//! The pattern comes from a second product, of the first one folded. Without the fold, the low
//! bytes of the product would be those of a product of the low bytes of the hash alone: constant
//! for hashes whose low 24 to 40 bits are equal (2.2 times the rate at 28 bits, 13 times for
//! unhashed multiples of 2^37). Besides, a pattern linear in the hash would repeat along the
//! lattice that the blocks of unhashed integers form (1, 2, 3): up to 9 times the rate.
//! `docs/HASHES.md` has the rates of many divisions, which the tests check.
//!
//! The lowest byte of a product is not used.
//!
//! Positions are bytes because every instruction set shuffles bytes: one instruction moves all
//! positions of a key to their places, another one looks up their bits.
//!
//! A key with a second line takes its block and its pattern there from another hash ([`second`]).
//!
//! This is version 2 of the layout. A change to any of it changes the bits of every filter. (In
//! version 1 the hash took the place of `x`, and of what is folded.)

use crate::geometry::layout::LINE_WORDS;

/// Scales a number of 64 bits to `0..count`. The order of the numbers stays: folds, and regions of
/// bulk inserts, rely on that.
#[inline(always)]
pub(crate) fn scale(number: u64, count: usize) -> usize {
    ((u128::from(number) * count as u128) >> 64) as usize
}

/// The block of `hash` among `blocks`.
#[inline(always)]
pub(crate) fn block(hash: u64, blocks: usize) -> usize {
    scale(hash.wrapping_mul(BLOCK_MULTIPLIER), blocks)
}

/// The product that determines the place of `hash`, folded: a bijection. Every bit of the hash
/// moves bits in the low half, too.
#[inline(always)]
pub(crate) fn folded(hash: u64) -> u64 {
    let place = hash.wrapping_mul(BLOCK_MULTIPLIER);
    place ^ place >> FOLD
}

/// The product whose bytes are the pattern of `hash`, or its fingerprint.
#[inline(always)]
pub(crate) fn product(hash: u64) -> u64 {
    folded(hash).wrapping_mul(MULTIPLIER)
}

/// The hash that determines a key's second line and the pattern there.
///
/// It is a bijection. The first line's block and pattern come from products of `hash` itself; the
/// bits of this hash depend on `hash` in another way. So the two lines are independent: the tests
/// measure the product of their rates, down to 1e-7.
#[inline(always)]
pub(crate) fn second(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(SECOND)
}

/// An odd constant without a pattern, from Pelle Evensen's mixer.
pub(crate) const SECOND: u64 = 0x9fb2_1c65_1e98_df25;

/// The fields of one word of the pattern in the product: the same for all keys of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordFields {
    /// Whether the product is multiplied (again) before this word's fields are taken from it.
    pub(crate) multiply: bool,
    /// The right shift that moves the index of the selected word to the lowest bits.
    pub(crate) select: u32,
    /// The right shift that moves the lowest position to the lowest bits. Each next position takes
    /// 8 bits more.
    pub(crate) positions: u32,
}

/// The bit fields of all words of a pattern. They are data, not code: the vector kernels are
/// compiled once for a number of words, whatever the number of bits in each.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom))),
    allow(dead_code, reason = "a part is for AVX-512")
)]
// Each array of 64 bytes is one cache line: a lookup of four words took 0.25 ns longer where its
// multipliers lay across two (Zen 4).
#[repr(C, align(64))]
pub(crate) struct BitFields {
    /// For each word: its product is the [`folded`] hash times this, shifted so that the word's
    /// fields are the highest bits.
    pub(crate) multipliers: [u64; LINE_WORDS],
    /// Where eight positions of each word begin in its product, one per byte. (Spare bytes repeat a
    /// position.)
    pub(crate) byte_shifts: [u64; LINE_WORDS],
    /// For each word: the bits of its product that select it within its sector.
    pub(crate) selects: [u64; LINE_WORDS],
    /// One for each word that a key touches; the others are unused.
    pub(crate) words: [WordFields; LINE_WORDS],
    /// For each word: the indices of eight bytes with its positions, in its product or in the
    /// packed ones. (Spare bytes repeat a position.)
    pub(crate) bytes: [u64; LINE_WORDS],
    /// Whether all positions fit into eight bytes. Then `bytes` refer to the packed products: the
    /// used bytes of the first one, followed by those of the second one.
    pub(crate) is_packed: bool,
    /// The shift that moves the second product to its place in the packed ones; 0 if there is none.
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
                // With one word to select from, the index is masked away; a shift by 64 would be an
                // error.
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

/// The number of words that one product determines, with seven of its bytes.
pub(crate) const fn words_per_product(words: usize, bits: usize) -> usize {
    56 / word_bits(words, bits) as usize
}

/// The bits of the product that a word takes.
const fn word_bits(words: usize, bits: usize) -> u32 {
    // The three bits that select one of eight words do not fit beside a position.
    8 * (bits as u32 + (words == 1) as u32)
}

/// Where eight positions begin, one per byte. Spare bytes repeat the last one.
const fn eight(lowest: u32, bits: usize) -> u64 {
    let (mut bytes, mut i) = ([0; 8], 0);
    while i < 8 {
        let number = if i < bits { i } else { bits - 1 };
        bytes[i] = lowest as u8 + 8 * number as u8;
        i += 1;
    }
    u64::from_le_bytes(bytes)
}

/// The multiplier of the block, and the one of the pattern.
///
/// Both have a high spectral figure, whatever power of two divides the hashes: for `m` times each
/// power of two up to 2^40, and each `q` up to 2^30, `q` times the distance of `q * m / 2^64` from
/// a whole number is at least 0.028. (0.001 for the golden ratio's multiplier and those of Murmur3,
/// 0.029 the best of 6e7. A multiplier with a low figure piles up the multiples of some number on a
/// few blocks: with the golden ratio's, multiples of 2^16 have 15 times the rate.) This pair of the
/// twelve best keeps the rate of unhashed integers below twice the requested one.
pub(crate) const BLOCK_MULTIPLIER: u64 = 0x45e1_0f8c_ad1e_3257;
pub(crate) const MULTIPLIER: u64 = 0x28b6_4b9e_11e7_f457;

/// The shift of the fold. (Unhashed multiples of 2^30 to 2^40, filters of four patterns, 1000 to
/// 100,000 keys, five pairs of multipliers: of 1540 rates, 28 are above twice the requested one
/// with 32, 14 with 28, 4 with 24, 3 with 22, 20 with 18. With 32, the halves of such a number do
/// not overlap, and its pattern is linear in it. With less, low bytes of its pattern hardly vary.)
pub(crate) const FOLD: u32 = 24;

/// A word of a key's block, and the positions of the key's bits in it: the low 6 bits of each byte,
/// from the lowest byte up. (Positions may repeat.)
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
    let mut product = folded(hash);
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

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::hash::bytes::mix;

    /// Distinct numbers without a pattern: SplitMix64.
    fn number(i: &mut u64) -> u64 {
        *i = i.wrapping_add(MULTIPLIER);
        mix(*i)
    }

    /// The share of absent keys that a line finds, as the mean of many lines with `keys` each. All
    /// hashes of a line share their highest `shared` bits, as in a filter of 2^`shared` blocks.
    fn rate<const W: usize>(bits: usize, keys: usize, shared: u32, lines: usize, shape: impl Fn(u64) -> u64) -> f64 {
        let (fields, mut i) = (BitFields::new(W, bits), u64::from(shared) << 40);
        let (mut found, strangers) = (0, 64);
        for _ in 0..lines {
            let top = number(&mut i);
            let mut hash = || shape(top & !(u64::MAX >> shared) | number(&mut i) & u64::MAX >> shared);
            let mut line = [0u64; LINE_WORDS];
            for _ in 0..keys {
                for part in pattern::<W>(hash(), &fields) {
                    line[part.word] |= part.mask(bits);
                }
            }
            for _ in 0..strangers {
                let lacks = |part: &WordBits| part.mask(bits) & !line[part.word] != 0;
                found += u32::from(!pattern::<W>(hash(), &fields).iter().any(lacks));
            }
        }
        f64::from(found) / (lines * strangers) as f64
    }

    /// Lines whose hashes share as many bits as those of one line in a filter of 2^10 to 2^32
    /// blocks find as many absent keys as lines whose hashes share nothing. The load is twice that
    /// of 1%, so that few lines suffice.
    fn shared_bits_do_not_matter<const W: usize>(bits: usize, keys: usize) {
        let lines = if cfg!(debug_assertions) { 6_000 } else { 60_000 };
        let alone = rate::<W>(bits, keys, 0, lines, |hash| hash);
        for shared in [10, 20, 24, 28, 32] {
            let rate = rate::<W>(bits, keys, shared, lines, |hash| hash);
            let ratio = rate / alone;
            assert!(
                (ratio - 1.0).abs() < if cfg!(debug_assertions) { 0.06 } else { 0.02 },
                "{W} words of {bits} bits, {shared} bits shared: {rate}, and {alone} without"
            );
        }
        // Hashes whose lowest bit is 0: Murmur3's, if the seed is the keys' length.
        let even = rate::<W>(bits, keys, 20, lines, |hash| hash & !1) / alone;
        assert!(
            (even - 1.0).abs() < if cfg!(debug_assertions) { 0.06 } else { 0.02 },
            "{W} words of {bits} bits, even: {even}"
        );
    }

    #[test]
    fn bits_of_the_block_do_not_show_in_the_pattern() {
        shared_bits_do_not_matter::<1>(3, 130);
        shared_bits_do_not_matter::<2>(3, 90);
        shared_bits_do_not_matter::<2>(4, 80);
        shared_bits_do_not_matter::<4>(2, 70);
        shared_bits_do_not_matter::<4>(3, 60);
        shared_bits_do_not_matter::<8>(1, 80);
    }

    /// Positions are bytes, from the highest down; the words of a second product follow.
    #[test]
    fn words_and_positions_are_those_bytes() {
        let of = |hash: u64, at: &[u32]| at.iter().fold(0, |mask, byte| mask | 1 << (hash >> (8 * byte) & 63));
        for hash in [0x0123_4567_89ab_cdef_u64, 0xfedc_ba98_7654_3210, 0x8000_0000_0000_0001] {
            let x = hash.wrapping_mul(BLOCK_MULTIPLIER);
            let p = (x ^ x >> 24).wrapping_mul(MULTIPLIER);
            let q = p.wrapping_mul(MULTIPLIER);
            assert_eq!(block(hash, 1000), scale(x, 1000));
            let words = |pattern: &[WordBits], bits| -> alloc::vec::Vec<(usize, u64)> {
                pattern.iter().map(|part| (part.word, part.mask(bits))).collect()
            };
            let two = pattern::<2>(hash, &BitFields::new(2, 3));
            assert_eq!(
                words(&two, 3),
                [
                    ((p >> 62) as usize, of(p, &[7, 6, 5])),
                    (4 + (p >> 38 & 3) as usize, of(p, &[4, 3, 2]))
                ]
            );
            let one = pattern::<1>(hash, &BitFields::new(1, 3));
            assert_eq!(words(&one, 3), [((p >> 61) as usize, of(p, &[6, 5, 4]))]);
            let four = pattern::<4>(hash, &BitFields::new(4, 2));
            assert_eq!(
                words(&four, 2),
                [
                    ((p >> 63) as usize, of(p, &[7, 6])),
                    (2 + (p >> 47 & 1) as usize, of(p, &[5, 4])),
                    (4 + (p >> 31 & 1) as usize, of(p, &[3, 2])),
                    (6 + (q >> 63) as usize, of(q, &[7, 6])),
                ]
            );
            let eight = pattern::<8>(hash, &BitFields::new(8, 1));
            let bits = [7, 6, 5, 4, 3, 2, 1].map(|byte| of(p, &[byte]));
            let expected: alloc::vec::Vec<(usize, u64)> = bits.into_iter().chain([of(q, &[7])]).enumerate().collect();
            assert_eq!(words(&eight, 1), expected);
        }
    }
}
