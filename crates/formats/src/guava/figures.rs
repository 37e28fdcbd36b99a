//! The figures of a [`GuavaBloom`]: its layout. `java/figures.rs` has the others.

use super::{GuavaBloom, Strategy};
use lanebloom::Figures;

crate::java::figures::figures!(GuavaBloom);

/// Figures. Figures of the content read the whole filter, each word at some moment.
impl GuavaBloom {
    /// How a hash becomes the indexes of bits.
    ///
    /// ```
    /// use lanebloom_formats::guava::{GuavaBloom, Strategy};
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1000, 0.01)?.strategy(), Strategy::Mitz64);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.layout.strategy
    }

    /// The number of hash functions, 1 to 255: the bits of a key (two may be the same).
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// assert_eq!(GuavaBloom::with_capacity(1000, 1e-3)?.hash_functions(), 10);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u8 {
        self.layout.hash_functions
    }
}
