//! Turns one Python object into a key: an integer of 64 bits, or the bytes of its content.
//!
//! The bytes are those of the Rust crate's funnels, so a filter that a Rust program filled has the
//! same keys here. README.md has the table.

use crate::bytes::{
    BOOLS, DECIMALS, Encoding, MOST_DIGITS, NONE, Written, large_len, time_bytes, words_of, write_decimal, write_float,
    write_row,
};
use crate::engine::NOT_SPARKS;
use crate::ffi::{self, Buffer, Quick};
use crate::numpy;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};

/// A key.
pub(crate) enum Key<'a> {
    /// An integer, as the 8 bytes of a little-endian integer.
    Word(u64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Null, to a filter of another system, which has no nulls.
    Null,
}

/// The key of an object. `spare` holds the bytes if no other place does.
#[inline(always)]
pub(crate) fn key<'a>(object: &'a Bound<'_, PyAny>, encoding: Encoding, spare: &'a mut Vec<u8>) -> PyResult<Key<'a>> {
    match ffi::quick(object) {
        Quick::Int(value) => Ok(Key::Word(value.cast_unsigned())),
        Quick::Text(text) => Ok(Key::Bytes(text)),
        Quick::Other => slow(object, encoding, spare),
    }
}

#[inline(never)]
fn slow<'a>(object: &'a Bound<'_, PyAny>, encoding: Encoding, spare: &'a mut Vec<u8>) -> PyResult<Key<'a>> {
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(Key::Bytes(bytes.as_bytes()));
    }
    spare.clear();
    // A tuple of one part is that part.
    let mut object = object.clone();
    while let Ok(tuple) = object.cast::<PyTuple>()
        && tuple.len() == 1
    {
        object = tuple.get_item(0)?;
    }
    Ok(match write(&object, encoding, spare, 0)? {
        Written::Word(word) => Key::Word(word),
        Written::Null if encoding != Encoding::Python => Key::Null,
        _ => Key::Bytes(spare),
    })
}

/// Tuples in tuples in tuples, before it is an error.
const DEEPEST: usize = 32;

fn write(object: &Bound<'_, PyAny>, encoding: Encoding, out: &mut Vec<u8>, depth: usize) -> PyResult<Written> {
    if object.is_instance_of::<PyInt>() {
        if encoding == Encoding::Plain && object.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err(BOOLS));
        }
        return integer(object, encoding, out);
    }
    if let Ok(text) = object.cast::<PyString>() {
        out.extend_from_slice(ffi::utf8(text)?);
        return Ok(Written::Varying);
    }
    if object.is_none() {
        return Ok(null(out));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        out.extend_from_slice(bytes.as_bytes());
        return Ok(Written::Varying);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        out.extend_from_slice(Buffer::of(object)?.bytes());
        return Ok(Written::Varying);
    }
    if encoding == Encoding::Spark {
        return write_of_library(object, encoding, out)?.ok_or_else(|| PyTypeError::new_err(NOT_SPARKS));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        if encoding == Encoding::Plain {
            out.extend_from_slice(&number.value().to_bits().to_le_bytes());
            return Ok(Written::Fixed);
        }
        return Ok(write_float(number.value(), out));
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return write_tuple(tuple, encoding, out, depth);
    }
    let py = object.py();
    let types = KNOWN.get_or_try_init(py, || Known::new(py))?;
    if object.is_instance(types.uuid.bind(py))? {
        let bytes = object.getattr(intern!(py, "bytes"))?;
        out.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
        return Ok(Written::Fixed);
    }
    if object.is_instance(types.ip.bind(py))? {
        let packed = object.getattr(intern!(py, "packed"))?;
        out.extend_from_slice(packed.cast::<PyBytes>()?.as_bytes());
        return Ok(Written::Fixed);
    }
    if object.is_instance(types.date.bind(py))? {
        if object.is_instance(types.datetime.bind(py))? && object.ne(object)? {
            // NaT of pandas.
            return Ok(null(out));
        }
        if encoding == Encoding::Plain {
            return Err(PyTypeError::new_err(
                "this filter's times have units that a datetime does not name: pass an int, or an array of numpy or Arrow",
            ));
        }
        return write_time(object, types, out);
    }
    if object.is_instance(types.decimal.bind(py))? {
        return decimal(object, encoding, out);
    }
    write_of_library(object, encoding, out)?.ok_or_else(|| unsupported(object))
}

