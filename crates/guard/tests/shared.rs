//! Caches of several processes over one `SharedBloom`, beside a real server.
#![cfg(feature = "redis")]

mod common;
#[path = "../../redis/tests/servers/redis_server.rs"]
mod redis_server;

use common::Limit;
use lanebloom::ConcurrentBloom;
use lanebloom_guard::sync::GuardedCache;
use lanebloom_redis::SharedBloom;
use redis_server::{Redis, Server};
use std::convert::Infallible;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cache of one process. Its store has every key that it is asked for.
fn cache_of(redis: &Redis, name: &'static str) -> GuardedCache<u64, u64, SharedBloom> {
    let client = redis.client();
    let filter = move |keys| {
        // Without a random key: all processes hash alike.
        let filter = ConcurrentBloom::builder().expected_keys(keys).build()?;
        let builder = SharedBloom::builder(name).interval(Duration::from_millis(10));
        Ok::<_, lanebloom_guard::BoxError>(builder.timeout(PATIENCE).connect(client.clone(), filter)?)
    };
    let builder = lanebloom_guard::GuardedCache::<u64, u64>::builder().expected_keys(10_000);
    let cache = builder
        .filter(filter)
        .build_blocking(|id| Ok::<_, Infallible>(Some(id)));
    let cache = cache.unwrap();
    cache.mark_ready(); // the set had all keys of the store from the beginning: none
    cache
}

#[test]
fn a_key_that_one_process_adds_reaches_the_caches_of_others() {
    let _limit = Limit::new();
    let Some(redis) = Server::of("a guarded cache over a SharedBloom").start() else {
        return;
    };
    let (one, other) = (cache_of(&redis, "ids"), cache_of(&redis, "ids"));
    let stranger = cache_of(&redis, "other ids");
    one.added(&17);
    assert_eq!(one.get(&17).unwrap(), Some(17));

    let began = Instant::now();
    while other.get(&17).unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "the key has not come");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(other.get(&18).unwrap(), None);
    assert_eq!(stranger.get(&17).unwrap(), None);
    let stats = other.stats();
    assert_eq!((stats.loads, stats.hits, stats.added), (1, 0, 0));
    let figures = other.figures();
    assert!(figures.lag.is_some());
    assert_eq!(figures.filter.len, 1);
}
