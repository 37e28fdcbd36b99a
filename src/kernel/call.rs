//! Calls the kernels: takes hashes, and gives answers. The filters call it. The plan of a batch
//! (`plan.rs`) says which function takes it. A caller brings the plan of a few hashes. That of a
//! chunk is asked here, since the last chunk of a batch may have few.

use super::arch;
use super::dispatch::{Calls, Gather};
use super::plan::Plan;
use super::scalar::{few_bitmap, one_by_one};
use super::{CounterChange, CounterKernels, Kernels, Lookups, two_lines};
use crate::words::bits::{Bits, Hint, Lines, Load, OwnedRange};
use crate::words::counters::Counters;
use crate::words::sync::AtomicU64;

impl<T: Load> Lookups<T> {
    #[inline(always)]
    pub(crate) fn contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: `isa` proves that the CPU has what the functions need.
        unsafe {
            match self.inlined.contains(lines, hash, &self.probe.pattern) {
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
        let (pattern, probe) = (&self.probe.pattern, &self.probe);
        // SAFETY: as in `contains`.
        unsafe {
            self.inlined.contains_each(lines, pattern, hashes, answer, |hash| {
                (self.contains)(lines, hash, probe)
            });
        }
    }

    /// Whether each of a few hashes is found.
    #[inline]
    pub(crate) fn contains_few(&self, plan: Plan, lines: Lines<'_, T>, hashes: &[u64], found: &mut [bool]) {
        match plan {
            Plan::Single => self.contains_each(lines, hashes.iter().copied().zip(found), |place, found| *place = found),
            // SAFETY: as in `contains`.
            Plan::Few => unsafe { (self.batches().few_flags)(lines, hashes, &self.probe, found) },
            plan => {
                let bitmap = self.contains_few_bitmap(plan, lines, hashes);
                self.isa.unpack()(&[bitmap], found);
            }
        }
    }

    /// [`contains_few`](Self::contains_few) as a bitmap.
    #[inline(always)]
    pub(crate) fn contains_few_bitmap(&self, plan: Plan, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        match plan {
            Plan::Single => {
                // The last one first: to shift by a number that varies takes longer.
                let mut found = 0;
                let reversed = hashes.iter().rev().map(|hash| (*hash, ()));
                self.contains_each(lines, reversed, |(), one| found = found << 1 | u64::from(one));
                found
            }
            Plan::Tile | Plan::Pipeline => {
                let mut found = [0];
                self.contains_many(plan, lines, hashes, &mut found);
                found[0]
            }
            _ => self.line_few(lines, hashes),
        }
    }

    /// Whether each hash is found, as a bitmap.
    #[inline]
    pub(crate) fn contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.ladder.plan(hashes.len()) {
            plan @ (Plan::Tile | Plan::Pipeline) => self.contains_many(plan, lines, hashes, found),
            few => found.fill(self.contains_few_bitmap(few, lines, hashes)),
        }
    }

    #[inline]
    fn contains_many(&self, plan: Plan, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.gather {
            None => self.line_many(lines, hashes, found),
            Some(gather) => self.two_lines_contain(plan, gather, lines, hashes, found),
        }
    }

    // A call, so that the batches of one line have a small stack frame.
    #[inline(never)]
    fn two_lines_contain(&self, plan: Plan, gather: Gather, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        let line = |line: Lines<'_, T>, hashes: &[u64], found: &mut [u64]| {
            self.line_contains_hashes(line, hashes, found);
        };
        // SAFETY: as in `contains`.
        unsafe { two_lines::contains_hashes(plan, lines, hashes, found, gather, self.probe.hint, line) }
    }
}

/// In one line of each hash, the only one or one of two.
impl<T: Load> Lookups<T> {
    #[inline(never)]
    fn line_contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.line_ladder.plan(hashes.len()) {
            Plan::Tile | Plan::Pipeline => self.line_many(lines, hashes, found),
            _ => found.fill(self.line_few(lines, hashes)),
        }
    }

    #[inline(always)]
    fn line_few(&self, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
        // SAFETY: as in `contains`.
        unsafe { (self.batches().few_bitmap)(lines, hashes, &self.probe) }
    }

    /// By the table's function for batches, or one by one if there is none. (In one function with
    /// `contains_many`, the plain loop took 1.09 times as long: Zen 4.)
    #[inline]
    fn line_many(&self, mut lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match &self.batches().batch {
            // SAFETY: as in `contains`.
            Some(forms) => unsafe {
                forms[self.access.form()](lines, &self.probe.pattern, self.access, hashes, found);
            },
            None => one_by_one(&mut lines, self.access, hashes, found, |lines, hash| {
                // SAFETY: as in `contains`.
                unsafe { (self.probe.line)(*lines, hash, &self.probe) }
            }),
        }
    }
}

impl Kernels {
    /// 1 or 2.
    pub(crate) fn lines_per_key(&self) -> usize {
        1 + usize::from(self.has_two_lines())
    }

    #[inline(always)]
    fn has_two_lines(&self) -> bool {
        self.lookups.gather.is_some()
    }

    #[inline(always)]
    pub(crate) fn insert(&self, bits: &Bits, hash: u64) -> bool {
        let lines = bits.shared();
        // SAFETY: as in `Lookups::contains`.
        match unsafe { self.lookups.inlined.contains(lines, hash, &self.lookups.probe.pattern) } {
            Some(true) => false,
            _ => self.insert_missing(lines, hash),
        }
    }

