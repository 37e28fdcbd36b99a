//! Hashes of many keys of up to 16 bytes by AVX2, four at a time.
//!
//! Vectors have no multiplication of 64 bits, so Murmur3 of a u64 takes nearly as long in vectors
//! as in scalar code. Both together take less: two keys in scalar code are hashed beside four in
//! vectors. In ns on an Intel with AMX, in batches of 1024:
//!
//! ```text
//!                    vectors alone   with two in scalar code
//! Murmur3, u32           1.95                1.63
//! Murmur3, u64           2.07                1.70
//! Murmur3, 12 bytes      2.56                2.43
//! Murmur3, u128          3.04                3.17, so vectors alone
//! ```
//!
//! - A prototype on Zen 3 took 2.37 for a u64 in vectors alone, and 1.64 with two in scalar code,
//!   by other multiplications: one `vpmulld` and one `vpmuludq` in place of three `vpmuludq`. On
//!   Intel `vpmulld` is two slow operations: the prototype took 1.87 ns by it and 1.54 without it
//!   (Intel with AMX). For Zen 3 the model of llvm-mca 22 gives 4.5 cycles by it, 4.9 without it,
//!   and 5.8 in vectors alone. So the form without it serves both.
//! - Three keys in scalar code beside four: 1.62 in that prototype (Intel with AMX).
//! - The scalar code hashes longer keys. By Murmur3 vectors gain little there, and by SipHash they
//!   gained 12%: most of the time goes into bringing words of keys of several lengths together.
//! - SipHash-1-3 of a u64 takes 2.4 ns instead of 5 (Zen 5).

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

use super::avx2::multiply;
use crate::hash::murmur3::{self, C1, C2, FMIX};
use crate::hash::siphash;
use crate::words::chunks::as_chunks_mut;
use core::arch::asm;
use core::arch::x86_64::*;

/// The states of four hashes, word by word.
type State<const N: usize> = [__m256i; N];

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn begin<const N: usize>(start: &[u64; N]) -> State<N> {
    let mut state = [_mm256_setzero_si256(); N];
    for i in 0..N {
        state[i] = _mm256_set1_epi64x(start[i] as i64);
    }
    state
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    if width <= 8 {
        return murmur3_below_16::<false>(start, width, keys, high);
    } else if width < 16 {
        return murmur3_below_16::<true>(start, width, keys, high);
    }
    let state = begin(start);
    let len = _mm256_set1_epi64x(width as i64);
    each_group(keys, |at, k1| {
        let mixed = murmur3_mix(state, k1, load_some(&high[at..]));
        murmur3_finish(murmur3_go_on(state, mixed), len)
    });
}

/// Hashes six keys at a time: the processor works on two of them in scalar code while it works on
/// four in vectors. `HIGH` says whether they have more than 8 bytes.
#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
unsafe fn murmur3_below_16<const HIGH: bool>(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    let state = begin(start);
    let len = _mm256_set1_epi64x(width as i64);
    let four = |at: usize, keys: &[u64]| {
        let k1 = load_some(keys);
        let mixed = if HIGH {
            murmur3_mix(state, k1, load_some(&high[at..]))
        } else {
            [_mm256_xor_si256(state[0], mix_k1(k1)), state[1]]
        };
        store(murmur3_finish(mixed, len))
    };
    let (sixes, rest) = as_chunks_mut::<6, _>(keys);
    let mut at = 0;
    for six in sixes {
        let hashes = four(at, &six[..4]);
        for (i, key) in six[4..].iter_mut().enumerate() {
            *key = murmur3_one::<HIGH>(start, width, *key, high, at + 4 + i);
        }
        six[..4].copy_from_slice(&hashes);
        at += 6;
    }
    let (vectors, rest) = as_chunks_mut::<4, _>(rest);
    for vector in vectors {
        *vector = four(at, vector);
        at += 4;
    }
    if !rest.is_empty() {
        murmur3_rest::<HIGH>(start, width, rest, high, at);
    }
}

