//! Loads of one call, and the limits of loads: at a time, waiting, in time.

use crate::common::LONG;
use crate::gets::{Blocking, Cache, builder, read, spawn, until, until_blocking};
use lanebloom_guard::future::Loader;
use lanebloom_guard::{LoadError, LoadScope};
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Barrier, Notify, Semaphore};
use tokio::task::{block_in_place, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

/// A loader whose loads wait for a permit each.
fn slow(permits: &Arc<Semaphore>) -> impl Loader<u64, u64> {
    let permits = Arc::clone(permits);
    move |id| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(Some(id))
        }
    }
}

/// Counts the loads that run at the same time.
#[derive(Clone, Default)]
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

impl Running {
    /// A load during which others run as often as `turns` says.
    async fn load(&self, turns: u64) {
        let (now, most) = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        for _ in 0..turns {
            yield_now().await;
        }
        now.fetch_sub(1, Ordering::Relaxed);
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// A cache with this number of places, whose loads get others.
fn nested<L>(places: usize, load: impl Fn(Cache, u64) -> L + Send + Sync + 'static) -> Cache
where
    L: Future<Output = Result<Option<u64>, LoadError>> + Send + 'static,
{
    let cell: Arc<OnceLock<Cache>> = Arc::default();
    let of_loads = Arc::clone(&cell);
    let builder = builder().load_limit(places, 10_000).load_timeout(LONG);
    let cache = builder
        .build(move |id| load(of_loads.get().unwrap().clone(), id))
        .unwrap();
    assert!(cell.set(cache.clone()).is_ok());
    cache
}

/// [`nested`], for threads.
fn nested_blocking(
    places: usize,
    timeout: Duration,
    load: impl Fn(&Blocking, u64) -> Result<Option<u64>, LoadError> + Send + Sync + 'static,
) -> Blocking {
    let cell: Arc<OnceLock<Blocking>> = Arc::default();
    let of_loads = Arc::clone(&cell);
    let builder = builder().load_limit(places, 100).load_timeout(timeout);
    let cache = builder
        .build_blocking(move |id| load(of_loads.get().unwrap(), id))
        .unwrap();
    assert!(cell.set(cache.clone()).is_ok());
    cache
}

/// Gets each key in a task of its own, and expects it as its own row.
async fn get_all(cache: &Cache, keys: Range<u64>) {
    let gets = Vec::from_iter(keys.clone().map(|key| spawn(cache, key)));
    for (key, get) in keys.zip(gets) {
        assert_eq!(get.await.unwrap().unwrap(), Some(key));
    }
}

/// The row that a load of row `id` gets first: of 1 to 4 the next one, of 10 row 1.
fn needed(id: u64) -> Option<u64> {
    match id {
        5 => None,
        10 => Some(1),
        id => Some(id + 1),
    }
}

#[tokio::test]
async fn a_load_of_one_call_is_shared_with_gets() {
    let permits = Arc::new(Semaphore::new(0));
    let cache = builder().build(slow(&permits)).unwrap();
    cache.insert(&17);
    cache.mark_ready();
    let of_call = |row: Result<u64, &'static str>| {
        let (cache, permits) = (cache.clone(), Arc::clone(&permits));
        tokio::spawn(async move {
            let load = async move {
                permits.acquire().await.unwrap().forget();
                assert_ne!(row, Ok(0), "a bug in the load");
                row.map(Some)
            };
            cache.get_with(&17, load).await
        })
    };
    // A get joins it, and then it is cached for gets.
    let one = of_call(Ok(1));
    until(|| cache.stats().loads == 1).await;
    let joined = spawn(&cache, 17);
    until(|| cache.stats().joined == 1).await;
    // The caller goes, the load stays.
    one.abort();
    permits.add_permits(1);
    assert_eq!(joined.await.unwrap().unwrap(), Some(1));
    assert_eq!(cache.get(&17).await.unwrap(), Some(1));
    // It joins a get's load.
    cache.invalidate(&17);
    let get = spawn(&cache, 17);
    until(|| cache.stats().loads == 2).await;
    let joined = of_call(Err("not called"));
    until(|| cache.stats().joined == 2).await;
    permits.add_permits(1);
    assert_eq!(
        (get.await.unwrap().unwrap(), joined.await.unwrap().unwrap()),
        (Some(17), Some(17))
    );
    // An error and a panic reach the get that joined, and are not cached.
    for (row, text) in [
        (Err("the store is busy"), "the load failed"),
        (
            Ok(0),
            "the loader panicked: assertion `left != right` failed: a bug in the load",
        ),
    ] {
        cache.invalidate(&17);
        let (loads, joins) = (cache.stats().loads, cache.stats().joined);
        let failing = of_call(row);
        until(|| cache.stats().loads > loads).await;
        let joined = spawn(&cache, 17);
        until(|| cache.stats().joined > joins).await;
        permits.add_permits(1);
        for get in [failing, joined] {
            assert!(get.await.unwrap().unwrap_err().to_string().starts_with(text));
        }
    }
    permits.add_permits(1);
    assert_eq!(cache.get(&17).await.unwrap(), Some(17));
}

#[tokio::test]
async fn a_load_of_one_call_that_gets_its_own_key_is_a_cycle() {
    let cache = builder().build(async |id| Ok::<_, Infallible>(Some(id))).unwrap();
    cache.insert(&17);
    let own = {
        let cache = cache.clone();
        async move { cache.get(&17).await }
    };
    let error = cache.get_with(&17, own).await.unwrap_err();
    assert!(error.downcast_ref::<LoadError>().unwrap().is_cycle());

    let blocking = builder().build_blocking(read).unwrap();
    blocking.insert(&17);
    // This one may be other code, which the thread runs while it waits: it reads the row itself.
    assert_eq!(blocking.get_with(&17, || blocking.get(&17)).unwrap(), Some(17));
    assert_eq!(blocking.get(&17).unwrap(), Some(17));
    blocking.invalidate(&17);
    let twice = || blocking.get_with(&17, || blocking.get_with(&17, || blocking.get(&17)));
    let error = twice().unwrap_err();
    let error: &LoadError = error.downcast_ref().unwrap();
    assert!(error.downcast_ref::<LoadError>().unwrap().is_cycle(), "{error}");
}

#[tokio::test]
async fn a_load_beyond_the_limit_is_refused_and_not_remembered() {
    let permits = Arc::new(Semaphore::new(0));
    let cache = builder()
        .load_limit(2, 1)
        .load_timeout(LONG)
        .build(slow(&permits))
        .unwrap();
    let first = [1, 2, 3].map(|key| spawn(&cache, key));
    until(|| cache.stats().loads == 3).await;
    yield_now().await;
    let refused = cache.get(&4).await.unwrap_err();
    assert!(refused.is_refused() && !refused.is_timeout());
    let text = "the load was refused: 2 loads run and 1 wait, the limit";
    assert_eq!(refused.to_string(), text);
    // A get that needs no load, or joins one, is not refused.
    cache.insert_value(&5, 50);
    assert_eq!(cache.get(&5).await.unwrap(), Some(50));
    let joined = spawn(&cache, 3);
    until(|| cache.stats().joined == 1).await;
    assert_eq!((cache.stats().refused, cache.stats().failed), (1, 1));
    permits.add_permits(4);
    for get in first.into_iter().chain([joined]) {
        assert!(get.await.unwrap().is_ok());
    }
    assert_eq!(cache.get(&4).await.unwrap(), Some(4));
}

/// `load_many` takes one place, and errors, panics and timeouts give it back.
#[tokio::test(start_paused = true)]
async fn every_end_of_a_load_gives_its_place_back() {
    struct Batches(Mutex<usize>);
    impl Loader<u64, u64> for Batches {
        type Error = &'static str;
        async fn load(&self, id: u64) -> Result<Option<u64>, &'static str> {
            Ok(self.load_many(vec![id]).await?.pop().map(|(_, row)| row))
        }
        async fn load_many(&self, ids: Vec<u64>) -> Result<Vec<(u64, u64)>, &'static str> {
            let calls = {
                let mut calls = self.0.lock().unwrap();
                *calls += 1;
                *calls
            };
            match calls % 4 {
                1 => Err("the store is busy"),
                2 => panic!("a bug in the loader"),
                3 => pending().await,
                _ => Ok(ids.into_iter().map(|id| (id, id)).collect()),
            }
        }
    }
    let builder = builder().load_limit(1, 0).load_timeout(Duration::from_secs(1));
    let cache = builder.build(Batches(Mutex::new(0))).unwrap();
    for _ in 0..3 {
        for text in [
            "the load failed",
            "the loader panicked: a",
            "the load took longer than 1s",
        ] {
            let error = cache.get_many(&[1, 2, 3]).await.unwrap_err();
            assert!(error.to_string().starts_with(text), "{error}");
        }
        assert_eq!(cache.get_many(&[1, 2, 3]).await.unwrap(), [Some(1), Some(2), Some(3)]);
        cache.clear();
    }
    assert_eq!((cache.stats().timed_out, cache.stats().failed), (9, 27));
}

