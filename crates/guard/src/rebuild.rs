//! Rebuilds of the filter, once or on a schedule, from all keys of the store.

use crate::cache::GuardedCache;
use crate::error::RebuildErrorKind;
use crate::future::catch_panic;
use crate::mode::Mode;
use crate::sync::Blocking;
use crate::{BoxError, Key, RebuildError};
use futures_core::Stream;
use lanebloom::{GuardFilter, Rebuild};
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tracing::{Instrument, Span, info, info_span, warn};

/// What a rebuild did.
///
/// ```
/// # use lanebloom_guard::GuardedCache;
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let builder = GuardedCache::<u64, u64>::builder().expected_keys(100);
/// let cache = builder.build_blocking(read)?;
/// let rebuilt = cache.rebuild_now(|| [Ok::<_, &str>(Vec::from_iter(0..1000))])?;
/// // Too many: so it read them again, into a filter with room for a quarter more.
/// assert_eq!((rebuilt.keys, rebuilt.capacity), (1000, 1250));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// Keys that the source had.
    pub keys: usize,
    /// Keys that the new filter was made for.
    pub capacity: usize,
    /// From the beginning to the commit.
    pub duration: Duration,
}

/// The rebuilds so far, and what the next one needs.
pub(crate) struct History {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) last: Option<(Instant, Rebuilt)>,
    /// Keys that the filter was made for.
    pub(crate) capacity: usize,
    /// Keys in the store at the last rebuild, and the number of changes before it.
    keys: u64,
    added: u64,
    removed: u64,
}

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            completed: 0,
            failed: 0,
            last: None,
            capacity,
            keys: 0,
            added: 0,
            removed: 0,
        }
    }
}

/// A rebuild that reads keys.
struct Attempt<'a, K: Key + ?Sized, F: GuardFilter> {
    rebuild: Rebuild<'a, K, F>,
    keys: usize,
    capacity: usize,
    began: Instant,
    /// Before the keys were read: added and removed keys count again for the next rebuild, rather
    /// than not at all.
    added: u64,
    removed: u64,
}

impl<K: Key + ?Sized, F: GuardFilter> Attempt<'_, K, F> {
    fn add<E: Into<BoxError>>(&mut self, batch: Result<Vec<K::Owned>, E>) -> Result<(), RebuildError> {
        let batch = batch.map_err(|error| RebuildError(RebuildErrorKind::Keys(error.into())))?;
        self.keys += batch.len();
        // A refused key makes the commit fail. The others still count.
        let _ = self.rebuild.insert_batch(&batch);
        Ok(())
    }
}

