//! The tables of functions for one shape and one instruction set. `mod.rs` fills them in and calls
//! them; the kernels get theirs along.

use super::cpu::{Access, Tuning};
use crate::bits::{Lines, Probed, Purpose, Region, is_cached};
use crate::pattern::Cuts;
use crate::sync::AtomicU64;

/// Fewer hashes than this are few, and have functions of their own: a pipeline takes longer to
/// begin. (Zen 5, 1%, 512 KiB, bitmaps of 8 and 16 hashes: 1.9 and 1.6 ns per hash one by one, 3.4
/// and 1.9 by a pipeline.)
pub(crate) const FEW: usize = 32;

/// The operations on hashes that only read, for one shape, one instruction set and one kind of
/// words: `AtomicU64` of a filter, its counters, or the bytes of a snapshot.
#[derive(Debug)]
#[cfg_attr(
    any(lanebloom_loom, not(target_arch = "x86_64")),
    allow(dead_code, reason = "a part is for x86-64")
)]
pub struct Lookups<T> {
    pub(super) cuts: Cuts,
    pub(super) tuning: Tuning,
    /// The words of a pattern, if the functions of `bitalg.rs` may be called and keys have one
    /// line; otherwise 0.
    pub(super) bitalg_words: u8,
    // SAFETY, for all: callable if the CPU has the instruction set that they are compiled for.
    pub(super) contains: Contains<T>,
    /// If there are none, hashes go one by one.
    pub(super) contains_few: Option<Few<T>>,
    pub(super) contains_few_bitmap: Option<FewBitmap<T>>,
    /// If there is none, hashes go one by one.
    pub(super) contains_hashes: Option<Batch<T>>,
    /// The fewest hashes that are worth a pipeline. With two lines, 0: `two_lines.rs` has a
    /// function for any number.
    pub(super) least: usize,
    pub(super) line: LineLookups<T>,
}

/// The lookups in one line, which are those of [`Lookups`] if a key has no other.
#[derive(Debug)]
pub(super) struct LineLookups<T> {
    pub(super) contains: Contains<T>,
    pub(super) contains_hashes: Option<Batch<T>>,
    pub(super) least: usize,
    /// For keys with two lines.
    pub(super) gather: Gather,
}

impl<T> Clone for LineLookups<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for LineLookups<T> {}

// (The order of the arguments brings the hash into the register that the multiplication needs.)
pub(super) type Contains<T> = unsafe fn(Lines<'_, T>, u64, &Lookups<T>) -> bool;
pub(super) type Few<T> = unsafe fn(Lines<'_, T>, &[u64], &Cuts, &mut [bool]);
pub(super) type FewBitmap<T> = unsafe fn(Lines<'_, T>, &[u64], &Cuts) -> u64;
pub(super) type Batch<T> = unsafe fn(&Lookups<T>, Lines<'_, T>, Access, &[u64], &mut [u64]);
/// As `two_lines::gather`.
pub(super) type Gather = unsafe fn(&[u64], &[u64], &mut [u64]) -> usize;

impl<T> Clone for Lookups<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lookups<T> {}

/// The operations on hashes for one shape and one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    pub(super) lookups: Lookups<AtomicU64>,
    // SAFETY, for all: callable if the CPU has the instruction set that they are compiled for.
    pub(super) insert: InsertOne,
    /// If there is none, hashes go one by one.
    pub(super) insert_hashes: Option<InsertBatch>,
    pub(super) fill: Fill,
    pub(super) line: LineInserts,
}

/// The inserts into one line, which are those of [`Kernels`] if a key has no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineInserts {
    pub(super) insert: InsertOne,
    pub(super) insert_hashes: Option<InsertBatch>,
    pub(super) fill: Fill,
}

pub(super) type InsertOne = unsafe fn(Lines<'_, AtomicU64>, u64, &Kernels) -> bool;
pub(super) type InsertBatch = unsafe fn(&Kernels, Lines<'_, AtomicU64>, Access, &[u64], &mut [u64]);
pub(super) type Fill = unsafe fn(&Kernels, &mut Region<'_>, Access, &[u64], &mut [u64]);

impl<T> Lookups<T> {
    #[inline(always)]
    pub(super) fn access(&self, target: &impl Probed, purpose: Purpose) -> Access {
        Access {
            hint: (!is_cached(target.bytes())).then_some(purpose),
            ahead: self.tuning.ahead,
            gather: self.tuning.gather,
        }
    }
}
