//! `GuavaBloom` beside Guava itself on a JVM: the same streams to the byte, the same answers, the
//! same figures, whichever of the two made the filter.
//!
//! Needs `java`, `javac` and Guava (Debian's `libguava-java`; elsewhere `LANEBLOOM_GUAVA` is its
//! class path). If they are not installed the tests say so and pass, unless `LANEBLOOM_REQUIRE_JVM`
//! is set, as it is in CI. (`tests/formats/guava.rs` has Guava's results for some keys, and needs
//! nothing.)
#![cfg(feature = "std")]

use crate::jvm::{Jvm, Program, bytes, string, write_len, write_string, write_units};
use lanebloom::Funnel;
use lanebloom_formats::guava::{GuavaBloom, HashFunctions, Strategy, UnencodedChars, Utf16};
use lanebloom_tests::number;
use std::ops::{Deref, DerefMut};

/// A JVM that runs `tests/guava/Guava.java`, whose first lines say how it is spoken to.
struct Guava(Jvm);

impl Deref for Guava {
    type Target = Jvm;

    fn deref(&self) -> &Jvm {
        &self.0
    }
}

impl DerefMut for Guava {
    fn deref_mut(&mut self) -> &mut Jvm {
        &mut self.0
    }
}

/// Guava's figures for a filter.
struct Made {
    stream: Vec<u8>,
    expected_fpp: f64,
    /// Nothing where Guava throws.
    approximate_element_count: Option<u64>,
}

impl Guava {
    fn start(test: &str) -> Option<Self> {
        let program = Program {
            class: "Guava",
            source: "guava/Guava.java",
            variable: "LANEBLOOM_GUAVA",
            library: "/usr/share/java/guava.jar".into(),
            require: "LANEBLOOM_REQUIRE_JVM",
        };
        Jvm::start(test, &program).map(Self)
    }

    fn send_stream(&mut self, filter: &GuavaBloom) {
        self.send_bytes(&filter.to_bytes());
    }

    fn send_keys<K: JavaKey>(&mut self, keys: &[K]) {
        self.send(&[K::FUNNEL]);
        self.send_len(keys.len());
        let mut bytes = Vec::new();
        keys.iter().for_each(|key| key.write(&mut bytes));
        self.send(&bytes);
        self.flush();
    }

    fn receive_filter(&mut self) -> Made {
        Made {
            stream: self.receive_bytes(),
            expected_fpp: f64::from_be_bytes(self.receive()),
            approximate_element_count: u64::try_from(i64::from_be_bytes(self.receive())).ok(),
        }
    }

    /// A filter with these keys, and what `put` said of each.
    fn make<K: JavaKey>(&mut self, strategy: Strategy, expected: u64, rate: f64, keys: &[K]) -> (Vec<bool>, Made) {
        self.send(&[b'm', u8::from(strategy == Strategy::Mitz64)]);
        self.send(&expected.to_be_bytes());
        self.send(&rate.to_be_bytes());
        self.send_keys(keys);
        (self.receive_answers(keys.len()), self.receive_filter())
    }

    /// The answers of `mightContain`, and the filter as Guava writes it again.
    fn ask<K: JavaKey>(&mut self, filter: &GuavaBloom, keys: &[K]) -> (Vec<bool>, Made) {
        self.send(b"a");
        self.send_stream(filter);
        self.send_keys(keys);
        (self.receive_answers(keys.len()), self.receive_filter())
    }
}

/// A key that Guava can be told.
trait JavaKey: Funnel {
    /// The place in `FUNNELS`.
    const FUNNEL: u8;
    fn write(&self, into: &mut Vec<u8>);
}

