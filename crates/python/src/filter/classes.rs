//! The methods of each class: its constructor, and what it alone can do.

use super::{
    Bitmap, BloomFilter, Cuckoo, Filter, GuavaBloomFilter, ScalableBloomFilter, SparkBloomFilter,
    SplitBlockBloomFilter, StaticFilter, WindowedBloomFilter,
};
use crate::any::{Any, check_int_bytes, guava, hasher_of, incompatible, read_limit, spark, split_block, unreadable};
use crate::arguments::{self, FilePath, JavaInt, Number, Secret, SecretKey, Span, open, open_regular};
use crate::engine::{Foreign, build_error};
use crate::ffi::Buffer;
use crate::source::hashes;
use crate::task::{BULK, hash_object, pool};
use lanebloom::codec::SnapshotHeader;
use lanebloom::hash::AnyHasher;
use lanebloom::{
    AnyFilter, BloomView, ConcurrentBitmap, ConcurrentBloom, CuckooFilter, ScalableBloom, WindowedBloom, fuse,
};
use lanebloom_formats::spark::Version;
use lanebloom_formats::{GuavaBloom, SparkBloom, SplitBlockBloom};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::io::{BufReader, Read};

/// The two parts of a new object.
fn parts<C: pyo3::PyClass<BaseType = Filter>>(any: Any, key: Option<Py<PyAny>>, class: C) -> PyClassInitializer<C> {
    PyClassInitializer::from(Filter::new(any, key)).add_subclass(class)
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = ConcurrentBloom::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate);
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        Ok(parts(
            Any::own(AnyFilter::Bloom(filter.map_err(build_error)?)),
            key,
            Self,
        ))
    }

    /// A read-only filter in a file that save() wrote: it is not read but mapped, so that processes
    /// share its memory and a lookup reads what it needs.
    ///
    /// Nobody may write to the file or shorten it while it is mapped: a lookup would end the
    /// process. save() replaces the file, which is safe: the view keeps the old one.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, secret=None, key=None))]
    fn mmap(py: Python<'_>, path: FilePath, secret: Option<SecretKey>, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let mut file = open_regular(&path.0)?;
        let mut head = Vec::new();
        file.by_ref().take(SnapshotHeader::LEN as u64).read_to_end(&mut head)?;
        let header = SnapshotHeader::peek(&head).map_err(unreadable)?;
        let hasher = hasher_of(&header, secret.map(|key| key.0))?;
        // Only a bitmap has no hasher, and a bitmap cannot be a view.
        let hasher = hasher.unwrap_or(AnyHasher::Prehashed);
        // SAFETY: the caller's promise, as documented.
        let any = unsafe { BloomView::map_with(&file, hasher).map(|view| Any::View(Box::new(view))) };
        let any = any.map_err(unreadable)?;
        Filter::new(any, key).into_object(py)
    }

    /// An estimate of the number of keys in both filters.
    fn approx_intersection_len(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<usize> {
        let [a, b] = slf
            .as_super()
            .get()
            .any
            .blooms(&other.as_super().get().any)
            .ok_or_else(|| {
                PyTypeError::new_err(
                    "the estimate takes two filters in memory with one hasher, both with a secret or both without one",
                )
            })?;
        a.estimated_intersection_len(b).map_err(incompatible)
    }
}

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (expected=Number(10_000), rate=0.01, *, max_bytes=None, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected=10_000, rate=0.01, *, max_bytes=None, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        max_bytes: Option<Number<usize>>,
        seed: Number<u32>,
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
        Ok(parts(
            Any::own(AnyFilter::Scalable(filter.map_err(build_error)?)),
            key,
            Self,
        ))
    }
}

#[pymethods]
impl WindowedBloomFilter {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
    #[pyo3(signature = (expected, rate=0.01, *, window=None, generations=Number(4), seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, window=None, generations=4, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        window: Option<Span>,
        generations: Number<usize>,
        seed: Number<u32>,
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
        Ok(parts(
            Any::own(AnyFilter::Windowed(filter.map_err(build_error)?)),
            key,
            Self,
        ))
    }

    /// Forget the oldest generation of keys now.
    fn rotate(slf: &Bound<'_, Self>) {
        if let Any::Own(filter) = &slf.as_super().get().any {
            if let AnyFilter::Windowed(filter) = &**filter {
                filter.rotate();
            }
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
            let Any::Own(own) = &this.any else {
                return Ok(R::default());
            };
            let AnyFilter::Cuckoo(filter) = &**own else {
                return Ok(R::default());
            };
            Ok(hash_object(&**own, key)?.map_or_else(R::default, |hash| f(filter, hash)))
        })
    }
}

