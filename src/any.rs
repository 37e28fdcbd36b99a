//! [`AnyFilter`]: a filter of any type with any hasher, as a snapshot brings it. Bytes flow in, and
//! the filter that they name flows out.

use crate::bitmap::ConcurrentBitmap;
use crate::chunks::{HASHED, HashedKeys, Source};
use crate::codec::{Decoded, Input, Kind, SnapshotHeader, from_slice, given};
#[cfg(feature = "std")]
use crate::codec::{SNAPSHOT_HEADER, from_reader};
use crate::error::{BuildError, IncompatibleError, InsertError, InsertErrorKind, SnapshotError, SnapshotErrorKind};
use crate::filter::traits::{Insert, Stored};
use crate::filter::types::bloom::ConcurrentBloom;
use crate::filter::types::counting::CountingBloom;
use crate::filter::types::cuckoo::CuckooFilter;
use crate::filter::types::dleft::DLeftFilter;
use crate::filter::types::fuse::StaticFilter;
use crate::filter::types::scalable::ScalableBloom;
use crate::filter::types::tombstone::TombstoneBloom;
#[cfg(feature = "std")]
use crate::filter::types::windowed::WindowedBloom;
use crate::filter::{Filter, Statistics};
use crate::funnel::Funnel;
use crate::hash::{AnyHasher, BuiltinHasher, KeyHasher, assert_same_length};
use crate::kernel::Isa;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

/// A filter of any type with any hasher: what a [snapshot](crate::codec) holds, whatever it is.
///
/// A program that reads the files of other programs need not know their filters. The snapshot names
/// the type and the hasher. Match the enum for what only one type can do.
///
/// ```
/// use lanebloom::{AnyFilter, CuckooFilter, FastHash};
///
/// let builder = CuckooFilter::builder().expected_keys(1000);
/// let written = builder.hasher(FastHash::default()).build()?;
/// written.insert("a")?;
///
/// let (filter, _) = AnyFilter::from_bytes(&written.to_bytes())?;
/// assert!(filter.contains("a")? && !filter.contains("b")?);
/// if let AnyFilter::Cuckoo(cuckoo) = &filter {
///     assert_eq!(cuckoo.len(), 1);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Hashers
///
/// [`Murmur3`](crate::Murmur3), [`FastHash`](crate::FastHash) and [`Prehashed`](crate::Prehashed)
/// come from the snapshot. Pass any other one ([`from_bytes_with`](Self::from_bytes_with)): a
/// snapshot holds no secret key. Without it, the filter still looks up by hash, has
/// statistics, takes unions, and is written as it was. Only what takes keys fails, as it does for
/// [`Prehashed`](crate::Prehashed) and for a bitmap.
///
/// A [`ConcurrentBitmap`] hashes nothing: its positions stand for hashes.
///
/// # Hostile bytes
///
/// Reading checks and limits what the types' own methods do: [see there](crate::codec).
#[expect(clippy::large_enum_variant, reason = "a program has few of them")]
#[non_exhaustive]
pub enum AnyFilter {
    /// A Bloom filter.
    Bloom(ConcurrentBloom<AnyHasher>),
    /// A Bloom filter that grows.
    Scalable(ScalableBloom<AnyHasher>),
    /// A Bloom filter that forgets.
    #[cfg(feature = "std")]
    Windowed(WindowedBloom<AnyHasher>),
    /// A Bloom filter with counters.
    Counting(CountingBloom<AnyHasher>),
    /// A Bloom filter with a second one for removed keys.
    Tombstone(TombstoneBloom<AnyHasher>),
    /// A cuckoo filter.
    Cuckoo(CuckooFilter<AnyHasher>),
    /// A d-left filter.
    DLeft(DLeftFilter<AnyHasher>),
    /// A filter that does not change.
    Static(StaticFilter<AnyHasher>),
    /// An exact set of integers.
    Bitmap(ConcurrentBitmap),
}

