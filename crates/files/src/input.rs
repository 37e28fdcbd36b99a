//! Opens files and stdin, decompresses them, and cuts their bytes into chunks of whole records.

mod ahead;
mod files;
mod kept;
mod lines;
mod source;

pub use files::Files;
pub use kept::{KeptInput, Stamp};
pub use lines::{BOM, LineCutter};
pub use source::{Digest, digested, identity, is_stdin, name, open};
pub(crate) use source::{is_compressed, no_text};

use crate::progress::Progress;
use ahead::Ahead;
use anyhow::{Context, Result};
use source::{At, Counted, metadata, opened};
use std::collections::VecDeque;
use std::fs::Metadata;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a chunk: it stays in the L2 cache while a thread works on it.
const CHUNK: usize = 256 << 10;

/// Bytes of a full chunk. Two threads that write in order wait for each other so often that chunks
/// of 256 KiB make them 1.6 times as fast as one, and these 1.8 times, as those of 1 MiB do.
const FULL_CHUNK: usize = 512 << 10;

/// The most compressed files that are unpacked at a time: each takes 16 MiB.
const MOST_AHEAD: usize = 8;

/// Records in a row, as they are in the input, with their terminators.
#[derive(Default)]
pub struct Chunk<R> {
    buffer: Vec<u8>,
    len: usize,
    /// The records in the bytes: their places, keys, hashes.
    pub records: R,
    /// The number of the input that the chunk comes from.
    pub input: usize,
    /// Where the chunk begins in this input.
    pub offset: u64,
    /// The share of the input that has been read, if its size is known.
    pub share: Option<f64>,
}

impl<R> Chunk<R> {
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The bytes, and what follows from them.
    pub fn parts(&mut self) -> (&[u8], &mut R) {
        (&self.buffer[..self.len], &mut self.records)
    }

    /// Moves the records for which `keeps` is true to the front, and returns their bytes. `ends`
    /// says where each record ends.
    pub fn retain(&mut self, ends: impl Fn(&R) -> &[usize], mut keeps: impl FnMut(usize) -> bool) -> &[u8] {
        let ends = ends(&self.records);
        let end_before = |record: usize| if record == 0 { 0 } else { ends[record - 1] };
        let (mut kept, mut record) = (0, 0);
        while record < ends.len() {
            let first = record;
            while record < ends.len() && keeps(record) {
                record += 1;
            }
            let run = end_before(first)..end_before(record);
            if run.start != kept {
                self.buffer.copy_within(run.clone(), kept);
            }
            kept += run.len();
            // The record after a run is not kept.
            record += 1;
        }
        &self.buffer[..kept]
    }
}

/// Cuts the bytes of inputs into whole records.
pub trait Cut: Send + 'static {
    /// The records in the bytes of a chunk.
    type Records: Default + Send + 'static;

    /// Begins the next input. Returns whether [`next`](Self::next) yields its chunks; otherwise its
    /// bytes are read and cut.
    fn begin(&mut self, number: usize, name: &str, is_apart: bool) -> Result<bool>;

    /// Finds the whole records of `bytes`; the rest, which follows them, is left, and is the
    /// beginning of the next call's bytes.
    fn cut(&mut self, bytes: &[u8], is_end: bool, records: &mut Self::Records) -> Result<Range<usize>>;

    /// How lines end.
    fn lines(&self) -> &LineCutter;

    /// Replaces `bytes` and `records` by the next chunk. Returns its share of the input's bytes, or
    /// `None` at the end.
    fn next(&mut self, _bytes: &mut Vec<u8>, _records: &mut Self::Records) -> Result<Option<usize>> {
        Ok(None)
    }
}

