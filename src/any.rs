//! [`AnyFilter`]: a filter of any type with any hasher, as a snapshot brings it. Bytes flow in, and
//! the filter that they name flows out.

use crate::answers::{Absent, Answers, Bitmap, Place, answered_into};
use crate::chunks::{Answer, Source, tell_unchanged};
#[cfg(feature = "std")]
use crate::codec::from_reader;
use crate::codec::{Decoded, Input, Kind, Out, Snapshot, SnapshotHeader, from_slice, given};
use crate::error::{BuildError, IncompatibleError, InsertError, InsertErrorKind, SnapshotError, SnapshotErrorKind};
use crate::filter::traits::{Engine, Insert, Loaded, Stored};
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
use crate::hash::{AnyHasher, BuiltinHasher, KeyHasher, Murmur3};
use crate::kernel::Isa;
use crate::key::{Hashed, Key};
use alloc::format;
use alloc::string::ToString;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::fmt;

/// A filter of any type with any hasher, as a [snapshot](crate::codec) names them.
///
/// A program that reads the files of other programs need not know their filters. Match the enum for
/// what only one type can do.
///
/// ```
/// use lanebloom::{AnyFilter, CuckooFilter, FastHash};
///
/// let builder = CuckooFilter::builder().expected_keys(1000);
/// let written = builder.hasher(FastHash::default()).build()?;
/// written.insert("a")?;
///
/// let (filter, _) = AnyFilter::from_bytes(&written.snapshot().to_vec())?;
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
/// [`Prehashed`](crate::Prehashed).
///
/// # Other snapshots
///
/// A snapshot may also hold a [bank](crate::bank), a [bitmap](crate::bitmap) or a delta.
/// [`SnapshotHeader::peek`](crate::codec::SnapshotHeader::peek) tells which.
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
}

/// `$result` for the [`Filter`] that `$any` holds; `$refused`, if it is given, for a filter that
/// takes no inserts.
macro_rules! each {
    ($any:expr, $filter:ident => $result:expr) => {
        each!($any, $filter => $result, filter => { let $filter = &filter.0; $result })
    };
    ($any:expr, $filter:ident => $result:expr, $static:ident => $refused:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $result,
            AnyFilter::Scalable($filter) => $result,
            #[cfg(feature = "std")]
            AnyFilter::Windowed($filter) => $result,
            AnyFilter::Counting($filter) => $result,
            AnyFilter::Tombstone($filter) => $result,
            AnyFilter::Cuckoo($filter) => $result,
            AnyFilter::DLeft($filter) => $result,
            AnyFilter::Static($static) => $refused,
        }
    };
}

