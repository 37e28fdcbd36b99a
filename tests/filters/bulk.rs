//! Batches that are dense in the filter are inserted in bulk. Every way of insertion gives the same
//! bits and the same answers.

use lanebloom::internal::instruction_sets;
use lanebloom::{ConcurrentBloom, Hashed, Key, Murmur3};
use lanebloom_tests::{LAYOUTS, hash_of_place, number, plain, together};
use proptest::prelude::*;
#[cfg(feature = "rayon")]
use std::collections::HashSet;

fn filter(lines: usize, words_per_key: usize, rate: f64) -> ConcurrentBloom {
    filter_of(1, lines, words_per_key, rate)
}

fn filter_of(lines_per_key: usize, lines: usize, words_per_key: usize, rate: f64) -> ConcurrentBloom {
    ConcurrentBloom::builder()
        .memory_budget(64 * lines)
        .lines_per_key(lines_per_key)
        .words_per_key(words_per_key)
        .false_positive_rate(rate)
        .build()
        .unwrap()
}

fn hashes(from: u64, len: usize) -> Vec<u64> {
    (from..).map(number).take(len).collect()
}

/// The answers of the inserts, one after another in plain code, and the filter.
fn by_one<K: Key<Murmur3>>(empty: &ConcurrentBloom, keys: &[K]) -> (Vec<bool>, ConcurrentBloom) {
    let filter = plain(empty.clone());
    (keys.iter().map(|key| filter.insert(key)).collect(), filter)
}

#[cfg(feature = "rayon")]
fn ones(filter: &ConcurrentBloom) -> usize {
    (filter.statistics().fill_ratio * 8.0 * filter.memory_bytes() as f64).round() as usize
}

/// Every way to insert keys or hashes into `empty`, `chunk` at a time: the same answers as by one,
/// and the same filter.
fn agree<K: Key<Murmur3> + Sync>(empty: &ConcurrentBloom, keys: &[K], chunk: usize) {
    let (answers, expected) = by_one(empty, keys);
    let count = answers.iter().filter(|&&changed| changed).count();
    let (shared, mut own, flagged, mut own_flagged) = (empty.clone(), empty.clone(), empty.clone(), empty.clone());
    let mut flags = vec![false; keys.len()];
    let mut own_flags: Vec<bool> = answers.iter().map(|answer| !answer).collect();
    let mut counts = [0; 4];
    for (i, keys) in keys.chunks(chunk).enumerate() {
        let places = i * chunk..i * chunk + keys.len();
        counts[0] += shared.insert_batch(keys);
        counts[1] += own.exclusive().insert_batch(keys);
        counts[2] += flagged.insert_batch_into(keys, &mut flags[places.clone()]);
        counts[3] += own_flagged.exclusive().insert_batch_into(keys, &mut own_flags[places]);
    }
    assert_eq!(counts, [count; 4], "{empty:?}, {} keys by {chunk}", keys.len());
    assert!(
        flags == answers && own_flags == answers,
        "{empty:?}, {} keys by {chunk}",
        keys.len()
    );
    assert!(
        [shared, own, flagged, own_flagged]
            .iter()
            .all(|filter| *filter == expected)
    );
    #[cfg(feature = "rayon")]
    {
        let parallel = empty.clone();
        // (How many are new depends on their order, where bits of some hide others'; and of threads
        // with the same hash several may be told that it is.)
        let changed: usize = keys
            .chunks(chunk)
            .map(|keys| parallel.parallel().insert_batch(keys))
            .sum();
        let slack = count / 20 + 16;
        let lines = keys
            .iter()
            .map(|key| lanebloom_tests::block(key.hash_by(empty.hasher()), empty.layout().blocks));
        let few = lines.collect::<HashSet<_>>().len() <= 64;
        let most = if !few && empty.layout().lines_per_key == 1 {
            count + slack
        } else {
            // If threads race for a few lines, or with two lines per key for all of them, each word
            // may go to another thread. But a thread that is told of a change has set a bit.
            ones(&expected) - ones(empty)
        };
        assert!(
            (count.saturating_sub(slack)..=most.max(count)).contains(&changed),
            "{changed}, {count}"
        );
        assert!(parallel == expected);
    }
}

