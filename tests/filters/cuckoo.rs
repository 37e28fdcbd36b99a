//! The cuckoo filter beside a multiset, full and beyond, its rates beside its model, and with real
//! threads near its highest load.

use crate::{Step, measure_slots, restarted, steps};
use lanebloom::cuckoo::{Builder, CuckooFilter};
use lanebloom::{Hashed, Membership};
use lanebloom_tests::{STRESS_KEYS, SetAtEnd, hash_of_fingerprint_product, number, together};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const FINGERPRINT_BITS: [usize; 4] = [10, 12, 16, 21];

fn builder(fingerprint_bits: usize) -> Builder {
    CuckooFilter::builder().fingerprint_bits(fingerprint_bits)
}

fn filter(keys: usize, fingerprint_bits: usize) -> CuckooFilter {
    builder(fingerprint_bits).expected_keys(keys).build().unwrap()
}

/// Few buckets and few fingerprints, so that keys share both.
fn any_hash() -> impl Strategy<Value = u64> + Clone {
    (0..4u64, 0..18u64).prop_map(|(fingerprint, rest)| hash_of(fingerprint, rest))
}

/// Keys that the filter takes for one: its fingerprint and its two buckets are the same.
struct Classes(HashMap<u64, u64>);

impl Classes {
    fn new(fingerprint_bits: usize) -> Self {
        let mut classes = HashMap::new();
        let mut filter = builder(fingerprint_bits).memory_budget(64).build().unwrap();
        for first in all_hashes() {
            if !classes.contains_key(&first) {
                filter.clear();
                filter.insert(&Hashed(first)).unwrap();
                for hash in all_hashes().filter(|&hash| filter.contains(&Hashed(hash))) {
                    classes.entry(hash).or_insert(first);
                }
            }
        }
        Self(classes)
    }
}

fn all_hashes() -> impl Iterator<Item = u64> {
    (0..4u64).flat_map(|fingerprint| (0..18u64).map(move |rest| hash_of(fingerprint, rest)))
}

/// The highest bits of the second product are the fingerprint. The bucket is one of 8.
fn hash_of(fingerprint: u64, rest: u64) -> u64 {
    hash_of_fingerprint_product(fingerprint << 62 | rest)
}

/// Without a rate, the fingerprints are the longest that a budget has room for.
#[test]
fn a_budget_for_keys_decides_about_fingerprints() {
    for bits in FINGERPRINT_BITS {
        let bytes = filter(10_000, bits).memory_bytes();
        let both = CuckooFilter::builder().expected_keys(10_000).memory_budget(bytes);
        assert_eq!(both.build().unwrap().fingerprint_bits(), bits);
    }
}

