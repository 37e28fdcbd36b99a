//! lanebloom beside its peers: the same number of keys, the same false-positive rate, the same
//! keys, each through its fastest public call.
//!
//!     cargo bench --bench peers                       # everything, about 20 minutes, most of them at 512 MiB
//!     cargo bench --bench peers -- --sizes 512K,8M    # filters of these sizes (of ours, at 1%)
//!     cargo bench --bench peers -- --record FILE      # the table into benches/FILE too
//!     cargo bench --bench peers -- --test             # a tiny size, to see that it runs
//!
//! How it measures: all contestants of a group hold the same keys. A round lets each of them do the
//! same work once, in turn; the table shows the median of the rounds in ns per key, and the median
//! of the per-round ratios to fastbloom of the same group, so that a machine whose speed drifts
//! does not favour anyone. Lookups are half hits, half misses, shuffled, over keys that do not
//! repeat within a round. Each contestant's filter is brought back into the caches before its turn.
//! Every answer is counted and checked.

use clap::Parser;
use fastbloom::AtomicBloomFilter;
use growable_bloom_filter::{GrowableBloom, GrowableBloomBuilder};
use lanebloom::{ConcurrentBloom, Funnel, KeyHasher, Murmur3, ScalableBloom, instruction_sets, limit_instruction_set};
use lanebloom_benches::{best_instruction_set, machine, median, number, parse_size};
use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::{Barrier, RwLock};
use std::thread;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Sizes of our filter: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "512K,8M,64M,512M")]
    sizes: Vec<usize>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The false-positive rate of every contestant.
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// The most keys of a round.
    #[arg(long, default_value_t = 1 << 22)]
    keys: usize,
    /// Also write the table to this file.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Run once with tiny sizes, to see that everything works.
    #[arg(long)]
    test: bool,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A contestant: filters that take slices of `u64`, either hashes or keys.
trait Peer: Send + Sync {
    fn name(&self) -> String;
    /// Inserts all; returns how many were new.
    fn insert(&self, keys: &[u64]) -> usize;
    /// Looks all up; returns how many are found.
    fn contains(&self, keys: &[u64]) -> usize;
    fn clear(&mut self);
    fn bytes(&self) -> usize;
    /// The number of threads that can fill it.
    fn writers(&self) -> usize {
        usize::MAX
    }
}

fn count(keys: &[u64], test: impl Fn(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| test(key)).count()
}

struct Ours {
    filter: ConcurrentBloom,
    hashed: bool,
    /// In batches, by this instruction set; otherwise call by call.
    batch: Option<&'static str>,
}

impl Ours {
    fn new(bytes: usize, rate: f64, hashed: bool, batch: Option<&'static str>) -> Self {
        limit_instruction_set(batch.unwrap_or(best_instruction_set()));
        let filter = ConcurrentBloom::builder()
            .memory_budget(bytes)
            .false_positive_rate(rate)
            .build()
            .unwrap();
        limit_instruction_set(best_instruction_set());
        Self { filter, hashed, batch }
    }
}

impl Peer for Ours {
    fn name(&self) -> String {
        match self.batch {
            None => "lanebloom".into(),
            Some(isa) => format!("lanebloom, batch, {isa}"),
        }
    }
    fn insert(&self, keys: &[u64]) -> usize {
        match (self.hashed, self.batch.is_some()) {
            (true, false) => count(keys, |hash| self.filter.insert_hash(hash)),
            (false, false) => count(keys, |key| self.filter.insert(&key)),
            (true, true) => keys.chunks(BATCH).map(|hashes| self.filter.insert_hashes(hashes)).sum(),
            (false, true) => keys.chunks(BATCH).map(|keys| self.filter.insert_batch(keys)).sum(),
        }
    }
    fn contains(&self, keys: &[u64]) -> usize {
        match (self.hashed, self.batch.is_some()) {
            (true, false) => count(keys, |hash| self.filter.contains_hash(hash)),
            (false, false) => count(keys, |key| self.filter.contains(&key)),
            (hashed, true) => {
                let mut found = [false; BATCH];
                let batch = |keys: &[u64]| {
                    let found = &mut found[..keys.len()];
                    if hashed {
                        self.filter.contains_hashes(keys, found);
                    } else {
                        self.filter.contains_batch(keys, found);
                    }
                    found.iter().filter(|&&found| found).count()
                };
                keys.chunks(BATCH).map(batch).sum()
            }
        }
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.memory_bytes()
    }
}

