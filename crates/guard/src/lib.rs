//! A read-through cache that requests for made-up keys cannot get through: a filter of all valid
//! keys in front of cached values, remembered misses and joined loads.
#![forbid(unsafe_code)]

mod builder;
mod cache;
mod error;
mod flights;
mod future;
mod mode;
mod rebuild;
mod saved;
mod stats;
pub mod sync;

pub use builder::Builder;
pub use cache::{AddedOnDrop, GuardedCache, Key};
pub use error::{BoxError, LoadError, RebuildError};
pub use future::{Async, Loader};
pub use mode::Mode;
pub use rebuild::{RebuildThread, Rebuilds, Rebuilt};
pub use stats::{Figures, Stats};
