//! Strangers and odd types: long keys, clones that panic, weighers that wait, and intervals without
//! end.

use crate::common::limit_time;
use crate::gets::{builder, read, runtime, tasks, until_blocking};
use lanebloom::{Funnel, Sink};
use lanebloom_guard::{Keys, LoadError, future::GuardedCache, sync};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tokio::task::yield_now;

/// The store's rows are gone, so that every key of the filter is a miss.
fn misses(builder: lanebloom_guard::CacheBuilder<str, u32>) -> sync::GuardedCache<str, u32> {
    let cache = builder.expected_keys(10_000);
    cache.build_blocking(|_| Ok::<_, Infallible>(None)).unwrap()
}

/// Moka counts and evicts after at most this number of writes.
const LAG: u64 = 1024;

#[test]
fn remembered_misses_are_bounded_in_bytes() {
    let key = |id: usize, length: usize| format!("{id:0length$}");
    // Longer than is remembered at all.
    let cache = misses(GuardedCache::builder());
    for id in 0..300 {
        let key = key(id, 60_000);
        cache.insert(&key);
        assert_eq!(cache.get(&key).unwrap(), None);
    }
    let (report, stats) = (cache.report(), cache.stats());
    assert_eq!((report.misses, stats.loads, stats.known_misses), (0, 300, 0));
    let last = key(299, 60_000);
    assert_eq!((cache.get(&last).unwrap(), cache.stats().loads), (None, 301));
    // The longest key that is remembered, and one that is a byte longer.
    for (length, loads, known_misses) in [(1024, 302, 1), (1025, 304, 1)] {
        let key = key(0, length);
        cache.insert(&key);
        assert_eq!((cache.get(&key).unwrap(), cache.get(&key).unwrap()), (None, None));
        let stats = cache.stats();
        assert_eq!((stats.loads, stats.known_misses), (loads, known_misses), "{length}");
    }

    let cache = misses(GuardedCache::builder().miss_memory(100_000));
    for id in 0..5000 {
        let key = key(id, 800);
        cache.insert(&key);
        assert_eq!(cache.get(&key).unwrap(), None);
    }
    let remembered = cache.report().misses;
    assert!(remembered <= 100 + LAG, "{remembered} of 1000 bytes each");
    // It remembers some.
    let key = key(0, 10);
    cache.insert(&key);
    assert_eq!(cache.get(&key).unwrap(), None);
    assert_eq!((cache.get(&key).unwrap(), cache.stats().known_misses), (None, 1));
}

/// While another thread holds the lock of a key, for however long.
#[test]
fn a_clear_waits_for_nobody() {
    let inside = Arc::new(Barrier::new(2));
    let weigher = {
        let inside = Arc::clone(&inside);
        move |key: &u64, _: &u64| {
            if *key == 17 {
                inside.wait();
                inside.wait();
            }
            1
        }
    };
    let cache = builder().weigher(weigher).build_blocking(read).unwrap();
    cache.insert_value(&18, 1800);
    thread::scope(|scope| {
        scope.spawn(|| cache.insert_value(&17, 1700));
        inside.wait();
        cache.clear();
        inside.wait();
    });
    assert_eq!(cache.get(&18).unwrap(), Some(18));
    // A get after the clear may see what was inserted beside it, or load.
    assert!(matches!(cache.get(&19).unwrap(), None | Some(19)));
    cache.insert_value(&20, 2000);
    assert_eq!(cache.get(&20).unwrap(), Some(2000));
}

/// A key whose clone panics when the fuse has burnt down.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Fragile(u64, Fuse);

/// All fuses of a test are one.
#[derive(Clone, Debug)]
struct Fuse(Arc<AtomicUsize>);

impl PartialEq for Fuse {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Fuse {}
impl std::hash::Hash for Fuse {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Fuse {
    const LONG: usize = 1 << 40;

    fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(Self::LONG)))
    }
    fn set(&self, clones: usize) {
        self.0.store(clones, Ordering::Relaxed);
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.1.0.fetch_sub(1, Ordering::Relaxed) != 1, "the fuse");
        Self(self.0, self.1.clone())
    }
}

impl Funnel for Fragile {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

/// More clones than a get makes of its key.
const CLONES: usize = 20;

#[test]
fn a_key_whose_clone_panics_leaves_no_load_behind() {
    limit_time();
    let fuse = Fuse::new();
    let builder = || GuardedCache::<Fragile, u64>::builder().expected_keys(10);
    let keys = [17, 18].map(|id| Fragile(id, fuse.clone()));
    let read = |key: Fragile| Ok::<_, Infallible>(Some(key.0));
    let cache = builder().build_blocking(read).unwrap();
    cache.insert_batch(&keys);
    for clones in 1..CLONES {
        keys.iter().for_each(|key| cache.invalidate(key));
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| cache.get_many(&keys)));
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| cache.get(&keys[0])));
        fuse.set(Fuse::LONG);
        assert_eq!(cache.get(&keys[0]).unwrap(), Some(17), "{clones}");
        assert_eq!(cache.get_many(&keys).unwrap(), [Some(17), Some(18)], "{clones}");
    }

    let runtime = runtime();
    let read = async |key: Fragile| Ok::<_, Infallible>(Some(key.0));
    let cache = builder().build(read).unwrap();
    cache.insert_batch(&keys);
    for clones in 1..CLONES {
        keys.iter().for_each(|key| cache.invalidate(key));
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(cache.get_many(&keys))));
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(cache.get(&keys[0]))));
        fuse.set(Fuse::LONG);
        let got: Result<_, LoadError> = runtime.block_on(cache.get(&keys[0]));
        assert_eq!(got.unwrap(), Some(17), "{clones}");
        let got = runtime.block_on(cache.get_many(&keys));
        assert_eq!(got.unwrap(), [Some(17), Some(18)], "{clones}");
    }
}

