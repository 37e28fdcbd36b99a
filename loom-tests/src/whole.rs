//! Union and snapshot beside inserts.

use super::*;

#[test]
fn a_union_beside_inserts_loses_nothing() {
    loom::model(|| {
        let (all, part) = (Arc::new(filter(1)), filter(1));
        part.insert_hash(A);
        let (inserting, uniting) = (Arc::clone(&all), Arc::clone(&all));
        let changed = beside(
            move || inserting.insert_hash(B),
            move || {
                let changed = uniting.union_from(&part).unwrap();
                assert!(uniting.contains_hash(A));
                changed
            },
        );
        assert_eq!(changed, (true, true));
        assert!(all.contains_hash(A) && all.contains_hash(B));
    });
}

#[test]
fn a_union_takes_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        // In this order: a fence of loom looks at the atomics by age, and from those that come after one which it acquired it
        // takes too much, also what only the other thread had seen.
        let (part, all, work) = (Arc::new(filter(1)), Arc::new(filter(1)), Arc::new(Work::new()));
        let inserter = thread::spawn(work_and_insert(&part, &work));
        let uniter = {
            share!(all);
            move || {
                all.union_from(&part).unwrap();
            }
        };
        beside(uniter, move || {
            if all.contains_hash(A) {
                assert!(work.is_visible());
            }
        });
        inserter.join().unwrap();
    });
}

/// The uniter finds everything there already: then it must see what the inserter did.
#[test]
fn a_union_in_vain_sees_what_the_inserter_did_before() {
    loom::model(|| {
        let (all, part, work) = (Arc::new(filter(1)), filter(1), Arc::new(Work::new()));
        part.insert_hash(A);
        beside(work_and_insert(&all, &work), move || {
            if all.union_from(&part) == Ok(false) {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn a_snapshot_holds_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        let (live, work) = (Arc::new(filter(1)), Arc::new(Work::new()));
        live.insert_hash(B);
        let inserter = work_and_insert(&live, &work);
        beside(inserter, move || {
            // Made by a thread of its own, and asked only after the work was looked at: to ask is to order memory too.
            let snapshot = thread::spawn(move || live.try_clone().unwrap()).join().unwrap();
            let visible = work.is_visible();
            assert!(snapshot.contains_hash(B));
            assert!(visible || !snapshot.contains_hash(A));
        });
    });
}
