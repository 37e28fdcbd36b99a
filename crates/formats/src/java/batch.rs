//! Batches of a [`JavaBloom`]: `flat.rs` takes the indexes of many keys' bits, and returns bitmaps.

use super::{JavaBloom, JavaFormat, JavaKey};
use crate::{CHUNK, chunks, unpack_into};
use alloc::vec::Vec;
use core::convert::Infallible;
use lanebloom::internal::{AccessPlan, Plan, assert_bitmap_length, assert_same_length, try_gathered};

/// Keys that are hashed at a time: 8 KiB of hashes of 16 bytes on the stack. (With strings, tiles
/// of 64 keys that are hashed and looked up in turn take 1 ns a key longer.)
const CHUNK_KEYS: usize = 512;

/// Hashes of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Writes the [`hash`](Self::hash) of each key to the same place of `out`.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let mut hashes = [(0, 0); 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: JavaKey<F>>(&self, keys: &[K], out: &mut [F::Hash]) {
        self.layout.format.hash_batch(keys, out);
    }
}

/// Lookups of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Writes whether each key may be in the filter to the same place of `out`.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_batch<K: JavaKey<F>>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        if Plan::of_keys(keys.len()).is_single() {
            for (key, found) in keys.iter().zip(out) {
                *found = self.contains(key);
            }
            return;
        }
        self.contains_several(keys, out);
    }

    // A call, so that a few keys cost what single calls do.
    #[inline(never)]
    fn contains_several<K: JavaKey<F>>(&self, keys: &[K], out: &mut [bool]) {
        let mut unpack = unpack_into(out);
        self.hashed(keys, |start, hashes| self.look_up(start, hashes, &mut unpack));
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn contains_each<K: JavaKey<F>>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = alloc::vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }

    /// [`contains_batch`](Self::contains_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[F::Hash], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        if Plan::of_keys(hashes.len()).is_single() {
            for (hash, found) in hashes.iter().zip(out) {
                *found = self.contains_hash(*hash);
            }
            return;
        }
        self.look_up(0, hashes, &mut unpack_into(out));
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Bits after the last key become 0.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: JavaKey<F>>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        self.hashed(keys, |start, hashes| {
            self.contains_hashes_bitmap(hashes, &mut out[start / 64..][..hashes.len().div_ceil(64)]);
        });
    }

    /// [`contains_batch_bitmap`](Self::contains_batch_bitmap) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [0];
    /// let hashes = ["b", "a"].map(|key| filter.hash(key));
    /// filter.contains_hashes_bitmap(&hashes, &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[F::Hash], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        out.fill(0);
        self.look_up(0, hashes, &mut |at, _, found| out[at / 64] |= found << (at % 64));
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["b"], 0.01)?;
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent<K: JavaKey<F>>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        self.hashed(keys, |start, hashes| {
            self.for_each_absent_hash(hashes, |i| each(start + i));
        });
    }

    /// [`for_each_absent`](Self::for_each_absent) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["b"], 0.01)?;
    /// let mut absent = Vec::new();
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.for_each_absent_hash(&hashes, |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[F::Hash], mut each: impl FnMut(usize)) {
        self.look_up(0, hashes, &mut |at, len, found| {
            AccessPlan::each_one(!found & u64::MAX >> (64 - len), |i| each(at + i));
        });
    }

    /// Hashes the keys; calls `each(start, hashes)` for every chunk.
    #[inline]
    fn hashed<K: JavaKey<F>>(&self, keys: &[K], each: impl FnMut(usize, &[F::Hash])) {
        chunks::hashed::<CHUNK_KEYS, _, _>(keys, |keys, out| self.hash_batch(keys, out), each);
    }
}

