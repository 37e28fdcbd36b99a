//! [`Snapshot`]: a filter's content, to be written; and filters read from bytes.

use super::{Decoded, Hashing, Input, Out, assert_snapshot_length, from_slice, given};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::hash::FilterHasher;
use alloc::vec::Vec;

/// The [`Size`](Stored::Size) of filters whose size never changes, and so the length of their
/// snapshots.
pub enum FixedSize {}

/// Content that a [`Snapshot`](crate::codec::Snapshot) writes.
pub trait Stored {
    /// [`FixedSize`], or `()` if the size of a filter changes.
    type Size;

    /// The length of a snapshot now.
    fn encoded_bytes(&self) -> usize;

    /// Writes a snapshot.
    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error>;

    /// [`encode`](Self::encode), of a copy if that blocks changes.
    #[cfg(feature = "std")]
    fn encode_unheld<O: Out<Error = std::io::Error>>(&self, out: &mut O) -> std::io::Result<()> {
        self.encode(out)
    }
}

/// A filter that is read from a snapshot.
pub trait Loaded: Sized {
    /// The filter's hasher.
    type Hasher;

    /// Reads a filter of at most `limit` bytes.
    fn decode(
        input: &mut dyn Input,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<Self::Hasher, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind>;
}

/// The content of a filter, to be written as bytes in the [format](crate::codec#the-format) of
/// snapshots; made by [`Filter::snapshot`](crate::Filter::snapshot).
///
/// Each method reads the filter anew. The bytes hold every key whose insert happened before, and
/// pass on what the inserters had done before.
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::from_keys(["a"], 0.01)?;
/// let bytes = filter.snapshot().to_vec();
/// let (same, rest) = ConcurrentBloom::from_bytes(&bytes)?;
/// assert!(same == filter && rest.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Snapshot<'a, F>(pub(crate) &'a F);

impl<F> Clone for Snapshot<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Snapshot<'_, F> {}

#[allow(private_bounds, reason = "all that have a snapshot")]
impl<F: Stored> Snapshot<'_, F> {
    /// The bytes. Aborts if the allocation fails; [`write_to_slice`](Self::write_to_slice) does not
    /// allocate.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::from_keys(["a"], 0.01)?;
    /// let bytes = filter.snapshot().to_vec();
    /// assert!(CuckooFilter::from_bytes(&bytes)?.0.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.encoded_bytes());
        let Ok(()) = self.0.encode(&mut bytes);
        bytes
    }

    /// Writes the bytes, up to 2 MiB at a time, so that the writer need not be buffered. It does
    /// not flush.
    ///
    /// If encoding blocks inserts or removes, it writes a copy, so that no thread waits for the
    /// writer.
    ///
    /// # Errors
    ///
    /// Fails if the writer fails, or with kind `OutOfMemory` if the copy cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys(["a"], 0.01)?;
    /// let mut stream = Vec::new();
    /// filter.snapshot().write_to(&mut stream)?;
    /// assert_eq!(stream, filter.snapshot().to_vec());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(self, writer: impl std::io::Write) -> std::io::Result<()> {
        let mut out = super::Writer::new(writer);
        self.0.encode_unheld(&mut out)?;
        out.finish()
    }

    /// Saves the bytes in a file that takes the place of the one at `path`, if there is any:
    /// [`replace_file`](super::replace_file). A reader finds the old file or the new one, whole.
    ///
    /// # Errors
    ///
    /// Fails as `replace_file`, and as [`write_to`](Self::write_to). Then the old file stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("seen.filter");
    /// let filter = CuckooFilter::from_keys(["a"], 0.01)?;
    /// filter.snapshot().save(&path)?;
    /// let same = CuckooFilter::read_from(std::fs::File::open(&path)?, 1 << 20)?;
    /// assert!(same.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn save(self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
        super::replace_file(path, |file| self.write_to(file))
    }
}

