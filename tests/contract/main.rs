//! The promises of every filter, stated once over traits, for each type of the list in
//! `common/filters.rs`.
//!
//! A program of its own, so that ci/release.sh need not compile it.

use lanebloom::internal::{Isa, instruction_sets};
use lanebloom::traits::{Count, Engine, Insert, Remove, Union};
use lanebloom::{BuildError, Filter, Funnel, IncompatibleError, InsertError, KeyHasher, Sink, SnapshotError};
use lanebloom_formats::SplitBlockBloom;
use lanebloom_formats::splitblock::{Owned, SplitBlock, Xxh64};
use lanebloom_tests::filters::*;
use lanebloom_tests::{
    LENGTHS_THAT_DIFFER, STRESS_KEYS, assert_lengths_are_checked, filled, for_each_filter, hit_rate, lookups_agree,
    number, panic_message, places_differ, plain, together, within,
};
use std::cell::Cell;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! tests {
    ($name:ident: $type:ident = $of:tt [$($word:ident)*]) => {
        mod $name {
            use super::*;

            #[test]
            fn is_what_it_says() {
                super::is_what_it_says(stringify!($type), filled!($of));
            }

            #[test]
            fn every_form_of_a_lookup_answers_alike() {
                lookups(filled!($of));
            }

            $(word! { $word, $of })*
        }
    };
}

macro_rules! word {
    (inserts, $of:tt) => {
        #[test]
        fn every_form_of_an_insert_is_single_calls_in_order() {
            inserts(filled!($of));
        }

        #[test]
        fn a_cleared_filter_is_a_new_one() {
            clear(filled!($of));
        }

        #[test]
        fn lookups_and_copies_beside_inserts_lose_nothing() {
            inserts_beside_lookups(filled!($of));
        }
    };
    (flags, $of:tt) => {
        #[test]
        fn flags_are_the_answers_of_single_calls() {
            flags(filled!($of));
        }
    };
    (extends, $of:tt) => {
        #[test]
        fn a_shared_filter_is_extended() {
            let of = filled!($of);
            extends(of, || of(20_000, &[]), |filter| filter);
        }
    };
    (removes, $of:tt) => {
        #[test]
        fn every_form_of_a_removal_is_single_calls_in_order() {
            removes(filled!($of));
        }
    };
    (counts, $of:tt) => {
        #[test]
        fn copies_are_counted() {
            counts(filled!($of));
        }
    };
    (fills, $of:tt) => {
        #[test]
        fn a_key_is_there_as_often_as_it_was_inserted() {
            multiples(filled!($of));
        }

        #[test]
        fn a_full_filter_says_so_and_loses_nothing() {
            fills(filled!($of));
        }

        #[test]
        fn nothing_is_missing_while_others_come_and_go() {
            come_and_go(filled!($of));
        }
    };
    (estimates, $of:tt) => {
        #[test]
        fn the_number_of_keys_is_estimated() {
            estimates(filled!($of));
        }
    };
    (rates, $of:tt) => {
        #[test]
        fn the_rate_is_what_the_filter_says() {
            rates(filled!($of));
        }
    };
    (unites, $of:tt) => {
        #[test]
        fn a_union_holds_the_keys_of_both() {
            unites(filled!($of));
        }
    };
    // tests/bytes has the tests for these words. A word that no arm lists is an error.
    (stored, $of:tt) => {};
    (live, $of:tt) => {};
    (guests, $of:tt) => {};
    (fixed, $of:tt) => {};
    (proportional, $of:tt) => {};
}

for_each_filter!(tests);
tests! { split_block: SplitBlockBloom = { SplitBlocks(0) } [inserts flags estimates unites rates] }

#[test]
fn a_shared_filter_of_another_crate_is_extended() {
    let empty = || SplitBlockBloom::with_capacity(20_000, 0.01).unwrap();
    extends(filled!({ SplitBlocks(0) }), empty, |filter| filter);
}

/// Builds a filter whose engine is of another crate.
struct SplitBlocks(usize);

impl SplitBlocks {
    fn expected_keys(self, keys: usize) -> Self {
        Self(keys)
    }

