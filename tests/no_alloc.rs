//! Hashing, single inserts, lookups and batches that are not dense never allocate, and what others allocate is bounded and can be
//! refused: counted by the allocator itself.

use lanebloom::{ConcurrentBloom, Murmur3, Sink};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::null_mut;

thread_local! {
    /// Allocations of this thread, so that the test harness's own do not count.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes of them.
    static BYTES: Cell<usize> = const { Cell::new(0) };
    /// What takes more bytes than this is refused.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Counting;

// SAFETY: hands everything on to the system's allocator; the count is a plain cell of this thread, which needs no
// allocation and no destructor.
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

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn hashing_inserts_and_lookups_never_allocate() {
    let filter = ConcurrentBloom::builder().expected_keys(1_000_000).build().unwrap();
    let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
    let mut found = vec![false; keys.len()];
    let count = allocations(|| {
        let mut sink = Murmur3::default().sink();
        keys.iter().for_each(|key| sink.put(key.as_bytes()));
        assert_ne!(sink.finish128(), (0, 0));
        for key in &keys {
            assert!(filter.insert(key) || filter.contains(key));
        }
        assert_eq!(filter.insert_batch(&keys), 0);
        filter.contains_batch(&keys, &mut found);
        assert_eq!(filter.union_from(&filter), Ok(false));
        (&filter).extend(&keys);
    });
    assert_eq!(count, 0);
    // The counter counts. (Unseen by the optimizer, which may leave out an allocation that nobody uses.)
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
    assert!(found.iter().all(|&found| found));
}

#[cfg(feature = "guard")]
#[test]
fn a_guard_never_allocates_for_a_request() {
    let guard = lanebloom::CacheGuard::new(ConcurrentBloom::builder().expected_keys(1_000_000).build().unwrap());
    let keys: Vec<String> = (0..3000).map(|i| format!("key {i}")).collect();
    // arc-swap makes its note of a thread when the thread first comes.
    assert!(guard.check("key 0").is_none());
    let mut admitted = 0;
    let count = allocations(|| {
        assert!(guard.insert_batch(&keys[..2000]) > 1900);
        guard.check_batch(&keys, |_, admission| {
            admission.record(true);
            admitted += 1;
        });
        assert!(guard.insert(&keys[2500]) && guard.check(&keys[2500]).is_some());
    });
    assert_eq!(count, 0);
    assert!((2000..2100).contains(&admitted));
}

/// A batch of at least six keys per line is inserted by way of memory that is allocated for it: in a filter beyond 1 MiB for
/// the hashes, sorted, and a region of the filter.
#[test]
fn a_dense_batch_allocates_as_much_as_documented_and_does_without() {
    for (lines, most) in [(500, 64 * 500), (40_000, 8 * 300_000 * 5 / 4 + (256 << 10))] {
        let filter = ConcurrentBloom::builder().memory_budget(64 * lines).build().unwrap();
        let mut own = filter.clone();
        let without = filter.clone();
        let hashes: Vec<u64> = (0..300_000u64).map(|i| filter.hash(&i)).collect();
        let hashes = &hashes[..hashes.len().min(50 * lines)];

        let (count, bytes) = (ALLOCATIONS.get(), BYTES.get());
        let changed = filter.insert_hashes(hashes);
        assert!((1..=3).contains(&(ALLOCATIONS.get() - count)));
        let bytes = BYTES.get() - bytes;
        assert!((most / 2..=most + 4096).contains(&bytes), "{bytes}");

        LIMIT.set(1000);
        let refused = [own.insert_hashes_mut(hashes), without.insert_hashes(hashes)];
        LIMIT.set(usize::MAX);
        assert_eq!(refused, [changed; 2]);
        assert!(own == filter && without == filter);
    }
}
