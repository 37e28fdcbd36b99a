//! A place for a value that is set once while others read it, without locks. No thread waits for
//! the thread that sets the value. Several threads may try, and one wins. The layers of a growing
//! filter live in such places.

use crate::words::sync::{AtomicPtr, Ordering};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::null_mut;

/// A boxed value, or none yet.
///
/// | operation | ordering | partner, and why |
/// |---|---|---|
/// | `get` | load `Acquire` | the exchange in `set`: a thread that sees the pointer sees the value |
/// | `set` | compare-exchange `Release` | as above; `set` does not read another thread's value, so its failure is `Relaxed` |
/// | `get_mut`, `take`, drop | load `Relaxed` | borrowed mutably: no other thread has it, and the handover ordered its writes |
pub(crate) struct OnceBox<T> {
    /// Null, or from `Box::into_raw`. (A box of an array: only for slices can an allocation fail
    /// with an error.)
    value: AtomicPtr<[T; 1]>,
    owned: PhantomData<*mut T>,
}

// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for OnceBox<T> {}
// SAFETY: `get` gives references to several threads, hence `Sync`; by `set` a value comes from one
// thread to be dropped in another, hence `Send`.
unsafe impl<T: Send + Sync> Sync for OnceBox<T> {}

impl<T> OnceBox<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: AtomicPtr::new(null_mut()),
            owned: PhantomData,
        }
    }

    /// The value, if it is there. Once there it stays.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: if it is not null, `set` put it there, from a box, and only `take` and drop make
        // it invalid, which borrow this mutably.
        let value = unsafe { value.as_ref() }?;
        Some(&value[0])
    }

    /// The value, if it is there, borrowed mutably.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: as in `get`; the mutable borrow excludes other references.
        let value = unsafe { value.as_mut() }?;
        Some(&mut value[0])
    }

    /// Makes `value` the value. If there is one already, drops `value`. Returns `None` if there is
    /// not enough memory for the box.
    pub(crate) fn set(&self, value: T) -> Option<()> {
        let value = Box::into_raw(try_box(value)?);
        let set = self
            .value
            .compare_exchange(null_mut(), value, Ordering::Release, Ordering::Relaxed);
        if set.is_err() {
            // SAFETY: from `Box::into_raw`, and no other thread got it.
            drop(unsafe { Box::from_raw(value) });
        }
        Some(())
    }

    /// Takes the value out, if it is there.
    pub(crate) fn take(&mut self) -> Option<T> {
        let value = self.value.load(Ordering::Relaxed);
        if value.is_null() {
            return None;
        }
        self.value = AtomicPtr::new(null_mut());
        // SAFETY: from `Box::into_raw` in `set`; as this is borrowed mutably, there are no
        // references to it, and it is gone from here.
        let [value] = *unsafe { Box::from_raw(value) };
        Some(value)
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        self.take();
    }
}

/// A box, or `None` where `Box::new` would abort.
fn try_box<T>(value: T) -> Option<Box<[T; 1]>> {
    let mut values = Vec::new();
    values.try_reserve_exact(1).ok()?;
    values.push(value);
    values.into_boxed_slice().try_into().ok()
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::sync::Arc;

    #[test]
    fn the_first_value_stays_and_every_one_is_dropped_once() {
        let (first, second) = (Arc::new(1), Arc::new(2));
        let mut once = OnceBox::new();
        assert!(once.get().is_none());
        assert_eq!(once.set(Arc::clone(&first)), Some(()));
        assert_eq!(once.set(Arc::clone(&second)), Some(()));
        assert_eq!(once.get(), Some(&first));
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 1));
        assert_eq!(once.take(), Some(Arc::clone(&first)));
        assert!(once.get().is_none() && once.take().is_none());
        assert_eq!(Arc::strong_count(&first), 1);
        assert_eq!(once.set(Arc::clone(&second)), Some(()));
        drop(once);
        assert_eq!(Arc::strong_count(&second), 1);
    }
}
