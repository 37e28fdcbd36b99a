//! `SplitBlockBank`: each column is its filter, bit for bit, and answers as it.

use lanebloom::bank::columns;
use lanebloom_formats::{Hashed, SplitBlockBank, SplitBlockBloom};
use lanebloom_tests::number;

/// Filters with these numbers of blocks, each with a key in a few of its words.
fn filters(blocks: &[usize]) -> Vec<SplitBlockBloom> {
    let mut filters = Vec::new();
    for (i, &blocks) in (0..).zip(blocks) {
        let filter = SplitBlockBloom::with_bytes(32 * blocks).unwrap();
        for j in 0..(3 * blocks as u64).min(i + 1) {
            filter.insert(&Hashed(number(1000 * i + j)));
        }
        filters.push(filter);
    }
    filters
}

/// Hashes of which some filter has each, and others.
fn hashes(filters: usize) -> Vec<u64> {
    let known = (0..filters as u64).map(|i| number(1000 * i));
    let others = (0..2000).map(|i| number(!i));
    known.chain([0, u64::MAX, 1 << 32]).chain(others).collect()
}

fn answers_as(bank: &SplitBlockBank, filters: &[SplitBlockBloom]) {
    let hashes = hashes(filters.len());
    let mut batch = Vec::new();
    bank.which_batch(Hashed::slice(&hashes), |i, found| {
        assert_eq!(i, batch.len());
        batch.push(columns(found).collect::<Vec<_>>());
    });
    for (hash, batch) in hashes.iter().zip(batch) {
        let right: Vec<usize> = (0..filters.len())
            .filter(|&i| filters[i].contains(&Hashed(*hash)))
            .collect();
        assert_eq!(batch, right);
        assert!(bank.which(&Hashed(*hash)).eq(right));
    }
}

#[test]
fn each_column_is_its_filter() {
    for blocks in [1, 2, 3, 7, 64] {
        for count in [1, 64, 130] {
            let filters = filters(&vec![blocks; count]);
            let bank = SplitBlockBank::from_filters(&filters).unwrap();
            assert_eq!((bank.len(), bank.blocks()), (count, blocks));
            answers_as(&bank, &filters);
            for (column, filter) in filters.iter().enumerate() {
                let out = bank.to_filter(column).unwrap();
                assert!(out == *filter && out.to_bitset() == filter.to_bitset());
            }
            // One by one, beside lookups.
            let pushed = SplitBlockBank::new(count, blocks).unwrap();
            for (column, filter) in filters.iter().enumerate() {
                assert_eq!(pushed.push(filter), Ok(column));
            }
            answers_as(&pushed, &filters);
            if count % 64 == 0 {
                assert!(pushed.push(&filters[0]).unwrap_err().is_full());
            }
        }
    }
}

/// A smaller filter answers as it did; a larger one as after a fold.
#[test]
fn sizes_that_divide_fit() {
    let all = filters(&[1, 2, 4, 8, 16, 32, 1, 8]);
    let bank = SplitBlockBank::from_filters(&all).unwrap();
    assert_eq!(bank.blocks(), 32);
    answers_as(&bank, &all);

    let mut large = filters(&[12, 24, 3, 6]);
    let mut bank = SplitBlockBank::new(64, 6).unwrap();
    assert_eq!(bank.push_all(&large).unwrap(), [0, 1, 2, 3]);
    large[0].exclusive().fold(2).unwrap();
    large[1].exclusive().fold(4).unwrap();
    answers_as(&bank, &large);
    assert!(bank.to_filter(1).unwrap() == large[1]);
    for blocks in [4, 5, 9] {
        let error = bank.push(&filters(&[blocks])[0]).unwrap_err();
        assert!(error.is_incompatible());
        assert_eq!(
            error.to_string(),
            format!(
                "a filter of {blocks} blocks does not fit a bank of 6: its blocks must divide the bank's, or be a \
                 multiple of them"
            )
        );
    }
    bank.clear(1).unwrap();
    assert!(bank.len() == 3 && bank.to_filter(1).unwrap().is_empty());
    assert_eq!(bank.push(&large[1]), Ok(1));
}

#[test]
fn what_is_no_bank() {
    assert!(SplitBlockBank::new(0, 1).is_err());
    let error = SplitBlockBank::new(64, 0).unwrap_err().to_string();
    assert!(error.starts_with("0 blocks are not in 1 to "), "{error}");
    let none: [SplitBlockBloom; 0] = [];
    assert!(SplitBlockBank::from_filters(&none).is_err());
}
