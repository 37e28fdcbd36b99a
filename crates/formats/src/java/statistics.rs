//! The statistics of a [`JavaBloom`]: its size, its fill, and what the formulas of Guava and of
//! Spark compute from that.

use super::{JavaBloom, JavaFormat};
use lanebloom::Statistics;
use lanebloom::internal::acquire_if;

/// Statistics. Statistics of the content read the whole filter, each word at some moment.
impl<F: JavaFormat> JavaBloom<F> {
    /// The system, and what determines the hashes of keys: the seed, for Spark.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    /// use lanebloom_formats::spark::Spark;
    ///
    /// let builder = SparkBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.format(), Spark::default());
    /// assert_ne!(builder.seed(7).build()?.format(), Spark::default());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn format(&self) -> F {
        self.layout.format
    }

    /// The number of bits, a multiple of 64: Spark's `bitSize`, which Guava does not make public.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1_000_000, 0.03)?.bit_size(), 7_298_496);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "bitSize")]
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        self.layout.shape.bits()
    }

    /// The number of hash functions, 1 to 255 for Guava and 1 to 65,536 for Spark: the bits of a
    /// key (two may be the same).
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 1e-3)?;
    /// assert_eq!(filter.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u32 {
        self.layout.shape.hash_functions
    }

    /// The number of keys that the filter was sized for.
    ///
    /// A stream does not have it: for a filter that was read, it is the number of keys that set
    /// half of its bits.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// let (copy, _) = GuavaBloom::from_bytes(&filter.to_bytes())?;
    /// assert!((900..1000).contains(&copy.expected_keys()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The bytes of memory of the content: whole lines of 64.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!((filter.bit_size() / 8, filter.memory_bytes()), (1200, 1216));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.flat.bits.bytes()
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1_000_000, 0.01)?;
    /// assert!((9.5..9.6).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.expected_keys as f64
    }

    /// Whether the filter holds nothing.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_empty());
    /// filter.insert("a");
    /// assert!(!filter.is_empty());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_empty = self.flat.words().all(|word| word == 0);
        acquire_if(true);
        is_empty
    }

    /// The share of set bits: about half, if the filter holds its expected keys.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..1000i32);
    /// assert!((0.5..0.54).contains(&filter.fill_ratio()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.statistics().fill_ratio
    }

    /// The estimated number of distinct keys in the filter, from the share of set bits, by Guava's
    /// formula. Spark has none.
    ///
    /// `usize::MAX` for a full filter, where Guava throws.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
    /// assert_eq!(filter.estimated_len(), 0);
    /// filter.insert_all(0..50_000i32);
    /// assert!(filter.estimated_len().abs_diff(50_000) < 1000);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("approximate_element_count", "approximateElementCount"))]
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        self.statistics().len
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
    /// assert!((0.0099..0.0101).contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate_at(self.expected_keys)
    }

    /// The false-positive rate to expect once `keys` distinct keys are in.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
    /// assert!((0.15..0.17).contains(&filter.false_positive_rate_at(200_000)));
    /// assert_eq!(filter.false_positive_rate_at(0), 0.0);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.shape.rate_at(keys)
    }

    /// The false-positive rate now: `expectedFpp` of Guava and Spark.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_all(0..100_000i32);
    /// assert!((0.0097..0.0103).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("expected_fpp", "expectedFpp"))]
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.statistics().false_positive_rate
    }

    /// Whether the filter is worse than promised: whether its [rate
    /// now](Self::current_false_positive_rate) is above [that for the expected
    /// keys](Self::false_positive_rate). [What to do
    /// then](lanebloom::Filter#overfull-filters). Reads the whole filter.
    ///
    /// The limit is the rate of some keys more than these `n`: `4 * sqrt(n)`, since the rate
    /// varies, and one in `2k - 1` with `k` hash functions. Both systems round `k`, so a filter
    /// that was read from a stream knows its expected keys only within that. (At 1%, `k` is 7, and
    /// the limit is 1.4%.)
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(0..1000i32, 0.01)?;
    /// assert!(!filter.is_overfull());
    /// filter.insert_all(1000..1500i32);
    /// assert!(filter.is_overfull());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        self.layout.shape.is_overfull(&self.flat, self.expected_keys)
    }

    /// Fill, number of keys and false-positive rate now, from one pass over the content.
    ///
    /// ```
    /// use lanebloom_formats::{Statistics, GuavaBloom};
    ///
    /// let filter = GuavaBloom::from_keys(0..1000i32, 0.01)?;
    /// let Statistics { fill_ratio, len, .. } = filter.statistics();
    /// assert_eq!((fill_ratio, len), (filter.fill_ratio(), filter.estimated_len()));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.layout.shape.statistics(&self.flat)
    }
}
