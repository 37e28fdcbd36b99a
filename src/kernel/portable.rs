//! The tables of machines without vectors that this crate knows: the twin of `x86_64.rs` and
//! `aarch64.rs`.

use super::dispatch::{
    AndRows, Asked, BatchInserts, BatchLookups, Contains, HashKernels, Insert, Pack, Unpack, Vectorized, of_words,
};
pub(super) use super::plain::{Inlined, inlined_calls};
use super::plan::TuningRow;
use super::{plain, scalar};
use crate::words::bits::Load;

/// The instruction sets: that of the compilation target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Plain,
}

impl Level {
    pub(super) const ALL: &[Self] = &[Self::Plain];

    pub(super) fn is_there(self) -> bool {
        true
    }

    pub(super) fn name(self) -> &'static str {
        "plain"
    }

    /// Whether batches have vectors of eight keys.
    pub(super) fn is_wide(self) -> bool {
        false
    }

    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        tuning
    }
}

pub(super) fn inlined(_: Level, _: usize) -> Inlined {
    Inlined::NONE
}

/// The row of the tables below, for 1, 2, 4, and 8 words.
pub(super) fn row(_: Level, words: usize) -> u8 {
    words.ilog2() as u8
}

#[inline(always)]
pub(super) fn single_lookup<A: Asked, T: Load>(row: u8) -> Contains<T> {
    let rows: &[Contains<T>; 4] = const { &of_words!(plain::single_lookup, A, T) };
    rows[usize::from(row)]
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(_: u8) -> &'static BatchLookups<T> {
    const { &plain::batch_lookups() }
}

#[inline(always)]
pub(super) fn single_insert(row: u8) -> Insert {
    const ROWS: [Insert; 4] = of_words!(plain::single_insert);
    ROWS[usize::from(row)]
}

#[inline(always)]
pub(super) fn inserts(row: u8) -> &'static BatchInserts {
    static ROWS: [BatchInserts; 4] = of_words!(plain::inserts);
    &ROWS[usize::from(row)]
}

pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    work.run()
}

pub(super) fn pack(_: Level) -> Pack {
    scalar::pack
}

pub(super) fn unpack(_: Level) -> Unpack {
    scalar::unpack
}

pub(super) fn and_rows<T: Load>(_: Level) -> AndRows<T> {
    scalar::and_rows
}

pub(super) fn murmur3(_: Level) -> Option<HashKernels<2>> {
    None
}

pub(super) fn siphash13(_: Level) -> Option<HashKernels<4>> {
    None
}
