//! A replica: the cache, requests and writes, and what is right and wrong about the answers.

use crate::feed::{LineFeed, Told};
use crate::store::{Commit, LAST, Store, id_of, now};
use crate::{Args, Result};
use hdrhistogram::Histogram;
use lanebloom_guard::Keys;
use lanebloom_guard::future::GuardedCache;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// Numbers of rows that may be written in a run.
const NEW_ROWS: u64 = 1 << 20;

/// The pause between counts for `main`, and between looks for what is awaited.
const PAUSE: Duration = Duration::from_millis(50);

/// Longer than anything takes at the end, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

macro_rules! counts {
    ($($name:ident: $text:literal,)*) => {
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "named as the text that is printed")]
        enum Count {
            $($name,)*
        }

        const TEXTS: &[&str] = &[$($text,)*];
    };
}

// In the order in which they are printed.
counts! {
    requests: "requests",
    refused: "refused: the replica was told of the row, or knew that it was not told",
    outdated: "values older than what the replica was told",
    closed: "requests while the filter was closed",
    deaf: "requests while the replica knew that it was not told",
    saved: "rows found then that the other replica had committed meanwhile",
    untold: "rows missing that the replica was not told of yet",
    untold_age: "  µs, the longest time since the commit",
    older: "values older than the row, not told of yet",
    older_age: "  µs, the longest time since the commit",
    cancelled: "requests cancelled",
    failed: "requests failed: the store hung, failed, or had too many loads",
    stale: "failed loads whose old value served",
    writes: "rows written",
    breaks: "times that a feed broke",
}

/// The counts of a replica. Those whose text begins with a space are maxima.
#[derive(Clone, Copy, Default)]
pub struct Counts([u64; TEXTS.len()]);

impl Counts {
    pub fn parse(line: &str) -> Option<Self> {
        let mut counts = Self::default();
        let mut numbers = line.strip_prefix("counts")?.split_whitespace();
        for count in &mut counts.0 {
            *count = numbers.next()?.parse().ok()?;
        }
        Some(counts)
    }

    fn line(&self) -> String {
        let numbers: Vec<_> = self.0.iter().map(u64::to_string).collect();
        format!("counts {}", numbers.join(" "))
    }

    pub fn add(&mut self, other: &Self) {
        for (i, (sum, count)) in self.0.iter_mut().zip(other.0).enumerate() {
            *sum = if is_maximum(i) { (*sum).max(count) } else { *sum + count };
        }
    }

    fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub fn requests(&self) -> u64 {
        self.get(Count::requests)
    }

    pub fn is_wrong(&self) -> bool {
        self.get(Count::refused) + self.get(Count::outdated) > 0
    }

    /// Whether the filters were in use, and gets met each kind of fault: otherwise a run shows
    /// nothing.
    pub fn has_met_faults(&self) -> bool {
        use Count::*;
        self.get(closed) > self.requests() / 20
            && [deaf, saved, failed, stale, cancelled, breaks]
                .iter()
                .all(|count| self.get(*count) > 0)
    }
}

fn is_maximum(i: usize) -> bool {
    TEXTS[i].starts_with(' ')
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(text, count)| format!("{count:>10} {text}");
        let lines: Vec<_> = TEXTS.iter().zip(self.0).map(line).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The orders of `main`.
#[derive(Clone, Copy)]
pub enum Order {
    /// Whether the store works, for the times of gets.
    Store(bool),
    /// No more requests and writes.
    Stop,
    /// Check all rows, once the last one has come with this version, and end.
    Check(u64),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(works) => f.write_str(if *works { "works" } else { "broken" }),
            Self::Stop => f.write_str("stop"),
            Self::Check(version) => write!(f, "{version}"),
        }
    }
}

impl FromStr for Order {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "works" => Ok(Self::Store(true)),
            "broken" => Ok(Self::Store(false)),
            "stop" => Ok(Self::Stop),
            version => version.parse().map(Self::Check),
        }
    }
}

/// The lines of a replica's summary, at its end.
pub const SUMMARY: usize = 3;

type Cache = GuardedCache<u64, u64>;

struct Replica {
    me: u64,
    args: Args,
    cache: Cache,
    store: Store,
    told: Arc<Told>,
    counts: [AtomicU64; TEXTS.len()],
    is_stopped: AtomicBool,
    store_is_broken: AtomicBool,
    /// How long gets took, in ns: of ids that exist, of others, and while the store was broken.
    times: [Mutex<Histogram<u64>>; 3],
}

