//! An allocator that counts the allocations of each thread and refuses large ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

thread_local! {
    /// Allocations of this thread, so that the test harness's own do not count.
    pub(crate) static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes of them.
    pub(crate) static BYTES: Cell<usize> = const { Cell::new(0) };
    /// Allocations of more bytes than this fail.
    pub(crate) static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Counting;

// SAFETY: hands everything on to the system's allocator; the count is a plain cell of this thread,
// which needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size());
        if layout.size() > LIMIT.get() {
            return null_mut();
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `alloc` above, hence from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of `work`.
pub(crate) fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}
