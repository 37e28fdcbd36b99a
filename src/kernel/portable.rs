//! The tables of machines without vectors that this crate knows: the twin of `x86_64.rs` and
//! `aarch64.rs`.

use super::dispatch::{
    AndRows, BatchInserts, BatchLookups, HashKernels, Insert, ShapeLookups, Unpack, Vectorized, of_words,
};
pub(super) use super::plain::Inlined;
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

    pub(super) fn gathers(self) -> bool {
        false
    }

    pub(super) fn tuned(self, tuning: TuningRow) -> TuningRow {
        tuning
    }

    pub(super) fn looks_first(self) -> bool {
        false
    }
}

pub(super) fn inlined(_: Level, _: usize, _: usize) -> Inlined {
    Inlined
}

pub(super) fn lookups<T: Load>(_: Level, words: usize, bits: usize) -> ShapeLookups<T> {
    plain::lookups(words, bits)
}

#[inline(always)]
pub(super) fn batch_lookups<T: Load>(_: u8) -> &'static BatchLookups<T> {
    const { &plain::batch_lookups() }
}

pub(super) fn inserts(_: Level, words: usize, bits: usize) -> (Insert, u8) {
    (plain::insert(words, bits), words.ilog2() as u8)
}

#[inline(always)]
pub(super) fn batch_inserts(row: u8) -> &'static BatchInserts {
    static ROWS: [BatchInserts; 4] = of_words!(plain::batch_inserts);
    &ROWS[usize::from(row)]
}

pub(super) fn vectorized<W: Vectorized>(_: Level, work: W) -> W::Output {
    work.run()
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
