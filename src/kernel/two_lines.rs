//! Keys with two lines: the kernels of one line, for the first half of the lines and then for the
//! second. `mod.rs` calls this for a layout with two lines per key.
//!
//! Lookups ask the second half only for the hashes that the first one holds: a single call ends at
//! the first line of an absent key, and a batch asks for the second lines of the others together.
//! Inserts change both halves. The halves share no word, so the order of the two passes changes no
//! bit and no answer.

use super::{FEW, Kernels, Lookups};
use crate::bits::{Lines, Load, Probed, Purpose, Region};
use crate::pattern::{block, second};
use crate::sync::AtomicU64;

/// Hashes of a pass: a multiple of 64, and few enough to lie on the stack. A pass asks for no lines
/// of the next one.
const PASS: usize = 1024;

/// Whether both lines of the hash hold its patterns.
#[inline(never)]
pub(super) fn contains<T: Load>(lookups: &Lookups<T>, lines: Lines<'_, T>, hash: u64) -> bool {
    let [first, other] = lines.halves();
    lookups.line_contains(first, hash) && lookups.line_contains(other, second(hash))
}

/// [`contains`] of fewer than [`FEW`] hashes, as a bitmap.
#[inline(never)]
pub(super) fn contains_few<T: Load>(lookups: &Lookups<T>, lines: Lines<'_, T>, hashes: &[u64]) -> u64 {
    let [first, other] = lines.halves();
    let found = lookups.line_contains_few(first, hashes);
    let (mut seconds, mut left) = (Seconds::<FEW>::new(), found);
    seconds.add(hashes, &mut left);
    let mut held = [0];
    held[0] = lookups.line_contains_few(other, seconds.hashes());
    Answers::of(&held).keep(found)
}

/// [`contains`] of every hash, as a bitmap.
#[inline(never)]
pub(super) fn contains_hashes<T: Load>(lookups: &Lookups<T>, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
    // To clear the space for a whole pass takes longer than to work on a few keys.
    if hashes.len() <= 64 {
        return pass::<T, 64>(lookups, lines, hashes, found, &mut [0]);
    }
    for (hashes, found) in hashes.chunks(PASS).zip(found.chunks_mut(PASS / 64)) {
        pass::<T, PASS>(lookups, lines, hashes, found, &mut [0; PASS / 64]);
    }
}

#[inline(never)]
fn pass<T: Load, const N: usize>(
    lookups: &Lookups<T>,
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
    held: &mut [u64],
) {
    let [first, other] = lines.halves();
    lookups.line_contains_hashes(first, hashes, found);
    let mut seconds = Seconds::<N>::new();
    for (hashes, &found) in hashes.chunks(64).zip(found.iter()) {
        seconds.add(hashes, &mut { found });
    }
    let seconds = seconds.hashes();
    let held = &mut held[..seconds.len().div_ceil(64)];
    lookups.line_contains_hashes(other, seconds, held);
    let mut held = Answers::of(held);
    for found in found {
        *found = held.keep(*found);
    }
}

/// The second hashes of those that the first half holds.
struct Seconds<const N: usize> {
    hashes: [u64; N],
    len: usize,
}

impl<const N: usize> Seconds<N> {
    #[inline(always)]
    fn new() -> Self {
        let (hashes, len) = ([0; N], 0);
        Self { hashes, len }
    }

    /// Adds those of at most 64 hashes whose bit is set.
    #[inline(always)]
    fn add(&mut self, hashes: &[u64], found: &mut u64) {
        let places = &mut self.hashes[self.len..];
        if *found == u64::MAX {
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = second(*hash);
            }
            self.len += 64;
            return;
        }
        let count = found.count_ones() as usize;
        for place in &mut places[..count] {
            *place = second(hashes[found.trailing_zeros() as usize]);
            *found &= *found - 1;
        }
        self.len += count;
    }

    fn hashes(&self) -> &[u64] {
        &self.hashes[..self.len]
    }
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
#[inline(never)]
pub(super) fn insert(kernels: &Kernels, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
    let ([first, other], then) = (lines.halves(), second(hash));
    // No load of the second line begins during the locked operations of the first, but a hint does.
    other.prefetch(block(then, other.blocks()), Purpose::Write);
    let changed = kernels.line_insert(first, hash);
    kernels.line_insert(other, then) | changed
}

/// [`insert`] of fewer than [`FEW`] hashes, as a bitmap.
#[inline(never)]
pub(super) fn insert_few(kernels: &Kernels, lines: Lines<'_, AtomicU64>, hashes: &[u64]) -> u64 {
    let [first, other] = lines.halves();
    let mut seconds = [0; FEW];
    let changed = kernels.line_insert_few(first, hashes);
    kernels.line_insert_few(other, all_seconds(hashes, &mut seconds)) | changed
}

/// [`insert`] of every hash, as a bitmap.
#[inline(never)]
pub(super) fn insert_hashes(kernels: &Kernels, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
    let [first, other] = lines.halves();
    each_pass(hashes, changed, |hashes, seconds, changed, more| {
        kernels.line_insert_hashes(first, hashes, changed);
        kernels.line_insert_hashes(other, seconds, more);
    });
}

/// [`insert_hashes`] into words that this thread owns, of the whole filter.
#[inline(never)]
pub(super) fn fill(kernels: &Kernels, region: &mut Region<'_>, hashes: &[u64], changed: &mut [u64]) {
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
        let more = &mut more[..changed.len()];
        work(hashes, all_seconds(hashes, seconds), changed, more);
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

/// Writes the second hashes to the first places of `seconds`.
#[inline(always)]
fn all_seconds<'a>(hashes: &[u64], seconds: &'a mut [u64]) -> &'a [u64] {
    let seconds = &mut seconds[..hashes.len()];
    for (to, hash) in seconds.iter_mut().zip(hashes) {
        *to = second(*hash);
    }
    seconds
}
