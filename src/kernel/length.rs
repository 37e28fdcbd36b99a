//! The ladder of lengths: what a batch of so many keys takes. All other files ask here.

/// What a batch takes, by its number of keys: the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The fewest keys that are [`Many`](Self::Many).
    pub(crate) const MANY: usize = 32;

    /// What a batch of so many keys takes.
    #[inline(always)]
    #[must_use]
    pub const fn of(keys: usize) -> Self {
        /// The model checker has batches of one key, and is to see their loops.
        const SEVERAL: usize = if cfg!(lanebloom_loom) { 1 } else { 4 };
        match keys {
            ..SEVERAL => Self::Singles,
            ..8 => Self::Few,
            ..16 => Self::Groups,
            ..Self::MANY => Self::Several,
            _ => Self::Many,
        }
    }

    /// Whether there are single calls or the functions for a few hashes for it.
    #[inline(always)]
    #[must_use]
    pub const fn is_short(self) -> bool {
        !matches!(self, Self::Many)
    }
}