macro_rules! java_keys {
    ($($type:ty, $funnel:literal, |$key:ident, $into:ident| $write:expr;)*) => {$(
        impl JavaKey for $type {
            const FUNNEL: u8 = $funnel;
            fn write(&self, $into: &mut Vec<u8>) {
                let $key = self;
                $write;
            }
        }
    )*};
}
java_keys! {
    i32, 0, |key, into| into.extend(key.to_be_bytes());
    i64, 1, |key, into| into.extend(key.to_be_bytes());
    Vec<u8>, 2, |key, into| { write_len(key.len(), into); into.extend(key) };
    String, 3, |key, into| write_string(key, into);
    UnencodedChars<String>, 4, |key, into| write_string(&key.0, into);
    // Any units, those of half a surrogate pair too.
    Vec<u16>, 4, |key, into| write_units(key, into);
    Utf16<String>, 5, |key, into| write_string(&key.0, into);
    Utf16Le, 6, |key, into| write_string(&key.0.0, into);
    Vec<i32>, 7, |key, into| { write_len(key.len(), into); key.iter().for_each(|part| part.write(into)) };
    Vec<String>, 8, |key, into| { write_len(key.len(), into); key.iter().for_each(|part| part.write(into)) };
    Compound, 9, |key, into| key.write(into);
}

/// `stringFunnel(UTF_16LE)`, whose bytes are those of `unencodedCharsFunnel()`.
struct Utf16Le(UnencodedChars<String>);

impl Funnel for Utf16Le {
    fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

/// All that a `PrimitiveSink` takes, in the order of `COMPOUND`.
struct Compound {
    numbers: (i8, i16, u16, i32, i64),
    float: f32,
    double: f64,
    rest: (bool, Vec<u8>, String, UnencodedChars<String>),
}

impl Funnel for Compound {
    fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
        let Self {
            numbers,
            float,
            double,
            rest,
        } = self;
        (numbers, float.to_bits(), double.to_bits(), rest).funnel(into);
    }
}

impl Compound {
    fn write(&self, into: &mut Vec<u8>) {
        let (byte, short, char, int, long) = self.numbers;
        let (boolean, bytes, string, chars) = &self.rest;
        into.extend(byte.to_be_bytes());
        into.extend(short.to_be_bytes());
        into.extend(char.to_be_bytes());
        into.extend(int.to_be_bytes());
        into.extend(long.to_be_bytes());
        into.extend(self.float.to_be_bytes());
        into.extend(self.double.to_be_bytes());
        into.push(u8::from(*boolean));
        JavaKey::write(bytes, into);
        JavaKey::write(string, into);
        write_string(&chars.0, into);
    }
}

fn compound(i: u64) -> Compound {
    let n = number(i);
    Compound {
        numbers: (n as i8, (n >> 8) as i16, (n >> 24) as u16, (n >> 32) as i32, n as i64),
        // Not a NaN, of which Java may change the bits.
        float: (n >> 40) as f32 * -1.5,
        double: (n >> 11) as f64 * 1e-9,
        rest: (n & 1 == 0, bytes(i), string(i), UnencodedChars(string(i + 1))),
    }
}

