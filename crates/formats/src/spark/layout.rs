//! Spark's layouts: the one for keys and a rate, or for keys and bits; and the indexes of a hash's
//! bits. `spark.rs` calls it.

use super::hash::Hash;
use crate::flat::{Column, Modulo, NextIndex};
use crate::java::formulas::{MAX_WORDS, Shape, functions_by_bits};
use alloc::format;
use core::fmt;
use lanebloom::BuildError;
use lanebloom::internal::{TILE, build_error};

/// The most bits of a key. Spark has no limit: it writes an `int`, so a stream could ask for four
/// seconds of work per key. Rates down to 4.9e-324, the least that Java has, take 1074.
pub(crate) const MAX_HASH_FUNCTIONS: u32 = 1 << 16;

/// The version of a filter, which its stream names: how a hash becomes the indexes of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// Spark before 4.1. All indexes come from 31 bits, so beyond some hundred million bits the
    /// rate is higher than the requested one.
    V1,
    /// The default since Spark 4.1, with indexes from 63 bits, and a seed. Older versions of Spark
    /// cannot read it.
    #[default]
    V2,
}

/// The parameters that determine a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparkLayout {
    pub(crate) version: Version,
    /// 0 for V1.
    pub(crate) seed: i32,
    /// In 1..=[`MAX_HASH_FUNCTIONS`].
    pub(crate) hash_functions: u32,
    /// In 1..=[`MAX_WORDS`].
    pub(crate) words: usize,
}

impl fmt::Display for SparkLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.shape().bits();
        write!(
            f,
            "{:?}, seed {}, {bits} bits, {} hash functions",
            self.version, self.seed, self.hash_functions
        )
    }
}

impl SparkLayout {
    /// The layout that Spark's `create` chooses.
    pub(crate) fn solve(version: Version, seed: i32, keys: u64, bits: u64) -> Result<Self, BuildError> {
        if keys == 0 {
            return Err(build_error("the number of expected keys must be at least 1".into()));
        }
        if bits == 0 {
            return Err(build_error(format!(
                "a Spark filter for {keys} keys must have at least 1 bit"
            )));
        }
        if bits > 64 * MAX_WORDS {
            return Err(build_error(format!(
                "a filter of {bits} bits is beyond Spark's limit of {} bits",
                64 * MAX_WORDS
            )));
        }
        if version == Version::V1 && seed != 0 {
            return Err(build_error(format!("a V1 filter has no seed, and cannot have {seed}")));
        }
        let hash_functions = functions_by_bits(bits, keys);
        if hash_functions > MAX_HASH_FUNCTIONS.into() {
            return Err(build_error(format!(
                "{bits} bits for {keys} keys take {hash_functions} hash functions, more than the limit of \
                 {MAX_HASH_FUNCTIONS}"
            )));
        }
        Ok(Self {
            version,
            seed,
            hash_functions: hash_functions as u32,
            words: bits.div_ceil(64) as usize,
        })
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            words: self.words,
            hash_functions: self.hash_functions,
        }
    }
}

/// The indexes of one key's bits in a V2 filter, one after another.
#[derive(Clone, Copy, Default)]
pub(crate) struct LongIndexes {
    next: i64,
    step: i64,
}

impl LongIndexes {
    /// The indexes for a hash.
    #[inline(always)]
    pub(crate) fn new((h1, h2): Hash) -> Self {
        let step = h2.into();
        Self {
            next: i64::from(h1) * i64::from(i32::MAX) + step,
            step,
        }
    }
}

impl NextIndex for LongIndexes {
    #[inline(always)]
    fn next_index(&mut self, modulo: &Modulo) -> u64 {
        // Spark flips all bits of a negative long.
        let number = (self.next ^ self.next >> 63) as u64;
        self.next = self.next.wrapping_add(self.step);
        modulo.remainder(number)
    }

    /// As long as the sum keeps its sign, each index is the one before and a step, modulo the
    /// number of bits. The sum of a key changes its sign only if the first hash is below about the
    /// number of bits of a key.
    #[inline(always)]
    fn columns(tile: &[Self; TILE], modulo: &Modulo, columns: &mut [Column]) -> bool {
        let steps = columns.len() as i64 - 1;
        let changes = tile
            .iter()
            .fold(0, |changes, key| changes | key.next ^ (key.next + steps * key.step));
        if changes < 0 {
            return false;
        }
        let bits = modulo.bits() as u32;
        // A multiple of the bits that no step is below.
        let above = (1u64 << 31).div_ceil(modulo.bits()) * modulo.bits();
        let (mut index, mut step) = ([0; TILE], [0; TILE]);
        for i in 0..TILE {
            let LongIndexes { next, step: by } = tile[i];
            let sign = next >> 63;
            index[i] = modulo.remainder((next ^ sign) as u64) as u32;
            step[i] = modulo.remainder(above.wrapping_add_signed((by ^ sign) - sign)) as u32;
        }
        for column in columns {
            *column = index;
            for i in 0..TILE {
                // Below 2^32; the lesser one is what is left.
                let next = index[i] + step[i];
                index[i] = next.min(next.wrapping_sub(bits));
            }
        }
        true
    }
}
