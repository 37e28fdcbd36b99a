//! One filter shared by many threads: how lookups and inserts scale, beside fastbloom.
//!
//!     cargo bench --bench threads                    # 1 to as many threads as the machine has
//!     cargo bench --bench threads -- --threads 1,16 --sizes 64M
//!     cargo bench --bench threads -- --record FILE   # the tables into benches/FILE too
//!     cargo bench --bench threads -- --test          # a tiny size, to see that it runs
//!
//! In a round every row in turn does the same work with 1, 2, 4, ... threads, which start together.
//! The tables show the medians of the rounds: million keys per second of all threads, from the
//! first start to the last end, and how many times one thread's rate that is. The bench checks how
//! many keys were found, and that no new key was lost between threads.

use clap::Parser;
use fastbloom::AtomicBloomFilter;
use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_benches::{BenchArgs, machine, median, number, parse_size, timed};
use std::fmt::Write as _;
use std::iter::successors;
use std::thread;

#[derive(Parser)]
struct Args {
    /// Sizes of our filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M")]
    sizes: Vec<usize>,
    /// Threads that share the filter; by default powers of two up to those of the machine.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only the rows whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// The false-positive rate of both filters.
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    #[command(flatten)]
    bench: BenchArgs,
}

/// Hashes of an ordinary batch.
const BATCH: usize = 1024;

/// Keys that all threads insert again and again.
const HOT: usize = 1024;

/// The most keys that are new in a round: the time for a key does not depend on how many there are.
const NEW_KEYS: usize = 8 << 20;

/// Keys of a row's work, of all threads together.
const WORK: usize = 8 << 20;

struct Filters {
    ours: ConcurrentBloom,
    fast: AtomicBloomFilter,
}

struct Keys {
    /// The keys that the filters are for.
    new: Vec<u64>,
    /// Half of them are in the filter.
    mixed: Vec<u64>,
}

/// A row's work on this many threads; returns ns per key.
type Work = fn(&mut Filters, &Keys, usize) -> f64;

const ROWS: [(&str, Work); 12] = [
    ("lookups one by one", |filters, keys, threads| {
        lookups(keys, threads, |hashes| {
            hashes
                .iter()
                .filter(|&&hash| filters.ours.contains(&Hashed(hash)))
                .count()
        })
    }),
    ("the same, fastbloom", |filters, keys, threads| {
        lookups(keys, threads, |hashes| {
            hashes.iter().filter(|&&hash| filters.fast.contains_hash(hash)).count()
        })
    }),
    ("lookups, 1024 at a time", |filters, keys, threads| {
        lookups(keys, threads, |hashes| {
            let mut found = [false; BATCH];
            let batch = |hashes: &[u64]| {
                let found = &mut found[..hashes.len()];
                filters.ours.contains_batch(Hashed::slice(hashes), &mut *found);
                found.iter().filter(|&&found| found).count()
            };
            hashes.chunks(BATCH).map(batch).sum()
        })
    }),
    (
        "hot keys, which all threads insert again, one by one",
        |filters, keys, threads| {
            hot(keys, threads, |hashes| {
                hashes
                    .iter()
                    .filter(|&&hash| filters.ours.insert(&Hashed(hash)))
                    .count()
            })
        },
    ),
    ("the same, fastbloom", |filters, keys, threads| {
        hot(keys, threads, |hashes| {
            hashes.iter().filter(|&&hash| !filters.fast.insert_hash(hash)).count()
        })
    }),
    ("hot keys, 1024 at a time", |filters, keys, threads| {
        hot(keys, threads, |hashes| {
            hashes
                .chunks(BATCH)
                .map(|hashes| filters.ours.insert_batch(Hashed::slice(hashes)))
                .sum()
        })
    }),
    ("new keys one by one", |filters, keys, threads| {
        inserts(filters, keys, threads, false, |filters, hashes| {
            hashes
                .iter()
                .filter(|&&hash| filters.ours.insert(&Hashed(hash)))
                .count()
        })
    }),
    ("the same, fastbloom", |filters, keys, threads| {
        inserts(filters, keys, threads, false, |filters, hashes| {
            hashes.iter().filter(|&&hash| !filters.fast.insert_hash(hash)).count()
        })
    }),
    ("new keys, 1024 at a time", |filters, keys, threads| {
        inserts(filters, keys, threads, false, |filters, hashes| {
            hashes
                .chunks(BATCH)
                .map(|hashes| filters.ours.insert_batch(Hashed::slice(hashes)))
                .sum()
        })
    }),
    (
        "new keys, the same by every thread, one by one",
        |filters, keys, threads| {
            inserts(filters, keys, threads, true, |filters, hashes| {
                hashes
                    .iter()
                    .filter(|&&hash| filters.ours.insert(&Hashed(hash)))
                    .count()
            })
        },
    ),
    ("the same, fastbloom", |filters, keys, threads| {
        inserts(filters, keys, threads, true, |filters, hashes| {
            hashes.iter().filter(|&&hash| !filters.fast.insert_hash(hash)).count()
        })
    }),
    (
        "new keys, the same by every thread, 1024 at a time",
        |filters, keys, threads| {
            inserts(filters, keys, threads, true, |filters, hashes| {
                hashes
                    .chunks(BATCH)
                    .map(|hashes| filters.ours.insert_batch(Hashed::slice(hashes)))
                    .sum()
            })
        },
    ),
];