/// Reads the inputs one after another.
pub struct Reader<C> {
    inputs: VecDeque<Input>,
    /// How many inputs are unpacked at a time, if they are compressed; how many were looked at.
    ahead: usize,
    looked_at: usize,
    current: Option<Box<dyn Read + Send>>,
    /// Where the hash of each input goes, if that is wanted.
    digests: Vec<Digest>,
    /// Whether the cutter yields the chunks of an input, in place of `current`.
    is_cutters: bool,
    /// The names of the inputs opened so far.
    names: Vec<String>,
    /// The beginning of a record whose end was not read yet.
    carry: Vec<u8>,
    /// Where `carry` begins in the input.
    offset: u64,
    cutter: C,
    /// Whether each input has an output of its own, so that none continues the one before.
    is_apart: bool,
    /// Whether a chunk waits until it is full, so that where it ends follows from the bytes alone.
    is_full: bool,
    progress: Arc<Progress>,
}

/// Bytes to read.
pub enum Input {
    /// A file, or stdin for `-`; decompressed if it is compressed.
    Path(PathBuf),
    /// Bytes that were read before, as they are.
    Kept(KeptInput),
    /// A file that is unpacked already, with its name.
    Ahead(String, Ahead),
}

impl Input {
    pub fn all(files: &[PathBuf]) -> VecDeque<Self> {
        files.iter().cloned().map(Self::Path).collect()
    }

    /// The bytes of all inputs, if all are regular files.
    pub fn total(inputs: &VecDeque<Self>) -> Option<u64> {
        inputs.iter().map(Self::bytes).sum()
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Path(path) => Some(metadata(path).ok().filter(Metadata::is_file)?.len()),
            Self::Kept(kept) => Some(kept.len),
            Self::Ahead(..) => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Path(path) => name(path),
            Self::Kept(kept) => kept.name.clone(),
            Self::Ahead(name, _) => name.clone(),
        }
    }

    fn reader(self, progress: &Arc<Progress>, digest: Option<&Digest>) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Path(path) => opened(&path, progress, digest),
            Self::Ahead(_, ahead) => Ok(Box::new(ahead.opened()?)),
            Self::Kept(kept) => {
                let (file, start) = kept.open()?;
                let progress = Arc::clone(progress);
                let end = start + kept.len;
                let file = At { file, at: start, end };
                Ok(Box::new(Counted { file, progress }))
            }
        }
    }
}

impl<C: Cut> Reader<C> {
    pub fn new(inputs: VecDeque<Input>, cutter: C, progress: Arc<Progress>) -> Self {
        Self {
            inputs,
            ahead: 0,
            looked_at: 0,
            current: None,
            digests: Vec::new(),
            is_cutters: false,
            names: Vec::new(),
            carry: Vec::new(),
            offset: 0,
            cutter,
            is_apart: false,
            is_full: false,
            progress,
        }
    }

    /// Reads each input as if it were the only one: nothing is added at its end, and its header
    /// passes.
    pub fn apart(self, is_apart: bool) -> Self {
        Self { is_apart, ..self }
    }

    /// Hashes the bytes of each input, as they are in the file, on the way.
    pub fn hashed(self, digests: &[Digest]) -> Self {
        let digests = digests.to_vec();
        Self { digests, ..self }
    }

    /// Fills every chunk, also if the bytes come slowly. Then the chunks, and the share of the
    /// input up to each, are the same in every run and for any number of threads.
    pub fn full(self) -> Self {
        let is_full = true;
        Self { is_full, ..self }
    }

    /// Unpacks compressed files before their turn if there are more than two threads, which would
    /// wait for it. It takes a quarter more CPU time.
    pub fn ahead(self, threads: usize) -> Self {
        let ahead = if threads > 2 { threads.min(MOST_AHEAD) } else { 0 };
        Self { ahead, ..self }
    }

    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Fills the chunk with the next records. Returns whether there were any.
    pub fn fill(&mut self, chunk: &mut Chunk<C::Records>) -> Result<bool> {
        chunk.len = 0;
        loop {
            if self.current.is_none() && !self.is_cutters && !self.open_next()? {
                return Ok(false);
            }
            let name = self.names.len() - 1;
            if self
                .fill_from_current(chunk)
                .with_context(|| self.names[name].clone())?
            {
                chunk.input = name;
                chunk.share = self.progress.share();
                return Ok(true);
            }
        }
    }

