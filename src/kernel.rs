//! The kernels: functions for every shape of the pattern and every instruction set. A filter
//! chooses its kernels when it is built, and a batch of keys when it is hashed.
//!
//! A filter keeps its [`Kernels`]. A call of them is one well-predicted indirect call; single calls
//! of the most usual shapes are inlined (`Inlined`). (A `match` on all shapes would be a jump
//! table.) Lowest first:
//!
//! - `scalar.rs`, `pattern.rs`, `murmur3.rs` and `siphash.rs` are the specification.
//! - `length.rs` says what a batch takes by its length, `tuning.rs` what is fastest on which CPU.
//!   `pipeline.rs` has the loop of a batch for vectors, `tiles.rs` the one for all else, and
//!   `two_lines.rs` does everything twice for keys with two lines.
//! - A file for each instruction set. They are twins: the same names, the same signatures.
//!   `x86_64/loads.rs` loads the shared words into vectors, and says why that is no data race.
//! - A table of functions for each architecture, twins too: `portable.rs`, `aarch64.rs`,
//!   `x86_64.rs`. `dispatch.rs` has their types.
//! - `isa.rs` finds the instruction sets of this CPU, and this file calls their tables.
//!
//! | | single calls | batches of hashes | hashes of many keys |
//! |---|---|---|---|
//! | plain | `scalar.rs` | `scalar.rs` | `murmur3.rs`, `siphash.rs` |
//! | AVX2 | `inlined.rs`, else `avx2.rs`, inserts `scalar.rs` | `avx2.rs` | `hash_avx2.rs` up to 16 bytes |
//! | AVX-512 | as AVX2 | `avx512.rs` | `hash_avx512.rs` |
//! | AVX-512 BITALG, with or without gather | `inlined.rs`, else `bitalg.rs` | `bitalg.rs` | `hash_avx512.rs` |
//! | NEON | `scalar.rs` | `neon.rs` | as plain |
//!
//! # Shapes as data
//!
//! There are 23 shapes. A batch kernel is compiled for each number of words, and takes the number
//! of bits as data ([`BitFields`]). With that number in code too, the crate took twice as long to
//! compile, and batches were at most 10% faster (Zen 5). So are the single calls of BITALG, which
//! are compiled for each number of words to a product too. The others are compiled for each shape:
//! with bits as data they take 1.3 (AVX2) to 1.7 (plain) times as long.
//!
//! # What was tried and did not help
//!
//! An insert looks first. That costs a new key 1.0 ns of 6.5, and a present key takes 1.4 ns in
//! place of 3.0 (Zen 4, two words, 32 KiB). Loads wait for the atomic operations of the insert
//! before, and the next ones for the look. So its time is probably added to theirs, however well
//! the branch is predicted.
//!
//! - To look at one bit of the first word, and at the rest only if it is 1: present keys take 1.2
//!   times as long, and while a filter fills, the branch is mispredicted half of the time (new keys
//!   11.4 ns).
//! - To test the answer by `kortestw` and `setc` in place of `kmovw`: new keys take as long, and
//!   single lookups 1.1 times as long.

#[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
mod aarch64;
mod dispatch;
pub(crate) mod hash;
mod isa;
mod length;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)))]
mod pipeline;
mod portable;
pub(crate) mod scalar;
pub(crate) mod tiles;
pub(crate) mod tuning;
mod two_lines;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
use self::aarch64 as arch;
#[cfg(any(lanebloom_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
use self::portable as arch;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
use self::x86_64 as arch;

pub use self::dispatch::Vectorized;
pub use self::isa::{Isa, instruction_set, instruction_sets};
pub use self::length::Length;
pub(crate) use self::length::{FEWEST_IN_A_BATCH, MANY_INSERTS};

use self::arch::Inlined;
use self::dispatch::{Contains, Forms, LineInserts, LineLookups, Probe, TwoLookups};
use self::scalar::{few, few_bitmap, one_by_one};
use self::tuning::{AccessPlan, TILE, TuningRow};
use crate::geometry::layout::{LINE_BYTES, Layout, Shape};
use crate::geometry::pattern::BitFields;
use crate::words::bits::{Bits, Hint, Lines, Load, OwnedRange, Prefetchable, is_cached};
use crate::words::counters::Counters;
use crate::words::sync::AtomicU64;

