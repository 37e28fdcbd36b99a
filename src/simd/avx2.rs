//! The kernels for AVX2 and BMI: x86-64 from 2013 (Haswell) and 2015 (Excavator) on. A group of keys is two vectors.
//!
//! Single calls are the same Rust as everywhere, compiled for this: the compiler then makes all masks of a key by
//! vector shifts, where the baseline has only one bit a time. (Intrinsics were no faster: 2.94 ns to 2.85 on Zen 3.)

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

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    batch::contains::<W, S, true>(bits, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    batch::insert::<W, S>(bits, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
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

#[target_feature(enable = "avx2,bmi1,bmi2")]
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
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    // To each byte its bit of the four bytes that lie in every lane of 128 bits.
    let byte = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let (whole, rest) = out.as_chunks_mut::<64>();
    for (out, &word) in whole.iter_mut().zip(bitmap) {
        for (out, word) in out
            .as_chunks_mut::<32>()
            .0
            .iter_mut()
            .zip([word as i32, (word >> 32) as i32])
        {
            let bits = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), byte), bit);
            let bools = _mm256_and_si256(_mm256_cmpeq_epi8(bits, bit), _mm256_set1_epi8(1));
            // SAFETY: writes the 32 bytes of `out`, each 0 or 1, which are the values of `bool`.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bools) };
        }
    }
    batch::unpack(&bitmap[whole.len()..], rest);
}

/// A group of keys, each with 64 bits.
type Vectors = [__m256i; 2];

/// The blocks of the hashes: below `count`, which must be below 2^32.
#[target_feature(enable = "avx2")]
#[inline]
fn blocks(hashes: &Group, count: usize) -> Group {
    let [low, high] = load(hashes);
    store([block(low, count), block(high, count)])
}

#[target_feature(enable = "avx2")]
#[inline]
fn block(hashes: __m256i, count: usize) -> __m256i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm256_set1_epi64x(count as i64);
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(hashes), count);
    let low = _mm256_mul_epu32(hashes, count);
    _mm256_srli_epi64::<32>(_mm256_add_epi64(high, _mm256_srli_epi64::<32>(low)))
}

/// The words of the whole filter that each hash touches: below 8 times `count`, its blocks.
#[target_feature(enable = "avx2")]
#[inline]
fn words<const W: usize, const S: usize>(hashes: &Group, count: usize) -> [Group; W] {
    let mut product = load(hashes);
    let line = [block(product[0], count), block(product[1], count)];
    let mut words = [[0; GROUP]; W];
    for i in 0..W {
        let cut = const { &Cut::<S>::pattern::<W>() }[i];
        let mut word = [_mm256_setzero_si256(); 2];
        for half in 0..2 {
            if cut.multiply {
                product[half] = multiply(product[half]);
            }
            let select = shift(product[half], cut.select);
            let select = _mm256_and_si256(select, _mm256_set1_epi64x(cut.group as i64 - 1));
            let in_line = _mm256_add_epi64(select, _mm256_set1_epi64x(cut.first as i64));
            word[half] = _mm256_add_epi64(_mm256_slli_epi64::<3>(line[half]), in_line);
        }
        words[i] = store(word);
    }
    words
}

/// The mask of each hash in each of its words.
#[target_feature(enable = "avx2")]
#[inline]
fn masks<const W: usize, const S: usize>(hashes: &Group) -> [Group; W] {
    let [low, high] = load(hashes);
    let (low, high) = (vector_masks::<W, S>(low), vector_masks::<W, S>(high));
    let mut masks = [[0; GROUP]; W];
    for i in 0..W {
        masks[i] = store([low[i], high[i]]);
    }
    masks
}

/// Whether the words hold all bits of their hash's pattern.
#[target_feature(enable = "avx2")]
#[inline]
fn hold<const W: usize, const S: usize>(hashes: &Group, words: &[Group; W]) -> u8 {
    let hashes = load(hashes);
    let mut answers = 0;
    for half in 0..2 {
        let masks = vector_masks::<W, S>(hashes[half]);
        let mut lacking = _mm256_setzero_si256();
        for i in 0..W {
            lacking = _mm256_or_si256(lacking, _mm256_andnot_si256(load(&words[i])[half], masks[i]));
        }
        let hold = _mm256_cmpeq_epi64(lacking, _mm256_setzero_si256());
        answers |= _mm256_movemask_pd(_mm256_castsi256_pd(hold)) << (4 * half);
    }
    answers as u8
}

#[target_feature(enable = "avx2")]
#[inline]
fn vector_masks<const W: usize, const S: usize>(hashes: __m256i) -> [__m256i; W] {
    let mut product = hashes;
    let mut masks = [_mm256_setzero_si256(); W];
    for i in 0..W {
        let cut = const { &Cut::<S>::pattern::<W>() }[i];
        if cut.multiply {
            product = multiply(product);
        }
        for bit in 0..S {
            let position = _mm256_and_si256(shift(product, cut.bits[bit]), _mm256_set1_epi64x(63));
            masks[i] = _mm256_or_si256(masks[i], _mm256_sllv_epi64(_mm256_set1_epi64x(1), position));
        }
    }
    masks
}

/// Times [`MULTIPLIER`], by three products of 32 bits: there is no other multiplication here.
#[target_feature(enable = "avx2")]
#[inline]
fn multiply(vector: __m256i) -> __m256i {
    let low = _mm256_set1_epi64x(MULTIPLIER as i64);
    let high = _mm256_set1_epi64x((MULTIPLIER >> 32) as i64);
    let crossed = _mm256_add_epi64(
        _mm256_mul_epu32(vector, high),
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(vector), low),
    );
    _mm256_add_epi64(_mm256_mul_epu32(vector, low), _mm256_slli_epi64::<32>(crossed))
}

/// Shifts down by a number that is known once this is compiled.
#[target_feature(enable = "avx2")]
#[inline]
fn shift(vector: __m256i, by: u32) -> __m256i {
    _mm256_srlv_epi64(vector, _mm256_set1_epi64x(i64::from(by)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(group: &Group) -> Vectors {
    let halves = group.as_chunks::<4>().0;
    // SAFETY: reads the 32 bytes of each half, at any alignment.
    unsafe {
        [
            _mm256_loadu_si256(halves[0].as_ptr().cast()),
            _mm256_loadu_si256(halves[1].as_ptr().cast()),
        ]
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(vectors: Vectors) -> Group {
    let mut group = [0; GROUP];
    for (half, vector) in group.as_chunks_mut::<4>().0.iter_mut().zip(vectors) {
        // SAFETY: writes the 32 bytes of this half, at any alignment.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), vector) };
    }
    group
}
