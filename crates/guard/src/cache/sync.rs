//! Caches whose gets block: a get loads in its own thread, or waits for the thread that loads.
//!
//! [`CacheBuilder::build_blocking`](crate::CacheBuilder::build_blocking) makes such a cache.

use crate::as_key::AsKey;
use crate::cache::entries::{Key, Value};
use crate::cache::error::{LoadError, Loaded, loaded};
use crate::cache::flights::Asked;
use crate::cache::history::Rebuilt;
use crate::cache::keys::Keys;
use crate::cache::landing::{Landing, Pending, Refresh, keys_of, land_all};
use crate::cache::limits::{block_on, block_on_for};
use crate::cache::loads::{Cycle, Load, Wait};
use crate::cache::{Cache, Lookup, whole};
use crate::error::{BoxError, RebuildError};
use crate::filter::GuardFilter;
use crate::guard::CacheGuard;
use equivalent::Equivalent;
use lanebloom::{ConcurrentBloom, Funnel, SipHash13};
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use tracing::debug_span;

/// A read-through cache over a store, with a filter of all valid keys in front. Its gets block.
/// Clones share one cache.
///
/// It does what [its twin](crate::future::GuardedCache) does, and derefs to [`Cache`] as well.
///
/// # Loads
///
/// A load runs in the thread that asked first. The cache cannot end it there, so give the store's
/// client a timeout: a [`load_timeout`](crate::CacheBuilder::load_timeout) ends only the waits of
/// the threads that joined.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::{Parts, sync::GuardedCache};
/// use std::io;
///
/// let read = |(tenant, name): (u32, String)| -> io::Result<Option<String>> {
///     Ok((tenant < 9).then(|| format!("{name} of {tenant}")))
/// };
/// let cache = GuardedCache::<(u32, String), String>::builder()
///     .expected_keys(10_000)
///     .build_blocking(read)?;
/// let key = |tenant, name: &str| (tenant, name.to_owned());
/// // SELECT tenant, name FROM users
/// let all = [key(7, "ann"), key(7, "john"), key(9, "removed")];
/// cache.rebuild_now(|keys| Ok(keys.insert_all(all.clone())?))?;
///
/// let ann = cache.get(&all[0])?;
/// assert_eq!(ann.as_deref(), Some("ann of 7")); // loaded
/// assert_eq!(cache.get_equivalent(&Parts((&7, "ann")))?, ann); // cached
/// assert_eq!(cache.get(&all[2])?, None); // missing in the store
/// let rows = cache.get_many(&all)?; // one is loaded, one remembered
/// assert_eq!(rows, [ann, Some("john of 7".into()), None]);
///
/// let primary = || Ok::<_, io::Error>(Some("from the primary".into()));
/// assert_eq!(cache.get_with(&key(8, "eve"), primary)?, None); // turned away
/// cache.insert(&key(8, "eve"));
/// let eve = cache.get_with(&key(8, "eve"), primary)?;
/// assert_eq!(eve.as_deref(), Some("from the primary"));
/// assert_eq!(cache.get(&key(8, "eve"))?, eve); // cached
///
/// let stats = cache.stats();
/// assert_eq!((stats.loads, stats.hits), (4, 3));
/// assert_eq!((stats.known_misses, stats.guard.turned_away), (1, 1));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
pub struct GuardedCache<K: Key + ?Sized, V: Value, F = ConcurrentBloom<SipHash13>> {
    cache: Cache<K, V, F>,
    loader: Arc<dyn AnyLoader<K, V>>,
    /// The channel to the refreshing thread, which the first refresh starts.
    refreshes: Arc<OnceLock<Sender<Refreshes<K, V, F>>>>,
}

/// The refreshes of a get.
type Refreshes<K, V, F> = Vec<Refresh<K, V, F>>;

impl<K: Key + ?Sized, V: Value, F> GuardedCache<K, V, F> {
    pub(super) fn new(cache: Cache<K, V, F>, loader: impl Loader<K, V>) -> Self {
        Self {
            cache,
            loader: Arc::new(loader),
            refreshes: Arc::default(),
        }
    }
}