impl<K, V, F, M> GuardedCache<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// Whether the filter was filled: by a rebuild, by [`restore`](Self::restore), or by the word
    /// of [`mark_ready`](Self::mark_ready). Until then every key passes the filter, since it may be
    /// valid. A service that must not let made-up keys through waits for it before it serves.
    ///
    /// It stays true if the filter refuses a key later: see
    /// [`Figures::is_open`](crate::Figures::is_open).
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>((id < 4).then_some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// assert!(!cache.is_ready());
    /// assert_eq!((cache.get(&3)?, cache.get(&4)?), (Some(3), None));
    /// assert_eq!(cache.stats().loads, 2);
    ///
    /// cache.rebuild_now(|| [Ok::<_, &str>(vec![1, 2, 3])])?;
    /// assert!(cache.is_ready());
    /// assert_eq!((cache.get(&3)?, cache.get(&5)?), (Some(3), None));
    /// assert_eq!((cache.stats().loads, cache.stats().turned_away), (2, 1));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn is_ready(&self) -> bool {
        self.0.guard.is_ready()
    }

    /// The filter has all keys of the store: from now on, it turns others away. For three cases in
    /// which nothing is rebuilt or restored: the store is empty, all its keys were
    /// [`added_many`](Self::added_many) before, or the [`filter`](crate::Builder::filter) had them
    /// from the beginning (a `SharedBloom`, for example).
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.added_many(&[1, 2, 3]);
    /// assert!(cache.guard().check(&4).is_some());
    /// cache.mark_ready();
    /// assert!(cache.guard().check(&4).is_none());
    /// assert!(cache.is_ready() && cache.guard().check(&3).is_some());
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn mark_ready(&self) {
        self.0.guard.mark_ready();
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys in the store: those of the last rebuild, with the changes since.
    ///
    /// They are at most the filter's own number of keys, `in_filter`, since it has all of them. An
    /// update counts as added, although the filter had the key: without this limit, a million
    /// updates of one row would look like a million rows. (The last rebuild's count is exact, and
    /// the filter's an estimate, which may be less.)
    pub(crate) fn known_keys(&self, in_filter: usize) -> u64 {
        let stats = self.0.counts.sum();
        let history = self.history();
        let added = stats.added.saturating_sub(history.added);
        let removed = stats.removed.saturating_sub(history.removed);
        let keys = (history.keys + added).saturating_sub(removed);
        keys.min(history.keys.max(in_filter as u64))
    }

    /// For a filter that another process filled, and that has so many keys by its own estimate.
    pub(crate) fn note_restored(&self, keys: u64, in_filter: usize, capacity: usize) {
        let mut history = self.history();
        (history.keys, history.capacity) = (keys.min(in_filter as u64), capacity);
    }

    /// With room for a quarter more than there are now.
    fn next_capacity(&self) -> usize {
        let keys = self.known_keys(self.0.guard.filter().figures().len);
        with_room(keys.try_into().unwrap_or(usize::MAX)).max(self.0.plan.expected_keys)
    }

    fn begin(&self, capacity: usize) -> Result<Attempt<'_, K, F>, RebuildError> {
        let began = Instant::now();
        let filter = (self.0.plan.make)(capacity).map_err(|error| RebuildError(RebuildErrorKind::Filter(error)))?;
        let rebuild = self.0.guard.rebuild(filter);
        let rebuild = rebuild.map_err(|error| RebuildError(RebuildErrorKind::Guard(error)))?;
        let stats = self.0.counts.sum();
        Ok(Attempt {
            rebuild,
            keys: 0,
            capacity,
            began,
            added: stats.added,
            removed: stats.removed,
        })
    }

    /// `Err` with the capacity that the next attempt needs.
    fn end(&self, attempt: Attempt<'_, K, F>) -> Result<Result<Rebuilt, usize>, RebuildError> {
        if attempt.keys > attempt.capacity {
            info!(
                keys = attempt.keys,
                capacity = attempt.capacity,
                "the store has outgrown the filter"
            );
            return Ok(Err(with_room(attempt.keys)));
        }
        let committed = attempt.rebuild.try_commit();
        committed.map_err(|error| RebuildError(RebuildErrorKind::Guard(error)))?;
        let rebuilt = Rebuilt {
            keys: attempt.keys,
            capacity: attempt.capacity,
            duration: attempt.began.elapsed(),
        };
        let mut history = self.history();
        history.last = Some((Instant::now(), rebuilt));
        history.capacity = attempt.capacity;
        history.keys = attempt.keys as u64;
        (history.added, history.removed) = (attempt.added, attempt.removed);
        Ok(Ok(rebuilt))
    }

    fn note(&self, result: &Result<Rebuilt, RebuildError>) {
        let mut history = self.history();
        match result {
            Ok(rebuilt) => {
                history.completed += 1;
                info!(rebuilt.keys, rebuilt.capacity, ?rebuilt.duration, "rebuilt");
            }
            Err(error) => {
                history.failed += 1;
                warn!(%error, "the rebuild failed");
            }
        }
    }

    /// A panic of the source is an error, or the schedule would end with it.
    fn unless_panicked(&self, result: thread::Result<Result<Rebuilt, RebuildError>>) -> Result<Rebuilt, RebuildError> {
        result.unwrap_or_else(|payload| {
            let result = Err(RebuildError::panicked(&*payload));
            self.note(&result);
            result
        })
    }

    /// None before a cache is ready: until then made-up keys reach the store.
    fn first_pause(&self, interval: Duration) -> Duration {
        match self.is_ready() {
            true => pause(interval, 0),
            false => Duration::ZERO,
        }
    }

    fn span(&self) -> Span {
        info_span!("rebuild", cache = self.0.name)
    }
}

fn with_room(keys: usize) -> usize {
    keys.saturating_add(keys / 4)
}

/// The time to the next rebuild: `interval` give or take a tenth, so that processes that started
/// together do not read the store together. After failures it is a second, two, four and so on, up
/// to `interval`, less up to half of it.
fn pause(interval: Duration, failures: u32) -> Duration {
    let random = RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64;
    let (time, part) = match failures {
        0 => (interval, 0.9 + 0.2 * random),
        n => {
            let backoff = Duration::from_secs(1).saturating_mul(1 << (n - 1).min(20));
            (backoff.min(interval), 0.5 + 0.5 * random)
        }
    };
    // An interval without end has no tenth more.
    Duration::try_from_secs_f64(time.as_secs_f64() * part).unwrap_or(Duration::MAX)
}

