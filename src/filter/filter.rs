//! The one filter type: keys in, answers out. It hashes keys, cuts batches into chunks, and passes
//! the hashes to its engine. Everything that all filters share is written and documented here.

use super::engine::{Count, Engine, Insert, InsertFlagged, Outcome, Remove, Total, Union};
use crate::batch::{self, HASHED, Keys, Source, assert_bitmap_length, try_gathered};
use crate::error::{BuildError, IncompatibleError};
use crate::funnel::Funnel;
use crate::hash::{self, KeyHasher, Murmur3, assert_same_length};
use crate::kernel::{FEW, Isa};
use alloc::vec::Vec;
use core::fmt;

/// A membership filter: keys in, "certainly not" or "probably" out.
///
/// This type has the methods that its filters share. You name it by what it does with its keys:
///
/// | type | an insert answers | keys can be removed |
/// |---|---|---|
/// | [`ConcurrentBloom`](crate::ConcurrentBloom) | whether it changed the filter | no |
/// | [`CountingBloom`](crate::CountingBloom) | whether the key was new | yes |
/// | [`TombstoneBloom`](crate::TombstoneBloom) | whether the key was new | yes, for good |
/// | [`ScalableBloom`](crate::ScalableBloom) | whether it changed the filter, or an error if it cannot grow | no |
/// | [`CuckooFilter`](crate::CuckooFilter), [`DLeftFilter`](crate::DLeftFilter) | an error if there is no room | yes |
/// | [`WindowedBloom`](crate::WindowedBloom) | whether the key was not seen within the window | no, but it forgets them |
/// | [`CompactCuckoo`](crate::CompactCuckoo), [`BloomView`](crate::BloomView) | cannot be inserted into | no |
///
/// `E` is the engine of such a type, `S` the hasher. Keys are any [`Funnel`] type. All methods but
/// [`clear`](Self::clear) take `&self`: share a filter as `Arc`. Each type's page says what threads
/// may rely on.
///
/// # Batches
///
/// A batch gives the answers of single calls in order, duplicates within the batch included, many
/// keys at a time. Methods named `_hashes` take hashes of [`hash`](Self::hash) or
/// [`hash_batch`](Self::hash_batch), so that a caller can hash once for several filters.
/// Methods named `_flagged` write the answer for each key to the same place of a slice, methods
/// named `_bitmap` to a bit: bit `i % 64` of word `i / 64`.
///
/// # Memory ordering
///
/// An insert is a `Release`. A lookup that answers `true` ends in an `Acquire`: everything that the
/// inserters of the key had done before is visible. In batches one `Acquire` serves many keys, and
/// comes before their answers.
pub struct Filter<E, S = Murmur3> {
    pub(crate) engine: E,
    pub(crate) hasher: S,
    /// What hashes batches of keys and writes their answers. (The engine has kernels of its own.)
    pub(crate) isa: Isa,
}

impl<E, S> Filter<E, S> {
    /// A filter that works by the best instruction set of this machine.
    pub(crate) fn of(engine: E, hasher: S) -> Self {
        Self {
            engine,
            hasher,
            isa: Isa::best(),
        }
    }
}

impl<E: Engine, S> Filter<E, S> {
    /// For benches and tests of this crate: the same filter by the kernels of `isa`, one of
    /// [`instruction_sets`](crate::instruction_sets).
    #[doc(hidden)]
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.engine.set_isa(isa);
        self.isa = isa;
        self
    }
}

/// Fewer keys than this cost what single calls do. The processor overlaps them by itself.
pub(super) const SEVERAL: usize = 4;

/// Single operations.
impl<E: Engine, S: KeyHasher> Filter<E, S> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before (and that was not removed since).
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert(&17u64).unwrap();
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.engine.contains(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(filter.hash("a")).unwrap();
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }
}

/// A lookup that needs no hasher.
impl<E: Engine, S> Filter<E, S> {
    /// [`contains`](Filter::contains) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15).unwrap();
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.engine.contains(hash)
    }
}

