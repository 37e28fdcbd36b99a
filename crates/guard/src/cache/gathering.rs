//! Single gets whose loads are gathered: those that come within a window are one `load_many`.

use crate::cache::error::BuilderError;
use crate::cache::landing::Landing;
use crate::cache::loads::Load;
use crate::cache::store::{Key, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The flights of a load that has yet to run.
pub(super) type Batch<K, V, F> = (Load, Vec<Landing<K, V, F>>);

pub(super) struct Gathering<K: Key + ?Sized, V: Value, F> {
    pub(super) window: Duration,
    max_keys: usize,
    /// The batch that takes flights now. The first one opens a [`Window`].
    open: Mutex<Option<Batch<K, V, F>>>,
}

/// What the get that added a flight has to do.
pub(super) enum Added<K: Key + ?Sized, V: Value, F> {
    /// Wait until the window is over.
    First(Window<K, V, F>),
    Further,
    /// Load it now.
    Full(Batch<K, V, F>),
}

impl<K: Key + ?Sized, V: Value, F> Gathering<K, V, F> {
    pub(super) fn new(window: Duration, max_keys: usize) -> Result<Arc<Self>, BuilderError> {
        if max_keys == 0 {
            return Err(BuilderError::options("gathered gets of at most 0 keys: the least is 1"));
        }
        Ok(Arc::new(Self {
            window,
            max_keys,
            open: Mutex::new(None),
        }))
    }

    /// Adds the flight that `begin` begins by the batch's load; or the error of `begin`.
    pub(super) fn add<E>(
        self: &Arc<Self>,
        begin: impl FnOnce(Load) -> Result<Landing<K, V, F>, E>,
    ) -> Result<(Load, Added<K, V, F>), E> {
        let mut open = self.open();
        let load = open.as_ref().map_or_else(Load::of_many, |(load, _)| *load);
        let landing = begin(load)?;
        let (_, landings) = open.get_or_insert_with(|| (load, Vec::new()));
        landings.push(landing);
        let count = landings.len();
        let added = match open.take_if(|_| count >= self.max_keys) {
            Some(batch) => Added::Full(batch),
            None if count > 1 => Added::Further,
            None => Added::First(Window {
                gathering: Arc::clone(self),
                load,
            }),
        };
        Ok((load, added))
    }

    fn open(&self) -> MutexGuard<'_, Option<Batch<K, V, F>>> {
        // After a panic of a key's `Clone`, the batch is as it was.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to end the batch. If the value is dropped, because the runtime drops its task, the
/// batch ends with an error.
pub(super) struct Window<K: Key + ?Sized, V: Value, F> {
    pub(super) gathering: Arc<Gathering<K, V, F>>,
    load: Load,
}

impl<K: Key + ?Sized, V: Value, F> Window<K, V, F> {
    /// `None` if the batch was full before.
    pub(super) fn close(&self) -> Option<Batch<K, V, F>> {
        self.gathering.open().take_if(|(load, _)| *load == self.load)
    }
}

impl<K: Key + ?Sized, V: Value, F> Drop for Window<K, V, F> {
    fn drop(&mut self) {
        drop(self.close());
    }
}