/// Reading.
///
/// ```
/// use lanebloom::codec::Kind;
/// use lanebloom::{AnyFilter, ConcurrentBloom, Hashed, ScalableBloom, SipHash13};
///
/// let hasher = SipHash13::random();
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let secret = builder.hasher(hasher).build()?;
/// secret.insert("a");
/// let mut bytes = ScalableBloom::with_capacity(1000, 0.01)?.snapshot().to_vec();
/// bytes.extend(secret.snapshot().to_vec());
///
/// let (first, rest) = AnyFilter::from_bytes(&bytes)?;
/// assert_eq!((first.kind(), first.contains("a")), (Kind::Scalable, Ok(false)));
/// // Without the key of its hasher, by hash only.
/// let (second, _) = AnyFilter::from_bytes(rest)?;
/// assert!(second.contains("a").is_err());
/// assert!(second.contains(&Hashed(secret.hash("a")))?);
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
    /// Fails as the `from_bytes` of the filter's type, and for [other
    /// snapshots](Self#other-snapshots). A `WindowedBloom` whose clock the program supplied needs
    /// that clock: read it by `windowed::from_bytes`.
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
        use std::io::Read;
        let mut head = Vec::new();
        let read = reader.by_ref().take(SnapshotHeader::LEN as u64).read_to_end(&mut head);
        read.map_err(SnapshotErrorKind::Io)?;
        let header = SnapshotHeader::parse(&head)?;
        from_reader(head.chain(reader), |input| Self::decode(input, limit, &header, hasher))
    }

    /// Reads a filter of at most `limit` bytes with `hasher`, or with that of the `header`.
    #[inline]
    fn decode(
        input: &mut dyn Input,
        limit: usize,
        header: &SnapshotHeader,
        hasher: Option<AnyHasher>,
    ) -> Decoded<Self> {
        let named = header.any_hasher();
        let hasher = hasher.or(named).unwrap_or(AnyHasher::Prehashed); // A bitmap names none.
        match header.kind {
            Kind::Bloom => Loaded::decode(input, limit, given(hasher)).map(Self::Bloom),
            Kind::Scalable => Loaded::decode(input, limit, given(hasher)).map(Self::Scalable),
            #[cfg(feature = "std")]
            Kind::Windowed => Loaded::decode(input, limit, given(hasher)).map(Self::Windowed),
            Kind::Counting => Loaded::decode(input, limit, given(hasher)).map(Self::Counting),
            Kind::Tombstone => Loaded::decode(input, limit, given(hasher)).map(Self::Tombstone),
            Kind::Cuckoo => Loaded::decode(input, limit, given(hasher)).map(Self::Cuckoo),
            Kind::DLeft => Loaded::decode(input, limit, given(hasher)).map(Self::DLeft),
            Kind::Static => Loaded::decode(input, limit, given(hasher)).map(Self::Static),
            kind => Err(SnapshotErrorKind::Incompatible(format!(
                "the snapshot is a {kind}, which an AnyFilter does not hold: read it by {}",
                match kind {
                    Kind::Bank => "bank::FilterBank",
                    Kind::Bitmap => "bitmap::ConcurrentBitmap",
                    Kind::Delta => "apply_deltas of a ConcurrentBloom",
                    _ => "a build with the feature `std`",
                }
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
/// let (any, _) = AnyFilter::from_bytes(&filter.snapshot().to_vec())?;
/// assert_eq!(any.hash("a"), Ok(filter.hash("a")));
/// assert_eq!((any.contains("a"), any.contains("b")), (Ok(true), Ok(false)));
/// let mut found = [false; 2];
/// any.contains_batch(&["a", "b"], &mut found)?;
/// assert_eq!(found, [true, false]);
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let bytes = builder.hasher(Prehashed).build()?.snapshot().to_vec();
/// let error = AnyFilter::from_bytes(&bytes)?.0.contains("a").unwrap_err();
/// let text = "the filter takes hashes, not keys: its hasher is Prehashed";
/// assert_eq!(error.to_string(), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// The hasher of the keys, if they are to be hashed.
    #[inline]
    fn hasher_of<K: Key<BuiltinHasher> + ?Sized>(&self) -> Result<&BuiltinHasher, IncompatibleError> {
        // A hash is not hashed: any will do.
        const ANY: &BuiltinHasher = &BuiltinHasher::Murmur3(Murmur3::with_seed(0));
        match self.hasher().builtin() {
            Some(hasher) => Ok(hasher),
            None if K::IS_HASH => Ok(ANY),
            None => Err(self.no_keys()),
        }
    }

    #[cold]
    fn no_keys(&self) -> IncompatibleError {
        IncompatibleError(match self.hasher() {
            AnyHasher::Unknown { identity, .. } => format!(
                "the keys are hashed by {identity}, which is not in the snapshot: read it with its hasher, or look up \
                 hashes"
            ),
            _ => "the filter takes hashes, not keys: its hasher is Prehashed".into(),
        })
    }

    /// The hash by which this filter knows `key`.
    ///
    /// # Errors
    ///
    /// Fails if the filter hashes no keys: [see above](Self#hashers). So do all methods that take
    /// keys, unless the keys are [`Hashed`].
    #[inline]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> Result<u64, IncompatibleError> {
        Ok(self.hasher_of::<K>()?.hash_key(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    #[inline]
    pub fn contains<K: Key<BuiltinHasher> + ?Sized>(&self, key: &K) -> Result<bool, IncompatibleError> {
        let hash = key.hash_by(self.hasher_of::<K>()?);
        Ok(each!(self, filter => filter.engine.contains(hash)))
    }

    /// Passes on whether each key may be in the filter. [`Answers`] has the places for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    pub fn contains_batch<K: Key<BuiltinHasher>>(
        &self,
        keys: &[K],
        mut out: impl Answers,
    ) -> Result<(), IncompatibleError> {
        let source = K::source(keys, self.hasher_of::<K>()?, Isa::best());
        let mut place = out.place(keys.len());
        // By the filters' own batches, which know how to look up a few hashes.
        source.for_each_chunk(usize::MAX, |start, hashes| match &mut place {
            Place::Flags(out) => self.look_up(hashes, &mut out[start..][..hashes.len()]),
            Place::Bitmap(out) => {
                let out = &mut out[start / 64..][..hashes.len().div_ceil(64)];
                self.look_up(hashes, Bitmap(out));
            }
            Place::Absent(absent) => self.look_up(hashes, Absent(|i| absent(start + i))),
            Place::Nowhere => {}
        });
        Ok(())
    }

    fn look_up(&self, hashes: &[u64], out: impl Answers) {
        each!(self, filter => filter.look_up_batch(Hashed::slice(hashes), out));
    }
}

/// Inserts. They fail for a key that is not hashed, for a filter that does not change, and if the
/// filter is full.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBloom, Hashed};
///
/// let bytes = ConcurrentBloom::with_capacity(1000, 0.01)?.snapshot().to_vec();
/// let (filter, _) = AnyFilter::from_bytes(&bytes)?;
/// assert_eq!(["a", "a"].map(|key| filter.insert(key)), [Ok(true), Ok(false)]);
/// assert_eq!(filter.insert_batch(Hashed::slice(&[1, 2 << 60, 1])), Ok(2));
/// let mut new = [false; 3];
/// assert_eq!(filter.insert_batch_into(&["a", "b", "c"], &mut new), Ok(2));
/// assert_eq!(new, [false, true, true]);
/// assert!(filter.contains("b")? && filter.contains(&Hashed(2 << 60))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl AnyFilter {
    /// Inserts `key`; returns what [`Membership::insert`](crate::Membership::insert) does.
    #[inline]
    pub fn insert<K: Key<BuiltinHasher> + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        let hash = key.hash_by(self.hasher_of::<K>().map_err(not_taken)?);
        each!(self, filter => Ok(filter.engine.insert_hash(hash)?), _filter => Err(frozen()))
    }

    /// Inserts every key in order, up to one that is refused; returns how many inserts returned
    /// `true`. An error says how many keys were [inserted](crate::InsertError::inserted) before.
    pub fn insert_batch<K: Key<BuiltinHasher>>(&self, keys: &[K]) -> Result<usize, InsertError> {
        self.insert_batch_into(keys, ())
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on what each insert returned: `false`
    /// for a refused key and those after it. [`Answers`] has the places for `new`.
    ///
    /// # Panics
    ///
    /// If `new` has room for more or fewer keys.
    pub fn insert_batch_into<K: Key<BuiltinHasher>>(
        &self,
        keys: &[K],
        new: impl Answers,
    ) -> Result<usize, InsertError> {
        let source = K::source(keys, self.hasher_of::<K>().map_err(not_taken)?, Isa::best());
        answered_into(Isa::best(), keys.len(), new, |mut answer| {
            each!(self, filter => insert(filter, &source, answer), _filter => {
                tell_unchanged(&mut answer, 0..keys.len());
                if keys.is_empty() { Ok(0) } else { Err(frozen()) }
            })
        })
    }
}

fn insert<E: Insert, S>(filter: &Filter<E, S>, source: &impl Source, answer: Answer<'_>) -> Result<usize, InsertError> {
    match answer {
        None => filter.engine.insert_source(source),
        answer => filter.engine.insert_flagged(source, answer),
    }
    .map_err(Into::into)
}

#[cold]
fn frozen() -> InsertError {
    not_taken("a StaticFilter takes no inserts: build it anew from all keys")
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
    /// let (all, _) = AnyFilter::from_bytes(&filter.snapshot().to_vec())?;
    /// filter.insert("a");
    /// let (part, _) = AnyFilter::from_bytes(&filter.snapshot().to_vec())?;
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.contains("a"), Ok(true));
    ///
    /// let bytes = ScalableBloom::with_capacity(1000, 0.01)?.snapshot().to_vec();
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
/// use lanebloom::{AnyFilter, ConcurrentBloom, FastHash, Membership};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(FastHash::with_seed(7)).build()?;
/// filter.insert("a");
/// let (any, _) = AnyFilter::from_bytes(&filter.snapshot().to_vec())?;
/// assert_eq!((any.kind(), any.expected_keys()), (Kind::Bloom, 1000));
/// assert_eq!(any.hasher(), &FastHash::with_seed(7).into());
/// assert_eq!(any.memory_bytes(), filter.memory_bytes());
/// assert_eq!(any.false_positive_rate(), filter.false_positive_rate());
/// assert_eq!(any.false_positive_rate_at(9), filter.false_positive_rate_at(9));
/// assert_eq!((any.statistics(), any.statistics().len), (filter.statistics(), 1));
/// assert!(!any.statistics().is_overfull);
/// any.insert_batch(&Vec::from_iter(0..2000u32))?;
/// assert!(any.statistics().is_overfull);
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
        }
    }

    /// The hasher.
    #[inline]
    #[must_use]
    pub fn hasher(&self) -> &AnyHasher {
        each!(self, filter => filter.hasher())
    }

    /// The number of keys that the filter was sized for.
    #[inline]
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        each!(self, filter => filter.expected_keys())
    }

    /// The false-positive rate with `keys` keys.
    #[inline]
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        each!(self, filter => filter.engine().false_positive_rate_at(keys))
    }

    /// The false-positive rate at the expected keys.
    #[inline]
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        each!(self, filter => filter.false_positive_rate())
    }

    /// The bytes of memory of the content.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        each!(self, filter => filter.memory_bytes())
    }

    /// Fill, number of keys and rate now.
    #[inline]
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        each!(self, filter => filter.statistics())
    }
}

/// Copies and snapshots.
///
/// ```
/// use lanebloom::{AnyFilter, ConcurrentBloom};
/// use std::hash::RandomState;
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let bytes = builder.hasher(RandomState::new()).build()?.snapshot().to_vec();
/// let (any, _) = AnyFilter::from_bytes(&bytes)?;
/// let mut stream = Vec::new();
/// any.try_clone()?.snapshot().write_to(&mut stream)?;
/// assert!(any.snapshot().to_vec() == bytes && stream == bytes);
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
        })
    }

    /// The content, to be written as bytes: to a vector, a writer, a file.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, Self> {
        Snapshot(self)
    }
}

/// A summary; it reads the whole filter.
impl Stored for AnyFilter {
    type Size = ();

    fn encoded_bytes(&self) -> usize {
        each!(self, filter => filter.encoded_bytes())
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        each!(self, filter => filter.encode(out))
    }

    #[cfg(feature = "std")]
    fn encode_unheld<O: Out<Error = std::io::Error>>(&self, out: &mut O) -> std::io::Result<()> {
        each!(self, filter => filter.encode_unheld(out))
    }
}

impl fmt::Debug for AnyFilter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, filter => filter.fmt(f))
    }
}
