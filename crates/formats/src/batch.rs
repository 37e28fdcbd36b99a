//! The parts that batches of all filters share: lengths, bitmaps of answers, the keys of an
//! iterator.

use lanebloom::internal::unpack;

/// Keys that are hashed at a time.
pub(crate) const CHUNK: usize = 1024;

#[inline]
#[track_caller]
pub(crate) fn assert_same_length(keys: usize, out: usize) {
    assert!(
        keys == out,
        "{keys} keys and {out} places for their answers: the lengths must be the same"
    );
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

/// Calls `each` with the number of every bit that is set, in order.
#[inline(always)]
pub(crate) fn each_one(mut bitmap: u64, mut each: impl FnMut(usize)) {
    while bitmap != 0 {
        each(bitmap.trailing_zeros() as usize);
        bitmap &= bitmap - 1;
    }
}

/// Calls `each` with the position of every 0, in order, among the answers for `len` keys.
#[inline(always)]
pub(crate) fn for_each_absent(found: &[u64], len: usize, mut each: impl FnMut(usize)) {
    for (at, found) in (0..len).step_by(64).zip(found) {
        each_one(!found & u64::MAX >> (64 - (len - at).min(64)), |i| each(at + i));
    }
}

/// Writes the answers of windows, each with its start, its length and its bitmap, to their places
/// of `out`.
pub(crate) fn unpack_into(out: &mut [bool]) -> impl FnMut(usize, usize, u64) {
    let unpack = unpack();
    move |at, len, answers| unpack(&[answers], &mut out[at..][..len])
}

/// Calls `each` with every `N` of the hashes, and with the rest, until it fails.
pub(crate) fn gathered<const N: usize, H: Copy + Default, E>(
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
