//! What the other crates of this workspace need of this one, and a user does not.
//!
//! Outside semver: those crates depend on this exact version. A need that users have too becomes a
//! public method instead.

use crate::error::BuildErrorKind;
use crate::filter::guava::layout::{self, HashFunctions};
use crate::{BuildError, ConcurrentBitmap, ConcurrentBloom, bits};
use alloc::string::String;

#[cfg(feature = "window")]
pub use window::{Numbered, clear_dropped, common_time, numbered_generations};

/// For layouts with limits of their own: an error that says `problem`.
#[must_use]
pub fn build_error(problem: String) -> BuildError {
    BuildError(BuildErrorKind::Setting(problem))
}

/// For `lanebloom-redis`, which pushes bits: writes the bits that the filter has and `known` lacks,
/// of the blocks from `first` on, to `lacking`; returns whether there are any. Then what their
/// inserters did before is visible.
pub fn bits_beyond<S>(filter: &ConcurrentBloom<S>, first: usize, known: &[u64], lacking: &mut [u64]) -> bool {
    let any = filter.bits().beyond(first, known, lacking);
    bits::acquire_if(any);
    any
}

/// For `lanebloom-redis`, which pulls bits: adds them to a word, given by its number in the whole
/// filter.
pub fn add_bits<S>(filter: &ConcurrentBloom<S>, word: usize, bits: u64) {
    filter.bits().set_word(word, bits);
}

/// For `lanebloom-redis`, whose keys have several positions each: whether one is present. It must
/// be below the bound. Call [`acquire_if`] once after the last one.
#[inline(always)]
#[must_use]
pub fn is_present(set: &ConcurrentBitmap, position: u64) -> bool {
    set.is_present(position)
}

/// For `lanebloom-redis`, after [`is_present`]: if a position was `seen`, makes visible what its
/// inserter did before.
#[inline(always)]
pub fn acquire_if(seen: bool) {
    bits::acquire_if(seen);
}

/// For `lanebloom-redis`, before [`is_present`]: fetches the lines of the positions ahead if the
/// set is larger than the caches.
#[inline(always)]
pub fn prefetch_positions(set: &ConcurrentBitmap, positions: impl Iterator<Item = u64>) {
    set.prefetch(positions);
}

/// For `lanebloom-redis`, whose bitmaps have Guava's size: the number of bits, and of hash
/// functions by Guava's formula up to 2024.
///
/// # Errors
///
/// As [`GuavaBloom::with_capacity`](crate::GuavaBloom::with_capacity).
pub fn guava_size(keys: u64, rate: f64) -> Result<(u64, u8), BuildError> {
    layout::size(keys, rate, HashFunctions::ByBits).map_err(BuildError)
}

/// For `lanebloom-redis`, whose bitmaps may have fewer bits than [`guava_size`]: the number of hash
/// functions by the same formula.
#[must_use]
pub fn guava_functions(bits: u64, keys: u64) -> u64 {
    layout::functions_by_bits(bits, keys)
}

/// For `lanebloom-redis`, which keeps the generations of a window equal on many machines.
#[cfg(feature = "window")]
mod window {
    use crate::{BuildError, ConcurrentBloom, WindowedBloom};
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    /// A generation, and the number of its time.
    pub type Numbered = (u64, Arc<ConcurrentBloom<()>>);

    /// The generations, each with the number of its time, the newest first. It has at least the
    /// number `least`. `None` if the clock was set back or `rotate` was called.
    ///
    /// # Errors
    ///
    /// If a generation that the filter lacks cannot be allocated.
    pub fn numbered_generations<S>(filter: &WindowedBloom<S>, least: u64) -> Result<Option<Vec<Numbered>>, BuildError> {
        filter.engine.numbered(least)
    }

    /// Clears a dropped generation, so that the next rotation need not do it.
    pub fn clear_dropped<S>(filter: &WindowedBloom<S>) {
        filter.engine.clean_ahead();
    }

    /// The time in nanoseconds by the filter's clock. `None` if keys do not age, or if the clock is
    /// this machine's monotonic one, which no other machine has.
    #[must_use]
    pub fn common_time<S>(filter: &WindowedBloom<S>) -> Option<u64> {
        filter.engine.common_time()
    }
}
