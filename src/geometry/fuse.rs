//! The geometry of a binary fuse filter: how many cells a number of keys takes, and which of them
//! a hash reads. `docs/FORMAT.md` states the second part. Only `+ - * /` on `f64` are used, as in
//! `sizing.rs`, so that every platform plans the same cells.
//!
//! ```text
//! shard    = high half of hash * shards / 2^32              never changes
//! product  = hash * multiplier of the shard's seed     a bijection for each seed
//! mixed    = product xor product / 2^32
//! first    = high half of mixed * span / 2^32          in a first segment
//! others   = the same place in the next segments, xor bits of the low half
//! print    = bits of (high half of mixed + low half * FINGERPRINT / 2^32)
//! key there = print == xor of all its cells
//! ```
//!
//! Source: Graf, Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters" (2022). The
//! lengths of segments and the spare cells are theirs. The shards are not: each is a filter of its
//! own, of about a million keys, so that its build stays in the caches and all cells of a key lie
//! in a few pages.

use crate::geometry::layout::{LINE_BYTES, LINE_WORDS};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The lengths of fingerprints, in bits. Seven bits are a rate of 0.8%.
pub(crate) const FINGERPRINT_BITS: RangeInclusive<u32> = 7..=32;

/// The cells that a key may have.
pub(crate) const CELLS_PER_KEY: RangeInclusive<u32> = 3..=4;

/// The keys of a shard, within a factor of 1.5, if there are as many. With half as many, a filter
/// takes 1.2% more memory: smaller sets need more spare cells.
const SHARD_KEYS: usize = 1 << 20;

/// A snapshot has at most one shard more than one for this many keys. (A filter keeps 8 bytes for
/// each shard beside its cells, which no limit of a reader counts.)
pub(crate) const LEAST_SHARD_KEYS: u64 = 1 << 16;

/// The most cells of a shard: so that 32 bits of a hash select one evenly. (A list of a few hashes
/// that come a million times each would ask for more, and is built from its distinct hashes.)
pub(crate) const MOST_CELLS: u64 = 1 << 24;

/// Segments have 2^3 cells, so that they end with a byte, to 2^16: the low half of a hash has the
/// bits for two of them.
pub(crate) const LOG_SEGMENT: RangeInclusive<u32> = 3..=16;

/// The seeds that a shard may have. Each fails for a shard of a million keys in one case of a
/// hundred, and for a few keys in one of ten.
pub(crate) const SEEDS: u8 = 64;

/// The bytes after the cells, so that a cell of any length is read as 8 bytes.
const SLACK: usize = 8;

/// The multiplier of seed 0, and the difference between those of two seeds: twice an odd number.
/// (The fractions of the golden ratio and of the square root of 3.)
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const NEXT_MULTIPLIER: u64 = 0xbb67_ae85_84ca_a73b << 1;

/// Spreads the low half of a mixed hash over its fingerprint: an odd number of 32 bits. (The
/// fraction of the square root of 2.)
const FINGERPRINT: u64 = 0x6a09_e667;

/// The multiplier of a seed: an odd number.
pub(crate) const fn multiplier(seed: u8) -> u64 {
    MULTIPLIER.wrapping_add(NEXT_MULTIPLIER.wrapping_mul(seed as u64))
}

/// The cells of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FuseLayout {
    /// The bits of a fingerprint, and of a cell.
    pub(crate) bits: u32,
    /// The cells that a key has, each in a segment of its own.
    pub(crate) cells_per_key: u32,
    /// The cells of a segment, as a power of two.
    pub(crate) log_segment: u32,
    /// The segments of a shard in which the first cell of a key lies.
    pub(crate) segments: u32,
    pub(crate) shards: u32,
}

impl FuseLayout {
    /// The number of shards for this many keys.
    pub(crate) fn shards_for(keys: usize) -> usize {
        ((keys + SHARD_KEYS / 2) / SHARD_KEYS).max(1)
    }

    /// The layout for shards of at most this many keys. `None` if they would have too many cells.
    pub(crate) fn plan(bits: u32, cells_per_key: u32, shards: usize, most_keys: usize) -> Option<Self> {
        let log_segment = log_segment(cells_per_key, most_keys);
        let cells = most_keys as f64 * spare(cells_per_key, most_keys);
        let others = cells_per_key as usize - 1;
        let segments = (cells as usize)
            .div_ceil(1 << log_segment)
            .saturating_sub(others)
            .max(least_segments(cells_per_key, most_keys, log_segment));
        let layout = Self {
            bits,
            cells_per_key,
            log_segment,
            segments: u32::try_from(segments).ok()?,
            shards: u32::try_from(shards).ok()?,
        };
        (layout.shard_cells() <= MOST_CELLS).then_some(layout)
    }

