//! How gets wait for a load: as futures, or by blocking the thread. And the end of a load.

use crate::cache::GuardedCache;
use crate::flights::{Asked, Flight};
use crate::loads::Load;
use crate::{Key, LoadError};
use lanebloom::{Admission, Funnel, GuardFilter};
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::vec;

pub(crate) type Loaded<V> = Result<Option<V>, LoadError>;
pub(crate) type FlightOf<V, M> = Arc<Flight<<M as Mode>::Result<V>>>;

/// How the gets of a [`GuardedCache`] wait: [`Async`](crate::Async) or
/// [`Blocking`](crate::sync::Blocking). It cannot be implemented further.
pub trait Mode: sealed::Sealed + Sized + 'static {
    #[doc(hidden)]
    type Loader<K: Key + ?Sized, V: 'static>: ?Sized + Send + Sync;

    /// A place for the result of a load, on which any number of gets wait.
    #[doc(hidden)]
    type Result<V>: Default + sealed::Place<Loaded<V>>;
}

pub(crate) mod sealed {
    pub trait Sealed {}

    /// A place that is filled once.
    pub trait Place<T> {
        fn fill(&self, value: T);
        fn is_filled(&self) -> bool;
    }
}
use sealed::Place;

/// The duty to end a flight that has begun: it is in the table until then, and others wait for it.
/// If the value is dropped, because the runtime drops its task, the flight ends with an error.
pub(crate) struct Landing<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    pub(crate) cache: GuardedCache<K, V, F, M>,
    pub(crate) key: K::Owned,
    pub(crate) load: Load,
    flight: FlightOf<V, M>,
}

impl<K, V, F, M> Landing<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// The caches first, so that a get after a waiter's answer finds it there.
    pub(crate) fn land(&self, loaded: Loaded<V>) {
        let cache = &self.cache.0;
        if let Err(error) = &loaded {
            cache.counts.of_this_thread().failed.add(1);
            tracing::warn!(cache = cache.name, %error, "no row");
        }
        let found = loaded.as_ref().ok().cloned();
        cache.flights.finish(self.key.borrow(), &self.flight, found);
        self.flight.result.fill(loaded);
    }
}

impl<K, V, F, M> Drop for Landing<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    fn drop(&mut self) {
        if !self.flight.result.is_filled() {
            self.land(Err(LoadError::abandoned()));
        }
    }
}

/// The distinct keys of a batch. A key begins two flights if it is there twice, and changed between
/// the two asks.
pub(crate) fn keys_of<K, V, F, M>(landings: &[Landing<K, V, F, M>]) -> Vec<K::Owned>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    let keys: HashSet<_> = landings.iter().map(|landing| &landing.key).collect();
    keys.into_iter().cloned().collect()
}

/// Ends the flights of a batch.
pub(crate) fn land_all<K, V, F, M>(landings: &[Landing<K, V, F, M>], loaded: Result<Vec<(K::Owned, V)>, LoadError>)
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    let rows = loaded.map(HashMap::<_, _>::from_iter);
    for landing in landings {
        let row = |rows: &HashMap<K::Owned, V>| rows.get::<K::Owned>(&landing.key).cloned();
        landing.land(rows.as_ref().map(row).map_err(LoadError::clone));
    }
}

/// A place of a multi-get that awaits a flight.
pub(crate) struct Waiting<'a, V, M: Mode> {
    pub(crate) at: usize,
    pub(crate) admission: Admission<'a>,
    pub(crate) flight: FlightOf<V, M>,
    /// Whether this multi-get entered it.
    is_new: bool,
}

/// A multi-get, after a look into filter and caches. If it ends early, it leaves its flights to
/// others.
pub(crate) struct Asking<'a, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    cache: &'a GuardedCache<K, V, F, M>,
    keys: &'a [Q],
    pub(crate) rows: Vec<Option<V>>,
    pub(crate) waits: vec::IntoIter<Waiting<'a, V, M>>,
}

impl<K, V, F, M, Q> Asking<'_, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    /// Begins all new flights by one load.
    pub(crate) fn begin_all(&self) -> (Load, Vec<Landing<K, V, F, M>>) {
        let load = match self.new_flights().count() {
            0 | 1 => Load::of_one(),
            _ => Load::of_many(),
        };
        let begun = self.new_flights();
        let begun = begun.filter_map(|(key, flight)| self.cache.begin_flight(key, flight, load).ok());
        (load, begun.collect())
    }

    fn new_flights(&self) -> impl Iterator<Item = (&K, &FlightOf<V, M>)> {
        let waits = self.waits.as_slice().iter().filter(|wait| wait.is_new);
        waits.map(|wait| (self.keys[wait.at].borrow(), &wait.flight))
    }
}

impl<K, V, F, M, Q> Drop for Asking<'_, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    fn drop(&mut self) {
        for (key, flight) in self.new_flights() {
            self.cache.0.flights.leave(key, flight);
        }
    }
}

impl<K, V, F, M> GuardedCache<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// Joins the flight of `key`, or enters one. Counts either.
    pub(crate) fn ask(&self, key: &K) -> Asked<V, M::Result<V>> {
        let asked = self.0.flights.ask(key, None);
        let counts = self.0.counts.of_this_thread();
        match &asked {
            Asked::Known(_) => {}
            Asked::Joined(_) => counts.joined.add(1),
            Asked::New(_) => counts.loads.add(1),
        }
        asked
    }

    /// Begins the flight by `load`, or answers which load has begun it.
    pub(crate) fn begin_flight(
        &self,
        key: &K,
        flight: &FlightOf<V, M>,
        load: Load,
    ) -> Result<Landing<K, V, F, M>, Load> {
        // The clone may panic, so it comes first: others can still begin the flight then.
        let key = key.to_owned();
        flight.begin(load.id()).map_err(Load::from_id)?;
        Ok(Landing {
            cache: self.clone(),
            key,
            load,
            flight: Arc::clone(flight),
        })
    }

    /// What to do instead of a wait for a flight that `load` has begun and that waits for this
    /// caller. If `load` loads many keys, the flight's key may do without the others: load it
    /// alone.
    pub(crate) fn ask_again(
        &self,
        key: &K,
        flight: &FlightOf<V, M>,
        load: Load,
    ) -> Result<Asked<V, M::Result<V>>, LoadError> {
        if load.is_of_many() {
            Ok(self.0.flights.ask(key, Some(flight)))
        } else {
            Err(LoadError::cycle())
        }
    }

    /// The part of a multi-get before its loads: one batch of the filter, one pass over the caches.
    pub(crate) fn ask_many<'a, Q: Borrow<K> + Funnel>(&'a self, keys: &'a [Q]) -> Asking<'a, K, V, F, M, Q> {
        let mut rows = vec![None; keys.len()];
        let mut unknown = Vec::new();
        self.0.guard.check_batch(keys, |at, admission| {
            match self.look_in_caches(keys[at].borrow(), admission) {
                crate::cache::Known::Answer(known) => rows[at] = known,
                crate::cache::Known::Unknown(admission) => unknown.push((at, admission)),
            }
        });
        let mut waits = Vec::new();
        for (at, admission) in unknown {
            let (flight, is_new) = match self.ask(keys[at].borrow()) {
                Asked::Known(known) => {
                    self.count_known(&known, admission);
                    rows[at] = known;
                    continue;
                }
                Asked::Joined(flight) => (flight, false),
                Asked::New(flight) => (flight, true),
            };
            waits.push(Waiting {
                at,
                admission,
                flight,
                is_new,
            });
        }
        Asking {
            cache: self,
            keys,
            rows,
            waits: waits.into_iter(),
        }
    }
}
