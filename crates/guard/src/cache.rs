//! The half of a cache that never waits: lookups in the guard and the caches, and changes that the
//! store made. `future.rs` and `sync.rs` build gets on it.

mod ages;
mod builder;
mod entries;
mod error;
mod feed;
mod flights;
pub mod future;
mod gathering;
mod history;
mod keys;
mod landing;
mod limits;
mod loads;
mod report;
mod saved;
mod schedule;
mod stats;
pub mod sync;
mod warning;

// Last: rustdoc shows the methods of a type in the order of its files, and `get` comes first.
#[cfg(feature = "redis")]
mod fill;
mod follow;

pub use builder::CacheBuilder;
pub use entries::{Key, Value};
pub use error::{CacheBuildError, LoadError};
pub use feed::{BlockingFeed, Change, Feed};
pub use history::Rebuilt;
pub use keys::Keys;
pub use loads::LoadScope;
pub use moka::Expiry;
pub use moka::notification::RemovalCause;
pub use report::CacheReport;
pub use saved::Restored;
pub use stats::CacheStats;

use crate::as_key::AsKey;
use crate::filter::GuardFilter;
use crate::guard::{CacheGuard, debug_assert_same_bytes};
use crate::on_drop::{InsertKey, InsertOnDrop};
use crate::stats::Admission;
use ages::Age;
use entries::{Cached, Moka};
use equivalent::Equivalent;
use error::Loaded;
use flights::{Entry, Flights};
use history::{FilterFactory, History, Measurement};
use lanebloom::{ConcurrentBloom, Funnel, SipHash13};
use limits::Limits;
use stats::CacheCounts;
use std::any::type_name;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::SetOnce;
use tracing::warn;
use warning::Warning;

/// The part that the caches of both modules share: changes, readiness, statistics. A
/// [`future::GuardedCache`] and a [`sync::GuardedCache`] deref to it. Clones share one cache. Code
/// that changes the store needs only this type, whether gets are awaited or block.
///
/// Write to the store first, and then call [`insert`](Self::insert),
/// [`insert_value`](Self::insert_value), [`remove`](Self::remove) or
/// [`invalidate`](Self::invalidate): [the order of writes](crate#order-of-writes). They take effect
/// before they return: [Consistency](crate#consistency).
///
/// # Values and keys
///
/// Moka drops values and keys within the calls of this cache, some of them under a lock. **`Drop`,
/// `Clone`, `Hash` and `Eq` of both must not call the cache**: such a call may wait for itself
/// forever. Let `Drop` send a message to a task or thread that calls it.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::sync::GuardedCache;
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
///
/// static STORE: Mutex<BTreeMap<u64, &str>> = Mutex::new(BTreeMap::new());
/// let read = |id| Ok::<_, Infallible>(STORE.lock().unwrap().get(&id).copied());
/// let cache = GuardedCache::<u64, &str>::builder().build_blocking(read)?;
/// cache.mark_ready(); // the store is empty
/// assert_eq!(cache.get(&17)?, None);
///
/// STORE.lock().unwrap().insert(17, "ann"); // the store first,
/// cache.insert(&17); // then the cache
/// assert_eq!(cache.get(&17)?, Some("ann"));
///
/// STORE.lock().unwrap().insert(17, "bob");
/// assert_eq!(cache.get(&17)?, Some("ann")); // cached
/// cache.invalidate(&17); // or insert_value(&17, "bob"), which spares the load
/// assert_eq!(cache.get(&17)?, Some("bob"));
///
/// STORE.lock().unwrap().remove(&17);
/// cache.remove(&17);
/// assert_eq!(cache.get(&17)?, None);
/// assert_eq!((cache.stats().inserted, cache.stats().removed), (1, 1));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
pub struct Cache<K: Key + ?Sized, V: Value, F = ConcurrentBloom<SipHash13>>(Arc<Inner<K, V, F>>);

struct Inner<K: Key + ?Sized, V: Value, F> {
    name: String,
    guard: CacheGuard<K, F>,
    flights: Flights<K, Moka<K, V>, SetOnce<Loaded<V>>>,
    counts: CacheCounts,
    limits: Limits,
    plan: FilterFactory<F>,
    history: Mutex<History>,
    measurement: Mutex<Measurement>,
    /// Whether this cache is told of the rows that other processes add: [`NO_FEED`], [`UNTOLD`] or
    /// [`TOLD`].
    ///
    /// | operation | ordering | partner |
    /// |---|---|---|
    /// | `open` | store `Release` of `UNTOLD` | the load: a get that the opened guard admits sees it, because it reads the guard first |
    /// | `note_listening` | store `Release` of `TOLD` | the load: a get that sees it sees the epoch of the `clear` before, too, because it reads the epoch later |
    /// | `vouches` | load `Acquire` | as above |
    feed: AtomicU8,
    reopened: Warning,
    failed: Warning,
}

