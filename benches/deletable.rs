//! Filters that can delete beside their peers: the same number of keys, the same keys, each through
//! its fastest public call.
//!
//!     cargo bench --bench deletable                      # everything
//!     cargo bench --bench deletable -- --sizes 512K,8M   # sizes of our cuckoo filter
//!     cargo bench --bench deletable -- --rates 0.01      # for this rate alone
//!     cargo bench --bench deletable -- --record FILE     # the tables into benches/FILE too
//!     cargo bench --bench deletable -- --test            # a tiny size, to see that it runs
//!
//! How it measures: as the bench `peers` does. All contestants hold the same keys, sized for the
//! same number and rate. They do the same work in turn, once per round. The tables show the median
//! of the rounds in ns per key, and the median of the per-round ratios to the fastest peer of that
//! column. Half of the keys stay. A round takes its part of the other half: inserts it into the
//! half-full filter, looks it up, and removes it again. (A tombstone filter begins each round as it
//! was filled.) Keys are hashes already; peers that hash by themselves get a hasher of one
//! multiplication. "Highest load" is the number of keys when an insert failed, as a part of the
//! slots. Every answer is counted and checked.
//!
//! A peer that is not concurrent is behind a `RwLock`, taken for every key, as a service would use
//! it.

use clap::Parser;
use lanebloom::{CountingBloom, CuckooFilter, DLeftFilter, Hashed, InsertError, TombstoneBloom};
use lanebloom_benches::{BenchArgs, machine, median, number, parse_size, timed};
use rand_09::SeedableRng;
use rand_09::rngs::SmallRng;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use std::fmt::Write as _;
use std::hash::Hasher;
use std::sync::RwLock;
use std::thread;

#[derive(Parser)]
struct Args {
    /// Sizes of our cuckoo filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M,512M")]
    sizes: Vec<usize>,
    /// False-positive rates of every contestant.
    #[arg(long, value_delimiter = ',', default_value = "0.01,0.001")]
    rates: Vec<f64>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The most keys of a round.
    #[arg(long, default_value_t = 1 << 21)]
    keys: usize,
    #[command(flatten)]
    bench: BenchArgs,
}

/// A contestant. Another filter enters by this trait and a line in `contestants`.
trait Contestant: Send + Sync {
    fn name(&self) -> &'static str;
    /// Inserts keys until one finds no room; returns how many found room.
    fn insert(&self, keys: &[u64]) -> usize;
    /// Looks keys up; returns how many are found.
    fn contains(&self, keys: &[u64]) -> usize;
    /// Removes keys; returns how many were there.
    fn remove(&self, keys: &[u64]) -> usize;
    fn bytes(&self) -> usize;
    /// The number of places, if it is fixed.
    fn slots(&self) -> Option<usize>;
    fn is_ours(&self) -> bool {
        false
    }
    /// Called when the filter is filled: converts a filled filter.
    fn filled(&mut self) {}
    /// Called before a round: makes room for its keys, if removed keys cannot come again.
    fn rewind(&mut self) {}
    /// The rate that it promises if this one is requested.
    fn rate(&self, requested: f64) -> f64 {
        requested
    }
    /// The part of the present keys that it may miss.
    fn false_negative_rate(&self) -> f64 {
        0.0
    }
}

fn count(keys: &[u64], test: impl Fn(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| test(key)).count()
}

fn until_full(keys: &[u64], insert: impl Fn(u64) -> bool) -> usize {
    keys.iter().take_while(|&&key| insert(key)).count()
}

/// Keys per batch call.
const BATCH: usize = 1024;

fn in_batches(keys: &[u64], contains: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut found = [false; BATCH];
    let batch = |keys: &[u64]| {
        let found = &mut found[..keys.len()];
        contains(keys, found);
        found.iter().filter(|&&found| found).count()
    };
    keys.chunks(BATCH).map(batch).sum()
}

