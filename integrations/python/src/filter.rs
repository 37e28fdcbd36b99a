//! The classes: [`Filter`], which has what all share. `classes.rs` has the methods of the others.

mod classes;

use crate::any::{Any, Input, each, hasher_note, secret_of};
use crate::arguments::{self, FilePath, Number, SecretKey, of_file, open};
use crate::arrow::ArrowAnswers;
use crate::engine::Engine;
use crate::ffi::{Buffer, OneArgument};
use crate::numpy;
use crate::source::{keyed, many};
use crate::task::{Task, hash_object, quick_hash};
use lanebloom::AnyFilter;
use lanebloom::codec::replace_file;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyTuple, PyType};
use std::io::BufReader;
use std::sync::Arc;

/// The base of all filters: a set of keys that says "certainly not" or "probably".
///
/// Make one by a class such as BloomFilter, or by Filter.load(path) and Filter.from_bytes(data),
/// which return the class that was saved.
#[pyclass(subclass, frozen, module = "lanebloom")]
pub(crate) struct Filter {
    any: Arc<Any>,
    /// Makes a key of an object.
    key: Option<Py<PyAny>>,
}

/// A Bloom filter for a number of keys that is known in advance.
///
/// expected: the number of keys. Beyond it the rate of false positives rises.
/// rate:     the share of absent keys that are taken for present.
/// secret:   True for keys that strangers choose. The filter's secret is needed to load it again.
/// hasher:   "murmur3", which every language has; "fast", in half the time; or "prehashed": keys
///           are hashes of yours, integers from -2**63 to 2**64 - 1, and all 64 bits must vary.
/// key:      a function that makes a key of an object, for objects of other types. For a frame or a
///           table it is given the tuple of each row, or the value if there is one column.
///
/// Keys are int, str, bytes, float, Decimal, bool, None, tuple, UUID, datetime, date, IP addresses
/// and numpy's scalars. A key counts by its content: 1, 1.0 and True are one key, as in a set, and
/// a str and its UTF-8 are one too. None, NaN and every null of an array or a frame are one key.
///
/// >>> from lanebloom import BloomFilter
/// >>> seen = BloomFilter(1_000_000, 0.001)
/// >>> seen.add("https://example.org/")
/// True
/// >>> seen.add("https://example.org/")
/// False
/// >>> "https://example.org/" in seen
/// True
/// >>> hashes = BloomFilter(1000, hasher="prehashed")
/// >>> hashes.add(0x9E3779B97F4A7C15), hashes.hasher
/// (True, 'prehashed')
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct BloomFilter;

/// A Bloom filter that grows: for a number of keys that is not known.
///
/// It keeps its rate for any number of keys, and takes more memory than a BloomFilter. A key for
/// which it would have to grow beyond max_bytes is a ValueError.
///
/// >>> f = ScalableBloomFilter(10)
/// >>> f.add_many(range(1000)) > 980
/// True
/// >>> 999 in f
/// True
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct ScalableBloomFilter;

/// A Bloom filter that forgets.
///
/// expected: the number of keys in a window.
/// window:   a timedelta or seconds. A key is known for at least so long after it was added, and
///           a third longer at most with 4 generations. Without a window, the filter forgets the
///           oldest keys when it is full.
///
/// >>> from datetime import timedelta
/// >>> recent = WindowedBloomFilter(1000, window=timedelta(minutes=10))
/// >>> recent.add("job 1"), recent.add("job 1")
/// (True, False)
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct WindowedBloomFilter;

/// A filter from which keys can be removed.
///
/// A key that is added twice is in it twice. A key that finds no room is a ValueError. Remove only
/// keys that were added: else another key may vanish.
///
/// >>> f = CuckooFilter(1000)
/// >>> f.update(["a", "a", "b"])
/// >>> f.count("a"), len(f)
/// (2, 3)
/// >>> f.remove("b")
/// >>> "b" in f
/// False
#[pyclass(extends = Filter, frozen, module = "lanebloom", name = "CuckooFilter")]
pub(crate) struct Cuckoo;

