//! A cache-penetration guard at work: a store on disk, threads that read rows from it, and
//! strangers' requests for ids that do not exist. The program serves requests without the guard,
//! with it, and with it while rows are added and the guard is rebuilt. Then it serves multi-gets,
//! requests for many ids at once, without the guard and with it. At the end it reports what the
//! guard saved, what it cost, and whether it kept its promise: no valid key is ever turned away. If
//! the guard broke the promise, the exit code says so.
//!
//! ```sh
//! cargo run --release --bin cache_guard
//! cargo run --release --bin cache_guard -- --help
//! ```

mod outcome;

use clap::{Parser, value_parser};
use hdrhistogram::Histogram;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use lanebloom_guard::{CacheGuard, GuardStats};
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

// The ids come from strangers. The guard hashes them under a secret key, so that no client can make
// ids that pass it.
type Guard = CacheGuard<[u8]>;

type Key = Vec<u8>;
type Row = Vec<u8>;
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Serves requests from a store on disk, without and with a cache-penetration guard, and compares.
#[derive(Parser)]
#[command(allow_negative_numbers = true)] // as values, so that the message says what is wrong with them
struct Args {
    /// Threads that serve requests
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Rows in the store; 5% more are added later, while it serves
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    rows: u32,
    /// Seconds that each of the five measured phases takes
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Keys of a multi-get
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// The part of the requested ids that do not exist, from 0 to 1
    #[arg(long, default_value_t = 0.5, value_parser = fraction)]
    made_up: f64,
    /// The filter's false-positive rate
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Take the keys from FILE instead: one per line, any bytes. A carriage return at the end of a
    /// line is dropped. Empty lines and repeated keys are skipped. The last 5% are held back, to be
    /// added later
    #[arg(long, value_name = "FILE", conflicts_with = "rows", verbatim_doc_comment)]
    keys: Option<PathBuf>,
    /// Seed of the ids and of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn fraction(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("not a number from 0 to 1"),
    }
}

fn main() -> ExitCode {
    outcome::exit(run(&Args::parse()).map_err(|error| {
        let of = if error.is::<redb::Error>() { "the store: " } else { "" };
        format!("{of}{error}")
    }))
}

/// Returns whether every answer was right.
fn run(args: &Args) -> Result<bool> {
    let began = Instant::now();
    let (keys, loaded) = match &args.keys {
        Some(path) => keys_of_file(path)?,
        None => made_keys(args.rows as usize, args.seed),
    };
    // Sized for the later rows too: the rate is a promise for the expected keys.
    let guard = Guard::with_capacity(keys.len(), args.rate)?;
    let dir = tempfile::tempdir().map_err(|error| format!("cannot make a temporary directory: {error}"))?;
    let store = Store::create(&dir.path().join("rows.redb"))?;
    store.load(&keys[..loaded])?;
    fill(&guard, &keys[..loaded]);
    let guard = Arc::new(guard);

    let service = Service {
        args,
        store,
        exists: keys.iter().map(Vec::as_slice).collect(),
        keys: &keys,
        loaded,
        published: AtomicUsize::new(loaded),
    };
    let time = Duration::from_secs(args.seconds.into());
    // Otherwise the first phase would warm the caches for the second, which would look better than
    // it is.
    service.phase("warming up", None, Request::Get, time / 4, |_| Ok(()))?;
    let multi_get = Request::MultiGet(args.batch as usize);
    let phases = [
        service.phase("without guard", None, Request::Get, time, |_| Ok(()))?,
        service.phase("with guard", Some(&guard), Request::Get, time, |_| Ok(()))?,
        service.phase("with guard, rows are added", Some(&guard), Request::Get, time, |end| {
            service.add_rows_and_rebuild(&guard, end)
        })?,
        service.phase("multi-gets without guard", None, multi_get, time, |_| Ok(()))?,
        service.phase("multi-gets with guard", Some(&guard), multi_get, time, |_| Ok(()))?,
    ];

    print_table(&phases, args);
    // `&` and not `&&`, so that both report.
    let right = all_answers_were_right(&phases) & service.every_key_is_admitted(&guard);
    println!("It took {:.1} s in all.", began.elapsed().as_secs_f64());
    Ok(right)
}

