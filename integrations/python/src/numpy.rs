//! Arrays of numpy, and whatever else has a buffer, as columns; answers as arrays.

use crate::bytes::HALVES;
use crate::columns::{Batch, Column, Unit, Values};
use crate::ffi::{Buffer, lend};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList, PyMemoryView};
use std::ffi::c_void;

/// A module, if the program has imported it: otherwise nobody has an object of it.
pub(crate) fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    modules.cast::<PyDict>()?.get_item(name)
}

/// Answers as an array of numpy; as a memoryview, without numpy. `format` is that of the module
/// `struct`: `?` or `q`.
pub(crate) fn answers<'py>(bytes: Bound<'py, PyByteArray>, format: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = bytes.py();
    match py.import(intern!(py, "numpy")) {
        // numpy's own name of the integers: those of C have another type, of the same size.
        Ok(numpy) => numpy.call_method1(
            intern!(py, "frombuffer"),
            (bytes, if format == "q" { "i8" } else { format }),
        ),
        Err(error) if error.is_instance_of::<PyImportError>(py) => {
            let view = py.get_type::<PyMemoryView>().call1((bytes,))?;
            view.call_method1("cast", (format,))
        }
        Err(error) => Err(error),
    }
}

/// The keys of an array.
pub(crate) enum Array<'py> {
    Column(Batch),
    /// Python objects.
    Objects(Bound<'py, PyAny>),
}

/// A scalar of numpy, or an array without dimensions, as a column of one value.
pub(crate) fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    let py = object.py();
    let Some(numpy) = loaded(py, "numpy")? else {
        return Ok(None);
    };
    let is = |name| object.is_instance(&numpy.getattr(name)?);
    if !(is("generic")? || is("ndarray")? && object.getattr("ndim")?.extract::<usize>()? == 0) {
        return Ok(None);
    }
    match array_of(&numpy, object, true)? {
        Array::Column(batch) => Ok(Some(batch)),
        Array::Objects(_) => Ok(None),
    }
}

/// A one-dimensional array of numpy; [`None`] for other objects.
pub(crate) fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    let Some(numpy) = loaded(object.py(), "numpy")? else {
        return Ok(None);
    };
    if !object.is_instance(&numpy.getattr("ndarray")?)? {
        return Ok(None);
    }
    array_of(&numpy, object, false).map(Some)
}

/// An object as an array of the class `ndarray` itself, whose length and address are numpy's own: a
/// subclass may say anything. In one dimension if it is a scalar, whose own memory goes away.
fn exact<'py>(numpy: &Bound<'py, PyAny>, object: &Bound<'py, PyAny>, is_scalar: bool) -> PyResult<Bound<'py, PyAny>> {
    let mut array = numpy.call_method1("asarray", (object,))?;
    if is_scalar {
        array = array.call_method1("reshape", (1,))?;
    }
    if array.get_type().is(&numpy.getattr("ndarray")?) {
        return Ok(array);
    }
    Err(PyTypeError::new_err(format!(
        "numpy.asarray made a {} of the array, not an ndarray",
        array.get_type().name()?
    )))
}

/// Where the values of an exact array lie.
fn address(array: &Bound<'_, PyAny>) -> PyResult<*const c_void> {
    let interface = array.getattr(intern!(array.py(), "__array_interface__"))?;
    let (address, _): (usize, bool) = interface.get_item("data")?.extract()?;
    Ok(address as *const c_void)
}

/// For a masked array, a bit for each value: 0 if it is masked.
fn unmasked<'py>(numpy: &Bound<'py, PyAny>, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(masked) = loaded(numpy.py(), "numpy.ma")? else {
        return Ok(None);
    };
    if !object.is_instance(&masked.getattr("MaskedArray")?)? {
        return Ok(None);
    }
    let mask = masked.call_method1("getmaskarray", (object,))?;
    if !mask.call_method0("any")?.is_truthy()? {
        return Ok(None);
    }
    let there = numpy.call_method1("logical_not", (mask,))?;
    let bits = numpy.call_method1("packbits", (there, None::<usize>, "little"))?;
    exact(numpy, &bits, false).map(Some)
}