/// Keys per batch call.
const BATCH: usize = 1024;

struct Fast<S> {
    filter: AtomicBloomFilter<S>,
    hashed: bool,
    name: &'static str,
}

impl<S: BuildHasher + Send + Sync> Peer for Fast<S> {
    fn name(&self) -> String {
        self.name.into()
    }
    fn insert(&self, keys: &[u64]) -> usize {
        // fastbloom answers whether the key was there before.
        if self.hashed {
            count(keys, |hash| !self.filter.insert_hash(hash))
        } else {
            count(keys, |key| !self.filter.insert(&key))
        }
    }
    fn contains(&self, keys: &[u64]) -> usize {
        if self.hashed {
            count(keys, |hash| self.filter.contains_hash(hash))
        } else {
            count(keys, |key| self.filter.contains(&key))
        }
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.num_bits() / 8
    }
}

/// Not atomic: one thread inserts, any number look up afterwards.
struct Sbbf(RwLock<sbbf_rs_safe::Filter>);

impl Peer for Sbbf {
    fn name(&self) -> String {
        "sbbf-rs-safe (one writer)".into()
    }
    fn insert(&self, keys: &[u64]) -> usize {
        let mut filter = self.0.write().unwrap();
        keys.iter().filter(|&&hash| !filter.insert_hash(hash)).count()
    }
    fn contains(&self, keys: &[u64]) -> usize {
        let filter = self.0.read().unwrap();
        count(keys, |hash| filter.contains_hash(hash))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().reset();
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().as_bytes().len()
    }
    fn writers(&self) -> usize {
        1
    }
}

/// A lock around the filter, taken for every key, as a service does with a filter that is not
/// concurrent.
struct Locked(RwLock<bloomfilter::Bloom<u64>>);

impl Peer for Locked {
    fn name(&self) -> String {
        "RwLock<bloomfilter>".into()
    }
    fn insert(&self, keys: &[u64]) -> usize {
        count(keys, |key| !self.0.write().unwrap().check_and_set(&key))
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.read().unwrap().check(&key))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().clear();
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().as_slice().len()
    }
}

/// Our filter that grows.
struct Growing {
    filter: ScalableBloom,
    batch: bool,
}

impl Peer for Growing {
    fn name(&self) -> String {
        let layers = self.filter.layers().len();
        format!(
            "ScalableBloom{}, {layers} layers",
            if self.batch { ", batch" } else { "" }
        )
    }
    fn insert(&self, keys: &[u64]) -> usize {
        if self.batch {
            let batch = |keys: &[u64]| self.filter.insert_batch(keys).expect("there is no limit");
            keys.chunks(BATCH).map(batch).sum()
        } else {
            count(keys, |key| self.filter.insert(&key).expect("there is no limit"))
        }
    }
    fn contains(&self, keys: &[u64]) -> usize {
        if !self.batch {
            return count(keys, |key| self.filter.contains(&key));
        }
        let mut found = [false; BATCH];
        let batch = |keys: &[u64]| {
            let found = &mut found[..keys.len()];
            self.filter.contains_batch(keys, found);
            found.iter().filter(|&&found| found).count()
        };
        keys.chunks(BATCH).map(batch).sum()
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.memory_bytes()
    }
}

/// A growing filter behind a lock, taken for every key. (RedisBloom's lock is the one thread of
/// Redis.)
struct LockedGrowing(RwLock<GrowableBloom>);

impl Peer for LockedGrowing {
    fn name(&self) -> String {
        "RwLock<growable-bloom>".into()
    }
    fn insert(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.write().unwrap().insert(key))
    }
    fn contains(&self, keys: &[u64]) -> usize {
        let filter = &self.0;
        count(keys, |key| filter.read().unwrap().contains(key))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().clear();
    }
    /// It does not report its size.
    fn bytes(&self) -> usize {
        0
    }
}

/// The limit of a filter: loads a word of each key's line, prefetched if that is faster, and
/// ignores it.
struct Touch(Vec<Line>);

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

