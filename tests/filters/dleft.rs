//! The d-left filter beside a multiset, full and saturated, its rates beside its model, and with
//! real threads that share its slots.

use crate::{Step, measure_slots, restarted, steps};
use lanebloom::{DLeftFilter, Hashed};
use lanebloom_tests::{STRESS_KEYS, fingerprint_product, hash_of_fingerprint_product, number, together};
use proptest::prelude::*;
use std::collections::HashMap;

fn filter(keys: usize) -> DLeftFilter {
    DLeftFilter::builder().expected_keys(keys).build().unwrap()
}

/// In a filter of one bucket per subtable a key is its remainder of 14 bits: a few near each other
/// and at both ends, under different other bits.
fn any_hash() -> impl Strategy<Value = u64> + Clone {
    (0..4u64, 0..48u64).prop_map(|(rest, i)| hash_of_remainder(if i < 24 { i } else { 0x3fff - (i - 24) }, rest))
}

fn hash_of_remainder(remainder: u64, rest: u64) -> u64 {
    hash_of_fingerprint_product(remainder << 50 | rest)
}

fn remainder(hash: u64) -> u64 {
    fingerprint_product(hash) >> 50
}

/// The specification of the filter: a count of 1 to 3 for each of at most 32 remainders.
#[derive(Default)]
struct Model(HashMap<u64, usize>);

impl Model {
    fn count(&self, hash: u64) -> usize {
        self.0.get(&remainder(hash)).copied().unwrap_or(0)
    }

    /// Whether there was room; otherwise whether the filter is full.
    fn insert(&mut self, hash: u64) -> Result<(), bool> {
        match self.count(hash) {
            0 if self.0.len() == 32 => Err(true),
            3 => Err(false),
            count => {
                self.0.insert(remainder(hash), count + 1);
                Ok(())
            }
        }
    }

    fn remove(&mut self, hash: u64) -> bool {
        match self.count(hash) {
            0 => return false,
            1 => self.0.remove(&remainder(hash)),
            count => self.0.insert(remainder(hash), count - 1),
        };
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 2000 }))]

    /// Inserts, removals, counts, answers and errors, full or not.
    #[test]
    fn a_d_left_filter_is_a_multiset_of_up_to_three_of_each(steps in steps(150, any_hash(), 20, [5, 1])) {
        let mut filter = DLeftFilter::builder().memory_budget(72).build().unwrap();
        prop_assert_eq!(filter.slots(), 32);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Insert(hash) => {
                    let result = filter.insert(&Hashed(hash)).map_err(|error| error.is_full());
                    prop_assert_eq!(result, model.insert(hash));
                }
                Step::Remove(hash) => prop_assert_eq!(filter.remove(&Hashed(hash)), model.remove(hash)),
                Step::InsertBatch(hashes) => {
                    let expected = hashes.iter().map(|&hash| model.insert(hash)).take_while(Result::is_ok).count();
                    let inserted = filter.insert_batch(Hashed::slice(&hashes)).map_or_else(|error| error.inserted(), |()| hashes.len());
                    prop_assert_eq!(inserted, expected);
                }
                Step::RemoveBatch(hashes) => {
                    let mut removed = vec![false; hashes.len()];
                    let sum = filter.remove_batch_into(Hashed::slice(&hashes), &mut removed);
                    let expected: Vec<bool> = hashes.iter().map(|&hash| model.remove(hash)).collect();
                    prop_assert_eq!(sum, expected.iter().filter(|&&removed| removed).count());
                    prop_assert_eq!(removed, expected);
                }
                Step::Clone => filter = filter.clone(),
                Step::Restart => filter = restarted(&filter),
            }
            prop_assert_eq!(filter.len(), model.0.values().sum::<usize>());
            prop_assert_eq!(filter.statistics().fill_ratio, model.0.len() as f64 / 32.0);
            prop_assert_eq!(filter.is_empty(), model.0.is_empty());
            for hash in (0..25).chain(0x3fff - 25..0x4000).map(|remainder| hash_of_remainder(remainder, 9)) {
                prop_assert_eq!(filter.count(&Hashed(hash)), model.count(hash));
                prop_assert_eq!(filter.contains(&Hashed(hash)), model.count(hash) > 0);
            }
        }
    }
}

