//! `GuavaBloom` beside Guava itself on a JVM: the same streams to the byte, the same answers, the
//! same figures, whichever of the two made the filter.
//!
//! Needs `java`, `javac` and Guava: Debian's `libguava-java`, and the newer one that
//! `ci/fetch/spark.sh` fetches; elsewhere `LANEBLOOM_GUAVA` is its class path. Each Guava that is
//! found is tried. If none is, the tests say so and pass, unless `LANEBLOOM_REQUIRE_JVM` is set, as
//! it is in CI. (`tests/formats/guava.rs` has Guava's results for some keys, and needs nothing.)
#![cfg(feature = "std")]

use crate::jvm::{Jvm, Key, Program, bytes, string, write_string};
use lanebloom::Funnel;
use lanebloom_formats::guava::{GuavaBloom, HashFunctions, Strategy, UnencodedChars, Utf16};
use lanebloom_tests::number;

/// A JVM for each Guava, with `tests/guava/Guava.java`, whose first lines say how it is spoken to.
fn start_each(test: &str) -> impl Iterator<Item = Jvm> {
    let program = Program {
        class: "Guava",
        source: "guava/Guava.java",
        libraries: lanebloom_tests::jars::guava(),
        require: "LANEBLOOM_REQUIRE_JVM",
    };
    Jvm::start_each(test, program)
}

/// The formula of this Guava, by its version.
fn hash_functions(guava: &Jvm) -> HashFunctions {
    let numbers =
        |version: &str| -> Vec<u32> { version.split(['.', '-']).map_while(|part| part.parse().ok()).collect() };
    match guava.library.strip_prefix("Guava ").map(numbers).as_deref() {
        Some([0..33, ..] | [33, 0..4, ..]) => HashFunctions::ByBits,
        Some([_, ..]) => HashFunctions::ByRate,
        _ => panic!("{} has no version", guava.library),
    }
}

/// `stringFunnel(UTF_16LE)`, whose bytes are those of `unencodedCharsFunnel()`.
struct Utf16Le(UnencodedChars<String>);

impl Key for Utf16Le {
    const KIND: u8 = 6;
    fn write(&self, into: &mut Vec<u8>) {
        self.0.write(into);
    }
}

impl Funnel for Utf16Le {
    fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

/// All that a `PrimitiveSink` takes, in the order of `COMPOUND`.
struct Compound(
    (i8, i16, u16, i32, i64),
    f32,
    f64,
    (bool, Vec<u8>, String, UnencodedChars<String>),
);

impl Funnel for Compound {
    fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
        let Self(numbers, float, double, rest) = self;
        (numbers, float.to_bits(), double.to_bits(), rest).funnel(into);
    }
}

impl Key for Compound {
    const KIND: u8 = 9;
    fn write(&self, into: &mut Vec<u8>) {
        let Self((byte, short, char, int, long), float, double, (boolean, bytes, string, chars)) = self;
        into.extend(byte.to_be_bytes());
        into.extend(short.to_be_bytes());
        into.extend(char.to_be_bytes());
        into.extend(int.to_be_bytes());
        into.extend(long.to_be_bytes());
        into.extend(float.to_be_bytes());
        into.extend(double.to_be_bytes());
        into.push(u8::from(*boolean));
        Key::write(bytes, into);
        Key::write(string, into);
        write_string(&chars.0, into);
    }
}

fn compound(i: u64) -> Compound {
    let n = number(i);
    Compound(
        (n as i8, (n >> 8) as i16, (n >> 24) as u16, (n >> 32) as i32, n as i64),
        // Not a NaN, of which Java may change the bits.
        (n >> 40) as f32 * -1.5,
        (n >> 11) as f64 * 1e-9,
        (n & 1 == 0, bytes(i), string(i), UnencodedChars(string(i + 1))),
    )
}

/// Filters with both strategies, with this Guava's number of hash functions.
fn assert_same<K>(guava: &mut Jvm, expected: usize, rate: f64, keys: usize, key: impl Fn(u64) -> K)
where
    K: Key + Funnel,
{
    let keys: Vec<K> = (0..2 * keys as u64).map(key).collect();
    for (byte, strategy) in [(0, Strategy::Mitz32), (1, Strategy::Mitz64)] {
        let make = [&[byte][..], &expected.to_be_bytes(), &rate.to_be_bytes()].concat();
        let builder = GuavaBloom::builder().expected_keys(expected).strategy(strategy);
        let builder = builder.false_positive_rate(rate).hash_functions(hash_functions(guava));
        let (made, ours) = guava.assert_same(&make, builder.build().unwrap(), &keys);
        let count = usize::try_from(made.count).unwrap_or(usize::MAX);
        assert_eq!(ours.statistics().len, count, "{ours:?}");
    }
}