    fn build(self) -> Result<Filter<SplitBlock<Owned>, Xxh64>, BuildError> {
        let filter = SplitBlockBloom::with_capacity(self.0, 0.01)?;
        Filter::try_clone(&filter)
    }
}

const _: () = {
    const fn is_shared_and_sent<T: Send + Sync + 'static>() {}
    is_shared_and_sent::<BuildError>();
    is_shared_and_sent::<IncompatibleError>();
    is_shared_and_sent::<InsertError>();
    is_shared_and_sent::<SnapshotError>();
};

// ---- Keys ----

/// Keys without a pattern, some of which are there twice: once more just behind, eight places on,
/// or far behind. None is there three times, which is as often as a d-left filter can count.
fn keys(seed: u64, len: usize) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::with_capacity(len);
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

/// Different keys.
fn distinct(seed: u64, len: usize) -> Vec<u64> {
    (0..len as u64).map(|i| number(seed << 32 | i)).collect()
}

/// About a vector, two vectors, where few keys end, and a word of a bitmap.
const SHORT: [usize; 31] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 31, 32, 33, 63, 64, 65, 79, 80, 127, 128, 129,
    300,
];

/// About the chunks in which keys are hashed and hashes are answered.
const LONG: [usize; 4] = [1000, 1024, 1025, 4097];

/// Twice the keys of all lengths, so that no window rotates by their number.
const PLANNED: usize = 60_000;

/// Runs `work` with an instruction set, keys to plan for and lengths to try: under every
/// instruction set, and by the best in a filter of more than 4 MiB, for which every type asks for
/// memory ahead of its use.
fn for_each_size<E: Engine, S>(of: Of<E, S>, mut work: impl FnMut(Isa, usize, &[usize])) {
    instruction_sets().for_each(|isa| work(isa, PLANNED, &SHORT));
    let best = instruction_sets().last().expect("the plain one is there");
    work(best, PLANNED, &LONG);
    let beyond = 34e6 / of(PLANNED, &[]).bits_per_key();
    work(best, beyond as usize, &[0, 1, 17, 33, 64, 65, 81, 129, 193, 1025]);
}

/// The filter, and others like it.
fn copies<F: Clone, const N: usize>(filter: F) -> [F; N] {
    std::array::from_fn(|_| filter.clone())
}

fn hashes<E: Engine, S: KeyHasher>(filter: &Filter<E, S>, keys: &[u64]) -> Vec<u64> {
    keys.iter().map(|key| filter.hash(key)).collect()
}

// ---- Lookups ----

fn is_what_it_says<E: Engine, S: KeyHasher + Clone + Debug>(name: &str, of: Of<E, S>)
where
    Filter<E, S>: Send + Sync + 'static,
{
    let (empty, filter) = (of(1000, &[]), of(1000, &distinct(0, 500)));
    assert!(empty.is_empty() && !filter.is_empty());
    assert_eq!((empty.fill_ratio(), empty.current_false_positive_rate()), (0.0, 0.0));
    let text = format!("{filter:?}");
    let memory = filter.memory_bytes();
    let begin = format!(
        "{name} {{ expected_keys: {}, memory_bytes: {memory}, hasher: {:?}",
        filter.expected_keys(),
        filter.hasher()
    );
    assert!(text.starts_with(&begin) && text.len() < 400, "{text}");
    assert_eq!(
        filter.bits_per_key(),
        8.0 * memory as f64 / filter.expected_keys() as f64
    );
    assert_eq!(filter.false_positive_rate_at(0), 0.0);
    assert_eq!(
        filter.false_positive_rate(),
        filter.false_positive_rate_at(filter.expected_keys())
    );
    let rates = [0, 100, 500, 900].map(|keys| filter.false_positive_rate_at(keys));
    assert!(rates.is_sorted_by(|a, b| a < b), "{rates:?}");
    let now = filter.statistics();
    assert!(now.len > 450 && now.len < 550 && now.fill_ratio > 0.0 && now.false_positive_rate > 0.0);
    assert!((now.fill_ratio - filter.fill_ratio()).abs() < 1e-12);
    assert!((now.false_positive_rate - filter.current_false_positive_rate()).abs() < 1e-12);

    // A copy is another filter with the same keys, by the same hasher.
    for copy in [filter.clone(), filter.try_clone().unwrap()] {
        assert_eq!(format!("{copy:?}"), text);
        assert_eq!(copy.statistics(), now);
        assert!(
            (0..1000)
                .map(number)
                .all(|key| copy.contains(&key) == filter.contains(&key))
        );
    }
}

