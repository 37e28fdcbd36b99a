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
//! A filter holds bits, not keys, so it cannot be converted into another layout or size. A service
//! reads the Guava filter and serves from it at once. Meanwhile it fills a
//! [`ConcurrentBloom`](crate::ConcurrentBloom) from the source of truth:
//!
//! ```
//! use lanebloom::{ConcurrentBloom, GuavaBloom};
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

pub(crate) mod error;
pub(crate) mod layout;
mod stream;

use super::builder::Planned;
use super::engine::{Engine, Estimate, Insert, InsertFlagged, Union, sealed};
use super::{Figures, Filter};
use crate::bits;
use crate::error::{BuildError, IncompatibleError};
use crate::flat::Flat;
use crate::funnel::Funnel;
use crate::hash::sealed::{Identity, Sealed};
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use crate::layout::LINE_BYTES;
use crate::sizing::Request;
use crate::source::{Answer, Source, answers, teller};
use core::fmt;
use layout::{Hash, Layout, Places};
pub use layout::{HashFunctions, Strategy};

/// Guava's `BloomFilter`, bit for bit. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`] type; [the module](self) says which type stands for which of Guava's
/// funnels. All operations but [`clear`](Filter::clear) take `&self`: share the filter as
/// `Arc<GuavaBloom>`.
///
/// | Guava | here |
/// |---|---|
/// | `create` | [`with_capacity`](Filter::with_capacity), [`builder`](Filter::builder) |
/// | `put`, `mightContain` | [`insert`](Filter::insert), [`contains`](Filter::contains) |
/// | `putAll`, `isCompatible` | [`union_from`](Filter::union_from), [`is_compatible`](Filter::is_compatible) |
/// | `expectedFpp` | [`current_false_positive_rate`](Filter::current_false_positive_rate) |
/// | `approximateElementCount` | [`estimated_len`](Filter::estimated_len); `usize::MAX` for a full filter, where Guava throws |
/// | `toBloomFilter` | [`from_keys`](Filter::from_keys) |
/// | `copy`, `equals` | `clone`, `==` |
/// | `writeTo`, `readFrom` | [`write_to`](GuavaBloom::write_to), [`read_from`](GuavaBloom::read_from) |
///
/// `union_from` of a filter with itself is an error, as in Guava. A stream does not say how many
/// keys its filter is for: [`expected_keys`](Filter::expected_keys) of a filter that was read is
/// the number of keys that set half of its bits.
///
/// # Examples
///
/// ```
/// // From a JVM: BloomFilter.create(Funnels.integerFunnel(), 2, 0.01),
/// // put(3), put(42), writeTo.
/// let stream = [1, 7, 0, 0, 0, 1, 40, 8, 8, 168, 8, 10, 136, 8];
/// let filter = lanebloom::GuavaBloom::with_capacity(2, 0.01)?;
/// assert!(filter.insert(&3i32) && filter.insert(&42i32));
/// assert!(!filter.insert(&42i32));
/// assert!(filter.contains(&3i32) && !filter.contains(&4i32));
/// assert_eq!(filter.to_bytes(), stream);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub type GuavaBloom = Filter<Guava, Murmur128>;

/// The engine of [`GuavaBloom`]: bits anywhere in an array.
pub struct Guava {
    flat: Flat,
    layout: Layout,
    expected_keys: usize,
}

/// Guava's hash: both halves of Murmur3 x64_128 with seed 0.
///
/// ```
/// use lanebloom::guava::Murmur128;
/// use lanebloom::{KeyHasher, Murmur3};
///
/// assert_eq!(Murmur128.hash_key("a"), Murmur3::with_seed(0).hash128("a"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Murmur128;

