//! `Serialize` and `Deserialize` (feature `serde`): the bytes of the snapshot, or of Guava's
//! stream, as one value; in formats for people as a string in Base64. Reading goes through the same
//! checks as everywhere.

use crate::codec::{SNAPSHOT_HEADER, TRAILER, from_slice, given};
use crate::error::{GuavaReadError, SnapshotError, SnapshotErrorKind};
use crate::filter::Filter;
use crate::filter::engine::{Proportional, Stored};
use crate::filter::guava::GuavaBloom;
use crate::hash::KeyHasher;
use crate::sizing::LINE_BYTES;
use alloc::vec::Vec;
use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sequence of bytes that somebody announces as longer is not believed until they are there.
const BELIEVED: usize = 64 << 10;

/// The snapshot's bytes, or in formats for people a string with them in Base64.
///
/// It takes the filter's size in memory meanwhile. Hashers are not written, but for the seed of
/// [`Murmur3`](crate::Murmur3).
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
impl<E: Stored, S: KeyHasher> Serialize for Filter<E, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serialize(&self.to_bytes(), serializer)
    }
}

/// Reads a filter by [`Murmur3`](crate::Murmur3); [`Limited`] reads others, and within a limit.
/// Allocates in proportion to the bytes that are there.
///
/// Only [`Limited`] reads a [`WindowedBloom`](crate::WindowedBloom), since that allocates all
/// generations at once, up to 65 times the bytes of a snapshot that has one of them:
///
/// ```compile_fail,E0277
/// # use lanebloom::WindowedBloom;
/// let filter: WindowedBloom = serde_json::from_str("\"\"").unwrap();
/// ```
impl<'de, E: Proportional> Deserialize<'de> for Filter<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        snapshot(deserializer, Self::from_bytes)
    }
}

/// Guava's stream, as a [`Filter`]'s snapshot.
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

/// Allocates in proportion to the bytes that are there; [`Limited`] reads within a limit.
impl<'de> Deserialize<'de> for GuavaBloom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, usize::MAX, |bytes| {
            let (filter, rest) = Self::from_bytes(bytes).map_err(Problem::Guava)?;
            whole(bytes, rest).map(|()| filter).map_err(Problem::Snapshot)
        })
    }
}

/// A filter that [`Limited`] deserializes: all filters of this crate but
/// [`RedisBloom`](crate::RedisBloom). Other types cannot implement it.
///
/// # Examples
///
/// ```
/// use lanebloom::codec::{Limited, Snapshot};
/// use lanebloom::{CuckooFilter, Murmur3, ScalableBloom};
/// use serde::de::DeserializeSeed;
///
/// fn read<F: Snapshot<Hasher = Murmur3>>(json: &str) -> serde_json::Result<F> {
///     Limited::new(1 << 20, Murmur3::default()).deserialize(&mut serde_json::Deserializer::from_str(json))
/// }
/// let filter = ScalableBloom::builder().build()?;
/// filter.insert("a")?;
/// let json = serde_json::to_string(&filter)?;
/// assert!(read::<ScalableBloom>(&json)?.contains("a"));
/// assert!(read::<CuckooFilter>(&json).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Snapshot: sealed::Decode {}

impl<F: sealed::Decode> Snapshot for F {}

mod sealed {
    use super::*;

    pub trait Decode: Sized {
        /// What it takes to read the filter beside its bytes: the hasher that it was filled by.
        /// Nothing, `()`, for [`GuavaBloom`], which has no other.
        type Hasher;

        /// The filter with which `bytes` begin, if it takes `max_bytes` at most, and the rest.
        #[doc(hidden)]
        fn decode_within(bytes: &[u8], max_bytes: usize, hasher: Self::Hasher) -> Result<(Self, &[u8]), Problem>;
    }

    impl<E: Stored, S: KeyHasher> Decode for Filter<E, S> {
        type Hasher = S;
        fn decode_within(bytes: &[u8], max_bytes: usize, hasher: S) -> Result<(Self, &[u8]), Problem> {
            from_slice(bytes, |input| Self::decode(input, max_bytes, given(hasher))).map_err(Problem::from)
        }
    }

