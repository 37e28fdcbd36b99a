//! The pipelines of `plain.rs` by groups of keys, for instruction sets with vectors: a file of each
//! has the operations on a group ([`Vectors`]). Its entries, functions with target features, call
//! the functions of this file, which have none and are inlined into them.
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
use crate::geometry::pattern::Pattern;
use crate::kernel::plain;
use crate::kernel::plan::{GROUP, MOST_AHEAD, Prefetching, TILE};
use crate::words::bits::{Hint, Insertable, Lines, Load, OwnedRange, Prefetchable};
use crate::words::sync::AtomicU64;
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

/// The operations of an instruction set on a group of keys, with sectors of `W` words. (`hold` and
/// `masks` have copies for each of their callers.)
///
/// # Safety
///
/// `places` writes both slots, and `masks` all of its slots. The caller of a function promises that
/// the CPU has the instruction set.
pub(super) unsafe trait Vectors {
    /// Writes the first word of each hash's sector, among the words of `count` blocks, a number
    /// below 2^32, and the product of each hash.
    unsafe fn places<const W: usize>(hashes: &Group, count: usize, places: &mut Places);

    /// Returns a bit for each hash: whether its sector holds all bits of its pattern.
    ///
    /// # Safety
    ///
    /// `places` wrote the sectors and products. The words are there, counted from `all` on.
    unsafe fn hold<const W: usize, const TURN: usize, const LOOKUP: bool, T: Load>(
        pattern: &Pattern,
        all: *const T,
        places: &Places,
    ) -> u8;

    /// Writes the mask of each hash in each word of its sector.
    unsafe fn masks<const W: usize, const TURN: usize, T>(products: &Group, pattern: &Pattern, into: &mut [Slot; W]);
}

/// Looks hashes up, at least a group.
///
/// # Safety
///
/// The CPU has the instruction set.
#[inline(always)]
pub(super) unsafe fn contains<V: Vectors, const W: usize, const TURN: usize, T: Load>(
    lines: Lines<'_, T>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    found: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<T>();
    // SAFETY: `places` wrote the products, and sectors of blocks below the number of lines, which
    // is below 2^32 (`Isa::for_blocks`). So they are words of `all`.
    let hold = |_: &mut _, at: &Places| unsafe { V::hold::<W, TURN, true, T>(pattern, all, at) };
    // SAFETY: as promised.
    unsafe { run::<V, W, TURN, _>(&mut { lines }, prefetching, hashes, found, hold) };
}

/// Inserts hashes, at least a group.
///
/// # Safety
///
/// The same as for [`contains`].
#[inline(always)]
pub(super) unsafe fn insert<V: Vectors, const W: usize, const TURN: usize>(
    mut lines: Lines<'_, AtomicU64>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    let all = lines.all().as_ptr().cast::<AtomicU64>();
    // SAFETY: as in `contains`.
    let hold = |at: &Places| unsafe { V::hold::<W, TURN, false, _>(pattern, all, at) };
    // SAFETY: as promised.
    unsafe { insert_into::<V, W, TURN, _>(&mut lines, pattern, prefetching, hashes, changed, hold) };
}

/// [`insert`] into words that this thread owns, of any number of hashes.
///
/// # Safety
///
/// The same as for [`contains`].
#[inline(always)]
pub(super) unsafe fn fill<V: Vectors, const W: usize>(
    region: &mut OwnedRange<'_>,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
) {
    if hashes.len() < GROUP {
        return plain::fill::<W>(region, pattern, prefetching, hashes, changed);
    }
    // SAFETY: as promised.
    unsafe { insert_into::<V, W, TILE_GROUPS, _>(region, pattern, prefetching, hashes, changed, |_| 0) };
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
/// The same as for [`contains`].
#[inline(always)]
unsafe fn insert_into<V: Vectors, const W: usize, const TURN: usize, T: Insertable>(
    target: &mut T,
    pattern: &Pattern,
    prefetching: Prefetching,
    hashes: &[u64],
    changed: &mut [u64],
    hold: impl Fn(&Places) -> u8,
) {
    let mut new = false;
    let work = |target: &mut T, places: &Places| {
        // Where keys are new one after another, they are not looked up first.
        let mut missing = if new { u8::MAX } else { !hold(places) };
        let mut changes = 0;
        if missing != 0 {
            let mut slots = [Slot::uninit(); W];
            // SAFETY: `V::places` wrote both.
            let (sectors, products) = unsafe { places.written() };
            // SAFETY: as promised. `masks` writes all slots, and `MaybeUninit` has the layout of
            // what is in it.
            let by_word = unsafe {
                V::masks::<W, TURN, T>(products, pattern, &mut slots);
                &*ptr::from_ref(&slots).cast::<[Group; W]>()
            };
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
    unsafe { run::<V, W, TURN, _>(target, prefetching, hashes, changed, work) };
}

/// Finds the places of every group, and later calls `work`, which returns one bit a hash: `TURN`
/// groups of each in turn, 1 or [`TILE_GROUPS`].
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
/// The same as for [`contains`].
#[inline(always)]
unsafe fn run<V: Vectors, const W: usize, const TURN: usize, T: Prefetchable>(
    target: &mut T,
    prefetching: Prefetching,
    hashes: &[u64],
    answers: &mut [u64],
    mut work: impl FnMut(&mut T, &Places) -> u8,
) {
    let count = target.blocks();
    assert!(hashes.len() >= GROUP);
    debug_assert_eq!(hashes.len().div_ceil(TILE), answers.len());
    let groups = hashes.len().div_ceil(GROUP);
    let ahead = if TURN == 1 {
        prefetching.groups_ahead
    } else {
        prefetching.ahead * TILE_GROUPS
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
                // SAFETY: as promised.
                unsafe { V::places::<W>(group_at(hashes, GROUP * (start + i)), count, slot) };
            }
            // A line is prefetched to be written only after new keys. Else threads that insert the
            // same keys would take its lines from each other: on 16 cores, known keys by all of
            // them took 5 times as long. A line that no other core has can be written either way.
            let hint = match prefetching.hint {
                Some(Hint::L1Write) if last == 0 => Some(Hint::L1),
                hint => hint,
            };
            // A loop of its own: the numbers come from memory, where they were stored.
            if hint.is_some() {
                for slot in slots {
                    // SAFETY: `V::places` wrote them.
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