/// The operations that this bench measures on one of our filters.
trait Filter: Send + Sync {
    /// The names of the single calls and of the batch calls.
    const NAMES: [&'static str; 2];
    fn insert_one(&self, hash: u64) -> bool;
    /// Returns how many keys found room.
    fn insert_all(&self, hashes: &[u64]) -> usize;
    fn contains_one(&self, hash: u64) -> bool;
    fn contains_all(&self, hashes: &[u64], found: &mut [bool]);
    fn remove_one(&self, hash: u64) -> bool;
    fn remove_all(&self, hashes: &[u64]) -> usize;
    fn bytes(&self) -> usize;
    fn slots(&self) -> Option<usize>;
    /// A copy, if a removed key cannot be inserted again.
    fn remember(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

macro_rules! filters {
    ($($filter:ident: $one:expr, $all:expr, $slots:expr, $remember:expr;)*) => {$(
        impl Filter for $filter {
            const NAMES: [&'static str; 2] = [stringify!($filter), concat!(stringify!($filter), ", batch")];
            fn insert_one(&self, hash: u64) -> bool {
                $one(self, hash)
            }
            fn insert_all(&self, hashes: &[u64]) -> usize {
                $all(self, hashes)
            }
            fn contains_one(&self, hash: u64) -> bool {
                self.contains(&Hashed(hash))
            }
            fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
                self.contains_batch(Hashed::slice(hashes), found);
            }
            fn remove_one(&self, hash: u64) -> bool {
                self.remove(&Hashed(hash))
            }
            fn remove_all(&self, hashes: &[u64]) -> usize {
                self.remove_batch(Hashed::slice(hashes))
            }
            fn bytes(&self) -> usize {
                self.memory_bytes()
            }
            fn slots(&self) -> Option<usize> {
                $slots(self)
            }
            fn remember(&self) -> Option<Self> {
                $remember(self)
            }
        }
    )*};
}

/// The number of hashes that `insert_batch` inserted.
fn inserted(all: usize, result: Result<(), InsertError>) -> usize {
    result.map_or_else(|error| error.inserted(), |()| all)
}

// Whether one finds room; how many do; the number of places; the filter that begins each round.
filters! {
    CuckooFilter:
        |filter: &Self, hash| filter.insert(&Hashed(hash)).is_ok(),
        |filter: &Self, hashes: &[u64]| inserted(hashes.len(), filter.insert_batch(Hashed::slice(hashes))),
        |filter: &Self| Some(filter.slots()),
        |_| None;
    DLeftFilter:
        |filter: &Self, hash| filter.insert(&Hashed(hash)).is_ok(),
        |filter: &Self, hashes: &[u64]| inserted(hashes.len(), filter.insert_batch(Hashed::slice(hashes))),
        |filter: &Self| Some(filter.slots()),
        |_| None;
    CountingBloom:
        |filter: &Self, hash| { filter.insert(&Hashed(hash)); true },
        |filter: &Self, hashes: &[u64]| { filter.insert_batch(Hashed::slice(hashes)); hashes.len() },
        |_| None,
        |_| None;
    TombstoneBloom:
        |filter: &Self, hash| { filter.insert(&Hashed(hash)); true },
        |filter: &Self, hashes: &[u64]| { filter.insert_batch(Hashed::slice(hashes)); hashes.len() },
        |_| None,
        |filter: &Self| filter.try_clone().ok();
}

/// One of ours, call by call or in batches.
struct Ours<F> {
    filter: F,
    batch: bool,
    /// The filter as it was filled.
    remembered: Option<F>,
}

/// Both, call by call and in batches.
fn both<F: Filter + 'static>(build: impl Fn() -> F) -> [Box<dyn Contestant>; 2] {
    [false, true].map(|batch| -> Box<dyn Contestant> {
        Box::new(Ours {
            filter: build(),
            batch,
            remembered: None,
        })
    })
}

impl<F: Filter> Contestant for Ours<F> {
    fn name(&self) -> &'static str {
        F::NAMES[usize::from(self.batch)]
    }
    fn insert(&self, keys: &[u64]) -> usize {
        if self.batch {
            self.filter.insert_all(keys)
        } else {
            until_full(keys, |hash| self.filter.insert_one(hash))
        }
    }
    fn contains(&self, keys: &[u64]) -> usize {
        if self.batch {
            in_batches(keys, |keys, found| self.filter.contains_all(keys, found))
        } else {
            count(keys, |hash| self.filter.contains_one(hash))
        }
    }
    fn remove(&self, keys: &[u64]) -> usize {
        if self.batch {
            self.filter.remove_all(keys)
        } else {
            count(keys, |hash| self.filter.remove_one(hash))
        }
    }
    fn bytes(&self) -> usize {
        self.filter.bytes()
    }
    fn slots(&self) -> Option<usize> {
        self.filter.slots()
    }
    fn is_ours(&self) -> bool {
        true
    }
    fn filled(&mut self) {
        self.remembered = self.filter.remember();
    }
    fn false_negative_rate(&self) -> f64 {
        // The default, for filters without removals.
        if self.remembered.is_some() { 0.001 } else { 0.0 }
    }
    fn rewind(&mut self) {
        if let Some(filled) = &self.remembered {
            self.filter = filled.remember().expect("there was memory once");
        }
    }
}

/// The hasher for peers that hash the hashes again: one multiplication.
#[derive(Clone, Copy, Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ word ^ 0x2545_f491_4f6c_dd1d).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

struct AtomicCuckoo(atomic_cuckoo_filter::CuckooFilter<Multiply>);

impl Contestant for AtomicCuckoo {
    fn name(&self) -> &'static str {
        "atomic-cuckoo-filter"
    }
    fn insert(&self, keys: &[u64]) -> usize {
        until_full(keys, |key| self.0.insert(&key).is_ok())
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.contains(&key))
    }
    fn remove(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.remove(&key))
    }
    fn bytes(&self) -> usize {
        2 * self.0.capacity() // fingerprints of 16 bits
    }
    fn slots(&self) -> Option<usize> {
        Some(self.0.capacity())
    }
}