/// `$scope::$function::<W, S>$arguments` for the words and bits of a layout's shape.
macro_rules! of_layout {
    ($layout:expr, $scope:ident::$function:ident $arguments:tt) => {
        of_layout! { $layout, ($scope, $function, $arguments);
            1: 1 2 3 4 5 6;
            2: 1 2 3 4 5 6 7;
            4: 1 2 3 4 5 6;
            8: 1 2 3 4;
        }
    };
    ($layout:expr, $call:tt; $($w:literal: $($s:literal)*;)*) => {{
        let Shape { words, bits, .. } = $layout.shape;
        match (words, bits) {
            $($( ($w, $s) => of_layout!(@ $w, $s, $call), )*)*
            _ => unreachable!("{words} words with {bits} bits is not a shape of sizing.rs"),
        }
    }};
    (@ $w:literal, $s:literal, ($scope:ident, $function:ident, $arguments:tt)) => {
        $scope::$function::<$w, $s> $arguments
    };
}

/// The operations on hashes that only read, for one shape, one instruction set and one kind of
/// words: `AtomicU64` of a filter, its counters, or the bytes of a snapshot.
#[derive(Debug)]
pub(crate) struct Lookups<T> {
    /// The proof that the CPU has what the functions of the tables need: `new` takes them from its
    /// level.
    isa: Isa,
    tuning: TuningRow,
    /// For keys with one line.
    inlined: Inlined,
    /// Fewer hashes than so many are looked up by single calls.
    singles: usize,
    /// For a key with all its lines.
    contains: Contains<T>,
    probe: Probe<T>,
    line: LineLookups<T>,
    key_lines: KeyLines<T>,
}

/// The lines that a key touches.
#[derive(Debug)]
enum KeyLines<T> {
    One,
    Two(TwoLookups<T>),
}

impl<T> Clone for KeyLines<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for KeyLines<T> {}

impl<T> Clone for Lookups<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lookups<T> {}

impl<T: Load> Lookups<T> {
    /// The lookups for `layout` by `isa`.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_layout!(layout, Self::new(isa.for_blocks(layout.blocks), layout))
    }

    fn new<const W: usize, const S: usize>(isa: Isa, layout: Layout) -> Self {
        let level = isa.level();
        let line = arch::lookups::<W, S, T>(level);
        Self::with(isa, layout, line, arch::two_lookups::<W, S, T>(level))
    }

    // A call, since it is the same for each shape.
    #[inline(never)]
    fn with(isa: Isa, layout: Layout, line: LineLookups<T>, two: TwoLookups<T>) -> Self {
        let Shape { lines, words, bits } = layout.shape;
        let (inlined, contains, key_lines) = match lines {
            1 => {
                let inlined = arch::inlined(isa.level(), words, bits);
                (inlined, line.contains, KeyLines::One)
            }
            _ => (Inlined::NONE, two.contains, KeyLines::Two(two)),
        };
        let (takes_few, is_cached) = (line.few.is_some() && lines == 1, is_cached(layout.blocks * LINE_BYTES));
        Self {
            isa,
            tuning: isa.level().tuned(tuning::tuning()),
            singles: length::fewest_not_single(inlined.is_some(), takes_few, is_cached, line.long()),
            inlined,
            contains,
            probe: Probe {
                fields: BitFields::new(words, bits),
                line: line.contains,
            },
            line,
            key_lines,
        }
    }

    #[inline(always)]
    pub(crate) fn contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: `isa` proves that the CPU has what the functions need.
        unsafe {
            match self.inlined.contains(lines, hash) {
                Some(found) => found,
                None => (self.contains)(lines, hash, &self.probe),
            }
        }
    }

    /// Calls `answer` with what belongs to each hash, and whether the hash is found.
    #[inline(always)]
    pub(crate) fn contains_each<P>(
        &self,
        lines: Lines<'_, T>,
        hashes: impl Iterator<Item = (u64, P)>,
        answer: impl FnMut(P, bool),
    ) {
        // SAFETY: as in `contains`.
        unsafe {
            self.inlined
                .contains_each(lines, hashes, answer, |hash| (self.contains)(lines, hash, &self.probe));
        }
    }

    /// Fewer hashes than so many are looked up by single calls.
    #[inline(always)]
    pub(crate) fn fewest_not_single(&self) -> usize {
        self.singles
    }

    /// Whether each of fewer than [`Length::Many`] hashes is found.
    #[inline(always)]
    pub(crate) fn contains_few(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [bool]) {
        if hashes.len() < self.singles {
            return self.contains_each(lines, hashes.iter().copied().zip(found), |place, found| *place = found);
        }
        match (&self.key_lines, self.line.few) {
            // SAFETY: as in `contains`.
            (KeyLines::One, Some(few)) => unsafe { (few.flags)(lines, hashes, &self.probe.fields, found) },
            _ => self.few_flags(lines, hashes, found),
        }
    }

    // A call, so that the others are small enough to be inlined well.
    #[inline(never)]
    fn few_flags(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [bool]) {
        if matches!(self.key_lines, KeyLines::Two(_)) || self.line.is_long(hashes.len()) {
            return scalar::unpack_few(self.few_bitmap(lines, hashes), found);
        }
        few(hashes, &lines, Hint::L1, found, |hash| self.line_contains(lines, hash));
    }

    /// [`contains_few`](Self::contains_few) as a bitmap.
    #[inline(always)]
    pub(crate) fn contains_few_bitmap(&self, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        if hashes.len() < self.singles {
            return scalar::bitmap_of(hashes, |hash| self.contains(lines, *hash));
        }
        self.few_bitmap(lines, hashes)
    }

    #[inline]
    fn few_bitmap(&self, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        if matches!(self.key_lines, KeyLines::One) && !self.line.is_long(hashes.len()) {
            return self.line_contains_few(lines, hashes);
        }
        let mut found = [0];
        self.contains_many(lines, hashes, &mut found);
        found[0]
    }

    /// Whether each hash is found, as a bitmap.
    #[inline]
    pub(crate) fn contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        if hashes.len() < Length::Many.least() {
            return found.fill(self.contains_few_bitmap(lines, hashes));
        }
        self.contains_many(lines, hashes, found);
    }

    #[inline]
    fn contains_many(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match &self.key_lines {
            KeyLines::One => self.line_contains_many(lines, hashes, found),
            KeyLines::Two(two) => self.two_lines_contain(two, lines, hashes, found),
        }
    }

    // A call, so that the batches of one line have a small stack frame.
    #[inline(never)]
    fn two_lines_contain(&self, two: &TwoLookups<T>, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        // SAFETY: as in `contains`.
        unsafe {
            two_lines::contains_hashes(lines, hashes, found, two.gather, |line, hashes, found| {
                self.line_contains_hashes(line, hashes, found);
            });
        }
    }
}

