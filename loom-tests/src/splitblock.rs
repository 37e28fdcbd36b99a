//! A split-block filter keeps the promises of a filter in lines. A key has two bits in each of four
//! words.

use super::*;
use lanebloom::{Bitmap, Hashed};
use lanebloom_formats::SplitBlockBloom;

/// One block.
fn filter() -> SplitBlockBloom {
    SplitBlockBloom::with_bytes(32).unwrap()
}

/// Two hashes that meet in every word, with different bits.
const A: u64 = 0;
const B: u64 = 1;

fn work_and_insert(filter: &Arc<SplitBlockBloom>, work: &Arc<Work>) -> impl FnOnce() -> bool + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert(&Hashed(A))
    }
}

/// The two keys really meet, for otherwise the tests of this file would try less than they say.
#[test]
fn the_keys_share_their_words_and_no_bit() {
    loom::model(|| {
        let words = |hash| {
            let filter = filter();
            filter.insert(&Hashed(hash));
            let bytes = filter.to_bitset();
            let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            words.collect::<Vec<_>>()
        };
        for (a, b) in words(A).into_iter().zip(words(B)) {
            assert_eq!((a.count_ones(), b.count_ones(), a & b), (2, 2, 0));
        }
    });
}

#[test]
fn no_bit_is_lost() {
    model_with_two_preemptions(|| {
        let raced = Arc::new(filter());
        let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
        let won = beside(move || one.insert(&Hashed(A)), move || other.insert(&Hashed(B)));
        assert_eq!(won, (true, true));
        let alone = filter();
        alone.insert_batch(Hashed::slice(&[A, B]));
        assert!(*raced == alone);
    });
}

#[test]
fn of_racing_inserters_at_least_one_wins() {
    model_with_two_preemptions(|| {
        let filter = Arc::new(filter());
        let (one, other) = (Arc::clone(&filter), Arc::clone(&filter));
        let won = beside(move || one.insert(&Hashed(A)), move || other.insert(&Hashed(A)));
        assert!(won.0 || won.1);
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    loom::model(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        beside(work_and_insert(&filter, &work), move || {
            if filter.contains(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn who_inserts_in_vain_sees_what_the_inserter_did_before() {
    model_with_two_preemptions(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        beside(work_and_insert(&filter, &work), move || {
            if !filter.insert(&Hashed(A)) {
                assert!(work.is_visible());
            }
        });
    });
}

/// The inserts and the lookups of batches.
#[test]
fn batches_keep_what_single_calls_promise() {
    model_with_two_preemptions(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        let inserter = {
            share!(filter, work);
            move || {
                work.do_it();
                filter.insert_batch(Hashed::slice(&[A]))
            }
        };
        beside(inserter, move || {
            let mut found = [0];
            filter.contains_batch(Hashed::slice(&[A, B]), Bitmap(&mut found));
            let visible = work.is_visible();
            assert!(found[0] & 1 == 0 || visible);
        });
    });
    model_with_two_preemptions(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        beside(work_and_insert(&filter, &work), move || {
            if filter.insert_batch(Hashed::slice(&[A])) == 0 {
                assert!(work.is_visible());
            }
        });
    });
}

/// Also where the insert that happened before found the bits there and wrote nothing.
#[test]
fn no_false_negative_after_an_insert_that_happened_before() {
    model_with_two_preemptions(|| {
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
            }
        });
        first.join().unwrap();
    });
}

#[test]
fn a_union_beside_inserts_loses_nothing_and_publishes() {
    model_with_two_preemptions(|| {
        let (part, all) = (filter(), Arc::new(filter()));
        part.insert(&Hashed(A));
        let (inserting, uniting) = (Arc::clone(&all), Arc::clone(&all));
        let changed = beside(
            move || inserting.insert(&Hashed(B)),
            move || uniting.union_from(&part).unwrap(),
        );
        assert_eq!(changed, (true, true));
        assert!(all.contains(&Hashed(A)) && all.contains(&Hashed(B)));
    });
}

/// A key that is inserted into both, into the larger set first.
#[test]
fn a_subset_stays_one_beside_inserts() {
    model_with_two_preemptions(|| {
        let (all, part) = (Arc::new(filter()), Arc::new(filter()));
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

#[test]
fn a_subset_sees_what_the_inserter_did_before() {
    loom::model(|| {
        let (all, part, work) = (Arc::new(filter()), filter(), Arc::new(Work::new()));
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
        let (all, mut both, work) = (Arc::new(filter()), filter(), Arc::new(Work::new()));
        both.insert(&Hashed(A));
        all.insert(&Hashed(B));
        both.insert(&Hashed(B));
        beside(work_and_insert(&all, &work), move || {
            both.exclusive().intersection_from(&*all).unwrap();
            let visible = work.is_visible();
            assert!(both.contains(&Hashed(B)));
            assert!(visible || !both.contains(&Hashed(A)));
        });
    });
}
