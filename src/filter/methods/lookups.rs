//! Lookups, and what else all filters share: hashes keys, cuts batches into chunks, and passes the
//! hashes to the engine.

use crate::chunks::{CHUNK, Few, HashedKeys, Source, assert_bitmap_length, for_each_absent, for_each_bitmap};
use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::traits::Engine;
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, assert_same_length};
use crate::kernel::Plan;
use crate::kernel::scalar::bitmap_of;
use alloc::vec::Vec;
use core::fmt;

/// Single operations.
impl<E: Engine, S: KeyHasher> Filter<E, S> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before (and that was not removed since).
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert(&17u64).unwrap();
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.engine.contains(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(filter.hash("a")).unwrap();
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }
}

/// A lookup that needs no hasher.
impl<E: Engine, S> Filter<E, S> {
    /// [`contains`](Filter::contains) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15).unwrap();
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.engine.contains(hash)
    }
}

/// Lookups of many keys.
impl<E: Engine, S: KeyHasher> Filter<E, S> {
    /// Writes whether each key may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        match Plan::of_keys(keys.len()) {
            Plan::Single => {
                for (key, found) in keys.iter().zip(out) {
                    *found = self.contains(key);
                }
            }
            Plan::Pipeline => self.contains_many(self.keys(keys), out),
            _ => self.contains_few(keys, out),
        }
    }

    // A call, so that single calls are small enough to be inlined.
    #[inline(never)]
    fn contains_few<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        let (plan, source) = (self.engine.plan(keys.len()), self.keys(keys));
        let mut space = Few::default();
        self.engine
            .contains_few(plan, source.hashes(0..keys.len(), &mut space), out);
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert_eq!(filter.contains_each(&["a", "b"]), [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn contains_each<K: Funnel>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = alloc::vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Bits after the last key become 0.
    /// Panics if `out` has not `keys.len().div_ceil(64)` words.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["b", "a"], &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        let source = self.keys(keys);
        match Plan::of_keys(keys.len()) {
            Plan::Single => out.fill(bitmap_of(keys, |key| self.contains(key))),
            Plan::Pipeline => source.for_each_chunk(CHUNK, |start, hashes| {
                let found = &mut out[start / 64..][..hashes.len().div_ceil(64)];
                self.engine.contains_bitmap(hashes, found);
            }),
            _ => {
                let mut space = Few::default();
                let hashes = source.hashes(0..keys.len(), &mut space);
                out.fill(self.engine.contains_few_bitmap(self.engine.plan(hashes.len()), hashes));
            }
        }
    }

    /// Calls `each` with the position of every key that is certainly not in the filter, in order.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("b").unwrap();
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.each_absent(&self.keys(keys), each);
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`. Panics if
    /// the lengths differ.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch_by(self.isa, keys, out);
    }

    pub(crate) fn keys<'a, K: Funnel>(&'a self, keys: &'a [K]) -> HashedKeys<'a, K, S> {
        HashedKeys {
            hasher: &self.hasher,
            isa: self.isa,
            keys,
        }
    }
}

/// Lookups of many hashes, which need no hasher.
impl<E: Engine, S> Filter<E, S> {
    // A call, so that a few hashes stay in registers, and only large batches have a large stack
    // frame.
    #[inline(never)]
    fn contains_many(&self, source: impl Source, out: &mut [bool]) {
        let unpack = self.isa.unpack();
        for_each_bitmap(&source, |start, hashes, found| {
            self.engine.contains_bitmap(hashes, found);
            unpack(found, &mut out[start..][..hashes.len()]);
        });
    }

    /// [`contains_batch`](Self::contains_batch) by hash. Panics if the lengths differ.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        match self.engine.plan(hashes.len()) {
            Plan::Single => {
                let places = hashes.iter().copied().zip(out);
                self.engine.contains_each(places, |place, found| *place = found);
            }
            Plan::Pipeline => self.contains_many(hashes, out),
            few => self.contains_few_hashes(few, hashes, out),
        }
    }

    // A call, so that the loop of single calls is small enough to be inlined everywhere.
    #[inline(never)]
    fn contains_few_hashes(&self, plan: Plan, hashes: &[u64], out: &mut [bool]) {
        self.engine.contains_few(plan, hashes, out);
    }

    /// [`contains_batch_bitmap`](Self::contains_batch_bitmap) by hash. Panics if `out` has not
    /// `hashes.len().div_ceil(64)` words.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// let mut found = [0];
    /// let hashes = ["b", "a"].map(|key| filter.hash(key));
    /// filter.contains_hashes_bitmap(&hashes, &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        let plan = self.engine.plan(hashes.len());
        match (hashes, &mut *out) {
            // One word is the right length for these: from 1 to 64.
            ([_, ..], [found]) if plan.is_single() => {
                *found = bitmap_of(hashes, |&hash| self.engine.contains(hash));
            }
            _ => self.contains_many_bitmap(plan, hashes, out),
        }
    }

    // A call, as `contains_few_hashes`.
    #[inline(never)]
    fn contains_many_bitmap(&self, plan: Plan, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        match out {
            [found] => *found = self.engine.contains_few_bitmap(plan, hashes),
            _ => self.engine.contains_bitmap(hashes, out),
        }
    }

    /// [`for_each_absent`](Self::for_each_absent) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("b").unwrap();
    /// let mut absent = Vec::new();
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.for_each_absent_hash(&hashes, |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.each_absent(&hashes, each);
    }

    fn each_absent(&self, source: &impl Source, mut each: impl FnMut(usize)) {
        for_each_bitmap(source, |start, hashes, found| {
            self.engine.contains_bitmap(hashes, found);
            for_each_absent(found, hashes.len(), |i| each(start + i));
        });
    }
}

impl<E: Engine, S> Filter<E, S> {
    /// The hasher.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// assert!(filter.try_clone()?.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        Ok(Self {
            engine: self.engine.try_clone()?,
            hasher: self.hasher.clone(),
            isa: self.isa,
        })
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts if the allocation
/// fails; [`try_clone`](Filter::try_clone) does not.
impl<E: Engine, S: Clone> Clone for Filter<E, S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<u8>(self.memory_bytes());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// A summary; it reads the whole filter.
impl<E: Engine, S: fmt::Debug> fmt::Debug for Filter<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut summary = f.debug_struct(E::NAME);
        summary
            .field("expected_keys", &self.expected_keys())
            .field("memory_bytes", &self.memory_bytes())
            .field("hasher", &self.hasher);
        self.engine.debug(&mut summary);
        summary.finish_non_exhaustive()
    }
}
