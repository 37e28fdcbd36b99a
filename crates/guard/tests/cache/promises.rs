//! The promises of a cache that the examples of the documentation do not show.

use crate::common::LONG;
use crate::gets::{Cache, Got, builder, read, runtime, spawn, tasks, until, until_blocking};
use lanebloom::{Funnel, Sink};
use lanebloom_guard::future::Loader;
use lanebloom_guard::{Keys, LoadError};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// A store whose loads wait for a permit each, and may fail.
struct Store {
    rows: Mutex<BTreeMap<u64, u64>>,
    /// The keys of each load.
    loads: Mutex<Vec<Vec<u64>>>,
    permits: Semaphore,
    outcome: Mutex<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Rows,
    Error,
    Panic,
}

impl Store {
    fn new(rows: impl IntoIterator<Item = u64>) -> Arc<Self> {
        Arc::new(Self {
            rows: Mutex::new(rows.into_iter().map(|id| (id, id)).collect()),
            loads: Mutex::default(),
            permits: Semaphore::new(0),
            outcome: Mutex::new(Outcome::Rows),
        })
    }

    /// A row is read before the wait: what the store says then arrives later.
    async fn read(&self, ids: Vec<u64>) -> io::Result<Vec<(u64, u64)>> {
        let outcome = *self.outcome.lock().unwrap();
        let rows = {
            let rows = self.rows.lock().unwrap();
            ids.iter().filter_map(|id| Some((*id, *rows.get(id)?))).collect()
        };
        self.loads.lock().unwrap().push(ids);
        self.permits.acquire().await.unwrap().forget();
        match outcome {
            Outcome::Rows => Ok(rows),
            Outcome::Error => Err(io::ErrorKind::TimedOut.into()),
            Outcome::Panic => panic!("a bug in the loader"),
        }
    }

    fn loads(&self) -> Vec<Vec<u64>> {
        self.loads.lock().unwrap().clone()
    }
}

struct ById(Arc<Store>);

impl Loader<u64, u64> for ById {
    type Error = io::Error;

    async fn load(&self, id: u64) -> io::Result<Option<u64>> {
        Ok(self.0.read(vec![id]).await?.pop().map(|(_, row)| row))
    }
    async fn load_many(&self, mut ids: Vec<u64>) -> io::Result<Vec<(u64, u64)>> {
        ids.sort_unstable();
        let mut rows = self.0.read(ids).await?;
        rows.reverse();
        rows.push((1 << 60, 1)); // not requested
        Ok(rows)
    }
}

fn cache(store: &Arc<Store>, keys: &[u64]) -> Cache {
    let cache = builder().expected_keys(1000).build(ById(Arc::clone(store))).unwrap();
    cache.insert_batch(keys);
    cache.mark_ready();
    cache
}

/// Gets in tasks of their own that all wait for one load.
async fn gets(cache: &Cache, store: &Store, key: u64, count: usize) -> Vec<Got> {
    let before = (cache.stats().joined, store.loads().len());
    let gets = (0..count).map(|_| spawn(cache, key)).collect();
    until(|| cache.stats().joined - before.0 == count as u64 - 1 && store.loads().len() > before.1).await;
    gets
}

#[tokio::test]
async fn all_that_ask_at_the_same_moment_share_one_load_and_its_error() {
    let store = Store::new([17]);
    let cache = cache(&store, &[17]);
    for (outcome, text) in [
        (Outcome::Error, "the load failed"),
        (Outcome::Panic, "the loader panicked: a bug in the loader"),
        (Outcome::Rows, ""),
    ] {
        *store.outcome.lock().unwrap() = outcome;
        let gets = gets(&cache, &store, 17, 100).await;
        store.permits.add_permits(1);
        for get in gets {
            let row = get.await.unwrap();
            let error = row.as_ref().err().map(ToString::to_string);
            assert_eq!(error.unwrap_or_default(), text);
            let is_panic = row.as_ref().is_err_and(LoadError::is_panic);
            assert_eq!(is_panic, matches!(outcome, Outcome::Panic));
            assert!(row.is_err() || row.unwrap() == Some(17));
        }
    }
    let stats = cache.stats();
    assert_eq!((store.loads().len(), stats.failed), (3, 2));
    assert_eq!((stats.loads, stats.joined, stats.hits), (3, 297, 0));
}

