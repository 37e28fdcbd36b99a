//! Headers, for programs that do not know which filter the bytes hold, or cannot read it. Bytes go
//! in, a [`SnapshotHeader`] comes out. [`verify`] takes whole records. The filters' decoders do not
//! use this file; `tests/bytes/peek.rs` compares both.

use super::header::{
    DELTA_HEADER, DeltaHeader, Hashing, Kind, MAGIC, OwnHeader, SNAPSHOT_HEADER, first, snapshot_bytes,
};
use super::{Decoded, SnapshotBytes, in_range, invalid, split};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::geometry::layout::Layout;
use crate::hash::{AnyHasher, Identity};
use alloc::format;
use alloc::vec::Vec;

/// The facts in the first bytes of a snapshot or delta: the kind of the filter, its hasher, its
/// size.
///
/// Reading it needs neither the hasher nor a clock, so it also describes snapshots that this
/// program cannot read.
///
/// ```
/// use lanebloom::codec::{Content, Kind, SnapshotHeader};
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).seed(7).build()?;
/// let file = filter.snapshot().to_vec();
/// assert!(file.starts_with(&SnapshotHeader::MAGIC));
/// let header = SnapshotHeader::peek(&file[..SnapshotHeader::LEN])?;
/// assert_eq!(header.kind, Kind::Bloom); // `ConcurrentBloom::from_bytes` reads it
/// assert_eq!(header.hasher.unwrap().to_string(), "Murmur3 with seed 7");
/// assert_eq!(header.bytes, file.len() as u64);
/// assert_eq!(header.expected_keys, Some(1000));
/// assert_eq!(header.false_positive_rate, Some(filter.false_positive_rate()));
/// assert!(matches!(header.content, Content::Blocks { blocks: 22, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SnapshotHeader {
    /// The type whose `from_bytes` reads the snapshot.
    pub kind: Kind,
    /// The hasher of the keys. `None` for a [bitmap](crate::bitmap), which hashes nothing.
    pub hasher: Option<Identity>,
    /// The hash of a fixed key. By it, reading recognizes the hasher. 0 without a hasher.
    pub fingerprint: u64,
    /// The length of the whole snapshot or delta, as the header declares it. Compare it with the
    /// length of the file before you allocate.
    pub bytes: u64,
    /// The number of keys that the filter was sized for. For a
    /// [`ScalableBloom`](crate::ScalableBloom), that of its first layer.
    pub expected_keys: Option<u64>,
    /// The false-positive rate at the expected keys. For a [`ScalableBloom`](crate::ScalableBloom),
    /// the rate that it never exceeds. For a [`StaticFilter`](crate::StaticFilter) of less than
    /// some thousand keys, an estimate, which may be a tenth too low: the filter counts its cells.
    pub false_positive_rate: Option<f64>,
    /// The size of what follows the header.
    pub content: Content,
}

/// The content of a snapshot or delta.
///
/// ```
/// use lanebloom::codec::{Content, SnapshotHeader};
///
/// let bank = lanebloom::bank::FilterBank::with_capacity(100, 1000, 0.1)?;
/// let content = SnapshotHeader::peek(&bank.snapshot().to_vec())?.content;
/// assert!(matches!(content, Content::Blocks { columns: Some(128), .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The blocks of a [`ConcurrentBloom`](crate::ConcurrentBloom), of a
    /// [`CountingBloom`](crate::CountingBloom) or of each filter of a
    /// [`FilterBank`](crate::bank::FilterBank), or changes of them.
    #[non_exhaustive]
    Blocks {
        /// The words in which a key's bits lie, in all of its lines.
        words_per_key: usize,
        /// The positions that a key draws in each of its lines, some may coincide.
        bits_per_line: usize,
        /// The lines that a key touches.
        lines_per_key: usize,
        /// The number of blocks.
        blocks: u64,
        /// The columns of a bank: the filters for which it has room. `None` for a single filter.
        columns: Option<usize>,
        /// The number of blocks that a delta changes. `None` for a snapshot.
        changed: Option<u64>,
    },
    /// The buckets of a filter that stores fingerprints.
    #[non_exhaustive]
    Buckets {
        /// The bits of a fingerprint.
        fingerprint_bits: u8,
        /// The number of buckets. For a [`DLeftFilter`](crate::DLeftFilter), in each of its four
        /// tables.
        buckets: u64,
    },
    /// The cells of a [`StaticFilter`](crate::StaticFilter).
    #[non_exhaustive]
    Cells {
        /// The bits of a fingerprint.
        fingerprint_bits: u8,
        /// The cells that a key has.
        cells_per_key: u8,
        /// The number of cells.
        cells: u64,
    },
    /// The snapshots of the layers of a [`ScalableBloom`](crate::ScalableBloom).
    #[non_exhaustive]
    Layers {
        /// The number of layers.
        layers: usize,
    },
    /// The snapshots of the generations of a `WindowedBloom`.
    #[non_exhaustive]
    Generations {
        /// The number of generations that the window has.
        generations: usize,
        /// The number of generations in the snapshot.
        stored: usize,
        /// Whether the keys age by a clock that the program supplied. Then reading needs that
        /// clock.
        needs_clock: bool,
    },
    /// The snapshots of two filters: of the keys added, and of those removed.
    Pair,
    /// The bits of a [`ConcurrentBitmap`](crate::bitmap::ConcurrentBitmap).
    #[non_exhaustive]
    Bits {
        /// The bound: all positions are below it.
        bound: u64,
    },
}

