//! The kernels for AVX2 and BMI, and for AVX-512 (F, BW, DQ, VL).
//!
//! # Why the assembly is sound
//!
//! Other threads may write the words of a block meanwhile, and a vector load by an intrinsic would
//! be a data race with them. An `asm!` block may do what a function in another language may do.
//! These do what four relaxed loads of `AtomicU64` do: they read the four words of the block and
//! nothing else, write no memory, and are not `pure`, so that a lookup in a loop reads again. A
//! processor may read the block in any parts. Bits are only added, so whatever mixture of two
//! values a read gives, it has each bit whose setting happened before. x86-64 performs every load
//! as an acquire, and the compiler moves no fence across the block.
//!
//! A single lookup is assembly as a whole, so that it is inlined into code for older CPUs too. It
//! must run only where [`Level::all`](super::Level::all) asked the CPU.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

use super::{Block, SALTS, each_block, mask};
use core::arch::asm;
use core::arch::x86_64::*;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AccessPlan, AtomicU64, set_four};

/// The multipliers, and below them what is shifted to the bit of each word. In one cache line.
#[repr(align(64))]
struct Constants([[u32; 8]; 2]);

static CONSTANTS: Constants = Constants([SALTS, [1; 8]]);

/// Whether this CPU, or without `std` this target, has AVX2 and BMI.
pub(super) fn has_avx2() -> bool {
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

/// Whether this CPU, or without `std` this target, has AVX-512 (F, BW, DQ, VL) too.
#[cfg(lanebloom_rust_1_89)]
pub(super) fn has_avx512() -> bool {
    #[cfg(feature = "std")]
    return has_avx2()
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(feature = "std"))]
    return has_avx2()
        && cfg!(all(
            target_feature = "avx512f",
            target_feature = "avx512bw",
            target_feature = "avx512dq",
            target_feature = "avx512vl"
        ));
}

/// By halves of a block: vectors of 32 bytes would leave the upper halves of registers in use,
/// which slows code for older CPUs down until `vzeroupper`, and that one cannot be inlined.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
pub(super) unsafe fn holds_avx2<T: Load>(block: &Block<T>, hash: u64) -> bool {
    let lacks: u8;
    // SAFETY: see the top of this file; reads the constants too.
    unsafe {
        asm!(
            "vmovd {a}, {hash:e}",
            "vpbroadcastd {a}, {a}",
            "vpmulld {b}, {a}, [rip + {constants} + 16]",
            "vpmulld {a}, {a}, [rip + {constants}]",
            "vpsrld {b}, {b}, 27",
            "vpsrld {a}, {a}, 27",
            "vmovdqa {c}, [rip + {constants} + 32]",
            "vpsllvd {b}, {c}, {b}",
            "vpsllvd {a}, {c}, {a}",
            "vmovdqu {c}, [{block}]",
            "vpandn {a}, {c}, {a}",
            "vmovdqu {c}, [{block} + 16]",
            "vpandn {b}, {c}, {b}",
            "vpor {a}, {a}, {b}",
            "vptest {a}, {a}",
            "setnz {lacks}",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            hash = in(reg) hash,
            block = in(reg) block,
            constants = sym CONSTANTS,
            lacks = out(reg_byte) lacks,
            options(readonly, nostack),
        );
    }
    lacks == 0
}

/// In registers above the first sixteen, which need no `vzeroupper`.
///
/// # Safety
///
/// The CPU has AVX-512 F and VL.
#[cfg(lanebloom_rust_1_89)]
#[inline(always)]
pub(super) unsafe fn holds_avx512<T: Load>(block: &Block<T>, hash: u64) -> bool {
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
/// The CPU has AVX2 and BMI.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn contains_each_avx2<T: Load>(
    blocks: &[Block<T>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    let constants = constants();
    // SAFETY: this function's instruction set.
    each_block(blocks, access, hashes, each, |block, hash| unsafe {
        vector_holds(constants, block, hash)
    });
}

/// # Safety
///
/// The CPU has AVX2 and BMI.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert_each_avx2(
    blocks: &[Block<AtomicU64>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    let constants = constants();
    each_block(blocks, access, hashes, each, |block, hash| {
        // SAFETY: this function's instruction set.
        !unsafe { vector_holds(constants, block, hash) } && set_four(block, mask(hash))
    });
}

/// # Safety
///
/// The CPU has AVX-512 (F, BW, DQ, VL) and BMI.
#[cfg(lanebloom_rust_1_89)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn contains_each_avx512<T: Load>(
    blocks: &[Block<T>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    let constants = constants();
    // SAFETY: this function's instruction set.
    each_block(blocks, access, hashes, each, |block, hash| unsafe {
        vector_holds(constants, block, hash)
    });
}

/// # Safety
///
/// The CPU has AVX-512 (F, BW, DQ, VL) and BMI.
#[cfg(lanebloom_rust_1_89)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn insert_each_avx512(
    blocks: &[Block<AtomicU64>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    let constants = constants();
    each_block(blocks, access, hashes, each, |block, hash| {
        // SAFETY: this function's instruction set.
        !unsafe { vector_holds(constants, block, hash) } && set_four(block, mask(hash))
    });
}

/// The multipliers, and what is shifted.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn constants() -> (__m256i, __m256i) {
    // SAFETY: reads the 32 bytes of the array.
    (
        unsafe { _mm256_loadu_si256(CONSTANTS.0[0].as_ptr().cast()) },
        _mm256_set1_epi32(1),
    )
}

/// Whether a block has all bits of a hash.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector_holds<T: Load>((salts, one): (__m256i, __m256i), block: &Block<T>, hash: u64) -> bool {
    let products = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
    let mask = _mm256_sllv_epi32(one, _mm256_srli_epi32::<27>(products));
    let words: __m256i;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vmovdqu {words}, [{block}]",
            words = out(ymm_reg) words,
            block = in(reg) block,
            options(readonly, nostack, preserves_flags),
        );
    }
    _mm256_testc_si256(words, mask) == 1
}