#[pymethods]
impl Cuckoo {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(expected, rate=0.01, *, seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = CuckooFilter::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate);
        let filter = builder.hasher(arguments::hasher(hasher, seed, secret)?).build();
        Ok(parts(
            Any::own(AnyFilter::Cuckoo(filter.map_err(build_error)?)),
            key,
            Self,
        ))
    }

    /// Remove a key, or one of its copies; returns whether it was there.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::by_hash(slf, key, |filter, hash| filter.remove_hash(hash))
    }

    /// Remove a key, or one of its copies; a KeyError if it is not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if Self::discard(slf, key)? {
            Ok(())
        } else {
            Err(PyKeyError::new_err(key.clone().unbind()))
        }
    }

    /// How often a key was added and not removed; more at the rate of false positives.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        Self::by_hash(slf, key, |filter, hash| filter.count_hash(hash))
    }

    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().any.len() as usize
    }
}

impl StaticFilter {
    fn filter<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a lanebloom::StaticFilter<AnyHasher>> {
        if let Any::Own(filter) = &slf.as_super().get().any {
            if let AnyFilter::Static(filter) = &**filter {
                return Ok(filter);
            }
        }
        Err(PyTypeError::new_err("no StaticFilter"))
    }
}

/// Builds a filter of these hashes by up to `threads` threads.
fn build(
    builder: fuse::Builder<AnyHasher>,
    hashes: &[u64],
    threads: usize,
) -> PyResult<lanebloom::StaticFilter<AnyHasher>> {
    let filter = if threads > 1 && hashes.len() >= BULK {
        pool(threads)?.install(|| builder.par_build_from_hashes(hashes))
    } else {
        builder.build_from_hashes(hashes)
    };
    filter.map_err(build_error)
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
        threads: Number<usize>,
        seed: Number<u32>,
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
        // What is wrong with them is known before all keys are hashed.
        builder.clone().build_from_hashes(&[]).map_err(build_error)?;
        let hashes = hashes(hasher, key.as_ref(), keys, threads.0)?;
        let filter = keys.py().detach(|| build(builder, &hashes, threads.0))?;
        Ok(parts(Any::own(AnyFilter::Static(filter)), key, Self))
    }

    /// The bits of each key's fingerprint.
    #[getter]
    fn bits(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::filter(slf)?.fingerprint_bits())
    }

    /// The bits of memory for each key.
    #[getter]
    fn bits_per_key(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Ok(Self::filter(slf)?.bits_per_key())
    }

    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().any.len() as usize
    }
}

impl Bitmap {
    fn bits<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a ConcurrentBitmap> {
        match &slf.as_super().get().any {
            Any::Bitmap(bitmap) => Ok(bitmap),
            _ => Err(PyTypeError::new_err("no bitmap")),
        }
    }
}

#[pymethods]
impl Bitmap {
    #[new]
    #[pyo3(signature = (bound, *, key=None))]
    fn new(bound: Number<u64>, key: Option<Py<PyAny>>) -> PyResult<PyClassInitializer<Self>> {
        Ok(parts(
            Any::Bitmap(ConcurrentBitmap::new(bound.0).map_err(build_error)?),
            key,
            Self,
        ))
    }