impl<K: Key + ?Sized, V: Value, F> Deref for GuardedCache<K, V, F> {
    type Target = Cache<K, V, F>;

    fn deref(&self) -> &Cache<K, V, F> {
        &self.cache
    }
}

/// Returns [`Cache::guard`].
impl<K: Key + ?Sized, V: Value, F: GuardFilter> AsRef<CacheGuard<K, F>> for GuardedCache<K, V, F> {
    fn as_ref(&self) -> &CacheGuard<K, F> {
        self.guard()
    }
}

impl<K: Key + ?Sized, V: Value, F> Clone for GuardedCache<K, V, F> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            loader: Arc::clone(&self.loader),
            refreshes: Arc::clone(&self.refreshes),
        }
    }
}

impl<K: Key + ?Sized, V: Value, F> fmt::Debug for GuardedCache<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cache.fmt(f)
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> GuardedCache<K, V, F> {
    /// The row of `key`, from the cache or the store; `None` if the store has none: see the
    /// [example above](Self#examples).
    ///
    /// # Errors
    ///
    /// Fails if the load fails, in this thread or in another.
    pub fn get<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, LoadError> {
        let key = key.borrow();
        self.answer(self.look(key), key, |key| self.loader.load(key))
    }

    /// [`get`](Self::get) of a key in another form, as [its
    /// twin](crate::future::GuardedCache::get_equivalent).
    ///
    /// # Panics
    ///
    /// Panics, with debug assertions, if it loads and the form hashes unlike the key.
    ///
    /// # Errors
    ///
    /// Fails as [`get`](Self::get) does.
    pub fn get_equivalent<Q>(&self, key: &Q) -> Result<Option<V>, LoadError>
    where
        Q: Funnel + Hash + Equivalent<K::Owned> + ?Sized,
        for<'a> &'a Q: Into<K::Owned>,
    {
        match self.look(key) {
            Lookup::Known(known) => Ok(known),
            known => self.answer(known, whole::<K, Q>(key).borrow(), |key| self.loader.load(key)),
        }
    }

    /// [`get`](Self::get) with another load in place of the loader's, as [its
    /// twin](crate::future::GuardedCache::get_with): if nothing is known of the key and no load of
    /// it runs, `load` runs in this thread.
    ///
    /// # Errors
    ///
    /// Fails as [`get`](Self::get) does.
    pub fn get_with<Q: AsKey<K> + ?Sized, E: Into<BoxError>>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, LoadError> {
        let (key, mut load) = (key.borrow(), Some(load));
        self.answer(self.look(key), key, |key| match load.take() {
            Some(load) => caught(load),
            None => self.loader.load(key),
        })
    }

    /// The part of a get after the look: its load is `load`, if one is necessary.
    #[inline]
    fn answer(&self, known: Lookup<'_, V>, key: &K, load: impl FnMut(&K::Owned) -> Loaded<V>) -> Loaded<V> {
        let admission = match known {
            Lookup::Known(known) => return Ok(known),
            Lookup::Due(value) => {
                self.refresh(self.enter_refresh(key).into_iter().collect());
                return Ok(Some(value));
            }
            Lookup::Unknown(admission) => admission,
        };
        match self.ask(key, admission) {
            Ok(pending) => self.wait(key, pending, load),
            Err(known) => Ok(known),
        }
    }

    /// Loads the row of a flight if no other thread does, or waits for it.
    fn wait(&self, key: &K, pending: Pending<'_, V>, mut load: impl FnMut(&K::Owned) -> Loaded<V>) -> Loaded<V> {
        let (mut flight, mut load_of) = (pending.flight, Load::of_one());
        let loaded = loop {
            let begun_by = match self.begin_flight(key, &flight, load_of) {
                Ok(landing) => break self.load(&landing, &mut load)?,
                Err(load) => load,
            };
            let cycle = match begun_by.awaited(true) {
                Ok(wait) => {
                    let loaded = block_on_for(flight.result.wait(), self.0.limits.timeout);
                    wait.end_blocking();
                    break match loaded {
                        Ok(loaded) => loaded.clone()?,
                        Err(timeout) => self.give_up(key, &flight, timeout)?,
                    };
                }
                Err(cycle) => cycle,
            };
            load_of = match cycle {
                Cycle::SameThread => Load::of_waiter(),
                _ => Load::of_one(),
            };
            flight = match self.ask_again(key, &flight, cycle)? {
                Asked::Known(known) => break known,
                Asked::Joined(flight) | Asked::New(flight) => flight,
            };
        };
        pending.admission.record(loaded.is_some());
        Ok(loaded)
    }

    /// Runs the load of a flight.
    fn load(&self, landing: &Landing<K, V, F>, load: impl FnOnce(&K::Owned) -> Loaded<V>) -> Loaded<V> {
        let _span = debug_span!("load", cache = self.0.name).entered();
        let wait = landing.load.awaited(true);
        let loaded = landing.load.run_blocking(&self.0.limits, || load(&landing.key));
        let loaded = landing.land(loaded);
        wait.into_iter().for_each(Wait::end_blocking);
        loaded
    }

    /// The rows of many keys, in their order: as [its
    /// twin](crate::future::GuardedCache::get_many).
    ///
    /// # Panics
    ///
    /// Panics as [`check_batch`](crate::CacheGuard::check_batch) does.
    ///
    /// # Errors
    ///
    /// Fails if one of the loads fails. The rows that were loaded before are cached.
    pub fn get_many<Q: AsKey<K> + Funnel>(&self, keys: &[Q]) -> Result<Vec<Option<V>>, LoadError> {
        let mut multi_get = self.ask_many(keys);
        self.refresh(multi_get.refreshes());
        if self.loader.reads_many() {
            self.load_many(multi_get.begin_all());
        }
        for (at, pending) in multi_get.waits.by_ref() {
            multi_get.rows[at] = self.wait(keys[at].borrow(), pending, |key| self.loader.load(key))?;
        }
        Ok(mem::take(&mut multi_get.rows))
    }

    /// Sends keys to the refreshing thread. The first call starts it.
    fn refresh(&self, refreshes: Refreshes<K, V, F>) {
        if !refreshes.is_empty() {
            // If the thread does not run, gets load the keys once they have expired.
            let _ = self.refreshes.get_or_init(|| self.start_refreshing()).send(refreshes);
        }
    }

    /// The thread ends with the last clone of this cache, which holds the other end of the channel.
    fn start_refreshing(&self) -> Sender<Refreshes<K, V, F>> {
        let (sender, receiver) = mpsc::channel::<Refreshes<K, V, F>>();
        let cache = Self {
            refreshes: Arc::default(),
            ..self.clone()
        };
        let refresh = move || {
            for refreshes in receiver {
                // A key's `Clone` may panic.
                let _ = catch_unwind(AssertUnwindSafe(|| cache.refresh_here(&refreshes)));
            }
        };
        let thread = thread::Builder::new().name(String::from("lanebloom-refresh"));
        if let Err(error) = thread.spawn(refresh) {
            tracing::warn!(cache = self.0.name, %error, "the thread that refreshes values does not start");
        }
        sender
    }

    fn refresh_here(&self, refreshes: &[Refresh<K, V, F>]) {
        if self.loader.reads_many() && refreshes.len() > 1 {
            self.load_many(self.begin_refreshes(refreshes));
        } else {
            for refresh in refreshes {
                if let Ok(landing) = self.begin_flight(refresh.key.borrow(), &refresh.flight, Load::of_one()) {
                    let _ = self.load(&landing, |key| self.loader.load(key));
                }
            }
        }
    }

    fn load_many(&self, (load, landings): (Load, Vec<Landing<K, V, F>>)) {
        if !landings.is_empty() {
            let _span = debug_span!("load_many", cache = self.0.name, keys = landings.len()).entered();
            let wait = load.awaited(true);
            let loaded = load.run_blocking(&self.0.limits, || self.loader.load_many(keys_of(&landings)));
            land_all(&landings, loaded);
            wait.into_iter().for_each(Wait::end_blocking);
        }
    }

    /// Replaces the filter by a new one, with the keys that `source` inserts and those that are
    /// inserted into the cache meanwhile: see the [example above](Self#examples).
    ///
    /// # Errors
    ///
    /// Fails as the chapter [Rebuilds](crate#rebuilds) describes. The old filter stays.
    pub fn rebuild_now<S>(&self, source: S) -> Result<Rebuilt, RebuildError>
    where
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        self.rebuild_unless(source, || false)
    }

    /// Once `is_stopped` is true, the old filter stays.
    pub(super) fn rebuild_unless<S>(
        &self,
        mut source: S,
        is_stopped: impl FnMut() -> bool + Send,
    ) -> Result<Rebuilt, RebuildError>
    where
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let mut source = async |keys: &mut Keys<'_, K::Owned>| source(keys);
        block_on(self.rebuild_by(&mut source, is_stopped))
    }

    /// Calls [`rebuild_now`](Self::rebuild_now) about every `interval` in a thread of its own,
    /// until the returned [`Background`], whose example shows it, is dropped or stopped: [a
    /// schedule](crate#rebuilds).
    ///
    /// # Panics
    ///
    /// Panics if the system cannot start a thread.
    pub fn rebuild_every<S>(&self, interval: Duration, mut source: S) -> Background
    where
        S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError> + Send + 'static,
    {
        let cache = self.clone();
        Background::start(move |mut stopped| {
            let (mut schedule, mut wait) = cache.schedule(interval);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = schedule.look(&cache).unwrap_or_else(|| {
                    let is_stopped = || is_dropped(&mut stopped);
                    let rebuild = AssertUnwindSafe(|| cache.rebuild_unless(&mut source, is_stopped));
                    schedule.ended(&cache.unless_panicked(catch_unwind(rebuild)))
                });
            }
        })
    }
}

