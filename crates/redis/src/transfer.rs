//! [`Transfer`]: the commands for the dump of a [`RedisBloom`] or a [`RedisCuckoo`], over a blocking
//! connection of the `redis` crate. The filters know the chunks of their dumps.

use crate::connection::lossy;
use crate::error::{Kind, Report, TransferError, elsewhere};
use crate::reply::{self, brief, shortened};
use lanebloom_formats::redisbloom::{Dumped, LoadChunks, Loader};
use lanebloom_formats::{ReadError, RedisBloom, RedisCuckoo};
use redis::{Cmd, ConnectionLike, RedisError, Value, cmd};
use sealed::Commands;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};

/// Seconds from the last chunk after which Redis drops a filter that a client left half stored.
const ABANDONED: u32 = 600;

/// A filter of RedisBloom's commands that moves from and to Redis: a [`RedisBloom`] (`BF`) or a
/// [`RedisCuckoo`] (`CF`).
///
/// A transfer takes any blocking connection of the `redis` crate, or a pool's. An asynchronous
/// client fetches a filter with a [`Loader`], and stores the chunks of `to_loadchunks` by
/// `BF.LOADCHUNK`.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```no_run
/// use lanebloom_formats::RedisBloom;
/// use lanebloom_redis::Transfer;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// redis::cmd("BF.ADD").arg("seen").arg("ann").exec(&mut connection)?;
///
/// // of 1 GiB at most
/// let mut seen = RedisBloom::fetch(&mut connection, "seen", 1 << 30)?;
/// assert!(seen.contains("ann") && !seen.contains("eve"));
///
/// seen.insert("eve")?;
/// seen.replace(&mut connection, "seen")?;
/// let exists: bool =
///     redis::cmd("BF.EXISTS").arg("seen").arg("eve").query(&mut connection)?;
/// assert!(exists);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Transfer: Commands {
    /// Fetches a filter from Redis, by `BF.SCANDUMP` or `CF.SCANDUMP`. It takes at most `max_bytes`
    /// bytes of memory, here and when it grows.
    ///
    /// Other clients may use a [`RedisBloom`] meanwhile: the copy has at least every key that was
    /// inserted before. Its [count of keys](RedisBloom::info) is from the beginning of the
    /// transfer. The module's chunks have at most 16 MiB. If another server sends more, the `redis`
    /// crate [buffers](crate#what-the-client-buffers) all of it first.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, has not loaded RedisBloom, or holds no filter at
    /// `key`. Fails as [`Loader::load`] does if the reply is not a dump of a filter, or exceeds the
    /// limit. Fails if another filter took the place of this one meanwhile.
    ///
    /// A [`RedisCuckoo`] also fails if it has no keys: Redis does not dump it then. And it fails if
    /// another client changed the filter meanwhile: an insert moves fingerprints, perhaps into a
    /// chunk that was sent already. Then fetch it again.
    #[doc(alias("BF.SCANDUMP", "CF.SCANDUMP"))]
    fn fetch(
        connection: &mut dyn ConnectionLike,
        key: impl AsRef<[u8]>,
        max_bytes: usize,
    ) -> Result<Self, TransferError> {
        let key = key.as_ref();
        Talk { connection, key }.fetch(max_bytes)
    }

    /// Stores the filter in Redis, by `BF.LOADCHUNK` or `CF.LOADCHUNK`, if there is nothing at
    /// `key` yet.
    ///
    /// It loads the filter under a temporary name and renames it at the end, so no client sees half
    /// of it. (The temporary name has the same hash tag, so it is on the same node of a cluster. If
    /// this process dies meanwhile, the temporary filter expires after ten minutes.)
    ///
    /// # Errors
    ///
    /// Fails if there is something at `key`, or if the server cannot be reached, has not loaded
    /// RedisBloom, is a replica that takes no writes, or refuses a chunk (for lack of memory, say).
    /// Then `key` is unchanged. If a reply does not fit its command, the state of `key` is unknown.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_formats::RedisBloom;
    /// use lanebloom_redis::Transfer;
    ///
    /// let mut seen = RedisBloom::with_capacity(1000, 0.01)?;
    /// seen.insert("ann")?;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// seen.store(&mut connection, "seen")?;
    /// let exists: bool =
    ///     redis::cmd("BF.EXISTS").arg("seen").arg("ann").query(&mut connection)?;
    /// assert!(exists);
    /// assert!(seen.store(&mut connection, "seen").unwrap_err().is_taken());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("BF.LOADCHUNK", "CF.LOADCHUNK"))]
    fn store(&self, connection: &mut dyn ConnectionLike, key: impl AsRef<[u8]>) -> Result<(), TransferError> {
        let key = key.as_ref();
        Talk { connection, key }.store(self)
    }

    /// [`store`](Self::store) that replaces the value at `key`, if there is one, and its time to
    /// live, at one moment.
    ///
    /// # Errors
    ///
    /// Fails as [`store`](Self::store) does, but not if there is something at `key`.
    fn replace(&self, connection: &mut dyn ConnectionLike, key: impl AsRef<[u8]>) -> Result<(), TransferError> {
        let key = key.as_ref();
        Talk { connection, key }.put(self, "RENAME")
    }
}

