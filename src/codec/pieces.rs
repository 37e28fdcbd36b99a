//! The destination and the source of a snapshot's bytes, in pieces: slices in this file, streams in
//! `io.rs`.

use super::header::first;
use super::{Decoded, SNAPSHOT_HEADER};
use crate::error::SnapshotErrorKind;
use alloc::vec::Vec;
use core::convert::Infallible;

/// The destination of a snapshot's bytes.
pub trait Out {
    /// Why bytes were refused.
    type Error;

    /// Takes the next bytes.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// Appends to the vector, whose capacity the caller has chosen.
impl Out for Vec<u8> {
    type Error = Infallible;

    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Fills the slice from its front. It must be long enough.
impl Out for &mut [u8] {
    type Error = Infallible;

    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        let (front, rest) = core::mem::take(self).split_at_mut(bytes.len());
        front.copy_from_slice(bytes);
        *self = rest;
        Ok(())
    }
}

/// The source of a snapshot's bytes.
pub trait Input {
    /// Returns the next `len` bytes, which may be in `buffer`. Fails if the source has fewer.
    fn take<'a>(&'a mut self, len: usize, buffer: &'a mut Vec<u8>) -> Decoded<&'a [u8]>;

    /// Announces that `len` more bytes follow. Fails if the source is known to have fewer.
    fn announce(&mut self, len: u64) -> Decoded<()>;
}

/// The bytes read from a source so far, and the bytes that it should have.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) taken: u64,
    pub(crate) announced: u64,
}

impl Progress {
    /// Announces that `len` more bytes follow.
    pub(crate) fn announce(&mut self, len: u64) {
        self.announced = self.announced.max(self.taken.saturating_add(len));
    }

    /// The error for a source that ends with these bytes.
    pub(crate) fn truncated(&self, rest: &[u8]) -> SnapshotErrorKind {
        // The header is incomplete: the bytes may not even begin one.
        if self.taken == 0 {
            if let Err(error) = first::<SNAPSHOT_HEADER>(rest) {
                return error;
            }
        }
        SnapshotErrorKind::Truncated {
            bytes: self.taken + rest.len() as u64,
            needed: self.announced,
        }
    }
}

/// A source whose bytes are all in memory.
pub(crate) struct Slice<'a> {
    rest: &'a [u8],
    progress: Progress,
}

impl Input for Slice<'_> {
    fn take<'a>(&'a mut self, len: usize, _: &'a mut Vec<u8>) -> Decoded<&'a [u8]> {
        self.announce(len as u64)?;
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.progress.taken += len as u64;
        Ok(taken)
    }

    fn announce(&mut self, len: u64) -> Decoded<()> {
        self.progress.announce(len);
        if (self.rest.len() as u64) < len {
            return Err(self.progress.truncated(self.rest));
        }
        Ok(())
    }
}

/// Decodes bytes; returns the result and the rest of the bytes.
pub(crate) fn from_slice<T>(bytes: &[u8], decode: impl FnOnce(&mut Slice<'_>) -> Decoded<T>) -> Decoded<(T, &[u8])> {
    let mut input = Slice {
        rest: bytes,
        progress: Progress::default(),
    };
    let decoded = decode(&mut input)?;
    Ok((decoded, input.rest))
}
