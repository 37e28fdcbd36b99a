//! The builder of both kinds of caches.

use crate::cache::ages::{Ages, Times};
use crate::cache::entries::{BoxExpiry, Cached, Key, Listener, Moka, OfValue, Value, Weigher, bytes_of};
use crate::cache::error::CacheBuildError;
use crate::cache::flights::Flights;
use crate::cache::history::{FilterFactory, History, MakeFilter};
use crate::cache::limits::{Limits, LoadPermits};
use crate::cache::stats::CacheCounts;
use crate::cache::warning::Warning;
use crate::cache::{Cache, Inner, NO_FEED, future, sync};
use crate::error::BoxError;
use crate::filter::GuardFilter;
use crate::guard::{CacheGuard, keyed_filter};
use foldhash::quality::RandomState;
use lanebloom::{ConcurrentBloom, Funnel, SipHash13};
use moka::Expiry;
use moka::notification::RemovalCause;
use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// 1000 years, the limit of moka.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// The memory that moka takes for a remembered miss beside the key, in bytes, as measured.
const MISS: usize = 200;

/// All options except those of the filter. `K` is the keys' owned form.
struct Options<K, V> {
    name: String,
    capacity: u64,
    weigher: Option<Weigher<K, V>>,
    times: Times,
    time_to_idle: Option<Duration>,
    expiry: Option<BoxExpiry<K, V>>,
    listener: Option<Box<Listener<K, V>>>,
    miss_memory: u64,
    miss_time_to_live: Duration,
    /// The number of loads at a time, and of those that wait.
    load_limit: Option<(usize, usize)>,
    load_timeout: Option<Duration>,
    /// The window, and the largest number of keys in it.
    gather: Option<(Duration, usize)>,
}

/// Builds a cache; made by [`future::GuardedCache::builder`] and [`sync::GuardedCache::builder`],
/// which are the same. [`build`](Self::build) makes a cache whose gets are awaited,
/// [`build_blocking`](Self::build_blocking) one whose gets block.
///
/// | option | default | what for |
/// |---|---|---|
/// | [`name`](Self::name) | "default" | the label of the cache's metrics and traces |
/// | [`expected_keys`](Self::expected_keys) | 1,000,000 | sizes the filter, of any kind |
/// | [`false_positive_rate`](Self::false_positive_rate) | 0.01 | the one choice that most users make about the filter |
/// | [`filter`](Self::filter) | a [`ConcurrentBloom`] | another kind of filter, or one that processes share |
/// | [`capacity`](Self::capacity) | 100,000 values | bounds the memory of the values |
/// | [`weigher`](Self::weigher) | each value counts 1 | values differ in size |
/// | [`time_to_live`](Self::time_to_live) | none | bounds the age of a value |
/// | [`time_to_idle`](Self::time_to_idle) | none | frees values that nobody gets, of any age |
/// | [`expire_after`](Self::expire_after) | none | each value has its own end |
/// | [`refresh_after_write`](Self::refresh_after_write) | none | the store works: no get waits for a value to be loaded again |
/// | [`stale_if_error`](Self::stale_if_error) | none | the store fails: old values serve |
/// | [`eviction_listener`](Self::eviction_listener) | none | the only way to see which value leaves the cache, and why |
/// | [`miss_memory`](Self::miss_memory) | 32 MiB | apart from `capacity`, so that made-up keys push out no value |
/// | [`miss_time_to_live`](Self::miss_time_to_live) | one minute | new rows must appear sooner than old values need to end |
/// | [`load_limit`](Self::load_limit) | none | bounds what the store does at a time; a timeout alone lets any number of loads run |
/// | [`load_timeout`](Self::load_timeout) | none | bounds how long a get waits; a limit alone lets one slow load run for ever |
/// | [`gather_gets`](Self::gather_gets) | none | fewer calls of the store for the same keys; each waits a little longer |
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
pub struct CacheBuilder<K: Key + ?Sized, V, F = ConcurrentBloom<SipHash13>> {
    plan: FilterFactory<F>,
    options: Options<K::Owned, V>,
}

