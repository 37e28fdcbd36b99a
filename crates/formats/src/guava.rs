//! Guava's `BloomFilter`, bit for bit. [`GuavaBloom`] reads what Guava on a JVM wrote, and writes
//! what Guava reads. It gives the same answers, and is as lock-free as
//! [`ConcurrentBloom`](lanebloom::ConcurrentBloom).
//!
//! Use it for filters that Java programs keep on disk or send. If you own both ends, use a
//! `ConcurrentBloom`: it is faster, since a key's bits lie in one cache line. Here they lie
//! anywhere, and a key of a filter for 1% touches 7 lines.
//!
//! # Example
//!
//! ```
//! use lanebloom_formats::GuavaBloom;
//!
//! // BloomFilter.create(Funnels.stringFunnel(UTF_8), 1000, 0.01),
//! // put("ann"), writeTo(out)
//! let filter = GuavaBloom::with_capacity(1000, 0.01)?;
//! filter.insert("ann");
//! let mut stream = Vec::new();
//! filter.write_to(&mut stream)?;
//!
//! // BloomFilter.readFrom(in, Funnels.stringFunnel(UTF_8)), mightContain
//! let copy = GuavaBloom::read_from(&stream[..], 1 << 20)?;
//! assert!(copy.contains("ann") && !copy.contains("eve"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types and funnels
//!
//! A stream does not say which funnel its filter was made with. Choose the Rust type that yields
//! the same bytes as the funnel:
//!
//! | Guava's funnel | Rust's key |
//! |---|---|
//! | `integerFunnel()` | `i32`, `u32` |
//! | `longFunnel()` | `i64`, `u64` |
//! | `byteArrayFunnel()` | `[u8]`, `Vec<u8>`, `[u8; N]` |
//! | `stringFunnel(UTF_8)` | `str`, `String` |
//! | `unencodedCharsFunnel()`, `stringFunnel(UTF_16LE)` | [`UnencodedChars`] of a string, or `[u16]` |
//! | `stringFunnel(UTF_16)` | [`Utf16`] of a string |
//! | `stringFunnel` of any other charset | `[u8]`, the bytes in that charset |
//! | `sequentialFunnel(f)` | slices, arrays and `Vec`s of what `f` is; a tuple of several of it |
//! | a funnel of your own | a tuple of its parts, or a [`Funnel`] of your own |
//!
//! The parts of a funnel of your own, in its order:
//!
//! | `PrimitiveSink` | Rust's part |
//! |---|---|
//! | `putByte` | `i8`, `u8` |
//! | `putShort` | `i16`, `u16` |
//! | `putChar` | `u16` (Rust's `char` is another thing) |
//! | `putInt`, `putLong` | `i32` or `u32`, `i64` or `u64` |
//! | `putFloat`, `putDouble` | `f32::to_bits`, `f64::to_bits` |
//! | `putBoolean` | `bool` |
//! | `putBytes` | `[u8]` |
//! | `putString(s, UTF_8)`, `putUnencodedChars` | `str`, [`UnencodedChars`] |
//!
//! A Java string can hold half a surrogate pair, which `str` cannot. For `unencodedCharsFunnel()`,
//! pass the `[u16]` of its units. For `stringFunnel(UTF_8)`, Java writes a `?` in its place, so
//! several strings are one key.
//!
//! # Moving a service over
//!
//! A filter holds bits, not keys, so it cannot be converted into another layout or size. A service
//! reads the Guava filter and serves from it at once. Meanwhile it fills a
//! [`ConcurrentBloom`](lanebloom::ConcurrentBloom) from the source of truth:
//!
//! ```
//! use lanebloom::ConcurrentBloom;
//! use lanebloom_formats::GuavaBloom;
//! # let store = ["ann", "bob"];
//! # let made_by_java = GuavaBloom::with_capacity(1000, 0.01)?;
//! # (&made_by_java).extend(store);
//! # let stream = made_by_java.to_bytes();
//!
//! // Now: the filter that the Java program left.
//! let old = GuavaBloom::read_from(&stream[..], 1 << 30)?;
//! assert!(old.contains("bob"));
//!
//! // Meanwhile: every key of the source, and every new one into both filters.
//! // Then drop the old one.
//! let new = ConcurrentBloom::with_capacity(1000, 0.01)?;
//! new.insert_all(store);
//! assert!(new.contains("ann") && new.contains("bob"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `CacheGuard` of the crate `lanebloom-guard` takes either filter.
//!
//! # Consistency
//!
//! The promises are those of [lanebloom](lanebloom#consistency), with these differences. (2) If
//! several threads race to insert a key, at least one gets `true`, and several may: a key has many
//! words here, so an insert is never a claim. (6) The rate is Guava's: about the requested one at
//! the expected keys. For `MURMUR128_MITZ_32` it is higher from some hundred million bits on, since
//! that hash has 32 bits.
//!
//! Hashing is Murmur3 with seed 0, as Guava's. **Strangers can make keys that collide**: [the
//! module `hash`](lanebloom::hash) says more.

