//! `--exact`: two passes. The first puts all keys into a filter, and those that it may have held
//! already into a second one. A key that is not in the second filter is in no other line. So the
//! second pass records keys of the second filter only: the position of each, not the key.
//! `--count-each` counts them in the second pass, and prints in a third one.

use super::job::{Done, Job, RecordWriter};
use crate::keys::{Chunk, KeySpec};
use anyhow::{Context, Error, Result, anyhow, bail};
use lanebloom::hash::SipHash13;
use lanebloom::{Bitmap, Hashed, Murmur3};
use lanebloom_files::input::{Input, KeptInput};
use lanebloom_files::positioned::FileExt;
use lanebloom_files::seen::{self, Seen};
use lanebloom_files::summary::Summary;
use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::mem;

/// The rate of both filters unless one is given: a mistake costs only the memory for a candidate.
const RATE: f64 = 0.01;

pub(super) fn run(job: &Job<'_>, output: &File) -> Result<Done> {
    let output = RecordWriter::new(job.args, output)?;
    let kept = KeptInput::all(&job.files, &job.progress)?;
    let inputs = || kept.iter().cloned().map(Input::Kept).collect();
    let total = kept.iter().map(|input| input.len).sum();
    let hasher = SipHash13::random();

    let rate = job.args.size.rate.unwrap_or(RATE);
    let empty = |expected| Ok::<_, Error>(Seen::of(seen::empty(expected, rate, Murmur3::default())?));
    // The keys, and those that the first filter held, or seemed to hold, when they came.
    let filters = (empty(job.args.size.expected)?, empty(None)?, Digest::default());
    let (mut new, mut again) = (Vec::new(), Vec::new());
    job.progress.restart(total);
    let mark = move |(seen, repeated, digest): &mut (Seen, Seen, Digest), chunk: &mut Chunk| {
        let hashes = &chunk.records.hashes;
        digest.add(hashes);
        new.resize(hashes.len(), false);
        seen.insert(hashes, &mut new, chunk.share)?;
        again.clear();
        let keys = hashes.iter().zip(&new);
        again.extend(keys.filter(|(_, new)| !**new).map(|(&hash, _)| hash));
        new.resize(again.len(), false);
        Ok(repeated.insert(&again, &mut new, chunk.share)?)
    };
    let (seen, repeated, digest) = job.pass(inputs(), hasher, filters, mark)?;

    // Those that are in the second filter by mistake come on top.
    let most = repeated.new + (seen.new as f64 * rate * 1.1) as usize;
    drop(seen);
    let mut candidates = Candidates {
        spec: job.keys.clone(),
        repeated,
        places: LineTable::new(most),
        keys: KeyStore::new(job, &kept, most)?,
        found: Vec::new(),
        numbers: Vec::new(),
        digest: Digest::default(),
    };
    job.progress.restart(total);
    let (candidates, output) = if job.args.count_each {
        // The number of occurrences of the key at each place; 0 once it is printed.
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let count = |(candidates, counts): &mut (Candidates, HashMap<_, _>), chunk: &mut Chunk| {
            candidates.find(chunk, |_, place, _| *counts.entry(place).or_default() += 1)
        };
        (candidates, counts) = job.pass(inputs(), hasher, (candidates, counts), count)?;
        if candidates.digest != digest {
            return Err(changed(&kept));
        }
        candidates.digest = Digest::default();
        job.progress.restart(total);
        let mut of_keys = Vec::new();
        let print = move |(candidates, output): &mut (Candidates, RecordWriter), chunk: &mut Chunk| {
            of_keys.clear();
            of_keys.resize(chunk.records.hashes.len(), 1);
            let take = |number: usize, place, _| of_keys[number] = counts.get_mut(&place).map_or(1, mem::take);
            candidates.find(chunk, take)?;
            output.put_counts(chunk, &of_keys)
        };
        job.pass(inputs(), hasher, (candidates, output), print)?
    } else {
        let mut new = Vec::new();
        let verify = move |(candidates, output): &mut (Candidates, RecordWriter), chunk: &mut Chunk| {
            new.clear();
            new.resize(chunk.records.hashes.len(), true);
            candidates.find(chunk, |number, _, is_first| new[number] = is_first)?;
            output.put(chunk, &mut new)
        };
        job.pass(inputs(), hasher, (candidates, output), verify)?
    };
    let mut last = candidates.digest;
    if last == digest && candidates.keys.reads_input && kept.iter().any(KeptInput::is_suspect) {
        // A line that changed was not found again. A log that grew has no such line, for example.
        job.progress.restart(total);
        let compare = |digest: &mut Digest, chunk: &mut Chunk| {
            digest.add(&chunk.records.hashes);
            Ok(())
        };
        last = job.pass(inputs(), hasher, Digest::default(), compare)?;
    }
    if last != digest {
        return Err(changed(&kept));
    }
    let number = candidates.places.len;
    Ok(Done {
        output,
        extra: Summary {
            text: format!(", none wrongly, {number} candidates"),
            statistics: vec![("wrongly_dropped_expected", 0.into()), ("candidates", number.into())],
        },
        state: None,
    })
}

