//! What each type promises to one who calls it, one thread at a time or some.

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod bulk;
mod counting;
mod cuckoo;
mod dleft;
#[cfg(feature = "guard")]
mod guard;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod tombstone;
#[cfg(feature = "window")]
mod windowed;
