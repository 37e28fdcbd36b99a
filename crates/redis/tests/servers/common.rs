//! Numbers without a pattern, and flags that threads watch.

pub(crate) use lanebloom_tests::{WORDS, number};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it goes, also by a panic: threads that go on until then end, and a test that
/// fails does not hang.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
