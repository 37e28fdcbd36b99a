//! What the other crates of this workspace need and a user does not. **Outside semver**: they depend
//! on the exact version of this crate.
//!
//! `lanebloom-formats` needs all of it, for the memory, the batches and the errors of its filters.

pub use crate::bits::{Bits, Purpose, acquire, acquire_if, is_cached, prefetch};
#[cfg(feature = "serde")]
pub use crate::codec::serde::{deserialize, sealed::Decode, serialize};
#[cfg(feature = "guard")]
pub use crate::guard::filter::sealed::Calls;
pub use crate::kernel::unpack;
pub use crate::memory::Words;
pub use crate::short::load_below_8;

use crate::error::{BuildError, BuildErrorKind, IncompatibleError};
use crate::filter::Figures;
use alloc::string::String;

/// A rate that is not between 0 and 1.
#[must_use]
pub fn wrong_rate(rate: f64) -> BuildError {
    BuildError(BuildErrorKind::Rate(rate))
}

/// A setting that only one type of filter has, or a limit of its own. `problem` is the error's
/// message.
#[must_use]
pub fn build_error(problem: String) -> BuildError {
    BuildError(BuildErrorKind::Setting(problem))
}

/// More bytes than addresses.
#[must_use]
pub fn too_large(keys: usize, rate: f64) -> BuildError {
    BuildError(BuildErrorKind::TooLarge { keys, rate })
}

/// The allocator refused so many bytes.
#[must_use]
pub fn out_of_memory(bytes: usize) -> BuildError {
    BuildError(BuildErrorKind::OutOfMemory { bytes })
}

/// Two filters that cannot be united. `problem` is the error's message.
#[must_use]
pub fn incompatible(problem: String) -> IncompatibleError {
    IncompatibleError(problem)
}

/// The figures of a filter; their type is `non_exhaustive`.
#[must_use]
pub fn figures(fill_ratio: f64, len: usize, false_positive_rate: f64) -> Figures {
    Figures {
        fill_ratio,
        len,
        false_positive_rate,
    }
}
