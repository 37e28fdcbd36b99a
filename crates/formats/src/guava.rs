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
//! | a funnel of your own | a tuple of its parts, or a [`Funnel`](crate::Funnel) of your own |
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

pub(crate) mod layout;
mod strings;

use crate::JavaBloom;
use lanebloom::BuildError;
pub use layout::{Guava, Hash, HashFunctions, Strategy};
pub use strings::{UnencodedChars, Utf16};

/// Guava's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`](crate::Funnel) type; [the module](self) says which type stands for which
/// of Guava's funnels. [`JavaBloom`] says what batches and memory ordering are.
///
/// | Guava | here |
/// |---|---|
/// | `create` | [`with_capacity`](JavaBloom::with_capacity), [`builder`](GuavaBloom::builder) |
/// | `put`, `mightContain` | [`insert`](JavaBloom::insert), [`contains`](JavaBloom::contains) |
/// | `putAll`, `isCompatible` | [`union_from`](JavaBloom::union_from), [`is_compatible`](JavaBloom::is_compatible) |
/// | `expectedFpp` | [`current_false_positive_rate`](JavaBloom::current_false_positive_rate) |
/// | `approximateElementCount` | [`estimated_len`](JavaBloom::estimated_len); `usize::MAX` for a full filter, where Guava throws |
/// | `toBloomFilter` | [`from_keys`](JavaBloom::from_keys) |
/// | `copy`, `equals` | `clone`, `==` |
/// | `writeTo`, `readFrom` | [`write_to`](JavaBloom::write_to), [`read_from`](JavaBloom::read_from) |
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
pub type GuavaBloom = JavaBloom<Guava>;

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
        let layout = layout::solve(self.keys as u64, self.rate, self.strategy, self.hash_functions)?;
        GuavaBloom::with_layout(layout, self.keys)
    }
}

/// Only for Guava.
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

    /// How a hash becomes the indexes of bits.
    ///
    /// ```
    /// use lanebloom_formats::guava::{GuavaBloom, Strategy};
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1000, 0.01)?.strategy(), Strategy::Mitz64);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.layout.format.strategy
    }
}
