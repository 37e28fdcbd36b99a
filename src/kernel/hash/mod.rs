//! The kernels that hash many keys at once. `murmur3.rs` is their specification. `hash.rs` calls them.

#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod avx512;

use super::{Isa, Level};

/// Murmur3 of many keys, if an instruction set is faster than one key after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashKernels {
    // SAFETY, for both: callable if the CPU has the instruction set that they are compiled for.
    short: unsafe fn(u32, usize, &mut [u64], &[u64]),
    slices: Option<Slices>,
}

impl HashKernels {
    /// The kernels of `isa`, whose existence is what makes their calls sound.
    #[inline]
    pub(crate) fn of(isa: Isa) -> Option<Self> {
        match isa.0 {
            Level::Plain => None,
            // NEON has no multiplication of 64 bits, and two lanes: one key at a time is faster.
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Level::Neon => None,
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx2 => Some(Self {
                short: avx2::murmur3_short,
                slices: None,
            }),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            Level::Avx512 | Level::Bitalg => Some(Self {
                short: avx512::murmur3_short,
                slices: Some(avx512::murmur3_slices),
            }),
        }
    }

    /// Hashes keys of `width` bytes, at most 16. `keys` has the first 8 bytes of each,
    /// little-endian, and becomes the hashes. `high` has the other bytes, or is empty.
    #[inline]
    pub(crate) fn short(self, seed: u32, width: usize, keys: &mut [u64], high: &[u64]) {
        debug_assert!(width <= 16 && (width <= 8 || keys.len() == high.len()));
        // SAFETY: `of` gave this out against an `Isa`, which proves that the CPU has what the
        // function needs.
        unsafe { (self.short)(seed, width, keys, high) }
    }

    /// Whether there is a kernel for keys of any length.
    #[inline]
    pub(crate) fn has_slices(self) -> bool {
        self.slices.is_some()
    }

    /// Hashes keys of any length. Does nothing if there is no kernel for them.
    #[inline]
    pub(crate) fn slices(self, seed: u32, keys: &[&[u8]], out: &mut [u64]) {
        debug_assert!(self.has_slices() && keys.len() == out.len());
        if let Some(slices) = self.slices {
            // SAFETY: as in `short`.
            unsafe { slices(seed, keys, out) }
        }
    }
}

type Slices = unsafe fn(u32, &[&[u8]], &mut [u64]);
