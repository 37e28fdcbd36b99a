//! Murmur3 of many keys of fewer than 16 bytes by NEON, twelve at a time: eight in scalar code
//! beside four in vectors. The twin of `hash_avx2.rs`.
//!
//! NEON multiplies 32 bits, so the products of four keys take two `umull`, two `mla`, and two
//! shuffles. A vector has the low halves of four numbers, and another one the high halves: a shift
//! by 33 bits is then one by a bit. A core multiplies 64 bits in scalar code, at the same time.
//!
//! Not measured on a machine. `benches/record/murmur3-neon-model.md` has the cycles of seven cores
//! by the models of llvm-mca 22. With eight keys in scalar code every model is faster than one by
//! one; with four, N1 would be faster and N2 slower. (N1 begins a multiplication of 64 bits every
//! third cycle, N2 two in each.) Keys of 16 bytes would be slower on N2 and V2, so they are hashed
//! one by one.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

use crate::kernel::hash_lanes::{self, Lanes};
use crate::kernel::plan::GROUP;
use core::arch::aarch64::*;

/// The longest keys, in bytes.
pub(super) const MOST: usize = 15;

#[target_feature(enable = "neon")]
pub(super) unsafe fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    debug_assert!(width <= MOST);
    if width <= 8 {
        hash_lanes::murmur3_short::<Four, 12, 12, 8>(start, width, keys, high);
    } else {
        hash_lanes::murmur3_short::<Four, 12, 12, MOST>(start, width, keys, high);
    }
}

/// Four numbers of 64 bits: their low halves, and their high ones.
#[derive(Clone, Copy)]
struct Four {
    low: uint32x4_t,
    high: uint32x4_t,
}

impl Four {
    /// The halves of the numbers of two vectors.
    #[inline(always)]
    unsafe fn halves(first: uint64x2_t, second: uint64x2_t) -> Self {
        let (first, second) = (vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
        let (low, high) = (vuzp1q_u32(first, second), vuzp2q_u32(first, second));
        Self { low, high }
    }

    /// Rotates up by `UP`; `DOWN` is 32 less that.
    #[inline(always)]
    unsafe fn rotate_below_32<const UP: i32, const DOWN: i32>(self) -> Self {
        const { assert!(UP + DOWN == 32) };
        Self {
            low: vsriq_n_u32::<DOWN>(vshlq_n_u32::<UP>(self.low), self.high),
            high: vsriq_n_u32::<DOWN>(vshlq_n_u32::<UP>(self.high), self.low),
        }
    }
}

// SAFETY: it has its own `load` and `store`.
unsafe impl Lanes for Four {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn all(number: u64) -> Self {
        Self {
            low: vdupq_n_u32(number as u32),
            high: vdupq_n_u32((number >> 32) as u32),
        }
    }

    #[inline(always)]
    unsafe fn set([a, b, c, d, ..]: [u64; GROUP]) -> Self {
        Self::load(&[a, b, c, d])
    }

    #[inline(always)]
    unsafe fn load(numbers: &[u64]) -> Self {
        let numbers = &numbers[..4];
        // SAFETY: reads the four numbers.
        let (first, second) = unsafe { (vld1q_u64(numbers.as_ptr()), vld1q_u64(numbers[2..].as_ptr())) };
        Self::halves(first, second)
    }

    #[inline(always)]
    unsafe fn store(self, numbers: &mut [u64]) {
        let numbers = &mut numbers[..4];
        let (first, second) = (vzip1q_u32(self.low, self.high), vzip2q_u32(self.low, self.high));
        // SAFETY: writes the four numbers.
        unsafe {
            vst1q_u64(numbers.as_mut_ptr(), vreinterpretq_u64_u32(first));
            vst1q_u64(numbers[2..].as_mut_ptr(), vreinterpretq_u64_u32(second));
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        let low = vaddq_u32(self.low, other.low);
        // A carry is -1.
        let carry = vcltq_u32(low, other.low);
        Self {
            low,
            high: vsubq_u32(vaddq_u32(self.high, other.high), carry),
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self {
            low: veorq_u32(self.low, other.low),
            high: veorq_u32(self.high, other.high),
        }
    }

    #[inline(always)]
    unsafe fn multiply(self, by: u64) -> Self {
        let by = Self::all(by);
        let product = Self::halves(
            vmull_u32(vget_low_u32(self.low), vget_low_u32(by.low)),
            vmull_high_u32(self.low, by.low),
        );
        // (The low halves of the products of 64 bits by 32.)
        let high = vmlaq_u32(vmlaq_u32(product.high, self.high, by.low), self.low, by.high);
        Self { high, ..product }
    }

    #[inline(always)]
    unsafe fn rotate<const UP: i32, const DOWN: i32>(self) -> Self {
        const { assert!(UP + DOWN == 64 && matches!(UP, 27 | 31 | 33), "Murmur3 has no others") };
        match UP {
            27 => self.rotate_below_32::<27, 5>(),
            31 => self.rotate_below_32::<31, 1>(),
            _ => Self {
                low: self.high,
                high: self.low,
            }
            .rotate_below_32::<1, 31>(),
        }
    }

    #[inline(always)]
    unsafe fn xor_shifted_33(self) -> Self {
        Self {
            low: veorq_u32(self.low, vshrq_n_u32::<1>(self.high)),
            high: self.high,
        }
    }
}
