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
use tokio::time::timeout;

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

/// A cache with this number of permits, whose loads get others.
fn nested<L>(permits: usize, load: impl Fn(Cache, u64) -> L + Send + Sync + 'static) -> Cache
where
    L: Future<Output = Result<Option<u64>, LoadError>> + Send + 'static,
{
    let cell: Arc<OnceLock<Cache>> = Arc::default();
    let of_loads = Arc::clone(&cell);
    let builder = builder().load_limit(permits, 10_000).load_timeout(LONG);
    let cache = builder
        .build(move |id| load(of_loads.get().unwrap().clone(), id))
        .unwrap();
    assert!(cell.set(cache.clone()).is_ok());
    cache
}

/// [`nested`], for threads.
fn nested_blocking(
    permits: usize,
    timeout: Duration,
    load: impl Fn(&Blocking, u64) -> Result<Option<u64>, LoadError> + Send + Sync + 'static,
) -> Blocking {
    let cell: Arc<OnceLock<Blocking>> = Arc::default();
    let of_loads = Arc::clone(&cell);
    let builder = builder().load_limit(permits, 100).load_timeout(timeout);
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

/// `load_many` takes one permit, and errors, panics and timeouts give it back.
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

/// Loads that get others in every way, begun and given up by many: they lend their permits, keep
/// the limit, end, and leave all permits behind.
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
                            let (one, other, both) = (part(one), part(other), part(other));
                            let gets = async move { tokio::join!(one, both).0 };
                            let of_thread = handle.clone();
                            let thread = move || load.sync_scope(|| of_thread.block_on(gets));
                            spawn_blocking(thread).await.unwrap()?;
                            let get = || handle.block_on(other);
                            block_in_place(|| LoadScope::current().sync_scope(get))?;
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

/// The blocking twin: a load is handed to threads, to parts in its own thread, and on by both.
#[test]
fn blocking_loads_of_every_shape_keep_the_limit_and_end() {
    const KEYS: u64 = 40;
    type Row = Result<Option<u64>, LoadError>;
    fn in_thread(part: impl Fn() -> Row + Sync) -> Row {
        let load = LoadScope::current();
        thread::scope(|scope| scope.spawn(|| load.sync_scope(&part)).join().unwrap())
    }
    fn in_this(part: impl Fn() -> Row) -> Row {
        let load = LoadScope::current();
        load.clone().sync_scope(|| load.sync_scope(&part))
    }
    for limit in [1, 2, 3] {
        let (running, all) = (Running::default(), Arc::new(std::sync::Barrier::new(limit)));
        let of_loads = running.clone();
        let cache = nested_blocking(limit, LONG, move |cache, id| {
            if id >= KEYS {
                all.wait();
                return Ok(Some(id));
            }
            let [one, other] = [id + 1 + id % 3, id + 2 + id % 5];
            if other < KEYS {
                let [one, other] = [one, other].map(|key| move || cache.get(&key));
                match id % 8 {
                    0 => one()?.or(other()?),
                    1 => cache.get_many(&[id + 1, id + 2])?[0],
                    2 => in_thread(|| in_thread(one).and(other()))?,
                    3 => in_this(one)?,
                    4 => in_thread(|| in_this(one))?.or(other()?),
                    5 => in_this(|| in_thread(one))?.or(other()?),
                    // Two parts at a time, one of them in this thread.
                    6 => {
                        let load = LoadScope::current();
                        thread::scope(|scope| {
                            let part = scope.spawn(|| load.sync_scope(one));
                            other().and(part.join().unwrap())
                        })?
                    }
                    _ => in_thread(|| in_thread(|| in_thread(one)).and(other()))?,
                };
            }
            running_blocking(&of_loads);
            Ok(Some(id))
        });
        for _ in 0..10 {
            get_all_blocking(&cache, 0..KEYS);
            cache.clear();
        }
        assert!(running.most() <= limit, "{} of {limit}", running.most());
        get_all_blocking(&cache, KEYS..KEYS + limit as u64);
    }
}

fn running_blocking(running: &Running) {
    let mut load = pin!(running.load(3));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    while load.as_mut().poll(&mut context).is_pending() {
        thread::yield_now();
    }
}

fn get_all_blocking(cache: &Blocking, keys: Range<u64>) {
    thread::scope(|scope| {
        let gets = Vec::from_iter(keys.map(|key| (key, scope.spawn(move || cache.get(&key)))));
        for (key, get) in gets {
            assert_eq!(get.join().unwrap().unwrap(), Some(key));
        }
    });
}

/// Also if a load is handed to a task or a thread.
#[tokio::test]
async fn a_row_that_needs_itself_by_another_task_or_thread_is_a_cycle() {
    let cache = nested(1, |cache, id| async move {
        let get = async move { cache.get(&id).await };
        tokio::spawn(LoadScope::current().scope(get)).await.unwrap()
    });
    let blocking = nested_blocking(1, LONG, |cache, id| {
        let load = LoadScope::current();
        thread::scope(|scope| scope.spawn(|| load.sync_scope(|| cache.get(&id))).join().unwrap())
    });
    for error in [cache.get(&4).await.unwrap_err(), blocking.get(&4).unwrap_err()] {
        assert!(error.downcast_ref::<LoadError>().unwrap().is_cycle(), "{error}");
    }
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
    // One permit: the second key's load waits for it, and its time is over too.
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
        // One joins, and one waits for its permit.
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
