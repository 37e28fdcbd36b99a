//! The errors of reading a stream of Guava's.

use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

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
pub struct GuavaReadError(pub(crate) GuavaReadErrorKind);

#[derive(Debug)]
pub(crate) enum GuavaReadErrorKind {
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
        matches!(self.0, GuavaReadErrorKind::Truncated { .. })
    }
}

impl fmt::Display for GuavaReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use GuavaReadErrorKind as Kind;
        match &self.0 {
            Kind::Truncated { bytes, needed } => write!(f, "the stream ends after {bytes} bytes of {needed}"),
            Kind::Invalid(problem) => f.write_str(problem),
            Kind::OverLimit { needed, limit } => write!(
                f,
                "the filter takes {needed} bytes, more than the limit of {limit} bytes"
            ),
            Kind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            Kind::Io(error) => write!(f, "the stream could not be read: {error}"),
        }
    }
}

impl Error for GuavaReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            #[cfg(feature = "std")]
            GuavaReadErrorKind::Io(error) => Some(error),
            GuavaReadErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}