/// Scalars of numpy, as arrays of no dimension: they have the bytes of an array's items. And the
/// null of pandas.
fn write_of_library(object: &Bound<'_, PyAny>, encoding: Encoding, out: &mut Vec<u8>) -> PyResult<Option<Written>> {
    let py = object.py();
    if let Some(batch) = numpy::scalar(object)? {
        let written = batch.column().write(0, encoding, out);
        if written != Written::Null {
            batch.column().check(encoding)?;
        }
        return Ok(Some(written));
    }
    if let Some(pandas) = numpy::loaded(py, "pandas")?
        && object.is(&pandas.getattr(intern!(py, "NA"))?)
    {
        return Ok(Some(null(out)));
    }
    Ok(None)
}

fn null(out: &mut Vec<u8>) -> Written {
    out.extend_from_slice(NONE);
    Written::Null
}

fn unsupported(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object
        .get_type()
        .fully_qualified_name()
        .map_or_else(|_| "?".into(), |name| name.to_string());
    let is_many = |name| object.hasattr(name).unwrap_or(false);
    if is_many("__arrow_c_array__") || is_many("__arrow_c_stream__") {
        return PyTypeError::new_err(format!(
            "a {name} holds many keys: pass it alone to add_many or contains_many, not in a list or an iterator"
        ));
    }
    PyTypeError::new_err(format!(
        "a key of type {name}: a filter takes int, str, bytes, float, Decimal, bool, None, tuple, UUID, datetime, date, \
         IPv4Address, IPv6Address, and scalars of numpy. For another type make the filter with key=, a function that \
         returns one of these: key=str for time and timedelta, key=tuple for lists"
    ))
}

fn integer(object: &Bound<'_, PyAny>, encoding: Encoding, out: &mut Vec<u8>) -> PyResult<Written> {
    let py = object.py();
    if let Ok(value) = object.extract::<i64>() {
        return Ok(Written::Word(value.cast_unsigned()));
    }
    if let Ok(value) = object.extract::<u64>() {
        return Ok(Written::Word(value));
    }
    if encoding != Encoding::Python {
        return Err(PyValueError::new_err(format!(
            "{object}: this filter takes integers from {} to {}",
            i64::MIN,
            u64::MAX
        )));
    }
    let bits: usize = object.call_method0(intern!(py, "bit_length"))?.extract()?;
    let options = [("signed", true)].into_py_dict(py)?;
    let bytes = object.call_method(intern!(py, "to_bytes"), (large_len(bits), "little"), Some(&options))?;
    out.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(Written::Varying)
}

