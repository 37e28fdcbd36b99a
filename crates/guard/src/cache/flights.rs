//! The protocol between loads and changes of the store. `Flights` knows which loads are running,
//! and decides whether a load's result may be cached.
//!
//! # The promise
//!
//! A key that was added is not reported missing afterwards: a lookup that begins after
//! [`changed`](Flights::changed) has returned does not return "missing" from an earlier state of
//! the store. (The filter in front has the same promise, see `CacheGuard`.) The same holds for
//! values: a lookup after `changed` never returns the value before. After
//! [`all_changed`](Flights::all_changed), this holds for every key.
//!
//! # The protocol
//!
//! A *flight* is one load of one key. Each shard of the keys has a lock, and a table of the flights
//! that may still cache their result. The *epoch* is the number of calls of `all_changed`. Each
//! entry of the caches has the epoch of its flight. An entry of another epoch than the current one
//! counts as absent. Under the lock of the key's shard:
//!
//! - **ask** looks into the caches again, then joins the key's flight in the table, or enters a new
//!   one in the current epoch. It replaces a flight of an earlier epoch, or of another filter. The
//!   load of the new flight reads the store after that.
//! - **refresh** enters a flight although the caches have the key, if its entry is old. Lookups
//!   still return that entry. If the flight cannot begin, because of a panic, it leaves the table.
//! - **finish**, after the load: if the table still has *this* flight, removes it and puts the
//!   result into the caches. Otherwise the result is only for the flight's own waiters.
//! - **fail**, after a load that failed: removes the flight from the table in the same way. If it
//!   was there, and the caches still keep an expired entry of its epoch, that entry may be the
//!   result for its waiters.
//! - **changed**, after the store has the change: removes the key's flight from the table, and the
//!   key from the caches, or puts the new value in, in the current epoch.
//! - **abandon_all**, after the store has changes of some keys: empties the tables, one shard after
//!   another. The caller then removes the changed keys from the caches.
//!
//! Without a lock:
//!
//! - Lookups in the caches.
//! - **all_changed** increments the epoch. It waits for no other thread.
//! - **begin**: the first get that begins a flight loads it, even if another one entered it. So no
//!   flight waits for another flight of the same multi-get. If the get that entered a flight leaves
//!   it (by a panic, or because its future is dropped), the next get that asks loads it.
//!
//! # The argument
//!
//! Suppose a lookup that began after `changed` had returned finds a miss in the caches. A `finish`
//! put the miss in, after `changed`, which removes entries that it finds. So the flight was in the
//! table after `changed`, which removes flights that it finds, too. So its `ask` came after
//! `changed`, under the same lock, and its load read the store after the change. So the store
//! lacked the key after the change: it was removed again, or the change was its removal.
//!
//! The second way to a "missing" is a joined flight. The lookup finds it in the table after
//! `changed`, so the same holds: its load began after the change. A lookup that began before
//! `changed` returned may have joined an earlier flight, and may return "missing". Both calls ran
//! at the same time, so either order is right.
//!
//! The third way is an expired entry that `fail` found. The flight was in the table then, so no
//! `changed` came between its `ask` and `fail`. The lookup joined it after `changed`. So the entry
//! was also put in after `changed`, which would have removed it otherwise, by a load that began
//! after the change.
//!
//! A lookup that begins after `all_changed` has returned reads its epoch or a later one. The entry
//! that it finds, or the flight that it joins, has the same epoch. So the flight's `ask` read that
//! epoch too, and its load read the store after the change. `fail` takes no entry of another epoch.
//!
//! A lookup that begins after `abandon_all` and the removals have returned: suppose it finds an old
//! entry. A `finish` put it in after the removal, so its flight was in the table after
//! `abandon_all` had emptied it: the flight's `ask`, and its load, came after the change.
//!
//! # Misses and the filter
//!
//! `changed` is called for the rows of which this process is told. Other rows only come into the
//! filter in front: by a rebuild, or because other processes share it. While it may lack such a
//! row, it lets every key through, and a load finds that a key is missing. That miss must not hide
//! the row once the filter has it. So before its load, each flight takes note of the *filter*: its
//! number, or nothing if it may lack rows of which nobody tells (`CacheGuard::vouches`). A miss
//! without a number is not put into the caches. One with a number counts as long as lookups find
//! the same number. A filter has two, one for the keys that it holds, and one for those that it
//! lacks. A rebuild makes new ones.
//!
//! Suppose a lookup that began after the filter had the row finds "missing" all the same, by an
//! entry or a joined flight. Its number is that of the lookup, which found the key in the filter,
//! and so did its `ask`. So the filter held the key before that flight's load, which read the store
//! afterwards: the key was a false positive, or had been removed, and its row came later.
//!
//! # The caches
//!
//! The argument needs two properties of the caches. A lookup that begins after an entry's removal
//! has returned does not find that entry. And only a put adds entries: expiry and eviction only
//! remove.
//!
//! Simpler protocols are wrong. Without the table, a load that read the store before a row was
//! added puts its miss in after `changed` has cleaned up. With one epoch per stripe of keys, which
//! the load checks before its put, `changed` can come between the check and the put. If lookups
//! checked that epoch too, a change of one key would forget the misses of others. And an
//! `all_changed` that empties caches of timestamped entries must wait for the clock, since an entry
//! of the same tick may be older or newer.

