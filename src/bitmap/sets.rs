//! Union, intersection and difference with another bitmap, in place, beside other threads.

use super::{Bitmap, ConcurrentBitmap, Store};
use crate::error::IncompatibleError;
use crate::words::bits::acquire;
use alloc::format;

/// Operations with another set of the same bound, which may be a
/// [`BitmapView`](super::BitmapView) and in use meanwhile. Each returns whether this call changed
/// the set.
///
/// They go word by word. A thread that reads meanwhile finds some words as before and some as
/// after. Positions that other threads insert or remove meanwhile, here or in the other set, may
/// count as before or as after. Publication passes through: a thread that sees a position here sees
/// what the thread did that inserted it there.
///
/// # Errors
///
/// Each fails if the bounds differ.
impl ConcurrentBitmap {
    /// Inserts the other set's positions.
    ///
    /// A position that is present is not absent at any moment.
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    ///
    /// let (a, b) = (ConcurrentBitmap::new(1000)?, ConcurrentBitmap::new(1000)?);
    /// a.insert_range(0..10)?;
    /// b.insert_range(5..15)?;
    /// assert_eq!((a.union_from(&b), a.union_from(&b)), (Ok(true), Ok(false)));
    /// assert!(a.iter().eq(0..15));
    ///
    /// let error = a.union_from(&ConcurrentBitmap::new(999)?).unwrap_err();
    /// let text = "the other set's bound differs: 999 there, 1000 here";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "or")]
    pub fn union_from<B: Store>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.add(word, theirs))
    }

    /// Removes the positions that the other set lacks.
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    ///
    /// let (a, b) = (ConcurrentBitmap::new(1000)?, ConcurrentBitmap::new(1000)?);
    /// a.insert_range(0..10)?;
    /// b.insert_range(5..15)?;
    /// assert_eq!(a.intersection_from(&b), Ok(true));
    /// assert_eq!(a.intersection_from(&b), Ok(false));
    /// assert!(a.iter().eq(5..10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("and", "retain"))]
    pub fn intersection_from<B: Store>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.take(word, !theirs))
    }

    /// Removes the other set's positions.
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    ///
    /// let (a, b) = (ConcurrentBitmap::new(1000)?, ConcurrentBitmap::new(1000)?);
    /// a.insert_range(0..10)?;
    /// b.insert_range(5..15)?;
    /// assert_eq!(a.difference_from(&b), Ok(true));
    /// assert_eq!(a.difference_from(&b), Ok(false));
    /// assert!(a.iter().eq(0..5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("and_not", "subtract"))]
    pub fn difference_from<B: Store>(&self, other: &Bitmap<B>) -> Result<bool, IncompatibleError> {
        self.merge(other, |word, theirs| self.bits.take(word, theirs))
    }

    /// Calls `change` with the number of every word and the other set's value; it returns the bits
    /// that it changed.
    fn merge<B: Store>(
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
