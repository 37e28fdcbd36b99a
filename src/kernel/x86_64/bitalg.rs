//! The lookups for AVX-512 with VBMI and BITALG: Ice Lake (2019), Zen 4 (2022) and later.
//! Everything else is as in `avx512.rs`.
//!
//! VBMI cuts eight positions out of a product at once. BITALG tests eight bits of a word at once.
//! So a lookup takes two instructions for each word, whatever the number of bits, and that number
//! is data.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over W unroll, which those over iterators do not always"
)]

use super::avx512::{insert_into, load, places, product};
use super::loads;
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{BitFields, block};
use crate::kernel::dispatch::Probe;
use crate::kernel::pipeline::{self, Group};
use crate::kernel::scalar::{few, few_bitmap};
use crate::kernel::tuning::AccessPlan;
use crate::kernel::two_lines;
use crate::words::bits::{Hint, Lines, Load, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;

/// Whether this CPU, or without `std` this target, has what the functions below need.
pub(super) fn detect() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("avx512bitalg")
        && super::avx512::detect();
    #[cfg(not(feature = "std"))]
    return COMPILED_IN;
}

/// Whether every machine that this is compiled for has it: then single calls are inlined.
pub(super) const COMPILED_IN: bool = cfg!(all(
    target_feature = "avx512f",
    target_feature = "avx512bw",
    target_feature = "avx512dq",
    target_feature = "avx512vl",
    target_feature = "avx512vbmi",
    target_feature = "avx512bitalg",
    target_feature = "bmi1",
    target_feature = "bmi2",
));

/// The pattern whose single lookups are inlined in place of a call by a pointer: 1.3 ns for the
/// most usual one, of two words. A call by a pointer takes 1.6, whatever the function does (Zen 5).
/// With the features compiled in, all patterns are inlined.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) enum Inlined {
    None,
    Words1,
    Words2,
    Words4,
    Words8,
}

impl Inlined {
    pub(in crate::kernel) fn of<const W: usize>(looks_first: bool) -> Self {
        match W {
            _ if !looks_first => Self::None,
            2 => Self::Words2,
            1 if COMPILED_IN => Self::Words1,
            4 if COMPILED_IN => Self::Words4,
            8 if COMPILED_IN => Self::Words8,
            _ => Self::None,
        }
    }

