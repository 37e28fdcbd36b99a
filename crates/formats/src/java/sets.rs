//! Whole filters of Guava or of Spark, cleared and copied, and two filters as sets of keys: union,
//! intersection, subset, and the numbers of keys that both or either have.

use super::{JavaBloom, JavaExclusive, JavaFormat};
use crate::or_abort;
use alloc::format;
use lanebloom::internal::acquire_if;
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

/// Two filters as sets.
impl<F: JavaFormat> JavaBloom<F> {
    /// This filter beside another one, to be compared as sets of keys. Fails if strategy, version,
    /// seed, number of bits or number of hash functions differ.
    ///
    /// ```
    /// use lanebloom_formats::GuavaBloom;
    ///
    /// let part = GuavaBloom::with_capacity(1000, 0.01)?;
    /// let all = part.clone();
    /// part.insert("a");
    /// all.insert_all(["a", "b"]);
    /// assert!(part.with(&all)?.is_subset() && !all.with(&part)?.is_subset());
    /// assert!(part.with(&GuavaBloom::with_capacity(2000, 0.01)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("isCompatible", "is_subset"))]
    pub fn with<'a>(&'a self, other: &'a Self) -> Result<JavaPair<'a, F>, IncompatibleError> {
        self.check_layout(other)?;
        Ok(JavaPair(self, other))
    }

    /// Exclusive access, for inserts without atomics and intersections. Beside inserts of
    /// other threads, an intersection would keep some keys in part.
    ///
    /// ```
    /// let mut filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.exclusive().insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn exclusive(&mut self) -> JavaExclusive<'_, F> {
        JavaExclusive(self)
    }
}

/// Intersections.
impl<F: JavaFormat> JavaExclusive<'_, F> {
    /// Keeps only what `other` has too; returns whether that changed this filter. `other` may be in
    /// use meanwhile.
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
    /// assert_eq!(both.exclusive().intersection_from(&other), Ok(true));
    /// assert_eq!(both.exclusive().intersection_from(&other), Ok(false));
    /// assert!(both.contains("b") && !both.contains("a") && !both.contains("c"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("intersect_in_place", "intersectInPlace"))]
    pub fn intersection_from(self, other: &JavaBloom<F>) -> Result<bool, IncompatibleError> {
        self.0.check_layout(other)?;
        let changed = self.0.flat.bits.and_from(&other.flat.bits);
        acquire_if(true);
        Ok(changed)
    }
}

/// Two filters of one layout, as sets of keys; made by [`with`](JavaBloom::with). Both may be in
/// use meanwhile.
///
/// ```
/// let monday = lanebloom_formats::GuavaBloom::with_capacity(100_000, 0.01)?;
/// let tuesday = monday.clone();
/// monday.insert_all(0..50_000i32);
/// tuesday.insert_all(40_000..80_000i32);
/// let both = monday.with(&tuesday)?;
/// assert!(both.intersection_len().abs_diff(10_000) < 500);
/// assert!(both.union_len().abs_diff(80_000) < 500);
/// assert!(!both.is_subset() && monday.with(&monday)?.is_subset());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JavaPair<'a, F: JavaFormat>(&'a JavaBloom<F>, &'a JavaBloom<F>);

impl<F: JavaFormat> Clone for JavaPair<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: JavaFormat> Copy for JavaPair<'_, F> {}

impl<F: JavaFormat> JavaPair<'_, F> {
    /// Whether the second filter has every key of the first: `false` is certain, `true` may be by
    /// chance, as if each key that the second lacks were a false positive there.
    #[doc(alias = "is_superset")]
    #[must_use]
    pub fn is_subset(self) -> bool {
        let subset = self.words().all(|(a, b)| a & !b == 0);
        acquire_if(true);
        subset
    }

    /// An estimate of the number of distinct keys in either filter: the number of keys of their
    /// union, which is not made.
    #[must_use]
    pub fn union_len(self) -> usize {
        let [_, _, either] = self.lens();
        either
    }

    /// An estimate of the number of distinct keys that are in both filters: those of each less
    /// those of either.
    #[must_use]
    pub fn intersection_len(self) -> usize {
        let [ours, theirs, either] = self.lens();
        ours.saturating_add(theirs).saturating_sub(either)
    }

    /// The numbers of keys in the one filter, in the other, and in either.
    fn lens(self) -> [usize; 3] {
        let mut ones = [0; 3];
        for (a, b) in self.words() {
            for (ones, word) in ones.iter_mut().zip([a, b, a | b]) {
                *ones += u64::from(word.count_ones());
            }
        }
        acquire_if(true);
        ones.map(|ones| self.0.layout.shape.keys_for(ones))
    }

    /// The words of both, as lookups see them: each of the one filter before that of the other.
    fn words(&self) -> impl Iterator<Item = (u64, u64)> {
        // Pairs with the inserts of a thread that inserts each key into the other one first.
        self.0
            .flat
            .words()
            .inspect(|_| acquire_if(true))
            .zip(self.1.flat.words())
    }
}
