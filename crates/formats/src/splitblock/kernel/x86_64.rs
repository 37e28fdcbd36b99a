//! The kernels for AVX2 and BMI, and for AVX-512 (F, BW, DQ, VL).
//!
//! # Soundness of the assembly
//!
//! Other threads may write the words of a block meanwhile, and a vector load by an intrinsic would
//! be a data race with them. An `asm!` block may do what a function in another language may do.
//! These do what four relaxed loads of `AtomicU64` do: they read the four words of the block and
//! nothing else, write no memory, and are not `pure`, so that a lookup in a loop reads again.
//! Shared words are aligned, and a processor reads 8 aligned bytes at once, whatever the
//! instruction: `src/kernel/loads.rs` of the crate lanebloom cites the manuals. (A view's
//! words may be unaligned, but no thread writes them.) x86-64 performs every load as an acquire,
//! and the compiler moves no fence across the block. So an `acquire` after it pairs with the
//! `Release` of the bits that were seen.
//!
//! [`set_half`] writes two words by one `cmpxchg16b`: 9.6 ns for the four words of a new key, where
//! four `fetch_or` take 15 (Zen 4, in L1). It does what two `fetch_or` of `AtomicU64` with
//! `Release` do, one right after the other: a locked operation is a release and an acquire. Threads
//! that use `fetch_or` could see that state too. If it fails, it does what two relaxed loads do.
//!
//! (The core's loads select words of a line. Here a block is read whole, so none of them serves.)
//!
//! A single lookup is assembly as a whole, so that it is inlined into code for older CPUs too. It
//! must run only by an `Isa`, which exists where the CPU was asked.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

#[cfg(lanebloom_avx512)]
#[expect(clippy::incompatible_msrv, reason = "only for compilers that have the intrinsics")]
pub(super) mod avx512;

use crate::splitblock::block::{self, Block, SALTS, each_block};
use core::arch::asm;
use core::arch::x86_64::*;
use core::mem::transmute;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AtomicU64, Prefetching};

/// The multipliers, and below them what is shifted to the bit of each word. In one cache line.
#[repr(align(64))]
struct Constants([[u32; 8]; 2]);

static CONSTANTS: Constants = Constants([SALTS, [1; 8]]);

/// By halves of a block: vectors of 32 bytes would leave the upper halves of registers in use,
/// which slows code for older CPUs down until `vzeroupper`, and that one cannot be inlined.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
pub(super) unsafe fn holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
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

/// # Safety
///
/// The CPU has AVX2 and BMI.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn contains_each<T: Load>(
    blocks: &[Block<T>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    // SAFETY: this function's instruction set.
    each_block(blocks, prefetching, hashes, each, |block, hash| unsafe {
        vector_holds(block, hash)
    });
}

/// # Safety
///
/// The CPU has AVX2 and BMI.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert_each(
    blocks: &[Block<AtomicU64>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    // SAFETY: this function's instruction set.
    each_block(blocks, prefetching, hashes, each, |block, hash| unsafe {
        vector_set(block, hash)
    });
}

/// A hash's bits.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector_mask(hash: u64) -> __m256i {
    // SAFETY: reads the 32 bytes of the array.
    let salts = unsafe { _mm256_loadu_si256(CONSTANTS.0[0].as_ptr().cast()) };
    let products = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(products))
}

/// The words of a block, and a hash's bits.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn words_and_mask<T: Load>(block: &Block<T>, hash: u64) -> [__m256i; 2] {
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
    [words, vector_mask(hash)]
}

/// Whether a block has all bits of a hash.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector_holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
    let [words, mask] = words_and_mask(block, hash);
    _mm256_testc_si256(words, mask) == 1
}

/// Sets the bits of a hash; returns whether this call set any of them.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector_set(block: &Block<AtomicU64>, hash: u64) -> bool {
    let [words, mask] = words_and_mask(block, hash);
    if _mm256_testc_si256(words, mask) == 1 {
        return false;
    }
    // SAFETY: any vector is four words, and a CPU with this level has the instruction.
    unsafe {
        let [old, mask] = transmute::<[__m256i; 2], [Block<u64>; 2]>([words, mask]);
        set_halves(block, old, mask)
    }
}

/// Sets the bits of a mask in a block; returns whether this call set any of them.
///
/// # Safety
///
/// The CPU has `cmpxchg16b`.
#[inline(always)]
pub(super) unsafe fn set(block: &Block<AtomicU64>, mask: Block<u64>) -> bool {
    // SAFETY: as promised.
    unsafe { set_halves(block, [0, 1, 2, 3].map(|i| Load::load(&block[i])), mask) }
}

/// [`set`] of a block that had the words `old` before.
///
/// # Safety
///
/// See [`set`].
#[inline(always)]
unsafe fn set_halves(block: &Block<AtomicU64>, old: Block<u64>, mask: Block<u64>) -> bool {
    // (A block is aligned to its size: `Bits` has whole lines.)
    let halves: [*mut u64; 2] = [block[0].as_ptr(), block[2].as_ptr()];
    // SAFETY: two words of the block each, aligned to 16 bytes.
    unsafe {
        set_half(halves[0], [old[0], old[1]], [mask[0], mask[1]])
            | set_half(halves[1], [old[2], old[3]], [mask[2], mask[3]])
    }
}

/// Sets the bits of two words, which were `old` before; returns whether this call set any of them.
///
/// # Safety
///
/// The words are there, are atomics, and aligned to 16 bytes. The CPU has `cmpxchg16b`.
#[inline(always)]
unsafe fn set_half(words: *mut u64, mut old: [u64; 2], mask: [u64; 2]) -> bool {
    loop {
        let new = [old[0] | mask[0], old[1] | mask[1]];
        if new == old {
            return false;
        }
        let swapped: u8;
        // SAFETY: the words are there, by promise; see the top of this file. rbx cannot be named
        // as an operand, so it is saved in another register. All others are named: the compiler
        // might choose rbx.
        unsafe {
            asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b [rdi]",
                "sete r8b",
                "mov rbx, rsi",
                out("r8b") swapped,
                inout("rsi") new[0] => _,
                in("rcx") new[1],
                inout("rax") old[0],
                inout("rdx") old[1],
                in("rdi") words,
                options(nostack),
            );
        }
        if swapped != 0 {
            return true;
        }
    }
}

/// # Safety
///
/// The CPU has AVX2 and BMI.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert_all_mut(blocks: &mut [Block<u64>], prefetching: Prefetching, hashes: &[u64]) -> usize {
    // SAFETY: this function's instruction set; any vector is four words.
    block::insert_all_mut(blocks, prefetching, hashes, |hash| unsafe {
        transmute::<__m256i, Block<u64>>(vector_mask(hash))
    })
}
