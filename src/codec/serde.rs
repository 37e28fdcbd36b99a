//! A filter's bytes as one value of `serde`; in text formats as a string in Base64. The filters'
//! `Serialize` and `Deserialize` call it.

use crate::codec::snapshot_bytes;
use crate::error::{SnapshotError, SnapshotErrorKind};
use alloc::vec::Vec;
use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};

/// The largest allocation that a sequence's announced length causes, in bytes.
const BELIEVED: usize = 64 << 10;

/// A filter that [`Limited`] deserializes: all filters of this crate, its [bitmap](crate::bitmap),
/// and the `GuavaBloom` of `lanebloom-formats`. Only the crates of this workspace implement it.
///
/// ```
/// use lanebloom::codec::{FromSnapshot, Limited};
/// use lanebloom::{CuckooFilter, ScalableBloom, SipHash13};
/// use serde::de::DeserializeSeed;
///
/// fn read<F>(json: &str, most: usize, hasher: F::Hasher) -> serde_json::Result<F>
/// where
///     F: FromSnapshot,
/// {
///     let mut json = serde_json::Deserializer::from_str(json);
///     Limited::new(most, hasher).deserialize(&mut json)
/// }
/// let hasher = SipHash13::random();
/// let filter = ScalableBloom::builder().hasher(hasher).build()?;
/// filter.insert("a")?;
/// let json = serde_json::to_string(&filter)?;
/// assert!(read::<ScalableBloom<_>>(&json, 1 << 20, hasher)?.contains("a"));
/// assert!(read::<ScalableBloom<_>>(&json, 1 << 10, hasher).is_err());
/// assert!(read::<CuckooFilter<_>>(&json, 1 << 20, hasher).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromSnapshot: Sized {
    /// The hasher that filled the filter, or `()` if filters of this type have only one.
    type Hasher;
    /// Why bytes are not a filter.
    type Error: fmt::Display;

    /// The filter with which `bytes` begin, if it takes at most `max_bytes`, and the rest.
    #[doc(hidden)]
    fn decode_within(bytes: &[u8], max_bytes: usize, hasher: Self::Hasher) -> Result<(Self, &[u8]), Self::Error>;

    /// Writes the bytes of a filter, in Base64 if the format is text.
    #[doc(hidden)]
    fn serialize_bytes<Z: Serializer>(bytes: &[u8], serializer: Z) -> Result<Z::Ok, Z::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
        } else {
            serializer.serialize_bytes(bytes)
        }
    }
}

/// Deserializes a filter with any hasher and a limit of its memory, as
/// [`read_from`](super::read_from) does. It is a [`DeserializeSeed`], and its parameter is the
/// filter's type. [`FromSnapshot`] has an example with a secret key.
///
/// A field of a struct:
///
/// ```
/// use lanebloom::codec::Limited;
/// use lanebloom::{ConcurrentBloom as Bloom, Murmur3};
/// use serde::de::DeserializeSeed;
/// use serde::{Deserialize, Deserializer, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct State {
///     #[serde(deserialize_with = "within_1_mib")]
///     recent: Bloom,
/// }
///
/// fn within_1_mib<'de, D: Deserializer<'de>>(from: D) -> Result<Bloom, D::Error> {
///     Limited::new(1 << 20, Murmur3::default()).deserialize(from)
/// }
///
/// let recent = Bloom::from_keys(["a"], 0.01)?;
/// let json = serde_json::to_string(&State { recent })?;
/// let state: State = serde_json::from_str(&json)?;
/// assert!(state.recent.contains("a"));
///
/// let json = serde_json::to_string(&state.recent)?;
/// let mut from = serde_json::Deserializer::from_str(&json);
/// let limited = Limited::<Bloom>::new(10, Murmur3::default());
/// assert!(limited.deserialize(&mut from).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limited<F: FromSnapshot> {
    max_bytes: usize,
    hasher: F::Hasher,
    filter: PhantomData<fn() -> F>,
}

impl<F: FromSnapshot> Limited<F> {
    /// Reads a filter that takes at most `max_bytes` and has this hasher (`()` for a
    /// [bitmap](crate::bitmap), which has none). [`FromSnapshot`] has an example.
    pub fn new(max_bytes: usize, hasher: F::Hasher) -> Self {
        Self {
            max_bytes,
            hasher,
            filter: PhantomData,
        }
    }
}

/// The largest number of bytes of a snapshot beside the filter's own: those of a window with the
/// times of 64 generations, and the headers and trailers of 65.
const MOST_BESIDE: usize = snapshot_bytes(64) + 65 * snapshot_bytes(0);

impl<'de, F: FromSnapshot> DeserializeSeed<'de> for Limited<F> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
        // One more byte reveals an input that is too long.
        let limit = self.max_bytes.saturating_add(MOST_BESIDE + 1);
        deserialize(deserializer, limit, |bytes| {
            F::decode_within(bytes, self.max_bytes, self.hasher)
        })
    }
}

/// Passes the bytes to `decode`. Fails if it leaves any.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    limit: usize,
    decode: impl FnOnce(&[u8]) -> Result<(T, &[u8]), E>,
) -> Result<T, D::Error> {
    let is_text = deserializer.is_human_readable();
    let bytes = Bytes { limit, is_text, decode };
    if is_text {
        deserializer.deserialize_str(bytes)
    } else {
        deserializer.deserialize_bytes(bytes)
    }
}

/// Accepts bytes in each form that a serde format has for them, and passes them to `decode`.
struct Bytes<F> {
    /// At most this number of bytes are read. The first ones declare the length.
    limit: usize,
    is_text: bool,
    decode: F,
}

impl<'de, T, E: fmt::Display, F: FnOnce(&[u8]) -> Result<(T, &[u8]), E>> Visitor<'de> for Bytes<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_text {
            true => "a filter in Base64",
            false => "the bytes of a filter",
        })
    }

    fn visit_bytes<Z: Error>(self, bytes: &[u8]) -> Result<T, Z> {
        let (filter, rest) = (self.decode)(bytes).map_err(Z::custom)?;
        if rest.is_empty() {
            return Ok(filter);
        }
        Err(Z::custom(SnapshotError(SnapshotErrorKind::TooLong {
            bytes: bytes.len() as u64,
            needed: (bytes.len() - rest.len()) as u64,
        })))
    }

    fn visit_str<Z: Error>(self, text: &str) -> Result<T, Z> {
        // Whole groups of 4 letters, 3 bytes each.
        let most = self.limit.div_ceil(3).saturating_mul(4);
        let text = text.as_bytes().get(..most).unwrap_or(text.as_bytes());
        let bytes = STANDARD.decode(text).map_err(Z::custom)?;
        self.visit_bytes(&bytes)
    }

    /// For formats that have sequences, but no bytes.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<T, A::Error> {
        let announced = sequence.size_hint().unwrap_or(0);
        let mut bytes = Vec::with_capacity(announced.min(BELIEVED));
        while let Some(byte) = sequence.next_element()? {
            if bytes.len() == self.limit {
                break;
            }
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
