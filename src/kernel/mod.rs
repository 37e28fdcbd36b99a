//! The kernels: functions for every shape of the pattern and every instruction set. A filter
//! chooses its kernels when it is built, and a batch of keys when it is hashed.
//!
//! A filter keeps its [`Kernels`]. A call of them is one well-predicted indirect call, and a direct
//! call for the most usual shape. (A `match` on all shapes would be a jump table.) The files of the
//! instruction sets are twins: the same names, the same signatures. `groups.rs` has the pipelines
//! of their batches. `words.rs` loads the shared words into vectors, and says why that is no data
//! race. `cpu.rs` says what is fastest on which CPU. `scalar.rs`, `pattern.rs`, `murmur3.rs`
//! and `siphash.rs` are the specification.
//!
//! | | single calls | batches of hashes | hashes of many keys |
//! |---|---|---|---|
//! | plain | `scalar.rs` | `scalar.rs` | `murmur3.rs`, `siphash.rs` |
//! | AVX2 | `avx2.rs`, inserts `scalar.rs` | `avx2.rs` | `hash/avx2.rs` up to 16 bytes |
//! | AVX-512 | as AVX2 | `avx512.rs` | `hash/avx512.rs` |
//! | AVX-512 BITALG, with or without gather | `bitalg.rs` | `bitalg.rs` | `hash/avx512.rs` |
//! | NEON | `scalar.rs` | `neon.rs` | as plain |
//!
//! # Shapes as data
//!
//! There are 28 shapes. A batch kernel is compiled for each number of words, and takes the number
//! of bits as data ([`Cuts`]). With that number in code too, the crate took twice as long to
//! compile, and batches were at most 10% faster (Zen 5). So are the single calls of BITALG. The
//! others are compiled for each shape: with bits as data they take 1.3 (AVX2) to 1.7 (plain) times
//! as long.

#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod bitalg;
mod cpu;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)))]
mod groups;
pub(crate) mod hash;
#[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
mod neon;
pub(crate) mod scalar;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod words;

use self::cpu::{Access, Tuning};
use self::scalar::{few, few_bitmap};
use crate::bits::{Bits, Lines, Load, Probed, Purpose, Region, is_cached};
use crate::counters::Counters;
use crate::layout::{Layout, Shape};
use crate::pattern::Cuts;
use crate::sync::AtomicU64;
use core::sync::atomic::{AtomicU8, Ordering};

/// An instruction set that this CPU has. It is made only after [`Level::is_there`], so its
/// existence is the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The compilation target's.
    Plain,
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    Avx2,
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    Avx512,
    /// BITALG with the processor's gather.
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    Gather,
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    Bitalg,
    #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
    Neon,
}

impl Level {
    /// The best last.
    const ALL: &[Self] = &[
        Self::Plain,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Self::Avx2,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Self::Avx512,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Self::Gather,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Self::Bitalg,
        #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
        Self::Neon,
    ];

    /// Whether this CPU has it; without `std`, whether the target has.
    fn is_there(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Self::Avx2 => avx2::detect(),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Self::Avx512 => avx512::detect(),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Self::Gather | Self::Bitalg => bitalg::detect(),
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Self::Neon => cfg!(target_feature = "neon"),
        }
    }
}

