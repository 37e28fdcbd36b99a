//! Filters of a part of the keys: a program divides its keys among filters by bits of their hashes,
//! for shards, threads, nodes or ranges. All hashes of such a filter share bits. It keeps its rate.
//! (`docs/HASHES.md`, "Divided keys", has a table.)

use super::rated;
use lanebloom::bank::FilterBank;
use lanebloom::internal::traits::{Engine, Insert, Planned};
use lanebloom::{
    Builder, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Filter, Hashed, Membership, Prehashed,
    ScalableBloom, TombstoneBloom, WindowedBloom,
};
use lanebloom_tests::number;

/// The i-th hash of a family.
type Family = (String, Box<dyn Fn(u64) -> u64>);

fn family(name: impl Into<String>, hash: impl Fn(u64) -> u64 + 'static) -> Family {
    (name.into(), Box::new(hash))
}

/// Bits that the hashes of a family share.
const SHARED: u64 = 0xb7e1_5162_8aed_2a6b;

/// Hashes that share these bits.
fn sharing(name: String, mask: u64) -> Family {
    family(name, move |i| number(i) & !mask | SHARED & mask)
}

/// Numbers of shared bits to skip: `ci/release.sh` tries them all.
const STEP: usize = if cfg!(debug_assertions) { 2 } else { 1 };

/// Random hashes divided by up to 32 of their bits.
fn divisions() -> Vec<Family> {
    let mut all = vec![];
    for bits in (1..=16).rev().step_by(STEP) {
        let (high, low) = (!(u64::MAX >> bits), (1 << bits) - 1);
        all.push(sharing(format!("the same {bits} high bits"), high));
        all.push(sharing(format!("the same {bits} low bits"), low));
        all.push(sharing(format!("the same {bits} high and low bits"), high | low));
    }
    for from in [8, 16, 24, 32, 40] {
        all.push(sharing(format!("the same 16 bits from bit {from} on"), 0xffff << from));
    }
    for shards in [3, 7, 10, 60, 1000, 65_521] {
        all.push(family(format!("hash % {shards}"), move |i| {
            number(i) % (u64::MAX / shards) * shards + shards / 2
        }));
        // The middle one of as many ranges.
        let range = u64::MAX / shards;
        all.push(family(format!("(hash * {shards}) >> 64"), move |i| {
            range * (shards / 2) + number(i) % range
        }));
        // Both: a node by a range, and a thread by the rest.
        all.push(family(format!("(hash * {shards}) >> 64 and hash % 16"), move |i| {
            (range * (shards / 2) + number(i) % range) & !15 | 5
        }));
    }
    all
}

/// Hashes that share 24 to 32 bits, and integers in place of hashes.
fn unhashed() -> Vec<Family> {
    let mut all = vec![];
    for bits in [24, 28, 32] {
        all.push(sharing(format!("the same {bits} high bits"), !(u64::MAX >> bits)));
        all.push(sharing(format!("the same {bits} low bits"), (1 << bits) - 1));
        all.push(sharing(format!("the same {bits} middle bits"), ((1 << bits) - 1) << 16));
    }
    for shift in (0..=40).step_by(STEP) {
        all.push(family(format!("multiples of 2^{shift}"), move |i| i << shift));
    }
    all.push(family("consecutive integers from a billion on", |i| 1_000_000_000 + i));
    all
}

/// Keys, and strangers of the same family, for a rate. (`ci/release.sh` runs the larger sizes.
/// Without the optimizer, 200,000 strangers took 40 s of a processor, and 50,000 take 18.)
fn sizes(rate: f64) -> (usize, usize) {
    let is_low = rate < 0.005;
    match cfg!(debug_assertions) {
        true => (10_000, if is_low { 50_000 } else { 20_000 }),
        false => (50_000, if is_low { 1_000_000 } else { 100_000 }),
    }
}

/// Whether at the planned number of keys, strangers of each family are found at no more than `most`
/// times the `rate`. `filled` returns a filter of these hashes, as a lookup, and its own rate.
fn check<L: Fn(&[u64]) -> Vec<bool>>(
    what: &str,
    families: &[Family],
    rate: f64,
    most: f64,
    filled: impl Fn(&[u64]) -> (L, f64),
) {
    let (keys, strangers) = sizes(rate);
    for (name, hash) in families {
        let hashes: Vec<u64> = (0..(keys + strangers) as u64).map(hash).collect();
        let (keys, strangers) = hashes.split_at(keys);
        let (lookup, planned) = filled(keys);
        let found = lookup(strangers).iter().filter(|found| **found).count() as f64;
        // Four standard deviations more, for the luck of the draw.
        let expected = most * planned * strangers.len() as f64;
        let share = found / strangers.len() as f64;
        if std::env::var_os("SHOW_RATES").is_some() {
            println!("{what}, {rate:e}, {name}: {:.2}", share / planned);
            continue;
        }
        assert!(
            found <= expected + 4.0 * expected.sqrt() + 4.0,
            "{what}, {name}: {share:.3e} of absent keys are found, {planned:e} was planned"
        );
    }
}

