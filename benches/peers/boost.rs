//! Boost.Bloom, a C++ library, through `boost.cpp`, which `build.rs` compiles where it finds
//! Boost's headers. Its memory is from C++'s allocator: in pages of 4 KiB, like the other crates'
//! filters, unless the system gives huge pages to all.

use crate::contestants::Peer;
use crate::features::Library;
use crate::keys::{Key, Kind};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::RwLock;

/// `Filter` of `boost.cpp`.
#[repr(C)]
struct Raw([u8; 0]);

unsafe extern "C" {
    safe fn peers_boost_version() -> u32;
    safe fn peers_boost_new(kind: Kind, keys: usize, rate: f64) -> NonNull<Raw>;
    fn peers_boost_drop(filter: NonNull<Raw>);
    fn peers_boost_clear(filter: NonNull<Raw>);
    fn peers_boost_bytes(filter: NonNull<Raw>) -> usize;
    fn peers_boost_insert(filter: NonNull<Raw>, keys: *const c_void, count: usize);
    fn peers_boost_insert_bulk(filter: NonNull<Raw>, keys: *const c_void, count: usize);
    fn peers_boost_contains(filter: NonNull<Raw>, keys: *const c_void, count: usize) -> usize;
    fn peers_boost_contains_bulk(filter: NonNull<Raw>, keys: *const c_void, count: usize, batch: usize) -> usize;
}

/// Whether it has lookups in bulk.
pub(crate) fn has_bulk() -> bool {
    peers_boost_version() >= 109_000
}

/// A filter of one kind, whose keys are `K`.
pub(crate) struct Boost<K = u64>(NonNull<Raw>, PhantomData<fn(K)>);

// SAFETY: the filter has no state of a thread, and its `const` methods, as all in the standard
// library, can run side by side; the others take `&mut self` here.
unsafe impl<K> Send for Boost<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Boost<K> {}

impl Boost {
    pub(crate) fn hashes(keys: usize, rate: f64) -> Self {
        Self(peers_boost_new(Kind::Hash, keys, rate), PhantomData)
    }
}

impl<K: Key> Boost<K> {
    pub(crate) fn keys(keys: usize, rate: f64) -> Self {
        Self(peers_boost_new(K::KIND, keys, rate), PhantomData)
    }

    fn clear(&mut self) {
        // SAFETY: the filter is alive, and `&mut` keeps others away; likewise below.
        unsafe { peers_boost_clear(self.0) }
    }

    fn bytes(&self) -> usize {
        // SAFETY: the filter is alive, and nobody changes it beside `&self`; likewise below.
        unsafe { peers_boost_bytes(self.0) }
    }

    fn insert(&mut self, keys: &[K]) {
        // SAFETY: as in `clear`; the pointer is to as many keys, of the filter's kind.
        unsafe { peers_boost_insert(self.0, keys.as_ptr().cast(), keys.len()) }
    }

    pub(crate) fn insert_bulk(&mut self, keys: &[K]) {
        // SAFETY: as in `insert`.
        unsafe { peers_boost_insert_bulk(self.0, keys.as_ptr().cast(), keys.len()) }
    }

    /// How many are found, call by call.
    pub(crate) fn contains(&self, keys: &[K]) -> usize {
        // SAFETY: as in `bytes`; the pointer is to as many keys, of the filter's kind.
        unsafe { peers_boost_contains(self.0, keys.as_ptr().cast(), keys.len()) }
    }

    /// How many are found, by bulk calls of `batch` keys.
    pub(crate) fn contains_bulk(&self, keys: &[K], batch: usize) -> usize {
        // SAFETY: as in `contains`.
        unsafe { peers_boost_contains_bulk(self.0, keys.as_ptr().cast(), keys.len(), batch) }
    }
}

impl<K> Drop for Boost<K> {
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
pub(crate) struct BoostPeer<K = u64> {
    filter: RwLock<Boost<K>>,
    bulk: bool,
}

impl<K> BoostPeer<K> {
    pub(crate) fn new(filter: Boost<K>, bulk: bool) -> Self {
        let filter = RwLock::new(filter);
        Self { filter, bulk }
    }
}

impl<K: Key> Peer<K> for BoostPeer<K> {
    fn name(&self) -> String {
        name(if self.bulk { "in bulk" } else { "single calls" }) + " (one writer)"
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Boost)
    }
    /// Its inserts answer nothing.
    fn insert(&self, keys: &[K]) -> Option<usize> {
        let mut filter = self.filter.write().unwrap();
        if self.bulk {
            filter.insert_bulk(keys);
        } else {
            filter.insert(keys);
        }
        None
    }
    fn contains(&self, keys: &[K]) -> usize {
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
