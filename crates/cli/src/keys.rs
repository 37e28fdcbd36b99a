//! The key of a record: the line, fields, columns of CSV, or values of JSON. Cuts bytes into
//! records, and hashes their keys.

use crate::args::{Funnel, KeyArgs};
use crate::csv::{QUOTE, Record, Wrong};
use crate::json;
use anyhow::{Result, bail};
use lanebloom::Funnel as _;
use lanebloom::hash::{AnyHasher, KeyHasher};
use lanebloom_files::input::{self, BOM, Cut, LineCutter};
use lanebloom_files::summary::count;
use lanebloom_formats::guava::UnencodedChars;
use std::borrow::Cow;
use std::mem;
use std::ops::Range;

/// Keys of a batch, which are hashed in one call.
const BATCH: usize = 256;

/// The rules for the key of a record.
#[derive(Clone)]
pub(crate) struct KeySpec {
    args: KeyArgs,
    /// The positions of the key's columns from 0, for CSV without a header.
    numbers: Option<Vec<usize>>,
    /// Whether a byte-order mark at the start of an input passes. It would be within an output that
    /// puts something before each record.
    pub(crate) keeps_mark: bool,
    form: KeyForm,
}

/// The form of a key that its text is turned into.
#[derive(Clone, Copy, PartialEq)]
enum KeyForm {
    /// Nothing: its bytes are hashed.
    Text,
    /// Bytes for the filter of another program.
    Funneled(Funnel),
    /// A number, which is the hash.
    Hash,
}

/// The chunks of the inputs, whose records have keys.
pub(crate) type Chunk = input::Chunk<Keyed>;

/// The records of a chunk and their keys.
#[derive(Default)]
pub(crate) struct Keyed {
    /// Where each record ends, its terminator included.
    pub(crate) ends: Vec<usize>,
    /// Bytes before the first record that do not belong to it: a byte-order mark.
    mark: usize,
    /// The records without a key: no duplicates.
    pub(crate) keyless: Vec<usize>,
    /// How many of these should have a key.
    pub(crate) missing: usize,
    /// The others of these: a header, empty lines at the end.
    pub(crate) passing: Vec<usize>,
    /// The keys one after another and where each ends, unless the lines are the keys.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// The hashes of the keys.
    pub(crate) hashes: Vec<u64>,
    /// Whether a filter has each key, if the work looks keys up.
    pub(crate) found: Vec<bool>,
    /// The columns of a bank that have the keys, one key after another, and where those of each
    /// end.
    pub(crate) columns: Vec<usize>,
    pub(crate) column_ends: Vec<usize>,
    /// How many keys were new in a filter, if the work inserts them.
    pub(crate) inserted: Option<usize>,
    /// The first key that should be a hash and is not a number.
    no_hash: Option<String>,
}

impl Keyed {
    pub(crate) fn clear(&mut self) {
        let Self {
            ends,
            mark,
            keyless,
            missing,
            passing,
            keys,
            key_ends,
            hashes,
            found,
            columns,
            column_ends,
            inserted,
            no_hash,
        } = self;
        ends.clear();
        *mark = 0;
        keyless.clear();
        *missing = 0;
        passing.clear();
        keys.clear();
        key_ends.clear();
        hashes.clear();
        found.clear();
        columns.clear();
        column_ends.clear();
        *inserted = None;
        *no_hash = None;
    }

    /// Fails if a key should be a hash and is not a number.
    pub(crate) fn check_hashes(&self) -> Result<()> {
        match &self.no_hash {
            None => Ok(()),
            Some(key) => bail!(
                "{key} is not a hash. The filter's hasher is `prehashed`: it takes hashes of 64 bits, each a number \
                 from 0 to {} or 0x and at most 16 hexadecimal digits",
                u64::MAX
            ),
        }
    }

