//! `StaticFilter`: every key is found, the same keys make the same bytes, and hashes that no seed
//! can place are refused.

use super::numbers;
use lanebloom::internal::instruction_sets;
use lanebloom::{Bitmap, FastHash, Hashed, Prehashed, StaticFilter, StaticView, codec, fuse};
use lanebloom_tests::{STRESS_KEYS, answers_agree, lookups_agree, number};

fn builder(bits: usize, cells: usize) -> fuse::Builder<Prehashed> {
    let builder = StaticFilter::builder().hasher(Prehashed);
    builder.fingerprint_bits(bits).cells_per_key(cells)
}

fn built(bits: usize, cells: usize, hashes: &[u64]) -> StaticFilter<Prehashed> {
    builder(bits, cells).build_from_batch(Hashed::slice(hashes)).unwrap()
}

fn all_found(filter: &StaticFilter<Prehashed>, hashes: &[u64]) {
    let mut found = vec![false; hashes.len()];
    filter.contains_batch(Hashed::slice(hashes), &mut found);
    assert!(found.iter().all(|&found| found));
    let some = hashes.iter().step_by(1 + hashes.len() / 100_000);
    some.for_each(|&hash| assert!(filter.contains(&Hashed(hash))));
}

#[test]
fn every_key_is_found_in_filters_of_every_shape() {
    for (bits, cells) in (7..=32).flat_map(|bits| [(bits, 3), (bits, 4)]) {
        for keys in [0, 1, 2, 3, 7, 64, 65, 300, 2000] {
            let hashes = numbers((bits * 8 + cells) as u64, keys);
            let filter = built(bits, cells, &hashes);
            all_found(&filter, &hashes);
            let shape = (
                filter.fingerprint_bits(),
                filter.cells_per_key(),
                filter.statistics().len,
            );
            assert_eq!(shape, (bits, cells, keys));
            let asked = [&hashes[..], &numbers(1, 200)].concat();
            for isa in instruction_sets() {
                let filter = filter.as_filter().clone().with_isa(isa);
                let asked = Hashed::slice(&asked);
                let expected: Vec<bool> = asked.iter().map(|hash| filter.look_up(hash)).collect();
                answers_agree(&expected, 1, |_, out| filter.look_up_batch(asked, out));
            }
            let strangers = asked[keys..].iter().filter(|&&hash| filter.contains(&Hashed(hash)));
            assert!(
                strangers.count() < if keys == 0 { 1 } else { 12 },
                "{bits} {cells} {keys}"
            );
            assert_eq!(filter.is_empty(), keys == 0);
        }
    }
}

/// Sizes at which whole segments leave little space, and those between.
#[test]
fn builds_of_any_size_rarely_try_again() {
    let crowded = [3546, 3962, 4373, 11_499, 12_348, 13_202, 37_420];
    for (keys, sets) in crowded
        .map(|keys| (keys, 20))
        .into_iter()
        .chain((400..4000).step_by(37).map(|keys| (keys, 3)))
    {
        for cells in [3, 4] {
            let retries = (0..sets).map(|set| {
                let hashes = numbers(1 << 20 | set, keys);
                built(8, cells, &hashes).retries()
            });
            let retries: usize = retries.sum();
            assert!(
                retries <= 2 * sets as usize,
                "{keys} keys, {cells} cells: {retries} retries of {sets} builds"
            );
        }
    }
}

#[test]
fn each_size_up_to_some_hundred_has_a_filter() {
    let mut retries = 0;
    for keys in 0..400 {
        let hashes = numbers(keys as u64, keys);
        for cells in [3, 4] {
            let filter = built(9, cells, &hashes);
            all_found(&filter, &hashes);
            retries += filter.retries();
        }
    }
    assert!(retries < 200, "{retries}");
}

