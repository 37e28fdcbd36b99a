//! The tables of machines without vectors that this crate knows, filled from `scalar.rs`: the twin
//! of `x86_64.rs` and `aarch64.rs`, and their lowest level.

use super::dispatch::{
    AndRows, BatchInserts, BatchLookups, Contains, Gather, HashTable, Insert, Probe, SHAPES, Unpack, Vectorized,
    of_shapes, of_words, shape_number,
};
use super::plan::TuningRow;
use super::{scalar, two_lines};
use crate::geometry::pattern::BitFields;
use crate::words::bits::{Lines, Load};
use crate::words::sync::AtomicU64;

/// The instruction sets: that of the compilation target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Plain,
}

#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)),
    expect(dead_code, reason = "the other tables have levels of their own")
)]
impl Level {
    pub(super) const ALL: &[Self] = &[Self::Plain];

    /// Whether this CPU has it; without `std`, whether the target has.
    pub(super) fn is_there(self) -> bool {
        true
    }

    pub(super) fn name(self) -> &'static str {
        "plain"
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

#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)),
    expect(dead_code, reason = "the other tables have functions of their own")
)]
pub(super) fn inlined(_: Level, _: usize, _: usize) -> Inlined {
    Inlined
}

pub(super) fn contains<T: Load>(_: Level, words: usize, bits: usize) -> Contains<T> {
    #[inline(never)]
    fn contains<const W: usize, const S: usize, T: Load>(lines: Lines<'_, T>, hash: u64, _: &Probe<T>) -> bool {
        scalar::contains::<W, false, T>(lines, const { &BitFields::new(W, S) }, hash)
    }
    let table: &[Contains<T>; SHAPES] = const { &of_shapes!(contains, T) };
    table[shape_number(words, bits)]
}

/// [`contains`] for keys with two lines.
pub(super) fn contains_two<T: Load>(_: Level, _: usize, _: usize) -> Contains<T> {
    two_lines::contains
}

pub(super) fn gather(_: Level) -> Gather {
    two_lines::gather
}

pub(super) fn insert(_: Level, words: usize, bits: usize) -> Insert {
    fn insert<const W: usize, const S: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, _: &BitFields) -> bool {
        scalar::insert::<W>(&mut lines, const { &BitFields::new(W, S) }, hash)
    }
    static TABLE: [Insert; SHAPES] = of_shapes!(insert);
    TABLE[shape_number(words, bits)]
}

/// The row of [`batch_lookups`] for patterns of this many words and bits.
#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)),
    expect(dead_code, reason = "the other tables have rows of their own")
)]
pub(super) fn lookup_row(_: Level, _: usize, _: usize) -> u8 {
    0
}

#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)),
    expect(dead_code, reason = "the other tables have rows of their own")
)]
#[inline(always)]
pub(super) fn batch_lookups<T: Load>(_: u8) -> &'static BatchLookups<T> {
    const { &plain_lookups() }
}

pub(super) const fn plain_lookups<T: Load>() -> BatchLookups<T> {
    BatchLookups {
        few_flags: scalar::few_flags,
        few_bitmap: scalar::few_lookups,
        groups: None,
        batch: None,
    }
}

/// The row of [`batch_inserts`] for patterns of this many words.
pub(super) fn insert_row(_: Level, words: usize) -> u8 {
    words.ilog2() as u8
}

#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)),
    expect(dead_code, reason = "the other tables have rows of their own")
)]
#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    static ROWS: [BatchInserts; 4] = of_words!(plain_inserts);
    &ROWS[usize::from(row)]
}

pub(super) const fn plain_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: None,
        fill: scalar::fill::<W>,
    }
}

/// The single calls that are inlined in place of calls by a pointer: none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inlined;

#[cfg_attr(
    all(target_arch = "x86_64", not(lanebloom_loom)),
    expect(dead_code, reason = "x86-64 has some")
)]
impl Inlined {
    pub(super) const NONE: Self = Self;

    #[inline(always)]
    pub(super) fn is_some(&self) -> bool {
        false
    }

    /// # Safety
    ///
    /// The CPU has the level that this was made for.
    #[inline(always)]
    pub(super) unsafe fn contains<T: Load>(&self, _: Lines<'_, T>, _: u64) -> Option<bool> {
        None
    }

    /// # Safety
    ///
    /// As for [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn contains_each<T: Load, P>(
        &self,
        _: Lines<'_, T>,
        hashes: impl Iterator<Item = (u64, P)>,
        mut answer: impl FnMut(P, bool),
        otherwise: impl Fn(u64) -> bool,
    ) {
        hashes.for_each(|(hash, of_hash)| answer(of_hash, otherwise(hash)));
    }

    /// # Safety
    ///
    /// As for [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn insert(&self, _: Lines<'_, AtomicU64>, _: u64, _: impl FnOnce() -> bool) -> Option<bool> {
        None
    }
}

#[inline(always)]
pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    work.run()
}

pub(super) fn unpack(_: Level) -> Unpack {
    scalar::unpack
}

pub(super) fn and_rows<T: Load>(_: Level) -> AndRows<T> {
    scalar::and_rows
}

pub(super) fn murmur3(_: Level) -> Option<HashTable<2>> {
    None
}

pub(super) fn siphash13(_: Level) -> Option<HashTable<4>> {
    None
}
