//! Batches of a [`GuavaBloom`]: what is Guava's of them. `java/batch.rs` has the rest.

use super::layout::{WideIndexes, narrow_indexes};
use super::{GuavaBloom, Hash, Strategy};
use crate::java::chunks;
use crate::{CHUNK, unpack_into};
use alloc::vec::Vec;
use core::convert::Infallible;
use lanebloom::Funnel;
use lanebloom::internal::{Length, assert_bitmap_length, assert_same_length, for_each_absent, try_gathered};

crate::java::batch::batches!(GuavaBloom, Funnel);

impl GuavaBloom {
    /// Writes the [`hash`](Self::hash) of each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let mut hashes = [(0, 0); 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [Hash]) {
        assert_same_length(keys.len(), out.len());
        for (hash, key) in out.iter_mut().zip(keys) {
            *hash = self.hash(key);
        }
    }

    /// Looks hashes up, of which the first is number `start` of the batch. Calls `each(start, len,
    /// bitmap)` for every window of up to 64.
    // Not generic, so that a program has the loops once.
    fn look_up(&self, start: usize, hashes: &[Hash], each: &mut dyn FnMut(usize, usize, u64)) {
        let each = |at, len, found| each(start + at, len, found);
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.contains_each(hashes, |hash| WideIndexes::new(*hash), each),
            Strategy::Mitz32 => self.flat.contains_each(hashes, |hash| narrow_indexes(*hash), each),
        }
    }

    /// Inserts hashes, of which the first is number `start` of the batch; returns how many changed
    /// the filter. Calls `each(start, len, bitmap)` for every window of up to 64, with the bitmap
    /// of those.
    fn insert_chunk(&self, start: usize, hashes: &[Hash], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
        let mut new = 0;
        let each = |at, len, changed: u64| {
            new += changed.count_ones() as usize;
            each(start + at, len, changed);
        };
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.insert_each(hashes, |hash| WideIndexes::new(*hash), each),
            Strategy::Mitz32 => self.flat.insert_each(hashes, |hash| narrow_indexes(*hash), each),
        }
        new
    }
}
