//! `FilterBank`: many Bloom filters, asked with one key at once.

use crate::any::{Any, hasher_name, hasher_note, hasher_of, peek, secret_of, unreadable};
use crate::arguments::{self, FilePath, Number, Secret, SecretKey, Strings, check_threads, hasher, of_file, open};
use crate::engine::build_error;
use crate::ffi::Buffer;
use crate::filter::Filter;
use crate::numpy;
use crate::source::{hash, hashes};
use crate::task::in_threads;
use lanebloom::bank::{BankError, columns};
use lanebloom::codec::{self, Kind, replace_file};
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, ConcurrentBloom, Hashed};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyTuple};
use std::io::{BufReader, Read, Write};
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Hashes of a call between two looks at signals, for each of its threads: 10 to 400 ms.
const PIECE: usize = 1 << 18;

/// The fewest hashes for which one more thread is made: a quarter of a millisecond, and more.
const LEAST: usize = 1 << 12;

/// Hashes that are looked up or inserted before another thread may have the bank alone.
const CHUNK: usize = 1 << 10;

type Bank = lanebloom::bank::FilterBank<AnyHasher>;

/// Many Bloom filters of one size, asked with one key at once: which of them may have it?
///
/// Each filter is a column: of a file, a segment, a tenant or a day. 1,024 filters of 100,000 keys
/// answer in the time of five to eight. The memory is the sum of the filters.
///
/// columns:  the number of filters, rounded up to a multiple of 64.
/// expected: the number of keys in each filter.
/// rate:     the share of absent keys that a filter takes for present; 0.01, if false_columns is
///           not given. With 1,024 columns, a key would then be found in 10 wrong ones.
/// false_columns: in place of a rate, the number of wrong columns for each key, such as 0.1.
/// names:    of the first columns, in files too, as `lanebloom build --bank` writes them.
/// hasher:   and secret, seed and key as in BloomFilter.
///
/// >>> from lanebloom import BloomFilter, FilterBank
/// >>> bank = FilterBank(1000, 10_000, false_columns=0.1)
/// >>> bank.add(3, "ann"), bank.add(900, "ann"), bank.add(3, "bob")
/// (True, True, True)
/// >>> bank.which("ann"), bank.which("bob"), bank.which("eve")
/// ([3, 900], [3], [])
/// >>> bank.columns, len(bank)
/// (1024, 2)
#[pyclass(frozen, module = "lanebloom")]
pub(crate) struct FilterBank {
    /// Calls share it, except for those that need it alone. A thread that has it runs no Python
    /// code, and waits for no other lock than that of a second bank.
    bank: RwLock<Bank>,
    hasher: AnyHasher,
    /// The names of the first columns.
    names: Vec<String>,
    /// Makes a key of an object.
    key: Option<Py<PyAny>>,
}

const _: () = assert!(
    align_of::<FilterBank>() <= 8,
    "Python aligns objects to 16 bytes at most"
);

fn refused(error: BankError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A filter to copy into a bank: that of a mapped file is read.
fn loaded(object: &Bound<'_, PyAny>) -> PyResult<Arc<Any>> {
    if let Ok(filter) = object.cast::<Filter>() {
        let filter = filter.get();
        let any = object.py().detach(|| filter.loaded())?;
        if let Any::Own(AnyFilter::Bloom(_)) = &*any {
            return Ok(any);
        }
    }
    let name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a bank takes a BloomFilter, not a {name}"
    )))
}

fn bloom(any: &Any) -> &ConcurrentBloom<AnyHasher> {
    match any {
        Any::Own(AnyFilter::Bloom(filter)) => filter,
        _ => unreachable!("see loaded"),
    }
}

