//! Caches of numbers, gets in tasks of their own, and waits for what other tasks and threads do.

use crate::common::{LONG, limit_time};
use lanebloom_guard::{CacheBuilder, LoadError, future};
use std::convert::Infallible;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, yield_now};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) type Cache = future::GuardedCache<u64, u64>;
pub(crate) type Blocking = lanebloom_guard::sync::GuardedCache<u64, u64>;
pub(crate) type Got = JoinHandle<Result<Option<u64>, LoadError>>;

/// The builder of a cache of either kind, under the time limit of the program.
pub(crate) fn builder() -> CacheBuilder<u64, u64> {
    limit_time();
    Cache::builder()
}

/// A loader of a store that has every row.
pub(crate) fn read(id: u64) -> Result<Option<u64>, Infallible> {
    Ok(Some(id))
}

pub(crate) fn spawn(cache: &Cache, key: u64) -> Got {
    let cache = cache.clone();
    tokio::spawn(async move { cache.get(&key).await })
}

/// A runtime of one thread.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// The tasks of this runtime.
pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

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
