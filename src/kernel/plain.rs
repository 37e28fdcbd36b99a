//! The plain functions, from `scalar.rs`: the lowest level of every architecture, and the only one
//! of machines without vectors that this crate knows.

use super::dispatch::{
    BatchInserts, BatchLookups, Contains, Insert, Probe, SHAPES, ShapeLookups, of_shapes, shape_number,
};
use super::{scalar, two_lines};
use crate::geometry::pattern::BitFields;
use crate::words::bits::{Lines, Load};
use crate::words::sync::AtomicU64;

/// The lookups of patterns of this many words and bits. Batches are those of row 0.
pub(super) fn lookups<T: Load>(words: usize, bits: usize) -> ShapeLookups<T> {
    #[inline(never)]
    fn contains<const W: usize, const S: usize, T: Load>(lines: Lines<'_, T>, hash: u64, _: &Probe<T>) -> bool {
        scalar::contains::<W, false, T>(lines, const { &BitFields::new(W, S) }, hash)
    }
    let table: &[Contains<T>; SHAPES] = const { &of_shapes!(contains, T) };
    ShapeLookups {
        contains: table[shape_number(words, bits)],
        contains_two: two_lines::contains,
        gather: two_lines::gather,
        row: 0,
    }
}

pub(super) const fn batch_lookups<T: Load>() -> BatchLookups<T> {
    BatchLookups {
        few_flags: scalar::few_flags,
        few_bitmap: scalar::few_lookups,
        groups: None,
        batch: None,
    }
}

pub(super) fn insert(words: usize, bits: usize) -> Insert {
    fn insert<const W: usize, const S: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, _: &BitFields) -> bool {
        scalar::insert::<W>(&mut lines, const { &BitFields::new(W, S) }, hash)
    }
    static TABLE: [Insert; SHAPES] = of_shapes!(insert);
    TABLE[shape_number(words, bits)]
}

pub(super) const fn batch_inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: None,
        fill: scalar::fill::<W>,
    }
}

/// The single calls that are inlined in place of calls by a pointer: none.
#[cfg(any(lanebloom_loom, not(target_arch = "x86_64")))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Inlined;

#[cfg(any(lanebloom_loom, not(target_arch = "x86_64")))]
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
