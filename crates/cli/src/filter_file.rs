//! Filter files, recognized by their content: snapshots of lanebloom, Guava's streams, and chunks
//! of RedisBloom. `query`, `merge`, `info` and `convert` read them here.

use crate::resp::{self, Dump};
use anyhow::{Context, Result, bail};
use lanebloom::codec::{self, Identity, Kind, SnapshotHeader};
use lanebloom::hash::Murmur3;
use lanebloom::{
    ConcurrentBitmap, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, SnapshotError,
    TombstoneBloom, WindowedBloom,
};
use lanebloom_files::identity::regular;
use lanebloom_files::input::{self, Input, is_stdin};
use lanebloom_formats::GuavaBloom;
use std::io::{self, BufReader, Chain, Cursor, Read, Write};
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
    /// Snapshots in a row, at least one. All have the same hasher.
    Bloom(Vec<ConcurrentBloom>),
    Scalable(ScalableBloom),
    Windowed(WindowedBloom),
    Counting(CountingBloom),
    Tombstone(TombstoneBloom),
    Cuckoo(CuckooFilter),
    DLeft(DLeftFilter),
    Bitmap(ConcurrentBitmap),
    Unreadable(Unreadable),
    Guava(GuavaBloom),
    Redis(Dump),
}

/// A snapshot or delta of no use without something that is not in the file, such as a secret key.
/// Its checksums are right.
pub(crate) struct Unreadable {
    pub(crate) header: SnapshotHeader,
    /// What is missing.
    pub(crate) reason: &'static str,
    bytes: Vec<u8>,
}

impl FilterFile {
    /// Reads a file, or stdin if the path is `-`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = Input::Path(path.to_owned()).name();
        let (bytes, content) = read(path).with_context(|| name.clone())?;
        Ok(Self { name, bytes, content })
    }

    /// The hasher of the keys, for [`find`](Self::find).
    pub(crate) fn hasher(&self) -> Result<Murmur3> {
        Ok(match &self.content {
            Content::Bloom(layers) => *layers[0].hasher(),
            Content::Scalable(filter) => *filter.hasher(),
            Content::Windowed(filter) => *filter.hasher(),
            Content::Counting(filter) => *filter.hasher(),
            Content::Tombstone(filter) => *filter.hasher(),
            Content::Cuckoo(filter) => *filter.hasher(),
            Content::DLeft(filter) => *filter.hasher(),
            // They take the keys' bytes.
            Content::Guava(_) | Content::Redis(_) => Murmur3::default(),
            Content::Bitmap(_) => bail!("{}: a ConcurrentBitmap holds numbers, not keys", self.name),
            Content::Unreadable(other) => bail!("{}: {}", self.name, other.reason),
        })
    }

    /// Writes which keys are present. `hashes` are the keys' hashes by [`hasher`](Self::hasher),
    /// and `key` returns the bytes of the key with a number.
    pub(crate) fn find<'a>(&self, hashes: &[u64], key: impl Fn(usize) -> &'a [u8], found: &mut [bool]) {
        let keys = || (0..hashes.len()).map(&key).collect::<Vec<_>>();
        match &self.content {
            Content::Bloom(layers) => {
                layers[0].contains_hashes(hashes, found);
                let mut more = vec![false; if layers.len() > 1 { hashes.len() } else { 0 }];
                for layer in &layers[1..] {
                    layer.contains_hashes(hashes, &mut more);
                    found.iter_mut().zip(&more).for_each(|(found, more)| *found |= more);
                }
            }
            Content::Scalable(filter) => filter.contains_hashes(hashes, found),
            Content::Windowed(filter) => filter.contains_hashes(hashes, found),
            Content::Counting(filter) => filter.contains_hashes(hashes, found),
            Content::Tombstone(filter) => filter.contains_hashes(hashes, found),
            Content::Cuckoo(filter) => filter.contains_hashes(hashes, found),
            Content::DLeft(filter) => filter.contains_hashes(hashes, found),
            Content::Guava(filter) => filter.contains_batch(&keys(), found),
            Content::Redis(dump) => dump.filter.contains_batch(&keys(), found),
            Content::Bitmap(_) | Content::Unreadable(_) => unreachable!("they have no hasher"),
        }
    }
}

