//! Numbers that stand for the hashes of keys, for measurements: always the same ones.

use lanebloom::ConcurrentBloom;
use std::array;
use std::ops::Range;

/// The i-th of a sequence of distinct, random-looking numbers (SplitMix64's output function).
pub(crate) fn hash_at(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `N` numbers of the sequence: the i-th is at the place `which(i)`.
pub(crate) fn hashes_at<const N: usize>(which: impl Fn(u64) -> u64) -> [u64; N] {
    array::from_fn(|i| hash_at(which(i as u64)))
}

/// The place of a number that is never inserted.
pub(crate) fn absent(i: u64) -> u64 {
    i | 1 << 63
}

/// Inserts a range of the sequence.
pub(crate) fn insert_range(filter: &mut ConcurrentBloom, range: Range<u64>) {
    const CHUNK: u64 = 1 << 16;
    let mut hashes = Vec::with_capacity(CHUNK as usize);
    for start in range.clone().step_by(CHUNK as usize) {
        hashes.clear();
        hashes.extend((start..range.end.min(start + CHUNK)).map(hash_at));
        filter.insert_hashes_mut(&hashes);
    }
}