    /// Runs `work` with single calls, in a function that is compiled for this CPU.
    #[inline]
    pub(crate) fn inlined<R>(&self, work: impl FnOnce(Calls) -> R) -> R {
        let lookups = &self.lookups;
        let by_pointers = Calls {
            contains: lookups.contains,
            insert: None,
        };
        let (level, words) = (lookups.isa.level(), lookups.probe.pattern.words);
        arch::inlined_calls(level, words, self.lines_per_key(), by_pointers, work)
    }

    #[inline(always)]
    pub(crate) fn contains_by(&self, calls: Calls, bits: &Bits, hash: u64) -> bool {
        // SAFETY: as in `Lookups::contains`; the calls are those of these lookups.
        unsafe { (calls.contains)(bits.shared(), hash, &self.lookups.probe) }
    }

    #[inline(always)]
    pub(crate) fn insert_by(&self, calls: Calls, bits: &Bits, hash: u64) -> bool {
        match calls.insert {
            // SAFETY: as in `contains_by`.
            Some(insert) => unsafe { insert(bits.shared(), hash, &self.lookups.probe.pattern) },
            None => self.insert(bits, hash),
        }
    }

    /// [`insert`](Self::insert) of a hash that is not known to be found.
    #[inline(always)]
    fn insert_missing(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        if self.has_two_lines() {
            return self.insert_two(lines, hash);
        }
        self.line_insert(lines, hash)
    }

    /// The hint of a short batch. To be read: the keys may be known, and another thread's lines.
    #[inline(always)]
    fn few_hint(&self) -> Option<Hint> {
        self.access.hint().map(|_| Hint::L1)
    }

    #[inline(never)]
    fn insert_two(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        two_lines::insert(lines, hash, |line, hash| self.line_insert(line, hash))
    }

    /// Whether each hash's insert changed the filter, for a few.
    #[inline]
    pub(crate) fn insert_few(&self, plan: Plan, bits: &Bits, hashes: &[u64]) -> u64 {
        let insert = |hash| self.insert(bits, hash);
        match plan {
            Plan::Single => few_bitmap(hashes, &bits.shared(), None, insert),
            Plan::Tile | Plan::Pipeline => {
                let mut changed = [0];
                self.insert_many(plan, bits, hashes, &mut changed);
                changed[0]
            }
            _ => few_bitmap(hashes, &bits.shared(), self.few_hint(), insert),
        }
    }

    /// Whether each hash's insert changed the filter, as a bitmap.
    #[inline]
    pub(crate) fn insert_hashes(&self, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        match self.ladder.plan(hashes.len()) {
            plan @ (Plan::Tile | Plan::Pipeline) => self.insert_many(plan, bits, hashes, changed),
            few => changed.fill(self.insert_few(few, bits, hashes)),
        }
    }

    #[inline]
    fn insert_many(&self, plan: Plan, bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
        if self.has_two_lines() {
            let (lines, hint) = (bits.shared(), self.lookups.probe.hint);
            return two_lines::insert_hashes(plan, lines, hashes, changed, hint, |line, hashes, changed| {
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
        unsafe { arch::single_insert(self.lookups.row)(lines, hash, &self.lookups.probe.pattern) }
    }

    /// [`insert_hashes`](Self::insert_hashes) into these lines.
    pub(crate) fn line_insert_hashes(&self, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
        let insert = |hash| self.line_insert(lines, hash);
        match self.line_ladder.plan(hashes.len()) {
            Plan::Tile | Plan::Pipeline => self.line_insert_many(lines, hashes, changed, insert),
            _ => {
                changed.fill(few_bitmap(hashes, &lines, self.few_hint(), insert));
            }
        }
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
        match &self.inserts().batch {
            // SAFETY: as in `line_insert`.
            Some(forms) => unsafe {
                forms[self.access.form()](lines, &self.lookups.probe.pattern, self.access, hashes, changed);
            },
            None => one_by_one(&mut lines, self.access, hashes, changed, |_, hash| insert(hash)),
        }
    }

    #[inline(always)]
    fn line_fill(&self, region: &mut OwnedRange<'_>, hashes: &[u64], changed: &mut [u64]) {
        let tuning = self.lookups.tuning;
        let access = tuning.access(size_of_val(region.words), tuning.changes);
        // SAFETY: as in `line_insert`.
        unsafe { (self.inserts().fill)(region, &self.lookups.probe.pattern, access, hashes, changed) }
    }
}

impl CounterKernels {
    /// Makes a change by the hash.
    #[inline(always)]
    pub(crate) fn change(&self, change: CounterChange, lines: Lines<'_, Counters>, hash: u64) -> bool {
        change(lines, hash, self.lookups.probe.pattern.bits)
    }

    /// [`change`](Self::change) by each hash; writes their answers as a bitmap.
    #[inline]
    pub(crate) fn change_hashes(
        &self,
        change: CounterChange,
        mut lines: Lines<'_, Counters>,
        hashes: &[u64],
        answers: &mut [u64],
    ) {
        one_by_one(&mut lines, self.access, hashes, answers, |lines, hash| {
            self.change(change, *lines, hash)
        });
    }
}
