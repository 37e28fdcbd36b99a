//! The first bytes of a snapshot and of a delta: kind, hasher and length. The decoders check them
//! here before they trust what the bytes declare. `docs/FORMAT.md` describes them byte by byte.

use crate::error::SnapshotErrorKind;
use crate::geometry::layout::{LINE_BYTES, LINE_WORDS, Layout, Shape};
use crate::hash::{FastHash, FilterHasher, Identity, Murmur3, Prehashed};
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display};
use core::hash::Hasher;
use core::ops::{Range, RangeInclusive};

/// XXH3-64, seed 0.
///
/// Three checksums were measured (64 MiB, 64 KiB at a time, Emerald Rapids): twox-hash's reached
/// 6.6 GB/s. xxhash-rust's, which chooses its vectors at compile time, reached 5.6. crc32c, which
/// has half the width, reached 8.5.
pub(super) type Checksum = twox_hash::XxHash3_64;

/// The decoded value, or the reason why there is none.
pub(crate) type Decoded<T> = Result<T, SnapshotErrorKind>;

/// The beginning of every record. As in PNG, the first byte is not text, and a transfer as text
/// breaks the line ends and DOS's end of file.
pub(super) const MAGIC: [u8; 8] = *b"\x89LBF\r\n\x1a\n";
/// The only version of the format so far.
const VERSION: u16 = 1;
/// The version of the layout. It determines the bits, counters, fingerprints or cells of a hash.
/// (Version 1 took the block from the hash itself. The cells of a static filter have one of their
/// own.)
const LAYOUT_VERSION: u8 = 2;

/// The bytes before a snapshot's body: two lines, so that an aligned snapshot has an aligned body.
pub(crate) const SNAPSHOT_HEADER: usize = 128;
/// The bytes after a snapshot's body: a line, so that what follows is aligned too.
pub(crate) const TRAILER: usize = 64;
/// The bytes before a delta's body.
pub(crate) const DELTA_HEADER: usize = 64;
/// The largest number of lines of a body: all addressable bytes without the header and the trailer.
const MOST_LINES: u64 = (isize::MAX as u64 - (SNAPSHOT_HEADER + TRAILER) as u64) / LINE_BYTES as u64;
/// The largest number of words of a body.
pub(crate) const MOST_WORDS: u64 = MOST_LINES * LINE_WORDS as u64;

/// The type of a snapshot's filter. It displays as the type's name.
///
/// ```
/// assert_eq!(lanebloom::codec::Kind::Cuckoo.to_string(), "CuckooFilter");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// A [`ConcurrentBloom`](crate::ConcurrentBloom).
    Bloom = 1,
    /// A [`ScalableBloom`](crate::ScalableBloom).
    Scalable = 2,
    /// A `WindowedBloom`.
    Windowed = 3,
    /// A [`CountingBloom`](crate::CountingBloom).
    Counting = 4,
    /// A [`TombstoneBloom`](crate::TombstoneBloom).
    Tombstone = 5,
    /// A [`CuckooFilter`](crate::CuckooFilter).
    Cuckoo = 6,
    /// A [`DLeftFilter`](crate::DLeftFilter).
    DLeft = 8,
    /// A [`StaticFilter`](crate::StaticFilter).
    Static = 9,
    /// A [`ConcurrentBitmap`](crate::bitmap::ConcurrentBitmap).
    Bitmap = 16,
    /// A [`FilterBank`](crate::bank::FilterBank).
    Bank = 17,
    /// A delta, which [`apply_deltas`](crate::bloom::apply_deltas) reads.
    Delta = 129,
}

impl Kind {
    /// The number of a kind that was removed before the first release, a packed cuckoo filter. No
    /// other kind gets it.
    pub(super) const RESERVED: u8 = 7;

    /// Every kind and its name.
    const ALL: &[(Self, &str)] = &[
        (Self::Bloom, "ConcurrentBloom"),
        (Self::Scalable, "ScalableBloom"),
        (Self::Windowed, "WindowedBloom"),
        (Self::Counting, "CountingBloom"),
        (Self::Tombstone, "TombstoneBloom"),
        (Self::Cuckoo, "CuckooFilter"),
        (Self::DLeft, "DLeftFilter"),
        (Self::Static, "StaticFilter"),
        (Self::Bitmap, "ConcurrentBitmap"),
        (Self::Bank, "FilterBank"),
        (Self::Delta, "delta of a ConcurrentBloom"),
    ];

