//! The ladder of lengths: what a batch of so many keys takes. All other files ask here.

/// What a batch takes, by its number of keys: the fewest first. Hashes that the caller has go one
/// by one for longer: see `fewest_not_single`.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// 0 to 4: single calls, one after another. The processor overlaps them by itself.
    Singles,
    /// 5 to 7: a batch. The keys are hashed one by one: they do not fill a vector, and its kernel
    /// is a call.
    Few,
    /// 8 to 15: the functions for a few hashes. The keys are hashed one by one still: a hash that a
    /// vector stored is read back late. (Intel with AMX, 32 KiB, 8 keys: 3.2 ns, by vectors 5.6.)
    Groups,
    /// 16 to 64: the functions for a few hashes; where the instruction set has none, a pipeline.
    /// The keys are hashed by vectors.
    Several,
    /// At least 65, more than a word of a bitmap has bits: a pipeline, and chunks. It takes longer to
    /// begin. (Intel with AMX, flags of 32, 48 and 64 as a few and by a pipeline: 0.96 and 1.33 ns,
    /// 0.85 and 1.13, 0.81 and 0.99 at 32 KiB; 13.1 and 17.4, 12.7 and 15.6, 13.1 and 15.1 at
    /// 64 MiB.)
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

/// Batches shorter than this are inserted one key at a time. (The model checker has batches of one
/// key, and is to see their loops.)
pub(crate) const FEWEST_IN_A_BATCH: usize = if cfg!(lanebloom_loom) { 1 } else { 4 };

/// Smallest batch of inserts that takes a pipeline, and chunks. (Intel with AMX, 32 new hashes, as a
/// few and by a pipeline: 12.4 and 11.1 ns at 32 KiB, 19.6 and 17.3 at 8 MiB. Present ones: 1.4 and
/// 1.5, 3.8 and 4.8.)
pub(crate) const MANY_INSERTS: usize = 32;

/// Smallest in-cache batch that functions for a few look up in groups: fewer are faster one by one.
/// (Zen 4, 32 KiB: flags of 16 1.4 ns in a function of their own, 1.2 by inlined calls; bitmaps of
/// 31 1.1 in groups, 1.4 by inlined calls.)
pub(crate) const IN_GROUPS: usize = 24;

/// Batches shorter than this are looked up one hash at a time.
///
/// In the caches: where a batch is faster, or where a function for a few `takes` them, which has
/// the lookups inlined. `long` batches are a pipeline's. Beyond the caches: where prefetches are
/// faster, which takes longer if single lookups are inlined. (Intel with AMX, AVX2 forced, inlined:
/// 48 flags take 1.5 ns one by one and 1.85 by a pipeline at 32 KiB, 3.3 and 3.7 at 8 MiB, 16.3 and
/// 15.0 at 64 MiB.)
#[must_use]
pub(crate) const fn fewest_not_single(is_inlined: bool, takes: bool, is_cached: bool, long: Length) -> usize {
    let most = match (is_inlined, takes, is_cached) {
        (true, true, true) => return IN_GROUPS,
        (true, true, false) => return Length::Several.least(),
        (true, false, true) => return Length::Many.least(),
        (true, false, false) => return 48,
        (false, false, true) => IN_GROUPS,
        (false, ..) => Length::Groups.least(),
    };
    if most < long.least() { most } else { long.least() }
}

/// Batches shorter than this are inserted one hash at a time, given that number for lookups.
/// Beyond the caches a batch prefetches its lines before the first atomic operation. (Zen 4, 64 MiB,
/// four new keys, one by one and as a batch: two words 53 and 52 ns, four words 89 and 62. Four
/// present ones: 14 and 22, 29 and 27. Eight new ones of two words: 50 and 32.)
#[must_use]
pub(crate) const fn fewest_not_single_inserts(is_inlined: bool, is_cached: bool, lookups: usize) -> usize {
    match (is_inlined, is_cached) {
        (_, true) if lookups > IN_GROUPS => IN_GROUPS,
        (_, true) => lookups,
        (true, false) => Length::Groups.least(),
        (false, false) => FEWEST_IN_A_BATCH,
    }
}
