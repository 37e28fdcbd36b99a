//! The errors of reading a stream of Guava's or Spark's.

use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

/// Why a stream is not a Bloom filter of Guava or of Spark, or could not be read.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::{GuavaBloom, SparkBloom};
///
/// let error = GuavaBloom::from_bytes(&[1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 8 bytes of 22");
/// assert!(error.is_truncated());
///
/// let stream = [0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0];
/// let error = SparkBloom::from_bytes(&stream).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 13 bytes of 28");
/// assert!(error.is_truncated());
/// ```
#[derive(Debug)]
pub struct JavaReadError(pub(crate) ReadError);

impl JavaReadError {
    /// Whether the stream ended before the filter did.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let error = |bytes| GuavaBloom::from_bytes(bytes).unwrap_err();
    /// assert!(error(&[1, 5, 0]).is_truncated());
    /// assert!(!error(&[9, 5, 0, 0, 0, 0]).is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, ReadError::Truncated { .. })
    }
}

impl fmt::Display for JavaReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for JavaReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            #[cfg(feature = "std")]
            ReadError::Io(error) => Some(error),
            ReadError::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// The causes.
#[derive(Debug)]
pub enum ReadError {
    Truncated {
        bytes: u64,
        needed: u64,
    },
    Invalid(String),
    OverLimit {
        needed: u64,
        limit: u64,
    },
    OutOfMemory(BuildError),
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes, needed } => write!(f, "the stream ends after {bytes} bytes of {needed}"),
            Self::Invalid(problem) => f.write_str(problem),
            Self::OverLimit { needed, limit } => write!(
                f,
                "the filter takes {needed} bytes, more than the limit of {limit} bytes"
            ),
            Self::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            Self::Io(error) => write!(f, "the stream could not be read: {error}"),
        }
    }
}