/// More loads than places wait for each other.
#[tokio::test]
async fn loads_that_wait_for_others_lend_their_places() {
    let go = Arc::new(Semaphore::new(0));
    let of_loads = go.clone();
    let cache = nested(1, move |cache, id| {
        let go = of_loads.clone();
        async move {
            if id == 10 {
                go.acquire().await.unwrap().forget();
            }
            let Some(next) = needed(id) else {
                return Ok(Some(id));
            };
            // Two at a time: neither resumes the place while the other waits.
            let both = [5, next];
            let (next, other) = tokio::join!(cache.get(&next), cache.get_many(&both));
            assert_eq!(other?[1], next.as_ref().ok().copied().flatten());
            Ok::<_, LoadError>(next?.map(|row| row + id))
        }
    });
    assert_eq!(cache.get(&1).await.unwrap(), Some(15));
    // Here 10 has the only place, and joins a load that waits for it.
    cache.clear();
    let ten = spawn(&cache, 10);
    until(|| cache.stats().loads == 6).await;
    yield_now().await;
    let one = spawn(&cache, 1);
    until(|| cache.stats().loads == 7).await;
    yield_now().await;
    go.add_permits(1);
    assert_eq!(
        (ten.await.unwrap().unwrap(), one.await.unwrap().unwrap()),
        (Some(25), Some(15))
    );
    // The place is there again, once.
    cache.clear();
    go.add_permits(1);
    assert_eq!(cache.get(&10).await.unwrap(), Some(25));
}

