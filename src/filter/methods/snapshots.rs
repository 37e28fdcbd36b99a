//! Snapshots: a filter's content, to be written, and filters read from bytes. `docs/FORMAT.md`
//! describes the bytes.

use crate::codec::{Snapshot, load, murmur3};
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::filter::traits::Encode;
use crate::hash::FilterHasher;

/// Snapshots.
impl<E: Encode, S: FilterHasher> Filter<E, S> {
    /// The content, to be written as bytes: to a vector, a writer, a file
    /// ([`save`](Snapshot::save)). [`from_bytes`](Filter::from_bytes) and
    /// [`read_from`](Filter::read_from) read it.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::from_keys(["a"], 0.01)?;
    /// let bytes = filter.snapshot().to_vec();
    /// assert!(CuckooFilter::from_bytes(&bytes)?.0.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, Self> {
        Snapshot(self)
    }
}

/// Snapshots whose hasher is [`Murmur3`](crate::Murmur3).
impl<E: Encode> Filter<E> {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// Fails if the bytes end before the snapshot does, are corrupt, are not a snapshot of this
    /// type or of this version of the format, the hasher is not [`Murmur3`](crate::Murmur3)
    /// ([`codec::from_bytes`](crate::codec::from_bytes) reads others), or the allocation fails.
    /// Nothing is allocated unless all bytes are there. (A [`WindowedBloom`](crate::WindowedBloom)
    /// may need [a clock](crate::windowed#snapshots).)
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::from_keys(["a"], 0.01)?;
    /// let bytes = [filter.snapshot().to_vec(), b"more".to_vec()].concat();
    /// let (same, rest) = CuckooFilter::from_bytes(&bytes)?;
    /// assert!(same.contains("a") && rest == b"more");
    /// assert!(CuckooFilter::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        load(bytes, murmur3)
    }

    /// Reads a snapshot that takes at most `max_bytes` of memory. The bytes after it stay unread.
    ///
    /// Checks the declared length before it allocates. It reads 64 KiB at a time, so the reader
    /// need not be buffered. Fails if the reader fails (its error is the
    /// [source](std::error::Error::source)), if the content takes more than `max_bytes`, and as
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let stream = CuckooFilter::from_keys(["a"], 0.01)?.snapshot().to_vec();
    /// let read = |most| CuckooFilter::read_from(&stream[..], most);
    /// assert!(read(1 << 20)?.contains("a") && read(10).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::load_from(reader, max_bytes, murmur3)
    }
}
