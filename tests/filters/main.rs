//! The promises of each type to its callers, a file for each type or family of methods. Sizes are
//! small with assertions, where everything is slow, and large in a release build, where
//! ci/release.sh runs these tests. What all filters share is tested in `contract`.

mod bank;
mod batch;
mod bitmap;
mod bulk;
mod counting;
mod cuckoo;
mod divided;
mod dleft;
mod folds;
mod fuse;
mod overfull;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod sets;
mod tombstone;
mod windowed;

use lanebloom::internal::traits::{Encode, Insert, Planned};
use lanebloom::{Builder, ConcurrentBloom, CountingBloom, Filter, Membership};
use lanebloom_tests::{hit_rate, number};
use proptest::prelude::*;

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

/// The rate of a filter with slots that has its expected keys: as measured, by the filter's own
/// count, by the model, and as asked for.
fn measure_slots<E: Planned + Insert>(builder: Builder<E>, keys: usize, queries: usize, rate: Option<f64>) {
    let builder = builder.expected_keys(keys);
    let builder = rate.map_or(builder.clone(), |rate| builder.false_positive_rate(rate));
    let filter = builder.build().unwrap();
    filter.try_insert_all(0..keys as u64).unwrap();
    let (measured, exact) = (hit_rate(&filter, queries), filter.statistics().false_positive_rate);
    let model = filter.false_positive_rate_at(keys);
    let sigma = (exact / queries as f64).sqrt();
    let what = format!("{filter:?}: measured {measured:e}, exact {exact:e}, model {model:e}, sigma {sigma:e}");
    assert!((measured - exact).abs() <= 4.0 * sigma, "{what}");
    // Two keys that the filter takes for one may share a slot.
    assert!(exact <= model && exact > 0.995 * model, "{what}");
    assert!(
        rate.is_none_or(|rate| model <= rate && (rate > 0.0123 || model > rate * 0.11)),
        "{what}"
    );
    if std::env::var_os("SHOW_RATES").is_some() {
        println!("{what}, {:.2} bits per key", filter.statistics().bits_per_key);
    }
}

/// The filter, after its snapshot was read.
fn restarted<E: Encode>(filter: &Filter<E>) -> Filter<E> {
    let bytes = filter.snapshot().to_vec();
    let (same, _) = Filter::<E>::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
    assert!(same.snapshot().to_vec() == bytes && same.statistics() == filter.statistics());
    same
}

/// A step of a filter with slots beside its model.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(u64),
    InsertBatch(Vec<u64>),
    RemoveBatch(Vec<u64>),
    /// Goes on with a copy, or with a snapshot that is read.
    Clone,
    Restart,
}

/// Fewer than `most` steps, with batches of fewer than `batch` hashes. `removes` is how often
/// single removes and batches of them come, beside 8 single inserts and 2 batches.
fn steps(
    most: usize,
    hash: impl Strategy<Value = u64> + Clone + 'static,
    batch: usize,
    removes: [u32; 2],
) -> impl Strategy<Value = Vec<Step>> {
    let hashes = prop::collection::vec(hash.clone(), 0..batch);
    let step = prop_oneof![
        8 => hash.clone().prop_map(Step::Insert),
        removes[0] => hash.prop_map(Step::Remove),
        2 => hashes.clone().prop_map(Step::InsertBatch),
        removes[1] => hashes.prop_map(Step::RemoveBatch),
        1 => Just(Step::Clone),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..most)
}
