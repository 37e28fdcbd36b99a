//! A filter of flat bits keeps the promises of a filter in lines. It is Guava's, whose keys have
//! several words, or several bits of one.

use super::*;
use lanebloom_formats::GuavaBloom;
use lanebloom_formats::guava::HashFunctions;

/// Filters in which a key has one bit, two bits of one word, and a bit in each of two words.
const FILTERS: [fn() -> GuavaBloom; 3] = [
    || filter(1, HashFunctions::ByBits),
    || filter(1, HashFunctions::ByRate),
    || filter(50, HashFunctions::ByRate),
];

fn filter(keys: usize, hash_functions: HashFunctions) -> GuavaBloom {
    let builder = GuavaBloom::builder().expected_keys(keys).false_positive_rate(0.3);
    builder.hash_functions(hash_functions).build().unwrap()
}

/// Two keys that meet in every word, with different bits.
const A: u64 = 0;
const B: u64 = 3;

/// Runs `test` in every interleaving, for every kind of filter.
fn for_each_filter(test: impl Fn(Arc<GuavaBloom>) + Copy + Send + Sync + 'static) {
    for filter in FILTERS {
        loom::model(move || test(Arc::new(filter())));
    }
}

fn race(filter: &Arc<GuavaBloom>, keys: [u64; 2]) -> (bool, bool) {
    let (one, other) = (Arc::clone(filter), Arc::clone(filter));
    beside(move || one.insert(&keys[0]), move || other.insert(&keys[1]))
}

fn work_and_insert(filter: &Arc<GuavaBloom>, work: &Arc<Work>) -> impl FnOnce() -> bool + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert(&A)
    }
}

/// The two keys really meet, for otherwise the tests of this file would try less than they say.
#[test]
fn the_keys_share_their_words_and_no_bit() {
    for (filter, ones) in FILTERS.into_iter().zip([[1, 0], [2, 0], [1, 1]]) {
        loom::model(move || {
            let words = |key: u64| {
                let filter = filter();
                filter.insert(&key);
                let bytes = filter.to_bytes();
                let longs = bytes[6..]
                    .chunks(8)
                    .map(|long| u64::from_be_bytes(long.try_into().unwrap()));
                longs.chain([0]).take(2).collect::<Vec<_>>()
            };
            let (a, b) = (words(A), words(B));
            for i in 0..2 {
                assert_eq!(
                    (a[i].count_ones(), b[i].count_ones(), a[i] & b[i]),
                    (ones[i], ones[i], 0)
                );
            }
        });
    }
}

#[test]
fn no_bit_is_lost() {
    for_each_filter(|raced| {
        let alone = GuavaBloom::clone(&raced);
        assert_eq!(race(&raced, [A, B]), (true, true));
        alone.insert_batch(&[A, B]);
        assert!(*raced == alone);
    });
}

