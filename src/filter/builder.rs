//! The one builder, and the short constructors. Takes the number of keys and the rate, and passes
//! them to the engine, which sizes itself.
//!
//! What only some types have, macros write for a list of types. On the page of an alias such as
//! `bloom::Builder`, rustdoc shows every generic impl, whatever its bounds.

use super::Filter;
use super::bloom::Bloom;
use super::counting::Counting;
use super::cuckoo::Cuckoo;
use super::dleft::DLeft;
use super::engine::PlannedImpl;
use super::scalable::Chain;
use super::tombstone::Tombstone;
use super::traits::{Insert, Planned};
#[cfg(feature = "window")]
use super::windowed::Generations;
use crate::error::{BuildError, BuildErrorKind};
use crate::funnel::Funnel;
use crate::geometry::sizing::Request;
use crate::hash::{KeyHasher, Murmur3};
use core::fmt;

/// Sizes a [`Filter`]; made by [`Filter::builder`].
///
/// `E` is the engine of the filter, `S` its hasher. The page of a type's builder, for example
/// [`bloom::Builder`](crate::bloom::Builder), adds what is particular to the type.
///
/// Many filters take the expected keys, or a memory budget, or both:
///
/// | given | size | rate |
/// |---|---|---|
/// | keys, perhaps rate | as needed | the given one, 1% by default |
/// | budget, perhaps rate | the budget | the given one, 1% by default; [`expected_keys`](Filter::expected_keys) returns the number of keys |
/// | keys and budget | the budget | the best that fits: [`false_positive_rate`](Filter::false_positive_rate) |
/// | keys, rate and budget | as needed; an error if that exceeds the budget | the given one |
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let builder = ConcurrentBloom::builder().expected_keys(1_000_000);
/// let filter = builder.false_positive_rate(1e-3).build()?;
/// assert!((15.8..15.9).contains(&filter.bits_per_key()));
///
/// let filter = ConcurrentBloom::builder().memory_budget(1 << 20).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// assert!((800_000..820_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<E: Planned, S = Murmur3> {
    pub(super) request: Request,
    pub(super) options: E::Options,
    pub(super) hasher: S,
}

impl<E: Planned, S: Clone> Clone for Builder<E, S> {
    fn clone(&self) -> Self {
        Self {
            request: self.request,
            options: self.options.clone(),
            hasher: self.hasher.clone(),
        }
    }
}

impl<E: Planned, S: fmt::Debug> fmt::Debug for Builder<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("request", &self.request)
            .field("options", &self.options)
            .field("hasher", &self.hasher)
            .finish()
    }
}

impl<E: Planned> Builder<E> {
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys: see
    /// [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<E: Planned, S> Builder<E, S> {
    /// The number of distinct keys up to which the false-positive rate holds. 0 means 1.
    ///
    /// If keys can be removed, it is the number of keys at one time. A filter with slots counts
    /// each copy of a key.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(50_000).build()?;
    /// assert!((0..50_000u32).filter(|key| filter.insert(key)).count() > 49_500);
    /// assert!(filter.current_false_positive_rate() < 0.011);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("expectedInsertions", "capacity"))]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.request.keys = Some(keys);
        self
    }

    /// The chance that the filter reports a key that it does not hold, once it holds the expected
    /// keys. Between 0 and 1, both excluded.
    ///
    /// If keys can be removed, it is also the chance that removing an absent key does harm.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.false_positive_rate(1e-6).build()?;
    /// assert!(filter.false_positive_rate_at(1000) <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`]
    /// compares them.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    /// use std::hash::RandomState;
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.hasher(RandomState::new()).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: KeyHasher>(self, hasher: T) -> Builder<E, T> {
        Builder {
            request: self.request,
            options: self.options,
            hasher,
        }
    }

    /// Computes the layout and allocates it. A layout of lines takes about half a millisecond.
    ///
    /// # Errors
    ///
    /// Fails if neither keys nor budget were given, the rate is not between 0 and 1, an option of
    /// the type is out of range, the rate would take more than 128 bits per key (512 with
    /// counters), the budget is below one line of 64 bytes or too small for keys and rate, or the
    /// allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 1344);
    ///
    /// let error = ConcurrentBloom::builder().build().unwrap_err();
    /// let text = "neither expected keys nor a memory budget was given";
    /// assert!(error.to_string().starts_with(text));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<Filter<E, S>, BuildError> {
        Ok(Filter::of(E::build(self.request, self.options)?, self.hasher))
    }
}

