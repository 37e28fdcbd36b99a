//! Keys with two lines: the kernels of one line, for the first half of the lines and then for the
//! second. The functions stand in the place of those of one line where a layout has two lines per
//! key, so that a call for one line does not ask how many there are.
//!
//! Lookups ask the second half only for the hashes that the first one holds: out of the caches, a
//! single call ends at the first line of an absent key, and a batch asks for the second lines of
//! the others together. Inserts change both halves. The halves share no word, so the order of the
//! two passes changes no bit and no answer.

use super::cpu::Access;
use super::scalar::{few_bitmap, one_by_one};
use super::tables::{FEW, Kernels, Lookups};
use crate::bits::{Lines, Load, Probed, Purpose, Region, is_cached};
use crate::pattern::{block, second};
use crate::sync::AtomicU64;

/// Hashes of a pass: a multiple of 64, and few enough to lie on the stack. A pass asks for no lines
/// of the next one.
const PASS: usize = 1024;

/// Whether both lines of the hash hold its patterns.
pub(super) fn contains<T: Load>(lines: Lines<'_, T>, hash: u64, lookups: &Lookups<T>) -> bool {
    both(lines, hash, |line, hash| lookups.line_contains(line, hash))
}

/// Whether `contains` says so of both.
#[inline(always)]
pub(super) fn both<T: Load>(lines: Lines<'_, T>, hash: u64, contains: impl Fn(Lines<'_, T>, u64) -> bool) -> bool {
    let [first, other] = lines.halves();
    let in_first = contains(first, hash);
    // In the caches the second line takes less than a mispredicted branch, of which there are many
    // where answers vary.
    if is_cached(lines.bytes()) {
        return in_first & contains(other, second(hash));
    }
    in_first && contains(other, second(hash))
}

/// [`contains`] of every hash, as a bitmap.
pub(super) fn contains_hashes<T: Load>(
    lookups: &Lookups<T>,
    lines: Lines<'_, T>,
    _: Access,
    hashes: &[u64],
    found: &mut [u64],
) {
    let cached = is_cached(lines.bytes());
    if hashes.len() < FEW && !cached {
        // All lines at once: a few keys take as long as they wait, twice if one line after another.
        let [_, other] = lines.halves();
        for hash in hashes {
            other.prefetch(block(second(*hash), other.blocks()), Purpose::Read);
        }
    }
    // To clear the space for a whole pass takes longer than to work on a few keys.
    if hashes.len() <= 64 {
        let found = &mut found[..hashes.len().div_ceil(64)];
        return pass(lookups, lines, hashes, found, &mut [0; 64 + ROOM], &mut [0]);
    }
    // In the caches nothing is asked for ahead, and less space stays in the first of them.
    let most = if cached { PASS / 4 } else { PASS };
    let (mut seconds, mut held) = ([0; PASS + ROOM], [0; PASS / 64]);
    for (hashes, found) in hashes.chunks(most).zip(found.chunks_mut(most / 64)) {
        pass(lookups, lines, hashes, found, &mut seconds, &mut held);
    }
}

#[inline(always)]
fn pass<T: Load>(
    lookups: &Lookups<T>,
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
    seconds: &mut [u64],
    held: &mut [u64],
) {
    let [first, other] = lines.halves();
    lookups.line_contains_hashes(first, hashes, found);
    // SAFETY: the lookups were given out against an `Isa`, which proves that the CPU has what the
    // function needs.
    let len = unsafe { (lookups.line.gather)(hashes, found, seconds) };
    let held = &mut held[..len.div_ceil(64)];
    lookups.line_contains_hashes(other, &seconds[..len], held);
    let mut held = Answers::of(held);
    for found in found {
        *found = held.keep(*found);
    }
}

/// The places that [`gather`] needs beyond those for as many hashes as it is given.
pub(super) const ROOM: usize = 8;

