//! `Serialize` and `Deserialize` of the filters (feature `serde`): the bytes of the snapshot, with
//! the same checks.

use crate::codec::{FromSnapshot, deserialize, from_slice, given};
use crate::error::SnapshotError;
use crate::filter::traits::{Encode, FixedSize, Loaded};
use crate::filter::{Filter, Frozen};
use crate::hash::FilterHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The snapshot's bytes, in Base64 if the format is text. Allocates as much as the filter takes. It
/// writes no hasher, except for the seed of [`Murmur3`](crate::Murmur3).
///
/// ```
/// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
/// let json = serde_json::to_string(&filter)?;
/// // Base64 of the bytes with which every snapshot begins.
/// assert!(json.starts_with("\"iUxCRg0KGgoB"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<E: Encode, S: FilterHasher> Serialize for Filter<E, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        Self::serialize_bytes(&self.snapshot().to_vec(), serializer)
    }
}

/// Reads a filter that hashes with [`Murmur3`](crate::Murmur3). Allocates in proportion to the
/// input. [`Limited`](crate::codec::Limited) reads filters with other hashers, and within a limit.
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert("a");
/// let json = serde_json::to_string(&filter)?;
/// let same: ConcurrentBloom = serde_json::from_str(&json)?;
/// assert!(same == filter && same.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only `Limited` reads a [`WindowedBloom`](crate::WindowedBloom), since that allocates all
/// generations at once: up to 65 times the snapshot's bytes.
///
/// ```compile_fail,E0277
/// # use lanebloom::WindowedBloom;
/// let filter: WindowedBloom = serde_json::from_str("\"\"").unwrap();
/// ```
impl<'de, E: Encode<Size = FixedSize>> Deserialize<'de> for Filter<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, usize::MAX, Self::from_bytes)
    }
}

impl<E: Encode, S: FilterHasher> FromSnapshot for Filter<E, S> {
    type Hasher = S;
    type Error = SnapshotError;

    fn decode_within(bytes: &[u8], max_bytes: usize, hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| <Self as Loaded>::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }
}

/// The same form as of every other filter.
impl<E: Encode, S: FilterHasher> Serialize for Frozen<E, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.0.serialize(serializer)
    }
}

/// The same form as of every other filter.
impl<'de, E: Encode<Size = FixedSize>> Deserialize<'de> for Frozen<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Filter::deserialize(deserializer).map(Self)
    }
}

impl<E: Encode, S: FilterHasher> FromSnapshot for Frozen<E, S> {
    type Hasher = S;
    type Error = SnapshotError;

    fn decode_within(bytes: &[u8], max_bytes: usize, hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        let (filter, rest) = Filter::decode_within(bytes, max_bytes, hasher)?;
        Ok((Self(filter), rest))
    }
}
