//! Removes, for the types that have them.

/// The removes of a type: `removes! { Type: Engine }`.
// rustfmt 1.9 moves the lines of an example further to the right each time.
#[rustfmt::skip]
macro_rules! removes {
    ($filter:ident: $engine:ty) => {
        /// Removing keys.
        impl<S: $crate::KeyHasher> $filter<S> {
            /// Removes `key`, or one copy of it if the filter counts copies. Returns whether it was
            /// there.
            ///
            /// **Remove only what was inserted, and as often.** Removing a false positive damages
            /// another key. A [`contains`](crate::Filter::contains) before it does not help: it
            /// finds the same false positive.
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([\"a\", \"b\"], 0.001)";
                "assert!(filter.remove(\"a\"));",
                "assert!(!filter.contains(\"a\") && filter.contains(\"b\"));")]
            #[inline]
            pub fn remove<K: $crate::Funnel + ?Sized>(&self, key: &K) -> bool {
                $crate::traits::Remove::remove(self, key)
            }

            /// Removes every key; returns how many were there. **Remove only what was inserted, and
            /// as often**: each absent key damages another one, at the false-positive rate. See
            /// [`remove`](Self::remove).
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([1, 2, 3], 0.001)";
                "assert_eq!(filter.remove_batch(&[1, 3]), 2);",
                "assert!(filter.contains(&2) && !filter.contains(&1));")]
            pub fn remove_batch<K: $crate::Funnel>(&self, keys: &[K]) -> usize {
                $crate::traits::Remove::remove_batch(self, keys)
            }

            /// [`remove_batch`](Self::remove_batch) that also writes whether each key was there to
            /// the same place of `removed`. Panics if the lengths differ. **Remove only what was
            /// inserted, and as often**: the flags do not find absent keys out beforehand.
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([1, 2, 3], 0.001)";
                "let mut removed = [false; 2];",
                "assert_eq!(filter.remove_batch_flagged(&[3, 1], &mut removed), 2);",
                "assert!(removed == [true, true] && filter.contains(&2) && !filter.contains(&3));")]
            pub fn remove_batch_flagged<K: $crate::Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
                $crate::traits::Remove::remove_batch_flagged(self, keys, removed)
            }
        }

        /// Removing keys by hash.
        impl<S> $crate::Filter<$engine, S> {
            /// [`remove`](Self::remove) by hash.
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([\"a\"], 0.01)";
                "let hash = filter.hash(\"a\");",
                "assert!(filter.remove_hash(hash) && !filter.contains(\"a\"));")]
            #[inline]
            pub fn remove_hash(&self, hash: u64) -> bool {
                $crate::traits::Remove::remove_hash(&self.engine, hash)
            }

            /// [`remove_batch`](Self::remove_batch) by hash.
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([1, 2, 3], 0.001)";
                "assert_eq!(filter.remove_hashes(&[1, 3].map(|key| filter.hash(&key))), 2);",
                "assert!(filter.contains(&2) && !filter.contains(&1));")]
            pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
                $crate::traits::Remove::remove_hashes(self, hashes)
            }

            /// [`remove_batch_flagged`](Self::remove_batch_flagged) by hash. Panics if the lengths
            /// differ.
            #[doc = $crate::example!("filter" = "lanebloom::" $filter "from_keys([1, 2, 3], 0.001)";
                "let hashes = [3, 1].map(|key| filter.hash(&key));",
                "let mut removed = [false; 2];",
                "assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 2);",
                "assert!(removed == [true, true] && filter.contains(&2) && !filter.contains(&3));")]
            pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
                $crate::traits::Remove::remove_hashes_flagged(self, hashes, removed)
            }
        }
    };
}
pub(crate) use removes;
