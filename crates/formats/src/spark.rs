//! Spark's `BloomFilter` (`org.apache.spark.util.sketch`), bit for bit. [`SparkBloom`] reads what
//! Spark on a JVM wrote, and writes what Spark reads, in both versions of its format. It gives the
//! same answers, and is as lock-free as [`ConcurrentBloom`](lanebloom::ConcurrentBloom).
//!
//! Use it for filters that Spark jobs make or take: those of `df.stat.bloomFilter`, written by
//! `writeTo`. If you own both ends, use a `ConcurrentBloom`: it is faster, since a key's bits lie
//! in one cache line. Here they lie anywhere, and a key of a filter for 1% touches 7 lines.
//!
//! # Example
//!
//! ```
//! use lanebloom_formats::SparkBloom;
//!
//! // BloomFilter.create(1000, 0.01), putString("ann"), writeTo(out)
//! let filter = SparkBloom::with_capacity(1000, 0.01)?;
//! filter.insert("ann");
//! let mut stream = Vec::new();
//! filter.write_to(&mut stream)?;
//!
//! // BloomFilter.readFrom(in), mightContainString
//! let copy = SparkBloom::read_from(&stream[..], 1 << 20)?;
//! assert!(copy.contains("ann") && !copy.contains("eve"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys
//!
//! A stream does not say which keys are in its filter. Spark knows three kinds, and so does
//! [`SparkKey`], whose page has the table: integers, which all become a `long`; strings, as their
//! UTF-8 bytes; and bytes.
//!
//! In a filter of `df.stat.bloomFilter` the column decides: those of `tinyint` to `bigint` are
//! integers, and `string` is a string. Filters of Spark SQL's own joins hold the `xxhash64` of each
//! value as a `bigint`: pass that hash, an `i64`.
//!
//! # Versions
//!
//! | | [`Version::V1`] | [`Version::V2`] |
//! |---|---|---|
//! | made by | Spark up to 4.0 | Spark 4.1 and later |
//! | read by | every Spark | Spark 4.1 and later |
//! | indexes | of 31 bits | of 63 bits |
//! | seed | none | any, 0 by default |
//!
//! Both have the same size for the same keys. A filter that was read keeps its version, and is
//! written back byte for byte. For a Spark before 4.1, make a V1 filter by the
//! [`builder`](SparkBloom::builder).
//!
//! # Consistency
//!
//! The promises are those of [lanebloom](lanebloom#consistency), with these differences. (2) If
//! several threads race to insert a key, at least one gets `true`, and several may: a key has many
//! words here, so an insert is never a claim. (6) The rate is Spark's: about the requested one at
//! the expected keys. For V1 it is higher from some hundred million bits on, since its indexes have
//! 31 bits.
//!
//! Hashing is 32-bit Murmur3 under a seed that the stream shows. **Strangers can make keys that
//! collide**: [the module `hash`](lanebloom::hash) says more.

mod batch;
pub(crate) mod error;
mod figures;
mod hash;
mod layout;
#[cfg(feature = "serde")]
mod serde;
mod stream;

use crate::flat::Flat;
use crate::java::formulas::optimal_bits;
use crate::java::indexes::IntIndexes;
use alloc::format;
use core::fmt;
pub use hash::{Hash, SparkKey};
use lanebloom::internal::{acquire, acquire_if, incompatible, wrong_rate};
use lanebloom::{BuildError, IncompatibleError};
pub use layout::Version;
use layout::{LongIndexes, SparkLayout};

/// Spark's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are [`SparkKey`]s: integers, strings and bytes. All operations but [`clear`](Self::clear)
/// and [`intersection_from`](Self::intersection_from) take `&self`: share the filter as
/// `Arc<SparkBloom>`.
///
/// | Spark | here |
/// |---|---|
/// | `create` | [`with_capacity`](Self::with_capacity), [`builder`](Self::builder) |
/// | `putLong`, `putString`, `putBinary`, `put` | [`insert`](Self::insert) |
/// | `mightContainLong` and so on | [`contains`](Self::contains) |
/// | `mergeInPlace`, `isCompatible` | [`union_from`](Self::union_from), [`is_compatible`](Self::is_compatible) |
/// | `intersectInPlace` | [`intersection_from`](Self::intersection_from) |
/// | `bitSize`, `expectedFpp` | [`bit_size`](Self::bit_size), [`current_false_positive_rate`](Self::current_false_positive_rate) |
/// | `equals` | `==` |
/// | `writeTo`, `readFrom` | [`write_to`](Self::write_to), [`read_from`](Self::read_from), [`from_bytes`](Self::from_bytes) |
///
/// # Batches
///
/// A batch gives the answers of single calls in order, duplicates within the batch included, many
/// keys at a time. Methods named `_hashes` take hashes of [`hash`](Self::hash) or
/// [`hash_batch`](Self::hash_batch), so that a caller can hash once for several filters of one
/// seed. Methods named `_flagged` write the answer for each key to the same place of a slice,
/// methods named `_bitmap` to a bit: bit `i % 64` of word `i / 64`.
///
/// # Memory ordering
///
/// An insert is a `Release`. A lookup that answers `true`, or an insert that answers `false`, ends
/// in an `Acquire`: everything that the inserters of the key had done before is visible. In batches
/// one `Acquire` serves many keys, and comes before their answers.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::SparkBloom;
///
/// // From Spark 4.3: BloomFilter.create(2, 0.01),
/// // putLong(3), putLong(42), writeTo.
/// let header = [0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1];
/// let long = [0, 4, 0, 0, 0, 0x96, 0x49, 0x20];
/// let filter = SparkBloom::with_capacity(2, 0.01)?;
/// assert!(filter.insert(&3i64) && filter.insert(&42i64));
/// assert!(!filter.insert(&42i64));
/// assert!(filter.contains(&3i64) && !filter.contains(&4i64));
/// assert_eq!(filter.to_bytes(), [&header[..], &long].concat());
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub struct SparkBloom {
    flat: Flat,
    layout: SparkLayout,
    expected_keys: usize,
}

