//! `GuavaBloom` without a JVM: values from Guava, the checks of Guava's own tests, and invalid
//! streams.
#![cfg(feature = "std")]

use crate::contract::guava::each::{hit_rate, lookups_agree};
use lanebloom::{Funnel, Murmur3};
use lanebloom_formats::JavaReadError;
use lanebloom_formats::guava::{Builder, GuavaBloom, HashFunctions, Strategy, UnencodedChars, Utf16};
use lanebloom_tests::{Full, Pieces, STRESS_KEYS, number, together};
use proptest::prelude::*;
use serde_json::Value;
use std::error::Error;
use std::io;

const STRATEGIES: [Strategy; 2] = [Strategy::Mitz32, Strategy::Mitz64];
const FORMULAS: [HashFunctions; 2] = [HashFunctions::ByBits, HashFunctions::ByRate];

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/guava.json")).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn builder(keys: usize, rate: f64) -> Builder {
    GuavaBloom::builder().expected_keys(keys).false_positive_rate(rate)
}

fn strategy(name: &Value) -> Strategy {
    match name.as_str().unwrap() {
        "MITZ_32" => Strategy::Mitz32,
        "MITZ_64" => Strategy::Mitz64,
        other => panic!("no strategy {other}"),
    }
}

fn read(bytes: &[u8]) -> Result<GuavaBloom, JavaReadError> {
    GuavaBloom::read_from(bytes, 1 << 20)
}

#[test]
fn small_filters_are_guavas_to_the_byte() {
    let golden = golden();
    let cases = golden["small_filters_n10_p001_128bits_k7"].as_array().unwrap();
    for case in cases {
        let filter = builder(10, 0.01).strategy(strategy(&case["strategy"])).build().unwrap();
        match case["keys"].as_str().unwrap() {
            "int 1,2,3" => (&filter).extend([1i32, 2, 3]),
            "int -1" => (&filter).extend([-1i32]),
            "long 1,2,3" => (&filter).extend([1i64, 2, 3]),
            "utf8 hello,world" => (&filter).extend(["hello", "world"]),
            "unencodedChars hello,world" => (&filter).extend(["hello", "world"].map(UnencodedChars)),
            "bytes [] and 00010203" => (&filter).extend([&[][..], &[0u8, 1, 2, 3]]),
            other => panic!("no keys {other}"),
        }
        let stream = unhex(case["hex"].as_str().unwrap());
        assert_eq!(filter.to_bytes(), stream, "{case}");
        assert!(read(&stream).unwrap() == filter);
    }
    assert_eq!(cases.len(), 8);
    let empty = builder(0, 0.03).build().unwrap();
    assert_eq!(
        empty.to_bytes(),
        unhex(golden["empty_n0_p003_MITZ_64"].as_str().unwrap())
    );
}

/// A million keys: every false positive among another million is Guava's, and so are the figures
/// and the whole array.
#[test]
fn big_filters_are_guavas() {
    for case in golden()["big_filters"]["cases"].as_array().unwrap() {
        let filter = builder(1_000_000, 0.03)
            .strategy(strategy(&case["strategy"]))
            .build()
            .unwrap();
        assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
        let keys = |first: u32| (first..2_000_000).step_by(2).map(|i| i.to_string()).collect::<Vec<_>>();
        let (even, odd) = (keys(0), keys(1));
        let mut found = vec![false; odd.len()];
        if case["funnel"] == "utf8" {
            filter.insert_batch(&even);
            filter.contains_batch(&odd, &mut found);
        } else {
            (&filter).extend(even.iter().map(UnencodedChars));
            let odd: Vec<_> = odd.iter().map(UnencodedChars).collect();
            filter.contains_batch(&odd, &mut found);
        }
        let positives: Vec<u64> = (0..)
            .zip(&found)
            .filter_map(|(i, found)| found.then_some(2 * i + 1))
            .collect();
        assert_eq!(
            positives.len() as u64,
            case["false_positives"].as_u64().unwrap(),
            "{case}"
        );
        let below: Vec<u64> = positives.into_iter().take_while(|key| *key < 900).collect();
        assert_eq!(Value::from(below), case["below_900"]);
        assert_eq!(
            filter.current_false_positive_rate(),
            case["expected_fpp"].as_f64().unwrap()
        );
        assert_eq!(filter.estimated_len() as u64, case["approx_count"].as_u64().unwrap());
        let stream = filter.to_bytes();
        assert_eq!(stream.len() as u64, case["bytes"].as_u64().unwrap());
        assert_eq!(murmur3(&stream), case["murmur3_x64_128"].as_str().unwrap());
    }
}

