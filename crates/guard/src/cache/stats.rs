//! The statistics of a cache: counts since it was made. `stats.rs` of the crate has those of a
//! guard, `report.rs` the state.

use crate::stats::GuardStats;
use crate::striped::Striped;
use std::sync::atomic::AtomicU64;

/// The statistics of a cache: counts since the cache was made. If other threads count meanwhile,
/// they may be of slightly different moments.
///
/// Each key of a get or multi-get counts once: in `guard.turned_away`, `hits`, `known_misses`,
/// `loads` or `joined`.
///
/// ```
/// # use lanebloom_guard::sync::GuardedCache;
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// cache.insert(&17);
/// cache.mark_ready();
/// cache.get(&17)?;
/// let before = cache.stats();
/// cache.get_many(&[17, 17, 18])?;
/// let stats = cache.stats().since(&before);
/// assert_eq!((stats.hits, stats.guard.turned_away, stats.loads), (2, 1, 0));
/// assert_eq!((stats.gets(), cache.stats().gets()), (3, 4));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The counts of the guard, including checks by [`Cache::guard`](crate::Cache::guard): keys
    /// that the filter turned away, and keys that it admitted and the store did not have. Cached
    /// values count as admitted, not as found.
    pub guard: GuardStats,
    /// Keys whose value was cached.
    pub hits: u64,
    /// Keys that were remembered as missing.
    pub known_misses: u64,
    /// Keys that were loaded.
    pub loads: u64,
    /// Keys whose load was already running.
    pub joined: u64,
    /// Keys whose load failed: by an error or a panic of the loader, by the timeout, or refused.
    pub failed: u64,
    /// Keys among `failed` that were refused, because too many loads ran and waited.
    pub refused: u64,
    /// Keys among `failed` whose load took too long.
    pub timed_out: u64,
    /// Failed loads whose gets returned the value before, past its time to live.
    pub stale: u64,
    /// Loads of values that were refreshed ahead. They are not among `loads`.
    pub refreshes: u64,
    /// Keys that were inserted, updates of rows included.
    pub inserted: u64,
    /// Keys that were removed.
    pub removed: u64,
    /// Values that expired, or that others pushed out. Moka notices it during later calls.
    pub evictions: u64,
    /// Rebuilds that were committed.
    pub rebuilds: u64,
    /// Rebuilds that failed.
    pub failed_rebuilds: u64,
}

impl CacheStats {
    /// The number of keys that gets and multi-gets requested.
    #[must_use]
    pub fn gets(&self) -> u64 {
        self.guard.turned_away + self.hits + self.known_misses + self.loads + self.joined
    }

    /// The counts since `earlier`: the differences, or 0 where one would be negative.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |count: fn(&Self) -> u64| count(self).saturating_sub(count(earlier));
        Self {
            guard: self.guard.since(&earlier.guard),
            hits: difference(|stats| stats.hits),
            known_misses: difference(|stats| stats.known_misses),
            loads: difference(|stats| stats.loads),
            joined: difference(|stats| stats.joined),
            failed: difference(|stats| stats.failed),
            refused: difference(|stats| stats.refused),
            timed_out: difference(|stats| stats.timed_out),
            stale: difference(|stats| stats.stale),
            refreshes: difference(|stats| stats.refreshes),
            inserted: difference(|stats| stats.inserted),
            removed: difference(|stats| stats.removed),
            evictions: difference(|stats| stats.evictions),
            rebuilds: difference(|stats| stats.rebuilds),
            failed_rebuilds: difference(|stats| stats.failed_rebuilds),
        }
    }
}

/// The counters of a cache, without those of its guard.
pub(super) type CacheCounts = Striped<CacheCounters>;

#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub(super) hits: AtomicU64,
    pub(super) known_misses: AtomicU64,
    pub(super) loads: AtomicU64,
    pub(super) joined: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) timed_out: AtomicU64,
    pub(super) stale: AtomicU64,
    pub(super) refreshes: AtomicU64,
    pub(super) inserted: AtomicU64,
    pub(super) removed: AtomicU64,
    pub(super) rebuilds: AtomicU64,
    pub(super) failed_rebuilds: AtomicU64,
}

impl CacheCounts {
    pub(super) fn cache_stats(&self, guard: GuardStats, evictions: u64) -> CacheStats {
        CacheStats {
            guard,
            hits: self.sum(|counts| &counts.hits),
            known_misses: self.sum(|counts| &counts.known_misses),
            loads: self.sum(|counts| &counts.loads),
            joined: self.sum(|counts| &counts.joined),
            failed: self.sum(|counts| &counts.failed),
            refused: self.sum(|counts| &counts.refused),
            timed_out: self.sum(|counts| &counts.timed_out),
            stale: self.sum(|counts| &counts.stale),
            refreshes: self.sum(|counts| &counts.refreshes),
            inserted: self.sum(|counts| &counts.inserted),
            removed: self.sum(|counts| &counts.removed),
            evictions,
            rebuilds: self.sum(|counts| &counts.rebuilds),
            failed_rebuilds: self.sum(|counts| &counts.failed_rebuilds),
        }
    }
}
