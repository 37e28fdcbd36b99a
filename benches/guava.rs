//! `GuavaBloom` beside Guava on a JVM: the same filter, the same keys, the same answers.
//!
//!     cargo bench --bench guava                       # everything, about 4 minutes
//!     cargo bench --bench guava -- --sizes 512K,8M    # filters of these sizes
//!     cargo bench --bench guava -- --record FILE      # the table into benches/FILE too
//!     cargo bench --bench guava -- --test             # a tiny size, to see that it runs
//!
//! Needs `java` and Guava: the one that `ci/fetch/spark.sh` fetches, or else Debian's
//! `libguava-java`; elsewhere `LANEBLOOM_GUAVA` is its class path. Without them the bench measures
//! our side alone, and says so.
//!
//! How it measures: there is one JVM for each size and type of keys. It warms up before the bench
//! asks it. It has the same filter, read from a file that we wrote. Filters are for a rate of 1%.
//! In a round Guava, our single calls and our batches do the same work once, in turn. The table
//! shows the median of the rounds in ns per key, and the median of the per-round ratios. Lookups
//! are half hits, half misses, in no order. Inserts are of new keys, and the filter is full after
//! the last round. The keys of a round were never used before. Every answer is counted and
//! compared, and at the end the bits set.

use clap::Parser;
use lanebloom::Funnel;
use lanebloom_benches::{BenchArgs, median, number, parse_size, timed};
use lanebloom_formats::GuavaBloom;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[derive(Parser)]
struct Args {
    /// Sizes of the filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M,512M")]
    sizes: Vec<usize>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The most keys of a round.
    #[arg(long, default_value_t = 1 << 20)]
    keys: u64,
    #[command(flatten)]
    bench: BenchArgs,
}

/// Bytes that were allocated, by all threads.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: hands everything on to the system's allocator; the count needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from one of the above, hence from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A type of keys, each made of a number.
trait Key: Funnel + Send + Sync {
    const NAME: &'static str;
    /// The same key without an allocation.
    type Raw: Funnel;
    fn raw(number: u64) -> Self::Raw;
    fn new(number: u64) -> Self;
}

impl Key for u64 {
    const NAME: &'static str = "long";
    type Raw = u64;
    fn raw(number: u64) -> u64 {
        number
    }
    fn new(number: u64) -> Self {
        number
    }
}

impl Key for String {
    const NAME: &'static str = "string";
    type Raw = [u8; 24];
    fn raw(number: u64) -> [u8; 24] {
        let mut bytes = *b"user:id-0000000000000000";
        for (i, byte) in bytes[8..].iter_mut().enumerate() {
            *byte = b"0123456789abcdef"[(number >> (60 - 4 * i) & 15) as usize];
        }
        bytes
    }
    fn new(number: u64) -> Self {
        String::from_utf8(Self::raw(number).into()).unwrap()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Contains,
    Put,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::Put => "put",
        }
    }

    /// The keys of a run; keys `0..base` are in the filter.
    fn keys<K: Key>(self, base: u64, from: u64, n: u64) -> Vec<K> {
        let asked = |i| match number(i) {
            n if n >> 63 == 1 => number(n % base),
            _ => number(i | 1 << 62),
        };
        let key = |i| match self {
            Self::Contains => asked(i),
            Self::Put => number(base + i),
        };
        (from..from + n).map(|i| K::new(key(i))).collect()
    }
}

/// Keys per batch call.
const BATCH: usize = 1024;

/// One run: how long it took, how many keys were found or new, and how many bytes were allocated.
#[derive(Clone, Copy)]
struct Run {
    nanos: f64,
    count: u64,
    bytes: u64,
}

