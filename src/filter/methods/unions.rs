//! Unions and comparison, for the types whose content does not depend on the order of the inserts.

use crate::error::IncompatibleError;
use crate::filter::Filter;
use crate::filter::methods::traits::Union;
use crate::filter::parts::engine::UnionImpl;
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::filter::types::counting::{Counting, CountingBloom};
use crate::filter::types::scalable::{Chain, ScalableBloom};
use crate::filter::types::tombstone::{Tombstone, TombstoneBloom};
#[cfg(feature = "std")]
use crate::filter::types::windowed::{Generations, WindowedBloom};
use crate::hash::{self, FilterHasher};

macro_rules! unions {
    ($($filter:ident: $engine:ty),*) => {$(
        /// Unions.
        impl<S: FilterHasher> Filter<$engine, S> {
            /// Adds every key of `other` to this filter; returns whether that changed it. Both may
            /// be in use meanwhile.
            ///
            /// Everything that was inserted into `other` before is in this filter afterwards.
            ///
            /// # Errors
            ///
            /// Fails if layout or hasher (its algorithm, seed or key) differ. A
            /// [`ScalableBloom`](crate::ScalableBloom) takes any layout, and fails if it has no
            /// room for the other one's layers. Then no key is added.
            ///
            /// # Memory ordering
            ///
            /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a
            /// key here sees what its inserter there had done before. `false` ends in an `Acquire`.
            ///
            /// # Examples
            ///
            /// ```
            /// let all = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
            /// let part = all.clone();
            /// part.insert("a");
            /// assert_eq!(all.union_from(&part), Ok(true));
            /// assert_eq!(all.union_from(&part), Ok(false));
            /// assert!(all.contains("a"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("merge", "put_all", "putAll"))]
            pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
                self.check_compatible(other)?;
                self.engine.union_from(&other.engine)
            }

            /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from)
            /// requires. (For a [`ScalableBloom`](crate::ScalableBloom), the hasher.)
            ///
            /// ```
            /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
            /// assert!(filter.is_compatible(&filter.clone()));
            /// let other = lanebloom::ConcurrentBloom::with_capacity(2000, 0.01)?;
            /// assert!(!filter.is_compatible(&other));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias = "isCompatible")]
            #[must_use]
            pub fn is_compatible(&self, other: &Self) -> bool {
                self.check_compatible(other).is_ok()
            }

            /// Fails unless layout and hasher match.
            pub(crate) fn check_compatible(&self, other: &Self) -> Result<(), IncompatibleError> {
                self.engine.check_union(&other.engine)?;
                if hash::fingerprint(&self.hasher) != hash::fingerprint(&other.hasher) {
                    return Err(IncompatibleError::hasher());
                }
                Ok(())
            }
        }

        impl<S: FilterHasher> Union for $filter<S> {
            fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
                self.union_from(other)
            }

            fn is_compatible(&self, other: &Self) -> bool {
                self.is_compatible(other)
            }
        }

        /// Same layout, same hasher and same content. Beside inserts, reads each word at some
        /// moment.
        impl<S: FilterHasher> PartialEq for $filter<S> {
            fn eq(&self, other: &Self) -> bool {
                hash::fingerprint(&self.hasher) == hash::fingerprint(&other.hasher) && self.engine.same(&other.engine)
            }
        }
    )*};
}

unions! { ConcurrentBloom: Bloom, CountingBloom: Counting, ScalableBloom: Chain, TombstoneBloom: Tombstone }
#[cfg(feature = "std")]
unions! { WindowedBloom: Generations }
