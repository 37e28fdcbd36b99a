//! Estimates a filter's fill from some of its lines, to decide when the next layer or generation
//! begins. Filters that consist of several filters call it after inserts.
//!
//! It counts no keys, so inserts write no shared counter. Among the hashes that changed a filter,
//! one in `keys / 128` to `keys / 64` is *due*, by the highest bits of a product. At a due hash,
//! the estimate counts the bits that are set in up to [`LINES`] lines.
//!
//! The estimate varies with the number of keys in the sampled lines, by `1 / sqrt(keys)`: at a rate
//! of 1% (47 keys to a line) 0.9% for 256 lines, and 0.3% if a filter of 10 thousand keys is read
//! whole. Between two looks the filter grows by 1/128 to 1/64 in the mean, and in one case of 150
//! by more than 5 times that.
//!
//! The alternative, a counter that one key in `2^j` increments, would need `j = 4` at 10 thousand
//! keys to slow inserts as little, and would be 4% off.

use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::pattern::block;
use crate::words::bits::Bits;

/// The most lines of a look: 16 KiB, which takes 3 to 6 µs.
const LINES: usize = 256;
/// The most lines of a precise look: 256 KiB. Their keys vary by 0.4% at a rate of 1e-6 (15 keys to
/// a line), and by 0.2% at 1%.
const MANY_LINES: usize = 4096;
/// The least number of looks until the filter is full.
const LOOKS: usize = 64;

/// With this multiplier all bits of a hash decide whether it is due. A caller may distribute hashes
/// by some of their bits, among threads or filters. If only those bits decided, one thread would do
/// all looks, or most filters would never be looked at. It is not the pattern's multiplier, so the
/// patterns of due hashes are as random as others.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// Estimates the fill of filters that are full at this many distinct keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadEstimate {
    keys: usize,
    /// A hash is due if its product with [`SPREAD`] is at most this.
    due: u64,
}

impl LoadEstimate {
    pub(crate) fn new(keys: usize) -> Self {
        let due = u64::MAX >> (keys / LOOKS).checked_ilog2().unwrap_or(0);
        Self { keys, due }
    }

    /// Whether to look at the [`load_of`](Self::load_of), now that this hash has changed the
    /// filter.
    #[inline(always)]
    pub(crate) fn is_due(&self, hash: u64) -> bool {
        hash.wrapping_mul(SPREAD) <= self.due
    }

    /// The most hashes to insert before the next look. A larger batch is divided.
    pub(crate) fn interval(&self) -> usize {
        1 << self.due.leading_zeros()
    }

    /// The filter's fill: 0 when it is empty, 1 when it has all its keys, and more beyond. The due
    /// `hash` selects the lines.
    pub(crate) fn load_of(&self, bits: &Bits, layout: Layout, hash: u64) -> f64 {
        self.load_by(LINES, bits, layout, hash)
    }

    /// [`load_of`](Self::load_of) by more lines, for a filter that is nearly full.
    pub(crate) fn precise_load(&self, bits: &Bits, layout: Layout, hash: u64) -> f64 {
        self.load_by(MANY_LINES, bits, layout, hash)
    }

