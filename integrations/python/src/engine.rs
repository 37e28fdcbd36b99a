//! The engines: each filter's work on keys and their hashes.

use crate::bytes::Encoding;
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, BloomView, BuildError, Hashed, InsertError, KeyHasher, Statistics};
use lanebloom_formats::{GuavaBloom, SparkBloom, SplitBlockBloom, guava, spark};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::{Deref, RangeInclusive};
use std::sync::{Mutex, PoisonError};

/// The error of a filter of Spark's for other keys.
pub(crate) const NOT_SPARKS: &str = "Spark's filters hold integers, strings and bytes only. Look up other columns by a \
                                    number, such as xxhash64(column) of Spark SQL";

/// The error of a view of a file for new keys.
pub(crate) const VIEW: &str = "a view of a file takes no keys: copy() makes a filter that does";

/// An exception for a filter that could not be made.
pub(crate) fn build_error(error: BuildError) -> PyErr {
    if error.is_out_of_memory() {
        PyMemoryError::new_err(error.to_string())
    } else {
        PyValueError::new_err(error.to_string())
    }
}

/// Integers of 4 bytes: an `int` of Java and Parquet, or one without a sign.
const INTS: RangeInclusive<i64> = i32::MIN as i64..=u32::MAX as i64;

#[cold]
fn cut_off(word: u64) -> PyErr {
    PyValueError::new_err(format!(
        "{}: a filter with int_bytes=4 takes integers from {} to {}",
        signed(word),
        INTS.start(),
        INTS.end()
    ))
}

/// How keys become hashes.
pub(crate) trait Keys: Send + Sync {
    /// The hash of a key, as the filter sees it.
    type Hash: Copy + Default + Send + Sync;
    /// The bytes of its numbers.
    const ENCODING: Encoding;

    /// The error for other keys, if the filter takes integers only.
    fn integers_only(&self) -> Option<&'static str>;
    /// Whether its integers have 4 bytes.
    #[inline(always)]
    fn is_narrow(&self) -> bool {
        false
    }
    /// Fails for an integer that it would cut off.
    #[inline(always)]
    fn check(&self, word: u64) -> PyResult<()> {
        if self.is_narrow() && !INTS.contains(&word.cast_signed()) {
            return Err(cut_off(word));
        }
        Ok(())
    }

    fn hash_word(&self, word: u64) -> Self::Hash;
    fn hash_bytes(&self, bytes: &[u8]) -> Self::Hash;
    fn hash_words(&self, words: &[u64], out: &mut [Self::Hash]);
    fn hash_slices(&self, keys: &[&[u8]], out: &mut [Self::Hash]);
}

/// A filter, as a set of hashes that many threads share.
pub(crate) trait Engine: Keys {
    fn contains_one(&self, hash: Self::Hash) -> bool;
    fn contains_many(&self, hashes: &[Self::Hash], out: &mut [bool]);
    /// Inserts, and returns whether the key was new.
    fn insert_one(&self, hash: Self::Hash) -> PyResult<bool> {
        self.insert_many(&[hash]).map(|new| new == 1)
    }
    /// Inserts, and returns how many of the keys were new.
    fn insert_many(&self, hashes: &[Self::Hash]) -> PyResult<usize>;
    /// Inserts the keys that are not there, and returns which.
    fn insert_flagged(&self, hashes: &[Self::Hash], new: &mut [bool]) -> PyResult<usize>;

    /// Whether there is a way to insert by a pool of threads in which they do not wait for each
    /// other's lines.
    fn is_by_pool(&self) -> bool {
        false
    }
    /// [`insert_many`](Self::insert_many) by all threads of the pool that runs this.
    fn insert_many_by_pool(&self, _hashes: &[Self::Hash]) -> usize {
        unreachable!("see is_by_pool")
    }

    /// [`insert_many`](Self::insert_many) for integers, if they need not be hashed first.
    fn insert_words(&self, _words: &[u64]) -> Option<PyResult<usize>> {
        None
    }
}

