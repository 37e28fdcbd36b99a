//! Hashing, single inserts, lookups and batches that are not dense never allocate, and what others allocate is bounded and can be
//! refused: counted by the allocator itself.

use lanebloom::{ConcurrentBloom, CuckooFilter, DLeftFilter, GuavaBloom, Murmur3, Sink, UnencodedChars};
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

#[test]
fn a_guava_filter_never_allocates_for_a_key() {
    // Within the caches and beyond.
    for size in [1000, 3_000_000] {
        let filter = GuavaBloom::create(size, 0.01).unwrap();
        let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
        let mut found = vec![false; keys.len()];
        let count = allocations(|| {
            for key in &keys {
                assert!(filter.insert(key) || filter.contains(key));
                assert!(filter.insert(&UnencodedChars(key)) || filter.contains(&UnencodedChars(key)));
            }
            assert_eq!(filter.insert_batch(&keys), 0);
            assert_eq!(filter.insert_batch_flagged(&keys, &mut found), 0);
            filter.contains_batch(&keys, &mut found);
            (&filter).extend(&keys);
            assert!(filter.approximate_element_count() > 0);
        });
        assert_eq!(count, 0);
        assert!(found.iter().all(|&found| found));
    }
}

/// Also where tags have to be moved, and where there is no room at last.
#[test]
fn filters_that_can_delete_never_allocate_for_a_key() {
    for size in [1000, 500_000] {
        let cuckoo = CuckooFilter::builder().expected_keys(size).build().unwrap();
        let d_left = DLeftFilter::builder().expected_keys(size).build().unwrap();
        let keys: Vec<u64> = (0..1000).collect();
        let mut found = vec![false; keys.len()];
        let count = allocations(|| {
            assert!(size > 1000 || cuckoo.try_extend(0..1_000_000u64).is_err());
            assert!(size > 1000 || d_left.try_extend(0..1_000_000u64).is_err());
            if size > 1000 {
                cuckoo.insert_batch(&keys).unwrap();
                d_left.insert_batch(&keys).unwrap();
            }
            cuckoo.contains_batch(&keys, &mut found);
            assert!(found.iter().all(|&found| found));
            d_left.contains_batch(&keys, &mut found);
            assert!(keys.iter().all(|key| cuckoo.contains(key) && d_left.contains(key)));
            assert_eq!(
                (cuckoo.remove_batch(&keys[1..]), d_left.remove_batch(&keys[1..])),
                (999, 999)
            );
            assert!(cuckoo.remove(&keys[0]) && d_left.remove(&keys[0]));
        });
        assert_eq!(count, 0);
        assert!(found.iter().all(|&found| found));
    }
}

/// A stream that says it is large, and is not, takes little memory; one that is takes three times as much at most.
#[cfg(feature = "std")]
#[test]
fn a_stream_takes_memory_as_its_bytes_arrive() {
    let mut stream = vec![1, 7, 0x7f, 0xff, 0xff, 0xff];
    for (arrived, most) in [
        (0, 65 << 10),
        (1000, 65 << 10),
        (100_000, 400_000),
        (1_000_000, 4_000_000),
    ] {
        stream.resize(6 + arrived, 0xa5);
        let before = BYTES.get();
        assert!(
            GuavaBloom::read_from(&stream[..], usize::MAX)
                .unwrap_err()
                .is_truncated()
        );
        assert!(GuavaBloom::from_bytes(&stream).unwrap_err().is_truncated());
        let bytes = BYTES.get() - before;
        // All that was allocated, also what was freed meanwhile.
        assert!(bytes <= most, "{bytes} bytes for {arrived}");
    }
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
