//! The constructors of [`RedisBloom`], inserts and lookups.

use super::error::{InsertErrorKind, RedisBloomInsertError};
use super::layout::{Hash, LayerLayout, TIGHTENING, hash, options};
use super::{BloomLayer, Builder, RedisBloom};
use crate::flat::Flat;
use crate::{CHUNK, chunks, push};
use alloc::vec::Vec;
use lanebloom::BuildError;
use lanebloom::internal::{AccessPlan, Isa, Plan, assert_bitmap_length, assert_same_length, try_gathered};

impl RedisBloom {
    /// The filter that `BF.RESERVE key false_positive_rate keys` makes.
    ///
    /// Fails as [`Builder::build`] does.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// assert_eq!(RedisBloom::with_capacity(1000, 0.01)?.info().size, 1480);
    /// let error = RedisBloom::with_capacity(0, 0.01).unwrap_err();
    /// assert_eq!(error.to_string(), "a capacity of 0 keys is not at least 1");
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("reserve", "BF.RESERVE"))]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::builder()
            .expected_keys(keys)
            .false_positive_rate(false_positive_rate)
            .build()
    }

    /// A builder, for all options.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let filter = RedisBloom::builder().build()?;
    /// assert!(filter == RedisBloom::with_capacity(100, 0.01)?);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            keys: 100,
            rate: 0.01,
            options: options::NO_ROUND | options::FORCE_64,
            expansion: Builder::EXPANSION,
        }
    }

    /// Appends an empty filter to the chain.
    pub(super) fn add_layer(&mut self, layout: LayerLayout, items: u64) -> Result<(), BuildError> {
        let flat = Flat::new(layout.words, layout.hash_functions)?;
        push(&mut self.layers, BloomLayer { flat, layout, items })
    }

    /// The next layer of the chain, as RedisBloom's `SBChain_Add` adds it.
    fn grow(&mut self) -> Result<(), InsertErrorKind> {
        let last = self.newest().layout;
        if self.options & options::NO_SCALING != 0 {
            let capacity = last.capacity;
            return Err(InsertErrorKind::NonScaling { capacity });
        }
        // A product that overflows is too large either way.
        let capacity = last.capacity.saturating_mul(self.expansion.into());
        let layout =
            LayerLayout::solve(capacity, last.rate * TIGHTENING, self.options).map_err(InsertErrorKind::Growth)?;
        let needed = (self.memory_bytes() as u64).saturating_add(layout.memory_bytes());
        InsertErrorKind::check_limit(needed, self.max_bytes)?;
        self.add_layer(layout, 0).map_err(InsertErrorKind::Growth)
    }

    fn newest(&self) -> &BloomLayer {
        self.layers.last().expect("a chain has a layer")
    }
}

/// Single operations.
impl RedisBloom {
    /// Inserts `key`; returns whether it was not in the filter before: `BF.ADD`.
    ///
    /// `false` means that the key was there, or is a false positive. Then the filter does not
    /// change.
    ///
    /// # Errors
    ///
    /// Fails where RedisBloom refuses: if the filter [does not scale](Builder::non_scaling) and is
    /// full. Also fails if the chain needs a further layer, and would grow beyond
    /// [`max_bytes`](Self::max_bytes), or the allocation fails. The key is not in the filter then.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert("a")?);
    /// assert!(!filter.insert("a")?);
    /// assert!(filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.ADD")]
    pub fn insert<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> Result<bool, RedisBloomInsertError> {
        let hash = hash(key.as_ref(), self.options);
        self.insert_hashed(hash).map_err(|kind| kind.after(0))
    }

    fn insert_hashed(&mut self, hash: Hash) -> Result<bool, InsertErrorKind> {
        if self.holds(hash) {
            return Ok(false);
        }
        let newest = self.newest();
        if newest.items >= newest.layout.capacity {
            self.grow()?;
        }
        let newest = self.layers.last_mut().expect("a chain has a layer");
        let indexes = newest.indexes(hash);
        newest.flat.set_mut(indexes);
        newest.items += 1;
        Ok(true)
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    /// `BF.EXISTS`.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// assert!(filter.contains("a"));
    /// assert!(!filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.EXISTS")]
    #[inline]
    #[must_use]
    pub fn contains<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> bool {
        self.holds(hash(key.as_ref(), self.options))
    }

    #[inline(always)]
    fn holds(&self, hash: Hash) -> bool {
        self.layers.iter().rev().any(|layer| layer.holds(hash))
    }
}

/// Batches, as those of [`JavaBloom`](crate::JavaBloom#batches).
impl RedisBloom {
    /// Inserts every key; returns how many of them were not in the filter before. `BF.MADD`.
    ///
    /// # Errors
    ///
    /// Fails like [`insert`](Self::insert), at the first key that cannot be inserted. The error
    /// says [how many](RedisBloomInsertError::inserted) keys were inserted before it.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"])?, 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.MADD")]
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<usize, RedisBloomInsertError> {
        self.insert_each(keys, |_, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also writes whether each key was not in the filter
    /// before to the same place of `new`. Panics if the lengths differ.
    ///
    /// # Errors
    ///
    /// Fails as [`insert_batch`](Self::insert_batch) does. The places from the failed key on do not
    /// change.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new)?, 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_flagged<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<usize, RedisBloomInsertError> {
        assert_same_length(keys.len(), new.len());
        self.insert_each(keys, |i, inserted| new[i] = inserted)
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// # Errors
    ///
    /// Fails like [`insert_batch`](Self::insert_batch). It may have taken keys after the failed one
    /// from the iterator.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
    /// let new = filter.insert_all((0..100).map(|id| format!("{id}")))?;
    /// assert!((95..=100).contains(&new) && filter.contains("99"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<usize, RedisBloomInsertError> {
        self.insert_each(keys, |_, _| ())
    }

    /// Inserts keys; calls `each` with the position of every key and its answer.
    fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        mut each: impl FnMut(usize, bool),
    ) -> Result<usize, RedisBloomInsertError> {
        let (mut new, mut inserted, options) = (0, 0, self.options);
        let hashes = keys.into_iter().map(|key| hash(key.as_ref(), options));
        try_gathered::<CHUNK, _, _>(hashes, |hashes| {
            new += self.insert_chunk(hashes, inserted, &mut each)?;
            inserted += hashes.len();
            Ok(())
        })?;
        Ok(new)
    }

