//! quickbloom, a C library: split blocks by AVX2, for x86-64 alone. `build.rs` compiles it from a
//! checkout, through `quickbloom.c`.
//!
//! Its functions are called as those of a library, which is how its own bench measures it; those
//! for hashes are also inlined into their loop. It hashes keys of 16 bytes by one multiplication,
//! and others by fasthash64. The number of its blocks is a power of two, so it is up to twice as
//! large as the rate needs. At 1% it is twice as large as a filter of ours whose size is a power of
//! two: a split block takes 2% more bits per key.

use crate::contestants::Peer;
use crate::features::Library;
use crate::keys::Key;
use lanebloom_formats::SplitBlockBloom;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::RwLock;

/// A filter of the library.
#[repr(C)]
struct Raw([u8; 0]);

// Lookups take no `const`, but change nothing: its header allows them side by side.
unsafe extern "C" {
    safe fn qb_new(bits: usize) -> Option<NonNull<Raw>>;
    fn qb_free(filter: NonNull<Raw>);
    fn qb_serialized_size(filter: NonNull<Raw>) -> usize;
    fn qb_insert(filter: NonNull<Raw>, key: *const c_void, len: usize);
    fn qb_contains(filter: NonNull<Raw>, key: *const c_void, len: usize) -> c_int;
    fn qb_insert_prehash(filter: NonNull<Raw>, hash: u64);
    fn qb_contains_prehash(filter: NonNull<Raw>, hash: u64) -> c_int;
    fn qb_insert_prehash_bulk(filter: NonNull<Raw>, hashes: *const u64, count: usize);
    fn qb_contains_prehash_bulk(filter: NonNull<Raw>, hashes: *const u64, count: usize) -> usize;
    fn peers_quickbloom_insert(filter: NonNull<Raw>, hashes: *const u64, count: usize);
    fn peers_quickbloom_contains(filter: NonNull<Raw>, hashes: *const u64, count: usize) -> usize;
}

pub(crate) struct Filter {
    raw: NonNull<Raw>,
    bits: usize,
}

// SAFETY: the filter has no state of a thread. Its lookups can run side by side; the others take
// `&mut self` here.
unsafe impl Send for Filter {}
// SAFETY: as above.
unsafe impl Sync for Filter {}

impl Filter {
    /// The smallest that keeps the rate: it raises the bits to a power of two.
    pub(crate) fn new(keys: usize, rate: f64) -> Self {
        let bytes = SplitBlockBloom::with_capacity(keys, rate).unwrap().memory_bytes();
        Self::with_bits(8 * bytes)
    }

    fn with_bits(bits: usize) -> Self {
        let raw = qb_new(bits).expect("memory for a filter");
        Self { raw, bits }
    }

    fn bytes(&self) -> usize {
        // SAFETY: the filter is alive, and nobody changes it beside `&self`; likewise below.
        unsafe { qb_serialized_size(self.raw) }
    }

    /// The name in the tables, with the size, which is not that of the others.
    pub(crate) fn name(&self, calls: &str) -> String {
        let bytes = self.bytes();
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")];
        let (shift, unit) = units[units.partition_point(|&(shift, _)| bytes >> shift == 0)];
        format!("quickbloom, {} {unit}, {calls}", bytes >> shift)
    }

