//! [`CompactCuckoo`]: the buckets of a [`CuckooFilter`], semi-sorted, for lookups only. Takes
//! buckets, and gives answers or buckets.
//!
//! The order of the fingerprints in a bucket has no meaning, but takes bits. With sorted
//! fingerprints, the highest four bits of the fingerprints form one of few sequences, and the
//! sequence's number takes less room than the bits. The lower bits are stored unchanged. (Fan et
//! al. do so for buckets of four fingerprints; five and six work the same way.)
//!
//! | fingerprints | sequences | bits of their number | bits of a bucket |
//! |---|---|---|---|
//! | 3 of 21 bits | 816 | 10 instead of 12 | 61 of 64 |
//! | 4 of 16 bits | 3876 | 12 instead of 16 | 60 of 64 |
//! | 5 of 12 bits | 15504 | 14 instead of 20 | 54 of 64 |
//! | 6 of 10 bits | 54264 | 16 instead of 24 | 52 of 64 |
//!
//! A lookup compares the lower bits in both buckets first. Only if they agree does it unpack a
//! bucket, with a table of the sequences.

use super::shape::BucketShape;
use super::table::{CuckooAddress, CuckooTable, address_of};
use super::{Cuckoo, CuckooFilter};
use crate::codec::Kind;
use crate::error::{BuildError, BuildErrorKind, SnapshotErrorKind};
use crate::filter::Filter;
use crate::filter::parts::probe::Probe;
use crate::filter::parts::slots::{Slots, Slotted};
use crate::hash::Murmur3;
use crate::words::bits::{Hint, prefetch};
use crate::words::memory::Words;
use alloc::format;

/// A read-only cuckoo filter in less memory: made by [`CuckooFilter::to_compact`].
///
/// It answers as the original filter, false positives included, from 61, 60, 54 or 52 bits per
/// bucket (fingerprints of 21, 16, 12 or 10 bits) instead of 64. [`to_filter`](Self::to_filter)
/// converts it back. Lookups in batches take one to three times as long as the original's
/// (`benches/record`), and need a table of 3, 15, 61 or 212 KiB, which all filters share.
///
/// ```
/// let builder = lanebloom::CuckooFilter::builder().expected_keys(1_000_000);
/// let filter = builder.fingerprint_bits(10).build()?;
/// filter.insert("a")?;
/// let compact = filter.to_compact()?;
/// assert!(compact.contains("a") && !compact.contains("b"));
/// assert!(compact.bits_per_key() < 8.8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CompactCuckoo<S = Murmur3> = Filter<Compact, S>;

/// The engine of [`CompactCuckoo`]: the buckets of a cuckoo filter, packed.
pub type Compact = Slotted<Packed>;

/// Buckets, one directly after another.
pub struct Packed {
    words: Words<u64>,
    buckets: usize,
    shape: BucketShape,
}

/// Bits of a fingerprint that are sorted.
const SORTED: u32 = 4;

impl BucketShape {
    /// The bits of a fingerprint that stay as they are.
    const fn low_bits(self) -> u32 {
        self.fingerprint_bits - SORTED
    }

    /// Bits of a packed bucket.
    const fn packed_bits(self) -> u32 {
        // 10, 12, 14 or 16 for the sequence.
        self.slots * self.low_bits() + 2 * self.slots + SORTED
    }

    /// The number of sequences.
    const fn sequences(self) -> u64 {
        let slots = self.slots as usize;
        CHOICES[slots][15 + slots] as u64
    }
}

/// `CHOICES[k][n]`: the number of ways to choose k out of n.
const CHOICES: [[u32; 22]; 7] = {
    let mut choices = [[0; 22]; 7];
    let mut n = 0;
    while n < 22 {
        choices[0][n] = 1;
        let mut k = 1;
        while n > 0 && k < 7 {
            choices[k][n] = choices[k - 1][n - 1] + choices[k][n - 1];
            k += 1;
        }
        n += 1;
    }
    choices
};

