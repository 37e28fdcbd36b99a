//! The kernels for AVX-512 (F, BW, DQ, VL): x86-64 servers from Skylake (2017) and Zen 4 (2022) on. Eight keys fill a vector.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use crate::batch;
use crate::bits::Bits;
use crate::pattern::{Cut, GROUP, Group, MULTIPLIER};
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
pub(super) fn contains_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64], found: &mut [u64]) {
    let count = bits.blocks();
    // SAFETY: `words` gives words of blocks below `count`; a block has 8.
    unsafe {
        batch::contains_groups::<W>(
            bits,
            hashes,
            found,
            |group| blocks(group, count),
            |group| words::<W, S>(group, count),
            |group, words| hold::<W, S>(group, words),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
    let count = bits.blocks();
    batch::insert_groups::<W>(
        bits,
        hashes,
        changed,
        |group| blocks(group, count),
        |group| words::<W, S>(group, count),
        |group| masks::<W, S>(group),
    );
}

/// A bit of the bitmap to each place of `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    debug_assert_eq!(out.len().div_ceil(64), bitmap.len());
    for (out, &word) in out.chunks_mut(64).zip(bitmap) {
        let there = u64::MAX >> (64 - out.len());
        // SAFETY: writes the bytes of `out` alone, as its length says, each 0 or 1, which are the values of `bool`.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), there, _mm512_maskz_set1_epi8(word, 1)) };
    }
}

/// The blocks of the hashes: below `count`, which must be below 2^32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn blocks(hashes: &Group, count: usize) -> Group {
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

/// The words of the whole filter that each hash touches: below 8 times `count`, its blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn words<const W: usize, const S: usize>(hashes: &Group, count: usize) -> [Group; W] {
    let mut product = load(hashes);
    let line = _mm512_slli_epi64::<3>(block(product, count));
    let mut words = [[0; GROUP]; W];
    for i in 0..W {
        let cut = const { &Cut::<S>::pattern::<W>() }[i];
        if cut.multiply {
            product = _mm512_mullo_epi64(product, _mm512_set1_epi64(MULTIPLIER as i64));
        }
        let select = _mm512_and_si512(shift(product, cut.select), _mm512_set1_epi64(cut.group as i64 - 1));
        let word = _mm512_add_epi64(select, _mm512_set1_epi64(cut.first as i64));
        words[i] = store(_mm512_add_epi64(line, word));
    }
    words
}

/// The mask of each hash in each of its words.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn masks<const W: usize, const S: usize>(hashes: &Group) -> [Group; W] {
    let hashes = vector_masks::<W, S>(load(hashes));
    let mut masks = [[0; GROUP]; W];
    for i in 0..W {
        masks[i] = store(hashes[i]);
    }
    masks
}

/// Whether the words hold all bits of their hash's pattern.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn hold<const W: usize, const S: usize>(hashes: &Group, words: &[Group; W]) -> u8 {
    let masks = vector_masks::<W, S>(load(hashes));
    let mut lacking = _mm512_setzero_si512();
    for i in 0..W {
        lacking = _mm512_or_si512(lacking, _mm512_andnot_si512(load(&words[i]), masks[i]));
    }
    _mm512_testn_epi64_mask(lacking, lacking)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn vector_masks<const W: usize, const S: usize>(hashes: __m512i) -> [__m512i; W] {
    let mut product = hashes;
    let mut masks = [_mm512_setzero_si512(); W];
    for i in 0..W {
        let cut = const { &Cut::<S>::pattern::<W>() }[i];
        if cut.multiply {
            product = _mm512_mullo_epi64(product, _mm512_set1_epi64(MULTIPLIER as i64));
        }
        for bit in 0..S {
            // A rotation takes the lowest 6 bits of its count, so that what lies above them need not be cleared.
            let bit = _mm512_rolv_epi64(_mm512_set1_epi64(1), shift(product, cut.bits[bit]));
            masks[i] = _mm512_or_si512(masks[i], bit);
        }
    }
    masks
}

/// Shifts down by a number that is known once this is compiled.
#[target_feature(enable = "avx512f")]
#[inline]
fn shift(vector: __m512i, by: u32) -> __m512i {
    _mm512_srlv_epi64(vector, _mm512_set1_epi64(i64::from(by)))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(group: &Group) -> __m512i {
    // SAFETY: reads the 64 bytes of the array, at any alignment.
    unsafe { _mm512_loadu_si512(group.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(vector: __m512i) -> Group {
    let mut group = [0; GROUP];
    // SAFETY: writes the 64 bytes of the array, at any alignment.
    unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), vector) };
    group
}
