//! The methods that only read a bitmap: counts, searches, iterations.

use super::words::masks;
use super::{Bitmap, Storage};
use crate::words::bits::{Load, acquire, acquire_if};
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{Bound, Range, RangeBounds};

/// The positions below `bound` in `range`; `0..0` if there are none.
pub(super) fn clamped(range: impl RangeBounds<u64>, bound: u64) -> Range<u64> {
    match ends(range, bound) {
        Some((first, last)) if first < bound => first..last.saturating_add(1).min(bound),
        _ => 0..0,
    }
}

/// The first and the last number in `range`, or `None` if it is empty. A range without an end ends
/// at `bound`. (Both numbers are inclusive: an exclusive end could not express the greatest `u64`.)
pub(super) fn ends(range: impl RangeBounds<u64>, bound: u64) -> Option<(u64, u64)> {
    let first = match range.start_bound() {
        Bound::Included(&first) => first,
        Bound::Excluded(&before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let last = match range.end_bound() {
        Bound::Included(&last) => last,
        Bound::Excluded(&end) => end.checked_sub(1)?,
        Bound::Unbounded => bound.checked_sub(1)?,
    };
    (first <= last).then_some((first, last))
}

/// Reading. A position that changes meanwhile may be seen before or after the change; see
/// [Consistency](crate::bitmap#consistency). A range that ends before it begins is empty, and one
/// that exceeds the bound ends there.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
/// assert_eq!((set.bound(), set.memory_bytes()), (1000, 128));
/// assert!(set.is_empty());
/// set.insert_batch(&[600, 17, 18])?;
/// assert!(set.contains(17) && !set.contains(19) && !set.contains(1 << 40));
/// assert_eq!([set.len(), set.len_of(18..600), set.len_of(18..2000)], [3, 1, 2]);
/// assert!(!set.is_empty());
///
/// assert!(set.iter().eq([17, 18, 600]));
/// assert!(set.range(18..=600).eq([18, 600]));
/// assert!(set.range(601..).next().is_none());
/// let present = [0, 17, 19, 601].map(|from| set.first_present(from));
/// assert_eq!(present, [Some(17), Some(17), Some(600), None]);
///
/// set.insert_range(100..1000)?;
/// assert!(set.contains_range(100..200) && set.contains_range(100..));
/// assert!(!set.contains_range(99..200) && !set.contains_range(100..=1000));
/// let free = [0, 17, 100].map(|from| set.first_free(from));
/// assert_eq!(free, [Some(0), Some(19), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<B: Storage> Bitmap<B> {
    /// The bound: all positions are below it.
    #[inline]
    #[must_use]
    #[doc(alias("capacity", "size"))]
    pub fn bound(&self) -> u64 {
        self.bits.bound()
    }

    /// The bytes of the bits: an eighth of the bound, rounded up to whole lines of 64.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.bits.words())
    }

    /// Whether `position` is present. A position that is not below the bound is absent.
    ///
    /// # Memory ordering
    ///
    /// A `true` is an `Acquire`, which pairs with the `Release` of the insert.
    #[inline]
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        let found = position < self.bound() && self.is_present(position);
        acquire_if(found);
        found
    }

    /// Copies words, from word `first` on, to `out`. Bit `i` of word `w` is position `64 * w + i`;
    /// bits beyond the bound are 0.
    ///
    /// ```
    /// let set = lanebloom::bitmap::ConcurrentBitmap::new(200)?;
    /// set.insert_batch(&[64, 66, 128])?;
    /// let mut words = [u64::MAX; 100];
    /// set.read_words(1, &mut words);
    /// assert_eq!(words[..2], [0b101, 1]);
    /// assert_eq!(words[2..], [0; 98]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "toLongArray")]
    pub fn read_words(&self, first: usize, out: &mut [u64]) {
        let words = self.bits.words().get(first..).unwrap_or_default();
        let (there, beyond) = out.split_at_mut(words.len().min(out.len()));
        for (copy, word) in there.iter_mut().zip(words) {
            *copy = word.load();
        }
        beyond.fill(0);
        acquire();
    }

    /// The number of positions. This reads all words: 2 ms for a bound of 10^8 (Zen 5).
    #[must_use]
    #[doc(alias("count", "cardinality", "count_ones"))]
    pub fn len(&self) -> u64 {
        self.len_of(..)
    }

    /// The number of positions in a range.
    #[must_use]
    #[doc(alias = "rank")]
    pub fn len_of(&self, range: impl RangeBounds<u64>) -> u64 {
        let values = self.values(clamped(range, self.bound()));
        let len = values.map(|value| u64::from(value.count_ones())).sum();
        acquire();
        len
    }

    /// Whether the set has no position. This stops at the first one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first_present(0).is_none()
    }

    /// Whether all positions of a range are present: true for an empty range, false for a range
    /// that exceeds the bound. This stops at the first absent one.
    #[must_use]
    pub fn contains_range(&self, range: impl RangeBounds<u64>) -> bool {
        let Some((first, last)) = ends(range, self.bound()) else {
            return true;
        };
        let all = last < self.bound()
            && masks(first..last + 1).all(|(word, mask)| !self.bits.words()[word].load() & mask == 0);
        acquire_if(all);
        all
    }

    /// The first position at or after `from` that is present.
    #[must_use]
    #[doc(alias("nextSetBit", "select"))]
    pub fn first_present(&self, from: u64) -> Option<u64> {
        self.range(from..).next()
    }

    /// The first position at or after `from` that is absent.
    ///
    /// Another thread may insert it before the caller does:
    /// [`claim_free`](super::ConcurrentBitmap::claim_free) finds and inserts it at once.
    #[must_use]
    #[doc(alias("nextClearBit", "first_absent"))]
    pub fn first_free(&self, from: u64) -> Option<u64> {
        let found = masks(clamped(from.., self.bound())).find_map(|(word, mask)| {
            let free = !self.bits.words()[word].load() & mask;
            (free != 0).then(|| 64 * word as u64 + u64::from(free.trailing_zeros()))
        });
        acquire();
        found
    }

    /// The positions in ascending order. The iterator reads 64 at a time, when it reaches them.
    pub fn iter(&self) -> Positions<'_, B> {
        self.range(..)
    }

    /// The positions in a range, in ascending order.
    pub fn range(&self, range: impl RangeBounds<u64>) -> Positions<'_, B> {
        let Range { start, end } = clamped(range, self.bound());
        Positions {
            bitmap: self,
            first: start,
            left: 0,
            rest: start..end,
        }
    }

    /// The words of a range, without the bits outside of it. Call [`acquire`] after the last.
    pub(super) fn values(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        masks(range).map(|(word, mask)| self.bits.words()[word].load() & mask)
    }

    /// All words that positions lie in. Call [`acquire`] after the last.
    pub(super) fn all_values(&self) -> impl Iterator<Item = u64> {
        self.values(0..self.bound())
    }
}

