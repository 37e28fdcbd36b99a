//! The measured rate and the lost keys of ours and of other crates' filters, which hold as many
//! keys as they are planned for. `docs/PEERS.md` has the table.
//!
//! A filter is made as its documentation says, with its default hasher, and gets `u64` keys. Two
//! sets of keys: consecutive numbers, then others that follow them; and numbers without a pattern.
//! A key is lost if its insert succeeded and a lookup does not find it.

use crate::contestants::{Locked, Sbbf};
use crate::{Args, STRANGERS};
use fastbloom::AtomicBloomFilter;
use growable_bloom_filter::GrowableBloom;
use lanebloom::{ConcurrentBloom, CountingBloom, CuckooFilter, ScalableBloom, StaticFilter};
use lanebloom_benches::number;
use rand_09::SeedableRng;
use rand_09::rngs::SmallRng;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use sux::dict::VFilter;
use xorf::Filter as _;

/// Keys that the filters are planned for, and hold.
const PLANNED: u64 = 1_000_000;

/// The requested rates, and how many absent keys are looked up.
const RATES: [(f64, u64); 3] = [(0.01, 1_000_000), (1e-4, 4_000_000), (1e-6, 20_000_000)];

/// A filter that was made for the keys and holds them.
struct Filled {
    contains: Box<dyn Fn(&u64) -> bool>,
    /// The keys that it refused, by an error.
    refused: HashSet<u64>,
    bytes: Option<usize>,
}

impl Filled {
    /// The result of a filter that refuses no key.
    fn new<F: 'static>(filter: F, bytes: impl Into<Option<usize>>, contains: fn(&F, &u64) -> bool) -> Self {
        Self {
            bytes: bytes.into(),
            refused: HashSet::new(),
            contains: Box::new(move |key| contains(&filter, key)),
        }
    }
}

/// Makes a filter of these keys for this rate, if it can have that rate.
type Fill = fn(&[u64], f64) -> Option<Filled>;

struct Row {
    /// The crate, whose version is that of `Cargo.lock`.
    package: &'static str,
    name: &'static str,
    fill: Fill,
    /// Whether it takes a rate.
    takes_rate: bool,
}