    /// Lets threads unpack the next inputs, if these are compressed files. One alone is unpacked
    /// while others of its lines are worked on.
    fn read_ahead(&mut self) {
        if self.inputs.len() + self.names.len() == 1 {
            return;
        }
        let inputs = self.inputs.iter_mut().take(self.ahead).enumerate();
        for (number, input) in inputs.skip(self.looked_at) {
            let is_packed = |path: &Path| !is_stdin(path) && path.is_file() && is_compressed(path).unwrap_or(false);
            match input {
                Input::Path(path) if is_packed(path) => {
                    let digest = self.digests.get(self.names.len() + number).cloned();
                    let ahead = Ahead::start(path.clone(), Arc::clone(&self.progress), digest);
                    *input = Input::Ahead(name(path), ahead);
                }
                _ => {}
            }
        }
        self.looked_at = self.ahead.min(self.inputs.len());
    }

    fn open_next(&mut self) -> Result<bool> {
        self.read_ahead();
        let Some(input) = self.inputs.pop_front() else {
            return Ok(false);
        };
        self.looked_at = self.looked_at.saturating_sub(1);
        let name = input.name();
        let failed = || format!("cannot read {name}");
        self.is_cutters = self
            .cutter
            .begin(self.names.len(), &name, self.is_apart)
            .with_context(failed)?;
        if !self.is_cutters {
            let reader = input.reader(&self.progress, self.digests.get(self.names.len()));
            self.current = Some(reader.with_context(failed)?);
        }
        self.offset = 0;
        self.names.push(name);
        Ok(true)
    }

    /// Fills the chunk from the current input. Returns false at its end.
    fn fill_from_current(&mut self, chunk: &mut Chunk<C::Records>) -> Result<bool> {
        let buffer = &mut chunk.buffer;
        if self.is_cutters {
            let bytes = self.cutter.next(buffer, &mut chunk.records)?;
            chunk.len = buffer.len();
            self.progress.add(bytes.unwrap_or(0));
            self.is_cutters = bytes.is_some();
            return Ok(self.is_cutters);
        }
        let chunk_len = if self.is_full { FULL_CHUNK } else { CHUNK };
        let mut len = self.carry.len();
        buffer.resize(chunk_len + len, 0);
        // The memory of a long record is given back.
        buffer.shrink_to(4 * buffer.len());
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            if len == buffer.len() {
                // A vector takes twice the room that it had, so the copies stay linear. Only what
                // is used of it is touched.
                buffer.resize(len + chunk_len, 0);
            }
            let reader = self.current.as_mut().expect("an input is open");
            // At most a chunk at a time, like the threads that unpack ahead, so that the same
            // number of bytes was read.
            let most = buffer.len().min(len + CHUNK);
            let read = match reader.read(&mut buffer[len..most]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            let is_end = read == 0;
            len += read;
            if self.is_full && !is_end && len < buffer.len() {
                continue;
            }
            if is_end {
                self.current = None;
                let is_one_of_many = self.names.len() > 1 || !self.inputs.is_empty();
                if !self.is_apart && is_one_of_many && self.cutter.lines().is_only_mark(&buffer[..len]) {
                    // It would become a line.
                    return Ok(false);
                }
                let terminator = self.cutter.lines().terminator();
                if len > 0 && !self.is_apart && !self.inputs.is_empty() && buffer[len - 1] != terminator {
                    // Otherwise the next input would continue the last line. There is room: see
                    // above.
                    buffer[len] = terminator;
                    len += 1;
                }
            }
            self.cutter.lines().check_start(&buffer[..len])?;
            let whole = self.cutter.cut(&buffer[..len], is_end, &mut chunk.records)?;
            if whole.end > 0 {
                // A pipe may yield fewer bytes than requested. Its records do not wait for more.
                self.carry.extend_from_slice(&buffer[whole.end..len]);
                buffer.copy_within(whole.clone(), 0);
                chunk.len = whole.len();
                chunk.offset = self.offset + whole.start as u64;
                self.offset += whole.end as u64;
                return Ok(true);
            }
            if is_end {
                return Ok(false);
            }
        }
    }
}
