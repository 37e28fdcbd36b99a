//! The crate's own parts, to see whether a change made one of them faster: `cargo bench --bench
//! filter`, about 4 minutes; `-- contains` for a part; `-- --test` to see that it runs. `peers`
//! compares the crate with others.
//!
//! Times are per pass over `KEYS` keys; criterion prints keys per second beside them. Filters are
//! sized for 1% and, except for fresh inserts, hold all the keys they are sized for.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lanebloom::{ConcurrentBloom, CountingBloom, Funnel, Hashed, KeyHasher, Murmur3, SipHash13, TombstoneBloom};
use lanebloom_benches::number;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Keys of one pass.
const KEYS: usize = 1 << 14;
/// Keys that are looked up before any comes again: more than a branch predictor remembers.
const POOL: usize = 1 << 20;

/// Sizes of the filter in KiB: L1, L2, L3, memory, memory beyond the reach of the TLB.
fn sizes() -> &'static [usize] {
    let all = &[32, 512, 8 << 10, 64 << 10, 512 << 10];
    // In a test run, a filter that is quickly filled.
    if std::env::args().any(|arg| arg == "--test") {
        &all[..2]
    } else {
        all
    }
}

fn hash(c: &mut Criterion) {
    let mut group = c.benchmark_group("hash");
    group.throughput(Throughput::Elements(KEYS as u64));
    let numbers: Vec<u64> = (0..KEYS as u64).map(number).collect();
    let strings = |len: &dyn Fn(u64) -> usize| -> Vec<String> {
        let string = |n: &u64| format!("{n:0width$}", width = len(*n));
        numbers.iter().map(string).collect()
    };
    let (same, several) = (strings(&|_| 24), strings(&|n| 20 + (n % 45) as usize));
    // Each hash by itself: the compiler would make slower vectors of this loop, a case of its own.
    fn sum<K: Funnel>(hasher: &impl KeyHasher, keys: &[K]) -> u64 {
        keys.iter().fold(0, |sum, key| sum ^ black_box(hasher.hash_key(key)))
    }
    let mut hashes = vec![0; KEYS];
    let mut both = |name: &str, hasher: &dyn Fn(&mut [u64], bool) -> u64| {
        let single = hasher(&mut hashes, false);
        assert_eq!(single, hasher(&mut hashes, true), "{name}");
        group.bench_function(format!("{name}/single"), |b| b.iter(|| hasher(&mut hashes, false)));
        group.bench_function(format!("{name}/batch"), |b| b.iter(|| hasher(&mut hashes, true)));
    };
    fn passes<K: Funnel>(hasher: impl KeyHasher, keys: &[K]) -> impl Fn(&mut [u64], bool) -> u64 {
        move |hashes, batch| {
            if !batch {
                return sum(&hasher, black_box(keys));
            }
            hasher.hash_batch(black_box(keys), hashes);
            hashes.iter().fold(0, |sum, hash| sum ^ hash)
        }
    }
    let (murmur3, siphash13) = (Murmur3::default(), SipHash13::with_key([1; 16]));
    assert_ne!(sum(&murmur3, &numbers), sum(&siphash13, &numbers));
    both("murmur3/u64", &passes(murmur3, &numbers));
    both("murmur3/strings of 24", &passes(murmur3, &same));
    both("murmur3/strings of 20 to 64", &passes(murmur3, &several));
    both("siphash13/u64", &passes(siphash13, &numbers));
    both("siphash13/strings of 24", &passes(siphash13, &same));
    both("siphash13/strings of 20 to 64", &passes(siphash13, &several));
    group.finish();
}

fn insert_fresh(c: &mut Criterion) {
    let mut group = c.benchmark_group("insert fresh");
    group.throughput(Throughput::Elements(KEYS as u64));
    for &kib in sizes() {
        let mut filter = ConcurrentBloom::builder().memory_budget(kib << 10).build().unwrap();
        let n = filter.expected_keys() as u64;
        let hashes: Vec<u64> = (0..n.min(1 << 24)).map(number).collect();
        for batch in [false, true] {
            let name = if batch { "batch" } else { "single" };
            group.bench_function(BenchmarkId::new(name, format!("{kib} KiB")), |b| {
                // Passes go on where the last one ended; the filter is emptied, untimed, when all
                // keys are in.
                filter.clear();
                let mut passes = hashes.chunks_exact(KEYS);
                b.iter_custom(|iterations| {
                    let mut time = Duration::ZERO;
                    for _ in 0..iterations {
                        let keys = passes.next().unwrap_or_else(|| {
                            filter.clear();
                            passes = hashes.chunks_exact(KEYS);
                            passes.next().expect("a filter for at least one pass")
                        });
                        let start = Instant::now();
                        let new = if batch {
                            filter.insert_batch(Hashed::slice(keys))
                        } else {
                            keys.iter().filter(|&&hash| filter.insert(&Hashed(hash))).count()
                        };
                        time += start.elapsed();
                        assert!(new > KEYS * 95 / 100, "only {new} of {KEYS} were new");
                    }
                    time
                });
            });
        }
    }
    group.finish();
}

