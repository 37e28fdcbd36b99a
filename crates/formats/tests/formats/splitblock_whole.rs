//! Operations on whole split-block filters: folds, sets of keys, and the verdict about the rate.

use lanebloom::Membership;
use lanebloom_formats::splitblock::Xxh64;
use lanebloom_formats::{Hashed, SplitBlockBloom};
use lanebloom_tests::{PLACES, answers_agree, number};

const RATES: [f64; 4] = [0.1, 0.01, 1e-3, 1e-6];

fn numbers(seed: u64, keys: usize) -> Vec<u64> {
    (0..keys as u64).map(|i| number(seed << 32 | i)).collect()
}

fn of<'a>(blocks: usize, keys: impl IntoIterator<Item = &'a u64>) -> SplitBlockBloom {
    let filter = SplitBlockBloom::with_bytes(32 * blocks).unwrap();
    filter.insert_all(keys);
    filter
}

fn full(seed: u64, keys: usize, rate: f64) -> SplitBlockBloom {
    let filter = SplitBlockBloom::with_capacity(keys, rate).unwrap();
    filter.insert_batch(&numbers(seed, keys));
    filter
}

// ---- Inserts ----

/// Without atomics, by keys and by hashes, with answers at every place and without.
#[test]
fn exclusive_inserts_are_single_calls_in_order() {
    for (blocks, len) in [(1, 0), (1, 1), (3, 64), (200, 65), (200, 3000), (40_000, 3000)] {
        // Every key twice: side by side, or far behind.
        let half = numbers(7, len);
        let keys = [&half[..], &half[len / 2..], &half[..len / 2]].concat();
        let [single, mut by_keys, mut by_hashes] = [(); 3].map(|()| of(blocks, []));
        let told: Vec<bool> = keys.iter().map(|key| single.insert(key)).collect();
        let sum = told.iter().filter(|&&new| new).count();
        let hashes: Vec<u64> = keys.iter().map(|key| single.hash(key)).collect();
        assert_eq!(by_keys.exclusive().insert_batch(&keys), sum, "{blocks}, {len}");
        assert_eq!(
            by_hashes.exclusive().insert_batch(Hashed::slice(&hashes)),
            sum,
            "{blocks}, {len}"
        );
        let mut each = [(); PLACES].map(|()| of(blocks, []));
        let sums = answers_agree(&told, len % 8, |place, out| {
            each[place].exclusive().insert_batch_into(&keys, out)
        });
        assert_eq!(sums, [sum; PLACES], "{blocks}, {len}");
        assert!(
            each.iter()
                .chain([&by_keys, &by_hashes])
                .all(|filter| *filter == single)
        );
    }
}

/// For code that works with any filter, its results are those of its own methods.
#[test]
fn it_is_a_membership() {
    fn insert_and_look_up(filter: &impl Membership<Hasher = Xxh64>, keys: &[u64]) -> (usize, Vec<bool>) {
        let new = usize::from(filter.insert(&keys[0]).unwrap()) + filter.insert_batch(keys).unwrap();
        let mut found = Vec::new();
        filter.contains_batch(&[keys, &[1 << 40]].concat(), &mut found);
        assert!(filter.contains(&keys[0]) && !filter.contains(&(1_u64 << 40)));
        (new, found)
    }
    let filter = SplitBlockBloom::with_capacity(1000, 1e-6).unwrap();
    assert_eq!(
        insert_and_look_up(&filter, &[1, 2, 3]),
        (3, vec![true, true, true, false])
    );
    let (now, rate) = (
        Membership::statistics(&filter),
        Membership::false_positive_rate(&filter),
    );
    assert_eq!((now, rate), (filter.statistics(), filter.false_positive_rate()));
    assert_eq!(Membership::memory_bytes(&filter), filter.memory_bytes());
}

// ---- Folds ----

/// With few keys and with far too many; blocks of an odd number end within a line.
#[test]
fn a_folded_filter_is_the_smaller_one_with_the_same_keys() {
    for factor in [1, 2, 3, 8, 30] {
        for (small, keys) in [(1, 4), (2, 150), (7, 300)] {
            let keys = numbers(factor as u64, keys);
            let (mut folded, built) = (of(small * factor, &keys), of(small, &keys));
            folded.exclusive().fold(factor).unwrap();
            assert!(folded == built, "{factor} to {small}");
            assert_eq!((folded.blocks(), folded.memory_bytes()), (small, 32 * small));
            assert_eq!(folded.to_parquet().unwrap(), built.to_parquet().unwrap());
            assert_eq!(found!(folded, &keys), vec![true; keys.len()]);
            // It takes more keys.
            folded.insert_all(numbers(98, 100));
            built.insert_all(numbers(98, 100));
            assert!(folded == built);
        }
    }
}