#[test]
fn one_region() {
    for isa in instruction_sets() {
        for (words, rate) in [(1, 0.1), (2, 0.01), (4, 1e-3), (8, 1e-4)] {
            for lines in [1, 2, 100, 500] {
                for per_line in [5, 6, 7, 60] {
                    agree(
                        &filter(lines, words, rate).with_isa(isa),
                        Hashed::slice(&hashes(0, per_line * lines + 3)),
                        usize::MAX,
                    );
                }
            }
        }
    }
}

/// More than 1 MiB, so that they are sorted; the last region is not whole. Other hashes are in
/// already.
#[test]
fn many_regions() {
    let lines = 5 * 4096 + 1;
    for isa in instruction_sets() {
        for (words, rate) in [(1, 0.1), (2, 0.01), (8, 1e-4)] {
            let filter = filter(lines, words, rate).with_isa(isa);
            filter.insert_batch(Hashed::slice(&hashes(1 << 40, 10_000)));
            agree(&filter, Hashed::slice(&hashes(0, 7 * lines)), usize::MAX);
        }
    }
}

/// More hashes than the buckets hold: full ones are inserted and used again.
#[test]
fn buckets_are_used_again() {
    let lines = 4 * 4096 + 77;
    agree(
        &filter(lines, 2, 0.01),
        Hashed::slice(&hashes(0, 30 * lines)),
        usize::MAX,
    );
}

/// Many times the keys that it is for, so that several threads take them in several turns.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without optimization")]
fn many_regions_in_several_turns() {
    let lines = 4 * 4096 + 77;
    let empty = filter(lines, 1, 0.5);
    let hashes = hashes(0, (8 << 20) + 100_000);
    let (answers, expected) = by_one(&empty, Hashed::slice(&hashes));
    let count = answers.into_iter().filter(|&changed| changed).count();
    let mut own = empty.clone();
    assert_eq!(empty.insert_batch(Hashed::slice(&hashes)), count);
    assert_eq!(own.exclusive().insert_batch(Hashed::slice(&hashes)), count);
    assert!(empty == expected && own == expected);
    #[cfg(feature = "rayon")]
    {
        let parallel = filter(lines, 1, 0.5);
        parallel.parallel().insert_batch(Hashed::slice(&hashes));
        assert!(parallel == expected);
    }
}

/// Nothing of the sort may rest on hashes being evenly distributed.
#[test]
fn many_hashes_for_one_region() {
    let lines = 5 * 4096 + 1;
    let empty = filter(lines, 2, 0.01);
    for high in [0, 1 << 62, u64::MAX << 44] {
        let hashes: Vec<u64> = (0..7 * lines as u64)
            .map(|i| hash_of_place(high | number(i) >> 20))
            .collect();
        agree(&empty, Hashed::slice(&hashes), usize::MAX);
        agree(
            &empty,
            &vec![Hashed(hash_of_place(high | 12_345)); 6 * lines],
            usize::MAX,
        );
    }
}

#[test]
fn keys_as_their_hashes() {
    for lines in [500, 4 * 4096 + 9] {
        let keys: Vec<u64> = (0..8 * lines as u64).collect();
        let empty = filter(lines, 2, 0.01);
        agree(&empty, &keys, usize::MAX);
        let mut extended = empty.clone();
        extended.extend(&keys);
        assert!(extended == by_one(&empty, &keys).1);
    }
}

