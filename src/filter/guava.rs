//! Guava's `BloomFilter`, bit for bit. [`GuavaBloom`] reads what Guava on a JVM wrote, and writes
//! what Guava reads. It gives the same answers, and is as lock-free as
//! [`ConcurrentBloom`](crate::ConcurrentBloom).
//!
//! Use it for filters that Java programs keep on disk or send. If you own both ends, use a
//! `ConcurrentBloom`: it is faster, since a key's bits lie in one cache line. Here they lie
//! anywhere, and a key of a filter for 1% touches 7 lines.
//!
//! # Example
//!
//! ```
//! use lanebloom::GuavaBloom;
//!
//! // BloomFilter.create(Funnels.stringFunnel(UTF_8), 1000, 0.01), put("ann"), writeTo(out)
//! let filter = GuavaBloom::create(1000, 0.01)?;
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
//! # Which type is which funnel
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
//! | `unencodedCharsFunnel()`, `stringFunnel(UTF_16LE)` | [`UnencodedChars`](crate::UnencodedChars) of a string, or `[u16]` |
//! | `stringFunnel(UTF_16)` | [`Utf16`](crate::Utf16) of a string |
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
//! | `putString(s, UTF_8)`, `putUnencodedChars` | `str`, [`UnencodedChars`](crate::UnencodedChars) |
//!
//! A Java string can hold half a surrogate pair, which `str` cannot. For `unencodedCharsFunnel()`,
//! pass the `[u16]` of its units. For `stringFunnel(UTF_8)`, Java writes a `?` in its place, so
//! several strings are one key.
//!
//! # Moving a service over
//!
//! A filter cannot be converted, neither into another layout nor into another size: it holds bits,
//! not keys. So a service reads the Guava filter and serves from it at once. Meanwhile it fills a
//! [`ConcurrentBloom`](crate::ConcurrentBloom) from the source of truth:
//!
//! ```
//! use lanebloom::{ConcurrentBloom, GuavaBloom};
//! # let store = ["ann", "bob"];
//! # let made_by_java = GuavaBloom::create(1000, 0.01)?;
//! # (&made_by_java).extend(store);
//! # let stream = made_by_java.to_bytes();
//!
//! // Now: the filter that the Java program left.
//! let old = GuavaBloom::read_from(&stream[..], 1 << 30)?;
//! assert!(old.contains("bob"));
//!
//! // Meanwhile: every key from where they come from, and every new one into both. Then the old one is dropped.
//! let new = ConcurrentBloom::builder().expected_keys(1000).build()?;
//! for key in store {
//!     new.insert(key);
//! }
//! assert!(new.contains("ann") && new.contains("bob"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`CacheGuard`](crate::CacheGuard) takes either filter.
//!
//! # Consistency
//!
//! The promises are those of the [crate](crate#consistency), with these differences. (2) If several
//! threads race to insert a key, at least one gets `true`, and several may: a key has many words
//! here, so an insert is never a claim. (6) The rate is Guava's: about the requested one at the
//! expected keys. For `MURMUR128_MITZ_32` it is higher from some hundred million bits on, since
//! that hash has 32 bits.
//!
//! Hashing is Murmur3 with seed 0, as Guava's. **Strangers can make keys that collide**: [the
//! module `hash`](crate::hash) says more.

pub(crate) mod layout;
mod stream;

use crate::bits;
use crate::error::{BuildError, IncompatibleError, IncompatibleErrorKind};
use crate::flat::{Flat, each_one, first};
use crate::funnel::Funnel;
use crate::hash::{Murmur3, assert_same_length};
use crate::kernel::scalar::unpack;
use crate::sizing::{LINE_BYTES, LINE_WORDS};
use crate::source::{assert_bitmap_length, gathered};
use core::fmt;
use layout::{Hash, Layout, Places};

/// Guava's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`] type; [the module](self) says which type stands for which of Guava's
/// funnels. All operations take `&self`: share the filter as `Arc<GuavaBloom>`.
///
/// # Examples
///
/// ```
/// use lanebloom::GuavaBloom;
///
/// // 3 and 42 from a JVM: BloomFilter.create(Funnels.integerFunnel(), 2, 0.01), writeTo.
/// let filter = GuavaBloom::create(2, 0.01)?;
/// assert!(filter.insert(&3i32) && filter.insert(&42i32));
/// assert!(!filter.insert(&42i32));
/// assert!(filter.contains(&3i32) && !filter.contains(&4i32));
/// assert_eq!(filter.to_bytes(), [1, 7, 0, 0, 0, 1, 0x28, 0x08, 0x08, 0xa8, 0x08, 0x0a, 0x88, 0x08]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub struct GuavaBloom {
    flat: Flat,
    layout: Layout,
}

