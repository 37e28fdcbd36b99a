//! `GuardedCache`: the filter, the caches and the flights, and what both modes share.

use crate::builder::Plan;
use crate::flights::{Caches, Entry, Flights};
use crate::stats::Counts;
use crate::{Async, Builder, Mode};
use foldhash::quality::RandomState;
use lanebloom::{Admission, CacheGuard, ConcurrentBloom, Funnel, GuardFilter, Sink, SipHash13};
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

/// A type of keys, in their borrowed form: `u64`, `str`, `[u8]`, `(u32, u64)`. Implemented for
/// every type that fits.
///
/// Filters hash it as a [`Funnel`], the caches by `Hash`. Loaders get its owned form, `String` for
/// `str`.
///
/// ```
/// use lanebloom_guard::Key;
///
/// fn is_key<K: Key + ?Sized>() {}
/// is_key::<u64>();
/// is_key::<str>();
/// is_key::<(u32, [u8; 16])>();
/// ```
pub trait Key:
    Funnel + Hash + Eq + ToOwned<Owned: Funnel + Hash + Eq + Clone + Send + Sync> + Send + Sync + 'static
{
}

impl<K> Key for K where
    K: Funnel + Hash + Eq + ToOwned<Owned: Funnel + Hash + Eq + Clone + Send + Sync> + Send + Sync + 'static + ?Sized
{
}

/// A read-through cache over a store, with a filter of all valid keys in front. Clones share one
/// cache.
///
/// [`get`](GuardedCache::get) answers in this order: the filter turns the key away; the cache has
/// its value; the key is remembered as missing; the [loader](crate::Loader) reads the store, once
/// for all that ask for the key at the same moment.
///
/// `K` is the type of the keys in their borrowed form, as in [`CacheGuard`]: `GuardedCache<str,
/// User>` takes `&str`, `&String` and more. `M` is the [mode](Mode): the gets of this type are
/// awaited, those of [`sync::GuardedCache`](crate::sync::GuardedCache) block.
///
/// # Order of writes
///
/// Write to the store first, and then call [`added`](Self::added), [`insert`](Self::insert),
/// [`removed`](Self::removed) or [`invalidate`](Self::invalidate). They take effect before they
/// return: a get that begins later never answers from an earlier state, also if a load was on its
/// way meanwhile. A get that began earlier may answer either way.
///
/// If the code between the two can be cancelled (at an `await`), use
/// [`added_on_drop`](Self::added_on_drop).
///
/// # Loads
///
/// A load runs in a task of its own; in the blocking mode, in the thread that asked first. If a
/// waiter is cancelled, also the one that began it, the load goes on, for the other waiters and for
/// the cache. An error reaches every waiter and is not cached; the next get tries again. A panic of
/// the loader reaches the waiters as a [`LoadError`](crate::LoadError).
///
/// A load has no time limit of its own: a loader that may hang should have one
/// (`tokio::time::timeout`). A loader may [get other keys](crate#loaders-that-get-other-keys).
///
/// # Values and keys
///
/// Moka drops values and keys within the calls of this cache, some of them under a lock. **`Drop`,
/// `Clone`, `Hash` and `Eq` of both must not call the cache**: such a call may wait for itself
/// forever. If the end of a value must tell the cache, let `Drop` send a message to a task or
/// thread that does.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::GuardedCache;
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let read = async |id: u64| -> io::Result<Option<String>> {
///     Ok((id < 1000).then(|| format!("user {id}")))
/// };
/// let cache = GuardedCache::<u64, String>::builder()
///     .expected_keys(10_000)
///     .build(read)?;
/// cache.added_many(&Vec::from_iter(0..=1000u64));
/// cache.mark_ready(); // these are all; or rebuild_now, which reads them
///
/// assert_eq!(cache.get(&17).await?.as_deref(), Some("user 17")); // loaded
/// assert_eq!(cache.get(&17).await?.as_deref(), Some("user 17")); // cached
/// assert_eq!(cache.get(&1000).await?, None); // the store said so
/// assert_eq!(cache.get(&1000).await?, None); // remembered
/// assert_eq!(cache.get(&123_456).await?, None); // turned away
///
/// let stats = cache.stats();
/// assert_eq!((stats.loads, stats.hits), (2, 1));
/// assert_eq!((stats.known_misses, stats.turned_away), (1, 1));
/// # Ok(()) }
/// ```
pub struct GuardedCache<K: Key + ?Sized, V: 'static, F = ConcurrentBloom<SipHash13>, M: Mode = Async>(
    pub(crate) Arc<Inner<K, V, F, M>>,
);

