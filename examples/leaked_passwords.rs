//! A list of SHA-1 digests of leaked passwords in a static filter. The list has the form of Have I
//! Been Pwned's: a line for each, of 40 hexadecimal digits, a colon, and how often it was seen. The
//! digits become bytes. A digest is random already, so its first 64 bits are the hash, and nothing
//! is hashed again. The digests of the list, as bytes, check the answers.
//!
//! ```sh
//! cargo run --release --bin leaked_passwords   # 200,000 digests
//! cargo run --release --bin leaked_passwords -- --digests 10000000
//! cargo run --release --bin leaked_passwords -- --list sha1.txt
//! ```
//!
//! The exit status says whether every digest of the list was found, and no more others than the
//! rate allows.

#[path = "../tests/common/number.rs"]
mod number;
mod outcome;

use clap::{Parser, value_parser};
use indicatif::{HumanBytes, HumanCount};
use lanebloom::{Hashed, Prehashed, StaticFilter};
use number::number;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// SHA-1.
type Digest = [u8; 20];

/// Looks up digests in a list of leaked ones.
#[derive(Parser)]
struct Args {
    /// Digests of the made-up list
    #[arg(long, default_value_t = 200_000, value_parser = value_parser!(u32).range(1..=1_000_000_000))]
    digests: u32,
    /// The filter's false-positive rate
    #[arg(long, default_value_t = 1e-6)]
    rate: f64,
    /// Digests to look up that the list does not have
    #[arg(long, default_value_t = 1_000_000)]
    others: u32,
    /// Read this list instead
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

fn main() -> ExitCode {
    outcome::exit(run(&Args::parse()))
}

fn run(args: &Args) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let list = match &args.list {
        Some(list) => list.clone(),
        None => {
            let list = folder.path().join("sha1.txt");
            write_list(&list, args.digests)?;
            list
        }
    };
    let start = Instant::now();
    let mut digests = Vec::new();
    for (number, line) in BufReader::with_capacity(1 << 20, File::open(&list)?)
        .split(b'\n')
        .enumerate()
    {
        let line = line?;
        let digest = line.get(..40).and_then(digest);
        let digest = digest.ok_or_else(|| {
            let text = String::from_utf8_lossy(&line);
            format!(
                "line {}: {text:?} does not begin with 40 hexadecimal digits",
                number + 1
            )
        })?;
        digests.push(digest);
    }
    let read = start.elapsed();
    if digests.is_empty() {
        return Err("the list has no digest".into());
    }

    let start = Instant::now();
    let hashes: Vec<u64> = digests.iter().map(hash).collect();
    let builder = StaticFilter::builder().hasher(Prehashed).false_positive_rate(args.rate);
    let leaked = builder.build_from_batch(Hashed::slice(&hashes))?;
    println!(
        "{} digests, {} of text, read in {:.0} ms\n\
         a filter of {}, {:.1} bits per digest at a rate of {:.2e}, built in {:.0} ms",
        HumanCount(digests.len() as u64),
        HumanBytes(File::open(&list)?.metadata()?.len()),
        1e3 * read.as_secs_f64(),
        HumanBytes(leaked.memory_bytes() as u64),
        leaked.statistics().bits_per_key,
        leaked.false_positive_rate(),
        1e3 * start.elapsed().as_secs_f64(),
    );

    // One by one, as at a login: the digest of "password", and those of the list.
    let start = Instant::now();
    let present = digests
        .iter()
        .filter(|digest| leaked.contains(&Hashed(hash(digest))))
        .count();
    let single = start.elapsed().as_secs_f64() / digests.len() as f64;
    // In one batch, as for a table of accounts.
    let others: Vec<u64> = (0..u64::from(args.others)).map(|i| hash(&made_up(!i))).collect();
    let mut found = vec![false; others.len()];
    let start = Instant::now();
    leaked.contains_batch(Hashed::slice(&others), &mut found);
    let batch = start.elapsed().as_secs_f64() / others.len().max(1) as f64;
    digests.sort_unstable();
    let wrong = (0..u64::from(args.others)).zip(found);
    let wrong = wrong.filter(|(i, found)| *found && digests.binary_search(&made_up(!i)).is_err());
    let wrong = wrong.count();
    let most = f64::from(args.others) * leaked.false_positive_rate();
    println!(
        "{} of the list found, {:.0} ns each; of {} others {wrong} are wrong ({most:.1} expected), {:.1} ns each in a batch",
        HumanCount(present as u64),
        1e9 * single,
        HumanCount(others.len() as u64),
        1e9 * batch,
    );
    // Five standard deviations above.
    Ok(present == digests.len() && wrong as f64 <= most + 5.0 * most.sqrt() + 1.0)
}

/// The first 64 bits.
fn hash(digest: &Digest) -> u64 {
    u64::from_be_bytes(*digest.first_chunk().expect("a digest has 20 bytes"))
}

/// The bytes of 40 hexadecimal digits.
fn digest(text: &[u8]) -> Option<Digest> {
    let mut digest = [0; 20];
    for (byte, digits) in digest.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(digest)
}

/// A digest that looks like one.
fn made_up(i: u64) -> Digest {
    let mut digest = [0; 20];
    for (j, part) in digest.chunks_mut(8).enumerate() {
        part.copy_from_slice(&number(number(i) ^ j as u64).to_be_bytes()[..part.len()]);
    }
    digest
}

fn write_list(path: &Path, digests: u32) -> Result<()> {
    let mut list = BufWriter::new(File::create(path)?);
    for i in 0..u64::from(digests) {
        for byte in made_up(i) {
            write!(list, "{byte:02X}")?;
        }
        writeln!(list, ":{}", number(i) % 1000 + 1)?;
    }
    Ok(list.flush()?)
}
