//! One layer of the chain: buckets of fingerprints, one byte each, as the module has them in its
//! `cuckoo.c`. The functions of that file have their names here in the comments.

use lanebloom::BuildError;
use lanebloom::internal::{Hint, Words};

/// A key's fingerprint, and two numbers that give its buckets.
#[derive(Clone, Copy, Default)]
pub(super) struct RedisAddress {
    /// 1 to 255; 0 is an empty slot.
    fingerprint: u8,
    first: u64,
    second: u64,
}

impl RedisAddress {
    /// `getLookupParams`.
    #[inline(always)]
    pub(super) fn of(hash: u64) -> Self {
        Self::at((hash % 255 + 1) as u8, hash)
    }

    /// The address of a fingerprint in bucket `first`. (A layer takes `first` modulo its number of
    /// buckets.)
    #[inline(always)]
    fn at(fingerprint: u8, first: u64) -> Self {
        let second = other(fingerprint, first);
        Self {
            fingerprint,
            first,
            second,
        }
    }
}

/// `getAltHash`.
#[inline(always)]
fn other(fingerprint: u8, bucket: u64) -> u64 {
    bucket ^ (u64::from(fingerprint).wrapping_mul(0x5bd1_e995))
}

pub(super) struct CuckooLayer {
    /// `buckets * size` slots, and zeros up to a whole word.
    words: Words<u64>,
    /// A power of two.
    buckets: usize,
    /// Slots of a bucket.
    size: usize,
}

impl CuckooLayer {
    pub(super) fn new(buckets: usize, size: usize) -> Result<Self, BuildError> {
        debug_assert!(buckets.is_power_of_two());
        let bytes = buckets * size;
        let words = Words::new(bytes.div_ceil(8)).ok_or(BuildError::out_of_memory(bytes))?;
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
    pub(super) fn holds(&self, address: RedisAddress) -> bool {
        let holds = |bucket| {
            self.bucket(bucket)
                .iter()
                .fold(false, |any, fingerprint| any | (*fingerprint == address.fingerprint))
        };
        holds(address.first) | holds(address.second)
    }

    /// Prefetches the key's buckets. (One that reaches into the next line is rare with few slots.)
    #[inline(always)]
    pub(super) fn prefetch(&self, address: RedisAddress, hint: Hint) {
        for bucket in [address.first, address.second] {
            hint.prefetch(self.bytes().as_ptr().wrapping_add(self.slot(bucket)));
        }
    }

    /// `subFilterCount`: if both buckets are the same one, its slots count twice.
    pub(super) fn count(&self, address: RedisAddress) -> u64 {
        let count = |bucket| {
            self.bucket(bucket)
                .iter()
                .filter(|fingerprint| **fingerprint == address.fingerprint)
                .count() as u64
        };
        count(address.first) + count(address.second)
    }

    /// Replaces the first `from` in the key's buckets by `to`; returns whether there was one.
    fn replace(&mut self, address: RedisAddress, from: u8, to: u8) -> bool {
        [address.first, address.second].into_iter().any(|bucket| {
            let slot = self
                .bucket_mut(bucket)
                .iter_mut()
                .find(|fingerprint| **fingerprint == from);
            slot.map(|fingerprint| *fingerprint = to).is_some()
        })
    }

    /// Puts the fingerprint into a free slot of its buckets, if there is one:
    /// `Filter_FindAvailable`.
    pub(super) fn put(&mut self, address: RedisAddress) -> bool {
        self.replace(address, 0, address.fingerprint)
    }

    /// Removes the fingerprint once: `Filter_Delete`.
    pub(super) fn take(&mut self, address: RedisAddress) -> bool {
        self.replace(address, address.fingerprint, 0)
    }

    /// Puts the fingerprint in the place of another one, that one into its other bucket, and so on,
    /// until one finds a free slot: `Filter_KOInsert`. If none does, everything is as before.
    pub(super) fn kick(&mut self, address: RedisAddress, max_iterations: u16) -> bool {
        let (mut fingerprint, mut victim, mut bucket) = (address.fingerprint, 0, address.first);
        for _ in 0..max_iterations {
            core::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
            bucket = other(fingerprint, bucket);
            if let Some(free) = self
                .bucket_mut(bucket)
                .iter_mut()
                .find(|fingerprint| **fingerprint == 0)
            {
                *free = fingerprint;
                return true;
            }
            victim = (victim + 1) % self.size;
        }
        for _ in 0..max_iterations {
            victim = (victim + self.size - 1) % self.size;
            bucket = other(fingerprint, bucket);
            core::mem::swap(&mut self.bucket_mut(bucket)[victim], &mut fingerprint);
        }
        false
    }

    /// Moves every fingerprint into a free slot of an older layer of the chain; returns whether
    /// this one is empty then: `CuckooFilter_CompactSingle`.
    ///
    /// An older filter has as many buckets or fewer, so a bucket's number here determines the
    /// fingerprint's buckets there.
    pub(super) fn move_into(&mut self, older: &mut [Self]) -> bool {
        let size = self.size;
        let mut emptied = true;
        for (slot, fingerprint) in self
            .bytes_mut()
            .iter_mut()
            .enumerate()
            .filter(|(_, fingerprint)| **fingerprint != 0)
        {
            let address = RedisAddress::at(*fingerprint, (slot / size) as u64);
            if older.iter_mut().any(|layer| layer.put(address)) {
                *fingerprint = 0;
            } else {
                emptied = false;
            }
        }
        emptied
    }

    /// Slots with a fingerprint.
    pub(super) fn taken(&self) -> usize {
        self.bytes().iter().filter(|fingerprint| **fingerprint != 0).count()
    }

    /// The chance that none of the slots in two random buckets has the fingerprint of a random key.
    pub(super) fn absent(&self) -> f64 {
        let fill = self.taken() as f64 / self.bytes().len() as f64;
        // Without `powi`, which needs `std`.
        (0..2 * self.size).map(|_| 1.0 - fill / 255.0).product()
    }
}

impl PartialEq for CuckooLayer {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.bytes() == other.bytes()
    }
}
