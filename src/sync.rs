//! The only switch between the real primitives and the model checker's.
//!
//! Everything that is shared between threads takes its atomics from here. Under `--cfg lanebloom_loom` they are
//! loom's, which try every interleaving and every value that the memory model allows. It is a `cfg` and not a
//! feature because features only add, and not plain `cfg(loom)` because that one reaches every dependency.

#[cfg(not(lanebloom_loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(lanebloom_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Lets time pass while another thread holds what this one waits for; `turn` counts the times.
#[inline]
pub(crate) fn wait(turn: u32) {
    /// After so many turns the holder is taken for one that does not run.
    #[cfg(all(feature = "std", not(lanebloom_loom)))]
    const SHORT: u32 = 64;

    #[cfg(all(feature = "std", not(lanebloom_loom)))]
    if turn > SHORT {
        return std::thread::yield_now();
    }
    let _ = turn;
    #[cfg(not(lanebloom_loom))]
    core::hint::spin_loop();
    // The model checker runs another thread then.
    #[cfg(lanebloom_loom)]
    loom::hint::spin_loop();
}

#[cfg(feature = "guard")]
pub(crate) use swap::{AtomicBool, Swap};

/// A shared pointer that can be replaced while others read through it.
#[cfg(feature = "guard")]
mod swap {
    use alloc::sync::Arc;

    #[cfg(not(lanebloom_loom))]
    pub(crate) use core::sync::atomic::AtomicBool;
    #[cfg(lanebloom_loom)]
    pub(crate) use loom::sync::atomic::AtomicBool;

    #[cfg(not(lanebloom_loom))]
    pub(crate) struct Swap<T>(arc_swap::ArcSwap<T>);
    /// The model checker cannot look into arc-swap, whose correctness is its own affair. Its stand-in keeps every value
    /// that it ever had, and publishes the index of the present one, ordered as weakly as the users of `Swap` may
    /// assume: `Acquire` and `Release`.
    #[cfg(lanebloom_loom)]
    pub(crate) struct Swap<T> {
        values: std::sync::Mutex<alloc::vec::Vec<Arc<T>>>,
        present: loom::sync::atomic::AtomicUsize,
    }

    #[cfg(not(lanebloom_loom))]
    impl<T> Swap<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(arc_swap::ArcSwap::from_pointee(value))
        }

        /// Lock-free; a load of arc-swap never waits for another thread.
        pub(crate) fn load(&self) -> impl core::ops::Deref<Target = Arc<T>> {
            self.0.load()
        }

        pub(crate) fn store(&self, value: T) {
            self.0.store(Arc::new(value));
        }
    }

    #[cfg(lanebloom_loom)]
    impl<T> Swap<T> {
        pub(crate) fn new(value: T) -> Self {
            Self {
                values: std::sync::Mutex::new(alloc::vec![Arc::new(value)]),
                present: loom::sync::atomic::AtomicUsize::new(0),
            }
        }

        pub(crate) fn load(&self) -> impl core::ops::Deref<Target = Arc<T>> {
            let present = self.present.load(super::Ordering::Acquire);
            alloc::boxed::Box::new(Arc::clone(&self.values.lock().unwrap()[present]))
        }

        pub(crate) fn store(&self, value: T) {
            let mut values = self.values.lock().unwrap();
            values.push(Arc::new(value));
            let last = values.len() - 1;
            drop(values);
            self.present.store(last, super::Ordering::Release);
        }
    }
}
