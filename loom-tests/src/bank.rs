//! A bank of filters: inserts into columns of one word, publication, pushes, snapshots.
//!
//! Each of these changes to the bank was seen red, one at a time:
//!
//! | change | red |
//! |---|---|
//! | `Bits::add_bit` is `Relaxed`, or a load and a store | five models; `inserts_into_two_columns...` |
//! | `and` or `contains` without `acquire_if` | `whoever_finds_a_column...` |
//! | `insert` or `insert_batch` without its acquire | `whoever_finds_a_column...` |
//! | `push` without its acquire, or without some bits | `a_push_publishes...` |
//! | the mark of a column comes after its bits | both models of copies |
//! | the mark is set without `Release`, or `columns_in_use` does not acquire | `whoever_finds_a_column...` |
//! | `try_clone` copies the marks before the bits, or does not acquire between them | `a_copy_beside...` |
//! | a snapshot does not acquire before it reads the marks | both models of copies |
//!
//! `to_filter` without its acquire stays green: every method that reads the copy acquires too, and
//! another thread's fence takes, in loom, what the copying thread saw. (The standard does not let
//! it: so the acquire stays.)

use super::*;
use lanebloom::Hashed;
use lanebloom::bank::FilterBank;

/// 64 columns of one line each: a word for every row. Keys have one word of one bit, so that loom
/// has few accesses to try.
fn bank() -> Arc<FilterBank> {
    Arc::new(FilterBank::new(64, &builder()).unwrap())
}

fn builder() -> lanebloom::bloom::Builder {
    ConcurrentBloom::builder().memory_budget(64).words_per_key(1)
}

fn insert(bank: &Arc<FilterBank>, work: &Arc<Work>, column: usize) -> impl FnOnce() -> bool + 'static {
    share!(bank, work);
    move || {
        work.do_it();
        bank.insert(column, &Hashed(A)).unwrap()
    }
}

#[test]
fn inserts_into_two_columns_of_a_word_keep_each_other() {
    loom::model(|| {
        let (bank, work) = (bank(), Arc::new(Work::new()));
        let new = beside(insert(&bank, &work, 3), insert(&bank, &work, 7));
        assert_eq!(new, (true, true));
        assert!(bank.which(&Hashed(A)).eq([3, 7]) && bank.columns_in_use().eq([3, 7]));
    });
}

#[test]
fn of_two_inserts_of_a_key_into_a_column_one_is_new() {
    loom::model(|| {
        let (bank, work) = (bank(), Arc::new(Work::new()));
        let new = beside(insert(&bank, &work, 3), insert(&bank, &work, 3));
        assert!(new.0 || new.1);
        assert!(bank.which(&Hashed(A)).eq([3]));
    });
}

/// The thread that finds the key in the column, or inserts it in vain, sees the work.
#[test]
fn whoever_finds_a_column_sees_what_its_inserter_did_before() {
    let finds: [fn(&FilterBank) -> bool; 8] = [
        |bank| bank.which(&Hashed(A)).next() == Some(3),
        |bank| bank.which_into(&Hashed(A), &mut [0]),
        |bank| bank.count(&Hashed(A)) == 1,
        |bank| {
            let mut found = false;
            bank.which_batch(Hashed::slice(&[A]), |_, columns| found = columns != [0]);
            found
        },
        |bank| bank.contains(3, &Hashed(A)),
        |bank| !bank.insert(3, &Hashed(A)).unwrap(),
        |bank| bank.insert_batch(3, Hashed::slice(&[A])) == Ok(0),
        |bank| bank.columns_in_use().next() == Some(3),
    ];
    for find in finds {
        loom::model(move || {
            let (bank, work) = (bank(), Arc::new(Work::new()));
            let looking = Arc::clone(&bank);
            let seen = Arc::clone(&work);
            beside(insert(&bank, &work, 3), move || {
                if find(&looking) {
                    assert!(seen.is_visible());
                }
            });
            // And an insert that happened before is found.
            assert!(bank.which(&Hashed(A)).eq([3]));
        });
    }
}

/// A push passes on what the inserters of its filter did, and holds every key inserted before.
///
/// The filter is made before the bank. Loom's acquire fence takes the atomics in the order of their
/// making, and one of which a thread that it has just taken has seen the value counts as seen. With
/// the bank first, the looker's fence took the pusher's bits and then, through them, the filter's:
/// the model was green without the pusher's `acquire`.
#[test]
fn a_push_publishes_the_inserts_of_its_filter() {
    model_with_two_preemptions(|| {
        let filter = Arc::new(builder().build().unwrap());
        let (bank, work) = (bank(), Arc::new(Work::new()));
        let inserter = work_and_insert(&filter, &work);
        let pusher = {
            share!(bank, filter);
            move || bank.push(&filter).unwrap()
        };
        let looker = {
            share!(bank, work);
            move || {
                if bank.any(&Hashed(A)) {
                    assert!(work.is_visible());
                }
            }
        };
        let (inserter, pusher, looker) = (thread::spawn(inserter), thread::spawn(pusher), thread::spawn(looker));
        inserter.join().unwrap();
        assert_eq!(pusher.join().unwrap(), 0);
        looker.join().unwrap();
        assert_eq!(bank.push(&filter).unwrap(), 1);
        assert!(bank.contains(1, &Hashed(A)));
    });
}

/// With one preemption, since the whole bank has 512 words.
fn model_of_all_words(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(1);
    model.max_branches = 10_000;
    model.check(check);
}

#[test]
fn whoever_finds_a_key_in_a_copy_sees_what_its_inserter_did_before() {
    let finds: [fn(&FilterBank) -> bool; 3] = [
        |bank| bank.to_filter(3).unwrap().contains(&Hashed(A)),
        |bank| bank.try_clone().unwrap().any(&Hashed(A)),
        |bank| {
            FilterBank::from_bytes(&bank.snapshot().to_vec())
                .unwrap()
                .0
                .any(&Hashed(A))
        },
    ];
    for find in finds {
        model_of_all_words(move || {
            let (bank, work) = (bank(), Arc::new(Work::new()));
            let (looking, seen) = (Arc::clone(&bank), Arc::clone(&work));
            beside(insert(&bank, &work, 3), move || {
                if find(&looking) {
                    assert!(seen.is_visible());
                }
            });
        });
    }
}

/// A copy of a bank beside an insert can be read: a column that has a bit is in use.
#[test]
fn a_copy_beside_an_insert_is_whole() {
    let copies: [fn(&FilterBank) -> Vec<u8>; 2] = [
        |bank| bank.snapshot().to_vec(),
        |bank| bank.try_clone().unwrap().snapshot().to_vec(),
    ];
    for copy in copies {
        model_of_all_words(move || {
            let (bank, work) = (bank(), Arc::new(Work::new()));
            let saved = Arc::clone(&bank);
            beside(insert(&bank, &work, 3), move || {
                let bytes = copy(&saved);
                FilterBank::from_bytes(&bytes).unwrap();
            });
        });
    }
}
