//! Applies a feed of changes to a cache. The order is the same in both modes: open, listen, forget,
//! and rebuild beside the changes that come. The steps are those of `Cache`; between them, an
//! awaited feed is a future, and a blocking one has a thread.

use crate::cache::entries::{Key, Value};
use crate::cache::feed::{BlockingFeed, Change, Feed};
use crate::cache::future::{self, catch_panic};
use crate::cache::keys::Keys;
use crate::cache::schedule::{LOOK, is_in_progress, pause};
use crate::cache::sync::{self, Background, is_dropped};
use crate::cache::{Cache, TOLD};
use crate::error::{BoxError, error_of_panic};
use crate::filter::GuardFilter;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet, yield_now};
use tracing::warn;

/// The longest pause before a feed is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// Call it once the feed listens. What changed before was told to nobody. Later loads and the
    /// rebuild see it, because they begin after this. A rebuild that began before may lack it, so
    /// it leaves the cache open.
    fn note_listening(&self) {
        self.open();
        self.history().is_unheard = false;
        self.clear();
        self.0.feed.store(TOLD, Ordering::Release);
    }

    fn note_broken(&self, error: &BoxError) {
        self.history().is_unheard = true;
        self.reopen();
        let (cache, error) = (&self.0.name, &**error as &dyn std::error::Error);
        warn!(cache, error, "the feed broke");
    }

    fn apply(&self, change: Change<K::Owned>) {
        match change {
            Change::Written(key) => self.insert(&key),
            Change::Removed(key) => self.remove(&key),
            Change::Alive => {}
        }
    }
}

