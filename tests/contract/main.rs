//! The promises of every filter, stated once over traits, for each type of the list in
//! `common/filters.rs`.
//!
//! A program of its own, so that ci/release.sh need not compile it.

use lanebloom::bank::{BankError, BankView, FilterBank};
use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
use lanebloom::hash::OneKeyType;
use lanebloom::internal::traits::{Count, Engine, Insert, Remove, Union};
use lanebloom::internal::{Isa, instruction_sets};
use lanebloom::{
    AnyFilter, BuildError, Filter, Funnel, Hashed, IncompatibleError, InsertError, Key, KeyHasher, Murmur3, Sink,
    SnapshotError, windowed,
};
use lanebloom_formats::SplitBlockBloom;
use lanebloom_formats::splitblock::{Owned, SplitBlock, Xxh64};
use lanebloom_tests::filters::*;
use lanebloom_tests::{
    LENGTHS_THAT_DIFFER, PLACES, STRESS_KEYS, WAYS, answers_agree, filled, for_each_filter, found, hit_rate,
    inserts_agree, lengths_are_checked, lookups_agree, number, panic_message, places_differ, plain, together,
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
    extends(filled!({ SplitBlocks(0) }), empty, SplitBlockBloom::as_filter);
}

/// Builds a filter whose engine is of another crate.
struct SplitBlocks(usize);

impl SplitBlocks {
    fn expected_keys(self, keys: usize) -> Self {
        Self(keys)
    }

    fn build(self) -> Result<Filter<SplitBlock<Owned>, Xxh64>, BuildError> {
        let filter = SplitBlockBloom::with_capacity(self.0, 0.01)?;
        filter.as_filter().try_clone()
    }
}

const _: () = {
    const fn is_shared_and_sent<T: Send + Sync + 'static>() {}
    is_shared_and_sent::<(BuildError, IncompatibleError, InsertError, SnapshotError)>();
    is_shared_and_sent::<(FilterBank, BankView<'_>, BankError)>();
    is_shared_and_sent::<(ConcurrentBitmap, BitmapView<'_>)>();
    is_shared_and_sent::<(AnyFilter, OneKeyType<Murmur3>, windowed::Builder)>();
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
    let beyond = 34e6 / of(PLANNED, &[]).statistics().bits_per_key;
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
    let nothing = empty.statistics();
    assert_eq!((nothing.fill_ratio, nothing.false_positive_rate), (0.0, 0.0));
    let text = format!("{filter:?}");
    let memory = filter.memory_bytes();
    let begin = format!(
        "{name} {{ expected_keys: {}, memory_bytes: {memory}, hasher: {:?}",
        filter.expected_keys(),
        filter.hasher()
    );
    assert!(text.starts_with(&begin) && text.len() < 400, "{text}");
    assert_eq!(
        filter.statistics().bits_per_key,
        8.0 * memory as f64 / filter.expected_keys() as f64
    );
    assert_eq!(filter.engine().false_positive_rate_at(0), 0.0);
    assert_eq!(
        filter.false_positive_rate(),
        filter.engine().false_positive_rate_at(filter.expected_keys())
    );
    let rates = [0, 100, 500, 900].map(|keys| filter.engine().false_positive_rate_at(keys));
    assert!(rates.is_sorted_by(|a, b| a < b), "{rates:?}");
    let now = filter.statistics();
    assert!(now.len > 450 && now.len < 550 && now.fill_ratio > 0.0 && now.false_positive_rate > 0.0);

    // A copy is another filter with the same keys, by the same hasher.
    for copy in [filter.clone(), filter.try_clone().unwrap()] {
        assert_eq!(format!("{copy:?}"), text);
        assert_eq!(copy.statistics(), now);
        assert!(
            (0..1000)
                .map(number)
                .all(|key| copy.look_up(&key) == filter.look_up(&key))
        );
    }
}

fn lookups<E: Engine, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let content = distinct(1, 2000);
        let filter = of(planned, &content).with_isa(isa);
        let plain = plain(filter.clone());
        assert!(content.iter().all(|key| filter.look_up(key)));
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
            assert!(asked.iter().all(|key| filter.look_up(key) == plain.look_up(key)));
            lookups_agree(&filter, &asked, offset % 8);
        }
        let strings: Vec<String> = (0..65).map(|i| "x".repeat(i)).collect();
        lookups_agree(&filter, &strings, 3);
        let found = distinct(3, 1000).iter().filter(|key| filter.look_up(*key)).count();
        assert!(found < 100, "{found} of 1000 strangers are found");
    });
    let filter = of(1000, &distinct(0, 10));
    lengths_are_checked(|len, out| filter.look_up_batch(&[7u64; 200][..len], out));
    lengths_are_checked(|len, out| filter.look_up_batch(&[Hashed(7); 200][..len], out));
    for (len, places) in LENGTHS_THAT_DIFFER {
        let message = panic_message(|| filter.hasher().hash_batch(&[7u64; 200][..len], &mut [0; 200][..places]));
        assert_eq!(message, places_differ(len, places));
    }
}

