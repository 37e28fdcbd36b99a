//! Counts and figures of a cache, and their way to the `metrics` facade.

use crate::Key;
use crate::cache::GuardedCache;
use crate::mode::Mode;
use crate::rebuild::Rebuilt;
use lanebloom::GuardFilter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thread_local::ThreadLocal;

/// Counts since the cache was made. Beside other threads, they may be of slightly different
/// moments.
///
/// Each key of a get or multi-get counts once in one of the first five.
///
/// ```
/// # use lanebloom_guard::GuardedCache;
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// cache.added(&17);
/// cache.mark_ready();
/// cache.get(&17)?;
/// let before = cache.stats();
/// cache.get_many(&[17, 17, 18])?;
/// let stats = cache.stats().since(&before);
/// assert_eq!((stats.hits, stats.turned_away, stats.loads), (2, 1, 0));
/// assert_eq!((stats.gets(), cache.stats().gets()), (3, 4));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys that the filter turned away, also in checks of [`GuardedCache::guard`].
    pub turned_away: u64,
    /// Keys whose value was cached.
    pub hits: u64,
    /// Keys that were remembered as missing.
    pub known_misses: u64,
    /// Keys that were loaded.
    pub loads: u64,
    /// Keys whose load was on its way already.
    pub joined: u64,
    /// Loads that failed, or panicked.
    pub failed: u64,
    /// Keys that the filter let through and the store did not have: `known_misses`, and the loads
    /// and joined loads that found no row.
    pub false_positives: u64,
    /// Keys that were added or inserted, updates of rows included.
    pub added: u64,
    /// Keys that were removed.
    pub removed: u64,
}

impl Stats {
    /// Keys that were asked for.
    #[must_use]
    pub fn gets(&self) -> u64 {
        self.turned_away + self.hits + self.known_misses + self.loads + self.joined
    }

    /// The fraction of requests for absent keys that the filter let through, to compare with the
    /// filter's rate; `None` before the first such request. Removed keys count until a rebuild.
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        let absent = self.turned_away + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }

    /// The counts since `earlier`: these less those, or 0 if that would be negative.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |count: fn(&Self) -> u64| count(self).saturating_sub(count(earlier));
        Self {
            turned_away: difference(|stats| stats.turned_away),
            hits: difference(|stats| stats.hits),
            known_misses: difference(|stats| stats.known_misses),
            loads: difference(|stats| stats.loads),
            joined: difference(|stats| stats.joined),
            failed: difference(|stats| stats.failed),
            false_positives: difference(|stats| stats.false_positives),
            added: difference(|stats| stats.added),
            removed: difference(|stats| stats.removed),
        }
    }
}

/// The state of a cache, from [`GuardedCache::figures`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Values in the cache, about: moka counts late.
    pub values: u64,
    /// Keys remembered as missing, about.
    pub misses: u64,
    /// Keys in the store, about: those of the last rebuild, with the changes since, and at most the
    /// number that the filter has.
    pub keys: u64,
    /// Keys that the filter was made for.
    pub capacity: usize,
    /// Fill, estimated keys and false-positive rate of the filter now.
    pub filter: lanebloom::Figures,
    /// The false-positive rate that the filter was built for.
    pub promised_rate: f64,
    /// The memory of the filter, in bytes.
    pub filter_bytes: usize,
    /// Whether the filter was filled, as [`GuardedCache::is_ready`].
    pub is_ready: bool,
    /// Whether every key passes the filter: it is not filled yet, or it refused a key.
    pub is_open: bool,
    /// The time since a `SharedBloom`'s last exchange with its server; `None` for other filters.
    pub lag: Option<Duration>,
    /// Rebuilds that were committed.
    pub rebuilds: u64,
    /// Rebuilds that failed.
    pub failed_rebuilds: u64,
    /// The last rebuild, and the time since its commit.
    pub last_rebuild: Option<(Rebuilt, Duration)>,
}