/// Before there is a future.
#[tokio::test]
async fn a_panic_of_the_function_that_makes_the_load_is_an_error_too() {
    let load = |_| -> std::future::Ready<Result<Option<u64>, Infallible>> { panic!("a bug") };
    let cache = builder().build(load).unwrap();
    cache.insert_batch(&[17, 18]);
    assert!(cache.get(&17).await.unwrap_err().is_panic());
    assert!(cache.get_many(&[17, 18]).await.unwrap_err().is_panic());
}

#[tokio::test]
async fn a_cancelled_waiter_cancels_no_other_and_not_the_load() {
    let store = Store::new([17]);
    let cache = cache(&store, &[17]);
    let mut gets = gets(&cache, &store, 17, 10).await;
    // The first one, which began the load, and others.
    for get in gets.drain(..5) {
        get.abort();
        assert!(get.await.unwrap_err().is_cancelled());
    }
    store.permits.add_permits(1);
    for get in gets {
        assert_eq!(get.await.unwrap().unwrap(), Some(17));
    }
    // With no waiter left the load goes on for the cache.
    cache.invalidate(&17);
    let gets = self::gets(&cache, &store, 17, 1).await;
    gets[0].abort();
    store.permits.add_permits(1);
    until(|| tasks() == 0).await;
    assert_eq!(cache.get(&17).await.unwrap(), Some(17));
    assert_eq!((store.loads().len(), cache.stats().hits), (2, 1));
}

#[tokio::test]
async fn a_remembered_miss_ends_with_the_insert_and_with_its_time() {
    let store = Store::new([]);
    let builder = builder().miss_time_to_live(Duration::from_nanos(1));
    let cache = builder.build(ById(Arc::clone(&store))).unwrap();
    cache.insert(&17);
    store.permits.add_permits(2);
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!((store.loads().len(), cache.stats().known_misses), (2, 0));

    let cache = self::cache(&store, &[17]);
    store.permits.add_permits(1);
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!(cache.get(&17).await.unwrap(), None);
    assert_eq!(
        (cache.stats().known_misses, cache.stats().guard.false_positives),
        (1, 2)
    );
    cache.insert_value(&17, 18);
    assert_eq!(cache.get(&17).await.unwrap(), Some(18));
}

#[tokio::test]
async fn a_multi_get_loads_once_what_nobody_else_loads() {
    let store = Store::new(0..100);
    let cache = cache(&store, &Vec::from_iter(0..110));
    cache.insert_value(&1, 1);
    let single = gets(&cache, &store, 2, 1).await;
    let many = tokio::spawn({
        let cache = cache.clone();
        async move { cache.get_many(&[5, 1, 2, 105, 1_000_000, 3, 5]).await }
    });
    until(|| store.loads().len() == 2).await;
    store.permits.add_permits(2);
    let rows = many.await.unwrap().unwrap();
    assert_eq!(rows, [Some(5), Some(1), Some(2), None, None, Some(3), Some(5)]);
    assert_eq!(single.into_iter().next().unwrap().await.unwrap().unwrap(), Some(2));
    assert_eq!(store.loads(), [vec![2], vec![3, 5, 105]]);
    let stats = cache.stats();
    assert_eq!(
        (stats.guard.turned_away, stats.hits, stats.loads, stats.joined),
        (1, 1, 4, 2)
    );
    // All of it is known now.
    assert_eq!(cache.get_many(&[105, 5, 3]).await.unwrap(), [None, Some(5), Some(3)]);
    assert_eq!((cache.stats().known_misses, store.loads().len()), (1, 2));
    // An error reaches the caller, and a get that joined.
    *store.outcome.lock().unwrap() = Outcome::Error;
    store.permits.add_permits(1);
    assert!(cache.get_many(&[5, 50, 51]).await.is_err());
    *store.outcome.lock().unwrap() = Outcome::Rows;
    store.permits.add_permits(1);
    assert_eq!(cache.get(&50).await.unwrap(), Some(50));
}

/// A key whose row changes whenever it is looked at.
struct Restless(Cache, u64);

impl Borrow<u64> for Restless {
    fn borrow(&self) -> &u64 {
        self.0.invalidate(&self.1);
        &self.1
    }
}

impl Funnel for Restless {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.1.funnel(into);
    }
}

