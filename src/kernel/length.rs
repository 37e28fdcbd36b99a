//! The ladder of lengths: what a batch of so many keys takes. All other files ask here.

/// What a batch takes, by its number of keys: the fewest first. Hashes that the caller has go one
/// by one for longer: see `fewest_not_single`.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// 0 to 3: single calls, one after another. The processor overlaps them by itself.
    Singles,
    /// 4 to 7: a batch. The keys are hashed one by one: they do not fill a vector, and its kernel
    /// is a call.
    Few,
    /// 8 to 15: the functions for a few hashes. The keys are hashed one by one still: a hash that a
    /// vector stored is read back late. (Intel with AMX, 32 KiB, 8 keys: 3.2 ns, by vectors 5.6.)
    Groups,
    /// 16 to 31: the functions for a few hashes; where the instruction set has none, a pipeline.
    /// The keys are hashed by vectors.
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
                    5
                }
            }
            Self::Groups => 8,
            Self::Several => 16,
            Self::Many => 65,
        }
    }
}

/// From so many hashes on, a few are looked up in groups in the caches: fewer are faster one by
/// one. (Zen 4, 32 KiB: flags of 16 1.4 ns in a function of their own, 1.2 by inlined calls;
/// bitmaps of 31 1.1 in groups, 1.4 by inlined calls.)
pub(crate) const IN_GROUPS: usize = 24;

/// From so many hashes on, they are no longer looked up one by one.
///
/// In the caches: where a batch is faster, or where a function for a few `takes` them, which has
/// the lookups inlined. `long` batches are a pipeline's. Beyond the caches: where prefetches are
/// faster, which takes longer if single lookups are inlined.
#[must_use]
pub(crate) const fn fewest_not_single(is_inlined: bool, takes: bool, is_cached: bool, long: Length) -> usize {
    let most = match (is_inlined, is_cached) {
        (true, true) if takes => return IN_GROUPS,
        (true, false) if takes => return Length::Several.least(),
        (true, true) => return Length::Many.least(),
        (true, false) => return 48,
        (false, true) if !takes => IN_GROUPS,
        (false, _) => Length::Groups.least(),
    };
    if most < long.least() { most } else { long.least() }
}

/// From so many hashes on, they are no longer inserted one by one, given that number for lookups.
/// Beyond the caches a batch asks for its lines before the first atomic operation. (Zen 4, 64 MiB,
/// four new keys, one by one and as a batch: two words 53 and 52 ns, four words 89 and 62. Four
/// present ones: 14 and 22, 29 and 27. Eight new ones of two words: 50 and 32.)
#[must_use]
pub(crate) const fn fewest_not_single_inserts(is_inlined: bool, is_cached: bool, lookups: usize) -> usize {
    match (is_inlined, is_cached) {
        (_, true) => lookups,
        (true, false) => Length::Groups.least(),
        (false, false) => Length::Few.least(),
    }
}