/// Filters that hold all their expected keys.
fn filled(c: &mut Criterion) {
    for &kib in sizes() {
        let filter = ConcurrentBloom::builder().memory_budget(kib << 10).build().unwrap();
        let n = filter.expected_keys() as u64;
        let mut hashes = Vec::new();
        for start in (0..n).step_by(1 << 16) {
            hashes.clear();
            hashes.extend((start..n.min(start + (1 << 16))).map(number));
            filter.insert_batch(Hashed::slice(&hashes));
        }
        let pool = |key: &dyn Fn(u64) -> u64| (0..POOL as u64).map(|i| number(key(number(i)))).collect::<Vec<_>>();
        let present = pool(&|i| i % n);
        let absent = pool(&|i| i | 1 << 63);
        let mixed = pool(&|i| if i % 2 == 0 { i / 2 % n } else { i | 1 << 63 });
        let mut found = vec![false; KEYS];

        for (name, hashes, expected) in [
            ("hit", &present, 1.0),
            ("miss", &absent, 0.01),
            ("half hits", &mixed, 0.505),
        ] {
            let mut group = c.benchmark_group(format!("contains {name}"));
            group.throughput(Throughput::Elements(KEYS as u64));
            for batch in [false, true] {
                let mut passes = hashes.chunks_exact(KEYS).cycle();
                let id = BenchmarkId::new(if batch { "batch" } else { "single" }, format!("{kib} KiB"));
                group.bench_function(id, |b| {
                    b.iter(|| {
                        let keys = passes.next().expect("it cycles");
                        let hits = if batch {
                            filter.contains_batch(Hashed::slice(keys), &mut found);
                            found.iter().filter(|&&found| found).count()
                        } else {
                            keys.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count()
                        };
                        assert!(
                            (hits as f64 / KEYS as f64 - expected).abs() < 0.03,
                            "{hits} of {KEYS} {name}"
                        );
                    });
                });
            }
            group.finish();
        }

        let mut group = c.benchmark_group("insert present");
        group.throughput(Throughput::Elements(KEYS as u64));
        for batch in [false, true] {
            let mut passes = present.chunks_exact(KEYS).cycle();
            let id = BenchmarkId::new(if batch { "batch" } else { "single" }, format!("{kib} KiB"));
            group.bench_function(id, |b| {
                b.iter(|| {
                    let keys = passes.next().expect("it cycles");
                    let new = if batch {
                        filter.insert_batch(Hashed::slice(keys))
                    } else {
                        keys.iter().filter(|&&hash| filter.insert(&Hashed(hash))).count()
                    };
                    assert_eq!(new, 0);
                });
            });
        }
        group.finish();
    }
}

/// Full filters of 27 bits per key with 4 words in one line, and with 4 in each of two.
fn two_lines(c: &mut Criterion) {
    for &kib in sizes() {
        for lines in [1, 2] {
            let n = (kib << 13) / 27;
            let builder = ConcurrentBloom::builder().memory_budget(kib << 10).expected_keys(n);
            let filter = builder.lines_per_key(lines).words_per_key(4 * lines).build().unwrap();
            filter.insert_batch(Hashed::slice(&(0..n as u64).map(number).collect::<Vec<_>>()));
            let pool = |key: &dyn Fn(u64) -> u64| (0..POOL as u64).map(|i| number(key(number(i)))).collect::<Vec<_>>();
            let mut found = vec![false; 1024];
            for (keys, pool, expected) in [
                ("absent", pool(&|i| i | 1 << 63), 0.0),
                (
                    "half",
                    pool(&|i| if i % 2 == 0 { i / 2 % n as u64 } else { i | 1 << 63 }),
                    0.5,
                ),
                ("present", pool(&|i| i % n as u64), 1.0),
            ] {
                let name = |call: &str| format!("lines per key, {keys}/{lines} {call}");
                passes(c, &name("single"), kib, &pool, expected, |hashes| {
                    hashes.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count()
                });
                for batch in [16, 1024] {
                    passes(c, &name(&format!("by {batch}")), kib, &pool, expected, |hashes| {
                        let count = |hashes| {
                            filter.contains_batch(Hashed::slice(hashes), &mut found[..batch]);
                            found[..batch].iter().filter(|&&found| found).count()
                        };
                        hashes.chunks(batch).map(count).sum()
                    });
                }
            }
        }
    }
}

