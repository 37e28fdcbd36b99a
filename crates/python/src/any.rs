//! One type for all filters, and what is done with a whole filter: statistics, unions, bytes.

use crate::engine::{Fault, Foreign, build_error};
use lanebloom::codec::{Identity, Kind, SnapshotHeader};
use lanebloom::hash::{AnyHasher, BuiltinHasher};
use lanebloom::{AnyFilter, BloomView, ConcurrentBitmap, ConcurrentBloom, IncompatibleError, SipHash13, Statistics};
use lanebloom_formats::{GuavaBloom, SparkBloom, SplitBlockBloom};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};

/// A filter.
pub(crate) enum Any {
    /// Of lanebloom, with a hasher that is at hand.
    Own(Box<AnyFilter>),
    /// A mapped file.
    View(Box<BloomView<'static, AnyHasher>>),
    Bitmap(ConcurrentBitmap),
    Guava(Foreign<GuavaBloom>),
    Spark(Foreign<SparkBloom>),
    SplitBlock(Foreign<SplitBlockBloom>),
}

/// The same expression for every filter.
macro_rules! each {
    ($any:expr, $filter:ident => $result:expr) => {
        each!($any, $filter => $result, $filter => $result, $filter => $result)
    };
    // Those of lanebloom with a hasher, its bitmap, and those of other systems.
    ($any:expr, $filter:ident => $result:expr, $bitmap:ident => $of_bitmap:expr, $foreign:ident => $of_foreign:expr) => {
        match $any {
            Any::Own(filter) => {
                let $filter = &**filter;
                $result
            }
            Any::View(view) => {
                let $filter = &**view;
                $result
            }
            Any::Bitmap($bitmap) => $of_bitmap,
            Any::Guava($foreign) => $of_foreign,
            Any::Spark($foreign) => $of_foreign,
            Any::SplitBlock($foreign) => $of_foreign,
        }
    };
}
pub(crate) use each;

/// An exception for filters that do not go together.
pub(crate) fn incompatible(error: IncompatibleError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn different() -> PyErr {
    PyTypeError::new_err(
        "the operation takes two filters of one class with one hasher, both with a secret or both without one, and this \
         class may not have it",
    )
}

/// An exception for bytes that are no filter.
pub(crate) fn unreadable(error: impl Error + 'static) -> PyErr {
    let mut source: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return match io.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code).into(),
                None if io.kind() == io::ErrorKind::OutOfMemory => PyMemoryError::new_err(io.to_string()),
                None => PyValueError::new_err(error.to_string()),
            };
        }
        source = cause.source();
    }
    PyValueError::new_err(error.to_string())
}

impl Any {
    /// A filter of lanebloom, with a hasher that is at hand.
    pub(crate) fn own(filter: AnyFilter) -> Self {
        Self::Own(Box::new(filter))
    }

