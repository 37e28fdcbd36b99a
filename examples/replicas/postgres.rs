//! The store in PostgreSQL. A trigger tells each change, in the transaction that makes it: by
//! NOTIFY, or in a table of changes for a process that sends them on.

use crate::Result;
use crate::feed::line_of;
use crate::store::id_of;
use futures_util::TryStreamExt;
use lanebloom_guard::{BoxError, Keys};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Statement};

/// Everything of this program is in this schema. The channel has the same name.
const SCHEMA: &str = "lanebloom_replicas";

/// By this name the sessions that listen are found.
const LISTENS: &str = "lanebloom_replicas_listen";

pub struct Postgres {
    config: Config,
    // Apart, so that no read waits behind a write that waits for a lock.
    reads: Pipeline,
    writes: Pipeline,
}

/// The parameters of a connection.
fn config(url: &str) -> Result<Config> {
    let mut config: Config = url.parse()?;
    config.options(format!("-c search_path={SCHEMA}"));
    Ok(config)
}

/// Calls `notified` with the payload of each notification, until the connection ends.
async fn connect(config: &Config, notified: impl Fn(String) + Send + 'static) -> Result<Client> {
    let (client, mut connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                notified(notification.payload().to_owned());
            }
        }
    });
    Ok(client)
}

/// A connection that many tasks share, opened again after it broke. The server takes their
/// statements one after another, and nobody waits for an answer before the next one is sent.
struct Pipeline {
    config: Config,
    session: Mutex<Option<Arc<Session>>>,
}

struct Session {
    client: Client,
    read: Statement,
    write: Statement,
}

impl Pipeline {
    fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            session: Mutex::default(),
        }
    }

    async fn session(&self) -> Result<Arc<Session>> {
        let mut session = self.session.lock().await;
        if let Some(open) = session.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let client = connect(&self.config, drop).await?;
        let read = client.prepare("SELECT version FROM users WHERE id = $1").await?;
        let write = "INSERT INTO users VALUES ($1, $2, 1)
            ON CONFLICT (id) DO UPDATE SET version = users.version + 1 RETURNING version";
        let write = client.prepare(write).await?;
        Ok(Arc::clone(session.insert(Arc::new(Session { client, read, write }))))
    }
}

impl Postgres {
    pub fn new(url: &str) -> Result<Self> {
        let config = config(url)?;
        let (reads, writes) = (Pipeline::new(&config), Pipeline::new(&config));
        Ok(Self { config, reads, writes })
    }

    async fn connect(&self) -> Result<Client> {
        connect(&self.config, drop).await
    }

    pub async fn create(&self, rows: u64, has_outbox: bool) -> Result<()> {
        let client = self.connect().await?;
        let tell = match has_outbox {
            true => String::from("INSERT INTO changes (number, version) VALUES (NEW.number, NEW.version)"),
            false => format!("PERFORM pg_notify('{SCHEMA}', NEW.number || ' ' || NEW.version)"),
        };
        let tables = format!(
            "DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;
            CREATE SCHEMA {SCHEMA};
            CREATE TABLE users (id BIGINT PRIMARY KEY, number BIGINT NOT NULL, version INT NOT NULL);
            CREATE TABLE changes (sequence BIGSERIAL PRIMARY KEY, number BIGINT NOT NULL, version INT NOT NULL);
            CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {}; RETURN NULL; END';",
            tell.replace('\'', "''"),
        );
        client.batch_execute(&tables).await?;
        let (ids, numbers): (Vec<i64>, Vec<i64>) =
            (1..=rows).map(|number| (id_of(number) as i64, number as i64)).unzip();
        let insert =
            "INSERT INTO users SELECT id, number, 1 FROM unnest($1::bigint[], $2::bigint[]) AS row (id, number)";
        client.execute(insert, &[&ids, &numbers]).await?;
        let trigger = "CREATE TRIGGER tell AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION tell()";
        Ok(client.batch_execute(trigger).await?)
    }

