//! lanebloom beside its peers: the same number of keys, the same false-positive rate, the same
//! keys, each through its fastest public call.
//!
//!     cargo bench --bench peers                       # everything, about 20 minutes
//!     cargo bench --bench peers -- --sizes 512K,8M    # filters of these sizes (of ours, at 1%)
//!     cargo bench --bench peers -- --tables singles   # only this table; --help has the list
//!     cargo bench --bench peers -- --cpu              # only the CPU, which heads every report
//!     cargo bench --bench peers -- --record FILE      # the tables into benches/FILE too
//!     cargo bench --bench peers -- --test             # a tiny size, to see that it runs
//!     cargo bench --bench peers -- --level AVX2       # as on a CPU whose best is AVX2
//!
//! With Boost.Bloom, a peer of another language, which build.rs compiles:
//!
//!     BOOST_ROOT=$(ci/fetch/boost.sh) cargo bench --bench peers
//!
//! Every contestant is set up as its documentation says, for the same keys and rate, and the bench
//! checks the rate. Contestants in parentheses are not libraries: they show how fast a filter can
//! be.
//!
//! How it measures: all contestants of a group hold the same keys. A round lets each of them do the
//! same work once, in turn; the table shows the median of the rounds in ns per key, and the median
//! of the per-round ratios to fastbloom of the same group, so that a machine whose speed drifts
//! does not favour anyone. Lookups are half hits, half misses, shuffled, over keys that do not
//! repeat within a round. Each contestant's filter is brought back into the caches before its turn.
//! Every answer is counted and checked. A contestant takes one key per call, unless its name says
//! "batch" or "in bulk". A line at each table says for which CPU features the code of each library
//! was compiled, or which it chooses when it runs.

mod batch_lengths;
#[cfg(has_boost)]
mod boost;
mod contestants;
mod features;
mod growth;
mod key_calls;
mod keys;
mod murmur3;
mod rates;
#[cfg(target_arch = "x86_64")]
mod yardstick;

use clap::{Parser, ValueEnum};
use contestants::{Calls, Fast, Locked, Ours, Peer, Sbbf, Touch};
use fastbloom::AtomicBloomFilter;
use features::features;
use keys::{Key, Text};
use lanebloom::internal::{Isa, instruction_sets};
use lanebloom_benches::{BenchArgs, best_instruction_set, machine, median, number, parse_size, timed};
use std::fmt::Write as _;
use std::thread;

#[derive(Parser)]
struct Args {
    /// Sizes of our filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M,512M")]
    sizes: Vec<usize>,
    /// The tables to make.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Table::value_variants().to_vec())]
    tables: Vec<Table>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The false-positive rate of every contestant.
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// The most keys of a round.
    #[arg(long, default_value_t = 1 << 22)]
    keys: usize,
    /// The best instruction set that lanebloom uses, in place of the CPU's best: "AVX2", for
    /// example.
    #[arg(long, value_parser = parse_level)]
    level: Option<Isa>,
    /// Print the CPU and what the crate makes of it, and stop.
    #[arg(long)]
    cpu: bool,
    #[command(flatten)]
    bench: BenchArgs,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Table {
    /// Single calls on pre-hashed keys by every instruction set, one thread, for each size.
    Singles,
    /// Single calls and batches of pre-hashed keys, for each size.
    Hashes,
    /// The same with keys that the filters hash, for each size.
    Keys,
    /// Single calls on keys of several types, by two hashers, one thread, for each size.
    KeyCalls,
    /// Batches of several lengths beside single calls, for each size.
    Lengths,
    /// Filters that grow.
    Growth,
    /// Few keys over and over.
    HotKeys,
    /// Hashing by Murmur3.
    Murmur3,
    /// Measured rates and lost keys at the planned number of keys: docs/PEERS.md.
    Rates,
}

impl Args {
    /// The best instruction set that lanebloom uses.
    fn level(&self) -> Isa {
        self.level.unwrap_or_else(best_instruction_set)
    }