    /// The cells of a shard.
    pub(crate) fn shard_cells(&self) -> u64 {
        (u64::from(self.segments) + u64::from(self.cells_per_key) - 1) << self.log_segment
    }

    /// All cells.
    pub(crate) fn cells(&self) -> u64 {
        self.shard_cells() * u64::from(self.shards)
    }

    /// The bytes of the cells of a shard.
    pub(crate) fn shard_bytes(&self) -> usize {
        (self.shard_cells() * u64::from(self.bits) / 8) as usize
    }

    /// The bytes before the cells: a seed for each shard, in whole lines.
    pub(crate) fn seed_bytes(&self) -> usize {
        (self.shards as usize).next_multiple_of(LINE_BYTES)
    }

    /// The words of all, in whole lines. `None` if this machine cannot address them.
    pub(crate) fn words(&self) -> Option<usize> {
        let bytes = u128::from(self.shards) * u128::from(self.shard_cells()) * u128::from(self.bits) / 8;
        let bytes = usize::try_from(bytes).ok()?.checked_add(self.seed_bytes() + SLACK)?;
        let words = bytes.checked_next_multiple_of(LINE_BYTES)? / LINE_BYTES * LINE_WORDS;
        (words <= isize::MAX as usize / 16).then_some(words)
    }

    /// The share of random hashes that are found when the filter holds this many keys. The cells
    /// that no key was assigned are 0, and no fingerprint is. All segments are taken for equally
    /// full: [`rate_of`](Self::rate_of) counts.
    pub(crate) fn rate_at(&self, keys: usize) -> f64 {
        let empty = 1.0 - f64::min(keys as f64 / self.cells() as f64, 1.0);
        let all_empty = (0..self.cells_per_key).fold(1.0, |product, _| product * empty);
        (1.0 - all_empty) / (1u64 << self.bits) as f64
    }
}

/// Up to this many cells are counted for the rate: that takes some 100 µs. Segments are taken from
/// the first one to the last, so that the first ones have more than their share of the keys. With 5
/// keys, a rate by equal shares is 12% too low; with 500 keys 2.6%, with 3000 keys 0.3%.
const MOST_COUNTED: u64 = 1 << 16;

impl FuseLayout {
    /// The share of random hashes that are found, by the cells in these bytes. `None` if they are
    /// too many to count.
    ///
    /// A hash has a cell in each of some segments that follow one another. If all of them are 0, it
    /// is not found; otherwise by chance. A fingerprint that would be 0 is 1, so a hash with one
    /// other cell than 0 is found twice as often if that one is 1.
    pub(crate) fn rate_of(&self, bytes: &[u8]) -> Option<f64> {
        if self.cells() > MOST_COUNTED {
            return None;
        }
        let (bits, mask) = (self.bits as usize, (1 << self.bits) - 1);
        let cell = |i: usize| {
            let at = i * bits;
            let word = bytes[self.seed_bytes() + at / 8..][..8].try_into();
            u64::from_le_bytes(word.expect("8 bytes")) >> (at % 8) & mask
        };
        let segment = 1 << self.log_segment;
        let shares = |number: usize| {
            let (mut zeros, mut ones) = (0u32, 0u32);
            for i in number * segment..(number + 1) * segment {
                zeros += u32::from(cell(i) == 0);
                ones += u32::from(cell(i) == 1);
            }
            (f64::from(zeros) / segment as f64, f64::from(ones) / segment as f64)
        };
        let (first, others) = (self.segments as usize, self.cells_per_key as usize - 1);
        let mut found = 0.0;
        for shard in 0..self.shards as usize {
            let start = shard * (first + others);
            let shares: Vec<_> = (start..start + first + others).map(shares).collect();
            for shares in shares.windows(others + 1) {
                // The chances that all cells so far are 0, and that all but one are, which is 1.
                let (zeros, one) = shares.iter().fold((1.0, 0.0), |(zeros, one), (zero, of_one)| {
                    (zeros * zero, one * zero + zeros * of_one)
                });
                found += 1.0 - zeros + one;
            }
        }
        let all = (1u64 << self.bits) as f64 * self.shards as f64 * first as f64;
        Some(found / all)
    }
}

/// The part of a layout that a hash needs, computed once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FuseProbe {
    pub(crate) cells_per_key: u32,
    /// The bits of a cell.
    pub(crate) bits: u32,
    shards: u64,
    /// The bytes of the cells of a shard.
    pub(crate) shard_bytes: usize,
    /// The cells where the first of a key may lie.
    span: u64,
    pub(crate) log_segment: u32,
    /// The bits of a fingerprint.
    pub(crate) mask: u64,
    /// The byte of the first cell.
    pub(crate) start: usize,
    /// The bytes of seeds and cells, and those after them.
    pub(crate) bytes: usize,
}

