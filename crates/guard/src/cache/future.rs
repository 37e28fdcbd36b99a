//! Caches whose gets are awaited, on tokio.
//!
//! [`CacheBuilder::build`](crate::CacheBuilder::build) makes such a cache.

use crate::as_key::AsKey;
use crate::cache::entries::{Key, Value};
use crate::cache::error::{LoadError, Loaded, loaded};
use crate::cache::flights::Asked;
use crate::cache::gathering::{Added, Gathering};
use crate::cache::history::Rebuilt;
use crate::cache::keys::Keys;
use crate::cache::landing::{FlightOf, Landing, Pending, Refresh, keys_of, land_all};
use crate::cache::loads::Load;
use crate::cache::{Cache, Lookup, whole};
use crate::error::{BoxError, RebuildError};
use crate::filter::GuardFilter;
use crate::guard::CacheGuard;
use crate::stats::Admission;
use equivalent::Equivalent;
use lanebloom::{ConcurrentBloom, Funnel, SipHash13};
use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::mem;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::{Instrument, debug_span};

/// A read-through cache over a store, with a filter of all valid keys in front. Its gets are
/// awaited. Clones share one cache.
///
/// [`get`](Self::get) tries in this order: the filter may turn the key away; the cache may have its
/// value, or remember it as missing; otherwise the [loader](Loader) reads the store, once for all
/// gets of the key at the same time.
///
/// `K` is the type of the keys in their borrowed form, as in [`CacheGuard`]: `GuardedCache<str,
/// User>` takes `&str`, `&String` and more. Changes of the store, readiness, statistics and files
/// are calls of [`Cache`], to which this type derefs.
///
/// # Loads
///
/// A load runs in a task of its own. If a waiter is cancelled, even the one that began the load,
/// the load goes on for the other waiters and for the cache. If the store may hang or be
/// overloaded, set a [`load_timeout`](crate::CacheBuilder::load_timeout) and a
/// [`load_limit`](crate::CacheBuilder::load_limit).
///
/// An error reaches every waiter and is not cached; the next get tries again. A panic of the loader
/// reaches the waiters as a [`LoadError`].
///
/// # Examples
///
/// ```
/// use lanebloom_guard::future::GuardedCache;
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// let read = async |id: u64| -> io::Result<Option<String>> {
///     Ok((id < 1000).then(|| format!("user {id}")))
/// };
/// let cache = GuardedCache::<u64, String>::builder()
///     .expected_keys(10_000)
///     .build(read)?;
/// let all = 0..=1000; // SELECT id FROM users
/// cache
///     .rebuild_now(async |keys| Ok(keys.insert_all(all.clone())?))
///     .await?;
///
/// assert_eq!(cache.get(&17).await?.as_deref(), Some("user 17")); // loaded
/// assert_eq!(cache.get(&17).await?.as_deref(), Some("user 17")); // cached
/// assert_eq!(cache.get(&1000).await?, None); // missing in the store
/// assert_eq!(cache.get(&1000).await?, None); // remembered
/// assert_eq!(cache.get(&123_456).await?, None); // turned away
/// let stats = cache.stats();
/// assert_eq!((stats.loads, stats.hits), (2, 1));
/// assert_eq!((stats.known_misses, stats.guard.turned_away), (1, 1));
///
/// let rows = cache.get_many(&[18, 1000, 18]).await?; // 18 is loaded once
/// assert_eq!(rows, [Some("user 18".into()), None, Some("user 18".into())]);
/// assert_eq!(cache.stats().loads, 3);
///
/// let primary = || async { io::Result::Ok(Some(String::from("of the primary"))) };
/// assert_eq!(cache.get_with(&123_456, primary()).await?, None); // turned away
/// let row = cache.get_with(&19, primary()).await?;
/// assert_eq!(row.as_deref(), Some("of the primary"));
/// assert_eq!(cache.get(&19).await?, row); // cached
/// # Ok(()) }
/// ```
pub struct GuardedCache<K: Key + ?Sized, V: Value, F = ConcurrentBloom<SipHash13>> {
    cache: Cache<K, V, F>,
    loader: Arc<dyn AnyLoader<K, V>>,
    gathering: Option<Arc<Gathering<K, V, F>>>,
}

