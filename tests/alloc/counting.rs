//! An allocator that counts the allocations of each thread and refuses large ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, Ordering};

thread_local! {
    /// Allocations of this thread, so that the test harness's own do not count.
    pub(crate) static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes of them.
    pub(crate) static BYTES: Cell<usize> = const { Cell::new(0) };
    /// Allocations of more bytes than this fail.
    pub(crate) static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The number of an allocation that fails.
    pub(crate) static FAILS: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Whether this thread is watched.
    pub(crate) static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Bytes that watched threads hold, and the most so far.
pub(crate) static HELD: AtomicIsize = AtomicIsize::new(0);
pub(crate) static MOST: AtomicIsize = AtomicIsize::new(0);

fn hold(bytes: isize) {
    if IS_WATCHED.get() {
        let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
        MOST.fetch_max(held, Ordering::Relaxed);
    }
}

struct Counting;

// SAFETY: hands everything on to the system's allocator; the count is a plain cell of this thread,
// which needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if layout.size() > LIMIT.get() || ALLOCATIONS.get() == FAILS.get() {
            return null_mut();
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            BYTES.set(BYTES.get() + layout.size());
            hold(layout.size() as isize);
        }
        block
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(-(layout.size() as isize));
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