/// The number of failures in a row, after this result.
fn failures(before: u32, result: &Result<Rebuilt, RebuildError>) -> u32 {
    match result {
        // The other rebuild reads the same store.
        Err(error) if !error.is_in_progress() => before.saturating_add(1),
        _ => 0,
    }
}

/// Rebuilds of the asynchronous mode.
impl<K, V, F> GuardedCache<K, V, F>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter + Send + Sync + 'static,
{
    /// Replaces the filter by one that holds exactly the keys of `source`, and those that are added
    /// meanwhile. Removed keys are turned away after.
    ///
    /// `source` makes a stream of all keys in the store, in batches of some thousands, say. It is
    /// called after the rebuild has begun, and a second time if there are more keys than the new
    /// filter was made for; then the filter gets room for a quarter more. The old filter serves
    /// meanwhile. If the future is dropped, the old filter stays.
    ///
    /// # Errors
    ///
    /// Fails if the source fails, if the filter cannot be built or has no room, or if another
    /// rebuild is under way. The old filter stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::stream;
    /// use lanebloom_guard::{BoxError, GuardedCache};
    /// use std::convert::Infallible;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build(read)?;
    /// // SELECT id FROM rows, say
    /// let keys = || stream::iter([Ok::<_, BoxError>(vec![1, 2]), Ok(vec![3])]);
    /// assert_eq!(cache.rebuild_now(keys).await?.keys, 3);
    /// assert_eq!(cache.get(&3).await?, Some(3));
    /// assert_eq!(cache.get(&4).await?, None);
    /// # Ok(()) }
    /// ```
    pub async fn rebuild_now<S, E>(&self, source: impl Fn() -> S) -> Result<Rebuilt, RebuildError>
    where
        S: Stream<Item = Result<Vec<K::Owned>, E>>,
        E: Into<BoxError>,
    {
        let rebuild = async {
            let mut capacity = self.next_capacity();
            loop {
                let mut attempt = self.begin(capacity)?;
                let mut batches = pin!(source());
                while let Some(batch) = poll_fn(|context| batches.as_mut().poll_next(context)).await {
                    attempt.add(batch)?;
                    // A source that is always ready must not keep the thread.
                    tokio::task::yield_now().await;
                }
                match self.end(attempt)? {
                    Ok(rebuilt) => return Ok(rebuilt),
                    Err(larger) => capacity = larger,
                }
            }
        };
        async {
            let result = rebuild.await;
            self.note(&result);
            result
        }
        .instrument(self.span())
        .await
    }