mod batch;
pub(crate) mod error;
mod figures;
pub(crate) mod layout;
#[cfg(feature = "serde")]
mod serde;
mod stream;
mod strings;

use crate::flat::Flat;
use alloc::format;
use core::fmt;
use lanebloom::internal::{acquire, acquire_if, incompatible};
use lanebloom::{BuildError, Funnel, IncompatibleError, Murmur3};
use layout::{GuavaLayout, WideIndexes, narrow_indexes};
pub use layout::{Hash, HashFunctions, Strategy};
pub use strings::{UnencodedChars, Utf16};

/// Guava's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`] type; [the module](self) says which type stands for which of Guava's
/// funnels. All operations but [`clear`](Self::clear) and
/// [`intersection_from`](Self::intersection_from) take `&self`: share the filter as
/// `Arc<GuavaBloom>`.
///
/// | Guava | here |
/// |---|---|
/// | `create` | [`with_capacity`](Self::with_capacity), [`builder`](Self::builder) |
/// | `put`, `mightContain` | [`insert`](Self::insert), [`contains`](Self::contains) |
/// | `putAll`, `isCompatible` | [`union_from`](Self::union_from), [`is_compatible`](Self::is_compatible) |
/// | `expectedFpp` | [`current_false_positive_rate`](Self::current_false_positive_rate) |
/// | `approximateElementCount` | [`estimated_len`](Self::estimated_len); `usize::MAX` for a full filter, where Guava throws |
/// | `toBloomFilter` | [`from_keys`](Self::from_keys) |
/// | `copy`, `equals` | `clone`, `==` |
/// | `writeTo`, `readFrom` | [`write_to`](Self::write_to), [`read_from`](Self::read_from) |
///
/// # Batches
///
/// A batch gives the answers of single calls in order, duplicates within the batch included, many
/// keys at a time. Methods named `_hashes` take hashes of [`hash`](Self::hash) or
/// [`hash_batch`](Self::hash_batch), so that a caller can hash once for several filters. Methods
/// named `_flagged` write the answer for each key to the same place of a slice, methods named
/// `_bitmap` to a bit: bit `i % 64` of word `i / 64`.
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
/// // From a JVM: BloomFilter.create(Funnels.integerFunnel(), 2, 0.01),
/// // put(3), put(42), writeTo.
/// let stream = [1, 7, 0, 0, 0, 1, 40, 8, 8, 168, 8, 10, 136, 8];
/// let filter = lanebloom_formats::GuavaBloom::with_capacity(2, 0.01)?;
/// assert!(filter.insert(&3i32) && filter.insert(&42i32));
/// assert!(!filter.insert(&42i32));
/// assert!(filter.contains(&3i32) && !filter.contains(&4i32));
/// assert_eq!(filter.to_bytes(), stream);
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub struct GuavaBloom {
    flat: Flat,
    layout: GuavaLayout,
    expected_keys: usize,
}

/// Sizes a [`GuavaBloom`]; made by [`GuavaBloom::builder`].
///
/// The defaults are Guava's: one key, a rate of 0.03, `MURMUR128_MITZ_64`, and today's formula for
/// the number of hash functions.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::guava::{GuavaBloom, Strategy};
///
/// let builder = GuavaBloom::builder().expected_keys(1_000_000);
/// let filter = builder.strategy(Strategy::Mitz32).build()?;
/// assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    keys: usize,
    rate: f64,
    strategy: Strategy,
    hash_functions: HashFunctions,
}

impl Builder {
    /// The number of distinct keys up to which the false-positive rate holds: Guava's
    /// `expectedInsertions`. 0 means 1.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(50_000).build()?;
    /// filter.insert_all(0..50_000u32);
    /// assert!((0.029..0.031).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "expectedInsertions")]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate with the expected keys, between 0 and 1, both excluded: Guava's
    /// `fpp`. 0.03 by default, as Guava's.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().false_positive_rate(1e-3).build()?;
    /// assert_eq!(filter.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How a hash becomes the indexes of bits. [`Strategy::Mitz64`] by default, as Guava's.
    ///
    /// ```
    /// use lanebloom_formats::guava::{GuavaBloom, Strategy};
    ///
    /// let filter = GuavaBloom::builder().strategy(Strategy::Mitz32).build()?;
    /// assert_eq!(filter.to_bytes()[0], 0);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The formula for the number of hash functions. [`HashFunctions::ByRate`] by default, as in
    /// today's Guava.
    ///
    /// ```
    /// use lanebloom_formats::guava::{GuavaBloom, HashFunctions};
    ///
    /// let builder = GuavaBloom::builder().expected_keys(1).false_positive_rate(0.04);
    /// let older = builder.clone().hash_functions(HashFunctions::ByBits);
    /// assert_eq!(builder.build()?.hash_functions(), 5);
    /// assert_eq!(older.build()?.hash_functions(), 4);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_functions(mut self, formula: HashFunctions) -> Self {
        self.hash_functions = formula;
        self
    }

    /// Computes the layout by Guava's formulas, and allocates it.
    ///
    /// # Errors
    ///
    /// Fails where Guava throws: if the rate is not between 0 and 1, or the formulas give no bit
    /// (few keys at a rate near 1), more than 137,438,953,408 bits or more than 255 hash functions.
    /// Also fails if the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let builder = GuavaBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.memory_bytes(), 960);
    ///
    /// let error = builder.false_positive_rate(1e-80).build().unwrap_err();
    /// let text = "a rate of 1e-80 takes 266 hash functions, ";
    /// assert!(error.to_string().starts_with(text));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn build(self) -> Result<GuavaBloom, BuildError> {
        let layout = GuavaLayout::solve(self.keys as u64, self.rate, self.strategy, self.hash_functions)?;
        GuavaBloom::with_layout(layout, self.keys.max(1))
    }
}

