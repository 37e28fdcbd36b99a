//! Snapshots of the filters that can delete: golden files both ways, and every absurd word. A
//! filter that was read goes on as the written one.

use super::contract;
use lanebloom::internal::traits::{Encode, Insert, Remove};
use lanebloom::{
    BuildError, CountingBloom, CuckooFilter, DLeftFilter, Filter, Hashed, KeyHasher, Membership, Murmur3, SipHash13,
    TombstoneBloom, codec,
};
use lanebloom_tests::{block, fingerprint_product, hash_of_fingerprint_product, number, with_field};
use std::fmt::Debug;

const HEADER: usize = 128;

/// A filter of some keys of each type.
fn small_counting() -> CountingBloom {
    counting(4, 3, 60)
}

fn small_cuckoo() -> CuckooFilter {
    cuckoo(12, 26, 60)
}

fn small_d_left() -> DLeftFilter {
    d_left(5, 90)
}

/// Random hashes, the first one several times.
fn hashes(keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).chain([0, 0]).map(number)
}

fn counting(words: usize, blocks: usize, keys: u64) -> CountingBloom {
    let builder = CountingBloom::builder().memory_budget(64 * blocks);
    let filter = builder.expected_keys(10 * blocks).words_per_key(words).build().unwrap();
    filter.insert_batch(Hashed::slice(&hashes(keys).collect::<Vec<_>>()));
    filter
}

fn pair(keys: usize, removals: usize) -> TombstoneBloom {
    let builder = TombstoneBloom::builder().expected_keys(keys);
    let filter = builder.expected_removals(removals).build().unwrap();
    let hashes: Vec<u64> = hashes(keys as u64).collect();
    filter.insert_batch(Hashed::slice(&hashes));
    filter.remove_batch(Hashed::slice(&hashes[..removals]));
    filter
}

/// The memory that makes this many words, with the stripes beside them.
fn budget(words: usize) -> usize {
    let stripes = |all: usize| (1 << (all / 256).max(1).ilog2()).min(256);
    8 * (words..).find(|all| all - stripes(*all) == words).unwrap()
}

fn cuckoo(fingerprint_bits: usize, buckets: usize, keys: u64) -> CuckooFilter {
    let builder = CuckooFilter::builder().memory_budget(budget(buckets).max(64));
    let filter = builder
        .fingerprint_bits(fingerprint_bits)
        .expected_keys(1)
        .build()
        .unwrap();
    assert_eq!(filter.slots(), buckets * (64 / fingerprint_bits));
    hashes(keys).for_each(|hash| filter.insert(&Hashed(hash)).unwrap());
    filter
}

fn d_left(buckets: usize, keys: u64) -> DLeftFilter {
    let filter = DLeftFilter::builder()
        .memory_budget(budget(8 * buckets))
        .build()
        .unwrap();
    assert_eq!(filter.slots(), 32 * buckets);
    hashes(keys).for_each(|hash| filter.insert(&Hashed(hash)).unwrap());
    filter
}

/// Reads the bytes as a filter by Murmur3.
fn read<E: Encode>(bytes: &[u8]) -> Result<Filter<E>, String> {
    contract::read(bytes, &Murmur3::default())
}

/// The error of a filter of the same type for other bytes.
fn refused<E: Encode>(_: &Filter<E>, bytes: &[u8]) -> String {
    read::<E>(bytes).map(drop).unwrap_err()
}

/// Written by version 1, from its description, by another program: `data/snapshots_v1.py`.
macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../data/snapshot_v1_", $name, ".bin"))
    };
}

/// The golden file is what the filter is written as after keys came and went, and what is read of
/// it.
fn assert_golden<E: Encode + Insert + Remove, S: KeyHasher + Clone + Debug>(
    golden: &[u8],
    filter: Result<Filter<E, S>, BuildError>,
    keys: usize,
    again: usize,
) -> Filter<E, S> {
    let filter = filter.unwrap();
    let keys: Vec<String> = (0..keys).map(|i| format!("key {i}")).collect();
    filter.try_insert_all(&keys).unwrap();
    assert!(keys.iter().step_by(3).all(|key| filter.take(key)));
    (0..again).for_each(|_| _ = filter.try_insert("key 1").unwrap());
    assert!(filter.snapshot().to_vec() == golden, "{filter:?} is written otherwise");
    let (same, rest) = codec::from_bytes::<Filter<E, S>>(golden, filter.hasher().clone()).unwrap();
    contract::round_trip(&same);
    assert!(rest.is_empty() && same.expected_keys() == filter.expected_keys());
    let found = |key: &&String| same.look_up(*key);
    assert!(keys.iter().enumerate().all(|(i, key)| i % 3 == 0 || found(&key)));
    let gone = keys.iter().step_by(3).filter(found).count();
    assert!(gone <= 2, "{gone} of the removed keys are found");
    same
}

