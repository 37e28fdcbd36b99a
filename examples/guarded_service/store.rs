//! The rows: an SQLite database in a file, and the ids of its rows.

use crate::Result;
use axum::body::Bytes;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;

const ID_BITS: u32 = 48;

/// The id of the n-th row. Different numbers below 2^48 have different ids, because the factor is
/// odd; so a number without a row gives a made-up id.
pub fn id_of(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << ID_BITS)
}

/// The number of a row that never exists, for any `random`.
pub fn made_up(random: u64) -> u64 {
    const MAX_ROWS: u64 = 1 << 40;
    MAX_ROWS + random % ((1 << ID_BITS) - MAX_ROWS)
}

/// The row of an id. It follows from the id, so that a client notices a wrong one.
pub fn row_of(id: u64) -> String {
    format!(r#"{{"id":{id},"name":"User {id}","mail":"user-{id}@mail.example","plan":"basic"}}"#)
}

/// A pool of connections that read, and one that writes.
pub struct Store {
    path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    free: Semaphore,
    writer: Mutex<Connection>,
    queries: AtomicU64,
    in_vain: AtomicU64,
}

/// Reads so far.
#[derive(Clone, Copy, Default)]
pub struct Queries {
    pub all: u64,
    /// Queries that found no row.
    pub in_vain: u64,
}

impl Store {
    /// A database of the rows 0 to `rows` in a new file of `folder`, with `connections` readers.
    pub fn create(folder: &Path, rows: u64, connections: usize) -> Result<Arc<Self>> {
        let began = Instant::now();
        let path = folder.join("users.sqlite");
        let mut writer = Connection::open(&path)?;
        writer.pragma_update(None, "journal_mode", "wal")?;
        // In WAL mode a commit then waits for no disk; a power failure may take the last ones back.
        writer.pragma_update(None, "synchronous", "normal")?;
        writer.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, row TEXT NOT NULL)", ())?;
        // A B-tree is filled fastest in the order of its keys.
        let mut ids: Vec<u64> = (0..rows).map(id_of).collect();
        ids.sort_unstable();
        let transaction = writer.transaction()?;
        {
            let mut insert = transaction.prepare(INSERT)?;
            for id in ids {
                insert.execute((id as i64, row_of(id)))?;
            }
        }
        transaction.commit()?;
        writer.pragma_update(None, "wal_checkpoint", "truncate")?;
        println!(
            "store: {rows} rows, {} MB, in {:.1} s",
            path.metadata()?.len() >> 20,
            began.elapsed().as_secs_f64()
        );
        let readers = (0..connections)
            .map(|_| Connection::open(&path))
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Self {
            path,
            readers: Mutex::new(readers),
            free: Semaphore::new(connections),
            writer: Mutex::new(writer),
            queries: AtomicU64::new(0),
            in_vain: AtomicU64::new(0),
        }))
    }

    /// Reads the row of `id`, on a thread for work that blocks, once a connection is free.
    pub async fn get(self: Arc<Self>, id: u64) -> Result<Option<Bytes>> {
        let store = Arc::clone(&self);
        let _permit = self.free.acquire().await?;
        spawn_blocking(move || {
            let readers = || store.readers.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = readers().pop().ok_or("no connection is free")?;
            let row = read(&connection, id);
            readers().push(connection);
            store.queries.fetch_add(1, Ordering::Relaxed);
            if let Ok(None) = row {
                store.in_vain.fetch_add(1, Ordering::Relaxed);
            }
            Ok(row?)
        })
        .await?
    }

    /// Adds the row of `id`, in a transaction of its own.
    pub async fn add(self: Arc<Self>, id: u64) -> Result<()> {
        spawn_blocking(move || {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.prepare_cached(INSERT)?.execute((id as i64, row_of(id)))?;
            Ok(())
        })
        .await?
    }

    /// Batches of all ids, on a connection of their own. It ends early if the receiver is dropped.
    pub fn ids(&self) -> mpsc::Receiver<rusqlite::Result<Vec<u64>>> {
        let (batches, receiver) = mpsc::channel(2);
        let path = self.path.clone();
        spawn_blocking(move || {
            let read = || {
                let connection = Connection::open(path)?;
                let mut ids = connection.prepare("SELECT id FROM users")?;
                let mut ids = ids.query_map((), |row| row.get(0).map(|id: i64| id as u64))?;
                loop {
                    let batch = ids.by_ref().take(4096).collect::<rusqlite::Result<Vec<_>>>()?;
                    if batch.is_empty() || batches.blocking_send(Ok(batch)).is_err() {
                        return Ok(());
                    }
                }
            };
            if let Err(error) = read() {
                let _ = batches.blocking_send(Err(error));
            }
        });
        receiver
    }

    pub fn queries(&self) -> Queries {
        Queries {
            all: self.queries.load(Ordering::Relaxed),
            in_vain: self.in_vain.load(Ordering::Relaxed),
        }
    }
}

const INSERT: &str = "INSERT INTO users VALUES (?, ?)";

fn read(connection: &Connection, id: u64) -> rusqlite::Result<Option<Bytes>> {
    let mut query = connection.prepare_cached("SELECT row FROM users WHERE id = ?")?;
    let row = query.query_row([id as i64], |row| row.get::<_, String>(0)).optional()?;
    Ok(row.map(Bytes::from))
}
