//! The promises of each type to its callers, on one thread or a few. Those of what has a large size
//! too are in `sizes`, those that all filters share in `contract`.

mod batch;
mod bitmap;
mod whole;
mod windowed;
