//! The tables of functions: for each instruction set four rows, for 1, 2, 4 and 8 words of a
//! sector. `call.rs` calls them. A function in a table may be called if the CPU has the instruction
//! set that it is compiled for.

#[cfg(lanebloom_x86_64)]
use super::avx2;
#[cfg(lanebloom_avx512)]
use super::avx512;
use super::isa::Level;
#[cfg(lanebloom_aarch64)]
use super::neon;
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
use super::pipeline::TILE_GROUPS;
use super::plain;
use super::plan::Prefetching;
use super::single::{Asked, Calls, Contains, Insert, Probe};
use crate::geometry::pattern::Pattern;
use crate::words::bits::{Lines, Load, OwnedRange};
use crate::words::sync::AtomicU64;

/// The value for 1, 2, 4, and 8 words, as the constant `$words`.
macro_rules! of_words {
    ($words:ident => $value:expr) => {
        [
            of_words!($words = 1, $value),
            of_words!($words = 2, $value),
            of_words!($words = 4, $value),
            of_words!($words = 8, $value),
        ]
    };
    ($words:ident = $number:literal, $value:expr) => {{
        const $words: usize = $number;
        $value
    }};
}

type ContainsFew<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>, &mut [bool]);
type ContainsFewBitmap<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>) -> u64;
// (With the arguments of a batch in a struct, lookups by AVX2 and AVX-512 take up to 1.09 times as
// long, on Zen 4: the compiler assumes only for arguments that references share no memory.)
type ContainsBatch<T> = unsafe fn(Lines<'_, T>, &Pattern, Prefetching, &[u64], &mut [u64]);
type InsertBatch = unsafe fn(Lines<'_, AtomicU64>, &Pattern, Prefetching, &[u64], &mut [u64]);
type Fill = unsafe fn(&mut OwnedRange<'_>, &Pattern, Prefetching, &[u64], &mut [u64]);

/// The lookups of several hashes, in lines of one kind of words: `AtomicU64` of a filter, its
/// counters, or the bytes of a snapshot. A filter keeps the number of the row and no pointer, so
/// that a program which looks up single keys alone is linked without them.
#[derive(Debug)]
pub(super) struct BatchLookups<T> {
    /// For a few hashes, one by one.
    pub(super) few_flags: ContainsFew<T>,
    pub(super) few_bitmap: ContainsFewBitmap<T>,
    /// The two forms of a pipeline (`pipeline.rs`): lines are prefetched by tiles, or by groups
    /// ([`Prefetching::form`]). If there is none, hashes go one by one. (In one function, with a
    /// branch, inserts in the caches took 1.05 to 1.1 times as long.)
    pub(super) batch: Option<[ContainsBatch<T>; 2]>,
}

impl<T: Load> BatchLookups<T> {
    const PLAIN: Self = Self {
        few_flags: plain::few_flags,
        few_bitmap: plain::few_lookups,
        batch: None,
    };
}

/// The inserts of several hashes into lines of bits: as [`BatchLookups`], by a row's number, and as
/// these in a table of their own.
#[derive(Debug)]
pub(super) struct BatchInserts {
    /// The two forms, as for lookups.
    pub(super) batch: Option<[InsertBatch; 2]>,
    pub(super) fill: Fill,
}

/// The row of the tables of kernels.
pub(super) fn row(level: Level, words: usize) -> u8 {
    4 * level as u8 + words.ilog2() as u8
}

// (One key at a time has no use for vectors of AVX-512.)
#[inline(always)]
pub(super) fn single_lookup<A: Asked, T: Load>(row: u8) -> Contains<T> {
    let rows: &[[Contains<T>; 4]] = const {
        &[
            of_words!(W => plain::contains::<W, A, T>),
            #[cfg(lanebloom_x86_64)]
            of_words!(W => avx2::contains::<W, A, T>),
            #[cfg(lanebloom_avx512)]
            of_words!(W => avx2::contains::<W, A, T>),
            #[cfg(lanebloom_aarch64)]
            of_words!(W => neon::contains::<W, A, T>),
        ]
    };
    rows.as_flattened()[usize::from(row)]
}

// (A static, and so is that of batches: in constants, every crate that inserts would compile the
// inserts again.)
#[inline(always)]
pub(super) fn single_insert(row: u8) -> Insert {
    static ROWS: &[[Insert; 4]] = &[
        of_words!(W => plain::insert::<W>),
        #[cfg(lanebloom_x86_64)]
        of_words!(W => avx2::insert::<W>),
        #[cfg(lanebloom_avx512)]
        of_words!(W => avx2::insert::<W>),
        #[cfg(lanebloom_aarch64)]
        of_words!(W => neon::insert::<W>),
    ];
    ROWS.as_flattened()[usize::from(row)]
}

/// The lookups of batches. They have a table of their own, so that a program without batches is
/// linked without it.
#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    let rows: &[[BatchLookups<T>; 4]] = const {
        &[
            [const { BatchLookups::PLAIN }; 4],
            #[cfg(lanebloom_x86_64)]
            of_words!(W => BatchLookups {
                few_flags: avx2::few_flags::<W, T>,
                few_bitmap: avx2::few_bitmap::<W, T>,
                batch: Some([avx2::contains_hashes::<W, TILE_GROUPS, T>, avx2::contains_hashes::<W, 1, T>]),
            }),
            #[cfg(lanebloom_avx512)]
            of_words!(W => BatchLookups {
                few_flags: avx2::few_flags::<W, T>,
                few_bitmap: avx2::few_bitmap::<W, T>,
                batch: Some([avx512::contains_hashes::<W, TILE_GROUPS, T>, avx512::contains_hashes::<W, 1, T>]),
            }),
            #[cfg(lanebloom_aarch64)]
            of_words!(W => BatchLookups {
                batch: Some([neon::contains_hashes::<W, TILE_GROUPS, T>, neon::contains_hashes::<W, 1, T>]),
                ..BatchLookups::PLAIN
            }),
        ]
    };
    &rows.as_flattened()[usize::from(row)]
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    static ROWS: &[[BatchInserts; 4]] = &[
        of_words!(W => BatchInserts {
            batch: None,
            fill: plain::fill::<W>,
        }),
        #[cfg(lanebloom_x86_64)]
        of_words!(W => BatchInserts {
            batch: Some([avx2::insert_hashes::<W, TILE_GROUPS>, avx2::insert_hashes::<W, 1>]),
            fill: avx2::fill::<W>,
        }),
        #[cfg(lanebloom_avx512)]
        of_words!(W => BatchInserts {
            batch: Some([avx512::insert_hashes::<W, TILE_GROUPS>, avx512::insert_hashes::<W, 1>]),
            fill: avx512::fill::<W>,
        }),
        #[cfg(lanebloom_aarch64)]
        of_words!(W => BatchInserts {
            batch: Some([neon::insert_hashes::<W, TILE_GROUPS>, neon::insert_hashes::<W, 1>]),
            fill: neon::fill::<W>,
        }),
    ];
    &ROWS.as_flattened()[usize::from(row)]
}

/// Runs `work` with single calls that are inlined into a function of the level, or by pointers.
#[cfg_attr(not(lanebloom_x86_64), expect(unused_variables, reason = "none is inlined"))]
#[inline]
pub(super) fn inlined_calls<A: Asked, R>(
    level: Level,
    words: usize,
    by_pointers: Calls,
    work: impl FnOnce(Calls) -> R,
) -> R {
    #[cfg(lanebloom_x86_64)]
    if level != Level::Plain {
        // SAFETY: the level proves that the CPU has AVX2.
        return unsafe {
            match words {
                1 => avx2::with_calls::<1, A, _>(work),
                2 => avx2::with_calls::<2, A, _>(work),
                4 => avx2::with_calls::<4, A, _>(work),
                _ => avx2::with_calls::<8, A, _>(work),
            }
        };
    }
    work(by_pointers)
}
