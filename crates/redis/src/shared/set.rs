//! [`SharedSet`]: one set on many nodes that can be rebuilt, larger or without the keys that the
//! store has removed, while it serves. Each generation is a set like a
//! [`SharedBloom`](super::SharedBloom)'s, under keys of its own.
//!
//! # The switch
//!
//! The root key names the newest generation. The rules, by which no key is turned away:
//!
//! 1. **Only the newest generation takes pushes.** The script checks it, in the call that pushes.
//!    So from the announcement of a generation on, the older ones do not change.
//! 2. **A node that is told of a newer generation has pulled all of its own one.** Lookups ask
//!    both, until the newer one is filled and pulled. If there was one in between, the node opens
//!    instead.
//! 3. **The source of a generation reads the store after the announcement.** A key that is in an
//!    older generation on the server was pushed before the announcement, after its row was
//!    committed, so the source reads it.
//! 4. **A key that was not pushed before the announcement goes into the newest generation.** The
//!    node keeps the hashes of inserts until they are pushed (`Log`). The hasher of all generations
//!    is the same. If there are too many hashes, the node announces one more generation, whose
//!    source reads the rows, as after a loss (5.).
//! 5. **After a loss, all nodes open until a source has read the store again.** If the server lost
//!    the announcement of a generation, or pushes to an older one, some keys are in no generation
//!    that the others ask. The node that notices it (its generation is gone, or lacks its pushes,
//!    or is later than the newest one, and the newest one is not filled) announces a further
//!    generation, with a mark by which all nodes open. If the newest generation is filled, its
//!    source has read these keys.
//!
//! # Memory ordering of an insert
//!
//! An insert writes the bits into the newest generation, then logs the hash, and then checks that
//! the list of generations is the one it used ([`Swap::write_to_current`]). A hash in the log has
//! its bits in the filter, so a pass that begins later compares them. The thread replaces the list,
//! and then reads the log: either it finds the hash there, or the insert finds the new list.

use super::SharedBuilder;
use super::description::{Description, RedisKeys};
use super::fill::{self, Filled};
use super::filling::{Fill, Filling};
use super::lifetime::Lifetime;
use super::node::{Counts, Node, SharedStats, Side};
use super::replica::{Id, Replica, answer};
use crate::error::{SharedError, SharedErrorKind};
use lanebloom::internal::Swap;
use lanebloom::{BuildError, ConcurrentBloom, Funnel, KeyHasher, Murmur3, Statistics};
use redis::{Client, ConnectionLike, Script};
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Hashes that a node keeps at most: 8 MiB.
const MOST_HASHES: usize = 1 << 20;
/// Generations that a pass follows, before it gives up until the next pass.
const MOST_GENERATIONS: usize = 8;
/// A node takes generations for at most this many times the keys that it expected.
const MOST_GROWTH: u64 = 1024;

/// A set that many processes share through Redis, and that can be rebuilt while it serves. The
/// processes follow without a message to them, and none turns a valid key away meanwhile.
///
/// It is a [`SharedBloom`](super::SharedBloom) that is open until it is
/// [filled](Self::fill_once), with one more call: [`rebuild`](Self::rebuild) begins a new
/// generation, for more keys, or without those that the store has removed. Every process repeats
/// [`fill_once`](Self::fill_once): one of them reads the store into the new generation. Until it is
/// filled, lookups ask the old generation and the new one. Then the server deletes the old one.
///
/// An insert takes a lock for some nanoseconds, and keeps the key's hash until it is pushed. A
/// lookup takes as long as in a `SharedBloom`, and twice that during a rebuild.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::{ConcurrentBloom, SipHash13};
/// use lanebloom_redis::SharedBloom;
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let hasher = SipHash13::with_key(*b"16 random bytes!");
/// let ids = SharedBloom::builder("ids").connect_set(server, 1000, move |keys| {
///     let builder = ConcurrentBloom::builder().expected_keys(keys);
///     builder.hasher(hasher.clone()).build()
/// })?;
/// let fill = || {
///     ids.fill_once(Duration::from_secs(3600), |ids| {
///         (0..5000u64).for_each(|id| _ = ids.insert(&id)); // SELECT id FROM users
///         Ok::<_, std::io::Error>(())
///     })
/// };
/// fill()?;
/// assert!(ids.is_outgrown());
///
/// ids.rebuild(10_000, Duration::from_secs(30))?;
/// assert!(ids.contains(&17u64)); // from the old generation
/// fill()?;
/// assert!(ids.contains(&17u64) && !ids.is_outgrown());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedSet<S = Murmur3> {
    state: Arc<State<S>>,
    node: Node,
}

