//! The kernels for AVX-512 (F, BW, DQ, VL): x86-64 servers from Skylake (2017) and Zen 4 (2022) on.

use super::avx2::{self, Avx2};
use super::loads;
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{BLOCK_MULTIPLIER, FOLD, MULTIPLIER, PART_BITS, Pattern};
use crate::kernel::isa::Vectorized;
use crate::kernel::pipeline::{self, Group, Places, Slot, TILE_GROUPS, Vectors};
use crate::kernel::plain;
use crate::kernel::plan::{GROUP, Prefetching};
use crate::words::bits::{Lines, Load, OwnedRange};
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline(never)]
pub(super) fn contains_hashes<const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    found: &mut [u64],
) {
    // SAFETY: this function has the features.
    unsafe { pipeline::contains::<Avx512, W, TURN, T>(lines, pattern, prefetching, hashes, found) };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize, const TURN: usize>(
    lines: Lines<'_, AtomicU64>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    // SAFETY: this function has the features.
    unsafe { pipeline::insert::<Avx512, W, TURN>(lines, pattern, prefetching, hashes, changed) };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    // SAFETY: this function has the features.
    unsafe { pipeline::fill::<Avx512, W>(region, pattern, prefetching, hashes, changed) };
}

/// The operations on a group.
struct Avx512;

// SAFETY: `places` and `masks` write all slots.
unsafe impl Vectors for Avx512 {
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    unsafe fn places<const W: usize>(hashes: &Group, count: usize, places: &mut Places) {
        let place = multiply(load(hashes), BLOCK_MULTIPLIER);
        // (high * 2^32 + low) * count / 2^32, by two products of 32 bits.
        let count = _mm512_set1_epi64(count as i64);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(place), count);
        let low = _mm512_mul_epu32(place, count);
        let scaled = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(low));
        // The number of the sector, and then of its first word.
        let down = i64::from(32 - (LINE_WORDS / W).ilog2());
        let sectors = _mm512_srlv_epi64(scaled, _mm512_set1_epi64(down));
        let words = _mm512_sllv_epi64(sectors, _mm512_set1_epi64(W.ilog2().into()));
        let folded = _mm512_xor_si512(place, _mm512_srli_epi64::<FOLD>(place));
        places.sectors.write(store(words));
        places.products.write(store(multiply(folded, MULTIPLIER)));
    }

    // Two keys in a vector, but for eight words.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
        pattern: &Pattern,
        all: *const T,
        places: &Places,
    ) -> u8 {
        if W == LINE_WORDS || T::COUNTERS {
            // SAFETY: as promised.
            return unsafe { Avx2::hold::<W, TURN, LOOKUP, T>(pattern, all, places) };
        }
        // SAFETY: as promised.
        let (sectors, products) = unsafe { places.written() };
        let products = load(products);
        if W == 1 {
            // Masks of one word take less for eight keys than vectors for two.
            let [masks] = masks_of_eight::<1>(products, pattern.bits);
            let [first, second] = [0, 4].map(|key| sectors[key..][..4].try_into().expect("they are four"));
            // SAFETY: as promised.
            let words = unsafe { [loads::four(all, first), loads::four(all, second)] };
            let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(words[0]), words[1]);
            return !_mm512_test_epi64_mask(_mm512_andnot_si512(words, masks), masks);
        }
        // SAFETY: reads the array.
        let order = _mm512_broadcast_i64x4(unsafe { _mm256_load_si256(pattern.lanes.as_ptr().cast()) });
        let mut held = [0; GROUP / 2];
        for pair in 0..GROUP / 2 {
            let (first, second) = (2 * pair as i64, 2 * pair as i64 + 1);
            let keys = _mm512_set_epi64(second, second, second, second, first, first, first, first);
            let lanes = _mm512_shuffle_epi8(_mm512_permutexvar_epi64(keys, products), order);
            let at = [sectors[2 * pair], sectors[2 * pair + 1]];
            // SAFETY: as promised.
            let parts = unsafe { loads::selected_of_two::<W, T>(all, at, lanes) };
            let bits = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<27>(lanes));
            held[pair] = _mm512_test_epi32_mask(parts, bits);
        }
        // A byte for each key.
        let low = _mm512_kunpackw(held[1].into(), held[0].into());
        let high = _mm512_kunpackw(held[3].into(), held[2].into());
        let bytes = _mm_cvtsi64_si128(_mm512_kunpackd(high.into(), low.into()) as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(-1))) as u8
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, pattern: &Pattern, into: &mut [Slot; W]) {
        let masks = masks_of_eight::<W>(load(products), pattern.bits);
        for word in 0..W {
            into[word].write(store(masks[word]));
        }
    }
}

