//! Opens files and stdin, decompresses them, and cuts their bytes into chunks of whole records.

mod part;
mod source;

pub(crate) use part::Part;
pub(crate) use source::{identity, is_stdin, open};

use crate::keys::{Framer, KeySpec, Keyed};
use crate::progress::Progress;
use anyhow::{Context, Result};
use source::{At, Counted, decoded, metadata, name};
use std::collections::VecDeque;
use std::fs::Metadata;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a chunk: it stays in the L2 cache while a thread works on it.
const CHUNK: usize = 256 << 10;

/// Records in a row, as they are in the input, with their terminators.
#[derive(Default)]
pub(crate) struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// What follows from the bytes: records, keys, hashes.
    pub(crate) keyed: Keyed,
    /// The number of the input that the chunk comes from.
    pub(crate) input: usize,
    /// Where the chunk begins in this input.
    pub(crate) offset: u64,
    /// The share of the input that has been read, if its size is known.
    pub(crate) share: Option<f64>,
}

impl Chunk {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The bytes, and what follows from them.
    pub(crate) fn parts(&mut self) -> (&[u8], &mut Keyed) {
        (&self.buffer[..self.len], &mut self.keyed)
    }

    /// Moves the records for which `keeps` is true to the front, and returns their bytes.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(usize) -> bool) -> &[u8] {
        let ends = &self.keyed.ends;
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

/// Reads the inputs one after another.
pub(crate) struct Reader {
    inputs: VecDeque<Input>,
    current: Option<Box<dyn Read + Send>>,
    /// The names of the inputs opened so far.
    pub(crate) names: Vec<String>,
    /// The beginning of a record whose end was not read yet.
    carry: Vec<u8>,
    /// Where `carry` begins in the input.
    offset: u64,
    framer: Framer,
    progress: Arc<Progress>,
}

/// Bytes to read.
pub(crate) enum Input {
    /// A file, or stdin for `-`; decompressed if it is compressed.
    Path(PathBuf),
    /// Bytes that were read before, as they are.
    Part(Part),
}

impl Input {
    pub(crate) fn all(files: &[PathBuf]) -> VecDeque<Self> {
        files.iter().cloned().map(Self::Path).collect()
    }

    /// The bytes of all inputs, if all are regular files.
    pub(crate) fn total(inputs: &VecDeque<Self>) -> Option<u64> {
        inputs.iter().map(Self::bytes).sum()
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Path(path) => Some(metadata(path).ok().filter(Metadata::is_file)?.len()),
            Self::Part(part) => Some(part.len),
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => name(path),
            Self::Part(part) => part.name.clone(),
        }
    }

    fn reader(self, progress: &Arc<Progress>) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Path(path) => decoded(open(&path)?, progress),
            Self::Part(part) => {
                let (file, start) = part.open()?;
                let progress = Arc::clone(progress);
                let file = At { file, at: start };
                Ok(Box::new(Counted { file, progress }.take(part.len)))
            }
        }
    }
}

impl Reader {
    pub(crate) fn new(inputs: VecDeque<Input>, keys: KeySpec, progress: Arc<Progress>) -> Self {
        Self {
            inputs,
            current: None,
            names: Vec::new(),
            carry: Vec::new(),
            offset: 0,
            framer: Framer::new(keys),
            progress,
        }
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Fills the chunk with the next records. Returns whether there were any.
    pub(crate) fn fill(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.keyed.clear();
        chunk.len = 0;
        loop {
            if self.current.is_none() && !self.open_next()? {
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

    fn open_next(&mut self) -> Result<bool> {
        let Some(input) = self.inputs.pop_front() else {
            return Ok(false);
        };
        let name = input.name();
        let reader = input.reader(&self.progress);
        self.current = Some(reader.with_context(|| format!("cannot read {name}"))?);
        self.offset = 0;
        self.names.push(name);
        self.framer.next_input();
        Ok(true)
    }

    /// Fills the chunk from the current input. Returns false at its end.
    fn fill_from_current(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let buffer = &mut chunk.buffer;
        let mut len = self.carry.len();
        buffer.resize(CHUNK + len, 0);
        // The memory of a long record is given back.
        buffer.shrink_to(4 * buffer.len());
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            if len == buffer.len() {
                // A vector takes twice the room that it had, so the copies stay linear. Only what
                // is used of it is touched.
                buffer.resize(len + CHUNK, 0);
            }
            let reader = self.current.as_mut().expect("an input is open");
            let read = match reader.read(&mut buffer[len..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            let is_end = read == 0;
            len += read;
            if is_end {
                self.current = None;
                let terminator = self.framer.terminator();
                if len > 0 && !self.inputs.is_empty() && buffer[len - 1] != terminator {
                    // Otherwise the next input would continue the last line. There is room: see
                    // above.
                    buffer[len] = terminator;
                    len += 1;
                }
            }
            let whole = self.framer.cut(&buffer[..len], is_end, &mut chunk.keyed)?;
            if whole.end > 0 {
                // A pipe gives less than was asked for: its records do not wait for more.
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