/// A filter with a hasher of lanebloom, or a bitmap, which has none. Hashes that are keys are
/// integers, and so are positions.
pub(crate) trait WithHasher: Send + Sync {
    fn any_hasher(&self) -> Option<&AnyHasher>;
}

impl WithHasher for AnyFilter {
    #[inline(always)]
    fn any_hasher(&self) -> Option<&AnyHasher> {
        Some(self.hasher())
    }
}

impl WithHasher for BloomView<'static, AnyHasher> {
    #[inline(always)]
    fn any_hasher(&self) -> Option<&AnyHasher> {
        Some(self.hasher())
    }
}

impl<T: WithHasher> Keys for T {
    type Hash = u64;
    const ENCODING: Encoding = Encoding::Python;

    #[inline(always)]
    fn integers_only(&self) -> Option<&'static str> {
        match self.any_hasher() {
            Some(AnyHasher::Builtin(_)) => None,
            Some(_) => Some("a filter with hasher=\"prehashed\" takes hashes only: integers of 64 bits"),
            None => Some("a bitmap holds integers only"),
        }
    }
    #[inline(always)]
    fn hash_word(&self, word: u64) -> u64 {
        match self.any_hasher() {
            Some(AnyHasher::Builtin(hasher)) => hasher.hash_key(&word),
            _ => word,
        }
    }
    #[inline(always)]
    fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        match self.any_hasher() {
            Some(AnyHasher::Builtin(hasher)) => hasher.hash_key(bytes),
            _ => unreachable!("integers only"),
        }
    }
    fn hash_words(&self, words: &[u64], out: &mut [u64]) {
        match self.any_hasher() {
            Some(AnyHasher::Builtin(hasher)) => hasher.hash_batch(words, out),
            _ => out.copy_from_slice(words),
        }
    }
    fn hash_slices(&self, keys: &[&[u8]], out: &mut [u64]) {
        match self.any_hasher() {
            Some(AnyHasher::Builtin(hasher)) => hasher.hash_batch(keys, out),
            _ => unreachable!("integers only"),
        }
    }
}

/// Why a filter refused keys.
#[cold]
fn refused(filter: &AnyFilter, error: InsertError) -> PyErr {
    match filter {
        AnyFilter::Static(_) => PyTypeError::new_err("a StaticFilter takes no keys: make a new one of all keys"),
        _ if error.is_out_of_memory() => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// An exception for the first of these positions that is not below a bitmap's bound.
#[cold]
fn beyond(bitmap: &ConcurrentBitmap, positions: &[u64]) -> PyErr {
    let bound = bitmap.bound();
    let position = positions.iter().copied().find(|&position| position >= bound);
    PyValueError::new_err(format!(
        "{} is not in this bitmap, which holds integers from 0 to {}",
        signed(position.unwrap_or(bound)),
        bound.saturating_sub(1)
    ))
}

/// An integer that came as its two's complement.
fn signed(value: u64) -> String {
    if value >> 63 == 1 {
        value.cast_signed().to_string()
    } else {
        value.to_string()
    }
}

/// Lookups of hashes never fail.
const NO_HASHER: &str = "a hash needs no hasher";

impl Engine for AnyFilter {
    #[inline(always)]
    fn contains_one(&self, hash: u64) -> bool {
        self.contains(&Hashed(hash)).expect(NO_HASHER)
    }
    fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
        self.contains_batch(Hashed::slice(hashes), out).expect(NO_HASHER);
    }
    #[inline(always)]
    fn insert_one(&self, hash: u64) -> PyResult<bool> {
        self.insert(&Hashed(hash)).map_err(|error| refused(self, error))
    }
    fn insert_many(&self, hashes: &[u64]) -> PyResult<usize> {
        let inserted = self.insert_batch(Hashed::slice(hashes));
        inserted.map_err(|error| refused(self, error))
    }
    fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> PyResult<usize> {
        // It would take a key that it has once more.
        if let Self::Cuckoo(_) = self {
            for (&hash, new) in hashes.iter().zip(&mut *new) {
                *new = !self.contains_one(hash) && self.insert_one(hash)?;
            }
            return Ok(new.iter().filter(|new| **new).count());
        }
        let inserted = self.insert_batch_into(Hashed::slice(hashes), new);
        inserted.map_err(|error| refused(self, error))
    }
    fn insert_words(&self, words: &[u64]) -> Option<PyResult<usize>> {
        Some(match self.any_hasher() {
            Some(AnyHasher::Builtin(_)) => self.insert_batch(words).map_err(|error| refused(self, error)),
            _ => self.insert_many(words),
        })
    }
    fn is_by_pool(&self) -> bool {
        matches!(self, Self::Bloom(_))
    }
    fn insert_many_by_pool(&self, hashes: &[u64]) -> usize {
        match self {
            Self::Bloom(filter) => filter.parallel().insert_batch(Hashed::slice(hashes)),
            _ => unreachable!("see is_by_pool"),
        }
    }
}

impl Engine for BloomView<'static, AnyHasher> {
    fn contains_one(&self, hash: u64) -> bool {
        self.contains(&Hashed(hash))
    }
    fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
        self.contains_batch(Hashed::slice(hashes), out);
    }
    fn insert_many(&self, _: &[u64]) -> PyResult<usize> {
        Err(PyTypeError::new_err(VIEW))
    }
    fn insert_flagged(&self, _: &[u64], _: &mut [bool]) -> PyResult<usize> {
        Err(PyTypeError::new_err(VIEW))
    }
}

