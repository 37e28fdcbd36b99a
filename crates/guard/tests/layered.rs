//! `Layered`: what it holds before, in and after a rebuild; its memory and its rate. `threads.rs`
//! and `stress.rs` have it among threads.

use lanebloom_guard::lanebloom::Bitmap;
use lanebloom_guard::{CacheGuard, GuardFilter, Layered};

fn layered(rate: f64) -> Layered {
    Layered::new(10_000, rate).unwrap()
}

fn bitmap(guard: &CacheGuard<u64, Layered>, keys: &[u64]) -> Vec<bool> {
    let mut words = vec![0; keys.len().div_ceil(64)];
    guard.filter().contains_batch(keys, Bitmap(&mut words));
    (0..keys.len()).map(|i| words[i / 64] >> (i % 64) & 1 == 1).collect()
}

#[test]
fn every_key_is_held_until_a_commit_and_only_the_valid_ones_then() {
    let guard = CacheGuard::<u64, _>::new(layered(1e-4));
    assert!(guard.is_open() && guard.check(&1).is_some());
    guard.insert(&1);
    let rebuild = guard.rebuild(layered(1e-4)).unwrap();
    rebuild.insert_all(0..5000);
    guard.insert(&6000);
    assert!(guard.is_open() && bitmap(&guard, &[7000; 70]).iter().all(|&found| found));
    rebuild.commit().unwrap();
    assert!(!guard.is_open());
    guard.insert(&7000);
    guard.insert_batch(&[7001, 7002]);
    let asked: Vec<u64> = (0..12_000).collect();
    let found = bitmap(&guard, &asked);
    let strangers = asked.iter().filter(|&&key| {
        let is_valid = key < 5000 || [6000, 7000, 7001, 7002].contains(&key);
        assert!(found[key as usize] || !is_valid, "{key}");
        assert_eq!(guard.check(&key).is_some(), found[key as usize]);
        found[key as usize] && !is_valid
    });
    assert!(strangers.count() < 8);
    assert_eq!(guard.filter().statistics().len.abs_diff(5004), 0);
    // The next one begins without them.
    let rebuild = guard.rebuild(layered(1e-4)).unwrap();
    rebuild.insert(&3);
    rebuild.commit().unwrap();
    assert!(guard.check(&3).is_some() && guard.check(&6000).is_none());
}

#[test]
fn it_takes_two_thirds_of_the_memory() {
    const KEYS: u64 = 200_000;
    let guard = CacheGuard::<u64, _>::new(Layered::new(2000, 1e-4).unwrap());
    let rebuild = guard.rebuild(Layered::new(2000, 1e-4).unwrap()).unwrap();
    rebuild.insert_all(0..KEYS);
    rebuild.commit().unwrap();
    let filter = guard.filter();
    let bits = 8.0 * filter.memory_bytes() as f64 / KEYS as f64;
    assert!(bits < 16.1, "{bits}");
    assert!(filter.false_positive_rate() <= 1e-4);
    let found = (KEYS..KEYS + 1_000_000)
        .filter(|key| guard.check(key).is_some())
        .count();
    assert!((20..110).contains(&found), "{found}");
}
