//! The calls of CPython's C interface that PyO3's safe functions lack or make slowly, behind safe
//! functions: single integers and strings, buffers, and methods of one argument.
//!
//! `PyObject_GetBuffer`, `PyBuffer_Release` and `PyUnicode_AsUTF8AndSize` belong to the stable
//! interface from Python 3.11 or 3.10 on. Python 3.9 and 3.10 for Linux and macOS export them too,
//! with the same signatures and the same `Py_buffer`, so they are declared here. For Windows the
//! package needs 3.11 (the feature `abi3-py311`).

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyList, PyType};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

#[cfg(windows)]
use ffi::{PyBuffer_Release, PyObject_GetBuffer, PyUnicode_AsUTF8AndSize};
#[cfg(not(windows))]
unsafe extern "C" {
    fn PyUnicode_AsUTF8AndSize(unicode: *mut ffi::PyObject, size: *mut ffi::Py_ssize_t) -> *const c_char;
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
}

/// `Py_buffer`, unchanged from Python 3.3 to 3.14.
#[repr(C)]
#[derive(Default)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

/// `PyBUF_FORMAT | PyBUF_ND`: contiguous in C's order, with shape and format.
const CONTIGUOUS: c_int = 0x0004 | 0x0008;

/// The facts that [`quick`] finds about an object.
pub(crate) enum Quick<'a> {
    /// An integer of 64 bits.
    Int(i64),
    /// A string's UTF-8.
    Text(&'a [u8]),
    /// Something else.
    Other,
}

/// The content of an object if its type is exactly `int` or `str`. Runs no Python code.
///
/// An integer of more than 64 bits is [`Quick::Other`], and so is a string without UTF-8.
#[inline(always)]
pub(crate) fn quick<'a>(object: &'a Bound<'_, PyAny>) -> Quick<'a> {
    // SAFETY: the object is alive and the thread attached, both by `Bound`.
    unsafe { quick_object(object.as_ptr()) }
}

/// # Safety
///
/// The thread is attached, and the object lives as long as `'a`.
#[inline(always)]
unsafe fn quick_object<'a>(object: *mut ffi::PyObject) -> Quick<'a> {
    // SAFETY: types are compared before a function for the type is called. A string keeps its UTF-8
    // as long as it lives, and never changes it.
    unsafe {
        if ffi::PyLong_CheckExact(object) != 0 {
            let mut overflow = 0;
            let value = ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow);
            if overflow == 0 {
                return Quick::Int(value);
            }
        } else if ffi::PyUnicode_CheckExact(object) != 0 {
            let mut size = 0;
            let utf8 = PyUnicode_AsUTF8AndSize(object, &mut size);
            if !utf8.is_null() {
                return Quick::Text(slice::from_raw_parts(utf8.cast(), size.cast_unsigned()));
            }
            ffi::PyErr_Clear();
        }
    }
    Quick::Other
}

/// The UTF-8 of a string, of a subclass of `str` too. Fails for one that is not Unicode.
pub(crate) fn utf8<'a>(string: &'a Bound<'_, pyo3::types::PyString>) -> PyResult<&'a [u8]> {
    let mut size = 0;
    // SAFETY: it is a string; the rest as in `quick`.
    unsafe {
        let utf8 = PyUnicode_AsUTF8AndSize(string.as_ptr(), &mut size);
        if utf8.is_null() {
            return Err(PyErr::fetch(string.py()));
        }
        Ok(slice::from_raw_parts(utf8.cast(), size.cast_unsigned()))
    }
}

/// The content of the list's item `i`, if its type is exactly `int` or `str`; [`Quick::Other`]
/// behind the end.
///
/// With the interpreter's lock, the list keeps the item alive. On free threads another thread may
/// remove the item, so a reference to a string goes to `kept`.
///
/// # Safety
///
/// While the result lives, `kept` keeps what it has, and this thread runs no Python code: it could
/// remove the item from the list.
#[inline(always)]
pub(crate) unsafe fn quick_item<'a, 'py>(
    list: &'a Bound<'py, PyList>,
    i: usize,
    kept: &mut Vec<Bound<'py, PyAny>>,
) -> Quick<'a> {
    if cfg!(Py_GIL_DISABLED) {
        // `PyList_GetItemRef`, which checks the index.
        let Ok(item) = list.get_item(i) else {
            return Quick::Other;
        };
        // SAFETY: the thread is attached; an integer is copied, and `kept` keeps a string.
        let quick = unsafe { quick_object(item.as_ptr()) };
        if let Quick::Text(_) = quick {
            kept.push(item);
        }
        return quick;
    }
    // SAFETY: it is a list, and `PyList_GetItem` checks the index. The list keeps the item alive,
    // since by the caller's promise and the interpreter's lock nothing changes the list.
    unsafe {
        let item = ffi::PyList_GetItem(list.as_ptr(), i.cast_signed());
        if item.is_null() {
            ffi::PyErr_Clear();
            return Quick::Other;
        }
        quick_object(item)
    }
}

