//! The errors of loads and of builders.

use crate::error::{BoxError, text_of_panic};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Why a load failed. Every get that waited for the load returns a clone.
///
/// The loader's error is its [`source`](std::error::Error::source), which its text does not repeat:
/// print the chain, as `{:#}` of anyhow and the subscribers of `tracing` do.
///
/// ```
/// use lanebloom_guard::sync::GuardedCache;
/// use std::io::{self, ErrorKind};
///
/// # std::panic::set_hook(Box::new(|_| {}));
/// let read = |id| match id {
///     17 => Err::<Option<u32>, _>(io::Error::from(ErrorKind::TimedOut)),
///     _ => panic!("a bug at {id}"),
/// };
/// let cache = GuardedCache::<u64, u32>::builder().build_blocking(read)?;
/// let error = cache.get(&17).unwrap_err();
/// assert_eq!(error.to_string(), "the load failed");
/// let cause = error.downcast_ref::<io::Error>().unwrap();
/// assert_eq!(cause.kind(), ErrorKind::TimedOut);
///
/// let error = cache.get(&18).unwrap_err();
/// assert!(error.is_panic());
/// assert_eq!(error.to_string(), "the loader panicked: a bug at 18");
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoadError(pub(super) LoadErrorKind);

pub(super) type Loaded<V> = Result<Option<V>, LoadError>;

/// The result of a loader's call, whose panic was caught.
pub(super) fn loaded<T, E: Into<BoxError>>(caught: thread::Result<Result<T, E>>) -> Result<T, LoadError> {
    match caught {
        Ok(result) => result.map_err(|error| LoadError(LoadErrorKind::Failed(error.into().into()))),
        Err(payload) => Err(LoadError(LoadErrorKind::Panicked(text_of_panic(&*payload).into()))),
    }
}

#[derive(Clone, Debug)]
pub(super) enum LoadErrorKind {
    Failed(Arc<dyn Error + Send + Sync>),
    Panicked(Arc<str>),
    Abandoned,
    Cycle {
        /// Whether the get blocked its thread.
        blocks: bool,
    },
    TimedOut(Duration),
    /// The limits of loads that run and that wait.
    Refused {
        at_once: usize,
        waiting: usize,
    },
}

impl LoadError {
    /// The loader's error, if it has this type.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match &self.0 {
            LoadErrorKind::Failed(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Whether the load waits for itself: its loader [gets a
    /// key](crate#loaders-that-get-other-keys) whose row needs this one. If that loader returns
    /// this error, the load's own error contains it: see [`downcast_ref`](Self::downcast_ref).
    ///
    /// Where gets block, the get may also be other code, which the loading thread ran while its
    /// loader waited: a worker of rayon does so.
    ///
    /// ```
    /// use lanebloom_guard::{LoadError, sync::GuardedCache};
    /// use std::sync::OnceLock;
    ///
    /// static CACHE: OnceLock<GuardedCache<u64, u64>> = OnceLock::new();
    /// // Each row needs that of the other key, 1 or 2.
    /// let read = |id: u64| CACHE.get().unwrap().get(&(3 - id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// let cache = CACHE.get_or_init(|| cache);
    /// cache.insert_batch(&[1, 2]);
    ///
    /// let of_one = cache.get(&1).unwrap_err();
    /// let of_two: &LoadError = of_one.downcast_ref().unwrap();
    /// let of_get: &LoadError = of_two.downcast_ref().unwrap();
    /// assert!(of_get.is_cycle() && !of_one.is_cycle());
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    #[must_use]
    pub fn is_cycle(&self) -> bool {
        matches!(self.0, LoadErrorKind::Cycle { .. })
    }

    /// Whether the load took longer than the [`load_timeout`](crate::CacheBuilder::load_timeout),
    /// whose example calls this. (If the loader has its own timeout, that is an error of the
    /// loader.)
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0, LoadErrorKind::TimedOut(_))
    }

    /// Whether the load was refused, because too many ran and waited: the example of
    /// [`load_limit`](crate::CacheBuilder::load_limit) calls this. The store was not asked. A
    /// service should respond with 503.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0, LoadErrorKind::Refused { .. })
    }

    /// Whether the loader panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.0, LoadErrorKind::Panicked(_))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            LoadErrorKind::Failed(_) => f.write_str("the load failed"),
            LoadErrorKind::Panicked(text) => write!(f, "the loader panicked: {text}"),
            LoadErrorKind::Abandoned => f.write_str("the runtime shut down before the load ended"),
            LoadErrorKind::TimedOut(timeout) => write!(f, "the load took longer than {timeout:?}"),
            LoadErrorKind::Refused { at_once, waiting } => {
                let running = match at_once {
                    1 => "1 load runs",
                    n => &format!("{n} loads run"),
                };
                write!(f, "the load was refused: {running} and {waiting} wait, the limit")
            }
            LoadErrorKind::Cycle { blocks } => {
                f.write_str("the load waits for itself: its loader gets a key whose row needs this one")?;
                match blocks {
                    true => f.write_str(", or its thread runs this get while it waits, as a worker of rayon does"),
                    false => Ok(()),
                }
            }
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            LoadErrorKind::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Why a [`CacheBuilder`](crate::CacheBuilder) could not build a cache.
///
/// ```
/// use lanebloom_guard::lanebloom::BuildError;
/// use lanebloom_guard::{CacheBuildError, sync::GuardedCache};
/// use std::error::Error;
///
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let builder = GuardedCache::<u64, u64>::builder().false_positive_rate(2.0);
/// let error: CacheBuildError = builder.build_blocking(read).unwrap_err();
/// assert_eq!(error.to_string(), "the filter could not be built");
/// assert!(error.source().unwrap().is::<BuildError>());
/// ```
#[derive(Clone, Debug)]
pub struct CacheBuildError {
    text: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl CacheBuildError {
    pub(super) fn filter(error: BoxError) -> Self {
        Self {
            text: "the filter could not be built".into(),
            source: Some(error.into()),
        }
    }

    /// For options that are out of range, or contradict each other.
    pub(super) fn options(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            source: None,
        }
    }
}

impl fmt::Display for CacheBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for CacheBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|error| error as _)
    }
}