    /// The records of these bytes.
    pub(crate) fn records<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        parts(bytes, 0, &self.ends)
    }

    /// Turns values of keys into values of records. A record without a key has the value `keyless`.
    pub(crate) fn of_records<T: Clone>(
        &self,
        of_keys: impl IntoIterator<Item = T>,
        keyless: T,
    ) -> impl Iterator<Item = T> {
        let mut of_keys = of_keys.into_iter();
        let mut without = self.keyless.iter().peekable();
        (0..self.ends.len()).map(move |record| match without.next_if_eq(&&record) {
            Some(_) => keyless.clone(),
            None => of_keys.next().expect("every other record has a key"),
        })
    }

    /// The columns of a bank that have the key of each record; none for a record without a key.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &[usize]> {
        self.of_records(parts(&self.columns, 0, &self.column_ends), &[])
    }

    /// The last record has no key, but should.
    fn no_key(&mut self) {
        self.missing += 1;
        self.skip_key();
    }

    /// The last record does not need a key.
    fn needs_no_key(&mut self) {
        self.passing.push(self.ends.len() - 1);
        self.skip_key();
    }

    fn skip_key(&mut self) {
        self.keyless.push(self.ends.len() - 1);
        // Without what was appended for it.
        self.keys.truncate(self.key_ends.last().copied().unwrap_or(0));
    }

    /// Turns flags of keys into flags of records. A record without a key gets `keyless`.
    pub(crate) fn spread(&self, flags: &mut Vec<bool>, keyless: bool) {
        if !self.keyless.is_empty() {
            *flags = self.of_records(mem::take(flags), keyless).collect();
        }
    }
}

/// The parts of a slice between `start` and each of the ends.
fn parts<'a, T>(all: &'a [T], mut start: usize, ends: &'a [usize]) -> impl Iterator<Item = &'a [T]> {
    ends.iter().map(move |&end| {
        let part = &all[start..end];
        start = end;
        part
    })
}

impl KeySpec {
    /// Fails if a column of CSV without a header has a name, or the delimiter has another meaning.
    pub(crate) fn new(args: &KeyArgs) -> Result<Self> {
        let mut spec = Self {
            args: args.clone(),
            numbers: None,
            keeps_mark: true,
            form: KeyForm::Text,
        };
        let delimiter = spec.delimiter();
        if spec.is_csv() && (delimiter == b'\r' || delimiter == QUOTE && spec.has_quotes()) {
            bail!(
                "--delimiter {}: with --csv, it ends a record or encloses a field",
                shown(&[delimiter])
            );
        }
        if args.ignore_case && delimiter.is_ascii_alphabetic() && args.field.len().max(args.csv.len()) > 1 {
            bail!(
                "--delimiter {}: with --ignore-case, no letter can be between the fields of a key",
                shown(&[delimiter])
            );
        }
        let numbers = args.csv.iter().map(|column| match column.parse::<usize>() {
            Ok(number @ 1..) => Ok(number - 1),
            _ => bail!("--csv {column}: with --no-header, a column is a number from 1"),
        });
        spec.numbers = args.no_header.then(|| numbers.collect()).transpose()?;
        Ok(spec)
    }

    /// The keys of a Guava filter. Says what is assumed of its funnel, unless it is `quiet`.
    pub(crate) fn of_guava(self, funnel: Option<Funnel>, quiet: bool) -> Self {
        if funnel.is_none() && !quiet {
            lanebloom_files::note(
                "lanebloom: a Guava file does not name its funnel, so keys are taken for strings in UTF-8 or arrays of bytes; \
                 --funnel names another one",
            );
        }
        let form = KeyForm::Funneled(funnel.unwrap_or(Funnel::Bytes));
        Self { form, ..self }
    }

    /// The keys of a RedisBloom filter.
    pub(crate) fn of_redis(self) -> Self {
        let form = KeyForm::Funneled(Funnel::Bytes);
        Self { form, ..self }
    }

    /// The keys of a filter with this hasher.
    pub(crate) fn of_hasher(self, hasher: &AnyHasher) -> Self {
        let form = match hasher {
            AnyHasher::Prehashed => KeyForm::Hash,
            _ => KeyForm::Text,
        };
        Self { form, ..self }
    }

    pub(crate) fn terminator(&self) -> u8 {
        if self.args.null { 0 } else { b'\n' }
    }

    fn is_csv(&self) -> bool {
        !self.args.csv.is_empty()
    }

    fn delimiter(&self) -> u8 {
        let default = if self.is_csv() { b',' } else { b'\t' };
        self.args.delimiter.unwrap_or(default)
    }

