//! The pipelines of `plain.rs` by groups of keys, for instruction sets with vectors. An
//! instruction set's file calls them, and supplies the operations on a group, twins of each other:
//!
//! - `places` writes the first word of each hash's sector, among the words of `count` blocks, a
//!   number below 2^32, and the product of each hash.
//! - `hold` returns a bit for each hash: whether its sector holds all bits of its pattern. Its
//!   caller promises that `places` wrote the sectors and products, and that the words are there.
//! - `masks` writes the mask of each hash in each word of its sector, from the products.
//!
//! A pipeline finds the places of keys and prefetches their lines; later it works on these places.
//! So the lines of many keys are under way together, and a place is read long after it was stored.
//! `plan.rs` says how many keys the first part is ahead, and which of two forms it has:
//!
//! - By tiles: three loops over 64 keys. In the caches nothing waits, and long loops of one kind
//!   are faster.
//! - By groups, beyond the caches: the lines of a group are prefetched between the work on two
//!   earlier ones. Those of a tile at once would wait for room for that many misses.

use crate::geometry::layout::LINE_WORDS;
use crate::kernel::plan::{AccessPlan, GROUP, MOST_AHEAD, TILE};
use crate::words::bits::{Hint, Insertable, Prefetchable};
use core::mem::MaybeUninit;
use core::ptr;

pub(super) type Group = [u64; GROUP];

/// Groups of a tile.
pub(super) const TILE_GROUPS: usize = TILE / GROUP;

const RING_TILES: usize = MOST_AHEAD + 1;
const RING: usize = RING_TILES * TILE_GROUPS;

/// A place for a group, written before it is read. (Clearing would take longer than a few lookups.)
pub(super) type Slot = MaybeUninit<Group>;

/// The sectors of a group's hashes, by the numbers of their first words in the filter, and the
/// products of the hashes. It begins a line of the cache, as `Scratch`: vectors that lie across two
/// lines take longer.
#[repr(align(64))]
pub(super) struct Places {
    pub(super) sectors: Slot,
    pub(super) products: Slot,
}

impl Places {
    const NONE: Self = Self {
        sectors: Slot::uninit(),
        products: Slot::uninit(),
    };

    /// The sectors and the products.
    ///
    /// # Safety
    ///
    /// Both were written.
    #[inline(always)]
    pub(super) unsafe fn written(&self) -> (&Group, &Group) {
        // SAFETY: as promised.
        unsafe { (self.sectors.assume_init_ref(), self.products.assume_init_ref()) }
    }
}

/// The group that begins with hash `start`, or the last whole one.
///
/// # Panics
///
/// If there are fewer hashes than a group has.
#[inline(always)]
fn group_at(hashes: &[u64], start: usize) -> &Group {
    let start = start.min(hashes.len() - GROUP);
    hashes[start..][..GROUP].try_into().expect("it is a group's length")
}

/// Prefetches the lines of a group.
///
/// # Safety
///
/// The places were written.
#[inline(always)]
unsafe fn prefetch(target: &impl Prefetchable, places: &Places, hint: Option<Hint>) {
    let Some(hint) = hint else { return };
    // SAFETY: as promised.
    let (sectors, _) = unsafe { places.written() };
    for &word in sectors {
        target.prefetch(word as usize / LINE_WORDS, hint);
    }
}

/// Inserts by groups, in order. (`hold` may be 0 for any group.)
///
/// # Safety
///
/// `places` writes both slots; `masks` writes all its slots.
#[inline(always)]
pub(super) unsafe fn insert<const W: usize, const TURN: usize, T: Insertable>(
    target: &mut T,
    access: AccessPlan,
    hashes: &[u64],
    changed: &mut [u64],
    places: impl Fn(&Group, &mut Places),
    hold: impl Fn(&Places) -> u8,
    masks: impl Fn(&Group, &mut [Slot; W]),
) {
    let mut new = false;
    let work = |target: &mut T, places: &Places| {
        // Where keys are new one after another, they are not looked up first.
        let mut missing = if new { u8::MAX } else { !hold(places) };
        let mut changes = 0;
        if missing != 0 {
            let mut slots = [Slot::uninit(); W];
            // SAFETY: as promised.
            let (sectors, products) = unsafe { places.written() };
            masks(products, &mut slots);
            // SAFETY: `masks` has written them. `MaybeUninit` has the layout of what is in it.
            let by_word = unsafe { &*ptr::from_ref(&slots).cast::<[Group; W]>() };
            while missing != 0 {
                let hash = missing.trailing_zeros() as usize;
                let mut masks = [0; W];
                for word in 0..W {
                    masks[word] = by_word[word][hash];
                }
                changes |= u8::from(target.set(sectors[hash] as usize, masks)) << hash;
                missing &= missing - 1;
            }
        }
        new = changes == u8::MAX;
        changes
    };
    // SAFETY: as promised.
    unsafe { run::<TURN, _>(target, access, hashes, changed, places, work) };
}