fn array_of<'py>(numpy: &Bound<'py, PyAny>, object: &Bound<'py, PyAny>, is_scalar: bool) -> PyResult<Array<'py>> {
    let py = numpy.py();
    let bits = unmasked(numpy, object)?;
    let mut array = exact(numpy, object, is_scalar)?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    if dimensions != 1 {
        return Err(PyValueError::new_err(format!(
            "an array of {dimensions} dimensions: keys come in arrays of one"
        )));
    }
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let width: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    // 2 is a type that another package defined; numpy knows no more than the size of its values.
    if dtype.getattr(intern!(py, "isbuiltin"))?.extract::<i64>()? == 2 {
        return Err(PyTypeError::new_err(format!(
            "an array of dtype {dtype}, which is not numpy's: its bytes are not its values. Cast it: values.astype('f8'), \
             or 'i8' for integers"
        )));
    }
    let mut stored_otherwise = None;
    let mut wanted = match (kind.as_str(), width) {
        // A masked array's list has None for what is masked.
        ("O" | "T", _) if bits.is_some() => return object.call_method0("tolist").map(Array::Objects),
        ("O" | "T", _) => return Ok(Array::Objects(object.clone())),
        ("f", 2) => {
            stored_otherwise = Some(HALVES);
            "f8".into_pyobject(py)?.into_any()
        }
        _ => dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?,
    };
    let mut unit = None;
    if kind == "M" {
        let (name, count): (String, i64) = numpy.call_method1("datetime_data", (&dtype,))?.extract()?;
        let scale = |per_second, seconds| Unit { per_second, seconds };
        if !matches!((name.as_str(), count), ("ns" | "us" | "ms", 1)) {
            stored_otherwise = Some(
                "datetime64 of a unit that this filter does not take: cast it to the unit that was stored, \
                 values.astype('M8[us]') for one, and days to dates, pyarrow.array(values.astype('M8[D]'))",
            );
        }
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
    array = exact(numpy, &array, false)?;
    let len = array.len()?;
    let data = address(&array)?;
    // SAFETY: the array has this many values of this type there, in a row: `require` saw to it, and
    // `exact` that numpy itself says so. It keeps them as long as it lives, and the batch owns a
    // reference. Other threads can write to them meanwhile, as they can while numpy itself
    // computes.
    let values = unsafe {
        match (kind.as_str(), width) {
            ("S", _) => {
                let bytes = lend(data, len * width)?;
                refuse_digests(bytes, width)?;
                Values::Padded(bytes, width)
            }
            ("U", _) => {
                let points = lend(data, len * width / 4)?;
                refuse_surrogates(points, width / 4)?;
                Values::Utf32(points, width / 4)
            }
            ("M", 8) => Values::Times(lend(data, len)?, unit.ok_or_else(|| unsupported(&dtype))?, true),
            ("V", _) if dtype.getattr("names")?.is_none() => Values::Fixed(lend(data, len * width)?, width),
            // Floats of two bytes became 8.
            ("f", 2) => Values::F64(lend(data, len)?),
            (kind, width) => numbers(kind, width, data, len)?.ok_or_else(|| unsupported(&dtype))?,
        }
    };
    let mut column = Column::new(values, len);
    column.stored_otherwise = stored_otherwise;
    if let Some(bits) = &bits {
        if bits.len()? != len.div_ceil(8) {
            return Err(PyValueError::new_err(format!(
                "a masked array of {len} values whose mask has another length"
            )));
        }
        // SAFETY: as above; the batch owns a reference to these too.
        let valid = unsafe { lend(address(bits)?, len.div_ceil(8))? };
        column.valid.push((valid, 0));
    }
    Ok(Array::Column(Batch::new(
        column,
        (array.unbind(), bits.map(Bound::unbind)),
    )))
}

/// Lends numbers of a kind, as numpy names it, and of a size in bytes. Returns [`None`] if they are
/// not keys.
///
/// # Safety
///
/// `len` of them lie at `data`, and stay there as long as `'static` is used.
unsafe fn numbers(kind: &str, width: usize, data: *const c_void, len: usize) -> PyResult<Option<Values<'static>>> {
    // SAFETY: the caller's promise.
    let values = unsafe {
        match (kind, width) {
            ("i" | "u", 8) => Values::Words(lend(data, len)?),
            ("i", 4) => Values::I32(lend(data, len)?),
            ("u", 4) => Values::U32(lend(data, len)?),
            ("i", 2) => Values::I16(lend(data, len)?),
            ("u", 2) => Values::U16(lend(data, len)?),
            ("i", 1) => Values::I8(lend(data, len)?),
            ("u", 1) => Values::U8(lend(data, len)?),
            ("f", 4) => Values::F32(lend(data, len)?),
            ("f", 8) => Values::F64(lend(data, len)?),
            ("b", 1) => Values::Bools(lend(data, len)?),
            _ => return Ok(None),
        }
    };
    Ok(Some(values))
}

