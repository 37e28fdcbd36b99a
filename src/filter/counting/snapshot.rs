//! Snapshots of a counting filter: as those of the filter of bits, and of another kind. `codec` describes the bytes.

use super::CountingBloom;
use crate::bits::Load;
use crate::codec::{
    Hashing, Header, Input, Kind, Out, SNAPSHOT_HEADER, admit, assert_snapshot_length, from_slice, given, murmur3,
    read_words, write_words,
};
use crate::counters::CounterLines;
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::hash::KeyHasher;
use crate::simd::{CounterKernels, Isa};
use crate::sizing::{LINE_BYTES, LINE_WORDS};
use alloc::vec::Vec;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
///
/// The filter may be in use meanwhile: what is read has every key whose insertion happened before and whose removal had not begun.
/// Of a key that comes or goes meanwhile some counters may be there, which then stay too high by one: false positives, never
/// false negatives. Nobody knows whether it is there, so it is not to be removed from what is read.
impl<S: KeyHasher> CountingBloom<S> {
    /// The filter as bytes that [`from_bytes`](CountingBloom::from_bytes) reads.
    ///
    /// Aborts where the memory is not to be had; [`write_to`](Self::write_to) needs 2 MiB, and [`write_to_slice`](Self::write_to_slice)
    /// takes yours.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// assert_eq!(bytes.len(), filter.snapshot_bytes());
    /// let (same, _) = CountingBloom::from_bytes(&bytes)?;
    /// assert!(same == filter && same.remove("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.snapshot_bytes());
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// How many bytes a snapshot takes: 192, and 64 for each block.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().memory_budget(1 << 20).build()?;
    /// assert_eq!(filter.snapshot_bytes(), (1 << 20) + 192);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> usize {
        self.header().len()
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut bytes = vec![0; filter.snapshot_bytes()];
    /// filter.write_to_slice(&mut bytes);
    /// assert_eq!(bytes, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to_slice(&self, mut out: &mut [u8]) {
        assert_snapshot_length(out.len(), self.snapshot_bytes());
        let Ok(()) = self.encode(&mut out);
    }

    /// Writes the filter as bytes that [`read_from`](CountingBloom::read_from) reads, up to 2 MiB at a time, so that the writer need not be
    /// buffered. It does not flush.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
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

    /// [`from_bytes`](CountingBloom::from_bytes) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](CountingBloom::from_bytes), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CountingBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CountingBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let (same, _) = CountingBloom::from_bytes_with(&bytes, hasher)?;
    /// assert!(same.remove("a") && !same.contains("a"));
    /// assert!(CountingBloom::from_bytes_with(&bytes, SipHash13::random()).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](CountingBloom::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](CountingBloom::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CountingBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = CountingBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// let stream = filter.to_bytes();
    /// let same = CountingBloom::read_from_with(&stream[..], 1 << 20, hasher)?;
    /// assert!(same.remove("a") && !same.contains("a"));
    /// assert!(CountingBloom::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let words = self.blocks() * LINE_WORDS;
        write_words(out, &self.header().to_bytes(), words, self.counters.words())
    }

    fn header(&self) -> Header {
        Header {
            kind: Kind::Counting,
            hashing: Hashing::of(&self.hasher),
            layout: self.layout,
            expected_keys: self.expected_keys,
            rate: self.false_positive_rate_at(self.expected_keys),
        }
    }

    /// Reads a filter whose counters take `limit` bytes at most. Counters may have any value: one at 15 is stuck.
    pub(crate) fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = Header::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Counting)?;
        let hasher = hasher(header.hashing)?;
        let blocks = header.layout.blocks;
        admit(input, header.len(), (blocks * LINE_BYTES) as u64, limit)?;
        let mut counters = CounterLines::new(blocks).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), blocks * LINE_WORDS, |first, words| {
            counters.store_words(first, words.iter().map(Load::load));
        })?;
        Ok(Self {
            counters,
            kernels: CounterKernels::of(header.layout, Isa::detect()),
            hasher,
            layout: header.layout,
            expected_keys: header.expected_keys,
        })
    }
}

impl CountingBloom {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the filter does, are corrupt, are no snapshot of a `CountingBloom`, or one by another version of the
    /// format or with another hasher than [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those),
    /// or the memory is not to be had. Nothing is allocated unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).seed(7).build()?;
    /// filter.insert("a");
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = CountingBloom::from_bytes(&bytes)?;
    /// assert!(same.remove("a") && !same.contains("a") && same.hasher().seed() == 7);
    /// assert_eq!(rest, b"more");
    ///
    /// let error = CountingBloom::from_bytes(&bytes[..500]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 500 of 5952");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose counters take `max_bytes` bytes at
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let stream = filter.to_bytes();
    /// let same = CountingBloom::read_from(&stream[..], filter.memory_bytes())?;
    /// assert!(same.remove("a") && !same.contains("a"));
    ///
    /// let error = CountingBloom::read_from(&stream[..], 512).unwrap_err();
    /// assert_eq!(error.to_string(), "the filter takes 5760 bytes, more than the limit of 512 bytes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }
}
