//! Values that are refreshed ahead, and values that serve while the store fails: no change of the
//! store is hidden by either.

use crate::common::LONG;
use crate::gets::{Cache, HOUR, builder, read, spawn, until, until_blocking};
use lanebloom_guard::CacheBuilder;
use lanebloom_guard::future::Loader;
use std::convert::Infallible;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Each load reads the row at its beginning, and waits for a permit. 0 stands for no row,
/// [`FAILS`] for an error.
#[derive(Clone)]
struct Store(Arc<(AtomicU64, Semaphore, AtomicUsize)>);

const FAILS: u64 = u64::MAX;

impl Store {
    fn new(row: u64) -> Self {
        Self(Arc::new((AtomicU64::new(row), Semaphore::new(0), AtomicUsize::new(0))))
    }

    fn set(&self, row: u64) {
        self.0.0.store(row, Ordering::Relaxed);
    }

    fn release(&self, loads: usize) {
        self.0.1.add_permits(loads);
    }

    fn loads(&self) -> usize {
        self.0.2.load(Ordering::Relaxed)
    }

    async fn read(self) -> Result<Option<u64>, &'static str> {
        let row = self.0.0.load(Ordering::Relaxed);
        self.0.2.fetch_add(1, Ordering::Relaxed);
        self.0.1.acquire().await.unwrap().forget();
        match row {
            0 => Ok(None),
            FAILS => Err("the store is down"),
            row => Ok(Some(row)),
        }
    }

    fn cache(&self, builder: CacheBuilder<u64, u64>) -> Cache {
        let store = self.clone();
        builder.build(move |_| store.clone().read()).unwrap()
    }
}

fn refreshing() -> CacheBuilder<u64, u64> {
    builder().refresh_after_write(Duration::ZERO)
}

/// All values are past their time to live at once.
fn failing() -> CacheBuilder<u64, u64> {
    builder().time_to_live(Duration::ZERO).stale_if_error(HOUR)
}

#[tokio::test]
async fn one_refresh_runs_at_a_time_and_nobody_waits_for_it() {
    let store = Store::new(2);
    let cache = store.cache(refreshing());
    cache.insert_value(&17, 1);
    for _ in 0..100 {
        assert_eq!(cache.get(&17).await.unwrap(), Some(1));
    }
    assert_eq!(cache.get_many(&[17, 17]).await.unwrap(), [Some(1), Some(1)]);
    until(|| store.loads() == 1).await;
    assert_eq!((cache.stats().refreshes, cache.stats().hits), (1, 102));
    store.release(1);
    until(|| cache.peek(&17) == Some(2)).await;
    assert_eq!((store.loads(), cache.stats().loads), (1, 0));
    // The row is gone: a remembered miss, which is not refreshed.
    store.set(0);
    store.release(1);
    assert_eq!(cache.get(&17).await.unwrap(), Some(2));
    until(|| cache.peek(&17).is_none()).await;
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!((store.loads(), cache.stats().known_misses), (2, 1));
}

/// After an error the value stays, and the next refresh comes a second later.
#[tokio::test]
async fn a_refresh_that_fails_leaves_the_value_and_pauses() {
    let store = Store::new(FAILS);
    let cache = store.cache(refreshing());
    store.release(100);
    cache.insert_value(&17, 1);
    let began = Instant::now();
    assert_eq!(cache.get(&17).await.unwrap(), Some(1));
    until(|| cache.stats().failed == 1).await;
    until(|| {
        let loads = store.loads();
        assert_eq!(cache.peek(&17), Some(1));
        loads == 1 || began.elapsed() >= Duration::from_millis(900)
    })
    .await;
    // Gets of this whole second begin no other.
    while store.loads() == 1 {
        assert_eq!(cache.get(&17).await.unwrap(), Some(1));
        yield_now().await;
        assert!(began.elapsed() < LONG, "no second refresh");
    }
    assert!(began.elapsed() >= Duration::from_millis(900));
    assert_eq!((cache.stats().loads, cache.stats().refreshes), (0, 2));
}

