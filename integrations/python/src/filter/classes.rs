//! The methods of each class: its constructor, and what it alone can do.

use super::{
    Bitmap, BloomFilter, Cuckoo, Filter, GuavaBloomFilter, ScalableBloomFilter, SparkBloomFilter,
    SplitBlockBloomFilter, StaticFilter, WindowedBloomFilter,
};
use crate::any::{Any, Input, hasher_of, java, peek, split_block, unreadable};
use crate::arguments::{self, FilePath, IntBytes, Number, Secret, SecretKey, Span, open_regular};
use crate::engine::{Foreign, build_error};
use crate::parquet;
use crate::source::hashes;
use crate::task::{BULK, hash_object, pool};
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::hash::AnyHasher;
use lanebloom::{
    AnyFilter, BloomView, BuildError, ConcurrentBloom, CuckooFilter, Hashed, ScalableBloom, WindowedBloom, codec,
};
use lanebloom_formats::internal::ColumnType;
use lanebloom_formats::spark::Version;
use lanebloom_formats::splitblock::hash;
use lanebloom_formats::{GuavaBloom, SparkBloom, SplitBlockBloom};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The two parts of a new object, whose filter was built.
fn parts<C: pyo3::PyClass<BaseType = Filter>>(
    built: Result<Any, BuildError>,
    key: Option<Py<PyAny>>,
    class: C,
) -> PyResult<PyClassInitializer<C>> {
    let any = built.map_err(build_error)?;
    Ok(PyClassInitializer::from(Filter::new(any, key)).add_subclass(class))
}

/// Fails for a key that was not there.
fn check_removed(was_there: bool, key: &Bound<'_, PyAny>) -> PyResult<()> {
    match was_there {
        true => Ok(()),
        false => Err(PyKeyError::new_err((key.clone().unbind(),))),
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = ConcurrentBloom::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate);
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        parts(filter.map(AnyFilter::Bloom).map(Any::Own), key, Self)
    }

    /// A read-only filter in a file that save() wrote: it is not read but mapped, so that processes
    /// share its memory and a lookup reads what it needs.
    ///
    /// Nobody may write to the file or shorten it while it is mapped: a lookup would end the
    /// process. save() replaces the file, which is safe: the view keeps the old one.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, secret=None, key=None))]
    fn mmap(py: Python<'_>, path: FilePath, secret: Option<SecretKey>, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let file = open_regular(&path.0)?;
        let hasher = hasher_of(&peek(&file)?.0, secret.map(|key| key.0))?;
        // SAFETY: the caller's promise, as documented.
        let view = unsafe { codec::map::<BloomView<_>>(&file, hasher) };
        Filter::new(Any::View(view.map_err(unreadable)?), key).into_object(py)
    }

    /// An estimate of the number of keys in both filters.
    fn approx_intersection_len(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<usize> {
        slf.as_super().get().both(other.as_super(), Any::intersection_len)
    }
}

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (expected=Number(10_000), rate=0.01, *, max_bytes=None, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected=10_000, rate=0.01, *, max_bytes=None, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        max_bytes: Option<Number<usize>>,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut builder = ScalableBloom::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate);
        if let Some(max_bytes) = max_bytes {
            builder = builder.max_bytes(max_bytes.0);
        }
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        parts(filter.map(AnyFilter::Scalable).map(Any::Own), key, Self)
    }
}

#[pymethods]
impl WindowedBloomFilter {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
    #[pyo3(signature = (expected, rate=0.01, *, window=None, generations=Number(4), seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, window=None, generations=4, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        window: Option<Span>,
        #[pyo3(from_py_with = arguments::generations)] generations: Number<usize>,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut builder = WindowedBloom::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate)
            .generations(generations.0);
        builder = match window {
            None => builder.rotate_when_full(),
            Some(Span(window)) => builder.window(window),
        };
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        parts(filter.map(AnyFilter::Windowed).map(Any::Own), key, Self)
    }

    /// Forget the oldest generation of keys now.
    fn rotate(slf: &Bound<'_, Self>) {
        if let Any::Own(AnyFilter::Windowed(filter)) = &*slf.as_super().get().any {
            filter.rotate();
        }
    }
}