/// `$result` for the filter that `$any` holds, and `$of_bits` for a bitmap. `$of_static`, if it is
/// given, for a filter that does not change.
macro_rules! each {
    ($any:expr, $filter:ident => $result:expr, $bits:ident => $of_bits:expr) => {
        each!($any, $filter => $result, $filter => $result, $bits => $of_bits)
    };
    ($any:expr, $filter:ident => $result:expr, $static:ident => $of_static:expr, $bits:ident => $of_bits:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $result,
            AnyFilter::Scalable($filter) => $result,
            #[cfg(feature = "std")]
            AnyFilter::Windowed($filter) => $result,
            AnyFilter::Counting($filter) => $result,
            AnyFilter::Tombstone($filter) => $result,
            AnyFilter::Cuckoo($filter) => $result,
            AnyFilter::DLeft($filter) => $result,
            AnyFilter::Static($static) => $of_static,
            AnyFilter::Bitmap($bits) => $of_bits,
        }
    };
}

/// Reading.
///
/// ```
/// use lanebloom::codec::Kind;
/// use lanebloom::{AnyFilter, ConcurrentBloom, ScalableBloom, SipHash13};
///
/// let hasher = SipHash13::random();
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let secret = builder.hasher(hasher).build()?;
/// secret.insert("a");
/// let mut bytes = ScalableBloom::with_capacity(1000, 0.01)?.to_bytes();
/// bytes.extend(secret.to_bytes());
///
/// let (first, rest) = AnyFilter::from_bytes(&bytes)?;
/// assert_eq!((first.kind(), first.contains("a")), (Kind::Scalable, Ok(false)));
/// // Without the key of its hasher, by hash only.
/// let (second, _) = AnyFilter::from_bytes(rest)?;
/// assert!(second.contains("a").is_err());
/// assert!(second.contains_hash(secret.hash("a")));
/// let (second, _) = AnyFilter::from_bytes_with(rest, hasher)?;
/// assert_eq!(second.contains("a"), Ok(true));
/// assert!(AnyFilter::from_bytes_with(rest, SipHash13::random()).is_err());
///
/// let first = AnyFilter::read_from(&bytes[..], 1 << 20)?;
/// assert_eq!(first.kind(), Kind::Scalable);
/// assert!(AnyFilter::read_from(&bytes[..], 100).is_err());
/// let second = AnyFilter::read_from_with(rest, 1 << 20, hasher)?;
/// assert_eq!(second.contains("a"), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails as the `from_bytes` of the filter's type, and for a delta, which is not a filter. A
    /// `WindowedBloom` whose clock the program supplied needs that clock: read it by
    /// `WindowedBloom::from_bytes_with_clock`.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        Self::of_slice(bytes, None).map_err(SnapshotError)
    }

    /// [`from_bytes`](Self::from_bytes) for any hasher of this crate: `hasher` must be the one that
    /// filled the filter. Fails as [`from_bytes`](Self::from_bytes), and if the hasher differs.
    pub fn from_bytes_with(bytes: &[u8], hasher: impl Into<AnyHasher>) -> Result<(Self, &[u8]), SnapshotError> {
        Self::of_slice(bytes, Some(hasher.into())).map_err(SnapshotError)
    }

    /// Reads a snapshot of a filter that takes at most `max_bytes` of memory. The bytes after it
    /// stay unread.
    ///
    /// # Errors
    ///
    /// Fails as the `read_from` of the filter's type, and as [`from_bytes`](Self::from_bytes).
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        Self::of_reader(reader, max_bytes, None).map_err(SnapshotError)
    }

    /// [`read_from`](Self::read_from) for any hasher of this crate: `hasher` must be the one that
    /// filled the filter. Fails as [`read_from`](Self::read_from), and if the hasher differs.
    #[cfg(feature = "std")]
    pub fn read_from_with(
        reader: impl std::io::Read,
        max_bytes: usize,
        hasher: impl Into<AnyHasher>,
    ) -> Result<Self, SnapshotError> {
        Self::of_reader(reader, max_bytes, Some(hasher.into())).map_err(SnapshotError)
    }

    #[inline]
    fn of_slice(bytes: &[u8], hasher: Option<AnyHasher>) -> Decoded<(Self, &[u8])> {
        let header = SnapshotHeader::parse(bytes)?;
        from_slice(bytes, |input| Self::decode(input, usize::MAX, &header, hasher))
    }

    #[cfg(feature = "std")]
    fn of_reader(mut reader: impl std::io::Read, limit: usize, hasher: Option<AnyHasher>) -> Decoded<Self> {
        let head = from_reader(&mut reader, |input| {
            Ok(input.take(SNAPSHOT_HEADER, &mut Vec::new())?.to_vec())
        })?;
        let header = SnapshotHeader::parse(&head)?;
        from_reader(std::io::Read::chain(&head[..], reader), |input| {
            Self::decode(input, limit, &header, hasher)
        })
    }

    /// Reads a filter of at most `limit` bytes with `hasher`, or with that of the `header`.
    #[inline]
    fn decode(
        input: &mut dyn Input,
        limit: usize,
        header: &SnapshotHeader,
        hasher: Option<AnyHasher>,
    ) -> Decoded<Self> {
        // A bitmap has none.
        let hasher = hasher.or(header.any_hasher()).unwrap_or(AnyHasher::Prehashed);
        match header.kind {
            Kind::Bloom => Stored::decode(input, limit, given(hasher)).map(Self::Bloom),
            Kind::Scalable => Stored::decode(input, limit, given(hasher)).map(Self::Scalable),
            #[cfg(feature = "std")]
            Kind::Windowed => Stored::decode(input, limit, given(hasher)).map(Self::Windowed),
            Kind::Counting => Stored::decode(input, limit, given(hasher)).map(Self::Counting),
            Kind::Tombstone => Stored::decode(input, limit, given(hasher)).map(Self::Tombstone),
            Kind::Cuckoo => Stored::decode(input, limit, given(hasher)).map(Self::Cuckoo),
            Kind::DLeft => Stored::decode(input, limit, given(hasher)).map(Self::DLeft),
            Kind::Static => Stored::decode(input, limit, given(hasher)).map(Self::Static),
            Kind::Bitmap => ConcurrentBitmap::decode(input, limit).map(Self::Bitmap),
            kind => Err(SnapshotErrorKind::Incompatible(format!(
                "the snapshot is a {kind}, which an AnyFilter does not hold"
            ))),
        }
    }
}

