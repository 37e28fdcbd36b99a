//! Memory for words: zeroed, aligned to cache lines, and in huge pages if it is large.
//!
//! This file asks the allocator for zeros with the alignment of a word, and takes the aligned part
//! of them. So the allocator can hand out untouched pages of the system, which are zero already.
//! (If asked for more alignment, most allocators write the zeros themselves.) A filter of any size
//! is built in microseconds. The core that first writes to a page creates it.

use core::ops::{Deref, DerefMut};

/// An element of [`Words`]: 4 or 8 bytes, all zero when new.
///
/// # Safety
///
/// The type has 4 or 8 bytes without padding, is valid when they are all zero, and has no
/// destructor.
pub unsafe trait Word: Default {}
// SAFETY: an integer.
unsafe impl Word for u32 {}
// SAFETY: as above.
unsafe impl Word for u64 {}
// SAFETY: documented to have the representation of `u64`. (The model checker's is not treated as
// bytes.)
unsafe impl Word for crate::words::sync::AtomicU64 {}

#[cfg(not(lanebloom_loom))]
pub use zeroed::Words;

#[cfg(not(lanebloom_loom))]
mod zeroed {
    use super::{Word, huge_pages};
    use crate::geometry::layout::LINE_BYTES;
    use alloc::alloc::{alloc_zeroed, dealloc};
    use core::alloc::Layout;
    use core::marker::PhantomData;
    use core::ptr::NonNull;

    /// A boxed slice of words. The first word begins a cache line.
    #[derive(Debug)]
    pub struct Words<T> {
        pub(super) words: NonNull<T>,
        pub(super) len: usize,
        /// The allocation. The words are a part of it.
        given: NonNull<u8>,
        layout: Layout,
        owned: PhantomData<T>,
    }

    // SAFETY: it owns its words, as a box does.
    unsafe impl<T: Send> Send for Words<T> {}
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for Words<T> {}

    impl<T: Word> Words<T> {
        /// Allocates `len` zeros, or returns `None` if there is not enough memory.
        pub fn new(len: usize) -> Option<Self> {
            const { assert!(matches!(size_of::<T>(), 4 | 8) && !core::mem::needs_drop::<T>()) };
            let bytes = len.checked_mul(size_of::<T>())?;
            let huge = bytes >= huge_pages::WORTHWHILE;
            let align = if huge { huge_pages::BYTES } else { LINE_BYTES };
            let layout = Layout::from_size_align(bytes.checked_add(align)?, align_of::<T>()).ok()?;
            // SAFETY: the layout has at least `align` bytes.
            let given = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            let skip = given.addr().get().next_multiple_of(align) - given.addr().get();
            // SAFETY: `skip` is below `align`, so at least `bytes` bytes remain after it.
            let words = unsafe { given.add(skip) }.cast();
            if huge {
                huge_pages::ask(words.cast(), bytes);
            }
            Some(Self {
                words,
                len,
                given,
                layout,
                owned: PhantomData,
            })
        }
    }

    impl<T> Drop for Words<T> {
        fn drop(&mut self) {
            // SAFETY: given by the allocator for this layout, and not used any more.
            unsafe { dealloc(self.given.as_ptr(), self.layout) };
        }
    }
}

/// The model checker's words are not plain bytes, so they are made one by one.
#[cfg(lanebloom_loom)]
#[derive(Debug)]
pub struct Words<T>(alloc::boxed::Box<[T]>);

#[cfg(lanebloom_loom)]
impl<T: Word> Words<T> {
    /// `len` zeros.
    pub fn new(len: usize) -> Option<Self> {
        Some(Self(core::iter::repeat_with(T::default).take(len).collect()))
    }
}

/// The bytes, in the order that they have in memory.
impl Words<u64> {
    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        let words = &**self;
        // SAFETY: the words' own bytes, borrowed as long as they are; any byte is a valid `u8`.
        unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let words = &mut **self;
        // SAFETY: as above, borrowed mutably; any bytes are a valid `u64`.
        unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
    }
}

impl<T> Deref for Words<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        #[cfg(not(lanebloom_loom))]
        // SAFETY: `words` points to `len` words, valid since they were zeroed, which this owns.
        return unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.len) };
        #[cfg(lanebloom_loom)]
        return &self.0;
    }
}

impl<T> DerefMut for Words<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        #[cfg(not(lanebloom_loom))]
        // SAFETY: as above; borrowed mutably.
        return unsafe { core::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) };
        #[cfg(lanebloom_loom)]
        return &mut self.0;
    }
}

/// Puts large memory in pages of 2 MiB, if the system has them. With pages of 4 KiB, every access
/// to a filter larger than the TLB covers waits for a walk of the page tables, prefetched or not.
/// (Lookups in batches, AVX-512, Zen 4: 5.9 ns at 64 MiB and 8.5 at 512 MiB without huge pages, 4.4
/// and 6.1 with them.) The system does not report whether it granted the request; nothing depends
/// on it.
#[cfg(not(lanebloom_loom))]
mod huge_pages {
    use core::ptr::NonNull;

    /// The size of a huge page, on most systems.
    pub(super) const BYTES: usize = 2 << 20;
    /// The smallest memory that is worth the request, in bytes: two huge pages.
    pub(super) const WORTHWHILE: usize = 2 * BYTES;

    /// Requests huge pages for `bytes` bytes at `memory`, which is aligned to a huge page. The
    /// caller owns this memory and does not use it yet.
    #[cfg(target_os = "linux")]
    pub(super) fn ask(memory: NonNull<u8>, bytes: usize) {
        /// A multiple of the page size of every Linux, in bytes: the advice takes whole pages.
        const PAGE: usize = 64 << 10;

        // SAFETY: the caller owns these pages, and the advice does not change their contents. If it
        // fails, the pages are small.
        let _ = unsafe { libc::madvise(memory.as_ptr().cast(), bytes / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn ask(_memory: NonNull<u8>, _bytes: usize) {}
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::words::sync::AtomicU64;

    #[test]
    fn words_are_zero_and_aligned() {
        let halves = Words::<u32>::new((4 << 20) / 4 + 1).unwrap();
        assert!(halves.iter().all(|&word| word == 0) && halves.as_ptr().addr() % (2 << 20) == 0);
        for len in [0, 1, 8, 9, 1000, (4 << 20) / 8 - 1, (4 << 20) / 8, (9 << 20) / 8 + 3] {
            let mut words = Words::<u64>::new(len).unwrap();
            assert_eq!(words.len(), len);
            let align = if len < (4 << 20) / 8 { 64 } else { 2 << 20 };
            assert_eq!(words.as_ptr().addr() % align, 0, "{len}");
            assert!(words.iter().all(|&word| word == 0));
            words.fill(u64::MAX);
            assert_eq!(
                words.iter().map(|word| word.count_ones() as usize).sum::<usize>(),
                64 * len
            );
        }
    }

    #[test]
    fn too_much_memory_is_refused() {
        assert!(Words::<AtomicU64>::new(usize::MAX).is_none());
        assert!(Words::<AtomicU64>::new(usize::MAX / 8).is_none());
        assert!(Words::<AtomicU64>::new(usize::MAX / 32).is_none());
    }
}
