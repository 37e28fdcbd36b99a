//! RedisBloom's formulas: the layout of a layer for a capacity and a rate, and the indexes of a
//! hash's bits. `redisbloom.rs` calls it.
//!
//! Source: RedisBloom's documented options and formulas (`deps/bloom/bloom.c`), checked beside the
//! module by `crates/redis/tests/servers/redisbloom_module.rs`.

use super::error::NO_CAPACITY;
use crate::flat::{LINE_BYTES, Modulo, NextIndex};
use crate::logarithm::{Twofold, ln};
use crate::murmur2::{murmur2, murmur64a};
use lanebloom::BuildError;

/// The options of RedisBloom's dumps, a bit each.
pub(super) mod options {
    /// Sizes are not rounded up to powers of two.
    pub(crate) const NO_ROUND: u32 = 1;
    /// MurmurHash64A, not MurmurHash2.
    pub(crate) const FORCE_64: u32 = 4;
    /// The chain never grows.
    pub(crate) const NO_SCALING: u32 = 8;
    pub(crate) const ALL: u32 = NO_ROUND | FORCE_64 | NO_SCALING;
}

/// RedisBloom's constants, with the digits that it gives them: ln 2, and its square.
#[expect(
    clippy::approx_constant,
    reason = "the bits that follow from it must be RedisBloom's"
)]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// The ratio of a layer's rate to the rate of the layer before, or of the chain.
pub(super) const TIGHTENING: f64 = 0.5;

/// Bytes of a layer beside its bits: the layer itself, in a Vec with up to twice the capacity, and
/// the allocator's own. (Without them, a chain of layers of 8 bytes would take ten times the memory
/// that it counts.)
pub(super) const BESIDE_BITS: u64 = 256;

/// The parameters of a layer: they determine its size and a key's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerLayout {
    /// Keys that are counted before the chain grows: RedisBloom's `entries`.
    pub(crate) capacity: u64,
    /// The rate of the layer, between 0 and 1.
    pub(crate) rate: f64,
    /// Bits per key by the formula for the rate, RedisBloom's `bpe`: the size follows from it, and
    /// the bits of a key.
    pub(crate) bits_per_key: f64,
    /// At least 1.
    pub(crate) words: usize,
    /// Bits of a key, at least 1.
    pub(crate) hash_functions: u32,
    /// If not 0, only the first `2^log` bits are used: RedisBloom's `n2`, for sizes that were
    /// rounded up.
    pub(crate) log: u8,
}

impl LayerLayout {
    /// The layout that RedisBloom's `bloom_init` chooses.
    pub(crate) fn solve(capacity: u64, rate: f64, options: u32) -> Result<Self, BuildError> {
        if capacity == 0 {
            return Err(BuildError::new(NO_CAPACITY));
        }
        BuildError::check_rate(rate)?;
        let bits_per_key = bits_per_key(rate);
        let needed = capacity as f64 * bits_per_key;
        let too_large = || BuildError::too_large(usize::try_from(capacity).unwrap_or(usize::MAX), rate);
        // Prevents overflow below; smaller sizes would be beyond memory too.
        if needed >= (1u64 << 62) as f64 {
            return Err(too_large());
        }
        let mut layout = Self {
            capacity,
            rate,
            bits_per_key,
            words: 0,
            hash_functions: hash_functions(bits_per_key) as u32,
            log: 0,
        };
        let bits = if options & options::NO_ROUND != 0 {
            (needed as u64).max(1)
        } else {
            // Rounds up to a power of two, and the capacity to the keys that then fit.
            layout.log = (needed.max(1.0) as u64).ilog2() as u8 + 1;
            let bits = 1 << layout.log;
            let spare = (bits as f64 - needed) as u64;
            layout.capacity += (spare as f64 / bits_per_key) as u64;
            bits
        };
        layout.words = usize::try_from(bits.div_ceil(64)).map_err(|_| too_large())?;
        Ok(layout)
    }

    /// The number of bits, including those that only fill the last word.
    pub(crate) fn bits(&self) -> u64 {
        64 * self.words as u64
    }

    /// The number of bits that keys can have.
    pub(crate) fn used_bits(&self) -> u64 {
        if self.log == 0 { self.bits() } else { 1 << self.log }
    }

    pub(crate) fn bytes(&self) -> u64 {
        8 * self.words as u64
    }

    /// Bytes of memory that a layer takes: its bits in whole lines, and [`BESIDE_BITS`].
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes().saturating_add(BESIDE_BITS)).next_multiple_of(LINE_BYTES as u64)
    }
}

/// RedisBloom's `calc_bpe`. Its logarithm is the C library's, and ours the nearest `f64`: one of
/// 3000 random rates had another last bit.
pub(super) fn bits_per_key(rate: f64) -> f64 {
    -(ln(Twofold::new(rate)) / LN_2_SQUARED)
}

