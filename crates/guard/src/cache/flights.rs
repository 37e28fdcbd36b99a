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
//! - **refresh** enters a flight although the caches have the key, if its entry is old. Lookups
//!   still take that entry.
//! - **finish**, after the load: if the table still has *this* flight, takes it out and puts the
//!   result into the caches. Otherwise the result is only for the flight's own waiters.
//! - **fail**, after a load that failed: takes the flight out of the table likewise. If it was
//!   there, an entry of its epoch that is past its time, and that the caches still keep, may be the
//!   result for its waiters.
//! - **changed**, after the store has the change: takes the key's flight out of the table, if there
//!   is one, and the key out of the caches, or puts the new value in, in the present epoch.
//!
//! - **abandon_all**, after the store has changes of some keys: empties the tables, one shard after
//!   another. The caller then removes from the caches what has changed.
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
//! The third way is an entry past its time that `fail` found. The flight was in the table then, so
//! no `changed` came between its `ask` and `fail`. The lookup joined it after `changed`, so the
//! entry was put in after `changed` too, or `changed` would have removed it: by a load that began
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

/// The caches, as the protocol sees them: entries that may vanish at any time.
pub(crate) trait Caches<K: ToOwned + ?Sized> {
    type Value;

    fn get(&self, key: &K) -> Option<Entry<Self::Value>>;

    /// Remembers `value` in place of what was known; `None` if the key is missing.
    fn put(&self, key: &K, epoch: u64, value: Option<Self::Value>);

    /// The load of `key` has failed. A value that [`get`](Self::get) no longer finds, if it may
    /// serve instead.
    fn fall_back(&self, key: &K) -> Option<Entry<Self::Value>>;

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
    /// Whether it should be loaded anew, although it is known.
    pub(crate) is_due: bool,
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
    /// It has ended with an error, and may still be in the table.
    is_lost: AtomicBool,
}

