//! A web service under attack: an axum server over SQLite with a million users, and clients that
//! ask it through HTTP, half of the times for ids that do not exist. Then attackers join and ask
//! for made-up ids only. Meanwhile rows are added. The program measures three servers: without a
//! cache, with moka's cache, and with a `GuardedCache` and its `GuardLayer`. At the end it checks
//! the promise: no valid id was refused. If one was, the exit code says so. It also says so where
//! its clients or the server had too few processors.
//!
//! ```sh
//! cargo run --release --bin guarded_service --features service
//! cargo run --release --bin guarded_service --features service -- --help
//! ```

mod chart;
mod load;
#[path = "../outcome.rs"]
mod outcome;
mod report;
mod server;
mod store;

use clap::{Parser, value_parser};
use hdrhistogram::Histogram;
use lanebloom_guard::CacheStats;
use load::{Load, Schedule, Tally};
use server::{Access, Service, guarded_cache};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use store::{Queries, Store, id_of};
use tokio::runtime::Runtime;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Serves users from SQLite through HTTP, with and without a guard, under regular load and under
/// attack, and compares.
#[derive(Parser)]
struct Args {
    /// Seconds that each of the three servers is measured
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Users in the store at first
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    rows: u32,
    /// Connections of regular clients
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Requests per second of all regular clients together
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Connections of attackers
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=1000))]
    attackers: u32,
    /// Requests per second of all attackers together. If the server cannot answer them all, they
    /// send as fast as they get answers
    #[arg(long, default_value_t = 30_000, value_parser = value_parser!(u32).range(1..))]
    attack: u32,
    /// Rows that are added per second
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    adds: u32,
    /// Values that the caches hold
    #[arg(long, default_value_t = 100_000)]
    capacity: u64,
    /// Connections to the store for reads
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// The filter's false-positive rate
    #[arg(long, default_value_t = 0.01)]
    false_positives: f64,
    /// Draw the run as SVG into FILE
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Leave the guarded server open afterwards, with its metrics for Prometheus at /metrics
    #[arg(long)]
    serve: bool,
    /// A quick run: 20,000 rows, and one second for each server
    #[arg(long, conflicts_with_all = ["rows", "seconds"])]
    test: bool,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number from 0.1 to 3600"),
    }
}

/// A server, measured.
struct Run {
    name: &'static str,
    server: SocketAddr,
    tally: Tally,
    /// How late the regular clients and the server were themselves during the attack.
    clients_late: Histogram<u64>,
    server_late: Histogram<u64>,
    samples: Vec<Sample>,
}

/// The counts at one moment.
struct Sample {
    /// Seconds since the measured time began.
    at: f64,
    answered: u64,
    queries: Queries,
    /// The statistics of the guarded cache.
    stats: Option<CacheStats>,
}

/// Samples of a run, without the first. The parts of a run end at one.
const SAMPLES: usize = 100;

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.test {
        (args.rows, args.seconds) = (20_000, 1.0);
    }
    outcome::exit(compare(&args))
}

/// Returns whether every answer was right.
fn compare(args: &Args) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let rows = u64::from(args.rows);
    let store = Store::create(folder.path(), rows, args.connections.into())?;
    let published = Arc::new(AtomicU64::new(rows));

    let direct = measure("no cache", args, &Runtime::new()?, &store, &published, Access::Direct)?;
    let moka = Access::Cached(moka::future::Cache::new(args.capacity));
    let cached = measure("moka", args, &Runtime::new()?, &store, &published, moka)?;

    let runtime = Runtime::new()?;
    // So the first one comes after the attack. On few cores, a rebuild of a second would be most of
    // the slowest hundredth of the requests.
    let interval = Duration::from_secs_f64(args.seconds);
    // With room for the rows that are added.
    let keys = args.rows as usize + args.rows as usize / 20;
    let filling = guarded_cache(&store, args.capacity, keys, args.false_positives, interval);
    let (cache, rebuilds) = runtime.block_on(filling)?;
    let guarded = Access::Guarded(cache.clone());
    let guarded = measure("guarded cache", args, &runtime, &store, &published, guarded)?;

    let runs = [direct, cached, guarded];
    report::print(&runs);
    report::warn_of_late_threads(&runs);
    let ids: Vec<u64> = (0..published.load(Ordering::Acquire)).map(id_of).collect();
    // `&` and not `&&`, so that all report.
    let is_right = report::all_answers_were_right(&runs)
        & report::every_id_passes(&cache, &ids)
        & report::the_store_was_spared(&runs[2], args.false_positives);
    if let Some(file) = &args.chart {
        chart::draw(file, &runs)?;
        println!("The chart is in {}.", file.display());
    }
    if args.serve {
        // It runs as long as its runtime.
        let address = runs[2].server;
        println!(
            "http://{address}/metrics\nhttp://{address}/users/{}\nCtrl-C ends it.",
            ids[0]
        );
        runtime.block_on(tokio::signal::ctrl_c())?;
    }
    rebuilds.abort();
    Ok(is_right)
}

/// Starts a server on `runtime`, and puts it under load.
fn measure(
    name: &'static str,
    args: &Args,
    runtime: &Runtime,
    store: &Arc<Store>,
    published: &Arc<AtomicU64>,
    access: Access,
) -> Result<Run> {
    println!("{name}: {} s", args.seconds);
    let service = Service {
        store: Arc::clone(store),
        access: access.clone(),
    };
    let server = runtime.block_on(service.start())?;
    let load = Load {
        server,
        schedule: Schedule {
            began: Instant::now(),
            seconds: args.seconds,
        },
        clients: args.clients,
        attackers: args.attackers,
        rate: args.rate.into(),
        attack_rate: args.attack.into(),
        adds: args.adds.into(),
        loaded: args.rows.into(),
        published: Arc::clone(published),
        answered: AtomicU64::new(0),
        seed: args.seed,
    };
    thread::scope(|scope| {
        let sampler = scope.spawn(|| samples(&load, store, &access));
        let server_late = runtime.spawn(load::lateness(load.schedule));
        let (tally, clients_late) = load::run(&load)?;
        let samples = sampler.join().map_err(|_| "the sampler panicked")?;
        Ok(Run {
            name,
            server,
            tally,
            clients_late,
            server_late: runtime.block_on(server_late)??,
            samples,
        })
    })
}

fn samples(load: &Load, store: &Store, access: &Access) -> Vec<Sample> {
    let began = load.schedule.at(0.0);
    let sample = |number| {
        let due = load.schedule.at(number as f64 / SAMPLES as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        Sample {
            at: began.elapsed().as_secs_f64(),
            answered: load.answered.load(Ordering::Relaxed),
            queries: store.queries(),
            stats: match access {
                Access::Guarded(cache) => Some(cache.stats()),
                Access::Direct | Access::Cached(_) => None,
            },
        }
    };
    (0..=SAMPLES).map(sample).collect()
}
