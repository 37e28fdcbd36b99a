//! The kernels: functions for every shape of the pattern and every instruction set. This file
//! chooses them, `call.rs` calls them. A filter chooses its kernels when it is built, and a batch
//! of keys when it is hashed.
//!
//! A batch is a pipeline. Its lines are under way while it works on others:
//!
//! ```text
//! for i in 0 .. groups + ahead:                         a group: 8 hashes
//!     if i < groups:
//!         places[i] = sectors, products of group i      multiply
//!         prefetch the lines of places[i]               unless cached
//!     if i >= ahead:
//!         parts = selected in places[i - ahead]         others write
//!         held  = parts & bits == bits                  all of a key at once
//!         insert: fetch_or what is missing; lookup: bitmap |= held
//! ```
//!
//! A few hashes are looked up one by one, after their lines were prefetched; fewer go by single
//! calls. The plan of a batch says which (`plan.rs`): a filter asks it once, at the door.
//!
//! A key has one line here: keys with two lines are in two filters, the halves of the lines, and
//! `filter/parts/several.rs` calls the kernels for both.
//!
//! A filter keeps its [`Kernels`]. Single lookups are inlined behind a branch on the number of
//! words (`Inlined`), or called by a pointer. Lowest first:
//!
//! - `plain.rs`, `pattern.rs`, `murmur3.rs` and `siphash.rs` are the specification.
//! - `plan.rs` says how a batch is processed, and which way is the fastest on each CPU.
//! - `hash_lanes.rs` hashes several keys at once, for the vectors of any instruction set.
//! - `pipeline.rs` has the loop of a batch for vectors, `tiles.rs` the one for all else.
//! - A file for each instruction set. They are twins: the same names, the same signatures.
//!   `loads.rs` loads the shared words into vectors of x86-64, and argues why no load races.
//! - `isa.rs` finds the instruction sets of this CPU. `tables.rs` has their functions.
//!
//! | | single calls | batches of hashes | hashes of many keys |
//! |---|---|---|---|
//! | plain | `plain.rs` | `plain.rs` | `murmur3.rs`, `siphash.rs` |
//! | AVX2 | lookups `inlined.rs`, else `avx2.rs` | `avx2.rs` | `hash_avx2.rs` up to 16 bytes |
//! | AVX-512 | as AVX2 | `avx512.rs` | `hash_avx512.rs` |
//! | NEON | `neon.rs` | `neon.rs` | `hash_neon.rs`: Murmur3 below 16 bytes |
//!
//! # Shapes as data
//!
//! A kernel is compiled for each of four numbers of words in a sector. The number of bits is data:
//! the bytes that a shuffle brings to a vector's lanes ([`Pattern`]). A vector has eight lanes, and
//! a key as many bits at most, so one test of a vector serves every shape.
//!
//! AVX-512 takes two keys at once, and so stays beside AVX2: batches take 0.6 to 0.7 times as long,
//! bulk inserts 0.7 to 0.8 times (Zen 5, 32 KiB).
//!
//! # Where they are compiled
//!
//! The kernels of a [`ConcurrentBloom`](crate::ConcurrentBloom) are compiled with this crate. The
//! functions in the tables are `#[inline(never)]`: the compiler then takes those of this crate for
//! other crates too. Without that attribute every crate that looks up batches compiled all of them
//! again. `contains_hashes` of `BloomBits` and the inserts refer to all of them.
//!
//! The other kernels (counters, snapshots, banks, fuse filters) are compiled in the crates that use
//! them. So the functions that lead to them are generic or `#[inline]`, and their tables are
//! constants: a static is compiled even if nothing uses it.
//!
//! # Ways that did not help
//!
//! An insert looks first. Loads wait for the atomic operations of the insert before, and the next
//! ones for the look: its time is added to theirs, however well the branch is predicted. With the
//! masks by scalar shifts, which load nothing, new keys of two words took 15.2 ns in place of 11.8
//! (Zen 5, 32 KiB). With the way to look chosen by a `match`, which is a jump by a table, present
//! keys took 1.3 ns in place of 1.0.

