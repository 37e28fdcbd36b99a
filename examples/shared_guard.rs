//! One set of ids on several nodes. Each process has a guard over its own filter, adds ids, and
//! sees the ids of the others.
//!
//! ```sh
//! cargo run --release --bin shared_guard --features redis
//! cargo run --release --bin shared_guard --features redis -- --nodes 5
//! ```
//!
//! With `--redis redis://127.0.0.1/` it uses that server. Otherwise it starts a `redis-server` of
//! its own. It prints the time from an insert of an id in one process until the guard of another
//! admits the id. It also prints how many lookups a second the guards answer meanwhile. It ends
//! with an error if an id that was pushed is missing anywhere.

#[path = "../crates/redis/tests/servers/redis_server.rs"]
mod redis_server;

use clap::Parser;
use hdrhistogram::Histogram;
use lanebloom::{ConcurrentBloom, SipHash13};
use lanebloom_guard::CacheGuard;
use lanebloom_redis::SharedBloom;
use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Clone, Parser)]
struct Options {
    /// Processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=64))]
    nodes: u64,
    /// Ids that each of them adds in a second.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// Seconds of the run.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Milliseconds between exchanges with the server.
    #[arg(long, default_value_t = 100)]
    interval: u64,
    /// The server; one is started if none is given.
    #[arg(long)]
    redis: Option<String>,
    /// This process's number, if it is a node: `main` starts nodes this way.
    #[arg(long, hide = true)]
    node: Option<u64>,
}

impl Options {
    /// Ids that a node adds.
    fn ids(&self) -> u64 {
        (self.rate * self.seconds).max(1)
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    match options.node {
        Some(me) => node(me, &options),
        None => all(options),
    }
}

/// Time since 1970, in µs: the same for all processes of a machine.
fn now() -> u64 {
    SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_micros() as u64)
}

/// One of the processes.
fn node(me: u64, options: &Options) -> Result<()> {
    let server = redis::Client::open(options.redis.as_deref().ok_or("no server")?)?;
    let expected = (options.nodes * options.ids()) as usize;
    // Strangers ask for ids, so the guards hash under a secret key, the same at all nodes. `main`
    // passes it privately; a service has it in its configuration.
    let mut orders = std::io::stdin().lines();
    let secret = u128::from_str_radix(&orders.next().ok_or("no key")??, 16)?;
    let filter = ConcurrentBloom::builder()
        .expected_keys(expected)
        .hasher(SipHash13::with_key(secret.to_le_bytes()))
        .build()?;
    let interval = Duration::from_millis(options.interval);
    let shared = SharedBloom::builder("shared_guard")
        .interval(interval)
        .connect(server, filter)?;
    let guard = CacheGuard::<(u64, u64), _>::new(shared);

    println!("ready");
    orders.next().ok_or("no order")??;

    let done = AtomicBool::new(false);
    let ids = options.ids();
    let guard = &guard;
    let (added, seen, lookups) = thread::scope(|scope| {
        // The times at which the guard admits the other nodes' ids, in the order of their inserts.
        let watchers: Vec<_> = (0..options.nodes)
            .map(|other| {
                scope.spawn(move || {
                    let patience = Instant::now() + Duration::from_secs(options.seconds + 30);
                    let mut times = Vec::new();
                    for id in 0..if other == me { 0 } else { ids } {
                        while guard.check(&(other, id)).is_none() && Instant::now() < patience {
                            thread::sleep(Duration::from_micros(200));
                        }
                        times.push(now());
                    }
                    times
                })
            })
            .collect();
        // The requests that the guard keeps away: ids that no node has added.
        let requests = scope.spawn(|| {
            let began = Instant::now();
            let (mut asked, mut admitted) = (0u64, 0u64);
            while !done.load(Ordering::Relaxed) {
                let keys: [(u64, u64); 64] = std::array::from_fn(|i| (u64::MAX, asked + i as u64));
                guard.check_batch(&keys, |_, admission| {
                    admission.record(false);
                    admitted += 1;
                });
                asked += 64;
            }
            (
                asked as f64 / began.elapsed().as_secs_f64(),
                admitted as f64 / asked as f64,
            )
        });
        let began = Instant::now();
        let added: Vec<u64> = (0..ids)
            .map(|id| {
                let due = Duration::from_secs_f64(id as f64 / options.rate as f64);
                thread::sleep(due.saturating_sub(began.elapsed()));
                let time = now();
                guard.insert(&(me, id));
                time
            })
            .collect();
        let seen: Vec<Vec<u64>> = watchers
            .into_iter()
            .map(|watcher| watcher.join().expect("a watcher"))
            .collect();
        done.store(true, Ordering::Relaxed);
        (added, seen, requests.join().expect("the requests"))
    });

    // The promise: the server has the ids that were here before this ...
    guard.filter().sync(Duration::from_secs(30))?;
    println!("synced {} {}", lookups.0, lookups.1);
    orders.next().ok_or("no order")??;
    // ... and once all nodes have come here, each node has all ids.
    guard.filter().sync(Duration::from_secs(30))?;
    let all = (0..options.nodes).flat_map(|node| (0..ids).map(move |id| (node, id)));
    println!("missing {}", all.filter(|id| guard.check(id).is_none()).count());
    let line = |times: &[u64]| times.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    println!("{}", line(&added));
    for times in &seen {
        println!("{}", line(times));
    }
    Ok(())
}