impl<K: Key + ?Sized, V: Value, F> GuardedCache<K, V, F> {
    /// `gather` is a window and the largest number of keys in it.
    pub(super) fn new(cache: Cache<K, V, F>, loader: impl Loader<K, V>, gather: Option<(Duration, usize)>) -> Self {
        Self {
            cache,
            loader: Arc::new(loader),
            gathering: gather.map(|(window, max_keys)| Gathering::new(window, max_keys)),
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
            gathering: self.gathering.clone(),
        }
    }
}

impl<K: Key + ?Sized, V: Value, F> fmt::Debug for GuardedCache<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cache.fmt(f)
    }
}

impl<K: Key + ?Sized, V: Value, F: GuardFilter> GuardedCache<K, V, F> {
    /// The row of `key`, from the cache or the store; `None` if the store has none.
    ///
    /// Only a load suspends the future. It may be dropped at any time. See the [example
    /// above](Self#examples).
    ///
    /// # Panics
    ///
    /// Panics if it begins a load outside of a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the load that this get began or joined fails.
    pub async fn get<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, LoadError> {
        let key = key.borrow();
        match self.look(key) {
            Lookup::Known(known) => Ok(known),
            Lookup::Due(value) => Ok(Some(self.refreshed(key, value))),
            // Boxed, because most gets end before this, and a large future is slow to move.
            Lookup::Unknown(admission) => Box::pin(self.load_gathered(key, admission)).await,
        }
    }

    /// [`get`](Self::get) of a key in another form, such as the borrowed [`Parts`](crate::Parts) of
    /// a composite key. Only a load makes the key itself.
    ///
    /// The form must hash like the key, and write the same bytes.
    ///
    /// # Panics
    ///
    /// Panics as [`get`](Self::get) does. With debug assertions, it also panics if it loads and the
    /// form hashes unlike the key.
    ///
    /// # Errors
    ///
    /// Fails as [`get`](Self::get) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::{Parts, future::GuardedCache};
    /// use std::convert::Infallible;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |key: (u32, String)| Ok::<_, Infallible>(Some(key.1.len()));
    /// let cache = GuardedCache::<(u32, String), usize>::builder().build(read)?;
    /// cache.insert(&(7, "ann".into()));
    /// cache.mark_ready();
    /// assert_eq!(cache.get_equivalent(&Parts((&7, "ann"))).await?, Some(3));
    /// let other = cache.get_equivalent(&Parts((&8, "ann"))).await?;
    /// assert_eq!(other, None); // turned away
    /// # Ok(()) }
    /// ```
    pub async fn get_equivalent<Q>(&self, key: &Q) -> Result<Option<V>, LoadError>
    where
        Q: Funnel + Hash + Equivalent<K::Owned> + ?Sized,
        for<'a> &'a Q: Into<K::Owned>,
    {
        match self.look(key) {
            Lookup::Known(known) => Ok(known),
            Lookup::Due(value) => Ok(Some(self.refreshed(whole::<K, Q>(key).borrow(), value))),
            Lookup::Unknown(admission) => {
                let key = whole::<K, Q>(key);
                Box::pin(async move { self.load_gathered(key.borrow(), admission).await }).await
            }
        }
    }

    /// [`get`](Self::get) with another load in place of the loader's: with a connection that the
    /// caller holds, for example. The filter, the cached value and the remembered miss come first,
    /// and a running load of the key is joined, whichever call began it. Otherwise `load` runs in a
    /// task of its own, and its row or miss is cached for all.
    ///
    /// # Panics
    ///
    /// Panics as [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// Fails as [`get`](Self::get) does.
    pub async fn get_with<Q: AsKey<K> + ?Sized, E: Into<BoxError>>(
        &self,
        key: &Q,
        load: impl Future<Output = Result<Option<V>, E>> + Send + 'static,
    ) -> Result<Option<V>, LoadError> {
        let key = key.borrow();
        match self.look(key) {
            Lookup::Known(known) => Ok(known),
            Lookup::Due(value) => Ok(Some(self.refreshed(key, value))),
            Lookup::Unknown(admission) => {
                let mut load: Option<BoxFuture<'static, _>> = Some(Box::pin(async { caught(load).await }));
                let begin = |flight: &FlightOf<V>| self.begin_alone(key, flight, &mut load);
                Box::pin(self.load(key, admission, begin)).await
            }
        }
    }

