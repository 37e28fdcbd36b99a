//! [`StaticView`]: the bytes of a snapshot, borrowed or mapped from a file, that answer lookups in
//! place.

use super::StaticFilter;
use super::table::{Fuse, SnapshotCells};
use crate::codec::{Decoded, Hashing, Kind, OwnHeader, SnapshotBytes, given, murmur3};
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::geometry::fuse::FuseLayout;
use crate::hash::{FilterHasher, Murmur3};

/// A [`StaticFilter`]'s snapshot that answers lookups in place: in borrowed bytes, or in a mapped
/// file (feature `mmap`).
///
/// It copies no cells; of each million keys it keeps 8 bytes. It answers as the original did, as
/// fast. A clone of a view reads the same bytes.
///
/// Opening checks the header, with its checksum, the seeds, and that all bytes are there. Only
/// [`verify`](Self::verify) computes the checksum of the whole, since it reads all of it: a view of
/// corrupt bytes gives wrong answers, but safely.
///
/// ```
/// use lanebloom::{StaticFilter, StaticView};
///
/// let bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.to_bytes();
/// let (view, _) = StaticView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type StaticView<'a, S = Murmur3> = Filter<StaticBytes<'a>, S>;

/// The engine of [`StaticView`]: the bytes of a snapshot.
pub type StaticBytes<'a> = Fuse<SnapshotCells<'a>>;

impl<'a> StaticView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, the header is corrupt, they are not a
    /// snapshot of a [`StaticFilter`] in this version of the format, or the hasher is not
    /// [`Murmur3`] ([`from_bytes_with`](Self::from_bytes_with) takes others).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let filter = StaticFilter::from_keys(["a", "c"], 1e-4)?;
    /// let bytes = [filter.to_bytes(), b"more".to_vec()].concat();
    /// let (view, rest) = StaticView::from_bytes(&bytes)?;
    /// assert!(view.contains("c") && !view.contains("b"));
    /// assert_eq!(rest, b"more");
    /// assert!(StaticView::from_bytes(&bytes[..200]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, murmur3).map_err(SnapshotError)
    }
}

impl<'a, S: FilterHasher> StaticView<'a, S> {
    /// [`from_bytes`](StaticView::from_bytes) for a filter with any hasher: `hasher` must be the
    /// one that filled the filter. Fails as [`from_bytes`](StaticView::from_bytes), and if the
    /// hasher differs.
    ///
    /// ```
    /// use lanebloom::{SipHash13, StaticFilter, StaticView};
    ///
    /// let hasher = SipHash13::random();
    /// let builder = StaticFilter::builder().hasher(hasher);
    /// let bytes = builder.build_from_keys(["a"])?.to_bytes();
    /// assert!(StaticView::from_bytes_with(&bytes, hasher)?.0.contains("a"));
    /// assert!(StaticView::from_bytes(&bytes).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &'a [u8], hasher: S) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, given(hasher)).map_err(SnapshotError)
    }

    fn borrow(bytes: &'a [u8], hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<(Self, &'a [u8])> {
        let (snapshot, parsed, rest) = SnapshotBytes::borrow(bytes, |bytes| parse(bytes, hasher))?;
        Ok((of(snapshot, parsed)?, rest))
    }
}

type Parsed<S> = (FuseLayout, usize, S);

