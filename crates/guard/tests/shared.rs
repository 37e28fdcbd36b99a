//! Guards and caches of several processes over one `SharedBloom`, beside a real server.

mod common;
#[path = "../../redis/tests/servers/redis_server.rs"]
mod redis_server;
#[path = "../../redis/tests/servers/warnings.rs"]
mod warnings;

use futures_util::FutureExt;
use lanebloom::{BuildError, ConcurrentBloom, WindowedBloom};
use lanebloom_guard::sync::GuardedCache;
use lanebloom_guard::{BlockingFeed, BoxError, CacheGuard, Change, GuardFilter, Keys, future};
use lanebloom_redis::shared::{Filled, SharedBuilder};
use lanebloom_redis::{Shared, SharedBloom};
use redis_server::{Redis, Server};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use warnings::Warnings;

/// The longest wait, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval of nodes that exchange only on a call.
const NEVER: Duration = Duration::from_secs(100_000);

/// Starts a server, or ends the test where there is none.
macro_rules! server {
    () => {{
        common::limit_time();
        match Server::default().start() {
            Some(server) => server,
            None => return,
        }
    }};
}

/// A builder of nodes that exchange often.
fn often(name: &str) -> SharedBuilder {
    let builder = SharedBloom::builder(name).interval(Duration::from_millis(5));
    builder.timeout(PATIENCE)
}

/// Without a random key: all processes hash alike.
fn build(keys: usize) -> Result<ConcurrentBloom, BuildError> {
    ConcurrentBloom::builder().expected_keys(keys).build()
}

