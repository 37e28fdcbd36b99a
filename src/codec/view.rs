//! Views: the bytes of a whole snapshot, borrowed or mapped from a file, and lookups in them, in
//! place.

use super::header::Checksum;
use super::{Decoded, Hashing, TRAILER, check_trailer, given, split};
use crate::error::SnapshotError;
#[cfg(feature = "mmap")]
use crate::error::SnapshotErrorKind;
use crate::hash::FilterHasher;

/// The bytes of one snapshot. While a view is opened, others may follow.
#[derive(Clone)]
pub enum SnapshotBytes<'a> {
    /// The caller's bytes.
    Borrowed(&'a [u8]),
    /// A file, which the clones of a view share.
    #[cfg(feature = "mmap")]
    Mapped(alloc::sync::Arc<memmap2::Mmap>),
}

impl SnapshotBytes<'_> {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => map,
        }
    }

    /// The first `len` bytes, which are the snapshot. A mapped file must end there.
    pub(crate) fn first(self, len: u64) -> Decoded<Self> {
        match self {
            Self::Borrowed(bytes) => split(bytes, len).map(|(snapshot, _)| Self::Borrowed(snapshot)),
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => match map.len() as u64 {
                bytes if bytes > len => Err(SnapshotErrorKind::TooLong { bytes, needed: len }),
                _ => {
                    split(&map, len)?;
                    Ok(Self::Mapped(map))
                }
            },
        }
    }

    /// Fails if the checksum of all the bytes is not the one in the trailer.
    pub(crate) fn verify(&self) -> Decoded<()> {
        let (summed, trailer) = self.bytes().split_last_chunk::<TRAILER>().expect("it is longer");
        check_trailer(trailer, Checksum::oneshot(summed), summed.len())
    }
}

/// A view of a snapshot's bytes.
pub trait Viewed<'a>: Sized {
    /// `()` if there is none.
    type Hasher;

    /// Opens the snapshot with which `bytes` begin, with the hasher for the header's record.
    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<Self::Hasher>) -> Decoded<Self>;

    /// The bytes of the snapshot.
    fn snapshot(&self) -> &SnapshotBytes<'a>;
}

/// A view of the snapshot with which `bytes` begin, and the bytes after it, for any hasher.
///
/// The view is a [`BloomView`](crate::BloomView), [`StaticView`](crate::StaticView) or
/// [`BankView`](crate::bank::BankView). `hasher` must be the one that filled the original.
///
/// # Errors
///
/// Fails as [`BloomView::from_bytes`](crate::BloomView::from_bytes), and if the hasher differs.
///
/// # Examples
///
/// ```
/// use lanebloom::{BloomView, ConcurrentBloom, SipHash13, codec};
///
/// let hasher = SipHash13::random();
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(hasher).build()?;
/// filter.insert("a");
/// let bytes = filter.snapshot().to_vec();
/// let (view, _): (BloomView<_>, _) = codec::view(&bytes, hasher)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// assert!(BloomView::from_bytes(&bytes).unwrap_err().is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn view<'a, V: Viewed<'a, Hasher: FilterHasher>>(
    bytes: &'a [u8],
    hasher: V::Hasher,
) -> Result<(V, &'a [u8]), SnapshotError> {
    borrow(bytes, given(hasher))
}

/// A view of a file that holds a snapshot and nothing else, mapped into memory, for any hasher
/// (feature `mmap`).
///
/// The view is a [`BloomView`](crate::BloomView), [`StaticView`](crate::StaticView) or
/// [`BankView`](crate::bank::BankView). `hasher` must be the one that filled the original. If that
/// was [`Murmur3`](crate::Murmur3), the view's own [`map`](crate::BloomView::map) needs none.
///
/// The system reads a page from the file when a lookup first needs it, and shares it with every
/// process that maps the file. `file` may be closed then.
///
/// The view asks Linux for huge pages. Linux grants them if the file system can keep a file in huge
/// pages, and the file is read anew or was written in large pieces, as
/// [`write_to`](super::Snapshot::write_to) does. Then a first lookup reads 2 MiB, and a
/// [`BloomView`](crate::BloomView) is as fast as the original. (The other views were not measured.)
///
/// # Errors
///
/// Fails if the file cannot be mapped (the system's error is the
/// [source](std::error::Error::source)), if it has bytes after the snapshot, and as [`view`].
///
/// # Safety
///
/// No process may write to the file or make it shorter while the view lives. Rust assumes that the
/// bytes are immutable, and a lookup in a page that is gone ends the process (`SIGBUS`).
/// [`replace_file`](super::replace_file) does not change the file: the view keeps the old one.
///
/// # Examples
///
/// ```
/// use lanebloom::{BloomView, ConcurrentBloom, SipHash13, codec};
/// use std::io::Write;
///
/// let hasher = SipHash13::random();
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(hasher).build()?;
/// filter.insert("a");
/// let mut file = tempfile::tempfile()?;
/// file.write_all(&filter.snapshot().to_vec())?;
/// // SAFETY: no other process knows of the file.
/// let view: BloomView<_> = unsafe { codec::map(&file, hasher)? };
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "mmap")]
pub unsafe fn map<V: Viewed<'static, Hasher: FilterHasher>>(
    file: &std::fs::File,
    hasher: V::Hasher,
) -> Result<V, SnapshotError> {
    // SAFETY: the caller's promise.
    unsafe { mapped(file, given(hasher)) }
}

pub(crate) fn borrow<'a, V: Viewed<'a>>(
    bytes: &'a [u8],
    hasher: impl FnOnce(Hashing) -> Decoded<V::Hasher>,
) -> Result<(V, &'a [u8]), SnapshotError> {
    let view = V::open(SnapshotBytes::Borrowed(bytes), hasher).map_err(SnapshotError)?;
    let len = view.snapshot().bytes().len();
    Ok((view, &bytes[len..]))
}

/// # Safety
///
/// See [`map`].
#[cfg(feature = "mmap")]
pub(crate) unsafe fn mapped<V: Viewed<'static>>(
    file: &std::fs::File,
    hasher: impl FnOnce(Hashing) -> Decoded<V::Hasher>,
) -> Result<V, SnapshotError> {
    // SAFETY: the caller's promise.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(|error| SnapshotError(SnapshotErrorKind::Io(error)))?;
    // A refusal only costs speed.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    V::open(SnapshotBytes::Mapped(map.into()), hasher).map_err(SnapshotError)
}
