//! The scalar loop of a batch: `pipeline.rs` without vectors, for any filter. It finds the places of
//! a tile of keys, prefetches their lines, and meanwhile works on a tile before. A filter supplies
//! what a place is. All batches that no vectors work on call it, those of the other crates too.
//!
//! `tuning.rs` says how far ahead the lines are asked for, and into which cache.

use super::tuning::{Access, MOST_AHEAD, TILE};
use crate::words::bits::Hint;
use core::mem::MaybeUninit;
use core::ptr;

/// Places of a tile, written before they are read. (Clearing would take longer than a few lookups.)
type Ring<P> = [MaybeUninit<P>; TILE];

/// Calls two functions for all of `len` keys, in order:
///
/// 1. `place(target, i, hint)` answers the place of key `i`, and asks for its lines by the hint, if
///    that is worthwhile. A place may be `()`, where it is found again for less than it is kept.
/// 2. `work(target, start, places)` gets the tile that begins with key `start`, some tiles later.
///    The loop ends when it answers false.
///
/// Each has a loop of its own. So a mispredicted branch in the work throws no place away. (With one
/// more loop for the lines, lookups take up to 1.3 times as long: while the processor waits for
/// room for the next hint, it finds the next place.)
#[inline(always)]
pub fn tiles<T: ?Sized, P: Copy>(
    target: &mut T,
    access: Access,
    len: usize,
    mut place: impl FnMut(&mut T, usize, Option<Hint>) -> P,
    mut work: impl FnMut(&mut T, usize, &mut [P]) -> bool,
) {
    let tiles = len.div_ceil(access.tile);
    let ahead = access.ahead.min(tiles);
    let range = |tile: usize| tile * access.tile..len.min((tile + 1) * access.tile);
    let mut rings: [Ring<P>; MOST_AHEAD + 1] = [const { [const { MaybeUninit::uninit() }; TILE] }; MOST_AHEAD + 1];
    let mut newest = 0;
    let has_places = size_of::<P>() > 0 || access.hint.is_some();
    for turn in 0..tiles + ahead {
        if turn < tiles && has_places {
            for (slot, i) in rings[newest].iter_mut().zip(range(turn)) {
                slot.write(place(target, i, access.hint));
            }
        }
        // After the newest of `ahead + 1` rings comes the oldest one.
        newest = if newest == ahead { 0 } else { newest + 1 };
        if let Some(turn) = turn.checked_sub(ahead) {
            let range = range(turn);
            let places = &mut rings[newest][..range.len()];
            // SAFETY: written `ahead` turns before, if they have a size; since then the other rings
            // were. `MaybeUninit` has the layout of what is in it.
            let places = unsafe { &mut *(ptr::from_mut(places) as *mut [P]) };
            if !work(target, range.start, places) {
                return;
            }
        }
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
