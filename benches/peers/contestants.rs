//! The operations of every contestant, and the contestants of the groups by filter size: ours,
//! other crates' filters, and the limit of any filter.

use crate::features::Library;
use fastbloom::AtomicBloomFilter;
use lanebloom::internal::Isa;
use lanebloom::{ConcurrentBloom, Hashed, bloom};
use lanebloom_formats::SplitBlockBloom;
use std::hash::BuildHasher;
use std::sync::RwLock;

/// A contestant: filters that take slices of keys. `u64` are either hashes or keys.
pub(crate) trait Peer<K = u64>: Send + Sync {
    fn name(&self) -> String;
    /// Whose code it is, if it is a library's.
    fn library(&self) -> Option<Library>;
    /// Inserts all; returns how many were new, if its inserts tell.
    fn insert(&self, keys: &[K]) -> Option<usize>;
    /// Looks all up; returns how many are found.
    fn contains(&self, keys: &[K]) -> usize;
    fn clear(&mut self);
    fn bytes(&self) -> usize;
    /// The number of threads that can fill it.
    fn writers(&self) -> usize {
        usize::MAX
    }
    /// Whether it is a filter: sized for the rate, which it keeps.
    fn keeps_rate(&self) -> bool {
        true
    }
}

pub(crate) fn count<K: Copy>(keys: &[K], test: impl Fn(K) -> bool) -> usize {
    keys.iter().filter(|&&key| test(key)).count()
}

pub(crate) struct Ours {
    pub(crate) filter: ConcurrentBloom,
    pub(crate) hashed: bool,
    pub(crate) isa: Isa,
    pub(crate) calls: Calls,
}

/// The calls by which one of our filters is asked.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Calls {
    Single,
    /// Single calls in a loop that is compiled for the CPU.
    Inlined,
    Batch,
}

impl Ours {
    pub(crate) fn new(bytes: usize, rate: f64, hashed: bool, isa: Isa, calls: Calls) -> Self {
        let filter = ConcurrentBloom::builder()
            .memory_budget(bytes)
            .false_positive_rate(rate)
            .build()
            .unwrap()
            .with_isa(isa);
        Self {
            filter,
            hashed,
            isa,
            calls,
        }
    }
}

impl Peer for Ours {
    fn name(&self) -> String {
        let calls = match self.calls {
            Calls::Single => "single calls",
            Calls::Inlined => "single calls, inlined",
            Calls::Batch => "batch",
        };
        format!("lanebloom, {calls}, {}", self.isa)
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Lanebloom)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        Some(match (self.hashed, self.calls) {
            (true, Calls::Single) => count(keys, |hash| self.filter.insert(&Hashed(hash))),
            (false, Calls::Single) => count(keys, |key| self.filter.insert(&key)),
            (true, Calls::Inlined) => {
                bloom::inlined(&self.filter, |filter| count(keys, |hash| filter.insert(&Hashed(hash))))
            }
            (false, Calls::Inlined) => bloom::inlined(&self.filter, |filter| count(keys, |key| filter.insert(&key))),
            (true, Calls::Batch) => keys
                .chunks(BATCH)
                .map(|hashes| self.filter.insert_batch(Hashed::slice(hashes)))
                .sum(),
            (false, Calls::Batch) => keys.chunks(BATCH).map(|keys| self.filter.insert_batch(keys)).sum(),
        })
    }
    fn contains(&self, keys: &[u64]) -> usize {
        match (self.hashed, self.calls) {
            (true, Calls::Single) => count(keys, |hash| self.filter.contains(&Hashed(hash))),
            (false, Calls::Single) => count(keys, |key| self.filter.contains(&key)),
            (true, Calls::Inlined) => bloom::inlined(&self.filter, |filter| {
                count(keys, |hash| filter.contains(&Hashed(hash)))
            }),
            (false, Calls::Inlined) => bloom::inlined(&self.filter, |filter| count(keys, |key| filter.contains(&key))),
            (hashed, Calls::Batch) => {
                let mut found = [false; BATCH];
                let batch = |keys: &[u64]| {
                    let found = &mut found[..keys.len()];
                    if hashed {
                        self.filter.contains_batch(Hashed::slice(keys), &mut *found);
                    } else {
                        self.filter.contains_batch(keys, &mut *found);
                    }
                    found.iter().filter(|&&found| found).count()
                };
                keys.chunks(BATCH).map(batch).sum()
            }
        }
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.memory_bytes()
    }
}

/// Keys per batch call.
pub(crate) const BATCH: usize = 1024;

pub(crate) struct Fast<S> {
    pub(crate) filter: AtomicBloomFilter<S>,
    pub(crate) hashed: bool,
    pub(crate) name: &'static str,
}

impl<S: BuildHasher + Send + Sync> Peer for Fast<S> {
    fn name(&self) -> String {
        self.name.into()
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Fastbloom)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        // fastbloom answers whether the key was there before.
        Some(if self.hashed {
            count(keys, |hash| !self.filter.insert_hash(hash))
        } else {
            count(keys, |key| !self.filter.insert(&key))
        })
    }
    fn contains(&self, keys: &[u64]) -> usize {
        if self.hashed {
            count(keys, |hash| self.filter.contains_hash(hash))
        } else {
            count(keys, |key| self.filter.contains(&key))
        }
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.num_bits() / 8
    }
}

