//! Operations on whole filters: folds, sets of keys, and the verdict about the rate.

use lanebloom::internal::{WithIsa, instruction_sets};
use lanebloom::{BuildError, Builder, ConcurrentBloom, CountingBloom, ScalableBloom, TombstoneBloom};
use lanebloom_tests::{LAYOUTS, RATES, hit_rate, lookups_agree, number};
use std::collections::HashSet;

fn numbers(seed: u64, keys: usize) -> Vec<u64> {
    (0..keys as u64).map(|i| number(seed << 32 | i)).collect()
}

fn bloom(blocks: usize, lines: usize, words: usize) -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    builder.lines_per_key(lines).words_per_key(words).build().unwrap()
}

fn counting(blocks: usize, words: usize) -> CountingBloom {
    let builder = CountingBloom::builder().memory_budget(64 * blocks);
    builder.words_per_key(words).build().unwrap()
}

/// Folded filters beside filters that had so few blocks from the beginning: the same bytes, with
/// few keys and with far too many.
macro_rules! folds {
    ($lines:expr, $sized:expr) => {
        for factor in [1, 2, 3, 8, 30] {
            for (small, keys) in [(1, 4), (2, 150), (9, 300)] {
                let small = small * $lines;
                let keys = numbers(factor as u64, keys);
                let (mut folded, built) = ($sized(small * factor), $sized(small));
                // Some keys several times, for the counters.
                for (i, key) in keys.iter().enumerate() {
                    for _ in 0..1 + i % 7 {
                        folded.insert(key);
                        built.insert(key);
                    }
                }
                folded.fold(factor).unwrap();
                assert!(folded == built, "{factor} to {small}");
                assert_eq!((folded.blocks(), folded.memory_bytes()), (small, 64 * small));
                assert_eq!(folded.false_positive_rate_at(77), built.false_positive_rate_at(77));
                assert_eq!(
                    folded.current_false_positive_rate(),
                    built.current_false_positive_rate()
                );
                assert!(folded.to_bytes() == built.to_bytes(), "{factor} to {small}");
                assert!(keys.iter().all(|key| folded.contains(key)));
                for isa in instruction_sets() {
                    let mut folded = $sized(small * factor).with_isa(isa);
                    folded.insert_all(&keys);
                    folded.fold(factor).unwrap();
                    lookups_agree(&folded, &[&keys[..], &numbers(99, 200)].concat(), 1);
                    folded.insert_all(numbers(98, 100));
                    built.insert_all(numbers(98, 100));
                    assert_eq!(folded.fill_ratio(), built.fill_ratio());
                }
            }
        }
    };
}

#[test]
fn a_folded_filter_is_the_smaller_one_with_the_same_keys() {
    for (lines, words) in LAYOUTS {
        folds!(lines, |blocks| bloom(blocks, lines, words));
    }
    for words in [1, 2, 4, 8] {
        folds!(1, |blocks| counting(blocks, words));
    }
}

#[test]
fn keys_can_be_removed_after_a_fold() {
    let mut filter = counting(8 * 5, 4);
    let (stay, go) = (numbers(1, 100), numbers(2, 100));
    filter.insert_all(&stay);
    let kept = filter.clone();
    filter.insert_all(&go);
    filter.fold(8).unwrap();
    assert!(go.iter().all(|key| filter.remove(key)));
    assert!(stay.iter().all(|key| filter.contains(key)));
    let mut kept = kept;
    kept.fold(8).unwrap();
    assert!(filter == kept);
}

/// A filter for any number of keys promises the same rate for a part of them.
#[test]
fn a_fold_keeps_the_promised_rate() {
    for rate in RATES {
        let builder = ConcurrentBloom::builder()
            .memory_budget(64 * 1024)
            .false_positive_rate(rate);
        let mut filter = builder.build().unwrap();
        let (keys, promised) = (filter.expected_keys(), filter.false_positive_rate());
        for halved in 1..=3 {
            filter.fold(2).unwrap();
            assert_eq!(filter.expected_keys(), keys >> halved);
            assert!((0.97 * promised..=promised).contains(&filter.false_positive_rate()));
        }
        // With the expected keys of the larger filter.
        filter.insert_all(numbers(1, keys));
        assert!(filter.is_overfull());
    }
    let mut one = ConcurrentBloom::builder().expected_keys(1).build().unwrap();
    one.fold(1).unwrap();
    assert_eq!(one.expected_keys(), 1);
}