    fn insert(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            // SAFETY: the filter is alive, and `&mut` keeps others away; likewise below.
            unsafe { qb_insert_prehash(self.raw, hash) }
        }
    }

    fn insert_inlined(&mut self, hashes: &[u64]) {
        // SAFETY: as in `insert`; the pointer is to as many hashes; likewise below.
        unsafe { peers_quickbloom_insert(self.raw, hashes.as_ptr(), hashes.len()) }
    }

    pub(crate) fn insert_bulk(&mut self, hashes: &[u64]) {
        // SAFETY: as above.
        unsafe { qb_insert_prehash_bulk(self.raw, hashes.as_ptr(), hashes.len()) }
    }

    /// How many are found, call by call.
    pub(crate) fn contains(&self, hashes: &[u64]) -> usize {
        // SAFETY: as in `bytes`.
        let found = |&&hash: &&u64| unsafe { qb_contains_prehash(self.raw, hash) } != 0;
        hashes.iter().filter(found).count()
    }

    fn contains_inlined(&self, hashes: &[u64]) -> usize {
        // SAFETY: as in `bytes`; the pointer is to as many hashes; likewise below.
        unsafe { peers_quickbloom_contains(self.raw, hashes.as_ptr(), hashes.len()) }
    }

    /// How many are found, by one bulk call, which tells no more than that.
    pub(crate) fn contains_bulk(&self, hashes: &[u64]) -> usize {
        // SAFETY: as above.
        unsafe { qb_contains_prehash_bulk(self.raw, hashes.as_ptr(), hashes.len()) }
    }

    fn insert_keys<K: Key>(&mut self, keys: &[K]) {
        for key in keys {
            let (bytes, len) = key.bytes();
            // SAFETY: as in `insert`; the pointer is to as many bytes.
            unsafe { qb_insert(self.raw, bytes, len) }
        }
    }

    fn contains_keys<K: Key>(&self, keys: &[K]) -> usize {
        let found = |key: &&K| {
            let (bytes, len) = key.bytes();
            // SAFETY: as in `bytes`; the pointer is to as many bytes.
            unsafe { qb_contains(self.raw, bytes, len) != 0 }
        };
        keys.iter().filter(found).count()
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // SAFETY: the filter is from `qb_new`, and is not used after this.
        unsafe { qb_free(self.raw) }
    }
}

/// How hashes are passed.
#[derive(Clone, Copy)]
pub(crate) enum Calls {
    Single,
    Inlined,
    Bulk,
}

/// A filter of hashes. Not atomic: one thread inserts, any number look up afterwards.
pub(crate) struct OfHashes {
    filter: RwLock<Filter>,
    calls: Calls,
}

impl OfHashes {
    pub(crate) fn new(keys: usize, rate: f64, calls: Calls) -> Self {
        let filter = RwLock::new(Filter::new(keys, rate));
        Self { filter, calls }
    }
}

impl Peer for OfHashes {
    fn name(&self) -> String {
        let calls = match self.calls {
            Calls::Single => "single calls",
            Calls::Inlined => "inlined calls",
            Calls::Bulk => "in bulk",
        };
        self.filter.read().unwrap().name(calls) + " (one writer)"
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Quickbloom)
    }
    /// Its inserts answer nothing.
    fn insert(&self, hashes: &[u64]) -> Option<usize> {
        let mut filter = self.filter.write().unwrap();
        match self.calls {
            Calls::Single => filter.insert(hashes),
            Calls::Inlined => filter.insert_inlined(hashes),
            Calls::Bulk => filter.insert_bulk(hashes),
        }
        None
    }
    fn contains(&self, hashes: &[u64]) -> usize {
        let filter = self.filter.read().unwrap();
        match self.calls {
            Calls::Single => filter.contains(hashes),
            Calls::Inlined => filter.contains_inlined(hashes),
            Calls::Bulk => filter.contains_bulk(hashes),
        }
    }
    fn clear(&mut self) {
        clear(&mut self.filter);
    }
    fn bytes(&self) -> usize {
        self.filter.read().unwrap().bytes()
    }
    fn writers(&self) -> usize {
        1
    }
    /// Its size is a power of two.
    fn keeps_rate(&self) -> bool {
        false
    }
}

/// A filter of keys that it hashes, by single calls.
pub(crate) struct OfKeys(RwLock<Filter>);

impl OfKeys {
    pub(crate) fn new(keys: usize, rate: f64) -> Self {
        Self(RwLock::new(Filter::new(keys, rate)))
    }
}

impl<K: Key> Peer<K> for OfKeys {
    fn name(&self) -> String {
        self.0.read().unwrap().name("single calls (one writer)")
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Quickbloom)
    }
    fn insert(&self, keys: &[K]) -> Option<usize> {
        self.0.write().unwrap().insert_keys(keys);
        None
    }
    fn contains(&self, keys: &[K]) -> usize {
        self.0.read().unwrap().contains_keys(keys)
    }
    fn clear(&mut self) {
        clear(&mut self.0);
    }
    fn bytes(&self) -> usize {
        self.0.read().unwrap().bytes()
    }
    fn writers(&self) -> usize {
        1
    }
    /// Its size is a power of two.
    fn keeps_rate(&self) -> bool {
        false
    }
}

/// The library cannot empty a filter.
fn clear(filter: &mut RwLock<Filter>) {
    let filter = filter.get_mut().unwrap();
    *filter = Filter::with_bits(filter.bits);
}
