//! Counters in stripes: each thread counts in its own cache line.

// Counts order nothing and are not part of the protocols: the model checker need not try their
// interleavings.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Each stripe has one `T`, which holds the counters.
#[derive(Debug)]
pub(crate) struct Striped<T> {
    /// One for each of the first threads. Only that thread counts there, without locked operations.
    owned: Box<[Stripe<T>]>,
    /// For all other threads. Their number is a power of two.
    shared: Box<[Stripe<T>]>,
}

/// Two lines wide, because x86-64 fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe<T>(T);

impl<T: Default> Striped<T> {
    pub(crate) fn new() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let stripes = |n: usize| (0..n).map(|_| Stripe::default()).collect();
        Self {
            owned: stripes(threads.saturating_mul(4).min(64)),
            shared: stripes(threads.next_power_of_two().min(64)),
        }
    }
}

impl<T> Striped<T> {
    /// Adds `n` to the counter that `count` selects.
    #[inline]
    pub(crate) fn add(&self, n: usize, count: impl Fn(&T) -> &AtomicU64) {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            /// The number of this thread, in the order of first calls. It is unique.
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let (thread, n) = (THREAD.with(|thread| *thread), n as u64);
        match self.owned.get(thread) {
            Some(stripe) => {
                // No other thread writes between the load and the store.
                let count = count(&stripe.0);
                count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            }
            None => {
                let stripe = &self.shared[thread & (self.shared.len() - 1)];
                count(&stripe.0).fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// The sum of the counters that `count` selects.
    pub(crate) fn sum(&self, count: impl Fn(&T) -> &AtomicU64) -> u64 {
        let stripes = self.owned.iter().chain(&self.shared);
        stripes.map(|stripe| count(&stripe.0).load(Ordering::Relaxed)).sum()
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    /// More threads than owned stripes, so that some count in the shared ones.
    #[test]
    fn counts_of_many_threads_add_up() {
        let counts = Striped::<[AtomicU64; 2]>::new();
        thread::scope(|scope| {
            for _ in 0..80 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counts.add(1, |counts| &counts[0]);
                        counts.add(2, |counts| &counts[1]);
                    }
                });
            }
        });
        assert_eq!(counts.sum(|counts| &counts[0]), 80_000);
        assert_eq!(counts.sum(|counts| &counts[1]), 160_000);
    }
}