    /// Whether quotes enclose the fields of CSV.
    fn has_quotes(&self) -> bool {
        self.args.quotes.unwrap_or(!self.is_tabbed())
    }

    /// Whether tabs are between the columns of CSV. By its definition, such a table has no quotes.
    fn is_tabbed(&self) -> bool {
        self.delimiter() == b'\t'
    }

    /// Whether the keys are the records' own bytes.
    pub(crate) fn is_line(&self) -> bool {
        let args = &self.args;
        let is_part = !args.field.is_empty() || self.is_csv() || !args.json.is_empty();
        let is_own = matches!(self.form, KeyForm::Text | KeyForm::Funneled(Funnel::Bytes));
        is_own && !(is_part || args.ignore_case || args.trim || args.keep_blank)
    }

    /// A line without its end: the terminator, and a carriage return before a newline. Either may
    /// be missing in the last line of an input.
    pub(crate) fn text<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let text = line.strip_suffix(&[self.terminator()]).unwrap_or(line);
        match text {
            [text @ .., b'\r'] if !self.args.null => text,
            text => text,
        }
    }

    /// Finds the records of a chunk, unless the [`Framer`] did, and hashes their keys. Keys that
    /// are hashes stay.
    pub(crate) fn hash(&self, chunk: &mut Chunk, hasher: &AnyHasher) {
        let (bytes, keyed) = chunk.parts();
        if self.is_line() {
            let terminator = self.terminator();
            let Keyed { ends, hashes, mark, .. } = keyed;
            let found = memchr::memchr_iter(terminator, bytes).map(|at| at + 1);
            let last = (bytes.last() != Some(&terminator)).then_some(bytes.len());
            let last = last.filter(|&len| len > 0);
            ends.extend(found.chain(last));
            let keys = parts(bytes, *mark, ends).map(|record| self.text(record));
            return hash_all(keys, hasher, hashes);
        }
        if !self.is_csv() {
            let mut start = keyed.mark;
            while start < bytes.len() {
                let end = memchr::memchr(self.terminator(), &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
                let record = &bytes[start..end];
                keyed.ends.push(end);
                let derived = self.derive(self.text(record), &mut keyed.keys);
                self.end_key(keyed, derived);
                start = end;
            }
        }
        let Keyed {
            keys, key_ends, hashes, ..
        } = keyed;
        hash_all(parts(keys, 0, key_ends), hasher, hashes);
    }

    /// Appends the text of a record's key to `keys`. Returns `None`, having appended a part, if a
    /// value of it is missing.
    fn derive(&self, record: &[u8], keys: &mut Vec<u8>) -> Option<()> {
        let KeyArgs {
            field,
            blanks,
            json: pointers,
            ..
        } = &self.args;
        if field.is_empty() && pointers.is_empty() {
            return self.push(0, record, keys);
        }
        let delimiter = self.delimiter();
        for (number, &field) in field.iter().enumerate() {
            let field = if *blanks {
                let runs = record.split(|byte| matches!(byte, b' ' | b'\t'));
                runs.filter(|run| !run.is_empty()).nth(field - 1)
            } else {
                record.split(|&byte| byte == delimiter).nth(field - 1)
            };
            self.push(number, field?, keys)?;
        }
        let is_array = pointers.len() > 1;
        // Other programs know no JSON: a string is its text for them.
        let write = if self.form != KeyForm::Text && !is_array {
            json::write_text
        } else {
            json::write
        };
        keys.extend(is_array.then_some(b'['));
        for (number, pointer) in pointers.iter().enumerate() {
            keys.extend((number > 0).then_some(b','));
            let value = pointer.find(record)?;
            if json::is_null(value) || self.args.keep_blank && json::is_string_of(value, is_blank) {
                return None;
            }
            write(value, keys)?;
        }
        keys.extend(is_array.then_some(b']'));
        Some(())
    }

    /// Appends part `number` of a key; returns `None` if it stands for a missing value. Keys with
    /// different parts stay different: a field has no delimiter in it, and a column of CSV with one
    /// is in quotes, as in a file.
    fn push(&self, number: usize, part: &[u8], keys: &mut Vec<u8>) -> Option<()> {
        let args = &self.args;
        let part = if args.trim { part.trim_ascii() } else { part };
        if args.keep_blank && is_blank(part) {
            return None;
        }
        let joiner = if args.blanks { b' ' } else { self.delimiter() };
        keys.extend((number > 0).then_some(joiner));
        if args.csv.len() < 2 {
            keys.extend_from_slice(part);
        } else {
            self.enclose(part, keys);
        }
        Some(())
    }

    /// Appends a field of CSV as it may be in a file, within quotes if it must be.
    fn enclose(&self, field: &[u8], to: &mut Vec<u8>) {
        let is_special = |byte: &u8| *byte == self.delimiter() || matches!(byte, b'"' | b'\n' | b'\r');
        if !self.has_quotes() || !field.iter().any(is_special) {
            return to.extend_from_slice(field);
        }
        to.push(b'"');
        for &byte in field {
            to.extend((byte == b'"').then_some(b'"'));
            to.push(byte);
        }
        to.push(b'"');
    }

    /// Ends the key of the last record, whose text is at the end of the keys if it was `derived`.
    fn end_key(&self, keyed: &mut Keyed, derived: Option<()>) {
        let start = keyed.key_ends.last().copied().unwrap_or(0);
        if derived.is_none() {
            return keyed.no_key();
        }
        if self.args.ignore_case {
            keyed.keys[start..].make_ascii_lowercase();
        }
        let bytes = match self.form {
            KeyForm::Text | KeyForm::Funneled(Funnel::Bytes) => return keyed.key_ends.push(keyed.keys.len()),
            KeyForm::Hash => {
                let hash = hash_of(&keyed.keys[start..]);
                if hash.is_none() && keyed.no_hash.is_none() {
                    keyed.no_hash = Some(shown(&keyed.keys[start..]));
                }
                hash.map(|hash| hash.to_le_bytes().to_vec())
            }
            KeyForm::Funneled(funnel) => std::str::from_utf8(&keyed.keys[start..])
                .ok()
                .and_then(|text| bytes(text, funnel)),
        };
        match bytes {
            Some(bytes) => {
                keyed.keys.truncate(start);
                keyed.keys.extend_from_slice(&bytes);
                keyed.key_ends.push(keyed.keys.len());
            }
            None => keyed.no_key(),
        }
    }

    /// The keys of a chunk.
    pub(crate) fn all_of<'a>(&self, chunk: &'a Chunk) -> Vec<&'a [u8]> {
        let keys = 0..chunk.records.hashes.len();
        keys.map(|key| self.key(chunk.bytes(), &chunk.records, key).0).collect()
    }

    /// The key with number `key` of a chunk, whose bytes these are, and where it begins in them if
    /// the line is the key.
    pub(crate) fn key<'a>(&self, bytes: &'a [u8], keyed: &'a Keyed, key: usize) -> (&'a [u8], usize) {
        let (bytes, ends, first) = if self.is_line() {
            (bytes, &keyed.ends, keyed.mark)
        } else {
            (&keyed.keys[..], &keyed.key_ends, 0)
        };
        let start = if key == 0 { first } else { ends[key - 1] };
        let record = &bytes[start..ends[key]];
        let text = if self.is_line() { self.text(record) } else { record };
        (text, start)
    }
}