/// Writes the [`second`] hashes of those whose bit is set to the first places of `into`. Returns
/// how many they are. (The places after them have any values then.)
pub(super) fn gather(hashes: &[u64], found: &[u64], into: &mut [u64]) -> usize {
    let mut len = 0;
    for (hashes, &found) in hashes.chunks(64).zip(found) {
        let places = &mut into[len..];
        if found == u64::MAX {
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = second(*hash);
            }
        } else {
            let mut left = found;
            for place in &mut places[..found.count_ones() as usize] {
                *place = second(hashes[left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
        len += found.count_ones() as usize;
    }
    len
}

/// The answers of a bitmap, one after another.
struct Answers<'a> {
    words: &'a [u64],
    next: usize,
}

impl<'a> Answers<'a> {
    fn of(words: &'a [u64]) -> Self {
        Self { words, next: 0 }
    }

    /// The bits of `found` for which the next answers, as many as there are bits, are true.
    #[inline(always)]
    fn keep(&mut self, found: u64) -> u64 {
        let count = found.count_ones() as usize;
        if count == 0 {
            return 0;
        }
        let (word, shift) = (self.next / 64, self.next % 64);
        let mut held = self.words[word] >> shift;
        if shift + count > 64 {
            held |= self.words[word + 1] << (64 - shift);
        }
        self.next += count;
        // Nearly all of those found in the first half are there.
        let mut lacking = !held & u64::MAX >> (64 - count);
        let (mut kept, mut left, mut at) = (found, found, 0);
        while lacking != 0 {
            let number = lacking.trailing_zeros();
            for _ in at..number {
                left &= left - 1;
            }
            at = number;
            kept &= !(left & left.wrapping_neg());
            lacking &= lacking - 1;
        }
        kept
    }
}

/// Inserts the hash; answers whether that changed one of its lines.
pub(super) fn insert(lines: Lines<'_, AtomicU64>, hash: u64, kernels: &Kernels) -> bool {
    // Where a lookup is faster than to make masks, it comes first.
    if kernels.lookups.has_bitalg() && kernels.lookups.contains(lines, hash) {
        return false;
    }
    let ([first, other], then) = (lines.halves(), second(hash));
    // No load of the second line begins during the locked operations of the first, but a hint does.
    other.prefetch(block(then, other.blocks()), Purpose::Write);
    let changed = kernels.line_insert(first, hash);
    kernels.line_insert(other, then) | changed
}

/// [`insert`] of every hash, as a bitmap.
pub(super) fn insert_hashes(
    kernels: &Kernels,
    lines: Lines<'_, AtomicU64>,
    _: Access,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let [first, other] = lines.halves();
    if hashes.len() < FEW && !is_cached(lines.bytes()) {
        for hash in hashes {
            other.prefetch(block(second(*hash), other.blocks()), Purpose::Write);
        }
    }
    each_pass(hashes, changed, |hashes, seconds, changed, more| {
        kernels.line_insert_hashes(first, hashes, changed);
        kernels.line_insert_hashes(other, seconds, more);
    });
}

/// [`insert_hashes`] into words that this thread owns, of the whole filter.
pub(super) fn fill(kernels: &Kernels, region: &mut Region<'_>, _: Access, hashes: &[u64], changed: &mut [u64]) {
    debug_assert_eq!(region.bytes(), region.blocks * crate::layout::LINE_BYTES);
    let blocks = region.blocks / 2;
    let (first, other) = region.words.split_at_mut(region.words.len() / 2);
    let half = |words| Region {
        words,
        first: 0,
        blocks,
    };
    let (mut first, mut other) = (half(first), half(other));
    each_pass(hashes, changed, |hashes, seconds, changed, more| {
        kernels.line_fill(&mut first, hashes, changed);
        kernels.line_fill(&mut other, seconds, more);
    });
}

/// Calls `work` with every pass of the hashes, their second ones, and a bitmap for each. The two
/// bitmaps become one.
#[inline(always)]
fn each_pass(hashes: &[u64], changed: &mut [u64], mut work: impl FnMut(&[u64], &[u64], &mut [u64], &mut [u64])) {
    let mut pass = |hashes: &[u64], changed: &mut [u64], seconds: &mut [u64], more: &mut [u64]| {
        let (seconds, more) = (&mut seconds[..hashes.len()], &mut more[..changed.len()]);
        for (to, hash) in seconds.iter_mut().zip(hashes) {
            *to = second(*hash);
        }
        work(hashes, seconds, changed, more);
        for (changed, more) in changed.iter_mut().zip(more) {
            *changed |= *more;
        }
    };
    if hashes.len() <= 64 {
        return pass(hashes, changed, &mut [0; 64], &mut [0]);
    }
    let (mut seconds, mut more) = ([0; PASS], [0; PASS / 64]);
    for (hashes, changed) in hashes.chunks(PASS).zip(changed.chunks_mut(PASS / 64)) {
        pass(hashes, changed, &mut seconds, &mut more);
    }
}

/// In one line of each hash, one of all the given ones. In each of these functions, for the calls
/// by pointers: the lookups were given out against an `Isa`, which proves that the CPU has what
/// the functions need.
impl<T: Load> Lookups<T> {
    fn has_bitalg(&self) -> bool {
        self.contains_few_bitmap.is_some()
    }

    #[inline(always)]
    fn line_contains(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: see above.
        unsafe { (self.line.contains)(lines, hash, self) }
    }

    fn line_contains_hashes(&self, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
        if hashes.len() < self.line.least {
            let few = match self.contains_few_bitmap {
                // SAFETY: see above.
                Some(contains) => unsafe { contains(lines, hashes, &self.cuts) },
                None => few_bitmap(hashes, &lines, Purpose::Read, |hash| self.line_contains(lines, hash)),
            };
            return found.fill(few);
        }
        match self.line.contains_hashes {
            Some(contains) => {
                let access = self.access(&lines, self.tuning.lookups);
                // SAFETY: see above.
                unsafe { contains(self, lines, access, hashes, found) }
            }
            None => one_by_one(&mut { lines }, hashes, found, Purpose::Read, |lines, hash| {
                self.line_contains(*lines, hash)
            }),
        }
    }
}

/// As above.
impl Kernels {
    #[inline(always)]
    fn line_insert(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        // SAFETY: see above.
        unsafe { (self.line.insert)(lines, hash, self) }
    }

    pub(crate) fn line_insert_hashes(&self, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
        if hashes.len() < self.lookups.line.least {
            let insert = |hash| self.line_insert(lines, hash);
            return changed.fill(few_bitmap(hashes, &lines, Purpose::Write, insert));
        }
        match self.line.insert_hashes {
            Some(insert) => {
                let access = self.lookups.access(&lines, Purpose::Write);
                // SAFETY: see above.
                unsafe { insert(self, lines, access, hashes, changed) }
            }
            None => one_by_one(&mut { lines }, hashes, changed, Purpose::Write, |lines, hash| {
                self.line_insert(*lines, hash)
            }),
        }
    }

    fn line_fill(&self, region: &mut Region<'_>, hashes: &[u64], changed: &mut [u64]) {
        let access = self.lookups.access(region, Purpose::Write);
        // SAFETY: see above.
        unsafe { (self.line.fill)(self, region, access, hashes, changed) }
    }
}