impl<K: Key + ?Sized, V: Value, F> CacheBuilder<K, V, F> {
    /// The name in metrics and traces.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// The number of valid keys until the next rebuild. A rebuild makes a larger filter if there
    /// are more keys by then.
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.plan.expected_keys = keys;
        self
    }

    /// Another filter in place of a [`ConcurrentBloom`] under SipHash: any that a [`CacheGuard`]
    /// takes. `make` makes an empty filter for a number of keys, once for the cache and once per
    /// rebuild. If strangers choose the keys, its hasher should be a new [`SipHash13::random`] each
    /// time. If the filter has all keys from the beginning, declare it by
    /// [`mark_ready`](Cache::mark_ready).
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
    ) -> CacheBuilder<K, V, G> {
        let plan = FilterFactory {
            expected_keys: self.plan.expected_keys,
            make: Box::new(move |keys| make(keys).map_err(Into::into)),
        };
        let options = self.options;
        CacheBuilder { plan, options }
    }

    /// The largest number of cached values. With a [`weigher`](Self::weigher), their largest total
    /// weight.
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.options.capacity = capacity;
        self
    }

    /// The weight of a value, as a part of the [`capacity`](Self::capacity): its bytes, say. The
    /// closure must not call the cache, which would wait for itself. It is called once for each
    /// value, when the value is cached.
    ///
    /// A value heavier than the capacity is not cached: gets return it, each by a load of its own,
    /// and the other values stay.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(vec![0; id as usize]));
    /// let cache = GuardedCache::<u64, Vec<u8>>::builder()
    ///     .capacity(1000)
    ///     .weigher(|_, image| image.len() as u32)
    ///     .build_blocking(read)?;
    /// cache.insert_batch(&[10, 5000]);
    /// for _ in 0..2 {
    ///     assert_eq!(cache.get(&5000)?.map(|image| image.len()), Some(5000));
    ///     assert_eq!(cache.get(&10)?.map(|image| image.len()), Some(10));
    /// }
    /// assert_eq!((cache.stats().loads, cache.stats().hits), (3, 1));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn weigher(mut self, weigher: impl Fn(&K::Owned, &V) -> u32 + Send + Sync + 'static) -> Self {
        self.options.weigher = Some(Box::new(weigher));
        self
    }

    /// How long a value is cached. By default, it is cached until it is evicted or invalidated.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.options.times.time_to_live = Some(time);
        self
    }

    /// How long a value is cached after its last get. Expiry only removes values, as eviction does,
    /// so no promise depends on it.
    ///
    /// ```
    /// # use lanebloom_guard::sync::GuardedCache;
    /// # use std::time::Duration;
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let builder = GuardedCache::<u64, u64>::builder();
    /// let cache = builder
    ///     .time_to_idle(Duration::from_millis(1))
    ///     .build_blocking(read)?;
    /// cache.insert_value(&17, 1);
    /// while cache.iter().next().is_some() {
    ///     std::thread::yield_now(); // `iter` is not a get
    /// }
    /// assert_eq!(cache.get(&17)?, Some(17)); // loaded
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.options.time_to_idle = Some(time);
        self
    }

    /// An expiry of its own for each value: moka's [`Expiry`], called at the value's creation, at
    /// each get and at each update. A value ends at the earliest of this, the
    /// [`time_to_live`](Self::time_to_live) and the [`time_to_idle`](Self::time_to_idle).
    /// Remembered misses end by their [own time](Self::miss_time_to_live).
    ///
    /// An update replaces a value that has not ended: by
    /// [`insert_value`](Cache::insert_value) or a [refresh](Self::refresh_after_write). **By
    /// default, moka's `expire_after_update` keeps the end of the old value**: write it too if the
    /// end depends on the value.
    ///
    /// Moka calls it under locks of the cache, so it must not call the cache.
    ///
    /// ```
    /// use lanebloom_guard::{Expiry, sync::GuardedCache};
    /// use std::time::{Duration, Instant};
    ///
    /// type Row = Duration; // a session says how long it is valid
    /// type Left = Option<Duration>;
    /// struct ByRow;
    ///
    /// impl Expiry<u64, Row> for ByRow {
    ///     fn expire_after_create(&self, _: &u64, row: &Row, _: Instant) -> Left {
    ///         Some(*row)
    ///     }
    ///
    ///     fn expire_after_update(
    ///         &self, _: &u64, row: &Row, _: Instant, _: Left,
    ///     ) -> Left {
    ///         Some(*row)
    ///     }
    /// }
    ///
    /// let read = |_| Ok::<_, std::convert::Infallible>(None);
    /// let cache = GuardedCache::<u64, Row>::builder()
    ///     .expire_after(ByRow)
    ///     .build_blocking(read)?;
    /// cache.insert_value(&17, Duration::ZERO);
    /// cache.insert_value(&18, Duration::from_secs(3600));
    /// assert_eq!(cache.get(&17)?, None);
    /// assert!(cache.get(&18)?.is_some());
    /// cache.insert_value(&18, Duration::ZERO);
    /// assert_eq!(cache.get(&18)?, None);
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn expire_after(mut self, expiry: impl Expiry<K::Owned, V> + Send + Sync + 'static) -> Self {
        self.options.expiry = Some(Box::new(expiry));
        self
    }

    /// If a get finds a value older than this, it returns the value at once and begins to load it
    /// again. Further gets return the old value until the new row is there, so no get of a frequent
    /// key has to wait. The time must be less than the [`time_to_live`](Self::time_to_live), if
    /// there is one. A value without a get in between expires.
    ///
    /// One refresh of a key runs at a time, as a load like others: if the key changes meanwhile,
    /// the refresh is not cached, and a removed row becomes a remembered miss. After an error the
    /// value stays until its time ends, and a get after one second begins the next refresh. A key
    /// that the filter turns away is not refreshed. If gets are awaited, each refresh is a task; a
    /// get outside of a runtime begins none. If gets block, one thread of the cache refreshes one
    /// value after another.
    ///
    /// ```
    /// use lanebloom_guard::future::GuardedCache;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// static ROW: AtomicU64 = AtomicU64::new(0);
    /// let read = async |_| {
    ///     let row = ROW.fetch_add(1, Ordering::Relaxed);
    ///     Ok::<_, std::convert::Infallible>(Some(row))
    /// };
    /// let cache = GuardedCache::<u64, u64>::builder()
    ///     .refresh_after_write(Duration::ZERO) // a minute, say
    ///     .build(read)?;
    /// assert_eq!(cache.get(&17).await?, Some(0)); // loaded
    /// assert_eq!(cache.get(&17).await?, Some(0)); // and it begins a refresh
    /// while cache.peek(&17) == Some(0) {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert_eq!((cache.stats().refreshes, cache.stats().loads), (1, 1));
    /// # Ok(()) }
    /// ```
    pub fn refresh_after_write(mut self, time: Duration) -> Self {
        self.options.times.refresh_after_write = Some(time);
        self
    }

    /// Keeps values up to this age, beyond their [`time_to_live`](Self::time_to_live), for failures
    /// of the store. If a value has expired and its load fails, the gets that wait for the load
    /// return that value instead of the error. Every failure counts: errors and panics of the
    /// loader, a [timeout](Self::load_timeout), a [refusal](Self::load_limit). The age is as in
    /// HTTP's `stale-if-error`, but counts from the load.
    ///
    /// Once a load has failed, gets of keys with such a value return it at once, even if the store
    /// hangs: further tries run behind them, at most one per second and key. This ends when a load
    /// succeeds.
    ///
    /// A value never comes back after a change, an [expiry](Self::expire_after) of its own, a time
    /// to idle or an eviction, and the filter still turns keys away. Misses are not kept.
    /// [`CacheStats::stale`](crate::CacheStats::stale) counts these gets, and each failure is an
    /// event of [`tracing`](https://docs.rs/tracing).
    ///
    /// ```
    /// use lanebloom_guard::sync::GuardedCache;
    /// use std::time::Duration;
    ///
    /// let read = |_| -> Result<Option<u64>, &str> { Err("the store is down") };
    /// let cache = GuardedCache::<u64, u64>::builder()
    ///     .time_to_live(Duration::ZERO) // a minute, say
    ///     .stale_if_error(Duration::from_secs(3600))
    ///     .build_blocking(read)?;
    /// cache.insert_value(&17, 1);
    /// cache.insert(&18);
    /// assert_eq!(cache.get(&17)?, Some(1));
    /// assert!(cache.get(&18).is_err()); // it has no value
    /// assert_eq!((cache.stats().stale, cache.stats().failed), (1, 2));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn stale_if_error(mut self, age: Duration) -> Self {
        self.options.times.stale_if_error = Some(age);
        self
    }

    /// Calls `listener` for each value that leaves the cache, with its [`RemovalCause`]: expired,
    /// pushed out by the [`capacity`](Self::capacity) (or too heavy for it), replaced by another
    /// value of the key, or invalidated by a call such as [`remove`](Cache::remove) or
    /// [`clear`](Cache::clear). Moka frees values late: after `clear` or an expiry, it calls the
    /// listener during some later call, or never if the cache is dropped before.
    /// [`CacheStats::evictions`](crate::CacheStats::evictions) counts without a listener.
    ///
    /// Moka calls it under locks of the cache, so it **must not call the cache**. It may send a
    /// message to a task or thread that does. A panic of the listener ends only that call.
    ///
    /// ```
    /// use lanebloom_guard::{RemovalCause, sync::GuardedCache};
    /// use std::sync::mpsc;
    ///
    /// let (gone, heard) = mpsc::channel();
    /// let listener = move |key, value, cause| {
    ///     let _ = gone.send((key, value, cause));
    /// };
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// let cache = GuardedCache::<u64, u64>::builder()
    ///     .eviction_listener(listener)
    ///     .build_blocking(read)?;
    /// cache.insert_value(&17, 1);
    /// cache.insert_value(&17, 2);
    /// cache.remove(&17);
    /// let mut causes = heard.try_iter().map(|(_, value, cause)| (value, cause));
    /// assert_eq!(causes.next(), Some((1, RemovalCause::Replaced)));
    /// assert_eq!(causes.next(), Some((2, RemovalCause::Explicit)));
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn eviction_listener(
        mut self,
        listener: impl Fn(Arc<K::Owned>, V, RemovalCause) + Send + Sync + 'static,
    ) -> Self {
        self.options.listener = Some(Box::new(listener));
        self
    }

    /// The memory for keys that are remembered as missing, in bytes, approximately. Each key takes
    /// 200 bytes and the bytes that it writes as a [`Funnel`](lanebloom::Funnel): 32 MiB suffice
    /// for 160,000 numbers. With 0, no miss is remembered.
    ///
    /// A key of more than 1 KiB is never remembered as missing, so that long made-up keys take no
    /// memory. Each get of such a key that passes the filter is a load.
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
        self.options.miss_memory = bytes;
        self
    }

    /// How long a key is remembered as missing. This matters for rows that [other
    /// processes](crate#several-processes) add: this process may report them missing for this time,
    /// if their keys passed the closed filter before they existed.
    pub fn miss_time_to_live(mut self, time: Duration) -> Self {
        self.options.miss_time_to_live = time;
        self
    }

    /// Limits the loads that run at a time to `at_once`, and those that wait for a permit to
    /// `waiting`. Further loads are refused and do not reach the store. A call of `load_many` is
    /// one load; a rebuild is not a load. Without a limit, every get that needs a load runs one:
    /// under an attack on an open filter, one per request.
    ///
    /// Gets that need no load, or join a running one, add none. A refusal is an error like the
    /// loader's: all gets that wait for this load return it, and it is not cached. While a load
    /// waits for [other keys](crate#loaders-that-get-other-keys), it lends its permit, and it
    /// continues once it has a permit again.
    ///
    /// It needs a [`load_timeout`](Self::load_timeout), since a load that never ends would keep its
    /// permit.
    ///
    /// ```
    /// # use lanebloom_guard::future::GuardedCache;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |id: u64| {
    ///     tokio::task::yield_now().await; // the store is slow
    ///     std::io::Result::Ok(Some(id))
    /// };
    /// let cache = GuardedCache::<u64, u64>::builder()
    ///     .load_limit(1, 0) // in a service, 64 and 1000, say
    ///     .load_timeout(Duration::from_secs(5))
    ///     .build(read)?;
    /// let (one, other) = tokio::join!(cache.get(&1), cache.get(&2));
    /// assert_eq!(one?, Some(1));
    /// let error = other.unwrap_err();
    /// assert!(error.is_refused());
    /// let text = "the load was refused: 1 load runs and 0 wait, the limit";
    /// assert_eq!(error.to_string(), text);
    /// # Ok(()) }
    /// ```
    pub fn load_limit(mut self, at_once: usize, waiting: usize) -> Self {
        self.options.load_limit = Some((at_once, waiting));
        self
    }

    /// The longest time of a load, including its wait for a permit of the
    /// [`load_limit`](Self::load_limit). After that, every get that waits for the load fails with
    /// an error, which is not cached. A call of `load_many` is one load.
    ///
    /// - If gets are awaited, the loader's future is dropped, and the next get begins a new load.
    ///   The runtime needs `enable_time`. In tests with tokio's paused clock, the clock moves to
    ///   the timeout as soon as all tasks are idle, and a load that waits for a thread of your own
    ///   ends at once: load by `spawn_blocking`, for which the clock waits, or set no timeout
    ///   there. The clock of [`time_to_live`](Self::time_to_live) is another one, which tokio does
    ///   not move.
    /// - If gets block, the cache cannot end the thread that runs the loader. The timeout ends the
    ///   wait for a permit, and the waits of the gets that joined the load. The get that runs the
    ///   loader returns when the loader does, and its row is cached. Until then, further gets join
    ///   the load, and each waits for at most this time. Give the store's client a timeout too.
    ///
    /// ```
    /// # use lanebloom_guard::future::GuardedCache;
    /// # use std::{convert::Infallible, future::pending, time::Duration};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let read = async |_| pending::<Result<Option<u64>, Infallible>>().await;
    /// let builder = GuardedCache::<u64, u64>::builder();
    /// let cache = builder.load_timeout(Duration::from_secs(2)).build(read)?;
    /// let error = cache.get(&17).await.unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.to_string(), "the load took longer than 2s");
    /// # Ok(()) }
    /// ```
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.options.load_timeout = Some(timeout);
        self
    }

    /// Gathers the loads of single gets into calls of [`load_many`](future::Loader::load_many), as
    /// dataloaders do: the example of [`future::Loader`] shows it. The first get that needs a load
    /// waits for `window`, and the gets that come meanwhile join its batch. A batch of `max_keys`
    /// is loaded at once. A window of zero gathers the gets of all tasks that are ready to run. It
    /// needs a cache whose gets are awaited, and a loader that reads many rows at once.
    ///
    /// A batch is one load for the [`load_limit`](Self::load_limit) and the
    /// [`load_timeout`](Self::load_timeout), and its error reaches all its gets. If a key changes
    /// meanwhile, the batch does not cache it, and the next get loads it again. Refreshes of single
    /// gets are gathered too. A [`get_with`](future::GuardedCache::get_with) and a multi-get load
    /// at once, by themselves.
    pub fn gather_gets(mut self, window: Duration, max_keys: usize) -> Self {
        self.options.gather = Some((window, max_keys));
        self
    }

    /// Builds a cache whose gets are awaited. Until its filter [is filled](crate#readiness), every
    /// key passes to the store.
    ///
    /// # Errors
    ///
    /// Fails if the filter cannot be built, if a time is longer than 1000 years, or if options
    /// contradict each other. The message names the option.
    pub fn build<L: future::Loader<K, V>>(self, loader: L) -> Result<future::GuardedCache<K, V, F>, CacheBuildError>
    where
        F: GuardFilter,
    {
        let gather = self.options.gather;
        if gather.is_some() && !L::READS_MANY {
            let text = "gather_gets needs a loader with `load_many`; this one reads one key at a time";
            return Err(CacheBuildError::options(text));
        }
        Ok(future::GuardedCache::new(self.build_cache()?, loader, gather))
    }

    /// Builds a cache whose gets block.
    ///
    /// # Errors
    ///
    /// Fails as [`build`](Self::build) does, and with [`gather_gets`](Self::gather_gets).
    pub fn build_blocking(self, loader: impl sync::Loader<K, V>) -> Result<sync::GuardedCache<K, V, F>, CacheBuildError>
    where
        F: GuardFilter,
    {
        if self.options.gather.is_some() {
            let text = "gather_gets needs a cache whose gets are awaited; call `build`";
            return Err(CacheBuildError::options(text));
        }
        Ok(sync::GuardedCache::new(self.build_cache()?, loader))
    }

    fn build_cache(self) -> Result<Cache<K, V, F>, CacheBuildError>
    where
        F: GuardFilter,
    {
        let Self { plan, mut options } = self;
        options.check().map_err(CacheBuildError::options)?;
        let filter = (plan.make)(plan.expected_keys).map_err(CacheBuildError::filter)?;
        // Several per thread, so that two threads rarely need the same shard.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let shards = (16 * threads).next_power_of_two().min(1024);
        let limits = Limits {
            cache: options.name.as_str().into(),
            timeout: options.load_timeout,
            permits: options
                .load_limit
                .map(|(at_once, waiting)| Arc::new(LoadPermits::new(at_once, waiting))),
        };
        let inner = Inner {
            guard: CacheGuard::new_open(filter),
            flights: Flights::new(options.caches(), shards),
            counts: CacheCounts::new(),
            limits,
            history: Mutex::new(History::new(plan.expected_keys)),
            measurement: Mutex::default(),
            feed: AtomicU8::new(NO_FEED),
            reopened: Warning::default(),
            failed: Warning::default(),
            plan,
            name: options.name,
        };
        Ok(Cache(Arc::new(inner)))
    }
}

