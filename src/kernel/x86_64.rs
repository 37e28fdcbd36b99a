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
use super::dispatch::{
    AndRows, BatchInserts, BatchLookups, Contains, HashKernels, Insert, SHAPES, ShapeLookups, Unpack, Vectorized,
    of_shapes, of_words, shape_number,
};
use super::pipeline::TILE_GROUPS;
use super::plan::TuningRow;
#[cfg(lanebloom_rust_1_89)]
use super::two_lines;
use super::{plain, scalar};
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
            #[cfg(lanebloom_rust_1_89)]
            Self::Gather | Self::Bitalg => has!("avx512vbmi" "avx512bitalg") && Self::Avx512.is_there(),
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
    match level {
        _ if words != 2 || words_per_product(words, bits) < words => Inlined::NONE,
        Level::Plain => Inlined::NONE,
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => Inlined::bitalg(bits),
        _ => Inlined::avx2(bits),
    }
}

/// The lookups of a level, for patterns of this many words and bits.
pub(super) fn lookups<T: Load>(level: Level, words: usize, bits: usize) -> ShapeLookups<T> {
    let plain = plain::lookups(words, bits);
    match level {
        Level::Plain => plain,
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => {
            let row = lookup_row(level, words, bits);
            let (contains, contains_two) = Tables::BITALG.as_flattened()[usize::from(row - BITALG)];
            ShapeLookups {
                contains,
                contains_two,
                gather: avx512::gather,
                row,
            }
        }
        // One key at a time has no use for wider vectors.
        _ => ShapeLookups {
            contains: Tables::AVX2[shape_number(words, bits)],
            #[cfg(lanebloom_rust_1_89)]
            gather: match level {
                Level::Avx2 => plain.gather,
                _ => avx512::gather,
            },
            row: row(level, words),
            ..plain
        },
    }
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &Tables::<T>::ROWS.as_flattened()[usize::from(row)]
}

/// The row of patterns of this many words in the tables of batches, but for lookups by
/// [`Level::Gather`].
fn row(level: Level, words: usize) -> u8 {
    4 * level as u8 + words.ilog2() as u8
}

/// The row of [`batch_lookups`] for patterns of this many words and bits.
#[cfg(lanebloom_rust_1_89)]
fn lookup_row(level: Level, words: usize, bits: usize) -> u8 {
    if level == Level::Bitalg {
        return row(level, words);
    }
    // After those of the other levels: one for 1 word, two for 2, four for 4, and one for 8.
    let place = match (words, bitalg::scalar_words(words, bits, true)) {
        (1, _) => 0,
        (2, scalar) => scalar,
        (4, scalar) => 2 + scalar,
        _ => 7,
    };
    GATHER + place as u8
}

/// The first rows of two levels in [`batch_lookups`].
#[cfg(lanebloom_rust_1_89)]
const BITALG: u8 = 12;
#[cfg(lanebloom_rust_1_89)]
const GATHER: u8 = 16;

/// The tables. Those of single lookups and of batches are two, so that a program without batches is
/// linked without theirs.
struct Tables<T>(PhantomData<T>);

impl<T: Load> Tables<T> {
    const AVX2: &[Contains<T>; SHAPES] = {
        use avx2::contains;
        &of_shapes!(contains, T)
    };

    /// In one line, and of two lines, in the order of the rows of [`batch_lookups`].
    #[cfg(lanebloom_rust_1_89)]
    const BITALG: &[[(Contains<T>, Contains<T>); 4]] = &[
        of_words!(Self::one_and_two, 0),
        [
            Self::one_and_two::<1, 0>(),
            Self::one_and_two::<2, 1>(),
            Self::one_and_two::<2, 2>(),
            Self::one_and_two::<4, 1>(),
        ],
        [
            Self::one_and_two::<4, 2>(),
            Self::one_and_two::<4, 3>(),
            Self::one_and_two::<4, 4>(),
            Self::one_and_two::<8, 0>(),
        ],
    ];

    #[cfg(lanebloom_rust_1_89)]
    const fn one_and_two<const W: usize, const SCALAR: usize>() -> (Contains<T>, Contains<T>) {
        // (Constants, so that the other is not compiled.)
        let two: Contains<T> = const {
            if T::COUNTERS || W > 4 {
                two_lines::contains
            } else {
                bitalg::contains_two::<W, SCALAR, T>
            }
        };
        (bitalg::contains_one::<W, SCALAR, T>, two)
    }

