//! Parquet's Bloom filter, bit for bit, for many threads: [`SplitBlockBloom`].
//!
//! A block has 256 bits, eight words of 32. A key sets one bit in each word of one block, chosen by
//! XXH64 with seed 0 of the key's bytes. Parquet's `BloomFilter.md` specifies it; parquet-rs,
//! parquet-java, Arrow C++ and DuckDB write these filters into files, and Milvus takes them in an
//! envelope of its own.
//!
//! # Keys
//!
//! Parquet hashes the plain encoding of a value: its bytes, little-endian, without a length. What
//! these types [`Funnel`] is that encoding:
//!
//! | Parquet | key |
//! |---|---|
//! | `INT32` (also of 8 and 16 bits: Parquet stores them as `INT32`), `DATE`, `TIME` in ms | `i32`, `u32` |
//! | `INT64`, `TIMESTAMP`, `TIME` in µs or ns | `i64`, `u64` |
//! | `INT96` | `[u8; 12]`, or `(u64, u32)`: nanoseconds of the day, Julian day |
//! | `FLOAT`, `DOUBLE` | `x.to_bits()`. Parquet distinguishes 0.0 from -0.0 ([`insert_both_zeros`](SplitBlockBloom::insert_both_zeros)), and each NaN |
//! | `BYTE_ARRAY`, strings, decimals in bytes | `[u8]`, `str` |
//! | `FIXED_LEN_BYTE_ARRAY`, UUID, `FLOAT16` | `[u8; N]`, `[u8]` |
//! | `BOOLEAN` | `[u8; 1]`, 0 or 1, by parquet-rs and ClickHouse. parquet-java writes filters without a bit, Arrow C++ and DuckDB write none: ask no filter of booleans that [is empty](SplitBlockFilter::is_empty) |
//!
//! A key of a wider or narrower type has other bytes: widen an `i16` to `i32` first.
//!
//! # From a file
//!
//! A column chunk's metadata has `bloom_filter_offset`, and often `bloom_filter_length`. There lies
//! the header, then the bitset: [`from_parquet`](SplitBlockBloom::from_parquet) reads both, or
//! [`from_parquet_prefix`](SplitBlockBloom::from_parquet_prefix) if the length is missing. An
//! engine that looks up few keys in a file far away reads only the [`Header`], and for each key its
//! 32 bytes at `block_index(hash, header.blocks())`, which [`check_block`] tests:
//! [`Header::look_up`] does both.
//!
//! ```
//! use lanebloom_formats::SplitBlockBloom;
//! use lanebloom_formats::splitblock::{Header, block_index, check_block, hash};
//!
//! let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
//! filter.insert("ann");
//! let file = filter.to_parquet()?;
//!
//! let header = Header::parse(&file)?;
//! let key = hash("ann");
//! let at = header.header_bytes() + 32 * block_index(key, header.blocks());
//! assert!(check_block(file[at..][..32].try_into()?, key));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrow;
mod bank;
mod block;
mod bytes;
mod engine;
pub(crate) mod footer;
#[allow(unsafe_code, reason = "instruction sets that not every CPU has, and their loads")]
mod kernel;
mod sizing;
mod thrift;
mod view;
mod xxh64;

pub use self::arrow::{Column, ColumnError};
pub use self::bank::SplitBlockBank;
pub use self::block::block_index;
pub use self::bytes::{Header, Milvus};
use self::engine::Content;
pub use self::engine::{Owned, SplitBlock, Xxh64};
pub use self::sizing::MAX_FORMAT_BYTES;
pub use self::view::SplitBlockView;

use self::block::BLOCK_BYTES;
use crate::logarithm::pow;
use alloc::format;
use core::borrow::Borrow;
use core::fmt;
use lanebloom::internal::traits::{Engine, Union};
use lanebloom::internal::{fold_for_rate, into_ok};
use lanebloom::{
    Answers, BuildError, Exclusive, Filter, Funnel, Hashed, IncompatibleError, InsertError, Key, KeyHasher, Membership,
    Pair, Statistics,
};

/// XXH64 with seed 0 of a key's bytes: the hash that all of these filters use.
///
/// ```
/// use lanebloom_formats::splitblock::hash;
///
/// assert_eq!(hash(""), 0xef46_db37_51d8_e999);
/// assert_eq!(hash(&7_i64), hash(&[7_u8, 0, 0, 0, 0, 0, 0, 0]));
/// ```
#[inline]
pub fn hash<K: Funnel + ?Sized>(key: &K) -> u64 {
    xxh64::of_key(key)
}