impl FuseProbe {
    /// The places of a layout, whose bytes exist.
    pub(crate) fn of(layout: &FuseLayout) -> Self {
        Self {
            cells_per_key: layout.cells_per_key,
            bits: layout.bits,
            shards: layout.shards.into(),
            shard_bytes: layout.shard_bytes(),
            span: u64::from(layout.segments) << layout.log_segment,
            log_segment: layout.log_segment,
            mask: (1 << layout.bits) - 1,
            start: layout.seed_bytes(),
            bytes: 8 * layout.words().expect("its bytes exist"),
        }
    }

    /// The shard of a hash.
    #[inline(always)]
    pub(crate) fn shard(&self, hash: u64) -> usize {
        (((hash >> 32) * self.shards) >> 32) as usize
    }

    /// The first cell in its shard, of a hash that is [`mixed`].
    #[inline(always)]
    pub(crate) fn first_cell(&self, mixed: u64) -> u64 {
        ((mixed >> 32) * self.span) >> 32
    }

    /// Cell `i` of `A` in its shard, given the first. (Four have bits in common: the low half has
    /// not enough. That leaves 32 of 36 for the largest segments.)
    #[inline(always)]
    pub(crate) fn next_cell<const A: usize>(&self, first: u64, mixed: u64, i: usize) -> u64 {
        let shift = 32 / (A - 1) * (i - 1);
        let low = mixed >> shift & ((1 << self.log_segment) - 1);
        (first + ((i as u64) << self.log_segment)) ^ low
    }

    /// The fingerprint, which is not 0.
    ///
    /// It depends on all bits of `mixed`. (Were it bits of the high half alone, a long one would
    /// have those that select the first cell. Keys whose first cells are neighbours have the same
    /// ones, and so has the xor of three such fingerprints: of 2^32 strangers, filters with
    /// fingerprints of 32 bits found 111.)
    #[inline(always)]
    pub(crate) fn fingerprint(&self, mixed: u64) -> u64 {
        let low = mixed & 0xffff_ffff;
        // (The low half is in the sum once already.)
        let sum = mixed.wrapping_add(low * (FINGERPRINT - 1));
        let bits = sum >> 32 & self.mask;
        bits | u64::from(bits == 0)
    }
}

/// The bits of a hash that select its cells. A bijection.
#[inline(always)]
pub(crate) fn mixed(hash: u64, multiplier: u64) -> u64 {
    let product = hash.wrapping_mul(multiplier);
    product ^ product >> 32
}

/// The cells of a segment, as a power of two: the whole part of ln(keys) / ln(3.33) + 2.25 for
/// three cells per key, of ln(keys) / ln(2.91) - 0.5 for four.
fn log_segment(cells_per_key: u32, keys: usize) -> u32 {
    // The number of keys where the second length begins, 2^4.
    let (mut bound, factor) = if cells_per_key == 3 {
        (8.21, 3.33)
    } else {
        (122.3, 2.91)
    };
    let mut log = *LOG_SEGMENT.start();
    while keys as f64 >= bound && log < *LOG_SEGMENT.end() {
        bound *= factor;
        log += 1;
    }
    log
}

/// The fewest segments for the first cells of this many keys, such that most seeds succeed:
/// builds fail from 0.918 keys for each of their cells on, with four cells per key from 0.977 on.
/// (Whole segments make some sizes fuller than [`spare`] wants them: 11,499 keys had 0.936, and one
/// build of three found no seed. Segments of less than 2^8 cells have no such limit.)
fn least_segments(cells_per_key: u32, keys: usize, log_segment: u32) -> usize {
    if log_segment < 8 {
        return 1;
    }
    let fullest = if cells_per_key == 3 { 0.905 } else { 0.965 };
    ((keys as f64 / fullest) as usize).div_ceil(1 << log_segment).max(1)
}

/// The cells for each key: for three of them 0.875 + 0.25 * ln(10^6) / ln(keys), at least 1.125;
/// for four 0.77 + 0.305 * ln(600,000) / ln(keys), at least 1.075.
fn spare(cells_per_key: u32, keys: usize) -> f64 {
    let log = log2(keys.max(2));
    if cells_per_key == 3 {
        f64::max(1.125, 0.875 + 0.25 * 19.932 / log)
    } else {
        f64::max(1.075, 0.77 + 0.305 * 19.195 / log)
    }
}

/// The binary logarithm, at most 0.09 too low.
fn log2(number: usize) -> f64 {
    let whole = number.ilog2();
    f64::from(whole) + (number as f64 / (1u64 << whole) as f64 - 1.0)
}
