//! The filters that a guard can serve from.

use super::answers::{Outcome, Total};
#[cfg(feature = "window")]
use crate::WindowedBloom;
use crate::funnel::Funnel;
use crate::hash::KeyHasher;
use crate::{
    ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Figures, InsertError, ScalableBloom, TombstoneBloom,
};
use core::time::Duration;
use sealed::Calls;

/// A filter that a [`CacheGuard`](super::CacheGuard) can serve from: every
/// [`Filter`](crate::Filter) with inserts, the `GuavaBloom` of the crate `lanebloom-formats` (its
/// feature `guard`), and the `SharedBloom` and `SharedWindow` of `lanebloom-redis`.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom, GuardFilter};
///
/// fn row<F: GuardFilter>(guard: &CacheGuard<str, F>, key: &str) -> Option<usize> {
///     guard.get_with(key, || Some(key.len()))
/// }
///
/// let keyed = CacheGuard::with_capacity(1000, 0.01)?;
/// let seeded = CacheGuard::new(ConcurrentBloom::with_capacity(1000, 0.01)?);
/// keyed.insert("ann");
/// seeded.insert("ann");
/// assert_eq!((row(&keyed, "ann"), row(&seeded, "ann")), (Some(3), Some(3)));
/// assert_eq!((row(&keyed, "eve"), row(&seeded, "eve")), (None, None));
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

    /// Fill, number of keys and false-positive rate now, as
    /// [`Filter::figures`](crate::Filter::figures): one pass over the whole filter.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, GuardFilter};
    ///
    /// fn keys<F: GuardFilter>(guard: &CacheGuard<str, F>) -> usize {
    ///     guard.filter().figures().len
    /// }
    ///
    /// let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// assert_eq!(keys(&guard), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    fn figures(&self) -> Figures {
        Calls::figures(self.local())
    }

    /// The false-positive rate that the filter was built for, as
    /// [`Filter::false_positive_rate`](crate::Filter::false_positive_rate).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, GuardFilter};
    ///
    /// fn rate<F: GuardFilter>(guard: &CacheGuard<str, F>) -> f64 {
    ///     guard.filter().false_positive_rate()
    /// }
    ///
    /// let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// assert!((0.005..=0.01).contains(&rate(&guard)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    fn false_positive_rate(&self) -> f64 {
        Calls::false_positive_rate(self.local())
    }

    /// The memory that the filter takes, in bytes, as
    /// [`Filter::memory_bytes`](crate::Filter::memory_bytes).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, GuardFilter};
    ///
    /// fn bytes<F: GuardFilter>(guard: &CacheGuard<str, F>) -> usize {
    ///     guard.filter().memory_bytes()
    /// }
    ///
    /// let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// assert!(bytes(&guard) >= 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    fn memory_bytes(&self) -> usize {
        Calls::memory_bytes(self.local())
    }

    /// The time since a shared filter's last exchange with its server, as `SharedStats::lag`;
    /// `None` for filters of this process alone.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, GuardFilter};
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert_eq!(guard.filter().lag(), None);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    fn lag(&self) -> Option<Duration> {
        None
    }
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

pub(crate) mod sealed {
    use super::{Figures, Funnel, Outcome, Total};

    /// The calls of these names. Seals [`GuardFilter`](super::GuardFilter), so that more can be
    /// added.
    #[expect(missing_docs, reason = "the methods of a filter")]
    pub trait Calls {
        type Answer: Outcome;
        type Total: Total;

        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Self::Answer;
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool;
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Self::Total;
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]);
        fn figures(&self) -> Figures;
        fn false_positive_rate(&self) -> f64;
        fn memory_bytes(&self) -> usize;
    }
}

macro_rules! calls {
    ($filter:ident, $answer:ty, $total:ty) => {
        impl<S: KeyHasher> Calls for $filter<S> {
            type Answer = $answer;
            type Total = $total;

            #[inline]
            fn insert<K: Funnel + ?Sized>(&self, key: &K) -> $answer {
                self.insert(key)
            }
            #[inline]
            fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
                self.contains(key)
            }
            fn insert_batch<K: Funnel>(&self, keys: &[K]) -> $total {
                self.insert_batch(keys)
            }
            fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
                self.contains_batch_bitmap(keys, out);
            }
            fn figures(&self) -> Figures {
                self.figures()
            }
            fn false_positive_rate(&self) -> f64 {
                self.false_positive_rate()
            }
            fn memory_bytes(&self) -> usize {
                self.memory_bytes()
            }
        }
    };
}

calls! { ConcurrentBloom, bool, usize }
calls! { CountingBloom, bool, usize }
calls! { TombstoneBloom, bool, usize }
#[cfg(feature = "window")]
calls! { WindowedBloom, bool, usize }
calls! { CuckooFilter, Result<(), InsertError>, Result<(), InsertError> }
calls! { DLeftFilter, Result<(), InsertError>, Result<(), InsertError> }
calls! { ScalableBloom, Result<bool, InsertError>, Result<usize, InsertError> }
