//! Where keys come from: an array, a stream of arrays, or one object after another; and the call
//! that takes all of them.

use crate::arguments::check_threads;
use crate::arrow::{Stream, refuse_nanoseconds};
use crate::columns::{Batch, Column};
use crate::engine::{Engine, Hashes};
use crate::numpy::{self, Array};
use crate::task::{Task, hash_object, quick_hash};
use lanebloom::hash::AnyHasher;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyByteArray, PyBytes, PyDict, PyList, PySlice, PyString, PyTuple};

/// Calls `f` with the object that is the key of `object`: what `map` makes of it.
#[inline(always)]
pub(crate) fn keyed<R>(
    map: Option<&Py<PyAny>>,
    object: &Bound<'_, PyAny>,
    f: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
) -> PyResult<R> {
    match map {
        None => f(object),
        Some(map) => f(&map.bind(object.py()).call1((object,))?),
    }
}

/// Does `task` with all keys, each made by `map`; returns how many were added, and the answers.
pub(crate) fn many<'py, E: Engine>(
    engine: &E,
    task: Task,
    keys: &Bound<'py, PyAny>,
    map: Option<&Py<PyAny>>,
    threads: usize,
) -> PyResult<(usize, Bound<'py, PyByteArray>)> {
    let py = keys.py();
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyByteArray>() {
        return Err(PyTypeError::new_err(format!(
            "{} is one key: pass it in a list, or alone to add",
            keys.get_type().name()?
        )));
    }
    let threads = check_threads(threads)?;
    let answers = |column: &Column<'_>| if task == Task::Add { 0 } else { column.len };
    let batch = |column: &Column<'_>, out: &mut [u8]| -> PyResult<usize> {
        py.detach(|| task.by_column(engine, column, threads, out))
    };
    let (mut added, mut out) = (0, Vec::new());
    match Source::of(keys, map.is_some())? {
        Source::One(one) => {
            // Written where they stay, without a copy.
            let bytes = PyByteArray::new_with(py, answers(one.column()), |out| {
                added = batch(one.column(), out)?;
                Ok(())
            })?;
            return Ok((added, bytes));
        }
        Source::Stream(mut stream) => {
            while let Some(one) = stream.next(py)? {
                py.check_signals()?;
                let answered = out.len();
                out.resize(answered + answers(one.column()), 0);
                added += batch(one.column(), &mut out[answered..])?;
            }
        }
        Source::Items(items) => {
            let map = map.map(|map| map.bind(py));
            added = task.by_items(engine, &items, map, &mut out)?;
        }
        Source::Tables(tables) => {
            for table in tables.try_iter()? {
                if let Source::Items(rows) = of_arrow(&table?)? {
                    added += task.by_items(engine, &rows, map.map(|map| map.bind(py)), &mut out)?;
                }
            }
        }
    }
    Ok((added, PyByteArray::new(py, &out)))
}

/// The hash of one key, which `map` makes of the object.
pub(crate) fn hash(hasher: AnyHasher, map: Option<&Py<PyAny>>, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let hashes = Hashes::new(hasher);
    keyed(map, object, |key| match quick_hash(&hashes, key) {
        Some(hash) => Ok(hash),
        None => hash_object(&hashes, key).map(Option::unwrap_or_default),
    })
}

