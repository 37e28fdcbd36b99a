//! The feed: a server that reads the table of changes and sends them to all who listen, as lines of
//! text, and a `Feed` that reads them.

use crate::Result;
use crate::store::{Store, id_of, now};
use lanebloom_guard::{BoxError, Change, Feed};
use std::io::Write;
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

/// The pause of the server between looks into the table.
const POLL: Duration = Duration::from_millis(2);

pub struct Server {
    address: SocketAddr,
    listeners: Arc<Mutex<Vec<TcpStream>>>,
    is_frozen: Arc<AtomicBool>,
}

impl Server {
    pub fn start(folder: &Path, silence: Duration) -> Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0")?;
        let server = Self {
            address: socket.local_addr()?,
            listeners: Arc::default(),
            is_frozen: Arc::default(),
        };
        let (listeners, is_frozen) = (Arc::clone(&server.listeners), Arc::clone(&server.is_frozen));
        thread::spawn(move || {
            for stream in socket.incoming().filter_map(std::io::Result::ok) {
                while is_frozen.load(Ordering::Relaxed) {
                    thread::sleep(POLL);
                }
                let _ = stream.set_nodelay(true);
                // From here on, it is sent every change that is committed. The greeting is its
                // first line, since changes are sent under the lock.
                let mut listeners = lock(&listeners);
                if (&stream).write_all(b"listening\n").is_ok() {
                    listeners.push(stream);
                }
            }
        });
        let mut session = Store::open(folder)?.session()?;
        let (listeners, is_frozen) = (Arc::clone(&server.listeners), Arc::clone(&server.is_frozen));
        thread::spawn(move || {
            let (mut last, mut sent) = (0, Instant::now());
            loop {
                thread::sleep(POLL);
                if is_frozen.load(Ordering::Relaxed) {
                    continue;
                }
                // It says that it is alive only if it could read the table.
                let Ok(changes) = session.changes(last) else {
                    continue;
                };
                let mut lines = String::new();
                for (sequence, number, version) in changes {
                    last = sequence;
                    lines += &format!("{number} {version}\n");
                }
                if lines.is_empty() && sent.elapsed() > silence / 4 {
                    lines += "alive\n";
                }
                if !lines.is_empty() {
                    sent = Instant::now();
                    lock(&listeners).retain_mut(|stream| stream.write_all(lines.as_bytes()).is_ok());
                }
            }
        });
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a replica was told, for its checks.
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
pub struct TcpFeed {
    server: SocketAddr,
    lines: Option<Lines<BufReader<tokio::net::TcpStream>>>,
    told: Arc<Told>,
    /// When it began to listen, until the cache has taken note of that.
    listens_since: Option<u64>,
    /// The change that was returned last, which the cache has applied once it asks for the next.
    returned: Option<(u64, u64)>,
}

impl TcpFeed {
    pub fn new(server: SocketAddr, told: Arc<Told>) -> Self {
        Self {
            server,
            lines: None,
            told,
            listens_since: None,
            returned: None,
        }
    }

    async fn line(&mut self) -> Result<String> {
        let lines = self.lines.as_mut().ok_or("it is not connected")?;
        Ok(lines.next_line().await?.ok_or("the connection is closed")?)
    }
}

impl Feed<u64> for TcpFeed {
    async fn listen(&mut self) -> Result<(), BoxError> {
        self.told.note_turn(false);
        self.returned = None;
        let stream = tokio::net::TcpStream::connect(self.server).await?;
        self.lines = Some(BufReader::new(stream).lines());
        // The server's word that it sends all changes from now on.
        self.line().await?;
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
        let line = self.line().await?;
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