/// Whether a block has all bits of a hash. The block is 32 bytes of a bitset, those of
/// [`block_index`].
///
/// ```
/// use lanebloom_formats::SplitBlockBloom;
/// use lanebloom_formats::splitblock::{check_block, hash};
///
/// let filter = SplitBlockBloom::with_bytes(32)?;
/// filter.insert("ann");
/// let block = filter.to_bitset().try_into().unwrap();
/// assert!(check_block(&block, hash("ann")));
/// assert!(!check_block(&block, hash("eve")));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[inline]
#[must_use]
pub fn check_block(block: &[u8; BLOCK_BYTES], hash: u64) -> bool {
    let (words, _) = lanebloom::internal::as_chunks::<8, _>(block);
    block::holds(&[words[0], words[1], words[2], words[3]], hash)
}

/// Parquet's split-block Bloom filter, which many threads share.
///
/// Inserts and lookups take `&self` and are lock-free. A lookup reads 32 bytes of one cache line.
/// [The module](self) says which key is which type of Parquet's.
///
/// A filter that was read promises 1%, since its bytes do not say for how many keys it is: its
/// [`expected_keys`](SplitBlockFilter::expected_keys) are those that keep 1%. If it was made for
/// another rate, compare its [rate now](Statistics::false_positive_rate) with that one.
///
/// ```
/// use lanebloom_formats::SplitBlockBloom;
///
/// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
/// assert!(filter.insert(&42_i64));
/// assert!(!filter.insert(&42_i64)); // was there
/// assert!(filter.contains(&42_i64));
/// assert!(!filter.contains(&43_i64));
///
/// // The bytes that Parquet's readers take.
/// let bytes = filter.to_parquet()?;
/// assert!(SplitBlockBloom::from_parquet(&bytes)?.contains(&42_i64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Consistency
///
/// The same as for a [`ConcurrentBloom`](lanebloom::ConcurrentBloom): a key whose insert happened
/// before a lookup is found. When a lookup returns true, what the inserters of these bits did
/// before is visible. Two threads that insert one new key at the same time may both get true.
pub type SplitBlockBloom = SplitBlockFilter<Owned>;

/// A split-block filter: a [`SplitBlockBloom`], or a [`SplitBlockView`] of borrowed bytes. A
/// program names it by these aliases. `C` holds the blocks.
pub struct SplitBlockFilter<C>(Filter<SplitBlock<C>, Xxh64>);

