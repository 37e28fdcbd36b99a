//! Opens files and stdin, decompresses them, and cuts their bytes into chunks of whole records.

use crate::keys::{Framer, KeySpec, Keyed};
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
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
    /// Where the chunk begins among the bytes of all inputs.
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
    offset: u64,
    framer: Framer,
    progress: Arc<Progress>,
}

/// Bytes to read: a file, stdin, or a file that is open.
pub(crate) enum Input {
    Path(PathBuf),
    Open(File),
}

impl Input {
    /// These files, or stdin if there are none.
    pub(crate) fn all(files: &[PathBuf]) -> VecDeque<Self> {
        if files.is_empty() {
            return VecDeque::from([Self::Path("-".into())]);
        }
        files.iter().cloned().map(Self::Path).collect()
    }

    /// The bytes of all inputs, if all are regular files.
    pub(crate) fn total(inputs: &VecDeque<Self>) -> Option<u64> {
        inputs.iter().map(Self::bytes).sum()
    }

    fn bytes(&self) -> Option<u64> {
        let metadata = match self {
            Self::Path(path) if is_stdin(path) => stdin_file().ok()?.metadata(),
            Self::Path(path) => path.metadata(),
            Self::Open(file) => file.metadata(),
        };
        metadata.ok().filter(Metadata::is_file).map(|metadata| metadata.len())
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Stdin as a file, without a buffer.
pub(crate) fn stdin_file() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
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
                chunk.offset = self.offset;
                chunk.share = self.progress.share();
                self.offset += chunk.len as u64;
                return Ok(true);
            }
        }
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(input) = self.inputs.pop_front() else {
            return Ok(false);
        };
        let name = match &input {
            Input::Path(path) if is_stdin(path) => "stdin".into(),
            Input::Path(path) => path.display().to_string(),
            Input::Open(_) => "a temporary file".into(),
        };
        let opened = match input {
            Input::Path(path) if is_stdin(&path) => stdin_file(),
            Input::Path(path) => File::open(path),
            Input::Open(file) => Ok(file),
        };
        let decoded = opened.and_then(|file| decoded(file, &self.progress));
        self.current = Some(decoded.with_context(|| format!("cannot read {name}"))?);
        self.names.push(name);
        self.framer.next_input();
        Ok(true)
    }

    /// Fills the chunk from the current input. Returns false at its end.
    fn fill_from_current(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let buffer = &mut chunk.buffer;
        if buffer.len() < CHUNK + self.carry.len() {
            buffer.resize(CHUNK + self.carry.len(), 0);
        }
        let mut len = self.carry.len();
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            if len == buffer.len() {
                // Twice as large for a long record, so that the copies stay linear.
                buffer.resize(2 * len, 0);
            }
            let reader = self.current.as_mut().expect("an input is open");
            let read = match reader.read(&mut buffer[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
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
            let keeps_header = self.names.len() == 1;
            let whole = self
                .framer
                .cut(&buffer[..len], is_end, keeps_header, &mut chunk.keyed)?;
            if whole.end > 0 {
                // A pipe gives less than was asked for: its records do not wait for more.
                self.carry.extend_from_slice(&buffer[whole.end..len]);
                buffer.copy_within(whole.clone(), 0);
                chunk.len = whole.len();
                return Ok(true);
            }
            if is_end {
                return Ok(false);
            }
        }
    }
}

/// The bytes of a file, decompressed if they are compressed.
fn decoded(mut file: File, progress: &Arc<Progress>) -> io::Result<Box<dyn Read + Send>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let (mut head, mut len) = ([0; 4], 0);
    // Not longer than until it is certain: someone may be typing.
    while len < head.len() && (GZIP.starts_with(&head[..len]) || ZSTD.starts_with(&head[..len])) {
        match file.read(&mut head[len..])? {
            0 => break,
            read => len += read,
        }
    }
    progress.add(len);
    let head = Cursor::new(head).take(len as u64);
    let rest = Counted {
        file,
        progress: Arc::clone(progress),
    };
    let magic = &head.get_ref().get_ref()[..len];
    Ok(if magic.starts_with(GZIP) {
        Box::new(flate2::read::MultiGzDecoder::new(head.chain(rest)))
    } else if magic.starts_with(ZSTD) {
        Box::new(zstd::Decoder::new(head.chain(rest))?)
    } else {
        Box::new(head.chain(rest))
    })
}

struct Counted {
    file: File,
    progress: Arc<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.add(read);
        Ok(read)
    }
}
