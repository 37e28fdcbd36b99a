//! The lookups for AVX-512 with VBMI and BITALG: Ice Lake (2019), Zen 4 (2022) and later.
//! Everything else is as in `avx512.rs`.
//!
//! VBMI cuts eight positions out of a product at once. BITALG tests eight bits of a word at once.
//! So a lookup takes two instructions for each word, whatever the number of bits, and that number
//! is data.

use super::avx512::{insert_into, kept_or_folded, load, places, products, unpack};
use super::loads::{self, line_of};
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{self, BitFields, MULTIPLIER, folded, words_per_product};
use crate::kernel::dispatch::Probe;
use crate::kernel::pipeline::{self, Group, GroupWords};
use crate::kernel::plan::AccessPlan;
use crate::kernel::scalar;
use crate::kernel::two_lines;
use crate::words::bits::{Lines, Load, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;
use core::num::NonZeroU64;

/// The constants of the lookup that is inlined: of two words from one product.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Pair {
    /// The bits of the product that select the second word. The highest two select the first.
    second: NonZeroU64,
    byte_shifts: [u64; 2],
}

impl Pair {
    pub(super) fn of(bits: usize) -> Self {
        let fields = BitFields::new(2, bits);
        Self {
            second: NonZeroU64::new(fields.selects[1]).expect("two bits"),
            byte_shifts: [fields.byte_shifts[0], fields.byte_shifts[1]],
        }
    }

    /// # Safety
    ///
    /// The CPU has AVX-512 with VBMI and BITALG.
    #[inline(always)]
    pub(super) unsafe fn contains<T: Load>(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        let line = line_of(lines, hash);
        let product = pattern::product(hash);
        // SAFETY: the words are those of a line of the filter: two bits select one of a half. There
        // are as few loads as can be, since they, and not the instructions, limit how many lookups
        // wait for memory at a time.
        unsafe {
            let words = loads::two::<2, T>(line, product >> 62, loads::extract_bits(product, self.second.get()));
            loads::two_hold(words, product, &self.byte_shifts)
        }
    }
}