/// Lookups of many keys.
impl<E: Engine, S: KeyHasher> Filter<E, S> {
    /// Writes whether each key may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        if keys.len() < SEVERAL {
            for (key, found) in keys.iter().zip(out) {
                *found = self.contains(key);
            }
            return;
        }
        self.contains_several(keys, out);
    }

    // A call, so that a few keys cost what single calls do.
    #[inline(never)]
    fn contains_several<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        let source = self.keys(keys);
        if keys.len() < FEW {
            return source.each(0..keys.len(), |hashes| self.engine.contains_few(hashes, out));
        }
        self.look_up(&source, batch::unpack_into(self.isa, out));
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
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
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        if let ([hash], [found]) = (hashes, &mut *out) {
            *found = self.engine.contains(*hash);
            return;
        }
        if hashes.len() < FEW {
            return self.engine.contains_few(hashes, out);
        }
        self.contains_many(hashes, out);
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
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        let mut at = 0;
        self.keys(keys).each(0..keys.len(), |hashes| {
            let found = &mut out[at / 64..][..hashes.len().div_ceil(64)];
            self.engine.contains_bitmap(hashes, found);
            at += hashes.len();
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
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [0];
    /// let hashes = ["b", "a"].map(|key| filter.hash(key));
    /// filter.contains_hashes_bitmap(&hashes, &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        match (hashes, &mut *out) {
            // No loop, of which the compiler may make one with a branch for every answer.
            ([a], [found]) => *found = u64::from(self.engine.contains(*a)),
            ([a, b], [found]) => {
                *found = u64::from(self.engine.contains(*a)) | u64::from(self.engine.contains(*b)) << 1;
            }
            (_, [found]) if hashes.len() < FEW => *found = self.engine.contains_few_bitmap(hashes),
            _ => self.engine.contains_bitmap(hashes, out),
        }
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("b").unwrap();
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.look_up(&self.keys(keys), batch::absent(keys.len(), each));
    }

    /// [`for_each_absent`](Self::for_each_absent) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("b").unwrap();
    /// let mut absent = Vec::new();
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.for_each_absent_hash(&hashes, |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.look_up(&hashes, batch::absent(hashes.len(), each));
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch_by(self.isa, keys, out);
    }

    /// [`contains_hashes`](Self::contains_hashes) for many hashes. A call, so that a few stay in
    /// registers.
    #[inline(never)]
    fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
        self.look_up(&hashes, batch::unpack_into(self.isa, out));
    }

    /// Looks up the hashes; calls `each(start, bitmap)` for every chunk.
    fn look_up(&self, source: &impl Source, each: impl FnMut(usize, &[u64])) {
        batch::answers(source, |hashes, found| self.engine.contains_bitmap(hashes, found), each);
    }

    pub(crate) fn keys<'a, K: Funnel>(&'a self, keys: &'a [K]) -> Keys<'a, K, S> {
        Keys {
            hasher: &self.hasher,
            isa: self.isa,
            keys,
        }
    }
}

/// Inserts.
impl<E: Insert, S: KeyHasher> Filter<E, S> {
    /// Inserts `key`. The table of [`Filter`] says what each type answers.
    ///
    /// A `bool` can be `false` for a new key, at the false-positive rate. If several threads race
    /// to insert a new key, **at least** one of them gets `true`, and several may: do not take it
    /// for a claim. (With one [word per key](crate::bloom::Builder::words_per_key) exactly one
    /// thread gets it.)
    ///
    /// An error means that the filter is full, or that the key was inserted [as often as it can
    /// be](Self::max_copies). The filter loses nothing.
    ///
    /// # Memory ordering
    ///
    /// Every change is a `Release`, and `false` ends in an `Acquire`, like a lookup's `true`. In a
    /// `ConcurrentBloom`, a key that is there already costs loads only.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, CuckooFilter};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    ///
    /// let tiny = CuckooFilter::with_capacity(10, 0.01)?;
    /// let full = (0..1000u32).find_map(|key| tiny.insert(&key).err()).unwrap();
    /// assert!(full.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> E::Answer {
        self.engine.insert(self.hash(key))
    }
}

/// An insert that needs no hasher.
impl<E: Insert, S> Filter<E, S> {
    /// [`insert`](Filter::insert) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15).unwrap();
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> E::Answer {
        self.engine.insert(hash)
    }
}

