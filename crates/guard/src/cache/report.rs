//! The statistics and the state of a cache as numbers, and their way to the `metrics` facade.

use crate::cache::Cache;
use crate::cache::entries::{Key, Value};
use crate::cache::history::Rebuilt;
use crate::cache::stats::CacheStats;
use crate::filter::GuardFilter;
use lanebloom::Statistics;
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
    pub filter: Statistics,
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
        let full = |name: &str| format!("lanebloom_guard_{name}");
        let stats = self.stats();
        let gets = full("gets_total");
        describe_counter!(gets.clone(), Unit::Count, "Keys that were requested, by the outcome");
        for (outcome, value) in [
            ("turned_away", stats.guard.turned_away),
            ("hit", stats.hits),
            ("known_miss", stats.known_misses),
            ("loaded", stats.loads),
            ("joined", stats.joined),
        ] {
            counter!(gets.clone(), "cache" => cache.clone(), "outcome" => outcome).absolute(value);
        }
        let too_many = "Keys whose load was refused, because too many loads ran and waited";
        let false_positives = "Gets of absent keys that the filter let through";
        for (name, value, help) in [
            ("failed_loads", stats.failed, "Keys whose load failed"),
            ("refused_loads", stats.refused, too_many),
            ("timed_out_loads", stats.timed_out, "Keys whose load took too long"),
            (
                "stale_answers",
                stats.stale,
                "Failed loads whose gets returned the value before",
            ),
            (
                "refreshes",
                stats.refreshes,
                "Loads of values that were refreshed ahead",
            ),
            ("false_positives", stats.guard.false_positives, false_positives),
            (
                "inserted",
                stats.inserted,
                "Keys that were inserted, updates of rows included",
            ),
            ("removed", stats.removed, "Keys that were removed"),
            (
                "evictions",
                stats.evictions,
                "Values that expired, or that others pushed out",
            ),
            ("rebuilds", stats.rebuilds, "Rebuilds that were committed"),
            ("failed_rebuilds", stats.failed_rebuilds, "Rebuilds that failed"),
        ] {
            let name = full(name) + "_total";
            describe_counter!(name.clone(), Unit::Count, help);
            counter!(name, "cache" => cache.clone()).absolute(value);
        }
        let help = "Time that a load took, also a failed one";
        describe_histogram!(full("load_seconds"), Unit::Seconds, help);

        let gauge = |name, value: f64, unit, help| {
            let name = full(name);
            describe_gauge!(name.clone(), unit, help);
            gauge!(name, "cache" => cache.clone()).set(value);
        };
        let number = |name, value: f64, help| gauge(name, value, Unit::Count, help);
        let seconds = |name, time: Duration, help| gauge(name, time.as_secs_f64(), Unit::Seconds, help);
        if let Some(rate) = stats.guard.false_positive_rate() {
            let help = "Share of absent keys that the filter let through, as counted";
            number("measured_rate", rate, help);
        }
        let caches = &self.0.flights.caches;
        number("values", caches.values.entry_count() as f64, "Cached values");
        let help = "Keys that are remembered as missing";
        number("misses", caches.misses.entry_count() as f64, help);

        let filter = self.0.guard.filter();
        let mut measurement = self.0.measurement.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = measurement.of(&filter);
        drop(measurement);
        if let Some(filter) = measured {
            if let Some(keys) = self.counted_keys(filter.len) {
                number("keys", keys as f64, "Keys in the store, as far as known");
            }
            number("filter_keys", filter.len as f64, "Keys in the filter, estimated");
            number(
                "fill_ratio",
                filter.fill_ratio,
                "Share of the filter's bits that are set",
            );
            let help = "False-positive rate that follows from the filter's fill";
            number("current_rate", filter.false_positive_rate, help);
        }
        let help = "False-positive rate that was requested for the filter";
        number("promised_rate", filter.false_positive_rate(), help);
        let bytes = filter.memory_bytes() as f64;
        gauge("filter_bytes", bytes, Unit::Bytes, "Memory of the filter");
        if let Some(lag) = filter.lag() {
            let help = "Time since a shared filter's last exchange with its server";
            seconds("lag_seconds", lag, help);
        }
        let flag = |name, is_set: bool, help| number(name, f64::from(u8::from(is_set)), help);
        flag("ready", self.is_ready(), "1 once the filter is filled");
        let help = "1 while every key passes the filter: it is not filled, refused a key, or lags";
        flag("open", self.0.guard.is_open(), help);

        // A copy, so that the recorder is not called under the lock.
        let history = *self.history();
        number(
            "capacity",
            history.capacity as f64,
            "Keys that the filter was planned for",
        );
        let help = "Time since all keys were read from the store, or since the cache was made";
        seconds("keys_age_seconds", history.read_at.elapsed(), help);
        if let Some((_, rebuilt)) = history.last {
            seconds("rebuild_seconds", rebuilt.duration, "Duration of the last rebuild");
        }
    }
}
