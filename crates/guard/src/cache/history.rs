//! What a cache knows of its rebuilds, and what it needs for the next one.

use crate::error::BoxError;
use std::time::{Duration, Instant};

/// How filters are made, for the first and for each rebuild.
pub(super) struct FilterFactory<F> {
    pub(super) expected_keys: usize,
    pub(super) make: MakeFilter<F>,
}

pub(super) type MakeFilter<F> = Box<dyn Fn(usize) -> Result<F, BoxError> + Send + Sync>;

/// What a rebuild did.
///
/// ```
/// # use lanebloom_guard::sync::GuardedCache;
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let builder = GuardedCache::<u64, u64>::builder().expected_keys(100);
/// let cache = builder.build_blocking(read)?;
/// let rebuilt = cache.rebuild_now(|keys| Ok(keys.insert_all(0..1000)?))?;
/// // Too many: so it read them again, into a filter with room for a quarter more.
/// assert_eq!((rebuilt.keys, rebuilt.capacity), (1000, 1250));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// Keys that the source had.
    pub keys: usize,
    /// Keys that the new filter was made for.
    pub capacity: usize,
    /// From the beginning to the commit.
    pub duration: Duration,
}

/// The rebuilds so far, and what the next one needs.
#[derive(Clone, Copy)]
pub(super) struct History {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) last: Option<(Instant, Rebuilt)>,
    /// When the keys of the filter were read from the store; before that, when the cache was made.
    pub(super) read_at: Instant,
    /// Keys that the filter was made for.
    pub(super) capacity: usize,
    /// Keys in the store at the last rebuild, and the number of changes before it.
    pub(super) keys: u64,
    pub(super) inserted: u64,
    pub(super) removed: u64,
}

impl History {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            completed: 0,
            failed: 0,
            last: None,
            read_at: Instant::now(),
            capacity,
            keys: 0,
            inserted: 0,
            removed: 0,
        }
    }
}
