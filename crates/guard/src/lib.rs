//! Keeps requests for made-up keys away from a store.
//!
//! Every service that reads rows from a store meets keys that the store does not have: old links,
//! scanners, attacks. A cache does not help against them, because there is no value to cache, and
//! each request for another made-up key reads the store. This crate puts a filter of all valid keys
//! before the store, from the crate [`lanebloom`]. The filter turns a made-up key away in about 25
//! ns, except at its false-positive rate.
//!
//! | part | what it is |
//! |---|---|
//! | [`CacheGuard`] | The filter alone: it decides whether a key may exist, counts, and is rebuilt while it serves. You read the store. It needs no runtime |
//! | [`future::GuardedCache`], [`sync::GuardedCache`] | A read-through cache behind a guard: cached values, remembered misses, joined loads, rebuilds on a schedule, metrics. Gets are awaited, or block |
//! | `tower::GuardLayer` | A tower layer that responds with 404 to requests for made-up keys, before a handler runs |
//!
//! # When not to use it
//!
//! - **The store is in this process**, or responds within a microsecond: ask it directly.
//! - **Nearly all requests are for keys that exist**, and you trust the clients: moka alone has
//!   less to maintain. A cached get takes 5% less time than moka's own when awaited, 19% more when
//!   blocking (1000 hot keys, Zen 4).
//! - **Other processes add rows without notice**: their rows are reported missing until the next
//!   rebuild. See [Several processes](#several-processes).
//! - **The keys cannot be listed**, so the filter cannot be filled or rebuilt.
//!
//! # Example
//!
//! ```
//! use lanebloom_guard::{BoxError, Keys, future::GuardedCache};
//! use std::time::Duration;
//!
//! # #[derive(Clone)] struct User;
//! # async fn read_user(id: u64) -> Result<Option<User>, BoxError> { Ok((id == 17).then_some(User)) }
//! # async fn write_user(id: u64) -> Result<(), BoxError> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let cache = GuardedCache::<u64, User>::builder()
//!     .name("users")
//!     .expected_keys(1_000_000)
//!     .time_to_live(Duration::from_secs(600))
//!     .build(read_user)?; // async fn(u64) -> Result<Option<User>, _>
//!
//! // All keys of the store: before it serves, and then every day.
//! async fn all_ids(keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
//!     Ok(keys.insert_all([1, 2, 17])?) // SELECT id FROM users
//! }
//! cache.rebuild_now(all_ids).await?;
//! let day = Duration::from_secs(24 * 3600);
//! let rebuilds = tokio::spawn(cache.rebuild_every(day, all_ids));
//!
//! assert!(cache.get(&17).await?.is_some()); // loaded; cached from now on
//! assert!(cache.get(&1_000_017).await?.is_none()); // turned away
//!
//! write_user(1_000_017).await?; // the store first,
//! cache.insert(&1_000_017); // then the cache
//! # rebuilds.abort();
//! # Ok(()) }
//! ```
//!
//! The rest of this page is about the caches. The page of [`CacheGuard`] describes the guard.
//!
//! # Consistency
//!
//! 1. **No key that was inserted is reported missing.** A get that begins after
//!    [`insert`](Cache::insert) has returned never returns "missing" from an earlier state of the
//!    store. This also holds beside a load that saw no row, a miss that is being remembered, a
//!    rebuild that swaps the filter, and evictions.
//! 2. **No older value.** A get that begins after `insert`, `insert_value`, `remove` or
//!    `invalidate` never returns the value before, if one thread at a time writes the key. This
//!    also holds beside [refreshes](CacheBuilder::refresh_after_write), and for the values that
//!    serve [while the store fails](CacheBuilder::stale_if_error).
//! 3. **One load per key.** While a load of a key runs in this process, gets of the key wait for
//!    it. A second load begins in three cases only:
//!    - The key or the filter has changed since the load began. (The filter changes when a rebuild
//!      replaces it, when it opens or closes, and when it gets the key.)
//!    - [`load_many`](future::Loader::load_many) loads the key with others, and its loader gets the
//!      key itself, or waits for a load that gets it. The second load is for this key alone.
//!    - The loading thread runs [other code](#loaders-that-get-other-keys) while it waits, and that
//!      code gets the key.
//! 4. **Either state during a change.** A get that began before the change returned may return the
//!    state before or after it.
//! 5. **No key is turned away while the filter may lack valid keys.** The cache is *open* for that
//!    time: each get reads the caches and the store.
//!
//!    | filter | the cache opens | the cache closes |
//!    |---|---|---|
//!    | any | when it is built, and when [`reopen`](Cache::reopen) is called | when a rebuild that began since then has ended, or `restore` or `mark_ready` was called ([Readiness](#readiness)) |
//!    | one with a limit of keys | when it refuses a key | when the next rebuild has ended |
//!    | a `SharedSet`, or a `SharedBloom` with `open_until_filled` | when it connects, and when the server loses keys | when one process has inserted all keys of the store, and this process has received them |
//!    | a shared filter with `open_above_lag` | when it connects, and when a lag begins | when the filter has caught up |
//!
//!    A rebuild opens nothing, of a cache or of a `SharedSet`: the old filter serves until the new
//!    one has all keys.
//! 6. **A miss does not outlive its filter.** A client may request a key before its row exists,
//!    while every key passes the filter. This process remembers the miss. Then another process adds
//!    the row. Once the filter has the key, by a rebuild or because it is shared, the next get
//!    loads the row. (Not if the key was a false positive of the filter: see [Several
//!    processes](#several-processes).) While a shared filter may lack keys, the cache remembers
//!    misses only if a feed tells it of all rows. Otherwise, made-up keys that come again read the
//!    store each time.
//!
//! The source file `flights.rs` states the protocol and proves it. The model checker loom tries it
//! in every interleaving (`loom-tests/src/flights.rs`), and `tests/stress.rs` checks it with 100
//! tasks.
//!
//! These promises are about the changes that *this* process makes or is told of. With a feed that
//! [`follow`](future::GuardedCache::follow) applies, they hold for a change of another process in
//! this way:
//!
//! | the feed | gets of this process |
//! |---|---|
//! | has told the change | 1. and 2. hold as if this process had made the change. Once the cache listens, they also hold for every earlier change |
//! | has not told it yet | A new row is turned away, and a value is the one before the change: for the delay of the feed, or for `silence` if the feed broke without notice |
//! | has broken, and the cache knows it | The cache is open until it has listened again and rebuilt the filter, so it turns no row away. Cached values serve up to their [`time_to_live`](CacheBuilder::time_to_live). A get that joins a load from before the row may return "missing"; a get after the end of that load returns the row |
//!
//! `tests/cache/replicas.rs` simulates two processes with a feed that breaks, delays, repeats and
//! swaps changes. It also shows a promise that does not hold: if the feed loses a change without an
//! error, the row is turned away until the next rebuild.
//!
//! # Order of writes
//!
//! **The store first, then the cache.** If the cache learns of a key before the row is committed, a
//! get in between reads the store and its miss is remembered, and a rebuild in between loses the
//! key. Tests rarely show this. If the code can be cancelled in between, at an `await`, call
//! [`insert_on_drop`](Cache::insert_on_drop) before the commit: see [the guard's
//! page](CacheGuard#order-of-insert-and-commit).
//!
//! # Readiness
//!
//! A new cache is open, because it does not know the valid keys. It turns keys away once it [is
//! ready](Cache::is_ready). One of three calls makes it so:
//!
//! - [`rebuild_now`](future::GuardedCache::rebuild_now), or the first rebuild of
//!   [`rebuild_every`](future::GuardedCache::rebuild_every) or
//!   [`follow`](future::GuardedCache::follow), which begins at once, has read all keys.
//! - [`restore`](Cache::restore) has read them from a file.
//! - [`mark_ready`](Cache::mark_ready) declares that the filter has all keys: the store is empty,
//!   the keys were inserted by [`insert_batch`](Cache::insert_batch), or the filter is a shared one
//!   that other processes have filled.
//!
//! A service that must keep made-up keys off its store should serve only once the cache is ready.
//!
//! # Rebuilds
//!
//! A rebuild makes a new filter, and the old one serves meanwhile. Inserts go into both. The
//! rebuild calls the *source*: your closure inserts all keys of the store into the [`Keys`] that it
//! gets. Then the new filter takes the place of the old one, and the cache turns removed keys away.
//!
//! If the store has more keys than the new filter was planned for, the rebuild makes another one,
//! with room for a quarter more keys than there are, and calls the source a second time. (A
//! [`Layered`] filter takes up to twice the planned keys without a second call.)
//!
//! A rebuild fails if the source fails, if the new filter cannot be built, or if it has no room for
//! the keys. `rebuild_now` also fails while another rebuild of the cache runs. The old filter then
//! stays.
//!
//! `rebuild_every` runs rebuilds on a schedule:
//!
//! | case | the next rebuild begins |
//! |---|---|
//! | the schedule starts | at once if the cache is open, otherwise after one interval |
//! | a rebuild has succeeded | after one interval. Intervals vary by a tenth, so that processes that started together do not read the store together |
//! | the source has failed or panicked | within a second. The pause doubles after each further failure, up to the interval |
//! | another rebuild runs when one is due | one interval after the running rebuild, which counts as the scheduled one |
//! | `follow` does not listen to its feed yet | one interval after the rebuild that `follow` runs once it listens, which counts as the scheduled one |
//!
//! Call `follow` before `rebuild_every`. The two then read the store once at the start, and once
//! after each break of the feed.
//!
#![cfg_attr(not(doctest), doc = include_str!("sources.md"))]
//!
//! # Loaders that get other keys
//!
//! A loader may get keys of its own cache or of another, such as a row's parent, by single gets and
//! multi-gets. If a row needs itself, in any number of steps, each such get fails with a
//! [`LoadError`] that [says so](LoadError::is_cycle), and so do the loads that depend on it. The
//! same holds for two loads that wait for each other, in any tasks and threads.
//!
//! The cache identifies a load by its task, or by its thread if gets block. A loader that gets keys
//! in another task or thread must pass the load to it, as a [`LoadScope`]. Otherwise the cache does
//! not see that the load waits: it cannot detect a row that needs itself, and cannot lend the
//! load's permit of the [`load_limit`](CacheBuilder::load_limit) to others. Only the
//! [`load_timeout`](CacheBuilder::load_timeout) then ends loads that wait for each other.
//!
//! Where gets block, a thread that waits within a loader may run other code: a worker of rayon, in
//! a `join` or a `par_iter`, takes another job. If that job gets the key that the thread is
//! loading, it cannot wait for the load below it on the stack, and loads the row a second time. If
//! the same happens within that load, it fails with an error that [is a
//! cycle](LoadError::is_cycle), although no row needs itself. To exclude it, keep waits for the
//! pool out of loaders, or gets out of the pool.
//!
//! A loader may drop a get that it awaits, because of its own timeout, say. The load of that get
//! goes on.
//!
//! # Several processes
//!
//! Each process has its own cache, whose filter must learn of the rows that other processes add.
//! There are four ways:
//!
//! | way | turns a new row away | values |
//! |---|---|---|
//! | **A feed** of changes: `LISTEN`/`NOTIFY`, Redis pub/sub, a queue, a table | until the feed tells it | those before the change, until the feed tells it |
//! | **A `SharedSet`** (feature `redis`) as the [`filter`](CacheBuilder::filter), or a `SharedBloom`, which cannot remove keys or grow | for its interval, 0.1 s by default; while Redis is away, until the filter opens by its `open_above_lag`. Rows that come by no process (`psql`): until the set's next rebuild | as old as the [`time_to_live`](CacheBuilder::time_to_live) |
//! | **A `SharedSet` and a feed** | until the first of the two tells it | those before the change, until the feed tells it |
//! | **Rebuilds** alone | until the next rebuild | as old as the `time_to_live` |
//!
//! Without a feed, one key in a hundred (the false-positive rate) passes the filter before its row
//! exists. If it is requested then, or if its row is removed and added again, it stays missing here
//! for the [`miss_time_to_live`](CacheBuilder::miss_time_to_live), one minute by default, or until
//! the next rebuild. Set the time to the delay that new rows may have.
//!
//! ## A shared filter
//!
//! A shared filter is open by itself until it is filled. So call [`mark_ready`](Cache::mark_ready)
//! at once, which claims nothing here, and then `fill_once` of the cache
//! (`future::GuardedCache::fill_once`): one process reads the store, and the others wait. Repeat it
//! about once a second: it returns at once while the filter is filled, and fills it again after the
//! server has lost keys. (Connect a `SharedBloom` with `open_until_filled`.)
//!
//! A `SharedSet` is rebuilt by its own `rebuild`, which all processes follow, and by `fill_once`
//! again. It removes the keys that the store has removed, and makes the set larger, so the cache's
//! rebuilds are not needed. (A rebuild of a cache over a `SharedBloom` needs a new name of the set,
//! to which all processes change at the same time.)
//!
//! ## A shared set and a feed
//!
//! Follow a feed with a cache over a `SharedSet`, and let each process call `fill_once` as before.
//! What Redis delays, the feed tells, and what the feed loses, Redis brings. The feed also tells
//! changed values. While the set lags, this process still remembers misses, because the feed tells
//! it of all rows.
//!
//! Connect one node, keep it for the set's own calls, and give the cache a clone of it:
//! `filter(move |_| Ok(node.clone()))`. `follow` opens the cache and rebuilds it, so `mark_ready`
//! is not needed. That rebuild inserts all keys of the store into the set's newest generation, and
//! begins none.
//!
//! ## The order of a feed
//!
//! Implement [`Feed`] (or [`BlockingFeed`]), and let `follow`
//! ([async](future::GuardedCache::follow), [blocking](sync::GuardedCache::follow)) apply it. It
//! keeps the only order in which no row is lost:
//!
//! | step | why |
//! |---|---|
//! | 1. [open](Cache::reopen) the filter, doubt remembered misses | rows are added, and nobody tells |
//! | 2. listen | from here on, every change is told |
//! | 3. [forget](Cache::clear) values and misses | they may be older than the connection |
//! | 4. [rebuild](#rebuilds), and apply what is told | the source reads the rows from before 2., the feed tells the later ones |
//! | 5. the feed breaks or is silent: from 1. again | a change may be lost |
//!
//! A rebuild that begins before 2., one of a schedule for example, lacks the rows that are
//! committed in between, so the filter stays open after it. Without 1., the rows of a broken feed
//! would be turned away until the next rebuild. Without 3., values of that time would stay for
//! their `time_to_live`.
//!
//! ## Duties of the feed
//!
//! - **Tell every change, or fail.** A process that publishes a message after its commit may be
//!   killed in between, and nobody is told. Let the store tell: by `NOTIFY` in the transaction, or
//!   by a table of changes that the transaction writes to. Transactions that run side by side do
//!   not commit in the order of such a table's sequence: remove each change once it is sent, in
//!   place of reading all after the last number. Buffers that drop messages must report it, as
//!   `broadcast::Receiver` does when it lags.
//! - **Send more often than every `silence`**: [`Change::Alive`] where nothing has changed. A
//!   frozen server closes no connection. The heartbeat must come from the one that reads the
//!   changes. For `LISTEN`, that is the server's end of the connection: an empty query on it is
//!   enough. A ping to Redis says nothing about the process that publishes.
//! - **Tell a change after it can be read.** If loads read from a replica of the database that
//!   lags, a message that overtakes it brings the state before back: read the key from the primary,
//!   or delay the feed.
//!
//! A process that was itself stopped, by the host of its virtual machine for example, has a backlog
//! when it goes on: rows of that time are turned away until it has applied them.
//!
//! The program `replicas` of the repository's `examples` does all this with two processes: over
//! SQLite and TCP, or with PostgreSQL (`--postgres`: `LISTEN`/`NOTIFY`), Redis (`--redis`: pub/sub)
//! or both. It cuts and freezes the feed, stops and kills servers and processes, hangs the store
//! and makes it fail, and counts the rows that were refused.
//!
//! # Hostile keys
//!
//! The default filter hashes with SipHash under a random key, so strangers cannot make keys that
//! pass it. They can find false positives by trying. Each costs one load per `miss_time_to_live`;
//! remembered misses have [memory](CacheBuilder::miss_memory) of their own, so they push out no
//! value, and a key of more than 1 KiB is not remembered. Each rebuild draws a new key, under which
//! other keys pass. If you supply the [`filter`](CacheBuilder::filter), give it a keyed hasher.
//!
//! # A store under attack
//!
//! For a store that is slow, overloaded or down, there are
//! [`load_limit`](CacheBuilder::load_limit), [`load_timeout`](CacheBuilder::load_timeout),
//! [`stale_if_error`](CacheBuilder::stale_if_error),
//! [`refresh_after_write`](CacheBuilder::refresh_after_write) and
//! [`gather_gets`](CacheBuilder::gather_gets), all off by default. The table of [`CacheBuilder`]
//! says why no other option covers each.
//!
//! # Sizing
//!
//! | what | memory |
//! |---|---|
//! | the filter | 10.8 bits per key at a rate of 1%, 16.7 at 0.1%; twice that during a rebuild |
//! | a cached value | the key and the value, and about 200 bytes of moka's |
//! | a remembered miss | the key, and about 200 bytes; [32 MiB](CacheBuilder::miss_memory) for all |
//!
//! [`expected_keys`](CacheBuilder::expected_keys) is the number until the next rebuild. With more
//! keys the rate rises: at twice the number, 1% becomes 10%. A rebuild notices this, and makes room
//! for a quarter more keys than there are. (A [`Layered`] with up to twice the number leaves that
//! to the next rebuild: until then its small part is for a share of the planned number.) Updates of
//! rows do not count as new keys. A rate of 1% keeps 99% of an attack off the store. A rate of 0.1%
//! keeps 99.9% off, for 1.5 times the memory.
//!
//! Remembered misses pay off for absent keys that are requested again: removed rows, typing errors,
//! and repeated false positives.
//!
//! # Restarts
//!
//! [`save`](Cache::save) at shutdown and [`restore`](Cache::restore) at the start spare a rebuild,
//! if only this process adds rows.
//!
//! # Metrics
//!
//! [`publish`](Cache::publish) passes the metrics below to the [`metrics`] facade, each with a help
//! text and a label `cache`, the [name](CacheBuilder::name). Requests write no shared memory for
//! them: each thread counts for itself. Only the histogram of loads is recorded when a load ends.
//!
//! | counter | |
//! |---|---|
//! | `lanebloom_guard_gets_total` | gets by `outcome`: `turned_away`, `hit`, `known_miss`, `loaded`, `joined` |
//! | `lanebloom_guard_failed_loads_total` | keys whose load failed |
//! | `lanebloom_guard_refused_loads_total`, `_timed_out_loads_total` | those of them that were refused, and that took too long |
//! | `lanebloom_guard_stale_answers_total` | failed loads whose gets returned the value before |
//! | `lanebloom_guard_refreshes_total` | loads of values that were refreshed ahead |
//! | `lanebloom_guard_false_positives_total` | gets of absent keys that the filter let through |
//! | `lanebloom_guard_inserted_total`, `_removed_total` | keys inserted (updates of rows included) and removed |
//! | `lanebloom_guard_evictions_total` | values that have expired, or that others pushed out |
//! | `lanebloom_guard_rebuilds_total`, `_failed_rebuilds_total` | rebuilds |
//! | `lanebloom_guard_requests_without_key_total` | requests in which a `GuardLayer` found no key; not by `publish`, and with a label `layer`, its name |
//!
//! | gauge | |
//! |---|---|
//! | `lanebloom_guard_values`, `_misses` | entries of the caches |
//! | `lanebloom_guard_keys`, `_capacity` | keys in the store, absent before a rebuild or a restore has counted them; keys that the filter was planned for |
//! | `lanebloom_guard_filter_keys`, `_filter_bytes`, `_fill_ratio` | the filter: estimated keys, memory, share of the bits that are set |
//! | `lanebloom_guard_promised_rate`, `_current_rate`, `_measured_rate` | false-positive rate: the requested one, the one that follows from the fill, and the counted one |
//! | `lanebloom_guard_ready` | 1 once the filter is filled, until [`reopen`](Cache::reopen) |
//! | `lanebloom_guard_open` | 1 while every key passes: the filter is not filled, refused a key, was reopened, or lags |
//! | `lanebloom_guard_lag_seconds` | the time since a shared filter's last exchange with its server |
//! | `lanebloom_guard_rebuild_seconds` | the duration of the last rebuild |
//! | `lanebloom_guard_keys_age_seconds` | the time since the [keys were read](CacheReport::keys_age): alert on it, since it grows if rebuilds fail or hang |
//!
//! | histogram | |
//! |---|---|
//! | `lanebloom_guard_load_seconds` | how long loads took, failed ones too; a call of `load_many` is one |
//!
//! The package contains a dashboard for Grafana, `grafana.json`, with all of them. Its quantiles of
//! load times need buckets. With `metrics-exporter-prometheus`:
//! `PrometheusBuilder::new().set_buckets(&[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])`.
//!
//! Spans of [`tracing`]: `load` and `load_many` (debug), `rebuild` (info). Events: a failed rebuild
//! (warn), a rebuild (info), and once a second at most, a failed load and a reopened filter (warn),
//! with the number of those held back.
//!
//! # Features
//!
//! A feature adds items; none changes what others do.
//!
//! | feature | |
//! |---|---|
//! | `cache` (default) | the caches, on moka and tokio. Without it the crate has [`CacheGuard`] alone, and depends on `lanebloom` and a trait |
//! | `formats` | a `GuavaBloom` of `lanebloom-formats` as the filter |
//! | `redis` | a `SharedBloom`, `SharedSet` or `SharedWindow` of `lanebloom-redis` as the filter |
//! | `tower` | the module `tower`: a layer before axum's handlers or any other tower service |
//!
//! Keys of the types `bytes::Bytes` and `uuid::Uuid` come with the features `bytes` and `uuid` of
//! `lanebloom`.
//!
//! [`metrics`]: https://docs.rs/metrics
//! [`tracing`]: https://docs.rs/tracing

