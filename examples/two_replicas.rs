//! Two replicas of a service, to copy. The rows are in PostgreSQL, the ids in a [`SharedSet`] in
//! Redis, and a feed (`LISTEN`) tells each replica of the changes that others make.
//!
//! ```sh
//! export POSTGRES="host=127.0.0.1 user=postgres" REDIS=redis://127.0.0.1/
//! cargo run --bin two_replicas --features redis,replicas -- 17
//! ```
//!
//! Run it in two terminals. Each process writes the row of its argument, and gets some rows every
//! second, which it prints.

use futures_util::TryStreamExt;
use lanebloom::{ConcurrentBloom, SipHash13};
use lanebloom_guard::future::GuardedCache;
use lanebloom_guard::{BoxError, Change, Feed, Keys};
use lanebloom_redis::{SharedBloom, SharedError, SharedSet};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, NoTls};

const SILENCE: Duration = Duration::from_secs(2);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The trigger tells each change, in its transaction.
const SCHEMA: &str = "CREATE TABLE users (id BIGINT PRIMARY KEY, name TEXT NOT NULL);
    CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_notify('users', COALESCE(NEW.id, OLD.id)::text); RETURN NULL; END $$;
    CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION tell()";

type Ids = SharedSet<SipHash13>;

async fn connect(url: &str, told: UnboundedSender<String>) -> Result<Client, BoxError> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(change) = message {
                let _ = told.send(change.payload().into());
            }
        }
    });
    Ok(client)
}

struct Listen(String, Option<(Client, UnboundedReceiver<String>)>);

impl Feed<i64> for Listen {
    async fn listen(&mut self) -> Result<(), BoxError> {
        let (send, receive) = unbounded_channel();
        let client = connect(&self.0, send).await?;
        client.batch_execute("LISTEN users").await?;
        self.1 = Some((client, receive));
        Ok(())
    }
    async fn next(&mut self) -> Result<Change<i64>, BoxError> {
        let (client, told) = self.1.as_mut().ok_or("it does not listen")?;
        match timeout(SILENCE / 4, told.recv()).await {
            Ok(id) => Ok(Change::Written(id.ok_or("the connection ended")?.parse()?)),
            // The end of the connection that tells must answer.
            Err(_) => Ok(client.simple_query("").await.map(|_| Change::Alive)?),
        }
    }
}

// The recipe begins here.

/// The one query for all ids, each of which `take` is given.
async fn read_ids(url: &str, mut take: impl FnMut(i64) -> Result<(), BoxError>) -> Result<(), BoxError> {
    let client = connect(url, unbounded_channel().0).await?;
    let mut rows = pin!(client.query_raw("SELECT id FROM users", &[] as &[i64]).await?);
    while let Some(row) = rows.try_next().await? {
        take(row.get(0))?;
    }
    Ok(())
}

async fn read_name(store: Arc<Client>, id: i64) -> Result<Option<String>, BoxError> {
    let row = store.query_opt("SELECT name FROM users WHERE id = $1", &[&id]).await?;
    Ok(row.map(|row| row.get(0)))
}

fn connect_ids(redis: &str) -> Result<Ids, BoxError> {
    let hasher = SipHash13::with_key(*b"from the secrets");
    let filter = |keys| ConcurrentBloom::builder().expected_keys(keys);
    let build = move |keys| filter(keys).hasher(hasher).build();
    let builder = SharedBloom::builder("users").open_above_lag(SILENCE);
    Ok(builder.connect_set(redis::Client::open(redis)?, 100_000, build)?)
}

/// At once if the set is outgrown, and once a day, to forget removed rows.
fn rebuild_if_due(ids: &Ids) -> Result<bool, SharedError> {
    let age = if ids.is_outgrown() { Duration::ZERO } else { DAY };
    let keys = (2 * ids.statistics().len).max(100_000);
    Ok(ids.stats().is_filled && ids.rebuild_if_older(age, keys, SILENCE)?)
}

/// In every replica: one of them reads the store, and the others wait.
async fn maintain(ids: &Ids, url: String) -> Result<(), BoxError> {
    let set = ids.clone();
    spawn_blocking(move || rebuild_if_due(&set)).await??;
    let source = async move |ids: &ConcurrentBloom<_>| read_ids(&url, |id| Ok(_ = ids.insert(&id))).await;
    Ok(ids.fill_once_async(DAY, source).await.map(drop)?)
}

async fn start(url: String, ids: Ids) -> Result<GuardedCache<i64, String, Ids>, BoxError> {
    let (node, store) = (ids.clone(), Arc::new(connect(&url, unbounded_channel().0).await?));
    let builder = GuardedCache::<i64, String>::builder().filter(move |_| Ok::<_, BoxError>(node.clone()));
    let cache = builder.build(move |id| read_name(store.clone(), id))?;
    let (feed, url_of_set) = (Listen(url.clone(), None), url.clone());
    let source = async move |keys: &mut Keys<'_, i64>| read_ids(&url, |id| Ok(keys.insert(id)?)).await;
    tokio::spawn(cache.follow(feed, SILENCE, source));
    tokio::spawn(async move {
        loop {
            let kept = maintain(&ids, url_of_set.clone()).await;
            kept.unwrap_or_else(|error| eprintln!("the set of ids: {error}"));
            sleep(Duration::from_secs(1)).await;
        }
    });
    Ok(cache)
}

// The recipe ends here.

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (url, redis) = (std::env::var("POSTGRES")?, std::env::var("REDIS")?);
    let store = connect(&url, unbounded_channel().0).await?;
    let _ = store.batch_execute(SCHEMA).await; // unless the other one has
    let ids = spawn_blocking(move || connect_ids(&redis)).await??;
    let cache = start(url, ids.clone()).await?;
    if let Some(id) = std::env::args().nth(1) {
        let (id, name) = (id.parse::<i64>()?, format!("user {id}"));
        // The store first, then the cache, then the server; the client has the id after that.
        store
            .execute(
                "INSERT INTO users VALUES ($1, $2) ON CONFLICT DO NOTHING",
                &[&id, &name],
            )
            .await?;
        cache.insert(&id);
        ids.sync_async(SILENCE).await?;
    }
    for _ in 0..std::env::var("SECONDS_TO_RUN").map_or(Ok(u64::MAX), |text| text.parse())? {
        for id in 15..20 {
            println!("{id}: {:?}", cache.get(&id).await?);
        }
        println!(
            "open: {}, filled here: {}, loads: {}",
            cache.guard().is_open(),
            ids.stats().fills,
            cache.stats().loads
        );
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
