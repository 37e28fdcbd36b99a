//! The tables of 64-bit Arm: plain and NEON. The twin of `x86_64.rs` and `portable.rs`.

mod hash_neon;
mod neon;

use super::dispatch::{
    AndRows, BatchInserts, BatchLookups, Contains, Gather, HashTable, Insert, SHAPES, Unpack, Vectorized, of_shapes,
    of_words, shape_number,
};
use super::pipeline::TILE_GROUPS;
use super::plan::{Forms, TuningRow};
use super::portable;
pub(super) use super::portable::Inlined;
use crate::words::bits::Load;
use core::marker::PhantomData;

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The compilation target's.
    Plain,
    Neon,
}

const PLAIN: portable::Level = portable::Level::Plain;

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
    Inlined::NONE
}

pub(super) fn contains<T: Load>(level: Level, words: usize, bits: usize) -> Contains<T> {
    use neon::contains;
    let table: &[Contains<T>; SHAPES] = const { &of_shapes!(contains, T) };
    match level {
        Level::Plain => portable::contains(PLAIN, words, bits),
        Level::Neon => table[shape_number(words, bits)],
    }
}

/// [`contains`] for keys with two lines.
pub(super) fn contains_two<T: Load>(_: Level, words: usize, bits: usize) -> Contains<T> {
    portable::contains_two(PLAIN, words, bits)
}

pub(super) fn gather(_: Level) -> Gather {
    portable::gather(PLAIN)
}

pub(super) fn insert(_: Level, words: usize, bits: usize) -> Insert {
    portable::insert(PLAIN, words, bits)
}

/// The row of [`batch_lookups`] for patterns of this many words.
pub(super) fn lookup_row(level: Level, words: usize, _: usize) -> u8 {
    insert_row(level, words)
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &LookupRows::<T>::ROWS.as_flattened()[usize::from(row)]
}

struct LookupRows<T>(PhantomData<T>);

impl<T: Load> LookupRows<T> {
    /// Four for each level: for 1, 2, 4, and 8 words.
    const ROWS: &[[BatchLookups<T>; 4]] = &[[const { portable::plain_lookups() }; 4], of_words!(Self::neon)];

    const fn neon<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some(Forms {
                tiles: neon::contains_hashes::<W, TILE_GROUPS, T>,
                groups: neon::contains_hashes::<W, 1, T>,
            }),
            ..portable::plain_lookups()
        }
    }
}

/// The row of [`batch_inserts`] for patterns of this many words.
pub(super) fn insert_row(level: Level, words: usize) -> u8 {
    4 * level as u8 + portable::insert_row(PLAIN, words)
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    &INSERT_ROWS.as_flattened()[usize::from(row)]
}

/// Four for each level, as [`batch_lookups`].
static INSERT_ROWS: &[[BatchInserts; 4]] = &[of_words!(portable::plain_inserts), of_words!(neon_inserts)];

const fn neon_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some(Forms {
            tiles: neon::insert_hashes::<W, TILE_GROUPS>,
            groups: neon::insert_hashes::<W, 1>,
        }),
        fill: neon::fill::<W>,
    }
}

#[inline(always)]
pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    portable::vectorized(PLAIN, work)
}

pub(super) fn unpack(_: Level) -> Unpack {
    portable::unpack(PLAIN)
}

pub(super) fn and_rows<T: Load>(level: Level) -> AndRows<T> {
    match level {
        // (The bytes of a snapshot are little-endian.)
        Level::Neon if cfg!(target_endian = "little") => neon::and_rows,
        _ => portable::and_rows(PLAIN),
    }
}

pub(super) fn murmur3(level: Level) -> Option<HashTable<2>> {
    match level {
        Level::Plain => portable::murmur3(PLAIN),
        Level::Neon => Some(HashTable {
            most: hash_neon::MOST,
            short: hash_neon::murmur3_short,
            slices: None,
        }),
    }
}

pub(super) fn siphash13(_: Level) -> Option<HashTable<4>> {
    portable::siphash13(PLAIN)
}
