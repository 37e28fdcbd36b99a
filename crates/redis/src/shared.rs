//! One set on many nodes. [`SharedBloom`] is a filter in every process. A background thread keeps
//! it equal to the others' through Redis. [`SharedSet`] is such a set that can be
//! [rebuilt](crate::shared#outgrowing), and [`SharedWindow`] one that
//! [forgets](crate::shared#forgetting).
//!
//! ```text
//! process A                             Redis                          process B
//! ConcurrentBloom -- added bits --> script: ORs them into --> ConcurrentBloom
//!                 <- others' bits -  chunks, and logs them <--
//! ```
//!
//! # Promises
//!
//! 1. **Lookups and inserts are local.** [`SharedBloom`] derefs to its [`ConcurrentBloom`], and
//!    marks and counts nothing in it. No lookup, insert or drop ever waits for the network,
//!    whatever the state of the server. Only [`connect`](SharedBuilder::connect),
//!    [`sync`](SharedBloom::sync) and [`close`](SharedBloom::close) wait. All promises of the crate
//!    for the filter ([Consistency](lanebloom#consistency)) hold within the process.
//! 2. **A pushed key arrives.** If a key was inserted here before a call of
//!    [`sync`](SharedBloom::sync), and `sync` returns `Ok`, the key is on the server. Every node
//!    that calls `sync` or connects from then on finds it. Without `sync` the same happens in the
//!    background, every [interval](SharedBuilder::interval).
//! 3. **No push is lost by a race.** The server ORs in a script, and runs only one script at a
//!    time.
//! 4. **Inserts while the server is away are kept**, and pushed once it is back. The thread
//!    reconnects by itself, after pauses that double up to 3 seconds. Half of each pause is random,
//!    so that the nodes do not all come at once. Nodes pull from a full server all the same.
//! 5. **A new node starts from the server's state**, which [`connect`](SharedBuilder::connect)
//!    takes before it returns. Keys that were in the new node's filter before are pushed.
//! 6. **Keys that the server loses are pushed again**, by every node that has them: after a crash
//!    with an append-only file that lacks the end, a failover to a replica that was behind, a
//!    restored backup, `FLUSHALL`. The server gives every push an id. By these ids the nodes notice
//!    a loss at their next exchange with the server. They also notice the loss of a part: a chunk
//!    that was evicted or deleted, or has expired alone. A new node notices it when it connects,
//!    and others when they push there. Besides, each exchange looks at 16 chunks: a node of a set
//!    for a million keys looks at all within eleven exchanges. (A [`SharedWindow`] does the first
//!    two.)
//! 7. **A node that does not fit is refused**: with another layout, seed or hasher, or of another
//!    kind (a [`SharedSet`] by the name of a `SharedBloom`), it gets an error that names the
//!    difference.
//! 8. **No server holds a node for ever**, whatever it sends. Each round trip ends within the
//!    [timeout](SharedBuilder::timeout), and after 16 MiB of replies and 128 bytes for each 8 KiB
//!    of the filter. A node leaves a server that fails or refuses. It makes the next attempt on a
//!    new connection, to the server that has the name by then. With TLS the node checks the timeout
//!    between replies only, and does not bound their length.
//!
//! A key is pushed when the server has answered. The server decides how long it keeps the key:
//!
//! | `appendonly`, `appendfsync` | if the server crashes, it keeps | if its machine crashes, it keeps |
//! |---|---|---|
//! | `yes`, `always` | everything | everything |
//! | `yes`, `everysec` | everything, unless its disk is so slow that writes wait (2 seconds at most) | all but the last 2 seconds |
//! | `no` | its last snapshot | its last snapshot |
//!
//! A key that the server loses is missing only if no node has it any more (6). A
//! [filled set](#the-first-fill) then opens its guards until a source has read it again.
//!
//! # Limits of the promises
//!
//! - **A key that another node inserted comes late**: after up to an interval at each end and the
//!   network's time. Until then a lookup here says "certainly not" for a key that is in the set.
//!   The next section says how a guard copes with it.
//! - An insert that returns true says that the key is new *here*. Several nodes may each get true
//!   for one key. To claim a key among nodes, ask a server.
//! - A `SharedBloom` cannot remove keys, and cannot grow. A [`SharedSet`] can be
//!   [rebuilt](#outgrowing) for both, and a [`SharedWindow`] [forgets](#forgetting) by itself.
//! - Anybody who can write to the server can set every bit. Wrong data from a broken server or
//!   another program gives an error, and nothing worse.
//! - The server should not evict. With `maxmemory`, use a policy of `noeviction`, or of
//!   `volatile-*` if the set does not expire; `connect` logs a warning otherwise. The nodes push
//!   evicted chunks again (6), as often as the server evicts them. Until then a new node lacks
//!   their keys: with [`open_until_filled`](SharedBuilder::open_until_filled) its guard is open.
//! - Delete a set by deleting all its keys, while no node has it. [Close](SharedBloom::close) the
//!   last node, since a node that is only dropped may push a little later.
//! - A user with an ACL needs `@scripting`, `@read`, `@write` and `TIME`, and the keys of the set,
//!   which begin with a brace: `~{app:ids}:*` for the name `app:ids`. The pattern `~app:*` forbids
//!   them. `connect` asks for `INFO memory`, and does without it.
//! - The expected keys must cover the keys of all nodes together.
//!
//! # Before a store
//!
//! A `CacheGuard` (of the crate `lanebloom-guard`) over a `SharedBloom` turns away keys that other
//! nodes have just added to the store, until the keys have arrived. The remedy depends on the
//! client that first requests a new key:
//!
//! - Insert, `sync`, and only then hand the id out. The other nodes have it within their interval.
//!   The client that made the id finds it at once at the node where it made it.
//! - If a client may ask another node for a new id within milliseconds, let the request prove that
//!   the id is new (by a time in the id, for example). Let such requests pass the guard: ids
//!   younger than [`lag`](SharedStats::lag) plus the others' interval.
//! - A node whose `lag` grows does not hear of new keys. With
//!   [`open_above_lag`](SharedBuilder::open_above_lag) a guard over it then admits everything, by
//!   itself, until the node has caught up.
//!
//! With a limit at all nodes, and a server that is away for all of them (frozen, restarted, cut
//! off), for however long: a guard can turn a key away until **twice the limit** after its
//! insertion at another node, and never later. This assumes that an exchange with the server that
//! is back takes less than a quarter of the limit, and that the threads run. It does not cover a
//! node that alone is cut off, or that dies: the others cannot know of the keys that it has not
//! pushed, and are not open. Only `sync` before the id is handed out covers this. The time in which
//! a machine sleeps does not count.
//!
//! # The first fill
//!
//! A new set is empty, and a guard over it would turn every valid key away. With these two calls
//! one process fills the set, and no guard turns a key away meanwhile:
//!
//! 1. Connect with [`open_until_filled`](SharedBuilder::open_until_filled). A guard over the node
//!    admits every key until the set is filled.
//! 2. Call [`fill_once`](SharedBloom::fill_once) in every process, in a thread of its own if the
//!    process should serve meanwhile. The server lets one process read all keys from the store.
//!
//! When the source has ended and the server has all keys, the set gets a mark. Each node sees the
//! mark in the exchange that brings it the rest of the keys, and its guard closes. A process that
//! starts later sees the mark when it connects, and reads nothing from the store.
//!
//! Repeat `fill_once` about once a second, as in [Outgrowing](#outgrowing): it returns at once
//! while the set is filled. A server may lose a key that no living node has, if the process that
//! pushed it died as well, and no node can know of it. So after a loss of unknown keys the mark is
//! gone, all guards are open, and a log line warns. A source must read the store again. After the
//! loss of single chunks the mark returns as soon as a node that had all their keys has pushed
//! them. (One loss leaves no trace: the server loses only its very last pushes, which no other node
//! has pulled, and the processes that made them die. `appendfsync always` excludes it.) On a full
//! server, the call that notices a loss writes once beyond the limit. And a node that was away
//! while an old backup was restored and only new nodes pushed takes this for a log that was cut.
//!
//! | failure during the fill | what happens |
//! |---|---|
//! | the process that fills dies | after ten seconds another process fills |
//! | its source fails or panics | another process fills at once |
//! | the server freezes or is away | all guards stay open. If it takes longer than ten seconds, a second process may fill too, which does no harm |
//! | the server loses its last writes, or all data | the nodes push what they have. All guards are open until a source has read the store, that of a process that was filling too |
//! | the server loses a chunk | guards are open until a node has pushed it again, or a source has read the store |
//!
//! # Outgrowing
//!
//! A [`SharedSet`] is a set that is rebuilt while all processes serve: larger if it has outgrown
//! its size, or without the keys that the store has removed. The processes need not agree on a
//! moment.
//!
//! ```text
//! maintain, in every process, about once a second:
//!     if the set is filled:
//!         age = 0 if is_outgrown(), else a day   # removed rows stay until then
//!         rebuild_if_older(age, twice the rows)  # one process begins another
//!     fill_once(all rows)                        # one process fills it
//! ```
//!
//! Each generation has keys of its own on the server. From the moment that a generation is
//! announced, only this one takes inserts. Lookups ask the generation before it as well, until the
//! new one is filled and its keys have arrived. Then the server deletes the older one, and each
//! node releases its memory.
//!
//! Promises, across any number of rebuilds:
//!
//! 1. **No node that has found a key refuses it** as long as the store has it: it finds it, or its
//!    guard is open.
//! 2. **A key whose `sync` returned is found by every node that exchanges later**, as in a
//!    `SharedBloom`. This holds also if the node that inserted it dies right afterwards.
//! 3. **A node that was away follows late.** Its inserts of that time are not lost: it keeps their
//!    hashes, up to a million, and inserts them into the newest generation. If there were more, all
//!    nodes open until a source has read the store again.
//! 4. **A process that dies in a rebuild leaves it to the others**, at whatever step.
//! 5. **A server that lost data**, even the announcement of a generation, makes all nodes open
//!    until a source has read the store again, or after the loss of single chunks, until they are
//!    there again. (Not covered: a backup of a history that the server has already left, by an
//!    earlier backup.)
//!
//! A node opens, and closes by itself, in these cases: it connects during a rebuild, since it has
//! no older generation; two rebuilds began in one of its intervals; and after losses, as in 3. and
//! 5.
//!
//! `examples/shared_set.rs` is such a service. `tests/servers/redis_shared/simulation.rs` tries
//! these promises in many histories.
//!
//! # Beside a feed
//!
//! A `GuardedCache` of `lanebloom-guard` can follow a feed of changes (`LISTEN`/`NOTIFY`, a queue)
//! and have a [`SharedSet`] as its filter. Each covers the failures of the other. In a test of two
//! replicas with 370,000 requests, Redis was killed, frozen and flushed, and PostgreSQL restarted:
//! the oldest row that was refused had been committed 0.14 seconds before.
//!
//! | | by the set | by the feed |
//! |---|---|---|
//! | a row of another replica | within the interval | within the feed's delay |
//! | a row of a program without a node, `psql` for one | when a source reads the store | within the feed's delay |
//! | values, and misses that were remembered | not at all | forgotten when the row changes |
//! | keys of removed rows | until the next generation | not at all |
//! | a new process | has all keys when it has connected | reads the store |
//! | while it is away | the guard opens after `open_above_lag`; the feed tells | gets ask the store |
//!
//! Give the cache a [clone](Shared) of one node, in place of a new node for each rebuild, and
//! maintain the set beside it:
//!
//! ```text
//! ids = builder.open_above_lag(..).connect_set(..)
//! cache = GuardedCache::builder().filter(|_| ids.clone()).build(..)
//! spawn(cache.follow(feed, silence, all rows))
//! spawn(maintain(ids, all rows) about once a second)  # as above
//! ```
//!
//! A rebuild of the cache, with which `follow` begins and which it repeats after each break of the
//! feed, then inserts all rows into the newest generation. It begins no generation, and needs no
//! memory for a second filter. It adds rows that no node has inserted, and removes none: only the
//! set's own rebuild does. The other replicas get what it added. `examples/two_replicas.rs` is all
//! of this, to copy.
//!
//! # From async code
//!
//! The calls take the blocking `redis::Client`, which is only an address: the node opens its own
//! connection, whatever client the rest of the program uses. Lookups, inserts and drops never wait,
//! so a task may call them. [`connect`](SharedBuilder::connect), `rebuild` and `close` wait for the
//! network: call them by `tokio::task::spawn_blocking`, with a clone of the node. Do the same with
//! calls that read all of a large filter: `statistics`, `is_outgrown`.
//!
//! With the feature `tokio`, `sync_async` is a [`sync`](Shared::sync) for tasks: a request that
//! creates a row awaits it before it hands the id out. `fill_once_async` takes an async source. One
//! query can serve it and the rebuilds of a cache, if it gives each id to a closure: one inserts
//! into the filter, the other into the cache's `Keys`.
//!
//! # Cost
//!
//! - Memory: twice the filter's. The second half is a copy of the bits that the server is known to
//!   have. On the server: 1.25 times the filter, and a log of a quarter of it, between 1 and 16
//!   MiB. A chunk has 8 KiB and Redis a few bytes more, for which jemalloc takes 10 KiB. A chunk
//!   that grew bit by bit takes 13 KiB in the mean, since Redis doubles a string that grows, until
//!   it is pushed whole or the server starts again (Redis 7.0).
//! - A comparison of the two per interval: one pass over both, in the background thread. The thread
//!   pauses at least four times as long as the pass takes. At 512 MiB an exchange begins every
//!   second or so, whatever the interval. Inserts mark nothing, so they pay nothing.
//! - On the wire: 2 bytes for every bit that is new on the server, some 35 for every chunk (8 KiB)
//!   that is pushed, and some 360 for every interval. From 1024 new bits in a chunk on, all of the
//!   chunk travels. The table shows the cost of a key that one node pushes and one other node
//!   pulls, in a filter for a million keys at 1%, exchanged 10 times a second (`cargo bench --bench
//!   redis --features redis`, 2026-11-21):
//!
//!   | keys a second | 10 | 100 | 1000 | 10,000 | 100,000 | 1,000,000 |
//!   |---|--:|--:|--:|--:|--:|--:|
//!   | bytes pushed, per key | 442 | 77 | 35 | 17 | 12 | 13 |
//!   | bytes pulled, per key | 459 | 62 | 21 | 13 | 11 | 13 |
//! - The server's time: about a microsecond for every bit, 20 for every whole chunk. One server
//!   holds all of a set.
//!
//! # Redis Cluster
//!
//! One shard of a cluster holds a set, by the hash tag `{name}`. Give `connect` a client of any
//! node. If that node names another one (`MOVED`), the thread goes there, with the same settings,
//! user and password. After a failure it asks the first node again. So the set follows its slot to
//! other nodes, and to a replica that takes over. While the slot is moving, exchanges fail and
//! inserts are kept. The node of `connect` must live: its address should be a name that any living
//! node can have.
//!
//! # When not to use it
//!
//! - One machine runs all the processes: they could share memory, or one of them could own the
//!   filter.
//! - Every node must find a key as soon as any node inserts it: ask a server, with a
//!   [`RedisBitmap`](crate::RedisBitmap) in place.
//! - The set has some thousand keys: use `SADD`, and a copy of the set in each process.
//! - There are hundreds of nodes: each of them pulls everything that the others push, from the one
//!   server.
//!
//! # Forgetting
//!
//! A [`SharedWindow`] is the same for a [`WindowedBloom`](lanebloom::WindowedBloom) that rotates by
//! age: "seen by any node in the last ten minutes?" The time of day numbers its generations, so the
//! nodes agree on them without a message. On the server each generation is a set of its own, under
//! keys of its own, which expires. In every process it is a filter of the window's list. All
//! [promises](#promises) above hold for every generation as long as it lives. In addition:
//!
//! 1. **A key is visible for the window, wherever it has arrived.** The window counts from the
//!    key's insertion at any node. A key is visible at most one generation longer, even if it
//!    arrives late. This assumes that the clocks agree; see below for clocks that do not.
//! 2. **Rotations are local.** An insert that finds a rotation due makes it, whatever the state of
//!    the server.
//! 3. **A race of a push with a rotation loses nothing.** The node compares and pushes a generation
//!    until its last key has expired, not only while it is the newest. So inserts while the server
//!    is away come into the generations that they were made in.
//! 4. **The server forgets too.** A generation's keys expire on the server (`PEXPIREAT`) one
//!    generation later than at the nodes: after its last use, if no clock is wrong by more than a
//!    generation. So the server has at most two generations more than the nodes: this one, and one
//!    that a node whose clock is ahead has begun. The nodes tell the server how long to keep a
//!    generation from now on, so the server's own clock may show anything. If the server's clock is
//!    set forward, a generation expires early and as a whole, and the nodes that have it push it
//!    again.
//!
//! | two clocks differ by | a key that goes from one node to the other |
//! |---|---|
//! | nothing | is visible for the window, and at most a generation longer |
//! | `d`, up to a generation | is visible as soon as it is pulled, for at least the window less `d`, and at most `d` longer. If that matters, choose a window that is longer by `d`. A node whose clock is behind rotates with the nodes ahead as soon as they push |
//! | more | may be visible late or not at all: its generation has expired by one clock, or has not begun by the other. Other nodes' keys do not suffer |
//!
//! If a node's clock is set back by more than a quarter of a generation, or
//! [`rotate`](lanebloom::WindowedBloom::rotate) is called, the node's generations differ from those
//! of the other nodes. The node then does not exchange, and says so
//! ([`last_error`](SharedStats::last_error)), until these generations have expired, a window and a
//! generation later at most. Then it pushes the keys inserted meanwhile, if they are still visible.
//!
//! Each generation costs the memory of a `SharedBloom`, at nodes and server. An interval without
//! news is one call, of some 450 bytes with four generations. The background thread keeps the
//! generations of its last exchange, and clears the dropped ones, so a rotation in an insert takes
//! a microsecond. If an exchange takes longer than a generation, an insert may have to allocate
//! one.
//!
//! # Examples
//!
//! [`SharedBloom`] and [`SharedSet`] have short ones. `examples/shared_guard.rs` is three processes
//! with a guard each: `CacheGuard::new(ids)`.