macro_rules! budgeted {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// The most memory that the filter may take, in bytes: at least one line of 64, and 72 in a
            /// [`DLeftFilter`](crate::DLeftFilter).
            ///
            /// ```
            /// use lanebloom::ConcurrentBloom;
            ///
            /// let builder = ConcurrentBloom::builder().memory_budget(10_000);
            /// let filter = builder.expected_keys(5000).build()?;
            /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
            /// assert!(filter.false_positive_rate_at(5000) < 1e-3);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn memory_budget(mut self, bytes: usize) -> Self {
                self.request.budget = Some(bytes);
                self
            }
        }
    )*};
}

budgeted! { Bloom, Counting, Cuckoo, DLeft }
#[cfg(feature = "window")]
budgeted! { Generations }

macro_rules! worded {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// How many 64-bit words a key touches: 1, 2, 4 or 8, all in one line, or half of them in each
            /// of [two lines](Self::lines_per_key).
            ///
            /// An insert of a new key, or a remove, takes one atomic operation for each word. By default
            /// the builder takes the fewest words whose memory is within 6% of the least. With 1, an insert
            /// and a remove are claims: if several threads race, exactly one gets `true`.
            ///
            /// ```
            /// use lanebloom::ConcurrentBloom;
            ///
            /// let builder = ConcurrentBloom::builder().expected_keys(1000);
            /// let claims = builder.clone().words_per_key(1).build()?;
            /// assert_eq!(claims.words_per_key(), 1);
            ///
            /// let wrong = builder.words_per_key(3).build().unwrap_err();
            /// assert_eq!(wrong.to_string(), "3 words per key is not 1, 2, 4 or 8");
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn words_per_key(mut self, words: usize) -> Self {
                self.request.words = Some(words);
                self
            }
        }
    )*};
}

worded! { Bloom, Counting, Chain, Tombstone }
#[cfg(feature = "window")]
worded! { Generations }

macro_rules! two_lined {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// How many lines of 64 bytes a key touches: 1 or 2. With 2, half of its words are in each.
            ///
            /// Two lines need less memory for the same rate, the more so the lower it is. Bits per key:
            ///
            /// | rate | 1% | 0.1% | 1e-4 | 1e-5 | 1e-6 |
            /// |---|--:|--:|--:|--:|--:|
            /// | one line, 4 words | 10.1 | 15.8 | 22.6 | 31.1 | 41.1 |
            /// | two lines, 4 words | 9.8 | 15.0 | 20.5 | 26.9 | 34.1 |
            /// | two lines, 8 words | 9.8 | 14.8 | 20.2 | 25.5 | 31.6 |
            ///
            /// A lookup of an absent key asks for the second line in one case of hundreds. The lookup of a
            /// present key and an insert need both lines, and take up to twice the time. An insert's answer
            /// is no claim: if several threads race, at least one gets `true`.
            ///
            /// By default the builder takes two lines if they save at least an eighth of the memory: from a
            /// rate of about 1e-5 down. If [`words_per_key`](Self::words_per_key) is given, it takes one.
            ///
            /// ```
            /// use lanebloom::ConcurrentBloom;
            ///
            /// let builder = ConcurrentBloom::builder().expected_keys(100_000);
            /// let builder = builder.false_positive_rate(1e-4);
            /// let one = builder.clone().build()?;
            /// let two = builder.clone().lines_per_key(2).build()?;
            /// assert_eq!((one.lines_per_key(), two.lines_per_key()), (1, 2));
            /// assert!(two.memory_bytes() * 10 < one.memory_bytes() * 93 / 10);
            ///
            /// let lower = builder.clone().false_positive_rate(1e-6).build()?;
            /// assert_eq!(lower.lines_per_key(), 2);
            /// let wrong = builder.lines_per_key(3).build().unwrap_err();
            /// assert_eq!(wrong.to_string(), "3 lines per key is not 1 or 2");
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn lines_per_key(mut self, lines: usize) -> Self {
                self.request.lines = Some(lines);
                self
            }
        }
    )*};
}

