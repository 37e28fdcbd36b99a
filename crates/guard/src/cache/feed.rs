//! Feeds of changes: what other processes write to the store. `follow.rs` applies them to a cache.

use crate::error::BoxError;
use std::time::Duration;

/// A change of the store, as a [`Feed`] tells it. The example of [`BlockingFeed`] tells all three.
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
/// use lanebloom_guard::{BoxError, Change, Feed, Keys, future::GuardedCache};
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use tokio::sync::broadcast;
///
/// struct Messages(broadcast::Sender<u64>, Option<broadcast::Receiver<u64>>);
///
/// impl Feed<u64> for Messages {
///     async fn listen(&mut self) -> Result<(), BoxError> {
///         self.1 = Some(self.0.subscribe());
///         Ok(())
///     }
///
///     async fn next(&mut self) -> Result<Change<u64>, BoxError> {
///         let messages = self.1.as_mut().ok_or("not listening")?;
///         Ok(Change::Written(messages.recv().await?)) // fails if it lags
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let read = async |id: u64| Ok::<_, Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build(read)?;
/// let (send, _) = broadcast::channel(1000);
/// let feed = Messages(send.clone(), None);
/// let silence = Duration::from_secs(60);
/// let all = async |keys: &mut Keys<'_, u64>| Ok(keys.insert_all([1, 2])?);
/// let following = tokio::spawn(cache.follow(feed, silence, all));
/// while !cache.is_ready() {
///     tokio::task::yield_now().await; // the first rebuild
/// }
/// assert_eq!(cache.get(&3).await?, None);
/// send.send(3)?; // another process has added the row
/// while cache.get(&3).await? != Some(3) {
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

/// A [`Feed`] whose calls block, for
/// [`sync::GuardedCache::follow`](crate::sync::GuardedCache::follow). Everything that the page of
/// `Feed` says holds for it, too.
///
/// ```
/// use lanebloom_guard::{BlockingFeed, BoxError, Change, sync::GuardedCache};
/// use std::convert::Infallible;
/// use std::sync::mpsc::{self, Receiver};
/// use std::time::Duration;
///
/// /// A queue that loses no change.
/// struct Queue(Receiver<Change<u64>>);
///
/// impl BlockingFeed<u64> for Queue {
///     fn listen(&mut self, _: Duration) -> Result<(), BoxError> {
///         Ok(())
///     }
///
///     fn next(&mut self, timeout: Duration) -> Result<Change<u64>, BoxError> {
///         Ok(self.0.recv_timeout(timeout)?)
///     }
/// }
///
/// let read = |id: u64| Ok::<_, Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// let (send, receive) = mpsc::channel();
/// let silence = Duration::from_secs(60);
/// let all = [1, 2];
/// let following =
///     cache.follow(Queue(receive), silence, move |to| Ok(to.insert_all(all)?));
/// while !cache.is_ready() {
///     std::thread::yield_now(); // the first rebuild
/// }
/// assert_eq!(cache.get(&3)?, None);
/// send.send(Change::Alive)?;
/// send.send(Change::Written(3))?; // another process has added the row
/// while cache.get(&3)? != Some(3) {
///     std::thread::yield_now();
/// }
/// send.send(Change::Removed(2))?;
/// drop(send); // the feed breaks
/// while cache.is_ready() {
///     std::thread::yield_now();
/// }
/// following.stop();
/// assert_eq!((cache.stats().inserted, cache.stats().removed), (1, 1));
/// # Ok::<(), BoxError>(())
/// ```
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