/// Looks up keys of which half are in the filter.
fn lookups(keys: &Keys, threads: usize, find: impl Fn(&[u64]) -> usize + Sync) -> f64 {
    let n = keys.mixed.len();
    let (nanos, found) = timed(threads, &keys.mixed, find);
    assert!(found * 2 >= n && found * 100 < n * 53, "{found} of {n} found");
    nanos
}

/// Inserts keys that the filter has, the same few in every thread.
fn hot(keys: &Keys, threads: usize, insert: impl Fn(&[u64]) -> usize + Sync) -> f64 {
    let times: Vec<u64> = (0..(WORK / HOT).next_multiple_of(threads) as u64).collect();
    let (nanos, new): (_, usize) = timed(threads, &times, |times| {
        times.iter().map(|_| insert(&keys.new[..HOT])).sum()
    });
    assert_eq!(new, 0);
    nanos / HOT as f64
}

/// Inserts new keys: each thread a part of them, or each thread all of them.
fn inserts(
    filters: &mut Filters,
    keys: &Keys,
    threads: usize,
    every_thread: bool,
    insert: impl Fn(&Filters, &[u64]) -> usize + Sync,
) -> f64 {
    let n = keys.new.len().min(NEW_KEYS);
    let each_thread: Vec<u64> = (0..threads as u64).collect();
    // Small filters are filled several times, so that a round is long enough for the clock.
    let times = WORK / 4 / n + 1;
    let mut nanos = 0.0;
    for _ in 0..times {
        filters.ours.clear();
        filters.fast.clear();
        let filters = &*filters;
        let (time, new, inserted) = if every_thread {
            let (time, new) = timed(threads, &each_thread, |_| insert(filters, &keys.new[..n]));
            (time / n as f64, new, n * threads)
        } else {
            let (time, new) = timed(threads, &keys.new[..n], |hashes| insert(filters, hashes));
            (time, new, n)
        };
        // A key that several threads insert at once may be new to each of them.
        assert!(new * 100 > n * 98 && new <= inserted, "{new} of {inserted} were new");
        nanos += time;
    }
    nanos / times as f64
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.sizes, args.rounds, args.threads) = (vec![16 << 10], 1, vec![1, 2]);
    }
    if args.threads.is_empty() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        args.threads = successors(Some(1), |threads| Some(threads * 2))
            .take_while(|&threads| threads <= cores)
            .collect();
    }
    let mut report = format!("{}; {} rounds\n", machine(), args.rounds);
    print!("{report}");
    for &bytes in &args.sizes {
        let table = scale(&args, bytes);
        args.bench.add(&mut report, &table);
    }
}

fn scale(args: &Args, bytes: usize) -> String {
    let builder = ConcurrentBloom::builder()
        .memory_budget(bytes)
        .false_positive_rate(args.rate);
    let ours = builder.build().unwrap();
    let n = ours.expected_keys();
    let fast = AtomicBloomFilter::with_false_pos(args.rate).seed(&1).expected_items(n);
    let mut filters = Filters { ours, fast };
    let work = if args.bench.test { 1 << 16 } else { WORK };
    let new: Vec<u64> = (0..n as u64).map(number).collect();
    let mixed = (0..work as u64).map(|i| match number(i << 32) {
        chance if chance % 2 == 0 => new[(chance >> 32) as usize % n],
        absent => absent,
    });
    let keys = Keys {
        mixed: mixed.collect(),
        new,
    };

    let rows: Vec<_> = ROWS.iter().filter(|(name, _)| name.contains(&args.only)).collect();
    let mut nanos = vec![vec![Vec::new(); args.threads.len()]; rows.len()];
    for _ in 0..args.rounds {
        // The rows of lookups and of hot keys come first: they need full filters.
        filters.ours.clear();
        filters.fast.clear();
        filters.ours.insert_batch(Hashed::slice(&keys.new));
        keys.new.iter().for_each(|&hash| _ = filters.fast.insert_hash(hash));
        for ((_, work), nanos) in rows.iter().zip(&mut nanos) {
            for (&threads, nanos) in args.threads.iter().zip(nanos) {
                nanos.push(work(&mut filters, &keys, threads));
            }
        }
    }
    let mut table = format!(
        "\n## {} KiB, {n} pre-hashed keys at {}: million keys per second (times one thread)\n\n|",
        bytes >> 10,
        args.rate
    );
    args.threads
        .iter()
        .for_each(|threads| write!(table, " | {threads}T").unwrap());
    writeln!(table, " |\n|---|{}", "--:|".repeat(args.threads.len())).unwrap();
    for ((name, _), nanos) in rows.into_iter().zip(nanos) {
        let nanos: Vec<f64> = nanos.into_iter().map(median).collect();
        let cells = nanos
            .iter()
            .map(|nanos_of| format!(" | {:.0} ({:.1}x)", 1e3 / nanos_of, nanos[0] / nanos_of));
        writeln!(table, "| {name}{} |", cells.collect::<String>()).unwrap();
    }
    table
}
