//! A guard among real threads. Loom proves its protocol on one line; these tests run at the size of
//! a filter and the speed of the machine.

use lanebloom::{ConcurrentBloom, SipHash13};
use lanebloom_guard::{CacheGuard, GuardFilter, Layered};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const THREADS: usize = 4;

/// Small where everything is slow, with debug assertions.
const STRESS_KEYS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// Runs `work` in threads that begin at the same moment, each with its number.
fn together<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = &Barrier::new(threads);
    let work = &work;
    thread::scope(|scope| {
        let run = |i| {
            scope.spawn(move || {
                barrier.wait();
                work(i)
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Sets the flag when it goes, also by a panic: the other threads end then, and a test that fails
/// does not hang.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_guard_turns_no_valid_key_away_while_it_is_rebuilt() {
    turns_no_valid_key_away(|| {
        let builder = ConcurrentBloom::builder().hasher(SipHash13::random());
        builder.expected_keys(STRESS_KEYS).build().unwrap()
    });
}

#[test]
fn a_guard_over_layers_turns_no_valid_key_away_while_it_is_rebuilt() {
    turns_no_valid_key_away(|| Layered::new(STRESS_KEYS / 10, 0.01).unwrap());
}

/// Rows are added and asked for while the guard is rebuilt over and over: none is ever turned away.
fn turns_no_valid_key_away<F: GuardFilter>(new: impl Fn() -> F + Sync) {
    const BATCH: usize = 20;
    let filter = new();
    filter.complete().unwrap();
    let guard = CacheGuard::<usize, F>::new(filter);
    assert!(!guard.is_open());
    // The store: rows below `rows` exist.
    let rows = AtomicUsize::new(0);
    let announced = AtomicUsize::new(0);
    let done = AtomicBool::new(false);
    let rebuilds: usize = together(THREADS, |i| {
        let mut rebuilds = 0;
        match i {
            0 => {
                let _end = SetAtEnd(&done);
                let mut added = 0;
                // By single calls and by batches in turn.
                for len in [1, BATCH].into_iter().cycle() {
                    let new: Vec<usize> = (added..STRESS_KEYS).take(len).collect();
                    added += new.len();
                    rows.store(added, Ordering::Release);
                    match new[..] {
                        [] => break,
                        [row] => guard.insert(&row),
                        _ => guard.insert_batch(&new),
                    }
                    announced.store(added, Ordering::Release);
                }
            }
            1 => {
                // Once at least, however late this thread gets to run.
                while rebuilds == 0 || !done.load(Ordering::Acquire) {
                    let rebuild = guard.rebuild(new()).unwrap();
                    rebuild.insert_all(0..rows.load(Ordering::Acquire));
                    rebuild.commit().unwrap();
                    rebuilds += 1;
                }
            }
            _ => {
                let mut asked = i as u64;
                while !done.load(Ordering::Acquire) {
                    let known = announced.load(Ordering::Acquire);
                    if known > 0 {
                        asked = asked.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        // The newest are the ones that a rebuild may miss.
                        for row in [known - 1, (asked >> 32) as usize % known] {
                            assert_eq!(guard.get_with(&row, || Some(row)), Some(row), "row {row} of {known}");
                        }
                        let newest: Vec<usize> = (known.saturating_sub(2 * BATCH)..known).collect();
                        let mut admitted = Vec::new();
                        guard.check_batch(&newest, |i, admission| {
                            admission.record(true);
                            admitted.push(newest[i]);
                        });
                        assert_eq!(admitted, newest);
                    }
                }
            }
        }
        rebuilds
    })
    .into_iter()
    .sum();
    assert!(rebuilds > 0 && !guard.is_open());
    assert!((0..STRESS_KEYS).all(|row| guard.check(&row).is_some()));
    let stats = guard.stats();
    assert_eq!((stats.turned_away, stats.false_positives), (0, 0));
    assert_eq!(stats.admitted - stats.found, STRESS_KEYS as u64);
}
