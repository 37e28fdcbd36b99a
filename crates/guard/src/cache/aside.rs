//! Long work on a large filter, for callers that must not wait: a thread does it. Statistics of the
//! filter for `report.rs`, and the end of a rebuild.

use crate::filter::GuardFilter;
use lanebloom::Statistics;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A filter of at most this memory, in bytes, is read at once. This takes a millisecond.
const READ_AT_ONCE: usize = 8 << 20;

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

/// Works on a filter: in a thread, if it is large.
pub(super) async fn aside<F: GuardFilter, T: Send + 'static>(filter: Arc<F>, work: fn(&F) -> T) -> T {
    if filter.memory_bytes() > READ_AT_ONCE {
        let (send, receive) = oneshot::channel();
        let of_thread = Arc::clone(&filter);
        let work = move || send.send(work(&of_thread));
        // If the thread does not start, or the filter panics in it, this task works.
        if thread::Builder::new().spawn(work).is_ok() {
            if let Ok(done) = receive.await {
                return done;
            }
        }
    }
    work(&filter)
}
