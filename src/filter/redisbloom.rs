//! RedisBloom's scalable Bloom filter, bit for bit. [`RedisBloom`] is the filter that `BF.RESERVE`
//! makes, with the same answers, the same growth and the same dump. A filter can be taken out of
//! Redis and used in process, or built here and put into Redis.
//!
//! Use it for filters that are in Redis already. If you own both ends, use a
//! [`ConcurrentBloom`](crate::ConcurrentBloom): there a key's bits lie in one cache line. Here they
//! lie anywhere in each filter of a chain. A lookup of an absent key searches all `n` filters of
//! the chain, which touches about `2 * n` lines. A key in the oldest filter touches `2 * n + k`, if
//! a key has `k` bits. Growth costs memory too, since every further filter has half the rate of the
//! one before: a chain of eight takes about twice the memory of one filter for as many keys. (The
//! rate practically holds: 20,000 keys in a chain that was reserved for 100 at 1% gave 0.9% with
//! decimal keys and 1.0% with random ones, in the module and so here.)
//!
//! # Example
//!
//! ```
//! use lanebloom::RedisBloom;
//!
//! // BF.RESERVE seen 0.01 1000, BF.ADD seen ann
//! let mut seen = RedisBloom::reserve(0.01, 1000)?;
//! assert!(seen.insert("ann")?);
//!
//! // BF.SCANDUMP here, BF.LOADCHUNK there, or the other way round.
//! let copy = RedisBloom::from_scandump(seen.to_loadchunks(), 1 << 20)?;
//! assert!(copy.contains("ann") && !copy.contains("eve"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `redis`, `RedisBloom::fetch`, `store` and `replace` transfer the chunks. Any
//! other client works with a [`Loader`].
//!
//! # Keys
//!
//! A key is a string of bytes, as in Redis: `str`, `String`, `[u8]`, `Vec<u8>`. Numbers do not
//! compile, because each client encodes them in its own way: mostly as their decimal digits,
//! `"42"`.
//!
//! # Which RedisBloom
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
//! A filter cannot be converted: it holds bits, not keys. A service takes the filter out of Redis
//! and answers from the copy. Meanwhile it fills a [`ConcurrentBloom`](crate::ConcurrentBloom) from
//! the source of truth, sized for the number of keys that [`info`](RedisBloom::info) reports for
//! the chain:
//!
//! ```
//! use lanebloom::{ConcurrentBloom, RedisBloom};
//! # let store = ["ann", "bob"];
//! # let mut in_redis = RedisBloom::reserve(0.01, 10)?;
//! # in_redis.insert_batch(&store)?;
//! # let scandump = in_redis.to_loadchunks();
//!
//! // Now: the filter that is in Redis.
//! let old = RedisBloom::from_scandump(scandump, 1 << 30)?;
//! assert!(old.contains("bob"));
//!
//! // Meanwhile: every key from where they come from, and every new one into both. Then the old one is dropped.
//! let keys = 2 * old.estimated_len();
//! let new = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(0.01).build()?;
//! for key in store {
//!     new.insert(key);
//! }
//! assert!(new.contains("ann") && new.contains("bob"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Strangers can make keys that collide** under MurmurHash64A, whatever its seed, as under every
//! hash without a key: [the module `hash`](crate::hash) says more.

mod dump;
pub(crate) mod layout;

use crate::error::{BuildError, BuildErrorKind, RedisBloomInsertError, RedisBloomInsertErrorKind};
use crate::flat::{Flat, WINDOW, each_one, first};
use crate::hash::assert_same_length;
use crate::kernel::scalar::unpack;
use crate::logarithm::pow;
use alloc::vec::Vec;
use core::fmt;
pub use dump::{LoadChunks, Loader};
use layout::{Hash, Layout, Places, TIGHTENING, hash, options};