    /// The kind that a header's byte stands for.
    pub(super) fn of(byte: u8) -> Option<Self> {
        let mut kinds = Self::ALL.iter().map(|row| row.0);
        kinds.find(|kind| *kind as u8 == byte)
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = Self::ALL.iter().find(|(kind, _)| kind == self);
        f.pad(row.expect("every kind has a row").1)
    }
}

/// The identity of a record's hasher: its name and seed, and the hash of a fixed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    pub(crate) identity: Identity,
    pub(crate) fingerprint: u64,
}

impl Hashing {
    pub(crate) fn of(hasher: &impl FilterHasher) -> Self {
        Self {
            identity: hasher.identity(),
            fingerprint: hasher.fingerprint(),
        }
    }

    /// Fails if the record's hasher, `self`, is not `given`.
    pub(crate) fn check(self, given: Self) -> Decoded<()> {
        if self.identity != given.identity {
            return Err(SnapshotErrorKind::differs("hasher", self.identity, given.identity));
        }
        if self.fingerprint != given.fingerprint {
            let text = format!("the hasher differs: {} in both, with different keys", given.identity);
            return Err(SnapshotErrorKind::Incompatible(text));
        }
        Ok(())
    }
}

/// Takes the record of the hasher, or fails.
pub(crate) type AskHasher<'a> = &'a mut dyn FnMut(Hashing) -> Decoded<()>;

/// The result of `decode`, and the hasher that `hasher` makes of the record that `decode` reads.
pub(crate) fn with_hasher<T, S>(
    hasher: impl FnOnce(Hashing) -> Decoded<S>,
    decode: impl FnOnce(AskHasher<'_>) -> Decoded<T>,
) -> Decoded<(T, S)> {
    let (mut hasher, mut made) = (Some(hasher), None);
    let decoded = decode(&mut |hashing| {
        let hasher = hasher.take().expect("a snapshot has one hasher");
        hasher(hashing).map(|hasher| made = Some(hasher))
    })?;
    Ok((decoded, made.expect("a snapshot has a hasher")))
}

/// Returns `hasher`, or an error if the record has another hasher.
pub(crate) fn given<S: FilterHasher>(hasher: S) -> impl FnOnce(Hashing) -> Decoded<S> {
    move |hashing| hashing.check(Hashing::of(&hasher)).map(|()| hasher)
}

/// Returns the hasher of a record whose hasher is [`Murmur3`].
pub(crate) fn murmur3(hashing: Hashing) -> Decoded<Murmur3> {
    given(match hashing.identity {
        Identity::Murmur3 { seed } => Murmur3::with_seed(seed),
        _ => Murmur3::default(),
    })(hashing)
}

/// The fields of a snapshot of blocks: of a `ConcurrentBloom`, a `CountingBloom`, or a bank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlocksHeader {
    pub(crate) layout: Layout,
    pub(crate) expected_keys: usize,
    /// The false-positive rate at the expected keys.
    pub(crate) rate: f64,
    /// The number of filters of a bank, a multiple of 64; 0 for a single filter.
    pub(crate) columns: usize,
}

impl BlocksHeader {
    /// The words of the body: those of all filters, and of a bank a bit for each column.
    pub(crate) fn words(&self) -> usize {
        self.layout.blocks * LINE_WORDS * self.columns.max(1) + self.columns / 64
    }

    pub(crate) fn own(&self, kind: Kind, hashing: Hashing) -> OwnHeader {
        let mut own = OwnHeader::new(kind, hashing, snapshot_bytes(self.words()));
        put(&mut own.fields, 0, layout_fields(self.layout));
        own.put(48, self.expected_keys as u64);
        own.put(56, self.rate.to_bits());
        own.put(64, self.columns as u64);
        own
    }
}

/// The header of a snapshot of any kind. Each kind interprets the `FIELDS` bytes of its own fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnHeader {
    pub(crate) kind: Kind,
    pub(crate) hashing: Hashing,
    /// The bytes of the whole snapshot.
    pub(crate) len: u64,
    /// The bytes from byte 32 on.
    pub(crate) fields: [u8; FIELDS],
}

/// The number of bytes of a header that its kind interprets.
const FIELDS: usize = 88;

