//! Hashes of many keys by AVX-512, eight at a time.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over the lanes unroll, which those over iterators do not always"
)]

use super::avx512::{load, store};
use crate::funnel::Sink;
use crate::hash::murmur3::{C1, C2, FMIX, Murmur3Sink};
use crate::hash::siphash;
use crate::kernel::plan::GROUP;
use core::arch::x86_64::*;

/// The states of eight hashes, word by word.
type State<const N: usize> = [__m512i; N];

#[target_feature(enable = "avx512f")]
#[inline]
fn begin<const N: usize>(start: &[u64; N]) -> State<N> {
    let mut state = [_mm512_setzero_si512(); N];
    for i in 0..N {
        state[i] = _mm512_set1_epi64(start[i] as i64);
    }
    state
}

// ---- Keys of up to 16 bytes, all of one width ----

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    let state = begin(start);
    let len = _mm512_set1_epi64(width as i64);
    if width <= 8 {
        each_group(keys, |_, k1| {
            murmur3_finish([_mm512_xor_si512(state[0], mix_k1(k1)), state[1]], len)
        });
    } else if width < 16 {
        each_group(keys, |at, k1| {
            murmur3_finish(murmur3_mix(state, k1, load_at(high, at)), len)
        });
    } else {
        each_group(keys, |at, k1| {
            let mixed = murmur3_mix(state, k1, load_at(high, at));
            murmur3_finish(murmur3_go_on(state, mixed), len)
        });
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn siphash13_short(start: &[u64; 4], width: usize, keys: &mut [u64], high: &[u64]) {
    let state = begin(start);
    let end = _mm512_set1_epi64((width as i64) << 56);
    if width < 8 {
        each_group(keys, |_, low| {
            siphash13_finish(siphash13_mix(state, _mm512_or_si512(low, end)))
        });
    } else {
        each_group(keys, |at, low| {
            let mut state = siphash13_mix(state, low);
            let mut last = end;
            if width > 8 {
                let high = load_at(high, at);
                if width < 16 {
                    last = _mm512_or_si512(high, end);
                } else {
                    state = siphash13_mix(state, high);
                }
            }
            siphash13_finish(siphash13_mix(state, last))
        });
    }
}

/// Replaces the keys, eight at a time, by what `hash` makes of them and of where they begin.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn each_group(keys: &mut [u64], hash: impl Fn(usize, __m512i) -> __m512i) {
    for at in (0..keys.len()).step_by(GROUP) {
        let hashes = hash(at, load_at(keys, at));
        store_some(hashes, &mut keys[at..]);
    }
}

/// The eight numbers from `at` on; 0 for missing ones.
#[target_feature(enable = "avx512f")]
#[inline]
fn load_at(numbers: &[u64], at: usize) -> __m512i {
    match numbers[at..].first_chunk() {
        Some(eight) => load(eight),
        // The caller has just written them. A vector load that spans several stores would wait
        // until the last of them is in the cache.
        None => gather(|i| numbers.get(at + i).copied().unwrap_or(0)),
    }
}

