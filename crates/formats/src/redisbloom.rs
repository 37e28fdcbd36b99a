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
//! The way is that from [Guava](crate::guava#moving-a-service-over): a service takes the filter out
//! of Redis and looks up in the copy. Meanwhile it fills a
//! [`ConcurrentBloom`](lanebloom::ConcurrentBloom) from the source of truth, with room for more
//! keys than it [has](RedisBloom::info).
//!
//! **Strangers can make keys that collide** under MurmurHash64A, whatever its seed, as under every
//! hash without a key: [the module `hash`](lanebloom::hash) says more.

// The first on the type's page.
mod filter;

mod dump;
pub(crate) mod error;
pub(crate) mod layout;
mod statistics;

use crate::flat::Flat;
pub use crate::scandump::{Dumped, LoadChunks, Loader};
use crate::{or_abort, push};
use alloc::vec::Vec;
use lanebloom::BuildError;
use layout::{Hash, LayerIndexes, LayerLayout, TIGHTENING, options};
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
const _: () = assert!(2 * size_of::<BloomLayer>() as u64 <= layout::BESIDE_CONTENT);

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
    /// With 1, a chain for 1% ends at 1067 times its capacity, in the module too: rates halve from
    /// layer to layer, and the next one would be 0.
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