/// A load that goes on after it has waited for another key has a place again.
#[tokio::test]
async fn no_more_loads_run_than_the_limit_says_after_they_have_waited() {
    let running = Running::default();
    let of_loads = running.clone();
    let cache = nested(3, move |cache, id| {
        let running = of_loads.clone();
        async move {
            if id < 50 {
                cache.get(&(50 + id % 5)).await?;
            }
            running.load(5).await;
            Ok::<_, LoadError>(Some(id))
        }
    });
    get_all(&cache, 0..50).await;
    assert_eq!(running.most(), 3);
}

/// Also a load whose loader drops a get (a timeout, a `select`), and so goes on before the get has
/// ended.
#[tokio::test(start_paused = true)]
async fn no_more_loads_run_than_the_limit_says_after_they_have_dropped_a_get() {
    let running = Running::default();
    let of_loads = running.clone();
    let cache = nested(2, move |cache, id| {
        let running = of_loads.clone();
        async move {
            if id > 0 {
                let get = cache.get(&0);
                assert!(timeout(Duration::from_millis(5), get).await.is_err());
                running.load(5).await;
                sleep(Duration::from_millis(1)).await;
            } else {
                sleep(Duration::from_millis(100)).await;
            }
            Ok::<_, LoadError>(Some(id))
        }
    });
    get_all(&cache, 1..14).await;
    // The other place is that of the load whose gets they have dropped.
    assert_eq!(running.most(), 1);
}

