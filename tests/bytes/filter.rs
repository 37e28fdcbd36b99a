//! The filter's bits, its builder's errors, and its figures.

use lanebloom::bloom::Builder;
use lanebloom::internal::traits::{Engine, Planned};
use lanebloom::{BuildError, ConcurrentBloom, CountingBloom, Filter, Hashed, Membership, SipHash13, TombstoneBloom};
use lanebloom_tests::{LAYOUTS, RATES, WORDS, assert_prints, number};

fn builder() -> Builder {
    ConcurrentBloom::builder()
}

fn error(builder: Builder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn wrong_requests_are_errors_that_name_value_and_limit() {
    let expect = |builder: Builder, message: &str| assert_eq!(error(builder), message);
    let keys = || builder().expected_keys(1000);
    for rate in [0.0, 1.0, -0.5, 2.0, f64::INFINITY] {
        let message = format!("false-positive rate {rate} is not between 0 and 1, both excluded");
        expect(keys().false_positive_rate(rate), &message);
        expect(builder().memory_budget(1 << 20).false_positive_rate(rate), &message);
    }
    expect(
        keys().false_positive_rate(f64::NAN),
        "false-positive rate NaN is not between 0 and 1, both excluded",
    );
    let unsized_text = "neither expected keys nor a memory budget was given; set one of them";
    expect(builder(), unsized_text);
    let error = TombstoneBloom::builder().expected_removals(1).build().unwrap_err();
    assert_eq!(error.to_string(), unsized_text);
    for words in [0, 3, 5, 16, usize::MAX] {
        expect(
            keys().words_per_key(words),
            &format!("invalid words per key: {words}; choose 1, 2, 4 or 8, or 16 with two lines per key"),
        );
    }
    for lines in [0, 3, usize::MAX] {
        expect(
            keys().lines_per_key(lines),
            &format!("invalid lines per key: {lines}; choose 1 or 2"),
        );
    }
    expect(
        keys().lines_per_key(2).words_per_key(1),
        "1 word per key cannot lie in 2 lines; choose at least 2 words",
    );
    expect(
        keys().lines_per_key(2).memory_budget(127),
        "the memory budget of 127 bytes is less than two blocks of 64 bytes",
    );
    expect(
        keys().lines_per_key(2).false_positive_rate(1e-300),
        "a false-positive rate of 1e-300 with 2 lines per key takes more than the limit of 256 bits per key",
    );
    for bytes in [0, 1, 63] {
        let message = format!("the memory budget of {bytes} bytes is less than one block of 64 bytes");
        expect(builder().memory_budget(bytes), &message);
        expect(keys().memory_budget(bytes), &message);
    }
    expect(
        keys().false_positive_rate(1e-7).words_per_key(1),
        "a false-positive rate of 1e-7 with 1 words per key takes more than the limit of 256 bits per key",
    );
    expect(
        keys().false_positive_rate(1e-300),
        "a false-positive rate of 1e-300 takes more than the limit of 256 bits per key",
    );
    expect(
        keys().false_positive_rate(0.01).memory_budget(1024),
        "the expected keys at this rate need 1408 bytes, more than the memory budget of 1024 bytes",
    );
    expect(
        builder().expected_keys(usize::MAX),
        &format!(
            "a filter for {} keys at a rate of 1e-2 needs more than the addressable memory ({} bytes)",
            usize::MAX,
            isize::MAX
        ),
    );
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_failed_allocation_is_an_error() {
    for bytes in [1 << 58, isize::MAX as usize, usize::MAX] {
        let failed: BuildError = builder().memory_budget(bytes).build().unwrap_err();
        assert!(failed.is_out_of_memory());
        let attempted = failed.to_string();
        assert!(
            attempted.starts_with("the allocation of ") && attempted.ends_with(" bytes failed"),
            "{attempted}"
        );
    }
    // By way of keys too: 2^55 keys at about 10 bits.
    assert!(builder().expected_keys(1 << 55).build().unwrap_err().is_out_of_memory());
}

#[test]
fn no_keys_means_one() {
    let filter = builder().expected_keys(0).build().unwrap();
    assert_eq!((filter.expected_keys(), filter.layout().blocks), (1, 1));
    filter.insert("only");
    assert!(filter.contains("only"));
}

/// Compares the bits per key of each rate, in this many words per key, with the table's.
fn compare<const N: usize>(lines: usize, words: [usize; N], most_error: f64, table: &[(f64, [f64; N])]) {
    for &(rate, row) in table {
        for (words, expected) in words.into_iter().zip(row) {
            let builder = builder().expected_keys(1_000_000).false_positive_rate(rate);
            let filter = builder.lines_per_key(lines).words_per_key(words).build().unwrap();
            let bits_per_key = filter.statistics().bits_per_key;
            let error = bits_per_key / expected - 1.0;
            assert!(
                error.abs() < most_error,
                "{rate} with {words} words: {bits_per_key}, not {expected}"
            );
        }
    }
}

/// Bits per key from an independent implementation of the model in `sizing.rs`, by the distribution
/// of occupied bits instead of inclusion and exclusion (rounded to 4 digits).
#[test]
fn bits_per_key_match_the_occupancy_sums() {
    let one_line = [
        (0.1, [5.034, 4.919, 4.863, 4.880]),
        (0.03, [8.352, 7.825, 7.559, 7.516]),
        (0.01, [12.14, 10.85, 10.22, 9.924]),
        (1e-3, [24.00, 19.01, 16.74, 15.67]),
        (1e-4, [45.78, 31.78, 26.10, 23.52]),
        (1e-5, [91.62, 53.98, 40.59, 34.86]),
    ];
    compare(1, [1, 2, 4, 8], 0.001, &one_line);
    let two_lines = [
        (1e-3, [16.37, 15.39, 14.88]),
        (1e-4, [24.28, 21.70, 20.45]),
        (1e-5, [34.50, 29.13, 26.60]),
        (1e-6, [48.00, 38.02, 33.48]),
    ];
    compare(2, [2, 4, 8], 0.001, &two_lines);
}

/// Compares the bits per key with the first number in a cell of the row of this filter, in a table
/// of a page.
fn assert_page_says(page: &str, cell: usize, filter: &str, bits_per_key: f64, most_error: f64) {
    let rows = page
        .lines()
        .filter_map(|line| line.trim_start_matches("//! ").strip_prefix("| "))
        .map(|row| row.split(" | ").collect::<Vec<_>>());
    let mut cells = rows.filter_map(|row| (row.get(1)?.contains(&format!("`{filter}`"))).then(|| row[cell].to_owned()));
    let cell = cells.next().unwrap_or_else(|| panic!("no row has {filter}"));
    let end = cell
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(cell.len());
    let said: f64 = cell[..end].parse().unwrap_or_else(|_| panic!("{filter}: {cell}"));
    let error = (said - bits_per_key).abs();
    assert!(
        error <= most_error,
        "{filter}: the page says {said}, it takes {bits_per_key}"
    );
}

/// README.md and the crate's page have the bits per key at 1%.
#[test]
fn pages_say_the_bits_per_key() {
    use lanebloom::{CuckooFilter, ScalableBloom, StaticFilter, TombstoneBloom, WindowedBloom};

    let keys = 200_000;
    let hashes: Vec<u64> = (0..2 * keys as u64).map(number).collect();
    let growing = ScalableBloom::builder().expected_keys(10_000).build().unwrap();
    let (mut len, mut sizes) = (10_000, Vec::new());
    growing.insert_batch(Hashed::slice(&hashes[..len])).unwrap();
    while len < hashes.len() {
        sizes.push(8.0 * growing.memory_bytes() as f64 / len as f64);
        let next = hashes.len().min(len + len / 50);
        growing.insert_batch(Hashed::slice(&hashes[len..next])).unwrap();
        len = next;
    }
    fn bits<E: Engine>(filter: &Filter<E>) -> f64 {
        filter.statistics().bits_per_key
    }
    let builder = StaticFilter::builder();
    let fixed = builder.build_from_batch(Hashed::slice(&hashes)).unwrap();
    let common = [
        (
            "ConcurrentBloom",
            bits(&ConcurrentBloom::with_capacity(keys, 0.01).unwrap()),
            0.06,
        ),
        ("ScalableBloom", sizes.iter().sum::<f64>() / sizes.len() as f64, 2.0),
        (
            "WindowedBloom",
            bits(&WindowedBloom::with_capacity(keys, 0.01).unwrap()),
            0.55,
        ),
        (
            "CuckooFilter",
            bits(&CuckooFilter::with_capacity(keys, 0.01).unwrap()),
            0.06,
        ),
        ("StaticFilter", bits(fixed.as_filter()), 0.2),
    ];
    let others = [
        (
            "CountingBloom",
            bits(&CountingBloom::with_capacity(keys, 0.01).unwrap()),
            0.55,
        ),
        (
            "TombstoneBloom",
            bits(&TombstoneBloom::with_capacity(keys, 0.01).unwrap()),
            0.55,
        ),
    ];
    for (filter, bits_per_key, most_error) in common {
        assert_page_says(include_str!("../../README.md"), 2, filter, bits_per_key, most_error);
    }
    for (filter, bits_per_key, most_error) in common.into_iter().chain(others) {
        assert_page_says(include_str!("../../src/lib.rs"), 3, filter, bits_per_key, most_error);
    }
}

#[test]
fn fewest_words_within_the_price_are_chosen() {
    let chosen = [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6].map(|rate| {
        let builder = builder().expected_keys(1000).false_positive_rate(rate);
        let filter = builder.lines_per_key(1).build().unwrap();
        (filter.layout().words_per_key, filter.layout().bits_per_line)
    });
    assert_eq!(chosen, [(1, 3), (2, 5), (2, 6), (4, 8), (8, 8), (8, 8), (8, 8)]);
}

/// Two lines from 1e-5 down, unless lines or words are given, or a filter cannot have them.
#[test]
fn two_lines_are_chosen_where_they_are_worth_it() {
    let at = |rate| builder().expected_keys(1_000_000).false_positive_rate(rate);
    let lines = |builder: Builder| builder.build().unwrap().layout().lines_per_key;
    let chosen = [0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9].map(|rate| {
        let filter = at(rate).build().unwrap();
        (
            filter.layout().lines_per_key,
            filter.layout().words_per_key / filter.layout().lines_per_key,
        )
    });
    assert_eq!(
        chosen,
        [(1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (2, 4), (2, 4), (2, 8), (2, 8)]
    );
    let low = || at(1e-6);
    assert_eq!(lines(low().words_per_key(4)), 1, "words are given");
    assert_eq!(lines(low().lines_per_key(1)), 1, "one line is given");
    assert_eq!(lines(low().expected_keys(1)), 1, "one block is enough");
    let counting = CountingBloom::builder().expected_keys(1000).false_positive_rate(1e-6);
    let lines_of_counters = counting.build().unwrap().layout().lines_per_key;
    assert_eq!(lines_of_counters, 1, "the filter has one line");
    assert_eq!(lines(at(0.1).lines_per_key(2)), 2);
    // An odd number of lines is one too many.
    let odd = builder().memory_budget(64 * 1001).false_positive_rate(1e-6);
    assert_eq!(odd.build().unwrap().layout().blocks, 1000);
}

#[test]
fn a_budget_for_keys_takes_the_shape_of_the_rate_it_reaches() {
    // (At 1e-4 four words of one line take 1.11 times the memory of eight, so eight are chosen.
    // Four take 1.09 times at the rate that they reach in this memory.)
    let one_line = [0.1, 0.05, 0.01, 1e-3, 2e-4, 1e-5, 1e-6].map(|rate| (rate, Some(1)));
    let any = [0.1, 0.01, 1e-3, 1e-5, 1e-6, 1e-7].map(|rate| (rate, None));
    for (rate, lines) in one_line.into_iter().chain(any) {
        let start = || match lines {
            Some(lines) => builder().lines_per_key(lines),
            None => builder(),
        };
        let planned = |builder: Builder| {
            let filter = builder.build().unwrap();
            let shape = (
                filter.layout().lines_per_key,
                filter.layout().words_per_key,
                filter.layout().bits_per_line,
            );
            ((shape, filter.layout().blocks), filter.expected_keys())
        };
        let keys = 1_000_000;
        let (layout, _) = planned(start().expected_keys(keys).false_positive_rate(rate));
        let by_budget = planned(start().expected_keys(keys).memory_budget(layout.1 * 64 + 63));
        assert_eq!(by_budget, (layout, keys));
        let (same, fitting) = planned(start().false_positive_rate(rate).memory_budget(layout.1 * 64));
        assert_eq!(same, layout);
        assert!(fitting >= keys && fitting < keys + keys / 1000);
    }
}

/// Builders of filters with slots take the least memory for the keys: a budget of it is enough, and
/// one of less is not.
#[test]
fn slots_for_keys_are_the_least_that_hold_them() {
    macro_rules! check {
        ($builder:expr, $keys:expr, $most_apart:expr) => {
            let (builder, keys) = ($builder, $keys);
            let planned = |builder: &lanebloom::Builder<_>| builder.clone().build().unwrap();
            let alone = planned(&builder.clone().expected_keys(keys));
            let needed = alone.memory_bytes();
            let both = builder.clone().expected_keys(keys).memory_budget(needed.max(72));
            assert!(
                planned(&both).slots().abs_diff(alone.slots()) <= $most_apart,
                "{keys}"
            );
            let rated = both.false_positive_rate(0.5);
            assert_eq!(planned(&rated).slots(), alone.slots(), "{keys}");
            let of = |bytes| planned(&builder.clone().memory_budget(bytes).false_positive_rate(0.5)).expected_keys();
            assert!(of(needed.max(72) + 16) >= keys, "{keys}");
            if needed > 96 {
                let limit = needed - 16;
                assert!(of(limit) < keys, "{keys}: one bucket less holds them too");
                let error = rated.memory_budget(limit).build().unwrap_err().to_string();
                let text = format!("need {needed} bytes, more than the memory budget of {limit} bytes");
                assert!(error.ends_with(&text), "{keys}: {error}");
            }
        };
    }
    for keys in [1, 2, 10, 25, 26, 100, 999, 1_000_000] {
        for (bits, per_bucket) in [(10, 6), (12, 5), (16, 4), (21, 3)] {
            let builder = lanebloom::CuckooFilter::builder().fingerprint_bits(bits);
            check!(builder, keys, 2 * per_bucket);
        }
        check!(lanebloom::DLeftFilter::builder(), keys, 0);
    }
    // The quotient of keys and load is rounded down to a whole number of buckets.
    for (keys, rate) in [(3072, 0.0003), (12_288, 0.0012)] {
        let builder = lanebloom::DLeftFilter::builder().false_positive_rate(rate);
        let bytes = builder.clone().expected_keys(keys).build().unwrap().memory_bytes();
        assert!(builder.memory_budget(bytes).build().unwrap().expected_keys() >= keys);
    }
}

#[test]
fn a_filter_says_what_it_is() {
    for rate in RATES {
        for (lines, words) in LAYOUTS {
            let Ok(filter) = builder()
                .expected_keys(100_000)
                .false_positive_rate(rate)
                .lines_per_key(lines)
                .words_per_key(words)
                .build()
            else {
                assert_eq!((rate, words), (1e-6, 1), "only this one is out of reach");
                continue;
            };
            assert_eq!(
                (filter.layout().lines_per_key, filter.layout().words_per_key),
                (lines, words)
            );
            assert!(filter.layout().blocks % lines == 0);
            assert_eq!(filter.memory_bytes(), filter.layout().blocks * 64);
            assert_eq!(
                filter.statistics().bits_per_key,
                filter.memory_bytes() as f64 * 8.0 / 100_000.0
            );
            assert!(filter.false_positive_rate_at(100_000) <= rate);
            assert!(filter.false_positive_rate_at(100_000) > rate * 0.99);
            assert!(filter.false_positive_rate_at(101_500) > rate);
            assert_eq!(filter.false_positive_rate_at(0), 0.0);
            assert_eq!(filter.false_positive_rate_at(usize::MAX), 1.0);
            // Every key sets at most this many bits, and the first ones hardly ever fewer.
            filter.insert(&1u32);
            let bits = (filter.statistics().fill_ratio * filter.memory_bytes() as f64 * 8.0).round() as usize;
            assert!(bits <= lines * filter.layout().bits_per_line && bits > lines * filter.layout().bits_per_line / 2);
        }
    }
}

/// The documented relative standard error of `estimated_len`, 0.3 / sqrt(n): no sample is off by
/// more than four of them.
#[test]
fn estimated_len_has_the_documented_error() {
    for words in WORDS {
        let mut relative_squares = 0.0;
        let mut samples = 0.0;
        for seed in 0..20 {
            let filter = builder()
                .expected_keys(5000)
                .words_per_key(words)
                .seed(seed)
                .build()
                .unwrap();
            assert_eq!(filter.statistics().len, 0);
            for (n, range) in [(500, 0..500u32), (2000, 500..2000), (5000, 2000..5000)] {
                range.for_each(|key| {
                    filter.insert(&key);
                });
                let error = filter.statistics().len as f64 / f64::from(n) - 1.0;
                assert!(
                    error.abs() < 4.0 * 0.3 / f64::from(n).sqrt(),
                    "{n} keys: off by {error}"
                );
                relative_squares += error * error * f64::from(n);
                samples += 1.0;
            }
        }
        let standard_error = f64::sqrt(relative_squares / samples);
        assert!(
            (0.1..=0.3).contains(&standard_error),
            "{words} words: {standard_error} / sqrt(n)"
        );
    }
    let full = builder().memory_budget(64).build().unwrap();
    (0..100_000u32).for_each(|key| {
        full.insert(&key);
    });
    assert_eq!(full.statistics().fill_ratio, 1.0);
    assert!(full.statistics().len > 500 && full.statistics().false_positive_rate == 1.0);
}

#[test]
fn union_refuses_what_means_something_else() {
    let filter = builder().expected_keys(1000).build().unwrap();
    let refused = |other: Builder| filter.union_from(&other.build().unwrap()).unwrap_err().to_string();
    assert_eq!(
        refused(builder().expected_keys(2000)),
        "the other filter's layout differs: 43 blocks, 2 words per key, 6 bits per line there, 22 blocks, 2 words per key, \
         6 bits per line here",
    );
    assert!(refused(builder().expected_keys(1000).words_per_key(4)).contains("4 words per key, 6 bits per line there"));
    assert_eq!(
        refused(builder().expected_keys(1000).seed(1)),
        "the other filter's hasher differs: another algorithm, seed or key",
    );
    assert_eq!(filter.statistics().fill_ratio, 0.0);
    // Filters that refuse a union are not equal.
    let build = |seed| builder().expected_keys(1000).seed(seed).build().unwrap();
    assert!(filter == build(0) && filter != build(1));

    let keyed = || {
        builder()
            .expected_keys(1000)
            .hasher(SipHash13::random())
            .build()
            .unwrap()
    };
    assert!(keyed().union_from(&keyed()).is_err());
    let one = keyed();
    let clone = one.clone();
    clone.insert("a");
    assert_eq!(one.union_from(&clone), Ok(true));
    assert!(one.contains("a"));
    assert_eq!(one.union_from(&one), Ok(false));
}

/// The bits of version 2 of the layout: a change here is a change of format. (The same on every
/// platform that runs this.)
#[test]
fn the_bits_are_those_of_layout_version_2() {
    assert_prints(include_str!("../data/bits_v2.txt"), |rate, words| {
        let builder = builder().expected_keys(300).false_positive_rate(rate);
        let filter = builder.words_per_key(words).build().ok()?;
        // Four times too many, so that many absent keys are found.
        filter.insert_batch(&Vec::from_iter(0..1200u64));
        Some(filter)
    });
}

fn refused<E: Planned>(builder: lanebloom::Builder<E>, keys: usize, rate: f64) -> String {
    let builder = builder.expected_keys(keys).false_positive_rate(rate);
    builder.build().map(drop).unwrap_err().to_string()
}

/// Every builder, asked for as much as can be said: an error or a filter, and no number that
/// overflows on the way.
#[test]
fn no_builder_overflows() {
    use lanebloom::{CuckooFilter, DLeftFilter, ScalableBloom, WindowedBloom};

    let most = usize::MAX;
    for keys in [most, most - 1, most / 2 + 1, most / 2, most / 64, most / 100] {
        for rate in [0.9, 0.01, 1e-6] {
            let too_much = |text: String| {
                assert!(
                    ["keys", "bytes", "bits", "rate"].iter().any(|word| text.contains(word)),
                    "{keys}: {text}"
                );
            };
            too_much(refused(builder(), keys, rate));
            too_much(refused(CountingBloom::builder(), keys, rate));
            too_much(refused(CuckooFilter::builder(), keys, rate));
            too_much(refused(DLeftFilter::builder(), keys, rate));
            too_much(refused(TombstoneBloom::builder(), keys, rate));
            too_much(refused(ScalableBloom::builder(), keys, rate));
            for generations in [2, 3, 64] {
                let builder = WindowedBloom::builder().generations(generations);
                too_much(refused(builder.clone(), keys, rate));
                too_much(refused(builder.rotate_when_full(), keys, rate));
            }
            // Layers, slots and budgets that are beyond all use.
            let layers = ScalableBloom::builder().false_positive_rate(rate).max_layers(most);
            let error = layers.clone().expected_keys(1000).expansion(most).build().unwrap_err();
            assert!(error.to_string().contains("expansion"), "{error}");
            let layers = layers.expansion(4096);
            assert!(layers.expected_keys(1000).max_bytes(keys).build().is_ok());
        }
        for one in [64, 4096] {
            let few = one / 64 * 32_768;
            let fits = builder().expected_keys(few).memory_budget(one).build().unwrap();
            assert_eq!((fits.memory_bytes(), fits.expected_keys()), (one, few));
            for too_many in [few + 1, keys] {
                let bloom = builder().expected_keys(too_many).memory_budget(one).build();
                let counting = CountingBloom::builder()
                    .expected_keys(too_many)
                    .memory_budget(one)
                    .build();
                for error in [bloom.map(drop).unwrap_err(), counting.map(drop).unwrap_err()] {
                    assert!(error.to_string().contains(&too_many.to_string()), "{error}");
                }
            }
            assert!(
                CuckooFilter::builder()
                    .expected_keys(keys)
                    .memory_budget(one)
                    .build()
                    .is_err()
            );
            assert!(
                DLeftFilter::builder()
                    .expected_keys(keys)
                    .memory_budget(one)
                    .build()
                    .is_err()
            );
            let full = WindowedBloom::builder().memory_budget(64 * one).rotate_when_full();
            let error = full.clone().expected_keys(keys).build().unwrap_err();
            assert!(error.to_string().contains("keys"), "{error}");
            let full = full.expected_keys(few).build().unwrap();
            assert!(full.insert("a") && full.contains("a"));
            assert_eq!(full.expected_keys(), few);
        }
    }
}
