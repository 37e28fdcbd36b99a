//! The geometry of lines: how large they are, and how many of them a filter has. Imports nothing.
//! `sizing.rs` chooses a layout, `pattern.rs` finds a hash's place in it.

use core::fmt;

/// Bytes of a line, the block of this filter: a cache line of x86-64 and of most aarch64 cores.
pub(crate) const LINE_BYTES: usize = 64;
/// Bits of a line.
pub(crate) const LINE_BITS: usize = LINE_BYTES * 8;
/// 64-bit words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The words per key that divide a line, each with the most useful bits per word: more bits only
/// cost memory, at all rates down to 1e-9 or to the most bits per key. (For counters, down to 1e-6,
/// the most are 9, 5, 3 and 2.)
pub(crate) const WORDS: [(usize, usize); 4] = [(1, 10), (2, 8), (4, 6), (8, 4)];

/// The pattern's shape: how many words of its line a key touches, and how many bits it throws in
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) words: usize,
    pub(crate) bits: usize,
}

/// The shape and the number of blocks: they determine a hash's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(crate) shape: Shape,
    pub(crate) blocks: usize,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            shape: Shape { words, bits },
            blocks,
        } = self;
        write!(f, "{blocks} blocks, {words} words per key, {bits} bits per word")
    }
}
