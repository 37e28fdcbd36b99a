//! What the other crates of this workspace need of this one, and a user does not.
//!
//! Outside semver: those crates depend on this exact version. A need that users have too becomes a
//! public method instead.

/// For `lanebloom-formats`: the memory of its filters, and the hints and fences beside it.
pub use crate::bits::{Bits, Purpose, acquire, acquire_if, is_cached, prefetch};
/// For `lanebloom-formats`: `Serialize` and `Deserialize`, also by `codec::Limited`.
#[cfg(feature = "serde")]
pub use crate::codec::serde::{deserialize, sealed::Decode, serialize};
/// For `lanebloom-formats`: what makes a type a `GuardFilter`.
#[cfg(feature = "guard")]
pub use crate::guard::filter::sealed::Calls;
/// For `lanebloom-formats`: the memory of `RedisCuckoo`, which is bytes.
pub use crate::memory::Words;
/// For `lanebloom-formats`: the end of a key under MurmurHash64A.
pub use crate::short::load_below_8;

use crate::error::{BuildError, BuildErrorKind, IncompatibleError};
use crate::filter::Figures;
use crate::kernel::{self, Isa};
use alloc::string::String;

/// For `lanebloom-formats`: bits to bools, by this machine's vectors.
#[inline]
pub fn unpack() -> impl Fn(&[u64], &mut [bool]) {
    kernel::unpack(Isa::best())
}

/// For filters with settings or limits of their own: an error that says `problem`.
#[must_use]
pub fn build_error(problem: String) -> BuildError {
    BuildError(BuildErrorKind::Setting(problem))
}

/// For `lanebloom-formats`: a rate that is not between 0 and 1.
#[must_use]
pub fn wrong_rate(rate: f64) -> BuildError {
    BuildError(BuildErrorKind::Rate(rate))
}

/// For `lanebloom-formats`: more bytes than addresses.
#[must_use]
pub fn too_large(keys: usize, rate: f64) -> BuildError {
    BuildError(BuildErrorKind::TooLarge { keys, rate })
}

/// For `lanebloom-formats`: the allocator refused so many bytes.
#[must_use]
pub fn out_of_memory(bytes: usize) -> BuildError {
    BuildError(BuildErrorKind::OutOfMemory { bytes })
}

/// For `lanebloom-formats`: two filters that cannot be united. The error says `problem`.
#[must_use]
pub fn incompatible(problem: String) -> IncompatibleError {
    IncompatibleError(problem)
}

/// For `lanebloom-formats`: [`Figures`], which other crates cannot make.
#[must_use]
pub fn figures(fill_ratio: f64, len: usize, false_positive_rate: f64) -> Figures {
    Figures {
        fill_ratio,
        len,
        false_positive_rate,
    }
}
