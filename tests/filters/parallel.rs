//! The threads of a pool together give the same result as one thread.

use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_tests::number;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

fn filter(keys: usize) -> ConcurrentBloom {
    ConcurrentBloom::builder().expected_keys(keys).build().unwrap()
}

#[test]
fn lookups_answer_in_place() {
    let keys: Vec<u64> = (0..100_003).map(number).collect();
    let filter = filter(keys.len());
    filter.insert_batch(&keys[..50_000]);
    let (mut expected, mut found) = (vec![false; keys.len()], vec![true; keys.len()]);
    filter.contains_batch(&keys, &mut expected);
    assert!(expected[49_999] && expected.iter().filter(|&&found| !found).count() > 49_000);
    filter.parallel().contains_batch(&keys, &mut found);
    assert!(found == expected);
    let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
    found.fill(false);
    filter.parallel().contains_batch(Hashed::slice(&hashes), &mut found);
    assert!(found == expected);
}

/// Too few for the filter to be inserted in bulk.
#[test]
fn sparse_inserts_are_all_there() {
    let keys: Vec<u64> = (0..100_003).map(number).collect();
    let (expected, parallel) = (filter(10_000_000), filter(10_000_000));
    let count = expected.insert_batch(&keys);
    assert_eq!(parallel.parallel().insert_batch(&keys), count);
    assert!(parallel == expected);
}

/// With any number of threads, also more than there are lines.
#[test]
fn inserts_by_any_number_of_threads_are_the_same() {
    for keys in [100, 3000, 1_000_000] {
        let keys: Vec<u64> = (0..keys).map(number).collect();
        let expected = filter(keys.len());
        let count = keys.iter().filter(|key| expected.insert(*key)).count();
        for threads in [1, 2, 3, 30] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let filter = filter(keys.len());
            // (How many of the keys are new depends a little on their order, as bits of some hide
            // others.)
            let changed = pool.install(|| filter.parallel().insert_batch(&keys));
            assert!(changed.abs_diff(count) <= count / 1000, "{changed}, {count}");
            assert!(filter == expected, "{} keys, {threads} threads", keys.len());
            assert_eq!(pool.install(|| filter.parallel().insert_batch(&keys)), 0);
        }
    }
}

#[test]
fn a_union_takes_every_line() {
    let (one, other) = (filter(200_000), filter(200_000));
    assert!(one.layout().blocks > 3000);
    one.insert_batch(&(0..100_000u64).collect::<Vec<_>>());
    other.insert_batch(&(100_000..200_000u64).collect::<Vec<_>>());
    let expected = one.clone();
    assert_eq!(expected.union_from(&other), Ok(true));
    assert_eq!(one.parallel().union_from(&other), Ok(true));
    assert!(one == expected);
    assert_eq!(one.parallel().union_from(&other), Ok(false));
    // A change in one line alone is told.
    one.insert("new");
    assert_eq!(other.parallel().union_from(&one), Ok(true));
    assert_eq!(other.parallel().union_from(&one), Ok(false));
    assert!(one.parallel().union_from(&filter(10)).is_err());
}

#[test]
fn collecting_is_inserting_one_by_one() {
    let keys: Vec<String> = (0..50_000).map(|i| format!("key {i}")).collect();
    let expected = filter(keys.len());
    (&expected).extend(&keys);
    let mut own = filter(keys.len());
    own.par_extend(&keys);
    assert!(own == expected);
    // An iterator of unknown length.
    let shared = filter(keys.len());
    (&shared).par_extend(keys.par_iter().filter(|key| !key.is_empty()));
    assert!(shared == expected);
    let built = ConcurrentBloom::builder().build_from_par_iter(&keys).unwrap();
    assert!(built == expected);
    let built = ConcurrentBloom::builder()
        .expected_keys(7)
        .build_from_par_iter(&keys)
        .unwrap();
    assert_eq!(built.expected_keys(), 7);
    let unknown = keys.par_iter().filter(|key| !key.is_empty());
    let error = ConcurrentBloom::builder().build_from_par_iter(unknown).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("neither expected keys nor a memory budget")
    );
}