mod deadline_socket;
mod delta;
mod fill_once;
mod fill_state;
mod lag_limit;
mod node;
mod redis_keys;
mod replica;
mod set;
mod set_description;
mod threadless;
mod window;

use crate::error::SharedError;
use lanebloom::{ConcurrentBloom, KeyHasher, Murmur3};
use node::{Node, NodeOptions};
use redis::Client;
use redis_keys::RedisKeys;
use replica::{Replica, since_1970};
use set_description::{Lifetime, SetDescription};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use fill_once::Filled;
pub use node::SharedStats;
pub use set::{LocalSet, SharedSet};
#[doc(hidden)]
pub use threadless::Threadless;
pub use window::SharedWindow;

/// A filter that shares one set with other processes, through Redis: a [`SharedBloom`], a
/// [`SharedSet`] or a [`SharedWindow`].
///
/// It derefs to the filter: look up and insert by the filter's own methods, which never wait for
/// the network. [The module](self) has the promises, the costs, and how a guard treats keys that
/// have not arrived yet. Clones share one node: one thread, one connection, one filter.
///
/// The drop of the last clone waits for nothing, so it may happen in any thread. If the last
/// attempt succeeded, the background thread pushes once more. It ends within eight times the
/// [timeout](SharedBuilder::timeout), and holds the filter's memory until then. If the process ends
/// first, so does the thread: call [`close`](Self::close) if no key may be lost.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::ConcurrentBloom;
/// use lanebloom_redis::{Shared, SharedBloom};
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let ids: Shared<ConcurrentBloom> =
///     SharedBloom::builder("ids").connect(server, filter)?;
/// let for_a_thread = std::sync::Arc::clone(ids.filter());
/// for_a_thread.insert("ann");
/// assert!(ids.contains("ann"));
/// ids.sync(Duration::from_secs(30))?;
/// assert!(ids.stats().pushed_bytes > 0 && ids.stats().last_error.is_none());
/// assert!(!ids.is_lagging() && !ids.may_lack_keys());
///
/// let clone = ids.clone();
/// ids.close(Duration::from_secs(30))?; // for both
/// assert!(clone.contains("ann") && clone.sync(Duration::from_secs(30)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Shared<F> {
    filter: Arc<F>,
    node: Arc<Node>,
}