/// A refresh that could not begin is not in the way of the next one.
#[test]
fn a_key_whose_clone_panics_is_refreshed_later() {
    let fuse = Fuse::new();
    let builder = || GuardedCache::<Fragile, u64>::builder().refresh_after_write(Duration::ZERO);
    let keys = [17, 18].map(|id| Fragile(id, fuse.clone()));
    let read = |key: Fragile| Ok::<_, Infallible>(Some(key.0));
    let blocking = builder().build_blocking(read).unwrap();
    let awaited = builder().build(async |key: Fragile| Ok::<_, Infallible>(Some(key.0)));
    let (awaited, runtime) = (awaited.unwrap(), runtime());
    for clones in 1..CLONES {
        for key in &keys {
            blocking.insert_value(key, 1);
            awaited.insert_value(key, 1);
        }
        let failed = [blocking.stats().failed, awaited.stats().failed];
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| blocking.get_many(&keys)));
        // The thread that refreshes clones them too.
        thread::sleep(Duration::from_millis(2));
        fuse.set(clones);
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(awaited.get_many(&keys))));
        fuse.set(Fuse::LONG);
        for key in &keys {
            // A load that failed is tried again in a second.
            until_blocking(|| blocking.get(key).unwrap() == Some(key.0) || blocking.stats().failed > failed[0]);
            until_blocking(|| {
                let row = runtime.block_on(async {
                    yield_now().await;
                    awaited.get(key).await
                });
                row.unwrap() == Some(key.0) || awaited.stats().failed > failed[1]
            });
        }
    }
}

/// A key whose `Eq` panics after a number of comparisons, until it is mended.
#[derive(Clone, Debug)]
struct Unequal(u64, Arc<AtomicUsize>);

impl PartialEq for Unequal {
    fn eq(&self, other: &Self) -> bool {
        let left = |comparisons: usize| comparisons.checked_sub(1);
        assert!(
            self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok(),
            "a bug in Eq"
        );
        self.0 == other.0
    }
}
impl Eq for Unequal {}
impl std::hash::Hash for Unequal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Funnel for Unequal {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

/// It neither aborts the process nor leaves a load that others wait for.
#[test]
fn a_key_whose_eq_panics_ends_every_get() {
    limit_time();
    let fuse = Arc::new(AtomicUsize::new(Fuse::LONG));
    let runtime = runtime();
    let [key, other] = [17, 18].map(|id| Unequal(id, Arc::clone(&fuse)));
    for comparisons in 0..CLONES {
        let builder = || GuardedCache::<Unequal, u64>::builder().expected_keys(10);
        let read = |key: Unequal| Ok::<_, Infallible>(Some(key.0));
        let blocking = builder().build_blocking(read).unwrap();
        let awaited = builder()
            .build(async |key: Unequal| Ok::<_, Infallible>(Some(key.0)))
            .unwrap();
        blocking.insert_batch(&[&key, &other]);
        awaited.insert_batch(&[&key, &other]);
        fuse.store(comparisons, Ordering::Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| blocking.get(&key)));
        fuse.store(comparisons, Ordering::Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(awaited.get(&key))));
        let keys = [&key, &other];
        fuse.store(comparisons, Ordering::Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| blocking.get_many(&keys)));
        fuse.store(comparisons, Ordering::Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(awaited.get_many(&keys))));
        fuse.store(Fuse::LONG, Ordering::Relaxed);
        // Also if the flight could not be found in the table, and is still there.
        assert_eq!(blocking.get(&key).unwrap(), Some(17), "{comparisons}");
        let got = runtime.block_on(awaited.get(&key));
        assert_eq!(got.unwrap(), Some(17), "{comparisons}");
    }
}

/// Schedules of the same interval: about every second one's is made longer.
const SCHEDULES: usize = 20;

#[tokio::test(start_paused = true)]
async fn an_interval_may_be_without_end() {
    let cache = builder().build(async |id| Ok::<_, Infallible>(Some(id)));
    let cache = cache.unwrap();
    let source = async |keys: &mut Keys<'_, u64>| Ok(keys.insert(1)?);
    let rebuilds = [(); SCHEDULES].map(|()| tokio::spawn(cache.rebuild_every(Duration::MAX, source)));
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    let alive = || tasks();
    assert_eq!(alive(), SCHEDULES);
    for rebuilds in rebuilds {
        rebuilds.abort();
        assert!(rebuilds.await.unwrap_err().is_cancelled());
    }
    assert_eq!(alive(), 0);
}

#[test]
fn an_interval_of_a_thread_may_be_without_end() {
    let cache = builder().build_blocking(read).unwrap();
    let keys = Arc::new(vec![1]);
    let rebuilds = [(); SCHEDULES].map(|()| {
        let keys = Arc::clone(&keys);
        cache.rebuild_every(Duration::MAX, move |taker| Ok(taker.insert_all(keys.iter().copied())?))
    });
    // A thread drops the source when it ends.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(Arc::strong_count(&keys), 1 + SCHEDULES);
    rebuilds.into_iter().for_each(|rebuilds| rebuilds.stop());
    assert_eq!(Arc::strong_count(&keys), 1);
}
