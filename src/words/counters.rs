//! The lines of counters, 16 of 4 bits in a word. This file takes patterns from `pattern.rs`, not
//! hashes. `plain.rs` and the counting filter call it. It argues for all memory orderings of the
//! counting filter.
//!
//! A key's pattern is the same as in the filters of bits. Bit `p` of a word lies in counter `p /
//! 4`, so each bit of the pattern selects a counter. (Two bits of a key in one counter count once.)
//! [Reading](Load) a word sets all four bits of every counter above 0. Lookups read such a word
//! like a word of bits, so all lookup kernels work here unchanged.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `Load`, the first look of `decrement` | load `Relaxed` | only the answer depends on it; a caller that relies on what the inserters did before calls [`acquire`](bits::acquire) afterwards |
//! | `increment`, `decrement`, `restore` | compare-exchange `AcqRel`; its look `Relaxed`, as the exchange checks the value | `Release` makes what the caller did before visible to a thread that sees the counters and calls [`acquire`](bits::acquire), or changes them itself. Nothing else changes words, so every change continues the release sequences of the changes before it. `Acquire` pairs with them: an insert or remove sees what other threads did before the changes that it found |
//! | `add_from`: read the other filter's words | load `Acquire` | pairs with the `Release` of its changes; our own follows, so publication passes through the union |
//! | `add_from`: add them | compare-exchange `AcqRel` | as in `increment` |
//! | `words`, `try_clone` | load `Relaxed`, then [`acquire`](bits::acquire) | one barrier for the whole copy |
//! | `store_words`, `replace` | load, store `Relaxed` | borrowed mutably: no other thread has the lines, and the transfer to another thread orders them |
//!
//! `docs/proofs/SLOTS.md` argues that no key is ever missing if every remove has its own insert
//! before it, although such a remove is not one atomic step.

use crate::geometry::layout::LINE_WORDS;
use crate::words::bits::{Load, OwnLines};
use crate::words::memory::Word;
use crate::words::sync::{AtomicU64, Ordering};
use core::borrow::Borrow;

/// A counter that reaches this value keeps it, since its true value is lost.
pub(crate) const STUCK: u64 = 15;

/// The lowest bit of every counter.
const LOWEST: u64 = 0x1111_1111_1111_1111;
/// Every other counter, each with room for a carry.
const EVERY_OTHER: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// A word of 16 counters.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Counters(AtomicU64);

// SAFETY: `AtomicU64`, which is a word, in a transparent wrapper.
unsafe impl Word for Counters {}

impl Borrow<AtomicU64> for Counters {
    fn borrow(&self) -> &AtomicU64 {
        &self.0
    }
}

/// Loads all four bits of every counter above 0, for lookups.
// SAFETY: `AtomicU64` in a transparent wrapper, whose counters `load` fills.
unsafe impl Load for Counters {
    const COUNTERS: bool = true;

    #[inline(always)]
    fn load(&self) -> u64 {
        above_zero(self.value()) * STUCK
    }
}

impl Counters {
    #[inline(always)]
    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds 1 to the counters whose lowest bits are given, except stuck ones; returns the old word.
    /// It writes even if all of them are stuck, so that a thread that finds the key sees what this
    /// inserter did before.
    #[inline(always)]
    fn increment(&self, counters: u64) -> u64 {
        let incremented = |word| Some(word + (counters & !stuck(word)));
        match self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, incremented) {
            Ok(before) | Err(before) => before,
        }
    }

    /// Subtracts 1 from the counters, except stuck ones, if all of them are above 0; returns
    /// whether they were.
    #[inline(always)]
    fn decrement(&self, counters: u64) -> bool {
        let decremented = |word| lacks_none(word, counters).then(|| word - (counters & !stuck(word)));
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, decremented)
            .is_ok()
    }

    /// Adds the counters of another word, up to 15 each; returns whether that changed any.
    #[inline]
    fn add(&self, other: u64) -> bool {
        let summed = |word| Some(sum(word, other)).filter(|&sum| sum != word);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, summed).is_ok()
    }
}

/// The lowest bit of every counter that has any of these bits. For a word's value, these are the
/// counters above 0.
#[inline(always)]
fn above_zero(bits: u64) -> u64 {
    let pairs = bits | bits >> 1;
    (pairs | pairs >> 2) & LOWEST
}