#[test]
fn a_fold_by_no_divisor_is_refused() {
    let refused = |mut filter: ConcurrentBloom, factor| {
        filter.insert("a");
        let before = filter.clone();
        let error = filter.fold(factor).unwrap_err();
        assert!(filter == before && !error.is_out_of_memory());
        error.to_string()
    };
    assert_eq!(
        refused(bloom(9, 1, 2), 2),
        "the 9 blocks cannot be folded by 2, which does not divide them"
    );
    assert_eq!(
        refused(bloom(10, 2, 2), 2),
        "the 5 blocks of each half cannot be folded by 2, which does not divide them"
    );
    assert_eq!(
        refused(bloom(4, 1, 2), 0),
        "the 4 blocks cannot be folded by 0, which does not divide them"
    );
    refused(bloom(4, 1, 2), 8);
    refused(bloom(4, 1, 2), usize::MAX);
}

macro_rules! folds_to_rate {
    ($lines:expr, $sized:expr) => {
        // 120 blocks have 16 divisors, 4 * 31 have 6.
        for (blocks, keys, target) in [(120, 100, 0.01), (120, 400, 0.2), (4 * 31, 200, 0.05)] {
            let filter = $sized(blocks * $lines);
            filter.insert_all(numbers(5, keys));
            let mut folded = filter.clone();
            let factor = folded.fold_to_rate(target).unwrap();
            let rate = folded.current_false_positive_rate();
            let mut same = filter.clone();
            same.fold(factor).unwrap();
            assert!(factor > 1 && same == folded && rate <= target, "{factor}: {rate}");
            assert!(numbers(5, keys).iter().all(|key| folded.contains(key)));
            // What it measures is within 4 standard deviations of what it says.
            let measured = hit_rate(&folded, 20_000);
            let noise = 4.0 * (rate / 20_000.0).sqrt() + 1.0 / 20_000.0;
            assert!((measured - rate).abs() <= noise, "{measured} {rate}");
            // The promise is the target, up to a key.
            let planned = folded.expected_keys();
            assert!(folded.false_positive_rate() <= target);
            assert!(folded.false_positive_rate_at(planned + 1) > target);
            assert!(!folded.is_overfull());
            // It was the largest factor.
            for larger in factor + 1..=blocks {
                let mut more = filter.clone();
                if more.fold(larger).is_ok() {
                    assert!(more.current_false_positive_rate() > target, "{larger}, not {factor}");
                }
            }
            assert_eq!(folded.fold_to_rate(target), Ok(1));
            let expected = filter.expected_keys();
            let mut full = filter.clone();
            full.insert_all(numbers(6, 2 * expected));
            assert_eq!(full.fold_to_rate(0.01), Ok(1));
            assert_eq!((full.expected_keys(), full.blocks()), (expected, blocks * $lines));
            // An empty filter has every rate.
            let mut empty = $sized(blocks * $lines);
            assert_eq!(empty.fold_to_rate(1e-9), Ok(blocks));
            assert!(empty.blocks() == $lines && empty.is_empty() && empty.expected_keys() >= 1);
            for wrong in [0.0, 1.0, -1.0, f64::NAN] {
                let before = full.clone();
                let error: BuildError = full.fold_to_rate(wrong).unwrap_err();
                assert!(error.to_string().ends_with("is not between 0 and 1, both excluded"));
                assert!(full == before);
            }
        }
    };
}

#[test]
fn a_fold_to_a_rate_goes_as_far_as_the_rate_allows() {
    for (lines, words) in LAYOUTS {
        folds_to_rate!(lines, |blocks| bloom(blocks, lines, words));
    }
    folds_to_rate!(1, |blocks| counting(blocks * 4, 4).tap_fold());
}

/// So that both types have blocks for bits or counters of as many keys.
trait TapFold {
    fn tap_fold(self) -> Self;
}

impl TapFold for CountingBloom {
    fn tap_fold(mut self) -> Self {
        self.fold(4).unwrap();
        self
    }
}

