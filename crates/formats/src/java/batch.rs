//! Batches of a [`JavaBloom`]: `flat.rs` takes the indexes of many keys' bits, and returns bitmaps.

use super::{JavaBloom, JavaFormat, JavaKey};
use crate::{CHUNK, chunks, told};
use core::convert::Infallible;
use lanebloom::Answers;
use lanebloom::internal::{Place, Plan, try_gathered};

/// Keys that are hashed at a time: 8 KiB of hashes of 16 bytes on the stack. (With strings, tiles
/// of 64 keys that are hashed and looked up in turn take 1 ns a key longer.)
const CHUNK_KEYS: usize = 512;

/// Hashes of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Writes the [`hash`](Self::hash) of each key to the same place of `out`.
    ///
    /// ```
    /// use lanebloom_formats::{GuavaBloom, guava::Hash};
    ///
    /// let filter = GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut hashes = [Hash::default(); 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// assert!(filter.contains(&hashes[0]) && !filter.contains(&hashes[1]));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn hash_batch<K: JavaKey<F>>(&self, keys: &[K], out: &mut [F::Hash]) {
        self.layout.format.hash_batch(keys, out);
    }
}

/// Lookups of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] has the places for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_batch<K: JavaKey<F>>(&self, keys: &[K], mut out: impl Answers) {
        match out.place(keys.len()) {
            Place::Flags(out) if Plan::of_keys(keys.len()).is_single() => {
                for (key, found) in keys.iter().zip(out) {
                    *found = self.contains(key);
                }
            }
            place => self.contains_several(keys, place),
        }
    }

    // A call, so that a few keys cost what single calls do.
    #[inline(never)]
    fn contains_several<K: JavaKey<F>>(&self, keys: &[K], place: Place<'_>) {
        told(place, |each| {
            hashed(self.layout.format, keys, |start, hashes| {
                self.look_up(start, hashes, each)
            });
        });
    }
}

/// Hashes the keys; calls `each(start, hashes)` for every chunk.
#[inline]
fn hashed<F: JavaFormat, K: JavaKey<F>>(format: F, keys: &[K], mut each: impl FnMut(usize, &[F::Hash])) {
    match K::hashes(keys) {
        Some(hashes) => each(0, hashes),
        None => chunks::hashed::<CHUNK_KEYS, _, _>(keys, |keys, out| format.hash_batch(keys, out), each),
    }
}

/// Inserts of many keys.
impl<F: JavaFormat> JavaBloom<F> {
    /// Inserts the keys in order; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch<K: JavaKey<F>>(&self, keys: &[K]) -> usize {
        self.insert_batch_into(keys, ())
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter. The first of several equal keys gets `true`. [`Answers`] has the places for `new`.
    ///
    /// # Panics
    ///
    /// If `new` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_into(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: JavaKey<F>>(&self, keys: &[K], new: impl Answers) -> usize {
        let mut changed = 0;
        new.receive(keys.len(), |place| {
            told(place, |each| {
                hashed(self.layout.format, keys, |start, hashes| {
                    changed += self.insert_chunk(start, hashes, each);
                });
            });
        });
        changed
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
            new += self.insert_chunk(0, hashes, &mut |_, _, _| ());
            Ok(())
        });
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
        with_indexes!(self.layout.format, |index| self.flat.contains_each(hashes, index, each));
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
        with_indexes!(self.layout.format, |index| self.flat.insert_each(hashes, index, each));
        new
    }
}

/// A [`JavaBloom`] that no other thread uses; made by [`exclusive`](JavaBloom::exclusive).
#[derive(Debug)]
pub struct JavaExclusive<'a, F: JavaFormat>(pub(super) &'a mut JavaBloom<F>);

/// Inserts without atomics.
impl<F: JavaFormat> JavaExclusive<'_, F> {
    /// [`JavaBloom::insert_batch`] without atomics.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.exclusive().insert_batch(&hashes), 2);
    /// assert_eq!(filter.exclusive().insert_batch(&["b", "c"]), 1);
    /// assert!(filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_batch<K: JavaKey<F>>(&mut self, keys: &[K]) -> usize {
        let mut new = 0;
        let JavaBloom { flat, layout, .. } = &mut *self.0;
        hashed(layout.format, keys, |_, hashes| {
            let each = |_, _, changed: u64| new += changed.count_ones() as usize;
            with_indexes!(layout.format, |index| flat.insert_each_mut(hashes, index, each));
        });
        new
    }
}