fn run<K: Key>(filter: &GuavaBloom, work: Work, batch: bool, threads: usize, keys: &[K]) -> Run {
    let slice = |keys: &[K]| -> usize {
        match (work, batch) {
            (Work::Contains, false) => keys.iter().filter(|key| filter.contains(*key)).count(),
            (Work::Put, false) => keys.iter().filter(|key| filter.insert(*key)).count(),
            (Work::Put, true) => keys.chunks(BATCH).map(|keys| filter.insert_batch(keys)).sum(),
            (Work::Contains, true) => {
                let mut found = [false; BATCH];
                let batch = |keys: &[K]| {
                    let found = &mut found[..keys.len()];
                    filter.contains_batch(keys, &mut *found);
                    found.iter().filter(|&&found| found).count()
                };
                keys.chunks(BATCH).map(batch).sum()
            }
        }
    };
    let allocated = ALLOCATED.load(Ordering::Relaxed);
    let (nanos, count) = timed(threads, keys, slice);
    Run {
        nanos: nanos * keys.len() as f64,
        count: count as u64,
        bytes: ALLOCATED.load(Ordering::Relaxed) - allocated,
    }
}

/// A JVM that runs `GuavaPeer.java`, whose first lines say how it is spoken to.
struct Guava {
    jvm: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Guava {
    fn start(keys: &str) -> Result<Self, String> {
        let jars = lanebloom_benches::jars::guava()?;
        let newest = jars.last().expect("one at least");
        println!("{newest}");
        let mut jvm = Command::new("java");
        jvm.args(["-Xms3g", "-Xmx3g", "-cp", newest])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("GuavaPeer.java"))
            .arg(keys);
        let jvm = jvm.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut jvm = jvm.map_err(|error| format!("java does not start: {error}"))?;
        Ok(Self {
            to: jvm.stdin.take().unwrap(),
            from: BufReader::new(jvm.stdout.take().unwrap()),
            jvm,
        })
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.to, "{line}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        answer.trim().into()
    }