/// The lowest bit of every counter that is stuck.
#[inline(always)]
fn stuck(word: u64) -> u64 {
    let pairs = word & word >> 1;
    pairs & pairs >> 2 & LOWEST
}

#[inline(always)]
fn lacks_none(word: u64, counters: u64) -> bool {
    counters & !above_zero(word) == 0
}

/// The smaller value of each pair of counters.
#[inline]
pub(crate) fn least(a: u64, b: u64) -> u64 {
    let half = |a: u64, b: u64| {
        let (a, b) = (a & EVERY_OTHER, b & EVERY_OTHER);
        // `b` borrows the bit above a counter of `a` where it is greater.
        let above = LOWEST & !EVERY_OTHER;
        let all_of_b = ((((a | above) - b) & above) >> 4) * STUCK;
        b & all_of_b | a & !all_of_b
    };
    half(a, b) | half(a >> 4, b >> 4) << 4
}

/// The counters' sums, up to 15 each.
#[inline]
pub(crate) fn sum(a: u64, b: u64) -> u64 {
    let half = |a: u64, b: u64| {
        let sums = (a & EVERY_OTHER) + (b & EVERY_OTHER);
        let beyond = sums >> 4 & (LOWEST & EVERY_OTHER);
        (sums | (beyond * STUCK)) & EVERY_OTHER
    };
    half(a, b) | half(a >> 4, b >> 4) << 4
}

/// The sum of a word's counters.
#[inline]
pub(crate) fn total(word: u64) -> u64 {
    let pairs = (word & EVERY_OTHER) + (word >> 4 & EVERY_OTHER);
    // At most 240, so that the sum of the bytes fits the highest one.
    pairs.wrapping_mul(0x0101_0101_0101_0101) >> 56
}

/// The number of a word's counters that are stuck.
#[inline]
pub(crate) fn stuck_in(word: u64) -> u64 {
    u64::from(stuck(word).count_ones())
}

/// Increments the counters that the masks of a sector's words choose; returns whether any of them
/// was 0.
#[inline(always)]
pub(crate) fn increment<const W: usize>(sector: &[Counters; W], masks: [u64; W]) -> bool {
    let mut new = 0;
    for (word, mask) in sector.iter().zip(masks) {
        let counters = above_zero(mask);
        if counters != 0 {
            new |= counters & !above_zero(word.increment(counters));
        }
    }
    new != 0
}

/// Decrements the counters that the masks of a sector's words choose, if all of them are above 0;
/// returns whether they were.
///
/// With one word, this is one atomic step. With several words, it looks at all of them first. If a
/// later word then turns out to have a counter of 0, it restores the words before. That happens if
/// another remove of the same key came first, or if the key was never inserted. Until it is
/// restored, such a word is too low by 1, and other keys may be missing: the counting filter's page
/// warns of it. (Decrementing the lowest counters first would make this rarer, not impossible. A
/// lock would make it impossible, but a stopped thread would stop others.)
#[inline(always)]
pub(crate) fn decrement<const W: usize>(sector: &[Counters; W], masks: [u64; W]) -> bool {
    let mut chosen = [(&sector[0], 0); W];
    for (i, chosen) in chosen.iter_mut().enumerate() {
        *chosen = (&sector[i], above_zero(masks[i]));
    }
    let mut looks = chosen
        .iter()
        .map(|(word, counters)| lacks_none(word.value(), *counters));
    if W > 1 && !looks.all(|held| held) {
        return false;
    }
    for (i, (word, counters)) in chosen.into_iter().enumerate() {
        if counters != 0 && !word.decrement(counters) {
            restore(&chosen[..i]);
            return false;
        }
    }
    true
}

/// Undoes [`Counters::decrement`]. (Both leave stuck counters as they are.)
#[cold]
fn restore(words: &[(&Counters, u64)]) {
    for (word, counters) in words {
        if *counters != 0 {
            word.increment(*counters);
        }
    }
}

/// The counters of a filter, in blocks of a cache line.
pub(crate) type CounterLines = OwnLines<Counters>;

