//! The constructors of [`RedisBloom`], inserts and lookups.

use super::error::{InsertErrorKind, RedisBloomInsertError};
use super::layout::{Hash, LayerLayout, TIGHTENING, hash, options};
use super::{BloomLayer, Builder, RedisBloom};
use crate::flat::Flat;
use crate::{CHUNK, chunks, push, told};
use lanebloom::internal::{Plan, Prefetching, try_gathered};
use lanebloom::{Answers, BuildError};

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
        self.insert_each(keys, &mut |_, _, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each key was not in the
    /// filter before; `false` for a key that was not inserted. [`Answers`] has the places for
    /// `new`.
    ///
    /// # Panics
    ///
    /// If `new` has room for more or fewer keys.
    ///
    /// # Errors
    ///
    /// Fails as [`insert_batch`](Self::insert_batch) does.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_into(&["a", "a", "b"], &mut new)?, 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_into<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: impl Answers,
    ) -> Result<usize, RedisBloomInsertError> {
        let len = keys.len();
        new.receive(len, |place| {
            told(place, |each| {
                let mut end = 0;
                let result = self.insert_each(keys, &mut |at, len, new| {
                    end = at + len;
                    each(at, len, new);
                });
                while end < len {
                    let window = (64 - end % 64).min(len - end);
                    each(end, window, 0);
                    end += window;
                }
                result
            })
        })
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
        self.insert_each(keys, &mut |_, _, _| ())
    }

    /// Inserts keys. Calls `each(start, len, bitmap)` for every window, up to the one that has a
    /// refused key.
    fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        each: &mut dyn FnMut(usize, usize, u64),
    ) -> Result<usize, RedisBloomInsertError> {
        let (mut new, mut inserted, options) = (0, 0, self.options);
        let hashes = keys.into_iter().map(|key| hash(key.as_ref(), options));
        try_gathered::<CHUNK, _, _>(hashes, |hashes| {
            new += self.insert_chunk(hashes, inserted, each)?;
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
        each: &mut dyn FnMut(usize, usize, u64),
    ) -> Result<usize, RedisBloomInsertError> {
        let flat = &self.newest().flat;
        let prefetching = flat.changes();
        let prefetch = |filter: &mut Self, _, hash: &Hash, (): &(), hint| {
            let newest = filter.newest();
            newest.flat.prefetch(newest.indexes(*hash), hint);
        };
        let (mut new, mut refused) = (0, None);
        prefetching.tiles(
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
        each: &mut dyn FnMut(usize, usize, u64),
    ) -> Result<usize, RedisBloomInsertError> {
        let (mut found, mut new, mut refused) = ([0], 0, None);
        self.contains_bitmap(hashes, &mut found);
        for (i, hash) in hashes.iter().enumerate().filter(|(i, _)| found[0] >> i & 1 == 0) {
            match self.insert_hashed(*hash) {
                Ok(inserted) => new |= u64::from(inserted) << i,
                Err(kind) => {
                    refused = Some(kind.after(start + i));
                    break;
                }
            }
        }
        each(start, hashes.len(), new);
        refused.map_or(Ok(new.count_ones() as usize), Err)
    }

    /// Passes on whether each key may be in the filter: `BF.MEXISTS`. [`Answers`] has the places
    /// for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
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
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], out: impl Answers) {
        out.receive(keys.len(), |place| told(place, |each| self.look_up(keys, each)));
    }

    /// Looks keys up; calls `each(start, len, bitmap)` for every 64.
    fn look_up<K: AsRef<[u8]>>(&self, keys: &[K], each: &mut dyn FnMut(usize, usize, u64)) {
        let hash_all = |keys: &[K], hashes: &mut [Hash]| {
            for (kept, key) in hashes.iter_mut().zip(keys) {
                *kept = hash(key.as_ref(), self.options);
            }
        };
        let mut found = [0; CHUNK / 64];
        chunks::hashed::<CHUNK, _, _>(keys, hash_all, |start, hashes| {
            let found = &mut found[..hashes.len().div_ceil(64)];
            self.contains_bitmap(hashes, found);
            for (at, found) in (0..hashes.len()).step_by(64).zip(found) {
                each(start + at, (hashes.len() - at).min(64), *found);
            }
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
                Prefetching::each_one(answers, |i| {
                    let position = usize::from(searched[at + i]);
                    found[position / 64] |= 1 << (position % 64);
                });
                Prefetching::each_one(!answers & u64::MAX >> (64 - len), |i| {
                    left[kept] = searched[at + i];
                    kept += 1;
                });
            });
            len = kept;
        }
    }
}
