//! The statistics of a chain: `BF.INFO`, `BF.DEBUG`, and those of every filter.

use super::{BloomLayer, RedisBloom, options};
use crate::logarithm::pow;
use core::fmt;
use lanebloom::Statistics;

/// The reply of `BF.INFO`; made by [`RedisBloom::info`].
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
    /// `Number of items inserted`: inserts that returned true.
    pub items: u64,
    /// `Expansion rate`; `None` if the filter does not scale.
    pub expansion: Option<u32>,
}

/// A layer of the chain, as `BF.DEBUG` describes it; one of [`RedisBloom::layers`].
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
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
    /// filter.insert("a")?;
    /// let info = filter.info();
    /// assert_eq!((info.capacity, info.size, info.filters), (10, 112, 1));
    /// assert_eq!((info.items, info.expansion), (1, Some(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("BF.INFO", "BF.CARD"))]
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
    /// let filter = lanebloom_formats::RedisBloom::with_capacity(10, 0.01)?;
    /// let layer = filter.layers().next().unwrap();
    /// assert_eq!((layer.bits, layer.hash_functions), (128, 8));
    /// assert_eq!((layer.capacity, layer.items), (10, 0));
    /// assert_eq!(layer.false_positive_rate, 0.005);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
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

    /// The most bytes of [memory](Self::memory_bytes) that the chain may take: the limit under
    /// which it was [loaded](Self::from_scandump). An insert that would grow it beyond is an error.
    /// A filter that was built here has no limit: `usize::MAX`.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let filter = RedisBloom::with_capacity(2, 0.01)?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let mut copy = RedisBloom::from_scandump(filter.to_loadchunks(), 320)?;
    /// assert_eq!(copy.max_bytes(), 320);
    /// assert_eq!(copy.insert_batch(&["a", "b"])?, 2);
    /// let error = copy.insert("c").unwrap_err().to_string();
    /// assert!(error.ends_with("640 bytes, more than its limit of 320 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// Fill, number of keys, false-positive rate and size now, from one pass over the content.
    ///
    /// The fill is near one half if the newest layer is full, and less if it is new. The number of
    /// keys is RedisBloom's count, too small by the false positives among them. The rate is the
    /// chance that any layer has all the bits of an absent key. The filter is overfull if that is
    /// more than full layers explain: a chain grows before, but a dump may say anything.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all((0..1000).map(|id| format!("{id}")))?;
    /// let now = filter.statistics();
    /// assert!(now.len > 990 && (0.4..0.6).contains(&now.fill_ratio));
    /// assert!((0.004..0.006).contains(&now.false_positive_rate) && !now.is_overfull);
    /// assert!((13.3..13.4).contains(&now.bits_per_key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("bits_per_key", "fill_ratio", "is_overfull"))]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (mut ones, mut bits, mut none, mut none_if_full) = (0, 0, 1.0, 1.0);
        for layer in &self.layers {
            let (set, used) = (layer.ones(), layer.layout.used_bits());
            ones += set;
            bits += used;
            none *= 1.0 - pow(set as f64 / used as f64, layer.layout.hash_functions.into());
            none_if_full *= 1.0 - layer.layout.overfull_rate();
        }
        let len = usize::try_from(self.info().items).unwrap_or(usize::MAX);
        let mut now = Statistics::new(ones as f64 / bits as f64, len, 1.0 - none);
        now.bits_per_key = 8.0 * self.memory_bytes() as f64 / self.expected_keys() as f64;
        now.is_overfull = none < none_if_full;
        now
    }
}

/// Statistics by the names that other filters give them.
///
/// ```
/// let mut filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
/// assert!(filter.is_empty());
/// filter.insert_all((0..1500).map(|id| format!("{id}")))?;
/// assert!(!filter.is_empty());
///
/// // A layer for 1000 keys at 0.5%, and one for 2000 at 0.25%.
/// assert_eq!(filter.expected_keys(), 3000);
/// assert!((0.0074..0.0075).contains(&filter.false_positive_rate()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl RedisBloom {
    /// Whether the filter holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.items == 0)
    }

    /// The number of keys that all layers of the chain together are for: its
    /// [capacity](Info::capacity).
    #[doc(alias = "capacity")]
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        usize::try_from(self.info().capacity).unwrap_or(usize::MAX)
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in: the
    /// rates of all layers of the chain together.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        1.0 - self.layers.iter().map(|layer| 1.0 - layer.layout.rate).product::<f64>()
    }
}

/// A summary: what `BF.INFO` replies.
impl fmt::Debug for RedisBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        f.debug_struct("RedisBloom")
            .field("capacity", &info.capacity)
            .field("filters", &info.filters)
            .field("items", &info.items)
            .field("expansion", &info.expansion)
            .finish_non_exhaustive()
    }
}
