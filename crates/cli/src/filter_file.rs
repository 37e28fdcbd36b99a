//! Filter files, recognized by their content: snapshots of lanebloom, Guava's streams, and chunks
//! of RedisBloom. `query`, `merge`, `info` and `convert` read them here.

use crate::input::{self, Input, is_stdin};
use crate::record::Record;
use crate::resp::{self, Dump};
use anyhow::{Context, Result, bail};
use lanebloom::hash::Murmur3;
use lanebloom::{
    CompactCuckoo, ConcurrentBitmap, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom,
    SnapshotError, TombstoneBloom, WindowedBloom,
};
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
    Compact(CompactCuckoo),
    DLeft(DLeftFilter),
    Bitmap(ConcurrentBitmap),
    /// Whole, but of no use without something that is not in the file, such as a secret key.
    Closed(Record),
    Guava(GuavaBloom),
    Redis(Dump),
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
            Content::Compact(filter) => *filter.hasher(),
            Content::DLeft(filter) => *filter.hasher(),
            // They take the keys' bytes.
            Content::Guava(_) | Content::Redis(_) => Murmur3::default(),
            Content::Bitmap(_) => bail!("{}: it holds numbers, not keys", self.name),
            Content::Closed(record) => bail!("{}: {}", self.name, record.why_closed()),
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
            Content::Compact(filter) => filter.contains_hashes(hashes, found),
            Content::DLeft(filter) => filter.contains_hashes(hashes, found),
            Content::Guava(filter) => filter.contains_batch(&keys(), found),
            Content::Redis(dump) => dump.filter.contains_batch(&keys(), found),
            Content::Bitmap(_) | Content::Closed(_) => unreachable!("they have no hasher"),
        }
    }
}

impl Content {
    /// What it is, in a few words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Bloom(_) => "ConcurrentBloom",
            Self::Scalable(_) => "ScalableBloom",
            Self::Windowed(_) => "WindowedBloom",
            Self::Counting(_) => "CountingBloom",
            Self::Tombstone(_) => "TombstoneBloom",
            Self::Cuckoo(_) => "CuckooFilter",
            Self::Compact(_) => "CompactCuckoo",
            Self::DLeft(_) => "DLeftFilter",
            Self::Bitmap(_) => "ConcurrentBitmap",
            Self::Closed(record) => record.kind(),
            Self::Guava(_) => "GuavaBloom",
            Self::Redis(_) => "RedisBloom",
        }
    }

    pub(crate) fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        match self {
            Self::Bloom(layers) => layers.iter().try_for_each(|layer| layer.write_to(&mut writer)),
            Self::Scalable(filter) => filter.write_to(writer),
            Self::Windowed(filter) => filter.write_to(writer),
            Self::Counting(filter) => filter.write_to(writer),
            Self::Tombstone(filter) => filter.write_to(writer),
            Self::Cuckoo(filter) => filter.write_to(writer),
            Self::Compact(filter) => filter.write_to(writer),
            Self::DLeft(filter) => filter.write_to(writer),
            Self::Bitmap(bitmap) => bitmap.write_to(writer),
            Self::Closed(record) => writer.write_all(record.bytes()),
            Self::Guava(filter) => filter.write_to(writer),
            Self::Redis(dump) => resp::write(&dump.filter, dump.key.as_deref().unwrap_or(b""), &mut writer),
        }
    }
}

/// The number of bytes, and what they are.
fn read(path: &Path) -> Result<(u64, Content)> {
    let mut file = input::open(path).context("cannot open it")?;
    let metadata = file.metadata().context("cannot read its size")?;
    // Stdin may have been read in part.
    if metadata.is_file() && !is_stdin(path) {
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
        .take(Record::HEADER)
        .read_to_end(&mut head)
        .context("cannot read it")?;
    Ok(head)
}

fn recognize(reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let head = head(reader)?;
    if head.is_empty() {
        bail!("not a filter file: it is empty");
    }
    if Record::begins(&head) {
        return snapshots(head, reader, bytes);
    }
    let memory = usize::try_from(bytes).unwrap_or(usize::MAX);
    if resp::begins(&head) {
        // A filter of the chain takes up to 320 bytes beside its bits, and 53 in the file.
        let mut reader = BufReader::new(head.chain(reader));
        return Ok(Content::Redis(resp::read(&mut reader, memory.saturating_mul(8))?));
    }
    // Guava's stream has no magic: a strategy of 0 or 1, a number of hash functions, and a length,
    // which has to be the file's.
    if let &[strategy @ 0..=1, 1..=255, a @ 0..=127, b, c, d, ..] = &head[..] {
        let longs = u64::from(u32::from_be_bytes([a, b, c, d]));
        if longs > 0 {
            let needed = 6 + 8 * longs;
            if needed == bytes {
                return Ok(Content::Guava(GuavaBloom::read_from(head.chain(reader), memory)?));
            }
            bail!(
                "not a filter file; if it is a Guava stream, of strategy {strategy}, it has {bytes} bytes of {needed}"
            );
        }
    }
    // A serialized Java object, perhaps of Guava: the reader says what to do instead.
    if head.starts_with(&[0xac, 0xed]) {
        GuavaBloom::from_bytes(&head).context("not a filter file")?;
    }
    bail!(
        "not a filter file: it begins with \"{}\", as no snapshot of lanebloom, Guava stream or RedisBloom dump does",
        head[..head.len().min(8)].escape_ascii()
    )
}

/// Reads snapshots, the first of which begins with `head`.
fn snapshots(head: Vec<u8>, reader: &mut impl Read, bytes: u64) -> Result<Content> {
    if Record::is_closed(&head) {
        return Ok(Content::Closed(Record::read(head, reader)?));
    }
    Record::check_length(&head, bytes)?;
    let content = match head.get(Record::KIND) {
        Some(2) => Content::Scalable(one(&head, reader, ScalableBloom::read_from)?),
        Some(3) => Content::Windowed(one(&head, reader, WindowedBloom::read_from)?),
        Some(4) => Content::Counting(one(&head, reader, CountingBloom::read_from)?),
        Some(5) => Content::Tombstone(one(&head, reader, TombstoneBloom::read_from)?),
        Some(6) => Content::Cuckoo(one(&head, reader, CuckooFilter::read_from)?),
        Some(7) => Content::Compact(one(&head, reader, CompactCuckoo::read_from)?),
        Some(8) => Content::DLeft(one(&head, reader, DLeftFilter::read_from)?),
        Some(16) => Content::Bitmap(ConcurrentBitmap::read_from(head.chain(&mut *reader), usize::MAX)?),
        // An unknown kind is an error there.
        _ => return row(head, reader, bytes),
    };
    if !self::head(reader)?.is_empty() {
        bail!("bytes follow the snapshot of a {}", content.kind());
    }
    Ok(content)
}

/// Reads the snapshots of `ConcurrentBloom`s, which have so many bytes.
fn row(mut head: Vec<u8>, reader: &mut impl Read, bytes: u64) -> Result<Content> {
    let mut layers: Vec<ConcurrentBloom> = Vec::new();
    let mut left = bytes;
    while !head.is_empty() {
        let mut next = || {
            Record::check_length(&head, left)?;
            one(&head, reader, ConcurrentBloom::read_from)
        };
        let layer: ConcurrentBloom = next().with_context(|| format!("snapshot {} of the file", layers.len() + 1))?;
        if let Some(first) = layers.first()
            && first.hasher() != layer.hasher()
        {
            bail!("its snapshots have hashers of different seeds");
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
