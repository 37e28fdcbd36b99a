//! `SparkBloom` without a JVM: values from Spark, its algorithm step by step, and invalid streams.
#![cfg(feature = "std")]

use crate::contract::spark::each::lookups_agree;
use lanebloom_formats::JavaReadError;
use lanebloom_formats::spark::{Builder, SparkBloom, SparkKey, Version};
use lanebloom_tests::{Full, Pieces, STRESS_KEYS, number, together};
use proptest::prelude::*;
use serde_json::Value;
use std::error::Error;
use std::io;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/spark.json")).unwrap()
}

fn unhex(value: &Value) -> Vec<u8> {
    let pairs = value.as_str().unwrap().as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The version and the seed of a case.
fn of_case(case: &Value) -> Builder {
    let builder = SparkBloom::builder().seed(int(&case["seed"]));
    builder.version(if case["version"] == 1 { Version::V1 } else { Version::V2 })
}

fn int(value: &Value) -> i32 {
    value.as_i64().unwrap().try_into().unwrap()
}

fn read(bytes: &[u8]) -> Result<SparkBloom, JavaReadError> {
    SparkBloom::read_from(bytes, 1 << 20)
}

/// Of both versions, and of V2 with a seed.
fn builders() -> [Builder; 3] {
    let builder = SparkBloom::builder;
    [builder().version(Version::V1), builder(), builder().seed(-7)]
}

#[test]
fn small_filters_are_sparks_to_the_byte() {
    let golden = golden();
    let cases = golden["small_filters_n10_128bits"].as_array().unwrap();
    for case in cases {
        let filter = of_case(case).expected_keys(10).bits(96).build().unwrap();
        match case["keys"].as_str().unwrap() {
            "long 1,2,3" => (&filter).extend([1i64, 2, 3]),
            "long min,max" => (&filter).extend([i64::MIN, i64::MAX]),
            "int -1" => (&filter).extend([-1i32]),
            "utf8 hello,world" => (&filter).extend(["hello", "world"]),
            "utf8 é€😀" => (&filter).extend(["é€😀".to_string()]),
            "bytes [] and 00010203" => (&filter).extend([&[][..], &[0u8, 1, 2, 3]]),
            "bytes ff and 80ff7f and 0102030405fffe" => {
                let keys = [&[0xff][..], &[0x80, 0xff, 0x7f], &[1, 2, 3, 4, 5, 0xff, 0xfe]];
                (&filter).extend(keys.map(Vec::from));
            }
            other => panic!("no keys {other}"),
        }
        let stream = unhex(&case["hex"]);
        assert_eq!(filter.to_bytes(), stream, "{case}");
        let same = read(&stream).unwrap();
        assert!(same == filter && (same.version(), same.seed()) == (filter.version(), filter.seed()));
    }
    assert_eq!(cases.len(), 21);
}

#[test]
fn sizes_are_sparks() {
    let golden = golden();
    let cases = golden["create"].as_array().unwrap();
    for case in cases {
        let mut builder = SparkBloom::builder().expected_keys(case["keys"].as_u64().unwrap() as usize);
        if let Some(rate) = case["rate"].as_f64() {
            builder = builder.false_positive_rate(rate);
        }
        if let Some(bits) = case["bits"].as_u64() {
            builder = builder.bits(bits);
        }
        let bytes = case["bytes"].as_u64().unwrap();
        let header = unhex(&case["header"]);
        assert_eq!(SparkBloom::stream_len(&header).unwrap(), bytes);
        // Memory that nothing writes to costs nothing.
        let filter = builder.build().unwrap();
        assert_eq!(filter.bit_size() / 8 + 16, bytes, "{case}");
        let functions = u32::from_be_bytes(*header[4..].first_chunk().unwrap());
        assert_eq!(filter.hash_functions(), functions, "{case}");
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn hashes_are_sparks_at_every_length() {
    let golden = golden();
    for case in golden["hash_unsafe_bytes"].as_array().unwrap() {
        let (bytes, seed) = (unhex(&case["hex"]), int(&case["seed"]));
        assert_eq!(bytes.murmur3(seed), int(&case["hash"]), "{case}");
        if let Ok(long) = <[u8; 8]>::try_from(&bytes[..]) {
            assert_eq!(long.murmur3(seed), i64::from_le_bytes(long).murmur3(seed));
        }
    }
    // Every type of keys.
    for i in 0..100 {
        let (seed, n) = (number(i) as i32, number(1000 + i));
        let wide = |n: i64| n.murmur3(seed);
        assert_eq!((n as i32).murmur3(seed), wide((n as i32).into()));
        assert_eq!((n as i16).murmur3(seed), wide((n as i16).into()));
        assert_eq!((n as i8).murmur3(seed), wide((n as i8).into()));
        let text = format!("{n:x}");
        assert_eq!(text.murmur3(seed), text.as_bytes().murmur3(seed));
        assert_eq!(text[..].murmur3(seed), Vec::from(text.as_bytes()).murmur3(seed));
    }
}

/// A million keys: every false positive among another million is Spark's, and so are the figures
/// and the whole array.
#[test]
fn big_filters_are_sparks() {
    let golden = golden();
    let cases = golden["big_filters"]["cases"].as_array().unwrap();
    for case in cases {
        let builder = of_case(case).expected_keys(1_000_000).false_positive_rate(0.03);
        let filter = builder.build().unwrap();
        let found = if case["type"] == "utf8" {
            let keys = |first: u32| (first..2_000_000).step_by(2).map(|i| i.to_string()).collect::<Vec<_>>();
            filter.insert_batch(&keys(0));
            filter.contains_each(&keys(1))
        } else {
            let keys = |first: i64| (first..2_000_000).step_by(2).collect::<Vec<_>>();
            filter.insert_batch(&keys(0));
            filter.contains_each(&keys(1))
        };
        let positives = (0..).zip(&found).filter_map(|(i, found)| found.then_some(2 * i + 1));
        let positives: Vec<u64> = positives.collect();
        assert_eq!(
            positives.len() as u64,
            case["false_positives"].as_u64().unwrap(),
            "{case}"
        );
        let below: Vec<u64> = positives.into_iter().take_while(|key| *key < 900).collect();
        assert_eq!(Value::from(below), case["below_900"]);
        assert_eq!(
            filter.current_false_positive_rate(),
            case["expected_fpp"].as_str().unwrap().parse::<f64>().unwrap()
        );
        let ones = case["cardinality"].as_u64().unwrap();
        assert_eq!(filter.fill_ratio(), ones as f64 / filter.bit_size() as f64);
        let stream = filter.to_bytes();
        assert_eq!(stream.len() as u64, case["bytes"].as_u64().unwrap());
        let hash = murmur3::murmur3_x64_128(&mut &stream[..], 0).unwrap();
        assert_eq!(format!("{hash:032x}"), case["murmur3_x64_128"].as_str().unwrap());
    }
    assert_eq!(cases.len(), 6);
}

/// Spark's algorithm, from its code, on the stream's bytes.
fn might_contain(stream: &[u8], key: i64) -> bool {
    let int = |at: usize| i32::from_be_bytes(*stream[at..].first_chunk().unwrap());
    let (version, functions) = (int(0), int(4));
    let (seed, longs) = if version == 1 { (0, 12) } else { (int(8), 16) };
    let bits = 8 * (stream.len() - longs) as i64;
    let h1 = key.murmur3(seed);
    let h2 = key.murmur3(h1);
    let mut combined = i64::from(h1).wrapping_mul(i64::from(i32::MAX));
    (1..=functions).all(|i| {
        let index = if version == 1 {
            let combined = h1.wrapping_add(i.wrapping_mul(h2));
            i64::from(if combined < 0 { !combined } else { combined }) % bits
        } else {
            combined = combined.wrapping_add(h2.into());
            (if combined < 0 { !combined } else { combined }) % bits
        } as usize;
        let long = u64::from_be_bytes(*stream[longs + index / 64 * 8..].first_chunk().unwrap());
        long >> (index % 64) & 1 == 1
    })
}

/// Filters from 1 to 2773 hash functions, some of them beyond the caches, so full that about half
/// of all keys are in them, each of whose bits matters.
fn dense() -> impl Iterator<Item = Vec<u8>> {
    let sizes = |k: u32| [200.max(40 * k), 17_000_000]; // bits
    let functions = [1u32, 2, 3, 7, 15, 16, 17, 23, 33, 80, 252, 513, 2773];
    let shapes = functions.into_iter().flat_map(move |k| sizes(k).map(|bits| (k, bits)));
    shapes
        .filter(|(functions, bits)| *bits < 17_000_000 || [1, 7, 23, 513].contains(functions))
        .flat_map(|(functions, bits)| {
            builders().map(|builder| {
                let keys = (f64::from(bits) / f64::from(functions) * std::f64::consts::LN_2) as usize;
                let mut stream = builder
                    .expected_keys(keys.max(1))
                    .bits(bits.into())
                    .build()
                    .unwrap()
                    .to_bytes();
                stream[4..8].copy_from_slice(&functions.to_be_bytes());
                let longs = if stream[3] == 1 { 12 } else { 16 };
                let bits = 8 * (stream.len() - longs) as u64;
                stream[longs..].fill(0xff);
                let unset = bits as f64 * (1.0 - 0.5f64.powf(1.0 / f64::from(functions)));
                for i in 0..unset as u64 {
                    let bit = (number(i) % bits) as usize;
                    stream[longs + bit / 8] &= !(1 << (bit % 8));
                }
                stream
            })
        })
}

#[test]
fn every_bit_of_a_key_counts() {
    for stream in dense() {
        let filter = SparkBloom::from_bytes(&stream).unwrap().0;
        // The first ones have a small hash, where the sum of V2 changes its sign.
        let keys: Vec<i64> = (0..700).map(|i| number(i) as i64).collect();
        let expected: Vec<bool> = keys.iter().map(|key| might_contain(&stream, *key)).collect();
        let present = expected.iter().filter(|&&present| present).count();
        assert!((100..=600).contains(&present), "{filter:?}: {present} of 700");
        let single = keys.iter().map(|key| filter.contains(key));
        assert!(single.eq(expected.iter().copied()), "{filter:?}");
        assert_eq!(filter.contains_each(&keys), expected, "{filter:?}");

        // An insert changes the filter where the key was not in it, and then the key is.
        let batch = filter.clone();
        let mut changed = vec![false; keys.len()];
        batch.insert_batch_flagged(&keys, &mut changed);
        assert!(keys.iter().map(|key| filter.insert(key)).eq(changed));
        assert!(filter == batch);
        let stream = filter.to_bytes();
        let all = |key: &i64| might_contain(&stream, *key) && filter.contains(key);
        assert!(keys.iter().all(all));
    }
}

#[test]
fn batches_of_any_length_equal_single_calls() {
    for stream in dense() {
        let single = SparkBloom::from_bytes(&stream).unwrap().0;
        let (batch, flagged, mut alone) = (single.clone(), single.clone(), single.clone());
        let lens = [
            0, 1, 2, 3, 4, 7, 8, 9, 31, 33, 63, 64, 65, 127, 129, 192, 193, 511, 513, 700,
        ];
        for len in lens {
            let keys: Vec<i64> = (0..len).map(|i| number(i / 2 + 1000 * len) as i64).collect();
            let changed: Vec<bool> = keys.iter().map(|key| single.insert(key)).collect();
            let sum = changed.iter().filter(|&&changed| changed).count();
            assert_eq!(batch.insert_batch(&keys), sum);
            assert_eq!(alone.insert_batch_mut(&keys), sum);
            assert_eq!(alone.insert_batch_mut(&keys), 0);
            let mut flags = vec![true; keys.len()];
            assert_eq!(flagged.insert_batch_flagged(&keys, &mut flags), sum);
            assert_eq!(flags, changed);
            let asked: Vec<i64> = (0..len).map(|i| number(i + 1000 * len) as i64).collect();
            assert_eq!(batch.contains_each(&asked), single.contains_each(&asked));
            lookups_agree(&batch, &asked, 1);
        }
        assert!(batch == single && flagged == single && alone == single);
    }
}

/// Pairs of hashes at the ends of their range: the 64-bit sum of V2 changes its sign on the way, or
/// the 32-bit sum of V1 overflows.
#[test]
fn hashes_at_the_ends_of_their_range() {
    let ends = [0, 1, -1, 2, -2, 7, -7, 100, -100, i32::MAX, i32::MIN, i32::MIN + 1];
    for builder in builders() {
        for functions in [1u32, 2, 7, 24, 700] {
            let filter = builder.clone().expected_keys(1).bits(64 * 15_625).build();
            let mut stream = match filter {
                Ok(filter) => filter.to_bytes(),
                // More hash functions than the limit.
                Err(_) => builder
                    .clone()
                    .expected_keys(1000)
                    .bits(64 * 15_625)
                    .build()
                    .unwrap()
                    .to_bytes(),
            };
            stream[4..8].copy_from_slice(&functions.to_be_bytes());
            let empty = SparkBloom::from_bytes(&stream).unwrap().0;
            let longs = if empty.version() == Version::V1 { 12 } else { 16 };
            let hashes: Vec<(i32, i32)> = ends.iter().flat_map(|h1| ends.map(|h2| (*h1, h2))).collect();
            let all = empty.clone();
            for &(h1, h2) in &hashes {
                let mut expected = vec![0u64; 15_625];
                let mut combined = i64::from(h1).wrapping_mul(i64::from(i32::MAX));
                for i in 1..=functions as i32 {
                    let number = if longs == 12 {
                        i64::from(h1.wrapping_add(i.wrapping_mul(h2)))
                    } else {
                        combined = combined.wrapping_add(h2.into());
                        combined
                    };
                    let index = (if number < 0 { !number } else { number }) % (64 * 15_625);
                    expected[index as usize / 64] |= 1 << (index % 64);
                }
                let expected: Vec<u8> = expected.iter().flat_map(|long| long.to_be_bytes()).collect();
                let [one, batch] = [(); 2].map(|()| empty.clone());
                assert!(one.insert_hash((h1, h2)));
                assert!(one.to_bytes()[longs..] == expected, "{h1}, {h2}");
                assert_eq!(batch.insert_hashes(&[(h1, h2); 70]), 1);
                assert!(batch == one && one.contains_hash((h1, h2)));
                let mut found = [false; 70];
                one.contains_hashes(&[(h1, h2); 70], &mut found);
                assert!(found == [true; 70]);
                all.union_from(&one).unwrap();
            }
            empty.insert_hashes(&hashes);
            assert!(empty == all);
        }
    }
}

/// Indexes of 32 bits, which vectors find, are enough below 2^31 bits. (At 2^31 they would still
/// do; beyond, the sum of two does not fit.)
#[test]
fn batches_of_large_filters_equal_single_calls() {
    for bits in [(1 << 31) - 64, 3 << 30] {
        for builder in &builders()[..2] {
            let build = || builder.clone().expected_keys(200_000_000).bits(bits).build().unwrap();
            let (single, mut alone) = (build(), build());
            let keys: Vec<i64> = (0..128).map(|i| number(i) as i64).collect();
            assert!(keys.iter().all(|key| single.insert(key)));
            let hashes: Vec<_> = keys.iter().map(|key| single.hash(key)).collect();
            assert_eq!(alone.insert_hashes_mut(&hashes), 128);
            assert_eq!(single.insert_batch(&keys), 0);
            assert!(keys.iter().all(|key| alone.contains(key)));
            assert!(alone.contains_each(&keys).iter().all(|&found| found));
            assert_eq!(alone.insert_batch(&keys), 0);
        }
    }
}

#[test]
fn what_spark_refuses_is_an_error() {
    for builder in builders() {
        let error = |builder: Builder| builder.build().unwrap_err().to_string();
        let some = builder.clone().expected_keys(1000);
        for rate in ["0", "1", "-0.1", "1.1", "NaN", "inf"] {
            assert_eq!(
                error(some.clone().false_positive_rate(rate.parse().unwrap())),
                format!("false-positive rate {rate} is not between 0 and 1, both excluded")
            );
        }
        assert_eq!(error(builder.clone()), "the number of expected keys must be at least 1");
        let nothing = builder.clone().expected_keys(1);
        let message = "a Spark filter for 1 keys must have at least 1 bit";
        assert_eq!(error(nothing.clone().false_positive_rate(0.99)), message);
        assert_eq!(error(nothing.clone().bits(0)), message);
        assert_eq!(
            error(some.clone().bits(137_438_953_409)),
            "a filter of 137438953409 bits is beyond Spark's limit of 137438953408 bits"
        );
        assert!(error(builder.expected_keys(usize::MAX)).contains("is beyond Spark's limit of"));
        // The most hash functions.
        assert_eq!(nothing.clone().bits(94_548).build().unwrap().hash_functions(), 65_536);
        assert_eq!(
            error(nothing.bits(94_550)),
            "94550 bits for 1 keys take 65537 hash functions, more than the limit of 65536"
        );
        assert_eq!(
            some.false_positive_rate(4.9e-324).build().unwrap().hash_functions(),
            1074
        );
    }
    let seeded = SparkBloom::builder().expected_keys(10).version(Version::V1).seed(3);
    assert_eq!(
        seeded.build().unwrap_err().to_string(),
        "a V1 filter has no seed, and cannot have 3"
    );
}

/// A stream does not hold the number of keys; a filter that was read has about as many.
#[test]
fn a_filter_that_was_read_expects_as_many_keys() {
    for rate in [0.1, 0.01, 1e-6] {
        let filter = SparkBloom::with_capacity(100_000, rate).unwrap();
        assert!((filter.false_positive_rate() / rate - 1.0).abs() < 0.1);
        let same = read(&filter.to_bytes()).unwrap();
        assert!(same.expected_keys().abs_diff(100_000) < 20_000);
    }
}

/// Version, seed, bits and hash functions must be the same, for a merge, an intersection and
/// equality.
/// Neither a filter nor its copy is overfull, until it has half as many keys more.
#[test]
fn a_filter_is_overfull_when_it_has_too_many_keys() {
    for rate in [0.1, 0.03, 0.01, 1e-3, 1e-5] {
        let keys: Vec<i64> = (0..15_000).map(|i| number(i) as i64).collect();
        let filter = SparkBloom::with_capacity(10_000, rate).unwrap();
        filter.insert_batch(&keys[..10_000]);
        for filter in [read(&filter.to_bytes()).unwrap(), filter] {
            assert!(!filter.is_overfull(), "{rate}");
            filter.insert_batch(&keys);
            assert!(filter.is_overfull(), "{rate}");
        }
    }
}

#[test]
fn other_layouts_are_refused() {
    let builder = || SparkBloom::builder().expected_keys(100).bits(1000);
    let mut filter = builder().build().unwrap();
    filter.insert("a");
    let before = filter.clone();
    for (other, layout) in [
        (
            builder().version(Version::V1),
            "V1, seed 0, 1024 bits, 7 hash functions",
        ),
        (builder().seed(1), "V2, seed 1, 1024 bits, 7 hash functions"),
        (builder().bits(1025), "V2, seed 0, 1088 bits, 7 hash functions"),
        (builder().expected_keys(110), "V2, seed 0, 1024 bits, 6 hash functions"),
    ] {
        let other = other.build().unwrap();
        assert!(!filter.is_compatible(&other) && !other.is_compatible(&filter) && filter != other);
        let message =
            format!("the other filter's layout differs: {layout} there, V2, seed 0, 1024 bits, 7 hash functions here");
        assert_eq!(filter.union_from(&other).unwrap_err().to_string(), message);
        assert_eq!(filter.intersection_from(&other).unwrap_err().to_string(), message);
        assert!(filter == before);
    }
    // The bits of a layout are what is compared, not those that were asked for.
    assert!(filter.is_compatible(&builder().bits(1024).build().unwrap()));
}

#[test]
fn an_intersection_has_the_bits_of_both() {
    for builder in builders() {
        for size in [400, 30_000] {
            let make = |keys: std::ops::Range<i64>| {
                let filter = builder.clone().expected_keys(size).build().unwrap();
                filter.insert_all(keys);
                filter
            };
            let (mut a, b) = (make(0..200), make(150..400));
            let before = (a.to_bytes(), b.to_bytes());
            assert_eq!(a.intersection_from(&b), Ok(true));
            let bits = before.0.iter().zip(&before.1).map(|(a, b)| a & b);
            assert!(a.to_bytes().into_iter().eq(bits) && b.to_bytes() == before.1);
            assert!((150..200i64).all(|key| a.contains(&key)));
            assert_eq!(a.intersection_from(&b), Ok(false));
            assert_eq!(a.intersection_from(&a.clone()), Ok(false));
            let empty = make(0..0);
            assert_eq!(a.intersection_from(&empty), Ok(true));
            assert!(a == empty && a.is_empty());
        }
    }
}

/// What threads put in at once is there, each bit of it.
#[test]
fn threads_lose_no_bit() {
    for builder in builders() {
        let keys = STRESS_KEYS as u64 / 4;
        let build = || builder.clone().expected_keys(keys as usize).build().unwrap();
        let (shared, single) = (build(), build());
        (&single).extend((0..keys).map(|i| number(i) as i64));
        // All the same keys, each from another place on, by single calls and in batches.
        let won = together(4, |thread| {
            let start = thread as u64 * keys / 8;
            let order: Vec<i64> = (start..start + keys).map(|i| number(i % keys) as i64).collect();
            if thread % 2 == 0 {
                order.iter().filter(|key| shared.insert(*key)).count()
            } else {
                shared.insert_batch(&order)
            }
        });
        let won: usize = won.into_iter().sum();
        assert!(shared == single);
        // Each key that no other key covers has a winner at least.
        assert!(won as f64 >= keys as f64 * 0.94, "{won} of {keys}");
    }
}

/// Filters of one long to 100 KiB, about the places where a line, a buffer and what is allocated at
/// first end, with the lengths of their headers.
fn written() -> impl Iterator<Item = (SparkBloom, Vec<u8>, usize)> {
    let words = [
        1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 2048, 8191, 8192, 8193, 8200, 16384, 16385, 40_000,
    ];
    words.into_iter().enumerate().map(|(i, words)| {
        let functions = 1 + 15 * i as u32;
        let header = if i % 2 == 0 {
            vec![1, functions, words]
        } else {
            vec![2, functions, 100u32.wrapping_sub(functions), words]
        };
        let mut bytes: Vec<u8> = header.iter().flat_map(|int| int.to_be_bytes()).collect();
        bytes.extend((0..words).flat_map(|j| number(j.into()).to_be_bytes()));
        (SparkBloom::from_bytes(&bytes).unwrap().0, bytes, 4 * header.len())
    })
}

#[test]
fn a_stream_is_read_as_it_was_written() {
    for (filter, bytes, header) in written() {
        assert_eq!(filter.bit_size() as usize, 8 * (bytes.len() - header));
        assert_eq!(filter.version() == Version::V1, bytes[3] == 1);
        assert_eq!(filter.to_bytes(), bytes);
        assert_eq!(SparkBloom::stream_len(&bytes[..header]).unwrap(), bytes.len() as u64);
        let mut stream = Vec::new();
        filter.write_to(&mut stream).unwrap();
        assert!(stream == bytes);

        // Exactly as much as the limit, and what follows stays where it is.
        let limit = bytes.len() - header;
        let more = [&bytes[..], b"more"].concat();
        let mut reader = &more[..];
        assert!(SparkBloom::read_from(&mut reader, limit).unwrap() == filter);
        assert_eq!(reader, b"more");
        let (same, rest) = SparkBloom::from_bytes(&more).unwrap();
        assert!(same == filter && rest == b"more");
        let error = SparkBloom::read_from(&bytes[..], limit - 1).unwrap_err();
        let expected = format!(
            "the filter takes {limit} bytes, more than the limit of {} bytes",
            limit - 1
        );
        assert_eq!(error.to_string(), expected);

        let mut pieces = Pieces::new(&bytes, None);
        assert!(SparkBloom::read_from(&mut pieces, limit).unwrap() == filter);
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
            let needed = match end {
                0..4 => 4,
                _ if end < header => header,
                _ => bytes.len(),
            };
            let expected = format!("the stream ends after {end} bytes of {needed}");
            for error in [
                SparkBloom::from_bytes(part).unwrap_err(),
                SparkBloom::read_from(part, usize::MAX).unwrap_err(),
            ] {
                assert_eq!(error.to_string(), expected);
                assert!(error.is_truncated() && error.source().is_none());
            }
        }
        // The reader's own error, unchanged, from wherever it comes.
        for end in [0, 3, 4, 7, header, bytes.len() - 1] {
            let mut pieces = Pieces::new(&bytes[..end], Some(io::Error::other("unplugged")));
            let error = SparkBloom::read_from(&mut pieces, usize::MAX).unwrap_err();
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
    let ints = |ints: &[i32]| -> Vec<u8> {
        let ints = ints.iter().flat_map(|int| int.to_be_bytes());
        ints.chain([0; 64]).collect()
    };
    let object =
        "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream";
    for (bytes, message) in [
        (ints(&[0, 5, 1]), "version 0 is neither 1 nor 2"),
        (ints(&[3, 5, 0, 1]), "version 3 is neither 1 nor 2"),
        (ints(&[-1, 5, 0, 1]), "version -1 is neither 1 nor 2"),
        (b"\xac\xed\0\x05sr\x00/org.apache.spark.util.sketch".to_vec(), object),
        (ints(&[1, 0, 1]), "0 hash functions is not in 1 to 65536"),
        (ints(&[2, -1, 0, 1]), "-1 hash functions is not in 1 to 65536"),
        (ints(&[2, 65_537, 0, 1]), "65537 hash functions is not in 1 to 65536"),
        (
            ints(&[1, i32::MAX, 1]),
            "2147483647 hash functions is not in 1 to 65536",
        ),
        (ints(&[1, 5, 0]), "a length of 0 longs is not in 1 to 2147483647"),
        (ints(&[2, 5, 1, -1]), "a length of -1 longs is not in 1 to 2147483647"),
        (
            ints(&[2, 5, 1, i32::MIN]),
            "a length of -2147483648 longs is not in 1 to 2147483647",
        ),
    ] {
        assert_eq!(SparkBloom::from_bytes(&bytes).unwrap_err().to_string(), message);
        assert_eq!(read(&bytes).unwrap_err().to_string(), message);
        assert_eq!(SparkBloom::stream_len(&bytes).unwrap_err().to_string(), message);
    }
    for (absurd, header) in [(ints(&[1, 5, i32::MAX]), 12), (ints(&[2, 5, 0, i32::MAX]), 16)] {
        assert_eq!(
            read(&absurd).unwrap_err().to_string(),
            "the filter takes 17179869176 bytes, more than the limit of 1048576 bytes"
        );
        let (there, all) = (header + 64, 17_179_869_176u64 + header);
        let ends = format!("the stream ends after {there} bytes of {all}");
        assert_eq!(SparkBloom::from_bytes(&absurd).unwrap_err().to_string(), ends);
        let error = SparkBloom::read_from(&absurd[..], usize::MAX).unwrap_err();
        assert_eq!(error.to_string(), ends);
    }
}

proptest! {
    /// Whatever the bytes are: an error, or a filter that writes them again.
    #[test]
    fn any_bytes_are_read_or_refused(
        version in 0i32..4,
        functions in -1i32..5,
        seed in any::<i32>(),
        longs in -1i32..6,
        rest in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let header = if version == 1 { vec![1, functions, longs] } else { vec![version, functions, seed, longs] };
        let header: Vec<u8> = header.into_iter().flat_map(i32::to_be_bytes).collect();
        let bytes = [&header[..], &rest].concat();
        let good = (1..=2).contains(&version) && functions > 0 && longs > 0 && rest.len() >= 8 * longs as usize;
        let length = header.len() + 8 * longs.max(0) as usize;
        match (SparkBloom::from_bytes(&bytes), read(&bytes)) {
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
}
