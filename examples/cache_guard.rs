//! A cache-penetration guard at its job: a store on disk, threads that read rows from it, and strangers who ask for
//! ids that do not exist. The same requests are served without the guard and with it, then with it while rows are
//! added and the guard is rebuilt. At the end: what the guard saved, what it took, and whether it kept its promise
//! that no valid key is ever turned away (the exit code is not 0 if it did not).
//!
//! ```sh
//! cargo run --release --example cache_guard
//! cargo run --release --example cache_guard -- --help
//! ```
#![allow(
    clippy::std_instead_of_core,
    reason = "a program with std need not care what of it is core's"
)]

use clap::Parser;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use lanebloom::{CacheGuard, ConcurrentBloom, GuardStats, SipHash13};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::HashSet;
use std::error::Error;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

// The ids come from strangers, so the filter hashes under a secret key: with Murmur3 they could make ids that collide
// with one that exists, and so pass the guard.
type Filter = ConcurrentBloom<SipHash13>;
type Guard = CacheGuard<SipHash13>;

type Key = Vec<u8>;
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Serves requests from a store on disk, without and with a cache-penetration guard, and compares.
#[derive(Parser)]
struct Args {
    /// Threads that serve requests
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Rows in the store; 5% more are added later, while it serves
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Seconds that each of the three measured phases takes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// The part of the requests that asks for ids which do not exist, from 0 to 1
    #[arg(long, default_value_t = 0.5, value_parser = fraction)]
    made_up: f64,
    /// The filter's false-positive rate
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Take the keys from FILE instead: one per line, any bytes. A carriage return at the end of a line is
    /// dropped; empty lines and repeated keys are skipped. The last 5% are held back, to be added later
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    keys: Option<PathBuf>,
    /// Seed of the ids and of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("not a number from 0 to 1".into()),
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cache_guard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything that was verified was right.
fn run(args: &Args) -> Result<bool> {
    let began = Instant::now();
    let (keys, loaded) = match &args.keys {
        Some(path) => keys_of_file(path)?,
        None => made_keys(args.rows as usize, args.seed),
    };
    let filter = new_filter(args, keys.len())?;

    let dir = tempfile::tempdir()?;
    let store = Store::create(&dir.path().join("rows.redb"))?;
    store.load(&keys[..loaded])?;
    fill(&filter, &keys[..loaded]);

    let guard = Arc::new(CacheGuard::new(filter));
    let service = Service {
        args,
        store,
        exists: keys.iter().map(Vec::as_slice).collect(),
        keys: &keys,
        loaded,
        published: AtomicUsize::new(loaded),
    };
    let phases = [
        service.without_guard()?,
        service.with_guard(&guard)?,
        service.while_rows_are_added(&guard)?,
    ];
    print_table(&phases, args.rate);
    let right = verdict(&phases) & service.every_row_is_admitted(&guard);
    println!("{:.1} s in all", began.elapsed().as_secs_f64());
    Ok(right)
}

// ---- Keys ----

/// Ids for `rows` rows and those that are added later, and the number of the former.
fn made_keys(rows: usize, seed: u64) -> (Vec<Key>, usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let all = rows + rows.div_ceil(20);
    println!(
        "keys     {} made, {} of them for later",
        thousands(all),
        thousands(all - rows)
    );
    let key = |number| format!("user:{number:08}:{:08x}", rng.random::<u32>()).into_bytes();
    ((0..all).map(key).collect(), rows)
}

/// The distinct keys of a file, in its order, and how many of them to load at once: all but the last 5%.
fn keys_of_file(path: &Path) -> Result<(Vec<Key>, usize)> {
    let contents = std::fs::read(path).map_err(|error| format!("cannot read keys from {}: {error}", path.display()))?;
    let (mut keys, mut seen, mut empty, mut repeated) = (Vec::new(), HashSet::new(), 0, 0);
    // A newline ends a line, so there is none after the last one.
    for line in contents
        .strip_suffix(b"\n")
        .unwrap_or(&contents)
        .split(|byte| *byte == b'\n')
    {
        let key = line.strip_suffix(b"\r").unwrap_or(line);
        if key.is_empty() {
            empty += 1;
        } else if seen.insert(key) {
            keys.push(key.to_vec());
        } else {
            repeated += 1;
        }
    }
    if keys.is_empty() {
        return Err(format!("no keys in {}: it has nothing but empty lines", path.display()).into());
    }
    // At least one for later, unless there is but one.
    let later = keys.len().div_ceil(20).min(keys.len() - 1);
    println!(
        "keys     {} from {}, {} of them for later (skipped: {} empty lines, {} repeated keys)",
        thousands(keys.len()),
        path.display(),
        thousands(later),
        thousands(empty),
        thousands(repeated),
    );
    let loaded = keys.len() - later;
    Ok((keys, loaded))
}

// ---- Store ----

const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");
/// Less than the default million of rows takes, so that cold rows are read from the file.
const CACHE_BYTES: usize = 64 << 20;
const ROW_BYTES: usize = 100;

/// What the store has under `key`: a function of it, so that a wrong row is noticed.
fn row_of(key: &[u8]) -> [u8; ROW_BYTES] {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    let hash = hasher.finish().to_le_bytes();
    std::array::from_fn(|i| hash[i % hash.len()])
}

/// A redb database in a file of its own.
struct Store {
    database: Database,
    path: PathBuf,
}

impl Store {
    fn create(path: &Path) -> Result<Self, redb::Error> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        Ok(Self {
            database,
            path: path.to_owned(),
        })
    }

