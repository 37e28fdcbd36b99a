//! Batches of a [`GuavaBloom`]: `flat.rs` takes the places of many keys' bits, and answers in
//! bitmaps.

use super::layout::Places;
use super::{GuavaBloom, Hash, Strategy};
use crate::batch::{CHUNK, assert_bitmap_length, assert_same_length, for_each_absent, gathered, unpack_into};
use alloc::vec::Vec;
use core::convert::Infallible;
use lanebloom::Funnel;

/// Lookups of many keys.
impl GuavaBloom {
    /// Writes whether each key may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.look_up(keys.len(), |i| self.hash(&keys[i]), unpack_into(out));
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
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
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[Hash], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.look_up(hashes.len(), |i| hashes[i], unpack_into(out));
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Bits after the last key become 0.
    ///
    /// # Panics
    ///
    /// If `out` has not `keys.len().div_ceil(64)` words.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.look_up_into(keys.len(), |i| self.hash(&keys[i]), out);
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
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// let hashes = ["b", "a"].map(|key| filter.hash(key));
    /// filter.contains_hashes_bitmap(&hashes, &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[Hash], out: &mut [u64]) {
        self.look_up_into(hashes.len(), |i| hashes[i], out);
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.look_for_absent(keys.len(), |i| self.hash(&keys[i]), each);
    }

    /// [`for_each_absent`](Self::for_each_absent) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.for_each_absent_hash(&hashes, |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[Hash], each: impl FnMut(usize)) {
        self.look_for_absent(hashes.len(), |i| hashes[i], each);
    }

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

    fn look_up_into(&self, len: usize, hash: impl Fn(usize) -> Hash, out: &mut [u64]) {
        assert_bitmap_length(len, out.len());
        out.fill(0);
        self.look_up(len, hash, |at, _, found| out[at / 64] |= found << (at % 64));
    }

    fn look_for_absent(&self, len: usize, hash: impl Fn(usize) -> Hash, mut each: impl FnMut(usize)) {
        self.look_up(len, hash, |at, len, found| {
            for_each_absent(&[found], len, |i| each(at + i));
        });
    }

    /// Looks `len` hashes up. Calls `each(start, len, bitmap)` for every window of up to 64.
    fn look_up(&self, len: usize, hash: impl Fn(usize) -> Hash, each: impl FnMut(usize, usize, u64)) {
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.contains_each(len, |i| Places::<true>::new(hash(i)), each),
            Strategy::Mitz32 => self.flat.contains_each(len, |i| Places::<false>::new(hash(i)), each),
        }
    }
}

/// Inserts of many keys.
impl GuavaBloom {
    /// Inserts every key; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.insert_each(keys.len(), |i| self.hash(&keys[i]), |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_hashes(&["a", "b", "a"].map(|key| filter.hash(key))), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[Hash]) -> usize {
        self.insert_each(hashes.len(), |i| hashes[i], |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also writes each insert's answer to the same place
    /// of `new`. The first of several equal keys gets `true`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> usize {
        assert_same_length(keys.len(), new.len());
        self.insert_each(keys.len(), |i| self.hash(&keys[i]), unpack_into(new))
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
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[Hash], new: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), new.len());
        self.insert_each(hashes.len(), |i| hashes[i], unpack_into(new))
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
    pub fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        let mut new = 0;
        let hashes = keys.into_iter().map(|key| self.hash(&key));
        let Ok(()) = gathered::<CHUNK, _, Infallible>(hashes, |hashes| {
            new += self.insert_hashes(hashes);
            Ok(())
        });
        new
    }

    /// Inserts `len` hashes; returns how many changed the filter. Calls `each(start, len, bitmap)`
    /// for every window of up to 64, with the bitmap of those.
    fn insert_each(&self, len: usize, hash: impl Fn(usize) -> Hash, mut each: impl FnMut(usize, usize, u64)) -> usize {
        let mut new = 0;
        let each = |at, len, changed: u64| {
            new += changed.count_ones() as usize;
            each(at, len, changed);
        };
        match self.layout.strategy {
            Strategy::Mitz64 => self.flat.insert_each(len, |i| Places::<true>::new(hash(i)), each),
            Strategy::Mitz32 => self.flat.insert_each(len, |i| Places::<false>::new(hash(i)), each),
        }
        new
    }
}

/// [`insert_all`](GuavaBloom::insert_all). For `&GuavaBloom` too.
///
/// ```
/// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
impl<K: Funnel> Extend<K> for GuavaBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

impl<K: Funnel> Extend<K> for &GuavaBloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}
