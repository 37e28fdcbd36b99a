//! Inserts and lookups of single keys.

use super::*;
use lanebloom::Hashed;

/// Two threads insert a key each; what their inserts answered.
fn race(filter: &Arc<ConcurrentBloom>, keys: [u64; 2]) -> (bool, bool) {
    let (one, other) = (Arc::clone(filter), Arc::clone(filter));
    beside(
        move || one.insert(&Hashed(keys[0])),
        move || other.insert(&Hashed(keys[1])),
    )
}

#[test]
fn no_bit_is_lost() {
    for filter in LAYOUTS {
        loom::model(move || {
            let raced = Arc::new(filter());
            assert_eq!(race(&raced, [A, B]), (true, true));
            let alone = filter();
            alone.insert_batch(Hashed::slice(&[A, B]));
            assert!(*raced == alone);
        });
    }
}

#[test]
fn of_racing_inserters_at_least_one_wins() {
    for filter in LAYOUTS {
        loom::model(move || {
            let won = race(&Arc::new(filter()), [A, A]);
            assert!(won.0 || won.1);
        });
    }
}

#[test]
fn of_racing_inserters_exactly_one_wins_with_one_word_per_key() {
    loom::model(|| {
        let won = race(&Arc::new(filter(1)), [A, A]);
        assert!(won.0 != won.1);
    });
}

#[test]
fn of_three_racing_inserters_exactly_one_wins_with_one_word_per_key() {
    loom::model(|| {
        let filter = Arc::new(filter(1));
        let third = Arc::clone(&filter);
        let third = thread::spawn(move || third.insert(&Hashed(A)));
        let won = race(&filter, [A, A]);
        assert_eq!(
            [won.0, won.1, third.join().unwrap()]
                .into_iter()
                .filter(|&won| won)
                .count(),
            1
        );
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    for filter in LAYOUTS {
        let insert = |filter: &ConcurrentBloom| assert!(filter.insert(&Hashed(A)));
        publishes(filter, insert, |filter| filter.contains(&Hashed(A)));
    }
}

#[test]
fn who_inserts_in_vain_sees_what_the_inserter_did_before() {
    for filter in LAYOUTS {
        let insert = |filter: &ConcurrentBloom| _ = filter.insert(&Hashed(A));
        publishes(filter, insert, |filter| !filter.insert(&Hashed(A)));
    }
}

/// A later change of the word by another thread does not cut the first inserter off.
#[test]
fn publication_survives_another_key_in_the_same_word() {
    loom::model(|| {
        let (filter, work) = (Arc::new(filter(1)), Arc::new(Work::new()));
        let other = Arc::clone(&filter);
        let other = thread::spawn(move || other.insert(&Hashed(B)));
        beside(work_and_insert(&filter, &work), move || {
            if filter.contains(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
        other.join().unwrap();
    });
}

/// Also where the insert that happened before found the bits there and wrote nothing.
#[test]
fn no_false_negative_after_an_insert_that_happened_before() {
    for filter in LAYOUTS {
        loom::model(move || {
            let (filter, inserted) = (Arc::new(filter()), Arc::new(AtomicBool::new(false)));
            let first = Arc::clone(&filter);
            let first = thread::spawn(move || first.insert(&Hashed(A)));
            let second = {
                share!(filter, inserted);
                move || {
                    filter.insert(&Hashed(A));
                    inserted.store(true, Ordering::Release);
                }
            };
            beside(second, move || {
                if inserted.load(Ordering::Acquire) {
                    assert!(filter.contains(&Hashed(A)));
                    assert!(!filter.insert(&Hashed(A)));
                }
            });
            first.join().unwrap();
        });
    }
}