/// Snapshots of one length: those of filters that do not grow.
#[allow(private_bounds, reason = "all that have a snapshot of one length")]
#[expect(clippy::len_without_is_empty, reason = "no snapshot is empty")]
impl<F: Stored<Size = FixedSize>> Snapshot<'_, F> {
    /// The length of every snapshot of this filter in bytes: 192, and the content, rounded up to
    /// 64.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys(["a"], 0.01)?;
    /// assert_eq!(filter.snapshot().len(), filter.snapshot().to_vec().len());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn len(self) -> usize {
        self.0.encoded_bytes()
    }

    /// Writes the bytes to the caller's memory.
    ///
    /// # Panics
    ///
    /// If `out` has not [`len`](Self::len) bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys(["a"], 0.01)?;
    /// let mut bytes = vec![0; filter.snapshot().len()];
    /// filter.snapshot().write_to_slice(&mut bytes);
    /// assert_eq!(bytes, filter.snapshot().to_vec());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn write_to_slice(self, mut out: &mut [u8]) {
        assert_snapshot_length(out.len(), self.0.encoded_bytes());
        let Ok(()) = self.0.encode(&mut out);
    }
}

/// The filter with which `bytes` begin, and the bytes after it, for any hasher.
///
/// The filter is a [`Filter`](crate::Filter), [`StaticFilter`](crate::StaticFilter) or
/// [`FilterBank`](crate::bank::FilterBank) of any hasher: `hasher` must be the one that filled the
/// original.
///
/// # Errors
///
/// Fails as [`Filter::from_bytes`](crate::Filter::from_bytes), and if the hasher differs.
///
/// # Examples
///
/// ```
/// use lanebloom::{CuckooFilter, Murmur3, codec};
///
/// let filter = CuckooFilter::from_keys(["a"], 0.01)?;
/// let bytes = filter.snapshot().to_vec();
/// let read = |hasher| codec::from_bytes::<CuckooFilter>(&bytes, hasher);
/// assert!(read(*filter.hasher())?.0.contains("a"));
/// assert!(read(Murmur3::with_seed(7)).unwrap_err().is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_bytes<F: Loaded<Hasher: FilterHasher>>(
    bytes: &[u8],
    hasher: F::Hasher,
) -> Result<(F, &[u8]), SnapshotError> {
    load(bytes, given(hasher))
}

/// Reads a snapshot that takes at most `max_bytes` of memory, for any hasher: [`from_bytes`] of a
/// reader.
///
/// # Errors
///
/// Fails as [`Filter::read_from`](crate::Filter::read_from), and if the hasher differs.
///
/// # Examples
///
/// ```
/// use lanebloom::{CuckooFilter, SipHash13, codec};
///
/// let hasher = SipHash13::random();
/// let builder = CuckooFilter::builder().expected_keys(1000);
/// let filter = builder.hasher(hasher).build()?;
/// filter.insert("a")?;
/// let stream = filter.snapshot().to_vec();
/// let same: CuckooFilter<_> = codec::read_from(&stream[..], 1 << 20, hasher)?;
/// assert!(same.contains("a") && !same.contains("b"));
/// let other = SipHash13::random();
/// let refused = codec::read_from::<CuckooFilter<_>>(&stream[..], 1 << 20, other);
/// assert!(refused.unwrap_err().is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
pub fn read_from<F: Loaded<Hasher: FilterHasher>>(
    reader: impl std::io::Read,
    max_bytes: usize,
    hasher: F::Hasher,
) -> Result<F, SnapshotError> {
    load_from(reader, max_bytes, given(hasher))
}

pub(crate) fn load<F: Loaded>(
    bytes: &[u8],
    hasher: impl FnOnce(Hashing) -> Decoded<F::Hasher>,
) -> Result<(F, &[u8]), SnapshotError> {
    from_slice(bytes, |input| F::decode(input, usize::MAX, hasher)).map_err(SnapshotError)
}

#[cfg(feature = "std")]
pub(crate) fn load_from<F: Loaded>(
    reader: impl std::io::Read,
    max_bytes: usize,
    hasher: impl FnOnce(Hashing) -> Decoded<F::Hasher>,
) -> Result<F, SnapshotError> {
    super::from_reader(reader, |input| F::decode(input, max_bytes, hasher)).map_err(SnapshotError)
}
