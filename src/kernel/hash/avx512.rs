//! Hashes of many keys by AVX-512, eight at a time.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over the lanes unroll, which those over iterators do not always"
)]

use crate::funnel::Sink;
use crate::kernel::avx512::{load, store};
use crate::kernel::groups::{GROUP, Group};
use crate::murmur3::{C1, C2, Murmur3Sink};
use core::arch::x86_64::*;

/// The state of eight hashes.
#[derive(Clone, Copy)]
struct State {
    h1: __m512i,
    h2: __m512i,
}

/// Hashes keys of `width` bytes, at most 16. `keys` has the first 8 bytes of each, little-endian,
/// and becomes the hashes. `high` has the other bytes; it is empty if there are none.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_short(seed: u32, width: usize, keys: &mut [u64], high: &[u64]) {
    let state = begin(seed);
    let len = _mm512_set1_epi64(width as i64);
    if width <= 8 {
        each_group(keys, |_, k1| {
            let h1 = _mm512_xor_si512(state.h1, mix_k1(k1));
            finish(State { h1, ..state }, len)
        });
    } else if width < 16 {
        each_group(keys, |at, k1| finish(tail(state, k1, load_some(&high[at..])), len));
    } else {
        each_group(keys, |at, k1| finish(body(state, k1, load_some(&high[at..])), len));
    }
}

/// Replaces the keys, eight at a time, by what `hash` makes of them and of where they begin.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn each_group(keys: &mut [u64], hash: impl Fn(usize, __m512i) -> __m512i) {
    let whole = keys.len() / GROUP * GROUP;
    let (groups, rest) = keys.as_chunks_mut::<GROUP>();
    for (i, group) in groups.iter_mut().enumerate() {
        *group = store(hash(GROUP * i, load(group)));
    }
    if !rest.is_empty() {
        let hashes = store(hash(whole, load_some(rest)));
        for (key, hash) in rest.iter_mut().zip(hashes) {
            *key = hash;
        }
    }
}

/// The first eight numbers; 0 for missing ones.
#[target_feature(enable = "avx512f")]
#[inline]
fn load_some(numbers: &[u64]) -> __m512i {
    let there = u8::MAX >> (GROUP - numbers.len().min(GROUP));
    // SAFETY: reads as many as there are.
    unsafe { _mm512_maskz_loadu_epi64(there, numbers.as_ptr().cast()) }
}

/// Hashes of keys of any length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_slices(seed: u32, keys: &[&[u8]], out: &mut [u64]) {
    for (keys, out) in keys.chunks(64).zip(out.chunks_mut(64)) {
        if keys.iter().all(|key| key.len() < LONG) {
            for (keys, out) in keys.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
                let mut group: [&[u8]; GROUP] = [&[]; GROUP];
                group[..keys.len()].copy_from_slice(keys);
                out.copy_from_slice(&murmur3_group(seed, group)[..keys.len()]);
            }
            continue;
        }
        let mut order: [u8; 64] = core::array::from_fn(|i| i as u8);
        let order = &mut order[..keys.len()];
        order.sort_unstable_by_key(|&i| keys[usize::from(i)].len());
        for order in order.chunks(GROUP) {
            let mut group: [&[u8]; GROUP] = [&[]; GROUP];
            for (key, &i) in group.iter_mut().zip(order) {
                *key = keys[usize::from(i)];
            }
            for (hash, &i) in murmur3_group(seed, group).into_iter().zip(order) {
                out[usize::from(i)] = hash;
            }
        }
    }
}

