//! The kernels for AVX2 and BMI: x86-64 from 2013 (Haswell) and 2015 (Excavator) on. A group of
//! keys is two vectors; the pattern of a key is one, whatever the number of its bits and words.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over W unroll, which those over iterators do not always"
)]

use super::loads::{and_four, four, sector_at, selected};
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::{BLOCK_MULTIPLIER, FOLD, MULTIPLIER, PART_BITS, Pattern, product, sector};
use crate::kernel::isa::Vectorized;
use crate::kernel::pipeline::{self, Group, Places, Slot, Vectors};
use crate::kernel::plain;
use crate::kernel::plan::Prefetching;
use crate::kernel::single::{Asked, Calls, Probe};
use crate::words::arrays::as_chunks_mut;
use crate::words::bits::{Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::sync::AtomicU64;
use core::arch::x86_64::*;
use core::mem::transmute;

/// Whether the sector of the hash holds its pattern.
#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
pub(super) unsafe fn holds<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, pattern: &Pattern) -> bool {
    let lanes = lanes(product(hash), pattern);
    // SAFETY: the sector of a hash lies within the lines.
    let parts = unsafe { selected::<W, T>(sector_at::<W, T>(lines, hash), lanes) };
    _mm256_testc_si256(parts, bits(lanes)) == 1
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
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

/// Runs `work` with single calls that the compiler inlines here, with `work`: as constants, the
/// pointers are known.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn with_calls<const W: usize, A: Asked, R>(work: impl FnOnce(Calls) -> R) -> R {
    work(Calls {
        contains: contains_inlined::<W, A>,
        insert: Some(insert_inlined::<W, A>),
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
unsafe fn contains_inlined<const W: usize, A: Asked>(
    lines: Lines<'_, AtomicU64>,
    hash: u64,
    probe: &Probe<AtomicU64>,
) -> bool {
    A::hold(lines, hash, probe.hint, |line, hash| {
        holds::<W, _>(line, hash, &probe.pattern)
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
unsafe fn insert_inlined<const W: usize, A: Asked>(lines: Lines<'_, AtomicU64>, hash: u64, pattern: &Pattern) -> bool {
    A::insert(lines, hash, |mut line, hash| {
        if holds::<W, _>(line, hash, pattern) {
            return false;
        }
        let masks = key_masks::<W>(product(hash), pattern);
        line.set(sector::<W>(hash, line.blocks()), masks)
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
pub(super) unsafe fn few_flags<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    probe: &Probe<T>,
    found: &mut [bool],
) {
    plain::few(hashes, &lines, probe.hint, found, |hash| {
        holds::<W, T>(lines, hash, &probe.pattern)
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
pub(super) unsafe fn few_bitmap<const W: usize, T: Load>(lines: Lines<'_, T>, hashes: &[u64], probe: &Probe<T>) -> u64 {
    plain::few_bitmap(hashes, &lines, probe.hint, |hash| {
        holds::<W, T>(lines, hash, &probe.pattern)
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert<const W: usize>(mut lines: Lines<'_, AtomicU64>, hash: u64, pattern: &Pattern) -> bool {
    // The masks of few words take as long as a lookup.
    if W > 2 && holds::<W, _>(lines, hash, pattern) {
        return false;
    }
    let masks = key_masks::<W>(product(hash), pattern);
    lines.set(sector::<W>(hash, lines.blocks()), masks)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
pub(super) unsafe fn contains_hashes<const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    found: &mut [u64],
) {
    pipeline::contains::<Avx2, W, TURN, T>(lines, pattern, prefetching, hashes, found);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn insert_hashes<const W: usize, const TURN: usize>(
    lines: Lines<'_, AtomicU64>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    pipeline::insert::<Avx2, W, TURN>(lines, pattern, prefetching, hashes, changed);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn fill<const W: usize>(
    region: &mut OwnedRange<'_>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    pipeline::fill::<Avx2, W>(region, pattern, prefetching, hashes, changed);
}

/// Calls `work`, compiled for this instruction set.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn vectorized<W: Vectorized>(work: W) -> W::Output {
    work.run()
}

/// [`plain::and_rows`] by these vectors.
///
/// # Safety
///
/// All rows lie within `words`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn and_rows<T: Load>(words: &[T], starts: &[u64], out: &mut [u64]) {
    let done = plain::and_rows_by::<4, _, _>(
        words,
        starts,
        out,
        _mm256_set1_epi64x(-1),
        |all, at| and_four(all, at),
        |all| _mm256_testz_si256(all, all) == 1,
        |out, all| _mm256_storeu_si256(out.as_mut_ptr().cast(), all),
    );
    plain::and_rows(&words[done..], starts, &mut out[done..]);
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
    plain::unpack(&bitmap[whole.len()..], rest);
}

/// A group of keys, each with 64 bits.
type Eight = [__m256i; 2];

/// The operations on a group.
pub(super) struct Avx2;

// SAFETY: `places` and `masks` write all slots.
unsafe impl Vectors for Avx2 {
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn places<const W: usize>(hashes: &Group, count: usize, places: &mut Places) {
        let hashes = load(hashes);
        let [mut sectors, mut products] = [[_mm256_setzero_si256(); 2]; 2];
        for half in 0..2 {
            let place = multiply(hashes[half], BLOCK_MULTIPLIER);
            // The number of the sector, and then of its first word.
            let down = i64::from(32 - (LINE_WORDS / W).ilog2());
            let sector = _mm256_srlv_epi64(scale(place, count), _mm256_set1_epi64x(down));
            sectors[half] = _mm256_sllv_epi64(sector, _mm256_set1_epi64x(W.ilog2().into()));
            let folded = _mm256_xor_si256(place, _mm256_srli_epi64::<{ FOLD as i32 }>(place));
            products[half] = multiply(folded, MULTIPLIER);
        }
        places.sectors.write(store(sectors));
        places.products.write(store(products));
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
        pattern: &Pattern,
        all: *const T,
        places: &Places,
    ) -> u8 {
        // SAFETY: as promised.
        let (sectors, products) = unsafe { places.written() };
        let mut answers = 0;
        if W == 1 && !T::COUNTERS {
            let products = load(products);
            for half in 0..2 {
                // SAFETY: as promised.
                let words = unsafe { four(all, sectors[4 * half..][..4].try_into().expect("they are four")) };
                let held = _mm256_cmpeq_epi64(words_lack(words, products[half], pattern), _mm256_setzero_si256());
                answers |= _mm256_movemask_pd(_mm256_castsi256_pd(held)) << (4 * half);
            }
            return answers as u8;
        }
        for half in 0..2 {
            let mut lacks = [_mm256_setzero_si256(); 4];
            for key in 0..4 {
                let lanes = lanes(products[4 * half + key], pattern);
                // SAFETY: as promised.
                let parts = unsafe { selected::<W, T>(all.add(sectors[4 * half + key] as usize), lanes) };
                lacks[key] = _mm256_andnot_si256(parts, bits(lanes));
            }
            // Eight bytes for each key, four in each half of a vector: saturation leaves what is
            // not 0.
            let two = [
                _mm256_packs_epi32(lacks[0], lacks[1]),
                _mm256_packs_epi32(lacks[2], lacks[3]),
            ];
            let four = _mm256_packs_epi16(two[0], two[1]);
            let four = _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
            let held = _mm_cmpeq_epi32(four, _mm_setzero_si128());
            answers |= _mm_movemask_ps(_mm_castsi128_ps(held)) << (4 * half);
        }
        answers as u8
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, pattern: &Pattern, into: &mut [Slot; W]) {
        let products = load(products);
        let [first, second] = [
            masks_of_four::<W>(products[0], pattern.bits),
            masks_of_four::<W>(products[1], pattern.bits),
        ];
        for word in 0..W {
            into[word].write(store([first[word], second[word]]));
        }
    }
}

/// A position of the pattern in each lane of 32 bits: its byte at both ends of the lane. The low
/// bits select a part of the sector.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn lanes(product: u64, pattern: &Pattern) -> __m256i {
    let order = _mm256_load_si256(pattern.lanes.as_ptr().cast());
    _mm256_shuffle_epi8(_mm256_set1_epi64x(product as i64), order)
}

/// The bit of each lane's position in its part.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn bits(lanes: __m256i) -> __m256i {
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(lanes))
}

/// The numbers scaled to `0..count`, which must be below 2^32: the results in the high halves, and
/// the first 32 bits of their fractions in the low ones.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn scale(numbers: __m256i, count: usize) -> __m256i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm256_set1_epi64x(count as i64);
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(numbers), count);
    let low = _mm256_mul_epu32(numbers, count);
    _mm256_add_epi64(high, _mm256_srli_epi64::<32>(low))
}

/// The numbers of the positions within a sector, or within its half: each in the byte where it is.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn numbered<const W: usize>(products: __m256i) -> __m256i {
    let parts = if W == LINE_WORDS { LINE_WORDS } else { 2 * W };
    let bit = _mm256_and_si256(_mm256_srli_epi16::<3>(products), _mm256_set1_epi8(PART_BITS as i8 - 1));
    let part = _mm256_set1_epi8((PART_BITS * (parts - 1)) as u8 as i8);
    _mm256_or_si256(bit, _mm256_and_si256(_mm256_slli_epi16::<5>(products), part))
}

/// The masks of four keys at once, in each lane of 64 bits a key.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn masks_of_four<const W: usize>(products: __m256i, bits: usize) -> [__m256i; W] {
    let mut numbers = numbered::<W>(products);
    let mut masks = [_mm256_setzero_si256(); W];
    let mut left = bits;
    while left > 0 {
        // Eight words: a position in the first four, and then one in the others.
        for first in (0..W).step_by(4) {
            let number = _mm256_srli_epi64::<56>(numbers);
            numbers = _mm256_slli_epi64::<8>(numbers);
            for word in 0..W.min(4) {
                // A count of 64 or more, in another word, makes no bit.
                let count = _mm256_xor_si256(number, _mm256_set1_epi64x(64 * word as i64));
                let bit = _mm256_sllv_epi64(_mm256_set1_epi64x(1), count);
                masks[first + word] = _mm256_or_si256(masks[first + word], bit);
            }
            left -= 1;
        }
    }
    masks
}

/// The masks of one key, all its words at once.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn key_masks<const W: usize>(product: u64, pattern: &Pattern) -> [u64; W] {
    // In each lane the number of its position.
    let lanes = lanes(product, pattern);
    let parts = if W == LINE_WORDS { LINE_WORDS } else { 2 * W } as i32;
    let part = _mm256_slli_epi32::<5>(_mm256_and_si256(lanes, _mm256_set1_epi32(parts - 1)));
    let numbers = _mm256_or_si256(_mm256_srli_epi32::<27>(lanes), part);
    let first_numbers = _mm256_set_epi32(224, 192, 160, 128, 96, 64, 32, 0);
    let mut masks = [_mm256_setzero_si256(); 2];
    for half in 0..2 {
        let mut bits = [_mm256_setzero_si256(); 4];
        for lane in 0..4 {
            // A count of 32 or more, in another part, makes no bit.
            let number = _mm256_permutevar8x32_epi32(numbers, _mm256_set1_epi32((4 * half + lane) as i32));
            bits[lane] = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_xor_si256(number, first_numbers));
        }
        let pairs = [_mm256_or_si256(bits[0], bits[1]), _mm256_or_si256(bits[2], bits[3])];
        masks[half] = _mm256_or_si256(pairs[0], pairs[1]);
    }
    if W < LINE_WORDS {
        masks[0] = _mm256_or_si256(masks[0], masks[1]);
    }
    words_of(masks)
}

/// The first words of two vectors, by registers: what goes through memory waits for the locked
/// operations of the insert before.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn words_of<const W: usize>([first, second]: [__m256i; 2]) -> [u64; W] {
    let halves = [
        _mm256_castsi256_si128(first),
        _mm256_extracti128_si256::<1>(first),
        _mm256_castsi256_si128(second),
        _mm256_extracti128_si256::<1>(second),
    ];
    let mut words = [0; W];
    for word in 0..W {
        let half = halves[word / 2];
        let low = if word % 2 == 0 {
            half
        } else {
            _mm_unpackhi_epi64(half, half)
        };
        words[word] = _mm_cvtsi128_si64(low) as u64;
    }
    words
}

/// The words of four keys, without what they have of the positions: a byte for each, in which a bit
/// is left if it is missing. (A vector for each key takes twice as many instructions.)
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn words_lack(words: __m256i, products: __m256i, pattern: &Pattern) -> __m256i {
    // A half of a vector has two keys: the second one's bytes are 8 on.
    let second = _mm256_set_epi64x(0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808, 0);
    let order = _mm256_set1_epi64x(i64::from_le_bytes(pattern.bytes));
    let positions = _mm256_shuffle_epi8(products, _mm256_or_si256(order, second));
    // A byte of a word: four in each part, of eight bits.
    let part = _mm256_and_si256(_mm256_slli_epi16::<2>(positions), _mm256_set1_epi8(4));
    let byte = _mm256_and_si256(_mm256_srli_epi16::<6>(positions), _mm256_set1_epi8(3));
    let held = _mm256_shuffle_epi8(words, _mm256_or_si256(_mm256_or_si256(part, byte), second));
    let bit = _mm256_and_si256(_mm256_srli_epi16::<3>(positions), _mm256_set1_epi8(7));
    _mm256_andnot_si256(held, _mm256_shuffle_epi8(_mm256_set1_epi64x(BITS), bit))
}

/// Byte `i` is `1 << i`.
const BITS: i64 = 0x8040_2010_0804_0201_u64 as i64;

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
unsafe fn load(group: &Group) -> Eight {
    // SAFETY: any four numbers are a vector.
    unsafe { transmute::<Group, Eight>(*group) }
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store(vectors: Eight) -> Group {
    // SAFETY: any vector is four numbers.
    unsafe { transmute::<Eight, Group>(vectors) }
}