/// Making one.
impl SplitBlockBloom {
    /// A filter of the fewest blocks with which `keys` keys keep the false-positive rate.
    ///
    /// The rate is that of split blocks, whose keys are not spread evenly. So the filter is larger
    /// than by the formula of Parquet's libraries, by 9% at 1%: see
    /// [`with_parquet_size`](Self::with_parquet_size).
    ///
    /// # Errors
    ///
    /// If the rate is not between 0 and 1, the filter has 2^32 blocks or more, or there is not
    /// enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(10_000, 0.01)?;
    /// assert_eq!(filter.memory_bytes(), 13_184);
    /// assert!(filter.false_positive_rate_at(10_000) <= 0.01);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::new(sizing::blocks(keys, false_positive_rate)?, keys)
    }

    /// A filter of the size that parquet-java (Spark, Hadoop) chooses for this number of distinct
    /// values: `-8 keys / ln(1 - rate^(1/8))` bits, raised to a power of two, from 32 bytes to 128
    /// MiB.
    ///
    /// Arrow C++, parquet-rs and pymilvus choose the same size, except that parquet-java rounds in
    /// a way of its own before: from 64 bytes to 64 KiB, it takes twice the bytes for some numbers
    /// of keys, and half of them for a few.
    ///
    /// The formula leaves out that keys are not spread evenly, and the limit takes no notice of the
    /// rate. So ask [`false_positive_rate_at`](Self::false_positive_rate_at), or use
    /// [`with_parquet_rate`](Self::with_parquet_rate).
    ///
    /// Fails if the rate is not between 0 and 1, or there is not enough memory.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_parquet_size(1000, 0.01)?;
    /// assert_eq!(filter.memory_bytes(), 2048);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn with_parquet_size(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::new(sizing::parquet_bytes(keys, false_positive_rate)? / BLOCK_BYTES, keys)
    }

    /// A filter that every reader of Parquet takes and that keeps the false-positive rate: of the
    /// bytes of [`with_capacity`](Self::with_capacity), raised to a power of two (Arrow C++ reads
    /// no other size).
    ///
    /// # Errors
    ///
    /// If the rate is not between 0 and 1, 128 MiB ([`MAX_FORMAT_BYTES`]) do not keep it, or there
    /// is not enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let filter = SplitBlockBloom::with_parquet_rate(250_000, 1e-5)?;
    /// assert!(filter.false_positive_rate() <= 1e-5);
    /// // The formula of Parquet's libraries chooses half of the bytes.
    /// let theirs = SplitBlockBloom::with_parquet_size(250_000, 1e-5)?;
    /// assert_eq!(filter.memory_bytes(), 2 * theirs.memory_bytes());
    /// assert!(theirs.false_positive_rate() > 1e-5);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn with_parquet_rate(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let most = MAX_FORMAT_BYTES / BLOCK_BYTES;
        let blocks = sizing::blocks(keys, false_positive_rate).map(usize::next_power_of_two);
        match blocks {
            Ok(blocks) if blocks <= most => Self::new(blocks, keys),
            // Not between 0 and 1.
            Err(error) if BuildError::check_rate(false_positive_rate).is_err() => Err(error),
            _ => Err(BuildError::new(format!(
                "a Parquet filter has at most {MAX_FORMAT_BYTES} bytes, which keep a rate of {false_positive_rate:?} for \
                 {} keys, not for {keys}: choose fewer keys or a higher rate",
                sizing::keys(most, false_positive_rate)
            ))),
        }
    }

    /// A filter of a number of bytes. Its number of expected keys is the one that keeps 1%.
    ///
    /// # Errors
    ///
    /// If the bytes are not a whole number of blocks of 32 bytes, none, or 2^32 blocks or more, or
    /// if there is not enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// assert_eq!(SplitBlockBloom::with_bytes(1 << 20)?.blocks(), 32_768);
    /// let error = SplitBlockBloom::with_bytes(100).unwrap_err();
    /// assert!(error.to_string().starts_with("100 bytes are not a whole number of"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn with_bytes(bytes: usize) -> Result<Self, BuildError> {
        if bytes % BLOCK_BYTES != 0 || bytes == 0 {
            return Err(BuildError::new(format!(
                "{bytes} bytes are not a whole number of blocks of {BLOCK_BYTES} bytes"
            )));
        }
        let blocks = bytes / BLOCK_BYTES;
        Self::new(blocks, sizing::keys(blocks, 0.01))
    }

    /// A filter that holds `keys` and is sized for as many, at this false-positive rate. Fails as
    /// [`with_capacity`](Self::with_capacity).
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::from_keys(["a", "b"], 0.01)?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("collect", "from_iter"))]
    pub fn from_keys<K: Key<Xxh64>>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        let keys = keys.into_iter();
        let filter = Self::with_capacity(keys.len(), false_positive_rate)?;
        filter.insert_all(keys);
        Ok(filter)
    }

    fn new(blocks: usize, expected_keys: usize) -> Result<Self, BuildError> {
        let content = Owned::new(blocks, expected_keys)?;
        Ok(Self(Filter::of(SplitBlock::new(content), Xxh64)))
    }
}

/// Inserts.
impl SplitBlockBloom {
    /// Inserts `key`. Returns whether this changed the filter: `false` for a key that is there,
    /// and by chance for a new one, at the false-positive rate. If several threads race to insert
    /// a new key, **at least** one of them gets `true`, and several may: do not take it for a
    /// claim. `false` ends in an `Acquire`, like a lookup's `true`.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<Xxh64> + ?Sized>(&self, key: &K) -> bool {
        into_ok(self.0.try_insert(key))
    }

    /// Inserts the keys in order; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2]);
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<Xxh64>>(&self, keys: &[K]) -> usize {
        into_ok(self.0.try_insert_batch(keys))
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter. [`Answers`] has the places for `new`.
    ///
    /// # Panics
    ///
    /// If `new` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<Xxh64>>(&self, keys: &[K], new: impl Answers) -> usize {
        into_ok(self.0.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100);
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<Xxh64>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        into_ok(self.0.try_insert_all(keys))
    }
}

/// For tests, which look up in any filter.
#[doc(hidden)]
impl<C: Content> SplitBlockFilter<C> {
    #[must_use]
    pub fn as_filter(&self) -> &Filter<SplitBlock<C>, Xxh64> {
        &self.0
    }
}

