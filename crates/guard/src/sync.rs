//! The blocking mode: gets that load in their own thread, or wait for the thread that does.
//!
//! The builder is the same; [`Builder::build_blocking`](crate::Builder::build_blocking) makes a
//! cache of this mode.

use crate::cache::Known;
use crate::flights::Asked;
use crate::loads::Load;
use crate::mode::{FlightOf, Landing, Loaded, Mode, keys_of, land_all, sealed};
use crate::{BoxError, Key, LoadError};
use lanebloom::{ConcurrentBloom, Funnel, GuardFilter, SipHash13};
use std::borrow::Borrow;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use tracing::debug_span;

/// A [`GuardedCache`](crate::GuardedCache) whose gets block.
pub type GuardedCache<K, V, F = ConcurrentBloom<SipHash13>> = crate::GuardedCache<K, V, F, Blocking>;

/// The mode of caches whose gets block their thread.
#[derive(Debug)]
pub enum Blocking {}

impl sealed::Sealed for Blocking {}

impl Mode for Blocking {
    type Loader<K: Key + ?Sized, V: 'static> = dyn AnyLoader<K, V>;
    type Result<V> = OnceLock<Loaded<V>>;
}

impl<T> sealed::Place<T> for OnceLock<T> {
    fn fill(&self, value: T) {
        let _ = self.set(value);
    }
    fn is_filled(&self) -> bool {
        self.get().is_some()
    }
}

/// Reads rows from the store. Every `Fn(key) -> Result<Option<V>, E>` is one. A type of your own
/// can read many rows at once for `get_many`.
///
/// ```
/// use lanebloom_guard::{GuardedCache, sync::Loader};
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
///
/// struct Table(BTreeMap<u64, String>);
///
/// impl Loader<u64, String> for Table {
///     type Error = Infallible;
///
///     fn load(&self, id: u64) -> Result<Option<String>, Infallible> {
///         Ok(self.0.get(&id).cloned())
///     }
///
///     // SELECT id, name FROM users WHERE id IN (...)
///     fn load_many(
///         &self,
///         ids: Vec<u64>,
///     ) -> Result<Vec<(u64, String)>, Infallible> {
///         let row = |id: u64| Some((id, self.0.get(&id)?.clone()));
///         Ok(ids.into_iter().filter_map(row).collect())
///     }
/// }
///
/// let table = Table(BTreeMap::from([(1, "ann".into()), (2, "bob".into())]));
/// let cache = GuardedCache::<u64, String>::builder().build_blocking(table)?;
/// cache.added_many(&[1, 2, 3]);
/// let rows = cache.get_many(&[3, 2, 1])?;
/// assert_eq!(rows, [None, Some("bob".into()), Some("ann".into())]);
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
pub trait Loader<K: Key + ?Sized, V>: Send + Sync + 'static {
    /// Why a read of the store failed.
    type Error: Into<BoxError>;

    /// Whether a multi-get calls [`load_many`](Self::load_many). Otherwise it loads one key after
    /// another, and each row is cached as it comes: set it so if you do not write a `load_many`. It
    /// is `false` for functions.
    const READS_MANY: bool = true;

    /// Reads the row of `key`; `None` if the store has none. It may get [other
    /// keys](crate#loaders-that-get-other-keys).
    fn load(&self, key: K::Owned) -> Result<Option<V>, Self::Error>;

    /// Reads the rows of distinct keys. Returns those that there are, in any order. By default, it
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

mod any {
    use super::{Key, LoadError, Loaded};

    /// A [`Loader`](super::Loader) of any type. A panic is an error.
    pub trait AnyLoader<K: Key + ?Sized, V>: Send + Sync {
        fn reads_many(&self) -> bool;
        fn load(&self, key: &K::Owned) -> Loaded<V>;
        fn load_many(&self, keys: Vec<K::Owned>) -> Result<Vec<(K::Owned, V)>, LoadError>;
    }
}
use any::AnyLoader;

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
    match catch_unwind(AssertUnwindSafe(load)) {
        Ok(result) => result.map_err(LoadError::failed),
        Err(payload) => Err(LoadError::panicked(&*payload)),
    }
}

