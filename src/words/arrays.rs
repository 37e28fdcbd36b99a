//! Splits a slice into arrays of equal length and a rest. The standard library has the same since
//! Rust 1.88, as methods; this file goes when the minimum version reaches that.

use core::slice;

/// All whole arrays of a slice, and the fewer than `N` elements after them.
#[inline(always)]
#[must_use]
pub fn as_chunks<const N: usize, T>(all: &[T]) -> (&[[T; N]], &[T]) {
    const { assert!(N > 0, "an array has at least one element") };
    let (whole, rest) = all.split_at(all.len() / N * N);
    // SAFETY: an array of `N` elements has the layout of `N` elements in a row, and `whole` has
    // `all.len() / N` times `N`. The arrays are borrowed as `all` is.
    (
        unsafe { slice::from_raw_parts(whole.as_ptr().cast(), all.len() / N) },
        rest,
    )
}

/// [`as_chunks`] of a mutable slice.
#[inline(always)]
#[must_use]
pub(crate) fn as_chunks_mut<const N: usize, T>(all: &mut [T]) -> (&mut [[T; N]], &mut [T]) {
    const { assert!(N > 0, "an array has at least one element") };
    let chunks = all.len() / N;
    let (whole, rest) = all.split_at_mut(chunks * N);
    // SAFETY: as in `as_chunks`. Nothing else refers to `whole` while the arrays are borrowed.
    (
        unsafe { slice::from_raw_parts_mut(whole.as_mut_ptr().cast(), chunks) },
        rest,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn arrays_are_the_slice_in_order() {
        for len in 0..10 {
            let mut all: Vec<usize> = (0..len).collect();
            let (whole, rest) = as_chunks::<3, _>(&all);
            assert_eq!((whole.len(), rest.len()), (len / 3, len % 3));
            assert_eq!([whole.as_flattened(), rest].concat(), all);

            let (whole, rest) = as_chunks_mut::<3, _>(&mut all);
            whole.iter_mut().for_each(|chunk| chunk[1] += 100);
            rest.fill(7);
            let expected = |i| match i {
                _ if i >= len / 3 * 3 => 7,
                _ if i % 3 == 1 => i + 100,
                _ => i,
            };
            assert_eq!(all, (0..len).map(expected).collect::<Vec<_>>());
        }
    }
}
