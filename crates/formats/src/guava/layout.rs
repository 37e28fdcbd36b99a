//! Guava's part of a [`JavaBloom`](crate::JavaBloom): the layout for keys and a rate, the hash and
//! the indexes of its bits, and the header of the stream.

use crate::error::ReadError;
use crate::flat::{Modulo, NextIndex};
use crate::java::formulas::{Shape, check_bits, functions_by_bits, optimal_bits, round};
use crate::java::header::{Header, JAVA_OBJECT, MAX_HEADER, TakeBytes, java_object, words};
use crate::java::indexes::IntIndexes;
use crate::java::{FormatImpl, JavaBuilder, KeyImpl, Layout};
use crate::logarithm::{Twofold, ln};
use alloc::format;
use core::f64::consts::LN_2;
use core::fmt;
use lanebloom::{BuildError, Funnel, Murmur3};

/// Bytes before the longs.
const HEADER: usize = 6;

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

/// The name of Guava's constant.
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
/// boundary. Only filters with the same number can be [united](super::GuavaBloom::union_from):
/// choose the formula of the Guava at the other end. Guava 14 rounds `bits / keys` down first, as
/// others of before 2015 may, and has 6 at a rate of 1%, not 7: to unite with its filters, begin
/// with an empty one that it wrote.
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
    /// `max(1, round(bits / keys * ln 2))`: Guava up to 33.3, from 2015 to 2024.
    ByBits,
    /// `max(1, round(-ln rate / ln 2))`: Guava since the end of 2024 (33.4).
    #[default]
    ByRate,
}

/// The system of a [`GuavaBloom`](super::GuavaBloom).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guava {
    pub(super) strategy: Strategy,
}

impl fmt::Display for Guava {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.strategy.fmt(f)
    }
}

impl FormatImpl for Guava {
    type Hash = Hash;
    type Wide = WideIndexes;
    type Sizing = HashFunctions;

    const FILTER: &str = "GuavaBloom";
    const HASHES_IN_VECTORS: bool = false;
    const REFUSES_ITSELF: bool = true;

    fn solve(builder: &JavaBuilder<Self>) -> Result<Layout<Self>, BuildError> {
        let (bits, hash_functions) = size(builder.keys as u64, builder.rate, builder.sizing)?;
        let words = bits.div_ceil(64) as usize;
        Ok(Layout::new(builder.format, words, hash_functions.into()))
    }

    #[inline(always)]
    fn is_wide(self) -> bool {
        self.strategy == Strategy::Mitz64
    }

    /// Indexes of both halves of the hash's first 64 bits.
    #[inline(always)]
    fn narrow(Hash(h1, _): Hash) -> IntIndexes {
        IntIndexes::new((h1 as i32, (h1 >> 32) as i32))
    }

    /// A byte for the strategy's place in Guava's `BloomFilterStrategies`, and a byte for the
    /// number of hash functions.
    fn header(self, shape: Shape) -> Header {
        let ordinal = match self.strategy {
            Strategy::Mitz32 => 0,
            Strategy::Mitz64 => 1,
        };
        let mut header = [0; MAX_HEADER];
        // solve and read_header limit it.
        header[..2].copy_from_slice(&[ordinal, shape.hash_functions as u8]);
        header[2..HEADER].copy_from_slice(&(shape.words as u32).to_be_bytes());
        (header, HEADER)
    }

    fn read_header(take: TakeBytes<'_>) -> Result<Layout<Self>, ReadError> {
        let mut header = [0; HEADER];
        take(&mut header)?;
        let [ordinal, hash_functions, length @ ..] = header;
        let strategy = match ordinal {
            0 => Strategy::Mitz32,
            1 => Strategy::Mitz64,
            _ if JAVA_OBJECT.starts_with(&[ordinal, hash_functions]) => return Err(java_object()),
            _ => {
                return Err(ReadError::invalid(format!(
                    "strategy {} is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)",
                    ordinal as i8
                )));
            }
        };
        if hash_functions == 0 {
            return Err(ReadError::invalid("0 hash functions is not in 1 to 255"));
        }
        let words = words(i32::from_be_bytes(length))?;
        Ok(Layout::new(Self { strategy }, words, hash_functions.into()))
    }
}

impl<K: Funnel + ?Sized> KeyImpl<Guava> for K {
    #[inline]
    fn hash_for(&self, _: Guava) -> Hash {
        let (h1, h2) = Murmur3::with_seed(0).hash128(self);
        Hash(h1, h2)
    }
}

impl KeyImpl<Guava> for Hash {
    #[inline(always)]
    fn hash_for(&self, _: Guava) -> Hash {
        *self
    }

    #[inline(always)]
    fn hashes(keys: &[Self]) -> Option<&[Hash]> {
        Some(keys)
    }
}

/// The number of bits, before it is rounded up to whole longs, and the number of hash functions, by
/// Guava's formulas.
pub(crate) fn size(keys: u64, rate: f64, hash_functions: HashFunctions) -> Result<(u64, u8), BuildError> {
    BuildError::check_rate(rate)?;
    let keys = keys.max(1);
    let bits = optimal_bits(keys, rate);
    if bits == 0 {
        return Err(BuildError::new(format!(
            "Guava's formula gives a filter for {keys} keys at a rate of {rate} no bit at all"
        )));
    }
    check_bits(bits, "Guava")?;
    let number = match hash_functions {
        HashFunctions::ByBits => functions_by_bits(bits, keys),
        HashFunctions::ByRate => round(-ln(Twofold::new(rate)) / LN_2).max(1),
    };
    let hash_functions = u8::try_from(number).map_err(|_| {
        BuildError::new(format!(
            "a rate of {rate:e} takes {number} hash functions, more than Guava's limit of {MAX_HASH_FUNCTIONS}"
        ))
    })?;
    Ok((bits, hash_functions))
}

/// Guava's hash of a key, and a key itself: both halves of Murmur3 x64_128 with seed 0. All indexes
/// of the key's bits follow from it.
///
/// ```
/// use lanebloom::Murmur3;
/// use lanebloom_formats::{GuavaBloom, guava};
///
/// let (h1, h2) = Murmur3::with_seed(0).hash128("a");
/// assert!(GuavaBloom::from_keys(["a"], 0.01)?.contains(&guava::Hash(h1, h2)));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub u64, pub u64);

/// The indexes of one key's bits under `MURMUR128_MITZ_64`, one after another.
#[derive(Clone, Copy, Default)]
pub struct WideIndexes {
    next: u64,
    step: u64,
}

impl From<Hash> for WideIndexes {
    #[inline(always)]
    fn from(Hash(next, step): Hash) -> Self {
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