/// The number of a sequence, in the combinatorial number system. `highs` never descend, so the sums
/// of each and its position ascend: a choice of numbers below 15 plus their count.
fn rank(highs: &[u8]) -> u64 {
    let ranks = highs.iter().enumerate();
    u64::from(
        ranks
            .map(|(i, high)| CHOICES[i + 1][usize::from(*high) + i])
            .sum::<u32>(),
    )
}

/// All sequences of `SLOTS`, in the order of their numbers. Their element `i` has the bits from
/// `4 * i` on.
const fn sequences<const SLOTS: usize, const SEQUENCES: usize>() -> [u32; SEQUENCES] {
    assert!(SEQUENCES as u64 == BucketShape::ALL[6 - SLOTS].sequences());
    let mut all = [0; SEQUENCES];
    let mut highs = [0; SLOTS];
    let mut number = 1;
    while number < SEQUENCES {
        // The first number that can grow without passing the one after it. The numbers before it
        // begin anew.
        let mut i = 0;
        while i + 1 < SLOTS && highs[i] == highs[i + 1] {
            highs[i] = 0;
            i += 1;
        }
        highs[i] += 1;
        let mut i = 0;
        while i < SLOTS {
            all[number] |= highs[i] << (SORTED * i as u32);
            i += 1;
        }
        number += 1;
    }
    all
}

/// The tables, of 3, 15, 61 and 212 KiB. (Arithmetic instead of the tables took 64 to 127 ns for a
/// lookup in 8 MiB, and the tables 28 to 35; Emerald Rapids.)
static OF_THREE: [u32; 816] = sequences::<3, 816>();
static OF_FOUR: [u32; 3876] = sequences::<4, 3876>();
static OF_FIVE: [u32; 15_504] = sequences::<5, 15_504>();
static OF_SIX: [u32; 54_264] = sequences::<6, 54_264>();

/// The sequence with this number.
#[inline(always)]
fn unrank(shape: BucketShape, rank: u64) -> u32 {
    let all: &[u32] = match shape.slots {
        3 => &OF_THREE,
        4 => &OF_FOUR,
        5 => &OF_FIVE,
        _ => &OF_SIX,
    };
    all[rank as usize]
}

/// Packs a bucket.
fn pack(shape: BucketShape, bucket: u64) -> u64 {
    let mut fingerprints = [0; 6];
    let fingerprints = &mut fingerprints[..shape.slots as usize];
    for (fingerprint, shift) in fingerprints.iter_mut().zip(shape.shifts()) {
        *fingerprint = shape.fingerprint_at(bucket, shift);
    }
    fingerprints.sort_unstable();
    let low = shape.low_bits();
    let mut highs = [0; 6];
    let mut packed = 0;
    for (i, (fingerprint, high)) in fingerprints.iter().zip(&mut highs).enumerate() {
        *high = (fingerprint >> low) as u8;
        packed |= (fingerprint & ((1 << low) - 1)) << (i as u32 * low);
    }
    packed | rank(&highs[..fingerprints.len()]) << (shape.slots * low)
}

/// Unpacks a bucket; the fingerprints are in order.
#[inline(always)]
fn unpack_bucket(shape: BucketShape, packed: u64) -> u64 {
    let low = shape.low_bits();
    let highs = u64::from(unrank(shape, packed >> (shape.slots * low)));
    let mut bucket = 0;
    for slot in 0..shape.slots {
        let high = highs >> (slot * SORTED) & ((1 << SORTED) - 1);
        let fingerprint = high << low | packed >> (slot * low) & ((1 << low) - 1);
        bucket |= fingerprint << (slot * shape.fingerprint_bits);
    }
    bucket
}

