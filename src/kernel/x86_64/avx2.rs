//! The kernels for AVX2 and BMI: x86-64 from 2013 (Haswell) and 2015 (Excavator) on. A group of
//! keys is two vectors.
//!
//! Single calls of 8 words, and of 4 with many bits, are the same Rust as everywhere, compiled for
//! this instruction set. The compiler then makes all masks of a key by vector shifts; the baseline
//! makes only one bit at a time. For 2 words with many bits vectors of positions are as fast in the
//! caches, and up to 1.5 times as fast in memory (Zen 5). The others test bytes, as batches do;
//! most calls of 2 words are inlined (`inlined.rs`).

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use super::loads::{self, line_of};
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{BLOCK_MULTIPLIER, BitFields, FOLD, MULTIPLIER, folded};
use crate::kernel::dispatch::{Probe, Vectorized};
use crate::kernel::pipeline::{self, Group, GroupWords, Slot, TILE_GROUPS};
use crate::kernel::plan::{AccessPlan, GROUP};
use crate::kernel::scalar;
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::chunks::as_chunks_mut;
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;
use core::mem::transmute;

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
pub(super) unsafe fn contains<const W: usize, const S: usize, T: Load>(
    lines: Lines<'_, T>,
    hash: u64,
    _: &Probe<T>,
) -> bool {
    if W == 4 && S <= 3 {
        return loads::four_hold(lines, hash, S);
    }
    let fields = const { &BitFields::new(W, S) };
    if W > 2 {
        return scalar::contains::<W, true, T>(lines, fields, hash);
    }
    // Four copies of a word, each shifted down by a position. More words would need more vectors of
    // shifts than the loads of many lookups leave room for.
    let line = line_of(lines, hash);
    let group = LINE_WORDS / W;
    let (mut product, mut products) = (folded(hash), _mm256_setzero_si256());
    let mut all = _mm256_set1_epi64x(1);
    for i in 0..W {
        let cut = fields.words[i];
        if cut.multiply {
            product = product.wrapping_mul(MULTIPLIER);
            products = _mm256_set1_epi64x(product as i64);
        }
        let select = (product >> cut.select) as usize % group;
        // SAFETY: a word of a line of the filter. There is at least one line (`Lines`), so the
        // block of a hash is below their number.
        let word = unsafe { loads::four_times(line.add(i * group), select as u64) };
        for four in 0..S.div_ceil(4) {
            let at = |j: usize| i64::from(cut.positions) + 8 * (4 * four + j).min(S - 1) as i64;
            let positions = _mm256_srlv_epi64(products, _mm256_set_epi64x(at(3), at(2), at(1), at(0)));
            let positions = _mm256_and_si256(positions, _mm256_set1_epi64x(63));
            all = _mm256_and_si256(all, _mm256_srlv_epi64(word, positions));
        }
    }
    _mm256_testc_si256(all, _mm256_set1_epi64x(1)) == 1
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert<const W: usize, const S: usize>(
    mut lines: Lines<'_, AtomicU64>,
    hash: u64,
    _: &BitFields,
) -> bool {
    scalar::insert::<W>(&mut lines, const { &BitFields::new(W, S) }, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
pub(super) unsafe fn contains_hashes<const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    found: &mut [u64],
) {
    let (count, all) = (lines.blocks(), lines.all().as_ptr().cast::<T>());
    // SAFETY: `places` writes the products and all words, of blocks below `count`, which is below
    // 2^32 (`Isa::for_blocks`); a block has 8. So they are words of `all`.
    unsafe {
        pipeline::run::<W, TURN, _>(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W>(group, fields, 0, count, at),
            |_, _, at| hold::<W, TURN, true, T>(fields, all, at),
        );
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert_hashes<const W: usize, const TURN: usize>(
    mut lines: Lines<'_, AtomicU64>,
    fields: &BitFields,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<AtomicU64>();
    // SAFETY: `places` wrote the products, and words of the filter.
    insert_into::<W, TURN, _>(&mut lines, fields, access, hashes, changed, |at| unsafe {
        hold::<W, TURN, false, _>(fields, all, at)
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
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

#[target_feature(enable = "avx2,bmi1,bmi2")]
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

/// Calls `work`, compiled for this instruction set.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn vectorized<W: Vectorized>(work: W) -> W::Output {
    work.run()
}

/// As [`scalar::and_rows`].
///
/// # Safety
///
/// All rows lie within `words`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    let done = scalar::and_rows_by::<4, _, _>(
        words,
        starts,
        out,
        _mm256_set1_epi64x(-1),
        |all, at| loads::and_four(all, at),
        |all| _mm256_testz_si256(all, all) == 1,
        |out, all| _mm256_storeu_si256(out.as_mut_ptr().cast(), all),
    );
    scalar::and_rows(&words[done..], starts, &mut out[done..]);
}

/// Writes a bit of the bitmap to each place of `out`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn unpack(bitmap: &[u64], out: &mut [bool]) {
    // Gives each byte its bit of the four bytes in every lane of 128 bits.
    let byte = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let bit = _mm256_set1_epi64x(BITS);
    let (whole, rest) = as_chunks_mut::<64, _>(out);
    for (out, &word) in whole.iter_mut().zip(bitmap) {
        let halves = as_chunks_mut::<32, _>(out).0;
        for (out, word) in halves.iter_mut().zip([word as i32, (word >> 32) as i32]) {
            let bits = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), byte), bit);
            let bools = _mm256_and_si256(_mm256_cmpeq_epi8(bits, bit), _mm256_set1_epi8(1));
            // SAFETY: writes the 32 bytes of `out`, each 0 or 1, which are the values of `bool`.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bools) };
        }
    }
    scalar::unpack(&bitmap[whole.len()..], rest);
}

