//! Inserts, for the types that have them. (In a generic impl, their answer would be an associated
//! type.)

use crate::error::InsertError;
use core::convert::Infallible;

/// The answer of a filter that takes every key.
#[doc(hidden)]
#[inline(always)]
pub fn into_ok<T>(Ok(answer): Result<T, Infallible>) -> T {
    answer
}

/// The answer of a filter that changes with every key that it takes.
#[inline]
pub(crate) fn taken<T>(answer: Result<T, InsertError>) -> Result<(), InsertError> {
    answer.map(|_| ())
}

/// The inserts of a type: `inserts! { Type: Engine }` if it takes every key. Otherwise also what
/// one insert and a batch return, and whether a second insert of a key changes the filter.
#[doc(hidden)]
#[macro_export]
macro_rules! inserts {
    ($filter:ident: $engine:ty) => {
        $crate::inserts! { extends "lanebloom::", $filter for [S: $crate::KeyHasher] $filter<S> }
        $crate::inserts! { "lanebloom::", $filter for [S: $crate::KeyHasher] $filter<S>, [S] $crate::Filter<$engine, S>;
        $engine => bool, usize, $crate::internal::into_ok;
        "The answer is `false` for a key that is there, and by chance for a new one, at the false-positive \
rate. If several threads race to insert a new key, **at least** one of them gets `true`, and several \
may: do not take it for a claim. (With one [word per key](crate::bloom::Builder::words_per_key) \
exactly one thread gets it.) `false` ends in an `Acquire`, like a lookup's `true`.", "", "false" }
    };

    ($filter:ident: $engine:ty => $answer:ty, $total:ty, by $by:path, again $again:literal) => {
        $crate::inserts! { "lanebloom::", $filter for [S: $crate::KeyHasher] $filter<S>, [S] $crate::Filter<$engine, S>;
        $engine => $answer, $total, $by;
        "Fails if the filter is full, or if the key was inserted as often as it can be. The filter \
loses nothing.", "?", $again }
    };

    (extends $krate:literal, $filter:ident for [$($hashes:tt)*] $keyed:ty) => {
        /// [`insert_all`](Self::insert_all).
        #[doc = $crate::example!("mut filter" = $krate $filter "with_capacity(1000, 0.01)";
            "filter.extend([\"a\", \"b\"]);",
            "(&filter).extend(0..10u32);",
            "assert!(filter.contains(\"b\") && filter.contains(&9u32));")]
        impl<K: $crate::Funnel, $($hashes)*> Extend<K> for $keyed {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }

        impl<K: $crate::Funnel, $($hashes)*> Extend<K> for &$keyed {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }
    };

    ($krate:literal, $filter:ident for [$($hashes:tt)*] $keyed:ty, [$($any:tt)*] $hashed:ty;
    $engine:ty => $answer:ty, $total:ty, $by:path; $says:literal, $asks:literal, $again:literal) => {
        /// Inserts.
        impl<$($hashes)*> $keyed {
            /// Inserts `key`. [The type](Self) says what the answer means. Every change is a
            /// `Release`.
            ///
            #[doc = $says]
            #[doc = $crate::example!($krate $filter;
                concat!("filter.insert(\"a\")", $asks, ";"),
                "assert!(filter.contains(\"a\") && !filter.contains(\"b\"));")]
            #[doc(alias("add", "put", "check_and_set"))]
            #[inline]
            pub fn insert<K: $crate::Funnel + ?Sized>(&self, key: &K) -> $answer {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert(self, key))
            }

            /// Inserts every key in order, up to one that is refused; returns how many inserts
            /// changed the filter, if the type counts them. An error says how many keys were
            /// [inserted](lanebloom::InsertError::inserted) before.
            #[doc = $crate::example!($krate $filter;
                concat!("filter.insert_batch(&[1, 2])", $asks, ";"),
                "assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));")]
            #[inline(always)]
            pub fn insert_batch<K: $crate::Funnel>(&self, keys: &[K]) -> $total {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_batch(self, keys))
            }

            /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A
            /// filter that refuses a key takes no more from the iterator. It may have taken up to
            /// 1023 keys after that one already.
            #[doc = $crate::example!($krate $filter;
                concat!("filter.insert_all(0..100)", $asks, ";"),
                "assert!((0..100).all(|key| filter.contains(&key)));")]
            #[doc(alias("extend", "try_extend"))]
            pub fn insert_all<K: $crate::Funnel>(&self, keys: impl IntoIterator<Item = K>) -> $total {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_all(self, keys))
            }

            /// [`insert_batch`](Self::insert_batch) that also writes whether each insert changed
            /// the filter to the same place of `new`; `false` for a key that is refused. Panics if
            /// the lengths differ.
            #[doc = $crate::example!($krate $filter;
                "let mut new = [false; 3];",
                concat!("filter.insert_batch_flagged(&[1, 1, 2], &mut new)", $asks, ";"),
                concat!("assert_eq!(new, [true, ", $again, ", true]);"))]
            pub fn insert_batch_flagged<K: $crate::Funnel>(&self, keys: &[K], new: &mut [bool]) -> $total {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_batch_flagged(self, keys, new))
            }
        }

        /// Inserts by hash.
        impl<$($any)*> $hashed {
            /// [`insert`](Self::insert) by hash.
            #[doc = $crate::example!($krate $filter;
                concat!("filter.insert_hash(0x9e37_79b9_7f4a_7c15)", $asks, ";"),
                "assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));")]
            #[inline]
            pub fn insert_hash(&self, hash: u64) -> $answer {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_hash(self, hash))
            }

            /// [`insert_batch`](Self::insert_batch) by hash.
            #[doc = $crate::example!($krate $filter;
                concat!("filter.insert_hashes(&[1, 2].map(|key| filter.hash(&key)))", $asks, ";"),
                "assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));")]
            #[inline]
            pub fn insert_hashes(&self, hashes: &[u64]) -> $total {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_hashes(self, hashes))
            }

            /// [`insert_batch_flagged`](Self::insert_batch_flagged) by hash. Panics if the lengths
            /// differ.
            #[doc = $crate::example!($krate $filter;
                "let hashes = [1, 2, 1].map(|key| filter.hash(&key));",
                "let mut new = [false; 3];",
                concat!("filter.insert_hashes_flagged(&hashes, &mut new)", $asks, ";"),
                concat!("assert_eq!(new, [true, true, ", $again, "]);"))]
            pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> $total {
                $by(<$crate::Filter<$engine, _> as $crate::traits::Insert>::insert_hashes_flagged(self, hashes, new))
            }

            /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in
            /// part.
            #[doc = $crate::example!("mut filter" = $krate $filter "with_capacity(1000, 0.01)";
                concat!("filter.insert(\"a\")", $asks, ";"),
                "filter.clear();",
                "assert!(!filter.contains(\"a\") && filter.is_empty());")]
            pub fn clear(&mut self) {
                <$crate::Filter<$engine, _> as $crate::traits::Insert>::clear(self);
            }
        }
    };
}
pub(crate) use inserts;