/// A filter for any number of keys promises the same rate for a part of them.
#[test]
fn a_fold_keeps_the_promised_rate() {
    for rate in RATES {
        let mut filter = SplitBlockBloom::with_capacity(40_000, rate).unwrap();
        let (blocks, keys) = (filter.blocks(), filter.expected_keys());
        let mut filter_of_two_to_the_n = SplitBlockBloom::with_bytes(32 * blocks.next_power_of_two()).unwrap();
        let most = filter_of_two_to_the_n.expected_keys();
        for halved in 1..=3 {
            filter_of_two_to_the_n.exclusive().fold(2).unwrap();
            assert_eq!(filter_of_two_to_the_n.expected_keys(), most >> halved);
            assert!((0.0097..=0.01).contains(&filter_of_two_to_the_n.false_positive_rate()));
        }
        filter.exclusive().fold(blocks).unwrap();
        assert_eq!(filter.expected_keys(), keys / blocks);
        filter.insert_all(numbers(1, keys));
        assert!(filter.statistics().is_overfull);
    }
    let mut one = SplitBlockBloom::with_capacity(0, 0.01).unwrap();
    one.exclusive().fold(1).unwrap();
    assert_eq!(one.expected_keys(), 1);
}

#[test]
fn folds_and_sets_are_those_of_every_filter_of_blocks() {
    // Two blocks to a line of 64 bytes.
    let sized = |lines| of(2 * lines, []).as_filter().try_clone().unwrap();
    lanebloom_tests::a_fold_to_a_rate_goes_as_far_as_the_rate_allows(sized);
    lanebloom_tests::sets_answer_as_lookups_of_all_keys_would(sized);
    lanebloom_tests::sets_answer_as_lookups_of_all_keys_would(|blocks| of(blocks, []).as_filter().try_clone().unwrap());
}

#[test]
fn the_keys_of_a_union_are_counted_without_it() {
    for seed in 0..40 {
        let (a, b) = (of(3, &numbers(seed, 20)), of(3, &numbers(seed / 2, 40)));
        let union = a.clone();
        union.union_from(&b).unwrap();
        let [one, other, either] = [&a, &b, &union].map(|filter| filter.statistics().len);
        let (pair, both) = (a.with(&b).unwrap(), (one + other).saturating_sub(either));
        assert_eq!((pair.union_len(), pair.intersection_len()), (either, both));
    }
}

/// The factors of parquet-rs 60 itself are tested in the package `parquet`.
#[test]
fn a_fold_as_parquets_is_by_a_power_of_two_and_by_the_mean_fill() {
    // The mean share of set bits is 0.0241, 0.323 after a fold by 16, 0.542 after one by 32: to the
    // power of 8, 1.2e-4 and 0.0075.
    let filter = of(1024, &numbers(1, 800));
    for (target, factor) in [(1.1e-4, 8), (1.3e-4, 16), (0.007, 16), (0.008, 32)] {
        let (mut folded, mut same) = (filter.clone(), filter.clone());
        assert_eq!(folded.fold_as_parquet(target), Ok(factor), "{target}");
        same.exclusive().fold(factor).unwrap();
        assert!(folded == same);
        assert!(folded.false_positive_rate() <= target);
        assert!(folded.false_positive_rate_at(folded.expected_keys() + 1) > target);
    }
    for wrong in [0.0, 1.0, -1.0, f64::NAN] {
        let mut same = filter.clone();
        let error = same.fold_as_parquet(wrong).unwrap_err();
        assert!(same == filter && error.to_string().ends_with("is not between 0 and 1, both excluded"));
    }
    // One fold for each time that the number of blocks can be halved.
    assert_eq!(of(12, []).fold_as_parquet(0.01), Ok(4));
    assert_eq!(of(7, []).fold_as_parquet(0.01), Ok(1));
    // Blocks that differ: parquet's estimate goes on where the true rate forbids it.
    let uneven = SplitBlockBloom::from_bitset(&[[0xff; 32], [0; 32]].concat().repeat(2)).unwrap();
    let (mut as_parquet, mut honest) = (uneven.clone(), uneven);
    assert_eq!(as_parquet.fold_as_parquet(0.2), Ok(2));
    assert_eq!(honest.exclusive().fold_to_rate(0.2), Ok(1));
}

// ---- Sets ----

/// Sets are disjoint if any one of a block's eight words has no bit in common, and a subset needs
/// each bit of each word.
#[test]
fn each_word_and_each_bit_of_a_block_decides() {
    // The rate is the product of the words' shares of set bits.
    let words = [1_u32, 3, 7, 0xf, 0xff, 0xffff, 0x00ff_ffff, u32::MAX];
    let block = SplitBlockBloom::from_bitset(&words.map(u32::to_le_bytes).concat()).unwrap();
    let rate: f64 = words.iter().map(|word| f64::from(word.count_ones()) / 32.0).product();
    assert_eq!(block.statistics().false_positive_rate, rate);
    for block in 0..3 {
        for bit in 0..256 {
            let mut bytes = [0xff; 96];
            bytes[32 * block + bit / 32 * 4..][..4].fill(0);
            let gap = SplitBlockBloom::from_bitset(&bytes).unwrap();
            let mut key = [0; 96];
            key[32 * block..][..32].fill(0xff);
            let block_only = SplitBlockBloom::from_bitset(&key).unwrap();
            assert!(block_only.with(&gap).unwrap().is_disjoint());
            bytes[32 * block + bit / 8] |= 1 << (bit % 8);
            let one_bit = SplitBlockBloom::from_bitset(&bytes).unwrap();
            assert!(!block_only.with(&one_bit).unwrap().is_disjoint());
            let mut lacks = [0xff; 96];
            lacks[32 * block + bit / 8] ^= 1 << (bit % 8);
            let lacks = SplitBlockBloom::from_bitset(&lacks).unwrap();
            assert!(!block_only.with(&lacks).unwrap().is_subset());
            assert!(!lacks.with(&block_only).unwrap().is_subset());
        }
    }
}