    /// All that it uses, the best last.
    fn levels(&self) -> impl Iterator<Item = Isa> {
        let sets: Vec<Isa> = instruction_sets().collect();
        let best = sets.iter().position(|&isa| isa == self.level());
        sets.into_iter().take(best.map_or(0, |best| best + 1))
    }
}

fn parse_level(text: &str) -> Result<Isa, String> {
    let found = instruction_sets().find(|isa| isa.to_string() == text);
    found.ok_or_else(|| {
        let names: Vec<String> = instruction_sets().map(|isa| format!("{:?}", isa.to_string())).collect();
        format!("this CPU has {}", names.join(", "))
    })
}

/// The first of the numbers that are never inserted.
const STRANGERS: u64 = 1 << 48;

/// Brings the filter back into the caches, from which the other contestants have driven it.
fn warm<K>(peer: &dyn Peer<K>, keys: &[K]) {
    if (128 << 10..16 << 20).contains(&peer.bytes()) {
        // The third level keeps lines only after some passes: after one, lookups in 8 MiB took four
        // times as long as after six (Zen 5).
        (0..6).for_each(|_| _ = peer.contains(keys));
    } else {
        // The keys that are looked up last, so that no branch predictor remembers them.
        peer.contains(&keys[keys.len() * 7 / 8..]);
    }
}

/// ns per key and ratio to fastbloom of one operation, by contestant; `None` if it lacks it.
type Column = Vec<Option<(f64, f64)>>;

/// One group: contestants that take the same kind of input.
struct Group<K = u64> {
    peers: Vec<Box<dyn Peer<K>>>,
    /// The position of fastbloom, the basis of the ratios.
    reference: usize,
}

impl Group {
    /// The contestants of [`Table::Singles`], [`Table::Hashes`] or [`Table::Keys`], and the number
    /// of keys that they are for.
    fn new(args: &Args, table: Table, bytes: usize) -> (Self, usize) {
        let rate = args.rate;
        let hashed = table != Table::Keys;
        let single = Ours::new(bytes, rate, hashed, args.level(), Calls::Single);
        let n = single.filter.expected_keys();
        let fast = AtomicBloomFilter::with_false_pos(rate).seed(&1).expected_items(n);
        let name = if hashed { "fastbloom" } else { "fastbloom (SipHash)" };
        let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(Fast {
            filter: fast,
            hashed,
            name,
        })];
        let batch = table != Table::Singles;
        if batch {
            peers.push(Box::new(single));
        }
        for isa in args.levels() {
            let calls = if batch { Calls::Batch } else { Calls::Single };
            peers.push(Box::new(Ours::new(bytes, rate, hashed, isa, calls)));
        }
        if !batch {
            peers.push(Box::new(Ours::new(bytes, rate, hashed, args.level(), Calls::Inlined)));
        }
        if hashed {
            if table != Table::Singles {
                peers.push(Box::new(Touch::new(bytes)));
            }
            peers.push(Box::new(Sbbf::new(n, rate)));
            #[cfg(has_boost)]
            {
                peers.push(Box::new(boost::BoostPeer::new(boost::Boost::hashes(n, rate), false)));
                if table != Table::Singles && boost::has_bulk() {
                    peers.push(Box::new(boost::BoostPeer::new(boost::Boost::hashes(n, rate), true)));
                }
            }
            #[cfg(target_arch = "x86_64")]
            if let Some(yardstick) = yardstick::Yardstick::new(n, rate) {
                peers.push(Box::new(yardstick));
            }
        } else {
            let foldhash = foldhash::fast::FixedState::with_seed(1);
            let filter = AtomicBloomFilter::with_false_pos(rate)
                .hasher(foldhash)
                .expected_items(n);
            peers.push(Box::new(Fast {
                filter,
                hashed,
                name: "fastbloom (foldhash)",
            }));
            peers.push(Box::new(Locked::new(n, rate)));
        }
        (Self { peers, reference: 0 }, n)
    }
}

impl<K: Key> Group<K> {
    /// Interleaved rounds of one operation.
    fn rounds(&mut self, rounds: usize, mut work: impl FnMut(&mut dyn Peer<K>) -> Option<f64>) -> Column {
        let mut times = vec![Vec::new(); self.peers.len()];
        for _ in 0..rounds {
            for (peer, times) in self.peers.iter_mut().zip(&mut times) {
                times.push(work(&mut **peer));
            }
        }
        let reference = &times[self.reference];
        let summary = |times: &Vec<Option<f64>>| {
            let own: Option<Vec<f64>> = times.iter().copied().collect();
            let ratios = times
                .iter()
                .zip(reference)
                .map(|(own, reference)| Some(reference.as_ref()? / own.as_ref()?));
            let ratios: Option<Vec<f64>> = ratios.collect();
            Some((median(own?), median(ratios?)))
        };
        times.iter().map(summary).collect()
    }

    /// Inserts the first `n` numbers into every contestant, each by a thread of its own.
    fn fill(&mut self, n: usize) {
        thread::scope(|scope| {
            for peer in &mut self.peers {
                scope.spawn(move || {
                    peer.clear();
                    fill(n, |keys| _ = peer.insert(keys));
                });
            }
        });
    }
}

/// Inserts the keys of the first `n` numbers.
fn fill<K: Key>(n: usize, mut insert: impl FnMut(&[K])) {
    let mut keys = Vec::with_capacity(1 << 16);
    for start in (0..n as u64).step_by(1 << 16) {
        keys.clear();
        keys.extend((start..(n as u64).min(start + (1 << 16))).map(|i| K::of(number(i))));
        insert(&keys);
    }
}