    /// Remove an integer; returns whether it was there.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bits = Self::bits(slf)?;
        slf.as_super().get().keyed(key, |key| {
            Ok(hash_object(bits, key)?.is_some_and(|hash| bits.remove(hash)))
        })
    }

    /// Remove an integer; a KeyError if it is not there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if Self::discard(slf, key)? {
            Ok(())
        } else {
            Err(PyKeyError::new_err(key.clone().unbind()))
        }
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
    #[pyo3(signature = (expected, rate=0.03, *, int_bytes=Number(8), key=None), text_signature = "(expected, rate=0.03, *, int_bytes=8, key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let filter = GuavaBloom::with_capacity(expected.0, rate).map_err(build_error)?;
        let int_bytes = check_int_bytes(int_bytes.0)?;
        Ok(parts(Any::Guava(Foreign { filter, int_bytes }), key, Self))
    }

    /// The filter that writeTo of Java or to_bytes wrote.
    #[staticmethod]
    #[pyo3(signature = (data, /, *, int_bytes=Number(8), key=None), text_signature = "(data, /, *, int_bytes=8, key=None)")]
    fn from_bytes(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let buffer = Buffer::of(data)?;
        Filter::new(guava(buffer.bytes(), int_bytes.0, read_limit(buffer.bytes()))?, key).into_object(py)
    }

    /// Read a file that Java or save() wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, int_bytes=Number(8), key=None, max_bytes=None), text_signature = "(path, /, *, int_bytes=8, key=None, max_bytes=None)")]
    fn load(
        py: Python<'_>,
        path: FilePath,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Py<PyAny>> {
        let any = py.detach(|| {
            guava(
                BufReader::new(open(&path.0)?),
                int_bytes.0,
                max_bytes.map_or(usize::MAX, |most| most.0),
            )
        })?;
        Filter::new(any, key).into_object(py)
    }
}

impl SparkBloomFilter {
    fn filter<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a SparkBloom> {
        match &slf.as_super().get().any {
            Any::Spark(foreign) => Ok(&foreign.filter),
            _ => Err(PyTypeError::new_err("no filter of Spark")),
        }
    }
}

#[pymethods]
impl SparkBloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.03, *, version=Number(2), seed=JavaInt(0), key=None), text_signature = "(expected, rate=0.03, *, version=2, seed=0, key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        version: Number<u32>,
        seed: JavaInt,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let version = match version.0 {
            1 => Version::V1,
            2 => Version::V2,
            other => return Err(PyValueError::new_err(format!("version={other}: 1 or 2"))),
        };
        let builder = SparkBloom::builder().expected_keys(expected.0);
        let builder = builder.false_positive_rate(rate).version(version).seed(seed.0);
        let filter = builder.build().map_err(build_error)?;
        Ok(parts(Any::Spark(Foreign { filter, int_bytes: 8 }), key, Self))
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
    fn from_bytes(py: Python<'_>, data: &Bound<'_, PyAny>, key: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let buffer = Buffer::of(data)?;
        Filter::new(spark(buffer.bytes(), read_limit(buffer.bytes()))?, key).into_object(py)
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
        let limit = max_bytes.map_or(usize::MAX, |most| most.0);
        let any = py.detach(|| spark(BufReader::new(open(&path.0)?), limit))?;
        Filter::new(any, key).into_object(py)
    }
}

#[pymethods]
impl SplitBlockBloomFilter {
    #[new]
    #[pyo3(signature = (expected, rate=0.01, *, int_bytes=Number(8), key=None), text_signature = "(expected, rate=0.01, *, int_bytes=8, key=None)")]
    fn new(
        expected: Number<usize>,
        rate: f64,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let filter = SplitBlockBloom::with_parquet_rate(expected.0, rate).map_err(build_error)?;
        let int_bytes = check_int_bytes(int_bytes.0)?;
        Ok(parts(Any::SplitBlock(Foreign { filter, int_bytes }), key, Self))
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
    #[pyo3(signature = (data, /, *, int_bytes=Number(8), key=None, prefix=false), text_signature = "(data, /, *, int_bytes=8, key=None, prefix=False)")]
    fn from_bytes(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
        prefix: bool,
    ) -> PyResult<Py<PyAny>> {
        Filter::new(split_block(Buffer::of(data)?.bytes(), int_bytes.0, prefix)?, key).into_object(py)
    }

    /// Read a file that save() wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, int_bytes=Number(8), key=None, max_bytes=None), text_signature = "(path, /, *, int_bytes=8, key=None, max_bytes=None)")]
    fn load(
        py: Python<'_>,
        path: FilePath,
        int_bytes: Number<usize>,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<u64>>,
    ) -> PyResult<Py<PyAny>> {
        let any = py.detach(|| {
            let limit = max_bytes.map_or(u64::MAX, |most| most.0);
            let mut bytes = Vec::new();
            open(&path.0)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > limit {
                return Err(PyValueError::new_err(format!(
                    "the file has more than max_bytes={limit}"
                )));
            }
            split_block(&bytes, int_bytes.0, false)
        })?;
        Filter::new(any, key).into_object(py)
    }
}
