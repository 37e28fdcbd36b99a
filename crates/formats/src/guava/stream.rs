//! Guava's stream, both ways: `writeTo` and `readFrom`. A byte for the strategy's ordinal, a byte
//! for the number of hash functions, an `int` for the number of longs, and the longs, all
//! big-endian (`java.io.DataOutputStream`).

use super::GuavaBloom;
use super::error::GuavaReadError;
use super::layout::{GuavaLayout, Strategy};
use crate::flat::Flat;
use crate::java::error::ReadError;
use crate::java::stream;
use alloc::format;
use alloc::vec::Vec;

/// Bytes before the longs.
const HEADER: usize = 6;

/// What Java's `ObjectOutputStream` begins with (Java Object Serialization Specification,
/// `STREAM_MAGIC`).
const JAVA_OBJECT: [u8; 2] = [0xac, 0xed];

impl Strategy {
    /// Its place in Guava's `BloomFilterStrategies`.
    fn ordinal(self) -> u8 {
        match self {
            Self::Mitz32 => 0,
            Self::Mitz64 => 1,
        }
    }
}

impl GuavaLayout {
    fn header(&self) -> [u8; HEADER] {
        let [a, b, c, d] = (self.words as u32).to_be_bytes();
        [self.strategy.ordinal(), self.hash_functions, a, b, c, d]
    }

    fn from_header([ordinal, hash_functions, length @ ..]: [u8; HEADER]) -> Result<Self, ReadError> {
        let strategy = match ordinal {
            0 => Strategy::Mitz32,
            1 => Strategy::Mitz64,
            _ if [ordinal, hash_functions] == JAVA_OBJECT => {
                return Err(ReadError::Invalid(
                    "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream"
                        .into(),
                ));
            }
            _ => {
                return Err(ReadError::Invalid(format!(
                    "strategy {} is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)",
                    ordinal as i8
                )));
            }
        };
        if hash_functions == 0 {
            return Err(ReadError::Invalid("0 hash functions is not in 1 to 255".into()));
        }
        Ok(Self {
            strategy,
            hash_functions,
            words: stream::words(length)?,
        })
    }
}

/// Guava's stream.
impl GuavaBloom {
    /// The filter as Guava's `writeTo` writes it: 6 bytes, and 8 for every 64 bits.
    ///
    /// Beside inserts, it holds at least every key whose insertion happened before. Aborts if the
    /// allocation fails; [`write_to`](Self::write_to) allocates nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1, 0.03)?;
    /// assert_eq!(filter.to_bytes(), [1, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    /// filter.insert("a");
    /// assert_eq!(filter.to_bytes()[6..], [0x20, 0x02, 0, 0x08, 0, 0x80, 0x02, 0]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        stream::to_bytes(&self.layout.header(), &self.flat)
    }

    /// The length in bytes of the stream that begins with `head`, whose first 6 bytes say it.
    ///
    /// Guava's stream has no magic number. To recognize one among files of other formats, compare
    /// this length with that of the file.
    ///
    /// # Errors
    ///
    /// Fails if `head` has fewer than 6 bytes, or if no stream begins with it: its strategy is
    /// unknown, or it has no hash functions or no longs.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let stream = GuavaBloom::with_capacity(100, 0.03)?.to_bytes();
    /// assert_eq!(GuavaBloom::stream_len(&stream[..6])?, stream.len() as u64);
    /// assert!(GuavaBloom::stream_len(b"a line of text").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream_len(head: &[u8]) -> Result<u64, GuavaReadError> {
        let layout = stream::header(head).and_then(GuavaLayout::from_header);
        Ok(stream::bytes(HEADER, layout.map_err(GuavaReadError)?.words))
    }

    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the filter does, their strategy is unknown, the number of hash
    /// functions is 0, the number of longs is 0 or negative, or the allocation fails. Allocates
    /// nothing unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(100, 0.03)?;
    /// filter.insert("a");
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (copy, rest) = GuavaBloom::from_bytes(&bytes)?;
    /// assert!(copy == filter);
    /// assert_eq!(rest, b"more");
    ///
    /// bytes[1] = 0;
    /// let error = GuavaBloom::from_bytes(&bytes).unwrap_err();
    /// assert_eq!(error.to_string(), "0 hash functions is not in 1 to 255");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), GuavaReadError> {
        Self::from_bytes_within(bytes, u64::MAX).map_err(GuavaReadError)
    }

    /// [`from_bytes`](Self::from_bytes) for a filter of at most `limit` bytes.
    pub(crate) fn from_bytes_within(bytes: &[u8], limit: u64) -> Result<(Self, &[u8]), ReadError> {
        let layout = GuavaLayout::from_header(stream::header(bytes)?)?;
        let (flat, rest) = stream::from_bytes(bytes, HEADER, layout.shape(), limit)?;
        Ok((Self::read_with(layout, flat), rest))
    }

    fn read_with(layout: GuavaLayout, flat: Flat) -> Self {
        Self {
            flat,
            layout,
            expected_keys: layout.shape().keys_for_half(),
        }
    }
}