fn lookup<E: Engine, S>(filter: Filter<E, S>) -> impl Fn(&[u64]) -> Vec<bool> {
    move |hashes| {
        let mut found = vec![false; hashes.len()];
        filter.look_up_batch(Hashed::slice(hashes), &mut found);
        found
    }
}

/// Checks a filter type, for the rates that it is planned for.
fn check_type<E: Planned + Insert>(what: &str, families: &[Family], rates: &[f64], most: f64, builder: &Builder<E>) {
    for &rate in rates {
        check(what, families, rate, most, |keys| {
            let filter = rated(builder.clone(), keys.len(), rate);
            filter.try_insert_batch(Hashed::slice(keys)).unwrap();
            let planned = filter.false_positive_rate();
            (lookup(filter), planned)
        });
    }
}

const RATES: [f64; 3] = [0.1, 0.01, 1e-4];

fn check_all(families: &[Family], most: f64, words: &[usize]) {
    check_type("Bloom", families, &RATES, most, &ConcurrentBloom::builder());
    for &words in words {
        let builder = ConcurrentBloom::builder().words_per_key(words);
        check_type(
            &format!("Bloom of {words} words"),
            families,
            &RATES[..2],
            most,
            &builder,
        );
    }
    let two = ConcurrentBloom::builder().lines_per_key(2);
    check_type("Bloom of two lines", families, &RATES, most, &two);
    check_type("Counting", families, &RATES, most, &CountingBloom::builder());
    check_type("Tombstone", families, &RATES, most, &TombstoneBloom::builder());
    for bits in [10, 12, 16] {
        let builder = CuckooFilter::builder().fingerprint_bits(bits);
        check_buckets(&format!("Cuckoo of {bits} bits"), families, most, &builder);
    }
    // Its buckets and remainders are few bits: among 50,000 keys, multiples of 2^36 and 2^40 as
    // hashes had 3.3 and 15 times the rate.
    if most < 2.0 {
        check_buckets("d-left", families, most, &DLeftFilter::builder());
    }
    for rate in RATES {
        // It begins with a twentieth of its keys.
        check("Scalable", families, rate, most, |keys| {
            let builder = ScalableBloom::builder().expected_keys(keys.len() / 20);
            let filter = builder.false_positive_rate(rate).build().unwrap();
            filter.insert_batch(Hashed::slice(keys)).unwrap();
            assert!(filter.layers().len() > 2, "{} layers", filter.layers().len());
            (lookup(filter), rate)
        });
        check("Windowed", families, rate, most, |keys| {
            let builder = WindowedBloom::builder().expected_keys(keys.len());
            let filter = builder.false_positive_rate(rate).build().unwrap();
            for part in keys.chunks(keys.len().div_ceil(3)) {
                filter.insert_batch(Hashed::slice(part));
                filter.rotate();
            }
            (lookup(filter), rate)
        });
        check("a column of a bank", families, rate, most, |keys| {
            let builder = ConcurrentBloom::builder().expected_keys(keys.len());
            let builder = builder.false_positive_rate(rate).hasher(Prehashed);
            let bank = FilterBank::new(64, &builder).unwrap();
            bank.insert_batch(7, Hashed::slice(keys)).unwrap();
            let planned = bank.false_positive_rate();
            let lookup = move |hashes: &[u64]| hashes.iter().map(|&hash| bank.contains(7, &Hashed(hash))).collect();
            (lookup, planned)
        });
    }
}

/// A filter with slots has the rate of its fingerprints.
fn check_buckets<E: Planned + Insert>(what: &str, families: &[Family], most: f64, builder: &Builder<E>) {
    check(what, families, 1e-3, most, |keys| {
        let filter = builder.clone().expected_keys(keys.len()).build().unwrap();
        filter.try_insert_batch(Hashed::slice(keys)).unwrap();
        let planned = filter.false_positive_rate_at(keys.len());
        (lookup(filter), planned)
    });
}

#[test]
fn filters_of_a_part_of_the_keys_have_the_rate() {
    check_all(&divisions(), 1.1, &[1, 2, 4, 8]);
}

/// These are ids that a program takes for hashes, and hashes with few bits that vary. (Eight words
/// of one bit use the second lowest byte of the product, where multiples of 2^36 hardly vary:
/// multiples of 2^38 had 5 times the rate. Only a caller who fixes eight words gets them.)
#[test]
fn poor_hashes_have_at_most_twice_the_rate() {
    check_all(&unhashed(), 2.0, &[1, 2, 4]);
}
