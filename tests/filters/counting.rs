//! The counting filter against a multiset, its rates against the model, and its contract with real
//! threads.

use crate::restarted;
use lanebloom::counting::{Builder, CountingBloom};
use lanebloom::{Hashed, Membership, SipHash13};
use lanebloom_tests::{RATES, STRESS_KEYS, WORDS, assert_prints, found, hit_rate, number, together};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

fn builder() -> Builder {
    CountingBloom::builder()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertBatch(Vec<u16>),
    Remove(u16),
    RemoveBatch(Vec<u16>),
    Union(Vec<u16>),
    Clear,
    /// Goes on with a snapshot that is read.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    // Few keys, so that many are there several times and many removes find theirs.
    let key = || 0..400u16;
    let keys = move || proptest::collection::vec(key(), 0..150);
    prop_oneof![
        4 => key().prop_map(Step::Insert),
        3 => keys().prop_map(Step::InsertBatch),
        4 => key().prop_map(Step::Remove),
        3 => keys().prop_map(Step::RemoveBatch),
        1 => keys().prop_map(Step::Union),
        1 => Just(Step::Clear),
        1 => Just(Step::Restart),
    ]
}

/// The keys that are there, each with how often.
#[derive(Default)]
struct Multiset(HashMap<u16, usize>);

impl Multiset {
    fn insert(&mut self, key: u16) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Whether it was there.
    fn remove(&mut self, key: u16) -> bool {
        match self.0.get_mut(&key) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    fn count(&self, key: u16) -> usize {
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// A filter with nothing but these keys.
    fn filter(&self, build: impl Fn() -> CountingBloom) -> CountingBloom {
        let filter = build();
        for (key, &count) in &self.0 {
            (0..count).for_each(|_| _ = filter.insert(key));
        }
        filter
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 32 } else { 256 }))]

    /// Whatever is done by whatever call: the filter is that of the keys that are left, counter by
    /// counter; nothing of them is missing, what is not there is not removed, and answers of "new"
    /// and "not there" are never wrong.
    #[test]
    fn behaves_as_a_multiset_with_false_positives(
        steps in proptest::collection::vec(step(), 0..30),
        words in prop::sample::select(&WORDS[..]),
        blocks in 40usize..300,
    ) {
        let build = || builder().memory_budget(blocks * 64).words_per_key(words).build().unwrap();
        let mut filter = build();
        let mut set = Multiset::default();
        // Too full for that: a key that is not there and taken for present must not be removed.
        let removable = |filter: &CountingBloom, set: &mut Multiset, keys: &[u16]| {
            let mut keys = keys.to_vec();
            keys.retain(|&key| if filter.contains(&key) { set.remove(key) } else { true });
            keys
        };
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let known = filter.contains(&key);
                    prop_assert!(known || set.count(key) == 0);
                    prop_assert_eq!(filter.insert(&key), !known);
                    set.insert(key);
                }
                Step::InsertBatch(keys) => {
                    let mut new = vec![false; keys.len()];
                    let count = filter.insert_batch_into(&keys, &mut new);
                    prop_assert_eq!(count, new.iter().filter(|&&new| new).count());
                    for (key, new) in keys.into_iter().zip(new) {
                        prop_assert!(!new || set.count(key) == 0);
                        set.insert(key);
                    }
                }
                Step::Remove(key) => {
                    if !filter.contains(&key) {
                        prop_assert!(!filter.remove(&key));
                    } else if set.remove(key) {
                        prop_assert!(filter.remove(&key));
                    }
                }
                Step::RemoveBatch(keys) => {
                    let keys = removable(&filter, &mut set, &keys);
                    let (found, mut removed) = (found(&filter, &keys), Vec::new());
                    let count = filter.remove_batch_into(&keys, &mut removed);
                    prop_assert_eq!(count, removed.iter().filter(|&&removed| removed).count());
                    prop_assert_eq!(removed, found);
                }
                Step::Union(keys) => {
                    let other = build();
                    other.insert_batch(&keys);
                    let changed = filter.stuck_counters() > 0 || !keys.is_empty();
                    let united = filter.union_from(&other).unwrap();
                    prop_assert!(united == changed || filter.stuck_counters() > 0);
                    keys.into_iter().for_each(|key| set.insert(key));
                }
                Step::Restart => filter = restarted(&filter),
                Step::Clear => {
                    filter.clear();
                    prop_assert!(filter == build());
                    set = Multiset::default();
                }
            }
            prop_assert!(set.0.iter().all(|(key, &count)| count == 0 || filter.contains(key)));
            // A stuck counter does not tell how many keys are left.
            if filter.stuck_counters() == 0 {
                prop_assert!(filter == set.filter(build));
                let len = set.0.values().sum::<usize>();
                prop_assert!(filter.statistics().len.abs_diff(len) <= 3 + len / 10);
            }
        }
    }
}

