//! The promises of Guava's and Spark's filters, for each version of their formats: those that they
//! share with every filter of lanebloom (`tests/contract/main.rs` there), and those about the bits
//! of a key, sets and streams. `contract.rs` says which filter, as `super`.

use super::{
    Bloom, FUNCTIONS, HEADER_START, Hash, Int, NAME, UNITES_WITH_ITSELF, VERSIONS, Version, builder, hash_of,
    header_len, header_of, indexes,
};
use lanebloom_formats::{JavaKey, ReadError};
use lanebloom_tests::{
    Full, LENGTHS_THAT_DIFFER, PLACES, Pieces, STRESS_KEYS, answers_agree, lengths_are_checked, panic_message,
    places_differ, together, within,
};
use serde_json::Value;
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers without a pattern.
fn number(i: u64) -> Int {
    lanebloom_tests::number(i) as Int
}

/// Different keys without a pattern.
fn distinct(seed: u64, len: usize) -> Vec<Int> {
    (0..len as u64).map(|i| number(seed << 32 | i)).collect()
}

/// A filter for this many keys, with these in it.
fn of(version: Version, keys: usize, content: impl IntoIterator<Item = Int>) -> Bloom {
    let filter = builder(version, keys).false_positive_rate(0.01).build().unwrap();
    filter.insert_all(content);
    filter
}