    /// The name of the class in Python.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::View(_) => "BloomFilter",
            Self::Own(filter) => match filter.kind() {
                Kind::Bloom => "BloomFilter",
                Kind::Scalable => "ScalableBloomFilter",
                Kind::Windowed => "WindowedBloomFilter",
                Kind::Static => "StaticFilter",
                _ => "CuckooFilter",
            },
            Self::Bitmap(_) => "Bitmap",
            Self::Guava(_) => "GuavaBloomFilter",
            Self::Spark(_) => "SparkBloomFilter",
            Self::SplitBlock(_) => "SplitBlockBloomFilter",
        }
    }

    /// The hasher of a filter of lanebloom.
    pub(crate) fn hasher(&self) -> Option<&AnyHasher> {
        match self {
            Self::Own(filter) => filter.hasher(),
            Self::View(view) => Some(view.hasher()),
            _ => None,
        }
    }

    /// What the argument `hasher` calls it.
    pub(crate) fn hasher_name(&self) -> Option<&'static str> {
        self.hasher().map(hasher_name)
    }

    /// The secret key, if there is one.
    pub(crate) fn secret(&self) -> Option<SipHash13> {
        self.hasher().and_then(secret_of)
    }

    /// Two filters of one kind, whose hashers have one name.
    fn alike<'a>(&'a self, other: &'a Self) -> Option<(&'a AnyFilter, &'a AnyFilter)> {
        match (self, other) {
            (Self::Own(a), Self::Own(b)) if a.kind() == b.kind() && self.hasher_name() == other.hasher_name() => {
                Some((&**a, &**b))
            }
            _ => None,
        }
    }

    /// Two Bloom filters whose hashers have one name.
    pub(crate) fn blooms<'a>(&'a self, other: &'a Self) -> Option<[&'a ConcurrentBloom<AnyHasher>; 2]> {
        match self.alike(other) {
            Some((AnyFilter::Bloom(a), AnyFilter::Bloom(b))) => Some([a, b]),
            _ => None,
        }
    }

    /// How full it is; nothing for a bitmap, which is exact.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        each!(self, filter => Some(filter.statistics()), _bitmap => None, foreign => Some(foreign.filter.statistics()))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        each!(self, filter => filter.memory_bytes(), bitmap => bitmap.memory_bytes(), foreign => foreign.filter.memory_bytes())
    }

    pub(crate) fn expected_keys(&self) -> u64 {
        each!(self, filter => filter.expected_keys() as u64, bitmap => bitmap.bound(), foreign => foreign.filter.expected_keys() as u64)
    }

    /// The rate that holds up to the expected keys.
    pub(crate) fn rate(&self) -> f64 {
        each!(self, filter => filter.false_positive_rate(), _bitmap => 0.0, foreign => foreign.filter.false_positive_rate_at(foreign.filter.expected_keys()))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bitmap(bitmap) => bitmap.len(),
            _ => self.statistics().map_or(0, |statistics| statistics.len as u64),
        }
    }

    /// A copy; one that takes keys, of a view.
    pub(crate) fn copy(&self) -> PyResult<Self> {
        match self {
            Self::Own(filter) => filter.try_clone().map(Self::own),
            Self::View(view) => {
                let filter = view.to_filter().map_err(unreadable)?;
                return Ok(Self::own(AnyFilter::Bloom(filter)));
            }
            Self::Bitmap(bitmap) => bitmap.try_clone().map(Self::Bitmap),
            Self::Guava(foreign) => {
                let filter = foreign.filter.try_clone();
                filter.map(|filter| Self::Guava(Foreign { filter, ..*foreign }))
            }
            Self::Spark(foreign) => {
                let filter = foreign.filter.try_clone();
                filter.map(|filter| Self::Spark(Foreign { filter, ..*foreign }))
            }
            Self::SplitBlock(foreign) => {
                let filter = foreign.filter.try_clone();
                filter.map(|filter| Self::SplitBlock(Foreign { filter, ..*foreign }))
            }
        }
        .map_err(build_error)
    }

    /// Adds all keys of `other`, unless they are too many for the filter's rate.
    pub(crate) fn union_from(&self, other: &Self) -> PyResult<()> {
        if matches!(self, Self::View(_)) {
            return Err(Fault::ReadOnly.into());
        }
        if matches!(other, Self::View(_)) {
            return self.union_from(&other.copy()?);
        }
        self.check_union_rate(other)?;
        let united = match (self, other) {
            (Self::Guava(a), Self::Guava(b)) => Some(a.filter.union_from(&b.filter)),
            (Self::Spark(a), Self::Spark(b)) => Some(a.filter.union_from(&b.filter)),
            (Self::SplitBlock(a), Self::SplitBlock(b)) => Some(a.filter.union_from(&b.filter)),
            (Self::Bitmap(a), Self::Bitmap(b)) => Some(a.union_from(b)),
            _ => match self.alike(other) {
                Some((AnyFilter::Cuckoo(_) | AnyFilter::Static(_), _)) | None => None,
                Some((a, b)) => Some(a.union_from(b)),
            },
        };
        united
            .ok_or_else(different)?
            .map(drop)
            .map_err(|error| self.cannot_unite(other, error))
    }

    /// Fails if the union would break the promise of the filter's rate, unless one of the two
    /// filters has all of its keys.
    fn check_union_rate(&self, other: &Self) -> PyResult<()> {
        // Filters of one layer are estimated. The others are united in a copy.
        macro_rules! estimate {
            ($a:expr, $b:expr) => {
                $a.estimated_union_len($b).map(|len| {
                    let rate = $a.false_positive_rate_at(len);
                    let limit = Statistics::overfull_at($a.expected_keys());
                    let is_overfull = rate > $a.false_positive_rate_at(limit);
                    (len, rate, is_overfull)
                })
            };
        }
        let trial = |a: &AnyFilter, b: &AnyFilter| -> PyResult<_> {
            let copy = a.try_clone().map_err(build_error)?;
            Ok(copy.union_from(b).map(|_| {
                let statistics = copy.statistics();
                (statistics.len, statistics.false_positive_rate, copy.is_overfull())
            }))
        };
        let united = |a: &Self, b: &Self| -> PyResult<_> {
            let united = match (a, b) {
                (Self::Guava(a), Self::Guava(b)) => Some(estimate!(a.filter, &b.filter)),
                (Self::Spark(a), Self::Spark(b)) => Some(estimate!(a.filter, &b.filter)),
                (Self::SplitBlock(a), Self::SplitBlock(b)) => Some(estimate!(a.filter, &b.filter)),
                _ => match a.alike(b) {
                    Some((AnyFilter::Bloom(a), AnyFilter::Bloom(b))) => Some(estimate!(a, b)),
                    Some((AnyFilter::Cuckoo(_) | AnyFilter::Static(_), _)) | None => None,
                    Some((a, b)) => Some(trial(a, b)?),
                },
            };
            // The union itself says what does not go together.
            Ok(united.and_then(Result::ok))
        };
        let Some((len, rate, true)) = united(self, other)? else {
            return Ok(());
        };
        for one in [self, other] {
            if united(one, one)?.is_some_and(|(alone, ..)| alone >= len) {
                return Ok(());
            }
        }
        // A window has them in one of its generations.
        let expected = match self {
            Self::Own(filter) if filter.kind() == Kind::Windowed => 2 * self.expected_keys(),
            _ => len as u64,
        };
        Err(PyValueError::new_err(format!(
            "the union would have about {len} keys and a rate of {rate:.2e}; the filters are {}. Make both for the keys of \
             the union, with expected={expected}, or keep both and ask each",
            self.purpose()
        )))
    }

    /// What the filter was made for.
    fn purpose(&self) -> String {
        format!("for {} keys at a rate of {:.2e}", self.expected_keys(), self.rate())
    }

    /// An exception for two filters that have no union.
    fn cannot_unite(&self, other: &Self, error: IncompatibleError) -> PyErr {
        if matches!(self, Self::Bitmap(_)) {
            return incompatible(error);
        }
        PyValueError::new_err(format!(
            "the filters differ: one is {}, the other {}. Make both with the same arguments ({error})",
            self.purpose(),
            other.purpose()
        ))
    }

    /// A filter of what both have.
    pub(crate) fn intersection(&self, other: &Self) -> PyResult<Self> {
        if matches!(other, Self::View(_)) {
            return self.intersection(&other.copy()?);
        }
        let mut result = self.copy()?;
        if self.hasher_name() != other.hasher_name() {
            return Err(different());
        }
        let changed = match (&mut result, other) {
            (Self::Own(a), Self::Own(b)) => match (&mut **a, &**b) {
                (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => a.intersection_from(b),
                _ => return Err(different()),
            },
            (Self::Bitmap(a), Self::Bitmap(b)) => a.intersection_from(b),
            _ => return Err(different()),
        };
        changed.map_err(|error| self.cannot_unite(other, error))?;
        Ok(result)
    }

    /// `self` as a filter of which each bit can be compared.
    fn loaded<'a>(&'a self, place: &'a mut Option<Self>) -> PyResult<&'a Self> {
        Ok(match self {
            Self::View(_) => place.insert(self.copy()?),
            _ => self,
        })
    }

    pub(crate) fn is_subset(&self, other: &Self) -> PyResult<bool> {
        let (mut x, mut y) = (None, None);
        let (a, b) = (self.loaded(&mut x)?, other.loaded(&mut y)?);
        if let (Self::Bitmap(bits), Self::Bitmap(_)) = (a, b) {
            return Ok(matches!(a.intersection(b)?, Self::Bitmap(both) if both == *bits));
        }
        let [a, b] = a.blooms(b).ok_or_else(different)?;
        a.is_subset(b).map_err(|error| self.cannot_unite(other, error))
    }

    pub(crate) fn is_disjoint(&self, other: &Self) -> PyResult<bool> {
        let (mut x, mut y) = (None, None);
        let (a, b) = (self.loaded(&mut x)?, other.loaded(&mut y)?);
        if let (Self::Bitmap(_), Self::Bitmap(_)) = (a, b) {
            return Ok(a.intersection(b)?.len() == 0);
        }
        let [a, b] = a.blooms(b).ok_or_else(different)?;
        a.is_disjoint(b).map_err(|error| self.cannot_unite(other, error))
    }

    /// Whether both have the same content; nothing if they are of two types.
    pub(crate) fn equals(&self, other: &Self) -> PyResult<Option<bool>> {
        let (mut x, mut y) = (None, None);
        let (a, b) = (self.loaded(&mut x)?, other.loaded(&mut y)?);
        Ok(match (a, b) {
            (Self::Guava(a), Self::Guava(b)) => Some(a.int_bytes == b.int_bytes && a.filter == b.filter),
            (Self::Spark(a), Self::Spark(b)) => Some(a.filter == b.filter),
            (Self::SplitBlock(a), Self::SplitBlock(b)) => Some(a.int_bytes == b.int_bytes && a.filter == b.filter),
            (Self::Bitmap(a), Self::Bitmap(b)) => Some(a == b),
            _ => a.alike(b).map(|(a, b)| match (a, b) {
                (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => a == b,
                (AnyFilter::Scalable(a), AnyFilter::Scalable(b)) => a == b,
                (AnyFilter::Windowed(a), AnyFilter::Windowed(b)) => a == b,
                // A cuckoo filter's bytes show the order of the inserts too.
                _ => a.hasher() == b.hasher() && a.to_bytes() == b.to_bytes(),
            }),
        })
    }

    /// The bytes that [`from_bytes`](Self::from_bytes) reads.
    pub(crate) fn to_bytes(&self) -> PyResult<Vec<u8>> {
        Ok(match self {
            Self::Own(filter) => filter.to_bytes(),
            Self::View(view) => view.bytes().to_vec(),
            Self::Bitmap(bitmap) => bitmap.to_bytes(),
            Self::Guava(foreign) => foreign.filter.to_bytes(),
            Self::Spark(foreign) => foreign.filter.to_bytes(),
            Self::SplitBlock(foreign) => foreign.filter.to_parquet().map_err(build_error)?,
        })
    }

    /// Writes what [`to_bytes`](Self::to_bytes) gives.
    pub(crate) fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            Self::Own(filter) => filter.write_to(file),
            Self::Bitmap(bitmap) => bitmap.write_to(file),
            Self::Guava(foreign) => foreign.filter.write_to(file),
            Self::Spark(foreign) => foreign.filter.write_to(file),
            Self::View(_) | Self::SplitBlock(_) => file.write_all(&self.to_bytes().map_err(io::Error::other)?),
        }
    }

    /// Reads a snapshot of lanebloom's and nothing else: what takes more than `max_bytes` of memory
    /// is an error.
    pub(crate) fn read(reader: impl Read, secret: Option<SipHash13>, max_bytes: usize) -> PyResult<Self> {
        let (header, mut reader) = peek(reader)?;
        if !matches!(
            header.kind,
            Kind::Bloom | Kind::Scalable | Kind::Windowed | Kind::Cuckoo | Kind::Static | Kind::Bitmap
        ) {
            let kind = header.kind;
            let advice = match kind {
                Kind::Bank => "which FilterBank.load and FilterBank.from_bytes read",
                _ => "which has no class in Python",
            };
            return Err(PyValueError::new_err(format!("a snapshot of kind {kind}, {advice}")));
        }
        let hasher = hasher_of(&header, secret)?;
        let result = match hasher {
            None => ConcurrentBitmap::read_from(&mut reader, max_bytes).map(Self::Bitmap),
            Some(hasher) => AnyFilter::read_from_with(&mut reader, max_bytes, hasher).map(Self::own),
        };
        let result = result.map_err(unreadable)?;
        nothing_more(reader)?;
        Ok(result)
    }
}

