//! The contract with real threads. Loom proves it on one line; these tests run at the size of a
//! filter and the speed of the machine.

use lanebloom::{ConcurrentBloom, Hashed, bloom};
use lanebloom_tests::{STRESS_KEYS, WORDS, number, together};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

const THREADS: usize = 4;

fn filter(words: usize) -> ConcurrentBloom {
    ConcurrentBloom::builder()
        .expected_keys(STRESS_KEYS)
        .words_per_key(words)
        .build()
        .unwrap()
}

/// All threads insert all keys, each from another end: no bit is lost, and each new key has a
/// winner.
#[test]
fn racing_inserters_lose_nothing_and_one_wins_each_key() {
    for words in WORDS {
        let raced = filter(words);
        let won = together(THREADS, |i| {
            let start = STRESS_KEYS / THREADS * i;
            let order = (start..STRESS_KEYS).chain(0..start);
            order
                .filter(|&key| raced.insert(&Hashed(number(key as u64))))
                .collect::<HashSet<_>>()
        });
        let alone = filter(words);
        let new = (0..STRESS_KEYS)
            .filter(|&key| alone.insert(&Hashed(number(key as u64))))
            .count();
        assert!(raced == alone);

        let wins: usize = won.iter().map(HashSet::len).sum();
        let winners = won.iter().flatten().collect::<HashSet<_>>();
        // The order decides which keys are false positives when they come, so the counts agree only
        // nearly.
        assert!(
            winners.len().abs_diff(new) * 100 < new,
            "{} winners, {new} alone",
            winners.len()
        );
        if words == 1 {
            assert_eq!(wins, winners.len(), "with one word per key, a key was won twice");
        }
    }
}

/// A thread that finds a key sees what its inserter wrote before, without any ordering of its own.
#[test]
fn a_key_that_is_found_publishes() {
    // So low a rate that what is found was inserted.
    let builder = ConcurrentBloom::builder()
        .expected_keys(STRESS_KEYS)
        .false_positive_rate(1e-9);
    let filter = builder.build().unwrap();
    let notes: Vec<AtomicU64> = (0..STRESS_KEYS).map(|_| AtomicU64::new(0)).collect();
    let found = together(THREADS, |i| {
        let mut found = 0;
        for (key, note) in notes.iter().enumerate() {
            let hash = number(key as u64);
            if i == 0 {
                note.store(1, Ordering::Relaxed);
                filter.insert(&Hashed(hash));
            } else {
                // Stay near the inserter, where what it did is news.
                while !filter.contains(&Hashed(hash)) {
                    thread::yield_now();
                }
                assert_eq!(
                    notes[key].load(Ordering::Relaxed),
                    1,
                    "key {key} was found before its note"
                );
                found += 1;
            }
        }
        found
    });
    assert_eq!(found, [0, STRESS_KEYS, STRESS_KEYS, STRESS_KEYS]);
}

/// Two filters are united into a third from both sides while all three are filled.
#[test]
fn unions_and_snapshots_beside_inserts_hold_what_came_before() {
    let (all, part) = (filter(2), filter(2));
    let done = AtomicUsize::new(0);
    together(THREADS, |i| match i {
        0 | 1 => {
            for key in (i..STRESS_KEYS).step_by(2) {
                let into = if key % 3 == 0 { &all } else { &part };
                into.insert(&Hashed(number(key as u64)));
                if i == 0 {
                    done.store(key + 1, Ordering::Release);
                }
            }
        }
        2 => {
            for _ in 0..20 {
                let before = done.load(Ordering::Acquire);
                all.union_from(&part).unwrap();
                assert!(
                    (0..before)
                        .step_by(2)
                        .rev()
                        .take(100)
                        .all(|key| all.contains(&Hashed(number(key as u64))))
                );
            }
        }
        _ => {
            for _ in 0..20 {
                let before = done.load(Ordering::Acquire);
                let (all, part) = (all.clone(), part.clone());
                let either = |hash| all.contains(&Hashed(hash)) || part.contains(&Hashed(hash));
                assert!(
                    (0..before)
                        .step_by(2)
                        .rev()
                        .take(100)
                        .all(|key| either(number(key as u64)))
                );
            }
        }
    });
    all.union_from(&part).unwrap();
    assert!((0..STRESS_KEYS).all(|key| all.contains(&Hashed(number(key as u64)))));
}

/// Keys that were inserted before are in the delta, whatever is inserted meanwhile.
#[test]
fn a_delta_of_a_live_filter_has_all_keys_of_before() {
    let keys = STRESS_KEYS as u64;
    let filter = ConcurrentBloom::builder().expected_keys(STRESS_KEYS).build().unwrap();
    let inserted = AtomicU64::new(0);
    thread::scope(|scope| {
        let (filter, inserted) = (&filter, &inserted);
        scope.spawn(move || {
            for key in 0..keys {
                filter.insert(&key);
                // Pairs with the load below: these inserts happened before a read of the number.
                inserted.store(key + 1, Ordering::Release);
            }
        });
        let mut before = 0;
        while before < keys {
            before = inserted.load(Ordering::Acquire);
            let mut replica = filter.clone();
            replica.clear();
            bloom::apply_deltas(&replica, &filter.with(&replica).map(|pair| pair.delta()).unwrap()).unwrap();
            assert!((0..before).all(|key| replica.contains(&key)));
        }
    });
}
