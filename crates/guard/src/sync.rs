//! The blocking mode: gets that load in their own thread, or wait for the thread that does.
//!
//! The builder is the same; [`Builder::build_blocking`](crate::Builder::build_blocking) makes a
//! cache of this mode.

use crate::cache::Known;
use crate::flights::Asked;
use crate::mode::{Loaded, Mode, keys_of, land_all, sealed};
use crate::{BoxError, Key, LoadError};
use lanebloom::{ConcurrentBloom, Funnel, GuardFilter, SipHash13};
use std::borrow::Borrow;
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
    type Flight<V> = OnceLock<Loaded<V>>;
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

    /// Reads the row of `key`; `None` if the store has none. It must not get the same key from the
    /// same cache, which would wait for itself.
    fn load(&self, key: K::Owned) -> Result<Option<V>, Self::Error>;

    /// Reads the rows of distinct keys. Returns those that there are, in any order. By default, it
    /// reads one after another.
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

    fn load(&self, key: K::Owned) -> Result<Option<V>, E> {
        self(key)
    }
}

mod any {
    use super::{Key, LoadError, Loaded};

    /// A [`Loader`](super::Loader) of any type. A panic is an error.
    pub trait AnyLoader<K: Key + ?Sized, V>: Send + Sync {
        fn load(&self, key: K::Owned) -> Loaded<V>;
        fn load_many(&self, keys: Vec<K::Owned>) -> Result<Vec<(K::Owned, V)>, LoadError>;
    }
}
use any::AnyLoader;

impl<K: Key + ?Sized, V, L: Loader<K, V>> AnyLoader<K, V> for L {
    fn load(&self, key: K::Owned) -> Loaded<V> {
        caught(|| Loader::load(self, key))
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
        let loaded = match self.ask(key) {
            Asked::Known(known) => {
                self.count_known(&known, admission);
                return Ok(known);
            }
            Asked::Joined(flight) => flight.wait().clone()?,
            Asked::Leads(flight) => {
                let landing = self.landing(key, &flight);
                let _span = debug_span!("load", cache = self.0.name).entered();
                let loaded = self.0.loader.load(landing.key.clone());
                landing.land(loaded.clone());
                loaded?
            }
        };
        admission.record(loaded.is_some());
        Ok(loaded)
    }

    /// The rows of many keys, in their order: one batch of lookups in the filter, one pass over the
    /// caches, and one call of [`load_many`](Loader::load_many) for the keys that nobody else loads
    /// at this moment.
    ///
    /// # Errors
    ///
    /// Fails if one of the loads does. The rows of the others are cached.
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
        // The own loads first: a thread that waited before could wait for one that waits for it.
        if !asking.leads.is_empty() {
            let _span = debug_span!("load_many", cache = self.0.name, keys = asking.leads.len()).entered();
            land_all(&asking.leads, self.0.loader.load_many(keys_of(&asking.leads)));
        }
        for wait in asking.waits {
            let loaded = wait.flight.wait().clone()?;
            wait.admission.record(loaded.is_some());
            asking.rows[wait.at] = loaded;
        }
        Ok(asking.rows)
    }
}