// ---- Keys ----

/// Ids for `rows` rows, then ids for the later rows; and the number of the former.
fn made_keys(rows: usize, seed: u64) -> (Vec<Key>, usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let later = rows.div_ceil(20);
    println!("keys: {}, and {} for later", thousands(rows), thousands(later));
    let key = |number| format!("user:{number:08}:{:08x}", rng.random::<u32>()).into_bytes();
    ((0..rows + later).map(key).collect(), rows)
}

/// The distinct keys of a file, in its order, and the number of those that are stored at first.
fn keys_of_file(path: &Path) -> Result<(Vec<Key>, usize)> {
    let contents = std::fs::read(path).map_err(|error| format!("cannot read keys from {}: {error}", path.display()))?;
    // A newline ends a line, so no empty one follows the last.
    let lines = contents
        .strip_suffix(b"\n")
        .unwrap_or(&contents)
        .split(|byte| *byte == b'\n');
    let (mut keys, mut seen, mut empty, mut repeated) = (Vec::new(), HashSet::new(), 0, 0);
    for line in lines {
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
        return Err(format!("no keys in {}: it is empty, or all its lines are", path.display()).into());
    }
    // At least one for later, and at least one from the beginning.
    let later = keys.len().div_ceil(20).min(keys.len() - 1);
    let loaded = keys.len() - later;
    println!(
        "keys: {} from {}, and {} for later; skipped {empty} empty lines and {repeated} repeated keys",
        thousands(loaded),
        path.display(),
        thousands(later),
    );
    Ok((keys, loaded))
}

// ---- Store ----

const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");
const ROW_BYTES: usize = 100;
/// About a quarter of the store at its default size: most rows must be read from the file (which
/// the operating system may have in memory).
const CACHE_BYTES: usize = 64 << 20;

/// The row of `key`. It follows from the key, so that the program notices a wrong row.
fn row_of(key: &[u8]) -> [u8; ROW_BYTES] {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    let hash = hasher.finish().to_le_bytes();
    std::array::from_fn(|i| hash[i % hash.len()])
}

/// A redb database in a file.
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
        // Draws nothing if stderr is not a terminal.
        let style = ProgressStyle::with_template("loading {bar:40} {human_pos} of {human_len} rows, {eta} left")?;
        let progress = ProgressBar::new(keys.len() as u64).with_style(style);
        // A B-tree is filled fastest in the order of its keys.
        let mut sorted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        sorted.sort_unstable();
        for some in sorted.chunks(20_000) {
            self.add(some, Durability::None)?;
            progress.inc(some.len() as u64);
        }
        self.add(&[], Durability::Immediate)?; // which makes those before it durable
        progress.finish_and_clear();
        println!(
            "store: {} rows in {:.1} s; {} MB in {}, {} MB of cache",
            thousands(keys.len()),
            began.elapsed().as_secs_f64(),
            self.path.metadata()?.len() >> 20,
            self.path.display(),
            CACHE_BYTES >> 20,
        );
        Ok(())
    }

    /// Adds the rows of `keys` in one transaction.
    fn add(&self, keys: &[&[u8]], durability: Durability) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        let mut table = transaction.open_table(ROWS)?;
        for key in keys {
            table.insert(*key, row_of(key).as_slice())?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Row>, redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        Ok(table.get(key)?.map(|row| row.value().to_vec()))
    }

    /// The rows of many keys, read in one transaction.
    fn multi_get<'k>(&self, keys: impl IntoIterator<Item = &'k Key>) -> Result<Vec<Option<Row>>, redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        keys.into_iter()
            .map(|key| Ok(table.get(key.as_slice())?.map(|row| row.value().to_vec())))
            .collect()
    }

    /// Calls `each` with every key that is in the store at this moment.
    fn for_each_key(&self, mut each: impl FnMut(&[u8])) -> Result<(), redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        for entry in table.iter()? {
            each(entry?.0.value());
        }
        Ok(())
    }
}

// ---- Guard ----

