//! A connection whose requests a test answers itself, or passes on to a server.

use crate::redis_server::Redis;
use redis::{Connection, ConnectionLike, RedisResult, Value};

/// A connection of which `answer` answers each request.
pub(crate) struct Mock<F> {
    /// The number of requests so far.
    pub(crate) requests: usize,
    answer: F,
}

/// The bytes that a client sends at once: a command, or a pipeline.
pub(crate) struct Request<'a> {
    /// 1 for the first of the connection.
    pub(crate) number: usize,
    pub(crate) bytes: &'a [u8],
    /// The number of replies.
    pub(crate) count: usize,
    /// In a pipeline, the number of replies before those: a transaction has some.
    offset: Option<usize>,
}

/// A request that is on its way.
pub(crate) struct Sent(Vec<u8>, usize, Option<usize>);

impl Sent {
    /// The replies of a server.
    pub(crate) fn send(&self, connection: &mut Connection) -> RedisResult<Vec<Value>> {
        let Self(bytes, count, offset) = self;
        match offset {
            None => Ok(vec![connection.req_packed_command(bytes)?]),
            Some(offset) => connection.req_packed_commands(bytes, *offset, *count),
        }
    }
}

impl Request<'_> {
    pub(crate) fn to_sent(&self) -> Sent {
        Sent(self.bytes.to_vec(), self.count, self.offset)
    }

    /// The replies of a server.
    pub(crate) fn send(&self, connection: &mut Connection) -> RedisResult<Vec<Value>> {
        self.to_sent().send(connection)
    }

    /// The name of the first command, `EXEC` for a transaction.
    pub(crate) fn name(&self) -> &str {
        let name = || str::from_utf8(self.bytes.split(|&byte| byte == b'\n').nth(2)?).ok();
        if self.offset.is_some_and(|offset| offset > 0) {
            "EXEC"
        } else {
            name().expect("the request is a command").trim_end()
        }
    }
}

impl<F: FnMut(Request<'_>) -> RedisResult<Vec<Value>>> Mock<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self { requests: 0, answer }
    }

    fn answer(&mut self, bytes: &[u8], count: usize, offset: Option<usize>) -> RedisResult<Vec<Value>> {
        self.requests += 1;
        let number = self.requests;
        (self.answer)(Request {
            number,
            bytes,
            count,
            offset,
        })
    }
}

impl<F: FnMut(Request<'_>) -> RedisResult<Vec<Value>>> ConnectionLike for Mock<F> {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        Ok(self.answer(command, 1, None)?.pop().unwrap_or_default())
    }

    fn req_packed_commands(&mut self, commands: &[u8], offset: usize, count: usize) -> RedisResult<Vec<Value>> {
        self.answer(commands, count, Some(offset))
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// A connection of which each command may be preceded by something.
pub(crate) fn meanwhile(
    server: &Redis,
    mut before: impl FnMut(usize) -> RedisResult<()>,
) -> Mock<impl FnMut(Request<'_>) -> RedisResult<Vec<Value>>> {
    let mut connection = server.connection();
    Mock::new(move |request: Request<'_>| {
        before(request.number)?;
        request.send(&mut connection)
    })
}
