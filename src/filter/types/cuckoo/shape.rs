//! The arithmetic of one bucket, a `u64` of several fingerprints: find a fingerprint, find room,
//! count. Also the number of buckets for keys and a rate. Pure values; `table.rs` applies them to
//! memory. [The filter's page](super#fingerprints) has the table of shapes.
//!
//! Slot `i` is the bits from `i * fingerprint_bits` on; 0 is an empty one. The bits above the slots
//! are 0: the 4 highest of a word of 5 or 6 slots, the highest of a word of 3.
//!
//! # The rate
//!
//! A lookup compares the key's fingerprint with the `2 * slots * load` other fingerprints of its
//! two buckets. Each of them is the same with a chance of `1 / (2^fingerprint_bits - 1)`. So all of
//! them differ with the chance `exp(-2 * slots * load / (2^fingerprint_bits - 1))`.

use crate::error::{BuildErrorKind, SnapshotErrorKind};
use crate::filter::parts::slots::too_short;
use crate::filter::parts::stripes::Stripes;
use crate::geometry::sizing::{MAX_BITS_PER_KEY, Request, ceil};
use alloc::format;
use alloc::string::String;

/// The division of a bucket into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketShape {
    pub(crate) fingerprint_bits: u32,
    pub(crate) slots: u32,
    /// The lowest bit of every slot.
    ones: u64,
    /// The highest bit of every slot.
    tops: u64,
}

impl BucketShape {
    pub(crate) const ALL: [Self; 4] = [Self::new(10), Self::new(12), Self::new(16), Self::new(21)];

    const fn new(fingerprint_bits: u32) -> Self {
        let slots = 64 / fingerprint_bits;
        let (mut ones, mut i) = (0, 0);
        while i < slots {
            ones |= 1 << (i * fingerprint_bits);
            i += 1;
        }
        Self {
            fingerprint_bits,
            slots,
            ones,
            tops: ones << (fingerprint_bits - 1),
        }
    }

    /// The shape with fingerprints of this many bits, or the problem that there is none.
    pub(super) fn of(bits: usize) -> Result<Self, String> {
        let shape = Self::ALL
            .into_iter()
            .find(|shape| shape.fingerprint_bits as usize == bits);
        shape.ok_or_else(|| format!("fingerprints of {bits} bits are not supported: choose 10, 12, 16 or 21"))
    }

    /// The largest fingerprint, which is also the number of fingerprints, since 0 is an empty slot.
    #[inline(always)]
    pub(crate) const fn fingerprints(self) -> u64 {
        (1 << self.fingerprint_bits) - 1
    }

    /// The fingerprint of a hash, from its 32 lower bits. They do not choose the bucket, in any
    /// filter that fits into memory.
    #[inline(always)]
    pub(crate) const fn fingerprint(self, hash: u64) -> u64 {
        (((hash & 0xffff_ffff) * self.fingerprints()) >> 32) + 1
    }

    /// The fingerprint, copied to every slot.
    #[inline(always)]
    pub(crate) const fn spread(self, fingerprint: u64) -> u64 {
        fingerprint * self.ones
    }

    /// 0 if no slot holds the spread fingerprint. Otherwise the lowest bit set is the top bit of
    /// the first slot that holds it. (Bits above may be wrong, by the borrow.)
    #[inline(always)]
    pub(crate) const fn matches(self, word: u64, spread: u64) -> u64 {
        let differences = word ^ spread;
        differences.wrapping_sub(self.ones) & !differences & self.tops
    }

    /// The lowest bit of the first slot that `matches` found.
    #[inline(always)]
    pub(crate) const fn shift(self, matches: u64) -> u32 {
        matches.trailing_zeros() - (self.fingerprint_bits - 1)
    }

    /// The number of slots that hold the spread fingerprint.
    #[inline(always)]
    pub(crate) const fn count(self, word: u64, spread: u64) -> u32 {
        let differences = word ^ spread;
        let lows = self.tops - self.ones;
        (!(((differences & lows) + lows) | differences) & self.tops).count_ones()
    }

    /// The number of slots that hold a fingerprint.
    pub(crate) const fn occupied(self, word: u64) -> u32 {
        self.slots - self.count(word, 0)
    }

    #[inline(always)]
    pub(crate) const fn fingerprint_at(self, word: u64, shift: u32) -> u64 {
        word >> shift & self.fingerprints()
    }

