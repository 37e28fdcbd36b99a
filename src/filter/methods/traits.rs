//! Traits for code that works with any filter.
//!
//! | a function that | takes |
//! |---|---|
//! | looks keys up, or asks how full a filter is | a [`Filter<E, S>`](Filter) with `E: `[`Engine`] |
//! | builds a filter | [`Planned`] |
//! | inserts, and sees a refused insert | [`Insert`] |
//! | removes | [`Remove`] |
//! | unites and compares | [`Union`] |
//! | saves and loads | [`Stored`] |
//!
//! [`Filter`](Filter#any-filter) has an example. Only this crate implements these traits, so that
//! methods can be added.

use crate::error::{IncompatibleError, InsertError, SnapshotError};
use crate::filter::Filter;
use crate::funnel::Funnel;
use alloc::vec::Vec;

pub use crate::filter::parts::engine::{Engine, Planned};

pub(crate) mod sealed {
    /// Seals the traits on filters.
    pub trait Sealed {}
}
use sealed::Sealed;

impl<E, S> Sealed for Filter<E, S> {}

/// A filter that keys can be inserted into. Its methods answer alike for all types, so that a
/// function for any filter sees a refused insert.
///
/// An answer is `true` if this call changed the filter. Filters that store copies of a key
/// ([`CuckooFilter`](crate::CuckooFilter), [`DLeftFilter`](crate::DLeftFilter)) always change. The
/// other answers mean what the type's own `insert` says.
///
/// # Errors
///
/// An insert fails as [`InsertError`] says; a filter of bits or counters never fails.
///
/// # Examples
///
/// ```
/// use lanebloom::traits::Insert;
/// use lanebloom::{ConcurrentBloom, CuckooFilter, InsertError};
///
/// fn fill(filter: &impl Insert, keys: &[u32]) -> Result<usize, InsertError> {
///     filter.try_insert_batch(keys)
/// }
///
/// let keys = [7; 100];
/// assert_eq!(fill(&ConcurrentBloom::with_capacity(10, 0.01)?, &keys), Ok(1));
/// let cuckoo = CuckooFilter::with_capacity(10, 0.01)?;
/// let error = fill(&cuckoo, &keys).unwrap_err();
/// assert_eq!(error.inserted(), cuckoo.len());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Insert: Sealed {
    /// Inserts `key`; returns whether that changed the filter.
    fn try_insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<bool, InsertError>;

    /// [`try_insert`](Self::try_insert) by hash.
    fn try_insert_hash(&self, hash: u64) -> Result<bool, InsertError>;

    /// Inserts the keys in order, up to the first one that is refused; returns how many of them
    /// changed the filter.
    fn try_insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<usize, InsertError>;

    /// [`try_insert_batch`](Self::try_insert_batch) by hash.
    fn try_insert_hashes(&self, hashes: &[u64]) -> Result<usize, InsertError>;

    /// [`try_insert_batch`](Self::try_insert_batch) for the keys of an iterator, some at a time.
    fn try_insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, InsertError>;
}

/// A filter that keys can be removed from.
///
/// ```
/// use lanebloom::traits::{Insert, Remove};
/// use lanebloom::{CountingBloom, CuckooFilter, InsertError};
///
/// fn replace<F>(filter: &F, old: &str, new: &str) -> Result<bool, InsertError>
/// where
///     F: Insert + Remove,
/// {
///     filter.try_insert(new)?;
///     Ok(filter.remove(old))
/// }
///
/// let counting = CountingBloom::with_capacity(1000, 0.01)?;
/// let cuckoo = CuckooFilter::with_capacity(1000, 0.01)?;
/// assert_eq!(replace(&counting, "a", "b"), Ok(false));
/// assert_eq!(replace(&cuckoo, "a", "b"), Ok(false));
/// assert_eq!(replace(&cuckoo, "b", "c"), Ok(true));
/// assert!(cuckoo.contains("c") && !cuckoo.contains("b"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Remove: Sealed {
    /// Removes `key`, or one copy of it; returns whether it was there. Remove only keys that were
    /// inserted.
    fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool;

    /// [`remove`](Self::remove) by hash.
    fn remove_hash(&self, hash: u64) -> bool;

    /// Removes every key; returns how many were there.
    fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize;

    /// [`remove_batch`](Self::remove_batch) by hash.
    fn remove_hashes(&self, hashes: &[u64]) -> usize;
}

/// A filter whose content does not depend on the order of the inserts: it can be compared and
/// united.
///
/// ```
/// use lanebloom::traits::Union;
/// use lanebloom::{ConcurrentBloom, IncompatibleError};
///
/// fn unite<F: Union>(all: &F, parts: &[F]) -> Result<bool, IncompatibleError> {
///     let mut changed = false;
///     for part in parts {
///         changed |= all.union_from(part)?;
///     }
///     Ok(changed)
/// }
///
/// let all = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// let parts = [all.clone(), all.clone()];
/// parts[1].insert("a");
/// assert_eq!(unite(&all, &parts), Ok(true));
/// assert!(all == parts[1] && all.contains("a"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Union: Sealed + PartialEq {
    /// Adds every key of `other` to this filter; returns whether that changed it.
    ///
    /// # Errors
    ///
    /// Fails if layout or hasher differ, or if a filter that grows has no room for the other one's
    /// keys.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError>;

    /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from) requires.
    fn is_compatible(&self, other: &Self) -> bool;
}

/// A filter that can be saved and loaded, as a [snapshot](crate::codec).
///
/// ```
/// use lanebloom::traits::Stored;
/// use lanebloom::{CuckooFilter, Murmur3, SnapshotError};
///
/// fn reload<F: Stored<Hasher = Murmur3>>(filter: &F) -> Result<F, SnapshotError> {
///     let bytes = filter.to_bytes();
///     F::from_bytes_with(&bytes, Murmur3::default()).map(|(filter, _)| filter)
/// }
///
/// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
/// filter.insert("a")?;
/// assert!(reload(&filter)?.remove("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Stored: Sealed + Sized {
    /// The filter's hasher.
    type Hasher;

    /// The filter as bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// [`to_bytes`](Self::to_bytes) to a writer.
    ///
    /// # Errors
    ///
    /// Fails if the writer fails, or with kind `OutOfMemory` if there is no memory for a copy.
    #[cfg(feature = "std")]
    fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()>;

    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no snapshot of this type of filter, or if the hasher differs.
    fn from_bytes_with(bytes: &[u8], hasher: Self::Hasher) -> Result<(Self, &[u8]), SnapshotError>;

    /// Reads a snapshot of a filter that takes at most `max_bytes` of memory. Fails as
    /// [`from_bytes_with`](Self::from_bytes_with), and if the reader fails.
    #[cfg(feature = "std")]
    fn read_from_with(
        reader: impl std::io::Read,
        max_bytes: usize,
        hasher: Self::Hasher,
    ) -> Result<Self, SnapshotError>;
}
