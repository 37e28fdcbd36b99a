//! Snapshots by `std::io`, 64 KiB at a time; and reading as many bytes as are needed, which Guava's streams share.

use super::{CHUNK, Checksum, Hashing, Header, Out, SNAPSHOT_HEADER, TRAILER, murmur3, store};
use crate::bits::Bits;
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::hash::KeyHasher;
use std::io::{self, ErrorKind, Read, Write};

struct Writer<W>(W);

impl<W: Write> Out for Writer<W> {
    type Error = io::Error;

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// By `std::io` (feature `std`).
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// Writes the filter as bytes that [`read_from`](ConcurrentBloom::read_from) reads, in the [format](crate::codec#the-format) of
    /// this crate: 64 KiB at a time, so that the writer need not be buffered. It does not flush.
    ///
    /// Beside inserts, it writes at least every key whose insertion happened before. To replace a file such that a crash leaves the old
    /// one or the new one, hand it to [`replace_file`](crate::codec::replace_file).
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut stream = Vec::new();
    /// filter.write_to(&mut stream)?;
    /// assert_eq!(stream, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        self.encode(&mut Writer(writer))
    }

    /// [`read_from`](ConcurrentBloom::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](ConcurrentBloom::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// let stream = filter.to_bytes();
    /// let same = ConcurrentBloom::read_from_with(&stream[..], 1 << 20, hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    ///
    /// let error = ConcurrentBloom::read_from(&stream[..], 1 << 20).unwrap_err();
    /// assert_eq!(error.to_string(), "the hasher differs: SipHash-1-3 there, Murmur3 with seed 0 here");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from_with(reader: impl Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        let given = |hashing: Hashing| hashing.check(Hashing::of(&hasher)).map(|()| hasher);
        Self::read(reader, max_bytes, given).map_err(SnapshotError)
    }

    fn read(
        mut reader: impl Read,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let mut head = [0; SNAPSHOT_HEADER];
        match fill(&mut reader, &mut head) {
            Ok(()) => {}
            // What there is may be no beginning of a snapshot at all.
            Err(Short::Ended(len)) => return Err(Header::parse(&head[..len]).expect_err("it is too short")),
            Err(Short::Io(error)) => return Err(SnapshotErrorKind::Io(error)),
        }
        let header = Header::parse(&head)?;
        let hasher = hasher(header.hashing)?;
        let bytes = header.layout.blocks * crate::sizing::LINE_BYTES;
        if bytes > limit {
            return Err(SnapshotErrorKind::OverLimit {
                needed: bytes as u64,
                limit: limit as u64,
            });
        }
        let mut sum = Checksum::default();
        sum.add(&head);
        let mut fill = |buffer: &mut [u8], before: usize| {
            fill(&mut reader, buffer).map_err(|short| match short {
                Short::Ended(len) => SnapshotErrorKind::Truncated {
                    bytes: (SNAPSHOT_HEADER + before + len) as u64,
                    needed: header.len() as u64,
                },
                Short::Io(error) => SnapshotErrorKind::Io(error),
            })
        };
        // All at once: as much as was allowed at most, of pages that come into being when they are written to.
        let mut bits = Bits::new(header.layout.blocks).map_err(SnapshotErrorKind::OutOfMemory)?;
        let mut buffer = alloc::vec![0; CHUNK.min(bytes)];
        for at in (0..bytes).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(bytes - at)];
            fill(chunk, at)?;
            sum.add(chunk);
            store(&mut bits, at, chunk);
        }
        let mut trailer = [0; TRAILER];
        fill(&mut trailer, bytes)?;
        sum.check(&trailer, (SNAPSHOT_HEADER + bytes) as u64)?;
        Ok(Self::with_bits(header.layout, bits, hasher, header.expected_keys))
    }
}

impl ConcurrentBloom {
    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose bits take `max_bytes` bytes at
    /// most. What comes after it is left unread.
    ///
    /// The length that the stream declares is checked before the memory for it is allocated, at once; its pages come into being as the
    /// bytes arrive. The reader need not be buffered: it is asked for 64 KiB at a time.
    ///
    /// # Errors
    ///
    /// If the reader fails (its error is the [source](std::error::Error::source)), the filter takes more than `max_bytes`, and as of
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let stream = [filter.to_bytes(), b"more".to_vec()].concat();
    ///
    /// let mut reader = &stream[..];
    /// let same = ConcurrentBloom::read_from(&mut reader, 1 << 20)?;
    /// assert!(same == filter);
    /// assert_eq!(reader, b"more");
    ///
    /// let error = ConcurrentBloom::read_from(&stream[..], 512).unwrap_err();
    /// assert_eq!(error.to_string(), "the filter takes 1344 bytes, more than the limit of 512 bytes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(reader: impl Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        Self::read(reader, max_bytes, murmur3).map_err(SnapshotError)
    }
}

/// Why a buffer was not filled.
pub(crate) enum Short {
    /// There were only so many bytes.
    Ended(usize),
    Io(io::Error),
}

/// `Read::read_exact` that knows how many bytes there were.
pub(crate) fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), Short> {
    let mut len = 0;
    while len < bytes.len() {
        match reader.read(&mut bytes[len..]) {
            Ok(0) => return Err(Short::Ended(len)),
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Short::Io(error)),
        }
    }
    Ok(())
}