/// With the planned keys in it: the measured rate is the one that the filter computes of itself,
/// and at most the planned one, within 4 standard deviations.
fn rates<E: Engine, S: KeyHasher>(of: Of<E, S>) {
    let keys = STRESS_KEYS / 2;
    let filter = of(keys, &distinct(4, keys));
    let queries = 2 * STRESS_KEYS;
    let (measured, current) = (hit_rate(&filter, queries), filter.statistics().false_positive_rate);
    let planned = filter.false_positive_rate();
    let noise = |rate: f64| 4.0 * (rate / queries as f64).sqrt() + 1.0 / queries as f64;
    let what = format!("measured {measured:e}, current {current:e}, planned {planned:e}");
    assert!((measured - current).abs() <= noise(current), "{what}");
    // A tenth is the luck of the keys in a small filter.
    assert!(measured <= 1.1 * planned + noise(planned), "{what}");
    assert!(planned <= 0.0501, "{what}");
    assert!(!filter.statistics().is_overfull, "{what}");
}

// ---- Inserts ----

fn inserts<E: Engine + Insert, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let single = plain(of(planned, &[]));
        let [by_key, by_hash] = copies(of(planned, &[]).with_isa(isa)).map(copies::<_, WAYS>);
        let mut probes = Vec::new();
        for (offset, &len) in lengths.iter().enumerate() {
            let new = keys(len as u64, len + len / 2);
            let (new, asked) = (&new[..len], &new[len / 2..]);
            let told: Vec<bool> = new.iter().map(|key| single.try_insert(key).unwrap()).collect();
            inserts_agree(&by_key, new, &told, offset % 8);
            inserts_agree(&by_hash, Hashed::slice(&hashes(&single, new)), &told, offset % 8);
            probes.extend_from_slice(asked);
            assert!(new.iter().all(|key| single.look_up(key)));
            let expected = found(&single, asked);
            assert!(
                by_key
                    .iter()
                    .chain(&by_hash)
                    .all(|other| found(other, asked) == expected)
            );
        }
        let expected = found(&single, &probes);
        for other in by_key.iter().chain(&by_hash) {
            assert!(found(other, &probes) == expected);
            if planned == PLANNED {
                assert_eq!(other.statistics(), single.statistics());
            }
        }
    });
    // Keys of other lengths, in several chunks.
    let (single, twins) = (of(PLANNED, &[]), copies(of(PLANNED, &[])));
    let strings: Vec<String> = (0..1100).map(|i| format!("{i}{}", "x".repeat(i % 40))).collect();
    let pairs: Vec<(u32, [u8; 3])> = (0..1100).map(|i| (i, [i as u8; 3])).collect();
    let told: Vec<bool> = strings.iter().map(|key| single.try_insert(key).unwrap()).collect();
    inserts_agree(&twins, &strings, &told, 1);
    let told: Vec<bool> = pairs.iter().map(|key| single.try_insert(key).unwrap()).collect();
    inserts_agree(&twins, &pairs, &told, 2);
    for other in &twins {
        assert_eq!(other.statistics(), single.statistics());
        lookups_agree(other, &strings, 3);
    }
    // The filler of a group that is not whole is not inserted.
    for isa in instruction_sets() {
        let empty = of(1000, &[]).with_isa(isa);
        for len in 0..=18 {
            let (filter, all) = (empty.clone(), empty.clone());
            let hashes = hashes(&filter, &distinct(5, len));
            filter.try_insert_batch(Hashed::slice(&hashes)).unwrap();
            all.try_insert_all(distinct(5, len)).unwrap();
            assert!(!filter.look_up(&Hashed(0)) && !all.look_up(&Hashed(0)));
            assert_eq!(filter.is_empty(), len == 0);
        }
    }
}