/// Whether a fingerprint of the bucket has the lower bits of this one. Among the buckets without
/// the fingerprint, one in 44,000, 1000, 50 or 11 passes.
#[inline(always)]
fn may_hold(shape: BucketShape, packed: u64, fingerprint: u64) -> bool {
    let low = shape.low_bits();
    let mut ones = 0;
    for slot in 0..shape.slots {
        ones |= 1 << (slot * low);
    }
    let spread = (fingerprint & ((1 << low) - 1)) * ones;
    let differences = packed ^ spread;
    differences.wrapping_sub(ones) & !differences & ones << (low - 1) != 0
}

/// Whether a fingerprint is in the bucket.
#[inline(always)]
fn packed_holds(shape: BucketShape, packed: u64, fingerprint: u64) -> bool {
    shape.matches(unpack_bucket(shape, packed), shape.spread(fingerprint)) != 0
}

impl Packed {
    fn pack((shape, number): (BucketShape, usize), buckets: impl Iterator<Item = u64>) -> Result<Self, BuildError> {
        let mut all = Self::new((shape, number))?;
        let words = &mut all.words;
        let (mut at, mut filled) = (0, 0);
        for bucket in buckets {
            let packed = pack(shape, bucket);
            words[at] |= packed << filled;
            filled += shape.packed_bits();
            if filled >= 64 {
                filled -= 64;
                at += 1;
                // A shift by all bits leaves nothing.
                words[at] |= packed.checked_shr(shape.packed_bits() - filled).unwrap_or(0);
            }
        }
        Ok(all)
    }

    fn unpacked(&self) -> impl Iterator<Item = u64> {
        (0..self.buckets).map(|bucket| unpack_bucket(self.shape, self.get(bucket)))
    }

    #[inline(always)]
    fn bit(&self, bucket: usize) -> (usize, u32) {
        let bit = bucket as u128 * u128::from(self.shape.packed_bits());
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    /// The packed bits of a bucket.
    #[inline(always)]
    fn get(&self, bucket: usize) -> u64 {
        let (word, shift) = self.bit(bucket);
        // In two steps, since a shift by 64 would shift nothing.
        let both = self.words[word] >> shift | self.words[word + 1] << 1 << (63 - shift);
        both & ((1 << self.shape.packed_bits()) - 1)
    }

    /// Whether either bucket holds the fingerprint. Callers pass the shape as a constant: a shift
    /// by a constant takes a third of the time of a shift by a variable.
    #[inline(always)]
    fn holds_in(&self, shape: BucketShape, address: &CuckooAddress) -> bool {
        let [first, second] = [self.get(address.first), self.get(address.second)];
        let (in_first, in_second) = (
            may_hold(shape, first, address.fingerprint),
            may_hold(shape, second, address.fingerprint),
        );
        // No branch on the bucket: it would be mispredicted every other time.
        let likely = if in_first { first } else { second };
        (in_first | in_second)
            && (packed_holds(shape, likely, address.fingerprint)
                || in_first & in_second && packed_holds(shape, second, address.fingerprint))
    }
}

impl Probe for Packed {
    type Address = CuckooAddress;
    const LINES: usize = 2;

    #[inline(always)]
    fn address(&self, hash: u64) -> CuckooAddress {
        address_of(self.shape, self.buckets, hash)
    }

    #[inline(always)]
    fn prefetch(&self, address: &CuckooAddress, hint: Hint) {
        for bucket in address.buckets() {
            // One bucket in eight lies in two lines.
            let word = self.words.as_ptr().wrapping_add(self.bit(bucket).0);
            prefetch(word, hint);
            prefetch(word.wrapping_add(1), hint);
        }
    }

    #[inline(always)]
    fn holds(&self, address: &CuckooAddress) -> bool {
        match self.shape.slots {
            6 => self.holds_in(const { BucketShape::ALL[0] }, address),
            5 => self.holds_in(const { BucketShape::ALL[1] }, address),
            4 => self.holds_in(const { BucketShape::ALL[2] }, address),
            _ => self.holds_in(const { BucketShape::ALL[3] }, address),
        }
    }