/// Calls `f` with parts of the hashes and where they begin, by up to `threads` threads; returns the
/// results in order.
fn by_threads<R: Send>(hashes: &[u64], threads: usize, f: impl Fn(usize, &[u64]) -> R + Sync) -> Vec<R> {
    let workers = threads.min(hashes.len() / LEAST).max(1);
    let (f, part) = (&f, hashes.len().div_ceil(workers).max(1));
    let parts = hashes.chunks(part).enumerate();
    let parts = parts.map(|(i, hashes)| move || f(i * part, hashes));
    if workers == 1 {
        return parts.map(|run| run()).collect();
    }
    in_threads(parts)
}

/// The integers of all parts as an array.
fn numbers<'py>(py: Python<'py>, parts: &[Vec<i64>]) -> PyResult<Bound<'py, PyAny>> {
    let len: usize = parts.iter().map(Vec::len).sum();
    let bytes = PyByteArray::new_with(py, 8 * len, |out| {
        for (out, value) in out.chunks_exact_mut(8).zip(parts.iter().flatten()) {
            out.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })?;
    numpy::answers(bytes, "q")
}

/// The names after a bank: none, or those of its columns as a line of JSON.
fn names_of(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Vec<String>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let bad = || PyValueError::new_err("the bytes after the bank are not the names of its columns, a list of JSON");
    let text = String::from_utf8(bytes).map_err(|_| bad())?;
    let names = py.import("json")?.call_method1("loads", (text,));
    names
        .and_then(|names| names.extract::<Vec<String>>())
        .map_err(|_| bad())
}

impl FilterBank {
    fn of(bank: Bank, names: Vec<String>, key: Option<Py<PyAny>>) -> PyResult<Self> {
        if names.len() > bank.columns() {
            return Err(PyValueError::new_err(format!(
                "{} names are too many for {} columns",
                names.len(),
                bank.columns()
            )));
        }
        Ok(Self {
            hasher: *bank.hasher(),
            bank: RwLock::new(bank),
            names,
            key,
        })
    }

