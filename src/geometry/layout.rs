//! The geometry of lines: their size, and their number in a filter. `sizing.rs` chooses a layout,
//! `pattern.rs` finds a hash's place in it.

use core::fmt;

/// Bytes of a line, the block of this filter: a cache line of x86-64 and of most aarch64 cores.
pub(crate) const LINE_BYTES: usize = 64;
/// Bits of a line.
pub(crate) const LINE_BITS: usize = LINE_BYTES * 8;
/// 64-bit words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The most bits that a key has in a line: a product has as many bytes.
pub(crate) const MOST_BITS: usize = 8;

/// The words of a sector: the words per key in each of its lines.
pub(crate) const WORDS_PER_KEY: [usize; 4] = [1, 2, 4, LINE_WORDS];

/// The largest number of lines that a key touches.
pub(crate) const MOST_LINES_PER_KEY: usize = 2;

/// The pattern's shape: the number of lines that a key touches, of neighbouring words in each line
/// among which its bits are, and of these bits.
///
/// With two lines, the first half of the blocks and the second half are two filters of one line per
/// key. A key is in both: in the second one by [another hash](crate::geometry::pattern::second).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// 1 or 2. With 2, the number of blocks is even.
    pub(crate) lines: usize,
    /// In each line.
    pub(crate) words: usize,
    /// The positions that a key draws in each line; some may coincide. With eight words, an even
    /// number: as many in either half of the line.
    pub(crate) bits: usize,
}

impl Shape {
    /// The number of words in all lines.
    pub(crate) fn words_per_key(self) -> usize {
        self.lines * self.words
    }

    /// The parts of a sector in which positions are drawn independently, with the words and the
    /// positions of each.
    pub(crate) fn draws(self) -> (usize, usize, usize) {
        match self.words {
            LINE_WORDS => (2, LINE_WORDS / 2, self.bits / 2),
            words => (1, words, self.bits),
        }
    }

    /// The shapes with sectors of `words` words, by their bits.
    pub(crate) fn with_words(lines: usize, words: usize) -> impl Iterator<Item = Self> {
        let step = if words == LINE_WORDS { 2 } else { 1 };
        (step..=MOST_BITS)
            .step_by(step)
            .map(move |bits| Self { lines, words, bits })
    }

    /// Whether there is a kernel for this shape.
    pub(crate) fn is_known(self) -> bool {
        let Self { lines, words, .. } = self;
        (1..=MOST_LINES_PER_KEY).contains(&lines)
            && WORDS_PER_KEY.contains(&words)
            && Self::with_words(lines, words).any(|known| known == self)
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
        write!(f, "{words} words per key, {bits} bits per line")
    }
}
