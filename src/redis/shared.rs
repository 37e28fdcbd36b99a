//! One set on many nodes. [`SharedBloom`] is a filter in every process. A background thread keeps
//! it equal to the others' through Redis. [`SharedWindow`] is such a set that
//! [forgets](#forgetting).
//!
//! ```text
//! process A                                     Redis                                     process B
//! ConcurrentBloom --what was added--> script: OR into chunks, a log of what was added --> ConcurrentBloom
//!                  <-- what others added --                       (and the other way round)
//! ```
//!
//! # What it promises
//!
//! 1. **Lookups and inserts are the local filter's.** [`SharedBloom`] derefs to its
//!    [`ConcurrentBloom`], and marks and counts nothing in it. So no call ever waits for the
//!    network, whatever the state of the server, and neither does a drop. Only
//!    [`connect`](SharedBuilder::connect), [`sync`](SharedBloom::sync) and
//!    [`close`](SharedBloom::close) wait. All promises of the crate for the filter
//!    ([Consistency](crate#consistency)) hold within the process.
//! 2. **What was pushed arrives.** If a key was inserted here before a call of
//!    [`sync`](SharedBloom::sync), and `sync` answers `Ok`, the key is on the server. Every node
//!    that calls `sync` or connects from then on finds it. Without `sync` the same happens in the
//!    background, every [interval](SharedBuilder::interval).
//! 3. **No push is lost by a race.** The server ORs in a script, and runs only one script at a
//!    time.
//! 4. **Inserts while the server is away are kept**, and pushed once it is back. The thread
//!    reconnects by itself, after pauses that double up to 3 seconds. Half of each pause is random,
//!    so that the nodes do not all come at once. Nodes pull from a full server all the same.
//! 5. **A new node starts from the server's state**, which [`connect`](SharedBuilder::connect)
//!    takes before it returns. Keys that were in the new node's filter before are pushed.
//! 6. **What the server loses is pushed again**, by every node that has it: after a crash with an
//!    append-only file that lacks the end, a failover to a replica that was behind, a restored
//!    backup, `FLUSHALL`. The server gives every push an id. By these ids the nodes notice a loss
//!    at their next exchange with the server.
//! 7. **Who does not fit is refused**: a filter of another layout, seed or hasher gets an error
//!    that says what differs.
//! 8. **No server holds a node for ever**, whatever it sends. Each round trip ends within the
//!    [timeout](SharedBuilder::timeout), and after 16 MiB of replies and 128 bytes for each 8 KiB
//!    of the filter. A node leaves a server that fails or refuses. It makes the next attempt on a
//!    new connection, to the server that has the name by then. With TLS the node checks the timeout
//!    between replies only, and does not bound their length.
//!
//! A key is pushed when the server has answered. The server decides how long it keeps the key:
//!
//! | `appendonly`, `appendfsync` | of what it has answered, a server that crashes keeps | and if its machine does |
//! |---|---|---|
//! | `yes`, `always` | everything | everything |
//! | `yes`, `everysec` | everything, unless its disk is so slow that writes wait (2 seconds at most) | all but the last 2 seconds |
//! | `no` | what its last snapshot has | what its last snapshot has |
//!
//! A key that the server loses is missing only if no node that has it is left (6).
//!
//! # What it does not promise
//!
//! - **A key that another node inserted is not here yet**, for up to an interval at each end and
//!   the network's time. During that time a lookup here answers "certainly not" for a key that is
//!   in the set. See below for what a guard does about it.
//! - An insert that answers true says that the key is new *here*. Several nodes may each get true
//!   for one key. To claim a key among nodes takes a call to a server.
//! - Keys are never removed, and the set cannot grow. Both need a new set under another name. A
//!   guard goes over to the new set by [`CacheGuard::rebuild`](crate::CacheGuard::rebuild). The old
//!   set can [expire](SharedBuilder::expires_at). Or use a set that [forgets](#forgetting) by
//!   itself.
//! - Anybody who can write to the server can set every bit. Wrong data from a broken server or
//!   another program gives an error, and nothing worse.
//! - The server must not evict. With `maxmemory`, use a policy of `noeviction`, or of `volatile-*`
//!   if the set does not expire. If the server evicts a chunk and keeps the rest, no node notices
//!   until the chunk is next compared. Delete a set by deleting all its keys, while no node has it.
//!   [Close](SharedBloom::close) the last node, since a node that is only dropped may push a little
//!   later.
//! - The expected keys are those of all nodes together.
//!
//! # Before a store
//!
//! A [`CacheGuard`](crate::CacheGuard) over a `SharedBloom` turns away keys that other nodes have
//! just added to the store, until the keys have arrived. The remedy depends on the client that
//! first asks for a new key:
//!
//! - Insert, `sync`, and only then hand the id out. A client that learns of the id later finds it
//!   on nodes that have synced meanwhile, which they do within their interval. The client that made
//!   the id finds it at once at the node where it made it.
//! - If a client may ask another node for a new id within milliseconds, send along what proves that
//!   the id is new (a time in the id, for example). Let such requests pass the guard: ids younger
//!   than [`lag`](SharedStats::lag) plus the others' interval.
//! - A node whose `lag` grows does not hear of new keys. Above some seconds, admit everything and
//!   rely on the store alone.
//!
//! # What it costs
//!
//! - Memory: twice the filter's. The second half is a copy of what the server is known to have. On
//!   the server: the filter, and a log of a quarter of it, between 1 and 16 MiB.
//! - A comparison of the two per interval: one pass over both, in the background thread. The thread
//!   pauses at least four times as long as the pass takes. At 512 MiB an exchange begins every
//!   second or so, whatever the interval. Inserts mark nothing, so they pay nothing. (A map of the
//!   changed regions, kept by the inserts, would spare most of the comparison. But a batch would
//!   have to find out which of its keys changed the filter, and keys that are inserted in bulk do
//!   not tell.)
//! - On the wire: 2 bytes for every bit that is new on the server, some 35 for every chunk (8 KiB)
//!   that is pushed, and some 350 for every interval. From 1024 new bits in a chunk on, all of the
//!   chunk travels. The table shows the cost of a key that one node pushes and one other node
//!   pulls, in a filter for a million keys at 1%, exchanged 10 times a second (`cargo bench --bench
//!   redis --features redis`):
//!
//!   | keys a second | 10 | 100 | 1000 | 10,000 | 100,000 | 1,000,000 |
//!   |---|--:|--:|--:|--:|--:|--:|
//!   | bytes pushed, per key | 356 | 69 | 34 | 16 | 12 | 13 |
//!   | bytes pulled, per key | 372 | 54 | 20 | 13 | 11 | 13 |
//! - The server's time: about a microsecond for every bit, 20 for every whole chunk. One server
//!   holds all of a set. In Redis Cluster one shard holds it, by the hash tag `{name}`. Connect to
//!   that shard.
//!
//! # When not to use it
//!
//! - One machine runs all the processes: they could share memory, or one of them could own the
//!   filter.
//! - Every node must find a key as soon as any node inserts it: ask a server, with a filter of
//!   [`redis`](crate::redis) in place.
//! - The set has some thousand keys: use `SADD`, and a copy of the set in each process.
//! - There are hundreds of nodes: each of them pulls everything that the others push, from the one
//!   server.
//!
//! # Forgetting
//!
//! A [`SharedWindow`] is the same for a [`WindowedBloom`](crate::WindowedBloom) that rotates by
//! age: "seen by any node in the last ten minutes?" The time of day numbers its generations, so the
//! nodes agree on them without asking anybody. On the server each generation is a set of its own,
//! under keys of its own, which expires. In every process it is a filter of the window's list. All
//! [promises](#what-it-promises) above hold for every generation as long as it lives. In addition:
//!
//! 1. **A key is visible for the window, wherever it has arrived.** The window counts from the
//!    key's insertion at any node. A key is visible at most one generation longer, even if it
//!    arrives late. This assumes that the clocks agree; see below for clocks that do not.
//! 2. **Inserts and lookups are the local window's**, and so are rotations: an insert that finds a
//!    rotation due makes it, whatever the state of the server.
//! 3. **Nothing is lost by a race of a push with a rotation.** A generation is compared and pushed
//!    until its last key has expired, not only while it is the newest.
//! 4. **Inserts while the server is away are kept** as long as they are visible, and pushed into
//!    the generations that they were made in.
//! 5. **A new node starts from all generations that live**, each with its real age.
//! 6. **The server forgets too.** A generation's keys expire on the server (`PEXPIREAT`) one
//!    generation later than at the nodes. This is after its last use, if no clock is wrong by more
//!    than a generation. So the server has at most two generations more than the nodes: this one,
//!    and one that begins where a clock is ahead. The nodes tell the server how long
//!    to keep a generation from now on, so the server's own clock may show anything. If the
//!    server's clock is set forward, a generation goes early and as a whole, and the nodes that
//!    have it push it again.
//! 7. **Who does not fit is refused**: also a node with another period or number of generations.
//!    The error names both.
//!
//! | two clocks differ by | then a key that goes from one node to the other |
//! |---|---|
//! | nothing | is visible for the window, and at most a generation longer |
//! | `d`, up to a generation | is visible as soon as it is pulled, for the window less `d` at least, and `d` longer at most: where that matters, ask for a window that is longer by `d`. A node whose clock is behind rotates with those ahead as soon as they push |
//! | more | may be visible late or not at all: its generation has expired by one clock, or has not begun by the other. Nobody else's keys suffer |
//!
//! If a node's clock is set back by more than a quarter of a generation, or
//! [`rotate`](crate::WindowedBloom::rotate) is called, the node's generations differ from those of
//! the other nodes. The node then does not exchange, and says so
//! ([`last_error`](SharedStats::last_error)), until these generations have expired, a window and a
//! generation later at most. Then it pushes the keys inserted meanwhile, if they are still visible.
//!
//! It costs the same as a `SharedBloom` for each generation, in memory at nodes and server. An
//! interval in which nothing happens is one call, of some 450 bytes with four generations. The
//! background thread holds on to the generations of its last exchange, and clears the dropped ones.
//! So a rotation in an insert takes a microsecond. Only if an exchange takes longer than a
//! generation, an insert may have to allocate a generation.
//!
//! # Examples
//!
//! `examples/shared_guard.rs` is three processes with a guard each.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
//! use lanebloom::{CacheGuard, ConcurrentBloom, SipHash13, redis::SharedBloom};
//! use std::time::Duration;
//!
//! // Strangers ask for ids, so all nodes hash under one secret key, which is part of their configuration.
//! let secret = *b"16 random bytes!";
//! let hasher = SipHash13::with_key(secret);
//! let filter = ConcurrentBloom::builder().expected_keys(1_000_000).hasher(hasher).build()?;
//! let server = redis::Client::open("redis://127.0.0.1:6379/")?;
//! # let server = redis.client();
//! let ids = SharedBloom::builder("ids").interval(Duration::from_millis(50)).connect(server, filter)?;
//! ids.insert("new");
//! assert!(ids.contains("new"));
//! ids.sync(Duration::from_secs(30))?; // from here on it is on the server
//!
//! let guard = CacheGuard::<str, _>::new(ids);
//! assert!(guard.check("new").is_some());
//! # Ok(())
//! # }
//! ```

