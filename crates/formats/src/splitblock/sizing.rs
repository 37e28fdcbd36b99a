//! The size of a split-block filter, from its number of keys and its false-positive rate.

use super::block::BLOCK_BYTES;
use crate::logarithm::{Twofold, ln, pow};
use lanebloom::internal::acquire_if;
use lanebloom::{BuildError, Statistics};

/// The largest bitset that Parquet's libraries write or read, in bytes: 128 MiB. A
/// [`SplitBlockBloom`](super::SplitBlockBloom) in memory may be larger.
pub const MAX_FORMAT_BYTES: usize = 128 << 20;

/// The most blocks: 32 bits number them.
pub(super) const MOST_BLOCKS: usize = if usize::BITS == 64 {
    u32::MAX as usize
} else {
    isize::MAX as usize / BLOCK_BYTES
};

/// The false-positive rate with this number of keys in a block on average.
///
/// The number of a block's keys has a Poisson distribution. After `j` keys, each of the eight words
/// has a given bit with the chance `1 - (31/32)^j`.
pub(super) fn rate(keys_per_block: f64) -> f64 {
    // Above 256 keys nearly all bits are set. Below, terms more than twelve standard deviations
    // away do not count.
    if keys_per_block > 256.0 {
        return 1.0;
    }
    let spread = 12.0 * ((keys_per_block as u64).isqrt() + 1) as f64;
    let first = (keys_per_block - spread).max(0.0) as u64;
    let last = (keys_per_block + spread) as u64;
    // The weights are relative to the first.
    let (mut weight, mut weights, mut sum) = (1.0, 0.0, 0.0);
    let mut clear = pow(31.0 / 32.0, first);
    for keys in first..=last {
        let set = 1.0 - clear;
        let four = set * set * set * set;
        weights += weight;
        sum += weight * four * four;
        weight *= keys_per_block / (keys + 1) as f64;
        clear *= 31.0 / 32.0;
    }
    sum / weights
}

