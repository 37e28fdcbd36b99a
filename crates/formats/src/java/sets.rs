//! Whole filters of Guava or of Spark, cleared and copied, and two filters as sets of keys: union,
//! intersection, subset, and the numbers of keys that both or either have.

use super::{JavaBloom, JavaFormat};
use crate::flat::Flat;
use crate::or_abort;
use alloc::format;
use lanebloom::internal::{acquire_if, sets};
use lanebloom::{BuildError, IncompatibleError};

/// Whole filters.
impl<F: JavaFormat> JavaBloom<F> {
    /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.is_empty());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.flat.bits.clear();
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::from_keys(["a"], 0.01)?;
    /// assert!(filter.try_clone()?.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            flat: self.flat.try_clone()?,
            ..*self
        })
    }

    /// Adds every key of `other` to this filter; returns whether that changed it: Guava's `putAll`,
    /// Spark's `mergeInPlace`. Both may be in use meanwhile.
    ///
    /// Everything that was inserted into `other` before is in this filter afterwards.
    ///
    /// # Errors
    ///
    /// Fails if strategy, version, seed, number of bits or number of hash functions differ. A
    /// `GuavaBloom` also fails if `other` is this filter, as in Guava. Then no key is added.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// let all = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a") && all.union_from(&all).is_err());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll", "merge_in_place", "mergeInPlace"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        let changed = self.flat.bits.or_from(&other.flat.bits, 0..self.flat.bits.blocks());
        acquire_if(!changed);
        Ok(changed)
    }

    /// Whether `other` can be [united](Self::union_from) with this filter.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.is_compatible(&filter.clone()));
    /// assert!(!filter.is_compatible(&GuavaBloom::with_capacity(2000, 0.01)?));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "isCompatible")]
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.check_union(other).is_ok()
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        if F::REFUSES_ITSELF && core::ptr::eq(self, other) {
            return Err(IncompatibleError::new("a filter cannot be united with itself"));
        }
        self.check_layout(other)
    }

    fn check_layout(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (self.layout, other.layout);
        if ours == theirs {
            return Ok(());
        }
        Err(IncompatibleError::new(format!(
            "the other filter's layout differs: {theirs} there, {ours} here"
        )))
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts if the allocation
/// fails; `try_clone` does not.
impl<F: JavaFormat> Clone for JavaBloom<F> {
    fn clone(&self) -> Self {
        or_abort(self.try_clone(), self.memory_bytes())
    }
}

/// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from) does for
/// filters of different layouts.
impl<F: JavaFormat> JavaBloom<F> {
    /// Keeps only what `other` has too; returns whether that changed this filter. `other` may be in
    /// use meanwhile. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// The result has every key that was inserted into both, and more keys of only one than the
    /// false-positive rate says: bits that different keys set in the two filters stay too.
    ///
    /// # Errors
    ///
    /// Fails if the layouts differ. Then nothing changes.
    ///
    /// # Memory ordering
    ///
    /// Ends in an `Acquire` on `other`'s content.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut both = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let other = both.clone();
    /// both.insert_all(["a", "b"]);
    /// other.insert_all(["b", "c"]);
    /// assert_eq!(both.intersection_from(&other), Ok(true));
    /// assert_eq!(both.intersection_from(&other), Ok(false));
    /// assert!(both.contains("b") && !both.contains("a") && !both.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("intersect_in_place", "intersectInPlace"))]
    pub fn intersection_from(&mut self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_layout(other)?;
        let changed = self.flat.bits.and_from(&other.flat.bits);
        acquire_if(true);
        Ok(changed)
    }

    /// Whether `other` has every key of this filter: `false` is certain, `true` may be by chance,
    /// as if each key that `other` lacks were a false positive there.
    ///
    /// Fails if the layouts differ.
    ///
    /// ```
    /// let a = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// let b = a.clone();
    /// a.insert("a");
    /// b.insert_all(["a", "b"]);
    /// assert_eq!((a.is_subset(&b), b.is_subset(&a)), (Ok(true), Ok(false)));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn is_subset(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_layout(other)?;
        let subset = both(&self.flat, &other.flat).all(|(a, b)| a & !b == 0);
        acquire_if(true);
        Ok(subset)
    }
}

sets! { estimates "lanebloom_formats::", GuavaBloom for [F: JavaFormat] JavaBloom<F>; self }

/// The numbers of keys in the one filter, in the other, and in either.
fn estimated_lens<F: JavaFormat>(ours: &JavaBloom<F>, theirs: &JavaBloom<F>) -> Result<[usize; 3], IncompatibleError> {
    ours.check_layout(theirs)?;
    let mut ones = [0; 3];
    for (a, b) in both(&ours.flat, &theirs.flat) {
        for (ones, word) in ones.iter_mut().zip([a, b, a | b]) {
            *ones += u64::from(word.count_ones());
        }
    }
    acquire_if(true);
    Ok(ones.map(|ones| ours.layout.shape.keys_for(ones)))
}

/// The words of both, as lookups see them: each of the one filter before that of the other.
fn both(ours: &Flat, theirs: &Flat) -> impl Iterator<Item = (u64, u64)> {
    // Pairs with the inserts of a thread that inserts each key into the other one first.
    ours.words().inspect(|_| acquire_if(true)).zip(theirs.words())
}