fn lookups<E: Engine, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let content = distinct(1, 2000);
        let filter = of(planned, &content).with_isa(isa);
        let plain = plain(filter.clone());
        assert!(content.iter().all(|key| filter.contains(key)));
        for (offset, &len) in lengths.iter().enumerate() {
            // Every second one is there, and some come twice.
            let asked: Vec<u64> = keys(30 + offset as u64, len)
                .iter()
                .map(|key| {
                    if key % 2 == 0 {
                        content[*key as usize % 2000]
                    } else {
                        *key
                    }
                })
                .collect();
            assert!(asked.iter().all(|key| filter.contains(key) == plain.contains(key)));
            lookups_agree(&filter, &asked, offset % 8);
        }
        let strings: Vec<String> = (0..65).map(|i| "x".repeat(i)).collect();
        lookups_agree(&filter, &strings, 3);
        let found = distinct(3, 1000).iter().filter(|key| filter.contains(*key)).count();
        assert!(found < 100, "{found} of 1000 strangers are found");
    });
    let filter = of(1000, &distinct(0, 10));
    assert_lengths_are_checked!(&filter, 7u64);
}

/// With the planned keys in it: the measured rate is the one that the filter computes of itself,
/// and at most the planned one, within 4 standard deviations.
fn rates<E: Engine, S: KeyHasher>(of: Of<E, S>) {
    let keys = STRESS_KEYS / 2;
    let filter = of(keys, &distinct(4, keys));
    let queries = 2 * STRESS_KEYS;
    let (measured, current) = (hit_rate(&filter, queries), filter.current_false_positive_rate());
    let planned = filter.false_positive_rate();
    let noise = |rate: f64| 4.0 * (rate / queries as f64).sqrt() + 1.0 / queries as f64;
    let what = format!("measured {measured:e}, current {current:e}, planned {planned:e}");
    assert!((measured - current).abs() <= noise(current), "{what}");
    // A tenth is the luck of the keys in a small filter.
    assert!(measured <= 1.1 * planned + noise(planned), "{what}");
    assert!(planned <= 0.0501, "{what}");
    assert!(!filter.is_overfull(), "{what}");
}

// ---- Inserts ----

fn inserts<E: Engine + Insert, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let single = plain(of(planned, &[]));
        let others = copies(of(planned, &[]).with_isa(isa));
        let [by_hash, by_keys, by_hashes, all, flagged, flagged_hashes] = &others;
        let mut probes = Vec::new();
        for (offset, &len) in lengths.iter().enumerate() {
            let new = keys(len as u64, len + len / 2);
            let (new, asked) = (&new[..len], &new[len / 2..]);
            let hashes = hashes(&single, new);
            let told: Vec<bool> = new.iter().map(|key| single.insert(key).unwrap()).collect();
            let sum = told.iter().filter(|&&changed| changed).count();
            assert!(
                hashes
                    .iter()
                    .map(|&hash| by_hash.insert_hash(hash).unwrap())
                    .eq(told.iter().copied())
            );
            assert_eq!(by_keys.insert_batch(new).unwrap(), sum, "{len}");
            assert_eq!(by_hashes.insert_hashes(&hashes).unwrap(), sum, "{len}");
            assert_eq!(all.insert_all(new.iter()).unwrap(), sum, "{len}");
            let before = (offset + len) % 2 == 1;
            let answer = within(offset % 8, len, before, |out| flagged.insert_batch_flagged(new, out));
            assert!(answer == (told.clone(), Ok(sum)), "{len} keys");
            let answer = within(offset % 8, len, before, |out| {
                flagged_hashes.insert_hashes_flagged(&hashes, out)
            });
            assert!(answer == (told, Ok(sum)), "{len} hashes");
            probes.extend_from_slice(asked);
            assert!(new.iter().all(|key| single.contains(key)));
            let found = single.contains_each(asked);
            assert!(others.iter().all(|other| other.contains_each(asked) == found));
        }
        let found = single.contains_each(&probes);
        for other in &others {
            assert!(other.contains_each(&probes) == found);
            if planned == PLANNED {
                assert_eq!(other.statistics(), single.statistics());
            }
        }
    });
    // The filler of a group that is not whole is not inserted.
    for isa in instruction_sets() {
        let empty = of(1000, &[]).with_isa(isa);
        for len in 0..=18 {
            let (filter, all) = (empty.clone(), empty.clone());
            filter.insert_hashes(&hashes(&filter, &distinct(5, len))).unwrap();
            all.insert_all(distinct(5, len)).unwrap();
            assert!(!filter.contains_hash(0) && !all.contains_hash(0));
            assert_eq!(filter.is_empty(), len == 0);
        }
    }
}

