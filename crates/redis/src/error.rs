//! The errors between this process and a server. The commands and threads of this crate make them,
//! and callers read them.

use crate::shared::lifetime::Lifetime;
use lanebloom::BuildError;
use lanebloom_formats::RedisBloomLoadError;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a filter could not be fetched from Redis or stored there, by [`Transfer`](crate::Transfer).
///
/// [`source`](Error::source) is the `redis` crate's error, or the error of the dump.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::RedisBloom;
/// use lanebloom_redis::Transfer;
///
/// // There is no server at port 1.
/// let mut client = redis::Client::open("redis://127.0.0.1:1/")?;
/// let error = RedisBloom::fetch(&mut client, "seen", 1 << 30).unwrap_err();
/// assert!(error.is_unreachable() && !error.is_missing());
/// assert!(
///     error.to_string().starts_with("\"seen\": the server was not reached: ")
/// );
/// # Ok::<(), redis::RedisError>(())
/// ```
#[derive(Debug)]
pub struct TransferError {
    pub(crate) kind: TransferErrorKind,
    pub(crate) key: String,
}

#[derive(Debug)]
pub(crate) enum TransferErrorKind {
    Unreachable(redis::RedisError),
    NoModule(redis::RedisError),
    Missing,
    WrongType(redis::RedisError),
    ReadOnly(redis::RedisError),
    /// `MOVED` or `ASK`.
    Elsewhere(redis::RedisError),
    Refused(redis::RedisError),
    /// The beginning of a reply that does not fit the command.
    Reply {
        command: &'static str,
        reply: String,
    },
    Taken,
    Empty,
    Changed,
    Load(RedisBloomLoadError),
}

impl TransferError {
    /// Whether the server was not reached, or the connection to it broke: another connection may
    /// succeed.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    /// use lanebloom_redis::Transfer;
    ///
    /// // Nobody is there.
    /// let mut client = redis::Client::open("redis://127.0.0.1:1/")?;
    /// let error = RedisBloom::fetch(&mut client, "seen", 1 << 30).unwrap_err();
    /// assert!(error.is_unreachable());
    /// # Ok::<(), redis::RedisError>(())
    /// ```
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind, TransferErrorKind::Unreachable(_))
    }

    /// Whether there is nothing at the key.
    ///
    /// ```no_run
    /// use lanebloom_formats::RedisBloom;
    /// use lanebloom_redis::Transfer;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let error = RedisBloom::fetch(&mut connection, "nothing", 1 << 30).unwrap_err();
    /// assert!(error.is_missing());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.kind, TransferErrorKind::Missing)
    }

    /// Whether there is a cuckoo filter at the key, but without keys: Redis does not dump it.
    ///
    /// ```no_run
    /// use lanebloom_formats::RedisCuckoo;
    /// use lanebloom_redis::Transfer;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// redis::cmd("CF.RESERVE").arg("seen").arg(1000).exec(&mut connection)?;
    /// let error = RedisCuckoo::fetch(&mut connection, "seen", 1 << 30).unwrap_err();
    /// assert!(error.is_empty() && !error.is_missing());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.kind, TransferErrorKind::Empty)
    }

    /// Whether the server is a node of Redis Cluster, and named another node for the key. The error
    /// says which. A connection [to the cluster](crate#redis-cluster) finds the node.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.kind, TransferErrorKind::Elsewhere(_))
    }

    /// Whether [`store`](crate::Transfer::store) found something at the key.
    ///
    /// ```no_run
    /// use lanebloom_formats::RedisBloom;
    /// use lanebloom_redis::Transfer;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBloom::with_capacity(1000, 0.01)?;
    /// filter.store(&mut connection, "seen")?;
    /// assert!(filter.store(&mut connection, "seen").unwrap_err().is_taken());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self.kind, TransferErrorKind::Taken)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TransferErrorKind as Kind;
        if let Kind::Elsewhere(error) = &self.kind {
            return write_elsewhere(f, &self.key, error);
        }
        write!(f, "{:?}: ", self.key)?;
        match &self.kind {
            Kind::Unreachable(error) => write!(f, "the server was not reached: {error}"),
            Kind::NoModule(error) => write!(f, "the server has not loaded RedisBloom: {error}"),
            Kind::Missing => f.write_str("there is nothing at this key"),
            Kind::WrongType(error) => write!(f, "the key holds no RedisBloom filter: {error}"),
            Kind::ReadOnly(error) => write!(f, "the server is a replica that takes no writes: {error}"),
            Kind::Elsewhere(error) | Kind::Refused(error) => write!(f, "the server refused: {error}"),
            Kind::Reply { command, reply } => {
                write!(f, "unexpected reply to {command}: {reply}")
            }
            Kind::Taken => f.write_str("there is something at this key already"),
            Kind::Empty => f.write_str("the cuckoo filter has no keys, and Redis does not dump an empty one"),
            Kind::Changed => f.write_str("the filter was replaced or changed while it was read: fetch it again"),
            Kind::Load(error) => write!(f, "the server's dump cannot be loaded: {error}"),
        }
    }
}

