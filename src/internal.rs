//! Items that the other crates of this workspace need and users do not.
//!
//! Outside semver: those crates depend on this exact version. A need that users have too becomes a
//! public method instead.

/// For `lanebloom-formats`, `lanebloom-redis` and tests: the place of a batch's answers.
pub use crate::answers::{Place, answered_into};
/// For `lanebloom-formats`: what banks and batches of all filters share.
pub use crate::bank::rows::KeyRows;
pub use crate::chunks::{assert_bitmap_length, try_gathered};
/// For `lanebloom-formats`: its filters of blocks as sets.
pub use crate::filter::methods::{
    inserts::into_ok,
    sets::{Sets, fold_for_rate},
};
/// The engines' traits, for the crates that have engines and for tests.
pub use crate::filter::traits;
/// For `lanebloom-formats` and `lanebloom-redis`: panics unless there is a place for the answer of
/// each key.
pub use crate::hash::assert_same_length;
/// For `lanebloom-formats`: a key of few bytes.
pub use crate::hash::bytes::Short;
/// For `lanebloom-formats` and `lanebloom-redis`: the loop of a batch.
pub use crate::kernel::plan::{Plan, Prefetching};
/// For the tests and benches of this crate: the instruction sets of this machine, and its row in
/// the table of tunings. For `lanebloom-formats`: `Isa` and its level, for hashes and kernels of
/// its own, and loops that become vectors.
pub use crate::kernel::{Isa, Level, Vectorized, instruction_sets, plan::tuning_name};
/// For `lanebloom-formats`: a newer function of the standard library.
pub use crate::words::arrays::as_chunks;
/// For `lanebloom-formats`: the memory of its filters, and the hints and fences beside it. (For
/// `lanebloom-redis`, after `is_present` of a bitmap: `acquire_if`.)
pub use crate::words::bits::{Bits, Hint, acquire_if};
/// For `lanebloom-formats`: the memory of `RedisCuckoo`, which is bytes.
pub use crate::words::memory::Words;
/// For `lanebloom-guard`: a value that is set once while others look.
pub use crate::words::once::OnceBox;
/// For `lanebloom-formats`: the words of [`Bits`]. For `lanebloom-guard`: flags beside a `Swap`.
/// Under `--cfg lanebloom_loom` they are the model checker's.
pub use crate::words::sync::AtomicU64;
/// For `lanebloom-guard`: a pointer that is swapped while others read through it.
#[cfg(feature = "std")]
pub use crate::words::sync::Swap;

/// Types in bounds of public items and aliases, exported so that rustc can name them.
/// `lanebloom-formats` reads words by `Load`, and hashes from a `Source`, with `Scratch` as space;
/// the others have no use.
pub mod bounds {
    pub use crate::chunks::{Answer, Source};
    pub use crate::codec::header::Hashing;
    pub use crate::codec::pieces::{Input, Out};
    pub use crate::error::SnapshotErrorKind;
    pub use crate::geometry::sizing::Request;
    pub use crate::words::bits::{Load, OwnLines};
    pub use crate::words::memory::Word;
    pub use crate::words::scratch::Scratch;
}

#[cfg(feature = "std")]
use crate::WindowedBloom;
use crate::bank::FilterBank;
use crate::filter::traits::Engine;
use crate::filter::types::bloom::BloomBits;
use crate::filter::types::bloom::engine::empty;
use crate::geometry::layout::{Layout, Shape};
use crate::words::bits;
use crate::{BuildError, ConcurrentBloom, Filter, Frozen};
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

impl<E: Engine, S> Frozen<E, S> {
    /// The same for a filter without inserts.
    #[doc(hidden)]
    #[must_use]
    pub fn with_isa(self, isa: Isa) -> Self {
        Self(self.0.with_isa(isa))
    }
}

/// For `lanebloom-formats`, whose engine of Parquet's filter is not in this crate.
#[doc(hidden)]
impl<E, S> Filter<E, S> {
    /// The engine.
    #[inline(always)]
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, with exclusive access.
    #[inline(always)]
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }
}

/// The shape of a Parquet filter's lines, as far as a bank needs it: a key has eight rows.
const EIGHT_ROWS: Shape = Shape {
    lines: 1,
    words: 8,
    bits: 8,
};

/// For `lanebloom-formats`, whose bank of Parquet's filters holds their lines.
#[doc(hidden)]
impl<S> ConcurrentBloom<S> {
    /// A filter of these words, as a bank takes and returns it. It finds no keys by itself.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    pub fn of_lines(lines: usize, words: impl Iterator<Item = u64>, hasher: S) -> Result<Self, BuildError> {
        let (shape, blocks) = (EIGHT_ROWS, lines);
        let mut engine = empty::<BloomBits>(Layout { shape, blocks }, 1)?;
        engine.words.bits.store_words(0, words);
        Ok(Self::of(engine, hasher))
    }

    /// The words of all lines.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.bits().words().flatten()
    }
}

/// For `lanebloom-formats`, as above.
#[doc(hidden)]
impl<S> FilterBank<S> {
    /// A bank of filters of this many lines and blocks, in which a key has these rows.
    ///
    /// # Errors
    ///
    /// Fails like [`new`](Self::new).
    pub fn of_lines(lines: usize, columns: usize, rows: (KeyRows, usize), hasher: S) -> Result<Self, BuildError> {
        let layout = Layout {
            shape: EIGHT_ROWS,
            blocks: lines,
        };
        let mut bank = Self::empty(layout, columns, 1, hasher)?;
        bank.finder.other = Some(rows);
        Ok(bank)
    }
}

/// For `lanebloom-redis`, which pushes and pulls bits.
#[doc(hidden)]
impl<S> ConcurrentBloom<S> {
    /// Writes to `missing` the bits of the blocks from `first` on that `known` has not; returns
    /// whether there are any. If so, what the inserters of these bits did before is visible.
    pub fn missing_in(&self, first: usize, known: &[u64], missing: &mut [u64]) -> bool {
        let any = self.bits().missing_in(first, known, missing);
        bits::acquire_if(any);
        any
    }

    /// Adds bits to a word, given by its number in the whole filter.
    pub fn add_bits(&self, word: usize, bits: u64) {
        self.bits().set_word(word, bits);
    }
}

/// For `lanebloom-redis`, which keeps the generations of a window equal on many machines.
#[cfg(feature = "std")]
#[doc(hidden)]
impl<S> WindowedBloom<S> {
    /// The generations, each with the number of its time, the newest first. It has at least the
    /// number `least`. `None` if the clock was set back or `rotate` was called.
    ///
    /// # Errors
    ///
    /// If a generation that the filter lacks cannot be allocated.
    #[allow(clippy::type_complexity, reason = "a list of pairs")]
    pub fn numbered(&self, least: u64) -> Result<Option<Vec<(u64, Arc<ConcurrentBloom<()>>)>>, BuildError> {
        self.engine.numbered(least)
    }

    /// Clears a dropped generation, so that the next rotation need not do it.
    pub fn clear_dropped(&self) {
        self.engine.clean_ahead();
    }

    /// The time in nanoseconds by the filter's clock. `None` if keys do not age, or if the clock is
    /// this machine's monotonic one, which no other machine has.
    pub fn common_time(&self) -> Option<u64> {
        self.engine.common_time()
    }
}
