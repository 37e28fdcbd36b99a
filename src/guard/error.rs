//! The errors of a rebuild.

use crate::error::BuildError;
use core::error::Error;
use core::fmt;

/// Why a rebuild of a [`CacheGuard`](crate::CacheGuard) could not begin.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let error = guard.rebuild_with_capacity(1000, 2.0).unwrap_err();
/// let text = "the new filter could not be built: false-positive rate 2 is not ";
/// assert!(error.to_string().starts_with(text));
/// assert!(!error.is_in_progress());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RebuildError(pub(crate) RebuildErrorKind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RebuildErrorKind {
    InProgress,
    Refused,
    Build(BuildError),
}

impl RebuildError {
    /// Whether another rebuild of the same guard is under way.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let first = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert!(guard.rebuild_with_capacity(1000, 0.01).unwrap_err().is_in_progress());
    /// drop(first);
    /// assert!(guard.rebuild_with_capacity(1000, 0.01).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        self.0 == RebuildErrorKind::InProgress
    }

    /// Whether the new filter had no room for a key, so that it was not committed.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, CuckooFilter};
    ///
    /// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
    /// let guard = CacheGuard::<u64, _>::new(filter);
    /// let rebuild = guard.rebuild(CuckooFilter::with_capacity(10, 0.01)?)?;
    /// assert!(rebuild.insert_all(0..1000).is_err());
    /// let error = rebuild.try_commit().unwrap_err();
    /// assert!(error.is_refused());
    /// let text = "the new filter has no room for all keys; ";
    /// assert!(error.to_string().starts_with(text));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.0 == RebuildErrorKind::Refused
    }
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RebuildErrorKind::InProgress => {
                f.write_str("a rebuild of this guard is in progress; commit or drop it first")
            }
            RebuildErrorKind::Refused => {
                f.write_str("the new filter has no room for all keys; the guard goes on with the old one")
            }
            RebuildErrorKind::Build(error) => write!(f, "the new filter could not be built: {error}"),
        }
    }
}

impl Error for RebuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            RebuildErrorKind::InProgress | RebuildErrorKind::Refused => None,
            RebuildErrorKind::Build(error) => Some(error),
        }
    }
}