/// What callers and the thread share.
struct State<S> {
    /// The newest is the last one. The older ones are there until it is filled.
    generations: Swap<Vec<Generation<S>>>,
    log: Mutex<Log>,
}

struct Generation<S> {
    /// As [`Filling::generation`].
    place: u64,
    id: Id,
    filter: Arc<ConcurrentBloom<S>>,
}

impl<S> Clone for Generation<S> {
    fn clone(&self) -> Self {
        let (place, id, filter) = (self.place, self.id, Arc::clone(&self.filter));
        Self { place, id, filter }
    }
}

/// Inserts that are perhaps not pushed yet.
#[derive(Default)]
struct Log {
    hashes: Vec<u64>,
    /// Whether there were too many.
    is_cut: bool,
}

impl Log {
    fn extend(&mut self, hashes: &[u64]) {
        self.is_cut |= MOST_HASHES < self.hashes.len() + hashes.len();
        if self.is_cut {
            self.hashes = Vec::new();
        } else {
            self.hashes.extend_from_slice(hashes);
        }
    }

    fn append(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        self.extend(&other.hashes);
    }
}

impl<S: KeyHasher> State<S> {
    fn newest(&self) -> Generation<S> {
        let generations = self.generations.load();
        generations.last().expect("a set has a generation").clone()
    }

    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let generations = self.generations.load();
        generations
            .iter()
            .rev()
            .any(|generation| generation.filter.contains(key))
    }

    fn insert(&self, hashes: &[u64]) -> usize {
        let write = |generations: &Vec<Generation<S>>| {
            let new = generations
                .last()
                .map_or(0, |newest| newest.filter.insert_hashes(hashes));
            self.lock().extend(hashes);
            new
        };
        // The first filter decides whether a key is new.
        self.generations
            .write_to_current(self.generations.load(), write, |first, _| first)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedBuilder {
    /// [`connect`](Self::connect) for a set that can be [rebuilt](SharedSet::rebuild). If the
    /// server has none, it begins one for `expected_keys`.
    ///
    /// `build` makes an empty filter for a number of keys. All nodes must build the same: the same
    /// rate, shape and hasher. The set's keys in Redis are `{name}:meta` and, for each generation,
    /// those of a `SharedBloom` after its id.
    ///
    /// # Errors
    ///
    /// Fails as [`connect`](Self::connect) does, if `build` does, if the set on the server is for
    /// more than 1024 times the expected keys, or if [`expires_at`](Self::expires_at) was called.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, |keys| {
    ///     ConcurrentBloom::builder().expected_keys(keys).build()
    /// })?;
    /// ids.insert("ann");
    /// assert!(ids.contains("ann") && ids.may_lack_keys());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_set<S: KeyHasher + Send + Sync + 'static>(
        self,
        server: Client,
        expected_keys: usize,
        build: impl Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send + 'static,
    ) -> Result<SharedSet<S>, SharedError> {
        if self.expires != 0 {
            return Err(SharedErrorKind::SetExpires(self.expires).into());
        }
        let side = SetSide::new(RedisKeys::of(&self.name)?, expected_keys, build)?;
        let state = Arc::clone(&side.state);
        let (interval, timeout) = (self.interval, self.timeout);
        let node = Node::start(server, Box::new(side), interval, timeout, self.lag_limit, true)?;
        Ok(SharedSet { state, node })
    }
}

