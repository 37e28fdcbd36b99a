//! Hashes of many keys by AVX-512, eight at a time.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over the lanes unroll, which those over iterators do not always"
)]

use super::avx512::{load, store};
use crate::funnel::Sink;
use crate::hash::murmur3::Murmur3Sink;
use crate::hash::siphash;
use crate::kernel::hash_lanes::{
    self, Lanes, begin, in_scalar_code, murmur3_finish, murmur3_go_on, murmur3_mix, siphash13_finish, siphash13_mix,
};
use crate::kernel::plan::GROUP;
use core::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_short(start: &[u64; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    // SAFETY: this function has the features.
    unsafe {
        match width {
            0..=8 => hash_lanes::murmur3_short::<__m512i, 8, 1, 8>(start, width, keys, high),
            9..16 => hash_lanes::murmur3_short::<__m512i, 8, 1, 15>(start, width, keys, high),
            _ => hash_lanes::murmur3_short::<__m512i, 8, 1, 16>(start, width, keys, high),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn siphash13_short(start: &[u64; 4], width: usize, keys: &mut [u64], high: &[u64]) {
    // SAFETY: as above.
    unsafe { hash_lanes::siphash13_short::<__m512i>(start, width, keys, high) };
}

// SAFETY: a vector of 512 bits is any eight numbers.
#[expect(unsafe_op_in_unsafe_fn, reason = "its functions need the features, and say so once")]
unsafe impl Lanes for __m512i {
    const LANES: usize = GROUP;

    #[inline(always)]
    unsafe fn all(number: u64) -> Self {
        _mm512_set1_epi64(number as i64)
    }

    #[inline(always)]
    unsafe fn set([a, b, c, d, e, f, g, h]: [u64; GROUP]) -> Self {
        let two = |a, b| _mm_set_epi64x(b as i64, a as i64);
        let (low, high) = (
            _mm256_set_m128i(two(c, d), two(a, b)),
            _mm256_set_m128i(two(g, h), two(e, f)),
        );
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        _mm512_add_epi64(self, other)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        _mm512_xor_si512(self, other)
    }

    #[inline(always)]
    unsafe fn multiply(self, by: u64) -> Self {
        _mm512_mullo_epi64(self, Self::all(by))
    }

    #[inline(always)]
    unsafe fn rotate<const UP: i32, const DOWN: i32>(self) -> Self {
        _mm512_rol_epi64::<UP>(self)
    }

    #[inline(always)]
    unsafe fn xor_shifted_33(self) -> Self {
        _mm512_xor_si512(self, _mm512_srli_epi64::<33>(self))
    }
}

// ---- Keys of any length ----

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn murmur3_slices(start: &[u64; 2], keys: &[[&[u8]; GROUP]], out: &mut [u64]) {
    // SAFETY: this function has the features.
    unsafe {
        each_slices::<2, 0>(
            start,
            keys,
            out,
            |state, k1, k2| murmur3_go_on(state, murmur3_mix(state, k1, k2)),
            |state, k1, k2, at, len| {
                let mixed = murmur3_mix(*state, k1, k2);
                let next = murmur3_go_on(*state, mixed);
                // The others end within these bytes, or have ended: zeros have left them as they
                // were.
                let on = longer(len, at + 15);
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
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn siphash13_slices(start: &[u64; 4], keys: &[[&[u8]; GROUP]], out: &mut [u64]) {
    // SAFETY: this function has the features.
    unsafe {
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
    chunk: impl Fn([__m512i; N], __m512i, __m512i) -> [__m512i; N],
    last: impl Fn(&mut [__m512i; N], __m512i, __m512i, usize, __m512i),
    finish: impl Fn([__m512i; N], __m512i) -> __m512i,
    alone: impl Fn([u64; N], usize, &[u8]) -> u64,
) {
    for (keys, out) in keys.iter().zip(out.chunks_mut(GROUP)) {
        let len = core::array::from_fn(|i| in_scalar_code(keys[i].len() as u64));
        // SAFETY: this function has the features.
        let len = unsafe { __m512i::set(len) };
        // Less one, so that no bytes are too many as well.
        let most = _mm512_set1_epi64((BLOCK - PADDING) as i64);
        let less_one = _mm512_sub_epi64(len, _mm512_set1_epi64(1));
        let hashes = if _mm512_cmpge_epu64_mask(less_one, most) == 0 {
            // SAFETY: this function has the features.
            let mut state = unsafe { begin(start) };
            let place = |i: usize| (keys[i].as_ptr(), _bzhi_u64(u64::MAX, keys[i].len() as u32));
            // SAFETY: a key has the bytes that its length says, at most a block.
            unsafe { hash_block::<N, PADDING>(&mut state, place, 0, len, &last) };
            finish(state, len)
        } else {
            hash_blocks::<N, PADDING>(start, keys, len, &chunk, &last, &finish, &alone)
        };
        // SAFETY: this function has the features.
        unsafe { hashes.store(out) };
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
    state: &mut [__m512i; N],
    place: impl Fn(usize) -> (*const u8, u64),
    at: usize,
    len: __m512i,
    last: impl Fn(&mut [__m512i; N], __m512i, __m512i, usize, __m512i),
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
    chunk: impl Fn([__m512i; N], __m512i, __m512i) -> [__m512i; N],
    last: impl Fn(&mut [__m512i; N], __m512i, __m512i, usize, __m512i),
    finish: impl Fn([__m512i; N], __m512i) -> __m512i,
    alone: impl Fn([u64; N], usize, &[u8]) -> u64,
) -> __m512i {
    // SAFETY: this function has the features.
    let mut state = unsafe { begin(start) };
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