pub(crate) struct Inner<K: Key + ?Sized, V: 'static, F, M: Mode> {
    pub(crate) name: String,
    pub(crate) guard: CacheGuard<K, F>,
    pub(crate) flights: Flights<K, Moka<K, V>, M::Result<V>>,
    pub(crate) loader: Box<M::Loader<K, V>>,
    pub(crate) counts: Counts,
    pub(crate) plan: Plan<F>,
    pub(crate) history: Mutex<crate::rebuild::History>,
}

/// The values, and the keys that the store lacks. Two caches, so that made-up keys, though they
/// pass the filter, cannot push out values.
///
/// foldhash and not SipHash, which makes a cached get 4% to 20% slower: a stranger cannot choose
/// what is cached, since the filter lets only valid keys and few others through.
pub(crate) struct Moka<K: ToOwned + ?Sized, V> {
    pub(crate) values: moka::sync::Cache<K::Owned, Cached<V>, RandomState>,
    /// Each with its epoch.
    pub(crate) misses: moka::sync::Cache<K::Owned, u64, RandomState>,
    /// In bytes, of a key that is remembered as missing.
    pub(crate) longest_miss: usize,
}

/// A value and its epoch.
#[derive(Clone)]
pub(crate) struct Cached<V> {
    pub(crate) value: V,
    epoch: u64,
}

impl<K: Key + ?Sized, V: Clone + Send + Sync + 'static> Caches<K> for Moka<K, V> {
    type Value = V;

    #[inline]
    fn get(&self, key: &K) -> Option<Entry<V>> {
        match self.values.get(key) {
            None => self.misses.get(key).map(|epoch| Entry { epoch, value: None }),
            Some(Cached { value, epoch }) => Some(Entry {
                epoch,
                value: Some(value),
            }),
        }
    }

    fn put(&self, key: &K, Entry { epoch, value }: Entry<V>) {
        match value {
            Some(value) => {
                self.misses.invalidate(key);
                self.values.insert(key.to_owned(), Cached { value, epoch });
            }
            None => {
                self.values.invalidate(key);
                if bytes_of(key) <= self.longest_miss {
                    self.misses.insert(key.to_owned(), epoch);
                }
            }
        }
    }

    fn forget(&self, key: &K) {
        self.misses.invalidate(key);
        self.values.invalidate(key);
    }

    /// Takes effect as moka's clock goes on, and does not wait for it.
    fn forget_all(&self) {
        self.values.invalidate_all();
        self.misses.invalidate_all();
    }
}

/// The bytes of a key, as a filter hashes them.
pub(crate) fn bytes_of(key: &(impl Funnel + ?Sized)) -> usize {
    struct Length(usize);
    impl Sink for Length {
        fn put(&mut self, bytes: &[u8]) {
            self.0 += bytes.len();
        }
    }
    let mut length = Length(0);
    key.funnel(&mut length);
    length.0
}

impl<K: Key + ?Sized, V: Clone + Send + Sync + 'static> GuardedCache<K, V> {
    /// A builder, for a cache of either mode. Its filter is a [`ConcurrentBloom`] under a random
    /// SipHash key, unless [`filter`](Builder::filter) names another.
    ///
    /// ```
    /// use lanebloom_guard::GuardedCache;
    ///
    /// let read_file = |path: String| match std::fs::read(path) {
    ///     Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
    ///     result => result.map(Some),
    /// };
    /// let cache = GuardedCache::<str, Vec<u8>>::builder()
    ///     .expected_keys(1000)
    ///     .build_blocking(read_file)?;
    /// assert_eq!(cache.get("a made-up path")?, None);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }
}

/// What the caches know of an admitted key, or what the key awaits.
pub(crate) enum Known<'a, V> {
    Answer(Option<V>),
    Unknown(Admission<'a>),
}