/// How a hash becomes the places of bits: the constants of Guava's `BloomFilterStrategies`, which
/// its streams name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, ordinal 0: what Guava made before version 15, from 64 bits of the hash
    /// by 32-bit arithmetic.
    Mitz32,
    /// `MURMUR128_MITZ_64`, ordinal 1: what Guava makes.
    #[default]
    Mitz64,
}

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
/// Both formulas give the same number except for tiny filters, and for rates at which the two sides
/// of a rounding are about equally good. Filters are only [compatible](GuavaBloom::is_compatible)
/// if they have the same number: choose the formula of the Guava at the other end.
///
/// # Examples
///
/// ```
/// use lanebloom::guava::{GuavaBloom, HashFunctions};
///
/// let functions = |keys, formula| -> Result<u8, lanebloom::BuildError> {
///     let builder = GuavaBloom::builder().expected_keys(keys).false_positive_rate(0.01);
///     Ok(builder.hash_functions(formula).build()?.hash_functions())
/// };
/// assert_eq!((functions(1, HashFunctions::ByBits)?, functions(1, HashFunctions::ByRate)?), (6, 7));
/// assert_eq!((functions(1000, HashFunctions::ByBits)?, functions(1000, HashFunctions::ByRate)?), (7, 7));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashFunctions {
    /// `max(1, round(bits / keys * ln 2))`: Guava up to 33.3, from 2011 to 2024.
    ByBits,
    /// `max(1, round(-ln rate / ln 2))`: Guava since the end of 2024 (33.4).
    #[default]
    ByRate,
}

/// Sizes a [`GuavaBloom`]; made by [`GuavaBloom::builder`].
///
/// # Examples
///
/// ```
/// use lanebloom::guava::{GuavaBloom, Strategy};
///
/// let filter = GuavaBloom::builder().expected_keys(1_000_000).strategy(Strategy::Mitz32).build()?;
/// assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
/// # Ok::<(), lanebloom::BuildError>(())
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
    /// `expectedInsertions`. 0 means 1, and is the default.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::builder().expected_keys(1000).build()?.bit_size(), 7360);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "expectedInsertions")]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate at the expected keys: Guava's `fpp`, between 0 and 1, both excluded.
    /// 0.03 by default, as Guava's.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(1000).false_positive_rate(1e-6).build()?;
    /// assert_eq!((filter.bit_size(), filter.hash_functions()), (28_800, 20));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How a hash becomes the places of bits. [`Strategy::Mitz64`] by default, as Guava's.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, Strategy};
    ///
    /// let filter = GuavaBloom::builder().expected_keys(1000).strategy(Strategy::Mitz32).build()?;
    /// assert_eq!(filter.to_bytes()[0], 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The formula for the number of hash functions. [`HashFunctions::ByRate`] by default, as of
    /// today's Guava.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, HashFunctions};
    ///
    /// let builder = GuavaBloom::builder().expected_keys(1).false_positive_rate(0.04);
    /// assert_eq!(builder.clone().build()?.hash_functions(), 5);
    /// assert_eq!(builder.hash_functions(HashFunctions::ByBits).build()?.hash_functions(), 4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_functions(mut self, formula: HashFunctions) -> Self {
        self.hash_functions = formula;
        self
    }

    /// Computes the layout by Guava's formulas, which takes a few microseconds, and allocates it.
    ///
    /// # Errors
    ///
    /// Fails where Guava throws: if the rate is not between 0 and 1, or the formulas give no bit
    /// (few keys at a rate near 1), more than 137,438,953,408 bits or more than 255 hash functions.
    /// It also fails if the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(500).build()?;
    /// assert_eq!(filter.bit_size(), 3712);
    ///
    /// let error = GuavaBloom::builder().expected_keys(1000).false_positive_rate(1e-80).build().unwrap_err();
    /// assert_eq!(error.to_string(), "a rate of 1e-80 takes 266 hash functions, more than Guava's limit of 255");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<GuavaBloom, BuildError> {
        let layout = Layout::solve(self.keys as u64, self.rate, self.strategy, self.hash_functions);
        GuavaBloom::with_layout(layout.map_err(BuildError)?)
    }

    /// Builds the filter and inserts the keys: Guava's `toBloomFilter` collector.
    ///
    /// # Errors
    ///
    /// As of [`build`](Self::build).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(100).collect(["ann", "bob"])?;
    /// assert!(filter.contains("ann") && filter.contains("bob") && !filter.contains("eve"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "toBloomFilter")]
    pub fn collect<K: Funnel>(self, keys: impl IntoIterator<Item = K>) -> Result<GuavaBloom, BuildError> {
        let filter = self.build()?;
        (&filter).extend(keys);
        Ok(filter)
    }
}