    async fn load_gathered(&self, key: &K, admission: Admission<'_>) -> Loaded<V> {
        // Only once: a `load_many` that gets its own keys would never end otherwise.
        let mut gathering = self.gathering.as_ref();
        let begin = |flight: &FlightOf<V>| self.gather(key, flight, gathering.take());
        self.load(key, admission, begin).await
    }

    /// Continues a get that found no cached answer. `begin` begins its flight, if necessary, and
    /// returns the load that began it.
    async fn load(&self, key: &K, admission: Admission<'_>, begin: impl FnMut(&FlightOf<V>) -> Load) -> Loaded<V> {
        match self.ask(key, admission) {
            Ok(pending) => self.wait(key, pending, begin).await,
            Err(known) => Ok(known),
        }
    }

    /// Waits for a flight, and begins it if no other get has.
    async fn wait(&self, key: &K, pending: Pending<'_, V>, mut begin: impl FnMut(&FlightOf<V>) -> Load) -> Loaded<V> {
        let mut flight = pending.flight;
        let loaded = loop {
            let load = begin(&flight);
            let cycle = match load.awaited(false) {
                Ok(wait) => {
                    let loaded = flight.result.wait().await.clone();
                    wait.end().await;
                    break loaded?;
                }
                Err(cycle) => cycle,
            };
            flight = match self.ask_again(key, &flight, cycle)? {
                Asked::Known(known) => break known,
                Asked::Joined(flight) | Asked::New(flight) => flight,
            };
        };
        pending.admission.record(loaded.is_some());
        Ok(loaded)
    }

    /// Returns `value` and begins a load of it behind. Outside of a runtime, it begins none.
    fn refreshed(&self, key: &K, value: V) -> V {
        let refresh = Handle::try_current().ok().and_then(|_| self.enter_refresh(key));
        if let Some(refresh) = refresh {
            self.gather(key, &refresh.flight, self.gathering.as_ref());
        }
        value
    }

    /// Adds the flight to the gathering batch, if there is one. Begins it otherwise.
    fn gather(&self, key: &K, flight: &FlightOf<V>, gathering: Option<&Arc<Gathering<K, V, F>>>) -> Load {
        let Some(gathering) = gathering else {
            return self.begin_alone(key, flight, &mut None);
        };
        // This panics outside of a runtime, so it comes first: others can still begin the flight.
        let runtime = Handle::current();
        let (load, added) = match gathering.add(|load| self.begin_flight(key, flight, load)) {
            Ok(added) => added,
            Err(load) => return load,
        };
        match added {
            Added::Further => {}
            Added::Full(batch) => self.load_many(batch),
            Added::First(window) => {
                let cache = self.clone();
                runtime.spawn(async move {
                    match window.gathering.window {
                        Duration::ZERO => tokio::task::yield_now().await,
                        time => tokio::time::sleep(time).await,
                    }
                    if let Some(batch) = window.close() {
                        cache.load_many(batch);
                    }
                });
            }
        }
        load
    }

    /// Begins the flight by a load of its own: the caller's, or else the loader's.
    fn begin_alone(
        &self,
        key: &K,
        flight: &FlightOf<V>,
        of_caller: &mut Option<BoxFuture<'static, Option<V>>>,
    ) -> Load {
        let landing = match self.begin_flight(key, flight, Load::of_one()) {
            Ok(landing) => landing,
            Err(load) => return load,
        };
        let (load, loader, of_caller) = (landing.load, Arc::clone(&self.loader), of_caller.take());
        let task = async move {
            let read = of_caller.unwrap_or_else(|| loader.load(&landing.key));
            let loaded = load.run(&landing.cache.0.limits, read).await;
            let _ = landing.land(loaded);
        };
        tokio::spawn(task.instrument(debug_span!("load", cache = self.0.name)));
        load
    }