#![deny(missing_docs)]
#![forbid(unsafe_code)]
// On docs.rs every item shows which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod as_key;
#[cfg(feature = "cache")]
mod cache;
mod error;
mod filter;
mod guard;
mod layered;
mod on_drop;
mod parts;
mod rebuild;
mod stats;
mod striped;
#[cfg(feature = "tower")]
pub mod tower;

pub use as_key::AsKey;
#[cfg(feature = "cache")]
pub use cache::{
    BlockingFeed, Cache, CacheBuildError, CacheBuilder, CacheReport, CacheStats, Change, Expiry, Feed, Key, Keys,
    LoadError, LoadScope, Rebuilt, RemovalCause, Restored, Value, future, sync,
};
pub use equivalent::Equivalent;
pub use error::{BoxError, RebuildError};
pub use filter::GuardFilter;
pub use guard::CacheGuard;
pub use layered::Layered;
pub use on_drop::InsertOnDrop;
pub use parts::Parts;
pub use rebuild::Rebuild;
pub use stats::{Admission, GuardStats};

/// The crate with the filters, the hashers, [`Funnel`](lanebloom::Funnel) and
/// [`Sink`](lanebloom::Sink). With `use lanebloom_guard::lanebloom;`, code can name it as if it
/// were a dependency, as the example of [`Parts`] does.
#[doc(no_inline)]
pub use lanebloom;
#[cfg(feature = "formats")]
#[doc(no_inline)]
pub use lanebloom_formats;
#[cfg(feature = "redis")]
#[doc(no_inline)]
pub use lanebloom_redis;

/// The code in the README of the package, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