#[test]
fn of_racing_inserters_at_least_one_wins() {
    for_each_filter(|filter| {
        let won = race(&filter, [A, A]);
        assert!(won.0 || won.1);
        // Where there is one bit there is one winner.
        assert!(filter.hash_functions() > 1 || won.0 != won.1);
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    for_each_filter(|filter| {
        let work = Arc::new(Work::new());
        beside(work_and_insert(&filter, &work), move || {
            if filter.contains(&A) {
                assert!(work.is_visible());
            }
        });
    });
}

#[test]
fn who_inserts_in_vain_sees_what_the_inserter_did_before() {
    for_each_filter(|filter| {
        let work = Arc::new(Work::new());
        beside(work_and_insert(&filter, &work), move || {
            if !filter.insert(&A) {
                assert!(work.is_visible());
            }
        });
    });
}

/// The inserts and the lookups of batches.
#[test]
fn batches_keep_what_single_calls_promise() {
    for_each_filter(|filter| {
        let work = Arc::new(Work::new());
        let inserter = {
            share!(filter, work);
            move || {
                work.do_it();
                filter.insert_batch(&[A])
            }
        };
        beside(inserter, move || {
            let mut found = [false; 2];
            filter.contains_batch(&[A, B], &mut found);
            let visible = work.is_visible();
            assert!(!found[0] || visible);
        });
    });
    for_each_filter(|filter| {
        let work = Arc::new(Work::new());
        beside(work_and_insert(&filter, &work), move || {
            if filter.insert_batch(&[A]) == 0 {
                assert!(work.is_visible());
            }
        });
    });
}

/// A later change of the word by another thread does not cut the first inserter off.
#[test]
fn publication_survives_another_key_in_the_same_word() {
    loom::model(|| {
        let (filter, work) = (Arc::new(FILTERS[0]()), Arc::new(Work::new()));
        let other = Arc::clone(&filter);
        let other = thread::spawn(move || other.insert(&B));
        beside(work_and_insert(&filter, &work), move || {
            if filter.contains(&A) {
                assert!(work.is_visible());
            }
        });
        other.join().unwrap();
    });
}

/// Also where the insert that happened before found the bits there and wrote nothing.
#[test]
fn no_false_negative_after_an_insert_that_happened_before() {
    for_each_filter(|filter| {
        let inserted = Arc::new(AtomicBool::new(false));
        let first = Arc::clone(&filter);
        let first = thread::spawn(move || first.insert(&A));
        let second = {
            share!(filter, inserted);
            move || {
                filter.insert(&A);
                inserted.store(true, Ordering::Release);
            }
        };
        beside(second, move || {
            if inserted.load(Ordering::Acquire) {
                assert!(filter.contains(&A));
                assert!(!filter.insert(&A));
            }
        });
        first.join().unwrap();
    });
}

#[test]
fn a_union_beside_inserts_loses_nothing_and_publishes() {
    for_each_filter(|all| {
        let part = GuavaBloom::clone(&all);
        part.insert(&A);
        let (inserting, uniting) = (Arc::clone(&all), Arc::clone(&all));
        let changed = beside(move || inserting.insert(&B), move || uniting.union_from(&part).unwrap());
        assert_eq!(changed, (true, true));
        assert!(all.contains(&A) && all.contains(&B));
    });
    loom::model(|| {
        // In this order, for the reason that `whole.rs` gives.
        let (part, all, work) = (Arc::new(FILTERS[0]()), Arc::new(FILTERS[0]()), Arc::new(Work::new()));
        let inserter = thread::spawn(work_and_insert(&part, &work));
        let uniter = {
            share!(all);
            move || {
                all.union_from(&part).unwrap();
            }
        };
        beside(uniter, move || {
            if all.contains(&A) {
                assert!(work.is_visible());
            }
        });
        inserter.join().unwrap();
    });
}

/// A copy, and the stream: its reader sees all that its keys' inserters had done before.
#[test]
fn a_snapshot_holds_what_was_inserted_before_and_publishes_it() {
    for snapshot in [
        |live: &GuavaBloom| live.try_clone().unwrap(),
        |live: &GuavaBloom| GuavaBloom::from_bytes(&live.to_bytes()).unwrap().0,
        |live: &GuavaBloom| {
            let mut stream = Vec::new();
            live.write_to(&mut stream).unwrap();
            GuavaBloom::read_from(&stream[..], 64).unwrap()
        },
    ] {
        for_each_filter(move |live| {
            let work = Arc::new(Work::new());
            live.insert(&B);
            beside(work_and_insert(&live, &work), move || {
                // Made by a thread of its own, and asked only after the work was read, since a
                // lookup orders memory too.
                let copy = thread::spawn(move || snapshot(&live)).join().unwrap();
                let visible = work.is_visible();
                assert!(copy.contains(&B));
                assert!(visible || !copy.contains(&A));
            });
        });
    }
}

/// A guard of such a filter: as those of `guard.rs`.
#[test]
fn an_insert_that_races_with_a_rebuild_of_a_guard_is_not_lost() {
    loom::model(move || {
        let guard = Arc::new(CacheGuard::<u64, _>::new(FILTERS[0]()));
        let store_has_it = Arc::new(Work::new());
        let (adding, rebuilding) = (Arc::clone(&guard), Arc::clone(&guard));
        let adder = {
            share!(store_has_it);
            move || {
                store_has_it.do_it();
                adding.insert(&A);
                assert!(adding.check(&A).is_some());
            }
        };
        beside(adder, move || {
            let rebuild = rebuilding.rebuild(FILTERS[0]()).unwrap();
            rebuild.insert_all(store_has_it.is_visible().then_some(A));
            rebuild.commit().unwrap();
        });
        assert!(guard.check(&A).is_some());
    });
}
