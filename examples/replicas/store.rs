//! The store: a table of users in SQLite, and a table of its changes, which each transaction writes
//! to. Beside it is a file of what is committed, which only the checks read: it tells a replica
//! what the other one has committed, at once and without the feed.

use crate::Result;
use lanebloom_guard::{BoxError, Keys};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};
use rustix::fs::{FlockOperation, flock};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// The number of the row that is written last.
pub const LAST: u64 = 0;

/// The id of the n-th row. Different numbers have different ids, because the factor is odd.
pub fn id_of(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The time in µs, the same for all processes of a machine. It does not jump.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// A committed row.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// The number of its changes.
    pub version: u64,
    pub at: u64,
}

/// The last commit of each row: twice a word, by the row's number. If the two differ, they are
/// being written.
struct Commits(File);

const VERSION_BITS: u32 = 16;

impl Commits {
    fn open(folder: &Path) -> Result<Self> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        Ok(Self(options.open(folder.join("commits"))?))
    }

    fn note(&self, number: u64, version: u64) -> Result<()> {
        let word = (now() << VERSION_BITS | version).to_le_bytes();
        Ok(self.0.write_all_at(&[word, word].concat(), number * 16)?)
    }

    fn of(&self, number: u64) -> Option<Commit> {
        let mut words = [0; 16];
        self.0.read_exact_at(&mut words, number * 16).ok()?;
        let (word, copy) = words.split_at(8);
        let word = u64::from_le_bytes(word.try_into().ok().filter(|_| word == copy)?);
        (word > 0).then_some(Commit {
            version: word % (1 << VERSION_BITS),
            at: word >> VERSION_BITS,
        })
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len() / 16)
    }
}

#[derive(Clone)]
pub struct Store {
    folder: Arc<PathBuf>,
    commits: Arc<Commits>,
}

impl Store {
    /// Rows 1 to `rows`.
    pub fn create(folder: &Path, rows: u64) -> Result<Self> {
        let store = Self::open(folder)?;
        let mut connection = store.session()?.connection;
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
        transaction.commit()?;
        (1..=rows).try_for_each(|number| store.commits.note(number, 1))?;
        Ok(store)
    }

    pub fn open(folder: &Path) -> Result<Self> {
        Ok(Self {
            folder: Arc::new(folder.to_owned()),
            commits: Arc::new(Commits::open(folder)?),
        })
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

    /// The version of the row of `id`.
    pub async fn read(self, id: u64) -> Result<Option<u64>> {
        self.run(move |connection| {
            let mut query = connection.prepare_cached("SELECT version FROM users WHERE id = ?")?;
            query.query_row([id as i64], |row| unsigned(row, 0)).optional()
        })
        .await
    }

    /// All ids, page by page: a source.
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

    /// Adds or changes a row, and tells the table of changes in the same transaction. Returns the
    /// row's version.
    pub fn write(&self, number: u64) -> Result<u64> {
        let version = self.session()?.run(|connection| write(connection, number))?;
        self.commits.note(number, version)?;
        Ok(version)
    }

    /// [`write`](Self::write) that goes on if the future is dropped.
    pub async fn write_behind(&self, number: u64) -> Result<u64> {
        let commits = Arc::clone(&self.commits);
        let write = move |connection: &mut Connection| {
            let version = write(connection, number)?;
            Ok(commits.note(number, version).map(|()| version))
        };
        self.run(write).await?
    }

    pub fn session(&self) -> Result<Session> {
        Session::open(&self.folder)
    }

    /// The last commit of a row, for checks.
    pub fn commit(&self, number: u64) -> Option<Commit> {
        self.commits.of(number)
    }

    /// One more than the largest number of a committed row.
    pub fn end(&self) -> Result<u64> {
        self.commits.len()
    }

    /// Reads and writes wait for this time.
    pub fn hang(&self, time: Duration) -> Result<()> {
        let gate = self.session()?.gate;
        flock(&gate, FlockOperation::LockExclusive)?;
        thread::sleep(time);
        Ok(flock(&gate, FlockOperation::Unlock)?)
    }

    /// Reads and writes fail for this time.
    pub fn fail(&self, time: Duration) -> Result<()> {
        let connection = self.session()?.connection;
        connection.execute("ALTER TABLE users RENAME TO away", ())?;
        thread::sleep(time);
        connection.execute("ALTER TABLE away RENAME TO users", ())?;
        Ok(())
    }
}

/// A connection, behind a gate that can be shut: no lock of SQLite stops readers in WAL mode.
pub struct Session {
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

    /// The changes after the one of number `last`, each with its number, the row's number and its
    /// version.
    pub fn changes(&mut self, last: i64) -> Result<Vec<(i64, u64, u64)>> {
        self.run(|connection| {
            let text = "SELECT sequence, number, version FROM changes WHERE sequence > ? ORDER BY sequence";
            let mut query = connection.prepare_cached(text)?;
            let changes = query.query_map([last], |row| Ok((row.get(0)?, unsigned(row, 1)?, unsigned(row, 2)?)))?;
            changes.collect()
        })
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, u32>(column).map(u64::from)
}

fn write(connection: &mut Connection, number: u64) -> rusqlite::Result<u64> {
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
}
