//! Several keys share counters, which inserts increment and removes decrement. No present key goes
//! missing, and removed keys leave nothing behind.

use super::*;
use lanebloom::{CountingBloom, Hashed};

fn filter(words_per_key: usize) -> CountingBloom {
    CountingBloom::builder()
        .memory_budget(64)
        .words_per_key(words_per_key)
        .build()
        .unwrap()
}

/// A key that has these counters in word 0, and where it has two words the first three of them and
/// these in word 1. As in `hash_in`, a byte for each counter: its high 5 bits are the first bit of
/// the counter in half a word, and the low ones tell which half.
const fn key(words_per_key: usize, first: [u64; 4], second: [u64; 2]) -> u64 {
    let [a, b, c, d] = first;
    let [e, f] = second;
    let counters = if words_per_key == 1 {
        [a, b, c, d, 0, 0]
    } else {
        [a, b, c, 16 + e, 16 + f, 0]
    };
    let (mut product, mut i) = (0, 0);
    while i < 6 {
        let counter = counters[i];
        product = product << 8 | counter % 8 << 5 | counter / 8;
        i += 1;
    }
    hash_in(0, product << 16)
}

/// Keys for a number of words per key.
#[derive(Clone, Copy)]
struct CollidingKeys {
    words: usize,
    a: u64,
    /// Shares a counter with `a` in every word.
    b: u64,
    /// Has all counters of `a` in word 0, and none in word 1.
    first_of_a: u64,
    /// The other way round.
    second_of_a: u64,
}

const fn keys(words: usize) -> CollidingKeys {
    CollidingKeys {
        words,
        a: key(words, [1, 2, 3, 3], [4, 6]),
        b: key(words, [3, 7, 8, 9], [6, 10]),
        first_of_a: key(words, [1, 2, 3, 12], [13, 14]),
        second_of_a: key(words, [13, 14, 15, 0], [4, 6]),
    }
}

impl CollidingKeys {
    fn filter(&self, present: &[u64]) -> CountingBloom {
        let filter = filter(self.words);
        for &key in present {
            filter.insert(&Hashed(key));
        }
        filter
    }
}

/// Runs `test` in every interleaving, for keys of one word and of two.
fn for_each_words(test: impl Fn(CollidingKeys) + Copy + Send + Sync + 'static) {
    for words in [1, 2] {
        loom::model(move || test(keys(words)));
    }
}

/// The keys meet as they should, for otherwise the tests of this file would try less than they say.
#[test]
fn the_keys_share_counters() {
    for_each_words(|keys| {
        let CollidingKeys {
            a,
            b,
            first_of_a,
            second_of_a,
            ..
        } = keys;
        let counters = |present: &[u64]| (keys.filter(present).statistics().fill_ratio * 128.0).round() as usize;
        assert_eq!(counters(&[a]), 1 + 2 * keys.words);
        let shared = |with: u64| counters(&[a]) + counters(&[with]) - counters(&[a, with]);
        assert_eq!((shared(b), shared(first_of_a)), (keys.words, 3));
        assert_eq!(shared(second_of_a), if keys.words == 1 { 0 } else { 2 });
        // Neither makes it a false positive.
        assert!(!keys.filter(&[b]).contains(&Hashed(a)));
        if keys.words == 2 {
            assert!(
                !keys.filter(&[first_of_a]).contains(&Hashed(a)) && !keys.filter(&[second_of_a]).contains(&Hashed(a))
            );
        }
    });
}

#[test]
fn a_key_is_found_whatever_happens_to_those_that_share_its_counters() {
    for_each_words(|keys| {
        let CollidingKeys { a, b, .. } = keys;
        let filter = Arc::new(keys.filter(&[b]));
        let changing = Arc::clone(&filter);
        let changer = move || {
            changing.insert(&Hashed(a));
            assert!(changing.remove(&Hashed(a)));
        };
        let asking = Arc::clone(&filter);
        beside(changer, move || {
            assert!(asking.contains(&Hashed(b)));
            assert!(asking.contains(&Hashed(b)));
        });
        assert!(*filter == keys.filter(&[b]));
    });
}

