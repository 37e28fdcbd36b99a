//! The kernels for AVX-512 (F, BW, DQ, VL): x86-64 servers from Skylake (2017) and Zen 4 (2022) on.
//! Eight keys fill a vector.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use super::{avx2, loads};
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{self, BLOCK_MULTIPLIER, BitFields, FOLD, MULTIPLIER};
use crate::kernel::dispatch::Vectorized;
use crate::kernel::pipeline::{self, Group, GroupWords, Slot, TILE_GROUPS};
use crate::kernel::plan::{AccessPlan, GROUP};
use crate::kernel::{scalar, two_lines};
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::chunks::as_chunks;
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline(never)]
pub(super) fn contains_hashes<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    found: &mut [u64],
) {
    let (count, all) = (lines.blocks(), lines.all().as_ptr().cast::<T>());
    // SAFETY: `places` writes the product and all words, of blocks below `count`, which is below
    // 2^32 (`Isa::for_blocks`); a block has 8. So they are words of `all`.
    unsafe {
        pipeline::run::<W, TILE_GROUPS, _>(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W, true>(group, fields, 0, count, at),
            |_, _, at| hold::<W, true, T>(fields, all, at),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize>(
    mut lines: Lines<'_, AtomicU64>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<AtomicU64>();
    insert_into::<W, TILE_GROUPS, true, _>(&mut lines, fields, access, hashes, changed, |_, at| {
        // SAFETY: `places` wrote the product, and words of the filter.
        unsafe { hold::<W, false, _>(fields, all, at) }
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(super) fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    if hashes.len() < GROUP {
        return scalar::fill::<W>(region, fields, access, hashes, changed);
    }
    insert_into::<W, TILE_GROUPS, false, _>(region, fields, access, hashes, changed, |_, _| 0);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
pub(super) fn insert_into<const W: usize, const TURN: usize, const KEPT: bool, T: Insertable>(
    target: &mut T,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
    hold: impl Fn(&Group, &GroupWords<W>) -> u8,
) {
    let (first, count) = (target.first(), target.blocks());
    // SAFETY: `places` writes all words, and the product if it is kept; `masks` writes all masks.
    unsafe {
        pipeline::insert::<W, TURN, _>(
            target,
            access,
            hashes,
            changed,
            |group, at| places::<W, KEPT>(group, fields, first, count, at),
            hold,
            |group, at, into| masks::<W, TURN, KEPT, T>(group, at, fields, into),
        );
    }
}

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

/// The numbers scaled to `0..count`, which must be below 2^32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn scale(numbers: __m512i, count: usize) -> __m512i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm512_set1_epi64(count as i64);
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(numbers), count);
    let low = _mm512_mul_epu32(numbers, count);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
}

/// Writes the hashes' first product if it is `KEPT` for later.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
pub(super) fn places<const W: usize, const KEPT: bool>(
    hashes: &Group,
    fields: &BitFields,
    first: usize,
    count: usize,
    places: &mut GroupWords<W>,
) {
    let place = multiply(load(hashes), BLOCK_MULTIPLIER);
    let block = _mm512_sub_epi64(scale(place, count), _mm512_set1_epi64(first as i64));
    let line = _mm512_slli_epi64::<3>(block);
    let mut from = fold(place);
    if KEPT {
        from = multiply(from, MULTIPLIER);
        places.products.write(store(from));
    }
    let products = products::<W, KEPT>(from, fields);
    let group = LINE_WORDS / W;
    for i in 0..W {
        let select = if KEPT {
            let above = shift(products[i], fields.words[i].select);
            _mm512_and_si512(above, _mm512_set1_epi64(group as i64 - 1))
        } else {
            // A shift by 64, where there is nothing to select from, leaves nothing.
            shift(products[i], 64 - group.ilog2())
        };
        let word = _mm512_add_epi64(select, _mm512_set1_epi64((i * group) as i64));
        places.words[i].write(store(_mm512_add_epi64(line, word)));
    }
}

/// What [`products`] begin with.
///
/// # Safety
///
/// `places` wrote the product, if it is kept.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) unsafe fn kept_or_folded<const W: usize, const KEPT: bool>(
    hashes: &Group,
    places: &GroupWords<W>,
) -> __m512i {
    if KEPT {
        // SAFETY: as promised.
        load(unsafe { places.products.assume_init_ref() })
    } else {
        fold(multiply(load(hashes), BLOCK_MULTIPLIER))
    }
}

/// As [`pattern::folded`].
#[target_feature(enable = "avx512f")]
#[inline]
fn fold(places: __m512i) -> __m512i {
    _mm512_xor_si512(places, _mm512_srli_epi64::<FOLD>(places))
}

/// The products that the words of the patterns are cut from.
///
/// `KEPT`, they begin with the first product, and words that are cut from one product share it.
/// Else they begin with the folded hashes, and each word has a product of its own, whose highest
/// bits are the word's fields. A product is one operation on AMD's processors, and three on
/// Intel's: see `plan.rs`.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn products<const W: usize, const KEPT: bool>(from: __m512i, fields: &BitFields) -> [__m512i; W] {
    let (mut products, mut product) = ([from; W], from);
    for i in 0..W {
        if !KEPT {
            products[i] = multiply(from, fields.multipliers[i]);
            continue;
        }
        if i > 0 && fields.words[i].multiply {
            product = multiply(product, MULTIPLIER);
        }
        products[i] = product;
    }
    products
}

/// # Safety
///
/// `places` wrote the product, if it is kept.
#[expect(clippy::extra_unused_type_parameters, reason = "one copy for each target")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
unsafe fn masks<const W: usize, const TURN: usize, const KEPT: bool, T>(
    hashes: &Group,
    places: &GroupWords<W>,
    fields: &BitFields,
    into: &mut [Slot; W],
) {
    // SAFETY: as promised.
    let from = unsafe { kept_or_folded::<W, KEPT>(hashes, places) };
    let masks = vector_masks::<W, KEPT>(from, fields);
    for i in 0..W {
        into[i].write(store(masks[i]));
    }
}

/// # Safety
///
/// `places` wrote the words and products. The words are there, counted from `all` on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
unsafe fn hold<const W: usize, const LOOKUP: bool, T: Load>(
    fields: &BitFields,
    all: *const T,
    places: &GroupWords<W>,
) -> u8 {
    // SAFETY: as promised.
    let (numbers, product) = unsafe { (places.words(), places.products.assume_init_ref()) };
    let masks = vector_masks::<W, true>(load(product), fields);
    let mut missing = _mm512_setzero_si512();
    for i in 0..W {
        // SAFETY: as promised.
        let words = unsafe { loads::eight::<false, T>(all, &numbers[i]) };
        missing = _mm512_or_si512(missing, _mm512_andnot_si512(words, masks[i]));
    }
    _mm512_testn_epi64_mask(missing, missing)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
fn vector_masks<const W: usize, const KEPT: bool>(from: __m512i, fields: &BitFields) -> [__m512i; W] {
    let mut positions = products::<W, KEPT>(from, fields);
    for i in 0..W {
        positions[i] = shift(positions[i], fields.words[if KEPT { i } else { 0 }].positions);
    }
    let mut masks = [_mm512_setzero_si512(); W];
    for _ in 0..fields.bits {
        for i in 0..W {
            // A rotation ignores all but the lowest 6 bits of its count.
            let bit = _mm512_rolv_epi64(_mm512_set1_epi64(1), positions[i]);
            masks[i] = _mm512_or_si512(masks[i], bit);
            positions[i] = _mm512_srli_epi64::<8>(positions[i]);
        }
    }
    masks
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply(vector: __m512i, by: u64) -> __m512i {
    _mm512_mullo_epi64(vector, _mm512_set1_epi64(by as i64))
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
