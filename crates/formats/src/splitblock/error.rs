//! The error of reading a split-block filter.

use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

/// Why bytes are not a split-block filter.
///
/// ```
/// use lanebloom_formats::SplitBlockBloom;
///
/// let error = SplitBlockBloom::from_bitset(&[0; 40]).unwrap_err();
/// assert!(error.to_string().starts_with("40 bytes are not a whole number of"));
/// ```
#[derive(Debug)]
pub struct SplitBlockReadError(pub(crate) SplitBlockReadErrorKind);

#[derive(Debug)]
pub(crate) enum SplitBlockReadErrorKind {
    Truncated { bytes: usize, needed: usize },
    Invalid(String),
    OutOfMemory(BuildError),
}

impl SplitBlockReadError {
    /// Whether the bytes ended before the filter did.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let bytes = SplitBlockBloom::with_bytes(64)?.to_parquet()?;
    /// let error = |bytes| SplitBlockBloom::from_parquet(bytes).unwrap_err();
    /// assert!(error(&bytes[..70]).is_truncated());
    /// assert!(!error(&[0xff; 70]).is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, SplitBlockReadErrorKind::Truncated { .. })
    }
}

impl fmt::Display for SplitBlockReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SplitBlockReadErrorKind as Kind;
        match &self.0 {
            Kind::Truncated { bytes, needed } => {
                write!(f, "the bytes end after {bytes} of at least {needed}")
            }
            Kind::Invalid(problem) => f.write_str(problem),
            Kind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
        }
    }
}

impl Error for SplitBlockReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            SplitBlockReadErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}
