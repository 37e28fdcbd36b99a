//! A filter that forgets: rotations beside inserts and lookups. Two generations of one line each,
//! unless it takes more to fail.

use super::*;
use lanebloom::{Hashed, WindowedBloom};
use std::time::Duration;

fn window(generations: usize) -> lanebloom::windowed::Builder {
    WindowedBloom::builder()
        .expected_keys(1)
        .generations(generations)
        .words_per_key(1)
}

fn windowed(generations: usize) -> Arc<WindowedBloom> {
    Arc::new(window(generations).build().unwrap())
}

/// Generations of one second; the clock is told the time before there are threads. (A second of
/// window with two generations, so the number of a generation is the time.)
fn aged() -> (Arc<WindowedBloom>, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    let time = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock = std::sync::Arc::clone(&time);
    let clock = move || Duration::from_secs(clock.load(std::sync::atomic::Ordering::Relaxed));
    let filter = window(2).window(Duration::from_secs(1)).clock(clock).build().unwrap();
    (Arc::new(filter), time)
}

/// A rotation that another one gets ahead of comes after it.
#[test]
fn of_two_rotations_at_once_both_count() {
    loom::model(|| {
        let filter = windowed(2);
        filter.insert(&Hashed(A));
        let rotating = Arc::clone(&filter);
        let other = thread::spawn(move || rotating.rotate());
        filter.rotate();
        other.join().unwrap();
        assert!(!filter.contains(&Hashed(A)));
    });
}

/// If a thread rotates and then misses a key that cannot have been forgotten yet, the key's insert
/// comes after these rotations: the key has its whole window before it.
fn outlives_rotations(rotations: usize, insert: fn(&WindowedBloom)) {
    loom::model(move || {
        let filter = windowed(rotations + 1);
        let (inserting, rotating) = (Arc::clone(&filter), Arc::clone(&filter));
        let (_, comes_after) = beside(
            move || insert(&inserting),
            move || {
                (0..rotations).for_each(|_| rotating.rotate());
                !rotating.contains(&Hashed(A))
            },
        );
        assert!(filter.contains(&Hashed(A)));
        if comes_after {
            (0..rotations).for_each(|_| filter.rotate());
            assert!(filter.contains(&Hashed(A)));
            filter.rotate();
            assert!(!filter.contains(&Hashed(A)));
        }
    });
}

#[test]
fn an_insert_that_races_with_a_rotation_lives_its_window() {
    outlives_rotations(1, |filter| {
        filter.insert(&Hashed(A));
    });
}

#[test]
fn an_insert_that_is_held_up_for_two_rotations_lives_its_window() {
    outlives_rotations(2, |filter| {
        filter.insert(&Hashed(A));
    });
}

#[test]
fn a_batch_that_races_with_a_rotation_lives_its_window() {
    outlives_rotations(1, |filter| {
        filter.insert_batch(Hashed::slice(&[B, A]));
    });
}

#[test]
fn an_insert_that_does_not_renew_lives_its_window() {
    loom::model(|| {
        let filter = Arc::new(window(2).renew(false).build().unwrap());
        let (inserting, rotating) = (Arc::clone(&filter), Arc::clone(&filter));
        let (_, comes_after) = beside(
            move || inserting.insert_batch(Hashed::slice(&[A])),
            move || {
                rotating.rotate();
                !rotating.contains(&Hashed(A))
            },
        );
        if comes_after {
            filter.rotate();
        }
        assert!(filter.contains(&Hashed(A)));
    });
}

/// The first insert is held up, the second finds the bits that it set. Whoever returned, the key
/// lives its window.
#[test]
fn a_key_that_is_there_already_is_renewed_beside_a_rotation() {
    loom::model(|| {
        let filter = windowed(2);
        let first = {
            share!(filter);
            thread::spawn(move || filter.insert(&Hashed(A)))
        };
        let second = {
            share!(filter);
            thread::spawn(move || filter.insert(&Hashed(A)))
        };
        filter.rotate();
        let comes_after = !filter.contains(&Hashed(A));
        second.join().unwrap();
        if comes_after {
            filter.rotate();
        }
        assert!(filter.contains(&Hashed(A)));
        first.join().unwrap();
    });
}

