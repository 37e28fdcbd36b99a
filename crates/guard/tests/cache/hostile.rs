//! Strangers and odd types: long keys, clones that panic, weighers that wait, and intervals without
//! end.

use crate::gets::{Either, builder, read, tasks, until_blocking};
use lanebloom::{Funnel, Sink};
use lanebloom_guard::{Keys, future::GuardedCache, sync};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

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

/// A key whose clone panics once. After some calls its `Eq` panics too, until it is mended.
#[derive(Debug)]
struct Fragile(u64, Arc<Fuses>);

/// The calls that are left, of all keys of a test.
#[derive(Debug)]
struct Fuses {
    clones: AtomicUsize,
    comparisons: AtomicUsize,
}

const LONG: usize = 1 << 40;

impl Fuses {
    fn keys() -> (Arc<Self>, [Fragile; 2]) {
        let [clones, comparisons] = [(); 2].map(|()| AtomicUsize::new(LONG));
        let fuses = Arc::new(Self { clones, comparisons });
        let keys = [17, 18].map(|id| Fragile(id, Arc::clone(&fuses)));
        (fuses, keys)
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert_ne!(self.1.clones.fetch_sub(1, Ordering::Relaxed), 1, "the fuse");
        Self(self.0, self.1.clone())
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        let left = |calls: usize| calls.checked_sub(1);
        let comparisons = &self.1.comparisons;
        let left = comparisons.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        assert!(left.is_ok(), "a bug in Eq");
        self.0 == other.0
    }
}
impl Eq for Fragile {}
impl std::hash::Hash for Fragile {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Funnel for Fragile {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

/// More clones, and comparisons, than a get makes of its key.
const CALLS: usize = 20;

/// Sets the fuse for this call, and mends it.
fn burn<T>(fuse: &AtomicUsize, calls: usize, get: impl FnOnce() -> T) {
    fuse.store(calls, Ordering::Relaxed);
    let _ = catch_unwind(AssertUnwindSafe(get));
    fuse.store(LONG, Ordering::Relaxed);
}

#[test]
fn a_key_whose_clone_panics_leaves_no_load_behind() {
    let (fuses, keys) = Fuses::keys();
    for cache in Either::both(|| GuardedCache::builder().expected_keys(10), |key: &Fragile| key.0) {
        cache.insert_batch(&keys);
        for clones in 1..CALLS {
            keys.iter().for_each(|key| cache.invalidate(key));
            burn(&fuses.clones, clones, || cache.get_many(&keys));
            burn(&fuses.clones, clones, || cache.get(&keys[0]));
            assert_eq!(cache.get(&keys[0]).unwrap(), Some(17), "{clones}");
            assert_eq!(cache.get_many(&keys).unwrap(), [Some(17), Some(18)], "{clones}");
        }
    }
}

/// A refresh that could not begin is not in the way of the next one.
#[test]
fn a_key_whose_clone_panics_is_refreshed_later() {
    let (fuses, keys) = Fuses::keys();
    let builder = || GuardedCache::builder().refresh_after_write(Duration::ZERO);
    for cache in Either::both(builder, |key: &Fragile| key.0) {
        for clones in 1..CALLS {
            keys.iter().for_each(|key| cache.insert_value(key, 1));
            let failed = cache.stats().failed;
            burn(&fuses.clones, clones, || {
                let _ = catch_unwind(AssertUnwindSafe(|| cache.get_many(&keys)));
                // The thread that refreshes clones them too.
                thread::sleep(Duration::from_millis(2));
            });
            for key in &keys {
                // A load that failed is tried again in a second.
                until_blocking(|| cache.get(key).unwrap() == Some(key.0) || cache.stats().failed > failed);
            }
        }
    }
}

/// It neither aborts the process nor leaves a load that others wait for.
#[test]
fn a_key_whose_eq_panics_ends_every_get() {
    let (fuses, keys) = Fuses::keys();
    for comparisons in 0..CALLS {
        for cache in Either::both(|| GuardedCache::builder().expected_keys(10), |key: &Fragile| key.0) {
            cache.insert_batch(&keys);
            burn(&fuses.comparisons, comparisons, || cache.get(&keys[0]));
            burn(&fuses.comparisons, comparisons, || cache.get_many(&keys));
            // Also if the flight could not be found in the table, and is still there.
            assert_eq!(cache.get(&keys[0]).unwrap(), Some(17), "{comparisons}");
        }
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