impl OwnHeader {
    pub(crate) fn to_bytes(self) -> [u8; SNAPSHOT_HEADER] {
        let mut bytes = [0; SNAPSHOT_HEADER];
        put_common(&mut bytes, self.kind, self.hashing, self.len);
        put(&mut bytes, 32, self.fields);
        let sum = Checksum::oneshot(&bytes[..120]);
        put(&mut bytes, 120, sum.to_le_bytes());
        bytes
    }

    /// The header with which `bytes` begin, if it is of this kind.
    pub(crate) fn parse(bytes: &[u8], kind: Kind) -> Decoded<Self> {
        let bytes: &[u8; SNAPSHOT_HEADER] = first(bytes)?;
        let (stored, computed) = (get(bytes, 120), Checksum::oneshot(&bytes[..120]));
        if stored != computed {
            return invalid(format!(
                "the header is corrupt: its checksum is {computed:016x}, but {stored:016x} is stored"
            ));
        }
        check_kind(bytes, kind)?;
        Ok(Self {
            kind,
            hashing: parse_hashing(bytes)?,
            len: get(bytes, 24),
            fields: *bytes[32..].first_chunk().expect("the fields lie within the header"),
        })
    }

    /// Writes a field at byte `at` of the header.
    pub(crate) fn put(&mut self, at: usize, field: u64) {
        put(&mut self.fields, at - 32, field.to_le_bytes());
    }

    /// Reads the field at byte `at` of the header.
    pub(crate) fn get(&self, at: usize) -> u64 {
        get(&self.fields, at - 32)
    }

    /// [`get`](Self::get) of a value that must be in `range`.
    pub(crate) fn value(&self, name: &str, at: usize, range: RangeInclusive<u64>) -> Decoded<u64> {
        in_range(name, self.get(at), range)
    }

    /// [`value`](Self::value) of a number that must fit this machine's `usize`.
    pub(crate) fn number(&self, name: &str, at: usize, range: RangeInclusive<u64>) -> Decoded<usize> {
        let most = (*range.end()).min(usize::MAX as u64);
        Ok(self.value(name, at, *range.start()..=most)? as usize)
    }

    /// The expected keys of a filter with a layout, at most `most`.
    fn expected_keys(&self, most: usize) -> Decoded<usize> {
        self.number("the number of expected keys", 48, 1..=most as u64)
    }

    /// The number of columns of a bank of filters of this many blocks.
    fn columns(&self, blocks: usize) -> Decoded<usize> {
        // Less than half of what is addressable, so that there is room for a bit for each column.
        let most = MOST_LINES / 2 / blocks as u64;
        let columns = self.number("the number of columns", 64, 64..=most)?;
        if columns % 64 != 0 {
            return invalid(format!("the number of columns, {columns}, is not a multiple of 64"));
        }
        Ok(columns)
    }

    /// The false-positive rate at the expected keys.
    pub(super) fn rate(&self) -> Decoded<f64> {
        let rate = f64::from_bits(self.get(56));
        if (0.0..=1.0).contains(&rate) {
            return Ok(rate);
        }
        invalid(format!("a rate of {rate} is not in 0 to 1"))
    }

    /// Fails if a byte of the header in `range` is not 0.
    pub(crate) fn zeros(&self, range: Range<usize>) -> Decoded<()> {
        check_zeros(&self.fields[range.start - 32..range.end - 32], range.start)
    }

    /// The header of a snapshot of `len` bytes, without fields.
    pub(crate) fn new(kind: Kind, hashing: Hashing, len: usize) -> Self {
        Self {
            kind,
            hashing,
            len: len as u64,
            fields: [0; FIELDS],
        }
    }

    /// The fields of a snapshot of blocks.
    pub(crate) fn blocks(&self) -> Decoded<BlocksHeader> {
        let (layout, is_bank) = (parse_layout(&self.fields)?, self.kind == Kind::Bank);
        if self.kind == Kind::Counting && layout.shape.lines > 1 {
            let lines = layout.shape.lines;
            return invalid(format!("{lines} lines per key; a CountingBloom has one"));
        }
        let header = BlocksHeader {
            layout,
            expected_keys: self.expected_keys(layout.most_keys())?,
            rate: self.rate()?,
            columns: if is_bank { self.columns(layout.blocks)? } else { 0 },
        };
        self.zeros(if is_bank { 72..120 } else { 64..120 })?;
        self.check_words(header.words())?;
        Ok(header)
    }

