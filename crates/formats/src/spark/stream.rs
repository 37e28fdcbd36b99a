//! Spark's stream, both ways: `writeTo` and `readFrom`. An `int` for the version, an `int` for the
//! number of hash functions, in V2 an `int` for the seed, an `int` for the number of longs, and the
//! longs, all big-endian (`java.io.DataOutputStream`).

use super::SparkBloom;
use super::error::SparkReadError;
use super::layout::{MAX_HASH_FUNCTIONS, SparkLayout, Version};
use crate::flat::Flat;
use crate::java::error::ReadError;
use crate::java::stream;
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::as_chunks;

/// Bytes of the `int` that says the version.
const INT: usize = 4;
/// The most bytes before the longs.
const MOST_HEADER: usize = 4 * INT;

/// What Java's `ObjectOutputStream` begins with (Java Object Serialization Specification,
/// `STREAM_MAGIC` and `STREAM_VERSION`).
const JAVA_OBJECT: [u8; INT] = [0xac, 0xed, 0, 5];

impl Version {
    fn of(number: [u8; INT]) -> Result<Self, ReadError> {
        match i32::from_be_bytes(number) {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            _ if number == JAVA_OBJECT => Err(ReadError::Invalid(
                "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream"
                    .into(),
            )),
            other => Err(ReadError::Invalid(format!("version {other} is neither 1 nor 2"))),
        }
    }

    /// Bytes before the longs.
    fn header_len(self) -> usize {
        match self {
            Self::V1 => 3 * INT,
            Self::V2 => 4 * INT,
        }
    }
}

impl SparkLayout {
    /// The header: so many of these bytes.
    fn header(&self) -> ([u8; MOST_HEADER], usize) {
        let (functions, words) = (self.hash_functions, self.words as u32);
        let ints = match self.version {
            Version::V1 => [1, functions, words, 0],
            Version::V2 => [2, functions, self.seed as u32, words],
        };
        let mut header = [0; MOST_HEADER];
        for (place, int) in header.chunks_exact_mut(INT).zip(ints) {
            place.copy_from_slice(&int.to_be_bytes());
        }
        (header, self.version.header_len())
    }

    /// The layout that the header of this version says. The header is complete.
    fn from_header(version: Version, header: &[u8]) -> Result<Self, ReadError> {
        let (hash_functions, seed, length) = match (version, as_chunks(header).0) {
            (Version::V1, [_, hash_functions, length]) => (hash_functions, [0; INT], length),
            (Version::V2, [_, hash_functions, seed, length]) => (hash_functions, *seed, length),
            _ => unreachable!("header_len says how many there are"),
        };
        let hash_functions = i32::from_be_bytes(*hash_functions);
        match u32::try_from(hash_functions) {
            Ok(number @ 1..=MAX_HASH_FUNCTIONS) => Ok(Self {
                version,
                seed: i32::from_be_bytes(seed),
                hash_functions: number,
                words: stream::words(*length)?,
            }),
            _ => Err(ReadError::Invalid(format!(
                "{hash_functions} hash functions is not in 1 to {MAX_HASH_FUNCTIONS}"
            ))),
        }
    }

    /// The layout of the stream that begins with `head`, and the length of its header.
    fn from_head(head: &[u8]) -> Result<(Self, usize), ReadError> {
        let version = Version::of(stream::header(head)?)?;
        let len = version.header_len();
        let header = head.get(..len).ok_or(ReadError::Truncated {
            bytes: head.len() as u64,
            needed: len as u64,
        })?;
        Ok((Self::from_header(version, header)?, len))
    }
}

