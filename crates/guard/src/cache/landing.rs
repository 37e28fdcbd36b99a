//! How gets enter, begin and end flights.

use crate::cache::entries::{Key, Value};
use crate::cache::error::{LoadError, LoadErrorKind, Loaded};
use crate::cache::flights::{Asked, Flight};
use crate::cache::loads::{Cycle, Load};
use crate::cache::{Cache, Lookup};
use crate::filter::GuardFilter;
use crate::stats::Admission;
use lanebloom::Funnel;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::vec;
use tokio::sync::SetOnce;

/// Any number of gets wait for its result, as futures or by blocking their threads on such a
/// future.
pub(super) type FlightOf<V> = Arc<Flight<SetOnce<Loaded<V>>>>;

/// A flight that has begun and must end: it is in the table until then, and other gets wait for it.
/// If the value is dropped, because the runtime drops its task, the flight ends with an error.
pub(super) struct Landing<K: Key + ?Sized, V: Value, F> {
    pub(super) cache: Cache<K, V, F>,
    pub(super) key: K::Owned,
    pub(super) load: Load,
    flight: FlightOf<V>,
}

impl<K: Key + ?Sized, V: Value, F> Landing<K, V, F> {
    /// Ends the flight; returns the result for its waiters. It fills the caches first, so that a
    /// get after a waiter's return finds the result there.
    pub(super) fn land(&self, loaded: Loaded<V>) -> Loaded<V> {
        let (cache, key) = (&self.cache.0, self.key.borrow());
        self.cache.note_ended(loaded.is_err());
        let loaded = match loaded {
            Ok(found) => {
                cache.flights.finish(key, &self.flight, found.clone());
                Ok(found)
            }
            Err(error) => {
                self.cache.note_failed(&error);
                let stale = cache.flights.fail(key, &self.flight);
                self.cache.or_stale(stale, error)
            }
        };
        let _ = self.flight.result.set(loaded.clone());
        loaded
    }
}

impl<K: Key + ?Sized, V: Value, F> Drop for Landing<K, V, F> {
    fn drop(&mut self) {
        if !self.flight.result.initialized() {
            // If a panic of the key's `Eq` has caused this drop, a second one would abort the
            // process.
            let land = AssertUnwindSafe(|| self.land(Err(LoadError(LoadErrorKind::Abandoned))));
            if catch_unwind(land).is_err() {
                self.flight.lose();
                let _ = self.flight.result.set(Err(LoadError(LoadErrorKind::Abandoned)));
            }
        }
    }
}

/// The distinct keys of a batch. A key that occurs twice begins two flights if it changed between
/// the two asks.
pub(super) fn keys_of<K: Key + ?Sized, V: Value, F>(landings: &[Landing<K, V, F>]) -> Vec<K::Owned> {
    let keys: HashSet<_> = landings.iter().map(|landing| &landing.key).collect();
    keys.into_iter().cloned().collect()
}

/// Ends the flights of a batch.
pub(super) fn land_all<K: Key + ?Sized, V: Value, F>(
    landings: &[Landing<K, V, F>],
    loaded: Result<Vec<(K::Owned, V)>, LoadError>,
) {
    let rows = loaded.map(HashMap::<_, _>::from_iter);
    for landing in landings {
        let row = |rows: &HashMap<K::Owned, V>| rows.get::<K::Owned>(&landing.key).cloned();
        let _ = landing.land(rows.as_ref().map(row).map_err(LoadError::clone));
    }
}

/// The flight of a refresh, which any get may begin. If the value is dropped before, the flight
/// ends, and a later get enters another one.
pub(super) struct Refresh<K: Key + ?Sized, V: Value, F> {
    cache: Cache<K, V, F>,
    pub(super) key: K::Owned,
    pub(super) flight: FlightOf<V>,
}

impl<K: Key + ?Sized, V: Value, F> Drop for Refresh<K, V, F> {
    fn drop(&mut self) {
        self.cache.leave(self.key.borrow(), &self.flight);
    }
}

