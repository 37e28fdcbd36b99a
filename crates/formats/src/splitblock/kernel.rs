//! The work on blocks, for every instruction set: a hash and the blocks in, an answer out. Called by
//! `splitblock.rs`, `view.rs` and `batch.rs`.
//!
//! [`mask`] and [`block_index`] are the specification, from Parquet's BloomFilter.md. The vectors of
//! `x86_64.rs` make a mask by one multiplication for all eight words, and test it against the block
//! at once. They are twins: the same names, the same signatures.

#[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
mod aarch64;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod x86_64;

use super::xxh64;
use lanebloom::Funnel;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AccessPlan, AtomicU64, Short, answers, prefetch, set_four, tiles};

/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = 32;

/// A block: eight words of 32 bits, here two to a word of 64, the first one in the lower half.
pub(super) type Block<T> = [T; 4];

/// The multipliers that select the bit of each word. Source: Parquet's BloomFilter.md.
pub(super) const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The block of a hash: its upper half, scaled to the number of blocks.
#[inline(always)]
pub(super) fn block_index(hash: u64, blocks: usize) -> usize {
    ((hash >> 32).wrapping_mul(blocks as u64) >> 32) as usize
}

/// The bits of a hash in its block: one in each word of 32 bits, by the hash's lower half.
#[inline(always)]
pub(super) fn mask(hash: u64) -> Block<u64> {
    let bit = |salt: u32| 1_u64 << ((hash as u32).wrapping_mul(salt) >> 27);
    core::array::from_fn(|i| bit(SALTS[2 * i]) | bit(SALTS[2 * i + 1]) << 32)
}

/// Whether a block has all bits of a hash.
#[inline(always)]
pub(super) fn holds<T: Load>(block: &Block<T>, hash: u64) -> bool {
    let mask = mask(hash);
    let lacks = |i: usize| mask[i] & !block[i].load();
    lacks(0) | lacks(1) | lacks(2) | lacks(3) == 0
}

/// An instruction set that this CPU has: [`Level::all`] alone makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    Avx2,
    #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
    Avx512,
    #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
    Neon,
}

impl Level {
    /// All that this CPU has, the best last.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let sets = [
            (Set::Plain, true),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            (Set::Avx2, x86_64::has_avx2()),
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            (Set::Avx512, x86_64::avx512::detect()),
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            (Set::Neon, true),
        ];
        sets.into_iter().filter(|(_, there)| *there).map(|(set, _)| Self(set))
    }

    /// The best that this CPU has.
    pub(super) fn best() -> Self {
        Self::all().last().unwrap_or(Self(Set::Plain))
    }

    /// Whether the block of the hash has all its bits. There is at least one block.
    #[inline(always)]
    pub(super) fn contains<T: Load>(self, blocks: &[Block<T>], hash: u64) -> bool {
        let block = &blocks[block_index(hash, blocks.len())];
        match self.0 {
            Set::Plain => holds(block, hash),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: `all` gives this level to a CPU that has AVX2.
            Set::Avx2 => unsafe { x86_64::holds_avx2(block, hash) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // SAFETY: likewise with AVX-512.
            Set::Avx512 => unsafe { x86_64::avx512::holds(block, hash) },
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Set::Neon => aarch64::holds(block, hash),
        }
    }

    /// Looks hashes up. Calls `each(start, len, bitmap)` for every tile.
    pub(super) fn contains_each<T: Load>(
        self,
        blocks: &[Block<T>],
        access: AccessPlan,
        hashes: &[u64],
        each: &mut dyn FnMut(usize, usize, u64),
    ) {
        match self.0 {
            Set::Plain => each_block(blocks, access, hashes, each, holds),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::contains_each_avx2(blocks, access, hashes, each) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx512 => unsafe { x86_64::avx512::contains_each(blocks, access, hashes, each) },
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Set::Neon => each_block(blocks, access, hashes, each, aarch64::holds),
        }
    }

    /// Sets the bits of a hash; answers whether this call set any of them.
    #[inline(always)]
    pub(super) fn insert(self, blocks: &[Block<AtomicU64>], hash: u64) -> bool {
        if self.contains(blocks, hash) {
            return false;
        }
        let block = &blocks[block_index(hash, blocks.len())];
        match self.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::set(block, mask(hash)) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx512 => unsafe { x86_64::set(block, mask(hash)) },
            _ => set_four(block, mask(hash)),
        }
    }

    /// Inserts hashes by plain stores; returns how many changed a block.
    pub(super) fn insert_all_mut(self, blocks: &mut [Block<u64>], access: AccessPlan, hashes: &[u64]) -> usize {
        match self.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::insert_all_mut_avx2(blocks, access, hashes) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx512 => unsafe { x86_64::avx512::insert_all(blocks, access, hashes) },
            _ => insert_all_mut(blocks, access, hashes, mask),
        }
    }

    /// Hashes keys of a type, by vectors if it has 4 or 8 bytes.
    #[inline]
    pub(super) fn hash_batch<K: Funnel>(self, keys: &[K], out: &mut [u64]) {
        let take = |out: &mut [u64]| {
            for (out, key) in out.iter_mut().zip(keys) {
                *out = Short::of(key).bytes as u64;
            }
        };
        match (K::WIDTH, self.0) {
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            (Some(8), Set::Avx512) => {
                take(out);
                // SAFETY: as in `contains`.
                unsafe { x86_64::avx512::hash_eights(out) }
            }
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            (Some(4), Set::Avx512) => {
                take(out);
                // SAFETY: as in `contains`.
                unsafe { x86_64::avx512::hash_fours(out) }
            }
            (Some(8), _) => {
                take(out);
                xxh64::of_eights(out);
            }
            (Some(4), _) => {
                take(out);
                xxh64::of_fours(out);
            }
            _ => {
                for (out, key) in out.iter_mut().zip(keys) {
                    *out = xxh64::of_key(key);
                }
            }
        }
    }

    /// Inserts hashes. Calls `each(start, len, bitmap)` for every tile, with the bitmap of the
    /// hashes that changed a block.
    pub(super) fn insert_each(
        self,
        blocks: &[Block<AtomicU64>],
        access: AccessPlan,
        hashes: &[u64],
        each: &mut dyn FnMut(usize, usize, u64),
    ) {
        match self.0 {
            Set::Plain => each_block(blocks, access, hashes, each, |block, hash| set_four(block, mask(hash))),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::insert_each_avx2(blocks, access, hashes, each) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx512 => unsafe { x86_64::avx512::insert_each(blocks, access, hashes, each) },
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Set::Neon => each_block(blocks, access, hashes, each, aarch64::insert),
        }
    }
}

