//! Two replicas of a service over one store, each with a `GuardedCache` that follows a feed of the
//! changes that the other makes. The main process makes trouble: it cuts and freezes the feed,
//! kills replicas, hangs the store and makes it fail, stops and kills servers. Requests and writes
//! are cancelled, too. The replicas count the rows that they refused although they were told of
//! them, and the values that are older than what they were told. If there is one, the exit code
//! says so.
//!
//! ```sh
//! cargo run --release --bin replicas --features replicas
//! cargo run --release --bin replicas --features replicas -- --requests 500000
//! cargo run --release --bin replicas --features replicas -- --replicas 1
//! cargo run --release --bin replicas --features replicas -- --postgres
//! cargo run --release --bin replicas --features replicas -- --postgres --redis
//! cargo run --release --bin replicas --features replicas -- --redis
//! ```
//!
//! | options | the store | the feed | who sends it |
//! |---|---|---|---|
//! | | SQLite | TCP | a thread of the main process, from a table of changes |
//! | `--postgres` | PostgreSQL | `LISTEN`/`NOTIFY` | a trigger, in the transaction |
//! | `--redis` | SQLite | pub/sub | a thread of the main process, from a table of changes |
//! | both | PostgreSQL | pub/sub | the same, from a table that a trigger fills |
//!
//! Without a URL the options start a server of the program's own, which is stopped by SIGSTOP and
//! killed, too. A server that a URL names (`--redis redis://127.0.0.1/`) should be one for tests:
//! its subscribers are cut, and it is asked to pause.
//!
//! `feed.rs` has both ends of the feed, `replica.rs` the cache and its checks, `servers.rs` the
//! faults.

mod feed;
mod postgres;
mod postgres_server;
#[path = "../../crates/redis/tests/servers/redis_server.rs"]
mod redis_server;
mod replica;
mod servers;
mod sqlite;
mod store;

use clap::{Parser, value_parser};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use replica::{Counts, Order};
use servers::{Fault, Servers};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Runs replicas of a service that follow a feed of changes, breaks what they depend on, and counts
/// the valid ids that they refuse.
#[derive(Clone, Parser)]
struct Args {
    /// Requests of all replicas together, at least: they go on until they have met each fault
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Requests per second of each replica
    #[arg(long, default_value_t = 5000, value_parser = value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// Rows that each replica writes per second
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=1000))]
    writes: u64,
    /// Replicas; a single one follows no feed, and meets no faults
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u64).range(1..=8))]
    replicas: u64,
    /// Rows in the store at first
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    rows: u64,
    /// Milliseconds without a word after which the feed counts as broken
    #[arg(long, default_value_t = 500, value_parser = value_parser!(u64).range(10..=60_000))]
    silence: u64,
    /// No faults
    #[arg(long)]
    calm: bool,
    /// The store in PostgreSQL, and the feed by NOTIFY. Without a URL, a server is started
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    postgres: Option<String>,
    /// The feed by Redis. Without a URL, a server is started
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    redis: Option<String>,
    /// Seed of requests and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of this process, if it is a replica: `main` starts replicas this way
    #[arg(long, hide = true, requires = "folder")]
    replica: Option<u64>,
    /// The folder of SQLite and of what the checks read
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
    /// The feed's server, without PostgreSQL and Redis
    #[arg(long, hide = true)]
    feed: Option<SocketAddr>,
}

impl Args {
    fn silence(&self) -> Duration {
        Duration::from_millis(self.silence)
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    // The blocking threads read SQLite.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        match (args.replica, &args.folder) {
            (Some(me), Some(folder)) => replica::serve(me, &args, folder).await,
            _ => all(args).await,
        }
    });
    runtime.shutdown_background();
    result
}

/// A replica, seen from `main`: one process after another.
struct Replica {
    me: u64,
    process: Child,
    /// The lines that it prints beside its counts.
    lines: mpsc::Receiver<String>,
}

