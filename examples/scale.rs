//! The cost of filters beyond one machine. The program measures this machine's constants, lets real
//! filters play nodes that exchange deltas, and executors that build the filter of a join in parts.
//! From these numbers it computes the sizes that no single machine can try. `docs/SCALE.md` reads
//! its tables. If a replica lacks a key, or parts do not make the whole, it panics.
//!
//! ```sh
//! cargo run --release --bin scale                     # about a minute
//! cargo run --release --bin scale -- --link 25        # links of 25 Gbit/s
//! ```

use clap::{Parser, value_parser};
use lanebloom::{ConcurrentBloom, FastHash, Hashed, KeyHasher, bloom};
use std::error::Error;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Computes what filters cost on many machines.
#[derive(Parser)]
struct Args {
    /// Keys of the filters that are measured; the tables compute larger ones from them
    #[arg(long, default_value_t = 10_000_000, value_parser = value_parser!(u32).range(1000..=1_000_000_000))]
    keys: u32,
    /// The filters' false-positive rate
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Nodes that exchange deltas
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u8).range(2..=64))]
    nodes: u8,
    /// A machine's link, in Gbit/s
    #[arg(long, default_value_t = 10.0)]
    link: f64,
    /// The rate of a store while all of its keys are read, in MB/s for each node
    #[arg(long, default_value_t = 200.0)]
    store: f64,
    /// Bytes of a key, as the store gives it
    #[arg(long, default_value_t = 24, value_parser = value_parser!(u32).range(1..=65536))]
    key_bytes: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let constants = Constants::measure(&args)?;
    constants.print(&args);
    replicas(&args)?;
    rebuild(&args, &constants);
    join(&args, &constants)
}

/// Keys without a pattern, as their hashes.
fn hash(i: u64) -> u64 {
    FastHash::with_seed(0).hash_key(&i)
}

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(hash).collect()
}

/// The median of three runs, in seconds.
fn seconds(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = [0.0; 3];
    for time in &mut times {
        let start = Instant::now();
        run()?;
        *time = start.elapsed().as_secs_f64();
    }
    times.sort_by(f64::total_cmp);
    Ok(times[1])
}

// ---- This machine ----

/// One thread of this machine.
struct Constants {
    /// A filter's bits for each of its keys.
    bits_per_key: f64,
    /// Nanoseconds for each key.
    insert: f64,
    contains: f64,
    /// Bytes of a filter per second.
    union: f64,
    compare: f64,
}

impl Constants {
    fn measure(args: &Args) -> Result<Self> {
        let keys = u64::from(args.keys);
        let (hashes, absent) = (hashes(0..keys), hashes(1 << 40..(1 << 40) + keys));
        let empty = ConcurrentBloom::with_capacity(args.keys as usize, args.rate)?;
        let mut filter = empty.clone();
        let mut insert = f64::MAX;
        for _ in 0..3 {
            filter.clear();
            let start = Instant::now();
            for batch in hashes.chunks(1024) {
                filter.insert_batch(Hashed::slice(batch));
            }
            insert = insert.min(start.elapsed().as_secs_f64());
        }
        let mut found = 0;
        let contains = seconds(|| {
            found = 0;
            let mut flags = [false; 1024];
            for batch in hashes.chunks(1024).chain(absent.chunks(1024)) {
                let flags = &mut flags[..batch.len()];
                filter.contains_batch(Hashed::slice(batch), &mut *flags);
                found += flags.iter().filter(|&&found| found).count();
            }
            Ok(())
        })?;
        let wrong = found as f64 - keys as f64;
        assert!(
            wrong >= 0.0 && wrong < 2.0 * args.rate * keys as f64 + 100.0,
            "{wrong} of {keys} absent keys were found"
        );
        let target = empty.clone();
        let union = seconds(|| {
            target.union_from(&filter)?;
            Ok(())
        })?;
        assert!(target == filter);
        let compare = seconds(|| {
            assert_eq!(filter.with(&target)?.delta().len(), 64);
            Ok(())
        })?;
        let bytes = filter.memory_bytes() as f64;
        Ok(Self {
            bits_per_key: 8.0 * bytes / keys as f64,
            insert: 1e9 * insert / keys as f64,
            contains: 1e9 * contains / (2 * keys) as f64,
            union: bytes / union,
            compare: bytes / compare,
        })
    }

