//! The feed: a process reads the table of changes and sends them to all who listen, as lines of
//! text, by sockets of its own or by Redis; or PostgreSQL sends them itself. `LineFeed` is the
//! `Feed` that reads these lines.

use crate::postgres::Listener;
use crate::store::{Outbox, Store, id_of, now};
use crate::{Args, Result};
use futures_util::StreamExt;
use lanebloom_guard::{BoxError, Change, Feed};
use redis::aio::PubSubStream;
use std::io::Write;
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::runtime::Handle;

/// The pause between looks into the table, and between attempts to send.
const POLL: Duration = Duration::from_millis(2);

/// The channel in Redis.
const CHANNEL: &str = "lanebloom replicas";

/// A change, as it is sent. A line without a change is "alive".
pub fn line_of(number: u64, version: u64) -> String {
    format!("{number} {version}")
}

/// Sends all changes on, by a thread of its own. What could not be sent, because Redis was away,
/// is sent again, perhaps twice. It says that it is alive only if it could read the table.
fn relay(mut outbox: Outbox, silence: Duration, mut send: impl FnMut(&[String]) -> Result<()> + Send + 'static) {
    let runtime = Handle::current();
    thread::spawn(move || {
        let mut sent = Instant::now();
        loop {
            thread::sleep(POLL);
            let Ok(mut lines) = runtime.block_on(outbox.read()) else {
                continue;
            };
            if lines.is_empty() && sent.elapsed() > silence / 4 {
                lines.push(String::from("alive"));
            }
            if lines.is_empty() || send(&lines).is_err() {
                continue;
            }
            sent = Instant::now();
            // If this fails, they are sent again.
            let _ = runtime.block_on(outbox.note_sent());
        }
    });
}

/// Publishes all changes in Redis.
pub fn publish_all(store: &Store, silence: Duration, url: &str) -> Result<()> {
    let client = redis::Client::open(url)?;
    let mut connection = None;
    let send = move |lines: &[String]| {
        let mut open = match connection.take() {
            Some(open) => open,
            None => client.get_connection()?,
        };
        let mut messages = redis::pipe();
        for line in lines {
            messages.publish(CHANNEL, line).ignore();
        }
        messages.exec(&mut open)?;
        connection = Some(open);
        Ok(())
    };
    relay(store.outbox()?, silence, send);
    Ok(())
}

/// Sends all changes to those who connect.
pub struct Server {
    address: SocketAddr,
    listeners: Arc<Mutex<Vec<TcpStream>>>,
    is_frozen: Arc<AtomicBool>,
}

impl Server {
    pub fn start(store: &Store, silence: Duration) -> Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0")?;
        let server = Self {
            address: socket.local_addr()?,
            listeners: Arc::default(),
            is_frozen: Arc::default(),
        };
        let (listeners, is_frozen) = (Arc::clone(&server.listeners), Arc::clone(&server.is_frozen));
        thread::spawn(move || {
            for stream in socket.incoming().filter_map(std::io::Result::ok) {
                wait_while(&is_frozen);
                let _ = stream.set_nodelay(true);
                // From here on, it is sent every change that is committed. The greeting is its
                // first line, since changes are sent under the lock.
                let mut listeners = lock(&listeners);
                if (&stream).write_all(b"listening\n").is_ok() {
                    listeners.push(stream);
                }
            }
        });
        let (listeners, is_frozen) = (Arc::clone(&server.listeners), Arc::clone(&server.is_frozen));
        let send = move |lines: &[String]| {
            wait_while(&is_frozen);
            let lines = lines.join("\n") + "\n";
            lock(&listeners).retain_mut(|stream| stream.write_all(lines.as_bytes()).is_ok());
            Ok(())
        };
        relay(store.outbox()?, silence, send);
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in lock(&self.listeners).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// A frozen server sends nothing, and keeps its connections.
    pub fn freeze(&self, is_frozen: bool) {
        self.is_frozen.store(is_frozen, Ordering::Relaxed);
    }
}

