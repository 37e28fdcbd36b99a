//! Guava's layouts: the one for keys and a rate, and the indexes of a hash's bits. `guava.rs` calls
//! it.

use crate::flat::{Modulo, NextIndex};
use crate::java::formulas::{MAX_WORDS, Shape, functions_by_bits, optimal_bits, round};
use crate::java::indexes::IntIndexes;
use crate::logarithm::{Twofold, ln};
use alloc::format;
use core::f64::consts::LN_2;
use core::fmt;
use lanebloom::BuildError;
use lanebloom::internal::{build_error, wrong_rate};

/// The most bits of a key: Guava's stream has one byte for their number.
const MAX_HASH_FUNCTIONS: u32 = 255;

/// How a hash becomes the indexes of bits: the constants of Guava's `BloomFilterStrategies`, which
/// its streams name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, ordinal 0: Guava's default before version 15. It uses 64 bits of the
    /// hash, by 32-bit arithmetic.
    Mitz32,
    /// `MURMUR128_MITZ_64`, ordinal 1: Guava's default.
    #[default]
    Mitz64,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mitz32 => "MURMUR128_MITZ_32",
            Self::Mitz64 => "MURMUR128_MITZ_64",
        })
    }
}

/// The formula for the number of hash functions, `k`, the bits of a key. The stream holds the
/// number, so the formula matters only when a filter is made.
///
/// Both formulas give the same number except for tiny filters, and for rates near a rounding
/// boundary. Only filters with the same number are [compatible](super::GuavaBloom::is_compatible):
/// choose the formula of the Guava at the other end.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::guava::{GuavaBloom, HashFunctions};
///
/// let tiny = GuavaBloom::builder().expected_keys(1).false_positive_rate(0.01);
/// let older = tiny.clone().hash_functions(HashFunctions::ByBits);
/// assert_eq!(tiny.build()?.hash_functions(), 7);
/// assert_eq!(older.build()?.hash_functions(), 6);
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashFunctions {
    /// `max(1, round(bits / keys * ln 2))`: Guava up to 33.3, from 2011 to 2024.
    ByBits,
    /// `max(1, round(-ln rate / ln 2))`: Guava since the end of 2024 (33.4).
    #[default]
    ByRate,
}

/// The parameters that determine a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuavaLayout {
    pub(crate) strategy: Strategy,
    /// At least 1.
    pub(crate) hash_functions: u8,
    /// In 1..=[`MAX_WORDS`].
    pub(crate) words: usize,
}

impl fmt::Display for GuavaLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 64 * self.words as u64;
        write!(
            f,
            "{}, {bits} bits, {} hash functions",
            self.strategy, self.hash_functions
        )
    }
}

impl GuavaLayout {
    /// The layout that Guava's `create` chooses.
    pub(crate) fn solve(
        keys: u64,
        rate: f64,
        strategy: Strategy,
        hash_functions: HashFunctions,
    ) -> Result<Self, BuildError> {
        let (bits, hash_functions) = size(keys, rate, hash_functions)?;
        Ok(Self {
            strategy,
            hash_functions,
            words: bits.div_ceil(64) as usize,
        })
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            words: self.words,
            hash_functions: self.hash_functions.into(),
        }
    }
}

/// The number of bits, before it is rounded up to whole longs, and the number of hash functions, by
/// Guava's formulas.
pub(crate) fn size(keys: u64, rate: f64, hash_functions: HashFunctions) -> Result<(u64, u8), BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(wrong_rate(rate));
    }
    let keys = keys.max(1);
    let bits = optimal_bits(keys, rate);
    if bits == 0 {
        return Err(build_error(format!(
            "Guava's formula gives a filter for {keys} keys at a rate of {rate} no bit at all"
        )));
    }
    if bits > 64 * MAX_WORDS {
        return Err(build_error(format!(
            "a filter of {bits} bits is beyond Guava's limit of {} bits",
            64 * MAX_WORDS
        )));
    }
    let number = match hash_functions {
        HashFunctions::ByBits => functions_by_bits(bits, keys),
        HashFunctions::ByRate => round(-ln(Twofold::new(rate)) / LN_2).max(1),
    };
    let hash_functions = u8::try_from(number).map_err(|_| {
        build_error(format!(
            "a rate of {rate:e} takes {number} hash functions, more than Guava's limit of {MAX_HASH_FUNCTIONS}"
        ))
    })?;
    Ok((bits, hash_functions))
}