pub async fn serve(me: u64, args: &Args, folder: &Path) -> Result<()> {
    let store = Store::open(args, folder)?;
    let told = Arc::new(Told::new(args.rows + NEW_ROWS));
    let loads = store.clone();
    let cache = Cache::builder()
        .expected_keys(2 * args.rows as usize)
        .time_to_live(Duration::from_secs(2))
        .stale_if_error(Duration::from_secs(3600))
        .load_timeout(Duration::from_millis(250))
        .load_limit(32, 1000)
        .build(move |id| loads.clone().read(id))?;
    let source = {
        let store = store.clone();
        async move |keys: &mut Keys<'_, u64>| store.ids(keys).await
    };
    if args.replicas > 1 {
        let feed = LineFeed::new(args, Arc::clone(&told));
        tokio::spawn(cache.follow(feed, args.silence(), source));
    } else {
        told.note_since(now());
        cache.rebuild_now(source).await?;
    }

    let replica = Arc::new(Replica {
        me,
        args: args.clone(),
        cache,
        store,
        told,
        counts: std::array::from_fn(|_| AtomicU64::new(0)),
        is_stopped: AtomicBool::new(false),
        store_is_broken: AtomicBool::new(false),
        times: [(); 3].map(|()| Mutex::new(Histogram::new(3).expect("3 digits"))),
    });
    // `main` adds them up, also if this process is killed.
    let reports = tokio::spawn({
        let replica = Arc::clone(&replica);
        async move {
            loop {
                println!("{}", replica.count_all().line());
                sleep(PAUSE).await;
            }
        }
    });
    let requests = tokio::spawn(Arc::clone(&replica).request_all());
    let writes = tokio::spawn(Arc::clone(&replica).write_all());
    let mut orders = orders();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Store(works) => replica.store_is_broken.store(!works, Ordering::Relaxed),
            Order::Stop => {
                replica.is_stopped.store(true, Ordering::Relaxed);
                while !(requests.is_finished() && writes.is_finished()) {
                    sleep(PAUSE).await;
                }
                replica.store.settle().await;
                println!("stopped");
            }
            Order::Check(version) => {
                replica.check_all(version).await?;
                reports.abort();
                println!("{}", replica.count_all().line());
                println!("{}", replica.summary());
                return Ok(());
            }
        }
    }
    // `main` has ended.
    Ok(())
}

/// The lines of the standard input.
fn orders() -> mpsc::UnboundedReceiver<Order> {
    let (sender, orders) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(std::io::Result::ok) {
            if let Ok(order) = line.parse() {
                let _ = sender.send(order);
            }
        }
    });
    orders
}

impl Replica {
    fn add(&self, count: Count) {
        self.counts[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn add_late(&self, count: Count, age: Count, commit: Commit) {
        self.add(count);
        self.counts[age as usize].fetch_max(now() - commit.at, Ordering::Relaxed);
    }

    fn count_all(&self) -> Counts {
        let mut counts = Counts(self.counts.each_ref().map(|count| count.load(Ordering::Relaxed)));
        counts.0[Count::stale as usize] = self.cache.stats().stale;
        counts.0[Count::breaks as usize] = self.told.turns() / 2;
        counts
    }

    /// Each request is a task, at its time: it waits for no other request.
    async fn request_all(self: Arc<Self>) {
        let mut rng = SmallRng::seed_from_u64(self.args.seed + self.me);
        let (began, mut sent) = (Instant::now(), 0);
        while !self.is_stopped.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(1)).await;
            let due = (began.elapsed().as_secs_f64() * self.args.rate as f64) as u64;
            let end = self.store.end().unwrap_or(0);
            for _ in sent..due {
                let number = self.pick(&mut rng, end);
                let patience = rng.random_bool(0.05).then(|| rng.random_range(0..300));
                let replica = Arc::clone(&self);
                tokio::spawn(async move { replica.request(number, patience.map(Duration::from_micros)).await });
            }
            sent = due;
        }
    }

    /// The number of a row: of one that exists, a new one, one that comes soon, or none.
    fn pick(&self, rng: &mut SmallRng, end: u64) -> u64 {
        match rng.random_range(0..100) {
            0..40 => 1 + (self.args.rows as f64 * rng.random::<f64>().powi(6)) as u64 % self.args.rows,
            40..50 => end.saturating_sub(rng.random_range(1..50)).max(1),
            50..55 => end + rng.random_range(0..8),
            _ => rng.random_range(1 << 40..1 << 60),
        }
    }

    async fn request(&self, number: u64, patience: Option<Duration>) {
        self.add(Count::requests);
        let Some(patience) = patience else {
            return self.get_and_check(number).await;
        };
        if timeout(patience, self.get_and_check(number)).await.is_err() {
            self.add(Count::cancelled);
        }
    }

