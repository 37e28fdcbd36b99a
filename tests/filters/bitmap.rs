//! `ConcurrentBitmap` beside a `BTreeSet`, and with real threads.

use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom_tests::{STRESS_KEYS, answers_agree, number, together};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(u64),
    InsertBatch(Vec<u64>),
    InsertFlagged(Vec<u64>),
    RemoveBatch(Vec<u64>),
    InsertWords(usize, Vec<u64>),
    InsertRange(u64, u64),
    RemoveRange(u64, u64),
    Claim(u64, u64),
    Union(Vec<u64>),
    Intersection(Vec<u64>),
    Difference(Vec<u64>),
    Search(u64, u64),
    Lookups(Vec<u64>),
    Save,
}

/// Steps of a set below `bound`, with some positions beyond it, and many about the ends of words
/// and of the set.
fn steps(bound: u64) -> impl Strategy<Value = Vec<Step>> {
    use Step::*;
    let ends = move || (0..=bound / 64 + 1, 0..3u64).prop_map(|(word, more)| (64 * word + more).saturating_sub(1));
    let place = move || prop_oneof![0..=bound + 70, ends(), bound.saturating_sub(1)..=bound];
    let places = move || prop::collection::vec(place(), 0..150);
    let inside = move || prop::collection::vec(0..bound.max(1), 0..150);
    let sparse = prop_oneof![Just(0), (0..64).prop_map(|i| 1u64 << i), any::<u64>()];
    let step = prop_oneof![
        place().prop_map(Insert),
        place().prop_map(Remove),
        prop_oneof![inside(), places()].prop_map(InsertBatch),
        prop_oneof![inside(), places()].prop_map(InsertFlagged),
        places().prop_map(RemoveBatch),
        (0..4usize, prop::collection::vec(sparse, 0..4)).prop_map(|(first, words)| InsertWords(first, words)),
        (place(), place()).prop_map(|(a, b)| InsertRange(a, b)),
        (place(), place()).prop_map(|(a, b)| RemoveRange(a, b)),
        (place(), place()).prop_map(|(a, b)| Claim(a, b)),
        inside().prop_map(Union),
        inside().prop_map(Intersection),
        inside().prop_map(Difference),
        (place(), place()).prop_map(|(a, b)| Search(a, b)),
        places().prop_map(Lookups),
        Just(Save),
    ];
    prop::collection::vec(step, 1..40)
}

/// The positions of the list that are below the bound.
fn below(positions: Vec<u64>, bound: u64) -> BTreeSet<u64> {
    positions.into_iter().filter(|&position| position < bound).collect()
}

fn filled(bound: u64, positions: &BTreeSet<u64>) -> ConcurrentBitmap {
    let set = ConcurrentBitmap::new(bound).unwrap();
    let positions: Vec<u64> = positions.iter().copied().collect();
    assert_eq!(set.insert_batch(&positions), Ok(positions.len()));
    set
}

