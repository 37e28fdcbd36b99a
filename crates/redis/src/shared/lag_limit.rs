//! Decides when a node lags: its filter may lack keys that other nodes inserted long ago. The
//! node's thread reports its exchanges here. Guards ask on every refusal.
//!
//! # A node that has caught up
//!
//! The server was away for all nodes. The first node that reaches it again pulls what the server
//! has, but the others have not pushed their keys of that time yet. So a node that lagged keeps
//! lagging for one more `limit` after its first exchange, and until an exchange that began after
//! that. Meanwhile the others push: an attempt that hangs ends within [`LagLimit::timeout`], and
//! the next attempt begins after [`LagLimit::pause`]. Together these are three quarters of the
//! limit. An exchange that fails meanwhile begins this time anew: the server may be away for the
//! others too. A node that connects lags in the same way, because the server may have been away
//! before.
//!
//! # Memory ordering
//!
//! `fresh_until` is stored with `Release` after the bits of an exchange were added, and loaded with
//! `Acquire`. So a guard that finds the node fresh, and looks a key up after that, finds every key
//! of that exchange. Only the node's thread stores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// `fresh_until` of a node without a limit.
const ALWAYS: u64 = u64::MAX;

/// The shortest timeout or pause: a limit of 0 does not make the thread run without rest.
const SHORTEST: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct LagLimit {
    limit: Option<Duration>,
    base: Instant,
    /// In ns since `base`.
    fresh_until: AtomicU64,
}

impl LagLimit {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            base: Instant::now(),
            fresh_until: AtomicU64::new(limit.map_or(ALWAYS, |_| 0)),
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.limit.is_some()
    }

    /// The most time that a round trip may take.
    pub(super) fn timeout(&self, timeout: Duration) -> Duration {
        self.limit.map_or(timeout, |limit| timeout.min(SHORTEST.max(limit / 2)))
    }

    /// The longest pause before an attempt.
    pub(super) fn pause(&self, pause: Duration) -> Duration {
        self.limit.map_or(pause, |limit| pause.min(SHORTEST.max(limit / 4)))
    }

    #[inline]
    pub(super) fn is_exceeded(&self) -> bool {
        let fresh_until = self.fresh_until.load(Ordering::Acquire);
        fresh_until != ALWAYS && self.nanoseconds(Instant::now()) >= fresh_until
    }

    /// Takes note of an exchange that succeeded. `recovered` is when the first one after a lag, or
    /// after the last failure, had ended, while the node still lags.
    pub(super) fn succeeded(&self, recovered: &mut Option<Instant>, began: Instant, ended: Instant) {
        let Some(limit) = self.limit else {
            return;
        };
        match *recovered {
            Some(at) if began.duration_since(at) < limit => return,
            None if self.nanoseconds(ended) >= self.fresh_until.load(Ordering::Relaxed) => {
                *recovered = Some(ended);
                return;
            }
            _ => *recovered = None,
        }
        self.begin(began);
    }

    /// The node has the keys that were on the server at this time.
    fn begin(&self, current: Instant) {
        if let Some(limit) = self.limit {
            let until = self.nanoseconds(current).saturating_add(nanoseconds(limit));
            self.fresh_until.store(until.min(ALWAYS - 1), Ordering::Release);
        }
    }

    fn nanoseconds(&self, time: Instant) -> u64 {
        nanoseconds(time.duration_since(self.base))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_lagged_waits_for_the_pushes_of_others() {
        let second = Duration::from_secs(1);
        let limit = LagLimit::new(Some(4 * second));
        let at = |seconds| limit.base + seconds * second;
        let fresh_until = || limit.fresh_until.load(Ordering::Relaxed) / 1_000_000_000;
        let mut recovered = None;

        limit.begin(at(1));
        assert_eq!(fresh_until(), 5);
        limit.succeeded(&mut recovered, at(2), at(3));
        assert_eq!((fresh_until(), recovered), (6, None));
        // Too late: others may be about to push what they have.
        limit.succeeded(&mut recovered, at(5), at(7));
        assert_eq!((fresh_until(), recovered), (6, Some(at(7))));
        limit.succeeded(&mut recovered, at(10), at(12));
        assert_eq!((fresh_until(), recovered), (6, Some(at(7))));
        limit.succeeded(&mut recovered, at(11), at(12));
        assert_eq!((fresh_until(), recovered), (15, None));

        let limit = LagLimit::new(Some(1000 * second));
        assert!(limit.is_exceeded());
        limit.begin(Instant::now());
        assert!(!limit.is_exceeded());

        let limit = LagLimit::new(Some(4 * second));
        assert_eq!(limit.timeout(9 * second), 2 * second);
        assert_eq!(limit.pause(9 * second), second);
        assert_eq!(LagLimit::new(Some(Duration::ZERO)).pause(second), SHORTEST);
        assert!(!LagLimit::new(None).is_exceeded());
    }
}
