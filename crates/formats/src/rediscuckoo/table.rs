//! One filter of the chain: buckets of fingerprints, one byte each, as the module has them in its
//! `cuckoo.c`. The functions of that file have their names here in the comments.

use lanebloom::BuildError;
use lanebloom::internal::{Hint, Words, out_of_memory, prefetch};

/// A key's fingerprint, and two numbers that its buckets follow from.
#[derive(Clone, Copy, Default)]
pub(super) struct Fingerprint {
    /// 1 to 255; 0 is an empty slot.
    tag: u8,
    first: u64,
    second: u64,
}

impl Fingerprint {
    /// `getLookupParams`.
    #[inline(always)]
    pub(super) fn of(hash: u64) -> Self {
        Self::at((hash % 255 + 1) as u8, hash)
    }

    /// A fingerprint that is in bucket `first`, or in one that a multiple of a power of two is
    /// between.
    #[inline(always)]
    fn at(tag: u8, first: u64) -> Self {
        let second = other(tag, first);
        Self { tag, first, second }
    }
}

/// `getAltHash`.
#[inline(always)]
fn other(tag: u8, bucket: u64) -> u64 {
    bucket ^ (u64::from(tag).wrapping_mul(0x5bd1_e995))
}

pub(super) struct Table {
    /// `buckets * size` slots, and zeros up to a whole word.
    words: Words<u64>,
    /// A power of two.
    buckets: usize,
    /// Slots of a bucket.
    size: usize,
}

impl Table {
    pub(super) fn new(buckets: usize, size: usize) -> Result<Self, BuildError> {
        debug_assert!(buckets.is_power_of_two());
        let bytes = buckets * size;
        let words = Words::new(bytes.div_ceil(8)).ok_or(out_of_memory(bytes))?;
        Ok(Self { words, buckets, size })
    }

    /// The slots.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.words.bytes()[..self.buckets * self.size]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let slots = self.buckets * self.size;
        &mut self.words.bytes_mut()[..slots]
    }

    /// The number of the first slot of a bucket: `SubCF_GetIndex`.
    #[inline(always)]
    fn slot(&self, bucket: u64) -> usize {
        (bucket as usize & (self.buckets - 1)) * self.size
    }

    #[inline(always)]
    fn bucket(&self, bucket: u64) -> &[u8] {
        &self.bytes()[self.slot(bucket)..][..self.size]
    }

    fn bucket_mut(&mut self, bucket: u64) -> &mut [u8] {
        let (slot, size) = (self.slot(bucket), self.size);
        &mut self.bytes_mut()[slot..][..size]
    }

    /// `Filter_Find`.
    #[inline(always)]
    pub(super) fn holds(&self, key: Fingerprint) -> bool {
        let holds = |bucket| {
            self.bucket(bucket)
                .iter()
                .fold(false, |any, tag| any | (*tag == key.tag))
        };
        holds(key.first) | holds(key.second)
    }

    /// Prefetches the key's buckets. (One that reaches into the next line is rare with few slots.)
    #[inline(always)]
    pub(super) fn prefetch(&self, key: Fingerprint, hint: Hint) {
        for bucket in [key.first, key.second] {
            prefetch(self.bytes().as_ptr().wrapping_add(self.slot(bucket)), hint);
        }
    }

    /// `subFilterCount`: if both buckets are the same one, its slots count twice.
    pub(super) fn count(&self, key: Fingerprint) -> u64 {
        let count = |bucket| self.bucket(bucket).iter().filter(|tag| **tag == key.tag).count() as u64;
        count(key.first) + count(key.second)
    }

    /// Replaces the first `from` in the key's buckets by `to`; answers whether there was one.
    fn replace(&mut self, key: Fingerprint, from: u8, to: u8) -> bool {
        [key.first, key.second].into_iter().any(|bucket| {
            let slot = self.bucket_mut(bucket).iter_mut().find(|tag| **tag == from);
            slot.map(|tag| *tag = to).is_some()
        })
    }

    /// Puts the fingerprint into a free slot of its buckets, if there is one:
    /// `Filter_FindAvailable`.
    pub(super) fn put(&mut self, key: Fingerprint) -> bool {
        self.replace(key, 0, key.tag)
    }

    /// Removes the fingerprint once: `Filter_Delete`.
    pub(super) fn take(&mut self, key: Fingerprint) -> bool {
        self.replace(key, key.tag, 0)
    }

    /// Puts the fingerprint in the place of another one, that one into its other bucket, and so on,
    /// until one finds a free slot: `Filter_KOInsert`. If none does, everything is as before.
    pub(super) fn kick(&mut self, key: Fingerprint, max_iterations: u16) -> bool {
        let (mut tag, mut victim, mut bucket) = (key.tag, 0, key.first);
        for _ in 0..max_iterations {
            core::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut tag);
            bucket = other(tag, bucket);
            if let Some(free) = self.bucket_mut(bucket).iter_mut().find(|tag| **tag == 0) {
                *free = tag;
                return true;
            }
            victim = (victim + 1) % self.size;
        }
        for _ in 0..max_iterations {
            victim = (victim + self.size - 1) % self.size;
            bucket = other(tag, bucket);
            core::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut tag);
        }
        false
    }

    /// Moves every fingerprint into a free slot of an older filter of the chain; answers whether
    /// this one is empty then: `CuckooFilter_CompactSingle`.
    ///
    /// An older filter has as many buckets or fewer, so a bucket's number here determines the
    /// fingerprint's buckets there.
    pub(super) fn move_into(&mut self, older: &mut [Self]) -> bool {
        let size = self.size;
        let mut emptied = true;
        for (slot, tag) in self.bytes_mut().iter_mut().enumerate().filter(|(_, tag)| **tag != 0) {
            let key = Fingerprint::at(*tag, (slot / size) as u64);
            if older.iter_mut().any(|table| table.put(key)) {
                *tag = 0;
            } else {
                emptied = false;
            }
        }
        emptied
    }

    /// The chance that none of the slots in two random buckets has the fingerprint of a random key.
    pub(super) fn absent(&self) -> f64 {
        let taken = self.bytes().iter().filter(|tag| **tag != 0).count();
        let fill = taken as f64 / self.bytes().len() as f64;
        // Without `powi`, which needs `std`.
        (0..2 * self.size).map(|_| 1.0 - fill / 255.0).product()
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.bytes() == other.bytes()
    }
}