/// Inserts of many keys.
impl<E: Insert, S: KeyHasher> Filter<E, S> {
    /// Inserts every key; returns how many inserts answered `true`. A filter that can be full stops
    /// at the first key that finds no room; its error says how many keys were inserted before.
    ///
    /// A `ConcurrentBloom` inserts dense batches [in bulk](crate#inserting-in-bulk), which
    /// allocates memory: from 1024 keys, and 6 per line of the filter, on.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, CuckooFilter};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
    ///
    /// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b"]), Ok(()));
    /// let error = filter.insert_batch(&["c"; 100]).unwrap_err();
    /// assert_eq!(error.inserted(), filter.count("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> E::Total {
        self.engine.insert_all(&self.keys(keys))
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), Ok(()));
    /// assert_eq!((filter.count("a"), filter.count("b")), (2, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hashes(&self, hashes: &[u64]) -> E::Total {
        self.engine.insert_all(&hashes)
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A filter
    /// that is full takes no more keys from the iterator.
    ///
    /// If inserts cannot fail, [`Extend`] does the same through `&mut`.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, CuckooFilter};
    /// use std::sync::Arc;
    ///
    /// let filter = Arc::new(ConcurrentBloom::with_capacity(1000, 0.01)?);
    /// assert_eq!(filter.insert_all(["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    ///
    /// let filter = CuckooFilter::with_capacity(100, 0.01)?;
    /// assert_eq!(filter.insert_all(0..100u32), Ok(()));
    /// let error = filter.insert_all(100..).unwrap_err();
    /// assert_eq!(100 + error.inserted(), filter.len());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> E::Total {
        let (mut total, mut before) = (E::Total::NONE, 0);
        let hashes = keys.into_iter().map(|key| self.hash(&key));
        let _ = try_gathered::<HASHED, _>(hashes, |hashes| {
            total.add(before, self.insert_hashes(hashes));
            before += hashes.len();
            if total.is_refused() { Err(()) } else { Ok(()) }
        });
        total
    }

    /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// ```
    /// let mut filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.is_empty());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.engine.clear();
    }
}

/// Inserts that answer for each key.
impl<E: InsertFlagged, S: KeyHasher> Filter<E, S> {
    /// [`insert_batch`](Self::insert_batch) that also writes each insert's answer to the same place
    /// of `new`: `false` for keys that found no room. The first of several equal keys gets `true`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> E::Total {
        assert_same_length(keys.len(), new.len());
        self.engine
            .insert_flagged(&self.keys(keys), Some(&mut batch::unpack_into(self.isa, new)))
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
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> E::Total {
        assert_same_length(hashes.len(), new.len());
        self.engine
            .insert_flagged(&hashes, Some(&mut batch::unpack_into(self.isa, new)))
    }
}

/// Removing keys.
impl<E: Remove, S: KeyHasher> Filter<E, S> {
    /// Removes `key`, or one copy of it if the filter counts copies. Returns whether it was there.
    ///
    /// Remove only keys that were inserted: removing a false positive damages another key.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// assert!(filter.remove("a"));
    /// assert!(!filter.contains("a") && !filter.remove("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.engine.remove(self.hash(key))
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15).unwrap();
    /// assert!(filter.remove_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.remove_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.engine.remove(hash)
    }

    /// Removes every key; returns how many were there.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b"]).unwrap();
    /// assert_eq!(filter.remove_batch(&["a", "c"]), 1);
    /// assert!(filter.contains("b") && !filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.engine.remove_all(&self.keys(keys), None)
    }

    /// [`remove_batch`](Self::remove_batch) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b"]).unwrap();
    /// assert_eq!(filter.remove_hashes(&["a", "c"].map(|key| filter.hash(key))), 1);
    /// assert!(filter.contains("b") && !filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
        self.engine.remove_all(&hashes, None)
    }

    /// [`remove_batch`](Self::remove_batch) that also writes whether each key was there to the same
    /// place of `removed`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b"]).unwrap();
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_flagged(&["c", "a"], &mut removed), 1);
    /// assert_eq!(removed, [false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), removed.len());
        self.engine
            .remove_all(&self.keys(keys), Some(&mut batch::unpack_into(self.isa, removed)))
    }

    /// [`remove_batch_flagged`](Self::remove_batch_flagged) by hash.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b"]).unwrap();
    /// let mut removed = [false; 2];
    /// let hashes = ["c", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 1);
    /// assert_eq!(removed, [false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.engine
            .remove_all(&hashes, Some(&mut batch::unpack_into(self.isa, removed)))
    }
}