impl<K: Key + ?Sized, V: Value> CacheBuilder<K, V> {
    fn new() -> Self {
        let plan = FilterFactory {
            expected_keys: 1_000_000,
            make: keyed(0.01),
        };
        let options = Options {
            name: String::from("default"),
            capacity: 100_000,
            weigher: None,
            times: Times::default(),
            time_to_idle: None,
            expiry: None,
            listener: None,
            miss_memory: 32 << 20,
            miss_time_to_live: Duration::from_secs(60),
            load_limit: None,
            load_timeout: None,
            gather: None,
        };
        Self { plan, options }
    }

    /// The share of made-up keys that the filter lets through. Each of them costs a load, once per
    /// [`miss_time_to_live`](Self::miss_time_to_live).
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.plan.make = keyed(rate);
        self
    }
}

fn keyed(rate: f64) -> MakeFilter<ConcurrentBloom<SipHash13>> {
    Box::new(move |keys| Ok(keyed_filter(keys, rate)?))
}

impl<O: Funnel + Hash + Eq + Send + Sync + 'static, V: Value> Options<O, V> {
    /// Fails if an option is out of range, or contradicts another.
    fn check(&self) -> Result<(), String> {
        let Times {
            time_to_live: live,
            refresh_after_write: refresh,
            stale_if_error: stale,
        } = self.times;
        for (name, time) in [
            ("time_to_live", live),
            ("time_to_idle", self.time_to_idle),
            ("refresh_after_write", refresh),
            ("stale_if_error", stale),
            ("miss_time_to_live", Some(self.miss_time_to_live)),
        ] {
            // Moka would panic.
            if let Some(time) = time.filter(|time| *time > LONGEST) {
                return Err(format!("{name} of {time:?} is longer than the limit of 1000 years"));
            }
        }
        let times = match (live, refresh, stale) {
            (Some(live), Some(refresh), _) if refresh >= live => Err(format!(
                "refresh_after_write of {refresh:?} must be less than time_to_live, {live:?}"
            )),
            (None, _, Some(stale)) => Err(format!(
                "stale_if_error of {stale:?} needs a time_to_live: without it, no value is stale"
            )),
            (Some(live), _, Some(stale)) if stale <= live => Err(format!(
                "stale_if_error of {stale:?} must be greater than time_to_live, {live:?}"
            )),
            _ => Ok(()),
        };
        times?;
        match (self.load_limit, self.load_timeout, self.gather) {
            (Some((0, waiting)), ..) => Err(format!("load_limit(0, {waiting}): no load could run; allow at least 1")),
            // A load may wait, in a task that the cache does not know to be its own, for a permit
            // that only this load can free.
            (Some((at_once, waiting)), None, _) => Err(format!(
                "load_limit({at_once}, {waiting}) needs a load_timeout: a load that never ends would keep its permit \
                 forever"
            )),
            (.., Some((_, 0))) => Err(String::from("gather_gets: a batch of at most 0 keys; allow at least 1")),
            _ => Ok(()),
        }
    }

    fn caches<K: Key<Owned = O> + ?Sized>(&mut self) -> Moka<K, V> {
        let mut values = moka::sync::Cache::builder().max_capacity(self.capacity);
        if self.weigher.is_some() {
            values = values.weigher(|_, cached: &Cached<V>| cached.weight);
        }
        if let Some(time) = self.times.longest() {
            values = values.time_to_live(time);
        }
        if let Some(time) = self.time_to_idle {
            values = values.time_to_idle(time);
        }
        if let Some(expiry) = self.expiry.take() {
            values = values.expire_after(OfValue(expiry));
        }
        let evictions = Arc::new(AtomicU64::new(0));
        let (counted, listener) = (Arc::clone(&evictions), self.listener.take());
        let note_gone: Arc<Listener<O, V>> = Arc::new(move |key, value, cause: RemovalCause| {
            if cause.was_evicted() {
                // `Relaxed`: only a count.
                counted.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(listener) = &listener {
                // Caught, since moka would not call this closure again after a panic.
                let _ = catch_unwind(AssertUnwindSafe(|| listener(key, value, cause)));
            }
        });
        let of_moka = Arc::clone(&note_gone);
        values = values.eviction_listener(move |key, cached, cause| of_moka(key, cached.value, cause));
        let misses = moka::sync::Cache::builder()
            .max_capacity(self.miss_memory)
            .weigher(|key: &O, _| u32::try_from(MISS + bytes_of(key)).unwrap_or(u32::MAX));
        Moka {
            values: values.build_with_hasher(RandomState::default()),
            misses: misses
                .time_to_live(self.miss_time_to_live)
                .build_with_hasher(RandomState::default()),
            evictions,
            capacity: self.capacity,
            weigher: self.weigher.take(),
            note_gone,
            ages: Ages::new(self.times),
        }
    }
}

impl<K: Key + ?Sized, V: Value> future::GuardedCache<K, V> {
    /// Makes a builder. The filter is a [`ConcurrentBloom`] under a random SipHash key, unless
    /// [`filter`](CacheBuilder::filter) sets another.
    pub fn builder() -> CacheBuilder<K, V> {
        CacheBuilder::new()
    }
}

impl<K: Key + ?Sized, V: Value> sync::GuardedCache<K, V> {
    /// Makes a builder: [its twin](future::GuardedCache::builder) makes the same.
    pub fn builder() -> CacheBuilder<K, V> {
        CacheBuilder::new()
    }
}

impl<K: Key + ?Sized, V, F> fmt::Debug for CacheBuilder<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("name", &self.options.name)
            .field("expected_keys", &self.plan.expected_keys)
            .field("capacity", &self.options.capacity)
            .field("times", &self.options.times)
            .field("time_to_idle", &self.options.time_to_idle)
            .field("miss_memory", &self.options.miss_memory)
            .field("miss_time_to_live", &self.options.miss_time_to_live)
            .field("load_limit", &self.options.load_limit)
            .field("load_timeout", &self.options.load_timeout)
            .field("gather", &self.options.gather)
            .finish_non_exhaustive()
    }
}
