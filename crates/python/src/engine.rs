//! What each filter does with keys and their hashes.

use crate::bytes::Encoding;
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, BloomView, BuildError, ConcurrentBitmap, InsertError, KeyHasher};
use lanebloom_formats::{GuavaBloom, SparkBloom, SplitBlockBloom, spark};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Why keys were not added.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No room, or no memory.
    Insert(InsertError),
    /// Not below the bound.
    Bound(u64, u64),
    /// No integer of 4 bytes.
    Wide(u64),
    /// A view of a file.
    ReadOnly,
    /// A filter that does not change.
    Static,
    /// Hashes that need this many more bytes than there are.
    Memory(usize),
    /// Values that other systems store in another way, and what to do.
    StoredOtherwise(&'static str),
}

/// What a filter of Spark's says of other keys.
pub(crate) const NOT_SPARKS: &str = "Spark's filters hold integers, strings and bytes only. Look up other columns by a \
                                    number, such as xxhash64(column) of Spark SQL";

/// An integer that came as its two's complement.
fn signed(value: u64) -> String {
    if value >> 63 == 1 {
        value.cast_signed().to_string()
    } else {
        value.to_string()
    }
}

impl From<InsertError> for Fault {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Insert(error) if error.is_out_of_memory() => PyMemoryError::new_err(error.to_string()),
            Fault::Insert(error) => PyValueError::new_err(error.to_string()),
            Fault::Bound(value, bound) => PyValueError::new_err(format!(
                "{} is not in this bitmap, which holds integers from 0 to {}",
                signed(value),
                bound.saturating_sub(1)
            )),
            Fault::Wide(value) => PyValueError::new_err(format!(
                "{}: a filter with int_bytes=4 takes integers from {} to {}",
                signed(value),
                i32::MIN,
                u32::MAX
            )),
            Fault::ReadOnly => PyTypeError::new_err("a view of a file takes no keys: copy() makes a filter that does"),
            Fault::Static => PyTypeError::new_err("a StaticFilter takes no keys: make a new one of all keys"),
            Fault::Memory(bytes) => PyMemoryError::new_err(format!("allocating {bytes} bytes for hashes failed")),
            Fault::StoredOtherwise(advice) => PyTypeError::new_err(advice),
        }
    }
}

/// An exception for a filter that could not be made.
pub(crate) fn build_error(error: BuildError) -> PyErr {
    if error.is_out_of_memory() {
        PyMemoryError::new_err(error.to_string())
    } else {
        PyValueError::new_err(error.to_string())
    }
}

/// A filter, as a set of hashes that many threads share.
pub(crate) trait Engine: Send + Sync {
    /// What it sees of a key.
    type Hash: Copy + Default + Send + Sync;
    /// The bytes of its numbers.
    const ENCODING: Encoding = Encoding::Python;

    /// What it says of other keys, if it takes integers only.
    #[inline(always)]
    fn integers_only(&self) -> Option<&'static str> {
        None
    }

    /// Fails for an integer that it would cut off.
    #[inline(always)]
    fn check(&self, _word: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn hash_word(&self, word: u64) -> Self::Hash;
    fn hash_bytes(&self, bytes: &[u8]) -> Self::Hash;
    fn hash_words(&self, words: &[u64], out: &mut [Self::Hash]);
    fn hash_slices(&self, keys: &[&[u8]], out: &mut [Self::Hash]);

    fn contains_one(&self, hash: Self::Hash) -> bool;
    fn contains_many(&self, hashes: &[Self::Hash], out: &mut [bool]);
    /// Inserts, and returns whether the key was new.
    fn insert_one(&self, hash: Self::Hash) -> Result<bool, Fault>;
    /// Inserts, and returns how many of the keys were new.
    fn insert_many(&self, hashes: &[Self::Hash]) -> Result<usize, Fault>;
    /// Inserts the keys that are not there, and returns which.
    fn insert_flagged(&self, hashes: &[Self::Hash], new: &mut [bool]) -> Result<usize, Fault> {
        one_by_one(self, hashes, new)
    }

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
    fn insert_words(&self, _words: &[u64]) -> Option<Result<usize, Fault>> {
        None
    }
}

/// [`Engine::insert_flagged`] by single calls.
fn one_by_one<E: Engine + ?Sized>(engine: &E, hashes: &[E::Hash], new: &mut [bool]) -> Result<usize, Fault> {
    let mut total = 0;
    for (&hash, new) in hashes.iter().zip(new) {
        *new = !engine.contains_one(hash) && engine.insert_one(hash)?;
        total += usize::from(*new);
    }
    Ok(total)
}