/// Fails for strings that have no UTF-8, as one of them alone does.
fn refuse_surrogates(points: &[u32], width: usize) -> PyResult<()> {
    match points.iter().position(|&point| char::from_u32(point).is_none()) {
        None => Ok(()),
        Some(place) => Err(PyValueError::new_err(format!(
            "string {} of the array has the code point {:#x}: surrogates not allowed",
            place / width,
            points[place]
        ))),
    }
}

/// Fails for an `S` array of digests: it has lost the zero bytes at their ends, and so one in 256.
///
/// They are known by their size, that of a digest, and by bytes that are not text.
fn refuse_digests(bytes: &[u8], width: usize) -> PyResult<()> {
    /// Values that are looked at: half of them must be binary. A digest is UTF-8 in fewer than one
    /// case of 10,000.
    const LOOKED_AT: usize = 64;
    if !matches!(width, 16 | 20 | 24 | 28 | 32 | 48 | 64) {
        return Ok(());
    }
    let values = bytes.chunks_exact(width).take(LOOKED_AT);
    let binary = values.clone().filter(|value| str::from_utf8(value).is_err()).count();
    if binary > values.count() / 2 {
        return Err(PyTypeError::new_err(format!(
            "an array of dtype S{width} that holds digests: numpy drops the zero bytes at the end of an S value. \
             Pass values.view('V{width}'), which has them all, or a list of bytes"
        )));
    }
    Ok(())
}

fn unsupported(dtype: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "an array of dtype {dtype}: keys are integers, floats up to 64 bits, bool, S, U, V and datetime64 down to ns. Cast \
         other values: to 'f8', timedelta64 to 'i8', datetime64 to 'M8[ns]', or to 'U' for their text"
    ))
}

/// An object with a contiguous buffer of numbers, such as an `array.array` or a `memoryview`, as a
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
    let native = ['@', '=', if cfg!(target_endian = "little") { '<' } else { '>' }];
    let kind = match format.trim_start_matches(native) {
        "b" | "h" | "i" | "l" | "q" | "n" => "i",
        "B" | "H" | "I" | "L" | "Q" | "N" => "u",
        "f" | "d" => "f",
        "?" => "b",
        _ => "",
    };
    // SAFETY: the exporter has this many values of this format there, until the buffer is released,
    // and the batch owns the buffer.
    let values = unsafe { numbers(kind, width, data, len)? }.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "a buffer of format {format:?}: keys are integers, floats and bool"
        ))
    })?;
    Ok(Some(Batch::new(Column::new(values, len), buffer)))
}
