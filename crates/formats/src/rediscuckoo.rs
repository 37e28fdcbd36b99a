//! Redis' cuckoo filter, bit for bit. [`RedisCuckoo`] is the filter that `CF.RESERVE` makes, with
//! the same answers, the same growth and the same dump. A filter can be taken out of Redis and used
//! in process, or built here and put into Redis. The crate `lanebloom-redis` transfers the chunks.
//! Any other client works with a [`Loader`](crate::redisbloom::Loader).
//!
//! Use it for filters that are in Redis already. If you own both ends, use a
//! [`CuckooFilter`](lanebloom::CuckooFilter): its inserts and removes need no exclusive access, and
//! its false-positive rate is what you ask for. Here a fingerprint has 8 bits, so the rate of one
//! layer of the chain is `2 * bucket size / 255` when it is full: 1.6% with buckets of 2, 3.1%
//! with 4. Every further layer of the chain adds as much. By default the chain grows by filters of
//! the same size: a chain of 18 had 12% (`CF.RESERVE f 64 BUCKETSIZE 1`, 1000 keys).
//!
//! # Keys and sharing
//!
//! A key is a string of bytes, as in Redis: `str`, `String`, `[u8]`, `Vec<u8>`. Lookups take
//! `&self`: any number of threads share a filter as `Arc<RedisCuckoo>`. Changes take `&mut self`:
//! an insert moves fingerprints as the module does, one after another, so that both sides stay the
//! same to the bit.
//!
//! **Remove only keys that were inserted.** The removal of another key with the same fingerprint
//! removes that key's fingerprint, and the filter misses a key.
//!
//! # Versions
//!
//! The layout is that of RedisBloom 2.2 to 2.8 and of Redis 8.
//! `crates/redis/tests/servers/rediscuckoo_module.rs` runs it beside the module 2.8. A filter of
//! the chain has at most 2^32 - 1 slots here: the module computes a slot's number in 32 bits, and
//! larger filters of its own collide.
//!
//! Strangers can make keys that collide under MurmurHash64A: [the module `hash`](lanebloom::hash).

mod dump;
mod layer;

use crate::murmur2::murmur64a;
use crate::redisbloom::error::{InsertErrorKind, RedisBloomInsertError};
use crate::redisbloom::layout::{BESIDE_CONTENT, layer_memory};
use crate::{push, told};
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::Prefetching;
use lanebloom::{Answers, BuildError, Statistics};
use layer::{CuckooLayer, RedisAddress};

/// Redis' `CF` filter, bit for bit: a chain of cuckoo filters that grows when one is full.
///
/// [The module](self) has the costs, and what may be shared.
///
/// ```
/// // CF.RESERVE seen 1000, CF.ADD seen ann, CF.ADDNX seen ann, CF.DEL seen ann
/// let mut seen = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
/// seen.insert("ann")?;
/// assert!(!seen.insert_unique("ann")? && seen.contains("ann"));
/// assert!(seen.remove("ann") && !seen.contains("ann"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("CF.RESERVE", "CF"))]
pub struct RedisCuckoo {
    /// At least one; the newest is the last.
    layers: Vec<CuckooLayer>,
    settings: Settings,
    items: u64,
    /// Removed keys since the chain was last compacted.
    deletes: u64,
    /// The most bytes of memory that the chain may grow to.
    max_bytes: u64,
}

// A Vec may have twice the capacity that it needs.
const _: () = assert!(2 * size_of::<CuckooLayer>() as u64 <= BESIDE_CONTENT);

/// The most layers of a chain: the module's default of `CF_MAX_EXPANSIONS`.
const MOST_LAYERS: usize = 32;

/// The arguments of `CF.RESERVE`, after its rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    /// Buckets of the first layer: a power of two.
    buckets: u64,
    /// Slots of a bucket, at least 1.
    bucket_size: u8,
    /// At least 1.
    max_iterations: u16,
    /// A power of two, or 0: the chain does not grow.
    expansion: u16,
}