/// Inserts of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Inserts every key; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch<K: JavaKey<F>>(&self, keys: &[K]) -> usize {
        self.insert_each(keys, &mut |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[F::Hash]) -> usize {
        self.insert_chunk(0, hashes, &mut |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also writes each insert's answer to the same place
    /// of `new`. The first of several equal keys gets `true`.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: JavaKey<F>>(&self, keys: &[K], new: &mut [bool]) -> usize {
        assert_same_length(keys.len(), new.len());
        self.insert_each(keys, &mut unpack_into(new))
    }

    /// [`insert_batch_flagged`](Self::insert_batch_flagged) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[F::Hash], new: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), new.len());
        self.insert_chunk(0, hashes, &mut unpack_into(new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// [`Extend`] does the same.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    /// use std::sync::Arc;
    ///
    /// let filter = Arc::new(GuavaBloom::with_capacity(1000, 0.01)?);
    /// assert_eq!(filter.insert_all(["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_all<K: JavaKey<F>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        let mut new = 0;
        let hashes = keys.into_iter().map(|key| self.hash(&key));
        let Ok(()) = try_gathered::<CHUNK, _, Infallible>(hashes, |hashes| {
            new += self.insert_hashes(hashes);
            Ok(())
        });
        new
    }

    /// Inserts keys; returns how many changed the filter. Calls `each` as
    /// [`insert_chunk`](Self::insert_chunk).
    fn insert_each<K: JavaKey<F>>(&self, keys: &[K], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
        let mut new = 0;
        self.hashed(keys, |start, hashes| new += self.insert_chunk(start, hashes, each));
        new
    }
}

/// [`insert_all`](JavaBloom::insert_all). For a reference to the filter too.
///
/// ```
/// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10i32);
/// assert!(filter.contains("b") && filter.contains(&9i32));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
impl<F: JavaFormat, K: JavaKey<F>> Extend<K> for JavaBloom<F> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

impl<F: JavaFormat, K: JavaKey<F>> Extend<K> for &JavaBloom<F> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

/// The loops. By references to closures, so that a program has each of them once.
impl<F: JavaFormat> JavaBloom<F> {
    /// Looks up the hashes; the first one is number `start` of the batch. Calls `each(start, len,
    /// bitmap)` for every window of up to 64.
    fn look_up(&self, start: usize, hashes: &[F::Hash], each: &mut dyn FnMut(usize, usize, u64)) {
        let each = |at, len, found| each(start + at, len, found);
        if self.layout.format.is_wide() {
            self.flat.contains_each(hashes, |hash| F::Wide::from(*hash), each);
        } else {
            self.flat.contains_each(hashes, |hash| F::narrow(*hash), each);
        }
    }

    /// Inserts the hashes; the first one is number `start` of the batch. Returns how many changed
    /// the filter. Calls `each(start, len, bitmap)` for every window of up to 64, with the bitmap
    /// of those.
    fn insert_chunk(&self, start: usize, hashes: &[F::Hash], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
        let mut new = 0;
        let each = |at, len, changed: u64| {
            new += changed.count_ones() as usize;
            each(start + at, len, changed);
        };
        if self.layout.format.is_wide() {
            self.flat.insert_each(hashes, |hash| F::Wide::from(*hash), each);
        } else {
            self.flat.insert_each(hashes, |hash| F::narrow(*hash), each);
        }
        new
    }
}

/// Operations without atomics, for exclusive access.
impl<F: JavaFormat> JavaBloom<F> {
    /// [`insert_batch`](Self::insert_batch) without atomics, for exclusive access.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch_mut(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_mut<K: JavaKey<F>>(&mut self, keys: &[K]) -> usize {
        let mut new = 0;
        let format = self.layout.format;
        let hash = |keys: &[K], out: &mut [F::Hash]| format.hash_batch(keys, out);
        chunks::hashed::<CHUNK_KEYS, _, _>(keys, hash, |_, hashes| new += self.insert_hashes_mut(hashes));
        new
    }

    /// [`insert_batch_mut`](Self::insert_batch_mut) by hash.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes_mut(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_mut(&mut self, hashes: &[F::Hash]) -> usize {
        let mut new = 0;
        let each = |_, _, changed: u64| new += changed.count_ones() as usize;
        if self.layout.format.is_wide() {
            self.flat.insert_each_mut(hashes, |hash| F::Wide::from(*hash), each);
        } else {
            self.flat.insert_each_mut(hashes, |hash| F::narrow(*hash), each);
        }
        new
    }
}
