//! The protocol between loads and changes of the store. `Flights` knows which loads are on their
//! way, and decides whether a load's result may be cached.
//!
//! # The promise
//!
//! A key that was added is not reported missing afterwards: a lookup that begins after
//! [`changed`](Flights::changed) has returned does not answer "missing" from what an earlier state
//! of the store said. (The filter in front has the same promise, see `CacheGuard`.) For
//! values likewise: a lookup after `changed` never answers with the value before. After
//! [`all_changed`](Flights::all_changed), this holds for every key.
//!
//! # The protocol
//!
//! A *flight* is one load of one key. Shards of the keys have a lock each, and a table of the
//! flights that may still cache their result. The *epoch* is the number of calls of `all_changed`.
//! Each entry of the caches has the epoch of its flight. An entry of another epoch than the present
//! one counts as absent. Under the lock of the key's shard:
//!
//! - **ask** looks into the caches again, then joins the key's flight in the table, or enters a new
//!   one in the present epoch. It joins no flight of an earlier epoch, but replaces it. The new
//!   one's load asks the store after that.
//! - **finish**, after the load: if the table still has *this* flight, takes it out and puts the
//!   result into the caches. Otherwise the result is only for the flight's own waiters.
//! - **changed**, after the store has the change: takes the key's flight out of the table, if there
//!   is one, and the key out of the caches, or puts the new value in, in the present epoch.
//!
//! Without a lock:
//!
//! - Lookups in the caches.
//! - **all_changed** increments the epoch. It waits for nobody.
//! - **begin**: a flight is loaded by the first that begins it, also by one that joined it. So no
//!   flight waits for another of the same multi-get, and one that its owner leaves behind (a panic,
//!   a dropped future) is loaded by the next that asks.
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
//! A lookup that begins after `all_changed` has returned reads its epoch or a later one. The entry
//! that it finds, or the flight that it joins, has the same epoch. So the flight's `ask` read that
//! epoch too, and its load read the store after the change.
//!
//! The argument needs two things from the caches. A lookup that begins after an entry's removal has
//! returned does not find that entry. And nothing but a put brings entries in: expiry and eviction
//! only remove.
//!
//! Three simpler protocols are wrong. Without the table, a load that read the store before a row
//! was added puts its "missing" in after `changed` has cleaned up, for as long as misses are
//! remembered. With an epoch per stripe of keys that the load checks before its put, the check and
//! the put are two steps, and `changed` fits between them; with that epoch kept in the entry and
//! checked by each lookup, a change of one key forgets other keys' misses. And an `all_changed`
//! that empties caches of timestamped entries must wait for the clock, since entries of the same
//! tick are before it or after.

#[cfg(lanebloom_loom)]
use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::PoisonError;
#[cfg(not(lanebloom_loom))]
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// The caches, as the protocol sees them: entries that may vanish at any time.
pub(crate) trait Caches<K: ToOwned + ?Sized> {
    type Value;

    fn get(&self, key: &K) -> Option<Entry<Self::Value>>;

    /// Remembers `entry` in place of what was known.
    fn put(&self, key: &K, entry: Entry<Self::Value>);

    /// Removes whatever is known of `key`.
    fn forget(&self, key: &K);

    /// Frees memory: no lookup takes the entries that are there now. Those that it leaves do no
    /// harm.
    fn forget_all(&self);
}

/// What the store said of a key: its value, or that it is missing.
#[derive(Clone)]
pub(crate) struct Entry<V> {
    pub(crate) epoch: u64,
    pub(crate) value: Option<V>,
}

/// What a lookup is to do.
pub(crate) enum Asked<V, T> {
    Known(Option<V>),
    /// Another lookup has entered the flight. [Begin](Flight::begin) it, or wait for it.
    Joined(Arc<Flight<T>>),
    /// The flight is new. Begin it, or wait for the one who did before.
    New(Arc<Flight<T>>),
}

/// One load of one key.
pub(crate) struct Flight<T> {
    /// Waiters find the result there.
    pub(crate) result: T,
    epoch: u64,
    /// The load that brings the result, 0 before it begins.
    load: AtomicU64,
}

impl<T> Flight<T> {
    /// Whether `load` is the one that begins this flight. Then load its key, and call
    /// [`Flights::finish`] in any case. Otherwise the error is the load that has begun it.
    pub(crate) fn begin(&self, load: u64) -> Result<(), u64> {
        // `Relaxed`: it only picks one of the askers.
        let begun = self
            .load
            .compare_exchange(0, load, Ordering::Relaxed, Ordering::Relaxed);
        begun.map(drop)
    }

    fn has_begun(&self) -> bool {
        self.load.load(Ordering::Relaxed) > 0
    }
}

