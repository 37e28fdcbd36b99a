//! The filter types, one file each.

pub(crate) mod concurrent;
pub mod cuckoo;
pub mod dleft;
mod gauge;
pub mod guava;
#[cfg(feature = "rayon")]
mod parallel;
mod probe;
mod stripes;
