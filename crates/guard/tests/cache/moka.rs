//! What is passed on from moka keeps the cache's promises: it meets changes, rebuilds and loads.

use crate::gets::{Blocking, builder, read};
use lanebloom_guard::sync::GuardedCache;
use lanebloom_guard::{Expiry, RemovalCause};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

fn values(cache: &Blocking) -> Vec<(u64, u64)> {
    let mut values = Vec::from_iter(cache.iter().map(|(key, value)| (*key, value)));
    values.sort_unstable();
    values
}

#[test]
fn no_look_finds_a_value_after_a_change() {
    let cache = builder().build_blocking(read).unwrap();
    type Change = fn(&Blocking);
    let changes: [Change; 5] = [
        |cache| cache.insert(&17),
        |cache| cache.remove(&17),
        |cache| cache.invalidate(&17),
        |cache| assert_eq!(cache.invalidate_entries_if(|key, value| *key == 17 && *value == 1), 1),
        |cache| cache.clear(),
    ];
    for change in changes {
        cache.insert_value(&17, 1);
        cache.insert_value(&18, 2);
        assert_eq!((cache.peek(&17), values(&cache)), (Some(1), vec![(17, 1), (18, 2)]));
        change(&cache);
        assert_eq!(cache.peek(&17), None);
        assert!(!values(&cache).contains(&(17, 1)));
        // What `clear` has left in moka is not asked.
        assert_eq!(cache.invalidate_entries_if(|key, _| *key == 17), 0);
        assert_eq!(cache.get(&17).unwrap(), Some(17));
    }
}

/// A rebuild without the key: gets turn it away, although its value is cached.
#[test]
fn no_look_finds_a_value_that_the_filter_turns_away() {
    let builder = builder().expected_keys(1000);
    let cache = builder.build_blocking(read).unwrap();
    cache.insert_value(&17, 1);
    cache.insert_value(&18, 2);
    cache.rebuild_now(|keys| Ok(keys.insert(18)?)).unwrap();
    assert_eq!(cache.get(&17).unwrap(), None);
    assert_eq!((cache.peek(&17), values(&cache)), (None, vec![(18, 2)]));
}

#[test]
fn a_peek_counts_nowhere_and_leaves_the_remembered_misses() {
    let cache = builder().build_blocking(|_| Ok::<_, Infallible>(None)).unwrap();
    cache.insert(&17);
    cache.insert_value(&18, 1);
    assert_eq!(cache.get(&17).unwrap(), None);
    let before = cache.stats();
    assert_eq!((cache.peek(&17), cache.peek(&18)), (None, Some(1)));
    assert_eq!(cache.stats(), before);
    // The miss is still remembered.
    assert_eq!(cache.get(&17).unwrap(), None);
    assert_eq!(cache.stats().since(&before).known_misses, 1);
}

/// A cache whose first load reads 1, and waits for the first barrier and then for the second one.
/// Later loads read 2.
fn with_held_load() -> (Blocking, Arc<[Barrier; 2]>) {
    let barriers = Arc::new([Barrier::new(2), Barrier::new(2)]);
    let (held, is_first) = (Arc::clone(&barriers), AtomicBool::new(true));
    let read = move |_| {
        if !is_first.swap(false, Ordering::Relaxed) {
            return Ok(Some(2));
        }
        for barrier in &*held {
            barrier.wait();
        }
        Ok::<_, Infallible>(Some(1))
    };
    (builder().build_blocking(read).unwrap(), barriers)
}

/// Its row comes to moka after `clear`, in the epoch before.
#[test]
fn no_look_finds_the_row_of_a_load_from_before_a_clear() {
    let (cache, barriers) = with_held_load();
    std::thread::scope(|scope| {
        let early = scope.spawn(|| cache.get(&17));
        barriers[0].wait();
        cache.clear();
        barriers[1].wait();
        assert_eq!(early.join().unwrap().unwrap(), Some(1));
    });
    assert_eq!((cache.peek(&17), values(&cache)), (None, vec![]));
    assert_eq!(cache.invalidate_entries_if(|_, _| true), 0);
    assert_eq!(cache.get(&17).unwrap(), Some(2));
}

/// The rows are durations: of the first get, of the second, after a change.
struct ByRow;

type Time = Option<Duration>;
type Row = [Time; 3];

impl Expiry<u64, Row> for ByRow {
    fn expire_after_create(&self, key: &u64, row: &Row, _: Instant) -> Time {
        assert_eq!(*key, 17);
        row[0]
    }
    fn expire_after_read(&self, key: &u64, row: &Row, _: Instant, left: Time, _: Instant) -> Time {
        assert_eq!(*key, 17);
        row[1].or(left)
    }
    fn expire_after_update(&self, key: &u64, row: &Row, _: Instant, left: Time) -> Time {
        assert_eq!(*key, 17);
        row[2].or(left)
    }
}

#[test]
fn each_value_expires_by_its_own_times() {
    let now = Some(Duration::ZERO);
    let read = |_| Ok::<_, Infallible>(None);
    let gets = |row, inserts: usize| {
        let builder = GuardedCache::<u64, Row>::builder().expire_after(ByRow);
        let cache = builder.build_blocking(read).unwrap();
        (0..inserts).for_each(|_| cache.insert_value(&17, row));
        [(); 2].map(|()| cache.get(&17).unwrap().is_some())
    };
    assert_eq!(gets([now, None, None], 1), [false, false]);
    assert_eq!(gets([None, now, None], 1), [true, false]);
    assert_eq!(gets([None, None, now], 1), [true, true]);
    assert_eq!(gets([None, None, now], 2), [false, false]);
}

#[test]
fn what_is_pushed_out_is_counted_and_the_listener_hears_of_it() {
    let gone = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let gone = Arc::clone(&gone);
        move |key: Arc<u64>, value, cause| gone.lock().unwrap().push((*key, value, cause))
    };
    let builder = || builder().capacity(10);
    let (heard, counted) = (builder().eviction_listener(listener), builder());
    for (builder, is_heard) in [(heard, true), (counted, false)] {
        let cache = builder.build_blocking(read).unwrap();
        cache.insert_value(&0, 1);
        cache.remove(&0);
        let mut keys = 1..;
        while cache.stats().evictions < 1000 {
            let key = keys.next().unwrap();
            cache.insert_value(&key, key + 1);
        }
        let evictions = cache.stats().evictions;
        assert_eq!(cache.stats().since(&cache.stats()).evictions, 0);
        if is_heard {
            let gone = gone.lock().unwrap();
            assert_eq!(gone[0], (0, 1, RemovalCause::Explicit));
            let pushed_out = gone.iter().filter(|(.., cause)| *cause == RemovalCause::Size);
            assert_eq!(pushed_out.count() as u64, evictions);
            assert!(gone.iter().all(|(key, value, _)| *value == key + 1));
        }
    }
}

#[test]
fn a_panic_of_the_listener_ends_with_its_call() {
    let calls = Arc::new(AtomicU64::new(0));
    let of_listener = Arc::clone(&calls);
    let listener = move |_, _, _| {
        of_listener.fetch_add(1, Ordering::Relaxed);
        panic!("a bug in the listener")
    };
    let builder = builder().capacity(10).eviction_listener(listener);
    let cache = builder.build_blocking(read).unwrap();
    for key in 0..2000 {
        cache.insert_value(&key, key + 1);
        assert!([key, key + 1].contains(&cache.get(&key).unwrap().unwrap()));
    }
    let evictions = cache.stats().evictions;
    assert!(
        evictions > 100 && calls.load(Ordering::Relaxed) >= evictions,
        "{evictions}"
    );
}
