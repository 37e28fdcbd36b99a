//! Gets in tasks of their own.

use lanebloom_guard::LoadError;
use lanebloom_guard::future::GuardedCache;
use tokio::task::JoinHandle;

pub(crate) type Cache = GuardedCache<u64, u64>;
pub(crate) type Got = JoinHandle<Result<Option<u64>, LoadError>>;

pub(crate) fn spawn(cache: &Cache, key: u64) -> Got {
    let cache = cache.clone();
    tokio::spawn(async move { cache.get(&key).await })
}