    fn print(&self, args: &Args) {
        println!(
            "One thread of this machine, {} keys at {}:\n",
            count(args.keys.into()),
            args.rate
        );
        println!("| a filter's bits per key | {:.1} |\n|---|--:|", self.bits_per_key);
        println!("| insert, batches of 1024 hashes | {:.1} ns |", self.insert);
        println!("| lookup, the same | {:.1} ns |", self.contains);
        println!("| union of filters | {:.1} GB/s |", self.union / 1e9);
        println!("| comparison for a delta | {:.1} GB/s |\n", self.compare / 1e9);
    }

    fn bytes(&self, keys: f64) -> f64 {
        self.bits_per_key / 8.0 * keys
    }
}

// ---- Replicas ----

/// Nodes that each insert keys of their own, and exchange deltas.
fn replicas(args: &Args) -> Result<()> {
    let nodes = u64::from(args.nodes);
    println!(
        "{nodes} nodes, each with a filter for {} keys; each inserts, then sends a delta to all others:\n",
        count(args.keys.into())
    );
    println!("| keys of a delta | bytes per key | sent by a node, per key | received |\n|--:|--:|--:|--:|");
    let empty = ConcurrentBloom::with_capacity(args.keys as usize, args.rate)?;
    for keys in [1, 10, 100, 1000, 10_000, 100_000] {
        if keys * nodes > args.keys.into() {
            break;
        }
        // The keys that all nodes have are the baseline of all deltas.
        let shared = empty.clone();
        let mine = |node: u64| hashes(node * keys..(node + 1) * keys);
        let mut deltas = Vec::new();
        for node in 0..nodes {
            let filter = shared.clone();
            filter.insert_batch(Hashed::slice(&mine(node)));
            deltas.push(filter.with(&shared)?.delta());
        }
        let bytes = deltas.iter().map(Vec::len).sum::<usize>() as f64 / (nodes * keys) as f64;
        for delta in &deltas {
            bloom::apply_deltas(&shared, delta)?;
        }
        let mut found = vec![false; (nodes * keys) as usize];
        shared.contains_batch(Hashed::slice(&hashes(0..nodes * keys)), &mut found);
        assert!(found.iter().all(|found| *found), "a replica lacks a key");
        println!(
            "| {} | {bytes:.1} | {:.0} | {bytes:.1} |",
            count(keys),
            bytes * (nodes - 1) as f64
        );
    }
    println!();
    Ok(())
}

// ---- A rebuild ----

fn rebuild(args: &Args, constants: &Constants) {
    println!(
        "A filter of 10^11 keys is rebuilt from its store ({} MB/s for each node, {} bytes a key), or copied from a \
         replica ({} Gbit/s):\n",
        args.store, args.key_bytes, args.link
    );
    println!("| nodes | memory of a node | inserts, one thread | reads | copy |\n|--:|--:|--:|--:|--:|");
    for nodes in [1.0, 10.0, 100.0, 1000.0] {
        let keys = 1e11 / nodes;
        println!(
            "| {nodes} | {} | {} | {} | {} |",
            size(constants.bytes(keys)),
            time(keys * constants.insert / 1e9),
            time(keys * f64::from(args.key_bytes) / (1e6 * args.store)),
            time(args.on_link(constants.bytes(keys)))
        );
    }
    println!();
}

// ---- A join ----

