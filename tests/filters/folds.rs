//! Folds: a smaller filter with the same keys.

use crate::{bloom, counting, numbers};
use lanebloom::internal::instruction_sets;
use lanebloom::{ConcurrentBloom, Membership};
use lanebloom_tests::{LAYOUTS, RATES, lookups_agree};

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

#[test]
fn a_fold_to_a_rate_goes_as_far_as_the_rate_allows() {
    for (lines, words) in LAYOUTS {
        lanebloom_tests::a_fold_to_a_rate_goes_as_far_as_the_rate_allows(|blocks| bloom(blocks * lines, lines, words));
    }
    // So that both types have blocks for bits or counters of as many keys.
    lanebloom_tests::a_fold_to_a_rate_goes_as_far_as_the_rate_allows(|blocks| {
        let mut filter = counting(blocks * 4, 4);
        filter.exclusive().fold(4).unwrap();
        filter
    });
}
