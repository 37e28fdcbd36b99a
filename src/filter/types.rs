//! The filter types, a file or folder for each.

pub mod bloom;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub mod fuse;
pub mod scalable;
pub mod tombstone;
pub mod view;
#[cfg(feature = "std")]
pub mod windowed;
