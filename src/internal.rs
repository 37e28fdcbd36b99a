//! Items that the other crates of this workspace need and users do not.
//!
//! Outside semver: those crates depend on this exact version. A need that users have too becomes a
//! public method instead.

/// For `lanebloom-formats`: what batches of all filters share.
pub use crate::chunks::{assert_bitmap_length, each_one, for_each_absent, try_gathered};
/// For `lanebloom-formats`: `Serialize` and `Deserialize`, also by `codec::Limited`.
#[cfg(feature = "serde")]
pub use crate::codec::serde::{deserialize, serialize};
/// For `lanebloom-formats`: the methods of its types that deref to a [`Filter`], and what they need
/// of the engine.
pub use crate::filter::methods::{folds::Fold, sets::Sets};
/// For `lanebloom-formats` and the Python package: the keys that make a filter overfull.
pub use crate::filter::traits::overfull_at;
/// For `lanebloom-formats`: the end of a key under MurmurHash64A, and a key of few bytes.
pub use crate::hash::bytes::{Short, load_below_8};
/// For the tests and benches of this crate: the instruction sets of this machine, and its row in
/// the table of tunings. For the hasher of `lanebloom-formats`: `Isa`, which its methods take.
pub use crate::kernel::{Isa, instruction_sets, plan::tuning_name};
/// For `lanebloom-formats` and `lanebloom-redis`: the loop of a batch.
pub use crate::kernel::{
    Plan,
    plan::{AccessPlan, LINES, TILE},
    tiles::{answers, tiles},
};
/// For `lanebloom-formats`: loops that become vectors.
pub use crate::kernel::{Vectorized, vectorized};
/// For `lanebloom-formats`: the memory of its filters, and the hints and fences beside it. (For
/// `lanebloom-redis`, after [`is_present`]: `acquire_if`.)
pub use crate::words::bits::{Bits, Hint, acquire, acquire_if, prefetch, set_four};
/// For `lanebloom-formats`: a newer function of the standard library.
pub use crate::words::chunks::{as_chunks, as_chunks_mut};
/// For `lanebloom-formats`: the memory of `RedisCuckoo`, which is bytes.
pub use crate::words::memory::Words;
/// For `lanebloom-formats`: the words of [`Bits`].
pub use crate::words::sync::AtomicU64;
pub use crate::{folds, inserts, sets, unions};

/// For `lanebloom-guard`: a pointer that is swapped while others read through it, and what the
/// protocol around it needs. Under `--cfg lanebloom_loom` they are the model checker's.
#[cfg(feature = "std")]
pub use crate::words::sync::swap as sync;

/// What bounds of public items and aliases mention, so that it has a name. `lanebloom-formats`
/// reads words by `Load`; nobody uses the others.
pub mod bounds {
    pub use crate::chunks::{Answer, Chunks, Source};
    pub use crate::codec::header::Hashing;
    pub use crate::codec::pieces::{Input, Out};
    pub use crate::error::SnapshotErrorKind;
    pub use crate::filter::parts::lines::Blocked;
    pub use crate::filter::parts::slots::Bucketed;
    pub use crate::filter::traits::Total;
    pub use crate::filter::types::cuckoo::table::CuckooTable;
    pub use crate::filter::types::dleft::cells::Cells;
    pub use crate::geometry::sizing::Request;
    pub use crate::words::bits::Load;
    pub use crate::words::memory::Word;
    pub use crate::words::scratch::Scratch;
}

#[cfg(feature = "std")]
pub use window::{Numbered, clear_dropped, common_time, numbered_generations};

use crate::error::{BuildErrorKind, IncompatibleError};
use crate::filter::Statistics;
use crate::filter::traits::Engine;
use crate::kernel;
use crate::words::bits;
use crate::{BuildError, ConcurrentBitmap, ConcurrentBloom, Filter};
use alloc::string::String;

/// For benches and tests of this crate: a filter by other kernels.
pub trait WithIsa {
    /// The same filter by the kernels of `isa`, one of [`instruction_sets`].
    fn with_isa(self, isa: Isa) -> Self;
}

impl<E: Engine, S> WithIsa for Filter<E, S> {
    fn with_isa(mut self, isa: Isa) -> Self {
        self.engine.set_isa(isa);
        self.isa = isa;
        self
    }
}

/// For `lanebloom-formats`, whose engine of Parquet's filter is not in this crate: a filter of it.
pub fn filter_of<E: Engine, S>(engine: E, hasher: S) -> Filter<E, S> {
    Filter::of(engine, hasher)
}

/// For `lanebloom-formats`: the engine of a [`filter_of`] it.
#[inline(always)]
pub fn engine<E, S>(filter: &Filter<E, S>) -> &E {
    &filter.engine
}

/// [`engine`], with exclusive access.
#[inline(always)]
pub fn engine_mut<E, S>(filter: &mut Filter<E, S>) -> &mut E {
    &mut filter.engine
}

/// For `lanebloom-formats`: bits to bools, by this machine's vectors.
#[inline]
pub fn unpack() -> impl Fn(&[u64], &mut [bool]) {
    kernel::unpack(Isa::best())
}

/// For filters with settings or limits of their own: an error that says `problem`.
pub fn build_error(problem: String) -> BuildError {
    BuildError(BuildErrorKind::Setting(problem))
}

/// For `lanebloom-formats`: a rate that is not between 0 and 1.
pub fn wrong_rate(rate: f64) -> BuildError {
    BuildError(BuildErrorKind::Rate(rate))
}

/// For `lanebloom-formats`: more bytes than addresses.
pub fn too_large(keys: usize, rate: f64) -> BuildError {
    BuildError(BuildErrorKind::TooLarge { keys, rate })
}

/// For `lanebloom-formats`: the allocation of `bytes` bytes failed.
pub fn out_of_memory(bytes: usize) -> BuildError {
    BuildError(BuildErrorKind::OutOfMemory { bytes })
}

/// For `lanebloom-formats` and `lanebloom-redis`: panics unless there is a place for the answer of
/// each key.
#[inline(always)]
#[track_caller]
pub fn assert_same_length(keys: usize, out: usize) {
    crate::hash::assert_same_length(keys, out);
}

/// For `lanebloom-formats`: two filters that cannot be united. The error says `problem`.
pub fn incompatible(problem: String) -> IncompatibleError {
    IncompatibleError(problem)
}

/// For `lanebloom-formats`: [`Statistics`], which other crates cannot make.
pub fn statistics(fill_ratio: f64, len: usize, false_positive_rate: f64) -> Statistics {
    Statistics {
        fill_ratio,
        len,
        false_positive_rate,
    }
}

/// For `lanebloom-redis`, which pushes bits: writes to `missing` the bits of the blocks from
/// `first` on that `known` has not; returns whether there are any. If so, what the inserters of
/// these bits did before is visible.
pub fn bits_missing_in<S>(filter: &ConcurrentBloom<S>, first: usize, known: &[u64], missing: &mut [u64]) -> bool {
    let any = filter.bits().missing_in(first, known, missing);
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
pub fn is_present(set: &ConcurrentBitmap, position: u64) -> bool {
    set.is_present(position)
}

/// For `lanebloom-redis`, before [`is_present`]: asks for the line of a position.
#[inline(always)]
pub fn prefetch_position(set: &ConcurrentBitmap, position: u64, hint: Hint) {
    set.prefetch(position, hint);
}

/// For `lanebloom-redis`, which keeps the generations of a window equal on many machines.
#[cfg(feature = "std")]
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
    pub fn common_time<S>(filter: &WindowedBloom<S>) -> Option<u64> {
        filter.engine.common_time()
    }
}