impl Error for TransferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        use TransferErrorKind as Kind;
        match &self.kind {
            Kind::Unreachable(error)
            | Kind::NoModule(error)
            | Kind::WrongType(error)
            | Kind::ReadOnly(error)
            | Kind::Elsewhere(error)
            | Kind::Refused(error) => Some(error),
            Kind::Load(error) => Some(error),
            Kind::Missing | Kind::Reply { .. } | Kind::Taken | Kind::Empty | Kind::Changed => None,
        }
    }
}

/// The text of `MOVED` and `ASK`: the node that was asked names the slot and another node.
fn write_elsewhere(f: &mut fmt::Formatter<'_>, key: &str, error: &redis::RedisError) -> fmt::Result {
    let (node, slot) = error.redirect_node().unwrap_or_default();
    write!(
        f,
        "{key:?} is in slot {slot} of Redis Cluster, at the node {node:?}, and the connection reaches only another node: {error}"
    )
}

/// Why a bitmap in Redis could not be read or written.
///
/// [`source`](Error::source) is the `redis` crate's error, if there is one.
///
/// # Examples
///
/// ```
/// use lanebloom_redis::RedisBitmap;
///
/// // There is no server at port 1.
/// let client = redis::Client::open("redis://127.0.0.1:1/")?;
/// let mut connection = client;
/// let error = RedisBitmap::go_zero("seen", 20_000)?
///     .contains(&mut connection, "ann")
///     .unwrap_err();
/// assert!(error.is_unreachable() && !error.is_wrong_type());
/// assert!(error.to_string().starts_with("the server was not reached: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BitmapError(pub(crate) BitmapErrorKind);

/// The strings are keys of Redis, unless they have a name.
#[derive(Debug)]
pub(crate) enum BitmapErrorKind {
    Unreachable(redis::RedisError),
    ReadOnly(String, redis::RedisError),
    WrongType(String, redis::RedisError),
    /// `MOVED` or `ASK`.
    Elsewhere(String, redis::RedisError),
    CrossSlot(String, redis::RedisError),
    Server(String, redis::RedisError),
    Reply {
        command: &'static str,
        key: String,
        reply: String,
    },
    Cursor {
        key: String,
        cursor: String,
        greatest: u64,
    },
    /// The filter has grown, to this bitmap at least.
    NoCursor {
        key: String,
        bitmap: String,
    },
    /// A configuration of Redisson's with other numbers.
    Configuration {
        key: String,
        found: String,
        wanted: String,
    },
    /// A bitmap in a layout of Redisson's that has none.
    Unconfigured {
        key: String,
        config: String,
    },
    Layouts(String),
    Longer {
        key: String,
        bytes: u64,
        layout: u64,
    },
    OverLimit {
        key: String,
        needed: u64,
        limit: usize,
    },
    NoText(String),
    OutOfMemory(BuildError),
}