/// A filter that does not change, made of all its keys at once: in three quarters of the memory.
///
/// From a million keys on it takes 9.1 bits per key at a rate of 1/256, and 18.1 at 1/65536. It
/// takes no keys later: make a new one of all keys. The keys may come in any order, some of them
/// twice: the same keys make the same bytes.
///
/// keys:    a list or another iterable of keys, or an array, as add_many of other filters takes it.
/// rate:    the share of absent keys that are taken for present; 0.01, if bits is not given.
/// bits:    in place of a rate, the bits of each key's fingerprint, 7 to 32. Each one halves the
///          rate; 8, 16 and 32 are looked up fastest.
/// threads: that hash an array, and build. Building takes 20 bytes of memory for each key.
/// hasher:  and the others as in BloomFilter. With hasher="prehashed", a million keys whose bits
///          are not random are a ValueError.
///
/// >>> from lanebloom import StaticFilter
/// >>> blocked = StaticFilter(["ads.example", "spy.example"], 1e-4)
/// >>> "ads.example" in blocked, "docs.example" in blocked
/// (True, False)
/// >>> small = StaticFilter(range(10_000), bits=8)
/// >>> len(small), round(small.bits_per_key), round(small.rate * 256, 1)
/// (10000, 10, 1.0)
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct StaticFilter;

/// An exact set of integers from 0 to bound - 1: a bit for each.
///
/// >>> ids = Bitmap(100)
/// >>> ids.update([3, 5, 3])
/// >>> len(ids), list(ids), 4 in ids
/// (2, [3, 5], False)
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct Bitmap;

/// A BloomFilter of Guava, the Java library, bit for bit.
///
/// to_bytes and save write what writeTo of Java writes. A str is Java's stringFunnel(UTF_8), an int
/// is longFunnel, or integerFunnel with int_bytes=4.
///
/// >>> f = GuavaBloomFilter(1000)
/// >>> f.add("ann")
/// True
/// >>> "ann" in GuavaBloomFilter.from_bytes(f.to_bytes())
/// True
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct GuavaBloomFilter;

/// Spark's BloomFilter, bit for bit.
///
/// to_bytes and save write what writeTo of Java writes, and rate and size are those of
/// BloomFilter.create. Keys are integers, which all are a long in Spark, str and bytes. Others,
/// floats and times among them, are a TypeError, as in Spark. Nulls are skipped: they are not
/// added, and not found.
///
/// version: 2, which Spark 4.1 and later write and read, or 1, which every Spark reads.
/// seed:    of the hash, only for version 2.
///
/// >>> f = SparkBloomFilter(1000, 0.01)
/// >>> f.add(17), f.version
/// (True, 2)
/// >>> 17 in SparkBloomFilter.from_bytes(f.to_bytes())
/// True
// (`dict`: lanebloom.spark notes there what a filter was built of.)
#[pyclass(extends = Filter, frozen, dict, module = "lanebloom")]
pub(crate) struct SparkBloomFilter;

/// The filter of Parquet files, bit for bit: split blocks and XXH64.
///
/// to_bytes and save write the header and the bits as a Parquet file has them. Keys are hashed as
/// Parquet hashes values: an int as an INT64, or as an INT32 with int_bytes=4; a str or bytes as a
/// BYTE_ARRAY; a float as a DOUBLE, so that 1 and 1.0 are two keys here. Nulls are skipped: they
/// are not added, and not found. Values that Parquet stores in another way (times in seconds,
/// date64, float16, decimals, bool) are a TypeError. A filter that from_parquet read knows the type
/// of its column instead, and takes the column's values.
///
/// The filter has the bytes that keep the rate, raised to a power of two. The format allows 128
/// MiB: keys and a rate that need more are a ValueError.
///
/// >>> f = SplitBlockBloomFilter(1000)
/// >>> f.update([17, "ann"])
/// >>> 17 in f, "ann" in f, 17.0 in f
/// (True, True, False)
#[pyclass(extends = Filter, frozen, module = "lanebloom")]
pub(crate) struct SplitBlockBloomFilter;