    /// The rows of many keys, in their order: one batch of lookups in the filter, one pass over the
    /// caches, and one call of [`load_many`](Loader::load_many) for the keys that no other get is
    /// loading. If the loader is a function, it loads one key after another.
    ///
    /// # Panics
    ///
    /// Panics as [`get`](Self::get) and [`check_batch`](crate::CacheGuard::check_batch) do.
    ///
    /// # Errors
    ///
    /// Fails if one of the loads fails. The rows that were loaded before are cached.
    pub async fn get_many<Q: AsKey<K> + Funnel>(&self, keys: &[Q]) -> Result<Vec<Option<V>>, LoadError> {
        let mut multi_get = self.ask_many(keys);
        if Handle::try_current().is_ok() {
            self.refresh_many(&multi_get.refreshes());
        }
        if self.loader.reads_many() {
            self.load_many(multi_get.begin_all());
        }
        for (at, pending) in multi_get.waits.by_ref() {
            let key = keys[at].borrow();
            let begin = |flight: &FlightOf<V>| self.begin_alone(key, flight, &mut None);
            multi_get.rows[at] = self.wait(key, pending, begin).await?;
        }
        Ok(mem::take(&mut multi_get.rows))
    }

    fn refresh_many(&self, refreshes: &[Refresh<K, V, F>]) {
        if self.loader.reads_many() && refreshes.len() > 1 {
            self.load_many(self.begin_refreshes(refreshes));
        } else {
            for refresh in refreshes {
                self.begin_alone(refresh.key.borrow(), &refresh.flight, &mut None);
            }
        }
    }

    fn load_many(&self, (load, landings): (Load, Vec<Landing<K, V, F>>)) {
        if !landings.is_empty() {
            let span = debug_span!("load_many", cache = self.0.name, keys = landings.len());
            let (cache, loader) = (self.cache.clone(), Arc::clone(&self.loader));
            let task = async move {
                let loaded = loader.load_many(keys_of(&landings));
                land_all(&landings, load.run(&cache.0.limits, loaded).await);
            };
            tokio::spawn(task.instrument(span));
        }
    }

    /// Replaces the filter by a new one, with the keys that `source` inserts and those that are
    /// inserted into the cache meanwhile: see the [example above](Self#examples). If the future is
    /// dropped, the old filter stays.
    ///
    /// # Errors
    ///
    /// Fails as the chapter [Rebuilds](crate#rebuilds) describes. The old filter stays.
    pub async fn rebuild_now<S>(&self, mut source: S) -> Result<Rebuilt, RebuildError>
    where
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        self.rebuild_by(&mut source, || false).await
    }

    /// Calls [`rebuild_now`](Self::rebuild_now) about every `interval`, for as long as the future
    /// runs: [a schedule](crate#rebuilds). Spawn it. It has a clone of the cache, and never ends by
    /// itself. To end it, abort its task: that cancels a running rebuild, and the old filter stays.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::{BoxError, future::GuardedCache};
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), BoxError> {
    /// let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build(read)?;
    /// let schedule = cache.rebuild_every(Duration::from_secs(3600), async |keys| {
    ///     keys.insert_all([1, 2, 3])?;
    ///     Ok(())
    /// });
    /// let rebuilds = tokio::spawn(schedule);
    /// while !cache.is_ready() {
    ///     tokio::task::yield_now().await; // the first rebuild
    /// }
    /// assert_eq!((cache.get(&3).await?, cache.get(&4).await?), (Some(3), None));
    /// # tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    /// # assert!((3..=4).contains(&cache.stats().rebuilds));
    /// // at shutdown:
    /// rebuilds.abort();
    /// # Ok(()) }
    /// ```
    pub fn rebuild_every<S>(
        &self,
        interval: Duration,
        mut source: S,
    ) -> impl Future<Output = Infallible> + use<K, V, F, S>
    where
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let cache = self.clone();
        async move {
            let (mut schedule, mut wait) = cache.schedule(interval);
            loop {
                tokio::time::sleep(wait).await;
                wait = match schedule.look(&cache) {
                    Some(wait) => wait,
                    None => {
                        let result = catch_panic(cache.rebuild_by(&mut source, || false)).await;
                        schedule.ended(&cache.unless_panicked(result))
                    }
                };
            }
        }
    }
}