/// Opens the cache of a feed, and opens it again when the feed is followed no more.
struct Followed<K: Key + ?Sized, V: Value, F: GuardFilter>(Cache<K, V, F>);

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Followed<K, V, F> {
    fn new(cache: &Cache<K, V, F>) -> Self {
        cache.history().is_unheard = true;
        cache.open();
        Self(cache.clone())
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Drop for Followed<K, V, F> {
    fn drop(&mut self) {
        self.0.open();
        self.0.history().is_unheard = false;
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> future::GuardedCache<K, V, F> {
    /// Applies a feed of the changes that other processes make in the store, for as long as the
    /// future runs. Spawn it, once per cache. It has a clone of the cache, and never ends by
    /// itself. The cache [opens](Cache::reopen) before this call returns, and again when the future
    /// is dropped, because its task is aborted.
    ///
    /// It keeps [the only order](crate#the-order-of-a-feed) in which no row is lost, and rebuilds
    /// from `source` while a task of its own applies the changes that come. When the feed breaks,
    /// it begins again, after a pause of up to a second, then of two, four and so on, up to half a
    /// minute.
    ///
    /// A feed that says nothing for the time of `silence` counts as broken, because its server may
    /// be frozen: so it must tell [`Change::Alive`] more often than that. It removes no keys from
    /// the filter: for that, call [`rebuild_every`](Self::rebuild_every) afterwards, whose first
    /// rebuild is the one of this call.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// [`Feed`] has one.
    pub fn follow<W, S>(
        &self,
        mut feed: W,
        silence: Duration,
        mut source: S,
    ) -> impl Future<Output = Infallible> + use<K, V, F, W, S>
    where
        W: Feed<K::Owned> + 'static,
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let cache = self.clone();
        let followed = Followed::new(self);
        async move {
            let _followed = followed;
            let mut failed = 0;
            loop {
                let followed = cache.follow_until_broken(feed, silence, &mut source, &mut failed);
                let (broken, error) = followed.await;
                feed = broken;
                cache.note_broken(&error);
                failed = failed.saturating_add(1);
                tokio::time::sleep(pause(LONGEST_PAUSE, failed)).await;
            }
        }
    }

    /// Returns the feed, and why it broke. Sets `failed` to 0 once the filter is filled.
    async fn follow_until_broken<W, S>(
        &self,
        mut feed: W,
        silence: Duration,
        source: &mut S,
        failed: &mut u32,
    ) -> (W, BoxError)
    where
        W: Feed<K::Owned> + 'static,
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let listening = catch_panic(unless_silent(silence, feed.listen())).await;
        if let Err(error) = listening.unwrap_or_else(|payload| Err(error_of_panic(payload))) {
            return (feed, error);
        }
        self.note_listening();
        let fill = async {
            let mut attempts = 0;
            while !self.is_ready() {
                let result = self.unless_panicked(catch_panic(self.rebuild_by(source, || false)).await);
                if is_in_progress(&result) {
                    // If it began after the feed listened, it fills the filter.
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                attempts += 1;
                if !self.is_ready() {
                    tokio::time::sleep(pause(LONGEST_PAUSE, attempts)).await;
                }
            }
            *failed = 0;
        };
        // Beside the rebuild: inserts go into both filters, and the feed's buffer stays short. In a
        // task of its own, which ends with this future: changes waited 1.3 s for a source that
        // inserted 3 million keys without a pause (not optimized), and wait 63 ms now.
        let (mut apply, cache) = (JoinSet::new(), Cache::clone(self));
        apply.spawn(async move {
            let applied = catch_panic(async {
                loop {
                    match unless_silent(silence, feed.next()).await {
                        Ok(change) => cache.apply(change),
                        Err(error) => return error,
                    }
                }
            });
            let error = applied.await.unwrap_or_else(error_of_panic);
            // Before the rebuild ends, whose source may keep the other task.
            cache.open();
            (feed, error)
        });
        // The first poll of a new task is this thread's, before which the source would come.
        yield_now().await;
        let mut fill = pin!(fill);
        let mut is_filled = false;
        let broken = poll_fn(|context| {
            if let Poll::Ready(Some(broken)) = apply.poll_join_next(context) {
                return Poll::Ready(broken);
            }
            is_filled = is_filled || fill.as_mut().poll(context).is_ready();
            Poll::Pending
        });
        match broken.await.map_err(JoinError::try_into_panic) {
            Ok(broken) => broken,
            Err(Ok(payload)) => resume_unwind(payload),
            // The runtime shuts down.
            Err(Err(_)) => pending().await,
        }
    }
}

async fn unless_silent<T>(silence: Duration, told: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let is_silent = |_| Err(format!("it said nothing for {silence:?}").into());
    tokio::time::timeout(silence, told).await.unwrap_or_else(is_silent)
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> sync::GuardedCache<K, V, F> {
    /// Applies a feed of the changes that other processes make in the store, in a thread of its
    /// own, until the returned value is dropped or [stopped](Background::stop). The cache
    /// [opens](Cache::reopen) before this call returns, and again at the end. Call it once per
    /// cache.
    ///
    /// It keeps the order that [`future::GuardedCache::follow`] describes, and calls `source` in
    /// another thread, beside the changes that come. `silence` is the timeout that it gives to the
    /// feed. If the feed breaks during a rebuild, it listens again once `source` has inserted its
    /// next keys or has returned; the cache is open meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if the system cannot start a thread.
    ///
    /// # Examples
    ///
    /// [`BlockingFeed`] has one.
    pub fn follow<W, S>(&self, mut feed: W, silence: Duration, mut source: S) -> Background
    where
        W: BlockingFeed<K::Owned> + 'static,
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError> + Send + 'static,
    {
        let cache = self.clone();
        let followed = Followed::new(self);
        Background::start(move |mut stopped| {
            let _followed = followed;
            let mut failed = 0;
            while cache.follow_until_broken(&mut feed, silence, &mut source, &mut failed, &mut stopped) {
                failed = failed.saturating_add(1);
                if stopped.recv_timeout(pause(LONGEST_PAUSE, failed)) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })
    }

    /// Returns whether the feed broke: otherwise this was stopped. Sets `failed` to 0 once the
    /// filter is filled.
    fn follow_until_broken<W, S>(
        &self,
        feed: &mut W,
        silence: Duration,
        source: &mut S,
        failed: &mut u32,
        stopped: &mut Receiver<()>,
    ) -> bool
    where
        W: BlockingFeed<K::Owned>,
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError> + Send,
    {
        if let Err(error) = unless_panicked(|| feed.listen(silence)) {
            self.note_broken(&error);
            return true;
        }
        self.note_listening();
        let (broke, broken) = mpsc::channel();
        thread::scope(|scope| {
            let fill = thread::Builder::new().name(String::from("lanebloom-fill"));
            let fill = match fill.spawn_scoped(scope, || self.fill(source, broken)) {
                Ok(fill) => fill,
                Err(error) => {
                    self.note_broken(&error.into());
                    return true;
                }
            };
            let is_broken = loop {
                if is_dropped(stopped) {
                    break false;
                }
                let apply_next = || feed.next(silence).map(|change| self.apply(change));
                if let Err(error) = unless_panicked(apply_next) {
                    // Before the rebuild ends, which then leaves the cache open.
                    self.note_broken(&error);
                    break true;
                }
            };
            drop(broke);
            if fill.join().is_ok_and(|is_filled| is_filled) {
                *failed = 0;
            }
            is_broken
        })
    }

    /// Rebuilds until the filter is filled, or the other end of `broken` is dropped: then it
    /// returns false.
    fn fill<S>(&self, source: &mut S, mut broken: Receiver<()>) -> bool
    where
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let mut attempts = 0;
        while !self.is_ready() {
            let is_broken = || is_dropped(&mut broken);
            let rebuild = AssertUnwindSafe(|| self.rebuild_unless(&mut *source, is_broken));
            let pause = match is_in_progress(&self.unless_panicked(catch_unwind(rebuild))) {
                true => LOOK,
                false => {
                    attempts += 1;
                    pause(LONGEST_PAUSE, attempts)
                }
            };
            if !self.is_ready() && broken.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
        }
        true
    }
}

fn unless_panicked<T>(call: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(error_of_panic(payload)))
}
