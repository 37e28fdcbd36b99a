//! What the key of a record is: the line, a field, a column of CSV, or a value of JSON. Cuts bytes
//! into records, and hashes their keys.

use crate::args;
use anyhow::{Result, bail};
use csv_core::ReadRecordResult;
use lanebloom::hash::KeyHasher;
use std::ops::Range;

/// Keys that are hashed at a time.
const GROUP: usize = 256;

/// What the key of a record is.
#[derive(Clone)]
pub(crate) struct KeySpec {
    kind: Kind,
    terminator: u8,
    ignore_case: bool,
}

#[derive(Clone)]
enum Kind {
    Line,
    Field { index: usize, delimiter: u8 },
    Csv { column: String, delimiter: u8 },
    Json(String),
}

/// What follows from the bytes of a chunk.
#[derive(Default)]
pub(crate) struct Keyed {
    /// Where each record ends, its terminator included.
    pub(crate) ends: Vec<usize>,
    /// The records without a key, which always pass.
    pub(crate) keyless: Vec<usize>,
    /// How many of these should have a key.
    pub(crate) missing: usize,
    /// The keys one after another and where each ends, unless the lines are the keys.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// The hashes of the keys.
    pub(crate) hashes: Vec<u64>,
}

impl Keyed {
    pub(crate) fn clear(&mut self) {
        let Self {
            ends,
            keyless,
            missing,
            keys,
            key_ends,
            hashes,
        } = self;
        ends.clear();
        keyless.clear();
        *missing = 0;
        keys.clear();
        key_ends.clear();
        hashes.clear();
    }

    fn end_key(&mut self) {
        self.key_ends.push(self.keys.len());
    }

    fn no_key(&mut self, is_missing: bool) {
        self.keyless.push(self.ends.len() - 1);
        self.missing += usize::from(is_missing);
    }

    /// Makes answers for keys those for records: a record without a key gets `keyless`.
    pub(crate) fn spread(&self, answers: &mut Vec<bool>, keyless: bool) {
        if self.keyless.is_empty() {
            return;
        }
        let mut from = answers.len();
        answers.resize(self.ends.len(), keyless);
        let mut without = self.keyless.iter().rev().peekable();
        for record in (0..self.ends.len()).rev() {
            answers[record] = if without.next_if_eq(&&record).is_some() {
                keyless
            } else {
                from -= 1;
                answers[from]
            };
        }
    }
}

impl KeySpec {
    pub(crate) fn new(args: &args::Keys) -> Self {
        let delimiter = |default| args.delimiter.unwrap_or(default);
        let kind = match (args.field, &args.csv, &args.json) {
            (Some(field), ..) => Kind::Field {
                index: field - 1,
                delimiter: delimiter(b'\t'),
            },
            (_, Some(column), _) => Kind::Csv {
                column: column.clone(),
                delimiter: delimiter(b','),
            },
            (.., Some(pointer)) => Kind::Json(pointer.clone()),
            _ => Kind::Line,
        };
        let terminator = if args.null { 0 } else { b'\n' };
        Self {
            kind,
            terminator,
            ignore_case: args.ignore_case,
        }
    }

    pub(crate) fn terminator(&self) -> u8 {
        self.terminator
    }

