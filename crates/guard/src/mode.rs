//! How gets wait for a load: as futures, or by blocking the thread. And the end of a load.

use crate::cache::GuardedCache;
use crate::flights::Asked;
use crate::{Key, LoadError};
use lanebloom::{Admission, Funnel, GuardFilter};
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) type Loaded<V> = Result<Option<V>, LoadError>;

/// How the gets of a [`GuardedCache`] wait: [`Async`](crate::Async) or
/// [`Blocking`](crate::sync::Blocking). It cannot be implemented further.
pub trait Mode: sealed::Sealed + Sized + 'static {
    #[doc(hidden)]
    type Loader<K: Key + ?Sized, V: 'static>: ?Sized + Send + Sync;

    /// A place for the result of a load, on which any number of gets wait.
    #[doc(hidden)]
    type Flight<V>: Default + sealed::Place<Loaded<V>>;
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

/// The duty to end a flight: it is in the table until then, and others wait for it. If the value is
/// dropped, because the runtime drops its task, the flight ends with an error.
pub(crate) struct Landing<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    pub(crate) cache: GuardedCache<K, V, F, M>,
    pub(crate) key: K::Owned,
    pub(crate) flight: Arc<M::Flight<V>>,
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
        self.flight.fill(loaded);
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
        if !self.flight.is_filled() {
            self.land(Err(LoadError::abandoned()));
        }
    }
}

/// The distinct keys of a batch. A key leads two flights if it is there twice, and changed between
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
pub(crate) struct Waiting<'a, T> {
    pub(crate) at: usize,
    pub(crate) admission: Admission<'a>,
    pub(crate) flight: Arc<T>,
}

/// What the loads of a multi-get are, after a look into filter and caches.
pub(crate) struct Asking<'a, K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    pub(crate) rows: Vec<Option<V>>,
    pub(crate) leads: Vec<Landing<K, V, F, M>>,
    pub(crate) waits: Vec<Waiting<'a, M::Flight<V>>>,
}

impl<K, V, F, M> GuardedCache<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// Joins the flight of `key`, or begins one, which the caller must land. Counts either.
    pub(crate) fn ask(&self, key: &K) -> Asked<V, M::Flight<V>> {
        let asked = self.0.flights.ask(key, M::Flight::default);
        let counts = self.0.counts.of_this_thread();
        match &asked {
            Asked::Known(_) => {}
            Asked::Joined(_) => counts.joined.add(1),
            Asked::Leads(_) => counts.loads.add(1),
        }
        asked
    }

    pub(crate) fn landing(&self, key: &K, flight: &Arc<M::Flight<V>>) -> Landing<K, V, F, M> {
        Landing {
            cache: self.clone(),
            key: key.to_owned(),
            flight: Arc::clone(flight),
        }
    }

    /// The part of a multi-get before its loads: one batch of the filter, one pass over the caches.
    pub(crate) fn ask_many<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> Asking<'_, K, V, F, M> {
        let mut rows = vec![None; keys.len()];
        let mut unknown = Vec::new();
        self.0.guard.check_batch(keys, |at, admission| {
            match self.look_in_caches(keys[at].borrow(), admission) {
                crate::cache::Known::Answer(known) => rows[at] = known,
                crate::cache::Known::Unknown(admission) => unknown.push((at, admission)),
            }
        });
        let (mut leads, mut waits) = (Vec::new(), Vec::new());
        for (at, admission) in unknown {
            let key = keys[at].borrow();
            let flight = match self.ask(key) {
                Asked::Known(known) => {
                    self.count_known(&known, admission);
                    rows[at] = known;
                    continue;
                }
                Asked::Joined(flight) => flight,
                Asked::Leads(flight) => {
                    leads.push(self.landing(key, &flight));
                    flight
                }
            };
            waits.push(Waiting { at, admission, flight });
        }
        Asking { rows, leads, waits }
    }
}
