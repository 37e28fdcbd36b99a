//! Guava's stream, both ways: `writeTo` and `readFrom`. A byte for the strategy's ordinal, a byte
//! for the number of hash functions, an `int` for the number of longs, and the longs, all
//! big-endian (`java.io.DataOutputStream`).

use super::GuavaBloom;
use super::error::{GuavaReadError, GuavaReadErrorKind};
use super::layout::{GuavaLayout, MAX_WORDS, Strategy};
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::{acquire, as_chunks};

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

    fn from_header([ordinal, hash_functions, length @ ..]: [u8; HEADER]) -> Result<Self, GuavaReadErrorKind> {
        let strategy = match ordinal {
            0 => Strategy::Mitz32,
            1 => Strategy::Mitz64,
            _ if [ordinal, hash_functions] == JAVA_OBJECT => {
                return Err(GuavaReadErrorKind::Invalid(
                    "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream"
                        .into(),
                ));
            }
            _ => {
                return Err(GuavaReadErrorKind::Invalid(format!(
                    "strategy {} is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)",
                    ordinal as i8
                )));
            }
        };
        if hash_functions == 0 {
            return Err(GuavaReadErrorKind::Invalid(
                "0 hash functions is not in 1 to 255".into(),
            ));
        }
        match i32::from_be_bytes(length) {
            length @ ..=0 => Err(GuavaReadErrorKind::Invalid(format!(
                "a length of {length} longs is not in 1 to {}",
                i32::MAX
            ))),
            length => Ok(Self {
                strategy,
                hash_functions,
                words: length as usize,
            }),
        }
    }

    /// Bytes of the whole stream.
    fn stream_bytes(&self) -> u64 {
        const { assert!(MAX_WORDS < 1 << 32) };
        HEADER as u64 + 8 * self.words as u64
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
        let mut bytes = Vec::with_capacity(self.layout.stream_bytes() as usize);
        bytes.extend_from_slice(&self.layout.header());
        bytes.extend(self.flat.words().flat_map(u64::to_be_bytes));
        acquire();
        bytes
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
        let Some((header, _)) = head.split_first_chunk() else {
            return Err(GuavaReadError(GuavaReadErrorKind::Truncated {
                bytes: head.len() as u64,
                needed: HEADER as u64,
            }));
        };
        let layout = GuavaLayout::from_header(*header).map_err(GuavaReadError)?;
        Ok(layout.stream_bytes())
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
    pub(crate) fn from_bytes_within(bytes: &[u8], limit: u64) -> Result<(Self, &[u8]), GuavaReadErrorKind> {
        let truncated = |needed| GuavaReadErrorKind::Truncated {
            bytes: bytes.len() as u64,
            needed,
        };
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Err(truncated(HEADER as u64));
        };
        let layout = GuavaLayout::from_header(*header)?;
        let needed = 8 * layout.words as u64;
        if needed > limit {
            return Err(GuavaReadErrorKind::OverLimit { needed, limit });
        }
        let (longs, _) = as_chunks(rest);
        let Some(longs) = longs.get(..layout.words) else {
            return Err(truncated(layout.stream_bytes()));
        };
        let filter = Self::with_layout(layout, layout.keys_for_half());
        let mut filter = filter.map_err(GuavaReadErrorKind::OutOfMemory)?;
        let longs = longs.iter().map(|long| u64::from_be_bytes(*long));
        filter.flat.bits.store_words(0, longs);
        Ok((filter, &rest[8 * layout.words..]))
    }
}

#[cfg(feature = "std")]
mod io {
    use super::{GuavaBloom, GuavaLayout, GuavaReadError, GuavaReadErrorKind, HEADER};
    use crate::flat::{Flat, LINE_WORDS};
    use lanebloom::internal::{Bits, acquire, as_chunks, as_chunks_mut};
    use std::io::{self, ErrorKind, Read, Write};

    /// Bytes read or written at once, on the stack.
    const BUFFER: usize = 8 << 10;
    /// Lines allocated before their bytes arrive: 64 KiB.
    const AT_FIRST: usize = 1 << 10;

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
        pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
            writer.write_all(&self.layout.header())?;
            let mut buffer = [0; BUFFER];
            let mut longs = self.flat.words();
            loop {
                let mut len = 0;
                for (place, long) in as_chunks_mut(&mut buffer).0.iter_mut().zip(&mut longs) {
                    *place = long.to_be_bytes();
                    len += place.len();
                }
                if len == 0 {
                    return Ok(());
                }
                acquire();
                writer.write_all(&buffer[..len])?;
            }
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

        fn read(mut reader: impl Read, limit: u64) -> Result<Self, GuavaReadErrorKind> {
            let mut header = [0; HEADER];
            fill(&mut reader, &mut header, 0, HEADER as u64)?;
            let layout = GuavaLayout::from_header(header)?;
            let needed = 8 * layout.words as u64;
            if needed > limit {
                return Err(GuavaReadErrorKind::OverLimit { needed, limit });
            }

            let all_lines = layout.words.div_ceil(LINE_WORDS);
            let allocate = |lines: usize| Bits::new(lines).map_err(GuavaReadErrorKind::OutOfMemory);
            let mut bits = allocate(all_lines.min(AT_FIRST))?;
            let mut buffer = [0; BUFFER];
            let mut words = 0;
            while words < layout.words {
                if words == LINE_WORDS * bits.blocks() {
                    let mut more = allocate(all_lines.min(2 * bits.blocks()))?;
                    more.store_words(0, bits.words().flatten());
                    bits = more;
                }
                // Up to the end of the allocation: the end of a line, or of the filter.
                let free = layout.words.min(LINE_WORDS * bits.blocks()) - words;
                let bytes = &mut buffer[..BUFFER.min(8 * free)];
                let before = HEADER as u64 + 8 * words as u64;
                fill(&mut reader, bytes, before, layout.stream_bytes())?;
                let (longs, _) = as_chunks(bytes);
                bits.store_words(words, longs.iter().map(|long| u64::from_be_bytes(*long)));
                words += longs.len();
            }
            Ok(Self {
                flat: Flat::of(bits, layout.words, layout.hash_functions.into()),
                layout,
                expected_keys: layout.keys_for_half(),
            })
        }
    }

    /// Fills `bytes`; `before` came before these, of `needed` in all.
    fn fill(reader: &mut impl Read, bytes: &mut [u8], before: u64, needed: u64) -> Result<(), GuavaReadErrorKind> {
        let mut len = 0;
        while len < bytes.len() {
            match reader.read(&mut bytes[len..]) {
                Ok(0) => {
                    let bytes = before + len as u64;
                    return Err(GuavaReadErrorKind::Truncated { bytes, needed });
                }
                Ok(more) => len += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(GuavaReadErrorKind::Io(error)),
            }
        }
        Ok(())
    }
}
