//! `lanebloom bench`: how fast a filter is on this machine, by its size.
//!
//! Each size gets a filter for a rate of 1% that is filled with the keys it is for. Passes over
//! `PASS` keys, which do not come again, are timed: the operations take turns, and the median of an
//! operation's passes counts. What a pass computed is checked.

use crate::args::Bench;
use crate::chart;
use crate::cpu_info::{self, CpuInfo};
use crate::speeds::{Speed, Speeds};
use crate::table;
use crate::test_keys::{absent, hash_at, hashes_at, insert_range};
use anyhow::{Context, Result, ensure};
use indicatif::HumanCount;
use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_files::claims::Claims;
use lanebloom_files::output::Output;
use lanebloom_files::stdout;
use std::io::{self, LineWriter, Write};
use std::time::{Duration, Instant};

/// Sizes of the filter as powers of two: 32 KiB to 512 MiB, from the first cache to far out of the
/// last.
const SIZES: [u32; 8] = [15, 17, 19, 21, 23, 25, 27, 29];

/// The share of the free memory that a filter may take.
const SHARE: u64 = 4;

/// The false-positive rate that the filters are for.
const RATE: f64 = 0.01;

/// Keys of a pass: some microseconds, so the clock's own time counts for little, and the hashes fit
/// in the first cache.
const PASS: usize = 4096;

/// Keys of a batch.
const BATCH: usize = 1024;

/// Passes of each operation, however slow the machine is.
const LEAST: usize = 3;

/// Single lookups and inserts, then those by batches, in the same order.
const OPERATIONS: [&str; 6] = [
    "lookup, absent key",
    "lookup, present key",
    "insert, new key",
    "batch lookup, absent keys",
    "batch lookup, present keys",
    "batch insert, new keys",
];

pub(crate) fn run(args: &Bench, quiet: bool) -> Result<()> {
    let start = Instant::now();
    // Before the work, so that none is lost.
    let table = args.output.as_deref().map(Output::new).transpose()?;
    let chart = args.chart.as_deref().map(chart::output).transpose()?;
    let mut claims = Claims::default();
    for (output, role) in [(&table, "the table"), (&chart, "the chart")] {
        output.iter().try_for_each(|output| output.claim(&mut claims, role))?;
    }
    let mut speeds = Speeds {
        machine: CpuInfo::this(),
        speeds: Vec::new(),
    };
    let mut out = LineWriter::new(stdout::open()?);
    print_header(&mut out, &speeds.machine)?;

    let time = Duration::from_secs_f64(args.seconds);
    // The rest is for filling the filters.
    let time_of_size = time / (3 * SIZES.len() as u32);
    let free = cpu_info::free_memory();
    let mut left_out = None;
    let mut fill_per_byte = 0.0;
    for power in SIZES {
        let (bytes, is_first) = (1 << power, power == SIZES[0]);
        // A key takes somewhat longer than in the size before.
        let fill = Duration::from_secs_f64(1.3 * fill_per_byte * bytes as f64);
        if !is_first && free.is_some_and(|free| bytes as u64 > free / SHARE) {
            left_out = Some((bytes, "they would take more than a quarter of the free memory".into()));
            break;
        }
        if !is_first && start.elapsed() + fill + time_of_size > time {
            left_out = Some((bytes, format!("the {} s of --seconds do not suffice", args.seconds)));
            break;
        }
        let builder = ConcurrentBloom::builder().memory_budget(bytes);
        let filter = match builder.false_positive_rate(RATE).build() {
            Err(error) if error.is_out_of_memory() && !is_first => {
                left_out = Some((bytes, error.to_string()));
                break;
            }
            filter => filter?,
        };
        let measured = measure(filter, time_of_size)
            .with_context(|| format!("measuring a filter of {}", table::bytes(bytes as u64)))?;
        fill_per_byte = measured.fill.as_secs_f64() / bytes as f64;
        print_row(&mut out, bytes, &measured)?;
        let operations = OPERATIONS.into_iter().zip(measured.ns_per_key);
        speeds.speeds.extend(operations.map(|(operation, ns_per_key)| Speed {
            filter_bytes: bytes as u64,
            operation: operation.into(),
            ns_per_key,
        }));
    }
    if let Some((bytes, reason)) = left_out.filter(|_| !quiet) {
        let bytes = table::bytes(bytes as u64);
        lanebloom_files::note(&format!("Filters of {bytes} and more were left out: {reason}"));
    }
    if let Some(table) = table {
        table.write(|writer| speeds.write_to(writer))?;
    }
    if let Some(chart) = chart {
        speeds.chart().write(&chart)?;
    }
    Ok(())
}

const COLUMNS: &str = "
                           lookup      insert    batch lookup     batch      false
  filter         keys   absent present      new   absent present   insert  positives
";

