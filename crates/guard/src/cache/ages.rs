//! The ages of values, in caches that refresh values ahead or keep them for failures of the store.

use equivalent::Equivalent;
use foldhash::quality::RandomState;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// If a load fails and an old value serves instead, the next load of the key begins after this
/// time, so that gets do not all call a failing store.
const RETRY: Duration = Duration::from_secs(1);

/// The largest number of recorded keys whose load has failed. Each takes 200 bytes.
const MOST_FAILED: u64 = 100_000;

/// The ages at which something happens to a value, since it was put into the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// A get loads the value again before it returns.
    pub(super) time_to_live: Option<Duration>,
    /// A get returns the value, and a new load begins behind it.
    pub(super) refresh_after_write: Option<Duration>,
    /// The value is removed. Before, it serves if its load fails.
    pub(super) stale_if_error: Option<Duration>,
}

impl Times {
    /// The time for which moka keeps a value. While moka keeps it, it may serve if its load fails.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.stale_if_error.or(self.time_to_live)
    }
}

/// The clock of a cache. `K` is the keys' owned form.
pub(super) struct Ages<K> {
    start: Instant,
    times: Times,
    /// When the last load of a key failed.
    failed: moka::sync::Cache<K, u64, RandomState>,
    /// Whether the load that ended last has failed, of any key. `Relaxed`: it is a hint.
    is_failing: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Fresh,
    /// A get returns it, and a load should begin.
    Due,
    /// It serves only if its load fails. No load of its cache failed lately.
    Expired,
}

impl<K: Hash + Eq + Send + Sync + 'static> Ages<K> {
    /// `None` if moka alone can enforce the times.
    pub(super) fn new(times: Times) -> Option<Self> {
        let failed = moka::sync::Cache::builder()
            .max_capacity(MOST_FAILED)
            .time_to_live(times.longest().unwrap_or_default().max(RETRY));
        (times.refresh_after_write.is_some() || times.stale_if_error.is_some()).then(|| Self {
            start: Instant::now(),
            times,
            failed: failed.build_with_hasher(RandomState::default()),
            is_failing: AtomicBool::new(false),
        })
    }

    /// The time in nanoseconds, which suffice for 500 years.
    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The age of a value that was put in at `at`.
    pub(super) fn of<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, at: u64) -> Age {
        let age = self.since(at);
        let is_over = |time: Option<Duration>| time.is_some_and(|time| age >= time);
        let (expired, due) = (
            is_over(self.times.time_to_live),
            is_over(self.times.refresh_after_write),
        );
        if !(expired || due) {
            return Age::Fresh;
        }
        // A failure before this value says nothing about it.
        match self.failed.get(key).filter(|failed| *failed >= at) {
            Some(failed) if self.since(failed) < RETRY => Age::Fresh,
            Some(_) => Age::Due,
            None if expired && !self.is_failing.load(Ordering::Relaxed) => Age::Expired,
            None => Age::Due,
        }
    }

    pub(super) fn note_failed(&self, key: K) {
        self.failed.insert(key, self.now());
    }

    /// Notes the end of a load of any key. While loads fail, gets do not wait for a load of a key
    /// that has an old value: it runs behind them.
    pub(super) fn note_ended(&self, has_failed: bool) {
        if self.is_failing.load(Ordering::Relaxed) != has_failed {
            self.is_failing.store(has_failed, Ordering::Relaxed);
        }
    }

    fn since(&self, at: u64) -> Duration {
        // `at` may be later, if another thread has read the clock.
        Duration::from_nanos(self.now().saturating_sub(at))
    }
}
