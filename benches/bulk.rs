//! Fills a filter with all keys that it is for: lanebloom's ways beside fastbloom and a copy of the
//! hashes.
//!
//!     cargo bench --bench bulk --features rayon                     # all sizes, about 10 minutes and 7 GiB of memory
//!     cargo bench --bench bulk --features rayon -- --sizes 512K,8M --threads 1,2,4
//!     cargo bench --bench bulk --features rayon -- --record FILE    # the tables into benches/FILE too
//!     cargo bench --bench bulk --features rayon -- --first --sizes 8M   # a process's first call
//!     cargo bench --bench bulk --features rayon -- --test           # a tiny size, to see that it runs
//!
//! In a round every contestant in turn inserts the same hashes once into its cleared filter. The
//! tables show medians of the rounds in ns per key, and of the ratios to fastbloom in the same
//! round. fastbloom inserts the first 16 million keys only: its time for a key does not depend on
//! how many there are. The bench checks how many keys were new.
//!
//! With `--first` the bench fills two new filters by one call each. The first call pays for memory
//! that the process has not used before. Run it several times: a process has one first call.

use clap::Parser;
use fastbloom::AtomicBloomFilter;
use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_benches::{BenchArgs, machine, median, number, parse_size};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::fmt::Write as _;
use std::hint::black_box;
use std::thread;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Sizes of our filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M,512M")]
    sizes: Vec<usize>,
    /// Threads that insert together.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The false-positive rate of every contestant.
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Fill two new filters of the first size by one call each, with the first number of threads.
    #[arg(long)]
    first: bool,
    #[command(flatten)]
    bench: BenchArgs,
}

/// The most hashes that fastbloom inserts.
const FASTBLOOM_KEYS: usize = 16 << 20;

/// Hashes of an ordinary batch.
const BATCH: usize = 1024;

struct Filters {
    ours: ConcurrentBloom,
    fast: AtomicBloomFilter,
    copy: Vec<u64>,
}

/// Inserts hashes with this many threads, if it can; returns the number of new ones and of all.
type Way = fn(&mut Filters, &[u64], usize) -> Option<(usize, usize)>;

const WAYS: [(&str, Way); 6] = [
    ("fastbloom, `insert_hash`", |filters, hashes, threads| {
        let hashes = &hashes[..hashes.len().min(FASTBLOOM_KEYS)];
        let insert = |hashes: &[u64]| hashes.iter().filter(|&&hash| !filters.fast.insert_hash(hash)).count();
        Some((by_threads(hashes, threads, insert), hashes.len()))
    }),
    ("`insert`", |filters, hashes, threads| {
        let insert = |hashes: &[u64]| {
            hashes
                .iter()
                .filter(|&&hash| filters.ours.insert(&Hashed(hash)))
                .count()
        };
        Some((by_threads(hashes, threads, insert), hashes.len()))
    }),
    ("`insert_batch`, 1024 at a time", |filters, hashes, threads| {
        let insert = |hashes: &[u64]| {
            hashes
                .chunks(BATCH)
                .map(|hashes| filters.ours.insert_batch(Hashed::slice(hashes)))
                .sum()
        };
        Some((by_threads(hashes, threads, insert), hashes.len()))
    }),
    ("`insert_batch`, all at once", |filters, hashes, threads| {
        let new = if threads == 1 {
            filters.ours.insert_batch(Hashed::slice(hashes))
        } else {
            filters.ours.parallel().insert_batch(Hashed::slice(hashes))
        };
        Some((new, hashes.len()))
    }),
    ("`exclusive().insert_batch`", |filters, hashes, threads| {
        (threads == 1).then(|| {
            (
                filters.ours.exclusive().insert_batch(Hashed::slice(hashes)),
                hashes.len(),
            )
        })
    }),
    ("(copying the hashes)", |filters, hashes, threads| {
        let part = hashes.len().div_ceil(threads);
        let parts = filters.copy.par_chunks_mut(part).zip(hashes.par_chunks(part));
        parts.for_each(|(to, from)| black_box(to).copy_from_slice(from));
        Some((hashes.len(), hashes.len()))
    }),
];

