//! A cell that is set once while other threads read it, without locks. No thread waits for the
//! thread that sets the value. If several threads try, one wins. The layers of a growing filter are
//! such cells.

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
pub struct OnceBox<T> {
    /// Null, or from `Box::into_raw`. (It is a box of an array, since only allocations of slices
    /// can return an error.)
    value: AtomicPtr<[T; 1]>,
    owned: PhantomData<*mut T>,
}

// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for OnceBox<T> {}
// SAFETY: `get` gives references to several threads, hence `Sync`; a value that one thread `set`
// may be dropped by another, hence `Send`.
unsafe impl<T: Send + Sync> Sync for OnceBox<T> {}

impl<T> Default for OnceBox<T> {
    /// Without a value.
    fn default() -> Self {
        Self {
            value: AtomicPtr::new(null_mut()),
            owned: PhantomData,
        }
    }
}

impl<T> OnceBox<T> {
    /// The value, if it is set. A value that is set stays.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null comes from a box in `set`. Only `take` and drop free
        // it, and they borrow this mutably.
        let value = unsafe { value.as_ref() }?;
        Some(&value[0])
    }

    /// The value, if it is set, borrowed mutably.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: as in `get`; the mutable borrow excludes other references.
        let value = unsafe { value.as_mut() }?;
        Some(&mut value[0])
    }

    /// Sets the value, or drops `value` if one is set already. Returns `None` if there is not
    /// enough memory for the box.
    #[must_use = "there may be no memory"]
    pub fn set(&self, value: T) -> Option<()> {
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

    /// Takes the value out, if it is set.
    pub(crate) fn take(&mut self) -> Option<T> {
        let value = self.value.load(Ordering::Relaxed);
        if value.is_null() {
            return None;
        }
        self.value = AtomicPtr::new(null_mut());
        // SAFETY: from `Box::into_raw` in `set`. The mutable borrow excludes references to it, and
        // the pointer is cleared above.
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
        let mut once = OnceBox::default();
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
