//! The bytes of a file or of stdin, decompressed if they are compressed. `input.rs` and `kept.rs`
//! call it.

use crate::identity::{FileId, regular};
use crate::positioned::FileExt;
use crate::progress::Progress;
use crate::stdout;
use flate2::bufread::GzDecoder;
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::hash::Hasher as _;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::ops::Range;
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

/// How results and messages name a file. A name that is not UTF-8 is quoted for the shell, as `ls`
/// does: `$'a\377'`. So is one that begins like it, so that different names differ.
pub fn name(path: &Path) -> String {
    match path.to_str() {
        _ if is_stdin(path) => "stdin".into(),
        Some(name) if !name.starts_with("$'") => name.into(),
        _ => quoted(path.as_os_str().as_encoded_bytes()),
    }
}

fn quoted(name: &[u8]) -> String {
    let mut text = String::from("$'");
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\'' | '\\' => text.extend(['\\', letter]),
                _ if letter.is_control() => add_octal(&mut text, letter.to_string().as_bytes()),
                _ => text.push(letter),
            }
        }
        add_octal(&mut text, chunk.invalid());
    }
    text + "'"
}

fn add_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "\\{byte:03o}").expect("a string takes everything");
    }
}

/// The bytes of a file, decompressed if they are compressed.
pub(super) fn decoded(
    mut file: impl Read + Send + 'static,
    progress: &Arc<Progress>,
) -> io::Result<Box<dyn Read + Send>> {
    let (head, magic) = Head::read(&mut file)?;
    progress.add(head.len);
    let progress = Arc::clone(progress);
    let bytes = head.before(Counted { file, progress });
    match magic {
        Magic::Gzip => unpacked(
            Gzip(Some(GzDecoder::new(BufReader::with_capacity(PACKED, bytes)))),
            magic,
        ),
        Magic::Zstd => unpacked(Zstd(zstd::Decoder::new(bytes)?), magic),
        _ => Ok(Box::new(bytes)),
    }
}