/// Random sets in small filters, beside the true sets. Each answer that is certain is right, and
/// each that may be by chance is the one that lookups of all keys give.
macro_rules! sets {
    ($lines:expr, $sized:expr) => {
        let mut disjoint_seen = 0;
        for round in 0..120u64 {
            let blocks = [1, 2, 3, 16][round as usize % 4] * $lines;
            let of = |seed: u64| {
                let share = 1 + number(round * 7 + seed) % 40;
                let chosen = |key: &u64| number(key ^ round << 20 ^ seed << 40) % share == 0;
                HashSet::from_iter((0..40u64).filter(chosen))
            };
            let (ours, mut theirs): (HashSet<u64>, HashSet<u64>) = (of(1), of(2));
            if round % 3 == 0 {
                theirs.extend(&ours);
            }
            let (mut a, b) = ($sized(blocks), $sized(blocks));
            a.insert_all(&ours);
            b.insert_all(&theirs);
            let before = a.clone();

            let subset = a.is_subset(&b).unwrap();
            assert_eq!(subset, ours.iter().all(|key| b.contains(key)));
            assert!(subset || !ours.is_subset(&theirs));
            assert_eq!(a.is_subset(&a), Ok(true));
            assert_eq!($sized(blocks).is_subset(&a), Ok(true));
            assert_eq!(a.is_subset(&$sized(blocks)), Ok(ours.is_empty()));

            let disjoint = a.is_disjoint(&b).unwrap();
            assert_eq!(b.is_disjoint(&a), Ok(disjoint));
            assert!(!disjoint || ours.is_disjoint(&theirs));
            let shared = (0..2000u64).find(|key| a.contains(key) && b.contains(key));
            assert!(!disjoint || shared.is_none(), "{shared:?}");
            assert_eq!(a.is_disjoint(&a), Ok(ours.is_empty()));
            assert_eq!(a.is_disjoint(&$sized(blocks)), Ok(true));
            disjoint_seen += usize::from(disjoint && !ours.is_empty() && !theirs.is_empty());

            let changed = a.intersection_from(&b).unwrap();
            assert_eq!(changed, a != before);
            assert!(!changed || !ours.is_subset(&theirs));
            for key in 0..400u64 {
                assert_eq!(a.contains(&key), before.contains(&key) && b.contains(&key), "{key}");
            }
            let rate = a.current_false_positive_rate();
            assert!(rate <= f64::min(before.current_false_positive_rate(), b.current_false_positive_rate()));
            assert_eq!(a.intersection_from(&b), Ok(false));
        }
        assert!(disjoint_seen >= 6, "{disjoint_seen}");
        // Two keys of a block seldom share a bit in every one of its parts. (With two words, 0.6 of
        // 499 keys do in the mean, and 7 share counters.)
        let alone = |key| {
            let filter = $sized($lines);
            filter.insert(&key);
            filter
        };
        let one = alone(0u64);
        let shared = (1..500u64).filter(|&key| one.is_disjoint(&alone(key)) == Ok(false));
        let (shared, words) = (shared.count(), one.words_per_key());
        assert!(shared <= if words == 1 { 80 } else { 20 }, "{shared}, {words} words");

        let (mut a, other) = ($sized(2 * $lines), $sized(4 * $lines));
        a.insert("a");
        let before = a.clone();
        for error in [
            a.is_subset(&other).unwrap_err(),
            a.is_disjoint(&other).unwrap_err(),
            a.intersection_from(&other).unwrap_err(),
        ] {
            assert!(error.to_string().starts_with("the other filter's layout differs:"));
        }
        assert!(a == before);
    };
}

#[test]
fn sets_answer_as_lookups_of_all_keys_would() {
    for (lines, words) in LAYOUTS {
        sets!(lines, |blocks| bloom(blocks, lines, words));
    }
    for words in [1, 2, 4, 8] {
        sets!(1, |blocks| counting(blocks, words));
    }
    let seeded = |seed| {
        let builder = ConcurrentBloom::builder().expected_keys(10).seed(seed);
        builder.build().unwrap()
    };
    assert!(seeded(1).is_subset(&seeded(2)).is_err() && seeded(1).is_subset(&seeded(1)).is_ok());
    assert!(seeded(1).estimated_union_len(&seeded(2)).is_err());
    assert!(seeded(1).estimated_intersection_len(&seeded(2)).is_err());
}

/// The figures of the documentation: at 1%, and with 4 keys per block.
#[test]
fn intersections_of_full_filters_have_the_documented_rates() {
    let filled = |seed, keys| {
        let filter = rated(ConcurrentBloom::builder(), 50_000, 0.01);
        filter.insert_all(numbers(seed, keys));
        filter
    };
    for (common, least, most) in [(0, 0.9e-4, 1.3e-4), (25_000, 1.1e-3, 1.5e-3)] {
        let (mut a, b) = (filled(1, 50_000 - common), filled(2, 50_000 - common));
        a.insert_all(numbers(3, common));
        b.insert_all(numbers(3, common));
        a.intersection_from(&b).unwrap();
        let rate = a.current_false_positive_rate();
        assert!((least..most).contains(&rate), "{common} in common: {rate}");
    }
    let rate = filled(1, 0).false_positive_rate_at(25_000);
    assert!((5.5e-4..5.7e-4).contains(&rate), "{rate}");
    let sparse = |seed| filled(seed, 4 * filled(1, 0).blocks());
    assert_eq!(sparse(1).is_disjoint(&sparse(2)), Ok(false));
}

/// What was inserted into both filters is removed from their intersection as often.
#[test]
fn an_intersection_of_counters_has_the_lesser_number_of_copies() {
    let (mut a, b) = (counting(4, 4), counting(4, 4));
    for _ in 0..3 {
        a.insert("a");
    }
    for _ in 0..2 {
        b.insert("a");
    }
    a.insert("b");
    assert_eq!(a.intersection_from(&b), Ok(true));
    assert!(a == b && a.remove("a") && a.remove("a") && !a.remove("a"));
    assert!(a.is_empty());
}

