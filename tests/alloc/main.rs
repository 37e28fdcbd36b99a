//! Hashing, single inserts, lookups and batches that are not dense never allocate. Other operations
//! allocate a bounded amount and survive a refusal. The allocator itself counts.

mod counting;

use counting::{ALLOCATIONS, BYTES, HELD, IS_WATCHED, LIMIT, MOST, allocations};
use lanebloom::{
    Absent, Bitmap, BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Hashed, Murmur3,
    ScalableBloom, Sink, StaticFilter, TombstoneBloom,
};
use lanebloom_tests::with_field;
use std::hint::black_box;
use std::sync::atomic::Ordering;

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
    // The counter counts. (Unseen by the optimizer, which may leave out an allocation that nobody
    // uses.)
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
    assert!(found.iter().all(|&found| found));
}

/// Two allocations for each layer, its lines and itself; lookups none, whatever the number of
/// layers.
#[test]
fn a_growing_filter_allocates_nothing_but_layers() {
    let filter = ScalableBloom::builder()
        .expected_keys(500)
        .max_layers(6)
        .build()
        .unwrap();
    let keys: Vec<u64> = (0..20_000).collect();
    let mut found = vec![false; keys.len()];
    let count = allocations(|| {
        for keys in keys[..10_000].chunks(100) {
            assert!(filter.insert(&keys[0]).is_ok());
            assert!(filter.insert_batch(keys).is_ok());
        }
    });
    assert_eq!((filter.layers().len(), count), (4, 2 * 3));
    let count = allocations(|| {
        assert!(keys[..10_000].iter().all(|key| filter.contains(key)));
        filter.contains_batch(&keys, &mut found);
        filter.contains_batch(&keys, Absent(|i: usize| assert!(!found[i])));
        assert_eq!(filter.insert_batch_into(&keys[..10_000], &mut found[..10_000]), Ok(0));
        assert!(filter.statistics().false_positive_rate < 0.01 && filter.statistics().len > 9000);
    });
    assert_eq!(count, 0);
}

/// The next layer is there at about nine tenths of the newest one's keys, by samples, also after a
/// `clear`.
#[test]
fn a_growing_filter_makes_its_next_layer_ahead_of_need() {
    let mut filter = ScalableBloom::builder()
        .expected_keys(1000)
        .max_layers(3)
        .build()
        .unwrap();
    for _ in 0..2 {
        let count = allocations(|| assert!((0..700u32).all(|key| filter.insert(&key).is_ok())));
        assert_eq!(count, 0);
        let count = allocations(|| assert!((700..960u32).all(|key| filter.insert(&key).is_ok())));
        assert_eq!((count, filter.layers().len()), (2, 1));
        let count = allocations(|| assert!((960..1200u32).all(|key| filter.insert(&key).is_ok())));
        assert_eq!((count, filter.layers().len()), (0, 2));
        filter.clear();
    }
}

/// Where the next layer's memory is refused, the filter fills the layer that it has, says so when
/// that is full, and goes on when there is memory again.
#[test]
fn a_growing_filter_does_without_memory_until_it_is_full() {
    let filter = ScalableBloom::builder()
        .expected_keys(1000)
        .max_layers(3)
        .build()
        .unwrap();
    let hashes: Vec<u64> = (0..2000u64).map(|i| filter.hash(&i)).collect();
    // Its lines, or the box of the layer.
    for limit in [1000, 64] {
        LIMIT.set(limit);
        let before = ALLOCATIONS.get();
        let error = filter.insert_batch(Hashed::slice(&hashes));
        let (tried, single) = (ALLOCATIONS.get() - before, filter.insert(&Hashed(hashes[1999])));
        LIMIT.set(usize::MAX);
        let error = error.unwrap_err();
        assert!(error.is_out_of_memory() && filter.is_full());
        assert_eq!(single.unwrap_err().inserted(), 0);
        // Ahead of need, again and again, and when it is full; afterwards once for a batch.
        assert!(
            if limit == 1000 {
                (5..100).contains(&tried)
            } else {
                tried == 1
            },
            "{tried}"
        );
        assert!((980..1080).contains(&error.inserted()), "{}", error.inserted());
        assert!(
            hashes[..error.inserted()]
                .iter()
                .all(|&hash| filter.contains(&Hashed(hash)))
        );
        assert!(!filter.contains(&Hashed(hashes[error.inserted()])));
        assert_eq!(filter.layers().len(), 1);
    }
    let copy = filter.clone();
    for filter in [filter, copy] {
        assert!(filter.is_full());
        assert!(filter.insert_batch(Hashed::slice(&hashes)).is_ok());
        assert!(!filter.is_full() && filter.layers().len() == 2);
        assert!(hashes.iter().all(|&hash| filter.contains(&Hashed(hash))));
        LIMIT.set(1000);
        let refused = filter.try_clone();
        LIMIT.set(usize::MAX);
        assert!(refused.unwrap_err().is_out_of_memory());
    }
}

