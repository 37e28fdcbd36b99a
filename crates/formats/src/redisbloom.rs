//! RedisBloom's scalable Bloom filter, bit for bit. [`RedisBloom`] is the filter that `BF.RESERVE`
//! makes, with the same answers, the same growth and the same dump. A filter can be taken out of
//! Redis and used in process, or built here and put into Redis. The crate `lanebloom-redis`
//! transfers the chunks. Any other client works with a [`Loader`].
//!
//! Use it for filters that are in Redis already, [not if you own both
//! ends](crate#when-not-to-use-it). The lookup of an absent key searches all `n` layers of a chain,
//! which touches about `2 * n` lines; a key in the oldest layer touches `2 * n + k`, if a key has
//! `k` bits. Growth costs memory too, since every further layer has half the rate of the one
//! before: a chain of eight takes about twice the memory of one filter for as many keys. (The rate
//! practically holds: 20,000 keys in a chain for 100 at 1% gave 0.9% with decimal keys and 1.0%
//! with random ones, in the module too.)
//!
//! # Keys
//!
//! A key is a string of bytes, as in Redis: `str`, `String`, `[u8]`, `Vec<u8>`. Numbers do not
//! compile, because each client encodes them in its own way: mostly as their decimal digits,
//! `"42"`.
//!
//! # Versions
//!
//! The layout is that of 2.4 (2022) and later, including 8, which write the same dumps. It has
//! MurmurHash64A, sizes that are not rounded up to powers of two, rates that halve from filter to
//! filter. Filters of older versions, with rounded sizes and MurmurHash2, can be read once one of
//! these versions has loaded and dumped them. (Dumps of 2.2 and before have a shorter header, which
//! is refused.) Known differences:
//!
//! - Since version 8 `BF.RESERVE` treats a rate above 0.25 as 0.25, and `EXPANSION 0` as
//!   `NONSCALING`. Here rates are taken as they are.
//! - A logarithm decides the size of a filter. RedisBloom uses that of the C library; here it is
//!   the nearest `f64`. One of 3000 random rates had another last bit. It changes the size itself
//!   only where a product comes out next to a whole number.
//!
//! # Sharing it
//!
//! Lookups take `&self`: they are lock-free, and any number of threads share a filter as
//! `Arc<RedisBloom>`. Inserts take `&mut self`. A chain grows when its newest filter has counted as
//! many keys as it is for. This count is exact only if inserts come one after another, as in Redis,
//! which has one thread. Inserts are exclusive here too, so that both sides stay the same to the
//! bit.
//!
//! # Moving a service over
//!
//! As from [Guava](crate::guava#moving-a-service-over): a service takes the filter out of Redis and
//! looks up in the copy. Meanwhile it fills a [`ConcurrentBloom`](lanebloom::ConcurrentBloom) from
//! the source of truth, with room for more keys than it [has](RedisBloom::info).
//!
//! **Strangers can make keys that collide** under MurmurHash64A, whatever its seed, as under every
//! hash without a key: [the module `hash`](lanebloom::hash) says more.

mod dump;
pub(crate) mod error;
pub(crate) mod layout;
mod statistics;

use crate::flat::Flat;
pub use crate::scandump::{Dumped, LoadChunks, Loader};
use crate::{CHUNK, chunks, or_abort, push};
use alloc::vec::Vec;
use error::{InsertErrorKind, RedisBloomInsertError};
use lanebloom::BuildError;
use lanebloom::internal::{AccessPlan, Isa, Plan, assert_bitmap_length, assert_same_length, try_gathered};
use layout::{Hash, LayerIndexes, LayerLayout, TIGHTENING, hash, options};
pub use statistics::{Info, LayerInfo};

/// RedisBloom's `BF` filter, bit for bit: a chain of filters that grows as keys are inserted.
///
/// [The module](self) has the costs, the versions of RedisBloom, and the types of keys.
/// Lookups take `&self`, inserts `&mut self`.
///
/// ```
/// // BF.RESERVE f 0.01 10, BF.MADD f 0 1 ... 99, BF.INFO f
/// let mut filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
/// for key in 0..100 {
///     filter.insert(&key.to_string())?;
/// }
/// let info = filter.info();
/// assert_eq!((info.capacity, info.filters, info.items), (150, 4, 99));
/// assert!(filter.contains("42") && !filter.contains("100"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "BF.RESERVE")]
pub struct RedisBloom {
    /// At least one; the newest is the last.
    layers: Vec<BloomLayer>,
    options: u32,
    /// At least 1, unless the chain never grows.
    expansion: u32,
    /// The most bytes of memory that the chain may grow to.
    max_bytes: u64,
}

/// A layer of the chain.
struct BloomLayer {
    flat: Flat,
    layout: LayerLayout,
    /// Inserts that changed it.
    items: u64,
}

// A Vec may have twice the capacity that it needs.
const _: () = assert!(2 * size_of::<BloomLayer>() as u64 <= layout::BESIDE_BITS);

/// Sizes a [`RedisBloom`]; made by [`RedisBloom::builder`]. The defaults are RedisBloom's.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    keys: usize,
    rate: f64,
    options: u32,
    expansion: u32,
}

impl Builder {
    /// RedisBloom's default expansion.
    const EXPANSION: u32 = 2;

