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
    AndRows, BatchInserts, BatchLookups, Contains, Gather, HashTable, Insert, SHAPES, Unpack, Vectorized, of_shapes,
    of_words, shape_number,
};
use super::pipeline::TILE_GROUPS;
use super::plan::{Forms, TuningRow};
use super::portable;
#[cfg(lanebloom_rust_1_89)]
use super::two_lines;
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

pub(super) fn contains<T: Load>(level: Level, words: usize, bits: usize) -> Contains<T> {
    match level {
        Level::Plain => portable::contains(PLAIN, words, bits),
        Level::Avx2 => SingleLookups::AVX2[shape_number(words, bits)],
        // One key at a time has no use for wider vectors.
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 => SingleLookups::AVX2[shape_number(words, bits)],
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => SingleLookups::bitalg(level, words, bits).0,
    }
}

/// [`contains`] for keys with two lines.
pub(super) fn contains_two<T: Load>(level: Level, words: usize, bits: usize) -> Contains<T> {
    match level {
        #[cfg(lanebloom_rust_1_89)]
        Level::Gather | Level::Bitalg => SingleLookups::bitalg(level, words, bits).1,
        _ => portable::contains_two(PLAIN, words, bits),
    }
}

/// The tables of single lookups: not those of batches, so that a program without batches is linked
/// without these.
struct SingleLookups<T>(PhantomData<T>);

impl<T: Load> SingleLookups<T> {
    const AVX2: &[Contains<T>; SHAPES] = {
        use avx2::contains;
        &of_shapes!(contains, T)
    };

    /// In one line, and of two lines.
    #[cfg(lanebloom_rust_1_89)]
    fn bitalg(level: Level, words: usize, bits: usize) -> (Contains<T>, Contains<T>) {
        Self::BITALG.as_flattened()[usize::from(lookup_row(level, words, bits) - BITALG)]
    }

    /// In the order of the rows of [`batch_lookups`].
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

/// The first rows of two levels in [`batch_lookups`].
#[cfg(lanebloom_rust_1_89)]
const BITALG: u8 = 12;
#[cfg(lanebloom_rust_1_89)]
const GATHER: u8 = 16;

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(row: u8) -> &'static BatchLookups<T> {
    &LookupRows::<T>::ROWS.as_flattened()[usize::from(row)]
}

struct LookupRows<T>(PhantomData<T>);

impl<T: Load> LookupRows<T> {
    /// Four for each level: for 1, 2, 4, and 8 words.
    const ROWS: &[[BatchLookups<T>; 4]] = &[
        [const { portable::plain_lookups() }; 4],
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

pub(super) fn gather(level: Level) -> Gather {
    match level {
        Level::Plain | Level::Avx2 => portable::gather(PLAIN),
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::gather,
    }
}

pub(super) fn insert(level: Level, words: usize, bits: usize) -> Insert {
    use avx2::insert;
    static AVX2: [Insert; SHAPES] = of_shapes!(insert);
    match level {
        Level::Plain => portable::insert(PLAIN, words, bits),
        _ => AVX2[shape_number(words, bits)],
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
static INSERT_ROWS: &[[BatchInserts; 4]] = &[
    of_words!(portable::plain_inserts),
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

pub(super) fn and_rows<T: Load>(level: Level) -> AndRows<T> {
    match level {
        Level::Plain => portable::and_rows(PLAIN),
        Level::Avx2 => avx2::and_rows,
        #[cfg(lanebloom_rust_1_89)]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::and_rows,
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
