//! Filter files, recognized by their content: snapshots of lanebloom, Guava's streams, and chunks
//! of RedisBloom. `query`, `merge`, `info` and `convert` read them here.

use crate::bank::BankFile;
use crate::resp::{self, Dump};
use anyhow::{Context, Result, bail};
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::codec::{self, Identity, Kind, SnapshotHeader};
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, Hashed, Murmur3, Statistics};
use lanebloom_files::identity::regular;
use lanebloom_files::input::{self, is_stdin};
use lanebloom_files::unfinished::{self, is_unfinished};
use lanebloom_formats::GuavaBloom;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::Path;

/// A file, with what is in it.
pub(crate) struct FilterFile {
    /// The path as it was given.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) content: Content,
}

#[expect(clippy::large_enum_variant, reason = "a command has one or two of them")]
pub(crate) enum Content {
    Filter(AnyFilter),
    Unreadable(Unreadable),
    Bank(BankFile),
    Bitmap(ConcurrentBitmap),
    Guava(GuavaBloom),
    Redis(Dump),
}

/// A snapshot or delta of no use without something that is not in the file. Its checksums are
/// right.
pub(crate) struct Unreadable {
    pub(crate) header: SnapshotHeader,
    /// The missing thing.
    pub(crate) reason: &'static str,
}

impl FilterFile {
    /// Reads a file, or stdin if the path is `-`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = input::name(path);
        if is_unfinished(path) {
            bail!("cannot read {name}: {}", unfinished::REFUSED);
        }
        let (bytes, content) = read(path).with_context(|| name.clone())?;
        Ok(Self { name, bytes, content })
    }

    /// The hasher of the keys, for [`find`](Self::find). Fails if the file's keys cannot be hashed.
    pub(crate) fn hasher(&self) -> Result<AnyHasher> {
        let hasher = match &self.content {
            Content::Unreadable(other) => bail!("{}: {}", self.name, other.reason),
            // They take the keys' bytes.
            Content::Guava(_) | Content::Redis(_) => return Ok(Murmur3::default().into()),
            content => content.hasher(),
        };
        match hasher {
            None => bail!("{}: a ConcurrentBitmap holds numbers, not keys", self.name),
            Some(AnyHasher::Unknown { identity, .. }) if *identity == Identity::SipHash13 => bail!(
                "{}: its keys are hashed by SipHash-1-3 with a secret key, which is not in the file",
                self.name
            ),
            Some(AnyHasher::Unknown { .. }) => bail!(
                "{}: its keys are hashed by a BuildHasher, which only the program that made it has",
                self.name
            ),
            Some(hasher) => Ok(*hasher),
        }
    }

    /// Writes which keys are present. `hashes` are the keys' hashes by [`hasher`](Self::hasher),
    /// and `keys` returns their bytes.
    pub(crate) fn find<'a>(&self, hashes: &[u64], keys: impl Fn() -> Vec<&'a [u8]>, found: &mut [bool]) {
        match &self.content {
            Content::Filter(filter) => {
                let looked_up = filter.contains_batch(Hashed::slice(hashes), found);
                looked_up.expect("a hash needs no hasher");
            }
            Content::Guava(filter) => filter.contains_batch(&keys(), found),
            Content::Redis(dump) => dump.filter.contains_batch(&keys(), found),
            Content::Unreadable(_) | Content::Bank(_) | Content::Bitmap(_) => unreachable!("`query` refuses it"),
        }
    }
}

const REFUSED: &str = "`merge` and `convert` refuse it";

impl Content {
    /// The kind of the content, in a few words.
    pub(crate) fn kind(&self) -> String {
        let kind = match self {
            Self::Filter(filter) => filter.kind(),
            Self::Unreadable(other) => other.header.kind,
            Self::Bank(bank) => bank.header.kind,
            Self::Bitmap(_) => Kind::Bitmap,
            Self::Guava(_) => return "GuavaBloom".into(),
            Self::Redis(_) => return "RedisBloom".into(),
        };
        kind.to_string()
    }

