//! `lanebloom plan`: what each type of filter takes for a number of keys and a rate.
//!
//! The library's builders say it, for up to 2^20 keys: their filters take at most some MiB, and no
//! figure needs more. Beyond, the bits per key are the same but for rounding. A filter in lines has
//! `ceil(keys / load)` lines, where `load` follows from the rate alone. Guava's and RedisBloom's
//! have `keys * c(rate)` bits, rounded up to 64, and RedisBloom's take 256 bytes beside them. A
//! cuckoo filter has 4 or 8 buckets beyond the planned load, of 160,000 or more. So at 2^20 keys
//! the bits per key are at most 0.1% too many. A static filter has as many cells for each million
//! of keys; it is built, in 50 ms.

use crate::args::Plan;
use crate::table::{rate as rate_text, table};
use anyhow::Result;
use indicatif::HumanBytes;
use lanebloom::{
    BuildError, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Hashed, Membership, ScalableBloom,
    StaticFilter, TombstoneBloom, WindowedBloom,
};
use lanebloom_files::stdout;
use lanebloom_files::summary::object;
use lanebloom_formats::{GuavaBloom, RedisBloom};
use serde_json::Value;
use std::io::Write;

/// The most keys that a filter is built for.
const MOST_BUILT: usize = 1 << 20;

/// The rates of the table over rates.
const RATES: [f64; 8] = [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7];

pub(crate) fn run(args: &Plan) -> Result<()> {
    let text = if args.json {
        objects(args)
    } else {
        let sizes = match args.rate {
            Some(rate) => by_type(args.keys, rate),
            None => by_rate(args.keys),
        };
        format!("{}{NO_INSERT}\n{HASHERS}", table(&sizes))
    };
    Ok(stdout::open()?.write_all(text.as_bytes())?)
}

/// A line with an object for each type of filter and each rate.
fn objects(args: &Plan) -> String {
    let rates = args.rate.map_or(RATES.to_vec(), |rate| vec![rate]);
    let mut text = String::new();
    for rate in rates {
        for (name, sizing) in TYPES {
            let size = sizing(args.keys.min(MOST_BUILT), rate).ok();
            let figure = |figure: fn(&Size) -> f64| Value::from(size.as_ref().map(figure)).to_string();
            let memory = size.as_ref().map(|size| bytes(args.keys, size.bits_per_key));
            text += &object([
                ("filter", Value::from(name).to_string()),
                ("keys", args.keys.to_string()),
                ("rate_wanted", Value::from(rate).to_string()),
                ("rate", figure(|size| size.rate)),
                ("memory_bytes", Value::from(memory).to_string()),
                ("bits_per_key", figure(|size| size.bits_per_key)),
                ("lines_present", figure(|size| size.present)),
                ("lines_absent", figure(|size| size.absent)),
            ]);
            text.push('\n');
        }
    }
    text
}

/// The size of a filter.
struct Size {
    bits_per_key: f64,
    /// The rate that it has at the expected keys, at most the requested one.
    rate: f64,
    /// Lines of the cache that a lookup touches: of a present key, of an absent key.
    present: f64,
    absent: f64,
}

/// The size of a type of filter for a number of keys at a rate.
type Sizing = fn(usize, f64) -> Result<Size, BuildError>;

fn size(bits_per_key: f64, rate: f64, present: f64, absent: f64) -> Result<Size, BuildError> {
    Ok(Size {
        bits_per_key,
        rate,
        present,
        absent,
    })
}

/// A filter without lines, in which a key has `bits` bits anywhere. The lookup of an absent key
/// ends at the first bit that is not set, and half of the filter's bits are set.
fn scattered(bits_per_key: f64, rate: f64, bits: f64) -> Result<Size, BuildError> {
    size(bits_per_key, rate, bits, 2.0 - 0.5_f64.powf(bits - 1.0))
}

/// `-log2(rate) / ln 2` bits per key: a key has `-log2(rate)` bits, and half of the filter's bits
/// are set.
fn textbook(_: usize, rate: f64) -> Result<Size, BuildError> {
    let bits = -rate.log2();
    scattered(bits / std::f64::consts::LN_2, rate, bits.ceil())
}

fn sized(filter: &impl Membership, present: f64, absent: f64) -> Result<Size, BuildError> {
    size(
        8.0 * filter.memory_bytes() as f64 / filter.expected_keys() as f64,
        filter.false_positive_rate(),
        present,
        absent,
    )
}

fn bloom(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let filter = ConcurrentBloom::with_capacity(keys, rate)?;
    let lines = filter.layout().lines_per_key as f64;
    // A lookup reads the second of two lines if the first has all its bits: at the root of the
    // rate.
    let second = filter.false_positive_rate().sqrt();
    sized(&filter, lines, 1.0 + (lines - 1.0) * second)
}

fn cuckoo(keys: usize, rate: f64) -> Result<Size, BuildError> {
    sized(&CuckooFilter::with_capacity(keys, rate)?, 2.0, 2.0)
}

