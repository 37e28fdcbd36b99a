//! Lookups and inserts of hashes in blocks, for every instruction set. `engine.rs` calls it.
//!
//! `block.rs` is the specification. The vectors of `x86_64.rs` make a mask by one multiplication
//! for all eight words, and test it against the block at once.

#[cfg(lanebloom_aarch64)]
mod aarch64;
#[cfg(lanebloom_x86_64)]
mod x86_64;

use super::block::{self, Block, block_index, each_block, mask};
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{AtomicU64, Bits, Isa, Level, Prefetching};

/// Whether the block of the hash has all its bits. There is at least one block.
#[inline(always)]
pub(super) fn contains<T: Load>(isa: Isa, blocks: &[Block<T>], hash: u64) -> bool {
    let block = &blocks[block_index(hash, blocks.len())];
    match isa.level() {
        Level::Plain => block::holds(block, hash),
        // SAFETY: the `Isa` proves that the CPU has its level.
        #[cfg(lanebloom_x86_64)]
        Level::Avx2 => unsafe { x86_64::holds(block, hash) },
        // SAFETY: as above.
        #[cfg(lanebloom_avx512)]
        Level::Avx512 => unsafe { x86_64::avx512::holds(block, hash) },
        #[cfg(lanebloom_aarch64)]
        Level::Neon => aarch64::holds(block, hash),
    }
}