/// The cache does not know that the task is part of the load.
#[tokio::test(start_paused = true)]
async fn a_load_whose_task_waits_for_its_place_ends() {
    let cache = nested(1, |cache, id| async move {
        match id {
            1 => spawn(&cache, 2).await.unwrap(),
            id => Ok::<_, LoadError>(Some(id)),
        }
    });
    let (one, three) = (spawn(&cache, 1), spawn(&cache, 3));
    assert!(one.await.unwrap().unwrap_err().is_timeout());
    // It came after.
    let _ = three.await.unwrap();
    assert_eq!(cache.get(&3).await.unwrap(), Some(3));
}

#[test]
fn a_load_whose_thread_waits_for_its_place_ends() {
    let cache = nested_blocking(1, Duration::from_millis(5), |cache, id| match id {
        1 => thread::scope(|scope| scope.spawn(|| cache.get(&2)).join().unwrap()),
        id => Ok(Some(id)),
    });
    let error = cache.get(&1).unwrap_err();
    assert!(error.downcast_ref::<LoadError>().unwrap().is_timeout());
    assert_eq!(cache.get(&3).unwrap(), Some(3));
}

/// Three generations with one place; and one row that needs itself.
#[tokio::test]
async fn a_load_that_is_handed_to_tasks_lends_its_place() {
    let cache = nested(1, |cache, id| async move {
        let Some(next) = [2, 3, 0, 4].get(id as usize - 1).filter(|next| **next > 0) else {
            return Ok(Some(id));
        };
        // Two tasks at a time.
        let tasks = [cache.clone(), cache].map(|cache| {
            let get = async move { cache.get(next).await };
            tokio::spawn(LoadScope::current().scope(get))
        });
        let mut row = None;
        for task in tasks {
            row = task.await.unwrap()?;
        }
        Ok::<_, LoadError>(row.map(|row| row + id))
    });
    for _ in 0..3 {
        assert_eq!(cache.get(&1).await.unwrap(), Some(6));
        let error = cache.get(&4).await.unwrap_err();
        assert!(error.downcast_ref::<LoadError>().unwrap().is_cycle(), "{error}");
        cache.clear();
    }
}

#[test]
fn a_load_that_is_handed_to_threads_lends_its_place() {
    let cache = nested_blocking(1, LONG, |cache, id| {
        let Some(next) = [2, 3, 0, 4].get(id as usize - 1).filter(|next| **next > 0) else {
            return Ok(Some(id));
        };
        let load = LoadScope::current();
        let get = || load.clone().sync_scope(|| cache.get(next));
        let row = thread::scope(|scope| {
            let other = scope.spawn(get);
            let one = scope.spawn(get);
            other.join().unwrap().and(one.join().unwrap())
        });
        Ok::<_, LoadError>(row?.map(|row| row + id))
    });
    for _ in 0..3 {
        assert_eq!(cache.get(&1).unwrap(), Some(6));
        let error = cache.get(&4).unwrap_err();
        assert!(error.downcast_ref::<LoadError>().unwrap().is_cycle(), "{error}");
        cache.clear();
    }
}

/// The parts of a recursion do so, in threads of their own or in the one that is there.
#[test]
fn a_part_of_a_load_that_hands_it_on_lends_its_place() {
    let cache = nested_blocking(1, LONG, move |cache, id| {
        let get = || cache.get(&10);
        let in_thread = |part: &(dyn Fn() -> Result<Option<u64>, LoadError> + Sync)| {
            let load = LoadScope::current();
            thread::scope(|scope| scope.spawn(|| load.sync_scope(part)).join().unwrap())
        };
        let in_this = |part: &dyn Fn() -> Result<Option<u64>, LoadError>| {
            let load = LoadScope::current();
            load.clone().sync_scope(|| load.sync_scope(part))
        };
        match id {
            1 => in_thread(&|| in_thread(&get)),
            2 => in_thread(&|| in_thread(&|| in_thread(&get)).and(get())),
            3 => in_this(&get),
            4 => in_thread(&|| in_this(&get)),
            5 => in_this(&|| in_thread(&get)).and(get()),
            // One part waits for loads that need the place several times, while the other one
            // is back.
            6 => {
                let load = LoadScope::current();
                let loads = cache.stats().loads;
                thread::scope(|scope| {
                    let other = scope.spawn(|| load.sync_scope(|| cache.get(&7)));
                    until_blocking(|| cache.stats().loads > loads);
                    cache.get(&11)?;
                    other.join().unwrap()
                })
            }
            7 => get(),
            id => Ok(Some(id)),
        }
    });
    for id in 1..=6 {
        assert_eq!(cache.get(&id).unwrap(), Some(10), "{id}");
        cache.clear();
    }
}