impl Replica {
    /// `counts` has the last counts of each process of this replica.
    fn start(me: u64, args: &Args, folder: &Path, counts: Arc<Mutex<Vec<Counts>>>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        for (name, value) in [
            ("--replica", me),
            ("--rate", args.rate),
            ("--writes", args.writes),
            ("--replicas", args.replicas),
            ("--rows", args.rows),
            ("--silence", args.silence),
            ("--seed", args.seed),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command.arg("--folder").arg(folder);
        let addresses = [
            ("--feed", args.feed.map(|feed| feed.to_string())),
            ("--postgres", args.postgres.clone()),
            ("--redis", args.redis.clone()),
        ];
        for (name, address) in addresses {
            if let Some(address) = address {
                command.arg(name).arg(address);
            }
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        let (sender, lines) = mpsc::channel();
        let place = {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.push(Counts::default());
            counts.len() - 1
        };
        thread::spawn(move || {
            for line in output.lines().map_while(std::io::Result::ok) {
                match Counts::parse(&line) {
                    Some(latest) => counts.lock().unwrap_or_else(PoisonError::into_inner)[place] = latest,
                    None => {
                        let _ = sender.send(line);
                    }
                }
            }
        });
        Ok(Self { me, process, lines })
    }

    fn order(&mut self, order: Order) -> Result<()> {
        let input = self.process.stdin.as_mut().ok_or("no stdin")?;
        Ok(writeln!(input, "{order}")?)
    }

    fn line(&self) -> Result<String> {
        let long = Duration::from_secs(120);
        let silent = |_| format!("replica {} has ended or hangs", self.me);
        Ok(self.lines.recv_timeout(long).map_err(silent)?)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // On Unix, this is a SIGKILL.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn all(mut args: Args) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut servers = Servers::start(&mut args, folder.path()).await?;
    let args = &args;
    let counts: Vec<Arc<Mutex<Vec<Counts>>>> = (0..args.replicas).map(|_| Arc::default()).collect();
    let start = |me: u64| {
        let counts = Arc::clone(&counts[me as usize]);
        Replica::start(me, args, folder.path(), counts)
    };
    let mut replicas = (0..args.replicas).map(start).collect::<Result<Vec<_>>>()?;
    let sum = || {
        let mut sum = Counts::default();
        for counts in &counts {
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.iter().for_each(|counts| sum.add(counts));
        }
        sum
    };

    let mut rng = SmallRng::seed_from_u64(args.seed);
    let is_calm = args.calm || args.replicas == 1;
    let kinds = servers.faults(args);
    let mut faults = 0;
    let planned = Duration::from_secs(args.requests / (args.rate * args.replicas));
    let limit = Duration::from_secs(120) + 4 * planned;
    let began = Instant::now();
    loop {
        let sum = sum();
        let has_met_faults = is_calm || faults % kinds.len() == 0 && sum.has_met_faults();
        if sum.requests() >= args.requests && has_met_faults {
            break;
        }
        if began.elapsed() > limit {
            return Err(format!("a replica has ended or hangs, or met no faults in {limit:?}:\n{sum}").into());
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(500..1500))).await;
        if is_calm {
            continue;
        }
        let fault = kinds[faults % kinds.len()];
        if fault == Fault::ReplicaKilled {
            let me = (faults / kinds.len()) as u64 % args.replicas;
            // The process ends first: a number of a row has one writer at a time.
            drop(replicas.remove(me as usize));
            replicas.insert(me as usize, start(me)?);
        }
        let breaks_store = [Fault::StoreHangs, Fault::StoreFails, Fault::StoreCrashes].contains(&fault);
        let tell = |replicas: &mut [Replica], works| match breaks_store {
            true => replicas
                .iter_mut()
                .try_for_each(|replica| replica.order(Order::Store(works))),
            false => Ok(()),
        };
        tell(&mut replicas, false)?;
        servers.suffer(fault, args).await?;
        tell(&mut replicas, true)?;
        faults += 1;
    }

    for replica in &mut replicas {
        replica.order(Order::Stop)?;
    }
    for replica in &replicas {
        while replica.line()? != "stopped" {}
    }
    // No process writes any more. Once a replica is told of this row, it was told of all.
    let last = servers.store().write(store::LAST).await?;
    println!("{faults} faults in {:.0?}: {kinds:?} in turn", began.elapsed());
    for replica in &mut replicas {
        replica.order(Order::Check(last))?;
    }
    for replica in &replicas {
        for _ in 0..replica::SUMMARY {
            println!("replica {}: {}", replica.me, replica.line()?);
        }
    }
    for replica in &mut replicas {
        let status = replica.process.wait()?;
        if !status.success() {
            return Err(format!("replica {}: {status}", replica.me).into());
        }
    }
    let sum = sum();
    println!("{sum}");
    if sum.is_wrong() {
        return Err("valid ids were refused, or values were older than what was told".into());
    }
    servers.store().remove().await
}
