//! Guards and caches of several processes over one `SharedBloom`, beside a real server.

mod common;
#[path = "../../redis/tests/servers/redis_server.rs"]
mod redis_server;

use common::Limit;
use lanebloom::{ConcurrentBloom, WindowedBloom};
use lanebloom_guard::CacheGuard;
use lanebloom_guard::sync::GuardedCache;
use lanebloom_redis::{SharedBloom, SharedWindow};
use redis_server::{Redis, Server};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval of nodes that exchange only on a call.
const NEVER: Duration = Duration::from_secs(100_000);

/// The cache of one process. Its store has every key that it is asked for.
fn cache_of(redis: &Redis, name: &'static str) -> GuardedCache<u64, u64, SharedBloom> {
    let client = redis.client();
    let filter = move |keys| {
        // Without a random key: all processes hash alike.
        let filter = ConcurrentBloom::builder().expected_keys(keys).build()?;
        let builder = SharedBloom::builder(name).interval(Duration::from_millis(10));
        Ok::<_, lanebloom_guard::BoxError>(builder.timeout(PATIENCE).connect(client.clone(), filter)?)
    };
    let builder = lanebloom_guard::future::GuardedCache::<u64, u64>::builder().expected_keys(10_000);
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
    one.insert(&17);
    assert_eq!(one.get(&17).unwrap(), Some(17));

    let began = Instant::now();
    while other.get(&17).unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "the key has not come");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(other.get(&18).unwrap(), None);
    assert_eq!(stranger.get(&17).unwrap(), None);
    let stats = other.stats();
    assert_eq!((stats.loads, stats.hits, stats.inserted), (1, 0, 0));
    let report = other.report();
    assert!(report.lag.is_some());
    assert_eq!(report.filter.len, 1);
}

#[test]
fn a_guard_serves_from_a_shared_set() {
    let _limit = Limit::new();
    let Some(redis) = Server::of("a_guard_serves_from_a_shared_set").start() else {
        return;
    };
    let node = |name| {
        let filter = ConcurrentBloom::builder().expected_keys(10_000).build().unwrap();
        let builder = SharedBloom::builder(name).interval(NEVER).timeout(PATIENCE);
        builder.connect(redis.client(), filter).unwrap()
    };
    let guards = [(); 2].map(|()| CacheGuard::<str, _>::new(node("ids")));
    guards[0].insert("ann");
    guards[0].insert_batch(&["bob", "carl"]);
    assert!(guards[1].check("ann").is_none());
    for guard in &guards {
        guard.filter().sync(PATIENCE).unwrap();
    }
    let mut admitted = Vec::new();
    guards[1].check_batch(&["ann", "eve", "bob", "carl"], |i, _| admitted.push(i));
    assert_eq!(admitted, [0, 2, 3]);
    // The next set, under another name.
    let mut rebuild = guards[1].rebuild(node("ids 2")).unwrap();
    rebuild.extend(["ann"]);
    guards[1].insert("dave");
    rebuild.commit().unwrap();
    assert!(guards[1].check("bob").is_none());
    guards[1].filter().sync(PATIENCE).unwrap();
    let other = node("ids 2");
    assert!(other.contains("ann") && other.contains("dave") && !other.contains("bob"));
}

#[test]
fn a_guard_serves_from_a_shared_window() {
    let _limit = Limit::new();
    let Some(redis) = Server::of("a_guard_serves_from_a_shared_window").start() else {
        return;
    };
    let minute = 60_000;
    let now = Arc::new(AtomicU64::new(1_000_000 * minute));
    let node = || {
        let now = Arc::clone(&now);
        let filter = WindowedBloom::builder()
            .expected_keys(10_000)
            .window(Duration::from_millis(minute))
            .clock(move || Duration::from_millis(now.load(Ordering::SeqCst)));
        let builder = SharedWindow::builder("recent").interval(NEVER).timeout(PATIENCE);
        builder.connect_window(redis.client(), filter.build().unwrap()).unwrap()
    };
    let guards = [(); 2].map(|()| CacheGuard::<str, _>::new(node()));
    guards[0].insert("ann");
    guards[0].insert_batch(&["bob", "carl"]);
    assert!(guards[1].check("ann").is_none());
    for guard in &guards {
        guard.filter().sync(PATIENCE).unwrap();
    }
    let mut admitted = Vec::new();
    guards[1].check_batch(&["ann", "eve", "bob", "carl"], |i, _| admitted.push(i));
    assert_eq!(admitted, [0, 2, 3]);
    now.fetch_add(2 * minute, Ordering::SeqCst);
    assert!(guards[1].check("ann").is_none());
    let mut rebuild = guards[1].rebuild(node()).unwrap();
    rebuild.extend(["dave"]);
    rebuild.commit().unwrap();
    assert!(guards[1].check("dave").is_some());
}
