//! How numbers and tables are printed.

use indicatif::HumanBytes;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// A rate: percents down to 0.1%, then powers of ten.
pub(crate) fn rate(rate: f64) -> String {
    if rate == 0.0 {
        "0".into()
    } else if rate >= 0.000_999 {
        format!("{:.2}%", 100.0 * rate)
    } else {
        format!("{rate:.2e}")
    }
}

/// A number on average: three digits after the point, or powers of ten.
pub(crate) fn mean(number: f64) -> String {
    if number > 0.0 && number < 1e-3 {
        format!("{number:.2e}")
    } else {
        format!("{number:.3}")
    }
}

/// A summary's words about lines without a key.
pub(crate) fn without_key(missing: usize) -> String {
    match missing {
        0 => String::new(),
        missing => format!(", {missing} of them without a key"),
    }
}

/// The name of a file as part of a line: as a string of JSON if it has control characters, which
/// would end the line or reach the terminal, or begins like such a string.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    if !name.starts_with('"') && !name.contains(char::is_control) {
        return name.into();
    }
    let mut text = String::new();
    for letter in Value::from(name).to_string().chars() {
        // JSON allows some of them.
        match letter.is_control() {
            true => write!(text, "\\u{:04x}", u32::from(letter)).expect("a string takes everything"),
            false => text.push(letter),
        }
    }
    text.into()
}

/// Bytes as KiB, MiB or GiB: `48 KiB`, `1.50 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string().replace(".00 ", " ")
}

/// Rows of cells in columns of equal width, two spaces apart. The first column is aligned left, and
/// the others right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| rows.iter().filter_map(|row| row.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let written = match column {
                0 => write!(text, "{cell:width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
            written.expect("a string takes everything");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
