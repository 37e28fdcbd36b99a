//! A guard allocates nothing for a request. The allocator itself counts.

#![expect(unsafe_code, reason = "an allocator of its own")]

#[path = "../../../tests/alloc/counting.rs"]
mod counting;

use counting::{ALLOCATIONS, FAILS, allocations};
use lanebloom_guard::{CacheGuard, GuardFilter, Layered, Parts};

#[test]
fn a_guard_never_allocates_for_a_request() {
    let guard = CacheGuard::<str>::with_capacity(1_000_000, 0.01).unwrap();
    let keys: Vec<String> = (0..3000).map(|i| format!("key {i}")).collect();
    // arc-swap makes its note of a thread when the thread first comes.
    assert!(guard.check("key 0").is_none());
    let mut admitted = 0;
    let count = allocations(|| {
        guard.insert_batch(&keys[..2000]);
        guard.check_batch(&keys, |_, admission| {
            admission.record(true);
            admitted += 1;
        });
        guard.insert(&keys[2500]);
        assert!(guard.check(&keys[2500]).is_some());
    });
    assert_eq!(count, 0);
    assert!((2000..2100).contains(&admitted));
}

/// The last allocation is that of the static part, which is built by then.
#[test]
fn a_layered_filter_without_memory_keeps_its_keys() {
    let collected = || {
        let filter = Layered::new(10, 1e-4).unwrap();
        filter.insert("ann");
        filter
    };
    let (whole, filter) = (collected(), collected());
    FAILS.set(ALLOCATIONS.get() + 2 * allocations(|| whole.complete().unwrap()));
    let result = filter.complete();
    FAILS.set(usize::MAX);
    assert!(result.is_err() && filter.may_lack_keys());
    filter.complete().unwrap();
    assert!(!filter.may_lack_keys() && filter.contains("ann") && !filter.contains("eve"));
}

/// A get by the borrowed parts of a key makes no key, if it needs no load.
#[cfg(feature = "cache")]
#[test]
fn a_get_by_parts_never_allocates_what_is_known() {
    use lanebloom_guard::sync::GuardedCache;
    let read = |key: (u32, String)| Ok::<_, std::convert::Infallible>((key.0 == 7).then_some(key.0));
    let cache = GuardedCache::<(u32, String), u32>::builder()
        .build_blocking(read)
        .unwrap();
    cache.insert_batch(&[(7, "ann".into()), (9, "removed".into())]);
    cache.mark_ready();
    let get = |tenant| cache.get_equivalent(&Parts((&tenant, if tenant == 7 { "ann" } else { "removed" })));
    let get_all = || [7, 9, 8].map(|tenant| get(tenant).unwrap());
    assert_eq!(get_all(), [Some(7), None, None]);
    let mut rows = [None; 3];
    let count = allocations(|| rows = get_all());
    assert_eq!((rows, count), ([Some(7), None, None], 0));
    let stats = cache.stats();
    assert_eq!(
        (stats.loads, stats.hits, stats.known_misses, stats.guard.turned_away),
        (2, 1, 1, 2)
    );
}
