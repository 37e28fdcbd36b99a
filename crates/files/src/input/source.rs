//! The bytes of a file or of stdin, decompressed if they are compressed. `input.rs` and `part.rs`
//! call it.

use crate::identity::FileId;
use crate::positioned::FileExt;
use crate::progress::Progress;
use crate::stdout;
use flate2::bufread::GzDecoder;
use std::fs::{File, Metadata};
use std::hash::Hasher as _;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use twox_hash::xxhash3_64::Hasher;

pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn stdin() -> io::Result<File> {
    stdout::duplicate(&io::stdin())
}

/// The metadata of a file, which is not opened: the writer of a named pipe would take that for its
/// reader.
pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    if is_stdin(path) {
        stdin()?.metadata()
    } else {
        path.metadata()
    }
}

/// The identity of a file that is not opened; `None` if there is none.
pub fn identity(path: &Path) -> io::Result<Option<FileId>> {
    if is_stdin(path) {
        FileId::of_file(&stdin()?).map(Some)
    } else {
        FileId::at(path)
    }
}

/// The file; for `-` stdin, without a buffer.
pub fn open(path: &Path) -> io::Result<File> {
    // Reading would say so too, but only after the other inputs. (Windows opens no folder.)
    if cfg!(windows) && path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let file = if is_stdin(path) { stdin()? } else { File::open(path)? };
    if cfg!(unix) && file.metadata()?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    // It would grow as long as it is read.
    stdout::refuse(&file)?;
    Ok(file)
}

/// How messages name a file.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "stdin".into()
    } else {
        path.display().to_string()
    }
}

/// The bytes of a file, decompressed if they are compressed.
pub(super) fn decoded(
    mut file: impl Read + Send + 'static,
    progress: &Arc<Progress>,
) -> io::Result<Box<dyn Read + Send>> {
    let (head, magic) = Head::read(&mut file)?;
    progress.add(head.len);
    let head = Cursor::new(head.bytes).take(head.len as u64);
    let progress = Arc::clone(progress);
    let bytes = head.chain(Counted { file, progress });
    Ok(match magic {
        Magic::None | Magic::Foreign(_) => Box::new(bytes),
        Magic::Gzip => Box::new(Gzip(Some(GzDecoder::new(BufReader::with_capacity(PACKED, bytes))))),
        Magic::Zstd => Box::new(Zstd(zstd::Decoder::new(bytes)?)),
    })
}

/// Bytes of gzip that are read at a time, as many as flate2 reads.
const PACKED: usize = 32 << 10;

/// The bytes of all members of a gzip file. Zeros between them and at the end are padding, as for
/// Python's gzip; `MultiGzDecoder` takes them for a member.
struct Gzip<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.0 = next_member(self.0.take().expect("it was read").into_inner())?;
        }
        Ok(0)
    }
}

/// The member of gzip after the end of another one; `None` if only zeros follow.
fn next_member<R: BufRead>(mut file: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let bytes = match file.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let (is_end, is_member) = (bytes.is_empty(), zeros < bytes.len());
        file.consume(zeros);
        if is_end {
            return Ok(None);
        }
        if is_member {
            return Ok(Some(GzDecoder::new(file)));
        }
    }
}

/// Says what to do about a window that the library refuses: it would have to be in memory.
struct Zstd<R: Read>(zstd::Decoder<'static, BufReader<R>>);

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            if !error.to_string().contains("too much memory") {
                return error;
            }
            io::Error::other("its window is larger than 128 MiB, the limit; unpack it by `zstd -dc --long=31`")
        })
    }
}

/// Whether a file is compressed. Fails if its format is not read.
pub fn is_compressed(path: &Path) -> io::Result<bool> {
    let (_, magic) = Head::read(&mut File::open(path)?)?;
    Ok(magic != Magic::None)
}

/// Bytes of a file that are searched for a zero byte. `grep` and `git` tell binary files so.
const SEARCHED: u64 = 64 << 10;

