//! Hash functions beside each other: nanoseconds per key, and the false-positive rate that a filter
//! really has.
//!
//!     cargo bench --bench hashes                          # two minutes
//!     cargo bench --bench hashes -- --record record/FILE.md
//!     cargo bench --bench hashes -- --test                # a tiny size, to see that it runs
//!
//! Times are of `KeyHasher::hash_key`, one key after another: the lowest decile of the rounds, in
//! which every contestant works in turn. (Murmur3, FastHash and SipHash-1-3 are this crate's; in
//! batches the first and the last are faster.) Rates are those of a `ConcurrentBloom` with its
//! expected number of keys, of one family, asked for other keys of the family. The keys of a family
//! are what ids look like: they begin alike, and count up.

use clap::Parser;
use lanebloom::{ConcurrentBloom, FastHash, Funnel, KeyHasher, Murmur3, SipHash13};
use lanebloom_benches::{BenchArgs, machine, number};
use std::fmt::Write as _;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Keys in a filter.
    #[arg(long, default_value_t = 200_000)]
    keys: u64,
    /// Absent keys that a filter is asked for.
    #[arg(long, default_value_t = 2_000_000)]
    queries: u64,
    /// Rounds of the times.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    #[command(flatten)]
    bench: BenchArgs,
}

/// FNV-1a, 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Jenkins's one-at-a-time, 32 bits.
#[derive(Default)]
struct Jenkins(u32);

impl Hasher for Jenkins {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(u32::from(*byte));
            self.0 = self.0.wrapping_add(self.0 << 10);
            self.0 ^= self.0 >> 6;
        }
    }
    fn finish(&self) -> u64 {
        let mut hash = self.0.wrapping_add(self.0 << 3);
        hash ^= hash >> 11;
        hash.wrapping_add(hash << 15).into()
    }
}

/// The last 8 bytes, as some tables of integers use them.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn finish(&self) -> u64 {
        self.0.swap_bytes()
    }
}

/// A function of a slice of bytes. It is given a key's bytes in one write here.
#[derive(Default)]
struct OfSlice<const NAME: char>(u64);

impl<const NAME: char> Hasher for OfSlice<NAME> {
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= match NAME {
            'c' => cityhasher::hash(bytes),
            'f' => farmhash::hash64(bytes),
            _ => twox_hash::XxHash3_64::oneshot(bytes),
        };
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Another hasher, finished by the mixer of Murmur3: what the documentation tells callers to do.
#[derive(Clone, Default)]
struct Mixed<S>(S);

struct Mixing<H>(H);

impl<S: BuildHasher> BuildHasher for Mixed<S> {
    type Hasher = Mixing<S::Hasher>;
    fn build_hasher(&self) -> Self::Hasher {
        Mixing(self.0.build_hasher())
    }
}

impl<H: Hasher> Hasher for Mixing<H> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
    fn finish(&self) -> u64 {
        let mut hash = self.0.finish();
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ hash >> 33
    }
}

type Of<H> = BuildHasherDefault<H>;

/// Calls a macro with every contestant: a name, and a hasher.
macro_rules! contestants {
    ($each:ident) => {
        $each!("Murmur3 x64_128", Murmur3::default());
        $each!("FastHash", FastHash::default());
        $each!("SipHash-1-3", SipHash13::with_key([7; 16]));
        $each!(
            "XXH3, streaming (twox-hash)",
            Of::<twox_hash::XxHash3_64>::default()
        );
        $each!("XXH3, one shot (twox-hash)", Of::<OfSlice<'x'>>::default());
        $each!("rapidhash (Rust, fast)", rapidhash::fast::SeedableState::fixed());
        $each!("foldhash, quality", foldhash::quality::FixedState::with_seed(7));
        $each!("foldhash, fast", foldhash::fast::FixedState::with_seed(7));
        $each!("ahash", ahash::RandomState::with_seeds(1, 2, 3, 4));
        $each!("CityHash64", Of::<OfSlice<'c'>>::default());
        $each!("FarmHash64", Of::<OfSlice<'f'>>::default());
        $each!("FNV-1a", Of::<Fnv>::default());
        $each!("FNV-1a, mixed", Mixed::<Of<Fnv>>::default());
        $each!("Jenkins one-at-a-time", Of::<Jenkins>::default());
        $each!("Jenkins, mixed", Mixed::<Of<Jenkins>>::default());
        $each!("identity", Of::<Identity>::default());
        $each!("identity, mixed", Mixed::<Of<Identity>>::default());
    };
}