/// A get returns the cached value, and nothing else happens.
#[test]
fn a_get_outside_of_a_runtime_refreshes_nothing() {
    let store = Store::new(2);
    let cache = store.cache(refreshing());
    cache.insert_value(&17, 1);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let get = std::pin::pin!(cache.get(&17)).poll(&mut context);
    assert!(matches!(get, std::task::Poll::Ready(Ok(Some(1)))));
    let get = std::pin::pin!(cache.get_many(&[17])).poll(&mut context);
    assert!(get.is_ready() && cache.stats().refreshes == 0);
}

#[tokio::test]
async fn a_key_that_the_filter_turns_away_is_not_refreshed() {
    let store = Store::new(2);
    let cache = store.cache(refreshing().expected_keys(1000));
    cache.insert_value(&17, 1);
    cache.rebuild_now(async |keys| Ok(keys.insert(18)?)).await.unwrap();
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!((cache.stats().refreshes, store.loads()), (0, 0));
}

/// Several due keys of a multi-get are one `load_many`.
#[tokio::test]
async fn a_multi_get_refreshes_by_one_load() {
    struct Batches(Arc<Mutex<Vec<Vec<u64>>>>);
    impl Loader<u64, u64> for Batches {
        type Error = Infallible;
        async fn load(&self, id: u64) -> Result<Option<u64>, Infallible> {
            self.0.lock().unwrap().push(vec![id]);
            Ok(Some(10 * id))
        }
        async fn load_many(&self, mut ids: Vec<u64>) -> Result<Vec<(u64, u64)>, Infallible> {
            ids.sort_unstable();
            self.0.lock().unwrap().push(ids.clone());
            Ok(ids.into_iter().map(|id| (id, 10 * id)).collect())
        }
    }
    let loads = Arc::new(Mutex::new(Vec::new()));
    let cache = refreshing().build(Batches(Arc::clone(&loads))).unwrap();
    (1..=3).for_each(|key| cache.insert_value(&key, key));
    let rows = cache.get_many(&[3, 1, 2, 1]).await.unwrap();
    assert_eq!(rows, [Some(3), Some(1), Some(2), Some(1)]);
    until(|| (1..=3).all(|key| cache.peek(&key) == Some(10 * key))).await;
    assert_eq!(*loads.lock().unwrap(), [[1, 2, 3]]);
}

/// One thread refreshes for blocking gets, and ends with the cache.
#[test]
fn blocking_gets_do_not_wait_for_refreshes() {
    let (go, gone) = mpsc::channel();
    let gone = Mutex::new(gone);
    let threads = Arc::new(Mutex::new(Vec::new()));
    let read = {
        let threads = Arc::clone(&threads);
        move |id: u64| {
            threads.lock().unwrap().push(thread::current().id());
            let row = gone.lock().unwrap().recv();
            match row {
                Ok(0) => panic!("a bug in the loader"),
                row => Ok::<_, Infallible>(row.ok().map(|row| row + id)),
            }
        }
    };
    let builder = builder().refresh_after_write(Duration::ZERO);
    let cache = builder.build_blocking(read).unwrap();
    cache.insert_value(&17, 1);
    cache.insert_value(&18, 1);
    for _ in 0..100 {
        assert_eq!(cache.get(&17).unwrap(), Some(1));
        assert_eq!(cache.get_many(&[18, 17]).unwrap(), [Some(1), Some(1)]);
    }
    assert_eq!(cache.stats().refreshes, 2);
    go.send(100).unwrap();
    go.send(100).unwrap();
    until_blocking(|| cache.peek(&17) == Some(117) && cache.peek(&18) == Some(118));
    // A change while a refresh waits in the loader.
    assert_eq!(cache.get(&17).unwrap(), Some(117));
    until_blocking(|| threads.lock().unwrap().len() == 3);
    cache.insert_value(&17, 5);
    go.send(200).unwrap();
    // A panic does not end the thread.
    assert_eq!(cache.get(&18).unwrap(), Some(118));
    go.send(0).unwrap();
    until_blocking(|| cache.stats().failed == 1);
    assert_eq!(cache.peek(&17), Some(5));
    assert_eq!(cache.get(&17).unwrap(), Some(5));
    go.send(300).unwrap();
    until_blocking(|| cache.peek(&17) == Some(317));
    let threads = threads.lock().unwrap();
    let here = thread::current().id();
    assert!(threads.iter().all(|id| *id == threads[0] && *id != here));
}

