//! The tables of x86-64: plain, AVX2, AVX-512, and AVX-512 with VBMI and BITALG. The twin of
//! `aarch64.rs` and `portable.rs`. Compilers before Rust 1.89 have no intrinsics of AVX-512
//! (`build.rs` finds out), so AVX2 is the best level there.

mod avx2;
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
mod avx512;
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
mod bitalg;
mod hash_avx2;
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
mod hash_avx512;
mod inlined;
mod loads;

pub(super) use self::inlined::Inlined;
use super::dispatch::{ContainsBatch, HashTable, Insert, LineInserts, LineLookups, TwoLookups, Unpack, Vectorized};
use super::pipeline::TILE_GROUPS;
use super::plan::{Forms, TuningRow};
use super::portable;
use crate::geometry::pattern::words_per_product;
use crate::words::bits::Load;

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The compilation target's.
    Plain,
    Avx2,
    #[cfg(lanebloom_rust_1_89)]
    Avx512,
    /// BITALG with the processor's gather.
    #[cfg(lanebloom_rust_1_89)]
    Gather,
    #[cfg(lanebloom_rust_1_89)]
    Bitalg,
}

const PLAIN: portable::Level = portable::Level::Plain;

impl Level {
    /// The best last.
    pub(super) const ALL: &[Self] = &[
        Self::Plain,
        Self::Avx2,
        #[cfg(lanebloom_rust_1_89)]
        Self::Avx512,
        #[cfg(lanebloom_rust_1_89)]
        Self::Gather,
        #[cfg(lanebloom_rust_1_89)]
        Self::Bitalg,
    ];

    /// Whether this CPU has it; without `std`, whether the target has.
    pub(super) fn is_there(self) -> bool {
        match self {
            Self::Plain => true,
            Self::Avx2 => avx2::detect(),
            #[cfg(lanebloom_rust_1_89)]
            Self::Avx512 => avx512::detect(),
            #[cfg(lanebloom_rust_1_89)]
            Self::Gather | Self::Bitalg => bitalg::detect(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Avx2 => "AVX2",
            #[cfg(lanebloom_rust_1_89)]
            Self::Avx512 => "AVX-512",
            #[cfg(lanebloom_rust_1_89)]
            Self::Gather => "AVX-512 BITALG, gather",
            #[cfg(lanebloom_rust_1_89)]
            Self::Bitalg => "AVX-512 BITALG",
        }
    }

    /// Whether batches load words by the processor's gather.
    pub(super) fn gathers(self) -> bool {
        #[cfg(lanebloom_rust_1_89)]
        return self == Self::Gather;
        #[cfg(not(lanebloom_rust_1_89))]
        return false;
    }

    /// How batches by this level are read on a CPU with this tuning.
    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        if self == Self::Avx2 { tuning.of_avx2() } else { tuning }
    }

    /// Whether a lookup is faster than to make the masks of an insert, and so comes first.
    #[inline(always)]
    pub(super) fn looks_first(self) -> bool {
        #[cfg(lanebloom_rust_1_89)]
        return matches!(self, Self::Gather | Self::Bitalg);
        #[cfg(not(lanebloom_rust_1_89))]
        return false;
    }
}

/// The single calls that are inlined, for patterns of this many words and bits.
pub(super) fn inlined(level: Level, words: usize, bits: usize) -> Inlined {
    if words != 2 || words_per_product(words, bits) < words {
        return Inlined::NONE;
    }
    match level {
        Level::Plain => Inlined::NONE,
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => Inlined::bitalg(bits),
        _ => Inlined::avx2(bits),
    }
}

pub(super) fn lookups<const W: usize, const S: usize, T: Load>(level: Level) -> LineLookups<T> {
    let plain = portable::lookups::<W, S, T>(PLAIN);
    match level {
        Level::Plain => plain,
        Level::Avx2 => LineLookups {
            contains: avx2::contains::<W, S, T>,
            batch: batch::<W, T>(level),
            ..plain
        },
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => LineLookups {
            // One key at a time has no use for wider vectors.
            contains: avx2::contains::<W, S, T>,
            batch: batch::<W, T>(level),
            ..plain
        },
        // (A constant, so that the other arms are not compiled.)
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => match const { bitalg::scalar_words(W, S, true) } {
            0 => bitalg_lookups::<W, 0, T>(level),
            1 => bitalg_lookups::<W, 1, T>(level),
            2 => bitalg_lookups::<W, 2, T>(level),
            3 => bitalg_lookups::<W, 3, T>(level),
            _ => bitalg_lookups::<W, 4, T>(level),
        },
    }
}