/// Making a filter.
impl GuavaBloom {
    /// A builder, for all options.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter == GuavaBloom::with_capacity(1000, 0.03)?);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            keys: 0,
            rate: 0.03,
            strategy: Strategy::default(),
            hash_functions: HashFunctions::default(),
        }
    }

    /// An empty filter for `keys` keys at this rate, with Guava's defaults.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!((filter.expected_keys(), filter.hash_functions()), (1000, 7));
    /// let error = GuavaBloom::with_capacity(1000, 1.0).unwrap_err();
    /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "create")]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let builder = Self::builder().expected_keys(keys);
        builder.false_positive_rate(false_positive_rate).build()
    }

    /// A filter that holds `keys` and is sized for as many, at this false-positive rate.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::from_keys(["a", "b"], 0.01)?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// assert_eq!(filter.expected_keys(), 2);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "toBloomFilter")]
    pub fn from_keys<K: Funnel>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        let keys = keys.into_iter();
        let filter = Self::with_capacity(keys.len(), false_positive_rate)?;
        filter.insert_all(keys);
        Ok(filter)
    }

    fn with_layout(layout: GuavaLayout, expected_keys: usize) -> Result<Self, BuildError> {
        Ok(Self {
            flat: Flat::new(layout.words, layout.hash_functions.into())?,
            layout,
            expected_keys,
        })
    }
}

/// Single operations.
impl GuavaBloom {
    /// Inserts `key`; returns whether that changed the filter: Guava's `put`.
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
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "put")]
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    /// Guava's `mightContain`.
    ///
    /// Never `false` for a key whose insertion happened before.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&17u64);
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("mightContain", "might_contain"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// The hash by which every `GuavaBloom` knows `key`.
    ///
    /// ```
    /// use lanebloom::Murmur3;
    ///
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.hash("a"), Murmur3::with_seed(0).hash128("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> Hash {
        Murmur3::with_seed(0).hash128(key)
    }

    /// [`insert`](Self::insert) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert_hash(filter.hash("a")));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: Hash) -> bool {
        let changed = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.set(WideIndexes::new(hash)),
            Strategy::Mitz32 => self.flat.set(narrow_indexes(hash)),
        };
        acquire_if(!changed);
        changed
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert!(!filter.contains_hash(filter.hash("b")));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: Hash) -> bool {
        let found = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.holds(WideIndexes::new(hash)),
            Strategy::Mitz32 => self.flat.holds(narrow_indexes(hash)),
        };
        acquire_if(found);
        found
    }
}

crate::java::sets::sets!(GuavaBloom);

/// Whole filters.
impl GuavaBloom {
    /// Adds every key of `other` to this filter; returns whether that changed it. Both may be in
    /// use meanwhile.
    ///
    /// Everything that was inserted into `other` before is in this filter afterwards.
    ///
    /// # Errors
    ///
    /// Fails if strategy, number of bits or number of hash functions differ. Fails if `other` is
    /// this filter, as in Guava. Then no key is added.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// let all = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a") && all.union_from(&all).is_err());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        self.unite(other)
    }

    /// Whether `other` is another filter of the same strategy, number of bits and number of hash
    /// functions, as [`union_from`](Self::union_from) requires.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_compatible(&filter.clone()));
    /// assert!(!filter.is_compatible(&GuavaBloom::with_capacity(2000, 0.01)?));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "isCompatible")]
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.check_union(other).is_ok()
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        if core::ptr::eq(self, other) {
            return Err(incompatible("a filter cannot be united with itself".into()));
        }
        self.check_layout(other)
    }
}

/// Same layout and same bits. Beside inserts, reads each word at some moment.
impl PartialEq for GuavaBloom {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.flat == other.flat
    }
}

/// A summary; it reads the whole filter.
impl fmt::Debug for GuavaBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuavaBloom")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("strategy", &self.layout.strategy)
            .field("bit_size", &self.bit_size())
            .field("hash_functions", &self.layout.hash_functions)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}
