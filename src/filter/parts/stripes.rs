//! Small words beside a filter that can delete. Each is a lock among some of its writers. It also
//! counts the moves of its fingerprints, so that a lookup can tell whether a fingerprint moved
//! meanwhile. Each filter's `table.rs` chooses a stripe by fingerprint or remainder.
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | a writer holds the stripe |
//! | 1 to 63 | moves, counted when the copy is there and the original not yet gone |
//!
//! Lookups only read stripes and never wait for bit 0. A writer that holds a stripe makes a few
//! atomic operations, and none of them waits. But if the system suspends that writer, the other
//! writers of its stripe wait: one in up to [`MOST`].
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `hold`: set bit 0 | compare-exchange `Acquire` | the `Release` of the holder before, whose changes to the filter are then visible |
//! | `StripeLock::count_move` | store `Release` | `moves` of a later lookup, which then sees the copy |
//! | `StripeLock::drop` | store `Release` | the next `hold` |
//! | `moves` before a lookup | load `Acquire` | `count_move`, as above |
//! | `moves` after it | load `Relaxed` | the lookup's loads are `Acquire` and pair with the `Release` that cleared the original. The move was counted before that, so this later load sees the count |

use crate::error::BuildError;
use crate::words::memory::Words;
use crate::words::sync::{AtomicU64, Ordering, wait};

/// The most stripes: 2 KiB, which stay in L1.
const MOST: usize = 256;
/// A filter has one stripe for this many words, so stripes take at most this part of its memory.
const WORDS_EACH: usize = 256;

const LOCKED: u64 = 1;

#[derive(Debug)]
pub(crate) struct Stripes {
    words: Words<AtomicU64>,
}

/// A stripe that this thread holds, until it is dropped.
pub(crate) struct StripeLock<'a> {
    stripe: &'a AtomicU64,
    /// Its value before the thread held it.
    free: u64,
}

impl Stripes {
    /// The stripes for a filter of this many words.
    pub(crate) fn new(filter_words: usize) -> Result<Self, BuildError> {
        let len = Self::number(filter_words);
        let words = Words::new(len).ok_or(BuildError::out_of_memory(8 * len))?;
        Ok(Self { words })
    }

    /// The number of stripes for a filter of this many words: a power of two.
    pub(crate) fn number(filter_words: usize) -> usize {
        1 << (filter_words / WORDS_EACH).clamp(1, MOST).ilog2()
    }

    #[inline(always)]
    fn of(&self, fingerprint: u64) -> &AtomicU64 {
        let words = &*self.words;
        &words[fingerprint as usize & (words.len() - 1)]
    }

    /// The number of moves in this fingerprint's stripe. A lookup reads it first.
    #[inline(always)]
    pub(crate) fn moves(&self, fingerprint: u64) -> u64 {
        self.of(fingerprint).load(Ordering::Acquire) >> 1
    }

    /// Whether a fingerprint of this stripe was moved since `moves` was read. Call it after loads
    /// that are `Acquire`.
    #[inline(always)]
    pub(crate) fn moved_since(&self, fingerprint: u64, moves: u64) -> bool {
        self.of(fingerprint).load(Ordering::Relaxed) >> 1 != moves
    }

    /// Waits until no other thread holds the fingerprint's stripe, and holds it.
    #[inline]
    pub(crate) fn hold(&self, fingerprint: u64) -> StripeLock<'_> {
        let stripe = self.of(fingerprint);
        StripeLock {
            stripe,
            free: acquire(stripe),
        }
    }

    /// Holds all stripes, one after another: no fingerprint is moved or removed until the result is
    /// dropped. (A thread that holds one by [`hold`](Self::hold) requests no other, and all threads
    /// take them in this order, so no thread waits for ever.)
    pub(crate) fn hold_all(&self) -> AllHeld<'_> {
        for stripe in self.words.iter() {
            acquire(stripe);
        }
        AllHeld(self)
    }
}

/// Waits until bit 0 is free and sets it; returns the stripe's old value.
#[inline]
fn acquire(stripe: &AtomicU64) -> u64 {
    let mut turn = 0;
    loop {
        let free = stripe.load(Ordering::Relaxed) & !LOCKED;
        // Changes a free stripe only. A failure is `Relaxed`, since nothing was read.
        if stripe
            .compare_exchange_weak(free, free | LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return free;
        }
        turn += 1;
        wait(turn);
    }
}

impl StripeLock<'_> {
    /// Counts a move: after the copy, and before the original is cleared.
    #[inline(always)]
    pub(crate) fn count_move(&mut self) {
        // Wraps after 2^63 moves. No lookup lasts that long.
        self.free = self.free.wrapping_add(2);
        self.stripe.store(self.free | LOCKED, Ordering::Release);
    }
}

impl Drop for StripeLock<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.stripe.store(self.free, Ordering::Release);
    }
}

/// All stripes, which this thread holds until it is dropped.
pub(crate) struct AllHeld<'a>(&'a Stripes);

impl Drop for AllHeld<'_> {
    fn drop(&mut self) {
        for stripe in self.0.words.iter() {
            // No other thread changes a held stripe.
            stripe.store(stripe.load(Ordering::Relaxed) & !LOCKED, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn stripes_take_a_small_part_of_the_memory() {
        let words = [0, 1, 511, 512, 1000, 65_535, 65_536, 1 << 40];
        assert_eq!(words.map(Stripes::number), [1, 1, 1, 2, 2, 128, 256, 256]);
    }

    #[test]
    fn moves_are_seen_of_the_own_stripe_alone() {
        let stripes = Stripes::new(1024).unwrap();
        let before = [0, 1, 4].map(|fingerprint| stripes.moves(fingerprint));
        stripes.hold(4).count_move();
        // Fingerprint 0 shares the stripe of fingerprint 4.
        let moved = [0, 1, 4]
            .into_iter()
            .zip(before)
            .map(|(fingerprint, before)| stripes.moved_since(fingerprint, before));
        assert_eq!(moved.collect::<alloc::vec::Vec<_>>(), [true, false, true]);
        let before = stripes.moves(4);
        drop(stripes.hold(4));
        drop(stripes.hold_all());
        assert!(!stripes.moved_since(4, before));
        // And all are free again.
        let is_free = |stripe: &AtomicU64| stripe.load(Ordering::Relaxed) & LOCKED == 0;
        assert!(stripes.words.iter().all(is_free));
    }
}