fn changed(kept: &[KeptInput]) -> Error {
    let suspect = kept.iter().find(|input| input.is_suspect());
    let name = suspect.map_or("the input", |input| &input.name);
    anyhow!("{name} changed during the run, so duplicates may have passed")
}

/// The number of all hashes, and a polynomial of them: their order counts.
#[derive(Clone, Copy, Default, PartialEq)]
struct Digest(usize, u64);

impl Digest {
    fn add(&mut self, hashes: &[u64]) {
        // Any large odd number does.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = |sum: u64, &hash: &u64| sum.wrapping_mul(FACTOR).wrapping_add(hash);
        self.0 += hashes.len();
        self.1 = hashes.iter().fold(self.1, step);
    }
}

/// The keys that may occur more than once, with their first occurrences.
struct Candidates {
    spec: KeySpec,
    repeated: Seen,
    places: LineTable,
    keys: KeyStore,
    found: Vec<u64>,
    /// The numbers of the candidates among the keys of a chunk.
    numbers: Vec<usize>,
    digest: Digest,
}

impl Candidates {
    /// Calls `each` with the number of each candidate of the chunk, with the place of its key, and
    /// whether the key comes for the first time.
    fn find(&mut self, chunk: &Chunk, mut each: impl FnMut(usize, u64, bool)) -> Result<()> {
        let hashes = &chunk.records.hashes;
        self.digest.add(hashes);
        self.found.resize(hashes.len().div_ceil(64), 0);
        self.repeated
            .filter()
            .contains_batch(Hashed::slice(hashes), Bitmap(&mut self.found));
        let is_candidate = |number: usize| self.found[number / 64] >> (number % 64) & 1 == 1;
        self.numbers.clear();
        self.numbers
            .extend((0..hashes.len()).filter(|&number| is_candidate(number)));
        self.places.touch(self.numbers.iter().map(|&number| hashes[number]));
        self.keys.touch(
            self.numbers
                .iter()
                .filter_map(|&number| self.places.of(hashes[number]).next()),
        );
        for at in 0..self.numbers.len() {
            let number = self.numbers[at];
            let (place, is_first) = self.place(chunk, number)?;
            each(number, place, is_first);
        }
        Ok(())
    }

    /// The place of the key with this number in the chunk, and whether it comes for the first time.
    fn place(&mut self, chunk: &Chunk, number: usize) -> Result<(u64, bool)> {
        let hash = chunk.records.hashes[number];
        let (key, start) = self.spec.key(chunk.bytes(), &chunk.records, number);
        for place in self.places.of(hash) {
            if self.keys.holds(place, key)? {
                return Ok((place, false));
            }
        }
        let offset = chunk.offset + start as u64;
        let place = self
            .keys
            .keep(key, chunk.input, offset)
            .context("cannot write a key to a temporary file")?;
        self.places.insert(hash, place)?;
        Ok((place, true))
    }
}

/// The places of keys, by the keys' hashes: open addressing with linear probing, 10 bytes for each
/// key.
struct LineTable {
    /// A table that is full stays, since to make it larger would read all keys again: the last one
    /// takes new places.
    tables: Vec<Table>,
    len: usize,
}

struct Table {
    /// A place plus 1 in the lowest bits, and the lowest bits of the hash above; or 0.
    entries: Vec<u64>,
    /// The number of places that it still takes.
    room: usize,
}