/// A group of keys, each with 64 bits.
type Vectors = [__m256i; 2];

/// The numbers scaled to `0..count`, which must be below 2^32.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn scale(numbers: __m256i, count: usize) -> __m256i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm256_set1_epi64x(count as i64);
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(numbers), count);
    let low = _mm256_mul_epu32(numbers, count);
    _mm256_srli_epi64::<32>(_mm256_add_epi64(high, _mm256_srli_epi64::<32>(low)))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn places<const W: usize>(
    hashes: &Group,
    fields: &BitFields,
    first: usize,
    count: usize,
    places: &mut GroupWords<W>,
) {
    let mut product = load(hashes);
    let first = _mm256_set1_epi64x(first as i64);
    let mut line = [first; 2];
    for half in 0..2 {
        let place = multiply(product[half], BLOCK_MULTIPLIER);
        line[half] = _mm256_sub_epi64(scale(place, count), first);
        let folded = _mm256_xor_si256(place, _mm256_srli_epi64::<{ FOLD as i32 }>(place));
        product[half] = multiply(folded, MULTIPLIER);
    }
    let first_product = product;
    for i in 0..W {
        let cut = &fields.words[i];
        let mut word = [_mm256_setzero_si256(); 2];
        for half in 0..2 {
            if i > 0 && cut.multiply {
                product[half] = multiply(product[half], MULTIPLIER);
            }
            let select = shift(product[half], cut.select);
            let select = _mm256_and_si256(select, _mm256_set1_epi64x((LINE_WORDS / W) as i64 - 1));
            let in_line = _mm256_add_epi64(select, _mm256_set1_epi64x((i * LINE_WORDS / W) as i64));
            word[half] = _mm256_add_epi64(_mm256_slli_epi64::<3>(line[half]), in_line);
        }
        places.words[i].write(store(word));
    }
    let mut kept = first_product;
    if fields.second_at > 0 {
        let bytes = _mm256_set1_epi64x(!(u64::MAX >> fields.second_at) as i64);
        for half in 0..2 {
            let second = shift(product[half], fields.second_at);
            kept[half] = _mm256_or_si256(_mm256_and_si256(kept[half], bytes), second);
        }
    }
    places.products.write(store(kept));
}