#[test]
fn a_remove_beside_an_insert_of_another_key_changes_its_own_counters_alone() {
    for_each_words(|keys| {
        let CollidingKeys { a, b, .. } = keys;
        let filter = Arc::new(keys.filter(&[a]));
        let (removing, inserting) = (Arc::clone(&filter), Arc::clone(&filter));
        let answers = beside(
            move || removing.remove(&Hashed(a)),
            move || {
                let new = inserting.insert(&Hashed(b));
                assert!(inserting.contains(&Hashed(b)));
                new
            },
        );
        assert_eq!(answers, (true, true));
        assert!(*filter == keys.filter(&[b]));
    });
}

#[test]
fn of_two_removes_of_a_key_that_is_there_once_exactly_one_succeeds() {
    for_each_words(|keys| {
        let filter = Arc::new(keys.filter(&[keys.a]));
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let removed = beside(
            move || one.remove(&Hashed(keys.a)),
            move || other.remove(&Hashed(keys.a)),
        );
        assert!(removed.0 != removed.1);
        assert!(*filter == keys.filter(&[]));
    });
}

/// A remove that fails restores the other key's counters.
#[test]
fn of_two_removes_of_a_key_that_is_covered_in_one_word_exactly_one_succeeds_and_the_other_changes_nothing() {
    const KEYS: CollidingKeys = keys(2);
    for other_key in [KEYS.first_of_a, KEYS.second_of_a] {
        loom::model(move || {
            let filter = Arc::new(KEYS.filter(&[KEYS.a, other_key]));
            let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
            let removed = beside(
                move || one.remove(&Hashed(KEYS.a)),
                move || other.remove(&Hashed(KEYS.a)),
            );
            assert!(removed.0 != removed.1);
            assert!(*filter == KEYS.filter(&[other_key]));
            assert!(filter.contains(&Hashed(other_key)));
        });
    }
}

/// The same with three, of which two can get through the first word. (With two preemptions; three
/// take two minutes.)
#[test]
fn of_three_removes_exactly_one_succeeds() {
    const KEYS: CollidingKeys = keys(2);
    model_with_two_preemptions(|| {
        let filter = Arc::new(KEYS.filter(&[KEYS.a, KEYS.first_of_a]));
        let remove = |filter: &Arc<CountingBloom>| {
            share!(filter);
            move || usize::from(filter.remove(&Hashed(KEYS.a)))
        };
        let third = thread::spawn(remove(&filter));
        let removed = beside(remove(&filter), remove(&filter));
        assert_eq!(removed.0 + removed.1 + third.join().unwrap(), 1);
        assert!(*filter == KEYS.filter(&[KEYS.first_of_a]));
    });
}

/// Not even for a moment does a remove of what is not there take from others, while nobody else
/// changes that key.
#[test]
fn a_remove_in_vain_hides_no_key() {
    const KEYS: CollidingKeys = keys(2);
    loom::model(|| {
        let filter = Arc::new(KEYS.filter(&[KEYS.first_of_a]));
        let (removing, asking) = (Arc::clone(&filter), Arc::clone(&filter));
        let (removed, ()) = beside(
            move || removing.remove(&Hashed(KEYS.a)),
            move || assert!(asking.contains(&Hashed(KEYS.first_of_a)) && asking.contains(&Hashed(KEYS.first_of_a))),
        );
        assert!(!removed && *filter == KEYS.filter(&[KEYS.first_of_a]));
    });
}

/// One word is one step: not even for a moment does a remove of what is not there take from others.
#[test]
fn with_one_word_per_key_removes_in_vain_hide_no_key() {
    loom::model(|| {
        let keys = keys(1);
        let filter = Arc::new(keys.filter(&[keys.a, keys.b]));
        let remove = |filter: &Arc<CountingBloom>| {
            share!(filter);
            move || filter.remove(&Hashed(keys.a))
        };
        let second = thread::spawn(remove(&filter));
        let asking = Arc::clone(&filter);
        let (removed, ()) = beside(remove(&filter), move || {
            assert!(asking.contains(&Hashed(keys.b)));
        });
        assert!(removed != second.join().unwrap());
        assert!(*filter == keys.filter(&[keys.b]));
    });
}

#[test]
fn of_two_inserts_one_is_told_that_the_key_is_new_and_both_count() {
    for_each_words(|keys| {
        let filter = Arc::new(keys.filter(&[]));
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let new = beside(
            move || one.insert(&Hashed(keys.a)),
            move || other.insert(&Hashed(keys.a)),
        );
        assert!(new.0 || new.1);
        assert!(keys.words > 1 || new.0 != new.1);
        assert_eq!([(); 3].map(|()| filter.remove(&Hashed(keys.a))), [true, true, false]);
        assert!(*filter == keys.filter(&[]));
    });
}