mod delta;
mod description;
pub(super) mod life;
mod node;
mod replica;
#[cfg(feature = "window")]
mod window;
mod wire;

use super::error::SharedError;
use crate::filter::bloom::ConcurrentBloom;
use crate::hash::{KeyHasher, Murmur3};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use description::{Description, Keys};
use life::Life;
use node::Node;
use redis::Client;
use replica::{Replica, since_1970};
use std::time::SystemTime;

pub use node::SharedStats;
#[cfg(feature = "window")]
pub use window::SharedWindow;
#[cfg(feature = "window")]
#[doc(hidden)]
pub use window::exchange_window_over;

/// A [`ConcurrentBloom`] that is one set with those of other processes, through Redis.
///
/// It derefs to the filter: look up and insert by the filter's own calls. [The module](self) says
/// what is promised, what it costs, and how a guard treats keys that have not arrived yet.
///
/// A drop waits for nothing, so that it may happen in any thread. The background thread then pushes
/// what is left, once and only if its last attempt succeeded, and ends: within eight times the
/// [timeout](SharedBuilder::timeout), with the filter's memory in hand until then. A process that
/// ends before takes the thread along: call [`close`](Self::close) where keys must not be lost.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
/// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
/// # let server = redis.client();
/// let node = || {
///     let filter = ConcurrentBloom::builder().expected_keys(1000).build().expect("a small filter");
///     SharedBloom::builder("ids").connect(server.clone(), filter)
/// };
/// let (one, other) = (node()?, node()?);
/// one.insert("a");
/// one.sync(Duration::from_secs(30))?;
/// other.sync(Duration::from_secs(30))?;
/// assert!(other.contains("a"));
/// # Ok(())
/// # }
/// ```
pub struct SharedBloom<S = Murmur3> {
    filter: Arc<ConcurrentBloom<S>>,
    node: Node,
}

