//! The only switch between the real primitives and the model checker's.
//!
//! All atomics that threads share come from here. Under `cfg(lanebloom_loom)`, which the manifests
//! in `loom-tests` set, they are loom's, which try every interleaving and every value that the
//! memory model allows. It is a `cfg` and not a feature because features only add. It is not plain
//! `cfg(loom)` because that reaches every dependency.

#[cfg(not(lanebloom_loom))]
pub use core::sync::atomic::AtomicU64;
#[cfg(not(lanebloom_loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, Ordering, fence};
#[cfg(lanebloom_loom)]
pub use loom::sync::atomic::AtomicU64;
#[cfg(lanebloom_loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, Ordering, fence};

/// Lets time pass while this thread waits for another; `turn` counts the calls.
#[inline]
pub(crate) fn wait(turn: u32) {
    /// After this number of turns the other thread is probably not running.
    const SHORT: u32 = 64;

    #[cfg(all(feature = "std", not(lanebloom_loom)))]
    if turn > SHORT {
        return std::thread::yield_now();
    }
    let _ = (turn, SHORT);
    #[cfg(not(lanebloom_loom))]
    core::hint::spin_loop();
    // The model checker runs another thread then.
    #[cfg(lanebloom_loom)]
    loom::hint::spin_loop();
}

#[cfg(feature = "std")]
pub(crate) use swap::Guard;
#[cfg(feature = "std")]
pub use swap::Swap;

/// A shared pointer that can be replaced while others read through it.
#[cfg(feature = "std")]
pub(crate) mod swap {
    use super::{Ordering, fence};
    use alloc::sync::Arc;

    /// A value that can be replaced while others read it.
    #[cfg(not(lanebloom_loom))]
    pub struct Swap<T>(arc_swap::ArcSwap<T>);
    /// The model checker cannot look into arc-swap, whose correctness is its own affair. Its
    /// stand-in keeps every value that it ever had, and publishes the index of the current one. Its
    /// orderings, `Acquire` and `Release`, are the weakest that the users of `Swap` may assume.
    #[cfg(lanebloom_loom)]
    pub struct Swap<T> {
        values: std::sync::Mutex<alloc::vec::Vec<Arc<T>>>,
        present: loom::sync::atomic::AtomicUsize,
    }

    /// A value that was current when it was loaded, kept while it is read.
    #[cfg(not(lanebloom_loom))]
    pub(crate) type Guard<T> = arc_swap::Guard<Arc<T>>;
    #[cfg(lanebloom_loom)]
    pub(crate) type Guard<T> = alloc::boxed::Box<Arc<T>>;

    impl<T> Swap<T> {
        /// Writes into the value's target so that no replacement is missed. Calls `write` with
        /// `value`, which was loaded before. If another value has taken its place meanwhile, calls
        /// `write` with that one too, until none has. Combines the results of the calls.
        ///
        /// Its partner is a thread that replaces the value, which ends in the other fence, and then
        /// reads what others wrote. One of the two fences comes first: either that thread sees this
        /// call's write, or this call sees the new value and writes there too.
        #[inline]
        pub fn write_to_current<R>(
            &self,
            mut value: Guard<T>,
            mut write: impl FnMut(&T) -> R,
            combine: impl Fn(R, R) -> R,
        ) -> R {
            let mut result = write(&value);
            loop {
                fence(Ordering::SeqCst);
                let now = self.load();
                if Arc::ptr_eq(&value, &now) {
                    return result;
                }
                value = now;
                result = combine(result, write(&value));
            }
        }
    }

    #[cfg(not(lanebloom_loom))]
    impl<T> Swap<T> {
        /// Creates it with `value` as the first value.
        pub fn new(value: T) -> Self {
            Self(arc_swap::ArcSwap::from_pointee(value))
        }

        /// Lock-free; a load of arc-swap never waits for another thread.
        #[inline]
        pub fn load(&self) -> Guard<T> {
            self.0.load()
        }

        /// Replaces the value. Waits until no thread holds the old value, and drops it in this
        /// thread. Threads that load never wait. Ends in a `SeqCst` fence.
        ///
        /// A thread that holds a value from [`load`](Self::load) must not call this: it would wait
        /// for itself.
        pub fn replace(&self, value: T) {
            /// After this number of turns the thread sleeps, since a batch may hold the value for
            /// long.
            const SHORT: u32 = 1024;

            // Before arc-swap returns, it turns the loans of all readers into counted references.
            // No reader can get the old value any more, so the count only falls from now on.
            let old = self.0.swap(Arc::new(value));
            let mut turn = 0;
            // `strong_count` orders nothing. The drop below does: it sees what the readers did
            // before theirs.
            while Arc::strong_count(&old) > 1 {
                if turn < SHORT {
                    super::wait(turn);
                    turn += 1;
                } else {
                    std::thread::sleep(core::time::Duration::from_micros(100));
                }
            }
            drop(old);
            fence(Ordering::SeqCst);
        }

        /// Replaces the value by `new` if it still is `current`; returns whether it did. Ends in a
        /// `SeqCst` fence.
        pub fn compare_and_swap(&self, current: &Arc<T>, new: Arc<T>) -> bool {
            let swapped = Arc::ptr_eq(&self.0.compare_and_swap(current, new), current);
            fence(Ordering::SeqCst);
            swapped
        }
    }

    #[cfg(lanebloom_loom)]
    impl<T> Swap<T> {
        /// Creates it with `value` as the first value.
        pub fn new(value: T) -> Self {
            Self {
                values: std::sync::Mutex::new(alloc::vec![Arc::new(value)]),
                present: loom::sync::atomic::AtomicUsize::new(0),
            }
        }

        /// The current value.
        pub fn load(&self) -> Guard<T> {
            let present = self.present.load(Ordering::Acquire);
            alloc::boxed::Box::new(Arc::clone(&self.values.lock().unwrap()[present]))
        }

        /// Replaces the value, and ends in a `SeqCst` fence.
        pub fn replace(&self, value: T) {
            let last = self.keep(Arc::new(value));
            self.present.store(last, Ordering::Release);
            fence(Ordering::SeqCst);
        }

        /// Replaces the value by `new` if it still is `current`; returns whether it did. Ends in a
        /// `SeqCst` fence.
        pub fn compare_and_swap(&self, current: &Arc<T>, new: Arc<T>) -> bool {
            let is_current = |value| Arc::ptr_eq(value, current);
            let place = self.values.lock().unwrap().iter().position(is_current).unwrap();
            let last = self.keep(new);
            let swapped = self
                .present
                .compare_exchange(place, last, Ordering::AcqRel, Ordering::Acquire);
            fence(Ordering::SeqCst);
            swapped.is_ok()
        }

        /// Keeps a new value and returns its index.
        fn keep(&self, value: Arc<T>) -> usize {
            let mut values = self.values.lock().unwrap();
            values.push(value);
            values.len() - 1
        }
    }
}