#[test]
fn a_key_of_the_window_is_found_throughout_a_rotation() {
    loom::model(|| {
        let filter = windowed(2);
        filter.insert(&Hashed(A));
        let (reading, rotating) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(
            move || {
                assert!(reading.contains(&Hashed(A)));
                let mut found = [false];
                reading.contains_batch(Hashed::slice(&[A]), &mut found);
                assert!(found[0]);
            },
            move || rotating.rotate(),
        );
        filter.rotate();
        assert!(!filter.contains(&Hashed(A)));
    });
}

#[test]
fn a_key_that_is_found_publishes_beside_a_rotation() {
    loom::model(|| {
        let (filter, work) = (windowed(2), Arc::new(Work::new()));
        let inserting = Arc::clone(&filter);
        let inserter = {
            share!(work);
            move || {
                work.do_it();
                inserting.insert(&Hashed(A));
            }
        };
        beside(inserter, move || {
            filter.rotate();
            if filter.contains(&Hashed(A)) {
                assert!(work.is_visible());
            }
            if !filter.insert(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn of_racing_inserters_one_gets_true_beside_a_rotation() {
    loom::model(|| {
        let filter = windowed(2);
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let (one, other) = beside(
            move || one.insert(&Hashed(A)),
            move || {
                other.rotate();
                other.insert(&Hashed(A))
            },
        );
        assert!(one || other);
    });
}

#[test]
fn two_calls_of_rotate_are_two_rotations() {
    loom::model(|| {
        let filter = windowed(3);
        filter.insert(&Hashed(A));
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(move || one.rotate(), move || other.rotate());
        assert!(filter.contains(&Hashed(A)));
        filter.rotate();
        assert!(!filter.contains(&Hashed(A)));
    });
}

/// A key that is as old as it may be without being too old, and two inserts that both find a
/// rotation due.
#[test]
fn two_that_find_the_same_rotation_due_make_one() {
    loom::model(|| {
        let (filter, time) = aged();
        filter.insert(&Hashed(A));
        time.store(1, std::sync::atomic::Ordering::Relaxed);
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let both = beside(move || one.rotate_if_due(), move || other.insert(&Hashed(B)));
        assert!(both.1);
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)));
        assert_eq!(filter.live_generations().len(), 2);
    });
}

/// Both find that all has expired; whoever rotates, neither's key goes into what has.
#[test]
fn an_insert_does_not_wait_for_a_rotation_that_another_makes() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(
            move || {
                one.insert(&Hashed(A));
                assert!(one.contains(&Hashed(A)));
            },
            move || {
                other.insert(&Hashed(B));
                assert!(other.contains(&Hashed(B)));
            },
        );
        assert_eq!(filter.live_generations().len(), 1);
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)));
    });
}

/// Both find that the clock stepped back; one begins a generation, and neither's key nor what was
/// there before is lost.
#[test]
fn two_that_find_that_the_clock_stepped_back_begin_one_generation() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(9, std::sync::atomic::Ordering::Relaxed);
        filter.insert(&Hashed(A));
        time.store(3, std::sync::atomic::Ordering::Relaxed);
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(
            move || {
                one.insert(&Hashed(B));
                assert!(one.contains(&Hashed(B)));
            },
            move || other.rotate_if_due(),
        );
        assert_eq!(filter.live_generations().len(), 2);
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)));
        time.store(4, std::sync::atomic::Ordering::Relaxed);
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)));
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        assert!(!filter.contains(&Hashed(A)) && !filter.contains(&Hashed(B)));
    });
}

/// Another thread was faster, with a rotation that is not the one that is due.
#[test]
fn an_insert_that_loses_against_another_rotation_makes_its_own() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        let (rotating, inserting) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(
            move || rotating.rotate(),
            move || {
                inserting.insert(&Hashed(A));
                assert!(inserting.contains(&Hashed(A)));
            },
        );
        assert!(filter.contains(&Hashed(A)));
    });
}

