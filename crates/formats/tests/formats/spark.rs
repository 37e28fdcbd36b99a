//! `SparkBloom` without a JVM: values from Spark, and its algorithm step by step.
//! `contract/java.rs` has what Guava's filter promises too.
#![cfg(feature = "std")]

use crate::contract::spark::header_of;
use crate::contract::spark::java::{
    assert_is_big, assert_is_refused, assert_is_stream, assert_rates_are_checked, unhex,
};
use lanebloom_formats::spark::{Builder, Hash, SparkBloom, SparkKey, Version};
use lanebloom_tests::number;
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/spark.json")).unwrap()
}

/// The version and the seed of a case.
fn of_case(case: &Value) -> Builder {
    let builder = SparkBloom::builder().seed(int(&case["seed"]));
    builder.version(if case["version"] == 1 { Version::V1 } else { Version::V2 })
}

fn int(value: &Value) -> i32 {
    value.as_i64().unwrap().try_into().unwrap()
}

/// Builders of both versions, and of V2 with a seed.
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
        assert_is_stream(&filter, &case["hex"]);
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
            found!(filter, &keys(1))
        } else {
            let keys = |first: i64| (first..2_000_000).step_by(2).collect::<Vec<_>>();
            filter.insert_batch(&keys(0));
            found!(filter, &keys(1))
        };
        assert_is_big(&filter, &found, case);
        let rate = case["expected_fpp"].as_str().unwrap().parse::<f64>().unwrap();
        assert_eq!(filter.statistics().false_positive_rate, rate);
        let ones = case["cardinality"].as_u64().unwrap();
        assert_eq!(filter.statistics().fill_ratio, ones as f64 / filter.bit_size() as f64);
    }
    assert_eq!(cases.len(), 6);
}

fn int_at(stream: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(*stream[at..].first_chunk().unwrap())
}

pub(crate) fn header_len(stream: &[u8]) -> usize {
    8 + 4 * int_at(stream, 0) as usize
}

pub(crate) fn hash_of(stream: &[u8], key: i64) -> Hash {
    let seed = if int_at(stream, 0) == 1 { 0 } else { int_at(stream, 8) };
    let first = key.murmur3(seed);
    Hash(first, key.murmur3(first))
}

/// Spark's algorithm, from its code: the indexes of a hash's bits in a filter with this stream.
pub(crate) fn indexes(stream: &[u8], Hash(h1, h2): Hash) -> impl Iterator<Item = usize> {
    let (version, bits) = (int_at(stream, 0), 8 * (stream.len() - header_len(stream)) as i64);
    let mut combined = i64::from(h1).wrapping_mul(i64::from(i32::MAX));
    (1..=int_at(stream, 4)).map(move |i| {
        combined = combined.wrapping_add(h2.into());
        let number = if version == 1 {
            h1.wrapping_add(i.wrapping_mul(h2)).into()
        } else {
            combined
        };
        (if number < 0 { !number } else { number } % bits) as usize
    })
}

/// Pairs at the ends of their range: the 64-bit sum of V2 changes its sign on the way, or the
/// 32-bit sum of V1 overflows.
pub(crate) fn hashes() -> Vec<Hash> {
    let ends = [0, 1, -1, 2, -2, 7, -7, 100, -100, i32::MAX, i32::MIN, i32::MIN + 1];
    ends.iter().flat_map(|h1| ends.map(|h2| Hash(*h1, h2))).collect()
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
            assert_eq!(alone.exclusive().insert_batch(&hashes), 128);
            assert_eq!(single.insert_batch(&keys), 0);
            assert!(keys.iter().all(|key| alone.contains(key)));
            assert!(found!(alone, &keys).iter().all(|&found| found));
            assert_eq!(alone.insert_batch(&keys), 0);
        }
    }
}

#[test]
fn what_spark_refuses_is_an_error() {
    for builder in builders() {
        let error = |builder: Builder| builder.build().unwrap_err().to_string();
        let some = builder.clone().expected_keys(1000);
        assert_rates_are_checked(|rate| error(some.clone().false_positive_rate(rate)));
        for builder in [builder.clone(), builder.clone().bits(64)] {
            assert_eq!(error(builder), "the number of expected keys must be at least 1");
        }
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
    assert!(SparkBloom::from_keys([""; 0], 0.01).unwrap().is_empty());
    let seeded = SparkBloom::builder().expected_keys(10).version(Version::V1).seed(3);
    assert_eq!(
        seeded.build().unwrap_err().to_string(),
        "a V1 filter has no seed, and cannot have 3"
    );
}

/// A rate and a number of bits replace each other.
#[test]
fn the_last_size_counts() {
    let builder = SparkBloom::builder().expected_keys(1000);
    let bits = |builder: Builder| builder.build().unwrap().bit_size();
    assert_eq!(bits(builder.clone().false_positive_rate(0.01).bits(64)), 64);
    assert_eq!(bits(builder.bits(64).false_positive_rate(0.01)), 9600);
}

/// Version, seed, bits and hash functions must be the same.
#[test]
fn other_layouts_are_refused() {
    let builder = || SparkBloom::builder().expected_keys(100).bits(1000);
    let filter = builder().build().unwrap();
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
        assert!(filter.with(&other).is_err() && filter != other);
        let message =
            format!("the other filter's layout differs: {layout} there, V2, seed 0, 1024 bits, 7 hash functions here");
        assert_eq!(filter.union_from(&other).unwrap_err().to_string(), message);
    }
    // The bits of a layout are what is compared, not those that were asked for.
    assert!(filter.with(&builder().bits(1024).build().unwrap()).is_ok());
}

#[test]
fn a_header_of_no_filter_is_an_error() {
    for version in [0, 3, -1i32] {
        let bytes = [&version.to_be_bytes()[..], &[0; 64]].concat();
        assert_is_refused(&bytes, &format!("version {version} is neither 1 nor 2"));
    }
    for functions in [0, -1, 65_537, i32::MAX] {
        for version in [(Version::V1, 0), (Version::V2, 0)] {
            let message = format!("{functions} hash functions is not in 1 to 65536");
            assert_is_refused(&header_of(version, functions as u32, 1), &message);
        }
    }
}