struct LockedCuckoo(RwLock<cuckoofilter::CuckooFilter<Multiply>>);

impl Contestant for LockedCuckoo {
    fn name(&self) -> &'static str {
        "RwLock<cuckoofilter>"
    }
    fn insert(&self, keys: &[u64]) -> usize {
        until_full(keys, |key| self.0.write().unwrap().add(&key).is_ok())
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.read().unwrap().contains(&key))
    }
    fn remove(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.write().unwrap().delete(&key))
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().memory_usage()
    }
    fn slots(&self) -> Option<usize> {
        Some(self.bytes()) // fingerprints of 8 bits
    }
    /// A lookup compares up to 8 fingerprints of 8 bits, of which it never uses 0.
    fn rate(&self, _: f64) -> f64 {
        8.0 / 255.0
    }
}

struct LockedScalable(RwLock<ScalableCuckooFilter<u64, Multiply, SmallRng>>);

impl Contestant for LockedScalable {
    fn name(&self) -> &'static str {
        "RwLock<scalable_cuckoo_filter>"
    }
    fn insert(&self, keys: &[u64]) -> usize {
        until_full(keys, |key| {
            self.0.write().unwrap().insert(&key);
            true
        })
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.read().unwrap().contains(&key))
    }
    fn remove(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.write().unwrap().remove(&key))
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().bits() as usize / 8
    }
    fn slots(&self) -> Option<usize> {
        None // it grows
    }
}

struct LockedQuotient(RwLock<qfilter::Filter>);

impl Contestant for LockedQuotient {
    fn name(&self) -> &'static str {
        "RwLock<qfilter>"
    }
    fn insert(&self, keys: &[u64]) -> usize {
        until_full(keys, |key| {
            self.0.write().unwrap().insert_fingerprint(true, key).is_ok()
        })
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.read().unwrap().contains_fingerprint(key))
    }
    fn remove(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.write().unwrap().remove_fingerprint(key))
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().memory_usage()
    }
    fn slots(&self) -> Option<usize> {
        Some(self.0.read().unwrap().max_capacity() as usize)
    }
}

