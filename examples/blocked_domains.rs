//! A list of blocked domains, as a resolver of DNS keeps one: two million names in a static filter,
//! at a false-positive rate of 2^-16. A name is blocked if the list has it or a domain above it, so
//! all of its suffixes are looked up, in one batch. An exact set checks the answers.
//!
//! ```sh
//! cargo run --release --bin blocked_domains                     # 100,000 domains
//! cargo run --release --bin blocked_domains -- --domains 2000000
//! cargo run --release --bin blocked_domains -- --list names.txt
//! ```
//!
//! The exit status says whether every blocked name was found, and no more other names than the rate
//! allows.

#[path = "../tests/common/number.rs"]
mod number;
mod outcome;

use clap::{Parser, value_parser};
use indicatif::{HumanBytes, HumanCount};
use lanebloom::StaticFilter;
use number::number;
use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// The bits of a fingerprint: a rate of 2^-16.
const BITS: usize = 16;

/// The most suffixes of a name that are looked up, from the shortest on: as many as a name of DNS
/// has labels.
const SUFFIXES: usize = 127;

/// Looks up names and the domains above them in a list of domains.
#[derive(Parser)]
struct Args {
    /// Domains of the made-up list
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    domains: u32,
    /// Names to look up
    #[arg(long, default_value_t = 200_000, value_parser = value_parser!(u32).range(1..))]
    names: u32,
    /// Take the domains from FILE instead, one on each line
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

fn main() -> ExitCode {
    outcome::exit(run(&Args::parse()))
}

fn run(args: &Args) -> Result<bool, Box<dyn Error>> {
    let domains: Vec<String> = match &args.list {
        Some(list) => fs::read_to_string(list)?
            .lines()
            .map(|line| line.trim().to_lowercase())
            .filter(|line| !line.is_empty())
            .collect(),
        None => (0..args.domains).map(|i| domain(i.into())).collect(),
    };
    if domains.is_empty() {
        return Err("the list has no domain".into());
    }
    let start = Instant::now();
    let blocked = StaticFilter::builder()
        .fingerprint_bits(BITS)
        .build_from_keys(&domains)?;
    let built = start.elapsed();
    let exact: HashSet<&str> = domains.iter().map(String::as_str).collect();
    let text: usize = domains.iter().map(|domain| domain.len() + 1).sum();
    println!(
        "{} domains, {} of text: a filter of {}, {:.1} bits per domain, built in {:.0} ms",
        HumanCount(exact.len() as u64),
        HumanBytes(text as u64),
        HumanBytes(blocked.memory_bytes() as u64),
        blocked.statistics().bits_per_key,
        1e3 * built.as_secs_f64(),
    );

    // A third is on the list, a third below a domain of it, and a third is neither.
    let names = (0..u64::from(args.names)).map(|i| {
        let listed = &domains[(number(i) % domains.len() as u64) as usize];
        match i % 3 {
            0 => listed.clone(),
            1 => format!("x{}.img.{listed}", i % 100),
            _ => format!("www.shop-{:x}.example", number(!i)),
        }
    });
    let names: Vec<String> = names.collect();
    let start = Instant::now();
    let found: Vec<bool> = names.iter().map(|name| is_blocked(&blocked, name)).collect();
    let took = start.elapsed();

    let (mut count, mut missed, mut wrong, mut asked) = (0, 0, 0, 0);
    for (name, &found) in names.iter().zip(&found) {
        let right = suffixes(name).any(|suffix| exact.contains(suffix));
        count += usize::from(found);
        missed += usize::from(right && !found);
        wrong += usize::from(found && !right);
        asked += suffixes(name).count();
    }
    let most = asked as f64 * blocked.false_positive_rate();
    println!(
        "{} names, {} with the domains above them: {} are blocked, {:.0} ns per name\n\
         {missed} were missed, {wrong} are wrong (at most about {most:.1} expected)",
        HumanCount(names.len() as u64),
        HumanCount(asked as u64),
        HumanCount(count as u64),
        1e9 * took.as_secs_f64() / names.len() as f64,
    );
    // Five standard deviations above.
    Ok(missed == 0 && wrong as f64 <= most + 5.0 * most.sqrt() + 1.0)
}

/// Whether the list may have a name or a domain above it.
fn is_blocked(blocked: &StaticFilter, name: &str) -> bool {
    let (mut keys, mut len) = ([""; SUFFIXES], 0);
    for (key, suffix) in keys.iter_mut().zip(suffixes(name)) {
        (*key, len) = (suffix, len + 1);
    }
    let mut found = [false; SUFFIXES];
    blocked.contains_batch(&keys[..len], &mut found[..len]);
    found[..len].contains(&true)
}

/// The domains above a name, from the shortest on, and the name.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let above = name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]);
    above.chain(std::iter::once(name))
}

/// A domain as lists have them: of two to four labels.
fn domain(i: u64) -> String {
    const WORDS: [&str; 8] = ["ads", "track", "pixel", "stats", "click", "metrics", "cdn", "promo"];
    const ENDS: [&str; 6] = ["com", "net", "info", "top", "co.uk", "xyz"];
    let random = number(i);
    let (word, end) = (WORDS[(random % 8) as usize], ENDS[(random >> 8) as usize % 6]);
    let site = format!("{:x}", i * 2_654_435_761 % (1 << 32));
    match random >> 16 & 3 {
        0 => format!("{word}.{site}.{end}"),
        1 => format!("{word}{}.eu.{site}.{end}", random >> 20 & 15),
        _ => format!("{word}-{site}.{end}"),
    }
}