/// Also within the load's own task, which `block_in_place` keeps, and with several gets at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_a_load_that_awaits_gets_lends_its_place() {
    let cache = nested(1, |cache, id| async move {
        let handle = Handle::current();
        match id {
            1 => {
                let get = || handle.block_on(cache.get(&3));
                block_in_place(|| LoadScope::current().sync_scope(get))
            }
            2 => {
                let load = LoadScope::current();
                let both = async move {
                    let (one, other) = tokio::join!(cache.get(&3), cache.get(&5));
                    one.and(other)
                };
                let thread = move || load.sync_scope(|| handle.block_on(both));
                spawn_blocking(thread).await.unwrap()
            }
            3 => cache.get(&4).await,
            id => Ok::<_, LoadError>(Some(id)),
        }
    });
    for (id, row) in [(1, 4), (2, 5)].repeat(100) {
        assert_eq!(cache.get(&id).await.unwrap(), Some(row));
        cache.clear();
    }
}

/// Loads that get others in every way, begun and given up by many: they keep the limit, end, and
/// leave all places behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loads_of_every_shape_keep_the_limit_and_end() {
    const KEYS: u64 = 60;
    for limit in [1, 2, 3] {
        let (running, all) = (Running::default(), Arc::new(Barrier::new(limit)));
        let of_loads = running.clone();
        let cache = nested(limit, move |cache, id| {
            let (running, all) = (of_loads.clone(), Arc::clone(&all));
            async move {
                if id >= KEYS {
                    all.wait().await;
                    return Ok(Some(id));
                }
                // Later keys only.
                let [one, other] = [id + 1 + id % 3, id + 2 + id % 5];
                if other < KEYS {
                    let part = |key: u64| {
                        let cache = cache.clone();
                        async move { cache.get(&key).await }
                    };
                    let brief = Duration::from_micros(50 * (id % 4));
                    match id % 6 {
                        0 => drop(part(one).await?.or(part(other).await?)),
                        1 => drop(cache.get_many(&[one, other]).await?),
                        2 => drop(timeout(brief, part(one)).await),
                        3 => {
                            let scope = |key| tokio::spawn(LoadScope::current().scope(part(key)));
                            let (one, other) = (scope(one), scope(other));
                            one.await.unwrap()?;
                            other.await.unwrap()?;
                        }
                        4 => {
                            let (load, handle) = (LoadScope::current(), Handle::current());
                            let get = part(one);
                            let thread = move || load.sync_scope(|| handle.block_on(get));
                            spawn_blocking(thread).await.unwrap()?;
                        }
                        _ => drop(tokio::join!(part(one), timeout(brief, part(other)))),
                    }
                }
                running.load(3).await;
                Ok::<_, LoadError>(Some(id))
            }
        });
        for round in 0..8 {
            let gets = Vec::from_iter((0..KEYS).map(|key| spawn(&cache, key)));
            if round % 2 == 1 {
                yield_now().await;
                cache.clear();
            }
            for (key, get) in (0..KEYS).zip(gets) {
                match key % 7 {
                    6 => get.abort(),
                    _ => assert_eq!(get.await.unwrap().unwrap(), Some(key)),
                }
            }
            cache.clear();
        }
        assert!(running.most() <= limit, "{} of {limit}", running.most());
        get_all(&cache, KEYS..KEYS + limit as u64).await;
    }
}