    fn load(&self, keys: &[Key]) -> Result<()> {
        let began = Instant::now();
        let style = ProgressStyle::with_template("loading  {bar:40} {human_pos} of {human_len} rows, {eta} left")?;
        // Draws nothing where stderr is not a terminal.
        let progress = ProgressBar::new(keys.len() as u64).with_style(style);

        // A B-tree fills quickest in the order of its keys.
        let mut sorted: Vec<&Key> = keys.iter().collect();
        sorted.sort_unstable();
        for some in sorted.chunks(50_000) {
            self.add(some, Durability::None)?;
            progress.inc(some.len() as u64);
        }
        self.add(&[], Durability::Immediate)?; // this makes the others durable
        progress.finish_and_clear();
        println!(
            "store    {} rows in {:.1} s, {} MB in {} (cache: {} MB)",
            thousands(keys.len()),
            began.elapsed().as_secs_f64(),
            self.path.metadata()?.len() / 1_000_000,
            self.path.display(),
            CACHE_BYTES / 1_000_000,
        );
        Ok(())
    }

    /// Adds the rows of `keys` in one transaction.
    fn add(&self, keys: &[&Key], durability: Durability) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        let mut table = transaction.open_table(ROWS)?;
        for key in keys {
            table.insert(key.as_slice(), row_of(key).as_slice())?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        Ok(table.get(key)?.map(|row| row.value().to_vec()))
    }

    /// Calls `each` with every key that is in the store now.
    fn for_each_key(&self, mut each: impl FnMut(&[u8])) -> Result<(), redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        for entry in table.iter()? {
            each(entry?.0.value());
        }
        Ok(())
    }
}

// ---- Filter ----

/// Sized for the rows to come as well: the rate holds up to the expected keys.
fn new_filter(args: &Args, expected_keys: usize) -> Result<Filter> {
    let filter = ConcurrentBloom::builder()
        .expected_keys(expected_keys)
        .false_positive_rate(args.rate)
        .hasher(SipHash13::random())
        .build()?;
    Ok(filter)
}

fn fill(filter: &Filter, keys: &[Key]) {
    let began = Instant::now();
    filter.insert_batch(keys);
    let took = began.elapsed();
    println!(
        "filter   {} bytes for {} keys; {} inserted in {:.1} ms, {:.0} ns each",
        thousands(filter.memory_bytes()),
        thousands(filter.expected_keys()),
        thousands(keys.len()),
        took.as_secs_f64() * 1e3,
        took.as_nanos() as f64 / keys.len() as f64,
    );
}

// ---- Phases ----

/// What the threads share.
struct Service<'a> {
    args: &'a Args,
    store: Store,
    keys: &'a [Key],
    /// The same keys: what is not among them is made up.
    exists: HashSet<&'a [u8]>,
    /// The number of keys whose rows were in the store from the beginning.
    loaded: usize,
    /// The number of keys whose rows are in the store and admitted by the guard. Only ever written after both.
    published: AtomicUsize,
}

/// What came of a phase.
struct Phase {
    tally: Tally,
    /// What the guard did in this phase, and the bits of memory per key that its filter took.
    guard: Option<(GuardStats, f64)>,
}

