//! The statistics of a [`JavaBloom`]: its size, its fill, and what the formulas of Guava and of
//! Spark compute from that.

use super::{JavaBloom, JavaFormat};
use lanebloom::Statistics;
use lanebloom::internal::acquire_if;

/// Statistics. Statistics of the content read the whole filter, each word at some moment.
///
/// ```
/// let filter = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
/// assert_eq!((filter.bit_size(), filter.hash_functions()), (958_528, 7));
/// assert_eq!((filter.bit_size() / 8, filter.memory_bytes()), (119_816, 119_872));
/// assert!((0.0099..0.0101).contains(&filter.false_positive_rate()));
/// assert!((0.15..0.17).contains(&filter.false_positive_rate_at(200_000)));
/// assert_eq!(filter.false_positive_rate_at(0), 0.0);
/// assert!(filter.is_empty());
/// filter.insert("a");
/// assert!(!filter.is_empty());
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
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
    #[doc(alias = "bitSize")]
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        self.layout.shape.bits()
    }

    /// The number of hash functions, 1 to 255 for Guava and 1 to 65,536 for Spark: the bits of a
    /// key (two may be the same).
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
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.flat.bits.bytes()
    }

    /// Whether the filter holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_empty = self.flat.words().all(|word| word == 0);
        acquire_if(true);
        is_empty
    }

    /// The false-positive rate to expect once the [expected keys](Self::expected_keys) are in.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate_at(self.expected_keys)
    }

    /// The false-positive rate to expect once `keys` distinct keys are in.
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.shape.rate_at(keys)
    }

    /// Fill, number of keys, false-positive rate and size now, from one pass over the content.
    ///
    /// The number of keys is Guava's `approximateElementCount`, `usize::MAX` for a full filter,
    /// where Guava throws. (Spark has none.) The rate is `expectedFpp` of both.
    ///
    /// The filter is overfull if this rate is above [that for the expected
    /// keys](Self::false_positive_rate). [What to do then](lanebloom::Filter#overfull-filters). The
    /// limit is the rate of some keys more than these `n`: `4 * sqrt(n)`, since the rate varies,
    /// and one in `2k - 1` with `k` hash functions. Both systems round `k`, so a filter that was
    /// read from a stream knows its expected keys only within that. (At 1%, `k` is 7, and the limit
    /// is 1.4%.)
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(0..1000i32, 0.01)?;
    /// let now = filter.statistics();
    /// assert!(now.len.abs_diff(1000) < 100 && (0.5..0.54).contains(&now.fill_ratio));
    /// assert!((0.007..0.013).contains(&now.false_positive_rate) && !now.is_overfull);
    /// assert!((9.6..9.8).contains(&now.bits_per_key));
    /// filter.insert_all(1000..1500i32);
    /// assert!(filter.statistics().is_overfull);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias(
        "approximateElementCount",
        "expectedFpp",
        "fill_ratio",
        "is_overfull",
        "bits_per_key"
    ))]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let shape = self.layout.shape;
        let mut now = shape.statistics(&self.flat);
        now.bits_per_key = 8.0 * self.memory_bytes() as f64 / self.expected_keys as f64;
        now.is_overfull = now.false_positive_rate > shape.overfull_rate(self.expected_keys);
        now
    }
}
