//! Lookups of many keys: hashes or keys go in; flags, a bitmap, or the positions of absent keys
//! come out. [`ConcurrentBloom`](super::bloom::ConcurrentBloom), whose words other threads set
//! meanwhile, and [`BloomView`](crate::BloomView), whose words are a snapshot's bytes, share this
//! code.

use crate::bits::{self, Lines, Load};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, assert_same_length};
use crate::kernel::Lookups;
use crate::source::{Keys, Source, absent, answers, assert_bitmap_length, unpack_into};

/// A filter that answers lookups. Every answer comes after an `Acquire`, which pairs with the
/// `Release` of the thread that set the bits. No thread sets a snapshot's bits: for those the
/// `Acquire` is nothing, or one barrier for up to 4096 keys.
pub(super) struct Lookup<'a, T: 'static, S> {
    pub(super) lines: Lines<'a, T>,
    pub(super) lookups: &'a Lookups<T>,
    pub(super) hasher: &'a S,
}

impl<T: Load, S: KeyHasher> Lookup<'_, T, S> {
    pub(super) fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.each(&hashes, unpack_into(out));
    }

    pub(super) fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        self.look_up(hashes, out);
    }

    pub(super) fn for_each_absent_hash(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.each(&hashes, absent(hashes.len(), each));
    }

    pub(super) fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.each(&self.keys(keys), unpack_into(out));
    }

    pub(super) fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        let mut at = 0;
        self.keys(keys).each(0..keys.len(), |hashes| {
            self.look_up(hashes, &mut out[at / 64..][..hashes.len().div_ceil(64)]);
            at += hashes.len();
        });
    }

    pub(super) fn for_each_absent<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.each(&self.keys(keys), absent(keys.len(), each));
    }

    fn look_up(&self, hashes: &[u64], found: &mut [u64]) {
        self.lookups.contains_hashes(self.lines, hashes, found);
        bits::acquire();
    }

    fn each(&self, source: &impl Source, each: impl FnMut(usize, &[u64])) {
        answers(source, |hashes, found| self.look_up(hashes, found), each);
    }

    fn keys<'a, K: Funnel>(&'a self, keys: &'a [K]) -> Keys<'a, K, S> {
        Keys {
            hasher: self.hasher,
            keys,
        }
    }
}
