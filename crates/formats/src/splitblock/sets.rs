//! Two filters, compared and combined as sets of keys: intersection, subset, disjoint sets, and the
//! numbers of keys that both or either have.

use super::SplitBlockBloom;
use super::block::Block;
use super::sizing;
use core::array;
use lanebloom::IncompatibleError;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{acquire, engine, engine_mut};

/// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from): if the
/// numbers of blocks differ.
impl SplitBlockBloom {
    /// Keeps only what `other` has too; returns whether that changed this filter. `other` may be in
    /// use meanwhile. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// The result answers `true` exactly if both filters would have. So it has every key that was
    /// inserted into both, and a key of only one at the other one's rate. It is not the filter of
    /// the common keys alone: bits that different keys set in the two filters stay too. [Its
    /// rate](lanebloom::Filter::current_false_positive_rate) for keys of neither is at most the
    /// lower one of the two. (At 1%, two full filters without a common key leave 1e-4; if half of
    /// the keys are common, 1.0e-3, where a filter of these alone has 3.2e-4.)
    ///
    /// # Memory ordering
    ///
    /// Ends in an `Acquire` on `other`'s content.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut both = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let other = both.clone();
    /// both.insert_batch(&["a", "b"]);
    /// other.insert_batch(&["b", "c"]);
    /// assert_eq!(both.intersection_from(&other), Ok(true));
    /// assert_eq!(both.intersection_from(&other), Ok(false));
    /// assert!(both.contains("b") && !both.contains("a") && !both.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("intersect_from", "and", "retain"))]
    pub fn intersection_from(&mut self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_same_size(other)?;
        let changed = engine_mut(&mut self.0).content.bits.and_from(other.bits());
        acquire();
        Ok(changed)
    }

    /// Whether no key is in both filters: `true` is certain, `false` may be by chance.
    ///
    /// It tells sparse filters apart: with 3 keys per block in each of the two, the answer is
    /// already `false` nearly always. (A full filter for 1% has 24 keys per block.) For fuller
    /// filters, use [`estimated_intersection_len`](Self::estimated_intersection_len).
    ///
    /// ```
    /// let a = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let b = a.clone();
    /// a.insert("a");
    /// b.insert("b");
    /// assert_eq!(a.is_disjoint(&b), Ok(true));
    /// b.insert("a");
    /// assert_eq!(a.is_disjoint(&b), Ok(false));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn is_disjoint(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_same_size(other)?;
        // A key has a bit in each word of 32.
        let share = |word: u64| word as u32 != 0 && word >> 32 != 0;
        Ok(!self.both(other).any(|(a, b)| (0..4).all(|i| share(a[i] & b[i]))))
    }

    /// Whether `other` has every key of this filter: `false` is certain, `true` may be by chance.
    /// It is `true` exactly if `other` [contains](lanebloom::Filter::contains) each of the keys:
    /// the ones that it lacks would all have to be false positives.
    ///
    /// If every insert into this filter happens after one of the same key into `other`, the answer
    /// is `true` beside such inserts too.
    ///
    /// # Memory ordering
    ///
    /// Ends in an `Acquire`, like a lookup's `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// let part = lanebloom_formats::SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// let all = part.clone();
    /// part.insert("a");
    /// all.insert_batch(&["a", "b"]);
    /// assert_eq!(part.is_subset(&all), Ok(true));
    /// assert_eq!(all.is_subset(&part), Ok(false));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "is_superset")]
    pub fn is_subset(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_same_size(other)?;
        let subset = self
            .both(other)
            .all(|(a, b)| (0..4).fold(0, |missing, i| missing | a[i] & !b[i]) == 0);
        acquire();
        Ok(subset)
    }

    /// An estimate of the number of distinct keys in either filter: the
    /// [`estimated_len`](Self::estimated_len) of their union, which is not made.
    ///
    /// ```
    /// let a = lanebloom_formats::SplitBlockBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000_u32);
    /// b.insert_all(40_000..80_000_u32);
    /// assert!(a.estimated_union_len(&b).unwrap().abs_diff(80_000) < 500);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn estimated_union_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
        let [_, _, either] = self.estimated_lens(other)?;
        Ok(either)
    }

    /// An estimate of the number of distinct keys that are in both filters: those of each less
    /// those of either.
    ///
    /// The standard error is `0.5 * sqrt(n)` for two filters with their `n` expected keys at 1%,
    /// and less at lower rates, however few keys are common: two filters of a million keys cannot
    /// show whether they have 500 keys in common, or none.
    ///
    /// ```
    /// let a = lanebloom_formats::SplitBlockBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000_u32);
    /// b.insert_all(40_000..80_000_u32);
    /// assert!(a.estimated_intersection_len(&b).unwrap().abs_diff(10_000) < 500);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn estimated_intersection_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
        let [ours, theirs, either] = self.estimated_lens(other)?;
        Ok(ours.saturating_add(theirs).saturating_sub(either))
    }

    /// The numbers of keys in this filter, in `other`, and in either.
    fn estimated_lens(&self, other: &Self) -> Result<[usize; 3], IncompatibleError> {
        self.check_same_size(other)?;
        let mut ones = [0; 3];
        for (a, b) in self.both(other) {
            let either = array::from_fn(|i| a[i] | b[i]);
            for (ones, block) in ones.iter_mut().zip([a, b, either]) {
                *ones += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            }
        }
        acquire();
        Ok(ones.map(|ones| sizing::keys_for(ones, self.blocks())))
    }

    /// The blocks of both, as lookups see them: each of this filter before that of `other`.
    fn both(&self, other: &Self) -> impl Iterator<Item = (Block<u64>, Block<u64>)> {
        let load = |block: &Block<_>| array::from_fn(|i| Load::load(&block[i]));
        let ours = engine(&self.0).blocks().iter().map(load);
        // Pairs with the inserts of a thread that inserts each key into `other` first.
        ours.inspect(|_| acquire())
            .zip(engine(&other.0).blocks().iter().map(load))
    }
}
