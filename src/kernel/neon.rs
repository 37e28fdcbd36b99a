//! The kernels for NEON, which every 64-bit Arm has. Two keys fill a vector: the eight positions of
//! a key are the bytes of its product, where they are. `tbl` brings each the byte of its sector
//! that has it, and `bic` finds the bits that are missing there.
//!
//! NEON cannot multiply 64 bits in vectors. So sectors and products are computed one by one.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over W unroll, which those over iterators do not always"
)]

use crate::geometry::layout::{LINE_WORDS, MOST_BITS};
use crate::geometry::pattern::{Pattern, product, sector};
use crate::kernel::pipeline::{self, Group, Places, Slot, Vectors};
use crate::kernel::plain;
use crate::kernel::plan::{GROUP, Prefetching};
use crate::kernel::single::{Asked, Probe};
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::aarch64::*;

#[target_feature(enable = "neon")]
#[inline(never)]
pub(super) unsafe fn contains<const W: usize, A: Asked, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    probe: &Probe<T>,
) -> bool {
    A::hold(lines, hash, probe.hint, |line, hash| {
        holds::<W, T>(line, hash, &probe.pattern)
    })
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn holds<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, pattern: &Pattern) -> bool {
    let positions = rotated::<2, 6>(vdupq_n_u64(product(hash)));
    let all = lines.all().as_ptr().cast::<T>();
    // SAFETY: the sector of a hash lies within the lines.
    let bytes = unsafe { selected::<W, T>(all.add(sector::<W>(hash, lines.blocks())), positions) };
    vgetq_lane_u64::<0>(lacks(bytes, positions, ones(pattern))) == 0
}

#[target_feature(enable = "neon")]
pub(super) unsafe fn insert<const W: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, pattern: &Pattern) -> bool {
    let both = pair_masks::<W>(vdupq_n_u64(product(hash)), pattern);
    let mut masks = [0; W];
    for word in 0..W {
        masks[word] = vgetq_lane_u64::<0>(both[word]);
    }
    lines.set(sector::<W>(hash, lines.blocks()), masks)
}

#[target_feature(enable = "neon")]
#[inline(never)]
pub(super) unsafe fn contains_hashes<const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    found: &mut [u64],
) {
    pipeline::contains::<Neon, W, TURN, T>(lines, pattern, prefetching, hashes, found);
}

#[target_feature(enable = "neon")]
pub(super) unsafe fn insert_hashes<const W: usize, const TURN: usize>(
    lines: Lines<'_, AtomicU64>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    pipeline::insert::<Neon, W, TURN>(lines, pattern, prefetching, hashes, changed);
}

#[target_feature(enable = "neon")]
pub(super) unsafe fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    pipeline::fill::<Neon, W>(region, pattern, prefetching, hashes, changed);
}

/// [`plain::and_rows`] by these vectors.
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
    let done = plain::and_rows_by::<2, _, _>(
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
    plain::and_rows(&words[done..], starts, &mut out[done..]);
}

/// The operations on a group.
struct Neon;

// SAFETY: `places` and `masks` write all slots.
unsafe impl Vectors for Neon {
    #[inline(always)]
    unsafe fn places<const W: usize>(hashes: &Group, count: usize, places: &mut Places) {
        places.sectors.write(hashes.map(|hash| sector::<W>(hash, count) as u64));
        places.products.write(hashes.map(product));
    }

    #[target_feature(enable = "neon")]
    #[inline]
    unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
        pattern: &Pattern,
        all: *const T,
        places: &Places,
    ) -> u8 {
        // SAFETY: as promised.
        let (sectors, products) = unsafe { places.written() };
        let mut pairs = [vdupq_n_u8(0); GROUP / 2];
        for pair in 0..GROUP / 2 {
            // SAFETY: reads two of the products.
            let positions = rotated::<2, 6>(unsafe { vld1q_u64(products[2 * pair..][..2].as_ptr()) });
            // SAFETY: as promised.
            let bytes = |key: usize| unsafe { selected::<W, T>(all.add(sectors[2 * pair + key] as usize), positions) };
            let bytes = vcopyq_laneq_u64::<1, 1>(bytes(0), bytes(1));
            pairs[pair] = vreinterpretq_u8_u64(lacks(bytes, positions, ones(pattern)));
        }
        // The greatest byte of each key.
        let four = [vpmaxq_u8(pairs[0], pairs[1]), vpmaxq_u8(pairs[2], pairs[3])];
        let two = vpmaxq_u8(four[0], four[1]);
        let one = vpmax_u8(vget_low_u8(two), vget_high_u8(two));
        // Byte `i` is `1 << i`.
        let bits = vcreate_u8(0x8040_2010_0804_0201);
        vaddv_u8(vand_u8(vceqz_u8(one), bits))
    }

    #[target_feature(enable = "neon")]
    #[inline]
    unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, pattern: &Pattern, into: &mut [Slot; W]) {
        let mut masks = [[0; GROUP]; W];
        for pair in (0..GROUP).step_by(2) {
            // SAFETY: reads two of the products.
            let both = pair_masks::<W>(unsafe { vld1q_u64(products[pair..][..2].as_ptr()) }, pattern);
            for word in 0..W {
                masks[word][pair] = vgetq_lane_u64::<0>(both[word]);
                masks[word][pair + 1] = vgetq_lane_u64::<1>(both[word]);
            }
        }
        for word in 0..W {
            into[word].write(masks[word]);
        }
    }
}

