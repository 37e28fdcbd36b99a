//! Removes, and the copies of a key, for the types that have them.

use crate::batch;
use crate::filter::Filter;
use crate::filter::methods::traits::Remove;
use crate::filter::parts::engine::RemoveImpl;
use crate::filter::parts::probe::Probe;
use crate::filter::parts::slots::{BucketLayout, Slots};
use crate::filter::types::counting::{Counting, CountingBloom};
use crate::filter::types::cuckoo::{Cuckoo, CuckooFilter};
use crate::filter::types::dleft::{DLeft, DLeftFilter};
use crate::filter::types::tombstone::{Tombstone, TombstoneBloom};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, assert_same_length};

macro_rules! removes {
    ($($filter:ident: $engine:ty),*) => {$(
        /// Removing keys.
        impl<S: KeyHasher> $filter<S> {
            /// Removes `key`, or one copy of it if the filter counts copies. Returns whether it was
            /// there.
            ///
            /// Remove only keys that were inserted: removing a false positive damages another key.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a").unwrap();
            /// assert!(filter.remove("a"));
            /// assert!(!filter.contains("a") && !filter.remove("a"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[inline]
            pub fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
                self.engine.remove(self.hash(key))
            }

            /// Removes every key; returns how many were there.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_batch(&["a", "b"]).unwrap();
            /// assert_eq!(filter.remove_batch(&["a", "c"]), 1);
            /// assert!(filter.contains("b") && !filter.contains("a"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
                self.engine.remove_all(&self.keys(keys), None)
            }

            /// [`remove_batch`](Self::remove_batch) that also writes whether each key was there to
            /// the same place of `removed`. Panics if the lengths differ.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_batch(&["a", "b"]).unwrap();
            /// let mut removed = [false; 2];
            /// assert_eq!(filter.remove_batch_flagged(&["c", "a"], &mut removed), 1);
            /// assert_eq!(removed, [false, true]);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
                assert_same_length(keys.len(), removed.len());
                self.engine
                    .remove_all(&self.keys(keys), Some(&mut batch::unpack_into(self.isa, removed)))
            }
        }

        /// Removing keys by hash.
        impl<S> Filter<$engine, S> {
            /// [`remove`](Self::remove) by hash.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_hash(0x9e37_79b9_7f4a_7c15).unwrap();
            /// assert!(filter.remove_hash(0x9e37_79b9_7f4a_7c15));
            /// assert!(!filter.remove_hash(0x9e37_79b9_7f4a_7c15));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[inline]
            pub fn remove_hash(&self, hash: u64) -> bool {
                self.engine.remove(hash)
            }

            /// [`remove_batch`](Self::remove_batch) by hash.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_batch(&["a", "b"]).unwrap();
            /// assert_eq!(filter.remove_hashes(&["a", "c"].map(|key| filter.hash(key))), 1);
            /// assert!(filter.contains("b") && !filter.contains("a"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
                self.engine.remove_all(&hashes, None)
            }

            /// [`remove_batch_flagged`](Self::remove_batch_flagged) by hash. Panics if the lengths
            /// differ.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_batch(&["a", "b"]).unwrap();
            /// let mut removed = [false; 2];
            /// let hashes = ["c", "a"].map(|key| filter.hash(key));
            /// assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 1);
            /// assert_eq!(removed, [false, true]);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
                assert_same_length(hashes.len(), removed.len());
                self.engine
                    .remove_all(&hashes, Some(&mut batch::unpack_into(self.isa, removed)))
            }
        }

        impl<S: KeyHasher> Remove for $filter<S> {
            #[inline]
            fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
                self.remove(key)
            }

            #[inline]
            fn remove_hash(&self, hash: u64) -> bool {
                self.remove_hash(hash)
            }

            fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
                self.remove_batch(keys)
            }

            fn remove_hashes(&self, hashes: &[u64]) -> usize {
                self.remove_hashes(hashes)
            }
        }
    )*};
}

removes! { CountingBloom: Counting, CuckooFilter: Cuckoo, DLeftFilter: DLeft, TombstoneBloom: Tombstone }

macro_rules! counts {
    ($($engine:ty),*) => {$(
        /// Copies and slots.
        impl<S: KeyHasher> Filter<$engine, S> {
            /// How often `key` is in the filter: as often as it was inserted and not removed, or
            /// more at the false-positive rate.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_batch(&["a", "b", "a"]).unwrap();
            /// assert_eq!(["a", "b", "c"].map(|key| filter.count(key)), [2, 1, 0]);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[must_use]
            pub fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize {
                self.count_hash(self.hash(key))
            }
        }

        /// Copies and slots.
        impl<S> Filter<$engine, S> {
            /// [`count`](Self::count) by hash.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert("a").unwrap();
            /// assert_eq!(filter.count_hash(filter.hash("a")), 1);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[must_use]
            pub fn count_hash(&self, hash: u64) -> usize {
                let table = &self.engine.table;
                table.copies(&table.address(hash))
            }

            /// The number of keys in the filter, every copy counted. Reads the whole filter.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// filter.insert_all(["a", "b", "a"])?;
            /// assert_eq!(filter.len(), 3);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn len(&self) -> usize {
                self.engine.table.occupied().1
            }

            /// The number of slots: more than [`expected_keys`](Self::expected_keys), and more than
            /// can be filled.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 2e-4)?;
            /// assert!((0.949..=0.95).contains(&(1e5 / filter.slots() as f64)));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[must_use]
            pub fn slots(&self) -> usize {
                self.engine.table.bucket_layout().slots()
            }

            /// How often one key can be inserted, if no other key takes its slots: 12, 10, 8 or 6
            /// times in a cuckoo filter, 3 times in a d-left filter.
            ///
            /// ```
            /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
            /// assert_eq!(filter.max_copies(), 12);
            /// (0..12).try_for_each(|_| filter.insert("a"))?;
            /// let error = filter.insert("a").unwrap_err();
            /// let text = "the key is in the filter 12 times, the limit for one key";
            /// assert!(!error.is_full() && error.to_string() == text);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn max_copies(&self) -> usize {
                self.engine.table.bucket_layout().max_copies()
            }
        }
    )*};
}

counts! { Cuckoo, DLeft }