/// Also where a batch is so short that its keys are inserted one by one.
#[test]
fn a_short_batch_says_how_many_keys_it_inserted() {
    for len in 1..6 {
        let filter = filter(100, 12);
        while filter.insert(&7).is_ok() {}
        let keys: Vec<_> = (0..len - 1).chain([7]).collect();
        assert_eq!(filter.insert_batch(&keys).unwrap_err().inserted(), keys.len() - 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 40 } else { 1000 }))]

    /// Each class of colliding keys is a multiset of its own: inserts, removals, counts and
    /// answers, full or not.
    #[test]
    fn a_cuckoo_filter_is_a_multiset_of_classes(
        fingerprint_bits in prop::sample::select(&FINGERPRINT_BITS[..]),
        steps in steps(120, any_hash(), 8, [6, 2]),
    ) {
        let classes = Classes::new(fingerprint_bits);
        prop_assert!(classes.0.values().collect::<std::collections::HashSet<_>>().len() < all_hashes().count());
        let mut filter = builder(fingerprint_bits).memory_budget(64).build().unwrap();
        let mut model = HashMap::<u64, usize>::new();
        for step in steps {
            let before: usize = model.values().sum();
            match step {
                Step::Insert(hash) => match filter.insert(&Hashed(hash)) {
                    Ok(()) => *model.entry(classes.0[&hash]).or_default() += 1,
                    Err(error) => {
                        let copies = model.get(&classes.0[&hash]).copied().unwrap_or(0);
                        prop_assert_eq!(error.is_full(), copies < filter.max_copies());
                        prop_assert!(before >= filter.max_copies(), "full with {} keys", before);
                        prop_assert_eq!(error.inserted(), 0);
                    }
                },
                Step::Remove(hash) => {
                    let count = model.entry(classes.0[&hash]).or_default();
                    prop_assert_eq!(filter.remove(&Hashed(hash)), *count > 0);
                    *count = count.saturating_sub(1);
                }
                Step::InsertBatch(hashes) => {
                    let inserted = filter.insert_batch(Hashed::slice(&hashes)).map_or_else(|error| error.inserted(), |()| hashes.len());
                    for hash in &hashes[..inserted] {
                        *model.entry(classes.0[hash]).or_default() += 1;
                    }
                }
                Step::RemoveBatch(hashes) => {
                    let mut removed = vec![false; hashes.len()];
                    let sum = filter.remove_batch_into(Hashed::slice(&hashes), &mut removed);
                    for (hash, removed) in hashes.iter().zip(&removed) {
                        let count = model.entry(classes.0[hash]).or_default();
                        prop_assert_eq!(*removed, *count > 0);
                        *count = count.saturating_sub(1);
                    }
                    prop_assert_eq!(sum, removed.iter().filter(|&&removed| removed).count());
                }
                Step::Clone => filter = filter.clone(),
                Step::Restart => filter = restarted(&filter),
            }
            prop_assert_eq!(filter.len(), model.values().sum::<usize>());
            for hash in all_hashes() {
                let count = model.get(&classes.0[&hash]).copied().unwrap_or(0);
                prop_assert_eq!(filter.count(&Hashed(hash)), count);
                prop_assert_eq!(filter.contains(&Hashed(hash)), count > 0);
            }
        }
    }
}

/// The planned keys fit and none is lost, in hundreds of small filters and a large one.
#[test]
fn the_expected_keys_fit() {
    for fingerprint_bits in FINGERPRINT_BITS {
        let large = if cfg!(debug_assertions) { 30_000 } else { 3_000_000 };
        for (keys, filters) in [
            (1, 50),
            (5, 50),
            (20, 200),
            (38, 50),
            (48, 50),
            (59, 50),
            (100, 100),
            (1000, 10),
            (large, 1),
        ] {
            for i in 0..filters {
                let filter = filter(keys, fingerprint_bits);
                let hashes: Vec<u64> = (0..keys as u64).map(|key| number(i << 32 | key)).collect();
                assert_eq!(
                    filter.insert_batch(Hashed::slice(&hashes)),
                    Ok(()),
                    "{keys} keys of {fingerprint_bits} bits, filter {i}"
                );
                assert_eq!(filter.len(), keys);
                assert!(hashes.iter().all(|&hash| filter.contains(&Hashed(hash))));
            }
        }
    }
}

/// Beyond the expected keys, until there is no room. Some of the next keys find some, ever fewer.
#[test]
fn a_filter_is_not_full_below_the_documented_load() {
    for (fingerprint_bits, least) in [(10, 0.988), (12, 0.97), (16, 0.95), (21, 0.93)] {
        let keys = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
        let filter = filter(keys, fingerprint_bits);
        let mut all = (0..).map(number);
        let mut inserted = 0;
        for refused in 0..20 {
            inserted += all
                .by_ref()
                .take_while(|&hash| filter.insert(&Hashed(hash)).is_ok())
                .count();
            assert!(refused > 0 || filter.statistics().fill_ratio > least, "{filter:?}");
        }
        assert!(filter.len() == inserted && filter.statistics().fill_ratio < 1.0);
    }
}

#[test]
fn the_rate_is_the_models() {
    let queries = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    for fingerprint_bits in FINGERPRINT_BITS {
        measure_slots(builder(fingerprint_bits), 20_000, queries, None);
    }
    for rate in [0.03, 0.01, 3e-3, 1e-3, 1e-4, 3e-6] {
        measure_slots(CuckooFilter::builder(), 10_000, queries, Some(rate));
    }
}