/// RedisBloom's `BF` filter, bit for bit: a chain of filters that grows as keys are inserted.
///
/// [The module](self) says what it costs, which versions it is the same as, and what keys are.
/// Lookups take `&self`, inserts `&mut self`.
///
/// # Examples
///
/// ```
/// use lanebloom::RedisBloom;
///
/// // BF.RESERVE f 0.01 10, BF.MADD f 0 1 ... 99, BF.INFO f
/// let mut filter = RedisBloom::reserve(0.01, 10)?;
/// for key in 0..100 {
///     filter.insert(&key.to_string())?;
/// }
/// let info = filter.info();
/// assert_eq!((info.capacity, info.filters, info.items, info.size), (150, 4, 99, 568));
/// assert!(filter.contains("42") && !filter.contains("100"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "BF.RESERVE")]
pub struct RedisBloom {
    /// At least one; the newest is the last.
    links: Vec<Link>,
    options: u32,
    /// At least 1, unless the chain never grows.
    expansion: u32,
    /// See [`RedisBloom::max_bytes`].
    max_bytes: u64,
}

/// A filter of the chain.
struct Link {
    flat: Flat,
    layout: Layout,
    /// Inserts that changed it.
    items: u64,
}

// In a Vec that has grown to twice what it holds.
const _: () = assert!(2 * size_of::<Link>() as u64 <= layout::BESIDE_BITS);

/// Sizes a [`RedisBloom`]; made by [`RedisBloom::builder`].
///
/// # Examples
///
/// ```
/// use lanebloom::RedisBloom;
///
/// // BF.RESERVE f 0.001 5000 EXPANSION 4
/// let filter = RedisBloom::builder().expected_keys(5000).false_positive_rate(1e-3).expansion(4).build()?;
/// assert_eq!(filter.info().expansion, Some(4));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
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

    /// The number of distinct keys that the first filter of the chain is for: RedisBloom's
    /// capacity. 100 by default, as RedisBloom's.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// assert_eq!(RedisBloom::builder().expected_keys(5000).build()?.info().capacity, 5000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "capacity")]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate, between 0 and 1, both excluded: RedisBloom's error rate. 0.01 by
    /// default, as RedisBloom's.
    ///
    /// The first filter of a chain gets half of this rate. Every further filter gets half the rate
    /// of the one before, so that all together stay below it. A chain that [does not
    /// grow](Self::non_scaling) gets all of it.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let filter = RedisBloom::builder().false_positive_rate(1e-4).build()?;
    /// assert_eq!(filter.links().next().unwrap().false_positive_rate, 5e-5);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "error_rate")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How many times as many keys a new filter of the chain is for as the one before: `EXPANSION`,
    /// at least 1. 2 by default.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
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
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// assert!(filter.insert("a")?);
    /// assert!(!filter.insert("a")?);
    /// assert!(filter.insert("b").unwrap_err().is_full());
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
    /// use lanebloom::RedisBloom;
    ///
    /// let filter = RedisBloom::builder().expected_keys(10).build()?;
    /// assert_eq!(filter.links().next().unwrap().bits, 128);
    ///
    /// let error = RedisBloom::builder().expansion(0).build().unwrap_err();
    /// assert_eq!(error.to_string(), "an expansion of 0 is not at least 1");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<RedisBloom, BuildError> {
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(BuildError(BuildErrorKind::Rate(self.rate)));
        }
        if self.expansion == 0 {
            return Err(BuildError(BuildErrorKind::NoExpansion));
        }
        let scaling = self.options & options::NO_SCALING == 0;
        let rate = if scaling { self.rate * TIGHTENING } else { self.rate };
        let layout = Layout::solve(self.keys as u64, rate, self.options).map_err(BuildError)?;
        let mut filter = RedisBloom {
            links: Vec::new(),
            options: self.options,
            expansion: self.expansion,
            max_bytes: u64::MAX,
        };
        filter.add_link(layout, 0)?;
        Ok(filter)
    }
}

