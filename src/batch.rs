//! Takes many keys or hashes, cuts them into chunks, and passes on bitmaps of answers. The filters,
//! their engines and `bulk.rs` call it. It knows no filter.

use crate::funnel::Funnel;
use crate::hash::{KeyHasher, one_by_one};
use crate::kernel::hash::GROUP;
use crate::kernel::{self, Isa};
use core::ops::Range;

/// Keys that are hashed at a time: 8 KiB of hashes on the stack.
pub(crate) const HASHED: usize = 1024;

/// Hashes whose answers are collected in a bitmap of 512 bytes on the stack. A chunk prefetches no
/// lines of the next one, so chunks should be long.
pub(crate) const CHUNK: usize = 4096;

/// Hashes in order: a slice of them, or keys to be hashed.
pub(crate) trait Source {
    fn len(&self) -> usize;

    /// Calls `each` with the hashes of `range`, in order, some at a time.
    fn each(&self, range: Range<usize>, each: impl FnMut(&[u64]));
}

impl Source for &[u64] {
    fn len(&self) -> usize {
        <[u64]>::len(self)
    }

    fn each(&self, range: Range<usize>, mut each: impl FnMut(&[u64])) {
        each(&self[range]);
    }
}

/// A part of another source.
#[cfg(feature = "rayon")]
pub(crate) struct Part<'a, T>(pub(crate) &'a T, pub(crate) Range<usize>);

#[cfg(feature = "rayon")]
impl<T: Source> Source for Part<'_, T> {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn each(&self, range: Range<usize>, each: impl FnMut(&[u64])) {
        self.0.each(self.1.start + range.start..self.1.start + range.end, each);
    }
}

/// Keys, which [`Source::each`] hashes.
pub(crate) struct Keys<'a, K, S> {
    pub(crate) hasher: &'a S,
    pub(crate) isa: Isa,
    pub(crate) keys: &'a [K],
}

impl<K: Funnel, S: KeyHasher> Source for Keys<'_, K, S> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn each(&self, range: Range<usize>, mut each: impl FnMut(&[u64])) {
        // To clear the space for a whole chunk takes longer than to work on a few keys.
        match range.len() {
            0 => {}
            1 => each(&[self.hasher.hash_key(&self.keys[range.start])]),
            // Too few for the vector kernels: without calls.
            len @ 2..GROUP => {
                let mut hashes = [0; GROUP];
                one_by_one(self.hasher, &self.keys[range], &mut hashes);
                each(&hashes[..len]);
            }
            len @ GROUP..=16 => {
                let mut hashes = [0; 16];
                let hashes = &mut hashes[..len];
                self.hasher.hash_batch_by(self.isa, &self.keys[range], hashes);
                each(hashes);
            }
            17..=64 => self.each_chunk::<64>(range, each),
            _ => self.each_chunk::<HASHED>(range, each),
        }
    }
}

impl<K: Funnel, S: KeyHasher> Keys<'_, K, S> {
    // A call, so that only large batches have a large stack frame.
    #[inline(never)]
    fn each_chunk<const N: usize>(&self, range: Range<usize>, mut each: impl FnMut(&[u64])) {
        let mut hashes = Aligned([0; N]);
        for keys in self.keys[range].chunks(N) {
            let hashes = &mut hashes.0[..keys.len()];
            self.hasher.hash_batch_by(self.isa, keys, hashes);
            each(hashes);
        }
    }
}

/// At a line of the cache: vectors that lie across two take longer.
#[repr(align(64))]
struct Aligned<T>(T);

/// Called with the start of a chunk of hashes and the bitmap of its answers. A later call for the
/// same hashes replaces the answers.
pub(crate) type Answer<'a> = Option<&'a mut dyn FnMut(usize, &[u64])>;

/// Calls `work(hashes, bitmap)` for every chunk, then `each(start, bitmap)`. Returns the number of
/// bits set.
pub(crate) fn answers(
    source: &impl Source,
    mut work: impl FnMut(&[u64], &mut [u64]),
    mut each: impl FnMut(usize, &[u64]),
) -> usize {
    let (mut at, mut set) = (0, 0);
    source.each(0..source.len(), |hashes| {
        set += answers_from(at, hashes, &mut work, &mut each);
        at += hashes.len();
    });
    set
}

/// [`answers`] for a slice whose first hash is number `start`.
pub(crate) fn answers_from(
    start: usize,
    hashes: &[u64],
    mut work: impl FnMut(&[u64], &mut [u64]),
    mut each: impl FnMut(usize, &[u64]),
) -> usize {
    let mut chunk = |at, hashes: &[u64], bitmap: &mut [u64]| {
        work(hashes, bitmap);
        each(at, bitmap);
        ones(bitmap)
    };
    // To clear the space for a whole chunk takes longer than to work on a few keys.
    if hashes.len() <= 64 {
        return chunk(start, hashes, &mut [0][..hashes.len().min(1)]);
    }
    let mut bitmap = [0; CHUNK / 64];
    let chunks = (start..).step_by(CHUNK).zip(hashes.chunks(CHUNK));
    chunks
        .map(|(at, hashes)| chunk(at, hashes, &mut bitmap[..hashes.len().div_ceil(64)]))
        .sum()
}

/// The number of bits set.
pub(crate) fn ones(bitmap: &[u64]) -> usize {
    bitmap.iter().map(|word| word.count_ones() as usize).sum()
}

/// Calls `each` with the position of every 0, in order, among the answers for `len` hashes.
#[inline(always)]
pub(crate) fn for_each_absent(found: &[u64], len: usize, mut each: impl FnMut(usize)) {
    for (at, found) in (0..len).step_by(64).zip(found) {
        let mut absent = !found & u64::MAX >> (64 - (len - at).min(64));
        while absent != 0 {
            each(at + absent.trailing_zeros() as usize);
            absent &= absent - 1;
        }
    }
}

/// `answer` as a function, which does nothing for `None`.
pub(crate) fn teller<'a>(answer: &'a mut Answer<'_>) -> impl FnMut(usize, &[u64]) + 'a {
    move |at, bitmap| {
        if let Some(answer) = answer {
            answer(at, bitmap);
        }
    }
}

/// Writes the bits of bitmaps to their places of `out`.
pub(crate) fn unpack_into(isa: Isa, out: &mut [bool]) -> impl FnMut(usize, &[u64]) {
    let unpack = kernel::unpack(isa);
    move |at, bitmap| {
        let end = out.len().min(at + 64 * bitmap.len());
        unpack(bitmap, &mut out[at..end]);
    }
}

/// Calls `each` with the position of every 0 in bitmaps, among `len` answers.
pub(crate) fn absent(len: usize, mut each: impl FnMut(usize)) -> impl FnMut(usize, &[u64]) {
    move |at, bitmap| {
        for_each_absent(bitmap, (64 * bitmap.len()).min(len - at), |i| each(at + i));
    }
}

/// Calls `each` with every `N` of the hashes, and with the rest, until it fails.
pub(crate) fn try_gathered<const N: usize, E>(
    hashes: impl IntoIterator<Item = u64>,
    mut each: impl FnMut(&[u64]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chunk = [0; N];
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

#[inline]
#[track_caller]
pub(crate) fn assert_bitmap_length(keys: usize, words: usize) {
    assert!(
        keys.div_ceil(64) == words,
        "{keys} keys and {words} words for a bit each: it must be {} words",
        keys.div_ceil(64)
    );
}
