//! Snapshots of every filter that can be saved: as bytes, into the caller's memory, by streams.
//! `docs/FORMAT.md` describes the bytes.

use crate::codec::{Hashing, Input, Out, assert_snapshot_length, from_slice, given, murmur3};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::Filter;
use crate::filter::methods::traits::Stored;
#[cfg(feature = "std")]
use crate::filter::parts::engine::EngineImpl;
use crate::filter::parts::engine::StoredImpl;
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::filter::types::counting::{Counting, CountingBloom};
use crate::filter::types::cuckoo::{Cuckoo, CuckooFilter};
use crate::filter::types::dleft::{DLeft, DLeftFilter};
use crate::filter::types::scalable::{Chain, ScalableBloom};
use crate::filter::types::tombstone::{Tombstone, TombstoneBloom};
#[cfg(feature = "std")]
use crate::filter::types::windowed::{Generations, WindowedBloom};
use crate::hash::FilterHasher;
use alloc::vec::Vec;

fn encode<E: StoredImpl, S: FilterHasher, O: Out>(filter: &Filter<E, S>, out: &mut O) -> Result<(), O::Error> {
    filter.engine.encode(Hashing::of(&filter.hasher), out)
}

/// Reads a filter of at most `limit` bytes.
pub(crate) fn decode<E: StoredImpl, S, I: Input>(
    input: &mut I,
    limit: usize,
    hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
) -> Result<Filter<E, S>, SnapshotErrorKind> {
    let (engine, hasher) = E::decode(input, limit, hasher)?;
    Ok(Filter::of(engine, hasher))
}

macro_rules! stored {
    ($($filter:ident: $engine:ty),*) => {$(
        /// Snapshots.
        impl<S: FilterHasher> Filter<$engine, S> {
            /// The filter as bytes that [`from_bytes`](Filter::from_bytes) reads, in the
            /// [format](crate::codec#the-format) of snapshots.
            ///
            /// Holds every key whose insertion happened before. Aborts if the allocation fails;
            /// [`write_to_slice`](Filter::write_to_slice) does not allocate.
            ///
            /// ```
            /// use lanebloom::CuckooFilter;
            ///
            /// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a")?;
            /// let bytes = filter.to_bytes();
            /// assert_eq!(bytes.len(), filter.snapshot_bytes());
            /// let (same, _) = CuckooFilter::from_bytes(&bytes)?;
            /// assert!(same.to_bytes() == bytes && same.remove("a") && same.is_empty());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(self.engine.snapshot_bytes());
                let Ok(()) = encode(self, &mut bytes);
                bytes
            }

            /// [`to_bytes`](Self::to_bytes) to a writer, up to 2 MiB at a time, so that the writer
            /// need not be buffered. It does not flush.
            ///
            /// If encoding blocks inserts or removes, it writes a copy, so that no thread waits for
            /// the writer.
            ///
            /// # Errors
            ///
            /// Fails if the writer fails, or with kind `OutOfMemory` if there is no memory for the
            /// copy.
            ///
            /// # Examples
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a")?;
            /// let mut stream = Vec::new();
            /// filter.write_to(&mut stream)?;
            /// assert_eq!(stream, filter.to_bytes());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                let mut out = crate::codec::Writer::new(writer);
                let hashing = Hashing::of(&self.hasher);
                if <$engine>::HELD {
                    let copy = self.engine.try_clone();
                    let copy = copy.map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))?;
                    copy.encode(hashing, &mut out)?;
                } else {
                    self.engine.encode(hashing, &mut out)?;
                }
                out.finish()
            }

            /// [`from_bytes`](Filter::from_bytes) for any hasher: `hasher` must be the one that
            /// filled the filter. Fails as [`from_bytes`](Filter::from_bytes), and if the hasher
            /// differs.
            ///
            /// ```
            /// use lanebloom::{CuckooFilter, SipHash13};
            ///
            /// let hasher = SipHash13::random();
            /// let builder = CuckooFilter::builder().expected_keys(1000);
            /// let filter = builder.hasher(hasher).build()?;
            /// filter.insert("a")?;
            /// let bytes = filter.to_bytes();
            /// let (same, _) = CuckooFilter::from_bytes_with(&bytes, hasher)?;
            /// assert!(same.remove("a") && !same.contains("a"));
            /// assert!(CuckooFilter::from_bytes(&bytes).unwrap_err().is_incompatible());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
                from_slice(bytes, |input| decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
            }

            /// [`read_from`](Filter::read_from) for any hasher: `hasher` must be the one that
            /// filled the filter. Fails as [`read_from`](Filter::read_from), and if the hasher
            /// differs.
            ///
            /// ```
            /// use lanebloom::{CuckooFilter, SipHash13};
            ///
            /// let hasher = SipHash13::random();
            /// let builder = CuckooFilter::builder().expected_keys(1000);
            /// let filter = builder.hasher(hasher).build()?;
            /// filter.insert("a")?;
            /// let stream = filter.to_bytes();
            /// let same = CuckooFilter::read_from_with(&stream[..], 1 << 20, hasher)?;
            /// assert!(same.remove("a") && !same.contains("a"));
            /// assert!(CuckooFilter::read_from(&stream[..], 1 << 20).is_err());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
                crate::codec::from_reader(reader, |input| decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
            }
        }

        /// Snapshots of filters that hash with [`Murmur3`](crate::Murmur3).
        impl Filter<$engine> {
            /// The filter with which `bytes` begin, and the bytes after it.
            ///
            /// # Errors
            ///
            /// Fails if the bytes end before the filter does, are corrupt, are no snapshot of this
            /// type of filter or of this version of the format, the hasher is not
            /// [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads
            /// others), or the allocation fails. Nothing is allocated unless all of the filter is
            /// there. (A [`WindowedBloom`](crate::WindowedBloom) may need [a
            /// clock](crate::windowed#snapshots).)
            ///
            /// # Examples
            ///
            /// ```
            /// use lanebloom::CuckooFilter;
            ///
            /// let filter = CuckooFilter::builder().expected_keys(1000).seed(7).build()?;
            /// filter.insert("a")?;
            /// let mut bytes = filter.to_bytes();
            /// bytes.extend(b"more");
            /// let (same, rest) = CuckooFilter::from_bytes(&bytes)?;
            /// assert!(same.remove("a") && !same.contains("a") && same.hasher().seed() == 7);
            /// assert_eq!(rest, b"more");
            /// assert!(CuckooFilter::from_bytes(&bytes[..500]).unwrap_err().is_truncated());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
                from_slice(bytes, |input| decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
            }

            /// Reads a snapshot of a filter that takes at most `max_bytes` of memory. The bytes
            /// after it stay unread.
            ///
            /// Checks the declared length before it allocates. It reads 64 KiB at a time, so the
            /// reader need not be buffered.
            ///
            /// # Errors
            ///
            /// Fails if the reader fails (its error is the [source](std::error::Error::source)), if
            /// the filter takes more than `max_bytes`, and as [`from_bytes`](Self::from_bytes).
            ///
            /// # Examples
            ///
            /// ```
            /// use lanebloom::CuckooFilter;
            ///
            /// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a")?;
            /// let stream = filter.to_bytes();
            /// let same = CuckooFilter::read_from(&stream[..], 1 << 20)?;
            /// assert!(same.remove("a") && !same.contains("a"));
            /// assert!(CuckooFilter::read_from(&stream[..], 100).is_err());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
                crate::codec::from_reader(reader, |input| decode(input, max_bytes, murmur3)).map_err(SnapshotError)
            }
        }

        impl<S: FilterHasher> Stored for $filter<S> {
            type Hasher = S;

            fn to_bytes(&self) -> Vec<u8> {
                self.to_bytes()
            }

            #[cfg(feature = "std")]
            fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                self.write_to(writer)
            }

            fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
                Self::from_bytes_with(bytes, hasher)
            }

            #[cfg(feature = "std")]
            fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
                Self::read_from_with(reader, max_bytes, hasher)
            }
        }
    )*};
}