impl<F> Clone for Shared<F> {
    fn clone(&self) -> Self {
        let (filter, node) = (Arc::clone(&self.filter), Arc::clone(&self.node));
        Self { filter, node }
    }
}

/// A [`ConcurrentBloom`] that shares one set with other processes, through Redis.
///
/// [`Shared`] says what a drop does; [the module](self) has the promises.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::{ConcurrentBloom, SipHash13};
/// use lanebloom_redis::SharedBloom;
/// use std::time::Duration;
///
/// // Strangers request ids, so all nodes hash under one secret key, which is part
/// // of their configuration.
/// let hasher = SipHash13::with_key(*b"16 random bytes!");
/// let builder = ConcurrentBloom::builder().expected_keys(1_000_000);
/// let filter = builder.hasher(hasher).build()?;
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let node =
///     || SharedBloom::builder("ids").connect(server.clone(), filter.clone());
/// let (one, other) = (node()?, node()?);
/// one.insert("a");
/// one.sync(Duration::from_secs(30))?; // from here on it is on the server
/// other.sync(Duration::from_secs(30))?;
/// assert!(other.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedBloom<S = Murmur3> = Shared<ConcurrentBloom<S>>;

/// Connects a [`SharedBloom`], a [`SharedSet`] or a [`SharedWindow`]; made by
/// [`SharedBloom::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect`"]
pub struct SharedBuilder {
    name: String,
    lifetime: Lifetime,
    node: NodeOptions,
}

