//! Batches of keys, hashed a chunk at a time.

/// Hashes chunks of keys by `hash`, `MOST` at a time, and calls `each(start, hashes)` for every
/// chunk.
#[inline]
pub(crate) fn hashed<const MOST: usize, K, H: Copy + Default>(
    keys: &[K],
    hash: impl Fn(&[K], &mut [H]),
    each: impl FnMut(usize, &[H]),
) {
    // To clear the space for a whole chunk takes longer than to work on a few keys.
    match keys.len() {
        0..=4 => hashed_by::<4, _, _>(keys, hash, each),
        5..=16 => hashed_by::<16, _, _>(keys, hash, each),
        17..=64 => hashed_by::<64, _, _>(keys, hash, each),
        _ => hashed_by::<MOST, _, _>(keys, hash, each),
    }
}

// A call, so that only large batches have a large stack frame.
#[inline(never)]
fn hashed_by<const N: usize, K, H: Copy + Default>(
    keys: &[K],
    hash: impl Fn(&[K], &mut [H]),
    mut each: impl FnMut(usize, &[H]),
) {
    let mut hashes = [H::default(); N];
    for (start, keys) in (0..).step_by(N).zip(keys.chunks(N)) {
        let hashes = &mut hashes[..keys.len()];
        hash(keys, hashes);
        each(start, hashes);
    }
}
