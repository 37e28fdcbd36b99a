//! Snapshots of `StaticFilter`: a golden file both ways, and the places of a hash.

use super::contract;
use lanebloom::codec::{Content, SnapshotHeader};
use lanebloom::{AnyFilter, Hashed, StaticFilter};
use lanebloom_tests::number;

fn hashes() -> Vec<u64> {
    (0..100).map(number).collect()
}

fn filter(bits: usize, cells: usize) -> StaticFilter {
    let builder = StaticFilter::builder().fingerprint_bits(bits);
    builder
        .cells_per_key(cells)
        .build_from_batch(Hashed::slice(&hashes()))
        .unwrap()
}

/// Whether the hash is in the snapshot, by `docs/FORMAT.md` alone.
fn looked_up(bytes: &[u8], hash: u64) -> bool {
    let field = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (bits, cells, log) = (u64::from(bytes[33]), u64::from(bytes[34]), u64::from(bytes[35]));
    let (segments, shards) = (field(40), field(56));
    let shard = ((hash >> 32) * shards) >> 32;
    let seed = u64::from(bytes[128 + shard as usize]);
    let multiplier = 0x9e37_79b9_7f4a_7c15_u64.wrapping_add(seed.wrapping_mul(0x76ce_0bd5_0995_4e76));
    let product = hash.wrapping_mul(multiplier);
    let (high, low) = (product >> 32, (product ^ product >> 32) & 0xffff_ffff);
    let first = (high * (segments << log)) >> 32;
    let body = 128 + shards.next_multiple_of(64);
    let cell = |number: u64| {
        let at = (shard * (segments + cells - 1) * (1 << log) + number) * bits;
        let bit = |i: u64| u64::from(bytes[(body + (at + i) / 8) as usize] >> ((at + i) % 8) & 1) << i;
        (0..bits).map(bit).sum::<u64>()
    };
    let mut found = cell(first);
    for i in 1..cells {
        found ^= cell((first + (i << log)) ^ (low >> (32 / (cells - 1) * (i - 1)) & ((1 << log) - 1)));
    }
    let sum = high + ((low * 0x6a09_e667) >> 32);
    found == (sum & ((1 << bits) - 1)).max(1)
}

#[test]
fn the_format_says_where_a_hash_lies() {
    for (bits, cells) in [(7, 3), (8, 3), (13, 4), (16, 3), (25, 3), (32, 4)] {
        let filter = filter(bits, cells);
        let bytes = filter.snapshot().to_vec();
        assert!(hashes().iter().all(|&hash| looked_up(&bytes, hash)));
        for stranger in (1000..6000).map(number) {
            assert_eq!(looked_up(&bytes, stranger), filter.contains(&Hashed(stranger)));
        }
    }
    let hashes: Vec<u64> = (0..1_600_000).map(number).collect();
    let filter = StaticFilter::builder()
        .build_from_batch(Hashed::slice(&hashes))
        .unwrap();
    let bytes = filter.snapshot().to_vec();
    assert!(hashes[..1000].iter().all(|&hash| looked_up(&bytes, hash)));
}

#[test]
fn golden_bytes_are_written_and_read() {
    let golden = include_bytes!("../data/snapshot_v1_static.bin");
    let filter = filter(11, 3);
    assert!(filter.snapshot().to_vec() == golden);
    let (same, _) = StaticFilter::from_bytes(golden).unwrap();
    assert!(hashes().iter().all(|&hash| same.contains(&Hashed(hash))));
    contract::round_trip(same.as_filter());
}

#[test]
fn the_header_describes_it() {
    let filter = filter(11, 3);
    let bytes = filter.snapshot().to_vec();
    let header = SnapshotHeader::peek(&bytes).unwrap();
    assert_eq!((header.expected_keys, header.bytes), (Some(100), bytes.len() as u64));
    // The header does not say which cells are taken.
    let ratio = header.false_positive_rate.unwrap() / filter.false_positive_rate();
    assert!((0.9..=1.01).contains(&ratio), "{ratio}");
    let Content::Cells {
        fingerprint_bits,
        cells_per_key,
        cells,
        ..
    } = header.content
    else {
        panic!("{header:?}");
    };
    assert_eq!((fingerprint_bits, cells_per_key), (11, 3));
    assert!((100.0 / filter.statistics().fill_ratio - cells as f64).abs() < 1e-6);
}

#[test]
fn any_filter_looks_up_and_takes_nothing() {
    let (any, _) = AnyFilter::from_bytes(&filter(16, 3).snapshot().to_vec()).unwrap();
    assert!(hashes().iter().all(|&hash| any.contains(&Hashed(hash)) == Ok(true)));
    assert_eq!(any.contains(&Hashed(number(1 << 40))), Ok(false));
    let refused = "a StaticFilter takes no inserts: build it anew from all keys";
    assert_eq!(any.insert(&Hashed(1)).unwrap_err().to_string(), refused);
    let mut new = [true; 2];
    let error = any.insert_batch_into(Hashed::slice(&[1, 2]), &mut new).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.inserted(), new),
        (refused, 0, [false; 2])
    );
    assert_eq!(any.insert_batch(Hashed::slice(&[])), Ok(0));
    assert!(any.union_from(&any.try_clone().unwrap()).is_err());
}
