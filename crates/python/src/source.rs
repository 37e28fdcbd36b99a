//! Where keys come from: an array, a stream of arrays, or one object after another; and the call
//! that takes all of them.

use crate::arguments::check_threads;
use crate::arrow::Stream;
use crate::columns::{Batch, Column};
use crate::engine::{Engine, Hashes};
use crate::numpy::{self, Array};
use crate::task::{Task, hash_object, quick_hash};
use lanebloom::hash::AnyHasher;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PySlice, PyString, PyTuple};

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
}

impl<'py> Source<'py> {
    fn of(keys: &Bound<'py, PyAny>, mapped: bool) -> PyResult<Self> {
        let py = keys.py();
        if let Ok(dict) = keys.cast::<PyDict>() {
            refuse_columns(dict)?;
        }
        if mapped || keys.is_exact_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() {
            return Ok(Self::Items(keys.clone()));
        }
        let array = |values: &Bound<'py, PyAny>| -> PyResult<_> {
            Ok(numpy::array(values)?.map(|array| match array {
                Array::Column(batch) => Self::One(batch),
                Array::Objects(objects) => Self::Items(objects),
            }))
        };
        if let Some(source) = array(keys)? {
            return Ok(source);
        }
        let mut object = keys.clone();
        let module = keys.get_type().module()?;
        if module.to_cow()?.starts_with("pandas") {
            let columns = object.getattr_opt(intern!(py, "columns"))?;
            if columns.is_some_and(|columns| columns.len().is_ok_and(|columns| columns == 1)) {
                // The keys of that column, as pandas has them, and not as Arrow gets them.
                object = object.getattr(intern!(py, "iloc"))?.get_item((PySlice::full(py), 0))?;
            }
            // A frame's index is not a key.
            if object.hasattr(intern!(py, "columns"))? {
                let options = PyDict::new(py);
                options.set_item("drop", true)?;
                object = object.call_method("reset_index", (), Some(&options))?;
            } else if let Some(dtype) = object.getattr_opt(intern!(py, "dtype"))?
                && dtype.get_type().module()?.to_cow()?.starts_with("numpy")
                // A series of numpy's values. Arrow would refuse some of Python's objects.
                && let Some(source) = array(&object.call_method0("to_numpy")?)?
            {
                return Ok(source);
            }
        }
        match Stream::of(&object) {
            Ok(Some(stream)) => return Ok(Self::Stream(stream)),
            Ok(None) => {}
            // pandas without pyarrow.
            Err(error) if error.is_instance_of::<PyImportError>(py) => {}
            Err(error) => return Err(error),
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
