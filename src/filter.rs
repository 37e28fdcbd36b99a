//! The filter types. `filter.rs` has what filters share, `engine.rs` what each has to bring; then
//! one file or folder for each.

pub mod bloom;
mod builder;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub(crate) mod engine;
mod figures;
#[expect(clippy::module_inception, reason = "the one filter type")]
mod filter;
mod gauge;
mod lines;
#[cfg(feature = "rayon")]
mod parallel;
mod probe;
pub mod scalable;
#[cfg(feature = "serde")]
mod serde;
mod slots;
mod snapshot;
mod stripes;
pub mod tombstone;
pub mod view;
#[cfg(feature = "window")]
pub mod windowed;

pub use builder::{Builder, Planned};
pub use engine::Figures;
pub use filter::Filter;