#[test]
fn version_1_is_read_and_written() {
    let secret = SipHash13::with_key(std::array::from_fn(|i| i as u8));

    let counting = CountingBloom::builder()
        .memory_budget(64 * 21)
        .expected_keys(200)
        .seed(7);
    let same = assert_golden(golden!("counting"), counting.build(), 150, 16);
    assert!(same.stuck_counters() > 0);
    assert_eq!(
        CountingBloom::from_bytes(golden!("counting"))
            .unwrap()
            .0
            .hasher()
            .seed(),
        7
    );
    let one = CountingBloom::builder()
        .memory_budget(64 * 9)
        .expected_keys(60)
        .words_per_key(1);
    assert_golden(golden!("counting_one"), one.hasher(secret).build(), 60, 1);

    let cuckoo = |budget, bits, keys| {
        let builder = CuckooFilter::builder().memory_budget(budget);
        builder.fingerprint_bits(bits).expected_keys(keys)
    };
    let ten = || cuckoo(168, 10, 80).build();
    let twelve = || cuckoo(216, 12, 100).seed(u32::MAX).build();
    let sixteen = || cuckoo(248, 16, 90).hasher(secret).build();
    let long = || cuckoo(328, 21, 80).seed(9).build();
    let same = assert_golden(golden!("cuckoo_10"), ten(), 60, 2);
    assert_eq!((same.len(), same.count("key 1"), same.fingerprint_bits()), (42, 3, 10));
    assert_golden(golden!("cuckoo_12"), twelve(), 54, 2);
    assert_golden(golden!("cuckoo_16"), sixteen(), 48, 2);
    assert_golden(golden!("cuckoo_21"), long(), 36, 2);

    let d_left = || DLeftFilter::builder().memory_budget(328).expected_keys(120);
    let same = assert_golden(golden!("dleft"), d_left().seed(5).build(), 100, 2);
    assert_eq!((same.len(), same.count("key 1")), (68, 3));
    assert_golden(golden!("dleft_siphash"), d_left().hasher(secret).build(), 100, 2);
}

#[test]
fn a_pair_of_version_1_is_read_and_written() {
    let builder = TombstoneBloom::builder().expected_keys(200).expected_removals(50);
    let filter = builder.seed(3).build().unwrap();
    let key = |i| format!("key {i}");
    for i in 0..200 {
        filter.insert(&key(i));
        if i % 5 == 0 {
            filter.remove(&key(i));
        }
    }
    let golden = golden!("tombstone");
    assert!(filter.snapshot().to_vec() == golden);
    let same = TombstoneBloom::from_bytes(golden).unwrap().0;
    assert!(same == filter && same.hasher().seed() == 3);
    assert!(TombstoneBloom::read_from(&golden[..], 1 << 20).unwrap() == filter);
    assert_eq!((same.expected_keys(), same.expected_removals()), (200, 50));
    let found: Vec<_> = (0..200).filter(|i| same.contains(&key(*i))).collect();
    assert!(found.len() >= 159 && found.iter().all(|i| i % 5 != 0));
}