/// In one line of each hash, the only one or one of two.
impl<T: Load> Lookups<T> {
    #[inline(always)]
    fn line_contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: `isa` proves that the CPU has what the function needs.
        unsafe { (self.line.contains)(lines, hash, &self.probe) }
    }

    #[inline(never)]
    fn line_contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        if !self.line.is_long(hashes.len()) {
            return found.fill(self.line_contains_few(lines, hashes));
        }
        self.line_contains_many(lines, hashes, found);
    }

    #[inline]
    fn line_contains_few(&self, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        match self.line.few {
            // SAFETY: as in `line_contains`.
            Some(few) => unsafe { (few.bitmap)(lines, hashes, &self.probe.fields) },
            None => few_bitmap(hashes, &lines, Hint::L1, |hash| self.line_contains(lines, hash)),
        }
    }

    #[inline]
    fn line_contains_many(&self, mut lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        let access = self.access(&lines, self.tuning.lookups);
        match self.line.batch {
            // SAFETY: as in `line_contains`.
            Some(forms) => unsafe {
                let contains = self.form(&lines, forms);
                contains(lines, &self.probe.fields, access, hashes, found);
            },
            None => one_by_one(&mut lines, access, hashes, found, |lines, hash| {
                self.line_contains(*lines, hash)
            }),
        }
    }

    /// The form that is faster for these lines.
    #[inline(always)]
    fn form<F>(&self, target: &impl Prefetchable, forms: Forms<F>) -> F {
        let bytes = target.bytes();
        if !is_cached(bytes) && bytes >= self.tuning.groups_from {
            forms.groups
        } else {
            forms.tiles
        }
    }

    #[inline(always)]
    fn access(&self, target: &impl Prefetchable, hint: Hint) -> AccessPlan {
        AccessPlan {
            hint: (!is_cached(target.bytes())).then_some(hint),
            ahead: self.tuning.ahead,
            groups_ahead: self.tuning.groups_ahead,
            log_tile: TILE.ilog2(),
        }
    }
}