fn clear<E: Engine + Insert, S: KeyHasher>(of: Of<E, S>) {
    let new = of(2000, &[]);
    let mut filter = of(2000, &distinct(6, 1000));
    let content = distinct(7, 1500);
    let told: Vec<bool> = content.iter().map(|key| new.insert(key).unwrap()).collect();
    for _ in 0..2 {
        filter.clear();
        assert!(filter.is_empty());
        let now = filter.statistics();
        assert_eq!((now.len, now.fill_ratio, now.false_positive_rate), (0, 0.0, 0.0));
        assert!(distinct(6, 1000).iter().all(|key| !filter.contains(key)));
        assert!(
            content
                .iter()
                .map(|key| filter.insert(key).unwrap())
                .eq(told.iter().copied())
        );
        assert_eq!(filter.statistics(), new.statistics());
    }
}

fn flags<E: Engine + Insert, S: KeyHasher + Clone>(of: Of<E, S>) {
    // The keys that were not found are new, and no others.
    let filter = of(PLANNED, &[]);
    for key in keys(5, 10_000) {
        let absent = !filter.contains(&key);
        assert_eq!(filter.insert(&key), Ok(absent));
    }
    // Only the first of equal keys is new, and of two that take turns the first of each.
    for isa in instruction_sets() {
        let empty = of(1000, &[]).with_isa(isa);
        for len in (1..=18).chain([63, 64, 65, 129, 1025]) {
            let (same, turns) = (vec![7; len], Vec::from_iter((0..len as u64).map(|i| i % 2)));
            for (keys, different) in [(&same, 1), (&turns, len.min(2))] {
                let mut new = vec![true; len];
                assert_eq!(empty.clone().insert_batch_flagged(keys, &mut new).unwrap(), different);
                assert!((0..len).all(|i| new[i] == (i < different)), "{len}");
                let hashes = hashes(&empty, keys);
                assert_eq!(
                    empty.clone().insert_hashes_flagged(&hashes, &mut new).unwrap(),
                    different
                );
                assert!((0..len).all(|i| new[i] == (i < different)), "{len}");
                assert_eq!(empty.clone().insert_batch(keys).unwrap(), different);
            }
        }
    }
    let empty = of(1000, &[]);
    let hashes = hashes(&empty, &[7; 200]);
    for (len, places) in LENGTHS_THAT_DIFFER {
        let (hashes, bools, message) = (&hashes[..len], &mut [false; 200][..places], places_differ(len, places));
        assert_eq!(
            panic_message(|| _ = empty.insert_hashes_flagged(hashes, bools)),
            message
        );
        assert_eq!(
            panic_message(|| _ = empty.insert_batch_flagged(&[7u64; 200][..len], bools)),
            message
        );
    }
    assert!(empty.is_empty());
}