#[expect(clippy::extra_unused_type_parameters, reason = "one copy for each target")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, fields: &BitFields, into: &mut [Slot; W]) {
    let mut product = load(products);
    for pair in (0..W).step_by(2) {
        let masks = vector_masks::<W>(&mut product, fields, pair);
        for i in pair..W.min(pair + 2) {
            into[i].write(store(masks[i - pair]));
        }
    }
}

/// (The two functions below have copies for each of its own.)
///
/// # Safety
///
/// `places` wrote the words and products. The words are there, counted from `all` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
    fields: &BitFields,
    all: *const T,
    places: &GroupWords<W>,
) -> u8 {
    // SAFETY: as promised.
    let (numbers, products) = unsafe { (places.words(), places.products.assume_init_ref()) };
    let mut product = load(products);
    let mut answers = 0;
    for half in 0..2 {
        // SAFETY: as promised.
        let missing = unsafe {
            if W > 1 && fields.is_packed {
                pairs_lack::<W, TURN, LOOKUP, T>(fields, all, numbers, 4 * half, product[half])
            } else {
                words_lack::<W, TURN, LOOKUP, T>(fields, all, numbers, 4 * half, &mut product[half])
            }
        };
        let hold = _mm256_cmpeq_epi64(missing, _mm256_setzero_si256());
        answers |= _mm256_movemask_pd(_mm256_castsi256_pd(hold)) << (4 * half);
    }
    answers as u8
}

/// What the words of four keys lack, from key `from` on, 0 where nothing: for packed products and
/// at least two words.
///
/// A half of a vector has two words of a key: the four lanes of 16 bits at its low end are for a
/// word in the first half of the line, the others for one in the second half. The high byte of a
/// lane is a position.
///
/// # Safety
///
/// As [`hold`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn pairs_lack<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
    fields: &BitFields,
    all: *const T,
    numbers: &[Group; W],
    from: usize,
    product: __m256i,
) -> __m256i {
    // The second word is 8 bytes on, which 64 becomes when a position becomes the number of its
    // byte.
    let second = NO_BIT | 0x4000_4000_4000_4000;
    let other_word = _mm256_set_epi64x(second, NO_BIT, second, NO_BIT);
    let product = _mm256_and_si256(product, _mm256_set1_epi8(63));
    let mut lack = [_mm256_setzero_si256(); 2];
    for i in 0..W / 2 {
        let bytes = |word: usize| i64::from(fields.bytes[word] as u32);
        let lanes = _mm_set_epi64x(0, bytes(i) | bytes(i + W / 2) << 32);
        for key in 0..2 {
            let lanes = _mm_unpacklo_epi8(_mm_set1_epi8(-128), _mm_or_si128(lanes, _mm_set1_epi8(8 * key as i8)));
            let at = |word: usize| [numbers[word][from + key], numbers[word][from + key + 2]];
            // SAFETY: as promised: words of the first half of a line, and of the second half.
            let words = unsafe { loads::two_keys(all, at(i), at(i + W / 2)) };
            let positions = _mm256_shuffle_epi8(product, _mm256_broadcastsi128_si256(lanes));
            let positions = _mm256_or_si256(positions, other_word);
            let held = _mm256_shuffle_epi8(words, _mm256_srli_epi16::<3>(positions));
            let lacks = _mm256_andnot_si256(held, bits_of_bytes(positions));
            lack[key] = _mm256_or_si256(lack[key], lacks);
        }
    }
    // A lane for each key, in order: saturation leaves what is not 0.
    _mm256_packs_epi16(lack[0], lack[1])
}