/// Every shape of bits is one of counters, and every word is of counters: all of them at 15 too.
#[test]
fn counters_of_any_shape_and_value_are_read() {
    let bytes = small_counting().snapshot().to_vec();
    for (words, bits) in [(1, 1), (2, 1), (4, 1), (8, 2)]
        .into_iter()
        .flat_map(|(words, step)| (step..=8).step_by(step.into()).map(move |bits| (words, bits)))
    {
        let filter: CountingBloom = read(&with_field(&bytes, 33, &[words, bits])).unwrap();
        assert_eq!(
            (filter.layout().words_per_key, filter.layout().bits_per_line),
            (words.into(), bits.into())
        );
        assert!(filter.insert(&Hashed(number(1 << 50))) | filter.contains(&Hashed(number(1 << 50))));
        assert!((0.0..=1.0).contains(&filter.false_positive_rate_at(100)));
    }
    let filter: CountingBloom = read(&with_field(&bytes, HEADER, &[0xff; 192])).unwrap();
    assert_eq!((filter.stuck_counters(), filter.statistics().fill_ratio), (384, 1.0));
    let hashes: Vec<u64> = (0..100).map(number).collect();
    for hash in hashes {
        assert!(!filter.insert(&Hashed(hash)) && filter.remove(&Hashed(hash)) && filter.contains(&Hashed(hash)));
    }
    assert!(filter.snapshot().to_vec()[HEADER..HEADER + 192] == [0xff; 192]);
}

#[test]
fn the_parts_of_a_pair_have_their_places_and_its_secret() {
    let filter = pair(100, 30);
    let bytes = filter.snapshot().to_vec();
    let second = HEADER + u64::from_le_bytes(bytes[HEADER + 24..HEADER + 32].try_into().unwrap()) as usize;
    // The other way round they are a pair, but not this one.
    let swapped = [&bytes[..HEADER], &bytes[second..], &bytes[HEADER..second]].concat();
    let swapped: TombstoneBloom = read(&swapped).unwrap();
    assert!(swapped != filter && swapped.expected_keys() == 30 && swapped.snapshot().to_vec().len() == bytes.len());
    // Parts by a secret that is not the pair's.
    let build = |key| {
        let builder = TombstoneBloom::builder().expected_keys(10);
        let filter = builder.hasher(SipHash13::with_key([key; 16])).build().unwrap();
        filter.snapshot().to_vec()
    };
    let (one, other) = (build(1), build(2));
    let mixed = [&one[..HEADER], &other[HEADER..]].concat();
    let error = codec::from_bytes::<TombstoneBloom<_>>(&mixed, SipHash13::with_key([1; 16])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the hasher differs: SipHash-1-3 in both, with different keys"
    );
    assert!(codec::from_bytes::<TombstoneBloom<_>>(&one, SipHash13::with_key([1; 16])).is_ok());
}

/// Bits that belong to no slot would be taken for something. In four fingerprints of 16 bits there
/// are none.
#[test]
fn every_bit_of_no_slot_is_an_error() {
    for (bits, top) in [(10, 4), (12, 4), (16, 0), (21, 1)] {
        let bytes = cuckoo(bits, 26, 60).snapshot().to_vec();
        for bucket in [0, 1, 7, 25] {
            for bit in 64 - top..64 {
                let at = HEADER + 8 * bucket;
                let word = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) | 1 << bit;
                assert_eq!(
                    refused(&small_cuckoo(), &with_field(&bytes, at, &word.to_le_bytes())),
                    format!("word {bucket} of the body has the unused bits {:#x} set", 1u64 << bit)
                );
            }
        }
        // All slots may hold all fingerprints.
        let full = u64::MAX >> top;
        let words: Vec<u8> = std::iter::repeat_n(full.to_le_bytes(), 26).flatten().collect();
        let mut filter: CuckooFilter = read(&with_field(&bytes, HEADER, &words)).unwrap();
        assert_eq!((filter.len(), filter.statistics().fill_ratio), (filter.slots(), 1.0));
        assert!(filter.insert(&Hashed(1)).unwrap_err().is_full());
        let hash = hash_of_fingerprint_product(u64::MAX);
        assert!(filter.contains(&Hashed(hash)) && filter.remove(&Hashed(hash)) && filter.insert(&Hashed(hash)).is_ok());
        filter.clear();
        assert!(filter.is_empty());
    }
}

/// An empty slot with a remainder would corrupt the next one that is made there.
#[test]
fn an_empty_cell_with_a_remainder_is_an_error() {
    let bytes = d_left(5, 0).snapshot().to_vec();
    for (slot, bit) in [0, 1, 2, 3, 17, 159]
        .into_iter()
        .flat_map(|slot| (0..14).map(move |bit| (slot, bit)))
    {
        let hostile = with_field(&bytes, HEADER + 2 * slot, &(1u16 << bit).to_le_bytes());
        // The test's filter has one key, whose slot it may be.
        let result: Result<DLeftFilter, String> = read(&hostile);
        let text = match result {
            Err(text) => text,
            Ok(filter) => panic!("{filter:?}"),
        };
        let bits = 1u64 << (16 * (slot % 4) + bit);
        let expected = format!("word {} of the body has the unused bits {bits:#x} set", slot / 4);
        assert_eq!(text, expected);
    }
}