    /// The header of a snapshot of `number` buckets with fingerprints of `bits` bits, in `words`
    /// words.
    pub(crate) fn of_buckets(
        kind: Kind,
        hashing: Hashing,
        words: usize,
        (bits, number): (u8, usize),
        expected_keys: usize,
    ) -> Self {
        let mut header = Self::new(kind, hashing, snapshot_bytes(words));
        header.put(32, u64::from_le_bytes([LAYOUT_VERSION, bits, 0, 0, 0, 0, 0, 0]));
        header.put(40, number as u64);
        header.put(48, expected_keys as u64);
        header
    }

    /// The plan of the buckets that a header declares, at most `limit`, and the expected keys.
    /// `plan` takes the bits of a fingerprint and the number of buckets. It returns the plan and
    /// the largest number of keys that a builder plans for it.
    pub(crate) fn buckets<P>(
        &self,
        limit: u64,
        plan: impl FnOnce(u8, usize) -> Decoded<(P, usize)>,
    ) -> Decoded<(P, usize)> {
        self.check_layout_version(LAYOUT_VERSION)?;
        self.zeros(34..40)?;
        self.zeros(56..120)?;
        let number = self.number("the number of buckets", 40, 1..=limit)?;
        let (plan, most_keys) = plan(self.fields[1], number)?;
        Ok((plan, self.expected_keys(most_keys)?))
    }

    /// Fails unless byte 32 is this version of the layout.
    pub(crate) fn check_layout_version(&self, known: u8) -> Decoded<()> {
        check_layout_version(self.fields[0], known)
    }

    /// Fails unless the header declares the length of a snapshot of `words` words.
    pub(crate) fn check_words(&self, words: usize) -> Decoded<()> {
        self.check_len(snapshot_bytes(words))
    }

    /// Fails unless the header declares this length.
    pub(crate) fn check_len(&self, needed: usize) -> Decoded<()> {
        let (declared, needed) = (self.len, needed as u64);
        if declared == needed {
            return Ok(());
        }
        Err(SnapshotErrorKind::Length { declared, needed })
    }

    /// The bytes of the bits in the `parts` inner snapshots, which have at least one block each and
    /// come after `before` bytes.
    pub(crate) fn body_bytes(&self, before: usize, parts: usize) -> Decoded<u64> {
        let overhead = (before + parts * (SNAPSHOT_HEADER + TRAILER)) as u64;
        let least = overhead + (parts * LINE_BYTES) as u64;
        if self.len >= least && self.len % LINE_BYTES as u64 == 0 && self.len <= isize::MAX as u64 {
            return Ok(self.len - overhead);
        }
        Err(SnapshotErrorKind::Length {
            declared: self.len,
            needed: least,
        })
    }
}

/// The bytes of a snapshot with `words` words in its body, at most [`MOST_WORDS`].
pub(crate) const fn snapshot_bytes(words: usize) -> usize {
    SNAPSHOT_HEADER + words.div_ceil(LINE_WORDS) * LINE_BYTES + TRAILER
}

pub(crate) fn in_range<T: PartialOrd + Display>(name: &str, value: T, range: RangeInclusive<T>) -> Decoded<T> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    invalid(format!("{name}, {value}, is not in {least} to {most}"))
}

/// The header of a delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeltaHeader {
    pub(crate) hashing: Hashing,
    pub(crate) layout: Layout,
    /// The number of lines in the body.
    pub(crate) lines: u64,
    /// The bytes of the whole delta.
    pub(crate) len: u64,
}

impl DeltaHeader {
    pub(crate) fn to_bytes(self, body: &[u8]) -> [u8; DELTA_HEADER] {
        let mut bytes = [0; DELTA_HEADER];
        put_common(&mut bytes, Kind::Delta, self.hashing, self.len);
        put(&mut bytes, 32, layout_fields(self.layout));
        put(&mut bytes, 48, self.lines.to_le_bytes());
        let sum = delta_checksum(&bytes, body);
        put(&mut bytes, 56, sum.to_le_bytes());
        bytes
    }

