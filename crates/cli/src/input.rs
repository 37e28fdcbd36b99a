//! Opens files and stdin, decompresses them, and cuts their bytes into chunks of whole records.

mod part;

pub(crate) use part::Part;

use crate::keys::{Framer, KeySpec, Keyed};
use crate::progress::Progress;
use crate::stdout;
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
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
            Self::Path(path) if is_stdin(path) => "stdin".into(),
            Self::Path(path) => path.display().to_string(),
            Self::Part(part) => part.name.clone(),
        }
    }

    fn reader(self, progress: &Arc<Progress>) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Path(path) => decoded(open(&path)?, progress),
            Self::Part(part) => {
                let (file, start) = part.open()?;
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                let progress = Arc::clone(progress);
                Ok(Box::new(Counted { file, progress }.take(part.len)))
            }
        }
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Those of a file that is not opened: the writer of a named pipe would take that for its reader.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    if is_stdin(path) {
        stdin()?.metadata()
    } else {
        path.metadata()
    }
}

/// The file; for `-` stdin, without a buffer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = if is_stdin(path) { stdin()? } else { File::open(path)? };
    let metadata = file.metadata()?;
    // Reading would say so too, but only after the other inputs.
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    // It would grow as long as it is read.
    stdout::refuse(&metadata)?;
    Ok(file)
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

/// The bytes of a file, decompressed if they are compressed.
fn decoded(mut file: File, progress: &Arc<Progress>) -> io::Result<Box<dyn Read + Send>> {
    let (head, magic) = Head::read(&mut file)?;
    progress.add(head.len);
    let head = Cursor::new(head.bytes).take(head.len as u64);
    let progress = Arc::clone(progress);
    let bytes = head.chain(Counted { file, progress });
    Ok(match magic {
        Magic::None | Magic::Foreign(_) => Box::new(bytes),
        Magic::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Magic::Zstd => Box::new(zstd::Decoder::new(bytes)?),
    })
}

/// The first bytes of a file.
struct Head {
    bytes: [u8; LONGEST],
    len: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Magic {
    None,
    Gzip,
    Zstd,
    /// The format of this tool, which is not read.
    Foreign(&'static str),
}

/// Bytes of the longest magic.
const LONGEST: usize = 10;

/// What compressed files begin with. `#` is a digit.
const MAGICS: [(&[u8], Magic); 7] = [
    (&[0x1f, 0x8b], Magic::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], Magic::Zstd),
    // The frame of pzstd before each frame of data.
    (&[0x50, 0x2a, 0x4d, 0x18], Magic::Zstd),
    (b"\xfd7zXZ\0", Magic::Foreign("xz")),
    // The size of a block, and the digits of pi, or those of its root in a file without a block.
    (b"BZh#1AY&SY", Magic::Foreign("bzip2")),
    (b"BZh#\x17rE8P\x90", Magic::Foreign("bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], Magic::Foreign("lz4")),
];

/// Whether bytes begin like a magic, as far as both go.
fn is_like(magic: &[u8], head: &[u8]) -> bool {
    let mut pairs = magic.iter().zip(head);
    pairs.all(|(magic, byte)| magic == byte || *magic == b'#' && byte.is_ascii_digit())
}

impl Head {
    /// Fails if the format is not read.
    fn read(file: &mut impl Read) -> io::Result<(Self, Magic)> {
        let (mut bytes, mut len) = ([0; LONGEST], 0);
        let is_open = |head: &[u8]| {
            let mut longer = MAGICS.iter().filter(|(magic, _)| magic.len() > head.len());
            longer.any(|(magic, _)| is_like(magic, head))
        };
        // Not longer than until it is certain: someone may be typing.
        while is_open(&bytes[..len]) {
            match file.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let head = &bytes[..len];
        let mut whole = MAGICS.iter().filter(|(magic, _)| magic.len() <= len);
        let found = whole.find(|(magic, _)| is_like(magic, head));
        let magic = found.map_or(Magic::None, |&(_, magic)| magic);
        if let Magic::Foreign(tool) = magic {
            return Err(io::Error::other(format!(
                "it is compressed by {tool}; unpack it by `{tool} -dc`"
            )));
        }
        Ok((Self { bytes, len }, magic))
    }
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