fn step(set: &mut ConcurrentBitmap, model: &mut BTreeSet<u64>, step: Step) {
    let bound = set.bound();
    match step {
        Step::Insert(at) if at < bound => assert_eq!(set.insert(at), Ok(model.insert(at))),
        Step::Insert(at) => assert_eq!(set.insert(at).unwrap_err().position(), at),
        Step::Remove(at) => assert_eq!(set.remove(at), model.remove(&at)),
        Step::InsertBatch(all) => match all.iter().find(|&&at| at >= bound) {
            Some(&at) => assert_eq!(set.insert_batch(&all).unwrap_err().position(), at),
            None => {
                let new = all.iter().filter(|&&at| model.insert(at)).count();
                assert_eq!(set.insert_batch(&all), Ok(new));
            }
        },
        Step::InsertWords(first, words) => {
            let bits = |(i, word): (usize, &u64)| {
                let (word, begin) = (*word, 64 * (first + i) as u64);
                (0..64).filter(move |i| word >> i & 1 == 1).map(move |i| begin + i)
            };
            let all: Vec<u64> = words.iter().enumerate().flat_map(bits).collect();
            match all.last() {
                Some(&at) if at >= bound => {
                    assert_eq!(set.insert_words(first, &words).unwrap_err().position(), at);
                }
                _ => {
                    let new = all.iter().filter(|&&at| model.insert(at)).count();
                    assert_eq!(set.insert_words(first, &words), Ok(new as u64));
                }
            }
            // Reads them again, with words beyond the end.
            let mut copy = vec![u64::MAX; words.len() + 2];
            set.read_words(first, &mut copy);
            for (i, word) in copy.into_iter().enumerate() {
                let begin = 64 * (first + i) as u64;
                let there = model.range(begin..begin + 64).map(|at| 1 << (at - begin)).sum::<u64>();
                assert_eq!(word, there);
            }
        }
        Step::InsertFlagged(all) => {
            let mut flags = vec![true; all.len()];
            let inserted = set.insert_batch_into(&all, &mut flags);
            if all.iter().all(|&at| at < bound) {
                let new: Vec<bool> = all.iter().map(|&at| model.insert(at)).collect();
                assert_eq!(inserted, Ok(new.iter().filter(|new| **new).count()));
                assert_eq!(flags, new);
            } else {
                assert!(inserted.is_err());
            }
        }
        Step::RemoveBatch(all) => {
            let gone = all.iter().filter(|at| model.remove(at)).count();
            assert_eq!(set.remove_batch(&all), gone);
        }
        Step::InsertRange(from, to) => {
            let new = (from..to).filter(|at| !model.contains(at)).count() as u64;
            if from < to && to > bound {
                assert_eq!(set.insert_range(from..to).unwrap_err().position(), to - 1);
            } else {
                model.extend(from..to);
                assert_eq!(set.insert_range(from..to), Ok(new));
            }
        }
        Step::RemoveRange(from, to) => {
            let gone: Vec<u64> = model.iter().copied().filter(|at| (from..=to).contains(at)).collect();
            gone.iter().for_each(|at| {
                model.remove(at);
            });
            assert_eq!(set.remove_range(from..=to), gone.len() as u64);
        }
        Step::Claim(from, to) => {
            let free = (from..to.min(bound)).find(|at| !model.contains(at));
            assert_eq!(set.claim_free(from..to), free);
            model.extend(free);
        }
        Step::Union(all) => {
            let all = below(all, bound);
            assert_eq!(set.union_from(&filled(bound, &all)), Ok(!all.is_subset(model)));
            model.extend(all);
        }
        Step::Intersection(all) => {
            let all = below(all, bound);
            assert_eq!(set.intersection_from(&filled(bound, &all)), Ok(!model.is_subset(&all)));
            model.retain(|at| all.contains(at));
        }
        Step::Difference(all) => {
            let all = below(all, bound);
            assert_eq!(set.difference_from(&filled(bound, &all)), Ok(!model.is_disjoint(&all)));
            model.retain(|at| !all.contains(at));
        }
        Step::Search(from, to) => {
            let inside = |at: &&u64| (from..to).contains(*at);
            assert!(set.range(from..to).eq(model.iter().filter(inside).copied()));
            assert_eq!(set.len_of(from..to), model.iter().filter(inside).count() as u64);
            assert_eq!(set.contains_range(from..to), (from..to).all(|at| model.contains(&at)));
            assert_eq!(set.first_present(from), model.iter().copied().find(|&at| at >= from));
            assert_eq!(set.first_free(from), (from..bound).find(|at| !model.contains(at)));
        }
        Step::Lookups(all) => {
            let expected: Vec<bool> = all.iter().map(|at| model.contains(at)).collect();
            answers_agree(&expected, 0, |_, out| set.contains_batch(&all, out));
            assert!(all.iter().map(|&at| set.contains(at)).eq(expected));
        }
        Step::Save => {
            let (same, rest) = ConcurrentBitmap::from_bytes(&set.snapshot().to_vec())
                .map(|(set, rest)| (set, rest.len()))
                .unwrap();
            assert!(same == *set && rest == 0 && set.try_clone().unwrap() == same);
            *set = same;
        }
    }
    assert!(set.iter().eq(model.iter().copied()));
    assert_eq!((set.len(), set.is_empty()), (model.len() as u64, model.is_empty()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 256 }))]
    #[test]
    fn it_does_what_a_set_does(
        (bound, steps) in prop_oneof![Just(0), 1..70u64, 500..515u64, 1000..2000u64].prop_flat_map(|bound| (Just(bound), steps(bound)))
    ) {
        let mut set = ConcurrentBitmap::new(bound).unwrap();
        let mut model = BTreeSet::new();
        for one in steps {
            step(&mut set, &mut model, one);
        }
    }
}

