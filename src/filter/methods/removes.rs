//! Removes, for the types that have them.

/// The removes of a type; `$asks` is `?` in an example if an insert can be refused.
macro_rules! removes {
    ($filter:ident: $engine:ty, $asks:literal) => {
        /// Removing keys.
        impl<S: $crate::KeyHasher> $filter<S> {
            /// Removes `key`, or one copy of it if the filter counts copies. Returns whether it was
            /// there.
            ///
            /// Remove only keys that were inserted: removing a false positive damages another key.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert(\"a\")", $asks, ";")]
            /// assert!(filter.remove("a"));
            /// assert!(!filter.contains("a") && !filter.remove("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            pub fn remove<K: $crate::Funnel + ?Sized>(&self, key: &K) -> bool {
                $crate::traits::Remove::remove(self, key)
            }

            /// Removes every key; returns how many were there.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_batch(&[\"a\", \"b\"])", $asks, ";")]
            /// assert_eq!(filter.remove_batch(&["a", "c"]), 1);
            /// assert!(filter.contains("b") && !filter.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn remove_batch<K: $crate::Funnel>(&self, keys: &[K]) -> usize {
                $crate::traits::Remove::remove_batch(self, keys)
            }

            /// [`remove_batch`](Self::remove_batch) that also writes whether each key was there to
            /// the same place of `removed`. Panics if the lengths differ.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_batch(&[\"a\", \"b\"])", $asks, ";")]
            /// let mut removed = [false; 2];
            /// assert_eq!(filter.remove_batch_flagged(&["c", "a"], &mut removed), 1);
            /// assert_eq!(removed, [false, true]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn remove_batch_flagged<K: $crate::Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
                $crate::traits::Remove::remove_batch_flagged(self, keys, removed)
            }
        }

        /// Removing keys by hash.
        impl<S> $crate::Filter<$engine, S> {
            /// [`remove`](Self::remove) by hash.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_hash(0x9e37_79b9_7f4a_7c15)", $asks, ";")]
            /// assert!(filter.remove_hash(0x9e37_79b9_7f4a_7c15));
            /// assert!(!filter.remove_hash(0x9e37_79b9_7f4a_7c15));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            pub fn remove_hash(&self, hash: u64) -> bool {
                $crate::traits::Remove::remove_hash(&self.engine, hash)
            }

            /// [`remove_batch`](Self::remove_batch) by hash.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_batch(&[\"a\", \"b\"])", $asks, ";")]
            /// assert_eq!(filter.remove_hashes(&["a", "c"].map(|key| filter.hash(key))), 1);
            /// assert!(filter.contains("b") && !filter.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
                $crate::traits::Remove::remove_hashes(self, hashes)
            }

            /// [`remove_batch_flagged`](Self::remove_batch_flagged) by hash. Panics if the lengths
            /// differ.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_batch(&[\"a\", \"b\"])", $asks, ";")]
            /// let mut removed = [false; 2];
            /// let hashes = ["c", "a"].map(|key| filter.hash(key));
            /// assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 1);
            /// assert_eq!(removed, [false, true]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
                $crate::traits::Remove::remove_hashes_flagged(self, hashes, removed)
            }
        }
    };
}
pub(crate) use removes;