/// Every funnel, at rates that take one hash function and up to many, in filters just filled and
/// overfilled.
#[test]
fn all_funnels_agree_with_guava() {
    for mut guava in start_each("all_funnels_agree_with_guava") {
        let guava = &mut guava;
        for (expected, rate, keys) in [
            (1, 0.03, 1),
            (1, 0.3, 5),
            (10, 0.01, 10),
            (100, 0.5, 400),
            (500, 1e-9, 300),
            (900, 1e-70, 40),
            (20, 1e-9, 60), // the filter is overfull, and finds many absent keys
            (10, 1e-70, 12),
            (1000, 0.03, 1000),
            (64, 0.9, 5000), // full
        ] {
            assert_same(guava, expected, rate, keys, |i| number(i) as i32);
            assert_same(guava, expected, rate, keys, |i| number(i) as i64);
            assert_same(guava, expected, rate, keys, bytes);
            assert_same(guava, expected, rate, keys, string);
            assert_same(guava, expected, rate, keys, |i| UnencodedChars(string(i)));
            assert_same(guava, expected, rate, keys, |i| {
                (0..number(i) % 9)
                    .map(|j| number(i << 8 | j) as u16 | 0xd000)
                    .collect::<Vec<u16>>()
            });
            assert_same(guava, expected, rate, keys, |i| Utf16(string(i)));
            assert_same(guava, expected, rate, keys, |i| Utf16Le(UnencodedChars(string(i))));
            assert_same(guava, expected, rate, keys, |i| {
                (0..number(i) % 9)
                    .map(|j| number(i << 8 | j) as i32)
                    .collect::<Vec<i32>>()
            });
            assert_same(guava, expected, rate, keys, |i| {
                (0..number(i) % 5).map(|j| string(i + j)).collect::<Vec<String>>()
            });
            assert_same(guava, expected, rate, keys, compound);
        }
    }
}

/// Filters that take the way of large ones through our batches.
#[test]
fn large_filters_agree_with_guava() {
    for mut guava in start_each("large_filters_agree_with_guava") {
        // More than 2 MiB, whatever the keys.
        const EXPECTED: usize = 3_000_000;
        const KEYS: usize = 50_000;
        assert_same(&mut guava, EXPECTED, 0.01, 3 * KEYS, |i| number(i) as i64);
        assert_same(&mut guava, EXPECTED, 1e-3, KEYS, |i| format!("{:024}", number(i)));
        assert_same(&mut guava, EXPECTED, 0.001, KEYS / 10, compound);
        assert_same(&mut guava, 70_000, 1e-76, KEYS / 20, |i| number(i) as i32);
    }
}

/// Guava's formulas at thousands of random keys and rates, where it throws as well.
#[test]
fn sizes_agree_with_guava() {
    for mut guava in start_each("sizes_agree_with_guava") {
        let mut refused = 0;
        for i in 0..4000 {
            let keys = number(2 * i) >> (44 + number(i) % 20);
            // Around the middle, near 0, near 1, and at round numbers.
            let random = (number(2 * i + 1) >> 11) as f64 / (1u64 << 53) as f64;
            let rate = match i % 4 {
                0 => random,
                1 => random.powi(20),
                2 => 1.0 - random * 1e-4,
                _ => [0.03, 0.01, 1e-3, 0.1, 0.5, 0.25, 1e-6, 1e-80][(i / 4 % 8) as usize],
            };
            guava.send(b"f");
            guava.send(&keys.to_be_bytes());
            guava.send(&rate.to_be_bytes());
            guava.flush();
            let theirs = (u64::from_be_bytes(guava.receive()), u32::from_be_bytes(guava.receive()));
            let ours = GuavaBloom::builder()
                .expected_keys(keys as usize)
                .false_positive_rate(rate)
                .hash_functions(hash_functions(&guava))
                .build();
            let ours = ours.map_or((0, 0), |filter| (filter.bit_size() / 64, filter.hash_functions()));
            assert_eq!(ours, theirs, "{}, {keys} keys at {rate:e}", guava.library);
            refused += u32::from(theirs.0 == 0);
        }
        assert!(
            (100..2000).contains(&refused),
            "{}: {refused} of 4000 refused",
            guava.library
        );
    }
}

#[test]
fn unions_agree_with_guava() {
    for mut guava in start_each("unions_agree_with_guava") {
        let mut united = 0;
        for i in 0..60 {
            let make = |i: u64, keys: u64| {
                let strategy = if i % 3 == 0 { Strategy::Mitz32 } else { Strategy::Mitz64 };
                let filter = GuavaBloom::builder()
                    .expected_keys(100 * (i as usize / 4 % 2 + 1))
                    .false_positive_rate([0.03, 0.02][(i / 8 % 2) as usize])
                    .strategy(strategy)
                    .build()
                    .unwrap();
                (&filter).extend((0..keys).map(number));
                filter
            };
            let other = make(i + number(i) % 9, 2 * i);
            united += u32::from(guava.assert_same_union(b'u', make(i, i), &other));
        }
        assert!((10..50).contains(&united), "{united} of 60 united");
    }
}