impl Cuckoo {
    /// Calls `f` with the filter and the hash of a key.
    fn by_hash<R: Default>(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        f: impl FnOnce(&CuckooFilter<AnyHasher>, u64) -> R,
    ) -> PyResult<R> {
        let this = slf.as_super().get();
        this.keyed(key, |key| {
            let Any::Own(own @ AnyFilter::Cuckoo(filter)) = &*this.any else {
                return Ok(R::default());
            };
            Ok(hash_object(own, key)?.map_or_else(R::default, |hash| f(filter, hash)))
        })
    }
}

#[pymethods]
impl Cuckoo {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = CuckooFilter::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate);
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        parts(filter.map(AnyFilter::Cuckoo).map(Any::Own), key, Self)
    }

    /// Remove a key, or one of its copies; returns whether it was there.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::by_hash(slf, key, |filter, hash| filter.remove(&Hashed(hash)))
    }

    /// Remove a key, or one of its copies; a KeyError if it is not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        check_removed(Self::discard(slf, key)?, key)
    }

    /// How often a key was added and not removed; more at the rate of false positives.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        Self::by_hash(slf, key, |filter, hash| filter.count(&Hashed(hash)))
    }

    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().any.len()
    }
}

impl StaticFilter {
    fn filter<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a lanebloom::StaticFilter<AnyHasher>> {
        match &*slf.as_super().get().any {
            Any::Own(AnyFilter::Static(filter)) => Ok(filter),
            _ => Err(PyTypeError::new_err("no StaticFilter")),
        }
    }
}

#[pymethods]
impl StaticFilter {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
    #[pyo3(signature = (keys, rate=None, *, bits=None, threads=Number(1), seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(keys, rate=None, *, bits=None, threads=1, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        keys: &Bound<'_, PyAny>,
        rate: Option<f64>,
        bits: Option<Number<usize>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let hasher = arguments::hasher(hasher, seed, secret)?;
        let mut builder = lanebloom::StaticFilter::builder().hasher(hasher);
        if let Some(rate) = rate {
            builder = builder.false_positive_rate(rate);
        }
        if let Some(bits) = bits {
            builder = builder.fingerprint_bits(bits.0);
        }
        // Wrong arguments are an error before all keys are hashed.
        builder
            .clone()
            .build_from_batch(Hashed::slice(&[]))
            .map_err(build_error)?;
        let hashes = hashes(hasher, key.as_ref(), keys, threads.0)?;
        let filter = keys.py().detach(|| {
            let hashed = Hashed::slice(&hashes);
            Ok::<_, PyErr>(match threads.0 {
                2.. if hashes.len() >= BULK => pool(threads.0)?.install(|| builder.par_build_from_batch(hashed)),
                _ => builder.build_from_batch(hashed),
            })
        })?;
        parts(filter.map(AnyFilter::Static).map(Any::Own), key, Self)
    }

    /// The bits of each key's fingerprint.
    #[getter]
    fn bits(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::filter(slf)?.fingerprint_bits())
    }

    /// The bits of memory for each key.
    #[getter]
    fn bits_per_key(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Ok(Self::filter(slf)?.statistics().bits_per_key)
    }

    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().any.len()
    }
}

impl Bitmap {
    fn bits<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a ConcurrentBitmap> {
        match &*slf.as_super().get().any {
            Any::Bitmap(bitmap) => Ok(bitmap),
            _ => Err(PyTypeError::new_err("no bitmap")),
        }
    }
}

#[pymethods]
impl Bitmap {
    #[new]
    #[pyo3(signature = (bound, *, key=None))]
    fn new(
        #[pyo3(from_py_with = arguments::bound)] bound: Number<u64>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let filter = ConcurrentBitmap::new(bound.0);
        parts(filter.map(Any::bitmap), key, Self)
    }

