//! Snapshots of a cuckoo filter: its buckets as they are, a word each. `codec` describes the bytes.

use super::CuckooFilter;
use super::shape::{self, Plan, Shape};
use super::table::Table;
use crate::bits::Load;
use crate::codec::{
    self, Buckets, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, admit, assert_snapshot_length,
    from_slice, given, murmur3, read_words, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::hash::KeyHasher;
use alloc::vec::Vec;

impl Plan {
    pub(super) fn to_header(self) -> Buckets {
        Buckets {
            bits: self.shape.tag_bits as u8,
            number: self.buckets,
            expected_keys: self.keys,
        }
    }

    pub(super) fn of_header(header: &OwnHeader) -> Result<Self, SnapshotErrorKind> {
        let Buckets {
            bits,
            number,
            expected_keys,
        } = header.buckets(MOST_WORDS, |bits, number| {
            let shape = Shape::of(bits.into()).ok_or(SnapshotErrorKind::TagBits(bits))?;
            Ok(shape.most_keys(number))
        })?;
        let shape = Shape::of(bits.into()).ok_or(SnapshotErrorKind::TagBits(bits))?;
        // Two at least, then, and a key's two are never one.
        if !number.is_multiple_of(2) {
            return Err(SnapshotErrorKind::OddBuckets(number));
        }
        Ok(Self {
            shape,
            buckets: number,
            keys: expected_keys,
        })
    }
}

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
///
/// The filter may be in use meanwhile: what is read has every key whose insertion happened before and that is not removed meanwhile, as
/// often as it was inserted. No tag is missed because it moves: moves and removals wait while the buckets are copied.
/// Of a key that comes or goes meanwhile nobody knows whether it is there, so it is not to be removed from what is read.
impl<S: KeyHasher> CuckooFilter<S> {
    /// The filter as bytes that [`from_bytes`](CuckooFilter::from_bytes) reads.
    ///
    /// Aborts where the memory is not to be had; [`write_to_slice`](Self::write_to_slice) takes yours.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let bytes = filter.to_bytes();
    /// assert_eq!(bytes.len(), filter.snapshot_bytes());
    /// let (same, _) = CuckooFilter::from_bytes(&bytes)?;
    /// assert!(same.to_bytes() == bytes && same.remove("a") && same.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.snapshot_bytes());
        let Ok(()) = self.encode_held(&mut bytes);
        bytes
    }

    /// How many bytes a snapshot takes: 192, and 64 for every 8 buckets, the last ones rounded up.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).tag_bits(16).build()?;
    /// let buckets = filter.slots() / 4;
    /// assert_eq!(filter.snapshot_bytes(), 192 + buckets.div_ceil(8) * 64);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> usize {
        codec::snapshot_bytes(self.table.buckets())
    }

    /// [`to_bytes`](Self::to_bytes) into memory of one's own.
    ///
    /// # Panics
    ///
    /// If `out` does not have [`snapshot_bytes`](Self::snapshot_bytes) bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut bytes = vec![0; filter.snapshot_bytes()];
    /// filter.write_to_slice(&mut bytes);
    /// assert_eq!(bytes, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, mut out: &mut [u8]) {
        assert_snapshot_length(out.len(), self.snapshot_bytes());
        let Ok(()) = self.encode_held(&mut out);
    }

    /// Writes the filter as bytes that [`read_from`](CuckooFilter::read_from) reads, up to 2 MiB at a time, so that the writer need not be
    /// buffered. It does not flush.
    ///
    /// The buckets are copied first, so that nobody waits for the writer: that takes as much memory as they do.
    ///
    /// # Errors
    ///
    /// Those of the writer, and one of kind `OutOfMemory` where there is none for the copy.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut stream = Vec::new();
    /// filter.write_to(&mut stream)?;
    /// assert_eq!(stream, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        let copy = self.table.try_clone();
        let copy = copy.map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))?;
        let mut out = codec::Writer::new(writer);
        self.encode(&mut out, &copy)?;
        out.finish()
    }

    /// [`from_bytes`](CuckooFilter::from_bytes) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](CuckooFilter::from_bytes), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CuckooFilter, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CuckooFilter::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let bytes = filter.to_bytes();
    /// let (same, _) = CuckooFilter::from_bytes_with(&bytes, hasher)?;
    /// assert!(same.remove("a") && !same.contains("a"));
    /// assert!(CuckooFilter::from_bytes_with(&bytes, SipHash13::random()).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](CuckooFilter::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](CuckooFilter::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CuckooFilter, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CuckooFilter::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let stream = filter.to_bytes();
    /// let same = CuckooFilter::read_from_with(&stream[..], 1 << 20, hasher)?;
    /// assert!(same.remove("a") && !same.contains("a"));
    /// assert!(CuckooFilter::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }

    /// Where writing calls nobody who could wait for what is held.
    fn encode_held<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let _held = self.table.hold_all();
        self.encode(out, &self.table)
    }

    /// `table` is the filter's, or a copy of it.
    fn encode<O: Out>(&self, out: &mut O, table: &Table) -> Result<(), O::Error> {
        let words = table.words();
        let plan = Plan {
            shape: table.shape(),
            buckets: table.buckets(),
            keys: self.expected_keys,
        };
        let hashing = Hashing::of(&self.hasher);
        let header = OwnHeader::of_buckets(Kind::Cuckoo, hashing, words.len(), plan.to_header());
        write_words(out, &header.to_bytes(), words.len(), words)
    }

    /// Reads a filter that takes `limit` bytes at most.
    pub(crate) fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Cuckoo)?;
        let hasher = hasher(header.hashing)?;
        let Plan { shape, buckets, keys } = Plan::of_header(&header)?;
        header.check_words(buckets)?;
        admit(input, header.len as usize, shape::bytes_of(buckets) as u64, limit)?;
        let mut table = Table::new(shape, buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), buckets, |first, words| {
            table.store(first, words.iter().map(Load::load));
        })?;
        // Every tag may be anywhere; only bits of no slot would be taken for what they are not.
        shape.check(table.words())?;
        Ok(Self {
            table,
            hasher,
            expected_keys: keys,
        })
    }
}

impl CuckooFilter {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the filter does, are corrupt, are no snapshot of a `CuckooFilter`, or one by another version of the
    /// format or with another hasher than [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those),
    /// or the memory is not to be had. Nothing is allocated unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).seed(7).build()?;
    /// filter.insert("a")?;
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = CuckooFilter::from_bytes(&bytes)?;
    /// assert!(same.remove("a") && !same.contains("a") && same.hasher().seed() == 7);
    /// assert_eq!(rest, b"more");
    ///
    /// let error = CuckooFilter::from_bytes(&bytes[..500]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 500 of 1792");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose buckets, and what is beside them, take `max_bytes` bytes at
    /// most. What comes after it is left unread.
    ///
    /// The length that the stream declares is checked before memory is allocated. The reader need not be buffered: it is asked for
    /// 64 KiB at a time.
    ///
    /// # Errors
    ///
    /// If the reader fails (its error is the [source](std::error::Error::source)), the filter takes more than `max_bytes`, and as of
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let stream = filter.to_bytes();
    /// let same = CuckooFilter::read_from(&stream[..], filter.memory_bytes())?;
    /// assert!(same.remove("a") && !same.contains("a"));
    ///
    /// let error = CuckooFilter::read_from(&stream[..], 512).unwrap_err();
    /// assert_eq!(error.to_string(), "the filter takes 1608 bytes, more than the limit of 512 bytes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }
}
