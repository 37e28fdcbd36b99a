//! The pipelines of `batch.rs` by groups of keys, for instruction sets that have vectors. They work
//! on arrays of a group's hashes, words and masks, which this thread owns. They load words from the
//! filter one by one, as atomics, and put them together in such an array. An instruction set's file
//! calls them, and says what its vectors do with a group.

use crate::batch::is_cached;
use crate::bits::{Lines, Load, Probed, Purpose, Target};
use crate::pattern::block;

/// Hashes that are taken together: as many as the widest vectors hold.
pub(super) const GROUP: usize = 8;
pub(super) type Group = [u64; GROUP];

/// How far ahead lines are asked for from memory into L2, in groups: 192 keys. `batch.rs` has the
/// reason.
const AHEAD: usize = 24;
/// How far ahead words are loaded before they are tested, and lines brought into L1 before they are
/// written, in groups: far enough for L2 and the nearer part of L3.
const NEAR: usize = 4;

/// Lookups by groups. An instruction set supplies three functions for a group: the `blocks` of its
/// hashes, the `words` of the whole filter that each hash touches, and whether these words, loaded,
/// `hold` the patterns, one bit a hash. Hashes that do not fill a group go `one` by one. So do
/// batches of few groups, for which the pipeline would take longer to fill than to work.
///
/// # Safety
///
/// Every number that `words` gives for any group is below 8 times the number of `lines`.
#[inline(always)]
pub(super) unsafe fn contains<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    hold: impl Fn(&Group, &[Group; W]) -> u8,
    one: impl Fn(u64) -> bool,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), found.len());
    let (mut groups, mut rest) = hashes.as_chunks::<GROUP>();
    if groups.len() < NEAR {
        (groups, rest) = (&[], hashes);
    }
    let cached = is_cached(lines.bytes());
    let ask = |group: &Group| {
        if !cached {
            for block in blocks(group) {
                lines.prefetch(block as usize, Purpose::Later);
            }
        }
    };
    for group in groups.iter().take(AHEAD) {
        ask(group);
    }
    ask_rest(&lines, rest, Purpose::Read);
    let mut answers = 0;
    if !groups.is_empty() {
        // Two rings: the words of the groups to come, and what was loaded from them. That what is
        // stored in them is read several groups later is the point: the loads of many keys are
        // under way together, and nothing waits for a store that is still in flight.
        let mut places = [[[0; GROUP]; W]; 2 * NEAR];
        let mut loaded = [[[0; GROUP]; W]; NEAR];
        for (group, places) in groups.iter().zip(&mut places) {
            *places = words(group);
        }
        for (places, loaded) in places.iter().zip(&mut loaded) {
            // SAFETY: `places` are what `words` gave for some group, by the caller's promise words
            // of the filter, or the zeros that they began as, the first word.
            unsafe { lines.load(places, loaded) };
        }
        for (i, group) in groups.iter().enumerate() {
            if let Some(group) = groups.get(i + AHEAD) {
                ask(group);
            }
            let slot = &mut loaded[i % NEAR];
            answers |= u64::from(hold(group, slot)) << (i % 8 * 8);
            // SAFETY: as above.
            unsafe { lines.load(&places[(i + NEAR) % (2 * NEAR)], slot) };
            if let Some(group) = groups.get(i + 2 * NEAR) {
                places[i % (2 * NEAR)] = words(group);
            }
            if i % 8 == 7 {
                found[i / 8] = answers;
                answers = 0;
            }
        }
    }
    each_rest(hashes.len(), rest, answers, found, one);
}

/// Inserts by groups, in order. An instruction set supplies three functions for a group: the
/// `blocks` of its hashes, the `words` of the target that each hash touches, and their `masks`.
/// Hashes that do not fill a group go `one` by one.
#[inline(always)]
pub(super) fn insert<const W: usize, T: Target>(
    target: &mut T,
    hashes: &[u64],
    changed: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    words: impl Fn(&Group) -> [Group; W],
    masks: impl Fn(&Group, &mut [Group; W]),
    one: impl Fn(&mut T, u64) -> bool,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), changed.len());
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let cached = is_cached(target.bytes());
    let ask = |target: &T, group: &Group, purpose| {
        if !cached {
            for block in blocks(group) {
                target.prefetch(block as usize, purpose);
            }
        }
    };
    for group in groups.iter().take(AHEAD - NEAR) {
        ask(target, group, Purpose::Later);
    }
    ask_rest(target, rest, Purpose::Write);
    let mut answers = 0;
    // As in `contains`: stored, and read several groups later.
    let mut places = [([[0; GROUP]; W], [[0; GROUP]; W]); NEAR];
    for turn in 0..groups.len() + NEAR {
        let slot = &mut places[turn % NEAR];
        if let Some(i) = turn.checked_sub(NEAR) {
            let mut changes = 0;
            for hash in 0..GROUP {
                changes |= u64::from(target.set_in_group(&slot.0, &slot.1, hash)) << hash;
            }
            answers |= changes << (i % 8 * 8);
            if i % 8 == 7 {
                changed[i / 8] = answers;
                answers = 0;
            }
        }
        if let Some(group) = groups.get(turn) {
            ask(target, group, Purpose::Write);
            slot.0 = words(group);
            masks(group, &mut slot.1);
        }
        if let Some(group) = groups.get(turn + AHEAD - NEAR) {
            ask(target, group, Purpose::Later);
        }
    }
    each_rest(hashes.len(), rest, answers, changed, |hash| one(target, hash));
}

/// Asks for the lines of the last hashes.
#[inline(always)]
fn ask_rest(target: &impl Probed, rest: &[u64], purpose: Purpose) {
    if !is_cached(target.bytes()) {
        for &hash in rest {
            target.prefetch(block(hash, target.blocks()), purpose);
        }
    }
}

/// Calls `one` for each of the last hashes of `len`, and writes the last word of the bitmap, of
/// which `answers` has the bits before theirs.
#[inline(always)]
fn each_rest(len: usize, rest: &[u64], mut answers: u64, bitmap: &mut [u64], mut one: impl FnMut(u64) -> bool) {
    for (i, &hash) in (len - rest.len()..).zip(rest) {
        answers |= u64::from(one(hash)) << (i % 64);
    }
    if !len.is_multiple_of(64) {
        bitmap[len / 64] = answers;
    }
}