/// Sizes a [`SparkBloom`]; made by [`SparkBloom::builder`].
///
/// The defaults are those of Spark 4.3: a rate of 0.03, V2, the seed 0. The number of keys has no
/// default.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::spark::{SparkBloom, Version};
///
/// let builder = SparkBloom::builder().expected_keys(1_000_000);
/// let filter = builder.version(Version::V1).build()?;
/// assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    keys: usize,
    size: Size,
    version: Version,
    seed: i32,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Rate(f64),
    Bits(u64),
}

impl Builder {
    /// The number of distinct keys up to which the false-positive rate holds: Spark's
    /// `expectedNumItems`. It must be at least 1.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::builder().expected_keys(50_000).build()?;
    /// filter.insert_all(0..50_000i64);
    /// assert!((0.029..0.031).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "expectedNumItems")]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate with the expected keys, between 0 and 1, both excluded: Spark's
    /// `fpp`. 0.03 by default, as Spark's. It replaces [`bits`](Self::bits).
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let builder = SparkBloom::builder().expected_keys(1000);
    /// let filter = builder.false_positive_rate(1e-3).build()?;
    /// assert_eq!(filter.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.size = Size::Rate(rate);
        self
    }

    /// The number of bits, which is rounded up to a multiple of 64, in place of a rate: Spark's
    /// `numBits`. The number of hash functions follows from the bits per expected key.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// // BloomFilter.create(1000, 10000)
    /// let filter = SparkBloom::builder().expected_keys(1000).bits(10_000).build()?;
    /// assert_eq!((filter.bit_size(), filter.hash_functions()), (10_048, 7));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "numBits")]
    pub fn bits(mut self, bits: u64) -> Self {
        self.size = Size::Bits(bits);
        self
    }

    /// The version of the format. [`Version::V2`] by default, as in Spark since 4.1.
    ///
    /// ```
    /// use lanebloom_formats::spark::{SparkBloom, Version};
    ///
    /// let builder = SparkBloom::builder().expected_keys(10);
    /// let filter = builder.version(Version::V1).build()?;
    /// assert_eq!(filter.to_bytes()[..4], [0, 0, 0, 1]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// The seed of the hash, 0 by default. Only V2 has one.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let builder = SparkBloom::builder().expected_keys(10);
    /// let filters = [0, 1].map(|seed| builder.clone().seed(seed).build().unwrap());
    /// assert_ne!(filters[0].hash("a"), filters[1].hash("a"));
    /// ```
    pub fn seed(mut self, seed: i32) -> Self {
        self.seed = seed;
        self
    }

    /// Computes the layout by Spark's formulas, and allocates it.
    ///
    /// # Errors
    ///
    /// Fails where Spark throws: if there are no expected keys, the rate is not between 0 and 1, or
    /// there is no bit or more than 137,438,953,408. Also fails if a V1 filter is given a seed,
    /// which Spark ignores; if the bits per key give more than 65,536 hash functions; or if the
    /// allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let builder = SparkBloom::builder();
    /// let error = builder.clone().build().unwrap_err();
    /// assert_eq!(error.to_string(), "the number of expected keys must be at least 1");
    /// assert_eq!(builder.expected_keys(1000).build()?.memory_bytes(), 960);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn build(self) -> Result<SparkBloom, BuildError> {
        let keys = self.keys as u64;
        let bits = match self.size {
            Size::Bits(bits) => bits,
            Size::Rate(rate) if rate > 0.0 && rate < 1.0 => optimal_bits(keys, rate),
            Size::Rate(rate) => return Err(wrong_rate(rate)),
        };
        let layout = SparkLayout::solve(self.version, self.seed, keys, bits)?;
        Ok(SparkBloom {
            flat: Flat::new(layout.words, layout.hash_functions)?,
            layout,
            expected_keys: self.keys,
        })
    }
}