    /// The rows of [`batch_lookups`], four for each level: for 1, 2, 4, and 8 words.
    const ROWS: &[[BatchLookups<T>; 4]] = &[
        [const { plain::batch_lookups() }; 4],
        of_words!(Self::avx2),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(Self::avx512),
        #[cfg(lanebloom_rust_1_89)]
        of_words!(Self::bitalg, 0, false),
        #[cfg(lanebloom_rust_1_89)]
        [
            Self::bitalg::<1, 0, true>(),
            Self::bitalg::<2, 1, true>(),
            Self::bitalg::<2, 2, true>(),
            Self::bitalg::<4, 1, true>(),
        ],
        #[cfg(lanebloom_rust_1_89)]
        [
            Self::bitalg::<4, 2, true>(),
            Self::bitalg::<4, 3, true>(),
            Self::bitalg::<4, 4, true>(),
            Self::bitalg::<8, 0, true>(),
        ],
    ];

    const fn avx2<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some([
                avx2::contains_hashes::<W, TILE_GROUPS, T>,
                avx2::contains_hashes::<W, 1, T>,
            ]),
            ..plain::batch_lookups()
        }
    }

    #[cfg(lanebloom_rust_1_89)]
    const fn avx512<const W: usize>() -> BatchLookups<T> {
        BatchLookups {
            batch: Some([avx512::contains_hashes::<W, T>; 2]),
            ..plain::batch_lookups()
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
            batch: Some([
                bitalg::contains_hashes::<W, TILE_GROUPS, GATHER, T>,
                bitalg::contains_hashes::<W, 1, GATHER, T>,
            ]),
        }
    }
}

/// The insert of a key, and the row of [`batch_inserts`].
pub(super) fn inserts(level: Level, words: usize, bits: usize) -> (Insert, u8) {
    use avx2::insert;
    static AVX2: [Insert; SHAPES] = of_shapes!(insert);
    let insert = match level {
        Level::Plain => plain::insert(words, bits),
        _ => AVX2[shape_number(words, bits)],
    };
    (insert, row(level, words))
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    &INSERT_ROWS.as_flattened()[usize::from(row)]
}

/// Four for each level, as [`batch_lookups`].
static INSERT_ROWS: &[[BatchInserts; 4]] = &[
    of_words!(plain::batch_inserts),
    of_words!(avx2_inserts),
    #[cfg(lanebloom_rust_1_89)]
    of_words!(avx512_inserts),
    #[cfg(lanebloom_rust_1_89)]
    of_words!(bitalg_inserts, false),
    #[cfg(lanebloom_rust_1_89)]
    of_words!(bitalg_inserts, true),
];

const fn avx2_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some([avx2::insert_hashes::<W, TILE_GROUPS>, avx2::insert_hashes::<W, 1>]),
        fill: avx2::fill::<W>,
    }
}

#[cfg(lanebloom_rust_1_89)]
const fn avx512_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: Some([avx512::insert_hashes::<W>; 2]),
        fill: avx512::fill::<W>,
    }
}

#[cfg(lanebloom_rust_1_89)]
const fn bitalg_inserts<const W: usize, const GATHER: bool>() -> BatchInserts {
    BatchInserts {
        batch: Some([
            bitalg::insert_hashes::<W, TILE_GROUPS, GATHER>,
            bitalg::insert_hashes::<W, 1, GATHER>,
        ]),
        fill: avx512::fill::<W>,
    }
}

pub(super) fn unpack(level: Level) -> Unpack {
    match level {
        Level::Plain => scalar::unpack,
        Level::Avx2 => avx2::unpack,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::unpack,
    }
}

pub(super) fn and_rows<T: Load>(level: Level) -> AndRows<T> {
    match level {
        Level::Plain => scalar::and_rows,
        Level::Avx2 => avx2::and_rows,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::and_rows,
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
        Level::Avx512 | Level::Gather | Level::Bitalg => unsafe { avx512::vectorized(work) },
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
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashKernels {
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
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashKernels {
            most: 16,
            short: hash_avx512::siphash13_short,
            slices: Some(hash_avx512::siphash13_slices),
        }),
    }
}
