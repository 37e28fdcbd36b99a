//! Murmur3 and SipHash-1-3 of several keys at once, written once for the vectors of every
//! instruction set. `murmur3.rs` and `siphash.rs` are their specification.
//!
//! A file of each instruction set (`hash_avx2.rs`, `hash_avx512.rs`, `hash_neon.rs`) implements
//! [`Lanes`] for its vectors. Its entries, functions with target features, call the functions of
//! this file, which have none. The compiler inlines an intrinsic only into a function that has its
//! feature. So all functions here are `#[inline(always)]`, and no closure works on vectors.
//! `ci/codegen.sh` looks for the instructions in the entries.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "each function here needs the instruction set of its vectors, and says so once"
)]
#![cfg_attr(
    lanebloom_aarch64,
    expect(dead_code, reason = "NEON hashes by Murmur3 alone, keys below 16 bytes")
)]

use crate::hash::murmur3::{self, C1, C2, FMIX};
use crate::hash::siphash;
use crate::kernel::plan::GROUP;
use crate::words::arrays::{as_chunks, as_chunks_mut};
use core::arch::asm;

/// Numbers of 64 bits, one for each key, in one vector or several.
///
/// # Safety
///
/// [`LANES`](Self::LANES) numbers of any value are a vector, or `load` and `store` are overridden.
///
/// The caller of a function, here and in the rest of this file, promises that the CPU has the
/// instruction set.
pub(super) unsafe trait Lanes: Copy {
    /// How many numbers, at most [`GROUP`].
    const LANES: usize;

    /// The number in each lane.
    unsafe fn all(number: u64) -> Self;

    /// The first of these numbers.
    unsafe fn set(numbers: [u64; GROUP]) -> Self;

    /// The first numbers, and 0 for missing ones.
    #[inline(always)]
    unsafe fn load(numbers: &[u64]) -> Self {
        if numbers.len() >= Self::LANES {
            // SAFETY: reads so many numbers, at any alignment.
            return unsafe { numbers.as_ptr().cast::<Self>().read_unaligned() };
        }
        // The caller has just written them. A vector load that spans several stores would wait
        // until the last of them is in the cache.
        let number = |i| in_scalar_code(numbers.get(i).copied().unwrap_or(0));
        Self::set(core::array::from_fn(number))
    }

    /// Writes as many numbers as there are places. (Without masks: loads that follow would wait for
    /// a masked store.)
    #[inline(always)]
    unsafe fn store(self, numbers: &mut [u64]) {
        if numbers.len() >= Self::LANES {
            // SAFETY: writes so many numbers, at any alignment.
            return unsafe { numbers.as_mut_ptr().cast::<Self>().write_unaligned(self) };
        }
        let mut all = [0; GROUP];
        // SAFETY: as above: there are at least as many.
        unsafe { all.as_mut_ptr().cast::<Self>().write_unaligned(self) };
        // (Each by itself: the compiler would make a call of `memcpy` of a shorter loop.)
        for (i, number) in all.into_iter().enumerate() {
            if let Some(to) = numbers.get_mut(i) {
                *to = number;
            }
        }
    }

    unsafe fn add(self, other: Self) -> Self;

    unsafe fn xor(self, other: Self) -> Self;

    unsafe fn multiply(self, by: u64) -> Self;

    /// Rotates up by `UP`; `DOWN` is 64 less that.
    unsafe fn rotate<const UP: i32, const DOWN: i32>(self) -> Self;

    /// XORs the number that is shifted down by 33 bits.
    unsafe fn xor_shifted_33(self) -> Self;
}

#[inline(always)]
pub(super) unsafe fn begin<V: Lanes, const N: usize>(start: &[u64; N]) -> [V; N] {
    let mut state = [V::all(0); N];
    for (state, word) in state.iter_mut().zip(start) {
        *state = V::all(*word);
    }
    state
}

// ---- Murmur3 x64_128 ----

