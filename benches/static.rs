//! `StaticFilter` beside the binary fuse filters of other crates: the same keys, the same bits of a
//! fingerprint.
//!
//!     cargo bench --bench static --features rayon                       # everything
//!     cargo bench --bench static --features rayon -- --keys 1000000     # for these keys alone
//!     cargo bench --bench static --features rayon -- --record FILE      # the tables into benches/FILE too
//!     cargo bench --bench static --features rayon -- --test             # tiny, to see that it runs
//!
//! How it measures: keys are hashes already. Each contestant is built in turn, once per round, and
//! then looks up the same hashes, of which half are keys; the tables show the median of the rounds.
//! xorf mixes each key with its seed. sux hashes it to 128 bits. Every answer is counted and
//! checked.

use clap::Parser;
use dsi_progress_logger::no_logging;
use lanebloom::{ConcurrentBloom, Hashed, Prehashed, StaticFilter};
use lanebloom_benches::{BenchArgs, machine, median, number, time};
use mem_dbg::{MemSize, SizeFlags};
use std::fmt::Write as _;
use sux::dict::VFilter;
use sux::func::VBuilder;
use xorf::Filter as _;

#[derive(Parser)]
struct Args {
    /// Numbers of keys. At 8 bits, 460 thousand are 512 KiB and 59 million are 64 MiB.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "10000,460000,1000000,10000000,59000000"
    )]
    keys: Vec<usize>,
    /// Rounds, of which the tables show the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Lookups of a round.
    #[arg(long, default_value_t = 1 << 22)]
    lookups: usize,
    #[command(flatten)]
    bench: BenchArgs,
}

/// Keys per batch call.
const BATCH: usize = 1024;

/// The measurements of a contestant, in ns per key, and its bits per key.
struct Measured {
    build: Vec<f64>,
    build_2: Vec<f64>,
    single: Vec<f64>,
    batch: Vec<f64>,
    bits_per_key: f64,
    rate: f64,
}

impl Measured {
    fn new() -> Self {
        Self {
            build: Vec::new(),
            build_2: Vec::new(),
            single: Vec::new(),
            batch: Vec::new(),
            bits_per_key: 0.0,
            rate: 0.0,
        }
    }
}

fn count(keys: &[u64], contains: impl Fn(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| contains(key)).count()
}

/// Every second one is a key; the rest are strangers.
fn lookups(keys: &[u64], len: usize) -> Vec<u64> {
    let key = |i: usize| match i % 2 {
        0 => keys[number(i as u64) as usize % keys.len()],
        _ => number(1 << 60 | i as u64),
    };
    (0..len).map(key).collect()
}

struct Lookups<'a> {
    asked: &'a [u64],
    bits: u32,
}

impl Lookups<'_> {
    /// Notes the share of strangers among the lookups that are found.
    fn check(&self, measured: &mut Measured, found: usize) {
        let strangers = self.asked.len() / 2;
        let present = self.asked.len() - strangers;
        assert!(found >= present, "{found} of {present}");
        measured.rate = (found - present) as f64 / strangers as f64;
        let expected = strangers as f64 / f64::from(2u32.pow(self.bits));
        assert!((found - present) as f64 <= expected + 6.0 * expected.sqrt() + 6.0);
    }

    fn single(&self, measured: &mut Measured, contains: impl Fn(u64) -> bool) {
        let (ns, found) = time(self.asked.len(), || count(self.asked, contains));
        measured.single.push(ns);
        self.check(measured, found);
    }

    fn batch(&self, measured: &mut Measured, contains: impl Fn(&[u64], &mut [bool])) {
        let mut flags = [false; BATCH];
        let (ns, found) = time(self.asked.len(), || {
            let batch = |keys: &[u64]| {
                let flags = &mut flags[..keys.len()];
                contains(keys, flags);
                flags.iter().filter(|&&found| found).count()
            };
            self.asked.chunks(BATCH).map(batch).sum()
        });
        measured.batch.push(ns);
        self.check(measured, found);
    }
}

fn ours(keys: &[u64], lookups: &Lookups<'_>, cells: usize, measured: &mut Measured) {
    let builder = StaticFilter::builder()
        .hasher(Prehashed)
        .fingerprint_bits(lookups.bits as usize)
        .cells_per_key(cells);
    let (ns, filter) = time(keys.len(), || {
        builder.clone().build_from_batch(Hashed::slice(keys)).unwrap()
    });
    measured.build.push(ns);
    let (ns, two) = time(keys.len(), || {
        builder.par_build_from_batch(Hashed::slice(keys)).unwrap()
    });
    measured.build_2.push(ns);
    drop(two);
    measured.bits_per_key = filter.statistics().bits_per_key;
    lookups.single(measured, |hash| filter.contains(&Hashed(hash)));
    lookups.batch(measured, |hashes, found| {
        filter.contains_batch(Hashed::slice(hashes), found)
    });
}