/// By the crate of that name. (The SHA-256 beside it is what Guava's bytes were checked by when
/// they were made.)
fn murmur3(mut bytes: &[u8]) -> String {
    format!("{:032x}", murmur3::murmur3_x64_128(&mut bytes, 0).unwrap())
}

#[test]
fn the_rate_is_the_requested_one() {
    for strategy in STRATEGIES {
        for rate in [0.1, 0.03, 0.01, 1e-3] {
            let filter = builder(STRESS_KEYS, rate).strategy(strategy).build().unwrap();
            (&filter).extend(0..STRESS_KEYS as u64);
            let measured = hit_rate(&filter, 200_000);
            assert!(
                (measured / rate - 1.0).abs() < 0.25,
                "{strategy}: {measured}, not {rate}"
            );
            assert!((filter.current_false_positive_rate() / rate - 1.0).abs() < 0.1);
            // Its reader does not take it for overfull either, until it has half as many more.
            let (copy, _) = GuavaBloom::from_bytes(&filter.to_bytes()).unwrap();
            for mut filter in [filter, copy] {
                assert!(!filter.is_overfull(), "{strategy} {rate}");
                filter.extend(1 << 40..STRESS_KEYS as u64 / 2 + (1 << 40));
                assert!(filter.is_overfull(), "{strategy} {rate}");
            }
        }
    }
}

/// Guava's `testPreconditions` and `testFailureWhenMoreThan255HashFunctions`. Expected keys below 0
/// do not compile.
#[test]
fn what_guava_refuses_is_an_error() {
    for formula in FORMULAS {
        let error = |keys, rate| {
            let built = builder(keys, rate).hash_functions(formula).build();
            built.unwrap_err().to_string()
        };
        for rate in ["0", "1", "-0.1", "1.1", "NaN", "inf"] {
            assert_eq!(
                error(1000, rate.parse().unwrap()),
                format!("false-positive rate {rate} is not between 0 and 1, both excluded")
            );
        }
        assert_eq!(
            error(1000, 1e-77),
            "a rate of 1e-77 takes 256 hash functions, more than Guava's limit of 255"
        );
        assert_eq!(
            error(1, 0.99),
            "Guava's formula gives a filter for 1 keys at a rate of 0.99 no bit at all"
        );
        // Guava's testOptimalSize: the size overflows nothing, and is too large.
        assert_eq!(
            error(i32::MAX as usize, 4.9e-324),
            "a filter of 3327428144502 bits is beyond Guava's limit of 137438953408 bits"
        );
        assert!(error(usize::MAX, 0.01).contains("is beyond Guava's limit of 137438953408 bits"));
    }
    assert!(builder(1000, 1e-76).build().is_ok());
}

/// Guava's `testExpectedFpp`.
#[test]
fn the_expected_rate_rises_to_the_requested_one() {
    let filter = builder(10, 0.03).build().unwrap();
    let mut rate = filter.current_false_positive_rate();
    assert_eq!(rate, 0.0);
    for i in 0..10 {
        let changed = filter.insert(&number(i));
        let next = filter.current_false_positive_rate();
        assert!(if changed { next > rate } else { next == rate });
        rate = next;
    }
    assert!((0.001..0.05).contains(&rate), "{rate}");
}

/// Guava's `testApproximateElementCount`.
#[test]
fn the_count_is_about_the_number_of_distinct_keys() {
    let filter = builder(5000, 0.03).build().unwrap();
    let mut last = 0;
    for i in 1..=5000u64 {
        filter.insert(&i);
        filter.insert(&i);
        let count = filter.estimated_len() as u64;
        assert!(count >= last);
        assert!(i < 1000 || count.abs_diff(i) < i / 25, "{count} for {i}");
        last = count;
    }
    let full = GuavaBloom::from_bytes(&[&[1, 5, 0, 0, 0, 1][..], &[0xff; 8]].concat())
        .unwrap()
        .0;
    assert_eq!(
        (full.estimated_len(), full.current_false_positive_rate()),
        (usize::MAX, 1.0)
    );
}

