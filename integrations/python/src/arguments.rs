//! Arguments of constructors and methods: what is out of range is a ValueError that names the value
//! and the limit.

use lanebloom::hash::AnyHasher;
use lanebloom::{FastHash, Murmur3, SipHash13};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The argument `threads`.
pub(crate) fn check_threads(threads: usize) -> PyResult<usize> {
    const MOST: usize = 1024;
    if (1..=MOST).contains(&threads) {
        return Ok(threads);
    }
    Err(PyValueError::new_err(format!("threads={threads}: from 1 to {MOST}")))
}

/// An integer that `T` has.
#[derive(Clone, Copy)]
pub(crate) struct Number<T>(pub(crate) T);

macro_rules! numbers {
    ($($int:ident)*) => {$(
        impl FromPyObject<'_, '_> for Number<$int> {
            type Error = PyErr;

            fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
                match object.extract() {
                    Ok(value) => Ok(Self(value)),
                    Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Err(error),
                    Err(_) => {
                        let (least, most) = ($int::MIN, $int::MAX);
                        let text = format!("{}: an integer from {least} to {most}", &*object);
                        Err(PyValueError::new_err(text))
                    }
                }
            }
        }
    )*};
}

numbers!(u32 i32 u64 usize);

macro_rules! named {
    ($($name:ident: $int:ident)*) => {$(
        /// The argument of this name, which an error names.
        pub(crate) fn $name(object: &Bound<'_, PyAny>) -> PyResult<Number<$int>> {
            let (py, name) = (object.py(), stringify!($name));
            object.extract().map_err(|error: PyErr| {
                if error.is_instance_of::<PyTypeError>(py) {
                    let of = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
                    PyTypeError::new_err(format!("{name}={object}: an integer, not a value of type {of}"))
                } else {
                    PyValueError::new_err(format!("{name}={}", error.value(py)))
                }
            })
        }
    )*};
}

named!(expected: usize threads: usize columns: usize column: usize generations: usize row_group: usize bound: u64 seed: u32);

/// The argument `int_bytes`: the bytes of an integer of another system.
#[derive(Clone, Copy)]
pub(crate) struct IntBytes(pub(crate) usize);

impl FromPyObject<'_, '_> for IntBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<Number<usize>>()?.0 {
            bytes @ (4 | 8) => Ok(Self(bytes)),
            other => Err(PyValueError::new_err(format!("int_bytes={other}: 4 or 8"))),
        }
    }
}

/// A secret key.
#[derive(Clone, Copy)]
pub(crate) struct SecretKey(pub(crate) SipHash13);

impl FromPyObject<'_, '_> for SecretKey {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let Ok(bytes) = object.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err(
                "a secret is bytes, the attribute secret of a filter",
            ));
        };
        match bytes.as_bytes().try_into() {
            Ok(key) => Ok(Self(SipHash13::with_key(key))),
            Err(_) => Err(PyValueError::new_err(format!(
                "a secret of {} bytes: it has 16",
                bytes.as_bytes().len()
            ))),
        }
    }
}

/// A secret key, or whether to make one.
pub(crate) struct Secret(pub(crate) Option<SipHash13>);

impl FromPyObject<'_, '_> for Secret {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let key = match object.cast::<PyBool>() {
            Ok(wanted) if !wanted.is_true() => return Ok(Self(None)),
            // Not `SipHash13::random`, whose next key both processes have after a fork.
            Ok(_) => object
                .py()
                .import("os")?
                .call_method1("urandom", (16,))?
                .extract::<SecretKey>()?,
            Err(_) => object.extract::<SecretKey>()?,
        };
        Ok(Self(Some(key.0)))
    }
}

/// The hasher of a new filter.
pub(crate) fn hasher(name: &str, seed: Number<u32>, secret: Secret) -> PyResult<AnyHasher> {
    let exclude = |one: &str| PyValueError::new_err(format!("{one} exclude each other"));
    Ok(match (name, secret.0) {
        ("murmur3", Some(_)) if seed.0 != 0 => return Err(exclude("seed and secret")),
        ("murmur3", Some(secret)) => secret.into(),
        ("murmur3", None) => Murmur3::with_seed(seed.0).into(),
        ("fast" | "prehashed", Some(_)) => return Err(exclude(&format!("hasher=\"{name}\" and secret"))),
        ("fast", None) => FastHash::with_seed(seed.0).into(),
        ("prehashed", None) if seed.0 != 0 => return Err(exclude("hasher=\"prehashed\" and seed")),
        ("prehashed", None) => AnyHasher::Prehashed,
        _ => {
            return Err(PyValueError::new_err(format!(
                "hasher=\"{name}\": \"murmur3\", \"fast\" or \"prehashed\" (and secret=True is SipHash)"
            )));
        }
    })
}

/// A span of time: a timedelta, or seconds.
pub(crate) struct Span(pub(crate) Duration);

impl FromPyObject<'_, '_> for Span {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let limits = "more than 0, and at most 4611686018 seconds";
        let bad = || PyValueError::new_err(format!("window={}: {limits}", &*object));
        if object.is_instance_of::<PyDelta>() {
            return object.extract().map(Self).map_err(|_| bad());
        }
        let seconds: f64 = object.extract()?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| bad())
    }
}

/// Strings of any iterable, except for the letters of a string.
pub(crate) struct Strings(pub(crate) Vec<String>);

impl FromPyObject<'_, '_> for Strings {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(format!("{}: a list of strings", object.repr()?)));
        }
        let strings = object.try_iter()?.map(|string| string?.extract());
        strings.collect::<PyResult<_>>().map(Self)
    }
}

/// The path of a file: str, bytes, or what has one of these as `__fspath__`.
pub(crate) struct FilePath(pub(crate) PathBuf);

impl FromPyObject<'_, '_> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let path = object.py().import("os")?.call_method1("fsdecode", (object,))?;
        path.extract().map(Self)
    }
}

/// The exception for a file that fails, with its name as those of `open` have.
pub(crate) fn of_file(path: &Path, error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => Python::attach(|py| {
            let text = py.import("os").and_then(|os| os.call_method1("strerror", (code,)));
            match text {
                Ok(text) => PyOSError::new_err((code, text.unbind(), path.to_path_buf())),
                Err(error) => error,
            }
        }),
        None => error.into(),
    }
}

/// A file to map. A pipe cannot be mapped, and opening one would wait for its other end.
pub(crate) fn open_regular(path: &Path) -> PyResult<File> {
    let metadata = fs::metadata(path).map_err(|error| of_file(path, error))?;
    if metadata.is_file() {
        return open(path);
    }
    Err(PyValueError::new_err(format!(
        "{} is not a regular file, and cannot be mapped: load reads it",
        path.display()
    )))
}

/// A file to read.
pub(crate) fn open(path: &Path) -> PyResult<File> {
    let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        // Its error, with the name.
        true => (&file).read(&mut [0]).map(|_| file),
        false => Ok(file),
    });
    opened.map_err(|error| of_file(path, error))
}