#[test]
fn the_same_keys_make_the_same_bytes() {
    // Three shards.
    let keys = if cfg!(debug_assertions) { 100_000 } else { 3_000_000 };
    let hashes = numbers(2, keys);
    let filter = built(8, 3, &hashes);
    assert_eq!(filter.statistics().len, keys);
    let backwards: Vec<u64> = hashes.iter().rev().copied().collect();
    let copies: Vec<u64> = hashes.iter().chain(&hashes[keys / 2..]).copied().collect();
    // Most of them in one shard.
    let one: Vec<u64> = hashes
        .iter()
        .copied()
        .chain(std::iter::repeat_n(hashes[7], 200_000))
        .collect();
    for others in [&backwards, &copies, &one] {
        let other = built(8, 3, others);
        assert!(other.snapshot().to_vec() == filter.snapshot().to_vec());
        #[cfg(feature = "rayon")]
        {
            let other = builder(8, 3).par_build_from_batch(Hashed::slice(others)).unwrap();
            assert!(other.snapshot().to_vec() == filter.snapshot().to_vec());
        }
    }
}

#[test]
fn shards_are_looked_up_as_one_filter() {
    let keys = 1_700_000;
    // (Each shape has filters of one shard above.)
    for (bits, cells) in [(8, 3), (13, 4)] {
        let hashes = numbers(3, keys);
        let filter = built(bits, cells, &hashes);
        assert!(format!("{filter:?}").contains("shards: 2"));
        if bits == 8 {
            let copies = [&hashes[..], &hashes[keys / 3..]].concat();
            assert!(built(bits, cells, &copies).snapshot().to_vec() == filter.snapshot().to_vec());
        }
        all_found(&filter, &hashes);
        let asked: Vec<u64> = (0..4096)
            .map(|i| if i % 3 == 0 { hashes[i] } else { number(i as u64) })
            .collect();
        let expected: Vec<bool> = asked.iter().map(|&hash| filter.contains(&Hashed(hash))).collect();
        for isa in instruction_sets() {
            let mut found = vec![false; asked.len()];
            let filter = filter.as_filter().clone().with_isa(isa);
            filter.look_up_batch(Hashed::slice(&asked), &mut found);
            assert!(found == expected);
        }
        // Wherever the bytes begin.
        let bytes = [&[0; 3][..], &filter.snapshot().to_vec()].concat();
        let (view, rest) = codec::view::<StaticView<_>>(&bytes[3..], Prehashed).unwrap();
        let mut found = vec![false; asked.len()];
        view.contains_batch(Hashed::slice(&asked), &mut found);
        assert!(found == expected && rest.is_empty());
    }
}

#[test]
fn the_rate_halves_with_every_bit() {
    let keys = STRESS_KEYS / 2;
    let hashes = numbers(4, keys);
    for (bits, cells) in (7..=16).flat_map(|bits| [(bits, 3), (bits, 4)]) {
        let filter = built(bits, cells, &hashes);
        let queries = 2 * STRESS_KEYS;
        let strangers: Vec<u64> = (0..queries as u64).map(|i| number(1 << 50 | i)).collect();
        let mut found = vec![false; queries];
        filter.contains_batch(Hashed::slice(&strangers), &mut found);
        let found = found.iter().filter(|&&found| found).count() as f64;
        let expected = filter.false_positive_rate() * queries as f64;
        let planned = queries as f64 / f64::from(1u32 << bits);
        assert!(expected <= planned && expected > 0.98 * planned);
        assert!(
            (found - expected).abs() < 4.5 * expected.sqrt() + 1.0,
            "{bits} {cells}: {found} {expected}"
        );
    }
}