/// What filters by a hasher of lanebloom share. Hashes that are keys are integers.
macro_rules! hashing {
    ($hasher:expr) => {
        type Hash = u64;

        #[inline(always)]
        fn integers_only(&self) -> Option<&'static str> {
            match $hasher(self) {
                AnyHasher::Builtin(_) => None,
                _ => Some("a filter with hasher=\"prehashed\" takes hashes only: integers of 64 bits"),
            }
        }
        #[inline(always)]
        fn hash_word(&self, word: u64) -> u64 {
            match $hasher(self) {
                AnyHasher::Builtin(hasher) => hasher.hash_key(&word),
                _ => word,
            }
        }
        #[inline(always)]
        fn hash_bytes(&self, bytes: &[u8]) -> u64 {
            match $hasher(self) {
                AnyHasher::Builtin(hasher) => hasher.hash_key(bytes),
                _ => unreachable!("integers only"),
            }
        }
        fn hash_words(&self, words: &[u64], out: &mut [u64]) {
            match $hasher(self) {
                AnyHasher::Builtin(hasher) => hasher.hash_batch(words, out),
                _ => out.copy_from_slice(words),
            }
        }
        fn hash_slices(&self, keys: &[&[u8]], out: &mut [u64]) {
            match $hasher(self) {
                AnyHasher::Builtin(hasher) => hasher.hash_batch(keys, out),
                _ => unreachable!("integers only"),
            }
        }
    };
}

/// The lookups of filters of lanebloom.
macro_rules! by_hash {
    () => {
        #[inline(always)]
        fn contains_one(&self, hash: u64) -> bool {
            self.contains_hash(hash)
        }
        fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
            self.contains_hashes(hashes, out);
        }
    };
}

/// The hasher of a filter. A bitmap has none.
#[inline(always)]
fn hasher(filter: &AnyFilter) -> &AnyHasher {
    filter.hasher().expect("no bitmap is held here")
}

/// Why a filter refused keys.
#[cold]
fn refused(filter: &AnyFilter, error: InsertError) -> Fault {
    match filter {
        AnyFilter::Static(_) => Fault::Static,
        _ => Fault::Insert(error),
    }
}

impl Engine for AnyFilter {
    hashing! { hasher }
    by_hash! {}

    #[inline(always)]
    fn insert_one(&self, hash: u64) -> Result<bool, Fault> {
        self.insert_hash(hash).map_err(|error| refused(self, error))
    }
    fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
        self.insert_hashes(hashes).map_err(|error| refused(self, error))
    }
    fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Fault> {
        match self {
            Self::Bloom(filter) => Ok(filter.insert_hashes_flagged(hashes, new)),
            Self::Windowed(filter) => Ok(filter.insert_hashes_flagged(hashes, new)),
            Self::Scalable(filter) => Ok(filter.insert_hashes_flagged(hashes, new)?),
            Self::Static(_) => Err(Fault::Static),
            _ => one_by_one(self, hashes, new),
        }
    }
    fn insert_words(&self, words: &[u64]) -> Option<Result<usize, Fault>> {
        let added = match hasher(self) {
            AnyHasher::Builtin(_) => self.insert_batch(words),
            _ => self.insert_hashes(words),
        };
        Some(added.map_err(|error| refused(self, error)))
    }
    fn is_by_pool(&self) -> bool {
        matches!(self, Self::Bloom(_))
    }
    fn insert_many_by_pool(&self, hashes: &[u64]) -> usize {
        match self {
            Self::Bloom(filter) => filter.par_insert_hashes(hashes),
            _ => unreachable!("see is_by_pool"),
        }
    }
}

impl Engine for BloomView<'static, AnyHasher> {
    hashing! { Self::hasher }
    by_hash! {}

    fn insert_one(&self, _: u64) -> Result<bool, Fault> {
        Err(Fault::ReadOnly)
    }
    fn insert_many(&self, _: &[u64]) -> Result<usize, Fault> {
        Err(Fault::ReadOnly)
    }
    fn insert_flagged(&self, _: &[u64], _: &mut [bool]) -> Result<usize, Fault> {
        Err(Fault::ReadOnly)
    }
}

/// The hashes of keys: "added" to it, they are gathered.
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

    #[inline(always)]
    fn hasher(&self) -> &AnyHasher {
        &self.hasher
    }

    /// All hashes; of each thread in their order.
    pub(crate) fn into_all(self) -> Vec<u64> {
        self.all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Hashes {
    hashing! { Self::hasher }

    fn contains_one(&self, _: u64) -> bool {
        unreachable!("keys are only gathered")
    }
    fn contains_many(&self, _: &[u64], _: &mut [bool]) {
        unreachable!("keys are only gathered")
    }
    fn insert_one(&self, _: u64) -> Result<bool, Fault> {
        unreachable!("keys are only gathered")
    }
    fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |_| Fault::Memory(8 * hashes.len());
        all.try_reserve(hashes.len()).map_err(refused)?;
        all.extend_from_slice(hashes);
        Ok(hashes.len())
    }
}

