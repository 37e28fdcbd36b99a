//! The d-left filter: one bucket in each subtable, the smallest, so that all keys meet in it.

use super::*;
use lanebloom::{DLeftFilter, Hashed};

fn filter() -> Arc<DLeftFilter> {
    Arc::new(DLeftFilter::builder().memory_budget(72).build().unwrap())
}

/// The remainder is the 14 lowest bits.
const ONE: u64 = 17;
const OTHER: u64 = 4711;

fn inserter(filter: &Arc<DLeftFilter>, hash: u64) -> impl FnOnce() + 'static {
    share!(filter);
    move || filter.insert(&Hashed(hash)).unwrap()
}

fn remover(filter: &Arc<DLeftFilter>, hash: u64) -> impl FnOnce() -> bool + 'static {
    share!(filter);
    move || filter.remove(&Hashed(hash))
}

fn cells_in_use(filter: &DLeftFilter) -> usize {
    (filter.statistics().fill_ratio * filter.slots() as f64).round() as usize
}

#[test]
fn two_inserts_of_a_key_share_a_cell() {
    loom::model(|| {
        let filter = filter();
        beside(inserter(&filter, ONE), inserter(&filter, ONE));
        assert_eq!((filter.count(&Hashed(ONE)), cells_in_use(&filter)), (2, 1));
        assert!(filter.remove(&Hashed(ONE)) && filter.remove(&Hashed(ONE)) && !filter.remove(&Hashed(ONE)));
    });
}

/// Each finds another bucket the emptiest, since a key goes from one of them between their looks.
#[test]
fn two_inserts_of_a_key_that_prefer_different_buckets_share_a_cell() {
    loom::model(|| {
        let filter = filter();
        // Four in each bucket, which fill its first word, one bucket after another.
        (100..116).for_each(|i| filter.insert(&Hashed(i)).unwrap());
        let other = {
            share!(filter);
            move || {
                assert!(filter.remove(&Hashed(101)));
                filter.insert(&Hashed(ONE)).unwrap();
            }
        };
        beside(inserter(&filter, ONE), other);
        assert_eq!((filter.count(&Hashed(ONE)), cells_in_use(&filter)), (2, 16));
    });
}

#[test]
fn two_inserts_that_want_the_same_cell_both_get_one() {
    loom::model(|| {
        let filter = filter();
        beside(inserter(&filter, ONE), inserter(&filter, OTHER));
        assert_eq!(
            (
                filter.count(&Hashed(ONE)),
                filter.count(&Hashed(OTHER)),
                cells_in_use(&filter)
            ),
            (1, 1, 2)
        );
    });
}

#[test]
fn of_racing_removers_exactly_one_wins() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        filter.insert(&Hashed(OTHER)).unwrap();
        let removed = beside(remover(&filter, ONE), remover(&filter, ONE));
        assert!(removed.0 != removed.1);
        assert_eq!((filter.count(&Hashed(ONE)), filter.count(&Hashed(OTHER))), (0, 1));
    });
}

#[test]
fn removers_of_two_copies_both_win() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        filter.insert(&Hashed(ONE)).unwrap();
        assert_eq!(beside(remover(&filter, ONE), remover(&filter, ONE)), (true, true));
        assert!(filter.is_empty());
    });
}

/// Two keys in one word, one of which goes, or comes again, while the other does.
#[test]
fn changes_of_a_word_by_two_keys_lose_neither() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        // In the first subtable again, once the others are as full.
        (1..4).for_each(|i| filter.insert(&Hashed(ONE + i)).unwrap());
        let (removed, _) = beside(remover(&filter, ONE), inserter(&filter, OTHER));
        assert!(removed);
        assert_eq!((filter.count(&Hashed(ONE)), filter.count(&Hashed(OTHER))), (0, 1));
        assert_eq!(cells_in_use(&filter), 4);
    });
}

#[test]
fn an_insert_beside_a_removal_of_the_key_leaves_it_once() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        let (_, removed) = beside(inserter(&filter, ONE), remover(&filter, ONE));
        assert!(removed);
        assert_eq!((filter.count(&Hashed(ONE)), cells_in_use(&filter)), (1, 1));
    });
}

/// The counts never pass three, whoever is first.
#[test]
fn of_inserts_that_race_for_the_last_count_exactly_one_gets_it() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        filter.insert(&Hashed(ONE)).unwrap();
        let insert = |filter: &Arc<DLeftFilter>| {
            share!(filter);
            move || filter.insert(&Hashed(ONE)).is_ok()
        };
        let inserted = beside(insert(&filter), insert(&filter));
        assert!(inserted.0 != inserted.1);
        assert_eq!(filter.count(&Hashed(ONE)), 3);
    });
}

