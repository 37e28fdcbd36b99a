//! Filters in one call, without a builder.

use super::Filter;
use super::engine::{Insert, Planned};
use crate::error::BuildError;
use crate::funnel::Funnel;

/// Short constructors. The builders have all options.
impl<E: Planned> Filter<E, E::Hasher> {
    /// An empty filter for `keys` keys at this false-positive rate, with the defaults of the
    /// type's builder.
    ///
    /// # Errors
    ///
    /// As the builder's `build`: if the rate is not between 0 and 1 or out of reach, the size is
    /// beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, CuckooFilter};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 1e-3)?;
    /// let same = ConcurrentBloom::builder().expected_keys(1000).false_positive_rate(1e-3).build()?;
    /// assert!(filter == same);
    /// assert_eq!(CuckooFilter::with_capacity(1000, 1e-3)?.expected_keys(), 1000);
    /// let error = ConcurrentBloom::with_capacity(1000, 1.0).unwrap_err();
    /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("create", "new", "with_false_pos"))]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self {
            engine: E::plan(keys, false_positive_rate)?,
            hasher: E::Hasher::default(),
        })
    }

    /// A filter that holds `keys` and is sized for as many, at this false-positive rate.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Self::with_capacity).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::from_keys(["a", "b"], 0.01)?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// assert_eq!(filter.expected_keys(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("collect", "from_iter", "toBloomFilter"))]
    pub fn from_keys<K: Funnel>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError>
    where
        E: Insert<Total = usize>,
    {
        let keys = keys.into_iter();
        let filter = Self::with_capacity(keys.len(), false_positive_rate)?;
        filter.insert_all(keys);
        Ok(filter)
    }
}