impl SharedBloom {
    /// A builder for a node of the set of this name. The set's keys in Redis are `{name}:meta`,
    /// `{name}:log`, `{name}:versions`, `{name}:scratch` and `{name}:0` and on. A short name makes
    /// short messages.
    pub fn builder(name: impl Into<String>) -> SharedBuilder {
        SharedBuilder {
            name: name.into(),
            lifetime: Lifetime::Forever,
            node: NodeOptions {
                interval: Duration::from_millis(100),
                timeout: Duration::from_secs(2),
                lag_limit: None,
                open_until_filled: false,
            },
        }
    }
}

impl SharedBuilder {
    /// The pause between exchanges with the server; 100 milliseconds by default.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let minute = Duration::from_secs(60);
    /// let rarely =
    ///     SharedBloom::builder("ids").interval(minute).connect(server, filter)?;
    /// rarely.insert("a");
    /// std::thread::sleep(Duration::from_secs(1));
    /// assert_eq!(rarely.stats().pushed_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interval(mut self, interval: Duration) -> Self {
        self.node.interval = interval;
        self
    }

    /// The time limit of a round trip: 2 seconds by default, from one millisecond to an hour. The
    /// first round trip connects and logs in. Every further one is a request, from its first byte
    /// to the last byte of its reply. After this time the connection counts as broken, however much
    /// of the reply has come.
    ///
    /// `connect` and `sync` make as many round trips as the data needs: one for 512 KiB that a new
    /// node fetches, one for 32 KiB that it pushes, one for a MiB that it pulls. Raise the limit if
    /// the network needs longer for 1 MiB, or for a filter of some GiB: the versions of its chunks
    /// are one reply, of 40 bytes for each 8 KiB.
    ///
    /// The limit does not bound two things: the lookup of the server's name, and, with TLS, a
    /// single reply that comes in parts.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::{Duration, Instant};
    ///
    /// // A port where nobody answers.
    /// let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let client = redis::Client::open(("127.0.0.1", silent.local_addr()?.port()))?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let began = Instant::now();
    /// assert!(
    ///     SharedBloom::builder("ids")
    ///         .timeout(Duration::from_millis(50))
    ///         .connect(client, filter)
    ///         .is_err()
    /// );
    /// assert!(began.elapsed() < Duration::from_secs(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.node.timeout = timeout;
        self
    }

    /// A guard over this node admits every key while the node lags: while its last successful
    /// exchange is longer ago than `limit`. Never by default: without a limit, a guard turns away
    /// the keys that others insert while the server is away.
    ///
    /// The guard opens and closes by itself. It is open at the beginning. Then, and after a lag, it
    /// closes once exchanges have succeeded for `limit` without a failure, so that the other nodes
    /// can push first. A node with a limit exchanges at least every quarter of the limit, and ends
    /// a round trip after half of it. [The promise](self#before-a-store) needs the same limit at
    /// all nodes. Take some seconds: below, a busy machine opens the guard.
    ///
    /// The time is that of this machine's monotonic clock. [`SharedStats::is_lagging`] and
    /// [`SharedStats::lags`] show the state, and the thread logs a warning when a lag begins. A
    /// check that the guard refuses looks at the clock, and then asks the filter again: it takes 55
    /// ns in place of 14 (a million keys, Zen 4). An admitted one takes as long as without a limit.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let shared = SharedBloom::builder("ids")
    ///     .open_above_lag(Duration::ZERO) // an exchange is always longer ago
    ///     .connect(server, filter)?;
    /// assert!(shared.is_lagging());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_above_lag(mut self, limit: Duration) -> Self {
        self.node.lag_limit = Some(limit);
        self
    }

    /// A guard over this node admits every key until a node has filled the set, by
    /// [`fill_once`](SharedBloom::fill_once), and its keys have arrived here. By default, a guard
    /// turns away what is not in the set, filled or not.
    ///
    /// A cache over this node needs no rebuild: call its `mark_ready` at once. It stays open until
    /// the set is filled. A [`SharedWindow`] ignores this option: it forgets what is filled in.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let builder = SharedBloom::builder("ids").open_until_filled();
    /// let unfilled = builder.connect(server, filter)?;
    /// assert!(unfilled.may_lack_keys());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_until_filled(mut self) -> Self {
        self.node.open_until_filled = true;
        self
    }

    /// The time when the server deletes the whole set; never by default. The precision is 1 ms. The
    /// server refuses a node with another time.
    ///
    /// From then on a node keeps its keys, but no longer exchanges: [`sync`](SharedBloom::sync)
    /// fails at once. A [`SharedWindow`] takes no such time, since each of its generations expires
    /// by itself.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let past = std::time::SystemTime::now() - Duration::from_secs(1);
    /// let builder = SharedBloom::builder("ids").expires_at(past);
    /// assert!(builder.connect(server, filter).unwrap_err().is_expired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        // Redis takes no more than it can count in 63 bits, and 0 stands for never.
        self.lifetime = Lifetime::Until(since_1970(time).clamp(1, i64::MAX as u64 >> 1));
        self
    }

    /// Connects, merges `filter` and the set, and starts the thread that keeps them equal. Begins
    /// the set if the server has none.
    ///
    /// The filter may have keys, and the caller may keep an `Arc` of it: inserts through that `Arc`
    /// are shared as well.
    ///
    /// # Errors
    ///
    /// Fails if the name is empty or has a brace, if memory is too small for a second copy of the
    /// bits, if the server does not answer or refuses, or if the set on it has another layout, seed
    /// or hasher.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let filter = std::sync::Arc::new(filter);
    /// filter.insert("was there before");
    /// let shared = SharedBloom::builder("ids").connect(server, filter.clone())?;
    /// filter.insert("came later");
    /// assert!(shared.contains("came later"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect<S: KeyHasher + Send + Sync + 'static>(
        self,
        server: Client,
        filter: impl Into<Arc<ConcurrentBloom<S>>>,
    ) -> Result<SharedBloom<S>, SharedError> {
        let filter = filter.into();
        let node = Node::start(server, self.replica(&filter)?, &self.node)?.into();
        Ok(Shared { filter, node })
    }

    fn replica<S: KeyHasher + Send + Sync>(&self, filter: &Arc<ConcurrentBloom<S>>) -> Result<Replica<S>, SharedError> {
        let description = SetDescription::of(filter, filter.hasher(), self.lifetime);
        Replica::new(RedisKeys::of(&self.name)?, description, Arc::clone(filter))
    }

    /// Fails if an expiry time is set, which `what` does not take.
    fn check_no_expiry(&self, what: &str) -> Result<(), SharedError> {
        let Lifetime::Until(time) = self.lifetime else {
            return Ok(());
        };
        let text = format!("{what} takes no expiry time, here {time} ms since 1970");
        Err(SharedError::other(text))
    }
}