/// The cache of one process, over a store that has the rows below `rows`. Its filter says by itself
/// whether it has all keys.
fn cache_of<F: GuardFilter>(
    rows: u64,
    keys: usize,
    filter: impl Fn(usize) -> Result<F, BoxError> + Send + Sync + 'static,
) -> GuardedCache<u64, u64, F> {
    let builder = future::GuardedCache::<u64, u64>::builder().expected_keys(keys);
    let read = move |id| Ok::<_, Infallible>((id < rows).then_some(id));
    let cache = builder.filter(filter).build_blocking(read).unwrap();
    cache.mark_ready();
    cache
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_key_that_one_process_adds_reaches_the_caches_of_others() {
    let redis = server!();
    let [one, other, stranger] = ["ids", "ids", "other ids"].map(|name| {
        let client = redis.client();
        cache_of(100, 10_000, move |keys| {
            Ok(often(name).connect(client.clone(), build(keys)?)?)
        })
    });
    one.insert(&17);
    assert_eq!(one.get(&17).unwrap(), Some(17));

    wait_until("the key has come", || other.get(&17).unwrap().is_some());
    assert_eq!(other.get(&18).unwrap(), None);
    assert_eq!(stranger.get(&17).unwrap(), None);
    let stats = other.stats();
    assert_eq!((stats.loads, stats.hits, stats.inserted), (1, 0, 0));
    let report = other.report();
    assert!(report.lag.is_some());
    assert_eq!(report.filter.len, 1);
}

/// Guards of two processes: the second one admits what was inserted at the first.
fn serving<F: GuardFilter>(nodes: [Shared<F>; 2]) -> [CacheGuard<str, Shared<F>>; 2] {
    let guards = nodes.map(CacheGuard::<str, _>::new);
    guards[0].insert("ann");
    guards[0].insert_batch(&["bob", "carl"]);
    assert!(guards[1].check("ann").is_none());
    guards.iter().for_each(|guard| guard.filter().sync(PATIENCE).unwrap());
    let mut admitted = Vec::new();
    guards[1].check_batch(&["ann", "eve", "bob", "carl"], |i, _| admitted.push(i));
    assert_eq!(admitted, [0, 2, 3]);
    guards
}

#[test]
fn a_guard_serves_from_a_shared_set() {
    let redis = server!();
    let node = |name| {
        let builder = often(name).interval(NEVER);
        builder.connect(redis.client(), build(10_000).unwrap()).unwrap()
    };
    let guards = serving([(); 2].map(|()| node("ids")));
    // The next set, under another name.
    let rebuild = guards[1].rebuild(node("ids 2")).unwrap();
    rebuild.insert_all(["ann"]);
    guards[1].insert("dave");
    rebuild.commit().unwrap();
    assert!(guards[1].check("bob").is_none());
    guards[1].filter().sync(PATIENCE).unwrap();
    let other = node("ids 2");
    assert!(other.contains("ann") && other.contains("dave") && !other.contains("bob"));
}

#[test]
fn a_guard_serves_from_a_shared_window() {
    let redis = server!();
    let minute = 60_000;
    let now = Arc::new(AtomicU64::new(1_000_000 * minute));
    let node = || {
        let now = Arc::clone(&now);
        let filter = WindowedBloom::builder()
            .expected_keys(10_000)
            .window(Duration::from_millis(minute))
            .clock(move || Duration::from_millis(now.load(Ordering::SeqCst)));
        let builder = often("recent").interval(NEVER);
        builder.connect_window(redis.client(), filter.build().unwrap()).unwrap()
    };
    let guards = serving([(); 2].map(|()| node()));
    now.fetch_add(2 * minute, Ordering::SeqCst);
    assert!(guards[1].check("ann").is_none());
    let rebuild = guards[1].rebuild(node()).unwrap();
    rebuild.insert_all(["dave"]);
    rebuild.commit().unwrap();
    assert!(guards[1].check("dave").is_some());
}

/// Three processes start with an empty set, serve from the beginning, and add rows. One of them
/// reads the store.
#[test]
fn no_row_is_refused_while_one_process_fills_the_set() {
    const ROWS: u64 = 20_000;
    let redis = server!();
    let cache = || {
        let client = redis.client();
        let filter = move |keys| Ok(often("ids").open_until_filled().connect(client.clone(), build(keys)?)?);
        cache_of(2 * ROWS, 2 * ROWS as usize, filter)
    };
    let caches = [cache(), cache(), cache()];
    let (fills, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for (i, cache) in (0..).zip(&caches) {
            let (fills, refused) = (&fills, &refused);
            scope.spawn(move || {
                let filled = cache.guard().filter().fill_once(PATIENCE, |ids| {
                    fills.fetch_add(1, Ordering::Relaxed);
                    for id in 0..ROWS {
                        ids.insert(&id);
                        if id % 1000 == 0 {
                            thread::sleep(Duration::from_millis(5));
                        }
                    }
                    Ok::<_, Infallible>(())
                });
                filled.unwrap();
            });
            scope.spawn(move || {
                // Rows of the store, and new ones of this process.
                let mut id = i;
                while cache.guard().is_open() || id < ROWS {
                    refused.fetch_add(u64::from(cache.get(&(id % ROWS)).unwrap().is_none()), Ordering::Relaxed);
                    if id % 10 == i {
                        cache.insert(&(ROWS + id % ROWS));
                    }
                    id += 1;
                }
            });
        }
    });
    assert_eq!((fills.into_inner(), refused.into_inner()), (1, 0));
    caches
        .iter()
        .chain(&caches)
        .for_each(|cache| cache.guard().filter().sync(PATIENCE).unwrap());
    for cache in &caches {
        assert!(!cache.guard().is_open() && cache.is_ready());
        let rows = (0..ROWS).chain((ROWS..2 * ROWS).filter(|id| (id - ROWS) % 10 < 3));
        assert_eq!(rows.filter(|id| cache.guard().check(id).is_none()).count(), 0);
        let made_up = (1 << 40..(1 << 40) + 1000).filter(|id| cache.guard().check(id).is_some());
        assert!(made_up.count() < 50);
    }
    // A process that starts now is closed, and reads nothing.
    let late = cache();
    assert!(!late.guard().is_open() && late.get(&(ROWS - 1)).unwrap().is_some());
}