/// The header with which a snapshot begins, and all of its bytes.
pub(crate) fn peek(mut reader: impl Read) -> PyResult<(SnapshotHeader, impl Read)> {
    let mut head = Vec::with_capacity(SnapshotHeader::LEN);
    reader
        .by_ref()
        .take(SnapshotHeader::LEN as u64)
        .read_to_end(&mut head)?;
    let header = SnapshotHeader::peek(&head).map_err(unreadable)?;
    Ok((header, io::Cursor::new(head).chain(reader)))
}

/// What the argument `hasher` calls a hasher.
pub(crate) fn hasher_name(hasher: &AnyHasher) -> &'static str {
    match hasher {
        AnyHasher::Builtin(BuiltinHasher::FastHash(_)) => "fast",
        AnyHasher::Builtin(BuiltinHasher::SipHash13(_)) => "siphash",
        AnyHasher::Prehashed => "prehashed",
        _ => "murmur3",
    }
}

/// What `repr` says of a hasher that is not the default.
pub(crate) fn hasher_note(name: Option<&str>) -> &'static str {
    match name {
        Some("siphash") => ", secret",
        Some("fast") => ", fast",
        Some("prehashed") => ", prehashed",
        _ => "",
    }
}

/// The secret key of a hasher that has one.
pub(crate) fn secret_of(hasher: &AnyHasher) -> Option<SipHash13> {
    match hasher {
        AnyHasher::Builtin(BuiltinHasher::SipHash13(hasher)) => Some(*hasher),
        _ => None,
    }
}

