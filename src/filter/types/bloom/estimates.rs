//! The numbers of keys that two filters have in common, and together.

use super::Bloom;
use crate::error::IncompatibleError;
use crate::filter::Filter;
use crate::filter::methods::sets::both;
use crate::filter::traits::Union;
use crate::hash::FilterHasher;
use crate::words::bits::{self, ones_of};
use core::array;

/// The numbers of keys in `engine`, in `other`, and in either.
fn estimated_lens(engine: &Bloom, other: &Bloom) -> [usize; 3] {
    let mut ones = [0; 3];
    for (a, b) in both(engine, other, 0..engine.layout.blocks) {
        let either = array::from_fn(|i| a[i] | b[i]);
        for (ones, line) in ones.iter_mut().zip([a, b, either]) {
            *ones += ones_of(&line);
        }
    }
    bits::acquire();
    ones.map(|ones| engine.layout.keys_for(ones))
}

/// Estimates for two filters. They fail as [`union_from`](Self::union_from): if layout or hasher
/// differ.
impl<S: FilterHasher> Filter<Bloom, S> {
    /// An estimate of the number of distinct keys in either filter: the
    /// [`estimated_len`](Self::estimated_len) of their union, which is not made.
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000u32);
    /// b.insert_all(40_000..80_000u32);
    /// assert!(a.estimated_union_len(&b).unwrap().abs_diff(80_000) < 500);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn estimated_union_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
        self.check_union(other)?;
        let [_, _, either] = estimated_lens(&self.engine, &other.engine);
        Ok(either)
    }

    /// An estimate of the number of distinct keys that are in both filters: those of each less
    /// those of either.
    ///
    /// The standard error is at most `0.5 * sqrt(n)` for two filters with their `n` expected keys,
    /// however few keys are common: two filters of a million keys cannot show whether they have 500
    /// keys in common, or none.
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000u32);
    /// b.insert_all(40_000..80_000u32);
    /// assert!(a.estimated_intersection_len(&b).unwrap().abs_diff(10_000) < 500);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn estimated_intersection_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
        self.check_union(other)?;
        let [ours, theirs, either] = estimated_lens(&self.engine, &other.engine);
        Ok(ours.saturating_add(theirs).saturating_sub(either))
    }
}
