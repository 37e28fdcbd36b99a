//! The kernels for NEON, which every 64-bit Arm has. Two keys fill a vector. NEON cannot multiply
//! 64 bits in vectors. So blocks and products are computed one by one. `tbl` then brings the eight
//! positions of a key to their places and fetches their bytes of the words, and `cmtst` tests them.
//!
//! Not measured on a machine. The models of llvm-mca 22 give these cycles for a key with two words
//! of three bits, with all data in L1:
//!
//! ```text
//!                               Neoverse N1   N2    V1    V2   Cortex-A55    M1
//! batch, test: masks by shifts      9.8     8.3   4.2   4.9      28.1       6.7
//! batch, test: here                 5.3     4.0   2.2   2.5      15.6       3.3
//! batch, places                     7.8     4.3   2.5   3.3      13.6       5.6
//! single: words shifted down       13.1     7.5   7.1   5.4      26        16.1
//! single: masks                    12.2     8.6   4.5   6.1      47         8.0
//! single: here                     11.7     8.0   5.1   5.8      45         7.7
//! ```
//!
//! No form of a single call is the best one everywhere. This one is the best on average of the four
//! cores of servers, and takes at most 1.13 times as long as the best on each. Other patterns have
//! their words shifted down: with fewer bits that is faster.

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
use crate::kernel::dispatch::Probe;
use crate::kernel::pipeline::{self, Group, GroupWords, Slot, TILE_GROUPS};
use crate::kernel::plan::{AccessPlan, GROUP};
use crate::kernel::scalar;
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::aarch64::*;

#[target_feature(enable = "neon")]
#[inline(never)]
pub(super) unsafe fn contains<const W: usize, const S: usize, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    _: &Probe<T>,
) -> bool {
    let fields = const { &BitFields::new(W, S) };
    if (W, S) != (2, 3) {
        return scalar::contains::<W, false, T>(lines, fields, hash);
    }
    let line = &lines.all()[pattern::block(hash, lines.blocks())];
    let [first, second] = pattern::pattern::<2>(hash, fields);
    let words = bytes_of([line[first.word].load(), line[second.word].load()]);
    // As in `pair_holds`; the upper half of each vector repeats the lower one.
    let product = bytes_of([pattern::product(hash); 2]);
    let positions = vqtbl1q_u8(product, bytes_of([eight_bytes(fields, 0, 1); 2]));
    let held = vqtbl1q_u8(words, vaddq_u8(byte_of(positions), bytes_of([0x0808_0808 << 32; 2])));
    let all = vreinterpretq_u64_u8(vtstq_u8(held, bit_of(positions)));
    vgetq_lane_u64::<0>(all) == u64::MAX
}

#[target_feature(enable = "neon")]
#[inline(never)]
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
        pipeline::run::<W, TURN, _>(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W, TURN, T>(group, fields, 0, count, at),
            |_, _, at| hold::<W, TURN, true, T>(fields, lines, at),
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

/// As [`scalar::and_rows`].
///
/// By assembly, since a vector load would be a data race with threads that write the words. `ld1`
/// reads each element of 8 bytes at once (Arm's manual, "Requirements for single-copy atomicity"),
/// so the block does what two relaxed loads do. The callers' barrier orders it like all loads.
///
/// # Safety
///
/// All rows lie within `words`.
#[target_feature(enable = "neon")]
pub(super) unsafe fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    let done = scalar::and_rows_by::<2, _, _>(
        words,
        starts,
        out,
        vdupq_n_u64(u64::MAX),
        |all, at| {
            let words: uint64x2_t;
            core::arch::asm!(
                "ld1 {{{words:v}.2d}}, [{at}]",
                words = lateout(vreg) words,
                at = in(reg) at,
                options(readonly, nostack, preserves_flags),
            );
            vandq_u64(all, words)
        },
        |all| vmaxvq_u32(vreinterpretq_u32_u64(all)) == 0,
        |out, all| vst1q_u64(out.as_mut_ptr(), all),
    );
    scalar::and_rows(&words[done..], starts, &mut out[done..]);
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
            |group, at| places::<W, TURN, T>(group, fields, first, count, at),
            |_, at| hold(at),
            |_, at, into| masks::<W, TURN, T>(at.products.assume_init_ref(), fields, into),
        );
    }
}

/// Writes the products packed, if they can be. Each target `T` has a copy too.
#[expect(clippy::extra_unused_type_parameters, reason = "one copy for each target")]
#[target_feature(enable = "neon")]
#[inline]
unsafe fn places<const W: usize, const TURN: usize, T>(
    hashes: &Group,
    fields: &BitFields,
    first: usize,
    count: usize,
    places: &mut GroupWords<W>,
) {
    places.products.write(hashes.map(pattern::product));
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
    if fields.second_at > 0 {
        // SAFETY: they were written.
        pack(unsafe { places.products.assume_init_mut() }, fields.second_at);
    }
}

/// Adds the second products to the first ones. (A call: inlined, it takes registers from the
/// patterns that have one product.)
#[inline(never)]
fn pack(products: &mut Group, second_at: u32) {
    for product in products {
        let second = product.wrapping_mul(MULTIPLIER) >> second_at;
        *product = *product & !(u64::MAX >> second_at) | second;
    }
}

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

