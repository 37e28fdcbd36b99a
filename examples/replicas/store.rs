//! The store: a table of users, of which each change is told by the store itself. Beside it is a
//! file of what is committed, which only the checks read: it tells a replica what the other one has
//! committed, at once and without the feed.

use crate::postgres::{self, Postgres};
use crate::sqlite::{self, Sqlite};
use crate::{Args, Result};
use lanebloom_guard::{BoxError, Keys};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

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
    database: Database,
    commits: Arc<Commits>,
    /// Each write that has begun reads it until it has ended.
    writes: Arc<RwLock<()>>,
}

#[derive(Clone)]
enum Database {
    Sqlite(Sqlite),
    Postgres(Arc<Postgres>),
}

impl Store {
    pub fn open(args: &Args, folder: &Path) -> Result<Self> {
        let database = match &args.postgres {
            Some(url) => Database::Postgres(Arc::new(Postgres::new(url)?)),
            None => Database::Sqlite(Sqlite::new(folder)),
        };
        Ok(Self {
            database,
            commits: Arc::new(Commits::open(folder)?),
            writes: Arc::default(),
        })
    }

    /// Rows 1 to `args.rows`.
    pub async fn create(args: &Args, folder: &Path) -> Result<Self> {
        let store = Self::open(args, folder)?;
        match &store.database {
            Database::Sqlite(database) => database.create(args.rows)?,
            // Redis is told by a process that reads the table of changes.
            Database::Postgres(database) => database.create(args.rows, args.redis.is_some()).await?,
        }
        (1..=args.rows).try_for_each(|number| store.commits.note(number, 1))?;
        Ok(store)
    }

    /// Leaves nothing in a database that was there before.
    pub async fn remove(&self) -> Result<()> {
        match &self.database {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(database) => database.remove().await,
        }
    }

    /// The version of the row of `id`.
    pub async fn read(self, id: u64) -> Result<Option<u64>> {
        match &self.database {
            Database::Sqlite(database) => database.read(id).await,
            Database::Postgres(database) => database.read(id).await,
        }
    }

    /// All ids: a source.
    pub async fn ids(&self, keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
        match &self.database {
            Database::Sqlite(database) => database.ids(keys).await,
            Database::Postgres(database) => database.ids(keys).await,
        }
    }

    /// Adds or changes a row. Returns its version. If the future is dropped, the write goes on.
    pub async fn write(&self, number: u64) -> Result<u64> {
        let store = self.clone();
        let running = Arc::clone(&self.writes).read_owned().await;
        let write = async move {
            let _running = running;
            let version = match &store.database {
                Database::Sqlite(database) => database.write(number).await?,
                Database::Postgres(database) => database.write(number).await?,
            };
            store.commits.note(number, version)?;
            Ok(version)
        };
        tokio::spawn(write).await?
    }

    /// Waits until no write runs.
    pub async fn settle(&self) {
        drop(self.writes.write().await);
    }

    /// The changes, for a process that sends them on.
    pub fn outbox(&self) -> Result<Outbox> {
        Ok(match &self.database {
            Database::Sqlite(database) => Outbox::Sqlite(database.outbox()?),
            Database::Postgres(database) => Outbox::Postgres(postgres::Outbox::new(database)),
        })
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
    pub async fn hang(&self, time: Duration) -> Result<()> {
        match &self.database {
            Database::Sqlite(database) => database.hang(time),
            Database::Postgres(database) => database.hang(time).await,
        }
    }

    /// Reads and writes fail for this time.
    pub async fn fail(&self, time: Duration) -> Result<()> {
        match &self.database {
            Database::Sqlite(database) => database.fail(time),
            Database::Postgres(database) => database.fail(time).await,
        }
    }

    /// The processes of the sessions of PostgreSQL, or of those that listen.
    pub async fn sessions(&self, that_listen: bool) -> Result<Vec<u32>> {
        match &self.database {
            Database::Sqlite(_) => Ok(Vec::new()),
            Database::Postgres(database) => database.sessions(that_listen).await,
        }
    }

    /// Ends the sessions of PostgreSQL that listen.
    pub async fn cut(&self) -> Result<()> {
        match &self.database {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(database) => database.cut().await,
        }
    }
}

/// The table of changes.
pub enum Outbox {
    Sqlite(sqlite::Outbox),
    Postgres(postgres::Outbox),
}

impl Outbox {
    /// The changes that were not sent yet.
    pub async fn read(&mut self) -> Result<Vec<String>> {
        match self {
            Self::Sqlite(outbox) => outbox.read(),
            Self::Postgres(outbox) => outbox.read().await,
        }
    }

    /// Call it once those of the last [`read`](Self::read) are sent. Otherwise they come again.
    pub async fn note_sent(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(outbox) => outbox.note_sent(),
            Self::Postgres(outbox) => outbox.note_sent().await?,
        }
        Ok(())
    }
}
