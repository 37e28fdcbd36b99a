//! Numbers that stand for the hashes of keys, for measurements: always the same ones.

use lanebloom::{ConcurrentBloom, FastHash, Hashed, KeyHasher};
use std::array;
use std::ops::Range;

/// The i-th of a sequence of numbers without a pattern.
pub(crate) fn hash_at(i: u64) -> u64 {
    FastHash::with_seed(0).hash_key(&i)
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
        filter.exclusive().insert_batch(Hashed::slice(&hashes));
    }
}
