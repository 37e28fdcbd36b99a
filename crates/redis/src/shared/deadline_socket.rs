//! A connection on which every round trip ends by a deadline: [`DeadlineSocket`], which a node's
//! thread opens and exchanges over.
//!
//! The `redis` crate's own blocking connection bounds each single read. A server that sends a byte
//! now and then, or unsolicited messages, holds its caller for ever. Only the owner of the socket
//! can end that. So this connection owns the socket, and bounds each read by the rest of the round
//! trip's time and bytes. The `redis` crate parses the bytes. With TLS the `redis` crate owns the
//! socket, and this file checks the deadline between replies only.
use redis::{
    Client, Connection, ConnectionAddr, ConnectionLike, Parser, ProtocolVersion, RedisConnectionInfo, RedisResult,
    Value,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

pub(super) struct DeadlineSocket {
    transport: Transport,
    db: i64,
    budget: Budget,
}

enum Transport {
    Plain { stream: Box<dyn Stream>, parser: Parser },
    Tls(Box<Connection>),
}

/// The time and the bytes of a round trip, and what is left of them.
struct Budget {
    timeout: Duration,
    /// The most bytes of all replies.
    most_bytes: usize,
    end: Instant,
    bytes: usize,
}

impl DeadlineSocket {
    /// Connects and logs in, within the time of one round trip. The lookup of the server's name
    /// comes on top.
    pub(super) fn open(client: &Client, timeout: Duration, most_bytes: usize) -> RedisResult<Self> {
        let info = client.get_connection_info();
        let budget = Budget::new(timeout, most_bytes);
        let settings = info.redis_settings();
        let db = settings.db();
        let stream: Box<dyn Stream> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Box::new(connect((host, *port), &budget)?),
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => Box::new(std::os::unix::net::UnixStream::connect(path)?),
            _ => {
                let transport = Transport::Tls(Box::new(client.get_connection_with_timeout(timeout)?));
                return Ok(Self { transport, db, budget });
            }
        };
        let parser = Parser::new();
        let transport = Transport::Plain { stream, parser };
        let mut socket = Self { transport, db, budget };
        socket.log_in(settings)?;
        Ok(socket)
    }

    /// Sends what the `redis` crate sends first on its own connections, in one write.
    fn log_in(&mut self, settings: &RedisConnectionInfo) -> RedisResult<()> {
        let mut commands = Vec::new();
        let (user, password) = (settings.username(), settings.password());
        if matches!(settings.protocol(), ProtocolVersion::RESP2) {
            if let Some(password) = password {
                let mut auth = redis::cmd("AUTH");
                auth.arg(user).arg(password);
                commands.push(auth);
            }
        } else {
            let mut hello = redis::cmd("HELLO");
            hello.arg(3);
            if let Some(password) = password {
                hello.arg("AUTH").arg(user.unwrap_or("default")).arg(password);
            }
            commands.push(hello);
        }
        if self.db != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(self.db);
            commands.push(select);
        }
        let needed = commands.len();
        if !settings.skip_set_lib_name() {
            let name = settings.lib_name().unwrap_or(env!("CARGO_PKG_NAME"));
            let version = settings.lib_ver().unwrap_or(env!("CARGO_PKG_VERSION"));
            for (field, value) in [("LIB-NAME", name), ("LIB-VER", version)] {
                let mut info = redis::cmd("CLIENT");
                info.arg("SETINFO").arg(field).arg(value);
                commands.push(info);
            }
        }
        let bytes: Vec<u8> = commands.iter().flat_map(redis::Cmd::get_packed_command).collect();
        self.send(&bytes)?;
        for i in 0..commands.len() {
            // (Servers before Redis 7.2 do not know SETINFO.)
            if let Value::ServerError(error) = self.receive()?
                && i < needed
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn send(&mut self, mut bytes: &[u8]) -> RedisResult<()> {
        match &mut self.transport {
            Transport::Plain { stream, .. } => {
                while !bytes.is_empty() {
                    match self.budget.bounded(&mut **stream, |stream| stream.write(bytes))? {
                        0 => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                        n => bytes = &bytes[n..],
                    }
                }
                Ok(())
            }
            Transport::Tls(connection) => {
                connection.set_write_timeout(Some(self.budget.rest()?))?;
                connection.send_packed_command(bytes)
            }
        }
    }

    /// The next reply. Skips messages that the server sends unasked.
    fn receive(&mut self) -> RedisResult<Value> {
        loop {
            let value = match &mut self.transport {
                Transport::Plain { stream, parser } => parser.parse_value(Bounded {
                    stream: &mut **stream,
                    budget: &mut self.budget,
                }),
                Transport::Tls(connection) => {
                    connection.set_read_timeout(Some(self.budget.rest()?))?;
                    connection.recv_response()
                }
            };
            match value? {
                Value::Push { .. } => {}
                reply => return Ok(reply),
            }
        }
    }
}

/// Errors of a transport are final: the caller drops the connection.
impl ConnectionLike for DeadlineSocket {
    fn req_packed_command(&mut self, bytes: &[u8]) -> RedisResult<Value> {
        self.budget = Budget::new(self.budget.timeout, self.budget.most_bytes);
        self.send(bytes)?;
        self.receive()
    }

    fn req_packed_commands(&mut self, _: &[u8], _: usize, _: usize) -> RedisResult<Vec<Value>> {
        Err((redis::ErrorKind::Client, "a node sends one command at a time").into())
    }

    fn supports_pipelining(&self) -> bool {
        false
    }

    fn get_db(&self) -> i64 {
        self.db
    }

    fn check_connection(&mut self) -> bool {
        redis::cmd("PING").exec(self).is_ok()
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// Tries the addresses of the server one after another.
fn connect(address: (&str, u16), budget: &Budget) -> io::Result<TcpStream> {
    let mut last = ErrorKind::AddrNotAvailable.into();
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    for (left, address) in (1..=addresses.len() as u32).rev().zip(&addresses) {
        // Each address gets a part of the time: if one does not answer at all, the next may.
        match TcpStream::connect_timeout(address, budget.rest()? / left) {
            Ok(stream) => {
                // A request is written at once. Without this its end could wait for the
                // acknowledgement of its beginning.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

trait Stream: Read + Write + Send {
    /// Bounds the wait of the next read or write.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

#[cfg(unix)]
impl Stream for std::os::unix::net::UnixStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

impl Budget {
    fn new(timeout: Duration, most_bytes: usize) -> Self {
        Self {
            timeout,
            end: Instant::now() + timeout,
            most_bytes,
            bytes: most_bytes,
        }
    }

    /// The rest of the time. Fails if there is none.
    fn rest(&self) -> io::Result<Duration> {
        let rest = self.end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(self.timed_out());
        }
        Ok(rest)
    }

    fn timed_out(&self) -> io::Error {
        let text = format!("the round trip was not done within {:?}", self.timeout);
        io::Error::new(ErrorKind::TimedOut, text)
    }

    /// One read or write, within the rest of the time.
    fn bounded<'a>(
        &self,
        stream: &mut (dyn Stream + 'a),
        mut operation: impl FnMut(&mut (dyn Stream + 'a)) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            stream.set_timeout(self.rest()?)?;
            match operation(stream) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The system decides which of the two errors it reports.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(self.timed_out());
                }
                result => return result,
            }
        }
    }
}

/// The parser's source.
struct Bounded<'a> {
    stream: &'a mut dyn Stream,
    budget: &'a mut Budget,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.budget.bytes);
        if most == 0 && !buffer.is_empty() {
            let text = format!("the reply is longer than {} bytes", self.budget.most_bytes);
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let n = self
            .budget
            .bounded(self.stream, |stream| stream.read(&mut buffer[..most]))?;
        self.budget.bytes -= n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::IntoConnectionInfo;
    use std::net::TcpListener;
    use std::thread;

    /// With the names that the caller chose for the library. A server may refuse those.
    #[test]
    fn a_log_in_is_one_write() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://:secret@{}/3", listener.local_addr().unwrap());
        let info = url.into_connection_info().unwrap();
        let settings = info.redis_settings().clone().set_lib_name("mine", "7");
        let client = Client::open(info.set_redis_settings(settings)).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 1024];
            let len = stream.read(&mut bytes).unwrap();
            stream
                .write_all(b"+OK\r\n+OK\r\n-ERR unknown\r\n-ERR unknown\r\n")
                .unwrap();
            let sent = str::from_utf8(&bytes[..len]).unwrap();
            sent.lines()
                .filter(|line| !line.starts_with(['*', '$']))
                .collect::<Vec<_>>()
                .join(" ")
        });
        let opened = DeadlineSocket::open(&client, Duration::from_secs(30), 1 << 20);
        assert_eq!(
            server.join().unwrap(),
            "AUTH secret SELECT 3 CLIENT SETINFO LIB-NAME mine CLIENT SETINFO LIB-VER 7"
        );
        assert!(opened.is_ok());
    }
}