#[cfg(lanebloom_loom)]
use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasher, Hash, RandomState};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(not(lanebloom_loom))]
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::sync::{PoisonError, TryLockError};

/// The caches, as the protocol sees them. Entries may vanish at any time.
pub(crate) trait Caches<K: ToOwned + ?Sized> {
    type Value;

    fn get(&self, key: &K) -> Option<Entry<Self::Value>>;

    /// Replaces the entry of `key` by a value, or by the number of the filter under which the key
    /// is missing.
    fn put(&self, key: &K, epoch: u64, found: Result<Self::Value, u64>);

    /// After the load of `key` has failed: returns a value that [`get`](Self::get) no longer finds,
    /// if it may serve instead, and its epoch.
    fn fall_back(&self, key: &K) -> Option<(Self::Value, u64)>;

    /// Removes the entry of `key`.
    fn forget(&self, key: &K);

    /// Frees memory: no lookup uses the current entries any more. An entry that stays does no harm.
    fn forget_all(&self);
}

/// The store's answer for a key: its value, or that it is missing.
#[derive(Clone)]
pub(crate) struct Entry<V> {
    pub(crate) epoch: u64,
    /// The value, or the number of the filter under which the key is missing.
    pub(crate) found: Result<V, u64>,
    /// Whether it should be loaded again, although it is known.
    pub(crate) is_due: bool,
}

impl<V> Entry<V> {
    /// Whether a lookup in this epoch uses it. `filter` vouches for its miss now.
    fn counts(&self, filter: Option<u64>, epoch: u64) -> bool {
        let counts = |missing: &u64| filter == Some(*missing);
        self.epoch == epoch && self.found.as_ref().err().is_none_or(counts)
    }
}

/// The next step of a lookup.
pub(crate) enum Asked<V, T> {
    Known(Option<V>),
    /// Another lookup entered the flight. [Begin](Flight::begin) it, or wait for it.
    Joined(Arc<Flight<T>>),
    /// The flight is new. Begin it, or wait for it if another lookup began it before.
    New(Arc<Flight<T>>),
}

/// One load of one key.
pub(crate) struct Flight<T> {
    /// The result, for the waiters.
    pub(crate) result: T,
    epoch: u64,
    /// The filter under which its miss counts, if it does.
    filter: Option<u64>,
    /// The load that returns the result; 0 before it begins.
    load: AtomicU64,
    /// Whether it has ended with an error, but may still be in the table.
    is_lost: AtomicBool,
}

