//! A guard's statistics: the keys that it admitted and turned away, and those that the store had.

use crate::striped::Striped;
use std::sync::atomic::AtomicU64;

/// An admitted key; made by [`CacheGuard::check`](crate::CacheGuard::check), whose example records
/// one, and [`check_batch`](crate::CacheGuard::check_batch). If it is dropped without a record, the
/// key counts only as admitted.
#[derive(Debug)]
#[must_use = "record whether the store had the key"]
pub struct Admission<'a> {
    pub(crate) counts: &'a GuardCounts,
}

impl Admission<'_> {
    /// Records whether the store had the key. If not, the key was a false positive, or was removed.
    pub fn record(self, found: bool) {
        match found {
            true => self.counts.add(1, |counts| &counts.found),
            false => self.counts.add(1, |counts| &counts.false_positives),
        }
    }
}

/// The statistics of a guard: counts of checks.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::CacheGuard;
///
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// assert_eq!(guard.stats().false_positive_rate(), None);
/// guard.insert(&100);
/// guard.check(&100).unwrap().record(true);
/// drop(guard.check(&100).unwrap()); // the read timed out, say
/// let before = guard.stats();
/// assert_eq!((before.admitted, before.found), (2, 1));
///
/// guard.check(&100).unwrap().record(false); // the store has lost it, say
/// for key in 0..99 {
///     guard.get_with(&key, || None::<()>);
/// }
/// let stats = guard.stats().since(&before);
/// assert_eq!((stats.turned_away + stats.admitted, stats.found), (100, 0));
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
    /// Admitted keys that were recorded as found in the store.
    pub found: u64,
    /// Admitted keys that were recorded as missing in the store.
    pub false_positives: u64,
}

impl GuardStats {
    /// The counts since `earlier`: the differences, or 0 where one would be negative.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // Saturating, because two threads may see the counts grow in different orders.
        let difference = |count: fn(&Self) -> u64| count(self).saturating_sub(count(earlier));
        Self {
            admitted: difference(|stats| stats.admitted),
            turned_away: difference(|stats| stats.turned_away),
            found: difference(|stats| stats.found),
            false_positives: difference(|stats| stats.false_positives),
        }
    }

    /// The share of absent keys that were admitted, to compare with the filter's rate. `None`
    /// before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        let absent = self.turned_away + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

/// The counters of a guard.
pub(crate) type GuardCounts = Striped<GuardCounters>;

#[derive(Debug, Default)]
pub(crate) struct GuardCounters {
    admitted: AtomicU64,
    turned_away: AtomicU64,
    found: AtomicU64,
    false_positives: AtomicU64,
}

impl GuardCounts {
    #[inline]
    pub(crate) fn add_check(&self, is_admitted: bool) {
        match is_admitted {
            true => self.add(1, |counts| &counts.admitted),
            false => self.add(1, |counts| &counts.turned_away),
        }
    }

    pub(crate) fn add_checks(&self, admitted: usize, turned_away: usize) {
        self.add(admitted, |counts| &counts.admitted);
        self.add(turned_away, |counts| &counts.turned_away);
    }

    pub(crate) fn stats(&self) -> GuardStats {
        GuardStats {
            admitted: self.sum(|counts| &counts.admitted),
            turned_away: self.sum(|counts| &counts.turned_away),
            found: self.sum(|counts| &counts.found),
            false_positives: self.sum(|counts| &counts.false_positives),
        }
    }
}
