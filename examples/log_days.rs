//! In which days did these addresses occur? A folder has a log file for each day, and a bank has a
//! Bloom filter of each day's addresses. One lookup asks all days.
//!
//! The program makes the folder, unless you name one with logs: any files whose lines begin with an
//! address and a space. It asks for many addresses at once, and compares the answers with an exact
//! set, made by a scan of all files. Then it asks for single addresses, and reads only the files
//! that the bank names. It prints what was read, and how long scans of all files take.
//!
//! ```sh
//! cargo run --release --bin log_days                  # 1,000 days of 5,000 lines
//! cargo run --release --bin log_days -- --folder /var/log/nginx --addresses 100
//! ```
//!
//! The exit status says whether the bank found every day of every address, and took no more other
//! days for right than its rate allows.

#[path = "../tests/common/number.rs"]
mod number;
mod outcome;

use clap::{Parser, value_parser};
use indicatif::{HumanBytes, HumanCount};
use lanebloom::bank::{FilterBank, columns};
use lanebloom::{ConcurrentBloom, Hashed};
use number::number;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Filters that are in memory before they become columns.
const GROUP: usize = 64;

/// Finds the days of addresses in a folder of logs.
#[derive(Parser)]
struct Args {
    /// Days, each with a file
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=10_000))]
    days: u32,
    /// Lines of a day
    #[arg(long, default_value_t = 5000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    lines: u32,
    /// Addresses to look for
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    addresses: u32,
    /// Wrong days of an address, on average
    #[arg(long, default_value_t = 0.01)]
    wrong: f64,
    /// Read the logs in FOLDER. If it is missing, it is made, with logs of made-up visitors
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    outcome::exit(run(&Args::parse()))
}

fn run(args: &Args) -> Result<bool> {
    let temporary = tempfile::tempdir()?;
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => temporary.path().join("logs"),
    };
    if !folder.exists() {
        let start = Instant::now();
        write_logs(&folder, args)?;
        println!("{} written in {:.1} s", folder.display(), start.elapsed().as_secs_f64());
    }
    let mut days = Vec::from_iter(fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())));
    days.sort_by_key(|day| day.as_ref().ok().cloned());
    let days: Vec<PathBuf> = days.into_iter().collect::<std::io::Result<_>>()?;

    // A pass over the logs: the different addresses of each day, as hashes.
    let start = Instant::now();
    let hasher = FilterBank::with_capacity(1, 1, 0.5)?;
    let (mut hashes, mut bytes) = (Vec::new(), 0);
    for day in &days {
        let log = fs::read(day)?;
        bytes += log.len();
        let mut of_day: Vec<u64> = addresses(&log).map(|address| hasher.hash(address)).collect();
        of_day.sort_unstable();
        of_day.dedup();
        hashes.push(of_day);
    }
    let read = start.elapsed();
    let most = hashes.iter().map(Vec::len).max().ok_or("the folder is empty")?;
    let start = Instant::now();
    let builder = ConcurrentBloom::builder().expected_keys(most.max(1));
    let builder = builder.false_positive_rate(args.wrong / days.len() as f64);
    let mut bank = FilterBank::new(days.len(), &builder)?;
    // Cloned, since to plan a filter takes as long as to fill it.
    let empty = builder.build()?;
    for group in hashes.chunks(GROUP) {
        let mut filters = Vec::new();
        for hashes in group {
            let filter = empty.try_clone()?;
            filter.insert_batch(Hashed::slice(hashes));
            filters.push(filter);
        }
        bank.push_all(&filters)?;
    }
    println!(
        "{} days, {} of logs, at most {} addresses a day: read in {:.1} s\n\
         the bank: {}, made in {:.2} s; {:.3} wrong days per address expected",
        HumanCount(days.len() as u64),
        HumanBytes(bytes as u64),
        HumanCount(most as u64),
        read.as_secs_f64(),
        HumanBytes(bank.memory_bytes() as u64),
        start.elapsed().as_secs_f64(),
        days.len() as f64 * bank.false_positive_rate(),
    );

    let wanted = wanted(args, &days)?;
    Ok(ask_all(&bank, &days, &wanted)? & ask_some(&bank, &days, &wanted)?)
}