/// A thread that rebuilds a cache on a schedule or applies a feed to it; made by
/// [`GuardedCache::rebuild_every`] and [`GuardedCache::follow`]. It ends some time after this is
/// dropped.
///
/// ```
/// use lanebloom_guard::sync::{Background, GuardedCache};
/// use std::{sync::Arc, time::Duration};
///
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
/// let ids = Arc::new([1, 2, 3]);
/// let of_source = Arc::clone(&ids);
/// let hour = Duration::from_secs(3600);
/// let rebuilds: Background =
///     cache.rebuild_every(hour, move |keys| Ok(keys.insert_all(*of_source)?));
/// while !cache.is_ready() {
///     std::thread::yield_now(); // the first rebuild
/// }
/// assert_eq!((cache.get(&3)?, cache.get(&4)?), (Some(3), None));
/// assert_eq!(Arc::strong_count(&ids), 2); // the thread has the source
/// rebuilds.stop();
/// assert_eq!(Arc::strong_count(&ids), 1); // the thread has ended
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[must_use = "the thread ends when this is dropped"]
#[derive(Debug)]
pub struct Background {
    /// The thread ends when this end of the channel is dropped.
    _stop: Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Background {
    pub(super) fn start(run: impl FnOnce(Receiver<()>) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        Self {
            _stop: stop,
            thread: thread::spawn(move || run(stopped)),
        }
    }

    /// Ends the thread and waits for its end. A running rebuild stops at its next batch, and the
    /// old filter stays. A feed ends with its next change, or after its `silence`. See the [example
    /// above](Self).
    pub fn stop(self) {
        drop(self._stop);
        // The thread never panics.
        let _ = self.thread.join();
    }
}

/// Whether the other end of the channel is dropped. Borrowed mutably, since threads cannot share a
/// receiver.
pub(super) fn is_dropped(receiver: &mut Receiver<()>) -> bool {
    receiver.try_recv() == Err(TryRecvError::Disconnected)
}

/// Reads rows from the store, as [its twin](crate::future::Loader). Every
/// `Fn(key) -> Result<Option<V>, E>` is a loader.
///
/// ```
/// use lanebloom_guard::sync::{GuardedCache, Loader};
/// use std::convert::Infallible;
///
/// type Name = &'static str;
/// struct Table([Name; 3]);
///
/// impl Loader<usize, Name> for Table {
///     type Error = Infallible;
///
///     fn load(&self, id: usize) -> Result<Option<Name>, Infallible> {
///         Ok(self.0.get(id).copied())
///     }
///
///     // SELECT id, name FROM users WHERE id IN (...)
///     fn load_many(
///         &self,
///         ids: Vec<usize>,
///     ) -> Result<Vec<(usize, Name)>, Infallible> {
///         let row = |id| Some((id, *self.0.get(id)?));
///         Ok(ids.into_iter().filter_map(row).collect())
///     }
/// }
///
/// let table = Table(["ann", "bob", "carl"]);
/// let cache = GuardedCache::<usize, Name>::builder().build_blocking(table)?;
/// assert_eq!(cache.get_many(&[3, 2, 1])?, [None, Some("carl"), Some("bob")]);
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
pub trait Loader<K: Key + ?Sized, V>: Send + Sync + 'static {
    /// Why a read of the store failed.
    type Error: Into<BoxError>;

