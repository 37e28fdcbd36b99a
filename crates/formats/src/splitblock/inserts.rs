//! Inserts of many keys into a [`SplitBlockBloom`]: keys are hashed by chunks, and `kernel.rs`
//! works on the hashes.

use super::SplitBlockBloom;
use super::engine::SplitBlock;
use crate::{CHUNK, chunks, unpack_into};
use core::convert::Infallible;
use lanebloom::internal::{
    AccessPlan, acquire, as_chunks_mut, assert_same_length, engine, engine_mut, is_cached, try_gathered,
};
use lanebloom::{Funnel, KeyHasher};

/// Inserts of many keys.
impl SplitBlockBloom {
    /// Inserts keys; returns how many changed the filter.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&[1_i64, 2, 1]), 2);
    /// assert!(filter.contains(&2_i64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        let mut new = 0;
        self.hash_chunks(keys, |_, hashes| new += self.insert_hashes(hashes));
        new
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_hashes(&[7, 8, 7]), 2);
    /// assert!(filter.contains_hash(8));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> usize {
        self.insert_each(hashes, &mut |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also writes whether each key changed the filter to
    /// the same place of `new`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "b", "a"], &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> usize {
        assert_same_length(keys.len(), new.len());
        let mut count = 0;
        self.hash_chunks(keys, |start, hashes| {
            count += self.insert_hashes_flagged(hashes, &mut new[start..][..hashes.len()]);
        });
        count
    }

    /// [`insert_batch_flagged`](Self::insert_batch_flagged) by hash.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 2];
    /// assert_eq!(filter.insert_hashes_flagged(&[7, 7], &mut new), 1);
    /// assert_eq!(new, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), new.len());
        self.insert_each(hashes, &mut unpack_into(new))
    }

    /// [`insert_batch`](Self::insert_batch) of what an iterator gives.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_all(["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        let mut new = 0;
        let hashes = keys.into_iter().map(|key| self.hash(&key));
        let Ok(()) = try_gathered::<CHUNK, _, Infallible>(hashes, |hashes| {
            new += self.insert_hashes(hashes);
            Ok(())
        });
        new
    }

    /// [`insert_batch`](Self::insert_batch) without atomics, for exclusive access.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch_mut(&[1_i64, 2, 1]), 2);
    /// assert!(filter.contains(&2_i64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_mut<K: Funnel>(&mut self, keys: &[K]) -> usize {
        let mut new = 0;
        let hasher = *self.hasher();
        let hash = |keys: &[K], out: &mut [u64]| hasher.hash_batch(keys, out);
        chunks::hashed::<CHUNK, _, _>(keys, hash, |_, hashes| new += self.insert_hashes_mut(hashes));
        new
    }

    /// [`insert_hashes`](Self::insert_hashes) without atomics, for exclusive access.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_hashes_mut(&[7, 8, 7]), 2);
    /// assert!(filter.contains_hash(8));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_mut(&mut self, hashes: &[u64]) -> usize {
        let access = AccessPlan::changes(is_cached(self.memory_bytes()), 1);
        let SplitBlock { content, level } = engine_mut(&mut self.0);
        match content.bits.words_mut() {
            Some(words) => {
                let blocks = &mut as_chunks_mut(words).0[..content.blocks.get()];
                level.insert_all_mut(blocks, access, hashes)
            }
            None => self.insert_hashes(hashes),
        }
    }

    fn insert_each(&self, hashes: &[u64], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
        let (engine, mut new) = (engine(&self.0), 0);
        let access = AccessPlan::changes(is_cached(self.memory_bytes()), 1);
        engine
            .level
            .insert_each(engine.blocks(), access, hashes, &mut |at, len, changed| {
                new += changed.count_ones() as usize;
                each(at, len, changed);
            });
        acquire();
        new
    }

    fn hash_chunks<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize, &[u64])) {
        chunks::hashed::<CHUNK, _, _>(keys, |keys, out| self.hash_batch(keys, out), each);
    }
}

#[cfg(test)]
mod tests {
    use crate::{SplitBlockBloom, SplitBlockView};

    /// A batch without hashes has no tile, and no word of a bitmap.
    #[test]
    fn no_hashes_have_no_answers() {
        let filter = SplitBlockBloom::with_bytes(32).unwrap();
        filter.contains_hashes_bitmap(&[], &mut []);
        filter.contains_hashes(&[], &mut []);
        filter.for_each_absent_hash(&[], |i| panic!("{i}"));
        SplitBlockView::new(&[0xff; 32])
            .unwrap()
            .contains_hashes_bitmap(&[], &mut []);
        assert_eq!(filter.insert_hashes(&[]), 0);
    }
}
