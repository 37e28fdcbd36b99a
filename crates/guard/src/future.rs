//! Gets that are awaited, and loads in tasks of their own.

use crate::cache::{GuardedCache, Known};
use crate::flights::Asked;
use crate::loads::Load;
use crate::mode::{FlightOf, Landing, Loaded, Mode, keys_of, land_all, sealed};
use crate::{BoxError, Key, LoadError};
use lanebloom::{Admission, Funnel, GuardFilter};
use std::borrow::Borrow;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::thread;
use tokio::sync::SetOnce;
use tracing::{Instrument, debug_span};

/// The mode of caches whose gets are awaited, on tokio.
#[derive(Debug)]
pub enum Async {}

impl sealed::Sealed for Async {}

impl Mode for Async {
    type Loader<K: Key + ?Sized, V: 'static> = dyn AnyLoader<K, V>;
    type Result<V> = SetOnce<Loaded<V>>;
}

impl<T> sealed::Place<T> for SetOnce<T> {
    fn fill(&self, value: T) {
        let _ = self.set(value);
    }
    fn is_filled(&self) -> bool {
        self.initialized()
    }
}

/// Reads rows from the store. Every `Fn(key) -> impl Future<Output = Result<Option<V>, E>>` is one.
/// A type of your own can read many rows at once for [`GuardedCache::get_many`].
///
/// ```
/// use lanebloom_guard::{GuardedCache, Loader};
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
///
/// struct Table(BTreeMap<u64, String>);
///
/// impl Loader<u64, String> for Table {
///     type Error = Infallible;
///
///     async fn load(&self, id: u64) -> Result<Option<String>, Infallible> {
///         Ok(self.0.get(&id).cloned())
///     }
///
///     // SELECT id, name FROM users WHERE id IN (...)
///     async fn load_many(
///         &self,
///         ids: Vec<u64>,
///     ) -> Result<Vec<(u64, String)>, Infallible> {
///         let row = |id: u64| Some((id, self.0.get(&id)?.clone()));
///         Ok(ids.into_iter().filter_map(row).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// let table = Table(BTreeMap::from([(1, "ann".into()), (2, "bob".into())]));
/// let cache = GuardedCache::<u64, String>::builder().build(table)?;
/// cache.added_many(&[1, 2, 3]);
/// let rows = cache.get_many(&[3, 2, 1]).await?;
/// assert_eq!(rows, [None, Some("bob".into()), Some("ann".into())]);
/// # Ok(()) }
/// ```
pub trait Loader<K: Key + ?Sized, V: Send + 'static>: Send + Sync + 'static {
    /// Why a read of the store failed.
    type Error: Into<BoxError>;

    /// Whether a multi-get calls [`load_many`](Self::load_many). Otherwise it loads one key after
    /// another, and each row is cached as it comes: set it so if you do not write a `load_many`. It
    /// is `false` for functions.
    const READS_MANY: bool = true;

    /// Reads the row of `key`; `None` if the store has none. It may get [other
    /// keys](crate#loaders-that-get-other-keys).
    fn load(&self, key: K::Owned) -> impl Future<Output = Result<Option<V>, Self::Error>> + Send;

    /// Reads the rows of distinct keys. Returns those that there are, in any order. By default, it
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

/// A [`Loader`] of any type. A panic is an error of the future.
pub trait AnyLoader<K: Key + ?Sized, V>: Send + Sync {
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

/// The payload of the panic in `Err`, if there is one. Nothing is seen of a future after its panic,
/// so its state may be broken.
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
    match catch_panic(load).await {
        Ok(result) => result.map_err(LoadError::failed),
        Err(payload) => Err(LoadError::panicked(&*payload)),
    }
}

/// Gets of the asynchronous mode.
impl<K, V, F> GuardedCache<K, V, F>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter + Send + Sync + 'static,
{
    /// The row of `key`, from the cache or the store; `None` if the store has none.
    ///
    /// Only a load suspends the future. It may be dropped at any time.
    ///
    /// # Errors
    ///
    /// Fails if the load does that this get began or joined.
    ///
    /// # Panics
    ///
    /// If it begins a load outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |name: String| Ok::<_, Infallible>(Some(name.len()));
    /// let cache = GuardedCache::<str, usize>::builder().build(read)?;
    /// cache.added("ann");
    /// cache.mark_ready();
    /// assert_eq!(cache.get("ann").await?, Some(3));
    /// assert_eq!(cache.get("eve").await?, None); // the store was not asked
    /// # Ok(()) }
    /// ```
    pub async fn get<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, LoadError> {
        let key = key.borrow();
        match self.look(key) {
            Known::Answer(known) => Ok(known),
            // Boxed, because most gets end before, and a large future is slow to move.
            Known::Unknown(admission) => Box::pin(self.load(key, admission)).await,
        }
    }

    async fn load(&self, key: &K, admission: Admission<'_>) -> Loaded<V> {
        let flight = match self.ask(key) {
            Asked::Known(known) => {
                self.count_known(&known, admission);
                return Ok(known);
            }
            Asked::Joined(flight) | Asked::New(flight) => flight,
        };
        let loaded = self.wait(key, flight).await?;
        admission.record(loaded.is_some());
        Ok(loaded)
    }

    /// Waits for a flight, and begins it if nobody has.
    async fn wait(&self, key: &K, mut flight: FlightOf<V, Async>) -> Loaded<V> {
        loop {
            let load = match self.begin_flight(key, &flight, Load::of_one()) {
                Ok(landing) => {
                    let load = landing.load;
                    let span = debug_span!("load", cache = self.0.name);
                    let task = load.scope(async move {
                        let loaded = landing.cache.0.loader.load(&landing.key).await;
                        landing.land(loaded);
                    });
                    tokio::spawn(task.instrument(span));
                    load
                }
                Err(load) => load,
            };
            if let Some(_wait) = load.awaited() {
                return flight.result.wait().await.clone();
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
    /// As [`get`](Self::get), and as [`check_batch`](lanebloom::CacheGuard::check_batch).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    /// use std::convert::Infallible;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |name: String| Ok::<_, Infallible>(Some(name.len()));
    /// let cache = GuardedCache::<str, usize>::builder().build(read)?;
    /// cache.added_many(&["ann", "john"]);
    /// cache.mark_ready();
    /// let rows = cache.get_many(&["john", "eve", "ann", "ann"]).await?;
    /// assert_eq!(rows, [Some(4), None, Some(3), Some(3)]);
    /// assert_eq!(cache.stats().loads, 2);
    /// # Ok(()) }
    /// ```
    pub async fn get_many<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> Result<Vec<Option<V>>, LoadError> {
        let mut asking = self.ask_many(keys);
        if self.0.loader.reads_many() {
            self.load_many(asking.begin_all());
        }
        for wait in asking.waits.by_ref() {
            let loaded = self.wait(keys[wait.at].borrow(), wait.flight).await?;
            wait.admission.record(loaded.is_some());
            asking.rows[wait.at] = loaded;
        }
        Ok(mem::take(&mut asking.rows))
    }

    fn load_many(&self, (load, landings): (Load, Vec<Landing<K, V, F, Async>>)) {
        if !landings.is_empty() {
            let span = debug_span!("load_many", cache = self.0.name, keys = landings.len());
            let task = load.scope(async move {
                let loaded = landings[0].cache.0.loader.load_many(keys_of(&landings)).await;
                land_all(&landings, loaded);
            });
            tokio::spawn(task.instrument(span));
        }
    }
}