/// The bits of a key, from the bits per key: `ceil(ln 2 * bpe)`. For the least `f64` they are 1075.
pub(super) fn hash_functions(bits_per_key: f64) -> u64 {
    let number = LN_2 * bits_per_key;
    let whole = number as u64;
    if number > whole as f64 { whole + 1 } else { whole }
}

/// A key's two hashes, from which all its indexes follow.
pub(crate) type Hash = (u64, u64);

/// A key's hashes, by the chain's options.
#[inline(always)]
pub(super) fn hash(key: &[u8], options: u32) -> Hash {
    if options & options::FORCE_64 != 0 {
        let a = murmur64a(key, 0xc6a4_a793_5bd1_e995);
        (a, murmur64a(key, a))
    } else {
        let a = murmur2(key, 0x9747_b28c);
        (a.into(), murmur2(key, a).into())
    }
}

/// The indexes of one key's bits in a layer, one after another.
#[derive(Clone, Copy, Default)]
pub(super) struct LayerIndexes {
    next: u64,
    step: u64,
    /// Applied before the modulo: all bits; or for a size that was rounded up, as many as the size
    /// has, so that the modulo changes nothing.
    mask: u64,
}

impl LayerIndexes {
    #[inline(always)]
    pub(super) fn new((next, step): Hash, layout: &LayerLayout) -> Self {
        // 0 means all 64.
        let mask = u64::MAX >> (u32::from(layout.log).wrapping_neg() % 64);
        Self { next, step, mask }
    }
}

impl NextIndex for LayerIndexes {
    #[inline(always)]
    fn next_index(&mut self, modulo: &Modulo) -> u64 {
        let index = modulo.remainder_of_any(self.next & self.mask);
        self.next = self.next.wrapping_add(self.step);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn solve(capacity: u64, rate: f64, options: u32) -> LayerLayout {
        LayerLayout::solve(capacity, rate, options).unwrap()
    }

    #[test]
    fn sizes_are_redisblooms() {
        // BF.RESERVE 0.01 10 and its growth, with the module's bytes, hashes and capacities.
        let mut rate = 0.01;
        for (i, (words, functions)) in [(2, 8), (4, 9), (9, 10), (20, 11)].into_iter().enumerate() {
            rate *= TIGHTENING;
            let layout = solve(10 << i, rate, 5);
            assert_eq!((layout.words, layout.hash_functions, layout.log), (words, functions, 0));
            assert_eq!(layout.capacity, 10 << i);
        }
        assert_eq!(bits_per_key(0.01).to_bits(), 0x4023_2b8c_c58a_1688);
        // The least size, for a rate near 1, and the most bits of a key.
        let least = solve(1, 0.999, 5);
        assert_eq!((least.words, least.hash_functions), (1, 1));
        assert_eq!(solve(1, 4.9e-324, 5).hash_functions, 1075);
    }

    /// Rounded up to a power of two, with the capacity that there is room for then; below 64 bits
    /// the rest of a word is not used.
    #[test]
    fn rounded_sizes_are_redisblooms() {
        // 10 keys at 0.005 take 110 bits: 128, which are 18 more, for one key of 11.02 bits.
        let layout = solve(10, 0.005, 4);
        assert_eq!((layout.words, layout.log, layout.capacity), (2, 7, 11));
        let layout = solve(1, 0.25, 4);
        assert_eq!((layout.words, layout.log, layout.capacity), (1, 2, 1));
        let mut indexes = LayerIndexes::new((7, 2), &layout);
        assert_eq!([(); 3].map(|()| indexes.next_index(&Modulo::new(1))), [3, 1, 3]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |capacity, rate, options| {
            let solved = LayerLayout::solve(capacity, rate, options);
            solved.unwrap_err().to_string()
        };
        for rate in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(refused(10, rate, 5).ends_with("is not between 0 and 1, both excluded"));
        }
        assert_eq!(refused(0, 0.01, 5), NO_CAPACITY);
        for options in [4, 5] {
            for capacity in [1 << 60, u64::MAX] {
                assert!(refused(capacity, 0.01, options).contains("needs more than the addressable memory"));
            }
        }
    }

    /// RedisBloom's own arithmetic, step by step, beside ours.
    #[test]
    fn indexes_are_redisblooms() {
        for i in 0..300u64 {
            let (a, b) = (
                i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                i.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ i << 40,
            );
            let words = 1 + i as usize * 7 % 50;
            let (log, modulo) = ((i % 12) as u8, Modulo::new(words.max(32)));
            let bits = if log == 0 { 64 * words.max(32) as u64 } else { 1 << log };
            let layout = LayerLayout {
                log,
                words,
                ..solve(1, 0.5, 5)
            };
            let mut indexes = LayerIndexes::new((a, b), &layout);
            for j in 0..100u64 {
                assert_eq!(indexes.next_index(&modulo), a.wrapping_add(j.wrapping_mul(b)) % bits);
            }
        }
    }
}
