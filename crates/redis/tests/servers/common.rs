//! Numbers without a pattern, flags that threads watch, and waiting.

pub(crate) use lanebloom_tests::{WORDS, number};
use std::fmt::Debug;
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
pub(crate) fn wait_until(holds: impl FnMut() -> bool) {
    wait_until_seen(holds, |holds| *holds);
}

/// Waits until what `look` returns is as it must be. The panic shows what was seen last.
#[track_caller]
pub(crate) fn wait_until_seen<T: Debug>(mut look: impl FnMut() -> T, holds: impl Fn(&T) -> bool) {
    let began = Instant::now();
    loop {
        let seen = look();
        if holds(&seen) {
            break;
        }
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(60), "not reached in {waited:?}: {seen:?}");
        thread::sleep(Duration::from_millis(1));
    }
}
