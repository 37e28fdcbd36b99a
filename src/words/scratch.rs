//! Space on the stack for the hashes or the results of a chunk. Sources and filters use it.

use core::mem::MaybeUninit;
use core::ptr;

/// Space for `N` words, cleared only as far as it is used: clearing the space of a whole chunk
/// takes longer than the work on a few keys.
///
/// It is aligned to a line of the cache: vectors that lie across two lines take longer.
#[repr(align(64))]
pub struct Scratch<const N: usize> {
    words: [MaybeUninit<u64>; N],
    /// Number of initialized words, from the start.
    written: usize,
}

/// The first words are cleared in steps of these lengths, without a call.
const STEPS: [usize; 4] = [0, 8, 16, 32];

impl<const N: usize> Default for Scratch<N> {
    #[inline(always)]
    fn default() -> Self {
        Self {
            words: [const { MaybeUninit::uninit() }; N],
            written: 0,
        }
    }
}

impl<const N: usize> Scratch<N> {
    /// The first `len` words. Their values are arbitrary.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[inline(always)]
    pub(crate) fn first(&mut self, len: usize) -> &mut [u64] {
        for step in STEPS.windows(2) {
            if self.written == step[0] && len > step[0] {
                self.clear(N.min(step[1]));
            }
        }
        if self.written < len {
            self.clear(len);
        }
        let words = &mut self.words[..len];
        // SAFETY: at least `len` words were written, and `MaybeUninit` has the layout of what is in
        // it.
        unsafe { &mut *(ptr::from_mut(words) as *mut [u64]) }
    }

    #[inline(always)]
    fn clear(&mut self, end: usize) {
        self.words[self.written..end].fill(MaybeUninit::new(0));
        self.written = end;
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_are_cleared_once() {
        let mut space = Scratch::<70>::default();
        for len in [0, 1, 8, 9, 16, 17, 32, 33, 70] {
            let words = space.first(len);
            assert_eq!(words.len(), len);
            // The new words are 0; the others keep their values.
            assert!(words.iter().all(|word| [0, 7].contains(word)));
            words.fill(7);
            assert!(space.first(len).iter().all(|word| *word == 7));
        }
        assert_eq!(Scratch::<5>::default().first(5), [0; 5]);
    }
}