impl<K, V, F, M> GuardedCache<K, V, F, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
{
    /// The part of a get before a load. Counts the answer.
    #[inline]
    pub(crate) fn look(&self, key: &K) -> Known<'_, V> {
        match self.0.guard.check(key) {
            Some(admission) => self.look_in_caches(key, admission),
            None => Known::Answer(None),
        }
    }

    #[inline]
    pub(crate) fn look_in_caches<'a>(&self, key: &K, admission: Admission<'a>) -> Known<'a, V> {
        match self.0.flights.get(key) {
            Some(known) => {
                self.count_known(&known, admission);
                Known::Answer(known)
            }
            None => Known::Unknown(admission),
        }
    }

    pub(crate) fn count_known(&self, known: &Option<V>, admission: Admission<'_>) {
        let counts = self.0.counts.of_this_thread();
        match known {
            // Not recorded with the guard: a hit is the case that happens most.
            Some(_) => counts.hits.add(1),
            None => {
                counts.known_misses.add(1);
                admission.record(false);
            }
        }
    }

    /// The store has a row for `key` now, a new one or another: from now on gets admit the key, and
    /// the first one loads the row. Answers as the filter's insert does.
    ///
    /// Call it once the store has committed the row. A filter that is full answers with an error;
    /// then the cache asks the store [for every unknown
    /// key](CacheGuard#open-guards), until a rebuild.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # use std::sync::Mutex;
    /// # use std::convert::Infallible;
    /// # static STORE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    /// # let row = |id| STORE.lock().unwrap().contains(&id).then_some(id);
    /// # let read = move |id: u64| Ok::<_, Infallible>(row(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// assert_eq!(cache.get(&17)?, None);
    /// STORE.lock().unwrap().push(17);
    /// cache.added(&17);
    /// assert_eq!(cache.get(&17)?, Some(17));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn added<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> F::Answer {
        self.add(key.borrow(), None)
    }

    /// [`added`](Self::added), with the row: gets need no load. `value` is what the store has: if
    /// two threads write one key at the same time, neither knows whose row stays, so both should
    /// call `added` instead.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// let read = |_| -> Result<Option<&str>, &str> { Err("the store is not asked") };
    /// let cache = GuardedCache::<u64, &str>::builder().build_blocking(read)?;
    /// cache.insert(&17, "row 17");
    /// assert_eq!(cache.get(&17)?, Some("row 17"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn insert<Q: Borrow<K> + ?Sized>(&self, key: &Q, value: V) -> F::Answer {
        self.add(key.borrow(), Some(value))
    }

    /// The count first: `restore` relies on it. Then the filter: otherwise a get in between could
    /// be turned away after another get has found the value.
    fn add(&self, key: &K, value: Option<V>) -> F::Answer {
        self.0.counts.of_this_thread().added.add(1);
        let answer = self.0.guard.insert(key);
        self.0.flights.changed(key, value);
        answer
    }

    /// [`added`](Self::added) for many keys; answers as the filter's batch does.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # use std::convert::Infallible;
    /// let read = |id: u64| Ok::<_, Infallible>((id < 100).then_some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.added_many(&[1, 2, 3]);
    /// cache.mark_ready();
    /// assert_eq!(cache.get_many(&[4, 3, 2])?, [None, Some(3), Some(2)]);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn added_many<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> F::Total {
        self.0.counts.of_this_thread().added.add(keys.len());
        let answer = self.0.guard.insert_batch(keys);
        for key in keys {
            self.0.flights.changed(key.borrow(), None);
        }
        answer
    }

    /// Calls [`added`](Self::added) when the returned value is dropped. Make it before the store's
    /// commit, and keep it until the commit has returned: so it is called however the code in
    /// between ends, also if its future is dropped.
    ///
    /// If the store certainly lacks the row, call [`abandon`](AddedOnDrop::abandon). A commit that
    /// is still on its way when its future is dropped may come after a load that the drop could not
    /// stop: to exclude that, run the commit in a task of its own.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// # let commit = |_: u64| Ok::<(), Box<dyn std::error::Error + Send + Sync>>(());
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.mark_ready(); // the store is empty
    /// let added = cache.added_on_drop(17);
    /// assert_eq!(cache.get(&17)?, None);
    /// commit(17)?; // or commit(17).await
    /// drop(added);
    /// assert_eq!(cache.get(&17)?, Some(17));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn added_on_drop<Q: Borrow<K>>(&self, key: Q) -> AddedOnDrop<'_, K, V, F, M, Q> {
        AddedOnDrop {
            cache: self,
            key: Some(key),
        }
    }

    /// The store has no row for `key` any more. The next get asks the store; the filter admits the
    /// key until the next rebuild.
    ///
    /// The miss is not remembered before the store has confirmed it: another thread may have added
    /// the key again.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// let read = |_| Ok::<_, std::convert::Infallible>(None);
    /// let cache = GuardedCache::<u64, &str>::builder().build_blocking(read)?;
    /// cache.insert(&17, "row 17");
    /// cache.removed(&17);
    /// assert_eq!(cache.get(&17)?, None);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn removed<Q: Borrow<K> + ?Sized>(&self, key: &Q) {
        self.invalidate(key);
        self.0.counts.of_this_thread().removed.add(1);
    }

    /// Forgets what is known of `key`, because the store has another row for it now. The next get
    /// loads it.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// let read = |_| Ok::<_, std::convert::Infallible>(Some("new row"));
    /// let cache = GuardedCache::<u64, &str>::builder().build_blocking(read)?;
    /// cache.insert(&17, "old row");
    /// cache.invalidate(&17);
    /// assert_eq!(cache.get(&17)?, Some("new row"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn invalidate<Q: Borrow<K> + ?Sized>(&self, key: &Q) {
        self.0.flights.changed(key.borrow(), None);
    }

    /// Forgets all values and all remembered misses, at once and without a wait for other calls.
    /// The filter stays: to empty it, rebuild. Moka frees the memory during later calls.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// let read = |_| Ok::<_, std::convert::Infallible>(Some("new row"));
    /// let cache = GuardedCache::<u64, &str>::builder().build_blocking(read)?;
    /// cache.insert(&17, "old row");
    /// cache.clear();
    /// assert_eq!(cache.get(&17)?, Some("new row"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn clear(&self) {
        self.0.flights.all_changed();
    }

    /// The filter's guard, for checks before a get: a tower layer, a queue. Keys are added through
    /// the cache, which also forgets misses.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.added(&17);
    /// cache.mark_ready();
    /// assert!(cache.guard().check(&17).is_some());
    /// assert!(cache.guard().check(&18).is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn guard(&self) -> &CacheGuard<K, F> {
        &self.0.guard
    }
}