/// Connects a [`SharedBloom`], or a [`SharedWindow`]; made by [`SharedBloom::builder`].
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
/// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
/// # let server = redis.client();
/// let shared = SharedBloom::builder("ids")
///     .interval(Duration::from_millis(20))
///     .timeout(Duration::from_secs(1))
///     .connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
/// assert_eq!(shared.expected_keys(), 1000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect`"]
pub struct SharedBuilder {
    name: String,
    interval: Duration,
    timeout: Duration,
    /// In ms since 1970; 0 if never.
    expires: u64,
}

impl SharedBloom {
    /// A builder for a node of the set of this name. The set's keys in Redis are `{name}:meta`,
    /// `{name}:log`, `{name}:versions`, `{name}:scratch` and `{name}:0` and on; a short name makes
    /// short messages.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    ///
    /// // Nobody listens at port 1.
    /// let nobody = redis::Client::open("redis://127.0.0.1:1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert!(SharedBloom::builder("ids").connect(nobody, filter).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> SharedBuilder {
        SharedBuilder {
            name: name.into(),
            interval: Duration::from_millis(100),
            timeout: Duration::from_secs(2),
            expires: 0,
        }
    }
}

impl SharedBuilder {
    /// The pause between exchanges with the server; 100 milliseconds by default.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let rarely = SharedBloom::builder("ids").interval(Duration::from_secs(60)).connect(server, filter)?;
    /// rarely.insert("a");
    /// std::thread::sleep(Duration::from_secs(1));
    /// assert_eq!(rarely.stats().pushed_bytes, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long a round trip may take; 2 seconds by default, one millisecond to an hour. The first
    /// round trip connects and logs in. Every further one is a request, from its first byte to the
    /// last byte of its reply. After that time the connection counts as broken, however much of the
    /// reply has come.
    ///
    /// `connect` and `sync` make as many round trips as the data needs: one for 512 KiB that a new
    /// node fetches, one for 32 KiB that it pushes, one for a MiB that it pulls. Give more time for
    /// a slower network than 1 MiB in this time, or for a filter of some GiB: its chunks' versions
    /// are one reply of 40 bytes for each 8 KiB.
    ///
    /// This time does not bound two things. Looking up the server's name takes as long as the
    /// system needs. With TLS the `redis` crate reads, and a single reply that comes in parts may
    /// take longer.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::time::{Duration, Instant};
    ///
    /// // A port where nobody answers.
    /// let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let client = redis::Client::open(("127.0.0.1", silent.local_addr()?.port()))?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let began = Instant::now();
    /// assert!(SharedBloom::builder("ids").timeout(Duration::from_millis(50)).connect(client, filter).is_err());
    /// assert!(began.elapsed() < Duration::from_secs(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// When the server deletes the set, all of it at once; never by default. The time has a
    /// precision of 1 ms. All nodes must have the same time: a node with another time is refused.
    ///
    /// From then on a node keeps what it has, but no longer exchanges: [`sync`](SharedBloom::sync)
    /// fails at once. Each generation of a [`SharedWindow`] expires by itself, so a `SharedWindow`
    /// takes no other time.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::time::{Duration, SystemTime};
    ///
    /// # let server = redis.client();
    /// let past = SystemTime::now() - Duration::from_secs(1);
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert!(SharedBloom::builder("ids").expires_at(past).connect(server, filter).unwrap_err().is_expired());
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        // Redis takes no more than it can count in 63 bits, and 0 stands for never.
        self.expires = since_1970(time).clamp(1, i64::MAX as u64 >> 1);
        self
    }

    /// Connects, brings `filter` and the set together, and starts the thread that keeps them so.
    ///
    /// The filter may have keys, and the caller may keep an `Arc` of it: what is inserted there is
    /// shared as well.
    ///
    /// # Errors
    ///
    /// If the name is empty or has a brace, if there is no memory for a second copy of the bits, if
    /// the server does not answer or refuses, or if the set on it is of another layout, seed or
    /// hasher. A set that is not there yet is begun.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::sync::Arc;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
    /// # let server = redis.client();
    /// let filter = Arc::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
    /// filter.insert("was there before");
    /// let shared = SharedBloom::builder("ids").connect(server, Arc::clone(&filter))?;
    /// filter.insert("came later");
    /// assert!(shared.contains("came later"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect<S: KeyHasher + Send + Sync + 'static>(
        self,
        server: Client,
        filter: impl Into<Arc<ConcurrentBloom<S>>>,
    ) -> Result<SharedBloom<S>, SharedError> {
        let filter = filter.into();
        let life = match self.expires {
            0 => Life::Forever,
            time => Life::Until(time),
        };
        let description = Description::of(filter.layout(), filter.hasher(), life);
        let replica = Replica::new(Keys::of(&self.name)?, description, Arc::clone(&filter))?;
        let node = Node::start(server, Box::new(replica), self.interval, self.timeout)?;
        Ok(SharedBloom { filter, node })
    }
}