fn join(args: &Args, constants: &Constants) -> Result<()> {
    // Real parts make the real whole, as deltas from an empty filter and as hashes.
    println!(
        "The filter of a join, {} keys of the small side, in parts (measured here):\n",
        count(args.keys.into())
    );
    println!(
        "| executors | all parts as filters | as deltas | merge of deltas, ns per key | as hashes | merge of hashes |\n|--:|--:|--:|--:|--:|--:|"
    );
    let keys = u64::from(args.keys);
    let empty = ConcurrentBloom::with_capacity(args.keys as usize, args.rate)?;
    for executors in [10, 100, 1000] {
        // Memory that was written before: a thousand parts do not each meet new pages.
        let mut whole = empty.clone();
        whole.insert_batch(Hashed::slice(&hashes(0..keys)));
        whole.clear();
        // Ten of the parts determine the size of all.
        let (mut bytes, mut tried, mut merging) = (0, 0, 0.0);
        let part_of = |part| hashes(part * keys / executors..(part + 1) * keys / executors);
        for part in 0..10 {
            let filter = empty.clone();
            let part = part_of(part);
            filter.insert_batch(Hashed::slice(&part));
            let delta = filter.with(&empty)?.delta();
            bytes += delta.len();
            tried += part.len();
            let start = Instant::now();
            bloom::apply_deltas(&whole, &delta)?;
            merging += start.elapsed().as_secs_f64();
        }
        let direct = empty.clone();
        (0..10).for_each(|part| {
            direct.insert_batch(Hashed::slice(&part_of(part)));
        });
        assert!(whole == direct, "the parts do not make the whole");
        let bytes = bytes as f64 / tried as f64;
        let merging = merging / tried as f64;
        println!(
            "| {executors} | {} | {} | {:.1} | {} | {:.1} |",
            size(executors as f64 * constants.bytes(keys as f64)),
            size(bytes * keys as f64),
            1e9 * merging,
            size(8.0 * keys as f64),
            constants.insert
        );
    }
    println!(
        "\nThe same join on more keys, computed. Parts go to one merger by its link of {} Gbit/s, which sends the whole \
         to all executors; or the whole goes on from executor to executor (a tree of two branches):\n",
        args.link
    );
    println!(
        "| keys | executors | filter | collect filters | collect hashes | merge hashes | send: from one | in a tree | pays from, \
         pruned rows of 100 bytes |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for keys in [1e5, 1e6, 1e7, 1e8, 1e9] {
        for executors in [10.0, 100.0, 1000.0_f64] {
            let filter = constants.bytes(keys);
            let collect = args.on_link(8.0 * keys);
            let send = args.on_link(filter * executors);
            let levels = executors.log2().ceil();
            let tree = 2.0 * levels * args.on_link(filter);
            let merge = keys * constants.insert / 1e9;
            // All executors send rows at once, over their own links.
            let rows = (collect + merge + send.min(tree)) / args.on_link(100.0) * executors;
            println!(
                "| {} | {executors} | {} | {} | {} | {} | {} | {} | {} |",
                count(keys as u64),
                size(filter),
                time(args.on_link(executors * filter)),
                time(collect),
                time(merge),
                time(send),
                time(tree),
                count(rows as u64)
            );
        }
    }
    Ok(())
}

impl Args {
    /// Seconds that bytes take on a link.
    fn on_link(&self, bytes: f64) -> f64 {
        bytes * 8.0 / (self.link * 1e9)
    }
}

// ---- Text ----

fn scaled(number: f64, base: f64, units: &[&str]) -> String {
    let mut number = number;
    let mut units = units.iter();
    let mut unit = units.next().expect("a unit");
    while number >= 0.9995 * base
        && let Some(next) = units.next()
    {
        number /= base;
        unit = next;
    }
    let digits = if number < 9.95 && number.fract() > 0.0 { 1 } else { 0 };
    format!("{number:.digits$}{unit}")
}

fn count(number: u64) -> String {
    scaled(
        number as f64,
        1000.0,
        &["", " thousand", " million", " billion", " trillion"],
    )
}

fn size(bytes: f64) -> String {
    scaled(bytes, 1000.0, &[" B", " kB", " MB", " GB", " TB"])
}

fn time(seconds: f64) -> String {
    match seconds {
        ..0.9995 => scaled(1e6 * seconds, 1000.0, &[" µs", " ms"]),
        ..99.5 => format!("{seconds:.1} s"),
        ..5970.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
