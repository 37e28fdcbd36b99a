//! The kernels for AVX-512 (F, BW, DQ, VL): x86-64 servers from Skylake (2017) and Zen 4 (2022) on.

use super::{avx2, loads};
use crate::geometry::pattern;
use crate::kernel::dispatch::Vectorized;
use crate::kernel::pipeline::{Group, TILE_GROUPS};
use crate::kernel::plan::GROUP;
use crate::kernel::{scalar, two_lines};
use crate::words::bits::Load;
use crate::words::chunks::as_chunks;
use core::arch::x86_64::*;

/// Calls `work`, compiled for this instruction set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn vectorized<W: Vectorized>(work: W) -> W::Output {
    work.run()
}

/// As [`scalar::and_rows`].
///
/// # Safety
///
/// All rows lie within `words`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) unsafe fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    // SAFETY: a row has as many words as `out`. The vectors of a row end with it or before, so all
    // words are there.
    let done = unsafe {
        scalar::and_rows_by::<8, _, _>(
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

/// As [`two_lines::gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn gather(hashes: &[u64], found: &[u64], into: &mut [u64]) -> usize {
    assert!(hashes.len().div_ceil(64) == found.len() && into.len() >= hashes.len() + two_lines::ROOM);
    let (groups, rest) = as_chunks::<GROUP, _>(hashes);
    let mut len = 0;
    let mut add = |hashes: __m512i, mask: u8| {
        let mixed = _mm512_xor_si512(hashes, _mm512_srli_epi64::<32>(hashes));
        let second = _mm512_mullo_epi64(mixed, _mm512_set1_epi64(pattern::SECOND as i64));
        // SAFETY: writes a group after the `len` hashes so far, which are no more than those read.
        unsafe {
            let to = into.as_mut_ptr().add(len).cast();
            _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(mask, second));
        }
        len += mask.count_ones() as usize;
    };
    for (groups, &found) in groups.chunks(TILE_GROUPS).zip(found) {
        for (i, group) in groups.iter().enumerate() {
            add(load(group), (found >> (GROUP * i)) as u8);
        }
    }
    if !rest.is_empty() {
        let mask = (1 << rest.len()) - 1;
        // SAFETY: reads the rest alone.
        let last = unsafe { _mm512_maskz_loadu_epi64(mask, rest.as_ptr().cast()) };
        add(
            last,
            (found[found.len() - 1] >> (GROUP * groups.len() % 64)) as u8 & mask,
        );
    }
    len
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
