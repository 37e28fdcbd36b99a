//! Split-block filters of any bytes, as a Parquet file has them, as Milvus takes them, and without
//! a header: an error, or a filter that writes the same bytes again. A filter, a view and single
//! blocks give the same answers.

#![no_main]

use lanebloom::{Bitmap, Hashed};
use lanebloom_formats::internal::parquet_chunks;
use lanebloom_formats::splitblock::{Header, block_index, check_block, hash};
use lanebloom_formats::{SplitBlockBloom, SplitBlockView};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    parquet(bytes);
    // A footer of any bytes: an error, or chunks.
    let _ = parquet_chunks(bytes, "a.b");
    if let Ok((filter, says)) = SplitBlockBloom::from_mbf1(bytes) {
        assert_eq!(filter.to_mbf1(says).unwrap(), bytes);
        used(filter, &bytes[32..]);
    }
    let (filter, view) = (SplitBlockBloom::from_bitset(bytes), SplitBlockView::new(bytes));
    let whole = !bytes.is_empty() && bytes.len() % 32 == 0;
    assert!(filter.is_ok() == whole && view.is_ok() == whole);
    if let Ok(filter) = filter {
        used(filter, bytes);
    }
});

fn parquet(bytes: &[u8]) {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => {
            let same = SplitBlockBloom::from_parquet_prefix(bytes).unwrap_err();
            assert_eq!(same.to_string(), error.to_string());
            return;
        }
    };
    let (start, len) = (header.header_bytes(), header.bitset_bytes());
    assert_eq!(Header::parse(&bytes[..start]).unwrap(), header);
    assert!(Header::parse(&bytes[..start - 1]).unwrap_err().is_truncated());
    let exact = SplitBlockBloom::from_parquet(bytes);
    match SplitBlockBloom::from_parquet_prefix(bytes) {
        Ok((filter, rest)) => {
            assert_eq!(exact.is_ok(), rest.is_empty());
            // The part of a block that some writers leave at the end.
            assert!(bytes.len() - rest.len() - (start + len) < 32);
            assert_eq!(filter.blocks(), header.blocks());
            let written = filter.to_parquet().unwrap();
            assert!(SplitBlockBloom::from_parquet(&written).unwrap() == filter);
            used(filter, &bytes[start..][..len]);
        }
        Err(error) => assert!(error.is_truncated() && bytes.len() < start + len + 32, "{error}"),
    }
}

/// Looks up and inserts; the filter was read from the bitset.
fn used(filter: SplitBlockBloom, bitset: &[u8]) {
    assert_eq!(filter.to_bitset(), bitset);
    let view = SplitBlockView::new(bitset).unwrap();
    let keys = Vec::from_iter(0..70_u64);
    let hashes: Vec<u64> = keys.iter().map(hash).collect();
    let (mut flags, mut bitmap) = ([false; 70], [0; 2]);
    filter.contains_batch(&keys, &mut flags);
    view.contains_batch(Hashed::slice(&hashes), Bitmap(&mut bitmap));
    for (i, hash) in hashes.iter().enumerate() {
        let block = &bitset[32 * block_index(*hash, view.blocks())..][..32];
        let found = check_block(block.try_into().unwrap(), *hash);
        assert!(filter.contains(&Hashed(*hash)) == found && view.contains(&Hashed(*hash)) == found);
        assert!(flags[i] == found && (bitmap[i / 64] >> (i % 64) & 1 == 1) == found);
    }
    let now = filter.statistics();
    assert!((0.0..=1.0).contains(&now.false_positive_rate) && (0.0..=1.0).contains(&now.fill_ratio));
    assert_eq!(now.false_positive_rate, view.statistics().false_positive_rate);

    let copy = filter.clone();
    let new = hashes.iter().filter(|hash| filter.insert(&Hashed(**hash))).count();
    assert_eq!(copy.insert_batch(&keys), new);
    assert!(copy == filter && !copy.union_from(&filter).unwrap());
    filter.contains_batch(Hashed::slice(&hashes), &mut flags);
    assert!(flags == [true; 70]);
    let _ = (filter.statistics().len, filter.expected_keys(), format!("{filter:?}"));
}
