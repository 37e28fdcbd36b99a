//! Plain threads of the standard library on one filter, without rayon. They take slices of the keys
//! from a common counter, insert them in batches, and look them up again.
//!
//!     cargo run --release --bin scoped_threads                      # 10 million keys, all cores
//!     cargo run --release --bin scoped_threads -- --keys 50000000 --threads 2

use clap::Parser;
use lanebloom::{BuildError, ConcurrentBloom};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Keys to insert.
    #[arg(long, default_value_t = 10_000_000)]
    keys: u64,
    /// Threads; by default as many as there are cores.
    #[arg(long, default_value_t = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))]
    threads: NonZero<usize>,
}

/// Keys that a thread takes at once: enough to be worth the access to the counter, and few enough
/// that all threads end at about the same time.
const SLICE: usize = 1 << 16;

fn main() -> Result<(), BuildError> {
    let args = Args::parse();
    let keys: Vec<u64> = (0..args.keys).map(|i| i * i).collect();
    let filter = Arc::new(ConcurrentBloom::builder().expected_keys(keys.len()).build()?);

    let start = Instant::now();
    let new = by_threads(&args, &keys, |keys| filter.insert_batch(keys));
    report("inserted", start, &keys);

    let start = Instant::now();
    let found = by_threads(&args, &keys, |keys| {
        let mut found = vec![false; keys.len()];
        filter.contains_batch(keys, &mut found);
        found.iter().filter(|&&found| found).count()
    });
    report("looked up", start, &keys);

    assert_eq!(found, keys.len(), "a key that was inserted was not found");
    println!(
        "{} keys, {new} of them new when they came; {} of memory, {:.3}% false positives",
        keys.len(),
        indicatif::HumanBytes(filter.memory_bytes() as u64),
        100.0 * filter.statistics().false_positive_rate,
    );
    Ok(())
}

/// The sum of what `work` returns for the slices.
fn by_threads(args: &Args, keys: &[u64], work: impl Fn(&[u64]) -> usize + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut sum = 0;
        // Relaxed: the counter distributes the slices, and nothing else rests on it.
        while let Some(slice) = keys.chunks(SLICE).nth(next.fetch_add(1, Ordering::Relaxed)) {
            sum += work(slice);
        }
        sum
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads.get()).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn report(what: &str, start: Instant, keys: &[u64]) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what} in {seconds:.2} s, {:.1} ns per key",
        seconds * 1e9 / keys.len() as f64
    );
}