/// The change between its two places begins a second load of the key, in the same batch.
#[tokio::test]
async fn a_key_that_is_twice_in_a_multi_get_and_changes_between_has_its_row_in_both_places() {
    let store = Store::new([17]);
    let cache = cache(&store, &[17, 18]);
    store.permits.add_permits(1);
    let keys = [17, 18, 17].map(|key| Restless(cache.clone(), key));
    assert_eq!(cache.get_many(&keys).await.unwrap(), [Some(17), None, Some(17)]);
    assert_eq!((store.loads(), cache.stats().loads), (vec![vec![17, 18]], 3));
    // The changes came after the load had begun, so it is not cached.
    store.permits.add_permits(1);
    assert_eq!(cache.get(&17).await.unwrap(), Some(17));
}

/// The loads are dropped with their runtime: waiters elsewhere hear of it, and the next get loads.
#[test]
fn the_end_of_a_runtime_ends_its_loads() {
    let store = Store::new([17]);
    let cache = cache(&store, &[17]);
    let (dying, other) = (runtime(), runtime());
    dying.block_on(async { drop(gets(&cache, &store, 17, 1).await) });
    let entered = other.enter();
    let waiting = spawn(&cache, 17);
    drop(entered);
    other.block_on(until(|| cache.stats().joined == 1));
    drop(dying);
    let waited = other.block_on(async { tokio::time::timeout(LONG, waiting).await });
    let error = waited.unwrap().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the runtime shut down before the load ended");
    store.permits.add_permits(1);
    assert_eq!(other.block_on(cache.get(&17)).unwrap(), Some(17));
}

/// A load cannot begin outside of a runtime. What it leaves behind must not keep others waiting.
#[test]
fn a_get_outside_of_a_runtime_panics_and_leaves_the_cache_usable() {
    let store = Store::new([17]);
    let cache = cache(&store, &[17]);
    let get = std::panic::AssertUnwindSafe(|| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = std::pin::pin!(cache.get(&17)).poll(&mut context);
    });
    assert!(std::panic::catch_unwind(get).is_err());
    store.permits.add_permits(1);
    assert_eq!(runtime().block_on(cache.get(&17)).unwrap(), Some(17));
}

#[tokio::test]
async fn a_failed_rebuild_keeps_the_old_filter_and_a_dropped_one_too() {
    let store = Store::new(0..10);
    let cache = cache(&store, &[1, 2]);
    let failing = async |keys: &mut Keys<'_, u64>| {
        keys.insert(3)?;
        Err("connection lost".into())
    };
    let error = cache.rebuild_now(failing).await.unwrap_err();
    assert_eq!(error.to_string(), "reading the keys failed");
    let rebuild = tokio::spawn({
        let cache = cache.clone();
        async move { cache.rebuild_now(async |_| pending().await).await }
    });
    until(|| cache.guard().rebuild_with_capacity(10, 0.01).is_err()).await;
    let other = cache.rebuild_now(failing).await.unwrap_err();
    assert!(other.is_in_progress());
    rebuild.abort();
    assert!(rebuild.await.unwrap_err().is_cancelled());
    let admitted = |key| cache.guard().check(&key).is_some();
    assert!(admitted(1) && admitted(2) && !admitted(3));
    assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (0, 1));
    let removed = async |keys: &mut Keys<'_, u64>| Ok(keys.insert(2)?);
    assert_eq!(cache.rebuild_now(removed).await.unwrap().keys, 1);
    assert!(!admitted(1) && admitted(2));
}

/// At once if the cache is open, otherwise after the interval.
#[tokio::test(start_paused = true)]
async fn scheduled_rebuilds_go_on_after_errors_and_end_with_their_task() {
    for is_open in [false, true] {
        let store = Store::new(0..10);
        let cache = cache(&store, &[1, 2]);
        if is_open {
            cache.reopen();
        }
        let attempts = Arc::new(AtomicUsize::new(0));
        let source = {
            let attempts = Arc::clone(&attempts);
            async move |keys: &mut Keys<'_, u64>| {
                let attempt = attempts.fetch_add(1, Ordering::Relaxed);
                assert_ne!(attempt, 1, "a bug in the source");
                if attempt < 3 {
                    return Err("no".into());
                }
                Ok(keys.insert(attempt as u64)?)
            }
        };
        let rebuilds = tokio::spawn(cache.rebuild_every(Duration::from_secs(3600), source));
        if !is_open {
            tokio::time::sleep(Duration::from_secs(3200)).await;
            assert_eq!(attempts.load(Ordering::Relaxed), 0);
            // The first comes after 3240 to 3960 s.
            tokio::time::sleep(Duration::from_secs(790)).await;
        }
        // Three more within 1 + 2 + 4 s.
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(attempts.load(Ordering::Relaxed), 4);
        assert!(cache.is_ready() && cache.guard().check(&3).is_some() && cache.guard().check(&1).is_none());
        assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (1, 3));
        rebuilds.abort();
        assert!(rebuilds.await.unwrap_err().is_cancelled());
        assert_eq!(tasks(), 0);
    }
}