fn decimal(object: &Bound<'_, PyAny>, encoding: Encoding, out: &mut Vec<u8>) -> PyResult<Written> {
    let py = object.py();
    if encoding == Encoding::Plain {
        return Err(PyTypeError::new_err(DECIMALS));
    }
    if object.call_method0(intern!(py, "is_nan"))?.is_truthy()? {
        return Ok(null(out));
    }
    if object.call_method0(intern!(py, "is_infinite"))?.is_truthy()? {
        return Ok(write_float(object.extract()?, out));
    }
    let parts = object.call_method0(intern!(py, "as_tuple"))?;
    let (sign, digits, exponent): (u8, Bound<'_, PyTuple>, i64) = parts.extract()?;
    let len = digits.len() as i64;
    let digits = digits
        .iter()
        .map(|digit| digit.extract())
        .collect::<PyResult<Vec<u8>>>()?;
    let is_zero = digits.iter().all(|&digit| digit == 0);
    if len > MOST_DIGITS || !is_zero && exponent.saturating_add(len) > MOST_DIGITS {
        return Err(PyValueError::new_err(format!(
            "a Decimal of {len} digits with the exponent {exponent}: a key has at most {MOST_DIGITS} digits, and \
             {MOST_DIGITS} before the point"
        )));
    }
    Ok(write_decimal(
        sign == 1,
        words_of(&digits),
        exponent.saturating_neg(),
        out,
    ))
}

/// The parts one after another.
fn write_tuple(tuple: &Bound<'_, PyTuple>, encoding: Encoding, out: &mut Vec<u8>, depth: usize) -> PyResult<Written> {
    if depth == DEEPEST {
        return Err(PyValueError::new_err(format!(
            "a key of tuples within tuples, more than {DEEPEST} deep"
        )));
    }
    write_row(tuple.len(), out, |i, out| {
        write(&tuple.get_item(i)?, encoding, out, depth + 1)
    })
}

/// The types that are known by their names.
struct Known {
    uuid: Py<PyAny>,
    ip: Py<PyAny>,
    date: Py<PyAny>,
    datetime: Py<PyAny>,
    decimal: Py<PyAny>,
    /// 1970 in UTC.
    epoch: Py<PyAny>,
    utc: Py<PyAny>,
}

static KNOWN: PyOnceLock<Known> = PyOnceLock::new();

impl Known {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let (addresses, times) = (py.import("ipaddress")?, py.import("datetime")?);
        let ip = (addresses.getattr("IPv4Address")?, addresses.getattr("IPv6Address")?);
        let (datetime, utc) = (times.getattr("datetime")?, times.getattr("timezone")?.getattr("utc")?);
        let epoch = datetime.call1((1970, 1, 1, 0, 0, 0, 0, &utc))?;
        Ok(Self {
            uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
            ip: ip.into_pyobject(py)?.into_any().unbind(),
            date: times.getattr("date")?.unbind(),
            datetime: datetime.unbind(),
            decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
            epoch: epoch.unbind(),
            utc: utc.unbind(),
        })
    }
}

/// 12 bytes, those of a `SystemTime` of Rust. A time without a zone counts as UTC, a date as its
/// midnight.
fn write_time(object: &Bound<'_, PyAny>, types: &Known, out: &mut Vec<u8>) -> PyResult<Written> {
    let py = object.py();
    let mut time = object.clone();
    if !time.is_instance(types.datetime.bind(py))? {
        let part = |name| object.getattr(name);
        time = types
            .datetime
            .bind(py)
            .call1((part("year")?, part("month")?, part("day")?))?;
    }
    if time.call_method0(intern!(py, "utcoffset"))?.is_none() {
        let options = [("tzinfo", &types.utc)].into_py_dict(py)?;
        time = time.call_method("replace", (), Some(&options))?;
    }
    let since = time.sub(types.epoch.bind(py))?;
    let part = |name| since.getattr(name)?.extract::<i64>();
    // A Timedelta of pandas has nanoseconds too.
    let nanoseconds = if since.hasattr("nanoseconds")? {
        part("nanoseconds")?
    } else {
        0
    };
    let seconds = part("days")? * 86_400 + part("seconds")?;
    out.extend_from_slice(&time_bytes(
        seconds,
        (part("microseconds")? * 1000 + nanoseconds) as u32,
    ));
    Ok(Written::Fixed)
}

/// The bytes by which filters know a key: for programs in other languages.
///
/// >>> key_bytes("é"), key_bytes(258)
/// (b'\xc3\xa9', b'\x02\x01\x00\x00\x00\x00\x00\x00')
/// >>> key_bytes(("ab", b"c"))
/// b'\x02\x00\x00\x00\x00\x00\x00\x00abc'
#[pyfunction]
#[pyo3(signature = (key, /))]
pub(crate) fn key_bytes<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut spare = Vec::new();
    Ok(match self::key(key, Encoding::Python, &mut spare)? {
        Key::Word(word) => PyBytes::new(key.py(), &word.to_le_bytes()),
        Key::Bytes(bytes) => PyBytes::new(key.py(), bytes),
        Key::Null => PyBytes::new(key.py(), NONE),
    })
}