/// Whether a text has nothing but spaces and tabs.
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The bytes of a key, or `None` if the funnel does not take it.
fn bytes(text: &str, funnel: Funnel) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match funnel {
        Funnel::Long => text.parse::<i64>().ok()?.funnel(&mut bytes),
        Funnel::Int => text.parse::<i32>().ok()?.funnel(&mut bytes),
        Funnel::Utf8 | Funnel::Bytes => text.funnel(&mut bytes),
        Funnel::Utf16 => UnencodedChars(text).funnel(&mut bytes),
    }
    Some(bytes)
}

/// The hash that a key of a filter of hashes is.
fn hash_of(key: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(key).ok()?;
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // Not a sign, which `from_str_radix` takes.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| is_number)
}

fn hash_all<'a>(keys: impl Iterator<Item = &'a [u8]>, hasher: &AnyHasher, hashes: &mut Vec<u64>) {
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let mut len = 0;
    let mut flush = |batch: &[&[u8]]| {
        let start = hashes.len();
        hashes.resize(start + batch.len(), 0);
        let hashes = &mut hashes[start..];
        match hasher {
            AnyHasher::Builtin(hasher) => hasher.hash_batch(batch, hashes),
            // The bytes of numbers.
            _ => {
                for (hash, key) in hashes.iter_mut().zip(batch) {
                    *hash = u64::from_le_bytes((*key).try_into().expect("a key of 8 bytes"));
                }
            }
        }
    };
    for key in keys {
        batch[len] = key;
        len += 1;
        if len == BATCH {
            flush(&batch);
            len = 0;
        }
    }
    flush(&batch[..len]);
}