#[test]
fn unions_and_intersections_are_estimated_without_being_made() {
    for rate in RATES {
        let n = 20_000;
        let builder = ConcurrentBloom::builder().expected_keys(n).false_positive_rate(rate);
        for (i, (ours, theirs, common)) in [
            (0, 0, 0),
            (10, 10, 10),
            (5000, 9000, 0),
            (10_000, 8000, 4000),
            (20_000, 20_000, 10_000),
            (20_000, 20_000, 0),
            (20_000, 20_000, 20_000),
        ]
        .into_iter()
        .enumerate()
        {
            let (a, b) = (builder.clone().build().unwrap(), builder.clone().build().unwrap());
            let keys = numbers(40 + i as u64, ours + theirs);
            a.insert_all(&keys[..ours]);
            b.insert_all(&keys[ours - common..][..theirs]);
            let both = a.estimated_intersection_len(&b).unwrap();
            let either = a.estimated_union_len(&b).unwrap();
            assert_eq!(b.estimated_intersection_len(&a), Ok(both));
            let union = a.clone();
            union.union_from(&b).unwrap();
            assert_eq!(union.estimated_len(), either);
            assert_eq!((a.estimated_len() + b.estimated_len()).saturating_sub(either), both);
            // Four of the documented standard errors.
            let most = 0.5 + 4.0 * 0.5 * (ours.max(theirs) as f64).sqrt();
            assert!(both.abs_diff(common) as f64 <= most, "{rate}: {both} of {common}");
        }
    }
}

fn rated<E: lanebloom::traits::Planned>(builder: Builder<E>, keys: usize, rate: f64) -> lanebloom::Filter<E> {
    builder.expected_keys(keys).false_positive_rate(rate).build().unwrap()
}

/// With the expected keys: no. With six square roots more: yes, nearly always.
#[test]
fn a_filter_is_overfull_when_it_has_too_many_keys() {
    let mut unnoticed = 0;
    for rate in RATES {
        for keys in [10, 100, 1000, 20_000] {
            let more = (6.0 * (keys as f64).sqrt()) as usize;
            for round in 0..20 {
                let filter = rated(ConcurrentBloom::builder(), keys, rate);
                assert!(!filter.is_overfull());
                let all = numbers(round, keys + more);
                filter.insert_hashes(&all[..keys]);
                assert!(!filter.is_overfull(), "{keys} keys at {rate}, round {round}");
                filter.insert_hashes(&all[keys..]);
                unnoticed += usize::from(!filter.is_overfull());
            }
        }
    }
    assert!(unnoticed <= 560 / 20, "{unnoticed} of 560");
}

/// Keys that fall into few blocks raise the rate, though they are few.
#[test]
fn a_filter_is_overfull_when_hashes_are_bad() {
    let filter = rated(ConcurrentBloom::builder(), 10_000, 0.01);
    filter.insert_hashes(&numbers(1, 5000).iter().map(|hash| hash >> 5).collect::<Vec<_>>());
    assert!(filter.is_overfull() && filter.estimated_len() < 5000);
}

#[test]
fn every_type_says_when_it_is_overfull() {
    let all = numbers(1, 4000);
    let counting = rated(CountingBloom::builder(), 2000, 0.01);
    counting.insert_hashes(&all[..2000]);
    assert!(!counting.is_overfull());
    counting.insert_hashes(&all[2000..]);
    assert!(counting.is_overfull());
    counting.remove_hashes(&all[2000..]);
    assert!(!counting.is_overfull());

    // Either filter of a pair.
    let builder = TombstoneBloom::builder().expected_removals(100);
    let pair = rated(builder, 2000, 0.01);
    pair.insert_hashes(&all[..2000]);
    pair.remove_hashes(&all[..100]);
    assert!(!pair.is_overfull());
    let added = pair.clone();
    added.insert_hashes(&all[2000..]);
    assert!(added.is_overfull());
    pair.remove_hashes(&all[100..300]);
    assert!(pair.is_overfull());

    // One that grows keeps its promise.
    for keys in [1, 10, 1000] {
        let growing = rated(ScalableBloom::builder(), keys, 0.01);
        growing.insert_hashes(&numbers(keys as u64, 20_000)).unwrap();
        assert!(!growing.is_overfull(), "{keys}");
    }

    // The bytes of a snapshot say what the filter says.
    let filter = rated(ConcurrentBloom::builder(), 2000, 0.01);
    filter.insert_hashes(&all);
    let bytes = filter.to_bytes();
    let (view, _) = lanebloom::BloomView::from_bytes(&bytes).unwrap();
    assert!(view.is_overfull());
}
