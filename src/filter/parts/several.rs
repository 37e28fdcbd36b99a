//! Filters of several: how the answers of their members combine.
//!
//! - **Any of** them has the key: the layers of a filter that grows, the generations of a window.
//! - **Both**: a key with two lines is in both halves of the lines, which are two filters of one
//!   line. In the second it is by its [`second`] hash.
//! - **But not**: added and not removed, in a pair with tombstones. It is [`narrow`] as well.
//!
//! Lookups ask the second half only for the hashes that the first one holds: out of the caches, a
//! single call ends at the first line of an absent key, and a batch prefetches the second lines of
//! the others together. Inserts change both halves. The order of the two halves changes no bit and
//! no answer, since each half has words of its own.

use crate::chunks::CHUNK;
use crate::filter::traits::Engine;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::pattern::{block, second};
use crate::kernel::{Asked, Isa, Kernels, Lookups, One, Plan, Vectorized};
use crate::words::bits::{Hint, Lines, Load, OwnedRange, Prefetchable};
use crate::words::scratch::Scratch;
use crate::words::sync::AtomicU64;

/// The fill of several engines together, from the fill of each.
pub(crate) fn fill_of_all<'a, E: Engine + 'a>(fills: impl Iterator<Item = (f64, &'a E)>) -> f64 {
    let add = |(ones, bytes), (fill, one): (f64, &E)| {
        let size = one.memory_bytes() as f64;
        (ones + fill * size, bytes + size)
    };
    let (ones, bytes) = fills.fold((0.0, 0.0), add);
    ones / bytes
}

/// Writes for every hash whether any of the engines has it. The first engine should have most.
pub(crate) fn contains_any<'a, E: Engine + 'a>(
    mut engines: impl Iterator<Item = &'a E>,
    hashes: &[u64],
    found: &mut [u64],
) {
    match engines.next() {
        Some(first) => first.contains_bitmap(hashes, found),
        None => found.fill(0),
    }
    for one in engines {
        if found.iter().all(|&word| word == u64::MAX) {
            return;
        }
        each_found(one, hashes, found, |all, found| *all |= found);
    }
}

/// Looks hashes up in one engine; combines the words of its answers with those of `answers`.
pub(crate) fn each_found(one: &impl Engine, hashes: &[u64], answers: &mut [u64], combine: impl Fn(&mut u64, &u64)) {
    let mut space = Scratch::<{ CHUNK / 64 }>::default();
    for (hashes, answers) in hashes.chunks(CHUNK).zip(answers.chunks_mut(CHUNK / 64)) {
        let found = space.first(answers.len());
        one.contains_bitmap(hashes, found);
        let pairs = answers.iter_mut().zip(&*found);
        pairs.for_each(|(answer, found)| combine(answer, found));
    }
}

/// Hashes whose second lines are looked up together: a multiple of 64, and few enough to lie on the
/// stack. They prefetch no lines of the next ones.
pub(crate) const SECONDS: usize = 1024;

/// Writes for every hash whether `first` finds it and `then` finds its `other` hash: asked only for
/// those that were found. It takes `most` hashes at a time, at most [`SECONDS`].
#[inline(always)]
pub(crate) fn narrow(
    isa: Isa,
    most: usize,
    hashes: &[u64],
    found: &mut [u64],
    other: impl Fn(u64) -> u64,
    first: impl Fn(&[u64], &mut [u64]),
    then: impl Fn(&[u64], &mut [u64]),
) {
    let (mut others, mut held) = (Scratch::<SECONDS>::default(), [0; SECONDS / 64]);
    for (hashes, found) in hashes.chunks(most).zip(found.chunks_mut(most / 64)) {
        first(hashes, found);
        let others = others.first(hashes.len());
        isa.vectorized(Each {
            hashes,
            others,
            other: &other,
        });
        let len = isa.pack(others, found);
        let held = &mut held[..len.div_ceil(64)];
        then(&others[..len], held);
        let mut next = 0;
        for found in found {
            *found = keep(*found, held, &mut next);
        }
    }
}

/// Writes the `other` of each hash.
struct Each<'a, F> {
    hashes: &'a [u64],
    others: &'a mut [u64],
    other: &'a F,
}

impl<F: Fn(u64) -> u64> Vectorized for Each<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (to, hash) in self.others.iter_mut().zip(self.hashes) {
            *to = (self.other)(*hash);
        }
    }
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

/// A key has a line in each half.
pub(crate) struct Both;

impl Asked for Both {
    #[inline(always)]
    fn hold<T>(lines: Lines<'_, T>, hash: u64, hint: Option<Hint>, line: impl Fn(Lines<'_, T>, u64) -> bool) -> bool {
        let [first, other] = lines.halves();
        let in_first = line(first, hash);
        // In the caches the second line takes less than a mispredicted branch, of which there are
        // many where answers vary.
        if hint.is_none() {
            return in_first & line(other, second(hash));
        }
        in_first && line(other, second(hash))
    }

    #[inline(always)]
    fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool {
        let [first, other] = lines.halves();
        // No load of the second line begins during the locked operations of the first, but a hint
        // does. (To be read: a known key must not take the line from other threads.)
        prefetch_seconds(other, &[hash], Hint::L1);
        let changed = line(first, hash);
        line(other, second(hash)) | changed
    }
}