    fn shared(&self) -> RwLockReadGuard<'_, Bank> {
        self.bank.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Bank> {
        self.bank.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f`, which takes little time, beside other calls. Leaves the interpreter to other
    /// threads if one of them has the bank alone.
    fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&Bank) -> R + Send) -> R {
        match self.bank.try_read() {
            Ok(bank) => f(&bank),
            Err(_) => py.detach(|| f(&self.shared())),
        }
    }

    /// Fails if the bank lacks the column.
    fn check(&self, py: Python<'_>, column: usize) -> PyResult<()> {
        self.with(py, |bank| bank.insert_batch(column, Hashed::slice(&[])))
            .map(drop)
            .map_err(refused)
    }

    fn hash(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        hash(self.hasher, self.key.as_ref(), key)
    }

    /// Reads a snapshot and the names after it: what takes more than `max_bytes` of memory is an
    /// error.
    fn read(reader: impl Read, secret: Option<SecretKey>, max_bytes: usize) -> PyResult<(Bank, Vec<u8>)> {
        let (header, mut reader) = peek(reader)?;
        if header.kind != Kind::Bank {
            let kind = header.kind;
            return Err(PyValueError::new_err(format!(
                "a snapshot of kind {kind}, not a FilterBank: Filter.load and Filter.from_bytes read filters"
            )));
        }
        let hasher = hasher_of(&header, secret.map(|key| key.0))?;
        let bank = codec::read_from::<Bank>(&mut reader, max_bytes, hasher).map_err(unreadable)?;
        let (mut names, limit) = (Vec::new(), max_bytes as u64);
        reader.take(limit.saturating_add(1)).read_to_end(&mut names)?;
        if names.len() as u64 > limit {
            return Err(PyValueError::new_err(format!(
                "the names of the columns have more bytes than the limit, {limit}"
            )));
        }
        Ok((bank, names))
    }

    /// The advice of an error of [`push`](Self::push).
    fn unfit(&self, py: Python<'_>, error: &BankError) -> PyErr {
        let mut text = error.to_string();
        if error.is_incompatible() {
            text += &format!(
                ". Make it with the bank's arguments, for {} keys. (to_filter() of a column that is not in use is an empty \
                 one that fits)",
                self.expected(py)
            );
        }
        PyValueError::new_err(text)
    }
}

#[pymethods]
impl FilterBank {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
    #[pyo3(signature = (columns, expected, rate=None, *, false_columns=None, names=None, seed=Number(0), secret=Secret(None), hasher="murmur3", key=None), text_signature = "(columns, expected, rate=None, *, false_columns=None, names=(), seed=0, secret=False, hasher='murmur3', key=None)")]
    fn new(
        #[pyo3(from_py_with = arguments::columns)] columns: Number<usize>,
        #[pyo3(from_py_with = arguments::expected)] expected: Number<usize>,
        rate: Option<f64>,
        false_columns: Option<f64>,
        names: Option<Strings>,
        #[pyo3(from_py_with = arguments::seed)] seed: Number<u32>,
        secret: Secret,
        hasher: &str,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let rate = match (rate, false_columns) {
            (Some(_), Some(_)) => return Err(PyValueError::new_err("rate and false_columns exclude each other")),
            (rate, None) => rate.unwrap_or(0.01),
            (None, Some(wrong)) => {
                let columns = columns.0.div_ceil(64) as f64 * 64.0;
                if !(wrong > 0.0 && wrong < columns) {
                    return Err(PyValueError::new_err(format!(
                        "false_columns={wrong}: more than 0, and less than the {columns} columns"
                    )));
                }
                wrong / columns
            }
        };
        let filters = ConcurrentBloom::builder()
            .expected_keys(expected.0)
            .false_positive_rate(rate)
            .hasher(self::hasher(hasher, seed, secret)?);
        let bank = Bank::new(columns.0, &filters).map_err(build_error)?;
        Self::of(bank, names.map_or_else(Vec::new, |names| names.0), key)
    }

    /// Add a key to a column; returns whether it was new there.
    ///
    /// It takes longer than to add it to a BloomFilter. Where all keys of a column are at hand,
    /// fill a BloomFilter and push it.
    fn add(
        &self,
        #[pyo3(from_py_with = arguments::column)] column: Number<usize>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let hash = self.hash(key)?;
        self.with(key.py(), |bank| bank.insert(column.0, &Hashed(hash)))
            .map_err(refused)
    }

    /// Add all keys of an array or of an iterable to a column; returns how many were new there.
    ///
    /// The keys are those that add_many of BloomFilter takes. It hashes all of them first, 8 bytes
    /// each: if one is refused, none is added.
    ///
    /// >>> bank = FilterBank(64, 1000)
    /// >>> bank.add_many(7, ["ann", "bob", "ann"])
    /// 2
    #[pyo3(signature = (column, keys, /, *, threads=Number(1)), text_signature = "($self, column, keys, /, *, threads=1)")]
    fn add_many(
        &self,
        #[pyo3(from_py_with = arguments::column)] column: Number<usize>,
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
    ) -> PyResult<usize> {
        let py = keys.py();
        self.check(py, column.0)?;
        let hashes = hashes(self.hasher, self.key.as_ref(), keys, threads.0)?;
        let insert = |_: usize, part: &[u64]| -> Result<usize, BankError> {
            let chunks = part.chunks(CHUNK);
            chunks
                .map(|chunk| self.shared().insert_batch(column.0, Hashed::slice(chunk)))
                .sum()
        };
        let mut added = 0;
        for piece in hashes.chunks(PIECE * threads.0) {
            py.check_signals()?;
            for new in py.detach(|| by_threads(piece, threads.0, insert)) {
                added += new.map_err(refused)?;
            }
        }
        Ok(added)
    }

    /// Copy a BloomFilter to the first column that is not in use; returns the column.
    ///
    /// The filter must have the bank's arguments: expected, rate, seed, secret and hasher. A larger
    /// one is folded if its size is a multiple. What is in the filter when the call begins is in
    /// the column when it returns; later keys are not. push_all copies many filters in less time.
    ///
    /// >>> bank = FilterBank(64, 1000, 1e-4)
    /// >>> file = BloomFilter(1000, 1e-4)
    /// >>> file.update(["ann", "bob"])
    /// >>> bank.push(file), bank.push(BloomFilter(1000, 1e-4))
    /// (0, 1)
    /// >>> bank.which("ann")
    /// [0]
    #[pyo3(signature = (filter, /))]
    fn push(&self, filter: &Bound<'_, PyAny>) -> PyResult<usize> {
        let any = loaded(filter)?;
        let column = filter.py().detach(|| self.shared().push(bloom(&any)));
        column.map_err(|error| self.unfit(filter.py(), &error))
    }

    /// Copy all filters of an iterable; returns their columns. If one does not fit, none is copied.
    ///
    /// Other calls wait meanwhile.
    ///
    /// >>> bank = FilterBank(64, 1000)
    /// >>> bank.push_all(BloomFilter(1000) for day in range(3))
    /// [0, 1, 2]
    #[pyo3(signature = (filters, /))]
    fn push_all(&self, filters: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let held: Vec<Arc<Any>> = filters.try_iter()?.map(|one| loaded(&one?)).collect::<PyResult<_>>()?;
        let blooms: Vec<_> = held.iter().map(|any| bloom(any)).collect();
        let columns = filters.py().detach(|| self.alone().push_all(&blooms));
        columns.map_err(|error| self.unfit(filters.py(), &error))
    }

    /// The columns that may have a key, as a list in ascending order. The others certainly do not.
    fn which(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let hash = self.hash(key)?;
        Ok(self.with(key.py(), |bank| bank.which(&Hashed(hash)).collect()))
    }

    /// The columns that may have each key: two arrays of integers, rows and columns.
    ///
    /// Key rows[i] may be in column columns[i]. The pairs are sorted by key, then by column. They
    /// are arrays of numpy, or memoryviews where numpy is missing.
    ///
    /// Most keys are in few columns, so pairs are small: 16 bytes each. A table of truth values for
    /// a million keys and 1,024 columns would have a gigabyte. And pairs are what frames take:
    /// frame.iloc[rows] of pandas and table.take(rows) of pyarrow are the rows of the keys, once
    /// for each column that may have them, names[columns] the columns' names in an array,
    /// numpy.unique(rows) the keys that any column may have. For a table, say
    /// table[rows, columns] = True.
    ///
    /// Keys are those that contains_many of BloomFilter takes.
    ///
    /// >>> bank = FilterBank(64, 1000, 1e-6)
    /// >>> bank.add_many(3, ["ann", "bob"]), bank.add_many(7, ["bob"])
    /// (2, 1)
    /// >>> rows, columns = bank.which_many(["eve", "bob", "ann"])
    /// >>> [(int(row), int(column)) for row, column in zip(rows, columns)]
    /// [(1, 3), (1, 7), (2, 3)]
    #[pyo3(signature = (keys, /, *, threads=Number(1)), text_signature = "($self, keys, /, *, threads=1)")]
    fn which_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Number<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, threads) = (keys.py(), check_threads(threads.0)?);
        // Several threads would hash them out of order.
        let hashes = hashes(self.hasher, self.key.as_ref(), keys, 1)?;
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        for (i, piece) in hashes.chunks(PIECE * threads).enumerate() {
            py.check_signals()?;
            let first = i * PIECE * threads;
            let look = |start: usize, part: &[u64]| {
                let (mut rows, mut found) = (Vec::new(), Vec::new());
                for (c, chunk) in part.chunks(CHUNK).enumerate() {
                    let start = first + start + c * CHUNK;
                    self.shared().which_batch(Hashed::slice(chunk), |i, bitmap| {
                        for column in columns(bitmap) {
                            rows.push((start + i) as i64);
                            found.push(column as i64);
                        }
                    });
                }
                (rows, found)
            };
            for part in py.detach(|| by_threads(piece, threads, look)) {
                rows.push(part.0);
                found.push(part.1);
            }
        }
        Ok((numbers(py, &rows)?, numbers(py, &found)?))
    }

    /// Whether any column may have a key.
    ///
    /// >>> bank = FilterBank(64, 1000, 1e-6)
    /// >>> bank.add(3, "ann")
    /// True
    /// >>> bank.any("ann"), bank.any("eve"), bank.count("ann"), bank.count("eve")
    /// (True, False, 1, 0)
    fn any(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash(key)?;
        Ok(self.with(key.py(), |bank| bank.any(&Hashed(hash))))
    }

    /// The number of columns that may have a key.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        let hash = self.hash(key)?;
        Ok(self.with(key.py(), |bank| bank.count(&Hashed(hash))))
    }

    /// Whether a column may have a key.
    fn contains(
        &self,
        #[pyo3(from_py_with = arguments::column)] column: Number<usize>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.check(key.py(), column.0)?;
        let hash = self.hash(key)?;
        Ok(self.with(key.py(), |bank| bank.contains(column.0, &Hashed(hash))))
    }

    /// A column as a BloomFilter of its own, with the same keys. That of a column which is not in
    /// use is an empty filter, of a size that push takes.
    ///
    /// >>> bank = FilterBank(64, 1000)
    /// >>> file = bank.to_filter(0)
    /// >>> file.add("ann"), bank.push(file), bank.to_filter(0) == file
    /// (True, 0, True)
    fn to_filter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::column)] column: Number<usize>,
    ) -> PyResult<Py<PyAny>> {
        let filter = py.detach(|| self.shared().to_filter(column.0)).map_err(refused)?;
        Filter::new(Any::Own(AnyFilter::Bloom(filter)), self.key(py)).into_object(py)
    }

    /// Empty a column, so that it is not in use, and push may take it. Other calls wait meanwhile,
    /// and see the whole column or nothing of it.
    ///
    /// >>> bank = FilterBank(64, 1000)
    /// >>> bank.add(3, "ann"), bank.which("ann")
    /// (True, [3])
    /// >>> bank.clear(3)
    /// >>> bank.which("ann"), bank.columns_in_use()
    /// ([], [])
    fn clear(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::column)] column: Number<usize>) -> PyResult<()> {
        py.detach(|| self.alone().clear(column.0)).map_err(refused)
    }

    /// The columns that were pushed, or to which keys were added, and that were not cleared.
    fn columns_in_use(&self, py: Python<'_>) -> Vec<usize> {
        self.with(py, |bank| bank.columns_in_use().collect())
    }

    /// The number of columns in use.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |bank| bank.len())
    }

    /// The number of columns, in use or not.
    #[getter]
    fn columns(&self, py: Python<'_>) -> usize {
        self.with(py, |bank| bank.columns())
    }

    /// The names of the first columns, as a list.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The number of keys that each filter was made for.
    #[getter]
    fn expected(&self, py: Python<'_>) -> usize {
        self.with(py, |bank| bank.expected_keys())
    }

    /// The rate of false positives of each filter at the expected number of keys.
    #[getter]
    fn rate(&self, py: Python<'_>) -> f64 {
        self.with(py, |bank| bank.false_positive_rate())
    }

    /// The memory of all filters in bytes, in use or not.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.with(py, |bank| bank.memory_bytes())
    }

    /// The hash function of the keys: "murmur3", "fast", "siphash" (with a secret) or "prehashed".
    #[getter]
    fn hasher(&self) -> &'static str {
        hasher_name(&self.hasher)
    }

    /// The secret key, 16 bytes, of a bank made with secret=True. Keep it as you keep passwords.
    #[getter]
    fn secret<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        secret_of(&self.hasher).map(|hasher| PyBytes::new(py, &hasher.key()))
    }

    /// A copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let copy = py.detach(|| self.shared().try_clone()).map_err(build_error)?;
        Self::of(copy, self.names.clone(), self.key(py))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = other.get();
        ptr::eq(self, other)
            || py.detach(|| {
                // In one order: threads that compare two banks both ways do not wait for each
                // other.
                let (a, b) = if ptr::from_ref(self) < ptr::from_ref(other) {
                    (self, other)
                } else {
                    (other, self)
                };
                a.names == b.names && *a.shared() == *b.shared()
            })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let note = hasher_note(Some(self.hasher()));
        self.with(py, |bank| {
            format!(
                "<FilterBank of {} columns for {} keys at {:.2e}: {} in use, {} bytes{note}>",
                bank.columns(),
                bank.expected_keys(),
                bank.false_positive_rate(),
                bank.len(),
                bank.memory_bytes(),
            )
        })
    }

    /// The bank as bytes: those of the Rust crate, and the names after them, as the command writes
    /// them. They do not hold a secret.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let names = self.names_line(py)?;
        let bytes = py.detach(|| {
            let mut bytes = self.shared().snapshot().to_vec();
            bytes.extend_from_slice(names.as_bytes());
            bytes
        });
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads the bank that to_bytes made. Other bytes are a ValueError.
    #[staticmethod]
    #[pyo3(signature = (data, /, *, secret=None, key=None))]
    pub(crate) fn from_bytes(
        data: &Bound<'_, PyAny>,
        secret: Option<SecretKey>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let buffer = Buffer::of(data)?;
        let bytes = buffer.bytes();
        let (bank, names) = data.py().detach(|| Self::read(bytes, secret, bytes.len()))?;
        Self::of(bank, names_of(data.py(), names)?, key)
    }

    /// Write the bank to a file, in place of the old one, as save of BloomFilter does.
    fn save(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        let names = self.names_line(py)?;
        let write = || {
            replace_file(&path.0, |file| {
                self.shared().snapshot().write_to(&mut *file)?;
                file.write_all(names.as_bytes())
            })
        };
        py.detach(|| write().map_err(|error| of_file(&path.0, error)))
    }

    /// Read a bank that save() wrote, or the Rust crate, or its command. A bank that takes more
    /// than max_bytes of memory is a ValueError.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, secret=None, key=None, max_bytes=None))]
    fn load(
        py: Python<'_>,
        path: FilePath,
        secret: Option<SecretKey>,
        key: Option<Py<PyAny>>,
        max_bytes: Option<Number<usize>>,
    ) -> PyResult<Self> {
        let limit = max_bytes.map_or(usize::MAX, |most| most.0);
        let (bank, names) = py.detach(|| Self::read(BufReader::new(open(&path.0)?), secret, limit))?;
        Self::of(bank, names_of(py, names)?, key)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("lanebloom")?.getattr("_restore")?;
        let state = ("FilterBank", self.to_bytes(py)?, self.secret(py), self.key(py), 8);
        (restore, state).into_pyobject(py)
    }

    /// A function that refers to its own filter is garbage with it.
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(self.key.as_ref())
    }
}

impl FilterBank {
    /// The line after the bank, as the command writes it.
    fn names_line(&self, py: Python<'_>) -> PyResult<String> {
        if self.names.is_empty() {
            return Ok(String::new());
        }
        let options = PyDict::new(py);
        options.set_item("ensure_ascii", false)?;
        options.set_item("separators", (",", ":"))?;
        let names = py
            .import("json")?
            .call_method("dumps", (&self.names,), Some(&options))?;
        Ok(names.extract::<String>()? + "\n")
    }

    fn key(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.key.as_ref().map(|key| key.clone_ref(py))
    }
}
