//! Folds: a smaller filter with the same keys.

use crate::{bloom, counting, numbers};
use lanebloom::internal::instruction_sets;
use lanebloom::{BuildError, ConcurrentBloom, Membership};
use lanebloom_tests::{LAYOUTS, RATES, hit_rate, lookups_agree};

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
                folded.exclusive().fold(factor).unwrap();
                assert!(folded == built, "{factor} to {small}");
                assert_eq!((folded.layout().blocks, folded.memory_bytes()), (small, 64 * small));
                assert_eq!(folded.false_positive_rate_at(77), built.false_positive_rate_at(77));
                assert_eq!(
                    folded.statistics().false_positive_rate,
                    built.statistics().false_positive_rate
                );
                assert!(
                    folded.snapshot().to_vec() == built.snapshot().to_vec(),
                    "{factor} to {small}"
                );
                assert!(keys.iter().all(|key| folded.contains(key)));
                for isa in instruction_sets() {
                    let mut folded = $sized(small * factor).with_isa(isa);
                    folded.insert_all(&keys);
                    folded.exclusive().fold(factor).unwrap();
                    lookups_agree(&folded, &[&keys[..], &numbers(99, 200)].concat(), 1);
                    folded.insert_all(numbers(98, 100));
                    built.insert_all(numbers(98, 100));
                    assert_eq!(folded.statistics().fill_ratio, built.statistics().fill_ratio);
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
    filter.exclusive().fold(8).unwrap();
    assert!(go.iter().all(|key| filter.remove(key)));
    assert!(stay.iter().all(|key| filter.contains(key)));
    let mut kept = kept;
    kept.exclusive().fold(8).unwrap();
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
            filter.exclusive().fold(2).unwrap();
            assert_eq!(filter.expected_keys(), keys >> halved);
            assert!((0.97 * promised..=promised).contains(&filter.false_positive_rate()));
        }
        // With the expected keys of the larger filter.
        filter.insert_all(numbers(1, keys));
        assert!(filter.statistics().is_overfull);
    }
    let mut one = ConcurrentBloom::builder().expected_keys(1).build().unwrap();
    one.exclusive().fold(1).unwrap();
    assert_eq!(one.expected_keys(), 1);
}

#[test]
fn a_fold_by_no_divisor_is_refused() {
    let refused = |mut filter: ConcurrentBloom, factor| {
        filter.insert("a");
        let before = filter.clone();
        let error = filter.exclusive().fold(factor).unwrap_err();
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
            let factor = folded.exclusive().fold_to_rate(target).unwrap();
            let rate = folded.statistics().false_positive_rate;
            let mut same = filter.clone();
            same.exclusive().fold(factor).unwrap();
            assert!(factor > 1 && same == folded && rate <= target, "{factor}: {rate}");
            assert!(numbers(5, keys).iter().all(|key| folded.contains(key)));
            // The measured rate is within 4 standard deviations of the computed one.
            let measured = hit_rate(&folded, 20_000);
            let noise = 4.0 * (rate / 20_000.0).sqrt() + 1.0 / 20_000.0;
            assert!((measured - rate).abs() <= noise, "{measured} {rate}");
            // The promise is the target, up to a key.
            let planned = folded.expected_keys();
            assert!(folded.false_positive_rate() <= target);
            assert!(folded.false_positive_rate_at(planned + 1) > target);
            assert!(!folded.statistics().is_overfull);
            // It was the largest factor.
            for larger in factor + 1..=blocks {
                let mut more = filter.clone();
                if more.exclusive().fold(larger).is_ok() {
                    assert!(more.statistics().false_positive_rate > target, "{larger}, not {factor}");
                }
            }
            assert_eq!(folded.exclusive().fold_to_rate(target), Ok(1));
            let expected = filter.expected_keys();
            let mut full = filter.clone();
            full.insert_all(numbers(6, 2 * expected));
            assert_eq!(full.exclusive().fold_to_rate(0.01), Ok(1));
            assert_eq!(
                (full.expected_keys(), full.layout().blocks),
                (expected, blocks * $lines)
            );
            // An empty filter has every rate.
            let mut empty = $sized(blocks * $lines);
            assert_eq!(empty.exclusive().fold_to_rate(1e-9), Ok(blocks));
            assert!(empty.layout().blocks == $lines && empty.is_empty() && empty.expected_keys() >= 1);
            for wrong in [0.0, 1.0, -1.0, f64::NAN] {
                let before = full.clone();
                let error: BuildError = full.exclusive().fold_to_rate(wrong).unwrap_err();
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
    // So that both types have blocks for bits or counters of as many keys.
    folds_to_rate!(1, |blocks| {
        let mut filter = counting(blocks * 4, 4);
        filter.exclusive().fold(4).unwrap();
        filter
    });
}