impl Service<'_> {
    fn without_guard(&self) -> Result<Phase> {
        let time = Duration::from_secs(self.args.seconds);
        // So that the second phase does not look good only because the first one has filled the caches.
        println!("warming  the caches, {:.1} s", (time / 4).as_secs_f64());
        self.serve(None, time / 4, |_| Ok(()))?;
        println!("phase 1  without guard, {} s", time.as_secs());
        let tally = self.serve(None, time, |_| Ok(()))?;
        Ok(Phase { tally, guard: None })
    }

    fn with_guard(&self, guard: &Arc<Guard>) -> Result<Phase> {
        println!("phase 2  with guard, {} s", self.args.seconds);
        self.serve_guarded(guard, |_| Ok(()))
    }

    fn while_rows_are_added(&self, guard: &Arc<Guard>) -> Result<Phase> {
        println!("phase 3  with guard, rows are added, {} s", self.args.seconds);
        self.serve_guarded(guard, |end| {
            thread::scope(|scope| {
                let adder = scope.spawn(|| self.add_rows(guard, end));
                thread::sleep((end - Instant::now()) / 2);
                self.rebuild(guard)?;
                joined(adder)
            })
        })
    }

    fn serve_guarded(&self, guard: &Arc<Guard>, meanwhile: impl FnOnce(Instant) -> Result<()>) -> Result<Phase> {
        let before = guard.stats();
        let tally = self.serve(Some(guard), Duration::from_secs(self.args.seconds), meanwhile)?;
        let keys = self.published.load(Ordering::Acquire);
        let bits_per_key = guard.filter().memory_bytes() as f64 * 8.0 / keys as f64;
        Ok(Phase {
            tally,
            guard: Some((since(before, guard.stats()), bits_per_key)),
        })
    }

    /// Serves requests with all threads for `time`, and calls `meanwhile` with the end of it.
    fn serve(
        &self,
        guard: Option<&Arc<Guard>>,
        time: Duration,
        meanwhile: impl FnOnce(Instant) -> Result<()>,
    ) -> Result<Tally> {
        let end = Instant::now() + time;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.args.threads)
                .map(|number| {
                    let worker = Worker::new(self, guard.cloned(), number);
                    scope.spawn(move || worker?.serve_until(end))
                })
                .collect();
            meanwhile(end)?;
            let mut tally = Tally::new()?;
            for worker in workers {
                tally.add(&joined(worker)?)?;
            }
            Ok(tally)
        })
    }

    /// Adds the rows that were held back, a batch at a time, spread over the time until `end`.
    fn add_rows(&self, guard: &Guard, end: Instant) -> Result<()> {
        let later: Vec<&Key> = self.keys[self.loaded..].iter().collect();
        let batches = later.chunks(later.len().div_ceil(50).max(1));
        let pause = (end - Instant::now()) / (batches.len() as u32 + 1);
        for batch in batches {
            thread::sleep(pause);
            if Instant::now() >= end {
                break; // a slow disk: the rest would be added with nobody there to ask for it
            }
            // In this order: first the row can be read, then its key is admitted, then others hear of it.
            self.store.add(batch, Durability::Immediate)?;
            batch.iter().for_each(|key| drop(guard.insert(*key)));
            self.published.fetch_add(batch.len(), Ordering::Release);
        }
        Ok(())
    }

    /// Gives the guard a new filter with what is in the store. (It lacks nothing here; a store from which rows are
    /// removed, or which has outgrown its filter, would do this now and then.)
    fn rebuild(&self, guard: &Guard) -> Result<()> {
        let began = Instant::now();
        let rebuild = guard.rebuild(new_filter(self.args, self.keys.len())?)?;
        // Only now is the store read: rows that are added from here on are the guard's to remember.
        let mut keys = 0;
        self.store.for_each_key(|key| {
            rebuild.filter().insert(key);
            keys += 1;
        })?;
        rebuild.commit();
        println!(
            "         rebuilt from the {} keys in the store in {:.1} s, serving meanwhile",
            thousands(keys),
            began.elapsed().as_secs_f64(),
        );
        Ok(())
    }

    /// Looks for every key in the filter that serves now.
    fn every_row_is_admitted(&self, guard: &Guard) -> bool {
        let keys = &self.keys[..self.published.load(Ordering::Acquire)];
        let mut admitted = vec![false; keys.len()];
        guard.filter().contains_batch(keys, &mut admitted);
        let lost = admitted.iter().filter(|admitted| !**admitted).count();
        match lost {
            0 => println!("All of the {} keys are in the rebuilt filter.", thousands(keys.len())),
            _ => eprintln!("FAILED: {} of {} keys are not in the rebuilt filter", lost, keys.len()),
        }
        lost == 0
    }
}