/// The statistics of a [`RedisCuckoo`], as `CF.INFO` returns them; made by [`RedisCuckoo::info`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CuckooInfo {
    /// Bytes that the module counts: the slots, and its own structures.
    pub size: u64,
    /// Buckets of the first layer of the chain.
    pub buckets: u64,
    /// Layers of the chain.
    pub filters: usize,
    /// Keys in the filter, each as often as it was inserted.
    pub items: u64,
    /// Keys that were removed since the chain was last compacted.
    pub deleted: u64,
    /// Slots of a bucket.
    pub bucket_size: u8,
    /// How many times as many buckets each further filter has; 0 if the chain does not grow.
    pub expansion: u16,
    /// How many fingerprints an insert moves before it gives up.
    pub max_iterations: u16,
}

/// Sizes a [`RedisCuckoo`]; made by [`RedisCuckoo::builder`]. The defaults are the module's.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    capacity: u64,
    /// Without the number of buckets, and the expansion not rounded.
    settings: Settings,
}

impl Builder {
    /// The slots of the first filter, rounded up to a power of two of buckets: `CF.RESERVE`'s
    /// capacity. 1024 by default, as when `CF.ADD` makes a filter.
    ///
    /// A cuckoo filter of this kind is full at some 65% to 95% of its slots.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisCuckoo::builder().capacity(5000).build()?;
    /// assert_eq!(filter.info().buckets, 4096);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = capacity;
        self
    }

    /// Slots of a bucket: `BUCKETSIZE`, 1 to 255. 2 by default. More slots fill the filter better,
    /// at more false positives.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisCuckoo::builder().bucket_size(4).build()?;
    /// assert_eq!((filter.info().buckets, filter.info().bucket_size), (256, 4));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "BUCKETSIZE")]
    pub fn bucket_size(mut self, slots: u8) -> Self {
        self.settings.bucket_size = slots;
        self
    }

    /// How many fingerprints an insert moves before it gives up and lets the chain grow:
    /// `MAXITERATIONS`, at least 1. 20 by default.
    ///
    /// ```
    /// let builder = lanebloom_formats::RedisCuckoo::builder().max_iterations(500);
    /// let filter = builder.build()?;
    /// assert_eq!(filter.info().max_iterations, 500);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "MAXITERATIONS")]
    pub fn max_iterations(mut self, iterations: u16) -> Self {
        self.settings.max_iterations = iterations;
        self
    }

    /// How many times as many buckets a new layer of the chain has as the one before, rounded up
    /// to a power of two: `EXPANSION`, 0 to 32768. 1 by default. 0 never grows: inserts into a full
    /// filter are errors.
    ///
    /// ```
    /// let builder = lanebloom_formats::RedisCuckoo::builder().capacity(4);
    /// let mut filter = builder.bucket_size(1).expansion(0).build()?;
    /// let keys: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    /// let error = filter.insert_batch(&keys).unwrap_err();
    /// assert!(error.is_full() && error.inserted() <= 4);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "EXPANSION")]
    pub fn expansion(mut self, expansion: u16) -> Self {
        self.settings.expansion = expansion;
        self
    }

    /// Allocates the first layer of the chain.
    ///
    /// # Errors
    ///
    /// Fails as `CF.RESERVE` does: if the bucket size or the iterations are 0, the capacity is
    /// below two buckets, or the expansion is above 32768. Also fails if the filter has more than
    /// 2^32 - 1 slots, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = lanebloom_formats::RedisCuckoo::with_capacity(3).unwrap_err();
    /// assert_eq!(error.to_string(), "a capacity of 3 is below two buckets of 2");
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn build(self) -> Result<RedisCuckoo, BuildError> {
        let Self { capacity, settings } = self;
        let Settings {
            bucket_size,
            max_iterations,
            expansion,
            ..
        } = settings;
        let problem = if bucket_size == 0 || max_iterations == 0 {
            format!("a bucket size of {bucket_size} and {max_iterations} iterations: both must be at least 1")
        } else if capacity < 2 * u64::from(bucket_size) {
            format!("a capacity of {capacity} is below two buckets of {bucket_size}")
        } else if expansion > 1 << 15 {
            format!("an expansion of {expansion} is above 32768")
        } else {
            let buckets = (capacity / u64::from(bucket_size)).checked_next_power_of_two();
            let settings = Settings {
                // Too many are refused below.
                buckets: buckets.unwrap_or(1 << 63),
                expansion: if expansion == 0 {
                    0
                } else {
                    expansion.next_power_of_two()
                },
                ..settings
            };
            return RedisCuckoo::empty(settings, 1, u64::MAX);
        };
        Err(BuildError::new(problem))
    }
}

