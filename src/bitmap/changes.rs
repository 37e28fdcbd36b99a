//! Changes of many positions, word by word, beside other threads: ranges, claims of the first free
//! position, and union, intersection and difference with another bitmap.

use super::read::{clamped, ends};
use super::words::masks;
use super::{Bitmap, ConcurrentBitmap, OutOfBoundsError, Storage};
use crate::error::IncompatibleError;
use crate::words::bits::{Load, acquire};
use alloc::format;
use core::ops::RangeBounds;

/// Ranges, [64 positions at a time](crate::bitmap#consistency). A range that ends before it begins
/// is empty.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
/// set.insert(150)?;
/// assert_eq!(set.insert_range(100..200), Ok(99));
/// assert_eq!(set.insert_range(990..), Ok(10));
/// assert!(set.insert_range(0..1001).is_err() && set.len() == 110);
/// assert_eq!(set.remove_range(150..2000), 60);
/// assert_eq!((set.len(), set.remove_range(..), set.len()), (50, 50, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl ConcurrentBitmap {
    /// Inserts every position of a range; returns how many were absent.
    ///
    /// Each position that it counts is a claim of this call, as with [`insert`](Self::insert).
    /// Fails if the range exceeds the bound. Then nothing is inserted. (A range without an end,
    /// such as `7..`, ends at the bound.)
    pub fn insert_range(&self, range: impl RangeBounds<u64>) -> Result<u64, OutOfBoundsError> {
        let Some((first, last)) = ends(range, self.bound()) else {
            return Ok(0);
        };
        self.check(last)?;
        let set = masks(first..last + 1).map(|(word, mask)| u64::from(self.bits.add(word, mask).count_ones()));
        Ok(set.sum())
    }

    /// Removes every position of a range; returns how many were present. `remove_range(..)` empties
    /// the set beside other threads.
    #[doc(alias = "clear")]
    pub fn remove_range(&self, range: impl RangeBounds<u64>) -> u64 {
        let unset = masks(clamped(range, self.bound()));
        let unset = unset.map(|(word, mask)| u64::from(self.bits.take(word, mask).count_ones()));
        unset.sum()
    }

    /// Inserts the first free position of a range and returns it, or `None` if all are present: an
    /// allocator of numbers. No two threads get the same position before it is removed.
    ///
    /// It searches from the start of the range, 64 positions at a time. If many positions there are
    /// taken, begin after the last position that it returned, and at 0 again after a `None`. A
    /// claim orders memory as an [`insert`](Self::insert) that returns `true`.
    ///
    /// ```
    /// let ids = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
    /// assert_eq!((ids.claim_free(..), ids.claim_free(..)), (Some(0), Some(1)));
    /// ids.remove(0);
    /// assert_eq!((ids.claim_free(1..), ids.claim_free(1..)), (Some(2), Some(3)));
    /// assert_eq!((ids.claim_free(0..4), ids.claim_free(0..4)), (Some(0), None));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("allocate", "first_free"))]
    pub fn claim_free(&self, range: impl RangeBounds<u64>) -> Option<u64> {
        for (word, mask) in masks(clamped(range, self.bound())) {
            loop {
                let free = !Load::load(&self.bits.words()[word]) & mask;
                if free == 0 {
                    break;
                }
                let lowest = free & free.wrapping_neg();
                // 0 means that another thread has claimed it meanwhile.
                if self.bits.add(word, lowest) != 0 {
                    return Some(64 * word as u64 + u64::from(lowest.trailing_zeros()));
                }
            }
        }
        acquire();
        None
    }
}

/// Operations with another set of the same bound, which may be a [`BitmapView`](super::BitmapView),
/// and which other threads may use meanwhile. Each returns whether this call changed the set.
///
/// They go [word by word](crate::bitmap#consistency). Publication passes through: a thread that
/// sees a position here sees what the thread that inserted it there did before.
///
/// # Errors
///
/// They fail if the bounds differ.
///
/// # Examples
///
/// ```
/// use lanebloom::bitmap::ConcurrentBitmap;
///
/// let (a, b) = (ConcurrentBitmap::new(1000)?, ConcurrentBitmap::new(1000)?);
/// a.insert_range(0..10)?;
/// b.insert_range(5..15)?;
/// let both = a.try_clone()?;
/// assert_eq!((a.union_from(&b), a.union_from(&b)), (Ok(true), Ok(false)));
/// assert!(a.iter().eq(0..15));
/// assert_eq!(a.difference_from(&b), Ok(true));
/// assert_eq!(a.difference_from(&b), Ok(false));
/// assert!(a.iter().eq(0..5));
/// assert_eq!(both.intersection_from(&b), Ok(true));
/// assert_eq!(both.intersection_from(&b), Ok(false));
/// assert!(both.iter().eq(5..10));
/// assert!(a.union_from(&ConcurrentBitmap::new(999)?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl ConcurrentBitmap {
    /// Inserts the other set's positions.
    #[doc(alias = "or")]
    pub fn union_from<B: Storage>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.add(word, theirs))
    }

    /// Removes the positions that the other set lacks.
    #[doc(alias("and", "retain"))]
    pub fn intersection_from<B: Storage>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.take(word, !theirs))
    }

    /// Removes the other set's positions.
    #[doc(alias("and_not", "subtract"))]
    pub fn difference_from<B: Storage>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.take(word, theirs))
    }

    /// Calls `change(word, theirs)` with the index of every word and the other set's value.
    /// `change` returns the bits that it changed.
    fn merge<B: Storage>(
        &self,
        other: &Bitmap<B>,
        change: impl Fn(usize, u64) -> u64,
    ) -> Result<bool, IncompatibleError> {
        if self.bound() != other.bound() {
            let (theirs, ours) = (other.bound(), self.bound());
            let text = format!("the other set's bound differs: {theirs} there, {ours} here");
            return Err(IncompatibleError(text));
        }
        let mut changed = 0;
        for (word, theirs) in other.all_values().enumerate() {
            // Before our own `Release`, so that publication passes through.
            acquire();
            changed |= change(word, theirs);
        }
        Ok(changed != 0)
    }
}
