//! Turns a hash into a block and a pattern: the words of the block, and the bits in each. This is
//! pure arithmetic, the same on every platform. `bits.rs` applies the result to memory.
//!
//! A widening multiplication scales the hash to the number of blocks; so the block depends on the
//! high bits. The pattern is the bytes of a product of the whole hash, from the highest down:
//!
//! ```text
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
//! The lowest byte is not used: it depends only on the lowest 6 bits of the hash, and some hashes
//! are poor there. Murmur3 returns only even hashes if the seed equals the length of the keys.
//! (With seed 4 and `u32` keys, patterns of that byte set 5% fewer bits than they should.)
//!
//! Positions are bytes because every instruction set shuffles bytes: one instruction moves all
//! positions of a key to their places, another one looks up their bits.
//!
//! A key with a second line takes its block and its pattern there from another hash ([`second`]).
//!
//! This is version 1 of the layout. A change to any of it changes the bits of every filter.

use crate::geometry::layout::LINE_WORDS;

/// The block of `hash` among `blocks`.
#[inline(always)]
pub(crate) fn block(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
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
    /// For each word: its product is the hash times this, shifted so that the word's fields are the
    /// highest bits.
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

/// 2^64 divided by the golden ratio, made odd: Knuth's multiplier for multiplicative hashing.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

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
            let (p, q) = (
                hash.wrapping_mul(MULTIPLIER),
                hash.wrapping_mul(MULTIPLIER.wrapping_mul(MULTIPLIER)),
            );
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
