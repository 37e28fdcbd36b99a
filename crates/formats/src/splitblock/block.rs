//! A block of a split-block filter: which one a hash has, which bits, and the loops over the blocks
//! of many hashes. The specification, from Parquet's BloomFilter.md.

use lanebloom::internal::Prefetching;
use lanebloom::internal::bounds::Load;

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

/// The number of the block that has the bits of a hash, in a filter of this number of blocks. Block
/// `i` begins at byte `32 * i` of the bitset.
///
/// ```
/// use lanebloom_formats::splitblock::block_index;
///
/// assert_eq!(block_index(0, 10), 0);
/// assert_eq!(block_index(u64::MAX, 10), 9);
/// ```
#[inline(always)]
#[must_use]
pub fn block_index(hash: u64, blocks: usize) -> usize {
    // The hash's upper half, scaled to the number of blocks.
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

/// The loop of a batch: `work` returns the results of a tile of blocks and their hashes.
#[inline(always)]
pub(super) fn each_tile<T: Load>(
    blocks: &[Block<T>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
    work: impl Fn(&[u32], &[u64]) -> u64,
) {
    prefetching.tiles(
        &mut (),
        hashes,
        |(), _, hash| block_index(*hash, blocks.len()) as u32,
        |(), _, _, block, hint| hint.prefetch(blocks.as_ptr().wrapping_add(*block as usize)),
        |(), start, places| {
            each(start, places.len(), work(places, &hashes[start..][..places.len()]));
            true
        },
    );
}

/// The loop of a batch of inserts by plain stores.
#[inline(always)]
pub(super) fn insert_all_mut(
    blocks: &mut [Block<u64>],
    prefetching: Prefetching,
    hashes: &[u64],
    mask: impl Fn(u64) -> Block<u64>,
) -> usize {
    let (count, mut changed) = (blocks.len(), 0);
    prefetching.tiles(
        blocks,
        hashes,
        |_, _, hash| block_index(*hash, count) as u32,
        |blocks, _, _, block, hint| hint.prefetch(blocks.as_ptr().wrapping_add(*block as usize)),
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
pub(super) fn each_block<T: Load>(
    blocks: &[Block<T>],
    prefetching: Prefetching,
    hashes: &[u64],
    each: &mut dyn FnMut(usize, usize, u64),
    work: impl Fn(&Block<T>, u64) -> bool,
) {
    each_tile(blocks, prefetching, hashes, each, |places, hashes| {
        Prefetching::answers(
            places
                .iter()
                .zip(hashes)
                .map(|(block, hash)| work(&blocks[*block as usize], *hash)),
        )
    });
}