/// Copies and slots.
impl<E: Count, S: KeyHasher> Filter<E, S> {
    /// How often `key` is in the filter: as often as it was inserted and not removed, or more at
    /// the false-positive rate.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b", "a"]).unwrap();
    /// assert_eq!(["a", "b", "c"].map(|key| filter.count(key)), [2, 1, 0]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize {
        self.engine.count(self.hash(key))
    }

    /// [`count`](Self::count) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// assert_eq!(filter.count_hash(filter.hash("a")), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.engine.count(hash)
    }
}

/// Copies and slots.
impl<E: Count, S> Filter<E, S> {
    /// The number of keys in the filter, every copy counted. Reads the whole filter.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_all(["a", "b", "a"])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// The number of slots: more than [`expected_keys`](Self::expected_keys), and more than can be
    /// filled.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 2e-4)?;
    /// assert!((0.949..=0.95).contains(&(1e5 / filter.slots() as f64)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.engine.slots()
    }

    /// How often one key can be inserted, if no other key takes its slots: 12, 10, 8 or 6 times
    /// in a cuckoo filter, 3 times in a d-left filter.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let builder = CuckooFilter::builder().expected_keys(1000);
    /// let filter = builder.fingerprint_bits(16).build()?;
    /// assert_eq!(filter.max_copies(), 8);
    /// (0..8).try_for_each(|_| filter.insert("a"))?;
    /// let error = filter.insert("a").unwrap_err();
    /// let text = "the key is in the filter 8 times, the most copies of one key";
    /// assert_eq!(error.to_string(), text);
    /// assert!(!error.is_full() && filter.count("a") == 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_copies(&self) -> usize {
        self.engine.max_copies()
    }
}

/// Unions.
impl<E: Union, S: KeyHasher> Filter<E, S> {
    /// Adds every key of `other` to this filter; returns whether that changed it. Both may be in
    /// use meanwhile.
    ///
    /// Everything that was inserted into `other` before is in this filter afterwards.
    ///
    /// # Errors
    ///
    /// Fails if layout or hasher (its algorithm, seed or key) differ, or if a filter that grows has
    /// no room for the other one's keys. Then no key is added.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// let all = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_compatible(other)?;
        self.engine.union_from(&other.engine)
    }

    /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from) requires.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_compatible(&filter.clone()));
    /// assert!(!filter.is_compatible(&ConcurrentBloom::with_capacity(2000, 0.01)?));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "isCompatible")]
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok()
    }

    /// Fails unless layout and hasher match.
    pub(crate) fn check_compatible(&self, other: &Self) -> Result<(), IncompatibleError> {
        self.engine.check_union(&other.engine)?;
        if hash::fingerprint(&self.hasher) != hash::fingerprint(&other.hasher) {
            return Err(IncompatibleError::hasher());
        }
        Ok(())
    }
}

impl<E: Engine, S> Filter<E, S> {
    /// The hasher.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// assert!(filter.try_clone()?.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        Ok(Self {
            engine: self.engine.try_clone()?,
            hasher: self.hasher.clone(),
            isa: self.isa,
        })
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts if the allocation
/// fails; [`try_clone`](Filter::try_clone) does not.
impl<E: Engine, S: Clone> Clone for Filter<E, S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<u8>(self.memory_bytes());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// Same layout, same hasher and same content. Beside inserts, reads each word at some moment.
impl<E: Union, S: KeyHasher> PartialEq for Filter<E, S> {
    fn eq(&self, other: &Self) -> bool {
        hash::fingerprint(&self.hasher) == hash::fingerprint(&other.hasher) && self.engine.same(&other.engine)
    }
}

/// A summary; it reads the whole filter.
impl<E: Engine, S: fmt::Debug> fmt::Debug for Filter<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut summary = f.debug_struct(E::NAME);
        summary
            .field("expected_keys", &self.expected_keys())
            .field("memory_bytes", &self.memory_bytes())
            .field("hasher", &self.hasher);
        self.engine.debug(&mut summary);
        summary.finish_non_exhaustive()
    }
}

/// [`insert_all`](Filter::insert_all). For `&Filter` too.
///
/// ```
/// let mut filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, E: Insert<Total = usize>, S: KeyHasher> Extend<K> for Filter<E, S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}

impl<K: Funnel, E: Insert<Total = usize>, S: KeyHasher> Extend<K> for &Filter<E, S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys);
    }
}
