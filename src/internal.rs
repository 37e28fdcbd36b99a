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
pub use crate::filter::methods::sets::Sets;
/// For `lanebloom-formats` and the Python package: the keys that make a filter overfull.
pub use crate::filter::traits::overfull_at;
/// For `lanebloom-formats`: the end of a key under MurmurHash64A, and a key of few bytes.
pub use crate::hash::bytes::{Short, load_below_8};
/// For the tests and benches of this crate: the instruction sets of this machine, and its row in
/// the table of tunings. For the hasher of `lanebloom-formats`: `Isa`, which its methods take.
pub use crate::kernel::{Isa, instruction_sets, plan::tuning_name};
/// For `lanebloom-formats` and `lanebloom-redis`: the loop of a batch.
pub use crate::kernel::{Plan, plan::AccessPlan, tiles::answers};
/// For `lanebloom-formats`: loops that become vectors.
pub use crate::kernel::{Vectorized, vectorized};
/// For `lanebloom-formats`: the memory of its filters, and the hints and fences beside it. (For
/// `lanebloom-redis`, after [`Positions::is_present`]: `acquire_if`.)
pub use crate::words::bits::{Bits, Hint, acquire, acquire_if, prefetch, set_four};
/// For `lanebloom-formats`: a newer function of the standard library.
pub use crate::words::chunks::{as_chunks, as_chunks_mut};
/// For `lanebloom-formats`: the memory of `RedisCuckoo`, which is bytes.
pub use crate::words::memory::Words;
/// For `lanebloom-formats`: the words of [`Bits`].
pub use crate::words::sync::AtomicU64;
pub use crate::{inserts, sets, unions};

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
    pub use crate::filter::types::dleft::cells::DLeftCells;
    pub use crate::geometry::sizing::Request;
    pub use crate::words::bits::Load;
    pub use crate::words::memory::Word;
    pub use crate::words::scratch::Scratch;
}

#[cfg(feature = "std")]
use crate::WindowedBloom;
use crate::error::BuildErrorKind;
use crate::filter::traits::Engine;
use crate::geometry::sizing::Request;
use crate::kernel;
use crate::words::bits;
use crate::{BuildError, ConcurrentBitmap, ConcurrentBloom, Filter};
#[cfg(feature = "std")]
use alloc::{sync::Arc, vec::Vec};

impl<E: Engine, S> Filter<E, S> {
    /// For benches and tests of this crate: the same filter by the kernels of `isa`, one of
    /// [`instruction_sets`].
    #[doc(hidden)]
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.engine.set_isa(isa);
        self.isa = isa;
        self
    }
}

/// For `lanebloom-formats`, whose engine of Parquet's filter is not in this crate: a filter of it.
pub trait Parts {
    /// The engine of the filter.
    type Engine;
    /// Its hasher.
    type Hasher;

    /// A filter of both.
    fn of_parts(engine: Self::Engine, hasher: Self::Hasher) -> Self;

    /// The engine.
    fn engine(&self) -> &Self::Engine;

    /// The engine, with exclusive access.
    fn engine_mut(&mut self) -> &mut Self::Engine;
}

impl<E: Engine, S> Parts for Filter<E, S> {
    type Engine = E;
    type Hasher = S;

    fn of_parts(engine: E, hasher: S) -> Self {
        Self::of(engine, hasher)
    }

    #[inline(always)]
    fn engine(&self) -> &E {
        &self.engine
    }

    #[inline(always)]
    fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }
}

/// For `lanebloom-formats`: bits to bools, by this machine's vectors.
#[inline]
pub fn unpack() -> impl Fn(&[u64], &mut [bool]) {
    kernel::unpack(Isa::best())
}

/// For `lanebloom-formats`: fails unless a rate is between 0 and 1.
///
/// # Errors
///
/// Says which rate it is.
pub fn check_rate(rate: f64) -> Result<(), BuildError> {
    let request = Request {
        rate: Some(rate),
        ..Request::default()
    };
    request.check().map_err(BuildError)
}

/// For `lanebloom-formats`: more bytes than addresses.
pub fn too_large(keys: usize, rate: f64) -> BuildError {
    BuildError(BuildErrorKind::TooLarge { keys, rate })
}

/// For `lanebloom-formats` and `lanebloom-redis`: panics unless there is a place for the answer of
/// each key.
#[inline(always)]
#[track_caller]
pub fn assert_same_length(keys: usize, out: usize) {
    crate::hash::assert_same_length(keys, out);
}

/// For `lanebloom-redis`, which pushes and pulls bits.
pub trait SharedBits {
    /// Writes to `missing` the bits of the blocks from `first` on that `known` has not; returns
    /// whether there are any. If so, what the inserters of these bits did before is visible.
    fn missing_in(&self, first: usize, known: &[u64], missing: &mut [u64]) -> bool;

    /// Adds bits to a word, given by its number in the whole filter.
    fn add_bits(&self, word: usize, bits: u64);
}

impl<S> SharedBits for ConcurrentBloom<S> {
    fn missing_in(&self, first: usize, known: &[u64], missing: &mut [u64]) -> bool {
        let any = self.bits().missing_in(first, known, missing);
        bits::acquire_if(any);
        any
    }

    fn add_bits(&self, word: usize, bits: u64) {
        self.bits().set_word(word, bits);
    }
}

/// For `lanebloom-redis`, whose keys have several positions each.
pub trait Positions {
    /// Whether a position below the bound is present. Call [`acquire_if`] once after the last one.
    fn is_present(&self, position: u64) -> bool;

    /// Prefetches the line of a position.
    fn prefetch(&self, position: u64, hint: Hint);
}

impl Positions for ConcurrentBitmap {
    #[inline(always)]
    fn is_present(&self, position: u64) -> bool {
        Self::is_present(self, position)
    }

    #[inline(always)]
    fn prefetch(&self, position: u64, hint: Hint) {
        Self::prefetch(self, position, hint);
    }
}

/// A generation, and the number of its time.
#[cfg(feature = "std")]
pub type Numbered = (u64, Arc<ConcurrentBloom<()>>);

/// For `lanebloom-redis`, which keeps the generations of a window equal on many machines.
#[cfg(feature = "std")]
pub trait NumberedGenerations {
    /// The generations, each with the number of its time, the newest first. It has at least the
    /// number `least`. `None` if the clock was set back or `rotate` was called.
    ///
    /// # Errors
    ///
    /// If a generation that the filter lacks cannot be allocated.
    fn numbered(&self, least: u64) -> Result<Option<Vec<Numbered>>, BuildError>;

    /// Clears a dropped generation, so that the next rotation need not do it.
    fn clear_dropped(&self);

    /// The time in nanoseconds by the filter's clock. `None` if keys do not age, or if the clock is
    /// this machine's monotonic one, which no other machine has.
    fn common_time(&self) -> Option<u64>;
}

#[cfg(feature = "std")]
impl<S> NumberedGenerations for WindowedBloom<S> {
    fn numbered(&self, least: u64) -> Result<Option<Vec<Numbered>>, BuildError> {
        self.engine.numbered(least)
    }

    fn clear_dropped(&self) {
        self.engine.clean_ahead();
    }

    fn common_time(&self) -> Option<u64> {
        self.engine.common_time()
    }
}
