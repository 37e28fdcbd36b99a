//! A pair of filters: a removed key stays away, however inserts, removes, lookups and unions of
//! both interleave.

use super::*;
use lanebloom::{Hashed, TombstoneBloom};

fn filter(words_per_key: usize) -> TombstoneBloom {
    let builder = TombstoneBloom::builder().expected_keys(1);
    builder.words_per_key(words_per_key).build().unwrap()
}

fn holding(words_per_key: usize, present: &[u64]) -> Arc<TombstoneBloom> {
    let filter = filter(words_per_key);
    present.iter().for_each(|&key| _ = filter.insert(&Hashed(key)));
    Arc::new(filter)
}

fn remove(filter: &Arc<TombstoneBloom>, key: u64) -> impl FnOnce() -> bool + 'static {
    share!(filter);
    move || filter.remove(&Hashed(key))
}

#[test]
fn of_racing_removers_at_least_one_wins_and_with_one_word_per_key_exactly_one() {
    for words in [1, 2] {
        loom::model(move || {
            let filter = holding(words, &[A]);
            let won = beside(remove(&filter, A), remove(&filter, A));
            assert!(won.0 || won.1);
            assert!(words > 1 || won.0 != won.1);
            assert!(!filter.contains(&Hashed(A)) && !filter.remove(&Hashed(A)));
        });
    }
}

#[test]
fn a_batch_of_removes_races_as_single_ones_do() {
    loom::model(|| {
        let filter = holding(1, &[A, B]);
        let batch = Arc::clone(&filter);
        let won = beside(
            move || batch.remove_batch(Hashed::slice(&[B, A, A])),
            remove(&filter, A),
        );
        assert_eq!(won.0 + usize::from(won.1), 2);
        assert!(!filter.contains(&Hashed(A)) && !filter.contains(&Hashed(B)));
    });
}

#[test]
fn once_removed_a_key_is_absent_whoever_inserts_it_again() {
    loom::model(|| {
        let (filter, removed) = (holding(1, &[A]), Arc::new(AtomicBool::new(false)));
        let inserting = Arc::clone(&filter);
        let inserter = thread::spawn(move || inserting.insert(&Hashed(A)));
        let remover = {
            share!(filter, removed);
            move || {
                assert!(filter.remove(&Hashed(A)));
                removed.store(true, Ordering::Release);
            }
        };
        let asking = Arc::clone(&filter);
        beside(remover, move || {
            if removed.load(Ordering::Acquire) {
                assert!(!asking.contains(&Hashed(A)));
            }
        });
        assert!(!inserter.join().unwrap());
    });
}

#[test]
fn a_key_that_nobody_removes_is_found_beside_removes_of_others() {
    loom::model(|| {
        let filter = holding(1, &[A, B]);
        let asking = Arc::clone(&filter);
        let (removed, ()) = beside(remove(&filter, B), move || {
            assert!(asking.contains(&Hashed(A)) && asking.contains(&Hashed(A)));
        });
        assert!(removed);
    });
}

#[test]
fn a_remove_beside_the_insert_finds_it_or_changes_nothing() {
    loom::model(|| {
        let filter = holding(2, &[]);
        let inserting = Arc::clone(&filter);
        let (_, removed) = beside(move || inserting.insert(&Hashed(A)), remove(&filter, A));
        assert_eq!(filter.contains(&Hashed(A)), !removed);
        assert_eq!(filter.removals().len, usize::from(removed));
    });
}

#[test]
fn who_finds_removes_or_misses_a_key_sees_what_was_done_before() {
    for removes in [false, true] {
        loom::model(move || {
            let (filter, work) = (holding(1, &[]), Arc::new(Work::new()));
            let inserter = {
                share!(filter, work);
                move || {
                    work.do_it();
                    filter.insert(&Hashed(A))
                }
            };
            beside(inserter, move || {
                if if removes {
                    filter.remove(&Hashed(A))
                } else {
                    filter.contains(&Hashed(A))
                } {
                    assert!(work.is_visible());
                }
            });
        });
    }
    loom::model(|| {
        let (filter, work) = (holding(1, &[A]), Arc::new(Work::new()));
        let remover = {
            share!(filter, work);
            move || {
                work.do_it();
                filter.remove(&Hashed(A))
            }
        };
        beside(remover, move || {
            if !filter.contains(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
    });
}

/// A key that was removed in the other filter is not found even for a moment.
#[test]
fn a_union_shows_no_key_that_was_removed_before() {
    loom::model(|| {
        let (all, part) = (holding(1, &[]), holding(1, &[A, B]));
        assert!(part.remove(&Hashed(A)));
        let asking = Arc::clone(&all);
        let uniting = Arc::clone(&all);
        let (changed, ()) = beside(
            move || uniting.union_from(&part).unwrap(),
            move || {
                assert!(!asking.contains(&Hashed(A)));
            },
        );
        assert!(changed && all.contains(&Hashed(B)) && !all.contains(&Hashed(A)));
    });
}

#[test]
fn a_copy_holds_what_came_before_and_not_what_was_removed_before() {
    loom::model(|| {
        let filter = holding(1, &[A, B]);
        filter.remove(&Hashed(A));
        let inserting = Arc::clone(&filter);
        let copying = Arc::clone(&filter);
        let (_, copy) = beside(
            move || inserting.remove(&Hashed(B)),
            move || copying.try_clone().unwrap(),
        );
        assert!(!copy.contains(&Hashed(A)));
        assert!(!filter.contains(&Hashed(B)));
    });
    loom::model(|| {
        let filter = holding(1, &[A, B]);
        filter.remove(&Hashed(A));
        let remover = {
            share!(filter);
            move || filter.remove(&Hashed(B))
        };
        let (_, bytes) = beside(remover, move || filter.snapshot().to_vec());
        assert!(!TombstoneBloom::from_bytes(&bytes).unwrap().0.contains(&Hashed(A)));
    });
}
