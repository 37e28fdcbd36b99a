//! Takes many keys or hashes and yields them in chunks, as hashes, each with space for its answers.
//! The filters, their engines and `sorted_insert.rs` call it. It knows no filter.

use crate::funnel::Funnel;
use crate::hash::{KeyHasher, one_by_one};
use crate::kernel::Isa;
use crate::kernel::plan::{AccessPlan, FEW, Plan};
use crate::words::scratch::Scratch;
use core::ops::Range;
use core::slice;

/// Keys that are hashed at a time: 8 KiB of hashes on the stack.
pub(crate) const HASHED: usize = 1024;

/// The most hashes of a chunk: their answers are a bitmap of 512 bytes on the stack. A chunk
/// prefetches no lines of the next one, so chunks should be long.
pub(crate) const CHUNK: usize = 4096;

/// Space for the hashes of a few keys.
pub(crate) type Few = Scratch<FEW>;

/// Hashes in order: a slice of them, or keys to be hashed.
#[expect(clippy::len_without_is_empty, reason = "no caller asks")]
pub trait Source {
    /// The number of hashes.
    fn len(&self) -> usize;

    /// The hashes of `range`, in order, at most `most` at a time.
    fn chunks_of(&self, range: Range<usize>, most: usize) -> impl Chunks;

    /// Calls `each(start, hashes)` for all hashes, in order, in chunks of any length.
    #[inline(always)]
    fn for_each_chunk(&self, mut each: impl FnMut(usize, &[u64])) {
        let (mut start, mut chunks) = (0, self.chunks_of(0..self.len(), usize::MAX));
        while let Some(hashes) = chunks.next() {
            each(start, hashes);
            start += hashes.len();
        }
    }

    /// All hashes, if [their plan](Plan::is_few) is one for a few. Keys are hashed into `space`.
    fn few<'a>(&'a self, space: &'a mut Few) -> &'a [u64];
}

/// An iterator that lends: a chunk lives until the next one is taken.
pub trait Chunks {
    /// The next hashes.
    fn next(&mut self) -> Option<&[u64]>;
}

impl Source for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[u64]>::len(self)
    }

    #[inline(always)]
    fn chunks_of(&self, range: Range<usize>, most: usize) -> impl Chunks {
        self[range].chunks(most)
    }

    #[inline(always)]
    fn few<'a>(&'a self, _: &'a mut Few) -> &'a [u64] {
        self
    }
}

impl Chunks for slice::Chunks<'_, u64> {
    #[inline(always)]
    fn next(&mut self) -> Option<&[u64]> {
        Iterator::next(self)
    }
}

/// All hashes of the source, at most [`CHUNK`] at a time.
#[inline(always)]
pub(crate) fn all(source: &impl Source) -> impl Chunks {
    source.chunks_of(0..source.len(), CHUNK)
}

/// A part of another source.
#[cfg(feature = "rayon")]
pub(crate) struct SourceRange<'a, T>(pub(crate) &'a T, pub(crate) Range<usize>);

#[cfg(feature = "rayon")]
impl<T: Source> Source for SourceRange<'_, T> {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn chunks_of(&self, range: Range<usize>, most: usize) -> impl Chunks {
        self.0
            .chunks_of(self.1.start + range.start..self.1.start + range.end, most)
    }

    fn few<'a>(&'a self, space: &'a mut Few) -> &'a [u64] {
        let mut len = 0;
        let mut chunks = self.chunks_of(0..self.len(), CHUNK);
        while let Some(hashes) = chunks.next() {
            space.first(self.len())[len..][..hashes.len()].copy_from_slice(hashes);
            len += hashes.len();
        }
        space.first(len)
    }
}

/// Keys, hashed as they are taken.
pub(crate) struct HashedKeys<'a, K, S> {
    pub(crate) hasher: &'a S,
    pub(crate) isa: Isa,
    pub(crate) keys: &'a [K],
}

impl<K: Funnel, S: KeyHasher> Source for HashedKeys<'_, K, S> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    fn chunks_of(&self, range: Range<usize>, most: usize) -> impl Chunks {
        Hashed {
            hasher: self.hasher,
            isa: self.isa,
            left: self.keys[range].chunks(HASHED.min(most)),
            hashes: Scratch::default(),
        }
    }

    #[inline(always)]
    fn few<'a>(&'a self, space: &'a mut Few) -> &'a [u64] {
        if let [key] = self.keys {
            let hashes = space.first(1);
            hashes[0] = self.hasher.hash_key(key);
            return hashes;
        }
        let hashes = space.first(self.keys.len());
        match Plan::of_keys(hashes.len()) {
            Plan::Single | Plan::Few => one_by_one(self.hasher, self.keys, hashes),
            _ => self.hasher.hash_batch_by(self.isa, self.keys, hashes),
        }
        hashes
    }
}

/// [`HashedKeys::chunks_of`].
struct Hashed<'a, K, S> {
    hasher: &'a S,
    isa: Isa,
    left: slice::Chunks<'a, K>,
    hashes: Scratch<HASHED>,
}

impl<K: Funnel, S: KeyHasher> Chunks for Hashed<'_, K, S> {
    #[inline]
    fn next(&mut self) -> Option<&[u64]> {
        let keys = self.left.next()?;
        let hashes = self.hashes.first(keys.len());
        self.hasher.hash_batch_by(self.isa, keys, hashes);
        Some(hashes)
    }
}

/// Chunks, none above [`CHUNK`], each with space for its answers.
pub(crate) struct Answered<C> {
    chunks: C,
    start: usize,
    bitmap: Scratch<{ CHUNK / 64 }>,
}

#[inline(always)]
pub(crate) fn answered<C: Chunks>(chunks: C) -> Answered<C> {
    Answered {
        chunks,
        start: 0,
        bitmap: Scratch::default(),
    }
}

impl<C: Chunks> Answered<C> {
    /// The number of a chunk's first hash, the hashes, and a bitmap of any content for their
    /// answers.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(usize, &[u64], &mut [u64])> {
        let hashes = self.chunks.next()?;
        let start = self.start;
        self.start += hashes.len();
        Some((start, hashes, self.bitmap.first(hashes.len().div_ceil(64))))
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

/// The number of bits set.
pub(crate) fn ones(bitmap: &[u64]) -> usize {
    bitmap.iter().map(|word| word.count_ones() as usize).sum()
}

/// Calls `each` with the position of every 0, in order, among the answers for `len` hashes.
#[inline(always)]
pub(crate) fn for_each_absent(found: &[u64], len: usize, mut each: impl FnMut(usize)) {
    for (at, found) in (0..len).step_by(64).zip(found) {
        AccessPlan::each_one(!found & u64::MAX >> (64 - (len - at).min(64)), |i| each(at + i));
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
