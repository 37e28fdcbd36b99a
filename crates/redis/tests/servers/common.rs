//! Numbers without a pattern, and flags that threads watch.

use std::sync::atomic::{AtomicBool, Ordering};

/// The i-th of a sequence of distinct, random-looking numbers (SplitMix64's output function).
pub(crate) fn number(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The words per key that a filter can have.
pub(crate) const WORDS: [usize; 4] = [1, 2, 4, 8];

/// Sets the flag when it goes, also by a panic: threads that go on until then end, and a test that
/// fails does not hang.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
