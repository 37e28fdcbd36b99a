//! Filters for Python: the extension module `lanebloom._lanebloom`.
//!
//! A Python object becomes a key in `key.rs`, an array a column in `numpy.rs` or `arrow.rs`.
//! `source.rs` tells them apart. `columns.rs` hashes columns, `task.rs` runs the loops over keys,
//! `engine.rs` and `any.rs` know each type of filter, and `filter.rs` has the classes, whose
//! arguments `arguments.rs` reads. `parquet.rs` finds a filter in a Parquet file. `bank.rs` has the
//! class of many filters. `ffi.rs` is the room for CPython's C interface.
//!
//! The module needs no interpreter's lock. All classes are frozen: a method borrows its object
//! shared, and the filters are atomic. A bank has a lock, which most calls share. What belongs to
//! Python (lists, buffers, capsules) is held by references or in a critical section while it is
//! read; `Py_GIL_DISABLED` marks the places.

mod any;
mod arguments;
mod arrow;
mod bank;
mod bytes;
mod columns;
mod engine;
mod ffi;
mod filter;
mod key;
mod numpy;
mod parquet;
mod source;
mod task;

/// Fast approximate sets: Bloom and cuckoo filters that share a file format with Rust.
#[pyo3::pymodule(gil_used = false)]
mod _lanebloom {
    use crate::any::{Any, java, split_block};
    use crate::arguments::{IntBytes, SecretKey};
    #[pymodule_export]
    use crate::arrow::ArrowAnswers;
    #[pymodule_export]
    use crate::bank::FilterBank;
    #[pymodule_export]
    use crate::filter::{
        Bitmap, BloomFilter, Cuckoo, Filter, GuavaBloomFilter, ScalableBloomFilter, SparkBloomFilter,
        SplitBlockBloomFilter, StaticFilter, WindowedBloomFilter,
    };
    #[pymodule_export]
    use crate::key::key_bytes;
    use pyo3::prelude::*;

    /// Undoes the classes' __reduce__.
    #[pyfunction]
    fn _restore(
        class: &str,
        data: &Bound<'_, PyAny>,
        secret: Option<SecretKey>,
        key: Option<Py<PyAny>>,
        int_bytes: IntBytes,
    ) -> PyResult<Py<PyAny>> {
        if class == "FilterBank" {
            let bank = FilterBank::from_bytes(data, secret, key)?;
            return Ok(Py::new(data.py(), bank)?.into_any());
        }
        Filter::read_data(data, key, |bytes| match class {
            "GuavaBloomFilter" => java(bytes, int_bytes.0).map(Any::Guava),
            "SparkBloomFilter" => java(bytes, 8).map(Any::Spark),
            "SplitBlockBloomFilter" => split_block(bytes, int_bytes.0, false),
            _ => Any::read(bytes, secret.map(|key| key.0)),
        })
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        macro_rules! add {
            ($($class:ident)*) => {
                [$(module.py().get_type::<$class>()),*]
            };
        }
        let classes = add!(Filter BloomFilter ScalableBloomFilter WindowedBloomFilter Cuckoo Bitmap GuavaBloomFilter SparkBloomFilter SplitBlockBloomFilter StaticFilter);
        for class in classes {
            crate::ffi::add_method::<Filter>(&class, c"add", ADD)?;
        }
        Ok(())
    }

    const ADD: &std::ffi::CStr = c"add($self, key, /)
--

Add a key, and return whether it was new.

>>> f = BloomFilter(1000)
>>> f.add(17), f.add(17)
(True, False)";
}