    impl Decode for GuavaBloom {
        type Hasher = ();
        fn decode_within(bytes: &[u8], max_bytes: usize, (): ()) -> Result<(Self, &[u8]), Problem> {
            Self::from_bytes_within(bytes, max_bytes as u64).map_err(|kind| Problem::Guava(GuavaReadError(kind)))
        }
    }
}

/// Deserializes a filter with any hasher, which takes no more bytes than allowed, as by its
/// `read_from_with`: a [`DeserializeSeed`].
///
/// Its parameter is the filter's type, which follows from the place where the filter goes.
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
/// let read = |max_bytes| -> serde_json::Result<ConcurrentBloom<SipHash13>> {
///     Limited::new(max_bytes, hasher).deserialize(&mut serde_json::Deserializer::from_str(&json))
/// };
/// assert!(read(1 << 20)?.contains("a"));
/// let error = read(1000).unwrap_err();
/// assert!(error.to_string().starts_with("the filter takes 1344 bytes, more than the limit of 1000 bytes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A field of a struct, by a function of three lines:
///
/// ```
/// use lanebloom::codec::Limited;
/// use lanebloom::{Murmur3, WindowedBloom};
/// use serde::de::DeserializeSeed;
/// use serde::{Deserialize, Deserializer, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct State {
///     #[serde(deserialize_with = "within_1_mib")]
///     recent: WindowedBloom,
/// }
///
/// fn within_1_mib<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WindowedBloom, D::Error> {
///     Limited::new(1 << 20, Murmur3::default()).deserialize(deserializer)
/// }
///
/// let recent = WindowedBloom::builder().expected_keys(1000).build()?;
/// recent.insert("a");
/// let state: State = serde_json::from_str(&serde_json::to_string(&State { recent })?)?;
/// assert!(state.recent.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limited<F: Snapshot> {
    max_bytes: usize,
    hasher: F::Hasher,
    filter: PhantomData<fn() -> F>,
}

impl<F: Snapshot> Limited<F> {
    /// For a filter that takes `max_bytes` at most and was filled by this hasher (`()` for a
    /// [`GuavaBloom`]).
    ///
    /// ```
    /// use lanebloom::GuavaBloom;
    /// use lanebloom::codec::Limited;
    /// use serde::de::DeserializeSeed;
    ///
    /// let json = serde_json::to_string(&GuavaBloom::create(1000, 0.03)?)?;
    /// let read = |max_bytes| {
    ///     let limited = Limited::<GuavaBloom>::new(max_bytes, ());
    ///     limited.deserialize(&mut serde_json::Deserializer::from_str(&json))
    /// };
    /// assert!(read(920).is_ok());
    /// assert!(read(919).unwrap_err().to_string().starts_with("the filter takes 920 bytes, more than the limit of 919 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(max_bytes: usize, hasher: F::Hasher) -> Self {
        Self {
            max_bytes,
            hasher,
            filter: PhantomData,
        }
    }
}

/// The most bytes of a snapshot that are not the filter's own: headers and trailers of as many
/// parts as there can be, and the rest of a line.
const MOST_BESIDE: usize = SNAPSHOT_HEADER + 64 * (SNAPSHOT_HEADER + TRAILER) + LINE_BYTES;

impl<'de, F: Snapshot> DeserializeSeed<'de> for Limited<F> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
        // And one more, which shows that there are more.
        let limit = self.max_bytes.saturating_add(MOST_BESIDE + 1);
        deserialize(deserializer, limit, |bytes| {
            let (filter, rest) = F::decode_within(bytes, self.max_bytes, self.hasher)?;
            whole(bytes, rest).map(|()| filter).map_err(Problem::Snapshot)
        })
    }
}

/// What is wrong with bytes that are to be a filter.
#[doc(hidden)]
#[derive(Debug)]
pub enum Problem {
    Guava(GuavaReadError),
    Snapshot(SnapshotError),
}

impl From<SnapshotError> for Problem {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl From<SnapshotErrorKind> for Problem {
    fn from(kind: SnapshotErrorKind) -> Self {
        Self::Snapshot(SnapshotError(kind))
    }
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
    /// If there are more bytes than this, only the first are read; they say how many there should
    /// be.
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
