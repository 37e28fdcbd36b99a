//! Hashes of many keys of up to 16 bytes by AVX2, four at a time.
//!
//! Vectors have no multiplication of 64 bits, so Murmur3 of a u64 takes nearly as long in vectors
//! as in scalar code. Both together take less: two keys in scalar code are hashed beside four in
//! vectors, except those of 16 bytes. The scalar code hashes longer keys: most of the time goes
//! into bringing words of keys of several lengths together.
//! (`benches/record/murmur3-avx2-prototypes.md`.)

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

use super::avx2::multiply;
use crate::kernel::hash_lanes::{self, Lanes};
use crate::kernel::plan::GROUP;
use core::arch::x86_64::*;

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    match width {
        0..=8 => hash_lanes::murmur3_short::<__m256i, 6, 4, 8>(start, width, keys, high),
        9..16 => hash_lanes::murmur3_short::<__m256i, 6, 4, 15>(start, width, keys, high),
        _ => hash_lanes::murmur3_short::<__m256i, 4, 1, 16>(start, width, keys, high),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn siphash13_short(start: &[u64; 4], width: usize, keys: &mut [u64], high: &[u64]) {
    hash_lanes::siphash13_short::<__m256i>(start, width, keys, high);
}

// SAFETY: a vector of 256 bits is any four numbers.
unsafe impl Lanes for __m256i {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn all(number: u64) -> Self {
        _mm256_set1_epi64x(number as i64)
    }

    #[inline(always)]
    unsafe fn set([a, b, c, d, ..]: [u64; GROUP]) -> Self {
        _mm256_set_epi64x(d as i64, c as i64, b as i64, a as i64)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm256_add_epi64(self, other)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        _mm256_xor_si256(self, other)
    }

    #[inline(always)]
    unsafe fn multiply(self, by: u64) -> Self {
        multiply(self, by)
    }

    #[inline(always)]
    unsafe fn rotate<const UP: i32, const DOWN: i32>(self) -> Self {
        const { assert!(UP + DOWN == 64) };
        match UP {
            16 => {
                let up_by_two = _mm_set_epi64x(0x0d0c_0b0a_0908_0f0e, 0x0504_0302_0100_0706);
                _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(up_by_two))
            }
            32 => _mm256_shuffle_epi32::<0b10_11_00_01>(self),
            _ => _mm256_or_si256(_mm256_slli_epi64::<UP>(self), _mm256_srli_epi64::<DOWN>(self)),
        }
    }

    #[inline(always)]
    unsafe fn xor_shifted_33(self) -> Self {
        _mm256_xor_si256(self, _mm256_srli_epi64::<33>(self))
    }
}
