//! Code that the benches share: numbers without a pattern, the machine's name, the command line,
//! the time of work (by threads that start together, too), the median.

#[path = "../tests/common/jars.rs"]
pub mod jars;
#[path = "../tests/common/number.rs"]
mod number;

pub use number::number;

use lanebloom::internal::{Isa, instruction_sets, tuning_name};
use std::hint::black_box;
use std::iter::Sum;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Instant;
use std::{fs, thread};

/// Bytes, with K, M or G.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("{unit:?} is not K, M or G")),
    };
    number
        .parse::<usize>()
        .map(|number| number << shift)
        .map_err(|error| error.to_string())
}

// Options of most benches. (Not a comment of documentation, which would head the help.)
#[derive(clap::Args)]
pub struct BenchArgs {
    /// Also write the tables to this file.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Run once with a tiny size, to see that everything works.
    #[arg(long)]
    pub test: bool,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl BenchArgs {
    /// Prints a table, and writes the report with it to the file. (After every table, so that an
    /// interrupted run leaves its tables.)
    pub fn add(&self, report: &mut String, table: &str) {
        print!("{table}");
        report.push_str(table);
        self.write(report);
    }

    /// Writes the report to the file.
    pub fn write(&self, report: &str) {
        if let Some(path) = &self.record {
            fs::write(path, report).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        }
    }
}

/// The best instruction set that this machine has.
pub fn best_instruction_set() -> Isa {
    instruction_sets().last().expect("there is always one")
}

/// The features of x86-64 on which the speed depends, as Linux names them.
const FEATURES: [&str; 7] = [
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_fp16",
];

/// The machine, for the record: the CPU and those of its features that matter, the caches, and what
/// the crate makes of them.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = cpuinfo
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split(':').nth(1)).map_or("?", str::trim)
    };
    let cache = |index| {
        read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"))
            .trim()
            .to_owned()
    };
    let flags: Vec<&str> = field("flags").split(' ').collect();
    let features: Vec<&str> = FEATURES.into_iter().filter(|feature| flags.contains(feature)).collect();
    format!(
        "CPU: {} ({}, family {}, model {}), {} threads, L1d {}, L2 {}, L3 {}; features: {}; instruction set: {}; tuning: {}",
        field("model name"),
        field("vendor_id"),
        field("cpu family"),
        field("model"),
        thread::available_parallelism().map_or(0, usize::from),
        cache(0),
        cache(2),
        cache(3),
        features.join(" "),
        best_instruction_set(),
        tuning_name(),
    )
}

/// The median of the values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// ns of `work` for each of its `operations`, and its result.
pub fn time<R>(operations: usize, work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = black_box(work());
    (start.elapsed().as_nanos() as f64 / operations as f64, result)
}

/// Runs `work` on equal parts of `keys` in `threads` threads; ns per key from the first start to
/// the last end, and the sum of the results.
pub fn timed<K: Sync, T>(threads: usize, keys: &[K], work: impl Fn(&[K]) -> T + Sync) -> (f64, T)
where
    T: Sum + Copy + Send,
{
    if threads == 1 {
        return time(keys.len(), || work(keys));
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