/// # Safety
///
/// `places` wrote the words and products. The words are there.
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
    let load = |word: usize, key: usize| unsafe { all.get_unchecked(numbers[word][key] as usize) }.load();
    let mut held = [vdupq_n_u8(0); GROUP / 2];
    if W > 1 && fields.is_packed {
        for pair in 0..GROUP / 2 {
            // SAFETY: reads two of the products.
            let products = unsafe { vld1q_u64(products[2 * pair..][..2].as_ptr()) };
            held[pair] = pair_holds::<W>(fields, products, |word, key| load(word, 2 * pair + key));
        }
        answers(held)
    } else {
        for pair in 0..GROUP / 2 {
            let products = [products[2 * pair], products[2 * pair + 1]];
            held[pair] = words_hold::<W>(fields, products, |word, key| load(word, 2 * pair + key));
        }
        answers(held)
    }
}

/// A bit for each key, whether all of its eight bytes are 255. (A call in each branch above: after
/// one for both, the compiler would first make bytes of bits.)
#[target_feature(enable = "neon")]
#[inline]
unsafe fn answers(held: [uint8x16_t; GROUP / 2]) -> u8 {
    // The least byte of each key.
    let four = [vpminq_u8(held[0], held[1]), vpminq_u8(held[2], held[3])];
    let two = vpminq_u8(four[0], four[1]);
    let one = vpmin_u8(vget_low_u8(two), vget_high_u8(two));
    vaddv_u8(vand_u8(one, vcreate_u8(BITS)))
}

/// Whether the words of two keys have the bits of eight positions each, 255 or 0 in eight bytes for
/// each key: for packed products and at least two words. `load` gives a word of one of the keys.
///
/// The four low bytes of a key are for a word in the first half of the line, the others for one in
/// the second half.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn pair_holds<const W: usize>(
    fields: &BitFields,
    products: uint64x2_t,
    load: impl Fn(usize, usize) -> u64,
) -> uint8x16_t {
    let mut all = vdupq_n_u8(u8::MAX);
    for i in 0..W / 2 {
        let bytes = eight_bytes(fields, i, i + W / 2);
        let positions = vqtbl1q_u8(vreinterpretq_u8_u64(products), bytes_of([bytes, bytes | SECOND_KEY]));
        let words = uint8x16x2_t(
            bytes_of([load(i, 0), load(i + W / 2, 0)]),
            bytes_of([load(i, 1), load(i + W / 2, 1)]),
        );
        // Each word begins 8 bytes after the one before.
        let word = bytes_of([0x0808_0808 << 32, 0x1818_1818 << 32 | 0x1010_1010]);
        let held = vqtbl2q_u8(words, vaddq_u8(byte_of(positions), word));
        all = vandq_u8(all, vtstq_u8(held, bit_of(positions)));
    }
    all
}

/// Which bytes of the packed products are positions of two words: four for each.
fn eight_bytes(fields: &BitFields, first: usize, second: usize) -> u64 {
    u64::from(fields.bytes[first] as u32) | fields.bytes[second] << 32
}

/// As [`pair_holds`], for one word, or products that are not packed.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn words_hold<const W: usize>(
    fields: &BitFields,
    mut products: [u64; 2],
    load: impl Fn(usize, usize) -> u64,
) -> uint8x16_t {
    let mut all = vdupq_n_u8(u8::MAX);
    for i in 0..W {
        if i > 0 && fields.words[i].multiply {
            products = products.map(|product| product.wrapping_mul(MULTIPLIER));
        }
        let bytes = fields.bytes[i];
        let positions = vqtbl1q_u8(bytes_of(products), bytes_of([bytes, bytes | SECOND_KEY]));
        let words = bytes_of([load(i, 0), load(i, 1)]);
        let held = vqtbl1q_u8(words, vaddq_u8(byte_of(positions), bytes_of([0, SECOND_KEY])));
        all = vandq_u8(all, vtstq_u8(held, bit_of(positions)));
    }
    all
}

/// The product and the word of the second key are the upper 8 bytes of a vector.
const SECOND_KEY: u64 = 0x0808_0808_0808_0808;

/// Byte `i` is `1 << i`.
const BITS: u64 = 0x8040_2010_0804_0201;

/// The byte of its word that has a position. (Two bits beside a position are others.)
#[target_feature(enable = "neon")]
#[inline]
unsafe fn byte_of(positions: uint8x16_t) -> uint8x16_t {
    vshrq_n_u8::<3>(vandq_u8(positions, vdupq_n_u8(63)))
}

/// The bit that a position has in its byte.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn bit_of(positions: uint8x16_t) -> uint8x16_t {
    let bit = vandq_u8(positions, vdupq_n_u8(7));
    vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit))
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn both(two: [u64; 2]) -> uint64x2_t {
    vcombine_u64(vcreate_u64(two[0]), vcreate_u64(two[1]))
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn bytes_of(two: [u64; 2]) -> uint8x16_t {
    vreinterpretq_u8_u64(both(two))
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn vector_masks<const W: usize>(mut products: [u64; 2], fields: &BitFields) -> [uint64x2_t; W] {
    let mut positions = [vdupq_n_u64(0); W];
    for i in 0..W {
        if i > 0 && fields.words[i].multiply && !fields.is_packed {
            products = products.map(|product| product.wrapping_mul(MULTIPLIER));
        }
        let lowest = 8 * (fields.bytes[i] as u8 as u32);
        positions[i] = both(products.map(|product| product >> lowest));
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
