//! One type for all filters, and what is done with a whole filter: statistics, unions, bytes.

use crate::engine::{Foreign, Positions, VIEW, build_error};
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::bloom::Bloom;
use lanebloom::codec::{Identity, Kind, SnapshotHeader};
use lanebloom::hash::{AnyHasher, BuiltinHasher};
use lanebloom::{AnyFilter, BloomView, BuildError, IncompatibleError, Membership, Pair, SipHash13, Statistics};
use lanebloom_formats::{GuavaBloom, JavaBloom, JavaFormat, SparkBloom, SplitBlockBloom};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::iter;

/// A filter.
#[expect(clippy::large_enum_variant, reason = "a program has few of them")]
pub(crate) enum Any {
    /// A filter of lanebloom, with a hasher that is at hand.
    Own(AnyFilter),
    /// A mapped file.
    View(BloomView<'static, AnyHasher>),
    Bitmap(Positions),
    Guava(Foreign<GuavaBloom>),
    Spark(Foreign<SparkBloom>),
    SplitBlock(Foreign<SplitBlockBloom>),
}

/// The same expression for every filter. (Filters of other systems are not in [`AnyFilter`]: their
/// hashes take keys in another way.)
macro_rules! each {
    ($any:expr, $filter:ident => $result:expr) => {
        match $any {
            Any::Own($filter) => $result,
            Any::View($filter) => $result,
            Any::Bitmap($filter) => $result,
            Any::Guava($filter) => $result,
            Any::Spark($filter) => $result,
            Any::SplitBlock($filter) => $result,
        }
    };
}
pub(crate) use each;

fn different() -> PyErr {
    PyTypeError::new_err(
        "the operation takes two filters of one class with one hasher, both with a secret or both without one, and this \
         class may not have it",
    )
}

/// The exception for bytes that are not a filter, or do not fit into memory.
pub(crate) fn unreadable(error: impl Error + 'static) -> PyErr {
    let causes = || iter::successors(Some(&error as &(dyn Error + 'static)), |&cause| cause.source());
    let io = causes().find_map(|cause| cause.downcast_ref::<io::Error>());
    if let Some(code) = io.and_then(io::Error::raw_os_error) {
        return io::Error::from_raw_os_error(code).into();
    }
    let is_out_of_memory = io.is_some_and(|io| io.kind() == io::ErrorKind::OutOfMemory)
        || causes().any(|cause| cause.downcast_ref().is_some_and(BuildError::is_out_of_memory));
    if is_out_of_memory {
        PyMemoryError::new_err(error.to_string())
    } else {
        PyValueError::new_err(error.to_string())
    }
}

/// Where a filter is read.
pub(crate) enum Input<'a> {
    /// All of its bytes.
    Bytes(&'a [u8]),
    /// A file, and the most memory that the filter may take.
    File(&'a mut dyn Read, usize),
}

impl Any {
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
            Self::Own(filter) => Some(filter.hasher()),
            Self::View(view) => Some(view.hasher()),
            _ => None,
        }
    }

    /// The name of the hasher for the argument `hasher`.
    pub(crate) fn hasher_name(&self) -> Option<&'static str> {
        self.hasher().map(hasher_name)
    }

    /// Two filters of one kind, whose hashers have one name.
    fn alike<'a>(&'a self, other: &'a Self) -> Option<(&'a AnyFilter, &'a AnyFilter)> {
        match (self, other) {
            (Self::Own(a), Self::Own(b)) if a.kind() == b.kind() && self.hasher_name() == other.hasher_name() => {
                Some((a, b))
            }
            _ => None,
        }
    }

    pub(crate) fn is_bitmap(&self) -> bool {
        matches!(self, Self::Bitmap(_))
    }

    /// How full it is.
    pub(crate) fn statistics(&self) -> Statistics {
        each!(self, filter => filter.statistics())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        each!(self, filter => filter.memory_bytes())
    }

    pub(crate) fn expected_keys(&self) -> usize {
        each!(self, filter => filter.expected_keys())
    }

    /// The rate that holds up to the expected keys.
    pub(crate) fn rate(&self) -> f64 {
        each!(self, filter => filter.false_positive_rate())
    }

    pub(crate) fn len(&self) -> usize {
        self.statistics().len
    }

    /// A copy; one that takes keys, of a view.
    pub(crate) fn copy(&self) -> PyResult<Self> {
        match self {
            Self::View(view) => {
                return view
                    .to_filter()
                    .map(AnyFilter::Bloom)
                    .map(Self::Own)
                    .map_err(unreadable);
            }
            Self::Own(filter) => filter.try_clone().map(Self::Own),
            Self::Bitmap(bitmap) => bitmap.try_clone().map(Positions).map(Self::Bitmap),
            Self::Guava(foreign) => foreign.try_clone().map(|filter| Self::Guava(foreign.same_ints(filter))),
            Self::Spark(foreign) => foreign.try_clone().map(|filter| Self::Spark(foreign.same_ints(filter))),
            Self::SplitBlock(foreign) => foreign
                .try_clone()
                .map(|filter| Self::SplitBlock(foreign.same_ints(filter))),
        }
        .map_err(build_error)
    }

    /// Adds all keys of `other`, unless they are too many for the filter's rate.
    pub(crate) fn union_from(&self, other: &Self) -> PyResult<()> {
        if matches!(self, Self::View(_)) {
            return Err(PyTypeError::new_err(VIEW));
        }
        self.check_union_rate(other)?;
        let united = match (self, other) {
            (Self::Bitmap(a), Self::Bitmap(b)) => a.union_from(b),
            (Self::Guava(a), Self::Guava(b)) => a.union_from(b),
            (Self::Spark(a), Self::Spark(b)) => a.union_from(b),
            (Self::SplitBlock(a), Self::SplitBlock(b)) => a.union_from(b),
            _ => match self.alike(other) {
                Some((AnyFilter::Cuckoo(_), _)) => {
                    return Err(PyTypeError::new_err(
                        "two cuckoo filters have no union: add the keys of both to one filter, or keep both and ask each",
                    ));
                }
                Some((AnyFilter::Static(_), _)) => {
                    return Err(PyTypeError::new_err(
                        "two static filters have no union: make a new one of all keys, or keep both and ask each",
                    ));
                }
                None => return Err(different()),
                Some((a, b)) => a.union_from(b),
            },
        };
        united.map(drop).map_err(|error| self.cannot_unite(other, error))
    }

    /// Fails if the union would break the promise of the filter's rate, unless one of the two
    /// filters has all of its keys.
    fn check_union_rate(&self, other: &Self) -> PyResult<()> {
        // Filters of one layer are estimated. The others are united in a copy. Where there is no
        // union, the union itself says what does not go together.
        macro_rules! estimate {
            ($a:expr, $b:expr) => {
                $a.with($b).ok().map(|pair| {
                    let len = pair.union_len();
                    let rate = $a.false_positive_rate_at(len);
                    let limit = Statistics::overfull_at($a.expected_keys());
                    (len, rate, rate > $a.false_positive_rate_at(limit))
                })
            };
        }
        let united = match (self, other) {
            (Self::Guava(a), Self::Guava(b)) => estimate!(a, b),
            (Self::Spark(a), Self::Spark(b)) => estimate!(a, b),
            (Self::SplitBlock(a), Self::SplitBlock(b)) => estimate!(a, b),
            _ => match self.alike(other) {
                Some((AnyFilter::Bloom(a), AnyFilter::Bloom(b))) => estimate!(a, b),
                Some((a @ (AnyFilter::Scalable(_) | AnyFilter::Windowed(_)), b)) => {
                    let copy = a.try_clone().map_err(build_error)?;
                    copy.union_from(b).ok().map(|_| {
                        let statistics = copy.statistics();
                        (statistics.len, statistics.false_positive_rate, statistics.is_overfull)
                    })
                }
                _ => None,
            },
        };
        let Some((len, rate, true)) = united else {
            return Ok(());
        };
        if self.len().max(other.len()) >= len {
            return Ok(());
        }
        // A window has them in one of its generations.
        let expected = match self {
            Self::Own(AnyFilter::Windowed(window)) => 2 * window.expected_keys(),
            _ => len,
        };
        Err(PyValueError::new_err(format!(
            "the union would have about {len} keys and a rate of {rate:.2e}; the filters are {}. Make both for the keys of \
             the union, with expected={expected}, or keep both and ask each",
            self.purpose()
        )))
    }

    /// The purpose of the filter: its keys and rate.
    fn purpose(&self) -> String {
        format!("for {} keys at a rate of {:.2e}", self.expected_keys(), self.rate())
    }

    /// An exception for two filters that have no union.
    fn cannot_unite(&self, other: &Self, error: IncompatibleError) -> PyErr {
        if self.is_bitmap() {
            return PyValueError::new_err(error.to_string());
        }
        PyValueError::new_err(format!(
            "the filters differ: one is {}, the other {}. Make both with the same arguments ({error})",
            self.purpose(),
            other.purpose()
        ))
    }

    /// A filter of what both have. This and the comparisons take no views: their bits are not at
    /// hand.
    pub(crate) fn intersection(&self, other: &Self) -> PyResult<Self> {
        let mut both = self.copy()?;
        match (&mut both, self.alike(other), other) {
            (Self::Bitmap(a), _, Self::Bitmap(b)) => a.intersection_from(b),
            (Self::Own(AnyFilter::Bloom(a)), Some((_, AnyFilter::Bloom(b))), _) => a.exclusive().intersection_from(b),
            _ => return Err(different()),
        }
        .map_err(|error| self.cannot_unite(other, error))?;
        Ok(both)
    }

    /// Two Bloom filters, side by side.
    fn pair<'a>(&'a self, other: &'a Self) -> PyResult<Pair<'a, Bloom, AnyHasher>> {
        match self.alike(other) {
            Some((AnyFilter::Bloom(a), AnyFilter::Bloom(b))) => {
                a.with(b).map_err(|error| self.cannot_unite(other, error))
            }
            _ => Err(different()),
        }
    }

    pub(crate) fn is_subset(&self, other: &Self) -> PyResult<bool> {
        match self.is_bitmap() {
            true => Ok(self.intersection(other)?.equals(self)),
            false => Ok(self.pair(other)?.is_subset()),
        }
    }

    pub(crate) fn is_disjoint(&self, other: &Self) -> PyResult<bool> {
        match self.is_bitmap() {
            true => Ok(self.intersection(other)?.len() == 0),
            false => Ok(self.pair(other)?.is_disjoint()),
        }
    }

    /// An estimate of the number of keys in both.
    pub(crate) fn intersection_len(&self, other: &Self) -> PyResult<usize> {
        Ok(self.pair(other)?.intersection_len())
    }

    /// Whether both have the same content and class.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bitmap(a), Self::Bitmap(b)) => **a == **b,
            (Self::Guava(a), Self::Guava(b)) => a == b,
            (Self::Spark(a), Self::Spark(b)) => a == b,
            (Self::SplitBlock(a), Self::SplitBlock(b)) => a == b,
            _ => self.alike(other).is_some_and(|(a, b)| match (a, b) {
                (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => a == b,
                (AnyFilter::Scalable(a), AnyFilter::Scalable(b)) => a == b,
                (AnyFilter::Windowed(a), AnyFilter::Windowed(b)) => a == b,
                // A cuckoo filter's bytes show the order of the inserts too.
                _ => a.hasher() == b.hasher() && a.snapshot().to_vec() == b.snapshot().to_vec(),
            }),
        }
    }