/// A hash is both halves, and stands for its key in every call.
#[test]
fn hashes_stand_for_their_keys() {
    for builder in shapes() {
        let [by_key, mut by_hash] = [(); 2].map(|()| builder.clone().build().unwrap());
        let keys: Vec<u64> = (0..700).map(number).collect();
        let hashes: Vec<_> = keys.iter().map(|key| by_hash.hash(key)).collect();
        assert_eq!(hashes[0], Murmur3::default().hash128(&keys[0]));
        assert_eq!(by_hash.insert_hashes(&hashes[..350]), by_key.insert_batch(&keys[..350]));
        assert!(by_hash == by_key);
        lookups_agree(&by_hash, &keys, 3);
        by_hash.clear();
        assert!(by_hash.is_empty() && by_hash == builder.build().unwrap());
    }
}

/// A stream does not hold the number of keys; a filter that was read has about as many.
#[test]
fn a_filter_that_was_read_expects_as_many_keys() {
    for rate in [0.1, 0.01, 1e-6] {
        let filter = builder(100_000, rate).build().unwrap();
        assert_eq!(filter.expected_keys(), 100_000);
        assert!((filter.false_positive_rate() / rate - 1.0).abs() < 0.1);
        let same = read(&filter.to_bytes()).unwrap();
        assert!(same.expected_keys().abs_diff(100_000) < 20_000);
        assert_eq!(
            same.expected_keys(),
            GuavaBloom::from_bytes(&filter.to_bytes()).unwrap().0.expected_keys()
        );
    }
}

/// Guava's `testBitSize`: the size is that of the stream.
#[test]
fn the_size_is_what_is_written() {
    for formula in FORMULAS {
        for keys in 0..2000 {
            let filter = builder(keys, 0.03).hash_functions(formula).build().unwrap();
            let stream = filter.to_bytes();
            assert_eq!(stream.len() as u64, 6 + filter.bit_size() / 8);
            assert_eq!(
                i32::from_be_bytes(*stream[2..].first_chunk().unwrap()) as u64,
                filter.bit_size() / 64
            );
            assert_eq!(
                filter.memory_bytes() as u64,
                (filter.bit_size() / 8).next_multiple_of(64)
            );
        }
    }
}

/// Guava's `testCopy` and `testEquals`.
#[test]
fn a_copy_is_equal_and_another_filter() {
    let filter = builder(100, 0.01).build().unwrap();
    assert!(filter == filter.clone());
    filter.insert("a");
    let copy = filter.clone();
    assert!(filter == copy && copy.contains("a"));
    copy.insert("b");
    assert!(filter != copy && !filter.contains("b"));
    filter.insert("b");
    assert!(filter == copy);

    // Empty filters differ by everything that is no key.
    let empty = |keys, rate| builder(keys, rate).build().unwrap();
    assert!(empty(100, 0.01) == empty(100, 0.01));
    assert!(empty(100, 0.01) != empty(100, 0.02) && empty(100, 0.01) != empty(200, 0.01));
    assert!(empty(100, 0.01) != builder(100, 0.01).strategy(Strategy::Mitz32).build().unwrap());
    let formulas = FORMULAS.map(|formula| builder(1, 0.01).hash_functions(formula).build().unwrap());
    assert_eq!(formulas[0].bit_size(), formulas[1].bit_size());
    assert!(formulas[0] != formulas[1] && !formulas[0].is_compatible(&formulas[1]));
}

/// Guava's `testPutAll`, `testPutAllDifferentSizes` and `testPutAllWithSelf`.
#[test]
fn a_union_has_the_keys_of_both() {
    for strategy in STRATEGIES {
        let (one, other) = (0..200u64, 150..400u64);
        let make = |keys: std::ops::Range<u64>| {
            let filter = builder(400, 0.01).strategy(strategy).build().unwrap();
            filter.insert_all(keys);
            filter
        };
        let (a, b, both) = (make(one), make(other), make(0..400));
        assert!(a.is_compatible(&b) && b.is_compatible(&a));
        let before = b.clone();
        assert_eq!(a.union_from(&b), Ok(true));
        assert!(a == both && b == before);
        assert_eq!(a.union_from(&b), Ok(false));

        assert!(!a.is_compatible(&a));
        assert_eq!(
            a.union_from(&a).unwrap_err().to_string(),
            "a filter cannot be united with itself"
        );
        let larger = builder(401, 0.001).strategy(strategy).build().unwrap();
        assert!(!a.is_compatible(&larger));
        assert!(a.union_from(&larger).is_err() && larger.union_from(&a).is_err());
        assert!(a == both && larger.estimated_len() == 0);
    }
}