/// Bits of an entry that are a place plus 1: less than 256 TiB.
const PLACE_BITS: u32 = 48;

impl Table {
    fn new(places: usize) -> Self {
        Self {
            entries: vec![0; places + places / 4 + 1],
            room: places,
        }
    }

    /// The index at which the search for a hash begins.
    fn start(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.entries.len() as u128) >> 64) as usize
    }

    /// The entries from there to an empty one.
    fn probe(&self, hash: u64) -> impl Iterator<Item = u64> {
        let (before, after) = self.entries.split_at(self.start(hash));
        after.iter().chain(before).copied().take_while(|&entry| entry != 0)
    }

    /// The places of keys that may have this hash.
    fn places(&self, hash: u64) -> impl Iterator<Item = u64> {
        let has_tag = move |entry: &u64| entry >> PLACE_BITS == hash & (u64::MAX >> PLACE_BITS);
        self.probe(hash)
            .filter(has_tag)
            .map(|entry| (entry & (u64::MAX >> (64 - PLACE_BITS))) - 1)
    }

    fn insert(&mut self, hash: u64, place: u64) {
        let at = (self.start(hash) + self.probe(hash).count()) % self.entries.len();
        self.entries[at] = hash << PLACE_BITS | (place + 1);
        self.room -= 1;
    }
}

impl LineTable {
    fn new(keys: usize) -> Self {
        Self {
            tables: vec![Table::new(keys.max(1 << 10))],
            len: 0,
        }
    }

    /// The places of keys that may have this hash.
    fn of(&self, hash: u64) -> impl Iterator<Item = u64> {
        self.tables.iter().flat_map(move |table| table.places(hash))
    }

    fn insert(&mut self, hash: u64, place: u64) -> Result<()> {
        if place >= u64::MAX >> (64 - PLACE_BITS) {
            bail!(
                "the input has more than {} bytes, the limit of --exact",
                1u64 << PLACE_BITS
            );
        }
        if self.tables.last().is_none_or(|table| table.room == 0) {
            self.tables.push(Table::new(self.len / 2));
        }
        let last = self.tables.last_mut().expect("there is a table");
        last.insert(hash, place);
        self.len += 1;
        Ok(())
    }

    /// Loads what a search for each hash will read first. The loads do not depend on each other, so
    /// the processor waits for many at once.
    fn touch(&self, hashes: impl Iterator<Item = u64>) {
        let first = &self.tables[0];
        black_box(hashes.fold(0, |sum, hash| sum ^ first.entries[first.start(hash)]));
    }
}

/// The first occurrences of keys, to be compared with later ones. The first keys, which a stream
/// repeats most, are in memory: to read one again takes as long as all else.
struct KeyStore {
    /// Each key after its length. A place below `most` is an offset.
    memory: Vec<u8>,
    most: usize,
    /// The others, whose places begin at `most`.
    rest: Rest,
    /// Whether `rest` has lines of the input.
    reads_input: bool,
    /// A key that was read again.
    buffer: Vec<u8>,
}

/// Keys that can be read again.
enum Rest {
    /// The lines of the inputs, each with the number of bytes in those before. A place is a line's
    /// offset among the bytes of all inputs.
    Lines {
        inputs: Vec<(u64, KeptInput)>,
        spec: KeySpec,
    },
    /// Keys that are not as they are in the input, in a temporary file. A place is an offset in it,
    /// at which the key's length stands and then the key.
    Derived {
        file: File,
        written: u64,
        unwritten: Vec<u8>,
    },
}

const KEYS: &str = "a temporary file for the keys";

/// Bytes of keys in memory, or as many as the table of places has.
const MEMORY: usize = 24 << 20;

/// Bytes that are written to the temporary file at a time.
const WRITE: usize = 64 << 10;

impl KeyStore {
    fn new(job: &Job<'_>, kept: &[KeptInput], candidates: usize) -> Result<Self> {
        let rest = if job.keys.is_line() {
            let mut before = 0;
            let inputs = kept.iter().map(|input| {
                before += input.len;
                (before - input.len, input.clone())
            });
            Rest::Lines {
                inputs: inputs.collect(),
                spec: job.keys.clone(),
            }
        } else {
            let file =
                tempfile::tempfile().with_context(|| format!("cannot make {KEYS} in {}", env::temp_dir().display()))?;
            Rest::Derived {
                file,
                written: 0,
                unwritten: Vec::new(),
            }
        };
        Ok(Self {
            memory: Vec::new(),
            most: MEMORY.max(10 * candidates),
            rest,
            reads_input: false,
            buffer: Vec::new(),
        })
    }

