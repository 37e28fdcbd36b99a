//! [`StaticView`]: the bytes of a snapshot, borrowed or mapped from a file, and lookups in
//! them, in place.

use super::table::{Fuse, SnapshotCells};
use crate::codec::{Decoded, Hashing, Kind, OwnHeader, SnapshotBytes, Viewed, borrow, murmur3};
use crate::error::SnapshotError;
use crate::filter::Frozen;
use crate::hash::Murmur3;

/// A [`StaticFilter`](crate::StaticFilter)'s snapshot as a filter, in place: in borrowed bytes,
/// or in a mapped file (feature `mmap`).
///
/// It copies no cells; of each million keys it keeps 8 bytes. It finds what the original did, as
/// fast. A clone of a view reads the same bytes.
///
/// Opening checks what a [`BloomView`](crate::BloomView) checks, and the seeds.
///
/// ```
/// use lanebloom::{StaticFilter, StaticView};
///
/// let bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.snapshot().to_vec();
/// let (view, _) = StaticView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type StaticView<'a, S = Murmur3> = Frozen<StaticBytes<'a>, S>;

/// The engine of [`StaticView`]: the bytes of a snapshot.
pub type StaticBytes<'a> = Fuse<SnapshotCells<'a>>;

/// Opening a view.
impl<'a> StaticView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, if the header is corrupt, if they are not a
    /// snapshot of this type in this version of the format, or if the hasher is not
    /// [`Murmur3`]: [`codec::view`](crate::codec::view()) takes any.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let filter = StaticFilter::from_keys(["a"], 1e-4)?;
    /// let bytes = [filter.snapshot().to_vec(), b"more".to_vec()].concat();
    /// let (view, rest) = StaticView::from_bytes(&bytes)?;
    /// assert!(view.contains("a") && rest == b"more");
    /// assert!(StaticView::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        borrow(bytes, murmur3)
    }
}

/// Mapped files.
#[cfg(feature = "mmap")]
impl StaticView<'static> {
    /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
    /// `mmap`): [`codec::map`](crate::codec::map), with [`Murmur3`], whose seed the file has. Fails
    /// as it does.
    ///
    /// # Safety
    ///
    /// No process may write to the file or make it shorter while the view lives: see
    /// [`codec::map`](crate::codec::map#safety).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let filter = StaticFilter::from_keys(["a"], 1e-4)?;
    /// let file = tempfile::NamedTempFile::new()?;
    /// filter.snapshot().save(&file)?;
    /// let file = std::fs::File::open(&file)?;
    /// // SAFETY: no other process knows of the file.
    /// let view = unsafe { StaticView::map(&file)? };
    /// assert!(view.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn map(file: &std::fs::File) -> Result<Self, SnapshotError> {
        // SAFETY: the caller's promise.
        unsafe { crate::codec::mapped(file, murmur3) }
    }
}

/// The snapshot. [`StaticFilter::from_bytes`](crate::StaticFilter::from_bytes) reads its bytes.
impl<S> StaticView<'_, S> {
    /// The bytes of the snapshot. [`codec::verify`](crate::codec::verify) computes their checksum.
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let bytes = StaticFilter::from_keys(["a"], 1e-4)?.snapshot().to_vec();
    /// assert_eq!(StaticView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        Viewed::snapshot(self).bytes()
    }
}

impl<'a, S> Viewed<'a> for StaticView<'a, S> {
    type Hasher = S;

    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let header = OwnHeader::parse(bytes.bytes(), Kind::Static)?;
        let hasher = hasher(header.hashing)?;
        let (layout, _, keys) = header.fuse()?;
        let cells = SnapshotCells(bytes.first(header.len)?);
        Ok(Frozen::of(Fuse::new(cells, layout, keys)?, hasher))
    }

    fn snapshot(&self) -> &SnapshotBytes<'a> {
        &self.0.engine.body.0
    }
}