/// The lookups for `layout` by `isa`.
pub(crate) fn lookups<T: Load>(layout: Layout, isa: Isa) -> Lookups<T> {
    match layout.shape.lines {
        1 => Lookups::of::<One>(layout, isa),
        _ => Lookups::of::<Both>(layout, isa),
    }
}

/// The kernels for `layout` by `isa`.
pub(crate) fn kernels(layout: Layout, isa: Isa) -> Kernels {
    match layout.shape.lines {
        1 => Kernels::of::<One>(layout, isa),
        _ => Kernels::of::<Both>(layout, isa),
    }
}

/// Whether both lines of each hash hold it, as a bitmap.
// A call, so that the batches of one line have a small stack frame.
#[inline(never)]
pub(crate) fn contains_hashes<T: Load>(lookups: &Lookups<T>, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
    let [first, other] = lines.halves();
    if let (Some(hint), true) = (lookups.hint(), lookups.ladder.plan(hashes.len()).is_few()) {
        // All lines at once: a few keys take as long as they wait, twice if one line after another.
        prefetch_seconds(other, hashes, hint);
    }
    // In the caches nothing is prefetched, and less space stays in the first of them.
    let most = if lookups.hint().is_none() { SECONDS / 4 } else { SECONDS };
    let half = |lines| move |hashes: &[u64], found: &mut [u64]| contains_in_half(lookups, lines, hashes, found);
    narrow(lookups.isa(), most, hashes, found, second, half(first), half(other));
}

/// None of the hashes is looked up by a single call.
#[inline(never)]
fn contains_in_half<T: Load>(lookups: &Lookups<T>, lines: Lines<'_, T>, hashes: &[u64], found: &mut [u64]) {
    match lookups.ladder.plan(hashes.len()) {
        Plan::Single => found.fill(lookups.contains_few_bitmap(Plan::Few, lines, hashes)),
        _ => lookups.contains_hashes(lines, hashes, found),
    }
}

/// Prefetches the lines of the second hashes.
#[inline(always)]
fn prefetch_seconds<T>(other: Lines<'_, T>, hashes: &[u64], hint: Hint) {
    for hash in hashes {
        other.prefetch(block(second(*hash), other.blocks()), hint);
    }
}

/// Inserts the hash into both lines, by calls; returns whether that changed one of them.
#[inline(never)]
pub(crate) fn insert_called(kernels: &Kernels, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
    Both::insert(lines, hash, |line, hash| kernels.insert_missing(line, hash))
}

/// Whether each hash's insert changed one of its lines, as a bitmap.
pub(crate) fn insert_hashes(kernels: &Kernels, lines: Lines<'_, AtomicU64>, hashes: &[u64], changed: &mut [u64]) {
    let [first, other] = lines.halves();
    if kernels.lookups.hint().is_some() && kernels.ladder.plan(hashes.len()).is_few() {
        prefetch_seconds(other, hashes, Hint::L1);
    }
    with_seconds(hashes, changed, |hashes, seconds, changed, more| {
        kernels.insert_hashes(first, hashes, changed);
        kernels.insert_hashes(other, seconds, more);
    });
}

/// [`insert_hashes`] into words that this thread owns, of the whole filter.
pub(crate) fn fill(kernels: &Kernels, region: &mut OwnedRange<'_>, hashes: &[u64], changed: &mut [u64]) {
    debug_assert_eq!(region.words.len(), region.blocks * LINE_WORDS);
    let blocks = region.blocks / 2;
    let (first, other) = region.words.split_at_mut(region.words.len() / 2);
    let half = |words| OwnedRange {
        words,
        first: 0,
        blocks,
    };
    let (mut first, mut other) = (half(first), half(other));
    with_seconds(hashes, changed, |hashes, seconds, changed, more| {
        kernels.fill(&mut first, hashes, changed);
        kernels.fill(&mut other, seconds, more);
    });
}