impl Settings {
    /// The number of buckets of layer `number`; `None` if 32 bits cannot number its slots.
    fn buckets_of(self, number: usize) -> Option<u64> {
        let growth = u64::from(self.expansion).checked_pow(u32::try_from(number).ok()?)?;
        let buckets = self.buckets.checked_mul(growth)?;
        let slots = buckets.checked_mul(self.bucket_size.into())?;
        (slots <= u32::MAX.into()).then_some(buckets)
    }

    /// Bytes of memory of layer `number`, if 32 bits can number its slots.
    fn memory_of(self, number: usize) -> Option<u64> {
        Some(layer_memory(self.buckets_of(number)? * u64::from(self.bucket_size)))
    }

    fn layer(self, number: usize) -> Result<CuckooLayer, BuildError> {
        let Some(buckets) = self.buckets_of(number) else {
            return Err(BuildError::new(format!(
                "layer {number} of the chain has more than {} slots, which are numbered in 32 bits",
                u32::MAX
            )));
        };
        CuckooLayer::new(buckets as usize, self.bucket_size.into())
    }
}

fn address(key: &[u8]) -> RedisAddress {
    RedisAddress::of(murmur64a(key, 0))
}

impl RedisCuckoo {
    /// The filter that `CF.RESERVE key capacity` makes.
    ///
    /// Fails as [`Builder::build`] does.
    ///
    /// ```
    /// use lanebloom_formats::RedisCuckoo;
    ///
    /// let filter = RedisCuckoo::with_capacity(1000)?;
    /// assert!(filter == RedisCuckoo::builder().capacity(1000).build()?);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("reserve", "CF.RESERVE"))]
    pub fn with_capacity(capacity: u64) -> Result<Self, BuildError> {
        Self::builder().capacity(capacity).build()
    }