/// The hasher of a filter with this header, which may have a secret; nothing for a bitmap.
pub(crate) fn hasher_of(header: &SnapshotHeader, secret: Option<SipHash13>) -> PyResult<Option<AnyHasher>> {
    match (header.any_hasher(), secret) {
        (None, _) => Ok(None),
        (Some(_), Some(secret)) => Ok(Some(secret.into())),
        (Some(AnyHasher::Unknown(hasher)), None) => Err(PyValueError::new_err(match hasher.identity() {
            Identity::SipHash13 => "the filter was made with a secret key: pass it as secret=",
            _ => "the keys are hashed by a function that only the Rust program has that made the filter",
        })),
        (hasher, None) => Ok(hasher),
    }
}

/// The memory that a filter of these bytes may take. A window stores only those of its generations,
/// 64 at most, that have keys.
pub(crate) fn read_limit(bytes: &[u8]) -> usize {
    bytes.len().saturating_mul(64)
}

/// Fails if there are more bytes.
fn nothing_more(mut reader: impl Read) -> PyResult<()> {
    if reader.read(&mut [0])? == 0 {
        return Ok(());
    }
    Err(PyValueError::new_err("there are bytes after the filter's"))
}

/// A filter of Guava that takes at most `max_bytes` of memory.
pub(crate) fn guava(reader: impl Read, int_bytes: usize, max_bytes: usize) -> PyResult<Any> {
    let int_bytes = check_int_bytes(int_bytes)?;
    let mut reader = reader;
    let filter = GuavaBloom::read_from(&mut reader, max_bytes).map_err(unreadable)?;
    nothing_more(reader)?;
    Ok(Any::Guava(Foreign { filter, int_bytes }))
}