#[cfg(feature = "std")]
mod io {
    use super::{GuavaBloom, GuavaLayout, GuavaReadError, HEADER, ReadError, stream};
    use std::io::{self, Read, Write};

    /// Guava's stream, by `std::io` (feature `std`).
    impl GuavaBloom {
        /// Writes the filter as Guava's `writeTo` does: 6 bytes, and 8 for every 64 bits. It writes
        /// 8 KiB at a time, and does not flush.
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
        /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let mut stream = Vec::new();
        /// filter.write_to(&mut stream)?;
        /// assert_eq!(stream, filter.to_bytes());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "writeTo")]
        pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
            stream::write(&self.layout.header(), &self.flat, writer)
        }

        /// Reads a filter that Guava's `writeTo` or [`write_to`](Self::write_to) wrote, whose bits
        /// take `max_bytes` bytes at most. Leaves the bytes after it unread.
        ///
        /// The length that the stream declares is checked before anything is allocated, and memory
        /// grows with the bytes that arrive: at most three times as much as has arrived, or 64 KiB.
        /// It reads 8 KiB at a time, so the reader need not be buffered.
        ///
        /// # Errors
        ///
        /// Fails if the reader fails (its error is the [source](std::error::Error::source)), the
        /// stream ends before the filter does, the strategy is unknown, the number of hash
        /// functions is 0, the number of longs is 0 or negative or takes more than `max_bytes`, or
        /// the allocation fails.
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom_formats::GuavaBloom;
        ///
        /// let filter = GuavaBloom::with_capacity(1000, 0.03)?;
        /// filter.insert("a");
        /// let stream = [filter.to_bytes(), b"more".to_vec()].concat();
        ///
        /// let mut reader = &stream[..];
        /// let copy = GuavaBloom::read_from(&mut reader, 1 << 20)?;
        /// assert!(copy == filter);
        /// assert_eq!(reader, b"more");
        ///
        /// let error = GuavaBloom::read_from(&stream[..], 512).unwrap_err();
        /// let text = "the filter takes 920 bytes, more than the limit of 512 bytes";
        /// assert_eq!(error.to_string(), text);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[doc(alias = "readFrom")]
        pub fn read_from(reader: impl Read, max_bytes: usize) -> Result<Self, GuavaReadError> {
            Self::read(reader, max_bytes as u64).map_err(GuavaReadError)
        }

        fn read(mut reader: impl Read, limit: u64) -> Result<Self, ReadError> {
            let mut header = [0; HEADER];
            stream::fill(&mut reader, &mut header, 0, HEADER as u64)?;
            let layout = GuavaLayout::from_header(header)?;
            let flat = stream::read_longs(reader, HEADER, layout.shape(), limit)?;
            Ok(Self::read_with(layout, flat))
        }
    }
}