/// The loop of a batch: `work` gives the answers for a tile of blocks, with their hashes.
#[inline(always)]
fn each_tile<T: Load>(
    blocks: &[Block<T>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
    work: impl Fn(&[u32], &[u64]) -> u64,
) {
    tiles(
        &mut (),
        access,
        hashes,
        |(), _, hash| block_index(*hash, blocks.len()) as u32,
        |(), _, _, block, hint| prefetch(blocks.as_ptr().wrapping_add(*block as usize), hint),
        |(), start, places| {
            each(start, places.len(), work(places, &hashes[start..][..places.len()]));
            true
        },
    );
}

/// The loop of a batch of inserts by plain stores.
#[inline(always)]
fn insert_all_mut(
    blocks: &mut [Block<u64>],
    access: AccessPlan,
    hashes: &[u64],
    mask: impl Fn(u64) -> Block<u64>,
) -> usize {
    let (count, mut changed) = (blocks.len(), 0);
    tiles(
        blocks,
        access,
        hashes,
        |_, _, hash| block_index(*hash, count) as u32,
        |blocks, _, _, block, hint| prefetch(blocks.as_ptr().wrapping_add(*block as usize), hint),
        |blocks, start, places| {
            for (block, hash) in places.iter().zip(&hashes[start..]) {
                let (block, mask) = (&mut blocks[*block as usize], mask(*hash));
                let mut missing = 0;
                for (word, mask) in block.iter_mut().zip(mask) {
                    missing |= mask & !*word;
                    *word |= mask;
                }
                changed += usize::from(missing != 0);
            }
            true
        },
    );
    changed
}

/// [`each_tile`] that works on one hash after another.
#[inline(always)]
fn each_block<T: Load>(
    blocks: &[Block<T>],
    access: AccessPlan,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
    work: impl Fn(&Block<T>, u64) -> bool,
) {
    each_tile(blocks, access, hashes, each, |places, hashes| {
        answers(
            places
                .iter()
                .zip(hashes)
                .map(|(block, hash)| work(&blocks[*block as usize], *hash)),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lanebloom::internal::{Bits, is_cached};

    fn hashes(seed: u64, count: usize) -> Vec<u64> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        };
        (0..count).map(next).collect()
    }

    /// Parquet's own description, word by word.
    #[test]
    fn a_mask_has_a_bit_in_each_word() {
        for hash in hashes(1, 1000) {
            let words: Vec<u32> = mask(hash).iter().flat_map(|w| [*w as u32, (w >> 32) as u32]).collect();
            for (word, salt) in words.iter().zip(SALTS) {
                assert_eq!(*word, 1 << ((hash as u32).wrapping_mul(salt) >> 27));
            }
        }
    }

    /// Every level gives the answers of the specification, by single calls and by batches of any
    /// length, for filters of one block, of an odd number, and larger than the caches' limit.
    #[test]
    fn all_levels_agree() {
        let large = (4 << 20) / BLOCK_BYTES;
        assert!(!is_cached(large * BLOCK_BYTES));
        for (count, keys) in [(1, 9), (3, 40), (1000, 12_000), (large, 40_000)] {
            let model = Bits::new(count.div_ceil(2)).unwrap();
            let blocks = &model.fours()[..count];
            let inserted = hashes(2, keys);
            let changed: Vec<bool> = inserted
                .iter()
                .map(|hash| set_four(&blocks[block_index(*hash, count)], mask(*hash)))
                .collect();
            let asked: Vec<u64> = inserted.iter().copied().chain(hashes(3, keys)).collect();
            let found: Vec<bool> = asked
                .iter()
                .map(|hash| holds(&blocks[block_index(*hash, count)], *hash))
                .collect();
            assert!(found[..keys].iter().all(|found| *found));
            assert!(count == 1 || found[keys..].iter().any(|found| !*found));
            let cached = is_cached(count * BLOCK_BYTES);
            for level in Level::all() {
                for (single, batch) in [(true, false), (false, true)] {
                    let bits = Bits::new(count.div_ceil(2)).unwrap();
                    let ours = &bits.fours()[..count];
                    let mut new = alloc::vec![false; keys];
                    if single {
                        for (new, hash) in new.iter_mut().zip(&inserted) {
                            *new = level.insert(ours, *hash);
                        }
                    }
                    if batch {
                        let mut start = 0;
                        for len in (0..).map(|i| i % 200) {
                            let len = len.min(keys - start);
                            let part = &inserted[start..start + len];
                            level.insert_each(ours, AccessPlan::changes(cached, 1), part, &mut |at, len, bitmap| {
                                assert!(len == 64 || bitmap >> len == 0);
                                (0..len).for_each(|i| new[start + at + i] = bitmap >> i & 1 == 1);
                            });
                            start += len;
                            if start == keys {
                                break;
                            }
                        }
                    }
                    assert!(new == changed, "{level:?}");
                    assert!(bits.words().eq(model.words()), "{level:?}");
                }
                let mut own = alloc::vec![[0; 4]; count];
                let access = AccessPlan::changes(cached, 1);
                let (first, rest) = inserted.split_at(keys / 3);
                let new = level.insert_all_mut(&mut own, access, first) + level.insert_all_mut(&mut own, access, rest);
                assert_eq!(new, changed.iter().filter(|changed| **changed).count(), "{level:?}");
                assert!(
                    own.iter()
                        .flatten()
                        .eq(model.words().flatten().collect::<Vec<_>>().iter().take(4 * count))
                );
                for (hash, found) in asked.iter().zip(&found) {
                    assert_eq!(level.contains(blocks, *hash), *found, "{level:?} {hash:#x}");
                }
                for len in (0..150).chain([asked.len()]).filter(|len| *len <= asked.len()) {
                    let mut answers = Vec::new();
                    let access = AccessPlan::lookups(cached, 1);
                    level.contains_each(blocks, access, &asked[asked.len() - len..], &mut |at, len, bitmap| {
                        assert_eq!(at, answers.len());
                        assert!(len == 64 || bitmap >> len == 0);
                        answers.extend((0..len).map(|i| bitmap >> i & 1 == 1));
                    });
                    assert!(answers == found[asked.len() - len..], "{level:?}");
                }
            }
        }
    }

    /// A block lacks a hash if it lacks any one of its eight bits.
    #[test]
    fn each_bit_counts() {
        for level in Level::all() {
            for hash in hashes(4, 100) {
                let full = mask(hash);
                let as_bytes = |block: [u64; 4]| [block.map(u64::to_le_bytes)];
                assert!(level.contains(&as_bytes(full), hash), "{level:?}");
                for bit in (0..256).filter(|bit| full[bit / 64] >> (bit % 64) & 1 == 1) {
                    let mut block = [u64::MAX; 4];
                    block[bit / 64] ^= 1 << (bit % 64);
                    assert!(!level.contains(&as_bytes(block), hash), "{level:?} {bit}");
                    let mut answers = 0;
                    let access = AccessPlan::lookups(true, 1);
                    level.contains_each(&as_bytes(block), access, &[hash; 64], &mut |_, _, found| {
                        answers |= found
                    });
                    assert_eq!(answers, 0, "{level:?} {bit}");
                }
            }
        }
    }
}
