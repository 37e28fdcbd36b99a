//! The protocol between loads and changes of the store. `Flights` knows which loads are on their
//! way, and decides whether a load's result may be cached.
//!
//! # The promise
//!
//! A key that was added is not reported missing afterwards: a lookup that begins after
//! [`changed`](Flights::changed) has returned does not answer "missing" from what an earlier state
//! of the store said. (The filter in front has the same promise, see `lanebloom::CacheGuard`.) For
//! values likewise: a lookup after `changed` never answers with the value before.
//!
//! # The protocol
//!
//! A *flight* is one load of one key. Shards of the keys have a lock each, and a table of the
//! flights that may still cache their result. Under the lock of the key's shard:
//!
//! - **ask** looks into the caches again, then joins the key's flight in the table, or enters a new
//!   one. The new one's load asks the store after that.
//! - **finish**, after the load: if the table still has *this* flight, takes it out and puts the
//!   result into the caches. Otherwise the result is only for the flight's own waiters.
//! - **changed**, after the store has the change: takes the key's flight out of the table, if there
//!   is one, and the key out of the caches, or puts the new value in.
//!
//! Lookups in the caches take no lock.
//!
//! # The argument
//!
//! Suppose the caches say "missing" to a lookup that began after `changed` had returned. A `finish`
//! put the miss in. That was after `changed`, which removes what it finds. So the flight was in the
//! table after `changed`, which removes what it finds there too. So its `ask` came after `changed`,
//! under the same lock, and its load read the store after the change. The store has the key then:
//! the miss says that it was removed since, or is missing indeed.
//!
//! The second way to a "missing" is a joined flight. The lookup finds it in the table after
//! `changed`, so the same holds: its load began after the change. A lookup that began before
//! `changed` returned may have joined an earlier flight, and may answer "missing". Both calls ran
//! at the same time, so either order is right.
//!
//! The argument needs two things from the caches. A lookup that begins after an entry's removal has
//! returned does not find that entry. And nothing but a put brings entries in: expiry and eviction
//! only remove.
//!
//! Two simpler protocols are wrong. Without the table, a load that read the store before a row was
//! added puts its "missing" in after `changed` has cleaned up, for as long as misses are
//! remembered. With an epoch per stripe of keys that the load checks before its put, the check and
//! the put are two steps, and `changed` fits between them; with the epoch kept in the entry and
//! checked by each lookup, a change of one key forgets other keys' misses.

#[cfg(lanebloom_loom)]
use loom::sync::{Arc, Mutex, MutexGuard};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::PoisonError;
#[cfg(not(lanebloom_loom))]
use std::sync::{Arc, Mutex, MutexGuard};

/// The caches, as the protocol sees them: entries that may vanish at any time.
pub(crate) trait Caches<K: ToOwned + ?Sized> {
    type Value;

    /// What the caches know of `key`: its value, or `Some(None)` if it is known to be missing.
    fn get(&self, key: &K) -> Option<Option<Self::Value>>;

    /// Remembers what the store says, in place of what was known.
    fn put(&self, key: &K, value: Option<Self::Value>);

    /// Removes whatever is known of `key`.
    fn forget(&self, key: &K);

    fn forget_all(&self);
}

/// What a lookup is to do. `T` is a flight, to which its waiters hold on.
pub(crate) enum Asked<V, T> {
    Known(Option<V>),
    /// Another lookup loads the key: wait for its flight.
    Joined(Arc<T>),
    /// Load the key, and then call [`Flights::finish`] in any case.
    Leads(Arc<T>),
}

pub(crate) struct Flights<K: ToOwned + ?Sized, C, T> {
    pub(crate) caches: C,
    /// A power of two of them.
    shards: Box<[Shard<K, T>]>,
    hasher: RandomState,
}

type Shard<K, T> = Mutex<HashMap<<K as ToOwned>::Owned, Arc<T>>>;

impl<K, C, T> Flights<K, C, T>
where
    K: Hash + Eq + ToOwned<Owned: Hash + Eq> + ?Sized,
    C: Caches<K>,
{
    /// `shards` is a power of two.
    pub(crate) fn new(caches: C, shards: usize) -> Self {
        Self {
            caches,
            shards: (0..shards).map(|_| Mutex::new(HashMap::new())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// What the caches know of `key`; without a lock.
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<Option<C::Value>> {
        self.caches.get(key)
    }

    /// Enters a flight for `key`, unless there is one or the caches have the key by now. So a key
    /// that many ask for at once is loaded once.
    pub(crate) fn ask(&self, key: &K, new: impl FnOnce() -> T) -> Asked<C::Value, T> {
        let mut flights = self.lock(key);
        if let Some(known) = self.caches.get(key) {
            return Asked::Known(known);
        }
        match flights.entry(key.to_owned()) {
            Entry::Occupied(flight) => Asked::Joined(Arc::clone(flight.get())),
            Entry::Vacant(place) => Asked::Leads(Arc::clone(place.insert(Arc::new(new())))),
        }
    }

    /// Ends a flight whose load returned `found`, or failed: `None`.
    pub(crate) fn finish(&self, key: &K, flight: &Arc<T>, found: Option<Option<C::Value>>) {
        let mut flights = self.lock(key);
        if flights.get(key).is_some_and(|present| Arc::ptr_eq(present, flight)) {
            flights.remove(key);
            if let Some(value) = found {
                self.caches.put(key, value);
            }
        }
    }

    /// The store has another row for `key` now, or none: `value` if it is known.
    pub(crate) fn changed(&self, key: &K, value: Option<C::Value>) {
        let mut flights = self.lock(key);
        flights.remove(key);
        match value {
            Some(_) => self.caches.put(key, value),
            None => self.caches.forget(key),
        }
    }

    /// Any row of the store may have changed.
    pub(crate) fn all_changed(&self) {
        // All locks at once, so that no flight that began before puts its result in after.
        let mut shards: Vec<_> = self.shards.iter().map(lock).collect();
        shards.iter_mut().for_each(|flights| flights.clear());
        self.caches.forget_all();
    }

    fn lock(&self, key: &K) -> MutexGuard<'_, HashMap<K::Owned, Arc<T>>> {
        // Equal keys hash alike in both forms, by the contract of `Borrow`.
        let hash = self.hasher.hash_one(key) as usize;
        lock(&self.shards[hash & (self.shards.len() - 1)])
    }
}

/// A panic under the lock (in a key's `Eq`, a value's `Drop`, a weigher) leaves table and caches
/// whole: each of their calls stands alone.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