    /// The hasher of a filter of lanebloom.
    pub(crate) fn hasher(&self) -> Option<&AnyHasher> {
        match self {
            Self::Filter(filter) => Some(filter.hasher()),
            Self::Bank(file) => Some(file.bank.hasher()),
            Self::Unreadable(_) | Self::Bitmap(_) | Self::Guava(_) | Self::Redis(_) => None,
        }
    }

    /// The number of filters, their memory in bytes, and their statistics.
    pub(crate) fn measured(&self) -> (usize, usize, Statistics) {
        match self {
            Self::Filter(filter) => {
                let filters = match filter {
                    AnyFilter::Scalable(filter) => filter.layers().len(),
                    _ => 1,
                };
                (filters, filter.memory_bytes(), filter.statistics())
            }
            Self::Bitmap(bitmap) => (
                1,
                bitmap.memory_bytes(),
                Statistics::new(0.0, bitmap.len() as usize, 0.0),
            ),
            Self::Guava(filter) => (1, filter.memory_bytes(), filter.statistics()),
            Self::Redis(Dump { filter, .. }) => (filter.info().filters, filter.memory_bytes(), filter.statistics()),
            Self::Unreadable(_) | Self::Bank(_) => unreachable!("{REFUSED}"),
        }
    }

    pub(crate) fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        match self {
            Self::Filter(filter) => filter.snapshot().write_to(writer),
            Self::Bitmap(bitmap) => bitmap.snapshot().write_to(writer),
            Self::Unreadable(_) | Self::Bank(_) => unreachable!("{REFUSED}"),
            Self::Guava(filter) => filter.write_to(writer),
            Self::Redis(dump) => resp::write(&dump.filter, dump.key.as_deref().unwrap_or(b""), &mut writer),
        }
    }
}

/// The number of bytes, and what they are.
fn read(path: &Path) -> Result<(u64, Content)> {
    let mut file = input::open(path).context("cannot read it")?;
    let metadata = regular(&file).context("cannot read its size")?;
    // Stdin may have been read in part.
    if let Some(metadata) = metadata.filter(|_| !is_stdin(path)) {
        let bytes = metadata.len();
        return Ok((bytes, recognize(&mut BufReader::with_capacity(1 << 20, file), bytes)?));
    }
    // A pipe may have no end: what begins like no filter file is read no further, and a filter only
    // up to the first byte that follows it.
    let mut whole = head(&mut file)?;
    let most = match Form::of(&whole)? {
        Form::Guava(needed) => needed.saturating_add(1),
        Form::Snapshot => match SnapshotHeader::peek(&whole)? {
            // Others may follow it: one after another is in memory.
            header if unreadable(&header).is_some() => {
                let mut all = whole.chain(file).take(u64::MAX);
                let content = recognize(&mut all, u64::MAX)?;
                return Ok((u64::MAX - all.limit(), content));
            }
            // Names follow it.
            header if header.kind == Kind::Bank => u64::MAX,
            header => header.bytes.saturating_add(1),
        },
        Form::Redis => u64::MAX,
    };
    let mut rest = file.take(most.saturating_sub(whole.len() as u64));
    rest.read_to_end(&mut whole).context("cannot read it")?;
    let bytes = whole.len() as u64;
    Ok((bytes, recognize(&mut Cursor::new(whole), bytes)?))
}

/// The first bytes of what is left to read: a snapshot's header, or fewer at the end.
fn head(reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    reader
        .take(SnapshotHeader::LEN as u64)
        .read_to_end(&mut head)
        .context("cannot read it")?;
    Ok(head)
}

/// The possible forms of a file with certain first bytes.
enum Form {
    Snapshot,
    Redis,
    /// With this number of bytes: Guava's stream has no magic number.
    Guava(u64),
}