/// The place in [`Level::ALL`] of the instruction set to use, counted from 1; 0 before it is known.
/// Never an instruction set that this machine lacks.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// All that this CPU has, the best last.
    fn all() -> impl Iterator<Item = Self> {
        let has_gather = cpu::tuning().gather;
        let there = |isa: &Self| isa.0.is_there();
        let all = Level::ALL.iter().copied().map(Self).filter(there);
        // The two with and without gather take each other's place.
        let best = all.clone().filter(move |isa| has_gather && isa.gathers());
        all.filter(move |isa| !(has_gather && isa.gathers())).chain(best)
    }

    /// The best that this CPU has (that [`limit_instruction_set`] allows).
    #[inline]
    pub(crate) fn detect() -> Self {
        // Relaxed: nothing else is published by it.
        match CHOSEN.load(Ordering::Relaxed) {
            0 => Self::detect_first(),
            number => Self(Level::ALL[usize::from(number) - 1]),
        }
    }

    #[cold]
    fn detect_first() -> Self {
        let best = Self::all().last().expect("the plain one is there");
        // Keeps a choice that another thread has just made.
        let _ = CHOSEN.compare_exchange(0, best.number(), Ordering::Relaxed, Ordering::Relaxed);
        best
    }

    /// This, or the plain one if there are more blocks than vectors can number in 32 bits: 256 GiB.
    fn for_blocks(self, blocks: u64) -> Self {
        if blocks >> 32 == 0 { self } else { Self(Level::Plain) }
    }

    /// Whether the functions of `bitalg.rs` may be called.
    fn has_bitalg(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        return matches!(self.0, Level::Gather | Level::Bitalg);
        #[cfg(not(all(target_arch = "x86_64", not(lanebloom_loom))))]
        false
    }

    /// Whether batches load words by the processor's gather.
    fn gathers(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        return self.0 == Level::Gather;
        #[cfg(not(all(target_arch = "x86_64", not(lanebloom_loom))))]
        false
    }

    fn number(self) -> u8 {
        let place = Level::ALL.iter().position(|&level| level == self.0);
        place.expect("all are in it") as u8 + 1
    }

    /// Its name, as in [`limit_instruction_set`].
    fn name(self) -> &'static str {
        match self.0 {
            Level::Plain => "plain",
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 => "AVX2",
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx512 => "AVX-512",
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Gather => "AVX-512 BITALG, gather",
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Bitalg => "AVX-512 BITALG",
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Level::Neon => "NEON",
        }
    }
}

/// The names of the instruction sets that this machine has, the best last. For benches and tests of
/// this crate.
#[doc(hidden)]
pub fn instruction_sets() -> impl Iterator<Item = &'static str> {
    Isa::all().map(Isa::name)
}

/// For benches and tests of this crate: filters that are built from now on, and batches of keys
/// that are hashed, use this instruction set.
///
/// # Panics
///
/// If it is none of [`instruction_sets`].
#[doc(hidden)]
pub fn limit_instruction_set(name: &str) {
    let isa = Isa::all().find(|isa| isa.name() == name);
    let isa = isa.unwrap_or_else(|| panic!("{name:?} is no instruction set of this machine"));
    CHOSEN.store(isa.number(), Ordering::Relaxed);
}

/// `$table::new::<W, S>($isa)` for the words and bits of a shape.
macro_rules! of_shape {
    ($table:ty, $shape:expr, $isa:expr) => {
        of_shape! { $table, $shape, $isa;
            1: 1 2 3 4 5 6 7 8 9 10;
            2: 1 2 3 4 5 6 7 8;
            4: 1 2 3 4 5 6;
            8: 1 2 3 4;
        }
    };
    ($table:ty, $shape:expr, $isa:expr; $($w:literal: $($s:literal)*;)*) => {{
        let Shape { words, bits } = $shape;
        match (words, bits) {
            $($( ($w, $s) => <$table>::new::<$w, $s>($isa), )*)*
            _ => unreachable!("{words} words with {bits} bits is not a shape of sizing.rs"),
        }
    }};
}

/// Fewer hashes than this are few, and have functions of their own: a pipeline takes longer to
/// begin. (Zen 5, 1%, 512 KiB, bitmaps of 8 and 16 hashes: 1.9 and 1.6 ns per hash one by one, 3.4
/// and 1.9 by a pipeline.)
pub(crate) const FEW: usize = 32;

/// So many hashes are single calls: a function for a few is called by a pointer.
const SINGLES: usize = 3;

/// The operations on hashes that only read, for one shape, one instruction set and one kind of
/// words: `AtomicU64` of a filter, its counters, or the bytes of a snapshot.
#[derive(Debug)]
#[cfg_attr(
    any(lanebloom_loom, not(target_arch = "x86_64")),
    allow(dead_code, reason = "a part is for x86-64")
)]
pub struct Lookups<T> {
    cuts: Cuts,
    tuning: Tuning,
    /// The words of a pattern, if the functions of `bitalg.rs` may be called; otherwise 0.
    bitalg_words: u8,
    // SAFETY, for all: callable if the CPU has the instruction set that they are compiled for.
    contains: Contains<T>,
    /// If there are none, hashes go one by one.
    contains_few: Option<Few<T>>,
    contains_few_bitmap: Option<FewBitmap<T>>,
    /// If there is none, hashes go one by one.
    contains_hashes: Option<Batch<T>>,
    /// The fewest hashes that are worth a pipeline.
    least: usize,
}