/// The hashes of all keys; in their order, if one thread computes them.
pub(crate) fn hashes(
    hasher: AnyHasher,
    map: Option<&Py<PyAny>>,
    keys: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<Vec<u64>> {
    let hashes = Hashes::new(hasher);
    many(&hashes, Task::Add, keys, map, threads)?;
    Ok(hashes.into_all())
}

/// Where keys come from.
enum Source<'py> {
    One(Batch),
    Stream(Stream),
    /// One Python object after another.
    Items(Bound<'py, PyAny>),
    /// One table of pyarrow after another, whose rows are such objects.
    Tables(Bound<'py, PyAny>),
}

impl<'py> Source<'py> {
    fn of(keys: &Bound<'py, PyAny>, mapped: bool) -> PyResult<Self> {
        let py = keys.py();
        if let Ok(dict) = keys.cast::<PyDict>() {
            refuse_columns(dict)?;
        }
        if keys.is_exact_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() {
            return Ok(Self::Items(keys.clone()));
        }
        let object = native(keys)?;
        if mapped {
            return objects(&object);
        }
        let array = |values: &Bound<'py, PyAny>| -> PyResult<_> {
            Ok(numpy::array(values)?.map(|array| match array {
                Array::Column(batch) => Self::One(batch),
                Array::Objects(objects) => Self::Items(objects),
            }))
        };
        if let Some(source) = array(&object)? {
            return Ok(source);
        }
        let mut object = object;
        let library = Library::of(&object)?;
        if library == Library::Pandas {
            if let Some(width) = width(&object)? {
                if width == 1 {
                    // The keys of that column, as pandas has them, and not as Arrow gets them.
                    object = object.getattr(intern!(py, "iloc"))?.get_item((PySlice::full(py), 0))?;
                } else if has_objects(&object)? {
                    return objects(&object);
                }
            }
            if width(&object)?.is_some() {
                object = unnamed(&object)?;
            } else if let Some(dtype) = object.getattr_opt(intern!(py, "dtype"))? {
                if dtype.get_type().module()?.to_cow()?.starts_with("numpy") {
                    // A series of numpy's values. Arrow would refuse some of Python's objects.
                    if let Some(source) = array(&object.call_method0("to_numpy")?)? {
                        return Ok(source);
                    }
                } else if is_of_objects(&object)? {
                    return Ok(Self::Items(object));
                } else if !object.hasattr("__arrow_c_stream__")? {
                    // An index or an array: only a series has an Arrow form.
                    object = py.import("pandas")?.call_method1("Series", (object,))?;
                }
            }
        }
        match Stream::of(&object) {
            Ok(Some(stream)) => {
                match library {
                    Library::Polars => stream.refuse_addresses()?,
                    Library::DuckDb => stream.refuse_types(&object)?,
                    _ => {}
                }
                return Ok(Self::Stream(stream));
            }
            Ok(None) => {}
            // pandas without pyarrow.
            Err(error) if error.is_instance_of::<PyImportError>(py) => {}
            Err(error) => return Err(error),
        }
        if library == Library::Pandas {
            // numpy would make floats of integers with nulls.
            return objects(&object);
        }
        if let Some(batch) = numpy::buffer(&object)? {
            return Ok(Self::One(batch));
        }
        if object.hasattr(intern!(py, "__array__"))? {
            let values = py.import("numpy")?.call_method1("asarray", (&object,))?;
            if let Some(source) = array(&values)? {
                return Ok(source);
            }
        }
        Ok(Self::Items(object))
    }
}

/// A library whose arrays and frames need a word of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Pandas,
    Polars,
    DuckDb,
    PyArrow,
    Other,
}

impl Library {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let module = object.get_type().module()?;
        let module = module.to_cow()?;
        Ok(match module.split('.').next() {
            Some("pandas") => Self::Pandas,
            Some("polars") => Self::Polars,
            Some("duckdb" | "_duckdb") => Self::DuckDb,
            Some("pyarrow") => Self::PyArrow,
            _ => Self::Other,
        })
    }
}

/// The object behind `keys`: narwhals wraps a column or a frame of another library, and a dataset
/// of pyarrow is read. Fails for a plan or a file that has no rows yet.
fn native<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut object = keys.clone();
    if object.get_type().module()?.to_cow()?.starts_with("narwhals") && object.hasattr("to_native")? {
        object = object.call_method0("to_native")?;
    }
    match Library::of(&object)? {
        Library::Polars if object.hasattr("collect")? => Err(PyTypeError::new_err(
            "a LazyFrame has no rows yet: pass frame.collect(), or the batches of frame.collect_batches() one by one",
        )),
        Library::PyArrow => {
            if object.hasattr("scanner")? {
                object = object.call_method0("scanner")?;
            }
            if object.hasattr("to_reader")? && !object.hasattr("__arrow_c_stream__")? {
                object = object.call_method0("to_reader")?;
            }
            if object.hasattr("iter_batches")? {
                return Err(PyTypeError::new_err(
                    "a ParquetFile: pass file.read(columns=[...]), or the batches of file.iter_batches() one by one",
                ));
            }
            Ok(object)
        }
        _ => Ok(object),
    }
}

