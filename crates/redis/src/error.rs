//! The errors between this process and a server. The commands and threads of this crate make them,
//! and callers read them.

use crate::reply::brief;
use lanebloom::BuildError;
use redis::{ErrorKind, RedisError};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The kinds of errors that callers, or this crate, tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unreachable,
    ReadOnly,
    WrongType,
    /// `MOVED` or `ASK`.
    Elsewhere,
    CrossSlot,
    /// A reply that is not one of the protocol.
    Malformed,
    /// A configuration of Redisson's with other numbers.
    Configuration,
    /// A bitmap in a layout of Redisson's that has no configuration.
    Unconfigured,
    OverLimit,
    Missing,
    Taken,
    Empty,
    /// Another filter's set.
    Incompatible,
    Expired,
    /// A set has a newer generation, and its node goes there.
    Superseded {
        /// Whether the server has lost the older one.
        is_gone: bool,
    },
    /// No memory for a generation.
    Unbuilt,
    /// The source of `fill_once` failed.
    Source,
    Ended,
    Other,
}

impl Kind {
    /// The kind of an error of the `redis` crate.
    pub(crate) fn of(error: &RedisError) -> Self {
        // Before Redis 7 an error in a script is an ERR that quotes the command's.
        let is = |code: &str| error.code() == Some(code) || error.detail().is_some_and(|detail| detail.contains(code));
        if is("WRONGTYPE") {
            Self::WrongType
        } else if is("READONLY") {
            Self::ReadOnly
        } else if error.redirect_node().is_some() {
            Self::Elsewhere
        } else if is("CROSSSLOT") || is("non local key") || is("do not hash to the same slot") {
            Self::CrossSlot
        } else if error.is_io_error() || error.is_connection_dropped() || error.is_timeout() {
            Self::Unreachable
        } else if matches!(error.kind(), ErrorKind::UnexpectedReturnType | ErrorKind::Parse) {
            Self::Malformed
        } else {
            Self::Other
        }
    }
}

/// The contents of an error.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    text: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Report {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            kind,
            text,
            source: None,
        }
    }

    /// An error that nobody tells from others.
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Kind::Other, text)
    }

    pub(crate) fn because(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            source: Some(source.into().into()),
            ..self
        }
    }

    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }

    pub(crate) fn redis_error(&self) -> Option<&RedisError> {
        self.source()?.downcast_ref()
    }
}

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
/// assert!(error.to_string().starts_with("the server was not reached: "));
/// # Ok::<(), redis::RedisError>(())
/// ```
///
/// With a server:
///
/// ```no_run
/// use lanebloom_formats::RedisCuckoo;
/// use lanebloom_redis::Transfer;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// redis::cmd("CF.RESERVE").arg("seen").arg(1000).exec(&mut connection)?;
/// let mut error =
///     |key| RedisCuckoo::fetch(&mut connection, key, 1 << 30).unwrap_err();
/// assert!(error("seen").is_empty() && !error("seen").is_missing());
/// assert!(error("nothing").is_missing());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With one of three masters of a cluster:
///
/// ```no_run
/// use lanebloom_formats::RedisBloom;
/// use lanebloom_redis::Transfer;
///
/// // It lacks one of the slots 15495 and 3300.
/// let mut node = redis::Client::open("redis://127.0.0.1:7000/")?;
/// let mut error =
///     |key| RedisBloom::fetch(&mut node, key, 1 << 30).unwrap_err();
/// assert!(error("a").is_elsewhere() || error("b").is_elsewhere());
/// # Ok::<(), redis::RedisError>(())
/// ```
#[derive(Debug)]
pub struct TransferError(Report);

impl From<Report> for TransferError {
    fn from(report: Report) -> Self {
        Self(report)
    }
}