impl Transfer for RedisBloom {}
impl Transfer for RedisCuckoo {}

mod sealed {
    use super::{Dumped, LoadChunks};

    /// A filter with the beginning of its commands. Keeps [`Transfer`](super::Transfer) ours.
    pub trait Commands: Dumped {
        const COMMANDS: &str;

        fn chunks(&self) -> LoadChunks<'_, Self>;
    }
}

impl Commands for RedisBloom {
    const COMMANDS: &str = "BF";

    fn chunks(&self) -> LoadChunks<'_, Self> {
        self.to_loadchunks()
    }
}

impl Commands for RedisCuckoo {
    const COMMANDS: &str = "CF";

    fn chunks(&self) -> LoadChunks<'_, Self> {
        self.to_loadchunks()
    }
}

/// Commands about the filter at a key, which their errors name.
struct Talk<'a> {
    connection: &'a mut dyn ConnectionLike,
    key: &'a [u8],
}

impl Talk<'_> {
    fn error(&self, kind: Kind, text: impl Display) -> Report {
        Report::new(kind, format!("{:?}: {text}", lossy(self.key)))
    }

    fn refused(&self, command: &str, error: RedisError) -> TransferError {
        let error = brief(error);
        let detail = error.detail().unwrap_or_default();
        let kind = Kind::of(&error);
        let report = match kind {
            _ if detail.starts_with("unknown command") => self.error(
                Kind::Other,
                format_args!("the server has not loaded RedisBloom: {error}"),
            ),
            _ if detail == "not found" => return self.error(Kind::Missing, "there is nothing at this key").into(),
            Kind::Malformed => return self.unexpected(command, shortened(&error)),
            Kind::Elsewhere => Report::new(kind, elsewhere(&lossy(self.key), &error)),
            Kind::Unreachable => self.error(kind, format_args!("the server was not reached: {error}")),
            Kind::WrongType => self.error(kind, format_args!("the key holds no RedisBloom filter: {error}")),
            Kind::ReadOnly => self.error(
                kind,
                format_args!("the server is a replica that takes no writes: {error}"),
            ),
            _ => self.error(kind, format_args!("the server refused: {error}")),
        };
        report.because(error).into()
    }

    fn unexpected(&self, command: &str, reply: String) -> TransferError {
        let text = format_args!("unexpected reply to {command}: {reply}");
        self.error(Kind::Other, text).into()
    }

    fn taken(&self) -> TransferError {
        self.error(Kind::Taken, "there is something at this key already").into()
    }

    fn changed(&self) -> TransferError {
        let text = "the filter was replaced or changed while it was read: fetch it again";
        self.error(Kind::Other, text).into()
    }

    fn no_dump(&self, error: ReadError) -> TransferError {
        let text = format_args!("the server's dump cannot be loaded: {error}");
        self.error(Kind::Other, text).because(error).into()
    }

    /// Sends a command with these arguments; `take` takes its reply apart.
    fn ask<T>(
        &mut self,
        command: &str,
        arguments: impl FnOnce(&mut Cmd),
        take: impl FnOnce(Value) -> Result<T, String>,
    ) -> Result<T, TransferError> {
        let mut call = cmd(command);
        arguments(&mut call);
        let reply = call.query(self.connection);
        let reply = reply.map_err(|error| self.refused(command, error))?;
        take(reply).map_err(|reply| self.unexpected(command, reply))
    }

    fn scandump<F: Commands>(&mut self, cursor: i64) -> Result<(i64, Vec<u8>), TransferError> {
        let key = self.key;
        let take = |reply| match &mut reply::list(reply)?[..] {
            // So a cuckoo filter without keys is dumped.
            [Value::Int(0), Value::Nil] => Ok((0, Vec::new())),
            [Value::Int(cursor), chunk] => Ok((*cursor, reply::bytes(std::mem::take(chunk))?)),
            others => Err(shortened(others)),
        };
        self.ask(
            &format!("{}.SCANDUMP", F::COMMANDS),
            |call| _ = call.arg(key).arg(cursor),
            take,
        )
    }

    fn fetch<F: Commands>(&mut self, max_bytes: usize) -> Result<F, TransferError> {
        let mut loader = Loader::<F>::new(max_bytes);
        while !loader.is_complete() {
            let (cursor, chunk) = self.scandump::<F>(loader.cursor())?;
            if cursor == 0 && chunk.is_empty() {
                if loader.cursor() > 0 {
                    return Err(self.changed());
                }
                let text = "the cuckoo filter has no keys, and Redis does not dump an empty one";
                return Err(self.error(Kind::Empty, text).into());
            }
            loader.load(cursor, &chunk).map_err(|error| self.no_dump(error))?;
        }
        let filter = loader.finish().map_err(|error| self.no_dump(error))?;
        // A cursor does not identify its filter. If another filter took the place of this one, the
        // header has changed.
        let (_, header) = self.scandump::<F>(0)?;
        if filter.is_whole(&header).map_err(|error| self.no_dump(error))? {
            Ok(filter)
        } else {
            Err(self.changed())
        }
    }

    fn store(&mut self, filter: &impl Commands) -> Result<(), TransferError> {
        let key = self.key;
        match self.ask("EXISTS", |call| _ = call.arg(key), flag)? {
            true => Err(self.taken()),
            false => self.put(filter, "RENAMENX"),
        }
    }

    /// `rename` is `RENAME` or `RENAMENX`.
    fn put<F: Commands>(&mut self, filter: &F, rename: &str) -> Result<(), TransferError> {
        let name = temporary(self.key);
        let result = self.load_as(&name, filter, rename);
        if result.is_err() {
            // If that fails too, the temporary filter expires.
            let _ = self.ask("UNLINK", |call| _ = call.arg(&name), Ok);
        }
        result
    }

    fn load_as<F: Commands>(&mut self, name: &[u8], filter: &F, rename: &str) -> Result<(), TransferError> {
        // First a command without bytes: a server without the module repeats the bytes of a chunk
        // in its error, and the client takes them for broken text.
        self.ask(
            &format!("{}.EXISTS", F::COMMANDS),
            |call| _ = call.arg(name).arg(""),
            flag,
        )?;
        let load = format!("{}.LOADCHUNK", F::COMMANDS);
        for (cursor, chunk) in filter.chunks() {
            self.ask(&load, |call| _ = call.arg(name).arg(cursor).arg(chunk), done)?;
            self.ask("EXPIRE", |call| _ = call.arg(name).arg(ABANDONED), flag)?;
        }
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("PERSIST").arg(name);
        pipeline.cmd(rename).arg(name).arg(self.key);
        let reply = if self.connection.supports_pipelining() {
            pipeline.query(self.connection)
        } else {
            // A connection to a cluster sends a transaction to the node of its first key.
            let (commands, replies) = (pipeline.get_packed_pipeline(), pipeline.len() + 1);
            let reply = self.connection.req_packed_commands(&commands, replies, 1);
            reply.map(|mut replies| replies.pop().unwrap_or_default())
        };
        let reply: Value = reply.map_err(|error| self.refused("EXEC", error))?;
        let replies = match &reply {
            Value::Array(replies) => &replies[..],
            _ => &[],
        };
        match (rename, replies) {
            ("RENAME", [Value::Int(0 | 1), Value::Okay]) | ("RENAMENX", [Value::Int(0 | 1), Value::Int(1)]) => Ok(()),
            ("RENAMENX", [Value::Int(0 | 1), Value::Int(0)]) => Err(self.taken()),
            _ => Err(self.unexpected("EXEC", shortened(&reply))),
        }
    }
}

