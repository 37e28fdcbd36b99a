//! A filter that forgets, beside one that does not. The bench measures the cost of its generations,
//! its clock and the second look of an insert, and the effect of a rotation. `cargo bench --bench
//! windowed`, about a minute; `-- --test` to see that it runs.
//!
//! Times are per pass over `KEYS` hashes, except for rotations, which are single. Filters are sized
//! for 1% and hold what they are sized for. The memory of a filter that forgets is that of all
//! generations and the spare one.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lanebloom::{Bitmap, ConcurrentBloom, Hashed, WindowedBloom};
use lanebloom_benches::number;
use std::hint::black_box;
use std::time::Duration;

/// Hashes of one pass.
const KEYS: usize = 1 << 14;
/// Hashes that are looked up before any comes again: more than a branch predictor remembers.
const POOL: usize = 1 << 20;

/// Sizes of the filter in KiB.
fn sizes() -> &'static [usize] {
    let all = &[512, 8 << 10, 64 << 10];
    // In a test run, a filter that is quickly filled.
    if std::env::args().any(|arg| arg == "--test") {
        &all[..1]
    } else {
        all
    }
}

/// By call, with the system's clock, and by the number of keys; each with all its generations full.
fn filters(kib: usize, generations: usize) -> [(&'static str, WindowedBloom); 3] {
    let builder = || {
        WindowedBloom::builder()
            .memory_budget(kib << 10)
            .generations(generations)
    };
    let build = |name, builder: lanebloom::windowed::Builder| {
        let filter = builder.build().unwrap();
        let share = filter.expected_keys() / (generations - 1);
        let hashes: Vec<u64> = (0..(share * generations) as u64).map(number).collect();
        // The first ones into the newest.
        for hashes in hashes.chunks(share).rev() {
            filter.rotate();
            filter.insert_batch(Hashed::slice(hashes));
        }
        (name, filter)
    };
    [
        build("by call", builder()),
        build("by age", builder().window(Duration::from_secs(1 << 30))),
        build("by number", builder().rotate_when_full()),
    ]
}

fn windowed(c: &mut Criterion) {
    for &kib in sizes() {
        let forgetless = ConcurrentBloom::builder().memory_budget(kib << 10).build().unwrap();
        let n = forgetless.expected_keys() as u64;
        forgetless.insert_batch(Hashed::slice(&(0..n).map(number).collect::<Vec<_>>()));
        for present in [true, false] {
            let mut group = c.benchmark_group(format!("{} of {kib} KiB", if present { "present" } else { "absent" }));
            group.throughput(Throughput::Elements(KEYS as u64));
            let mut run = |name: String, keys: u64, work: &mut dyn FnMut(&[u64]) -> usize| {
                let first = if present { 0 } else { 1 << 40 };
                let hashes: Vec<u64> = (0..POOL as u64).map(|i| number(first + i % keys)).collect();
                let mut passes = hashes.chunks_exact(KEYS).cycle();
                let found = work(&hashes);
                assert!(
                    if present { found == POOL } else { found < POOL / 50 },
                    "{name}: {found}"
                );
                group.bench_function(&name, |b| b.iter(|| work(black_box(passes.next().unwrap()))));
            };
            let mut bitmap = vec![0u64; POOL / 64];
            let mut ones = |hashes: &[u64], look_up: &dyn Fn(&[u64], &mut [u64])| {
                let bitmap = &mut bitmap[..hashes.len() / 64];
                look_up(hashes, bitmap);
                bitmap.iter().map(|word| word.count_ones() as usize).sum()
            };
            run("contains, one that does not forget".into(), n, &mut |hashes| {
                hashes
                    .iter()
                    .filter(|hash| forgetless.contains(&Hashed(**hash)))
                    .count()
            });
            run(
                "contains in a batch, one that does not forget".into(),
                n,
                &mut |hashes| {
                    ones(hashes, &|hashes, out| {
                        forgetless.contains_batch(Hashed::slice(hashes), Bitmap(out))
                    })
                },
            );
            for generations in [2, 4, 8] {
                for (name, filter) in filters(kib, generations) {
                    // The keys are in the newest generation, so absent keys take lookups in all
                    // generations, and present keys in one.
                    let keys = (filter.expected_keys() / (generations - 1)) as u64;
                    let id = |what| format!("{what}, {generations} generations {name}");
                    run(id("contains"), keys, &mut |hashes| {
                        hashes.iter().filter(|hash| filter.contains(&Hashed(**hash))).count()
                    });
                    run(id("contains in a batch"), keys, &mut |hashes| {
                        ones(hashes, &|hashes, out| {
                            filter.contains_batch(Hashed::slice(hashes), Bitmap(out))
                        })
                    });
                    if present {
                        run(id("insert"), keys, &mut |hashes| {
                            hashes.iter().filter(|hash| !filter.insert(&Hashed(**hash))).count()
                        });
                        run(id("insert in a batch"), keys, &mut |hashes| {
                            hashes.len() - filter.insert_batch(Hashed::slice(hashes))
                        });
                    }
                }
            }
        }
    }
}

fn rotate(c: &mut Criterion) {
    let mut group = c.benchmark_group("rotate");
    for &kib in sizes() {
        let filter = WindowedBloom::builder().memory_budget(kib << 10).build().unwrap();
        let bytes = filter.live_generations()[0].memory_bytes();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{} KiB each", bytes >> 10)), |b| {
            b.iter(|| {
                filter.insert(&Hashed(black_box(1 << 63 | 12345)));
                filter.rotate();
            });
        });
        assert_eq!(filter.statistics().len, 1);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    targets = windowed, rotate
}
criterion_main!(benches);
