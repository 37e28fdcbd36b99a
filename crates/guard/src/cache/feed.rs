//! Feeds of changes: what other processes write to the store. `follow.rs` applies them to a cache.

use crate::error::BoxError;
use std::time::Duration;

/// A change of the store, as a [`Feed`] tells it.
///
/// ```
/// use lanebloom_guard::{BlockingFeed, BoxError, Change, sync::GuardedCache};
/// use std::time::Duration;
///
/// /// A feed that tells these changes and breaks then.
/// struct Script(std::vec::IntoIter<Change<u64>>);
///
/// impl BlockingFeed<u64> for Script {
///     fn listen(&mut self, _: Duration) -> Result<(), BoxError> {
///         Ok(())
///     }
///
///     fn next(&mut self, _: Duration) -> Result<Change<u64>, BoxError> {
///         self.0.next().ok_or("the end".into())
///     }
/// }
///
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// let changes = vec![Change::Written(1), Change::Alive, Change::Removed(2)];
/// let feed = Script(changes.into_iter());
/// let following = cache.follow(feed, Duration::from_secs(60), |_| Ok(()));
/// while cache.stats().removed == 0 {
///     std::thread::yield_now();
/// }
/// assert_eq!((cache.stats().inserted, cache.stats().removed), (1, 1));
/// # following.stop();
/// # Ok::<(), BoxError>(())
/// ```
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
/// cache. [Several processes](crate#several-processes) describes what a feed must do.
///
/// A feed may delay changes, repeat them, and swap those of different keys. If it may have lost
/// one, `next` must fail.
///
/// ```
/// use lanebloom_guard::{BoxError, Change, Feed, future::GuardedCache};
/// use std::time::Duration;
/// use tokio::sync::mpsc;
///
/// /// A queue of ids that loses none.
/// struct Queue(mpsc::UnboundedReceiver<u64>);
///
/// impl Feed<u64> for Queue {
///     async fn listen(&mut self) -> Result<(), BoxError> {
///         Ok(())
///     }
///
///     async fn next(&mut self) -> Result<Change<u64>, BoxError> {
///         Ok(Change::Written(self.0.recv().await.ok_or("the queue is closed")?))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let read = async |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build(read)?;
/// let (send, receive) = mpsc::unbounded_channel();
/// let silence = Duration::from_secs(60);
/// let following = cache.follow(Queue(receive), silence, async |_| Ok(()));
/// let following = tokio::spawn(following);
/// send.send(17)?; // another process has written the row
/// while cache.stats().inserted == 0 {
///     tokio::task::yield_now().await;
/// }
/// # following.abort();
/// # Ok(()) }
/// ```
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

/// A [`Feed`] whose calls block, for [`sync::GuardedCache::follow`], whose example implements one,
/// as that of [`Change`] does. Everything that the page of `Feed` says holds for it, too.
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