impl RedisBloom {
    /// The filter that `BF.RESERVE key rate expected_keys` makes: with the defaults of the
    /// [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// As of [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// assert_eq!(RedisBloom::reserve(0.01, 1000)?.info().size, 1480);
    /// let error = RedisBloom::reserve(0.01, 0).unwrap_err();
    /// assert_eq!(error.to_string(), "a capacity of 0 keys is not at least 1");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn reserve(rate: f64, expected_keys: usize) -> Result<Self, BuildError> {
        Self::builder()
            .expected_keys(expected_keys)
            .false_positive_rate(rate)
            .build()
    }

    /// A builder with RedisBloom's defaults: 100 keys at a rate of 0.01, and an expansion of 2.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// assert!(RedisBloom::builder().build()? == RedisBloom::reserve(0.01, 100)?);
    /// # Ok::<(), lanebloom::BuildError>(())
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
    fn add_link(&mut self, layout: Layout, items: u64) -> Result<(), BuildError> {
        let flat = Flat::new(layout.words, layout.hash_functions)?;
        self.links.try_reserve(1).map_err(|_| {
            BuildError(BuildErrorKind::OutOfMemory {
                bytes: size_of::<Link>() * (self.links.len() + 1),
            })
        })?;
        self.links.push(Link { flat, layout, items });
        Ok(())
    }

    /// The next filter of the chain, as RedisBloom's `SBChain_Add` adds it.
    fn grow(&mut self) -> Result<(), RedisBloomInsertErrorKind> {
        let last = self.newest().layout;
        if self.options & options::NO_SCALING != 0 {
            return Err(RedisBloomInsertErrorKind::Full {
                capacity: last.capacity,
            });
        }
        // A product that overflows is too large either way.
        let capacity = last.capacity.saturating_mul(self.expansion.into());
        let layout = Layout::solve(capacity, last.rate * TIGHTENING, self.options)
            .map_err(|kind| RedisBloomInsertErrorKind::Growth(BuildError(kind)))?;
        let needed = (self.memory_bytes() as u64).saturating_add(layout.memory_bytes());
        if needed > self.max_bytes {
            return Err(RedisBloomInsertErrorKind::OverLimit {
                needed,
                limit: self.max_bytes,
            });
        }
        self.add_link(layout, 0).map_err(RedisBloomInsertErrorKind::Growth)
    }

    fn newest(&self) -> &Link {
        self.links.last().expect("a chain has a link")
    }
}

impl Link {
    #[inline(always)]
    fn places(&self, hash: Hash) -> Places {
        Places::new(hash, &self.layout)
    }

    #[inline(always)]
    fn holds(&self, hash: Hash) -> bool {
        self.flat.holds(self.places(hash))
    }

    /// How many of the bits that keys can have are set.
    fn ones(&self) -> u64 {
        let used = self.layout.used_bits();
        // They are whole words, or a part of the first.
        let mask = u64::MAX >> (used.wrapping_neg() % 64);
        let words = self.flat.words().take(used.div_ceil(64) as usize);
        words.map(|word| u64::from((word & mask).count_ones())).sum()
    }

    fn fill_ratio(&self) -> f64 {
        self.ones() as f64 / self.layout.used_bits() as f64
    }
}

/// Single operations.
impl RedisBloom {
    /// Inserts `key`; returns whether it was not in the filter before: `BF.ADD`.
    ///
    /// `false` means that the key was there, or is a false positive. Then nothing is counted, and
    /// the chain does not grow.
    ///
    /// # Errors
    ///
    /// Fails where RedisBloom refuses: if the filter [does not scale](Builder::non_scaling) and is
    /// full. Also fails if the chain needs a further filter, and that filter would take more than
    /// [`max_bytes`](Self::max_bytes) or its allocation fails. The key is not in the filter then.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// assert!(filter.insert("a")?);
    /// assert!(!filter.insert("a")?);
    /// assert!(filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.ADD")]
    pub fn insert<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> Result<bool, RedisBloomInsertError> {
        let hash = hash(key.as_ref(), self.options);
        self.insert_hashed(hash)
            .map_err(|kind| RedisBloomInsertError { kind, position: 0 })
    }

    fn insert_hashed(&mut self, hash: Hash) -> Result<bool, RedisBloomInsertErrorKind> {
        if self.holds(hash) {
            return Ok(false);
        }
        let newest = self.newest();
        if newest.items >= newest.layout.capacity {
            self.grow()?;
        }
        let newest = self.links.last_mut().expect("a chain has a link");
        let places = newest.places(hash);
        newest.flat.set_mut(places);
        newest.items += 1;
        Ok(true)
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    /// `BF.EXISTS`.
    ///
    /// The filters of the chain are looked at from the newest, the largest, to the oldest.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
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
        self.links.iter().rev().any(|link| link.holds(hash))
    }
}

