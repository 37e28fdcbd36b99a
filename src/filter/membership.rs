//! [`Membership`]: what all filters with inserts share, for code that works with any of them.

use crate::answers::Answers;
use crate::error::InsertError;
use crate::filter::traits::{Engine, Insert};
use crate::filter::{Filter, Statistics};
use crate::key::Key;

/// A filter with inserts, of any type. On the page of a type its own methods of the same names need
/// no trait, and their results are simpler.
///
/// Only the crates of this project implement it.
///
/// ```
/// use lanebloom::{ConcurrentBloom, CuckooFilter, Membership};
/// use lanebloom::{InsertError, Murmur3};
///
/// /// Inserts the words; returns how many of them were there before.
/// fn seen(
///     filter: &impl Membership<Hasher = Murmur3>,
///     words: &[&str],
/// ) -> Result<usize, InsertError> {
///     let mut found = Vec::new();
///     filter.contains_batch(words, &mut found);
///     filter.insert_batch(words)?;
///     Ok(found.into_iter().filter(|&found| found).count())
/// }
///
/// let bloom = ConcurrentBloom::from_keys(["a"], 0.01)?;
/// let cuckoo = CuckooFilter::from_keys(["a"], 0.01)?;
/// assert_eq!(seen(&bloom, &["a", "b"]), Ok(1));
/// assert_eq!(seen(&cuckoo, &["a", "b"]), Ok(1));
/// // A cuckoo filter refuses the 13th copy of a key.
/// assert_eq!(seen(&cuckoo, &["c"; 20]).unwrap_err().inserted(), 12);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Membership {
    /// The type that hashes the keys.
    type Hasher;

    /// Whether `key` may be in the filter: `false` is certain, except in a
    /// [`TombstoneBloom`](crate::TombstoneBloom), and `true` may be a false positive.
    fn contains<K: Key<Self::Hasher> + ?Sized>(&self, key: &K) -> bool;

    /// Passes on whether each key may be in the filter. Panics if `out` has room for more or fewer.
    fn contains_batch<K: Key<Self::Hasher>>(&self, keys: &[K], out: impl Answers);

    /// Inserts `key`; returns whether it was new, as the `insert` of the filter's type defines it.
    /// (A filter with slots returns `true` for each copy that it takes.) Fails if the filter
    /// refuses the key: a filter of fixed slots, or one that cannot grow any further.
    fn insert<K: Key<Self::Hasher> + ?Sized>(&self, key: &K) -> Result<bool, InsertError>;

    /// Inserts the keys in order, up to one that is refused; returns how many inserts returned
    /// `true`. An error says how many keys were [inserted](InsertError::inserted) before.
    fn insert_batch<K: Key<Self::Hasher>>(&self, keys: &[K]) -> Result<usize, InsertError>;

    /// Fill, number of keys, false-positive rate and size now, from one pass over the content.
    fn statistics(&self) -> Statistics;

    /// The number of keys that the filter was sized for.
    fn expected_keys(&self) -> usize;

    /// The false-positive rate that the filter was built for.
    fn false_positive_rate(&self) -> f64;

    /// The false-positive rate to expect once `keys` distinct keys are in. For a filter with slots,
    /// it is at most the rate of a full filter.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, Membership};
    ///
    /// let filter = ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// assert!(filter.false_positive_rate_at(50_000) < 0.001);
    /// assert!((0.1..0.2).contains(&filter.false_positive_rate_at(200_000)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    fn false_positive_rate_at(&self, keys: usize) -> f64;

    /// The bytes of memory of the content.
    fn memory_bytes(&self) -> usize;
}

impl<E: Engine + Insert, S> Membership for Filter<E, S> {
    type Hasher = S;

    #[inline]
    fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.look_up_batch(keys, out);
    }

    #[inline]
    fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        self.try_insert(key).map_err(Into::into)
    }

    fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> Result<usize, InsertError> {
        self.try_insert_batch(keys).map_err(Into::into)
    }

    fn statistics(&self) -> Statistics {
        Filter::statistics(self)
    }

    fn expected_keys(&self) -> usize {
        Filter::expected_keys(self)
    }

    fn false_positive_rate(&self) -> f64 {
        Filter::false_positive_rate(self)
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.engine.false_positive_rate_at(keys)
    }

    fn memory_bytes(&self) -> usize {
        Filter::memory_bytes(self)
    }
}