/// A contiguous buffer of an object, held until it is dropped.
pub(crate) struct Buffer {
    raw: Box<RawBuffer>,
}

// SAFETY: the memory stays where it is until the release, which attaches to the interpreter.
unsafe impl Send for Buffer {}
// SAFETY: the same; the fields are only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The buffer of `object`, if it has one that is contiguous.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut raw = Box::<RawBuffer>::default();
        // Objects count their buffers, some of them without atomics: bytearray before Python 3.14.
        // SAFETY: the object is alive; the view is writable and does not move until its release.
        let get = || unsafe { PyObject_GetBuffer(object.as_ptr(), (&raw mut *raw).cast(), CONTIGUOUS) };
        if with_critical_section(object, get) != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { raw })
    }

    /// The bytes. Whoever may write to them can do so at any time, as to an array of numpy's.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.raw.len == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps this many contiguous bytes there until the release.
        unsafe { slice::from_raw_parts(self.raw.buf.cast(), self.raw.len.cast_unsigned()) }
    }

    /// The type of an item in the language of the module `struct`, and its size.
    pub(crate) fn item(&self) -> PyResult<(&str, usize)> {
        let format = if self.raw.format.is_null() {
            "B"
        } else {
            // SAFETY: the exporter's string ends in a 0 and lives until the release.
            unsafe { CStr::from_ptr(self.raw.format) }
                .to_str()
                .map_err(|_| PyValueError::new_err("the buffer's format is not ASCII"))?
        };
        Ok((format, self.raw.itemsize.cast_unsigned()))
    }

    /// The number of dimensions.
    pub(crate) fn dimensions(&self) -> usize {
        usize::try_from(self.raw.ndim).unwrap_or(0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        Python::attach(|py| {
            // SAFETY: the view has a reference to its exporter, or null.
            let exporter = unsafe { Bound::from_borrowed_ptr_or_opt(py, self.raw.obj) };
            // SAFETY: the view came from `PyObject_GetBuffer` and is released once.
            let mut release = || unsafe { PyBuffer_Release((&raw mut *self.raw).cast()) };
            match &exporter {
                Some(exporter) => with_critical_section(exporter, release),
                None => release(),
            }
        });
    }
}

/// Slices of memory that another program part owns.
///
/// # Safety
///
/// `len` values of `T`, valid for every bit pattern, lie at `data` as long as `'a` lasts.
pub(crate) unsafe fn lend<'a, T>(data: *const c_void, len: usize) -> PyResult<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    let data: *const T = data.cast();
    if data.is_null() || !data.is_aligned() || len.checked_mul(size_of::<T>()).is_none_or(|n| n > isize::MAX as usize) {
        return Err(PyValueError::new_err(format!(
            "{len} values at address {data:p}: null, not aligned, or too many"
        )));
    }
    // SAFETY: the caller's promise; null, alignment and size were checked.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// A class with a method of one argument. PyO3 passes arguments as a tuple for Python 3.9, which
/// takes 30 ns longer.
pub(crate) trait OneArgument: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    /// The method.
    fn call(&self, argument: &Bound<'_, PyAny>) -> PyResult<bool>;
}

unsafe extern "C" fn trampoline<T: OneArgument>(
    this: *mut ffi::PyObject,
    argument: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls methods from attached threads, with references that outlive the
    // call. The method's descriptor checked that `this` is a `T`.
    let (py, this, argument) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, this), Borrowed::from_ptr(py, argument))
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as above.
        unsafe { this.cast_unchecked::<T>() }.get().call(&argument)
    }));
    let error = match result {
        // SAFETY: these are objects that live as long as the interpreter.
        Ok(Ok(answer)) => return unsafe { ffi::PyBool_FromLong(answer.into()) },
        Ok(Err(error)) => error,
        Err(_) => PanicException::new_err("a bug in lanebloom: panic in add"),
    };
    error.restore(py);
    ptr::null_mut()
}

/// Gives a class that is `T`, or extends it, the method `name`.
///
/// The interpreter calls a method without detours only if the object's own class has it.
pub(crate) fn add_method<T: OneArgument>(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    doc: &'static CStr,
) -> PyResult<()> {
    if !class.is_subclass_of::<T>()? {
        return Err(PyTypeError::new_err("a class that does not extend the method's"));
    }
    // Leaked: the descriptor refers to it as long as the interpreter lives.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: trampoline::<T>,
        },
        ml_flags: ffi::METH_O,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: the type and the definition live; the call returns a new reference or an error.
    let method =
        unsafe { Bound::from_owned_ptr_or_err(class.py(), ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr(name.to_string_lossy(), method)
}
