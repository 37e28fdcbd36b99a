//! [`Filter`], the class that all others extend. `filter.rs` has its methods.

use crate::any::Any;
use pyo3::prelude::*;

/// What all filters share: a set of keys that answers "certainly not" or "probably".
///
/// Make one by a class such as BloomFilter, or by Filter.load(path) and Filter.from_bytes(data),
/// which return the class that was saved.
#[pyclass(subclass, frozen, module = "lanebloom")]
pub(crate) struct Filter {
    /// In a box, since a filter wants more alignment than Python's allocator gives an object.
    pub(crate) any: Box<Any>,
    /// Makes a key of an object.
    pub(crate) key: Option<Py<PyAny>>,
}

const _: () = assert!(align_of::<Filter>() <= 8, "Python aligns objects to 16 bytes at most");

impl Filter {
    pub(crate) fn new(any: Any, key: Option<Py<PyAny>>) -> Self {
        Self {
            any: Box::new(any),
            key,
        }
    }

    /// Calls `f` with the object that is the key of `object`.
    #[inline(always)]
    pub(crate) fn keyed<R>(
        &self,
        object: &Bound<'_, PyAny>,
        f: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
    ) -> PyResult<R> {
        match &self.key {
            None => f(object),
            Some(key) => f(&key.bind(object.py()).call1((object,))?),
        }
    }
}