/// Lookups.
impl<C: Content> SplitBlockFilter<C> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before. `true` ends in an `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<Xxh64> + ?Sized>(&self, key: &K) -> bool {
        self.0.look_up(key)
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] has the places for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<Xxh64>>(&self, keys: &[K], out: impl Answers) {
        self.0.look_up_batch(keys, out);
    }

    /// The hash by which the filter knows `key`: [`hash`].
    ///
    /// ```
    /// use lanebloom_formats::{Hashed, SplitBlockBloom};
    ///
    /// let filter = SplitBlockBloom::from_keys(["a"], 0.01)?;
    /// assert!(filter.contains(&Hashed(filter.hash("a"))));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.0.hash(key)
    }

    /// Writes the hash by which the filter knows each key to the same place of `out`. Panics if the
    /// lengths differ.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::from_keys(["a"], 0.01)?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.0.hasher().hash_batch(keys, out);
    }
}

/// Statistics. They read the whole filter, each word at some moment.
///
/// ```
/// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(10_000, 0.01)?;
/// assert!(filter.is_empty() && filter.expected_keys() == 10_000);
/// assert_eq!((filter.blocks(), filter.memory_bytes()), (412, 32 * 412));
/// assert!((0.0099..=0.01).contains(&filter.false_positive_rate()));
/// assert!(filter.false_positive_rate_at(5000) < 0.001);
///
/// filter.insert_all(0..10_000);
/// let now = filter.statistics();
/// assert!(!filter.is_empty() && !now.is_overfull);
/// assert!(now.len.abs_diff(10_000) < 100);
/// assert!((0.009..0.011).contains(&now.false_positive_rate));
/// assert!((10.5..10.6).contains(&now.bits_per_key));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
impl<C: Content> SplitBlockFilter<C> {
    /// Fill, number of keys, false-positive rate and size now, from one pass over the content.
    #[doc(alias("fill_ratio", "estimated_len", "is_overfull", "bits_per_key"))]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    /// Whether the filter holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of keys that the filter was sized for; for a filter that was read, the number
    /// that keeps 1%.
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.0.expected_keys()
    }

    /// The bytes of memory of the content: 32 for each block.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.0.engine().blocks().len()
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.0.false_positive_rate()
    }

    /// The false-positive rate to expect once `keys` distinct keys are in.
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.0.engine().false_positive_rate_at(keys)
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.try_clone()?.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self(self.0.try_clone()?))
    }
}

/// Two filters as sets. Exclusive access.
impl SplitBlockBloom {
    /// This filter beside another one, to be compared as sets of keys. Fails if their sizes differ.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let part = SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// part.insert("a");
    /// let all = part.clone();
    /// all.insert("b");
    /// assert!(part.with(&all)?.is_subset() && !all.with(&part)?.is_subset());
    /// assert!(part.with(&SplitBlockBloom::with_bytes(2048)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with<'a>(&'a self, other: &'a Self) -> Result<Pair<'a, SplitBlock<Owned>, Xxh64>, IncompatibleError> {
        Pair::of(&self.0, &other.0)
    }

    /// Adds every key that was inserted into `other` before; returns whether that changed this
    /// filter. Both may be in use meanwhile. Fails if their sizes differ. Then no key is added.
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// ```
    /// let all = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let (part, empty) = (all.clone(), all.clone());
    /// part.insert("a");
    /// assert!(all.union_from(&part)? && all.contains("a"));
    /// assert!(!all.union_from(&empty)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Union::union_from(&self.0, &other.0)
    }

    /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SplitBlockBloom::from_keys(["a"], 0.01)?;
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.is_empty());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Exclusive access, for inserts without atomics, intersections and folds.
    ///
    /// ```
    /// let mut both = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let other = both.clone();
    /// assert_eq!(both.exclusive().insert_batch(&[1, 2, 1]), 2);
    /// other.insert_batch(&[2, 3]);
    /// assert!(both.exclusive().intersection_from(&other)?);
    /// assert!(both.contains(&2) && !both.contains(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exclusive(&mut self) -> Exclusive<'_, SplitBlock<Owned>, Xxh64> {
        Exclusive::of(&mut self.0)
    }
}

/// `insert_all`, for a reference to the filter too.
impl<K: Key<Xxh64>> Extend<K> for SplitBlockBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

impl<K: Key<Xxh64>> Extend<K> for &SplitBlockBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