/// Lookups and inserts, which never wait for the network.
impl<S: KeyHasher> SharedSet<S> {
    /// Whether the set may hold the key, as far as this node has heard.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// ids.insert("ann");
    /// assert!(ids.contains("ann") && !ids.contains("eve"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.state.contains(key)
    }

    /// [`contains`](Self::contains) of many keys: bit `i % 64` of word `i / 64` for key `i`.
    ///
    /// # Panics
    ///
    /// Panics if `out` has not one word for every 64 keys.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// ids.insert_batch(&["ann", "bob"]);
    /// let mut found = [0];
    /// ids.contains_batch_bitmap(&["bob", "eve", "ann"], &mut found);
    /// assert_eq!(found, [0b101]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        let generations = self.state.generations.load();
        let mut generations = generations.iter().rev();
        if let Some(newest) = generations.next() {
            newest.filter.contains_batch_bitmap(keys, out);
        }
        for older in generations {
            let mut found = vec![0; out.len()];
            older.filter.contains_batch_bitmap(keys, &mut found);
            out.iter_mut().zip(found).for_each(|(out, found)| *out |= found);
        }
    }

    /// Inserts a key. Returns whether it is new in the newest generation at this node.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert!(ids.insert("ann") && !ids.insert("ann"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.state.insert(&[self.state.newest().filter.hash(key)]) == 1
    }

    /// [`insert`](Self::insert) of many keys. Returns the number of new ones.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert_eq!(ids.insert_batch(&["ann", "bob"]), 2);
    /// assert!(ids.contains("bob"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        let newest = self.state.newest();
        let hashes: Vec<u64> = keys.iter().map(|key| newest.filter.hash(key)).collect();
        self.state.insert(&hashes)
    }

    /// The newest generation's fill, number of keys, and false-positive rate.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// ids.insert("ann");
    /// assert_eq!(ids.statistics().len, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.state.newest().filter.statistics()
    }

    /// The false-positive rate that the newest generation was built for.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert!(ids.false_positive_rate() <= 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.state.newest().filter.false_positive_rate()
    }

    /// The memory of the filters, in bytes, without the copy of the newest one.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert!(ids.memory_bytes() > 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let generations = self.state.generations.load();
        generations
            .iter()
            .map(|generation| generation.filter.memory_bytes())
            .sum()
    }

    /// Whether the newest generation has more keys than it expects: a rebuild is due. Takes a pass
    /// over the filter.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert!(!ids.is_outgrown());
    /// ids.insert_batch(&Vec::from_iter(0..3000u32));
    /// assert!(ids.is_outgrown());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        let newest = self.state.newest();
        newest.filter.estimated_len() > newest.filter.expected_keys()
    }

    /// The number of the newest generation that this node knows: 0, and one more with each rebuild.
    /// (A server that lost data may repeat a number.)
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # use std::time::Duration;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// ids.rebuild(2000, Duration::from_secs(30))?;
    /// assert_eq!(ids.generation(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.newest().id.number
    }
}

/// Filling and rebuilding.
impl<S: KeyHasher> SharedSet<S> {
    /// Fills the newest generation, unless a node has already filled it, as
    /// [`SharedBloom::fill_once`](super::SharedBloom::fill_once) does. Returns after one
    /// exchange if it is filled, so a process may repeat it every second: then any process can take
    /// over a rebuild whose process died.
    ///
    /// `source` is called again if the set is rebuilt while it runs.
    ///
    /// # Errors
    ///
    /// Fails as `SharedBloom::fill_once` does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # use std::time::Duration;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// ids.fill_once(Duration::from_secs(3600), |ids| {
    ///     ids.insert("ann"); // SELECT id FROM users
    ///     Ok::<_, std::io::Error>(())
    /// })?;
    /// assert!(ids.contains("ann") && !ids.may_lack_keys());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fill_once<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        timeout: Duration,
        mut source: impl FnMut(&ConcurrentBloom<S>) -> Result<(), E>,
    ) -> Result<Filled, SharedError> {
        // Another node may have begun a generation since the last exchange.
        self.node.sync(timeout)?;
        fill::fill_once(self.node.control(), timeout, |place| {
            let newest = self.state.newest();
            // Otherwise the thread has gone on since, and the next turn is for the newest one.
            if newest.place == place {
                return source(&newest.filter);
            }
            Ok(())
        })
    }

    /// Begins a new generation for `expected_keys`, and waits until this node has it. Then
    /// [`fill_once`](Self::fill_once) fills it, at this node or another. Lookups ask the present
    /// generation as well until then. If several nodes call this at once, one generation begins.
    ///
    /// # Errors
    ///
    /// Fails if `expected_keys` is more than 1024 times those of `connect_set`, or if the server
    /// did not take it within `timeout`. In the latter case the generation may begin later.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # use std::time::Duration;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// let bytes = ids.memory_bytes();
    /// ids.rebuild(20_000, Duration::from_secs(30))?;
    /// assert!(ids.memory_bytes() > 10 * bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&self, expected_keys: usize, timeout: Duration) -> Result<(), SharedError> {
        self.node.control().rebuild(expected_keys as u64, timeout)
    }

    /// Whether a guard over this node is open: the node lags, or no generation here has all keys.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// assert!(ids.may_lack_keys()); // nobody has filled it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn may_lack_keys(&self) -> bool {
        self.node.may_lack_keys()
    }

    /// As [`Shared::sync`](super::Shared::sync), with the same errors.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # use std::time::Duration;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let builder = SharedBloom::builder("ids");
    /// let node = || builder.clone().connect_set(server.clone(), 1000, build);
    /// let one = node()?;
    /// one.insert("order 17");
    /// one.sync(Duration::from_secs(30))?;
    /// assert!(node()?.contains("order 17"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        self.node.sync(timeout)
    }

    /// As [`Shared::close`](super::Shared::close), with the same errors.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # use std::time::Duration;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let builder = SharedBloom::builder("ids");
    /// let node = || builder.clone().connect_set(server.clone(), 1000, build);
    /// let one = node()?;
    /// one.insert("order 17");
    /// one.close(Duration::from_secs(30))?;
    /// assert!(node()?.contains("order 17"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(self, timeout: Duration) -> Result<(), SharedError> {
        self.node.close(timeout)
    }

    /// The work so far, and the result of the last attempt.
    ///
    /// ```no_run
    /// # use lanebloom::ConcurrentBloom;
    /// # use lanebloom_redis::SharedBloom;
    /// # let server = redis::Client::open("redis://127.0.0.1/")?;
    /// # let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, build)?;
    /// let stats = ids.stats();
    /// assert!(stats.passes >= 1 && !stats.is_filled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        self.node.stats()
    }
}

