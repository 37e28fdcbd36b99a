//! Filters for Python: the extension module `lanebloom._lanebloom`.
//!
//! A Python object becomes a key in `key.rs`, an array a column in `numpy.rs` or `arrow.rs`.
//! `columns.rs` hashes columns, `engine.rs` runs the loops over keys, `any.rs` knows each type of
//! filter, and `filter.rs` has the classes. `ffi.rs` is the room for CPython's C interface.

mod any;
mod arrow;
mod columns;
mod engine;
mod ffi;
mod filter;
mod key;
mod numpy;

/// Fast approximate sets: Bloom and cuckoo filters that share a file format with Rust.
#[pyo3::pymodule]
mod _lanebloom {
    #[pymodule_export]
    use crate::filter::{
        _restore, Bitmap, BloomFilter, Cuckoo, Filter, GuavaBloomFilter, ScalableBloomFilter, SplitBlockBloomFilter,
        WindowedBloomFilter, key_bytes,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::ffi::add_method::<Filter>(
            &module.py().get_type::<Filter>(),
            c"add",
            c"add($self, key, /)\n--\n\nAdd a key, and return whether it was new.\n\n>>> f = BloomFilter(1000)\n>>> f.add(17), f.add(17)\n(True, False)",
        )
    }
}
