//! Many positions in one call, by the loop of `kernel/tiles.rs`.

use super::{Bitmap, ConcurrentBitmap, OutOfBoundsError, Storage};
use crate::answers::{Answers, answered_into};
use crate::chunks::tell;
use crate::kernel::Isa;
use crate::kernel::plan::Prefetching;
use crate::words::bits::{Hint, Load, acquire};

impl<B: Storage> Bitmap<B> {
    /// Passes on whether each position is present. [`Answers`] has the places for `out`.
    ///
    /// If the bitmap is larger than the caches, this prefetches the lines of later positions: with
    /// a bound of 10^9, a lookup takes 5.7 ns instead of 8.0, and an
    /// [insert](ConcurrentBitmap::insert_batch) 8.2 instead of 22 (Zen 5).
    ///
    /// Orders memory as [`contains`](Self::contains) of each.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer positions.
    ///
    /// # Examples
    ///
    /// ```
    /// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
    /// set.insert_batch(&[17, 600])?;
    /// let mut found = [false; 4];
    /// set.contains_batch(&[600, 5, 17, 1 << 50], &mut found);
    /// assert_eq!(found, [true, false, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch(&self, positions: &[u64], out: impl Answers) {
        let (words, bound) = (self.bits.words(), self.bound());
        // A position beyond the bound reads the first word, so that no branch depends on it.
        let test = |position: u64| {
            let (at, mask) = if position < bound { (position, 1) } else { (0, 0) };
            let word = words.get((at / 64) as usize);
            word.map_or(0, |word| word.load() >> (at % 64) & mask)
        };
        answered_into(Isa::best(), positions.len(), out, |mut answer| {
            self.each_tile(Prefetching::lookups, positions, test, |start, found| {
                acquire();
                tell(&mut answer, start, &[found]);
            });
        });
    }

    /// Calls `work` with every position, and `each(start, bitmap)` with the results of each tile,
    /// which are 0 or 1. Returns the number of ones.
    #[inline(always)]
    fn each_tile(
        &self,
        prefetching: impl Fn(usize, usize) -> Prefetching,
        positions: &[u64],
        work: impl Fn(u64) -> u64,
        mut each: impl FnMut(usize, u64),
    ) -> usize {
        // A position is its own index.
        let prefetch = |_: &mut usize, _, position: &u64, (): &(), hint| self.prefetch(*position, hint);
        let work = |ones: &mut usize, start: usize, tile: &mut [()]| {
            let positions = &positions[start..][..tile.len()];
            let results = Prefetching::answers(positions.iter().map(|position| work(*position)));
            *ones += results.count_ones() as usize;
            each(start, results);
            true
        };
        let (mut ones, prefetching) = (0, prefetching(size_of_val(self.bits.words()), 1));
        prefetching.tiles(&mut ones, positions, |_, _, _| (), prefetch, work);
        ones
    }

    /// [`contains`](Self::contains) of a position below the bound, without its `Acquire`. (Public
    /// for `lanebloom-redis`, whose keys have several positions each.)
    #[doc(hidden)]
    #[inline(always)]
    pub fn is_present(&self, position: u64) -> bool {
        self.bits.words()[(position / 64) as usize].load() >> (position % 64) & 1 == 1
    }

    /// Prefetches the line of a position. (Public as `is_present`.)
    #[doc(hidden)]
    #[inline(always)]
    pub fn prefetch(&self, position: u64, hint: Hint) {
        // A line outside of the memory does no harm.
        hint.prefetch(self.bits.words().as_ptr().wrapping_add((position / 64) as usize));
    }
}

/// Many positions.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
/// assert_eq!(set.insert_batch(&[17, 600, 17]), Ok(2));
/// assert!(set.insert_batch(&[18, 1000]).is_err());
/// assert!(set.iter().eq([17, 600]));
/// let mut claimed = [false; 3];
/// assert_eq!(set.insert_batch_into(&[601, 17, 601], &mut claimed), Ok(1));
/// assert_eq!(claimed, [true, false, false]);
/// assert_eq!(set.remove_batch(&[601, 17, 17, 5, 2000]), 2);
/// assert!(set.iter().eq([600]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl ConcurrentBitmap {
    /// [`insert`](Self::insert) of every position; returns how many were absent. A repeated
    /// position counts once. Fails if a position is not below the bound. Then none is inserted.
    #[inline]
    pub fn insert_batch(&self, positions: &[u64]) -> Result<usize, OutOfBoundsError> {
        self.insert_each(positions, |_, _| ())
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each position was absent:
    /// each `true` is a claim. [`Answers`] has the places for `inserted`. Fails as
    /// [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    ///
    /// If `inserted` has room for more or fewer positions.
    #[doc(alias = "claim_batch")]
    pub fn insert_batch_into(&self, positions: &[u64], inserted: impl Answers) -> Result<usize, OutOfBoundsError> {
        answered_into(Isa::best(), positions.len(), inserted, |mut answer| {
            self.insert_each(positions, |start, set| tell(&mut answer, start, &[set]))
        })
    }

    fn insert_each(&self, positions: &[u64], each: impl FnMut(usize, u64)) -> Result<usize, OutOfBoundsError> {
        positions.iter().try_for_each(|&position| self.check(position))?;
        let set = |position| u64::from(self.bits.set(position));
        Ok(self.each_tile(Prefetching::changes, positions, set, each))
    }

    /// Inserts whole words of another program's bitmap, the first at word `first`; returns how many
    /// positions were absent. Bit `i` of word `w` is position `64 * w + i`, as in Java's
    /// `BitSet.toLongArray`. [`read_words`](Self::read_words) is the other direction. Fails if a
    /// bit is set for a position that is not below the bound. Then none is inserted.
    ///
    /// ```
    /// let set = lanebloom::bitmap::ConcurrentBitmap::new(200)?;
    /// set.insert(64)?;
    /// assert_eq!(set.insert_words(1, &[0b101, 1]), Ok(2));
    /// assert!(set.iter().eq([64, 66, 128]));
    /// assert_eq!(set.insert_words(3, &[1 << 8]).unwrap_err().position(), 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_words(&self, first: usize, words: &[u64]) -> Result<u64, OutOfBoundsError> {
        let Some(last) = words.iter().rposition(|word| *word != 0) else {
            return Ok(0);
        };
        let before = (first as u64).saturating_add(last as u64).saturating_mul(64);
        self.check(before.saturating_add(words[last].ilog2().into()))?;
        let add = |(i, &word)| u64::from(self.bits.add(first + i, word).count_ones());
        Ok(words[..=last].iter().enumerate().map(add).sum())
    }

    /// [`remove`](Self::remove) of every position; returns how many were present.
    #[inline]
    pub fn remove_batch(&self, positions: &[u64]) -> usize {
        let unset = |position| u64::from(self.remove(position));
        self.each_tile(Prefetching::changes, positions, unset, |_, _| ())
    }
}
