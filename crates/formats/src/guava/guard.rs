//! A [`GuavaBloom`] as the filter of a `lanebloom::CacheGuard` (feature `guard`).

use super::GuavaBloom;
use lanebloom::internal::Calls;
use lanebloom::{Figures, Funnel};

/// So it is a [`GuardFilter`](lanebloom::GuardFilter).
///
/// ```
/// use lanebloom::CacheGuard;
/// use lanebloom_formats::GuavaBloom;
///
/// let guard = CacheGuard::<str, _>::new(GuavaBloom::with_capacity(1000, 0.01)?);
/// guard.insert("ann");
/// assert_eq!(guard.get_with("ann", || Some(1)), Some(1));
/// assert_eq!(guard.get_with("eve", || Some(1)), None);
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
impl Calls for GuavaBloom {
    type Answer = bool;
    type Total = usize;

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert(key)
    }
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
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