/// Hashes fewer than four keys, of which the first has the number `at`, in scalar code. (A call:
/// inlined, it takes registers from the loop of the others, which is then 1.07 times as slow.)
#[inline(never)]
fn murmur3_rest<const HIGH: bool>(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64], at: usize) {
    for (i, key) in keys.iter_mut().enumerate() {
        *key = murmur3_one::<HIGH>(start, width, *key, high, at + i);
    }
}

/// The hash of a key of fewer than 16 bytes, in scalar code.
#[inline(always)]
fn murmur3_one<const HIGH: bool>(start: &[u64; 2], width: usize, low: u64, high: &[u64], at: usize) -> u64 {
    let [mut h1, mut h2] = start.map(|word| word ^ width as u64);
    h1 ^= murmur3::mix_k1(in_scalar_code(low));
    if HIGH {
        h2 ^= murmur3::mix_k2(in_scalar_code(high[at]));
    }
    h1 = h1.wrapping_add(h2);
    h2 = in_scalar_code(h2.wrapping_add(h1));
    murmur3::fmix(h1).wrapping_add(murmur3::fmix(h2))
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn siphash13_short(start: &[u64; 4], width: usize, keys: &mut [u64], high: &[u64]) {
    let state = begin(start);
    let end = _mm256_set1_epi64x((width as i64) << 56);
    if width < 8 {
        each_group(keys, |_, low| {
            siphash13_finish(siphash13_mix(state, _mm256_or_si256(low, end)))
        });
    } else {
        each_group(keys, |at, low| {
            let mut state = siphash13_mix(state, low);
            let mut last = end;
            if width > 8 {
                let high = load_some(&high[at..]);
                if width < 16 {
                    last = _mm256_or_si256(high, end);
                } else {
                    state = siphash13_mix(state, high);
                }
            }
            siphash13_finish(siphash13_mix(state, last))
        });
    }
}

/// The number itself. (Else the compiler would make vectors of the scalar code beside the vectors.)
#[inline(always)]
fn in_scalar_code(mut number: u64) -> u64 {
    // SAFETY: it does nothing.
    unsafe { asm!("/* {} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags)) };
    number
}

/// Replaces the keys, four at a time, by what `hash` makes of them and of where they begin.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn each_group(keys: &mut [u64], hash: impl Fn(usize, __m256i) -> __m256i) {
    let whole = keys.len() / 4 * 4;
    let (groups, rest) = as_chunks_mut::<4, _>(keys);
    for (i, group) in groups.iter_mut().enumerate() {
        *group = store(hash(4 * i, load_some(group)));
    }
    if !rest.is_empty() {
        let hashes = store(hash(whole, load_some(rest)));
        rest.iter_mut().zip(hashes).for_each(|(key, hash)| *key = hash);
    }
}

/// The first four numbers; 0 for missing ones.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_some(numbers: &[u64]) -> __m256i {
    let some = match numbers.first_chunk::<4>() {
        Some(four) => *four,
        None => core::array::from_fn(|i| numbers.get(i).copied().unwrap_or(0)),
    };
    // SAFETY: reads the 32 bytes of the array, at any alignment.
    unsafe { _mm256_loadu_si256(some.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store(vector: __m256i) -> [u64; 4] {
    let mut numbers = [0; 4];
    // SAFETY: writes the 32 bytes of the array, at any alignment.
    unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), vector) };
    numbers
}

// ---- Murmur3 x64_128; murmur3.rs is the specification ----

/// The first step for 16 bytes, and the only one for the bytes after the last 16. Zeros change
/// nothing.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn murmur3_mix([h1, h2]: State<2>, k1: __m256i, k2: __m256i) -> State<2> {
    [_mm256_xor_si256(h1, mix_k1(k1)), _mm256_xor_si256(h2, mix_k2(k2))]
}

