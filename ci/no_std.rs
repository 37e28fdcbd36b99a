//! A program without std around lanebloom, which ci/check.sh compiles.
//!
//! It brings a panic handler of its own. std has one too, and there can be only one: when lanebloom, or a crate below it,
//! so much as names std, the compiler refuses with "found duplicate lang item `panic_impl`".

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use lanebloom::{ConcurrentBloom, CuckooFilter, DLeftFilter, GuavaBloom};

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
        .is_ok_and(|filter| filter.insert_hash(hash))
}

#[unsafe(no_mangle)]
pub extern "C" fn insert_as_guava(key: u64) -> bool {
    GuavaBloom::create(1, 0.03).is_ok_and(|filter| filter.insert(&key) && !filter.to_bytes().is_empty())
}

#[unsafe(no_mangle)]
pub extern "C" fn insert_and_remove(hash: u64) -> bool {
    let cuckoo = CuckooFilter::builder().memory_budget(64).build();
    let d_left = DLeftFilter::builder().memory_budget(72).build();
    cuckoo.is_ok_and(|filter| filter.insert_hash(hash).is_ok() && filter.remove_hash(hash))
        && d_left.is_ok_and(|filter| filter.insert_hash(hash).is_ok() && filter.remove_hash(hash))
}
