//! Feeds of changes: what other processes write to the store. `follow.rs` applies them to a cache.

use crate::error::BoxError;
use std::time::Duration;

/// A change of the store, as a [`Feed`] tells it. The examples of `follow`
/// ([async](crate::future::GuardedCache::follow), [blocking](crate::sync::GuardedCache::follow))
/// apply one.
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
/// cache, and its example implements one. [Several processes](crate#several-processes) describes
/// what a feed must do.
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

    /// The next change, or [`Change::Alive`] if there was none for a while. The change before has
    /// been applied to the cache when this is called.
    ///
    /// # Errors
    ///
    /// Fails if a change may be lost. `listen` is called next.
    fn next(&mut self) -> impl Future<Output = Result<Change<K>, BoxError>> + Send;
}

/// A [`Feed`] whose calls block, for [`sync::GuardedCache::follow`], whose example implements one.
/// Everything that the page of `Feed` says holds for it, too.
///
/// [`sync::GuardedCache::follow`]: crate::sync::GuardedCache::follow
pub trait BlockingFeed<K>: Send {
    /// [`Feed::listen`], for at most `timeout`.
    ///
    /// # Errors
    ///
    /// Fails if the feed cannot be reached in this time.
    fn listen(&mut self, timeout: Duration) -> Result<(), BoxError>;

    /// [`Feed::next`], for at most `timeout`. Nothing else ends a wait for a server that is frozen:
    /// so give the timeout to the feed's client.
    ///
    /// # Errors
    ///
    /// Fails if nothing comes in this time, or if a change may be lost. `listen` is called next.
    fn next(&mut self, timeout: Duration) -> Result<Change<K>, BoxError>;
}
