//! How old values are, in caches that refresh them ahead or keep them for when the store fails.

use equivalent::Equivalent;
use foldhash::quality::RandomState;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// After a load has failed whose key has a value that may serve, the next one comes after this
/// time: gets of the key do not all wait for a store that fails.
const RETRY: Duration = Duration::from_secs(1);

/// The keys whose load has just failed, at most: they take 200 bytes each for [`RETRY`].
const MOST_FAILED: u64 = 100_000;

/// The ages at which something happens to a value, by the time since it was put in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// It is loaded anew before it is answered.
    pub(super) time_to_live: Option<Duration>,
    /// It is loaded anew behind the answer.
    pub(super) refresh_after_write: Option<Duration>,
    /// It is gone. Until then it serves if its load fails.
    pub(super) stale_if_error: Option<Duration>,
}

impl Times {
    /// How long moka keeps a value. What moka still has may serve if its load fails.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.stale_if_error.or(self.time_to_live)
    }
}

/// The clock of a cache. `K` is the keys' owned form.
pub(super) struct Ages<K> {
    start: Instant,
    times: Times,
    failed: moka::sync::Cache<K, (), RandomState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Fresh,
    /// It is answered, and a load should begin.
    Due,
    /// It may only serve if its load fails.
    Expired,
}

impl<K: Hash + Eq + Send + Sync + 'static> Ages<K> {
    /// `None` if moka alone can see to it.
    pub(super) fn new(times: Times) -> Option<Self> {
        let failed = moka::sync::Cache::builder()
            .max_capacity(MOST_FAILED)
            .time_to_live(RETRY);
        (times.refresh_after_write.is_some() || times.stale_if_error.is_some()).then(|| Self {
            start: Instant::now(),
            times,
            failed: failed.build_with_hasher(RandomState::default()),
        })
    }

    /// In nanoseconds, enough for 500 years.
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
        if !(expired || due) || self.failed.contains_key(key) {
            Age::Fresh
        } else if expired {
            Age::Expired
        } else {
            Age::Due
        }
    }

    pub(super) fn note_failed(&self, key: K) {
        self.failed.insert(key, ());
    }

    fn since(&self, at: u64) -> Duration {
        // Another thread's moment may be later.
        Duration::from_nanos(self.now().saturating_sub(at))
    }
}
