//! A cell for the result of a load. Any number of gets wait for it, as futures or by blocking their
//! threads on such a future.

use crate::cache::error::LoadError;
use crate::cache::flights::Flight;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

pub(super) type Loaded<V> = Result<Option<V>, LoadError>;
pub(super) type FlightOf<V> = Arc<Flight<FillOnce<V>>>;

pub(super) struct FillOnce<V> {
    result: OnceLock<Loaded<V>>,
    filled: Notify,
}

impl<V> Default for FillOnce<V> {
    fn default() -> Self {
        Self {
            result: OnceLock::new(),
            filled: Notify::new(),
        }
    }
}

impl<V: Clone> FillOnce<V> {
    /// Sets the result, unless there is one.
    pub(super) fn fill(&self, result: Loaded<V>) {
        let _ = self.result.set(result);
        self.filled.notify_waiters();
    }

    pub(super) fn is_filled(&self) -> bool {
        self.result.get().is_some()
    }

    pub(super) async fn filled(&self) -> Loaded<V> {
        loop {
            // Created before the look, so that it notices every `fill` from here on.
            let filled = self.filled.notified();
            if let Some(result) = self.result.get() {
                return result.clone();
            }
            filled.await;
        }
    }
}