/// All contestants for `n` keys at `rate`, empty.
fn contestants(n: usize, rate: f64) -> Vec<Box<dyn Contestant>> {
    // Each builder is a type of its own, with the same calls.
    macro_rules! build {
        ($builder:expr) => {
            || {
                $builder
                    .expected_keys(n)
                    .false_positive_rate(rate)
                    .build()
                    .unwrap()
            }
        };
    }
    let cuckoo = build!(CuckooFilter::builder());
    let scalable = ScalableCuckooFilterBuilder::new()
        .initial_capacity(n)
        .false_positive_probability(rate)
        .hasher(Multiply::default())
        .rng(SmallRng::seed_from_u64(1));
    let ours = [
        both(cuckoo),
        both(build!(DLeftFilter::builder())),
        both(build!(CountingBloom::builder())),
        // A tenth of the keys comes and goes.
        both(build!(TombstoneBloom::builder().expected_removals(n / 10 + 1))),
    ];
    let others: [Box<dyn Contestant>; 4] = [
        // Its documentation says that it can be filled to 95%. It has fingerprints of 8 bits, for
        // 3%, or of 16.
        Box::new(AtomicCuckoo(
            atomic_cuckoo_filter::CuckooFilterBuilder::default()
                .capacity(n + n / 19)
                .fingerprint_size(16)
                .build()
                .unwrap(),
        )),
        // It takes no rate.
        Box::new(LockedCuckoo(RwLock::new(cuckoofilter::CuckooFilter::with_capacity(
            n + n / 19,
        )))),
        Box::new(LockedScalable(RwLock::new(scalable.finish()))),
        Box::new(LockedQuotient(RwLock::new(
            qfilter::Filter::new(n as u64, rate).unwrap(),
        ))),
    ];
    ours.into_iter().flatten().chain(others).collect()
}

/// The first of the numbers that are never inserted.
const STRANGERS: u64 = 1 << 48;

/// The operations, in the order of a round: it looks up and removes the keys that it inserted.
const OPERATIONS: [&str; 4] = ["insert", "hit", "miss", "remove"];
const THREADS: [usize; 2] = [1, 2];

/// ns per key of each operation, by threads.
type Round = [[f64; OPERATIONS.len()]; THREADS.len()];

fn round(contestant: &mut dyn Contestant, keys: &[u64], present: &[u64], strangers: &[u64], rate: f64) -> Round {
    THREADS.map(|threads| {
        let name = contestant.name();
        contestant.rewind();
        // Into the caches, from which the other contestants have driven it.
        contestant.contains(&present[present.len() / 2..]);
        let (insert, inserted) = timed(threads, keys, |keys| contestant.insert(keys));
        assert_eq!(inserted, keys.len(), "{name} found no room");
        let (hit, found) = timed(threads, present, |keys| contestant.contains(keys));
        assert_eq!(found, present.len(), "{name} has lost a key");
        let (miss, wrong) = timed(threads, strangers, |keys| contestant.contains(keys));
        let limit = contestant.rate(rate) * 1.25 * strangers.len() as f64 + 20.0;
        assert!(
            (wrong as f64) < limit,
            "{name}: {wrong} of {} false positives at {rate}: is it set up as its documentation says?",
            strangers.len()
        );
        let (remove, removed) = timed(threads, keys, |keys| contestant.remove(keys));
        let lost = (keys.len() as f64 * contestant.false_negative_rate()) as usize;
        assert!(
            (keys.len() - lost..=keys.len()).contains(&removed),
            "{name} has lost {} keys",
            keys.len() - removed
        );
        [insert, hit, miss, remove]
    })
}

fn shuffled(mut keys: Vec<u64>) -> Vec<u64> {
    for i in (1..keys.len()).rev() {
        keys.swap(i, (number(i as u64 + (1 << 60)) % (i as u64 + 1)) as usize);
    }
    keys
}

