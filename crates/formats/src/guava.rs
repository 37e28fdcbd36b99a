//! Guava's `BloomFilter`, bit for bit. [`GuavaBloom`] reads what Guava on a JVM wrote, and writes
//! what Guava reads. It gives the same answers, and is as lock-free as
//! [`ConcurrentBloom`](lanebloom::ConcurrentBloom).
//!
//! Use it for filters that Java programs keep on disk or send, [not if you own both
//! ends](crate#when-not-to-use-it).
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
//! pass the `[u16]` of its units. `stringFunnel` writes a `?` in its place for `UTF_8`, and U+FFFD
//! for `UTF_16` and `UTF_16LE`, so several strings are one key: pass the string with that.
//!
//! # Moving a service over
//!
//! A filter holds bits, not keys, so it cannot be converted into another layout or size. A service
//! reads the Guava filter and serves from it at once. Meanwhile it fills a
//! [`ConcurrentBloom`](lanebloom::ConcurrentBloom) from the source of truth, and inserts every new
//! key into both. Then it drops the old filter.
//!
//! ```
//! # use lanebloom::ConcurrentBloom;
//! # use lanebloom_formats::GuavaBloom;
//! # let stream = GuavaBloom::from_keys(["ann"], 0.01)?.to_bytes();
//! # let source = ["ann", "bob"];
//! // A filter of 100 million keys at 1% takes 114 MiB.
//! let old = GuavaBloom::read_from(&stream[..], 1 << 27)?;
//! assert!(old.contains("ann"));
//!
//! let new = ConcurrentBloom::with_capacity(1000, 0.01)?;
//! new.insert_all(source);
//! assert!(new.contains("ann") && new.contains("bob"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `CacheGuard` of the crate `lanebloom-guard` takes either filter.
//!
//! # Consistency
//!
//! The promises are those of [`JavaBloom`]. The rate is Guava's: about the requested one at the
//! expected keys. For `MURMUR128_MITZ_32` it is higher from some hundred million bits on, since
//! that hash has 32 bits.
//!
//! Hashing is Murmur3 with seed 0, as Guava's. **Strangers can make keys that collide**: [the
//! module `hash`](lanebloom::hash) says more.

pub(crate) mod layout;
mod strings;

use crate::{JavaBloom, JavaBuilder};
pub use layout::{Guava, Hash, HashFunctions, Strategy};
pub use strings::{UnencodedChars, Utf16};

/// Guava's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`](crate::Funnel) type; [the module](self) says which type stands for which
/// of Guava's funnels. [`JavaBloom`] says what batches and memory ordering are.
///
/// | Guava | here |
/// |---|---|
/// | `create` | [`with_capacity`](JavaBloom::with_capacity), [`builder`](JavaBloom::builder) |
/// | `put`, `mightContain` | [`insert`](JavaBloom::insert), [`contains`](JavaBloom::contains) |
/// | `putAll`, `isCompatible` | [`union_from`](JavaBloom::union_from), [`with`](JavaBloom::with) |
/// | `expectedFpp`, `approximateElementCount` | [`statistics`](JavaBloom::statistics); the number of keys is `usize::MAX` for a full filter, where Guava throws |
/// | `toBloomFilter` | [`from_keys`](JavaBloom::from_keys) |
/// | `copy`, `equals` | `clone`, `==` |
/// | `writeTo`, `readFrom` | [`write_to`](JavaBloom::write_to), [`read_from`](JavaBloom::read_from) |
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

/// Sizes a [`GuavaBloom`]. By default for one key, at a rate of 0.03, by [`Strategy::Mitz64`] and
/// [`HashFunctions::ByRate`].
pub type Builder = JavaBuilder<Guava>;

/// Only for Guava.
impl Builder {
    /// How a hash becomes the indexes of bits. [`Strategy::Mitz64`] by default.
    ///
    /// ```
    /// use lanebloom_formats::guava::{GuavaBloom, Strategy};
    ///
    /// let filter = GuavaBloom::builder().strategy(Strategy::Mitz32).build()?;
    /// assert_eq!(filter.to_bytes()[0], 0);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.format.strategy = strategy;
        self
    }

    /// The formula for the number of hash functions. [`HashFunctions::ByRate`] by default.
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
        self.sizing = formula;
        self
    }
}

/// Only for Guava.
impl GuavaBloom {
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