    /// The number of distinct keys that the first layer of the chain is for: RedisBloom's
    /// capacity. 100 by default.
    ///
    /// ```
    /// let builder = lanebloom_formats::RedisBloom::builder().expected_keys(5000);
    /// let filter = builder.build()?;
    /// assert_eq!(filter.info().capacity, 5000);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "capacity")]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate, between 0 and 1, both excluded: RedisBloom's error rate. 0.01 by
    /// default.
    ///
    /// The first filter of a chain gets half of this rate. Every further layer gets half the rate
    /// of the one before, so that all together stay below it. A chain that [does not
    /// grow](Self::non_scaling) gets all of it.
    ///
    /// ```
    /// let builder = lanebloom_formats::RedisBloom::builder();
    /// let filter = builder.false_positive_rate(1e-4).build()?;
    /// assert_eq!(filter.layers().next().unwrap().false_positive_rate, 5e-5);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "error_rate")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How many times as many keys a new layer of the chain is for as the one before: `EXPANSION`,
    /// at least 1. 2 by default.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(10).expansion(1).build()?;
    /// for key in 0..20 {
    ///     filter.insert(&key.to_string())?;
    /// }
    /// assert_eq!((filter.info().filters, filter.info().capacity), (2, 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "EXPANSION")]
    pub fn expansion(mut self, expansion: u32) -> Self {
        self.options &= !options::NO_SCALING;
        self.expansion = expansion;
        self
    }

    /// One filter that never grows: `NONSCALING`. When it has counted as many keys as it is for,
    /// further inserts are errors.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// assert!(filter.insert("a")?);
    /// assert!(!filter.insert("a")?);
    /// assert!(filter.insert("b").unwrap_err().is_full());
    /// assert_eq!(filter.info().expansion, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "NONSCALING")]
    pub fn non_scaling(mut self) -> Self {
        self.options |= options::NO_SCALING;
        self.expansion = Self::EXPANSION;
        self
    }

    /// Computes the layout of the first filter by RedisBloom's formulas, and allocates it.
    ///
    /// # Errors
    ///
    /// If the rate is not between 0 and 1, the expected keys or the expansion are 0, the filter is
    /// beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let filter = RedisBloom::builder().expected_keys(10).build()?;
    /// assert_eq!(filter.layers().next().unwrap().bits, 128);
    ///
    /// let error = RedisBloom::builder().expansion(0).build().unwrap_err();
    /// assert_eq!(error.to_string(), "an expansion of 0 is not at least 1");
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn build(self) -> Result<RedisBloom, BuildError> {
        BuildError::check_rate(self.rate)?;
        if self.expansion == 0 {
            return Err(BuildError::new(error::NO_EXPANSION));
        }
        let scaling = self.options & options::NO_SCALING == 0;
        let rate = if scaling { self.rate * TIGHTENING } else { self.rate };
        let layout = LayerLayout::solve(self.keys as u64, rate, self.options)?;
        let mut filter = RedisBloom {
            layers: Vec::new(),
            options: self.options,
            expansion: self.expansion,
            max_bytes: u64::MAX,
        };
        filter.add_layer(layout, 0)?;
        Ok(filter)
    }
}

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
    fn add_layer(&mut self, layout: LayerLayout, items: u64) -> Result<(), BuildError> {
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

impl BloomLayer {
    #[inline(always)]
    fn indexes(&self, hash: Hash) -> LayerIndexes {
        LayerIndexes::new(hash, &self.layout)
    }

    #[inline(always)]
    fn holds(&self, hash: Hash) -> bool {
        self.flat.holds(self.indexes(hash))
    }

    /// The number of set bits among those that keys can have.
    fn ones(&self) -> u64 {
        let used = self.layout.used_bits();
        // Whole words, or a part of the first one.
        let mask = u64::MAX >> (used.wrapping_neg() % 64);
        let words = self.flat.words().take(used.div_ceil(64) as usize);
        words.map(|word| u64::from((word & mask).count_ones())).sum()
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
        self.insert_hashed(hash)
            .map_err(|kind| RedisBloomInsertError { kind, inserted: 0 })
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

/// Batches, as those of [`GuavaBloom`](crate::GuavaBloom#batches).
impl RedisBloom {
    /// Inserts every key; returns how many of them were not in the filter before. `BF.MADD`.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), at the first key that cannot be inserted. The error says [how
    /// many](RedisBloomInsertError::inserted) keys were inserted before it.
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
    /// As [`insert_batch`](Self::insert_batch). It may have taken keys after the failed one from
    /// the iterator.
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
        self.contains_bitmap(hashes, &mut found[..hashes.len().min(1)]);
        let mut new = 0;
        for (i, hash) in hashes.iter().enumerate() {
            let inserted = found[0] >> i & 1 == 0
                && self.insert_hashed(*hash).map_err(|kind| RedisBloomInsertError {
                    kind,
                    inserted: start + i,
                })?;
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

impl RedisBloom {
    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// let copy = filter.try_clone()?;
    /// filter.insert("b")?;
    /// assert!(copy.contains("a") && !copy.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let mut layers = Vec::new();
        for layer in &self.layers {
            let flat = layer.flat.try_clone()?;
            push(&mut layers, BloomLayer { flat, ..*layer })?;
        }
        Ok(Self { layers, ..*self })
    }
}

/// Aborts if the allocation fails; [`try_clone`](RedisBloom::try_clone) does not.
impl Clone for RedisBloom {
    fn clone(&self) -> Self {
        or_abort(self.try_clone(), self.memory_bytes())
    }
}

/// Same layout, counts and bits: the same dump.
impl PartialEq for RedisBloom {
    fn eq(&self, other: &Self) -> bool {
        (self.options, self.expansion) == (other.options, other.expansion) && self.layers == other.layers
    }
}

impl PartialEq for BloomLayer {
    fn eq(&self, other: &Self) -> bool {
        (self.layout, self.items) == (other.layout, other.items) && self.flat.words().eq(other.flat.words())
    }
}
