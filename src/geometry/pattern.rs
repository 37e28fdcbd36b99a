//! Turns a hash into a sector and a pattern: words of a line, and the hash's bits in them. This
//! is pure arithmetic, the same on every platform. `bits.rs` applies the result to memory.
//!
//! ```text
//! x       = hash * BLOCK_MULTIPLIER
//! sector  = x * sectors / 2^64          by a widening multiplication
//! product = (x ^ x >> 32) * MULTIPLIER
//! pattern = bytes of the product, from the highest down
//!
//! a byte of the product:  b b b b b p p p
//! p: the part of the sector, 32 bits of it: as many bits as number the parts
//! b: the bit of the part
//! ```
//!
//! A sector is one, two, four or all eight of a line's words, neighbours in memory. A line has `8 /
//! W` of them, so their numbers tell the number of the line, its block, as well. A sector of one
//! word has 2 parts, of two 4, of four 8. In one of eight words, each half has 8: the bytes belong
//! to the first half and to the second in turn.
//!
//! So any bits of a sector can be a key's, and one vector of eight lanes of 32 bits tests all of
//! them: a shuffle brings each byte to a lane, where its low bits select the part and its high bits
//! are the count of a shift. The bytes are data (`Pattern`): a kernel is compiled for each number
//! of words, and not for each number of bits.
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
//! for hashes whose low 24 to 40 bits are equal (up to 10 times the rate at 28 bits). Besides, a
//! pattern linear in the hash would repeat along the lattice that the blocks of unhashed integers
//! form (1, 2, 3): up to 31 times the rate. `docs/HASHES.md` has the rates of many divisions, which
//! the tests check.
//!
//! A key with a second line takes its sector and its pattern there from another hash ([`second`]).
//!
//! This is version 2 of the layout. A change to any of it changes the bits of every filter.

use crate::geometry::layout::{LINE_WORDS, MOST_BITS};

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

/// The first word of the sector of `hash`, one of `W` words in a line, among the words of `blocks`.
#[inline(always)]
pub(crate) fn sector<const W: usize>(hash: u64, blocks: usize) -> usize {
    // The product is at most the number of words in memory, so it does not overflow.
    W * block(hash, blocks * (LINE_WORDS / W))
}

/// The product whose bytes are the pattern of `hash`: a bijection.
#[inline(always)]
pub(crate) fn product(hash: u64) -> u64 {
    let place = hash.wrapping_mul(BLOCK_MULTIPLIER);
    (place ^ place >> FOLD).wrapping_mul(MULTIPLIER)
}