/// How many words the single lookups cut from one scalar product, at most four; 0 if the products
/// of all words are a vector's.
///
/// On Intel a product in a vector takes three operations. Zen 4 takes as long either way: four
/// words at 32 KiB 2.5 to 2.7 ns by scalar products and 2.2 to 3.0 by a vector, at 512 KiB 2.8 and
/// 2.7. Eight words need up to four products, and no addresses from them.
pub(super) const fn scalar_words(words: usize, bits: usize, gather: bool) -> usize {
    let per_product = words_per_product(words, bits);
    match words {
        2 | 4 if !gather => 0,
        2 | 4 if per_product > words => words,
        2 | 4 => per_product,
        _ => 0,
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
fn contains<const W: usize, const SCALAR: usize, T: Load>(lines: Lines<'_, T>, hash: u64, fields: &BitFields) -> bool {
    if SCALAR > 0 {
        return contains_scalar::<W, SCALAR, T>(lines, hash, fields);
    }
    let line = line_of(lines, hash);
    let group = LINE_WORDS / W;
    let (folded, eight) = (folded(hash) as i64, fields.byte_shifts[0] as i64);
    // SAFETY: there are 8 multipliers and shifts. The words are those of a line of the filter: what
    // is shifted down selects one of a group. All loads are of a line or of `fields`.
    unsafe {
        match W {
            1 => {
                let product = (folded as u64).wrapping_mul(MULTIPLIER);
                let word = loads::twice(line, product >> (64 - group.ilog2()));
                let positions = _mm_multishift_epi64_epi8(_mm_set1_epi64x(eight), _mm_set1_epi64x(product as i64));
                _mm_bitshuffle_epi64_mask(word, positions) == u16::MAX
            }
            2 => {
                let multipliers = _mm_loadu_si128(fields.multipliers.as_ptr().cast());
                let products = _mm_mullo_epi64(_mm_set1_epi64x(folded), multipliers);
                let words = two_selected::<W, T>(line, _mm_srli_epi64::<62>(products));
                let positions = _mm_multishift_epi64_epi8(_mm_set1_epi64x(eight), products);
                _mm_bitshuffle_epi64_mask(words, positions) == u16::MAX
            }
            4 => {
                let multipliers = _mm256_loadu_si256(fields.multipliers.as_ptr().cast());
                let products = _mm256_mullo_epi64(_mm256_set1_epi64x(folded), multipliers);
                let selects = _mm256_srli_epi64::<63>(products);
                let low = two_selected::<W, T>(line, _mm256_castsi256_si128(selects));
                let high = two_selected::<W, T>(line.add(2 * group), _mm256_extracti128_si256::<1>(selects));
                let positions = _mm256_multishift_epi64_epi8(_mm256_set1_epi64x(eight), products);
                _mm256_bitshuffle_epi64_mask(_mm256_set_m128i(high, low), positions) == u32::MAX
            }
            _ => {
                let products = _mm512_mullo_epi64(_mm512_set1_epi64(folded), load(&fields.multipliers));
                let two = |i| loads::two::<W, T>(line.add(i), 0, 0);
                let low = _mm256_set_m128i(two(2), two(0));
                let high = _mm256_set_m128i(two(6), two(4));
                let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                let positions = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(eight), products);
                _mm512_bitshuffle_epi64_mask(words, positions) == u64::MAX
            }
        }
    }
}

/// [`contains`] by scalar products, `SCALAR` words from each.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
fn contains_scalar<const W: usize, const SCALAR: usize, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    fields: &BitFields,
) -> bool {
    let line = line_of(lines, hash);
    let group = LINE_WORDS / W;
    let mut products = [pattern::product(hash); W];
    for i in 1..W {
        products[i] = products[i - 1];
        if i % SCALAR == 0 {
            products[i] = products[i].wrapping_mul(MULTIPLIER);
        }
    }
    // SAFETY: there are 8 shifts. The words are those of a line of the filter: what is shifted down
    // or extracted selects one of a group. All loads are of a line or of `fields`.
    unsafe {
        let select = |i: usize| match i % SCALAR {
            0 => products[i] >> (64 - group.ilog2()),
            _ => loads::extract_bits(products[i], fields.selects[i]),
        };
        let low = loads::two::<W, T>(line, select(0), select(1));
        let [first, second] = [products[0] as i64, products[1] as i64];
        if W == 2 {
            let shifts = _mm_loadu_si128(fields.byte_shifts.as_ptr().cast());
            let positions = _mm_multishift_epi64_epi8(shifts, _mm_set_epi64x(second, first));
            return _mm_bitshuffle_epi64_mask(low, positions) == u16::MAX;
        }
        let high = loads::two::<W, T>(line.add(2 * group), select(2), select(3));
        let products = _mm256_set_epi64x(products[3] as i64, products[2] as i64, second, first);
        let shifts = _mm256_loadu_si256(fields.byte_shifts.as_ptr().cast());
        let positions = _mm256_multishift_epi64_epi8(shifts, products);
        _mm256_bitshuffle_epi64_mask(_mm256_set_m128i(high, low), positions) == u32::MAX
    }
}

/// [`loads::two`] by a vector of numbers.
///
/// # Safety
///
/// The words are there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
unsafe fn two_selected<const W: usize, T: Load>(group: *const T, selects: __m128i) -> __m128i {
    let [low, high] = [_mm_cvtsi128_si64(selects), _mm_extract_epi64::<1>(selects)];
    // SAFETY: as promised.
    unsafe { loads::two::<W, T>(group, low as u64, high as u64) }
}

/// [`contains`] for a call by a pointer.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn contains_one<const W: usize, const SCALAR: usize, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    probe: &Probe<T>,
) -> bool {
    contains::<W, SCALAR, T>(lines, hash, &probe.fields)
}

