//! The errors of reading a stream of Spark's.

use crate::java::error::ReadError;
use core::error::Error;
use core::fmt;

/// Why a stream is not one of Spark's Bloom filters, or could not be read.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::SparkBloom;
///
/// let stream = [0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0];
/// let error = SparkBloom::from_bytes(&stream).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 13 bytes of 28");
/// assert!(error.is_truncated());
/// ```
#[derive(Debug)]
pub struct SparkReadError(pub(crate) ReadError);

impl SparkReadError {
    /// Whether the stream ended before the filter did.
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let error = |bytes| SparkBloom::from_bytes(bytes).unwrap_err();
    /// assert!(error(&[0, 0, 0, 2, 0]).is_truncated());
    /// assert!(!error(&[0, 0, 0, 3, 0]).is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.0.is_truncated()
    }
}

impl fmt::Display for SparkReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SparkReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
