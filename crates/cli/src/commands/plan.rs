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
        format!("{}{NO_INSERT}\n\n{}", table(&sizes), table(&hashers()))
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

/// The bits per key of a filter without lines: `-log2(rate) / ln 2`. A key has `-log2(rate)` bits,
/// and half of the filter's bits are set. The lookup of an absent key ends at the first bit that is
/// not set.
fn textbook(rate: f64) -> Size {
    let bits = -rate.log2();
    Size {
        bits_per_key: bits / std::f64::consts::LN_2,
        rate,
        present: bits.ceil(),
        absent: scattered(bits.ceil()),
    }
}

/// The lines that the lookup of an absent key reads, if a key has `bits` bits anywhere in the
/// filter and half of the filter's bits are set.
fn scattered(bits: f64) -> f64 {
    2.0 - 0.5_f64.powf(bits - 1.0)
}

fn size(filter: &impl Membership, present: f64, absent: f64) -> Size {
    Size {
        bits_per_key: 8.0 * filter.memory_bytes() as f64 / filter.expected_keys() as f64,
        rate: filter.false_positive_rate(),
        present,
        absent,
    }
}

fn bloom(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let filter = ConcurrentBloom::with_capacity(keys, rate)?;
    let lines = filter.layout().lines_per_key as f64;
    // A lookup reads the second of two lines if the first has all its bits: at the root of the
    // rate.
    Ok(size(
        &filter,
        lines,
        1.0 + (lines - 1.0) * filter.false_positive_rate().sqrt(),
    ))
}

fn cuckoo(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let filter = CuckooFilter::with_capacity(keys, rate)?;
    Ok(size(&filter, 2.0, 2.0))
}

/// Three cells, each in a line of its own unless the filter has few.
fn fixed(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let hashes: Vec<u64> = (1..=keys as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let filter = StaticFilter::from_keys(Hashed::slice(&hashes), rate)?;
    let lines = filter.cells_per_key() as f64;
    Ok(Size {
        bits_per_key: filter.statistics().bits_per_key,
        rate: filter.false_positive_rate(),
        present: lines,
        absent: lines,
    })
}

fn guava(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let filter = GuavaBloom::with_capacity(keys, rate)?;
    let bits = f64::from(filter.hash_functions());
    Ok(Size {
        bits_per_key: filter.statistics().bits_per_key,
        rate: filter.false_positive_rate(),
        present: bits,
        absent: scattered(bits),
    })
}

/// With one filter in the chain.
fn redisbloom(keys: usize, rate: f64) -> Result<Size, BuildError> {
    let filter = RedisBloom::with_capacity(keys, rate)?;
    let layer = filter.layers().next().expect("there is a layer");
    let bits = f64::from(layer.hash_functions);
    Ok(Size {
        bits_per_key: filter.statistics().bits_per_key,
        rate: layer.false_positive_rate,
        present: bits,
        absent: scattered(bits),
    })
}

const STATIC: &str = "StaticFilter";

/// Below the table that has it.
const NO_INSERT: &str = "(StaticFilter has no insert: it is not for keys that change.)";

const TEXTBOOK: &str = "textbook Bloom filter";

const TYPES: [(&str, Sizing); 11] = [
    (TEXTBOOK, |_, rate| Ok(textbook(rate))),
    ("ConcurrentBloom", bloom),
    (STATIC, fixed),
    ("ScalableBloom", |keys, rate| {
        // With one layer, if the number of keys is right.
        let filter = ScalableBloom::with_capacity(keys, rate)?;
        Ok(Size {
            rate: filter.max_false_positive_rate(),
            ..size(&filter, 1.0, 1.0)
        })
    }),
    ("WindowedBloom", |keys, rate| {
        // With four generations; a lookup searches the newest first.
        let filter = WindowedBloom::with_capacity(keys, rate)?;
        let generations = filter.generations() as f64;
        Ok(size(&filter, (1.0 + generations) / 2.0, generations))
    }),
    ("TombstoneBloom", |keys, rate| {
        // A lookup reads the filter of removed keys where that of added keys says yes.
        let filter = TombstoneBloom::with_capacity(keys, rate)?;
        Ok(size(&filter, 2.0, 1.0 + filter.false_positive_rate()))
    }),
    ("CountingBloom", |keys, rate| {
        Ok(size(&CountingBloom::with_capacity(keys, rate)?, 1.0, 1.0))
    }),
    ("CuckooFilter", cuckoo),
    ("DLeftFilter", |keys, rate| {
        Ok(size(&DLeftFilter::with_capacity(keys, rate)?, 4.0, 4.0))
    }),
    ("GuavaBloom", guava),
    ("RedisBloom", redisbloom),
];

fn by_type(keys: usize, rate: f64) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "filter",
        "memory",
        "bits/key",
        "x textbook",
        "rate",
        "lines present",
        "lines absent",
    ])];
    let book = textbook(rate);
    for (name, size) in TYPES {
        rows.push(match size(keys.min(MOST_BUILT), rate) {
            Ok(size) => vec![
                name.into(),
                memory(keys, size.bits_per_key),
                format!("{:.1}", size.bits_per_key),
                format!("{:.2}", size.bits_per_key / book.bits_per_key),
                rate_text(size.rate),
                lines(size.present),
                lines(size.absent),
            ],
            Err(_) => row([name, "-", "-", "-", "not in reach", "-", "-"]),
        });
    }
    rows
}

fn by_rate(keys: usize) -> Vec<Vec<String>> {
    let mut rows = vec![
        row([
            "",
            "textbook",
            "",
            "ConcurrentBloom",
            "",
            "",
            STATIC,
            "",
            "CuckooFilter",
            "",
        ]),
        row([
            "rate", "bits/key", "memory", "bits/key", "memory", "lines", "bits/key", "memory", "bits/key", "memory",
        ]),
    ];
    for rate in RATES {
        let mut cells = vec![rate_text(rate)];
        let built = keys.min(MOST_BUILT);
        let sizes = [
            Ok(textbook(rate)),
            bloom(built, rate),
            fixed(built, rate),
            cuckoo(built, rate),
        ];
        for (number, size) in sizes.into_iter().enumerate() {
            let Ok(size) = size else {
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
fn hashers() -> Vec<Vec<String>> {
    vec![
        row(["", "ns of a lookup", "", "", "", ""]),
        row([
            "yours",
            "number",
            "24 bytes",
            "--hasher",
            "other languages",
            "hostile keys",
        ]),
        row(["the default", "3.4", "6.6", "murmur3", "yes", "no"]),
        row(["only speed counts", "1.8", "3.0", "fast", "by XXH3", "no"]),
        row([
            "keys are hashes of 64 bits",
            "1.2",
            "-",
            "prehashed",
            "as yours",
            "as yours",
        ]),
        row([
            "strangers choose the keys",
            "6.8",
            "10.2",
            "SipHash, in programs only",
            "with the key",
            "yes",
        ]),
    ]
}

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

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}