#[test]
fn threads_share_one_load_and_its_error() {
    const THREADS: usize = 8;
    let (loads, fails) = (AtomicUsize::new(0), AtomicUsize::new(1));
    let (loads, fails) = (Arc::new(loads), Arc::new(fails));
    let release = Arc::new(Barrier::new(2));
    let read = {
        let (loads, fails, release) = (Arc::clone(&loads), Arc::clone(&fails), Arc::clone(&release));
        move |id: u64| {
            loads.fetch_add(1, Ordering::Relaxed);
            release.wait();
            match fails.load(Ordering::Relaxed) {
                0 => Ok(Some(id)),
                1 => Err(io::Error::from(io::ErrorKind::TimedOut)),
                _ => panic!("a bug"),
            }
        }
    };
    let cache = builder().build_blocking(read).unwrap();
    cache.insert(&17);
    for fails_by in [1, 2, 0] {
        fails.store(fails_by, Ordering::Relaxed);
        let joined = cache.stats().joined;
        std::thread::scope(|scope| {
            let gets: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| cache.get(&17))).collect();
            until_blocking(|| cache.stats().joined - joined == THREADS as u64 - 1);
            release.wait();
            for get in gets {
                let row = get.join().unwrap();
                assert_eq!(row.is_err(), fails_by > 0);
                assert!(row.is_err() || row.unwrap() == Some(17));
            }
        });
    }
    assert_eq!((loads.load(Ordering::Relaxed), cache.stats().failed), (3, 2));
}

/// Two multi-gets of the same keys in opposite order, again and again: each leads keys that the
/// other joins.
#[test]
fn blocking_multi_gets_do_not_wait_for_each_other() {
    let cache = builder().build_blocking(read).unwrap();
    cache.insert_batch(&Vec::from_iter(0..100));
    let (up, down) = (Vec::from_iter(0..100), Vec::from_iter((0..100).rev()));
    std::thread::scope(|scope| {
        for keys in [&up, &down] {
            scope.spawn(|| {
                for _ in 0..200 {
                    let rows = cache.get_many(keys).unwrap();
                    assert!(rows.into_iter().eq(keys.iter().map(|key| Some(*key))));
                    cache.clear();
                }
            });
        }
    });
}

#[test]
fn values_and_misses_have_capacities_of_their_own() {
    let read = |id: u64| Ok::<_, Infallible>((id < 1000).then_some(id));
    let builder = builder().capacity(2000).weigher(|_, _| 20).miss_memory(10 * 208);
    let cache = builder.build_blocking(read).unwrap();
    cache.insert_batch(&Vec::from_iter(0..2000));
    // Values first: misses do not push them out.
    (0..100).for_each(|key| assert!(cache.get(&key).unwrap().is_some()));
    (1000..2000).for_each(|key| assert!(cache.get(&key).unwrap().is_none()));
    let before = cache.stats();
    (0..100).for_each(|key| assert!(cache.get(&key).unwrap().is_some()));
    assert_eq!(cache.stats().since(&before).hits, 100);
    let report = cache.report();
    assert!(report.values <= 100 && report.misses <= 10 + 512, "{report:?}");
}

/// Moka's and the filter's types are `Send` and `Sync`; futures of gets may move among threads.
#[test]
fn caches_and_their_futures_are_send() {
    fn is_send<T: Send + Sync>(_: &T) {}
    fn is_send_future<T: Future + Send>(_: T) {}
    let store = Store::new([]);
    let cache = cache(&store, &[]);
    is_send(&cache);
    is_send_future(cache.get(&1));
    is_send_future(cache.get_many(&[1]));
    let source = async |keys: &mut Keys<'_, u64>| Ok(keys.insert(1)?);
    is_send_future(cache.rebuild_now(source));
    is_send_future(cache.rebuild_every(Duration::from_secs(1), source));
}
