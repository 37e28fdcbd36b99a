//! Words of a filter in vectors, for x86-64: takes the numbers of words, and gives their values.
//! The kernels of the instruction sets call it.
//!
//! # Why the assembly is sound
//!
//! Other threads may write the words meanwhile. In Rust's memory model a vector load or the gather
//! intrinsic would be a data race with them. An `asm!` block may do what a function in another
//! language may do. Each block does what the same number of relaxed atomic loads do:
//!
//! - Each reads words of 8 bytes, at the given addresses and nowhere else, and writes no memory.
//!   The callers promise that the words are there.
//! - A word in memory that is shared is an `AtomicU64`, hence aligned. A processor reads 8 aligned
//!   bytes at once, whatever the instruction: Intel's manual, volume 3, "Guaranteed Atomic
//!   Operations"; AMD's, volume 2, "Access Atomicity". Compilers load an `AtomicU64` on 32-bit x86
//!   into a vector register for that reason. A snapshot's words may be unaligned, but no thread
//!   writes them.
//! - **Loads of several words** (a sector by [`selected`], rows by [`and_four`] and [`and_eight`])
//!   are as many relaxed loads of neighbouring words. Intel and AMD promise that an aligned load of
//!   16 bytes is read at once where there is AVX; of wider ones neither says so. A load that is
//!   torn, between words or within one, mixes the bytes of two values that the words had. Bits are
//!   only ever set while words are shared, so both have the bits of every insert that happened
//!   before, and what is seen lies between two states of the word: no inserted key is missed, and
//!   no bit is seen that nobody set. **Counters fall**, so the argument does not hold for them:
//!   they are read word by word.
//! - x86-64 performs every load as an acquire. The compiler moves no fence across the block, since
//!   the block reads memory. So an [`acquire`](crate::words::bits::acquire) after it pairs with the
//!   `Release` of the bits seen, as after `AtomicU64::load`.
//! - The blocks are not `pure`: a lookup in a loop reads again each time.
//!
//! A plain load would go to a general register first. To bring it into a vector from there takes
//! two more instructions for each word.

use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::sector;
use crate::words::bits::{Lines, Load, Prefetchable};
use core::arch::asm;
use core::arch::x86_64::*;

/// The sector of the hash.
#[inline(always)]
pub(super) fn sector_at<const W: usize, T>(lines: Lines<'_, T>, hash: u64) -> *const T {
    // The multiplication takes the block below the number of lines, of which there is at least one
    // (`Lines`), and the sector into its line.
    let words = lines.all().as_ptr().cast::<T>();
    words.wrapping_add(sector::<W>(hash, lines.blocks()))
}

/// In each lane of 32 bits, the part of the sector that the low bits of the same lane of `lanes`
/// select. Of eight words, the low four lanes select in the first half, the others in the second.
///
/// # Safety
///
/// The sector is there: `W` words from `at` on.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn selected<const W: usize, T: Load>(at: *const T, lanes: __m256i) -> __m256i {
    if T::COUNTERS {
        // SAFETY: as promised.
        return unsafe { selected_counters::<W, T>(at, lanes) };
    }
    let parts;
    // SAFETY: see the top of this file. The blocks read the words of the sector.
    unsafe {
        match W {
            1 => asm!(
                "vpbroadcastq {parts}, [{at}]",
                "vpermilps {parts}, {parts}, {lanes}",
                parts = out(ymm_reg) parts,
                lanes = in(ymm_reg) lanes,
                at = in(reg) at,
                options(readonly, nostack, preserves_flags),
            ),
            2 => asm!(
                "vbroadcasti128 {parts}, [{at}]",
                "vpermilps {parts}, {parts}, {lanes}",
                parts = out(ymm_reg) parts,
                lanes = in(ymm_reg) lanes,
                at = in(reg) at,
                options(readonly, nostack, preserves_flags),
            ),
            4 => asm!(
                "vpermd {parts}, {lanes}, [{at}]",
                parts = lateout(ymm_reg) parts,
                lanes = in(ymm_reg) lanes,
                at = in(reg) at,
                options(readonly, nostack, preserves_flags),
            ),
            _ => asm!(
                "vpermd {parts}, {lanes}, [{at}]",
                "vpermd {second}, {lanes}, [{at} + 32]",
                "vpblendd {parts}, {parts}, {second}, 0xf0",
                parts = out(ymm_reg) parts,
                second = out(ymm_reg) _,
                lanes = in(ymm_reg) lanes,
                at = in(reg) at,
                options(readonly, nostack, preserves_flags),
            ),
        }
    }
    parts
}

