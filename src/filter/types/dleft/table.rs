//! The shared buckets of the d-left filter: find a key's slot, increment and decrement its count,
//! make a slot. Also the arithmetic of a word of four slots. Takes hashes from `slots.rs`. This
//! file argues about races.
//!
//! # Addresses
//!
//! A hash has a bucket `q` and a remainder `r`, the highest 14 bits of its second product. In
//! subtable `i` the key's bucket is `(q + step_i(r)) mod buckets`, and its remainder again `r`.
//! Each of the four is a permutation of the pairs `(q, r)`: if two keys have the same bucket and
//! remainder in one subtable, they have the same in all. So a slot with a key's remainder in any
//! of its buckets is the key's own, and an operation never decrements the count of another key.
//! (Bonomi et al. say why this takes a permutation: it does not hold with four independent
//! hashes.)
//!
//! # A slot
//!
//! | bits | meaning |
//! |---|---|
//! | 0 to 13 | the remainder |
//! | 14 and 15 | the count of the key, 1 to 3; 0 is an empty slot, whose remainder is 0 too |
//!
//! A key has at most one slot, which does not move while the key is there: a thread makes a slot
//! under the [stripe](super::super::stripes) of its remainder. `docs/proofs/SLOTS.md` has the
//! argument.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `find` | load `Acquire` | the `Release` of the key's inserter, whose earlier work is then visible |
//! | `make`, `count_up` | compare-exchange `Release` | `find` |
//! | `count_down` | compare-exchange `Release` | no thread relies on seeing a removal; an operation on the same word keeps earlier ones published |
//! | `words` | load `Relaxed`, then a fence | one barrier for the whole copy |
//! | `store` | store `Relaxed` | borrowed mutably: no other thread has the slots, and what hands them on orders them |

use crate::codec::Kind;
use crate::error::{InsertErrorKind, SnapshotErrorKind};
use crate::filter::parts::slots::{Refused, Slots};
use crate::filter::parts::stripes::Stripes;
use crate::geometry::pattern::{block, fingerprint_product, scale};
use crate::geometry::rates;
use crate::kernel::plan::TILE;
use crate::words::arrays::as_chunks;
use crate::words::bits::Hint;
use crate::words::memory::Words;
use crate::words::sync::{AtomicU64, Ordering};
use alloc::format;

/// Subtables: a key has a bucket in each.
const SUBTABLES: usize = 4;
/// Words of a bucket, and slots of a word.
const BUCKET_WORDS: usize = 2;
const WORD_SLOTS: u32 = 4;
/// Bits of a remainder.
const REMAINDER_BITS: u32 = 14;
/// Words of a key's buckets: one bucket in each subtable.
const WORDS_PER_KEY: usize = SUBTABLES * BUCKET_WORDS;
/// Cells of a key's buckets.
const SLOTS_PER_KEY: usize = WORDS_PER_KEY * WORD_SLOTS as usize;

/// The largest count of a slot.
const MAX_COUNT: u64 = 3;

/// The lowest bit of every slot of a word, and the 14 of its remainder.
const ONES: u64 = 0x0001_0001_0001_0001;
const REMAINDERS: u64 = 0x3fff * ONES;
/// The bit after the remainder.
const MARKS: u64 = 0x4000 * ONES;
/// A count of 1.
const ONE: u64 = 1 << REMAINDER_BITS;

/// The mark in every occupied slot.
#[inline(always)]
const fn occupied(word: u64) -> u64 {
    (word | word >> 1) & MARKS
}

/// The mark in every occupied slot with this remainder.
#[inline(always)]
const fn matches(word: u64, remainder: u64) -> u64 {
    let differences = (word ^ (remainder * ONES)) & REMAINDERS;
    // The sum has the mark where there is a difference, and never a carry into the next slot.
    !(differences + REMAINDERS) & occupied(word)
}

/// The position of the first slot with a mark: that of its lowest bit.
#[inline(always)]
const fn shift(marks: u64) -> u32 {
    marks.trailing_zeros() - REMAINDER_BITS
}

/// The slots of a d-left filter.
pub struct DLeftTable {
    words: Words<AtomicU64>,
    stripes: Stripes,
    buckets: usize,
}

/// A key's remainder, and the buckets that its slot may be in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DLeftAddress {
    remainder: u64,
    /// The first word of its bucket in each subtable.
    words: [usize; SUBTABLES],
}