impl<S: KeyHasher> fmt::Debug for SharedSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSet")
            .field("generation", &self.generation())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// The side of a [`SharedSet`].
struct SetSide<S, B> {
    state: Arc<State<S>>,
    keys: RedisKeys,
    build: B,
    most_keys: u64,
    announce: Script,
    random: RandomState,
    /// This node's side of the newest generation.
    replica: Replica<S>,
    /// Whether the server has had the newest generation, as this node knows it.
    has_joined: bool,
    /// The inserts that no pass has pushed, without those in the state's log.
    unpushed: Log,
    /// The counts of older replicas.
    past: Counts,
}

impl<S, B> SetSide<S, B>
where
    S: KeyHasher + Send + Sync,
    B: Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send,
{
    fn new(keys: RedisKeys, expected_keys: usize, build: B) -> Result<Self, SharedError> {
        let random = RandomState::new();
        // The first one, unless the server has another.
        let id = Id {
            number: 0,
            token: random.hash_one("the first generation"),
        };
        let filter = Arc::new(build(expected_keys).map_err(SharedErrorKind::Build)?);
        let replica = replica_of(&keys, id, expected_keys as u64, &filter)?;
        let first = Generation { place: 0, id, filter };
        Ok(Self {
            state: Arc::new(State {
                generations: Swap::new(vec![first]),
                log: Mutex::default(),
            }),
            keys,
            build,
            most_keys: (expected_keys as u64).max(1).saturating_mul(MOST_GROWTH),
            announce: Script::new(include_str!("announce.lua")),
            random,
            replica,
            has_joined: false,
            unpushed: Log::default(),
            past: Counts::default(),
        })
    }

    /// Takes the log: these inserts are in the newest filter.
    fn collect(&mut self) {
        let log = mem::take(&mut *self.state.lock());
        self.unpushed.append(log);
    }

    /// The newest generation on the server.
    fn root(&self, server: &mut dyn ConnectionLike) -> Result<Root, SharedError> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.key("meta"))
            .arg(&["newest", "keys", "lost", "before"]);
        let foreign = || self.keys.foreign("meta", "it names no generation of a set");
        let root: Vec<Option<Vec<u8>>> = get.query(server).map_err(SharedErrorKind::redis)?;
        let [Some(newest), Some(keys), lost, before] = &root[..] else {
            return Err(foreign());
        };
        let newest = Id::parse(newest).ok_or_else(foreign)?;
        let keys = std::str::from_utf8(keys).ok().and_then(|keys| keys.parse().ok());
        let mut get = redis::cmd("HEXISTS");
        get.arg(self.keys.of_generation(newest).key("meta")).arg("filled");
        Ok(Root {
            newest,
            keys: keys.ok_or_else(foreign)?,
            has_lost: lost.is_some(),
            before: before
                .as_deref()
                .and_then(|all| Id::parse(all.rsplit(|byte| *byte == b' ').next()?)),
            is_filled: get.query(server).map_err(SharedErrorKind::redis)?,
        })
    }

    /// Announces the generation `number`, after `newest`. Returns false if another one is newer.
    fn announce(
        &self,
        server: &mut dyn ConnectionLike,
        newest: Id,
        number: u64,
        keys: u64,
        lost: bool,
    ) -> Result<bool, SharedError> {
        self.check(keys)?;
        let token = self.random.hash_one((number, newest.token));
        let next = Id { number, token }.to_string();
        let mut call = self.announce.prepare_invoke();
        call.key(self.keys.key("meta")).arg(newest.to_string()).arg(next);
        call.arg(keys).arg(u8::from(lost));
        Ok(answer(call.invoke(server), "announce.lua")?.is_empty())
    }

    fn check(&self, keys: u64) -> Result<(), SharedError> {
        let limit = self.most_keys;
        if keys > limit {
            return Err(SharedErrorKind::Keys { keys, limit }.into());
        }
        Ok(())
    }

    /// Goes to the newest generation: see "The switch". `is_gone` says that the server does not
    /// have the present one.
    fn follow(&mut self, server: &mut dyn ConnectionLike, is_gone: bool) -> Result<(), SharedError> {
        let present = self.state.newest();
        let is_lost = self.has_joined && (is_gone || self.replica.has_lost);
        let mut root = self.root(server)?;
        let is_wrong =
            |root: &Root| root.newest.number < present.id.number || is_lost && !root.is_filled && !root.has_lost;
        for _ in 0..MOST_GENERATIONS {
            if !is_wrong(&root) {
                break;
            }
            let own_keys = self
                .replica
                .generation
                .as_ref()
                .map_or(root.keys, |generation| generation.2);
            let number = root.newest.number.max(present.id.number) + 1;
            self.announce(server, root.newest, number, own_keys, true)?;
            root = self.root(server)?;
        }
        if is_wrong(&root) {
            return Err(SharedErrorKind::Behind.into());
        }
        let Root { newest, keys, .. } = root;
        if newest == present.id {
            // The server has lost the later one in between.
            return Ok(());
        }
        self.check(keys)?;
        // A generation in between may have keys that this node has not pulled.
        let is_next = root.before == Some(present.id);
        let is_covered = self.replica.filling.is_complete() && is_next && !is_gone && !root.has_lost;
        let filter = (self.build)(usize::try_from(keys).unwrap_or(usize::MAX)).map_err(SharedErrorKind::Build)?;
        let filter = Arc::new(filter);
        let mut replica = replica_of(&self.keys, newest, keys, &filter)?;
        replica.filling = self.replica.filling.next(is_covered);
        let next = Generation {
            place: replica.filling.generation,
            id: newest,
            filter,
        };
        let mut generations = self.state.generations.load().to_vec();
        generations.push(next);
        self.state.generations.replace(generations);
        self.past.add(mem::replace(&mut self.replica, replica).counts);
        self.collect();
        self.replica.filter().insert_hashes(&self.unpushed.hashes);
        if self.unpushed.is_cut {
            self.replica.filling.rebuild = Some(keys);
        }
        tracing::info!(generation = newest.number, keys, "a shared set has a new generation");
        Ok(())
    }
}

