//! The error of reading a filter of another system. Whoever detects a fault writes the message.

use alloc::format;
use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

/// Why bytes are not a filter of another system, or could not be read.
///
/// ```
/// use lanebloom_formats::{GuavaBloom, RedisBloom, SplitBlockBloom};
///
/// let error = GuavaBloom::from_bytes(&[1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 8 bytes of 22");
/// let error = RedisBloom::from_scandump([(1, b"none")], 1 << 20).unwrap_err();
/// assert_eq!(error.to_string(), "the header has 4 bytes, not 20");
/// let error = SplitBlockBloom::from_bitset(&[0; 40]).unwrap_err();
/// assert!(error.to_string().starts_with("40 bytes are not a whole number of"));
/// ```
#[derive(Debug)]
pub struct ReadError(Kind);

#[derive(Debug)]
enum Kind {
    Truncated(String),
    Invalid(String),
    OutOfMemory(BuildError),
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl ReadError {
    /// Whether the bytes ended before the filter did.
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
        matches!(self.0, Kind::Truncated(_))
    }

    pub(crate) fn truncated(problem: impl Into<String>) -> Self {
        Self(Kind::Truncated(problem.into()))
    }

    pub(crate) fn invalid(problem: impl Into<String>) -> Self {
        Self(Kind::Invalid(problem.into()))
    }

    /// For a filter whose memory could not be allocated. (No `From`: `?` would turn any error of a
    /// builder into one of reading.)
    pub(crate) fn out_of_memory(error: BuildError) -> Self {
        Self(Kind::OutOfMemory(error))
    }

    #[cfg(feature = "std")]
    pub(crate) fn io(error: std::io::Error) -> Self {
        Self(Kind::Io(error))
    }

    /// Fails if a filter takes more bytes than the limit.
    pub(crate) fn check_limit(needed: u64, limit: u64) -> Result<(), Self> {
        if needed <= limit {
            return Ok(());
        }
        Err(Self::invalid(format!(
            "the filter takes {needed} bytes, more than the limit of {limit} bytes"
        )))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Truncated(problem) | Kind::Invalid(problem) => f.write_str(problem),
            Kind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            Kind::Io(error) => write!(f, "the stream could not be read: {error}"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::OutOfMemory(error) => Some(error),
            #[cfg(feature = "std")]
            Kind::Io(error) => Some(error),
            Kind::Truncated(_) | Kind::Invalid(_) => None,
        }
    }
}