fn clear<E: Engine + Insert, S: KeyHasher>(of: Of<E, S>) {
    let new = of(2000, &[]);
    let mut filter = of(2000, &distinct(6, 1000));
    let content = distinct(7, 1500);
    let told: Vec<bool> = content.iter().map(|key| new.try_insert(key).unwrap()).collect();
    for _ in 0..2 {
        filter.clear();
        assert!(filter.is_empty());
        let now = filter.statistics();
        assert_eq!((now.len, now.fill_ratio, now.false_positive_rate), (0, 0.0, 0.0));
        assert!(distinct(6, 1000).iter().all(|key| !filter.look_up(key)));
        assert!(
            content
                .iter()
                .map(|key| filter.try_insert(key).unwrap())
                .eq(told.iter().copied())
        );
        assert_eq!(filter.statistics(), new.statistics());
    }
}

fn flags<E: Engine + Insert, S: KeyHasher + Clone>(of: Of<E, S>) {
    // The keys that were not found are new, and no others.
    let filter = of(PLANNED, &[]);
    for key in keys(5, 10_000) {
        let absent = !filter.look_up(&key);
        assert_eq!(filter.try_insert(&key), Ok(absent));
    }
    // Only the first of equal keys is new, and of two that take turns the first of each.
    for isa in instruction_sets() {
        let empty = of(1000, &[]).with_isa(isa);
        for len in (1..=18).chain([63, 64, 65, 129, 1025]) {
            let (same, turns) = (vec![7; len], Vec::from_iter((0..len as u64).map(|i| i % 2)));
            for (keys, different) in [(&same, 1), (&turns, len.min(2))] {
                let told = Vec::from_iter((0..len).map(|i| i < different));
                inserts_agree(&copies(empty.clone()), keys, &told, len % 8);
                let hashes = hashes(&empty, keys);
                inserts_agree(&copies(empty.clone()), Hashed::slice(&hashes), &told, len % 8);
            }
        }
    }
    let empty = of(1000, &[]);
    lengths_are_checked(|len, out| _ = empty.try_insert_batch_into(&[7u64; 200][..len], out));
    lengths_are_checked(|len, out| _ = empty.try_insert_batch_into(&[Hashed(7); 200][..len], out));
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
    let (single, twins) = (of(50, &[]), [(); WAYS].map(|()| of(50, &[])));
    for keys in content.chunks(700).take(3) {
        let told: Vec<bool> = keys.iter().map(|key| single.try_insert(key).unwrap()).collect();
        inserts_agree(&twins, keys, &told, 1);
        for other in &twins {
            assert_eq!(other.statistics(), single.statistics());
            lookups_agree(other, &distinct(21, 700), 1);
        }
    }
    let parts: Vec<&[u64]> = content.chunks(content.len().div_ceil(4)).collect();
    together(4, |thread| (&shared).extend(parts[thread]));
    let (own, shared) = (inner(&own), inner(&shared));
    assert_eq!(own.statistics(), expected.statistics());
    assert_eq!(shared.statistics(), expected.statistics());
    assert!(
        content
            .iter()
            .all(|key| own.look_up(key) && shared.look_up(key) && expected.look_up(key))
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
                [key] => _ = filter.try_insert(&key).unwrap(),
                _ => _ = filter.try_insert_batch(&new).unwrap(),
            }
            at += new.len();
            // Pairs with the load below: these inserts happened before a read of the number.
            inserted[thread].store(at, Ordering::Release);
            let other = (thread + turn) % THREADS;
            let newest = inserted[other].load(Ordering::Acquire);
            let asked: Vec<u64> = (newest.saturating_sub(100)..newest).map(|i| key(other, i)).collect();
            assert!(asked.iter().rev().take(3).all(|key| filter.look_up(key)));
            assert!(found(&filter, &asked).iter().all(|&found| found));
            if turn % 64 == thread {
                let copy = filter.clone();
                assert!((0..newest).all(|i| copy.look_up(&key(other, i))));
            }
        }
    });
    assert!((0..THREADS).all(|thread| (0..KEYS / THREADS).all(|i| filter.look_up(&key(thread, i)))));
}