/// A node, seen from `main`.
struct Node {
    process: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Node {
    fn start(me: u64, options: &Options, secret: u128) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        for (name, value) in [
            ("--node", me),
            ("--nodes", options.nodes),
            ("--rate", options.rate),
            ("--seconds", options.seconds),
            ("--interval", options.interval),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command.arg("--redis").args(&options.redis);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut orders = process.stdin.take().ok_or("no stdin")?;
        writeln!(orders, "{secret:032x}")?;
        let lines = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
        Ok(Self { process, orders, lines })
    }

    fn line(&mut self) -> Result<String> {
        Ok(self.lines.next().ok_or("a node ended early")??)
    }

    fn numbers<T: std::str::FromStr<Err: Error + 'static>>(&mut self, word: &str) -> Result<Vec<T>> {
        let line = self.line()?;
        let numbers = line
            .strip_prefix(word)
            .ok_or_else(|| format!("{line:?} is not {word:?}"))?;
        Ok(numbers
            .split_whitespace()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?)
    }

    fn go_on(&mut self) -> Result<()> {
        Ok(writeln!(self.orders, "go")?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // If it has not ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
    let secret = u128::from_le_bytes(SipHash13::random().key());
    let mut nodes = (0..options.nodes)
        .map(|me| Node::start(me, &options, secret))
        .collect::<Result<Vec<_>>>()?;
    for node in &mut nodes {
        node.numbers::<u64>("ready")?;
    }
    for node in &mut nodes {
        node.go_on()?;
    }
    println!(
        "{} processes add {} ids a second each, for {} s, and exchange every {} ms",
        options.nodes, options.rate, options.seconds, options.interval
    );
    for (i, node) in nodes.iter_mut().enumerate() {
        let lookups: Vec<f64> = node.numbers("synced")?;
        println!(
            "node {i}: {:.1} million lookups a second on one thread, {:.2}% of made-up ids admitted",
            lookups[0] / 1e6,
            100.0 * lookups[1]
        );
        if lookups[1] > 0.02 {
            return Err("the guard admits more than 2% of made-up ids".into());
        }
    }
    for node in &mut nodes {
        node.go_on()?;
    }
    let mut missing = 0;
    let (mut added, mut seen) = (Vec::new(), Vec::new());
    for node in &mut nodes {
        missing += node.numbers::<u64>("missing")?[0];
        added.push(node.numbers::<u64>("")?);
        for other in 0..options.nodes as usize {
            seen.push((other, node.numbers::<u64>("")?));
        }
    }
    drop(own);
    let mut delays = Histogram::<u64>::new(3)?;
    let (mut early, mut all) = (0, 0);
    for (node, times) in seen {
        for (&added, seen) in added[node].iter().zip(times) {
            // Admitted before it was added: a false positive. (Watchers take ids in order, so that
            // the one after is seen no earlier.)
            all += 1;
            match seen.checked_sub(added) {
                Some(delay) => delays.record(delay)?,
                None => early += 1,
            }
        }
    }
    let quantile = |q| delays.value_at_quantile(q) as f64 / 1000.0;
    println!(
        "from an insert to the other guards: median {:.1} ms, p99 {:.1} ms, longest {:.1} ms ({all} ids, {early} admitted before)",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    );
    if missing > 0 {
        return Err(format!("{missing} ids are missing after all have synced").into());
    }
    println!("every id is at every node");
    Ok(())
}