/// Keys of a batch that are hashed before they are looked up in each filter of the chain: 20 KiB of
/// stack. Between two filters no line is asked for ahead, so they should be many.
const STRETCH: usize = 1024;

/// Batches: the same answers as the single calls in order. In filters beyond the caches the lines
/// of many keys are fetched ahead, all at once.
impl RedisBloom {
    /// Inserts every key; returns how many of them were not in the filter before. `BF.MADD`.
    ///
    /// Results are those of [`insert`](Self::insert) in order, duplicates within the batch
    /// included.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert), at the first key that cannot be inserted. Those before it
    /// are in the filter; the error says [how many](RedisBloomInsertError::position) they are.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"])?, 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.MADD")]
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<usize, RedisBloomInsertError> {
        self.insert_each(keys, |_, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also writes for every key whether it was not in
    /// the filter before to the same place of `changed`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Errors
    ///
    /// As of [`insert_batch`](Self::insert_batch). The places from that key on are as they were.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut first_seen)?, 2);
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_flagged<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        changed: &mut [bool],
    ) -> Result<usize, RedisBloomInsertError> {
        assert_same_length(keys.len(), changed.len());
        self.insert_each(keys, |i, inserted| changed[i] = inserted)
    }

    /// Inserts keys; calls `each` with the position of every key and its answer.
    ///
    /// A window of keys at a time: first all are looked up ahead. What is found then is found
    /// whatever is inserted before it. For the others the lines of the newest filter are asked for,
    /// where they will be set, and then they are inserted one after another.
    fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        mut each: impl FnMut(usize, bool),
    ) -> Result<usize, RedisBloomInsertError> {
        let mut sum = 0;
        for (window, keys) in keys.chunks(WINDOW).enumerate() {
            let mut hashes = [(0, 0); WINDOW];
            let hashes = self.hash_all(keys, &mut hashes);
            let [found, ..] = self.contains_hashes(hashes);
            each_one(!found & first(hashes.len()), |i| {
                let newest = self.newest();
                newest.flat.prefetch(newest.places(hashes[i]));
            });
            for (i, hash) in hashes.iter().enumerate() {
                let position = WINDOW * window + i;
                let inserted = found >> i & 1 == 0
                    && self
                        .insert_hashed(*hash)
                        .map_err(|kind| RedisBloomInsertError { kind, position })?;
                each(position, inserted);
                sum += usize::from(inserted);
            }
        }
        Ok(sum)
    }

    /// Writes for every key whether it may be in the filter to the same place of `out`:
    /// `BF.MEXISTS`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.MEXISTS")]
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.contains_each(keys, |at, len, found| unpack(&[found], &mut out[at..at + len]));
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap: bit `i % 64` of `out[i / 64]` is the
    /// answer for key `i`. The bits after the last key are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [u64]) {
        crate::source::assert_bitmap_length(keys.len(), out.len());
        self.contains_each(keys, |at, _, found| out[at / WINDOW] = found);
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_absent<K: AsRef<[u8]>>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        self.contains_each(keys, |at, len, found| {
            each_one(!found & first(len), |i| each(at + i));
        });
    }

    /// Looks keys up; calls `each` with where every 64 of them begin, their number, and the bitmap
    /// of their answers.
    fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], mut each: impl FnMut(usize, usize, u64)) {
        let mut hashes = [(0, 0); STRETCH];
        for (stretch, keys) in keys.chunks(STRETCH).enumerate() {
            let hashes = self.hash_all(keys, &mut hashes);
            let found = self.contains_hashes(hashes);
            for (i, (hashes, found)) in hashes.chunks(WINDOW).zip(found).enumerate() {
                each(STRETCH * stretch + WINDOW * i, hashes.len(), found);
            }
        }
    }

    /// The hashes of so many keys as there are places for.
    fn hash_all<'a, K: AsRef<[u8]>>(&self, keys: &[K], hashes: &'a mut [Hash]) -> &'a [Hash] {
        let hashes = &mut hashes[..keys.len()];
        for (kept, key) in hashes.iter_mut().zip(keys) {
            *kept = hash(key.as_ref(), self.options);
        }
        hashes
    }

    /// The bitmap of the answers for at most `STRETCH` keys. Each filter of the chain is asked for
    /// those that no newer one has.
    fn contains_hashes(&self, hashes: &[Hash]) -> [u64; STRETCH / WINDOW] {
        let mut found = [0; STRETCH / WINDOW];
        let mut left: [u16; STRETCH] = core::array::from_fn(|i| i as u16);
        let mut len = hashes.len();
        for link in self.links.iter().rev() {
            let (asked, mut kept) = (left, 0);
            let key = |i: usize| link.places(hashes[usize::from(asked[i])]);
            link.flat.contains_each(len, key, |at, len, answers| {
                each_one(answers, |i| {
                    let position = usize::from(asked[at + i]);
                    found[position / WINDOW] |= 1 << (position % WINDOW);
                });
                each_one(!answers & first(len), |i| {
                    left[kept] = asked[at + i];
                    kept += 1;
                });
            });
            len = kept;
        }
        found
    }
}