/// A slot that was found: its word, the word's value, and the slot's lowest bit in it.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    word: u64,
    shift: u32,
}

impl Found {
    fn count(self) -> u64 {
        self.word >> self.shift >> REMAINDER_BITS & MAX_COUNT
    }
}

impl DLeftTable {
    /// Calls `each(index, word)` for every word of the key's buckets, in order.
    #[inline(always)]
    fn each_word(&self, address: &DLeftAddress, mut each: impl FnMut(usize, u64)) {
        for first in address.words {
            for at in first..first + BUCKET_WORDS {
                each(at, self.words[at].load(Ordering::Acquire));
            }
        }
    }

    #[inline(always)]
    fn find(&self, address: &DLeftAddress) -> Option<Found> {
        let mut found = None;
        self.each_word(address, |at, word| {
            let marks = matches(word, address.remainder);
            if marks != 0 {
                found = Some(Found {
                    at,
                    word,
                    shift: shift(marks),
                });
            }
        });
        found
    }

    /// Replaces the word of `found`, if it still has its value; returns whether it had.
    #[inline(always)]
    fn change(&self, found: Found, to: u64) -> bool {
        let word = &self.words[found.at];
        word.compare_exchange(found.word, to, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Makes a slot for the key in the emptiest of its buckets, the first of several. `None` if the
    /// key has a slot.
    fn make(&self, address: &DLeftAddress) -> Option<Result<(), Refused>> {
        let _held = self.stripes.hold(address.remainder);
        loop {
            let mut all = [0; WORDS_PER_KEY];
            let (mut len, mut has_one) = (0, false);
            self.each_word(address, |_, word| {
                has_one |= matches(word, address.remainder) != 0;
                all[len] = word;
                len += 1;
            });
            if has_one {
                return None;
            }
            let (buckets, _) = as_chunks::<BUCKET_WORDS, _>(&all);
            let keys = buckets
                .iter()
                .map(|words| words.iter().map(|word| occupied(*word).count_ones()).sum::<u32>());
            // `min_by_key` takes the first of equal ones: the leftmost, as the name says.
            let (subtable, keys) = keys
                .enumerate()
                .min_by_key(|&(_, keys)| keys)
                .expect("there are subtables");
            if keys == BUCKET_WORDS as u32 * WORD_SLOTS {
                return Some(Err(Refused::Full));
            }
            let words = buckets[subtable];
            let i = words
                .iter()
                .position(|&word| occupied(word) != MARKS)
                .expect("a bucket with a free slot has a word with one");
            let shift = shift(!occupied(words[i]) & MARKS);
            let found = Found {
                at: address.words[subtable] + i,
                word: words[i],
                shift,
            };
            if self.change(found, found.word | (ONE | address.remainder) << shift) {
                return Some(Ok(()));
            }
        }
    }

    /// Fails unless each key of these addresses has exactly one slot.
    fn check_single(&self, addresses: &[DLeftAddress]) -> Result<(), SnapshotErrorKind> {
        for address in addresses {
            let remainder = address.remainder;
            let mut slots = 0;
            self.each_word(address, |_, word| slots += matches(word, remainder).count_ones());
            if slots != 1 {
                let bucket = (address.words[0] / BUCKET_WORDS) as u64;
                return Err(SnapshotErrorKind::Invalid(format!(
                    "the key of bucket {bucket} with remainder {remainder:#x} has {slots} slots, more than the limit of 1"
                )));
            }
        }
        Ok(())
    }

    /// The bucket in the first subtable of the key that has this remainder and this bucket in the
    /// given subtable.
    fn first_bucket(&self, subtable: usize, bucket: usize, remainder: u64) -> usize {
        let step = self.step(subtable, mix(remainder));
        if bucket >= step {
            bucket - step
        } else {
            bucket + self.buckets - step
        }
    }

    /// The distance of a key's bucket in this subtable from its bucket in the first one.
    #[inline(always)]
    fn step(&self, subtable: usize, mixed: u64) -> usize {
        match subtable {
            0 => 0,
            _ => scale(mixed.rotate_left(21 * (subtable as u32 - 1)), self.buckets),
        }
    }

    #[inline(always)]
    fn address_at(&self, first: usize, remainder: u64) -> DLeftAddress {
        let mixed = mix(remainder);
        let mut words = [0; SUBTABLES];
        for (i, word) in words.iter_mut().enumerate() {
            let step = self.step(i, mixed);
            let bucket = if first + step >= self.buckets {
                first + step - self.buckets
            } else {
                first + step
            };
            *word = BUCKET_WORDS * (i * self.buckets + bucket);
        }
        DLeftAddress { remainder, words }
    }
}

impl Slots for DLeftTable {
    const TYPE: &'static str = "DLeftFilter";
    const KIND: Kind = Kind::DLeft;
    const FINGERPRINTS: &'static str = "remainders";
    const LINES: usize = SUBTABLES;
    /// A bucket in each subtable.
    const WORDS: usize = WORDS_PER_KEY;
    const MULTIPLE: usize = 1;
    type Address = DLeftAddress;
    type Shape = ();
    const SHAPES: &'static [()] = &[()];

    fn fingerprint_bits(_: ()) -> u32 {
        REMAINDER_BITS
    }

    fn slots_of(_: ()) -> usize {
        SLOTS_PER_KEY
    }

    fn max_copies(_: ()) -> usize {
        MAX_COUNT as usize
    }

    /// If keys only come, the first key without room comes at 88%, in filters of 32 and of 256
    /// million slots (the worst of 400 small ones: 90%). If keys come and go, the buckets get less
    /// even: in a filter of half a million slots, 3.4 million keys replaced others, and 550 of them
    /// found no room at a load of 85%, one at 82%, and none at 80%.
    fn planned_load(_: ()) -> f64 {
        0.8
    }

    /// An absent key's four buckets hold `32 * load` keys, and each has the same remainder with a
    /// chance of `1 / 2^14`.
    fn rate_at(_: (), load: f64) -> f64 {
        rates::of_distinct_slots(SLOTS_PER_KEY, load, 1 << REMAINDER_BITS)
    }

    fn new(_: (), words: Words<AtomicU64>, stripes: Stripes) -> Self {
        Self {
            buckets: words.len() / WORDS_PER_KEY,
            words,
            stripes,
        }
    }

    fn shape(&self) {}

    /// Fails if an empty slot has a remainder, which would mix with a key's. Fails if a key has
    /// several slots, since one would stay when the key is removed.
    fn check(&self) -> Result<(), SnapshotErrorKind> {
        for (at, word) in self.words().enumerate() {
            let occupied = occupied(word);
            // Below each mark all bits of the remainder.
            let bits = word & REMAINDERS & !(occupied - (occupied >> REMAINDER_BITS));
            if bits != 0 {
                let word = at as u64;
                return Err(SnapshotErrorKind::UnusedBits { word, bits });
            }
        }
        // Looks up every key, many at a time. This takes the most time of reading a filter.
        let mut tile = [DLeftAddress::default(); TILE];
        let mut len = 0;
        let buckets = (0..SUBTABLES).flat_map(|subtable| (0..self.buckets).map(move |bucket| (subtable, bucket)));
        let words = buckets.flat_map(|bucket| [bucket; BUCKET_WORDS]).zip(self.words());
        for ((subtable, bucket), word) in words {
            let mut marks = occupied(word);
            while marks != 0 {
                let remainder = word >> shift(marks) & ((1 << REMAINDER_BITS) - 1);
                marks &= marks - 1;
                tile[len] = self.address_at(self.first_bucket(subtable, bucket, remainder), remainder);
                self.prefetch(&tile[len], Hint::L2);
                len += 1;
                if len == TILE {
                    self.check_single(&tile)?;
                    len = 0;
                }
            }
        }
        self.check_single(&tile[..len])
    }

    fn memory(&self) -> (&[AtomicU64], &Stripes) {
        (&self.words, &self.stripes)
    }

    fn occupied(&self) -> (usize, usize) {
        let mut sums = (0, 0);
        for word in self.words() {
            sums.0 += occupied(word).count_ones() as usize;
            let counts = (word >> REMAINDER_BITS) & (MAX_COUNT * ONES);
            sums.1 += (counts & ONES).count_ones() as usize + 2 * (counts & (2 * ONES)).count_ones() as usize;
        }
        crate::words::bits::acquire();
        sums
    }

    #[inline(always)]
    fn address(&self, hash: u64) -> DLeftAddress {
        self.address_at(
            block(hash, self.buckets),
            fingerprint_product(hash) >> (64 - REMAINDER_BITS),
        )
    }

    #[inline(always)]
    fn prefetch(&self, address: &DLeftAddress, hint: Hint) {
        for word in address.words {
            hint.prefetch(self.words.as_ptr().wrapping_add(word));
        }
    }

    /// Reads all buckets, whatever the first ones answer: a branch on them would be mispredicted as
    /// often as the answer varies.
    #[inline(always)]
    fn holds(&self, address: &DLeftAddress) -> bool {
        let mut all = 0;
        self.each_word(address, |_, word| all |= matches(word, address.remainder));
        all != 0
    }

    fn copies(&self, address: &DLeftAddress) -> usize {
        self.find(address).map_or(0, Found::count) as usize
    }

    fn insert(&self, address: &DLeftAddress) -> Result<(), Refused> {
        // Each turn after the first another thread has changed one of these words.
        loop {
            let Some(found) = self.find(address) else {
                match self.make(address) {
                    Some(result) => return result,
                    None => continue,
                }
            };
            if found.count() == MAX_COUNT {
                return Err(Refused::Copies);
            }
            if self.change(found, found.word + (ONE << found.shift)) {
                return Ok(());
            }
        }
    }

    /// Decrements the key's slot, and empties it at 0.
    fn remove(&self, address: &DLeftAddress) -> bool {
        // Each turn after the first another thread has changed one of these words.
        while let Some(found) = self.find(address) {
            let to = match found.count() {
                1 => found.word & !(0xffff << found.shift),
                _ => found.word - (ONE << found.shift),
            };
            if self.change(found, to) {
                return true;
            }
        }
        false
    }

    fn full(expected_keys: usize) -> InsertErrorKind {
        InsertErrorKind::DLeftFull { expected_keys }
    }
}

/// Spreads remainders over all 64 bits, like SplitMix64's output function (with other shifts).
#[inline(always)]
const fn mix(remainder: u64) -> u64 {
    let z = (remainder + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parts::slots::{empty, random};

    /// Compared with one slot after another, for words of every kind.
    #[test]
    fn slots_are_found() {
        let remainders = [0, 1, 2, 0x2000, 0x3ffe, 0x3fff];
        let mut state = 1u64;
        for _ in 0..50_000 {
            let slots: [(u64, u64); 4] = core::array::from_fn(|_| {
                let number = random(&mut state);
                match number >> 40 & 3 {
                    0 => (0, 0),
                    count => (remainders[(number >> 33) as usize % 6], count),
                }
            });
            let word = slots
                .iter()
                .rev()
                .fold(0, |word, (remainder, count)| word << 16 | count << 14 | remainder);
            for (i, slot) in slots.iter().enumerate() {
                assert_eq!(occupied(word) >> (16 * i) & 0xffff != 0, slot.1 > 0);
            }
            for remainder in remainders.into_iter().chain([3, 0x1fff]) {
                let marks = matches(word, remainder);
                for (i, slot) in slots.iter().enumerate() {
                    assert_eq!(marks >> (16 * i) & 0xffff != 0, slot.0 == remainder && slot.1 > 0);
                }
                if let Some(first) = slots.iter().position(|slot| slot.0 == remainder && slot.1 > 0) {
                    let found = Found {
                        at: 0,
                        word,
                        shift: shift(marks),
                    };
                    assert_eq!((found.shift as usize, found.count()), (16 * first, slots[first].1));
                }
            }
        }
    }

    /// Two pairs of bucket and remainder agree in a subtable only if they agree in all, and every
    /// pair occurs: permutations.
    #[test]
    fn each_subtable_is_a_permutation() {
        let buckets = 7;
        let slots: DLeftTable = empty((), buckets).unwrap();
        let mut seen = alloc::vec![false; (SUBTABLES * buckets) << REMAINDER_BITS];
        for q in 0..buckets {
            for r in 0..1u64 << REMAINDER_BITS {
                let address = slots.address_at(q, r);
                assert_eq!(address.remainder, r);
                assert_eq!(address.words[0], BUCKET_WORDS * q);
                for word in address.words {
                    let pair = (word / BUCKET_WORDS) << REMAINDER_BITS | r as usize;
                    assert!(!core::mem::replace(&mut seen[pair], true));
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen));
    }
}
