//! [`Transfer`]: the commands for the dump of a [`RedisBloom`] or a [`RedisCuckoo`], over a
//! blocking connection of the `redis` crate. The filters know the chunks of their dumps.

use crate::connection::{Blocking, Talk, lossy, now};
use crate::error::{Kind, Report, TransferError};
use lanebloom_formats::redisbloom::{Dumped, Loader};
use lanebloom_formats::{ReadError, RedisBloom, RedisCuckoo};
use redis::{Cmd, ConnectionLike, ToRedisArgs, Value, cmd};
use sealed::Commands;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::mem;

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
    /// crate [buffers](crate#buffers-of-the-client) all of it first.
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
        let (connection, key) = (&mut Blocking(connection), key.as_ref());
        Ok(Talk { connection, key }.fetch(max_bytes)?)
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
        let (connection, key) = (&mut Blocking(connection), key.as_ref());
        Ok(Talk { connection, key }.store(self)?)
    }

    /// [`store`](Self::store) that replaces the value at `key`, if there is one, and its time to
    /// live, at one moment.
    ///
    /// # Errors
    ///
    /// Fails as [`store`](Self::store) does, but not if there is something at `key`.
    fn replace(&self, connection: &mut dyn ConnectionLike, key: impl AsRef<[u8]>) -> Result<(), TransferError> {
        let (connection, key) = (&mut Blocking(connection), key.as_ref());
        Ok(Talk { connection, key }.put(self, "RENAME")?)
    }
}

impl Transfer for RedisBloom {}
impl Transfer for RedisCuckoo {}

mod sealed {
    /// A filter with the beginning of its commands. Keeps [`Transfer`](super::Transfer) ours.
    pub trait Commands: super::Dumped {
        const COMMANDS: &str;
    }
}

impl Commands for RedisBloom {
    const COMMANDS: &str = "BF";
}

impl Commands for RedisCuckoo {
    const COMMANDS: &str = "CF";
}

impl Talk<'_, Blocking<'_>> {
    fn problem(&self, kind: Kind, text: impl Display) -> Report {
        Report::new(kind, format!("{:?}: {text}", lossy(self.key)))
    }

    fn taken(&self) -> Report {
        self.problem(Kind::Taken, "there is something at this key already")
    }

    fn changed(&self) -> Report {
        let text = "the filter was replaced or changed while it was read: fetch it again";
        self.problem(Kind::Other, text)
    }

    fn no_dump(&self, error: ReadError) -> Report {
        let text = format_args!("the server's dump cannot be loaded: {error}");
        self.problem(Kind::Other, text).because(error)
    }

    /// The reply to a command. An error that only RedisBloom gives, or its absence, is named.
    fn command(&mut self, command: Cmd) -> Result<Value, Report> {
        now(self.ask(command)).map_err(|report| {
            let Some(error) = report.redis_error() else {
                return report;
            };
            match error.detail() {
                Some("not found") => self.problem(Kind::Missing, "there is nothing at this key"),
                Some(detail) if detail.starts_with("unknown command") => {
                    let text = format_args!("the server has not loaded RedisBloom: {error}");
                    self.problem(Kind::Other, text).because(error.clone())
                }
                _ => report,
            }
        })
    }

    fn flag(&mut self, name: &str, arguments: impl ToRedisArgs) -> Result<bool, Report> {
        let reply = self.command(cmd(name).arg(arguments).take())?;
        self.bit(name, &reply)
    }

    fn scandump<F: Commands>(&mut self, cursor: i64) -> Result<(i64, Vec<u8>), Report> {
        let name = format!("{}.SCANDUMP", F::COMMANDS);
        let mut reply = self.command(cmd(&name).arg(self.key).arg(cursor).take())?;
        let Value::Array(items) = &mut reply else {
            return Err(self.unexpected(&name, reply));
        };
        match &mut items[..] {
            // So a cuckoo filter without keys is dumped.
            [Value::Int(0), Value::Nil] => Ok((0, Vec::new())),
            [Value::Int(cursor), Value::BulkString(chunk)] => Ok((*cursor, mem::take(chunk))),
            others => Err(self.unexpected(&name, others)),
        }
    }

    fn fetch<F: Commands>(&mut self, max_bytes: usize) -> Result<F, Report> {
        let mut loader = Loader::<F>::new(max_bytes);
        while !loader.is_complete() {
            let (cursor, chunk) = self.scandump::<F>(loader.cursor())?;
            if cursor == 0 && chunk.is_empty() {
                if loader.cursor() > 0 {
                    return Err(self.changed());
                }
                let text = "the cuckoo filter has no keys, and Redis does not dump an empty one";
                return Err(self.problem(Kind::Empty, text));
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

    fn store(&mut self, filter: &impl Commands) -> Result<(), Report> {
        match self.flag("EXISTS", self.key)? {
            true => Err(self.taken()),
            false => self.put(filter, "RENAMENX"),
        }
    }

    /// `rename` is `RENAME` or `RENAMENX`.
    fn put<F: Commands>(&mut self, filter: &F, rename: &str) -> Result<(), Report> {
        let name = temporary(self.key);
        let result = self.load_as(&name, filter, rename);
        if result.is_err() {
            // If that fails too, the temporary filter expires.
            let _ = self.command(cmd("UNLINK").arg(name).take());
        }
        result
    }

    fn load_as<F: Commands>(&mut self, name: &[u8], filter: &F, rename: &str) -> Result<(), Report> {
        // First a command without bytes: a server without the module repeats the bytes of a chunk
        // in its error, and the client takes them for broken text.
        self.flag(&format!("{}.EXISTS", F::COMMANDS), (name, ""))?;
        let load = format!("{}.LOADCHUNK", F::COMMANDS);
        for (cursor, chunk) in filter.chunks() {
            match self.command(cmd(&load).arg(name).arg(cursor).arg(chunk).take())? {
                Value::Okay => {}
                other => return Err(self.unexpected(&load, other)),
            }
            self.flag("EXPIRE", (name, ABANDONED))?;
        }
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("PERSIST").arg(name);
        pipeline.cmd(rename).arg(name).arg(self.key);
        let connection = &mut *self.connection.0;
        let reply = if connection.supports_pipelining() {
            pipeline.query(connection)
        } else {
            // A connection to a cluster sends a transaction to the node of its first key.
            let (commands, replies) = (pipeline.get_packed_pipeline(), pipeline.len() + 1);
            let reply = connection.req_packed_commands(&commands, replies, 1);
            reply.map(|mut replies| replies.pop().unwrap_or_default())
        };
        let reply: Value = reply.map_err(|error| self.error("EXEC", error))?;
        let replies = match &reply {
            Value::Array(replies) => &replies[..],
            _ => &[],
        };
        match (rename, replies) {
            ("RENAME", [Value::Int(0 | 1), Value::Okay]) | ("RENAMENX", [Value::Int(0 | 1), Value::Int(1)]) => Ok(()),
            ("RENAMENX", [Value::Int(0 | 1), Value::Int(0)]) => Err(self.taken()),
            _ => Err(self.unexpected("EXEC", &reply)),
        }
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