impl Content {
    /// What it is, in a few words.
    pub(crate) fn kind(&self) -> String {
        let kind = match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Scalable(_) => Kind::Scalable,
            Self::Windowed(_) => Kind::Windowed,
            Self::Counting(_) => Kind::Counting,
            Self::Tombstone(_) => Kind::Tombstone,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::DLeft(_) => Kind::DLeft,
            Self::Bitmap(_) => Kind::Bitmap,
            Self::Unreadable(other) => other.header.kind,
            Self::Guava(_) => return "GuavaBloom".into(),
            Self::Redis(_) => return "RedisBloom".into(),
        };
        kind.to_string()
    }

    pub(crate) fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        match self {
            Self::Bloom(layers) => layers.iter().try_for_each(|layer| layer.write_to(&mut writer)),
            Self::Scalable(filter) => filter.write_to(writer),
            Self::Windowed(filter) => filter.write_to(writer),
            Self::Counting(filter) => filter.write_to(writer),
            Self::Tombstone(filter) => filter.write_to(writer),
            Self::Cuckoo(filter) => filter.write_to(writer),
            Self::DLeft(filter) => filter.write_to(writer),
            Self::Bitmap(bitmap) => bitmap.write_to(writer),
            Self::Unreadable(other) => writer.write_all(&other.bytes),
            Self::Guava(filter) => filter.write_to(writer),
            Self::Redis(dump) => resp::write(&dump.filter, dump.key.as_deref().unwrap_or(b""), &mut writer),
        }
    }
}

/// The number of bytes, and what they are.
fn read(path: &Path) -> Result<(u64, Content)> {
    let mut file = input::open(path).context("cannot open it")?;
    let metadata = regular(&file).context("cannot read its size")?;
    // Stdin may have been read in part.
    if let Some(metadata) = metadata.filter(|_| !is_stdin(path)) {
        let bytes = metadata.len();
        return Ok((bytes, recognize(&mut BufReader::with_capacity(1 << 20, file), bytes)?));
    }
    let mut whole = Vec::new();
    let bytes = file.read_to_end(&mut whole).context("cannot read it")? as u64;
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

fn recognize(reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let head = head(reader)?;
    if head.is_empty() {
        bail!("not a filter file: it is empty");
    }
    let magic = SnapshotHeader::MAGIC;
    if magic.starts_with(&head[..head.len().min(magic.len())]) {
        return snapshots(head, reader, bytes);
    }
    let memory = usize::try_from(bytes).unwrap_or(usize::MAX);
    if resp::begins(&head) {
        // A filter of the chain takes up to 320 bytes beside its bits, and 53 in the file.
        let mut reader = BufReader::new(head.chain(reader));
        return Ok(Content::Redis(resp::read(&mut reader, memory.saturating_mul(8))?));
    }
    // Guava's stream has no magic number, so its length must be the file's.
    if let Ok(needed) = GuavaBloom::stream_len(&head) {
        if needed == bytes {
            return Ok(Content::Guava(GuavaBloom::read_from(head.chain(reader), memory)?));
        }
        bail!("not a filter file; if it is a Guava stream, it has {bytes} bytes of {needed}");
    }
    // A serialized Java object, perhaps of Guava: the reader says what to do instead.
    if head.starts_with(&[0xac, 0xed]) {
        GuavaBloom::from_bytes(&head).context("not a filter file")?;
    }
    bail!(
        "not a filter file: it begins with \"{}\", which no snapshot of lanebloom, no Guava stream and no RedisBloom dump does",
        head[..head.len().min(8)].escape_ascii()
    )
}

/// Reads snapshots, the first of which begins with `head`.
fn snapshots(head: Vec<u8>, reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let header = SnapshotHeader::peek(&head)?;
    if let Some(reason) = unreadable(&header) {
        let bytes = verified(head, reader)?;
        return Ok(Content::Unreadable(Unreadable { header, reason, bytes }));
    }
    check_length(&head, bytes)?;
    let content = match header.kind {
        Kind::Scalable => Content::Scalable(one(&head, reader, ScalableBloom::read_from)?),
        Kind::Windowed => Content::Windowed(one(&head, reader, WindowedBloom::read_from)?),
        Kind::Counting => Content::Counting(one(&head, reader, CountingBloom::read_from)?),
        Kind::Tombstone => Content::Tombstone(one(&head, reader, TombstoneBloom::read_from)?),
        Kind::Cuckoo => Content::Cuckoo(one(&head, reader, CuckooFilter::read_from)?),
        Kind::DLeft => Content::DLeft(one(&head, reader, DLeftFilter::read_from)?),
        Kind::Bitmap => Content::Bitmap(ConcurrentBitmap::read_from(head.chain(&mut *reader), usize::MAX)?),
        _ => return row(head, reader, bytes),
    };
    if !self::head(reader)?.is_empty() {
        bail!("more bytes follow the snapshot of a {}", content.kind());
    }
    Ok(content)
}

/// Why the library cannot read a snapshot or delta with this header, if it cannot.
fn unreadable(header: &SnapshotHeader) -> Option<&'static str> {
    match (header.kind, header.hasher, header.content) {
        (Kind::Delta, ..) => Some("it is a delta, which only changes another filter"),
        (_, Some(Identity::Other), _) => {
            Some("its keys are hashed by a BuildHasher, which only the program that made it has")
        }
        (_, Some(Identity::SipHash13), _) => {
            Some("its keys are hashed by SipHash-1-3 with a secret key, which is not in the file")
        }
        (_, Some(Identity::FastHash { .. }), _) => {
            Some("its keys are hashed by FastHash: this command reads filters that hash by Murmur3")
        }
        (_, Some(Identity::Prehashed), _) => {
            Some("it holds hashes, and only the program that made it has their hasher")
        }
        (.., codec::Content::Generations { needs_clock: true, .. }) => {
            Some("its keys age by a clock, which only the program that made it has")
        }
        _ => None,
    }
}

