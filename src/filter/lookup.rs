//! Lookups of many keys: hashes or keys in; out come flags, a bitmap, or the positions of absent keys. What
//! [`ConcurrentBloom`](super::concurrent::ConcurrentBloom), whose words others set meanwhile, and
//! [`BloomView`](crate::BloomView), whose words are a snapshot's bytes, have in common.

use crate::batch::STRETCH;
use crate::bits::{self, Lines, Load};
use crate::bulk::Source;
use crate::filter::concurrent::{Keys, assert_bitmap_length};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, assert_same_length};
use crate::simd::Lookups;

/// A filter that is asked. Every answer comes after an `Acquire`, which pairs with the `Release` of who set the bits; of a
/// snapshot's bits nobody does, and it is nothing, or one barrier for up to 4096 keys.
pub(super) struct Lookup<'a, T: 'static, S> {
    pub(super) lines: Lines<'a, T>,
    pub(super) lookups: &'a Lookups<T>,
    pub(super) hasher: &'a S,
}

impl<T: Load, S: KeyHasher> Lookup<'_, T, S> {
    pub(super) fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.contains_stretches(hashes, |at, found| {
            self.lookups.unpack(found, &mut out[at..hashes.len().min(at + STRETCH)]);
        });
    }

    pub(super) fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        self.lookups.contains_hashes(self.lines, hashes, out);
        bits::acquire();
    }

    pub(super) fn absent_hashes(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        self.contains_stretches(hashes, |at, found| {
            for (at, found) in (at..hashes.len()).step_by(64).zip(found) {
                let mut absent = !found & u64::MAX >> (64 - (hashes.len() - at).min(64));
                while absent != 0 {
                    each(at + absent.trailing_zeros() as usize);
                    absent &= absent - 1;
                }
            }
        });
    }

    pub(super) fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.hash_stretches(keys, |at, hashes| {
            self.contains_hashes(hashes, &mut out[at..at + hashes.len()]);
        });
    }

    pub(super) fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        self.hash_stretches(keys, |at, hashes| {
            self.contains_hashes_bitmap(hashes, &mut out[at / 64..][..hashes.len().div_ceil(64)]);
        });
    }

    pub(super) fn absent_batch<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        self.hash_stretches(keys, |at, hashes| self.absent_hashes(hashes, |i| each(at + i)));
    }

    /// Looks hashes up; calls `each` with where a stretch of them begins and the bitmap of its answers.
    fn contains_stretches(&self, hashes: &[u64], mut each: impl FnMut(usize, &[u64])) {
        let mut look_up = |at, hashes: &[u64], bitmap: &mut [u64]| {
            self.lookups.contains_hashes(self.lines, hashes, bitmap);
            bits::acquire();
            each(at, bitmap);
        };
        // To clear the space for a whole stretch takes longer than to work on a few keys.
        if hashes.len() <= 64 {
            look_up(0, hashes, &mut [0][..hashes.len().min(1)]);
            return;
        }
        let mut bitmap = [0; STRETCH / 64];
        for (i, hashes) in hashes.chunks(STRETCH).enumerate() {
            look_up(i * STRETCH, hashes, &mut bitmap[..hashes.len().div_ceil(64)]);
        }
    }

    /// Hashes keys; calls `each` with where a stretch of them begins and its hashes.
    fn hash_stretches<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize, &[u64])) {
        let mut at = 0;
        Keys {
            hasher: self.hasher,
            keys,
        }
        .each(0..keys.len(), |hashes| {
            each(at, hashes);
            at += hashes.len();
        });
    }
}