fn table(args: &Args, bytes: usize, rate: f64) -> String {
    let builder = CuckooFilter::builder().memory_budget(bytes).false_positive_rate(rate);
    let n = builder.build().unwrap().expected_keys();
    // The last tenth comes and goes, so that a cuckoo filter has to move fingerprints.
    let coming = (n / 10).min(args.keys);
    let stay = n - coming;
    let keys: Vec<u64> = (stay..n).map(|i| number(i as u64)).collect();
    let lookups = stay.min(args.keys);
    let present = shuffled((0..lookups).map(|i| number((i * (stay / lookups)) as u64)).collect());
    let strangers: Vec<u64> = (0..lookups as u64).map(|i| number(STRANGERS + i)).collect();

    let mut all = contestants(n, rate);
    thread::scope(|scope| {
        for contestant in &mut all {
            scope.spawn(move || {
                for start in (0..stay).step_by(1 << 16) {
                    let keys: Vec<u64> = (start..stay.min(start + (1 << 16))).map(|i| number(i as u64)).collect();
                    assert_eq!(
                        contestant.insert(&keys),
                        keys.len(),
                        "{} found no room",
                        contestant.name()
                    );
                }
                contestant.filled();
            });
        }
    });
    let rounds: Vec<Vec<Round>> = (0..args.rounds)
        .map(|_| {
            all.iter_mut()
                .map(|one| round(&mut **one, &keys, &present, &strangers, rate))
                .collect()
        })
        .collect();
    let mut table = format!(
        "\n## {} KiB, {n} keys at {}%\n\nns per key (times faster than the fastest peer in the same rounds)\n\n",
        bytes >> 10,
        rate * 100.0
    );
    write!(
        table,
        "| {:30} | {:>7} | {:>8} | {:>12}",
        "", "rate", "bits/key", "highest load"
    )
    .unwrap();
    for threads in THREADS {
        for operation in OPERATIONS {
            write!(table, " | {:>16}", format!("{operation}, {threads}T")).unwrap();
        }
    }
    write!(
        table,
        " |\n|---{} |\n",
        "|--:".repeat(3 + THREADS.len() * OPERATIONS.len())
    )
    .unwrap();
    all.iter_mut().for_each(|one| one.rewind());
    for (i, one) in all.iter().enumerate() {
        // At the planned load.
        assert_eq!(one.insert(&keys), keys.len());
        let wrong = one.contains(&strangers) as f64 / strangers.len() as f64;
        let load = highest_load(&**one, n);
        write!(
            table,
            "| {:30} | {:>6.3}% | {:>8.2} | {:>12}",
            one.name(),
            wrong * 100.0,
            one.bytes() as f64 * 8.0 / n as f64,
            load.map_or(String::new(), |load| format!("{:.1}%", load * 100.0)),
        )
        .unwrap();
        for threads in 0..THREADS.len() {
            for operation in 0..OPERATIONS.len() {
                let own: Vec<f64> = rounds.iter().map(|round| round[i][threads][operation]).collect();
                let fastest = |round: &Vec<Round>| {
                    let peers = round.iter().zip(&all).filter(|(_, one)| !one.is_ours());
                    let times = peers.map(|(round, _)| round[threads][operation]);
                    times.fold(f64::INFINITY, f64::min)
                };
                let ratios = rounds.iter().zip(&own).map(|(round, own)| fastest(round) / own);
                write!(
                    table,
                    " | {:>16}",
                    format!("{:.1} ({:.2}x)", median(own.iter().copied()), median(ratios))
                )
                .unwrap();
            }
        }
        table.push_str(" |\n");
    }
    table
}

/// Inserts until there is no room, from `n` keys on.
fn highest_load(one: &dyn Contestant, n: usize) -> Option<f64> {
    let slots = one.slots()?;
    let mut keys = n;
    loop {
        let more: Vec<u64> = (0..1 << 10).map(|i| number((1 << 50) + keys as u64 + i)).collect();
        let inserted = one.insert(&more);
        keys += inserted;
        if inserted < more.len() || keys > 2 * slots {
            return Some(keys as f64 / slots as f64);
        }
    }
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.sizes, args.rounds, args.keys) = (vec![16 << 10], 2, 4096);
    }
    let mut report = format!("{}; {} rounds of at most {} keys\n", machine(), args.rounds, args.keys);
    print!("{report}");
    for &bytes in &args.sizes {
        for &rate in &args.rates {
            let table = table(&args, bytes, rate);
            args.bench.add(&mut report, &table);
        }
    }
}
