//! Fetches a [`RedisBloom`] from Redis and stores it there: the commands for its dump, over a
//! blocking connection of the `redis` crate. `filter/redisbloom/dump.rs` knows the content of the
//! chunks.

use super::error::{RedisBloomTransferError, RedisBloomTransferErrorKind as Kind};
use super::link::lossy;
use super::reply::{self, brief, shortened};
use crate::redisbloom::{Loader, RedisBloom};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use redis::{Cmd, ConnectionLike, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use std::hash::RandomState;

/// Seconds after which Redis drops a filter that a client began to put there and left. Counted from
/// its last chunk.
const ABANDONED: u32 = 600;

/// Out of Redis, and into it (feature `redis`). An asynchronous client takes a filter out with a
/// [`Loader`], and puts the chunks of [`to_loadchunks`](RedisBloom::to_loadchunks) back by
/// `BF.LOADCHUNK`.
///
/// The connection is any blocking one of the `redis` crate, also of its pools.
impl RedisBloom {
    /// Fetches a filter from Redis by `BF.SCANDUMP`. The filter takes at most `max_bytes` bytes of
    /// [memory](Self::memory_bytes), here and when it grows.
    ///
    /// Other clients may use the filter meanwhile: the copy has at least every key that was
    /// inserted before. The keys that it [counts](RedisBloom::info) are those of the beginning. A
    /// server's chunks have 16 MiB at most. If another server sends more, the `redis` crate
    /// [buffers](crate::redis#what-the-client-buffers) it before it is looked at.
    ///
    /// # Errors
    ///
    /// If the server is not reached, has not loaded RedisBloom, or holds no filter at `key`; if
    /// what it sends is not the command's reply, not a filter's dump, or larger than the limit, as
    /// of [`Loader::load`]; if another filter took the place of this one meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/module.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(server) = bloom_server("the example of RedisBloom::fetch") else { return Ok(()) };
    /// # let url = server.url();
    /// use lanebloom::RedisBloom;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// redis::cmd("BF.ADD").arg("seen").arg("ann").exec(&mut connection)?;
    ///
    /// let seen = RedisBloom::fetch(&mut connection, "seen", 1 << 30)?;
    /// assert!(seen.contains("ann") && !seen.contains("eve"));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "BF.SCANDUMP")]
    pub fn fetch(
        connection: &mut dyn ConnectionLike,
        key: impl AsRef<[u8]>,
        max_bytes: usize,
    ) -> Result<Self, RedisBloomTransferError> {
        let mut talk = Talk {
            connection,
            key: key.as_ref(),
        };
        talk.fetch(max_bytes).map_err(|kind| talk.error(kind))
    }

    /// Puts the filter into Redis where there is nothing at `key` yet: `BF.LOADCHUNK` of all of it.
    ///
    /// It is loaded under another name first, and gets its own when all is there: nobody sees half
    /// of it. (The name has the same hash tag, so that it is on the same node of a cluster. A
    /// filter that was begun and left, because this process died, expires after ten minutes.)
    ///
    /// # Errors
    ///
    /// If there is something at `key`, the server is not reached, has not loaded RedisBloom, is a
    /// replica that takes no writes, or refuses a chunk, for want of memory for example. Nothing is
    /// at `key` then that was not there. And if a reply is not the command's; then it is not known
    /// what is at `key`.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/module.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(server) = bloom_server("the example of RedisBloom::store") else { return Ok(()) };
    /// # let url = server.url();
    /// use lanebloom::RedisBloom;
    ///
    /// let mut seen = RedisBloom::with_capacity(1000, 0.01)?;
    /// seen.insert("ann")?;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// seen.store(&mut connection, "seen")?;
    /// let exists: bool = redis::cmd("BF.EXISTS").arg("seen").arg("ann").query(&mut connection)?;
    /// assert!(exists);
    /// assert!(seen.store(&mut connection, "seen").unwrap_err().is_taken());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "BF.LOADCHUNK")]
    pub fn store(
        &self,
        connection: &mut dyn ConnectionLike,
        key: impl AsRef<[u8]>,
    ) -> Result<(), RedisBloomTransferError> {
        let mut talk = Talk {
            connection,
            key: key.as_ref(),
        };
        let stored = talk.ensure_free().and_then(|()| talk.put(self, "RENAMENX"));
        stored.map_err(|kind| talk.error(kind))
    }

    /// [`store`](Self::store) in the place of the value at `key`. That value disappears at the same
    /// moment, with its time to live.
    ///
    /// # Errors
    ///
    /// As of [`store`](Self::store), except that `key` may be taken.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/module.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(server) = bloom_server("the example of RedisBloom::replace") else { return Ok(()) };
    /// # let url = server.url();
    /// use lanebloom::RedisBloom;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// redis::cmd("BF.ADD").arg("seen").arg("eve").exec(&mut connection)?;
    ///
    /// let mut seen = RedisBloom::with_capacity(1000, 0.01)?;
    /// seen.insert("ann")?;
    /// seen.replace(&mut connection, "seen")?;
    /// assert!(RedisBloom::fetch(&mut connection, "seen", 1 << 30)? == seen);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(
        &self,
        connection: &mut dyn ConnectionLike,
        key: impl AsRef<[u8]>,
    ) -> Result<(), RedisBloomTransferError> {
        let mut talk = Talk {
            connection,
            key: key.as_ref(),
        };
        talk.put(self, "RENAME").map_err(|kind| talk.error(kind))
    }
}

