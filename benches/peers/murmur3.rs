//! Murmur3 of keys in batches.

use crate::Args;
use crate::contestants::BATCH;
use crate::features::{Library, features};
use lanebloom::{Funnel, KeyHasher, Murmur3};
use lanebloom_benches::{median, number};
use std::fmt::Write as _;
use std::time::Instant;

/// Murmur3 of a batch of keys, by instruction set, beside the crate `fastmurmur3`.
pub(crate) fn hashing(args: &Args) -> String {
    const KEYS: u64 = 1 << 14;
    let strings = |lens: std::ops::RangeInclusive<u64>| -> Vec<String> {
        let letter = |i| char::from(b'a' + (number(i) % 26) as u8);
        let len = |i| lens.start() + number(i) % (lens.end() - lens.start() + 1);
        (0..KEYS)
            .map(|i| (0..len(i)).map(|j| letter(i << 12 | j)).collect())
            .collect()
    };
    let numbers: Vec<u64> = (0..KEYS).map(number).collect();
    let wide: Vec<u128> = (0..KEYS)
        .map(|i| u128::from(number(i)) << 64 | u128::from(number(!i)))
        .collect();
    let bytes: Vec<[u8; 16]> = wide.iter().map(|key| key.to_le_bytes()).collect();
    let small: Vec<u32> = numbers.iter().map(|&key| key as u32).collect();

    let mut table =
        "\n## Murmur3 x64_128 of a batch, ns per key (times faster than fastmurmur3 in the same rounds)\n\n".to_owned();
    table += &features(args, [Library::Lanebloom, Library::Fastmurmur3]);
    table += "| keys";
    for isa in args.levels() {
        write!(table, " | {isa}").unwrap();
    }
    table += " | fastmurmur3 |\n|---|";
    table += &"--:|".repeat(args.levels().count() + 1);
    table.push('\n');
    table += &hashing_row(args, "u32", &small, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "u64", &numbers, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "u128", &wide, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "[u8; 16]", &bytes, |key| fastmurmur3::hash(key));
    for lens in [0..=15, 16..=16, 16..=64, 64..=64, 0..=256, 0..=4096] {
        let name = format!("String of {} to {}", lens.start(), lens.end());
        table += &hashing_row(args, &name, &strings(lens), |key| fastmurmur3::hash(key.as_bytes()));
    }
    table
}

fn hashing_row<K: Funnel>(args: &Args, name: &str, keys: &[K], peer: impl Fn(&K) -> u128) -> String {
    let hasher = Murmur3::default();
    let expected: Vec<u64> = keys.iter().map(|key| hasher.hash_key(key)).collect();
    let mut hashes = vec![0; keys.len()];
    let mut times = vec![Vec::new(); args.levels().count() + 1];
    for _ in 0..args.rounds {
        let (ours, theirs) = times.split_at_mut(args.levels().count());
        for (isa, times) in args.levels().zip(ours) {
            hashes.fill(0);
            let start = Instant::now();
            for (keys, hashes) in keys.chunks(BATCH).zip(hashes.chunks_mut(BATCH)) {
                hasher.hash_batch_by(isa, keys, hashes);
            }
            times.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
            assert!(hashes == expected, "{isa} hashes {name} otherwise");
        }
        let start = Instant::now();
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = peer(key) as u64;
        }
        theirs[0].push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
        assert!(hashes == expected, "fastmurmur3 hashes {name} otherwise");
    }
    let reference = times.last().expect("fastmurmur3's").clone();
    let mut row = format!("| {name}");
    for times in times {
        let ratios = times.iter().zip(&reference).map(|(own, reference)| reference / own);
        write!(row, " | {:.2} ({:.2}x)", median(times.clone()), median(ratios)).unwrap();
    }
    row + " |\n"
}