/// The most keys per block, on average, that keep a rate.
fn keys_per_block(rate_wanted: f64) -> f64 {
    let (mut enough, mut too_many) = (0.0, 256.0);
    for _ in 0..64 {
        let middle = (enough + too_many) / 2.0;
        if rate(middle) <= rate_wanted {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    enough
}

/// The most keys with which this number of blocks keeps a rate.
pub(super) fn keys(blocks: usize, rate_wanted: f64) -> usize {
    (blocks as f64 * keys_per_block(rate_wanted)) as usize
}

/// The fewest blocks with which this number of keys keeps a rate.
pub(super) fn blocks(keys: usize, rate_wanted: f64) -> Result<usize, BuildError> {
    BuildError::check_rate(rate_wanted)?;
    let blocks = keys as f64 / keys_per_block(rate_wanted);
    if blocks >= MOST_BLOCKS as f64 {
        return Err(BuildError::too_large(keys, rate_wanted));
    }
    // Rounded up, as `f64::ceil` would.
    Ok((blocks as usize + usize::from(blocks > (blocks as usize) as f64)).max(1))
}

/// The bytes that parquet-java chooses: those of `-8 keys / ln(1 - rate^(1/8))` bits, raised to a
/// power of two.
///
/// parquet-java adds 255 bits and clears one bit of the sum, the 256, which does not make whole
/// blocks. So the size may be twice the size of the formula, or half of it: for 211 of 3,200 small
/// numbers of keys and rates. Arrow C++, parquet-rs and pymilvus omit this step.
pub(super) fn parquet_bytes(keys: usize, rate: f64) -> Result<usize, BuildError> {
    BuildError::check_rate(rate)?;
    // The eighth root by Newton's steps from above.
    let mut root = 1.0;
    for _ in 0..200 {
        let seventh = pow(root, 7);
        root -= (seventh * root - rate) / (8.0 * seventh);
    }
    let bits = -8.0 * keys as f64 / ln(Twofold::new(1.0 - root));
    let bits = bits.min(8.0 * MAX_FORMAT_BYTES as f64) as usize;
    let bytes = ((bits + 255) & !256) / 8;
    Ok(bytes.clamp(BLOCK_BYTES, MAX_FORMAT_BYTES).next_power_of_two())
}

/// The number of distinct keys that leaves this number of bits set in the mean.
///
/// A key leaves a given bit alone with the chance `q = 1 - 1 / (32 * blocks)`, so the answer is the
/// `n` for which `q^n` is the share of unset bits. (The sum over the blocks, of the number of keys
/// that each one's bits show, is 0.2% too high at 1%: a logarithm is not linear.)
pub(super) fn keys_for(ones: u64, blocks: usize) -> usize {
    let bits = 256.0 * blocks as f64;
    // A full filter shows only that there are many keys: as many as leave half a bit unset.
    let unset = f64::max(bits - ones as f64, 0.5) / bits;
    // 1 / ln q, up to a share of 1e-4 for one block, and of 1e-8 for a hundred.
    let scale = 0.5 - 32.0 * blocks as f64;
    (scale * ln(Twofold::new(unset)) + 0.5) as usize
}

/// The statistics of some words, four to a block.
pub(super) fn statistics_of(words: impl Iterator<Item = u64>, blocks: usize) -> Statistics {
    let (mut ones, mut rate, mut rates) = (0, 1.0, 0.0);
    for (i, word) in words.take(4 * blocks).enumerate() {
        let [low, high] = [word as u32, (word >> 32) as u32].map(u32::count_ones);
        ones += u64::from(low + high);
        rate *= f64::from(low * high) / 1024.0;
        if i % 4 == 3 {
            rates += rate;
            rate = 1.0;
        }
    }
    acquire_if(true);
    let fill = ones as f64 / (256.0 * blocks as f64);
    Statistics::new(fill, keys_for(ones, blocks), rates / blocks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the same sum in Python, from 0 keys to 2000.
    #[test]
    fn rates_of_the_model() {
        for (keys, expected) in [
            (1.0, 2.2875771239046164e-9),
            (10.0, 1.1611118431340292e-4),
            (25.0, 0.011358711753580174),
            (60.0, 0.27809604044920766),
            (200.0, 0.9846825033653578),
        ] {
            assert!((rate(keys) / expected - 1.0).abs() < 1e-9, "{keys}: {}", rate(keys));
        }
        assert_eq!(rate(0.0), 0.0);
        assert_eq!(rate(1e9), 1.0);
        for pair in [0.1, 1.0, 5.0, 20.0, 25.0, 60.0, 100.0, 255.0, 256.0].windows(2) {
            assert!(rate(pair[0]) < rate(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn the_fewest_blocks_keep_the_rate() {
        for (keys, wanted) in [(1, 0.5), (1000, 0.01), (1_000_000, 1e-3), (123_456, 1e-5), (10, 1e-9)] {
            let blocks = blocks(keys, wanted).unwrap();
            assert!(rate(keys as f64 / blocks as f64) <= wanted * (1.0 + 1e-9));
            assert!(blocks == 1 || rate(keys as f64 / (blocks - 1) as f64) > wanted);
        }
        assert_eq!(super::blocks(0, 0.01).unwrap(), 1);
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(super::blocks(1, rate).is_err() && parquet_bytes(1, rate).is_err());
        }
        assert!(super::blocks(usize::MAX, 1e-9).is_err());
    }

    /// Sizes that parquet-java 1.17.0 chose, the jar of PySpark 4.3.0: `getBitsetSize` of a filter
    /// of `optimalNumOfBits` bits.
    #[test]
    fn sizes_of_parquet_java() {
        for (keys, rate, bytes) in [
            // By the formula alone: half of these bytes.
            (126, 0.001, 512),
            (251, 0.03, 512),
            (280, 0.001, 1024),
            (647, 0.9999, 128),
            (2119, 0.03, 4096),
            (2500, 0.5, 2048),
            (3881, 0.02, 8192),
            // By the formula alone: twice these bytes.
            (162, 0.5, 64),
            (372, 0.005, 512),
            (1062, 0.03, 1024),
            (1457, 0.9999, 128),
            (3892, 0.02, 4096),
            // The same bytes by both.
            (1, 1e-9, 32),
            (1000, 0.01, 2048),
            (1_000_000, 0.001, 2 << 20),
            (30_000_007, 0.01, 64 << 20),
            (1_000_000_001, 0.01, 128 << 20),
        ] {
            assert_eq!(parquet_bytes(keys, rate).unwrap(), bytes, "{keys} keys, {rate}");
        }
        assert_eq!(parquet_bytes(0, 0.5).unwrap(), 32);
        assert_eq!(parquet_bytes(usize::MAX, 1e-9).unwrap(), 128 << 20);
    }
}