/// Both make a filter of the even keys, and all are asked for; then each reads what the other
/// wrote.
fn assert_same<K: JavaKey>(guava: &mut Guava, expected: usize, rate: f64, keys: usize, key: impl Fn(u64) -> K) {
    let keys: Vec<K> = (0..2 * keys as u64).map(key).collect();
    let (present, absent) = keys.split_at(keys.len() / 2);
    for strategy in [Strategy::Mitz32, Strategy::Mitz64] {
        let context = format!(
            "{} keys of funnel {}, {strategy}, for {expected} at {rate}",
            present.len(),
            K::FUNNEL
        );
        let (put, made) = guava.make(strategy, expected as u64, rate, present);
        let ours = GuavaBloom::builder()
            .expected_keys(expected)
            .false_positive_rate(rate)
            .strategy(strategy)
            .hash_functions(HashFunctions::ByBits) // that of Debian's Guava, 31
            .build()
            .unwrap();
        let one_by_one = ours.clone();
        let mut changed = vec![false; present.len()];
        ours.insert_batch_flagged(present, &mut changed);
        assert!(changed == put, "put: {context}");
        assert!(
            present.iter().map(|key| one_by_one.insert(key)).eq(put),
            "put: {context}"
        );
        assert!(one_by_one == ours);

        assert!(ours.to_bytes() == made.stream, "the stream: {context}");
        assert_eq!(ours.current_false_positive_rate(), made.expected_fpp, "{context}");
        let count = made
            .approximate_element_count
            .map_or(usize::MAX, |count| count as usize);
        assert_eq!(ours.estimated_len(), count, "{context}");

        let theirs = GuavaBloom::read_from(&made.stream[..], usize::MAX).unwrap();
        assert!(theirs == ours, "{context}");
        for keys in [present, absent] {
            let (asked, again) = guava.ask(&ours, keys);
            let mut found = vec![false; keys.len()];
            theirs.contains_batch(keys, &mut found);
            assert!(found == asked, "mightContain in a batch: {context}");
            assert!(
                keys.iter().map(|key| theirs.contains(key)).eq(asked),
                "mightContain: {context}"
            );
            assert!(
                again.stream == made.stream,
                "what Guava reads and writes again: {context}"
            );
        }
    }
}

/// Every funnel, at rates that take one hash function and up to many, in filters just filled and
/// overfilled.
#[test]
fn all_funnels_agree_with_guava() {
    let Some(mut guava) = Guava::start("all_funnels_agree_with_guava") else {
        return;
    };
    let guava = &mut guava;
    for (expected, rate, keys) in [
        (1, 0.03, 1),
        (1, 0.3, 5),
        (10, 0.01, 10),
        (100, 0.5, 400),
        (500, 1e-9, 300),
        (900, 1e-70, 40),
        (20, 1e-9, 60), // so many that a good part of the absent ones is found
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

/// Filters that take the way of large ones through our batches.
#[test]
fn large_filters_agree_with_guava() {
    let Some(mut guava) = Guava::start("large_filters_agree_with_guava") else {
        return;
    };
    // More than 2 MiB, whatever the keys.
    const EXPECTED: usize = 3_000_000;
    const KEYS: usize = 100_000;
    assert_same(&mut guava, EXPECTED, 0.01, 3 * KEYS, |i| number(i) as i64);
    assert_same(&mut guava, EXPECTED, 1e-3, KEYS, |i| format!("{:024}", number(i)));
    assert_same(&mut guava, EXPECTED, 0.001, KEYS / 10, compound);
    assert_same(&mut guava, 70_000, 1e-76, KEYS / 20, |i| number(i) as i32);
}

/// Guava's formulas at thousands of random keys and rates, where it throws as well.
#[test]
fn sizes_agree_with_guava() {
    let Some(mut guava) = Guava::start("sizes_agree_with_guava") else {
        return;
    };
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
            .hash_functions(HashFunctions::ByBits)
            .build();
        let ours = ours.map_or((0, 0), |filter| (filter.bit_size() / 64, filter.hash_functions()));
        assert_eq!(ours, theirs, "{keys} keys at {rate:e}");
        refused += u32::from(theirs.0 == 0);
    }
    assert!((100..2000).contains(&refused), "{refused} of 4000 refused");
}

#[test]
fn unions_agree_with_guava() {
    let Some(mut guava) = Guava::start("unions_agree_with_guava") else {
        return;
    };
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
        let (one, other) = (make(i, i), make(i + number(i) % 9, 2 * i));
        guava.send(b"u");
        guava.send_stream(&one);
        guava.send_stream(&other);
        guava.flush();
        let compatible = guava.receive() == [1];
        assert_eq!(one.is_compatible(&other), compatible);
        assert_eq!(one.union_from(&other).is_ok(), compatible);
        if compatible {
            assert_eq!(one.to_bytes(), guava.receive_filter().stream);
            united += 1;
        }
    }
    assert!((10..50).contains(&united), "{united} of 60 united");
}
