//! Takes many keys or hashes and yields them in chunks, as hashes, each with space for its answers.
//! The filters, their engines and `sorted_insert.rs` call it. It knows no filter.

use crate::kernel::Isa;
use crate::kernel::plan::Prefetching;
use crate::words::scratch::Scratch;
use core::convert::Infallible;
use core::ops::Range;

/// Keys that are hashed at a time: 8 KiB of hashes on the stack.
pub(crate) const HASHED: usize = 1024;

/// The most hashes of a chunk: their answers are a bitmap of 512 bytes on the stack. A chunk
/// prefetches no lines of the next one, so chunks should be long.
pub(crate) const CHUNK: usize = 4096;

/// Hashes in order: a slice of them, or keys to be hashed.
#[expect(clippy::len_without_is_empty, reason = "no caller asks")]
pub trait Source {
    /// The number of hashes.
    fn len(&self) -> usize;

    /// The first hashes of `range`, at least one unless it is empty: those that lie in memory side
    /// by side. Keys are hashed into `space`, as many as it has room for. (Of a slice or of keys
    /// these are all of a range of at most `N`; callers rely on it.)
    fn hashes<'a, const N: usize>(&'a self, range: Range<usize>, space: &'a mut Scratch<N>) -> &'a [u64];

    /// Calls `each(start, hashes)` for all hashes, in order, at most `most` at a time.
    #[inline(always)]
    fn for_each_chunk(&self, most: usize, mut each: impl FnMut(usize, &[u64])) {
        let Ok(()) = self.try_for_each_chunk::<Infallible>(most, |start, hashes| {
            each(start, hashes);
            Ok(())
        });
    }

    /// [`for_each_chunk`](Self::for_each_chunk) until `each` fails. What is left is not hashed.
    #[inline(always)]
    fn try_for_each_chunk<E>(
        &self,
        most: usize,
        mut each: impl FnMut(usize, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut start, mut space) = (0, Scratch::<HASHED>::default());
        while start < self.len() {
            let hashes = self.hashes(start..self.len().min(start.saturating_add(most)), &mut space);
            each(start, hashes)?;
            start += hashes.len();
        }
        Ok(())
    }
}

impl Source for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[u64]>::len(self)
    }

    #[inline(always)]
    fn hashes<'a, const N: usize>(&'a self, range: Range<usize>, _: &'a mut Scratch<N>) -> &'a [u64] {
        &self[range]
    }
}

/// A part of another source.
pub(crate) struct SourceRange<'a, T>(pub(crate) &'a T, pub(crate) Range<usize>);

impl<T: Source> Source for SourceRange<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.1.len()
    }

    #[inline(always)]
    fn hashes<'a, const N: usize>(&'a self, range: Range<usize>, space: &'a mut Scratch<N>) -> &'a [u64] {
        let first = self.1.start;
        self.0.hashes(first + range.start..first + range.end, space)
    }
}

/// Called with the start of a chunk of hashes and the bitmap of its answers. A later call for the
/// same hashes replaces the answers.
pub type Answer<'a> = Option<&'a mut dyn FnMut(usize, &[u64])>;

/// Passes the bitmap of the hashes from number `start` on to `answer`, if there is one.
#[inline(always)]
pub(crate) fn tell(answer: &mut Answer<'_>, start: usize, bitmap: &[u64]) {
    if let Some(answer) = answer {
        answer(start, bitmap);
    }
}

/// Tells `false` for the hashes with these numbers. (The bitmap of the last ones may be longer.)
pub(crate) fn tell_unchanged(answer: &mut Answer<'_>, hashes: Range<usize>) {
    hashes.step_by(64).for_each(|at| tell(answer, at, &[0]));
}

/// Calls `each(start, hashes, bitmap)` for all hashes, in order, at most [`CHUNK`] at a time. The
/// bitmap is space for their answers, of any content.
#[inline(always)]
pub(crate) fn for_each_bitmap(source: &impl Source, mut each: impl FnMut(usize, &[u64], &mut [u64])) {
    let mut space = Scratch::<{ CHUNK / 64 }>::default();
    let Ok(()) = source.try_for_each_chunk::<Infallible>(CHUNK, |start, hashes| {
        each(start, hashes, space.first(hashes.len().div_ceil(64)));
        Ok(())
    });
}