/// A get, or a row of a multi-get, that waits for a flight.
pub(super) struct Pending<'a, V> {
    pub(super) admission: Admission<'a>,
    pub(super) flight: FlightOf<V>,
    /// Whether this get has entered the flight.
    is_new: bool,
}

/// A multi-get that has looked into filter and caches. If it ends early, it leaves its flights to
/// other gets.
pub(super) struct MultiGet<'a, K: Key + ?Sized, V: Value, F: GuardFilter, Q: Borrow<K>> {
    cache: &'a Cache<K, V, F>,
    keys: &'a [Q],
    pub(super) rows: Vec<Option<V>>,
    /// The rows that wait, by their indices.
    pub(super) waits: vec::IntoIter<(usize, Pending<'a, V>)>,
    /// The indices of rows that should be refreshed.
    due: Vec<usize>,
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter, Q: Borrow<K>> MultiGet<'_, K, V, F, Q> {
    /// Begins all new flights by one load.
    pub(super) fn begin_all(&self) -> (Load, Vec<Landing<K, V, F>>) {
        self.cache.begin_all(self.new_flights().collect())
    }

    /// Enters flights for the rows that should be refreshed, except where one is running.
    pub(super) fn refreshes(&self) -> Vec<Refresh<K, V, F>> {
        let keys = self.due.iter().map(|at| self.keys[*at].borrow());
        keys.filter_map(|key| self.cache.enter_refresh(key)).collect()
    }

    fn new_flights(&self) -> impl Iterator<Item = (&K, &FlightOf<V>)> {
        let new = self.waits.as_slice().iter().filter(|(_, pending)| pending.is_new);
        new.map(|(at, pending)| (self.keys[*at].borrow(), &pending.flight))
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter, Q: Borrow<K>> Drop for MultiGet<'_, K, V, F, Q> {
    fn drop(&mut self) {
        for (key, flight) in self.new_flights() {
            self.cache.leave(key, flight);
        }
    }
}

impl<K: Key + ?Sized, V: Value, F> Cache<K, V, F> {
    /// Leaves a flight to other gets, unless it has begun.
    fn leave(&self, key: &K, flight: &FlightOf<V>) {
        // A panic is caught, as for a landing. The flight stays in the table then, and the next get
        // that asks begins it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.0.flights.leave(key, flight)));
    }

    fn note_ended(&self, has_failed: bool) {
        if let Some(ages) = &self.0.flights.caches.ages {
            ages.note_ended(has_failed);
        }
    }

    fn note_failed(&self, error: &LoadError) {
        let (counts, cache) = (&self.0.counts, &self.0.name);
        counts.add(1, |counts| &counts.failed);
        if error.is_refused() {
            counts.add(1, |counts| &counts.refused);
        } else if error.is_timeout() {
            counts.add(1, |counts| &counts.timed_out);
        }
        let error = error as &dyn std::error::Error;
        match self.0.failed.pass() {
            Some(held_back) => tracing::warn!(cache, error, held_back, "load failed"),
            None => tracing::debug!(cache, error, "load failed"),
        }
    }

    /// Returns the old value in place of an error, if there is one.
    fn or_stale(&self, stale: Option<V>, error: LoadError) -> Loaded<V> {
        match stale {
            None => Err(error),
            stale => {
                self.0.counts.add(1, |counts| &counts.stale);
                Ok(stale)
            }
        }
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// Joins the flight of `key`, or enters a new one, and counts it. The error is what the caches
    /// know by now, if they know the key.
    pub(super) fn ask<'a>(&self, key: &K, admission: Admission<'a>) -> Result<Pending<'a, V>, Option<V>> {
        let (flight, is_new) = match self.0.flights.ask(key, self.vouches(key), None) {
            Asked::Known(known) => {
                self.count_known(&known, admission);
                return Err(known);
            }
            Asked::Joined(flight) => (flight, false),
            Asked::New(flight) => (flight, true),
        };
        match is_new {
            true => self.0.counts.add(1, |counts| &counts.loads),
            false => self.0.counts.add(1, |counts| &counts.joined),
        }
        Ok(Pending {
            admission,
            flight,
            is_new,
        })
    }

    /// Ends the wait for a flight that goes on. Returns the old value, if there is one.
    pub(super) fn give_up(&self, key: &K, flight: &FlightOf<V>, error: LoadError) -> Loaded<V> {
        self.note_ended(true);
        self.or_stale(self.0.flights.give_up(key, flight), error)
    }

    /// Enters a flight for a row that should be refreshed, unless one is running.
    pub(super) fn enter_refresh(&self, key: &K) -> Option<Refresh<K, V, F>> {
        let (key, flight) = self.0.flights.refresh(key, self.vouches(key))?;
        self.0.counts.add(1, |counts| &counts.refreshes);
        Some(Refresh {
            cache: self.clone(),
            key,
            flight,
        })
    }

    /// Begins the flight with `load`. If it has begun, the error is the load that began it.
    pub(super) fn begin_flight(&self, key: &K, flight: &FlightOf<V>, load: Load) -> Result<Landing<K, V, F>, Load> {
        // The clone may panic, so it comes first: others can still begin the flight.
        let key = key.to_owned();
        flight.begin(load.0).map_err(Load)?;
        Ok(Landing {
            cache: self.clone(),
            key,
            load,
            flight: Arc::clone(flight),
        })
    }

    /// Begins all flights that have not begun, with one load.
    pub(super) fn begin_all(&self, flights: Vec<(&K, &FlightOf<V>)>) -> (Load, Vec<Landing<K, V, F>>) {
        let load = match flights.len() {
            0 | 1 => Load::of_one(),
            _ => Load::of_many(),
        };
        let begun = flights
            .into_iter()
            .filter_map(|(key, flight)| self.begin_flight(key, flight, load).ok());
        (load, begun.collect())
    }

    /// [`begin_all`](Self::begin_all) of refreshes.
    pub(super) fn begin_refreshes(&self, refreshes: &[Refresh<K, V, F>]) -> (Load, Vec<Landing<K, V, F>>) {
        let flights = refreshes.iter().map(|refresh| (refresh.key.borrow(), &refresh.flight));
        self.begin_all(flights.collect())
    }

    /// Decides what to do instead of waiting for a flight that waits for this caller. If a load of
    /// many keys is in the cycle, the flight's key may not need the others: this asks for it alone.
    /// If the thread is within the load, and may run other code there, this asks for the key once
    /// more.
    ///
    /// If a row needs itself, this ends: the single loads that it begins, each deeper than the
    /// last, finally form a cycle of rows, in which a load of a waiter is not repeated.
    pub(super) fn ask_again(
        &self,
        key: &K,
        flight: &FlightOf<V>,
        cycle: Cycle,
    ) -> Result<Asked<V, SetOnce<Loaded<V>>>, LoadError> {
        match cycle {
            Cycle::Rows { blocks } => Err(LoadError(LoadErrorKind::Cycle { blocks })),
            Cycle::Batches | Cycle::SameThread => Ok(self.0.flights.ask(key, self.vouches(key), Some(flight))),
        }
    }

    /// The part of a multi-get before its loads: one batch in the filter, one pass over the caches.
    pub(super) fn ask_many<'a, Q: Borrow<K> + Funnel>(&'a self, keys: &'a [Q]) -> MultiGet<'a, K, V, F, Q> {
        let mut rows = vec![None; keys.len()];
        let (mut unknown, mut due) = (Vec::new(), Vec::new());
        self.0.guard.check_batch(keys, |at, admission| {
            match self.look_in_caches(keys[at].borrow(), admission) {
                Lookup::Known(known) => rows[at] = known,
                Lookup::Due(value) => {
                    rows[at] = Some(value);
                    due.push(at);
                }
                Lookup::Unknown(admission) => unknown.push((at, admission)),
            }
        });
        let mut waits = Vec::new();
        for (at, admission) in unknown {
            match self.ask(keys[at].borrow(), admission) {
                Ok(pending) => waits.push((at, pending)),
                Err(known) => rows[at] = known,
            }
        }
        MultiGet {
            cache: self,
            keys,
            rows,
            waits: waits.into_iter(),
            due,
        }
    }
}