/// From its 15th insert on a key stays, and others that share counters with it lose nothing by
/// that.
#[test]
fn a_key_that_is_stuck_stays_and_others_come_and_go() {
    for words in WORDS {
        let filter = builder().memory_budget(64).words_per_key(words).build().unwrap();
        filter.insert("other");
        for times in 1..=20 {
            filter.insert("stuck");
            assert_eq!(
                filter.stuck_counters() > 0,
                times >= 14 + usize::from(!shared(words)),
                "{words} words, {times}"
            );
        }
        let stuck = filter.stuck_counters();
        assert!((filter.layout().bits_per_line / 2..=filter.layout().bits_per_line).contains(&stuck));
        assert!((0..100).all(|_| filter.remove("stuck") && filter.contains("stuck") && filter.contains("other")));
        assert!(filter.remove("other"));
        assert_eq!(filter.stuck_counters(), stuck);
        assert!((0..100).all(|_| filter.contains("stuck")));
        // Nothing else is left.
        assert_eq!(filter.statistics().fill_ratio * 128.0, stuck as f64);
        let copy = filter.clone();
        assert_eq!(filter.union_from(&copy), Ok(false));
        assert_eq!(filter.insert_batch(&["stuck"; 100]), 0);
        assert!(filter == copy);
    }

    /// Whether the two keys share a counter.
    fn shared(words: usize) -> bool {
        let build = || builder().memory_budget(64).words_per_key(words).build().unwrap();
        let (both, one, other) = (build(), build(), build());
        both.insert_batch(&["stuck", "other"]);
        one.insert("stuck");
        other.insert("other");
        both.statistics().fill_ratio < one.statistics().fill_ratio + other.statistics().fill_ratio
    }
}

#[test]
fn unions_add_up_and_stop_at_15() {
    let build = || builder().expected_keys(100).build().unwrap();
    let (all, part) = (build(), build());
    all.insert_batch(&["a"; 9]);
    part.insert_batch(&["a"; 5]);
    part.insert("c");
    assert_eq!(all.union_from(&part), Ok(true));
    assert_eq!(all.stuck_counters(), 0);
    assert_eq!(all.union_from(&part), Ok(true));
    assert!(all.stuck_counters() > 0);
    assert!((0..30).all(|_| all.remove("a")) && all.contains("a"));
    assert!(all.remove("c") && all.remove("c") && !all.contains("c"));
    // With itself: all twice.
    assert_eq!(part.union_from(&part), Ok(true));
    assert!(part.remove("c") && part.remove("c") && !part.remove("c"));
}