/// The counts of `after` that are not of `before`.
fn since(before: GuardStats, mut after: GuardStats) -> GuardStats {
    after.admitted -= before.admitted;
    after.turned_away -= before.turned_away;
    after.found -= before.found;
    after.false_positives -= before.false_positives;
    after
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| "a thread panicked")?
}

// ---- Requests ----

/// Makes requests, serves them, and looks whether the answers are right.
struct Worker<'a> {
    service: &'a Service<'a>,
    guard: Option<Arc<Guard>>,
    rng: SmallRng,
    /// Few rows are asked for often, most rarely.
    ranks: Zipf<f64>,
    /// The key of the present request.
    key: Key,
    tally: Tally,
}

/// What came of requests.
struct Tally {
    /// From the first request to the last, in the thread that took longest.
    took: Duration,
    /// Nanoseconds from having a key to having its row; what it takes to make up a request is not in them.
    latencies: Histogram<u64>,
    valid: u64,
    store_reads: u64,
    /// Requests for valid keys that the guard turned away. Must stay 0.
    turned_away: u64,
    /// Answers that were wrong in any other way. Must stay 0.
    wrong: u64,
    /// The first key with a wrong answer.
    culprit: Option<Key>,
}

impl<'a> Worker<'a> {
    fn new(service: &'a Service<'a>, guard: Option<Arc<Guard>>, number: u64) -> Result<Self> {
        Ok(Self {
            service,
            guard,
            // The same requests in every phase.
            rng: SmallRng::seed_from_u64(service.args.seed.wrapping_add(1 + number)),
            ranks: Zipf::new(service.loaded as f64, 0.99)?,
            key: Key::new(),
            tally: Tally::new()?,
        })
    }

    fn serve_until(mut self, end: Instant) -> Result<Tally> {
        let began = Instant::now();
        let mut now = began;
        while now < end {
            let valid = self.make_request();
            let reads_before = self.tally.store_reads;

            let asked = Instant::now();
            let row = self.get()?;
            now = Instant::now();

            self.tally.latencies.saturating_record((now - asked).as_nanos() as u64);
            self.verify(valid, row.as_deref(), self.tally.store_reads > reads_before);
        }
        self.tally.took = now - began;
        Ok(self.tally)
    }

    /// The row of `self.key`. This is all that a program has to do to be guarded.
    fn get(&mut self) -> Result<Option<Vec<u8>>, redb::Error> {
        let read = || {
            self.tally.store_reads += 1;
            self.service.store.get(&self.key)
        };
        match &self.guard {
            Some(guard) => guard.try_get_with(&self.key, read),
            None => read(),
        }
    }

    /// Puts the next key to ask for into `self.key`; returns whether it is valid.
    fn make_request(&mut self) -> bool {
        let valid = !self.rng.random_bool(self.service.args.made_up);
        let row = self.pick_row();
        self.key.clone_from(&self.service.keys[row]);
        if !valid {
            self.make_up_key();
        }
        valid
    }

    /// A row that exists at this moment.
    fn pick_row(&mut self) -> usize {
        let Service { loaded, published, .. } = self.service;
        let published = published.load(Ordering::Acquire);
        let added = published - loaded;
        if added > 0 && self.rng.random_bool(0.1) {
            // One of the last: the ones that a guard which loses inserts would lose.
            return published - 1 - self.rng.random_range(0..added.min(100));
        }
        // Times a prime, so that the rows that are asked for often lie far apart.
        let rank = self.ranks.sample(&mut self.rng) as u64 - 1;
        (rank * 2_654_435_761 % *loaded as u64) as usize
    }

    /// Turns the key into one that looks like it and does not exist: by other characters at its end.
    fn make_up_key(&mut self) {
        let kept = self.key.len().saturating_sub(8);
        while self.service.exists.contains(self.key.as_slice()) {
            self.key.truncate(kept);
            self.key
                .extend_from_slice(format!("{:08x}", self.rng.random::<u32>()).as_bytes());
        }
    }

