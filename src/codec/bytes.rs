//! The bytes of a whole snapshot, borrowed or mapped from a file, for views that read them in
//! place.

use super::header::Checksum;
use super::{Decoded, TRAILER, check_trailer, split};
#[cfg(feature = "mmap")]
use crate::error::SnapshotErrorKind;

/// The bytes of one snapshot.
#[derive(Clone)]
pub(crate) enum SnapshotBytes<'a> {
    Borrowed(&'a [u8]),
    #[cfg(feature = "mmap")]
    Mapped(alloc::sync::Arc<memmap2::Mmap>),
}

impl<'a> SnapshotBytes<'a> {
    /// The snapshot with which `bytes` begin, and the bytes after it. `parse` reads the header and
    /// returns the length of the snapshot too.
    pub(crate) fn borrow<T>(
        bytes: &'a [u8],
        parse: impl FnOnce(&[u8]) -> Decoded<(T, usize)>,
    ) -> Decoded<(Self, T, &'a [u8])> {
        let (parsed, len) = parse(bytes)?;
        let (snapshot, rest) = split(bytes, len as u64)?;
        Ok((Self::Borrowed(snapshot), parsed, rest))
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => map,
        }
    }

    /// Fails if the checksum of all the bytes is not the one in the trailer.
    pub(crate) fn verify(&self) -> Decoded<()> {
        let (summed, trailer) = self.bytes().split_last_chunk::<TRAILER>().expect("it is longer");
        check_trailer(trailer, Checksum::oneshot(summed), summed.len())
    }
}

#[cfg(feature = "mmap")]
impl SnapshotBytes<'static> {
    /// Maps a file that holds a snapshot and nothing else. `parse` is as in
    /// [`borrow`](Self::borrow).
    ///
    /// # Safety
    ///
    /// As long as the value lives, no process may write to the file or make it shorter.
    pub(crate) unsafe fn map<T>(
        file: &std::fs::File,
        parse: impl FnOnce(&[u8]) -> Decoded<(T, usize)>,
    ) -> Decoded<(Self, T)> {
        // SAFETY: the caller's promise.
        let map = unsafe { memmap2::Mmap::map(file) }.map_err(SnapshotErrorKind::Io)?;
        // A refusal only costs speed.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let (_, parsed, rest) = SnapshotBytes::borrow(&map, parse)?;
        if !rest.is_empty() {
            return Err(SnapshotErrorKind::TooLong {
                bytes: map.len() as u64,
                needed: (map.len() - rest.len()) as u64,
            });
        }
        Ok((Self::Mapped(map.into()), parsed))
    }
}