impl KeyHasher<Hash> for Murmur128 {
    #[inline]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> Hash {
        Murmur3::with_seed(0).hash128(key)
    }

    fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [Hash]) {
        assert_same_length(keys.len(), out.len());
        // Without the provided method's `black_box`, which sends both halves through memory: 2.5 ns
        // a key. The compiler makes no vectors of this loop.
        for (hash, key) in out.iter_mut().zip(keys) {
            *hash = self.hash_key(key);
        }
    }
}

impl Sealed for Murmur128 {
    fn identity(&self) -> Identity {
        Murmur3::with_seed(0).identity()
    }

    fn fingerprint(&self) -> u64 {
        Murmur3::with_seed(0).fingerprint()
    }
}

/// Sizes a [`GuavaBloom`]; made by [`GuavaBloom::builder`](Filter::builder).
///
/// The defaults are Guava's: one key, a rate of 0.03, `MURMUR128_MITZ_64`, and today's formula for
/// the number of hash functions. `build` fails where Guava throws: if the formulas give no bit (few
/// keys at a rate near 1), more than 137,438,953,408 bits or more than 255 hash functions.
///
/// # Examples
///
/// ```
/// use lanebloom::guava::{GuavaBloom, Strategy};
///
/// let builder = GuavaBloom::builder().expected_keys(1_000_000);
/// let filter = builder.strategy(Strategy::Mitz32).build()?;
/// assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
///
/// let error = GuavaBloom::with_capacity(1000, 1e-80).unwrap_err();
/// let text = "a rate of 1e-80 takes 266 hash functions, ";
/// assert!(error.to_string().starts_with(text));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder = super::Builder<Guava>;

impl Builder {
    /// How a hash becomes the places of bits. [`Strategy::Mitz64`] by default, as Guava's.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, Strategy};
    ///
    /// let filter = GuavaBloom::builder().strategy(Strategy::Mitz32).build()?;
    /// assert_eq!(filter.to_bytes()[0], 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.0 = strategy;
        self
    }

    /// The formula for the number of hash functions. [`HashFunctions::ByRate`] by default, as in
    /// today's Guava.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, HashFunctions};
    ///
    /// let builder = GuavaBloom::builder().expected_keys(1).false_positive_rate(0.04);
    /// let older = builder.clone().hash_functions(HashFunctions::ByBits);
    /// assert_eq!(builder.build()?.hash_functions(), 5);
    /// assert_eq!(older.build()?.hash_functions(), 4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_functions(mut self, formula: HashFunctions) -> Self {
        self.options.1 = formula;
        self
    }
}

impl Planned for Guava {
    type Options = (Strategy, HashFunctions);
    type Hasher = Murmur128;

    fn build(request: Request, (strategy, hash_functions): Self::Options) -> Result<Self, BuildError> {
        let (keys, rate) = (request.keys.unwrap_or(0), request.rate.unwrap_or(0.03));
        let layout = Layout::solve(keys as u64, rate, strategy, hash_functions);
        Self::with_layout(layout.map_err(BuildError)?, keys.max(1))
    }
}

impl GuavaBloom {
    /// How a hash becomes the places of bits.
    ///
    /// ```
    /// use lanebloom::guava::{GuavaBloom, Strategy};
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1000, 0.01)?.strategy(), Strategy::Mitz64);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.engine.layout.strategy
    }

    /// The number of hash functions, 1 to 255: the bits of a key (two may be the same).
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1000, 1e-3)?.hash_functions(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u8 {
        self.engine.layout.hash_functions
    }

    /// The number of bits, a multiple of 64. (Guava does not make it public.)
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1_000_000, 0.03)?.bit_size(), 7_298_496);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "bitSize")]
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        64 * self.engine.layout.words as u64
    }
}

impl Guava {
    fn with_layout(layout: Layout, expected_keys: usize) -> Result<Self, BuildError> {
        let flat = Flat::new(layout.words, layout.hash_functions.into())?;
        Ok(Self {
            flat,
            layout,
            expected_keys,
        })
    }

    fn ones(&self) -> u64 {
        let ones = self.flat.ones();
        bits::acquire();
        ones
    }