    /// A builder, for all options.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisCuckoo::builder().build()?;
    /// assert_eq!((filter.info().buckets, filter.info().expansion), (512, 1));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            capacity: 1024,
            settings: Settings {
                buckets: 0,
                bucket_size: 2,
                max_iterations: 20,
                expansion: 1,
            },
        }
    }

    /// A chain of empty layers.
    fn empty(settings: Settings, count: usize, max_bytes: u64) -> Result<Self, BuildError> {
        let mut layers = Vec::new();
        for number in 0..count {
            push(&mut layers, settings.layer(number)?)?;
        }
        Ok(Self {
            layers,
            settings,
            items: 0,
            deletes: 0,
            max_bytes,
        })
    }

    /// The next layer of the chain.
    fn grow(&mut self) -> Result<(), InsertErrorKind> {
        let number = self.layers.len();
        if self.settings.expansion == 0 {
            return Err(InsertErrorKind::NoFreeSlot);
        }
        if let Some(memory) = self.settings.memory_of(number) {
            InsertErrorKind::check_limit(self.memory_bytes() as u64 + memory, self.max_bytes)?;
        }
        let layer = self.settings.layer(number);
        layer
            .and_then(|layer| push(&mut self.layers, layer))
            .map_err(InsertErrorKind::Growth)
    }

    /// Inserts `key`, also if it is there already: `CF.ADD`.
    ///
    /// # Errors
    ///
    /// Fails if the filter is full and [does not grow](Builder::expansion), if the chain has 32
    /// filters (the module's limit, by default), if it would grow beyond
    /// [`max_bytes`](Self::max_bytes), or if the allocation fails. Then it is as before.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.count("a"), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.ADD")]
    pub fn insert<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> Result<(), RedisBloomInsertError> {
        self.add(address(key.as_ref())).map_err(|kind| kind.after(0))
    }

    /// Inserts `key` if it does not seem to be there: `CF.ADDNX`. Returns whether this call
    /// inserted it.
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// assert!(filter.insert_unique("a")? && !filter.insert_unique("a")?);
    /// assert_eq!(filter.count("a"), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("CF.ADDNX", "CF.INSERTNX"))]
    pub fn insert_unique<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> Result<bool, RedisBloomInsertError> {
        let address = address(key.as_ref());
        // The module checks this first.
        self.check_length().map_err(|kind| kind.after(0))?;
        if self.holds(address) {
            return Ok(false);
        }
        self.add(address).map_err(|kind| kind.after(0))?;
        Ok(true)
    }

    fn check_length(&self) -> Result<(), InsertErrorKind> {
        if self.layers.len() < MOST_LAYERS {
            Ok(())
        } else {
            Err(InsertErrorKind::MostFilters(MOST_LAYERS))
        }
    }

    /// Inserts every key as by [`insert`](Self::insert), in order: `CF.INSERT`.
    ///
    /// # Errors
    ///
    /// Fails like [`insert`](Self::insert). The keys before the one that failed are in the filter
    /// ([`inserted`](RedisBloomInsertError::inserted)), and none after it. (`CF.INSERT` tries those
    /// too.)
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert_batch(&["a", "b", "a"])?;
    /// assert_eq!((filter.count("a"), filter.info().items), (2, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.INSERT")]
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<(), RedisBloomInsertError> {
        for (inserted, key) in keys.iter().enumerate() {
            self.add(address(key.as_ref())).map_err(|kind| kind.after(inserted))?;
        }
        Ok(())
    }

    /// The module's `CuckooFilter_InsertFP`.
    fn add(&mut self, address: RedisAddress) -> Result<(), InsertErrorKind> {
        self.check_length()?;
        loop {
            let inserted = self.layers.iter_mut().rev().any(|layer| layer.put(address)) || {
                let newest = self.layers.last_mut().expect("a chain has a layer");
                newest.kick(address, self.settings.max_iterations)
            };
            if inserted {
                self.items = self.items.wrapping_add(1);
                return Ok(());
            }
            self.grow()?;
        }
    }

    /// Removes `key` once; returns whether it seemed to be there: `CF.DEL`.
    ///
    /// **Remove only keys that were inserted**, as often as they were.
    ///
    /// If a tenth of the keys were removed since the last time, it compacts the chain as
    /// [`compact`](Self::compact) does, up to the first filter that cannot be emptied.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert("a")?;
    /// assert!(filter.remove("a") && !filter.remove("a"));
    /// assert_eq!((filter.info().items, filter.info().deleted), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.DEL")]
    pub fn remove<K: AsRef<[u8]> + ?Sized>(&mut self, key: &K) -> bool {
        let address = address(key.as_ref());
        if !self.layers.iter_mut().rev().any(|layer| layer.take(address)) {
            return false;
        }
        self.items = self.items.wrapping_sub(1);
        self.deletes = self.deletes.wrapping_add(1);
        if self.layers.len() > 1 && self.deletes as f64 > self.items as f64 * 0.10 {
            self.move_down(false);
        }
        true
    }

    /// Removes every key as by [`remove`](Self::remove), in order; returns how many seemed to be
    /// there, and passes on which. [`Answers`] has the places for `removed`. **Remove only keys
    /// that were inserted**: the answers do not find absent keys out beforehand.
    ///
    /// # Panics
    ///
    /// If `removed` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert_batch(&["a", "b"])?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_into(&["c", "a"], &mut removed), 1);
    /// assert!(removed == [false, true] && filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_batch_into<K: AsRef<[u8]>>(&mut self, keys: &[K], removed: impl Answers) -> usize {
        let mut sum = 0;
        removed.receive(keys.len(), |place| {
            told(place, |each| {
                for (start, keys) in (0..).step_by(64).zip(keys.chunks(64)) {
                    let bits = keys.iter().enumerate().map(|(i, key)| u64::from(self.remove(key)) << i);
                    let removed = bits.fold(0, |all, bit| all | bit);
                    each(start, keys.len(), removed);
                    sum += removed.count_ones() as usize;
                }
            });
        });
        sum
    }

    /// Moves fingerprints of the newer layers of the chain into free slots of the older ones, and
    /// drops the newest filters if they are empty then: `CF.COMPACT`.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(64)?;
    /// let keys: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    /// filter.insert_batch(&keys)?;
    /// assert_eq!(filter.info().filters, 2);
    /// keys[..8].iter().for_each(|key| assert!(filter.remove(key)));
    /// filter.compact();
    /// assert_eq!(filter.info().deleted, 0);
    /// assert!(keys[8..].iter().all(|key| filter.contains(key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.COMPACT")]
    pub fn compact(&mut self) {
        self.move_down(true);
    }

    /// The module's `CuckooFilter_Compact`. `all` goes on after a filter that cannot be emptied.
    fn move_down(&mut self, all: bool) {
        for number in (1..self.layers.len()).rev() {
            let (older, newer) = self.layers.split_at_mut(number);
            let emptied = newer[0].move_into(older);
            if emptied && newer.len() == 1 {
                self.layers.pop();
            }
            if !emptied && !all {
                break;
            }
        }
        self.deletes = 0;
    }

    /// Whether `key` may be in the filter: `CF.EXISTS`. `false` is certain.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert("a")?;
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.EXISTS")]
    #[inline]
    #[must_use]
    pub fn contains<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> bool {
        self.holds(address(key.as_ref()))
    }

    #[inline]
    fn holds(&self, address: RedisAddress) -> bool {
        self.layers.iter().any(|layer| layer.holds(address))
    }

    /// Passes on whether each key may be in the filter: `CF.MEXISTS`. [`Answers`] has the places
    /// for `out`. If the filter is larger than the caches, the buckets of many keys are prefetched
    /// together.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["b", "a"], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.MEXISTS")]
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], out: impl Answers) {
        out.receive(keys.len(), |place| told(place, |each| self.look_up(keys, each)));
    }

    /// Looks keys up; calls `each(start, len, bitmap)` for every window.
    fn look_up<K: AsRef<[u8]>>(&self, keys: &[K], mut each: &mut dyn FnMut(usize, usize, u64)) {
        let Some((first, others)) = self.layers.split_first() else {
            return;
        };
        let prefetching = |layer: &CuckooLayer| Prefetching::lookups(layer.bytes().len(), 2);
        let place = |_: &mut _, _, key: &K| address(key.as_ref());
        let prefetch = |_: &mut _, _, _: &K, hash: &RedisAddress, hint| first.prefetch(*hash, hint);
        prefetching(first).tiles(&mut each, keys, place, prefetch, |each, start, hashes| {
            let mut found = Prefetching::answers(hashes.iter().map(|hash| first.holds(*hash)));
            for layer in others {
                let open = !found & u64::MAX >> (Prefetching::TILE - hashes.len());
                if let Some(hint) = prefetching(layer).hint() {
                    Prefetching::each_one(open, |i| layer.prefetch(hashes[i], hint));
                }
                Prefetching::each_one(open, |i| found |= u64::from(layer.holds(hashes[i])) << i);
            }
            each(start, hashes.len(), found);
            true
        });
    }

    /// How often `key` may be in the filter: `CF.COUNT`. Never less than it was inserted and not
    /// removed.
    ///
    /// A key whose two buckets are the same counts twice, in the module too.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert_batch(&["a", "a", "b"])?;
    /// assert_eq!(["a", "b", "c"].map(|key| filter.count(key)), [2, 1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.COUNT")]
    #[must_use]
    pub fn count<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> u64 {
        let address = address(key.as_ref());
        self.layers.iter().map(|layer| layer.count(address)).sum()
    }

    /// The reply of `CF.INFO`.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// filter.insert("a")?;
    /// let info = filter.info();
    /// assert_eq!((info.size, info.buckets, info.bucket_size), (1080, 512, 2));
    /// assert_eq!((info.items, info.deleted, info.filters), (1, 0, 1));
    /// assert_eq!((info.expansion, info.max_iterations), (1, 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.INFO")]
    #[must_use]
    pub fn info(&self) -> CuckooInfo {
        /// Bytes of the module's `CuckooFilter`, and of its `SubCF`.
        const BESIDE: [u64; 2] = [40, 16];
        CuckooInfo {
            size: self.slots() as u64 + BESIDE[0] + BESIDE[1] * self.layers.len() as u64,
            buckets: self.settings.buckets,
            filters: self.layers.len(),
            items: self.items,
            deleted: self.deletes,
            bucket_size: self.settings.bucket_size,
            expansion: self.settings.expansion,
            max_iterations: self.settings.max_iterations,
        }
    }

    /// The bytes of memory of the chain: for each layer, its slots in whole lines of 64, and 256
    /// bytes.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// assert_eq!(filter.memory_bytes(), 1024 + 256);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let memory = |layer: &CuckooLayer| layer_memory(layer.bytes().len() as u64) as usize;
        self.layers.iter().map(memory).sum()
    }

    /// The number of slots, each of a byte.
    fn slots(&self) -> usize {
        self.layers.iter().map(|layer| layer.bytes().len()).sum()
    }

    /// The most bytes of [memory](Self::memory_bytes) that the chain may take, as
    /// [`RedisBloom::max_bytes`](crate::RedisBloom::max_bytes).
    ///
    /// ```
    /// use lanebloom_formats::RedisCuckoo;
    ///
    /// let filter = RedisCuckoo::with_capacity(64)?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let mut copy = RedisCuckoo::from_scandump(filter.to_loadchunks(), 320)?;
    /// assert_eq!(copy.max_bytes(), 320);
    /// let keys: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    /// let error = copy.insert_batch(&keys).unwrap_err().to_string();
    /// assert!(error.ends_with("640 bytes, more than its limit of 320 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// Fill, number of keys and false-positive rate now, from one pass over the slots. The number
    /// of keys is the module's count. The rate is the chance that an absent key is taken for
    /// present, the mean over the buckets. A slot takes 8 bits. A chain refuses keys or grows
    /// before it is overfull.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisCuckoo::with_capacity(1024)?;
    /// for key in 0..900 {
    ///     filter.insert(&key.to_string())?;
    /// }
    /// let now = filter.statistics();
    /// let absent = (1000..100_000).filter(|key| filter.contains(&key.to_string()));
    /// let measured = absent.count() as f64 / 99_000.0;
    /// assert!((measured / now.false_positive_rate - 1.0).abs() < 0.2);
    /// assert!(now.len == 900 && now.fill_ratio > 0.4 && now.bits_per_key == 8.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let taken: usize = self.layers.iter().map(CuckooLayer::taken).sum();
        let absent = self.layers.iter().map(CuckooLayer::absent).product::<f64>();
        let len = usize::try_from(self.items).unwrap_or(usize::MAX);
        let mut now = Statistics::new(taken as f64 / self.slots() as f64, len, 1.0 - absent);
        now.bits_per_key = 8.0;
        now
    }
}

/// Same settings, counts and slots: the same dump.
impl PartialEq for RedisCuckoo {
    fn eq(&self, other: &Self) -> bool {
        let counts = |filter: &Self| (filter.settings, filter.items, filter.deletes);
        counts(self) == counts(other) && self.layers == other.layers
    }
}

/// A summary: the statistics.
impl core::fmt::Debug for RedisCuckoo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RedisCuckoo")
            .field("info", &self.info())
            .finish_non_exhaustive()
    }
}
