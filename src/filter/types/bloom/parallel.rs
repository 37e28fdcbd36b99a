//! `ConcurrentBloom` by all threads of rayon's pool (feature `rayon`).

use crate::answers::{Answers, Bitmap, Place};
use crate::chunks::{HASHED, for_each_absent};
use crate::error::{BuildError, IncompatibleError};
use crate::filter::Filter;
use crate::filter::traits::Union;
use crate::filter::types::bloom::{Builder, ConcurrentBloom};
use crate::hash::{FilterHasher, KeyHasher};
use crate::key::{Hashed, HashedKeys, Key};
use crate::sorted_insert;
use crate::words::bits;
use alloc::vec::Vec;
use core::fmt;
use rayon::prelude::*;

/// Keys that a thread takes at a time for lookups.
const LOOKED_UP: usize = 16 << 10;

/// Lines that a thread takes at a time for unions: 64 KiB.
const UNITED: usize = 1 << 10;

/// The operations of a [`ConcurrentBloom`] by the threads of rayon's pool (feature `rayon`); made
/// by [`parallel`](ConcurrentBloom::parallel). Each returns, fails and panics as the filter's
/// method of the same name. Other threads may use the filter meanwhile.
///
/// ```
/// let filter = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
/// let keys: Vec<u32> = (0..100_000).collect();
/// assert!((99_000..=100_000).contains(&filter.parallel().insert_batch(&keys)));
/// assert_eq!(filter.parallel().insert_batch(&keys), 0);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct Parallel<'a, S>(&'a ConcurrentBloom<S>);

impl<S: fmt::Debug> fmt::Debug for Parallel<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parallel").field(self.0).finish()
    }
}

impl<S: Sync> ConcurrentBloom<S> {
    /// The same operations by the threads of rayon's pool (feature `rayon`).
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.parallel().insert_batch(&["a", "b"]), 2);
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn parallel(&self) -> Parallel<'_, S> {
        Parallel(self)
    }
}

impl<S: Sync> Parallel<'_, S> {
    /// [`ConcurrentBloom::insert_batch`].
    ///
    /// If the batch is dense in the filter, each thread sorts a part of it and then inserts the
    /// hashes of a region of its own. So threads do not wait for each other's lines.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.parallel().insert_batch(&["a", "b"]), 2);
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Key<S> + Sync>(&self, keys: &[K]) -> usize {
        let Filter { engine, hasher, isa } = self.0;
        let isa = *isa;
        let changed = match K::hashes(keys) {
            Some(hashes) => sorted_insert::par_insert(&engine.words, &hashes),
            None => sorted_insert::par_insert(&engine.words, &HashedKeys { hasher, isa, keys }),
        };
        bits::acquire();
        changed
    }

    /// [`ConcurrentBloom::contains_batch`].
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.parallel().contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: Key<S> + Sync>(&self, keys: &[K], mut out: impl Answers) {
        let parts = keys.par_chunks(LOOKED_UP);
        let bits = |out: &mut [u64]| {
            let parts = keys.par_chunks(LOOKED_UP).zip(out.par_chunks_mut(LOOKED_UP / 64));
            parts.for_each(|(keys, out)| self.0.contains_batch(keys, Bitmap(out)));
        };
        match out.place(keys.len()) {
            Place::Flags(out) => {
                let parts = parts.zip(out.par_chunks_mut(LOOKED_UP));
                parts.for_each(|(keys, out)| self.0.contains_batch(keys, out));
            }
            Place::Bitmap(out) => bits(out),
            Place::Absent(absent) => {
                let mut found = alloc::vec![0; keys.len().div_ceil(64)];
                bits(&mut found);
                for_each_absent(&found, keys.len(), absent);
            }
            Place::Nowhere => {}
        }
    }

    /// [`ConcurrentBloom::union_from`].
    ///
    /// ```
    /// let all = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.parallel().union_from(&part), Ok(true));
    /// assert_eq!(all.parallel().union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn union_from(&self, other: &ConcurrentBloom<S>) -> Result<bool, IncompatibleError>
    where
        S: FilterHasher,
    {
        self.0.check_union(other)?;
        let blocks = self.0.engine.layout.blocks;
        let starts = (0..blocks).into_par_iter().step_by(UNITED);
        let unite = |start: usize| {
            let (ours, theirs) = (self.0.bits(), other.bits());
            ours.or_from(theirs, start..blocks.min(start + UNITED))
        };
        // Not `any`, which would stop at the first change.
        let changed = starts.map(unite).reduce(|| false, |a, b| a | b);
        bits::acquire_if(!changed);
        Ok(changed)
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
        I: IntoParallelIterator<Item: Key<S>>,
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
/// slice [`insert_batch`](Parallel::insert_batch) is faster.
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
impl<K: Key<S> + Send, S: KeyHasher + Sync> ParallelExtend<K> for ConcurrentBloom<S> {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        (&*self).par_extend(keys);
    }
}

impl<K: Key<S> + Send, S: KeyHasher + Sync> ParallelExtend<K> for &ConcurrentBloom<S> {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let collect = |mut hashes: Vec<u64>, key: K| {
            hashes.push(key.hash_by(&self.hasher));
            if hashes.len() == HASHED {
                self.insert_batch(Hashed::slice(&hashes));
                hashes.clear();
            }
            hashes
        };
        let rest = keys.into_par_iter().fold(Vec::new, collect);
        rest.for_each(|hashes: Vec<u64>| {
            self.insert_batch(Hashed::slice(&hashes));
        });
    }
}