    /// The header with which `bytes` begin, the delta's body, and the bytes after it. Checks the
    /// checksum of header and body.
    pub(crate) fn parse(bytes: &[u8]) -> Decoded<(Self, &[u8], &[u8])> {
        let header: &[u8; DELTA_HEADER] = first(bytes)?;
        check_kind(header, Kind::Delta)?;
        let (delta, rest) = split(bytes, delta_len(header)?)?;
        let body = &delta[DELTA_HEADER..];
        check_sum(get(header, 56), delta_checksum(header, body))?;
        Ok((Self::peek(header)?, body, rest))
    }

    /// The header of a delta, without a check of its checksum, which covers the body too.
    pub(super) fn peek(header: &[u8; DELTA_HEADER]) -> Decoded<Self> {
        Ok(Self {
            hashing: parse_hashing(header)?,
            layout: parse_layout(&header[32..])?,
            lines: get(header, 48),
            len: delta_len(header)?,
        })
    }
}

/// The length that a delta declares.
fn delta_len(header: &[u8; DELTA_HEADER]) -> Decoded<u64> {
    let (declared, needed) = (get(header, 24), DELTA_HEADER as u64);
    if declared < needed {
        return Err(SnapshotErrorKind::Length { declared, needed });
    }
    Ok(declared)
}

fn delta_checksum(header: &[u8; DELTA_HEADER], body: &[u8]) -> u64 {
    let mut sum = Checksum::default();
    sum.write(&header[..56]);
    sum.write(body);
    sum.finish()
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

/// The 64-bit field at `at`. It must lie within `bytes`.
fn get(bytes: &[u8], at: usize) -> u64 {
    let field = bytes[at..].first_chunk().expect("a field lies within its header");
    u64::from_le_bytes(*field)
}

fn put_common(bytes: &mut [u8], kind: Kind, hashing: Hashing, len: u64) {
    let (hasher, seed) = match hashing.identity {
        Identity::Other => (0, 0),
        Identity::Murmur3 { seed } => (1, seed),
        Identity::SipHash13 => (2, 0),
        Identity::FastHash { seed } => (3, seed),
        Identity::Prehashed => (4, 0),
    };
    put(bytes, 0, MAGIC);
    put(bytes, 8, VERSION.to_le_bytes());
    put(bytes, 10, [kind as u8, hasher]);
    put(bytes, 12, seed.to_le_bytes());
    put(bytes, 16, hashing.fingerprint.to_le_bytes());
    put(bytes, 24, len.to_le_bytes());
}

/// The 16 bytes from byte 32 on.
fn layout_fields(layout: Layout) -> [u8; 16] {
    let Shape { lines, bits, .. } = layout.shape;
    let words = layout.shape.words_per_key();
    let shape = [LAYOUT_VERSION, words as u8, bits as u8, lines as u8 - 1];
    let mut fields = [0; 16];
    put(&mut fields, 0, shape);
    put(&mut fields, 8, (layout.blocks as u64).to_le_bytes());
    fields
}

/// The first `N` bytes of a record of this version. Fewer bytes that could begin such a record are
/// truncated.
pub(super) fn first<const N: usize>(bytes: &[u8]) -> Decoded<&[u8; N]> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        let mut found = [0; 8];
        found[..magic.len()].copy_from_slice(magic);
        let found = found.escape_ascii();
        return invalid(format!(
            "not a snapshot or delta of a filter: the bytes begin with \"{found}\""
        ));
    }
    // Checked before the length, since another version may have another length.
    if let Some(&[low, high]) = bytes.get(8..10).and_then(|version| version.first_chunk()) {
        let version = u16::from_le_bytes([low, high]);
        if version != VERSION {
            return invalid(format!(
                "unsupported format version {version}; this release reads version 1"
            ));
        }
    }
    bytes.first_chunk().ok_or(SnapshotErrorKind::Truncated {
        bytes: bytes.len() as u64,
        needed: N as u64,
    })
}

fn check_kind(bytes: &[u8], wanted: Kind) -> Decoded<()> {
    let found = bytes[10];
    if found == wanted as u8 {
        return Ok(());
    }
    let name = match Kind::of(found) {
        Some(kind) => format!(" (a {kind})"),
        None if found == Kind::RESERVED => " (reserved)".into(),
        None => String::new(),
    };
    let number = wanted as u8;
    invalid(format!(
        "the bytes are of kind {found}{name}, not {number} (a {wanted})"
    ))
}