    /// All that is known is read before the get begins.
    async fn get_and_check(&self, number: u64) {
        let is_closed = self.cache.is_ready();
        let turn = self.told.turns();
        let is_told = |commit: &Commit| self.told.version(number) >= commit.version || commit.at < self.told.since();
        let told = self.store.commit(number).map(|commit| (is_told(&commit), commit));
        // It knows that it is not told, and its filter is open.
        let is_deaf = turn.is_multiple_of(2) && !is_closed && self.args.replicas > 1;
        self.counts[Count::closed as usize].fetch_add(is_closed.into(), Ordering::Relaxed);
        self.counts[Count::deaf as usize].fetch_add(is_deaf.into(), Ordering::Relaxed);

        let was_broken = self.store_is_broken.load(Ordering::Relaxed);
        let began = Instant::now();
        let got = self.cache.get(&id_of(number)).await;
        let times = &self.times[match told {
            _ if was_broken || self.store_is_broken.load(Ordering::Relaxed) => 2,
            None => 1,
            Some(_) => 0,
        }];
        let took = began.elapsed().as_nanos() as u64;
        // It grows as needed.
        let _ = times.lock().unwrap_or_else(PoisonError::into_inner).record(took);

        let Ok(got) = got else {
            return self.add(Count::failed);
        };
        let Some((is_told, commit)) = told else { return };
        // The filter was open all the time.
        let was_deaf = is_deaf && self.told.turns() == turn && !self.cache.is_ready();
        match got {
            Some(version) if version >= commit.version => {
                if was_deaf && commit.at > self.told.since() {
                    self.add(Count::saved);
                }
            }
            Some(_) if !is_told => self.add_late(Count::older, Count::older_age, commit),
            Some(version) => self.wrong(Count::outdated, number, &format!("version {version}"), commit),
            None if is_told => self.wrong(Count::refused, number, "none, and was told", commit),
            // The get may have joined a load that began before the commit. The next one has not.
            None if was_deaf && self.is_missing_while_deaf(number, turn).await => {
                self.wrong(Count::refused, number, "none, and knew that it was not told", commit);
            }
            None => self.add_late(Count::untold, Count::untold_age, commit),
        }
    }

    async fn is_missing_while_deaf(&self, number: u64, turn: u64) -> bool {
        let is_missing = matches!(self.cache.get(&id_of(number)).await, Ok(None));
        is_missing && self.told.turns() == turn && !self.cache.is_ready()
    }

    fn wrong(&self, count: Count, number: u64, got: &str, commit: Commit) {
        self.add(count);
        let age = now() - commit.at;
        eprintln!("replica {}: row {number} got {got}; {commit:?}, {age} µs ago", self.me);
    }

    /// Adds rows, and changes others. Some commits are cancelled: they may happen or not.
    async fn write_all(self: Arc<Self>) {
        let Args {
            replicas, rows, writes, ..
        } = self.args;
        let mut rng = SmallRng::seed_from_u64(self.args.seed + self.me + 100);
        // Each replica has numbers of its own.
        let end = self.store.end().unwrap_or(rows + 1);
        let mut next = (end..end + replicas)
            .find(|number| number % replicas == self.me)
            .unwrap_or(end);
        let pause = Duration::from_micros(1_000_000 / writes);
        while !self.is_stopped.load(Ordering::Relaxed) {
            sleep(pause).await;
            let number = if rng.random_bool(0.5) {
                next += replicas;
                next
            } else {
                rng.random_range(1..=rows)
            };
            let insert = self.cache.insert_on_drop(id_of(number));
            let commit = self.store.write(number);
            // A commit that is cancelled may come later. Then only the feed tells.
            let patience = match rng.random_bool(0.05) && replicas > 1 {
                true => Duration::from_micros(rng.random_range(0..500)),
                false => Duration::from_secs(3600),
            };
            let committed = timeout(patience, commit).await;
            drop(insert);
            if let Ok(Ok(version)) = committed {
                self.told.note(number, version);
                self.add(Count::writes);
            }
        }
    }

    /// Once all is told, every row is found.
    async fn check_all(&self, last: u64) -> Result<()> {
        let began = Instant::now();
        if self.args.replicas > 1 {
            while self.told.version(LAST) < last
                && self.told.since() < self.store.commit(LAST).map_or(0, |last| last.at)
                || !self.cache.is_ready()
            {
                if began.elapsed() > PATIENCE {
                    return Err("the feed does not come".into());
                }
                sleep(PAUSE).await;
            }
        }
        for number in 1..self.store.end()? {
            if let Some(commit) = self.store.commit(number) {
                match self.get_at_last(number).await? {
                    None => self.wrong(Count::refused, number, "none, at the end", commit),
                    Some(version) if version < commit.version => {
                        self.wrong(
                            Count::outdated,
                            number,
                            &format!("version {version}, at the end"),
                            commit,
                        );
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// A get without a limit for its load.
    async fn get_at_last(&self, number: u64) -> Result<Option<u64>> {
        let began = Instant::now();
        loop {
            match self.cache.get(&id_of(number)).await {
                Err(_) if began.elapsed() < PATIENCE => sleep(PAUSE).await,
                got => return Ok(got?),
            }
        }
    }

    /// [`SUMMARY`] lines.
    fn summary(&self) -> String {
        let quantiles = self.times.each_ref().map(|times| {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner);
            let quantile = |q| times.value_at_quantile(q) as f64 / 1000.0;
            format!(
                "p50 {:.1}, p99 {:.1}, p99.9 {:.0}, longest {:.0} µs",
                quantile(0.5),
                quantile(0.99),
                quantile(0.999),
                quantile(1.0)
            )
        });
        let [valid, others, broken] = quantiles;
        format!(
            "gets of ids that exist: {valid}\ngets of others: {others}\ngets while the store hung or failed: {broken}"
        )
    }
}