fn wait_while(is_frozen: &AtomicBool) {
    while is_frozen.load(Ordering::Relaxed) {
        thread::sleep(POLL);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the lines come from.
enum Source {
    Tcp(Lines<BufReader<tokio::net::TcpStream>>),
    Postgres(Listener),
    Redis(PubSubStream),
}

impl Source {
    /// Once it has returned, every change that is committed from now on comes.
    async fn connect(args: &Args) -> Result<Self> {
        if let Some(url) = &args.redis {
            let mut messages = redis::Client::open(url.as_str())?.get_async_pubsub().await?;
            messages.subscribe(CHANNEL).await?;
            return Ok(Self::Redis(messages.into_on_message()));
        }
        if let Some(url) = &args.postgres {
            return Ok(Self::Postgres(Listener::new(url).await?));
        }
        let server = args.feed.ok_or("no address of the feed")?;
        let mut lines = BufReader::new(tokio::net::TcpStream::connect(server).await?).lines();
        lines.next_line().await?.ok_or("the connection is closed")?;
        Ok(Self::Tcp(lines))
    }

    async fn line(&mut self, silence: Duration) -> Result<String> {
        let line = match self {
            Self::Tcp(lines) => lines.next_line().await?,
            Self::Postgres(listener) => Some(listener.line(silence / 4).await?),
            Self::Redis(messages) => match messages.next().await {
                Some(message) => Some(message.get_payload()?),
                None => None,
            },
        };
        Ok(line.ok_or("the connection is closed")?)
    }
}

/// The messages that a replica was told, for its checks.
pub struct Told {
    /// The versions, by the number of the row.
    versions: Vec<AtomicU32>,
    /// All commits from before this time are known.
    since: AtomicU64,
    /// Odd while it listens. Each break and each return increments it.
    turns: AtomicU64,
}

impl Told {
    pub fn new(rows: u64) -> Self {
        Self {
            versions: (0..rows).map(|_| AtomicU32::new(0)).collect(),
            since: AtomicU64::new(0),
            turns: AtomicU64::new(0),
        }
    }

    pub fn note(&self, number: u64, version: u64) {
        self.versions[number as usize].fetch_max(version as u32, Ordering::Release);
    }

    pub fn version(&self, number: u64) -> u64 {
        self.versions[number as usize].load(Ordering::Acquire).into()
    }

    pub fn note_since(&self, at: u64) {
        self.since.store(at, Ordering::Release);
    }

    pub fn since(&self) -> u64 {
        self.since.load(Ordering::Acquire)
    }

    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    fn note_turn(&self, listens: bool) {
        if (self.turns() % 2 == 1) != listens {
            self.turns.fetch_add(1, Ordering::Release);
        }
    }
}

/// The feed, as a replica reads it.
pub struct LineFeed {
    args: Args,
    source: Option<Source>,
    told: Arc<Told>,
    /// When it began to listen, until the cache has taken note of that.
    listens_since: Option<u64>,
    /// The change that was returned last, which the cache has applied once it asks for the next.
    returned: Option<(u64, u64)>,
}

impl LineFeed {
    pub fn new(args: &Args, told: Arc<Told>) -> Self {
        Self {
            args: args.clone(),
            source: None,
            told,
            listens_since: None,
            returned: None,
        }
    }
}

impl Feed<u64> for LineFeed {
    async fn listen(&mut self) -> Result<(), BoxError> {
        self.told.note_turn(false);
        self.returned = None;
        self.source = None;
        self.source = Some(Source::connect(&self.args).await?);
        self.listens_since = Some(now());
        Ok(())
    }

    async fn next(&mut self) -> Result<Change<u64>, BoxError> {
        if let Some(since) = self.listens_since.take() {
            self.told.note_since(since);
            self.told.note_turn(true);
        }
        if let Some((number, version)) = self.returned.take() {
            self.told.note(number, version);
        }
        let told = Arc::clone(&self.told);
        let broken = BrokenOnDrop(&told);
        let source = self.source.as_mut().ok_or("it does not listen")?;
        let line = source.line(self.args.silence()).await?;
        let change = match line.split_once(' ') {
            None => Change::Alive,
            Some((number, version)) => {
                let (number, version) = (number.parse()?, version.parse()?);
                self.returned = Some((number, version));
                Change::Written(id_of(number))
            }
        };
        mem::forget(broken);
        Ok(change)
    }
}

/// A call of `next` that fails, or is dropped before it returns, because the feed is silent.
struct BrokenOnDrop<'a>(&'a Told);

impl Drop for BrokenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.note_turn(false);
    }
}