/// Guava's hash of a key: both halves of Murmur3 x64_128 with seed 0. All indexes of the key's bits
/// follow from it.
///
/// ```
/// use lanebloom::Murmur3;
/// use lanebloom_formats::{GuavaBloom, guava};
///
/// let hash: guava::Hash = Murmur3::with_seed(0).hash128("a");
/// assert!(GuavaBloom::from_keys(["a"], 0.01)?.contains_hash(hash));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
pub type Hash = (u64, u64);

/// The indexes of one key's bits under `MURMUR128_MITZ_64`, one after another.
#[derive(Clone, Copy, Default)]
pub(crate) struct WideIndexes {
    next: u64,
    step: u64,
}

impl WideIndexes {
    /// The indexes for a hash.
    #[inline(always)]
    pub(crate) fn new((next, step): Hash) -> Self {
        Self { next, step }
    }
}

impl NextIndex for WideIndexes {
    #[inline(always)]
    fn next_index(&mut self, modulo: &Modulo) -> u64 {
        let number = self.next & u64::MAX >> 1;
        self.next = self.next.wrapping_add(self.step);
        modulo.remainder(number)
    }
}

/// The indexes of one key's bits under `MURMUR128_MITZ_32`: of both halves of the hash's first 64
/// bits.
#[inline(always)]
pub(crate) fn narrow_indexes((h1, _): Hash) -> IntIndexes {
    IntIndexes::new((h1 as i32, (h1 >> 32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Distinct numbers without a pattern (SplitMix64's output function).
    fn number(i: u64) -> u64 {
        let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Guava's own arithmetic, step by step, beside ours.
    #[test]
    fn indexes_are_those_of_guavas_strategies() {
        for i in 0..300 {
            let (h1, h2) = (number(2 * i), number(2 * i + 1));
            let words = (number(i) >> 40) as usize + 1;
            let (modulo, bits) = (Modulo::new(words), 64 * words as u64);
            let (mut wide, mut narrow) = (WideIndexes::new((h1, h2)), narrow_indexes((h1, h2)));
            let mut combined = h1;
            for j in 0..255u64 {
                let expected = (combined & 0x7fff_ffff_ffff_ffff) % bits;
                assert_eq!(wide.next_index(&modulo), expected);
                combined = combined.wrapping_add(h2);

                let (hash1, hash2) = (h1 as i32, (h1 >> 32) as i32);
                let int = hash1.wrapping_add((j as i32 + 1).wrapping_mul(hash2));
                let expected = (if int < 0 { !int } else { int }) as u64 % bits;
                assert_eq!(narrow.next_index(&modulo), expected);
            }
        }
    }

    fn solve(keys: u64, rate: f64, hash_functions: HashFunctions) -> Result<(u8, usize), BuildError> {
        let layout = GuavaLayout::solve(keys, rate, Strategy::Mitz64, hash_functions)?;
        Ok((layout.hash_functions, layout.words))
    }

    /// From Guava's tests: its limits, and values that are just within them.
    #[test]
    fn limits_are_guavas() {
        assert_eq!(optimal_bits(2_147_483_647, 4.9e-324), 3_327_428_144_502);
        for formula in [HashFunctions::ByBits, HashFunctions::ByRate] {
            let refused = |keys, rate| solve(keys, rate, formula).unwrap_err().to_string();
            assert!(refused(2_147_483_647, 4.9e-324).starts_with("a filter of 3327428144502 bits is beyond Guava's"));
            assert!(refused(1000, 1e-77).starts_with("a rate of 1e-77 takes 256 hash functions, more than Guava's"));
            assert_eq!(solve(1000, 1e-76, formula).unwrap().0, 252);
            assert!(refused(1, 0.99).ends_with("no bit at all"));
            // A billion keys, and more keys than bits.
            assert_eq!(solve(i32::MAX as u64 / 2, 0.28, formula), Ok((2, 44_451_423)));
            assert_eq!(solve(45 * i32::MAX as u64, 0.99, formula), Ok((1, 31_585_813)));
            for rate in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
                let message = format!("false-positive rate {rate} is not between 0 and 1, both excluded");
                assert_eq!(refused(1, rate), message);
            }
        }
        assert!(solve(u64::MAX, 0.5, HashFunctions::ByRate).is_err());
    }
}