/// A filter of another system, whose integers have 8 bytes or 4.
pub(crate) struct Foreign<F> {
    pub(crate) filter: F,
    /// 4 or 8; 8 for Spark, which makes a `long` of every integer.
    pub(crate) int_bytes: usize,
}

macro_rules! foreign {
    ($($filter:ident: $hash:ty, $encoding:ident, $int:ty, $long:ty, |$from:ident, $words:ident, $out:ident| $hash_longs:expr;)*) => {$(
        impl Engine for Foreign<$filter> {
            type Hash = $hash;
            const ENCODING: Encoding = Encoding::$encoding;

            fn check(&self, word: u64) -> Result<(), Fault> {
                /// An `int` of Java and Parquet, or one without a sign.
                const INTS: std::ops::RangeInclusive<i64> = i32::MIN as i64..=u32::MAX as i64;
                if self.int_bytes == 8 || INTS.contains(&word.cast_signed()) {
                    return Ok(());
                }
                Err(Fault::Wide(word))
            }
            fn hash_word(&self, word: u64) -> $hash {
                if self.int_bytes == 4 { self.filter.hash(&(word as $int)) } else { self.filter.hash(&(word as $long)) }
            }
            fn hash_bytes(&self, bytes: &[u8]) -> $hash {
                self.filter.hash(bytes)
            }
            fn hash_words(&self, words: &[u64], out: &mut [$hash]) {
                if self.int_bytes == 8 {
                    let ($from, $words, $out) = (&self.filter, words, out);
                    return $hash_longs;
                }
                for (&word, out) in words.iter().zip(out) {
                    *out = self.hash_word(word);
                }
            }
            fn hash_slices(&self, keys: &[&[u8]], out: &mut [$hash]) {
                self.filter.hash_batch(keys, out);
            }
            fn contains_one(&self, hash: $hash) -> bool {
                self.filter.contains_hash(hash)
            }
            fn contains_many(&self, hashes: &[$hash], out: &mut [bool]) {
                self.filter.contains_hashes(hashes, out);
            }
            fn insert_one(&self, hash: $hash) -> Result<bool, Fault> {
                Ok(self.filter.insert_hash(hash))
            }
            fn insert_many(&self, hashes: &[$hash]) -> Result<usize, Fault> {
                Ok(self.filter.insert_hashes(hashes))
            }
            fn insert_flagged(&self, hashes: &[$hash], new: &mut [bool]) -> Result<usize, Fault> {
                Ok(self.filter.insert_hashes_flagged(hashes, new))
            }
        }
    )*};
}

foreign! {
    GuavaBloom: (u64, u64), Plain, u32, u64, |filter, words, out| filter.hash_batch(words, out);
    SplitBlockBloom: u64, Plain, u32, u64, |filter, words, out| filter.hash_batch(words, out);
    SparkBloom: spark::Hash, Spark, i32, i64, |filter, words, out| hash_longs(filter, words, out);
}

/// Spark's keys have a sign.
fn hash_longs(filter: &SparkBloom, words: &[u64], out: &mut [spark::Hash]) {
    const TILE: usize = 512;
    let mut longs = [0; TILE];
    for (words, out) in words.chunks(TILE).zip(out.chunks_mut(TILE)) {
        let longs = &mut longs[..words.len()];
        for (long, word) in longs.iter_mut().zip(words) {
            *long = word.cast_signed();
        }
        filter.hash_batch(longs, out);
    }
}

/// An integer is its own hash.
impl Engine for ConcurrentBitmap {
    type Hash = u64;

    #[inline(always)]
    fn integers_only(&self) -> Option<&'static str> {
        Some("a bitmap holds integers only")
    }

    fn hash_word(&self, word: u64) -> u64 {
        word
    }
    fn hash_bytes(&self, _: &[u8]) -> u64 {
        unreachable!("integers only")
    }
    fn hash_words(&self, words: &[u64], out: &mut [u64]) {
        out.copy_from_slice(words);
    }
    fn hash_slices(&self, _: &[&[u8]], _: &mut [u64]) {
        unreachable!("integers only")
    }
    fn contains_one(&self, hash: u64) -> bool {
        self.contains(hash)
    }
    fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
        self.contains_batch(hashes, out);
    }
    fn insert_one(&self, hash: u64) -> Result<bool, Fault> {
        self.insert(hash)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
    fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
        self.insert_batch(hashes)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
    fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Fault> {
        self.insert_batch_flagged(hashes, new)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
}
