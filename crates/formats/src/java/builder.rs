//! The builder of a [`JavaBloom`]. `guava.rs` and `spark.rs` have the options of each system.

use super::{JavaBloom, JavaBuilder, JavaFormat, JavaKey};
use crate::flat::Flat;
use lanebloom::BuildError;

impl<F: JavaFormat> JavaBuilder<F> {
    /// The number of distinct keys up to which the false-positive rate holds: Guava's
    /// `expectedInsertions`, for which 0 means 1, or Spark's `expectedNumItems`, which must be at
    /// least 1.
    ///
    /// ```
    /// let builder = lanebloom_formats::GuavaBloom::builder().expected_keys(50_000);
    /// let filter = builder.build()?;
    /// filter.insert_all(0..50_000u32);
    /// assert!((0.029..0.031).contains(&filter.statistics().false_positive_rate));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("expectedInsertions", "expectedNumItems"))]
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate with the expected keys, between 0 and 1, both excluded: `fpp` of
    /// Guava and Spark. 0.03 by default. It replaces the number of bits of
    /// [Spark's builder](crate::spark::Builder).
    ///
    /// ```
    /// let builder = lanebloom_formats::GuavaBloom::builder();
    /// let filter = builder.false_positive_rate(1e-3).build()?;
    /// assert_eq!(filter.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self.sizing = F::sized_by_rate(self.sizing);
        self
    }

    /// Computes the layout by the formulas of Guava or of Spark, and allocates it.
    ///
    /// # Errors
    ///
    /// Fails where the system throws:
    ///
    /// - The rate is not between 0 and 1.
    /// - The filter has no bit (few keys at a rate near 1), or more than 137,438,953,408.
    /// - Guava: it has more than 255 hash functions. Spark: the builder has no expected keys.
    ///
    /// Two more settings are errors here: a seed for Spark's V1, which Spark ignores, and bits per
    /// key that give more than 65,536 hash functions. So is an allocation that fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::{GuavaBloom, SparkBloom};
    ///
    /// let builder = GuavaBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.memory_bytes(), 960);
    /// let error = builder.false_positive_rate(1e-80).build().unwrap_err();
    /// let text = "a rate of 1e-80 takes 266 hash functions, ";
    /// assert!(error.to_string().starts_with(text));
    ///
    /// let error = SparkBloom::builder().build().unwrap_err();
    /// assert_eq!(error.to_string(), "the number of expected keys must be at least 1");
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn build(self) -> Result<JavaBloom<F>, BuildError> {
        let layout = F::solve(&self)?;
        Ok(JavaBloom {
            flat: Flat::new(layout.shape.words, layout.shape.hash_functions)?,
            layout,
            expected_keys: self.keys.max(1),
        })
    }
}

/// Making a filter.
impl<F: JavaFormat> JavaBloom<F> {
    /// A builder, for all options.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter == GuavaBloom::with_capacity(1000, 0.03)?);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn builder() -> JavaBuilder<F> {
        JavaBuilder {
            keys: 0,
            rate: 0.03,
            format: F::default(),
            sizing: F::Sizing::default(),
        }
    }

    /// An empty filter for `keys` keys at this rate, with the defaults of its system.
    ///
    /// Fails as [`JavaBuilder::build`] does.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!((filter.expected_keys(), filter.hash_functions()), (1000, 7));
    /// let error = GuavaBloom::with_capacity(1000, 1.0).unwrap_err();
    /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "create")]
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::builder()
            .expected_keys(keys)
            .false_positive_rate(false_positive_rate)
            .build()
    }

    /// A filter that holds `keys` and is sized for as many, or for one if there are none, at this
    /// false-positive rate.
    ///
    /// Fails as [`with_capacity`](Self::with_capacity) does.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a", "b"], 0.01)?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// assert_eq!(filter.expected_keys(), 2);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "toBloomFilter")]
    pub fn from_keys<K: JavaKey<F>>(
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        let keys = keys.into_iter();
        let filter = Self::with_capacity(keys.len().max(1), false_positive_rate)?;
        filter.insert_all(keys);
        Ok(filter)
    }
}
