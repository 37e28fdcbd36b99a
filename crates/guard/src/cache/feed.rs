//! Feeds of changes: what other processes write to the store. `future.rs` follows them.

use crate::cache::Cache;
use crate::cache::store::{Key, Value};
use crate::error::BoxError;
use crate::filter::GuardFilter;

/// A change of the store, as a [`Feed`] tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<K> {
    /// The store has a new row for the key, or has changed its row.
    Written(K),
    /// The store has removed the row of the key.
    Removed(K),
    /// A heartbeat: nothing has changed, and the feed is alive.
    Alive,
}

/// A feed of the changes that other processes make in the store: `LISTEN`/`NOTIFY`, Redis pub/sub,
/// a queue, a table of changes. [`follow`](crate::future::GuardedCache::follow) applies it to a
/// cache, and has an example.
///
/// A feed may delay changes, repeat them, and swap those of different keys. If it may have lost
/// one, `next` must fail.
pub trait Feed<K>: Send {
    /// Connects to the feed, again after a failure. Once it has returned, every change that is
    /// committed from now on comes by [`next`](Self::next), or a `next` fails.
    ///
    /// # Errors
    ///
    /// Fails if the feed cannot be reached. The next attempt comes after a pause.
    fn listen(&mut self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// The next change, or [`Change::Alive`] if there was none for a while.
    ///
    /// # Errors
    ///
    /// Fails if a change may be lost. `listen` is called next.
    fn next(&mut self) -> impl Future<Output = Result<Change<K>, BoxError>> + Send;
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    pub(super) fn apply(&self, change: Change<K::Owned>) {
        match change {
            Change::Written(key) => self.insert(&key),
            Change::Removed(key) => self.remove(&key),
            Change::Alive => {}
        }
    }
}
