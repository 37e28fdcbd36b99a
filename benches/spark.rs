//! `SparkBloom` beside Spark's own filter on a JVM: the same filter, the same keys, the same
//! answers.
//!
//!     cargo bench --bench spark                       # everything, about 40 seconds
//!     cargo bench --bench spark -- --keys 10000000    # a larger filter
//!     cargo bench --bench spark -- --test             # a tiny size, to see that it runs
//!
//! Needs `java` and the jar that `ci/fetch/spark.sh` fetches, or another class path in
//! `LANEBLOOM_SPARK`. Without them the bench measures our side alone, and says so.
//!
//! How it measures: there is one JVM for each version and type of keys, warm before the bench asks
//! it, and one thread, since Spark's filter has no locks. A filter is for 1%. In a round each side
//! fills a new filter with its expected keys, and then asks for as many: half hits and half misses,
//! and then hits alone, in no order. Ours does so by single calls, and in batches of 1024; and puts
//! once more by `insert_batch_mut`, which like Spark's filter is for one thread. The table shows
//! the median of the rounds in ns per key, and the median of the per-round ratios. The keys of a
//! round were never used before. Every answer is counted and compared.

use clap::Parser;
use lanebloom_benches::{BenchArgs, median, number, time};
use lanebloom_formats::spark::{SparkBloom, SparkKey, Version};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

#[derive(Parser)]
struct Args {
    /// The expected keys of the filter, and the keys of a round.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Rounds, of which the table shows the median.
    #[arg(long, default_value_t = 7)]
    rounds: u64,
    #[command(flatten)]
    bench: BenchArgs,
}

/// A type of keys, each made of a number.
trait Key: SparkKey {
    const NAME: &'static str;
    fn new(number: u64) -> Self;
}

impl Key for i64 {
    const NAME: &'static str = "long";
    fn new(number: u64) -> Self {
        number as i64
    }
}

impl Key for String {
    const NAME: &'static str = "string";
    fn new(number: u64) -> Self {
        format!("user:id-{number:016x}")
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Put,
    Contains,
    Present,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Contains => "contains",
            Self::Present => "present",
        }
    }

    /// The keys that `key` of `SparkPeer.java` makes.
    fn keys<K: Key>(self, round: u64, n: usize) -> Vec<K> {
        let put = round * n as u64;
        let key = |i: u64| {
            let random = number(!(put + i));
            match self {
                Self::Put => number(put + i),
                Self::Contains if random >> 63 == 1 => number((1 << 50) + put + i),
                _ => number(put + random % n as u64),
            }
        };
        (0..n as u64).map(|i| K::new(key(i))).collect()
    }
}

#[derive(Clone, Copy)]
enum Way {
    Single,
    Batch,
    Mut,
}

/// Keys per batch call.
const BATCH: usize = 1024;

/// One run: how long it took, and how many keys were found or new.
struct Run {
    nanos: f64,
    count: u64,
}

fn run<K: Key>(filter: &mut SparkBloom, work: Work, way: Way, keys: &[K]) -> Run {
    let mut found = [false; BATCH];
    let batches = keys.chunks(BATCH);
    let (nanos, count) = time(1, || -> usize {
        match (work, way) {
            (Work::Put, Way::Single) => keys.iter().filter(|key| filter.insert(*key)).count(),
            (Work::Put, Way::Batch) => batches.map(|keys| filter.insert_batch(keys)).sum(),
            (Work::Put, Way::Mut) => batches.map(|keys| filter.exclusive().insert_batch(keys)).sum(),
            (_, Way::Single) => keys.iter().filter(|key| filter.contains(*key)).count(),
            (..) => batches
                .map(|keys| {
                    let found = &mut found[..keys.len()];
                    filter.contains_batch(keys, &mut *found);
                    found.iter().filter(|&&found| found).count()
                })
                .sum(),
        }
    });
    Run {
        nanos,
        count: count as u64,
    }
}