/// `F` is the filter's type, `inner` what it derefs to.
fn extends<E, S, F>(of: Of<E, S>, empty: impl Fn() -> F, inner: fn(&F) -> &Filter<E, S>)
where
    E: Engine + Insert<Error = Infallible>,
    S: KeyHasher,
    F: for<'a> Extend<&'a u64> + Sync,
    for<'a, 'b> &'b F: Extend<&'a u64>,
{
    let content = distinct(8, 5000);
    let (expected, shared, mut own) = (of(20_000, &content), empty(), empty());
    own.extend(&content);
    // Far more than it is for, so that most keys are taken for present.
    let (batch, flagged, single, mut found) = (of(50, &[]), of(50, &[]), of(50, &[]), vec![false; 700]);
    for keys in content.chunks(700).take(3) {
        let new: Vec<bool> = keys.iter().map(|key| single.insert(key).unwrap()).collect();
        let sum = new.iter().filter(|&&new| new).count();
        assert_eq!(batch.insert_batch(keys), Ok(sum));
        assert_eq!(flagged.insert_batch_flagged(keys, &mut found), Ok(sum));
        assert!(found == new);
        lookups_agree(&batch, &distinct(21, 700), 1);
        assert_eq!(
            (batch.statistics(), flagged.statistics()),
            (single.statistics(), single.statistics())
        );
    }
    let parts: Vec<&[u64]> = content.chunks(content.len().div_ceil(4)).collect();
    together(4, |thread| (&shared).extend(parts[thread]));
    let (own, shared) = (inner(&own), inner(&shared));
    assert_eq!(own.statistics(), expected.statistics());
    assert_eq!(shared.statistics(), expected.statistics());
    assert!(
        content
            .iter()
            .all(|key| own.contains(key) && shared.contains(key) && expected.contains(key))
    );
}

/// Four threads insert, by single calls and by batches, and ask for what others inserted, also in
/// copies of the filter.
fn inserts_beside_lookups<E: Engine + Insert, S: KeyHasher + Clone>(of: Of<E, S>)
where
    Filter<E, S>: Sync,
{
    const THREADS: usize = 4;
    const KEYS: usize = STRESS_KEYS / 4;
    // More than are inserted, so that a window that rotates by their number holds them all.
    let filter = of(2 * KEYS, &[]);
    let inserted = [const { AtomicUsize::new(0) }; THREADS];
    let key = |thread: usize, i: usize| number((thread * STRESS_KEYS + i) as u64);
    together(THREADS, |thread| {
        let mut at = 0;
        for turn in 0.. {
            let new: Vec<u64> = (at..KEYS / THREADS)
                .take(1 + turn % 40)
                .map(|i| key(thread, i))
                .collect();
            match new[..] {
                [] => break,
                [key] => _ = filter.insert(&key).unwrap(),
                _ => _ = filter.insert_batch(&new).unwrap(),
            }
            at += new.len();
            // Pairs with the load below: these inserts happened before a read of the number.
            inserted[thread].store(at, Ordering::Release);
            let other = (thread + turn) % THREADS;
            let newest = inserted[other].load(Ordering::Acquire);
            let asked: Vec<u64> = (newest.saturating_sub(100)..newest).map(|i| key(other, i)).collect();
            assert!(asked.iter().rev().take(3).all(|key| filter.contains(key)));
            assert!(filter.contains_each(&asked).iter().all(|&found| found));
            if turn % 64 == thread {
                let copy = filter.clone();
                assert!((0..newest).all(|i| copy.contains(&key(other, i))));
            }
        }
    });
    assert!((0..THREADS).all(|thread| (0..KEYS / THREADS).all(|i| filter.contains(&key(thread, i)))));
}

// ---- Removals and counts ----