/// The keys that are looked up in a filter of the first numbers.
struct Lookups<K = u64> {
    /// Members from the whole range, each at most once.
    present: Vec<K>,
    /// The same number of keys, which were never inserted.
    strangers: Vec<K>,
    /// Both, in an order without pattern.
    mixed: Vec<K>,
}

impl<K: Key> Lookups<K> {
    /// At most `most` in a filter of `bytes` with `n` numbers: few, since they share the caches
    /// with the filter, but so many that they touch most of its lines.
    fn new(bytes: usize, n: usize, most: usize) -> Self {
        let half = n.min(most.min((bytes / 64).max(1 << 18)) / 2);
        let present: Vec<K> = (0..half).map(|i| K::of(number((i * (n / half)) as u64))).collect();
        let strangers: Vec<K> = (0..half as u64).map(|i| K::of(number(STRANGERS + i))).collect();
        let mut mixed = [&*present, &strangers].concat();
        for i in (1..mixed.len()).rev() {
            mixed.swap(i, (number(i as u64 + (1 << 60)) % (i as u64 + 1)) as usize);
        }
        Self {
            present,
            strangers,
            mixed,
        }
    }
}

fn main() {
    let mut args = Args::parse();
    if args.cpu {
        println!("{}", machine());
        return;
    }
    if args.bench.test {
        (args.sizes, args.rounds, args.keys) = (vec![16 << 10], 1, 4096);
    }
    let mut report = machine();
    if let Some(level) = args.level {
        report += &format!("; lanebloom's by --level: {level}");
    }
    report += &format!("; {} rounds of at most {} keys\n", args.rounds, args.keys);
    print!("{report}");
    let mut publish = |table: String| args.bench.add(&mut report, &table);
    let wanted = |table| args.tables.contains(&table);
    for &bytes in &args.sizes {
        for table in [Table::Singles, Table::Hashes, Table::Keys] {
            if wanted(table) {
                let (group, n) = Group::new(&args, table, bytes);
                publish(one_group(&args, bytes, table, group, n));
            }
        }
        if wanted(Table::KeyCalls) {
            publish(key_calls::key_calls::<u64>(&args, bytes));
            publish(key_calls::key_calls::<[u8; 16]>(&args, bytes));
            publish(key_calls::key_calls::<Text>(&args, bytes));
        }
        if wanted(Table::Lengths) {
            publish(batch_lengths::batch_lengths(&args, bytes));
        }
    }
    if wanted(Table::Growth) {
        publish(growth::growing(&args));
    }
    if wanted(Table::HotKeys) {
        publish(hot_keys(&args));
    }
    if wanted(Table::Murmur3) {
        publish(murmur3::hashing(&args));
    }
    if wanted(Table::Rates) {
        publish(rates::rates(&args));
    }
}