/// The positions of a [`Bitmap`] in ascending order, from [`iter`](Bitmap::iter) or
/// [`range`](Bitmap::range).
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
/// set.insert_range(100..200)?;
/// let mut positions = set.iter();
/// assert_eq!((positions.next(), positions.nth(10)), (Some(100), Some(111)));
/// assert_eq!(positions.count(), 88);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Positions<'a, B> {
    bitmap: &'a Bitmap<B>,
    /// The first position of the current word.
    first: u64,
    /// The bits of that word that are not returned yet.
    left: u64,
    /// The positions that are not read yet.
    rest: Range<u64>,
}

impl<B: Storage> Positions<'_, B> {
    /// Reads the next word that has a position. Returns `None` if there is none.
    fn read_on(&mut self) -> Option<()> {
        let Range { start, end } = self.rest.clone();
        if start >= end {
            return None;
        }
        let (first, low) = (start / 64, u64::MAX << (start % 64));
        let words = &self.bitmap.bits.words()[first as usize..end.div_ceil(64) as usize];
        let mut values = words.iter().map(Load::load);
        let mut value = values.next()? & low;
        let mut at = first;
        // Words without positions have a loop of their own: a sparse set has many.
        while value == 0 {
            let Some(next) = values.next() else {
                self.rest.start = end;
                return None;
            };
            value = next;
            at += 1;
        }
        self.first = 64 * at;
        self.rest.start = end.min(self.first + 64);
        self.left = value & u64::MAX >> (64 - (self.rest.start - self.first));
        acquire();
        (self.left != 0).then_some(())
    }
}

impl<B: Storage> Iterator for Positions<'_, B> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            self.read_on()?;
        }
        let position = self.first + u64::from(self.left.trailing_zeros());
        self.left &= self.left - 1;
        Some(position)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let here = self.left.count_ones() as usize;
        let most = usize::try_from(self.rest.end - self.rest.start).ok();
        (here, most.and_then(|most| most.checked_add(here)))
    }
}

impl<B: Storage> FusedIterator for Positions<'_, B> {}

impl<B> Clone for Positions<'_, B> {
    fn clone(&self) -> Self {
        Self {
            rest: self.rest.clone(),
            ..*self
        }
    }
}

impl<B> fmt::Debug for Positions<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Positions")
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

impl<'a, B: Storage> IntoIterator for &'a Bitmap<B> {
    type Item = u64;
    type IntoIter = Positions<'a, B>;

    fn into_iter(self) -> Positions<'a, B> {
        self.iter()
    }
}