/// A feed makes a cache rebuild whenever it breaks. Over one node of a set such a rebuild reads the
/// store once, and begins neither a node nor a generation.
#[test]
fn a_rebuild_of_a_cache_goes_into_the_set_that_is_there() {
    let redis = server!();
    let ids = often("ids").connect_set(redis.client(), 1000, build).unwrap();
    let node = ids.clone();
    let cache = cache_of(u64::MAX, 1000, move |_| Ok(node.clone()));
    let source = |ids: &ConcurrentBloom| {
        ids.insert_batch(&Vec::from_iter(0..3000u64));
        Ok::<_, Infallible>(())
    };
    ids.fill_once(PATIENCE, source).unwrap();
    let clients = || redis.ask::<String>(&["CLIENT", "LIST"]).lines().count();
    let (before, mut reads) = (clients(), 0);
    for _ in 0..3 {
        let rebuilt = cache.rebuild_now(|keys| {
            reads += 1;
            // A row that no process has inserted.
            Ok(keys.insert_all(0..=3000)?)
        });
        assert_eq!(rebuilt.unwrap().keys, 3001);
    }
    assert_eq!((reads, ids.generation(), clients()), (3, 0, before));
    assert!(ids.contains(&3000u64) && cache.get(&3000).unwrap().is_some());
    // It is the set that is outgrown, and rebuilt for all processes.
    assert!(ids.is_outgrown());
    ids.rebuild(6000, PATIENCE).unwrap();
    ids.fill_once(PATIENCE, source).unwrap();
    assert!(ids.generation() == 1 && cache.guard().filter().statistics().len.abs_diff(3000) < 300);
}

