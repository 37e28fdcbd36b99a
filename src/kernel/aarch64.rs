//! The tables of 64-bit Arm: plain and NEON. The twin of `x86_64.rs` and `portable.rs`.

mod hash_neon;
mod neon;

use super::dispatch::{HashTable, LineInserts, LineLookups, TwoLookups, Unpack, Vectorized};
use super::pipeline::TILE_GROUPS;
use super::plan::{Forms, TuningRow};
use super::portable;
pub(super) use super::portable::Inlined;
use crate::words::bits::Load;

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

pub(super) fn lookups<const W: usize, const S: usize, T: Load>(level: Level) -> LineLookups<T> {
    let plain = portable::lookups::<W, S, T>(PLAIN);
    match level {
        Level::Plain => plain,
        Level::Neon => LineLookups {
            contains: neon::contains::<W, S, T>,
            batch: Some(Forms {
                tiles: neon::contains_hashes::<W, TILE_GROUPS, T>,
                groups: neon::contains_hashes::<W, 1, T>,
            }),
            ..plain
        },
    }
}

pub(super) fn two_lookups<const W: usize, const S: usize, T: Load>(_: Level) -> TwoLookups<T> {
    portable::two_lookups::<W, S, T>(PLAIN)
}

pub(super) fn inserts<const W: usize, const S: usize>(level: Level) -> LineInserts {
    let plain = portable::inserts::<W, S>(PLAIN);
    match level {
        Level::Plain => plain,
        Level::Neon => LineInserts {
            batch: Some(Forms {
                tiles: neon::insert_hashes::<W, TILE_GROUPS>,
                groups: neon::insert_hashes::<W, 1>,
            }),
            fill: neon::fill::<W>,
            ..plain
        },
    }
}

#[inline(always)]
pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    portable::vectorized(PLAIN, work)
}

pub(super) fn unpack(_: Level) -> Unpack {
    portable::unpack(PLAIN)
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