/// Asks for all addresses at once, and compares with an exact set; returns whether the answers are
/// as promised.
fn ask_all(bank: &FilterBank, days: &[PathBuf], wanted: &[String]) -> Result<bool> {
    let start = Instant::now();
    let mut found = vec![Vec::new(); wanted.len()];
    bank.which_batch(wanted, |address, bitmap| found[address].extend(columns(bitmap)));
    let asked = start.elapsed();

    let start = Instant::now();
    let places: HashMap<&str, usize> = wanted
        .iter()
        .enumerate()
        .map(|(i, address)| (&address[..], i))
        .collect();
    let mut right = vec![Vec::new(); wanted.len()];
    for (day, path) in days.iter().enumerate() {
        for address in addresses(&fs::read(path)?) {
            let Some(&place) = places.get(address) else { continue };
            if right[place].last() != Some(&day) {
                right[place].push(day);
            }
        }
    }
    let scanned = start.elapsed();

    let pairs = |lists: &[Vec<usize>]| lists.iter().map(Vec::len).sum::<usize>();
    let missing = right.iter().zip(&found);
    let missing = missing.map(|(right, found)| right.iter().filter(|day| found.binary_search(day).is_err()).count());
    let missing: usize = missing.sum();
    let wrong = pairs(&found) + missing - pairs(&right);
    let most = days.len() as f64 * bank.false_positive_rate() * wanted.len() as f64;
    println!(
        "\n{} addresses at once: {} days of them in {:.2} ms, {:.0} ns per address\n\
         a scan of all files with an exact set takes {:.0} ms: {} days. {missing} are missing, {wrong} wrong (at most \
         {most:.0} expected)",
        HumanCount(wanted.len() as u64),
        HumanCount(pairs(&found) as u64),
        1e3 * asked.as_secs_f64(),
        1e9 * asked.as_secs_f64() / wanted.len() as f64,
        1e3 * scanned.as_secs_f64(),
        HumanCount(pairs(&right) as u64),
    );
    // Five standard deviations above.
    Ok(missing == 0 && wrong as f64 <= most + 5.0 * most.sqrt() + 1.0)
}

/// Asks for a few addresses one by one, and reads the files that the bank names; returns whether a
/// scan of all files finds the same lines.
fn ask_some(bank: &FilterBank, days: &[PathBuf], wanted: &[String]) -> Result<bool> {
    let few: Vec<&String> = wanted.iter().step_by(wanted.len().div_ceil(20)).collect();
    let (mut files, mut bytes, mut lines) = (0, 0, Vec::new());
    let start = Instant::now();
    for address in &few {
        let mut count = 0;
        for day in bank.which(&address[..]) {
            let log = fs::read(&days[day])?;
            files += 1;
            bytes += log.len();
            count += addresses(&log).filter(|other| other == address).count();
        }
        lines.push(count);
    }
    let by_bank = start.elapsed() / few.len() as u32;

    let start = Instant::now();
    let scans = few.len().min(3);
    let mut same = true;
    for (address, lines) in few.iter().zip(&lines).take(scans) {
        let mut count = 0;
        for day in days {
            count += addresses(&fs::read(day)?).filter(|other| other == address).count();
        }
        same &= count == *lines;
    }
    let by_scan = start.elapsed() / scans as u32;
    println!(
        "\n{} single addresses: {:.1} files and {} read for each, {:.2} ms\n\
         a scan of all {} files takes {:.0} ms for each",
        few.len(),
        files as f64 / few.len() as f64,
        HumanBytes((bytes / few.len()) as u64),
        1e3 * by_bank.as_secs_f64(),
        HumanCount(days.len() as u64),
        1e3 * by_scan.as_secs_f64(),
    );
    Ok(same)
}

/// The first field of each line that has one in UTF-8.
fn addresses(log: &[u8]) -> impl Iterator<Item = &str> {
    let lines = log.split(|&byte| byte == b'\n');
    let fields = lines.filter_map(|line| line.split(|&byte| byte == b' ').next());
    fields
        .filter_map(|field| std::str::from_utf8(field).ok())
        .filter(|field| !field.is_empty())
}

/// The addresses to look for: one of each fourth is made up, and the others are in the logs.
fn wanted(args: &Args, days: &[PathBuf]) -> Result<Vec<String>> {
    let mut wanted = Vec::new();
    let each = (args.addresses as usize).div_ceil(days.len()).max(1);
    for (day, path) in days.iter().enumerate() {
        let log = fs::read(path)?;
        let step = (log.len() / 90 / each).max(1);
        wanted.extend(
            addresses(&log)
                .step_by(step)
                .take(each)
                .enumerate()
                .map(|(i, address)| {
                    let made_up = number((each * day + i) as u64) < u64::MAX / 4;
                    if made_up {
                        ip(number(!((each * day + i) as u64)))
                    } else {
                        address.to_owned()
                    }
                }),
        );
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted.truncate(args.addresses as usize);
    Ok(wanted)
}

/// Writes a file for each day. One of three visitors comes every few days, the others once.
fn write_logs(folder: &Path, args: &Args) -> Result<()> {
    fs::create_dir_all(folder)?;
    for day in 0..u64::from(args.days) {
        let mut log = Vec::new();
        for line in 0..u64::from(args.lines) {
            let random = number(u64::from(args.lines) * day + line);
            let visitor = match random % 3 {
                0 => number(!(random % 7919 * 7 + day % 7)),
                _ => random,
            };
            let (ip, page, second) = (ip(visitor), random >> 8 & 0xfff, line * 86_400 / u64::from(args.lines));
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            writeln!(
                log,
                "{ip} - - [{hour:02}:{minute:02}:{second:02} +0000] \"GET /item/{page} HTTP/1.1\" 200 {page}5"
            )?;
        }
        fs::write(folder.join(format!("day-{day:04}.log")), log)?;
    }
    Ok(())
}

/// An address of version 6, so that made-up ones are nowhere in the logs.
fn ip(number: u64) -> String {
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| number >> shift & 0xffff);
    format!("2001:db8:{a:x}:{b:x}::{c:x}:{d:x}")
}
