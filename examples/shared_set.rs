//! A service of several processes: one set of ids in Redis, filled once, that grows while all
//! serve.
//!
//! ```sh
//! cargo run --release --bin shared_set --features redis
//! cargo run --release --bin shared_set --features redis -- --rows 500000
//! ```
//!
//! The store is a file of rows. Each process adds rows to it, and asks its guard for the rows of
//! all. The first process that fills the set is killed in the middle of it. The set expects a tenth
//! of the rows, so it outgrows its size again and again, and some process rebuilds it. The program
//! ends with an error if a guard refuses a row.
//!
//! With `--redis redis://127.0.0.1/` it uses that server. Otherwise it starts a `redis-server` of
//! its own.

#[path = "../crates/redis/tests/servers/redis_server.rs"]
mod redis_server;

use clap::Parser;
use lanebloom::{ConcurrentBloom, SipHash13};
use lanebloom_guard::CacheGuard;
use lanebloom_redis::{SharedBloom, SharedSet};
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);
/// Made-up ids, which every process asks for at the end, and how many of them it may
/// admit.
const MADE_UP: u64 = 10_000;
const MOST_ADMITTED: usize = 1000;

#[derive(Clone, Parser)]
struct Options {
    /// Processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=64))]
    nodes: u64,
    /// Rows in the store at the beginning; the processes add as many again.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..=10_000_000))]
    rows: u64,
    /// The server; one is started if none is given.
    #[arg(long)]
    redis: Option<String>,
    /// This process's number, if it is a node: `main` starts nodes this way.
    #[arg(long, hide = true)]
    node: Option<u64>,
    /// The folder of the store.
    #[arg(long, hide = true)]
    store: Option<PathBuf>,
    /// Whether this node is killed while it fills.
    #[arg(long, hide = true)]
    victim: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    match (&options.node, &options.store) {
        (Some(me), Some(store)) => node(*me, store, &options),
        _ => all(options),
    }
}

/// The committed rows: of 8 bytes each.
fn rows(store: &Path, file: &str) -> Result<Vec<u64>> {
    let bytes = fs::read(store.join(file))?;
    Ok(bytes.as_chunks().0.iter().map(|row| u64::from_le_bytes(*row)).collect())
}

/// Commits rows, in one write.
fn commit(store: &Path, file: &str, rows: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
    let mut file = OpenOptions::new().append(true).create(true).open(store.join(file))?;
    Ok(file.write_all(&bytes)?)
}

/// The work that every process repeats, about once a second: it fills the set if nobody has, and
/// rebuilds it if it has outgrown its size.
fn maintain(ids: &SharedSet<SipHash13>, store: &Path, victim: bool) -> Result<()> {
    if ids.stats().is_filled && ids.is_outgrown() {
        ids.rebuild(2 * rows(store, "rows")?.len(), PATIENCE)?;
    }
    ids.fill_once(PATIENCE, |newest| -> Result<()> {
        println!("fills {}", ids.generation());
        if victim {
            thread::sleep(PATIENCE);
        }
        // SELECT id FROM users
        newest.insert_batch(&rows(store, "rows")?);
        Ok(())
    })?;
    Ok(())
}