/// With two lines per key, in an image of the whole filter, and beyond 1 MiB.
#[test]
fn two_lines_per_key() {
    for isa in instruction_sets() {
        for (words, rate) in [(2, 0.01), (4, 1e-3), (8, 1e-6)] {
            for lines in [2, 100, 500] {
                for per_line in [3, 30] {
                    let empty = filter_of(2, lines, words, rate).with_isa(isa);
                    agree(&empty, Hashed::slice(&hashes(0, per_line * lines + 3)), usize::MAX);
                }
            }
        }
        let filter = filter_of(2, 5 * 4096 + 2, 8, 1e-6).with_isa(isa);
        filter.insert_batch(Hashed::slice(&hashes(1 << 40, 10_000)));
        agree(&filter, Hashed::slice(&hashes(0, 80_000)), usize::MAX);
        // Dense, half of them present, and many of one region.
        let more = [hashes(0, 80_000), hashes(1 << 20, 80_000), vec![12_345; 1000]].concat();
        agree(&filter, Hashed::slice(&more), usize::MAX);
        filter.insert_batch(Hashed::slice(&more));
        assert_eq!(filter.insert_batch(Hashed::slice(&more)), 0);
    }
}

/// At lengths around groups, words of a bitmap and chunks: present and new keys in runs long and
/// short, and keys that are twice in one batch.
#[test]
fn new_and_present_keys_in_runs() {
    const LENGTHS: [usize; 16] = [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 500, 1025, 4095, 4096, 4097];
    let runs = [1, 8, 33, 40, 200];
    for isa in instruction_sets() {
        for (lines_per_key, words) in LAYOUTS {
            // Without prefetching and with it.
            for (lines, lengths) in [(6, &LENGTHS[..]), (40_000, &[500])] {
                let filter = filter_of(lines_per_key, lines, words, 0.02).with_isa(isa);
                let present = hashes(1 << 40, 300);
                filter.insert_batch(Hashed::slice(&present));
                for &len in lengths {
                    let run = |i: usize| {
                        let run = runs[i % runs.len()];
                        match i % 3 {
                            0 => (0..run).map(|j| number(((i + j) % 40) as u64)).collect(),
                            1 => hashes((len * len + 1000 * i) as u64, run),
                            _ => present[..run].to_vec(),
                        }
                    };
                    let mixed: Vec<u64> = (0..len).flat_map(run).take(len).collect();
                    agree(&filter, Hashed::slice(&mixed), usize::MAX);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_layout_any_density_any_chunks(
        lines in 2usize..300,
        (per_key, words) in prop::sample::select(&LAYOUTS[..]),
        per_line in 0usize..80,
        distinct in 1u64..20_000,
        chunk in 1usize..30_000,
        seed in any::<u64>(),
    ) {
        let empty = filter_of(per_key, lines, words, 0.02);
        let hashes: Vec<u64> = (0..(lines * per_line) as u64).map(|i| number(seed ^ (number(i ^ seed) % distinct))).collect();
        agree(&empty, Hashed::slice(&hashes), chunk);
    }
}

/// A filter of one bit a key, so that a key changed it if and only if it set its bit: however many
/// threads insert the same hashes, in bulk and not, the answers add up to the bits that are set.
#[test]
fn of_racing_inserters_exactly_one_wins() {
    for lines in [300, 16_384 + 4096 + 5] {
        let filter = filter(lines, 1, 0.5);
        assert_eq!(filter.layout().bits_per_line, 1);
        let all = hashes(0, 40 * lines);
        let (_, expected) = by_one(&filter, Hashed::slice(&all));
        let insert = |thread: usize| {
            let (mut won, mut flags) = (0, vec![false; all.len()]);
            for hashes in all[thread * all.len() / 8..].chunks(all.len() / 5) {
                won += match thread {
                    0 => hashes.iter().filter(|&&hash| filter.insert(&Hashed(hash))).count(),
                    1 => {
                        let flags = &mut flags[..hashes.len()];
                        let won = filter.insert_batch_into(Hashed::slice(hashes), &mut *flags);
                        assert_eq!(flags.iter().filter(|&&flag| flag).count(), won);
                        won
                    }
                    #[cfg(feature = "rayon")]
                    2 => filter.parallel().insert_batch(Hashed::slice(hashes)),
                    _ => filter.insert_batch(Hashed::slice(hashes)),
                };
            }
            won
        };
        let won: usize = together(4, insert).into_iter().sum();
        assert!(filter == expected);
        assert_eq!(
            won as f64,
            (filter.statistics().fill_ratio * (512 * lines) as f64).round()
        );
    }
}