impl CounterLines {
    /// The words, 16 counters in each. Beside changes, each word is some value that it had
    /// meanwhile; call [`acquire`](bits::acquire) after the last.
    #[inline]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.iter().map(Counters::value)
    }

    /// Every line as lookups see it, with the sum of its counters, from [`words`](Self::words).
    #[inline]
    pub(crate) fn lines(&self) -> impl Iterator<Item = ([u64; LINE_WORDS], u64)> {
        self.shared().all().iter().map(|line| {
            let values = line.each_ref().map(Counters::value);
            let seen = values.map(|value| above_zero(value) * STUCK);
            (seen, values.into_iter().map(total).sum())
        })
    }

    /// Adds the counters of `other`, up to 15 each; returns whether that changed any. Other threads
    /// may use both meanwhile.
    ///
    /// The two must have the same number of lines.
    #[inline]
    pub(crate) fn add_from(&self, other: &Self) -> bool {
        debug_assert_eq!(self.len(), other.len());
        let mut changed = false;
        for (word, from) in self.iter().zip(other.iter()) {
            let from = from.0.load(Ordering::Acquire);
            changed |= from != 0 && word.add(from);
        }
        changed
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    /// The counters of a word, one by one: the specification of the arithmetic on all of them.
    fn each(word: u64) -> [u64; 16] {
        core::array::from_fn(|i| word >> (4 * i) & 15)
    }

    fn word(counters: [u64; 16]) -> u64 {
        counters.iter().rev().fold(0, |word, counter| word << 4 | counter)
    }

    /// Words in which every value of a counter stands beside every other, and words without a
    /// pattern.
    fn words() -> impl Iterator<Item = u64> {
        let pairs = (0..256u64).map(|pair| pair * 0x0101_0101_0101_0101);
        let mixed = (1..2000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32));
        // Rich in zeros and in stuck counters.
        let extreme = (1..2000u64).map(|i| {
            let random = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word(core::array::from_fn(|j| {
                [0, 0, 1, 7, 14, 15, 15, 15][(random >> (3 * j) & 7) as usize]
            }))
        });
        pairs.chain(mixed).chain(extreme)
    }

    #[test]
    fn counters_above_zero_and_stuck_ones_are_found() {
        for word in words() {
            for (i, counter) in each(word).into_iter().enumerate() {
                assert_eq!(above_zero(word) >> (4 * i) & 15, u64::from(counter > 0));
                assert_eq!(stuck(word) >> (4 * i) & 15, u64::from(counter == 15));
            }
            assert_eq!(total(word), each(word).iter().sum::<u64>());
            let stuck = each(word).iter().filter(|&&counter| counter == 15).count();
            assert_eq!(stuck_in(word) as usize, stuck);
            let seen = each(Counters(AtomicU64::new(word)).load());
            assert_eq!(seen, each(word).map(|counter| if counter > 0 { 15 } else { 0 }));
        }
    }

    #[test]
    fn sums_stop_at_15() {
        for (a, b) in words().zip(words().skip(1)).chain(words().zip(words())) {
            let expected = core::array::from_fn(|i| (each(a)[i] + each(b)[i]).min(15));
            assert_eq!(each(sum(a, b)), expected, "{a:x} and {b:x}");
            let into = Counters(AtomicU64::new(a));
            assert_eq!(into.add(b), word(expected) != a);
            assert_eq!(each(into.value()), expected);
        }
    }

    #[test]
    fn the_least_is_that_of_each_two_counters() {
        for (a, b) in words().zip(words().skip(1)).chain(words().zip(words())) {
            let expected = core::array::from_fn(|i| each(a)[i].min(each(b)[i]));
            assert_eq!(each(least(a, b)), expected, "{a:x} and {b:x}");
        }
    }

    #[test]
    fn stuck_counters_stay_and_none_goes_below_zero() {
        for (before, counters) in words().zip(words().skip(7).map(above_zero)) {
            let chosen = |i| counters >> (4 * i) & 1 == 1;
            let counter = || Counters(AtomicU64::new(before));

            let incremented = counter();
            assert_eq!(incremented.increment(counters), before);
            let expected = core::array::from_fn(|i| (each(before)[i] + u64::from(chosen(i))).min(15));
            assert_eq!(each(incremented.value()), expected);

            let decremented = counter();
            let held = (0..16).all(|i| !chosen(i) || each(before)[i] > 0);
            assert_eq!(decremented.decrement(counters), held);
            let takes = |i| u64::from(held && chosen(i) && each(before)[i] < 15);
            let expected = core::array::from_fn(|i| each(before)[i] - takes(i));
            assert_eq!(each(decremented.value()), expected);
            if held {
                restore(&[(&decremented, counters)]);
                assert_eq!(decremented.value(), before);
            }
        }
    }
}
