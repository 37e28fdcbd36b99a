//! `GuavaBloom` without a JVM: values from Guava, its algorithm step by step, and the checks of
//! Guava's own tests. `contract/java.rs` has what Spark's filter promises too.
#![cfg(feature = "std")]

use crate::contract::guava::java::{
    assert_is_big, assert_is_refused, assert_is_stream, assert_rates_are_checked, unhex,
};
use lanebloom::Funnel;
use lanebloom_formats::guava::{Builder, GuavaBloom, Hash, HashFunctions, Strategy, UnencodedChars, Utf16};
use lanebloom_tests::number;
use proptest::prelude::*;
use serde_json::Value;

const FORMULAS: [HashFunctions; 2] = [HashFunctions::ByBits, HashFunctions::ByRate];

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/guava.json")).unwrap()
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
        assert_is_stream(&filter, &case["hex"]);
    }
    assert_eq!(cases.len(), 8);
    let empty = builder(0, 0.03).build().unwrap();
    assert_eq!(empty.to_bytes(), unhex(&golden["empty_n0_p003_MITZ_64"]));
}

/// A million keys: every false positive among another million is Guava's, and so are the figures
/// and the whole array.
#[test]
fn big_filters_are_guavas() {
    for case in golden()["big_filters"]["cases"].as_array().unwrap() {
        let builder = builder(1_000_000, 0.03).strategy(strategy(&case["strategy"]));
        let filter = builder.build().unwrap();
        assert_eq!((filter.bit_size(), filter.hash_functions()), (7_298_496, 5));
        let keys = |first: u32| (first..2_000_000).step_by(2).map(|i| i.to_string()).collect::<Vec<_>>();
        let (even, odd) = (keys(0), keys(1));
        let found = if case["funnel"] == "utf8" {
            filter.insert_batch(&even);
            found!(filter, &odd)
        } else {
            (&filter).extend(even.iter().map(UnencodedChars));
            found!(filter, &Vec::from_iter(odd.iter().map(UnencodedChars)))
        };
        assert_is_big(&filter, &found, case);
        assert_eq!(
            filter.statistics().false_positive_rate,
            case["expected_fpp"].as_f64().unwrap()
        );
        assert_eq!(Value::from(filter.statistics().len), case["approx_count"]);
    }
}

/// Guava's `testPreconditions` and `testFailureWhenMoreThan255HashFunctions`. Expected keys below 0
/// do not compile.
#[test]
fn what_guava_refuses_is_an_error() {
    // It takes 0 for 1.
    let (none, one) = (builder(0, 0.01).build().unwrap(), builder(1, 0.01).build().unwrap());
    assert!(none == one && none.expected_keys() == 1);
    for formula in FORMULAS {
        let error = |keys, rate| {
            let built = builder(keys, rate).hash_functions(formula).build();
            built.unwrap_err().to_string()
        };
        assert_rates_are_checked(|rate| error(1000, rate));
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
        let least = builder(1000, 0.99).hash_functions(formula).build();
        assert_eq!(least.unwrap().hash_functions(), 1);
    }
    assert_eq!(builder(1000, 1e-76).build().unwrap().hash_functions(), 252);
    // Guava's own test: a billion keys. (Memory that nothing writes to costs nothing.)
    let filter = builder(i32::MAX as usize / 2, 0.28).build().unwrap();
    assert_eq!((filter.hash_functions(), filter.bit_size()), (2, 64 * 44_451_423));
}

/// Guava's `testApproximateElementCount` and `testExpectedFpp`, of a filter that is full.
#[test]
fn a_full_filter_has_every_key() {
    let bytes = [&[1, 5, 0, 0, 0, 1][..], &[0xff; 8]].concat();
    let full = GuavaBloom::from_bytes(&bytes).unwrap().0;
    let told = (full.statistics().len, full.statistics().false_positive_rate);
    assert_eq!(told, (usize::MAX, 1.0));
}

/// Guava's `testCopy` and `testEquals`: empty filters differ by every setting.
#[test]
fn equal_filters_have_one_layout() {
    let empty = |keys, rate| builder(keys, rate).build().unwrap();
    assert!(empty(100, 0.01) == empty(100, 0.01));
    assert!(empty(100, 0.01) != empty(100, 0.02) && empty(100, 0.01) != empty(200, 0.01));
    assert!(empty(100, 0.01) != builder(100, 0.01).strategy(Strategy::Mitz32).build().unwrap());
    let formulas = FORMULAS.map(|formula| builder(1, 0.01).hash_functions(formula).build().unwrap());
    assert_eq!(formulas[0].bit_size(), formulas[1].bit_size());
    assert!(formulas[0] != formulas[1] && formulas[0].with(&formulas[1]).is_err());
}

/// Guava's algorithm, from its code: the indexes of a hash's bits in a filter with this stream.
pub(crate) fn indexes(stream: &[u8], Hash(hash1, hash2): Hash) -> impl Iterator<Item = usize> {
    let (strategy, bits) = (stream[0], 8 * (stream.len() as u64 - 6));
    (0..stream[1].into()).map(move |i: u32| {
        let bit = if strategy == 1 {
            (hash1.wrapping_add(u64::from(i).wrapping_mul(hash2)) & i64::MAX as u64) % bits
        } else {
            let (low, high) = (hash1 as i32, (hash1 >> 32) as i32);
            let combined = low.wrapping_add((i as i32 + 1).wrapping_mul(high));
            (if combined < 0 { !combined } else { combined }) as u64 % bits
        };
        bit as usize
    })
}

/// By another crate.
pub(crate) fn hash_of(_stream: &[u8], key: u64) -> Hash {
    let hash = murmur3::murmur3_x64_128(&mut &key.to_le_bytes()[..], 0).unwrap();
    Hash(hash as u64, (hash >> 64) as u64)
}

pub(crate) fn header_len(_stream: &[u8]) -> usize {
    6
}

/// Numbers without a pattern and at the ends of their range.
pub(crate) fn hashes() -> Vec<Hash> {
    let ends = [0, 1, i32::MAX as u64, 1 << 31, i64::MAX as u64, 1 << 63, u64::MAX];
    let all = ends.into_iter().chain((0..63).map(number));
    all.map(|a| Hash(a, number(a))).collect()
}

#[test]
fn a_header_of_no_filter_is_an_error() {
    for strategy in [2u8, 0xff] {
        let message = "is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)";
        let bytes = [&[strategy, 5, 0, 0, 0, 1][..], &[0; 8]].concat();
        assert_is_refused(&bytes, &format!("strategy {} {message}", strategy as i8));
    }
    let none = [&[1, 0, 0, 0, 0, 1][..], &[0; 8]].concat();
    assert_is_refused(&none, "0 hash functions is not in 1 to 255");
}

proptest! {
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
