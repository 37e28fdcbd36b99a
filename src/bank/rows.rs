//! Where the bits of a bank lie: the rows of a hash, how the lines of filters become rows, and the
//! columns of a bitmap.

use crate::chunks::Source;
use crate::geometry::layout::{LINE_BITS, LINE_WORDS, Layout, MOST_BITS};
use crate::geometry::pattern::{position, product, second, sector};
use crate::kernel::Vectorized;
use crate::kernel::plan::Prefetching;
use crate::words::bits::Hint;
use crate::words::scratch::Scratch;
use core::array;
use core::hint::black_box;

/// Columns of a word.
pub(crate) const WORD: usize = 64;
/// The most rows of a key: those of two lines.
pub(crate) const MOST_ROWS: usize = 2 * MOST_BITS;

/// Writes the rows of a hash in a filter of this many blocks, as starts: `rows(hash, blocks, width,
/// starts)`, where a row has `width` words.
pub type KeyRows = fn(u64, usize, u64, &mut [u64]);

/// The shape of a bank, which finds the rows of a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFinder {
    /// The layout of each filter.
    pub(super) layout: Layout,
    /// The words of a row.
    pub(super) width: usize,
    /// The rows and the blocks of another crate's filters. Then the layout tells the number of
    /// lines and of rows only.
    pub(crate) other: Option<(KeyRows, usize)>,
}

impl RowFinder {
    pub(super) fn new(layout: Layout, columns: usize) -> Self {
        Self {
            layout,
            width: columns / WORD,
            other: None,
        }
    }

    /// The number of columns.
    #[inline(always)]
    pub(super) fn columns(&self) -> usize {
        WORD * self.width
    }

    /// The words of a block of all filters.
    pub(super) fn block_words(&self) -> usize {
        LINE_BITS * self.width
    }

    /// The number of rows of a key. (Two may coincide.)
    #[inline(always)]
    pub(super) fn rows(&self) -> usize {
        self.layout.shape.lines * self.layout.shape.bits
    }

    /// The first word of each row of a hash, among the words of the bank.
    #[inline(always)]
    pub(super) fn starts<'a>(&self, hash: u64, space: &'a mut Scratch<MOST_ROWS>) -> &'a [u64] {
        let starts = space.first(self.rows());
        self.write_starts(hash, starts);
        starts
    }

    /// [`starts`](Self::starts) to the caller's memory, which has a place for each row.
    #[inline(always)]
    pub(super) fn write_starts(&self, hash: u64, starts: &mut [u64]) {
        let Layout { shape, blocks } = self.layout;
        let (part, width) = (blocks / shape.lines, self.width as u64);
        if let Some((rows, blocks)) = self.other {
            return rows(hash, blocks, width, starts);
        }
        let (line, second_line) = starts.split_at_mut(shape.bits);
        let place = |hash, before: usize, starts: &mut [u64]| match shape.words {
            1 => line_starts::<1>(hash, part, before, width, starts),
            2 => line_starts::<2>(hash, part, before, width, starts),
            4 => line_starts::<4>(hash, part, before, width, starts),
            _ => line_starts::<8>(hash, part, before, width, starts),
        };
        place(hash, 0, line);
        if !second_line.is_empty() {
            place(second(hash), part, second_line);
        }
    }

    /// Calls `work(i, starts)` for every hash `i` in order, with the first word of each of its
    /// rows. Some hashes before, it calls `prefetch(starts, hint)`, if `prefetching` has a hint. A
    /// hash has `lines` lines, at least one for each row.
    ///
    /// The starts are kept between the two calls: to find them again takes as long as a lookup of
    /// 64 columns.
    #[inline(always)]
    pub(super) fn for_each(
        &self,
        source: &impl Source,
        (prefetching, lines): (Prefetching, usize),
        prefetch: impl Fn(&[u64], Hint),
        mut work: impl FnMut(usize, &[u64]),
    ) {
        let (rows, prefetching) = (self.rows(), prefetching.next_tile(lines));
        // The space for a tile of hashes, and for the next one.
        let mut space = [(); 2].map(|()| Scratch::<{ Prefetching::LINES }>::default());
        source.for_each_chunk(usize::MAX, |before, hashes| {
            let needed = rows * prefetching.tile().min(hashes.len());
            let mut tiles = space.each_mut().map(|space| space.first(needed));
            prefetching.tiles(
                &mut tiles,
                hashes,
                |tiles, i, &hash| {
                    let (tile, i) = prefetching.in_rings(i);
                    self.write_starts(hash, &mut tiles[tile][rows * i..][..rows]);
                },
                |tiles, i, _, (), hint| {
                    let (tile, i) = prefetching.in_rings(i);
                    prefetch(&tiles[tile][rows * i..][..rows], hint);
                },
                |tiles, start, tile| {
                    let starts = tiles[prefetching.in_rings(start).0].chunks_exact(rows);
                    for (i, starts) in starts.take(tile.len()).enumerate() {
                        work(before + start + i, starts);
                    }
                    true
                },
            );
        });
    }
}

/// Writes the starts of a hash's rows in one of its lines: there are `blocks`, after `before`
/// others.
#[inline(always)]
fn line_starts<const W: usize>(hash: u64, blocks: usize, before: usize, width: u64, starts: &mut [u64]) {
    let (word, product) = (LINE_WORDS * before + sector::<W>(hash, blocks), product(hash));
    for (number, start) in starts.iter_mut().enumerate() {
        *start = (64 * word as u64 + position::<W>(product, number) as u64) * width;
    }
}

