//! The lookups of all filters: hash keys, cut batches into chunks, and pass the hashes to the
//! engine. The methods of a type call them.

use crate::answers::{Answers, Place};
use crate::chunks::{Source, for_each_absent, for_each_bitmap};
use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::traits::Engine;
use crate::funnel::Funnel;
use crate::hash::KeyHasher;
use crate::kernel::Plan;
use crate::kernel::plain::bitmap_of;
use crate::kernel::plan::TILE;
use crate::key::Key;
use crate::words::scratch::Scratch;
use core::fmt;

/// `contains` and `contains_batch` of any type.
#[doc(hidden)]
impl<E: Engine, S> Filter<E, S> {
    #[inline(always)]
    pub fn look_up<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.engine.contains(key.hash_by(&self.hasher))
    }

    #[inline(always)]
    pub fn look_up_batch<K: Key<S>>(&self, keys: &[K], mut out: impl Answers) {
        match out.place(keys.len()) {
            Place::Flags(out) if K::IS_HASH => self.look_up_hashes(keys, out),
            Place::Flags(out) => self.look_up_keys(keys, out),
            Place::Bitmap(out) => self.look_up_bitmap(keys, out),
            Place::Absent(absent) => {
                for_each_bitmap(&K::source(keys, &self.hasher, self.isa), |start, hashes, found| {
                    self.engine.contains_bitmap(hashes, found);
                    for_each_absent(found, hashes.len(), |i| absent(start + i));
                });
            }
            Place::Nowhere => {}
        }
    }

    #[inline(always)]
    fn look_up_hashes<K: Key<S>>(&self, hashes: &[K], out: &mut [bool]) {
        match self.engine.plan(hashes.len()) {
            Plan::Single => {
                let hashes = hashes.iter().map(|hash| hash.hash_by(&self.hasher));
                self.engine
                    .contains_each(hashes.zip(out), |place, found| *place = found);
            }
            Plan::Pipeline => self.look_up_many(K::source(hashes, &self.hasher, self.isa), out),
            _ => self.look_up_few(hashes, out),
        }
    }

    // A call: two keys at a time took 1.04 (32 KiB) to 1.15 times as long (16 MiB, Zen 5) where
    // their single calls stood in the caller's loop. The plan says how they are hashed.
    #[inline(never)]
    fn look_up_keys<K: Key<S>>(&self, keys: &[K], out: &mut [bool]) {
        match Plan::of_keys(keys.len()) {
            Plan::Single => {
                for (key, found) in keys.iter().zip(out) {
                    *found = self.look_up(key);
                }
            }
            Plan::Pipeline => self.look_up_many(K::source(keys, &self.hasher, self.isa), out),
            _ => self.look_up_few(keys, out),
        }
    }

    // A call, so that single calls are small enough to be inlined.
    #[inline(never)]
    fn look_up_few<K: Key<S>>(&self, keys: &[K], out: &mut [bool]) {
        let (plan, source) = (self.engine.plan(keys.len()), K::source(keys, &self.hasher, self.isa));
        let mut space = Scratch::<TILE>::default();
        self.engine
            .contains_few(plan, source.hashes(0..keys.len(), &mut space), out);
    }

    // A call, so that a few hashes stay in registers, and only large batches have a large stack
    // frame.
    #[inline(never)]
    fn look_up_many(&self, source: impl Source, out: &mut [bool]) {
        let unpack = self.isa.unpack();
        for_each_bitmap(&source, |start, hashes, found| {
            self.engine.contains_bitmap(hashes, found);
            unpack(found, &mut out[start..][..hashes.len()]);
        });
    }

    #[inline(always)]
    fn look_up_bitmap<K: Key<S>>(&self, keys: &[K], out: &mut [u64]) {
        let plan = match K::IS_HASH {
            true => self.engine.plan(keys.len()),
            false => Plan::of_keys(keys.len()),
        };
        match plan {
            Plan::Single => out.fill(bitmap_of(keys, |key| self.look_up(key))),
            Plan::Pipeline => self.look_up_many_bits(K::source(keys, &self.hasher, self.isa), out),
            _ => self.look_up_few_bits(keys, out),
        }
    }

    // A call, as `look_up_few`.
    #[inline(never)]
    fn look_up_few_bits<K: Key<S>>(&self, keys: &[K], out: &mut [u64]) {
        let (plan, source) = (self.engine.plan(keys.len()), K::source(keys, &self.hasher, self.isa));
        let mut space = Scratch::<TILE>::default();
        out.fill(
            self.engine
                .contains_few_bitmap(plan, source.hashes(0..keys.len(), &mut space)),
        );
    }

    // A call, as `look_up_many`.
    #[inline(never)]
    fn look_up_many_bits(&self, source: impl Source, out: &mut [u64]) {
        source.for_each_chunk(usize::MAX, |start, hashes| {
            let found = &mut out[start / 64..][..hashes.len().div_ceil(64)];
            self.engine.contains_bitmap(hashes, found);
        });
    }
}

/// Hashes.
impl<E: Engine, S: KeyHasher> Filter<E, S> {
    /// The hash by which this filter knows `key`. For many keys, call
    /// [`hash_batch`](KeyHasher::hash_batch) of the [`hasher`](Self::hasher).
    ///
    /// ```
    /// use lanebloom::{CuckooFilter, Hashed};
    ///
    /// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert(&Hashed(filter.hash("a"))).unwrap();
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
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