// ---- Removals and counts ----

fn removes<E: Engine + Insert + Remove, S: KeyHasher + Clone>(of: Of<E, S>) {
    for_each_size(of, |isa, planned, lengths| {
        let single = plain(of(planned, &[]));
        let [by_key, by_hash] = copies(of(planned, &[]).with_isa(isa)).map(copies::<_, { PLACES + 1 }>);
        let all = || by_key.iter().chain(&by_hash);
        for (offset, &len) in lengths.iter().enumerate() {
            let new = keys(len as u64, len + len / 2);
            for filter in all().chain([&single]) {
                filter.try_insert_batch(&new[..len]).unwrap();
            }
            // Some that are there, some of them twice, and some that are not.
            let gone = &new[len / 2..];
            let hashes = hashes(&single, gone);
            let told: Vec<bool> = gone.iter().map(|key| single.take(key)).collect();
            let sum = told.iter().filter(|&&removed| removed).count();
            assert!(sum >= len / 3, "{sum} of {len}");
            removes_agree(&by_key, gone, &told, offset % 8);
            removes_agree(&by_hash, Hashed::slice(&hashes), &told, offset % 8);
            let expected = found(&single, &new);
            assert!(all().all(|filter| found(filter, &new) == expected));
            lookups_agree(&by_key[0], &new, offset % 8);
        }
        if planned == PLANNED {
            assert!(all().all(|filter| filter.statistics() == single.statistics()));
        }
    });
    // In a filter so sparse that nothing is taken for something else.
    let content = distinct(9, 40);
    let filter = of(PLANNED, &content);
    let strangers = distinct(10, 40);
    assert!(strangers.iter().all(|key| !filter.take(key)));
    assert_eq!(filter.take_batch_into(&strangers, ()), 0);
    for (i, key) in content.iter().enumerate() {
        assert!(filter.take(key) && !filter.take(key));
        assert!(content[..=i].iter().all(|key| !filter.look_up(key)));
        assert!(content[i + 1..].iter().all(|key| filter.look_up(key)));
    }
    let filter = of(1000, &[7; 3]);
    let hash = Hashed(filter.hash(&7u64));
    lengths_are_checked(|len, out| _ = filter.take_batch_into(&[7u64; 200][..len], out));
    lengths_are_checked(|len, out| _ = filter.take_batch_into(&[hash; 200][..len], out));
    assert!(filter.look_up(&7u64));
}

/// Every way to remove the keys, one by one and a slice at each place, each from a filter of its
/// own, gives the answers `told`, and their sum.
fn removes_agree<E: Engine + Remove, S, K: Key<S>>(
    [single, into @ ..]: &[Filter<E, S>; PLACES + 1],
    keys: &[K],
    told: &[bool],
    offset: usize,
) {
    let singly = keys.iter().map(|key| single.take(key));
    assert!(singly.eq(told.iter().copied()), "{} keys, one by one", keys.len());
    let into: &[_; PLACES] = into;
    let sums = answers_agree(told, offset, |place, out| into[place].take_batch_into(keys, out));
    let sum = told.iter().filter(|&&removed| removed).count();
    assert_eq!(sums, [sum; PLACES], "{} keys", keys.len());
}

fn count<E: Engine + Count, S: KeyHasher, K: Funnel>(filter: &Filter<E, S>, key: &K) -> usize {
    filter.engine().count_hash(filter.hash(key))
}

fn counts<E: Engine + Count, S: KeyHasher>(of: Of<E, S>) {
    let content = distinct(11, 1000);
    let filter = of(2000, &[&content[..], &content[..100]].concat());
    assert_eq!((filter.engine().len(), filter.statistics().len), (1100, 1100));
    assert!(filter.engine().slots() >= 2000 && filter.engine().max_copies() >= 3);
    for (i, key) in content.iter().enumerate() {
        // Or more, where another one is taken for it.
        assert!(count(&filter, key) > usize::from(i < 100));
    }
    let sum: usize = content.iter().map(|key| count(&filter, key)).sum();
    assert!((1100..1150).contains(&sum), "{sum}");
    assert!(
        distinct(12, 1000)
            .iter()
            .all(|key| (count(&filter, key) > 0) == filter.look_up(key))
    );
    let empty = of(2000, &[]);
    assert_eq!((empty.engine().len(), count(&empty, &"a")), (0, 0));
}

