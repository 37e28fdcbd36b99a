//! Snapshots by `std::io`, in bounded pieces; and reading as many bytes as are needed, which Guava's streams share.

use super::{Input, Out, Progress, given, murmur3};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::hash::KeyHasher;
use alloc::vec::Vec;
use std::io::{self, ErrorKind, Read, Write};

/// Bytes that are written at once, to places that are multiples of it.
///
/// As many as a huge page has: Linux then keeps a file in huge pages where its file system can (ext4 from 6.16 on, XFS), and a view maps
/// them. With pieces of 64 KiB, batches of lookups in a mapped view of 512 MiB took 1.5 to 1.7 times as long as in the filter, with these
/// 0.9 to 1.1 times (Emerald Rapids, ext4, Linux 6.18).
const PIECE: usize = 2 << 20;

/// Hands on bytes in pieces of [`PIECE`]; the last ones by [`finish`](Self::finish).
pub(crate) struct Writer<W> {
    writer: W,
    piece: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            piece: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.writer.write_all(&self.piece)
    }
}

impl<W: Write> Out for Writer<W> {
    type Error = io::Error;

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.piece.len() + bytes.len() >= PIECE {
            let (now, later) = bytes.split_at(PIECE - self.piece.len());
            self.piece.extend_from_slice(now);
            self.writer.write_all(&self.piece)?;
            self.piece.clear();
            bytes = later;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }
}

pub(crate) struct Reader<R> {
    reader: R,
    progress: Progress,
}

impl<R: Read> Input for Reader<R> {
    fn take<'a>(&'a mut self, len: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], SnapshotErrorKind> {
        self.progress.announce(len as u64);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let bytes = &mut buffer[..len];
        match fill(&mut self.reader, bytes) {
            Ok(()) => {
                self.progress.taken += len as u64;
                Ok(bytes)
            }
            Err(Short::Ended(len)) => Err(self.progress.truncated(&bytes[..len])),
            Err(Short::Io(error)) => Err(SnapshotErrorKind::Io(error)),
        }
    }

    fn announce(&mut self, len: u64) -> Result<(), SnapshotErrorKind> {
        self.progress.announce(len);
        Ok(())
    }
}

/// What `decode` makes of what the reader gives.
pub(crate) fn from_reader<T, R: Read>(
    reader: R,
    decode: impl FnOnce(&mut Reader<R>) -> Result<T, SnapshotErrorKind>,
) -> Result<T, SnapshotErrorKind> {
    decode(&mut Reader {
        reader,
        progress: Progress::default(),
    })
}

/// By `std::io` (feature `std`).
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// Writes the filter as bytes that [`read_from`](ConcurrentBloom::read_from) reads, in the [format](crate::codec#the-format) of
    /// this crate: up to 2 MiB at a time, so that the writer need not be buffered. It does not flush.
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
        let mut out = Writer::new(writer);
        self.encode(&mut out)?;
        out.finish()
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
        from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
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
        from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
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