fn print_header(out: &mut impl Write, machine: &CpuInfo) -> io::Result<()> {
    write!(out, "CPU              {}, {} threads", machine.cpu, machine.threads)?;
    for (name, size) in CpuInfo::CACHES.into_iter().zip(machine.caches) {
        if let Some(size) = size {
            write!(out, ", {name} {}", table::bytes(size))?;
        }
    }
    write!(
        out,
        "
Instruction set  {}
Measured         ns per key, medians; a ConcurrentBloom at a rate of 1%, full for lookups and
                 half full or more for inserts; one thread, hashes of u64, batches of {BATCH}
{COLUMNS}",
        machine.instruction_set
    )
}

fn print_row(out: &mut impl Write, bytes: usize, measured: &Measured) -> io::Result<()> {
    let [absent, present, insert, batch_absent, batch_present, batch_insert] = measured.ns_per_key;
    writeln!(
        out,
        "{:>8}  {:>11}  {absent:>7.2} {present:>7.2}  {insert:>7.2}  {batch_absent:>7.2} {batch_present:>7.2}  \
         {batch_insert:>7.2}  {:>8.2}%",
        table::bytes(bytes as u64),
        HumanCount(measured.keys).to_string(),
        100.0 * measured.false_positives,
    )?;
    // Each line when it is known, also into a pipe.
    out.flush()
}

struct Measured {
    keys: u64,
    /// In the order of `OPERATIONS`.
    ns_per_key: [f64; OPERATIONS.len()],
    false_positives: f64,
    /// How long it took to fill the filter, without what was measured.
    fill: Duration,
}

/// Measures an empty filter. Half of the time goes to lookups, half to inserts; filling the filter
/// takes time of its own.
fn measure(mut filter: ConcurrentBloom, time: Duration) -> Result<Measured> {
    let keys = filter.expected_keys() as u64;
    let mut fill = Duration::ZERO;
    let mut timed_fill = |filter: &mut ConcurrentBloom, keys| {
        let start = Instant::now();
        insert_range(filter, keys);
        fill += start.elapsed();
    };

    // In the order of `OPERATIONS`.
    let mut passes: [Passes; OPERATIONS.len()] = Default::default();
    timed_fill(&mut filter, 0..keys / 2);
    let mut next = keys / 2;
    let start = Instant::now();
    while start.elapsed() < time / 2 || passes[5].times.len() < LEAST {
        for operation in [2, 5] {
            if next + PASS as u64 > keys {
                filter.clear();
                insert_range(&mut filter, 0..keys / 2);
                next = keys / 2;
            }
            let hashes = hashes_at::<PASS>(|i| next + i);
            next += PASS as u64;
            passes[operation].time(|| match operation {
                2 => hashes.iter().filter(|&&hash| filter.insert(&Hashed(hash))).count(),
                _ => hashes
                    .chunks(BATCH)
                    .map(|hashes| filter.insert_batch(Hashed::slice(hashes)))
                    .sum(),
            });
        }
    }
    timed_fill(&mut filter, next..keys);

    let mut found = [false; BATCH];
    let mut random = 0;
    let start = Instant::now();
    while start.elapsed() < time / 2 || passes[4].times.len() < LEAST {
        for operation in [0, 1, 3, 4] {
            let hashes = hashes_at::<PASS>(|i| match operation {
                0 | 3 => absent(random + i),
                _ => ((u128::from(hash_at(random + i)) * u128::from(keys)) >> 64) as u64,
            });
            random += PASS as u64;
            let mut batch = |hashes: &[u64]| {
                filter.contains_batch(Hashed::slice(hashes), &mut found);
                found.iter().filter(|&&found| found).count()
            };
            passes[operation].time(|| match operation {
                0 | 1 => hashes.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count(),
                _ => hashes.chunks(BATCH).map(&mut batch).sum(),
            });
        }
    }

    let [absent, present, new, batch_absent, batch_present, batch_new] = passes.each_ref().map(Passes::share);
    let false_positives = (absent + batch_absent) / 2.0;
    // Several standard deviations of the least number of passes.
    ensure!(
        (0.3 * RATE..2.0 * RATE).contains(&false_positives),
        "a share of {false_positives} of absent keys was taken for present, not {RATE}"
    );
    ensure!(
        present == 1.0 && batch_present == 1.0,
        "a key that was inserted was not found"
    );
    let least_new = new.min(batch_new);
    ensure!(
        least_new > 0.98,
        "only a share of {least_new} of new keys was taken for new"
    );
    let ns_per_key = passes.map(Passes::median);
    ensure!(ns_per_key.iter().all(|&ns| ns > 0.0), "the clock is too coarse");
    Ok(Measured {
        keys,
        ns_per_key,
        false_positives,
        fill,
    })
}

/// The passes of an operation.
#[derive(Default)]
struct Passes {
    /// In ns per key.
    times: Vec<f64>,
    /// How many keys the passes counted: those found, or those that were new.
    count: usize,
}

impl Passes {
    fn time(&mut self, pass: impl FnOnce() -> usize) {
        let start = Instant::now();
        self.count += pass();
        self.times.push(start.elapsed().as_secs_f64() * 1e9 / PASS as f64);
    }

    fn share(&self) -> f64 {
        self.count as f64 / (self.times.len() * PASS) as f64
    }

    fn median(mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times[self.times.len() / 2]
    }
}
