//! Batches of a [`SplitBlockBloom`]: keys are hashed by chunks, and `kernel.rs` works on the
//! hashes.

use super::SplitBlockBloom;
use super::block::{BLOCK_BYTES, Block, block_index};
use super::kernel::Level;
use crate::{CHUNK, unpack_into};
use alloc::vec::Vec;
use core::convert::Infallible;
use lanebloom::Funnel;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{
    AccessPlan, Hint, Length, acquire, as_chunks_mut, assert_bitmap_length, assert_same_length, for_each_absent,
    is_cached, prefetch, try_gathered,
};

/// Lookups of many keys.
impl SplitBlockBloom {
    /// Writes whether each key may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&1_i64);
    /// let mut found = [false; 2];
    /// filter.contains_batch(&[1_i64, 2], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        hashed(self.level, keys, |start, hashes| {
            self.contains_hashes(hashes, &mut out[start..][..hashes.len()])
        });
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn contains_each<K: Funnel>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = alloc::vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }

    /// [`contains_batch`](Self::contains_batch) by hash.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(7);
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&[7, 8], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        contains_hashes(self.level, self.shared(), hashes, out);
        acquire();
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap: bit `i % 64` of word `i / 64`. Bits
    /// after the last key become 0.
    ///
    /// # Panics
    ///
    /// If `out` has not `keys.len().div_ceil(64)` words.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&1_i64);
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&[2_i64, 1], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        hashed(self.level, keys, |start, hashes| {
            self.contains_hashes_bitmap(hashes, &mut out[start / 64..][..hashes.len().div_ceil(64)]);
        });
    }

    /// [`contains_batch_bitmap`](Self::contains_batch_bitmap) by hash.
    ///
    /// # Panics
    ///
    /// If `out` has not `hashes.len().div_ceil(64)` words.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(7);
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&[8, 7], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        look_up(self.level, self.shared(), hashes, &mut |at, _, found| {
            out[at / 64] = found
        });
        acquire();
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        hashed(self.level, keys, |start, hashes| {
            self.for_each_absent_hash(hashes, |i| each(start + i));
        });
    }

    /// [`for_each_absent`](Self::for_each_absent) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(8);
    /// let mut absent = Vec::new();
    /// filter.for_each_absent_hash(&[7, 8, 9], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        look_up(self.level, self.shared(), hashes, &mut |at, len, found| {
            acquire();
            for_each_absent(&[found], len, |i| each(at + i));
        });
    }

    /// Writes the [`hash`](Self::hash) of each key to the same place of `out`. Keys of 4 and 8
    /// bytes are hashed in vectors.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&[1_i64, 2], &mut hashes);
    /// assert_eq!(hashes, [1_i64, 2].map(|key| filter.hash(&key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_same_length(keys.len(), out.len());
        self.level.hash_batch(keys, out);
    }
}

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
        hashed(self.level, keys, |_, hashes| new += self.insert_hashes(hashes));
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
        hashed(self.level, keys, |start, hashes| {
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
        hashed(self.level, keys, |_, hashes| new += self.insert_hashes_mut(hashes));
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
        match self.bits.words_mut() {
            Some(words) => {
                let blocks = &mut as_chunks_mut(words).0[..self.blocks.get()];
                self.level.insert_all_mut(blocks, access, hashes)
            }
            None => self.insert_hashes(hashes),
        }
    }

    fn insert_each(&self, hashes: &[u64], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
        let (blocks, mut new) = (self.shared(), 0);
        let access = AccessPlan::changes(is_cached(blocks.len() * BLOCK_BYTES), 1);
        self.level.insert_each(blocks, access, hashes, &mut |at, len, changed| {
            new += changed.count_ones() as usize;
            each(at, len, changed);
        });
        acquire();
        new
    }
}

/// Smallest batch that takes a pipeline.
const MANY: usize = 32;

/// Writes whether each hash may be in the filter.
pub(super) fn contains_hashes<T: Load>(level: Level, blocks: &[Block<T>], hashes: &[u64], out: &mut [bool]) {
    assert_same_length(hashes.len(), out.len());
    if hashes.len() >= MANY {
        return look_up(level, blocks, hashes, &mut unpack_into(out));
    }
    prefetch_few(blocks, hashes);
    for (hash, found) in hashes.iter().zip(out) {
        *found = level.contains(blocks, *hash);
    }
}

/// Asks for the blocks of fewer hashes than a pipeline is worth.
#[inline(always)]
fn prefetch_few<T: Load>(blocks: &[Block<T>], hashes: &[u64]) {
    if hashes.len() >= Length::Few.least() && !is_cached(blocks.len() * BLOCK_BYTES) {
        for hash in hashes {
            prefetch(&raw const blocks[block_index(*hash, blocks.len())], Hint::L1);
        }
    }
}

/// Calls `each(start, len, bitmap)` for every tile of hashes.
pub(super) fn look_up<T: Load>(
    level: Level,
    blocks: &[Block<T>],
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    if hashes.is_empty() {
        return;
    }
    if hashes.len() < MANY {
        prefetch_few(blocks, hashes);
        let bit = |(i, hash): (usize, &u64)| u64::from(level.contains(blocks, *hash)) << i;
        let found = hashes.iter().enumerate().map(bit).fold(0, |found, bit| found | bit);
        return each(0, hashes.len(), found);
    }
    let access = AccessPlan::lookups(is_cached(blocks.len() * BLOCK_BYTES), 1);
    level.contains_each(blocks, access, hashes, each);
}

/// Hashes keys; calls `each(start, hashes)` for every chunk.
#[inline]
pub(super) fn hashed<K: Funnel>(level: Level, keys: &[K], each: impl FnMut(usize, &[u64])) {
    // To clear the space for a whole chunk takes longer than to work on a few keys.
    match keys.len() {
        0..=8 => hashed_by::<8, _>(level, keys, each),
        9..=64 => hashed_by::<64, _>(level, keys, each),
        _ => hashed_by::<CHUNK, _>(level, keys, each),
    }
}

// A call, so that only large batches have a large stack frame.
#[inline(never)]
fn hashed_by<const N: usize, K: Funnel>(level: Level, keys: &[K], mut each: impl FnMut(usize, &[u64])) {
    let mut hashes = [0; N];
    for (start, keys) in (0..).step_by(N).zip(keys.chunks(N)) {
        let hashes = &mut hashes[..keys.len()];
        level.hash_batch(keys, hashes);
        each(start, hashes);
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
