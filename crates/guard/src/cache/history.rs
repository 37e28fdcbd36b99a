//! The record of a cache's rebuilds, what the next one needs, and the filter's last statistics.

use crate::error::BoxError;
use crate::filter::GuardFilter;
use lanebloom::Statistics;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A filter of at most this memory, in bytes, is read at once. This takes a millisecond.
pub(super) const READ_AT_ONCE: usize = 8 << 20;

/// Makes filters: the first one, and one for each rebuild.
pub(super) struct FilterFactory<F> {
    pub(super) expected_keys: usize,
    pub(super) make: MakeFilter<F>,
}

pub(super) type MakeFilter<F> = Box<dyn Fn(usize) -> Result<F, BoxError> + Send + Sync>;

/// The result of a rebuild.
///
/// ```
/// # use lanebloom_guard::sync::GuardedCache;
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let builder = GuardedCache::<u64, u64>::builder().expected_keys(100);
/// let cache = builder.build_blocking(read)?;
/// let rebuilt = cache.rebuild_now(|keys| Ok(keys.insert_all(0..1000)?))?;
/// // Too many keys: it read them again, for a filter with a quarter more room.
/// assert_eq!((rebuilt.keys, rebuilt.capacity), (1000, 1250));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// The number of keys of the source.
    pub keys: usize,
    /// Keys that the new filter was planned for.
    pub capacity: usize,
    /// The time from the beginning to the commit.
    pub duration: Duration,
}

/// The rebuilds so far, and the data for the next one.
#[derive(Clone, Copy)]
pub(super) struct History {
    pub(super) last: Option<(Instant, Rebuilt)>,
    /// When the keys of the filter were read from the store, or else when the cache was made.
    pub(super) read_at: Instant,
    /// Keys that the filter was planned for.
    pub(super) capacity: usize,
    /// Keys in the store at the last rebuild, or by the restored file, and the number of changes
    /// before.
    pub(super) keys: Option<u64>,
    pub(super) inserted: u64,
    pub(super) removed: u64,
    /// Whether a feed is followed that is not heard: no rebuild may close the guard.
    pub(super) is_unheard: bool,
}

impl History {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            last: None,
            read_at: Instant::now(),
            capacity,
            keys: None,
            inserted: 0,
            removed: 0,
            is_unheard: false,
        }
    }
}

/// The statistics of a filter, for callers that must not wait.
#[derive(Default)]
pub(super) struct Measurement {
    thread: Option<JoinHandle<Statistics>>,
    last: Option<Statistics>,
}

impl Measurement {
    /// The statistics of `filter`. For a large filter, they come from a thread that an earlier call
    /// started; `None` before the first thread has ended.
    pub(super) fn of<F: GuardFilter>(&mut self, filter: &Arc<F>) -> Option<Statistics> {
        if filter.memory_bytes() <= READ_AT_ONCE {
            return Some(filter.statistics());
        }
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            // A panic of the filter leaves the last result.
            if let Some(Ok(statistics)) = self.thread.take().map(JoinHandle::join) {
                self.last = Some(statistics);
            }
            let filter = Arc::clone(filter);
            // If the thread does not start, the next call tries again.
            self.thread = thread::Builder::new().spawn(move || filter.statistics()).ok();
        }
        self.last
    }
}
