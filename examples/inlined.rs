//! A loop that passes the known ids of a stream on, in three ways: by the filter's own calls, by
//! the same calls inside [`inlined`](bloom::inlined), and in batches. The ids come one by
//! one and lie in no slice, so the third way copies them to one. All three must pass the same ids
//! on.
//!
//!     cargo run --release --bin inlined                   # a filter of 1.4 MB
//!     cargo run --release --bin inlined -- --keys 10000   # one that fits into the first cache
//!
//! The times include making the ids and hashing them. They differ from round to round, so the ways
//! take turns, and each shows its best. On a CPU without AVX2 the first two make the same calls.

use clap::{Parser, value_parser};
use lanebloom::{BuildError, ConcurrentBloom, bloom, instruction_set};
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Keys in the filter: half of the stream's ids are among them
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1 << 32))]
    keys: u64,
    /// Ids in the stream
    #[arg(long, default_value_t = 10_000_000, value_parser = value_parser!(u64).range(1..=1 << 40))]
    ids: u64,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

/// Ids of a batch.
const BATCH: usize = 1024;

/// The ids that a loop passes on: their number and their sum.
type Passed = (u64, u64);

/// A loop over the stream.
type Way = fn(&ConcurrentBloom, &Args) -> Passed;

const WAYS: [(&str, Way); 3] = [
    ("plain calls", plain),
    ("inlined", inlined),
    ("batches of 1024", batches),
];

fn plain(filter: &ConcurrentBloom, args: &Args) -> Passed {
    stream(args).filter(|id| filter.contains(id)).fold((0, 0), pass_on)
}

fn inlined(filter: &ConcurrentBloom, args: &Args) -> Passed {
    bloom::inlined(filter, |filter| {
        stream(args).filter(|id| filter.contains(id)).fold((0, 0), pass_on)
    })
}

fn batches(filter: &ConcurrentBloom, args: &Args) -> Passed {
    let (mut ids, mut found) = (Vec::with_capacity(BATCH), [false; BATCH]);
    let (mut stream, mut passed) = (stream(args), (0, 0));
    loop {
        ids.clear();
        ids.extend(stream.by_ref().take(BATCH));
        if ids.is_empty() {
            return passed;
        }
        let found = &mut found[..ids.len()];
        filter.contains_batch(&ids, &mut *found);
        let known = ids.iter().zip(found).filter(|(_, found)| **found);
        passed = known.fold(passed, |passed, (id, _)| pass_on(passed, *id));
    }
}

/// The ids, in no order (SplitMix64). Those below `keys` are in the filter.
#[inline(always)]
fn stream(args: &Args) -> impl Iterator<Item = u64> + use<> {
    let ids = 2 * args.keys;
    (0..args.ids).map(move |i| {
        let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(ids)) >> 64) as u64
    })
}

#[inline(always)]
fn pass_on((count, sum): Passed, id: u64) -> Passed {
    (count + 1, sum.wrapping_add(id))
}

fn main() -> Result<(), BuildError> {
    let args = Args::parse();
    let filter = ConcurrentBloom::with_capacity(args.keys as usize, 0.01)?;
    filter.insert_all(0..args.keys);

    let known = stream(&args).filter(|id| *id < args.keys).count() as u64;
    let expected = plain(&filter, &args);
    let wrong = expected
        .0
        .checked_sub(known)
        .expect("a key that was inserted was not found");
    assert!(wrong <= (args.ids - known) / 50 + 100, "{wrong} unknown ids were found");

    let mut best = [f64::INFINITY; WAYS.len()];
    for _ in 0..args.rounds {
        for (best, (name, way)) in best.iter_mut().zip(WAYS) {
            let start = Instant::now();
            let passed = way(&filter, &args);
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / args.ids as f64);
            assert_eq!(passed, expected, "{name}");
        }
    }
    println!(
        "{} keys in {}, {}; {} of {} ids pass, {wrong} of them by mistake",
        args.keys,
        indicatif::HumanBytes(filter.memory_bytes() as u64),
        instruction_set(),
        expected.0,
        args.ids,
    );
    for ((name, _), ns) in WAYS.iter().zip(best) {
        println!("{name:15} {ns:6.2} ns per id");
    }
    Ok(())
}