/// Lookups by key.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBloom, Prehashed};
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert("a");
/// let (any, _) = AnyFilter::from_bytes(&filter.to_bytes())?;
/// assert_eq!(any.hash("a"), Ok(filter.hash("a")));
/// assert_eq!((any.contains("a"), any.contains("b")), (Ok(true), Ok(false)));
/// let mut found = [false; 2];
/// any.contains_batch(&["a", "b"], &mut found)?;
/// assert_eq!(found, [true, false]);
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let bytes = builder.hasher(Prehashed).build()?.to_bytes();
/// let error = AnyFilter::from_bytes(&bytes)?.0.contains("a").unwrap_err();
/// let text = "the filter takes hashes, not keys: its hasher is Prehashed";
/// assert_eq!(error.to_string(), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// The hasher of the keys.
    #[inline]
    fn key_hasher(&self) -> Result<&BuiltinHasher, IncompatibleError> {
        self.hasher().and_then(AnyHasher::builtin).ok_or_else(|| self.no_keys())
    }

    #[cold]
    fn no_keys(&self) -> IncompatibleError {
        IncompatibleError(match self.hasher() {
            None => "a ConcurrentBitmap holds numbers, not keys".into(),
            Some(AnyHasher::Unknown { identity, .. }) => format!(
                "the keys are hashed by {identity}, which is not in the snapshot: read it with its hasher, or look up \
                 hashes"
            ),
            Some(_) => "the filter takes hashes, not keys: its hasher is Prehashed".into(),
        })
    }

    /// The hash by which this filter knows `key`.
    ///
    /// # Errors
    ///
    /// Fails if the filter hashes no keys: [see above](Self#hashers). So do all methods that take
    /// keys.
    #[inline]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> Result<u64, IncompatibleError> {
        Ok(self.key_hasher()?.hash_key(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    #[inline]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> Result<bool, IncompatibleError> {
        Ok(self.contains_hash(self.hash(key)?))
    }

    /// Writes whether each key may be in the filter to the same place of `out`. Panics if the
    /// lengths differ.
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) -> Result<(), IncompatibleError> {
        assert_same_length(keys.len(), out.len());
        let (hasher, isa) = (self.key_hasher()?, Isa::best());
        HashedKeys { hasher, isa, keys }.for_each_chunk(HASHED, |start, hashes| {
            self.contains_hashes(hashes, &mut out[start..][..hashes.len()]);
        });
        Ok(())
    }
}