    /// Whether the keys are the records' own bytes.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self.kind, Kind::Line) && !self.ignore_case
    }

    /// Finds the records in `bytes`, unless the [`Framer`] did, and hashes their keys.
    pub(crate) fn hash(&self, bytes: &[u8], keyed: &mut Keyed, hasher: &impl KeyHasher) {
        if self.is_line() {
            let terminator = self.terminator;
            let Keyed { ends, hashes, .. } = keyed;
            let mut start = 0;
            let found = memchr::memchr_iter(terminator, bytes).map(|at| at + 1);
            let last = (bytes.last() != Some(&terminator)).then_some(bytes.len());
            let last = last.filter(|&len| len > 0);
            ends.extend(found.chain(last));
            let keys = ends.iter().map(|&end| {
                let record = &bytes[start..end];
                start = end;
                record.strip_suffix(&[terminator]).unwrap_or(record)
            });
            return hash_all(keys, hasher, hashes);
        }
        if !matches!(self.kind, Kind::Csv { .. }) {
            let mut start = 0;
            while start < bytes.len() {
                let end = memchr::memchr(self.terminator, &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
                let record = &bytes[start..end];
                keyed.ends.push(end);
                if self.derive(
                    record.strip_suffix(&[self.terminator]).unwrap_or(record),
                    &mut keyed.keys,
                ) {
                    keyed.end_key();
                } else {
                    keyed.no_key(true);
                }
                start = end;
            }
        }
        if self.ignore_case {
            keyed.keys.make_ascii_lowercase();
        }
        let Keyed {
            keys, key_ends, hashes, ..
        } = keyed;
        let mut start = 0;
        let keys = key_ends.iter().map(|&end| {
            let key = &keys[start..end];
            start = end;
            key
        });
        hash_all(keys, hasher, hashes);
    }

    /// Appends the key of a record to `keys`; returns false if it has none.
    fn derive(&self, record: &[u8], keys: &mut Vec<u8>) -> bool {
        match &self.kind {
            Kind::Line | Kind::Csv { .. } => keys.extend_from_slice(record),
            Kind::Field { index, delimiter } => match record.split(|byte| byte == delimiter).nth(*index) {
                Some(field) => keys.extend_from_slice(field),
                None => return false,
            },
            Kind::Json(pointer) => {
                let value: Option<serde_json::Value> = serde_json::from_slice(record).ok();
                match value.as_ref().and_then(|value| value.pointer(pointer)) {
                    Some(value) => serde_json::to_writer(keys, value).expect("a vector takes everything"),
                    None => return false,
                }
            }
        }
        true
    }

    /// The key with number `key` of a chunk, whose bytes these are, and where it begins in them if
    /// the line is the key.
    pub(crate) fn key<'a>(&self, bytes: &'a [u8], keyed: &'a Keyed, key: usize) -> (&'a [u8], usize) {
        let (bytes, ends) = if self.is_line() {
            (bytes, &keyed.ends)
        } else {
            (&keyed.keys[..], &keyed.key_ends)
        };
        let start = if key == 0 { 0 } else { ends[key - 1] };
        let record = &bytes[start..ends[key]];
        let text = if self.is_line() {
            record.strip_suffix(&[self.terminator]).unwrap_or(record)
        } else {
            record
        };
        (text, start)
    }
}

fn hash_all<'a>(keys: impl Iterator<Item = &'a [u8]>, hasher: &impl KeyHasher, hashes: &mut Vec<u64>) {
    let mut group: [&[u8]; GROUP] = [&[]; GROUP];
    let mut len = 0;
    let mut flush = |group: &[&[u8]]| {
        let start = hashes.len();
        hashes.resize(start + group.len(), 0);
        hasher.hash_batch(group, &mut hashes[start..]);
    };
    for key in keys {
        group[len] = key;
        len += 1;
        if len == GROUP {
            flush(&group);
            len = 0;
        }
    }
    flush(&group[..len]);
}

/// Cuts the bytes of one input into records.
pub(crate) struct Framer {
    spec: KeySpec,
    /// The number of the key's column; known once the header was read.
    column: Option<usize>,
    /// The fields of a record.
    fields: Vec<u8>,
    ends: Vec<usize>,
}

impl Framer {
    pub(crate) fn new(spec: KeySpec) -> Self {
        Self {
            spec,
            column: None,
            fields: vec![0; 1 << 10],
            ends: vec![0; 64],
        }
    }

    pub(crate) fn terminator(&self) -> u8 {
        self.spec.terminator
    }

    /// Begins the next input.
    pub(crate) fn next_input(&mut self) {
        self.column = None;
    }