/// An exact set of integers.
pub(crate) struct Positions(pub(crate) ConcurrentBitmap);

impl Deref for Positions {
    type Target = ConcurrentBitmap;

    fn deref(&self) -> &ConcurrentBitmap {
        &self.0
    }
}

impl Positions {
    /// The bound.
    pub(crate) fn expected_keys(&self) -> usize {
        usize::try_from(self.bound()).unwrap_or(usize::MAX)
    }

    pub(crate) fn false_positive_rate(&self) -> f64 {
        0.0
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let len = self.len();
        Statistics::new(len as f64 / self.bound().max(1) as f64, len as usize, 0.0)
    }
}

impl WithHasher for Positions {
    #[inline(always)]
    fn any_hasher(&self) -> Option<&AnyHasher> {
        None
    }
}

impl Engine for Positions {
    #[inline(always)]
    fn contains_one(&self, position: u64) -> bool {
        self.contains(position)
    }
    fn contains_many(&self, positions: &[u64], out: &mut [bool]) {
        self.contains_batch(positions, out);
    }
    fn insert_many(&self, positions: &[u64]) -> PyResult<usize> {
        self.insert_batch(positions).map_err(|_| beyond(self, positions))
    }
    fn insert_flagged(&self, positions: &[u64], new: &mut [bool]) -> PyResult<usize> {
        let inserted = self.insert_batch_into(positions, new);
        inserted.map_err(|_| beyond(self, positions))
    }
    fn insert_words(&self, positions: &[u64]) -> Option<PyResult<usize>> {
        Some(self.insert_many(positions))
    }
}

/// The hashes of keys: "added" to it, they are gathered. It takes each of them for new.
pub(crate) struct Hashes {
    hasher: AnyHasher,
    all: Mutex<Vec<u64>>,
}

impl Hashes {
    pub(crate) fn new(hasher: AnyHasher) -> Self {
        Self {
            hasher,
            all: Mutex::default(),
        }
    }