impl Touch {
    fn new(bytes: usize) -> Self {
        let mut lines = Vec::with_capacity(bytes / 64);
        // In huge pages, like our filters.
        #[cfg(target_os = "linux")]
        if bytes >= 4 << 20 {
            const PAGE: usize = 64 << 10;
            let start = lines.as_mut_ptr() as usize;
            let from = start.next_multiple_of(PAGE);
            let len = (start + bytes - from) / PAGE * PAGE;
            let advice = rustix::mm::Advice::LinuxHugepage;
            // SAFETY: whole pages of the vector's memory; the advice does not change their
            // contents.
            let _ = unsafe { rustix::mm::madvise(from as *mut _, len, advice) };
        }
        // Written, so that it is memory of its own and not the one page of zeros.
        lines.resize(bytes / 64, Line([1; 8]));
        Self(lines)
    }
}

impl Peer for Touch {
    fn name(&self) -> String {
        "(touching each line)".into()
    }
    fn insert(&self, _: &[u64]) -> usize {
        0
    }
    fn contains(&self, keys: &[u64]) -> usize {
        const FAR: usize = 128;
        let line = |hash: u64| ((u128::from(hash) * self.0.len() as u128) >> 64) as usize;
        let prefetch = |hash: u64| {
            let line = self.0.as_ptr().wrapping_add(line(hash));
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch accesses no memory.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast())
            };
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        };
        let cached = self.bytes() <= 2 << 20;
        if !cached {
            keys.iter().take(FAR).for_each(|&hash| prefetch(hash));
        }
        let mut sum = 0;
        for (i, &hash) in keys.iter().enumerate() {
            if !cached && let Some(&hash) = keys.get(i + FAR) {
                prefetch(hash);
            }
            sum += self.0[line(hash)].0[hash as usize % 8];
        }
        assert_eq!(sum as usize, keys.len());
        // The answer of a filter that holds half of them.
        keys.len() / 2
    }
    fn clear(&mut self) {}
    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
    fn writers(&self) -> usize {
        0
    }
}

/// The first of the numbers that are never inserted.
const STRANGERS: u64 = 1 << 48;

/// Runs `work` on equal parts of `keys` in `threads` threads; ns per key from the first start to
/// the last end, and the sum of the results.
fn timed(threads: usize, keys: &[u64], work: impl Fn(&[u64]) -> usize + Sync) -> (f64, usize) {
    if threads == 1 {
        let start = Instant::now();
        let sum = work(keys);
        return (start.elapsed().as_nanos() as f64 / keys.len() as f64, sum);
    }
    let barrier = Barrier::new(threads);
    let spans: Vec<_> = thread::scope(|scope| {
        let part = |keys| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                let sum = work(keys);
                (start, Instant::now(), sum)
            })
        };
        let threads: Vec<_> = keys.chunks(keys.len().div_ceil(threads)).map(part).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let start = spans.iter().map(|span| span.0).min().unwrap();
    let end = spans.iter().map(|span| span.1).max().unwrap();
    (
        (end - start).as_nanos() as f64 / keys.len() as f64,
        spans.iter().map(|span| span.2).sum(),
    )
}

/// Brings the filter back into the caches, from which the other contestants have driven it. Uses
/// the keys that are looked up last, so that no branch predictor remembers them.
fn warm(peer: &dyn Peer, keys: &[u64]) {
    peer.contains(&keys[keys.len() * 7 / 8..]);
}

/// ns per key and ratio to fastbloom of one operation, by contestant; `None` if it lacks it.
type Column = Vec<Option<(f64, f64)>>;

/// One group: contestants that take the same kind of input.
struct Group {
    peers: Vec<Box<dyn Peer>>,
    /// The position of fastbloom, the basis of the ratios.
    reference: usize,
}