fn fill(guard: &Guard, keys: &[Key]) {
    let began = Instant::now();
    guard.insert_batch(keys);
    let filter = guard.filter();
    println!(
        "filter: {} bytes for {} keys; inserted {}, {:.0} ns each",
        thousands(filter.memory_bytes()),
        thousands(filter.expected_keys()),
        thousands(keys.len()),
        began.elapsed().as_nanos() as f64 / keys.len() as f64,
    );
}

// ---- Phases ----

/// The state that the threads share, without the guard.
struct Service<'a> {
    args: &'a Args,
    store: Store,
    keys: &'a [Key],
    /// The same keys. An id outside this set is made up.
    exists: HashSet<&'a [u8]>,
    /// The number of keys that were in the store at first.
    loaded: usize,
    /// The number of keys that requests may use: the store and the guard have them.
    published: AtomicUsize,
}

/// The kinds of requests.
#[derive(Clone, Copy)]
enum Request {
    /// One key.
    Get,
    /// This many keys at once.
    MultiGet(usize),
}

/// The results of a phase.
struct Phase {
    tally: Tally,
    /// The guard's counts in this phase.
    stats: Option<GuardStats>,
    /// Memory of the guard's filter.
    bits_per_key: Option<f64>,
}

impl Service<'_> {
    /// Serves requests with all threads for `time`; calls `meanwhile` with the end of it.
    fn phase(
        &self,
        name: &str,
        guard: Option<&Arc<Guard>>,
        request: Request,
        time: Duration,
        meanwhile: impl FnOnce(Instant) -> Result<()>,
    ) -> Result<Phase> {
        println!("{name}: {} s", time.as_secs_f64());
        let stats_before = guard.map(|guard| guard.stats());
        let end = Instant::now() + time;
        let tally = thread::scope(|scope| {
            let mut workers = Vec::new();
            for number in 0..self.args.threads {
                let worker = Worker::new(self, guard.cloned(), request, number)?;
                workers.push(scope.spawn(move || worker.serve_until(end)));
            }
            meanwhile(end)?;
            workers
                .into_iter()
                .try_fold(Tally::new()?, |sum, worker| sum.plus(&joined(worker)?))
        })?;
        let keys = self.published.load(Ordering::Acquire);
        Ok(Phase {
            tally,
            stats: guard
                .zip(stats_before)
                .map(|(guard, before)| guard.stats().since(&before)),
            bits_per_key: guard.map(|guard| guard.filter().memory_bytes() as f64 * 8.0 / keys as f64),
        })
    }

    fn add_rows_and_rebuild(&self, guard: &Guard, end: Instant) -> Result<()> {
        thread::scope(|scope| {
            let adder = scope.spawn(|| self.add_rows(guard, end));
            thread::sleep((end - Instant::now()) / 2);
            self.rebuild(guard)?;
            joined(adder)
        })
    }

    /// Adds the rows that were held back, in batches spread over the time until `end`.
    fn add_rows(&self, guard: &Guard, end: Instant) -> Result<()> {
        let later: Vec<&[u8]> = self.keys[self.loaded..].iter().map(Vec::as_slice).collect();
        let batches = later.chunks(later.len().div_ceil(50).max(1));
        let interval = (end - Instant::now()) / (batches.len() as u32 + 1);
        let mut due = Instant::now();
        for batch in batches {
            due += interval;
            thread::sleep(due - Instant::now());
            if Instant::now() >= end {
                break; // a slow disk: no reader would be left for these
            }
            // In this order: first the store has the rows, then the guard admits their keys, then
            // requests may use them.
            self.store.add(batch, Durability::Immediate)?;
            guard.insert_batch(batch);
            self.published.fetch_add(batch.len(), Ordering::Release);
        }
        Ok(())
    }

    /// Replaces the guard's filter by a new one with the store's keys. (A program does so when rows
    /// were removed, whose keys the old filter still admits, or when there are too many rows for
    /// the old one.)
    fn rebuild(&self, guard: &Guard) -> Result<()> {
        let began = Instant::now();
        let rebuild = guard.rebuild_with_capacity(self.keys.len(), self.args.rate)?;
        // Reads the store only now: the guard itself adds the keys that are inserted from here on.
        let mut keys = 0;
        self.store.for_each_key(|key| {
            rebuild.insert(key);
            keys += 1;
        })?;
        rebuild.commit()?;
        let took = began.elapsed().as_secs_f64();
        println!(
            "    rebuilt the guard meanwhile, from {} keys in the store, in {took:.1} s",
            thousands(keys)
        );
        Ok(())
    }

    /// Looks all keys up once more.
    fn every_key_is_admitted(&self, guard: &Guard) -> bool {
        let keys = &self.keys[..self.published.load(Ordering::Acquire)];
        let mut lost = keys.len();
        guard.check_batch(keys, |_, _| lost -= 1);
        if lost > 0 {
            eprintln!("FAILED: the rebuilt filter lacks {lost} of {} keys", keys.len());
        } else {
            println!("The rebuilt filter has all {} keys.", thousands(keys.len()));
        }
        lost == 0
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| "a thread panicked")?
}

