//! The filter types, one file each.

pub(crate) mod concurrent;
mod gauge;
pub mod guava;
#[cfg(feature = "rayon")]
mod parallel;
pub mod scalable;
#[cfg(feature = "window")]
pub mod windowed;