    /// Inserts hashes, the first of which has the position `start`. Prefetches their lines in the
    /// filter that is the newest before.
    fn insert_chunk(
        &mut self,
        hashes: &[Hash],
        start: usize,
        each: &mut impl FnMut(usize, bool),
    ) -> Result<usize, RedisBloomInsertError> {
        let flat = &self.newest().flat;
        let access = flat.changes();
        let prefetch = |filter: &mut Self, _, hash: &Hash, (): &(), hint| {
            let newest = filter.newest();
            newest.flat.prefetch(newest.indexes(*hash), hint);
        };
        let (mut new, mut refused) = (0, None);
        access.tiles(
            self,
            hashes,
            |_, _, _| (),
            prefetch,
            |filter, at, tile| {
                match filter.insert_tile(&hashes[at..][..tile.len()], start + at, each) {
                    Ok(inserted) => new += inserted,
                    Err(error) => refused = Some(error),
                }
                refused.is_none()
            },
        );
        refused.map_or(Ok(new), Err)
    }

    /// Inserts the hashes of a tile. Looks up all of them first: later inserts cannot make a found
    /// hash absent.
    fn insert_tile(
        &mut self,
        hashes: &[Hash],
        start: usize,
        each: &mut impl FnMut(usize, bool),
    ) -> Result<usize, RedisBloomInsertError> {
        let mut found = [0];
        self.contains_bitmap(hashes, &mut found);
        let mut new = 0;
        for (i, hash) in hashes.iter().enumerate() {
            let inserted = found[0] >> i & 1 == 0 && self.insert_hashed(*hash).map_err(|kind| kind.after(start + i))?;
            each(start + i, inserted);
            new += usize::from(inserted);
        }
        Ok(new)
    }

    /// Writes whether each key may be in the filter to the same place of `out`: `BF.MEXISTS`.
    /// Panics if the lengths differ.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.MEXISTS")]
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        let unpack = Isa::best().unpack();
        self.look_up(keys, |start, len, found| unpack(found, &mut out[start..][..len]));
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = alloc::vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap: bit `i % 64` of word `i / 64` is for
    /// key `i`. Bits after the last key become 0. Panics unless there is a word for every 64 keys.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        self.look_up(keys, |start, _, found| {
            out[start / 64..][..found.len()].copy_from_slice(found)
        });
    }

    /// Looks keys up; calls `each(start, len, bitmap)` for every chunk.
    fn look_up<K: AsRef<[u8]>>(&self, keys: &[K], mut each: impl FnMut(usize, usize, &[u64])) {
        let hash_all = |keys: &[K], hashes: &mut [Hash]| {
            for (kept, key) in hashes.iter_mut().zip(keys) {
                *kept = hash(key.as_ref(), self.options);
            }
        };
        let mut found = [0; CHUNK / 64];
        chunks::hashed::<CHUNK, _, _>(keys, hash_all, |start, hashes| {
            let found = &mut found[..hashes.len().div_ceil(64)];
            self.contains_bitmap(hashes, found);
            each(start, hashes.len(), found);
        });
    }

    /// The answers for at most [`CHUNK`] keys. Searches each layer of the chain for the keys that
    /// no newer one has. Prefetching begins anew in each filter, so there should be many keys.
    fn contains_bitmap(&self, hashes: &[Hash], found: &mut [u64]) {
        found.fill(0);
        if Plan::of_keys(hashes.len()).is_single() {
            for (i, hash) in hashes.iter().enumerate() {
                found[0] |= u64::from(self.holds(*hash)) << i;
            }
            return;
        }
        let mut left: [u16; CHUNK] = core::array::from_fn(|i| i as u16);
        let mut len = hashes.len();
        for layer in self.layers.iter().rev() {
            let (searched, mut kept) = (left, 0);
            let key = |position: &u16| layer.indexes(hashes[usize::from(*position)]);
            layer.flat.contains_each(&searched[..len], key, |at, len, answers| {
                AccessPlan::each_one(answers, |i| {
                    let position = usize::from(searched[at + i]);
                    found[position / 64] |= 1 << (position % 64);
                });
                AccessPlan::each_one(!answers & u64::MAX >> (64 - len), |i| {
                    left[kept] = searched[at + i];
                    kept += 1;
                });
            });
            len = kept;
        }
    }
}