/// The number of columns, of a frame or a table.
fn width(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let columns = object.getattr_opt(intern!(object.py(), "columns"))?;
    Ok(columns.and_then(|columns| columns.len().ok()))
}

/// A frame of pandas without its index, which is not a key, and with numbers for names that stand
/// there twice, which Arrow refuses.
fn unnamed<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = frame.py();
    let options = [("drop", true)].into_py_dict(py)?;
    let frame = frame.call_method("reset_index", (), Some(&options))?;
    let columns = frame.getattr(intern!(py, "columns"))?;
    if columns.getattr("is_unique")?.is_truthy()? {
        return Ok(frame);
    }
    let options = [("axis", 1)].into_py_dict(py)?;
    let numbers = PyList::new(py, 0..columns.len()?)?;
    frame.call_method("set_axis", (numbers,), Some(&options))
}

/// Whether a frame of pandas has a column of objects that Arrow would change.
fn has_objects(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    for named in frame.call_method0("items")?.try_iter()? {
        if is_of_objects(&named?.get_item(1)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a column of pandas has objects, or categories that are objects, to which Arrow would
/// give one type: a date beside a time becomes a time, and an integer beyond 64 bits is an error.
fn is_of_objects(column: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = column.py();
    let (mut values, mut dtype) = (column.clone(), column.getattr("dtype")?);
    if let Some(categories) = dtype.getattr_opt("categories")? {
        dtype = categories.getattr("dtype")?;
        values = categories;
    }
    // A sparse column has no Arrow form.
    if dtype.hasattr("fill_value")? {
        return Ok(true);
    }
    // Types of pandas' own have the kind of objects too.
    if !dtype.get_type().module()?.to_cow()?.starts_with("numpy") || !dtype.getattr("kind")?.eq("O")? {
        return Ok(false);
    }
    let options = [("skipna", true)].into_py_dict(py)?;
    let kind = py
        .import("pandas.api.types")?
        .call_method("infer_dtype", (values,), Some(&options))?;
    Ok(!matches!(
        kind.extract::<String>()?.as_str(),
        "string" | "bytes" | "boolean" | "empty"
    ))
}

/// The objects that a function makes keys of: values, or the tuples of rows. A row of one column is
/// its value, as without a function.
fn objects<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Source<'py>> {
    let py = keys.py();
    let library = Library::of(keys)?;
    refuse_lost(keys, library)?;
    let rows = match library {
        Library::Pandas if width(keys)?.is_some() => {
            let options = PyDict::new(py);
            options.set_item("index", false)?;
            options.set_item("name", py.None())?;
            keys.call_method("itertuples", (), Some(&options))?
        }
        Library::Polars if width(keys)?.is_some() => keys.call_method0("iter_rows")?,
        Library::DuckDb if width(keys)?.is_some() => keys.call_method0("fetchall")?,
        Library::Pandas | Library::Polars => return Ok(Source::Items(keys.clone())),
        _ => {
            let (stream, array) = ("__arrow_c_stream__", "__arrow_c_array__");
            if !keys.hasattr(stream)? && !keys.hasattr(array)? {
                return Ok(Source::Items(keys.clone()));
            }
            return of_arrow(keys);
        }
    };
    match width(keys)? {
        Some(1) => firsts(&rows).map(Source::Items),
        _ => Ok(Source::Items(rows)),
    }
}

/// Fails for columns whose nanoseconds are not in the objects that [`objects`] takes of them: two
/// values would be one key. pandas and pyarrow have objects with nanoseconds for all but times of a
/// day.
fn refuse_lost(keys: &Bound<'_, PyAny>, library: Library) -> PyResult<()> {
    const TIMES: &[&str] = &["ttn"];
    const ALL: &[&str] = &["ttn", "tsn:", "tDn"];
    let py = keys.py();
    let has_columns = width(keys)?.is_some();
    match library {
        Library::Polars => refuse_nanoseconds(keys, ALL),
        Library::DuckDb if has_columns => refuse_nanoseconds(&keys.call_method1("limit", (0,))?, ALL),
        Library::Pandas => {
            let dtypes = if has_columns {
                keys.getattr("dtypes")?.try_iter()?.collect::<PyResult<Vec<_>>>()?
            } else {
                keys.getattr_opt("dtype")?.into_iter().collect()
            };
            for mut dtype in dtypes {
                if let Some(categories) = dtype.getattr_opt("categories")?.filter(|all| !all.is_none()) {
                    dtype = categories.getattr("dtype")?;
                }
                if let Some(of) = dtype.getattr_opt(intern!(py, "pyarrow_dtype"))? {
                    refuse_nanoseconds(&of, TIMES)?;
                }
            }
            Ok(())
        }
        Library::PyArrow => match keys.getattr_opt("schema")?.or(keys.getattr_opt("type")?) {
            Some(of) => refuse_nanoseconds(&of, TIMES),
            None => Ok(()),
        },
        Library::DuckDb | Library::Other => Ok(()),
    }
}

/// The only value of each row.
fn firsts<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    let first = py.import("operator")?.call_method1("itemgetter", (0,))?;
    py.import("builtins")?.call_method1("map", (first, rows))
}

/// [`objects`] of an array, a table or a stream of Arrow.
fn of_arrow<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Source<'py>> {
    let py = keys.py();
    let mut table = keys.clone();
    if Library::of(keys)? != Library::PyArrow {
        let pyarrow = py.import("pyarrow").map_err(|_| {
            PyTypeError::new_err("with key=, rows of Arrow are read by pyarrow: install it, or pass a list of tuples")
        })?;
        // Not a table, but one column.
        table = match pyarrow.call_method1("table", (keys,)) {
            Ok(table) => table,
            Err(_) => pyarrow.call_method1("chunked_array", (keys,))?,
        };
    }
    refuse_lost(&table, Library::PyArrow)?;
    let as_py = py.import("operator")?.call_method1("methodcaller", ("as_py",))?;
    let map = py.import("builtins")?.getattr("map")?;
    if table.hasattr("read_next_batch")? {
        return Ok(Source::Tables(table));
    }
    if !table.hasattr("column")? {
        return map.call1((as_py, table)).map(Source::Items);
    }
    let columns = table.getattr("columns")?.try_iter()?;
    let columns = columns
        .map(|column| map.call1((&as_py, column?)))
        .collect::<PyResult<Vec<_>>>()?;
    match &columns[..] {
        [column] => Ok(Source::Items(column.clone())),
        columns => {
            let rows = PyTuple::new(py, columns)?;
            py.import("builtins")?.getattr("zip")?.call1(rows).map(Source::Items)
        }
    }
}

/// Fails for a dict of arrays, whose names nobody means as keys.
fn refuse_columns(dict: &Bound<'_, PyDict>) -> PyResult<()> {
    // Not `dict.iter()`, which panics if another thread adds a key.
    let Some(name) = dict.as_any().try_iter()?.next().transpose()? else {
        return Ok(());
    };
    let Some(value) = dict.get_item(&name)? else {
        return Ok(());
    };
    let has = |name| value.hasattr(name);
    // A scalar of numpy has no length.
    if has("__arrow_c_array__")? || has("__arrow_c_stream__")? || has("__array__")? && value.len().is_ok() {
        return Err(PyTypeError::new_err(format!(
            "a dict of arrays: its names, such as {}, would be the keys. Pass an array, or a frame or a table of these \
             columns; list(keys) are the names",
            name.repr()?
        )));
    }
    Ok(())
}