/// The numbers 0 to 7, each by a load of its own if it comes from memory.
#[target_feature(enable = "avx512f")]
#[inline]
fn gather(number: impl Fn(usize) -> u64) -> __m512i {
    let scalar = |i| {
        let mut number = number(i);
        // SAFETY: it does nothing. (The compiler would join the loads.)
        unsafe { core::arch::asm!("/* {} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags)) };
        number as i64
    };
    let two = |i| _mm_set_epi64x(scalar(i + 1), scalar(i));
    let four = |i| _mm256_set_m128i(two(i + 2), two(i));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(four(0)), four(4))
}

/// Writes as many as there are places, at most eight. (Without masks: loads that follow would wait
/// for a masked store.)
#[target_feature(enable = "avx512f")]
#[inline]
fn store_some(vector: __m512i, numbers: &mut [u64]) {
    let all = store(vector);
    match numbers.first_chunk_mut() {
        Some(eight) => *eight = all,
        None => numbers.iter_mut().zip(all).for_each(|(to, number)| *to = number),
    }
}

// ---- Keys of any length ----

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_slices(start: &[u64; 2], keys: &[[&[u8]; GROUP]], out: &mut [u64]) {
    each_slices::<2, 0>(
        start,
        keys,
        out,
        |state, k1, k2| murmur3_go_on(state, murmur3_mix(state, k1, k2)),
        |state, k1, k2, at, len| {
            let mixed = murmur3_mix(*state, k1, k2);
            let next = murmur3_go_on(*state, mixed);
            // The others end within these bytes, or have ended: zeros have left them as they were.
            let on = _mm512_cmpge_epu64_mask(len, _mm512_set1_epi64(at as i64 + 16));
            for i in 0..2 {
                state[i] = _mm512_mask_mov_epi64(mixed[i], on, next[i]);
            }
        },
        |state, len| murmur3_finish(state, len),
        |state, at, rest| {
            let mut sink = Murmur3Sink::resume(state, 0, at as u64);
            sink.put(rest);
            sink.finish128().0
        },
    );
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn siphash13_slices(start: &[u64; 4], keys: &[[&[u8]; GROUP]], out: &mut [u64]) {
    each_slices::<4, 1>(
        start,
        keys,
        out,
        |state, low, high| siphash13_mix(siphash13_mix(state, low), high),
        |state, low, high, at, len| {
            let last = _mm512_srli_epi64::<3>(len);
            for (i, word) in [low, high].into_iter().enumerate() {
                let this = _mm512_set1_epi64((at / 8 + i) as i64);
                let on = _mm512_cmpge_epu64_mask(last, this);
                if on == 0 {
                    return;
                }
                let ends = _mm512_cmpeq_epi64_mask(last, this);
                let word = _mm512_mask_or_epi64(word, ends, word, _mm512_slli_epi64::<56>(len));
                let next = siphash13_mix(*state, word);
                for i in 0..4 {
                    state[i] = _mm512_mask_mov_epi64(state[i], on, next[i]);
                }
            }
        },
        |state, _| siphash13_finish(state),
        |state, at, rest| siphash::State(state).slice(at, rest),
    );
}

/// Hashes keys of any length by a function of `N` words.
///
/// - `chunk` takes 16 bytes of each key, in two halves.
/// - `last` takes 16 bytes of each key, from `at` on, with zeros after its end; `len` has the
///   lengths of the keys. A key of `len` bytes has chunks as if it had `PADDING` more.
/// - `finish` makes hashes of the states.
/// - `alone` goes on with one key, which has the state after `at` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn each_slices<const N: usize, const PADDING: usize>(
    start: &[u64; N],
    keys: &[[&[u8]; GROUP]],
    out: &mut [u64],
    chunk: impl Fn(State<N>, __m512i, __m512i) -> State<N>,
    last: impl Fn(&mut State<N>, __m512i, __m512i, usize, __m512i),
    finish: impl Fn(State<N>, __m512i) -> __m512i,
    alone: impl Fn([u64; N], usize, &[u8]) -> u64,
) {
    for (keys, out) in keys.iter().zip(out.chunks_mut(GROUP)) {
        let len = gather(|i| keys[i].len() as u64);
        // Less one, so that no bytes are too many as well.
        let most = _mm512_set1_epi64((BLOCK - PADDING) as i64);
        let less_one = _mm512_sub_epi64(len, _mm512_set1_epi64(1));
        let hashes = if _mm512_cmpge_epu64_mask(less_one, most) == 0 {
            let mut state = begin(start);
            let place = |i: usize| (keys[i].as_ptr(), _bzhi_u64(u64::MAX, keys[i].len() as u32));
            // SAFETY: a key has the bytes that its length says, at most a block.
            unsafe { hash_block::<N, PADDING>(&mut state, place, 0, len, &last) };
            finish(state, len)
        } else {
            hash_blocks::<N, PADDING>(start, keys, len, &chunk, &last, &finish, &alone)
        };
        store_some(hashes, out);
    }
}

/// At most `MOST_ALONE` unfinished keys of a group, one of them with `LONG_REST_BYTES` bytes left,
/// are hashed one by one. 16 bytes of one key take 9 cycles; in a vector they take 20 to 35, for
/// any number of keys (Zen 4).
const MOST_ALONE: u32 = 3;
const LONG_REST_BYTES: usize = 256;

/// The bytes of a key that a vector holds.
const BLOCK: usize = 64;

/// Takes up to [`BLOCK`] bytes of each key, which has `at` bytes before them. `place` has where
/// they are, and a bit for each of them.
///
/// # Safety
///
/// They are there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
unsafe fn hash_block<const N: usize, const PADDING: usize>(
    state: &mut State<N>,
    place: impl Fn(usize) -> (*const u8, u64),
    at: usize,
    len: __m512i,
    last: impl Fn(&mut State<N>, __m512i, __m512i, usize, __m512i),
) {
    let longer = |at: usize| longer(len, at - PADDING);
    let words = if longer(at + 32) != 0 {
        transpose_8(|i| {
            let (place, there) = place(i);
            // SAFETY: by the caller's promise.
            unsafe { _mm512_maskz_loadu_epi8(there, place.cast()) }
        })
    } else if longer(at + 16) != 0 {
        transpose_4(|i| {
            let (place, there) = place(i);
            // SAFETY: as above.
            unsafe { _mm256_maskz_loadu_epi8(there as u32, place.cast()) }
        })
    } else {
        transpose_2(|i| {
            let (place, there) = place(i);
            // SAFETY: as above.
            unsafe { _mm_maskz_loadu_epi8(there as u16, place.cast()) }
        })
    };
    for i in 0..BLOCK / 16 {
        if i > 0 && longer(at + 16 * i) == 0 {
            break;
        }
        last(state, words[2 * i], words[2 * i + 1], at + 16 * i, len);
    }
}

/// The keys that have more than `at` bytes.
#[target_feature(enable = "avx512f")]
#[inline]
fn longer(len: __m512i, at: usize) -> __mmask8 {
    _mm512_cmpgt_epu64_mask(len, _mm512_set1_epi64(at as i64))
}

/// Hashes keys, some of them empty or longer than a block.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn hash_blocks<const N: usize, const PADDING: usize>(
    start: &[u64; N],
    keys: &[&[u8]; GROUP],
    len: __m512i,
    chunk: impl Fn(State<N>, __m512i, __m512i) -> State<N>,
    last: impl Fn(&mut State<N>, __m512i, __m512i, usize, __m512i),
    finish: impl Fn(State<N>, __m512i) -> __m512i,
    alone: impl Fn([u64; N], usize, &[u8]) -> u64,
) -> __m512i {
    let mut state = begin(start);
    let shortest = keys.iter().fold(usize::MAX, |least, key| least.min(key.len()));
    for at in (0..shortest / 16).map(|chunk| 16 * chunk) {
        // SAFETY: all keys have these bytes.
        let words = transpose_2(|i| unsafe { _mm_loadu_si128(keys[i].as_ptr().add(at).cast()) });
        state = chunk(state, words[0], words[1]);
    }
    let mut at = shortest / 16 * 16;
    // Where a key has no bytes left, its last one is looked at, and masked away: a masked load of
    // no byte is slow at an unmapped address.
    let one = _mm512_set1_epi64(1);
    let ends = _mm512_sub_epi64(_mm512_max_epu64(len, one), one);
    const NOTHING: &[u8] = &[0];
    let mut begins = [NOTHING.as_ptr(); GROUP];
    for i in 0..GROUP {
        if !keys[i].is_empty() {
            begins[i] = keys[i].as_ptr();
        }
    }
    let lone = loop {
        let here = _mm512_set1_epi64(at as i64);
        let offsets = store(_mm512_min_epu64(here, ends));
        let left = _mm512_sub_epi64(_mm512_max_epu64(len, here), here);
        let there = store(_mm512_sub_epi64(_mm512_sllv_epi64(one, left), one));
        let place = |i: usize| (begins[i].wrapping_add(offsets[i] as usize), there[i]);
        // SAFETY: a key has the bytes that are left, of which these are the first 64; the shift
        // of 1 by 64 or more gives 0, so that less one there are 64.
        unsafe { hash_block::<N, PADDING>(&mut state, place, at, len, &last) };
        at += BLOCK;
        let on = longer(len, at - PADDING);
        if on == 0 {
            return finish(state, len);
        }
        if on.count_ones() <= MOST_ALONE && longer(len, at + LONG_REST_BYTES) != 0 {
            break on;
        }
    };
    let mut states = [[0; GROUP]; N];
    for i in 0..N {
        states[i] = store(state[i]);
    }
    let mut hashes = store(finish(state, len));
    for i in (0..GROUP).filter(|i| lone >> i & 1 == 1) {
        hashes[i] = alone(states.map(|word| word[i]), at, &keys[i][at..]);
    }
    load(&hashes)
}

