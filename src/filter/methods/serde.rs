//! `Serialize` and `Deserialize` of the filters (feature `serde`): the bytes of the snapshot, with
//! the same checks.

use crate::codec::{Decode, deserialize, from_slice, given, serialize};
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::filter::methods::snapshots::decode;
use crate::filter::parts::engine::StoredImpl;
use crate::filter::types::bloom::ConcurrentBloom;
use crate::filter::types::counting::CountingBloom;
use crate::filter::types::cuckoo::CuckooFilter;
use crate::filter::types::dleft::DLeftFilter;
use crate::filter::types::scalable::ScalableBloom;
use crate::filter::types::tombstone::TombstoneBloom;
#[cfg(feature = "std")]
use crate::filter::types::windowed::WindowedBloom;
use crate::hash::FilterHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! serialized {
    ($($filter:ident),*) => {$(
        /// The snapshot's bytes, in Base64 if the format is text. Allocates as much as the filter
        /// takes. It writes no hasher, except for the seed of [`Murmur3`](crate::Murmur3).
        ///
        /// ```
        /// use lanebloom::ConcurrentBloom;
        ///
        /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
        /// filter.insert("a");
        /// let json = serde_json::to_string(&filter)?;
        /// // Base64 of the bytes with which every snapshot begins.
        /// assert!(json.starts_with("\"iUxCRg0KGgoB"));
        /// let same: ConcurrentBloom = serde_json::from_str(&json)?;
        /// assert!(same == filter);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        impl<S: FilterHasher> Serialize for $filter<S> {
            fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                serialize(&self.to_bytes(), serializer)
            }
        }
    )*};
}

serialized! {
    ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, TombstoneBloom
}
#[cfg(feature = "std")]
serialized! { WindowedBloom }

macro_rules! deserialized {
    ($($filter:ident),*) => {$(
        /// Reads a filter that hashes with [`Murmur3`](crate::Murmur3). Allocates in proportion to
        /// the input. [`Limited`](crate::codec::Limited) reads filters with other hashers, and
        /// within a limit.
        ///
        /// Only `Limited` reads a [`WindowedBloom`](crate::WindowedBloom), since that allocates all
        /// generations at once: up to 65 times the snapshot's bytes.
        ///
        /// ```compile_fail,E0277
        /// # use lanebloom::WindowedBloom;
        /// let filter: WindowedBloom = serde_json::from_str("\"\"").unwrap();
        /// ```
        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer, usize::MAX, Self::from_bytes)
            }
        }
    )*};
}

deserialized! {
    ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, TombstoneBloom
}

impl<E: StoredImpl, S: FilterHasher> Decode for Filter<E, S> {
    type Hasher = S;
    type Error = SnapshotError;

    fn decode_within(bytes: &[u8], max_bytes: usize, hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }
}
