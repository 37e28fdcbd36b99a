//! The scalar loop of a batch: `pipeline.rs` without vectors, for any filter. It finds the places of
//! a tile of keys, prefetches their lines, and meanwhile works on a tile before. A filter supplies
//! what a place is. All batches that no vectors work on call it, those of the other crates too.
//!
//! `tuning.rs` says how far ahead the lines are asked for, and into which cache.

use super::tuning::{Access, MOST_AHEAD, TILE};
use crate::words::bits::Hint;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

/// Places of a tile, written before they are read. (Clearing would take longer than a few lookups.)
type Ring<P> = [MaybeUninit<P>; TILE];

/// Calls three functions for all of `len` keys, in order:
///
/// 1. `place(target, i)` answers the place of key `i`. It may be `()`, where a place is found again
///    for less than it is kept.
/// 2. `prefetch(target, i, place, hint)` asks for the lines of the place, if that is worthwhile.
/// 3. `work(target, start, places)` gets the tile that begins with key `start`, some tiles later.
///    The loop ends when it answers false.
///
/// Each has a loop of its own. So a mispredicted branch in the work throws no place away, and keys
/// outside the caches do not wait behind lines.
#[inline(always)]
pub fn tiles<T: ?Sized, P: Copy>(
    target: &mut T,
    access: Access,
    len: usize,
    mut place: impl FnMut(&mut T, usize) -> P,
    mut prefetch: impl FnMut(&mut T, usize, &mut P, Hint),
    mut work: impl FnMut(&mut T, usize, &mut [P]) -> bool,
) {
    let tiles = len.div_ceil(access.tile);
    let ahead = access.ahead.min(tiles);
    let range = |tile: usize| tile * access.tile..len.min((tile + 1) * access.tile);
    let mut rings: [Ring<P>; MOST_AHEAD + 1] = [const { [const { MaybeUninit::uninit() }; TILE] }; MOST_AHEAD + 1];
    for turn in 0..tiles + ahead {
        if turn < tiles {
            let ring = &mut rings[turn % (ahead + 1)];
            for (slot, i) in ring.iter_mut().zip(range(turn)) {
                slot.write(place(target, i));
            }
            // SAFETY: written above.
            let places = unsafe { written(&mut ring[..range(turn).len()]) };
            // A loop for each hint, so that none asks again for every line which one it is.
            match access.hint {
                None => {}
                Some(Hint::L2) => ask(target, range(turn), places, Hint::L2, &mut prefetch),
                Some(Hint::L1) => ask(target, range(turn), places, Hint::L1, &mut prefetch),
                Some(Hint::L1Write) => ask(target, range(turn), places, Hint::L1Write, &mut prefetch),
            }
        }
        if let Some(turn) = turn.checked_sub(ahead) {
            let range = range(turn);
            let places = &mut rings[turn % (ahead + 1)][..range.len()];
            // SAFETY: written `ahead` turns before; since then the other rings were.
            let places = unsafe { written(places) };
            if !work(target, range.start, places) {
                return;
            }
        }
    }
}

/// # Safety
///
/// All places were written.
#[inline(always)]
unsafe fn written<P>(places: &mut [MaybeUninit<P>]) -> &mut [P] {
    // SAFETY: as promised. `MaybeUninit` has the layout of what is in it.
    unsafe { &mut *(ptr::from_mut(places) as *mut [P]) }
}

#[inline(always)]
fn ask<T: ?Sized, P>(
    target: &mut T,
    keys: Range<usize>,
    places: &mut [P],
    hint: Hint,
    prefetch: &mut impl FnMut(&mut T, usize, &mut P, Hint),
) {
    for (place, i) in places.iter_mut().zip(keys) {
        prefetch(target, i, place, hint);
    }
}

/// A word of a bitmap: the answers of `each` for a tile of `len` keys.
#[inline(always)]
pub fn answers(len: usize, mut each: impl FnMut(usize) -> bool) -> u64 {
    let mut answers = 0;
    for i in 0..len {
        answers = answers >> 1 | u64::from(each(i)) << 63;
    }
    if len == 0 { 0 } else { answers >> (TILE - len) }
}