fn one_group<K: Key>(args: &Args, bytes: usize, table: Table, mut group: Group<K>, n: usize) -> String {
    let fresh: Vec<K> = (0..n.min(args.keys) as u64).map(|i| K::of(number(i))).collect();
    let Lookups {
        present,
        strangers,
        mixed,
    } = Lookups::new(bytes, n, args.keys);
    let half = present.len();
    let threads = if matches!(table, Table::Singles | Table::KeyCalls) {
        1..=1
    } else {
        1..=2
    };

    let mut columns = Vec::new();
    for threads in threads.clone() {
        columns.push((
            format!("insert fresh, {threads}T"),
            group.rounds(args.rounds, |peer| {
                peer.clear();
                (threads <= peer.writers()).then(|| {
                    let (time, new) = timed(threads, &fresh, |keys| peer.insert(keys));
                    let (name, all) = (peer.name(), fresh.len());
                    if let Some(new) = new {
                        assert!(new * 100 > all * 98, "{name}: only {new} of {all} were new");
                    } else {
                        let found = peer.contains(&fresh);
                        assert_eq!(found, all, "{name}: not all that were inserted were found");
                    }
                    time
                })
            }),
        ));
    }
    group.fill(n);
    for threads in threads.clone() {
        columns.push((
            format!("insert present, {threads}T"),
            group.rounds(args.rounds, |peer| {
                (threads <= peer.writers()).then(|| {
                    warm(peer, &present);
                    let (time, new) = timed(threads, &present, |keys| peer.insert(keys));
                    let new = new.unwrap_or(0);
                    assert_eq!(new, 0, "{}: keys that were present came out as new", peer.name());
                    time
                })
            }),
        ));
    }
    let measure = |peer: &dyn Peer<K>| {
        let rate = peer.contains(&strangers) as f64 / half as f64;
        // Half as much (some round their sizes up) to a quarter more, and what chance adds.
        let chance = 5.0 * (args.rate / half as f64).sqrt();
        let kept = args.rate / 2.0 - chance..=args.rate * 1.25 + chance;
        assert!(
            kept.contains(&rate) || !peer.keeps_rate(),
            "{}: {rate} of the strangers are found, {} were requested: is it set up as its documentation says?",
            peer.name(),
            args.rate
        );
        rate
    };
    let rates: Vec<f64> = group.peers.iter().map(|peer| measure(&**peer)).collect();
    for threads in threads.clone() {
        columns.push((
            format!("contains, {threads}T"),
            group.rounds(args.rounds, |peer| {
                warm(peer, &mixed);
                let (time, found) = timed(threads, &mixed, |keys| peer.contains(keys));
                let wrong = found
                    .checked_sub(half)
                    .unwrap_or_else(|| panic!("{}: found {found}, {half} were inserted", peer.name()));
                assert!(wrong <= half / 4, "{}: {wrong} of {half} false positives", peer.name());
                Some(time)
            }),
        ));
    }

    let (what, missing): (String, _) = match table {
        Table::Singles => ("pre-hashed u64, single calls".into(), missing()),
        Table::Keys => (
            "u64 keys, each with the hasher named or its default".into(),
            String::new(),
        ),
        Table::KeyCalls => (
            format!("{}, single calls (ratios: to fastbloom with foldhash)", K::NAME),
            missing(),
        ),
        _ => ("pre-hashed u64".into(), missing()),
    };
    let mut table = String::new();
    writeln!(table, "\n## {} KiB, {n} keys at {}, {what}\n", bytes >> 10, args.rate).unwrap();
    writeln!(table, "ns per key (times faster than fastbloom in the same rounds)\n").unwrap();
    table += &features(args, group.peers.iter().filter_map(|peer| peer.library()));
    write!(table, "| {:47} | {:>7} | {:>8}", "", "rate", "bits/key").unwrap();
    columns
        .iter()
        .for_each(|(name, _)| write!(table, " | {name:>18}").unwrap());
    write!(table, " |\n|---|--:|--:{} |\n", "|--:".repeat(columns.len())).unwrap();
    for (i, peer) in group.peers.iter().enumerate() {
        let bits_per_key = peer.bytes() as f64 * 8.0 / n as f64;
        write!(
            table,
            "| {:47} | {:>6.3}% | {bits_per_key:>8.2}",
            peer.name(),
            rates[i] * 100.0
        )
        .unwrap();
        for (_, column) in &columns {
            let cell = column[i].map_or("".into(), |(time, ratio)| format!("{time:.2} ({ratio:.2}x)"));
            write!(table, " | {cell:>18}").unwrap();
        }
        table.push_str(" |\n");
    }
    table + &missing
}

/// Few keys, looked up over and over, in a filter in L1. Here the CPU predicts all branches of a
/// filter that stops at the first missing bit.
fn hot_keys(args: &Args) -> String {
    let (mut group, n) = Group::new(args, Table::Hashes, 32 << 10);
    group.fill(n);
    let hot: Vec<u64> = (0..8).flat_map(|i| [number(i), number(STRANGERS + i)]).collect();
    let keys: Vec<u64> = (0..args.keys.min(1 << 18)).map(|i| hot[i % hot.len()]).collect();
    let column = group.rounds(args.rounds, |peer| {
        let (time, found) = timed(1, &keys, |keys| peer.contains(keys));
        assert!(found >= keys.len() / 2, "a key that was inserted was not found");
        Some(time)
    });
    let mut table = "\n## 32 KiB, 16 keys over and over, half of them in the filter\n\n".to_owned();
    table += &features(args, group.peers.iter().filter_map(|peer| peer.library()));
    table += "| contains | ns per key (times faster than fastbloom in the same rounds) |\n|---|--:|\n";
    for (peer, cell) in group.peers.iter().zip(column) {
        let (time, ratio) = cell.expect("all can be asked");
        writeln!(table, "| {:47} | {time:.2} ({ratio:.2}x) |", peer.name()).unwrap();
    }
    table + &missing()
}

/// A row that says why Boost.Bloom is missing, or its bulk calls.
fn missing() -> String {
    // By `build.rs`.
    #[cfg(not(has_boost))]
    let reason = Some(env!("BUILD_OF_BOOST"));
    #[cfg(has_boost)]
    let reason = (!boost::has_bulk()).then_some("no bulk calls before Boost 1.90");
    reason.map_or(String::new(), |reason| format!("| Boost.Bloom | {reason} |\n"))
}