// ---- Requests ----

/// A thread that makes requests, serves them, and checks the answers.
struct Worker<'a> {
    service: &'a Service<'a>,
    guard: Option<Arc<Guard>>,
    request: Request,
    rng: SmallRng,
    /// Requests are frequent for few rows, and rare for most rows.
    ranks: Zipf<f64>,
    /// The keys of this request: one, unless it is a multi-get.
    keys: Vec<Key>,
    /// Whether each of them is valid.
    valid: Vec<bool>,
    /// The answer for each of them.
    answers: Vec<Answer>,
    tally: Tally,
}

#[derive(Clone)]
enum Answer {
    /// The store was not asked.
    TurnedAway,
    /// The store's answer.
    Read(Option<Row>),
}

impl<'a> Worker<'a> {
    fn new(service: &'a Service<'a>, guard: Option<Arc<Guard>>, request: Request, number: u16) -> Result<Self> {
        // The same requests in every phase, and different ones in every thread.
        let seed = service.args.seed.wrapping_add(1).wrapping_add(number.into());
        let keys = match request {
            Request::Get => 1,
            Request::MultiGet(keys) => keys,
        };
        Ok(Self {
            service,
            guard,
            request,
            rng: SmallRng::seed_from_u64(seed),
            ranks: Zipf::new(service.loaded as f64, 0.99)?,
            keys: vec![Key::new(); keys],
            valid: vec![false; keys],
            answers: vec![Answer::TurnedAway; keys],
            tally: Tally::new()?,
        })
    }

    fn serve_until(mut self, end: Instant) -> Result<Tally> {
        let began = Instant::now();
        let mut now = began;
        while now < end {
            self.make_request();
            let asked = Instant::now();
            match self.request {
                Request::Get => self.get()?,
                Request::MultiGet(_) => self.multi_get()?,
            }
            now = Instant::now();
            self.record(now - asked);
            self.verify();
        }
        self.tally.took = now - began;
        Ok(self.tally)
    }

    /// Gets the row of the one key. With a guard, it asks the store only if the guard admits the
    /// key.
    fn get(&mut self) -> Result<(), redb::Error> {
        let key = &self.keys[0];
        let mut asked = false;
        let mut read = || {
            asked = true;
            self.service.store.get(key)
        };
        let row = match &self.guard {
            Some(guard) => guard.try_get_with(key, read),
            None => read(),
        }?;
        self.answers[0] = if asked { Answer::Read(row) } else { Answer::TurnedAway };
        Ok(())
    }

    /// Gets the rows of all keys. With a guard, it asks the store for the admitted keys, all at
    /// once.
    fn multi_get(&mut self) -> Result<(), redb::Error> {
        let Some(guard) = &self.guard else {
            let rows = self.service.store.multi_get(&self.keys)?;
            self.answers = rows.into_iter().map(Answer::Read).collect();
            return Ok(());
        };
        let mut admitted = Vec::with_capacity(self.keys.len());
        guard.check_batch(&self.keys, |i, admission| admitted.push((i, admission)));
        self.answers.fill(Answer::TurnedAway);
        if admitted.is_empty() {
            return Ok(());
        }
        let rows = self
            .service
            .store
            .multi_get(admitted.iter().map(|(i, _)| &self.keys[*i]))?;
        for ((i, admission), row) in admitted.into_iter().zip(rows) {
            admission.record(row.is_some());
            self.answers[i] = Answer::Read(row);
        }
        Ok(())
    }