fn node(me: u64, store: &Path, options: &Options) -> Result<()> {
    let url = options.redis.clone().ok_or("no server")?;
    let expected = options.rows as usize / 10;
    let ids = SharedBloom::builder("ids")
        .interval(Duration::from_millis(20))
        .open_above_lag(Duration::from_secs(5))
        .connect_set(redis::Client::open(url)?, expected, |keys| {
            let hasher = SipHash13::with_key(*b"from the secrets");
            ConcurrentBloom::builder().expected_keys(keys).hasher(hasher).build()
        })?;
    let guard = CacheGuard::<u64, _>::new(ids);
    let ids = guard.filter();
    let admitted = || {
        (0..MADE_UP)
            .filter(|id| guard.check(&(u64::MAX - id)).is_some())
            .count()
    };
    let done = AtomicBool::new(false);
    let (checked, refused, open) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| -> Result<()> {
        let maintaining = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                maintain(&ids, store, options.victim)?;
                thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        });
        // Requests for ids that any process has handed out.
        let requests = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                let mut handed_out = rows(store, "handed out")?;
                // The other processes may push later than these were handed out.
                ids.sync(PATIENCE)?;
                let newest = handed_out.split_off(handed_out.len().saturating_sub(10_000));
                let some = newest.iter().chain(handed_out.iter().step_by(7));
                for id in some {
                    let is_open = guard.is_open();
                    checked.fetch_add(1, Ordering::Relaxed);
                    open.fetch_add(u64::from(is_open), Ordering::Relaxed);
                    refused.fetch_add(u64::from(guard.check(id).is_none()), Ordering::Relaxed);
                }
            }
            Ok(())
        });
        let per_node = options.rows / options.nodes;
        let first = options.rows + me * per_node;
        let batch = (per_node / 40).max(1);
        for at in (0..per_node).step_by(batch as usize) {
            let new: Vec<u64> = (first + at..first + (at + batch).min(per_node)).collect();
            commit(store, "rows", &new)?; // the store first,
            guard.insert_batch(&new); // then the set,
            ids.sync(PATIENCE)?; // on the server,
            commit(store, "handed out", &new)?; // and only then to clients
            thread::sleep(Duration::from_millis(50));
        }
        // The last rebuild may still be to come, of this process or another: until it ends, lookups
        // ask the crowded generation too.
        let began = Instant::now();
        while (!ids.stats().is_filled || ids.is_outgrown() || admitted() > MOST_ADMITTED) && began.elapsed() < PATIENCE
        {
            thread::sleep(Duration::from_millis(20));
        }
        done.store(true, Ordering::Relaxed);
        maintaining.join().expect("the thread that fills")?;
        requests.join().expect("the requests")
    })?;
    let made_up = admitted();
    println!(
        "ends {} {} {} {} {made_up}",
        ids.generation(),
        checked.into_inner(),
        refused.into_inner(),
        open.into_inner()
    );
    // The others may need this process to fill.
    std::io::stdin().lines().next();
    Ok(())
}

fn start(me: u64, options: &Options, store: &Path, victim: bool) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let rows = options.rows.to_string();
    command.args([
        "--node",
        &me.to_string(),
        "--nodes",
        &options.nodes.to_string(),
        "--rows",
        &rows,
    ]);
    command.arg("--redis").args(&options.redis).arg("--store").arg(store);
    command.args(victim.then_some("--victim"));
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

fn all(mut options: Options) -> Result<()> {
    let mut own = None;
    if options.redis.is_none() {
        let Some(redis) = redis_server::Server::default().start() else {
            return Ok(());
        };
        options.redis = Some(redis.url());
        own = Some(redis);
    }
    let folder = tempfile::tempdir()?;
    let store = folder.path();
    for file in ["rows", "handed out"] {
        commit(store, file, &Vec::from_iter(0..options.rows))?;
    }
    let began = Instant::now();
    let mut victim = start(0, &options, store, true)?;
    let mut lines = BufReader::new(victim.stdout.take().ok_or("no stdout")?).lines();
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.starts_with("fills")))
        .ok_or("it does not fill")??;
    victim.kill()?;
    victim.wait()?;
    println!("{:.1?}: the process that fills the set was killed", began.elapsed());

    let mut nodes = (0..options.nodes)
        .map(|me| start(me, &options, store, false))
        .collect::<Result<Vec<_>>>()?;
    let mut readers = Vec::new();
    for (me, node) in nodes.iter_mut().enumerate() {
        let lines = BufReader::new(node.stdout.take().ok_or("no stdout")?).lines();
        readers.push(thread::spawn(move || -> Result<Vec<u64>> {
            for line in lines {
                let line = line?;
                if let Some(numbers) = line.strip_prefix("ends ") {
                    return Ok(numbers
                        .split(' ')
                        .map(str::parse)
                        .collect::<std::result::Result<_, _>>()?);
                }
                println!("{:.1?}: process {me} {line}", began.elapsed());
            }
            Err("a process ended early".into())
        }));
    }
    let mut all_refused = 0;
    for (me, reader) in readers.into_iter().enumerate() {
        let numbers = reader.join().expect("a reader")?;
        let [generation, checked, refused, open, made_up] = numbers[..] else {
            return Err("a process says something else".into());
        };
        println!(
            "process {me}: {checked} requests for rows, {refused} refused, {open} while the guard was open; \
             {generation} rebuilds; {made_up} of {MADE_UP} made-up ids admitted"
        );
        all_refused += refused;
        if generation == 0 || checked == 0 || made_up > MOST_ADMITTED as u64 {
            return Err("the set was not rebuilt, or admits made-up ids".into());
        }
    }
    for mut node in nodes {
        drop(node.stdin.take());
        node.wait()?;
    }
    drop(own);
    match all_refused {
        0 => Ok(()),
        refused => Err(format!("{refused} rows were refused").into()),
    }
}