    /// Remove an integer; returns whether it was there.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let this = slf.as_super().get();
        this.keyed(key, |key| {
            let Any::Bitmap(bits) = &*this.any else {
                return Ok(false);
            };
            Ok(hash_object(bits, key)?.is_some_and(|position| bits.remove(position)))
        })
    }

    /// Remove an integer; a KeyError if it is not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        check_removed(Self::discard(slf, key)?, key)
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::bits(slf)?.len() as usize)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Positions {
        Positions {
            bitmap: slf.unbind(),
            next: 0.into(),
        }
    }
}

/// The integers of a bitmap.
#[pyclass(frozen, module = "lanebloom")]
pub(crate) struct Positions {
    bitmap: Py<Bitmap>,
    next: std::sync::atomic::AtomicU64,
}

#[pymethods]
impl Positions {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        use std::sync::atomic::Ordering::Relaxed;
        let bitmap = Bitmap::bits(self.bitmap.bind(py))?;
        // Relaxed: the place orders nothing but itself. Threads that share the iterator get each
        // integer once.
        let mut from = self.next.load(Relaxed);
        loop {
            let found = bitmap.first_present(from);
            let next = found.map_or(u64::MAX, |found| found + 1);
            match self.next.compare_exchange_weak(from, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(found),
                Err(now) => from = now,
            }
        }
    }
}

#[pymethods]
impl GuavaBloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.03, *, int_bytes=IntBytes(8), key=None), text_signature = "(expected, rate=0.03, *, int_bytes=8, key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        int_bytes: IntBytes,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (filter, int_bytes) = (GuavaBloom::with_capacity(expected.0, rate), int_bytes.0);
        parts(
            filter.map(|filter| Any::Guava(Foreign { filter, int_bytes })),
            key,
            Self,
        )
    }

    /// The filter that writeTo of Java or to_bytes wrote.
    #[staticmethod]
    #[pyo3(signature = (data, /, *, int_bytes=IntBytes(8), key=None), text_signature = "(data, /, *, int_bytes=8, key=None)")]
    fn from_bytes(data: &Bound<'_, PyAny>, int_bytes: IntBytes, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        Filter::read_data(data, key, |bytes| java(bytes, int_bytes.0).map(Any::Guava))
    }

    /// Read a file that Java or save() wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, int_bytes=IntBytes(8), key=None, max_bytes=None), text_signature = "(path, /, *, int_bytes=8, key=None, max_bytes=None)")]
    fn load(
        py: Python<'_>,
        path: FilePath,
        int_bytes: IntBytes,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Py<PyAny>> {
        Filter::read_file(py, path, max_bytes, key, |file| java(file, int_bytes.0).map(Any::Guava))
    }
}

impl SparkBloomFilter {
    fn filter<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a SparkBloom> {
        match &*slf.as_super().get().any {
            Any::Spark(foreign) => Ok(&foreign.filter),
            _ => Err(PyTypeError::new_err("no filter of Spark")),
        }
    }
}

#[pymethods]
impl SparkBloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.03, *, version=Number(2), seed=Number(0), key=None), text_signature = "(expected, rate=0.03, *, version=2, seed=0, key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        version: Number<u32>,
        seed: Number<i32>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let version = match version.0 {
            1 => Version::V1,
            2 => Version::V2,
            other => return Err(PyValueError::new_err(format!("version={other}: 1 or 2"))),
        };
        let builder = SparkBloom::builder().expected_keys(expected.0);
        let builder = builder.false_positive_rate(rate).version(version).seed(seed.0);
        let filter = builder.build();
        parts(
            filter.map(|filter| Any::Spark(Foreign { filter, int_bytes: 8 })),
            key,
            Self,
        )
    }

    /// The version of Spark's format, 1 or 2.
    #[getter]
    fn version(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(match Self::filter(slf)?.version() {
            Version::V1 => 1,
            Version::V2 => 2,
        })
    }

    /// The seed of the hash; 0 for version 1, which has none.
    #[getter]
    fn seed(slf: &Bound<'_, Self>) -> PyResult<i32> {
        Ok(Self::filter(slf)?.seed())
    }

    /// The filter that writeTo of Java or to_bytes wrote.
    #[staticmethod]
    #[pyo3(signature = (data, /, *, key=None))]
    fn from_bytes(data: &Bound<'_, PyAny>, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        Filter::read_data(data, key, |bytes| java(bytes, 8).map(Any::Spark))
    }

    /// Read a file that Java or save() wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, key=None, max_bytes=None))]
    fn load(
        py: Python<'_>,
        path: FilePath,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Py<PyAny>> {
        Filter::read_file(py, path, max_bytes, key, |file| java(file, 8).map(Any::Spark))
    }
}

