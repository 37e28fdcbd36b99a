//! Why a stream of longs was not read: what `GuavaReadError` and `SparkReadError` say.

use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

#[derive(Debug)]
pub(crate) enum ReadError {
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

impl ReadError {
    pub(crate) fn is_truncated(&self) -> bool {
        matches!(self, Self::Truncated { .. })
    }

    pub(crate) fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            #[cfg(feature = "std")]
            Self::Io(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
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
