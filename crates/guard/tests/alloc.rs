//! A guard allocates nothing for a request. The allocator itself counts.

#![expect(unsafe_code, reason = "an allocator of its own")]

#[path = "../../../tests/alloc/counting.rs"]
mod counting;

use counting::allocations;
use lanebloom_guard::CacheGuard;

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
