//! The statistics of a filter: size, fill, number of keys, false-positive rate. (rustdoc sorts
//! generic impls on an alias' page by file: lookups, in `lookups.rs`, come before these.)

use crate::filter::traits::Engine;
use crate::filter::{Filter, Statistics};

/// Statistics. Those of the content read the whole filter, each word at some moment.
impl<E: Engine, S> Filter<E, S> {
    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.engine.expected_keys()
    }

    /// The bytes of memory of the content. [How to plan](crate::docs::cost#memory) many filters'.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::builder().memory_budget(1 << 20).build()?;
    /// assert_eq!(filter.memory_bytes(), 1 << 20);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes()
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1_000_000, 0.01)?;
    /// assert!((12.0..13.0).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.expected_keys() as f64
    }

    /// The share of set bits, of counters above 0, or of slots with a key. A Bloom filter with its
    /// expected keys has a little less than half of its bits set.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 2e-4)?;
    /// filter.insert_all(0..100_000u32)?;
    /// assert!((0.949..=0.95).contains(&filter.fill_ratio()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "load")]
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.engine.fill_ratio()
    }

    /// Whether the filter holds nothing.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_empty());
    /// filter.insert("a").unwrap();
    /// assert!(!filter.is_empty());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.engine.is_empty()
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 0.01)?;
    /// assert!((0.0099..=0.01).contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.engine.false_positive_rate_at(self.expected_keys())
    }

    /// The false-positive rate to expect once `keys` distinct keys are in. For a filter
    /// with slots, it is at most the rate of a full filter.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 0.01)?;
    /// assert!((0.0049..0.0051).contains(&filter.false_positive_rate_at(50_000)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.engine.false_positive_rate_at(keys)
    }

    /// The false-positive rate now: the chance that a random hash is taken for present.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 0.01)?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_all(0..100_000u32)?;
    /// assert!((0.0099..=0.01).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("expected_fpp", "expectedFpp"))]
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.engine.current_false_positive_rate()
    }

    /// Whether the filter is worse than promised: whether its [rate
    /// now](Self::current_false_positive_rate) is above [that for the expected
    /// keys](Self::false_positive_rate). [What to do then](Self#overfull-filters). Reads
    /// the whole filter.
    ///
    /// The rate varies with the keys. So the limit is the rate of `4 * sqrt(n)` keys more than the
    /// expected `n`. A filter with `n` keys stays below it in 999 cases of 1000. With `6 * sqrt(n)`
    /// keys more (0.6% of a million) it is above it in 95 of 100. (The rate varies more if one
    /// [line per key](crate::bloom::Builder::lines_per_key) is forced where two are the default: at
    /// 1e-6 up to one filter in 12 really is above the limit at `n` keys.)
    ///
    /// A [`ScalableBloom`](crate::ScalableBloom) is overfull beyond its `max_false_positive_rate`.
    /// A filter with slots refuses inserts when it is full, so it never gets much worse than
    /// promised. A [`StaticFilter`](crate::StaticFilter) takes no keys after its build, so it is
    /// never overfull.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(10_000, 0.01)?;
    /// filter.insert_all(0..10_000u32);
    /// assert!(!filter.is_overfull());
    /// filter.insert_all(10_000..11_000u32);
    /// assert!(filter.is_overfull() && filter.current_false_positive_rate() > 0.014);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("saturated", "is_saturated", "is_full"))]
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        self.engine.is_overfull()
    }

    /// Fill, number of keys and false-positive rate now, from one pass over the content.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..1000u32);
    /// let now = filter.statistics();
    /// assert_eq!(now.fill_ratio, filter.fill_ratio());
    /// assert_eq!(now.len, filter.estimated_len());
    /// assert_eq!(now.false_positive_rate, filter.current_false_positive_rate());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// An estimate of the number of distinct keys in the filter.
    ///
    /// It comes from the share of set bits, or from the sum of the counters. Up to the
    /// expected keys, the relative standard error for `n` keys is about `0.2 / sqrt(n)`,
    /// and below `0.3 / sqrt(n)`: 1% at 1000 keys, 0.03% at a million. Far beyond, the
    /// error grows. A full filter returns the least number that would have filled it.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// assert_eq!(filter.estimated_len(), 0);
    /// filter.insert_all(0..50_000u32);
    /// assert!(filter.estimated_len().abs_diff(50_000) < 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("approximate_element_count", "approximateElementCount"))]
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        self.engine.estimated_len()
    }
}
