//! The pipelines of `batch.rs` by groups of keys, for instruction sets that have vectors: what flows through here are arrays
//! of a group's hashes, words and masks, which this thread owns; words are loaded from the filter one by one, as atomics, and put
//! together in such an array. Called by an instruction set's file, which says what its vectors do with a group.

use crate::batch::is_cached;
use crate::bits::{Bits, Purpose};

/// Hashes that are taken together: as many as the widest vectors hold.
pub(super) const GROUP: usize = 8;
pub(super) type Group = [u64; GROUP];

/// How far ahead lines are asked for from memory into L2, in groups: 128 keys. `batch.rs` has the reason.
const AHEAD: usize = 16;
/// How far ahead words are loaded before they are tested, and lines brought into L1 before they are written, in groups: far
/// enough for L2 and the nearer part of L3.
const NEAR: usize = 4;

/// Lookups by groups, with what an instruction set can do for a group: the `blocks` of its hashes, the `words` of the whole
/// filter that each touches, and whether these words, loaded, `hold` the patterns: one bit a hash.
///
/// # Safety
///
/// What `words` gives for any group is below 8 times the blocks of `bits`.
#[inline(always)]
pub(super) unsafe fn contains<const W: usize>(
    bits: &Bits,
    hashes: &[u64],
    found: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    hold: impl Fn(&Group, &[Group; W]) -> u8,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), found.len());
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let cached = is_cached(bits);
    let ask = |group: &Group| {
        if !cached {
            for block in blocks(group) {
                bits.prefetch(block as usize, Purpose::Later);
            }
        }
    };
    for group in groups.iter().take(AHEAD) {
        ask(group);
    }
    // Two rings: the words of the groups to come, and what was loaded from them. That what is stored in them is read several groups
    // later is the point: the loads of many keys are under way together, and nothing waits for a store that is still in flight.
    let mut places = [[[0; GROUP]; W]; 2 * NEAR];
    let mut loaded = [[[0; GROUP]; W]; NEAR];
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
        if let Some(group) = groups.get(i + AHEAD) {
            ask(group);
        }
        let slot = &mut loaded[i % NEAR];
        answers |= u64::from(hold(group, slot)) << (i % 8 * 8);
        // SAFETY: as above.
        unsafe { bits.load(&places[(i + NEAR) % (2 * NEAR)], slot) };
        if let Some(group) = groups.get(i + 2 * NEAR) {
            places[i % (2 * NEAR)] = words(group);
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
#[inline(always)]
pub(super) fn insert<const W: usize>(
    bits: &Bits,
    hashes: &[u64],
    changed: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    masks: impl Fn(&Group) -> [Group; W],
) {
    debug_assert_eq!(hashes.len().div_ceil(64), changed.len());
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let cached = is_cached(bits);
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
    for group in groups.iter().take(AHEAD) {
        ask_far(group);
    }
    for group in groups.iter().take(NEAR) {
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
        if let Some(group) = groups.get(i + AHEAD) {
            ask_far(group);
        }
        if let Some(group) = groups.get(i + NEAR) {
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
#[inline(always)]
fn made_up(rest: &[u64]) -> Group {
    let mut group = [0; GROUP];
    for (place, hash) in group.iter_mut().zip(rest) {
        *place = *hash;
    }
    group
}
