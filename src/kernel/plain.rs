//! The specification of the kernels, and the code for CPUs without vectors: takes a hash or a slice
//! of hashes, and gives answers.
//!
//! The answers of a batch are a bitmap: bit `i % 64` of word `i / 64` is the answer for hash `i`.
//! The bits that no hash belongs to are 0.
//!
//! No pipeline orders memory beyond the `Release` of the bits it sets. The caller calls
//! [`acquire`](crate::words::bits::acquire) if an answer rests on bits seen.

use super::plan::Prefetching;
use super::single::{Asked, Probe};
use crate::geometry::pattern::{Pattern, block, masks, position, product, sector};
use crate::words::arrays::as_chunks_mut;
use crate::words::bits::{Hint, Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::counters::{self, Counters};
use crate::words::sync::AtomicU64;

#[inline(never)]
pub(super) fn contains<const W: usize, A: Asked, T: Load>(lines: Lines<'_, T>, hash: u64, probe: &Probe<T>) -> bool {
    A::hold(lines, hash, probe.hint, |lines, hash| {
        let product = product(hash);
        let positions = (0..probe.pattern.bits).map(|number| position::<W>(product, number));
        lines.holds::<W>(sector::<W>(hash, lines.blocks()), positions)
    })
}

pub(super) fn insert<const W: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, pattern: &Pattern) -> bool {
    insert_into::<W>(&mut lines, hash, pattern)
}

#[inline(always)]
fn insert_into<const W: usize>(target: &mut impl Insertable, hash: u64, pattern: &Pattern) -> bool {
    target.set(
        sector::<W>(hash, target.blocks()),
        masks::<W>(product(hash), pattern.bits),
    )
}

/// Inserts into words that this thread owns. `changed` is a bitmap: whether each hash changed them.
#[inline(never)]
pub(super) fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    one_by_one(region, prefetching, hashes, changed, |region, hash| {
        insert_into::<W>(region, hash, pattern)
    });
}

pub(crate) fn increment<const W: usize>(lines: Lines<'_, Counters>, hash: u64, bits: usize) -> bool {
    counters::increment(counters_of::<W>(lines, hash), masks(product(hash), bits))
}

pub(crate) fn decrement<const W: usize>(lines: Lines<'_, Counters>, hash: u64, bits: usize) -> bool {
    counters::decrement(counters_of::<W>(lines, hash), masks(product(hash), bits))
}

/// The sector of a hash.
#[inline(always)]
fn counters_of<'a, const W: usize>(lines: Lines<'a, Counters>, hash: u64) -> &'a [Counters; W] {
    let words = &lines.all().as_flattened()[sector::<W>(hash, lines.blocks())..];
    words.first_chunk().expect("a sector lies within a line")
}

/// Prefetches the lines of a few hashes by the hint, if there is one.
#[inline(always)]
fn prefetch(hashes: &[u64], target: &impl Prefetchable, hint: Option<Hint>) {
    let Some(hint) = hint else { return };
    for &hash in hashes {
        target.prefetch(block(hash, target.blocks()), hint);
    }
}

/// The answers of `each` for a few hashes; prefetches their lines first.
#[inline(always)]
pub(super) fn few(
    hashes: &[u64],
    target: &impl Prefetchable,
    hint: Option<Hint>,
    answers: &mut [bool],
    each: impl Fn(u64) -> bool,
) {
    prefetch(hashes, target, hint);
    for (&hash, answer) in hashes.iter().zip(answers) {
        *answer = each(hash);
    }
}

/// [`few`] by the lookup that is called.
///
/// # Safety
///
/// The CPU has what that lookup needs.
#[inline(never)]
pub(super) unsafe fn few_flags<T: Load>(lines: Lines<'_, T>, hashes: &[u64], probe: &Probe<T>, found: &mut [bool]) {
    // SAFETY: as promised.
    few(hashes, &lines, probe.hint, found, |hash| unsafe {
        (probe.contains)(lines, hash, probe)
    });
}

/// [`few_flags`] as a bitmap.
///
/// # Safety
///
/// The same as for [`few_flags`].
#[inline(never)]
pub(super) unsafe fn few_lookups<T: Load>(lines: Lines<'_, T>, hashes: &[u64], probe: &Probe<T>) -> u64 {
    // SAFETY: as promised.
    few_bitmap(hashes, &lines, probe.hint, |hash| unsafe {
        (probe.contains)(lines, hash, probe)
    })
}

/// The answers of `each` as the bits of a word, the first one lowest. Calls it for the last one
/// first: to shift by a number that varies takes longer.
#[inline(always)]
pub(crate) fn bitmap_of<T>(all: &[T], each: impl Fn(&T) -> bool) -> u64 {
    all.iter()
        .rev()
        .fold(0, |bitmap, one| bitmap << 1 | u64::from(each(one)))
}

