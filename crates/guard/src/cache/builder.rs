//! The builder of both kinds of caches.

use crate::cache::counts::Counts;
use crate::cache::error::BuilderError;
use crate::cache::flights::Flights;
use crate::cache::history::{FilterFactory, History, MakeFilter};
use crate::cache::store::{Cached, Key, Moka, Value, bytes_of};
use crate::cache::{Cache, Inner, future, sync};
use crate::error::BoxError;
use crate::filter::GuardFilter;
use crate::guard::CacheGuard;
use foldhash::quality::RandomState;
use lanebloom::{ConcurrentBloom, SipHash13};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// 1000 years, the limit of moka.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// What moka takes for a remembered miss beside the key, in bytes, about. Measured.
const MISS: usize = 200;

type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u32 + Send + Sync>;

/// Builds a cache; made by [`future::GuardedCache::builder`] and [`sync::GuardedCache::builder`],
/// which are the same. [`build`](Self::build) or [`build_blocking`](Self::build_blocking) decides
/// how gets wait.
///
/// | option | default |
/// |---|---|
/// | [`expected_keys`](Self::expected_keys) | 1,000,000 |
/// | [`false_positive_rate`](Self::false_positive_rate) | 0.01 |
/// | [`capacity`](Self::capacity) | 100,000 values |
/// | [`miss_memory`](Self::miss_memory) | 32 MiB |
/// | [`miss_key_limit`](Self::miss_key_limit) | 1 KiB |
/// | [`time_to_live`](Self::time_to_live) | none |
/// | [`miss_time_to_live`](Self::miss_time_to_live) | one minute |
///
/// ```
/// use lanebloom_guard::sync::GuardedCache;
/// use std::time::Duration;
///
/// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(vec![id as u8; 100]));
/// let cache = GuardedCache::<u64, Vec<u8>>::builder()
///     .name("thumbnails")
///     .expected_keys(5_000_000)
///     .false_positive_rate(0.001)
///     .capacity(64 << 20) // bytes, because of the weigher
///     .weigher(|_, image| image.len() as u32)
///     .time_to_live(Duration::from_secs(600))
///     .miss_time_to_live(Duration::from_secs(10))
///     .build_blocking(read)?;
/// assert!(cache.guard().filter().expected_keys() == 5_000_000);
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[must_use = "a builder does nothing until `build` or `build_blocking`"]
pub struct Builder<K: Key + ?Sized, V, F = ConcurrentBloom<SipHash13>> {
    name: String,
    plan: FilterFactory<F>,
    capacity: u64,
    weigher: Option<Weigher<K::Owned, V>>,
    time_to_live: Option<Duration>,
    miss_memory: u64,
    miss_key_limit: usize,
    miss_time_to_live: Duration,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized, V: Value> Builder<K, V> {
    fn new() -> Self {
        let plan = FilterFactory {
            expected_keys: 1_000_000,
            make: keyed_filter(0.01),
        };
        Self {
            name: String::from("default"),
            plan,
            capacity: 100_000,
            weigher: None,
            time_to_live: None,
            miss_memory: 32 << 20,
            miss_key_limit: 1 << 10,
            miss_time_to_live: Duration::from_secs(60),
            key: PhantomData,
        }
    }

    /// The fraction of made-up keys that the filter lets through. They cost a load each, once per
    /// [`miss_time_to_live`](Self::miss_time_to_live).
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.plan.make = keyed_filter(rate);
        self
    }
}

fn keyed_filter(rate: f64) -> MakeFilter<ConcurrentBloom<SipHash13>> {
    Box::new(move |keys| {
        let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate);
        Ok(builder.hasher(SipHash13::random()).build()?)
    })
}

