//! The promise of the builder: at the expected number of keys, the false-positive rate is at most
//! the requested one.
//!
//! # The bound
//!
//! A measured rate `hits / queries` differs from the filter's true rate by sampling noise. The rate
//! of one filter differs from the mean of all by the luck of its keys. The variance of the first is
//! `rate / queries`. That of the second is `(rate * spread)^2 / lines`, where the rates of single
//! lines have the standard deviation `rate * spread`. A measurement passes up to 4 standard
//! deviations above the requested rate. If a filter has many lines, the measurement must also be
//! within 4 of the model's rate: not above, and not below either, for then memory was wasted.

use lanebloom::bloom::Builder;
use lanebloom::{ConcurrentBloom, Funnel, Hashed, Membership};
use lanebloom_tests::{LAYOUTS, RATES, number};

#[derive(Clone, Copy, Debug)]
enum KeyKind {
    Sequential,
    Random,
    Strings,
}

const KEY_KINDS: [KeyKind; 3] = [KeyKind::Sequential, KeyKind::Random, KeyKind::Strings];

/// The i-th key's hash as the filter computes it; keys from `STRANGERS` on are never inserted.
fn hash(filter: &ConcurrentBloom, keys: KeyKind, i: u64) -> u64 {
    fn of(filter: &ConcurrentBloom, key: &impl Funnel) -> u64 {
        filter.hash(key)
    }
    match keys {
        KeyKind::Sequential => of(filter, &i),
        KeyKind::Random => of(filter, &number(i)),
        KeyKind::Strings => of(filter, &format!("user:{i}")),
    }
}

const STRANGERS: u64 = 1 << 40;

/// The spread for each of `RATES`, from 16 filters of a million keys each, rounded up over the
/// words per key (0.08 at 10% with 1 word, 6.6 at 1e-6 with 8): the lower the rate, the more it
/// comes from few crowded lines.
const SPREADS: [f64; 7] = [0.2, 0.4, 0.6, 1.2, 3.5, 6.0, 8.0];

/// The spread for a rate. With two lines per key, the filter's rate is the product of those of its
/// halves, which are its root.
fn spread(lines_per_key: usize, rate: f64) -> f64 {
    let of = |rate: f64| RATES.iter().zip(SPREADS).find(|(known, _)| **known <= rate * 1.001);
    match lines_per_key {
        1 => of(rate).unwrap().1,
        _ => 2.0 * of(rate.sqrt()).unwrap().1,
    }
}

/// Fills filters of `n` keys, as many as make `least_lines` lines, and asks each for absent keys,
/// at least `least_queries` in all.
fn measure(builder: &Builder, rate: f64, n: usize, keys: KeyKind, least_lines: usize, least_queries: usize) {
    let probe = builder.clone().build().unwrap();
    let filters = least_lines.div_ceil(probe.layout().blocks);
    let queries = least_queries.div_ceil(filters);
    let (mut hits, mut exact, mut lines) = (0, 0.0, 0);
    let mut hashes = Vec::new();
    let mut found = Vec::new();
    let mut filter = probe;
    for i in 0..filters as u64 {
        filter.clear();
        // Other keys for every filter, so that all of them are samples of their own.
        for start in (0..n).step_by(1 << 16) {
            hashes.clear();
            let range = start as u64..n.min(start + (1 << 16)) as u64;
            hashes.extend(range.map(|key| hash(&filter, keys, i * n as u64 + key)));
            filter.insert_batch(Hashed::slice(&hashes));
        }
        for start in (0..queries).step_by(1 << 16) {
            hashes.clear();
            let range = start as u64..queries.min(start + (1 << 16)) as u64;
            hashes.extend(range.map(|key| hash(&filter, keys, STRANGERS + i * queries as u64 + key)));
            found.resize(hashes.len(), false);
            filter.contains_batch(Hashed::slice(&hashes), &mut found);
            hits += found.iter().filter(|&&found| found).count();
        }
        exact += filter.statistics().false_positive_rate;
        lines += filter.layout().blocks;
    }
    let queries = (queries * filters) as f64;
    let (measured, exact) = (hits as f64 / queries, exact / filters as f64);
    let spread = spread(filter.layout().lines_per_key, rate);
    let luck = (rate * spread).powi(2) / lines as f64;
    let sigma = (rate / queries + luck).sqrt();
    let what = format!(
        "{n} {keys:?} keys at {rate:e}, {} lines, {} words: measured {measured:e}, exact {exact:e}",
        filter.layout().lines_per_key,
        filter.layout().words_per_key
    );
    // One hit is always possible.
    assert!(
        measured <= rate + 4.0 * sigma + 1.0 / queries,
        "{what}, sigma {sigma:e}"
    );
    assert!(exact <= rate + 4.0 * luck.sqrt(), "{what}, sigma {:e}", luck.sqrt());
    // The hits of random hashes and the rate of the bits must agree. Otherwise the patterns are not
    // random enough.
    assert!(
        (measured - exact).abs() <= 4.0 * (exact / queries).sqrt() + 1.0 / queries,
        "{what}"
    );
    if filter.layout().blocks >= 1000 {
        let model = filter.false_positive_rate_at(n);
        assert!(
            (measured - model).abs() <= 4.0 * sigma + 1.0 / queries,
            "{what}, model {model:e}, sigma {sigma:e}"
        );
    }
    if std::env::var_os("SHOW_RATES").is_some() {
        println!("{what}, {:.2} of the promise", exact / rate);
    }
}