#[cfg(lanebloom_x86_64)]
mod avx2;
#[cfg(lanebloom_avx512)]
#[clippy::msrv = "1.89"]
mod avx512;
mod call;
pub(crate) mod fuse;
pub(crate) mod hash;
#[cfg(lanebloom_x86_64)]
mod hash_avx2;
#[cfg(lanebloom_avx512)]
#[clippy::msrv = "1.89"]
mod hash_avx512;
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
mod hash_lanes;
#[cfg(lanebloom_aarch64)]
mod hash_neon;
mod inlined;
mod isa;
#[cfg(lanebloom_x86_64)]
mod loads;
#[cfg(lanebloom_aarch64)]
mod neon;
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
mod pipeline;
pub(crate) mod plain;
pub(crate) mod plan;
mod single;
mod tables;
pub(crate) mod tiles;

pub use self::isa::{Isa, Level, Vectorized, instruction_set, instruction_sets};
pub(crate) use self::single::{Asked, Calls, One};

use self::inlined::Inlined;
use self::plain::{decrement, increment};
pub(crate) use self::plan::Plan;
use self::plan::{Ladder, Prefetching, Tuning};
use self::single::{Contains, Probe};
use self::tables::{BatchInserts, BatchLookups};
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::pattern::Pattern;
use crate::words::bits::{Lines, Load};
use crate::words::counters::Counters;
use crate::words::sync::AtomicU64;

/// The operations on hashes that only read, for one shape, one instruction set and one kind of
/// words: `AtomicU64` of a filter, its counters, or the bytes of a snapshot. All is chosen when the
/// filter is built, except what depends on a batch's length: of the functions for batches, a row.
#[derive(Debug)]
pub(crate) struct Lookups<T> {
    /// The proof that the CPU has what the functions of the tables need: `new` takes them from its
    /// level.
    isa: Isa,
    tuning: Tuning,
    pub(crate) ladder: Ladder,
    inlined: Inlined,
    /// The single lookup in the lines that are asked, if it is not inlined.
    called: Contains<T>,
    probe: Probe<T>,
    /// The number of its row in the table of [`BatchLookups`].
    row: u8,
    prefetching: Prefetching,
}

impl<T> Clone for Lookups<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lookups<T> {}

impl<T: Load> Lookups<T> {
    /// The lookups for `layout` by `isa`, in all lines or in one of their halves.
    pub(crate) fn of<A: Asked>(layout: Layout, isa: Isa) -> Self {
        Self::tuned::<A>(layout, isa, isa.tuning())
    }

    fn tuned<A: Asked>(layout: Layout, isa: Isa, tuning: Tuning) -> Self {
        let isa = isa.for_blocks(layout.blocks);
        let (words, bits) = (layout.shape.words, layout.shape.bits);
        let row = tables::row(isa.level(), words);
        // (In halves every lookup is a call, so that no inlined one asks for their number.)
        let inlined = match layout.shape.lines {
            1 if !T::COUNTERS && isa != Isa::PLAIN => Inlined::of(words),
            _ => Inlined::NONE,
        };
        let prefetching = tuning.prefetching(bytes(layout), tuning.lookups);
        Self {
            isa,
            tuning,
            ladder: Ladder::of_lookups(bytes(layout), inlined.is_some(), isa.level().is_wide()),
            inlined,
            called: tables::single_lookup::<A, T>(row),
            probe: Probe {
                pattern: Pattern::new(words, bits),
                contains: tables::single_lookup::<One, T>(row),
                hint: prefetching.hint(),
            },
            row,
            prefetching,
        }
    }

    /// The lookups of several hashes.
    #[inline(always)]
    fn batches(&self) -> &'static BatchLookups<T> {
        tables::batch_lookups(self.row)
    }
}

/// The bytes of all lines or of a half.
fn bytes(layout: Layout) -> usize {
    layout.blocks / layout.shape.lines * LINE_BYTES
}

/// The operations on hashes for one shape and one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// The lookups, with the proof that the CPU has what the functions of `row` need.
    pub(crate) lookups: Lookups<AtomicU64>,
    pub(crate) ladder: Ladder,
    prefetching: Prefetching,
}

impl Kernels {
    /// The kernels for `layout` by `isa`, for all lines or for one of their halves.
    pub(crate) fn of<A: Asked>(layout: Layout, isa: Isa) -> Self {
        Self::tuned::<A>(layout, isa, isa.tuning())
    }

    fn tuned<A: Asked>(layout: Layout, isa: Isa, tuning: Tuning) -> Self {
        let lookups = Lookups::tuned::<A>(layout, isa, tuning);
        Self {
            ladder: lookups.ladder.for_inserts(bytes(layout), lookups.inlined.is_some()),
            prefetching: tuning.prefetching(bytes(layout), tuning.changes),
            lookups,
        }
    }

