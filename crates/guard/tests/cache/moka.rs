//! Methods that are passed on from moka keep the cache's promises: they meet changes, rebuilds and
//! loads.

use crate::gets::{Blocking, HOUR, builder, read, until_blocking};
use lanebloom_guard::sync::GuardedCache;
use lanebloom_guard::{Expiry, RemovalCause};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn values(cache: &Blocking) -> Vec<(u64, u64)> {
    let mut values = Vec::from_iter(cache.iter().map(|(key, value)| (*key, value)));
    values.sort_unstable();
    values
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

/// A cache of 40 values of weight 2, which has room for 50, and one of the values grows to 101.
/// Moka alone would drive out all others.
#[test]
fn a_value_heavier_than_the_capacity_pushes_out_no_other() {
    let rows = Arc::new(Mutex::new(2));
    type Grow = fn(&Blocking);
    let grows: [(&str, Grow); 5] = [
        ("insert_value", |cache| cache.insert_value(&7, 101)),
        ("twice", |cache| {
            (100..102).rev().for_each(|row| cache.insert_value(&7, row + 1))
        }),
        ("refresh", |cache| {
            let before = cache.stats().refreshes;
            until_blocking(|| cache.get(&7).is_ok() && cache.stats().refreshes > before && cache.peek(&7) != Some(2));
        }),
        ("load", |cache| {
            cache.invalidate(&7);
            assert_eq!(cache.get(&7).unwrap(), Some(101));
        }),
        ("multi-get", |cache| {
            cache.invalidate(&7);
            assert_eq!(cache.get_many(&[7, 8]).unwrap(), [Some(101), Some(2)]);
        }),
    ];
    for (name, grow) in grows {
        let gone = Arc::new(Mutex::new(Vec::new()));
        let (heard, store) = (Arc::clone(&gone), Arc::clone(&rows));
        let builder = builder().capacity(100).weigher(|_, value| *value as u32);
        let cache = builder
            .refresh_after_write(if name == "refresh" { Duration::ZERO } else { HOUR })
            .eviction_listener(move |key: Arc<u64>, value, cause| heard.lock().unwrap().push((*key, value, cause)))
            .build_blocking(move |_| Ok::<_, Infallible>(Some(*store.lock().unwrap())))
            .unwrap();
        *rows.lock().unwrap() = 2;
        (0..40).for_each(|key| cache.insert_value(&key, 2));
        let_moka_work(&cache);
        assert_eq!(values(&cache).len(), 40, "{name}");
        *rows.lock().unwrap() = 101;
        grow(&cache);
        let_moka_work(&cache);
        let held = values(&cache);
        assert_eq!(held.len(), 39, "{name}: {held:?}");
        assert!(
            held.iter().all(|(key, value)| *key != 7 && *value == 2),
            "{name}: {held:?}"
        );
        // The value that was not held counts as one that moka pushed out.
        let mut gone = std::mem::take(&mut *gone.lock().unwrap());
        gone.retain(|(.., cause)| *cause == RemovalCause::Size);
        assert!(gone.contains(&(7, 101, RemovalCause::Size)), "{name}: {gone:?}");
        assert!(gone.iter().all(|(key, ..)| *key == 7), "{name}: {gone:?}");
        assert_eq!(cache.stats().evictions, gone.len() as u64, "{name}");
        // Small again, it is held again.
        cache.insert_value(&7, 2);
        let_moka_work(&cache);
        assert_eq!(values(&cache).len(), 40, "{name}");
    }
}

/// Moka evicts late: during a later write, of some dozens at the latest.
fn let_moka_work(cache: &Blocking) {
    (0..200).for_each(|_| cache.insert_value(&8, 2));
}

/// The weight is that of one call of the weigher, which may say something else the next time.
#[test]
fn a_weigher_that_changes_its_mind_pushes_out_no_other() {
    let calls = Arc::new(AtomicU64::new(0));
    let weigher = {
        let calls = Arc::clone(&calls);
        // The value 3 is light and heavy in turn.
        move |_: &u64, value: &u64| match (*value, calls.fetch_add(1, Ordering::Relaxed) % 2) {
            (3, 1) => 101,
            _ => 2,
        }
    };
    let cache = builder().capacity(100).weigher(weigher).build_blocking(read).unwrap();
    (0..40).for_each(|key| cache.insert_value(&key, 2));
    let_moka_work(&cache);
    let before = calls.load(Ordering::Relaxed);
    (0..2).for_each(|_| cache.insert_value(&7, 3));
    assert_eq!(calls.load(Ordering::Relaxed) - before, 2);
    let_moka_work(&cache);
    assert!(values(&cache).len() >= 39, "{:?}", values(&cache));
}

/// A stale value that is followed by one too heavy is gone: the store has another.
#[tokio::test]
async fn a_value_too_heavy_replaces_a_stale_one() {
    let is_up = Arc::new(AtomicBool::new(true));
    let store = Arc::clone(&is_up);
    let read = move |_: u64| {
        let row = store.load(Ordering::Relaxed).then_some(Some(101));
        std::future::ready(row.ok_or("the store is down"))
    };
    let cache = builder()
        .capacity(100)
        .weigher(|_, value| *value as u32)
        .time_to_live(Duration::ZERO)
        .stale_if_error(HOUR)
        .build(read)
        .unwrap();
    cache.insert_value(&7, 2);
    assert_eq!(cache.get(&7).await.unwrap(), Some(101));
    is_up.store(false, Ordering::Relaxed);
    assert!(cache.get(&7).await.is_err());
    assert_eq!(cache.peek(&7), None);
}