impl<T> Flight<T> {
    fn new(epoch: u64, filter: Option<u64>) -> Self
    where
        T: Default,
    {
        Self {
            result: T::default(),
            epoch,
            filter,
            load: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Begins this flight with `load`. If it succeeds, load the key and call [`Flights::finish`] in
    /// any case. Otherwise the error is the load that began it.
    pub(crate) fn begin(&self, load: u64) -> Result<(), u64> {
        // `Relaxed`: this only picks one of the askers.
        let begun = self
            .load
            .compare_exchange(0, load, Ordering::Relaxed, Ordering::Relaxed);
        begun.map(drop)
    }

    /// Marks a flight that could not be removed from the table, because the key's `Eq` panicked: no
    /// lookup joins it any more.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    fn may_be_joined(&self, epoch: u64) -> bool {
        self.epoch == epoch && !self.is_lost.load(Ordering::Relaxed)
    }

    fn has_begun(&self) -> bool {
        self.load.load(Ordering::Relaxed) > 0
    }
}

pub(crate) struct Flights<K: ToOwned + ?Sized, C, T> {
    pub(crate) caches: C,
    epoch: AtomicU64,
    /// Their number is a power of two.
    shards: Box<[Shard<K, T>]>,
    hasher: RandomState,
}

type Shard<K, T> = Mutex<FlightTable<K, T>>;
type FlightTable<K, T> = HashMap<<K as ToOwned>::Owned, Arc<Flight<T>>>;

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

    /// Filters the result of a lookup in the caches without a lock: entries of another epoch are
    /// absent, and so are misses for which `filter` does not vouch. It is called for misses alone.
    #[inline]
    pub(crate) fn current(
        &self,
        entry: Option<Entry<C::Value>>,
        filter: impl FnOnce() -> Option<u64>,
    ) -> Option<Entry<C::Value>> {
        entry.filter(|entry| {
            // Before the epoch: see `Cache::feed`.
            let filter = entry.found.as_ref().err().and_then(|_| filter());
            entry.counts(filter, self.epoch())
        })
    }