/// The words of a block of each key, with zeros after its end.
type Words = [__m512i; BLOCK / 8];

/// From 64 bytes of each key.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn transpose_8(row: impl Fn(usize) -> __m512i) -> Words {
    // Each step doubles the number of keys in a row, and halves that of their words.
    let mut pairs = [[_mm512_setzero_si512(); 4]; 2];
    for i in 0..4 {
        let (a, b) = (row(2 * i), row(2 * i + 1));
        pairs[0][i] = _mm512_unpacklo_epi64(a, b);
        pairs[1][i] = _mm512_unpackhi_epi64(a, b);
    }
    let mut words = [_mm512_setzero_si512(); 8];
    for odd in 0..2 {
        let [a, b, c, d] = pairs[odd];
        let (low, high) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0x88>(c, d));
        words[odd] = _mm512_shuffle_i64x2::<0x88>(low, high);
        words[odd + 4] = _mm512_shuffle_i64x2::<0xdd>(low, high);
        let (low, high) = (_mm512_shuffle_i64x2::<0xdd>(a, b), _mm512_shuffle_i64x2::<0xdd>(c, d));
        words[odd + 2] = _mm512_shuffle_i64x2::<0x88>(low, high);
        words[odd + 6] = _mm512_shuffle_i64x2::<0xdd>(low, high);
    }
    words
}