/// The masks of eight keys at once, as those of AVX2.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
#[inline]
fn masks_of_eight<const W: usize>(products: __m512i, bits: usize) -> [__m512i; W] {
    let parts = if W == LINE_WORDS { LINE_WORDS } else { 2 * W };
    let part = _mm512_set1_epi8((PART_BITS * (parts - 1)) as u8 as i8);
    let bit = _mm512_and_si512(_mm512_srli_epi16::<3>(products), _mm512_set1_epi8(PART_BITS as i8 - 1));
    let mut numbers = _mm512_or_si512(bit, _mm512_and_si512(_mm512_slli_epi16::<5>(products), part));
    let mut masks = [_mm512_setzero_si512(); W];
    let mut left = bits;
    while left > 0 {
        // Eight words: a position in the first four, and then one in the others.
        for first in (0..W).step_by(4) {
            let number = _mm512_srli_epi64::<56>(numbers);
            numbers = _mm512_slli_epi64::<8>(numbers);
            for word in 0..W.min(4) {
                // A count of 64 or more, in another word, makes no bit.
                let count = _mm512_xor_si512(number, _mm512_set1_epi64(64 * word as i64));
                let bit = _mm512_sllv_epi64(_mm512_set1_epi64(1), count);
                masks[first + word] = _mm512_or_si512(masks[first + word], bit);
            }
            left -= 1;
        }
    }
    masks
}

/// Calls `work`, compiled for this instruction set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn vectorized<W: Vectorized>(work: W) -> W::Output {
    work.run()
}

/// [`plain::and_rows`] by these vectors.
///
/// # Safety
///
/// All rows lie within `words`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    // SAFETY: a row has as many words as `out`. The vectors of a row end with it or before, so all
    // words are there.
    let done = unsafe {
        plain::and_rows_by::<8, _, _>(
            words,
            starts,
            out,
            _mm512_set1_epi64(-1),
            |all, at| loads::and_eight(all, at),
            |all| _mm512_test_epi64_mask(all, all) == 0,
            |out, all| _mm512_storeu_si512(out.as_mut_ptr().cast(), all),
        )
    };
    if done < out.len() {
        // SAFETY: the rest of each row.
        unsafe { avx2::and_rows(&words[done..], starts, &mut out[done..]) };
    }
}

/// Writes a bit of the bitmap to each place of `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
pub(super) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    for (out, &word) in out.chunks_mut(64).zip(bitmap) {
        let (len, to) = (out.len(), out.as_mut_ptr().cast::<i8>());
        // SAFETY: writes the bytes of `out` alone, each 0 or 1, which are the values of `bool`.
        // (Two stores that overlap, since a caller who reads at once waits long for a store by a
        // mask.)
        unsafe {
            if len == 64 {
                _mm512_storeu_epi8(to, _mm512_maskz_set1_epi8(word, 1));
            } else if len >= 32 {
                let last = (word >> (len - 32)) as u32;
                _mm256_storeu_epi8(to, _mm256_maskz_set1_epi8(word as u32, 1));
                _mm256_storeu_epi8(to.add(len - 32), _mm256_maskz_set1_epi8(last, 1));
            } else if len >= 16 {
                let last = (word >> (len - 16)) as u16;
                _mm_storeu_epi8(to, _mm_maskz_set1_epi8(word as u16, 1));
                _mm_storeu_epi8(to.add(len - 16), _mm_maskz_set1_epi8(last, 1));
            } else {
                _mm256_mask_storeu_epi8(to, !(u32::MAX << len), _mm256_maskz_set1_epi8(word as u32, 1));
            }
        }
    }
}

/// [`plain::pack`] by these vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn pack(hashes: &mut [u64], found: &[u64]) -> usize {
    assert_eq!(hashes.len().div_ceil(64), found.len());
    let (mut len, all, groups) = (0, hashes.as_mut_ptr(), hashes.len() / GROUP);
    for (first, &found) in (0..groups).step_by(TILE_GROUPS).zip(found) {
        for i in 0..TILE_GROUPS.min(groups - first) {
            let mask = (found >> (GROUP * i)) as u8;
            // SAFETY: `first + i` is below `groups`, so the group that is read lies within the
            // hashes. Each hash before it counted once in `len` at most, so the group that is
            // written, over hashes that were read, ends no later than that.
            unsafe {
                let group = _mm512_loadu_si512(all.add(GROUP * (first + i)).cast());
                _mm512_storeu_si512(all.add(len).cast(), _mm512_maskz_compress_epi64(mask, group));
            }
            len += mask.count_ones() as usize;
        }
    }
    for i in GROUP * groups..hashes.len() {
        hashes[len] = hashes[i];
        len += (found[i / 64] >> (i % 64) & 1) as usize;
    }
    len
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply(vector: __m512i, by: u64) -> __m512i {
    _mm512_mullo_epi64(vector, _mm512_set1_epi64(by as i64))
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(group: &Group) -> __m512i {
    // SAFETY: any eight numbers are a vector.
    unsafe { core::mem::transmute::<Group, __m512i>(*group) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(vector: __m512i) -> Group {
    // SAFETY: any vector is eight numbers.
    unsafe { core::mem::transmute::<__m512i, Group>(vector) }
}
