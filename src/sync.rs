//! The only switch between the real primitives and the model checker's.
//!
//! Everything that is shared between threads takes its atomics from here. Under `--cfg lanebloom_loom` they are
//! loom's, which try every interleaving and every value that the memory model allows. It is a `cfg` and not a
//! feature because features only add, and not plain `cfg(loom)` because that one reaches every dependency.

#[cfg(not(lanebloom_loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(lanebloom_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

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
    /// The model checker cannot look into arc-swap, whose own affair its correctness is. A lock orders no less than
    /// that, which is why the users of `Swap` state the order that they need by fences of their own.
    #[cfg(lanebloom_loom)]
    pub(crate) struct Swap<T>(loom::sync::Mutex<Arc<T>>);

    #[cfg(not(lanebloom_loom))]
    impl<T> Swap<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(arc_swap::ArcSwap::from_pointee(value))
        }

        /// Lock-free, as long as a thread holds fewer than eight of these.
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
            Self(loom::sync::Mutex::new(Arc::new(value)))
        }

        pub(crate) fn load(&self) -> impl core::ops::Deref<Target = Arc<T>> {
            alloc::boxed::Box::new(Arc::clone(&self.0.lock().unwrap()))
        }

        pub(crate) fn store(&self, value: T) {
            *self.0.lock().unwrap() = Arc::new(value);
        }
    }
}
