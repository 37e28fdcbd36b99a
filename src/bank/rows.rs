//! Where the bits of a bank lie: the rows of a hash, how the lines of filters become rows, and the
//! columns of a bitmap.

use crate::geometry::layout::{LINE_BITS, LINE_WORDS, Layout};
use crate::geometry::pattern::{block, second};
use crate::kernel::{LineRows, Vectorized, line_rows_of};
use crate::words::scratch::Scratch;
use core::array;
use core::hint::black_box;
use core::iter::FusedIterator;

/// Columns of a word.
pub(crate) const WORD: usize = 64;
/// The most rows of a key: those of two lines with four words of six bits.
pub(crate) const MOST_ROWS: usize = 48;

/// Finds the rows of a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    line: LineRows,
    layout: Layout,
    /// The words of a row.
    width: usize,
}

impl Places {
    pub(crate) fn new(layout: Layout, columns: usize) -> Self {
        Self {
            line: line_rows_of(layout),
            layout,
            width: columns / WORD,
        }
    }

    /// The number of rows of a key. (Two may coincide.)
    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.layout.shape.words_per_key() * self.layout.shape.bits
    }

    /// The number of lines of a key.
    pub(crate) fn lines(&self) -> usize {
        self.layout.shape.lines
    }

    /// The blocks of a hash: one for each of its lines.
    pub(crate) fn blocks(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let Layout { shape, blocks } = self.layout;
        let part = blocks / shape.lines;
        let blocks = [block(hash, part), part + block(second(hash), part)];
        blocks.into_iter().take(shape.lines)
    }

    /// The first word of each row of a hash, among the words of the bank.
    #[inline(always)]
    pub(crate) fn starts<'a>(&self, hash: u64, space: &'a mut Scratch<MOST_ROWS>) -> &'a [u64] {
        self.starts_from(hash, space, |block| (block * LINE_BITS) as u64)
    }

    /// The first word of each row of a hash, among the words of its block.
    pub(crate) fn starts_in_blocks<'a>(&self, hash: u64, space: &'a mut Scratch<MOST_ROWS>) -> &'a [u64] {
        self.starts_from(hash, space, |_| 0)
    }

    /// `first` is the number of a block's first row.
    #[inline(always)]
    fn starts_from<'a>(&self, hash: u64, space: &'a mut Scratch<MOST_ROWS>, first: impl Fn(usize) -> u64) -> &'a [u64] {
        let Layout { shape, blocks } = self.layout;
        let (starts, part, width) = (space.first(self.rows()), blocks / shape.lines, self.width as u64);
        let (line, second_line) = starts.split_at_mut(shape.words * shape.bits);
        (self.line)(hash, first(block(hash, part)), width, line);
        if !second_line.is_empty() {
            let hash = second(hash);
            (self.line)(hash, first(part + block(hash, part)), width, second_line);
        }
        starts
    }
}

/// The same line of 64 filters, and then 512 words of rows: word `w` of item `i` first is word `w`
/// of filter `i`, and then the bits of all filters in row `64 * w + i`.
pub(crate) type Square = [[u64; LINE_WORDS]; WORD];

/// Transposes the bits: as [`Square`] says.
///
/// A square of 64 by 64 bits is transposed in six steps. Each swaps the upper right quarter of
/// ever smaller squares with the lower left one (Hacker's Delight, chapter 7-3). The eight words of
/// a line are eight such squares side by side, so that every step works on whole vectors.
pub(crate) struct Transpose<'a>(pub(crate) &'a mut Square);

impl Vectorized for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        step::<32>(self.0, 0x0000_0000_ffff_ffff);
        step::<16>(self.0, 0x0000_ffff_0000_ffff);
        step::<8>(self.0, 0x00ff_00ff_00ff_00ff);
        step::<4>(self.0, 0x0f0f_0f0f_0f0f_0f0f);
        step::<2>(self.0, 0x3333_3333_3333_3333);
        step::<1>(self.0, 0x5555_5555_5555_5555);
    }
}

