//! The kernels for AVX2 and BMI: x86-64 from 2013 (Haswell) and 2015 (Excavator) on. A group of
//! keys is two vectors.
//!
//! Single calls of 4 and 8 words are the same Rust as everywhere, compiled for this instruction
//! set. The compiler then makes all masks of a key by vector shifts; the baseline makes only one
//! bit at a time. For 1 and 2 words vectors of positions are as fast in the caches, and up to 1.5
//! times as fast in memory (Zen 5).

#![expect(
    clippy::needless_range_loop,
    reason = "loops over W and S unroll, which those over iterators do not always"
)]

use crate::bits::{Bits, Lines, Load, Probed, Region, Target};
use crate::kernel::cpu::Access;
use crate::kernel::groups::{self, GROUP, Group, Places, Slot};
use crate::kernel::{scalar, words};
use crate::layout::LINE_WORDS;
use crate::murmur3::{C1, C2};
use crate::pattern::{self, Cuts, MULTIPLIER};
use crate::sync::AtomicU64;
use core::arch::x86_64::*;

/// Whether this CPU, or without `std` this target, has what the functions below need.
pub(super) fn detect() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(feature = "std"))]
    return cfg!(all(
        target_feature = "avx2",
        target_feature = "bmi1",
        target_feature = "bmi2"
    ));
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains<const W: usize, const S: usize, T: Load>(lines: Lines<'_, T>, hash: u64, _: &Cuts) -> bool {
    let cuts = const { &Cuts::new(W, S) };
    if W > 2 {
        return scalar::contains::<W, true, T>(lines, cuts, hash);
    }
    // Four copies of a word, each shifted down by a position. More words would need more vectors of
    // shifts than the loads of many lookups leave room for.
    let line = lines
        .0
        .as_ptr()
        .wrapping_add(pattern::block(hash, lines.blocks()))
        .cast::<T>();
    let group = LINE_WORDS / W;
    let (mut product, mut products) = (hash, _mm256_setzero_si256());
    let mut all = _mm256_set1_epi64x(1);
    for i in 0..W {
        let cut = cuts.words[i];
        if cut.multiply {
            product = product.wrapping_mul(MULTIPLIER);
            products = _mm256_set1_epi64x(product as i64);
        }
        let select = (product >> cut.select) as usize % group;
        // SAFETY: a word of a line of the filter, since a block is below the number of lines.
        let word = unsafe { words::four_times(line.add(i * group), select as u64) };
        for four in 0..S.div_ceil(4) {
            let at = |j: usize| i64::from(cut.positions) + 6 * (4 * four + j).min(S - 1) as i64;
            let positions = _mm256_srlv_epi64(products, _mm256_set_epi64x(at(3), at(2), at(1), at(0)));
            let positions = _mm256_and_si256(positions, _mm256_set1_epi64x(63));
            all = _mm256_and_si256(all, _mm256_srlv_epi64(word, positions));
        }
    }
    _mm256_testc_si256(all, _mm256_set1_epi64x(1)) == 1
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert<const W: usize, const S: usize>(mut bits: &Bits, hash: u64, _: &Cuts) -> bool {
    scalar::insert::<W>(&mut bits, const { &Cuts::new(W, S) }, hash)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains_hashes<const W: usize, T: Load>(
    cuts: &Cuts,
    lines: Lines<'_, T>,
    access: Access,
    hashes: &[u64],
    found: &mut [u64],
) {
    let (count, all) = (lines.blocks(), lines.0.as_ptr().cast::<T>());
    // SAFETY: `places` writes the products and all words, of blocks below `count`, which is below
    // 2^32 (`Isa::for_blocks`); a block has 8. So they are words of `all`.
    unsafe {
        groups::contains(
            &mut { lines },
            access,
            hashes,
            found,
            |group, at| places::<W>(group, cuts, 0, count, at),
            |_, at| hold::<W, T>(cuts, all, at),
        );
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert_hashes<const W: usize>(
    cuts: &Cuts,
    bits: &Bits,
    access: Access,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = bits.shared().0.as_ptr().cast::<AtomicU64>();
    // SAFETY: `places` wrote the products, and words of the filter.
    insert_into::<W, _>(&mut { bits }, cuts, access, hashes, changed, |at| unsafe {
        hold::<W, _>(cuts, all, at)
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn fill<const W: usize>(
    cuts: &Cuts,
    region: &mut Region<'_>,
    access: Access,
    hashes: &[u64],
    changed: &mut [u64],
) {
    if hashes.len() < GROUP {
        return scalar::fill::<W>(cuts, region, access, hashes, changed);
    }
    insert_into::<W, _>(region, cuts, access, hashes, changed, |_| 0);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline]
fn insert_into<const W: usize, T: Target>(
    target: &mut T,
    cuts: &Cuts,
    access: Access,
    hashes: &[u64],
    changed: &mut [u64],
    hold: impl Fn(&Places<W>) -> u8,
) {
    let (first, count) = (target.first(), target.blocks());
    // SAFETY: `places` writes all words, and the products; `masks` writes all masks.
    unsafe {
        groups::insert::<W, _>(
            target,
            access,
            hashes,
            changed,
            |group, at| places::<W>(group, cuts, first, count, at),
            |_, at| hold(at),
            |_, at, into| masks::<W, T>(at.products.assume_init_ref(), cuts, into),
        );
    }
}

/// Writes a bit of the bitmap to each place of `out`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    // Gives each byte its bit of the four bytes in every lane of 128 bits.
    let byte = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let (whole, rest) = out.as_chunks_mut::<64>();
    for (out, &word) in whole.iter_mut().zip(bitmap) {
        for (out, word) in out
            .as_chunks_mut::<32>()
            .0
            .iter_mut()
            .zip([word as i32, (word >> 32) as i32])
        {
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

/// The blocks of the hashes: below `count`, which must be below 2^32.
#[target_feature(enable = "avx2")]
#[inline]
fn block(hashes: __m256i, count: usize) -> __m256i {
    // (high * 2^32 + low) * count / 2^64, by two products of 32 bits.
    let count = _mm256_set1_epi64x(count as i64);
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(hashes), count);
    let low = _mm256_mul_epu32(hashes, count);
    _mm256_srli_epi64::<32>(_mm256_add_epi64(high, _mm256_srli_epi64::<32>(low)))
}

/// The words that each hash touches, counted from block `first` on: for 0 below 8 times `count`,
/// the filter's blocks.
#[target_feature(enable = "avx2")]
#[inline]
fn places<const W: usize>(hashes: &Group, cuts: &Cuts, first: usize, count: usize, places: &mut Places<W>) {
    let mut product = load(hashes);
    let first = _mm256_set1_epi64x(first as i64);
    let line = [
        _mm256_sub_epi64(block(product[0], count), first),
        _mm256_sub_epi64(block(product[1], count), first),
    ];
    for half in &mut product {
        *half = multiply(*half, MULTIPLIER);
    }
    places.products.write(store(product));
    for i in 0..W {
        let cut = &cuts.words[i];
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
}

/// The mask of each hash in each of its words. `T` is the target: each copy has one caller, and so
/// is inlined.
#[target_feature(enable = "avx2")]
#[inline]
fn masks<const W: usize, T>(products: &Group, cuts: &Cuts, into: &mut [Slot; W]) {
    let mut product = load(products);
    for pair in (0..W).step_by(2) {
        let masks = vector_masks::<W>(&mut product, cuts, pair);
        for i in pair..W.min(pair + 2) {
            into[i].write(store(masks[i - pair]));
        }
    }
}

/// Whether the words of the places hold all bits of their hash's pattern.
///
/// # Safety
///
/// The words and the products were written. The words are there, counted from `all` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn hold<const W: usize, T: Load>(cuts: &Cuts, all: *const T, places: &Places<W>) -> u8 {
    // SAFETY: as promised.
    let (numbers, products) = unsafe { (places.words(), places.products.assume_init_ref()) };
    let mut product = load(products);
    let mut lacking = [_mm256_setzero_si256(); 2];
    for pair in (0..W).step_by(2) {
        let masks = vector_masks::<W>(&mut product, cuts, pair);
        for i in pair..W.min(pair + 2) {
            let halves = numbers[i].as_chunks::<4>().0;
            for half in 0..2 {
                // SAFETY: as promised.
                let words = unsafe { words::four(all, &halves[half]) };
                let lacks = _mm256_andnot_si256(words, masks[i - pair][half]);
                lacking[half] = _mm256_or_si256(lacking[half], lacks);
            }
        }
    }
    let mut answers = 0;
    for half in 0..2 {
        let hold = _mm256_cmpeq_epi64(lacking[half], _mm256_setzero_si256());
        answers |= _mm256_movemask_pd(_mm256_castsi256_pd(hold)) << (4 * half);
    }
    answers as u8
}

/// The masks of two words (more do not fit the registers), or of one if there is no other.
#[target_feature(enable = "avx2")]
#[inline]
fn vector_masks<const W: usize>(product: &mut Vectors, cuts: &Cuts, first: usize) -> [Vectors; 2] {
    let mut positions = [[_mm256_setzero_si256(); 2]; 2];
    let mut masks = [[_mm256_setzero_si256(); 2]; 2];
    for i in 0..W.min(2) {
        let cut = &cuts.words[first + i];
        for half in 0..2 {
            if first + i > 0 && cut.multiply {
                product[half] = multiply(product[half], MULTIPLIER);
            }
            positions[i][half] = shift(product[half], cut.positions);
            masks[i][half] = bit(positions[i][half]);
        }
    }
    for _ in 1..cuts.bits {
        for i in 0..W.min(2) {
            for half in 0..2 {
                positions[i][half] = _mm256_srli_epi64::<6>(positions[i][half]);
                masks[i][half] = _mm256_or_si256(masks[i][half], bit(positions[i][half]));
            }
        }
    }
    masks
}

/// The bit at the position in the lowest 6 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn bit(position: __m256i) -> __m256i {
    let position = _mm256_and_si256(position, _mm256_set1_epi64x(63));
    _mm256_sllv_epi64(_mm256_set1_epi64x(1), position)
}

/// Multiplies by `by`, in three products of 32 bits: AVX2 has no others.
#[target_feature(enable = "avx2")]
#[inline]
fn multiply(vector: __m256i, by: u64) -> __m256i {
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
fn shift(vector: __m256i, by: u32) -> __m256i {
    _mm256_srlv_epi64(vector, _mm256_set1_epi64x(i64::from(by)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(group: &Group) -> Vectors {
    let halves = group.as_chunks::<4>().0;
    // SAFETY: reads the 32 bytes of each half, at any alignment.
    unsafe {
        [
            _mm256_loadu_si256(halves[0].as_ptr().cast()),
            _mm256_loadu_si256(halves[1].as_ptr().cast()),
        ]
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(vectors: Vectors) -> Group {
    let mut group = [0; GROUP];
    for (half, vector) in group.as_chunks_mut::<4>().0.iter_mut().zip(vectors) {
        // SAFETY: writes the 32 bytes of this half, at any alignment.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), vector) };
    }
    group
}

// ---- Murmur3 x64_128 of short keys, four at a time; murmur3.rs is the specification ----
//
// A u64 takes 1.9 ns; hashing one key after another takes 2.8 (Zen 4). The scalar code hashes
// longer keys: without loads that stop at the end of a key, vectors gain little.

/// The state of four hashes.
#[derive(Clone, Copy)]
struct State {
    h1: __m256i,
    h2: __m256i,
}

/// Hashes keys of `width` bytes, at most 16. `keys` has the first 8 bytes of each, little-endian,
/// and becomes the hashes. `high` has the other bytes; it is empty if there are none.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn murmur3_short(seed: u32, width: usize, keys: &mut [u64], high: &[u64]) {
    let seed = _mm256_set1_epi64x(i64::from(seed));
    let state = State { h1: seed, h2: seed };
    let len = _mm256_set1_epi64x(width as i64);
    if width <= 8 {
        each_group(keys, |_, k1| {
            let h1 = _mm256_xor_si256(state.h1, mix_k1(k1));
            finish(State { h1, ..state }, len)
        });
    } else if width < 16 {
        each_group(keys, |at, k1| finish(tail(state, k1, load_some(&high[at..])), len));
    } else {
        each_group(keys, |at, k1| finish(body(state, k1, load_some(&high[at..])), len));
    }
}

/// Replaces the keys, four at a time, by what `hash` makes of them and of where they begin.
#[target_feature(enable = "avx2")]
#[inline]
fn each_group(keys: &mut [u64], hash: impl Fn(usize, __m256i) -> __m256i) {
    let whole = keys.len() / 4 * 4;
    let (groups, rest) = keys.as_chunks_mut::<4>();
    for (i, group) in groups.iter_mut().enumerate() {
        let hashes = hash(4 * i, load_some(group));
        // SAFETY: writes the 32 bytes of the array, at any alignment.
        unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), hashes) };
    }
    if !rest.is_empty() {
        let hashes = hash(whole, load_some(rest));
        let mut some = [0; 4];
        // SAFETY: writes the 32 bytes of the array, at any alignment.
        unsafe { _mm256_storeu_si256(some.as_mut_ptr().cast(), hashes) };
        for (key, hash) in rest.iter_mut().zip(some) {
            *key = hash;
        }
    }
}

/// The first four numbers; 0 for missing ones.
#[target_feature(enable = "avx2")]
#[inline]
fn load_some(numbers: &[u64]) -> __m256i {
    let some = match numbers.first_chunk::<4>() {
        Some(four) => *four,
        None => core::array::from_fn(|i| numbers.get(i).copied().unwrap_or(0)),
    };
    // SAFETY: reads the 32 bytes of the array, at any alignment.
    unsafe { _mm256_loadu_si256(some.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn body(State { h1, h2 }: State, k1: __m256i, k2: __m256i) -> State {
    let h1 = _mm256_xor_si256(h1, mix_k1(k1));
    let h1 = _mm256_add_epi64(rotate::<27, 37>(h1), h2);
    let h1 = _mm256_add_epi64(times_5(h1), _mm256_set1_epi64x(0x52dc_e729));
    let h2 = _mm256_xor_si256(h2, mix_k2(k2));
    let h2 = _mm256_add_epi64(rotate::<31, 33>(h2), h1);
    let h2 = _mm256_add_epi64(times_5(h2), _mm256_set1_epi64x(0x3849_5ab5));
    State { h1, h2 }
}

/// A tail of zeros leaves the state as it is.
#[target_feature(enable = "avx2")]
#[inline]
fn tail(State { h1, h2 }: State, k1: __m256i, k2: __m256i) -> State {
    State {
        h1: _mm256_xor_si256(h1, mix_k1(k1)),
        h2: _mm256_xor_si256(h2, mix_k2(k2)),
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn finish(State { h1, h2 }: State, len: __m256i) -> __m256i {
    let h2 = _mm256_xor_si256(h2, len);
    let h1 = _mm256_add_epi64(_mm256_xor_si256(h1, len), h2);
    let h2 = _mm256_add_epi64(h2, h1);
    _mm256_add_epi64(fmix(h1), fmix(h2))
}

#[target_feature(enable = "avx2")]
#[inline]
fn mix_k1(k1: __m256i) -> __m256i {
    multiply(rotate::<31, 33>(multiply(k1, C1)), C2)
}

#[target_feature(enable = "avx2")]
#[inline]
fn mix_k2(k2: __m256i) -> __m256i {
    multiply(rotate::<33, 31>(multiply(k2, C2)), C1)
}

#[target_feature(enable = "avx2")]
#[inline]
fn fmix(k: __m256i) -> __m256i {
    let k = multiply(_mm256_xor_si256(k, _mm256_srli_epi64::<33>(k)), 0xff51_afd7_ed55_8ccd);
    let k = multiply(_mm256_xor_si256(k, _mm256_srli_epi64::<33>(k)), 0xc4ce_b9fe_1a85_ec53);
    _mm256_xor_si256(k, _mm256_srli_epi64::<33>(k))
}

/// Rotates up by `LEFT`; `RIGHT` is 64 less that.
#[target_feature(enable = "avx2")]
#[inline]
fn rotate<const LEFT: i32, const RIGHT: i32>(vector: __m256i) -> __m256i {
    const { assert!(LEFT + RIGHT == 64) };
    _mm256_or_si256(_mm256_slli_epi64::<LEFT>(vector), _mm256_srli_epi64::<RIGHT>(vector))
}

#[target_feature(enable = "avx2")]
#[inline]
fn times_5(vector: __m256i) -> __m256i {
    _mm256_add_epi64(vector, _mm256_slli_epi64::<2>(vector))
}