/// Guava's `testNoRaceConditions`: what threads put in at once is there, each bit of it.
#[test]
fn threads_lose_no_bit() {
    for strategy in STRATEGIES {
        for rate in [0.03, 1e-6] {
            let keys = STRESS_KEYS as u64 / 4;
            let build = || builder(STRESS_KEYS / 4, rate).strategy(strategy).build().unwrap();
            let (shared, single) = (build(), build());
            (&single).extend((0..keys).map(number));
            // All the same keys, each from another place on, by single calls and in batches.
            let won = together(4, |thread| {
                let start = thread as u64 * keys / 8;
                let order: Vec<u64> = (start..start + keys).map(|i| number(i % keys)).collect();
                if thread % 2 == 0 {
                    order.iter().filter(|key| shared.insert(*key)).count()
                } else {
                    shared.insert_batch(&order)
                }
            });
            let won: usize = won.into_iter().sum();
            assert!(shared == single);
            // Each key that no other key covers has a winner at least.
            assert!(won as f64 >= keys as f64 * (1.0 - 2.0 * rate), "{won} of {keys}");
        }
    }
}

/// From 1 to 252 hash functions, so that there are 64 keys to a window of a batch and down to 2, in
/// filters within the caches; some of them beyond.
fn shapes() -> impl Iterator<Item = Builder> {
    let rates = [0.5, 0.3, 0.1, 0.01, 1e-4, 1e-5, 1e-6, 1e-10, 1e-20, 1e-40, 1e-76];
    let sizes = [200, 17_000_000]; // bits
    rates.into_iter().enumerate().flat_map(move |(i, rate): (usize, f64)| {
        sizes
            .into_iter()
            .take(1 + usize::from(i % 3 == 1))
            .flat_map(move |bits| {
                let keys = (f64::from(bits) * 0.48 / -rate.ln()) as usize + 1;
                STRATEGIES.map(|strategy| builder(keys, rate).strategy(strategy))
            })
    })
}

/// The stream of a filter so full that about half of all keys are in it, each of whose bits
/// matters.
fn dense(builder: Builder) -> Vec<u8> {
    let mut stream = builder.build().unwrap().to_bytes();
    let bits = 8 * (stream.len() - 6);
    stream[6..].fill(0xff);
    let unset = bits as f64 * (1.0 - 0.5f64.powf(1.0 / f64::from(stream[1])));
    for i in 0..unset as u64 {
        let bit = (number(i) % bits as u64) as usize;
        stream[6 + bit / 8] &= !(1 << (bit % 8));
    }
    stream
}

/// Guava's algorithm, from its code, on the stream's bytes and by the hash of another crate.
fn might_contain(stream: &[u8], key: u64) -> bool {
    let bits = 8 * (stream.len() as u64 - 6);
    let hash = murmur3::murmur3_x64_128(&mut &key.to_le_bytes()[..], 0).unwrap();
    let (hash1, hash2) = (hash as u64, (hash >> 64) as u64);
    (0..stream[1].into()).all(|i: u32| {
        let bit = if stream[0] == 1 {
            (hash1.wrapping_add(u64::from(i).wrapping_mul(hash2)) & i64::MAX as u64) % bits
        } else {
            let (low, high) = (hash1 as i32, (hash1 >> 32) as i32);
            let combined = low.wrapping_add((i as i32 + 1).wrapping_mul(high));
            (if combined < 0 { !combined } else { combined }) as u64 % bits
        };
        let long = u64::from_be_bytes(stream[6 + bit as usize / 64 * 8..][..8].try_into().unwrap());
        long >> (bit % 64) & 1 == 1
    })
}

#[test]
fn every_bit_of_a_key_counts() {
    for builder in shapes() {
        let stream = dense(builder.clone());
        let filter = GuavaBloom::from_bytes(&stream).unwrap().0;
        let keys: Vec<u64> = (0..700).map(number).collect();
        let expected: Vec<bool> = keys.iter().map(|key| might_contain(&stream, *key)).collect();
        let present = expected.iter().filter(|&&present| present).count();
        assert!((150..=550).contains(&present), "{builder:?}: {present} of 700");
        assert!(
            keys.iter().map(|key| filter.contains(key)).eq(expected.iter().copied()),
            "{builder:?}"
        );
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        assert_eq!(found, expected, "{builder:?}");

        // An insert changes the filter where the key was not in it, and then the key is.
        let batch = filter.clone();
        let mut changed = vec![false; keys.len()];
        batch.insert_batch_flagged(&keys, &mut changed);
        assert!(keys.iter().map(|key| filter.insert(key)).eq(changed));
        assert!(filter == batch);
        let stream = filter.to_bytes();
        assert!(
            keys.iter()
                .all(|key| might_contain(&stream, *key) && filter.contains(key))
        );
    }
}