/// A text for a message, in quotes and not long.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(text).escape_debug().to_string();
    if text.chars().count() <= MOST {
        return format!("\"{text}\"");
    }
    format!("\"{}...\"", text.chars().take(MOST).collect::<String>())
}

/// Cuts the bytes of inputs into records.
pub(crate) struct Framer {
    spec: KeySpec,
    lines: LineCutter,
    /// The name of the input.
    name: String,
    record: Record,
    /// The numbers of the key's columns; known once the header was read.
    columns: Option<Vec<usize>>,
    /// The header that has passed on, and the input that it is from.
    header: Option<(Vec<u8>, String)>,
    /// The number of fields of the first record.
    fields: Option<usize>,
}

impl Cut for Framer {
    type Records = Keyed;

    /// With `is_apart` the header of the input passes too.
    fn begin(&mut self, _: usize, name: &str, is_apart: bool) -> Result<bool> {
        self.columns = self.spec.numbers.clone();
        self.lines.begin(is_apart);
        self.name = name.to_owned();
        if is_apart {
            (self.header, self.fields) = (None, None);
        }
        self.record.begin(0);
        Ok(false)
    }

    fn cut(&mut self, bytes: &[u8], is_end: bool, keyed: &mut Keyed) -> Result<Range<usize>> {
        keyed.clear();
        if self.spec.is_csv() {
            return self.cut_csv(bytes, is_end, keyed);
        }
        let (whole, mark) = self.lines.cut(bytes, is_end)?;
        keyed.mark = mark;
        Ok(whole)
    }

    fn lines(&self) -> &LineCutter {
        &self.lines
    }
}

impl Framer {
    pub(crate) fn new(spec: KeySpec) -> Self {
        Self {
            lines: LineCutter::new(spec.terminator(), spec.args.max_record, spec.keeps_mark),
            record: Record::new(spec.delimiter(), spec.has_quotes()),
            spec,
            name: String::new(),
            columns: None,
            header: None,
            fields: None,
        }
    }

    /// Finds whole records and their keys, and leaves the header out before the records unless it
    /// is the first one.
    fn cut_csv(&mut self, bytes: &[u8], is_end: bool, keyed: &mut Keyed) -> Result<Range<usize>> {
        if self.lines.is_at_start() && !self.record.is_begun() {
            if !is_end && bytes.len() < BOM.len() && BOM.starts_with(bytes) {
                // The rest of the mark may follow.
                return Ok(0..0);
            }
            self.record.begin(if bytes.starts_with(BOM) { BOM.len() } else { 0 });
        }
        let (mut start, mut end, mut counted) = (0, 0, 0);
        while let Some(len) = self.record(&bytes[counted..], end - counted, is_end)? {
            let record = &bytes[end..end + len];
            end += len;
            if self.lines.is_at_start() {
                start += self.lines.pass(record).0;
                counted = end;
            }
            if let Some(columns) = &self.columns {
                keyed.ends.push(end - start);
                let push = |(number, &column)| {
                    let field = self.record.field(record, column)?;
                    self.spec.push(number, &field, &mut keyed.keys)
                };
                let derived = columns.iter().enumerate().try_for_each(push);
                self.spec.end_key(keyed, derived);
                continue;
            }
            self.columns = Some(self.find_columns(record)?);
            let mut header = Vec::new();
            for (number, name) in self.record.all(record).enumerate() {
                header.extend((number > 0).then_some(self.spec.delimiter()));
                self.spec.enclose(&name, &mut header);
            }
            match &self.header {
                None => {
                    self.header = Some((header, self.name.clone()));
                    keyed.ends.push(end - start);
                    keyed.needs_no_key();
                }
                Some((first, _)) if *first == header => start = end,
                Some((first, name)) => bail!(
                    "its header, {}, is not {}, the header of {name}. Give such files one at a time, or to \
                     dedup with --output-dir; if the first line is a row, use --no-header",
                    shown(&header),
                    shown(first)
                ),
            }
        }
        let is_trailed = is_end && end < bytes.len();
        if is_trailed {
            end = bytes.len();
        }
        start += self.lines.pass(&bytes[counted..end]).0;
        if is_trailed {
            // Empty lines: nothing is lost.
            keyed.ends.push(end - start);
            keyed.needs_no_key();
        }
        Ok(start..end)
    }