#[pymethods]
impl SplitBlockBloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, int_bytes=IntBytes(8), key=None), text_signature = "(expected, rate=0.01, *, int_bytes=8, key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: f64,
        int_bytes: IntBytes,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (filter, int_bytes) = (SplitBlockBloom::with_parquet_rate(expected.0, rate), int_bytes.0);
        parts(
            filter.map(|filter| Any::SplitBlock(Foreign { filter, int_bytes })),
            key,
            Self,
        )
    }

    /// The filter in a Parquet file's bytes, header and bits: as many bytes from
    /// bloom_filter_offset on as the column chunk's bloom_filter_length says.
    ///
    /// Where a file does not say the length, say prefix=True: the bytes may go on after the filter.
    ///
    /// >>> f = SplitBlockBloomFilter(1000)
    /// >>> f == SplitBlockBloomFilter.from_bytes(f.to_bytes() + b"more", prefix=True)
    /// True
    #[staticmethod]
    #[pyo3(signature = (data, /, *, int_bytes=IntBytes(8), key=None, prefix=false), text_signature = "(data, /, *, int_bytes=8, key=None, prefix=False)")]
    fn from_bytes(
        data: &Bound<'_, PyAny>,
        int_bytes: IntBytes,
        key: Option<Py<PyAny>>,
        prefix: bool,
    ) -> PyResult<Py<PyAny>> {
        Filter::read_data(data, key, |bytes| split_block(bytes, int_bytes.0, prefix))
    }

    /// Read a file that save() wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, int_bytes=IntBytes(8), key=None, max_bytes=None), text_signature = "(path, /, *, int_bytes=8, key=None, max_bytes=None)")]
    fn load(
        py: Python<'_>,
        path: FilePath,
        int_bytes: IntBytes,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Py<PyAny>> {
        Filter::read_file(py, path, max_bytes, key, |file| split_block(file, int_bytes.0, false))
    }

    /// The filter in bits without a header: blocks of 32 bytes, as Lance's index has them.
    ///
    /// >>> full = SplitBlockBloomFilter.from_bits(bytes([255] * 32))
    /// >>> "ann" in full, "ann" in SplitBlockBloomFilter.from_bits(bytes(64))
    /// (True, False)
    #[staticmethod]
    #[pyo3(signature = (data, /, *, int_bytes=IntBytes(8), key=None), text_signature = "(data, /, *, int_bytes=8, key=None)")]
    fn from_bits(data: &Bound<'_, PyAny>, int_bytes: IntBytes, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        Filter::read_data(data, key, |input| {
            let Input::Bytes(bytes) = input else {
                unreachable!("of an object")
            };
            let filter = SplitBlockBloom::from_bitset(bytes).map_err(unreadable)?;
            let int_bytes = int_bytes.0;
            Ok(Any::SplitBlock(Foreign { filter, int_bytes }))
        })
    }

    /// The filter of a column's chunk in a Parquet file; None where the chunk has none.
    ///
    /// path:      of a local file.
    /// column:    its name; of a list "name.list.element", of a struct "name.field".
    /// row_group: the number of the row group, from 0 on.
    ///
    /// The filter knows the column's type. Keys are the values that Python has for it: int, float,
    /// bool, str, bytes, Decimal, date, time, datetime, UUID, and those of numpy and Arrow. What
    /// the column cannot hold is an error that says so: a TypeError for another type, a ValueError
    /// for a value. A time without a zone counts as UTC. 0.0 and -0.0 are one key. Arrays are taken
    /// value by value.
    ///
    /// For files that are not local: from_bytes, with key= for the values of the column.
    #[staticmethod]
    fn from_parquet(
        py: Python<'_>,
        path: FilePath,
        column: &str,
        #[pyo3(from_py_with = arguments::row_group)] row_group: Number<usize>,
    ) -> PyResult<Py<PyAny>> {
        let read = || {
            let (mut file, of, chunks) = parquet::column(&path.0, column)?;
            let chunk = chunks.get(row_group.0).ok_or_else(|| {
                PyValueError::new_err(format!("row group {} of a file that has {}", row_group.0, chunks.len()))
            })?;
            Ok::<_, PyErr>((parquet::filter_bytes(&path.0, &mut file, chunk)?, of))
        };
        let (Some(bytes), of) = py.detach(read)? else {
            return Ok(py.None());
        };
        let filter = split_block(Input::Bytes(&bytes), 8, false)?;
        let filter = Filter::new(filter, None).into_object(py)?;
        let key = key_of(py, column, &of)?;
        let typed = py.import("lanebloom._parquet")?.getattr("typed")?;
        Ok(typed.call1((filter, key))?.unbind())
    }

    /// Add 0.0 and -0.0 if one of them may be in the filter, as FLOAT16, FLOAT and DOUBLE.
    ///
    /// Returns whether the filter changed. A writer of a column of floats calls it after its
    /// values: DataFusion, Spark and hyparquet ask for one of the two zeros only, and lose the rows
    /// of the other.
    ///
    /// >>> import numpy as np
    /// >>> f = SplitBlockBloomFilter(1000)
    /// >>> f.add_many(np.array([1.5, -0.0], "f4")), np.float32(0.0) in f
    /// (2, False)
    /// >>> f.add_both_zeros(), np.float32(0.0) in f
    /// (True, True)
    fn add_both_zeros(slf: &Bound<'_, Self>) -> bool {
        match &*slf.as_super().get().any {
            Any::SplitBlock(foreign) => foreign.insert_both_zeros(),
            _ => false,
        }
    }

    /// The numbers of the row groups in a Parquet file that may have one of the values.
    ///
    /// path, column: as in from_parquet.
    /// values: a list, or an array or a column of numpy, Arrow, pandas, polars or DuckDB, of what
    ///         the column holds: other values are errors, as in from_parquet. A null is in no row
    ///         group.
    ///
    /// A row group without a filter may have any value, and a NaN may be in any row group. The call
    /// reads 32 bytes of each filter for each value, or the whole filter if that is less.
    ///
    /// For readers that use no filters: pyarrow, polars, fastparquet.
    #[staticmethod]
    fn row_groups(py: Python<'_>, path: FilePath, column: &str, values: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let (mut file, of, chunks) = py.detach(|| parquet::column(&path.0, column))?;
        let key = key_of(py, column, &of)?;
        let asked = py
            .import("lanebloom._parquet")?
            .getattr("asked")?
            .call1((key, values))?;
        let Some(asked) = asked.extract::<Option<Vec<PyBackedBytes>>>()? else {
            return Ok((0..chunks.len()).collect());
        };
        let hashes: Vec<u64> = asked.iter().map(|bytes| hash::<[u8]>(bytes)).collect();
        py.detach(|| parquet::row_groups(&path.0, &mut file, &of, &chunks, &hashes))
    }
}

/// The function of Python that makes keys of a column's values.
fn key_of<'py>(py: Python<'py>, column: &str, of: &ColumnType) -> PyResult<Bound<'py, PyAny>> {
    let numbers = [
        of.physical,
        of.length,
        of.logical,
        of.converted,
        of.scale,
        of.precision,
        of.unit,
        of.bits,
    ];
    let key = py.import("lanebloom._parquet")?.getattr("Key")?;
    key.call1((column, numbers, of.is_signed))
}
