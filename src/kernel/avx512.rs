//! The kernels for AVX-512 (F, BW, DQ, VL): x86-64 servers from Skylake (2017) and Zen 4 (2022) on.
//! Eight keys fill a vector.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use crate::bits::{Bits, Lines, Load, Probed, Region, Target};
use crate::kernel::groups::{self, GROUP, Group, Slot};
use crate::kernel::scalar;
use crate::layout::LINE_WORDS;
use crate::pattern::{Cuts, MULTIPLIER};
use core::arch::x86_64::*;

/// Whether this CPU, or without `std` this target, has what the functions below need.
pub(super) fn detect() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && super::avx2::detect();
    #[cfg(not(feature = "std"))]
    return cfg!(all(
        target_feature = "avx512f",
        target_feature = "avx512bw",
        target_feature = "avx512dq",
        target_feature = "avx512vl",
    )) && super::avx2::detect();
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn contains_hashes<const W: usize, T: Load>(
    cuts: &Cuts,
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
) {
    let count = lines.blocks();
    // SAFETY: `places` writes all words, of blocks below `count`, which is below 2^32
    // (`Isa::for_blocks`); a block has 8. `hold` reads no products.
    unsafe {
        groups::contains(
            lines,
            hashes,
            found,
            |group| blocks(group, count),
            |group, _, words| places::<W>(group, cuts, 0, count, words),
            |hashes, _, words| hold::<W, T>(hashes, cuts, words),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize>(cuts: &Cuts, mut bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
    insert_into::<W, _>(&mut bits, cuts, hashes, changed);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn fill<const W: usize>(cuts: &Cuts, region: &mut Region<'_>, hashes: &[u64], changed: &mut [u64]) {
    if hashes.len() < GROUP {
        return scalar::fill::<W>(cuts, region, hashes, changed);
    }
    insert_into::<W, _>(region, cuts, hashes, changed);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn insert_into<const W: usize, T: Target>(target: &mut T, cuts: &Cuts, hashes: &[u64], changed: &mut [u64]) {
    let (first, count) = (target.first(), target.blocks());
    // SAFETY: `places` writes all words; `masks` writes all masks, and reads no products.
    unsafe {
        groups::insert::<W, _>(
            target,
            hashes,
            changed,
            |group| blocks(group, count),
            |group, _, words| places::<W>(group, cuts, first, count, words),
            |hashes, _, into| masks::<W, T>(hashes, cuts, into),
        );
    }
}

/// Writes a bit of the bitmap to each place of `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    debug_assert_eq!(out.len().div_ceil(64), bitmap.len());
    for (out, &word) in out.chunks_mut(64).zip(bitmap) {
        let there = u64::MAX >> (64 - out.len());
        // SAFETY: writes the bytes of `out` alone, as its length says, each 0 or 1, which are the
        // values of `bool`.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), there, _mm512_maskz_set1_epi8(word, 1)) };
    }
}

/// The blocks of the hashes: below `count`, which must be below 2^32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
pub(super) fn blocks(hashes: &Group, count: usize) -> Group {
    store(block(load(hashes), count))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn block(hashes: __m512i, count: usize) -> __m512i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm512_set1_epi64(count as i64);
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hashes), count);
    let low = _mm512_mul_epu32(hashes, count);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
}

/// The words that each hash touches, counted from block `first` on: for 0 below 8 times `count`,
/// the filter's blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
pub(super) fn places<const W: usize>(hashes: &Group, cuts: &Cuts, first: usize, count: usize, words: &mut [Slot; W]) {
    let mut product = load(hashes);
    let block = _mm512_sub_epi64(block(product, count), _mm512_set1_epi64(first as i64));
    let line = _mm512_slli_epi64::<3>(block);
    product = _mm512_mullo_epi64(product, _mm512_set1_epi64(MULTIPLIER as i64));
    for i in 0..W {
        let cut = &cuts.words[i];
        if i > 0 && cut.multiply {
            product = multiply_again(product);
        }
        let select = _mm512_and_si512(
            shift(product, cut.select),
            _mm512_set1_epi64((LINE_WORDS / W) as i64 - 1),
        );
        let word = _mm512_add_epi64(select, _mm512_set1_epi64((i * LINE_WORDS / W) as i64));
        words[i].write(store(_mm512_add_epi64(line, word)));
    }
}

/// The mask of each hash in each of its words. `T` is the target: each copy has one caller, and so
/// is inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn masks<const W: usize, T>(hashes: &Group, cuts: &Cuts, into: &mut [Slot; W]) {
    let masks = vector_masks::<W>(product(hashes), cuts);
    for i in 0..W {
        into[i].write(store(masks[i]));
    }
}

/// Whether the words hold all bits of their hash's pattern. `T` is the kind of words: each copy has
/// one caller, and so is inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn hold<const W: usize, T>(hashes: &Group, cuts: &Cuts, words: &[Group; W]) -> u8 {
    let masks = vector_masks::<W>(product(hashes), cuts);
    let mut lacking = _mm512_setzero_si512();
    for i in 0..W {
        lacking = _mm512_or_si512(lacking, _mm512_andnot_si512(load(&words[i]), masks[i]));
    }
    _mm512_testn_epi64_mask(lacking, lacking)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn vector_masks<const W: usize>(mut product: __m512i, cuts: &Cuts) -> [__m512i; W] {
    let mut positions = [_mm512_setzero_si512(); W];
    for i in 0..W {
        let cut = cuts.words[i];
        if i > 0 && cut.multiply {
            product = multiply_again(product);
        }
        positions[i] = shift(product, cut.positions);
    }
    let mut masks = [_mm512_setzero_si512(); W];
    for _ in 0..cuts.bits {
        for i in 0..W {
            // A rotation ignores all but the lowest 6 bits of its count.
            let bit = _mm512_rolv_epi64(_mm512_set1_epi64(1), positions[i]);
            masks[i] = _mm512_or_si512(masks[i], bit);
            positions[i] = _mm512_srli_epi64::<6>(positions[i]);
        }
    }
    masks
}

/// What the patterns of the hashes are cut from. (To multiply again takes no longer than to keep
/// what `places` has multiplied.)
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn product(hashes: &Group) -> __m512i {
    _mm512_mullo_epi64(load(hashes), _mm512_set1_epi64(MULTIPLIER as i64))
}

/// The next product of a pattern. Most patterns have only one product, so callers branch around
/// this. The empty assembly keeps the branch: the compiler would always multiply, and drop the
/// result.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn multiply_again(product: __m512i) -> __m512i {
    // SAFETY: it does nothing.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    _mm512_mullo_epi64(product, _mm512_set1_epi64(MULTIPLIER as i64))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn shift(vector: __m512i, by: u32) -> __m512i {
    _mm512_srlv_epi64(vector, _mm512_set1_epi64(i64::from(by)))
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(group: &Group) -> __m512i {
    // SAFETY: reads the 64 bytes of the array, at any alignment.
    unsafe { _mm512_loadu_si512(group.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(vector: __m512i) -> Group {
    let mut group = [0; GROUP];
    // SAFETY: writes the 64 bytes of the array, at any alignment.
    unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), vector) };
    group
}