/// From one key in one block to four times the expected keys, and a filter without a clear bit.
#[test]
fn the_number_of_keys_is_estimated_without_bias() {
    for blocks in [1, 2, 50] {
        assert_eq!(of(blocks, []).statistics().len, 0);
        assert_eq!(of(blocks, &[7]).statistics().len, 1);
    }
    for (blocks, keys) in [(1, 20), (10, 240), (1000, 24_000), (1000, 96_000)] {
        let rounds = 40;
        let estimates = (0..rounds).map(|seed| of(blocks, &numbers(seed, keys)).statistics().len);
        let mean = estimates.sum::<usize>() as f64 / rounds as f64;
        // Five standard errors of the mean; far beyond the expected keys they are larger.
        let error = if keys > 30 * blocks { 1.0 } else { 0.3 };
        let most = 0.5 + 5.0 * error * (keys as f64 / rounds as f64).sqrt();
        assert!(
            (mean - keys as f64).abs() <= most,
            "{keys} keys in {blocks} blocks: {mean}"
        );
    }
    // The keys that leave half a bit unset: 31.5 ln 512 = 196.5, and 319.5 ln 5120 = 2728.7.
    for (bytes, keys) in [(32, 197), (320, 2729)] {
        let full = SplitBlockBloom::from_bitset(&vec![0xff; bytes]).unwrap();
        assert_eq!(
            (full.statistics().len, full.statistics().false_positive_rate),
            (keys, 1.0)
        );
    }
    // At 1%, an intersection has a standard error of at most 0.5 * sqrt(n); here four.
    let (n, common) = (20_000, 10_000);
    let keys = numbers(1, 2 * n - common);
    let filter = |keys| {
        let filter = SplitBlockBloom::with_capacity(n, 0.01).unwrap();
        filter.insert_batch(Hashed::slice(keys));
        filter
    };
    let both = filter(&keys[..n])
        .with(&filter(&keys[n - common..]))
        .unwrap()
        .intersection_len();
    assert!(both.abs_diff(common) as f64 <= 2.0 * (n as f64).sqrt());
}

// ---- The verdict ----

#[test]
fn a_filter_is_overfull_when_its_rate_is_above_the_promise() {
    let filter = full(1, 20_000, 0.01);
    assert!(!filter.statistics().is_overfull);
    filter.insert_all(numbers(2, 1000));
    assert!(filter.statistics().is_overfull);
    // Keys that fall into few blocks raise the rate, though they are few.
    let filter = SplitBlockBloom::with_capacity(10_000, 0.01).unwrap();
    filter.insert_batch(Hashed::slice(
        &numbers(1, 5000).iter().map(|hash| hash >> 5).collect::<Vec<_>>(),
    ));
    assert!(filter.statistics().is_overfull);
    // A filter that was read promises 1%.
    let read = |keys| SplitBlockBloom::from_bitset(&of(1000, &numbers(1, keys)).to_bitset()).unwrap();
    assert!(!read(24_000).statistics().is_overfull && read(26_000).statistics().is_overfull);
}

/// Each zero brings the other one, of its type; other keys bring none.
#[test]
fn a_zero_brings_the_other_one() {
    let zeros: [[&[u8]; 2]; 3] = [
        [&[0, 0], &[0, 0x80]],
        [&0.0_f32.to_le_bytes(), &(-0.0_f32).to_le_bytes()],
        [&0.0_f64.to_le_bytes(), &(-0.0_f64).to_le_bytes()],
    ];
    for (kind, one) in (0..3).flat_map(|kind| [(kind, 0), (kind, 1)]) {
        let filter = SplitBlockBloom::with_capacity(1000, 1e-6).unwrap();
        filter.insert_all(1..100_u32);
        filter.insert(&f64::NAN.to_bits());
        assert!(!filter.insert_both_zeros());
        filter.insert(zeros[kind][one]);
        assert!(filter.insert_both_zeros() && !filter.insert_both_zeros());
        for (other, zeros) in zeros.iter().enumerate() {
            assert_eq!(zeros.map(|zero| filter.contains(zero)), [kind == other; 2]);
        }
    }
}
