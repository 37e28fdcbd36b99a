//! The layout of filters in lines of the cache.

use super::Bloom;
use crate::filter::Filter;

/// Where the bits, or counters, of a key lie; the result of
/// [`layout`](crate::ConcurrentBloom::layout).
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let layout = ConcurrentBloom::with_capacity(1000, 0.01)?.layout();
/// assert_eq!((layout.lines_per_key, layout.words_per_key), (1, 2));
/// assert_eq!(layout.bits_per_line, 6);
/// let layout = ConcurrentBloom::with_capacity(1000, 1e-6)?.layout();
/// assert_eq!(layout.lines_per_key, 2);
/// let builder = ConcurrentBloom::builder().memory_budget(1 << 20);
/// assert_eq!(builder.build()?.layout().blocks, 1 << 14);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The lines that a key touches: 1 or 2.
    pub lines_per_key: usize,
    /// The words in which a key's bits lie, in all of its lines: 1 to 16.
    pub words_per_key: usize,
    /// The positions that a key draws in each of its lines, some may coincide: 1 to 8. A key has a
    /// bit or a counter at each position, so `lines_per_key * bits_per_line` bits at most.
    pub bits_per_line: usize,
    /// The number of blocks, each a line of 64 bytes.
    pub blocks: usize,
}

impl<W, S> Filter<Bloom<W>, S> {
    /// Where the bits, or counters, of a key lie.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.layout().blocks * 64, filter.memory_bytes());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn layout(&self) -> Layout {
        let layout = self.engine.layout;
        Layout {
            lines_per_key: layout.shape.lines,
            words_per_key: layout.shape.words_per_key(),
            bits_per_line: layout.shape.bits,
            blocks: layout.blocks,
        }
    }
}
