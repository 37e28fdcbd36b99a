//! Whole filters of Guava or of Spark, cleared and copied, and two filters as sets of keys: union,
//! intersection, subset, and the numbers of keys that both or either have.

use super::formulas::Shape;
use crate::flat::Flat;
use lanebloom::internal::acquire;

/// The methods of a filter type, whose fields are `flat` and `layout`.
macro_rules! sets {
    ($filter:ident) => {
        /// Whole filters.
        impl $filter {
            /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in
            /// part.
            ///
            /// ```
            #[doc = concat!("let mut filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// filter.clear();
            /// assert!(!filter.contains("a") && filter.is_empty());
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn clear(&mut self) {
                self.flat.bits.clear();
            }

            /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the
            /// allocation fails.
            ///
            /// # Errors
            ///
            /// If the allocation fails.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// assert!(filter.try_clone()?.contains("a"));
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn try_clone(&self) -> Result<Self, BuildError> {
                Ok(Self {
                    flat: self.flat.try_clone()?,
                    ..*self
                })
            }

            /// The common part of `union_from`.
            fn unite(&self, other: &Self) -> Result<bool, IncompatibleError> {
                self.check_layout(other)?;
                let changed = self.flat.bits.or_from(&other.flat.bits, 0..self.flat.bits.blocks());
                acquire_if(!changed);
                Ok(changed)
            }

            fn check_layout(&self, other: &Self) -> Result<(), IncompatibleError> {
                let (ours, theirs) = (self.layout, other.layout);
                if ours == theirs {
                    return Ok(());
                }
                Err(incompatible(format!(
                    "the other filter's layout differs: {theirs} there, {ours} here"
                )))
            }
        }

        /// A copy that holds at least every key whose insertion happened before. Aborts if the
        /// allocation fails; `try_clone` does not.
        impl Clone for $filter {
            fn clone(&self) -> Self {
                Self {
                    flat: self.flat.clone(),
                    ..*self
                }
            }
        }

        /// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from) does
        /// for filters of different layouts.
        impl $filter {
            /// Keeps only what `other` has too; returns whether that changed this filter. `other`
            /// may be in use meanwhile. It takes `&mut self`: beside inserts, some keys would
            /// survive in part.
            ///
            /// The result has every key that was inserted into both, and more keys of only one than
            /// the false-positive rate says: bits that different keys set in the two filters stay
            /// too.
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
            #[doc = concat!("let mut both = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
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
                acquire();
                Ok(changed)
            }

            /// Whether `other` has every key of this filter: `false` is certain, `true` may be by
            /// chance, as if each key that `other` lacks were a false positive there.
            ///
            /// # Errors
            ///
            /// Fails if the layouts differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let a = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert("a");
            /// b.insert_all(["a", "b"]);
            /// assert_eq!((a.is_subset(&b), b.is_subset(&a)), (Ok(true), Ok(false)));
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn is_subset(&self, other: &Self) -> Result<bool, IncompatibleError> {
                self.check_layout(other)?;
                Ok(crate::java::sets::is_subset(&self.flat, &other.flat))
            }

            /// An estimate of the number of distinct keys in either filter: the
            /// [`estimated_len`](Self::estimated_len) of their union, which is not made.
            ///
            /// # Errors
            ///
            /// Fails if the layouts differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let a = lanebloom_formats::", stringify!($filter), "::with_capacity(100_000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert_all(0..50_000i32);
            /// b.insert_all(40_000..80_000i32);
            /// assert!(a.estimated_union_len(&b).unwrap().abs_diff(80_000) < 500);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn estimated_union_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
                self.check_layout(other)?;
                let [_, _, either] = self.layout.shape().lens(&self.flat, &other.flat);
                Ok(either)
            }

            /// An estimate of the number of distinct keys that are in both filters: those of each
            /// less those of either. For few common keys of large filters it is no more than noise:
            /// about `0.5 * sqrt(n)` for two filters with their `n` expected keys at 1%.
            ///
            /// # Errors
            ///
            /// Fails if the layouts differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let a = lanebloom_formats::", stringify!($filter), "::with_capacity(100_000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert_all(0..50_000i32);
            /// b.insert_all(40_000..80_000i32);
            /// assert!(a.estimated_intersection_len(&b).unwrap().abs_diff(10_000) < 500);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn estimated_intersection_len(&self, other: &Self) -> Result<usize, IncompatibleError> {
                self.check_layout(other)?;
                let [ours, theirs, either] = self.layout.shape().lens(&self.flat, &other.flat);
                Ok(ours.saturating_add(theirs).saturating_sub(either))
            }
        }
    };
}
pub(crate) use sets;

pub(crate) fn is_subset(ours: &Flat, theirs: &Flat) -> bool {
    let subset = both(ours, theirs).all(|(a, b)| a & !b == 0);
    acquire();
    subset
}

impl Shape {
    /// The numbers of keys in the one filter, in the other, and in either.
    pub(crate) fn lens(&self, ours: &Flat, theirs: &Flat) -> [usize; 3] {
        let mut ones = [0; 3];
        for (a, b) in both(ours, theirs) {
            for (ones, word) in ones.iter_mut().zip([a, b, a | b]) {
                *ones += u64::from(word.count_ones());
            }
        }
        acquire();
        ones.map(|ones| self.len_of(ones))
    }
}

/// The words of both, as lookups see them: each of the one filter before that of the other.
fn both(ours: &Flat, theirs: &Flat) -> impl Iterator<Item = (u64, u64)> {
    // Pairs with the inserts of a thread that inserts each key into the other one first.
    ours.words().inspect(|_| acquire()).zip(theirs.words())
}