#[test]
fn batches_of_any_length_equal_single_calls() {
    for builder in shapes() {
        let build = || GuavaBloom::from_bytes(&dense(builder.clone())).unwrap().0;
        let single = build();
        let (batch, flagged) = (single.clone(), single.clone());
        let lens = (0..5).chain([
            7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 511, 513, 700,
        ]);
        for len in lens {
            let keys: Vec<u64> = (0..len).map(|i| number(i / 2 + 1000 * len)).collect();
            let changed: Vec<bool> = keys.iter().map(|key| single.insert(key)).collect();
            let sum = changed.iter().filter(|&&changed| changed).count();
            assert_eq!(batch.insert_batch(&keys), sum);
            let mut flags = vec![true; keys.len()];
            assert_eq!(flagged.insert_batch_flagged(&keys, &mut flags), sum);
            assert_eq!(flags, changed);

            let asked: Vec<u64> = (0..len).map(|i| number(i + 1000 * len)).collect();
            assert_eq!(batch.contains_each(&asked), single.contains_each(&asked));
            lookups_agree(&batch, &asked, 1);
        }
        assert!(batch == single && flagged == single);
        let collected = builder.clone().build().unwrap();
        collected.insert_all((0..3000).map(number));
        let single = builder.build().unwrap();
        (0..3000).map(number).for_each(|key| _ = single.insert(&key));
        assert!(collected == single);
    }
}

/// Filters of one long to 100 KiB, about the places where a line, a buffer and what is allocated at
/// first end.
fn written() -> impl Iterator<Item = (GuavaBloom, Vec<u8>)> {
    let words = [
        1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 2048, 8191, 8192, 8193, 8200, 16384, 16385, 40_000,
    ];
    words.into_iter().enumerate().map(|(i, words)| {
        let mut bytes = vec![i as u8 % 2, 1 + 15 * i as u8];
        bytes.extend((words as i32).to_be_bytes());
        bytes.extend((0..words).flat_map(|j| number(j).to_be_bytes()));
        (GuavaBloom::from_bytes(&bytes).unwrap().0, bytes)
    })
}

#[test]
fn a_stream_is_read_as_it_was_written() {
    for (filter, bytes) in written() {
        assert_eq!(filter.bit_size(), 8 * (bytes.len() as u64 - 6));
        assert_eq!(filter.strategy(), STRATEGIES[usize::from(bytes[0])]);
        assert_eq!(filter.hash_functions(), u32::from(bytes[1]));
        assert_eq!(filter.to_bytes(), bytes);
        let mut stream = Vec::new();
        filter.write_to(&mut stream).unwrap();
        assert!(stream == bytes);

        // Exactly as much as the limit, and what follows stays where it is.
        let limit = bytes.len() - 6;
        let more = [&bytes[..], b"more"].concat();
        let mut reader = &more[..];
        assert!(GuavaBloom::read_from(&mut reader, limit).unwrap() == filter);
        assert_eq!(reader, b"more");
        let (same, rest) = GuavaBloom::from_bytes(&more).unwrap();
        assert!(same == filter && rest == b"more");
        let error = GuavaBloom::read_from(&bytes[..], limit - 1).unwrap_err();
        let expected = format!(
            "the filter takes {limit} bytes, more than the limit of {} bytes",
            limit - 1
        );
        assert_eq!(error.to_string(), expected);

        let mut pieces = Pieces::new(&bytes, None);
        assert!(GuavaBloom::read_from(&mut pieces, limit).unwrap() == filter);
        assert!(same.union_from(&filter).is_ok());
    }
}

