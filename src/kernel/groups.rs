//! The pipelines of `scalar.rs` by groups of keys, for instruction sets with vectors. They load
//! words from the filter one by one, as atomics, into arrays that this thread owns. An instruction
//! set's file calls them, and supplies the operations on a group.

use crate::bits::{Lines, Load, Probed, Purpose, Target, is_cached};
use core::mem::MaybeUninit;
use core::ptr;

/// Hashes of a group: as many as the widest vectors hold. The kernels take no fewer.
pub(super) const GROUP: usize = 8;
pub(super) type Group = [u64; GROUP];

/// How many groups ahead lines are prefetched from memory into L2: 192 keys. `scalar.rs` has the
/// reason.
const AHEAD: usize = 24;
/// How many groups ahead words are loaded for a test, and lines brought into L1 for a write: far
/// enough for L2 and the nearer part of L3.
const NEAR: usize = 4;

/// A place for a group, written before it is read. (Clearing the rings would take longer than a few
/// lookups.)
pub(super) type Slot = MaybeUninit<Group>;
const NONE: Slot = Slot::uninit();

/// # Safety
///
/// All were written.
#[inline(always)]
unsafe fn written<const W: usize>(slots: &[Slot; W]) -> &[Group; W] {
    // SAFETY: `MaybeUninit` has the layout of what is in it.
    unsafe { &*ptr::from_ref(slots).cast() }
}

/// Lookups by groups. An instruction set supplies three functions for a group: the `blocks` of its
/// hashes, their `places`, and whether the loaded words `hold` the patterns, one bit a hash.
///
/// # Safety
///
/// `places` writes the words of every place, each below 8 times the number of `lines`, and the
/// products if `hold` reads them.
#[inline(always)]
pub(super) unsafe fn contains<const W: usize, T: Load>(
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    places: impl Fn(&Group, &mut Slot, &mut [Slot; W]),
    hold: impl Fn(&Group, &Slot, &[Group; W]) -> u8,
) {
    debug_assert_eq!(hashes.len().div_ceil(64), found.len());
    let groups = Groups::of(hashes);
    let cached = is_cached(lines.bytes());
    for group in 0..groups.len().min(if cached { 0 } else { AHEAD }) {
        ask(&lines, groups, group, &blocks, Purpose::Later);
    }
    // Rings: the places of the groups to come, and the words loaded from them. Each entry is read
    // several groups after it was stored: so the loads of many keys are under way together, and no
    // read waits for a store in flight.
    let mut products = [NONE; 2 * NEAR];
    let mut words = [[NONE; W]; 2 * NEAR];
    let mut loaded = [[NONE; W]; 2 * NEAR];
    let mut answers = 0;
    // Each step stands in one place: the compiler inlines only functions with one caller.
    for turn in 0..groups.len() + 2 * NEAR {
        let (slot, near_slot) = (turn % (2 * NEAR), (turn + NEAR) % (2 * NEAR));
        if let Some(group) = turn.checked_sub(2 * NEAR) {
            if !cached {
                ask(&lines, groups, group + AHEAD, &blocks, Purpose::Later);
            }
            // SAFETY: `lines.load` wrote them for this group, `NEAR` turns ago.
            let hold = hold(groups.at(group), &products[slot], unsafe { written(&loaded[slot]) });
            answers = answers >> GROUP | u64::from(hold) << (64 - GROUP);
            if group % 8 == 7 {
                found[group / 8] = answers;
            }
        }
        // A group that is not there yet has a number beyond the last.
        if turn.wrapping_sub(NEAR) < groups.len() {
            // SAFETY: `places` wrote them for this group, `NEAR` turns ago. By the caller's promise
            // they are words of the filter.
            unsafe { lines.load(written(&words[near_slot]), &mut loaded[near_slot]) };
        }
        if turn < groups.len() {
            places(groups.at(turn), &mut products[slot], &mut words[slot]);
        }
    }
    groups.finish(answers, found);
}