/// The hint asks for layers whose memory is refused, at first and later. Those without it have
/// room.
#[test]
fn a_growing_filter_does_without_the_layer_of_the_hint() {
    let builder = ScalableBloom::builder().expected_keys(1000);
    let late = builder.clone().build().unwrap();
    late.set_hint(1_000_000);
    LIMIT.set(64 << 10);
    let early = builder.hint(1_000_000).build().unwrap();
    let inserted = [&late, &early].map(|filter| filter.insert_all(0..10_000u32).is_ok());
    LIMIT.set(usize::MAX);
    assert_eq!(inserted, [true; 2]);
    for filter in [&late, &early] {
        let layers: Vec<_> = filter.layers().map(|layer| layer.expected_keys()).collect();
        assert_eq!((layers, filter.is_full()), (vec![1000, 3000, 9000], false));
        // With memory, the next layer is that of the hint.
        filter.insert_all(0..20_000u32).unwrap();
        assert!(filter.layers().len() == 4 && filter.expected_keys() > 1_000_000);
        assert!(filter.statistics().false_positive_rate < 0.01);
    }
}

/// Some hundred bytes that say that the next layer is for a great number of keys, by the hint or by
/// the builder's number: it is for 4096 times those of the layer that is there.
#[test]
fn a_small_snapshot_has_no_large_layer_made() {
    let bytes = ScalableBloom::with_capacity(20, 0.01).unwrap().snapshot().to_vec();
    assert_eq!(bytes.len(), 384);
    for at in [40, 88] {
        for keys in [2_000_000_000u64, u64::MAX] {
            let header = with_field(&bytes[..128], at, &keys.to_le_bytes());
            let (filter, _) = ScalableBloom::from_bytes(&[&header, &bytes[128..]].concat()).unwrap();
            let before = BYTES.get();
            filter.insert_all(0..100u32).unwrap();
            let taken = BYTES.get() - before;
            assert!(filter.layers().len() == 2 && taken < 300_000, "{taken} bytes");
        }
    }
}

#[test]
fn filters_that_delete_never_allocate_for_a_key() {
    let counting = CountingBloom::builder().expected_keys(1_000_000).build().unwrap();
    let tombstone = TombstoneBloom::builder().expected_keys(1_000_000).build().unwrap();
    let keys: Vec<String> = (0..3000).map(|i| format!("key {i}")).collect();
    let mut flags = vec![false; keys.len()];
    let count = allocations(|| {
        for key in &keys {
            assert!(counting.insert(key) && counting.contains(key) && counting.remove(key));
            assert!(tombstone.insert(key) && tombstone.contains(key));
        }
        counting.insert_batch(&keys);
        (&counting).extend(&keys);
        counting.contains_batch(&keys, &mut flags);
        assert_eq!(counting.remove_batch_into(&keys, &mut flags), keys.len());
        assert_eq!(counting.union_from(&counting), Ok(true));
        assert_eq!(tombstone.insert_batch(&keys), 0);
        assert_eq!(tombstone.remove_batch_into(&keys[..1000], &mut flags[..1000]), 1000);
        tombstone.contains_batch(&keys, Absent(|i| assert!(i < 1000)));
    });
    assert_eq!(count, 0);
    assert!(flags.iter().all(|&flag| flag));
    assert!(counting.contains(&keys[0]) && !tombstone.contains(&keys[0]) && tombstone.contains(&keys[1000]));
}