    /// Chooses the keys of the next request.
    fn make_request(&mut self) {
        for i in 0..self.keys.len() {
            let valid = !self.rng.random_bool(self.service.args.made_up);
            let row = self.pick_row();
            self.keys[i].clone_from(&self.service.keys[row]);
            if !valid {
                self.make_up(i);
            }
            self.valid[i] = valid;
        }
    }

    /// A row that exists at this moment.
    fn pick_row(&mut self) -> usize {
        let loaded = self.service.loaded;
        let published = self.service.published.load(Ordering::Acquire);
        if published > loaded && self.rng.random_bool(0.1) {
            // One of the newest rows, which a late guard would turn away.
            return self
                .rng
                .random_range(published.saturating_sub(100).max(loaded)..published);
        }
        // Times a prime, so that the most requested rows lie far apart.
        let rank = self.ranks.sample(&mut self.rng) as u64 - 1;
        (rank * 2_654_435_761 % loaded as u64) as usize
    }

    /// Changes the end of the i-th key until no row has it.
    fn make_up(&mut self, i: usize) {
        let key = &mut self.keys[i];
        let kept = key.len().saturating_sub(8);
        while self.service.exists.contains(key.as_slice()) {
            key.truncate(kept);
            key.extend_from_slice(format!("{:08x}", self.rng.random::<u32>()).as_bytes());
        }
    }

    fn record(&mut self, latency: Duration) {
        let nanos = latency.as_nanos() as u64;
        let tally = &mut self.tally;
        tally.all.saturating_record(nanos);
        if let Request::Get = self.request {
            let of_kind = if self.valid[0] {
                &mut tally.valid
            } else {
                &mut tally.made_up
            };
            of_kind.saturating_record(nanos);
        }
    }

    fn verify(&mut self) {
        let tally = &mut self.tally;
        for ((key, &valid), answer) in self.keys.iter().zip(&self.valid).zip(&self.answers) {
            tally.keys += 1;
            tally.valid_keys += u64::from(valid);
            tally.store_reads += u64::from(matches!(answer, Answer::Read(_)));
            let right = match answer {
                Answer::Read(Some(row)) => valid && row == &row_of(key),
                Answer::Read(None) | Answer::TurnedAway => !valid,
            };
            if right {
                continue;
            }
            match answer {
                Answer::TurnedAway => tally.turned_away += 1,
                Answer::Read(_) => tally.wrong += 1,
            }
            tally.culprit.get_or_insert_with(|| key.clone());
        }
    }
}

/// The results of requests.
struct Tally {
    /// From the first request to the last. It includes the time to make requests; the latencies do
    /// not.
    took: Duration,
    /// Latencies in nanoseconds: of all requests, and of the two kinds of requests for one key.
    all: Histogram<u64>,
    valid: Histogram<u64>,
    made_up: Histogram<u64>,
    /// The requested keys, and how many of them are valid.
    keys: u64,
    valid_keys: u64,
    /// Keys that were read from the store.
    store_reads: u64,
    /// Valid keys that the guard turned away. Must stay 0.
    turned_away: u64,
    /// Other wrong answers. Must stay 0.
    wrong: u64,
    /// The first key with a wrong answer.
    culprit: Option<Key>,
}

impl Tally {
    fn new() -> Result<Self> {
        let latencies = Histogram::new_with_max(60_000_000_000, 3)?;
        Ok(Self {
            took: Duration::ZERO,
            all: latencies.clone(),
            valid: latencies.clone(),
            made_up: latencies,
            keys: 0,
            valid_keys: 0,
            store_reads: 0,
            turned_away: 0,
            wrong: 0,
            culprit: None,
        })
    }

    /// Adds the results of another thread.
    fn plus(mut self, other: &Self) -> Result<Self> {
        self.took = self.took.max(other.took);
        self.all.add(&other.all)?;
        self.valid.add(&other.valid)?;
        self.made_up.add(&other.made_up)?;
        self.keys += other.keys;
        self.valid_keys += other.valid_keys;
        self.store_reads += other.store_reads;
        self.turned_away += other.turned_away;
        self.wrong += other.wrong;
        self.culprit = self.culprit.or_else(|| other.culprit.clone());
        Ok(self)
    }
}

