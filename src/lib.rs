//! A lock-free Bloom filter.
#![no_std]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod batch;
mod bits;
mod error;
mod filter;
pub mod funnel;
#[cfg(feature = "guard")]
mod guard;
pub mod hash;
mod pattern;
mod simd;
mod sizing;
mod sync;

#[cfg(feature = "guard")]
pub use error::RebuildInProgress;
pub use error::{BuildError, IncompatibleError};
pub use filter::concurrent::{Builder, ConcurrentBloom};
pub use funnel::{ByHash, Funnel, Sink};
#[cfg(feature = "guard")]
pub use guard::{Admission, CacheGuard, GuardStats, Rebuild};
pub use hash::{KeyHasher, Murmur3, Murmur3Sink, SipHash13};