/// The planned keys fit, also when keys come and go.
#[test]
fn the_expected_keys_fit() {
    let large = if cfg!(debug_assertions) { 30_000 } else { 3_000_000 };
    for (keys, filters) in [(1, 50), (5, 50), (25, 100), (51, 100), (1000, 10), (large, 1)] {
        for i in 0..filters {
            let filter = filter(keys);
            let key = |key: usize| number(i << 40 | key as u64);
            for at in 0..keys {
                filter.insert(&Hashed(key(at))).unwrap();
            }
            // Eight times as many have come and gone.
            for at in keys..9 * keys {
                assert!(filter.remove(&Hashed(key(at - keys))));
                assert_eq!(
                    filter.insert(&Hashed(key(at))),
                    Ok(()),
                    "{keys} keys, filter {i}, the {at}th"
                );
            }
            assert_eq!(filter.len(), keys);
            assert!((8 * keys..9 * keys).all(|at| filter.contains(&Hashed(key(at)))));
        }
    }
}

#[test]
fn a_filter_is_not_full_below_the_documented_load() {
    let filter = filter(if cfg!(debug_assertions) { 20_000 } else { 1_000_000 });
    let full = filter.insert_all(0..u64::MAX).unwrap_err();
    assert!(full.is_full() && filter.statistics().fill_ratio > 0.88, "{filter:?}");
}

#[test]
fn the_rate_is_the_models() {
    let queries = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };
    for rate in [None, Some(0.01), Some(1e-3), Some(3e-4)] {
        measure_slots(DLeftFilter::builder(), 20_000, queries, rate);
    }
}

#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn rates_and_loads_at_full_size() {
    measure_slots(DLeftFilter::builder(), 20_000_000, 50_000_000, None);
    let filter = filter(20_000_000);
    assert!(filter.statistics().bits_per_key < 20.1);
    let full = filter.insert_all(0..u64::MAX).unwrap_err();
    assert!(
        full.is_full() && filter.statistics().fill_ratio > 0.87,
        "full at {}",
        filter.statistics().fill_ratio
    );
}

const THREADS: usize = 4;

/// All threads insert the same keys and take them out again: one slot for each, and counts that are
/// right in the end.
#[test]
fn threads_that_insert_the_same_keys_share_their_cells() {
    let filter = filter(STRESS_KEYS);
    // A thread less than a slot counts, so that there is always room, and no two keys that the
    // filter takes for one.
    let scratch = self::filter(STRESS_KEYS);
    let numbers = (0..).map(number);
    let keys: Vec<u64> = numbers
        .filter(|&hash| !scratch.contains(&Hashed(hash)))
        .take(STRESS_KEYS)
        .inspect(|&hash| scratch.insert(&Hashed(hash)).unwrap())
        .collect();
    let sums: Vec<usize> = together(THREADS, |thread| {
        if thread < 3 {
            keys.iter().for_each(|&hash| filter.insert(&Hashed(hash)).unwrap());
            return 0;
        }
        // The present part of the newest keys, while they come.
        keys.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count()
    });
    assert_eq!(sums.iter().take(3).sum::<usize>(), 0);
    assert_eq!(filter.len(), 3 * STRESS_KEYS);
    assert_eq!(
        filter.statistics().fill_ratio,
        STRESS_KEYS as f64 / filter.slots() as f64,
        "a key has two slots"
    );
    // Four threads race for three copies of each.
    let claims: usize = together(THREADS, |_| {
        keys.iter().filter(|&&hash| filter.remove(&Hashed(hash))).count()
    })
    .into_iter()
    .sum();
    assert_eq!(claims, 3 * STRESS_KEYS);
    assert!(filter.is_empty());
}