/// Exchanges with the server.
impl<F> Shared<F> {
    /// Pushes and pulls now, and waits for it. After `Ok`, the server has every key that was
    /// inserted here before the call, and this node has every key that the server had before the
    /// call. (A window: every key that has not expired.)
    ///
    /// Repeats failed attempts, after growing pauses, until `timeout` is over. Not for request
    /// paths: inserts and lookups need no `sync`.
    ///
    /// # Errors
    ///
    /// Fails if no attempt succeeded within `timeout`, with the error of the last one. Fails
    /// earlier if no attempt can succeed, because the set on the server is now another filter's, or
    /// has expired. The keys stay here in any case, and will be pushed.
    ///
    /// A [`SharedWindow`] also fails after its clock was set back by more than a quarter of a
    /// generation, or after [`rotate`](lanebloom::WindowedBloom::rotate), until the generations of
    /// that time have expired.
    pub fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        self.node.sync(timeout)
    }

    /// [`sync`](Self::sync) for a task: waits in a thread of the runtime's for blocking work. The
    /// example of [`fill_once_async`](SharedBloom::fill_once_async) calls it.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails as `sync` does, or if the runtime is shut down.
    #[cfg(feature = "tokio")]
    pub async fn sync_async(&self, timeout: Duration) -> Result<(), SharedError> {
        let node = Arc::clone(&self.node);
        node::aside(move || node.sync(timeout)).await
    }

    /// [`sync`](Self::sync), and then ends the background thread, for all clones. Waits until the
    /// thread is gone and has released the filter and its connection. Use it at the end of a
    /// process, since a drop does not wait.
    ///
    /// # Errors
    ///
    /// Fails as [`sync`](Self::sync) does, or if the thread has not ended within `timeout`. Then
    /// the thread goes on as after a drop.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let node =
    ///     || SharedBloom::builder("ids").connect(server.clone(), filter.clone());
    /// let one = node()?;
    /// let its_filter = one.filter().clone();
    /// one.insert("order 17");
    /// one.close(Duration::from_secs(30))?;
    /// assert_eq!(std::sync::Arc::strong_count(&its_filter), 1); // the thread is gone
    /// assert!(node()?.contains("order 17"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(self, timeout: Duration) -> Result<(), SharedError> {
        self.node.close(timeout)
    }

    /// The work so far, and the result of the last attempt.
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        self.node.stats()
    }

    /// Whether the filter may lack keys that other nodes inserted longer ago than the
    /// [limit](SharedBuilder::open_above_lag). False without a limit. Takes a load and a look at
    /// the clock.
    ///
    /// After `false`, every lookup finds the keys that the server had at the node's last exchange.
    /// That exchange lies at most the limit back.
    #[inline]
    #[must_use]
    pub fn is_lagging(&self) -> bool {
        self.node.lag_limit.is_exceeded()
    }

    /// Whether a guard over this node is open: the node [lags](Self::is_lagging), or the set is not
    /// [filled](SharedBuilder::open_until_filled). False without one of the two options, unless it
    /// is a [`SharedSet`], which always has the second one. Takes two loads and a look at the
    /// clock.
    #[inline]
    #[must_use]
    pub fn may_lack_keys(&self) -> bool {
        self.node.may_lack_keys()
    }

    /// For guards: whether [`may_lack_keys`](Self::may_lack_keys) can ever return true.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn can_lack_keys(&self) -> bool {
        self.node.can_lack_keys()
    }

    /// For guards: [`SharedStats::lag`].
    #[doc(hidden)]
    #[must_use]
    pub fn lag(&self) -> Duration {
        self.node.lock().lag()
    }

    /// The local filter.
    #[must_use]
    pub fn filter(&self) -> &Arc<F> {
        &self.filter
    }
}

impl<F> Deref for Shared<F> {
    type Target = F;

    fn deref(&self) -> &Self::Target {
        &self.filter
    }
}

impl<F: fmt::Debug> fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("filter", &self.filter)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
