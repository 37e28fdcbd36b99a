//! When a filter says that it is overfull.

use crate::{numbers, rated};
use lanebloom::{ConcurrentBloom, CountingBloom, Hashed, ScalableBloom, TombstoneBloom};
use lanebloom_tests::{RATES, block, number};

/// With the expected keys: no. With six square roots more: yes, nearly always.
#[test]
fn a_filter_is_overfull_when_it_has_too_many_keys() {
    let mut unnoticed = 0;
    for rate in RATES {
        for keys in [10, 100, 1000, 20_000] {
            let more = (6.0 * (keys as f64).sqrt()) as usize;
            for round in 0..20 {
                let filter = rated(ConcurrentBloom::builder(), keys, rate);
                assert!(!filter.statistics().is_overfull);
                let all = numbers(round, keys + more);
                filter.insert_batch(Hashed::slice(&all[..keys]));
                assert!(!filter.statistics().is_overfull, "{keys} keys at {rate}, round {round}");
                filter.insert_batch(Hashed::slice(&all[keys..]));
                unnoticed += usize::from(!filter.statistics().is_overfull);
            }
        }
    }
    assert!(unnoticed <= 560 / 20, "{unnoticed} of 560");
}

/// Keys that fall into few blocks raise the rate, though they are few.
#[test]
fn a_filter_is_overfull_when_hashes_are_bad() {
    let filter = rated(ConcurrentBloom::builder(), 10_000, 0.01);
    let few = |hash: &u64| block(*hash, filter.layout().blocks) < filter.layout().blocks / 32;
    let hashes = (0..).map(number).filter(few);
    filter.insert_batch(Hashed::slice(&hashes.take(5000).collect::<Vec<_>>()));
    assert!(filter.statistics().is_overfull && filter.statistics().len < 5000);
}

#[test]
fn every_type_says_when_it_is_overfull() {
    let all = numbers(1, 4000);
    let counting = rated(CountingBloom::builder(), 2000, 0.01);
    counting.insert_batch(Hashed::slice(&all[..2000]));
    assert!(!counting.statistics().is_overfull);
    counting.insert_batch(Hashed::slice(&all[2000..]));
    assert!(counting.statistics().is_overfull);
    counting.remove_batch(Hashed::slice(&all[2000..]));
    assert!(!counting.statistics().is_overfull);

    // Either filter of a pair.
    let builder = TombstoneBloom::builder().expected_removals(100);
    let pair = rated(builder, 2000, 0.01);
    pair.insert_batch(Hashed::slice(&all[..2000]));
    pair.remove_batch(Hashed::slice(&all[..100]));
    assert!(!pair.statistics().is_overfull);
    let added = pair.clone();
    added.insert_batch(Hashed::slice(&all[2000..]));
    assert!(added.statistics().is_overfull);
    pair.remove_batch(Hashed::slice(&all[100..300]));
    assert!(pair.statistics().is_overfull);

    // One that grows keeps its promise.
    for keys in [1, 10, 1000] {
        let growing = rated(ScalableBloom::builder(), keys, 0.01);
        growing
            .insert_batch(Hashed::slice(&numbers(keys as u64, 20_000)))
            .unwrap();
        assert!(!growing.statistics().is_overfull, "{keys}");
    }

    // The bytes of a snapshot say what the filter says.
    let filter = rated(ConcurrentBloom::builder(), 2000, 0.01);
    filter.insert_batch(Hashed::slice(&all));
    let bytes = filter.snapshot().to_vec();
    let (view, _) = lanebloom::BloomView::from_bytes(&bytes).unwrap();
    assert!(view.statistics().is_overfull);
}