/// A yes or no. (With the newer protocol, RedisBloom returns that protocol's booleans.)
fn flag(reply: Value) -> Result<bool, String> {
    match reply {
        Value::Int(0) | Value::Boolean(false) => Ok(false),
        Value::Int(1) | Value::Boolean(true) => Ok(true),
        other => Err(shortened(&other)),
    }
}

fn done(reply: Value) -> Result<(), String> {
    match reply {
        Value::Okay => Ok(()),
        other => Err(shortened(&other)),
    }
}

/// A unique name, with the hash tag of `key`, by which a cluster chooses the node.
fn temporary(key: &[u8]) -> Vec<u8> {
    let find = |bytes: &[u8], brace| bytes.iter().position(|byte| *byte == brace);
    let tag = find(key, b'{').and_then(|open| find(&key[open + 1..], b'}'));
    // The hash tag of a key without braces is the whole key. (For an empty tag, or a brace that
    // does not match, no name has the same tag.)
    let wrap = tag.is_none() && find(key, b'}').is_none();
    let (open, close): (&[u8], &[u8]) = if wrap { (b"{", b"}") } else { (b"", b"") };
    let random = RandomState::new().hash_one(0u8);
    let suffix = format!(":lanebloom:{random:016x}");
    [open, key, close, suffix.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_has_the_keys_hash_tag() {
        for (key, begins) in [
            ("seen", "{seen}:lanebloom:"),
            ("", "{}:lanebloom:"),
            ("seen:{7}:a", "seen:{7}:a:lanebloom:"),
            ("{7}{8}", "{7}{8}:lanebloom:"),
            ("a{b", "{a{b}:lanebloom:"),
            ("a}b", "a}b:lanebloom:"),
        ] {
            let name = temporary(key.as_bytes());
            assert!(
                name.starts_with(begins.as_bytes()),
                "{}",
                String::from_utf8_lossy(&name)
            );
            assert_eq!(name.len(), begins.len() + 16);
            assert_ne!(name, temporary(key.as_bytes()));
        }
    }
}