#[test]
fn threads_whose_loads_wait_for_others_lend_their_places() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let cache = nested_blocking(1, LONG, move |cache, id| {
        if id == 10 {
            gone.lock().unwrap().recv().unwrap();
        }
        let Some(next) = needed(id) else {
            return Ok(Some(id));
        };
        let row = cache.get(&next)?;
        Ok::<_, LoadError>(row.map(|row| row + id))
    });
    assert_eq!(cache.get(&1).unwrap(), Some(15));
    cache.clear();
    thread::scope(|scope| {
        let ten = scope.spawn(|| cache.get(&10));
        until_blocking(|| cache.stats().loads == 6);
        let one = scope.spawn(|| cache.get(&1));
        until_blocking(|| cache.stats().loads == 7);
        go.send(()).unwrap();
        assert_eq!(ten.join().unwrap().unwrap(), Some(25));
        assert_eq!(one.join().unwrap().unwrap(), Some(15));
    });
    cache.clear();
    go.send(()).unwrap();
    assert_eq!(cache.get(&10).unwrap(), Some(25));
}

/// The loader's future is dropped, every waiter gets the error, and the next get loads.
#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_the_load_for_all_who_wait() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (dropped, hangs) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(true)));
    let of_loads = (Arc::clone(&dropped), Arc::clone(&hangs));
    let read = move |id: u64| {
        let dropped = Dropped(Arc::clone(&of_loads.0));
        let hangs = of_loads.1.load(Ordering::Relaxed);
        async move {
            let _dropped = dropped;
            if hangs {
                pending::<()>().await;
            }
            Ok::<_, Infallible>(Some(id))
        }
    };
    // One place: the second key's load waits for it, and its time is over too.
    let builder = builder().load_timeout(Duration::from_secs(5)).load_limit(1, 10);
    let cache = builder.build(read).unwrap();
    let began = tokio::time::Instant::now();
    let gets = [17, 17, 17, 18].map(|key| spawn(&cache, key));
    for get in gets {
        let error = get.await.unwrap().unwrap_err();
        assert!(error.is_timeout() && !error.is_refused(), "{error}");
        assert_eq!(error.to_string(), "the load took longer than 5s");
    }
    assert!(began.elapsed() < Duration::from_secs(6));
    dropped.notified().await;
    assert_eq!((cache.stats().timed_out, cache.stats().failed), (2, 2));
    hangs.store(false, Ordering::Relaxed);
    assert_eq!(
        (cache.get(&17).await.unwrap(), cache.get(&18).await.unwrap()),
        (Some(17), Some(18))
    );
}

#[test]
fn a_timeout_ends_the_waits_of_threads_and_not_the_load() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let (begin, begun) = mpsc::channel();
    let read = move |id: u64| {
        begin.send(()).unwrap();
        gone.lock().unwrap().recv().unwrap();
        Ok::<_, Infallible>(Some(id))
    };
    let builder = builder().load_timeout(Duration::from_millis(5)).load_limit(1, 10);
    let cache = builder.build_blocking(read).unwrap();
    thread::scope(|scope| {
        let loading = scope.spawn(|| cache.get(&17));
        begun.recv().unwrap();
        // One joins, and one waits for its place.
        for key in [17, 18] {
            let error = cache.get(&key).unwrap_err();
            assert!(error.is_timeout(), "{error}");
        }
        // The second is a load that failed; the first has yet to end.
        assert_eq!((cache.stats().joined, cache.stats().timed_out), (1, 1));
        go.send(()).unwrap();
        assert_eq!(loading.join().unwrap().unwrap(), Some(17));
    });
    assert_eq!((cache.get(&17).unwrap(), cache.stats().hits), (Some(17), 1));
}

/// Also within a task that has used up its budget: tokio's futures are pending there until it
/// returns.
#[tokio::test]
async fn a_blocking_get_within_a_task_ends() {
    let (begin, begun) = mpsc::channel();
    let cache = nested_blocking(1, LONG, move |cache, id| {
        if id == 1 {
            begin.send(()).unwrap();
            until_blocking(|| cache.stats().loads == 2);
        }
        Ok(Some(id))
    });
    let one = thread::spawn({
        let cache = cache.clone();
        move || cache.get(&1)
    });
    begun.recv().unwrap();
    let budget = Semaphore::new(1);
    let get = poll_fn(|context| {
        while pin!(budget.acquire()).poll(context).is_ready() {}
        Poll::Ready(cache.get(&2))
    });
    assert_eq!(get.await.unwrap(), Some(2));
    assert_eq!(one.join().unwrap().unwrap(), Some(1));
}