/// Squares side by side: those of neighbouring words of a row, of which a line of the cache has
/// eight. (An item more, so that the same item of all does not fall into one set of L1.)
pub(crate) type Squares = [([u64; LINE_WORDS], Square)];

/// Adds transposed squares to the rows of a block, each row of `width` words, from word `first` of
/// every row on.
pub(crate) struct AddRows<'a> {
    pub(crate) block: &'a mut [u64],
    pub(crate) width: usize,
    pub(crate) first: usize,
    pub(crate) squares: &'a Squares,
}

impl Vectorized for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            block,
            width,
            first,
            squares,
        } = self;
        for (row, words) in block.chunks_exact_mut(width).enumerate() {
            let (word, bit) = (row / WORD, row % WORD);
            let words = &mut words[first..][..squares.len()];
            // A whole line has a loop of its own, which is unrolled.
            if let (Ok(words), Ok(squares)) = (
                <&mut [u64; LINE_WORDS]>::try_from(&mut *words),
                <&[([u64; LINE_WORDS], Square); LINE_WORDS]>::try_from(squares),
            ) {
                for (to, (_, square)) in words.iter_mut().zip(squares) {
                    *to |= square[bit][word];
                }
            } else {
                for (to, (_, square)) in words.iter_mut().zip(squares) {
                    *to |= square[bit][word];
                }
            }
        }
    }
}

#[inline(always)]
fn step<const N: usize>(square: &mut Square, low: u64) {
    for i in (0..WORD).filter(|i| i & N == 0) {
        // So that the eight words of an item become a vector: without it, the compiler makes
        // vectors of the same word of eight items, by gathers and scatters, in ten times the time.
        let i = black_box(i) % WORD;
        let (a, b) = (square[i], square[(i | N) % WORD]);
        let swapped: [u64; LINE_WORDS] = array::from_fn(|w| (a[w] >> N ^ b[w]) & low);
        square[i] = array::from_fn(|w| a[w] ^ swapped[w] << N);
        square[(i | N) % WORD] = array::from_fn(|w| b[w] ^ swapped[w]);
    }
}

/// The columns of a bitmap that [`which_into`](crate::bank::Bank::which_into)
/// or [`which_batch`](crate::bank::Bank::which_batch) gave, in ascending order.
///
/// ```
/// use lanebloom::bank::columns;
///
/// assert!(columns(&[1 << 3, 0, 0b11]).eq([3, 128, 129]));
/// ```
pub fn columns(bitmap: &[u64]) -> Columns<'_> {
    Columns {
        words: bitmap,
        at: 0,
        left: bitmap.first().copied().unwrap_or(0),
    }
}

/// The columns of a bitmap, from [`columns`].
///
/// ```
/// let mut found = lanebloom::bank::columns(&[0b1000, 1]);
/// assert_eq!((found.next(), found.next()), (Some(3), Some(64)));
/// assert_eq!(found.next(), None);
/// ```
#[derive(Clone, Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Columns<'a> {
    words: &'a [u64],
    /// The number of words before the current one.
    at: usize,
    /// The bits of the current word that are not returned yet.
    left: u64,
}

impl Iterator for Columns<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.left = *self.words.get(self.at + 1)?;
            self.at += 1;
        }
        let column = WORD * self.at + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(column)
    }
}

impl FusedIterator for Columns<'_> {}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::hash::bytes::mix;
    use crate::kernel::instruction_sets;

    #[test]
    fn every_instruction_set_transposes_the_bits() {
        for isa in instruction_sets() {
            let mut square: Square =
                core::array::from_fn(|i| core::array::from_fn(|w| mix((LINE_WORDS * i + w) as u64 + 1)));
            let before = square;
            isa.vectorized(Transpose(&mut square));
            for (i, w, j) in (0..64).flat_map(|i| (0..8).flat_map(move |w| (0..64).map(move |j| (i, w, j)))) {
                assert_eq!(
                    square[j][w] >> i & 1,
                    before[i][w] >> j & 1,
                    "filter {i}, word {w}, bit {j}"
                );
            }
        }
    }
}
