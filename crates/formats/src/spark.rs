//! Spark's `BloomFilter` (`org.apache.spark.util.sketch`), bit for bit. [`SparkBloom`] reads what
//! Spark on a JVM wrote, and writes what Spark reads, in both versions of its format. It gives the
//! same answers, and is as lock-free as [`ConcurrentBloom`](lanebloom::ConcurrentBloom).
//!
//! Use it for filters that Spark jobs make or take: those of `df.stat.bloomFilter`, written by
//! `writeTo`. [Do not use it if you own both ends](crate#when-not-to-use-it).
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
//! [`builder`](JavaBloom::builder).
//!
//! # Consistency
//!
//! The promises are those of [`JavaBloom`]. The rate is Spark's: about the requested one at the
//! expected keys. For V1 it is higher from some hundred million bits on, since its indexes have 31
//! bits.
//!
//! Hashing is 32-bit Murmur3 under a seed that the stream shows. **Strangers can make keys that
//! collide**: [the module `hash`](lanebloom::hash) says more.

mod hash;
mod layout;

use crate::{JavaBloom, JavaBuilder};
pub use hash::{Hash, SparkKey};
pub use layout::{Spark, Version};

/// Spark's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are [`SparkKey`]s: integers, strings and bytes. [`JavaBloom`] says what batches and memory
/// ordering are.
///
/// | Spark | here |
/// |---|---|
/// | `create` | [`with_capacity`](JavaBloom::with_capacity), [`builder`](JavaBloom::builder) |
/// | `putLong`, `putString`, `putBinary`, `put` | [`insert`](JavaBloom::insert) |
/// | `mightContainLong` and so on | [`contains`](JavaBloom::contains) |
/// | `mergeInPlace`, `isCompatible` | [`union_from`](JavaBloom::union_from), [`with`](JavaBloom::with) |
/// | `intersectInPlace` | [`intersection_from`](crate::JavaExclusive::intersection_from) |
/// | `bitSize`, `expectedFpp` | [`bit_size`](JavaBloom::bit_size), [`statistics`](JavaBloom::statistics) |
/// | `equals` | `==` |
/// | `writeTo`, `readFrom` | [`write_to`](JavaBloom::write_to), [`read_from`](JavaBloom::read_from), [`from_bytes`](JavaBloom::from_bytes) |
///
/// ```
/// // From Spark 4.3: BloomFilter.create(2, 0.01),
/// // putLong(3), putLong(42), writeTo.
/// let header = [0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1];
/// let long = [0, 4, 0, 0, 0, 0x96, 0x49, 0x20];
/// let filter = lanebloom_formats::SparkBloom::with_capacity(2, 0.01)?;
/// assert!(filter.insert(&3i64) && filter.insert(&42i64));
/// assert!(!filter.insert(&42i64));
/// assert!(filter.contains(&3i64) && !filter.contains(&4i64));
/// assert_eq!(filter.to_bytes(), [&header[..], &long].concat());
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub type SparkBloom = JavaBloom<Spark>;

/// Sizes a [`SparkBloom`]. By default at a rate of 0.03, of [`Version::V2`], with the seed 0. The
/// number of keys has no default.
pub type Builder = JavaBuilder<Spark>;

/// Only for Spark.
impl Builder {
    /// The number of bits, which is rounded up to a multiple of 64, in place of a rate: Spark's
    /// `numBits`. The number of hash functions follows from the bits per expected key. It replaces
    /// [`false_positive_rate`](JavaBuilder::false_positive_rate); of the two, the last call counts.
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
        self.sizing = Some(bits);
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
        self.format.version = version;
        self
    }

    /// The seed of the hash, 0 by default. Only V2 has one.
    ///
    /// ```
    /// let builder = lanebloom_formats::SparkBloom::builder().expected_keys(10);
    /// let filters = [0, 1].map(|seed| builder.clone().seed(seed).build().unwrap());
    /// assert_ne!(filters[0].hash("a"), filters[1].hash("a"));
    /// ```
    pub fn seed(mut self, seed: i32) -> Self {
        self.format.seed = seed;
        self
    }
}

/// Only for Spark.
impl SparkBloom {
    /// The version of Spark's format.
    ///
    /// ```
    /// use lanebloom_formats::spark::{SparkBloom, Version};
    ///
    /// assert_eq!(SparkBloom::with_capacity(1000, 0.01)?.version(), Version::V2);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.format.version
    }

    /// The seed of the hash; 0 for V1, which has none.
    ///
    /// ```
    /// let builder = lanebloom_formats::SparkBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.seed(), 0);
    /// assert_eq!(builder.seed(-7).build()?.seed(), -7);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn seed(&self) -> i32 {
        self.layout.format.seed
    }
}
