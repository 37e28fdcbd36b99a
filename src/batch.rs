//! Pipelines over the bits: a hash, or a slice of them, to answers. `simd/` compiles them for each shape of the pattern
//! and each instruction set; nothing here knows which.
//!
//! Answers of a batch are a bitmap: bit `i % 64` of word `i / 64` is the answer for hash `i`, and the bits that no hash
//! belongs to are 0.
//!
//! None of them orders memory beyond the `Release` of the bits it sets; the caller calls
//! [`acquire`](crate::bits::acquire) where an answer rests on bits seen.

use crate::bits::{Bits, Purpose};
use crate::pattern::{GROUP, Group, block, pattern};
use crate::sizing::LINE_BYTES;

/// Filters up to this size, in bytes, are probed without prefetching: to wait for L2 or the nearer part of L3 costs less
/// than the hints do. (Zen 4, AVX-512, ns without and with: 1.4 and 1.75 at 1 MiB, 1.5 and 1.7 at 2 MiB, 2.0 and 1.8 at 8 MiB.)
const CACHED_BYTES: usize = 2 << 20;

/// How far ahead lines are asked for from memory, in groups and, where keys are taken one by one, in keys. They are asked for
/// into L2: of hints for L1 a core has fewer under way at once. Touching random lines of 64 MiB takes 8.7 ns each with hints for
/// L1, whatever the distance, and 4.2 with hints for L2 (Zen 4, pages of 4 KiB).
const GROUPS_AHEAD: usize = 16;
const KEYS_AHEAD: usize = 64;

/// How far ahead lines are asked for from L2 into L1, in keys, where keys are taken one by one; and into L1 for writing, in
/// groups. (Lookups by groups load that far ahead instead.)
const KEYS_NEAR: usize = 16;
const GROUPS_NEAR: usize = 4;

#[inline(always)]
pub(crate) fn contains<const W: usize, const S: usize, const VECTOR: bool>(bits: &Bits, hash: u64) -> bool {
    bits.holds::<W, S, VECTOR>(block(hash, bits.blocks()), pattern(hash))
}

#[inline(always)]
pub(crate) fn insert<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    bits.set::<W, S>(block(hash, bits.blocks()), pattern(hash))
}

#[inline(always)]
pub(crate) fn contains_hashes<const W: usize, const S: usize, const VECTOR: bool>(
    bits: &Bits,
    hashes: &[u64],
    found: &mut [u64],
) {
    one_by_one(bits, hashes, found, Purpose::Read, |hash| {
        contains::<W, S, VECTOR>(bits, hash)
    });
}

#[inline(always)]
pub(crate) fn insert_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64], changed: &mut [u64]) {
    one_by_one(bits, hashes, changed, Purpose::Write, |hash| insert::<W, S>(bits, hash));
}

/// Calls `each` for every hash in order, the lines asked for ahead.
#[inline(always)]
fn one_by_one(bits: &Bits, hashes: &[u64], answers: &mut [u64], near: Purpose, mut each: impl FnMut(u64) -> bool) {
    debug_assert_eq!(hashes.len().div_ceil(64), answers.len());
    if bits.blocks() * LINE_BYTES <= CACHED_BYTES {
        for (hashes, answers) in hashes.chunks(64).zip(answers) {
            let mut last = 0;
            for &hash in hashes {
                last = last >> 1 | u64::from(each(hash)) << 63;
            }
            *answers = last >> (64 - hashes.len());
        }
        return;
    }
    let ask = |hash: Option<&u64>, purpose| {
        if let Some(&hash) = hash {
            bits.prefetch(block(hash, bits.blocks()), purpose);
        }
    };
    hashes
        .iter()
        .take(KEYS_AHEAD)
        .for_each(|hash| ask(Some(hash), Purpose::Later));
    hashes.iter().take(KEYS_NEAR).for_each(|hash| ask(Some(hash), near));
    for (i, answers) in answers.iter_mut().enumerate() {
        *answers = 0;
        for (j, hash) in hashes[64 * i..].iter().take(64).enumerate() {
            ask(hashes.get(64 * i + j + KEYS_AHEAD), Purpose::Later);
            ask(hashes.get(64 * i + j + KEYS_NEAR), near);
            *answers |= u64::from(each(*hash)) << j;
        }
    }
}