/// Commands about the filter at a key.
struct Talk<'a> {
    connection: &'a mut dyn ConnectionLike,
    key: &'a [u8],
}

impl Talk<'_> {
    fn error(&self, kind: Kind) -> RedisBloomTransferError {
        RedisBloomTransferError {
            kind,
            key: lossy(self.key),
        }
    }

    /// The reply to a command with these arguments, taken apart by `take`.
    fn ask<T>(
        &mut self,
        command: &'static str,
        arguments: impl FnOnce(&mut Cmd),
        take: impl FnOnce(Value) -> Result<T, String>,
    ) -> Result<T, Kind> {
        let mut call = cmd(command);
        arguments(&mut call);
        let reply = call.query(self.connection).map_err(|error| classify(command, error))?;
        take(reply).map_err(|reply| Kind::Reply { command, reply })
    }

    fn scandump(&mut self, cursor: i64) -> Result<(i64, Vec<u8>), Kind> {
        let key = self.key;
        let take = |reply| match &mut reply::list(reply)?[..] {
            [Value::Int(cursor), chunk] => Ok((*cursor, reply::bytes(core::mem::take(chunk))?)),
            others => Err(shortened(others)),
        };
        self.ask("BF.SCANDUMP", |call| _ = call.arg(key).arg(cursor), take)
    }

    fn fetch(&mut self, max_bytes: usize) -> Result<RedisBloom, Kind> {
        let mut loader = Loader::new(max_bytes);
        while !loader.is_complete() {
            let (cursor, chunk) = self.scandump(loader.cursor())?;
            loader.load(cursor, &chunk).map_err(Kind::Load)?;
        }
        let filter = loader.finish().map_err(Kind::Load)?;
        // A cursor says nothing of the filter that it is of. If it was another one's in the middle,
        // the header has changed.
        let (_, header) = self.scandump(0)?;
        if filter.has_become(&header).map_err(Kind::Load)? {
            Ok(filter)
        } else {
            Err(Kind::Changed)
        }
    }

    fn ensure_free(&mut self) -> Result<(), Kind> {
        let key = self.key;
        match self.ask("EXISTS", |call| _ = call.arg(key), flag)? {
            true => Err(Kind::Taken),
            false => Ok(()),
        }
    }

    /// `rename` is `RENAME` or `RENAMENX`.
    fn put(&mut self, filter: &RedisBloom, rename: &str) -> Result<(), Kind> {
        let name = temporary(self.key);
        let result = self.load_as(&name, filter, rename);
        if result.is_err() {
            // If that fails too, it expires.
            let _ = self.ask("UNLINK", |call| _ = call.arg(&name), Ok);
        }
        result
    }

    fn load_as(&mut self, name: &[u8], filter: &RedisBloom, rename: &str) -> Result<(), Kind> {
        // A server without the module would repeat the bytes of a chunk in its error, which the
        // client takes for broken text.
        self.ask("BF.EXISTS", |call| _ = call.arg(name).arg(""), flag)?;
        for (cursor, chunk) in filter.to_loadchunks() {
            self.ask("BF.LOADCHUNK", |call| _ = call.arg(name).arg(cursor).arg(chunk), done)?;
            self.ask("EXPIRE", |call| _ = call.arg(name).arg(ABANDONED), flag)?;
        }
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("PERSIST").arg(name);
        pipeline.cmd(rename).arg(name).arg(self.key);
        let reply: Value = pipeline
            .query(self.connection)
            .map_err(|error| classify("EXEC", error))?;
        let replies = match &reply {
            Value::Array(replies) => &replies[..],
            _ => &[],
        };
        match (rename, replies) {
            ("RENAME", [Value::Int(0 | 1), Value::Okay]) | ("RENAMENX", [Value::Int(0 | 1), Value::Int(1)]) => Ok(()),
            ("RENAMENX", [Value::Int(0 | 1), Value::Int(0)]) => Err(Kind::Taken),
            _ => Err(Kind::Reply {
                command: "EXEC",
                reply: shortened(&reply),
            }),
        }
    }
}

/// Whether the requested value exists, or existed. (With the newer protocol, RedisBloom answers by
/// that protocol's own kind.)
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

/// A name that nobody else has, with the hash tag of `key`, by which a cluster chooses the node.
fn temporary(key: &[u8]) -> Vec<u8> {
    let find = |bytes: &[u8], brace| bytes.iter().position(|byte| *byte == brace);
    let tag = find(key, b'{').and_then(|open| find(&key[open + 1..], b'}'));
    // A key without a tag is one as a whole. (An empty tag is none; with one, or a brace that does
    // not fit, there is no such name.)
    let wrap = tag.is_none() && find(key, b'}').is_none();
    let (open, close): (&[u8], &[u8]) = if wrap { (b"{", b"}") } else { (b"", b"") };
    let random = RandomState::new().hash_one(0u8);
    let suffix = alloc::format!(":lanebloom:{random:016x}");
    [open, key, close, suffix.as_bytes()].concat()
}

fn classify(command: &'static str, error: RedisError) -> Kind {
    let error = brief(error);
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::Io => Kind::Unreachable(error),
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Kind::Reply {
            command,
            reply: shortened(&error),
        },
        ErrorKind::Server(ServerErrorKind::ReadOnly) => Kind::ReadOnly(error),
        _ if error.code() == Some("WRONGTYPE") => Kind::WrongType(error),
        _ if detail.starts_with("unknown command") => Kind::NoModule(error),
        _ if detail == "not found" => Kind::Missing,
        _ => Kind::Refused(error),
    }
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
