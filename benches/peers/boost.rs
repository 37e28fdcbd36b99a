//! Boost.Bloom, a C++ library, through `boost.cpp`, which `build.rs` compiles where it finds
//! Boost's headers. Its memory is from C++'s allocator: in pages of 4 KiB, like the other crates'
//! filters, unless the system gives huge pages to all.

use crate::contestants::Peer;
use std::ptr::NonNull;
use std::sync::RwLock;

/// `Filter` of `boost.cpp`.
#[repr(C)]
struct Raw([u8; 0]);

unsafe extern "C" {
    safe fn peers_boost_version() -> u32;
    safe fn peers_boost_new(keys: usize, rate: f64) -> NonNull<Raw>;
    fn peers_boost_drop(filter: NonNull<Raw>);
    fn peers_boost_clear(filter: NonNull<Raw>);
    fn peers_boost_bytes(filter: NonNull<Raw>) -> usize;
    fn peers_boost_insert(filter: NonNull<Raw>, hashes: *const u64, count: usize);
    fn peers_boost_insert_bulk(filter: NonNull<Raw>, hashes: *const u64, count: usize);
    fn peers_boost_contains(filter: NonNull<Raw>, hashes: *const u64, count: usize) -> usize;
    fn peers_boost_contains_bulk(filter: NonNull<Raw>, hashes: *const u64, count: usize, batch: usize) -> usize;
}

/// Whether it has lookups in bulk.
pub(crate) fn has_bulk() -> bool {
    peers_boost_version() >= 109_000
}

/// A filter for pre-hashed keys.
pub(crate) struct Boost(NonNull<Raw>);

// SAFETY: the filter has no state of a thread, and its `const` methods, as all in the standard
// library, can run side by side; the others take `&mut self` here.
unsafe impl Send for Boost {}
// SAFETY: as above.
unsafe impl Sync for Boost {}

impl Boost {
    pub(crate) fn new(keys: usize, rate: f64) -> Self {
        Self(peers_boost_new(keys, rate))
    }

    fn clear(&mut self) {
        // SAFETY: the filter is alive, and `&mut` keeps others away; likewise below.
        unsafe { peers_boost_clear(self.0) }
    }

    fn bytes(&self) -> usize {
        // SAFETY: the filter is alive, and nobody changes it beside `&self`; likewise below.
        unsafe { peers_boost_bytes(self.0) }
    }

    fn insert(&mut self, hashes: &[u64]) {
        // SAFETY: as in `clear`; the pointer is to as many hashes.
        unsafe { peers_boost_insert(self.0, hashes.as_ptr(), hashes.len()) }
    }

    pub(crate) fn insert_bulk(&mut self, hashes: &[u64]) {
        // SAFETY: as in `insert`.
        unsafe { peers_boost_insert_bulk(self.0, hashes.as_ptr(), hashes.len()) }
    }

    /// How many are found, call by call.
    pub(crate) fn contains(&self, hashes: &[u64]) -> usize {
        // SAFETY: as in `bytes`; the pointer is to as many hashes.
        unsafe { peers_boost_contains(self.0, hashes.as_ptr(), hashes.len()) }
    }

    /// How many are found, by bulk calls of `batch` hashes.
    pub(crate) fn contains_bulk(&self, hashes: &[u64], batch: usize) -> usize {
        // SAFETY: as in `contains`.
        unsafe { peers_boost_contains_bulk(self.0, hashes.as_ptr(), hashes.len(), batch) }
    }
}

impl Drop for Boost {
    fn drop(&mut self) {
        // SAFETY: the filter is from `new`, and is not used after this.
        unsafe { peers_boost_drop(self.0) }
    }
}

/// The name in the tables, with the version.
pub(crate) fn name(calls: &str) -> String {
    let version = peers_boost_version();
    format!("Boost.Bloom {}.{}, {calls}", version / 100_000, version / 100 % 1000)
}

/// Not atomic: one thread inserts, any number look up afterwards.
pub(crate) struct BoostPeer {
    filter: RwLock<Boost>,
    bulk: bool,
}

impl BoostPeer {
    pub(crate) fn new(keys: usize, rate: f64, bulk: bool) -> Self {
        let filter = RwLock::new(Boost::new(keys, rate));
        Self { filter, bulk }
    }
}

impl Peer for BoostPeer {
    fn name(&self) -> String {
        name(if self.bulk { "in bulk" } else { "single calls" }) + " (one writer)"
    }
    /// Its inserts answer nothing.
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        let mut filter = self.filter.write().unwrap();
        if self.bulk {
            filter.insert_bulk(keys);
        } else {
            filter.insert(keys);
        }
        None
    }
    fn contains(&self, keys: &[u64]) -> usize {
        let filter = self.filter.read().unwrap();
        if self.bulk {
            filter.contains_bulk(keys, keys.len())
        } else {
            filter.contains(keys)
        }
    }
    fn clear(&mut self) {
        self.filter.get_mut().unwrap().clear();
    }
    fn bytes(&self) -> usize {
        self.filter.read().unwrap().bytes()
    }
    fn writers(&self) -> usize {
        1
    }
}
