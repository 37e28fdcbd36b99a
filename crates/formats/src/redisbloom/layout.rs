//! RedisBloom's formulas: the layout of a layer for a capacity and a rate, and the indexes of a
//! hash's bits. `redisbloom.rs` calls it.
//!
//! Source: RedisBloom's documented options and formulas (`deps/bloom/bloom.c`), checked beside the
//! module by `crates/redis/tests/servers/redisbloom_module.rs`.

use super::error::NO_CAPACITY;
use crate::flat::{LINE_BYTES, Modulo, NextIndex};
use crate::logarithm::{Twofold, ln, pow};
use crate::murmur2::{murmur2, murmur64a};
use lanebloom::{BuildError, Statistics};

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

/// Bytes of a layer beside its content: the layer itself, in a Vec with up to twice the capacity,
/// and the allocator's own. (Without them, a chain of layers of 8 bytes would take ten times the
/// memory that it counts.)
pub(crate) const BESIDE_CONTENT: u64 = 256;

/// Bytes of memory that a layer with this content takes, in whole lines. For `RedisCuckoo` too.
pub(crate) fn layer_memory(bytes: u64) -> u64 {
    bytes.saturating_add(BESIDE_CONTENT).next_multiple_of(LINE_BYTES as u64)
}

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

    /// The rate above which the layer is overfull: that of its capacity, and of some keys more,
    /// which chance explains.
    pub(super) fn overfull_rate(&self) -> f64 {
        let keys = Statistics::overfull_at(usize::try_from(self.capacity).unwrap_or(usize::MAX));
        let functions = self.hash_functions.into();
        let clear = pow(
            1.0 - 1.0 / self.used_bits() as f64,
            (keys as u64).saturating_mul(functions),
        );
        pow(1.0 - clear, functions)
    }

    pub(crate) fn bytes(&self) -> u64 {
        8 * self.words as u64
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        layer_memory(self.bytes())
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