/// Calls `places` for every group, and later `work`, which returns one bit a hash: `TURN` groups
/// of each in turn, 1 or [`TILE_GROUPS`]. For lookups, `work` is `hold`.
///
/// (With that number as data AVX2's part is 16 KiB smaller, and batches beyond the caches take 1.05
/// to 1.2 times as long. If both forms share a function that adds the patterns of missing hashes,
/// it is 4 KiB less, and inserts take up to 1.05 times as long.)
///
/// The last group is whole too: it repeats hashes of the group before.
///
/// # Panics
///
/// If there are fewer hashes than a group has.
///
/// # Safety
///
/// `places` writes both slots.
#[inline(always)]
pub(super) unsafe fn run<const TURN: usize, T: Prefetchable>(
    target: &mut T,
    access: AccessPlan,
    hashes: &[u64],
    answers: &mut [u64],
    places: impl Fn(&Group, &mut Places),
    mut work: impl FnMut(&mut T, &Places) -> u8,
) {
    assert!(hashes.len() >= GROUP);
    debug_assert_eq!(hashes.len().div_ceil(TILE), answers.len());
    let groups = hashes.len().div_ceil(GROUP);
    let ahead = if TURN == 1 {
        access.groups_ahead
    } else {
        access.ahead * TILE_GROUPS
    };
    let ahead = groups.next_multiple_of(TURN).min(ahead);
    let next = |slot| if slot + TURN == RING { 0 } else { slot + TURN };
    let mut ring = [const { Places::NONE }; RING];
    let (mut placed_in, mut worked_in, mut word, mut last) = (0, 0, 0, 0);
    let mut start = 0;
    while start < groups + ahead {
        if start < groups {
            let slots = &mut ring[placed_in..][..TURN.min(groups - start)];
            for (i, slot) in slots.iter_mut().enumerate() {
                places(group_at(hashes, GROUP * (start + i)), slot);
            }
            // A line is prefetched to be written only after new keys. Else threads that insert the
            // same keys would take its lines from each other: on 16 cores, known keys by all of
            // them took 5 times as long. A line that no other core has can be written either way.
            let hint = match access.hint {
                Some(Hint::L1Write) if last == 0 => Some(Hint::L1),
                hint => hint,
            };
            // A loop of its own: the numbers come from memory, where they were stored.
            if hint.is_some() {
                for slot in slots {
                    // SAFETY: as promised.
                    unsafe { prefetch(target, slot, hint) };
                }
            }
            placed_in = next(placed_in);
        }
        if let Some(start) = start.checked_sub(ahead) {
            let slots = &ring[worked_in..][..TURN.min(groups - start)];
            for slot in slots {
                last = work(target, slot);
                word = word >> GROUP | u64::from(last) << (TILE - GROUP);
            }
            worked_in = next(worked_in);
            let end = start + slots.len();
            if end % TILE_GROUPS == 0 || end == groups {
                let tile = start / TILE_GROUPS;
                answers[tile] = placed(word, hashes.len() - TILE * tile);
            }
        }
        start += TURN;
    }
}

/// The word of a bitmap, given the answers of its groups in the highest bits. From it on, `left`
/// hashes are left.
#[inline(always)]
fn placed(answers: u64, left: usize) -> u64 {
    if left >= TILE {
        return answers;
    }
    // The last group begins before its place, to end with the last hash.
    let end = left.next_multiple_of(GROUP);
    let (answers, last) = (answers >> (TILE - end), end - GROUP);
    let before = answers & !(u64::MAX << last);
    before | answers >> last >> (end - left) << last
}
