//! The one builder: takes the number of keys and the rate, and passes them to the engine, which
//! sizes itself.

use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::traits::{Insert, Planned};
use crate::geometry::sizing::Request;
use crate::hash::{FilterHasher, Murmur3};
use crate::key::Key;
use alloc::format;
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
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let builder = ConcurrentBloom::builder().expected_keys(1_000_000);
/// let filter = builder.false_positive_rate(1e-3).build()?;
/// assert!((16.7..16.8).contains(&filter.statistics().bits_per_key));
/// let filter = ConcurrentBloom::builder().memory_budget(1 << 20).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// assert!((770_000..780_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<E: Planned, S = Murmur3> {
    pub(crate) request: Request,
    pub(crate) options: E::Options,
    pub(crate) hasher: S,
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
    pub(crate) fn new() -> Self {
        Self {
            request: Request::default(),
            options: E::Options::default(),
            hasher: Murmur3::default(),
        }
    }

    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys: see
    /// [`crate::hash`]. Filters one behind the other need [different
    /// seeds](crate::hash#filters-one-behind-the-other).
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.seed(1).build()?;
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
    /// let builder = lanebloom::ConcurrentBloom::builder();
    /// let filter = builder.expected_keys(50_000).build()?;
    /// assert!((0..50_000u32).filter(|key| filter.insert(key)).count() > 49_500);
    /// assert!(filter.statistics().false_positive_rate < 0.011);
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
    /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.false_positive_rate(1e-6).build()?;
    /// assert!(filter.false_positive_rate() <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// Another hasher: [`FastHash`](crate::FastHash), [`SipHash13`](crate::SipHash13), any
    /// `BuildHasher`, or [`Prehashed`](crate::Prehashed). [`crate::hash`] compares them.
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.hasher(std::hash::RandomState::new()).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: FilterHasher>(self, hasher: T) -> Builder<E, T> {
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
    /// the type is out of range, the rate would take more than 256 bits per key (512 with
    /// counters, 128 with fingerprints), the budget is below one line of 64 bytes or too small for
    /// keys and rate, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 1408);
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

/// Making a filter.
impl<E: Planned> Filter<E> {
    /// An empty filter for `keys` keys at this rate, with the builder's defaults. Fails as
    /// [`build`](Builder::build).
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 1e-3)?;
    /// assert!(filter.expected_keys() == 1000 && filter.false_positive_rate() <= 1e-3);
    /// assert!(ConcurrentBloom::with_capacity(1000, 1.0).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("create", "new", "with_false_pos"))]
    #[inline]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let builder = Self::builder().expected_keys(keys);
        builder.false_positive_rate(false_positive_rate).build()
    }

    /// A builder, for all options.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn builder() -> Builder<E> {
        Builder::new()
    }

    /// A filter that holds `keys` and is sized for as many, at this false-positive rate. (A
    /// [`WindowedBloom`](crate::WindowedBloom) has room for as many in each generation.) Fails as
    /// [`build`](Builder::build), and if the filter refuses one of the keys.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::from_keys([1, 2], 0.01)?;
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("collect", "from_iter", "toBloomFilter"))]
    pub fn from_keys<K: Key<Murmur3>>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError>
    where
        E: Insert,
    {
        let keys = keys.into_iter();
        let len = keys.len();
        let filter = Self::with_capacity(E::at_once(len), false_positive_rate)?;
        match filter.try_insert_all(keys) {
            Ok(_) => Ok(filter),
            Err(error) => {
                let inserted = error.into().inserted();
                Err(BuildError::new(format!(
                    "the filter has room for only {inserted} of {len} keys"
                )))
            }
        }
    }
}