    fn figures_of(&self, ones: u64) -> Figures {
        Figures {
            fill_ratio: self.layout.fill(ones),
            len: usize::try_from(self.layout.keys_for(ones)).unwrap_or(usize::MAX),
            false_positive_rate: self.layout.rate_of(self.layout.fill(ones)),
        }
    }
}

impl sealed::Sealed for Guava {}

impl Engine for Guava {
    type Hash = Hash;
    const NAME: &'static str = "GuavaBloom";

    #[inline]
    fn contains(&self, hash: Hash) -> bool {
        let found = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.holds(Places::<true>::new(hash)),
            Strategy::Mitz32 => self.flat.holds(Places::<false>::new(hash)),
        };
        bits::acquire_if(found);
        found
    }

    fn contains_bitmap(&self, hashes: &[Hash], found: &mut [u64]) {
        let len = hashes.len();
        found.fill(0);
        let each = |at: usize, _, window| found[at / 64] |= window << (at % 64);
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.contains_each(len, |i| Places::<true>::new(hashes[i]), each),
            Strategy::Mitz32 => self.flat.contains_each(len, |i| Places::<false>::new(hashes[i]), each),
        }
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.flat.bits.blocks() * LINE_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.flat.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        self.layout.fill(self.ones())
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_of(self.layout.fill_at(keys))
    }

    fn current_false_positive_rate(&self) -> f64 {
        self.figures().false_positive_rate
    }

    fn figures(&self) -> Figures {
        self.figures_of(self.ones())
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            flat: self.flat.try_clone()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("strategy", &self.layout.strategy)
            .field("bit_size", &(64 * self.layout.words as u64))
            .field("hash_functions", &self.layout.hash_functions)
            .field("fill_ratio", &self.fill_ratio());
    }
}

impl Insert for Guava {
    type Answer = bool;
    type Total = usize;

    #[inline]
    fn insert(&self, hash: Hash) -> bool {
        let changed = match self.layout.strategy {
            Strategy::Mitz64 => self.flat.set(Places::<true>::new(hash)),
            Strategy::Mitz32 => self.flat.set(Places::<false>::new(hash)),
        };
        bits::acquire_if(!changed);
        changed
    }

    fn insert_all(&self, source: &impl Source<Hash>) -> usize {
        self.insert_flagged(source, None)
    }

    fn clear(&mut self) {
        self.flat.bits.clear();
    }
}

impl InsertFlagged for Guava {
    fn insert_flagged(&self, source: &impl Source<Hash>, mut answer: Answer<'_>) -> usize {
        let work = |hashes: &[Hash], changed: &mut [u64]| {
            let len = hashes.len();
            changed.fill(0);
            let each = |at: usize, _, window| changed[at / 64] |= window << (at % 64);
            match self.layout.strategy {
                Strategy::Mitz64 => self.flat.insert_each(len, |i| Places::<true>::new(hashes[i]), each),
                Strategy::Mitz32 => self.flat.insert_each(len, |i| Places::<false>::new(hashes[i]), each),
            }
        };
        answers(source, work, teller(&mut answer))
    }
}

impl Estimate for Guava {
    fn estimated_len(&self) -> usize {
        self.figures().len
    }
}

impl Union for Guava {
    fn same(&self, other: &Self) -> bool {
        let same = self.layout == other.layout && self.flat.bits.words().eq(other.flat.bits.words());
        bits::acquire();
        same
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (self.layout, other.layout);
        if core::ptr::eq(self, other) {
            Err(IncompatibleError("a filter cannot be united with itself".into()))
        } else if ours != theirs {
            Err(IncompatibleError::differs("layout", theirs, ours))
        } else {
            Ok(())
        }
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let changed = self.flat.bits.or_from(&other.flat.bits, 0..self.flat.bits.blocks());
        bits::acquire_if(!changed);
        Ok(changed)
    }
}