impl Filter {
    pub(crate) fn new(any: Any, key: Option<Py<PyAny>>) -> Self {
        Self { any: any.into(), key }
    }

    /// The filter in memory: that of a mapped file is read.
    pub(crate) fn loaded(&self) -> PyResult<Arc<Any>> {
        match *self.any {
            Any::View(_) => self.any.copy().map(Arc::new),
            _ => Ok(Arc::clone(&self.any)),
        }
    }

    /// Calls `f` with this filter and another one, both in memory.
    fn both<R: Send>(&self, other: &Bound<'_, Self>, f: impl FnOnce(&Any, &Any) -> PyResult<R> + Send) -> PyResult<R> {
        let (py, other) = (other.py(), other.get());
        py.detach(|| f(&*self.loaded()?, &*other.loaded()?))
    }

    /// A filter like this one, of another content.
    fn with(&self, py: Python<'_>, any: Any) -> PyResult<Py<PyAny>> {
        Self::new(any, self.key.as_ref().map(|key| key.clone_ref(py))).into_object(py)
    }

    /// Makes an object of the class that fits.
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        macro_rules! object {
            ($class:ident) => {
                Ok(Py::new(py, PyClassInitializer::from(self).add_subclass($class))?.into_any())
            };
        }
        match self.any.class() {
            "BloomFilter" => object!(BloomFilter),
            "ScalableBloomFilter" => object!(ScalableBloomFilter),
            "WindowedBloomFilter" => object!(WindowedBloomFilter),
            "CuckooFilter" => object!(Cuckoo),
            "StaticFilter" => object!(StaticFilter),
            "Bitmap" => object!(Bitmap),
            "GuavaBloomFilter" => object!(GuavaBloomFilter),
            "SparkBloomFilter" => object!(SparkBloomFilter),
            _ => object!(SplitBlockBloomFilter),
        }
    }

    /// The filter that `read` reads in an object's bytes.
    pub(crate) fn read_data(
        data: &Bound<'_, PyAny>,
        key: Option<Py<PyAny>>,
        read: impl FnOnce(Input<'_>) -> PyResult<Any>,
    ) -> PyResult<Py<PyAny>> {
        let buffer = Buffer::of(data)?;
        Self::new(read(Input::Bytes(buffer.bytes()))?, key).into_object(data.py())
    }

    /// The filter that `read` reads in a file.
    fn read_file(
        py: Python<'_>,
        path: FilePath,
        max_bytes: Option<Number<usize>>,
        key: Option<Py<PyAny>>,
        read: impl FnOnce(Input<'_>) -> PyResult<Any> + Send,
    ) -> PyResult<Py<PyAny>> {
        let most = max_bytes.map_or(usize::MAX, |most| most.0);
        let any = py.detach(|| read(Input::File(&mut BufReader::new(open(&path.0)?), most)))?;
        Self::new(any, key).into_object(py)
    }

    /// Calls `f` with the object that is the key of `object`.
    #[inline(always)]
    fn keyed<R>(&self, object: &Bound<'_, PyAny>, f: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> PyResult<R> {
        keyed(self.key.as_ref(), object, f)
    }

    /// Does `task` with all keys; returns how many were added, and the answers.
    fn many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
        task: Task,
    ) -> PyResult<(usize, Bound<'py, PyByteArray>)> {
        let done = each!(&*self.any, filter => many(filter, task, keys, self.key.as_ref(), threads));
        done.map_err(|error| self.about_column(keys.py(), error))
    }

    /// For Parquet's class without a column: casts that other filters advise make other keys.
    #[cold]
    fn about_column(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let text = error.value(py).to_string();
        let kinds = [
            "an Arrow array of format",
            "a key of type",
            "decimals: ",
            "float16: ",
            "bool: ",
        ];
        let is_type = kinds.iter().any(|kind| text.starts_with(kind));
        if !is_type || self.key.is_some() || !matches!(*self.any, Any::SplitBlock(_)) {
            return error;
        }
        let what = text.split(": ").next().unwrap_or_default();
        PyTypeError::new_err(format!(
            "{what}: this filter does not know how a file stores it. SplitBlockBloomFilter.from_parquet reads a filter that \
             knows its column, and takes decimals and times. Otherwise pass what the file stores: of a decimal the unscaled \
             integer or its bytes, of a float16 its two bytes: values.view('V2'), of a bool one byte: bytes([value])"
        ))
    }

    fn other<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Self>> {
        if let Ok(filter) = object.cast::<Self>() {
            return Ok(filter);
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "{name} is not a filter; update() takes any iterable"
        )))
    }
}