#[test]
fn what_does_not_fit_is_an_error() {
    // The limit of counters. (tests/bytes/filter.rs has the errors of all layouts in lines.)
    let builder_of_one = builder().expected_keys(10).false_positive_rate(1e-4).words_per_key(1);
    assert_eq!(
        builder_of_one.build().unwrap_err().to_string(),
        "a false-positive rate of 1e-4 with 1 words per key takes more than the limit of 512 bits per key"
    );

    let filter = builder().expected_keys(1000).build().unwrap();
    let error = filter
        .union_from(&builder().expected_keys(2000).build().unwrap())
        .unwrap_err();
    assert!(error.to_string().starts_with("the other filter's layout differs:"));
    let other = builder().expected_keys(1000).seed(1).build().unwrap();
    other.insert("a");
    let error = filter.union_from(&other).unwrap_err();
    assert!(error.to_string().starts_with("the other filter's hasher differs"));
    assert!(!filter.contains(&Hashed(other.hash("a"))) && filter != other);
    // Empty, and of the same size.
    let of_words = |words| builder().memory_budget(640).words_per_key(words).build().unwrap();
    assert!(of_words(1) != of_words(2) && of_words(2) == of_words(2));
    assert!(filter != builder().expected_keys(1000).seed(1).build().unwrap());
}

/// The documentation's figures for the memory: (rate, words, bits per key), with 0 for the words
/// that the builder chooses.
#[test]
fn bits_per_key_are_those_of_the_documentation() {
    for (rate, words, chosen, bits) in [
        (0.1, 0, 2, 21.1),
        (0.03, 0, 4, 33.4),
        (0.01, 0, 8, 43.5),
        (1e-3, 0, 8, 76.3),
        (1e-4, 0, 8, 127.5),
        (1e-5, 0, 8, 216.6),
        (0.1, 1, 1, 23.1),
        (0.03, 1, 1, 46.3),
        (0.01, 1, 1, 83.5),
        (1e-3, 1, 1, 301.7),
        (0.01, 2, 2, 58.9),
        (0.01, 4, 4, 48.6),
    ] {
        let builder = builder().expected_keys(1_000_000).false_positive_rate(rate);
        let filter = if words == 0 {
            builder
        } else {
            builder.words_per_key(words)
        }
        .build()
        .unwrap();
        assert_eq!(filter.layout().words_per_key, chosen, "{rate}");
        // From an independent implementation of the model, in Python.
        assert!(
            (filter.statistics().bits_per_key / bits - 1.0).abs() < 0.003,
            "{rate}: {}",
            filter.statistics().bits_per_key
        );
    }
}

/// The counters of version 2 of the layout: a change here is a change of format. (The same on every
/// platform that runs this.)
#[test]
fn the_counters_are_those_of_layout_version_2() {
    assert_prints(include_str!("../data/counters_v2.txt"), |rate, words| {
        let builder = builder().expected_keys(300).false_positive_rate(rate);
        let filter = builder.words_per_key(words).build().ok()?;
        // Many times too many, then half of them gone.
        let keys = if rate < 1e-3 { 6000 } else { 1200 };
        filter.insert_batch(&Vec::from_iter(0..keys));
        filter.remove_batch(&Vec::from_iter(0..keys / 2));
        Some(filter)
    });
}

#[test]
fn a_filter_prints_what_is_stuck_and_no_secret() {
    let filter = builder().expected_keys(1000).hasher(SipHash13::with_key([7; 16]));
    let text = format!("{:?}", filter.build().unwrap());
    assert!(
        text.contains("key: secret") && text.contains("stuck_counters: 0"),
        "{text}"
    );
}

const THREADS: usize = 4;