impl BitmapError {
    /// Whether the server was not reached, did not answer in time, or the connection to it broke.
    /// Another connection may succeed. After an insert the caller does not know whether the server
    /// did it. Repeating the insert does no harm.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.0, BitmapErrorKind::Unreachable(..))
    }

    /// Whether the server is a replica that takes no writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self.0, BitmapErrorKind::ReadOnly(..))
    }

    /// Whether a key of the filter holds something else: a list, say.
    #[must_use]
    pub fn is_wrong_type(&self) -> bool {
        matches!(self.0, BitmapErrorKind::WrongType(..))
    }

    /// Whether the server is a node of Redis Cluster, and named another node for the key. The error
    /// says which. A connection [to the cluster](crate#redis-cluster) finds the node.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.0, BitmapErrorKind::Elsewhere(..))
    }

    /// Whether the filter's keys are in several slots of Redis Cluster. They need [one hash
    /// tag](crate#redis-cluster).
    #[must_use]
    pub fn is_cross_slot(&self) -> bool {
        matches!(self.0, BitmapErrorKind::CrossSlot(..))
    }

    /// Whether the filter's configuration (`redisson`) has another size, or another number of hash
    /// functions, than the caller: the filter was made for other expected keys, or another rate.
    #[must_use]
    pub fn is_other_configuration(&self) -> bool {
        matches!(self.0, BitmapErrorKind::Configuration { .. })
    }

    /// Whether there is a bitmap but not its configuration (`redisson`): the configuration was
    /// deleted or evicted, or it expired alone. [`clear`](crate::RedisBitmap::clear) removes the
    /// bitmap, and the filter begins anew.
    #[must_use]
    pub fn is_unconfigured(&self) -> bool {
        matches!(self.0, BitmapErrorKind::Unconfigured { .. })
    }

    /// Whether a copy would take more memory than the caller's limit.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        matches!(self.0, BitmapErrorKind::OverLimit { .. })
    }
}

impl fmt::Display for BitmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BitmapErrorKind as Kind;
        match &self.0 {
            Kind::Unreachable(error) => write!(f, "the server was not reached: {error}"),
            Kind::ReadOnly(key, error) => {
                write!(f, "{key:?} was not written, the server is a read-only replica: {error}")
            }
            Kind::WrongType(key, error) => write!(f, "{key:?} is not a bitmap: {error}"),
            Kind::Elsewhere(key, error) => write_elsewhere(f, key, error),
            Kind::CrossSlot(key, error) => write!(
                f,
                "{key:?} and the keys with it are in several slots of Redis Cluster; give them one hash tag, as {{tag}}: {error}"
            ),
            Kind::Server(key, error) => write!(f, "the server refused an operation on {key:?}: {error}"),
            Kind::Reply { command, key, reply } => write!(f, "unexpected reply to {command} on {key:?}: {reply}"),
            Kind::NoCursor { key, bitmap } => write!(
                f,
                "the cursor {key:?} is missing, and there is a bitmap {bitmap:?}: set the cursor to the number of the last bitmap, or delete the bitmaps"
            ),
            Kind::Cursor { key, cursor, greatest } => {
                write!(
                    f,
                    "the cursor {key:?} is {cursor:?}, which is not a number in 0 to {greatest}"
                )
            }
            Kind::Configuration { key, found, wanted } => {
                write!(f, "the configuration {key:?} says {found}, and the caller {wanted}")
            }
            Kind::Unconfigured { key, config } => write!(
                f,
                "the bitmap {key:?} has no configuration {config:?}, so it is a part of a filter that is gone: `clear` removes it"
            ),
            Kind::Layouts(key) => write!(f, "{key:?} has a layout that differs from that of the new filter"),
            Kind::Longer { key, bytes, layout } => write!(
                f,
                "the bitmap {key:?} has {bytes} bytes, more than the {layout} bytes of its layout: another layout wrote it"
            ),
            Kind::OverLimit { key, needed, limit } => {
                write!(
                    f,
                    "a copy of {key:?} takes {needed} bytes, more than the limit of {limit} bytes"
                )
            }
            Kind::NoText(key) => write!(f, "a key for {key:?} is not UTF-8, but its layout hashes characters"),
            Kind::OutOfMemory(error) => write!(f, "the bitmap was not copied: {error}"),
        }
    }
}