/// Spark's stream.
impl SparkBloom {
    /// The filter as Spark's `writeTo` writes it, in the filter's version: 12 bytes for V1 or 16
    /// for V2, and 8 for every 64 bits.
    ///
    /// Beside inserts, it holds at least every key whose insertion happened before. Aborts if the
    /// allocation fails; [`write_to`](Self::write_to) allocates nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1, 0.03)?;
    /// let header = [0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1];
    /// filter.insert("a");
    /// assert_eq!(filter.to_bytes()[..16], header);
    /// assert_eq!(filter.to_bytes()[16..], [0, 8, 0x10, 1, 2, 0, 0, 0x40]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (header, len) = self.layout.header();
        stream::to_bytes(&header[..len], &self.flat)
    }

    /// The length in bytes of the stream that begins with `head`, whose first 12 bytes say it for
    /// V1, and the first 16 for V2.
    ///
    /// # Errors
    ///
    /// Fails if `head` is shorter, or if no stream begins with it: its version is unknown, its
    /// number of hash functions is not in 1 to 65,536, or it has no longs.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let stream = SparkBloom::with_capacity(100, 0.03)?.to_bytes();
    /// assert_eq!(SparkBloom::stream_len(&stream[..16])?, stream.len() as u64);
    /// assert!(SparkBloom::stream_len(b"a line of text").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream_len(head: &[u8]) -> Result<u64, SparkReadError> {
        let (layout, header) = SparkLayout::from_head(head).map_err(SparkReadError)?;
        Ok(stream::bytes(header, layout.words))
    }

    /// The filter with which `bytes` begin, of either version, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the filter does, their version is unknown, the number of hash
    /// functions is not in 1 to 65,536, the number of longs is 0 or negative, or the allocation
    /// fails. Allocates nothing unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SparkBloom;
    ///
    /// let filter = SparkBloom::with_capacity(100, 0.03)?;
    /// filter.insert("a");
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (copy, rest) = SparkBloom::from_bytes(&bytes)?;
    /// assert!(copy == filter);
    /// assert_eq!(rest, b"more");
    ///
    /// bytes[3] = 3;
    /// let error = SparkBloom::from_bytes(&bytes).unwrap_err();
    /// assert_eq!(error.to_string(), "version 3 is neither 1 nor 2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "readFrom")]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SparkReadError> {
        Self::from_bytes_within(bytes, u64::MAX).map_err(SparkReadError)
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of at most `limit` bytes.
    pub(crate) fn from_bytes_within(bytes: &[u8], limit: u64) -> Result<(Self, &[u8]), ReadError> {
        let (layout, header) = SparkLayout::from_head(bytes)?;
        let (flat, rest) = stream::from_bytes(bytes, header, layout.shape(), limit)?;
        Ok((Self::read_with(layout, flat), rest))
    }

    fn read_with(layout: SparkLayout, flat: Flat) -> Self {
        Self {
            flat,
            layout,
            expected_keys: layout.shape().keys_for_half(),
        }
    }
}

#[cfg(feature = "std")]
mod io {
    use super::{INT, MOST_HEADER, ReadError, SparkBloom, SparkLayout, SparkReadError, Version, stream};
    use std::io::{self, Read, Write};

    /// Spark's stream, by `std::io` (feature `std`).
    impl SparkBloom {
        /// Writes the filter as Spark's `writeTo` does, in the filter's version: 12 bytes for V1 or
        /// 16 for V2, and 8 for every 64 bits. It writes 8 KiB at a time, and does not flush.
        ///
        /// Beside inserts, it writes at least every key whose insertion happened before.
        ///
        /// # Errors
        ///
        /// Fails if the writer fails.
        ///
        /// # Examples
        ///
        /// ```
        /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let mut stream = Vec::new();
        /// filter.write_to(&mut stream)?;
        /// assert_eq!(stream, filter.to_bytes());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "writeTo")]
        pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
            let (header, len) = self.layout.header();
            stream::write(&header[..len], &self.flat, writer)
        }

        /// Reads a filter of either version that Spark's `writeTo` or [`write_to`](Self::write_to)
        /// wrote, whose bits take `max_bytes` bytes at most. Leaves the bytes after it unread.
        ///
        /// The length that the stream declares is checked before anything is allocated, and memory
        /// grows with the bytes that arrive: at most three times as much as has arrived, or 64 KiB.
        /// It reads 8 KiB at a time, so the reader need not be buffered.
        ///
        /// # Errors
        ///
        /// Fails if the reader fails (its error is the [source](std::error::Error::source)), the
        /// stream ends before the filter does, the version is unknown, the number of hash functions
        /// is not in 1 to 65,536, the number of longs is 0 or negative or takes more than
        /// `max_bytes`, or the allocation fails.
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom_formats::SparkBloom;
        ///
        /// let filter = SparkBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let stream = [filter.to_bytes(), b"more".to_vec()].concat();
        ///
        /// let mut reader = &stream[..];
        /// let copy = SparkBloom::read_from(&mut reader, 1 << 20)?;
        /// assert!(copy == filter);
        /// assert_eq!(reader, b"more");
        ///
        /// let error = SparkBloom::read_from(&stream[..], 512).unwrap_err();
        /// let text = "the filter takes 920 bytes, more than the limit of 512 bytes";
        /// assert_eq!(error.to_string(), text);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "readFrom")]
        pub fn read_from(reader: impl Read, max_bytes: usize) -> Result<Self, SparkReadError> {
            Self::read(reader, max_bytes as u64).map_err(SparkReadError)
        }

        fn read(mut reader: impl Read, limit: u64) -> Result<Self, ReadError> {
            let mut header = [0; MOST_HEADER];
            let (number, rest) = header.split_at_mut(INT);
            stream::fill(&mut reader, number, 0, INT as u64)?;
            let version = Version::of(stream::header(number)?)?;
            let len = version.header_len();
            stream::fill(&mut reader, &mut rest[..len - INT], INT as u64, len as u64)?;
            let layout = SparkLayout::from_header(version, &header[..len])?;
            let flat = stream::read_longs(reader, len, layout.shape(), limit)?;
            Ok(Self::read_with(layout, flat))
        }
    }
}