/// Lookups by hash, which need no hasher.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBitmap, CuckooFilter};
///
/// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
/// filter.insert("a")?;
/// let (any, _) = AnyFilter::from_bytes(&filter.to_bytes())?;
/// let hashes = ["a", "b"].map(|key| filter.hash(key));
/// assert!(any.contains_hash(hashes[0]) && !any.contains_hash(hashes[1]));
/// let (mut found, mut bitmap) = ([false; 2], [0]);
/// any.contains_hashes(&hashes, &mut found);
/// any.contains_hashes_bitmap(&hashes, &mut bitmap);
/// assert_eq!((found, bitmap), ([true, false], [0b01]));
///
/// let set = ConcurrentBitmap::new(1000)?;
/// set.insert(17)?;
/// let (any, _) = AnyFilter::from_bytes(&set.to_bytes())?;
/// assert!(any.contains_hash(17) && !any.contains_hash(u64::MAX));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// [`contains`](Self::contains) by hash. For a bitmap, the hash is the position.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        each!(self, filter => filter.contains_hash(hash), bits => bits.contains(hash))
    }

    /// [`contains_batch`](Self::contains_batch) by hash. Panics if the lengths differ.
    #[inline]
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        each!(self, filter => filter.contains_hashes(hashes, out), bits => bits.contains_batch(hashes, out));
    }

    /// [`contains_hashes`](Self::contains_hashes) as a bitmap: bit `i % 64` of `out[i / 64]` is for
    /// hash `i`. The bits after the last hash become 0. Panics if `out` does not have a word for
    /// every 64 hashes.
    #[inline]
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        each!(
            self,
            filter => filter.contains_hashes_bitmap(hashes, out),
            bits => bits.contains_batch_bitmap(hashes, out)
        );
    }
}

/// Inserts. They return and fail as those of [`Insert`](crate::traits::Insert), for a key that is
/// not hashed, for a position that is not below a bitmap's bound, and for a filter that does not
/// change.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBitmap, ConcurrentBloom};
///
/// let bytes = ConcurrentBloom::with_capacity(1000, 0.01)?.to_bytes();
/// let (filter, _) = AnyFilter::from_bytes(&bytes)?;
/// assert_eq!(filter.insert_batch(&["a", "b", "a"]), Ok(2));
/// assert_eq!(filter.insert_hashes(&[1, 2 << 60, 1]), Ok(2));
/// assert!(filter.contains("b")? && filter.contains_hash(2 << 60));
///
/// let bytes = ConcurrentBitmap::new(100)?.to_bytes();
/// let (set, _) = AnyFilter::from_bytes(&bytes)?;
/// assert_eq!([17, 17].map(|one| set.insert_hash(one)), [Ok(true), Ok(false)]);
/// assert!(set.contains_hash(17) && set.insert_hash(100).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// Inserts every key, in order; returns how many of them changed the filter.
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<usize, InsertError> {
        fn insert<E: Insert, S, K: Funnel>(
            filter: &Filter<E, S>,
            hasher: &BuiltinHasher,
            keys: &[K],
        ) -> Result<usize, E::Error> {
            let isa = filter.isa;
            filter.engine.insert_source(&HashedKeys { hasher, isa, keys })
        }
        let hasher = self.key_hasher().map_err(not_taken)?;
        each!(
            self,
            filter => Ok(insert(filter, hasher, keys)?),
            _filter => takes_none(keys.len()),
            _bits => unreachable!("it has no hasher")
        )
    }

    /// Inserts a key by hash; returns whether that changed the filter. For a bitmap, the hash is
    /// the position.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<bool, InsertError> {
        each!(
            self,
            filter => Ok(Insert::insert_hash(filter, hash)?),
            _filter => takes_none(1).map(|_| false),
            bits => bits.insert(hash).map_err(not_taken)
        )
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    #[inline]
    pub fn insert_hashes(&self, hashes: &[u64]) -> Result<usize, InsertError> {
        each!(
            self,
            filter => Ok(Insert::insert_hashes(filter, hashes)?),
            _filter => takes_none(hashes.len()),
            bits => bits.insert_batch(hashes).map_err(not_taken)
        )
    }
}