/// While the server is frozen, one process inserts keys. Once the guard of the other has opened, it
/// refuses none of them, and it closes when it has all of them.
///
/// The last part holds if the first process pushes within three quarters of the limit once the
/// server is back. A machine that is too busy for that repeats the test with twice the limit.
#[cfg(unix)]
#[test]
fn a_guard_opens_while_its_filter_lags() {
    let redis = server!();
    for round in 0..5 {
        let limit = Duration::from_millis(1000 << round);
        let node = || {
            let builder = often(&format!("ids {round}")).open_above_lag(limit);
            let node = builder.connect(redis.client(), build(100_000).unwrap());
            CacheGuard::<u64, _>::new(node.unwrap())
        };
        let (one, other) = (node(), node());
        let until = |what, is_open| {
            let began = Instant::now();
            while other.is_open() != is_open {
                assert!(began.elapsed() < 10 * limit + PATIENCE, "the guard is not {what}");
                thread::sleep(Duration::from_millis(1));
            }
            began.elapsed()
        };
        until("closed", false);
        one.insert(&0);
        one.filter().sync(PATIENCE).unwrap();
        other.filter().sync(PATIENCE).unwrap();
        assert!(other.check(&0).is_some());

        let frozen = redis.freeze();
        let opened_after = until("open", true);
        let (mut keys, mut refused) = (0, 0);
        let began = Instant::now();
        while began.elapsed() < 2 * limit {
            keys += 100;
            let new: Vec<u64> = (keys - 99..=keys).collect();
            one.insert_batch(&new);
            let mut admitted = 0;
            other.check_batch(&new, |_, _| admitted += 1);
            refused += new.len() - admitted;
            refused += new.iter().filter(|key| other.check(*key).is_none()).count();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(refused, 0, "of {keys} keys, while the guard was open");
        let stats = other.filter().stats();
        assert!(stats.is_lagging && stats.lags > 0 && stats.lag > limit, "{stats:?}");
        let (lags, passes) = (stats.lags, one.filter().stats().passes);

        drop(frozen);
        let back = Instant::now();
        let (mut checks, mut pushed) = (0, None);
        while other.is_open() || pushed.is_none() {
            assert!(back.elapsed() < 10 * limit + PATIENCE, "the guard does not close");
            checks += 1;
            refused += usize::from(other.check(&(1 + checks % keys)).is_none());
            if pushed.is_none() && one.filter().stats().passes > passes {
                pushed = Some(back.elapsed());
            }
        }
        let (closed_after, pushed) = (back.elapsed(), pushed.unwrap());
        let missing = (1..=keys).filter(|key| other.check(key).is_none()).count();
        if pushed > limit * 3 / 4 || other.filter().stats().lags > lags {
            continue;
        }
        assert_eq!((refused, missing), (0, 0), "of {keys} keys");
        assert!((0..20).any(|i| other.check(&(u64::MAX - i)).is_none()));
        println!(
            "limit {limit:?}: open {opened_after:?} after the freeze, closed {closed_after:?} after its end \
             (the other process had pushed after {pushed:?}); {keys} keys, {checks} checks, 0 refused"
        );
        return;
    }
    panic!("the machine is too busy");
}

/// The server is back for a moment, and away again. Rows that others inserted in the second time
/// come after the node's first exchange, as in the first. A process that starts as the server is
/// back reaches it before one that waits for its next attempt, and has not pushed yet.
#[cfg(unix)]
#[test]
fn a_guard_that_lags_twice_or_is_new_waits_for_the_pushes_of_others() {
    let redis = server!();
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).unwrap();
    let has_warned = || {
        let says = "a shared filter lags above its limit: its guards are open";
        warnings.0.lock().unwrap().iter().any(|warning| warning.contains(says))
    };
    let limit = Duration::from_secs(2);
    let node = || {
        let window = WindowedBloom::builder().window(Duration::from_secs(3600));
        let window = window.expected_keys(1000).time_of_day().build().unwrap();
        let node = often("recent")
            .open_above_lag(limit)
            .connect_window(redis.client(), window);
        CacheGuard::<u64, _>::new(node.unwrap())
    };
    let one = node();
    let stats = || one.filter().stats();
    wait_until("the guard is closed", || !one.is_open());
    let lags = stats().lags;
    warnings.0.lock().unwrap().clear();
    let frozen = redis.freeze();
    wait_until("the guard is open", || one.is_open());
    assert!(one.check(&18).is_some() && one.filter().is_lagging() && stats().lags > lags);
    wait_until("a warning", has_warned);
    let before = stats().passes;
    drop(frozen);
    wait_until("the server is back", || stats().passes > before);
    let frozen = redis.freeze();
    // Its pauses become longer.
    let (before, failures) = (stats().passes, stats().failures + 4);
    thread::sleep(2 * limit);
    wait_until("attempts have failed", || stats().failures >= failures);
    assert!(one.is_open());
    one.insert(&17);
    drop(frozen);
    let new = node();
    assert!(new.check(&17).is_some());
    wait_until("the server is back again", || stats().passes > before);
    assert!(one.is_open(), "others have had no time to push");
    for guard in [one, new] {
        wait_until("the guard is closed", || !guard.is_open());
        assert!(guard.check(&17).is_some() && guard.check(&18).is_none());
    }
}

