//! `Serialize` and `Deserialize` of a [`SparkBloom`] (feature `serde`): the bytes of its stream,
//! with the same checks.

use super::SparkBloom;
use super::error::SparkReadError;
use lanebloom::internal::{Decode, deserialize, serialize};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Spark's stream, in Base64 if the format is text. Allocates as much as the filter takes.
///
/// ```
/// use lanebloom_formats::SparkBloom;
///
/// let filter = SparkBloom::with_capacity(1, 0.03)?;
/// let json = serde_json::to_string(&filter)?;
/// assert_eq!(json, "\"AAAAAgAAAAUAAAAAAAAAAQAAAAAAAAAA\"");
/// let same: SparkBloom = serde_json::from_str(&json)?;
/// assert!(same == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for SparkBloom {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Allocates in proportion to the input. [`Limited`](lanebloom::codec::Limited) reads within a
/// limit, with `()` for the hasher.
///
/// ```
/// use lanebloom::codec::Limited;
/// use lanebloom_formats::SparkBloom;
/// use serde::de::DeserializeSeed;
///
/// let json = serde_json::to_string(&SparkBloom::with_capacity(1000, 0.03)?)?;
/// let read = |max_bytes| {
///     let limited = Limited::<SparkBloom>::new(max_bytes, ());
///     limited.deserialize(&mut serde_json::Deserializer::from_str(&json))
/// };
/// assert!(read(920).is_ok());
/// let text = "the filter takes 920 bytes, more than the limit of 919 bytes";
/// assert!(read(919).unwrap_err().to_string().starts_with(text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'de> Deserialize<'de> for SparkBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, usize::MAX, Self::from_bytes)
    }
}

impl Decode for SparkBloom {
    type Hasher = ();
    type Error = SparkReadError;

    fn decode_within(bytes: &[u8], max_bytes: usize, (): ()) -> Result<(Self, &[u8]), SparkReadError> {
        Self::from_bytes_within(bytes, max_bytes as u64).map_err(SparkReadError)
    }
}