/// The answer of a filter that does not change.
#[cold]
fn takes_none(keys: usize) -> Result<usize, InsertError> {
    match keys {
        0 => Ok(0),
        _ => Err(not_taken(
            "a StaticFilter takes no inserts: build it anew from all keys",
        )),
    }
}

#[cold]
fn not_taken(why: impl ToString) -> InsertError {
    InsertError {
        kind: InsertErrorKind::NotTaken(why.to_string()),
        inserted: 0,
    }
}

/// Unions.
impl AnyFilter {
    /// Adds every key of `other`; returns whether that changed this filter.
    ///
    /// # Errors
    ///
    /// Fails as the `union_from` of the type, if the types differ, and for a filter with
    /// fingerprints, which has no union.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{AnyFilter, ConcurrentBloom, ScalableBloom};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let (all, _) = AnyFilter::from_bytes(&filter.to_bytes())?;
    /// filter.insert("a");
    /// let (part, _) = AnyFilter::from_bytes(&filter.to_bytes())?;
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.contains("a"), Ok(true));
    ///
    /// let bytes = ScalableBloom::with_capacity(1000, 0.01)?.to_bytes();
    /// let (other, _) = AnyFilter::from_bytes(&bytes)?;
    /// let error = all.union_from(&other).unwrap_err().to_string();
    /// assert!(error.ends_with("a ScalableBloom there, a ConcurrentBloom here"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        match (self, other) {
            (Self::Bloom(ours), Self::Bloom(theirs)) => ours.union_from(theirs),
            (Self::Scalable(ours), Self::Scalable(theirs)) => ours.union_from(theirs),
            #[cfg(feature = "std")]
            (Self::Windowed(ours), Self::Windowed(theirs)) => ours.union_from(theirs),
            (Self::Counting(ours), Self::Counting(theirs)) => ours.union_from(theirs),
            (Self::Tombstone(ours), Self::Tombstone(theirs)) => ours.union_from(theirs),
            (Self::Bitmap(ours), Self::Bitmap(theirs)) => ours.union_from(theirs),
            _ if self.kind() == other.kind() => {
                let reason = match self.kind() {
                    Kind::Static => "it takes no keys after its build",
                    _ => "the keys of two may not fit into one",
                };
                Err(IncompatibleError(format!(
                    "a {} has no union, since {reason}",
                    self.kind()
                )))
            }
            _ => Err(IncompatibleError(format!(
                "the kind differs: a {} there, a {} here",
                other.kind(),
                self.kind()
            ))),
        }
    }
}

