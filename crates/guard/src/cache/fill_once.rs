//! Where the result of a load is put, and any number of gets wait for it: as futures, or by
//! blocking their threads.

use crate::cache::error::LoadError;
use crate::cache::flights::Flight;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;

pub(super) type Loaded<V> = Result<Option<V>, LoadError>;
pub(super) type FlightOf<V> = Arc<Flight<FillOnce<V>>>;

pub(super) struct FillOnce<V> {
    result: OnceLock<Loaded<V>>,
    /// Wakes the futures.
    filled: Notify,
    /// Wakes the threads. (`OnceLock::wait` needs Rust 1.86.)
    woken: Condvar,
    /// Guards no data. A thread holds it from its look at the result until it sleeps.
    sleep: Mutex<()>,
}

impl<V> Default for FillOnce<V> {
    fn default() -> Self {
        Self {
            result: OnceLock::new(),
            filled: Notify::new(),
            woken: Condvar::new(),
            sleep: Mutex::new(()),
        }
    }
}

impl<V: Clone> FillOnce<V> {
    /// The first result stays.
    pub(super) fn fill(&self, result: Loaded<V>) {
        let _ = self.result.set(result);
        // A thread that saw no result is asleep once this has the lock.
        drop(self.sleep.lock());
        self.woken.notify_all();
        self.filled.notify_waiters();
    }

    pub(super) fn is_filled(&self) -> bool {
        self.result.get().is_some()
    }

    /// Blocks the thread.
    pub(super) fn wait(&self) -> Loaded<V> {
        loop {
            if let Some(result) = self.result.get() {
                return result.clone();
            }
            let sleep = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.woken.wait_while(sleep, |()| !self.is_filled()));
        }
    }

    pub(super) async fn filled(&self) -> Loaded<V> {
        // Made before the look: it hears of every `fill` from here on.
        let filled = self.filled.notified();
        if !self.is_filled() {
            filled.await;
        }
        self.wait()
    }
}