/// The cells of few keys are not equally full everywhere: those of one segment are more often taken
/// than those of the next one.
#[test]
fn filters_of_few_keys_say_their_rate() {
    const PROBES: u64 = 50 * 4096;
    // Lookups are slow without the optimizer.
    const FILTERS: u64 = if cfg!(debug_assertions) { 20 } else { 400 };
    for (keys, bits, cells) in [1, 5, 40, 500, 3000]
        .into_iter()
        .flat_map(|keys| [(keys, 7, 3), (keys, 8, 4)])
    {
        let (mut found, mut expected) = (0, 0.0);
        for set in 0..FILTERS {
            let hashes = numbers(1 << 30 | set, keys);
            let filter = built(bits, cells, &hashes);
            let rate = filter.false_positive_rate();
            assert_eq!(filter.statistics().false_positive_rate, rate);
            // Cells that hold 1 by chance are counted: the most seen is 1.002 of 2000.
            assert!(
                rate <= 1.01 * 0.5f64.powi(bits as i32),
                "{keys} keys, {bits} bits: {rate}"
            );
            assert!(!filter.statistics().is_overfull, "{keys} keys, {bits} bits: {rate}");
            expected += rate * PROBES as f64;
            found += found_strangers(&filter, 1 << 50 | set << 24, PROBES);
        }
        let deviations = (found as f64 - expected) / expected.sqrt();
        assert!(
            deviations.abs() < 4.5,
            "{keys} keys, {bits} bits, {cells} cells: {found} found, {expected:.0} expected"
        );
    }
}

#[test]
fn a_fuse_filter_takes_nine_bits_at_eight() {
    for (keys, cells, most) in [
        (10_000, 3, 10.5),
        (1_000_000, 3, 9.1),
        (2_000_000, 3, 9.1),
        (1_000_000, 4, 8.7),
    ] {
        let filter = built(8, cells, &numbers(5, keys));
        assert!(
            filter.statistics().bits_per_key <= most,
            "{keys}: {}",
            filter.statistics().bits_per_key
        );
    }
}

#[test]
fn what_no_filter_can_be_is_refused() {
    let text =
        |result: Result<StaticFilter<Prehashed>, lanebloom::BuildError>| result.map(drop).unwrap_err().to_string();
    let hashes = numbers(6, 10);
    let with = |bits, cells| text(builder(bits, cells).build_from_batch(Hashed::slice(&hashes)));
    assert_eq!(with(6, 3), "6 bits of a fingerprint is not in 7 to 32");
    assert_eq!(with(33, 3), "33 bits of a fingerprint is not in 7 to 32");
    assert_eq!(with(8, 2), "2 cells per key is not in 3 to 4");
    assert_eq!(with(8, 5), "5 cells per key is not in 3 to 4");
    let rated = |rate| {
        let builder = StaticFilter::builder().hasher(Prehashed).false_positive_rate(rate);
        builder.build_from_batch(Hashed::slice(&hashes))
    };
    assert_eq!(
        text(rated(0.0)),
        "false-positive rate 0 is not between 0 and 1, both excluded"
    );
    assert!(text(rated(1e-10)).starts_with("a false-positive rate of 1e-10 takes fingerprints of more than 32 bits"));
    assert_eq!(rated(2f64.powi(-32)).unwrap().fingerprint_bits(), 32);
    assert_eq!(rated(0.5).unwrap().fingerprint_bits(), 7);
    let both = builder(8, 3)
        .false_positive_rate(0.1)
        .build_from_batch(Hashed::slice(&hashes));
    assert_eq!(text(both), "both a rate and the bits of a fingerprint are given");

    // Only eight bits differ, and fewer cells are the first of a key than there are keys.
    let few: Vec<u64> = (0..100u64).map(|i| i << 56).collect();
    let refused = "no filter was found with 64 seeds: the hashes are not random, or chosen to collide";
    assert_eq!(text(builder(8, 3).build_from_batch(Hashed::slice(&few))), refused);
    // All in one shard of two.
    let low: Vec<u64> = (0..1_600_000).map(|i| number(i) >> 8).collect();
    let uneven =
        "the hashes are not random: by their upper 32 bits, a shard of the filter has more than 1.05 times its share";
    assert_eq!(text(builder(8, 3).build_from_batch(Hashed::slice(&low))), uneven);
}