    /// The inserts of several hashes.
    #[inline(always)]
    fn inserts(&self) -> &'static BatchInserts {
        tables::batch_inserts(self.lookups.row)
    }
}

/// The operations on hashes of a filter of counters, for one shape and one instruction set.
///
/// Inserts and removes are the same for all: a compare-exchange per word takes longer than vectors
/// could save, and cannot be done by them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterKernels {
    /// The lookups.
    pub(crate) lookups: Lookups<Counters>,
    prefetching: Prefetching,
    pub(crate) insert: CounterChange,
    pub(crate) remove: CounterChange,
}

/// Inserts or removes a hash with so many bits: returns whether that found a counter at 0, or did.
pub(crate) type CounterChange = fn(Lines<'_, Counters>, u64, usize) -> bool;

impl CounterKernels {
    /// The kernels for `layout` by `isa`.
    #[inline]
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        const CHANGES: [[CounterChange; 2]; 4] = [
            [increment::<1>, decrement::<1>],
            [increment::<2>, decrement::<2>],
            [increment::<4>, decrement::<4>],
            [increment::<8>, decrement::<8>],
        ];
        let lookups = Lookups::of::<One>(layout, isa);
        let [insert, remove] = CHANGES[layout.shape.words.ilog2() as usize];
        Self {
            prefetching: lookups
                .tuning
                .prefetching(layout.blocks * LINE_BYTES, lookups.tuning.changes),
            lookups,
            insert,
            remove,
        }
    }
}

impl Isa {
    /// Writes to `out` the AND of rows of `words`: each begins at one of `starts`, and is as long
    /// as `out`. The lookups of a bank of filters call it.
    ///
    /// # Panics
    ///
    /// If a row ends beyond the words.
    #[inline(always)]
    pub(crate) fn and_rows<T: Load>(self, words: &[T], starts: &[u64], out: &mut [u64]) {
        const { assert!(!T::COUNTERS) };
        // One word takes less time than the call.
        if let [out] = out {
            *out = starts
                .iter()
                .fold(u64::MAX, |all, &start| all & words[start as usize].load());
            return;
        }
        let last = words.len().checked_sub(out.len()).expect("a row lies within the words") as u64;
        // (A fold, which becomes vectors.)
        let within = starts.iter().fold(true, |within, &start| within & (start <= last));
        assert!(
            within,
            "rows of {} words at {starts:?} do not lie within {} words",
            out.len(),
            words.len()
        );
        match self.level() {
            // SAFETY: rows lie within the words, and the `Isa` proves that the CPU has what the
            // function needs.
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => unsafe { avx2::and_rows(words, starts, out) },
            // SAFETY: as above.
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => unsafe { avx512::and_rows(words, starts, out) },
            // SAFETY: as above. (The bytes of a snapshot are little-endian.)
            #[cfg(lanebloom_aarch64)]
            Level::Neon if cfg!(target_endian = "little") => unsafe { neon::and_rows(words, starts, out) },
            _ => plain::and_rows(words, starts, out),
        }
    }

    /// Moves the hashes whose bit of `found` is set to the front, in order; returns how many they
    /// are. The hashes after them have any values then.
    #[inline]
    pub(crate) fn pack(self, hashes: &mut [u64], found: &[u64]) -> usize {
        match self.level() {
            // SAFETY: the `Isa` proves that the CPU has what the function needs.
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => unsafe { avx512::pack(hashes, found) },
            _ => plain::pack(hashes, found),
        }
    }

    /// The function that writes a bit of a bitmap to each place of a slice.
    #[inline]
    pub fn unpack(self) -> impl Fn(&[u64], &mut [bool]) {
        let unpack: unsafe fn(&[u64], &mut [bool]) = match self.level() {
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => avx2::unpack,
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => avx512::unpack,
            _ => plain::unpack,
        };
        // SAFETY: the `Isa` proves that the CPU has what the function needs.
        move |bitmap, out| unsafe { unpack(bitmap, out) }
    }

    /// Runs `work`, compiled for this instruction set.
    #[inline]
    pub fn vectorized<W: Vectorized>(self, work: W) -> W::Output {
        match self.level() {
            // SAFETY: the `Isa` proves that the CPU has what the function is compiled for.
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => unsafe { avx2::vectorized(work) },
            // SAFETY: as above.
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => unsafe { avx512::vectorized(work) },
            // (Every target with NEON is compiled for it.)
            _ => work.run(),
        }
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests;