/// Lookups by groups, with what an instruction set can do for a group: the `blocks` of its hashes, the `words` of the whole
/// filter that each touches, and whether these words, loaded, `hold` the patterns: one bit a hash.
///
/// # Safety
///
/// What `words` gives for any group is below 8 times the blocks of `bits`.
#[cfg(not(lanebloom_loom))]
#[inline(always)]
pub(crate) unsafe fn contains_groups<const W: usize>(
    bits: &Bits,
    hashes: &[u64],
    found: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    hold: impl Fn(&Group, &[Group; W]) -> u8,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), found.len());
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let cached = bits.blocks() * LINE_BYTES <= CACHED_BYTES;
    let ask = |group: &Group| {
        if !cached {
            for block in blocks(group) {
                bits.prefetch(block as usize, Purpose::Later);
            }
        }
    };
    for group in groups.iter().take(GROUPS_AHEAD) {
        ask(group);
    }
    // Two rings: the words of the groups to come, and what was loaded from them. That what is stored in them is read several groups
    // later is the point: the loads of many keys are under way together, and nothing waits for a store that is still in flight.
    let mut places = [[[0; GROUP]; W]; 2 * GROUPS_NEAR];
    let mut loaded = [[[0; GROUP]; W]; GROUPS_NEAR];
    for (group, places) in groups.iter().zip(&mut places) {
        *places = words(group);
    }
    for (places, loaded) in places.iter().zip(&mut loaded) {
        // SAFETY: `places` are what `words` gave for some group, by the caller's promise words of the filter, or the zeros
        // that they began as, the first word.
        unsafe { bits.load(places, loaded) };
    }
    let mut answers = 0;
    for (i, group) in groups.iter().enumerate() {
        if let Some(group) = groups.get(i + GROUPS_AHEAD) {
            ask(group);
        }
        let slot = &mut loaded[i % GROUPS_NEAR];
        answers |= u64::from(hold(group, slot)) << (i % 8 * 8);
        // SAFETY: as above.
        unsafe { bits.load(&places[(i + GROUPS_NEAR) % (2 * GROUPS_NEAR)], slot) };
        if let Some(group) = groups.get(i + 2 * GROUPS_NEAR) {
            places[i % (2 * GROUPS_NEAR)] = words(group);
        }
        if i % 8 == 7 {
            found[i / 8] = answers;
            answers = 0;
        }
    }
    if !rest.is_empty() {
        // Made up to a group, the answers for what is not there thrown away.
        let group = made_up(rest);
        // SAFETY: as above.
        unsafe { bits.load(&words(&group), &mut loaded[0]) };
        let held = u64::from(hold(&group, &loaded[0])) & ((1 << rest.len()) - 1);
        answers |= held << (groups.len() % 8 * 8);
    }
    if !hashes.len().is_multiple_of(64) {
        found[hashes.len() / 64] = answers;
    }
}

/// Inserts by groups, in order, with what an instruction set can do for a group: the `blocks` of its hashes, the `words` of
/// the whole filter that each touches, and their `masks`.
#[cfg(not(lanebloom_loom))]
#[inline(always)]
pub(crate) fn insert_groups<const W: usize>(
    bits: &Bits,
    hashes: &[u64],
    changed: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    masks: impl Fn(&Group) -> [Group; W],
) {
    debug_assert_eq!(hashes.len().div_ceil(64), changed.len());
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let cached = bits.blocks() * LINE_BYTES <= CACHED_BYTES;
    let ask_far = |group: &Group| {
        if !cached {
            for block in blocks(group) {
                bits.prefetch(block as usize, Purpose::Later);
            }
        }
    };
    let ask_near = |group: &Group| {
        if !cached {
            for block in blocks(group) {
                bits.prefetch(block as usize, Purpose::Write);
            }
        }
    };
    for group in groups.iter().take(GROUPS_AHEAD) {
        ask_far(group);
    }
    for group in groups.iter().take(GROUPS_NEAR) {
        ask_near(group);
    }
    let set = |group: &Group, len: usize| {
        let (words, masks) = (words(group), masks(group));
        let mut changed = 0;
        for hash in 0..len {
            changed |= u64::from(bits.set_in_group(&words, &masks, hash)) << hash;
        }
        changed
    };
    let mut answers = 0;
    for (i, group) in groups.iter().enumerate() {
        if let Some(group) = groups.get(i + GROUPS_AHEAD) {
            ask_far(group);
        }
        if let Some(group) = groups.get(i + GROUPS_NEAR) {
            ask_near(group);
        }
        answers |= set(group, GROUP) << (i % 8 * 8);
        if i % 8 == 7 {
            changed[i / 8] = answers;
            answers = 0;
        }
    }
    if !rest.is_empty() {
        answers |= set(&made_up(rest), rest.len()) << (groups.len() % 8 * 8);
    }
    if !hashes.len().is_multiple_of(64) {
        changed[hashes.len() / 64] = answers;
    }
}

/// The hashes that do not fill a group, with zeros after them.
#[cfg(not(lanebloom_loom))]
#[inline(always)]
fn made_up(rest: &[u64]) -> Group {
    let mut group = [0; GROUP];
    for (place, hash) in group.iter_mut().zip(rest) {
        *place = *hash;
    }
    group
}

/// A bit of the bitmap to each place of `out`.
pub(crate) fn unpack(bitmap: &[u64], out: &mut [bool]) {
    debug_assert_eq!(out.len().div_ceil(64), bitmap.len());
    for (out, word) in out.chunks_mut(64).zip(bitmap) {
        for (out, byte) in out.chunks_mut(8).zip(word.to_le_bytes()) {
            // Each byte of the product is `byte`; of each is left another bit.
            let bits = (u64::from(byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
            for (out, bit) in out.iter_mut().zip(bits.to_le_bytes()) {
                *out = bit != 0;
            }
        }
    }
}