/// While Redis is frozen, a client asks one process for rows that another one adds a moment later.
/// The first has a feed, which is late, so that it remembers misses while the set lags. Other
/// processes push their keys before the lag has ended.
#[cfg(unix)]
#[test]
fn a_set_that_lags_brings_rows_before_its_feed_tells_them() {
    struct Late(Duration);
    impl BlockingFeed<u64> for Late {
        fn listen(&mut self, _: Duration) -> Result<(), BoxError> {
            Ok(())
        }
        fn next(&mut self, _: Duration) -> Result<Change<u64>, BoxError> {
            thread::sleep(self.0);
            Ok(Change::Alive)
        }
    }
    let redis = server!();
    let store = Arc::new(Mutex::new(BTreeSet::new()));
    let [one, other] = [(); 2].map(|()| {
        let (client, store) = (redis.client(), Arc::clone(&store));
        let filter = move |keys| -> Result<_, BoxError> {
            let builder = often("ids").open_above_lag(Duration::from_secs(1));
            Ok(builder.connect_set(client.clone(), keys, build)?)
        };
        let read = move |id| Ok::<_, Infallible>(store.lock().unwrap().get(&id).copied());
        let builder = future::GuardedCache::<u64, u64>::builder().expected_keys(100_000);
        builder.filter(filter).build_blocking(read).unwrap()
    });
    let following = [&one, &other].map(|cache| cache.follow(Late(Duration::from_millis(10)), PATIENCE, |_| Ok(())));
    let filled = one.fill_once(PATIENCE, |_| Ok(()));
    assert_eq!(filled.unwrap(), Filled::Here);
    wait_until("the guard is closed", || !other.guard().is_open());
    let frozen = redis.freeze();
    wait_until("the guard is open", || other.guard().is_open());
    let ids: Vec<u64> = (0..100).collect();
    for _ in 0..2 {
        assert_eq!(other.get_many(&ids).unwrap(), [None; 100]);
    }
    assert_eq!(other.stats().known_misses, 100);
    store.lock().unwrap().extend(&ids);
    one.insert_batch(&ids);
    drop(frozen);
    wait_until("the keys have come", || {
        let filter = other.guard().filter();
        ids.iter().all(|id| filter.filter().contains(id))
    });
    let rows = other.get_many(&ids).unwrap();
    assert_eq!(rows, Vec::from_iter(ids.iter().map(|id| Some(*id))));
    for following in following {
        following.stop();
    }
}

/// Two processes with one source each, which counts its calls: one of them reads the store.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_fills_the_filter_from_the_source_of_its_rebuilds() {
    let redis = server!();
    fills_once(&redis).await;
    let client = redis.client();
    let caches = [(); 2].map(|()| {
        let client = client.clone();
        cache_of(u64::MAX, 100, move |keys| {
            Ok(often("a set").connect_set(client.clone(), keys, build)?)
        })
    });
    let reads = AtomicU64::new(0);
    let fill = || {
        caches.each_ref().map(|cache| {
            let filled = cache.fill_once(PATIENCE, |keys| {
                reads.fetch_add(1, Ordering::Relaxed);
                Ok(keys.insert_all(0..5000)?)
            });
            filled.unwrap()
        })
    };
    assert_eq!(fill(), [Filled::Here, Filled::Elsewhere]);
    assert_eq!(caches.each_ref().map(|cache| cache.report().keys), [Some(5000), None]);
    // It has outgrown the size, and the other process reads the store for the next generation.
    let set = caches[1].guard().filter();
    assert!(set.is_outgrown());
    set.rebuild(10_000, PATIENCE).unwrap();
    // It stays closed meanwhile.
    caches[1].insert(&7000);
    let mut admitted = 0;
    caches[1].guard().check_batch(&[0, 4999, 7000], |_, _| admitted += 1);
    assert!([0, 4999, 7000].iter().all(|id| caches[1].guard().check(id).is_some()));
    assert_eq!(
        (admitted, caches[1].guard().is_open(), set.is_outgrown()),
        (3, false, false)
    );
    let filled = caches[1].fill_once(PATIENCE, |keys| Ok(keys.insert_all(0..6000)?));
    assert_eq!((filled.unwrap(), caches[1].report().keys), (Filled::Here, Some(6000)));
    assert_eq!((reads.load(Ordering::Relaxed), fill()), (1, [Filled::Elsewhere; 2]));
    for cache in &caches {
        assert!(!cache.guard().is_open());
        assert_eq!((0..6000).filter(|id| cache.guard().check(id).is_none()).count(), 0);
        assert!(cache.guard().check(&(1 << 50)).is_none());
    }
}