/// Calls `work(hashes, bitmap)` as [`for_each_bitmap`] does, tells each bitmap, and returns the
/// number of ones in all of them.
#[inline(always)]
pub(crate) fn answered(
    source: &impl Source,
    answer: &mut Answer<'_>,
    mut work: impl FnMut(&[u64], &mut [u64]),
) -> usize {
    let mut count = 0;
    for_each_bitmap(source, |start, hashes, bitmap| {
        work(hashes, bitmap);
        tell(answer, start, bitmap);
        count += ones(bitmap);
    });
    count
}

/// The number of bits set.
pub(crate) fn ones(bitmap: &[u64]) -> usize {
    bitmap.iter().map(|word| word.count_ones() as usize).sum()
}

/// Calls `each` with the position of every 0, in order, among the answers for `len` hashes.
#[inline(always)]
pub(crate) fn for_each_absent(found: &[u64], len: usize, mut each: impl FnMut(usize)) {
    for (at, found) in (0..len).step_by(64).zip(found) {
        Prefetching::each_one(!found & u64::MAX >> (64 - (len - at).min(64)), |i| each(at + i));
    }
}

/// Writes the bits of bitmaps to their places of `out`.
pub(crate) fn unpack_into(isa: Isa, out: &mut [bool]) -> impl FnMut(usize, &[u64]) {
    let unpack = isa.unpack();
    move |at, bitmap| {
        let end = out.len().min(at + 64 * bitmap.len());
        unpack(bitmap, &mut out[at..end]);
    }
}

/// Copies bitmaps to their bits of `out`, which is 0 before. A chunk of some filters begins within
/// a word: the bits before it and after it stay.
pub(crate) fn copy_into(out: &mut [u64]) -> impl FnMut(usize, &[u64]) {
    move |at, bitmap| {
        let (out, shift) = (&mut out[at / 64..], at % 64);
        if shift == 0 {
            let len = out.len().min(bitmap.len());
            return out[..len].copy_from_slice(&bitmap[..len]);
        }
        for (i, bits) in bitmap.iter().enumerate() {
            if let Some(word) = out.get_mut(i) {
                *word = *word & !(u64::MAX << shift) | bits << shift;
            }
            if let Some(word) = out.get_mut(i + 1) {
                *word = *word & u64::MAX << shift | bits >> (64 - shift);
            }
        }
    }
}

/// Calls `each` with every `N` of the hashes, and with the rest, until it fails.
pub fn try_gathered<const N: usize, H: Copy + Default, E>(
    hashes: impl IntoIterator<Item = H>,
    mut each: impl FnMut(&[H]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chunk = [H::default(); N];
    let mut len = 0;
    for hash in hashes {
        chunk[len] = hash;
        len += 1;
        if len == N {
            each(&chunk)?;
            len = 0;
        }
    }
    each(&chunk[..len])
}

/// Panics unless there are as many words as bits for the keys.
#[inline]
#[track_caller]
pub fn assert_bitmap_length(keys: usize, words: usize) {
    assert!(
        keys.div_ceil(64) == words,
        "a bitmap of {keys} keys needs {} words, but `out` has {words}",
        keys.div_ceil(64)
    );
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    /// Flags and bits are told the same chunks, which begin anywhere and replace each other.
    #[test]
    fn bits_are_those_of_flags() {
        let chunks: [(usize, &[u64]); 5] = [
            (0, &[u64::MAX, 0x0f0f, u64::MAX, 7]),
            (100, &[0]),
            (37, &[0xff00_ff00_ff00_ff00, 1]),
            (130, &[u64::MAX]),
            (190, &[2]),
        ];
        let (mut flags, mut words) = ([false; 200], [0; 4]);
        for (at, bitmap) in chunks {
            unpack_into(Isa::best(), &mut flags)(at, bitmap);
            copy_into(&mut words)(at, bitmap);
            let bits = (0..200).map(|i| words[i / 64] >> (i % 64) & 1 == 1);
            assert!(bits.eq(flags), "after the chunk at {at}");
        }
    }
}