/// Gets of the blocking mode.
impl<K, V, F> crate::GuardedCache<K, V, F, Blocking>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
{
    /// The row of `key`, from the cache or the store; `None` if the store has none.
    ///
    /// # Errors
    ///
    /// Fails if the load does, which this thread or another runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    ///
    /// let read = |name: String| Ok::<_, Infallible>(Some(name.len()));
    /// let cache = GuardedCache::<str, usize>::builder().build_blocking(read)?;
    /// cache.added("ann");
    /// cache.mark_ready();
    /// assert_eq!(cache.get("ann")?, Some(3));
    /// assert_eq!(cache.get("eve")?, None); // the store was not asked
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn get<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, LoadError> {
        let key = key.borrow();
        let admission = match self.look(key) {
            Known::Answer(known) => return Ok(known),
            Known::Unknown(admission) => admission,
        };
        let flight = match self.ask(key) {
            Asked::Known(known) => {
                self.count_known(&known, admission);
                return Ok(known);
            }
            Asked::Joined(flight) | Asked::New(flight) => flight,
        };
        let loaded = self.wait(key, flight)?;
        admission.record(loaded.is_some());
        Ok(loaded)
    }

    /// Loads the row of a flight if nobody does, or waits for it.
    fn wait(&self, key: &K, mut flight: FlightOf<V, Blocking>) -> Loaded<V> {
        loop {
            let load = match self.begin_flight(key, &flight, Load::of_one()) {
                Ok(landing) => {
                    let _span = debug_span!("load", cache = self.0.name).entered();
                    let _wait = landing.load.awaited();
                    let loaded = landing.load.sync_scope(|| self.0.loader.load(&landing.key));
                    landing.land(loaded.clone());
                    return loaded;
                }
                Err(load) => load,
            };
            if let Some(_wait) = load.awaited() {
                return flight.result.wait().clone();
            }
            flight = match self.ask_again(key, &flight, load)? {
                Asked::Known(known) => return Ok(known),
                Asked::Joined(flight) | Asked::New(flight) => flight,
            };
        }
    }

    /// The rows of many keys, in their order: one batch of lookups in the filter, one pass over the
    /// caches, and one call of [`load_many`](Loader::load_many) for the keys that nobody else loads
    /// at this moment. If the loader is a function, one load after another.
    ///
    /// # Errors
    ///
    /// Fails if one of the loads does. The rows that were loaded before are cached.
    ///
    /// # Panics
    ///
    /// As [`check_batch`](lanebloom::CacheGuard::check_batch).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    ///
    /// let read = |name: String| Ok::<_, Infallible>(Some(name.len()));
    /// let cache = GuardedCache::<str, usize>::builder().build_blocking(read)?;
    /// cache.added_many(&["ann", "john"]);
    /// cache.mark_ready();
    /// let rows = cache.get_many(&["john", "eve", "ann", "ann"])?;
    /// assert_eq!(rows, [Some(4), None, Some(3), Some(3)]);
    /// assert_eq!(cache.stats().loads, 2);
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn get_many<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> Result<Vec<Option<V>>, LoadError> {
        let mut asking = self.ask_many(keys);
        if self.0.loader.reads_many() {
            self.load_many(asking.begin_all());
        }
        for wait in asking.waits.by_ref() {
            let loaded = self.wait(keys[wait.at].borrow(), wait.flight)?;
            wait.admission.record(loaded.is_some());
            asking.rows[wait.at] = loaded;
        }
        Ok(mem::take(&mut asking.rows))
    }

    fn load_many(&self, (load, landings): (Load, Vec<Landing<K, V, F, Blocking>>)) {
        if !landings.is_empty() {
            let _span = debug_span!("load_many", cache = self.0.name, keys = landings.len()).entered();
            let _wait = load.awaited();
            let loaded = load.sync_scope(|| self.0.loader.load_many(keys_of(&landings)));
            land_all(&landings, loaded);
        }
    }
}
