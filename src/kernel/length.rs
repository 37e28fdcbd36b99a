//! The ladder of lengths: what a batch of so many keys takes. All other files ask here.

/// What a batch takes, by its number of keys: the fewest first.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// 0 to 3: single calls. The processor overlaps them by itself. A function for a few would be
    /// called by a pointer.
    Singles,
    /// 4 to 7: the functions for a few hashes. The keys are hashed one by one: they do not fill a
    /// vector, and its kernel is a call.
    Few,
    /// 8 to 15: the functions for a few hashes. The keys are hashed by vectors.
    Groups,
    /// 16 to 31: the functions for a few hashes; where the instruction set has none, a pipeline.
    Several,
    /// From 32 on: a pipeline, and chunks. It takes longer to begin. (Zen 5, 1%, 512 KiB, bitmaps
    /// of 8 and 16 hashes: 1.9 and 1.6 ns per hash by the functions for a few, 3.4 and 1.9 by a
    /// pipeline.)
    Many,
}

impl Length {
    /// The fewest keys of this length.
    #[inline(always)]
    #[must_use]
    pub const fn least(self) -> usize {
        match self {
            Self::Singles => 0,
            // The model checker has batches of one key, and is to see their loops.
            Self::Few => {
                if cfg!(lanebloom_loom) {
                    1
                } else {
                    4
                }
            }
            Self::Groups => 8,
            Self::Several => 16,
            Self::Many => 32,
        }
    }
}
