//! Cuts bytes into records of CSV (RFC 4180) and these into fields. Empty lines before a record
//! belong to it. A carriage return without a line feed ends a record too. A quote encloses a field
//! that begins with it; any other quote is text.

use memchr::{memchr, memchr3};
use std::borrow::Cow;

pub(crate) const QUOTE: u8 = b'"';

/// The record that is read, or that was read last. Its bytes may come in pieces; each is
/// searched once.
pub(crate) struct Record {
    delimiter: u8,
    /// Whether quotes enclose fields; otherwise all quotes are text.
    has_quotes: bool,
    place: Place,
    /// Where the search goes on.
    at: usize,
    /// Where the first field begins.
    start: usize,
    /// Where each field ends.
    ends: Vec<usize>,
}

/// The kinds of byte that may be next.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The end of an empty line, or the first byte of the record.
    Before,
    /// The first byte of a field, or its end.
    Field,
    /// A byte of a field without quotes, or its end.
    Text,
    /// Any byte between quotes, or the closing quote.
    Quoted,
    /// The end of a field, or the second quote of two that stand for one.
    Closed,
    /// A byte of the next record.
    Whole,
}

/// The fault of a record.
#[derive(Debug, PartialEq)]
pub(crate) enum Wrong {
    /// Text at this place follows a closing quote.
    Text(usize),
    /// The quote of the last field is never closed.
    Open,
}

impl Record {
    pub(crate) fn new(delimiter: u8, has_quotes: bool) -> Self {
        Self {
            delimiter,
            has_quotes,
            place: Place::Before,
            at: 0,
            start: 0,
            ends: Vec::new(),
        }
    }

    /// Begins a record behind bytes that do not belong to it.
    pub(crate) fn begin(&mut self, at: usize) {
        self.place = Place::Before;
        (self.at, self.start) = (at, at);
        self.ends.clear();
    }

    /// Whether bytes of a record were searched whose end was not found.
    pub(crate) fn is_begun(&self) -> bool {
        self.place != Place::Whole && self.at > 0
    }

    /// Reads a record. Returns the length of its bytes, or `None` if its end is not among these:
    /// then the next call's bytes begin with them. At the end of the input, it has no field.
    pub(crate) fn read(&mut self, bytes: &[u8], is_end: bool) -> Result<Option<usize>, Wrong> {
        if self.place == Place::Whole {
            self.begin(0);
        }
        let mut at = self.at;
        let found = loop {
            let end = match self.place {
                Place::Before | Place::Whole => {
                    at += bytes[at..]
                        .iter()
                        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                        .count();
                    self.start = at;
                    if at == bytes.len() {
                        break is_end.then_some(at);
                    }
                    self.place = Place::Field;
                    continue;
                }
                Place::Field if self.has_quotes && bytes.get(at) == Some(&QUOTE) => {
                    at += 1;
                    self.place = Place::Quoted;
                    continue;
                }
                Place::Field | Place::Text => {
                    let found = find_end(&bytes[at..], self.delimiter);
                    let is_empty = at == bytes.len();
                    at = found.map_or(bytes.len(), |found| at + found);
                    if !is_empty {
                        self.place = Place::Text;
                    }
                    bytes.get(at)
                }
                Place::Quoted => {
                    let found = memchr(QUOTE, &bytes[at..]);
                    at = found.map_or(bytes.len(), |found| at + found + 1);
                    if found.is_none() {
                        if is_end {
                            return Err(Wrong::Open);
                        }
                        break None;
                    }
                    self.place = Place::Closed;
                    continue;
                }
                Place::Closed => match bytes.get(at) {
                    Some(&QUOTE) => {
                        at += 1;
                        self.place = Place::Quoted;
                        continue;
                    }
                    Some(&byte) if !is_end_of_field(byte, self.delimiter) => return Err(Wrong::Text(at)),
                    end => end,
                },
            };
            let len = match end {
                Some(b'\n') => at + 1,
                Some(b'\r') => match bytes.get(at + 1) {
                    // It belongs to the record.
                    Some(b'\n') => at + 2,
                    None if !is_end => break None,
                    _ => at + 1,
                },
                None if !is_end => break None,
                None => at,
                // The delimiter.
                Some(_) => {
                    self.ends.push(at);
                    at += 1;
                    self.place = Place::Field;
                    continue;
                }
            };
            self.ends.push(at);
            self.place = Place::Whole;
            break Some(len);
        };
        self.at = at;
        Ok(found)
    }

    /// The number of its fields.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where it begins in its bytes, behind empty lines.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The bytes of a field, among those of the record; `None` if it has fewer fields.
    pub(crate) fn bytes<'a>(&self, bytes: &'a [u8], number: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(self.start, |before| self.ends[before] + 1);
        Some(&bytes[start..end])
    }

    /// The texts of all fields.
    pub(crate) fn all<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Cow<'a, [u8]>> {
        (0..).map_while(|number| self.field(bytes, number))
    }

    /// The text of a field: without the quotes that enclose it, and with one for two.
    pub(crate) fn field<'a>(&self, bytes: &'a [u8], number: usize) -> Option<Cow<'a, [u8]>> {
        let field = self.bytes(bytes, number)?;
        let [QUOTE, text @ .., QUOTE] = field else {
            return Some(field.into());
        };
        if !self.has_quotes {
            return Some(field.into());
        }
        let Some(first) = memchr(QUOTE, text) else {
            return Some(text.into());
        };
        let (mut unescaped, mut rest) = (text[..first].to_vec(), &text[first..]);
        while let Some(at) = memchr(QUOTE, rest) {
            unescaped.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        unescaped.extend_from_slice(rest);
        Some(unescaped.into())
    }
}