/// A JVM that runs `SparkPeer.java`, whose first lines say how it is spoken to.
struct Spark {
    jvm: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Spark {
    fn start(n: usize, version: Version, keys: &str) -> Result<Self, String> {
        let jars = lanebloom_benches::jars::spark()?;
        let mut jvm = Command::new("java");
        jvm.args(["-Xms1g", "-Xmx3g", "-cp", &jars[0]])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("SparkPeer.java"))
            .args([&n.to_string(), &format!("{version:?}"), keys]);
        let jvm = jvm.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut jvm = jvm.map_err(|error| format!("java does not start: {error}"))?;
        Ok(Self {
            to: jvm.stdin.take().unwrap(),
            from: BufReader::new(jvm.stdout.take().unwrap()),
            jvm,
        })
    }

    fn run(&mut self, work: Work, round: u64) -> Run {
        writeln!(self.to, "{} {round}", work.name()).unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        let (nanos, count) = answer.trim().split_once(' ').unwrap();
        Run {
            nanos: nanos.parse().unwrap(),
            count: count.parse().unwrap(),
        }
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        // Harmless if it has ended.
        let _ = self.jvm.kill();
        let _ = self.jvm.wait();
    }
}

fn table<K: Key>(args: &Args, version: Version) {
    let n = args.keys;
    let mut spark = Spark::start(n, version, K::NAME).inspect_err(|why| println!("without Spark: {why}"));
    let builder = SparkBloom::builder().version(version);
    let builder = builder.expected_keys(n).false_positive_rate(0.01);
    const WORKS: [Work; 3] = [Work::Put, Work::Contains, Work::Present];
    let mut rounds = WORKS.map(|_| Vec::new());
    for round in 0..args.rounds {
        let mut filters = [(); 3].map(|()| builder.clone().build().unwrap());
        for (work, rounds) in WORKS.into_iter().zip(&mut rounds) {
            let keys: Vec<K> = work.keys(round, n);
            let theirs = spark.as_mut().ok().map(|spark| spark.run(work, round));
            let [single, batch, exclusive] = &mut filters;
            let mut ours = Vec::new();
            for (filter, way) in [(single, Way::Single), (batch, Way::Batch), (exclusive, Way::Mut)] {
                // Into the caches, like the JVM's filter, which was just written.
                std::hint::black_box(filter.statistics().false_positive_rate);
                let run = run(filter, work, way, &keys);
                assert_eq!(run.count, theirs.as_ref().map_or(run.count, |theirs| theirs.count));
                assert!(run.count >= n as u64 * 2 / 5);
                ours.push(run.nanos / n as f64);
            }
            rounds.push((theirs.map_or(f64::NAN, |run| run.nanos / n as f64), ours));
        }
        assert!(filters[0] == filters[1] && filters[0] == filters[2]);
    }
    for (work, rounds) in WORKS.into_iter().zip(rounds) {
        let theirs = median(rounds.iter().map(|(theirs, _)| *theirs));
        let mut row = format!("| {version:?} | {:>6} | {:>8} | {theirs:>6.1} |", K::NAME, work.name());
        for way in 0..if work == Work::Put { 3 } else { 2 } {
            let time = median(rounds.iter().map(|(_, ours)| ours[way]));
            let ratio = median(rounds.iter().map(|(theirs, ours)| theirs / ours[way]));
            row += &format!(" {time:>6.1} | {ratio:>4.1}x |");
        }
        println!("{row}{}", if work == Work::Put { "" } else { " | |" });
    }
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.keys, args.rounds) = (1 << 12, 1);
    }
    println!("{} keys at 1%, {} rounds, ns per key\n", args.keys, args.rounds);
    println!("| version | keys | | Spark | single calls | | batches | | alone, in batches | |");
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for version in [Version::V1, Version::V2] {
        table::<i64>(&args, version);
        table::<String>(&args, version);
    }
}