pub(crate) struct Flights<K: ToOwned + ?Sized, C, T> {
    pub(crate) caches: C,
    epoch: AtomicU64,
    /// A power of two of them.
    shards: Box<[Shard<K, T>]>,
    hasher: RandomState,
}

type Shard<K, T> = Mutex<Table<K, T>>;
type Table<K, T> = HashMap<<K as ToOwned>::Owned, Arc<Flight<T>>>;

impl<K, C, T> Flights<K, C, T>
where
    K: Hash + Eq + ToOwned<Owned: Hash + Eq> + ?Sized,
    C: Caches<K>,
    T: Default,
{
    /// `shards` is a power of two.
    pub(crate) fn new(caches: C, shards: usize) -> Self {
        Self {
            caches,
            epoch: AtomicU64::new(0),
            shards: (0..shards).map(|_| Mutex::new(HashMap::new())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// What the caches know of `key`; without a lock.
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<Option<C::Value>> {
        let entry = self.caches.get(key)?;
        (entry.epoch == self.epoch()).then_some(entry.value)
    }

    /// Enters a flight for `key`, unless there is one or the caches have the key by now. So a key
    /// that many ask for at once is loaded once.
    ///
    /// It does not join `unlike`, but replaces it.
    pub(crate) fn ask(&self, key: &K, unlike: Option<&Arc<Flight<T>>>) -> Asked<C::Value, T> {
        let mut flights = self.lock(key);
        let epoch = self.epoch();
        if let Some(entry) = self.caches.get(key).filter(|entry| entry.epoch == epoch) {
            return Asked::Known(entry.value);
        }
        let new = || {
            Arc::new(Flight {
                result: T::default(),
                epoch,
                load: AtomicU64::new(0),
            })
        };
        let joins =
            |flight: &Arc<Flight<T>>| flight.epoch == epoch && unlike.is_none_or(|unlike| !Arc::ptr_eq(unlike, flight));
        Asked::New(match flights.entry(key.to_owned()) {
            Occupied(present) if joins(present.get()) => return Asked::Joined(Arc::clone(present.get())),
            Occupied(mut present) => {
                present.insert(new());
                Arc::clone(present.get())
            }
            Vacant(place) => Arc::clone(place.insert(new())),
        })
    }

    /// Ends a flight whose load returned `found`, or failed: `None`.
    pub(crate) fn finish(&self, key: &K, flight: &Arc<Flight<T>>, found: Option<Option<C::Value>>) {
        let mut flights = self.lock(key);
        let was_there = take(&mut flights, key, flight);
        if let Some(value) = found.filter(|_| was_there) {
            let epoch = flight.epoch;
            self.caches.put(key, Entry { epoch, value });
        }
    }

    /// Leaves a flight that its asker entered to others. If none of them has begun it, they enter a
    /// new one.
    pub(crate) fn leave(&self, key: &K, flight: &Arc<Flight<T>>) {
        if !flight.has_begun() {
            take(&mut self.lock(key), key, flight);
        }
    }

    /// The store has another row for `key` now, or none: `value` if it is known.
    pub(crate) fn changed(&self, key: &K, value: Option<C::Value>) {
        let mut flights = self.lock(key);
        flights.remove(key);
        match value {
            Some(_) => {
                let epoch = self.epoch();
                self.caches.put(key, Entry { epoch, value });
            }
            None => self.caches.forget(key),
        }
    }

    /// Any row of the store may have changed.
    pub(crate) fn all_changed(&self) {
        // `Release`: the load of a flight in the new epoch sees the store's changes. Partner: the
        // load in `epoch`.
        self.epoch.fetch_add(1, Ordering::Release);
        self.caches.forget_all();
    }

    /// A call that begins after `all_changed` has returned sees its epoch or a later one, by
    /// coherence.
    #[inline]
    fn epoch(&self) -> u64 {
        // Partner: the increment in `all_changed`.
        self.epoch.load(Ordering::Acquire)
    }

    fn lock(&self, key: &K) -> MutexGuard<'_, Table<K, T>> {
        // Equal keys hash alike in both forms, by the contract of `Borrow`.
        let hash = self.hasher.hash_one(key) as usize;
        let shard = &self.shards[hash & (self.shards.len() - 1)];
        // A panic under the lock (in a key's `Eq`, a value's `Drop`, a weigher) leaves table and
        // caches whole: each of their calls stands alone.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes `flight` out of the table; answers whether it was there.
fn take<K, T>(flights: &mut Table<K, T>, key: &K, flight: &Arc<Flight<T>>) -> bool
where
    K: Hash + Eq + ToOwned<Owned: Hash + Eq> + ?Sized,
{
    let is_there = flights.get(key).is_some_and(|present| Arc::ptr_eq(present, flight));
    if is_there {
        flights.remove(key);
    }
    is_there
}