/// The kind of the filter, and statistics. Statistics of the content read the whole filter.
///
/// ```
/// use lanebloom::codec::Kind;
/// use lanebloom::{AnyFilter, ConcurrentBloom, FastHash};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(FastHash::with_seed(7)).build()?;
/// filter.insert("a");
/// let (any, _) = AnyFilter::from_bytes(&filter.to_bytes())?;
/// assert_eq!((any.kind(), any.expected_keys()), (Kind::Bloom, 1000));
/// assert_eq!(any.hasher(), Some(&FastHash::with_seed(7).into()));
/// assert_eq!(any.memory_bytes(), filter.memory_bytes());
/// assert_eq!(any.false_positive_rate(), filter.false_positive_rate());
/// assert_eq!(any.false_positive_rate_at(9), filter.false_positive_rate_at(9));
/// assert_eq!((any.statistics(), any.statistics().len), (filter.statistics(), 1));
/// assert!(!any.is_overfull());
/// any.insert_batch(&Vec::from_iter(0..2000u32))?;
/// assert!(any.is_overfull());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// The type.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Scalable(_) => Kind::Scalable,
            #[cfg(feature = "std")]
            Self::Windowed(_) => Kind::Windowed,
            Self::Counting(_) => Kind::Counting,
            Self::Tombstone(_) => Kind::Tombstone,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::DLeft(_) => Kind::DLeft,
            Self::Static(_) => Kind::Static,
            Self::Bitmap(_) => Kind::Bitmap,
        }
    }

    /// The hasher; `None` for a bitmap, which has none.
    #[inline]
    #[must_use]
    pub fn hasher(&self) -> Option<&AnyHasher> {
        each!(self, filter => Some(filter.hasher()), _bits => None)
    }

    /// The number of keys that the filter was sized for; for a bitmap, its bound.
    #[inline]
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        each!(self, filter => filter.expected_keys(), bits => usize::try_from(bits.bound()).unwrap_or(usize::MAX))
    }

    /// The false-positive rate with `keys` keys; 0 for a bitmap, which is exact.
    #[inline]
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        each!(self, filter => filter.false_positive_rate_at(keys), _bits => 0.0)
    }

    /// The false-positive rate at the expected keys; 0 for a bitmap, which is exact.
    #[inline]
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        each!(self, filter => filter.false_positive_rate(), _bits => 0.0)
    }

    /// The bytes of memory of the content.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        each!(self, filter => filter.memory_bytes(), bits => bits.memory_bytes())
    }

    /// Fill, number of keys and rate now.
    #[inline]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        each!(self, filter => filter.statistics(), bits => {
            let len = bits.len();
            Statistics::new(len as f64 / bits.bound().max(1) as f64, len as usize, 0.0)
        })
    }

    /// Whether the rate now is above the one at the expected keys, beyond what chance explains.
    #[inline]
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        each!(self, filter => filter.is_overfull(), _bits => false)
    }
}

/// Copies and snapshots.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBloom};
/// use std::hash::RandomState;
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let bytes = builder.hasher(RandomState::new()).build()?.to_bytes();
/// let (any, _) = AnyFilter::from_bytes(&bytes)?;
/// let mut stream = Vec::new();
/// any.try_clone()?.write_to(&mut stream)?;
/// assert!(any.to_bytes() == bytes && stream == bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// A copy that holds at least every key whose insertion happened before. Fails if the
    /// allocation does.
    #[inline]
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(match self {
            Self::Bloom(filter) => Self::Bloom(filter.try_clone()?),
            Self::Scalable(filter) => Self::Scalable(filter.try_clone()?),
            #[cfg(feature = "std")]
            Self::Windowed(filter) => Self::Windowed(filter.try_clone()?),
            Self::Counting(filter) => Self::Counting(filter.try_clone()?),
            Self::Tombstone(filter) => Self::Tombstone(filter.try_clone()?),
            Self::Cuckoo(filter) => Self::Cuckoo(filter.try_clone()?),
            Self::DLeft(filter) => Self::DLeft(filter.try_clone()?),
            Self::Static(filter) => Self::Static(filter.try_clone()?),
            Self::Bitmap(bits) => Self::Bitmap(bits.try_clone()?),
        })
    }

    /// The filter as bytes that [`from_bytes`](Self::from_bytes) and the type's own read. They name
    /// the hasher, an unknown one too.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        each!(self, filter => filter.to_bytes(), bits => bits.to_bytes())
    }

    /// [`to_bytes`](Self::to_bytes) to a writer, which need not be buffered. It does not flush.
    ///
    /// # Errors
    ///
    /// Fails if the writer fails, or with kind `OutOfMemory` if a copy cannot be allocated.
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        each!(self, filter => filter.write_to(writer), bits => bits.write_to(writer))
    }
}

/// A summary; it reads the whole filter.
impl fmt::Debug for AnyFilter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, filter => filter.fmt(f), bits => bits.fmt(f))
    }
}
