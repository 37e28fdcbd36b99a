//! The layer between the commands and the `redis` crate: a [`Connection`] sends a pipeline and
//! waits for its replies. The code that uses a connection is written once, as `async` code. Over a
//! [`Blocking`] connection that code never waits, so [`now`] has its result at once.

use crate::error::{Kind, Report};
use crate::reply::{brief, shortened};
use redis::{Cmd, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

/// Sends a pipeline, and receives one reply to each of its commands: errors of the server as
/// values, everything else as an error.
pub(super) trait Connection {
    /// Whether a pipeline takes one round trip. If not, a script is better than commands.
    fn pipelines(&self) -> bool;

    fn send(&mut self, pipeline: &Pipeline) -> impl Future<Output = RedisResult<Vec<Value>>> + Send;
}

/// Over a blocking connection.
pub(super) struct Blocking<'a>(pub(super) &'a mut dyn redis::ConnectionLike);

impl Connection for Blocking<'_> {
    fn pipelines(&self) -> bool {
        self.0.supports_pipelining()
    }

    fn send(&mut self, pipeline: &Pipeline) -> impl Future<Output = RedisResult<Vec<Value>>> + Send {
        std::future::ready(if self.pipelines() {
            pipeline.query(self.0)
        } else {
            one_by_one(self.0, pipeline)
        })
    }
}

/// Sends one command after another: a connection to a cluster finds the node of each, and follows
/// slots that move. (It would send a pipeline to one node, and all of it again to another node.)
fn one_by_one(connection: &mut dyn redis::ConnectionLike, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
    let reply = |command| match connection.req_command(command) {
        Err(error) => redis::ServerError::try_from(error).map(Value::ServerError),
        reply => reply,
    };
    pipeline.cmd_iter().map(reply).collect()
}

/// Over an asynchronous connection.
#[cfg(feature = "tokio")]
pub(super) struct Async<'a, C>(pub(super) &'a mut C);

#[cfg(feature = "tokio")]
impl<C: redis::aio::ConnectionLike + Send> Connection for Async<'_, C> {
    fn pipelines(&self) -> bool {
        true
    }

    async fn send(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        pipeline.query_async(self.0).await
    }
}

/// The result of a future over a [`Blocking`] connection. The connection waits, so the future is
/// ready at once.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("nothing but the connection is waited for, and a blocking one is always ready"),
    }
}

/// A script. The server keeps it after the first use, and then runs it by its digest.
pub(super) struct Script {
    pub(super) name: &'static str,
    code: &'static str,
    digest: OnceLock<String>,
}

/// The text of scripts, one after another.
macro_rules! lua {
    ($($script:literal),+) => {
        concat!($(include_str!(concat!("scripts/", $script, ".lua"))),+)
    };
}

// The files say what each takes and returns.
pub(super) static TEST: Script = Script::new("test.lua", lua!("test"));
pub(super) static SET: Script = Script::new("set.lua", lua!("set"));
pub(super) static TEST_GROWING: Script = Script::new("test_growing.lua", lua!("cursor", "test_growing"));
pub(super) static SET_GROWING: Script = Script::new("set_growing.lua", lua!("cursor", "set_growing"));
pub(super) static CLEAR_GROWING: Script = Script::new("clear_growing.lua", lua!("cursor", "clear_growing"));
pub(super) static EXPIRE_GROWING: Script = Script::new("expire_growing.lua", lua!("cursor", "expire_growing"));
pub(super) static TEST_CONFIGURED: Script = Script::new("test.lua", lua!("configured", "test"));
pub(super) static SET_CONFIGURED: Script = Script::new("set.lua", lua!("configured", "expire_bitmap", "set"));
pub(super) static CONFIGURE: Script = Script::new("configure.lua", lua!("configure"));
pub(super) static RENAME: Script = Script::new("rename.lua", lua!("rename"));
pub(super) static RENAME_GROWING: Script = Script::new("rename_growing.lua", lua!("cursor", "rename_growing"));
pub(super) static CHANGED: Script = Script::new("changed.lua", lua!("changed"));

impl Script {
    const fn new(name: &'static str, code: &'static str) -> Self {
        Self {
            name,
            code,
            digest: OnceLock::new(),
        }
    }

    /// The call of the script, by its digest or by its whole text.
    pub(super) fn call(&self, whole: bool, keys: &[&[u8]], arguments: &[impl redis::ToRedisArgs]) -> Cmd {
        let (command, script) = if whole {
            ("EVAL", self.code)
        } else {
            ("EVALSHA", self.digest())
        };
        let mut call = redis::cmd(command);
        call.arg(script).arg(keys.len()).arg(keys).arg(arguments);
        call
    }

    /// Whether a reply says that the server does not know the script.
    pub(super) fn is_unknown(reply: &Value) -> bool {
        matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
    }

    fn digest(&self) -> &str {
        self.digest
            .get_or_init(|| sha1_smol::Sha1::from(self.code).digest().to_string())
    }
}

/// Round trips about one Redis key, which their errors name.
pub(super) struct Talk<'a, C> {
    pub(super) connection: &'a mut C,
    pub(super) key: &'a [u8],
}