// (The order of the arguments brings the hash into the register that the multiplication needs.)
type Contains<T> = unsafe fn(Lines<'_, T>, u64, &Cuts) -> bool;
type Few<T> = unsafe fn(Lines<'_, T>, &[u64], &Cuts, &mut [bool]);
type FewBitmap<T> = unsafe fn(Lines<'_, T>, &[u64], &Cuts) -> u64;
type Batch<T> = unsafe fn(&Cuts, Lines<'_, T>, Access, &[u64], &mut [u64]);

impl<T> Clone for Lookups<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lookups<T> {}

/// The operations on hashes for one shape and one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    lookups: Lookups<AtomicU64>,
    // SAFETY, for all: callable if the CPU has the instruction set that they are compiled for.
    insert: InsertOne,
    /// If there is none, hashes go one by one.
    insert_hashes: Option<InsertBatch>,
    fill: Fill,
}

type InsertOne = unsafe fn(&Bits, u64, &Cuts) -> bool;
type InsertBatch = unsafe fn(&Cuts, &Bits, Access, &[u64], &mut [u64]);
type Fill = unsafe fn(&Cuts, &mut Region<'_>, Access, &[u64], &mut [u64]);

/// The operations on hashes of a filter of counters, for one shape and one instruction set.
///
/// Inserts and removes are the same for all: a compare-exchange per word takes longer than vectors
/// could save, and cannot be done by them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterKernels {
    lookups: Lookups<Counters>,
    insert: fn(Lines<'_, Counters>, u64) -> bool,
    remove: fn(Lines<'_, Counters>, u64) -> bool,
}

/// [`CounterKernels::insert_hashes`], or `remove_hashes`.
pub(crate) type CounterBatch = fn(&CounterKernels, Lines<'_, Counters>, &[u64], &mut [u64]);

impl CounterKernels {
    /// The kernels for `layout` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_shape!(Self, layout.shape, isa.for_blocks(layout.blocks as u64))
    }

    fn new<const W: usize, const S: usize>(isa: Isa) -> Self {
        Self {
            lookups: Lookups::new::<W, S>(isa),
            insert: scalar::increment::<W, S>,
            remove: scalar::decrement::<W, S>,
        }
    }
}

impl CounterKernels {
    /// What only reads.
    #[inline(always)]
    pub(crate) fn lookups(&self) -> &Lookups<Counters> {
        &self.lookups
    }

    #[inline(always)]
    pub(crate) fn insert(&self, lines: Lines<'_, Counters>, hash: u64) -> bool {
        (self.insert)(lines, hash)
    }

    #[inline(always)]
    pub(crate) fn remove(&self, lines: Lines<'_, Counters>, hash: u64) -> bool {
        (self.remove)(lines, hash)
    }

    /// Whether each hash's insert found a counter at 0, as a bitmap.
    pub(crate) fn insert_hashes(&self, mut lines: Lines<'_, Counters>, hashes: &[u64], new: &mut [u64]) {
        scalar::one_by_one(&mut lines, hashes, new, Purpose::Write, |lines, hash| {
            (self.insert)(*lines, hash)
        });
    }

    /// Whether each hash was removed, as a bitmap.
    pub(crate) fn remove_hashes(&self, mut lines: Lines<'_, Counters>, hashes: &[u64], removed: &mut [u64]) {
        scalar::one_by_one(&mut lines, hashes, removed, Purpose::Write, |lines, hash| {
            (self.remove)(*lines, hash)
        });
    }
}

/// A lookup of the plain instruction set.
fn contains<const W: usize, const S: usize, T: Load>(lines: Lines<'_, T>, hash: u64, _: &Cuts) -> bool {
    scalar::contains::<W, false, T>(lines, const { &Cuts::new(W, S) }, hash)
}

/// An insert of the plain instruction set.
fn insert<const W: usize, const S: usize>(mut bits: &Bits, hash: u64, _: &Cuts) -> bool {
    scalar::insert::<W>(&mut bits, const { &Cuts::new(W, S) }, hash)
}

impl<T: Load> Lookups<T> {
    /// The lookups for `layout` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_shape!(Self, layout.shape, isa.for_blocks(layout.blocks as u64))
    }

    fn new<const W: usize, const S: usize>(isa: Isa) -> Self {
        let contains_hashes: Option<Batch<T>> = match isa.0 {
            Level::Plain => None,
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 => Some(avx2::contains_hashes::<W, T>),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx512 => Some(avx512::contains_hashes::<W, T>),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Gather | Level::Bitalg => Some(bitalg::contains_hashes::<W, T>),
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Level::Neon => Some(neon::contains_hashes::<W, T>),
        };
        let contains: Contains<T> = match isa.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Gather | Level::Bitalg => bitalg::contains::<W, T>,
            // One key at a time has no use for wider vectors.
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 | Level::Avx512 => avx2::contains::<W, S, T>,
            _ => contains::<W, S, T>,
        };
        let (contains_few, contains_few_bitmap) = match isa.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Gather | Level::Bitalg => (
                Some(bitalg::contains_few::<W, T> as _),
                Some(bitalg::contains_few_bitmap::<W, T> as _),
            ),
            _ => (None, None),
        };
        Self {
            cuts: Cuts::new(W, S),
            tuning: Tuning {
                gather: isa.gathers(),
                ..cpu::tuning()
            },
            bitalg_words: if isa.has_bitalg() { W as u8 } else { 0 },
            contains,
            contains_few,
            contains_few_bitmap,
            contains_hashes,
            least: if contains_few.is_some() { FEW } else { FEW / 2 },
        }
    }

    #[inline(always)]
    pub(crate) fn contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // The most usual pattern has a direct call: 1.3 ns. A call by a pointer takes 1.6, whatever
        // the function does (Zen 5). With the features compiled in, all patterns are inlined.
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        // SAFETY: only an `Isa` with BITALG has such words.
        unsafe {
            match self.bitalg_words {
                2 => return bitalg::contains::<2, T>(lines, hash, &self.cuts),
                1 if bitalg::COMPILED_IN => return bitalg::contains::<1, T>(lines, hash, &self.cuts),
                4 if bitalg::COMPILED_IN => return bitalg::contains::<4, T>(lines, hash, &self.cuts),
                8 if bitalg::COMPILED_IN => return bitalg::contains::<8, T>(lines, hash, &self.cuts),
                _ => {}
            }
        }
        // SAFETY: `of` gave this out against an `Isa`, which proves that the CPU has what the
        // function needs.
        unsafe { (self.contains)(lines, hash, &self.cuts) }
    }

    /// Whether each of fewer than [`FEW`] hashes is found.
    #[inline]
    pub(crate) fn contains_few(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [bool]) {
        if hashes.len() >= self.least {
            return scalar::unpack_few(self.contains_few_bitmap(lines, hashes), found);
        }
        match self.contains_few {
            // SAFETY: as in `contains`.
            Some(contains) if hashes.len() > SINGLES => unsafe { contains(lines, hashes, &self.cuts, found) },
            _ => few(hashes, &lines, Purpose::Read, found, |hash| self.contains(lines, hash)),
        }
    }

    /// [`contains_few`](Self::contains_few) as a bitmap.
    #[inline]
    pub(crate) fn contains_few_bitmap(&self, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        if hashes.len() >= self.least {
            let mut found = [0];
            self.contains_many(lines, hashes, &mut found);
            return found[0];
        }
        match self.contains_few_bitmap {
            // SAFETY: as in `contains`.
            Some(contains) => unsafe { contains(lines, hashes, &self.cuts) },
            None => few_bitmap(hashes, &lines, Purpose::Read, |hash| self.contains(lines, hash)),
        }
    }

    /// Whether each hash is found, as a bitmap.
    #[inline]
    pub(crate) fn contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        if hashes.len() < FEW {
            return found.fill(self.contains_few_bitmap(lines, hashes));
        }
        self.contains_many(lines, hashes, found);
    }

    #[inline(always)]
    fn access(&self, target: &impl Probed, purpose: Purpose) -> Access {
        Access {
            hint: (!is_cached(target.bytes())).then_some(purpose),
            ahead: self.tuning.ahead,
            gather: self.tuning.gather,
        }
    }

    #[inline]
    fn contains_many(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.contains_hashes {
            // SAFETY: as in `contains`.
            Some(contains) => unsafe {
                contains(
                    &self.cuts,
                    lines,
                    self.access(&lines, self.tuning.lookups),
                    hashes,
                    found,
                )
            },
            None => scalar::one_by_one(&mut { lines }, hashes, found, Purpose::Read, |lines, hash| {
                self.contains(*lines, hash)
            }),
        }
    }
}

