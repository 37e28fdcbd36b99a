//! The filter types, one file each.

pub(crate) mod concurrent;
mod gauge;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