fn parse_hashing(bytes: &[u8]) -> Decoded<Hashing> {
    let seed = u32::from_le_bytes(*bytes[12..].first_chunk().expect("a field lies within its header"));
    let identity = match bytes[11] {
        0 => Identity::Other,
        1 => Identity::Murmur3 { seed },
        2 => Identity::SipHash13,
        3 => Identity::FastHash { seed },
        4 => Identity::Prehashed,
        other => {
            return invalid(format!(
                "unknown hasher {other}; this release knows 0 (a BuildHasher), 1 (Murmur3), 2 (SipHash-1-3), 3 (FastHash), \
                 4 (Prehashed)"
            ));
        }
    };
    let fingerprint = get(bytes, 16);
    let computed = match identity {
        Identity::Murmur3 { seed } => Some(Murmur3::with_seed(seed).fingerprint()),
        Identity::FastHash { seed } => Some(FastHash::with_seed(seed).fingerprint()),
        Identity::Prehashed => Some(Prehashed.fingerprint()),
        Identity::Other | Identity::SipHash13 => None,
    };
    if let Some(computed) = computed.filter(|&computed| computed != fingerprint) {
        return invalid(format!(
            "the hasher's fingerprint does not match: {identity} has {computed:016x}, but \
             {fingerprint:016x} is stored"
        ));
    }
    if !matches!(identity, Identity::Murmur3 { .. } | Identity::FastHash { .. }) {
        check_zeros(&bytes[12..16], 12)?;
    }
    Ok(Hashing { identity, fingerprint })
}

/// The layout that the bytes from byte 32 of a header on declare.
fn parse_layout(fields: &[u8]) -> Decoded<Layout> {
    check_layout_version(fields[0], LAYOUT_VERSION)?;
    let (words, bits, lines) = (usize::from(fields[1]), fields[2].into(), 1 + usize::from(fields[3]));
    let shape = Shape {
        lines,
        words: words / lines,
        bits,
    };
    if !shape.is_known() || shape.words_per_key() != words {
        return invalid(match lines {
            1 => format!("invalid layout: {words} words per key, {bits} bits per line"),
            _ => format!("invalid layout: {lines} lines per key, {words} words per key, {bits} bits per line"),
        });
    }
    check_zeros(&fields[4..8], 36)?;
    match get(fields, 8) {
        blocks if blocks % lines as u64 != 0 => {
            invalid(format!("{blocks} blocks do not divide into {lines} lines per key"))
        }
        blocks @ 1..=MOST_LINES => Ok(Layout {
            shape,
            blocks: blocks as usize,
        }),
        blocks => invalid(format!("{blocks} blocks is not in 1 to {MOST_LINES}")),
    }
}

fn check_layout_version(version: u8, known: u8) -> Decoded<()> {
    if version == known {
        return Ok(());
    }
    invalid(format!(
        "unsupported layout version {version}; this release reads version {known}"
    ))
}

/// Fails unless a trailer that begins `before` bytes into the record has this checksum.
pub(super) fn check_trailer(trailer: &[u8], computed: u64, before: usize) -> Decoded<()> {
    check_sum(get(trailer, 0), computed)?;
    check_zeros(&trailer[8..], before + 8)
}

fn check_sum(stored: u64, computed: u64) -> Decoded<()> {
    if stored == computed {
        return Ok(());
    }
    Err(SnapshotErrorKind::Checksum { stored, computed })
}

/// Fails if one of these bytes is not 0. The bytes, to which version 1 gives no meaning, begin at
/// `offset` of the record.
pub(crate) fn check_zeros(bytes: &[u8], offset: usize) -> Decoded<()> {
    match bytes.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => Err(SnapshotErrorKind::NotZero {
            offset: (offset + at) as u64,
            found: bytes[at],
        }),
    }
}

/// Returns an error for bytes that no filter of this version writes.
pub(crate) fn invalid<T>(problem: String) -> Decoded<T> {
    Err(SnapshotErrorKind::Invalid(problem))
}

/// The first `len` bytes, and the rest.
pub(super) fn split(bytes: &[u8], len: u64) -> Decoded<(&[u8], &[u8])> {
    let split = usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len));
    split.ok_or(SnapshotErrorKind::Truncated {
        bytes: bytes.len() as u64,
        needed: len,
    })
}
