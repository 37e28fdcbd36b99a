//! The filters that a guard can serve from.

use crate::Filter;
use crate::filter::engine::{Insert, Outcome, Total};
#[cfg(all(feature = "redis", feature = "window"))]
use crate::filter::windowed::WindowedBloom;
use crate::funnel::Funnel;
use crate::hash::KeyHasher;
use sealed::Calls;

/// A filter that a [`CacheGuard`](super::CacheGuard) can serve from: every
/// [`Filter`] with inserts, and with the feature `redis` a `SharedBloom` or a `SharedWindow`.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, GuardFilter, GuavaBloom};
///
/// fn row<F: GuardFilter>(guard: &CacheGuard<str, F>, key: &str) -> Option<usize> {
///     guard.get_with(key, || Some(key.len()))
/// }
///
/// let ours = CacheGuard::with_capacity(1000, 0.01)?;
/// let javas = CacheGuard::new(GuavaBloom::with_capacity(1000, 0.01)?);
/// ours.insert("ann");
/// javas.insert("ann");
/// assert_eq!((row(&ours, "ann"), row(&javas, "ann")), (Some(3), Some(3)));
/// assert_eq!((row(&ours, "eve"), row(&javas, "eve")), (None, None));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait GuardFilter {
    /// The answer of an insert, as the filter's. `bool` if inserts cannot fail.
    type Answer: Outcome;
    /// The answer of a batch of inserts, as the filter's.
    type Total: Total;

    /// The filter in this process that answers.
    #[doc(hidden)]
    type Local: Calls<Answer = Self::Answer, Total = Self::Total>;

    #[doc(hidden)]
    fn local(&self) -> &Self::Local;
}

impl<F: Calls> GuardFilter for F {
    type Answer = F::Answer;
    type Total = F::Total;
    type Local = F;

    #[inline]
    fn local(&self) -> &F {
        self
    }
}

#[cfg(feature = "redis")]
impl<S: KeyHasher> GuardFilter for crate::redis::SharedBloom<S> {
    type Answer = bool;
    type Total = usize;
    type Local = crate::ConcurrentBloom<S>;

    #[inline]
    fn local(&self) -> &Self::Local {
        self
    }
}

#[cfg(all(feature = "redis", feature = "window"))]
impl<S: KeyHasher + Clone> GuardFilter for crate::redis::SharedWindow<S> {
    type Answer = bool;
    type Total = usize;
    type Local = WindowedBloom<S>;

    #[inline]
    fn local(&self) -> &Self::Local {
        self
    }
}

pub(super) mod sealed {
    use super::{Funnel, Outcome, Total};

    /// The calls of these names. Seals [`GuardFilter`](super::GuardFilter), so that more can be
    /// added.
    pub trait Calls {
        type Answer: Outcome;
        type Total: Total;

        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Self::Answer;
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool;
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Self::Total;
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]);
    }
}

impl<E: Insert, S: KeyHasher<E::Hash>> Calls for Filter<E, S> {
    type Answer = E::Answer;
    type Total = E::Total;

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> E::Answer {
        self.insert(key)
    }
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> E::Total {
        self.insert_batch(keys)
    }
    fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.contains_batch_bitmap(keys, out);
    }
}
