//! The promises that a filter of longs shares with every filter of lanebloom
//! (`tests/contract/main.rs` there), for each version of its format. `contract.rs` says which
//! filter, as `super`.

use super::{Bloom, Hash, Int, Key, NAME, UNITES_WITH_ITSELF, VERSIONS, Version, builder};
use lanebloom_tests::{
    LENGTHS_THAT_DIFFER, PLACES, STRESS_KEYS, answers_agree, lengths_are_checked, panic_message, places_differ,
    together, within,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers without a pattern.
pub(crate) fn number(i: u64) -> Int {
    lanebloom_tests::number(i) as Int
}

/// A filter for this many keys, with these in it.
type Of = fn(usize, &[Int]) -> Bloom;

fn of(version: Version, keys: usize, content: &[Int]) -> Bloom {
    let filter = builder(version, keys).false_positive_rate(0.01).build().unwrap();
    filter.insert_all(content);
    filter
}

macro_rules! tests {
    ($($name:ident: $version:literal)*) => {$(
        mod $name {
            const OF: super::Of = |keys, content| super::of(super::VERSIONS[$version], keys, content);

            tests! { OF: is_what_it_says every_form_of_a_lookup_answers_alike
                every_form_of_an_insert_is_single_calls_in_order flags_are_the_answers_of_single_calls
                a_cleared_filter_is_a_new_one lookups_and_copies_beside_inserts_lose_nothing
                a_shared_filter_is_extended the_number_of_keys_is_estimated the_rate_is_what_the_filter_says
                a_union_holds_the_keys_of_both }
        }
    )*};
    ($of:ident: $($test:ident)*) => {$(
        #[test]
        fn $test() {
            super::$test($of);
        }
    )*};
}
tests! { older: 0 newer: 1 }

/// Different keys without a pattern.
pub(crate) fn distinct(seed: u64, len: usize) -> Vec<Int> {
    (0..len as u64).map(|i| number(seed << 32 | i)).collect()
}

/// Such keys, some of which are there twice: once more just behind, eight places on, or far behind.
fn keys(seed: u64, len: usize) -> Vec<Int> {
    let mut keys: Vec<Int> = Vec::with_capacity(len);
    for i in 0..len {
        keys.push(match i % 16 {
            5 => keys[i - 1],
            10 => keys[i - 8],
            14 => keys[i / 2],
            _ => number(seed << 32 | i as u64),
        });
    }
    keys
}

/// About single calls, a window, two and three of them, and the chunks of an iterator.
const LENGTHS: [usize; 22] = [
    0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 193, 300, 1025, 2100,
];

/// Calls `work` with keys to plan for: within the caches, and beyond, where lines are prefetched.
fn for_each_size(mut work: impl FnMut(usize)) {
    work(20_000);
    work(3_000_000);
}

fn hashes(filter: &Bloom, keys: &[Int]) -> Vec<Hash> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

/// Every lookup of the keys, and of their hashes, gives the answers of single calls, written
/// `offset` into larger buffers.
pub(crate) fn lookups_agree<K: Key>(filter: &Bloom, keys: &[K], offset: usize) {
    let hashes: Vec<Hash> = keys.iter().map(|key| filter.hash(key)).collect();
    let (hashed, ()) = within(offset, keys.len(), Hash::default(), |out| filter.hash_batch(keys, out));
    assert!(hashed == hashes, "hashes of {} keys", keys.len());
    let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    assert!(
        hashes
            .iter()
            .map(|hash| filter.contains(hash))
            .eq(expected.iter().copied())
    );
    answers_agree(&expected, offset, |_, out| filter.contains_batch(keys, out));
    answers_agree(&expected, offset, |_, out| filter.contains_batch(&hashes, out));
}

/// The share of this many absent keys that the filter finds.
pub(crate) fn hit_rate(filter: &Bloom, queries: usize) -> f64 {
    let strangers: Vec<Int> = (0..queries as u64).map(|i| number(1 << 50 | i)).collect();
    let found = found!(filter, &strangers);
    found.iter().filter(|&&found| found).count() as f64 / queries as f64
}

// ---- Lookups ----

fn is_what_it_says(of: Of) {
    let (empty, filter) = (of(1000, &[]), of(1000, &distinct(0, 500)));
    assert!(empty.is_empty() && !filter.is_empty());
    let none = empty.statistics();
    assert_eq!((none.fill_ratio, none.len, none.false_positive_rate), (0.0, 0, 0.0));
    let (text, memory) = (format!("{filter:?}"), filter.memory_bytes());
    let begin = format!("{NAME} {{ expected_keys: 1000, memory_bytes: {memory}, ");
    assert!(text.starts_with(&begin) && text.len() < 400, "{text}");
    assert_eq!(filter.false_positive_rate_at(0), 0.0);
    assert_eq!(filter.false_positive_rate(), filter.false_positive_rate_at(1000));
    let rates = [0, 100, 500, 900].map(|keys| filter.false_positive_rate_at(keys));
    assert!(rates.is_sorted_by(|a, b| a < b), "{rates:?}");
    let now = filter.statistics();
    assert!((450..550).contains(&now.len) && (0.2..0.4).contains(&now.fill_ratio));
    assert!(now.false_positive_rate > 0.0 && now.false_positive_rate < filter.false_positive_rate());
    assert!(now.bits_per_key == 8.0 * memory as f64 / 1000.0 && !now.is_overfull);

    // A copy is another filter with the same keys.
    for copy in [filter.clone(), filter.try_clone().unwrap()] {
        assert_eq!((format!("{copy:?}"), copy.statistics()), (text.clone(), now));
        let same = |key| copy.contains(&key) == filter.contains(&key);
        assert!((0..1000).map(number).all(same));
    }
}

fn every_form_of_a_lookup_answers_alike(of: Of) {
    for_each_size(|planned| {
        let content = distinct(1, 2000);
        let filter = of(planned, &content);
        assert!(content.iter().all(|key| filter.contains(key)));
        for (offset, len) in LENGTHS.into_iter().enumerate() {
            // Every second one is there, and some come twice.
            let pick = |key: &Int| {
                if key % 2 == 0 {
                    content[*key as usize % 2000]
                } else {
                    *key
                }
            };
            let asked: Vec<Int> = keys(2, len).iter().map(pick).collect();
            lookups_agree(&filter, &asked, offset % 8);
        }
        let strings: Vec<String> = (0..65).map(|i| "x".repeat(i)).collect();
        lookups_agree(&filter, &strings, 3);
    });
    // Answers are written by vectors.
    lookups_agree(&of(1000, &distinct(1, 100)), &distinct(1, 300), 1);

    let filter = of(1000, &distinct(0, 10));
    let (keys, hashes) = ([7 as Int; 200], [filter.hash(&(7 as Int)); 200]);
    lengths_are_checked(|len, out| filter.contains_batch(&keys[..len], out));
    lengths_are_checked(|len, out| filter.contains_batch(&hashes[..len], out));
    for (len, places) in LENGTHS_THAT_DIFFER {
        let out = &mut [Hash::default(); 200][..places];
        let message = panic_message(|| filter.hash_batch(&keys[..len], out));
        assert_eq!(message, places_differ(len, places));
    }
}

/// With the planned keys in it: the measured rate is the one that the filter computes of itself,
/// and about the planned one.
fn the_rate_is_what_the_filter_says(of: Of) {
    let keys = STRESS_KEYS / 2;
    let filter = of(keys, &distinct(4, keys));
    let queries = 2 * STRESS_KEYS;
    let (measured, current) = (hit_rate(&filter, queries), filter.statistics().false_positive_rate);
    // Four standard deviations.
    let noise = 4.0 * (current / queries as f64).sqrt();
    assert!(
        (measured - current).abs() <= noise,
        "measured {measured}, not {current}"
    );
    assert!((0.009..0.011).contains(&filter.false_positive_rate()));
}

// ---- Inserts ----

fn every_form_of_an_insert_is_single_calls_in_order(of: Of) {
    for_each_size(|planned| {
        let [single, by_hash, by_keys, by_hashes, all] = [(); 5].map(|()| of(planned, &[]));
        for len in LENGTHS {
            let new = keys(len as u64, len);
            let hashes = hashes(&single, &new);
            let told: Vec<bool> = new.iter().map(|key| single.insert(key)).collect();
            let sum = told.iter().filter(|&&new| new).count();
            let answers = hashes.iter().map(|&hash| by_hash.insert(&hash));
            assert!(answers.eq(told.iter().copied()));
            assert_eq!(by_keys.insert_batch(&new), sum, "{len}");
            assert_eq!(by_hashes.insert_batch(&hashes), sum, "{len}");
            assert_eq!(all.insert_all(&new), sum, "{len}");
        }
        assert!([by_hash, by_keys, by_hashes, all].iter().all(|other| *other == single));
    });
}

fn flags_are_the_answers_of_single_calls(of: Of) {
    for_each_size(|planned| {
        let [single, mut by_keys, by_hashes] = [(); 3].map(|()| of(planned, &[]));
        for (offset, len) in LENGTHS.into_iter().enumerate() {
            let new = keys(len as u64, len);
            let hashes = hashes(&single, &new);
            // A key that was not found is new, and only such a key.
            let insert = |key: &Int| {
                let absent = !single.contains(key);
                assert_eq!(single.insert(key), absent);
                absent
            };
            let expected: Vec<bool> = new.iter().map(insert).collect();
            let sum = expected.iter().filter(|&&new| new).count();
            // Each place in a filter of its own.
            let copies = [(); PLACES].map(|()| by_keys.clone());
            let sums = answers_agree(&expected, offset % 8, |place, out| {
                copies[place].insert_batch_into(&new, out)
            });
            assert_eq!(sums, [sum; PLACES], "{len} keys");
            assert!(copies.iter().all(|copy| *copy == single), "{len} keys");
            let [first, ..] = copies;
            by_keys = first;
            let mut flags = vec![false; len];
            assert_eq!(by_hashes.insert_batch_into(&hashes, &mut flags), sum, "{len} hashes");
            assert!(flags == expected, "{len} hashes");
        }
        assert!(by_keys == single && by_hashes == single);
    });
    // Only the first of equal keys is new, and of two that take turns the first of each.
    let empty = of(1000, &[]);
    for len in LENGTHS.into_iter().filter(|len| *len > 0) {
        let (same, turns) = (vec![7; len], Vec::from_iter((0..len as Int).map(|i| i % 2)));
        for (keys, different) in [(&same, 1), (&turns, len.min(2))] {
            let mut new = vec![true; len];
            assert_eq!(empty.clone().insert_batch_into(keys, &mut new), different);
            assert!((0..len).all(|i| new[i] == (i < different)), "{len}");
        }
    }
    let hash = empty.hash(&(7 as Int));
    lengths_are_checked(|len, out| _ = empty.insert_batch_into(&[hash; 200][..len], out));
    lengths_are_checked(|len, out| _ = empty.insert_batch_into(&[7 as Int; 200][..len], out));
    assert!(empty.is_empty());
}

fn a_cleared_filter_is_a_new_one(of: Of) {
    let mut filter = of(2000, &distinct(6, 1000));
    let content = distinct(7, 1500);
    for _ in 0..2 {
        filter.clear();
        assert!(filter.is_empty() && filter == of(2000, &[]));
        filter.insert_all(&content);
        assert!(filter == of(2000, &content));
    }
}

fn a_shared_filter_is_extended(of: Of) {
    let content = distinct(8, 5000);
    let (expected, shared, mut own) = (of(20_000, &content), of(20_000, &[]), of(20_000, &[]));
    own.extend(&content);
    let parts: Vec<&[Int]> = content.chunks(content.len().div_ceil(4)).collect();
    together(4, |thread| (&shared).extend(parts[thread]));
    assert!(own == expected && shared == expected);
}

/// Four threads insert, by single calls and by batches, and ask for what others inserted, also in
/// copies of the filter.
fn lookups_and_copies_beside_inserts_lose_nothing(of: Of) {
    const THREADS: usize = 4;
    const KEYS: usize = STRESS_KEYS / 4;
    let filter = of(2 * KEYS, &[]);
    let inserted = [const { AtomicUsize::new(0) }; THREADS];
    let key = |thread: usize, i: usize| number((thread * STRESS_KEYS + i) as u64);
    together(THREADS, |thread| {
        let mut at = 0;
        for turn in 0.. {
            let new = (at..KEYS / THREADS).take(1 + turn % 40).map(|i| key(thread, i));
            match new.collect::<Vec<_>>()[..] {
                [] => break,
                [key] => _ = (filter.insert(&key), at += 1),
                ref keys => _ = (filter.insert_batch(keys), at += keys.len()),
            }
            // Pairs with the load below: these inserts happened before a read of the number.
            inserted[thread].store(at, Ordering::Release);
            let other = (thread + turn) % THREADS;
            let newest = inserted[other].load(Ordering::Acquire);
            let asked: Vec<Int> = (newest.saturating_sub(100)..newest).map(|i| key(other, i)).collect();
            assert!(asked.iter().rev().take(3).all(|key| filter.contains(key)));
            assert!(found!(filter, &asked).iter().all(|&found| found));
            if turn % 64 == thread {
                let copy = filter.clone();
                assert!((0..newest).all(|i| copy.contains(&key(other, i))));
            }
        }
    });
    assert!((0..THREADS).all(|thread| (0..KEYS / THREADS).all(|i| filter.contains(&key(thread, i)))));
}

// ---- Whole filters ----

fn the_number_of_keys_is_estimated(of: Of) {
    for keys in [0, 1, 100, 2000, 5000] {
        let len = of(5000, &distinct(15, keys)).statistics().len;
        // Four standard errors.
        let most = 0.5 + 4.0 * 0.3 * (keys as f64).sqrt();
        assert!(len.abs_diff(keys) as f64 <= most, "{len} of {keys}");
    }
}

fn a_union_holds_the_keys_of_both(of: Of) {
    let (one, other) = (distinct(16, 1000), [distinct(16, 500), distinct(17, 1000)].concat());
    let (empty, a, b) = (of(5000, &[]), of(5000, &one), of(5000, &other));
    let before = (a.clone(), b.clone());
    // Equal is what has the same content.
    assert!(a == before.0 && b == before.1 && a != b && a != empty && empty == empty.clone());

    assert!(a.union_from(&b).unwrap() && b == before.1);
    assert!(one.iter().chain(&other).all(|key| a.contains(key)));
    assert!(b.union_from(&before.0).unwrap() && a == b, "the order matters");
    // An answer says whether there was a change; an empty filter makes none.
    for add in [&empty, &before.1, &of(5000, &distinct(19, 3))] {
        let before = a.clone();
        let changed = a.union_from(add).unwrap();
        assert_eq!(changed, a != before);
    }
    assert!(!a.union_from(&empty).unwrap() && empty.is_empty());

    // A filter for other keys is refused, and changes nothing.
    let (larger, before) = (of(20_000, &one), b.clone());
    assert!(b != larger && b.with(&larger).is_err() && b.with(&a).is_ok());
    let message = b.union_from(&larger).unwrap_err().to_string();
    assert!(message.starts_with("the other filter's layout differs: "), "{message}");
    // The filter itself is refused by Guava, and no change for Spark.
    match b.union_from(&b) {
        Ok(changed) => assert!(UNITES_WITH_ITSELF && !changed),
        Err(error) => assert!(!UNITES_WITH_ITSELF && error.to_string() == "a filter cannot be united with itself"),
    }
    let copy = larger.clone();
    assert!(larger.union_from(&b).is_err() && b == before && larger == copy);
}
