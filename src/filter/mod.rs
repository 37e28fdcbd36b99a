//! The filter types, one file each.

pub(crate) mod concurrent;
mod gauge;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
pub mod redisbloom;
pub mod scalable;
pub(crate) mod view;
#[cfg(feature = "window")]
pub mod windowed;