    /// Fails if any of these buckets has a bit outside its slots.
    pub(crate) fn check(self, buckets: impl Iterator<Item = u64>) -> Result<(), SnapshotErrorKind> {
        let slots = self.spread(self.fingerprints());
        match buckets.zip(0..).find(|(bucket, _)| bucket & !slots != 0) {
            None => Ok(()),
            Some((bucket, word)) => Err(SnapshotErrorKind::UnusedBits {
                word,
                bits: bucket & !slots,
            }),
        }
    }

    /// The lowest bit of each slot.
    #[inline(always)]
    pub(crate) fn shifts(self) -> impl Iterator<Item = u32> {
        (0..self.slots).map(move |slot| slot * self.fingerprint_bits)
    }

    /// The planned load, as a part of the slots. Searches reach 0.2% to 2% more (`SEARCHED` of
    /// `table.rs`).
    pub(crate) const fn planned_load(self) -> f64 {
        match self.slots {
            3 => 0.93,
            4 => 0.95,
            5 => 0.97,
            _ => 0.988,
        }
    }

    /// Buckets beyond the planned load. In a small filter chance fills a few buckets long before
    /// the others. With these, one filter in 40,000 is full early at worst: for 38 keys with 4
    /// slots, for 20 keys with 3. (4 buckets of 3 slots more fail for one in 3000, at 400 keys.)
    const fn spare(self) -> usize {
        match self.slots {
            3 => 8,
            _ => 4,
        }
    }

    pub(crate) fn rate_at(self, load: f64) -> f64 {
        let x = f64::from(2 * self.slots) * load / self.fingerprints() as f64;
        // 1 - exp(-x): x is at most 0.012, and the next term below 1e-9.
        x - x * x / 2.0 + x * x * x / 6.0
    }

    /// The most of the planned load at which the rate holds.
    fn load_for(self, rate: f64) -> f64 {
        if self.rate_at(self.planned_load()) <= rate {
            return self.planned_load();
        }
        // Linear up to a percent, which a few corrections remove.
        let mut load = 0.0;
        for _ in 0..8 {
            load += (rate - self.rate_at(load)) / self.rate_at(1.0);
        }
        load
    }

    /// The number of keys that this many buckets are planned for.
    fn keys(self, buckets: usize, load: f64) -> usize {
        (buckets.saturating_sub(self.spare()) as f64 * f64::from(self.slots) * load) as usize
    }

    /// The most keys that this many buckets are planned for: at least one.
    pub(crate) fn most_keys(self, buckets: usize) -> usize {
        self.keys(buckets, self.planned_load()).max(1)
    }

    /// The number of buckets for this many keys.
    fn buckets(self, keys: usize, load: f64) -> f64 {
        let pairs = (keys as f64 / (f64::from(self.slots) * load) + self.spare() as f64) / 2.0;
        // Rounded up, and one more if rounding errors left `keys` short.
        let pairs = ceil(pairs);
        if pairs < 1e15 && self.keys(2 * pairs as usize, load) < keys {
            2.0 * pairs + 2.0
        } else {
            2.0 * pairs
        }
    }
}