impl Kernels {
    /// The kernels for `layout` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_shape!(Self, layout.shape, isa.for_blocks(layout.blocks as u64))
    }

    fn new<const W: usize, const S: usize>(isa: Isa) -> Self {
        let (insert_hashes, fill): (Option<InsertBatch>, Fill) = match isa.0 {
            Level::Plain => (None, scalar::fill::<W>),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 => (Some(avx2::insert_hashes::<W>), avx2::fill::<W>),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx512 => (Some(avx512::insert_hashes::<W>), avx512::fill::<W>),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Gather | Level::Bitalg => (Some(bitalg::insert_hashes::<W>), avx512::fill::<W>),
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Level::Neon => (Some(neon::insert_hashes::<W>), neon::fill::<W>),
        };
        let insert: InsertOne = match isa.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 | Level::Avx512 | Level::Gather | Level::Bitalg => avx2::insert::<W, S>,
            _ => insert::<W, S>,
        };
        Self {
            lookups: Lookups::new::<W, S>(isa),
            insert,
            insert_hashes,
            fill,
        }
    }

    /// What only reads.
    #[inline(always)]
    pub(crate) fn lookups(&self) -> &Lookups<AtomicU64> {
        &self.lookups
    }

    #[inline(always)]
    pub(crate) fn insert(&self, bits: &Bits, hash: u64) -> bool {
        // Where a lookup is faster than to make masks, it comes first.
        if self.lookups.bitalg_words != 0 && self.lookups.contains(bits.shared(), hash) {
            return false;
        }
        // SAFETY: as in `contains`.
        unsafe { (self.insert)(bits, hash, &self.lookups.cuts) }
    }

    /// Whether each hash's insert changed the filter, for fewer than [`FEW`].
    #[inline]
    pub(crate) fn insert_few(&self, bits: &Bits, hashes: &[u64]) -> u64 {
        if hashes.len() >= self.lookups.least {
            let mut changed = [0];
            self.insert_many(bits, hashes, &mut changed);
            return changed[0];
        }
        if self.lookups.bitalg_words == 0 {
            return few_bitmap(hashes, &bits, Purpose::Write, |hash| self.insert(bits, hash));
        }
        // A hash that is found needs no insert. Of equal ones that are not, the first sets the
        // bits.
        let mut lacking = !self.lookups.contains_few_bitmap(bits.shared(), hashes) & !(u64::MAX << hashes.len());
        let mut changed = 0;
        while lacking != 0 {
            let i = lacking.trailing_zeros();
            // SAFETY: as in `contains`.
            let new = unsafe { (self.insert)(bits, hashes[i as usize], &self.lookups.cuts) };
            changed |= u64::from(new) << i;
            lacking &= lacking - 1;
        }
        changed
    }

    /// Whether each hash's insert changed the filter, as a bitmap.
    #[inline]
    pub(crate) fn insert_hashes(&self, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        if hashes.len() < FEW {
            return changed.fill(self.insert_few(bits, hashes));
        }
        self.insert_many(bits, hashes, changed);
    }

    #[inline]
    fn insert_many(&self, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        match self.insert_hashes {
            // SAFETY: as in `contains`.
            Some(insert) => unsafe {
                let access = self.lookups.access(&bits, Purpose::Write);
                insert(&self.lookups.cuts, bits, access, hashes, changed);
            },
            None => scalar::one_by_one(&mut { bits }, hashes, changed, Purpose::Write, |bits, hash| {
                self.insert(bits, hash)
            }),
        }
    }

    /// [`insert_hashes`](Self::insert_hashes) into words that this thread owns. The region must
    /// have the blocks of all hashes.
    #[inline(always)]
    pub(crate) fn fill(&self, region: &mut Region<'_>, hashes: &[u64], changed: &mut [u64]) {
        let access = self.lookups.access(region, Purpose::Write);
        // SAFETY: as in `insert`.
        unsafe { (self.fill)(&self.lookups.cuts, region, access, hashes, changed) }
    }
}

