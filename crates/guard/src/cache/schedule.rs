//! The steps of a rebuild from all keys of the store, and the pauses between rebuilds. Between the
//! steps, `future.rs` and `sync.rs` read the keys.

use crate::cache::Cache;
use crate::cache::history::{History, Rebuilt};
use crate::cache::store::{Key, Value};
use crate::error::RebuildError;
use crate::filter::GuardFilter;
use crate::rebuild::Rebuild;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing::{Span, info, info_span, warn};

/// A rebuild that is reading keys.
pub(super) struct Attempt<'a, K: Key + ?Sized, F: GuardFilter> {
    rebuild: Rebuild<'a, K, F>,
    capacity: usize,
    began: Instant,
    /// The counts before the keys were read. So keys that were inserted or removed meanwhile count
    /// twice rather than not at all.
    inserted: u64,
    removed: u64,
}

impl<K: Key + ?Sized, F: GuardFilter> Attempt<'_, K, F> {
    /// Takes a batch of the source's keys.
    pub(super) fn add(&self, batch: &[K::Owned]) {
        self.rebuild.insert_batch(batch);
    }

    /// The new filter, if it has room for as many keys as were read, and so will be committed.
    pub(super) fn filter_for(&self, keys: usize) -> Option<Arc<F>> {
        let filter = self.rebuild.shared_filter();
        // (The first, whatever the filter says: else this would never end.)
        (keys <= self.capacity || filter.has_room_for(keys, self.capacity)).then_some(filter)
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of inserted and of removed keys so far.
    fn changes(&self) -> (u64, u64) {
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
        let keys = (history.keys + inserted).saturating_sub(removed);
        keys.min(history.keys.max(in_filter as u64))
    }

    /// Records a restored filter, which another process saved `age` ago. `in_filter` is the
    /// filter's own estimate of its keys.
    pub(super) fn note_restored(&self, keys: u64, in_filter: usize, capacity: usize, age: Duration) {
        let mut history = self.history();
        if let Some(at) = Instant::now().checked_sub(age) {
            history.read_at = at;
        }
        (history.keys, history.capacity) = (keys.min(in_filter as u64), capacity);
        history.has_keys = true;
    }

    /// The capacity with room for a quarter more keys than there are. `in_filter` is the filter's
    /// own estimate of its keys.
    pub(super) fn next_capacity(&self, in_filter: usize) -> usize {
        let keys = self.known_keys(in_filter);
        with_room(keys.try_into().unwrap_or(usize::MAX)).max(self.0.plan.expected_keys)
    }

    pub(super) fn begin(&self, capacity: usize) -> Result<Attempt<'_, K, F>, RebuildError> {
        let began = Instant::now();
        let filter = (self.0.plan.make)(capacity).map_err(RebuildError::build)?;
        let rebuild = self.0.guard.rebuild(filter)?;
        let (inserted, removed) = self.changes();
        Ok(Attempt {
            rebuild,
            capacity,
            began,
            inserted,
            removed,
        })
    }

    /// Ends an attempt that was given `keys` keys. The inner error is the capacity that the next
    /// attempt needs.
    pub(super) fn end(&self, attempt: Attempt<'_, K, F>, keys: usize) -> Result<Result<Rebuilt, usize>, RebuildError> {
        if attempt.filter_for(keys).is_none() {
            info!(keys, attempt.capacity, "the store has outgrown the filter");
            return Ok(Err(with_room(keys)));
        }
        attempt.rebuild.commit()?;
        let rebuilt = Rebuilt {
            keys,
            capacity: attempt.capacity,
            duration: attempt.began.elapsed(),
        };
        let mut history = self.history();
        history.last = Some((Instant::now(), rebuilt));
        history.read_at = attempt.began;
        history.capacity = attempt.capacity;
        (history.has_keys, history.keys) = (true, keys as u64);
        (history.inserted, history.removed) = (attempt.inserted, attempt.removed);
        Ok(Ok(rebuilt))
    }

    pub(super) fn note(&self, result: &Result<Rebuilt, RebuildError>) {
        let mut history = self.history();
        match result {
            Ok(rebuilt) => {
                history.completed += 1;
                info!(rebuilt.keys, rebuilt.capacity, ?rebuilt.duration, "rebuilt");
            }
            Err(error) => {
                history.failed += 1;
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
            let result = Err(RebuildError::panicked(&*payload));
            self.note(&result);
            result
        })
    }

    /// The pause before the first rebuild: none if the cache is open, since made-up keys reach the
    /// store until then.
    pub(super) fn first_pause(&self, interval: Duration) -> Duration {
        match self.0.guard.is_open() {
            true => Duration::ZERO,
            false => pause(interval, 0),
        }
    }

    pub(super) fn span(&self) -> Span {
        info_span!("rebuild", cache = self.0.name)
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

/// The number of failures in a row, after this result.
pub(super) fn failures(before: u32, result: &Result<Rebuilt, RebuildError>) -> u32 {
    match result {
        // A rebuild in progress is not a failure: it reads the same store.
        Err(error) if !error.is_in_progress() => before.saturating_add(1),
        _ => 0,
    }
}
