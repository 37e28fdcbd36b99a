//! The formulas of Guava that Spark took over: the number of bits for keys and a rate, and keys and
//! rate from a count of bits. `guava/layout.rs` and `spark/layout.rs` call it.

use crate::flat::Flat;
use crate::logarithm::{Twofold, ln, pow};
use alloc::format;
use core::f64::consts::LN_2;
use lanebloom::{BuildError, Statistics};

/// The most longs of a filter: the length of a Java array is an `int`.
pub(crate) const MAX_WORDS: u64 = i32::MAX as u64;

/// The numbers that decide how full a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// In 1..=[`MAX_WORDS`].
    pub(crate) words: usize,
    /// Bits of a key, at least 1.
    pub(crate) hash_functions: u32,
}

impl Shape {
    pub(crate) fn bits(&self) -> u64 {
        64 * self.words as u64
    }

    /// `expectedFpp` of both: the chance that other keys set all bits of a key, if this share of
    /// the bits is set.
    fn rate_of(&self, fill: f64) -> f64 {
        pow(fill, self.hash_functions.into())
    }

    /// [`rate_of`](Self::rate_of) the share of the bits that `keys` keys set in the mean.
    pub(crate) fn rate_at(&self, keys: usize) -> f64 {
        let draws = (keys as u64).saturating_mul(self.hash_functions.into());
        self.rate_of(1.0 - pow(1.0 - 1.0 / self.bits() as f64, draws))
    }

    /// Fill, number of keys and rate of a filter of this shape now, from one pass over it.
    pub(crate) fn statistics(&self, flat: &Flat) -> Statistics {
        let ones = flat.ones();
        let fill = self.fill(ones);
        Statistics::new(fill, self.keys_for(ones), self.rate_of(fill))
    }

    /// The rate above which a filter for `keys` expected keys is overfull: beyond what chance
    /// explains and what is unknown of them. Both round the number of hash functions `k`. So from
    /// bits and `k`, a reader knows the expected keys only up to a share of `1 / (2k - 1)`.
    pub(super) fn overfull_rate(&self, keys: usize) -> f64 {
        let rounded = keys / (2 * self.hash_functions as usize - 1);
        let limit = Statistics::overfull_at(keys).saturating_add(rounded);
        self.rate_at(limit)
    }

    /// The number of keys that set half of the bits: the best for this number of hash functions.
    pub(crate) fn keys_for_half(&self) -> usize {
        self.keys_for(self.bits() / 2).max(1)
    }

    /// Guava's `approximateElementCount`: the number of keys that leave `ones` bits set in the
    /// mean.
    pub(super) fn keys_for(&self, ones: u64) -> usize {
        let bits = self.bits();
        if ones >= bits {
            return usize::MAX;
        }
        let unset = ln(Twofold::sum(1.0, -self.fill(ones)));
        let keys = round(-unset * bits as f64 / f64::from(self.hash_functions));
        usize::try_from(keys).unwrap_or(usize::MAX)
    }

    /// The share of `ones` of all bits.
    fn fill(&self, ones: u64) -> f64 {
        ones as f64 / self.bits() as f64
    }
}

/// Spark's `optimalNumOfHashFunctions`, and Guava's up to 2024.
#[must_use]
pub fn functions_by_bits(bits: u64, keys: u64) -> u64 {
    round(bits as f64 / keys as f64 * LN_2).max(1)
}

/// `optimalNumOfBits` of both, in the order of its operations: `(long) (-n * log(p) / (log(2) *
/// log(2)))`.
pub(crate) fn optimal_bits(keys: u64, rate: f64) -> u64 {
    (-(keys as f64) * ln(Twofold::new(rate)) / (LN_2 * LN_2)) as u64
}

/// Fails if a filter of this number of bits is beyond the limit of its system.
pub(crate) fn check_bits(bits: u64, system: &str) -> Result<(), BuildError> {
    if bits <= 64 * MAX_WORDS {
        return Ok(());
    }
    Err(BuildError::new(format!(
        "a filter of {bits} bits is beyond {system}'s limit of {} bits",
        64 * MAX_WORDS
    )))
}

/// Java's `Math.round` of a number that is not negative: to the nearest, halves up.
pub(crate) fn round(x: f64) -> u64 {
    let whole = x as u64;
    if x - whole as f64 >= 0.5 { whole + 1 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_is_javas() {
        let halves = [
            0.0,
            0.5,
            0.499_999_999_999_999_94,
            1.5,
            2.5,
            4_503_599_627_370_497.5,
            1e19,
        ];
        assert_eq!(
            halves.map(round),
            [0, 1, 0, 2, 3, 4_503_599_627_370_498, 10_000_000_000_000_000_000]
        );
    }
}