/// A panic of the weigher is one under the lock of the key's shard. Refreshes wait for no lock.
#[test]
fn a_panic_under_a_lock_ends_no_refresh() {
    let weigher = |_: &u64, value: &u64| {
        assert!(*value > 0, "a value of nothing");
        1
    };
    let cache = refreshing().weigher(weigher).build_blocking(read).unwrap();
    cache.insert_value(&17, 1);
    assert!(catch_unwind(AssertUnwindSafe(|| cache.insert_value(&17, 0))).is_err());
    // The value before is gone: the store has another.
    assert_eq!((cache.peek(&17), cache.get(&17).unwrap()), (None, Some(17)));
    cache.insert_value(&17, 1);
    until_blocking(|| cache.get(&17).unwrap() == Some(17));
    assert!(cache.stats().refreshes > 0);
}

/// The thread that refreshes has the loader, until the last clone of the cache is gone.
#[test]
fn the_thread_that_refreshes_ends_with_the_cache() {
    let alive = Arc::new(());
    let read = {
        let alive = Arc::clone(&alive);
        move |_| {
            let _ = &alive;
            Ok::<_, Infallible>(Some(2))
        }
    };
    let builder = builder().refresh_after_write(Duration::ZERO);
    let cache = builder.build_blocking(read).unwrap();
    cache.insert_value(&17, 1);
    cache.clone().get(&17).unwrap();
    until_blocking(|| cache.peek(&17) == Some(2));
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(cache);
    until_blocking(|| Arc::strong_count(&alive) == 1);
}

#[tokio::test]
async fn an_old_value_serves_all_who_wait_while_the_store_fails() {
    let store = Store::new(FAILS);
    let cache = store.cache(failing());
    cache.insert_value(&17, 1);
    let gets = [17; 10].map(|key| spawn(&cache, key));
    until(|| cache.stats().joined == 9 && store.loads() == 1).await;
    store.release(1);
    for get in gets {
        assert_eq!(get.await.unwrap().unwrap(), Some(1));
    }
    let stats = cache.stats();
    assert_eq!((stats.failed, stats.stale, stats.loads, stats.hits), (1, 1, 1, 0));
    // For a second, gets have it at once.
    let began = Instant::now();
    assert_eq!(cache.get(&17).await.unwrap(), Some(1));
    assert!(store.loads() == 1 || began.elapsed() > Duration::from_millis(900));
    // Then the store is asked again, and it has recovered.
    store.set(2);
    store.release(100);
    while cache.get(&17).await.unwrap() != Some(2) {
        assert!(began.elapsed() < LONG);
        yield_now().await;
    }
    assert!(began.elapsed() >= Duration::from_millis(900));
}

#[tokio::test(start_paused = true)]
async fn an_old_value_serves_after_every_kind_of_failure() {
    let read = async |id: u64| match id {
        1 => Err("the store is down"),
        2 => panic!("a bug in the loader"),
        3 => pending().await,
        _ => unreachable!("refused"),
    };
    let builder = || failing().load_timeout(Duration::from_secs(1)).load_limit(1, 0);
    let cache = builder().build(read).unwrap();
    for key in 1..=4 {
        cache.insert_value(&key, 10 * key);
    }
    for key in 1..=2 {
        assert_eq!(cache.get(&key).await.unwrap(), Some(10 * key));
    }
    let (slow, refused) = tokio::join!(cache.get(&3), cache.get(&4));
    assert_eq!((slow.unwrap(), refused.unwrap()), (Some(30), Some(40)));
    // The loads after the first failure run behind the gets.
    while cache.stats().failed < 4 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stats = cache.stats();
    assert_eq!((stats.stale, stats.failed), (4, 4));
    assert_eq!((stats.timed_out, stats.refused), (1, 1));
    // A multi-get and a load of one call.
    let cache = builder().build(read).unwrap();
    for key in 1..=2 {
        cache.insert_value(&key, 10 * key);
    }
    assert_eq!(cache.get_many(&[2]).await.unwrap(), [Some(20)]);
    let row = cache.get_with(&1, async { Err::<Option<u64>, _>("down") });
    assert_eq!(row.await.unwrap(), Some(10));
}

