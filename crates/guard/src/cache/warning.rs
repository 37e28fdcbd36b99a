//! Warnings that may be due thousands of times a second, and are logged once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// At most one warning passes in this time.
const PAUSE: Duration = Duration::from_secs(1);

/// A kind of warnings.
pub(super) struct Warning {
    start: Instant,
    /// The time since `start` from which the next one passes, in nanoseconds. `Relaxed`, like
    /// `held_back`: nothing else depends on them.
    next: AtomicU64,
    held_back: AtomicU64,
}

impl Warning {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            next: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// Whether a warning may be logged now: returns the number of those held back before it.
    pub(super) fn pass(&self) -> Option<u64> {
        let now = self.start.elapsed().as_nanos() as u64;
        let next = self.next.load(Ordering::Relaxed);
        let passes = now >= next && {
            let next_after = now + PAUSE.as_nanos() as u64;
            let claimed = self
                .next
                .compare_exchange(next, next_after, Ordering::Relaxed, Ordering::Relaxed);
            claimed.is_ok()
        };
        if passes {
            return Some(self.held_back.swap(0, Ordering::Relaxed));
        }
        self.held_back.fetch_add(1, Ordering::Relaxed);
        None
    }
}
