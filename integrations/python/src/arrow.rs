//! Arrow's C data interface: arrays and streams of pyarrow, polars, pandas and DuckDB as columns;
//! answers as arrays that they read.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html` specify
//! the three structures; `PyCapsuleInterface.html` says how Python passes them on.
//!
//! `arrow-schema` and `arrow-data` 60.1 have two of the structures. With them this file was 120
//! lines shorter, and the package had 42 dependencies in place of 27, took 19% more processor time
//! to compile, and was 5% larger. They refuse a column if a value of its metadata is not UTF-8,
//! which pyarrow allows, and panic if a name is not. `pyo3-arrow` depends on them, and on more.

use crate::bytes::{DECIMALS, HALVES, MOST_DIGITS};
use crate::columns::{Batch, Column, Unit, Values};
use crate::ffi::lend;
use crate::numpy::answers;
use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyByteArray, PyCapsule, PyIterator, PyList, PyTuple};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::{mem, slice};

/// The type of an array. All zeros, or filled by a producer, or by `__arrow_c_array__`: so each
/// pointer is null, or points to memory of the interface's form that lives as long as the schema.
/// Nothing else writes to the fields.
#[repr(C)]
#[derive(Default)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    children_len: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
#[derive(Default)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    buffers_len: i64,
    children_len: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

#[repr(C)]
#[derive(Default)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

/// A structure that its producer releases. The default, all zeros, has nothing to release.
trait Released: Default {
    fn release(&mut self);
}

