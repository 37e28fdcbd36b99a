//! The kernels for NEON, which every 64-bit Arm has. Two vectors are a block. The words are loaded
//! as atomics, and become vectors in registers.

use crate::splitblock::block::{Block, SALTS, mask};
use core::arch::aarch64::*;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AtomicU64, Bits};

/// Whether a block has all bits of a hash.
#[inline(always)]
pub(super) fn holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
    // SAFETY: every target of this architecture with a standard library has NEON.
    unsafe { vector_holds(block, hash) }
}

/// Sets the bits of a hash in a block; returns whether this call set any of them.
#[inline(always)]
pub(super) fn insert(block: &Block<AtomicU64>, hash: u64) -> bool {
    !holds(block, hash) && Bits::set_four(block, mask(hash))
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn vector_holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
    // SAFETY: reads the 32 bytes of the array.
    let salts = unsafe { [vld1q_u32(SALTS.as_ptr()), vld1q_u32(SALTS.as_ptr().add(4))] };
    // SAFETY: intrinsics of this function's instruction set, on registers.
    #[allow(unused_unsafe, reason = "unsafe for the oldest supported compiler")]
    unsafe {
        let lacks = |i: usize| {
            let products = vmulq_u32(salts[i], vdupq_n_u32(hash as u32));
            let positions = vreinterpretq_s32_u32(vshrq_n_u32::<27>(products));
            let mask = vshlq_u32(vdupq_n_u32(1), positions);
            let words = vcombine_u64(vcreate_u64(block[2 * i].load()), vcreate_u64(block[2 * i + 1].load()));
            vbicq_u32(mask, vreinterpretq_u32_u64(words))
        };
        vmaxvq_u32(vorrq_u32(lacks(0), lacks(1))) == 0
    }
}
