//! `Serialize` and `Deserialize` of the filters (feature `serde`): the bytes of the snapshot, with
//! the same checks.

use crate::codec::{Decode, from_slice, given};
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::filter::traits::{Encode, Stored};
use crate::hash::FilterHasher;

/// Serializes a type; `both ways` if a snapshot's length bounds what reading it allocates.
macro_rules! serialized {
    ($filter:ident, $asks:literal, both ways) => {
        $crate::filter::methods::serde::serialized! { $filter, $asks }

        /// Reads a filter that hashes with [`Murmur3`](crate::Murmur3). Allocates in proportion to
        /// the input. [`Limited`](crate::codec::Limited) reads filters with other hashers, and
        /// within a limit.
        ///
        /// ```
        #[doc = concat!("use lanebloom::", stringify!($filter), ";")]
        ///
        #[doc = concat!("let filter = ", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
        #[doc = concat!("filter.insert(\"a\")", $asks, ";")]
        /// let json = serde_json::to_string(&filter)?;
        #[doc = concat!("let same: ", stringify!($filter), " = serde_json::from_str(&json)?;")]
        /// assert!(same.contains("a") && !same.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        impl<'de> serde::Deserialize<'de> for $filter {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::codec::deserialize(deserializer, usize::MAX, Self::from_bytes)
            }
        }
    };

    ($filter:ident, $asks:literal) => {
        /// The snapshot's bytes, in Base64 if the format is text. Allocates as much as the filter
        /// takes. It writes no hasher, except for the seed of [`Murmur3`](crate::Murmur3).
        ///
        /// ```
        #[doc = concat!("use lanebloom::", stringify!($filter), ";")]
        ///
        #[doc = concat!("let filter = ", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
        #[doc = concat!("filter.insert(\"a\")", $asks, ";")]
        /// let json = serde_json::to_string(&filter)?;
        /// // Base64 of the bytes with which every snapshot begins.
        /// assert!(json.starts_with("\"iUxCRg0KGgoB"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        impl<S: $crate::hash::FilterHasher> serde::Serialize for $filter<S> {
            fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                $crate::codec::serialize(&self.to_bytes(), serializer)
            }
        }
    };
}
pub(crate) use serialized;

impl<E: Encode, S: FilterHasher> Decode for Filter<E, S> {
    type Hasher = S;
    type Error = SnapshotError;

    fn decode_within(bytes: &[u8], max_bytes: usize, hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| <Self as Stored>::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }
}