/// From 32 bytes of each key.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn transpose_4(half: impl Fn(usize) -> __m256i) -> Words {
    let row = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(i)), half(i + 4));
    let (a, b, c, d) = (row(0), row(1), row(2), row(3));
    let first = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
    let second = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
    let mut words = [_mm512_setzero_si512(); 8];
    let (low, high) = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
    words[0] = _mm512_permutex2var_epi64(low, first, high);
    words[2] = _mm512_permutex2var_epi64(low, second, high);
    let (low, high) = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
    words[1] = _mm512_permutex2var_epi64(low, first, high);
    words[3] = _mm512_permutex2var_epi64(low, second, high);
    words
}

/// From 16 bytes of each key.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn transpose_2(quarter: impl Fn(usize) -> __m128i) -> Words {
    let half = |i: usize| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(quarter(i)), quarter(i + 2));
    let row = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(i)), half(i + 4));
    let (even, odd) = (row(0), row(1));
    let mut words = [_mm512_setzero_si512(); 8];
    words[0] = _mm512_unpacklo_epi64(even, odd);
    words[1] = _mm512_unpackhi_epi64(even, odd);
    words
}

// ---- Murmur3 x64_128; murmur3.rs is the specification ----

/// The first step for 16 bytes, and the only one for the bytes after the last 16. Zeros change
/// nothing.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn murmur3_mix([h1, h2]: State<2>, k1: __m512i, k2: __m512i) -> State<2> {
    [_mm512_xor_si512(h1, mix_k1(k1)), _mm512_xor_si512(h2, mix_k2(k2))]
}

/// The second step for 16 bytes, from the state before and after the first.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn murmur3_go_on([_, before]: State<2>, [h1, h2]: State<2>) -> State<2> {
    let h1 = _mm512_add_epi64(_mm512_rol_epi64::<27>(h1), before);
    let h1 = _mm512_add_epi64(times_5(h1), _mm512_set1_epi64(0x52dc_e729));
    let h2 = _mm512_add_epi64(_mm512_rol_epi64::<31>(h2), h1);
    let h2 = _mm512_add_epi64(times_5(h2), _mm512_set1_epi64(0x3849_5ab5));
    [h1, h2]
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn murmur3_finish([h1, h2]: State<2>, len: __m512i) -> __m512i {
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
    let k = multiply(_mm512_xor_si512(k, _mm512_srli_epi64::<33>(k)), FMIX[0]);
    let k = multiply(_mm512_xor_si512(k, _mm512_srli_epi64::<33>(k)), FMIX[1]);
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

// ---- SipHash-1-3; siphash.rs is the specification ----

#[target_feature(enable = "avx512f")]
#[inline]
fn siphash13_round([v0, v1, v2, v3]: State<4>) -> State<4> {
    let (v0, v2) = (_mm512_add_epi64(v0, v1), _mm512_add_epi64(v2, v3));
    let v1 = _mm512_xor_si512(_mm512_rol_epi64::<13>(v1), v0);
    let v3 = _mm512_xor_si512(_mm512_rol_epi64::<16>(v3), v2);
    let v0 = _mm512_add_epi64(_mm512_rol_epi64::<32>(v0), v3);
    let v2 = _mm512_add_epi64(v2, v1);
    let v1 = _mm512_xor_si512(_mm512_rol_epi64::<17>(v1), v2);
    let v3 = _mm512_xor_si512(_mm512_rol_epi64::<21>(v3), v0);
    [v0, v1, _mm512_rol_epi64::<32>(v2), v3]
}

/// Takes eight bytes of each key.
#[target_feature(enable = "avx512f")]
#[inline]
fn siphash13_mix([v0, v1, v2, v3]: State<4>, word: __m512i) -> State<4> {
    let [v0, v1, v2, v3] = siphash13_round([v0, v1, v2, _mm512_xor_si512(v3, word)]);
    [_mm512_xor_si512(v0, word), v1, v2, v3]
}

/// The hash, after the word with the length.
#[target_feature(enable = "avx512f")]
#[inline]
fn siphash13_finish([v0, v1, v2, v3]: State<4>) -> __m512i {
    let mut state = [v0, v1, _mm512_xor_si512(v2, _mm512_set1_epi64(siphash::END as i64)), v3];
    for _ in 0..3 {
        state = siphash13_round(state);
    }
    let [v0, v1, v2, v3] = state;
    _mm512_xor_si512(_mm512_xor_si512(v0, v1), _mm512_xor_si512(v2, v3))
}
