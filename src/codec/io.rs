//! Snapshots through `std::io`, in bounded pieces.

use super::{Decoded, Input, Out, Progress};
use crate::error::SnapshotErrorKind;
use alloc::vec::Vec;
use std::io::{self, ErrorKind, Read, Write};

/// The bytes of a write. Each write begins at a multiple of this number.
///
/// It is the size of a huge page: Linux then keeps a file in huge pages if its file system can
/// (ext4 since 6.16, XFS), and a view maps them. With pieces of 64 KiB, batches of lookups in a
/// mapped view of 512 MiB took 1.5 to 1.7 times as long as in the filter; with these pieces 0.9 to
/// 1.1 times (Emerald Rapids, ext4, Linux 6.18).
const OUTPUT_BYTES: usize = 2 << 20;

/// Writes bytes in pieces of [`OUTPUT_BYTES`]. [`finish`](Self::finish) writes the last ones.
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
        while self.piece.len() + bytes.len() >= OUTPUT_BYTES {
            let (now, later) = bytes.split_at(OUTPUT_BYTES - self.piece.len());
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
    fn take<'a>(&'a mut self, len: usize, buffer: &'a mut Vec<u8>) -> Decoded<&'a [u8]> {
        self.progress.announce(len as u64);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let bytes = &mut buffer[..len];
        let filled = fill(&mut self.reader, bytes).map_err(SnapshotErrorKind::Io)?;
        if filled < len {
            return Err(self.progress.truncated(&bytes[..filled]));
        }
        self.progress.taken += len as u64;
        Ok(bytes)
    }

    fn announce(&mut self, len: u64) -> Decoded<()> {
        self.progress.announce(len);
        Ok(())
    }
}

/// Decodes the bytes of a reader.
pub(crate) fn from_reader<T, R: Read>(reader: R, decode: impl FnOnce(&mut Reader<R>) -> Decoded<T>) -> Decoded<T> {
    decode(&mut Reader {
        reader,
        progress: Progress::default(),
    })
}

/// `Read::read_exact`, but returns the number of bytes read: fewer if the reader ends before.
fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match reader.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