    /// # Safety
    ///
    /// The CPU has the level that this was made for.
    #[inline(always)]
    pub(in crate::kernel) unsafe fn contains<T: Load>(
        self,
        lines: Lines<'_, T>,
        hash: u64,
        fields: &BitFields,
    ) -> Option<bool> {
        // SAFETY: only the levels of BITALG have any, and the CPU has the level.
        unsafe {
            match self {
                Self::Words2 => Some(contains::<2, T>(lines, hash, fields)),
                Self::Words1 if COMPILED_IN => Some(contains::<1, T>(lines, hash, fields)),
                Self::Words4 if COMPILED_IN => Some(contains::<4, T>(lines, hash, fields)),
                Self::Words8 if COMPILED_IN => Some(contains::<8, T>(lines, hash, fields)),
                _ => None,
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
fn contains<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, fields: &BitFields) -> bool {
    // The multiplication takes the block below the number of lines, of which there is at least one
    // (`Lines`).
    let line = lines
        .all()
        .as_ptr()
        .wrapping_add(block(hash, lines.blocks()))
        .cast::<T>();
    let group = LINE_WORDS / W;
    let (hashes, eight) = (hash as i64, fields.byte_shifts[0] as i64);
    // SAFETY: there are 8 multipliers. The words are those of a line of the filter: what is shifted
    // down selects one of a group. All loads are of a line or of `fields`; there are as few as can
    // be, since they, and not the instructions, limit how many lookups wait for memory at a time.
    unsafe {
        let multipliers = fields.multipliers.as_ptr();
        match W {
            1 => {
                let product = hash.wrapping_mul(fields.multipliers[0]);
                let word = loads::twice(line, product >> (64 - group.ilog2()));
                let byte_shifts = _mm_loadu_si128(fields.byte_shifts.as_ptr().cast());
                let positions = _mm_multishift_epi64_epi8(byte_shifts, _mm_set1_epi64x(product as i64));
                _mm_bitshuffle_epi64_mask(word, positions) == u16::MAX
            }
            2 => {
                let products = _mm_mullo_epi64(_mm_set1_epi64x(hashes), _mm_loadu_si128(multipliers.cast()));
                let words = loads::two::<W, T>(line, _mm_srli_epi64::<62>(products));
                let positions = _mm_multishift_epi64_epi8(_mm_set1_epi64x(eight), products);
                _mm_bitshuffle_epi64_mask(words, positions) == u16::MAX
            }
            4 => {
                let products = _mm256_mullo_epi64(_mm256_set1_epi64x(hashes), _mm256_loadu_si256(multipliers.cast()));
                let selects = _mm256_srli_epi64::<63>(products);
                let low = loads::two::<W, T>(line, _mm256_castsi256_si128(selects));
                let high = loads::two::<W, T>(line.add(2 * group), _mm256_extracti128_si256::<1>(selects));
                let positions = _mm256_multishift_epi64_epi8(_mm256_set1_epi64x(eight), products);
                _mm256_bitshuffle_epi64_mask(_mm256_set_m128i(high, low), positions) == u32::MAX
            }
            _ => {
                let products = _mm512_mullo_epi64(_mm512_set1_epi64(hashes), load(&fields.multipliers));
                let two = |i| loads::two::<W, T>(line.add(i), _mm_setzero_si128());
                let low = _mm256_set_m128i(two(2), two(0));
                let high = _mm256_set_m128i(two(6), two(4));
                let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                let positions = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(eight), products);
                _mm512_bitshuffle_epi64_mask(words, positions) == u64::MAX
            }
        }
    }
}

/// [`contains`] for a call by a pointer.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_one<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, probe: &Probe<T>) -> bool {
    contains::<W, T>(lines, hash, &probe.fields)
}

/// [`two_lines::contains`], with both lookups inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_two<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, probe: &Probe<T>) -> bool {
    two_lines::both(lines, hash, |line, hash| contains::<W, T>(line, hash, &probe.fields))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_few<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    fields: &BitFields,
    found: &mut [bool],
) {
    few(hashes, &lines, Hint::L1, found, |hash| {
        contains::<W, T>(lines, hash, fields)
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_few_bitmap<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    fields: &BitFields,
) -> u64 {
    few_bitmap(hashes, &lines, Hint::L1, |hash| contains::<W, T>(lines, hash, fields))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_hashes<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    found: &mut [u64],
) {
    let (count, all) = (lines.blocks(), lines.all().as_ptr().cast::<T>());
    // SAFETY: `places` writes all words, of blocks below `count`, which is below 2^32
    // (`Isa::for_blocks`); a block has 8. So they are words of `all`.
    unsafe {
        pipeline::contains(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W>(group, fields, 0, count, at),
            |group, at| hold::<W, true, T>(group, fields, all, at.words(), access.gather),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize>(
    mut lines: Lines<'_, AtomicU64>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<AtomicU64>();
    insert_into::<W, _>(&mut lines, fields, access, hashes, changed, |group, at| {
        // SAFETY: `places` wrote words of the filter.
        unsafe { hold::<W, false, _>(group, fields, all, at.words(), access.gather) }
    });
}

/// Whether the words with these numbers hold all bits of their hash's pattern. Lookups and inserts
/// have copies of their own: each has one caller, and so is inlined.
///
/// # Safety
///
/// The words are there, counted from `all` on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
unsafe fn hold<const W: usize, const LOOKUP: bool, T: Load>(
    hashes: &Group,
    fields: &BitFields,
    all: *const T,
    numbers: &[Group; W],
    gather: bool,
) -> u8 {
    let hashes = load(hashes);
    let [eight, others] = fields.byte_shifts.map(|eight| _mm512_set1_epi64(eight as i64));
    let mut held = u64::MAX;
    for i in 0..W {
        // SAFETY: as promised.
        let words = unsafe { loads::eight(all, &numbers[i], gather) };
        let product = product(hashes, fields, i);
        held &= _mm512_bitshuffle_epi64_mask(words, _mm512_multishift_epi64_epi8(eight, product));
        if W == 1 && fields.bits > 8 {
            held &= _mm512_bitshuffle_epi64_mask(words, _mm512_multishift_epi64_epi8(others, product));
        }
    }
    _mm512_cmpeq_epi64_mask(_mm512_movm_epi8(held), _mm512_set1_epi64(-1))
}