/// What the root key says.
struct Root {
    newest: Id,
    keys: u64,
    /// The one before it, if the newest one is not filled.
    before: Option<Id>,
    /// Whether keys were lost since the last generation that was filled.
    has_lost: bool,
    /// Whether the newest one is filled.
    is_filled: bool,
}

fn replica_of<S: KeyHasher>(
    keys: &RedisKeys,
    id: Id,
    expected_keys: u64,
    filter: &Arc<ConcurrentBloom<S>>,
) -> Result<Replica<S>, SharedError> {
    let description = Description::of(filter, filter.hasher(), Lifetime::Forever);
    let mut replica = Replica::new(keys.of_generation(id), description, Arc::clone(filter))?;
    replica.generation = Some((keys.key("meta"), id, expected_keys));
    Ok(replica)
}

impl<S, B> Side for SetSide<S, B>
where
    S: KeyHasher + Send + Sync,
    B: Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send,
{
    fn prepare(&mut self) -> Result<(), SharedError> {
        Ok(())
    }

    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        // Before the comparison: it covers these inserts.
        self.collect();
        for _ in 0..MOST_GENERATIONS {
            let result = self.replica.catch_up(server, ended, None);
            if let Err(error) = &result
                && let Some(gone) = error.superseded()
            {
                self.follow(server, gone)?;
                continue;
            }
            result?;
            self.has_joined = true;
            self.replica.has_lost = false;
            if let Some(keys) = self.replica.filling.rebuild {
                let newest = self.state.newest().id;
                let has_lost = self.unpushed.is_cut;
                if self.announce(server, newest, newest.number + 1, keys, has_lost)? {
                    // Its source reads the rows of these inserts.
                    self.unpushed = Log::default();
                }
                if !self.unpushed.is_cut {
                    self.replica.filling.rebuild = None;
                }
                continue;
            }
            self.unpushed = Log::default();
            if self.replica.filling.is_filled && self.state.generations.load().len() > 1 {
                self.state.generations.replace(vec![self.state.newest()]);
            }
            return Ok(());
        }
        Err(SharedErrorKind::Behind.into())
    }

    fn forget(&mut self) {
        self.replica.forget();
    }

    fn most_bytes(&self) -> usize {
        self.replica.most_bytes()
    }

    fn counts(&self) -> Counts {
        let mut counts = self.past;
        counts.add(self.replica.counts);
        counts.comparing = self.replica.counts.comparing;
        counts
    }

    fn filling(&mut self) -> Option<&mut Filling> {
        Some(&mut self.replica.filling)
    }
}