// ---- Report ----

fn print_table(phases: &[Phase; 5], args: &Args) {
    let line = |name: &str, [a, b, c, d, e]: [&str; 5]| {
        println!("{name:<26}{a:>14}{b:>14}{c:>18}{d:>16}{e:>14}");
    };
    let of_many = format!("multi-gets of {}", args.batch);
    println!("\n{:<26}{:>46}{of_many:>30}", "", "requests for one key");
    line("", ["no guard", "guard", "guard, rows added", "no guard", "guard"]);
    let row = |name: &str, cell: &dyn Fn(&Phase) -> Option<String>| {
        let cells = phases.each_ref().map(|phase| cell(phase).unwrap_or("-".into()));
        line(name, cells.each_ref().map(String::as_str));
    };
    row("requests", &|phase| Some(thousands(phase.tally.all.len())));
    row("keys asked for", &|phase| Some(thousands(phase.tally.keys)));
    row("  that exist", &|phase| Some(thousands(phase.tally.valid_keys)));
    row("requests/s", &|phase| {
        Some(per_second(phase.tally.all.len(), &phase.tally))
    });
    row("keys/s", &|phase| Some(per_second(phase.tally.keys, &phase.tally)));
    row("µs per request, p50", &|phase| micros(&phase.tally.all, 0.5));
    row("  if the key exists", &|phase| micros(&phase.tally.valid, 0.5));
    row("  if it is made up", &|phase| micros(&phase.tally.made_up, 0.5));
    row("µs per request, p99", &|phase| micros(&phase.tally.all, 0.99));
    row("µs per request, p99.9", &|phase| micros(&phase.tally.all, 0.999));
    row("keys read from the store", &|phase| {
        Some(thousands(phase.tally.store_reads))
    });
    row("  reads avoided", &|phase| Some(thousands(phase.stats?.turned_away)));
    row("false positives", &|phase| {
        Some(thousands(phase.stats?.false_positives))
    });
    row("  per made-up key", &|phase| {
        Some(percent(phase.stats?.false_positive_rate()?))
    });
    row("  promised when full", &|phase| phase.stats.map(|_| percent(args.rate)));
    row("filter, bits per key", &|phase| {
        Some(format!("{:.2}", phase.bits_per_key?))
    });
    println!();
}

/// Prints and returns whether all answers were right.
fn all_answers_were_right(phases: &[Phase; 5]) -> bool {
    let sum = |of: fn(&Tally) -> u64| phases.iter().map(|phase| of(&phase.tally)).sum::<u64>();
    if let Some(culprit) = phases.iter().find_map(|phase| phase.tally.culprit.as_ref()) {
        eprintln!(
            "FAILED: {} valid keys were turned away, {} answers were otherwise wrong; the first for {}",
            thousands(sum(|tally| tally.turned_away)),
            thousands(sum(|tally| tally.wrong)),
            culprit.escape_ascii(),
        );
        return false;
    }
    let guarded = phases.iter().filter(|phase| phase.stats.is_some());
    match guarded.map(|phase| phase.tally.valid_keys).sum::<u64>() {
        0 => println!("No valid key was asked for, so there was none to turn away."),
        checked => println!(
            "No valid key was turned away: {} were asked for, each got its row.",
            thousands(checked)
        ),
    }
    true
}

fn per_second(number: u64, tally: &Tally) -> String {
    thousands(number as f64 / tally.took.as_secs_f64())
}

fn micros(latencies: &Histogram<u64>, quantile: f64) -> Option<String> {
    (!latencies.is_empty()).then(|| format!("{:.2}", latencies.value_at_quantile(quantile) as f64 / 1e3))
}

fn percent(fraction: f64) -> String {
    format!("{:.3}%", fraction * 100.0)
}

/// The digits of a number in groups of three.
fn thousands(number: impl Display) -> String {
    let whole = format!("{number:.0}").parse().expect("digits");
    HumanCount(whole).to_string()
}
