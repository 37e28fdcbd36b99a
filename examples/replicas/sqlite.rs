//! The store by default: tables of SQLite.

use crate::Result;
use crate::feed::line_of;
use crate::store::id_of;
use lanebloom_guard::{BoxError, Keys};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};
use rustix::fs::{FlockOperation, flock};
use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::spawn_blocking;

#[derive(Clone)]
pub struct Sqlite {
    folder: Arc<PathBuf>,
}

impl Sqlite {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: Arc::new(folder.to_owned()),
        }
    }

    pub fn create(&self, rows: u64) -> Result<()> {
        let mut connection = self.session()?.connection;
        connection.execute_batch(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, version INTEGER NOT NULL);
            CREATE TABLE changes (sequence INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER, version INTEGER);",
        )?;
        let mut ids: Vec<i64> = (1..=rows).map(|number| id_of(number) as i64).collect();
        ids.sort_unstable();
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO users VALUES (?, 1)")?;
            for id in ids {
                insert.execute([id])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Runs `work` on a thread for work that blocks, which keeps its session.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        thread_local! {
            static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
        }
        let folder = Arc::clone(&self.folder);
        let run = move || {
            SESSION.with_borrow_mut(|session| {
                let open = match session.take() {
                    Some(open) => open,
                    None => Session::open(&folder)?,
                };
                session.insert(open).run(work)
            })
        };
        spawn_blocking(run).await?
    }

    pub async fn read(&self, id: u64) -> Result<Option<u64>> {
        self.run(move |connection| {
            let mut query = connection.prepare_cached("SELECT version FROM users WHERE id = ?")?;
            query.query_row([id as i64], |row| unsigned(row, 0)).optional()
        })
        .await
    }

    pub async fn ids(&self, keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
        let mut last = None;
        loop {
            let page = move |connection: &mut Connection| {
                let text = "SELECT id FROM users WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT 1000";
                let mut query = connection.prepare_cached(text)?;
                let ids = query.query_map([last], |row| row.get(0))?;
                ids.collect::<rusqlite::Result<Vec<i64>>>()
            };
            let ids = self.run(page).await?;
            let Some(id) = ids.last() else { return Ok(()) };
            last = Some(*id);
            keys.insert_all(ids.into_iter().map(|id| id as u64))?;
        }
    }

    /// Writes a row, and tells the table of changes in the same transaction.
    pub async fn write(&self, number: u64) -> Result<u64> {
        self.run(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version = {
                let text = "INSERT INTO users VALUES (?, 1)
                    ON CONFLICT (id) DO UPDATE SET version = version + 1 RETURNING version";
                let mut write = transaction.prepare_cached(text)?;
                let version = write.query_row([id_of(number) as i64], |row| unsigned(row, 0))?;
                let text = "INSERT INTO changes (number, version) VALUES (?, ?)";
                transaction
                    .prepare_cached(text)?
                    .execute((number as i64, version as i64))?;
                version
            };
            transaction.commit()?;
            Ok(version)
        })
        .await
    }

    fn session(&self) -> Result<Session> {
        Session::open(&self.folder)
    }

    pub fn outbox(&self) -> Result<Outbox> {
        let session = self.session()?;
        Ok(Outbox {
            session,
            last: 0,
            sent: 0,
        })
    }

    pub fn hang(&self, time: Duration) -> Result<()> {
        let gate = self.session()?.gate;
        flock(&gate, FlockOperation::LockExclusive)?;
        thread::sleep(time);
        Ok(flock(&gate, FlockOperation::Unlock)?)
    }

    pub fn fail(&self, time: Duration) -> Result<()> {
        let connection = self.session()?.connection;
        connection.execute("ALTER TABLE users RENAME TO away", ())?;
        thread::sleep(time);
        connection.execute("ALTER TABLE away RENAME TO users", ())?;
        Ok(())
    }
}

/// A connection, behind a gate that can be shut: no lock of SQLite stops readers in WAL mode.
struct Session {
    connection: Connection,
    gate: File,
}

impl Session {
    fn open(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("users.sqlite"))?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A commit waits for no disk. A killed process takes nothing back, only a power failure
        // does.
        connection.pragma_update(None, "synchronous", "off")?;
        let gate = File::create(folder.join("gate"))?;
        Ok(Self { connection, gate })
    }

    fn run<T>(&mut self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        flock(&self.gate, FlockOperation::LockShared)?;
        let result = work(&mut self.connection);
        flock(&self.gate, FlockOperation::Unlock)?;
        Ok(result?)
    }
}

/// The table of changes. Transactions write one after another, so their numbers are in the order of
/// the commits.
pub struct Outbox {
    session: Session,
    last: i64,
    sent: i64,
}

impl Outbox {
    pub fn read(&mut self) -> Result<Vec<String>> {
        let sent = self.sent;
        let changes = self.session.run(|connection| {
            let text = "SELECT sequence, number, version FROM changes WHERE sequence > ? ORDER BY sequence";
            let mut query = connection.prepare_cached(text)?;
            let line = |row: &Row<'_>| Ok((row.get(0)?, line_of(unsigned(row, 1)?, unsigned(row, 2)?)));
            let changes = query.query_map([sent], line)?;
            changes.collect::<rusqlite::Result<Vec<(i64, String)>>>()
        })?;
        self.last = changes.last().map_or(sent, |(sequence, _)| *sequence);
        Ok(changes.into_iter().map(|(_, line)| line).collect())
    }

    pub fn note_sent(&mut self) {
        self.sent = self.last;
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, u32>(column).map(u64::from)
}
