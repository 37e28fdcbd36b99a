//! The statistics of a chain: `BF.INFO`, `BF.DEBUG`, and those of every filter.

use super::{BloomLayer, RedisBloom, options};
use crate::logarithm::pow;
use core::fmt;
use lanebloom::Statistics;

/// The reply of `BF.INFO`; made by [`RedisBloom::info`].
///
/// # Examples
///
/// ```
/// let info = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?.info();
/// assert_eq!((info.capacity, info.size, info.filters), (10, 112, 1));
/// assert_eq!((info.items, info.expansion), (0, Some(2)));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// `Capacity`: the keys that all layers of the chain together are for.
    pub capacity: u64,
    /// `Size`: the bytes of the filter in Redis. ([`memory_bytes`](RedisBloom::memory_bytes) are
    /// the bytes here.)
    pub size: u64,
    /// `Number of filters` in the chain.
    pub filters: usize,
    /// `Number of items inserted`: inserts that answered true.
    pub items: u64,
    /// `Expansion rate`; `None` if the filter does not scale.
    pub expansion: Option<u32>,
}

/// A layer of the chain, as `BF.DEBUG` describes it; one of [`RedisBloom::layers`].
///
/// # Examples
///
/// ```
/// let filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
/// let layer = filter.layers().next().unwrap();
/// assert_eq!((layer.bits, layer.hash_functions), (128, 8));
/// assert_eq!((layer.capacity, layer.items), (10, 0));
/// assert_eq!(layer.false_positive_rate, 0.005);
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LayerInfo {
    /// The number of bits, a multiple of 64.
    pub bits: u64,
    /// The bits of a key (two may be the same).
    pub hash_functions: u32,
    /// The number of counted keys at which the chain grows.
    pub capacity: u64,
    /// The keys that were counted: inserts that changed it.
    pub items: u64,
    /// The rate for which it was sized.
    pub false_positive_rate: f64,
}

/// Statistics.
impl RedisBloom {
    /// The reply of `BF.INFO`.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
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
        const LAYER: u64 = 64;
        let sum = |of: fn(&BloomLayer) -> u64| self.layers.iter().map(of).fold(0, u64::saturating_add);
        Info {
            capacity: sum(|layer| layer.layout.capacity),
            size: CHAIN + sum(|layer| LAYER + layer.layout.bytes()),
            filters: self.layers.len(),
            items: sum(|layer| layer.items),
            expansion: (self.options & options::NO_SCALING == 0).then_some(self.expansion),
        }
    }

    /// The layers of the chain, from the oldest to the newest, as `BF.DEBUG` says.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
    /// for key in 0..100 {
    ///     filter.insert(&key.to_string())?;
    /// }
    /// assert!(filter.layers().map(|layer| layer.bits).eq([128, 256, 576, 1280]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.DEBUG")]
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo> + '_ {
        self.layers.iter().map(|layer| LayerInfo {
            bits: layer.layout.bits(),
            hash_functions: layer.layout.hash_functions,
            capacity: layer.layout.capacity,
            items: layer.items,
            false_positive_rate: layer.layout.rate,
        })
    }

    /// The bytes of memory of the chain: for each filter, its bits in whole lines of 64, and 256
    /// bytes.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// // 11027 bits are 1408 bytes in whole lines.
    /// assert_eq!(RedisBloom::with_capacity(1000, 0.01)?.memory_bytes(), 1408 + 256);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.layers
            .iter()
            .map(|layer| layer.layout.memory_bytes() as usize)
            .sum()
    }

    /// The most bytes of [memory](Self::memory_bytes) that the chain may take: the limit of
    /// [`from_scandump`](Self::from_scandump) or [`Loader::new`](super::Loader::new). An insert
    /// that would grow the chain beyond it is an error. A filter that was built here has no limit:
    /// `usize::MAX`.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let filter = RedisBloom::with_capacity(2, 0.01)?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let limit = filter.memory_bytes();
    /// let mut copy = RedisBloom::from_scandump(filter.to_loadchunks(), limit)?;
    /// assert_eq!(copy.max_bytes(), filter.memory_bytes());
    /// assert_eq!(copy.insert_batch(&["a", "b"])?, 2);
    /// let error = copy.insert("c").unwrap_err().to_string();
    /// assert!(error.ends_with("640 bytes, more than its limit of 320 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// The number of keys that the chain is for: RedisBloom's capacity.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "capacity")]
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        usize::try_from(self.info().capacity).unwrap_or(usize::MAX)
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisBloom::with_capacity(100_000, 0.01)?;
    /// assert!((11.0..11.1).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.expected_keys() as f64
    }

    /// Whether the filter holds nothing.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_empty());
    /// filter.insert("a")?;
    /// assert!(!filter.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.items == 0)
    }

    /// The share of set bits. It is near one half if the newest filter is full, and less if it is
    /// new.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.fill_ratio(), 8.0 / 128.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.statistics().fill_ratio
    }

    /// RedisBloom's count of distinct keys: too small by the false positives among them.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&["a", "b", "a"])?, 2);
    /// assert_eq!(filter.estimated_len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.CARD")]
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        usize::try_from(self.info().items).unwrap_or(usize::MAX)
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in: the
    /// rates of all layers of the chain together.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// let half = 0.00499..0.00501; // the other half is for the filters to come
    /// assert!(half.contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        compound(self.layers.iter().map(|layer| layer.layout.rate))
    }

    /// The false-positive rate now: the chance that any layer of the chain has all the bits of an
    /// absent key, computed from the share of set bits in each.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_all((0..1000).map(|id| format!("{id}")))?;
    /// assert!((0.004..0.006).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.statistics().false_positive_rate
    }

    /// Fill, number of keys and false-positive rate now, from one pass over the content.
    ///
    /// ```
    /// use lanebloom_formats::{Statistics, RedisBloom};
    ///
    /// let mut filter = RedisBloom::with_capacity(10, 0.01)?;
    /// filter.insert("a")?;
    /// let Statistics { fill_ratio, len, .. } = filter.statistics();
    /// assert_eq!((fill_ratio, len), (8.0 / 128.0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (mut ones, mut bits) = (0, 0);
        let rates = self.layers.iter().map(|layer| {
            let (set, used) = (layer.ones(), layer.layout.used_bits());
            ones += set;
            bits += used;
            pow(set as f64 / used as f64, layer.layout.hash_functions.into())
        });
        let false_positive_rate = compound(rates);
        Statistics::new(ones as f64 / bits as f64, self.estimated_len(), false_positive_rate)
    }
}

/// The chance that any of several filters has all the bits of a key.
fn compound(rates: impl Iterator<Item = f64>) -> f64 {
    1.0 - rates.map(|rate| 1.0 - rate).product::<f64>()
}

/// A summary: the reply of `BF.INFO`.
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