/// A filter of Spark that takes at most `max_bytes` of memory.
pub(crate) fn spark(mut reader: impl Read, max_bytes: usize) -> PyResult<Any> {
    let filter = SparkBloom::read_from(&mut reader, max_bytes).map_err(unreadable)?;
    nothing_more(reader)?;
    Ok(Any::Spark(Foreign { filter, int_bytes: 8 }))
}

/// A filter of Parquet; if `is_prefix`, the bytes may go on after it.
pub(crate) fn split_block(bytes: &[u8], int_bytes: usize, is_prefix: bool) -> PyResult<Any> {
    let int_bytes = check_int_bytes(int_bytes)?;
    let filter = if is_prefix {
        SplitBlockBloom::from_parquet_prefix(bytes).map(|(filter, _)| filter)
    } else {
        SplitBlockBloom::from_parquet(bytes)
    };
    let filter = filter.map_err(unreadable)?;
    Ok(Any::SplitBlock(Foreign { filter, int_bytes }))
}

/// The argument `int_bytes`.
pub(crate) fn check_int_bytes(int_bytes: usize) -> PyResult<usize> {
    if matches!(int_bytes, 4 | 8) {
        return Ok(int_bytes);
    }
    Err(PyValueError::new_err(format!("int_bytes={int_bytes}: 4 or 8")))
}
