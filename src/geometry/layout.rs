//! The geometry of lines: their size, and their number in a filter. `sizing.rs` chooses a layout,
//! `pattern.rs` finds a hash's place in it.

use core::fmt;

/// Bytes of a line, the block of this filter: a cache line of x86-64 and of most aarch64 cores.
pub(crate) const LINE_BYTES: usize = 64;
/// Bits of a line.
pub(crate) const LINE_BITS: usize = LINE_BYTES * 8;
/// 64-bit words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The words per key that divide a line, each with the most bits per word that a layout uses. With
/// one and two words, the seven bytes of a product hold no more bits. With four and eight, more
/// bits save no memory at any rate down to 1e-9 within the limit of bits per key. (Counters never
/// use more than 6, 5, 3 and 2 bits, down to 1e-6.)
///
/// More bits would save memory only if a caller fixes one word per key below 1e-3, or two words
/// below 1e-7. (Builders that choose take more words there. Filters planned to be half full at 2%
/// would use one word of eight bits; they use two words, and less memory.)
pub(crate) const WORDS_PER_KEY: [(usize, usize); 4] = [(1, 6), (2, 7), (4, 6), (8, 4)];

/// The largest number of lines that a key touches.
pub(crate) const MOST_LINES_PER_KEY: usize = 2;

/// The pattern's shape: the number of lines that a key touches, of words in each line, and of bits
/// in each word.
///
/// With two lines, the first half of the blocks and the second half are two filters of one line per
/// key. A key is in both: in the second one by [another hash](crate::geometry::pattern::second).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// 1 or 2. With 2, the number of blocks is even.
    pub(crate) lines: usize,
    /// In each line.
    pub(crate) words: usize,
    /// In each word.
    pub(crate) bits: usize,
}

impl Shape {
    /// The number of words in all lines.
    pub(crate) fn words_per_key(self) -> usize {
        self.lines * self.words
    }

    /// Whether there is a kernel for this shape.
    pub(crate) fn is_known(self) -> bool {
        let fits = |&(words, most): &(usize, usize)| words == self.words && (1..=most).contains(&self.bits);
        (1..=MOST_LINES_PER_KEY).contains(&self.lines)
            && self.words_per_key() <= LINE_WORDS
            && WORDS_PER_KEY.iter().any(fits)
    }
}

/// The shape and the number of blocks. They determine the bits of every hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) blocks: usize,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, blocks } = self;
        write!(f, "{blocks} blocks, ")?;
        if shape.lines > 1 {
            write!(f, "{} lines per key, ", shape.lines)?;
        }
        let (words, bits) = (shape.words_per_key(), shape.bits);
        write!(f, "{words} words per key, {bits} bits per word")
    }
}