/// Every thread inserts and removes keys of its own, over and over, in a filter so small that they
/// share every counter: nothing of its own is ever missing, every remove finds its key, and in the
/// end nothing is left.
#[test]
fn nothing_of_ones_own_is_ever_missing_while_all_counters_are_shared() {
    for words in WORDS {
        let builder = builder()
            .expected_keys(400)
            .false_positive_rate(0.1)
            .words_per_key(words);
        let filter = builder.clone().build().unwrap();
        together(THREADS, |thread| {
            let key = |i: u64| number((thread as u64) << 32 | i);
            let mut there: Vec<u64> = Vec::new();
            for i in 0..STRESS_KEYS as u64 / 8 {
                if there.len() < 100 {
                    filter.insert(&Hashed(key(i)));
                    there.push(key(i));
                }
                if number(i) & 1 == 0 {
                    let gone = there.swap_remove(number(i ^ 77) as usize % there.len());
                    assert!(
                        filter.remove(&Hashed(gone)),
                        "what was inserted was not there to be removed"
                    );
                }
                if !there.is_empty() {
                    let own = there[number(i ^ 99) as usize % there.len()];
                    assert!(filter.contains(&Hashed(own)), "what was inserted was missing");
                }
                if i % 64 == 0 {
                    let mut found = vec![false; there.len()];
                    filter.contains_batch(Hashed::slice(&there), &mut found);
                    assert!(found.iter().all(|&found| found), "of a batch something was missing");
                }
                if i % 512 == 0 {
                    assert_eq!(filter.remove_batch(Hashed::slice(&there)), there.len());
                    filter.insert_batch(Hashed::slice(&there));
                }
            }
            assert_eq!(filter.remove_batch(Hashed::slice(&there)), there.len());
        });
        assert_eq!(filter.stuck_counters(), 0, "so many keys do not get there");
        assert!(filter == builder.build().unwrap(), "counters were left");
    }
}

