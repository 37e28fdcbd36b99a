//! Arrays of numpy, and whatever else has a buffer, as columns.

use crate::columns::{Batch, Column, Unit, Values};
use crate::ffi::{Buffer, lend};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::c_void;

/// numpy, if the program has imported it: otherwise nobody has an array of it.
pub(crate) fn module<'py>(py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    modules.cast::<PyDict>()?.get_item(intern!(py, "numpy"))
}

/// A scalar of numpy, or an array without dimensions, as a column of one value.
pub(crate) fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    let py = object.py();
    let Some(numpy) = module(py)? else { return Ok(None) };
    let is = |name| object.is_instance(&numpy.getattr(name)?);
    if !(is("generic")? || is("ndarray")? && object.getattr("ndim")?.extract::<usize>()? == 0) {
        return Ok(None);
    }
    // A scalar's own interface points to memory that is gone.
    let array = numpy
        .call_method1("asarray", (object,))?
        .call_method1("reshape", (1,))?;
    array_of(&numpy, array)
}

/// A one-dimensional array of numpy as a column: [`None`] for other objects, and `Some(None)` for
/// an array of Python objects.
pub(crate) fn array(object: &Bound<'_, PyAny>) -> PyResult<Option<Option<Batch>>> {
    let Some(numpy) = module(object.py())? else {
        return Ok(None);
    };
    if !object.is_instance(&numpy.getattr("ndarray")?)? {
        return Ok(None);
    }
    array_of(&numpy, object.clone()).map(Some)
}

fn array_of<'py>(numpy: &Bound<'py, PyAny>, mut array: Bound<'py, PyAny>) -> PyResult<Option<Batch>> {
    let py = numpy.py();
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    if dimensions != 1 {
        return Err(PyValueError::new_err(format!(
            "an array of {dimensions} dimensions: keys come in arrays of one"
        )));
    }
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let width: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    let mut wanted = match (kind.as_str(), width) {
        ("O" | "T", _) => return Ok(None),
        ("f", 2) => "f8".into_pyobject(py)?.into_any(),
        _ => dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?,
    };
    let mut unit = None;
    if kind == "M" {
        let (name, count): (String, i64) = numpy.call_method1("datetime_data", (&dtype,))?.extract()?;
        let scale = |per_second, seconds| Unit { per_second, seconds };
        unit = Some(match (name.as_str(), count) {
            ("ns", 1) => scale(1_000_000_000, 1),
            ("us", 1) => scale(1_000_000, 1),
            ("ms", 1) => scale(1000, 1),
            ("s", 1) => scale(1, 1),
            ("D", 1) => scale(1, 86_400),
            ("ps" | "fs" | "as", _) => return Err(unsupported(&dtype)),
            ("ns" | "us" | "ms", _) => {
                wanted = "M8[ns]".into_pyobject(py)?.into_any();
                scale(1_000_000_000, 1)
            }
            _ => {
                wanted = "M8[s]".into_pyobject(py)?.into_any();
                scale(1, 1)
            }
        });
    }
    // The array itself, unless it has gaps, foreign bytes or no alignment.
    array = numpy.call_method1("require", (array, &wanted, PyList::new(py, ["C", "A"])?))?;
    let len = array.len()?;
    let (address, _): (usize, bool) = array.getattr("__array_interface__")?.get_item("data")?.extract()?;
    let data = address as *const c_void;
    // SAFETY: the array has so many values of this type there, in a row: `require` saw to it. It
    // keeps them as long as it lives, and the batch owns a reference. Other threads can write to
    // them meanwhile, as they can while numpy itself computes.
    let values = unsafe {
        match (kind.as_str(), width) {
            ("i" | "u", 8) => Values::Words(lend(data, len)?),
            ("i", 4) => Values::I32(lend(data, len)?),
            ("u", 4) => Values::U32(lend(data, len)?),
            ("i", 2) => Values::I16(lend(data, len)?),
            ("u", 2) => Values::U16(lend(data, len)?),
            ("i", 1) => Values::I8(lend(data, len)?),
            ("u", 1) => Values::U8(lend(data, len)?),
            ("f", 4) => Values::F32(lend(data, len)?),
            ("f", 2 | 8) => Values::F64(lend(data, len)?),
            ("b", 1) => Values::Bools(lend(data, len)?),
            ("S", _) => Values::Padded(lend(data, len * width)?, width),
            ("U", _) => Values::Utf32(lend(data, len * width / 4)?, width / 4),
            ("M", 8) => Values::Times(lend(data, len)?, unit.ok_or_else(|| unsupported(&dtype))?, true),
            ("V", _) if dtype.getattr("names")?.is_none() => Values::Fixed(lend(data, len * width)?, width),
            _ => return Err(unsupported(&dtype)),
        }
    };
    Ok(Some(Batch::new(Column::new(values, len), array.unbind())))
}

fn unsupported(dtype: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "an array of dtype {dtype}: keys are integers, floats up to 64 bits, bool, S, U, V and datetime64 down to ns"
    ))
}

/// What has a contiguous buffer of numbers, such as an `array.array` or a `memoryview`, as a
/// column.
pub(crate) fn buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    let Ok(buffer) = Buffer::of(object) else {
        return Ok(None);
    };
    if buffer.dimensions() != 1 {
        return Err(PyValueError::new_err(format!(
            "a buffer of {} dimensions: keys come in buffers of one",
            buffer.dimensions()
        )));
    }
    let (format, width) = buffer.item()?;
    let data = buffer.bytes().as_ptr().cast();
    let len = buffer.bytes().len() / width.max(1);
    // SAFETY: the exporter has so many values of this format there, until the buffer is released,
    // and the batch owns the buffer.
    let values = unsafe {
        match (
            format.trim_start_matches(['@', '=', if cfg!(target_endian = "little") { '<' } else { '>' }]),
            width,
        ) {
            ("b" | "h" | "i" | "l" | "q" | "n" | "B" | "H" | "I" | "L" | "Q" | "N", 8) => {
                Values::Words(lend(data, len)?)
            }
            ("b" | "h" | "i" | "l", 4) => Values::I32(lend(data, len)?),
            ("h", 2) => Values::I16(lend(data, len)?),
            ("b", 1) => Values::I8(lend(data, len)?),
            ("I" | "L", 4) => Values::U32(lend(data, len)?),
            ("H", 2) => Values::U16(lend(data, len)?),
            ("B", 1) => Values::U8(lend(data, len)?),
            ("?", 1) => Values::Bools(lend(data, len)?),
            ("f", 4) => Values::F32(lend(data, len)?),
            ("d", 8) => Values::F64(lend(data, len)?),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "a buffer of format {format:?}: keys are integers, floats and bool"
                )));
            }
        }
    };
    Ok(Some(Batch::new(Column::new(values, len), buffer)))
}