/// The second step for 16 bytes, from the state before and after the first.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn murmur3_go_on([_, before]: State<2>, [h1, h2]: State<2>) -> State<2> {
    let h1 = _mm256_add_epi64(rotate::<27, 37>(h1), before);
    let h1 = _mm256_add_epi64(times_5(h1), _mm256_set1_epi64x(0x52dc_e729));
    let h2 = _mm256_add_epi64(rotate::<31, 33>(h2), h1);
    let h2 = _mm256_add_epi64(times_5(h2), _mm256_set1_epi64x(0x3849_5ab5));
    [h1, h2]
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn murmur3_finish([h1, h2]: State<2>, len: __m256i) -> __m256i {
    let h2 = _mm256_xor_si256(h2, len);
    let h1 = _mm256_add_epi64(_mm256_xor_si256(h1, len), h2);
    let h2 = _mm256_add_epi64(h2, h1);
    _mm256_add_epi64(fmix(h1), fmix(h2))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn mix_k1(k1: __m256i) -> __m256i {
    multiply(rotate::<31, 33>(multiply(k1, C1)), C2)
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn mix_k2(k2: __m256i) -> __m256i {
    multiply(rotate::<33, 31>(multiply(k2, C2)), C1)
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn fmix(k: __m256i) -> __m256i {
    let k = multiply(_mm256_xor_si256(k, _mm256_srli_epi64::<33>(k)), FMIX[0]);
    let k = multiply(_mm256_xor_si256(k, _mm256_srli_epi64::<33>(k)), FMIX[1]);
    _mm256_xor_si256(k, _mm256_srli_epi64::<33>(k))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn times_5(vector: __m256i) -> __m256i {
    _mm256_add_epi64(vector, _mm256_slli_epi64::<2>(vector))
}

// ---- SipHash-1-3; siphash.rs is the specification ----

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn siphash13_round([v0, v1, v2, v3]: State<4>) -> State<4> {
    let (v0, v2) = (_mm256_add_epi64(v0, v1), _mm256_add_epi64(v2, v3));
    let v1 = _mm256_xor_si256(rotate::<13, 51>(v1), v0);
    let v3 = _mm256_xor_si256(rotate_16(v3), v2);
    let v0 = _mm256_add_epi64(rotate_32(v0), v3);
    let v2 = _mm256_add_epi64(v2, v1);
    let v1 = _mm256_xor_si256(rotate::<17, 47>(v1), v2);
    let v3 = _mm256_xor_si256(rotate::<21, 43>(v3), v0);
    [v0, v1, rotate_32(v2), v3]
}

/// Takes eight bytes of each key.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn siphash13_mix([v0, v1, v2, v3]: State<4>, word: __m256i) -> State<4> {
    let [v0, v1, v2, v3] = siphash13_round([v0, v1, v2, _mm256_xor_si256(v3, word)]);
    [_mm256_xor_si256(v0, word), v1, v2, v3]
}

/// The hash, after the word with the length.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn siphash13_finish([v0, v1, v2, v3]: State<4>) -> __m256i {
    let mut state = [
        v0,
        v1,
        _mm256_xor_si256(v2, _mm256_set1_epi64x(siphash::END as i64)),
        v3,
    ];
    for _ in 0..3 {
        state = siphash13_round(state);
    }
    let [v0, v1, v2, v3] = state;
    _mm256_xor_si256(_mm256_xor_si256(v0, v1), _mm256_xor_si256(v2, v3))
}

/// Rotates up by `LEFT`; `RIGHT` is 64 less that.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(vector: __m256i) -> __m256i {
    const { assert!(LEFT + RIGHT == 64) };
    _mm256_or_si256(_mm256_slli_epi64::<LEFT>(vector), _mm256_srli_epi64::<RIGHT>(vector))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn rotate_16(vector: __m256i) -> __m256i {
    let up_by_two = _mm256_set_epi64x(
        0x0d0c_0b0a_0908_0f0e,
        0x0504_0302_0100_0706,
        0x0d0c_0b0a_0908_0f0e,
        0x0504_0302_0100_0706,
    );
    _mm256_shuffle_epi8(vector, up_by_two)
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn rotate_32(vector: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(vector)
}