/// The lowest decile of the rounds, in nanoseconds per key.
fn times<K: Funnel>(keys: &[K], rounds: usize) -> Vec<f64> {
    let mut figures: Vec<Vec<f64>> = Vec::new();
    for _ in 0..rounds {
        let mut at = 0;
        macro_rules! time {
            ($name:expr, $hasher:expr) => {
                let hasher = $hasher;
                let start = Instant::now();
                for key in keys {
                    black_box(hasher.hash_key(key));
                }
                let ns = start.elapsed().as_nanos() as f64 / keys.len() as f64;
                if figures.len() == at {
                    figures.push(Vec::new());
                }
                figures[at].push(ns);
                at += 1;
            };
        }
        contestants!(time);
        let _ = at;
    }
    let decile = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 10]
    };
    figures.into_iter().map(decile).collect()
}

/// The measured rate of every contestant, for keys `0..keys` of a family.
fn rates<K: Funnel>(args: &Args, rate: f64, key: impl Fn(u64) -> K) -> Vec<f64> {
    let mut rates = Vec::new();
    macro_rules! measure {
        ($name:expr, $hasher:expr) => {
            let builder = ConcurrentBloom::builder().expected_keys(args.keys as usize);
            let filter = builder.false_positive_rate(rate).hasher($hasher).build().unwrap();
            for i in 0..args.keys {
                filter.insert(&key(i));
            }
            let absent = args.keys..args.keys + args.queries;
            let found = absent.filter(|&i| filter.contains(&key(i))).count();
            rates.push(found as f64 / args.queries as f64);
        };
    }
    contestants!(measure);
    rates
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.keys, args.queries, args.rounds) = (1000, 1000, 1);
    }
    let mut names = Vec::new();
    macro_rules! name {
        ($name:expr, $hasher:expr) => {
            names.push($name);
            let _ = $hasher;
        };
    }
    contestants!(name);

    let url = |i: u64| format!("https://example.com/shop/articles/{i:08}");
    let decimal = |i: u64| format!("{i:08}");
    let random: Vec<u64> = (0..4096).map(number).collect();
    let decimals: Vec<String> = (0..4096).map(decimal).collect();
    let urls: Vec<String> = (0..4096).map(url).collect();
    let long: Vec<Vec<u8>> = (0..512)
        .map(|i| (0..256).map(|j| number(i << 8 | j) as u8).collect())
        .collect();
    let columns = [
        times(&random, args.rounds),
        times(&decimals, args.rounds),
        times(&urls, args.rounds),
        times(&long, args.rounds),
    ];
    let mut out = format!("{}\n\n## Nanoseconds per key, one after another\n\n", machine());
    let head = "| | `u64` | 8 digits | URL of 43 bytes | 256 bytes |\n|---|--:|--:|--:|--:|";
    writeln!(out, "{head}").unwrap();
    for (i, name) in names.iter().enumerate() {
        let [a, b, c, d] = columns.each_ref().map(|column| column[i]);
        writeln!(out, "| {name} | {a:.1} | {b:.1} | {c:.1} | {d:.1} |").unwrap();
    }
    for rate in [0.01, 1e-4] {
        writeln!(
            out,
            "\n## Measured false-positive rate, {} keys at {rate}, {} others asked for\n\n\
             | | 0, 1, 2 ... | 8 digits | URLs | multiples of 2^16 | multiples of 2^32 |\n|---|--:|--:|--:|--:|--:|",
            args.keys, args.queries
        )
        .unwrap();
        let columns = [
            rates(&args, rate, |i| i),
            rates(&args, rate, decimal),
            rates(&args, rate, url),
            rates(&args, rate, |i| i << 16),
            rates(&args, rate, |i| i << 32),
        ];
        for (i, name) in names.iter().enumerate() {
            let figures = columns.each_ref().map(|column| format!("{:.4}%", 100.0 * column[i]));
            writeln!(out, "| {name} | {} |", figures.join(" | ")).unwrap();
        }
        if !args.bench.test {
            // The good ones do what was asked for, up to four standard deviations.
            let most = 1.05 * rate + 4.0 * (rate / args.queries as f64).sqrt();
            for (name, measured) in columns.iter().flat_map(|column| names.iter().zip(column).take(3)) {
                assert!(
                    *measured < most,
                    "{name}: a rate of {measured}, and {rate} was asked for"
                );
            }
        }
    }
    args.bench.add(&mut String::new(), &out);
}
