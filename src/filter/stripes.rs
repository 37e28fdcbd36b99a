//! Small words beside a filter that can delete. Each is a lock among some of its writers. It also
//! counts the moves of what it stands for, so that a lookup can tell whether a move passed it by.
//! `cuckoo.rs` and `dleft.rs` choose them by tag or remainder.
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | a writer holds the stripe |
//! | 1 to 63 | moves, counted when the copy is there and the original not yet gone |
//!
//! Lookups only read them and never wait for bit 0. A writer that holds a stripe makes a few atomic
//! operations, and none of them waits. But if it is taken off its core meanwhile, it stops the
//! other writers of its stripe, one in up to [`MOST`].
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `hold`: set bit 0 | compare-exchange `Acquire` | the `Release` of the holder before: what it did to the filter is seen |
//! | `Held::count_move` | store `Release` | `moves` of a lookup that comes later: it sees the copy, which was made before |
//! | `Held::drop` | store `Release` | the next `hold` |
//! | `moves` before a lookup | load `Acquire` | `count_move`, as above |
//! | `moves` after it | load `Relaxed` | the lookup's loads are `Acquire` and pair with the `Release` that cleared the original, before which the move was counted; so this load, being later, sees the count |

use crate::error::{BuildError, BuildErrorKind};
use crate::memory::Words;
use crate::sync::{AtomicU64, Ordering, wait};

/// Stripes at most: 2 KiB, which stay in L1.
const MOST: usize = 256;
/// Words of a filter for a stripe of its own, so that stripes take at most this part of its memory.
const WORDS_EACH: usize = 256;

const HELD: u64 = 1;

#[derive(Debug)]
pub(crate) struct Stripes {
    words: Words<AtomicU64>,
}

/// A stripe that this thread holds, until it is dropped.
pub(super) struct Held<'a> {
    stripe: &'a AtomicU64,
    /// What it is when nobody holds it.
    free: u64,
}

impl Stripes {
    /// Those for a filter of so many words.
    pub(super) fn new(filter_words: usize) -> Result<Self, BuildError> {
        let len = Self::number(filter_words);
        let words = Words::new(len).ok_or(BuildError(BuildErrorKind::OutOfMemory { bytes: 8 * len }))?;
        Ok(Self { words })
    }

    /// How many there are for a filter of so many words: a power of two.
    pub(crate) const fn number(filter_words: usize) -> usize {
        let wanted = filter_words / WORDS_EACH;
        if wanted >= MOST {
            MOST
        } else if wanted == 0 {
            1
        } else {
            1 << wanted.ilog2()
        }
    }

    #[inline(always)]
    fn of(&self, tag: u64) -> &AtomicU64 {
        let words = &*self.words;
        &words[tag as usize & (words.len() - 1)]
    }

    /// How often something with this tag was moved. To be read before a lookup.
    #[inline(always)]
    pub(super) fn moves(&self, tag: u64) -> u64 {
        self.of(tag).load(Ordering::Acquire) >> 1
    }

    /// Whether something with this tag was moved since `moves` was read; to be asked after loads
    /// that are `Acquire`.
    #[inline(always)]
    pub(super) fn moved_since(&self, tag: u64, moves: u64) -> bool {
        self.of(tag).load(Ordering::Relaxed) >> 1 != moves
    }

    /// Waits until no other thread holds the tag's stripe, and holds it.
    #[inline]
    pub(super) fn hold(&self, tag: u64) -> Held<'_> {
        let stripe = self.of(tag);
        Held {
            stripe,
            free: acquire(stripe),
        }
    }

    /// Holds all of them, one after another: nothing moves and nothing is taken out until the
    /// result is dropped. (A thread that holds one by [`hold`](Self::hold) requests no other, and
    /// all threads take them in this order, so no thread waits for ever.)
    pub(super) fn hold_all(&self) -> AllHeld<'_> {
        for stripe in self.words.iter() {
            acquire(stripe);
        }
        AllHeld(self)
    }
}

/// Waits for bit 0 and sets it; what the stripe was.
#[inline]
fn acquire(stripe: &AtomicU64) -> u64 {
    let mut turn = 0;
    loop {
        let free = stripe.load(Ordering::Relaxed) & !HELD;
        // Only a free one is changed; `Relaxed` where it was not, since nothing was learnt.
        if stripe
            .compare_exchange_weak(free, free | HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return free;
        }
        turn += 1;
        wait(turn);
    }
}

impl Held<'_> {
    /// Counts a move: after the copy, before the original goes.
    #[inline(always)]
    pub(super) fn count_move(&mut self) {
        // Wraps after 2^63 moves, which no lookup lasts.
        self.free = self.free.wrapping_add(2);
        self.stripe.store(self.free | HELD, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.stripe.store(self.free, Ordering::Release);
    }
}

/// All stripes, which this thread holds until it is dropped.
pub(super) struct AllHeld<'a>(&'a Stripes);

impl Drop for AllHeld<'_> {
    fn drop(&mut self) {
        for stripe in self.0.words.iter() {
            // Nobody else changes what this thread holds.
            stripe.store(stripe.load(Ordering::Relaxed) & !HELD, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn stripes_take_a_small_part_of_the_memory() {
        for (words, number) in [
            (0, 1),
            (1, 1),
            (511, 1),
            (512, 2),
            (1000, 2),
            (65_535, 128),
            (65_536, 256),
            (1 << 40, 256),
        ] {
            assert_eq!(Stripes::number(words), number, "{words}");
        }
    }

    #[test]
    fn moves_are_seen_of_the_own_stripe_alone() {
        let stripes = Stripes::new(1024).unwrap();
        let before = [0, 1, 4].map(|tag| stripes.moves(tag));
        stripes.hold(4).count_move();
        // Tag 0 shares the stripe of tag 4.
        let moved = [0, 1, 4]
            .into_iter()
            .zip(before)
            .map(|(tag, before)| stripes.moved_since(tag, before));
        assert_eq!(moved.collect::<alloc::vec::Vec<_>>(), [true, false, true]);
        let before = stripes.moves(4);
        drop(stripes.hold(4));
        drop(stripes.hold_all());
        assert!(!stripes.moved_since(4, before));
        // And all are free again.
        assert!(
            stripes
                .words
                .iter()
                .all(|stripe| stripe.load(Ordering::Relaxed) & HELD == 0)
        );
    }
}
