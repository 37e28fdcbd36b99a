//! The options that both commands have, and what their values may be.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The inputs.
#[derive(Args, Debug)]
pub struct InputArgs {
    /// Files and folders to read, one after another; `-`: stdin, which is read if nothing is named.
    /// A folder stands for all files in it and below, hidden ones too, by their names in order.
    /// Links in it are followed. Pipes, devices, links that lead back or, within a linked folder,
    /// again to a folder, and unfinished files of other runs (.lanebloom-*.new, .part, .lock) are
    /// not read, and the summary counts them. The name of such an unfinished file is an error. A
    /// folder without a file is an error. A pattern in quotes, such as 'data/**/*.jsonl.gz', stands
    /// for the files and folders that it matches, each file once, by their paths in order; `**`
    /// matches any folders. gzip and zstd are recognized by their content and unpacked. xz, lzma,
    /// bzip2, lz4, lzip, lzop and compress are refused, and so are archives (tar, zip, 7z, rar),
    /// Arrow, Avro, Parquet that the command does not read, and text in UTF-16. A file that becomes
    /// shorter while it is read is an error
    #[arg(value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Read also the files and folders that LIST names, one per line; `-`: stdin
    #[arg(long, value_name = "LIST", value_hint = ValueHint::FilePath)]
    pub files_from: Option<PathBuf>,

    /// Read also the files and folders that LIST names, each with a zero byte after it, as
    /// `find -print0` writes them; `-`: stdin
    #[arg(long, value_name = "LIST", value_hint = ValueHint::FilePath, conflicts_with = "files_from")]
    pub files0_from: Option<PathBuf>,
}

/// How the summary of a run is printed.
#[derive(Args, Debug)]
pub struct SummaryArgs {
    /// Print the summary on stderr as one line of JSON, unless --quiet is given
    #[arg(long)]
    pub json_summary: bool,
}

/// A whole number of keys, words or bytes.
pub fn number(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "must be a number such as 5000, 10M or 1e9")?;
    let number = number * unit;
    if number.fract() != 0.0 || !(1.0..=1e15).contains(&number) {
        return Err("must be a whole number from 1 to 1e15".into());
    }
    Ok(number as usize)
}

/// A false-positive rate.
pub fn rate(text: &str) -> Result<f64, String> {
    let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let rate: f64 = digits.parse().map_err(|_| "must be a rate such as 0.01, 1% or 1e-6")?;
    let rate = rate / unit;
    if (1e-12..=0.5).contains(&rate) {
        Ok(rate)
    } else {
        Err("must be from 1e-12 to 0.5".into())
    }
}

/// A share of a whole.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("must be above 0 and at most 1, such as 0.8".into()),
    }
}

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err("must be a whole number from 1 to 256".into()),
    }
}

/// A number that counts from 1.
pub fn field(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number from 1 on".into()),
        Ok(field) => Ok(field),
    }
}
