//! The documents of a chunk: lines of JSON with a text. Finds the texts, their pieces and the
//! pieces' hashes, and writes the lines without the pieces that go. `corpus` runs on it.

use super::json::{self, JsonPlaces, place, unescape};
use super::rows::{Batches, Rows, Table};
use anyhow::Result;
use lanebloom_corpus::{Piece, Pieces, Rules};
use lanebloom_files::input::{Cut, LineCutter};
use lanebloom_files::json::Pointer;
use serde_json::value::RawValue;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// The rules for reading documents.
pub(super) struct Reading {
    /// The way to the text.
    pub(super) field: Pointer,
    pub(super) rules: Rules,
    /// The name of the attributes that are written in place of the documents.
    pub(super) attribute: Option<String>,
}

/// Bytes that the pieces and words of a document may take, for each byte of --max-record. A text of
/// Chinese has the most words of those that people write, and takes 5.4.
pub(super) const PER_BYTE: usize = 6;

/// Bytes of a text whose memory is not kept for the next one.
const LONG: usize = 1 << 20;

/// The documents of a chunk, in order.
#[derive(Default)]
pub(super) struct Documents {
    pub(super) all: Vec<Document>,
    /// The rows of Parquet that the documents are texts of.
    pub(super) rows: Option<Rows>,
    pub(super) pieces: Pieces,
    /// Where each piece ends in its text, with the separator behind it, in characters; for spans.
    span_ends: Vec<usize>,
    /// The share of each piece that was seen if the piece goes; 0 if it stays.
    pub(super) scores: Vec<f64>,
    /// Bits of `pieces.hashes` that a filter to compare with has.
    pub(super) found: Vec<u64>,
    text: String,
    /// The bytes of all texts.
    pub(super) text_bytes: u64,
    /// Where the first line begins that needs more memory than the rules allow. No more are read.
    pub(super) too_large: Option<usize>,
    /// The filter took all hashes: these were new, and this was its rate then.
    pub(super) new: Vec<bool>,
    pub(super) rate: f64,
    pub(super) counts: Counts,
    /// The bytes to write.
    pub(super) output: Vec<u8>,
}

/// Cuts the bytes of inputs into lines, and reads the rows of those that are files of Parquet.
pub(super) struct Cutter {
    lines: LineCutter,
    tables: Vec<Option<Arc<Table>>>,
    max_record: usize,
    /// The rows that are left of an input.
    batches: Option<Batches>,
}

impl Cutter {
    /// Texts of at most `max_record` bytes. In lines of JSON, a byte-order mark is an error.
    pub(super) fn new(tables: Vec<Option<Arc<Table>>>, max_record: usize) -> Self {
        Self {
            lines: LineCutter::new(b'\n', max_record, false),
            tables,
            max_record,
            batches: None,
        }
    }
}

impl Cut for Cutter {
    type Records = Documents;

    fn begin(&mut self, number: usize, _: &str, is_apart: bool) -> Result<bool> {
        self.lines.begin(is_apart);
        let table = self.tables.get(number).and_then(Option::as_ref);
        self.batches = table.map(|table| table.batches(self.max_record)).transpose()?;
        Ok(self.batches.is_some())
    }

    fn cut(&mut self, bytes: &[u8], is_end: bool, documents: &mut Documents) -> Result<Range<usize>> {
        documents.rows = None;
        Ok(self.lines.cut(bytes, is_end)?.0)
    }

    fn lines(&self) -> &LineCutter {
        &self.lines
    }

    fn next(&mut self, lines: &mut Vec<u8>, documents: &mut Documents) -> Result<Option<usize>> {
        let batches = self.batches.as_mut().expect("the input is a file of Parquet");
        let (rows, file_bytes) = batches.next(lines)?.unzip();
        documents.rows = rows;
        Ok(file_bytes)
    }
}

/// The numbers of documents, by their fates.
#[derive(Default)]
pub(super) struct Counts {
    /// The number of documents by their fate.
    fates: [u64; FATES],
    pub(super) pieces: u64,
    pub(super) pieces_removed: u64,
    pub(super) hashes: u64,
    pub(super) hashes_seen: u64,
    pub(super) text_bytes: u64,
    /// The expected number of pieces that were removed by mistake.
    pub(super) mistaken: f64,
}

impl Counts {
    /// Counts the documents of a chunk, which were decided.
    pub(super) fn with(mut self, documents: &Documents) -> Self {
        self.text_bytes = documents.text_bytes;
        self.hashes = documents.pieces.hashes.len() as u64;
        for (piece, score) in documents.pieces.pieces.iter().zip(&documents.scores) {
            self.pieces += u64::from(piece.words > 0);
            self.pieces_removed += u64::from(*score > 0.0);
        }
        for document in &documents.all {
            self.fates[document.fate as usize] += 1;
        }
        self
    }