/// Times `each` on the hashes of a pass, which follow the order of the pool over and over. It must
/// count about `expected` of them.
fn passes(
    c: &mut Criterion,
    name: &str,
    kib: usize,
    pool: &[u64],
    expected: f64,
    mut each: impl FnMut(&[u64]) -> usize,
) {
    let (group, call) = name.split_once('/').expect("group/call");
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Elements(KEYS as u64));
    let mut passes = pool.chunks_exact(KEYS).cycle();
    group.bench_function(BenchmarkId::new(call, format!("{kib} KiB")), |b| {
        b.iter(|| {
            let count = each(passes.next().expect("it cycles"));
            assert!(
                (count as f64 / KEYS as f64 - expected).abs() < 0.03,
                "{count} of {KEYS}: {name}"
            );
        });
    });
    group.finish();
}

/// Full filters that can delete. A pass removes the keys that it inserted.
fn deletable(c: &mut Criterion) {
    let mut found = vec![false; KEYS];
    let count = |found: &[bool]| found.iter().filter(|&&found| found).count();
    for &kib in sizes() {
        let filter = CountingBloom::builder().memory_budget(kib << 10).build().unwrap();
        let n = filter.expected_keys() as u64;
        for start in (0..n).step_by(1 << 16) {
            filter.insert_batch(Hashed::slice(&Vec::from_iter(
                (start..n.min(start + (1 << 16))).map(number),
            )));
        }
        let present = Vec::from_iter((0..POOL as u64).map(|i| number(number(i) % n)));
        let absent = Vec::from_iter((0..POOL as u64).map(|i| number(i | 1 << 63)));
        for (name, pool, expected) in [("hit", &present, 1.0), ("miss", &absent, 0.01)] {
            passes(
                c,
                &format!("counting contains {name}/single"),
                kib,
                pool,
                expected,
                |hashes| hashes.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count(),
            );
            passes(
                c,
                &format!("counting contains {name}/batch"),
                kib,
                pool,
                expected,
                |hashes| {
                    filter.contains_batch(Hashed::slice(hashes), &mut found);
                    count(&found)
                },
            );
        }
        passes(c, "counting insert and remove/single", kib, &absent, 1.0, |hashes| {
            hashes.iter().for_each(|&hash| _ = filter.insert(&Hashed(hash)));
            hashes.iter().filter(|&&hash| filter.remove(&Hashed(hash))).count()
        });
        passes(c, "counting insert and remove/batch", kib, &absent, 1.0, |hashes| {
            filter.insert_batch(Hashed::slice(hashes));
            filter.remove_batch(Hashed::slice(hashes))
        });
        assert_eq!(filter.statistics().len.abs_diff(n as usize) * 100 / n as usize, 0);

        // Half of the keys are removed, at 26 bits a key.
        let n = (kib as u64 * 8192) / 26;
        let filter = TombstoneBloom::builder().expected_keys(n as usize).build().unwrap();
        filter.insert_batch(Hashed::slice(&Vec::from_iter((0..n).map(number))));
        filter.remove_batch(Hashed::slice(&Vec::from_iter((0..n / 2).map(number))));
        let present = Vec::from_iter((0..POOL as u64).map(|i| number(n / 2 + number(i) % (n - n / 2))));
        let removed = Vec::from_iter((0..POOL as u64).map(|i| number(number(i) % (n / 2))));
        for (name, pool, expected) in [
            ("hit", &present, 1.0),
            ("miss", &absent, 0.01),
            ("removed", &removed, 0.0),
        ] {
            passes(
                c,
                &format!("tombstone contains {name}/single"),
                kib,
                pool,
                expected,
                |hashes| hashes.iter().filter(|&&hash| filter.contains(&Hashed(hash))).count(),
            );
            passes(
                c,
                &format!("tombstone contains {name}/batch"),
                kib,
                pool,
                expected,
                |hashes| {
                    filter.contains_batch(Hashed::slice(hashes), &mut found);
                    count(&found)
                },
            );
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = hash, insert_fresh, filled, two_lines, deletable
}
criterion_main!(benches);
