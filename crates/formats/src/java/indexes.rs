//! Double hashing by Java's `int`s: the indexes of a key's bits in filters of Guava's
//! `MURMUR128_MITZ_32`, and of Spark's V1.

use crate::flat::{Column, Modulo, NextIndex};
use lanebloom::internal::Prefetching;

/// The indexes of one key's bits, one after another: `h1 + i * h2` for `i` from 1 on.
#[derive(Clone, Copy, Default)]
pub struct IntIndexes {
    next: i32,
    step: i32,
}

impl IntIndexes {
    /// The indexes for the two hashes of a key.
    #[inline(always)]
    pub(crate) fn new((h1, h2): (i32, i32)) -> Self {
        Self {
            next: h1.wrapping_add(h2),
            step: h2,
        }
    }
}

impl NextIndex for IntIndexes {
    #[inline(always)]
    fn next_index(&mut self, modulo: &Modulo) -> u64 {
        // Java flips all bits of a negative int.
        let number = (self.next ^ self.next >> 31) as u32;
        self.next = self.next.wrapping_add(self.step);
        modulo.remainder(number.into())
    }

    #[inline(always)]
    fn columns(tile: &[Self; Prefetching::TILE], modulo: &Modulo, columns: &mut [Column]) -> bool {
        let mut next = tile.map(|key| key.next);
        for column in columns {
            for i in 0..Prefetching::TILE {
                let number = (next[i] ^ next[i] >> 31) as u32;
                column[i] = modulo.remainder_of_int(number);
                next[i] = next[i].wrapping_add(tile[i].step);
            }
        }
        true
    }
}