    /// Adds the counts of another chunk.
    pub(super) fn add(&mut self, other: &Self) {
        for (all, more) in self.fates.iter_mut().zip(other.fates) {
            *all += more;
        }
        self.pieces += other.pieces;
        self.pieces_removed += other.pieces_removed;
        self.hashes += other.hashes;
        self.hashes_seen += other.hashes_seen;
        self.text_bytes += other.text_bytes;
        self.mistaken += other.mistaken;
    }

    pub(super) fn documents(&self) -> u64 {
        self.fates.iter().sum()
    }

    /// The number of documents with this fate.
    pub(super) fn of(&self, fate: Fate) -> u64 {
        self.fates[fate as usize]
    }
}

/// A line, which may be a document.
pub(super) struct Document {
    /// Its bytes in the chunk, with its end.
    line: Range<usize>,
    /// The JSON string of its text, without the quotes; `None` if it has none.
    text: Option<Range<usize>>,
    /// The JSON of its id, for spans.
    id: Option<Range<usize>>,
    /// The numbers of its pieces.
    pub(super) pieces: Range<usize>,
    pub(super) fate: Fate,
}

/// The fate of a document. The last four pass uncompared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    Same,
    /// Pieces go.
    Shortened,
    /// All pieces with words go, and so does the line.
    Empty,
    /// Too few words are left.
    TooShort,
    NotJson,
    /// It has NaN or Infinity, which Python writes, and which are not JSON.
    WithNan,
    WithoutText,
    /// Its text has half a surrogate pair. No character stands for it, so no text that can be
    /// compared has it.
    HalfSurrogate,
}

const FATES: usize = Fate::HalfSurrogate as usize + 1;

impl Fate {
    /// The fate of a line in which no text was found.
    fn without_text(line: &[u8]) -> Self {
        let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
        if line.trim_ascii().is_empty() || serde_json::from_slice::<&RawValue>(line).is_ok() {
            Self::WithoutText
        } else if has(b"NaN") || has(b"Infinity") {
            Self::WithNan
        } else {
            Self::NotJson
        }
    }

    fn is_uncompared(self) -> bool {
        matches!(
            self,
            Self::NotJson | Self::WithNan | Self::WithoutText | Self::HalfSurrogate
        )
    }
}