    /// Whether `epoch` is the current one.
    #[inline]
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        epoch == self.epoch()
    }

    /// Enters a flight for `key`, unless there is one or the caches have the key by now. So a key
    /// that many gets request at the same time is loaded once.
    ///
    /// It replaces the flight `unlike`, and does not join it. Nor does it join a flight whose miss
    /// does not count any more.
    pub(crate) fn ask(&self, key: &K, filter: Option<u64>, unlike: Option<&Arc<Flight<T>>>) -> Asked<C::Value, T> {
        let mut flights = self.lock(key);
        let epoch = self.epoch();
        if let Some(entry) = self.caches.get(key).filter(|entry| entry.counts(filter, epoch)) {
            return Asked::Known(entry.found.ok());
        }
        let new = || Arc::new(Flight::new(epoch, filter));
        let is_other = |flight: &Arc<Flight<T>>| unlike.is_none_or(|unlike| !Arc::ptr_eq(unlike, flight));
        let joins =
            |flight: &Arc<Flight<T>>| flight.may_be_joined(epoch) && flight.filter == filter && is_other(flight);
        Asked::New(match flights.entry(key.to_owned()) {
            Occupied(joined) if joins(joined.get()) => return Asked::Joined(Arc::clone(joined.get())),
            Occupied(mut old) => {
                old.insert(new());
                Arc::clone(old.get())
            }
            Vacant(place) => Arc::clone(place.insert(new())),
        })
    }

    /// Enters a flight for a key whose entry is due, unless there is one, and returns it with the
    /// key. It waits for no other thread: if the lock is taken, a later lookup enters the flight.
    pub(crate) fn refresh(&self, key: &K, filter: Option<u64>) -> Option<(K::Owned, Arc<Flight<T>>)> {
        let mut flights = match self.shard(key).try_lock() {
            Ok(flights) => flights,
            // Poison is ignored, as in `lock`.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let epoch = self.epoch();
        let is_due = |entry: Entry<_>| entry.is_due && entry.epoch == epoch;
        let is_on_its_way = |flight: &Arc<Flight<T>>| flight.may_be_joined(epoch);
        if flights.get(key).is_some_and(is_on_its_way) || !self.caches.get(key).is_some_and(is_due) {
            return None;
        }
        let flight = Arc::new(Flight::new(epoch, filter));
        // Both clones before the insert, since each may panic.
        let owned = key.to_owned();
        flights.insert(key.to_owned(), Arc::clone(&flight));
        Some((owned, flight))
    }

    /// Ends a flight whose load returned `found`.
    pub(crate) fn finish(&self, key: &K, flight: &Arc<Flight<T>>, found: Option<C::Value>) {
        let mut flights = self.lock(key);
        if Self::take(&mut flights, key, flight) {
            match found.ok_or(flight.filter) {
                Ok(value) => self.caches.put(key, flight.epoch, Ok(value)),
                Err(Some(filter)) => self.caches.put(key, flight.epoch, Err(filter)),
                Err(None) => self.caches.forget(key),
            }
        }
    }

    /// Ends a flight whose load failed. Returns the value that serves instead, if there is one.
    pub(crate) fn fail(&self, key: &K, flight: &Arc<Flight<T>>) -> Option<C::Value> {
        let mut flights = self.lock(key);
        let is_there = Self::take(&mut flights, key, flight);
        is_there.then(|| self.fall_back(key, flight)).flatten()
    }

    /// [`fail`](Self::fail) for a get that stops waiting for a flight, which goes on.
    pub(crate) fn give_up(&self, key: &K, flight: &Arc<Flight<T>>) -> Option<C::Value> {
        let flights = self.lock(key);
        let is_there = Self::is_there(&flights, key, flight);
        is_there.then(|| self.fall_back(key, flight)).flatten()
    }

    /// The caller holds the lock, and the flight is in the table.
    fn fall_back(&self, key: &K, flight: &Flight<T>) -> Option<C::Value> {
        let (value, epoch) = self.caches.fall_back(key)?;
        (epoch == flight.epoch).then_some(value)
    }

    /// Leaves a flight, which this get entered, to the other gets. If it has not begun, the next
    /// get enters a new one.
    pub(crate) fn leave(&self, key: &K, flight: &Arc<Flight<T>>) {
        if !flight.has_begun() {
            Self::take(&mut self.lock(key), key, flight);
        }
    }

    /// Call it after the store has another row for `key`, or none. `value` is the row, if it is
    /// known.
    pub(crate) fn changed(&self, key: &K, value: Option<C::Value>) {
        let mut flights = self.lock(key);
        flights.remove(key);
        let Some(value) = value else {
            return self.caches.forget(key);
        };
        let put = catch_unwind(AssertUnwindSafe(|| self.caches.put(key, self.epoch(), Ok(value))));
        if let Err(panic) = put {
            // The value before is outdated, also for a caller that catches the panic.
            self.caches.forget(key);
            resume_unwind(panic);
        }
    }

    /// Removes all flights from the tables: no running load is cached, and no lookup that begins
    /// now joins one.
    pub(crate) fn abandon_all(&self) {
        for shard in &self.shards {
            // The flights are dropped after the lock, since a value's `Drop` may take long.
            let _flights = mem::take(&mut *lock(shard));
        }
    }

    /// Call it after any row of the store may have changed.
    pub(crate) fn all_changed(&self) {
        // `Release`: the load of a flight in the new epoch sees the store's changes. Partner: the
        // `Acquire` load in `epoch`.
        self.epoch.fetch_add(1, Ordering::Release);
        self.caches.forget_all();
    }

    /// The current epoch. By coherence, a call that begins after `all_changed` has returned sees
    /// its epoch or a later one.
    #[inline]
    fn epoch(&self) -> u64 {
        // Partner: the increment in `all_changed`.
        self.epoch.load(Ordering::Acquire)
    }

    fn lock(&self, key: &K) -> MutexGuard<'_, FlightTable<K, T>> {
        lock(self.shard(key))
    }

    fn shard(&self, key: &K) -> &Shard<K, T> {
        // Equal keys hash alike in both forms, by the contract of `Borrow`.
        let hash = self.hasher.hash_one(key) as usize;
        &self.shards[hash & (self.shards.len() - 1)]
    }

    /// Removes `flight` from the table; returns whether it was there.
    fn take(flights: &mut FlightTable<K, T>, key: &K, flight: &Arc<Flight<T>>) -> bool {
        let is_there = Self::is_there(flights, key, flight);
        if is_there {
            flights.remove(key);
        }
        is_there
    }

    fn is_there(flights: &FlightTable<K, T>, key: &K, flight: &Arc<Flight<T>>) -> bool {
        flights.get(key).is_some_and(|present| Arc::ptr_eq(present, flight))
    }
}

/// A panic under the lock (in a key's `Eq`, a value's `Drop`, a weigher) leaves table and caches
/// intact, since each of their calls is complete by itself.
fn lock<T>(shard: &Mutex<T>) -> MutexGuard<'_, T> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