impl GuavaBloom {
    /// A filter for `expected_keys` keys at a false-positive rate of `rate`: Guava's `create`, with
    /// the defaults of the [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// As of [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// assert_eq!((filter.bit_size(), filter.hash_functions()), (9600, 7));
    /// let error = GuavaBloom::create(1000, 1.0).unwrap_err();
    /// assert_eq!(error.to_string(), "false-positive rate 1 is not between 0 and 1, both excluded");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn create(expected_keys: usize, rate: f64) -> Result<Self, BuildError> {
        Self::builder()
            .expected_keys(expected_keys)
            .false_positive_rate(rate)
            .build()
    }

    /// A builder with Guava's defaults: a rate of 0.03, `MURMUR128_MITZ_64`, and today's formula
    /// for the number of hash functions.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter == GuavaBloom::create(1000, 0.03)?);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            keys: 0,
            rate: 0.03,
            strategy: Strategy::default(),
            hash_functions: HashFunctions::default(),
        }
    }

    fn with_layout(layout: Layout) -> Result<Self, BuildError> {
        Ok(Self {
            flat: Flat::new(layout.words, layout.hash_functions.into())?,
            layout,
        })
    }

    #[cfg(feature = "std")]
    fn of(layout: Layout, bits: bits::Bits) -> Self {
        Self {
            flat: Flat::of(bits, layout.words, layout.hash_functions.into()),
            layout,
        }
    }
}

/// Single operations.
impl GuavaBloom {
    /// Inserts `key`; returns whether this call changed the filter: Guava's `put`.
    ///
    /// `true` means that the key was not in the filter before. `false` means that the key was
    /// there, or is a false positive. If several threads race to insert a key that the filter does
    /// not hold, **at least** one of them gets `true`. Several may, each as the first in another
    /// bit. (Guava's documentation says that `true` means the first insertion. Its code does not
    /// keep that promise either.)
    ///
    /// # Memory ordering
    ///
    /// Setting a bit is a `Release`, and `false` ends in an `Acquire`: then everything that the
    /// threads that set these bits had done before is visible. A key that was already there costs
    /// loads only; the insert writes nothing to its lines.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "put")]
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let hash = hash(key);
        let changed = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.set(Places::<true>::new(hash)),
            Strategy::Mitz32 => self.flat.set(Places::<false>::new(hash)),
        };
        bits::acquire_if(!changed);
        changed
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    /// Guava's `mightContain`.
    ///
    /// Never `false` for a key whose insertion happened before.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`: everything that the threads which set these bits had done
    /// before is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// filter.insert(&17i64);
    /// assert!(filter.contains(&17i64));
    /// assert!(!filter.contains(&18i64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "mightContain")]
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let hash = hash(key);
        let found = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.holds(Places::<true>::new(hash)),
            Strategy::Mitz32 => self.flat.holds(Places::<false>::new(hash)),
        };
        bits::acquire_if(found);
        found
    }
}