/// Also where fingerprints have to be moved, and where there is no room at last.
#[test]
fn filters_that_can_delete_never_allocate_for_a_key() {
    for size in [1000, 500_000] {
        let cuckoo = CuckooFilter::builder().expected_keys(size).build().unwrap();
        let d_left = DLeftFilter::builder().expected_keys(size).build().unwrap();
        let keys: Vec<u64> = (0..1000).collect();
        let mut found = vec![false; keys.len()];
        let count = allocations(|| {
            assert!(size > 1000 || cuckoo.insert_all(0..1_000_000u64).is_err());
            assert!(size > 1000 || d_left.insert_all(0..1_000_000u64).is_err());
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

/// Also where an iterator does not say how many keys it has.
#[test]
fn without_memory_for_the_hashes_a_static_filter_is_an_error() {
    let keys = || 0..10_000u64;
    LIMIT.set(4096);
    let known = StaticFilter::builder().build_from_keys(keys());
    let unknown = StaticFilter::builder().build_from_keys(keys().filter(|key| key % 2 == 0));
    LIMIT.set(usize::MAX);
    assert!(known.unwrap_err().is_out_of_memory() && unknown.unwrap_err().is_out_of_memory());
}

/// A snapshot that is not there takes no memory; one that says it is large as much as was allowed
/// at most.
#[test]
fn a_snapshot_takes_the_memory_that_was_allowed() {
    let filter = ConcurrentBloom::builder().memory_budget(1 << 20).build().unwrap();
    let bytes = filter.snapshot().to_vec();
    let taken = |work: &dyn Fn()| {
        let before = BYTES.get();
        work();
        BYTES.get() - before
    };
    let (buffers, filter_bytes) = (68 << 10, (1 << 20) + (4 << 10));
    for end in [0, 100, 128, 1000, 1 << 20] {
        let part = &bytes[..end];
        assert_eq!(
            taken(&|| assert!(ConcurrentBloom::from_bytes(part).unwrap_err().is_truncated())),
            0
        );
        assert_eq!(
            taken(&|| assert!(BloomView::from_bytes(part).unwrap_err().is_truncated())),
            0
        );
        let read = taken(&|| assert!(ConcurrentBloom::read_from(part, 1 << 20).is_err()));
        assert!(read <= buffers + filter_bytes, "{read} for {end}");
        // Not allowed: no more than the header.
        let refused = taken(&|| assert!(ConcurrentBloom::read_from(part, (1 << 20) - 1).is_err()));
        assert!(refused <= 128, "{refused}");
    }
    let read = taken(&|| assert!(ConcurrentBloom::read_from(&bytes[..], 1 << 20).is_ok()));
    assert!(read <= buffers + filter_bytes, "{read}");
    // A piece of 2 MiB, whatever the filter takes; it has grown to that by doubling.
    for budget in [1 << 20, 16 << 20] {
        let filter = ConcurrentBloom::builder().memory_budget(budget).build().unwrap();
        let written = taken(&|| filter.snapshot().write_to(std::io::sink()).unwrap());
        assert!(written <= (4 << 20) + buffers, "{written}");
    }
    // To open a view takes none, to ask it neither.
    let opened = taken(&|| {
        let (view, _) = BloomView::from_bytes(&bytes).unwrap();
        assert!(!view.contains("a"));
        view.contains_batch(&[1u64, 2, 3], &mut [false; 3]);
    });
    assert_eq!(opened, 0);
}

/// A batch of at least six keys per line is inserted by way of memory that is allocated for it: in
/// a filter beyond 1 MiB for the hashes, sorted, of which there are at most 12 per line, and a
/// region of the filter.
#[test]
fn a_dense_batch_allocates_as_much_as_documented_and_does_without() {
    let sorted = |hashes: usize| 8 * hashes * 5 / 4 + (256 << 10);
    for (lines, keys, most) in [
        (500, 50 * 500, 64 * 500),
        (40_000, 300_000, sorted(300_000)),
        (20_000, 50 * 20_000, sorted(12 * 20_000)),
    ] {
        let filter = ConcurrentBloom::builder().memory_budget(64 * lines).build().unwrap();
        let mut own = filter.clone();
        let without = filter.clone();
        let hashes: Vec<u64> = (0..keys).map(|i| filter.hash(&i)).collect();

        let (count, bytes) = (ALLOCATIONS.get(), BYTES.get());
        let changed = filter.insert_batch(Hashed::slice(&hashes));
        assert!((1..=3).contains(&(ALLOCATIONS.get() - count)));
        let bytes = BYTES.get() - bytes;
        assert!((most / 2..=most + 4096).contains(&bytes), "{bytes}");

        LIMIT.set(1000);
        let refused = [
            own.exclusive().insert_batch(Hashed::slice(&hashes)),
            without.insert_batch(Hashed::slice(&hashes)),
        ];
        LIMIT.set(usize::MAX);
        assert_eq!(refused, [changed; 2]);

        let (mut flagged, mut new) = (own.clone(), vec![true; hashes.len()]);
        let count = ALLOCATIONS.get();
        assert_eq!(
            flagged.exclusive().insert_batch_into(Hashed::slice(&hashes), &mut new),
            0
        );
        assert_eq!(ALLOCATIONS.get(), count);
        assert!(new.iter().all(|new| !new));
        assert!(own == filter && without == filter);
    }
}

/// Neither do rotations, once all generations are in use: by call, by age and by the number of
/// keys.
#[test]
fn a_filter_that_forgets_never_allocates() {
    use lanebloom::WindowedBloom;
    use lanebloom_tests::Time;
    use std::time::Duration;

    let time = Time::default();
    let called = WindowedBloom::builder().expected_keys(3000);
    let aged = called.clone().window(Duration::from_nanos(300)).clock(time.clock());
    let full = called.clone().rotate_when_full();
    let not_renewed = called.clone().renew(false);
    for builder in [called, aged, full, not_renewed] {
        let filter = builder.build().unwrap();
        // arc-swap makes its note of a thread when the thread first comes.
        assert!(!filter.contains("a key"));
        let mut found = vec![false; 300];
        let mut bitmap = [0; 5];
        for round in 0..30u64 {
            let keys: Vec<u64> = (1000 * round..1000 * round + 300).collect();
            let count = allocations(|| {
                if filter.window().is_none() {
                    filter.rotate();
                }
                time.add(100);
                filter.rotate_if_due();
                assert!(filter.insert_batch(&keys[..100]) >= 98);
                filter.insert_batch_into(&keys, &mut found);
                filter.contains_batch(&keys, &mut found);
                filter.contains_batch(&keys, Bitmap(&mut bitmap));
                filter.contains_batch(&keys, Absent(|_| unreachable!()));
                for key in &keys {
                    filter.insert(&(key + 300));
                    assert!(filter.contains(&(key + 300)));
                }
                (&filter).extend(keys.iter().map(|key| key + 600));
                // All have expired at once, now and then.
                time.add(if round % 7 == 0 { 5000 } else { 0 });
            });
            assert_eq!(count, 0, "round {round} of {filter:?}");
            assert!(found.iter().all(|&found| found));
        }
        assert!(filter.statistics().len < 4500);
    }
}

/// It has what it says from the start, and what a lookup held up is used again later.
#[test]
fn a_filter_that_forgets_allocates_a_generation_to_spare_and_uses_again_what_was_held() {
    use lanebloom::WindowedBloom;

    let before = BYTES.get();
    let filter = WindowedBloom::builder()
        .expected_keys(100_000)
        .generations(2)
        .build()
        .unwrap();
    let built = BYTES.get() - before;
    let memory = filter.memory_bytes();
    assert!((memory..memory + memory / 20).contains(&built), "{built} for {memory}");
    for round in 0..10 {
        // So that the rotations find none to use again, and the next one does.
        let held = filter.live_generations();
        filter.rotate();
        filter.rotate();
        drop(held);
        assert!(allocations(|| filter.rotate()) == 0 || round == 0, "{round}");
    }
}

/// Where the memory for another generation is refused, keys are forgotten late, and none early.
#[test]
fn a_filter_that_forgets_does_without_the_memory_for_another_generation() {
    use lanebloom::WindowedBloom;
    use std::collections::HashSet;
    use std::sync::Arc;

    let filter = WindowedBloom::builder()
        .expected_keys(3000)
        .generations(3)
        .build()
        .unwrap();
    // Nothing can be used again while it is held.
    let mut held = vec![];
    for key in 0..10u64 {
        filter.insert(&key);
        held.extend(filter.live_generations());
        LIMIT.set(if key < 5 { usize::MAX } else { 1000 });
        filter.rotate();
        LIMIT.set(usize::MAX);
        for inserted in 0..=key {
            let rotations = key - inserted + 1;
            let found = filter.contains(&inserted);
            assert!(found || rotations >= 3, "{inserted} after {rotations}");
            assert!(!found || rotations < 3 || key >= 5);
        }
        let listed = filter.live_generations();
        let distinct: HashSet<_> = listed.iter().map(Arc::as_ptr).collect();
        assert_eq!(distinct.len(), listed.len(), "after {key}");
    }
    // The newest has gone on all the time.
    assert!((6..10u64).all(|key| filter.contains(&key)));
    assert!(!filter.contains(&3u64));
    drop(held);
    for _ in 0..3 {
        filter.rotate();
    }
    assert!((0..10u64).all(|key| !filter.contains(&key)));
}

/// The most bytes that `work` holds at a time, in a pool of this many threads, and its result. One
/// test at a time may call it.
fn peak<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> (usize, R) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.start_handler(|_| IS_WATCHED.set(true)).build().unwrap();
    HELD.store(0, Ordering::Relaxed);
    MOST.store(0, Ordering::Relaxed);
    let result = pool.install(work);
    (MOST.load(Ordering::Relaxed) as usize, result)
}

/// Beside the hashes and the filter itself; also where a hash comes twice, or all do. (Then the
/// filter counts as if they were distinct: the build learns it when it has failed.)
#[test]
fn a_build_takes_at_most_twelve_bytes_per_key() {
    use lanebloom::{Prehashed, StaticFilter};

    // One shard, two, three, and the fewest for which there is a copy. Without the optimizer only
    // one.
    let sizes: &[usize] = if cfg!(debug_assertions) {
        &[1_000_000]
    } else {
        &[1_000_000, 2_000_000, 3_000_000, 7_000_000, 10_000_000, 30_000_000]
    };
    for (&keys, threads) in sizes.iter().flat_map(|keys| [(keys, 1), (keys, 2)]) {
        let mut filter_bytes = 0;
        for distinct in [keys, keys - 1, keys / 2] {
            if distinct < keys && keys > 7_000_000 {
                continue;
            }
            let hashes = (0..keys).map(|i| lanebloom_tests::number((i % distinct) as u64));
            let hashes: Vec<u64> = hashes.collect();
            let builder = StaticFilter::builder().hasher(Prehashed).fingerprint_bits(8);
            let build = || {
                #[cfg(feature = "rayon")]
                let filter = builder.par_build_from_batch(Hashed::slice(&hashes));
                #[cfg(not(feature = "rayon"))]
                let filter = builder.build_from_batch(Hashed::slice(&hashes));
                filter.unwrap().memory_bytes()
            };
            let (bytes, own) = peak(threads, build);
            filter_bytes = filter_bytes.max(own);
            let per_key = [bytes - filter_bytes, bytes].map(|bytes| bytes as f64 / keys as f64);
            let case = format!("{keys} keys, {distinct} distinct, {threads} threads");
            println!("{case}: {per_key:.2?} bytes per key without and with the filter");
            assert!((1.0..12.0).contains(&per_key[0]), "{case}: {per_key:?}");
        }
    }
}