/// The largest filter of which `repr` reads the bits, which a debugger calls at each step: 1 MiB
/// takes some 50 µs.
const REPR_READS: usize = 1 << 20;

/// Answers as a bitmap of Arrow's; or as an array.
fn flags(bytes: Bound<'_, PyByteArray>, as_arrow: bool) -> PyResult<Bound<'_, PyAny>> {
    if as_arrow {
        return Ok(Bound::new(bytes.py(), ArrowAnswers::new(&bytes.to_vec()))?.into_any());
    }
    numpy::answers(bytes, "?")
}

impl Filter {
    /// Every key that [`quick_hash`] knows nothing of, and keys that a function makes.
    #[cold]
    #[inline(never)]
    fn add_any(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.keyed(
            key,
            |key| each!(&*self.any, filter => hash_object(filter, key)?.map_or(Ok(false), |hash| filter.insert_one(hash))),
        )
        .map_err(|error| self.about_column(key.py(), error))
    }

    #[cold]
    #[inline(never)]
    fn contains_any(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.keyed(
            key,
            |key| each!(&*self.any, filter => Ok(hash_object(filter, key)?.is_some_and(|hash| filter.contains_one(hash)))),
        )
        .map_err(|error| self.about_column(key.py(), error))
    }
}

impl OneArgument for Filter {
    #[inline(always)]
    fn call(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.key.is_none() {
            each!(&*self.any, filter => if let Some(hash) = quick_hash(filter, key) {
                return filter.insert_one(hash);
            });
        }
        self.add_any(key)
    }
}

#[pymethods]
impl Filter {
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.key.is_none() {
            each!(&*self.any, filter => if let Some(hash) = quick_hash(filter, key) {
                return Ok(filter.contains_one(hash));
            });
        }
        self.contains_any(key)
    }

    /// Add all keys of each argument: a list or another iterable of keys, an array, or a filter.
    ///
    /// A filter whose keys are too many for this one's rate is a ValueError, as with |= and |.
    ///
    /// >>> f = BloomFilter(1000)
    /// >>> f.update(["a", "b"], range(10))
    /// >>> "b" in f, 9 in f, 10 in f
    /// (True, True, False)
    #[pyo3(signature = (*others))]
    fn update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        for keys in others.iter() {
            match keys.cast::<Self>() {
                Ok(filter) => self.unite(filter)?,
                Err(_) => drop(self.many(&keys, 1, Task::Add)?),
            }
        }
        Ok(())
    }

    /// Add all keys of an array or of an iterable, and return how many were new.
    ///
    /// Arrays are those of numpy (integers, floats, bool, datetime64, S, U, V), whatever speaks
    /// Arrow's C interface (pyarrow, polars, pandas, DuckDB), and buffers such as array.array. They
    /// are read where they lie, without the interpreter's lock, by as many threads as you say.
    /// Ctrl-C ends the call between two pieces of some million keys; those before it are added.
    ///
    /// Masked values are None. numpy drops zero bytes at the end of S and U values, so keep digests
    /// in V arrays.
    ///
    /// >>> import array
    /// >>> f = BloomFilter(1000)
    /// >>> f.add_many(array.array("q", [1, 2, 1]))
    /// 2
    #[pyo3(signature = (keys, /, *, threads=Number(1)), text_signature = "($self, keys, /, *, threads=1)")]
    fn add_many(
        &self,
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
    ) -> PyResult<usize> {
        Ok(self.many(keys, threads.0, Task::Add)?.0)
    }

    /// Add all keys, and return an array that says which were new: duplicates in one call.
    ///
    /// The array is numpy's, or a memoryview of truth values where numpy is missing; with as_arrow
    /// it is a bitmap that pyarrow and polars read. A second key of the same value is not new.
    ///
    /// With one thread, the new ones are the first of each key. With several, the new one may be a
    /// later one, and two threads may take the same key for new at the same time. So where it
    /// matters which row stays, use one thread.
    ///
    /// >>> f = BloomFilter(1000)
    /// >>> [bool(new) for new in f.add_new(["a", "b", "a"])]
    /// [True, True, False]
    #[pyo3(signature = (keys, /, *, threads=Number(1), as_arrow=false), text_signature = "($self, keys, /, *, threads=1, as_arrow=False)")]
    fn add_new<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
        as_arrow: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        flags(self.many(keys, threads.0, Task::AddNew)?.1, as_arrow)
    }

    /// Look up all keys, and return an array that says which are in the filter, as add_new does.
    ///
    /// >>> f = BloomFilter(1000)
    /// >>> f.update(["a"])
    /// >>> [bool(found) for found in f.contains_many(["a", "b"])]
    /// [True, False]
    #[pyo3(signature = (keys, /, *, threads=Number(1), as_arrow=false), text_signature = "($self, keys, /, *, threads=1, as_arrow=False)")]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
        as_arrow: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        flags(self.many(keys, threads.0, Task::Contains)?.1, as_arrow)
    }

    /// The number of keys that the filter was made for.
    #[getter]
    fn expected(&self) -> usize {
        self.any.expected_keys()
    }

    /// The rate of false positives at the expected number of keys.
    #[getter]
    fn rate(&self) -> f64 {
        self.any.rate()
    }

    /// The rate of false positives now. Reads the whole filter.
    #[getter]
    fn current_rate(&self) -> f64 {
        self.any.statistics().false_positive_rate
    }

    /// An estimate of the number of keys; exact for CuckooFilter, StaticFilter and Bitmap. Reads
    /// the whole filter.
    #[getter]
    fn approx_len(&self) -> usize {
        self.any.len()
    }

    /// The memory of the filter in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.any.memory_bytes()
    }

    /// The hash function of the keys: "murmur3", "fast", "siphash" (with a secret) or "prehashed".
    /// None for Bitmap, which hashes nothing, and for the filters of other systems.
    #[getter]
    fn hasher(&self) -> Option<&'static str> {
        self.any.hasher_name()
    }

    /// The secret key, 16 bytes, of a filter made with secret=True. Keep it as you keep passwords.
    #[getter]
    fn secret<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let secret = self.any.hasher().and_then(secret_of)?;
        Some(PyBytes::new(py, &secret.key()))
    }

    /// A copy. The copy of a mapped file is a filter in memory that takes keys.
    ///
    /// >>> f = BloomFilter(1000)
    /// >>> g = f.copy()
    /// >>> g.update(["a"])
    /// >>> "a" in f, "a" in g
    /// (False, True)
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.with(py, py.detach(|| self.any.copy())?)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let other = other.get();
        let united = py.detach(|| {
            let united = self.any.copy()?;
            united.union_from(&*other.loaded()?)?;
            PyResult::Ok(united)
        });
        self.with(py, united?)
    }

    fn __ior__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.unite(Self::other(other)?)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        self.with(py, self.both(other, Any::intersection)?)
    }

    /// Whether each key of this filter may be in the other one: False is certain.
    fn issubset(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.both(Self::other(other)?, Any::is_subset)
    }

    /// Whether no key is in both filters: True is certain.
    fn isdisjoint(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.both(Self::other(other)?, Any::is_disjoint)
    }

    fn __eq__(&self, other: &Bound<'_, Self>) -> PyResult<bool> {
        self.both(other, |a, b| Ok(a.equals(b)))
    }

    fn __repr__(&self) -> String {
        let class = self.any.class();
        let (expected, bytes) = (self.any.expected_keys(), self.any.memory_bytes());
        let hasher = hasher_note(self.any.hasher_name());
        let mut text = match &*self.any {
            Any::Bitmap(_) => format!("<{class} of {expected}: "),
            Any::Own(AnyFilter::Static(_)) => {
                let (len, rate) = (self.any.len(), self.any.rate());
                return format!("<{class} of {len} at {rate:.2e}: {bytes} bytes{hasher}>");
            }
            _ => format!("<{class} for {expected} at {:.2e}: ", self.any.rate()),
        };
        if bytes <= REPR_READS {
            let statistics = self.any.statistics();
            text += &if self.any.is_bitmap() {
                format!("{} set, ", statistics.len)
            } else {
                format!(
                    "about {} keys, {:.1}% full, rate now {:.2e}, ",
                    statistics.len,
                    100.0 * statistics.fill_ratio,
                    statistics.false_positive_rate,
                )
            };
        }
        let view = if matches!(*self.any, Any::View(_)) {
            ", read-only file"
        } else {
            ""
        };
        text + &format!("{bytes} bytes{hasher}{view}>")
    }

    /// The filter as bytes: for filters of lanebloom those of the Rust crate and of its command,
    /// for the others those of their systems. They do not hold a secret.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.any.to_bytes())?))
    }

    /// The filter that to_bytes made. Bytes that are not a filter are a ValueError.
    #[classmethod]
    #[pyo3(signature = (data, /, *, secret=None, key=None))]
    fn from_bytes(
        cls: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        secret: Option<SecretKey>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let read = |bytes: Input<'_>| Any::read(bytes, secret.map(|key| key.0));
        Self::of_class(cls, Self::read_data(data, key, read)?)
    }

    /// Write the filter to a file, in place of the old one: a reader gets all of the old file or
    /// all of the new one, even if the machine crashes. A device or a pipe is an OSError.
    fn save(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        py.detach(|| replace_file(&path.0, |file| self.any.write_to(file)).map_err(|error| of_file(&path.0, error)))
    }

    /// Read a filter that save() wrote, or the Rust crate, or its command. A filter that takes more
    /// than max_bytes of memory is a ValueError.
    #[classmethod]
    #[pyo3(signature = (path, /, *, secret=None, key=None, max_bytes=None))]
    fn load(
        cls: &Bound<'_, PyType>,
        path: FilePath,
        secret: Option<SecretKey>,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Py<PyAny>> {
        let read = |file: Input<'_>| Any::read(file, secret.map(|key| key.0));
        Self::of_class(cls, Self::read_file(cls.py(), path, max_bytes, key, read)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("lanebloom")?.getattr("_restore")?;
        let int_bytes = match &*self.any {
            Any::Guava(foreign) => foreign.int_bytes,
            Any::SplitBlock(foreign) => foreign.int_bytes,
            _ => 8,
        };
        let state = (
            self.any.class(),
            self.to_bytes(py)?,
            self.secret(py),
            self.key.as_ref().map(|key| key.clone_ref(py)),
            int_bytes,
        );
        (restore, state).into_pyobject(py)
    }

    /// A function that refers to its own filter is garbage with it.
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(self.key.as_ref())
    }
}

impl Filter {
    /// Adds all keys of another filter.
    fn unite(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        let (py, other) = (other.py(), other.get());
        py.detach(|| self.any.union_from(&*other.loaded()?))
    }

    /// The object, which must be of `class`.
    fn of_class(class: &Bound<'_, PyType>, object: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let filter = object.bind(class.py());
        if filter.is_instance(class)? {
            return Ok(object);
        }
        let (found, wanted) = (filter.get_type().name()?, class.name()?);
        Err(PyValueError::new_err(format!("a {found}, not a {wanted}")))
    }
}
