//! Numbers without a pattern, flags that threads watch, and waiting.

pub(crate) use lanebloom_tests::{WORDS, number};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Sets the flag when it goes, also by a panic: threads that go on until then end, and a test that
/// fails does not hang.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until it holds. A machine that is busy or emulated may take long.
#[track_caller]
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come to hold");
        thread::sleep(Duration::from_millis(1));
    }
}