impl<K, V, F, M> GuardedCache<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// The counts since the cache was made, across rebuilds.
    pub fn stats(&self) -> Stats {
        let guard = self.0.guard.stats();
        Stats {
            turned_away: guard.turned_away,
            false_positives: guard.false_positives,
            ..self.0.counts.sum()
        }
    }

    /// The state now. It reads the whole filter, which takes a second for some GiB.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let builder = GuardedCache::<u64, u64>::builder().expected_keys(1000);
    /// let cache = builder.build_blocking(read)?;
    /// cache.added_many(&Vec::from_iter(0..600));
    /// cache.removed(&17);
    /// let figures = cache.figures();
    /// assert!(figures.keys.abs_diff(599) < 60 && figures.capacity == 1000);
    /// assert!(figures.filter.len.abs_diff(600) < 60);
    /// assert!(figures.is_open && !figures.is_ready); // there may be more
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn figures(&self) -> Figures {
        let caches = &self.0.flights.caches;
        let filter = self.0.guard.filter();
        // Before the lock, since it takes long.
        let now = filter.figures();
        let keys = self.known_keys(now.len);
        let history = self.history();
        Figures {
            values: caches.values.entry_count(),
            misses: caches.misses.entry_count(),
            keys,
            capacity: history.capacity,
            filter: now,
            promised_rate: filter.false_positive_rate(),
            filter_bytes: filter.memory_bytes(),
            is_ready: self.is_ready(),
            is_open: self.0.guard.is_open(),
            lag: filter.lag(),
            rebuilds: history.completed,
            failed_rebuilds: history.failed,
            last_rebuild: history.last.map(|(at, rebuilt)| (rebuilt, at.elapsed())),
        }
    }

    /// Hands [`stats`](Self::stats) and [`figures`](Self::figures) to the recorder of the
    /// [`metrics`] facade. Call it before each scrape, or every few seconds; requests themselves
    /// write no metric. [The crate's page](crate#figures) lists the names.
    ///
    /// ```
    /// use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let builder = GuardedCache::<u64, u64>::builder().name("users");
    /// let cache = builder.build_blocking(read)?;
    /// cache.mark_ready(); // the store is empty
    /// cache.get(&17)?;
    ///
    /// let recorder = DebuggingRecorder::new();
    /// metrics::with_local_recorder(&recorder, || cache.publish());
    /// let metrics = recorder.snapshotter().snapshot().into_vec();
    /// let turned_away = metrics.into_iter().find(|(key, ..)| {
    ///     let labels = key.key().labels().map(|label| label.value());
    ///     key.key().name() == "lanebloom_guard_gets_total"
    ///         && labels.eq(["users", "turned_away"])
    /// });
    /// assert_eq!(turned_away.unwrap().3, DebugValue::Counter(1));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn publish(&self) {
        let (stats, figures) = (self.stats(), self.figures());
        let cache = &self.0.name;
        let count = |name: &'static str, value: u64| {
            metrics::counter!(name, "cache" => cache.clone()).absolute(value);
        };
        let gauge = |name: &'static str, value: f64| {
            metrics::gauge!(name, "cache" => cache.clone()).set(value);
        };
        for (outcome, value) in [
            ("turned_away", stats.turned_away),
            ("hit", stats.hits),
            ("known_miss", stats.known_misses),
            ("loaded", stats.loads),
            ("joined", stats.joined),
        ] {
            let labels = [("cache", cache.clone()), ("outcome", outcome.to_owned())];
            metrics::counter!("lanebloom_guard_gets_total", &labels).absolute(value);
        }
        count("lanebloom_guard_failed_loads_total", stats.failed);
        count("lanebloom_guard_false_positives_total", stats.false_positives);
        count("lanebloom_guard_added_total", stats.added);
        count("lanebloom_guard_removed_total", stats.removed);
        count("lanebloom_guard_rebuilds_total", figures.rebuilds);
        count("lanebloom_guard_failed_rebuilds_total", figures.failed_rebuilds);
        gauge("lanebloom_guard_values", figures.values as f64);
        gauge("lanebloom_guard_misses", figures.misses as f64);
        gauge("lanebloom_guard_keys", figures.keys as f64);
        gauge("lanebloom_guard_capacity", figures.capacity as f64);
        gauge("lanebloom_guard_filter_keys", figures.filter.len as f64);
        gauge("lanebloom_guard_filter_bytes", figures.filter_bytes as f64);
        gauge("lanebloom_guard_fill_ratio", figures.filter.fill_ratio);
        gauge("lanebloom_guard_promised_rate", figures.promised_rate);
        gauge("lanebloom_guard_current_rate", figures.filter.false_positive_rate);
        gauge("lanebloom_guard_ready", if figures.is_ready { 1.0 } else { 0.0 });
        gauge("lanebloom_guard_open", if figures.is_open { 1.0 } else { 0.0 });
        if let Some(rate) = stats.false_positive_rate() {
            gauge("lanebloom_guard_measured_rate", rate);
        }
        if let Some(lag) = figures.lag {
            gauge("lanebloom_guard_lag_seconds", lag.as_secs_f64());
        }
        if let Some((rebuilt, age)) = figures.last_rebuild {
            gauge("lanebloom_guard_rebuild_seconds", rebuilt.duration.as_secs_f64());
            gauge("lanebloom_guard_rebuild_age_seconds", age.as_secs_f64());
        }
    }
}

/// Counters of each thread, so that a count is no locked operation and threads do not take a line
/// from each other.
#[derive(Default)]
pub(crate) struct Counts(ThreadLocal<Shard>);

/// Two lines wide, because x86-64 fetches lines in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) hits: Count,
    pub(crate) known_misses: Count,
    pub(crate) loads: Count,
    pub(crate) joined: Count,
    pub(crate) failed: Count,
    pub(crate) added: Count,
    pub(crate) removed: Count,
}

/// `Relaxed`: a count orders nothing.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// By the thread that the shard belongs to: nobody else writes in between. (A thread that has
    /// the shard after another has ended sees its last count, since `ThreadLocal` hands the place
    /// on under a lock.)
    #[inline]
    pub(crate) fn add(&self, n: usize) {
        self.0.store(self.get() + n as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    #[inline]
    pub(crate) fn of_this_thread(&self) -> &Shard {
        self.0.get_or_default()
    }

    /// The sums, without the guard's counts.
    pub(crate) fn sum(&self) -> Stats {
        self.0.iter().fold(Stats::default(), |sum, shard| Stats {
            hits: sum.hits + shard.hits.get(),
            known_misses: sum.known_misses + shard.known_misses.get(),
            loads: sum.loads + shard.loads.get(),
            joined: sum.joined + shard.joined.get(),
            failed: sum.failed + shard.failed.get(),
            added: sum.added + shard.added.get(),
            removed: sum.removed + shard.removed.get(),
            ..sum
        })
    }
}