/// Calls `work` with some of the hashes at a time, their second ones, and a bitmap for each. The
/// two bitmaps become one.
#[inline(always)]
fn with_seconds(hashes: &[u64], changed: &mut [u64], mut work: impl FnMut(&[u64], &[u64], &mut [u64], &mut [u64])) {
    let (mut seconds, mut more) = (Scratch::<SECONDS>::default(), [0; SECONDS / 64]);
    for (hashes, changed) in hashes.chunks(SECONDS).zip(changed.chunks_mut(SECONDS / 64)) {
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

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::ConcurrentBloom;
    use crate::filter::types::bloom::engine::empty;
    use crate::filter::types::bloom::{self, Bloom, BloomBits};
    use crate::geometry::layout::{Shape, WORDS_PER_KEY};
    use crate::hash::Murmur3;
    use crate::hash::bytes::mix;
    use crate::kernel::instruction_sets;
    use crate::{Bitmap, BloomView, Hashed, filter::Filter};
    use alloc::vec;
    use alloc::vec::Vec;

    fn filter(lines: usize, words: usize, bits: usize, blocks: usize, isa: Isa) -> ConcurrentBloom {
        let shape = Shape { lines, words, bits };
        let mut engine: Bloom<BloomBits> = empty(Layout { shape, blocks }, 1).unwrap();
        engine.set_isa(isa);
        Filter::of(engine, Murmur3::default())
    }

    fn hashes(from: u64, len: usize) -> Vec<u64> {
        (from..).map(mix).take(len).collect()
    }

    /// A filter of two lines per key is two of one line: the first half of the lines by the hashes,
    /// the second by their second ones. So say all calls, by every instruction set, in the caches
    /// and beyond, at lengths around the ladder and [`SECONDS`].
    #[test]
    fn two_lines_are_two_filters() {
        let plain = instruction_sets().next().unwrap();
        let mut in_one = 0;
        for (isa, words, half) in instruction_sets()
            .flat_map(|isa| WORDS_PER_KEY.map(|words| (isa, words)))
            .flat_map(|(isa, words)| [1, 7, 40_009].map(|half| (isa, words, half)))
        {
            let [by_one, in_loop, batch, flagged, own] = [(); 5].map(|()| filter(2, words, 4, 2 * half, isa));
            let mut own = own;
            let [first, other] = [(); 2].map(|()| filter(1, words, 4, half, plain));
            for len in [
                0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 40, 64, 65, 255, 256, 300, 1023, 1024, 1025, 2100,
            ] {
                let new = hashes(5000 * len as u64, len);
                let changed: Vec<bool> = new
                    .iter()
                    .map(|&hash| first.insert(&Hashed(hash)) | other.insert(&Hashed(second(hash))))
                    .collect();
                let count = changed.iter().filter(|changed| **changed).count();
                let single: Vec<bool> = new.iter().map(|&hash| by_one.insert(&Hashed(hash))).collect();
                assert_eq!(single, changed);
                let looped = bloom::inlined(&in_loop, |f| {
                    new.iter().map(|&hash| f.insert(&Hashed(hash))).collect::<Vec<_>>()
                });
                assert_eq!(looped, changed, "{isa}, {words} words");
                assert_eq!(batch.insert_batch(Hashed::slice(&new)), count);
                let mut flags = vec![false; len];
                assert_eq!(flagged.insert_batch_into(Hashed::slice(&new), &mut flags), count);
                assert_eq!(flags, changed);
                assert_eq!(own.exclusive().insert_batch(Hashed::slice(&new)), count);

                // Half of them known.
                let asked = hashes(5000 * len as u64 + len as u64 / 2, len);
                let halves = |hash: u64| [first.contains(&Hashed(hash)), other.contains(&Hashed(second(hash)))];
                let expected: Vec<bool> = asked.iter().map(|&hash| halves(hash) == [true; 2]).collect();
                in_one += asked.iter().map(|&hash| halves(hash)).filter(|[a, b]| a != b).count();
                let single: Vec<bool> = asked.iter().map(|&hash| by_one.contains(&Hashed(hash))).collect();
                assert_eq!(single, expected);
                let looped = bloom::inlined(&in_loop, |f| {
                    asked.iter().map(|&hash| f.contains(&Hashed(hash))).collect::<Vec<_>>()
                });
                assert_eq!(looped, expected, "{isa}, {words} words");
                let (mut flags, mut bitmap) = (vec![false; len], vec![u64::MAX; len.div_ceil(64)]);
                batch.contains_batch(Hashed::slice(&asked), &mut flags);
                assert_eq!(flags, expected, "{isa}, {words} words, {half} blocks, {len} hashes");
                batch.contains_batch(Hashed::slice(&asked), Bitmap(&mut bitmap));
                let bits = |i: usize| bitmap[i / 64] >> (i % 64) & 1 == 1;
                assert!((0..64 * bitmap.len()).all(|i| bits(i) == *expected.get(i).unwrap_or(&false)));
                if half < 1000 {
                    let bytes = batch.snapshot().to_vec();
                    let view = BloomView::from_bytes(&bytes).unwrap().0.with_isa(isa);
                    flags.fill(true);
                    view.contains_batch(Hashed::slice(&asked), &mut flags);
                    assert_eq!(flags, expected);
                    assert!(
                        asked
                            .iter()
                            .zip(expected)
                            .all(|(&hash, found)| view.contains(&Hashed(hash)) == found)
                    );
                }
            }
            let [first, other] = [&first, &other].map(|filter| filter.bits().words());
            let halves: Vec<_> = first.chain(other).collect();
            for filter in [&by_one, &in_loop, &batch, &flagged, &own] {
                assert!(filter.bits().words().eq(halves.iter().copied()));
            }
        }
        assert!(in_one > 0);
    }
}
