//! The promises of each type to its callers, on one thread or a few.

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod bitmap;
mod bulk;
mod counting;
mod cuckoo;
mod dleft;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod tombstone;
#[cfg(feature = "window")]
mod windowed;