two_lined! { Bloom, Tombstone }
#[cfg(feature = "window")]
two_lined! { Generations }

macro_rules! making {
    ($($engine:ty),*) => {$(
        /// Making a filter.
        impl Filter<$engine> {
            /// A builder, for all options.
            ///
            /// ```
            /// use lanebloom::ConcurrentBloom;
            ///
            /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
            /// assert_eq!(filter.expected_keys(), 1000);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn builder() -> Builder<$engine> {
                Builder {
                    request: Request::default(),
                    options: <$engine as PlannedImpl>::Options::default(),
                    hasher: Murmur3::default(),
                }
            }

            /// An empty filter for `keys` keys at this rate, with the builder's defaults.
            ///
            /// # Errors
            ///
            /// As [`Builder::build`].
            ///
            /// # Examples
            ///
            /// ```
            /// use lanebloom::{ConcurrentBloom, CuckooFilter};
            ///
            /// let filter = ConcurrentBloom::with_capacity(1000, 1e-3)?;
            /// let builder = ConcurrentBloom::builder().expected_keys(1000);
            /// let same = builder.false_positive_rate(1e-3).build()?;
            /// assert!(filter == same);
            /// assert_eq!(CuckooFilter::with_capacity(1000, 1e-3)?.expected_keys(), 1000);
            /// let error = ConcurrentBloom::with_capacity(1000, 1.0).unwrap_err();
            /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
            /// assert_eq!(error.to_string(), text);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("create", "new", "with_false_pos"))]
            pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
                let builder = Self::builder().expected_keys(keys);
                builder.false_positive_rate(false_positive_rate).build()
            }

            /// A filter that holds `keys` and is sized for as many, at this false-positive rate. (A
            /// [`WindowedBloom`](crate::WindowedBloom) has room for as many in each generation.)
            ///
            /// # Errors
            ///
            /// As [`Builder::build`], and if there is no room for one of the keys.
            ///
            /// # Examples
            ///
            /// ```
            /// use lanebloom::{ConcurrentBloom, CuckooFilter};
            ///
            /// let filter = ConcurrentBloom::from_keys(["a", "b"], 0.01)?;
            /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
            /// assert_eq!(filter.expected_keys(), 2);
            ///
            /// assert_eq!(CuckooFilter::from_keys(["a", "b"], 0.01)?.len(), 2);
            /// let error = CuckooFilter::from_keys(["a"; 20], 0.01).unwrap_err();
            /// assert_eq!(error.to_string(), "the filter has room for only 12 of 20 keys");
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("collect", "from_iter", "toBloomFilter"))]
            pub fn from_keys<K: Funnel>(
                keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
                false_positive_rate: f64,
            ) -> Result<Self, BuildError> {
                let keys = keys.into_iter();
                let len = keys.len();
                let filter = Self::with_capacity(<$engine>::at_once(len), false_positive_rate)?;
                match filter.try_insert_all(keys) {
                    Ok(_) => Ok(filter),
                    Err(error) => Err(BuildError(BuildErrorKind::NoRoom {
                        inserted: error.inserted(),
                        keys: len,
                    })),
                }
            }
        }
    )*};
}

making! { Bloom, Counting, Cuckoo, DLeft, Chain, Tombstone }
#[cfg(feature = "window")]
making! { Generations }
