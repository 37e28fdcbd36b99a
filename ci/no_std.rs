//! A program without std around lanebloom and lanebloom-formats, which ci/check.sh compiles.
//!
//! It brings a panic handler of its own. std has one too, and there can be only one: when
//! lanebloom, or a crate below it, so much as names std, the compiler refuses with "found duplicate
//! lang item `panic_impl`".

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use lanebloom::{BloomView, ConcurrentBloom, CuckooFilter, DLeftFilter, Hashed, ScalableBloom, bloom, codec};
use lanebloom_formats::GuavaBloom;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

struct NoMemory;

// SAFETY: null is how an allocator says that it has nothing left, and this one never has anything.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[unsafe(no_mangle)]
pub extern "C" fn insert(hash: u64) -> bool {
    ConcurrentBloom::builder()
        .memory_budget(64)
        .build()
        .is_ok_and(|filter| filter.insert(&Hashed(hash)))
}

#[unsafe(no_mangle)]
pub extern "C" fn insert_as_guava(key: u64) -> bool {
    GuavaBloom::with_capacity(1, 0.03).is_ok_and(|filter| filter.insert(&key) && !filter.to_bytes().is_empty())
}

/// # Safety
///
/// There are `len` bytes at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contains(bytes: *const u8, len: usize, hash: u64) -> bool {
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, len) };
    let copied = ConcurrentBloom::from_bytes(bytes).is_ok_and(|(filter, _)| filter.contains(&Hashed(hash)));
    BloomView::from_bytes(bytes)
        .is_ok_and(|(view, _)| codec::verify(view.bytes()).is_ok() && view.contains(&Hashed(hash)) == copied)
}

#[unsafe(no_mangle)]
pub extern "C" fn follow(hash: u64) -> bool {
    let build = || ConcurrentBloom::builder().memory_budget(64).build();
    let (Ok(writer), Ok(replica)) = (build(), build()) else {
        return false;
    };
    writer.insert(&Hashed(hash));
    let pair = writer.with(&replica);
    pair.is_ok_and(|pair| bloom::apply_deltas(&replica, &pair.delta()).is_ok())
        && writer.snapshot().to_vec() == replica.snapshot().to_vec()
}

#[unsafe(no_mangle)]
pub extern "C" fn insert_growing(hash: u64) -> bool {
    let filter = ScalableBloom::builder().expected_keys(1).build();
    filter.is_ok_and(|filter| filter.insert(&Hashed(hash)) == Ok(true))
}

#[unsafe(no_mangle)]
pub extern "C" fn insert_and_remove(hash: u64) -> bool {
    let cuckoo = CuckooFilter::builder().memory_budget(64).build();
    let d_left = DLeftFilter::builder().memory_budget(72).build();
    let again = |filter: CuckooFilter| {
        let bytes = filter.snapshot().to_vec();
        CuckooFilter::from_bytes(&bytes).is_ok_and(|(filter, _)| filter.remove(&Hashed(hash)))
    };
    cuckoo.is_ok_and(|filter| filter.insert(&Hashed(hash)).is_ok() && again(filter))
        && d_left.is_ok_and(|filter| filter.insert(&Hashed(hash)).is_ok() && filter.remove(&Hashed(hash)))
}
