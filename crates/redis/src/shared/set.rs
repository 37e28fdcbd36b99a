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
//!    or is later than the newest one, or another one has its number, and the newest one is not
//!    filled) announces a further generation, with a mark by which all nodes open. If the newest
//!    generation is filled, its source has read these keys.
//!
//! # Memory ordering of an insert
//!
//! An insert writes the bits into the newest generation, then logs the hash, and then checks that
//! the list of generations is the one it used (`Swap::write_to_current`). A hash in the log has
//! its bits in the filter, so a pass that begins later compares them. The thread replaces the list,
//! and then reads the log: either it finds the hash there, or the insert finds the new list.

mod local_set;
mod set_replica;

pub use self::local_set::LocalSet;
pub(super) use self::local_set::Log;
pub(super) use self::set_replica::SetReplica;
use super::fill_once::{self, Filled};
use super::fill_state::Rebuild;
use super::node::Node;
#[cfg(feature = "tokio")]
use super::node::aside;
use super::redis_keys::RedisKeys;
use super::{Shared, SharedBuilder};
use crate::error::SharedError;
use lanebloom::{BuildError, ConcurrentBloom, KeyHasher, Murmur3};
use redis::Client;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// A set that many processes share through Redis, and that can be rebuilt while it serves. The
/// processes follow without a message to them, and none turns a valid key away meanwhile.
///
/// It is a [`SharedBloom`](super::SharedBloom) that is open until it is
/// [filled](Self::fill_once), with one more call: [`rebuild`](Self::rebuild) begins a new
/// generation. [The module](super#outgrowing) has the promises.
///
/// An insert takes a lock, and keeps the key's hash until it is pushed: 90 ns in place of 41 in a
/// `SharedBloom` (a million keys, Zen 4), 19 in place of 12 in batches. A single lookup takes 13 ns
/// in place of 6; in batches it takes as long. Lookups take twice as long during a rebuild.
///
/// It derefs to a [`LocalSet`], which has the lookups, inserts and statistics. Its
/// [`may_lack_keys`](Shared::may_lack_keys) is true until a generation here has all keys.
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
pub type SharedSet<S = Murmur3> = Shared<LocalSet<S>>;

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
    /// assert!(ids.contains("ann") && ids.generation() == 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_set<S: KeyHasher + Send + Sync + 'static>(
        mut self,
        server: Client,
        expected_keys: usize,
        build: impl Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send + 'static,
    ) -> Result<SharedSet<S>, SharedError> {
        let replica = self.set_replica(expected_keys, build)?;
        let filter = Arc::clone(&replica.local);
        let node = Node::start(server, replica, &self.node)?.into();
        Ok(Shared { filter, node })
    }

    pub(super) fn set_replica<S: KeyHasher + Send + Sync, B>(
        &mut self,
        expected_keys: usize,
        build: B,
    ) -> Result<SetReplica<S, B>, SharedError>
    where
        B: Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send,
    {
        self.check_no_expiry("a set that can be rebuilt")?;
        self.node.open_until_filled = true;
        SetReplica::new(RedisKeys::of(&self.name)?, expected_keys, build)
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
    pub fn fill_once<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        timeout: Duration,
        mut source: impl FnMut(&ConcurrentBloom<S>) -> Result<(), E>,
    ) -> Result<Filled, SharedError> {
        // Another node may have begun a generation since the last exchange.
        self.node.sync(timeout)?;
        let filter_of = |place| Some(self.filter.newest()).filter(|newest| newest.place == place);
        fill_once::fill_once(&self.node, timeout, filter_of, |newest| source(&newest.filter))
    }

    /// [`fill_once`](Self::fill_once) with an async source, as
    /// [`SharedBloom::fill_once_async`](super::SharedBloom::fill_once_async).
    ///
    /// # Panics
    ///
    /// Panics if the source does, or outside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails as `fill_once` does, or if the runtime is shut down.
    #[cfg(feature = "tokio")]
    pub async fn fill_once_async<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        timeout: Duration,
        mut source: impl AsyncFnMut(&ConcurrentBloom<S>) -> Result<(), E> + Send + 'static,
    ) -> Result<Filled, SharedError>
    where
        S: Send + Sync + 'static,
    {
        let (ids, runtime) = (self.clone(), tokio::runtime::Handle::current());
        aside(move || ids.fill_once(timeout, |filter| runtime.block_on(source(filter)))).await
    }

    /// Begins a new generation for `expected_keys`, and waits until this node has it. Then
    /// [`fill_once`](Self::fill_once) fills it, at this node or another. Lookups ask the present
    /// generation as well until then. If several callers or nodes want one at once, one generation
    /// begins, with the keys that one of them expects.
    ///
    /// # Errors
    ///
    /// Fails if `expected_keys` is more than 1024 times those of `connect_set`, if this node cannot
    /// build the filter, or if the server did not take it within `timeout`. In the last case the
    /// generation may begin later.
    pub fn rebuild(&self, expected_keys: usize, timeout: Duration) -> Result<(), SharedError> {
        self.rebuild_if_older(Duration::ZERO, expected_keys, timeout).map(drop)
    }

    /// [`rebuild`](Self::rebuild), unless the newest generation began less than `age` ago, by the
    /// server's clock. Returns whether another one began.
    ///
    /// So each process may call it on a schedule, to drop the keys of removed rows: one generation
    /// begins in each `age`, and one process reads the store.
    ///
    /// # Errors
    ///
    /// Fails as `rebuild` does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let ids = SharedBloom::builder("ids").connect_set(server, 1000, |keys| {
    ///     ConcurrentBloom::builder().expected_keys(keys).build()
    /// })?;
    /// let (second, timeout) = (Duration::from_secs(1), Duration::from_secs(30));
    /// std::thread::sleep(second);
    /// assert!(ids.rebuild_if_older(second, 2000, timeout)?);
    /// assert!(!ids.rebuild_if_older(3600 * second, 2000, timeout)?);
    /// assert_eq!(ids.generation(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild_if_older(
        &self,
        age: Duration,
        expected_keys: usize,
        timeout: Duration,
    ) -> Result<bool, SharedError> {
        let expected_keys = expected_keys as u64;
        // Here, since the thread would ask for it again in every pass.
        self.filter.check_keys(expected_keys)?;
        self.node.rebuild(Rebuild { expected_keys, age }, timeout)
    }
}
