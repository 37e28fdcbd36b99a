//! The figures of a [`SparkBloom`]: its layout. `java/figures.rs` has the others.

use super::{SparkBloom, Version};
use lanebloom::Figures;

crate::java::figures::figures!(SparkBloom);

/// Figures. Figures of the content read the whole filter, each word at some moment.
impl SparkBloom {
    /// The version of Spark's format.
    ///
    /// ```
    /// use lanebloom_formats::spark::{SparkBloom, Version};
    ///
    /// assert_eq!(SparkBloom::with_capacity(1000, 0.01)?.version(), Version::V2);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn version(&self) -> Version {
        self.layout.version
    }

    /// The seed of the hash; 0 for V1, which has none.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let builder = SparkBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.seed(), 0);
    /// assert_eq!(builder.seed(-7).build()?.seed(), -7);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn seed(&self) -> i32 {
        self.layout.seed
    }

    /// The number of hash functions, 1 to 65,536: the bits of a key (two may be the same).
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// assert_eq!(SparkBloom::with_capacity(1000, 1e-3)?.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u32 {
        self.layout.hash_functions
    }
}