impl<K: Key + ?Sized, V: Value, F> Builder<K, V, F> {
    /// The name in figures and traces; "default" otherwise.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The number of valid keys until the next rebuild. A rebuild makes a larger filter if there
    /// are more keys by then.
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.plan.expected_keys = keys;
        self
    }

    /// The filter, any that a [`CacheGuard`] takes, in place of a [`ConcurrentBloom`] under
    /// SipHash. `make` makes an empty one for a number of keys, once for the cache and once per
    /// rebuild. If strangers choose the keys, its hasher should be a new [`SipHash13::random`] each
    /// time. A filter that has all keys from the beginning is not known to:
    /// [`mark_ready`](Cache::mark_ready) says so.
    ///
    /// ```
    /// use lanebloom_guard::lanebloom::{ScalableBloom, SipHash13};
    /// use lanebloom_guard::sync::GuardedCache;
    ///
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let filter = |keys| {
    ///     let builder = ScalableBloom::builder().expected_keys(keys);
    ///     builder.hasher(SipHash13::random()).build()
    /// };
    /// let cache = GuardedCache::<u64, u64>::builder()
    ///     .expected_keys(1000)
    ///     .filter(filter)
    ///     .build_blocking(read)?;
    /// cache.insert(&17);
    /// cache.mark_ready();
    /// assert_eq!((cache.get(&17)?, cache.get(&18)?), (Some(17), None));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn filter<G, E: Into<BoxError>>(
        self,
        make: impl Fn(usize) -> Result<G, E> + Send + Sync + 'static,
    ) -> Builder<K, V, G> {
        Builder {
            name: self.name,
            plan: FilterFactory {
                expected_keys: self.plan.expected_keys,
                make: Box::new(move |keys| make(keys).map_err(Into::into)),
            },
            capacity: self.capacity,
            weigher: self.weigher,
            time_to_live: self.time_to_live,
            miss_memory: self.miss_memory,
            miss_key_limit: self.miss_key_limit,
            miss_time_to_live: self.miss_time_to_live,
            key: PhantomData,
        }
    }

    /// The number of values that are cached at most; with a [`weigher`](Self::weigher), their
    /// weight.
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = capacity;
        self
    }

    /// What a value takes of the [`capacity`](Self::capacity): bytes, say. It must not call the
    /// cache, which would wait for itself.
    pub fn weigher(mut self, weigher: impl Fn(&K::Owned, &V) -> u32 + Send + Sync + 'static) -> Self {
        self.weigher = Some(Box::new(weigher));
        self
    }

    /// How long a value is cached. Without it, until it is evicted or invalidated.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    /// The memory for keys that are remembered as missing, in bytes, about. Each takes 200 bytes
    /// and the bytes that it writes as a [`Funnel`](lanebloom::Funnel): 32 MiB are enough for
    /// 160,000 numbers. With 0, no miss is remembered.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |_| Ok::<Option<u32>, std::convert::Infallible>(None);
    /// let builder = GuardedCache::<str, u32>::builder().miss_memory(0);
    /// let cache = builder.build_blocking(read)?;
    /// cache.insert("removed since");
    /// assert_eq!(cache.get("removed since")?, None);
    /// assert_eq!(cache.get("removed since")?, None);
    /// assert_eq!((cache.stats().loads, cache.stats().known_misses), (2, 0));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn miss_memory(mut self, bytes: u64) -> Self {
        self.miss_memory = bytes;
        self
    }

    /// The length of the longest key that is remembered as missing, in the bytes that it writes as
    /// a [`Funnel`](lanebloom::Funnel). Each get of a longer one that passes the filter and is
    /// missing is a load. Set it to the longest valid key, so that made-up longer ones take no
    /// memory.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |_| Ok::<Option<u32>, std::convert::Infallible>(None);
    /// let builder = GuardedCache::<str, u32>::builder().miss_key_limit(3);
    /// let cache = builder.build_blocking(read)?;
    /// cache.insert_batch(&["ann", "anna"]);
    /// cache.get_many(&["ann", "anna"])?;
    /// cache.get_many(&["ann", "anna"])?;
    /// assert_eq!((cache.stats().loads, cache.stats().known_misses), (3, 1));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn miss_key_limit(mut self, bytes: usize) -> Self {
        self.miss_key_limit = bytes;
        self
    }

    /// How long a key is remembered as missing. It matters for rows that other processes add: this
    /// process may report them missing for so long.
    pub fn miss_time_to_live(mut self, time: Duration) -> Self {
        self.miss_time_to_live = time;
        self
    }

    /// A cache whose gets are awaited. Until its filter [is filled](Cache::is_ready), every
    /// key passes to the store. Fill it by [`restore`](Cache::restore) or
    /// [`rebuild_now`](future::GuardedCache::rebuild_now), or say that it has all keys:
    /// [`mark_ready`](Cache::mark_ready).
    ///
    /// # Errors
    ///
    /// Fails if the filter cannot be built, or if a time to live is longer than 1000 years.
    pub fn build(self, loader: impl future::Loader<K, V>) -> Result<future::GuardedCache<K, V, F>, BuilderError>
    where
        F: GuardFilter,
    {
        Ok(future::GuardedCache::new(self.build_cache()?, loader))
    }

    /// [`build`](Self::build) of a cache whose gets block.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_blocking(self, loader: impl sync::Loader<K, V>) -> Result<sync::GuardedCache<K, V, F>, BuilderError>
    where
        F: GuardFilter,
    {
        Ok(sync::GuardedCache::new(self.build_cache()?, loader))
    }

    fn build_cache(self) -> Result<Cache<K, V, F>, BuilderError>
    where
        F: GuardFilter,
    {
        for time in self.time_to_live.into_iter().chain([self.miss_time_to_live]) {
            // Moka would panic.
            if time > LONGEST {
                return Err(BuilderError::too_long(time));
            }
        }
        let filter = (self.plan.make)(self.plan.expected_keys).map_err(BuilderError::filter)?;
        let mut values = moka::sync::Cache::builder().max_capacity(self.capacity);
        if let Some(weigher) = self.weigher {
            values = values.weigher(move |key, cached: &Cached<V>| weigher(key, &cached.value));
        }
        if let Some(time) = self.time_to_live {
            values = values.time_to_live(time);
        }
        let misses = moka::sync::Cache::builder()
            .max_capacity(self.miss_memory)
            .weigher(|key: &K::Owned, _| u32::try_from(MISS + bytes_of(key)).unwrap_or(u32::MAX));
        let caches = Moka {
            values: values.build_with_hasher(RandomState::default()),
            misses: misses
                .time_to_live(self.miss_time_to_live)
                .build_with_hasher(RandomState::default()),
            longest_miss: self.miss_key_limit,
        };
        // Some per thread, so that two threads seldom want the same one.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let shards = (16 * threads).next_power_of_two().min(1024);
        let inner = Inner {
            name: self.name,
            guard: CacheGuard::new_open(filter),
            flights: Flights::new(caches, shards),
            counts: Counts::new(),
            history: Mutex::new(History::new(self.plan.expected_keys)),
            measurement: Mutex::default(),
            plan: self.plan,
        };
        Ok(Cache(Arc::new(inner)))
    }
}

