//! [`Frozen`]: a filter that takes no keys.

use crate::answers::Answers;
use crate::codec::{Hashing, Input, Out};
use crate::error::{BuildError, SnapshotErrorKind};
use crate::filter::traits::{Encode, Engine, Loaded, Stored};
use crate::filter::{Filter, Statistics};
use crate::funnel::Funnel;
use crate::hash::{FilterHasher, KeyHasher, Murmur3};
use crate::key::Key;
use core::fmt;

/// A filter that takes no keys: a [`StaticFilter`](crate::StaticFilter), built from all of its keys
/// at once, or a view of a snapshot's bytes, a [`BloomView`](crate::BloomView) or
/// [`StaticView`](crate::StaticView). A program names it by these aliases.
///
/// `E` is the engine of such a type, `S` the hasher.
///
/// ```
/// let filter = lanebloom::StaticFilter::from_keys(["a"], 1e-4)?;
/// assert!(filter.contains("a") && !filter.contains("b"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct Frozen<E, S = Murmur3>(pub(crate) Filter<E, S>);

/// For the crates of this workspace, which look up in any filter.
#[doc(hidden)]
impl<E, S> Frozen<E, S> {
    pub fn of(engine: E, hasher: S) -> Self {
        Self(Filter::of(engine, hasher))
    }

    pub fn as_filter(&self) -> &Filter<E, S> {
        &self.0
    }

    pub fn engine(&self) -> &E {
        &self.0.engine
    }
}

/// Lookups.
#[allow(private_bounds, reason = "all filters have them")]
impl<E: Engine, S> Frozen<E, S> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys([17u64], 1e-4)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
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
    /// let filter = lanebloom::StaticFilter::from_keys(["a"], 1e-4)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.0.look_up_batch(keys, out);
    }

    /// Fill, number of keys, false-positive rate and size now.
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys(["a", "b"], 1e-4)?;
    /// assert_eq!(filter.statistics().len, 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys(["a", "b"], 1e-4)?;
    /// assert_eq!(filter.expected_keys(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.0.expected_keys()
    }

    /// The bytes of memory of the content.
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys(0..10_000, 0.01)?;
    /// assert!((10_000..12_000).contains(&filter.memory_bytes()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Whether the filter holds nothing.
    ///
    /// ```
    /// assert!(!lanebloom::StaticFilter::from_keys(["a"], 1e-4)?.is_empty());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The false-positive rate to expect with the [expected keys](Self::expected_keys).
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys(["a"], 1e-4)?;
    /// assert!(filter.false_positive_rate() <= 1e-4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.0.false_positive_rate()
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    /// A view's clone reads the same bytes.
    ///
    /// ```
    /// let filter = lanebloom::StaticFilter::from_keys(["a"], 1e-4)?;
    /// assert!(filter.try_clone()?.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        self.0.try_clone().map(Self)
    }
}

/// Hashes.
#[allow(private_bounds, reason = "all filters have them")]
impl<E: Engine, S: KeyHasher> Frozen<E, S> {
    /// The hash by which this filter knows `key`.
    ///
    /// ```
    /// use lanebloom::{Hashed, StaticFilter};
    ///
    /// let filter = StaticFilter::from_keys(["a"], 1e-4)?;
    /// assert!(filter.contains(&Hashed(filter.hash("a"))));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.0.hash(key)
    }
}

impl<E, S> Frozen<E, S> {
    /// The hasher.
    ///
    /// ```
    /// use lanebloom::{Murmur3, StaticFilter};
    ///
    /// let filter = StaticFilter::builder().seed(7).build_from_keys(["a"])?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.0.hasher
    }
}

/// A copy, or another view of the same bytes. Aborts if the allocation fails;
/// [`try_clone`](Frozen::try_clone) does not.
impl<E: Engine, S: Clone> Clone for Frozen<E, S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A summary; it reads the whole filter.
impl<E: Engine, S: fmt::Debug> fmt::Debug for Frozen<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Encode, S: FilterHasher> Stored for Frozen<E, S> {
    type Size = E::Size;

    fn encoded_bytes(&self) -> usize {
        self.0.encoded_bytes()
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        self.0.encode(out)
    }
}

impl<E: Encode, S: FilterHasher> Loaded for Frozen<E, S> {
    type Hasher = S;

    fn decode(
        input: &mut dyn Input,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        Filter::decode(input, limit, hasher).map(Self)
    }
}