/// Larger than what is answered without prefetching, in batches of every length.
#[test]
fn a_large_set_answers_in_batches() {
    const BOUND: u64 = 40_000_000;
    let set = ConcurrentBitmap::new(BOUND).unwrap();
    let positions: Vec<u64> = (0..STRESS_KEYS as u64).map(|i| number(i) % BOUND).collect();
    let model: BTreeSet<u64> = positions.iter().copied().collect();
    assert_eq!(set.insert_batch(&positions), Ok(model.len()));
    for len in (0..200).chain([1000, 1023]) {
        let mut asked: Vec<u64> = positions[..len].iter().map(|at| at + at % 2).collect();
        if len > 3 {
            asked[len / 2] = u64::MAX;
        }
        let mut found = vec![false; len];
        set.contains_batch(&asked, &mut found);
        assert!(
            asked.iter().zip(found).all(|(at, found)| model.contains(at) == found),
            "{len}"
        );
    }
    assert_eq!(set.len(), model.len() as u64);
    assert!(set.iter().eq(model.iter().copied()));
    assert_eq!(set.remove_batch(&positions), model.len());
    assert!(set.is_empty());
}

#[test]
fn ranges_of_every_kind_mean_what_they_say() {
    let set = ConcurrentBitmap::new(200).unwrap();
    let backward = std::ops::Range { start: 300, end: 100 };
    assert_eq!(set.insert_range(..), Ok(200));
    assert_eq!(set.insert_range(backward.clone()), Ok(0));
    assert_eq!(set.insert_range(0..=200).unwrap_err().position(), 200);
    assert_eq!(set.insert_range(500..).unwrap_or(7), 0);
    assert_eq!(set.remove_range(60..=70), 11);
    assert_eq!(
        (set.len_of(500..), set.len_of(60..71), set.len_of(..=u64::MAX)),
        (0, 0, 189)
    );
    assert_eq!(set.claim_free(65..), Some(65));
    assert!(set.contains_range(backward) && !set.contains_range(199..201));
    let empty = ConcurrentBitmap::new(0).unwrap();
    assert_eq!(
        (empty.claim_free(..), empty.first_free(0), empty.memory_bytes()),
        (None, None, 0)
    );
    assert!(empty.insert(0).is_err() && !empty.remove(0) && !empty.contains(0));
    let mut found = [true];
    empty.contains_batch(&[0], &mut found);
    assert!(!found[0]);
}

/// No bound has the greatest number below it.
#[test]
fn a_range_that_ends_with_the_greatest_number_exceeds_every_bound() {
    for bound in [0, 1, 64, 200] {
        let set = ConcurrentBitmap::new(bound).unwrap();
        set.insert_range(..).unwrap();
        for start in [u64::MAX, u64::MAX - 1, bound, bound.saturating_sub(1), 0] {
            assert!(!set.contains_range(start..=u64::MAX), "{start}, {bound}");
            let error = set.insert_range(start..=u64::MAX).unwrap_err();
            assert_eq!(error.position(), u64::MAX);
            let inside = bound.saturating_sub(start);
            assert_eq!(set.len_of(start..=u64::MAX), inside);
            assert_eq!(set.range(start..=u64::MAX).count() as u64, inside);
            assert_eq!(set.claim_free(start..=u64::MAX), None);
        }
        assert_eq!(set.remove_range(u64::MAX..=u64::MAX), 0);
        let greatest = (Bound::Excluded(u64::MAX), Bound::Unbounded);
        for empty in [(Bound::Included(u64::MAX), Bound::Excluded(u64::MAX)), greatest] {
            assert!(set.contains_range(empty));
            assert_eq!(set.insert_range(empty), Ok(0));
        }
        assert_eq!(set.remove_range(..=u64::MAX), bound);
        assert!(set.is_empty());
    }
}

/// At the end of a word, of a line and of a bound, each operation has the last position.
#[test]
fn the_last_position_belongs_to_the_range() {
    let bounds = [1, 63, 64, 65, 127, 128, 129, 511, 512, 513];
    for (bound, start) in bounds.into_iter().flat_map(|bound| [(bound, 0), (bound, bound - 1)]) {
        let (set, last, len) = (ConcurrentBitmap::new(bound).unwrap(), bound - 1, bound - start);
        assert_eq!(set.insert_range(start..bound), Ok(len));
        assert!(set.contains(last) && set.contains_range(start..=last) && set.range(start..=last).eq(start..bound));
        assert!(set.remove(last) && !set.contains_range(start..bound) && set.len_of(start..bound) == len - 1);
        assert_eq!(
            (set.first_free(start), set.claim_free(start..bound)),
            (Some(last), Some(last))
        );
        assert_eq!((set.first_free(start), set.claim_free(start..)), (None, None));
        assert_eq!((set.len_of(start..=last), set.remove_range(start..bound)), (len, len));
        assert!(set.is_empty());
    }
}

