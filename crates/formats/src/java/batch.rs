//! Batches of a filter of Guava or of Spark: `flat.rs` takes the indexes of many keys' bits, and
//! answers in bitmaps.

/// The methods of a filter type with keys of a trait. It has `hash_batch`, and `look_up` and
/// `insert_chunk` for chunks of hashes.
macro_rules! batches {
    ($filter:ident, $key:ident) => {
        /// Lookups of many keys.
        impl $filter {
            /// Writes whether each key may be in the filter to the same place of `out`.
            ///
            /// # Panics
            ///
            /// If the lengths differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// let mut found = [false; 2];
            /// filter.contains_batch(&["a", "b"], &mut found);
            /// assert_eq!(found, [true, false]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            #[inline]
            pub fn contains_batch<K: $key>(&self, keys: &[K], out: &mut [bool]) {
                assert_same_length(keys.len(), out.len());
                if keys.len() < Length::Few.least() {
                    for (key, found) in keys.iter().zip(out) {
                        *found = self.contains(key);
                    }
                    return;
                }
                self.contains_several(keys, out);
            }

            // A call, so that a few keys cost what single calls do.
            #[inline(never)]
            fn contains_several<K: $key>(&self, keys: &[K], out: &mut [bool]) {
                let mut unpack = unpack_into(out);
                self.hashed(keys, |start, hashes| self.look_up(start, hashes, &mut unpack));
            }

            /// [`contains_batch`](Self::contains_batch) into a new vector.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            #[must_use]
            pub fn contains_each<K: $key>(&self, keys: &[K]) -> Vec<bool> {
                let mut found = alloc::vec![false; keys.len()];
                self.contains_batch(keys, &mut found);
                found
            }

            /// [`contains_batch`](Self::contains_batch) by hash.
            ///
            /// # Panics
            ///
            /// If the lengths differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// let mut found = [false; 2];
            /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
            /// assert_eq!(found, [true, false]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn contains_hashes(&self, hashes: &[Hash], out: &mut [bool]) {
                assert_same_length(hashes.len(), out.len());
                if hashes.len() < Length::Few.least() {
                    for (hash, found) in hashes.iter().zip(out) {
                        *found = self.contains_hash(*hash);
                    }
                    return;
                }
                self.look_up(0, hashes, &mut unpack_into(out));
            }

            /// [`contains_batch`](Self::contains_batch) into a bitmap. Bits after the last key
            /// become 0.
            ///
            /// # Panics
            ///
            /// If `out` has not `keys.len().div_ceil(64)` words.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// let mut found = [0];
            /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
            /// assert_eq!(found, [0b10]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn contains_batch_bitmap<K: $key>(&self, keys: &[K], out: &mut [u64]) {
                assert_bitmap_length(keys.len(), out.len());
                self.hashed(keys, |start, hashes| {
                    self.contains_hashes_bitmap(hashes, &mut out[start / 64..][..hashes.len().div_ceil(64)]);
                });
            }

            /// [`contains_batch_bitmap`](Self::contains_batch_bitmap) by hash.
            ///
            /// # Panics
            ///
            /// If `out` has not `hashes.len().div_ceil(64)` words.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a");
            /// let mut found = [0];
            /// let hashes = ["b", "a"].map(|key| filter.hash(key));
            /// filter.contains_hashes_bitmap(&hashes, &mut found);
            /// assert_eq!(found, [0b10]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn contains_hashes_bitmap(&self, hashes: &[Hash], out: &mut [u64]) {
                assert_bitmap_length(hashes.len(), out.len());
                out.fill(0);
                self.look_up(0, hashes, &mut |at, _, found| out[at / 64] |= found << (at % 64));
            }

            /// Calls `each` with the position of every key that is certainly not in the filter, in
            /// order.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("b");
            /// let mut absent = Vec::new();
            /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
            /// assert_eq!(absent, [0, 2]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn for_each_absent<K: $key>(&self, keys: &[K], mut each: impl FnMut(usize)) {
                self.hashed(keys, |start, hashes| {
                    self.for_each_absent_hash(hashes, |i| each(start + i));
                });
            }

            /// [`for_each_absent`](Self::for_each_absent) by hash.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("b");
            /// let mut absent = Vec::new();
            /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
            /// filter.for_each_absent_hash(&hashes, |i| absent.push(i));
            /// assert_eq!(absent, [0, 2]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn for_each_absent_hash(&self, hashes: &[Hash], mut each: impl FnMut(usize)) {
                self.look_up(0, hashes, &mut |at, len, found| {
                    for_each_absent(&[found], len, |i| each(at + i));
                });
            }

            /// Hashes the keys; calls `each(start, hashes)` for every chunk.
            #[inline]
            fn hashed<K: $key>(&self, keys: &[K], each: impl FnMut(usize, &[Hash])) {
                chunks::hashed(keys, |keys, out| self.hash_batch(keys, out), each);
            }
        }

        /// Inserts of many keys.
        impl $filter {
            /// Inserts every key; returns how many inserts changed the filter.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
            /// assert!(filter.contains("b"));
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn insert_batch<K: $key>(&self, keys: &[K]) -> usize {
                self.insert_each(keys, &mut |_, _, _| ())
            }

            /// [`insert_batch`](Self::insert_batch) by hash.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
            /// assert_eq!(filter.insert_hashes(&hashes), 2);
            /// assert!(filter.contains("b"));
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn insert_hashes(&self, hashes: &[Hash]) -> usize {
                self.insert_chunk(0, hashes, &mut |_, _, _| ())
            }

            /// [`insert_batch`](Self::insert_batch) that also writes each insert's answer to the
            /// same place of `new`. The first of several equal keys gets `true`.
            ///
            /// # Panics
            ///
            /// If the lengths differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let mut new = [false; 3];
            /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
            /// assert_eq!(new, [true, false, true]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn insert_batch_flagged<K: $key>(&self, keys: &[K], new: &mut [bool]) -> usize {
                assert_same_length(keys.len(), new.len());
                self.insert_each(keys, &mut unpack_into(new))
            }

            /// [`insert_batch_flagged`](Self::insert_batch_flagged) by hash.
            ///
            /// # Panics
            ///
            /// If the lengths differ.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
            /// let mut new = [false; 3];
            /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
            /// assert_eq!(new, [true, true, false]);
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn insert_hashes_flagged(&self, hashes: &[Hash], new: &mut [bool]) -> usize {
                assert_same_length(hashes.len(), new.len());
                self.insert_chunk(0, hashes, &mut unpack_into(new))
            }

            /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
            ///
            /// [`Extend`] does the same.
            ///
            /// ```
            #[doc = concat!("use lanebloom_formats::", stringify!($filter), ";")]
            /// use std::sync::Arc;
            ///
            #[doc = concat!("let filter = Arc::new(", stringify!($filter), "::with_capacity(1000, 0.01)?);")]
            /// assert_eq!(filter.insert_all(["a", "b", "a"]), 2);
            /// assert!(filter.contains("b"));
            /// # Ok::<(), lanebloom_formats::BuildError>(())
            /// ```
            pub fn insert_all<K: $key>(&self, keys: impl IntoIterator<Item = K>) -> usize {
                let mut new = 0;
                let hashes = keys.into_iter().map(|key| self.hash(&key));
                let Ok(()) = try_gathered::<CHUNK, _, Infallible>(hashes, |hashes| {
                    new += self.insert_hashes(hashes);
                    Ok(())
                });
                new
            }

            /// Inserts keys; returns how many changed the filter. Calls `each` as
            /// [`insert_chunk`](Self::insert_chunk).
            fn insert_each<K: $key>(&self, keys: &[K], each: &mut dyn FnMut(usize, usize, u64)) -> usize {
                let mut new = 0;
                self.hashed(keys, |start, hashes| new += self.insert_chunk(start, hashes, each));
                new
            }
        }

        #[doc = concat!("[`insert_all`](", stringify!($filter), "::insert_all). For `&", stringify!($filter), "` too.")]
        ///
        /// ```
        #[doc = concat!("let mut filter = lanebloom_formats::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
        /// filter.extend(["a", "b"]);
        /// (&filter).extend(0..10i32);
        /// assert!(filter.contains("b") && filter.contains(&9i32));
        /// # Ok::<(), lanebloom_formats::BuildError>(())
        /// ```
        impl<K: $key> Extend<K> for $filter {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }

        impl<K: $key> Extend<K> for &$filter {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }
    };
}
pub(crate) use batches;
