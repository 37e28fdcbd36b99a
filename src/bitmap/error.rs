//! The error of a position that is too large.

use core::error::Error;
use core::fmt;

/// Why nothing was inserted into a [`ConcurrentBitmap`](super::ConcurrentBitmap): a position is not
/// below its bound.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBitmap;
///
/// let set = ConcurrentBitmap::new(100)?;
/// let error = set.insert_batch(&[1, 2, 117]).unwrap_err();
/// assert_eq!(error.position(), 117);
/// assert_eq!(error.to_string(), "position 117 is not below the bound of 100");
/// assert!(set.is_empty());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBoundsError {
    pub(super) position: u64,
    pub(super) bound: u64,
}

impl OutOfBoundsError {
    /// The position: in a batch, the first one that is too large; in a range, the last one.
    ///
    /// ```
    /// let set = lanebloom::ConcurrentBitmap::new(100)?;
    /// assert_eq!(set.insert_range(50..=120).unwrap_err().position(), 120);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl fmt::Display for OutOfBoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, bound } = self;
        write!(f, "position {position} is not below the bound of {bound}")
    }
}

impl Error for OutOfBoundsError {}
