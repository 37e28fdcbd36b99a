//! A rebuild from all keys of the store, and the pauses between rebuilds.

use crate::cache::Cache;
use crate::cache::entries::{Key, Value};
use crate::cache::history::{History, READ_AT_ONCE, Rebuilt};
use crate::cache::keys::{Keys, read_keys};
use crate::error::{BoxError, RebuildError, RebuildErrorKind, error_of_panic};
use crate::filter::GuardFilter;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::{Instrument, info, info_span, warn};

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of inserted and of removed keys so far.
    pub(super) fn changes(&self) -> (u64, u64) {
        let counts = &self.0.counts;
        (
            counts.sum(|counts| &counts.inserted),
            counts.sum(|counts| &counts.removed),
        )
    }

    /// The keys in the store: those of the last rebuild, with the changes since.
    ///
    /// They are at most the filter's own number of keys, `in_filter`, since it has all of them. An
    /// update counts as inserted, although the filter had the key: without this limit, a million
    /// updates of one row would look like a million rows. (The last rebuild's count is exact. The
    /// filter's is an estimate, which may be lower.)
    pub(super) fn known_keys(&self, in_filter: usize) -> u64 {
        let (inserted, removed) = self.changes();
        let history = self.history();
        let inserted = inserted.saturating_sub(history.inserted);
        let removed = removed.saturating_sub(history.removed);
        let counted = history.keys.unwrap_or(0);
        let keys = (counted + inserted).saturating_sub(removed);
        keys.min(counted.max(in_filter as u64))
    }

    /// [`known_keys`](Self::known_keys), if a rebuild or a restored file has counted them.
    pub(super) fn counted_keys(&self, in_filter: usize) -> Option<u64> {
        let is_counted = self.history().keys.is_some();
        is_counted.then(|| self.known_keys(in_filter))
    }

    /// Records a restored filter, which another process saved `age` ago. `in_filter` is the
    /// filter's own estimate of its keys.
    pub(super) fn note_restored(&self, keys: u64, in_filter: usize, capacity: usize, age: Duration) {
        let mut history = self.history();
        if let Some(at) = Instant::now().checked_sub(age) {
            history.read_at = at;
        }
        (history.keys, history.capacity) = (Some(keys.min(in_filter as u64)), capacity);
    }

    /// The capacity with room for a quarter more keys than there are. `in_filter` is the filter's
    /// own estimate of its keys.
    fn next_capacity(&self, in_filter: usize) -> usize {
        let keys = self.known_keys(in_filter);
        with_room(keys.try_into().unwrap_or(usize::MAX)).max(self.0.plan.expected_keys)
    }

    /// A rebuild from the keys of `source`. In the blocking mode `source` is ready at once. Once
    /// `is_stopped` is true, the old filter stays.
    ///
    /// (`S` is the source itself: if it were a reference, `rebuild_every` would not be `Send`,
    /// since the compiler forgets the lifetime.)
    pub(super) async fn rebuild_by<S>(
        &self,
        source: &mut S,
        mut is_stopped: impl FnMut() -> bool + Send,
    ) -> Result<Rebuilt, RebuildError>
    where
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let rebuild = async {
            // Before the next filter is made: a shared one would connect to its server.
            if self.0.guard.is_rebuilding() {
                return Err(RebuildError(RebuildErrorKind::InProgress));
            }
            let in_filter = aside(self.0.guard.filter(), |filter| filter.statistics().len).await;
            let mut capacity = self.next_capacity(in_filter);
            loop {
                match self.attempt(capacity, source, &mut is_stopped).await? {
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
        .instrument(info_span!("rebuild", cache = self.0.name))
        .await
    }

    /// A rebuild into a filter of this capacity. The inner error is the capacity that the next
    /// attempt needs.
    async fn attempt<S>(
        &self,
        capacity: usize,
        source: &mut S,
        is_stopped: &mut (impl FnMut() -> bool + Send),
    ) -> Result<Result<Rebuilt, usize>, RebuildError>
    where
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let began = Instant::now();
        let filter = (self.0.plan.make)(capacity).map_err(RebuildError::build)?;
        let rebuild = self.0.guard.rebuild(filter)?;
        // Before the keys are read: those that are inserted or removed meanwhile count twice rather
        // than not at all.
        let (inserted, removed) = self.changes();
        let keys = read_keys(source, is_stopped, |batch| rebuild.insert_batch(batch)).await?;
        let filter = Arc::clone(rebuild.filter());
        // (The first, whatever the filter says: else this would never end.)
        if keys > capacity && !filter.has_room_for(keys, capacity) {
            info!(keys, capacity, "the store has outgrown the filter");
            return Ok(Err(with_room(keys)));
        }
        // A large filter in a thread, since `commit` blocks.
        aside(filter, F::complete).await.map_err(RebuildError::build)?;
        // A feed that breaks after this reopens the guard by itself.
        if self.history().is_unheard {
            self.0.guard.reopen();
        }
        rebuild.commit()?;
        let duration = began.elapsed();
        let rebuilt = Rebuilt {
            keys,
            capacity,
            duration,
        };
        let mut history = self.history();
        history.last = Some((Instant::now(), rebuilt));
        (history.read_at, history.capacity) = (began, capacity);
        history.keys = Some(keys as u64);
        (history.inserted, history.removed) = (inserted, removed);
        Ok(Ok(rebuilt))
    }

    fn note(&self, result: &Result<Rebuilt, RebuildError>) {
        match result {
            Ok(rebuilt) => {
                self.0.counts.add(1, |counts| &counts.rebuilds);
                info!(rebuilt.keys, rebuilt.capacity, ?rebuilt.duration, "rebuilt");
            }
            // Its caller waits, or has the error.
            Err(error) if error.is_in_progress() => {}
            Err(error) => {
                self.0.counts.add(1, |counts| &counts.failed_rebuilds);
                let error = error as &dyn std::error::Error;
                warn!(error, "the rebuild failed");
            }
        }
    }

    /// Turns a panic of the source into an error, since it would end the schedule.
    pub(super) fn unless_panicked(
        &self,
        result: thread::Result<Result<Rebuilt, RebuildError>>,
    ) -> Result<Rebuilt, RebuildError> {
        result.unwrap_or_else(|payload| {
            let result = Err(RebuildError::unreadable(error_of_panic(payload)));
            self.note(&result);
            result
        })
    }

    /// A schedule of rebuilds, and the pause before the first one: none if the cache is open, since
    /// made-up keys reach the store until then.
    pub(super) fn schedule(&self, interval: Duration) -> (Schedule, Duration) {
        let wait = match self.0.guard.is_open() {
            true => Duration::ZERO,
            false => pause(interval, 0),
        };
        let (due, failed) = (None, 0);
        (Schedule { interval, due, failed }, wait)
    }
}