impl<K: Key + ?Sized, V: Value> future::GuardedCache<K, V> {
    /// A builder. Its filter is a [`ConcurrentBloom`] under a random SipHash key, unless
    /// [`filter`](Builder::filter) names another.
    ///
    /// ```
    /// use lanebloom_guard::future::GuardedCache;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |id: u64| std::io::Result::Ok((id == 17).then_some("row 17"));
    /// let cache = GuardedCache::<u64, &str>::builder()
    ///     .expected_keys(1000)
    ///     .build(read)?;
    /// assert_eq!(cache.get(&17).await?, Some("row 17"));
    /// # Ok(()) }
    /// ```
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }
}

impl<K: Key + ?Sized, V: Value> sync::GuardedCache<K, V> {
    /// A builder. Its filter is a [`ConcurrentBloom`] under a random SipHash key, unless
    /// [`filter`](Builder::filter) names another.
    ///
    /// ```
    /// use lanebloom_guard::sync::GuardedCache;
    ///
    /// let read_file = |path: String| match std::fs::read(path) {
    ///     Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
    ///     result => result.map(Some),
    /// };
    /// let cache = GuardedCache::<str, Vec<u8>>::builder()
    ///     .expected_keys(1000)
    ///     .build_blocking(read_file)?;
    /// assert_eq!(cache.get("a made-up path")?, None);
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }
}

impl<K: Key + ?Sized, V, F> fmt::Debug for Builder<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("expected_keys", &self.plan.expected_keys)
            .field("capacity", &self.capacity)
            .field("time_to_live", &self.time_to_live)
            .field("miss_memory", &self.miss_memory)
            .field("miss_key_limit", &self.miss_key_limit)
            .field("miss_time_to_live", &self.miss_time_to_live)
            .finish_non_exhaustive()
    }
}