pub(crate) fn unhex(value: &Value) -> Vec<u8> {
    let pairs = value.as_str().unwrap().as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn read(bytes: &[u8]) -> Result<Bloom, ReadError> {
    Bloom::read_from(bytes, 1 << 20)
}

fn stream(version: Version, functions: u32, longs: &[u64]) -> Vec<u8> {
    let mut stream = header_of(version, functions, longs.len());
    stream.extend(longs.iter().flat_map(|long| long.to_be_bytes()));
    stream
}

// ---- The systems' own results ----

/// Reads what the system wrote, and writes it again.
#[track_caller]
pub(crate) fn assert_is_stream(filter: &Bloom, hex: &Value) {
    let stream = unhex(hex);
    assert_eq!(filter.to_bytes(), stream);
    let same = read(&stream).unwrap();
    assert!(same == *filter && same.format() == filter.format());
}

/// A filter with the million even numbers below 2,000,000: every false positive among the odd ones
/// is the system's, and so is the whole array.
#[track_caller]
pub(crate) fn assert_is_big(filter: &Bloom, odd: &[bool], case: &Value) {
    let positives = (0..).zip(odd).filter_map(|(i, found)| found.then_some(2 * i + 1));
    let positives: Vec<u64> = positives.collect();
    assert_eq!(Value::from(positives.len()), case["false_positives"], "{case}");
    let below = positives.into_iter().take_while(|key| *key < 900);
    assert_eq!(Value::from_iter(below), case["below_900"]);
    let stream = filter.to_bytes();
    assert_eq!(Value::from(stream.len()), case["bytes"]);
    // By the crate of that name. (The system's bytes were checked by the SHA-256 beside it when
    // they were made.)
    let hash = murmur3::murmur3_x64_128(&mut &stream[..], 0).unwrap();
    assert_eq!(format!("{hash:032x}"), case["murmur3_x64_128"].as_str().unwrap());
}

/// Rates that no system takes are refused by all builders alike.
#[track_caller]
pub(crate) fn assert_rates_are_checked(error: impl Fn(f64) -> String) {
    for rate in ["0", "1", "-0.1", "1.1", "NaN", "inf"] {
        let expected = format!("false-positive rate {rate} is not between 0 and 1, both excluded");
        assert_eq!(error(rate.parse().unwrap()), expected);
    }
}

/// Bytes that are not a filter, with the reason.
#[track_caller]
pub(crate) fn assert_is_refused(bytes: &[u8], message: &str) {
    assert_eq!(Bloom::from_bytes(bytes).unwrap_err().to_string(), message);
    assert_eq!(read(bytes).unwrap_err().to_string(), message);
    assert_eq!(Bloom::stream_len(bytes).unwrap_err().to_string(), message);
}

// ---- Bits ----

/// Streams of filters with one hash function and with many, some beyond the caches, so full that
/// about half of all keys are in them, each of whose bits matters.
fn dense() -> impl Iterator<Item = Vec<u8>> {
    let shapes = FUNCTIONS.iter().flat_map(|&k| [(k, 200.max(40 * k)), (k, 17_000_000)]);
    let shapes = shapes.filter(|(k, bits)| *bits < 17_000_000 || [1, 7, 23, 252, 513].contains(k));
    shapes.flat_map(|(functions, bits)| {
        let mut longs = vec![u64::MAX; bits.div_ceil(64) as usize];
        let bits = 64 * longs.len() as u64;
        let unset = bits as f64 * (1.0 - 0.5f64.powf(1.0 / f64::from(functions)));
        for i in 0..unset as u64 {
            let bit = number(i) as u64 % bits;
            longs[bit as usize / 64] &= !(1 << (bit % 64));
        }
        VERSIONS.map(|version| stream(version, functions, &longs))
    })
}

/// Whether a filter with this stream has all bits of the key, by the system's algorithm.
fn might_contain(stream: &[u8], key: Int) -> bool {
    let longs = &stream[header_len(stream)..];
    indexes(stream, hash_of(stream, key)).all(|bit| longs[bit / 64 * 8 + 7 - bit % 64 / 8] >> (bit % 8) & 1 == 1)
}

#[test]
fn every_bit_of_a_key_counts() {
    for stream in dense() {
        let filter = Bloom::from_bytes(&stream).unwrap().0;
        // The first ones have a small hash, where the sum of Spark's V2 changes its sign.
        let keys = distinct(0, 700);
        let expected: Vec<bool> = keys.iter().map(|key| might_contain(&stream, *key)).collect();
        let present = expected.iter().filter(|&&present| present).count();
        assert!((100..=600).contains(&present), "{filter:?}: {present} of 700");
        let single = keys.iter().map(|key| filter.contains(key));
        assert!(single.eq(expected.iter().copied()), "{filter:?}");
        assert_eq!(found!(filter, &keys), expected, "{filter:?}");

        // An insert changes the filter where the key was not in it, and then the key is.
        let batch = filter.clone();
        let mut changed = vec![false; keys.len()];
        batch.insert_batch_into(&keys, &mut changed);
        assert!(keys.iter().map(|key| filter.insert(key)).eq(changed));
        assert!(filter == batch);
        let stream = filter.to_bytes();
        let all = |key: &Int| might_contain(&stream, *key) && filter.contains(key);
        assert!(keys.iter().all(all));
    }
}

/// An insert by hash sets the bits of the algorithm and no others, by whichever call, for numbers
/// without a pattern and at the ends of their range, where the sums of the algorithm overflow or
/// change their sign.
#[test]
fn an_insert_by_hash_sets_the_bits_of_the_algorithm() {
    let functions = FUNCTIONS.iter().filter(|functions| **functions < 1000);
    for (version, functions) in VERSIONS
        .iter()
        .flat_map(|version| functions.clone().map(move |k| (*version, *k)))
    {
        let stream = stream(version, functions, &[0; 1249]);
        let (empty, header) = (Bloom::from_bytes(&stream).unwrap().0, header_len(&stream));
        let [batch, all, mut alone] = [(); 3].map(|()| empty.clone());
        let hashes = super::hashes();
        for hash in &hashes {
            let mut expected = vec![0_u64; 1249];
            indexes(&stream, *hash).for_each(|bit| expected[bit / 64] |= 1 << (bit % 64));
            let [one, same] = [(); 2].map(|()| empty.clone());
            assert!(one.insert(hash) && one.contains(hash));
            let bytes = expected.iter().flat_map(|long| long.to_be_bytes());
            assert!(one.to_bytes()[header..].iter().copied().eq(bytes), "{one:?}, {hash:?}");
            assert_eq!(same.insert_batch(&[*hash; 70]), 1);
            assert!(same == one && found!(one, &[*hash; 70]) == [true; 70]);
            all.union_from(&one).unwrap();
        }
        batch.insert_batch(&hashes);
        alone.exclusive().insert_batch(&hashes);
        assert!(batch == all && alone == all, "{all:?}");
    }
}

// ---- Single calls and batches ----

#[test]
fn a_filter_is_what_it_says() {
    for version in VERSIONS {
        let (empty, filter) = (of(version, 1000, []), of(version, 1000, distinct(0, 500)));
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
}

/// Keys without a pattern, some of which are there twice: once more just behind, eight places on,
/// or far behind.
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

/// About single calls, the least chunks, windows, and the chunks of keys and of an iterator.
const LENGTHS: [usize; 28] = [
    0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 300, 511, 513, 1025, 2100,
];

/// Every lookup of the keys, and of their hashes, gives the answers of single calls, written
/// `offset` into larger buffers.
fn lookups_agree<K: JavaKey<super::System>>(filter: &Bloom, keys: &[K], offset: usize) {
    let hashes: Vec<Hash> = keys.iter().map(|key| filter.hash(key)).collect();
    let (hashed, ()) = within(offset, keys.len(), Hash::default(), |out| filter.hash_batch(keys, out));
    assert!(hashed == hashes, "hashes of {} keys", keys.len());
    let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
    let by_hash = hashes.iter().map(|hash| filter.contains(hash));
    assert!(by_hash.eq(expected.iter().copied()));
    answers_agree(&expected, offset, |_, out| filter.contains_batch(keys, out));
    answers_agree(&expected, offset, |_, out| filter.contains_batch(&hashes, out));
}

/// Filters without a key and half full ones, with any number of bits for a key, within the caches
/// and beyond, where lines are prefetched.
#[test]
fn every_form_of_a_call_is_single_calls_in_order() {
    let empty = VERSIONS
        .into_iter()
        .flat_map(|version| [20_000, 3_000_000].map(|keys| of(version, keys, [])));
    for single in empty.chain(dense().map(|stream| Bloom::from_bytes(&stream).unwrap().0)) {
        let twins = [(); 5 + PLACES].map(|()| single.clone());
        let [by_hash, by_keys, by_hashes, all, mut alone, into @ ..] = twins;
        let lengths = LENGTHS.into_iter().enumerate();
        for (offset, len) in lengths.filter(|(_, len)| len * (single.hash_functions() as usize) < 60_000) {
            let new = keys(len as u64, len);
            lookups_agree(&single, &new, (offset + 1) % 8);
            // A key that was not found is new, and only such a key.
            let insert = |key: &Int| {
                let absent = !single.contains(key);
                assert_eq!(single.insert(key), absent);
                absent
            };
            let told: Vec<bool> = new.iter().map(insert).collect();
            let sum = told.iter().filter(|&&new| new).count();
            lookups_agree(&single, &new, offset % 8);

            let hashes: Vec<Hash> = new.iter().map(|key| single.hash(key)).collect();
            assert!(hashes.iter().map(|hash| by_hash.insert(hash)).eq(told.iter().copied()));
            let counts = [
                by_keys.insert_batch(&new),
                by_hashes.insert_batch(&hashes),
                all.insert_all(&new),
            ];
            assert_eq!(counts, [sum; 3], "{len} keys");
            assert_eq!(alone.exclusive().insert_batch(&new), sum, "{len} keys");
            assert_eq!(alone.exclusive().insert_batch(&hashes), 0, "{len} keys");
            let sums = answers_agree(&told, offset % 8, |place, out| into[place].insert_batch_into(&new, out));
            assert_eq!(sums, [sum; PLACES], "{len} keys");
        }
        let twins = [by_hash, by_keys, by_hashes, all, alone];
        assert!(twins.iter().chain(&into).all(|twin| *twin == single), "{single:?}");
        let strings: Vec<String> = (0..65).map(|i| "x".repeat(i)).collect();
        lookups_agree(&single, &strings, 3);
    }
}

#[test]
fn lengths_that_differ_panic() {
    let filter = of(VERSIONS[0], 1000, []);
    let (keys, hashes) = ([7 as Int; 200], [filter.hash(&(7 as Int)); 200]);
    lengths_are_checked(|len, out| filter.contains_batch(&keys[..len], out));
    lengths_are_checked(|len, out| filter.contains_batch(&hashes[..len], out));
    lengths_are_checked(|len, out| _ = filter.insert_batch_into(&keys[..len], out));
    lengths_are_checked(|len, out| _ = filter.insert_batch_into(&hashes[..len], out));
    assert!(filter.is_empty());
    for (len, places) in LENGTHS_THAT_DIFFER {
        let out = &mut [Hash::default(); 200][..places];
        let message = panic_message(|| filter.hash_batch(&keys[..len], out));
        assert_eq!(message, places_differ(len, places));
    }
}

/// Four threads insert, by single calls and by batches, and ask for what others inserted, also in
/// copies of the filter.
#[test]
fn lookups_and_copies_beside_inserts_lose_nothing() {
    for version in VERSIONS {
        beside_inserts(version);
    }
}

fn beside_inserts(version: Version) {
    const THREADS: usize = 4;
    const KEYS: usize = STRESS_KEYS / 4;
    let filter = of(version, 2 * KEYS, []);
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

#[test]
fn a_shared_filter_is_extended_and_a_cleared_one_is_new() {
    for version in VERSIONS {
        let content = distinct(8, 5000);
        let (expected, shared) = (of(version, 20_000, content.clone()), of(version, 20_000, []));
        let parts: Vec<&[Int]> = content.chunks(content.len().div_ceil(4)).collect();
        together(4, |thread| (&shared).extend(parts[thread]));
        assert!(shared == expected);
        let mut own = of(version, 20_000, distinct(6, 1000));
        for _ in 0..2 {
            own.clear();
            assert!(own.is_empty() && own == of(version, 20_000, []));
            own.extend(&content);
            assert!(own == expected);
        }
    }
}

/// With the expected keys, a filter has its rate, which is the measured one, and is not overfull;
/// with half as many more it is.
/// A stream does not hold the number of keys; a filter that was read has about as many.
#[test]
fn a_filter_is_overfull_when_it_has_too_many_keys() {
    for version in VERSIONS {
        for rate in [0.1, 0.03, 0.01, 1e-3, 1e-5] {
            let filter = builder(version, STRESS_KEYS).false_positive_rate(rate).build().unwrap();
            filter.insert_all(distinct(20, STRESS_KEYS));
            for told in [filter.false_positive_rate(), filter.statistics().false_positive_rate] {
                assert!((told / rate - 1.0).abs() < 0.1, "{told}, not {rate}");
            }
            let strangers = distinct(1 << 18, 200_000);
            let hits = found!(filter, &strangers).into_iter().filter(|&found| found).count();
            // Four standard deviations.
            let expected = strangers.len() as f64 * filter.statistics().false_positive_rate;
            assert!(
                (hits as f64 - expected).abs() <= 4.0 * expected.sqrt() + 1.0,
                "{hits}, not {expected}"
            );
            let same = Bloom::from_bytes(&filter.to_bytes()).unwrap().0;
            assert_eq!(filter.expected_keys(), STRESS_KEYS);
            assert!(same.expected_keys().abs_diff(STRESS_KEYS) < STRESS_KEYS / 5);
            let read = Bloom::read_from(&filter.to_bytes()[..], usize::MAX).unwrap();
            assert_eq!(read.expected_keys(), same.expected_keys());
            for filter in [same, filter] {
                assert!(!filter.statistics().is_overfull, "{filter:?}, {rate}");
                filter.insert_all(distinct(21, STRESS_KEYS / 2));
                assert!(filter.statistics().is_overfull, "{filter:?}, {rate}");
            }
        }
    }
}

// ---- Sets ----

#[test]
fn a_union_holds_the_keys_of_both() {
    for version in VERSIONS {
        let (one, other) = (distinct(16, 1000), [distinct(16, 500), distinct(17, 1000)].concat());
        let filter = |keys: &[Int]| of(version, 5000, keys.iter().copied());
        let (empty, a, b) = (filter(&[]), filter(&one), filter(&other));
        let before = (a.clone(), b.clone());
        // Equal is what has the same content.
        assert!(a == before.0 && b == before.1 && a != b && a != empty && empty == empty.clone());

        assert!(a.union_from(&b).unwrap() && b == before.1);
        assert!(one.iter().chain(&other).all(|key| a.contains(key)));
        assert!(b.union_from(&before.0).unwrap() && a == b, "the order matters");
        // An answer says whether there was a change; an empty filter makes none.
        for add in [&empty, &before.1, &filter(&distinct(19, 3))] {
            let before = a.clone();
            let changed = a.union_from(add).unwrap();
            assert_eq!(changed, a != before);
        }
        assert!(!a.union_from(&empty).unwrap() && empty.is_empty());

        // A filter for other keys is refused, and changes nothing.
        let (larger, before) = (of(version, 20_000, one), b.clone());
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
}

#[test]
fn an_intersection_has_the_bits_of_both() {
    for version in VERSIONS {
        for size in [400, 30_000] {
            let (mut a, b) = (of(version, size, 0..200), of(version, size, 150..400));
            let before = (a.to_bytes(), b.to_bytes());
            assert_eq!(a.exclusive().intersection_from(&b), Ok(true));
            let bits = before.0.iter().zip(&before.1).map(|(a, b)| a & b);
            assert!(a.to_bytes().into_iter().eq(bits) && b.to_bytes() == before.1);
            assert!((150..200).all(|key: Int| a.contains(&key)));
            assert_eq!(a.exclusive().intersection_from(&b), Ok(false));
            let copy = a.clone();
            assert_eq!(a.exclusive().intersection_from(&copy), Ok(false));
            let empty = of(version, size, 0..0);
            assert_eq!(a.exclusive().intersection_from(&empty), Ok(true));
            assert!(a == empty && a.is_empty());
            let other = of(version, size + 100, 0..10);
            let error = a.exclusive().intersection_from(&other).unwrap_err().to_string();
            assert!(error.starts_with("the other filter's layout differs") && a == empty);
        }
    }
}

#[test]
fn sets_are_compared_without_being_made() {
    for version in VERSIONS {
        let filter = |keys| of(version, 20_000, keys);
        let (a, b) = (filter(0..12_000), filter(8000..20_000));
        let union = a.clone();
        union.union_from(&b).unwrap();
        assert_eq!(a.with(&b).unwrap().union_len(), union.statistics().len);
        let both = a.statistics().len + b.statistics().len - union.statistics().len;
        assert_eq!(a.with(&b).unwrap().intersection_len(), both);
        assert!(both.abs_diff(4000) < 300, "{both}");
        for keys in [0, 1, 100, 2000, 5000] {
            let len = of(version, 5000, distinct(15, keys)).statistics().len;
            // Four standard errors.
            let most = 0.5 + 4.0 * 0.3 * (keys as f64).sqrt();
            assert!(len.abs_diff(keys) as f64 <= most, "{len} of {keys}");
        }
        // Never below 0.
        let few = filter(0..1);
        assert!(few.with(&filter(1..20_000)).unwrap().intersection_len() <= 1);

        // A subset lacks no bit.
        let all = filter(0..3000);
        let subset = |a: &Bloom, b: &Bloom| a.with(b).unwrap().is_subset();
        assert!(subset(&filter(0..0), &all) && subset(&all, &all.clone()));
        for key in 0..5000 {
            assert_eq!(subset(&filter(key..key + 1), &all), all.contains(&key), "{key}");
        }
        // Nearly the same bits, some of them in each word.
        let (more, fewer) = (of(version, 400, 0..400), of(version, 400, 0..380));
        assert!(subset(&fewer, &more) && !subset(&more, &fewer));
    }
}

// ---- Streams ----

/// Filters of one long to 100 KiB, about the places where a line, a buffer and what is allocated at
/// first end, with the lengths of their headers.
fn written() -> impl Iterator<Item = (Bloom, Vec<u8>, usize)> {
    let words = [
        1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 2048, 8191, 8192, 8193, 8200, 16384, 16385, 40_000,
    ];
    words.into_iter().enumerate().map(|(i, words)| {
        let longs = Vec::from_iter((0..words).map(|j| number(j) as u64));
        let (version, functions) = (VERSIONS[i % VERSIONS.len()], 1 + 15 * i as u32);
        let bytes = stream(version, functions, &longs);
        let filter = Bloom::from_bytes(&bytes).unwrap().0;
        assert_eq!((filter.bit_size(), filter.hash_functions()), (64 * words, functions));
        assert!(filter.format() == builder(version, 10).build().unwrap().format());
        let header = bytes.len() - 8 * longs.len();
        (filter, bytes, header)
    })
}

#[test]
fn a_stream_is_read_as_it_was_written() {
    for (filter, bytes, header) in written() {
        assert_eq!(filter.to_bytes(), bytes);
        assert_eq!(Bloom::stream_len(&bytes[..header]).unwrap(), bytes.len() as u64);
        let mut stream = Vec::new();
        filter.write_to(&mut stream).unwrap();
        assert!(stream == bytes);

        // Exactly as much as the limit, and what follows stays where it is.
        let limit = bytes.len() - header;
        let more = [&bytes[..], b"more"].concat();
        let mut reader = &more[..];
        assert!(Bloom::read_from(&mut reader, limit).unwrap() == filter);
        assert_eq!(reader, b"more");
        let (same, rest) = Bloom::from_bytes(&more).unwrap();
        assert!(same == filter && rest == b"more");
        let (least, error) = (limit - 1, Bloom::read_from(&bytes[..], limit - 1).unwrap_err());
        let expected = format!("the filter takes {limit} bytes, more than the limit of {least} bytes");
        assert_eq!(error.to_string(), expected);

        let mut pieces = Pieces::new(&bytes, None);
        assert!(Bloom::read_from(&mut pieces, limit).unwrap() == filter);
        assert!(same.union_from(&filter).is_ok());

        // An error of the writer is passed on.
        assert!(filter.write_to(Full(bytes.len())).is_ok());
        for room in [0, 5, header, bytes.len() / 2, bytes.len() - 1] {
            assert_eq!(filter.write_to(Full(room)).unwrap_err().to_string(), "full");
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    for (_, bytes, header) in written() {
        let near = |at: usize| at.saturating_sub(9)..(at + 9).min(bytes.len());
        let ends = (0..bytes.len().min(3000))
            .chain((1..6).flat_map(|i| near(65_536 * i)))
            .chain(near(bytes.len()));
        for end in ends {
            let part = &bytes[..end];
            let needed = [HEADER_START, header].into_iter().find(|len| end < *len);
            let expected = format!("the stream ends after {end} bytes of {}", needed.unwrap_or(bytes.len()));
            let (whole, read) = (Bloom::from_bytes(part), Bloom::read_from(part, usize::MAX));
            for error in [whole.unwrap_err(), read.unwrap_err()] {
                assert_eq!(error.to_string(), expected);
                assert!(error.is_truncated() && error.source().is_none());
            }
        }
        // The reader's own error, unchanged, from wherever it comes.
        for end in [0, 3, 4, header, header + 1, bytes.len() - 1] {
            let mut pieces = Pieces::new(&bytes[..end], Some(io::Error::other("unplugged")));
            let error = Bloom::read_from(&mut pieces, usize::MAX).unwrap_err();
            assert_eq!(error.to_string(), "the stream could not be read: unplugged");
            assert!(!error.is_truncated());
            let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
            assert_eq!(source.to_string(), "unplugged");
        }
    }
}

/// Nothing is allocated for what a stream merely says: these declare up to 16 GiB.
#[test]
fn a_stream_that_is_none_is_an_error() {
    // The first bytes of `ObjectOutputStream.writeObject`.
    assert_is_refused(
        b"\xac\xed\0\x05sr\x002com.google.common.hash.BloomFilter$SerialForm",
        "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream",
    );
    for version in VERSIONS {
        let with_len = |longs: i32| [header_of(version, 5, longs as u32 as usize), vec![0; 64]].concat();
        for longs in [0, -1, i32::MIN] {
            let message = format!("a length of {longs} longs is not in 1 to 2147483647");
            assert_is_refused(&with_len(longs), &message);
        }
        let absurd = with_len(i32::MAX);
        let error = read(&absurd).unwrap_err().to_string();
        assert_eq!(
            error,
            "the filter takes 17179869176 bytes, more than the limit of 1048576 bytes"
        );
        let all = absurd.len() as u64 - 64 + 17_179_869_176;
        let ends = format!("the stream ends after {} bytes of {all}", absurd.len());
        assert_eq!(Bloom::from_bytes(&absurd).unwrap_err().to_string(), ends);
        let error = Bloom::read_from(&absurd[..], usize::MAX).unwrap_err();
        assert_eq!(error.to_string(), ends);
    }
}
