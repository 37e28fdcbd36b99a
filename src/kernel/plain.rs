//! The plain functions, from `scalar.rs`: the lowest level of every architecture, and the only one
//! of machines without vectors that this crate knows.

#[cfg(any(lanebloom_loom, not(target_arch = "x86_64")))]
use super::dispatch::Calls;
use super::dispatch::{Asked, BatchInserts, BatchLookups, Contains, Insert, Probe};
use super::scalar;
use crate::geometry::pattern::Pattern;
use crate::words::bits::{Lines, Load};
use crate::words::sync::AtomicU64;

#[inline(never)]
fn contains<const W: usize, A: Asked, T: Load>(lines: Lines<'_, T>, hash: u64, probe: &Probe<T>) -> bool {
    A::hold(lines, hash, probe.hint, |line, hash| {
        scalar::contains::<W, T>(line, hash, probe.pattern.bits)
    })
}

fn insert<const W: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, pattern: &Pattern) -> bool {
    scalar::insert::<W>(&mut lines, hash, pattern.bits)
}

pub(super) const fn single_lookup<const W: usize, A: Asked, T: Load>() -> Contains<T> {
    contains::<W, A, T>
}

pub(super) const fn batch_lookups<T: Load>() -> BatchLookups<T> {
    BatchLookups {
        few_flags: scalar::few_flags,
        few_bitmap: scalar::few_lookups,
        batch: None,
    }
}

pub(super) const fn single_insert<const W: usize>() -> Insert {
    insert::<W>
}

pub(super) const fn inserts<const W: usize>() -> BatchInserts {
    BatchInserts {
        batch: None,
        fill: scalar::fill::<W>,
    }
}

/// Runs `work` with single calls by pointers.
#[cfg(any(lanebloom_loom, not(target_arch = "x86_64")))]
#[expect(clippy::extra_unused_type_parameters, reason = "its twin has functions for them")]
#[inline]
pub(super) fn inlined_calls<A, R>(_: impl Copy, _: usize, by_pointers: Calls, work: impl FnOnce(Calls) -> R) -> R {
    work(by_pointers)
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
    pub(super) unsafe fn contains<T: Load>(&self, _: Lines<'_, T>, _: u64, _: &Pattern) -> Option<bool> {
        None
    }

    /// # Safety
    ///
    /// The same as for [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn contains_each<T: Load, P>(
        &self,
        _: Lines<'_, T>,
        _: &Pattern,
        hashes: impl Iterator<Item = (u64, P)>,
        mut answer: impl FnMut(P, bool),
        otherwise: impl Fn(u64) -> bool,
    ) {
        hashes.for_each(|(hash, of_hash)| answer(of_hash, otherwise(hash)));
    }
}
