//! The scalar loop of a batch: `pipeline.rs` without vectors, for any filter. It finds the places
//! of a tile of keys, prefetches their lines, and meanwhile works on a tile before. A filter
//! supplies what a place is. All batches that no vectors work on call it, those of the other crates
//! too.
//!
//! `plan.rs` says how far ahead the lines are prefetched, and into which cache.

use super::plan::{MOST_AHEAD, Prefetching, TILE};
use crate::words::bits::Hint;
use core::mem::MaybeUninit;
use core::ptr;

/// The words of a tile, written before they are read. (Clearing would take longer than a few
/// lookups.)
type TilePlaces<P> = [MaybeUninit<P>; TILE];

/// The loop.
impl Prefetching {
    /// Calls three functions for all keys, in order. (The keys themselves, and not their numbers: a
    /// check of bounds for each costs d-left lookups in L1 a twentieth.)
    ///
    /// 1. `place(target, i, key)` returns the place of key `i`. It may be `()`, where a place is
    ///    found again for less than it is kept, or kept by the caller.
    /// 2. `prefetch(target, i, key, place, hint)` prefetches its lines, if that is worthwhile.
    /// 3. `work(target, start, places)` gets the tile that begins with key `start`, some tiles
    ///    later. The loop ends when it returns false.
    ///
    /// The work has a loop of its own, so that a mispredicted branch in it discards no place.
    /// (With one more loop for the lines, lookups take longer: while the processor waits for room
    /// for the next hint, it finds the next place.)
    #[inline(always)]
    pub fn tiles<T: ?Sized, K, P: Copy>(
        self,
        target: &mut T,
        keys: &[K],
        mut place: impl FnMut(&mut T, usize, &K) -> P,
        mut prefetch: impl FnMut(&mut T, usize, &K, &P, Hint),
        mut work: impl FnMut(&mut T, usize, &mut [P]) -> bool,
    ) {
        let Self { ahead, hint, .. } = self;
        let (tile, len) = (self.tile(), keys.len());
        let mut ring: [TilePlaces<P>; MOST_AHEAD + 1] =
            [const { [const { MaybeUninit::uninit() }; TILE] }; MOST_AHEAD + 1];
        let next = |tile: usize| if tile == ahead { 0 } else { tile + 1 };
        // The keys that have places, and those that the work is done for; each with its tile of
        // the ring.
        let (mut placed, mut worked) = ((0, 0), (0, 0));
        while worked.0 < len {
            while placed.0 < len && placed.0 <= worked.0 + ahead * tile {
                let end = len.min(placed.0 + tile);
                for ((slot, key), i) in ring[placed.1].iter_mut().zip(&keys[placed.0..end]).zip(placed.0..) {
                    let place = slot.write(place(target, i, key));
                    // The hint is a constant of each call, so that no line asks which one it is.
                    match hint {
                        None => {}
                        Some(Hint::L2) => prefetch(target, i, key, place, Hint::L2),
                        Some(Hint::L1) => prefetch(target, i, key, place, Hint::L1),
                        Some(Hint::L1Write) => prefetch(target, i, key, place, Hint::L1Write),
                    }
                }
                placed = (end, next(placed.1));
            }
            let (start, end) = (worked.0, len.min(worked.0 + tile));
            let places = &mut ring[worked.1][..end - start];
            // SAFETY: written before, and `ahead` other tiles since then.
            // `MaybeUninit` has the layout of what is in it.
            let places = unsafe { &mut *(ptr::from_mut(places) as *mut [P]) };
            if !work(target, start, places) {
                return;
            }
            worked = (end, next(worked.1));
        }
    }

    /// A word of a bitmap: the answers for a tile of keys, bools or the bits 0 and 1.
    #[inline(always)]
    pub fn answers<A: Into<u64>>(each: impl ExactSizeIterator<Item = A>) -> u64 {
        let len = each.len();
        let mut answers = 0;
        // No `fold`, which the compiler may take for a function of its own.
        for answer in each {
            answers = answers >> 1 | answer.into() << 63;
        }
        if len == 0 { 0 } else { answers >> (TILE - len) }
    }

    /// Calls `each` with the number of every answer that is 1, in order.
    #[inline(always)]
    pub fn each_one(mut answers: u64, mut each: impl FnMut(usize)) {
        while answers != 0 {
            each(answers.trailing_zeros() as usize);
            answers &= answers - 1;
        }
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_place_is_asked_for_and_worked_on_in_order() {
        for (ahead, log_tile, len) in (0..=MOST_AHEAD)
            .flat_map(|ahead| [0, 2, 6].map(|log| [0, 1, 63, 64, 65, 300].map(|len| (ahead, log, len))))
            .flatten()
        {
            let hint = Some(Hint::L1);
            let prefetching = Prefetching {
                hint,
                ahead,
                groups_ahead: 0,
                log_tile,
            };
            let (mut asked, mut worked) = (Vec::new(), Vec::new());
            let keys: Vec<usize> = (1..=len).collect();
            let prefetch = |asked: &mut Vec<usize>, i, key: &usize, place: &usize, hint| {
                assert!(matches!(hint, Hint::L1) && *place == 7 * i && *key == i + 1);
                asked.push(i);
            };
            prefetching.tiles(
                &mut asked,
                &keys,
                |_, i, _| 7 * i,
                prefetch,
                |asked, start, places| {
                    assert_eq!(start, worked.len());
                    worked.extend_from_slice(places);
                    // The lines of the next tiles are under way, and no more.
                    assert_eq!(asked.len(), len.min(start + (ahead + 1) * prefetching.tile()));
                    true
                },
            );
            assert!(asked.into_iter().eq(0..len));
            assert!(worked.into_iter().eq((0..len).map(|i| 7 * i)));
        }
    }

    #[test]
    fn the_loop_ends_when_the_work_says_so() {
        let prefetching = Prefetching {
            hint: None,
            ahead: 1,
            groups_ahead: 0,
            log_tile: 6,
        };
        let mut calls = 0;
        prefetching.tiles(
            &mut calls,
            &[0; 300],
            |_, i, _| i,
            |_, _, _, _, _| (),
            |calls, _, _| {
                *calls += 1;
                *calls < 3
            },
        );
        assert_eq!(calls, 3);
    }
}