/// The [examples above](Self#examples) ask these questions.
impl TransferError {
    /// Whether the server was not reached, or the connection to it broke: another connection may
    /// succeed.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.0.kind == Kind::Unreachable
    }

    /// Whether there is nothing at the key.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0.kind == Kind::Missing
    }

    /// Whether there is a cuckoo filter at the key, but without keys: Redis does not dump it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.kind == Kind::Empty
    }

    /// Whether the server is a node of Redis Cluster, and named another node for the key. The error
    /// says which. A connection [to the cluster](crate#redis-cluster) finds the node.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.0.kind == Kind::Elsewhere
    }

    /// Whether [`store`](crate::Transfer::store) found something at the key. The example of `store`
    /// shows it.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.kind == Kind::Taken
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Error for TransferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
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
/// let mut connection = redis::Client::open("redis://127.0.0.1:1/")?;
/// let seen = RedisBitmap::go_zero("seen", 20_000)?;
/// let error = seen.contains(&mut connection, "ann").unwrap_err();
/// assert!(error.is_unreachable() && !error.is_over_limit());
/// assert!(error.to_string().starts_with("the server was not reached: "));
/// // A copy takes 2500 bytes.
/// let error = seen.fetch_local(&mut connection, 1000).unwrap_err();
/// assert!(error.is_over_limit() && !error.is_unreachable());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With a server:
///
/// ```no_run
/// use lanebloom_redis::RedisBitmap;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// redis::cmd("LPUSH").arg("list").arg("x").exec(&mut connection)?;
/// let list = RedisBitmap::go_zero("list", 20_000)?;
/// assert!(list.contains(&mut connection, "ann").unwrap_err().is_wrong_type());
///
/// let users = RedisBitmap::redisson("users", 500, 0.01)?;
/// users.insert(&mut connection, "ann")?;
/// let other = RedisBitmap::redisson("users", 700, 0.01)?;
/// let error = other.contains(&mut connection, "ann").unwrap_err();
/// assert!(error.is_other_configuration() && !error.is_unconfigured());
/// redis::cmd("DEL").arg("{users}:config").exec(&mut connection)?;
/// let error = users.contains(&mut connection, "ann").unwrap_err();
/// assert!(error.is_unconfigured() && !error.is_other_configuration());
///
/// let mut replica = redis::Client::open("redis://127.0.0.1:6380/")?;
/// assert!(users.clear(&mut replica).unwrap_err().is_read_only());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With one of three masters of a cluster:
///
/// ```no_run
/// use lanebloom_redis::RedisBitmap;
///
/// let mut node = redis::Client::open("redis://127.0.0.1:7000/")?;
/// // It does not have both keys, of the slots 15495 and 3300.
/// let mut is_elsewhere = false;
/// for key in ["a", "b"] {
///     let filter = RedisBitmap::go_zero(key, 20_000)?;
///     let found = filter.contains(&mut node, "ann");
///     is_elsewhere |= found.is_err_and(|error| error.is_elsewhere());
/// }
/// assert!(is_elsewhere);
/// let both = RedisBitmap::guava("a", "b", 100, 0.01)?;
/// let error = both.contains(&mut node, "ann").unwrap_err();
/// assert!(error.is_cross_slot() && !error.is_elsewhere());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BitmapError(Report);

impl From<Report> for BitmapError {
    fn from(report: Report) -> Self {
        Self(report)
    }
}

