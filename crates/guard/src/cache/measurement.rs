//! How full a filter is, for callers that must not wait: a large filter is read by a thread.

use crate::filter::GuardFilter;
use lanebloom::Figures;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// The memory of a filter that is read at once, in bytes. It takes a millisecond.
const READ_AT_ONCE: usize = 8 << 20;

#[derive(Default)]
pub(super) struct Measurement {
    thread: Option<JoinHandle<Figures>>,
    last: Option<Figures>,
}

impl Measurement {
    /// The figures of `filter`. Those of a large one are what a thread has read since an earlier
    /// call; `None` before the first thread has ended.
    pub(super) fn of<F: GuardFilter>(&mut self, filter: &Arc<F>) -> Option<Figures> {
        if filter.memory_bytes() <= READ_AT_ONCE {
            return Some(filter.figures());
        }
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            // A panic of the filter is no figure.
            if let Some(Ok(figures)) = self.thread.take().map(JoinHandle::join) {
                self.last = Some(figures);
            }
            let filter = Arc::clone(filter);
            // Without a thread, the next call tries again.
            self.thread = thread::Builder::new().spawn(move || filter.figures()).ok();
        }
        self.last
    }
}

/// The number of keys in `filter`, by its own estimate.
pub(super) async fn len_of<F: GuardFilter>(filter: Arc<F>) -> usize {
    if filter.memory_bytes() > READ_AT_ONCE {
        let (send, receive) = oneshot::channel();
        let of_thread = Arc::clone(&filter);
        let read = move || send.send(of_thread.figures().len);
        // If the thread does not start, or the filter panics in it, this task reads the filter.
        if thread::Builder::new().spawn(read).is_ok() {
            if let Ok(len) = receive.await {
                return len;
            }
        }
    }
    filter.figures().len
}
