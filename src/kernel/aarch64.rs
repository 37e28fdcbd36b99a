//! The tables of 64-bit Arm: plain and NEON. The twin of `x86_64.rs` and `portable.rs`.

mod hash_neon;
mod neon;

use super::dispatch::{
    AndRows, BatchInserts, BatchLookups, Contains, HashKernels, Insert, SHAPES, ShapeLookups, Unpack, Vectorized,
    of_shapes, of_words, shape_number,
};
use super::pipeline::TILE_GROUPS;
pub(super) use super::plain::Inlined;
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

    /// Whether batches load words by the processor's gather.
    pub(super) fn gathers(self) -> bool {
        false
    }

    /// How batches by this level are read on a CPU with this tuning.
    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        tuning
    }

    /// Whether a lookup is faster than to make the masks of an insert, and so comes first.
    pub(super) fn looks_first(self) -> bool {
        false
    }
}

pub(super) fn inlined(_: Level, _: usize, _: usize) -> Inlined {
    Inlined
}

/// The lookups of a level, for patterns of this many words and bits.
pub(super) fn lookups<T: Load>(level: Level, words: usize, bits: usize) -> ShapeLookups<T> {
    use neon::contains;
    let table: &[Contains<T>; SHAPES] = const { &of_shapes!(contains, T) };
    let plain = plain::lookups(words, bits);
    match level {
        Level::Plain => plain,
        Level::Neon => ShapeLookups {
            contains: table[shape_number(words, bits)],
            row: row(level, words),
            ..plain
        },
    }
}

/// The row of the tables below for patterns of this many words.
fn row(level: Level, words: usize) -> u8 {
    4 * level as u8 + words.ilog2() as u8
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &Tables::<T>::ROWS.as_flattened()[usize::from(row)]
}

struct Tables<T>(PhantomData<T>);

impl<T: Load> Tables<T> {
    /// Four for each level: for 1, 2, 4, and 8 words.
    const ROWS: &[[BatchLookups<T>; 4]] = &[[const { plain::batch_lookups() }; 4], of_words!(Self::neon)];

    const fn neon<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some([
                neon::contains_hashes::<W, TILE_GROUPS, T>,
                neon::contains_hashes::<W, 1, T>,
            ]),
            ..plain::batch_lookups()
        }
    }
}

/// The insert of a key, and the row of [`batch_inserts`].
pub(super) fn inserts(level: Level, words: usize, bits: usize) -> (Insert, u8) {
    (plain::insert(words, bits), row(level, words))
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    &INSERT_ROWS.as_flattened()[usize::from(row)]
}

/// Four for each level, as [`batch_lookups`].
static INSERT_ROWS: &[[BatchInserts; 4]] = &[of_words!(plain::batch_inserts), of_words!(neon_inserts)];

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
