//! Passes keys from a source to a new filter: keys come in one by one and go out in batches.

use crate::error::{BoxError, RebuildError, RebuildErrorKind};
use crate::filter::CHUNK;
use std::fmt;

/// Takes all keys of the store during a [rebuild](crate#rebuilds). The source inserts each key as
/// it reads it.
///
/// ```
/// use lanebloom_guard::{BoxError, Keys, sync::GuardedCache};
///
/// /// The ids of a file, one a line, and a key beside them.
/// fn read_ids(text: &str, keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
///     for line in text.lines() {
///         keys.insert(line.parse()?)?;
///     }
///     Ok(keys.insert_all([0])?)
/// }
///
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// let rebuilt = cache.rebuild_now(|keys| read_ids("1\n2\n17\n", keys))?;
/// assert_eq!(rebuilt.keys, 4);
/// assert_eq!((cache.get(&17)?, cache.get(&18)?), (Some(17), None));
///
/// let error = cache.rebuild_now(|keys| read_ids("1\nann\n", keys)).unwrap_err();
/// assert_eq!(error.to_string(), "reading the keys failed");
/// let cause = std::error::Error::source(&error).unwrap();
/// assert_eq!(cause.to_string(), "invalid digit found in string");
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
pub struct Keys<'a, T> {
    batch: Vec<T>,
    count: usize,
    add: &'a mut (dyn FnMut(&[T]) -> Result<(), RebuildError> + Send),
    /// Why `add` failed. The rebuild fails with this error, even if the source ignores it.
    failed: Option<RebuildError>,
}

impl<T> Keys<'_, T> {
    /// Inserts a key that the store has.
    ///
    /// # Errors
    ///
    /// Fails if the rebuild was stopped, by
    /// [`sync::Background::stop`](crate::sync::Background::stop). Return then: no further key is
    /// accepted.
    pub fn insert(&mut self, key: T) -> Result<(), RebuildError> {
        self.batch.push(key);
        if self.batch.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }

    /// [`insert`](Self::insert) of many keys, such as a page of a table.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    pub fn insert_all(&mut self, keys: impl IntoIterator<Item = T>) -> Result<(), RebuildError> {
        keys.into_iter().try_for_each(|key| self.insert(key))
    }

    fn flush(&mut self) -> Result<(), RebuildError> {
        if let Some(error) = &self.failed {
            self.batch.clear();
            return Err(error.clone());
        }
        let added = (self.add)(&self.batch);
        self.count += self.batch.len();
        self.batch.clear();
        added.inspect_err(|error| self.failed = Some(error.clone()))
    }
}

/// Passes the keys of `source` to `insert`, in batches, and returns their number. In the blocking
/// mode `source` is ready at once. Fails if the source does, or once `is_stopped` is true.
pub(super) async fn read_keys<T, S>(
    source: &mut S,
    is_stopped: &mut (impl FnMut() -> bool + Send),
    mut insert: impl FnMut(&[T]) + Send,
) -> Result<usize, RebuildError>
where
    S: AsyncFnMut(&mut Keys<'_, T>) -> Result<(), BoxError>,
{
    let mut add = |batch: &[T]| {
        if is_stopped() {
            return Err(RebuildError(RebuildErrorKind::Stopped));
        }
        insert(batch);
        Ok(())
    };
    let mut keys = Keys {
        batch: Vec::with_capacity(CHUNK),
        count: 0,
        add: &mut add,
        failed: None,
    };
    let read = source(&mut keys).await;
    if let (None, Err(error)) = (&keys.failed, read) {
        return Err(RebuildError::unreadable(error));
    }
    keys.flush()?;
    Ok(keys.count)
}

impl<T> fmt::Debug for Keys<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count + self.batch.len();
        f.debug_struct("Keys").field("count", &count).finish_non_exhaustive()
    }
}