impl Error for BitmapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        use BitmapErrorKind as Kind;
        match &self.0 {
            Kind::Unreachable(error)
            | Kind::ReadOnly(_, error)
            | Kind::WrongType(_, error)
            | Kind::Elsewhere(_, error)
            | Kind::CrossSlot(_, error)
            | Kind::Server(_, error) => Some(error),
            Kind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a [`SharedBloom`](crate::SharedBloom) and the set on the server could not be merged.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom_redis::SharedBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
/// let error = SharedBloom::builder("{ids}").connect(server, filter).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the name \"{ids}\" is empty or has a brace, which marks a hash tag \
///      in Redis Cluster"
/// );
/// assert!(!error.is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedError(Box<SharedErrorKind>);

#[derive(Clone, Debug)]
pub(crate) enum SharedErrorKind {
    Name(String),
    TooLarge {
        needed: usize,
        limit: u64,
    },
    /// Of this many bytes.
    OutOfMemory(usize),
    /// A generation of a window cannot be built.
    Build(BuildError),
    Thread(Arc<std::io::Error>),
    Redis(redis::RedisError),
    Incompatible {
        name: String,
        differs: String,
    },
    Lifetime {
        name: String,
        ours: Lifetime,
        theirs: Lifetime,
    },
    Expired,
    SetExpires(u64),
    WindowExpires(u64),
    WindowAgeless,
    WindowClock,
    WindowPeriod {
        period: Duration,
        least: Duration,
    },
    WindowAstray,
    Foreign {
        key: String,
        what: &'static str,
    },
    /// The beginning of a reply that does not fit `to`.
    Reply {
        to: &'static str,
        reply: String,
    },
    Behind,
    /// A set has a newer generation, and its node goes there. True if the older one is gone.
    Superseded(bool),
    /// A generation's expected keys.
    Keys {
        keys: u64,
        limit: u64,
    },
    /// The source of `fill_once` failed.
    Source(Arc<dyn Error + Send + Sync>),
    Timeout {
        after: Duration,
        last: Option<SharedError>,
    },
    Panicked(String),
    Ended,
}

impl SharedErrorKind {
    /// The `redis` crate's error, cut to the length of a message.
    pub(crate) fn redis(error: redis::RedisError) -> Self {
        Self::Redis(super::reply::brief(error))
    }
}

impl From<SharedErrorKind> for SharedError {
    fn from(kind: SharedErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

impl SharedError {
    /// Whether the set on the server has another layout, hasher, seed or time of expiry. Then no
    /// later attempt will succeed either.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let one = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let other = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
    /// let _one = SharedBloom::builder("ids").connect(server.clone(), one)?;
    /// assert!(
    ///     SharedBloom::builder("ids")
    ///         .connect(server, other)
    ///         .unwrap_err()
    ///         .is_incompatible()
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        match &*self.0 {
            SharedErrorKind::Incompatible { .. } | SharedErrorKind::Lifetime { .. } => true,
            SharedErrorKind::Timeout { last: Some(last), .. } => last.is_incompatible(),
            _ => false,
        }
    }

    /// Whether the set has expired.
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let end = SystemTime::now() + Duration::from_secs(4);
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let shared =
    ///     SharedBloom::builder("ids").expires_at(end).connect(server, filter)?;
    /// std::thread::sleep(Duration::from_millis(4001));
    /// assert!(shared.sync(Duration::from_secs(30)).unwrap_err().is_expired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_expired(&self) -> bool {
        match &*self.0 {
            SharedErrorKind::Expired => true,
            SharedErrorKind::Timeout { last: Some(last), .. } => last.is_expired(),
            _ => false,
        }
    }

    /// Whether the source of [`fill_once`](crate::SharedBloom::fill_once) failed. Its error is the
    /// [`source`](Error::source).
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let ids = SharedBloom::builder("ids").connect(server, filter)?;
    /// let fails = |_: &ConcurrentBloom| Err("the store is down");
    /// let error = ids.fill_once(Duration::from_secs(30), fails).unwrap_err();
    /// assert!(error.is_source());
    /// assert_eq!(error.to_string(), "the source of the keys failed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_source(&self) -> bool {
        matches!(*self.0, SharedErrorKind::Source(_))
    }

    /// Whether no later attempt will succeed.
    pub(crate) fn is_final(&self) -> bool {
        self.is_incompatible() || self.is_expired()
    }

    /// The address of the node of Redis Cluster that has the set, if another node was asked.
    pub(crate) fn moved_to(&self) -> Option<&str> {
        match &*self.0 {
            SharedErrorKind::Redis(error) if error.code() == Some("MOVED") => Some(error.redirect_node()?.0),
            _ => None,
        }
    }

    /// If the set has a newer generation: whether the server has lost the older one.
    pub(crate) fn superseded(&self) -> Option<bool> {
        match *self.0 {
            SharedErrorKind::Superseded(is_gone) => Some(is_gone),
            _ => None,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(*self.0, SharedErrorKind::Ended)
    }

    /// Whether the server refused, over a connection that still works.
    pub(crate) fn is_refusal(&self) -> bool {
        use redis::ErrorKind;
        let SharedErrorKind::Redis(error) = &*self.0 else {
            return false;
        };
        matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SharedErrorKind as Kind;
        match &*self.0 {
            Kind::Name(name) => write!(f, "the name {name:?} is empty or has a brace, which marks a hash tag in Redis Cluster"),
            Kind::TooLarge { needed, limit } => write!(f, "a filter of {needed} bytes exceeds the limit of {limit} bytes"),
            Kind::OutOfMemory(bytes) => write!(
                f,
                "not enough memory for the record of pushed bits: the allocation of {bytes} bytes failed"
            ),
            Kind::Build(error) => write!(f, "not enough memory for a generation: {error}"),
            Kind::Thread(error) => write!(f, "no thread could be started: {error}"),
            Kind::Redis(error) => match error.redirect_node() {
                Some((node, slot)) => write!(
                    f,
                    "the set is in slot {slot} of Redis Cluster, which is moving, or has moved to the node {node:?}: {error}"
                ),
                None => write!(f, "Redis: {error}"),
            },
            Kind::Incompatible { name, differs } => write!(f, "the set {name:?} on the server is another filter's: {differs}"),
            Kind::Lifetime { name, ours, theirs } => {
                write!(f, "the set {name:?} on the server {theirs}, here it {ours}")?;
                if [ours, theirs].iter().any(|lifetime| matches!(lifetime, Lifetime::Until(_))) {
                    f.write_str(" (since 1970)")?;
                }
                Ok(())
            }
            Kind::Expired => f.write_str("the set has expired"),
            Kind::SetExpires(time) => write!(f, "a set that can be rebuilt takes no expiry time, here {time} ms since 1970"),
            Kind::WindowExpires(time) => write!(f, "a window expires by its generations: it takes no expiry time, here {time} ms since 1970"),
            Kind::WindowAgeless => f.write_str(
                "the window rotates on a call or when it is full, which other nodes do not notice: build it with `window`",
            ),
            Kind::WindowClock => f.write_str(
                "the window ages by this machine's monotonic clock, which other nodes cannot read: build it with `time_of_day`",
            ),
            Kind::WindowPeriod { period, least } => write!(f, "generations of {period:?} are shorter than {least:?}, the shortest that the server supports"),
            Kind::WindowAstray => f.write_str(
                "the window's generations differ from those of other nodes until they expire: its clock was set back, or `rotate` was called",
            ),
            Kind::Foreign { key, what } => write!(f, "{key} was not written by a shared filter: {what}"),
            Kind::Reply { to, reply } => write!(f, "unexpected reply to {to}: {reply}"),
            Kind::Behind => f.write_str("the server trimmed its log faster than this node could read it"),
            Kind::Superseded(_) => f.write_str("the set is being rebuilt"),
            Kind::Keys { keys, limit } => write!(f, "a generation for {keys} keys exceeds this node's limit of {limit} keys"),
            Kind::Source(_) => f.write_str("the source of the keys failed"),
            Kind::Timeout { after, last: None } => write!(f, "not done within {after:?}"),
            Kind::Timeout {
                after,
                last: Some(last),
            } => write!(f, "not done within {after:?}; the last attempt: {last}"),
            Kind::Panicked(says) => write!(f, "the exchange panicked and started again: {says}"),
            Kind::Ended => f.write_str("the shared filter was dropped meanwhile"),
        }
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            SharedErrorKind::Build(error) => Some(error),
            SharedErrorKind::Thread(error) => Some(error),
            SharedErrorKind::Redis(error) => Some(error),
            SharedErrorKind::Source(error) => Some(&**error),
            SharedErrorKind::Timeout { last: Some(last), .. } => Some(last),
            _ => None,
        }
    }
}