/// Hashes keys of `width` bytes, at most `MOST`: 8, 15 or 16. `KEYS` at a time: the processor works
/// on some in scalar code while it works on others in a vector. A rest of fewer than `LEAST` goes
/// by scalar code alone.
#[inline(always)]
pub(super) unsafe fn murmur3_short<V: Lanes, const KEYS: usize, const LEAST: usize, const MOST: usize>(
    start: &[u64; 2],
    width: usize,
    keys: &mut [u64],
    high: &[u64],
) {
    // (The caller has just written both words. One load of 16 bytes would wait until they are in
    // the cache.)
    let state = begin(&start.map(in_scalar_code));
    let (groups, rest) = as_chunks_mut::<KEYS, _>(keys);
    let (highs, high) = as_chunks::<KEYS, _>(high);
    for (i, group) in groups.iter_mut().enumerate() {
        // (No index: its panic would be a call in the loop.)
        let here = highs.get(i).unwrap_or(&[0; KEYS]);
        // First: after the vector, keys of 12 bytes would take up to 1.6 times as long by NEON,
        // since the compiler keeps this order.
        let mut hashes = *group;
        for i in V::LANES..KEYS {
            hashes[i] = murmur3_one::<MOST>(start, width, group[i], here[i]);
        }
        murmur3_group::<V, MOST>(state, width, &mut group[..V::LANES], here);
        group[V::LANES..].copy_from_slice(&hashes[V::LANES..]);
    }
    let lanes = if rest.len() < LEAST {
        0
    } else {
        V::LANES.min(rest.len())
    };
    let (vector, scalar) = rest.split_at_mut(lanes);
    for (i, key) in scalar.iter_mut().enumerate() {
        let high = high.get(lanes + i).copied().unwrap_or(0);
        *key = murmur3_one::<MOST>(start, width, *key, high);
    }
    if lanes > 0 {
        murmur3_group::<V, MOST>(state, width, vector, high);
    }
}

/// The hash of one key in scalar code.
#[inline(always)]
fn murmur3_one<const MOST: usize>(start: &[u64; 2], width: usize, low: u64, high: u64) -> u64 {
    let [mut h1, mut h2] = start.map(|word| word ^ width as u64);
    h1 ^= murmur3::mix_k1(in_scalar_code(low));
    if MOST > 8 {
        h2 ^= murmur3::mix_k2(in_scalar_code(high));
    }
    h1 = h1.wrapping_add(h2);
    h2 = in_scalar_code(h2.wrapping_add(h1));
    murmur3::fmix(h1).wrapping_add(murmur3::fmix(h2))
}

/// Hashes the keys of a vector.
#[inline(always)]
unsafe fn murmur3_group<V: Lanes, const MOST: usize>(state: [V; 2], width: usize, keys: &mut [u64], high: &[u64]) {
    let mut next = if MOST > 8 {
        murmur3_mix(state, V::load(keys), V::load(high))
    } else {
        [state[0].xor(mix_k1(V::load(keys))), state[1]]
    };
    if MOST == 16 {
        next = murmur3_go_on(state, next);
    }
    murmur3_finish(next, V::all(width as u64)).store(keys);
}

