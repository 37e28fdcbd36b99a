//! The promises of filters as sets, and of folds, for every filter of blocks. `sized` makes a
//! filter of a number of lines of memory for each line that a key has.

use crate::{found, hit_rate, number};
use lanebloom::hash::FilterHasher;
use lanebloom::internal::Sets;
use lanebloom::internal::traits::Insert;
use lanebloom::{Exclusive, Filter, Key, KeyHasher, Pair};
use std::collections::HashSet;

fn filled<E: Insert, S, K: Key<S>>(filter: Filter<E, S>, keys: impl IntoIterator<Item = K>) -> Filter<E, S> {
    filter.try_insert_all(keys).unwrap();
    filter
}

/// Random sets in small filters, beside the true sets. Each answer that is certain is right, and
/// each that may be by chance is the one that lookups of all keys give.
pub fn sets_answer_as_lookups_of_all_keys_would<E, S>(sized: impl Fn(usize) -> Filter<E, S>)
where
    E: Sets + Insert,
    S: FilterHasher + KeyHasher + Clone,
{
    let mut disjoint_seen = 0;
    for round in 0..120u64 {
        let blocks = [1, 2, 3, 16][round as usize % 4];
        let of = |seed: u64| {
            let share = 1 + number(round * 7 + seed) % 40;
            let chosen = |key: &u64| number(key ^ round << 20 ^ seed << 40) % share == 0;
            HashSet::from_iter((0..40u64).filter(chosen))
        };
        let (ours, mut theirs): (HashSet<u64>, HashSet<u64>) = (of(1), of(2));
        if round % 3 == 0 {
            theirs.extend(&ours);
        }
        let (mut a, b, none) = (
            filled(sized(blocks), &ours),
            filled(sized(blocks), &theirs),
            sized(blocks),
        );
        let before = a.clone();
        let subset = |a, b| Pair::of(a, b).unwrap().is_subset();
        assert_eq!(subset(&a, &b), ours.iter().all(|key| b.look_up(key)));
        assert!(subset(&a, &b) || !ours.is_subset(&theirs));
        assert!(subset(&a, &a) && subset(&none, &a));
        assert_eq!(subset(&a, &none), ours.is_empty());

        let disjoint = |a, b| Pair::of(a, b).unwrap().is_disjoint();
        let apart = disjoint(&a, &b);
        assert_eq!(disjoint(&b, &a), apart);
        assert!(!apart || ours.is_disjoint(&theirs));
        let shared = (0..2000u64).find(|key| a.look_up(key) && b.look_up(key));
        assert!(!apart || shared.is_none(), "{shared:?}");
        assert_eq!(disjoint(&a, &a), ours.is_empty());
        assert!(disjoint(&a, &none));
        disjoint_seen += usize::from(apart && !ours.is_empty() && !theirs.is_empty());

        let changed = Exclusive::of(&mut a).intersection_from(&b).unwrap();
        assert_eq!(changed, a != before);
        assert!(!changed || !ours.is_subset(&theirs));
        for key in 0..400u64 {
            assert_eq!(a.look_up(&key), before.look_up(&key) && b.look_up(&key), "{key}");
        }
        let [rate, one, other] = [&a, &before, &b].map(|filter| filter.statistics().false_positive_rate);
        assert!(rate <= f64::min(one, other));
        assert_eq!(Exclusive::of(&mut a).intersection_from(&b), Ok(false));
    }
    assert!(disjoint_seen >= 6, "{disjoint_seen}");

    let (mut a, other) = (filled(sized(2), ["a"]), sized(4));
    let before = a.clone();
    for error in [
        Pair::of(&a, &other).map(drop).unwrap_err(),
        Exclusive::of(&mut a).intersection_from(&other).unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("the other filter's layout differs:"));
    }
    assert!(a == before);
}

pub fn a_fold_to_a_rate_goes_as_far_as_the_rate_allows<E, S>(sized: impl Fn(usize) -> Filter<E, S>)
where
    E: Sets + Insert,
    S: FilterHasher + KeyHasher + Clone,
{
    let numbers = |seed: u64, keys: u64| (0..keys).map(|i| number(seed << 32 | i)).collect::<Vec<_>>();
    // 120 blocks have 16 divisors, 4 * 31 have 6.
    for (lines, keys, target) in [(120, 100, 0.01), (120, 400, 0.2), (4 * 31, 200, 0.05)] {
        let keys = numbers(5, keys);
        let filter = filled(sized(lines), &keys);
        let (blocks, _) = filter.engine().blocks_to_fold();
        let mut folded = filter.clone();
        let factor = Exclusive::of(&mut folded).fold_to_rate(target).unwrap();
        let rate = folded.statistics().false_positive_rate;
        let mut same = filter.clone();
        Exclusive::of(&mut same).fold(factor).unwrap();
        assert!(factor > 1 && same == folded && rate <= target, "{factor}: {rate}");
        assert_eq!(found(&folded, &keys), vec![true; keys.len()]);
        // The measured rate is within 4 standard deviations of the computed one.
        let measured = hit_rate(&folded, 20_000);
        let noise = 4.0 * (rate / 20_000.0).sqrt() + 1.0 / 20_000.0;
        assert!((measured - rate).abs() <= noise, "{measured} {rate}");
        // The promise is the target, up to a key.
        assert!(folded.false_positive_rate() <= target && !folded.statistics().is_overfull);
        assert!(folded.engine().false_positive_rate_at(folded.expected_keys() + 1) > target);
        // It was the largest factor.
        for larger in factor + 1..=blocks {
            let mut more = filter.clone();
            if Exclusive::of(&mut more).fold(larger).is_ok() {
                assert!(more.statistics().false_positive_rate > target, "{larger}, not {factor}");
            }
        }
        assert_eq!(Exclusive::of(&mut folded).fold_to_rate(target), Ok(1));
        let mut full = filled(filter.clone(), numbers(6, 3 * filter.expected_keys() as u64));
        let before = full.clone();
        assert_eq!(Exclusive::of(&mut full).fold_to_rate(0.01), Ok(1));
        for wrong in [0.0, 1.0, -1.0, f64::NAN] {
            let error = Exclusive::of(&mut full).fold_to_rate(wrong).unwrap_err();
            assert!(error.to_string().ends_with("is not between 0 and 1, both excluded"));
        }
        assert!(full == before && full.expected_keys() == filter.expected_keys());
        // An empty filter has every rate.
        let mut empty = sized(lines);
        assert_eq!(Exclusive::of(&mut empty).fold_to_rate(1e-9), Ok(blocks));
        assert!(empty.engine().blocks_to_fold().0 == 1 && empty.is_empty() && empty.expected_keys() >= 1);
    }
}