/// What `BF.INFO` says of a filter; made by [`RedisBloom::info`].
///
/// # Examples
///
/// ```
/// let info = lanebloom::RedisBloom::reserve(0.01, 10)?.info();
/// assert_eq!((info.capacity, info.size, info.filters, info.items, info.expansion), (10, 112, 1, 0, Some(2)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// `Capacity`: the keys that all filters of the chain together are for.
    pub capacity: u64,
    /// `Size`: bytes that the filter takes in Redis. ([`memory_bytes`](RedisBloom::memory_bytes)
    /// are those here.)
    pub size: u64,
    /// `Number of filters` in the chain.
    pub filters: usize,
    /// `Number of items inserted`: inserts that answered true.
    pub items: u64,
    /// `Expansion rate`; none where the filter does not scale.
    pub expansion: Option<u32>,
}

/// A filter of the chain, as `BF.DEBUG` describes it; one of [`RedisBloom::links`].
///
/// # Examples
///
/// ```
/// let filter = lanebloom::RedisBloom::reserve(0.01, 10)?;
/// let link = filter.links().next().unwrap();
/// assert_eq!((link.bits, link.hash_functions, link.capacity, link.items), (128, 8, 10, 0));
/// assert_eq!(link.false_positive_rate, 0.005);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// The number of bits, a multiple of 64.
    pub bits: u64,
    /// The bits of a key (two may be the same).
    pub hash_functions: u32,
    /// The keys that it is for. When so many were counted, the chain grows.
    pub capacity: u64,
    /// The keys that were counted: inserts that changed it.
    pub items: u64,
    /// The rate that it was sized for.
    pub false_positive_rate: f64,
}

/// What the filter is, and how full.
impl RedisBloom {
    /// What `BF.INFO` says.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// filter.insert("a")?;
    /// let info = filter.info();
    /// assert_eq!((info.items, info.capacity, info.expansion), (1, 1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.INFO")]
    #[must_use]
    pub fn info(&self) -> Info {
        /// The module's own structures: of the chain, and of each filter.
        const CHAIN: u64 = 32;
        const LINK: u64 = 64;
        let sum = |of: fn(&Link) -> u64| self.links.iter().map(of).fold(0, u64::saturating_add);
        Info {
            capacity: sum(|link| link.layout.capacity),
            size: CHAIN + sum(|link| LINK + link.layout.bytes()),
            filters: self.links.len(),
            items: sum(|link| link.items),
            expansion: (self.options & options::NO_SCALING == 0).then_some(self.expansion),
        }
    }