/// Works on a filter: in a thread, if it is large.
pub(super) async fn aside<F: GuardFilter, T: Send + 'static>(filter: Arc<F>, work: fn(&F) -> T) -> T {
    if filter.memory_bytes() > READ_AT_ONCE {
        let (send, receive) = oneshot::channel();
        let of_thread = Arc::clone(&filter);
        let work = move || send.send(work(&of_thread));
        // If the thread does not start, or the filter panics in it, this task works.
        if thread::Builder::new().spawn(work).is_ok() {
            if let Ok(done) = receive.await {
                return done;
            }
        }
    }
    work(&filter)
}

/// A schedule of rebuilds, of either mode.
pub(super) struct Schedule {
    interval: Duration,
    /// Since when a rebuild is due that has not ended.
    due: Option<Instant>,
    /// The number of failures in a row.
    failed: u32,
}

impl Schedule {
    /// Call it after a pause: returns the next pause, or `None` if a rebuild should begin now. A
    /// rebuild that has ended since this one was due serves as the scheduled one, whoever began it.
    /// While a feed is followed that does not listen yet, a rebuild would not close the cache, and
    /// the feed rebuilds it once it listens.
    pub(super) fn look<K: Key + ?Sized, V: Value, F>(&mut self, cache: &Cache<K, V, F>) -> Option<Duration>
    where
        F: GuardFilter,
    {
        let due = *self.due.get_or_insert_with(Instant::now);
        let History { last, is_unheard, .. } = *cache.history();
        match last {
            Some((at, rebuilt)) if at >= due => Some(self.ended(&Ok(rebuilt))),
            _ => is_unheard.then_some(LOOK),
        }
    }

    /// The pause after a rebuild.
    pub(super) fn ended(&mut self, result: &Result<Rebuilt, RebuildError>) -> Duration {
        if is_in_progress(result) {
            return LOOK;
        }
        self.due = None;
        self.failed = if result.is_ok() {
            0
        } else {
            self.failed.saturating_add(1)
        };
        pause(self.interval, self.failed)
    }
}

fn with_room(keys: usize) -> usize {
    keys.saturating_add(keys / 4)
}

/// The time to the next rebuild: `interval` give or take a tenth, so that processes that started
/// together do not read the store together. After failures it is a second, two, four and so on, up
/// to `interval`, less up to half of it.
pub(super) fn pause(interval: Duration, failures: u32) -> Duration {
    let random = RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64;
    let (time, part) = match failures {
        0 => (interval, 0.9 + 0.2 * random),
        n => {
            let backoff = Duration::from_secs(1).saturating_mul(1 << (n - 1).min(20));
            (backoff.min(interval), 0.5 + 0.5 * random)
        }
    };
    // `Duration::MAX` plus a tenth would overflow.
    Duration::try_from_secs_f64(time.as_secs_f64() * part).unwrap_or(Duration::MAX)
}

/// The pause before a rebuild looks again whether another one has ended.
pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) fn is_in_progress(result: &Result<Rebuilt, RebuildError>) -> bool {
    result.as_ref().is_err_and(RebuildError::is_in_progress)
}
