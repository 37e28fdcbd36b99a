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
use super::dispatch::{BatchInserts, BatchLookups, Contains, HashTable, Insert, TwoLookups, Unpack, Vectorized};
use super::pipeline::TILE_GROUPS;
use super::plan::{Forms, TuningRow};
use super::portable;
use crate::geometry::pattern::words_per_product;
use crate::words::bits::Load;
use core::marker::PhantomData;

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The compilation target's.
    Plain,
    Avx2,
    #[cfg(lanebloom_rust_1_89)]
    Avx512,
    #[cfg(lanebloom_rust_1_89)]
    Bitalg,
    /// BITALG with the processor's gather.
    #[cfg(lanebloom_rust_1_89)]
    Gather,
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

pub(super) fn contains<const W: usize, const S: usize, T: Load>(level: Level) -> Contains<T> {
    match level {
        Level::Plain => portable::contains::<W, S, T>(PLAIN),
        Level::Avx2 => avx2::contains::<W, S, T>,
        // One key at a time has no use for wider vectors.
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => avx2::contains::<W, S, T>,
        #[cfg(lanebloom_rust_1_89)]
        Level::Bitalg => bitalg::contains_one::<W, 0, T>,
        // (A constant, so that the other arms are not compiled.)
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather => match const { bitalg::scalar_words(W, S, true) } {
            0 => bitalg::contains_one::<W, 0, T>,
            1 => bitalg::contains_one::<W, 1, T>,
            2 => bitalg::contains_one::<W, 2, T>,
            3 => bitalg::contains_one::<W, 3, T>,
            _ => bitalg::contains_one::<W, 4, T>,
        },
    }
}

/// The row of [`batch_lookups`] for patterns of this many words and bits.
pub(super) fn lookup_row(level: Level, words: usize, bits: usize) -> u8 {
    #[cfg(lanebloom_rust_1_89)]
    if level == Level::Gather {
        // After those of the other levels: one for 1 word, two for 2, four for 4, and one for 8.
        let place = match (words, bitalg::scalar_words(words, bits, true)) {
            (1, _) => 0,
            (2, scalar) => scalar,
            (4, scalar) => 2 + scalar,
            _ => 7,
        };
        return GATHER + place as u8;
    }
    let _ = bits;
    insert_row(level, words)
}

/// The first row of [`Level::Gather`] in [`batch_lookups`].
#[cfg(lanebloom_rust_1_89)]
const GATHER: u8 = 16;

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &LookupRows::<T>::ROWS[usize::from(row)]
}

struct LookupRows<T>(PhantomData<T>);

impl<T: Load> LookupRows<T> {
    /// Four for each level: for 1, 2, 4, and 8 words.
    const ROWS: &[BatchLookups<T>] = &[
        portable::plain_lookups(),
        portable::plain_lookups(),
        portable::plain_lookups(),
        portable::plain_lookups(),
        Self::avx2::<1>(),
        Self::avx2::<2>(),
        Self::avx2::<4>(),
        Self::avx2::<8>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::avx512::<1>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::avx512::<2>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::avx512::<4>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::avx512::<8>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<1, 0, false>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<2, 0, false>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<4, 0, false>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<8, 0, false>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<1, 0, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<2, 1, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<2, 2, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<4, 1, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<4, 2, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<4, 3, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<4, 4, true>(),
        #[cfg(lanebloom_rust_1_89)]
        Self::bitalg::<8, 0, true>(),
    ];

    const fn avx2<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some(Forms {
                tiles: avx2::contains_hashes::<W, TILE_GROUPS, T>,
                groups: avx2::contains_hashes::<W, 1, T>,
            }),
            ..portable::plain_lookups()
        }
    }

    #[cfg(lanebloom_rust_1_89)]
    const fn avx512<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some(Forms {
                tiles: avx512::contains_hashes::<W, T>,
                groups: avx512::contains_hashes::<W, T>,
            }),
            ..portable::plain_lookups()
        }
    }

    /// `SCALAR` is that of [`contains`].
    #[cfg(lanebloom_rust_1_89)]
    const fn bitalg<const W: usize, const SCALAR: usize, const GATHER: bool>() -> BatchLookups<T> {
        BatchLookups {
            few_flags: bitalg::few_flags::<W, SCALAR, T>,
            few_bitmap: bitalg::few_bitmap::<W, SCALAR, T>,
            groups: Some((
                bitalg::group_flags::<W, GATHER, T>,
                bitalg::group_bitmap::<W, GATHER, T>,
            )),
            batch: Some(Forms {
                tiles: bitalg::contains_hashes::<W, TILE_GROUPS, GATHER, T>,
                groups: bitalg::contains_hashes::<W, 1, GATHER, T>,
            }),
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

pub(super) fn insert<const W: usize, const S: usize>(level: Level) -> Insert {
    match level {
        Level::Plain => portable::insert::<W, S>(PLAIN),
        _ => avx2::insert::<W, S>,
    }
}

/// The row of [`batch_inserts`] for patterns of this many words.
pub(super) fn insert_row(level: Level, words: usize) -> u8 {
    4 * level as u8 + portable::insert_row(PLAIN, words)
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    &INSERT_ROWS[usize::from(row)]
}

/// Four for each level, as [`batch_lookups`].
static INSERT_ROWS: &[BatchInserts] = &[
    portable::plain_inserts::<1>(),
    portable::plain_inserts::<2>(),
    portable::plain_inserts::<4>(),
    portable::plain_inserts::<8>(),
    avx2_inserts::<1>(),
    avx2_inserts::<2>(),
    avx2_inserts::<4>(),
    avx2_inserts::<8>(),
    #[cfg(lanebloom_rust_1_89)]
    avx512_inserts::<1>(),
    #[cfg(lanebloom_rust_1_89)]
    avx512_inserts::<2>(),
    #[cfg(lanebloom_rust_1_89)]
    avx512_inserts::<4>(),
    #[cfg(lanebloom_rust_1_89)]
    avx512_inserts::<8>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<1, false>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<2, false>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<4, false>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<8, false>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<1, true>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<2, true>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<4, true>(),
    #[cfg(lanebloom_rust_1_89)]
    bitalg_inserts::<8, true>(),
];

const fn avx2_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some(Forms {
            tiles: avx2::insert_hashes::<W, TILE_GROUPS>,
            groups: avx2::insert_hashes::<W, 1>,
        }),
        fill: avx2::fill::<W>,
    }
}

#[cfg(lanebloom_rust_1_89)]
const fn avx512_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some(Forms {
            tiles: avx512::insert_hashes::<W>,
            groups: avx512::insert_hashes::<W>,
        }),
        fill: avx512::fill::<W>,
    }
}

#[cfg(lanebloom_rust_1_89)]
const fn bitalg_inserts<const W: usize, const GATHER: bool>() -> BatchInserts {
    BatchInserts {
        batch: Some(Forms {
            tiles: bitalg::insert_hashes::<W, TILE_GROUPS, GATHER>,
            groups: bitalg::insert_hashes::<W, 1, GATHER>,
        }),
        fill: avx512::fill::<W>,
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