fn removes<E: Engine + Insert + Remove, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let single = plain(of(planned, &[]));
        let [by_hash, by_keys, by_hashes, flagged, flagged_hashes] = copies(of(planned, &[]).with_isa(isa));
        let all = [&single, &by_hash, &by_keys, &by_hashes, &flagged, &flagged_hashes];
        for (offset, &len) in lengths.iter().enumerate() {
            let new = keys(len as u64, len + len / 2);
            for filter in all {
                filter.insert_batch(&new[..len]).unwrap();
            }
            // Some that are there, some of them twice, and some that are not.
            let gone = &new[len / 2..];
            let hashes = hashes(&single, gone);
            let expected: Vec<bool> = gone.iter().map(|key| single.remove(key)).collect();
            let sum = expected.iter().filter(|&&removed| removed).count();
            assert!(sum >= len / 3, "{sum} of {len}");
            assert!(
                hashes
                    .iter()
                    .map(|&hash| by_hash.remove_hash(hash))
                    .eq(expected.iter().copied())
            );
            assert_eq!(by_keys.remove_batch(gone), sum);
            assert_eq!(by_hashes.remove_hashes(&hashes), sum);
            let before = (offset + len) % 2 == 1;
            let answer = within(offset % 8, gone.len(), before, |out| {
                flagged.remove_batch_flagged(gone, out)
            });
            assert!(answer == (expected.clone(), sum), "{len} keys");
            let answer = within(offset % 8, gone.len(), before, |out| {
                flagged_hashes.remove_hashes_flagged(&hashes, out)
            });
            assert!(answer == (expected, sum), "{len} hashes");
            let found = single.contains_each(&new);
            assert!(all.iter().all(|filter| filter.contains_each(&new) == found));
            lookups_agree(&by_keys, &new, offset % 8);
        }
        if planned == PLANNED {
            assert!(all.iter().all(|filter| filter.statistics() == single.statistics()));
        }
    });
    // In a filter so sparse that nothing is taken for something else.
    let content = distinct(9, 40);
    let filter = of(PLANNED, &content);
    let strangers = distinct(10, 40);
    assert!(strangers.iter().all(|key| !filter.remove(key)));
    assert_eq!(filter.remove_batch(&strangers), 0);
    for (i, key) in content.iter().enumerate() {
        assert!(filter.remove(key) && !filter.remove(key));
        assert!(content[..=i].iter().all(|key| !filter.contains(key)));
        assert!(content[i + 1..].iter().all(|key| filter.contains(key)));
    }
    let filter = of(1000, &[7; 3]);
    let hashes = hashes(&filter, &[7; 200]);
    for (len, places) in LENGTHS_THAT_DIFFER {
        let (hashes, bools, message) = (&hashes[..len], &mut [false; 200][..places], places_differ(len, places));
        assert_eq!(
            panic_message(|| _ = filter.remove_hashes_flagged(hashes, bools)),
            message
        );
        assert_eq!(
            panic_message(|| _ = filter.remove_batch_flagged(&[7u64; 200][..len], bools)),
            message
        );
    }
    assert!(filter.contains(&7u64));
}

fn counts<E: Engine + Count, S: KeyHasher>(of: Of<E, S>) {
    let content = distinct(11, 1000);
    let filter = of(2000, &[&content[..], &content[..100]].concat());
    assert_eq!((filter.len(), filter.statistics().len), (1100, 1100));
    assert!(filter.slots() >= 2000 && filter.max_copies() >= 3);
    for (i, key) in content.iter().enumerate() {
        assert_eq!(filter.count(key), filter.count_hash(filter.hash(key)));
        // Or more, where another one is taken for it.
        assert!(filter.count(key) > usize::from(i < 100));
    }
    let sum: usize = content.iter().map(|key| filter.count(key)).sum();
    assert!((1100..1150).contains(&sum), "{sum}");
    assert!(
        distinct(12, 1000)
            .iter()
            .all(|key| (filter.count(key) > 0) == filter.contains(key))
    );
    assert_eq!((of(2000, &[]).len(), of(2000, &[]).count("a")), (0, 0));
}

