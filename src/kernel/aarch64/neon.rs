//! The kernels for NEON, which every 64-bit Arm has. Two keys fill a vector. NEON cannot multiply
//! 64 bits in vectors. So blocks and products are computed one by one, masks and tests in vectors.
//!
//! Not measured on a machine. The models of llvm-mca 22, with all data in L1, give these cycles for
//! a lookup (two words of three bits), here and one by one: Neoverse N1 14.8 and 14.8, N2 9.1 and
//! 8.9, V1 4.8 and 8.1, V2 7.0 and 6.5, Cortex-A55 32 and 35. Words are also loaded well before
//! they are tested, which the models do not see.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{self, BitFields, MULTIPLIER};
use crate::kernel::pipeline::{self, GROUP, Group, GroupWords, Slot, TILE_GROUPS};
use crate::kernel::scalar;
use crate::kernel::tuning::AccessPlan;
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::aarch64::*;

#[target_feature(enable = "neon")]
pub(super) unsafe fn contains_hashes<const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    found: &mut [u64],
) {
    let count = lines.blocks();
    // SAFETY: `places` writes the products and all words, of blocks below `count`; a block has 8.
    unsafe {
        pipeline::contains::<W, TURN>(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W>(group, fields, 0, count, at),
            |_, at| hold::<W, TURN, true, T>(fields, lines, at),
        );
    }
}

#[target_feature(enable = "neon")]
pub(super) unsafe fn insert_hashes<const W: usize, const TURN: usize>(
    mut lines: Lines<'_, AtomicU64>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines;
    // SAFETY: `places` wrote the products, and words of the filter.
    insert_into::<W, TURN, _>(&mut lines, fields, access, hashes, changed, |at| unsafe {
        hold::<W, TURN, false, _>(fields, all, at)
    });
}

#[target_feature(enable = "neon")]
pub(super) unsafe fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    if hashes.len() < GROUP {
        return scalar::fill::<W>(region, fields, access, hashes, changed);
    }
    insert_into::<W, TILE_GROUPS, _>(region, fields, access, hashes, changed, |_| 0);
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn insert_into<const W: usize, const TURN: usize, T: Insertable>(
    target: &mut T,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
    hold: impl Fn(&GroupWords<W>) -> u8,
) {
    let (first, count) = (target.first(), target.blocks());
    // SAFETY: `places` writes all words, and the products; `masks` writes all masks.
    unsafe {
        pipeline::insert::<W, TURN, _>(
            target,
            access,
            hashes,
            changed,
            |group, at| places::<W>(group, fields, first, count, at),
            |_, at| hold(at),
            |_, at, into| masks::<W, TURN, T>(at.products.assume_init_ref(), fields, into),
        );
    }
}

/// The products of the hashes, and the words that each touches, counted from block `first` on: for
/// 0 below 8 times `count`, the filter's blocks.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn places<const W: usize>(
    hashes: &Group,
    fields: &BitFields,
    first: usize,
    count: usize,
    places: &mut GroupWords<W>,
) {
    places.products.write(hashes.map(|hash| hash.wrapping_mul(MULTIPLIER)));
    let mut numbers = [[0; GROUP]; W];
    for i in 0..GROUP {
        let block = pattern::block(hashes[i], count);
        let pattern = pattern::pattern::<W>(hashes[i], fields);
        for word in 0..W {
            numbers[word][i] = (LINE_WORDS * (block - first) + pattern[word].word) as u64;
        }
    }
    for (word, numbers) in places.words.iter_mut().zip(numbers) {
        word.write(numbers);
    }
}

/// The mask of each hash in each of its words. `T` is the target: each copy has one caller, and so
/// is inlined.
#[expect(clippy::extra_unused_type_parameters, reason = "one copy for each target")]
#[target_feature(enable = "neon")]
#[inline]
unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, fields: &BitFields, into: &mut [Slot; W]) {
    let mut masks = [[0; GROUP]; W];
    for pair in (0..GROUP).step_by(2) {
        let vectors = vector_masks::<W>([products[pair], products[pair + 1]], fields);
        for word in 0..W {
            masks[word][pair] = vgetq_lane_u64::<0>(vectors[word]);
            masks[word][pair + 1] = vgetq_lane_u64::<1>(vectors[word]);
        }
    }
    for (into, masks) in into.iter_mut().zip(masks) {
        into.write(masks);
    }
}

/// Whether the words of the places hold all bits of their hash's pattern. Lookups and inserts have
/// copies of their own: each has one caller, and so is inlined.
///
/// # Safety
///
/// The words and the products were written. The words are there.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
    fields: &BitFields,
    lines: Lines<'_, T>,
    places: &GroupWords<W>,
) -> u8 {
    // SAFETY: as promised.
    let (numbers, products) = unsafe { (places.words(), places.products.assume_init_ref()) };
    let all = lines.all().as_flattened();
    // SAFETY: as promised.
    let load = |number: u64| unsafe { all.get_unchecked(number as usize) }.load();
    let mut answers = 0;
    for pair in (0..GROUP).step_by(2) {
        let masks = vector_masks::<W>([products[pair], products[pair + 1]], fields);
        let mut missing = vdupq_n_u64(0);
        for word in 0..W {
            let words = both(load(numbers[word][pair]), load(numbers[word][pair + 1]));
            missing = vorrq_u64(missing, vbicq_u64(masks[word], words));
        }
        answers |= u8::from(vgetq_lane_u64::<0>(missing) == 0) << pair;
        answers |= u8::from(vgetq_lane_u64::<1>(missing) == 0) << (pair + 1);
    }
    answers
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn vector_masks<const W: usize>(mut products: [u64; 2], fields: &BitFields) -> [uint64x2_t; W] {
    let mut positions = [vdupq_n_u64(0); W];
    for i in 0..W {
        let cut = fields.words[i];
        if i > 0 && cut.multiply {
            products = products.map(|product| product.wrapping_mul(MULTIPLIER));
        }
        positions[i] = both(products[0] >> cut.positions, products[1] >> cut.positions);
    }
    let mut masks = [vdupq_n_u64(0); W];
    for _ in 0..fields.bits {
        for i in 0..W {
            let position = vreinterpretq_s64_u64(vandq_u64(positions[i], vdupq_n_u64(63)));
            masks[i] = vorrq_u64(masks[i], vshlq_u64(vdupq_n_u64(1), position));
            positions[i] = vshrq_n_u64::<8>(positions[i]);
        }
    }
    masks
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn both(low: u64, high: u64) -> uint64x2_t {
    vcombine_u64(vcreate_u64(low), vcreate_u64(high))
}