/// For tests: a node of a set whose passes the caller makes, over any connection.
#[doc(hidden)]
pub struct SteppedSet<S> {
    state: Arc<State<S>>,
    side: Box<dyn Side>,
    is_complete: bool,
}

/// For tests: the callers' part of a [`SteppedSet`].
#[doc(hidden)]
pub struct SteppedHandle<S>(Arc<State<S>>);

impl<S: KeyHasher> SteppedHandle<S> {
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    pub fn insert(&self, key: u64) {
        self.0.insert(&[self.0.newest().filter.hash(&key)]);
    }

    /// The newest filter, for a source.
    #[must_use]
    pub fn newest(&self) -> (u64, Arc<ConcurrentBloom<S>>) {
        let newest = self.0.newest();
        (newest.place, newest.filter)
    }

    /// As after too many inserts.
    pub fn cut_log(&self) {
        *self.0.lock() = Log {
            hashes: Vec::new(),
            is_cut: true,
        };
    }
}

impl<S: KeyHasher + Send + Sync + 'static> SteppedSet<S> {
    pub fn new(
        name: &str,
        expected_keys: usize,
        build: impl Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send + 'static,
    ) -> Result<Self, SharedError> {
        let side = SetSide::new(RedisKeys::of(name)?, expected_keys, build)?;
        Ok(Self {
            state: Arc::clone(&side.state),
            side: Box::new(side),
            is_complete: false,
        })
    }

    #[must_use]
    pub fn handle(&self) -> SteppedHandle<S> {
        SteppedHandle(Arc::clone(&self.state))
    }

    #[must_use]
    pub fn may_lack_keys(&self) -> bool {
        !self.is_complete
    }

    /// A pass, as the thread makes it. `has_all` is the generation that a source has filled.
    /// Returns whether the node may run a source.
    pub fn pass(
        &mut self,
        server: &mut dyn ConnectionLike,
        wants: bool,
        has_all: Option<u64>,
        rebuild: Option<u64>,
    ) -> Result<bool, SharedError> {
        let mut fill = Fill {
            calls: usize::from(wants),
            has_all,
            ..Fill::default()
        };
        if let Some(filling) = self.side.filling() {
            fill.rebuild = rebuild.map(|keys| (filling.generation, keys));
            fill.tell(filling);
        }
        self.side.pass(server, &|| false)?;
        if let Some(filling) = self.side.filling() {
            fill.hears(filling);
            self.is_complete = filling.is_complete();
        }
        Ok(fill.has_turn())
    }
}
