//! Lookups and inserts of hashes in blocks, for every instruction set. `engine.rs` calls it.
//!
//! `block.rs` is the specification. The vectors of `x86_64.rs` make a mask by one multiplication
//! for all eight words, and test it against the block at once.

#[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
mod aarch64;
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
mod x86_64;

use super::block::{Block, block_index, each_block, holds, insert_all_mut, mask};
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AccessPlan, AtomicU64, Bits};

/// An instruction set that this CPU has. [`Level::all`] makes it, and one of AVX-512 makes that of
/// AVX2, which `has_avx512` asks for too.
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
            (Set::Avx512, x86_64::has_avx512()),
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
            // SAFETY: `all` gives this level, and that of AVX-512, to a CPU that has AVX2.
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

    /// Sets the bits of a hash; returns whether this call set any of them.
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
            _ => Bits::set_four(block, mask(hash)),
        }
    }

    /// Inserts hashes by plain stores; returns how many changed a block.
    pub(super) fn insert_all_mut(self, blocks: &mut [Block<u64>], access: AccessPlan, hashes: &[u64]) -> usize {
        match self.0 {
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::insert_all_mut_avx2(blocks, access, hashes) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // `has_avx512` asks for AVX2 too.
            Set::Avx512 => Self(Set::Avx2).insert_all_mut(blocks, access, hashes),
            _ => insert_all_mut(blocks, access, hashes, mask),
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
            Set::Plain => each_block(blocks, access, hashes, each, |block, hash| {
                Bits::set_four(block, mask(hash))
            }),
            #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
            // SAFETY: as in `contains`.
            Set::Avx2 => unsafe { x86_64::insert_each_avx2(blocks, access, hashes, each) },
            #[cfg(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom)))]
            // `has_avx512` asks for AVX2 too.
            Set::Avx512 => Self(Set::Avx2).insert_each(blocks, access, hashes, each),
            #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
            Set::Neon => each_block(blocks, access, hashes, each, aarch64::insert),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitblock::block::{BLOCK_BYTES, SALTS};
    use alloc::vec::Vec;
    use lanebloom_tests::number;

    fn hashes(seed: u64, count: usize) -> Vec<u64> {
        (0..count as u64).map(|i| number(seed << 32 | i)).collect()
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
        assert!(AccessPlan::lookups(large * BLOCK_BYTES, 1).hint().is_some());
        for (count, keys) in [(1, 9), (3, 40), (1000, 12_000), (large, 40_000)] {
            let model = Bits::new(count.div_ceil(2)).unwrap();
            let blocks = &model.fours()[..count];
            let inserted = hashes(2, keys);
            let changed: Vec<bool> = inserted
                .iter()
                .map(|hash| Bits::set_four(&blocks[block_index(*hash, count)], mask(*hash)))
                .collect();
            let asked: Vec<u64> = inserted.iter().copied().chain(hashes(3, keys)).collect();
            let found: Vec<bool> = asked
                .iter()
                .map(|hash| holds(&blocks[block_index(*hash, count)], *hash))
                .collect();
            assert!(found[..keys].iter().all(|found| *found));
            assert!(count == 1 || found[keys..].iter().any(|found| !*found));
            let bytes = count * BLOCK_BYTES;
            for level in Level::all() {
                for single in [true, false] {
                    let bits = Bits::new(count.div_ceil(2)).unwrap();
                    let ours = &bits.fours()[..count];
                    let mut new = alloc::vec![false; keys];
                    if single {
                        for (new, hash) in new.iter_mut().zip(&inserted) {
                            *new = level.insert(ours, *hash);
                        }
                    } else {
                        let mut start = 0;
                        for len in (0..).map(|i| i % 200) {
                            let len = len.min(keys - start);
                            let part = &inserted[start..start + len];
                            level.insert_each(ours, AccessPlan::changes(bytes, 1), part, &mut |at, len, bitmap| {
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
                let access = AccessPlan::changes(bytes, 1);
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
                    let access = AccessPlan::lookups(bytes, 1);
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
                    let access = AccessPlan::lookups(BLOCK_BYTES, 1);
                    level.contains_each(&as_bytes(block), access, &[hash; 64], &mut |_, _, found| {
                        answers |= found
                    });
                    assert_eq!(answers, 0, "{level:?} {bit}");
                }
            }
        }
    }

    /// Threads that insert into the same words lose no bit of each other, call by call and in
    /// batches.
    #[cfg(all(feature = "std", not(lanebloom_loom)))]
    #[test]
    fn racing_inserts_lose_no_bit() {
        use std::sync::Barrier;
        use std::thread;

        const THREADS: usize = 4;
        for level in Level::all() {
            for round in 0..300 {
                let bits = Bits::new(1).unwrap();
                let start = Barrier::new(THREADS);
                let parts = [0, 1, 2, 3].map(|thread| hashes(1000 * round + thread, 24));
                thread::scope(|scope| {
                    for (i, part) in parts.iter().enumerate() {
                        let (start, blocks) = (&start, &bits.fours()[..2]);
                        scope.spawn(move || {
                            start.wait();
                            if i % 2 == 0 {
                                for hash in part {
                                    level.insert(blocks, *hash);
                                }
                            } else {
                                level.insert_each(blocks, AccessPlan::changes(BLOCK_BYTES, 1), part, &mut |_, _, _| ());
                            }
                        });
                    }
                });
                let blocks = &bits.fours()[..2];
                let mut expected = [[0; 4]; 2];
                for hash in parts.iter().flatten() {
                    let block = &mut expected[block_index(*hash, 2)];
                    block.iter_mut().zip(mask(*hash)).for_each(|(word, mask)| *word |= mask);
                }
                let words = blocks.iter().map(|block| [0, 1, 2, 3].map(|i| Load::load(&block[i])));
                assert!(words.eq(expected), "{level:?}, round {round}");
            }
        }
    }
}
