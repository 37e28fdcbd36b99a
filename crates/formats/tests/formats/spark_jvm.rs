//! `SparkBloom` beside Spark's own filter on a JVM: the same streams to the byte, the same answers,
//! the same figures, whichever of the two made the filter.
//!
//! Needs `java`, `javac` and the jar that `ci/fetch/spark.sh` fetches (456 MB, so nothing else
//! calls it), or another class path in `LANEBLOOM_SPARK`. If they are not there the tests say so
//! and pass, unless `LANEBLOOM_REQUIRE_SPARK` is set. (`tests/formats/spark.rs` has Spark's results
//! for some keys, and needs nothing.)
#![cfg(feature = "std")]

use crate::jvm::{Jvm, Key, Program, bytes, string};
use lanebloom_formats::spark::{SparkBloom, SparkKey, Version};
use lanebloom_tests::number;

fn start_each(test: &str) -> impl Iterator<Item = Jvm> {
    let program = Program {
        class: "Spark",
        source: "spark/Spark.java",
        libraries: lanebloom_tests::jars::spark(),
        require: "LANEBLOOM_REQUIRE_SPARK",
    };
    Jvm::start_each(test, program)
}

/// A version and a seed, and the expected keys and the bits.
type Layout = ((Version, i32), (usize, u64));

fn assert_same<K: Key + SparkKey>(spark: &mut Jvm, layout: Layout, keys: usize, key: impl Fn(u64) -> K) {
    let ((version, seed), (expected, bits)) = layout;
    let builder = SparkBloom::builder().version(version).seed(seed);
    let empty = builder.expected_keys(expected).bits(bits).build().unwrap();
    let keys: Vec<K> = (0..2 * keys as u64).map(key).collect();
    let version = if version == Version::V1 { 1 } else { 2 };
    let (seed, expected) = (seed.to_be_bytes(), expected.to_be_bytes());
    let make = [&[version], &seed[..], &expected, &bits.to_be_bytes()].concat();
    let (made, ours) = spark.assert_same(&make, empty, &keys);
    let fill = made.count as f64 / ours.bit_size() as f64;
    assert_eq!(ours.statistics().fill_ratio, fill, "{ours:?}");
}

const VERSIONS: [(Version, i32); 6] = [
    (Version::V1, 0),
    (Version::V2, 0),
    (Version::V2, 1),
    (Version::V2, -1),
    (Version::V2, 0x5eed),
    (Version::V2, i32::MIN),
];

/// Every kind of key, with one hash function and up to many, in filters just filled and overfilled.
#[test]
fn all_keys_agree_with_spark() {
    for mut spark in start_each("all_keys_agree_with_spark") {
        let spark = &mut spark;
        for (expected, bits, keys) in [
            (1, 1, 1),
            (1, 64, 5),
            (10, 100, 10),
            (100, 144, 400),
            (300, 13_000, 300),
            (1, 4000, 10), // 2773 hash functions
            (1000, 9600, 1000),
            (1000, 9600, 10_000), // full
        ] {
            for version in VERSIONS {
                let layout = (version, (expected, bits));
                assert_same(spark, layout, keys, |i| number(i) as i64);
                assert_same(spark, layout, keys, |i| i as i64 - 5);
                assert_same(spark, layout, keys, |i| number(i) as i32);
                assert_same(spark, layout, keys, |i| number(i) as i16);
                assert_same(spark, layout, keys, |i| number(i) as i8);
                assert_same(spark, layout, keys, string);
                assert_same(spark, layout, keys, bytes);
            }
        }
    }
}

/// Filters that take the way of large ones through our batches.
#[test]
fn large_filters_agree_with_spark() {
    for mut spark in start_each("large_filters_agree_with_spark") {
        for version in [(Version::V1, 0), (Version::V2, -7)] {
            for size in [
                (3_000_000, 30_000_000),
                (70_000, 70_000_000),
                (10_000_000, 64 * (1 << 21) + 64),
            ] {
                let layout = (version, size);
                assert_same(&mut spark, layout, 20_000, |i| number(i) as i64);
                assert_same(&mut spark, layout, 5000, |i| format!("{:024}", number(i)));
            }
        }
    }
}

/// Spark's formulas at thousands of random keys and rates or bits, where it throws as well.
#[test]
fn sizes_agree_with_spark() {
    for mut spark in start_each("sizes_agree_with_spark") {
        let mut refused = 0;
        for i in 0..4000 {
            let keys = number(2 * i) >> (44 + number(i) % 20);
            let random = (number(2 * i + 1) >> 11) as f64 / (1u64 << 53) as f64;
            let builder = SparkBloom::builder().expected_keys(keys as usize);
            let (request, size, builder) = if i % 2 == 0 {
                // Around the middle, near 0, near 1, and at round numbers.
                let rate = match i / 2 % 4 {
                    0 => random,
                    1 => random.powi(20),
                    2 => 1.0 - random * 1e-4,
                    _ => [0.03, 0.01, 1e-3, 0.1, 0.5, 0.25, 1.0, 0.0][(i / 8 % 8) as usize],
                };
                (b'f', rate.to_be_bytes(), builder.false_positive_rate(rate))
            } else {
                // At most 10,000 per key, which gives 6931 hash functions.
                let bits = (random.powi(3) * 10_000.0 * keys.min(10_000) as f64) as u64;
                (b'b', bits.to_be_bytes(), builder.bits(bits))
            };
            spark.send(&[request]);
            spark.send(&keys.to_be_bytes());
            spark.send(&size);
            spark.flush();
            let theirs = (u32::from_be_bytes(spark.receive()), u32::from_be_bytes(spark.receive()));
            let sizes = |filter: SparkBloom| ((filter.bit_size() / 64) as u32, filter.hash_functions());
            let ours = builder.clone().build().map_or((0, 0), sizes);
            assert_eq!(ours, theirs, "{}, {builder:?}", spark.library);
            refused += u32::from(theirs.0 == 0);
        }
        assert!((100..2000).contains(&refused), "{refused} of 4000 refused");
    }
}

#[test]
fn merges_agree_with_spark() {
    for mut spark in start_each("merges_agree_with_spark") {
        let mut merged = 0;
        for i in 0..200 {
            let make = |i: u64, keys: u64| {
                let version = if i % 3 == 0 { Version::V1 } else { Version::V2 };
                let builder = SparkBloom::builder().version(version);
                let builder = builder.seed(if i % 3 == 2 { (i / 32 % 2) as i32 } else { 0 });
                let builder = builder.expected_keys(100 * (i as usize / 4 % 2 + 1));
                let filter = builder.bits([1000, 1100][(i / 8 % 2) as usize]).build().unwrap();
                filter.insert_all((0..keys).map(|key| number(key) as i64));
                filter
            };
            let other = make(i + number(i) % 9, 2 * i);
            let request = if i % 5 < 3 { b'u' } else { b'i' };
            merged += u32::from(spark.assert_same_union(request, make(i, i), &other));
        }
        assert!((20..190).contains(&merged), "{merged} of 200 merged");
    }
}