    /// The bytes that [`read`](Self::read) reads, and the functions for other systems.
    pub(crate) fn to_bytes(&self) -> PyResult<Vec<u8>> {
        Ok(match self {
            Self::Own(filter) => filter.snapshot().to_vec(),
            Self::Bitmap(bitmap) => bitmap.snapshot().to_vec(),
            Self::View(view) => view.bytes().to_vec(),
            Self::Guava(foreign) => foreign.to_bytes(),
            Self::Spark(foreign) => foreign.to_bytes(),
            Self::SplitBlock(foreign) => foreign.to_parquet().map_err(build_error)?,
        })
    }

    /// Writes what [`to_bytes`](Self::to_bytes) gives.
    pub(crate) fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            Self::Own(filter) => filter.snapshot().write_to(file),
            Self::Bitmap(bitmap) => bitmap.snapshot().write_to(file),
            Self::View(view) => file.write_all(view.bytes()),
            Self::Guava(foreign) => foreign.write_to(file),
            Self::Spark(foreign) => foreign.write_to(file),
            Self::SplitBlock(foreign) => file.write_all(&foreign.to_parquet().map_err(io::Error::other)?),
        }
    }

    /// Reads a snapshot of lanebloom's and nothing else.
    pub(crate) fn read(source: Input<'_>, secret: Option<SipHash13>) -> PyResult<Self> {
        let hasher = |header: SnapshotHeader| {
            let advice = match header.kind {
                Kind::Bloom | Kind::Scalable | Kind::Windowed | Kind::Cuckoo | Kind::Static => {
                    return hasher_of(&header, secret);
                }
                Kind::Bank => "which FilterBank.load and FilterBank.from_bytes read",
                _ => "which has no class in Python",
            };
            let kind = header.kind;
            Err(PyValueError::new_err(format!("a snapshot of kind {kind}, {advice}")))
        };
        match source {
            Input::Bytes(bytes) => match peek(bytes)?.0 {
                header if header.kind == Kind::Bitmap => whole(ConcurrentBitmap::from_bytes(bytes)).map(Self::bitmap),
                header => whole(AnyFilter::from_bytes_with(bytes, hasher(header)?)).map(Self::Own),
            },
            Input::File(file, most) => {
                let (header, mut file) = peek(file)?;
                if header.kind == Kind::Bitmap {
                    let bitmap = ConcurrentBitmap::read_from(&mut file, most);
                    return whole(bitmap.map(|bitmap| (bitmap, file))).map(Self::bitmap);
                }
                let filter = AnyFilter::read_from_with(&mut file, most, hasher(header)?);
                whole(filter.map(|filter| (filter, file))).map(Self::Own)
            }
        }
    }

    pub(crate) fn bitmap(bitmap: ConcurrentBitmap) -> Self {
        Self::Bitmap(Positions(bitmap))
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

/// The name of a hasher for the argument `hasher`.
pub(crate) fn hasher_name(hasher: &AnyHasher) -> &'static str {
    match hasher {
        AnyHasher::Builtin(BuiltinHasher::FastHash(_)) => "fast",
        AnyHasher::Builtin(BuiltinHasher::SipHash13(_)) => "siphash",
        AnyHasher::Prehashed => "prehashed",
        _ => "murmur3",
    }
}