/// A dense batch is inserted by way of a copy, and tells its answers again where another thread was
/// in between.
#[test]
fn of_racing_batches_each_new_key_is_won_once_with_one_word_per_key() {
    loom::model(|| {
        let filter = windowed(2);
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let (one, other) = beside(
            move || one.insert_batch(Hashed::slice(&[A, B])),
            move || other.insert_batch(Hashed::slice(&[A])),
        );
        assert_eq!(one + other, 2);
    });
}

/// A thread that copies generations from elsewhere adds those that the list lacks. A rotation of
/// another thread beside it drops neither them nor their keys.
#[test]
fn what_is_copied_into_an_older_generation_is_found_beside_a_rotation() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        filter.insert(&Hashed(B));
        let (copying, inserting) = (Arc::clone(&filter), Arc::clone(&filter));
        let (copied, _) = beside(
            move || {
                let generations = copying.numbered(0).unwrap().unwrap();
                let (number, oldest) = &generations[1];
                oldest.insert(&Hashed(A));
                // By its number it has expired once the other has rotated to 7.
                let found = copying.contains(&Hashed(A));
                (*number, found)
            },
            move || {
                inserting.numbered(6).unwrap().unwrap();
                inserting.insert(&Hashed(B));
            },
        );
        // Before or after the other's rotation: the one before the newest.
        assert!([4, 5].contains(&copied.0));
        // One whose number is kept by the newest is found.
        assert!(copied.0 == 4 || copied.1 && filter.contains(&Hashed(A)));
        assert!(filter.contains(&Hashed(B)));
        let numbers: Vec<u64> = filter.numbered(0).unwrap().unwrap().iter().map(|one| one.0).collect();
        assert_eq!(numbers, [6, 5]);
    });
}

/// Both add the same generation, and one list has it: what either writes into its own is found.
#[test]
fn two_that_complete_the_list_share_what_they_added() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        assert!(filter.rotate_if_due());
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let copy = |filter: Arc<WindowedBloom>, hash| {
            move || {
                let generations = filter.numbered(0).unwrap().unwrap();
                assert_eq!(generations.iter().map(|one| one.0).collect::<Vec<_>>(), [5, 4]);
                generations[1].1.insert(&Hashed(hash));
                assert!(filter.contains(&Hashed(hash)));
            }
        };
        beside(copy(one, A), copy(other, B));
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)));
        // The generation that one of them made in vain is reused, and none of the list.
        let next = filter.numbered(6).unwrap().unwrap();
        assert!(!next[0].1.contains(&Hashed(A)) && !next[0].1.contains(&Hashed(B)));
        assert!(!std::sync::Arc::ptr_eq(&next[0].1, &next[1].1));
    });
}

/// The list is replaced under an insert, which is not a rotation: a thread that completes the list
/// and misses the key has it for its window after.
#[test]
fn an_insert_beside_a_list_that_is_completed_lives_its_window() {
    loom::model(|| {
        let (filter, time) = aged();
        time.store(5, std::sync::atomic::Ordering::Relaxed);
        filter.insert(&Hashed(B));
        let (inserting, rotating) = (Arc::clone(&filter), Arc::clone(&filter));
        let (_, comes_after) = beside(
            move || inserting.insert(&Hashed(A)),
            move || {
                rotating.numbered(0).unwrap().unwrap();
                rotating.numbered(6).unwrap().unwrap();
                !rotating.contains(&Hashed(A))
            },
        );
        assert!(filter.contains(&Hashed(A)));
        if comes_after {
            filter.numbered(7).unwrap().unwrap();
            assert!(filter.contains(&Hashed(A)));
        }
    });
}

/// A batch that is inserted a second time, into the list of a rotation meanwhile, keeps the answers
/// of the first.
#[test]
fn a_batch_tells_its_first_answers_beside_a_rotation() {
    for renew in [true, false] {
        loom::model(move || {
            let filter = Arc::new(window(2).renew(renew).build().unwrap());
            let (inserting, rotating) = (Arc::clone(&filter), Arc::clone(&filter));
            let insert = move || {
                let mut new = [false];
                (inserting.insert_batch_into(Hashed::slice(&[A]), &mut new), new)
            };
            let (answers, ()) = beside(insert, move || rotating.rotate());
            assert_eq!(answers, (1, [true]));
        });
    }
}