/// Batches: the same answers as the single calls in order. In a filter beyond the caches the lines
/// of many keys are fetched ahead, all at once.
impl GuavaBloom {
    /// Inserts every key; returns how many of them changed the filter.
    ///
    /// Results are those of [`insert`](Self::insert) in order, duplicates within the batch
    /// included.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls; there is one `Acquire` for many keys, before any of their answers is
    /// given out.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        let mut sum = 0;
        self.insert_each(keys.len(), |i| hash(&keys[i]), |_, _, changed| sum += ones(changed));
        sum
    }

    /// [`insert_batch`](Self::insert_batch) that also writes for every key whether it changed the
    /// filter to the same place of `changed`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut first_seen), 2);
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], changed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), changed.len());
        let mut sum = 0;
        self.insert_each(
            keys.len(),
            |i| hash(&keys[i]),
            |at, len, bitmap| {
                unpack(&[bitmap], &mut changed[at..at + len]);
                sum += ones(bitmap);
            },
        );
        sum
    }

    /// Writes for every key whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls; there is one `Acquire` for many keys, before any of their answers is
    /// given out.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.contains_each(keys, |at, len, found| unpack(&[found], &mut out[at..at + len]));
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap: bit `i % 64` of `out[i / 64]` is the
    /// answer for key `i`. The bits after the last key are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        out.fill(0);
        self.contains_each(keys, |at, _, found| out[at / 64] |= found << (at % 64));
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        self.contains_each(keys, |at, len, found| {
            each_one(!found & first(len), |i| each(at + i));
        });
    }

    /// Looks keys up; calls `each` with where a window of them begins, its length, and the bitmap
    /// of its answers.
    fn contains_each<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize, usize, u64)) {
        let hash = |i: usize| hash(&keys[i]);
        match self.layout.strategy {
            Strategy::Mitz64 => self
                .flat
                .contains_each(keys.len(), |i| Places::<true>::new(hash(i)), each),
            Strategy::Mitz32 => self
                .flat
                .contains_each(keys.len(), |i| Places::<false>::new(hash(i)), each),
        }
    }

    /// Inserts `len` keys by their hashes; calls `each` with where a window of them begins, its
    /// length, and the bitmap of those that changed the filter.
    fn insert_each(&self, len: usize, mut hash: impl FnMut(usize) -> Hash, each: impl FnMut(usize, usize, u64)) {
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.insert_each(len, |i| Places::<true>::new(hash(i)), each),
            Strategy::Mitz32 => self.flat.insert_each(len, |i| Places::<false>::new(hash(i)), each),
        }
    }
}

#[inline(always)]
fn hash<K: Funnel + ?Sized>(key: &K) -> Hash {
    Murmur3::with_seed(0).hash128(key)
}

fn ones(bitmap: u64) -> usize {
    bitmap.count_ones() as usize
}

/// The whole filter.
impl GuavaBloom {
    /// Adds every key of `other` to this filter; returns whether that changed it. Both may be in
    /// use meanwhile. Guava's `putAll`.
    ///
    /// Everything that was inserted into `other` before is in this filter afterwards. An insert
    /// into `other` at the same time may be.
    ///
    /// # Errors
    ///
    /// If the filters are not [compatible](Self::is_compatible), or are the same filter. Nothing is
    /// changed then.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s bits and `Release` on these: a thread that finds a key here sees what
    /// its inserter there had done before. `false` ends in an `Acquire`, as in
    /// [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let all = GuavaBloom::create(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    ///
    /// let error = all.union_from(&GuavaBloom::create(1000, 0.02)?).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the other Guava filter's layout differs: MURMUR128_MITZ_64, 8192 bits, 6 hash functions there, \
    ///      MURMUR128_MITZ_64, 9600 bits, 7 hash functions here"
    /// );
    /// assert_eq!(all.union_from(&all).unwrap_err().to_string(), "a filter cannot be united with itself");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "putAll")]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        if core::ptr::eq(self, other) {
            return Err(IncompatibleError(IncompatibleErrorKind::Itself));
        }
        if self.layout != other.layout {
            return Err(IncompatibleError(IncompatibleErrorKind::Guava {
                ours: self.layout,
                theirs: other.layout,
            }));
        }
        let changed = self.flat.bits.or_from(&other.flat.bits, 0..self.flat.bits.blocks());
        bits::acquire_if(!changed);
        Ok(changed)
    }

    /// Whether the two filters can be [united](Self::union_from). They can if they are not the same
    /// filter, and have the same strategy, number of bits and number of hash functions. The filters
    /// do not tell whether the same funnel wrote their keys.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// assert!(filter.is_compatible(&GuavaBloom::create(999, 0.01)?)); // as many longs
    /// assert!(!filter.is_compatible(&GuavaBloom::create(2000, 0.01)?));
    /// assert!(!filter.is_compatible(&filter));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "isCompatible")]
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        !core::ptr::eq(self, other) && self.layout == other.layout
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.try_clone()? == filter);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "copy")]
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            flat: self.flat.try_clone()?,
            layout: self.layout,
        })
    }
}

