//! Lookups in Redis bitmaps, in place and in a copy: how many a second.
//!
//!     cargo bench --bench redis_bitmaps --features redis                     # about a minute
//!     cargo bench --bench redis_bitmaps --features redis -- --record FILE    # the table into benches/FILE too
//!     cargo bench --bench redis_bitmaps --features redis -- --test           # a moment, to see that it runs
//!
//! Needs `redis-server` (elsewhere than in the path: `LANEBLOOM_REDIS_SERVER`), which it starts on
//! the loopback and stops; without it, it says so and does nothing.
//!
//! How it measures: there is one filter of each layout, with as many keys as it is for. Half of the
//! keys in lookups are among them. Each number is the median of the rounds. In a round every
//! thread, with a connection of its own, asks for keys that no round asked for before, in calls of
//! so many keys. Every answer is compared with that of a copy. The last columns are the copy
//! itself, which all threads share.

#[path = "../crates/redis/tests/servers/redis_server.rs"]
mod redis_server;

use clap::Parser;
use lanebloom_benches::{BenchArgs, median};
use lanebloom_redis::{LocalBitmap, RedisBitmap};
use redis_server::{Redis, Server};
use std::fmt::Write as _;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    /// Keys in each filter.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// How long one measurement of a round takes.
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Rounds of which the median is taken.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    bench: BenchArgs,
}

/// Keys of a call.
const CALLS: [usize; 4] = [1, 16, 64, 1024];
const THREADS: [usize; 2] = [1, 2];

fn key(i: u64) -> String {
    // Not the numbers as they are: scrapy's sums are of the characters.
    format!(
        "{:032x}",
        u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    )
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.keys, args.seconds, args.rounds) = (2000, 0.002, 1);
    }
    let Some(server) = Server::default().start() else {
        return;
    };
    let (mut table, keys) = (String::new(), args.keys);
    let count = keys as usize;
    let filters = [
        (
            "guava, one bitmap",
            RedisBitmap::guava("guava", "guava:cursor", count, 0.01),
        ),
        (
            "guava, grown to 4",
            RedisBitmap::guava("grown", "grown:cursor", count.div_ceil(4), 0.01),
        ),
        ("jedis", RedisBitmap::jedis("jedis", count, 0.01)),
        ("go-zero", RedisBitmap::go_zero("go-zero", 20 * keys)),
        (
            "scrapy",
            RedisBitmap::scrapy("scrapy", (10 * keys).next_power_of_two().ilog2(), 6),
        ),
    ];
    writeln!(
        table,
        "{keys} keys, thousands of lookups a second; in place by calls of so many keys, and in a copy\n"
    )
    .unwrap();
    writeln!(
        table,
        "| | threads | {} | copy, one by one | copy, batches of 1024 |",
        CALLS.map(|n| format!("in place, {n}")).join(" | ")
    )
    .unwrap();
    writeln!(table, "|---|--:|{}", "--:|".repeat(CALLS.len() + 2)).unwrap();
    for (name, filter) in filters {
        let filter = filter.unwrap();
        let mut connection = server.connection();
        let all: Vec<String> = (0..keys).map(|i| key(2 * i)).collect();
        filter.insert_batch(&mut connection, &all).unwrap();
        let copy = filter.fetch_local(&mut connection, 1 << 30).unwrap();
        for threads in THREADS {
            write!(table, "| {name} | {threads} |").unwrap();
            for len in CALLS {
                let rate = measure(&args, threads, |deadline, first| {
                    in_place(&server, &filter, &copy, (keys, len), deadline, first)
                });
                write!(table, " {rate:.1} |").unwrap();
            }
            let single = measure(&args, threads, |deadline, first| {
                of_copy(&copy, keys, 1, deadline, first)
            });
            let batches = measure(&args, threads, |deadline, first| {
                of_copy(&copy, keys, 1024, deadline, first)
            });
            writeln!(table, " {single:.0} | {batches:.0} |").unwrap();
        }
    }
    args.bench.add(&mut String::new(), &table);
}

/// Thousands of lookups a second by all threads: the median of the rounds. `ask` gets a thread's
/// time limit and its first key; it returns the number of lookups and their time.
fn measure(args: &Args, threads: usize, ask: impl Fn(Duration, u64) -> (u64, Duration) + Sync) -> f64 {
    let deadline = Duration::from_secs_f64(args.seconds);
    median((0..args.rounds).map(|round| {
        let start = Barrier::new(threads);
        thread::scope(|scope| {
            let (ask, start) = (&ask, &start);
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        start.wait();
                        ask(deadline, ((round * 16 + thread) as u64) << 32)
                    })
                })
                .collect();
            let rates = threads.into_iter().map(|thread| {
                let (asked, took) = thread.join().unwrap();
                asked as f64 / took.as_secs_f64() / 1000.0
            });
            rates.sum()
        })
    }))
}

/// The i-th key to ask for: every other one is in the filter.
fn asked(keys: u64, first: u64, i: u64) -> String {
    if i.is_multiple_of(2) {
        key(2 * ((first + i * 7919) % keys))
    } else {
        key(2 * (first + i) + 1)
    }
}

fn in_place(
    server: &Redis,
    filter: &RedisBitmap,
    copy: &LocalBitmap,
    (count, len): (u64, usize),
    deadline: Duration,
    first: u64,
) -> (u64, Duration) {
    let mut connection = server.connection();
    let mut found = vec![false; len];
    let (mut next, mut took) = (0, Duration::ZERO);
    while took < deadline {
        let keys: Vec<String> = (next..).take(len).map(|i| asked(count, first, i)).collect();
        let began = Instant::now();
        if let [key] = &keys[..] {
            found[0] = filter.contains(&mut connection, key).unwrap();
        } else {
            filter.contains_batch(&mut connection, &keys, &mut found).unwrap();
        }
        took += began.elapsed();
        assert!(keys.iter().map(|key| copy.contains(key)).eq(found.iter().copied()));
        next += len as u64;
    }
    (next, took)
}

fn of_copy(copy: &LocalBitmap, keys: u64, len: usize, deadline: Duration, first: u64) -> (u64, Duration) {
    const ROUND: usize = 16 << 10;
    let mut found = vec![false; ROUND];
    let (mut next, mut took) = (0, Duration::ZERO);
    while took < deadline {
        let keys: Vec<String> = (next..).take(ROUND).map(|i| asked(keys, first, i)).collect();
        let began = Instant::now();
        if len == 1 {
            for (found, key) in found.iter_mut().zip(&keys) {
                *found = copy.contains(key);
            }
        } else {
            for (keys, found) in keys.chunks(len).zip(found.chunks_mut(len)) {
                copy.contains_batch(keys, found);
            }
        }
        took += began.elapsed();
        assert!(found.iter().step_by(2).all(|found| *found));
        next += ROUND as u64;
    }
    (next, took)
}