/// The batches of lookups. A call, since they are the same for each number of bits.
#[inline(never)]
fn batch<const W: usize, T: Load>(level: Level) -> Option<Forms<ContainsBatch<T>>> {
    match level {
        Level::Plain => None,
        Level::Avx2 => Some(Forms {
            tiles: avx2::contains_hashes::<W, TILE_GROUPS, T>,
            groups: avx2::contains_hashes::<W, 1, T>,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => Some(Forms {
            tiles: avx512::contains_hashes::<W, T>,
            groups: avx512::contains_hashes::<W, T>,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather => Some(Forms {
            tiles: bitalg::contains_hashes::<W, TILE_GROUPS, true, T>,
            groups: bitalg::contains_hashes::<W, 1, true, T>,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Bitalg => Some(Forms {
            tiles: bitalg::contains_hashes::<W, TILE_GROUPS, false, T>,
            groups: bitalg::contains_hashes::<W, 1, false, T>,
        }),
    }
}

/// The lookups of BITALG with the fastest single ones for the shape: `SCALAR` says how many words
/// a product has, on Intel. A call, as [`batch`].
#[cfg(lanebloom_rust_1_89)]
#[inline(never)]
fn bitalg_lookups<const W: usize, const SCALAR: usize, T: Load>(level: Level) -> LineLookups<T> {
    let batch = batch::<W, T>(level);
    if level.gathers() {
        LineLookups {
            contains: bitalg::contains_one::<W, SCALAR, T>,
            few_flags: bitalg::few_flags::<W, SCALAR, T>,
            few_bitmap: bitalg::few_bitmap::<W, SCALAR, T>,
            groups: Some((bitalg::group_flags::<W, true, T>, bitalg::group_bitmap::<W, true, T>)),
            batch,
        }
    } else {
        LineLookups {
            contains: bitalg::contains_one::<W, 0, T>,
            few_flags: bitalg::few_flags::<W, 0, T>,
            few_bitmap: bitalg::few_bitmap::<W, 0, T>,
            groups: Some((bitalg::group_flags::<W, false, T>, bitalg::group_bitmap::<W, false, T>)),
            batch,
        }
    }
}

#[cfg(lanebloom_rust_1_89)]
fn bitalg_two_lookups<const W: usize, const S: usize, const GATHER: bool, T: Load>() -> TwoLookups<T> {
    TwoLookups {
        contains: match const { bitalg::scalar_words(W, S, GATHER) } {
            0 => bitalg::contains_two::<W, 0, T>,
            1 => bitalg::contains_two::<W, 1, T>,
            2 => bitalg::contains_two::<W, 2, T>,
            3 => bitalg::contains_two::<W, 3, T>,
            _ => bitalg::contains_two::<W, 4, T>,
        },
        gather: avx512::gather,
    }
}

pub(super) fn two_lookups<const W: usize, const S: usize, T: Load>(level: Level) -> TwoLookups<T> {
    let plain = portable::two_lookups::<W, S, T>(PLAIN);
    match level {
        Level::Plain | Level::Avx2 => plain,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => TwoLookups {
            gather: avx512::gather,
            ..plain
        },
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather => bitalg_two_lookups::<W, S, true, T>(),
        #[cfg(lanebloom_rust_1_89)]
        Level::Bitalg => bitalg_two_lookups::<W, S, false, T>(),
    }
}

pub(super) fn inserts<const W: usize, const S: usize>(level: Level) -> LineInserts {
    match level {
        Level::Plain => portable::inserts::<W, S>(PLAIN),
        _ => vector_inserts::<W>(level, avx2::insert::<W, S>),
    }
}

/// A call, as [`batch`].
#[inline(never)]
fn vector_inserts<const W: usize>(level: Level, insert: Insert) -> LineInserts {
    match level {
        Level::Plain | Level::Avx2 => LineInserts {
            insert,
            batch: Some(Forms {
                tiles: avx2::insert_hashes::<W, TILE_GROUPS>,
                groups: avx2::insert_hashes::<W, 1>,
            }),
            fill: avx2::fill::<W>,
        },
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => LineInserts {
            insert,
            batch: Some(Forms {
                tiles: avx512::insert_hashes::<W>,
                groups: avx512::insert_hashes::<W>,
            }),
            fill: avx512::fill::<W>,
        },
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather => LineInserts {
            insert,
            batch: Some(Forms {
                tiles: bitalg::insert_hashes::<W, TILE_GROUPS, true>,
                groups: bitalg::insert_hashes::<W, 1, true>,
            }),
            fill: avx512::fill::<W>,
        },
        #[cfg(lanebloom_rust_1_89)]
        Level::Bitalg => LineInserts {
            insert,
            batch: Some(Forms {
                tiles: bitalg::insert_hashes::<W, TILE_GROUPS, false>,
                groups: bitalg::insert_hashes::<W, 1, false>,
            }),
            fill: avx512::fill::<W>,
        },
    }
}

pub(super) fn unpack(level: Level) -> Unpack {
    match level {
        Level::Plain => portable::unpack(PLAIN),
        Level::Avx2 => avx2::unpack,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::unpack,
    }
}

#[inline]
pub(super) fn vectorized<W: Vectorized>(level: Level, work: W) -> W::Output {
    match level {
        Level::Plain => portable::vectorized(PLAIN, work),
        // SAFETY: the level proves that the CPU has what the function is compiled for.
        Level::Avx2 => unsafe { avx2::vectorized(work) },
        // SAFETY: as above.
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => unsafe { avx512::vectorized(work) },
    }
}

#[inline]
pub(super) fn murmur3(level: Level) -> Option<HashTable<2>> {
    match level {
        Level::Plain => portable::murmur3(PLAIN),
        Level::Avx2 => Some(HashTable {
            most: 16,
            short: hash_avx2::murmur3_short,
            slices: None,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashTable {
            most: 16,
            short: hash_avx512::murmur3_short,
            slices: Some(hash_avx512::murmur3_slices),
        }),
    }
}

#[inline]
pub(super) fn siphash13(level: Level) -> Option<HashTable<4>> {
    match level {
        Level::Plain => portable::siphash13(PLAIN),
        Level::Avx2 => Some(HashTable {
            most: 16,
            short: hash_avx2::siphash13_short,
            slices: None,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashTable {
            most: 16,
            short: hash_avx512::siphash13_short,
            slices: Some(hash_avx512::siphash13_slices),
        }),
    }
}
