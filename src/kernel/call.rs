//! Calls the kernels: takes hashes, and gives answers. The filters call it. The plan of a batch
//! (`plan.rs`) says which function takes it. A caller brings the plan of a few hashes. That of a
//! chunk is asked here, since the last chunk of a batch may have few.

use super::plain::{few_bitmap, one_by_one};
use super::plan::Plan;
use super::single::{Asked, Calls};
use super::tables;
use super::{CounterChange, CounterKernels, Isa, Kernels, Lookups};
use crate::words::bits::{Hint, Lines, Load, OwnedRange};
use crate::words::counters::Counters;
use crate::words::sync::AtomicU64;

impl<T: Load> Lookups<T> {
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// The hint by which the lines of a few hashes are prefetched, if they are beyond the caches.
    #[inline(always)]
    pub(crate) fn hint(&self) -> Option<Hint> {
        self.probe.hint
    }

    /// Whether the hash is found, if that lookup is inlined.
    #[inline(always)]
    pub(crate) fn inlined(&self, lines: Lines<'_, T>, hash: u64) -> Option<bool> {
        // SAFETY: `isa` proves that the CPU has what the functions need.
        unsafe { self.inlined.contains(lines, hash, &self.probe.pattern) }
    }

    /// Whether the lines that were asked for hold the hash.
    #[inline(always)]
    pub(crate) fn contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        match self.inlined(lines, hash) {
            Some(found) => found,
            None => self.called(lines, hash),
        }
    }

    #[inline(always)]
    fn called(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: as in `inlined`.
        unsafe { (self.called)(lines, hash, &self.probe) }
    }

    /// Calls `answer` with what belongs to each hash, and whether the hash is found.
    #[inline(always)]
    pub(crate) fn contains_each<P>(
        &self,
        lines: Lines<'_, T>,
        hashes: impl Iterator<Item = (u64, P)>,
        answer: impl FnMut(P, bool),
    ) {
        let (pattern, called) = (&self.probe.pattern, |hash| self.called(lines, hash));
        // SAFETY: as in `inlined`.
        unsafe { self.inlined.contains_each(lines, pattern, hashes, answer, called) }
    }

    /// Whether each of a few hashes is found.
    #[inline]
    pub(crate) fn contains_few(&self, plan: Plan, lines: Lines<'_, T>, hashes: &[u64], found: &mut [bool]) {
        match plan {
            Plan::Single => self.contains_each(lines, hashes.iter().copied().zip(found), |place, found| *place = found),
            // SAFETY: as in `inlined`.
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
                self.contains_many(lines, hashes, &mut found);
                found[0]
            }
            // SAFETY: as in `inlined`.
            _ => unsafe { (self.batches().few_bitmap)(lines, hashes, &self.probe) },
        }
    }

    /// Whether each hash is found, as a bitmap.
    #[inline]
    pub(crate) fn contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match self.ladder.plan(hashes.len()) {
            Plan::Tile | Plan::Pipeline => self.contains_many(lines, hashes, found),
            few => found.fill(self.contains_few_bitmap(few, lines, hashes)),
        }
    }

    /// By the table's function for batches, or one by one if there is none.
    #[inline]
    fn contains_many(&self, mut lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        match &self.batches().batch {
            // SAFETY: as in `inlined`.
            Some(forms) => unsafe {
                forms[self.prefetching.form()](lines, &self.probe.pattern, self.prefetching, hashes, found);
            },
            None => one_by_one(&mut lines, self.prefetching, hashes, found, |lines, hash| {
                // SAFETY: as in `inlined`.
                unsafe { (self.probe.contains)(*lines, hash, &self.probe) }
            }),
        }
    }
}

impl Kernels {
    #[inline(always)]
    pub(crate) fn insert(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        match self.lookups.inlined(lines, hash) {
            Some(true) => false,
            _ => self.insert_missing(lines, hash),
        }
    }

    /// [`insert`](Self::insert) of a hash that is not known to be found.
    #[inline(always)]
    pub(crate) fn insert_missing(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        // SAFETY: the `Isa` of the lookups proves that the CPU has what the function needs.
        unsafe { tables::single_insert(self.lookups.row)(lines, hash, &self.lookups.probe.pattern) }
    }

    /// Runs `work` with single calls in the lines that are asked, in a function that is compiled
    /// for this CPU.
    #[inline]
    pub(crate) fn inlined<A: Asked, R>(&self, work: impl FnOnce(Calls) -> R) -> R {
        let lookups = &self.lookups;
        let by_pointers = Calls {
            contains: lookups.called,
            insert: None,
        };
        tables::inlined_calls::<A, _>(lookups.isa.level(), lookups.probe.pattern.words, by_pointers, work)
    }

    #[inline(always)]
    pub(crate) fn contains_by(&self, calls: Calls, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        // SAFETY: as in `Lookups::inlined`; the calls are those of these lookups.
        unsafe { (calls.contains)(lines, hash, &self.lookups.probe) }
    }

    /// `None` if no insert is inlined.
    #[inline(always)]
    pub(crate) fn insert_by(&self, calls: Calls, lines: Lines<'_, AtomicU64>, hash: u64) -> Option<bool> {
        // SAFETY: as in `contains_by`.
        calls
            .insert
            .map(|insert| unsafe { insert(lines, hash, &self.lookups.probe.pattern) })
    }

    /// Whether each hash's insert changed the filter, for a few.
    #[inline]
    pub(crate) fn insert_few(&self, plan: Plan, lines: Lines<'_, AtomicU64>, hashes: &[u64]) -> u64 {
        let hint = match plan {
            Plan::Single => None,
            Plan::Tile | Plan::Pipeline => {
                let mut changed = [0];
                self.insert_many(lines, hashes, &mut changed);
                return changed[0];
            }
            // To be read: the keys may be known, and another thread's lines.
            _ => self.prefetching.hint().map(|_| Hint::L1),
        };
        few_bitmap(hashes, &lines, hint, |hash| self.insert(lines, hash))
    }

    /// Whether each hash's insert changed the filter, as a bitmap.
    #[inline]
    pub(crate) fn insert_hashes(&self, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
        match self.ladder.plan(hashes.len()) {
            Plan::Tile | Plan::Pipeline => self.insert_many(lines, hashes, changed),
            few => changed.fill(self.insert_few(few, lines, hashes)),
        }
    }

    /// By the table's function for batches, or one by one if there is none.
    #[inline]
    fn insert_many(&self, mut lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
        match &self.inserts().batch {
            // SAFETY: as in `insert_missing`.
            Some(forms) => unsafe {
                forms[self.prefetching.form()](lines, &self.lookups.probe.pattern, self.prefetching, hashes, changed);
            },
            None => one_by_one(&mut lines, self.prefetching, hashes, changed, |lines, hash| {
                self.insert(*lines, hash)
            }),
        }
    }

    /// [`insert_hashes`](Self::insert_hashes) into words that this thread owns. The region must
    /// have the blocks of all hashes.
    #[inline(always)]
    pub(crate) fn fill(&self, region: &mut OwnedRange<'_>, hashes: &[u64], changed: &mut [u64]) {
        let tuning = self.lookups.tuning;
        let prefetching = tuning.prefetching(size_of_val(region.words), tuning.changes);
        // SAFETY: as in `insert_missing`.
        unsafe { (self.inserts().fill)(region, &self.lookups.probe.pattern, prefetching, hashes, changed) }
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
        one_by_one(&mut lines, self.prefetching, hashes, answers, |lines, hash| {
            self.change(change, *lines, hash)
        });
    }
}
