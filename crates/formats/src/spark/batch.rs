//! Batches of a [`SparkBloom`]: what is Spark's of them. `java/batch.rs` has the rest.

use super::SparkBloom;
use super::hash::{Hash, SparkKey, hash_of};
use super::layout::{LongIndexes, Version};
use crate::java::chunks;
use crate::java::indexes::IntIndexes;
use crate::{CHUNK, unpack_into};
use alloc::vec::Vec;
use core::convert::Infallible;
use lanebloom::internal::{
    Length, Vectorized, assert_bitmap_length, assert_same_length, for_each_absent, try_gathered, vectorized,
};

/// The hashes of keys, for vectors: those of integers fill them.
struct Hashes<'a, K> {
    keys: &'a [K],
    seed: i32,
    out: &'a mut [Hash],
}

impl<K: SparkKey> Vectorized for Hashes<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (place, key) in self.out.iter_mut().zip(self.keys) {
            *place = hash_of(key, self.seed);
        }
    }
}

crate::java::batch::batches!(SparkBloom, SparkKey);

impl SparkBloom {
    /// Writes the [`hash`](Self::hash) of each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// let mut hashes = [(0, 0); 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: SparkKey>(&self, keys: &[K], out: &mut [Hash]) {
        let seed = self.layout.seed;
        assert_same_length(keys.len(), out.len());
        vectorized(Hashes { keys, seed, out });
    }

    /// Looks hashes up, of which the first is number `start` of the batch. Calls `each(start, len,
    /// bitmap)` for every window of up to 64.
    // Not generic, so that a program has the loops once.
    fn look_up(&self, start: usize, hashes: &[Hash], each: &mut dyn FnMut(usize, usize, u64)) {
        let each = |at, len, found| each(start + at, len, found);
        match self.layout.version {
            Version::V2 => self.flat.contains_each(hashes, |hash| LongIndexes::new(*hash), each),
            Version::V1 => self.flat.contains_each(hashes, |hash| IntIndexes::new(*hash), each),
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
        match self.layout.version {
            Version::V2 => self.flat.insert_each(hashes, |hash| LongIndexes::new(*hash), each),
            Version::V1 => self.flat.insert_each(hashes, |hash| IntIndexes::new(*hash), each),
        }
        new
    }
}

/// Operations without atomics, for exclusive access.
impl SparkBloom {
    /// [`insert_batch`](Self::insert_batch) without atomics, for exclusive access.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch_mut(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_mut<K: SparkKey>(&mut self, keys: &[K]) -> usize {
        let mut new = 0;
        let seed = self.layout.seed;
        let hash = |keys: &[K], out: &mut [Hash]| vectorized(Hashes { keys, seed, out });
        chunks::hashed(keys, hash, |_, hashes| new += self.insert_hashes_mut(hashes));
        new
    }

    /// [`insert_batch_mut`](Self::insert_batch_mut) by hash.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes_mut(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_mut(&mut self, hashes: &[Hash]) -> usize {
        let mut new = 0;
        let each = |_, _, changed: u64| new += changed.count_ones() as usize;
        match self.layout.version {
            Version::V1 => self.flat.insert_each_mut(hashes, |hash| IntIndexes::new(*hash), each),
            Version::V2 => self.flat.insert_each_mut(hashes, |hash| LongIndexes::new(*hash), each),
        }
        new
    }
}