fn bloom(keys: &[u64], lookups: &Lookups<'_>, measured: &mut Measured) {
    let rate = 1.0 / f64::from(2u32.pow(lookups.bits));
    let builder = ConcurrentBloom::builder().hasher(Prehashed).expected_keys(keys.len());
    let builder = builder.false_positive_rate(rate);
    let (ns, filter) = time(keys.len(), || {
        let filter = builder.clone().build().unwrap();
        filter.insert_batch(Hashed::slice(keys));
        filter
    });
    measured.build.push(ns);
    let (ns, two) = time(keys.len(), || {
        let filter = builder.build().unwrap();
        filter.parallel().insert_batch(Hashed::slice(keys));
        filter
    });
    measured.build_2.push(ns);
    drop(two);
    measured.bits_per_key = filter.statistics().bits_per_key;
    lookups.single(measured, |hash| filter.contains(&Hashed(hash)));
    lookups.batch(measured, |hashes, found| {
        filter.contains_batch(Hashed::slice(hashes), found)
    });
}

macro_rules! xorf {
    ($name:ident, $filter:ident) => {
        fn $name(keys: &[u64], lookups: &Lookups<'_>, measured: &mut Measured) {
            let (ns, filter) = time(keys.len(), || xorf::$filter::try_from(keys).unwrap());
            measured.build.push(ns);
            let bytes = size_of_val(&filter.fingerprints[..]);
            measured.bits_per_key = 8.0 * bytes as f64 / keys.len() as f64;
            lookups.single(measured, |key| filter.contains(&key));
        }
    };
}
xorf!(xorf_8, BinaryFuse8);
xorf!(xorf_16, BinaryFuse16);

macro_rules! sux {
    ($name:ident, $cell:ty) => {
        fn $name(keys: &[u64], lookups: &Lookups<'_>, measured: &mut Measured) {
            type Filter = VFilter<u64, Box<[$cell]>>;
            let build = |threads| {
                let builder = VBuilder::default()
                    .expected_num_keys(keys.len())
                    .max_num_threads(threads);
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                pool.install(|| Filter::try_par_new_with_builder(keys, builder, no_logging![]).unwrap())
            };
            let (ns, filter) = time(keys.len(), || build(1));
            measured.build.push(ns);
            let (ns, two) = time(keys.len(), || build(2));
            measured.build_2.push(ns);
            drop(two);
            measured.bits_per_key = 8.0 * filter.mem_size(SizeFlags::default()) as f64 / keys.len() as f64;
            lookups.single(measured, |key| filter.contains(key));
        }
    };
}
sux!(sux_8, u8);
sux!(sux_16, u16);

type Contestant = (&'static str, fn(&[u64], &Lookups<'_>, &mut Measured));

fn contestants(bits: u32) -> Vec<Contestant> {
    let (xorf, sux): (Contestant, Contestant) = match bits {
        8 => (("xorf BinaryFuse8", xorf_8), ("sux VFilter", sux_8)),
        _ => (("xorf BinaryFuse16", xorf_16), ("sux VFilter", sux_16)),
    };
    let three: Contestant = ("StaticFilter", |keys, lookups, measured| {
        ours(keys, lookups, 3, measured)
    });
    let four: Contestant = ("StaticFilter, 4 cells", |keys, lookups, measured| {
        ours(keys, lookups, 4, measured)
    });
    vec![three, four, ("ConcurrentBloom", bloom), xorf, sux]
}

fn cell(values: &[f64]) -> String {
    if values.is_empty() {
        String::new()
    } else {
        format!("{:.2}", median(values.to_vec()))
    }
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.keys, args.rounds, args.lookups) = (vec![5000], 1, 1 << 12);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
    pool.build_global().unwrap();
    let mut report = format!("{}\n", machine());
    print!("{report}");
    for (&keys, bits) in args.keys.iter().flat_map(|keys| [8, 16].map(|bits| (keys, bits))) {
        let hashes: Vec<u64> = (0..keys as u64).map(number).collect();
        let asked = lookups(&hashes, args.lookups);
        let lookups = Lookups { asked: &asked, bits };
        let contestants = contestants(bits);
        let mut all: Vec<Measured> = contestants.iter().map(|_| Measured::new()).collect();
        for _ in 0..args.rounds {
            for ((_, run), measured) in contestants.iter().zip(&mut all) {
                run(&hashes, &lookups, measured);
            }
        }
        let mut table = format!(
            "\n## {keys} keys, {bits} bits\n\nns per key\n\n| | bits per key | rate | build, 1T | build, 2T | single | batch |\n|---|--:|--:|--:|--:|--:|--:|\n"
        );
        for ((name, _), measured) in contestants.iter().zip(&all) {
            writeln!(
                table,
                "| {name} | {:.2} | {:.4}% | {} | {} | {} | {} |",
                measured.bits_per_key,
                100.0 * measured.rate,
                cell(&measured.build),
                cell(&measured.build_2),
                cell(&measured.single),
                cell(&measured.batch)
            )
            .unwrap();
        }
        args.bench.add(&mut report, &table);
    }
}