impl<S> SharedBloom<S> {
    /// Pushes and pulls now, and waits for it: once this is `Ok`, every key that was inserted here
    /// before the call is on the server, and every key that was on the server before the call is
    /// here.
    ///
    /// Attempts that fail are repeated, after growing pauses, until `timeout` is over. Not for
    /// request paths: inserts and lookups need no `sync`.
    ///
    /// # Errors
    ///
    /// If that did not succeed within `timeout`; the error says why the last attempt failed.
    /// Earlier if no attempt can succeed, because the set on the server is now another filter's, or
    /// has expired. The keys stay here in any case, and will be pushed.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let shared = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// shared.insert("order 17");
    /// shared.sync(Duration::from_secs(30))?;
    /// // From here on it is at every node that starts.
    /// # let server = redis.client();
    /// let new = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// assert!(new.contains("order 17"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        self.node.sync(timeout)
    }

    /// [`sync`](Self::sync), and then ends the background thread. Waits until the thread is gone,
    /// with its hold of the filter and its connection. Use it at the end of a process, since a drop
    /// does not wait.
    ///
    /// # Errors
    ///
    /// Those of [`sync`](Self::sync), or if the thread has not ended within `timeout`. It goes on
    /// as after a drop then.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// # let server = redis.client();
    /// let shared = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// let filter = Arc::clone(shared.filter());
    /// shared.insert("order 17");
    /// shared.close(Duration::from_secs(30))?;
    /// // Nobody else has the filter any more, and the server has its key.
    /// assert_eq!(Arc::strong_count(&filter), 1);
    /// # let server = redis.client();
    /// let new = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// assert!(new.contains("order 17"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(self, timeout: Duration) -> Result<(), SharedError> {
        self.node.close(timeout)
    }

    /// What was done so far, and how the last attempt went.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    ///
    /// # let server = redis.client();
    /// let shared = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// let stats = shared.stats();
    /// assert!(stats.passes >= 1 && stats.last_error.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        self.node.stats()
    }

    /// The local filter.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::sync::Arc;
    ///
    /// # let server = redis.client();
    /// let shared = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
    /// let for_a_thread = Arc::clone(shared.filter());
    /// for_a_thread.insert("a");
    /// assert!(shared.contains("a"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn filter(&self) -> &Arc<ConcurrentBloom<S>> {
        &self.filter
    }
}

impl<S> Deref for SharedBloom<S> {
    type Target = ConcurrentBloom<S>;

    fn deref(&self) -> &Self::Target {
        &self.filter
    }
}

impl<S: fmt::Debug> fmt::Debug for SharedBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBloom")
            .field("filter", &self.filter)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// For the fuzzer: the exchanges of a node that has `filter` with any other end.
#[doc(hidden)]
pub fn exchange_over<S: KeyHasher + Send + Sync>(
    server: &mut dyn redis::ConnectionLike,
    filter: Arc<ConcurrentBloom<S>>,
    passes: usize,
) -> Result<(), SharedError> {
    let description = Description::of(filter.layout(), filter.hasher(), Life::Forever);
    node::passes(Replica::new(Keys::of("fuzz")?, description, filter)?, server, passes)
}
