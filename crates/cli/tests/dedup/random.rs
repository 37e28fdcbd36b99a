//! Random choices for the tests of both commands.

#[path = "../../../../tests/common/number.rs"]
mod number;

use number::number;

/// A generator of random numbers with a fixed seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1 << 32);
        number(self.0)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