#[test]
fn a_key_that_was_inserted_twice_is_found_while_it_is_removed_once() {
    for_each_words(|keys| {
        let filter = Arc::new(keys.filter(&[keys.a, keys.a]));
        let (removing, asking) = (Arc::clone(&filter), Arc::clone(&filter));
        let removed = beside(
            move || removing.remove(&Hashed(keys.a)),
            move || assert!(asking.contains(&Hashed(keys.a)) && asking.contains(&Hashed(keys.a))),
        );
        assert!(removed.0);
    });
}

/// Two keys increment a counter at 14: it stays at 15, and its neighbours do not change.
#[test]
fn racing_inserts_stick_at_15() {
    for_each_words(|keys| {
        let CollidingKeys { a, b, .. } = keys;
        let filter = Arc::new(keys.filter(&[a; 14]));
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(move || one.insert(&Hashed(a)), move || other.insert(&Hashed(b)));
        let mut alone = keys.filter(&[a; 15]);
        alone.insert(&Hashed(b));
        assert!(*filter == alone);
        assert_eq!(filter.stuck_counters(), 1 + 2 * keys.words);
        // Removed again, all but what is stuck goes.
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let removed = beside(move || one.remove(&Hashed(a)), move || other.remove(&Hashed(b)));
        assert_eq!(removed, (true, true));
        assert!(filter.contains(&Hashed(a)) && !filter.contains(&Hashed(b)));
        alone.clear();
        (0..15).for_each(|_| _ = alone.insert(&Hashed(a)));
        assert!(*filter == alone);
    });
}

/// Inserts A after some work.
fn work_and_insert(filter: &Arc<CountingBloom>, work: &Arc<Work>, key: u64) -> impl FnOnce() -> bool + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert(&Hashed(key))
    }
}

#[test]
fn who_finds_inserts_or_removes_a_key_sees_what_its_inserter_did_before() {
    for finds in [
        |filter: &CountingBloom, key| filter.contains(&Hashed(key)),
        |filter: &CountingBloom, key| !filter.insert(&Hashed(key)),
        |filter: &CountingBloom, key| filter.remove(&Hashed(key)),
        |filter: &CountingBloom, key| {
            let mut found = [false];
            filter.contains_batch(Hashed::slice(&[key]), &mut found);
            found[0]
        },
        |filter: &CountingBloom, key| filter.insert_batch(Hashed::slice(&[key])) == 0,
        |filter: &CountingBloom, key| filter.remove_batch(Hashed::slice(&[key])) == 1,
    ] {
        for_each_words(move |keys| {
            let (filter, work) = (Arc::new(keys.filter(&[])), Arc::new(Work::new()));
            beside(work_and_insert(&filter, &work, keys.a), move || {
                if finds(&filter, keys.a) {
                    assert!(work.is_visible());
                }
            });
        });
    }
}

/// This holds for a stuck key too, whose counters do not change.
#[test]
fn an_insert_publishes_where_all_counters_are_stuck() {
    loom::model(|| {
        let keys = keys(1);
        let (filter, work) = (Arc::new(keys.filter(&[keys.a; 15])), Arc::new(Work::new()));
        let inserted = Arc::new(AtomicBool::new(false));
        let inserter = {
            let insert = work_and_insert(&filter, &work, keys.a);
            share!(inserted);
            move || {
                insert();
                inserted.store(true, Ordering::Relaxed);
            }
        };
        beside(inserter, move || {
            // That the insert has been is known, by what orders nothing; the lookup itself makes
            // its work visible.
            if inserted.load(Ordering::Relaxed) {
                filter.insert(&Hashed(keys.a));
                assert!(work.is_visible());
            }
        });
    });
}

/// Another key's insert and remove in the same words do not cut the inserter off.
#[test]
fn publication_survives_other_keys_in_the_same_word() {
    loom::model(|| {
        let keys = keys(1);
        let (filter, work) = (Arc::new(keys.filter(&[keys.b])), Arc::new(Work::new()));
        let other = Arc::clone(&filter);
        let other = thread::spawn(move || other.remove(&Hashed(keys.b)));
        beside(work_and_insert(&filter, &work, keys.a), move || {
            if filter.contains(&Hashed(keys.a)) {
                assert!(work.is_visible());
            }
        });
        other.join().unwrap();
    });
}