macro_rules! released {
    ($($name:ident)*) => {$(
        impl Released for $name {
            fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the interface's promise: it is called once, for `release` becomes
                    // null, from any thread.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}

released!(Schema Array RawStream);

/// A structure of a producer, released when dropped.
#[repr(transparent)]
struct Owned<T: Released>(T);

// SAFETY: the interface allows any thread to read and release the structures, one at a time; here
// they are only read until they are dropped.
unsafe impl<T: Released> Send for Owned<T> {}
// SAFETY: the same.
unsafe impl<T: Released> Sync for Owned<T> {}

impl<T: Released> Owned<T> {
    /// Moves the structure out of a capsule of the interface. On free threads, the caller is in the
    /// capsule's critical section, or in that of the capsule that comes with it.
    fn take(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<Self> {
        let capsule = capsule.cast::<PyCapsule>()?;
        let raw: *mut T = capsule.pointer_checked(Some(name))?.as_ptr().cast();
        // SAFETY: a capsule of this name points to such a structure. It stays valid as what the
        // interface calls released, and is moved while no other thread runs this for the capsule.
        Ok(Self(mem::take(unsafe { &mut *raw })))
    }
}

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Arrays of one type, one after another.
pub(crate) struct Stream {
    schema: Owned<Schema>,
    /// A stream, or a single array before it was taken.
    rest: Rest,
}

enum Rest {
    Stream(Box<Owned<RawStream>>),
    One(Option<Owned<Array>>),
}

impl Stream {
    /// The arrays of an object, if it speaks the interface.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Some(export) = object.getattr_opt("__arrow_c_array__")? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = export.call0()?.extract()?;
            // One thread gets both.
            return with_critical_section(&schema, || {
                Ok(Some(Self {
                    schema: Owned::take(&schema, c"arrow_schema")?,
                    rest: Rest::One(Some(Owned::take(&array, c"arrow_array")?)),
                }))
            });
        }
        let Some(export) = object.getattr_opt("__arrow_c_stream__")? else {
            return Ok(None);
        };
        let capsule = export.call0()?;
        let take = || Owned::<RawStream>::take(&capsule, c"arrow_array_stream");
        let mut stream = Box::new(with_critical_section(&capsule, take)?);
        let mut schema = Owned(Schema::default());
        let get_schema = stream.0.get_schema.ok_or_else(released_error)?;
        // SAFETY: the stream is not released; it writes a schema there, or an error.
        let code = unsafe { get_schema(&mut stream.0, &mut schema.0) };
        if code != 0 {
            return Err(stream_error(&mut stream.0, code));
        }
        Ok(Some(Self {
            schema,
            rest: Rest::Stream(stream),
        }))
    }

    /// Fails for the type Object of polars, whose Arrow form is addresses in memory. polars has no
    /// other type of a fixed size.
    pub(crate) fn refuse_addresses(&self) -> PyResult<()> {
        match self.schema.0.find(&|format| format.starts_with("w:")) {
            None => Ok(()),
            Some(schema) => Err(PyTypeError::new_err(format!(
                "a column{} of polars' type Object: Arrow gets the addresses of its values. Pass a list, \
                 series.to_list(), or cast it before: pl.Series(map(str, values))",
                schema.name()
            ))),
        }
    }

    /// Fails for types of a relation of DuckDB's that other values of Arrow stand for.
    pub(crate) fn refuse_types(&self, relation: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(types) = relation.getattr_opt("types")? else {
            return Ok(());
        };
        for (of, schema) in types.try_iter()?.zip(self.schema.0.children()) {
            refuse_type(&of?, schema)?;
        }
        Ok(())
    }

    /// The next array, or nothing after the last one.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let array = match &mut self.rest {
            Rest::One(array) => array.take(),
            Rest::Stream(stream) => {
                let mut array = Owned(Array::default());
                let get_next = stream.0.get_next.ok_or_else(released_error)?;
                // A producer may work long, by threads that take the interpreter's lock.
                let (from, to) = (&mut *stream, &mut array);
                // SAFETY: as for the schema. The end is an array that is released.
                let code = py.detach(move || unsafe { get_next(&mut from.0, &mut to.0) });
                if code != 0 {
                    return Err(stream_error(&mut stream.0, code));
                }
                array.0.release.is_some().then_some(array)
            }
        };
        let Some(array) = array else { return Ok(None) };
        // SAFETY: schema and array describe each other, and the batch owns the array. What it lies
        // in stays where it is when the structure is moved.
        let mut column = unsafe { column(&self.schema.0, &array.0, 0, None)? };
        // A table of one column is that column.
        while let Values::Rows(columns) = &mut column.values
            && columns.len() == 1
        {
            let mut one = columns.remove(0);
            one.valid.append(&mut column.valid);
            column = one;
        }
        Ok(Some(Batch::new(column, array)))
    }
}

/// Fails for a column, or a part of one, in a format of nanoseconds that begins with one of `lost`:
/// those that Python's objects would lose. `of` has the columns, or is their type.
pub(crate) fn refuse_nanoseconds(of: &Bound<'_, PyAny>, lost: &[&str]) -> PyResult<()> {
    let schema = match of.getattr_opt("__arrow_c_schema__")? {
        Some(export) => {
            let capsule = export.call0()?;
            with_critical_section(&capsule, || Owned::<Schema>::take(&capsule, c"arrow_schema"))?
        }
        None => match Stream::of(of)? {
            Some(stream) => stream.schema,
            None => return Ok(()),
        },
    };
    let is_lost = |format: &str| lost.iter().any(|lost| format.starts_with(lost));
    match schema.0.find(&is_lost) {
        None => Ok(()),
        Some(schema) => Err(PyTypeError::new_err(format!(
            "a column{} of nanoseconds: its values in Python have no nanoseconds, which a function, or the column of a \
             Parquet filter, needs. Cast it to microseconds or to int64. A Parquet filter takes pyarrow's scalars: \
             list(series.to_arrow())",
            schema.name()
        ))),
    }
}

/// Answers as a bitmap: an Arrow array of truth values, without a copy.
///
/// pyarrow.array(answers) and polars.Series(answers) read it, as does whatever else speaks Arrow's
/// C interface; numpy.asarray(answers) copies it. Without such a library it is a sequence.
///
/// >>> f = BloomFilter(1000)
/// >>> f.update(["a"])
/// >>> found = f.contains_many(["a", "b"], as_arrow=True)
/// >>> len(found), list(found)
/// (2, [True, False])
#[pyclass(frozen, module = "lanebloom")]
pub(crate) struct ArrowAnswers {
    bits: Arc<[u64]>,
    len: usize,
}

impl ArrowAnswers {
    /// The answers: 1 for true, 0 for false.
    pub(crate) fn new(answers: &[u8]) -> Self {
        let tile = |tile: &[u8]| {
            let bits = tile.iter().enumerate().map(|(i, &answer)| u64::from(answer) << i);
            // Arrow's bits are those of bytes, the lowest first.
            bits.sum::<u64>().to_le()
        };
        Self {
            bits: answers.chunks(64).map(tile).collect(),
            len: answers.len(),
        }
    }

    fn get(&self, i: usize) -> bool {
        u64::from_le(self.bits[i / 64]) >> (i % 64) & 1 != 0
    }
}

#[pymethods]
impl ArrowAnswers {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __getitem__(&self, i: isize) -> PyResult<bool> {
        let place = if i < 0 { i + self.len as isize } else { i };
        match usize::try_from(place) {
            Ok(place) if place < self.len => Ok(self.get(place)),
            _ => Err(PyIndexError::new_err(format!("answer {i} of {}", self.len))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let answers = (0..self.len).map(|i| self.get(i));
        PyList::new(py, answers)?.try_iter()
    }

    fn __repr__(&self) -> String {
        let ones: u32 = self.bits.iter().map(|word| word.count_ones()).sum();
        format!("<ArrowAnswers: {ones} of {} true>", self.len)
    }

    /// The answers as an array of numpy, which needs a copy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("a bitmap is no array of numpy: it needs a copy"));
        }
        let bytes: Vec<u8> = (0..self.len).map(|i| self.get(i).into()).collect();
        let array = answers(PyByteArray::new(py, &bytes), "?")?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The array as capsules of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface allows a producer to ignore it.
        drop(requested_schema);
        let schema = Owned(Schema {
            format: c"b".as_ptr(),
            name: c"".as_ptr(),
            release: Some(release_schema),
            ..Schema::default()
        });
        let mut owner = Box::new(ExportedBits {
            buffers: [std::ptr::null(), self.bits.as_ptr().cast()],
            _bits: Arc::clone(&self.bits),
        });
        let array = Owned(Array {
            length: self.len as i64,
            buffers_len: 2,
            buffers: owner.buffers.as_mut_ptr(),
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
            ..Array::default()
        });
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        (schema, array).into_pyobject(py)
    }
}

/// The memory to which an array of [`ArrowAnswers`] points.
struct ExportedBits {
    buffers: [*const c_void; 2],
    _bits: Arc<[u64]>,
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the consumer passes the structure that it got. Its strings are static.
    unsafe { (*schema).release = None };
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: the consumer passes the structure that it got, once. `private_data` came from
    // `Box::into_raw`. Only the count of an `Arc` is shared with other threads.
    unsafe {
        (*array).release = None;
        drop(Box::<ExportedBits>::from_raw((*array).private_data.cast()));
    }
}

fn released_error() -> PyErr {
    PyValueError::new_err("an Arrow stream that was used before")
}

fn stream_error(stream: &mut RawStream, code: c_int) -> PyErr {
    let mut text = String::from("an Arrow stream failed");
    if let Some(get) = stream.get_last_error {
        // SAFETY: after a failed call the stream's text, if any, is valid until the next call.
        unsafe {
            let last = get(stream);
            if !last.is_null() {
                text = CStr::from_ptr(last).to_string_lossy().into_owned();
            }
        }
    }
    PyOSError::new_err((code, text))
}

/// A length that the interface has as a signed number.
fn size(value: i64) -> PyResult<usize> {
    usize::try_from(value)
        .map_err(|_| PyValueError::new_err(format!("an Arrow array with a length or offset of {value}")))
}

/// The column of an array of this schema: `parent` is the first row and the number of rows, if a
/// struct has it.
///
/// # Safety
///
/// The array has the layout that the format string names, and lives as long as `'static` is used.
unsafe fn column(schema: &Schema, array: &Array, skip: usize, rows: Option<usize>) -> PyResult<Column<'static>> {
    let format = schema.format().ok_or_else(released_error)?;
    let first = size(array.offset)?
        .checked_add(skip)
        .ok_or_else(|| unsupported(format))?;
    let len = match rows {
        Some(rows) if size(array.length)? < skip.saturating_add(rows) => {
            return Err(PyValueError::new_err(format!(
                "an Arrow struct of {skip} + {rows} rows has a column of {}",
                array.length
            )));
        }
        Some(rows) => rows,
        None => size(array.length)?,
    };
    let end = first.checked_add(len).ok_or_else(|| unsupported(format))?;
    let buffer = |i: usize| -> PyResult<*const c_void> {
        if i >= size(array.buffers_len)? || array.buffers.is_null() {
            return Err(PyValueError::new_err(format!(
                "an Arrow array of format {format:?} without buffer {i}"
            )));
        }
        // SAFETY: there are this many pointers.
        Ok(unsafe { *array.buffers.add(i) })
    };
    macro_rules! values {
        ($i:expr, $len:expr) => {
            // SAFETY: the specification says how many values each buffer of a format has for an
            // array of this offset and length, and the caller promises that the array has them.
            unsafe { lend(buffer($i)?, $len) }?
        };
    }
    /// The values from `first` on.
    macro_rules! typed {
        ($variant:path) => {
            $variant(&values!(1, end)[first..])
        };
    }
    let mut stored_otherwise = None;
    let mut dictionary = None;
    if schema.dictionary().is_some() && !matches!(format, "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L") {
        return Err(PyTypeError::new_err(format!(
            "an Arrow dictionary with indices of format {format:?}: they are integers"
        )));
    }
    // SAFETY: the interface's promise.
    if let (Some(schema), Some(array)) = (schema.dictionary(), unsafe { array.dictionary.as_ref() }) {
        // SAFETY: the promise of this function holds for the dictionary too.
        dictionary = Some(Box::new(unsafe { column(schema, array, 0, None)? }));
    }
    let time = |per_second| Unit { per_second, seconds: 1 };
    let (extension, name) = (schema.metadata("ARROW:extension:name"), schema.name());
    if let Some(other) = extension
        && !matches!(other, "arrow.uuid" | "arrow.json" | "arrow.bool8")
    {
        return Err(PyTypeError::new_err(format!(
            "an Arrow column{name} of the extension type {other:?}: its bytes in Arrow are not its values. Cast it to \
             strings or numbers; in DuckDB, CAST(x AS VARCHAR). Or pass its storage, if that is the key"
        )));
    }
    let values = match format {
        "c" if extension == Some("arrow.bool8") => Values::Bools(&values!(1, end)[first..]),
        "w:16" if extension == Some("arrow.uuid") => {
            let bytes = end.checked_mul(16).ok_or_else(|| unsupported(format))?;
            Values::Uuids(&values!(1, bytes)[first * 16..])
        }
        "n" => Values::Nulls,
        "b" => Values::Bits(values!(1, end.div_ceil(8)), first),
        "c" => typed!(Values::I8),
        "C" => typed!(Values::U8),
        "s" => typed!(Values::I16),
        "S" => typed!(Values::U16),
        "i" => typed!(Values::I32),
        "I" => typed!(Values::U32),
        "l" | "L" => typed!(Values::Words),
        "e" => {
            stored_otherwise = Some(HALVES);
            typed!(Values::F16)
        }
        "f" => typed!(Values::F32),
        "g" => typed!(Values::F64),
        "tdD" => typed!(Values::Days),
        "tdm" => {
            stored_otherwise = Some("date64: this filter takes days. Cast it: values.cast(pyarrow.date32())");
            Values::Times(&values!(1, end)[first..], time(1000), false)
        }
        "u" | "z" => {
            let offsets: &[i32] = if len == 0 { &[0] } else { &values!(1, end + 1)[first..] };
            let bytes = offsets.last().copied().unwrap_or(0);
            Values::Bytes32(offsets, values!(2, size(bytes.into())?))
        }
        "U" | "Z" => {
            let offsets: &[i64] = if len == 0 { &[0] } else { &values!(1, end + 1)[first..] };
            let bytes = offsets.last().copied().unwrap_or(0);
            Values::Bytes64(offsets, values!(2, size(bytes)?))
        }
        "vu" | "vz" => {
            let views = &values!(1, end)[first..];
            let buffers = size(array.buffers_len)?.saturating_sub(3);
            let sizes: &[i64] = values!(buffers + 2, buffers);
            let buffers = (0..buffers).map(|i| Ok(values!(i + 2, size(sizes[i])?)));
            Values::Views(views, buffers.collect::<PyResult<_>>()?)
        }
        "+s" => {
            let children = schema.children();
            if children.len() == 0 || size(array.children_len)? != children.len() {
                return Err(PyValueError::new_err("an Arrow table without columns has no keys"));
            }
            let columns = children.enumerate().map(|(i, schema)| {
                // SAFETY: there are as many arrays, and the promise holds for each.
                unsafe { column(schema, &**array.children.add(i), first, Some(len)) }
            });
            Values::Rows(columns.collect::<PyResult<_>>()?)
        }
        _ => {
            if let Some(width) = format.strip_prefix("w:") {
                let width = width.parse().map_err(|_| unsupported(format))?;
                let bytes = end.checked_mul(width).ok_or_else(|| unsupported(format))?;
                Values::Fixed(&values!(1, bytes)[first * width..], width)
            } else if let Some((width, scale)) = decimal(format) {
                stored_otherwise = Some(DECIMALS);
                let bytes = end.checked_mul(width).ok_or_else(|| unsupported(format))?;
                Values::Decimals(&values!(1, bytes)[first * width..], width, scale)
            } else if let Some(unit) = format.strip_prefix("ts").and_then(|rest| rest.split(':').next()) {
                let unit = match unit {
                    "s" => {
                        stored_otherwise = Some(
                            "timestamps in seconds: this filter takes ms, us or ns. Cast them to the unit that was \
                             stored: values.cast(pyarrow.timestamp('ms')) for one",
                        );
                        time(1)
                    }
                    "m" => time(1000),
                    "u" => time(1_000_000),
                    "n" => time(1_000_000_000),
                    _ => return Err(unsupported(format)),
                };
                Values::Times(&values!(1, end)[first..], unit, false)
            } else {
                return Err(unsupported(format));
            }
        }
    };
    let mut result = Column::new(values, len);
    result.stored_otherwise = stored_otherwise;
    if array.null_count != 0 && format != "n" && len > 0 && !buffer(0)?.is_null() {
        result.valid.push((values!(0, end.div_ceil(8)), first));
    }
    if let Some(dictionary) = dictionary {
        let valid = mem::take(&mut result.valid);
        result = Column::new(Values::Dictionary(Box::new(result), dictionary), len);
        result.valid = valid;
    }
    Ok(result)
}