/// Prefetches the lines of a group, if there is one.
#[inline(always)]
fn ask(target: &impl Probed, groups: Groups<'_>, group: usize, blocks: &impl Fn(&Group) -> Group, purpose: Purpose) {
    if group < groups.len() {
        for block in blocks(groups.at(group)) {
            target.prefetch(block as usize, purpose);
        }
    }
}

/// Inserts by groups, in order. An instruction set supplies three functions for a group: the
/// `blocks` of its hashes, their `places` in the target, and their `masks`.
///
/// # Safety
///
/// `places` writes the words of every place, and the products if `masks` reads them; `masks` writes
/// all its slots.
#[inline(always)]
pub(super) unsafe fn insert<const W: usize, T: Target>(
    target: &mut T,
    hashes: &[u64],
    changed: &mut [u64],
    blocks: impl Fn(&Group) -> Group,
    places: impl Fn(&Group, &mut Slot, &mut [Slot; W]),
    masks: impl Fn(&Group, &Slot, &mut [Slot; W]),
) {
    debug_assert_eq!(hashes.len().div_ceil(64), changed.len());
    let groups = Groups::of(hashes);
    let cached = is_cached(target.bytes());
    for group in 0..groups.len().min(if cached { 0 } else { AHEAD - NEAR }) {
        ask(target, groups, group, &blocks, Purpose::Later);
    }
    // As in `contains`: stored, and read several groups later.
    let mut slots = [([NONE; W], [NONE; W]); NEAR];
    let mut answers = 0;
    for turn in 0..groups.len() + NEAR {
        let slot = &mut slots[turn % NEAR];
        if let Some(group) = turn.checked_sub(NEAR) {
            // SAFETY: `places` and `masks` wrote them for this group, `NEAR` turns ago.
            let (words, masks) = unsafe { (written(&slot.0), written(&slot.1)) };
            let mut changes = 0;
            for hash in 0..GROUP {
                changes |= u64::from(target.set_in_group(words, masks, hash)) << hash;
            }
            answers = answers >> GROUP | changes << (64 - GROUP);
            if group % 8 == 7 {
                changed[group / 8] = answers;
            }
        }
        if turn < groups.len() {
            if !cached {
                ask(target, groups, turn, &blocks, Purpose::Write);
                ask(target, groups, turn + AHEAD - NEAR, &blocks, Purpose::Later);
            }
            let mut products = NONE;
            places(groups.at(turn), &mut products, &mut slot.0);
            masks(groups.at(turn), &products, &mut slot.1);
        }
    }
    groups.finish(answers, changed);
}

/// Hashes as groups. The last group is whole too: it shares hashes with the group before.
#[derive(Clone, Copy)]
struct Groups<'a>(&'a [u64]);

impl<'a> Groups<'a> {
    /// # Panics
    ///
    /// If there are fewer hashes than a group has.
    #[inline(always)]
    fn of(hashes: &'a [u64]) -> Self {
        assert!(hashes.len() >= GROUP);
        Self(hashes)
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.0.len().div_ceil(GROUP)
    }

    #[inline(always)]
    fn at(self, group: usize) -> &'a Group {
        let start = (GROUP * group).min(self.0.len() - GROUP);
        // SAFETY: there are `GROUP` hashes from there on, since `of` has seen that there are any.
        unsafe { &*self.0.as_ptr().add(start).cast() }
    }

    /// Writes the last word of the bitmap, if the hashes do not fill it. The highest bits of
    /// `answers` are the last group's.
    #[inline(always)]
    fn finish(self, answers: u64, bitmap: &mut [u64]) {
        let hashes = self.0.len() % 64;
        if hashes > 0 {
            let end = hashes.next_multiple_of(GROUP);
            let (answers, last) = (answers >> (64 - end), end - GROUP);
            let before = answers & !(u64::MAX << last);
            bitmap[self.0.len() / 64] = before | answers >> last >> (end - hashes) << last;
        }
    }
}