/// The [examples above](Self#examples) ask all of these questions.
impl BitmapError {
    /// Whether the server was not reached, did not answer in time, or the connection to it broke.
    /// Another connection may succeed. After an insert the caller does not know whether the server
    /// did it. Repeating the insert does no harm.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.0.kind == Kind::Unreachable
    }

    /// Whether the server is a replica that takes no writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.kind == Kind::ReadOnly
    }

    /// Whether a key of the filter holds something else: a list, say.
    #[must_use]
    pub fn is_wrong_type(&self) -> bool {
        self.0.kind == Kind::WrongType
    }

    /// Whether the server is a node of Redis Cluster, and named another node for the key. The error
    /// says which. A connection [to the cluster](crate#redis-cluster) finds the node.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.0.kind == Kind::Elsewhere
    }

    /// Whether the filter's keys are in several slots of Redis Cluster. They need [one hash
    /// tag](crate#redis-cluster).
    #[must_use]
    pub fn is_cross_slot(&self) -> bool {
        self.0.kind == Kind::CrossSlot
    }

    /// Whether the filter's configuration (`redisson`) has another size, or another number of hash
    /// functions, than the caller: the filter was made for other expected keys, or another rate.
    #[must_use]
    pub fn is_other_configuration(&self) -> bool {
        self.0.kind == Kind::Configuration
    }

    /// Whether there is a bitmap but not its configuration (`redisson`): the configuration was
    /// deleted or evicted, or it expired alone. [`clear`](crate::RedisBitmap::clear) removes the
    /// bitmap, and the filter begins anew.
    #[must_use]
    pub fn is_unconfigured(&self) -> bool {
        self.0.kind == Kind::Unconfigured
    }

    /// Whether a copy would take more memory than the caller's limit.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.0.kind == Kind::OverLimit
    }

    /// An error that nobody tells from others.
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self(Report::other(text))
    }
}

impl fmt::Display for BitmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Error for BitmapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
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
pub struct SharedError(Report);

impl From<Report> for SharedError {
    fn from(report: Report) -> Self {
        Self(report)
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
    /// let connect = |keys| {
    ///     let filter = ConcurrentBloom::builder().expected_keys(keys);
    ///     let filter = filter.build().unwrap();
    ///     SharedBloom::builder("ids").connect(server.clone(), filter)
    /// };
    /// let ids = connect(1000)?;
    /// assert!(connect(2000).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        self.0.kind == Kind::Incompatible
    }

    /// Whether the set has expired. The example of
    /// [`expires_at`](crate::shared::SharedBuilder::expires_at) shows it.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.0.kind == Kind::Expired
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
        self.0.kind == Kind::Source
    }

    /// An error that nobody tells from others.
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self(Report::other(text))
    }

    /// For `lanebloom-guard`: a task gets no thread for blocking work any more.
    #[doc(hidden)]
    pub fn shut_down(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Report::other("the runtime is shut down").because(cause))
    }

    /// The error after `after`, in which the last attempt ended so.
    pub(crate) fn timeout(after: Duration, last: Option<Self>) -> Self {
        let Some(last) = last else {
            return Self::other(format!("not done within {after:?}"));
        };
        let kind = if last.is_final() { last.0.kind } else { Kind::Other };
        let text = format!("not done within {after:?}; the last attempt: {last}");
        Report::new(kind, text).because(last).into()
    }

    /// The `redis` crate's error, cut to the length of a message.
    pub(crate) fn redis(error: RedisError) -> Self {
        let error = brief(error);
        let text = match error.redirect_node() {
            Some((node, slot)) => format!(
                "the set is in slot {slot} of Redis Cluster, which is moving, or has moved to the node {node:?}: {error}"
            ),
            None => format!("Redis: {error}"),
        };
        Report::other(text).because(error).into()
    }

    /// No generation can be built.
    pub(crate) fn build(error: BuildError) -> Self {
        let text = format!("a generation cannot be built: {error}");
        Report::new(Kind::Unbuilt, text).because(error).into()
    }

    pub(crate) fn ended() -> Self {
        Report::new(Kind::Ended, "the shared filter was closed or dropped meanwhile").into()
    }

    pub(crate) fn behind() -> Self {
        Self::other("the server trimmed its log faster than this node could read it")
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether no later attempt will succeed.
    pub(crate) fn is_final(&self) -> bool {
        self.is_incompatible() || self.is_expired()
    }

    /// The address of the node of Redis Cluster that has the set, if another node was asked.
    pub(crate) fn moved_to(&self) -> Option<&str> {
        let error = self.0.redis_error().filter(|error| error.code() == Some("MOVED"))?;
        Some(error.redirect_node()?.0)
    }

    /// Whether the server refused, over a connection that still works.
    pub(crate) fn is_refusal(&self) -> bool {
        let is_refusal = |error: &RedisError| matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
        self.0.redis_error().is_some_and(is_refusal)
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