fn is_end_of_field(byte: u8, delimiter: u8) -> bool {
    byte == delimiter || byte == b'\n' || byte == b'\r'
}

/// Bytes that are searched one by one: most fields are short, and a call takes as long as these.
/// Rows of 30 fields with one digit take half the time of `memchr3` alone.
const SHORT: usize = 8;

/// Where a field without quotes ends.
fn find_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let (short, long) = bytes.split_at(bytes.len().min(SHORT));
    let found = short.iter().position(|&byte| is_end_of_field(byte, delimiter));
    found.or_else(|| Some(SHORT + memchr3(delimiter, b'\n', b'\r', long)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of all records, whose bytes come `step` at a time.
    fn records(bytes: &[u8], has_quotes: bool, step: usize) -> Result<Vec<Vec<Vec<u8>>>, Wrong> {
        let mut record = Record::new(b',', has_quotes);
        let (mut all, mut start, mut end) = (Vec::new(), 0, 0);
        loop {
            let is_end = end == bytes.len();
            let piece = &bytes[start..end];
            let of_all = |wrong| match wrong {
                Wrong::Text(at) => Wrong::Text(start + at),
                Wrong::Open => Wrong::Open,
            };
            match record.read(piece, is_end).map_err(of_all)? {
                Some(_) if record.len() == 0 => return Ok(all),
                Some(len) => {
                    all.push(record.all(piece).map(Cow::into_owned).collect());
                    assert!(record.field(piece, record.len()).is_none() && len > 0);
                    start += len;
                }
                None => end = (end + step).min(bytes.len()),
            }
        }
    }

    /// All texts of six bytes, beside the crate csv, which takes any text.
    #[test]
    fn records_are_those_of_the_crate_csv_unless_text_follows_a_quote() {
        let alphabet = b"a,\"\n\r";
        let (mut refused, mut read) = (0, 0);
        for number in 0..alphabet.len().pow(6) {
            let digits = (0..6).map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()]);
            let bytes = Vec::from_iter(digits);
            for has_quotes in [true, false] {
                let found = records(&bytes, has_quotes, bytes.len());
                assert_eq!(records(&bytes, has_quotes, 1), found, "{}", bytes.escape_ascii());
                let mut builder = ::csv::ReaderBuilder::new();
                let reader = builder
                    .has_headers(false)
                    .flexible(true)
                    .quoting(has_quotes)
                    .buffer_capacity(64);
                let theirs = reader.from_reader(&bytes[..]).into_byte_records();
                let theirs = theirs.map(|record| Vec::from_iter(record.unwrap().iter().map(<[u8]>::to_vec)));
                match found {
                    Ok(found) => {
                        assert_eq!(found, Vec::from_iter(theirs), "{}", bytes.escape_ascii());
                        read += 1;
                    }
                    Err(Wrong::Text(at)) => {
                        let is_behind = has_quotes && bytes[at - 1] == b'"' && bytes[at] == b'a';
                        assert!(is_behind, "{}", bytes.escape_ascii());
                        refused += 1;
                    }
                    Err(Wrong::Open) => {
                        assert!(has_quotes && bytes.contains(&b'"'));
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 2000 && read > 20_000, "{refused} {read}");
    }

    #[test]
    fn text_behind_a_closing_quote_is_found_at_its_place() {
        let wrong = |bytes: &[u8]| {
            let all = [1, 2, bytes.len()].map(|step| records(bytes, true, step).err());
            assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
            all.into_iter().next().flatten()
        };
        assert_eq!(wrong(b"\"a\"b"), Some(Wrong::Text(3)));
        assert_eq!(wrong(b"a\n\n,\"b\"\"\" \n"), Some(Wrong::Text(9)));
        assert_eq!(wrong(b"\"a\nb,\"c\"\n"), Some(Wrong::Text(6)));
        assert_eq!(wrong(b"a,\"b\"\""), Some(Wrong::Open));
        assert_eq!(wrong(b"a\"b\"c,\"\"\n \"d\"e"), None);
    }

    #[test]
    fn a_field_is_found_at_any_length() {
        for len in 0..40 {
            for quoted in [false, true] {
                let text = "x".repeat(len);
                let field = if quoted {
                    format!("\"{text}\"\"\"")
                } else {
                    text.clone()
                };
                let expected = if quoted { format!("{text}\"") } else { text };
                let bytes = format!("{field},{field}\r\n{field},{field}");
                for step in [1, 7, bytes.len()] {
                    let rows = records(bytes.as_bytes(), true, step).unwrap();
                    assert_eq!(rows, vec![vec![expected.as_bytes().to_vec(); 2]; 2], "{len}");
                }
            }
        }
    }
}