impl SnapshotHeader {
    /// The first bytes of every snapshot and delta. They distinguish it from other formats.
    pub const MAGIC: [u8; 8] = MAGIC;

    /// The largest number of bytes that [`peek`](Self::peek) reads.
    pub const LEN: usize = SNAPSHOT_HEADER;

    /// The header with which `bytes` begin. Bytes after the header may be missing.
    ///
    /// It checks the header's own checksum, but not the content's: [`verify`] does. A delta has one
    /// checksum for both, so its header is unchecked.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end within the header, or if they are not a header of version 1 of the
    /// format.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::codec::SnapshotHeader;
    ///
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let mut bytes = filter.snapshot().to_vec();
    /// assert!(SnapshotHeader::peek(&bytes[..127]).unwrap_err().is_truncated());
    /// bytes[24] ^= 1; // the length
    /// assert!(SnapshotHeader::peek(&bytes).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn peek(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::parse(bytes).map_err(SnapshotError)
    }

    /// The hasher, to read the filter with; `None` for a bitmap. [Unknown](AnyHasher::Unknown) if
    /// it has a secret key or is a `BuildHasher` of the program that wrote the snapshot.
    ///
    /// ```
    /// use lanebloom::codec::{self, SnapshotHeader};
    /// use lanebloom::{BloomView, ConcurrentBloom, FastHash, Hashed};
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.hasher(FastHash::with_seed(7)).build()?;
    /// filter.insert("a");
    /// let bytes = filter.snapshot().to_vec();
    /// let hasher = SnapshotHeader::peek(&bytes)?.any_hasher().unwrap();
    /// let (view, _) = codec::view::<BloomView<_>>(&bytes, hasher)?;
    /// assert!(view.contains(&Hashed(filter.hash("a"))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn any_hasher(&self) -> Option<AnyHasher> {
        Some(AnyHasher::of(self.hasher?, self.fingerprint))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Decoded<Self> {
        // A delta has a shorter header.
        if bytes.get(10) == Some(&(Kind::Delta as u8)) {
            let header = DeltaHeader::peek(first::<DELTA_HEADER>(bytes)?)?;
            let content = blocks(header.layout, None, Some(header.lines));
            return Ok(Self::of(Kind::Delta, header.hashing, header.len, (content, None, None)));
        }
        let bytes = first::<SNAPSHOT_HEADER>(bytes)?;
        let number = bytes[10];
        let Some(kind) = Kind::of(number) else {
            let problem = if number == Kind::RESERVED {
                "reserved"
            } else {
                "unknown"
            };
            return invalid(format!(
                "kind {number} is {problem}: this release reads kinds 1 to 6, 8, 9, 16, 17 and 129"
            ));
        };
        let own = OwnHeader::parse(bytes, kind)?;
        let header = Self::of(kind, own.hashing, own.len, content(&own)?);
        let (declared, needed) = (header.bytes, header.own_bytes(&own));
        if declared < needed {
            return Err(SnapshotErrorKind::Length { declared, needed });
        }
        Ok(header)
    }

    fn of(kind: Kind, hashing: Hashing, bytes: u64, (content, expected_keys, false_positive_rate): Fields) -> Self {
        Self {
            kind,
            hasher: (kind != Kind::Bitmap).then_some(hashing.identity),
            fingerprint: hashing.fingerprint,
            bytes,
            expected_keys,
            false_positive_rate,
            content,
        }
    }

    /// The least number of bytes of the snapshot: in a filter of several filters, the bytes before
    /// the first inner snapshot.
    fn own_bytes(&self, own: &OwnHeader) -> u64 {
        let bytes = match self.content {
            Content::Layers { .. } | Content::Pair => SNAPSHOT_HEADER,
            // If generations age, each but the newest has a time of 8 bytes.
            Content::Generations { stored, .. } if own.get(32) as u8 == 1 => snapshot_bytes(stored - 1),
            _ => snapshot_bytes(0),
        };
        bytes as u64
    }
}

/// The content, the expected keys and the rate that a header has.
type Fields = (Content, Option<u64>, Option<f64>);