/// The bytes that were unpacked. Fails if they are an archive, or compressed again.
fn unpacked(mut file: impl Read + Send + 'static, packed: Magic) -> io::Result<Box<dyn Read + Send>> {
    let (head, magic) = Head::read_in(&mut file, packed)?;
    if magic != Magic::None {
        return Err(io::Error::other("it is compressed twice; unpack it once before"));
    }
    Ok(Box::new(head.before(file)))
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
pub(crate) fn is_compressed(path: &Path) -> io::Result<bool> {
    let (_, magic) = Head::read(&mut File::open(path)?)?;
    Ok(magic != Magic::None)
}

/// Whether bytes begin as text in UTF-16 does. No text in UTF-8 does.
pub(super) fn is_utf16(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff")
}

/// Why text in UTF-16 is not read.
pub(super) const UTF16: &str = "it begins like text in UTF-16; convert it by `iconv -f UTF-16 -t UTF-8`";

/// Bytes of a file that are searched for a zero byte. `grep` and `git` tell binary files so.
const SEARCHED: u64 = 64 << 10;

/// The reason why a file is not lines of text, if there is one. With `-z` its lines have zeros.
pub(crate) fn no_text(path: &Path, null: bool) -> io::Result<Option<String>> {
    if is_compressed(path)? {
        return Ok(Some("it is compressed, and the output is not".into()));
    }
    let mut head = Vec::new();
    File::open(path)?.take(SEARCHED).read_to_end(&mut head)?;
    if is_utf16(&head) {
        return Ok(Some(UTF16.into()));
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
    bytes: [u8; HEAD],
    len: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Magic {
    None,
    Gzip,
    Zstd,
    /// Compressed by a program, which unpacks it by `-dc`.
    Packed(&'static str),
    /// An archive, with its article, and the command that unpacks it.
    Archive(&'static str, &'static str),
    /// A table in a file of this format.
    Table(&'static str),
}

/// Bytes that are read at most for the magic: a header of tar.
const HEAD: usize = 512;

/// The beginnings of compressed files, archives and tables. `#` is a digit, and `^` one of the 16
/// bytes from 0x50 on.
const MAGICS: [(&[u8], Magic); 20] = [
    (&[0x1f, 0x8b], Magic::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], Magic::Zstd),
    // A skippable frame, such as that of pzstd before each frame of data.
    (&[b'^', 0x2a, 0x4d, 0x18], Magic::Zstd),
    (b"\xfd7zXZ\0", Magic::Packed("xz")),
    // The properties that every encoder has by default, and the low bytes of the dictionary's size.
    (b"\x5d\0\0", Magic::Packed("lzma")),
    (b"LZIP\x01", Magic::Packed("lzip")),
    (b"\x89LZO\0\r\n\x1a\n", Magic::Packed("lzop")),
    // The suffix is .Z.
    (&[0x1f, 0x9d], Magic::Packed("compress")),
    // The size of a block, and the digits of pi, or those of its root in a file without a block.
    (b"BZh#1AY&SY", Magic::Packed("bzip2")),
    (b"BZh#\x17rE8P\x90", Magic::Packed("bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], Magic::Packed("lz4")),
    // The format of `lz4 -l` and of Linux kernels.
    (&[0x02, 0x21, 0x4c, 0x18], Magic::Packed("lz4")),
    (b"PK\x03\x04", Magic::Archive("a zip", "unzip")),
    // An archive without a file, and the first of several parts.
    (b"PK\x05\x06", Magic::Archive("a zip", "unzip")),
    (b"PK\x07\x08", Magic::Archive("a zip", "unzip")),
    (b"7z\xbc\xaf", Magic::Archive("a 7z", "7z x")),
    (b"Rar!\x1a\x07", Magic::Archive("a rar", "unrar x")),
    // With the first byte of a page's header, or of the footer's: a text may begin with the others.
    (b"PAR1\x15", Magic::Table("Parquet")),
    (b"ARROW1\0\0", Magic::Table("Arrow")),
    (b"Obj\x01", Magic::Table("Avro")),
];

/// The magic of tar, and where it is in the header of the archive's first file.
const USTAR: &[u8] = b"ustar";
const USTAR_AT: usize = 257;
/// Where the header has the sum of its bytes, in octal digits. Archives of version 7 have no magic.
const TAR_SUM: Range<usize> = 148..156;
/// Bytes of this file's name. Zeros fill them.
const TAR_NAME: usize = 100;

/// Whether bytes begin like a magic, as far as both go.
fn is_like(magic: &[u8], head: &[u8]) -> bool {
    let mut pairs = magic.iter().zip(head);
    pairs.all(|(magic, byte)| match magic {
        b'#' => byte.is_ascii_digit(),
        b'^' => byte & 0xf0 == 0x50,
        _ => magic == byte,
    })
}

/// Whether bytes begin a header of tar, as far as they go: text with `-z` has no two zeros in a row
/// there, unless a line is empty.
fn is_like_tar(head: &[u8]) -> bool {
    let name = &head[..head.len().min(TAR_NAME)];
    let zeros = memchr::memchr(0, name).map_or(&[][..], |at| &name[at..]);
    zeros.len() > 1 && zeros.iter().all(|&byte| byte == 0) && head.len() < HEAD
}

fn is_tar(head: &[u8]) -> bool {
    head.get(USTAR_AT..)
        .is_some_and(|rest| (rest.starts_with(USTAR) || has_tar_sum(head)) && head[..USTAR_AT].contains(&0))
}

/// Whether bytes are a header of tar with the right sum, for which the sum's own bytes are blanks.
fn has_tar_sum(head: &[u8]) -> bool {
    if head.len() < HEAD {
        return false;
    }
    let sum_of = |bytes: &[u8]| bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>();
    let field = &head[TAR_SUM];
    let sum = sum_of(head) - sum_of(field) + field.len() * usize::from(b' ');
    let digits = std::str::from_utf8(field).unwrap_or("").trim_matches([' ', '\0']);
    usize::from_str_radix(digits, 8) == Ok(sum)
}

impl Head {
    /// Fails if the format is not read.
    pub(super) fn read(file: &mut impl Read) -> io::Result<(Self, Magic)> {
        Self::read_in(file, Magic::None)
    }

    /// The same for bytes that were `packed`.
    fn read_in(file: &mut impl Read, packed: Magic) -> io::Result<(Self, Magic)> {
        let (mut bytes, mut len) = ([0; HEAD], 0);
        let is_open = |head: &[u8]| {
            let mut longer = MAGICS.iter().filter(|(magic, _)| magic.len() > head.len());
            longer.any(|(magic, _)| is_like(magic, head)) || is_like_tar(head)
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
        if is_tar(head) {
            let unpack = match packed {
                Magic::Gzip => "tar xzf",
                Magic::Zstd => "tar --zstd -xf",
                _ => "tar xf",
            };
            return Err(io::Error::other(format!(
                "it is a tar archive; unpack it by `{unpack}`"
            )));
        }
        let (format, remedy) = match magic {
            Magic::None | Magic::Gzip | Magic::Zstd => return Ok((Self { bytes, len }, magic)),
            Magic::Packed(tool) => (format!("compressed by {tool}"), format!("unpack it by `{tool} -dc`")),
            Magic::Archive(kind, tool) => (format!("{kind} archive"), format!("unpack it by `{tool}`")),
            Magic::Table(format) => {
                let remedy = "convert it to CSV or to lines of JSON";
                (format!("a file of {format}"), remedy.into())
            }
        };
        let remedy = match packed {
            Magic::Gzip => "unpack the gzip first",
            Magic::Zstd => "unpack the zstd first",
            _ => &remedy,
        };
        Err(io::Error::other(format!("it is {format}; {remedy}")))
    }

    /// These bytes, and those of the file after them.
    fn before(self, file: impl Read) -> impl Read {
        Cursor::new(self.bytes).take(self.len as u64).chain(file)
    }
}

/// A part of a file, with a cursor of its own.
pub(super) struct At {
    pub(super) file: Arc<File>,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..len], self.at)?;
        if read == 0 && len > 0 {
            return Err(cut(self.file.metadata()?.len(), self.end));
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// The error of a file that lost its end while it was read, as a log does by copytruncate: what is
/// missing was perhaps not read.
fn cut(now: u64, before: u64) -> io::Error {
    io::Error::other(format!(
        "it changed during the run: it had {before} bytes, and has {now} now"
    ))
}

/// How many bytes a file has, and their hash, once it was read to its end.
pub type Digest = Arc<OnceLock<(u64, u64)>>;

/// A file that is read up to its end, which must not come before the end that it had at first.
struct Whole {
    file: File,
    /// The bytes that it had; 0 if it is not a regular file.
    len: u64,
    /// The hash of its bytes and their number so far, and where these go.
    hashed: Option<(Hasher, u64, Digest)>,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.len > 0 {
            // Not by the bytes that were read: files of the kernel say more than they have.
            let now = self.file.metadata()?.len();
            if now < self.len {
                return Err(cut(now, self.len));
            }
        }
        if let Some((hasher, bytes, digest)) = &mut self.hashed {
            if read == 0 && !buffer.is_empty() {
                // A second time it is the same.
                let _ = digest.set((*bytes, hasher.finish()));
            }
            *bytes += read as u64;
            hasher.write(&buffer[..read]);
        }
        Ok(read)
    }
}

impl Whole {
    fn new(file: File, digest: Option<&Digest>) -> io::Result<Self> {
        let len = regular(&file)?.map_or(0, |metadata| metadata.len());
        let hashed = digest.map(|digest| (Hasher::new(), 0, Arc::clone(digest)));
        Ok(Self { file, len, hashed })
    }
}

/// The bytes of a file as they are, hashed on the way.
pub fn digested(file: File, to: &Digest) -> io::Result<impl Read + Send + 'static> {
    Whole::new(file, Some(to))
}

/// Opens a file, or stdin for `-`. Its bytes are decompressed if they are compressed.
pub(super) fn opened(
    path: &Path,
    progress: &Arc<Progress>,
    digest: Option<&Digest>,
) -> io::Result<Box<dyn Read + Send>> {
    decoded(Whole::new(open(path)?, digest)?, progress)
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