impl Form {
    fn of(head: &[u8]) -> Result<Self> {
        if head.is_empty() {
            bail!("not a filter file: it is empty");
        }
        let magic = SnapshotHeader::MAGIC;
        if magic.starts_with(&head[..head.len().min(magic.len())]) {
            return Ok(Self::Snapshot);
        }
        if resp::begins(head) {
            return Ok(Self::Redis);
        }
        if let Ok(needed) = GuavaBloom::stream_len(head) {
            return Ok(Self::Guava(needed));
        }
        // A serialized Java object, perhaps of Guava: the reader says what to do instead.
        if head.starts_with(&[0xac, 0xed]) {
            GuavaBloom::from_bytes(head).context("not a filter file")?;
        }
        bail!(
            "not a filter file: it begins with \"{}\", which no snapshot of lanebloom, no Guava stream and no RedisBloom dump does",
            head[..head.len().min(8)].escape_ascii()
        )
    }
}

fn recognize(reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let head = head(reader)?;
    let memory = usize::try_from(bytes).unwrap_or(usize::MAX);
    match Form::of(&head)? {
        Form::Snapshot => snapshot(head, reader, bytes),
        Form::Redis => {
            // A filter of the chain takes up to 320 bytes beside its bits, and 53 in the file.
            let mut reader = BufReader::new(head.chain(reader));
            Ok(Content::Redis(resp::read(&mut reader, memory.saturating_mul(8))?))
        }
        Form::Guava(needed) if needed == bytes => {
            Ok(Content::Guava(GuavaBloom::read_from(head.chain(reader), memory)?))
        }
        Form::Guava(needed) if needed < bytes => {
            bail!("not a filter file; if it is a Guava stream, more bytes follow its {needed}")
        }
        Form::Guava(needed) => {
            bail!("not a filter file; if it is a Guava stream, it has {bytes} bytes of {needed}")
        }
    }
}

/// Reads the snapshot that begins with `head`. Its length is at most `bytes`. So reading allocates
/// no more than the file has; for a `WindowedBloom`, all of whose generations are allocated, up to
/// 65 times as much.
fn snapshot(head: Vec<u8>, reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let header = SnapshotHeader::peek(&head)?;
    if let Some(reason) = unreadable(&header) {
        verify(head, reader)?;
        return Ok(Content::Unreadable(Unreadable { header, reason }));
    }
    if header.bytes > bytes {
        bail!("the bytes end after {bytes} of {}", header.bytes);
    }
    if header.kind == Kind::Bank {
        return Ok(Content::Bank(BankFile::read(header, head.chain(reader))?));
    }
    let whole = head.chain(&mut *reader);
    let content = match header.kind {
        Kind::Bitmap => Content::Bitmap(ConcurrentBitmap::read_from(whole, usize::MAX)?),
        _ => Content::Filter(AnyFilter::read_from(whole, usize::MAX)?),
    };
    if !self::head(reader)?.is_empty() {
        bail!("more bytes follow the snapshot of a {}", header.kind);
    }
    Ok(content)
}

/// Why the library cannot read a snapshot or delta with this header, if it cannot.
fn unreadable(header: &SnapshotHeader) -> Option<&'static str> {
    match (header.kind, header.content) {
        (Kind::Delta, _) => Some("it is a delta, which only changes another filter"),
        (_, codec::Content::Generations { needs_clock: true, .. }) => {
            Some("its keys age by a clock, which only the program that made it has")
        }
        _ => None,
    }
}

/// Reads snapshots and deltas to the end, one after another, and checks all their checksums.
fn verify(mut bytes: Vec<u8>, reader: &mut impl Read) -> Result<()> {
    let mut start = 0;
    while !bytes.is_empty() {
        let place = || format!("the record at byte {start}");
        let record = SnapshotHeader::peek(&bytes).with_context(place)?.bytes;
        let missing = record.saturating_sub(bytes.len() as u64);
        // With the next one's header.
        let mut more = reader.take(missing.saturating_add(SnapshotHeader::LEN as u64));
        more.read_to_end(&mut bytes).context("cannot read it")?;
        let (_, rest) = codec::verify(&bytes).with_context(place)?;
        let read = bytes.len() - rest.len();
        bytes.drain(..read);
        start += read;
    }
    Ok(())
}