/// The same as [`GuardedCache::guard`].
impl<K: Key + ?Sized, V: 'static, F, M: Mode> AsRef<CacheGuard<K, F>> for GuardedCache<K, V, F, M> {
    fn as_ref(&self) -> &CacheGuard<K, F> {
        &self.0.guard
    }
}

impl<K: Key + ?Sized, V: 'static, F, M: Mode> Clone for GuardedCache<K, V, F, M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Key + ?Sized, V: 'static, F, M: Mode> fmt::Debug for GuardedCache<K, V, F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedCache")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

/// Calls [`added`](GuardedCache::added) when it is dropped; made by
/// [`GuardedCache::added_on_drop`].
#[must_use = "the key is added at once if this is not kept until the store has committed"]
pub struct AddedOnDrop<'a, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    cache: &'a GuardedCache<K, V, F, M>,
    /// `None` after `abandon`.
    key: Option<Q>,
}

impl<K, V, F, M, Q> AddedOnDrop<'_, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    /// Ends without a call of `added`, for a key that the store certainly lacks.
    ///
    /// ```
    /// # use lanebloom_guard::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// cache.mark_ready();
    /// cache.added_on_drop(17).abandon();
    /// assert_eq!(cache.get(&17)?, None);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn abandon(mut self) {
        self.key = None;
    }
}

impl<K, V, F, M, Q> Drop for AddedOnDrop<'_, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K>,
{
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // No caller takes an error, but it has opened the guard.
            let _ = self.cache.added(key);
        }
    }
}

impl<K, V, F, M, Q> fmt::Debug for AddedOnDrop<'_, K, V, F, M, Q>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    F: GuardFilter,
    M: Mode,
    Q: Borrow<K> + fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AddedOnDrop").field(&self.key).finish()
    }
}