/// The fields of a snapshot's header. `docs/FORMAT.md` has the offsets.
fn content(own: &OwnHeader) -> Decoded<Fields> {
    let expected_keys = || own.value("the number of expected keys", 40, 1..=u64::MAX).map(Some);
    Ok(match own.kind {
        Kind::Bloom | Kind::Counting | Kind::Bank => {
            let header = own.blocks()?;
            let columns = (own.kind == Kind::Bank).then_some(header.columns);
            let content = blocks(header.layout, columns, None);
            (content, Some(header.expected_keys as u64), Some(header.rate))
        }
        Kind::Scalable => {
            let rate = own.rate()?;
            let layers = own.value("the number of layers", 80, 1..=64)? as usize;
            (Content::Layers { layers }, expected_keys()?, Some(rate))
        }
        Kind::Windowed => {
            let [_, _, generations, clock, ..] = own.get(32).to_le_bytes();
            let content = Content::Generations {
                generations: in_range("the number of generations", generations, 2..=64)?.into(),
                stored: own.value("the number of generations there are", 48, 1..=65)? as usize,
                needs_clock: in_range("the kind of the clock", clock, 0..=3)? == 3,
            };
            (content, expected_keys()?, None)
        }
        Kind::Tombstone => (Content::Pair, None, None),
        Kind::Cuckoo | Kind::DLeft => {
            let plan = |fingerprint_bits, buckets| {
                let buckets = buckets as u64;
                let content = Content::Buckets {
                    fingerprint_bits,
                    buckets,
                };
                Ok((content, usize::MAX))
            };
            let (content, keys) = own.buckets(u64::MAX, plan)?;
            (content, Some(keys as u64), None)
        }
        Kind::Static => {
            let (layout, _, keys) = own.fuse()?;
            let content = Content::Cells {
                fingerprint_bits: layout.bits as u8,
                cells_per_key: layout.cells_per_key as u8,
                cells: layout.cells(),
            };
            (content, Some(keys as u64), Some(layout.rate_at(keys)))
        }
        Kind::Bitmap => (Content::Bits { bound: own.get(32) }, None, None),
        Kind::Delta => unreachable!("it has a header of its own"),
    })
}

fn blocks(layout: Layout, columns: Option<usize>, changed: Option<u64>) -> Content {
    Content::Blocks {
        words_per_key: layout.shape.words_per_key(),
        bits_per_line: layout.shape.bits,
        lines_per_key: layout.shape.lines,
        blocks: layout.blocks as u64,
        columns,
        changed,
    }
}

/// Checks all checksums of the snapshot or delta with which `bytes` begin, without a hasher or a
/// clock. Returns the snapshots that hold the content, and the bytes after the last one.
///
/// Most kinds have one snapshot, the given one. A filter of several filters has those of its
/// layers, generations or pair: each is the snapshot of a
/// [`ConcurrentBloom`](crate::ConcurrentBloom).
///
/// # Errors
///
/// Fails if [`SnapshotHeader::peek`] does, if bytes are missing, if a checksum differs, or if the
/// number of inner snapshots is not the declared one. Reading the filter checks more: whether
/// several filters follow one plan, and whether the content of counters and slots is possible.
///
/// # Examples
///
/// ```
/// use lanebloom::{ConcurrentBloom, ScalableBloom, SipHash13, codec};
///
/// // A backup job does not know the key of the hasher.
/// let builder = ScalableBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(SipHash13::random()).build()?;
/// filter.insert_all(0..5000u32)?;
/// let mut backup = filter.snapshot().to_vec();
/// let (layers, rest) = codec::verify(&backup)?;
/// assert_eq!(layers.len(), filter.layers().len());
/// assert!(rest.is_empty());
///
/// backup[400] ^= 1;
/// assert!(codec::verify(&backup).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(bytes: &[u8]) -> Result<(Vec<&[u8]>, &[u8]), SnapshotError> {
    verify_parts(bytes).map_err(SnapshotError)
}

fn verify_parts(bytes: &[u8]) -> Decoded<(Vec<&[u8]>, &[u8])> {
    let header = SnapshotHeader::parse(bytes)?;
    if header.kind == Kind::Delta {
        let (_, _, rest) = DeltaHeader::parse(bytes)?;
        return Ok((alloc::vec![&bytes[..bytes.len() - rest.len()]], rest));
    }
    let (record, rest) = split(bytes, header.bytes)?;
    let parts = match header.content {
        Content::Layers { layers } => layers,
        Content::Generations { stored, .. } => stored,
        Content::Pair => 2,
        _ => {
            SnapshotBytes::Borrowed(record).verify()?;
            return Ok((alloc::vec![record], rest));
        }
    };
    let (own, mut inner) = split(record, header.own_bytes(&OwnHeader::parse(bytes, header.kind)?))?;
    if header.kind == Kind::Windowed {
        SnapshotBytes::Borrowed(own).verify()?;
    }
    let mut found = Vec::new();
    while !inner.is_empty() {
        let part = OwnHeader::parse(inner, Kind::Bloom)?;
        part.blocks()?;
        let (part, more) = split(inner, part.len)?;
        SnapshotBytes::Borrowed(part).verify()?;
        found.push(part);
        inner = more;
    }
    if found.len() != parts {
        let found = found.len();
        return invalid(format!("the header declares {parts} filters, but {found} follow"));
    }
    Ok((found, rest))
}
