//! A `GuavaBloom` as the filter of a guard: what the guard does is the same as with any other.

use lanebloom_formats::GuavaBloom;
use lanebloom_guard::{CacheGuard, GuardFilter};

#[test]
fn a_guard_serves_from_it_and_is_rebuilt() {
    let filter = || GuavaBloom::with_capacity(1000, 1e-6).unwrap();
    let guard = CacheGuard::<str, _>::new(filter());
    guard.insert("ann");
    guard.insert_batch(&["ann", "bob", "bob"]);
    assert_eq!(guard.get_with("bob", || Some(1)), Some(1));
    let nothing: Option<u32> = guard.get_with("eve", || unreachable!("turned away"));
    assert_eq!(nothing, None);
    let mut admitted = Vec::new();
    guard.check_batch(&["eve", "ann", "mallory", "bob"], |i, admission| {
        admitted.push(i);
        admission.record(true);
    });
    assert_eq!(admitted, [1, 3]);

    let mut rebuild = guard.rebuild(filter()).unwrap();
    guard.insert("added meanwhile");
    rebuild.extend(["ann"]);
    rebuild.commit().unwrap();
    assert!(guard.check("ann").is_some() && guard.check("added meanwhile").is_some());
    assert!(guard.check("bob").is_none());
    let expected = GuardFilter::statistics(&*guard.filter());
    assert_eq!(expected, guard.filter().statistics());
}