/// All threads want to remove the same keys, each of which is there once: each is removed by
/// exactly one, with other keys in between that stay.
#[test]
fn of_racing_removers_exactly_one_wins_each_key() {
    let keys = STRESS_KEYS as u64 / 4;
    for words in WORDS {
        // So that no key is a false positive, 100 lines for one of them.
        let budget = 64 * 100 * keys as usize;
        let filter = builder()
            .memory_budget(budget.min(64 << 20))
            .words_per_key(words)
            .build()
            .unwrap();
        let keys = keys.min((filter.layout().blocks / 100) as u64);
        filter.insert_batch(Hashed::slice(&Vec::from_iter((0..keys).map(number))));
        let won = std::sync::atomic::AtomicUsize::new(0);
        together(THREADS, |thread| {
            let removed = (0..keys)
                .filter(|i| filter.remove(&Hashed(number((i + thread as u64 * 13) % keys))))
                .count();
            won.fetch_add(removed, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(won.into_inner() as u64, keys);
        assert_eq!(filter.statistics().fill_ratio, 0.0);
    }
}

/// A filter is united into another and copied while keys come and go in both: what stays is in all
/// of them.
#[test]
fn unions_and_copies_beside_changes_hold_what_stays() {
    for words in [1, 4] {
        let build = || builder().expected_keys(4000).words_per_key(words).build().unwrap();
        let (all, part) = (build(), build());
        let stay = Vec::from_iter((0..1000).map(|i| number(1 << 40 | i)));
        all.insert_batch(Hashed::slice(&stay[..500]));
        part.insert_batch(Hashed::slice(&stay[500..]));
        let all_found = |filter: &CountingBloom, hashes: &[u64]| {
            let mut found = vec![false; hashes.len()];
            filter.contains_batch(Hashed::slice(hashes), &mut found);
            assert!(found.iter().all(|&found| found));
        };
        together(THREADS, |thread| match thread {
            0 | 1 => {
                let filter = if thread == 0 { &all } else { &part };
                for i in 0..STRESS_KEYS as u64 / 2 {
                    filter.insert(&Hashed(number((thread as u64) << 32 | i)));
                    assert!(filter.remove(&Hashed(number((thread as u64) << 32 | i))));
                }
            }
            2 => {
                for _ in 0..3 {
                    all.union_from(&part).unwrap();
                    all_found(&all, &stay);
                }
            }
            _ => {
                for _ in 0..20 {
                    all_found(&part.clone(), &stay[500..]);
                    all_found(&all, &stay[..500]);
                }
            }
        });
        all_found(&all, &stay);
        // Nothing of what came and went.
        assert!(part.statistics().len.abs_diff(500) < 10);
    }
}

/// The standard deviation of the rate of one line, as a multiple of the rate, for each of `RATES`:
/// rounded up over the words per key.
const SPREADS: [f64; 7] = [0.7, 1.1, 1.6, 3.5, 8.0, 18.0, 30.0];

/// The hashes of these keys, some thousands at a time.
fn slices(keys: Range<u64>) -> impl Iterator<Item = Vec<u64>> {
    let end = keys.end;
    keys.step_by(1 << 14)
        .map(move |start| Vec::from_iter((start..end.min(start + (1 << 14))).map(number)))
}

fn insert(filter: &CountingBloom, keys: Range<u64>) {
    for hashes in slices(keys) {
        filter.insert_batch(Hashed::slice(&hashes));
    }
}

/// Fills a filter for `n` keys, with as many more coming and going, and asks it for absent ones:
/// what is measured, what the counters say exactly, what the model says, and what was asked for
/// must agree within 4 standard deviations, as in `rates.rs`.
fn measure(rate: f64, words: usize, n: u64, queries: u64) {
    let Ok(filter) = builder()
        .expected_keys(n as usize)
        .false_positive_rate(rate)
        .words_per_key(words)
        .build()
    else {
        assert!(
            words < 4 && rate < 1e-3 || rate < 1e-4,
            "{rate:e} is within reach with {words} words"
        );
        return;
    };
    insert(&filter, 0..n);
    for hashes in slices(0..n / 2) {
        assert_eq!(filter.remove_batch(Hashed::slice(&hashes)), hashes.len());
    }
    insert(&filter, n..n + n / 2);
    assert!(filter.statistics().len.abs_diff(n as usize) <= 1 + (0.8 * (n as f64).sqrt()) as usize);
    let measured = hit_rate(&filter, queries as usize);
    let (queries, exact) = (queries as f64, filter.statistics().false_positive_rate);
    let model = filter.false_positive_rate_at(n as usize);
    let spread = SPREADS[RATES.iter().position(|&known| known == rate).unwrap()];
    let luck = (rate * spread).powi(2) / filter.layout().blocks as f64;
    let sigma = (rate / queries + luck).sqrt();
    let what = format!("{n} keys at {rate:e}, {words} words: measured {measured:e}, exact {exact:e}, model {model:e}");
    assert!(
        model <= rate && model > 0.99 * rate || filter.layout().blocks < 1000,
        "{what}"
    );
    assert!(
        measured <= rate + 4.0 * sigma + 1.0 / queries,
        "{what}, sigma {sigma:e}"
    );
    assert!(
        (measured - exact).abs() <= 4.0 * (exact / queries).sqrt() + 1.0 / queries,
        "{what}"
    );
    assert!(
        (measured - model).abs() <= 4.0 * sigma + 1.0 / queries,
        "{what}, sigma {sigma:e}"
    );
    assert!(
        (exact - model).abs() <= 4.0 * luck.sqrt(),
        "{what}, luck {:e}",
        luck.sqrt()
    );
    if std::env::var_os("SHOW_RATES").is_some() {
        println!(
            "{what}, {:.2} bits per key, off by {:.1} of luck",
            filter.statistics().bits_per_key,
            (exact - model).abs() / luck.sqrt()
        );
    }
}

#[test]
fn the_rate_holds_for_some_thousand_keys() {
    let keys = if cfg!(debug_assertions) { 3000 } else { 30_000 };
    for rate in [0.1, 0.01, 1e-3] {
        for words in WORDS {
            measure(rate, words, keys, 5 * keys);
        }
    }
}

#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn the_rate_holds_for_a_million_keys_down_to_one_in_a_million() {
    for rate in RATES {
        for words in WORDS {
            measure(rate, words, 1_000_000, 10_000_000);
        }
    }
}