    fn bytes(&self) -> usize {
        8 * self.words.len()
    }
}

impl Slots for Packed {
    const TYPE: &'static str = "CompactCuckoo";
    const KIND: Kind = Kind::CompactCuckoo;
    const HELD: bool = false;
    const WORDS: usize = 1;
    type BucketLayout = (BucketShape, usize);

    fn new((shape, buckets): (BucketShape, usize)) -> Result<Self, BuildError> {
        let bytes = Self::bytes_of((shape, buckets));
        let words = Words::new(bytes / 8).ok_or(BuildError(BuildErrorKind::OutOfMemory { bytes }))?;
        Ok(Self { words, buckets, shape })
    }

    fn bucket_layout(&self) -> (BucketShape, usize) {
        (self.shape, self.buckets)
    }

    /// The last one is perhaps not full.
    fn words_of((shape, buckets): (BucketShape, usize)) -> usize {
        // In 128 bits, since the product may exceed `usize`. The quotient is at most `buckets`.
        (buckets as u128 * u128::from(shape.packed_bits())).div_ceil(64) as usize
    }

    /// Includes one more word, so that every word has a successor.
    fn bytes_of(layout: (BucketShape, usize)) -> usize {
        8 * (Self::words_of(layout) + 1)
    }

    /// Fails if a bucket has a number that no sequence has, or there is a bit after the last
    /// bucket. (Fingerprints of a bucket with the same sorted bits may be in any order.)
    fn check(&self) -> Result<(), SnapshotErrorKind> {
        let (limit, lows) = (self.shape.sequences(), self.shape.slots * self.shape.low_bits());
        let sequences = (0..self.buckets).map(|bucket| self.get(bucket) >> lows);
        if let Some((bucket, sequence)) = (0..).zip(sequences).find(|(_, sequence)| *sequence >= limit) {
            let problem = format!("bucket {bucket} has sequence {sequence}, which is not below {limit}");
            return Err(SnapshotErrorKind::Invalid(problem));
        }
        let (word, shift) = self.bit(self.buckets);
        match self.words[word] >> shift << shift {
            0 => Ok(()),
            bits => Err(SnapshotErrorKind::UnusedBits {
                word: word as u64,
                bits,
            }),
        }
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.words[..Self::words_of(self.bucket_layout())].iter().copied()
    }

    fn store(&mut self, first: usize, words: impl Iterator<Item = u64>) {
        for (word, value) in self.words[first..].iter_mut().zip(words) {
            *word = value;
        }
    }

    /// Nothing changes.
    fn hold(&self) -> impl Sized {}

    fn occupied(&self) -> (usize, usize) {
        let occupied = |bucket| self.shape.occupied(bucket) as usize;
        let all = self.unpacked().map(occupied).sum();
        (all, all)
    }