/// What keeps a file from being lines of text, if anything does. With `-z` its lines have zeros.
pub fn no_text(path: &Path, null: bool) -> io::Result<Option<String>> {
    if is_compressed(path)? {
        return Ok(Some("it is compressed, and the output is not".into()));
    }
    let mut head = Vec::new();
    File::open(path)?.take(SEARCHED).read_to_end(&mut head)?;
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Ok(Some("it begins like text in UTF-16; convert it to UTF-8 first".into()));
    }
    let zero = memchr::memchr(0, &head).filter(|_| !null);
    Ok(zero.map(|at| {
        format!(
            "a zero byte at offset {at} shows that it is not text; -z is for lines that end with a zero byte, and -o \
             writes another file"
        )
    }))
}

/// The first bytes of a file.
pub(super) struct Head {
    bytes: [u8; LONGEST],
    len: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Magic {
    None,
    Gzip,
    Zstd,
    /// The format of this tool, which is not read.
    Foreign(&'static str),
}

/// Bytes of the longest magic.
const LONGEST: usize = 10;

/// What compressed files begin with. `#` is a digit, and `^` one of the 16 bytes from 0x50 on.
const MAGICS: [(&[u8], Magic); 11] = [
    (&[0x1f, 0x8b], Magic::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], Magic::Zstd),
    // A skippable frame, such as that of pzstd before each frame of data.
    (&[b'^', 0x2a, 0x4d, 0x18], Magic::Zstd),
    (b"\xfd7zXZ\0", Magic::Foreign("xz")),
    (b"LZIP\x01", Magic::Foreign("lzip")),
    (b"\x89LZO\0\r\n\x1a\n", Magic::Foreign("lzop")),
    // The suffix is .Z.
    (&[0x1f, 0x9d], Magic::Foreign("compress")),
    // The size of a block, and the digits of pi, or those of its root in a file without a block.
    (b"BZh#1AY&SY", Magic::Foreign("bzip2")),
    (b"BZh#\x17rE8P\x90", Magic::Foreign("bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], Magic::Foreign("lz4")),
    // The format of `lz4 -l` and of Linux kernels.
    (&[0x02, 0x21, 0x4c, 0x18], Magic::Foreign("lz4")),
];

/// Whether bytes begin like a magic, as far as both go.
fn is_like(magic: &[u8], head: &[u8]) -> bool {
    let mut pairs = magic.iter().zip(head);
    pairs.all(|(magic, byte)| match magic {
        b'#' => byte.is_ascii_digit(),
        b'^' => byte & 0xf0 == 0x50,
        _ => magic == byte,
    })
}

impl Head {
    /// Fails if the format is not read.
    pub(super) fn read(file: &mut impl Read) -> io::Result<(Self, Magic)> {
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

/// A file from a place on, with a cursor of its own.
pub(super) struct At {
    pub(super) file: Arc<File>,
    pub(super) at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// How many bytes a file has, and their hash, once it was read to its end.
pub type Digest = Arc<OnceLock<(u64, u64)>>;

/// Hashes the bytes of a file while somebody reads them.
struct Digested<R> {
    file: R,
    hasher: Hasher,
    bytes: u64,
    to: Digest,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            // A second time it is the same.
            let _ = self.to.set((self.bytes, self.hasher.finish()));
        }
        self.bytes += read as u64;
        self.hasher.write(&buffer[..read]);
        Ok(read)
    }
}

/// The bytes of a file as they are, hashed on the way.
pub fn digested(file: File, to: &Digest) -> impl Read + Send + 'static {
    Digested {
        file,
        hasher: Hasher::new(),
        bytes: 0,
        to: Arc::clone(to),
    }
}

/// Opens a file, or stdin for `-`. Its bytes are decompressed if they are compressed.
pub(super) fn opened(
    path: &Path,
    progress: &Arc<Progress>,
    digest: Option<&Digest>,
) -> io::Result<Box<dyn Read + Send>> {
    let file = open(path)?;
    match digest {
        Some(digest) => decoded(digested(file, digest), progress),
        None => decoded(file, progress),
    }
}

pub(super) struct Counted<R> {
    pub(super) file: R,
    pub(super) progress: Arc<Progress>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.add(read);
        Ok(read)
    }
}
