//! Lookups of composite keys by their borrowed parts.

use crate::gets::{builder, read};
use lanebloom_guard::lanebloom::{Funnel, KeyHasher, Murmur3, Sink};
use lanebloom_guard::{Equivalent, Parts, future, sync};
use std::convert::Infallible;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Pair = (u32, String);
type Triple = (String, u8, Vec<u8>);

fn pair(tenant: u32, name: &str) -> Pair {
    (tenant, name.into())
}

#[test]
fn parts_hash_like_the_key_and_write_its_bytes() {
    fn assert_alike<K: Funnel + Hash, P: Funnel + Hash + Equivalent<K>>(key: &K, parts: &P, is_equal: bool) {
        let (filter, cache) = (Murmur3::default(), RandomState::new());
        assert_eq!(filter.hash_key(key) == filter.hash_key(parts), is_equal);
        assert_eq!(cache.hash_one(key) == cache.hash_one(parts), is_equal);
        assert_eq!(parts.equivalent(key), is_equal);
    }
    let key = pair(7, "ann");
    assert_alike(&key, &Parts((&7, "ann")), true);
    assert_alike(&key, &Parts((&7, &String::from("ann"))), true);
    assert_alike(&key, &Parts((&8, "ann")), false);
    assert_alike(&key, &Parts((&7, "anna")), false);
    assert_alike(&(7, Arc::<str>::from("ann")), &Parts((&7, "ann")), true);
    let key: Triple = ("ann".into(), 1, vec![2, 3]);
    assert_alike(&key, &Parts(("ann", &1, &[2, 3][..])), true);
    assert_alike(&key, &Parts(("ann", &1, &[2, 4][..])), false);
    assert_alike(&key, &Parts(("ann", &2, &[2, 3][..])), false);
    assert_alike(&key, &Parts(("anna", &1, &[2, 3][..])), false);
}

/// The filter, the values, the remembered misses and the loads: each knows the key in both forms.
#[test]
fn a_blocking_cache_finds_by_parts_what_it_knows_by_keys_and_back() {
    let read = |key: Pair| Ok::<_, Infallible>((key.0 == 7).then_some(key.1.len()));
    let cache = sync::GuardedCache::<Pair, usize>::builder()
        .build_blocking(read)
        .unwrap();
    cache.insert_batch(&[pair(7, "ann"), pair(7, "john"), pair(9, "removed")]);
    cache.mark_ready();
    let by_parts = |tenant, name| cache.get_equivalent(&Parts((&tenant, name))).unwrap();
    let by_key = |tenant, name| cache.get(&pair(tenant, name)).unwrap();
    assert_eq!((by_parts(7, "ann"), by_key(7, "ann")), (Some(3), Some(3)));
    assert_eq!((by_key(7, "john"), by_parts(7, "john")), (Some(4), Some(4)));
    assert_eq!((by_parts(9, "removed"), by_key(9, "removed")), (None, None));
    assert_eq!((by_parts(8, "made up"), by_key(8, "made up")), (None, None));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.hits, stats.known_misses), (3, 2, 1));
    assert_eq!((stats.guard.turned_away, stats.guard.admitted, stats.gets()), (2, 6, 8));
    // A change by the key reaches its parts.
    cache.insert_value(&pair(7, "ann"), 17);
    assert_eq!(by_parts(7, "ann"), Some(17));
    let guard = cache.guard();
    assert!(guard.check_equivalent(&Parts((&7, "ann"))).is_some());
    assert!(guard.check_equivalent(&Parts((&8, "ann"))).is_none());
}

#[tokio::test]
async fn an_awaited_get_by_parts_joins_the_load_of_the_key() {
    let loads = Arc::new(AtomicUsize::new(0));
    let of_loader = Arc::clone(&loads);
    let read = move |key: Triple| {
        of_loader.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(Some(key.2))
        }
    };
    let cache = future::GuardedCache::<Triple, Vec<u8>>::builder().build(read).unwrap();
    let key: Triple = ("ann".into(), 1, vec![2, 3]);
    let parts = Parts(("ann", &1, &[2, 3][..]));
    let (one, other) = tokio::join!(cache.get(&key), cache.get_equivalent(&parts));
    assert_eq!((one.unwrap(), other.unwrap()), (Some(vec![2, 3]), Some(vec![2, 3])));
    assert_eq!(cache.get_equivalent(&parts).await.unwrap(), Some(vec![2, 3]));
    assert_eq!(loads.load(Ordering::Relaxed), 1);
    assert_eq!((cache.stats().joined, cache.stats().hits), (1, 1));
    fn is_send<T: Future + Send>(_: T) {}
    is_send(cache.get_equivalent(&parts));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_got_by_parts_is_refreshed_ahead() {
    let loads = AtomicUsize::new(0);
    let read = move |_: Pair| {
        let load = loads.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(Some(load)) }
    };
    let builder = future::GuardedCache::<Pair, usize>::builder();
    let cache = builder
        .refresh_after_write(Duration::from_nanos(1))
        .build(read)
        .unwrap();
    let parts = Parts((&7, "ann"));
    assert_eq!(cache.get_equivalent(&parts).await.unwrap(), Some(0));
    while cache.get_equivalent(&parts).await.unwrap() == Some(0) {
        tokio::task::yield_now().await;
    }
    assert_eq!(cache.stats().loads, 1);
    assert!(cache.stats().refreshes >= 1);
}

/// A form that keeps the contract of neither hash.
struct Wrong(bool);

impl Hash for Wrong {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        if self.0 { 17u64 } else { 18 }.hash(state);
    }
}
impl Funnel for Wrong {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        if self.0 { 18u64 } else { 17 }.funnel(into);
    }
}
impl Equivalent<u64> for Wrong {
    fn equivalent(&self, key: &u64) -> bool {
        *key == 17
    }
}
impl From<&Wrong> for u64 {
    fn from(_: &Wrong) -> Self {
        17
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_form_that_hashes_otherwise_panics_with_debug_assertions() {
    for (of_filter, text) in [
        (true, "Wrong writes other bytes than the u64 that it stands for"),
        (false, "Wrong hashes unlike the u64 that it stands for"),
    ] {
        let cache = builder().build_blocking(read).unwrap();
        let get = std::panic::AssertUnwindSafe(|| cache.get_equivalent(&Wrong(of_filter)));
        let panic = std::panic::catch_unwind(get).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.ends_with(text), "{message}");
        // Nothing is left behind.
        assert_eq!(cache.get(&17).unwrap(), Some(17));
    }
}