    fn load_by(&self, most: usize, bits: &Bits, layout: Layout, hash: u64) -> f64 {
        let blocks = layout.blocks;
        let lines = blocks.min(most);
        let first = block(hash, blocks - lines + 1);
        let mut ones = 0;
        // From a copy, whose bits the compiler counts in vectors.
        let mut copy = [0; 16 * LINE_WORDS];
        for from in (0..lines).step_by(copy.len() / LINE_WORDS) {
            let copy = &mut copy[..((lines - from) * LINE_WORDS).min(16 * LINE_WORDS)];
            bits.copy(first + from, copy);
            ones += copy.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        let sample = Layout {
            blocks: lines,
            ..layout
        };
        sample.keys_for(ones) as f64 / (self.keys as f64 * lines as f64 / blocks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::types::bloom::ConcurrentBloom;
    use crate::hash::bytes::mix;
    use crate::key::Hashed;
    use alloc::vec::Vec;

    fn number(i: u64) -> u64 {
        mix(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn filter(keys: usize, rate: f64) -> ConcurrentBloom {
        let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate);
        builder.build().unwrap()
    }

    fn load(estimate: &LoadEstimate, filter: &ConcurrentBloom, hash: u64) -> f64 {
        estimate.load_of(filter.bits(), filter.engine.layout, hash)
    }

    /// Filters with a quarter of their keys, and on to twice as many: the mean of the loads at 40
    /// places, and the error of one.
    #[test]
    fn the_load_is_the_part_of_the_keys_that_are_in() {
        for (keys, rate, spread) in [
            (500, 0.1, 0.12),
            (10_000, 0.01, 0.02),
            (200_000, 0.01, 0.05),
            (100_000, 1e-4, 0.06),
        ] {
            let filter = filter(keys, rate);
            let estimate = LoadEstimate::new(keys);
            assert_eq!(load(&estimate, &filter, 0), 0.0);
            for quarter in 1..=8u32 {
                let from = keys as u64 * u64::from(quarter - 1) / 4;
                let hashes: Vec<u64> = (from..keys as u64 * u64::from(quarter) / 4).map(number).collect();
                filter.insert_batch(Hashed::slice(&hashes));
                let inserted = f64::from(quarter) / 4.0;
                let loads: Vec<f64> = (0..40)
                    .map(|i| load(&estimate, &filter, number(i) << 20) / inserted)
                    .collect();
                let mean = loads.iter().sum::<f64>() / 40.0;
                let is_near = |load: f64, most: f64| (load - 1.0).abs() < most;
                assert!(is_near(mean, spread / 2.0), "{keys} keys, {inserted}: {mean}");
                let all_near = loads.iter().all(|load| is_near(*load, spread));
                assert!(all_near, "{keys} keys, {inserted}: {loads:?}");
            }
        }
    }

    #[test]
    fn one_hash_in_so_many_is_due() {
        for (keys, one_in) in [(1, 1), (64, 1), (127, 1), (128, 2), (10_000, 128), (1 << 20, 1 << 14)] {
            let estimate = LoadEstimate::new(keys);
            assert_eq!(estimate.interval(), one_in);
            let due = (0..64 * one_in as u64).filter(|&i| estimate.is_due(number(i))).count();
            assert!((35..100).contains(&due), "{keys} keys: {due}");
        }
    }

    /// Also for hashes that were selected by some of their bits, for a shard or a thread.
    #[test]
    fn every_shard_has_hashes_that_are_due() {
        let estimate = LoadEstimate::new(10_000);
        let due = |chosen: fn(u64) -> u64| {
            let hashes = (0..64 * 128).map(number).map(chosen);
            hashes.filter(|&hash| estimate.is_due(hash)).count()
        };
        let shards: [fn(u64) -> u64; 5] = [
            |hash| hash | 63,
            |hash| hash & !63 | 1,
            |hash| hash << 6 >> 6 | 1 << 58,
            |hash| hash | 63 << 58,
            |hash| hash | 63 << 29,
        ];
        for chosen in shards {
            assert!((35..100).contains(&due(chosen)), "{}", due(chosen));
        }
    }

    /// A look reaches the last lines, and nothing beyond them.
    #[test]
    fn looks_everywhere() {
        let filter = filter(100_000, 0.01);
        let estimate = LoadEstimate::new(100_000);
        // One block near each end is full of bits.
        let blocks = filter.layout().blocks;
        let in_block = |wanted: usize| (0..).map(number).filter(move |&hash| block(hash, blocks) == wanted);
        for wanted in [0, blocks - 1] {
            filter.insert_all(in_block(wanted).take(200).map(Hashed));
        }
        let load = |wanted| load(&estimate, &filter, in_block(wanted).next().unwrap());
        assert!(load(0) > 0.0 && load(blocks - 1) > 0.0);
        assert_eq!(load(blocks / 2), 0.0);
    }
}
