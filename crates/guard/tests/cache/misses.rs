//! A miss that was loaded while the filter could lack keys hides no row afterwards: the filter has
//! the row, and nobody tells the cache. `model.rs` has such rows among its steps.

use crate::follow::sent;
use crate::gets::{HOUR, builder, read, until, until_blocking};
use lanebloom_guard::lanebloom::{ConcurrentBloom, CuckooFilter, Funnel, Sink, SipHash13, Statistics};
use lanebloom_guard::{CacheBuilder, Change, Equivalent, GuardFilter, Keys, future, sync};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A set that processes share. While it lags, it admits every key, as a `SharedBloom` does.
#[derive(Clone)]
pub(crate) struct Set(Arc<(ConcurrentBloom<SipHash13>, AtomicBool)>);

impl Set {
    pub(crate) fn new() -> Self {
        let filter = ConcurrentBloom::builder().expected_keys(1000).false_positive_rate(1e-6);
        let filter = filter.hasher(SipHash13::random()).build().unwrap();
        Self(Arc::new((filter, AtomicBool::new(false))))
    }

    pub(crate) fn lags(&self, lags: bool) {
        self.0.1.store(lags, Ordering::Release);
    }
}

impl GuardFilter for Set {
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.may_lack_keys() || self.0.0.contains(key)
    }
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        GuardFilter::insert(&self.0.0, key)
    }
    fn statistics(&self) -> Statistics {
        self.0.0.statistics()
    }
    fn false_positive_rate(&self) -> f64 {
        self.0.0.false_positive_rate()
    }
    fn memory_bytes(&self) -> usize {
        self.0.0.memory_bytes()
    }
    fn lag(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
    fn may_lack_keys(&self) -> bool {
        self.0.1.load(Ordering::Acquire)
    }
    fn holds<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.0.0.contains(key)
    }
}

/// The rows of the store.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<BTreeMap<u64, u64>>>);

impl Rows {
    fn read(&self) -> impl Fn(u64) -> Result<Option<u64>, Infallible> + use<> {
        let rows = self.clone();
        move |id| Ok(rows.0.lock().unwrap().get(&id).copied())
    }

    /// Another process adds a row: it comes into the store and the set, and nobody tells.
    fn add(&self, id: u64, set: &Set) {
        self.0.lock().unwrap().insert(id, id);
        GuardFilter::insert(set, &id);
    }
}

/// Another form of a key.
#[derive(Hash)]
pub(crate) struct Id(pub(crate) u64);

impl Funnel for Id {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

impl Equivalent<u64> for Id {
    fn equivalent(&self, key: &u64) -> bool {
        self.0 == *key
    }
}

impl From<&Id> for u64 {
    fn from(id: &Id) -> Self {
        id.0
    }
}

fn shared(builder: CacheBuilder<u64, u64>, rows: &Rows, set: &Set) -> sync::GuardedCache<u64, u64, Set> {
    let of_cache = set.clone();
    let filter = move |_| Ok::<_, Infallible>(of_cache.clone());
    let cache = builder.filter(filter).build_blocking(rows.read()).unwrap();
    cache.mark_ready();
    cache
}

/// One key after another, as a stranger would. They are not remembered, which would be of no use.
#[test]
fn a_miss_of_a_closed_shared_filter_is_remembered() {
    let (rows, set) = (Rows::default(), Set::new());
    let cache = shared(builder(), &rows, &set);
    GuardFilter::insert(&set, &17u64); // a false positive
    assert_eq!([cache.get(&17).unwrap(), cache.get(&17).unwrap()], [None; 2]);
    assert_eq!((cache.stats().loads, cache.stats().known_misses), (1, 1));
    // Another lag: the row may have come.
    set.lags(true);
    rows.add(17, &set);
    assert_eq!(cache.get(&17).unwrap(), Some(17));
}

#[test]
fn a_refresh_of_a_row_that_was_removed_while_the_filter_lagged_hides_no_later_row() {
    let (rows, set) = (Rows::default(), Set::new());
    let cache = shared(builder().refresh_after_write(Duration::ZERO), &rows, &set);
    rows.add(17, &set);
    assert_eq!(cache.get(&17).unwrap(), Some(17));
    set.lags(true);
    rows.0.lock().unwrap().clear();
    assert_eq!(cache.get(&17).unwrap(), Some(17));
    until_blocking(|| cache.peek(&17).is_none());
    set.lags(false);
    rows.add(17, &set);
    assert_eq!(cache.get(&17).unwrap(), Some(17));
}

/// A feed tells of the rows that come into a shared filter, so misses are remembered while it
/// lags: made-up keys that come again do not read the store. Such a miss hides no row that the set
/// brings before the feed tells it.
#[tokio::test]
async fn a_feed_makes_up_for_a_shared_filter_that_lags() {
    let (rows, set) = (Rows::default(), Set::new());
    let (of_cache, loader) = (set.clone(), rows.read());
    let filter = move |_| Ok::<_, Infallible>(of_cache.clone());
    let cache: future::GuardedCache<u64, u64, Set> =
        builder().filter(filter).build(move |id| ready(loader(id))).unwrap();
    let (feed, tell) = sent(&Default::default());
    let none = async |_: &mut Keys<'_, u64>| Ok(());
    let following = tokio::spawn(cache.follow(feed, HOUR, none));
    until(|| cache.is_ready()).await;
    set.lags(true);
    for _ in 0..2 {
        assert_eq!(cache.get(&17).await.unwrap(), None);
    }
    assert_eq!((cache.stats().loads, cache.stats().known_misses), (1, 1));
    rows.add(17, &set);
    tell.send(Ok(Change::Written(17))).unwrap();
    until(|| cache.stats().inserted == 1).await;
    assert_eq!(cache.get(&17).await.unwrap(), Some(17));

    assert_eq!(cache.get(&18).await.unwrap(), None);
    rows.add(18, &set);
    set.lags(false);
    assert_eq!(cache.get(&18).await.unwrap(), Some(18));

    // The set brings a row while it still lags, and one before it lags again.
    set.lags(true);
    assert_eq!(cache.get_many(&[20, 21]).await.unwrap(), [None; 2]);
    rows.add(20, &set);
    assert_eq!(cache.get(&20).await.unwrap(), Some(20));
    set.lags(false);
    rows.add(21, &set);
    set.lags(true);
    assert_eq!(cache.get(&21).await.unwrap(), Some(21));

    assert_eq!(cache.get(&19).await.unwrap(), None);
    following.abort();
    assert!(following.await.is_err());
    // Nobody tells any more.
    assert!(!cache.is_ready());
    rows.add(19, &set);
    set.lags(false);
    cache.mark_ready();
    assert_eq!(cache.get(&19).await.unwrap(), Some(19));
}

/// A made-up key that a full filter lets through is remembered: this process knows all rows.
#[test]
fn a_miss_of_a_filter_that_refused_a_key_is_remembered() {
    let filter = |_| CuckooFilter::with_capacity(10, 0.01);
    let cache = builder().filter(filter).build_blocking(read).unwrap();
    cache.mark_ready();
    (0..1000).for_each(|key| cache.insert(&key));
    assert!(cache.guard().is_open());
    let none = || Ok::<_, Infallible>(None);
    assert_eq!([(); 2].map(|()| cache.get_with(&5000, none).unwrap()), [None; 2]);
    assert_eq!(cache.stats().known_misses, 1);
}