/// [`selected`] for two keys, each in a half of the vector: sectors of two words or four, by the
/// numbers of their first words.
///
/// # Safety
///
/// The sectors are there, counted from `all` on. The words are no counters.
#[cfg(lanebloom_avx512)]
#[clippy::msrv = "1.89"]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
pub(super) unsafe fn selected_of_two<const W: usize, T: Load>(
    all: *const T,
    [first, second]: [u64; 2],
    lanes: __m512i,
) -> __m512i {
    let words: __m512i;
    // SAFETY: see the top of this file. The blocks read the words of both sectors.
    unsafe {
        match W {
            2 => asm!(
                "vbroadcasti32x4 {words}, [{all} + 8*{first}]",
                "vbroadcasti32x4 {words}{{{upper}}}, [{all} + 8*{second}]",
                words = out(zmm_reg) words,
                upper = in(kreg) 0xff00_u16,
                all = in(reg) all,
                first = in(reg) first,
                second = in(reg) second,
                options(readonly, nostack, preserves_flags),
            ),
            _ => asm!(
                "vbroadcasti32x8 {words}, [{all} + 8*{first}]",
                "vbroadcasti32x8 {words}{{{upper}}}, [{all} + 8*{second}]",
                words = out(zmm_reg) words,
                upper = in(kreg) 0xff00_u16,
                all = in(reg) all,
                first = in(reg) first,
                second = in(reg) second,
                options(readonly, nostack, preserves_flags),
            ),
        }
    }
    if W < 4 {
        return _mm512_castps_si512(_mm512_permutevar_ps(_mm512_castsi512_ps(words), lanes));
    }
    // The number of a part among those of both sectors.
    let half = _mm512_set_epi32(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    let numbers = _mm512_ternarylogic_epi32::<0xea>(lanes, _mm512_set1_epi32(7), half);
    _mm512_permutexvar_epi32(numbers, words)
}

/// [`selected`] of counters: all bits of those above 0.
///
/// # Safety
///
/// The same as for [`selected`].
#[allow(unsafe_op_in_unsafe_fn, reason = "before Rust 1.87 every intrinsic is unsafe")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn selected_counters<const W: usize, T: Load>(at: *const T, lanes: __m256i) -> __m256i {
    let mut words = [0; LINE_WORDS];
    for (word, value) in words.iter_mut().enumerate() {
        // (One or two words are repeated over the vector.)
        // SAFETY: as promised.
        *value = unsafe { (*at.add(word % W)).load() };
    }
    // SAFETY: reads the array.
    let [first, second] = unsafe { core::mem::transmute::<[u64; LINE_WORDS], [__m256i; 2]>(words) };
    match W {
        1 | 2 => _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(first), lanes)),
        4 => _mm256_permutevar8x32_epi32(first, lanes),
        _ => {
            let halves = [first, second].map(|half| _mm256_permutevar8x32_epi32(half, lanes));
            _mm256_blend_epi32::<0xf0>(halves[0], halves[1])
        }
    }
}

/// The four words with these numbers.
///
/// # Safety
///
/// They are there, counted from `all` on.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn four<T: Load>(all: *const T, numbers: &[u64; 4]) -> __m256i {
    let words;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vmovq {words:x}, [{all} + 8*{first}]",
            "vmovhps {words:x}, {words:x}, [{all} + 8*{second}]",
            "vmovq {others:x}, [{all} + 8*{third}]",
            "vmovhps {others:x}, {others:x}, [{all} + 8*{fourth}]",
            "vinserti128 {words}, {words}, {others:x}, 1",
            words = out(ymm_reg) words,
            others = out(ymm_reg) _,
            all = in(reg) all,
            first = in(reg) numbers[0],
            second = in(reg) numbers[1],
            third = in(reg) numbers[2],
            fourth = in(reg) numbers[3],
            options(readonly, nostack, preserves_flags),
        );
    }
    words
}

/// Four words, ANDed with others.
///
/// # Safety
///
/// The words are there.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn and_four<T: Load>(others: __m256i, words: *const T) -> __m256i {
    let all;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpand {all}, {others}, [{words}]",
            all = lateout(ymm_reg) all,
            others = in(ymm_reg) others,
            words = in(reg) words,
            options(readonly, nostack, preserves_flags),
        );
    }
    all
}

/// Eight words, ANDed with others.
///
/// # Safety
///
/// The words are there.
#[cfg(lanebloom_avx512)]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn and_eight<T: Load>(others: __m512i, words: *const T) -> __m512i {
    let all;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpandq {all}, {others}, [{words}]",
            all = lateout(zmm_reg) all,
            others = in(zmm_reg) others,
            words = in(reg) words,
            options(readonly, nostack, preserves_flags),
        );
    }
    all
}
