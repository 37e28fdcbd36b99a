//! The exact bitmap: claims, publication, operations of whole sets.

use super::*;
use lanebloom::bitmap::ConcurrentBitmap;

/// One line. 3 and 5 are in one word, 3 and 70 are not.
fn set() -> Arc<ConcurrentBitmap> {
    Arc::new(ConcurrentBitmap::new(512).unwrap())
}

#[test]
fn of_racing_inserters_exactly_one_wins_and_nothing_is_lost() {
    for other in [3, 5] {
        loom::model(move || {
            let set = set();
            let (one, two) = (Arc::clone(&set), Arc::clone(&set));
            let won = beside(move || one.insert(3).unwrap(), move || two.insert(other).unwrap());
            assert_eq!(u64::from(won.0) + u64::from(won.1), set.len());
            assert!(set.contains(3) && set.contains(other));
        });
    }
}

#[test]
fn of_racing_removers_exactly_one_wins() {
    loom::model(|| {
        let set = set();
        set.insert_range(3..6).unwrap();
        let (one, two) = (Arc::clone(&set), Arc::clone(&set));
        let won = beside(move || one.remove(3), move || two.remove(3));
        assert!(won.0 != won.1 && set.iter().eq([4, 5]));
    });
}

#[test]
fn two_threads_never_claim_the_same_free_position() {
    loom::model(|| {
        let set = set();
        let (one, two) = (Arc::clone(&set), Arc::clone(&set));
        let (a, b) = beside(move || one.claim_free(3..5), move || two.claim_free(3..5));
        let mut claimed = [a.unwrap(), b.unwrap()];
        claimed.sort_unstable();
        assert_eq!(claimed, [3, 4]);
        assert_eq!(set.claim_free(3..5), None);
    });
}

/// The thread that finds the position, or inserts it in vain, or removes it, or is told that no
/// other is free, sees the work.
#[test]
fn whoever_meets_a_position_sees_what_its_inserter_did_before() {
    let meets: [fn(&ConcurrentBitmap) -> bool; 6] = [
        |set| set.contains(3),
        |set| !set.insert(3).unwrap(),
        |set| set.remove(3),
        |set| set.first_present(0) == Some(3),
        |set| set.first_free(3) == Some(4),
        |set| set.claim_free(3..4).is_none(),
    ];
    for meet in meets {
        loom::model(move || {
            let (set, work) = (set(), Arc::new(Work::new()));
            let inserter = {
                share!(set, work);
                move || {
                    work.do_it();
                    set.insert(3).unwrap();
                }
            };
            beside(inserter, move || {
                if meet(&set) {
                    assert!(work.is_visible());
                }
            });
        });
    }
}

/// A claim after a release is a lock after its unlock, also where another position of the word came
/// between.
#[test]
fn a_claim_sees_what_was_done_before_the_release() {
    let claims: [fn(&ConcurrentBitmap) -> bool; 2] =
        [|set| set.insert(3).unwrap(), |set| set.claim_free(3..4).is_some()];
    for claim in claims {
        loom::model(move || {
            let (set, work) = (set(), Arc::new(Work::new()));
            set.insert(3).unwrap();
            let holder = {
                share!(set, work);
                move || {
                    work.do_it();
                    assert!(set.remove(3));
                }
            };
            let between = Arc::clone(&set);
            let between = thread::spawn(move || between.insert(5).unwrap());
            beside(holder, move || {
                if claim(&set) {
                    assert!(work.is_visible());
                }
            });
            between.join().unwrap();
        });
    }
}

#[test]
fn whole_sets_beside_an_insert_lose_nothing_of_it() {
    let changes: [fn(&ConcurrentBitmap, &ConcurrentBitmap) -> bool; 3] = [
        |set, other| set.union_from(other).unwrap(),
        |set, other| set.difference_from(other).unwrap(),
        |set, _| set.remove_range(4..6) > 0,
    ];
    for change in changes {
        loom::model(move || {
            let (set, other) = (set(), ConcurrentBitmap::new(512).unwrap());
            set.insert(4).unwrap();
            other.insert(4).unwrap();
            other.insert(5).unwrap();
            let (one, two) = (Arc::clone(&set), Arc::clone(&set));
            let (won, changed) = beside(move || one.insert(3).unwrap(), move || change(&two, &other));
            assert!(won && changed && set.contains(3));
        });
    }
}

#[test]
fn a_union_passes_publication_on() {
    loom::model(|| {
        let (part, all, work) = (set(), set(), Arc::new(Work::new()));
        let inserter = {
            share!(part, work);
            thread::spawn(move || {
                work.do_it();
                part.insert(3).unwrap();
            })
        };
        let uniter = {
            share!(all);
            move || {
                all.union_from(&part).unwrap();
            }
        };
        beside(uniter, move || {
            if all.contains(3) {
                assert!(work.is_visible());
            }
        });
        inserter.join().unwrap();
    });
}

#[test]
fn a_copy_holds_what_was_inserted_before() {
    loom::model(|| {
        let (set, inserted) = (set(), Arc::new(AtomicBool::new(false)));
        let inserter = {
            share!(set, inserted);
            move || {
                set.insert(3).unwrap();
                inserted.store(true, Ordering::Release);
            }
        };
        beside(inserter, move || {
            let before = inserted.load(Ordering::Acquire);
            let (copy, bytes) = (set.try_clone().unwrap(), set.snapshot().to_vec());
            if before {
                assert!(copy.contains(3));
                assert!(ConcurrentBitmap::from_bytes(&bytes).unwrap().0.contains(3));
            }
        });
    });
}