/// The filters that take a rate, and those that do not.
fn rows() -> Vec<Row> {
    let row = |takes_rate| {
        move |(package, name, fill)| Row {
            package,
            name,
            fill,
            takes_rate,
        }
    };
    let asked: [(_, _, Fill); 11] = [
        ("lanebloom", "ConcurrentBloom", |keys, rate| {
            let filter = ConcurrentBloom::with_capacity(keys.len(), rate).ok()?;
            filter.insert_batch(keys);
            let bytes = filter.memory_bytes();
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("lanebloom", "ScalableBloom", |keys, rate| {
            let filter = ScalableBloom::builder()
                .expected_keys(keys.len())
                .false_positive_rate(rate)
                .build()
                .ok()?;
            filter.insert_batch(keys).ok()?;
            let bytes = filter.memory_bytes();
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("lanebloom", "CountingBloom", |keys, rate| {
            let filter = CountingBloom::with_capacity(keys.len(), rate).ok()?;
            filter.insert_batch(keys);
            let bytes = filter.memory_bytes();
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("lanebloom", "CuckooFilter", |keys, rate| {
            let filter = CuckooFilter::with_capacity(keys.len(), rate).ok()?;
            let refused = keys
                .iter()
                .filter(|key| filter.insert(*key).is_err())
                .copied()
                .collect();
            let bytes = filter.memory_bytes();
            let filled = Filled::new(filter, bytes, |filter, key| filter.contains(key));
            Some(Filled { refused, ..filled })
        }),
        ("lanebloom", "StaticFilter", |keys, rate| {
            let filter = StaticFilter::from_keys(keys.iter().copied(), rate).ok()?;
            let bytes = filter.memory_bytes();
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("fastbloom", "AtomicBloomFilter", |keys, rate| {
            let filter = AtomicBloomFilter::with_false_pos(rate).seed(&1).items(keys);
            let bytes = filter.num_bits() / 8;
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("bloomfilter", "Bloom", |keys, rate| {
            let mut filter = Locked::filter(keys.len(), rate);
            keys.iter().for_each(|key| filter.set(key));
            let bytes = filter.as_slice().len();
            Some(Filled::new(filter, bytes, |filter, key| filter.check(key)))
        }),
        ("growable-bloom-filter", "GrowableBloom", |keys, rate| {
            let mut filter = GrowableBloom::new(rate, keys.len());
            keys.iter().for_each(|key| _ = filter.insert(key));
            Some(Filled::new(filter, None, |filter, key| filter.contains(key)))
        }),
        ("sbbf-rs-safe", "Filter, bits for the rate", |keys, rate| {
            // It takes hashes.
            let hash = |key: &u64| {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                hasher.finish()
            };
            let mut filter = Sbbf::filter(keys.len(), rate);
            keys.iter().for_each(|key| _ = filter.insert_hash(hash(key)));
            let bytes = filter.as_bytes().len();
            Some(Filled {
                contains: Box::new(move |key| filter.contains_hash(hash(key))),
                refused: HashSet::new(),
                bytes: Some(bytes),
            })
        }),
        ("scalable_cuckoo_filter", "ScalableCuckooFilter", |keys, rate| {
            let builder = ScalableCuckooFilterBuilder::new().initial_capacity(keys.len());
            let builder = builder.false_positive_probability(rate).rng(SmallRng::seed_from_u64(1));
            let mut filter: ScalableCuckooFilter<u64, _, _> = builder.finish();
            keys.iter().for_each(|key| filter.insert(key));
            let bytes = filter.bits() as usize / 8;
            Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
        }),
        ("qfilter", "Filter", |keys, rate| {
            let mut filter = qfilter::Filter::new(keys.len() as u64, rate).ok()?;
            let refused = keys.iter().filter(|key| filter.insert(key).is_err()).copied().collect();
            let bytes = filter.memory_usage();
            let filled = Filled::new(filter, bytes, |filter, key| filter.contains(key));
            Some(Filled { refused, ..filled })
        }),
    ];
    macro_rules! xorf {
        ($filter:ident) => {
            |keys, _| {
                let filter = xorf::$filter::try_from(keys).ok()?;
                let bytes = size_of_val(&filter.fingerprints[..]);
                Some(Filled::new(filter, bytes, |filter, key| filter.contains(key)))
            }
        };
    }
    macro_rules! sux {
        ($cell:ty) => {
            |keys, _| {
                let logging = dsi_progress_logger::no_logging![];
                let filter = VFilter::<u64, Box<[$cell]>>::try_par_new(keys, logging).ok()?;
                let bytes = mem_dbg::MemSize::mem_size(&filter, mem_dbg::SizeFlags::default());
                Some(Filled::new(filter, bytes, |filter, key| filter.contains(*key)))
            }
        };
    }
    let not_asked: [(_, _, Fill); 6] = [
        ("cuckoofilter", "CuckooFilter", |keys, _| {
            let mut filter = cuckoofilter::CuckooFilter::<DefaultHasher>::with_capacity(keys.len());
            let refused = keys.iter().filter(|key| filter.add(*key).is_err()).copied().collect();
            let bytes = filter.memory_usage();
            let filled = Filled::new(filter, bytes, |filter, key| filter.contains(key));
            Some(Filled { refused, ..filled })
        }),
        ("atomic-cuckoo-filter", "CuckooFilter", |keys, _| {
            let filter = atomic_cuckoo_filter::CuckooFilter::with_capacity(keys.len());
            let refused = keys
                .iter()
                .filter(|key| filter.insert(*key).is_err())
                .copied()
                .collect();
            // Fingerprints of 16 bits.
            let bytes = 2 * filter.capacity();
            let filled = Filled::new(filter, bytes, |filter, key| filter.contains(key));
            Some(Filled { refused, ..filled })
        }),
        ("xorf", "BinaryFuse8", xorf!(BinaryFuse8)),
        ("xorf", "BinaryFuse16", xorf!(BinaryFuse16)),
        ("sux", "VFilter of u8", sux!(u8)),
        ("sux", "VFilter of u16", sux!(u16)),
    ];
    let asked = asked.map(row(true));
    asked.into_iter().chain(not_asked.map(row(false))).collect()
}

/// A package with its version.
fn versioned(package: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let (_, rest) = lock
        .split_once(&format!("\nname = \"{package}\"\nversion = \""))
        .unwrap_or_else(|| panic!("Cargo.lock has no {package}"));
    format!("{package} {}", rest.split('"').next().expect("a version"))
}

/// The rate that is measured with consecutive numbers, and with numbers without a pattern; the keys
/// that the two filters lost and refused; the bytes of the first.
struct Measured {
    rates: [f64; 2],
    lost: usize,
    refused: usize,
    bytes: Option<usize>,
}

fn measure(row: &Row, planned: u64, rate: f64, absent: u64) -> Option<Measured> {
    let sets: [fn(u64) -> u64; 2] = [|i| i, number];
    let mut measured = Measured {
        rates: [0.0; 2],
        lost: 0,
        refused: 0,
        bytes: None,
    };
    for (key, measured_rate) in sets.into_iter().zip(&mut measured.rates) {
        let keys: Vec<u64> = (0..planned).map(key).collect();
        let filled = (row.fill)(&keys, rate)?;
        let missing = |key: &&u64| !(filled.contains)(key) && !filled.refused.contains(key);
        measured.lost += keys.iter().filter(missing).count();
        measured.refused += filled.refused.len();
        measured.bytes = measured.bytes.or(filled.bytes);
        // The consecutive ones follow the planned ones at once.
        let first = if key(1) == 1 { planned } else { STRANGERS };
        let found = (first..first + absent).filter(|&i| (filled.contains)(&key(i))).count();
        *measured_rate = found as f64 / absent as f64;
    }
    Some(measured)
}

/// The table.
pub(crate) fn rates(args: &Args) -> String {
    let test = args.bench.test;
    let planned = if test { 2000 } else { PLANNED };
    let mut table = format!(
        "\n## Rates and lost keys, {planned} keys planned and held\n\n\
         Measured rates divided by the requested one: of consecutive numbers, of numbers without a pattern. Filters that\n\
         take no rate have their measured one.\n\n\
         | crate | type | bits per key at 1%, 1e-4, 1e-6 | 1% | 1e-4 | 1e-6 | lost | refused |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n"
    );
    for row in rows() {
        let (mut cells, mut bits, mut lost, mut refused) = (Vec::new(), Vec::new(), 0, 0);
        for (rate, absent) in RATES.into_iter().take(if row.takes_rate { 3 } else { 1 }) {
            let absent = if test { 5000 } else { absent };
            let Some(measured) = measure(&row, planned, rate, absent) else {
                cells.push("-".into());
                bits.push("-".into());
                continue;
            };
            let name = row.name;
            if row.package == "lanebloom" {
                let most = 1.1 * rate + 5.0 * (rate / absent as f64).sqrt();
                assert!(
                    measured.rates.into_iter().all(|rate| rate <= most),
                    "{name}: {:?} at {rate}",
                    measured.rates
                );
                assert_eq!((measured.lost, measured.refused), (0, 0), "{name} at {rate}");
            }
            cells.push(if row.takes_rate {
                measured
                    .rates
                    .map(|measured| format!("{:.2}", measured / rate))
                    .join(", ")
            } else {
                measured
                    .rates
                    .map(|measured| format!("{:.3}%", 100.0 * measured))
                    .join(", ")
            });
            bits.push(measured.bytes.map_or("-".into(), |bytes| {
                format!("{:.1}", 8.0 * bytes as f64 / planned as f64)
            }));
            lost += measured.lost;
            refused += measured.refused;
        }
        cells.resize(RATES.len(), String::new());
        let package = versioned(row.package);
        let begin = format!("| {package} | `{}` |", row.name);
        if test {
            // So the page has the same filters and versions. (Cells are measured at full size.)
            let page = include_str!("../../docs/PEERS.md");
            assert!(
                page.contains(&begin),
                "docs/PEERS.md has no row {begin}: make its table anew"
            );
        }
        writeln!(
            table,
            "{begin} {} | {} | {lost} | {refused} |",
            bits.join(", "),
            cells.join(" | ")
        )
        .unwrap();
    }
    table
}
