//! The filter types, one file each.

pub(crate) mod concurrent;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
mod gauge;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
mod probe;
pub mod redisbloom;
pub mod scalable;
mod stripes;
pub mod tombstone;
pub(crate) mod view;
#[cfg(feature = "window")]
pub mod windowed;