/// The part of `repr` for a hasher that is not the default.
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

/// The hasher of a filter with this header, which may have a secret; any for a bitmap.
pub(crate) fn hasher_of(header: &SnapshotHeader, secret: Option<SipHash13>) -> PyResult<AnyHasher> {
    match (header.any_hasher(), secret) {
        (None, _) => Ok(AnyHasher::Prehashed),
        (Some(_), Some(secret)) => Ok(secret.into()),
        (Some(AnyHasher::Unknown { identity, .. }), None) => Err(PyValueError::new_err(match identity {
            Identity::SipHash13 => "the filter was made with a secret key: pass it as secret=",
            _ => "the keys are hashed by a function that only the Rust program has that made the filter",
        })),
        (Some(hasher), None) => Ok(hasher),
    }
}

/// The value that was read, if nothing follows it.
fn whole<T>(read: Result<(T, impl Read), impl Error + 'static>) -> PyResult<T> {
    let (filter, mut rest) = read.map_err(unreadable)?;
    if rest.read(&mut [0])? == 0 {
        return Ok(filter);
    }
    Err(PyValueError::new_err("there are bytes after the filter's"))
}

/// A filter of Guava or Spark.
pub(crate) fn java<F: JavaFormat>(source: Input<'_>, int_bytes: usize) -> PyResult<Foreign<JavaBloom<F>>> {
    let filter = match source {
        Input::Bytes(bytes) => whole(JavaBloom::from_bytes(bytes)),
        Input::File(mut file, most) => whole(JavaBloom::read_from(&mut file, most).map(|filter| (filter, file))),
    };
    filter.map(|filter| Foreign { filter, int_bytes })
}

/// A filter of Parquet; if `is_prefix`, the bytes may go on after it.
pub(crate) fn split_block(source: Input<'_>, int_bytes: usize, is_prefix: bool) -> PyResult<Any> {
    let mut read = Vec::new();
    let bytes = match source {
        Input::Bytes(bytes) => bytes,
        Input::File(file, most) => {
            let mut file = file.take((most as u64).saturating_add(1));
            file.read_to_end(&mut read).map_err(unreadable)?;
            if read.len() > most {
                return Err(PyValueError::new_err(format!(
                    "the file has more than max_bytes={most}"
                )));
            }
            &read
        }
    };
    let filter = if is_prefix {
        SplitBlockBloom::from_parquet_prefix(bytes).map(|(filter, _)| filter)
    } else {
        SplitBlockBloom::from_parquet(bytes)
    };
    let filter = filter.map_err(unreadable)?;
    Ok(Any::SplitBlock(Foreign { filter, int_bytes }))
}
