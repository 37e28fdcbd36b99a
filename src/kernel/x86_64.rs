//! The tables of x86-64: plain, AVX2, and AVX-512. The twin of
//! `aarch64.rs` and `portable.rs`. Compilers before Rust 1.89 have no intrinsics of AVX-512
//! (`build.rs` finds out), so AVX2 is the best level there.

mod avx2;
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
mod avx512;
mod hash_avx2;
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
mod hash_avx512;
mod inlined;
mod loads;

pub(super) use self::inlined::Inlined;
use super::dispatch::{
    AndRows, Asked, BatchInserts, BatchLookups, Calls, Contains, HashKernels, Insert, Pack, Unpack, Vectorized,
    of_words,
};
use super::pipeline::TILE_GROUPS;
use super::plan::TuningRow;
use super::{plain, scalar};
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
}

impl Level {
    /// The best last.
    pub(super) const ALL: &[Self] = &[
        Self::Plain,
        Self::Avx2,
        #[cfg(lanebloom_rust_1_89)]
        Self::Avx512,
    ];

    /// Whether this CPU has it and those before it; without `std`, whether the target has.
    pub(super) fn is_there(self) -> bool {
        macro_rules! has {
            ($($feature:tt)*) => {{
                #[cfg(feature = "std")]
                let has = true $(&& std::arch::is_x86_feature_detected!($feature))*;
                #[cfg(not(feature = "std"))]
                let has = cfg!(all($(target_feature = $feature),*));
                has
            }};
        }
        match self {
            Self::Plain => true,
            Self::Avx2 => has!("avx2" "bmi1" "bmi2"),
            #[cfg(lanebloom_rust_1_89)]
            Self::Avx512 => has!("avx512f" "avx512bw" "avx512dq" "avx512vl") && Self::Avx2.is_there(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Avx2 => "AVX2",
            #[cfg(lanebloom_rust_1_89)]
            Self::Avx512 => "AVX-512",
        }
    }

    /// Whether batches have vectors of eight keys.
    pub(super) fn is_wide(self) -> bool {
        #[cfg(lanebloom_rust_1_89)]
        return self == Self::Avx512;
        #[cfg(not(lanebloom_rust_1_89))]
        return false;
    }

    /// How batches by this level are read on a CPU with this tuning.
    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        if self == Self::Avx2 { tuning.of_avx2() } else { tuning }
    }
}

/// The single lookups that are inlined, in sectors of this many words.
pub(super) fn inlined(level: Level, words: usize) -> Inlined {
    match level {
        Level::Plain => Inlined::NONE,
        _ => Inlined::of(words),
    }
}

/// Runs `work` with single calls in a function of the level, where they are inlined.
#[inline]
pub(super) fn inlined_calls<A: Asked, R>(
    level: Level,
    words: usize,
    by_pointers: Calls,
    work: impl FnOnce(Calls) -> R,
) -> R {
    if level == Level::Plain {
        return work(by_pointers);
    }
    // SAFETY: the level proves that the CPU has AVX2.
    unsafe {
        match words {
            1 => avx2::with_calls::<1, A, _>(work),
            2 => avx2::with_calls::<2, A, _>(work),
            4 => avx2::with_calls::<4, A, _>(work),
            _ => avx2::with_calls::<8, A, _>(work),
        }
    }
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
    // One key at a time has no use for wider vectors.
    const ROWS: &[[Contains<T>; 4]] = &[
        of_words!(plain::single_lookup, A, T),
        of_words!(Self::avx2),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(Self::avx2),
    ];

    const fn avx2<const W: usize>() -> Contains<T> {
        avx2::contains::<W, A, T>
    }
}

/// The table of batches of lookups. It is one of its own, so that a program without batches is
/// linked without it.
struct Batches<T>(PhantomData<T>);

impl<T: Load> Batches<T> {
    const ROWS: &[[BatchLookups<T>; 4]] = &[
        [const { plain::batch_lookups() }; 4],
        of_words!(Self::avx2_batches),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(Self::avx512_batches),
    ];

    const fn avx2_batches<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            few_flags: avx2::few_flags::<W, T>,
            few_bitmap: avx2::few_bitmap::<W, T>,
            batch: Some([
                avx2::contains_hashes::<W, TILE_GROUPS, T>,
                avx2::contains_hashes::<W, 1, T>,
            ]),
        }
    }

    #[cfg(lanebloom_rust_1_89)]
    const fn avx512_batches<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some([
                avx512::contains_hashes::<W, TILE_GROUPS, T>,
                avx512::contains_hashes::<W, 1, T>,
            ]),
            ..Self::avx2_batches::<W>()
        }
    }
}

#[inline(always)]
pub(super) fn single_insert(row: u8) -> Insert {
    static ROWS: &[[Insert; 4]] = &[
        of_words!(plain::single_insert),
        of_words!(avx2_insert),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(avx2_insert),
    ];
    ROWS.as_flattened()[usize::from(row)]
}

const fn avx2_insert<const W: usize>() -> Insert {
    avx2::insert::<W>
}

#[inline(always)]
pub(super) fn inserts(row: u8) -> &'static BatchInserts {
    static ROWS: &[[BatchInserts; 4]] = &[
        of_words!(plain::inserts),
        of_words!(avx2_inserts),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(avx512_inserts),
    ];
    &ROWS.as_flattened()[usize::from(row)]
}

const fn avx2_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some([avx2::insert_hashes::<W, TILE_GROUPS>, avx2::insert_hashes::<W, 1>]),
        fill: avx2::fill::<W>,
    }
}

#[cfg(lanebloom_rust_1_89)]
const fn avx512_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some([avx512::insert_hashes::<W, TILE_GROUPS>, avx512::insert_hashes::<W, 1>]),
        fill: avx512::fill::<W>,
    }
}

pub(super) fn pack(level: Level) -> Pack {
    match level {
        Level::Plain | Level::Avx2 => scalar::pack,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => avx512::pack,
    }
}

pub(super) fn unpack(level: Level) -> Unpack {
    match level {
        Level::Plain => scalar::unpack,
        Level::Avx2 => avx2::unpack,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => avx512::unpack,
    }
}

pub(super) fn and_rows<T: Load>(level: Level) -> AndRows<T> {
    match level {
        Level::Plain => scalar::and_rows,
        Level::Avx2 => avx2::and_rows,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => avx512::and_rows,
    }
}

#[inline]
pub(super) fn vectorized<W: Vectorized>(level: Level, work: W) -> W::Output {
    match level {
        Level::Plain => work.run(),
        // SAFETY: the level proves that the CPU has what the function is compiled for.
        Level::Avx2 => unsafe { avx2::vectorized(work) },
        // SAFETY: as above.
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => unsafe { avx512::vectorized(work) },
    }
}

#[inline]
pub(super) fn murmur3(level: Level) -> Option<HashKernels<2>> {
    match level {
        Level::Plain => None,
        Level::Avx2 => Some(HashKernels {
            most: 16,
            short: hash_avx2::murmur3_short,
            slices: None,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => Some(HashKernels {
            most: 16,
            short: hash_avx512::murmur3_short,
            slices: Some(hash_avx512::murmur3_slices),
        }),
    }
}

#[inline]
pub(super) fn siphash13(level: Level) -> Option<HashKernels<4>> {
    match level {
        Level::Plain => None,
        Level::Avx2 => Some(HashKernels {
            most: 16,
            short: hash_avx2::siphash13_short,
            slices: None,
        }),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => Some(HashKernels {
            most: 16,
            short: hash_avx512::siphash13_short,
            slices: Some(hash_avx512::siphash13_slices),
        }),
    }
}