    pub async fn remove(&self) -> Result<()> {
        let client = self.connect().await?;
        Ok(client.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE")).await?)
    }

    pub async fn read(&self, id: u64) -> Result<Option<u64>> {
        let session = self.reads.session().await?;
        let row = session.client.query_opt(&session.read, &[&(id as i64)]).await?;
        Ok(row.map(|row| row.get::<_, i32>(0) as u64))
    }

    /// By a connection of its own: in the pipeline, reads would wait for all ids.
    pub async fn ids(&self, keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
        let client = self.connect().await?;
        let rows = client.query_raw("SELECT id FROM users", &[] as &[i64]).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            keys.insert(row.get::<_, i64>(0) as u64)?;
        }
        Ok(())
    }

    /// Writes a row. The trigger tells it.
    pub async fn write(&self, number: u64) -> Result<u64> {
        let session = self.writes.session().await?;
        let (id, number) = (id_of(number) as i64, number as i64);
        let row = session.client.query_one(&session.write, &[&id, &number]).await?;
        Ok(row.get::<_, i32>(0) as u64)
    }

    pub async fn hang(&self, time: Duration) -> Result<()> {
        let client = self.connect().await?;
        client.batch_execute("BEGIN; LOCK TABLE users").await?;
        sleep(time).await;
        Ok(client.batch_execute("COMMIT").await?)
    }

    pub async fn fail(&self, time: Duration) -> Result<()> {
        let client = self.connect().await?;
        client.batch_execute("ALTER TABLE users RENAME TO away").await?;
        sleep(time).await;
        Ok(client.batch_execute("ALTER TABLE away RENAME TO users").await?)
    }

    pub async fn sessions(&self, that_listen: bool) -> Result<Vec<u32>> {
        let client = self.connect().await?;
        let text = "SELECT pid FROM pg_stat_activity WHERE NOT $1 OR application_name = $2";
        let rows = client.query(text, &[&that_listen, &LISTENS]).await?;
        Ok(rows.iter().map(|row| row.get::<_, i32>(0) as u32).collect())
    }

    pub async fn cut(&self) -> Result<()> {
        let client = self.connect().await?;
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        client.execute(text, &[&LISTENS]).await?;
        Ok(())
    }
}

/// The table of changes. Transactions commit in another order than that of their numbers, so "all
/// after the last number" would miss some. A change is removed once it is sent.
pub struct Outbox {
    database: Arc<Postgres>,
    read: Vec<i64>,
}

impl Outbox {
    pub fn new(database: &Arc<Postgres>) -> Self {
        Self {
            database: Arc::clone(database),
            read: Vec::new(),
        }
    }

    pub async fn read(&mut self) -> Result<Vec<String>> {
        let session = self.database.reads.session().await?;
        let text = "SELECT sequence, number, version FROM changes ORDER BY sequence";
        let rows = session.client.query(text, &[]).await?;
        self.read = rows.iter().map(|row| row.get(0)).collect();
        let line = |row: &tokio_postgres::Row| line_of(row.get::<_, i64>(1) as u64, row.get::<_, i32>(2) as u64);
        Ok(rows.iter().map(line).collect())
    }

    pub async fn note_sent(&mut self) -> Result<()> {
        let session = self.database.reads.session().await?;
        let text = "DELETE FROM changes WHERE sequence = ANY ($1)";
        session.client.execute(text, &[&self.read]).await?;
        self.read.clear();
        Ok(())
    }
}

/// A connection that listens.
pub struct Listener {
    client: Client,
    notifications: mpsc::UnboundedReceiver<String>,
}

impl Listener {
    /// Once it is made, every change that is committed from now on comes.
    pub async fn new(url: &str) -> Result<Self> {
        let mut config = config(url)?;
        config.application_name(LISTENS);
        let (sender, notifications) = mpsc::unbounded_channel();
        let client = connect(&config, move |payload| drop(sender.send(payload))).await?;
        client.batch_execute(&format!("LISTEN {SCHEMA}")).await?;
        Ok(Self { client, notifications })
    }

    /// The next change; "alive" if there was none for `pause`. Then it asks, because the process of
    /// the server that tells is the one that responds.
    pub async fn line(&mut self, pause: Duration) -> Result<String> {
        if let Ok(line) = timeout(pause, self.notifications.recv()).await {
            return Ok(line.ok_or("the connection is closed")?);
        }
        self.client.batch_execute("").await?;
        Ok(String::from("alive"))
    }
}
