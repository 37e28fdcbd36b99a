//! The layout of the filters in lines, as their users see it.

use crate::filter::Filter;
use crate::filter::parts::lines::Bloom;

/// The layout.
impl<W, S> Filter<Bloom<W>, S> {
    /// The words in which a key's bits lie, in all of its lines: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.words_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.engine.layout.shape.words_per_key()
    }

    /// The lines that a key touches: 1 or 2.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.lines_per_key(), 1);
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 1e-6)?.lines_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn lines_per_key(&self) -> usize {
        self.engine.layout.shape.lines
    }

    /// The positions that a key draws in each of its lines, some may coincide: 1 to 8.
    ///
    /// A key has a bit or a counter at each position, so `lines_per_key() * bits_per_line()` bits
    /// at most.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.bits_per_line(), 6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_line(&self) -> usize {
        self.engine.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder();
    /// let filter = builder.memory_budget(1 << 20).build()?;
    /// assert_eq!(filter.blocks(), 1 << 14);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.engine.layout.blocks
    }
}
