//! Union and snapshot beside inserts.

use super::*;
use lanebloom::{Hashed, bloom};

#[test]
fn a_union_beside_inserts_loses_nothing() {
    loom::model(|| {
        let (all, part) = (Arc::new(filter(1)), filter(1));
        part.insert(&Hashed(A));
        let (inserting, uniting) = (Arc::clone(&all), Arc::clone(&all));
        let changed = beside(
            move || inserting.insert(&Hashed(B)),
            move || {
                let changed = uniting.union_from(&part).unwrap();
                assert!(uniting.contains(&Hashed(A)));
                changed
            },
        );
        assert_eq!(changed, (true, true));
        assert!(all.contains(&Hashed(A)) && all.contains(&Hashed(B)));
    });
}

#[test]
fn a_union_takes_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        // In this order: a fence of loom looks at the atomics by age, and from those that come
        // after one which it acquired it takes too much, also what only the other thread had seen.
        let (part, all, work) = (Arc::new(filter(1)), Arc::new(filter(1)), Arc::new(Work::new()));
        let inserter = thread::spawn(work_and_insert(&part, &work));
        let uniter = {
            share!(all);
            move || {
                all.union_from(&part).unwrap();
            }
        };
        beside(uniter, move || {
            if all.contains(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
        inserter.join().unwrap();
    });
}

/// The union finds all bits there already: then its thread must see what the inserter did.
#[test]
fn a_union_in_vain_sees_what_the_inserter_did_before() {
    loom::model(|| {
        let (all, part, work) = (Arc::new(filter(1)), filter(1), Arc::new(Work::new()));
        part.insert(&Hashed(A));
        beside(work_and_insert(&all, &work), move || {
            if all.union_from(&part) == Ok(false) {
                assert!(work.is_visible());
            }
        });
    });
}

/// Each key comes into the other filter first: the smaller set is a subset at every moment.
#[test]
fn a_subset_stays_one_beside_inserts_in_this_order() {
    loom::model(|| {
        let (all, part) = (Arc::new(filter(1)), Arc::new(filter(1)));
        let inserter = {
            share!(all, part);
            move || {
                all.insert(&Hashed(A));
                part.insert(&Hashed(A));
            }
        };
        beside(inserter, move || assert!(part.with(&all).unwrap().is_subset()));
    });
}

/// Whoever takes a set for a subset sees what the inserters of the larger one did before.
#[test]
fn a_subset_sees_what_the_inserter_did_before() {
    loom::model(|| {
        let (all, part, work) = (Arc::new(filter(1)), filter(1), Arc::new(Work::new()));
        part.insert(&Hashed(A));
        beside(work_and_insert(&all, &work), move || {
            if part.with(&all).unwrap().is_subset() {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn an_intersection_takes_what_was_inserted_before_and_sees_it() {
    loom::model(|| {
        let (all, mut both, work) = (Arc::new(filter(1)), filter(1), Arc::new(Work::new()));
        both.insert(&Hashed(A));
        all.insert(&Hashed(B));
        both.insert(&Hashed(B));
        beside(work_and_insert(&all, &work), move || {
            both.exclusive().intersection_from(&all).unwrap();
            let visible = work.is_visible();
            assert!(both.contains(&Hashed(B)));
            assert!(visible || !both.contains(&Hashed(A)));
        });
    });
}

#[test]
fn a_snapshot_holds_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        let (live, work) = (Arc::new(filter(1)), Arc::new(Work::new()));
        live.insert(&Hashed(B));
        let inserter = work_and_insert(&live, &work);
        beside(inserter, move || {
            // Made by a thread of its own, and asked only after the work was read, since a lookup
            // orders memory too.
            let snapshot = thread::spawn(move || live.try_clone().unwrap()).join().unwrap();
            let visible = work.is_visible();
            assert!(snapshot.contains(&Hashed(B)));
            assert!(visible || !snapshot.contains(&Hashed(A)));
        });
    });
}

/// The same of the bytes, and of a delta. A view of bytes orders no memory.
#[test]
fn bytes_hold_what_was_inserted_before_and_publish_it() {
    loom::model(|| {
        let (live, work) = (Arc::new(filter(1)), Arc::new(Work::new()));
        live.insert(&Hashed(B));
        let inserter = work_and_insert(&live, &work);
        beside(inserter, move || {
            let bytes = live.snapshot().to_vec();
            let (view, _) = BloomView::from_bytes(&bytes).unwrap();
            assert!(view.contains(&Hashed(B)));
            assert!(!view.contains(&Hashed(A)) || work.is_visible());
        });
    });
}

#[test]
fn a_delta_holds_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        let (live, sent, work) = (Arc::new(filter(1)), filter(1), Arc::new(Work::new()));
        live.insert(&Hashed(B));
        let inserter = work_and_insert(&live, &work);
        beside(inserter, move || {
            let delta = live.with(&sent).unwrap().delta();
            let visible = work.is_visible();
            let replica = filter(1);
            bloom::apply_deltas(&replica, &delta).unwrap();
            assert!(replica.contains(&Hashed(B)));
            assert!(!replica.contains(&Hashed(A)) || visible);
        });
    });
}

/// A thread that applies a delta publishes its earlier work, whether another thread inserts the
/// same key or not.
#[test]
fn a_delta_is_added_as_an_insert_is() {
    loom::model(|| {
        let (replica, work, sent) = (Arc::new(filter(1)), Arc::new(Work::new()), filter(1));
        let writer = filter(1);
        writer.insert(&Hashed(A));
        let delta = writer.with(&sent).unwrap().delta();
        let applier = {
            share!(replica, work);
            move || {
                work.do_it();
                bloom::apply_deltas(&replica, &delta).unwrap()
            }
        };
        let (changed, ()) = beside(applier, {
            share!(replica);
            move || {
                replica.insert(&Hashed(B));
                if replica.contains(&Hashed(A)) {
                    assert!(work.is_visible());
                }
            }
        });
        assert!(changed && replica.contains(&Hashed(A)) && replica.contains(&Hashed(B)));
    });
}