/// A second copy comes and goes while the first is there: by a thread that may have begun before
/// the first was.
#[test]
fn a_key_is_never_unseen_while_a_copy_of_it_comes_and_goes() {
    loom::model(|| {
        let (filter, inserted) = (filter(), Arc::new(AtomicBool::new(false)));
        // So that the emptiest bucket changes, and a second slot would be made elsewhere.
        filter.insert(&Hashed(OTHER)).unwrap();
        let first = {
            share!(filter, inserted);
            move || {
                filter.insert(&Hashed(ONE)).unwrap();
                inserted.store(true, Ordering::Release);
            }
        };
        let other = Arc::clone(&filter);
        let second = move || {
            other.insert(&Hashed(ONE)).unwrap();
            assert!(other.remove(&Hashed(ONE)));
        };
        let second = thread::spawn(second);
        beside(first, {
            share!(filter);
            move || {
                if inserted.load(Ordering::Acquire) {
                    assert!(filter.contains(&Hashed(ONE)));
                }
            }
        });
        second.join().unwrap();
        assert_eq!((filter.count(&Hashed(ONE)), cells_in_use(&filter)), (1, 2));
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    for batch in [false, true] {
        loom::model(move || {
            let (filter, work) = (filter(), Arc::new(Work::new()));
            // Another key changes the word after.
            let third = thread::spawn(inserter(&filter, OTHER));
            let inserter = {
                share!(filter, work);
                move || {
                    work.do_it();
                    filter.insert(&Hashed(ONE)).unwrap();
                }
            };
            beside(inserter, move || {
                let mut found = [false];
                if batch {
                    filter.contains_batch(Hashed::slice(&[ONE]), &mut found);
                } else {
                    found[0] = filter.contains(&Hashed(ONE));
                }
                if found[0] {
                    assert!(work.is_visible());
                }
            });
            third.join().unwrap();
        });
    }
}

#[test]
fn a_copy_holds_what_was_inserted_before() {
    loom::model(|| {
        let filter = filter();
        filter.insert(&Hashed(ONE)).unwrap();
        let copier = {
            share!(filter);
            move || filter.try_clone().unwrap()
        };
        let (_, copy) = beside(inserter(&filter, OTHER), copier);
        assert_eq!(copy.count(&Hashed(ONE)), 1);
        assert!(copy.count(&Hashed(OTHER)) <= 1 && copy.len() == 1 + copy.count(&Hashed(OTHER)));
    });
}

/// The key is in the first bucket, and were it put in again, in the second one.
fn about_to_go_elsewhere() -> Arc<DLeftFilter> {
    let filter = filter();
    // Three in each bucket, of which the first keeps all and the others one.
    (ONE..ONE + 12).for_each(|key| filter.insert(&Hashed(key)).unwrap());
    let others = (ONE + 5..ONE + 12).filter(|key| !(key - ONE).is_multiple_of(4));
    others.for_each(|key| assert!(filter.remove(&Hashed(key))));
    filter
}

/// It goes and comes while the slots are read: it may be missed, but never seen twice, or a remove
/// would leave it in the copy.
#[test]
fn a_key_that_goes_and_comes_again_is_not_in_a_copy_twice() {
    // A clone, and bytes by memory that is there and by a copy of its own.
    for way in 0..3 {
        loom::model(move || {
            let filter = about_to_go_elsewhere();
            let copier = {
                share!(filter);
                move || match way {
                    0 => filter.try_clone().unwrap().snapshot().to_vec(),
                    1 => filter.snapshot().to_vec(),
                    _ => {
                        let mut stream = Vec::new();
                        filter.snapshot().write_to(&mut stream).unwrap();
                        stream
                    }
                }
            };
            let goer = {
                share!(filter);
                move || {
                    assert!(filter.remove(&Hashed(ONE)));
                    filter.insert(&Hashed(ONE)).unwrap();
                }
            };
            let (_, bytes) = beside(goer, copier);
            // `from_bytes` accepts no key with two slots.
            let (copy, _) = DLeftFilter::from_bytes(&bytes).unwrap();
            assert!(copy.count(&Hashed(ONE)) <= 1 && cells_in_use(&copy) == 5 + copy.count(&Hashed(ONE)));
            assert_eq!((filter.count(&Hashed(ONE)), cells_in_use(&filter)), (1, 6));
        });
    }
}
