//! Batches for filters with a few places for each key. It turns a window of hashes into places,
//! prefetches their lines, and meanwhile works on the window before. Takes hashes, and gives
//! windows of places or answers. `slots.rs` calls it.
//!
//! It is scalar: a bucket is a word, and one operation compares all of its slots. Compiled for
//! AVX-512, where the compiler makes vectors of the places, it took as long (4.8 and 13 ns for a
//! lookup in L2, Emerald Rapids). Outside the caches the lines take the time.

use crate::batch::{self, Answer, Source};
use crate::error::{InsertError, InsertErrorKind};
use crate::words::bits::Hint;
use crate::words::bits::is_cached;

/// A key's places in a filter.
pub(crate) trait Probe {
    type Place: Copy + Default;

    fn place(&self, hash: u64) -> Self::Place;

    /// Prefetches the lines of the places.
    fn prefetch(&self, place: &Self::Place, hint: Hint);

    /// Whether the key may be there. `true` ends in an `Acquire`.
    fn holds(&self, place: &Self::Place) -> bool;

    /// Bytes of the filter's memory.
    fn bytes(&self) -> usize;
}

/// Keys of a window: as many as a word of a bitmap has bits.
pub(super) const WINDOW: usize = 64;

/// Calls `each(start, places)` for every window of hashes, until it returns false.
#[inline(always)]
pub(super) fn windows<P: Probe>(
    probe: &P,
    hashes: &[u64],
    hint: Hint,
    mut each: impl FnMut(usize, &[P::Place]) -> bool,
) {
    let mut rings = [[P::Place::default(); WINDOW]; 2];
    // One loop for the places and one for the work, so that a mispredicted branch in the second
    // throws no place away. This holds for a filter in the caches too.
    let ask = !is_cached(probe.bytes());
    let fill = |ring: &mut [P::Place; WINDOW], hashes: &[u64]| {
        for (place, hash) in ring.iter_mut().zip(hashes) {
            *place = probe.place(*hash);
            if ask {
                probe.prefetch(place, hint);
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

/// Whether each hash may be there, as a bitmap.
pub(super) fn contains_bitmap<P: Probe>(probe: &P, hashes: &[u64], found: &mut [u64]) {
    windows(probe, hashes, Hint::L2, |at, places| {
        let mut answers = 0;
        for place in places {
            answers = answers >> 1 | u64::from(probe.holds(place)) << 63;
        }
        found[at / 64] = answers >> (WINDOW - places.len());
        true
    });
}

/// Inserts in order, up to the first hash that `insert` refuses.
pub(super) fn insert_all<P: Probe>(
    probe: &P,
    source: &impl Source,
    mut insert: impl FnMut(&P::Place) -> Result<(), InsertErrorKind>,
) -> Result<(), InsertError> {
    let (mut inserted, mut result) = (0, Ok(()));
    source.each(0..source.len(), |hashes| {
        if result.is_err() {
            return;
        }
        windows(probe, hashes, Hint::L1Write, |_, places| {
            for place in places {
                if let Err(kind) = insert(place) {
                    result = Err(InsertError { kind, inserted });
                    return false;
                }
                inserted += 1;
            }
            true
        });
    });
    result
}

/// Removes in order; returns how many were there.
pub(super) fn remove_all<P: Probe>(
    probe: &P,
    source: &impl Source,
    mut answer: Answer<'_>,
    mut remove: impl FnMut(&P::Place) -> bool,
) -> usize {
    let work = |hashes: &[u64], removed: &mut [u64]| {
        windows(probe, hashes, Hint::L1Write, |at, places| {
            let mut answers = 0;
            for place in places {
                answers = answers >> 1 | u64::from(remove(place)) << 63;
            }
            removed[at / 64] = answers >> (WINDOW - places.len());
            true
        });
    };
    batch::answers(source, work, batch::teller(&mut answer))
}