/// Every position has one winner, however many threads ask for it and in which way.
#[test]
fn a_position_is_claimed_once() {
    const BOUND: u64 = STRESS_KEYS as u64;
    const THREADS: usize = 4;
    let set = ConcurrentBitmap::new(BOUND).unwrap();
    let won = together(THREADS, |thread| {
        let start = BOUND / THREADS as u64 * thread as u64;
        let order: Vec<u64> = (start..BOUND).chain(0..start).collect();
        let mut won = Vec::new();
        for (i, chunk) in order.chunks(100).enumerate() {
            match (i + thread) % 3 {
                0 => won.extend(chunk.iter().filter(|&&at| set.insert(at).unwrap())),
                1 => {
                    let mut claimed = [false; 100];
                    set.insert_batch_into(chunk, &mut claimed[..chunk.len()]).unwrap();
                    won.extend(
                        chunk
                            .iter()
                            .zip(claimed)
                            .filter(|(_, claimed)| *claimed)
                            .map(|(at, _)| at),
                    );
                }
                _ => won.extend((0..50).map_while(|_| set.claim_free(chunk[0]..))),
            }
        }
        won
    });
    // The positions outside all threads' chunks are still free.
    let mut all: Vec<u64> = won.into_iter().flatten().collect();
    all.extend(std::iter::from_fn(|| set.claim_free(..)));
    all.sort_unstable();
    assert!(all.into_iter().eq(0..BOUND));
}

/// A claim is a lock: a plain counter behind it loses no step.
#[test]
fn a_claim_orders_like_a_lock() {
    const STEPS: u64 = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
    let set = ConcurrentBitmap::new(64).unwrap();
    let counter = AtomicU64::new(0);
    together(4, |_| {
        for _ in 0..STEPS {
            while !set.insert(3).unwrap() {
                std::thread::yield_now();
            }
            let before = counter.load(Ordering::Relaxed);
            counter.store(before + 1, Ordering::Relaxed);
            assert!(set.remove(3));
        }
    });
    assert_eq!(counter.into_inner(), 4 * STEPS);
}

/// Beside the operations of whole sets, no position is lost that nobody removes, and none comes
/// that nobody inserts.
#[test]
fn whole_sets_beside_inserts() {
    const BOUND: u64 = 10_000;
    let set = ConcurrentBitmap::new(BOUND).unwrap();
    let odd = ConcurrentBitmap::new(BOUND).unwrap();
    (1..BOUND).step_by(2).for_each(|at| assert!(odd.insert(at).unwrap()));
    set.union_from(&odd).unwrap();
    together(4, |thread| match thread {
        0 => (0..BOUND / 4).for_each(|i| {
            set.insert(4 * i).unwrap();
        }),
        1 => (0..20).for_each(|_| {
            set.intersection_from(&odd).unwrap();
            set.union_from(&odd).unwrap();
        }),
        2 => (0..20).for_each(|_| {
            let seen = set.try_clone().unwrap();
            seen.intersection_from(&odd).unwrap();
            assert!(seen == odd);
            assert!(set.iter().all(|at| at % 2 == 1 || at % 4 == 0));
        }),
        _ => (0..20).for_each(|_| assert!(set.len() >= BOUND / 2)),
    });
    assert_eq!(set.difference_from(&odd), Ok(true));
    assert!(set.iter().all(|at| at % 4 == 0));
}

#[test]
fn errors_name_the_bounds_or_the_lack_of_memory() {
    let set = ConcurrentBitmap::new(100).unwrap();
    let error = set.insert(100).unwrap_err();
    assert_eq!(error.to_string(), "position 100 is not below the bound of 100");
    let error = set.union_from(&ConcurrentBitmap::new(99).unwrap()).unwrap_err();
    let text = "the other set's bound differs: 99 there, 100 here";
    assert_eq!(error.to_string(), text);
    assert!(ConcurrentBitmap::new(1 << 63).unwrap_err().is_out_of_memory());
}
