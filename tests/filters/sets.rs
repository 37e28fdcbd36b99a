//! Filters as sets: subset, disjoint, intersection, and their estimates.

use crate::{bloom, counting, numbers, rated};
use lanebloom::{ConcurrentBloom, Membership};
use lanebloom_tests::{LAYOUTS, RATES, found};

/// Two keys of a block share one if they have the same sector and share a bit or a counter there,
/// in either half of a sector of eight words, and in both lines of two.
macro_rules! sets {
    ($lines:expr, $cells:expr, $sized:expr) => {
        lanebloom_tests::sets_answer_as_lookups_of_all_keys_would(|blocks| $sized(blocks * $lines));
        let alone = |key| {
            let filter = $sized($lines);
            filter.insert(&key);
            filter
        };
        let one = alone(0u64);
        let shared = (1..500u64).filter(|&key| one.with(&alone(key)).map(|pair| pair.is_disjoint()) == Ok(false));
        let (shared, words) = (shared.count() as f64, one.layout().words_per_key / $lines);
        let halves = 1 + usize::from(words == 8);
        let cells = ($cells * words / halves) as f64;
        let draws = (one.layout().bits_per_line / halves) as i32;
        // The cells of a key, and the chance that another one has none of them.
        let own = cells * (1.0 - (1.0 - 1.0 / cells).powi(draws));
        let meet = (1.0 - (1.0 - own / cells).powi(draws)).powi(halves as i32);
        let expected = 499.0 * (meet * words as f64 / 8.0).powi($lines as i32);
        assert!(
            (shared - expected).abs() <= 5.0 * expected.sqrt() + 2.0,
            "{shared}, not {expected}: {words} words"
        );
    };
}

#[test]
fn sets_answer_as_lookups_of_all_keys_would() {
    for (lines, words) in LAYOUTS {
        sets!(lines, 64, |blocks| bloom(blocks, lines, words));
    }
    for words in [1, 2, 4, 8] {
        sets!(1, 16, |blocks| counting(blocks, words));
    }
    let seeded = |seed| {
        let builder = ConcurrentBloom::builder().expected_keys(10).seed(seed);
        builder.build().unwrap()
    };
    assert!(
        seeded(1).with(&seeded(2)).map(|pair| pair.is_subset()).is_err()
            && seeded(1).with(&seeded(1)).map(|pair| pair.is_subset()).is_ok()
    );
    assert!(seeded(1).with(&seeded(2)).map(|pair| pair.union_len()).is_err());
    assert!(seeded(1).with(&seeded(2)).map(|pair| pair.intersection_len()).is_err());
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
        a.exclusive().intersection_from(&b).unwrap();
        let rate = a.statistics().false_positive_rate;
        assert!((least..most).contains(&rate), "{common} in common: {rate}");
    }
    let rate = filled(1, 0).false_positive_rate_at(25_000);
    assert!((7.0e-4..7.2e-4).contains(&rate), "{rate}");
    let sparse = |seed| filled(seed, 4 * filled(1, 0).layout().blocks);
    assert_eq!(sparse(1).with(&sparse(2)).map(|pair| pair.is_disjoint()), Ok(false));
}

/// A key that was inserted into both filters is removed from their intersection as often.
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
    assert_eq!(a.exclusive().intersection_from(&b), Ok(true));
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
            let both = a.with(&b).map(|pair| pair.intersection_len()).unwrap();
            let either = a.with(&b).map(|pair| pair.union_len()).unwrap();
            assert_eq!(b.with(&a).map(|pair| pair.intersection_len()), Ok(both));
            let union = a.clone();
            union.union_from(&b).unwrap();
            assert_eq!(union.statistics().len, either);
            assert_eq!((a.statistics().len + b.statistics().len).saturating_sub(either), both);
            // Four of the documented standard errors.
            let most = 0.5 + 4.0 * 0.5 * (ours.max(theirs) as f64).sqrt();
            assert!(both.abs_diff(common) as f64 <= most, "{rate}: {both} of {common}");
        }
    }
}

/// Filters of one hash that both have to find a key. (A hash's place in the smaller one follows
/// from that in the larger one, and so do its bits.)
#[test]
fn filters_one_behind_the_other_multiply_their_rates_under_two_seeds() {
    let hashed = |seed: u32, keys: usize| {
        let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(0.01);
        let filter = builder.seed(seed).build().unwrap();
        filter.insert_all(0..20_000u64);
        filter
    };
    let strangers: Vec<u64> = (0..400_000).map(|i| 1 << 40 | i).collect();
    let passed = |filters: [&ConcurrentBloom; 2]| {
        let [one, other] = filters.map(|filter| found(filter, &strangers));
        let share = |passes: &dyn Fn(usize) -> bool| {
            (0..strangers.len()).filter(|&i| passes(i)).count() as f64 / strangers.len() as f64
        };
        share(&|i| one[i] && other[i]) / (share(&|i| one[i]) * share(&|i| other[i]))
    };
    let (edge, origin) = (hashed(0, 20_000), hashed(0, 40_000));
    let times = passed([&edge, &origin]);
    assert!((3.0..200.0).contains(&times), "one seed: {times} times the product");
    let times = passed([&edge, &hashed(1, 20_000)]);
    assert!((0.4..1.9).contains(&times), "two seeds: {times} times the product");
}
