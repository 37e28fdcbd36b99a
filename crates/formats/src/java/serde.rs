//! `Serialize` and `Deserialize` of a [`JavaBloom`] (feature `serde`): the bytes of its stream,
//! with the same checks.

use super::{JavaBloom, JavaFormat};
use crate::error::ReadError;
use lanebloom::codec::{FromSnapshot, Limited};
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The stream of its system, in Base64 if the format is text. Allocates as much as the filter
/// takes.
///
/// ```
/// use lanebloom_formats::GuavaBloom;
///
/// let filter = GuavaBloom::with_capacity(1, 0.03)?;
/// let json = serde_json::to_string(&filter)?;
/// assert_eq!(json, "\"AQUAAAABAAAAAAAAAAA=\"");
/// let same: GuavaBloom = serde_json::from_str(&json)?;
/// assert!(same == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<F: JavaFormat> Serialize for JavaBloom<F> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        Self::serialize_bytes(&self.to_bytes(), serializer)
    }
}

/// Allocates in proportion to the input. [`Limited`](lanebloom::codec::Limited) reads within a
/// limit, with `()` for the hasher.
///
/// ```
/// use lanebloom::codec::Limited;
/// use lanebloom_formats::GuavaBloom;
/// use serde::de::DeserializeSeed;
///
/// let json = serde_json::to_string(&GuavaBloom::with_capacity(1000, 0.03)?)?;
/// let read = |max_bytes| {
///     let limited = Limited::<GuavaBloom>::new(max_bytes, ());
///     limited.deserialize(&mut serde_json::Deserializer::from_str(&json))
/// };
/// assert!(read(920).is_ok());
/// let text = "the filter takes 920 bytes, more than the limit of 919 bytes";
/// assert!(read(919).unwrap_err().to_string().starts_with(text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'de, F: JavaFormat> Deserialize<'de> for JavaBloom<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Limited::new(usize::MAX, ()).deserialize(deserializer)
    }
}

impl<F: JavaFormat> FromSnapshot for JavaBloom<F> {
    type Hasher = ();
    type Error = ReadError;

    fn decode_within(bytes: &[u8], max_bytes: usize, (): ()) -> Result<(Self, &[u8]), ReadError> {
        Self::from_bytes_within(bytes, max_bytes as u64)
    }
}