/// The answers of `each` for a few hashes, as a bitmap; prefetches their lines first.
#[inline(always)]
pub(super) fn few_bitmap(
    hashes: &[u64],
    target: &impl Prefetchable,
    hint: Option<Hint>,
    each: impl Fn(u64) -> bool,
) -> u64 {
    prefetch(hashes, target, hint);
    let mut answers = 0;
    for (i, &hash) in hashes.iter().enumerate() {
        answers |= u64::from(each(hash)) << i;
    }
    answers
}

/// Calls `each` for every hash in order; prefetches lines.
#[inline(always)]
pub(crate) fn one_by_one<T: Prefetchable>(
    target: &mut T,
    prefetching: Prefetching,
    hashes: &[u64],
    answers: &mut [u64],
    mut each: impl FnMut(&mut T, u64) -> bool,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), answers.len());
    // A hash is its own place.
    let prefetch = |target: &mut T, _, hash: &u64, (): &(), hint| target.prefetch(block(*hash, target.blocks()), hint);
    prefetching.tiles(
        target,
        hashes,
        |_, _, _| (),
        prefetch,
        |target, start, tile| {
            let hashes = &hashes[start..][..tile.len()];
            answers[start / 64] = Prefetching::answers(hashes.iter().map(|hash| each(target, *hash)));
            true
        },
    );
}

/// The most rows that are read before a kernel looks whether any bit is left. (A bank at 1% has six
/// rows for a key, at 1e-4 twelve to sixteen: there, eight leave a bit in one of three lines of
/// columns.)
pub(super) const ROWS_BEFORE_A_LOOK: usize = 8;

/// Writes to `out` the AND of rows of `words`: each begins at one of `starts`, and is as long as
/// `out`.
pub(super) fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    for (i, out) in out.iter_mut().enumerate() {
        let mut all = u64::MAX;
        for starts in starts.chunks(ROWS_BEFORE_A_LOOK) {
            for &start in starts {
                all &= words[start as usize + i].load();
            }
            if all == 0 {
                break;
            }
        }
        *out = all;
    }
}

/// [`and_rows`] with vectors of `N` words: `and` returns those at an address, ANDed with others;
/// `is_zero` and `store` read them. Returns the number of words that it wrote: a multiple of `N`.
///
/// # Safety
///
/// `and` reads `N` words from its address on, and no other memory. All rows lie within `words`.
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
#[inline(always)]
pub(super) unsafe fn and_rows_by<const N: usize, T, V: Copy>(
    words: &[T],
    starts: &[u64],
    out: &mut [u64],
    ones: V,
    and: impl Fn(V, *const T) -> V,
    is_zero: impl Fn(V) -> bool,
    store: impl Fn(&mut [u64; N], V),
) -> usize {
    let (vectors, _) = as_chunks_mut::<N, _>(out);
    let (first, rest) = starts.split_at(starts.len().min(ROWS_BEFORE_A_LOOK));
    for (i, out) in vectors.iter_mut().enumerate() {
        let words = words.as_ptr().wrapping_add(N * i);
        let mut all = ones;
        for &start in first {
            all = and(all, words.wrapping_add(start as usize));
        }
        if !rest.is_empty() && !is_zero(all) {
            for &start in rest {
                all = and(all, words.wrapping_add(start as usize));
            }
        }
        store(out, all);
    }
    N * vectors.len()
}

/// Moves the hashes whose bit is set to the front; returns how many they are.
pub(super) fn pack(hashes: &mut [u64], found: &[u64]) -> usize {
    let mut len = 0;
    for (start, &found) in (0..hashes.len()).step_by(64).zip(found) {
        Prefetching::each_one(found, |i| {
            hashes[len] = hashes[start + i];
            len += 1;
        });
    }
    len
}

/// Writes a bit of the bitmap to each place of `out`.
pub(crate) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    debug_assert_eq!(out.len().div_ceil(64), bitmap.len());
    for (out, &word) in out.chunks_mut(64).zip(bitmap) {
        unpack_few(word, out);
    }
}

/// Writes the lowest bits to the places of `out`, at most 64.
#[inline]
pub(crate) fn unpack_few(mut bits: u64, out: &mut [bool]) {
    let (eights, rest) = as_chunks_mut::<8, _>(out);
    for eight in eights {
        // The product repeats the byte; the mask leaves another bit of each copy.
        let spread = (u64::from(bits as u8) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        *eight = spread.to_le_bytes().map(|byte| byte != 0);
        bits >>= 8;
    }
    for place in rest {
        *place = bits & 1 == 1;
        bits >>= 1;
    }
}