impl Group {
    fn new(hashed: bool, bytes: usize, rate: f64) -> (Self, usize) {
        let single = Ours::new(bytes, rate, hashed, None);
        let n = single.filter.expected_keys();
        let fast = AtomicBloomFilter::with_false_pos(rate).seed(&1).expected_items(n);
        let name = if hashed { "fastbloom" } else { "fastbloom (SipHash)" };
        let mut peers: Vec<Box<dyn Peer>> = vec![
            Box::new(Fast {
                filter: fast,
                hashed,
                name,
            }),
            Box::new(single),
        ];
        for isa in instruction_sets() {
            peers.push(Box::new(Ours::new(bytes, rate, hashed, Some(isa))));
        }
        if hashed {
            peers.push(Box::new(Touch::new(bytes)));
            // It takes whole bits per key; 11 is the least that reaches 1%.
            let bits_per_key = if rate < 0.01 { 17 } else { 11 };
            peers.push(Box::new(Sbbf(RwLock::new(sbbf_rs_safe::Filter::new(bits_per_key, n)))));
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
            let filter = bloomfilter::Bloom::new_for_fp_rate_with_seed(n, rate, &[1; 32]).unwrap();
            peers.push(Box::new(Locked(RwLock::new(filter))));
        }
        (Self { peers, reference: 0 }, n)
    }

    /// Interleaved rounds of one operation.
    fn rounds(&mut self, rounds: usize, mut work: impl FnMut(&mut dyn Peer) -> Option<f64>) -> Column {
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
            Some((median(own?), median(ratios.collect::<Option<_>>()?)))
        };
        times.iter().map(summary).collect()
    }

    /// Inserts the first `n` numbers into every contestant, each by a thread of its own.
    fn fill(&mut self, n: usize) {
        thread::scope(|scope| {
            for peer in &mut self.peers {
                scope.spawn(move || {
                    peer.clear();
                    let mut keys = Vec::with_capacity(1 << 16);
                    for start in (0..n as u64).step_by(1 << 16) {
                        keys.clear();
                        keys.extend((start..(n as u64).min(start + (1 << 16))).map(number));
                        peer.insert(&keys);
                    }
                });
            }
        });
    }
}

fn main() {
    let mut args = Args::parse();
    if args.test {
        (args.sizes, args.rounds, args.keys) = (vec![16 << 10], 1, 4096);
    }
    let mut report = format!("{}; {} rounds of at most {} keys\n", machine(), args.rounds, args.keys);
    print!("{report}");
    let mut publish = |table: String| {
        print!("{table}");
        report.push_str(&table);
        // After every table, so that an interrupted run leaves its tables.
        if let Some(path) = &args.record {
            std::fs::write(path, &report).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        }
    };
    for &bytes in &args.sizes {
        publish(one_group(&args, bytes, true));
        publish(one_group(&args, bytes, false));
        publish(batch_lengths(&args, bytes));
    }
    publish(growing(&args));
    publish(hot_keys(&args));
    publish(hashing(&args));
}