/// The product whose highest bits are the fingerprint of `hash` in a bucket: a bijection, too.
///
/// It has a fold of its own. (With the shift of patterns, 10,000 unhashed multiples of 2^29 have
/// 2.9 times the rate of a cuckoo filter; with one of 28, multiples of 2^34 have 2.5 times.)
#[inline(always)]
pub(crate) fn fingerprint_product(hash: u64) -> u64 {
    let place = hash.wrapping_mul(BLOCK_MULTIPLIER);
    (place ^ place >> 24).wrapping_mul(MULTIPLIER)
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

/// The shift of the fold. (1000 to 50,000 unhashed multiples of each power of two up to 2^40, and
/// hashes with 20 to 32 equal bits: at most 1.42 times the requested rate, 1.9 with 24.)
pub(crate) const FOLD: u32 = 32;

/// The bits of a vector's lane: a part of a sector.
pub(crate) const PART_BITS: usize = 32;

/// The number of bit `number` of a pattern within its sector of `W` words.
#[inline(always)]
pub(crate) fn position<const W: usize>(product: u64, number: usize) -> usize {
    let byte = product.to_be_bytes()[number % MOST_BITS] as usize;
    let parts = const { parts(W) };
    let half = if W == LINE_WORDS { number % 2 } else { 0 };
    PART_BITS * (parts * half + byte % parts) + byte / 8
}

/// The parts of a sector, or of each half of one of eight words.
const fn parts(words: usize) -> usize {
    match words {
        LINE_WORDS => LINE_WORDS,
        words => 2 * words,
    }
}

/// The masks of the first `bits` bits of a pattern in the words of its sector. (Positions may
/// repeat, and a mask may be 0.)
#[inline(always)]
pub(crate) fn masks<const W: usize>(product: u64, bits: usize) -> [u64; W] {
    let mut masks = [0; W];
    for number in 0..bits {
        let position = position::<W>(product, number);
        masks[position / 64] |= 1 << (position % 64);
    }
    masks
}

/// The bytes of a product that are the positions of a filter's patterns. They are data, not code:
/// kernels are compiled once for a number of words, whatever the number of bits.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(lanebloom_x86_64), allow(dead_code, reason = "a part is for vectors of x86-64"))]
// One cache line for the constants of a lookup.
#[repr(C, align(64))]
pub(crate) struct Pattern {
    /// For each lane of 32 bits, the number of the byte of its position, at both ends of the lane;
    /// 128 between. (Spare lanes repeat a position.)
    pub(crate) lanes: [[u8; 4]; 8],
    /// 1 in each lane: bit 0, for shifts.
    pub(crate) ones: [u32; 8],
    /// For each position the number of its byte. (Spare ones repeat the last.)
    pub(crate) bytes: [u8; MOST_BITS],
    /// The words of a sector.
    pub(crate) words: usize,
    /// Bits of a key in a line.
    pub(crate) bits: usize,
}

impl Pattern {
    /// The pattern of `bits` bits in sectors of `words` words.
    pub(crate) const fn new(words: usize, bits: usize) -> Self {
        let mut lanes = [[128; 4]; 8];
        let mut lane = 0;
        while lane < 8 {
            // The number of the position.
            let mut number = match words {
                LINE_WORDS => 2 * (lane % 4) + lane / 4,
                _ => lane,
            };
            while number >= bits {
                number -= if words == LINE_WORDS { 2 } else { 1 };
            }
            let byte = (MOST_BITS - 1 - number) as u8;
            lanes[lane][0] = byte;
            lanes[lane][3] = byte;
            lane += 1;
        }
        let (mut bytes, mut number) = ([0; MOST_BITS], 0);
        while number < MOST_BITS {
            let repeated = if number < bits { number } else { bits - 1 };
            bytes[number] = (MOST_BITS - 1 - repeated) as u8;
            number += 1;
        }
        Self {
            lanes,
            ones: [1; 8],
            bytes,
            words,
            bits,
        }
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

    /// The share of absent keys that a sector finds, as the mean of many sectors with `keys` each.
    /// All hashes of a sector share their highest `shared` bits after the first product, as in a
    /// filter of 2^`shared` sectors.
    fn rate<const W: usize>(bits: usize, keys: usize, shared: u32, sectors: usize, shape: impl Fn(u64) -> u64) -> f64 {
        // The inverse of the first product brings these bits there.
        const INVERSE: u64 = 8_624_540_351_740_434_791;
        assert_eq!(INVERSE.wrapping_mul(BLOCK_MULTIPLIER), 1);
        let mut i = u64::from(shared) << 40;
        let (mut found, strangers) = (0, 64);
        for _ in 0..sectors {
            let top = number(&mut i);
            let mut hash = || {
                let place = top & !(u64::MAX >> shared) | number(&mut i) & u64::MAX >> shared;
                shape(place.wrapping_mul(INVERSE))
            };
            let mut sector = [0u64; W];
            for _ in 0..keys {
                for (word, mask) in sector.iter_mut().zip(masks::<W>(product(hash()), bits)) {
                    *word |= mask;
                }
            }
            for _ in 0..strangers {
                let masks = masks::<W>(product(hash()), bits);
                found += u32::from(masks.iter().zip(sector).all(|(mask, word)| mask & !word == 0));
            }
        }
        f64::from(found) / (sectors * strangers) as f64
    }

    /// Sectors whose hashes share as many bits as those of one sector in a filter of 2^10 to 2^32
    /// find as many absent keys as those whose hashes share nothing. The load is twice that of 1%,
    /// so that few sectors suffice.
    fn shared_bits_do_not_matter<const W: usize>(bits: usize, keys: usize) {
        let sectors = if cfg!(debug_assertions) { 6_000 } else { 60_000 };
        let alone = rate::<W>(bits, keys, 0, sectors, |hash| hash);
        let bound = if cfg!(debug_assertions) { 0.06 } else { 0.02 };
        for shared in [10, 20, 24, 28, 32] {
            let rate = rate::<W>(bits, keys, shared, sectors, |hash| hash);
            let ratio = rate / alone;
            assert!(
                (ratio - 1.0).abs() < bound,
                "{W} words, {bits} bits, {shared} bits shared: {rate}, and {alone} without"
            );
        }
        // Hashes whose lowest bit is 0: Murmur3's, if the seed is the keys' length.
        let even = rate::<W>(bits, keys, 0, sectors, |hash| hash & !1) / alone;
        assert!((even - 1.0).abs() < bound, "{W} words, {bits} bits, even: {even}");
    }

    #[test]
    fn bits_of_the_sector_do_not_show_in_the_pattern() {
        shared_bits_do_not_matter::<1>(3, 16);
        shared_bits_do_not_matter::<2>(6, 22);
        shared_bits_do_not_matter::<2>(8, 20);
        shared_bits_do_not_matter::<4>(6, 45);
        shared_bits_do_not_matter::<4>(8, 40);
        shared_bits_do_not_matter::<8>(8, 80);
    }

    /// Positions are bytes, from the highest down: five bits a bit, the low ones a part.
    #[test]
    fn positions_are_those_bytes() {
        for hash in [0x0123_4567_89ab_cdef_u64, 0xfedc_ba98_7654_3210, 0x8000_0000_0000_0001] {
            let x = hash.wrapping_mul(BLOCK_MULTIPLIER);
            let p = (x ^ x >> 32).wrapping_mul(MULTIPLIER);
            assert_eq!(product(hash), p);
            assert_eq!(block(hash, 1000), scale(x, 1000));
            assert_eq!(sector::<2>(hash, 1000), 2 * scale(x, 4000));
            assert_eq!(sector::<2>(hash, 1000) / 8, block(hash, 1000));
            let byte = |number: usize| (p >> (56 - 8 * number) & 255) as usize;
            for number in 0..8 {
                let (part, bit) = (byte(number) & 7, byte(number) >> 3);
                assert_eq!(position::<1>(p, number), 32 * (part & 1) + bit);
                assert_eq!(position::<2>(p, number), 32 * (part & 3) + bit);
                assert_eq!(position::<4>(p, number), 32 * part + bit);
                assert_eq!(position::<8>(p, number), 256 * (number & 1) + 32 * part + bit);
            }
            let mask = masks::<2>(p, 6);
            let set = (0..6).map(|number| position::<2>(p, number));
            let set = set.fold(0u128, |mask, position| mask | 1 << position);
            assert_eq!(u128::from(mask[0]) | u128::from(mask[1]) << 64, set);
        }
    }

    /// The lanes of a vector hold every position of a pattern, those of eight words in the half
    /// where they are.
    #[test]
    fn lanes_have_all_positions() {
        for (words, bits) in [(1, 1), (1, 3), (2, 6), (4, 8), (8, 2), (8, 6), (8, 8)] {
            let pattern = Pattern::new(words, bits);
            for half in 0..2 {
                let lanes = &pattern.lanes[4 * half..][..4];
                assert!(lanes.iter().all(|lane| lane[0] == lane[3] && lane[1..3] == [128; 2]));
                if words == LINE_WORDS {
                    assert!(lanes.iter().all(|lane| usize::from(7 - lane[0]) % 2 == half));
                }
            }
            let mut bytes: alloc::vec::Vec<u8> = pattern.lanes.iter().map(|lane| 7 - lane[0]).collect();
            bytes.sort_unstable();
            bytes.dedup();
            assert_eq!(bytes, (0..bits as u8).collect::<alloc::vec::Vec<u8>>());
            for (number, byte) in pattern.bytes.into_iter().enumerate() {
                assert_eq!(usize::from(7 - byte), number.min(bits - 1));
            }
        }
    }
}