/// Floats, whose zeros are two keys.
impl SplitBlockBloom {
    /// Inserts 0.0 and -0.0 if one of them may be in the filter, as `FLOAT16`, `FLOAT` and
    /// `DOUBLE`; returns whether it changed the filter. A writer calls it after the values of a
    /// column of one of these types.
    ///
    /// The two zeros are equal numbers with different bytes, and so Parquet hashes them as two
    /// keys. Readers that ask for one of them lose the rows of the other: DataFusion 55, Spark 4.3
    /// and hyparquet 1.33 do, DuckDB 2.0 asks for both.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&1.5_f64.to_bits());
    /// assert!(!filter.insert_both_zeros());
    /// filter.insert(&(-0.0_f64).to_bits());
    /// assert!(filter.insert_both_zeros() && filter.contains(&0.0_f64.to_bits()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_both_zeros(&self) -> bool {
        let mut changed = false;
        for zeros in [
            [[0_u8, 0], [0, 0x80]].map(|zero| hash(&zero)),
            [0.0_f32, -0.0].map(|zero| hash(&zero.to_bits())),
            [0.0_f64, -0.0].map(|zero| hash(&zero.to_bits())),
        ] {
            if zeros.iter().any(|zero| self.contains(&Hashed(*zero))) {
                changed |= self.insert_batch(Hashed::slice(&zeros)) > 0;
            }
        }
        changed
    }
}

/// The whole filter.
impl SplitBlockBloom {
    /// [Folds](Exclusive::fold) by the power of two that parquet-rs chooses for a filter of a file,
    /// by its `fold_to_target_fpp`; returns the factor.
    ///
    /// That is the largest one after which the mean share of set bits, to the power of 8, is
    /// estimated as at most `rate`. The estimate leaves out that keys are not spread evenly, so the
    /// rate may be higher: ask [`statistics`](Self::statistics).
    ///
    /// Fails as [`fold_to_rate`](Exclusive::fold_to_rate) does.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let mut filter = SplitBlockBloom::with_parquet_size(1_000_000, 0.01)?;
    /// filter.insert_all(0..1000_u32);
    /// assert_eq!(filter.fold_as_parquet(0.01)?, 1024);
    /// assert_eq!(filter.memory_bytes(), 2048);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("fold_to_target_fpp"))]
    pub fn fold_as_parquet(&mut self, rate: f64) -> Result<usize, BuildError> {
        BuildError::check_rate(rate)?;
        let (mut clear, mut factor) = (1.0 - self.statistics().fill_ratio, 1);
        while self.blocks() % (2 * factor) == 0 {
            clear *= clear;
            if pow(1.0 - clear, 8) > rate {
                break;
            }
            factor *= 2;
        }
        fold_for_rate(&mut self.0, factor, rate)?;
        Ok(factor)
    }
}

/// A copy, or another view of the same bytes. Aborts if the allocation fails; `try_clone` does not.
impl<C: Content> Clone for SplitBlockFilter<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// For [`Exclusive::intersection_from`].
impl Borrow<Filter<SplitBlock<Owned>, Xxh64>> for SplitBlockBloom {
    fn borrow(&self) -> &Filter<SplitBlock<Owned>, Xxh64> {
        &self.0
    }
}

/// Same number of blocks and same bits. Beside inserts, reads each word at some moment.
impl PartialEq for SplitBlockBloom {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// A summary; it reads the whole filter.
impl<C: Content> fmt::Debug for SplitBlockFilter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Membership for SplitBlockBloom {
    type Hasher = Xxh64;

    #[inline]
    fn contains<K: Key<Xxh64> + ?Sized>(&self, key: &K) -> bool {
        self.0.look_up(key)
    }

    fn contains_batch<K: Key<Xxh64>>(&self, keys: &[K], out: impl Answers) {
        self.0.look_up_batch(keys, out);
    }

    #[inline]
    fn insert<K: Key<Xxh64> + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        Ok(into_ok(self.0.try_insert(key)))
    }

    fn insert_batch<K: Key<Xxh64>>(&self, keys: &[K]) -> Result<usize, InsertError> {
        Ok(into_ok(self.0.try_insert_batch(keys)))
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn expected_keys(&self) -> usize {
        self.0.expected_keys()
    }

    fn false_positive_rate(&self) -> f64 {
        self.0.false_positive_rate()
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.0.engine().false_positive_rate_at(keys)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