/// The same line of 64 filters, and then 512 words of rows: word `w` of item `i` first is word `w`
/// of filter `i`, and then the bits of all filters in row `64 * w + i`.
pub(crate) type Square = [[u64; LINE_WORDS]; WORD];

/// Transposes the bits: as [`Square`] says.
///
/// A square of 64 by 64 bits is transposed in six steps. Each swaps the upper right quarter of
/// ever smaller squares with the lower left one (Hacker's Delight, chapter 7-3). The eight words of
/// a line are eight such squares side by side, so that every step works on whole vectors. Three
/// steps at a time work on eight items in registers. (Zen 4, ns for each word of the square: 0.29
/// by AVX-512 and 0.40 by AVX2; with loads and stores in each step 0.80 and 1.02.)
pub(crate) struct Transpose<'a>(pub(crate) &'a mut Square);

impl Vectorized for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for i in 0..8 {
            swap_eight::<8, 16, 32>(self.0, i);
        }
        for i in 0..8 {
            swap_eight::<1, 2, 4>(self.0, 8 * i);
        }
    }
}

/// The steps that swap squares of `H`, `Q` and `N` bits, for the eight items from `first` on that
/// are `N` apart.
#[inline(always)]
fn swap_eight<const N: usize, const Q: usize, const H: usize>(square: &mut Square, first: usize) {
    // So that the eight words of an item become a vector: without it, the compiler makes vectors
    // of the same word of eight items, by gathers and scatters, in three times the time. A loop
    // over the pairs does the same.
    let first = black_box(first);
    let at = |i: usize| (first + N * i) % WORD;
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = array::from_fn(|i| square[at(i)]);
    swap::<H>(&mut a, &mut e);
    swap::<H>(&mut b, &mut f);
    swap::<H>(&mut c, &mut g);
    swap::<H>(&mut d, &mut h);
    swap::<Q>(&mut a, &mut c);
    swap::<Q>(&mut b, &mut d);
    swap::<Q>(&mut e, &mut g);
    swap::<Q>(&mut f, &mut h);
    swap::<N>(&mut a, &mut b);
    swap::<N>(&mut c, &mut d);
    swap::<N>(&mut e, &mut f);
    swap::<N>(&mut g, &mut h);
    for (i, item) in [a, b, c, d, e, f, g, h].into_iter().enumerate() {
        square[at(i)] = item;
    }
}

/// Swaps bits `N` to `2 * N` of each group of `2 * N` bits of `a` with the lower ones of `b`.
#[inline(always)]
fn swap<const N: usize>(a: &mut [u64; LINE_WORDS], b: &mut [u64; LINE_WORDS]) {
    let low = u64::MAX / ((1 << N) + 1);
    for (a, b) in a.iter_mut().zip(b) {
        let swapped = (*a >> N ^ *b) & low;
        *a ^= swapped << N;
        *b ^= swapped;
    }
}

/// Up to eight neighbouring squares: one per word of a cache line. (An item more, so that the same
/// item of all does not fall into one set of L1.)
pub(crate) type Squares = [([u64; LINE_WORDS], Square)];

/// Adds transposed squares, at most eight, to the rows of a block, each row of `width` words, from
/// word `first` of every row on.
///
/// It is scalar: by AVX-512 the compiler gathers the words, in three times the time.
pub(crate) fn add_rows(block: &mut [u64], width: usize, first: usize, squares: &Squares) {
    for (word, rows) in block.chunks_exact_mut(WORD * width).enumerate() {
        let word = word % LINE_WORDS;
        // Whole lines and rows of one word have loops of their own, which are unrolled.
        if let Ok(squares) = <&[([u64; LINE_WORDS], Square); LINE_WORDS]>::try_from(squares) {
            for (bit, row) in rows.chunks_exact_mut(width).enumerate() {
                let row = row[first..].first_chunk_mut::<LINE_WORDS>();
                let row = row.expect("a row has all squares");
                for (to, (_, square)) in row.iter_mut().zip(squares) {
                    *to |= square[bit % WORD][word];
                }
            }
        } else if let ([(_, square)], 1) = (squares, width) {
            for (to, item) in rows.iter_mut().zip(square) {
                *to |= item[word];
            }
        } else {
            for (bit, row) in rows.chunks_exact_mut(width).enumerate() {
                for (to, (_, square)) in row[first..].iter_mut().zip(squares) {
                    *to |= square[bit % WORD][word];
                }
            }
        }
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
pub fn columns(bitmap: &[u64]) -> impl Iterator<Item = usize> + Clone {
    Columns::of(bitmap.iter().copied())
}

/// The columns of a bitmap of these words.
#[derive(Clone)]
pub(super) struct Columns<W> {
    words: W,
    /// The number of columns of the words that were read.
    read: usize,
    /// The bits of the last word that are not returned yet.
    left: u64,
}

impl<W> Columns<W> {
    #[inline]
    pub(super) fn of(words: W) -> Self {
        let (read, left) = (0, 0);
        Self { words, read, left }
    }
}

/// (`flat_map` over the bits of each word takes two to five times as long.)
impl<W: Iterator<Item = u64>> Iterator for Columns<W> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.left = self.words.next()?;
            self.read += WORD;
        }
        let column = self.read - WORD + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(column)
    }
}

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
