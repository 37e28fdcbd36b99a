//! The filter types, one file each.

pub(crate) mod concurrent;
#[cfg(feature = "rayon")]
mod parallel;
