//! The pipelines compiled for AVX2 and BMI: x86-64 from 2013 (Haswell) and 2015 (Excavator) on.
//!
//! The gain is that the compiler makes all masks of a key by vector shifts, where the baseline has only one bit a time.
//! Nothing here loads a vector from the shared words: they are loaded as `AtomicU64` and put together.

use crate::batch;
use crate::bits::Bits;

/// Whether this CPU, or without `std` this target, has what the functions below need.
pub(super) fn detect() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(feature = "std"))]
    return cfg!(all(
        target_feature = "avx2",
        target_feature = "bmi1",
        target_feature = "bmi2"
    ));
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    batch::contains::<W, S, true>(bits, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    batch::insert::<W, S>(bits, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64], out: &mut [bool]) {
    batch::contains_hashes::<W, S, true>(bits, hashes, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64]) -> usize {
    batch::insert_hashes::<W, S>(bits, hashes)
}
