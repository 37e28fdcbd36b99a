//! `ConcurrentBloom` by all threads of rayon's pool (feature `rayon`).

use crate::chunks::{HASHED, Source};
use crate::error::{BuildError, IncompatibleError};
use crate::filter::Filter;
use crate::filter::traits::Union;
use crate::filter::types::bloom::{Bloom, Builder, ConcurrentBloom};
use crate::funnel::Funnel;
use crate::hash::{FilterHasher, KeyHasher, assert_same_length};
use crate::sorted_insert;
use crate::words::bits;
use alloc::vec::Vec;
use rayon::prelude::*;

/// Keys that a thread takes at a time for lookups.
const LOOKED_UP: usize = 16 << 10;

/// Lines that a thread takes at a time for unions: 64 KiB.
const UNITED: usize = 1 << 10;

/// Operations in parallel, on the threads of rayon's pool (feature `rayon`). Each behaves
/// like the method without `par_`. Other threads may use the filter meanwhile.
impl<S: FilterHasher + Sync> Filter<Bloom, S> {
    /// [`insert_hashes`](Self::insert_hashes) in parallel.
    ///
    /// If the batch is dense in the filter, each thread sorts a part of it and then inserts the
    /// hashes of a region of its own. So threads do not wait for each other's lines.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let hashes: Vec<u64> = (0..100_000u32).map(|key| filter.hash(&key)).collect();
    /// assert!((99_000..=100_000).contains(&filter.par_insert_hashes(&hashes)));
    /// assert_eq!(filter.par_insert_hashes(&hashes), 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn par_insert_hashes(&self, hashes: &[u64]) -> usize {
        self.par_insert(&hashes)
    }

    fn par_insert(&self, source: &(impl Source + Sync)) -> usize {
        let changed = sorted_insert::par_insert(&self.engine.words, source);
        bits::acquire();
        changed
    }

    /// [`contains_hashes`](Self::contains_hashes) in parallel.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.par_contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn par_contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        let parts = hashes.par_chunks(LOOKED_UP).zip(out.par_chunks_mut(LOOKED_UP));
        parts.for_each(|(hashes, out)| self.contains_hashes(hashes, out));
    }

    /// [`union_from`](Self::union_from) in parallel.
    ///
    /// ```
    /// let all = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.par_union_from(&part), Ok(true));
    /// assert_eq!(all.par_union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn par_union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        let blocks = self.blocks();
        let starts = (0..blocks).into_par_iter().step_by(UNITED);
        let unite = |start: usize| {
            self.engine
                .words
                .bits
                .or_from(&other.engine.words.bits, start..blocks.min(start + UNITED))
        };
        // Not `any`, which would stop at the first change.
        let changed = starts.map(unite).reduce(|| false, |a, b| a | b);
        bits::acquire_if(!changed);
        Ok(changed)
    }
}

/// Operations in parallel on keys.
impl<S: KeyHasher + Sync> Filter<Bloom, S> {
    /// [`insert_batch`](Self::insert_batch) in parallel, as
    /// [`par_insert_hashes`](Self::par_insert_hashes).
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.par_insert_batch(&["a", "b"]), 2);
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn par_insert_batch<K: Funnel + Sync>(&self, keys: &[K]) -> usize {
        self.par_insert(&self.keys(keys))
    }

    /// [`contains_batch`](Self::contains_batch) in parallel.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.par_contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn par_contains_batch<K: Funnel + Sync>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        let parts = keys.par_chunks(LOOKED_UP).zip(out.par_chunks_mut(LOOKED_UP));
        parts.for_each(|(keys, out)| self.contains_batch(keys, out));
    }
}

impl<S: KeyHasher + Sync> Builder<S> {
    /// [`build`](Self::build), and inserts the keys of a parallel iterator. Without
    /// [`expected_keys`](Self::expected_keys) and [`memory_budget`](Self::memory_budget) the
    /// iterator's length sizes the filter.
    ///
    /// An iterator that does not know its length (after `filter`, say) gives no expected keys.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    /// use rayon::prelude::*;
    ///
    /// let squares = (0..10_000u64).into_par_iter().map(|key| key * key);
    /// let filter = ConcurrentBloom::builder().build_from_par_iter(squares)?;
    /// assert_eq!(filter.expected_keys(), 10_000);
    /// assert!(filter.contains(&(9999u64 * 9999)) && !filter.contains(&2u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build_from_par_iter<I>(mut self, keys: I) -> Result<ConcurrentBloom<S>, BuildError>
    where
        I: IntoParallelIterator<Item: Funnel>,
    {
        let keys = keys.into_par_iter();
        if self.request.keys.is_none() && self.request.budget.is_none() {
            self.request.keys = keys.opt_len();
        }
        let mut filter = self.build()?;
        filter.par_extend(keys);
        Ok(filter)
    }
}

/// Inserts the keys in batches, in parallel, also through `&ConcurrentBloom`. For the keys of a
/// slice [`par_insert_batch`](ConcurrentBloom::par_insert_batch) is faster.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use rayon::prelude::*;
///
/// let filter = ConcurrentBloom::builder().expected_keys(10_000).build()?;
/// (&filter).par_extend((0..10_000u32).into_par_iter().filter(|key| key % 2 == 0));
/// assert!(filter.contains(&9998u32) && !filter.contains(&9999u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel + Send, S: KeyHasher + Sync> ParallelExtend<K> for ConcurrentBloom<S> {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        (&*self).par_extend(keys);
    }
}

impl<K: Funnel + Send, S: KeyHasher + Sync> ParallelExtend<K> for &ConcurrentBloom<S> {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let collect = |mut hashes: Vec<u64>, key| {
            hashes.push(self.hash(&key));
            if hashes.len() == HASHED {
                self.insert_hashes(&hashes);
                hashes.clear();
            }
            hashes
        };
        let rest = keys.into_par_iter().fold(Vec::new, collect);
        rest.for_each(|hashes| {
            self.insert_hashes(&hashes);
        });
    }
}