fn one_group(args: &Args, bytes: usize, hashed: bool) -> String {
    let (mut group, n) = Group::new(hashed, bytes, args.rate);
    let fresh: Vec<u64> = (0..n.min(args.keys) as u64).map(number).collect();
    // Members from the whole range, each at most once, and as many strangers; in an order without
    // pattern.
    let half = n.min(args.keys / 2);
    let mut lookups: Vec<u64> = (0..half).map(|i| number((i * (n / half)) as u64)).collect();
    let present = lookups.clone();
    let strangers: Vec<u64> = (0..half as u64).map(|i| number(STRANGERS + i)).collect();
    lookups.extend(&strangers);
    for i in (1..lookups.len()).rev() {
        lookups.swap(i, (number(i as u64 + (1 << 60)) % (i as u64 + 1)) as usize);
    }

    let mut columns = Vec::new();
    for threads in [1, 2] {
        columns.push((
            format!("insert fresh, {threads}T"),
            group.rounds(args.rounds, |peer| {
                peer.clear();
                (threads <= peer.writers()).then(|| {
                    let (time, new) = timed(threads, &fresh, |keys| peer.insert(keys));
                    assert!(
                        new * 100 > fresh.len() * 98,
                        "{}: only {new} of {} were new",
                        peer.name(),
                        fresh.len()
                    );
                    time
                })
            }),
        ));
    }
    group.fill(n);
    for threads in [1, 2] {
        columns.push((
            format!("insert present, {threads}T"),
            group.rounds(args.rounds, |peer| {
                (threads <= peer.writers()).then(|| {
                    warm(peer, &present);
                    let (time, new) = timed(threads, &present, |keys| peer.insert(keys));
                    assert_eq!(new, 0, "{}: keys that were present came out as new", peer.name());
                    time
                })
            }),
        ));
    }
    let rates: Vec<f64> = group
        .peers
        .iter()
        .map(|peer| peer.contains(&strangers) as f64 / half as f64)
        .collect();
    for threads in [1, 2] {
        columns.push((
            format!("contains, {threads}T"),
            group.rounds(args.rounds, |peer| {
                warm(peer, &lookups);
                let (time, found) = timed(threads, &lookups, |keys| peer.contains(keys));
                let wrong = found.checked_sub(half).expect("a key that was inserted was not found");
                assert!(wrong <= half / 4, "{}: {wrong} of {half} false positives", peer.name());
                Some(time)
            }),
        ));
    }

    let mut table = String::new();
    let what = if hashed {
        "pre-hashed u64"
    } else {
        "u64 keys, each with the hasher named or its default"
    };
    writeln!(table, "\n## {} KiB, {n} keys at {}, {what}\n", bytes >> 10, args.rate).unwrap();
    writeln!(table, "ns per key (times faster than fastbloom in the same rounds)\n").unwrap();
    write!(table, "| {:27} | {:>7} | {:>8}", "", "rate", "bits/key").unwrap();
    columns
        .iter()
        .for_each(|(name, _)| write!(table, " | {name:>18}").unwrap());
    write!(table, " |\n|---|--:|--:{} |\n", "|--:".repeat(columns.len())).unwrap();
    for (i, peer) in group.peers.iter().enumerate() {
        let bits_per_key = peer.bytes() as f64 * 8.0 / n as f64;
        write!(
            table,
            "| {:27} | {:>6.3}% | {bits_per_key:>8.2}",
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
    table
}

/// Lookups in batches of several lengths beside single calls, to see from which length on a batch
/// wins.
fn batch_lengths(args: &Args, bytes: usize) -> String {
    const LENGTHS: [usize; 11] = [1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 1024];
    let filter = Ours::new(bytes, args.rate, true, None).filter;
    let n = filter.expected_keys() as u64;
    for start in (0..n).step_by(1 << 16) {
        let keys: Vec<u64> = (start..n.min(start + (1 << 16))).map(number).collect();
        filter.insert_hashes(&keys);
    }
    let keys: Vec<u64> = (0..args.keys.min(1 << 18) as u64)
        .map(|i| {
            let random = number(i + (1 << 60));
            number(if random.is_multiple_of(2) {
                (random >> 8) % n
            } else {
                STRANGERS + i
            })
        })
        .collect();
    let expected = count(&keys, |hash| filter.contains_hash(hash));
    let by_length = |length: usize| {
        timed(1, &keys, |keys| {
            let mut found = [false; 1024];
            let batch = |keys: &[u64]| {
                let found = &mut found[..keys.len()];
                filter.contains_hashes(keys, found);
                found.iter().filter(|&&found| found).count()
            };
            keys.chunks(length).map(batch).sum()
        })
    };
    let mut single = Vec::new();
    let mut batches = [(); LENGTHS.len()].map(|()| Vec::new());
    for _ in 0..args.rounds {
        let (time, found) = timed(1, &keys, |keys| count(keys, |hash| filter.contains_hash(hash)));
        assert_eq!(found, expected);
        single.push(time);
        for (length, times) in LENGTHS.into_iter().zip(&mut batches) {
            let (time, found) = by_length(length);
            assert_eq!(found, expected);
            times.push(time);
        }
    }
    let mut table = format!(
        "\n## {} KiB, contains_hashes by the length of the batch, ns per key\n\n",
        bytes >> 10
    );
    let row = |first: &str, cells: &mut dyn Iterator<Item = String>| {
        format!("| {first} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    table += &row("call by call", &mut LENGTHS.iter().map(|length| format!("{length:>5}")));
    table += &row("--:", &mut LENGTHS.iter().map(|_| "--:".into()));
    table += &row(
        &format!("{:>12.2}", median(single)),
        &mut batches.into_iter().map(|times| format!("{:>5.2}", median(times))),
    );
    table
}

/// Filters planned for a thousandth of their keys, beside filters planned for all of them.
fn growing(args: &Args) -> String {
    let n = if args.test { 20_000 } else { 10_000_000 };
    let planned = n / 1000;
    let scalable = |batch| {
        let builder = ScalableBloom::builder()
            .expected_keys(planned)
            .false_positive_rate(args.rate);
        let filter = builder.build().unwrap();
        Box::new(Growing { filter, batch })
    };
    let fixed = |batch| {
        let builder = ConcurrentBloom::builder()
            .expected_keys(n)
            .false_positive_rate(args.rate);
        let filter = builder.build().unwrap();
        Box::new(Ours {
            filter,
            hashed: false,
            batch,
        })
    };
    let peer = GrowableBloomBuilder::new()
        .estimated_insertions(planned)
        .desired_error_ratio(args.rate);
    let isa = best_instruction_set();
    let mut group = Group {
        peers: vec![
            fixed(None),
            scalable(false),
            fixed(Some(isa)),
            scalable(true),
            Box::new(LockedGrowing(RwLock::new(peer.build()))),
        ],
        reference: 0,
    };
    let fresh: Vec<u64> = (0..n as u64).map(number).collect();
    let half = n.min(args.keys / 2);
    let present: Vec<u64> = (0..half)
        .map(|i| fresh[(number(i as u64) % n as u64) as usize])
        .collect();
    let strangers: Vec<u64> = (0..half as u64).map(|i| number(STRANGERS + i)).collect();
    let rounds = args.rounds.min(3);

    let mut columns = Vec::new();
    for threads in [1, 2] {
        let column = group.rounds(rounds, |peer| {
            peer.clear();
            let (time, new) = timed(threads, &fresh, |keys| peer.insert(keys));
            // growable-bloom-filter is above its rate: 96% of 20 thousand were new.
            assert!(new * 100 > n * 90, "{}: only {new} of {n} were new", peer.name());
            Some(time)
        });
        columns.push((format!("insert, {threads}T"), column));
    }
    let rates: Vec<f64> = group
        .peers
        .iter()
        .map(|peer| peer.contains(&strangers) as f64 / half as f64)
        .collect();
    for (kind, keys, least, most) in [("hits", &present, half, half), ("misses", &strangers, 0, half / 4)] {
        for threads in [1, 2] {
            let column = group.rounds(rounds, |peer| {
                warm(peer, keys);
                let (time, found) = timed(threads, keys, |keys| peer.contains(keys));
                assert!((least..=most).contains(&found), "{}: {found} {kind}", peer.name());
                Some(time)
            });
            columns.push((format!("{kind}, {threads}T"), column));
        }
    }

    let mut table = format!(
        "\n## Growth: planned for {planned} keys at {}, filled with {n}\n\n",
        args.rate
    );
    table += "ns per key (times faster than the fixed filter, call by call, in the same rounds)\n\n";
    write!(table, "| {:32} | {:>7} | {:>8}", "", "rate", "bits/key").unwrap();
    columns
        .iter()
        .for_each(|(name, _)| write!(table, " | {name:>15}").unwrap());
    write!(table, " |\n|---|--:|--:{} |\n", "|--:".repeat(columns.len())).unwrap();
    for (i, peer) in group.peers.iter().enumerate() {
        let bits_per_key = match peer.bytes() {
            0 => "-".into(),
            bytes => format!("{:.1}", bytes as f64 * 8.0 / n as f64),
        };
        let name = match peer.name() {
            name if name.starts_with("lanebloom") => name.replace("lanebloom", "ConcurrentBloom of the right size"),
            name => name,
        };
        write!(table, "| {name:32} | {:6.3}% | {bits_per_key:>8}", rates[i] * 100.0).unwrap();
        for (_, column) in &columns {
            let (time, ratio) = column[i].expect("all can do it");
            write!(table, " | {:>15}", format!("{time:.1} ({ratio:.2}x)")).unwrap();
        }
        table += " |\n";
    }
    table
}

/// Few keys, looked up over and over, in a filter in L1. Here the CPU predicts all branches of a
/// filter that stops at the first missing bit.
fn hot_keys(args: &Args) -> String {
    let (mut group, n) = Group::new(true, 32 << 10, args.rate);
    group.fill(n);
    let hot: Vec<u64> = (0..8).flat_map(|i| [number(i), number(STRANGERS + i)]).collect();
    let keys: Vec<u64> = (0..args.keys.min(1 << 18)).map(|i| hot[i % hot.len()]).collect();
    let column = group.rounds(args.rounds, |peer| {
        let (time, found) = timed(1, &keys, |keys| peer.contains(keys));
        assert!(found >= keys.len() / 2, "a key that was inserted was not found");
        Some(time)
    });
    let mut table = "\n## 32 KiB, 16 keys over and over, half of them in the filter\n\n".to_owned();
    table += "| contains | ns per key (times faster than fastbloom in the same rounds) |\n|---|--:|\n";
    for (peer, cell) in group.peers.iter().zip(column) {
        let (time, ratio) = cell.expect("all can be asked");
        writeln!(table, "| {:27} | {time:.2} ({ratio:.2}x) |", peer.name()).unwrap();
    }
    table
}

/// Murmur3 of a batch of keys, by instruction set, beside the crate `fastmurmur3`.
fn hashing(args: &Args) -> String {
    const KEYS: u64 = 1 << 14;
    let strings = |lens: std::ops::RangeInclusive<u64>| -> Vec<String> {
        let letter = |i| char::from(b'a' + (number(i) % 26) as u8);
        let len = |i| lens.start() + number(i) % (lens.end() - lens.start() + 1);
        (0..KEYS)
            .map(|i| (0..len(i)).map(|j| letter(i << 12 | j)).collect())
            .collect()
    };
    let numbers: Vec<u64> = (0..KEYS).map(number).collect();
    let wide: Vec<u128> = (0..KEYS)
        .map(|i| u128::from(number(i)) << 64 | u128::from(number(!i)))
        .collect();
    let bytes: Vec<[u8; 16]> = wide.iter().map(|key| key.to_le_bytes()).collect();
    let small: Vec<u32> = numbers.iter().map(|&key| key as u32).collect();

    let mut table =
        "\n## Murmur3 x64_128 of a batch, ns per key (times faster than fastmurmur3 in the same rounds)\n\n| keys"
            .to_owned();
    for isa in instruction_sets() {
        write!(table, " | {isa}").unwrap();
    }
    table += " | fastmurmur3 |\n|---|";
    table += &"--:|".repeat(instruction_sets().count() + 1);
    table.push('\n');
    table += &hashing_row(args, "u32", &small, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "u64", &numbers, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "u128", &wide, |key| fastmurmur3::hash(&key.to_le_bytes()));
    table += &hashing_row(args, "[u8; 16]", &bytes, |key| fastmurmur3::hash(key));
    for lens in [0..=15, 16..=16, 16..=64, 64..=64, 0..=256, 0..=4096] {
        let name = format!("String of {} to {}", lens.start(), lens.end());
        table += &hashing_row(args, &name, &strings(lens), |key| fastmurmur3::hash(key.as_bytes()));
    }
    table
}

fn hashing_row<K: Funnel>(args: &Args, name: &str, keys: &[K], peer: impl Fn(&K) -> u128) -> String {
    let hasher = Murmur3::default();
    let expected: Vec<u64> = keys.iter().map(|key| hasher.hash_key(key)).collect();
    let mut hashes = vec![0; keys.len()];
    let mut times = vec![Vec::new(); instruction_sets().count() + 1];
    for _ in 0..args.rounds {
        let (ours, theirs) = times.split_at_mut(instruction_sets().count());
        for (isa, times) in instruction_sets().zip(ours) {
            limit_instruction_set(isa);
            hashes.fill(0);
            let start = Instant::now();
            for (keys, hashes) in keys.chunks(BATCH).zip(hashes.chunks_mut(BATCH)) {
                hasher.hash_batch(keys, hashes);
            }
            times.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
            assert!(hashes == expected, "{isa} hashes {name} otherwise");
        }
        let start = Instant::now();
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = peer(key) as u64;
        }
        theirs[0].push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
        assert!(hashes == expected, "fastmurmur3 hashes {name} otherwise");
    }
    limit_instruction_set(best_instruction_set());
    let reference = times.last().expect("fastmurmur3's").clone();
    let mut row = format!("| {name}");
    for times in times {
        let ratios = times
            .iter()
            .zip(&reference)
            .map(|(own, reference)| reference / own)
            .collect();
        write!(row, " | {:.2} ({:.2}x)", median(times.clone()), median(ratios)).unwrap();
    }
    row + " |\n"
}