    /// All hashes; of each thread in their order.
    pub(crate) fn into_all(self) -> Vec<u64> {
        self.all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WithHasher for Hashes {
    #[inline(always)]
    fn any_hasher(&self) -> Option<&AnyHasher> {
        Some(&self.hasher)
    }
}

impl Engine for Hashes {
    fn contains_one(&self, _: u64) -> bool {
        false
    }
    fn contains_many(&self, _: &[u64], out: &mut [bool]) {
        out.fill(false);
    }
    fn insert_many(&self, hashes: &[u64]) -> PyResult<usize> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |_| PyMemoryError::new_err(format!("allocating {} bytes for hashes failed", 8 * hashes.len()));
        all.try_reserve(hashes.len()).map_err(refused)?;
        all.extend_from_slice(hashes);
        Ok(hashes.len())
    }
    fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> PyResult<usize> {
        new.fill(true);
        self.insert_many(hashes)
    }
}

/// A filter of another system, whose integers have 8 bytes or 4.
#[derive(PartialEq)]
pub(crate) struct Foreign<F> {
    pub(crate) filter: F,
    /// 4 or 8; 8 for Spark, which makes a `long` of every integer.
    pub(crate) int_bytes: usize,
}

impl<F> Foreign<F> {
    /// Another filter with these integers.
    pub(crate) fn same_ints(&self, filter: F) -> Self {
        Self { filter, ..*self }
    }
}

impl<F> Deref for Foreign<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.filter
    }
}

macro_rules! foreign {
    ($($filter:ident: $hash:ty, $encoding:ident, $hash_longs:expr, $keys:expr;)*) => {$(
        impl Keys for Foreign<$filter> {
            type Hash = $hash;
            const ENCODING: Encoding = Encoding::$encoding;

            fn integers_only(&self) -> Option<&'static str> {
                None
            }
            fn is_narrow(&self) -> bool {
                self.int_bytes == 4
            }
            fn hash_word(&self, word: u64) -> $hash {
                if self.is_narrow() { self.hash(&(word as i32)) } else { self.hash(&word.cast_signed()) }
            }
            fn hash_bytes(&self, bytes: &[u8]) -> $hash {
                self.hash(bytes)
            }
            fn hash_words(&self, words: &[u64], out: &mut [$hash]) {
                if self.is_narrow() {
                    by_tiles(words, out, |word| word as i32, |ints, out| self.hash_batch(ints, out));
                } else {
                    $hash_longs(self, words, out);
                }
            }
            fn hash_slices(&self, keys: &[&[u8]], out: &mut [$hash]) {
                self.hash_batch(keys, out);
            }
        }

        impl Engine for Foreign<$filter> {
            fn contains_one(&self, hash: $hash) -> bool {
                self.contains(&$keys(&[hash])[0])
            }
            fn contains_many(&self, hashes: &[$hash], out: &mut [bool]) {
                self.contains_batch($keys(hashes), out);
            }
            fn insert_one(&self, hash: $hash) -> PyResult<bool> {
                Ok(self.insert(&$keys(&[hash])[0]))
            }
            fn insert_many(&self, hashes: &[$hash]) -> PyResult<usize> {
                Ok(self.insert_batch($keys(hashes)))
            }
            fn insert_flagged(&self, hashes: &[$hash], new: &mut [bool]) -> PyResult<usize> {
                Ok(self.insert_batch_into($keys(hashes), new))
            }
        }
    )*};
}

foreign! {
    GuavaBloom: guava::Hash, Plain, |filter: &Self, words, out| filter.hash_batch(words, out), std::convert::identity;
    SplitBlockBloom: u64, Plain, |filter: &Self, words, out| filter.hash_batch(words, out), Hashed::slice;
    // Spark's keys have a sign.
    SparkBloom: spark::Hash, Spark,
        |filter: &Self, words, out| by_tiles(words, out, u64::cast_signed, |longs, out| filter.hash_batch(longs, out)),
        std::convert::identity;
}

/// Hashes what `key` makes of words, some at a time.
fn by_tiles<K: Copy + Default, H>(words: &[u64], out: &mut [H], key: impl Fn(u64) -> K, hash: impl Fn(&[K], &mut [H])) {
    const TILE: usize = 512;
    let mut keys = [K::default(); TILE];
    for (words, out) in words.chunks(TILE).zip(out.chunks_mut(TILE)) {
        keys.iter_mut().zip(words).for_each(|(to, &word)| *to = key(word));
        hash(&keys[..words.len()], out);
    }
}