/// One key as often as it can be, beside others that may have to make room for it.
fn multiples<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher>(of: Of<E, S>) {
    let content = distinct(13, 15_000);
    let filter = of(20_000, &content);
    let key = (1 << 40..).map(number).find(|key| !filter.contains(key)).unwrap();
    for copy in 0..filter.max_copies() {
        assert_eq!((filter.count(&key), filter.len()), (copy, 15_000 + copy));
        filter.insert(&key).unwrap();
    }
    let error = filter.insert(&key).unwrap_err();
    assert!(!error.is_full() && error.inserted() == 0);
    assert!(content.iter().all(|key| filter.contains(key)));
    assert!((0..filter.max_copies()).all(|_| filter.remove(&key)));
    assert!(!filter.remove(&key) && filter.len() == 15_000);
    // All that were moved are found to be removed.
    assert!(content.iter().all(|key| filter.remove(key)));
    assert!(filter.is_empty() && filter.fill_ratio() == 0.0);
}

fn fills<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher>(of: Of<E, S>) {
    // A batch ends at the first key that finds no room, and says where that is.
    let content = distinct(14, 10_000);
    let filter = of(3000, &[]);
    let alone = of(3000, &[]);
    let full = content.iter().position(|key| alone.insert(key).is_err()).unwrap();
    let hashes = hashes(&filter, &content);
    let others = [of(3000, &[]), of(3000, &[])];
    for by_hash in [false, true] {
        let (flagged, mut new) = (of(3000, &[]), vec![true; content.len()]);
        let error = if by_hash {
            flagged.insert_hashes_flagged(&hashes, &mut new).unwrap_err()
        } else {
            flagged.insert_batch_flagged(&content, &mut new).unwrap_err()
        };
        assert_eq!((error.inserted(), flagged.len()), (full, full));
        assert!(new[..full].iter().all(|new| *new) && !new[full..].iter().any(|new| *new));
    }
    for (filter, error) in [
        (&filter, filter.insert_batch(&content)),
        (&others[0], others[0].insert_hashes(&hashes)),
        (&others[1], others[1].insert_all(content.iter())),
    ] {
        let error = error.unwrap_err();
        assert!(error.is_full() && full >= 3000);
        assert_eq!((error.inserted(), filter.len()), (full, full));
    }
    // Keys behind a refused one are not hashed, but for its chunk.
    let hashed = Cell::new(0);
    let counted: Vec<_> = content.iter().map(|&key| Counted { key, hashed: &hashed }).collect();
    assert!(of(3000, &[]).insert_batch(&counted).is_err());
    assert!(hashed.get() <= full + 1024, "{} of {full}", hashed.get());
    hashed.set(0);
    let mut new = vec![true; counted.len()];
    assert!(of(3000, &[]).insert_batch_flagged(&counted, &mut new).is_err());
    assert!(hashed.get() <= full + 1024, "{} of {full}", hashed.get());
    // Nothing is lost by what is refused, and what was moved can be removed; then there is room.
    let error = filter.insert(&content[full]).unwrap_err();
    assert!(error.is_full() && filter.len() == full);
    assert!(content[..full].iter().all(|key| filter.contains(key)));
    assert!(content[..full].iter().all(|key| filter.remove(key)));
    assert!(filter.is_empty() && filter.insert(&content[full]).is_ok());
}

/// A key that counts how often a key is hashed.
struct Counted<'a> {
    key: u64,
    hashed: &'a Cell<usize>,
}

impl Funnel for Counted<'_> {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.hashed.set(self.hashed.get() + 1);
        self.key.funnel(into);
    }
}

