//! Keys with two lines: operations on one line, for the first half of the lines and then for the
//! second. `call.rs` calls these functions with those of one line, and `x86_64.rs` [`both`].
//!
//! Lookups ask the second half only for the hashes that the first one holds: out of the caches, a
//! single call ends at the first line of an absent key, and a batch prefetches the second lines of
//! the others together. Inserts change both halves. The halves share no word, so the order of the
//! two passes changes no bit and no answer.

use super::dispatch::{Gather, Probe};
use super::plan::Plan;
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{block, second};
use crate::words::bits::{Hint, Lines, Load, OwnedRange, Prefetchable};
use crate::words::scratch::Scratch;
use crate::words::sync::AtomicU64;

/// Hashes of a pass: a multiple of 64, and few enough to lie on the stack. A pass prefetches no
/// lines of the next one.
const PASS: usize = 1024;

/// Whether both lines of the hash hold its patterns.
///
/// # Safety
///
/// The CPU has what the lookup in one line needs.
#[inline(never)]
pub(super) unsafe fn contains<T: Load>(lines: Lines<'_, T>, hash: u64, probe: &Probe<T>) -> bool {
    // SAFETY: as promised.
    both(lines, hash, probe.hint, |line, hash| unsafe {
        (probe.line)(line, hash, probe)
    })
}

/// Whether `contains`, the lookup in one line, says so of both lines of the hash. There is a hint
/// if the filter is beyond the caches.
#[inline(always)]
pub(super) fn both<T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    hint: Option<Hint>,
    contains: impl Fn(Lines<'_, T>, u64) -> bool,
) -> bool {
    let [first, other] = lines.halves();
    let in_first = contains(first, hash);
    // In the caches the second line takes less than a mispredicted branch, of which there are many
    // where answers vary.
    if hint.is_none() {
        return in_first & contains(other, second(hash));
    }
    in_first && contains(other, second(hash))
}

/// [`both`] for every hash, as a bitmap. `line` looks hashes up in one line.
///
/// # Safety
///
/// The CPU has what `gather` needs.
#[inline(always)]
pub(super) unsafe fn contains_hashes<T: Load>(
    plan: Plan,
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
    gather: Gather,
    hint: Option<Hint>,
    line: impl Fn(Lines<'_, T>, &[u64], &mut [u64]),
) {
    if let (Some(hint), true) = (hint, plan.is_few()) {
        // All lines at once: a few keys take as long as they wait, twice if one line after another.
        prefetch_seconds(lines, hashes, hint);
    }
    // In the caches nothing is prefetched, and less space stays in the first of them.
    let most = if hint.is_none() { PASS / 4 } else { PASS };
    let [first, other] = lines.halves();
    let (mut seconds, mut held) = (Scratch::<{ PASS + ROOM }>::default(), [0; PASS / 64]);
    for (hashes, found) in hashes.chunks(most).zip(found.chunks_mut(most / 64)) {
        line(first, hashes, found);
        let seconds = seconds.first(hashes.len() + ROOM);
        // SAFETY: as promised.
        let len = unsafe { gather(hashes, found, seconds) };
        let held = &mut held[..len.div_ceil(64)];
        line(other, &seconds[..len], held);
        let mut next = 0;
        for found in found {
            *found = keep(*found, held, &mut next);
        }
    }
}

/// Prefetches the second lines of the hashes.
#[inline(always)]
fn prefetch_seconds<T: Load>(lines: Lines<'_, T>, hashes: &[u64], hint: Hint) {
    let [_, other] = lines.halves();
    for hash in hashes {
        other.prefetch(block(second(*hash), other.blocks()), hint);
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

/// The bits of `found` for which the next of the `answers`, as many as there are bits, are true.
#[inline(always)]
fn keep(found: u64, answers: &[u64], next: &mut usize) -> u64 {
    let count = found.count_ones() as usize;
    if count == 0 {
        return 0;
    }
    let (word, shift) = (*next / 64, *next % 64);
    let mut held = answers[word] >> shift;
    if shift + count > 64 {
        held |= answers[word + 1] << (64 - shift);
    }
    *next += count;
    // Nearly all of those found in the first half are there.
    let mut missing = !held & u64::MAX >> (64 - count);
    let (mut kept, mut left, mut at) = (found, found, 0);
    while missing != 0 {
        let number = missing.trailing_zeros();
        for _ in at..number {
            left &= left - 1;
        }
        at = number;
        kept &= !(left & left.wrapping_neg());
        missing &= missing - 1;
    }
    kept
}

/// Inserts the hash by `line`, the insert into one line; returns whether that changed one of them.
#[inline(always)]
pub(super) fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool {
    let ([first, other], then) = (lines.halves(), second(hash));
    // No load of the second line begins during the locked operations of the first, but a hint does.
    // (To be read: a known key must not take the line from other threads.)
    other.prefetch(block(then, other.blocks()), Hint::L1);
    let changed = line(first, hash);
    line(other, then) | changed
}

/// [`insert`] of every hash, as a bitmap. `line` inserts hashes into one line.
pub(super) fn insert_hashes(
    plan: Plan,
    lines: Lines<'_, AtomicU64>,
    hashes: &[u64],
    changed: &mut [u64],
    hint: Option<Hint>,
    line: impl Fn(Lines<'_, AtomicU64>, &[u64], &mut [u64]),
) {
    let [first, other] = lines.halves();
    if let (Some(_), true) = (hint, plan.is_few()) {
        prefetch_seconds(lines, hashes, Hint::L1);
    }
    each_pass(hashes, changed, |hashes, seconds, changed, more| {
        line(first, hashes, changed);
        line(other, seconds, more);
    });
}

/// [`insert_hashes`] into words that this thread owns, of the whole filter.
pub(super) fn fill(
    region: &mut OwnedRange<'_>,
    hashes: &[u64],
    changed: &mut [u64],
    line: impl Fn(&mut OwnedRange<'_>, &[u64], &mut [u64]),
) {
    debug_assert_eq!(region.words.len(), region.blocks * LINE_WORDS);
    let blocks = region.blocks / 2;
    let (first, other) = region.words.split_at_mut(region.words.len() / 2);
    let half = |words| OwnedRange {
        words,
        first: 0,
        blocks,
    };
    let (mut first, mut other) = (half(first), half(other));
    each_pass(hashes, changed, |hashes, seconds, changed, more| {
        line(&mut first, hashes, changed);
        line(&mut other, seconds, more);
    });
}

/// Calls `work` with every pass of the hashes, their second ones, and a bitmap for each. The two
/// bitmaps become one.
#[inline(always)]
fn each_pass(hashes: &[u64], changed: &mut [u64], mut work: impl FnMut(&[u64], &[u64], &mut [u64], &mut [u64])) {
    let (mut seconds, mut more) = (Scratch::<PASS>::default(), [0; PASS / 64]);
    for (hashes, changed) in hashes.chunks(PASS).zip(changed.chunks_mut(PASS / 64)) {
        let (seconds, more) = (seconds.first(hashes.len()), &mut more[..changed.len()]);
        for (to, hash) in seconds.iter_mut().zip(hashes) {
            *to = second(*hash);
        }
        work(hashes, seconds, changed, more);
        for (changed, more) in changed.iter_mut().zip(more) {
            *changed |= *more;
        }
    }
}
