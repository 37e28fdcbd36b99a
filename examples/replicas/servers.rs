//! The servers of the replicas, and their faults. A server that the program has started is stopped
//! by signals; one that was there before is asked to hang.

use crate::feed::{self, publish_all};
use crate::postgres_server::Postgres;
use crate::redis_server::{Redis, Server};
use crate::store::Store;
use crate::{Args, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

/// The faults of the feed, the replicas and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All its connections end.
    FeedCut,
    /// It says nothing for twice the time of `--silence`.
    FeedFrozen,
    /// Redis is killed, and starts again without its data.
    FeedKilled,
    ReplicaKilled,
    StoreHangs,
    StoreFails,
    /// PostgreSQL crashes, and starts again.
    StoreCrashes,
}

use Fault::*;

pub struct Servers {
    silence: Duration,
    store: Store,
    /// The servers that are this program's own.
    postgres: Option<Postgres>,
    redis: Option<Redis>,
    tcp: Option<feed::Server>,
}

impl Servers {
    /// Starts those that are not there, and puts the addresses of all into `args`.
    pub async fn start(args: &mut Args, folder: &Path) -> Result<Self> {
        let is_asked_for = |url: &Option<String>| url.as_ref().is_some_and(String::is_empty);
        let (mut postgres, mut redis, mut tcp) = (None, None, None);
        if is_asked_for(&args.postgres) {
            let server = Postgres::start()?;
            args.postgres = Some(server.url());
            postgres = Some(server);
        }
        if is_asked_for(&args.redis) {
            let server = Server::default().start().ok_or("redis-server was not found")?;
            args.redis = Some(server.url());
            redis = Some(server);
        }
        let (store, silence) = (Store::create(args, folder).await?, args.silence());
        if let Some(url) = &args.redis {
            publish_all(&store, silence, url)?;
        } else if args.postgres.is_none() {
            let server = feed::Server::start(&store, silence)?;
            args.feed = Some(server.address());
            tcp = Some(server);
        }
        Ok(Self {
            silence,
            store,
            postgres,
            redis,
            tcp,
        })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn faults(&self, args: &Args) -> Vec<Fault> {
        let mut faults = vec![FeedCut, FeedFrozen, ReplicaKilled, StoreHangs, StoreFails];
        // One session of a server cannot be frozen from outside.
        faults.retain(|fault| {
            *fault != FeedFrozen || self.tcp.is_some() || self.postgres.is_some() || args.redis.is_some()
        });
        faults.extend(self.redis.is_some().then_some(FeedKilled));
        faults.extend(self.postgres.is_some().then_some(StoreCrashes));
        faults
    }

    /// Makes trouble for a while. (`main` kills replicas.)
    pub async fn suffer(&mut self, fault: Fault, args: &Args) -> Result<()> {
        match fault {
            FeedCut => self.cut_feed(args).await?,
            FeedFrozen => self.freeze_feed(args).await?,
            StoreHangs => self.hang_store(Duration::from_millis(1200)).await?,
            StoreFails => self.store.fail(Duration::from_millis(300)).await?,
            FeedKilled => self.redis.iter_mut().for_each(Redis::restart),
            StoreCrashes => self.postgres.iter_mut().try_for_each(Postgres::crash)?,
            ReplicaKilled => {}
        }
        Ok(())
    }

    async fn cut_feed(&self, args: &Args) -> Result<()> {
        if let Some(url) = &args.redis {
            return command(url, &["CLIENT", "KILL", "TYPE", "PUBSUB"]);
        }
        match &self.tcp {
            Some(server) => server.cut(),
            None => self.store.cut().await?,
        }
        Ok(())
    }

    async fn freeze_feed(&self, args: &Args) -> Result<()> {
        let time = 2 * self.silence;
        if let Some(redis) = &self.redis {
            let _frozen = redis.freeze();
            sleep(time).await;
        } else if let Some(url) = &args.redis {
            command(url, &["CLIENT", "PAUSE", &time.as_millis().to_string(), "ALL"])?;
            sleep(time).await;
        } else if let Some(server) = &self.tcp {
            server.freeze(true);
            sleep(time).await;
            server.freeze(false);
        } else {
            let _frozen = Frozen::new(self.store.sessions(true).await?)?;
            sleep(time).await;
        }
        Ok(())
    }

    async fn hang_store(&self, time: Duration) -> Result<()> {
        let Some(postgres) = &self.postgres else {
            return self.store.hang(time).await;
        };
        let mut processes = vec![postgres.process()];
        processes.extend(self.store.sessions(false).await?);
        let _frozen = Frozen::new(processes)?;
        sleep(time).await;
        Ok(())
    }
}

fn command(url: &str, words: &[&str]) -> Result<()> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    Ok(redis::cmd(words[0]).arg(&words[1..]).exec(&mut connection)?)
}

/// Processes that are stopped until this is dropped.
struct Frozen(Vec<u32>);

impl Frozen {
    fn new(processes: Vec<u32>) -> Result<Self> {
        let frozen = Self(processes);
        signal(&frozen.0, Signal::STOP)?;
        Ok(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = signal(&self.0, Signal::CONT);
    }
}

/// Sends a signal to each process that has not ended.
pub fn signal(processes: &[u32], signal: Signal) -> Result<()> {
    for process in processes {
        let process = Pid::from_raw(*process as i32).ok_or("not a process")?;
        match kill_process(process, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