    /// Finds the whole records of `bytes`; the rest, which follows them, is left. In CSV it also
    /// finds the keys, and leaves the header out before the records unless `keeps_header`.
    pub(crate) fn cut(
        &mut self,
        bytes: &[u8],
        is_end: bool,
        keeps_header: bool,
        keyed: &mut Keyed,
    ) -> Result<Range<usize>> {
        if let Kind::Csv { column, delimiter } = &self.spec.kind {
            let (column, delimiter) = (column.clone(), *delimiter);
            return self.cut_csv(bytes, is_end, keeps_header, &column, delimiter, keyed);
        }
        let len = if is_end {
            Some(bytes.len())
        } else {
            memchr::memrchr(self.spec.terminator, bytes).map(|at| at + 1)
        };
        Ok(0..len.unwrap_or(0))
    }

    fn cut_csv(
        &mut self,
        bytes: &[u8],
        is_end: bool,
        keeps_header: bool,
        column: &str,
        delimiter: u8,
        keyed: &mut Keyed,
    ) -> Result<Range<usize>> {
        keyed.clear();
        let mut reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        let (mut start, mut end) = (0, 0);
        while let Some((len, fields)) = self.record(&mut reader, &bytes[end..], is_end) {
            if fields == 0 {
                break; // Empty lines at the end.
            }
            end += len;
            if let Some(column) = self.column {
                keyed.ends.push(end - start);
                if column < fields {
                    let from = if column == 0 { 0 } else { self.ends[column - 1] };
                    keyed.keys.extend_from_slice(&self.fields[from..self.ends[column]]);
                    keyed.end_key();
                } else {
                    keyed.no_key(true);
                }
                continue;
            }
            self.column = Some(self.find(column, fields)?);
            if keeps_header {
                keyed.ends.push(end);
                keyed.no_key(false);
            } else {
                start = end;
            }
        }
        if is_end && end < bytes.len() {
            // Empty lines: nothing is lost.
            end = bytes.len();
            keyed.ends.push(end - start);
            keyed.no_key(false);
        }
        Ok(start..end)
    }

    /// The number of a column, by its name in the header or its position.
    fn find(&self, column: &str, fields: usize) -> Result<usize> {
        let mut start = 0;
        for (number, &end) in self.ends[..fields].iter().enumerate() {
            if &self.fields[start..end] == column.as_bytes() {
                return Ok(number);
            }
            start = end;
        }
        match column.parse::<usize>() {
            Ok(number) if (1..=fields).contains(&number) => Ok(number - 1),
            Ok(number) => bail!("the header has {fields} columns, and none is number {number} or has that name"),
            Err(_) => bail!("the header has no column {column:?}"),
        }
    }

    /// Reads a record to `fields` and `ends`. Returns its bytes and its number of fields, or `None`
    /// if it is not whole. At the end of the input the number of fields is 0.
    fn record(&mut self, reader: &mut csv_core::Reader, bytes: &[u8], is_end: bool) -> Option<(usize, usize)> {
        reader.reset();
        let (mut read, mut written, mut fields) = (0, 0, 0);
        loop {
            let (result, r, w, f) =
                reader.read_record(&bytes[read..], &mut self.fields[written..], &mut self.ends[fields..]);
            (read, written, fields) = (read + r, written + w, fields + f);
            match result {
                ReadRecordResult::InputEmpty if is_end => {}
                ReadRecordResult::InputEmpty => return None,
                ReadRecordResult::OutputFull => self.fields.resize(2 * self.fields.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::End => return Some((read, 0)),
                ReadRecordResult::Record => break,
            }
        }
        // The line feed after a carriage return belongs to the record.
        if bytes[..read].last() == Some(&b'\r') {
            match bytes.get(read) {
                Some(b'\n') => read += 1,
                None if !is_end => return None,
                _ => {}
            }
        }
        Some((read, fields))
    }
}
