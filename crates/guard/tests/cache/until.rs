//! Waits for what other tasks and threads do.

use std::thread;
use std::time::{Duration, Instant};
use tokio::task::yield_now;

/// After so long, nothing will happen any more.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Lets the other tasks run until `holds`. The runtime of the test has one thread.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "it does not happen");
        yield_now().await;
    }
}

/// Lets the other threads run until `holds`.
pub(crate) fn until_blocking(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "it does not happen");
        thread::yield_now();
    }
}