/// The bytes of the products, rotated by `LEFT` bits: `RIGHT` is what is left of 8.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn rotated<const LEFT: i32, const RIGHT: i32>(products: uint64x2_t) -> uint8x16_t {
    let bytes = vreinterpretq_u8_u64(products);
    vsriq_n_u8::<RIGHT>(vshlq_n_u8::<LEFT>(bytes), bytes)
}

/// The bytes of the sector that have the positions. (Those of another key are in the other half of
/// the vector.)
///
/// A rotated position has two parts. The low bits are the number of the byte in the sector, or in
/// the half of one of eight words: four times the 32-bit part, and the byte of it. The three
/// highest ones are the bit of the byte.
///
/// # Safety
///
/// The sector is there: `W` words from `at` on.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn selected<const W: usize, T: Load>(at: *const T, positions: uint8x16_t) -> uint64x2_t {
    let mut table = [vdupq_n_u8(0); LINE_WORDS / 2];
    for two in 0..W.div_ceil(2) {
        // SAFETY: as promised. (One word is repeated.)
        let words = unsafe { [(*at.add(2 * two)).load(), (*at.add((2 * two + 1).min(W - 1))).load()] };
        table[two] = vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(words[0]), vcreate_u64(words[1])));
    }
    let [a, b, c, d] = table;
    let numbers = vandq_u8(positions, vdupq_n_u8(8 * W.min(LINE_WORDS / 2) as u8 - 1));
    vreinterpretq_u64_u8(match W {
        1 | 2 => vqtbl1q_u8(a, numbers),
        4 => vqtbl2q_u8(uint8x16x2_t(a, b), numbers),
        _ => {
            // From the highest byte down, the bytes belong to the two halves in turn.
            let half = vreinterpretq_u8_u16(vdupq_n_u16(32));
            vqtbl4q_u8(uint8x16x4_t(a, b, c, d), vorrq_u8(numbers, half))
        }
    })
}

/// The bits of rotated positions that are not in the bytes.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn lacks(bytes: uint64x2_t, positions: uint8x16_t, ones: uint8x16_t) -> uint64x2_t {
    let bits = vshlq_u8(ones, vreinterpretq_s8_u8(vshrq_n_u8::<5>(positions)));
    vreinterpretq_u64_u8(vbicq_u8(bits, vreinterpretq_u8_u64(bytes)))
}

/// 1 in each byte that is a position. The others, the low bytes of products, are 0: nothing is
/// missing there.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn ones(pattern: &Pattern) -> uint8x16_t {
    vreinterpretq_u8_u64(vdupq_n_u64(0x0101_0101_0101_0101 << (8 * (MOST_BITS - pattern.bits))))
}

/// The masks of two keys: in each lane of 64 bits a key.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn pair_masks<const W: usize>(products: uint64x2_t, pattern: &Pattern) -> [uint64x2_t; W] {
    // In each byte the number of its position in the sector, or in the half of one of eight words.
    let last = if W < 4 { 64 * W as u8 - 1 } else { u8::MAX };
    let mut numbers = vreinterpretq_u64_u8(vandq_u8(rotated::<5, 3>(products), vdupq_n_u8(last)));
    let mut masks = [vdupq_n_u64(0); W];
    let mut left = pattern.bits;
    while left > 0 {
        // Eight words: a position in the first four, and then one in the others.
        for first in (0..W).step_by(4) {
            let number = vshrq_n_u64::<56>(numbers);
            numbers = vshlq_n_u64::<8>(numbers);
            for word in 0..W.min(4) {
                // A count of 64 or more, in another word, makes no bit; `ushl` takes one of 128 or
                // more to be negative, and shifts the 1 out to the right.
                let count = veorq_u64(number, vdupq_n_u64(64 * word as u64));
                let bit = vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(count));
                masks[first + word] = vorrq_u64(masks[first + word], bit);
            }
            left -= 1;
        }
    }
    masks
}
