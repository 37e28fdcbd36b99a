//! The errors of reading a stream of Guava's.

use crate::java::error::ReadError;
use core::error::Error;
use core::fmt;

/// Why a stream is not one of Guava's Bloom filters, or could not be read.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::guava::GuavaBloom;
///
/// let error = GuavaBloom::from_bytes(&[1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 8 bytes of 22");
/// assert!(error.is_truncated());
/// ```
#[derive(Debug)]
pub struct GuavaReadError(pub(crate) ReadError);

impl GuavaReadError {
    /// Whether the stream ended before the filter did.
    ///
    /// ```
    /// use lanebloom_formats::guava::GuavaBloom;
    ///
    /// let error = |bytes| GuavaBloom::from_bytes(bytes).unwrap_err();
    /// assert!(error(&[1, 5, 0]).is_truncated());
    /// assert!(!error(&[9, 5, 0, 0, 0, 0]).is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.0.is_truncated()
    }
}

impl fmt::Display for GuavaReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for GuavaReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
