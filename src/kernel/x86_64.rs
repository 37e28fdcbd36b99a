//! The tables of x86-64: plain, AVX2, AVX-512, and AVX-512 with VBMI and BITALG. The twin of
//! `aarch64.rs` and `portable.rs`.

mod avx2;
mod avx512;
mod bitalg;
mod hash_avx2;
mod hash_avx512;
mod loads;

use super::dispatch::{FewLookups, HashTable, LineInserts, LineLookups, TwoLookups, Unpack};
use super::portable;
use crate::geometry::pattern::BitFields;
use crate::words::bits::{Lines, Load};

/// The instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The compilation target's.
    Plain,
    Avx2,
    Avx512,
    /// BITALG with the processor's gather.
    Gather,
    Bitalg,
}

const PLAIN: portable::Level = portable::Level::Plain;

impl Level {
    /// The best last.
    pub(super) const ALL: &[Self] = &[Self::Plain, Self::Avx2, Self::Avx512, Self::Gather, Self::Bitalg];

    /// Whether this CPU has it; without `std`, whether the target has.
    pub(super) fn is_there(self) -> bool {
        match self {
            Self::Plain => true,
            Self::Avx2 => avx2::detect(),
            Self::Avx512 => avx512::detect(),
            Self::Gather | Self::Bitalg => bitalg::detect(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::Gather => "AVX-512 BITALG, gather",
            Self::Bitalg => "AVX-512 BITALG",
        }
    }

    /// Whether batches load words by the processor's gather.
    pub(super) fn gathers(self) -> bool {
        self == Self::Gather
    }

    /// Whether a lookup is faster than to make the masks of an insert, and so comes first.
    #[inline(always)]
    pub(super) fn looks_first(self) -> bool {
        matches!(self, Self::Gather | Self::Bitalg)
    }
}

pub(super) fn lookups<const W: usize, const S: usize, T: Load>(level: Level) -> LineLookups<T> {
    match level {
        Level::Plain => portable::lookups::<W, S, T>(PLAIN),
        Level::Avx2 => LineLookups {
            contains: avx2::contains::<W, S, T>,
            few: None,
            batch: Some(avx2::contains_hashes::<W, T>),
        },
        Level::Avx512 => LineLookups {
            // One key at a time has no use for wider vectors.
            contains: avx2::contains::<W, S, T>,
            few: None,
            batch: Some(avx512::contains_hashes::<W, T>),
        },
        Level::Gather | Level::Bitalg => LineLookups {
            contains: bitalg::contains_one::<W, T>,
            few: Some(FewLookups {
                flags: bitalg::contains_few::<W, T>,
                bitmap: bitalg::contains_few_bitmap::<W, T>,
            }),
            batch: Some(bitalg::contains_hashes::<W, T>),
        },
    }
}

pub(super) fn two_lookups<const W: usize, T: Load>(level: Level) -> TwoLookups<T> {
    let plain = portable::two_lookups::<W, T>(PLAIN);
    match level {
        Level::Plain | Level::Avx2 => plain,
        Level::Avx512 => TwoLookups {
            gather: avx512::gather,
            ..plain
        },
        Level::Gather | Level::Bitalg => TwoLookups {
            contains: bitalg::contains_two::<W, T>,
            gather: avx512::gather,
        },
    }
}

pub(super) fn inserts<const W: usize, const S: usize>(level: Level) -> LineInserts {
    let insert = avx2::insert::<W, S>;
    match level {
        Level::Plain => portable::inserts::<W, S>(PLAIN),
        Level::Avx2 => LineInserts {
            insert,
            batch: Some(avx2::insert_hashes::<W>),
            fill: avx2::fill::<W>,
        },
        Level::Avx512 => LineInserts {
            insert,
            batch: Some(avx512::insert_hashes::<W>),
            fill: avx512::fill::<W>,
        },
        Level::Gather | Level::Bitalg => LineInserts {
            insert,
            batch: Some(bitalg::insert_hashes::<W>),
            fill: avx512::fill::<W>,
        },
    }
}

/// The pattern whose single lookups are inlined in place of a call by a pointer: 1.3 ns for the
/// most usual one, of two words. A call by a pointer takes 1.6, whatever the function does (Zen 5).
/// With the features compiled in, all patterns are inlined.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inlined {
    None,
    Words1,
    Words2,
    Words4,
    Words8,
}

impl Inlined {
    pub(super) fn of<const W: usize>(level: Level) -> Self {
        if !level.looks_first() {
            return Self::None;
        }
        match W {
            2 => Self::Words2,
            1 if bitalg::COMPILED_IN => Self::Words1,
            4 if bitalg::COMPILED_IN => Self::Words4,
            8 if bitalg::COMPILED_IN => Self::Words8,
            _ => Self::None,
        }
    }

    /// # Safety
    ///
    /// The CPU has the level that this was made for.
    #[inline(always)]
    pub(super) unsafe fn contains<T: Load>(self, lines: Lines<'_, T>, hash: u64, fields: &BitFields) -> Option<bool> {
        // SAFETY: only the levels of BITALG have any, and the CPU has the level.
        unsafe {
            match self {
                Self::Words2 => Some(bitalg::contains::<2, T>(lines, hash, fields)),
                Self::Words1 if bitalg::COMPILED_IN => Some(bitalg::contains::<1, T>(lines, hash, fields)),
                Self::Words4 if bitalg::COMPILED_IN => Some(bitalg::contains::<4, T>(lines, hash, fields)),
                Self::Words8 if bitalg::COMPILED_IN => Some(bitalg::contains::<8, T>(lines, hash, fields)),
                _ => None,
            }
        }
    }
}

pub(super) fn unpack(level: Level) -> Unpack {
    match level {
        Level::Plain => portable::unpack(PLAIN),
        Level::Avx2 => avx2::unpack,
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::unpack,
    }
}

#[inline]
pub(super) fn murmur3(level: Level) -> Option<HashTable<2>> {
    match level {
        Level::Plain => portable::murmur3(PLAIN),
        Level::Avx2 => Some(HashTable {
            short: hash_avx2::murmur3_short,
            slices: None,
        }),
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashTable {
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
            short: hash_avx2::siphash13_short,
            slices: None,
        }),
        Level::Avx512 | Level::Gather | Level::Bitalg => Some(HashTable {
            short: hash_avx512::siphash13_short,
            slices: Some(hash_avx512::siphash13_slices),
        }),
    }
}
