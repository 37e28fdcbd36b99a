//! The statistics and the state of a cache as numbers, and their way to the `metrics` facade.

use crate::cache::Cache;
use crate::cache::entries::{Key, Value};
use crate::cache::history::Rebuilt;
use crate::cache::stats::CacheStats;
use crate::filter::GuardFilter;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The state of a cache in numbers, from [`Cache::report`]. [`CacheStats`] has the counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CacheReport {
    /// Values in the cache, approximately: moka counts late.
    pub values: u64,
    /// Keys remembered as missing, approximately.
    pub misses: u64,
    /// Keys in the store, approximately: those of the last rebuild, with the changes since, and at
    /// most the number of keys in the filter. `None` before a rebuild or a restore has counted
    /// them: over a filter that another process has filled, `filter.len` is the only number.
    pub keys: Option<u64>,
    /// The time since the keys were read from the store: since the last rebuild began, or since the
    /// restored file was saved. Without either, since the cache was made. It grows while rebuilds
    /// fail.
    pub keys_age: Duration,
    /// Keys that the filter was planned for.
    pub capacity: usize,
    /// The filter's statistics: fill, estimated keys and false-positive rate.
    pub filter: lanebloom::Statistics,
    /// The false-positive rate that was requested for the filter.
    pub promised_rate: f64,
    /// The memory of the filter, in bytes.
    pub filter_bytes: usize,
    /// Whether the filter is filled, as [`Cache::is_ready`].
    pub is_ready: bool,
    /// Whether every key passes the filter: it is not filled, it refused a key, it was
    /// [reopened](Cache::reopen), or it is a shared filter that lags or a
    /// [`Layered`](crate::Layered) that still collects keys.
    pub is_open: bool,
    /// The time since a `SharedBloom`'s last exchange with its server; `None` for other filters.
    pub lag: Option<Duration>,
    /// The last rebuild, and the time since its commit.
    pub last_rebuild: Option<(Rebuilt, Duration)>,
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// The statistics since the cache was made, across rebuilds.
    pub fn stats(&self) -> CacheStats {
        let evictions = self.0.flights.caches.evictions.load(Ordering::Relaxed);
        self.0.counts.cache_stats(self.0.guard.stats(), evictions)
    }

    /// The current state. This reads the whole filter, which takes a second for some GiB. In async
    /// code, call it in tokio's `spawn_blocking`, or call [`publish`](Self::publish), which is
    /// quick.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let builder = GuardedCache::<u64, u64>::builder().expected_keys(1000);
    /// let cache = builder.build_blocking(read)?;
    /// cache.insert_batch(&Vec::from_iter(0..600));
    /// let report = cache.report();
    /// assert!(report.is_open && !report.is_ready); // there may be more
    /// assert_eq!((report.keys, report.capacity), (None, 1000));
    /// assert!(report.filter.len.abs_diff(600) < 60);
    /// cache.rebuild_now(|keys| Ok(keys.insert_all(0..700)?))?;
    /// cache.remove(&17);
    /// assert_eq!(cache.report().keys, Some(699));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn report(&self) -> CacheReport {
        let caches = &self.0.flights.caches;
        let filter = self.0.guard.filter();
        // Before the lock, since this takes long.
        let now = filter.statistics();
        let keys = self.counted_keys(now.len);
        let history = self.history();
        CacheReport {
            values: caches.values.entry_count(),
            misses: caches.misses.entry_count(),
            keys,
            keys_age: history.read_at.elapsed(),
            capacity: history.capacity,
            filter: now,
            promised_rate: filter.false_positive_rate(),
            filter_bytes: filter.memory_bytes(),
            is_ready: self.is_ready(),
            is_open: self.0.guard.is_open(),
            lag: filter.lag(),
            last_rebuild: history.last.map(|(at, rebuilt)| (rebuilt, at.elapsed())),
        }
    }

    /// Passes [`stats`](Self::stats) and [`report`](Self::report) to the recorder of the
    /// [`metrics`](https://docs.rs/metrics) facade, with help texts. Call it before each scrape, or
    /// every few seconds. [The crate's page](crate#metrics) lists the names.
    ///
    /// It is quick, so async code may call it. It reads filters of at most 8 MiB, which takes a
    /// millisecond. A thread reads a larger filter, and the next call publishes its result: the
    /// estimates of the filter's keys and rate come one call late.
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
        let cache = &self.0.name;
        let count = |name: &'static str, value: u64, help: &'static str| {
            describe_counter!(name, Unit::Count, help);
            counter!(name, "cache" => cache.clone()).absolute(value);
        };
        let gauge = |name: &'static str, value: f64, unit: Unit, help: &'static str| {
            describe_gauge!(name, unit, help);
            gauge!(name, "cache" => cache.clone()).set(value);
        };
        let flag = |name, value: bool, help| gauge(name, if value { 1.0 } else { 0.0 }, Unit::Count, help);

        let stats = self.stats();
        let gets = "lanebloom_guard_gets_total";
        describe_counter!(gets, Unit::Count, "Keys that were requested, by the outcome");
        for (outcome, value) in [
            ("turned_away", stats.guard.turned_away),
            ("hit", stats.hits),
            ("known_miss", stats.known_misses),
            ("loaded", stats.loads),
            ("joined", stats.joined),
        ] {
            counter!(gets, "cache" => cache.clone(), "outcome" => outcome).absolute(value);
        }
        let help = "Keys whose load failed";
        count("lanebloom_guard_failed_loads_total", stats.failed, help);
        let help = "Keys whose load was refused, because too many loads ran and waited";
        count("lanebloom_guard_refused_loads_total", stats.refused, help);
        let help = "Keys whose load took too long";
        count("lanebloom_guard_timed_out_loads_total", stats.timed_out, help);
        let help = "Failed loads whose gets returned the value before";
        count("lanebloom_guard_stale_answers_total", stats.stale, help);
        let help = "Loads of values that were refreshed ahead";
        count("lanebloom_guard_refreshes_total", stats.refreshes, help);
        let help = "Time that a load took, also a failed one";
        describe_histogram!("lanebloom_guard_load_seconds", Unit::Seconds, help);
        let false_positives = stats.guard.false_positives;
        let help = "Gets of absent keys that the filter let through";
        count("lanebloom_guard_false_positives_total", false_positives, help);
        let help = "Keys that were inserted, updates of rows included";
        count("lanebloom_guard_inserted_total", stats.inserted, help);
        count("lanebloom_guard_removed_total", stats.removed, "Keys that were removed");
        let help = "Values that expired, or that others pushed out";
        count("lanebloom_guard_evictions_total", stats.evictions, help);
        let help = "Rebuilds that were committed";
        count("lanebloom_guard_rebuilds_total", stats.rebuilds, help);
        let help = "Rebuilds that failed";
        count("lanebloom_guard_failed_rebuilds_total", stats.failed_rebuilds, help);
        if let Some(rate) = stats.guard.false_positive_rate() {
            let help = "Share of absent keys that the filter let through, as counted";
            gauge("lanebloom_guard_measured_rate", rate, Unit::Count, help);
        }

        let caches = &self.0.flights.caches;
        let (values, misses) = (caches.values.entry_count(), caches.misses.entry_count());
        gauge("lanebloom_guard_values", values as f64, Unit::Count, "Cached values");
        let help = "Keys that are remembered as missing";
        gauge("lanebloom_guard_misses", misses as f64, Unit::Count, help);

        let filter = self.0.guard.filter();
        let mut measurement = self.0.measurement.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = measurement.of(&filter);
        drop(measurement);
        if let Some(filter) = measured {
            if let Some(keys) = self.counted_keys(filter.len) {
                let help = "Keys in the store, as far as known";
                gauge("lanebloom_guard_keys", keys as f64, Unit::Count, help);
            }
            let help = "Keys in the filter, estimated";
            gauge("lanebloom_guard_filter_keys", filter.len as f64, Unit::Count, help);
            let help = "Share of the filter's bits that are set";
            gauge("lanebloom_guard_fill_ratio", filter.fill_ratio, Unit::Count, help);
            let rate = filter.false_positive_rate;
            let help = "False-positive rate that follows from the filter's fill";
            gauge("lanebloom_guard_current_rate", rate, Unit::Count, help);
        }
        let rate = filter.false_positive_rate();
        let help = "False-positive rate that was requested for the filter";
        gauge("lanebloom_guard_promised_rate", rate, Unit::Count, help);
        let bytes = filter.memory_bytes() as f64;
        let help = "Memory of the filter";
        gauge("lanebloom_guard_filter_bytes", bytes, Unit::Bytes, help);
        if let Some(lag) = filter.lag() {
            let help = "Time since a shared filter's last exchange with its server";
            gauge("lanebloom_guard_lag_seconds", lag.as_secs_f64(), Unit::Seconds, help);
        }
        flag("lanebloom_guard_ready", self.is_ready(), "1 once the filter is filled");
        let help = "1 while every key passes the filter: it is not filled, refused a key, or lags";
        flag("lanebloom_guard_open", self.0.guard.is_open(), help);

        // A copy, so that the recorder is not called under the lock.
        let history = *self.history();
        let help = "Keys that the filter was planned for";
        gauge("lanebloom_guard_capacity", history.capacity as f64, Unit::Count, help);
        let help = "Time since all keys were read from the store, or since the cache was made";
        let age = history.read_at.elapsed().as_secs_f64();
        gauge("lanebloom_guard_keys_age_seconds", age, Unit::Seconds, help);
        if let Some((_, rebuilt)) = history.last {
            let help = "Duration of the last rebuild";
            let duration = rebuilt.duration.as_secs_f64();
            gauge("lanebloom_guard_rebuild_seconds", duration, Unit::Seconds, help);
        }
    }
}