#[test]
fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    for (_, bytes) in written() {
        let near = |at: usize| at.saturating_sub(9)..(at + 9).min(bytes.len());
        let ends = (0..bytes.len().min(3000))
            .chain((1..6).flat_map(|i| near(65_536 * i)))
            .chain(near(bytes.len()));
        for end in ends {
            let part = &bytes[..end];
            let needed = if end < 6 { 6 } else { bytes.len() };
            let expected = format!("the stream ends after {end} bytes of {needed}");
            for error in [
                GuavaBloom::from_bytes(part).unwrap_err(),
                GuavaBloom::read_from(part, usize::MAX).unwrap_err(),
            ] {
                assert_eq!(error.to_string(), expected);
                assert!(error.is_truncated() && error.source().is_none());
            }
        }
        // The reader's own error, unchanged, from wherever it comes.
        for end in [0, 3, 6, 7, bytes.len() - 1] {
            let mut pieces = Pieces::new(&bytes[..end], Some(io::Error::other("unplugged")));
            let error = GuavaBloom::read_from(&mut pieces, usize::MAX).unwrap_err();
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
    let length = |longs: i32| [&[1, 5][..], &longs.to_be_bytes(), &[0; 64]].concat();
    for (bytes, message) in [
        (
            vec![2, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            "strategy 2 is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)",
        ),
        (
            vec![0xff, 5, 0, 0, 0, 1, 0, 0],
            "strategy -1 is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)",
        ),
        (
            // What `ObjectOutputStream.writeObject` begins with.
            b"\xac\xed\0\x05sr\x002com.google.common.hash.BloomFilter$SerialForm".to_vec(),
            "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream",
        ),
        (
            vec![1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            "0 hash functions is not in 1 to 255",
        ),
        (length(0), "a length of 0 longs is not in 1 to 2147483647"),
        (length(-1), "a length of -1 longs is not in 1 to 2147483647"),
        (
            length(i32::MIN),
            "a length of -2147483648 longs is not in 1 to 2147483647",
        ),
    ] {
        assert_eq!(GuavaBloom::from_bytes(&bytes).unwrap_err().to_string(), message);
        assert_eq!(read(&bytes).unwrap_err().to_string(), message);
    }
    let absurd = length(i32::MAX);
    assert_eq!(
        read(&absurd).unwrap_err().to_string(),
        "the filter takes 17179869176 bytes, more than the limit of 1048576 bytes"
    );
    let ends = "the stream ends after 70 bytes of 17179869182";
    assert_eq!(GuavaBloom::from_bytes(&absurd).unwrap_err().to_string(), ends);
    assert_eq!(
        GuavaBloom::read_from(&absurd[..], usize::MAX).unwrap_err().to_string(),
        ends
    );
}

#[test]
fn an_error_of_the_writer_is_given_on() {
    for (filter, bytes) in written() {
        assert!(filter.write_to(Full(bytes.len())).is_ok());
        for room in [0, 5, 6, bytes.len() / 2, bytes.len() - 1] {
            assert_eq!(filter.write_to(Full(room)).unwrap_err().to_string(), "full");
        }
    }
}

proptest! {
    /// Whatever the bytes are: an error, or a filter that writes them again.
    #[test]
    fn any_bytes_are_read_or_refused(
        strategy in 0u8..3,
        functions in 0u8..4,
        longs in -1i32..6,
        rest in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let bytes = [&[strategy, functions][..], &longs.to_be_bytes(), &rest].concat();
        let good = strategy < 2 && functions > 0 && longs > 0 && rest.len() >= 8 * longs as usize;
        let length = 6 + 8 * longs.max(0) as usize;
        match (GuavaBloom::from_bytes(&bytes), read(&bytes)) {
            (Ok((filter, rest)), Ok(same)) => {
                prop_assert!(good && filter == same);
                prop_assert_eq!(filter.to_bytes(), &bytes[..length]);
                prop_assert_eq!(rest, &bytes[length..]);
            }
            (Err(one), Err(other)) => {
                prop_assert!(!good);
                prop_assert_eq!(one.to_string(), other.to_string());
            }
            _ => prop_assert!(false, "the two do not agree"),
        }
    }

    #[test]
    fn utf16_wrappers_write_what_javas_charsets_do(text in any::<String>()) {
        let bytes = |key: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            key(&mut bytes);
            bytes
        };
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let mut big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        if !text.is_empty() {
            big.splice(0..0, [0xfe, 0xff]);
        }
        prop_assert_eq!(&bytes(&|into| UnencodedChars(&text).funnel(into)), &little);
        prop_assert_eq!(&bytes(&|into| units.funnel(into)), &little);
        prop_assert_eq!(&bytes(&|into| Utf16(text.as_str()).funnel(into)), &big);
    }
}
