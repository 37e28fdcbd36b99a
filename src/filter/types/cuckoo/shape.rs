//! The arithmetic of one bucket, a `u64` of several fingerprints: find a fingerprint, find room,
//! count. Pure values; `table.rs` applies them to memory. [The filter's page](super#fingerprints)
//! has the table of shapes.
//!
//! Slot `i` is the bits from `i * fingerprint_bits` on; 0 is an empty one. The bits above the slots
//! are 0: the 4 highest of a word of 5 or 6 slots, the highest of a word of 3.

use crate::geometry::pattern::fingerprint_product;
use crate::geometry::rates;

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

    /// The largest fingerprint, which is also the number of fingerprints, since 0 is an empty slot.
    #[inline(always)]
    pub(crate) const fn fingerprints(self) -> u64 {
        (1 << self.fingerprint_bits) - 1
    }

    /// The fingerprint of a hash: from its second product. The bucket comes from the first one.
    #[inline(always)]
    pub(crate) fn fingerprint(self, hash: u64) -> u64 {
        (((fingerprint_product(hash) >> 32) * self.fingerprints()) >> 32) + 1
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

    /// The lowest bit of each slot.
    #[inline(always)]
    pub(crate) fn shifts(self) -> impl Iterator<Item = u32> {
        (0..self.slots).map(move |slot| slot * self.fingerprint_bits)
    }

    /// The false-positive rate when this part of the slots is occupied: a lookup compares the
    /// fingerprints of the key's two buckets.
    pub(crate) fn rate_at(self, load: f64) -> f64 {
        rates::of_slots(2 * self.slots as usize, load, self.fingerprints())
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::CuckooTable;
    use super::*;
    use crate::filter::parts::slots::{Slots, load_for, random};
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
            let all = (0..1 << 16).map(|hash| shape.fingerprint(hash << 20));
            let (least, most) = all.fold((u64::MAX, 0), |(least, most), one| (least.min(one), most.max(one)));
            // (The share of the range that 2^16 hashes may miss at either end.)
            let margin = shape.fingerprints() >> 12;
            assert!((1..=1 + margin).contains(&least), "{least}");
            assert!(
                (shape.fingerprints() - margin..=shape.fingerprints()).contains(&most),
                "{most}"
            );
        }
    }

    #[test]
    fn the_load_for_a_rate_has_it() {
        for shape in BucketShape::ALL {
            let planned = CuckooTable::planned_load(shape);
            for part in [0.9, 0.5, 0.1, 0.01] {
                let rate = shape.rate_at(part * planned);
                assert!((load_for::<CuckooTable>(shape, rate) / (part * planned) - 1.0).abs() < 1e-12);
            }
            assert_eq!(load_for::<CuckooTable>(shape, 0.02), planned);
            // Against the chance itself, to the last key.
            let misses = |load: f64| (1.0 - 1.0 / shape.fingerprints() as f64).powf(f64::from(2 * shape.slots) * load);
            assert!((shape.rate_at(0.9) / (1.0 - misses(0.9)) - 1.0).abs() < 1e-3);
        }
    }
}
