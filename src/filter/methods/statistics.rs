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
    /// [`Membership`](crate::Membership::false_positive_rate_at) has that of other numbers of keys.
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

    /// Fill, number of keys, false-positive rate and size now, from one pass over the content.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// filter.insert_all(0..50_000u32);
    /// let now = filter.statistics();
    /// assert!(now.len.abs_diff(50_000) < 1000 && !now.is_overfull);
    /// assert!((0.2..0.4).contains(&now.fill_ratio));
    /// assert!(now.false_positive_rate < 0.001);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("fill_ratio", "estimated_len", "is_overfull", "expected_fpp", "bits_per_key"))]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let now = self.engine.statistics();
        Statistics {
            bits_per_key: 8.0 * self.memory_bytes() as f64 / self.expected_keys() as f64,
            is_overfull: self.engine.is_overfull_at(now.false_positive_rate),
            ..now
        }
    }
}