    /// Reads the record that begins at `start`. Returns the length of its bytes, or `None` if its
    /// end is missing. Fails if it is too long, or not as CSV should be.
    fn record(&mut self, bytes: &[u8], start: usize, is_end: bool) -> Result<Option<usize>> {
        let rest = &bytes[start..];
        let read = self.record.read(rest, is_end);
        let line = |at: usize| self.lines.next_number() + memchr::memchr_iter(b'\n', &bytes[..start + at]).count();
        let begins = || format!("the record that begins in line {}", line(self.record.start()));
        let len = match read {
            Ok(len) => len,
            Err(wrong) => {
                let wrong = match wrong {
                    Wrong::Text(at) => format!("text behind a closing quote in line {}", line(at)),
                    Wrong::Open => "a quote that is never closed".into(),
                };
                bail!("{} has {wrong}; --quotes no takes all quotes for text", begins())
            }
        };
        let most = self.spec.args.max_record;
        if len.unwrap_or(rest.len()) > most {
            bail!(
                "{} is longer than {most} bytes, the limit of --max-record; perhaps a quote in it is never closed",
                begins()
            );
        }
        let fields = self.record.len();
        let Some(len) = len.filter(|_| fields > 0) else {
            return Ok(None);
        };
        let is_undecided = self.spec.args.quotes.is_none();
        if self.lines.is_at_start() && is_undecided && self.spec.is_tabbed() {
            let mut all = (0..fields).filter_map(|number| self.record.bytes(rest, number));
            if let Some(field) = all.find(|field| matches!(field, [b'"', .., b'"'])) {
                bail!(
                    "line {} has a field within quotes, {}: --quotes yes takes them off, --quotes no takes them for text",
                    line(self.record.start()),
                    shown(field)
                );
            }
        }
        if self.spec.args.ragged {
            return Ok(Some(len));
        }
        let first = *self.fields.get_or_insert(fields);
        if let Some(number) = self.spec.numbers.iter().flatten().find(|&&number| number >= first) {
            let first = count(first, "field");
            bail!("the first record has {first}, and none is number {}", number + 1);
        }
        // (Another header has an error of its own.)
        if fields != first && self.columns.is_some() {
            let may_enclose = is_undecided && memchr::memchr(b'"', &rest[..len]).is_some();
            bail!(
                "{} has {}, and the first record has {first}; --ragged allows that{}",
                begins(),
                count(fields, "field"),
                match self.spec.is_tabbed() {
                    _ if !may_enclose => "",
                    true => ", --quotes yes lets quotes enclose fields",
                    false => ", --quotes no takes all quotes for text",
                }
            );
        }
        Ok(Some(len))
    }

    /// The numbers of the key's columns, by their names in the header or their positions.
    fn find_columns(&self, header: &[u8]) -> Result<Vec<usize>> {
        let (names, len) = (|| self.record.all(header), self.record.len());
        let find = |column: &String| {
            let is_named = |name: &Cow<[u8]>| **name == *column.as_bytes();
            let named = names().position(|name| is_named(&name));
            let times = names().filter(is_named).count();
            match (named, column.parse::<usize>()) {
                _ if times > 1 => bail!("the header has {times} columns {column:?}: give the number of one"),
                (Some(number), _) => Ok(number),
                (_, Ok(number)) if (1..=len).contains(&number) => Ok(number - 1),
                (_, Ok(number)) => bail!("the header has {len} columns, and none is number {number} or has that name"),
                (_, Err(_)) => bail!("the header has no column {column:?}"),
            }
        };
        self.spec.args.csv.iter().map(find).collect()
    }
}