/// From this length of a key on, in bytes, keys are sorted by length, so that a group has similar
/// ones. Sorting costs 15 ns a key.
const LONG: usize = 512;
/// If only so many keys of a group have chunks left, and one of them many, they are hashed one by
/// one: a chunk takes 9 cycles, and 20 to 35 in a vector, whatever the number of keys (Zen 4).
const FEW: u32 = 3;
const MANY: usize = 16;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn murmur3_group(seed: u32, keys: [&[u8]; GROUP]) -> Group {
    let mut state = begin(seed);
    let (mut all, mut any, mut rests) = (usize::MAX, 0, 0);
    let mut lens = [0; GROUP];
    for i in 0..GROUP {
        all = all.min(keys[i].len() / 16);
        any = any.max(keys[i].len() / 16);
        rests |= keys[i].len() % 16;
        lens[i] = keys[i].len() as u64;
    }
    let len = load(&lens);
    for chunk in 0..all {
        // SAFETY: every key has this chunk.
        let (k1, k2) = transpose(|i| unsafe { _mm_loadu_si128(keys[i].as_ptr().add(16 * chunk).cast()) });
        state = body(state, k1, k2);
    }
    // A key without bytes left loads zeros from here: a masked load of no byte is slow at an
    // unmapped address.
    const ZEROS: [u8; 16] = [0; 16];
    let mut alone = 0;
    let mut alone_at = 0;
    for chunk in all..any {
        // Only the lanes of keys that have this chunk change.
        let on = _mm512_cmpge_epu64_mask(len, _mm512_set1_epi64(16 * chunk as i64 + 16));
        if any - chunk >= MANY && on.count_ones() <= FEW {
            (alone, alone_at) = (on, 16 * chunk);
            break;
        }
        let (k1, k2) = transpose(|i| {
            let there = chunk < keys[i].len() / 16;
            let chunk = if there {
                keys[i].as_ptr().wrapping_add(16 * chunk)
            } else {
                ZEROS.as_ptr()
            };
            // SAFETY: reads 16 bytes of a key that has them, or the zeros.
            unsafe { _mm_loadu_si128(chunk.cast()) }
        });
        let next = body(state, k1, k2);
        state.h1 = _mm512_mask_mov_epi64(state.h1, on, next.h1);
        state.h2 = _mm512_mask_mov_epi64(state.h2, on, next.h2);
    }
    let (h1, h2) = (store(state.h1), store(state.h2));
    if rests != 0 {
        let (k1, k2) = transpose(|i| {
            let len = keys[i].len() % 16;
            let rest = keys[i].as_ptr().wrapping_add(keys[i].len() - len);
            let rest = if len == 0 { ZEROS.as_ptr() } else { rest };
            // SAFETY: reads the `len` bytes with which the key ends, fewer than 16.
            unsafe { _mm_maskz_loadu_epi8((1 << len) - 1, rest.cast()) }
        });
        state = tail(state, k1, k2);
    }
    let mut hashes = store(finish(state, len));
    while alone != 0 {
        let i = alone.trailing_zeros() as usize;
        let mut sink = Murmur3Sink::resume(h1[i], h2[i], alone_at as u64);
        sink.put(&keys[i][alone_at..]);
        hashes[i] = sink.finish128().0;
        alone &= alone - 1;
    }
    hashes
}

/// The first and the second eight bytes of eight chunks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn transpose(chunk: impl Fn(usize) -> __m128i) -> (__m512i, __m512i) {
    let four = |a, b, c, d| {
        let low = _mm512_castsi128_si512(chunk(a));
        let low = _mm512_inserti64x2::<1>(low, chunk(b));
        let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(chunk(c)), chunk(d));
        _mm512_inserti64x4::<1>(low, high)
    };
    let (even, odd) = (four(0, 2, 4, 6), four(1, 3, 5, 7));
    (_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn begin(seed: u32) -> State {
    let seed = _mm512_set1_epi64(i64::from(seed));
    State { h1: seed, h2: seed }
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn body(State { h1, h2 }: State, k1: __m512i, k2: __m512i) -> State {
    let h1 = _mm512_xor_si512(h1, mix_k1(k1));
    let h1 = _mm512_add_epi64(_mm512_rol_epi64::<27>(h1), h2);
    let h1 = _mm512_add_epi64(times_5(h1), _mm512_set1_epi64(0x52dc_e729));
    let h2 = _mm512_xor_si512(h2, mix_k2(k2));
    let h2 = _mm512_add_epi64(_mm512_rol_epi64::<31>(h2), h1);
    let h2 = _mm512_add_epi64(times_5(h2), _mm512_set1_epi64(0x3849_5ab5));
    State { h1, h2 }
}

/// A tail of zeros leaves the state as it is.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn tail(State { h1, h2 }: State, k1: __m512i, k2: __m512i) -> State {
    State {
        h1: _mm512_xor_si512(h1, mix_k1(k1)),
        h2: _mm512_xor_si512(h2, mix_k2(k2)),
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn finish(State { h1, h2 }: State, len: __m512i) -> __m512i {
    let h2 = _mm512_xor_si512(h2, len);
    let h1 = _mm512_add_epi64(_mm512_xor_si512(h1, len), h2);
    let h2 = _mm512_add_epi64(h2, h1);
    _mm512_add_epi64(fmix(h1), fmix(h2))
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn mix_k1(k1: __m512i) -> __m512i {
    multiply(_mm512_rol_epi64::<31>(multiply(k1, C1)), C2)
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn mix_k2(k2: __m512i) -> __m512i {
    multiply(_mm512_rol_epi64::<33>(multiply(k2, C2)), C1)
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn fmix(k: __m512i) -> __m512i {
    let k = multiply(_mm512_xor_si512(k, _mm512_srli_epi64::<33>(k)), 0xff51_afd7_ed55_8ccd);
    let k = multiply(_mm512_xor_si512(k, _mm512_srli_epi64::<33>(k)), 0xc4ce_b9fe_1a85_ec53);
    _mm512_xor_si512(k, _mm512_srli_epi64::<33>(k))
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply(vector: __m512i, by: u64) -> __m512i {
    _mm512_mullo_epi64(vector, _mm512_set1_epi64(by as i64))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn times_5(vector: __m512i) -> __m512i {
    _mm512_add_epi64(vector, _mm512_slli_epi64::<2>(vector))
}
