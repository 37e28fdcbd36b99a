//! Counts and figures of a cache, and their way to the `metrics` facade.

use crate::cache::Cache;
use crate::cache::counts::CacheStats;
use crate::cache::history::Rebuilt;
use crate::cache::store::{Key, Value};
use crate::filter::GuardFilter;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The state of a cache, from [`Cache::figures`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CacheFigures {
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
    /// Whether the filter was filled, as [`Cache::is_ready`].
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

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// The counts since the cache was made, across rebuilds.
    pub fn stats(&self) -> CacheStats {
        let evictions = self.0.flights.caches.evictions.load(Ordering::Relaxed);
        self.0.counts.cache_stats(self.0.guard.stats(), evictions)
    }

    /// The state now. It reads the whole filter, which takes a second for some GiB.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let builder = GuardedCache::<u64, u64>::builder().expected_keys(1000);
    /// let cache = builder.build_blocking(read)?;
    /// cache.insert_batch(&Vec::from_iter(0..600));
    /// cache.remove(&17);
    /// let figures = cache.figures();
    /// assert!(figures.keys.abs_diff(599) < 60 && figures.capacity == 1000);
    /// assert!(figures.filter.len.abs_diff(600) < 60);
    /// assert!(figures.is_open && !figures.is_ready); // there may be more
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn figures(&self) -> CacheFigures {
        let caches = &self.0.flights.caches;
        let filter = self.0.guard.filter();
        // Before the lock, since it takes long.
        let now = filter.figures();
        let keys = self.known_keys(now.len);
        let history = self.history();
        CacheFigures {
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
    /// # use lanebloom_guard::sync::GuardedCache;
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
            ("turned_away", stats.guard.turned_away),
            ("hit", stats.hits),
            ("known_miss", stats.known_misses),
            ("loaded", stats.loads),
            ("joined", stats.joined),
        ] {
            let labels = [("cache", cache.clone()), ("outcome", outcome.to_owned())];
            metrics::counter!("lanebloom_guard_gets_total", &labels).absolute(value);
        }
        count("lanebloom_guard_failed_loads_total", stats.failed);
        count("lanebloom_guard_false_positives_total", stats.guard.false_positives);
        count("lanebloom_guard_inserted_total", stats.inserted);
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
        if let Some(rate) = stats.guard.false_positive_rate() {
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
