//! `Serialize` and `Deserialize` (feature `serde`): the bytes of the snapshot, or of Guava's stream, as one value; in formats for
//! people as a string in Base64. Reading goes through the same checks as everywhere.

use crate::codec::{from_slice, given};
use crate::error::{GuavaReadError, SnapshotError, SnapshotErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::filter::counting::CountingBloom;
use crate::filter::cuckoo::{CompactCuckoo, CuckooFilter};
use crate::filter::dleft::DLeftFilter;
use crate::filter::guava::GuavaBloom;
use crate::filter::scalable::ScalableBloom;
use crate::filter::tombstone::TombstoneBloom;
#[cfg(feature = "window")]
use crate::filter::windowed::WindowedBloom;
use crate::hash::KeyHasher;
use alloc::vec::Vec;
use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sequence of bytes that somebody announces as longer is not believed until they are there.
const BELIEVED: usize = 64 << 10;

/// The snapshot's bytes, or in formats for people a string with them in Base64.
///
/// It takes the filter's size in memory meanwhile. Hashers are not written, but for the seed of [`Murmur3`](crate::Murmur3).
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.insert("a");
/// let json = serde_json::to_string(&filter)?;
/// assert!(json.starts_with("\"iUxCRg0KGgoB")); // Base64 of what every snapshot begins with
/// let same: ConcurrentBloom = serde_json::from_str(&json)?;
/// assert!(same == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: KeyHasher> Serialize for ConcurrentBloom<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3); [`Limited`] reads others, and within a limit. The memory that it takes is that of the bytes
/// that are there.
impl<'de> Deserialize<'de> for ConcurrentBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// Guava's stream, as [`ConcurrentBloom`]'s snapshot.
///
/// ```
/// use lanebloom::GuavaBloom;
///
/// let filter = GuavaBloom::create(1, 0.03)?;
/// let json = serde_json::to_string(&filter)?;
/// assert_eq!(json, "\"AQUAAAABAAAAAAAAAAA=\"");
/// let same: GuavaBloom = serde_json::from_str(&json)?;
/// assert!(same == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for GuavaBloom {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for GuavaBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, usize::MAX, |bytes| {
            let (filter, rest) = Self::from_bytes(bytes).map_err(Problem::Guava)?;
            whole(bytes, rest).map(|()| filter).map_err(Problem::Snapshot)
        })
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for ScalableBloom<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for ScalableBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
#[cfg(feature = "window")]
impl<S: KeyHasher + Clone> Serialize for WindowedBloom<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3) that has no [clock](crate::windowed::Builder::clock) of its own. The memory that it takes is that of all generations.
#[cfg(feature = "window")]
impl<'de> Deserialize<'de> for WindowedBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for CountingBloom<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for CountingBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for TombstoneBloom<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for TombstoneBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for CuckooFilter<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for CuckooFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for CompactCuckoo<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for CompactCuckoo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// As [`ConcurrentBloom`].
impl<S: KeyHasher> Serialize for DLeftFilter<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Of a filter by [`Murmur3`](crate::Murmur3). The memory that it takes is that of the bytes that are there.
impl<'de> Deserialize<'de> for DLeftFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// Deserializes a [`ConcurrentBloom`] with any hasher, whose bits take no more bytes than allowed: a
/// [`DeserializeSeed`].
///
/// # Examples
///
/// ```
/// use lanebloom::codec::Limited;
/// use lanebloom::{ConcurrentBloom, SipHash13};
/// use serde::de::DeserializeSeed;
///
/// let hasher = SipHash13::random();
/// let filter = ConcurrentBloom::builder().expected_keys(1000).hasher(hasher).build()?;
/// filter.insert("a");
/// let json = serde_json::to_string(&filter)?;
///
/// let read = |max_bytes| {
///     let limited = Limited { max_bytes, hasher };
///     limited.deserialize(&mut serde_json::Deserializer::from_str(&json))
/// };
/// assert!(read(1 << 20)?.contains("a"));
/// let error = read(1000).unwrap_err();
/// assert!(error.to_string().starts_with("the filter takes 1344 bytes, more than the limit of 1000 bytes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limited<S> {
    /// The most bytes that the filter's bits may take.
    pub max_bytes: usize,
    /// The hasher that the filter was filled by.
    pub hasher: S,
}

impl<'de, S: KeyHasher> DeserializeSeed<'de> for Limited<S> {
    type Value = ConcurrentBloom<S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Self { max_bytes, hasher } = self;
        // And one more, which shows that there are more.
        let limit = max_bytes.saturating_add(super::SNAPSHOT_HEADER + super::TRAILER + 1);
        deserialize(deserializer, limit, |bytes| {
            let decoded = from_slice(bytes, |input| ConcurrentBloom::decode(input, max_bytes, given(hasher)));
            let (filter, rest) = decoded.map_err(SnapshotError)?;
            whole(bytes, rest).map(|()| filter)
        })
    }
}

/// What is wrong with bytes that are to be a `GuavaBloom`.
enum Problem {
    Guava(GuavaReadError),
    Snapshot(SnapshotError),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guava(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

/// An error if there is anything after the filter.
fn whole(bytes: &[u8], rest: &[u8]) -> Result<(), SnapshotError> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(SnapshotError(SnapshotErrorKind::TooLong {
            bytes: bytes.len() as u64,
            needed: (bytes.len() - rest.len()) as u64,
        }))
    }
}

/// The filter that `from_bytes` makes of all of the bytes.
fn snapshot<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    from_bytes: impl FnOnce(&[u8]) -> Result<(T, &[u8]), SnapshotError>,
) -> Result<T, D::Error> {
    deserialize(deserializer, usize::MAX, |bytes| {
        let (filter, rest) = from_bytes(bytes)?;
        whole(bytes, rest).map(|()| filter)
    })
}

fn serialize<Z: Serializer>(bytes: &[u8], serializer: Z) -> Result<Z::Ok, Z::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
    } else {
        serializer.serialize_bytes(bytes)
    }
}

fn deserialize<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    limit: usize,
    decode: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<T, D::Error> {
    let is_text = deserializer.is_human_readable();
    let bytes = Bytes { limit, is_text, decode };
    if is_text {
        deserializer.deserialize_str(bytes)
    } else {
        deserializer.deserialize_bytes(bytes)
    }
}

/// Takes bytes in any of the forms that formats have for them, and hands them to `decode`.
struct Bytes<F> {
    /// Of more bytes than these only the first are looked at, which say how many there should be.
    limit: usize,
    is_text: bool,
    decode: F,
}

impl<'de, T, E: fmt::Display, F: FnOnce(&[u8]) -> Result<T, E>> Visitor<'de> for Bytes<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_text {
            "a filter in Base64"
        } else {
            "the bytes of a filter"
        })
    }

    fn visit_bytes<Z: Error>(self, bytes: &[u8]) -> Result<T, Z> {
        (self.decode)(bytes).map_err(Z::custom)
    }

    fn visit_str<Z: Error>(self, text: &str) -> Result<T, Z> {
        // Whole groups of 4 letters, 3 bytes each.
        let most = self.limit.div_ceil(3).saturating_mul(4);
        let text = text.as_bytes().get(..most).unwrap_or(text.as_bytes());
        let bytes = STANDARD.decode(text).map_err(Z::custom)?;
        self.visit_bytes(&bytes)
    }

    /// As formats without a form for bytes have them.
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
