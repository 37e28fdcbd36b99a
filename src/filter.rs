//! The filter types. `filter.rs` has what all filters share; `inserts.rs`, `removes.rs`,
//! `unions.rs` and `snapshot.rs` have what several share; `engine.rs` says what each has to bring.
//! Then one file or folder for each.
//!
//! Macros write what several filters share, for a list of types. On the page of an alias such as
//! `ConcurrentBloom`, rustdoc shows every generic impl of [`Filter`], whatever its bounds: methods
//! of a generic impl would stand on pages where they cannot be called.

pub mod bloom;
mod builder;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub(crate) mod engine;
#[expect(clippy::module_inception, reason = "the one filter type")]
mod filter;
pub(crate) mod fold;
mod gauge;
mod inserts;
mod layouts;
pub(crate) mod lines;
mod making;
mod measures;
#[cfg(feature = "rayon")]
mod parallel;
pub(crate) mod probe;
mod removes;
pub mod scalable;
#[cfg(feature = "serde")]
mod serde;
mod sets;
mod several;
pub(crate) mod slots;
pub(crate) mod snapshot;
mod stripes;
pub mod tombstone;
pub mod traits;
mod unions;
pub mod view;
#[cfg(feature = "window")]
pub mod windowed;

pub use builder::Builder;
pub use engine::Figures;
pub use filter::Filter;
