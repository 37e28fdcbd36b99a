//! Ranges of positions, 64 at a time, and the search for a free one that claims it.

use super::read::{clamped, ends};
use super::words::masks;
use super::{ConcurrentBitmap, OutOfBoundsError, Store};
use crate::words::bits::{Load, acquire};
use core::ops::RangeBounds;

/// Ranges. They change 64 positions at a time; other threads see the parts as they are changed. A
/// range that ends before it begins is empty.
impl ConcurrentBitmap {
    /// Inserts every position of a range; returns how many were absent.
    ///
    /// Each position that it counts is a claim of this call, as with [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// If the range exceeds the bound. Then nothing is inserted. (A range without an end, as `7..`,
    /// goes to the bound.)
    ///
    /// # Examples
    ///
    /// ```
    /// let set = lanebloom::ConcurrentBitmap::new(1000)?;
    /// set.insert(150)?;
    /// assert_eq!(set.insert_range(100..200), Ok(99));
    /// assert_eq!(set.insert_range(990..), Ok(10));
    /// assert!(set.insert_range(0..1001).is_err() && set.len() == 110);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// let set = lanebloom::ConcurrentBitmap::new(1000)?;
    /// set.insert_range(100..200)?;
    /// assert_eq!(set.remove_range(150..2000), 50);
    /// assert_eq!((set.len(), set.remove_range(..), set.len()), (50, 50, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "clear")]
    pub fn remove_range(&self, range: impl RangeBounds<u64>) -> u64 {
        let unset = masks(clamped(range, self.bound()));
        let unset = unset.map(|(word, mask)| u64::from(self.bits.take(word, mask).count_ones()));
        unset.sum()
    }

    /// Inserts the first free position of a range and returns it, or `None` if all are present: an
    /// allocator of numbers. No two threads get the same position before it is removed.
    ///
    /// It searches from the start of the range, 64 positions at a time. If much is taken there,
    /// begin behind the last answer, and at 0 again if there is none.
    ///
    /// # Memory ordering
    ///
    /// As an [`insert`](Self::insert) that answers `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// let ids = lanebloom::ConcurrentBitmap::new(1000)?;
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
                // Otherwise another thread has claimed it meanwhile.
                if self.bits.add(word, lowest) != 0 {
                    return Some(64 * word as u64 + u64::from(lowest.trailing_zeros()));
                }
            }
        }
        acquire();
        None
    }
}
