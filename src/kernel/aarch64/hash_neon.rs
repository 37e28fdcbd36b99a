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

use crate::hash::murmur3::{C1, C2, FMIX, Murmur3Sink};
use crate::words::chunks::as_chunks_mut;
use core::arch::aarch64::*;

/// The longest keys, in bytes.
pub(super) const MOST: usize = 15;

/// Keys at a time: four in vectors, the others in scalar code.
const TWELVE: usize = 12;

#[target_feature(enable = "neon")]
pub(super) unsafe fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    debug_assert!(width <= MOST);
    if width <= 8 {
        murmur3_below_16::<false>(start, width, keys, high);
    } else {
        murmur3_below_16::<true>(start, width, keys, high);
    }
}

/// `HIGH` says whether the keys have more than 8 bytes.
#[target_feature(enable = "neon")]
unsafe fn murmur3_below_16<const HIGH: bool>(start: &[u64; 2], width: usize, keys: &mut [u64], mut high: &[u64]) {
    let one = |low: u64, high: u64| {
        let tail = u128::from(high) << 64 | u128::from(low);
        Murmur3Sink::resume(*start, tail, width as u64).finish128().0
    };
    let [start1, start2] = [all(start[0] ^ width as u64), all(start[1] ^ width as u64)];
    let (twelves, rest) = as_chunks_mut::<TWELVE, _>(keys);
    for twelve in twelves {
        let mut highs = &[0; TWELVE][..];
        if HIGH {
            (highs, high) = high.split_at(TWELVE);
        }
        // First: after the vectors, keys of 12 bytes would take up to 1.6 times as long, since the
        // compiler keeps this order.
        let scalar: [u64; TWELVE - 4] = core::array::from_fn(|i| one(twelve[4 + i], highs[4 + i]));
        let k1 = multiply(rotate::<31, 1>(multiply(load(&twelve[..4]), C1)), C2);
        let (mut h1, mut h2) = (xor(start1, k1), start2);
        if HIGH {
            // A rotation by 33 bits.
            let k2 = multiply(rotate::<1, 31>(swap(multiply(load(&highs[..4]), C2))), C1);
            h2 = xor(h2, k2);
        }
        h1 = add(h1, h2);
        h2 = add(h2, h1);
        store(add(fmix(h1), fmix(h2)), &mut twelve[..4]);
        twelve[4..].copy_from_slice(&scalar);
    }
    for (i, key) in rest.iter_mut().enumerate() {
        *key = one(*key, if HIGH { high[i] } else { 0 });
    }
}

/// Four numbers of 64 bits: their low halves, and their high ones.
#[derive(Clone, Copy)]
struct Four {
    low: uint32x4_t,
    high: uint32x4_t,
}

/// The number four times.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn all(number: u64) -> Four {
    Four {
        low: vdupq_n_u32(number as u32),
        high: vdupq_n_u32((number >> 32) as u32),
    }
}

/// The first four numbers.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn load(numbers: &[u64]) -> Four {
    let numbers = &numbers[..4];
    // SAFETY: reads the four numbers.
    let (first, second) = unsafe { (vld1q_u64(numbers.as_ptr()), vld1q_u64(numbers[2..].as_ptr())) };
    halves(first, second)
}

/// Writes to the first four numbers.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn store(Four { low, high }: Four, numbers: &mut [u64]) {
    let numbers = &mut numbers[..4];
    let (first, second) = (vzip1q_u32(low, high), vzip2q_u32(low, high));
    // SAFETY: writes the four numbers.
    unsafe {
        vst1q_u64(numbers.as_mut_ptr(), vreinterpretq_u64_u32(first));
        vst1q_u64(numbers[2..].as_mut_ptr(), vreinterpretq_u64_u32(second));
    }
}

/// The halves of the numbers of two vectors.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn halves(first: uint64x2_t, second: uint64x2_t) -> Four {
    let (first, second) = (vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
    Four {
        low: vuzp1q_u32(first, second),
        high: vuzp2q_u32(first, second),
    }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn multiply(Four { low, high }: Four, by: u64) -> Four {
    let by = all(by);
    let product = halves(
        vmull_u32(vget_low_u32(low), vget_low_u32(by.low)),
        vmull_high_u32(low, by.low),
    );
    // (The low halves of the products of 64 bits by 32.)
    let high = vmlaq_u32(vmlaq_u32(product.high, high, by.low), low, by.high);
    Four { high, ..product }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn xor(a: Four, b: Four) -> Four {
    Four {
        low: veorq_u32(a.low, b.low),
        high: veorq_u32(a.high, b.high),
    }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn add(a: Four, b: Four) -> Four {
    let low = vaddq_u32(a.low, b.low);
    // A carry is -1.
    let carry = vcltq_u32(low, b.low);
    Four {
        low,
        high: vsubq_u32(vaddq_u32(a.high, b.high), carry),
    }
}

/// Rotates up by `LEFT`; `RIGHT` is 32 less that.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(Four { low, high }: Four) -> Four {
    const { assert!(LEFT + RIGHT == 32) };
    Four {
        low: vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(low), high),
        high: vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(high), low),
    }
}

/// Rotates by 32.
fn swap(Four { low, high }: Four) -> Four {
    Four { low: high, high: low }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn fmix(k: Four) -> Four {
    let k = multiply(shift_33_xor(k), FMIX[0]);
    let k = multiply(shift_33_xor(k), FMIX[1]);
    shift_33_xor(k)
}

/// XORs the number that is shifted down by 33 bits.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn shift_33_xor(Four { low, high }: Four) -> Four {
    Four {
        low: veorq_u32(low, vshrq_n_u32::<1>(high)),
        high,
    }
}