/// The builder, or `None` where the rate is out of reach with so few words; which the builder must
/// say.
fn builder(n: usize, rate: f64, (lines, words): (usize, usize)) -> Option<Builder> {
    let builder = ConcurrentBloom::builder()
        .expected_keys(n)
        .false_positive_rate(rate)
        .lines_per_key(lines)
        .words_per_key(words);
    match builder.clone().build() {
        Ok(_) => Some(builder),
        Err(error) => {
            assert!(
                error
                    .to_string()
                    .contains("takes more than the limit of 256 bits per key"),
                "{error}"
            );
            assert_eq!((rate, words), (1e-6, 1), "only this rate is out of reach");
            None
        }
    }
}

fn sweep(sizes: &[usize], kinds: &[KeyKind], least_lines: usize, least_queries: usize) {
    for &n in sizes {
        for rate in RATES {
            for layout in LAYOUTS {
                let Some(builder) = builder(n, rate, layout) else {
                    continue;
                };
                for &keys in kinds {
                    measure(&builder, rate, n, keys, least_lines, least_queries);
                }
            }
        }
    }
}

/// How much the tests that run with everything else do; without optimization a key costs a
/// microsecond.
const SMALL: usize = if cfg!(debug_assertions) { 1 } else { 20 };

#[test]
fn the_rate_holds_for_a_handful_of_keys() {
    sweep(&[1, 2, 10, 100], &[KeyKind::Sequential], 100 * SMALL, 1000 * SMALL);
}

#[test]
fn the_rate_holds_for_a_thousand_keys() {
    sweep(&[1000], &[KeyKind::Random, KeyKind::Strings], 300 * SMALL, 3000 * SMALL);
}

#[test]
fn the_rate_holds_for_the_default_words() {
    for rate in RATES {
        let n = 10_000 * SMALL;
        let builder = ConcurrentBloom::builder().expected_keys(n).false_positive_rate(rate);
        measure(&builder, rate, n, KeyKind::Sequential, 1, 20_000 * SMALL);
    }
}

#[test]
#[ignore = "takes minutes; `ci/release.sh full` runs it"]
fn the_rate_holds_for_up_to_a_million_keys_of_any_kind() {
    sweep(&[1, 7, 100, 1000, 10_000], &KEY_KINDS, 20_000, 1_000_000);
    sweep(&[100_000, 1_000_000], &KEY_KINDS, 1, 2_000_000);
}

#[test]
#[ignore = "takes minutes; `ci/release.sh full` runs it"]
fn the_rate_holds_for_ten_million_keys_down_to_one_in_a_million() {
    // At 1e-6 the 20 million queries hit 20 times.
    sweep(&[10_000_000], &[KeyKind::Random], 1, 20_000_000);
}

#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn the_rate_of_two_lines_holds_down_to_one_in_ten_million() {
    // 40 hits.
    for words in [2, 4, 8] {
        let builder = builder(1_000_000, 1e-7, (2, words)).unwrap();
        measure(&builder, 1e-7, 1_000_000, KeyKind::Random, 1, 400_000_000);
    }
}