#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn rates_and_loads_at_full_size() {
    for fingerprint_bits in FINGERPRINT_BITS {
        measure_slots(builder(fingerprint_bits), 20_000_000, 50_000_000, None);
    }
    for rate in [0.01, 1e-3] {
        measure_slots(CuckooFilter::builder(), 5_000_000, 20_000_000, Some(rate));
    }
    // The figures of the documentation: bits per key at the rate, and the load at which there is no
    // room.
    for (fingerprint_bits, bits_per_key, rate, load) in [
        (10, 10.8, 0.012, 0.989),
        (12, 13.6, 0.00244, 0.983),
        (16, 16.9, 0.000122, 0.972),
        (21, 23.0, 2.7e-6, 0.95),
    ] {
        let filter = filter(20_000_000, fingerprint_bits);
        assert!(
            filter.statistics().bits_per_key <= bits_per_key,
            "{}",
            filter.statistics().bits_per_key
        );
        assert!(filter.false_positive_rate_at(20_000_000) <= rate);
        let full = filter.insert_all(0..u64::MAX).unwrap_err();
        assert!(
            full.is_full() && filter.statistics().fill_ratio > load,
            "{fingerprint_bits} bits: full at {}",
            filter.statistics().fill_ratio
        );
    }
}

const THREADS: usize = 4;

/// Keys that share their fingerprints and buckets, moved to and fro in a tiny filter, while others
/// look: as many moves of one fingerprint as there can be.
#[test]
fn a_fingerprint_that_is_moved_all_the_time_is_never_unseen() {
    for fingerprint_bits in FINGERPRINT_BITS {
        let filter = builder(fingerprint_bits).memory_budget(128).build().unwrap();
        let stay: Vec<u64> = (0..filter.slots() as u64 / 2).map(number).collect();
        filter.insert_batch(Hashed::slice(&stay)).unwrap();
        let done = AtomicBool::new(false);
        let looked = AtomicUsize::new(0);
        together(THREADS, |thread| {
            if thread >= 2 {
                while !done.load(Ordering::Relaxed) {
                    assert!(stay.iter().all(|&hash| filter.contains(&Hashed(hash))));
                    assert!(stay.iter().all(|&hash| filter.count(&Hashed(hash)) > 0));
                    looked.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            let _end = SetAtEnd(&done);
            // On, if need be, until others got to run.
            let rounds = STRESS_KEYS as u64 / 200;
            for round in (0..1000 * rounds).take_while(|&round| round < rounds || looked.load(Ordering::Relaxed) == 0) {
                // Until it is full, which moves whatever can be moved.
                let keys = (0..).map(|i| number(1 << 40 | (thread as u64) << 32 | ((round + i) % 1000)));
                let inserted: Vec<u64> = keys
                    .take(40)
                    .take_while(|&hash| filter.insert(&Hashed(hash)).is_ok())
                    .collect();
                assert!(inserted.iter().all(|&hash| filter.remove(&Hashed(hash))));
            }
        });
        assert!(looked.load(Ordering::Relaxed) > 0);
        assert_eq!(filter.len(), stay.len());
    }
}

/// Removals of absent keys lose present ones, at the false-positive rate. A lookup before each does
/// not help: it finds the same false positive. The same holds for the other filters that delete.
#[test]
fn a_lookup_before_it_makes_no_removal_safe() {
    use lanebloom::internal::traits::{Engine, Insert, Remove};
    use lanebloom::{CountingBloom, DLeftFilter, Filter};

    fn lost<E: Engine + Insert + Remove>(filter: &Filter<E>) -> usize {
        const KEYS: u64 = 10_000;
        filter.try_insert_all(0..KEYS).unwrap();
        for absent in KEYS..2 * KEYS {
            if filter.look_up(&absent) {
                filter.take(&absent);
            }
        }
        (0..KEYS).filter(|key| !filter.look_up(key)).count()
    }
    let lost = [
        lost(&CuckooFilter::with_capacity(10_000, 0.01).unwrap()),
        lost(&CountingBloom::with_capacity(10_000, 0.01).unwrap()),
        lost(&DLeftFilter::with_capacity(10_000, 0.0016).unwrap()),
    ];
    assert!((60..140).contains(&lost[0]), "{lost:?}");
    assert!((60..1000).contains(&lost[1]) && (3..40).contains(&lost[2]), "{lost:?}");
}