    /// The filters of the chain, from the oldest to the newest, as `BF.DEBUG` says.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 10)?;
    /// for key in 0..100 {
    ///     filter.insert(&key.to_string())?;
    /// }
    /// assert!(filter.links().map(|link| link.bits).eq([128, 256, 576, 1280]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.DEBUG")]
    pub fn links(&self) -> impl Iterator<Item = LinkInfo> + '_ {
        self.links.iter().map(|link| LinkInfo {
            bits: link.layout.bits(),
            hash_functions: link.layout.hash_functions,
            capacity: link.layout.capacity,
            items: link.items,
            false_positive_rate: link.layout.rate,
        })
    }

    /// Bytes of memory that the chain takes: for each filter of it the bits, in whole lines of 64,
    /// and 256 bytes for what is beside them.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// // 11027 bits are 1408 bytes in whole lines.
    /// assert_eq!(RedisBloom::reserve(0.01, 1000)?.memory_bytes(), 1408 + 256);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.links.iter().map(|link| link.layout.memory_bytes() as usize).sum()
    }

    /// The most [memory](Self::memory_bytes) that the chain may take, in bytes: the limit under
    /// which it was loaded ([`from_scandump`](Self::from_scandump), [`Loader::new`]). An insert
    /// that would let the chain grow beyond it is an error. A filter that was built here has no
    /// limit, which is `usize::MAX`.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let filter = RedisBloom::reserve(0.01, 2)?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let mut copy = RedisBloom::from_scandump(filter.to_loadchunks(), filter.memory_bytes())?;
    /// assert_eq!(copy.max_bytes(), filter.memory_bytes());
    /// assert_eq!(copy.insert_batch(&["a", "b"])?, 2);
    /// assert_eq!(
    ///     copy.insert("c").unwrap_err().to_string(),
    ///     "key 0 was not inserted: with a further filter the chain would take 640 bytes, more than its limit of 320 bytes"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// The fraction of all bits that are set. It is near one half where the newest filter is full,
    /// and less where it has just been begun.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 10)?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.fill_ratio(), 8.0 / 128.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let ones: u64 = self.links.iter().map(Link::ones).sum();
        let bits: u64 = self.links.iter().map(|link| link.layout.used_bits()).sum();
        ones as f64 / bits as f64
    }

    /// The number of distinct keys inserted, as RedisBloom counts them: too small by the false
    /// positives among them.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"])?, 2);
    /// assert_eq!(filter.estimated_len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        usize::try_from(self.info().items).unwrap_or(usize::MAX)
    }

    /// The false-positive rate of the filter as it is: the chance that any filter of the chain has
    /// all the bits of a key that is in none, computed from the fractions of their bits that are
    /// set.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// for key in 0..1000 {
    ///     filter.insert(&key.to_string())?;
    /// }
    /// assert!((0.004..0.006).contains(&filter.current_false_positive_rate())); // half of it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        let miss = |link: &Link| 1.0 - pow(link.fill_ratio(), link.layout.hash_functions);
        1.0 - self.links.iter().map(miss).product::<f64>()
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
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::reserve(0.01, 1000)?;
    /// filter.insert("a")?;
    /// let copy = filter.try_clone()?;
    /// filter.insert("b")?;
    /// assert!(copy.contains("a") && !copy.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let mut links = Vec::new();
        links.try_reserve(self.links.len()).map_err(|_| {
            BuildError(BuildErrorKind::OutOfMemory {
                bytes: size_of::<Link>() * self.links.len(),
            })
        })?;
        for link in &self.links {
            links.push(Link {
                flat: link.flat.try_clone()?,
                ..*link
            });
        }
        Ok(Self { links, ..*self })
    }
}

/// Aborts if the allocation fails; [`try_clone`](RedisBloom::try_clone) does not.
impl Clone for RedisBloom {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<u8>(self.memory_bytes());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// Same layout, counts and bits: the same dump.
impl PartialEq for RedisBloom {
    fn eq(&self, other: &Self) -> bool {
        (self.options, self.expansion) == (other.options, other.expansion) && self.links == other.links
    }
}

impl PartialEq for Link {
    fn eq(&self, other: &Self) -> bool {
        (self.layout, self.items) == (other.layout, other.items) && self.flat.words().eq(other.flat.words())
    }
}

/// A summary: what `BF.INFO` says.
impl fmt::Debug for RedisBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Info {
            capacity,
            size: _,
            filters,
            items,
            expansion,
        } = self.info();
        f.debug_struct("RedisBloom")
            .field("capacity", &capacity)
            .field("filters", &filters)
            .field("items", &items)
            .field("expansion", &expansion)
            .finish_non_exhaustive()
    }
}