impl Documents {
    /// Finds the documents in the bytes, and hashes their pieces.
    pub(super) fn read(&mut self, bytes: &[u8], reading: &Reading) {
        let Self {
            all,
            pieces,
            span_ends,
            scores,
            new,
            text,
            text_bytes,
            too_large,
            counts,
            ..
        } = self;
        *counts = Counts::default();
        all.clear();
        pieces.clear();
        span_ends.clear();
        *text_bytes = 0;
        *too_large = None;
        let mut start = 0;
        while start < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
            let line = start..end;
            let first = pieces.pieces.len();
            let (value, id) = if reading.attribute.is_some() {
                reading.field.find_with_id(&bytes[line.clone()])
            } else {
                (reading.field.find(&bytes[line.clone()]), None)
            };
            let mut document = Document {
                line,
                text: None,
                id: id.map(|id| place(bytes, id.get())),
                pieces: first..first,
                fate: Fate::Same,
            };
            match value.and_then(json::string) {
                None => document.fate = Fate::without_text(&bytes[start..end]),
                Some(json) if !unescape(json, text) => document.fate = Fate::HalfSurrogate,
                Some(json) => {
                    document.text = Some(place(bytes, json));
                    *text_bytes += text.len() as u64;
                    if reading.rules.append(text, pieces).is_err() {
                        *too_large = Some(start);
                        break;
                    }
                    if reading.attribute.is_some() {
                        push_span_ends(text, &pieces.pieces[first..], span_ends);
                    }
                    document.pieces.end = pieces.pieces.len();
                }
            }
            all.push(document);
            start = end;
        }
        scores.clear();
        scores.resize(pieces.pieces.len(), 0.0);
        // Frees the memory of a long line. Its text is not needed any more.
        text.clear();
        text.shrink_to(LONG);
        let most = bytes.len() / 8 + 1024;
        pieces.pieces.shrink_to(most);
        pieces.hashes.shrink_to(most);
        scores.shrink_to(most);
        span_ends.shrink_to(most);
        new.shrink_to(most);
    }

    /// The fate of a document, once the scores of its pieces are known.
    pub(super) fn decide(&mut self, document: usize, min_words: usize) -> Fate {
        let document = &mut self.all[document];
        if document.fate.is_uncompared() {
            return document.fate;
        }
        let (mut left, mut removed) = (0, 0);
        for number in document.pieces.clone() {
            // Without a branch, which would often be mispredicted.
            let goes = usize::from(self.scores[number] > 0.0);
            removed += goes;
            left += (1 - goes) * self.pieces.pieces[number].words;
        }
        document.fate = match (left, removed) {
            (0, 1..) => Fate::Empty,
            _ if left < min_words => Fate::TooShort,
            (_, 0) => Fate::Same,
            _ => Fate::Shortened,
        };
        document.fate
    }

    /// Whether a document has too few words even with all its pieces.
    pub(super) fn is_too_short(&self, document: usize, min_words: usize) -> bool {
        let document = &self.all[document];
        let words = |number: usize| self.pieces.pieces[number].words;
        min_words > 0 && document.text.is_some() && document.pieces.clone().map(words).sum::<usize>() < min_words
    }

    /// Writes what is left of the lines, or the spans of what would go, to `output`.
    pub(super) fn write(&mut self, bytes: &[u8], reading: &Reading) {
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        match &reading.attribute {
            Some(name) => self.write_spans(bytes, name, &mut output),
            None => self.write_lines(bytes, &mut output),
        }
        self.output = output;
    }

    /// Removes from rows what goes: the rows of documents, and pieces of their texts.
    pub(super) fn edit(&mut self, bytes: &[u8], rows: &mut Rows) -> Result<()> {
        let (mut stays, mut texts, mut json) = (Vec::new(), Vec::new(), Vec::new());
        for (number, document) in self.all.iter().enumerate() {
            stays.push(!matches!(document.fate, Fate::Empty | Fate::TooShort));
            if document.fate == Fate::Shortened {
                json.clear();
                self.write_text(document, bytes, &mut json);
                let json = std::str::from_utf8(&json).expect("it is cut between pieces");
                let mut text = String::new();
                assert!(unescape(json, &mut text), "its text had no half pairs");
                texts.push((number, text));
            }
        }
        rows.edit(stays, &texts)
    }

    fn write_lines(&self, bytes: &[u8], output: &mut Vec<u8>) {
        // The lines that stay as they are, up to here.
        let mut same = 0..0;
        for document in &self.all {
            let line = &document.line;
            if document.fate == Fate::Same || document.fate.is_uncompared() {
                same.end = line.end;
                continue;
            }
            output.extend_from_slice(&bytes[same.start..line.start]);
            same = line.end..line.end;
            if let (Fate::Shortened, Some(text)) = (document.fate, &document.text) {
                output.extend_from_slice(&bytes[line.start..text.start]);
                self.write_text(document, bytes, output);
                output.extend_from_slice(&bytes[text.end..line.end]);
            }
        }
        output.extend_from_slice(&bytes[same]);
    }

    /// Writes the pieces that stay. The separator before a piece stays with it, but not before the
    /// first.
    fn write_text(&self, document: &Document, bytes: &[u8], output: &mut Vec<u8>) {
        let Some(json) = &document.text else {
            return;
        };
        let json = &bytes[json.clone()];
        let mut places = JsonPlaces::new(json);
        let (mut is_first, mut behind) = (true, 0);
        for number in document.pieces.clone() {
            let piece = &self.pieces.pieces[number];
            if self.scores[number] == 0.0 {
                let start = places.of(if is_first { piece.text.start } else { behind });
                output.extend_from_slice(&json[start..places.of(piece.text.end)]);
                is_first = false;
            }
            behind = piece.text.end;
        }
    }

    fn write_spans(&self, bytes: &[u8], name: &str, output: &mut Vec<u8>) {
        let name = serde_json::to_string(name).expect("it is a text");
        for document in &self.all {
            let id = document.id.clone().map_or(&b"null"[..], |id| &bytes[id]);
            for part in [b"{\"id\":", id, b",\"attributes\":{", name.as_bytes(), b":["] {
                output.extend_from_slice(part);
            }
            let (mut comma, mut from) = (None, 0);
            for number in document.pieces.clone() {
                let score = self.scores[number];
                let to = self.span_ends[number];
                if score > 0.0 {
                    output.extend(comma);
                    for (before, number) in [(b'[', from), (b',', to)] {
                        output.push(before);
                        // There are millions, and `write!` takes three times as long.
                        serde_json::to_writer(&mut *output, &number).expect("a vector takes everything");
                    }
                    if score == 1.0 {
                        output.extend_from_slice(b",1]");
                    } else {
                        write!(output, ",{score}]").expect("a vector takes everything");
                    }
                    comma = Some(b',');
                }
                from = to;
            }
            output.extend_from_slice(b"]}}\n");
        }
    }
}

/// Appends where the spans of a text's pieces end.
fn push_span_ends(text: &str, pieces: &[Piece], ends: &mut Vec<usize>) {
    let next_starts = pieces.iter().skip(1).map(|next| next.text.start).chain([text.len()]);
    if text.is_ascii() {
        return ends.extend(next_starts);
    }
    let (mut start, mut chars) = (0, 0);
    ends.extend(next_starts.map(|next| {
        chars += text[start..next].chars().count();
        start = next;
        chars
    }));
}
