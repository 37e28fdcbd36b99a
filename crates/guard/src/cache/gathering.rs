//! Gathers the loads of single gets: all loads within a window become one `load_many`.

use crate::cache::entries::{Key, Value};
use crate::cache::landing::Landing;
use crate::cache::loads::Load;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A load that has not run yet, and its flights.
pub(super) type Batch<K, V, F> = (Load, Vec<Landing<K, V, F>>);

pub(super) struct Gathering<K: Key + ?Sized, V: Value, F> {
    pub(super) window: Duration,
    max_keys: usize,
    /// The batch that accepts flights. Its first flight opens a [`Window`].
    open: Mutex<Option<Batch<K, V, F>>>,
}

/// The next step of a get that has added a flight.
pub(super) enum Added<K: Key + ?Sized, V: Value, F> {
    /// The flight is the first: wait until the window ends.
    First(Window<K, V, F>),
    Further,
    /// The batch is full: load it now.
    Full(Batch<K, V, F>),
}

impl<K: Key + ?Sized, V: Value, F> Gathering<K, V, F> {
    pub(super) fn new(window: Duration, max_keys: usize) -> Arc<Self> {
        Arc::new(Self {
            window,
            max_keys,
            open: Mutex::new(None),
        })
    }

    /// Adds the flight that `begin` begins with the batch's load. Fails if `begin` does.
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
        // A panic of a key's `Clone` leaves the batch unchanged.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the batch. If the value is dropped, because the runtime drops its task, the batch ends with
/// an error.
pub(super) struct Window<K: Key + ?Sized, V: Value, F> {
    pub(super) gathering: Arc<Gathering<K, V, F>>,
    load: Load,
}

impl<K: Key + ?Sized, V: Value, F> Window<K, V, F> {
    /// Takes the batch; `None` if it was full before.
    pub(super) fn close(&self) -> Option<Batch<K, V, F>> {
        self.gathering.open().take_if(|(load, _)| *load == self.load)
    }
}

impl<K: Key + ?Sized, V: Value, F> Drop for Window<K, V, F> {
    fn drop(&mut self) {
        drop(self.close());
    }
}
