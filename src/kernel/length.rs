//! The ladder of lengths: what a batch of so many keys takes. All other files ask here.

/// What a batch takes, by its number of keys: the fewest first.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// 0 to 3: single calls, one after another. The processor overlaps them by itself.
    Singles,
    /// 4 to 7: the functions for a few hashes. The keys are hashed one by one: they do not fill a
    /// vector, and its kernel is a call.
    Few,
    /// 8 to 15: the functions for a few hashes. The keys are hashed by vectors.
    Groups,
    /// 16 to 31: the functions for a few hashes; where the instruction set has none, a pipeline.
    Several,
    /// From 32 on: a pipeline, and chunks. It takes longer to begin.
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

    /// The length from which on hashes are no longer looked up by single calls. Where these are
    /// inlined, they are the fastest for up to 15 hashes in the caches, and up to 7 beyond them,
    /// where the functions for a few prefetch lines. (Zen 4, 1%, bitmaps of 8: 1.5 ns one by one,
    /// 2.0 in vectors; of 16 1.4 in vectors. At 64 MiB, 15 flags: 14.7 one by one, 13.0 with
    /// prefetches.)
    #[must_use]
    pub(crate) const fn fewest_not_single(is_inlined: bool, is_cached: bool) -> Self {
        match (is_inlined, is_cached) {
            (true, true) => Self::Several,
            (true, false) => Self::Groups,
            (false, _) => Self::Few,
        }
    }
}
