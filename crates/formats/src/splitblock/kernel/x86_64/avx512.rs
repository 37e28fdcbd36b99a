//! The kernels for AVX-512 (F, BW, DQ, VL). A lookup of one hash is as that for AVX2, in wider
//! registers; a batch of lookups tests two blocks at once. Inserts are those for AVX2. `x86_64.rs`
//! says why the assembly is sound.

use super::CONSTANTS;
use crate::splitblock::block::{Block, each_tile};
use core::arch::asm;
use core::arch::x86_64::*;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{Prefetching, as_chunks};

/// In registers above the first sixteen, which need no `vzeroupper`.
///
/// # Safety
///
/// The CPU has AVX-512 F and VL.
#[inline(always)]
pub(in crate::splitblock::kernel) unsafe fn holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
    let lacks: u32;
    // SAFETY: see the top of this file; reads the constants too.
    unsafe {
        asm!(
            "vpbroadcastd ymm16, {hash:e}",
            "vpmulld ymm16, ymm16, [rip + {constants}]",
            "vpsrld ymm16, ymm16, 27",
            "vmovdqa32 ymm17, [rip + {constants} + 32]",
            "vpsllvd ymm16, ymm17, ymm16",
            "vptestnmd k1, ymm16, [{block}]",
            "kmovw {lacks:e}, k1",
            hash = in(reg) hash,
            block = in(reg) block,
            constants = sym CONSTANTS,
            lacks = lateout(reg) lacks,
            out("zmm16") _,
            out("zmm17") _,
            out("k1") _,
            options(readonly, nostack, preserves_flags),
        );
    }
    lacks == 0
}

/// # Safety
///
/// The CPU has AVX-512 (F, BW, DQ, VL) and BMI.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(in crate::splitblock::kernel) unsafe fn contains_each<T: Load>(
    blocks: &[Block<T>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    // SAFETY: reads the 32 bytes of the array.
    let salts = _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(CONSTANTS.0[0].as_ptr().cast()) });
    each_tile(blocks, prefetching, hashes, each, |places, hashes| {
        let ((groups, rest), (keys, last)) = (as_chunks::<8, _>(places), as_chunks::<8, _>(hashes));
        let mut found = 0;
        for (i, (group, keys)) in groups.iter().zip(keys).enumerate() {
            found |= u64::from(eight_hold(salts, blocks, group, keys)) << (8 * i);
        }
        for (i, (block, hash)) in rest.iter().zip(last).enumerate() {
            // SAFETY: this function's instruction set.
            let held = unsafe { holds(&blocks[*block as usize], *hash) };
            found |= u64::from(held) << (8 * groups.len() + i);
        }
        found
    });
}

/// Whether eight blocks have all bits of their hashes. Two blocks fill a vector.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn eight_hold<T: Load>(salts: __m512i, blocks: &[Block<T>], places: &[u32; 8], hashes: &[u64; 8]) -> u8 {
    // SAFETY: reads the 64 bytes of the array.
    let hashes = unsafe { _mm512_loadu_si512(hashes.as_ptr().cast()) };
    let one = _mm512_set1_epi32(1);
    let mut lacks = 0;
    for pair in 0..4 {
        // The lower halves of two hashes, eight times each.
        let first = 4 * pair as i32;
        let halves = _mm512_inserti64x4::<1>(_mm512_set1_epi32(first), _mm256_set1_epi32(first + 2));
        let products = _mm512_mullo_epi32(_mm512_permutexvar_epi32(halves, hashes), salts);
        let masks = _mm512_sllv_epi32(one, _mm512_srli_epi32::<27>(products));
        let [a, b] = [0, 1].map(|i| &raw const blocks[places[2 * pair + i] as usize]);
        let words: __m512i;
        // SAFETY: see the top of this file.
        unsafe {
            asm!(
                "vmovdqu64 {words:y}, [{a}]",
                "vinserti64x4 {words}, {words}, [{b}], 1",
                words = out(zmm_reg) words,
                a = in(reg) a,
                b = in(reg) b,
                options(readonly, nostack, preserves_flags),
            );
        }
        lacks |= u64::from(_mm512_testn_epi32_mask(words, masks)) << (16 * pair);
    }
    // A byte for each hash.
    _mm_cmpeq_epi8_mask(_mm_cvtsi64_si128(lacks as i64), _mm_setzero_si128()) as u8
}
