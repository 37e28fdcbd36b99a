//! seqan's interleaved Bloom filter, of C++, through `seqan.cpp`, which `build.rs` compiles where
//! it finds the library. Its memory is from C++'s allocator: in pages of 4 KiB, unless the
//! environment has `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

/// The most hash functions that it takes.
pub(crate) const MOST_HASH_FUNCTIONS: usize = 5;

/// `Filter` of `seqan.cpp`.
#[repr(C)]
struct Raw([u8; 0]);

unsafe extern "C" {
    safe fn peers_seqan_name() -> *const c_char;
    safe fn peers_seqan_new(filters: usize, bits: usize, hash_functions: usize) -> NonNull<Raw>;
    fn peers_seqan_drop(filter: NonNull<Raw>);
    fn peers_seqan_insert(filter: NonNull<Raw>, column: usize, hashes: *const u64, count: usize);
    fn peers_seqan_ask(filter: NonNull<Raw>, hashes: *const u64, count: usize);
    fn peers_seqan_which(filter: NonNull<Raw>, hash: u64, out: *mut u64, words: usize);
}

/// The library, with its version.
pub(crate) fn name() -> &'static str {
    // SAFETY: a string that lives as long as the program.
    unsafe { CStr::from_ptr(peers_seqan_name()) }.to_str().unwrap()
}

/// The filters side by side.
pub(crate) struct Seqan {
    filter: NonNull<Raw>,
    filters: usize,
}

impl Seqan {
    /// With `bits` bits for each of the filters.
    pub(crate) fn new(filters: usize, bits: usize, hash_functions: usize) -> Self {
        let filter = peers_seqan_new(filters, bits, hash_functions);
        Self { filter, filters }
    }

    pub(crate) fn insert(&mut self, column: usize, hashes: &[u64]) {
        assert!(column < self.filters);
        // SAFETY: the filter is alive, `&mut` keeps others away, the column is there, and the
        // pointer is to as many hashes.
        unsafe { peers_seqan_insert(self.filter, column, hashes.as_ptr(), hashes.len()) }
    }

    /// Asks for each hash, and drops the answers.
    pub(crate) fn ask(&self, hashes: &[u64]) {
        // SAFETY: the filter is alive, nobody changes it beside `&self`, and the pointer is to as
        // many hashes.
        unsafe { peers_seqan_ask(self.filter, hashes.as_ptr(), hashes.len()) }
    }

    /// The filters that may hold a hash, as a bitmap.
    pub(crate) fn which(&self, hash: u64, out: &mut [u64]) {
        assert_eq!(out.len(), self.filters.div_ceil(64));
        // SAFETY: as in `ask`; a bitmap has this many words.
        unsafe { peers_seqan_which(self.filter, hash, out.as_mut_ptr(), out.len()) }
    }
}

impl Drop for Seqan {
    fn drop(&mut self) {
        // SAFETY: the filter is from `new`, and is not used after this.
        unsafe { peers_seqan_drop(self.filter) }
    }
}