impl<C: Connection> Talk<'_, C> {
    /// The replies to commands. A reply that is an error fails the call.
    pub(super) async fn send(&mut self, mut pipeline: Pipeline) -> Result<Vec<Value>, Report> {
        let replies = self.try_send(&mut pipeline).await?;
        replies.into_iter().map(|reply| self.checked(reply)).collect()
    }

    /// The reply to one command.
    pub(super) async fn ask(&mut self, command: Cmd) -> Result<Value, Report> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command);
        Ok(self.send(pipeline).await?.pop().unwrap_or_default())
    }

    /// The reply to a command, and whether the key `other` is there before and after it. (Another
    /// client may make or remove both keys in between.)
    pub(super) async fn ask_beside(&mut self, command: Cmd, other: &[u8]) -> Result<(Value, bool), Report> {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(other);
        let mut pipeline = redis::pipe();
        pipeline
            .add_command(exists.clone())
            .add_command(command)
            .add_command(exists);
        let mut replies = self.send(pipeline).await?.into_iter();
        let mut next = || replies.next().unwrap_or_default();
        let (before, reply, after) = (next(), next(), next());
        let is_there = self.bit("EXISTS", &before)? & self.bit("EXISTS", &after)?;
        Ok((reply, is_there))
    }

    /// The reply to a script. Sends the script whole if the server does not know it.
    pub(super) async fn run(
        &mut self,
        script: &Script,
        keys: &[&[u8]],
        arguments: &[impl redis::ToRedisArgs],
    ) -> Result<Value, Report> {
        let mut reply = Value::Nil;
        for whole in [false, true] {
            let mut pipeline = redis::pipe();
            pipeline.add_command(script.call(whole, keys, arguments));
            reply = self.try_send(&mut pipeline).await?.pop().unwrap_or_default();
            if !Script::is_unknown(&reply) {
                break;
            }
        }
        self.checked(reply)
    }

    /// The replies to commands, errors of the server among them.
    pub(super) async fn try_send(&mut self, pipeline: &mut Pipeline) -> Result<Vec<Value>, Report> {
        pipeline.ignore_errors();
        let replies = self
            .connection
            .send(pipeline)
            .await
            .map_err(|error| self.error(name_of(pipeline), error))?;
        if replies.len() == pipeline.len() {
            return Ok(replies);
        }
        Err(self.unexpected(
            "pipeline",
            format_args!("{} replies to {} commands", replies.len(), pipeline.len()),
        ))
    }

    pub(super) fn checked(&self, reply: Value) -> Result<Value, Report> {
        match reply {
            Value::ServerError(error) => Err(self.error("a command", error.into())),
            reply => Ok(reply),
        }
    }

    /// The error of `command`.
    pub(super) fn error(&self, command: &str, error: RedisError) -> Report {
        let error = brief(error);
        let (kind, key) = (Kind::of(&error), lossy(self.key));
        let text = match kind {
            Kind::WrongType => format!("{key:?} has a value of another type: {error}"),
            Kind::ReadOnly => format!("{key:?} was not written, the server is a read-only replica: {error}"),
            Kind::Elsewhere => {
                let (node, slot) = error.redirect_node().unwrap_or_default();
                format!(
                    "{key:?} is in slot {slot} of Redis Cluster, at the node {node:?}, and the connection reaches only another node: {error}"
                )
            }
            Kind::CrossSlot => format!(
                "{key:?} and the keys with it are in several slots of Redis Cluster; give them one hash tag, as {{tag}}: {error}"
            ),
            Kind::Unreachable => format!("the server was not reached: {error}"),
            Kind::Malformed => return self.no_reply(command, &error),
            _ => format!("the server refused an operation on {key:?}: {error}"),
        };
        Report::new(kind, text).because(error)
    }

    /// A reply that `command` does not give.
    pub(super) fn unexpected(&self, command: &str, reply: impl fmt::Debug) -> Report {
        self.no_reply(command, shortened(reply))
    }

    fn no_reply(&self, command: &str, reply: impl fmt::Display) -> Report {
        let key = lossy(self.key);
        Report::other(format!("unexpected reply to {command} on {key:?}: {reply}"))
    }

    /// The integer that `command` replied.
    pub(super) fn integer(&self, command: &str, reply: &Value) -> Result<i64, Report> {
        match reply {
            Value::Int(integer) => Ok(*integer),
            other => Err(self.unexpected(command, other)),
        }
    }

    /// The bit that `command` replied, a number or, by version 3 of the protocol, a boolean.
    pub(super) fn bit(&self, command: &str, reply: &Value) -> Result<bool, Report> {
        match reply {
            Value::Int(0) | Value::Boolean(false) => Ok(false),
            Value::Int(1) | Value::Boolean(true) => Ok(true),
            other => Err(self.unexpected(command, other)),
        }
    }

    /// The bytes that `command` replied, at most `limit`.
    pub(super) fn bytes(&self, command: &str, reply: Value, limit: u64) -> Result<Vec<u8>, Report> {
        match reply {
            Value::BulkString(bytes) if bytes.len() as u64 <= limit => Ok(bytes),
            Value::BulkString(bytes) => Err(self.unexpected(
                command,
                format_args!("{} bytes, more than the {limit} asked for", bytes.len()),
            )),
            other => Err(self.unexpected(command, other)),
        }
    }
}

/// The name of the one command, or `pipeline` if there are several: then nobody knows which it was.
fn name_of(pipeline: &Pipeline) -> &str {
    let mut commands = pipeline.cmd_iter();
    let first = commands.next().and_then(|command| command.args_iter().next());
    match (first, commands.next()) {
        (Some(redis::Arg::Simple(name)), None) => str::from_utf8(name).unwrap_or_default(),
        _ => "pipeline",
    }
}

pub(super) fn lossy(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
