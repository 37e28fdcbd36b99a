//! The kernels: functions for every shape of the pattern and every instruction set. A filter
//! chooses its kernels when it is built, and a batch of keys when it is hashed.
//!
//! A filter keeps its [`Kernels`]. A call of them is one well-predicted indirect call, and a direct
//! call for the most usual shape. (A `match` on all shapes would be a jump table.) The files of the
//! instruction sets are twins: the same names, the same signatures. `two_lines.rs` calls them twice
//! for keys with two lines. `groups.rs` has the pipelines of their batches. `words.rs` loads the
//! shared words into vectors, and says why that is no data race. `cpu.rs` says what is fastest on
//! which CPU. `scalar.rs`, `pattern.rs`, `murmur3.rs` and `siphash.rs` are the specification.
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
mod tables;
mod two_lines;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod words;

use self::cpu::Tuning;
use self::scalar::{few, few_bitmap};
use self::tables::{Batch, Contains, Fill, Gather, InsertBatch, InsertOne, LineInserts, LineLookups};
pub(crate) use self::tables::{FEW, Kernels, Lookups};
use crate::bits::{Bits, Lines, Load, Purpose, Region};
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
        let Shape { words, bits, .. } = $shape;
        match (words, bits) {
            $($( ($w, $s) => <$table>::new::<$w, $s>($isa), )*)*
            _ => unreachable!("{words} words with {bits} bits is not a shape of sizing.rs"),
        }
    }};
}

/// So many hashes are single calls: a function for a few is called by a pointer.
const SINGLES: usize = 3;

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
fn contains<const W: usize, const S: usize, T: Load>(lines: Lines<'_, T>, hash: u64, _: &Lookups<T>) -> bool {
    scalar::contains::<W, false, T>(lines, const { &Cuts::new(W, S) }, hash)
}

/// An insert of the plain instruction set.
fn insert<const W: usize, const S: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, _: &Kernels) -> bool {
    scalar::insert::<W>(&mut lines, const { &Cuts::new(W, S) }, hash)
}

impl<T: Load> Lookups<T> {
    /// The lookups for `layout` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        let line: Self = of_shape!(Self, layout.shape, isa.for_blocks(layout.blocks as u64));
        line.in_lines(layout.shape, isa)
    }

    /// The same for the lines of `shape`, 1 or 2.
    fn in_lines(self, shape: Shape, isa: Isa) -> Self {
        if shape.lines == 1 {
            return self;
        }
        let contains: Contains<T> = match (isa.0, shape.words) {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            (Level::Gather | Level::Bitalg, 1) => bitalg::contains_two::<1, T>,
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            (Level::Gather | Level::Bitalg, 2) => bitalg::contains_two::<2, T>,
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            (Level::Gather | Level::Bitalg, 4) => bitalg::contains_two::<4, T>,
            _ => two_lines::contains,
        };
        let gather: Gather = match isa.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx512 | Level::Gather | Level::Bitalg => avx512::gather,
            _ => two_lines::gather,
        };
        Self {
            bitalg_words: 0,
            contains,
            contains_hashes: Some(two_lines::contains_hashes),
            least: 0,
            line: LineLookups { gather, ..self.line },
            ..self
        }
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
            Level::Gather | Level::Bitalg => bitalg::contains_one::<W, T>,
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
        let least = if contains_few.is_some() { FEW } else { FEW / 2 };
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
            least,
            line: LineLookups {
                contains,
                contains_hashes,
                least,
                gather: two_lines::gather,
            },
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
        unsafe { (self.contains)(lines, hash, self) }
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

    #[inline]
    fn contains_many(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.contains_hashes {
            // SAFETY: as in `contains`.
            Some(contains) => unsafe { contains(self, lines, self.access(&lines, self.tuning.lookups), hashes, found) },
            None => scalar::one_by_one(&mut { lines }, hashes, found, Purpose::Read, |lines, hash| {
                self.contains(*lines, hash)
            }),
        }
    }
}

impl Kernels {
    /// The kernels for `layout` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        let line: Self = of_shape!(Self, layout.shape, isa.for_blocks(layout.blocks as u64));
        let lookups = line.lookups.in_lines(layout.shape, isa);
        match layout.shape.lines {
            1 => line,
            _ => Self {
                lookups,
                insert: two_lines::insert,
                insert_hashes: Some(two_lines::insert_hashes),
                fill: two_lines::fill,
                ..line
            },
        }
    }

    /// 1 or 2.
    pub(crate) fn lines_per_key(&self) -> usize {
        if self.lookups.least == 0 { 2 } else { 1 }
    }

    /// The kernels of one line, for one half of the lines.
    pub(crate) fn one_line(&self) -> Self {
        let LineLookups {
            contains,
            contains_hashes,
            least,
            ..
        } = self.lookups.line;
        let lookups = Lookups {
            contains,
            contains_hashes,
            least,
            ..self.lookups
        };
        let LineInserts {
            insert,
            insert_hashes,
            fill,
        } = self.line;
        Self {
            lookups,
            insert,
            insert_hashes,
            fill,
            ..*self
        }
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
            line: LineInserts {
                insert,
                insert_hashes,
                fill,
            },
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
        unsafe { (self.insert)(bits.shared(), hash, self) }
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
            return few_bitmap(hashes, &bits.shared(), Purpose::Write, |hash| self.insert(bits, hash));
        }
        // A hash that is found needs no insert. Of equal ones that are not, the first sets the
        // bits.
        let mut lacking = !self.lookups.contains_few_bitmap(bits.shared(), hashes) & !(u64::MAX << hashes.len());
        let mut changed = 0;
        while lacking != 0 {
            let i = lacking.trailing_zeros();
            // SAFETY: as in `contains`.
            let new = unsafe { (self.insert)(bits.shared(), hashes[i as usize], self) };
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
        let mut lines = bits.shared();
        match self.insert_hashes {
            // SAFETY: as in `contains`.
            Some(insert) => unsafe {
                let access = self.lookups.access(&lines, Purpose::Write);
                insert(self, lines, access, hashes, changed);
            },
            None => scalar::one_by_one(&mut lines, hashes, changed, Purpose::Write, |_, hash| {
                self.insert(bits, hash)
            }),
        }
    }

    /// [`insert_hashes`](Self::insert_hashes) into words that this thread owns. The region must
    /// have the blocks of all hashes; with two lines per key it must be the whole filter.
    #[inline(always)]
    pub(crate) fn fill(&self, region: &mut Region<'_>, hashes: &[u64], changed: &mut [u64]) {
        let access = self.lookups.access(region, Purpose::Write);
        // SAFETY: as in `insert`.
        unsafe { (self.fill)(self, region, access, hashes, changed) }
    }
}

/// The function of this CPU that writes a bit of a bitmap to each place of a slice.
#[inline]
pub fn unpack() -> impl Fn(&[u64], &mut [bool]) {
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
mod tests;