/// Awaited gets over a `SharedBloom`.
async fn fills_once(redis: &Redis) {
    let caches = [(); 2].map(|()| {
        let client = redis.client();
        let filter = move |keys| -> Result<_, BoxError> {
            let builder = often("a bloom").open_until_filled();
            Ok(builder.connect(client.clone(), build(keys)?)?)
        };
        let builder = future::GuardedCache::<u64, u64>::builder().expected_keys(10_000);
        let cache = builder
            .filter(filter)
            .build(async |id| Ok::<_, Infallible>(Some(id)))
            .unwrap();
        cache.mark_ready();
        cache
    });
    let reads = Arc::new(AtomicU64::new(0));
    let source = |fails: bool| {
        let reads = Arc::clone(&reads);
        async move |keys: &mut Keys<'_, u64>| {
            reads.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            keys.insert_all(0..5000)?;
            if fails { Err("the store is down".into()) } else { Ok(()) }
        }
    };
    let error = caches[0].fill_once(PATIENCE, source(true)).await.unwrap_err();
    assert!(error.is_source() && caches[0].guard().is_open(), "{error}");
    // A call that is dropped leaves the source to the others.
    let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let endless = async move |keys: &mut Keys<'_, u64>| {
        let _ = began.send(());
        loop {
            keys.insert_all(0..1000)?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let cache = caches[0].clone();
    let dropped = tokio::spawn(async move { cache.fill_once(PATIENCE, endless).await });
    has_begun.recv().await.unwrap();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let (one, other) = tokio::join!(
        caches[0].fill_once(PATIENCE, source(false)),
        caches[1].fill_once(PATIENCE, source(false))
    );
    let mut filled = [one.unwrap(), other.unwrap()];
    filled.sort_by_key(|filled| *filled == Filled::Elsewhere);
    assert_eq!(
        (filled, reads.load(Ordering::Relaxed)),
        ([Filled::Here, Filled::Elsewhere], 2)
    );
    for cache in &caches {
        assert!(!cache.guard().is_open());
        assert_eq!((0..5000).filter(|id| cache.guard().check(id).is_none()).count(), 0);
        assert_eq!(cache.get(&(1 << 50)).await.unwrap(), None);
    }
}

/// The thread for the source does not begin then, or its timers end.
#[test]
fn a_runtime_that_shuts_down_does_not_make_fill_once_panic() {
    let redis = server!();
    let client = redis.client();
    let builder = future::GuardedCache::<u64, u64>::builder().expected_keys(1000);
    let builder = builder
        .filter(move |keys| -> Result<_, BoxError> { Ok(often("ids").connect_set(client.clone(), keys, build)?) });
    let cache = builder.build(async |id| Ok::<_, Infallible>(Some(id))).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _entered = handle.enter();
    let none = async |_: &mut Keys<'_, u64>| Ok(());
    let filled = cache.fill_once(PATIENCE, none).now_or_never().expect("it has ended");
    assert_eq!(filled.unwrap_err().to_string(), "the runtime is shut down");

    let [dying, other] = [(); 2].map(|()| tokio::runtime::Runtime::new().unwrap());
    let (begin, begun) = std::sync::mpsc::channel();
    let waits = async move |_: &mut Keys<'_, u64>| {
        begin.send(()).unwrap();
        tokio::time::sleep(PATIENCE).await;
        Ok(())
    };
    let mut fill = Box::pin(cache.fill_once(PATIENCE, waits));
    dying.block_on(async { assert!((&mut fill).now_or_never().is_none()) });
    begun.recv().unwrap();
    drop(dying);
    let error = other.block_on(fill).unwrap_err();
    assert_eq!(error.to_string(), "the runtime is shut down");
    // A bug of the source is still one.
    let panics = async |_: &mut Keys<'_, u64>| panic!("a bug in the source");
    let fill = std::panic::AssertUnwindSafe(|| other.block_on(cache.fill_once(PATIENCE, panics)));
    let panic = std::panic::catch_unwind(fill).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a bug in the source"));
}