/// The operations on hashes for one shape and one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// With the proof that the CPU has what the functions of `line` need.
    lookups: Lookups<AtomicU64>,
    line: LineInserts,
    /// Fewer hashes than so many are inserted by single calls.
    singles: usize,
}

impl Kernels {
    /// The kernels for `layout` by `isa`.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_layout!(layout, Self::new(isa.for_blocks(layout.blocks), layout))
    }

    fn new<const W: usize, const S: usize>(isa: Isa, layout: Layout) -> Self {
        let line = arch::inserts::<W, S>(isa.level());
        Self::with(layout, Lookups::new::<W, S>(isa, layout), line)
    }

    // A call, as `Lookups::with`.
    #[inline(never)]
    fn with(layout: Layout, lookups: Lookups<AtomicU64>, line: LineInserts) -> Self {
        Self {
            singles: length::fewest_not_single_inserts(
                lookups.inlined.is_some(),
                is_cached(layout.blocks * LINE_BYTES),
                lookups.singles,
            ),
            lookups,
            line,
        }
    }

    /// Fewer hashes than so many are inserted by single calls.
    #[inline(always)]
    pub(crate) fn fewest_not_single(&self) -> usize {
        self.singles
    }

    /// 1 or 2.
    pub(crate) fn lines_per_key(&self) -> usize {
        1 + usize::from(self.has_two_lines())
    }

    #[inline(always)]
    fn has_two_lines(&self) -> bool {
        matches!(self.lookups.key_lines, KeyLines::Two(_))
    }

    /// The kernels of one line, for one half of the lines.
    pub(crate) fn one_line(&self) -> Self {
        let lookups = Lookups {
            contains: self.lookups.line.contains,
            key_lines: KeyLines::One,
            ..self.lookups
        };
        Self { lookups, ..*self }
    }

    /// What only reads.
    #[inline(always)]
    pub(crate) fn lookups(&self) -> &Lookups<AtomicU64> {
        &self.lookups
    }

    #[inline(always)]
    pub(crate) fn insert(&self, bits: &Bits, hash: u64) -> bool {
        let lines = bits.shared();
        let missing = || self.line_insert(lines, hash);
        // SAFETY: as in `Lookups::contains`.
        match unsafe { self.lookups.inlined.insert(lines, hash, missing) } {
            Some(changed) => changed,
            None if self.looks_first() && self.lookups.contains(lines, hash) => false,
            None => self.insert_missing(lines, hash),
        }
    }

    /// [`insert`](Self::insert) of a hash that was looked up and not found.
    #[inline(always)]
    fn insert_missing(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        if self.has_two_lines() {
            return self.insert_two(lines, hash);
        }
        self.line_insert(lines, hash)
    }

    /// Where a lookup is faster than to make masks, it comes first.
    #[inline(always)]
    fn looks_first(&self) -> bool {
        self.lookups.isa.level().looks_first()
    }

    #[inline(never)]
    fn insert_two(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        two_lines::insert(lines, hash, |line, hash| self.line_insert(line, hash))
    }

    /// Whether each hash's insert changed the filter, for fewer than [`MANY_INSERTS`].
    #[inline]
    pub(crate) fn insert_few(&self, bits: &Bits, hashes: &[u64]) -> u64 {
        if !self.looks_first() {
            if self.has_two_lines() || self.lookups.line.is_long(hashes.len()) {
                let mut changed = [0];
                self.insert_many(bits, hashes, &mut changed);
                return changed[0];
            }
            return few_bitmap(hashes, &bits.shared(), Hint::L1Write, |hash| self.insert(bits, hash));
        }
        // A hash that is found needs no insert. Of equal ones that are not, the first sets the
        // bits.
        let mut missing = !self.lookups.few_bitmap(bits.shared(), hashes) & !(u64::MAX << hashes.len());
        let mut changed = 0;
        while missing != 0 {
            let i = missing.trailing_zeros();
            let new = self.insert_missing(bits.shared(), hashes[i as usize]);
            changed |= u64::from(new) << i;
            missing &= missing - 1;
        }
        changed
    }

    /// Whether each hash's insert changed the filter, as a bitmap.
    #[inline]
    pub(crate) fn insert_hashes(&self, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        if hashes.len() < MANY_INSERTS {
            return changed.fill(self.insert_few(bits, hashes));
        }
        self.insert_many(bits, hashes, changed);
    }

    #[inline]
    fn insert_many(&self, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        if self.has_two_lines() {
            return two_lines::insert_hashes(bits.shared(), hashes, changed, |line, hashes, changed| {
                self.line_insert_hashes(line, hashes, changed);
            });
        }
        self.line_insert_many(bits.shared(), hashes, changed, |hash| self.insert(bits, hash));
    }

    /// [`insert_hashes`](Self::insert_hashes) into words that this thread owns. The region must
    /// have the blocks of all hashes; with two lines per key it must be the whole filter.
    #[inline(always)]
    pub(crate) fn fill(&self, region: &mut OwnedRange<'_>, hashes: &[u64], changed: &mut [u64]) {
        if self.has_two_lines() {
            return two_lines::fill(region, hashes, changed, |region, hashes, changed| {
                self.line_fill(region, hashes, changed);
            });
        }
        self.line_fill(region, hashes, changed);
    }
}

