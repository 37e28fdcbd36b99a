//! The guard's batch calls are its single calls, many keys at a time.
#![cfg(feature = "guard")]

use lanebloom::{CacheGuard, ConcurrentBloom, GuardFilter, GuavaBloom};

/// Has every third number below 3000, and so high a rate that others are often admitted as well.
fn guard() -> CacheGuard {
    let filter = ConcurrentBloom::builder()
        .expected_keys(1000)
        .false_positive_rate(0.2)
        .build()
        .unwrap();
    (&filter).extend((0..3000u32).step_by(3));
    CacheGuard::new(filter)
}

/// About the 64 keys of a word of the bitmap, and about the stretches of 1024.
const LENGTHS: [u32; 13] = [0, 1, 2, 63, 64, 65, 128, 1023, 1024, 1025, 2047, 2048, 3000];

#[test]
fn a_batch_is_admitted_as_its_keys_are_one_by_one() {
    let guard = guard();
    for len in LENGTHS {
        let keys: Vec<u32> = (0..len).collect();
        let start = guard.stats();
        let one_by_one: Vec<usize> = (0..keys.len()).filter(|&i| guard.check(&keys[i]).is_some()).collect();
        let singly = guard.stats().since(&start);

        let start = guard.stats();
        let mut batch = Vec::new();
        guard.check_batch(&keys, |i, admission| {
            batch.push(i);
            admission.record(i % 3 == 0);
        });
        let at_once = guard.stats().since(&start);

        assert_eq!(batch, one_by_one, "{len} keys");
        assert_eq!(at_once.admitted, singly.admitted);
        assert_eq!(at_once.turned_away, singly.turned_away);
        assert_eq!(at_once.admitted + at_once.turned_away, u64::from(len));
        assert_eq!(at_once.found, u64::from(len.div_ceil(3)));
        assert_eq!(at_once.found + at_once.false_positives, at_once.admitted);
    }
    assert!(guard.stats().turned_away > 0 && guard.stats().false_positives > 0);
}

/// Who reads the counts from within sees the keys that it has heard of.
#[test]
fn a_key_is_counted_before_its_admission_is_given_out() {
    let guard = guard();
    let mut heard = 0;
    guard.check_batch(&(0..3000u32).collect::<Vec<_>>(), |_, _| {
        heard += 1;
        assert!(guard.stats().admitted >= heard);
    });
    assert_eq!(guard.stats().admitted, heard);
}

#[test]
fn a_batch_is_inserted_as_its_keys_are_one_by_one() {
    for len in LENGTHS {
        let (one_by_one, batch) = (guard(), guard());
        let next = || guard().filter().try_clone().unwrap();
        let rebuilds = (one_by_one.rebuild(next()).unwrap(), batch.rebuild(next()).unwrap());
        let keys: Vec<u32> = (10_000..10_000 + len).collect();
        let changed = keys.iter().filter(|key| one_by_one.insert(*key)).count();
        assert_eq!(batch.insert_batch(&keys), changed, "{len} keys");
        assert!(one_by_one.filter() == batch.filter());
        assert!(rebuilds.0.filter() == rebuilds.1.filter());
        assert!(rebuilds.0.filter() == &*one_by_one.filter());
    }
}

/// One after the other, by one function: what a guard does is the same whichever filter it has.
#[test]
fn any_filter_is_guarded_alike() {
    fn serves_and_is_rebuilt<F: GuardFilter>(filter: impl Fn() -> F) {
        let guard = CacheGuard::new(filter());
        assert!(guard.insert("ann") && !guard.insert("ann"));
        assert_eq!(guard.insert_batch(&["ann", "bob", "bob"]), 1);
        assert_eq!(guard.get_with("bob", || Some(1)), Some(1));
        assert_eq!(
            guard.get_with("eve", || -> Option<u32> { unreachable!("turned away") }),
            None
        );
        let mut admitted = Vec::new();
        guard.check_batch(&["eve", "ann", "mallory", "bob"], |i, admission| {
            admitted.push(i);
            admission.record(true);
        });
        assert_eq!(admitted, [1, 3]);

        let mut rebuild = guard.rebuild(filter()).unwrap();
        assert!(guard.rebuild(filter()).is_err());
        assert!(guard.insert("added meanwhile"));
        rebuild.extend(["ann"]);
        rebuild.commit();
        assert!(guard.check("ann").is_some() && guard.check("added meanwhile").is_some());
        assert!(guard.check("bob").is_none());
        let stats = guard.stats();
        assert_eq!((stats.admitted, stats.turned_away, stats.found), (5, 4, 3));
    }
    serves_and_is_rebuilt(|| ConcurrentBloom::builder().expected_keys(1000).build().unwrap());
    serves_and_is_rebuilt(|| GuavaBloom::create(1000, 1e-6).unwrap());
    #[cfg(feature = "window")]
    serves_and_is_rebuilt(|| lanebloom::WindowedBloom::builder().expected_keys(1000).build().unwrap());
}