/// The function of this CPU that writes a bit of a bitmap to each place of a slice.
#[inline]
pub(crate) fn unpack() -> impl Fn(&[u64], &mut [bool]) {
    let unpack: unsafe fn(&[u64], &mut [bool]) = match Isa::detect().0 {
        Level::Plain => scalar::unpack,
        #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
        Level::Neon => scalar::unpack,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Level::Avx2 => avx2::unpack,
        #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
        Level::Avx512 | Level::Gather | Level::Bitalg => avx512::unpack,
    };
    // SAFETY: the `Isa` proves that the CPU has what the function needs.
    move |bitmap, out| unsafe { unpack(bitmap, out) }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Distinct hashes without a pattern, and the extreme ones.
    fn hashes(from: u64, len: usize) -> Vec<u64> {
        let extremes = [0, u64::MAX, 1, 1 << 63, u64::MAX >> 1];
        let mixed = (from..).map(|i| {
            let x = (i ^ i >> 7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x ^ x >> 29).wrapping_mul(0x94d0_49bb_1331_11eb)
        });
        extremes.into_iter().chain(mixed).take(len).collect()
    }

    /// Around [`SINGLES`], half of [`FEW`] and [`FEW`], around the words of a bitmap, and every
    /// number of hashes in the last group.
    const LENGTHS: [usize; 27] = [
        0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 34, 37, 38, 39, 40, 41, 57, 63, 64, 65, 72, 100, 127, 300,
    ];

    #[test]
    fn blocks_beyond_32_bits_are_left_to_the_plain_code() {
        for isa in Isa::all() {
            assert_eq!(isa.for_blocks(u64::from(u32::MAX)), isa);
            assert_eq!(isa.for_blocks(1 << 32), Isa(Level::Plain));
        }
    }

    fn inserted(kernels: &Kernels, bits: &Bits, hashes: &[u64]) -> usize {
        let mut changed = vec![u64::MAX; hashes.len().div_ceil(64)];
        kernels.insert_hashes(bits, hashes, &mut changed);
        changed.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Every instruction set of this CPU, on every shape, at every length around the windows: the
    /// same answers and the same bits as the plain single calls.
    #[test]
    fn all_instruction_sets_agree() {
        for (words, most) in crate::layout::WORDS {
            for shape in (1..=most).map(|bits| Shape { words, bits }) {
                let plain = Kernels::of(Layout { shape, blocks: 1 }, Isa(Level::Plain));
                for isa in Isa::all() {
                    let kernels = Kernels::of(Layout { shape, blocks: 1 }, isa);
                    // Without prefetching and with it; 32771 is the first prime above the limit.
                    for blocks in [1, 7, 32_771] {
                        let [by_one, single, batch] = [(); 3].map(|()| Bits::new(blocks).unwrap());
                        for len in LENGTHS {
                            let new = hashes(1000 * len as u64, len);
                            let changed = new.iter().filter(|&&hash| plain.insert(&by_one, hash)).count();
                            assert_eq!(
                                new.iter().filter(|&&hash| kernels.insert(&single, hash)).count(),
                                changed
                            );
                            assert_eq!(inserted(&kernels, &batch, &new), changed);
                            let asked = hashes(1000 * len as u64 + len as u64 / 2, len);
                            let expected: Vec<bool> = asked
                                .iter()
                                .map(|&hash| plain.lookups().contains(by_one.shared(), hash))
                                .collect();
                            assert!(
                                asked
                                    .iter()
                                    .zip(&expected)
                                    .all(|(&hash, &e)| kernels.lookups().contains(single.shared(), hash) == e)
                            );
                            let mut found = vec![u64::MAX; len.div_ceil(64)];
                            kernels.lookups().contains_hashes(batch.shared(), &asked, &mut found);
                            let flags: Vec<bool> = (0..len).map(|i| found[i / 64] >> (i % 64) & 1 == 1).collect();
                            assert_eq!(flags, expected, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
                            if len < FEW {
                                let mut few = vec![false; len];
                                kernels.lookups().contains_few(batch.shared(), &asked, &mut few);
                                assert_eq!(few, expected, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
                            }
                        }
                        assert!(by_one.words().eq(single.words()) && by_one.words().eq(batch.words()));

                        // In a snapshot's bytes, wherever they begin.
                        let mut bytes = vec![0; blocks % 3];
                        for word in batch.words().flatten() {
                            bytes.extend_from_slice(&word.to_le_bytes());
                        }
                        let lines = Lines(bytes[blocks % 3..].as_chunks().0.as_chunks().0);
                        let lookups = Lookups::<[u8; 8]>::of(Layout { shape, blocks }, isa);
                        for len in LENGTHS {
                            let asked = hashes(1000 * len as u64 + len as u64 / 2, len);
                            let [mut found, mut in_bytes] = [(); 2].map(|()| vec![u64::MAX; len.div_ceil(64)]);
                            kernels.lookups().contains_hashes(batch.shared(), &asked, &mut found);
                            lookups.contains_hashes(lines, &asked, &mut in_bytes);
                            assert_eq!(in_bytes, found, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
                            let single =
                                |hash| lookups.contains(lines, hash) == plain.lookups().contains(batch.shared(), hash);
                            assert!(asked.iter().all(|&hash| single(hash)));
                        }
                    }
                }
            }
        }
    }

    /// Counters of every value from 0 to 15: vectors see the same ones above 0 as plain code does.
    #[test]
    fn all_instruction_sets_see_counters_above_zero() {
        for (words, most) in crate::layout::WORDS {
            for bits in 1..=most {
                let counters = crate::counters::CounterLines::new(7).unwrap();
                let layout = Layout {
                    shape: Shape { words, bits },
                    blocks: 7,
                };
                let plain = CounterKernels::of(layout, Isa(Level::Plain));
                // Few keys, so that most counters are those of one of them.
                for (i, &hash) in hashes(words as u64, 20).iter().enumerate() {
                    (0..i % 16).for_each(|_| _ = plain.insert(counters.shared(), hash));
                }
                let asked = hashes(words as u64, 100);
                let expected: Vec<bool> = asked
                    .iter()
                    .map(|&hash| plain.lookups().contains(counters.shared(), hash))
                    .collect();
                for kernels in Isa::all().map(|isa| CounterKernels::of(layout, isa)) {
                    let lookups = kernels.lookups();
                    let mut found = [0; 2];
                    lookups.contains_hashes(counters.shared(), &asked, &mut found);
                    for (i, &hash) in asked.iter().enumerate() {
                        assert_eq!(lookups.contains(counters.shared(), hash), expected[i], "{layout}");
                        assert_eq!(found[i / 64] >> (i % 64) & 1 == 1, expected[i], "{layout}");
                    }
                }
            }
        }
    }

    /// Lookups touch no byte beside the lines, which begin or end where memory does.
    #[cfg(target_os = "linux")]
    #[test]
    fn lines_at_the_edges_of_memory() {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

        const PAGES: usize = 64 << 10;
        let map = |len| {
            // SAFETY: new memory, at an address that nothing else has.
            unsafe { mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE) }.unwrap()
        };
        let fenced: *mut u8 = map(3 * PAGES).cast();
        // SAFETY: the middle third, which nothing refers to yet.
        let middle = unsafe {
            mprotect(
                fenced.add(PAGES).cast(),
                PAGES,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
            .unwrap();
            fenced.add(PAGES)
        };
        let asked = hashes(1, 100);
        for blocks in [1, 3] {
            for at in [0, PAGES - 64 * blocks] {
                // SAFETY: zeroed bytes of the middle third, aligned to pages or to lines.
                let lines = Lines(unsafe {
                    core::slice::from_raw_parts(middle.add(at).cast::<[AtomicU64; crate::layout::LINE_WORDS]>(), blocks)
                });
                for (i, word) in lines.0.as_flattened().iter().enumerate() {
                    word.store(!0x8000_0800_0000_0001_u64.rotate_left(i as u32), Ordering::Relaxed);
                }
                for (words, most) in crate::layout::WORDS {
                    for bits in 1..=most {
                        let layout = Layout {
                            shape: Shape { words, bits },
                            blocks,
                        };
                        let plain = Lookups::<AtomicU64>::of(layout, Isa(Level::Plain));
                        let expected: Vec<bool> = asked.iter().map(|&hash| plain.contains(lines, hash)).collect();
                        for lookups in Isa::all().map(|isa| Lookups::<AtomicU64>::of(layout, isa)) {
                            let single: Vec<bool> = asked.iter().map(|&hash| lookups.contains(lines, hash)).collect();
                            assert_eq!(single, expected, "{layout}");
                            for len in [9, asked.len()] {
                                let mut found = [0; 2];
                                lookups.contains_hashes(lines, &asked[..len], &mut found[..len.div_ceil(64)]);
                                assert!((0..len).all(|i| (found[i / 64] >> (i % 64) & 1 == 1) == expected[i]));
                            }
                        }
                    }
                }
            }
        }
        // SAFETY: what was mapped; nothing refers to it any more.
        unsafe { munmap(fenced.cast(), 3 * PAGES).unwrap() };
    }
}