/// The store hangs, and each try takes the timeout. One get waits for the first try; the gets of
/// the next minute, of this key and of others, wait for none.
#[tokio::test(start_paused = true)]
async fn once_a_load_has_failed_no_get_with_an_old_value_waits() {
    let hangs = Arc::new(AtomicUsize::new(1));
    let of_loads = Arc::clone(&hangs);
    let read = move |id: u64| {
        let hangs = of_loads.load(Ordering::Relaxed) == 1;
        async move {
            if hangs {
                pending().await
            } else {
                Ok::<_, Infallible>(Some(id))
            }
        }
    };
    let timeout = Duration::from_secs(2);
    let cache = failing().load_timeout(timeout).build(read).unwrap();
    (0..10).for_each(|key| cache.insert_value(&key, 100));
    let waited = async |key: u64| {
        let began = tokio::time::Instant::now();
        assert_eq!(cache.get(&key).await.unwrap(), Some(100));
        began.elapsed()
    };
    assert!(waited(0).await >= timeout);
    let began = Instant::now();
    // Moka and the cache read the real clock, which passes the pause after a failure here.
    while began.elapsed() < Duration::from_millis(2500) {
        for key in 0..10 {
            assert_eq!(waited(key).await, Duration::ZERO, "of key {key}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Each key was tried again, behind.
    let stats = cache.stats();
    assert!(stats.timed_out > 10 && stats.loads == 1, "{stats:?}");
    // The store has recovered: a try behind a get brings the row.
    hangs.store(0, Ordering::Relaxed);
    while cache.get(&7).await.unwrap() != Some(7) {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Its row comes to moka after `clear`, in the epoch before.
#[tokio::test]
async fn the_row_of_a_load_from_before_a_clear_does_not_serve() {
    let store = Store::new(1);
    let cache = store.cache(failing());
    let early = spawn(&cache, 17);
    until(|| store.loads() == 1).await;
    cache.clear();
    store.set(FAILS);
    store.release(2);
    assert_eq!(early.await.unwrap().unwrap(), Some(1));
    assert!(cache.get(&17).await.is_err());
    assert_eq!(cache.stats().stale, 0);
}

#[tokio::test]
async fn a_value_past_its_longest_age_does_not_serve() {
    let store = Store::new(FAILS);
    store.release(10);
    let builder = builder()
        .time_to_live(Duration::ZERO)
        .stale_if_error(Duration::from_millis(1));
    let cache = store.cache(builder);
    cache.insert_value(&17, 1);
    let put = Instant::now();
    until(|| put.elapsed() > Duration::from_millis(1)).await;
    assert_eq!(cache.get(&17).await.unwrap_err().to_string(), "the load failed");
    assert_eq!(cache.stats().stale, 0);
}

/// A value that is past its time is not found by looks that load nothing.
#[test]
fn looks_do_not_find_old_values() {
    let cache = failing().build_blocking(|_| Ok::<_, Infallible>(None)).unwrap();
    cache.insert_value(&17, 1);
    assert!(cache.peek(&17).is_none() && cache.iter().next().is_none());
    // The store says that the row is gone: then it does not serve later.
    assert_eq!(cache.get(&17).unwrap(), None);
    assert_eq!((cache.get(&17).unwrap(), cache.stats().known_misses), (None, 1));
}

#[test]
fn an_old_value_serves_blocking_gets() {
    let (go, gone) = mpsc::channel();
    let gone = Mutex::new(gone);
    let (begin, begun) = mpsc::channel();
    let read = move |_| {
        begin.send(()).unwrap();
        gone.lock().unwrap().recv().unwrap()
    };
    let builder = failing().load_timeout(Duration::from_millis(5));
    let cache = builder.build_blocking(read).unwrap();
    cache.insert_value(&17, 1);
    thread::scope(|scope| {
        let loading = scope.spawn(|| cache.get(&17));
        begun.recv().unwrap();
        // It gives up waiting, while the load goes on.
        assert_eq!(cache.get(&17).unwrap(), Some(1));
        assert_eq!((cache.stats().stale, cache.stats().failed), (1, 0));
        go.send(Err("the store is down")).unwrap();
        assert_eq!(loading.join().unwrap().unwrap(), Some(1));
    });
    assert_eq!((cache.stats().stale, cache.stats().failed), (2, 1));
    cache.invalidate(&17);
    go.send(Ok(Some(2))).unwrap();
    assert_eq!(cache.get(&17).unwrap(), Some(2));
}
