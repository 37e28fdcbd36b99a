//! The filter types, one file each.

pub(crate) mod concurrent;
pub mod counting;
mod gauge;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
pub mod redisbloom;
pub mod scalable;
pub mod tombstone;
pub(crate) mod view;
#[cfg(feature = "window")]
pub mod windowed;