impl<T> Flight<T> {
    fn new(epoch: u64) -> Self
    where
        T: Default,
    {
        Self {
            result: T::default(),
            epoch,
            load: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Whether `load` is the one that begins this flight. Then load its key, and call
    /// [`Flights::finish`] in any case. Otherwise the error is the load that has begun it.
    pub(crate) fn begin(&self, load: u64) -> Result<(), u64> {
        // `Relaxed`: it only picks one of the askers.
        let begun = self
            .load
            .compare_exchange(0, load, Ordering::Relaxed, Ordering::Relaxed);
        begun.map(drop)
    }

    /// For a flight that could not be removed from the table, since a panic of the key's `Eq` ended
    /// that: nobody joins it any more.
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

    /// What a lookup in the caches, without a lock, has found, if it counts.
    #[inline]
    pub(crate) fn present(&self, found: Option<Entry<C::Value>>) -> Option<Entry<C::Value>> {
        found.filter(|entry| self.is_present(entry.epoch))
    }

    /// Whether an entry of this epoch counts.
    #[inline]
    pub(crate) fn is_present(&self, epoch: u64) -> bool {
        epoch == self.epoch()
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
        let new = || Arc::new(Flight::new(epoch));
        let is_other = |flight: &Arc<Flight<T>>| unlike.is_none_or(|unlike| !Arc::ptr_eq(unlike, flight));
        let joins = |flight: &Arc<Flight<T>>| flight.may_be_joined(epoch) && is_other(flight);
        Asked::New(match flights.entry(key.to_owned()) {
            Occupied(present) if joins(present.get()) => return Asked::Joined(Arc::clone(present.get())),
            Occupied(mut present) => {
                present.insert(new());
                Arc::clone(present.get())
            }
            Vacant(place) => Arc::clone(place.insert(new())),
        })
    }

    /// Enters a flight for a key whose entry is due, unless there is one. It waits for nobody: if
    /// the lock is taken, a later lookup will do it.
    pub(crate) fn refresh(&self, key: &K) -> Option<Arc<Flight<T>>> {
        let mut flights = match self.shard(key).try_lock() {
            Ok(flights) => flights,
            // As in `lock`.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let epoch = self.epoch();
        let is_due = |entry: Entry<_>| entry.is_due && entry.epoch == epoch;
        let is_on_its_way = |flight: &Arc<Flight<T>>| flight.may_be_joined(epoch);
        if flights.get(key).is_some_and(is_on_its_way) || !self.caches.get(key).is_some_and(is_due) {
            return None;
        }
        let flight = Arc::new(Flight::new(epoch));
        flights.insert(key.to_owned(), Arc::clone(&flight));
        Some(flight)
    }

    /// Ends a flight whose load returned `found`.
    pub(crate) fn finish(&self, key: &K, flight: &Arc<Flight<T>>, found: Option<C::Value>) {
        let mut flights = self.lock(key);
        if take(&mut flights, key, flight) {
            self.caches.put(key, flight.epoch, found);
        }
    }

    /// Ends a flight whose load failed. Answers with the value that serves instead, if there is
    /// one.
    pub(crate) fn fail(&self, key: &K, flight: &Arc<Flight<T>>) -> Option<C::Value> {
        let mut flights = self.lock(key);
        if take(&mut flights, key, flight) {
            self.fall_back(key, flight)
        } else {
            None
        }
    }

    /// [`fail`](Self::fail) for one that no longer waits for a flight, which goes on.
    pub(crate) fn give_up(&self, key: &K, flight: &Arc<Flight<T>>) -> Option<C::Value> {
        let flights = self.lock(key);
        if is_there(&flights, key, flight) {
            self.fall_back(key, flight)
        } else {
            None
        }
    }

    /// Under the lock, and the flight is in the table.
    fn fall_back(&self, key: &K, flight: &Flight<T>) -> Option<C::Value> {
        let entry = self.caches.fall_back(key)?;
        if entry.epoch == flight.epoch { entry.value } else { None }
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
        let Some(_) = value else {
            return self.caches.forget(key);
        };
        let put = catch_unwind(AssertUnwindSafe(|| self.caches.put(key, self.epoch(), value)));
        if let Err(panic) = put {
            // The value before is old, also for a caller that goes on.
            self.caches.forget(key);
            resume_unwind(panic);
        }
    }

    /// Takes all flights out of the table: no load on its way is cached, or joined by a lookup that
    /// begins now.
    pub(crate) fn abandon_all(&self) {
        for shard in &self.shards {
            // The flights are dropped after the lock: a value's `Drop` takes as long as it likes.
            let _flights = mem::take(&mut *lock(shard));
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
        lock(self.shard(key))
    }

    fn shard(&self, key: &K) -> &Shard<K, T> {
        // Equal keys hash alike in both forms, by the contract of `Borrow`.
        let hash = self.hasher.hash_one(key) as usize;
        &self.shards[hash & (self.shards.len() - 1)]
    }
}

/// A panic under the lock (in a key's `Eq`, a value's `Drop`, a weigher) leaves table and caches
/// whole: each of their calls stands alone.
fn lock<T>(shard: &Mutex<T>) -> MutexGuard<'_, T> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes `flight` out of the table; answers whether it was there.
fn take<K, T>(flights: &mut Table<K, T>, key: &K, flight: &Arc<Flight<T>>) -> bool
where
    K: Hash + Eq + ToOwned<Owned: Hash + Eq> + ?Sized,
{
    let is_there = is_there(flights, key, flight);
    if is_there {
        flights.remove(key);
    }
    is_there
}

fn is_there<K, T>(flights: &Table<K, T>, key: &K, flight: &Arc<Flight<T>>) -> bool
where
    K: Hash + Eq + ToOwned<Owned: Hash + Eq> + ?Sized,
{
    flights.get(key).is_some_and(|present| Arc::ptr_eq(present, flight))
}
