//! Union and snapshot beside inserts.

use super::*;

/// Inserts A after some work.
fn work_and_insert(filter: &Arc<ConcurrentBloom>, work: &Arc<Work>) -> impl FnOnce() + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert_hash(A);
    }
}

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
        let (all, part, work) = (Arc::new(filter(1)), Arc::new(filter(1)), Arc::new(Work::new()));
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
        beside(work_and_insert(&live, &work), move || {
            let snapshot = live.try_clone().unwrap();
            assert!(snapshot.contains_hash(B));
            // The snapshot is this thread's own: only what its making ordered makes the work visible.
            if snapshot.fill_ratio() > 5.0 / 512.0 {
                assert!(work.is_visible());
            }
        });
    });
}
