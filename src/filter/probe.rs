//! Batches for filters that look at a few places of each key: a window of hashes to places, their lines asked for, and while these
//! come the window before is worked on. Hashes in, windows of places or answers out; `cuckoo.rs` and `dleft.rs` call it.
//!
//! It is scalar: a bucket is a word, all of whose slots are compared at once. The same compiled for AVX-512, whose compiler then makes
//! vectors of the places, took as long (4.8 and 13 ns for a lookup in L2, Emerald Rapids); out of the caches it is the lines that take time.

use super::concurrent::HASHED_STRETCH;
use crate::batch::is_cached;
use crate::bits::Purpose;
use crate::funnel::Funnel;
use crate::hash::KeyHasher;
use core::convert::Infallible;

/// Where a filter looks for a key.
pub(super) trait Probe {
    type Place: Copy + Default;

    fn place(&self, hash: u64) -> Self::Place;

    /// Asks for its lines.
    fn prefetch(&self, place: &Self::Place, purpose: Purpose);

    /// Whether the key may be there; with what its inserters did before visible, if so.
    fn holds(&self, place: &Self::Place) -> bool;

    /// Bytes of memory that places are in.
    fn bytes(&self) -> usize;
}

/// Keys of a window: as many as a word of a bitmap has bits.
pub(super) const WINDOW: usize = 64;

/// Calls `each` with where a window of hashes begins and its places, until it returns false.
#[inline(always)]
pub(super) fn windows<P: Probe>(
    probe: &P,
    hashes: &[u64],
    purpose: Purpose,
    mut each: impl FnMut(usize, &[P::Place]) -> bool,
) {
    let mut rings = [[P::Place::default(); WINDOW]; 2];
    // One loop for the places, one for the work: a branch mispredicted in the second throws no place away. For a filter in
    // the caches too.
    let ask = !is_cached(probe.bytes());
    let fill = |ring: &mut [P::Place; WINDOW], hashes: &[u64]| {
        for (place, hash) in ring.iter_mut().zip(hashes) {
            *place = probe.place(*hash);
            if ask {
                probe.prefetch(place, purpose);
            }
        }
    };
    let mut coming = hashes.chunks(WINDOW);
    if let Some(first) = coming.next() {
        fill(&mut rings[0], first);
    }
    for (turn, present) in hashes.chunks(WINDOW).enumerate() {
        let [even, odd] = &mut rings;
        let (now, next) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
        if let Some(hashes) = coming.next() {
            fill(next, hashes);
        }
        if !each(turn * WINDOW, &now[..present.len()]) {
            return;
        }
    }
}

/// Calls `each` with where a window begins, its length, and the bitmap of its answers.
#[inline(always)]
pub(super) fn contains<P: Probe>(probe: &P, hashes: &[u64], mut each: impl FnMut(usize, usize, u64)) {
    windows(probe, hashes, Purpose::Later, |at, places| {
        let mut found = 0;
        for place in places {
            found = found >> 1 | u64::from(probe.holds(place)) << 63;
        }
        each(at, places.len(), found >> (WINDOW - places.len()));
        true
    });
}

/// Calls `each` with the number of every one of the first `len` bits that is 0, in order.
#[inline(always)]
pub(super) fn each_absent(found: u64, len: usize, mut each: impl FnMut(usize)) {
    let mut absent = !found & u64::MAX >> (WINDOW - len);
    while absent != 0 {
        each(absent.trailing_zeros() as usize);
        absent &= absent - 1;
    }
}

/// Hashes keys; calls `each` with where a stretch of them begins and its hashes, until it fails.
pub(super) fn hashed<K: Funnel, E>(
    hasher: &impl KeyHasher,
    keys: &[K],
    mut each: impl FnMut(usize, &[u64]) -> Result<(), E>,
) -> Result<(), E> {
    // To clear the space for a whole stretch takes longer than to work on a few keys.
    let (mut few, mut many);
    let hashes: &mut [u64] = if keys.len() <= WINDOW {
        few = [0; WINDOW];
        &mut few
    } else {
        many = [0; HASHED_STRETCH];
        &mut many
    };
    let stretch = hashes.len();
    for (i, keys) in keys.chunks(stretch).enumerate() {
        let hashes = &mut hashes[..keys.len()];
        hasher.hash_batch(keys, hashes);
        each(i * stretch, hashes)?;
    }
    Ok(())
}

/// [`hashed`] for what does not fail.
pub(super) fn each_hashed<K: Funnel>(hasher: &impl KeyHasher, keys: &[K], mut each: impl FnMut(usize, &[u64])) {
    let Ok(()) = hashed(hasher, keys, |at, hashes| {
        each(at, hashes);
        Ok::<_, Infallible>(())
    });
}