/// A place that is freed and taken again: a thread that inserts a key anew sees what its remover
/// did before.
#[test]
fn who_inserts_a_removed_key_sees_what_its_remover_did_before() {
    for_each_words(|keys| {
        let (filter, work) = (Arc::new(keys.filter(&[keys.a])), Arc::new(Work::new()));
        let remover = {
            share!(filter, work);
            move || {
                work.do_it();
                assert!(filter.remove(&Hashed(keys.a)));
            }
        };
        beside(remover, move || {
            if filter.insert(&Hashed(keys.a)) {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn no_false_negative_after_an_insert_that_happened_before() {
    let test = |keys: CollidingKeys| {
        let (filter, inserted) = (Arc::new(keys.filter(&[keys.a])), Arc::new(AtomicBool::new(false)));
        let remover = Arc::clone(&filter);
        let remover = thread::spawn(move || remover.remove(&Hashed(keys.a)));
        let inserter = {
            share!(filter, inserted);
            move || {
                filter.insert(&Hashed(keys.a));
                inserted.store(true, Ordering::Release);
            }
        };
        beside(inserter, move || {
            if inserted.load(Ordering::Acquire) {
                assert!(filter.contains(&Hashed(keys.a)));
            }
        });
        assert!(remover.join().unwrap());
    };
    for words in [1, 2] {
        model_with_two_preemptions(move || test(keys(words)));
    }
}

#[test]
fn a_union_beside_inserts_and_removes_loses_nothing() {
    for_each_words(|keys| {
        let CollidingKeys { a, b, .. } = keys;
        let (all, part) = (Arc::new(keys.filter(&[b])), keys.filter(&[a]));
        let (changing, uniting) = (Arc::clone(&all), Arc::clone(&all));
        let changed = beside(
            move || changing.remove(&Hashed(b)),
            move || {
                let changed = uniting.union_from(&part).unwrap();
                assert!(uniting.contains(&Hashed(a)));
                changed
            },
        );
        assert_eq!(changed, (true, true));
        assert!(*all == keys.filter(&[a]));
    });
}

#[test]
fn a_union_takes_what_was_inserted_before_and_publishes_it() {
    loom::model(|| {
        let keys = keys(1);
        // In this order, for the reason that `whole.rs` gives.
        let (part, all) = (Arc::new(keys.filter(&[])), Arc::new(keys.filter(&[])));
        let work = Arc::new(Work::new());
        let inserter = thread::spawn(work_and_insert(&part, &work, keys.a));
        let uniter = {
            share!(all);
            move || {
                all.union_from(&part).unwrap();
            }
        };
        beside(uniter, move || {
            if all.contains(&Hashed(keys.a)) {
                assert!(work.is_visible());
            }
        });
        inserter.join().unwrap();
    });
}

#[test]
fn a_snapshot_holds_what_was_inserted_before_and_publishes_it() {
    for_each_words(|keys| {
        let (live, work) = (Arc::new(keys.filter(&[keys.b])), Arc::new(Work::new()));
        beside(work_and_insert(&live, &work, keys.a), move || {
            // Made by a thread of its own, and asked only after the work was looked at: to ask is
            // to order memory too.
            let snapshot = thread::spawn(move || live.try_clone().unwrap()).join().unwrap();
            let visible = work.is_visible();
            assert!(snapshot.contains(&Hashed(keys.b)));
            assert!(visible || !snapshot.contains(&Hashed(keys.a)));
        });
    });
}

/// Bytes that are made while another key's counters change.
#[test]
fn bytes_hold_what_was_inserted_before() {
    for_each_words(|keys| {
        let CollidingKeys { a, b, .. } = keys;
        let filter = Arc::new(keys.filter(&[b]));
        let changer = {
            share!(filter);
            move || {
                filter.insert(&Hashed(a));
                assert!(filter.remove(&Hashed(a)));
            }
        };
        let (_, bytes) = beside(changer, move || filter.snapshot().to_vec());
        let (copy, _) = CountingBloom::from_bytes(&bytes).unwrap();
        assert!(copy.contains(&Hashed(b)));
    });
}