/// What the header with which `bytes` begin declares, and the length of the snapshot.
fn parse<S>(bytes: &[u8], hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<(Parsed<S>, usize)> {
    let header = OwnHeader::parse(bytes, Kind::Static)?;
    let hasher = hasher(header.hashing)?;
    let (layout, _, keys) = header.fuse()?;
    Ok(((layout, keys, hasher), header.len as usize))
}

fn of<S>(snapshot: SnapshotBytes<'_>, (layout, keys, hasher): Parsed<S>) -> Decoded<StaticView<'_, S>> {
    Ok(Filter::of(Fuse::new(SnapshotCells(snapshot), layout, keys)?, hasher))
}

#[cfg(feature = "mmap")]
mod map {
    use super::*;
    use std::fs::File;

    impl StaticView<'static> {
        /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
        /// `mmap`). The system reads a page from the file when a lookup first needs it, and shares
        /// it with every process that maps the file. `file` may be closed then.
        ///
        /// # Errors
        ///
        /// Fails if the file cannot be mapped (the system's error is the
        /// [source](std::error::Error::source)), if it has bytes after the snapshot, and as
        /// [`from_bytes`](StaticView::from_bytes).
        ///
        /// # Safety
        ///
        /// As [`BloomView::map`](crate::BloomView::map): as long as the view lives, no process may
        /// write to the file or make it shorter.
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom::{StaticFilter, StaticView};
        ///
        /// let file = tempfile::tempfile()?;
        /// StaticFilter::from_keys(["a", "c"], 1e-4)?.write_to(&file)?;
        /// // SAFETY: nobody else knows of the file.
        /// let view = unsafe { StaticView::map(&file)? };
        /// assert!(view.contains("a") && !view.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub unsafe fn map(file: &File) -> Result<Self, SnapshotError> {
            // SAFETY: the caller's promise.
            unsafe { Self::map_file(file, murmur3) }.map_err(SnapshotError)
        }
    }

    impl<S: FilterHasher> StaticView<'static, S> {
        /// [`map`](StaticView::map) for a filter with any hasher: `hasher` must be the one that
        /// filled the filter. Fails as [`map`](StaticView::map), and if the hasher differs.
        ///
        /// # Safety
        ///
        /// As [`map`](StaticView::map).
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom::{FastHash, StaticFilter, StaticView};
        ///
        /// let file = tempfile::tempfile()?;
        /// let hasher = FastHash::with_seed(7);
        /// let builder = StaticFilter::builder().hasher(hasher);
        /// builder.build_from_keys(["a", "c"])?.write_to(&file)?;
        /// // SAFETY: nobody else knows of the file.
        /// let view = unsafe { StaticView::map_with(&file, hasher)? };
        /// assert!(view.contains("a"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub unsafe fn map_with(file: &File, hasher: S) -> Result<Self, SnapshotError> {
            // SAFETY: the caller's promise.
            unsafe { Self::map_file(file, given(hasher)) }.map_err(SnapshotError)
        }

        /// # Safety
        ///
        /// As `map`.
        unsafe fn map_file(file: &File, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
            // SAFETY: the caller's promise.
            let (snapshot, parsed) = unsafe { SnapshotBytes::map(file, |bytes| parse(bytes, hasher)) }?;
            of(snapshot, parsed)
        }
    }
}

/// The snapshot.
impl<S> StaticView<'_, S> {
    /// A filter of its own with the same keys:
    /// [`from_bytes_with`](StaticFilter::from_bytes_with) of the view's bytes. Fails if the bytes
    /// are corrupt, or the allocation fails.
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.to_bytes();
    /// let same = StaticView::from_bytes(&bytes)?.0.to_filter()?;
    /// assert!(same.contains("a") && same.to_bytes() == bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<StaticFilter<S>, SnapshotError>
    where
        S: FilterHasher + Clone,
    {
        StaticFilter::from_bytes_with(self.bytes(), self.hasher.clone()).map(|(filter, _)| filter)
    }

    /// Computes the checksum of all the bytes. Fails if the checksum differs from the one in the
    /// snapshot.
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let mut bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.to_bytes();
    /// assert!(StaticView::from_bytes(&bytes)?.0.verify().is_ok());
    /// bytes[200] ^= 1;
    /// assert!(StaticView::from_bytes(&bytes)?.0.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        self.engine.body.0.verify().map_err(SnapshotError)
    }

    /// Bytes of the snapshot.
    ///
    /// ```
    /// use lanebloom::{StaticFilter, StaticView};
    ///
    /// let bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.to_bytes();
    /// assert_eq!(StaticView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.engine.body.0.bytes()
    }
}