    /// Whether a multi-get calls [`load_many`](Self::load_many), as in
    /// [its twin](crate::future::Loader::READS_MANY). Set `false` if you do not write a
    /// `load_many`.
    const READS_MANY: bool = true;

    /// Reads the row of `key`; `None` if the store has none.
    fn load(&self, key: K::Owned) -> Result<Option<V>, Self::Error>;

    /// Reads the rows of distinct keys. Returns the rows that exist, in any order. By default, it
    /// reads one after another.
    ///
    /// If it gets one of these keys, the row is read a second time, by `load`.
    fn load_many(&self, keys: Vec<K::Owned>) -> Result<Vec<(K::Owned, V)>, Self::Error> {
        let row = |key: K::Owned| {
            let row = self.load(key.clone()).transpose()?;
            Some(row.map(|row| (key, row)))
        };
        keys.into_iter().filter_map(row).collect()
    }
}

impl<K, V, T, E> Loader<K, V> for T
where
    K: Key + ?Sized,
    T: Fn(K::Owned) -> Result<Option<V>, E> + Send + Sync + 'static,
    E: Into<BoxError>,
{
    type Error = E;

    const READS_MANY: bool = false;

    fn load(&self, key: K::Owned) -> Result<Option<V>, E> {
        self(key)
    }
}

/// A [`Loader`] of any type. It returns panics as errors.
trait AnyLoader<K: Key + ?Sized, V>: Send + Sync {
    fn reads_many(&self) -> bool;
    fn load(&self, key: &K::Owned) -> Loaded<V>;
    fn load_many(&self, keys: Vec<K::Owned>) -> Result<Vec<(K::Owned, V)>, LoadError>;
}

impl<K: Key + ?Sized, V, L: Loader<K, V>> AnyLoader<K, V> for L {
    fn reads_many(&self) -> bool {
        L::READS_MANY
    }

    fn load(&self, key: &K::Owned) -> Loaded<V> {
        caught(|| Loader::load(self, key.clone()))
    }

    fn load_many(&self, keys: Vec<K::Owned>) -> Result<Vec<(K::Owned, V)>, LoadError> {
        caught(|| Loader::load_many(self, keys))
    }
}

fn caught<T, E: Into<BoxError>>(load: impl FnOnce() -> Result<T, E>) -> Result<T, LoadError> {
    loaded(catch_unwind(AssertUnwindSafe(load)))
}
