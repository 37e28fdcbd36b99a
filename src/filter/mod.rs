//! The filter types. `filter.rs` has what filters share, `engine.rs` what each has to bring; then
//! one file or folder for each.

pub(crate) mod bloom;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub(crate) mod engine;
#[expect(clippy::module_inception, reason = "the one filter type")]
mod filter;
mod gauge;
pub mod guava;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
mod probe;
pub mod redisbloom;
pub mod scalable;
mod snapshot;
mod stripes;
pub mod tombstone;
pub(crate) mod view;
#[cfg(feature = "window")]
pub mod windowed;

pub use engine::Figures;
pub use filter::Filter;