/// In one line of each hash, the only one or one of two.
impl Kernels {
    #[inline(always)]
    fn line_insert(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        // SAFETY: the `Isa` of the lookups proves that the CPU has what the function needs.
        unsafe { (self.line.insert)(lines, hash, &self.lookups.probe.fields) }
    }

    /// [`insert_hashes`](Self::insert_hashes) into these lines.
    pub(crate) fn line_insert_hashes(&self, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
        let insert = |hash| self.line_insert(lines, hash);
        if !self.lookups.line.is_long(hashes.len()) {
            return changed.fill(few_bitmap(hashes, &lines, Hint::L1Write, insert));
        }
        self.line_insert_many(lines, hashes, changed, insert);
    }

    /// By the table's function for batches, or `insert` for each hash if there is none.
    #[inline]
    fn line_insert_many(
        &self,
        mut lines: Lines<'_, AtomicU64>,
        hashes: &[u64],
        changed: &mut [u64],
        insert: impl Fn(u64) -> bool,
    ) {
        let access = self.lookups.access(&lines, self.lookups.tuning.changes);
        match self.line.batch {
            // SAFETY: as in `line_insert`.
            Some(forms) => unsafe {
                let insert = self.lookups.form(&lines, forms);
                insert(lines, &self.lookups.probe.fields, access, hashes, changed);
            },
            None => one_by_one(&mut lines, access, hashes, changed, |_, hash| insert(hash)),
        }
    }

    #[inline(always)]
    fn line_fill(&self, region: &mut OwnedRange<'_>, hashes: &[u64], changed: &mut [u64]) {
        let access = self.lookups.access(region, self.lookups.tuning.changes);
        // SAFETY: as in `line_insert`.
        unsafe { (self.line.fill)(region, &self.lookups.probe.fields, access, hashes, changed) }
    }
}

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
    /// The kernels for `layout` by `isa`.
    pub(crate) fn of(layout: Layout, isa: Isa) -> Self {
        of_layout!(layout, Self::new(isa.for_blocks(layout.blocks), layout))
    }

    fn new<const W: usize, const S: usize>(isa: Isa, layout: Layout) -> Self {
        Self {
            lookups: Lookups::new::<W, S>(isa, layout),
            insert: scalar::increment::<W, S>,
            remove: scalar::decrement::<W, S>,
        }
    }

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
        let access = self.lookups.access(&lines, self.lookups.tuning.changes);
        one_by_one(&mut lines, access, hashes, new, |lines, hash| {
            (self.insert)(*lines, hash)
        });
    }

    /// Whether each hash was removed, as a bitmap.
    pub(crate) fn remove_hashes(&self, mut lines: Lines<'_, Counters>, hashes: &[u64], removed: &mut [u64]) {
        let access = self.lookups.access(&lines, self.lookups.tuning.changes);
        one_by_one(&mut lines, access, hashes, removed, |lines, hash| {
            (self.remove)(*lines, hash)
        });
    }
}

/// The function of `isa` that writes a bit of a bitmap to each place of a slice.
#[inline]
pub(crate) fn unpack(isa: Isa) -> impl Fn(&[u64], &mut [bool]) {
    let unpack = arch::unpack(isa.level());
    // SAFETY: the `Isa` proves that the CPU has what the function needs.
    move |bitmap, out| unsafe { unpack(bitmap, out) }
}

/// Runs `work`, compiled for the best instruction set of this CPU.
#[inline]
pub fn vectorized<W: Vectorized>(work: W) -> W::Output {
    arch::vectorized(Isa::best().level(), work)
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests;