/// Three cells, each in a line of its own unless the filter has few.
fn fixed(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let hashes = (1..=keys as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let filter = StaticFilter::from_keys(Hashed::slice(&Vec::from_iter(hashes)), rate)?;
    let (bits, lines) = (filter.statistics().bits_per_key, filter.cells_per_key() as f64);
    size(bits, filter.false_positive_rate(), lines, lines)
}

/// Below the table that has it.
const NO_INSERT: &str = "(StaticFilter has no insert: it is not for keys that change.)";

const TYPES: [(&str, Sizing); 11] = [
    ("textbook Bloom filter", textbook),
    ("ConcurrentBloom", bloom),
    ("StaticFilter", fixed),
    ("ScalableBloom", |keys, rate| {
        // With one layer, if the number of keys is right.
        let filter = ScalableBloom::with_capacity(keys, rate)?;
        let layer = sized(&filter, 1.0, 1.0)?;
        let rate = filter.max_false_positive_rate();
        Ok(Size { rate, ..layer })
    }),
    ("WindowedBloom", |keys, rate| {
        // With four generations; a lookup searches the newest first.
        let filter = WindowedBloom::with_capacity(keys, rate)?;
        let generations = filter.generations() as f64;
        sized(&filter, (1.0 + generations) / 2.0, generations)
    }),
    ("TombstoneBloom", |keys, rate| {
        // A lookup reads the filter of removed keys where that of added keys says yes.
        let filter = TombstoneBloom::with_capacity(keys, rate)?;
        sized(&filter, 2.0, 1.0 + filter.false_positive_rate())
    }),
    ("CountingBloom", |keys, rate| {
        sized(&CountingBloom::with_capacity(keys, rate)?, 1.0, 1.0)
    }),
    ("CuckooFilter", cuckoo),
    ("DLeftFilter", |keys, rate| {
        sized(&DLeftFilter::with_capacity(keys, rate)?, 4.0, 4.0)
    }),
    ("GuavaBloom", |keys, rate| {
        let filter = GuavaBloom::with_capacity(keys, rate)?;
        let (now, bits) = (filter.statistics(), f64::from(filter.hash_functions()));
        scattered(now.bits_per_key, filter.false_positive_rate(), bits)
    }),
    ("RedisBloom", |keys, rate| {
        // With one filter in the chain.
        let filter = RedisBloom::with_capacity(keys, rate)?;
        let layer = filter.layers().next().expect("there is a layer");
        let bits = f64::from(layer.hash_functions);
        scattered(filter.statistics().bits_per_key, layer.false_positive_rate, bits)
    }),
];

fn by_type(keys: usize, rate: f64) -> Vec<Vec<String>> {
    let mut rows = vec![row("filter|memory|bits/key|x textbook|rate|lines present|lines absent")];
    let built = keys.min(MOST_BUILT);
    let book = textbook(built, rate).map_or(1.0, |size| size.bits_per_key);
    for (name, size) in TYPES {
        rows.push(match size(built, rate) {
            Ok(size) => vec![
                name.into(),
                memory(keys, size.bits_per_key),
                format!("{:.1}", size.bits_per_key),
                format!("{:.2}", size.bits_per_key / book),
                rate_text(size.rate),
                lines(size.present),
                lines(size.absent),
            ],
            Err(_) => row(&format!("{name}|-|-|-|not in reach|-|-")),
        });
    }
    rows
}

fn by_rate(keys: usize) -> Vec<Vec<String>> {
    let mut rows = vec![
        row("|textbook||ConcurrentBloom|||StaticFilter||CuckooFilter|"),
        row("rate|bits/key|memory|bits/key|memory|lines|bits/key|memory|bits/key|memory"),
    ];
    for rate in RATES {
        let mut cells = vec![rate_text(rate)];
        let types: [Sizing; 4] = [textbook, bloom, fixed, cuckoo];
        for (number, sizing) in types.into_iter().enumerate() {
            let Ok(size) = sizing(keys.min(MOST_BUILT), rate) else {
                cells.extend(["-".into(), "-".into()]);
                continue;
            };
            cells.push(format!("{:.1}", size.bits_per_key));
            cells.push(memory(keys, size.bits_per_key));
            if number == 1 {
                cells.push(lines(size.present));
            }
        }
        rows.push(cells);
    }
    rows
}

/// The table of hashers. Its times are ns per lookup at 32 KiB, one key after another, on an Intel
/// with AMX (`docs/HASHES.md`).
const HASHERS: &str = "
                            ns of a lookup
yours                               number  24 bytes                   --hasher  other languages  hostile keys
the default                            3.4       6.6                    murmur3              yes            no
only speed counts                      1.8       3.0                       fast          by XXH3            no
keys are hashes of 64 bits             1.2         -                  prehashed         as yours      as yours
strangers choose the keys              6.8      10.2  SipHash, in programs only     with the key           yes
";

fn memory(keys: usize, bits_per_key: f64) -> String {
    HumanBytes(bytes(keys, bits_per_key)).to_string()
}

fn bytes(keys: usize, bits_per_key: f64) -> u64 {
    (keys as f64 * bits_per_key / 8.0).round() as u64
}

/// A number of lines: whole ones without a point.
fn lines(lines: f64) -> String {
    let text = format!("{lines:.1}");
    text.strip_suffix(".0").map_or(text.clone(), Into::into)
}

/// The cells of a row, between bars.
fn row(cells: &str) -> Vec<String> {
    cells.split('|').map(String::from).collect()
}