/// [`two_lines::contains`], with both lookups inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn contains_two<const W: usize, const SCALAR: usize, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    probe: &Probe<T>,
) -> bool {
    two_lines::both(lines, hash, probe.hint, |line, hash| {
        contains::<W, SCALAR, T>(line, hash, &probe.fields)
    })
}

/// Whether each of a few hashes is found, one by one, as the bits of a word.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn few_bitmap<const W: usize, const SCALAR: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    probe: &Probe<T>,
) -> u64 {
    scalar::few_bitmap(hashes, &lines, probe.hint, |hash| {
        contains::<W, SCALAR, T>(lines, hash, &probe.fields)
    })
}

/// Whether each of a few hashes is found, one by one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn few_flags<const W: usize, const SCALAR: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    probe: &Probe<T>,
    found: &mut [bool],
) {
    scalar::few(hashes, &lines, probe.hint, found, |hash| {
        contains::<W, SCALAR, T>(lines, hash, &probe.fields)
    });
}

/// Whether each of a few hashes is found, in groups.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn group_flags<const W: usize, const GATHER: bool, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    probe: &Probe<T>,
    found: &mut [bool],
) {
    unpack(&[group_bitmap::<W, GATHER, T>(lines, hashes, probe)], found);
}

/// Whether each of a few hashes is found, in groups, as the bits of a word.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn group_bitmap<const W: usize, const GATHER: bool, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    probe: &Probe<T>,
) -> u64 {
    let (count, all, fields) = (lines.blocks(), lines.all().as_ptr().cast::<T>(), &probe.fields);
    // SAFETY: as in `contains_hashes`.
    unsafe {
        pipeline::contains_few(
            &lines,
            probe.hint,
            hashes,
            |group, at| places::<W, GATHER>(group, fields, 0, count, at),
            |group, at| hold::<W, 0, GATHER, 2, T>(group, fields, all, at),
        )
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline(never)]
pub(super) fn contains_hashes<const W: usize, const TURN: usize, const GATHER: bool, T: Load>(
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
        pipeline::run::<W, TURN, _>(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W, GATHER>(group, fields, 0, count, at),
            |_, group, at| hold::<W, TURN, GATHER, 0, T>(group, fields, all, at),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize, const TURN: usize, const GATHER: bool>(
    mut lines: Lines<'_, AtomicU64>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<AtomicU64>();
    insert_into::<W, TURN, GATHER, _>(&mut lines, fields, access, hashes, changed, |group, at| {
        // SAFETY: `places` wrote the product, and words of the filter.
        unsafe { hold::<W, TURN, GATHER, 1, _>(group, fields, all, at) }
    });
}

/// Each `CALLER` has a copy of its own.
///
/// # Safety
///
/// `places` wrote the words, and the products if they are kept. The words are there, counted from
/// `all` on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
unsafe fn hold<const W: usize, const TURN: usize, const GATHER: bool, const CALLER: u8, T: Load>(
    hashes: &Group,
    fields: &BitFields,
    all: *const T,
    places: &GroupWords<W>,
) -> u8 {
    // SAFETY: as promised.
    let (numbers, from) = unsafe { (places.words(), kept_or_folded::<W, GATHER>(hashes, places)) };
    let products = products::<W, GATHER>(from, fields);
    let test = |words, product, shifts: u64| {
        let positions = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(shifts as i64), product);
        _mm512_bitshuffle_epi64_mask(words, positions)
    };
    let mut held = u64::MAX;
    for i in 0..W {
        // SAFETY: as promised.
        let words = unsafe { loads::eight::<GATHER, T>(all, &numbers[i]) };
        held &= test(words, products[i], fields.byte_shifts[if GATHER { i } else { 0 }]);
    }
    _mm512_cmpeq_epi64_mask(_mm512_movm_epi8(held), _mm512_set1_epi64(-1))
}
