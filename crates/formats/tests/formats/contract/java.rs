//! The promises of Guava's and Spark's filters about the bits of a key, sets and streams, for each
//! version of their formats. `contract.rs` says which filter, as `super`.

use super::each::{distinct, hit_rate, lookups_agree, number};
use super::{Bloom, FUNCTIONS, HEADER_START, Int, VERSIONS, Version, builder, header, header_of, might_contain};
use lanebloom_formats::ReadError;
use lanebloom_tests::{Full, Pieces, STRESS_KEYS};
use proptest::prelude::*;
use serde_json::Value;
use std::error::Error;
use std::io;

pub(crate) fn unhex(value: &Value) -> Vec<u8> {
    let pairs = value.as_str().unwrap().as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn read(bytes: &[u8]) -> Result<Bloom, ReadError> {
    Bloom::read_from(bytes, 1 << 20)
}

pub(crate) fn stream(version: Version, functions: u32, longs: &[u64]) -> Vec<u8> {
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

#[test]
fn batches_of_any_length_equal_single_calls() {
    for stream in dense() {
        let single = Bloom::from_bytes(&stream).unwrap().0;
        let (batch, flagged, mut alone) = (single.clone(), single.clone(), single.clone());
        let lens = [
            0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 511, 513, 700,
        ];
        for len in lens {
            let keys: Vec<Int> = (0..len).map(|i| number(i / 2 + 1000 * len)).collect();
            let changed: Vec<bool> = keys.iter().map(|key| single.insert(key)).collect();
            let sum = changed.iter().filter(|&&changed| changed).count();
            assert_eq!(batch.insert_batch(&keys), sum);
            assert_eq!(alone.exclusive().insert_batch(&keys), sum);
            assert_eq!(alone.exclusive().insert_batch(&keys), 0);
            let mut flags = vec![true; keys.len()];
            assert_eq!(flagged.insert_batch_into(&keys, &mut flags), sum);
            assert_eq!(flags, changed);
            let asked: Vec<Int> = (0..len).map(|i| number(i + 1000 * len)).collect();
            assert_eq!(found!(batch, &asked), found!(single, &asked));
            lookups_agree(&batch, &asked, 1);
        }
        assert!(batch == single && flagged == single && alone == single);
    }
}

/// With the expected keys, a filter has its rate and is not overfull; with half as many more it is.
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
            let measured = hit_rate(&filter, 200_000);
            assert!(
                rate < 1e-3 || (measured / rate - 1.0).abs() < 0.25,
                "{measured}, not {rate}"
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

fn with(version: Version, size: usize, keys: std::ops::Range<Int>) -> Bloom {
    let filter = builder(version, size).false_positive_rate(0.01).build().unwrap();
    filter.insert_all(keys);
    filter
}

#[test]
fn an_intersection_has_the_bits_of_both() {
    for version in VERSIONS {
        for size in [400, 30_000] {
            let (mut a, b) = (with(version, size, 0..200), with(version, size, 150..400));
            let before = (a.to_bytes(), b.to_bytes());
            assert_eq!(a.exclusive().intersection_from(&b), Ok(true));
            let bits = before.0.iter().zip(&before.1).map(|(a, b)| a & b);
            assert!(a.to_bytes().into_iter().eq(bits) && b.to_bytes() == before.1);
            assert!((150..200).all(|key: Int| a.contains(&key)));
            assert_eq!(a.exclusive().intersection_from(&b), Ok(false));
            let copy = a.clone();
            assert_eq!(a.exclusive().intersection_from(&copy), Ok(false));
            let empty = with(version, size, 0..0);
            assert_eq!(a.exclusive().intersection_from(&empty), Ok(true));
            assert!(a == empty && a.is_empty());
            let other = with(version, size + 100, 0..10);
            let error = a.exclusive().intersection_from(&other).unwrap_err().to_string();
            assert!(error.starts_with("the other filter's layout differs") && a == empty);
        }
    }
}

#[test]
fn sets_are_compared_without_being_made() {
    for version in VERSIONS {
        let filter = |keys| with(version, 20_000, keys);
        let (a, b) = (filter(0..12_000), filter(8000..20_000));
        let union = a.clone();
        union.union_from(&b).unwrap();
        assert_eq!(a.with(&b).unwrap().union_len(), union.statistics().len);
        let both = a.statistics().len + b.statistics().len - union.statistics().len;
        assert_eq!(a.with(&b).unwrap().intersection_len(), both);
        assert!(both.abs_diff(4000) < 300, "{both}");
        // Never below 0.
        let few = filter(0..1);
        assert!(few.with(&filter(1..20_000)).unwrap().intersection_len() <= 1);

        // A subset lacks no bit.
        let all = filter(0..3000);
        assert!(filter(0..0).with(&all).unwrap().is_subset());
        assert!(all.with(&all.clone()).unwrap().is_subset());
        for key in 0..5000 {
            assert_eq!(
                filter(key..key + 1).with(&all).unwrap().is_subset(),
                all.contains(&key),
                "{key}"
            );
        }
        // Nearly the same bits, some of them in each word.
        let (more, fewer) = (with(version, 400, 0..400), with(version, 400, 0..380));
        assert_eq!(
            (
                fewer.with(&more).unwrap().is_subset(),
                more.with(&fewer).unwrap().is_subset()
            ),
            (true, false)
        );
        let other = with(version, 30_000, 0..10);
        let error = a.with(&other).unwrap_err().to_string();
        assert!(error.starts_with("the other filter's layout differs"), "{error}");
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

proptest! {
    /// Whatever the bytes are: an error, or a filter that writes them again.
    #[test]
    fn any_bytes_are_read_or_refused(
        version in 0u8..4,
        functions in -1i32..5,
        seed in any::<i32>(),
        longs in -1i32..6,
        rest in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let (header, is_header) = header(version, functions, seed, longs);
        let bytes = [&header[..], &rest].concat();
        let is_good = is_header && rest.len() >= 8 * longs as usize;
        let length = header.len() + 8 * longs.max(0) as usize;
        match (Bloom::from_bytes(&bytes), read(&bytes)) {
            (Ok((filter, rest)), Ok(same)) => {
                prop_assert!(is_good && filter == same);
                prop_assert_eq!(filter.to_bytes(), &bytes[..length]);
                prop_assert_eq!(rest, &bytes[length..]);
            }
            (Err(one), Err(other)) => {
                prop_assert!(!is_good);
                prop_assert_eq!(one.to_string(), other.to_string());
            }
            _ => prop_assert!(false, "the two do not agree"),
        }
    }
}