/// The bytes of a decimal, and the digits after its point: `d:precision,scale`, and its bits unless
/// they are 128. Integers of 128 bits have a format of polars.
fn decimal(format: &str) -> Option<(usize, i64)> {
    if format == "_pli128" {
        return Some((16, 0));
    }
    let mut parts = format.strip_prefix("d:")?.split(',');
    let (_precision, scale) = (parts.next()?, parts.next()?.parse().ok()?);
    let width = match parts.next() {
        None | Some("128") => 16,
        Some("32") => 4,
        Some("64") => 8,
        Some("256") => 32,
        Some(_) => return None,
    };
    (scale >= -MOST_DIGITS).then_some((width, scale))
}

impl Schema {
    /// The format, unless the schema was released.
    fn format(&self) -> Option<&str> {
        // SAFETY: it is null, or a string that ends in a 0.
        let format = unsafe { self.format.as_ref().map(|format| CStr::from_ptr(format)) };
        Some(format?.to_str().unwrap_or("?"))
    }

    /// The name for an error, with a space before it.
    fn name(&self) -> String {
        // SAFETY: it is null, or a string that ends in a 0.
        match unsafe { self.name.as_ref().map(|name| CStr::from_ptr(name)) } {
            Some(name) if !name.is_empty() => format!(" {:?}", name.to_string_lossy()),
            _ => String::new(),
        }
    }

