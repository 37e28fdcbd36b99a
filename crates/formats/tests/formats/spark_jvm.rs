//! `SparkBloom` beside Spark's own filter on a JVM: the same streams to the byte, the same answers,
//! the same figures, whichever of the two made the filter.
//!
//! Needs `java`, `javac` and the jar that `ci/fetch/spark.sh` fetches (456 MB, so nothing else
//! calls it), or another class path in `LANEBLOOM_SPARK`. If they are not there the tests say so
//! and pass, unless `LANEBLOOM_REQUIRE_SPARK` is set. (`tests/formats/spark.rs` has Spark's results
//! for some keys, and needs nothing.)
#![cfg(feature = "std")]

use crate::jvm::{Jvm, Program, bytes, string, write_len, write_string};
use lanebloom_formats::spark::{SparkBloom, SparkKey, Version};
use lanebloom_tests::number;
use std::path::PathBuf;

fn start(test: &str) -> Option<Jvm> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let program = Program {
        class: "Spark",
        source: "spark/Spark.java",
        variable: "LANEBLOOM_SPARK",
        library: cache.unwrap_or_default().join("lanebloom/spark-sketch.jar"),
        require: "LANEBLOOM_REQUIRE_SPARK",
    };
    Jvm::start(test, &program)
}

/// What Spark says of a filter.
struct Made {
    stream: Vec<u8>,
    expected_fpp: f64,
    cardinality: u64,
}

fn receive_filter(spark: &mut Jvm) -> Made {
    Made {
        stream: spark.receive_bytes(),
        expected_fpp: f64::from_be_bytes(spark.receive()),
        cardinality: u64::from_be_bytes(spark.receive()),
    }
}

/// Sends keys, and receives an answer for each and the filter.
fn with_keys<K: JavaKey>(spark: &mut Jvm, keys: &[K]) -> (Vec<bool>, Made) {
    spark.send(&[K::KIND]);
    spark.send_len(keys.len());
    let mut bytes = Vec::new();
    keys.iter().for_each(|key| key.write(&mut bytes));
    spark.send(&bytes);
    spark.flush();
    (spark.receive_answers(keys.len()), receive_filter(spark))
}

/// A key that Spark can be told.
trait JavaKey: SparkKey {
    /// The place in `KINDS`.
    const KIND: u8;
    fn write(&self, into: &mut Vec<u8>);
}

macro_rules! java_keys {
    ($($type:ty, $kind:literal, |$key:ident, $into:ident| $write:expr;)*) => {$(
        impl JavaKey for $type {
            const KIND: u8 = $kind;
            fn write(&self, $into: &mut Vec<u8>) {
                let $key = self;
                $write;
            }
        }
    )*};
}
java_keys! {
    i64, 0, |key, into| into.extend(key.to_be_bytes());
    i32, 1, |key, into| into.extend(key.to_be_bytes());
    i16, 2, |key, into| into.extend(key.to_be_bytes());
    i8, 3, |key, into| into.extend(key.to_be_bytes());
    String, 4, |key, into| write_string(key, into);
    Vec<u8>, 5, |key, into| { write_len(key.len(), into); into.extend(key) };
}

#[derive(Clone, Copy)]
struct Layout {
    version: Version,
    seed: i32,
    expected: usize,
    bits: u64,
}

impl Layout {
    fn build(&self) -> SparkBloom {
        let builder = SparkBloom::builder().version(self.version).seed(self.seed);
        builder.expected_keys(self.expected).bits(self.bits).build().unwrap()
    }
}

