//! Snapshots of a pair of filters: a header, and the snapshots of both. `codec` describes the bytes.

use super::TombstoneBloom;
use crate::codec::{
    FIELDS, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, assert_snapshot_length, from_slice, given,
    murmur3,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::hash::{KeyHasher, Murmur3};
use alloc::vec::Vec;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
///
/// The filter may be in use meanwhile: in what is read, a key whose removal happened before is absent, and one whose insertion did, and
/// that is not removed meanwhile, is there, but for the rate of false negatives.
impl<S: KeyHasher> TombstoneBloom<S> {
    /// The filter as bytes that [`from_bytes`](TombstoneBloom::from_bytes) reads.
    ///
    /// Aborts where the memory is not to be had; [`write_to`](Self::write_to) needs 2 MiB, and [`write_to_slice`](Self::write_to_slice)
    /// takes yours.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let bytes = filter.to_bytes();
    /// assert_eq!(bytes.len(), filter.snapshot_bytes());
    /// let (same, _) = TombstoneBloom::from_bytes(&bytes)?;
    /// assert!(same == filter && same.contains("a") && !same.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.snapshot_bytes());
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// How many bytes a snapshot takes: 512, and 64 for each block of the two filters.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.snapshot_bytes(), filter.memory_bytes() + 512);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> usize {
        SNAPSHOT_HEADER + self.added.snapshot_bytes() + self.removed.snapshot_bytes()
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let mut bytes = vec![0; filter.snapshot_bytes()];
    /// filter.write_to_slice(&mut bytes);
    /// assert_eq!(bytes, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, mut out: &mut [u8]) {
        assert_snapshot_length(out.len(), self.snapshot_bytes());
        let Ok(()) = self.encode(&mut out);
    }

    /// Writes the filter as bytes that [`read_from`](TombstoneBloom::read_from) reads, up to 2 MiB at a time, so that the writer need not be
    /// buffered. It does not flush.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let mut stream = Vec::new();
    /// filter.write_to(&mut stream)?;
    /// assert_eq!(stream, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        let mut out = crate::codec::Writer::new(writer);
        self.encode(&mut out)?;
        out.finish()
    }

    /// [`from_bytes`](TombstoneBloom::from_bytes) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](TombstoneBloom::from_bytes), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{TombstoneBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = TombstoneBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let bytes = filter.to_bytes();
    /// let (same, _) = TombstoneBloom::from_bytes_with(&bytes, hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// assert!(TombstoneBloom::from_bytes_with(&bytes, SipHash13::random()).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](TombstoneBloom::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](TombstoneBloom::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{TombstoneBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = TombstoneBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let stream = filter.to_bytes();
    /// let same = TombstoneBloom::read_from_with(&stream[..], 1 << 20, hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// assert!(TombstoneBloom::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let header = OwnHeader {
            kind: Kind::Tombstone,
            hashing: Hashing::of(self.hasher()),
            len: self.snapshot_bytes() as u64,
            fields: [0; FIELDS],
        };
        out.put(&header.to_bytes())?;
        // The removed ones last, as in a clone.
        self.added.encode(out)?;
        self.removed.encode(out)
    }

    /// Reads a filter whose bits take `limit` bytes at most.
    pub(crate) fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Tombstone)?;
        let hasher = hasher(header.hashing)?;
        header.zeros(32..120)?;
        let bytes = header.body_bytes(2)?;
        admit(input, header.len as usize, bytes, limit)?;
        let added = ConcurrentBloom::decode(input, bytes as usize, given(hasher))?;
        let left = bytes as usize - added.memory_bytes();
        let removed = ConcurrentBloom::decode(input, left, given(Murmur3::default()))?;
        let filter = Self { added, removed };
        if filter.memory_bytes() as u64 == bytes {
            Ok(filter)
        } else {
            Err(SnapshotErrorKind::Length {
                declared: header.len,
                needed: filter.snapshot_bytes() as u64,
            })
        }
    }
}

impl TombstoneBloom {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the filter does, are corrupt, are no snapshot of a `TombstoneBloom`, or one by another version of the
    /// format or with another hasher than [`Murmur3`] ([`from_bytes_with`](Self::from_bytes_with) reads those),
    /// or the memory is not to be had. Nothing is allocated unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).seed(7).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = TombstoneBloom::from_bytes(&bytes)?;
    /// assert!(same.contains("a") && !same.contains("b") && same.hasher().seed() == 7);
    /// assert_eq!(rest, b"more");
    ///
    /// let error = TombstoneBloom::from_bytes(&bytes[..500]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 500 of 3840");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose bits take `max_bytes` bytes at
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// filter.remove("b");
    /// let stream = filter.to_bytes();
    /// let same = TombstoneBloom::read_from(&stream[..], filter.memory_bytes())?;
    /// assert!(same.contains("a") && !same.contains("b"));
    ///
    /// let error = TombstoneBloom::read_from(&stream[..], 512).unwrap_err();
    /// assert_eq!(error.to_string(), "the filter takes 3328 bytes, more than the limit of 512 bytes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }
}