    fn copies(&self, address: &CuckooAddress) -> usize {
        let (shape, spread) = (self.shape, self.shape.spread(address.fingerprint));
        let in_bucket = |bucket| shape.count(unpack_bucket(shape, self.get(bucket)), spread);
        address.buckets().map(|bucket| in_bucket(bucket) as usize).iter().sum()
    }
}

impl<S> Filter<Cuckoo, S> {
    /// A read-only copy that takes 5% to 19% less memory. Fails if the allocation fails.
    ///
    /// ```
    /// let builder = lanebloom::CuckooFilter::builder().expected_keys(100_000);
    /// let filter = builder.fingerprint_bits(16).build()?;
    /// filter.insert_all(0..100_000u32)?;
    /// let compact = filter.to_compact()?;
    /// assert!((0..100_000u32).all(|key| compact.contains(&key)));
    /// assert!(compact.bits_per_key() < filter.bits_per_key() - 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_compact(&self) -> Result<CompactCuckoo<S>, BuildError>
    where
        S: Clone,
    {
        let Slotted { table, expected_keys } = &self.engine;
        let _held = table.hold();
        let engine = Slotted {
            table: Packed::pack(table.bucket_layout(), table.words())?,
            expected_keys: *expected_keys,
        };
        Ok(Filter::of(engine, self.hasher.clone()))
    }
}

impl<S> Filter<Compact, S> {
    /// A mutable filter with the same keys. Fails if the allocation fails.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_all(["a", "b"])?;
    /// let back = filter.to_compact()?.to_filter()?;
    /// assert!(back.remove("a") && back.contains("b") && back.len() == 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<CuckooFilter<S>, BuildError>
    where
        S: Clone,
    {
        let Slotted { table, expected_keys } = &self.engine;
        let packed = table;
        let mut table = CuckooTable::new(packed.bucket_layout())?;
        table.store(0, packed.unpacked());
        let engine = Slotted {
            table,
            expected_keys: *expected_keys,
        };
        Ok(Filter::of(engine, self.hasher.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parts::slots::random;
    use alloc::vec::Vec;

    /// Every sequence has a number of its own, without gaps, and comes back from it.
    #[test]
    fn sequences_are_numbered() {
        fn each(shape: BucketShape, highs: &mut [u8], from: usize, least: u8, seen: &mut [bool]) {
            if from == highs.len() {
                let number = rank(highs);
                assert!(!core::mem::replace(&mut seen[number as usize], true), "{highs:?}");
                let back = unrank(shape, number);
                assert_eq!(back >> (4 * from), 0);
                assert!(
                    (0..from).all(|i| back >> (4 * i) & 15 == u32::from(highs[i])),
                    "{highs:?}"
                );
                return;
            }
            for high in least..16 {
                highs[from] = high;
                each(shape, highs, from + 1, high, seen);
            }
        }
        for (shape, sequences) in BucketShape::ALL.into_iter().rev().zip([816, 3876, 15_504, 54_264]) {
            let slots = shape.slots as usize;
            let mut seen = alloc::vec![false; sequences];
            each(shape, &mut [0; 6][..slots], 0, 0, &mut seen);
            assert!(seen.iter().all(|&seen| seen));
            assert!(sequences <= 1 << (2 * slots + 4));
        }
    }

    /// The same fingerprints come back, for buckets of every fill.
    #[test]
    fn buckets_are_packed_and_unpacked() {
        for shape in BucketShape::ALL {
            let mut state = 7u64;
            let of_fill = |fill: usize| {
                let add = |bucket, shift| bucket | shape.fingerprint(random(&mut state) >> 32) << shift;
                shape.shifts().take(fill).fold(0, add)
            };
            let mut buckets: Vec<u64> = (0..2000).map(|i| i % 7).map(of_fill).collect();
            buckets.extend([0, shape.spread(shape.fingerprints()), shape.spread(1)]);
            let packed = Packed::pack((shape, buckets.len()), buckets.iter().copied()).unwrap();
            for (i, bucket) in buckets.iter().enumerate() {
                let sorted = |bucket| {
                    let fingerprint = |shift| shape.fingerprint_at(bucket, shift);
                    let mut fingerprints: Vec<u64> = shape.shifts().map(fingerprint).collect();
                    fingerprints.sort_unstable();
                    fingerprints
                };
                let back = unpack_bucket(shape, packed.get(i));
                assert_eq!(sorted(back), sorted(*bucket), "bucket {i}");
                let other = (i * 7) % buckets.len();
                for own in sorted(*bucket).into_iter().filter(|&own| own != 0) {
                    let near = own ^ 1 << (own % u64::from(shape.fingerprint_bits));
                    for fingerprint in [own, near] {
                        for (first, second) in [(i, other), (other, i), (i, i)] {
                            let has = |i: usize| sorted(buckets[i]).contains(&fingerprint);
                            let address = CuckooAddress {
                                fingerprint,
                                first,
                                second,
                            };
                            assert_eq!(packed.holds(&address), has(first) || has(second));
                        }
                    }
                }
            }
        }
    }
}
