//! Snapshots of `StaticFilter`: a golden file both ways, and every absurd field.

use super::contract;
use lanebloom::codec::{Content, SnapshotHeader};
use lanebloom::{AnyFilter, Murmur3, StaticFilter, StaticView};
use lanebloom_tests::{number, with_field};

fn hashes() -> Vec<u64> {
    (0..100).map(number).collect()
}

fn filter(bits: usize, cells: usize) -> StaticFilter {
    let builder = StaticFilter::builder().fingerprint_bits(bits);
    builder.cells_per_key(cells).build_from_hashes(&hashes()).unwrap()
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
        let bytes = filter.to_bytes();
        assert!(hashes().iter().all(|&hash| looked_up(&bytes, hash)));
        for stranger in (1000..6000).map(number) {
            assert_eq!(looked_up(&bytes, stranger), filter.contains_hash(stranger));
        }
    }
    let hashes: Vec<u64> = (0..1_600_000).map(number).collect();
    let filter = StaticFilter::builder().build_from_hashes(&hashes).unwrap();
    let bytes = filter.to_bytes();
    assert!(hashes[..1000].iter().all(|&hash| looked_up(&bytes, hash)));
}

#[test]
fn golden_bytes_are_written_and_read() {
    let golden = include_bytes!("../data/snapshot_v1_static.bin");
    let filter = filter(11, 3);
    assert!(filter.to_bytes() == golden);
    let (same, _) = StaticFilter::from_bytes(golden).unwrap();
    assert!(hashes().iter().all(|&hash| same.contains_hash(hash)));
    contract::round_trip(&same);
}

#[test]
fn every_absurd_field_is_refused() {
    let bytes = filter(11, 3).to_bytes();
    let refused = |at: usize, field: &[u8], expected: &str| {
        let bytes = with_field(&bytes, at, field);
        let text = contract::read::<lanebloom::fuse::Static, _>(&bytes, &Murmur3::default())
            .map(drop)
            .unwrap_err();
        assert!(text.starts_with(expected), "byte {at}: {text}");
        let view = StaticView::from_bytes(&bytes).map(drop).unwrap_err();
        assert_eq!(view.to_string(), text);
        if at < 128 {
            assert_eq!(SnapshotHeader::peek(&bytes).unwrap_err().to_string(), text);
        }
    };
    refused(32, &[2], "unsupported layout version 2");
    refused(33, &[6], "the number of bits of a fingerprint, 6, is not in 7 to 32");
    refused(33, &[33], "the number of bits of a fingerprint, 33, is not in 7 to 32");
    refused(34, &[2], "the number of cells per key, 2, is not in 3 to 4");
    refused(34, &[5], "the number of cells per key, 5, is not in 3 to 4");
    refused(
        35,
        &[2],
        "the logarithm of the cells of a segment, 2, is not in 3 to 16",
    );
    refused(
        35,
        &[17],
        "the logarithm of the cells of a segment, 17, is not in 3 to 16",
    );
    refused(36, &[1], "byte 36 is 1, where");
    refused(40, &[0; 8], "the number of segments, 0, is not in 1 to 16777216");
    refused(
        40,
        &[0xff; 8],
        "the number of segments, 18446744073709551615, is not in",
    );
    refused(40, &(1u64 << 20).to_le_bytes(), "the number of cells of a shard, ");
    refused(40, &(1u64 << 10).to_le_bytes(), "the header declares a length of ");
    refused(
        48,
        &[0xff; 8],
        "the number of keys, 18446744073709551615, is not in 0 to ",
    );
    refused(56, &[0; 8], "the number of shards, 0, is not in 1 to 4294967295");
    refused(56, &[0xff; 8], "the number of shards, 18446744073709551615, is not in");
    refused(56, &[0xff, 0xff, 0xff, 0xff], "the header declares a length of ");
    refused(56, &[2], "the header declares a length of ");
    refused(64, &[1], "byte 64 is 1, where");
    // The body.
    refused(128, &[64], "the seed of a shard, 64, is not in 0 to 63");
    refused(129, &[1], "byte 129 is 1, where");
}

#[test]
fn the_header_describes_it() {
    let filter = filter(11, 3);
    let bytes = filter.to_bytes();
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
    assert!((100.0 / filter.fill_ratio() - cells as f64).abs() < 1e-6);
}

#[test]
fn any_filter_looks_up_and_takes_nothing() {
    let (any, _) = AnyFilter::from_bytes(&filter(16, 3).to_bytes()).unwrap();
    assert!(hashes().iter().all(|&hash| any.contains_hash(hash)) && !any.contains_hash(number(1 << 40)));
    let refused = "a StaticFilter takes no inserts: build it anew from all keys";
    assert_eq!(any.insert_hash(1).unwrap_err().to_string(), refused);
    assert_eq!(any.insert_hashes(&[1, 2]).unwrap_err().to_string(), refused);
    assert_eq!(any.insert_hashes(&[]), Ok(0));
    assert!(any.union_from(&any.try_clone().unwrap()).is_err());
}
