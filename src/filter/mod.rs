//! The filter types, one file each.

pub(crate) mod concurrent;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
pub(crate) mod view;
