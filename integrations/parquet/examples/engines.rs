//! Makes and checks Parquet files' filters for `engines.py`.
//!
//! ```sh
//! engines make IN OUT RATE    # writes IN with filters by SplitBlockBloom to OUT
//! engines check FILE...       # the filters of a file beside a full scan of it
//! engines rows FILE COLUMN KEY...     # row groups that may have one of the keys
//! engines bits FILE < KEYS    # whether a bitset is that of the keys, one a line
//! ```
//!
//! `check` prints a line for each column. It looks up the values of all chunks in each chunk's
//! filter, and says how many absent ones were found. It fails if a filter lacks a value of its
//! chunk, or has a bit that no value of its chunk sets, and neither the other zero of a float.
//!
//! `rows` prints the numbers of row groups, `bits` the keys that a bitset without a header has, and
//! whether its bits are theirs. A key is its plain encoding, in hexadecimal digits.

use bytes::Bytes;
use lanebloom_formats::splitblock::{Header, block_index, check_block, hash};
use lanebloom_formats::{Hashed, SplitBlockBloom};
use lanebloom_parquet::{Result, filter_bytes, hashes, row_groups, with_filters};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::HashSet;
use std::env;
use std::{fs, io};

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", from, to, rate] => make(from, to, rate.parse()?),
        ["check", ref files @ ..] if !files.is_empty() => files.iter().try_for_each(|file| check(file)),
        ["rows", file, column, ref keys @ ..] => rows(file, column, keys),
        ["bits", file] => bits(file),
        _ => Err("make IN OUT RATE, check FILE..., rows FILE COLUMN KEY..., or bits FILE".into()),
    }
}

fn rows(path: &str, column: &str, keys: &[&str]) -> Result<()> {
    let file = Bytes::from(fs::read(path)?);
    let reader = SerializedFileReader::new(file.clone())?;
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let column = columns.iter().position(|of| of.path().string() == column);
    let column = column.ok_or_else(|| format!("{path} has no such column"))?;
    let hashes = keys.iter().map(|key| hash_of(key)).collect::<Result<Vec<u64>>>()?;
    for group in row_groups(&file, reader.metadata(), column, &hashes)? {
        println!("{group}");
    }
    Ok(())
}

fn bits(path: &str) -> Result<()> {
    let bitset = fs::read(path)?;
    let (filter, ours) = (
        SplitBlockBloom::from_bitset(&bitset)?,
        SplitBlockBloom::with_bytes(bitset.len())?,
    );
    let lines = io::stdin().lines();
    let hashes = lines.map(|line| hash_of(&line?)).collect::<Result<Vec<u64>>>()?;
    ours.insert_batch(Hashed::slice(&hashes));
    let found = hashes.iter().filter(|hash| filter.contains(&Hashed(**hash))).count();
    let same = if ours == filter { "the same bits" } else { "other bits" };
    println!("{same}, {found} of {} keys", hashes.len());
    Ok(())
}

/// The hash of a key in hexadecimal digits.
fn hash_of(key: &str) -> Result<u64> {
    let digits = key.as_bytes().chunks(2);
    let bytes = digits.map(|digits| u8::from_str_radix(str::from_utf8(digits)?, 16).map_err(Into::into));
    Ok(hash(&bytes.collect::<Result<Vec<u8>>>()?[..]))
}

fn make(from: &str, to: &str, rate: f64) -> Result<()> {
    let file = with_filters(&fs::read(from)?.into(), |hashes| {
        let distinct = HashSet::<&u64>::from_iter(hashes).len();
        let filter = SplitBlockBloom::with_capacity(distinct, rate)?;
        filter.insert_batch(Hashed::slice(hashes));
        Ok(Some(filter))
    })?;
    Ok(fs::write(to, file)?)
}

fn check(path: &str) -> Result<()> {
    let file = Bytes::from(fs::read(path)?);
    let reader = SerializedFileReader::new(file.clone())?;
    let metadata = reader.metadata();
    println!("{path}: {}", metadata.file_metadata().created_by().unwrap_or("?"));
    for (column, described) in metadata.file_metadata().schema_descr().columns().iter().enumerate() {
        let scan = |i: usize| hashes(&*reader.get_row_group(i)?, column);
        let chunks: Vec<HashSet<u64>> = (0..metadata.num_row_groups())
            .map(|i| Ok(scan(i)?.into_iter().collect()))
            .collect::<Result<_>>()?;
        let (mut filters, mut bytes, mut absent, mut wrong) = (0, 0, 0, 0);
        for (i, (row_group, keys)) in metadata.row_groups().iter().zip(&chunks).enumerate() {
            let Some(found) = filter_bytes(&file, row_group.column(column)) else {
                continue;
            };
            let name = || format!("{path}, {}, row group {i}", described.path());
            let (filter, _) = SplitBlockBloom::from_parquet_prefix(found)?;
            let header = Header::parse(found)?;
            let bitset = &found[header.header_bytes()..][..header.bitset_bytes()];
            (filters, bytes) = (filters + 1, bytes + header.header_bytes() + header.bitset_bytes());
            let ours = SplitBlockBloom::with_bytes(header.bitset_bytes())?;
            ours.insert_batch(Hashed::slice(&Vec::from_iter(keys.iter().copied())));
            if let Some(hash) = keys.iter().find(|hash| !filter.contains(&Hashed(**hash))) {
                return Err(format!("{}: {hash:016x} is there, and the filter lacks it", name()).into());
            }
            if ours != filter && !(ours.insert_both_zeros() && ours == filter) {
                return Err(format!("{}: the bits are not those of the values", name()).into());
            }
            for hash in chunks.iter().flatten() {
                let block = &bitset[32 * block_index(*hash, header.blocks())..][..32];
                let answer = check_block(block.try_into()?, *hash);
                if answer != filter.contains(&Hashed(*hash)) {
                    return Err(format!("{}: {hash:016x} has two answers", name()).into());
                }
                if !keys.contains(hash) {
                    (absent, wrong) = (absent + 1, wrong + u64::from(answer));
                }
            }
        }
        println!(
            "  {:8} {:20} {} chunks, {filters} filters of {bytes} bytes, {wrong} of {absent} absent values found",
            described.path().string(),
            described.physical_type().to_string(),
            chunks.len(),
        );
    }
    Ok(())
}