#[test]
fn keys_are_hashed_as_by_other_filters() {
    let words: Vec<String> = (0..3000).map(|i| format!("word {i}")).collect();
    let builder = StaticFilter::builder()
        .hasher(FastHash::with_seed(7))
        .false_positive_rate(1e-4);
    let filter = builder.clone().build_from_keys(&words).unwrap();
    lookups_agree(filter.as_filter(), &words, 1);
    assert!(words.iter().all(|word| filter.contains(word)));
    let hashes: Vec<u64> = words.iter().map(|word| filter.hash(word)).collect();
    let same = builder.clone().build_from_batch(Hashed::slice(&hashes)).unwrap();
    assert!(same.snapshot().to_vec() == filter.snapshot().to_vec());
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let same = builder.build_from_par_iter(words.par_iter()).unwrap();
        assert!(same.snapshot().to_vec() == filter.snapshot().to_vec());
    }
}

/// `LANEBLOOM_STATIC_KEYS` is the number of keys; a thousand million need 18 GB.
#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn none_of_many_millions_of_keys_is_missing() {
    let keys = std::env::var("LANEBLOOM_STATIC_KEYS").map_or(30_000_000, |keys| keys.parse().unwrap());
    let hashes: Vec<u64> = (0..keys as u64).map(number).collect();
    #[cfg(feature = "rayon")]
    let filter = builder(8, 3).par_build_from_batch(Hashed::slice(&hashes)).unwrap();
    #[cfg(not(feature = "rayon"))]
    let filter = built(8, 3, &hashes);
    println!("{filter:?}, {:.3} bits per key", filter.statistics().bits_per_key);
    assert!(filter.statistics().bits_per_key < 9.1 && filter.statistics().len == keys);
    let mut found = [false; 4096];
    for hashes in hashes.chunks(4096) {
        let found = &mut found[..hashes.len()];
        filter.contains_batch(Hashed::slice(hashes), &mut *found);
        assert!(found.iter().all(|&found| found));
    }
}

/// `LANEBLOOM_STATIC_PROBES` is the number of lookups, 2^30 if it is not given. With 2^36, a rate
/// of 2^-32 is known to a quarter: 16 are expected.
#[test]
#[ignore = "takes a minute; `ci/release.sh full` runs it"]
fn the_rates_of_long_fingerprints_are_theirs() {
    let probes = std::env::var("LANEBLOOM_STATIC_PROBES").map_or(1 << 30, |probes| probes.parse().unwrap());
    for (bits, cells) in [(20, 3), (24, 3), (24, 4), (28, 3), (32, 3)] {
        // Other keys for each quarter: few are found in one filter, and these depend on its cells.
        let (mut found, mut expected) = (0, 0.0);
        for seed in 0..4 {
            let hashes = numbers(100 + seed, 50_000);
            let filter = built(bits, cells, &hashes);
            expected += probes as f64 / 4.0 * filter.false_positive_rate();
            found += found_strangers(&filter, 1 << (50 + seed), probes / 4);
        }
        println!("{bits} bits, {cells} cells: {found} of {probes} found, {expected:.1} expected");
        assert!((found as f64 - expected).abs() < 5.0 * expected.sqrt() + 1.0);
    }
}

/// How many of so many strangers are found, by two threads.
fn found_strangers(filter: &StaticFilter<Prehashed>, first: u64, probes: u64) -> u64 {
    let count = |range: std::ops::Range<u64>| {
        let (mut asked, mut bitmap, mut found) = ([0; 4096], [0u64; 64], 0);
        for start in range.step_by(4096) {
            (start..).zip(&mut asked).for_each(|(i, hash)| *hash = number(i));
            filter.contains_batch(Hashed::slice(&asked), Bitmap(&mut bitmap));
            found += bitmap.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        found
    };
    let half = probes / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| count(first..first + half));
        count(first + half..first + probes) + other.join().unwrap()
    })
}
