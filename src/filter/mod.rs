//! The filter types, one file each.

pub(crate) mod concurrent;
pub mod guava;
#[cfg(feature = "rayon")]
mod parallel;
pub mod redisbloom;