/// One key as often as it can be, beside others that may have to make room for it.
fn multiples<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher>(of: Of<E, S>) {
    let content = distinct(13, 15_000);
    let filter = of(20_000, &content);
    let key = (1 << 40..).map(number).find(|key| !filter.look_up(key)).unwrap();
    for copy in 0..filter.engine().max_copies() {
        assert_eq!((count(&filter, &key), filter.engine().len()), (copy, 15_000 + copy));
        filter.try_insert(&key).unwrap();
    }
    let error = filter.try_insert(&key).unwrap_err();
    assert!(!error.is_full() && error.inserted() == 0);
    assert!(content.iter().all(|key| filter.look_up(key)));
    assert!((0..filter.engine().max_copies()).all(|_| filter.take(&key)));
    assert!(!filter.take(&key) && filter.engine().len() == 15_000);
    // All that were moved are found to be removed.
    assert!(content.iter().all(|key| filter.take(key)));
    assert!(filter.is_empty() && filter.statistics().fill_ratio == 0.0);
}

fn fills<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher>(of: Of<E, S>) {
    // A batch ends at the first key that finds no room, and says where that is.
    let content = distinct(14, 10_000);
    let filter = of(3000, &[]);
    let alone = of(3000, &[]);
    let full = content.iter().position(|key| alone.try_insert(key).is_err()).unwrap();
    let hashes = hashes(&filter, &content);
    let hashes = Hashed::slice(&hashes);
    let told: Vec<bool> = (0..content.len()).map(|i| i < full).collect();
    for by_hash in [false, true] {
        let errors = answers_agree(&told, 1, |_, out| {
            let filter = of(3000, &[]);
            let inserted = match by_hash {
                true => filter.try_insert_batch_into(hashes, out),
                false => filter.try_insert_batch_into(&content, out),
            };
            assert_eq!(filter.engine().len(), full);
            inserted.unwrap_err()
        });
        assert!(errors.iter().all(|error| error.is_full() && error.inserted() == full));
    }
    let others = [(); 3].map(|()| of(3000, &[]));
    for (filter, error) in [
        (&filter, filter.try_insert_batch(&content)),
        (&others[0], others[0].try_insert_batch(hashes)),
        (&others[1], others[1].try_insert_all(content.iter())),
        (&others[2], others[2].try_insert_all(hashes)),
    ] {
        let error = error.unwrap_err();
        assert!(error.is_full() && full >= 3000);
        assert_eq!((error.inserted(), filter.engine().len()), (full, full));
    }
    // Keys behind a refused one are not hashed, but for its chunk.
    let hashed = Cell::new(0);
    let counted: Vec<_> = content.iter().map(|&key| Counted { key, hashed: &hashed }).collect();
    assert!(of(3000, &[]).try_insert_batch(&counted).is_err());
    assert!(hashed.get() <= full + 1024, "{} of {full}", hashed.get());
    hashed.set(0);
    assert!(of(3000, &[]).try_insert_batch_into(&counted, &mut Vec::new()).is_err());
    assert!(hashed.get() <= full + 1024, "{} of {full}", hashed.get());
    // Nothing is lost by what is refused, and what was moved can be removed; then there is room.
    let error = filter.try_insert(&content[full]).unwrap_err();
    assert!(error.is_full() && filter.engine().len() == full);
    assert!(content[..full].iter().all(|key| filter.look_up(key)));
    assert!(content[..full].iter().all(|key| filter.take(key)));
    assert!(filter.is_empty() && filter.try_insert(&content[full]).is_ok());
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
/// None is ever missing, also in a copy. In the end all threads race for all keys, beside inserts:
/// each is one thread's.
fn come_and_go<E: Engine + Count + Remove + Insert<Error = InsertError>, S: KeyHasher + Clone>(of: Of<E, S>)
where
    Filter<E, S>: Sync,
{
    const THREADS: usize = 4;
    let filter = of(STRESS_KEYS, &[]);
    // Nine tenths stay, the rest comes and goes, to the planned load.
    let (stay, come) = (STRESS_KEYS * 9 / 10 / THREADS, STRESS_KEYS / 10 / THREADS);
    let key = |thread: usize, i: usize| number((thread << 32 | i) as u64);
    together(THREADS, |thread| {
        (0..stay).for_each(|i| _ = filter.try_insert(&key(thread, i)).unwrap());
    });
    assert_eq!(filter.engine().len(), THREADS * stay);
    for round in 1..4 {
        together(THREADS, |thread| {
            let range = stay + round * come..stay + (round + 1) * come;
            let copy = filter.clone();
            assert!((0..stay).all(|i| copy.look_up(&key(thread, i))), "a copy misses a key");
            for i in range.clone() {
                filter.try_insert(&key(thread, i)).unwrap();
                assert!(filter.look_up(&key(thread, i)));
                let own = number(i as u64) as usize % stay;
                assert!(filter.look_up(&key(thread, own)), "a key is missing that stays");
                if i % 64 == 0 {
                    let batch: Vec<u64> = (own..stay.min(own + 100)).map(|i| key(thread, i)).collect();
                    let found = found(&filter, &batch);
                    assert!(found.iter().all(|&found| found), "a batch misses a key that stays");
                }
            }
            for i in range {
                let removed = filter.take(&key(thread, i));
                assert!(removed, "a key is missing that was to be removed");
            }
        });
        assert_eq!(filter.engine().len(), THREADS * stay);
    }
    assert!((0..THREADS).all(|thread| (0..stay).all(|i| filter.look_up(&key(thread, i)))));
    let claims = together(THREADS, |thread| {
        let mut claims = 0;
        for i in 0..THREADS * stay {
            claims += usize::from(filter.take(&key(i % THREADS, i / THREADS)));
            if i % THREADS == thread {
                filter.try_insert(&key(thread, STRESS_KEYS + i / THREADS)).unwrap();
            }
        }
        claims
    });
    // (A key that came may have been taken for one that stayed.)
    let taken: usize = claims.iter().sum();
    assert_eq!(taken + filter.engine().len(), 2 * THREADS * stay);
    assert!(taken >= THREADS * stay);
}

// ---- Whole filters ----

fn estimates<E: Engine, S: KeyHasher>(of: Of<E, S>) {
    for keys in [0, 1, 100, 2000, 5000] {
        let filter = of(5000, &distinct(15, keys));
        let len = filter.statistics().len;
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
    b.try_insert_all(&other).unwrap();
    let before = (a.clone(), b.clone());
    // Equal is what has the same content.
    assert!(a == before.0 && b == before.1 && a != b && a != empty);
    assert!(a == of(5000, one) && empty == empty.clone());

    assert!(a.union_from(&b).unwrap() && b == before.1);
    assert!(one.iter().chain(&other).all(|key| a.look_up(key)));
    assert!(b.union_from(&before.0).unwrap());
    assert!(one.iter().chain(&other).all(|key| b.look_up(key)));
    // A filter whose layers can have any layout has them in another order.
    let takes_any_layout = a.is_compatible(&of(20_000, one));
    assert!(a == b || takes_any_layout, "the order matters");
    // An answer says whether there was a change; an empty filter makes none.
    let three = empty.clone();
    three.try_insert_all(distinct(19, 3)).unwrap();
    for add in [&empty, &before.1, &three] {
        let before = a.clone();
        let changed = a.union_from(add).unwrap();
        assert_eq!(changed, a != before);
    }
    assert!(!a.union_from(&empty).unwrap() && empty.is_empty());
    // A key that one has makes them differ, in a copy too.
    let copy = b.clone();
    copy.try_insert_all(distinct(20, 3)).unwrap();
    assert!(copy != b);

    // A union with a filter for more keys is refused, and changes nothing.
    let (larger, before) = (of(20_000, one), b.clone());
    assert!(b != larger);
    if takes_any_layout {
        let larger = of(20_000, &distinct(21, 9000));
        assert!(larger.union_from(&b).unwrap() && b == before && !larger.union_from(&b).unwrap());
        let keys = [one, &other[..], &distinct(21, 9000)].concat();
        assert!(keys.iter().all(|key| larger.look_up(key)));
        return;
    }
    let message = b.union_from(&larger).unwrap_err().to_string();
    assert!(message.starts_with("the other filter's "), "{message}");
    let copy = larger.clone();
    assert!(larger.union_from(&b).is_err());
    assert!(b == before && larger == copy);
}