    /// Keeps a key, which may be the line at `offset` of an input. Returns its place.
    fn keep(&mut self, key: &[u8], input: usize, offset: u64) -> io::Result<u64> {
        let (len, place) = (key.len(), self.memory.len());
        let short = u16::try_from(len).ok();
        if let Some(short) = short.filter(|_| place + 2 + len <= self.most) {
            self.memory.extend_from_slice(&short.to_le_bytes());
            self.memory.extend_from_slice(key);
            return Ok(place as u64);
        }
        self.reads_input |= matches!(self.rest, Rest::Lines { .. });
        Ok(self.most as u64 + self.rest.keep(key, input, offset)?)
    }

    /// Loads what a comparison at each place will read. See [`LineTable::touch`].
    fn touch(&self, places: impl Iterator<Item = u64>) {
        let first = |place: u64| self.memory.get(place as usize).map_or(0, |&byte| u64::from(byte));
        black_box(places.fold(0, |sum, place| sum ^ first(place) ^ first(place + 64)));
    }

    /// Whether the key at a place is this one.
    fn holds(&mut self, place: u64, key: &[u8]) -> Result<bool> {
        if let Some(place) = place.checked_sub(self.most as u64) {
            return self.rest.holds(place, key, &mut self.buffer);
        }
        let (len, bytes) = self.memory[place as usize..].split_at(2);
        let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
        Ok(&bytes[..len] == key)
    }
}

impl Rest {
    /// Keeps a key, which may be the line at `offset` of an input. Returns its place.
    fn keep(&mut self, key: &[u8], input: usize, offset: u64) -> io::Result<u64> {
        match self {
            Self::Lines { inputs, .. } => Ok(inputs[input].0 + offset),
            Self::Derived {
                file,
                written,
                unwritten,
            } => {
                let place = *written + unwritten.len() as u64;
                unwritten.extend_from_slice(&(key.len() as u64).to_le_bytes());
                unwritten.extend_from_slice(key);
                if unwritten.len() >= WRITE {
                    file.write_all_at(unwritten, *written)?;
                    *written += unwritten.len() as u64;
                    unwritten.clear();
                }
                Ok(place)
            }
        }
    }

    /// Whether the key at a place is this one.
    fn holds(&self, place: u64, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool> {
        let again = |name: &str| format!("cannot read {name} again");
        match self {
            Self::Lines { inputs, spec } => {
                let (before, kept) = &inputs[inputs.partition_point(|(before, _)| *before <= place) - 1];
                let at = place - before;
                // A carriage return and the terminator follow, or one of them, or the end.
                let len = (kept.len - at).min(key.len() as u64 + 2) as usize;
                buffer.resize(buffer.len().max(len), 0);
                let bytes = &mut buffer[..len];
                let read = kept
                    .open()
                    .and_then(|(file, start)| file.read_exact_at(bytes, start + at));
                read.with_context(|| again(&kept.name))?;
                let is_at_end = at + len as u64 == kept.len;
                let end = memchr::memchr(spec.terminator(), bytes).map(|end| end + 1);
                let line = end.or(is_at_end.then_some(len)).map(|end| &bytes[..end]);
                Ok(line.is_some_and(|line| spec.text(line) == key))
            }
            Self::Derived { written, unwritten, .. } if place >= *written => {
                let bytes = &unwritten[(place - written) as usize..];
                Ok(bytes[..8] == (key.len() as u64).to_le_bytes() && bytes[8..].starts_with(key))
            }
            Self::Derived { file, .. } => {
                let mut len = [0; 8];
                file.read_exact_at(&mut len, place).with_context(|| again(KEYS))?;
                if len != (key.len() as u64).to_le_bytes() {
                    return Ok(false);
                }
                buffer.resize(buffer.len().max(key.len()), 0);
                let bytes = &mut buffer[..key.len()];
                file.read_exact_at(bytes, place + 8).with_context(|| again(KEYS))?;
                Ok(bytes == key)
            }
        }
    }
}