    /// The value of this name in the metadata.
    fn metadata(&self, name: &str) -> Option<&str> {
        let mut at: *const u8 = self.metadata.cast();
        if at.is_null() {
            return None;
        }
        // SAFETY: the interface's metadata is a number of pairs, and then the two texts of each,
        // with their lengths before them. Numbers have 32 bits, in the machine's order, and no
        // alignment.
        unsafe {
            let number = |at: *const u8| usize::try_from(at.cast::<i32>().read_unaligned()).unwrap_or(0);
            let pairs = number(at);
            at = at.add(4);
            let mut text = || {
                let text = slice::from_raw_parts(at.add(4), number(at));
                at = at.add(4 + text.len());
                text
            };
            let mut pairs = (0..pairs).map(|_| (text(), text()));
            let (_, value) = pairs.find(|(key, _)| *key == name.as_bytes())?;
            str::from_utf8(value).ok()
        }
    }

    /// The columns of a table, and the fields of a struct.
    fn children(&self) -> impl ExactSizeIterator<Item = &Self> {
        let len = match self.children.is_null() {
            true => 0,
            false => usize::try_from(self.children_len).unwrap_or(0),
        };
        // SAFETY: there are this many.
        (0..len).map(|i| unsafe { &**self.children.add(i) })
    }