/// The shape and the number of buckets for what a builder was asked for, and the number of keys
/// that they are for.
pub(crate) fn solve(
    request: Request,
    fingerprint_bits: Option<usize>,
) -> Result<((BucketShape, usize), usize), BuildErrorKind> {
    request.check()?;
    let shape = fingerprint_bits.map(BucketShape::of).transpose();
    let shape = shape.map_err(BuildErrorKind::Setting)?;
    let keys = request.keys.map(|keys| keys.max(1));
    let budget = request.budget.map(buckets_in);
    // Without a rate, the rate of the given fingerprints. If no fingerprints are given either, 1%.
    let rate = match (request.rate, keys.is_some() && budget.is_some() || shape.is_some()) {
        (None, false) => Some(0.01),
        (rate, _) => rate,
    };
    let candidates = BucketShape::ALL
        .into_iter()
        .filter(|one| shape.is_none_or(|shape| shape == *one));
    let loads = candidates.map(|shape| (shape, rate.map_or(shape.planned_load(), |rate| shape.load_for(rate))));
    // By slots that are filled per bucket, the most last.
    let per_bucket = |&(shape, load): &(BucketShape, f64)| f64::from(shape.slots) * load;
    let best = loads.clone().max_by(|a, b| per_bucket(a).total_cmp(&per_bucket(b)));
    let best = best.expect("there are shapes");
    if 64.0 > MAX_BITS_PER_KEY as f64 * per_bucket(&best) {
        let rate = rate.expect("without one the load is the planned one");
        return Err(too_short(rate, "fingerprints", best.0.fingerprint_bits));
    }
    let (shape, load) = best;
    let over_budget = |keys| BuildErrorKind::OverBudget {
        needed: bytes_of(shape.buckets(keys, load) as usize),
        limit: request.budget.unwrap_or(0),
    };
    match (keys, budget) {
        (None, None) => Err(BuildErrorKind::NothingToSizeFor),
        (None, Some(buckets)) => {
            let keys = shape.keys(buckets, load).max(1);
            Ok(((shape, buckets), keys))
        }
        (Some(keys), Some(buckets)) if request.rate.is_none() => {
            // The longest fingerprints that fit.
            let fits = loads.rev().find(|&(shape, load)| shape.keys(buckets, load) >= keys);
            let (shape, _) = fits.ok_or_else(|| over_budget(keys))?;
            Ok(((shape, buckets), keys))
        }
        (Some(keys), limit) => {
            let buckets = shape.buckets(keys, load);
            if buckets >= (isize::MAX as usize / 16) as f64 {
                let rate = shape.rate_at(load);
                return Err(BuildErrorKind::TooLarge { keys, rate });
            }
            let buckets = buckets as usize;
            if limit.is_some_and(|limit| buckets > limit) {
                return Err(over_budget(keys));
            }
            Ok(((shape, buckets), keys))
        }
    }
}

/// Bytes of this many buckets and their stripes.
pub(crate) fn bytes_of(buckets: usize) -> usize {
    buckets.saturating_add(Stripes::number(buckets)).saturating_mul(8)
}

/// The most buckets that fit into this many bytes with their stripes.
fn buckets_in(bytes: usize) -> usize {
    let words = bytes / 8;
    // The stripes for this many buckets are enough for fewer.
    (words - Stripes::number(words)) / 2 * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parts::slots::random;
    use alloc::vec::Vec;

    /// Compared with one slot after another, for words of every kind.
    #[test]
    fn slots_are_found_and_counted() {
        for shape in BucketShape::ALL {
            let mut state = 1u64;
            let (last, top) = (shape.fingerprints(), 1 << (shape.fingerprint_bits - 1));
            // Few fingerprints, and the ends of their range, so that neighbours borrow.
            let fingerprints = [0, 1, 2, last, last - 1, top];
            for _ in 0..20_000 {
                let mut word = 0;
                for shift in shape.shifts() {
                    word |= fingerprints[(random(&mut state) >> 33) as usize % 6] << shift;
                }
                for fingerprint in fingerprints.into_iter().chain([3]) {
                    let is_it = |shift: &u32| word >> shift & last == fingerprint;
                    let found: Vec<u32> = shape.shifts().filter(is_it).collect();
                    let matches = shape.matches(word, shape.spread(fingerprint));
                    assert_eq!(matches != 0, !found.is_empty());
                    if let Some(first) = found.first() {
                        assert_eq!(shape.shift(matches), *first);
                    }
                    assert_eq!(shape.count(word, shape.spread(fingerprint)) as usize, found.len());
                }
            }
        }
    }

    #[test]
    fn fingerprints_are_never_zero_and_use_their_range() {
        for shape in BucketShape::ALL {
            assert_eq!(shape.fingerprint(0), 1);
            assert_eq!(shape.fingerprint(u64::MAX), shape.fingerprints());
            assert_eq!(shape.fingerprint(0xffff_ffff_0000_0000), 1);
        }
    }

    #[test]
    fn the_load_for_a_rate_has_it() {
        for shape in BucketShape::ALL {
            for part in [0.9, 0.5, 0.1, 0.01] {
                let rate = shape.rate_at(part * shape.planned_load());
                assert!((shape.load_for(rate) / (part * shape.planned_load()) - 1.0).abs() < 1e-12);
            }
            assert_eq!(shape.load_for(0.02), shape.planned_load());
            // Against the chance itself, to the last key.
            let misses = |load: f64| (1.0 - 1.0 / shape.fingerprints() as f64).powf(f64::from(2 * shape.slots) * load);
            assert!((shape.rate_at(0.9) / (1.0 - misses(0.9)) - 1.0).abs() < 1e-3);
        }
    }
}