/// Reads rows from the store. Every `Fn(key) -> impl Future<Output = Result<Option<V>, E>>` is a
/// loader. Your own type can read many rows at once, for [`GuardedCache::get_many`] and for gets
/// that the cache [gathers](crate::CacheBuilder::gather_gets). A loader may get [other
/// keys](crate#loaders-that-get-other-keys).
///
/// ```
/// use lanebloom_guard::future::{GuardedCache, Loader};
/// use std::convert::Infallible;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
///
/// type Name = &'static str;
/// struct Table([Name; 3]);
/// static CALLS: AtomicU32 = AtomicU32::new(0);
///
/// impl Loader<usize, Name> for Table {
///     type Error = Infallible;
///
///     async fn load(&self, id: usize) -> Result<Option<Name>, Infallible> {
///         Ok(self.0.get(id).copied())
///     }
///
///     // SELECT id, name FROM users WHERE id IN (...)
///     async fn load_many(
///         &self,
///         ids: Vec<usize>,
///     ) -> Result<Vec<(usize, Name)>, Infallible> {
///         CALLS.fetch_add(1, Ordering::Relaxed);
///         let row = |id| Some((id, *self.0.get(id)?));
///         Ok(ids.into_iter().filter_map(row).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// let cache = GuardedCache::<usize, Name>::builder()
///     .gather_gets(Duration::from_millis(2), 100)
///     .build(Table(["ann", "bob", "carl"]))?;
/// let rows = cache.get_many(&[4, 2]).await?;
/// assert_eq!(rows, [None, Some("carl")]);
/// let (ann, bob) = tokio::join!(cache.get(&0), cache.get(&1));
/// assert_eq!((ann?, bob?), (Some("ann"), Some("bob")));
/// assert_eq!(CALLS.load(Ordering::Relaxed), 2);
/// # Ok(()) }
/// ```
pub trait Loader<K: Key + ?Sized, V: Send + 'static>: Send + Sync + 'static {
    /// Why a read of the store failed.
    type Error: Into<BoxError>;

    /// Whether a multi-get calls [`load_many`](Self::load_many). If `false`, it loads one key after
    /// another, and each row is cached as it comes. Set `false` if you do not write a `load_many`;
    /// functions have `false`.
    const READS_MANY: bool = true;

    /// Reads the row of `key`; `None` if the store has none.
    fn load(&self, key: K::Owned) -> impl Future<Output = Result<Option<V>, Self::Error>> + Send;

    /// Reads the rows of distinct keys. Returns the rows that exist, in any order. By default, it
    /// reads one after another.
    ///
    /// If it gets one of these keys, the row is read a second time, by `load`.
    fn load_many(&self, keys: Vec<K::Owned>) -> impl Future<Output = Result<Vec<(K::Owned, V)>, Self::Error>> + Send {
        async move {
            let mut rows = Vec::new();
            for key in keys {
                if let Some(row) = self.load(key.clone()).await? {
                    rows.push((key, row));
                }
            }
            Ok(rows)
        }
    }
}

impl<K, V, T, R, E> Loader<K, V> for T
where
    K: Key + ?Sized,
    V: Send + 'static,
    T: Fn(K::Owned) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<V>, E>> + Send,
    E: Into<BoxError>,
{
    type Error = E;

    const READS_MANY: bool = false;

    fn load(&self, key: K::Owned) -> impl Future<Output = Result<Option<V>, E>> + Send {
        self(key)
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LoadError>> + Send + 'a>>;

/// A [`Loader`] of any type. Its futures return panics as errors.
trait AnyLoader<K: Key + ?Sized, V>: Send + Sync {
    fn reads_many(&self) -> bool;
    fn load<'a>(&'a self, key: &'a K::Owned) -> BoxFuture<'a, Option<V>>;
    fn load_many(&self, keys: Vec<K::Owned>) -> BoxFuture<'_, Vec<(K::Owned, V)>>;
}

impl<K: Key + ?Sized, V: Send + 'static, L: Loader<K, V>> AnyLoader<K, V> for L {
    fn reads_many(&self) -> bool {
        L::READS_MANY
    }

    fn load<'a>(&'a self, key: &'a K::Owned) -> BoxFuture<'a, Option<V>> {
        Box::pin(caught(async move { Loader::load(self, key.clone()).await }))
    }

    fn load_many(&self, keys: Vec<K::Owned>) -> BoxFuture<'_, Vec<(K::Owned, V)>> {
        Box::pin(caught(async move { Loader::load_many(self, keys).await }))
    }
}

/// Returns the payload of a panic as an error. The future is not used after its panic, so its state
/// may be broken.
pub(crate) async fn catch_panic<T>(future: impl Future<Output = T>) -> thread::Result<T> {
    let mut future = pin!(future);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        },
    )
    .await
}

async fn caught<T, E: Into<BoxError>>(load: impl Future<Output = Result<T, E>>) -> Result<T, LoadError> {
    loaded(catch_panic(load).await)
}