/// Both make a filter of the first keys, and all are asked for; then each reads what the other
/// wrote.
fn assert_same<K: JavaKey>(spark: &mut Jvm, layout: Layout, keys: usize, key: impl Fn(u64) -> K) {
    let Layout {
        version,
        seed,
        expected,
        bits,
    } = layout;
    let keys: Vec<K> = (0..2 * keys as u64).map(key).collect();
    let (present, absent) = keys.split_at(keys.len() / 2);
    let context = format!(
        "{} keys of kind {}, {version:?}, seed {seed}, {bits} bits for {expected}",
        present.len(),
        K::KIND
    );
    spark.send(&[b'm', if version == Version::V1 { 1 } else { 2 }]);
    spark.send(&seed.to_be_bytes());
    spark.send(&(expected as u64).to_be_bytes());
    spark.send(&bits.to_be_bytes());
    let (put, made) = with_keys(spark, present);

    let ours = layout.build();
    let one_by_one = ours.clone();
    let mut changed = vec![false; present.len()];
    ours.insert_batch_flagged(present, &mut changed);
    assert!(changed == put, "put in a batch: {context}");
    assert!(
        present.iter().map(|key| one_by_one.insert(key)).eq(put),
        "put: {context}"
    );
    assert!(one_by_one == ours);

    assert!(ours.to_bytes() == made.stream, "the stream: {context}");
    assert_eq!(ours.current_false_positive_rate(), made.expected_fpp, "{context}");
    assert_eq!(
        ours.fill_ratio(),
        made.cardinality as f64 / ours.bit_size() as f64,
        "{context}"
    );

    let theirs = SparkBloom::read_from(&made.stream[..], usize::MAX).unwrap();
    assert!(
        theirs == ours && theirs.version() == version && theirs.seed() == seed,
        "{context}"
    );
    for keys in [present, absent] {
        spark.send(b"a");
        spark.send_bytes(&ours.to_bytes());
        let (asked, again) = with_keys(spark, keys);
        assert!(
            theirs.contains_each(keys) == asked,
            "mightContain in a batch: {context}"
        );
        let single = keys.iter().map(|key| theirs.contains(key));
        assert!(single.eq(asked), "mightContain: {context}");
        assert!(
            again.stream == made.stream,
            "what Spark reads and writes again: {context}"
        );
    }
}

fn each_version(mut test: impl FnMut(Version, i32)) {
    test(Version::V1, 0);
    for seed in [0, 1, -1, 0x5eed, i32::MIN] {
        test(Version::V2, seed);
    }
}

/// Every kind of key, with one hash function and up to many, in filters just filled and overfilled.
#[test]
fn all_keys_agree_with_spark() {
    let Some(mut spark) = start("all_keys_agree_with_spark") else {
        return;
    };
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
        each_version(|version, seed| {
            let layout = Layout {
                version,
                seed,
                expected,
                bits,
            };
            assert_same(spark, layout, keys, |i| number(i) as i64);
            assert_same(spark, layout, keys, |i| i as i64 - 5);
            assert_same(spark, layout, keys, |i| number(i) as i32);
            assert_same(spark, layout, keys, |i| number(i) as i16);
            assert_same(spark, layout, keys, |i| number(i) as i8);
            assert_same(spark, layout, keys, string);
            assert_same(spark, layout, keys, bytes);
        });
    }
}

/// Filters that take the way of large ones through our batches.
#[test]
fn large_filters_agree_with_spark() {
    let Some(mut spark) = start("large_filters_agree_with_spark") else {
        return;
    };
    for (version, seed) in [(Version::V1, 0), (Version::V2, -7)] {
        for (expected, bits) in [
            (3_000_000, 30_000_000),
            (70_000, 70_000_000),
            (10_000_000, 64 * (1 << 21) + 64),
        ] {
            let layout = Layout {
                version,
                seed,
                expected,
                bits,
            };
            assert_same(&mut spark, layout, 20_000, |i| number(i) as i64);
            assert_same(&mut spark, layout, 5000, |i| format!("{:024}", number(i)));
        }
    }
    let layout = Layout {
        version: Version::V2,
        seed: 0,
        expected: 1 << 28,
        bits: 1 << 33,
    };
    let filter = layout.build();
    drop(filter);
}

/// Spark's formulas at thousands of random keys and rates or bits, where it throws as well.
#[test]
fn sizes_agree_with_spark() {
    let Some(mut spark) = start("sizes_agree_with_spark") else {
        return;
    };
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
        assert_eq!(ours, theirs, "{builder:?}");
        refused += u32::from(theirs.0 == 0);
    }
    assert!((100..2000).contains(&refused), "{refused} of 4000 refused");
}

#[test]
fn merges_agree_with_spark() {
    let Some(mut spark) = start("merges_agree_with_spark") else {
        return;
    };
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
        let (mut one, other) = (make(i, i), make(i + number(i) % 9, 2 * i));
        let union = i % 5 < 3;
        spark.send(if union { b"u" } else { b"i" });
        spark.send_bytes(&one.to_bytes());
        spark.send_bytes(&other.to_bytes());
        spark.flush();
        let compatible = spark.receive() == [1];
        assert_eq!(one.is_compatible(&other), compatible);
        let done = if union {
            one.union_from(&other)
        } else {
            one.intersection_from(&other)
        };
        assert_eq!(done.is_ok(), compatible);
        if compatible {
            assert_eq!(one.to_bytes(), receive_filter(&mut spark).stream);
            merged += 1;
        }
    }
    assert!((20..190).contains(&merged), "{merged} of 200 merged");
}