/// No feed was followed, and [`Cache::reopen`] was not called: other processes add no rows, but by
/// a shared filter.
const NO_FEED: u8 = 0;
/// Others may add rows, of which nobody tells.
const UNTOLD: u8 = 1;
/// A feed is heard.
const TOLD: u8 = 2;

/// The result of a look into guard and caches.
enum Lookup<'a, V> {
    Known(Option<V>),
    /// A cached value that should be refreshed.
    Due(V),
    Unknown(Admission<'a>),
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// The part of a get before a load, for a key in any form. It counts the result.
    #[inline]
    fn look<Q: Funnel + Hash + Equivalent<K::Owned> + ?Sized>(&self, key: &Q) -> Lookup<'_, V> {
        match self.0.guard.check_form(key) {
            Some(admission) => self.look_in_caches(key, admission),
            None => Lookup::Known(None),
        }
    }

    #[inline]
    fn look_in_caches<'a, Q>(&self, key: &Q, admission: Admission<'a>) -> Lookup<'a, V>
    where
        Q: Funnel + Hash + Equivalent<K::Owned> + ?Sized,
    {
        let flights = &self.0.flights;
        match flights.current(flights.caches.find(key), || self.vouches(key)) {
            Some(Entry { found, is_due, .. }) => {
                let value = found.ok();
                self.count_known(&value, admission);
                match value {
                    Some(value) if is_due => Lookup::Due(value),
                    value => Lookup::Known(value),
                }
            }
            None => Lookup::Unknown(admission),
        }
    }

    /// The number of the filter under which a miss of `key` counts, if it does: see `flights.rs`.
    fn vouches<Q: Funnel + ?Sized>(&self, key: &Q) -> Option<u64> {
        self.0.guard.vouches(key, |is_unfilled, is_shared| {
            let feed = self.0.feed.load(Ordering::Acquire);
            feed == TOLD || !(is_shared || feed == UNTOLD && is_unfilled)
        })
    }

    fn count_known(&self, known: &Option<V>, admission: Admission<'_>) {
        match known {
            // Not recorded with the guard, since a hit is the most frequent case.
            Some(_) => self.0.counts.add(1, |counts| &counts.hits),
            None => {
                self.0.counts.add(1, |counts| &counts.known_misses);
                admission.record(false);
            }
        }
    }

    /// Call this after the store has committed a row for `key`, a new row or a changed one. From
    /// now on, gets admit the key, and the first one loads the row.
    ///
    /// If the filter has no room for the key, the cache asks the store [for every unknown
    /// key](CacheGuard#open-guards), until a rebuild.
    pub fn insert<Q: AsKey<K> + ?Sized>(&self, key: &Q) {
        self.change(key.borrow(), None);
    }

    /// [`insert`](Self::insert) with the row, so that gets need no load. `value` must be the
    /// store's row. If two threads write one key at the same time, neither knows whose row stays:
    /// both should call `insert` instead. The example of [`peek`](Self::peek) calls it.
    pub fn insert_value<Q: AsKey<K> + ?Sized>(&self, key: &Q, value: V) {
        self.change(key.borrow(), Some(value));
    }

    /// It counts first: `restore` relies on that. The filter is second: otherwise a get in between
    /// could be turned away after another get has found the value.
    fn change(&self, key: &K, value: Option<V>) {
        self.0.counts.add(1, |counts| &counts.inserted);
        self.0.guard.insert(key);
        self.0.flights.changed(key, value);
    }

    /// [`insert`](Self::insert) of many keys. The example of [`mark_ready`](Self::mark_ready) calls
    /// it.
    pub fn insert_batch<Q: AsKey<K> + Funnel>(&self, keys: &[Q]) {
        self.0.counts.add(keys.len(), |counts| &counts.inserted);
        self.0.guard.insert_batch(keys);
        for key in keys {
            self.0.flights.changed(key.borrow(), None);
        }
    }

    /// Calls [`insert`](Self::insert) when the returned value is dropped, as
    /// [that of the guard](CacheGuard::insert_on_drop): call it before the store's commit, and keep
    /// the value until the commit has returned.
    ///
    /// If the future is dropped while the commit is running, the commit may come after the next
    /// load, whose older row or miss is then cached. To exclude that, run the commit in a task of
    /// its own.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// # let commit = |_: u64| Ok::<(), lanebloom_guard::BoxError>(());
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.mark_ready(); // the store is empty
    /// let insert = cache.insert_on_drop(17);
    /// assert_eq!(cache.get(&17)?, None);
    /// commit(17)?; // or commit(17).await
    /// drop(insert);
    /// assert_eq!(cache.get(&17)?, Some(17));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn insert_on_drop<Q: AsKey<K>>(&self, key: Q) -> InsertOnDrop<'_, K, Q> {
        InsertOnDrop::new(self, key)
    }

    /// Call this after the store has removed the row of `key`. The next get asks the store. The
    /// filter admits the key until the next rebuild.
    ///
    /// The miss is not remembered before the store has confirmed it: another thread may have added
    /// the key again.
    pub fn remove<Q: AsKey<K> + ?Sized>(&self, key: &Q) {
        self.invalidate(key);
        self.0.counts.add(1, |counts| &counts.removed);
    }

    /// Forgets the value or the miss of `key`, because the store has another row for it. The next
    /// get loads it.
    pub fn invalidate<Q: AsKey<K> + ?Sized>(&self, key: &Q) {
        self.0.flights.changed(key.borrow(), None);
    }

    /// Forgets all values and all remembered misses at once, without waiting for other calls. The
    /// filter stays: to empty it, rebuild. Moka frees the memory during later calls. The example of
    /// [`iter`](Self::iter) calls it.
    pub fn clear(&self) {
        self.0.flights.all_changed();
    }

    /// [Invalidates](Self::invalidate) the values for which `predicate` is true, and returns their
    /// number. Remembered misses stay.
    ///
    /// It calls `predicate` for all cached values in this thread, before it returns: about 10 ms
    /// for 100,000. In async code with more values, use `spawn_blocking`. Running loads go on for
    /// their waiters, but are not cached. The example of [`iter`](Self::iter) calls it.
    pub fn invalidate_entries_if(&self, mut predicate: impl FnMut(&K, &V) -> bool) -> usize {
        let flights = &self.0.flights;
        flights.abandon_all();
        let of_predicate = flights
            .caches
            .values
            .iter()
            .filter(|(key, cached)| flights.is_current(cached.epoch) && predicate((**key).borrow(), &cached.value));
        of_predicate
            .map(|(key, _)| flights.changed((*key).borrow(), None))
            .count()
    }

    /// The value of `key`, if a get would find it in the cache. This loads nothing, does not look
    /// at the remembered misses, and does not count. To moka it is a use of the value, like a get:
    /// it restarts the [`time_to_idle`](crate::CacheBuilder::time_to_idle).
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// let read = |_| -> Result<Option<u64>, &str> { Err("the store is not asked") };
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.insert_value(&17, 1);
    /// cache.insert(&18);
    /// assert_eq!((cache.peek(&17), cache.peek(&18)), (Some(1), None));
    /// assert_eq!((cache.stats().gets(), cache.get(&17)?), (0, Some(1)));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn peek<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        let key = key.borrow();
        let cached = self.0.flights.caches.values.get(key)?;
        self.is_answer(key, &cached).then_some(cached.value)
    }

    /// The cached values that gets would find, with their keys, in any order. This blocks no other
    /// call, and to moka it is not a use of the values. A value that comes or goes meanwhile may be
    /// among them or not. A value that was invalidated before this call is not.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// let read = |_| Ok::<_, std::convert::Infallible>(Some("new row"));
    /// let cache = GuardedCache::<str, &str>::builder().build_blocking(read)?;
    /// cache.insert_value("red:1", "old row");
    /// cache.clear();
    /// for key in ["red:2", "red:3", "blue:1"] {
    ///     cache.insert_value(key, "old row");
    /// }
    /// let red = |key: &str, _: &&str| key.starts_with("red:");
    /// assert_eq!(cache.invalidate_entries_if(red), 2);
    /// let values = cache.iter().map(|(key, value)| (key.to_string(), value));
    /// assert_eq!(Vec::from_iter(values), [("blue:1".into(), "old row")]);
    /// assert_eq!(cache.get("red:2")?, Some("new row"));
    /// assert_eq!(cache.get("blue:1")?, Some("old row"));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Arc<K::Owned>, V)> + '_ {
        let values = self.0.flights.caches.values.iter();
        values.filter_map(|(key, cached)| self.is_answer((*key).borrow(), &cached).then_some((key, cached.value)))
    }

    /// Whether a get would return this value.
    fn is_answer(&self, key: &K, cached: &Cached<V>) -> bool {
        let flights = &self.0.flights;
        flights.is_current(cached.epoch) && flights.caches.age(key, cached) != Age::Expired && self.0.guard.admits(key)
    }

    /// The guard, for checks before a get, such as those of a tower layer or a queue. Add keys
    /// through the cache, which also forgets misses. [`mark_ready`](Self::mark_ready)'s example
    /// calls it.
    pub fn guard(&self) -> &CacheGuard<K, F> {
        &self.0.guard
    }

    /// Whether the filter is filled, and turns made-up keys away: [Readiness](crate#readiness).
    ///
    /// [`reopen`](Self::reopen) makes it false again. So do not let a probe take processes out of
    /// service by it: a feed that breaks would take out all of them. It stays true if the filter
    /// refuses a key later: see [`CacheReport::is_open`].
    pub fn is_ready(&self) -> bool {
        self.0.guard.is_ready()
    }

    /// Declares that the filter has all keys of the store: from now on, it turns other keys away.
    /// [Readiness](crate#readiness) has the cases for it.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.insert_batch(&[1, 2, 3]);
    /// assert!(!cache.is_ready() && cache.guard().check(&4).is_some());
    /// cache.mark_ready();
    /// assert!(cache.is_ready() && cache.guard().check(&4).is_none());
    /// assert!(cache.guard().check(&3).is_some());
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn mark_ready(&self) {
        self.0.guard.mark_ready();
    }

    /// [Reopens the guard](CacheGuard::reopen), because this process was not told of some keys: a
    /// feed of changes broke, say. From now on every key passes the filter, until the end of a
    /// rebuild that begins after this call. Until then, no miss is remembered, and none that was
    /// remembered before counts.
    ///
    /// [`follow`](crate::future::GuardedCache::follow) calls it, and then takes [the other
    /// steps](crate#the-order-of-a-feed): values and remembered misses stay until
    /// [`clear`](Self::clear).
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>((id < 4).then_some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.rebuild_now(|keys| Ok(keys.insert_all([1, 2])?))?;
    /// assert_eq!(cache.get(&3)?, None);
    /// cache.reopen(); // another process may have added rows
    /// assert_eq!((cache.get(&3)?, cache.is_ready()), (Some(3), false));
    /// cache.rebuild_now(|keys| Ok(keys.insert_all([1, 2, 3])?))?;
    /// assert_eq!((cache.get(&3)?, cache.is_ready()), (Some(3), true));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn reopen(&self) {
        let cache = &self.0.name;
        self.open();
        if let Some(held_back) = self.0.reopened.pass() {
            let text = "the filter may lack keys: every key passes until the next rebuild";
            warn!(cache, held_back, "{text}");
        }
    }

    /// [`reopen`](Self::reopen) without its warning.
    fn open(&self) {
        self.0.feed.store(UNTOLD, Ordering::Release);
        self.0.guard.reopen();
    }
}

/// The key that `form` stands for. With debug assertions, this checks that the hashes are the same.
fn whole<K: Key + ?Sized, Q: Funnel + Hash + ?Sized>(form: &Q) -> K::Owned
where
    for<'a> &'a Q: Into<K::Owned>,
{
    let key: K::Owned = form.into();
    debug_assert_same_bytes(form, &key);
    if cfg!(debug_assertions) {
        let hasher = RandomState::new();
        assert!(
            hasher.hash_one(form) == hasher.hash_one(&key),
            "a {} hashes unlike the {} that it stands for",
            type_name::<Q>(),
            type_name::<K::Owned>(),
        );
    }
    key
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> InsertKey<K> for Cache<K, V, F> {
    fn insert_key(&self, key: &K) {
        self.insert(key);
    }
}

impl<K: Key + ?Sized, V: Value, F> Clone for Cache<K, V, F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Key + ?Sized, V: Value, F> fmt::Debug for Cache<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedCache")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}