/// As [`pairs_lack`], for one word, or if products are not packed.
///
/// # Safety
///
/// As [`hold`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn words_lack<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
    fields: &BitFields,
    all: *const T,
    numbers: &[Group; W],
    from: usize,
    product: &mut __m256i,
) -> __m256i {
    // Of two keys in a half of a vector the second one's word, and its product, are 8 bytes on.
    let upper = _mm256_set_epi64x(0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808, 0);
    let mut missing = _mm256_setzero_si256();
    for i in 0..W {
        if i > 0 && fields.words[i].multiply {
            *product = multiply(*product, MULTIPLIER);
        }
        // SAFETY: as promised.
        let words = unsafe { loads::four(all, numbers[i][from..][..4].try_into().expect("they are four")) };
        let bytes = _mm256_or_si256(_mm256_set1_epi64x(fields.bytes[i] as i64), upper);
        let positions = _mm256_and_si256(_mm256_shuffle_epi8(*product, bytes), _mm256_set1_epi8(63));
        let byte = _mm256_and_si256(_mm256_srli_epi16::<3>(positions), _mm256_set1_epi8(7));
        let held = _mm256_shuffle_epi8(words, _mm256_or_si256(byte, upper));
        let lacks = _mm256_andnot_si256(held, bits_of_bytes(positions));
        missing = _mm256_or_si256(missing, lacks);
    }
    missing
}

/// The bit that a position has in its byte; nothing for 128.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn bits_of_bytes(positions: __m256i) -> __m256i {
    _mm256_shuffle_epi8(_mm256_set1_epi64x(BITS), positions)
}

/// Byte `i` is `1 << i`.
const BITS: i64 = 0x8040_2010_0804_0201_u64 as i64;

/// Positions without a bit in the low bytes of lanes of 16 bits.
const NO_BIT: i64 = 0x0080_0080_0080_0080;

/// The masks of two words (more do not fit the registers), or of one if there is no other.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector_masks<const W: usize>(product: &mut Vectors, fields: &BitFields, first: usize) -> [Vectors; 2] {
    let mut positions = [[_mm256_setzero_si256(); 2]; 2];
    let mut masks = [[_mm256_setzero_si256(); 2]; 2];
    for i in 0..W.min(2) {
        let cut = &fields.words[first + i];
        for half in 0..2 {
            if first + i > 0 && cut.multiply && !fields.is_packed {
                product[half] = multiply(product[half], MULTIPLIER);
            }
            positions[i][half] = shift(product[half], 8 * (fields.bytes[first + i] as u8 as u32));
            masks[i][half] = bit(positions[i][half]);
        }
    }
    for _ in 1..fields.bits {
        for i in 0..W.min(2) {
            for half in 0..2 {
                positions[i][half] = _mm256_srli_epi64::<8>(positions[i][half]);
                masks[i][half] = _mm256_or_si256(masks[i][half], bit(positions[i][half]));
            }
        }
    }
    masks
}

/// The bit at the position in the lowest 6 bits.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn bit(position: __m256i) -> __m256i {
    let position = _mm256_and_si256(position, _mm256_set1_epi64x(63));
    _mm256_sllv_epi64(_mm256_set1_epi64x(1), position)
}

/// Multiplies by `by`, in three products of 32 bits: AVX2 has no others.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn multiply(vector: __m256i, by: u64) -> __m256i {
    let low = _mm256_set1_epi64x(by as i64);
    let high = _mm256_set1_epi64x((by >> 32) as i64);
    let crossed = _mm256_add_epi64(
        _mm256_mul_epu32(vector, high),
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(vector), low),
    );
    _mm256_add_epi64(_mm256_mul_epu32(vector, low), _mm256_slli_epi64::<32>(crossed))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn shift(vector: __m256i, by: u32) -> __m256i {
    _mm256_srlv_epi64(vector, _mm256_set1_epi64x(i64::from(by)))
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load(group: &Group) -> Vectors {
    // SAFETY: any four numbers are a vector.
    unsafe { transmute::<Group, Vectors>(*group) }
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store(vectors: Vectors) -> Group {
    // SAFETY: any vector is four numbers.
    unsafe { transmute::<Vectors, Group>(vectors) }
}