/// Each thread has keys of its own, in a filter so full that inserts move what others inserted.
/// None is ever missing, and in the end there is nothing left of any.
fn come_and_go<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher>(of: Of<E, S>)
where
    Filter<E, S>: Sync,
{
    const THREADS: usize = 4;
    let filter = of(STRESS_KEYS, &[]);
    // Nine tenths stay, the rest comes and goes, to the planned load.
    let (stay, come) = (STRESS_KEYS * 9 / 10 / THREADS, STRESS_KEYS / 10 / THREADS);
    let key = |thread: usize, i: usize| number((thread << 32 | i) as u64);
    together(THREADS, |thread| {
        (0..stay).for_each(|i| _ = filter.insert(&key(thread, i)).unwrap());
    });
    assert_eq!(filter.len(), THREADS * stay);
    for round in 1..4 {
        together(THREADS, |thread| {
            let range = stay + round * come..stay + (round + 1) * come;
            for i in range.clone() {
                filter.insert(&key(thread, i)).unwrap();
                assert!(filter.contains(&key(thread, i)));
                let own = number(i as u64) as usize % stay;
                assert!(filter.contains(&key(thread, own)), "a key is missing that stays");
                if i % 64 == 0 {
                    let batch: Vec<u64> = (own..stay.min(own + 100)).map(|i| key(thread, i)).collect();
                    let found = filter.contains_each(&batch);
                    assert!(found.iter().all(|&found| found), "a batch misses a key that stays");
                }
            }
            for i in range {
                let removed = filter.remove(&key(thread, i));
                assert!(removed, "a key is missing that was to be removed");
            }
        });
        assert_eq!(filter.len(), THREADS * stay);
    }
    assert!((0..THREADS).all(|thread| (0..stay).all(|i| filter.contains(&key(thread, i)))));
    together(THREADS, |thread| {
        (0..stay).for_each(|i| assert!(filter.remove(&key(thread, i))));
    });
    assert!(filter.is_empty());
}

// ---- Whole filters ----

fn estimates<E: Engine, S: KeyHasher>(of: Of<E, S>) {
    for keys in [0, 1, 100, 2000, 5000] {
        let filter = of(5000, &distinct(15, keys));
        let len = filter.estimated_len();
        // Four of the documented standard errors.
        assert!(
            len.abs_diff(keys) as f64 <= 0.5 + 4.0 * 0.3 * (keys as f64).sqrt(),
            "{len} of {keys}"
        );
        assert_eq!(filter.statistics().len, len);
    }
}

fn unites<E: Engine + Insert + Union, S: KeyHasher + Clone>(of: Of<E, S>)
where
    Filter<E, S>: PartialEq,
{
    let (one, other) = (distinct(16, 1000), distinct(17, 1000));
    let (one, other) = (&one[..], [&one[500..], &other[..]].concat());
    let (empty, a) = (of(5000, &[]), of(5000, one));
    let b = empty.clone();
    b.insert_all(&other).unwrap();
    let before = (a.clone(), b.clone());
    // Equal is what has the same content.
    assert!(a == before.0 && b == before.1 && a != b && a != empty);
    assert!(a == of(5000, one) && empty == empty.clone());

    assert!(a.union_from(&b).unwrap() && b == before.1);
    assert!(one.iter().chain(&other).all(|key| a.contains(key)));
    assert!(b.union_from(&before.0).unwrap());
    assert!(one.iter().chain(&other).all(|key| b.contains(key)));
    // A filter whose layers can have any layout has them in another order.
    let takes_any_layout = a.is_compatible(&of(20_000, one));
    assert!(a == b || takes_any_layout, "the order matters");
    // An answer says whether there was a change; an empty filter makes none.
    let three = empty.clone();
    three.insert_all(distinct(19, 3)).unwrap();
    for add in [&empty, &before.1, &three] {
        let before = a.clone();
        let changed = a.union_from(add).unwrap();
        assert_eq!(changed, a != before);
    }
    assert!(!a.union_from(&empty).unwrap() && empty.is_empty());
    // A key that one has makes them differ, in a copy too.
    let copy = b.clone();
    copy.insert_all(distinct(20, 3)).unwrap();
    assert!(copy != b);

    // A union with a filter for more keys is refused, and changes nothing.
    let (larger, before) = (of(20_000, one), b.clone());
    assert!(b != larger);
    if takes_any_layout {
        let larger = of(20_000, &distinct(21, 9000));
        assert!(larger.union_from(&b).unwrap() && b == before && !larger.union_from(&b).unwrap());
        let keys = [one, &other[..], &distinct(21, 9000)].concat();
        assert!(keys.iter().all(|key| larger.contains(key)));
        return;
    }
    let message = b.union_from(&larger).unwrap_err().to_string();
    assert!(message.starts_with("the other filter's "), "{message}");
    let copy = larger.clone();
    assert!(larger.union_from(&b).is_err());
    assert!(b == before && larger == copy);
}
