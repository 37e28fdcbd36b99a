//! A `GuavaBloom` as the filter of a guard: what the guard does is the same as with any other.

use lanebloom::CacheGuard;
use lanebloom_formats::GuavaBloom;

#[test]
fn a_guard_serves_from_it_and_is_rebuilt() {
    let filter = || GuavaBloom::with_capacity(1000, 1e-6).unwrap();
    let guard = CacheGuard::<str, _>::new(filter());
    assert!(guard.insert("ann") && !guard.insert("ann"));
    assert_eq!(guard.insert_batch(&["ann", "bob", "bob"]), 1);
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
    assert!(guard.insert("added meanwhile"));
    rebuild.extend(["ann"]);
    rebuild.commit();
    assert!(guard.check("ann").is_some() && guard.check("added meanwhile").is_some());
    assert!(guard.check("bob").is_none());
    let figures = lanebloom::GuardFilter::figures(&*guard.filter());
    assert_eq!(figures, guard.filter().figures());
}
