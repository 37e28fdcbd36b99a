//! Unions and comparison, for the types whose content does not depend on the order of the inserts.

use crate::filter::Filter;
use crate::filter::traits::Union;
use crate::hash::FilterHasher;

/// Same layout, same hasher and same content. Beside inserts, reads each word at some moment.
impl<E: Union, S: FilterHasher> PartialEq for Filter<E, S> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

/// The unions of a type; `$asks` is `?` in an example if an insert can be refused.
#[doc(hidden)]
#[macro_export]
macro_rules! unions {
    ($filter:ident: $engine:ty, $asks:literal) => {
        $crate::unions! { "lanebloom::", $filter for [S: $crate::hash::FilterHasher] $filter<S>; $engine, $asks,
        "builder().expected_keys(1000).seed(1).build()?" }
    };

    ($krate:literal, $filter:ident for [$($hashes:tt)*] $target:ty; $engine:ty, $asks:literal, $other:literal) => {
        /// Unions.
        impl<$($hashes)*> $target {
            /// Adds every key that was inserted into `other` before; returns whether that changed
            /// this filter. Both may be in use meanwhile.
            ///
            /// Fails if layout or hasher (its algorithm, seed or key) differ. A
            /// [`ScalableBloom`](lanebloom::ScalableBloom) takes any layout, and fails if it has no
            /// room for the other one's layers. Then no key is added.
            ///
            /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a
            /// key here sees what its inserter there had done before. `false` ends in an `Acquire`.
            #[doc = $crate::example!("all" = $krate $filter "with_capacity(1000, 0.01)";
                "let (part, empty) = (all.clone(), all.clone());",
                concat!("part.insert(\"a\")", $asks, ";"),
                "assert_eq!(all.union_from(&part), Ok(true));",
                "assert_eq!(all.union_from(&empty), Ok(false));",
                "assert!(all.contains(\"a\"));")]
            #[doc(alias("merge", "put_all", "putAll"))]
            pub fn union_from(&self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$crate::Filter<$engine, _> as $crate::traits::Union>::union_from(self, other)
            }

            /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from)
            /// requires. (For a [`ScalableBloom`](lanebloom::ScalableBloom), the hasher.)
            #[doc = $crate::example!($krate $filter;
                "assert!(filter.is_compatible(&filter.clone()));",
                concat!("let other = ", $krate, stringify!($filter), "::", $other, ";"),
                "assert!(!filter.is_compatible(&other));")]
            #[doc(alias = "isCompatible")]
            #[must_use]
            pub fn is_compatible(&self, other: &Self) -> bool {
                <$crate::Filter<$engine, _> as $crate::traits::Union>::is_compatible(self, other)
            }
        }
    };
}
pub(crate) use unions;