/// Reads snapshots and deltas to the end, and checks all their checksums.
fn verified(head: Vec<u8>, reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut bytes = head;
    reader.read_to_end(&mut bytes).context("cannot read it")?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        (_, rest) = codec::verify(rest).with_context(|| format!("the record at byte {start}"))?;
    }
    Ok(bytes)
}

/// Fails if the snapshot that begins with `head` is longer than `bytes`.
fn check_length(head: &[u8], bytes: u64) -> Result<()> {
    let header = SnapshotHeader::peek(head)?;
    if header.bytes > bytes {
        bail!("the bytes end after {bytes} of {}", header.bytes);
    }
    Ok(())
}

/// Reads `bytes` bytes of snapshots of `ConcurrentBloom`s.
fn row(mut head: Vec<u8>, reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let mut layers: Vec<ConcurrentBloom> = Vec::new();
    let mut left = bytes;
    while !head.is_empty() {
        let mut next = || {
            check_length(&head, left)?;
            one(&head, reader, ConcurrentBloom::read_from)
        };
        let layer: ConcurrentBloom = next().with_context(|| format!("snapshot {} of the file", layers.len() + 1))?;
        let theirs = layer.hasher().seed();
        let first = layers.first().map(|first| first.hasher().seed());
        if let Some(ours) = first.filter(|ours| *ours != theirs) {
            bail!("its snapshots differ in the seed of Murmur3: {ours} and {theirs}");
        }
        left -= layer.snapshot_bytes() as u64;
        layers.push(layer);
        head = self::head(reader)?;
    }
    Ok(Content::Bloom(layers))
}

/// Reads a snapshot whose length was checked. So it allocates no more than the file has; a
/// `WindowedBloom`, all of whose generations are allocated, up to 65 times as much.
fn one<'a, R: Read, F>(
    head: &'a [u8],
    reader: &'a mut R,
    read: impl FnOnce(Chain<&'a [u8], &'a mut R>, usize) -> Result<F, SnapshotError>,
) -> Result<F> {
    Ok(read(head.chain(reader), usize::MAX)?)
}
