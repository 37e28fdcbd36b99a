//! The tables of 64-bit Arm: plain and NEON. The twin of `x86_64.rs` and `portable.rs`.

mod hash_neon;
mod neon;

use super::dispatch::{
    AndRows, Asked, BatchInserts, BatchLookups, Contains, HashKernels, Insert, Pack, Unpack, Vectorized, of_words,
};
use super::pipeline::TILE_GROUPS;
pub(super) use super::plain::{Inlined, inlined_calls};
use super::plan::TuningRow;
use super::{plain, scalar};
use crate::words::bits::Load;
use core::marker::PhantomData;

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The compilation target's.
    Plain,
    Neon,
}

impl Level {
    /// The best last.
    pub(super) const ALL: &[Self] = &[Self::Plain, Self::Neon];

    /// Whether this CPU has it; without `std`, whether the target has.
    pub(super) fn is_there(self) -> bool {
        match self {
            Self::Plain => true,
            Self::Neon => cfg!(target_feature = "neon"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Neon => "NEON",
        }
    }

    /// Whether batches have vectors of eight keys.
    pub(super) fn is_wide(self) -> bool {
        false
    }

    /// How batches by this level are read on a CPU with this tuning.
    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        tuning
    }
}

/// No single lookup is inlined.
pub(super) fn inlined(_: Level, _: usize) -> Inlined {
    Inlined::NONE
}

/// The row of the tables below: four for each level, for 1, 2, 4, and 8 words.
pub(super) fn row(level: Level, words: usize) -> u8 {
    4 * level as u8 + words.ilog2() as u8
}

#[inline(always)]
pub(super) fn single_lookup<A: Asked, T: Load>(row: u8) -> Contains<T> {
    Singles::<A, T>::ROWS.as_flattened()[usize::from(row)]
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &Batches::<T>::ROWS.as_flattened()[usize::from(row)]
}

/// The table of single lookups.
struct Singles<A, T>(PhantomData<(A, T)>);

impl<A: Asked, T: Load> Singles<A, T> {
    const ROWS: &[[Contains<T>; 4]] = &[of_words!(plain::single_lookup, A, T), of_words!(Self::neon)];

    const fn neon<const W: usize>() -> Contains<T> {
        neon::contains::<W, A, T>
    }
}

/// The table of batches of lookups. It is one of its own, so that a program without batches is
/// linked without it.
struct Batches<T>(PhantomData<T>);

impl<T: Load> Batches<T> {
    const ROWS: &[[BatchLookups<T>; 4]] = &[[const { plain::batch_lookups() }; 4], of_words!(Self::neon_batches)];

    const fn neon_batches<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some([
                neon::contains_hashes::<W, TILE_GROUPS, T>,
                neon::contains_hashes::<W, 1, T>,
            ]),
            ..plain::batch_lookups()
        }
    }
}

#[inline(always)]
pub(super) fn single_insert(row: u8) -> Insert {
    static ROWS: &[[Insert; 4]] = &[of_words!(plain::single_insert), of_words!(neon_insert)];
    ROWS.as_flattened()[usize::from(row)]
}

const fn neon_insert<const W: usize>() -> Insert {
    neon::insert::<W>
}

#[inline(always)]
pub(super) fn inserts(row: u8) -> &'static BatchInserts {
    static ROWS: &[[BatchInserts; 4]] = &[of_words!(plain::inserts), of_words!(neon_inserts)];
    &ROWS.as_flattened()[usize::from(row)]
}

const fn neon_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some([neon::insert_hashes::<W, TILE_GROUPS>, neon::insert_hashes::<W, 1>]),
        fill: neon::fill::<W>,
    }
}

#[inline(always)]
pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    work.run()
}

pub(super) fn pack(_: Level) -> Pack {
    scalar::pack
}

pub(super) fn unpack(_: Level) -> Unpack {
    scalar::unpack
}

pub(super) fn and_rows<T: Load>(level: Level) -> AndRows<T> {
    match level {
        // (The bytes of a snapshot are little-endian.)
        Level::Neon if cfg!(target_endian = "little") => neon::and_rows,
        _ => scalar::and_rows,
    }
}

pub(super) fn murmur3(level: Level) -> Option<HashKernels<2>> {
    match level {
        Level::Plain => None,
        Level::Neon => Some(HashKernels {
            most: hash_neon::MOST,
            short: hash_neon::murmur3_short,
            slices: None,
        }),
    }
}

pub(super) fn siphash13(_: Level) -> Option<HashKernels<4>> {
    None
}