/// Making a filter.
impl SparkBloom {
    /// A builder, for all options.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter == SparkBloom::with_capacity(1000, 0.03)?);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            keys: 0,
            size: Size::Rate(0.03),
            version: Version::default(),
            seed: 0,
        }
    }

    /// An empty filter for `keys` keys at this rate, with the defaults of Spark 4.3: its
    /// `BloomFilter.create(keys, rate)`.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!((filter.expected_keys(), filter.hash_functions()), (1000, 7));
    /// let error = SparkBloom::with_capacity(1000, 1.0).unwrap_err();
    /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "create")]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let builder = Self::builder().expected_keys(keys);
        builder.false_positive_rate(false_positive_rate).build()
    }

    /// A filter that holds `keys` and is sized for as many, or for one if there are none, at this
    /// false-positive rate.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::from_keys(["a", "b"], 0.01)?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// assert_eq!(filter.expected_keys(), 2);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn from_keys<K: SparkKey>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        let keys = keys.into_iter();
        let filter = Self::with_capacity(keys.len().max(1), false_positive_rate)?;
        filter.insert_all(keys);
        Ok(filter)
    }
}

/// Single operations.
impl SparkBloom {
    /// Inserts `key`; returns whether that changed the filter: Spark's `putLong`, `putString` and
    /// `putBinary`.
    ///
    /// The answer can be `false` for a new key, at the false-positive rate. If several threads race
    /// to insert a new key, **at least** one of them gets `true`, and several may: do not take it
    /// for a claim.
    ///
    /// # Memory ordering
    ///
    /// Every change is a `Release`, and `false` ends in an `Acquire`, like a lookup's `true`. A key
    /// that is there already costs loads only.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("put", "putLong", "putString", "putBinary"))]
    #[inline]
    pub fn insert<K: SparkKey + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    /// Spark's `mightContainLong`, `mightContainString` and `mightContainBinary`.
    ///
    /// Never `false` for a key whose insertion happened before.
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&17i64);
    /// assert!(filter.contains(&17i64));
    /// assert!(!filter.contains(&18i64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias(
        "mightContain",
        "mightContainLong",
        "mightContainString",
        "mightContainBinary",
        "might_contain"
    ))]
    #[inline]
    #[must_use]
    pub fn contains<K: SparkKey + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// The hash by which every `SparkBloom` of the same [`seed`](Self::seed) knows `key`.
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash(&b"a"[..])));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: SparkKey + ?Sized>(&self, key: &K) -> Hash {
        hash::hash_of(key, self.layout.seed)
    }

    /// [`insert`](Self::insert) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert_hash(filter.hash("a")));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: Hash) -> bool {
        let changed = match self.layout.version {
            Version::V1 => self.flat.set(IntIndexes::new(hash)),
            Version::V2 => self.flat.set(LongIndexes::new(hash)),
        };
        acquire_if(!changed);
        changed
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert!(!filter.contains_hash(filter.hash("b")));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: Hash) -> bool {
        let found = match self.layout.version {
            Version::V1 => self.flat.holds(IntIndexes::new(hash)),
            Version::V2 => self.flat.holds(LongIndexes::new(hash)),
        };
        acquire_if(found);
        found
    }
}

crate::java::sets::sets!(SparkBloom);

/// Whole filters.
impl SparkBloom {
    /// Adds every key of `other` to this filter; returns whether that changed it: Spark's
    /// `mergeInPlace`. Both may be in use meanwhile.
    ///
    /// Everything that was inserted into `other` before is in this filter afterwards.
    ///
    /// # Errors
    ///
    /// Fails if version, seed, number of bits or number of hash functions differ. Then no key is
    /// added.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// let all = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("merge", "merge_in_place", "mergeInPlace"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.unite(other)
    }

    /// Whether `other` has the same version, seed, number of bits and number of hash functions, as
    /// [`union_from`](Self::union_from) requires.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_compatible(&filter.clone()));
    /// assert!(!filter.is_compatible(&SparkBloom::with_capacity(2000, 0.01)?));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "isCompatible")]
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.check_layout(other).is_ok()
    }
}

/// Same layout and same bits. Beside inserts, reads each word at some moment.
impl PartialEq for SparkBloom {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.flat == other.flat
    }
}

/// A summary; it reads the whole filter.
impl fmt::Debug for SparkBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparkBloom")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("version", &self.layout.version)
            .field("seed", &self.layout.seed)
            .field("bit_size", &self.bit_size())
            .field("hash_functions", &self.layout.hash_functions)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}
