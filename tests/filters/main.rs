//! The promises of each type to its callers, a file for each type or family of methods. Sizes are
//! small with assertions, where everything is slow, and large in a release build, where
//! ci/release.sh runs these tests. What all filters share is tested in `contract`.

mod batch;
mod bitmap;
mod bulk;
mod counting;
mod cuckoo;
mod dleft;
mod folds;
mod overfull;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod sets;
mod tombstone;
mod windowed;

use lanebloom::traits::Planned;
use lanebloom::{Builder, ConcurrentBloom, CountingBloom, Filter};
use lanebloom_tests::number;

fn numbers(seed: u64, keys: usize) -> Vec<u64> {
    (0..keys as u64).map(|i| number(seed << 32 | i)).collect()
}

fn bloom(blocks: usize, lines: usize, words: usize) -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    builder.lines_per_key(lines).words_per_key(words).build().unwrap()
}

fn counting(blocks: usize, words: usize) -> CountingBloom {
    let builder = CountingBloom::builder().memory_budget(64 * blocks);
    builder.words_per_key(words).build().unwrap()
}

fn rated<E: Planned>(builder: Builder<E>, keys: usize, rate: f64) -> Filter<E> {
    builder.expected_keys(keys).false_positive_rate(rate).build().unwrap()
}