    fn verify(&mut self, valid: bool, row: Option<&[u8]>, store_was_read: bool) {
        self.tally.valid += u64::from(valid);
        let right = match row {
            Some(row) => valid && row == row_of(&self.key),
            None => !valid,
        };
        if !right {
            let count = if valid && !store_was_read {
                &mut self.tally.turned_away
            } else {
                &mut self.tally.wrong
            };
            *count += 1;
            self.tally.culprit.get_or_insert_with(|| self.key.clone());
        }
    }
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self {
            took: Duration::ZERO,
            latencies: Histogram::new_with_max(Duration::from_secs(60).as_nanos() as u64, 3)?,
            valid: 0,
            store_reads: 0,
            turned_away: 0,
            wrong: 0,
            culprit: None,
        })
    }

    /// Adds what another thread did at the same time.
    fn add(&mut self, other: &Self) -> Result<()> {
        self.took = self.took.max(other.took);
        self.latencies.add(&other.latencies)?;
        self.valid += other.valid;
        self.store_reads += other.store_reads;
        self.turned_away += other.turned_away;
        self.wrong += other.wrong;
        if self.culprit.is_none() {
            self.culprit.clone_from(&other.culprit);
        }
        Ok(())
    }

    fn requests(&self) -> u64 {
        self.latencies.len()
    }
}

// ---- Report ----

fn print_table(phases: &[Phase; 3], promised_rate: f64) {
    let row = |name: &str, cells: [String; 3]| println!("{name:<26}{:>15}{:>15}{:>18}", cells[0], cells[1], cells[2]);
    let of_all = |cell: &dyn Fn(&Tally) -> String| phases.each_ref().map(|phase| cell(&phase.tally));
    let of_guard = |cell: &dyn Fn(GuardStats) -> String| {
        phases
            .each_ref()
            .map(|phase| phase.guard.map_or("-".into(), |(stats, _)| cell(stats)))
    };
    let micros = |quantile| of_all(&|tally| format!("{:.2}", tally.latencies.value_at_quantile(quantile) as f64 / 1e3));
    let percent = |rate: f64| format!("{:.3}%", rate * 100.0);

    println!();
    row(
        "",
        ["without guard", "with guard", "guard, rows added"].map(String::from),
    );
    row("requests", of_all(&|tally| thousands(tally.requests())));
    row("  for valid keys", of_all(&|tally| thousands(tally.valid)));
    row(
        "requests/s",
        of_all(&|tally| thousands(tally.requests() as f64 / tally.took.as_secs_f64())),
    );
    row("latency p50, us", micros(0.5));
    row("        p99, us", micros(0.99));
    row("        p99.9, us", micros(0.999));
    row("store reads", of_all(&|tally| thousands(tally.store_reads)));
    row("store reads avoided", of_guard(&|stats| thousands(stats.turned_away)));
    row("false positives", of_guard(&|stats| thousands(stats.false_positives)));
    row(
        "  of absent keys",
        of_guard(&|stats| stats.false_positive_rate().map_or("-".into(), percent)),
    );
    row("  promised at most", of_guard(&|_| percent(promised_rate)));
    row(
        "filter, bits per key",
        phases
            .each_ref()
            .map(|phase| phase.guard.map_or("-".into(), |(_, bits)| format!("{bits:.2}"))),
    );
    println!();
}

/// Says whether all answers were right, and returns it.
fn verdict(phases: &[Phase; 3]) -> bool {
    let sum = |of: fn(&Tally) -> u64| phases.iter().map(|phase| of(&phase.tally)).sum::<u64>();
    let (turned_away, wrong) = (sum(|tally| tally.turned_away), sum(|tally| tally.wrong));
    if turned_away + wrong > 0 {
        let culprit = phases.iter().find_map(|phase| phase.tally.culprit.as_ref());
        eprintln!(
            "FAILED: {} valid keys were turned away, {} other answers were wrong; the first: {}",
            thousands(turned_away),
            thousands(wrong),
            culprit.map_or("unknown".into(), |key| key.escape_ascii().to_string()),
        );
        return false;
    }
    let guarded: u64 = phases[1..].iter().map(|phase| phase.tally.valid).sum();
    match guarded {
        0 => println!("No valid key was asked for, so none could be turned away."),
        _ => println!(
            "No valid key was turned away, and every row was right: {} checked.",
            thousands(guarded)
        ),
    }
    true
}

/// The digits of a number in groups of three.
fn thousands(number: impl Display) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
