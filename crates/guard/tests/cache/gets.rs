//! Caches of numbers, gets in tasks of their own, and waits for what other tasks and threads do.

use crate::common::{LONG, limit_time};
use lanebloom_guard::{CacheBuilder, Key, LoadError, future, sync};
use std::convert::Infallible;
use std::future::ready;
use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, yield_now};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) type Cache = future::GuardedCache<u64, u64>;
pub(crate) type Blocking = sync::GuardedCache<u64, u64>;
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

/// A cache of either kind, whose gets are waited for.
pub(crate) enum Either<K: Key = u64> {
    Awaited(future::GuardedCache<K, u64>, Runtime),
    Blocking(sync::GuardedCache<K, u64>),
}

impl<K: Key<Owned = K>> Either<K> {
    /// One of each kind, over a store that has every row.
    pub(crate) fn both(builder: impl Fn() -> CacheBuilder<K, u64>, row: fn(&K) -> u64) -> [Self; 2] {
        limit_time();
        let read = move |key: K| Ok::<_, Infallible>(Some(row(&key)));
        let awaited = builder().build(move |key| ready(read(key))).unwrap();
        let blocking = builder().build_blocking(read).unwrap();
        [Self::Awaited(awaited, runtime()), Self::Blocking(blocking)]
    }

    pub(crate) fn get(&self, key: &K) -> Result<Option<u64>, LoadError> {
        match self {
            // Refreshes run first.
            Self::Awaited(cache, runtime) => runtime.block_on(async {
                yield_now().await;
                cache.get(key).await
            }),
            Self::Blocking(cache) => cache.get(key),
        }
    }

    pub(crate) fn get_many(&self, keys: &[K]) -> Result<Vec<Option<u64>>, LoadError> {
        match self {
            Self::Awaited(cache, runtime) => runtime.block_on(cache.get_many(keys)),
            Self::Blocking(cache) => cache.get_many(keys),
        }
    }
}

impl<K: Key> Deref for Either<K> {
    type Target = <sync::GuardedCache<K, u64> as Deref>::Target;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Awaited(cache, _) => cache,
            Self::Blocking(cache) => cache,
        }
    }
}