stored! {
    ConcurrentBloom: Bloom, CountingBloom: Counting, CuckooFilter: Cuckoo, DLeftFilter: DLeft,
    ScalableBloom: Chain, TombstoneBloom: Tombstone
}
#[cfg(feature = "std")]
stored! { WindowedBloom: Generations }

macro_rules! fixed_size {
    ($($engine:ty),*) => {$(
        /// Snapshots of filters whose size never changes.
        impl<S: FilterHasher> Filter<$engine, S> {
            /// The length of a snapshot in bytes: 192, and the content, rounded up to 64.
            ///
            /// ```
            /// let builder = lanebloom::CuckooFilter::builder().expected_keys(1000);
            /// let filter = builder.fingerprint_bits(16).build()?;
            /// let buckets = filter.slots() / 4;
            /// assert_eq!(filter.snapshot_bytes(), 192 + buckets.div_ceil(8) * 64);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[must_use]
            pub fn snapshot_bytes(&self) -> usize {
                self.engine.snapshot_bytes()
            }

            /// [`to_bytes`](Self::to_bytes) into the caller's memory. Panics if `out` does not have
            /// [`snapshot_bytes`](Self::snapshot_bytes) bytes.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a")?;
            /// let mut bytes = vec![0; filter.snapshot_bytes()];
            /// filter.write_to_slice(&mut bytes);
            /// assert_eq!(bytes, filter.to_bytes());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn write_to_slice(&self, mut out: &mut [u8]) {
                assert_snapshot_length(out.len(), self.snapshot_bytes());
                let Ok(()) = encode(self, &mut out);
            }
        }
    )*};
}

fixed_size! { Bloom, Counting, Cuckoo, DLeft, Tombstone }
