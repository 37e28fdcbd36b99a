//! Spark's part of a [`JavaBloom`](crate::JavaBloom): the layout for keys and bits, the indexes of
//! a hash's bits, and the header of the stream.

use super::hash::{Hash, SparkKey};
use crate::error::ReadError;
use crate::flat::{Column, Modulo, NextIndex};
use crate::java::formulas::{Shape, check_bits, functions_by_bits, optimal_bits};
use crate::java::header::{Header, JAVA_OBJECT, MAX_HEADER, TakeBytes, java_object, words};
use crate::java::indexes::IntIndexes;
use crate::java::{FormatImpl, JavaBuilder, KeyImpl, Layout};
use alloc::format;
use core::fmt;
use lanebloom::BuildError;
use lanebloom::internal::Prefetching;

/// Bytes of an `int`.
const INT: usize = 4;

/// The most bits of a key. Spark has no limit: it writes an `int`, so a stream could ask for four
/// seconds of work per key. Rates down to 4.9e-324, the least that Java has, take 1074.
const MAX_HASH_FUNCTIONS: i32 = 1 << 16;

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

/// The system of a [`SparkBloom`](super::SparkBloom). By default V2 with the seed 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spark {
    pub(super) version: Version,
    /// 0 for V1.
    pub(super) seed: i32,
}

impl fmt::Display for Spark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, seed {}", self.version, self.seed)
    }
}

impl FormatImpl for Spark {
    type Hash = Hash;
    type Wide = LongIndexes;
    /// The number of bits, if it is given.
    type Sizing = Option<u64>;

    const FILTER: &str = "SparkBloom";
    const HASHES_IN_VECTORS: bool = true;
    const REFUSES_ITSELF: bool = false;

    fn sized_by_rate(_: Option<u64>) -> Option<u64> {
        None
    }

    fn solve(builder: &JavaBuilder<Self>) -> Result<Layout<Self>, BuildError> {
        let (keys, format) = (builder.keys as u64, builder.format);
        if keys == 0 {
            return Err(BuildError::new("the number of expected keys must be at least 1"));
        }
        let bits = match builder.sizing {
            Some(bits) => bits,
            None => BuildError::check_rate(builder.rate).map(|()| optimal_bits(keys, builder.rate))?,
        };
        check_bits(bits, "Spark")?;
        let hash_functions = functions_by_bits(bits, keys);
        let problem = if bits == 0 {
            format!("a Spark filter for {keys} keys must have at least 1 bit")
        } else if format.version == Version::V1 && format.seed != 0 {
            format!("a V1 filter has no seed, and cannot have {}", format.seed)
        } else if hash_functions > MAX_HASH_FUNCTIONS as u64 {
            format!(
                "{bits} bits for {keys} keys take {hash_functions} hash functions, more than the limit of \
                 {MAX_HASH_FUNCTIONS}"
            )
        } else {
            let words = bits.div_ceil(64) as usize;
            return Ok(Layout::new(format, words, hash_functions as u32));
        };
        Err(BuildError::new(problem))
    }

    #[inline(always)]
    fn is_wide(self) -> bool {
        self.version == Version::V2
    }

    #[inline(always)]
    fn narrow(Hash(h1, h2): Hash) -> IntIndexes {
        IntIndexes::new((h1, h2))
    }

    /// An `int` for the version, an `int` for the number of hash functions, and in V2 an `int` for
    /// the seed.
    fn header(self, shape: Shape) -> Header {
        let (functions, words) = (shape.hash_functions, shape.words as u32);
        let ints = match self.version {
            Version::V1 => [1, functions, words, 0],
            Version::V2 => [2, functions, self.seed as u32, words],
        };
        let mut header = [0; MAX_HEADER];
        for (place, int) in header.chunks_exact_mut(INT).zip(ints) {
            place.copy_from_slice(&int.to_be_bytes());
        }
        (header, INT * if self.is_wide() { 4 } else { 3 })
    }

    fn read_header(take: TakeBytes<'_>) -> Result<Layout<Self>, ReadError> {
        let [version] = ints(take)?;
        let (version, hash_functions, seed, length) = match version {
            1 => {
                let [hash_functions, length] = ints(take)?;
                (Version::V1, hash_functions, 0, length)
            }
            2 => {
                let [hash_functions, seed, length] = ints(take)?;
                (Version::V2, hash_functions, seed, length)
            }
            _ if version.to_be_bytes() == JAVA_OBJECT => return Err(java_object()),
            _ => return Err(ReadError::invalid(format!("version {version} is neither 1 nor 2"))),
        };
        if !(1..=MAX_HASH_FUNCTIONS).contains(&hash_functions) {
            let problem = format!("{hash_functions} hash functions is not in 1 to {MAX_HASH_FUNCTIONS}");
            return Err(ReadError::invalid(problem));
        }
        Ok(Layout::new(
            Self { version, seed },
            words(length)?,
            hash_functions as u32,
        ))
    }
}

/// The next numbers of a stream.
fn ints<const N: usize>(take: TakeBytes<'_>) -> Result<[i32; N], ReadError> {
    let mut ints = [[0; INT]; N];
    take(ints.as_flattened_mut())?;
    Ok(ints.map(i32::from_be_bytes))
}

impl<K: SparkKey + ?Sized> KeyImpl<Spark> for K {
    /// Both hashes.
    #[inline(always)]
    fn hash_for(&self, Spark { seed, .. }: Spark) -> Hash {
        let first = self.murmur3(seed);
        Hash(first, self.murmur3(first))
    }
}

impl KeyImpl<Spark> for Hash {
    #[inline(always)]
    fn hash_for(&self, _: Spark) -> Hash {
        *self
    }

    #[inline(always)]
    fn hashes(keys: &[Self]) -> Option<&[Hash]> {
        Some(keys)
    }
}

/// The indexes of one key's bits in a V2 filter, one after another.
#[derive(Clone, Copy, Default)]
pub struct LongIndexes {
    next: i64,
    step: i64,
}

impl From<Hash> for LongIndexes {
    #[inline(always)]
    fn from(Hash(h1, h2): Hash) -> Self {
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

    /// Each index is the one before and a step, modulo the number of bits, while the sum keeps its
    /// sign. The sum of a key changes its sign only if the first hash is below about the number of
    /// bits of a key.
    #[inline(always)]
    fn columns(tile: &[Self; Prefetching::TILE], modulo: &Modulo, columns: &mut [Column]) -> bool {
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
        let (mut index, mut step) = ([0; Prefetching::TILE], [0; Prefetching::TILE]);
        for i in 0..Prefetching::TILE {
            let LongIndexes { next, step: by } = tile[i];
            let sign = next >> 63;
            index[i] = modulo.remainder((next ^ sign) as u64) as u32;
            step[i] = modulo.remainder(above.wrapping_add_signed((by ^ sign) - sign)) as u32;
        }
        for column in columns {
            *column = index;
            for i in 0..Prefetching::TILE {
                // Below 2^32; the lesser one is what is left.
                let next = index[i] + step[i];
                index[i] = next.min(next.wrapping_sub(bits));
            }
        }
        true
    }
}