/// If a key had two slots, one would stay when the key is removed. The answer of a lookup would
/// depend on which slot it looks at first.
#[test]
fn two_cells_of_a_key_are_an_error() {
    // One bucket in each subtable: a key is its remainder, and all 32 slots are its own.
    for (first, second) in [(0, 1), (0, 7), (0, 8), (3, 31), (15, 16), (8, 24), (30, 31)] {
        for (remainder, counts) in [(0, [1, 1]), (0x3fff, [3, 2]), (4711, [1, 3])] {
            let mut bytes = DLeftFilter::builder()
                .memory_budget(72)
                .build()
                .unwrap()
                .snapshot()
                .to_vec();
            for (slot, count) in [first, second].into_iter().zip(counts) {
                let value: u16 = count << 14 | remainder;
                bytes = with_field(&bytes, HEADER + 2 * slot, &value.to_le_bytes());
            }
            assert_eq!(
                refused(&small_d_left(), &bytes),
                format!("the key of bucket 0 with remainder {remainder:#x} has 2 slots, more than the limit of 1")
            );
            // With another remainder it is another key.
            let other: u16 = 1 << 14 | (remainder ^ 1);
            let filter: DLeftFilter = read(&with_field(&bytes, HEADER + 2 * second, &other.to_le_bytes())).unwrap();
            let count = |remainder: u16| filter.count(&Hashed(hash_of_fingerprint_product(u64::from(remainder) << 50)));
            assert_eq!((count(remainder), count(remainder ^ 1)), (usize::from(counts[0]), 1));
        }
    }
    // In a larger one: the slot of a key that is alone in the filter, put into every other bucket,
    // is the same key's in three of them.
    let buckets = 7;
    let filter = d_left(buckets, 0);
    filter.remove_batch(Hashed::slice(&[number(0); 3]));
    assert!(filter.is_empty());
    let hash = number(77);
    filter.insert(&Hashed(hash)).unwrap();
    let bytes = filter.snapshot().to_vec();
    let slot = ((fingerprint_product(hash) >> 50) as u16 | 1 << 14).to_le_bytes();
    let mut tables = Vec::new();
    let at = (HEADER..bytes.len())
        .step_by(2)
        .find(|at| bytes[*at..*at + 2] == slot)
        .unwrap();
    for bucket in 0..4 * buckets {
        let place = HEADER + 16 * bucket + 14;
        if (place - HEADER) / 16 == (at - HEADER) / 16 {
            continue;
        }
        let twice = with_field(&bytes, place, &slot);
        let result: Result<DLeftFilter, String> = read(&twice);
        match result {
            Ok(same) => assert_eq!((same.len(), same.count(&Hashed(hash))), (2, 1)),
            Err(text) => {
                let first = block(hash, buckets);
                let remainder = fingerprint_product(hash) >> 50;
                assert_eq!(
                    text,
                    format!(
                        "the key of bucket {first} with remainder {remainder:#x} has 2 slots, more than the limit of 1"
                    )
                );
                tables.push(bucket / buckets);
            }
        }
    }
    assert_eq!(tables, [1, 2, 3]);
    // And wherever it is among many: in a free slot of the same bucket once more.
    let bytes = d_left(100, 1000).snapshot().to_vec();
    let mut tried = 0;
    for bucket in (HEADER..HEADER + 6400).step_by(7 * 16) {
        let slots = || (bucket..bucket + 16).step_by(2);
        let is_free = |at: &usize| bytes[*at..at + 2] == [0; 2];
        if let (Some(used), Some(free)) = (slots().find(|at| !is_free(at)), slots().find(is_free)) {
            let text = refused(&small_d_left(), &with_field(&bytes, free, &bytes[used..used + 2]));
            assert!(text.ends_with("has 2 slots, more than the limit of 1"), "{text}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}