    fn dictionary(&self) -> Option<&Self> {
        // SAFETY: it is null, or points to a schema.
        unsafe { self.dictionary.as_ref() }
    }

    /// A column with such a format: this one, one in it, or its dictionary.
    fn find(&self, is: &dyn Fn(&str) -> bool) -> Option<&Self> {
        if is(self.format()?) {
            return Some(self);
        }
        self.children()
            .chain(self.dictionary())
            .find_map(|child| child.find(is))
    }
}

/// Fails for a type of DuckDB's whose Arrow form is not the value, and does not say so.
fn refuse_type(of: &Bound<'_, PyAny>, schema: &Schema) -> PyResult<()> {
    let id: String = of.getattr("id")?.extract()?;
    let is_uuid = schema.metadata("ARROW:extension:name") == Some("arrow.uuid");
    let advice = match id.as_str() {
        "uuid" if !is_uuid => "SET arrow_lossless_conversion = true, or CAST(x AS VARCHAR) if the texts are the keys",
        "bit" | "bignum" | "varint" | "uhugeint" | "variant" => "CAST(x AS VARCHAR)",
        "struct" => {
            for (field, child) in of.getattr("children")?.try_iter()?.zip(schema.children()) {
                refuse_type(&field?.get_item(1)?, child)?;
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    Err(PyTypeError::new_err(format!(
        "a column{} of DuckDB's type {of}: Arrow gets other values. In SQL, {advice}",
        schema.name()
    )))
}

fn unsupported(format: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "an Arrow array of format {format:?}: keys are integers, floats, decimals, bool, strings, binary, dates, \
         timestamps, dictionaries and structs of these. Cast other columns: times and durations to int64, lists to \
         strings. Or make the filter with key=str, which takes one object, or the tuple of one row, after another"
    ))
}
