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
}

/// From so many hashes on, a few are looked up in groups in the caches: fewer are faster one by
/// one. (Zen 4, 32 KiB: flags of 16 1.4 ns in a function of their own, 1.2 by inlined calls;
/// bitmaps of 31 1.1 in groups, 1.4 by inlined calls.)
pub(crate) const IN_GROUPS: usize = 24;

/// From so many hashes on, they are no longer looked up one by one. If a function `takes_few`, with
/// the lookups inlined, or beyond the caches, where the functions for a few prefetch lines, that is
/// from a group on. Else, from where a batch is faster: `long` ones are a pipeline's. (Zen 4, 1%,
/// at 64 MiB: 15 flags 14.7 ns one by one, 13.0 with prefetches.)
#[must_use]
pub(crate) const fn fewest_not_single(takes_few: bool, is_cached: bool, long: Length) -> usize {
    let most = if is_cached && !takes_few {
        IN_GROUPS
    } else {
        Length::Groups.least()
    };
    if most < long.least() { most } else { long.least() }
}

/// From so many hashes on, they are no longer inserted one by one, given that number for lookups.
/// Beyond the caches a batch of four asks for its lines before the first atomic operation, unless
/// lookups are inlined. (Zen 4, 64 MiB, four new keys, one by one and as a batch: two words 53 and
/// 52 ns, four words 89 and 62. Four present ones: 14 and 22, 29 and 27.)
#[must_use]
pub(crate) const fn fewest_not_single_inserts(is_inlined: bool, is_cached: bool, lookups: usize) -> usize {
    if is_inlined || is_cached {
        lookups
    } else {
        Length::Few.least()
    }
}
