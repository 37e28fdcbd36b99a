//! The words of a bitmap, and the memory ordering of every access to them. A position is bit
//! `position % 64` of word `position / 64`. The words fill whole lines; the bits from the bound on
//! are always 0.
//!
//! Unlike in a filter, bits are unset too, so both kinds of change publish.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `set`, `unset`, `add`, `take`: look at the word first | load `Relaxed` | if there is nothing to change, nothing is written, so a line that is only read stays in all caches; [`acquire`] follows |
//! | `set`, `unset`, `add`, `take`: change it | `fetch_or`, `fetch_and` `AcqRel` | `Release`: a thread that sees the change and acquires sees what this thread did before. `Acquire`: a claim sees what the thread that released the position did before. All changes are read-modify-writes, so each continues the release sequences of the ones before it |
//! | [`load`](Load::load) of a reader | load `Relaxed`, then [`acquire`] | pairs with the changes above: nothing on x86-64, one barrier on Arm |
//! | `store_words`, `try_clone` | store `Relaxed` | no other thread has the array yet; the transfer to another thread orders them |
//!
//! Looking first is correct: if an insert happened before, coherence alone makes the look see its
//! bit, or a later value of the word. Only the read-modify-write decides which thread won.

use crate::error::BuildError;
use crate::geometry::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS};
use crate::words::bits::{Load, acquire};
use crate::words::memory::Words;
use crate::words::sync::{AtomicU64, Ordering};
use core::ops::Range;

/// The storage of a [`Bitmap`](super::Bitmap)'s bits: [`AtomicBits`] or
/// [`SnapshotBits`](super::SnapshotBits).
///
/// Only this crate implements it. [`Bitmap`](super::Bitmap) has an example.
pub trait Storage {
    #[doc(hidden)]
    type Word: Load;

    /// The name of the type, for `Debug`.
    #[doc(hidden)]
    const NAME: &'static str;

    #[doc(hidden)]
    fn bound(&self) -> u64;

    /// The words, in whole lines. The bits from the bound on are 0.
    #[doc(hidden)]
    fn words(&self) -> &[Self::Word];
}

/// The bits of a [`ConcurrentBitmap`](super::ConcurrentBitmap): atomic words, in cache lines.
pub struct AtomicBits {
    words: Words<AtomicU64>,
    bound: u64,
}

impl Storage for AtomicBits {
    type Word = AtomicU64;
    const NAME: &'static str = "ConcurrentBitmap";

    #[inline(always)]
    fn bound(&self) -> u64 {
        self.bound
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }
}

/// The number of words for `bound` positions, in whole lines; `None` if they exceed the address
/// space.
pub(super) fn words_of(bound: u64) -> Option<usize> {
    let lines = usize::try_from(bound.div_ceil(LINE_BITS as u64)).ok()?;
    lines.checked_mul(LINE_WORDS)
}

/// The words that a range touches, each with the mask of its bits in the range. (An empty range may
/// touch one word, with the mask 0.)
pub(super) fn masks(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let Range { start, end } = range;
    (start / 64..end.div_ceil(64)).map(move |word| {
        let first = 64 * word;
        let (low, high) = (start.saturating_sub(first), (end - first).min(64));
        (word as usize, u64::MAX << low & u64::MAX >> (64 - high))
    })
}

impl AtomicBits {
    pub(super) fn new(bound: u64) -> Result<Self, BuildError> {
        let words = words_of(bound).and_then(Words::new).ok_or_else(|| {
            let bytes = bound.div_ceil(LINE_BITS as u64).saturating_mul(LINE_BYTES as u64);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            BuildError::out_of_memory(bytes)
        })?;
        Ok(Self { words, bound })
    }

    pub(super) fn try_clone(&self) -> Result<Self, BuildError> {
        let mut copy = Self::new(self.bound)?;
        copy.store_words(0, self.words.iter().map(Load::load));
        acquire();
        Ok(copy)
    }

    /// Sets words from `first` on, while no other thread knows of the array.
    pub(super) fn store_words(&mut self, first: usize, values: impl IntoIterator<Item = u64>) {
        for (word, value) in self.words[first..].iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Sets the bit; returns whether this call set it.
    #[inline(always)]
    pub(super) fn set(&self, position: u64) -> bool {
        self.add((position / 64) as usize, 1 << (position % 64)) != 0
    }

    /// Unsets the bit; returns whether this call unset it.
    #[inline(always)]
    pub(super) fn unset(&self, position: u64) -> bool {
        self.take((position / 64) as usize, 1 << (position % 64)) != 0
    }

    /// Sets the bits of `mask` in a word; returns those that this call set.
    #[inline(always)]
    pub(super) fn add(&self, word: usize, mask: u64) -> u64 {
        let word = &self.words[word];
        if mask & !word.load(Ordering::Relaxed) == 0 {
            acquire();
            return 0;
        }
        mask & !word.fetch_or(mask, Ordering::AcqRel)
    }

    /// Unsets the bits of `mask` in a word; returns those that this call unset.
    #[inline(always)]
    pub(super) fn take(&self, word: usize, mask: u64) -> u64 {
        let word = &self.words[word];
        if mask & word.load(Ordering::Relaxed) == 0 {
            acquire();
            return 0;
        }
        mask & word.fetch_and(!mask, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_a_range_and_nothing_else() {
        for start in 0..140 {
            for end in start..200 {
                let positions = masks(start..end).flat_map(|(word, mask)| {
                    let bits = (0..64).filter(move |i| mask >> i & 1 == 1);
                    bits.map(move |i| 64 * word as u64 + i)
                });
                assert!(positions.eq(start..end), "{start}..{end}");
            }
        }
    }
}