    /// Calls [`rebuild_now`](Self::rebuild_now) about every `interval`, until the returned value is
    /// dropped or [stopped](Rebuilds::stop): first at once, or after one interval if the cache [is
    /// ready](Self::is_ready).
    ///
    /// The intervals vary by a tenth, so that processes that were started together do not read the
    /// store together. After an error or a panic of `source` the next attempt comes within a
    /// second; then the pauses double, up to `interval`.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::stream;
    /// use lanebloom_guard::{BoxError, GuardedCache};
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), BoxError> {
    /// let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build(read)?;
    /// let keys = || stream::iter([Ok::<_, BoxError>(vec![1, 2, 3])]);
    /// let rebuilds = cache.rebuild_every(Duration::from_secs(3600), keys);
    /// while !cache.is_ready() {
    ///     tokio::task::yield_now().await; // the first rebuild
    /// }
    /// assert_eq!((cache.get(&3).await?, cache.get(&4).await?), (Some(3), None));
    /// # tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    /// # assert!((3..=4).contains(&cache.figures().rebuilds));
    /// // at shutdown:
    /// rebuilds.stop().await;
    /// # Ok(()) }
    /// ```
    pub fn rebuild_every<S, E>(&self, interval: Duration, source: impl Fn() -> S + Send + Sync + 'static) -> Rebuilds
    where
        S: Stream<Item = Result<Vec<K::Owned>, E>> + Send,
        E: Into<BoxError> + Send,
    {
        let cache = self.clone();
        let task = async move {
            let mut failed = 0;
            let mut wait = cache.first_pause(interval);
            loop {
                tokio::time::sleep(wait).await;
                let result = catch_panic(cache.rebuild_now(&source)).await;
                failed = failures(failed, &cache.unless_panicked(result));
                wait = pause(interval, failed);
            }
        };
        Rebuilds(tokio::spawn(task))
    }
}

/// Rebuilds on a schedule; made by [`GuardedCache::rebuild_every`]. They end when this is dropped.
#[must_use = "the rebuilds end when this is dropped"]
#[derive(Debug)]
pub struct Rebuilds(JoinHandle<()>);

impl Rebuilds {
    /// Ends the rebuilds and waits until their task is gone. A rebuild that is under way is given
    /// up: the old filter stays.
    pub async fn stop(mut self) {
        self.0.abort();
        // Only the cancellation.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Rebuilds {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Rebuilds of the blocking mode.
impl<K, V, F> GuardedCache<K, V, F, Blocking>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
{
    /// Replaces the filter by one that holds exactly the keys of `source`, and those that are added
    /// meanwhile. Removed keys are turned away after.
    ///
    /// `source` makes an iterator over all keys in the store, in batches of some thousands, say. It
    /// is called after the rebuild has begun, and a second time if there are more keys than the new
    /// filter was made for; then the filter gets room for a quarter more. The old filter serves
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the source fails, if the filter cannot be built or has no room, or if another
    /// rebuild is under way. The old filter stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    ///
    /// let read = |id: u64| Ok::<_, Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// // SELECT id FROM rows, say
    /// let keys = || [Ok::<_, Infallible>(vec![1, 2]), Ok(vec![3])];
    /// assert_eq!(cache.rebuild_now(keys)?.keys, 3);
    /// assert_eq!((cache.get(&3)?, cache.get(&4)?), (Some(3), None));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn rebuild_now<I, E>(&self, source: impl Fn() -> I) -> Result<Rebuilt, RebuildError>
    where
        I: IntoIterator<Item = Result<Vec<K::Owned>, E>>,
        E: Into<BoxError>,
    {
        self.rebuild_unless(&source, || false)
    }

    fn rebuild_unless<I, E>(
        &self,
        source: &impl Fn() -> I,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Rebuilt, RebuildError>
    where
        I: IntoIterator<Item = Result<Vec<K::Owned>, E>>,
        E: Into<BoxError>,
    {
        let _span = self.span().entered();
        let rebuild = || {
            let mut capacity = self.next_capacity();
            loop {
                let mut attempt = self.begin(capacity)?;
                for batch in source() {
                    if is_stopped() {
                        return Err(RebuildError(RebuildErrorKind::Stopped));
                    }
                    attempt.add(batch)?;
                }
                match self.end(attempt)? {
                    Ok(rebuilt) => return Ok(rebuilt),
                    Err(larger) => capacity = larger,
                }
            }
        };
        let result = rebuild();
        self.note(&result);
        result
    }

    /// Calls [`rebuild_now`](Self::rebuild_now) about every `interval` in a thread of its own,
    /// until the returned value is dropped or [stopped](RebuildThread::stop): first at once, or
    /// after one interval if the cache [is ready](Self::is_ready).
    ///
    /// The intervals vary by a tenth, so that processes that were started together do not read the
    /// store together. After an error or a panic of `source` the next attempt comes within a
    /// second; then the pauses double, up to `interval`.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    ///
    /// let read = |id: u64| Ok::<_, Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// let keys = || [Ok::<_, Infallible>(vec![1, 2, 3])];
    /// let rebuilds = cache.rebuild_every(Duration::from_secs(3600), keys);
    /// while !cache.is_ready() {
    ///     std::thread::yield_now(); // the first rebuild
    /// }
    /// assert_eq!((cache.get(&3)?, cache.get(&4)?), (Some(3), None));
    /// rebuilds.stop();
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn rebuild_every<I, E>(&self, interval: Duration, source: impl Fn() -> I + Send + 'static) -> RebuildThread
    where
        F: Send + Sync + 'static,
        I: IntoIterator<Item = Result<Vec<K::Owned>, E>>,
        E: Into<BoxError>,
    {
        let cache = self.clone();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let mut failed = 0;
            let mut wait = cache.first_pause(interval);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                let is_stopped = || stopped.try_recv() == Err(TryRecvError::Disconnected);
                let rebuild = AssertUnwindSafe(|| cache.rebuild_unless(&source, is_stopped));
                failed = failures(failed, &cache.unless_panicked(catch_unwind(rebuild)));
                wait = pause(interval, failed);
            }
        });
        RebuildThread { _stop: stop, thread }
    }
}

/// Rebuilds on a schedule in a thread; made by the blocking cache's `rebuild_every`. They end when
/// this is dropped.
#[must_use = "the rebuilds end when this is dropped"]
#[derive(Debug)]
pub struct RebuildThread {
    /// The thread stops when this end of the channel is gone.
    _stop: Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl RebuildThread {
    /// Ends the rebuilds and waits until their thread is gone. A rebuild that is under way is given
    /// up at its next batch: the old filter stays.
    pub fn stop(self) {
        drop(self._stop);
        // The thread panics at nothing.
        let _ = self.thread.join();
    }
}