/// The number itself, which the compiler takes for another one. (Else it would make vectors of
/// scalar code beside vectors, and one load of several. By NEON it does neither.)
#[inline(always)]
pub(super) fn in_scalar_code(mut number: u64) -> u64 {
    if cfg!(lanebloom_x86_64) {
        // SAFETY: it does nothing.
        unsafe { asm!("/* {} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags)) };
    }
    number
}

/// The first step for 16 bytes, and the only one for the bytes after the last 16. Zeros change
/// nothing.
#[inline(always)]
pub(super) unsafe fn murmur3_mix<V: Lanes>([h1, h2]: [V; 2], k1: V, k2: V) -> [V; 2] {
    [h1.xor(mix_k1(k1)), h2.xor(mix_k2(k2))]
}

/// The second step for 16 bytes, from the state before and after the first.
#[inline(always)]
pub(super) unsafe fn murmur3_go_on<V: Lanes>([_, before]: [V; 2], [h1, h2]: [V; 2]) -> [V; 2] {
    let h1 = times_5(h1.rotate::<27, 37>().add(before)).add(V::all(0x52dc_e729));
    let h2 = times_5(h2.rotate::<31, 33>().add(h1)).add(V::all(0x3849_5ab5));
    [h1, h2]
}

/// (The compiler makes a shift of the first two sums.)
#[inline(always)]
unsafe fn times_5<V: Lanes>(vector: V) -> V {
    let two = vector.add(vector);
    two.add(two).add(vector)
}

#[inline(always)]
pub(super) unsafe fn murmur3_finish<V: Lanes>([h1, h2]: [V; 2], len: V) -> V {
    let h2 = h2.xor(len);
    let h1 = h1.xor(len).add(h2);
    let h2 = h2.add(h1);
    fmix(h1).add(fmix(h2))
}

#[inline(always)]
unsafe fn mix_k1<V: Lanes>(k1: V) -> V {
    k1.multiply(C1).rotate::<31, 33>().multiply(C2)
}

#[inline(always)]
unsafe fn mix_k2<V: Lanes>(k2: V) -> V {
    k2.multiply(C2).rotate::<33, 31>().multiply(C1)
}

#[inline(always)]
unsafe fn fmix<V: Lanes>(k: V) -> V {
    let k = k.xor_shifted_33().multiply(FMIX[0]);
    k.xor_shifted_33().multiply(FMIX[1]).xor_shifted_33()
}

// ---- SipHash-1-3 ----

/// Hashes keys of `width` bytes, at most 16.
#[inline(always)]
pub(super) unsafe fn siphash13_short<V: Lanes>(start: &[u64; 4], width: usize, keys: &mut [u64], high: &[u64]) {
    let (state, end) = (begin(start), V::all((width as u64) << 56));
    if width < 8 {
        for keys in keys.chunks_mut(V::LANES) {
            siphash13_finish(siphash13_mix(state, V::load(keys).xor(end))).store(keys);
        }
        return;
    }
    for (i, keys) in keys.chunks_mut(V::LANES).enumerate() {
        let (mut next, mut last) = (siphash13_mix(state, V::load(keys)), end);
        if width > 8 {
            let high = V::load(&high[V::LANES * i..]);
            if width < 16 {
                last = high.xor(end);
            } else {
                next = siphash13_mix(next, high);
            }
        }
        siphash13_finish(siphash13_mix(next, last)).store(keys);
    }
}

#[inline(always)]
unsafe fn siphash13_round<V: Lanes>([v0, v1, v2, v3]: [V; 4]) -> [V; 4] {
    let (v0, v2) = (v0.add(v1), v2.add(v3));
    let v1 = v1.rotate::<13, 51>().xor(v0);
    let v3 = v3.rotate::<16, 48>().xor(v2);
    let v0 = v0.rotate::<32, 32>().add(v3);
    let v2 = v2.add(v1);
    let v1 = v1.rotate::<17, 47>().xor(v2);
    let v3 = v3.rotate::<21, 43>().xor(v0);
    [v0, v1, v2.rotate::<32, 32>(), v3]
}

/// Takes eight bytes of each key.
#[inline(always)]
pub(super) unsafe fn siphash13_mix<V: Lanes>([v0, v1, v2, v3]: [V; 4], word: V) -> [V; 4] {
    let [v0, v1, v2, v3] = siphash13_round([v0, v1, v2, v3.xor(word)]);
    [v0.xor(word), v1, v2, v3]
}

/// The hash, after the word with the length.
#[inline(always)]
pub(super) unsafe fn siphash13_finish<V: Lanes>([v0, v1, v2, v3]: [V; 4]) -> V {
    let mut state = [v0, v1, v2.xor(V::all(siphash::END)), v3];
    for _ in 0..3 {
        state = siphash13_round(state);
    }
    let [v0, v1, v2, v3] = state;
    v0.xor(v1).xor(v2.xor(v3))
}
