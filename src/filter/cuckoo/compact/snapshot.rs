//! Snapshots of the compact form: its packed buckets as they lie. `codec` describes the bytes.

use super::{CompactCuckoo, Packed};
use crate::bits::Load;
use crate::codec::{
    self, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, assert_snapshot_length, from_slice, given,
    murmur3, read_words, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::cuckoo::shape::Plan;
use crate::hash::KeyHasher;
use alloc::vec::Vec;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
impl<S: KeyHasher> CompactCuckoo<S> {
    /// The filter as bytes that [`from_bytes`](CompactCuckoo::from_bytes) reads.
    ///
    /// Aborts where the memory is not to be had; [`write_to`](Self::write_to) needs 2 MiB, and [`write_to_slice`](Self::write_to_slice)
    /// takes yours.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let bytes = filter.to_bytes();
    /// assert_eq!(bytes.len(), filter.snapshot_bytes());
    /// let (same, _) = CompactCuckoo::from_bytes(&bytes)?;
    /// assert!(same.to_bytes() == bytes && same.contains("a") && !same.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.snapshot_bytes());
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// How many bytes a snapshot takes: 192, and the bits of all buckets, rounded up to a multiple of 64 bytes.
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).tag_bits(16).build()?;
    /// let buckets = filter.slots() / 4;
    /// assert_eq!(filter.to_compact()?.snapshot_bytes(), 192 + (60 * buckets).div_ceil(512) * 64);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> usize {
        codec::snapshot_bytes(self.buckets.filled().len())
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
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let mut bytes = vec![0; filter.snapshot_bytes()];
    /// filter.write_to_slice(&mut bytes);
    /// assert_eq!(bytes, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, mut out: &mut [u8]) {
        assert_snapshot_length(out.len(), self.snapshot_bytes());
        let Ok(()) = self.encode(&mut out);
    }

    /// Writes the filter as bytes that [`read_from`](CompactCuckoo::read_from) reads, up to 2 MiB at a time, so that the writer need not be
    /// buffered. It does not flush.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
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

    /// [`from_bytes`](CompactCuckoo::from_bytes) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](CompactCuckoo::from_bytes), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CuckooFilter::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let bytes = filter.to_bytes();
    /// let (same, _) = CompactCuckoo::from_bytes_with(&bytes, hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// assert!(CompactCuckoo::from_bytes_with(&bytes, SipHash13::random()).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](CompactCuckoo::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](CompactCuckoo::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CuckooFilter::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let stream = filter.to_bytes();
    /// let same = CompactCuckoo::read_from_with(&stream[..], 1 << 20, hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// assert!(CompactCuckoo::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let words = self.buckets.filled();
        let plan = Plan {
            shape: self.buckets.shape,
            buckets: self.buckets.buckets,
            keys: self.expected_keys,
        };
        let hashing = Hashing::of(&self.hasher);
        let header = OwnHeader::of_buckets(Kind::CompactCuckoo, hashing, words.len(), plan.to_header());
        write_words(out, &header.to_bytes(), words.len(), words.iter().copied())
    }

    /// Reads a filter that takes `limit` bytes at most.
    pub(crate) fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::CompactCuckoo)?;
        let hasher = hasher(header.hashing)?;
        let Plan { shape, buckets, keys } = Plan::of_header(&header)?;
        let words = Packed::words_filled(shape, buckets);
        header.check_words(words)?;
        admit(
            input,
            header.len as usize,
            Packed::bytes_of(shape, buckets) as u64,
            limit,
        )?;
        let mut packed = Packed::zeros(shape, buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, |first, words| {
            packed.store(first, words.iter().map(Load::load));
        })?;
        packed.check()?;
        Ok(Self {
            buckets: packed,
            hasher,
            expected_keys: keys,
        })
    }
}

impl CompactCuckoo {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the filter does, are corrupt, are no snapshot of a `CompactCuckoo`, or one by another version of the
    /// format or with another hasher than [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those),
    /// or the memory is not to be had. Nothing is allocated unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).seed(7).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = CompactCuckoo::from_bytes(&bytes)?;
    /// assert!(same.contains("a") && !same.contains("b") && same.hasher().seed() == 7);
    /// assert_eq!(rest, b"more");
    ///
    /// let error = CompactCuckoo::from_bytes(&bytes[..500]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 500 of 1536");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose buckets take `max_bytes` bytes at
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
    /// use lanebloom::{CompactCuckoo, CuckooFilter};
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let filter = filter.to_compact()?;
    /// let stream = filter.to_bytes();
    /// let same = CompactCuckoo::read_from(&stream[..], filter.memory_bytes())?;
    /// assert!(same.contains("a") && !same.contains("b"));
    ///
    /// let error = CompactCuckoo::read_from(&stream[..], 512).unwrap_err();
    /// assert_eq!(error.to_string(), "the filter takes 1312 bytes, more than the limit of 512 bytes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }
}