fn by_threads(hashes: &[u64], threads: usize, insert: impl Fn(&[u64]) -> usize + Sync) -> usize {
    if threads == 1 {
        return insert(hashes);
    }
    thread::scope(|scope| {
        let insert = &insert;
        let part = |hashes| scope.spawn(move || insert(hashes));
        let threads: Vec<_> = hashes.chunks(hashes.len().div_ceil(threads)).map(part).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.sizes, args.rounds) = (vec![16 << 10], 1);
    }
    if args.first {
        return first_and_second(&args);
    }
    let mut report = format!("{}; {} rounds\n", machine(), args.rounds);
    print!("{report}");
    for &bytes in &args.sizes {
        let table = fill(&args, bytes);
        args.bench.add(&mut report, &table);
    }
}

fn build(args: &Args, bytes: usize) -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder()
        .memory_budget(bytes)
        .false_positive_rate(args.rate);
    builder.build().unwrap()
}

fn first_and_second(args: &Args) {
    let threads = args.threads[0];
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    // One at a time: a collecting iterator would leave used memory behind.
    let n = build(args, args.sizes[0]).expected_keys();
    let mut hashes = Vec::with_capacity(n);
    hashes.extend((0..n as u64).map(number));
    let mut filters = Vec::new();
    for name in ["first", "second"] {
        let filter = build(args, args.sizes[0]);
        let start = Instant::now();
        let new = match threads {
            1 => filter.insert_batch(Hashed::slice(&hashes)),
            _ => pool.install(|| filter.parallel().insert_batch(Hashed::slice(&hashes))),
        };
        let nanos = start.elapsed().as_nanos() as f64;
        assert!(new * 100 > n * 98, "{new} of {n} were new");
        println!("{name}: {:.2} ns per key", nanos / n as f64);
        // Its memory must not become the second one's.
        filters.push(filter);
    }
}

fn fill(args: &Args, bytes: usize) -> String {
    let ours = build(args, bytes);
    let n = ours.expected_keys();
    let hashes: Vec<u64> = (0..n as u64).into_par_iter().map(number).collect();
    let mut filters = Filters {
        ours,
        fast: AtomicBloomFilter::with_false_pos(args.rate).seed(&1).expected_items(n),
        copy: vec![1; n],
    };
    // Small filters are filled several times, so that a round is long enough for the clock.
    let times = (1 << 20) / n + 1;
    let mut table = format!(
        "\n## {} KiB, {n} pre-hashed keys at {}: ns per key (times faster than fastbloom with as many threads)\n\n|",
        bytes >> 10,
        args.rate
    );
    args.threads
        .iter()
        .for_each(|threads| write!(table, " | {threads}T").unwrap());
    table += &format!(" |\n|---|{}\n", "--:|".repeat(args.threads.len()));
    let mut cells = vec![String::new(); WAYS.len()];
    for &threads in &args.threads {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut rounds = vec![Vec::new(); WAYS.len()];
        for _ in 0..args.rounds {
            for ((name, way), rounds) in WAYS.iter().zip(&mut rounds) {
                let (mut nanos, mut of) = (0.0, 0);
                for _ in 0..times {
                    filters.ours.clear();
                    filters.fast.clear();
                    let start = Instant::now();
                    let Some((new, inserted)) = pool.install(|| way(&mut filters, &hashes, threads)) else {
                        break;
                    };
                    nanos += start.elapsed().as_nanos() as f64;
                    assert!(
                        new <= inserted && new * 100 > inserted * 98,
                        "{name}: {new} of {inserted} were new"
                    );
                    of += inserted;
                }
                if of > 0 {
                    rounds.push(nanos / of as f64);
                }
            }
        }
        for (rounds_of, cell) in rounds.iter().zip(&mut cells) {
            if rounds_of.is_empty() {
                cell.push_str(" | ");
                continue;
            }
            let ratios = rounds[0].iter().zip(rounds_of).map(|(fast, own)| fast / own);
            write!(cell, " | {:.2} ({:.1}x)", median(rounds_of.clone()), median(ratios)).unwrap();
        }
    }
    for ((name, _), cells) in WAYS.iter().zip(cells) {
        writeln!(table, "| {name:31}{cells} |").unwrap();
    }
    table
}