    fn run(&mut self, work: Work, threads: usize, from: u64, n: u64) -> Run {
        assert_eq!(self.ask(&format!("keys {} {from} {n}", work.name())), "made");
        let answer = self.ask(&format!("{} {threads}", work.name()));
        let mut numbers = answer.split(' ').map(|number| number.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        Run {
            nanos: next() as f64,
            count: next(),
            bytes: next(),
        }
    }
}

impl Drop for Guava {
    fn drop(&mut self) {
        // Harmless if it has ended.
        let _ = self.jvm.kill();
        let _ = self.jvm.wait();
    }
}

fn filled<K: Key>(n: u64, base: u64) -> GuavaBloom {
    let filter = GuavaBloom::with_capacity(n as usize, 0.01).unwrap();
    thread::scope(|scope| {
        for thread in 0..2 {
            let filter = &filter;
            scope.spawn(move || {
                let mut keys = Vec::new();
                for from in (0..base).step_by(1 << 12).skip(thread).step_by(2) {
                    keys.clear();
                    keys.extend((from..base.min(from + (1 << 12))).map(|i| K::raw(number(i))));
                    filter.insert_batch(&keys);
                }
            });
        }
    });
    filter
}

fn size<K: Key>(args: &Args, bytes: u64, table: &mut String) {
    // The keys of a filter of this size at 1%.
    let n = (bytes as f64 * 8.0 / 9.585_058_4) as u64;
    // All rounds, with both numbers of threads, fill at most the second half.
    let put = args.keys.min(n / (4 * args.rounds as u64));
    let base = n - 2 * args.rounds as u64 * put;
    let single = filled::<K>(n, base);
    let batch = single.clone();
    assert!(
        single.memory_bytes() as u64 / 64 == bytes / 64,
        "{} bytes",
        single.memory_bytes()
    );

    let mut guava = match Guava::start(K::NAME) {
        Ok(guava) => Some(guava),
        Err(why) => {
            println!("without Guava: {why}");
            None
        }
    };
    if let Some(guava) = &mut guava {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guava-{}-{}", std::process::id(), K::NAME));
        let mut stream = BufWriter::new(std::fs::File::create(&file).unwrap());
        single.write_to(&mut stream).unwrap();
        stream.into_inner().unwrap();
        assert_eq!(guava.ask(&format!("load {} {base}", file.display())), "loaded");
        std::fs::remove_file(file).unwrap();
    }

    let mut from = [0; 2];
    // Kept to the end, so that strings lie one after another, as in a JVM, and do not fill gaps.
    let mut all_keys = Vec::new();
    for (work, n) in [(Work::Contains, args.keys), (Work::Put, put)] {
        for threads in [1, 2] {
            let mut rounds = Vec::new();
            for _ in 0..args.rounds {
                let from = &mut from[usize::from(work == Work::Put)];
                let keys: Vec<K> = work.keys(base, *from, n);
                let theirs = guava.as_mut().map(|guava| guava.run(work, threads, *from, n));
                let ours = [(&single, false), (&batch, true)].map(|(filter, by)| {
                    // Into the caches as far as it fits, like the JVM's filter after its last run.
                    std::hint::black_box(filter.statistics().false_positive_rate);
                    run(filter, work, by, threads, &keys)
                });
                *from += n;
                all_keys.push(keys);
                // Two racing inserts may both answer that they were first.
                let slack = if work == Work::Put && threads > 1 {
                    n / 1000 + 2
                } else {
                    0
                };
                for ours in &ours {
                    assert!(ours.count.abs_diff(theirs.unwrap_or(ours.to_owned()).count) <= slack);
                    assert!(ours.count >= n / 4);
                }
                rounds.push((theirs, ours));
            }
            let time = |i: usize| median(rounds.iter().map(|(_, ours)| ours[i].nanos / n as f64));
            let ratio = |i: usize| {
                let ratios = rounds
                    .iter()
                    .filter_map(|(theirs, ours)| Some(theirs.as_ref()?.nanos / ours[i].nanos));
                if guava.is_some() {
                    format!("{:.1}x", median(ratios))
                } else {
                    String::new()
                }
            };
            // Starting a second thread allocates too.
            let ours_bytes = if threads == 1 {
                let bytes = rounds.iter().flat_map(|(_, ours)| ours).map(|ours| ours.bytes);
                let bytes = bytes.min().expect("a round");
                assert_eq!(bytes, 0, "bytes were allocated in every run");
                bytes.to_string()
            } else {
                String::new()
            };
            let theirs = guava.as_ref().map_or(("".into(), "".into()), |_| {
                let of = |f: &dyn Fn(&Run) -> f64| median(rounds.iter().map(|(theirs, _)| f(theirs.as_ref().unwrap())));
                (
                    format!("{:.1}", of(&|theirs| theirs.nanos) / n as f64),
                    format!("{:.0}", of(&|theirs| theirs.bytes as f64) / n as f64),
                )
            });
            let row = format!(
                "| {:>6} KiB | {:>6} | {:>8} | {threads} | {:>7} | {:>6.1} | {:>6} | {:>6.1} | {:>6} | {:>4} | {ours_bytes} |",
                bytes_in_kib(single.memory_bytes()),
                K::NAME,
                work.name(),
                theirs.0,
                time(0),
                ratio(0),
                time(1),
                ratio(1),
                theirs.1
            );
            println!("{row}");
            writeln!(table, "{row}").unwrap();
        }
    }
    // At the end all three have the same bits, or as many.
    assert!(single == batch);
    if let Some(guava) = &mut guava {
        assert_eq!(
            guava.ask("fpp"),
            single.statistics().false_positive_rate.to_bits().to_string()
        );
    }
}

fn bytes_in_kib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 10)
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.sizes, args.rounds, args.keys) = (vec![64 << 10], 1, 1 << 12);
    }
    let mut table = String::new();
    let head = "| filter | keys | | threads | Guava, ns per key | single calls | | batches | | Guava, bytes per key | ours |\n\
                |--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|";
    println!("{head}");
    writeln!(table, "{head}").unwrap();
    for bytes in args.sizes.iter().map(|&bytes| bytes as u64) {
        size::<u64>(&args, bytes, &mut table);
        size::<String>(&args, bytes, &mut table);
    }
    let command: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let command = command.join(" ");
    args.bench.write(&format!(
        "# Guava\n\n`cargo bench --bench guava -- {command}`\n\n{table}"
    ));
}