/// Looks hashes up. Calls `each(start, len, bitmap)` for every tile.
pub(super) fn contains_each<T: Load>(
    isa: Isa,
    blocks: &[Block<T>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    match isa.level() {
        Level::Plain => each_block(blocks, prefetching, hashes, each, block::holds),
        // SAFETY: as in `contains`.
        #[cfg(lanebloom_x86_64)]
        Level::Avx2 => unsafe { x86_64::contains_each(blocks, prefetching, hashes, each) },
        // SAFETY: as in `contains`.
        #[cfg(lanebloom_avx512)]
        Level::Avx512 => unsafe { x86_64::avx512::contains_each(blocks, prefetching, hashes, each) },
        #[cfg(lanebloom_aarch64)]
        Level::Neon => each_block(blocks, prefetching, hashes, each, aarch64::holds),
    }
}

/// Sets the bits of a hash; returns whether this call set any of them.
#[inline(always)]
pub(super) fn insert(isa: Isa, blocks: &[Block<AtomicU64>], hash: u64) -> bool {
    if contains(isa, blocks, hash) {
        return false;
    }
    let block = &blocks[block_index(hash, blocks.len())];
    #[cfg(lanebloom_x86_64)]
    if isa.level() != Level::Plain {
        // SAFETY: as in `contains`. Every other level has what AVX2's has.
        return unsafe { x86_64::set(block, mask(hash)) };
    }
    Bits::set_four(block, mask(hash))
}

/// Inserts hashes by plain stores; returns how many changed a block.
#[cfg_attr(not(lanebloom_x86_64), expect(unused_variables, reason = "the same for each level"))]
pub(super) fn insert_all_mut(isa: Isa, blocks: &mut [Block<u64>], prefetching: Prefetching, hashes: &[u64]) -> usize {
    #[cfg(lanebloom_x86_64)]
    if isa.level() != Level::Plain {
        // SAFETY: as in `insert`.
        return unsafe { x86_64::insert_all_mut(blocks, prefetching, hashes) };
    }
    block::insert_all_mut(blocks, prefetching, hashes, mask)
}

/// Inserts hashes. Calls `each(start, len, bitmap)` for every tile, with the bitmap of the hashes
/// that changed a block.
pub(super) fn insert_each(
    isa: Isa,
    blocks: &[Block<AtomicU64>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
) {
    match isa.level() {
        Level::Plain => each_block(blocks, prefetching, hashes, each, |block, hash| {
            Bits::set_four(block, mask(hash))
        }),
        // SAFETY: as in `insert`.
        #[cfg(lanebloom_x86_64)]
        _ => unsafe { x86_64::insert_each(blocks, prefetching, hashes, each) },
        #[cfg(lanebloom_aarch64)]
        Level::Neon => each_block(blocks, prefetching, hashes, each, aarch64::insert),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitblock::block::{BLOCK_BYTES, holds};
    use alloc::vec::Vec;
    use lanebloom::internal::instruction_sets;
    use lanebloom_tests::number;

    fn hashes(seed: u64, count: usize) -> Vec<u64> {
        (0..count as u64).map(|i| number(seed << 32 | i)).collect()
    }

    /// Every level gives the answers of the specification, by single calls and by batches of any
    /// length, for filters of one block, of an odd number, and larger than the caches' limit.
    #[test]
    fn all_levels_agree() {
        let large = (4 << 20) / BLOCK_BYTES;
        assert!(Prefetching::lookups(large * BLOCK_BYTES, 1).hint().is_some());
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
            let (lookups, changes) = (Prefetching::lookups(bytes, 1), Prefetching::changes(bytes, 1));
            for isa in instruction_sets() {
                for single in [true, false] {
                    let bits = Bits::new(count.div_ceil(2)).unwrap();
                    let ours = &bits.fours()[..count];
                    let mut new = alloc::vec![false; keys];
                    if single {
                        for (new, hash) in new.iter_mut().zip(&inserted) {
                            *new = insert(isa, ours, *hash);
                        }
                    } else {
                        let mut start = 0;
                        for len in (0..).map(|i| i % 200) {
                            let len = len.min(keys - start);
                            let part = &inserted[start..start + len];
                            insert_each(isa, ours, changes, part, &mut |at, len, bitmap| {
                                assert!(len == 64 || bitmap >> len == 0);
                                (0..len).for_each(|i| new[start + at + i] = bitmap >> i & 1 == 1);
                            });
                            start += len;
                            if start == keys {
                                break;
                            }
                        }
                    }
                    assert!(new == changed, "{isa}");
                    assert!(bits.words().eq(model.words()), "{isa}");
                }
                let mut own = alloc::vec![[0; 4]; count];
                let (first, rest) = inserted.split_at(keys / 3);
                let new = insert_all_mut(isa, &mut own, changes, first) + insert_all_mut(isa, &mut own, changes, rest);
                assert_eq!(new, changed.iter().filter(|changed| **changed).count(), "{isa}");
                assert!(
                    own.iter()
                        .flatten()
                        .eq(model.words().flatten().collect::<Vec<_>>().iter().take(4 * count))
                );
                for (hash, found) in asked.iter().zip(&found) {
                    assert_eq!(contains(isa, blocks, *hash), *found, "{isa} {hash:#x}");
                }
                for len in (0..150).chain([asked.len()]).filter(|len| *len <= asked.len()) {
                    let mut answers = Vec::new();
                    let part = &asked[asked.len() - len..];
                    contains_each(isa, blocks, lookups, part, &mut |at, len, bitmap| {
                        assert_eq!(at, answers.len());
                        assert!(len == 64 || bitmap >> len == 0);
                        answers.extend((0..len).map(|i| bitmap >> i & 1 == 1));
                    });
                    assert!(answers == found[asked.len() - len..], "{isa}");
                }
            }
        }
    }

    /// A block lacks a hash if it lacks any one of its eight bits.
    #[test]
    fn each_bit_counts() {
        for isa in instruction_sets() {
            for hash in hashes(4, 100) {
                let full = mask(hash);
                let as_bytes = |block: [u64; 4]| [block.map(u64::to_le_bytes)];
                assert!(contains(isa, &as_bytes(full), hash), "{isa}");
                for bit in (0..256).filter(|bit| full[bit / 64] >> (bit % 64) & 1 == 1) {
                    let mut block = [u64::MAX; 4];
                    block[bit / 64] ^= 1 << (bit % 64);
                    assert!(!contains(isa, &as_bytes(block), hash), "{isa} {bit}");
                    let mut answers = 0;
                    let prefetching = Prefetching::lookups(BLOCK_BYTES, 1);
                    contains_each(isa, &as_bytes(block), prefetching, &[hash; 64], &mut |_, _, found| {
                        answers |= found
                    });
                    assert_eq!(answers, 0, "{isa} {bit}");
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
        for isa in instruction_sets() {
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
                                    insert(isa, blocks, *hash);
                                }
                            } else {
                                let changes = Prefetching::changes(BLOCK_BYTES, 1);
                                insert_each(isa, blocks, changes, part, &mut |_, _, _| ());
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
                assert!(words.eq(expected), "{isa}, round {round}");
            }
        }
    }
}