/// What the filter is, and how full. Figures from the bits read the whole filter: beside inserts,
/// each word as it was at some moment meanwhile.
impl GuavaBloom {
    /// How a hash becomes the places of bits.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, Strategy};
    ///
    /// assert_eq!(GuavaBloom::create(1000, 0.01)?.strategy(), Strategy::Mitz64);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.layout.strategy
    }

    /// The number of hash functions, 1 to 255: the bits of a key (two may be the same).
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::create(1000, 1e-3)?.hash_functions(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u8 {
        self.layout.hash_functions
    }

    /// The number of bits, a multiple of 64. (Guava does not make it public.)
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::create(1_000_000, 0.03)?.bit_size(), 7_298_496);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "bitSize")]
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        64 * self.layout.words as u64
    }

    /// Bytes of memory that the bits take, in whole lines of 64.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::create(1000, 0.01)?.memory_bytes(), 1216); // 9600 bits are 1200 bytes
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.flat.bits.blocks() * LINE_BYTES
    }

    /// The false-positive rate of the filter as it is: Guava's `expectedFpp`, the fraction of the
    /// bits that are set to the power of the number of hash functions.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(100_000, 0.01)?;
    /// assert_eq!(filter.expected_fpp(), 0.0);
    /// (&filter).extend(0..100_000);
    /// assert!((0.0098..0.0102).contains(&filter.expected_fpp()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "expectedFpp")]
    #[must_use]
    pub fn expected_fpp(&self) -> f64 {
        self.layout.rate_of(self.ones())
    }

    /// An estimate of the number of distinct keys inserted, from the fraction of the bits that are
    /// set: Guava's `approximateElementCount`. For a full filter, where Guava throws, it returns
    /// `u64::MAX`.
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// let filter = GuavaBloom::create(100_000, 0.01)?;
    /// assert_eq!(filter.approximate_element_count(), 0);
    /// (&filter).extend(0..50_000);
    /// assert!(filter.approximate_element_count().abs_diff(50_000) < 500);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "approximateElementCount")]
    #[must_use]
    pub fn approximate_element_count(&self) -> u64 {
        self.layout.keys_for(self.ones())
    }

    fn ones(&self) -> u64 {
        let ones = self.flat.ones();
        bits::acquire();
        ones
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts if the allocation
/// fails; [`try_clone`](GuavaBloom::try_clone) does not.
impl Clone for GuavaBloom {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<[u64; LINE_WORDS]>(self.flat.bits.blocks());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// Same strategy, same number of hash functions and same bits: Guava's `equals`, which compares the
/// funnels too. Beside inserts, each word is compared as it was at some moment meanwhile.
impl PartialEq for GuavaBloom {
    fn eq(&self, other: &Self) -> bool {
        let same = self.layout == other.layout && self.flat.bits.words().eq(other.flat.bits.words());
        bits::acquire();
        same
    }
}

/// A summary; it reads the whole filter for the rate.
impl fmt::Debug for GuavaBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuavaBloom")
            .field("strategy", &self.strategy())
            .field("bit_size", &self.bit_size())
            .field("hash_functions", &self.hash_functions())
            .field("expected_fpp", &self.expected_fpp())
            .finish_non_exhaustive()
    }
}

/// Inserts the keys in batches. For `&GuavaBloom` too, so that a shared filter can be extended.
///
/// ```
/// use lanebloom::GuavaBloom;
///
/// let mut filter = GuavaBloom::create(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32) && !filter.contains(&10u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel> Extend<K> for GuavaBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl<K: Funnel> Extend<K> for &GuavaBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        gathered::<EXTENDED, _>(keys.into_iter().map(|key| hash(&key)), |hashes| {
            self.insert_each(hashes.len(), |i| hashes[i], |_, _, _| ());
        });
    }
}

/// Keys of an iterator that are hashed, 8 KiB on the stack, before they are inserted.
const EXTENDED: usize = 512;
