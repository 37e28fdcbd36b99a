//! A guard's counts: keys that it admitted and turned away, and those that the store had.

use alloc::boxed::Box;
// Counts order nothing and are no part of the protocol: the model checker need not try their
// interleavings.
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An admitted key; made by [`CacheGuard::check`](super::CacheGuard::check) and
/// [`check_batch`](super::CacheGuard::check_batch). Dropped without a record, it counts only as
/// admitted.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// guard.insert("ann");
/// guard.check("ann").unwrap().record(true);
/// drop(guard.check("ann").unwrap()); // the read timed out, say
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.false_positives), (2, 1, 0));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "record whether the store had the key"]
pub struct Admission<'a> {
    pub(super) counts: &'a Counts,
}

impl Admission<'_> {
    /// Records whether the store had the key: if not, it was a false positive (or has been
    /// removed).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// guard.check("ann").unwrap().record(false);
    /// assert_eq!(guard.stats().false_positives, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn record(self, found: bool) {
        match found {
            true => self.counts.add(1, |shard| &shard.found),
            false => self.counts.add(1, |shard| &shard.false_positives),
        }
    }
}

/// The counts of a guard.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&100);
/// guard.check(&100).unwrap().record(false); // the store has lost it, say
/// for key in 0..99 {
///     guard.get_with(&key, || None::<()>);
/// }
/// let stats = guard.stats();
/// assert_eq!(stats.turned_away + stats.admitted, 100);
/// assert!((0.0099..0.04).contains(&stats.false_positive_rate().unwrap()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardStats {
    /// Checks that let the key through.
    pub admitted: u64,
    /// Checks that turned the key away.
    pub turned_away: u64,
    /// Admitted keys that the store was recorded to have.
    pub found: u64,
    /// Admitted keys that the store was recorded not to have.
    pub false_positives: u64,
}

impl GuardStats {
    /// The counts since `earlier`: these less those, or 0 if that would be negative.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("eve").is_none());
    /// let before = guard.stats();
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().turned_away, 2);
    /// assert_eq!(guard.stats().since(&before).turned_away, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // Saturating, because two threads may see the counts grow in different orders.
        Self {
            admitted: self.admitted.saturating_sub(earlier.admitted),
            turned_away: self.turned_away.saturating_sub(earlier.turned_away),
            found: self.found.saturating_sub(earlier.found),
            false_positives: self.false_positives.saturating_sub(earlier.false_positives),
        }
    }

    /// The fraction of absent keys that was admitted, to compare with the filter's rate; `None`
    /// before the first absent key.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert_eq!(guard.stats().false_positive_rate(), None);
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().false_positive_rate(), Some(0.0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        let absent = self.turned_away + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

/// Counters in shards, so that threads do not take a line from each other to count.
#[derive(Debug)]
pub(super) struct Counts {
    /// One for each of the first threads: it alone counts there, without locked operations.
    owned: Box<[Shard]>,
    /// For all other threads; a power of two of them.
    shared: Box<[Shard]>,
}

/// Two lines wide, because x86-64 fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    admitted: AtomicU64,
    turned_away: AtomicU64,
    found: AtomicU64,
    false_positives: AtomicU64,
}

impl Counts {
    pub(super) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = |n: usize| (0..n).map(|_| Shard::default()).collect();
        Self {
            owned: shards(threads.saturating_mul(4).min(64)),
            shared: shards(threads.next_power_of_two().min(64)),
        }
    }

    #[inline]
    fn add(&self, n: u64, count: impl Fn(&Shard) -> &AtomicU64) {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        std::thread_local! {
            /// The number of this thread, in the order of first calls. No other thread ever has it.
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let thread = THREAD.with(|thread| *thread);
        match self.owned.get(thread) {
            Some(shard) => {
                // Nobody else writes between the two.
                let count = count(shard);
                count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            }
            None => {
                let shard = &self.shared[thread & (self.shared.len() - 1)];
                count(shard).fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    pub(super) fn add_check(&self, is_admitted: bool) {
        match is_admitted {
            true => self.add(1, |shard| &shard.admitted),
            false => self.add(1, |shard| &shard.turned_away),
        }
    }

    pub(super) fn add_checks(&self, admitted: usize, turned_away: usize) {
        self.add(admitted as u64, |shard| &shard.admitted);
        self.add(turned_away as u64, |shard| &shard.turned_away);
    }

    pub(super) fn sum(&self) -> GuardStats {
        let shards = self.owned.iter().chain(&self.shared);
        shards.fold(GuardStats::default(), |sum, shard| GuardStats {
            admitted: sum.admitted + shard.admitted.load(Ordering::Relaxed),
            turned_away: sum.turned_away + shard.turned_away.load(Ordering::Relaxed),
            found: sum.found + shard.found.load(Ordering::Relaxed),
            false_positives: sum.false_positives + shard.false_positives.load(Ordering::Relaxed),
        })
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    /// More threads than owned shards, so that some count in the shared ones.
    #[test]
    fn counts_of_many_threads_add_up() {
        let counts = Counts::new();
        std::thread::scope(|scope| {
            for _ in 0..80 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counts.add_check(true);
                        counts.add_checks(2, 3);
                        Admission { counts: &counts }.record(true);
                    }
                });
            }
        });
        let sum = counts.sum();
        assert_eq!((sum.admitted, sum.turned_away), (240_000, 240_000));
        assert_eq!((sum.found, sum.false_positives), (80_000, 0));
    }
}