/// Not atomic: one thread inserts, any number look up afterwards.
pub(crate) struct Sbbf(RwLock<sbbf_rs_safe::Filter>);

impl Sbbf {
    pub(crate) fn new(keys: usize, rate: f64) -> Self {
        Self(RwLock::new(Self::filter(keys, rate)))
    }

    pub(crate) fn filter(keys: usize, rate: f64) -> sbbf_rs_safe::Filter {
        // It takes no rate, but whole bits per key: the least that reach the rate, by the formula
        // of such blocks, to which its documentation points.
        let bytes = SplitBlockBloom::with_capacity(keys, rate).unwrap().memory_bytes();
        sbbf_rs_safe::Filter::new((8 * bytes).div_ceil(keys), keys)
    }
}

impl Peer for Sbbf {
    fn name(&self) -> String {
        "sbbf-rs-safe, single calls (one writer)".into()
    }
    fn library(&self) -> Option<Library> {
        Some(Library::SbbfRsSafe)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        let mut filter = self.0.write().unwrap();
        Some(keys.iter().filter(|&&hash| !filter.insert_hash(hash)).count())
    }
    fn contains(&self, keys: &[u64]) -> usize {
        let filter = self.0.read().unwrap();
        count(keys, |hash| filter.contains_hash(hash))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().reset();
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().as_bytes().len()
    }
    fn writers(&self) -> usize {
        1
    }
}

/// A lock around the filter, taken for every key, as a service does with a filter that is not
/// concurrent.
pub(crate) struct Locked(RwLock<bloomfilter::Bloom<u64>>);

impl Locked {
    pub(crate) fn new(keys: usize, rate: f64) -> Self {
        Self(RwLock::new(Self::filter(keys, rate)))
    }

    pub(crate) fn filter(keys: usize, rate: f64) -> bloomfilter::Bloom<u64> {
        // Each half of the seed is the key of one of its two hashes, so they must differ: with
        // equal halves all bits of a key follow from one hash, and 3.7% of absent keys are found
        // where 1% was requested.
        let seed = std::array::from_fn(|i| i as u8);
        bloomfilter::Bloom::new_for_fp_rate_with_seed(keys, rate, &seed).unwrap()
    }
}

impl Peer for Locked {
    fn name(&self) -> String {
        "RwLock<bloomfilter>".into()
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Bloomfilter)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| !self.0.write().unwrap().check_and_set(&key)))
    }
    fn contains(&self, keys: &[u64]) -> usize {
        count(keys, |key| self.0.read().unwrap().check(&key))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().clear();
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().as_slice().len()
    }
}

/// The limit of a filter: loads a word of each key's line, prefetched if that is faster, and
/// ignores it.
pub(crate) struct Touch(Vec<Line>);

#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Line([u64; 8]);

impl Touch {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(in_huge_pages(bytes / 64, Line([1; 8])))
    }
}

/// So many copies, in huge pages, like our filters.
pub(crate) fn in_huge_pages<T: Clone>(count: usize, one: T) -> Vec<T> {
    let mut all = Vec::with_capacity(count);
    #[cfg(target_os = "linux")]
    if count * size_of::<T>() >= 4 << 20 {
        const PAGE: usize = 64 << 10;
        let start = all.as_mut_ptr() as usize;
        let from = start.next_multiple_of(PAGE);
        let len = (start + count * size_of::<T>() - from) / PAGE * PAGE;
        let advice = rustix::mm::Advice::LinuxHugepage;
        // SAFETY: whole pages of the vector's memory; the advice does not change their contents.
        let _ = unsafe { rustix::mm::madvise(from as *mut _, len, advice) };
    }
    // Written, so that it is memory of its own and not the one page of zeros.
    all.resize(count, one);
    all
}

impl Peer for Touch {
    fn name(&self) -> String {
        "(touching each line)".into()
    }
    fn library(&self) -> Option<Library> {
        None
    }
    fn insert(&self, _: &[u64]) -> Option<usize> {
        None
    }
    fn contains(&self, keys: &[u64]) -> usize {
        const FAR: usize = 128;
        let line = |hash: u64| ((u128::from(hash) * self.0.len() as u128) >> 64) as usize;
        let prefetch = |hash: u64| {
            let line = self.0.as_ptr().wrapping_add(line(hash));
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch accesses no memory.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast())
            };
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        };
        let cached = self.bytes() <= 2 << 20;
        if !cached {
            keys.iter().take(FAR).for_each(|&hash| prefetch(hash));
        }
        let mut sum = 0;
        for (i, &hash) in keys.iter().enumerate() {
            if !cached && let Some(&hash) = keys.get(i + FAR) {
                prefetch(hash);
            }
            sum += self.0[line(hash)].0[hash as usize % 8];
        }
        assert_eq!(sum as usize, keys.len());
        // The keys that a filter finds if it holds half of them, in a part of an odd length too.
        keys.len().div_ceil(2)
    }
    fn clear(&mut self) {}
    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
    fn writers(&self) -> usize {
        0
    }
    fn keeps_rate(&self) -> bool {
        false
    }
}
