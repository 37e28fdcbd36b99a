//! The error of a rebuild.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// An error of any type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a rebuild could not begin, or was not committed. The guard keeps its old filter.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
/// let error = guard.rebuild_with_capacity(1000, 0.01).unwrap_err();
/// assert!(error.is_in_progress() && !error.is_refused());
///
/// drop(rebuild);
/// let error = guard.rebuild_with_capacity(1000, 2.0).unwrap_err();
/// assert!(!error.is_in_progress() && !error.is_refused());
/// assert_eq!(error.to_string(), "the new filter could not be built");
/// let cause = std::error::Error::source(&error).unwrap().to_string();
/// assert!(cause.starts_with("false-positive rate 2 is not "));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
// Not `PartialEq`: it may hold any error, and most of those have no equality.
#[derive(Clone, Debug)]
pub struct RebuildError(pub(crate) RebuildErrorKind);

#[derive(Clone, Debug)]
pub(crate) enum RebuildErrorKind {
    InProgress,
    Refused,
    Build(Arc<dyn Error + Send + Sync>),
    /// The source of the keys failed.
    #[cfg(feature = "cache")]
    Keys(Arc<dyn Error + Send + Sync>),
    #[cfg(feature = "cache")]
    Stopped,
}

impl RebuildError {
    pub(crate) fn build(error: impl Into<BoxError>) -> Self {
        Self(RebuildErrorKind::Build(error.into().into()))
    }

    #[cfg(feature = "cache")]
    pub(crate) fn unreadable(error: BoxError) -> Self {
        Self(RebuildErrorKind::Keys(error.into()))
    }

    /// Whether another rebuild of the same guard is under way.
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        matches!(self.0, RebuildErrorKind::InProgress)
    }

    /// Whether the new filter had no room for a key. It was not committed. The example of
    /// [`Rebuild::commit`](crate::Rebuild::commit) calls it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0, RebuildErrorKind::Refused)
    }
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RebuildErrorKind::InProgress => f.write_str("another rebuild of this guard is in progress"),
            RebuildErrorKind::Refused => {
                f.write_str("the new filter has no room for all keys; rebuild into a larger one")
            }
            RebuildErrorKind::Build(_) => f.write_str("the new filter could not be built"),
            #[cfg(feature = "cache")]
            RebuildErrorKind::Keys(_) => f.write_str("reading the keys failed"),
            #[cfg(feature = "cache")]
            RebuildErrorKind::Stopped => f.write_str("the rebuilds were stopped"),
        }
    }
}

impl Error for RebuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            RebuildErrorKind::Build(error) => Some(&**error),
            #[cfg(feature = "cache")]
            RebuildErrorKind::Keys(error) => Some(&**error),
            _ => None,
        }
    }
}

#[cfg(feature = "cache")]
pub(crate) fn error_of_panic(payload: Box<dyn std::any::Any + Send>) -> BoxError {
    format!("a panic: {}", text_of_panic(&*payload)).into()
}

#[cfg(feature = "cache")]
pub(crate) fn text_of_panic(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}
