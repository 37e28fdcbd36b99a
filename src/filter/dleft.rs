//! A d-left counting filter: keys can be removed again. [`DLeftFilter`] holds a remainder of every key with a count of 1 to 3, in one of
//! four buckets of eight cells, the one that was emptiest when the key came.
//!
//! It stands between a counting Bloom filter, of which it takes half the memory, and a [`CuckooFilter`](crate::CuckooFilter), which takes
//! less still. Against that one: a key never moves once it is in, so that an insert costs the same however full the filter is, and
//! a key that is inserted twice takes one cell. What it asks of its user: **remove only what was inserted.** To remove
//! another key is to count down, at the false-positive rate, somebody else's cell.
//!
//! | bits of a cell | false-positive rate at the planned load | planned load | bits per key then |
//! |---|---|---|---|
//! | 14 of the remainder, 2 of the count | 0.16% | 80% | 20 |
//!
//! # Example
//!
//! ```
//! use lanebloom::DLeftFilter;
//!
//! let sessions = DLeftFilter::builder().expected_keys(1_000_000).build()?;
//! sessions.insert("session:17")?;
//! assert!(sessions.contains("session:17"));
//! assert!(sessions.remove("session:17"));
//! assert!(!sessions.contains("session:17"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When there is no room
//!
//! An insert answers an [`InsertError`], and nothing has changed: if all 32 cells of the key's buckets are other keys', which begins to
//! happen at a load of 88% where keys only come, and of 82% where they come and go, or if the key is there 3 times. (Keys that the filter takes for one share the count. That four
//! of them meet happens once in six billion keys, by the model.)
//!
//! # Consistency
//!
//! What threads may rely on, in the words of the [crate](crate#consistency):
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal of it does, the lookup answers
//!    true, whatever other threads insert and remove meanwhile.
//! 2. **Answers.** Of threads that race to remove a key that was inserted once, exactly one gets `true`: a removal is a claim.
//!    (Two keys with the same bucket and remainder are one key to the filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup answers true, everything is visible that the threads which inserted the key had done before.
//! 4. **Progress.** Lookups never wait and look once. Removals, and inserts of a key that is there already, are lock-free. *Inserts of new keys are
//!    not*: those of the same stripe of remainders (one of up to 256) exclude each other for the time of a few atomic operations, so
//!    that a key never gets two cells.
//! 5. **The whole filter.** [`clone`](Clone::clone) and [snapshots](crate::codec) of a live filter hold every key whose insertion happened
//!    before; inserts of new keys wait meanwhile.
//!    [`clear`](DLeftFilter::clear) takes `&mut self`.
//!
//! There is no union, since keys of two filters may not fit into the buckets of one, and no `==`: where a cell lies depends on the order of
//! the inserts. [`try_extend`](DLeftFilter::try_extend) stands for `Extend`, which could not say that there is no room.
//!
//! Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for Counting Bloom Filters" (2006).

mod cells;
mod snapshot;

pub use crate::error::InsertError;

use super::concurrent::{HASHED_STRETCH, assert_bitmap_length, try_gathered};
use super::probe::{self, Probe};
use crate::batch::unpack;
use crate::bits::{self, Purpose};
use crate::error::{BuildError, InsertErrorKind};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use cells::{Cells, Inserted, Place, Plan, Request};
use core::fmt;

/// A filter from which keys can be removed, for many threads to fill and ask at once: a d-left counting filter.
///
/// Keys are any [`Funnel`] type; they are hashed by `S`, [`Murmur3`] unless chosen otherwise. All operations but
/// [`clear`](Self::clear) take `&self`: share it as `Arc<DLeftFilter>`. What threads may rely on, and what the filter asks of its
/// users, is in [the module](self).
///
/// # Examples
///
/// ```
/// use lanebloom::DLeftFilter;
/// use std::thread;
///
/// let open = DLeftFilter::builder().expected_keys(10_000).build()?;
/// thread::scope(|scope| {
///     for worker in 0..4u32 {
///         let open = &open;
///         scope.spawn(move || {
///             for i in 0..1000u32 {
///                 open.insert(&(worker, i)).unwrap();
///                 if i % 2 == 0 {
///                     assert!(open.remove(&(worker, i)));
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(open.len(), 2000);
/// assert!(open.contains(&(3u32, 999u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct DLeftFilter<S = Murmur3> {
    cells: Cells,
    hasher: S,
    expected_keys: usize,
}

/// Sizes a [`DLeftFilter`]; made by [`DLeftFilter::builder`].
///
/// Give the expected keys, or a memory budget, or both; a rate below 0.16% takes more memory:
///
/// | given | size |
/// |---|---|
/// | keys, perhaps rate | what they need |
/// | budget, perhaps rate | the budget; [`expected_keys`](DLeftFilter::expected_keys) says how many keys that is |
/// | keys and budget | the budget |
/// | keys, rate and budget | what keys and rate need, or an error where that is more than the budget |
///
/// # Examples
///
/// ```
/// use lanebloom::DLeftFilter;
///
/// let filter = DLeftFilter::builder().memory_budget(1 << 20).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((418_000..420_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    request: Request,
    hasher: S,
}

impl DLeftFilter {
    /// A builder with [`Murmur3`], seed 0.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            request: Request::default(),
            hasher: Murmur3::default(),
        }
    }
}

impl Builder {
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys, see [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S: KeyHasher> Builder<S> {
    /// The number of distinct keys that are to be in the filter at once. 0 means 1.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(50_000).build()?;
    /// assert!((0..50_000u32).all(|key| filter.insert(&key).is_ok()));
    /// assert!(filter.current_false_positive_rate() <= 0.00157);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.request.keys = Some(keys);
        self
    }

    /// The chance that a key which is not in the filter is taken for one that is, once the expected keys are in: between 0 and 1, both
    /// excluded. It is 0.16% where nothing is said, whatever higher rate is allowed, and a lower one takes more memory in
    /// proportion.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).false_positive_rate(1e-3).build()?;
    /// assert!(filter.false_positive_rate_at(1000) <= 1e-3);
    ///
    /// let wrong = DLeftFilter::builder().expected_keys(1000).false_positive_rate(1e-6).build();
    /// assert_eq!(
    ///     wrong.unwrap_err().to_string(),
    ///     "a false-positive rate of 1e-6 with remainders of 14 bits takes more than the limit of 128 bits per key"
    /// );
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// The most memory that the filter may take, in bytes: at least 72.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().memory_budget(10_000).build()?;
    /// assert!(filter.memory_bytes() <= 10_000);
    /// assert_eq!(filter.expected_keys(), 3968);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says when to take which.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).hasher(RandomState::new()).build()?;
    /// filter.insert("a")?;
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hasher<T: KeyHasher>(self, hasher: T) -> Builder<T> {
        Builder {
            request: self.request,
            hasher,
        }
    }

    /// Sizes the filter and allocates it.
    ///
    /// # Errors
    ///
    /// Where neither keys nor budget were given, the rate is not between 0 and 1 or would take more than 128 bits per key, the budget
    /// is below 72 bytes or below what keys and rate need, the size is beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 2568);
    ///
    /// let error = DLeftFilter::builder().build().unwrap_err();
    /// assert!(error.to_string().starts_with("neither expected keys nor a memory budget was given"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<DLeftFilter<S>, BuildError> {
        let Plan { buckets, keys } = self.request.solve().map_err(BuildError)?;
        Ok(DLeftFilter {
            cells: Cells::new(buckets)?,
            hasher: self.hasher,
            expected_keys: keys,
        })
    }
}

/// Single operations.
impl<S: KeyHasher> DLeftFilter<S> {
    /// Inserts `key`, once more if it is there already.
    ///
    /// # Errors
    ///
    /// If all cells of the key's four buckets are other keys', or the key is there [as often as a cell counts](Self::max_copies).
    /// Nothing in the filter has changed then.
    ///
    /// # Memory ordering
    ///
    /// A `Release`: who finds the key sees everything that this thread had done before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.count("a"), 2);
    ///
    /// let tiny = DLeftFilter::builder().expected_keys(1).build()?;
    /// let full = (0..1000u32).find_map(|key| tiny.insert(&key).err()).unwrap();
    /// assert_eq!(full.to_string(), "the key's 4 buckets are full: the filter, sized for 1 keys, has no room for it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<(), InsertError> {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before, and that was not removed.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`: everything that the threads which inserted the key had done before is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64)?;
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Removes `key`, once if it is there several times; returns whether it was there.
    ///
    /// Of several threads that race to remove a key that was inserted once, exactly one gets `true`. **The key must be one that was
    /// inserted and not yet removed**, or one that nobody inserted will be found at the false-positive rate, and
    /// another key removed in its place, which is then a false negative.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert!(filter.remove("a"));
    /// assert!(!filter.remove("a"));
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// How often `key` may be in the filter, 0 to 3: never less than it is, and more where another key is taken for it, at the
    /// false-positive rate.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// assert_eq!((filter.count("a"), filter.count("b")), (2, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize {
        self.count_hash(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// `insert(k)` is `insert_hash(hash(k))`: a caller may hash ahead, keep hashes, or send them.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    /// [`insert`](Self::insert) by hash. All 64 bits must be evenly distributed: those of a good hash function, not
    /// an id as it is.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15)?;
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_place(&self.cells.place(hash), 0)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15)?;
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.cells.holds(&self.cells.place(hash))
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert!(filter.remove_hash(filter.hash("a")));
    /// assert!(!filter.remove_hash(filter.hash("a")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.cells.remove(&self.cells.place(hash))
    }

    /// [`count`](Self::count) by hash.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.count_hash(filter.hash("a")), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.cells.count(&self.cells.place(hash)) as usize
    }

    #[inline]
    fn insert_place(&self, place: &Place, inserted: usize) -> Result<(), InsertError> {
        let kind = match self.cells.insert(place) {
            Inserted::Yes => return Ok(()),
            Inserted::Saturated => InsertErrorKind::Copies {
                limit: self.max_copies(),
            },
            Inserted::Full => InsertErrorKind::DLeftFull {
                expected_keys: self.expected_keys,
            },
        };
        Err(InsertError { kind, inserted })
    }
}

/// Batches: the same answers as the single calls in order. In a filter beyond the caches the lines of many keys are fetched
/// ahead, all at once.
impl<S: KeyHasher> DLeftFilter<S> {
    /// Inserts every hash, as [`insert_hash`](Self::insert_hash) does.
    ///
    /// # Errors
    ///
    /// At the first one for which there is no room: [`InsertError::inserted`] says how many of the batch were inserted before it. The
    /// others are not.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_hashes(&["a", "b", "a"].map(|key| filter.hash(key)))?;
    /// assert_eq!((filter.count("a"), filter.count("b")), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> Result<(), InsertError> {
        self.insert_after(0, hashes)
    }

    /// Writes for every hash whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        probe::contains(&self.cells, hashes, |at, len, found| {
            unpack(&[found], &mut out[at..at + len]);
        });
    }

    /// [`contains_hashes`](Self::contains_hashes) into a bitmap: bit `i % 64` of `out[i / 64]` is the answer for hash `i`.
    /// The bits after the last hash are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 hashes, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        probe::contains(&self.cells, hashes, |at, _, found| out[at / 64] = found);
    }

    /// Calls `each` with the position of every hash that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.absent_hashes(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn absent_hashes(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        probe::contains(&self.cells, hashes, |at, len, found| {
            probe::each_absent(found, len, |i| each(at + i));
        });
    }

    /// Removes every hash, as [`remove_hash`](Self::remove_hash) does; returns how many were there.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b"])?;
    /// assert_eq!(filter.remove_hashes(&["a", "c", "b"].map(|key| filter.hash(key))), 2);
    /// assert!(filter.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
        let mut removed = 0;
        self.remove_each(hashes, |_, was_there| removed += usize::from(was_there));
        removed
    }

    /// [`remove_hashes`](Self::remove_hashes) that also writes for every hash whether it was there to the same place of `removed`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_hashes_flagged(&["a", "a"].map(|key| filter.hash(key)), &mut removed), 1);
    /// assert_eq!(removed, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.remove_each(hashes, |i, was_there| removed[i] = was_there);
        removed.iter().filter(|&&removed| removed).count()
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes.
    ///
    /// # Errors
    ///
    /// As of [`insert_hashes`](Self::insert_hashes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&[1u64, 2])?;
    /// filter.insert_batch(&["a", "b"])?;
    /// assert!(filter.contains(&2u64) && filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<(), InsertError> {
        probe::hashed(&self.hasher, keys, |at, hashes| self.insert_after(at, hashes))
    }

    /// [`contains_hashes`](Self::contains_hashes) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        probe::each_hashed(&self.hasher, keys, |at, hashes| {
            self.contains_hashes(hashes, &mut out[at..at + hashes.len()]);
        });
    }

    /// [`contains_hashes_bitmap`](Self::contains_hashes_bitmap) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        probe::each_hashed(&self.hasher, keys, |at, hashes| {
            self.contains_hashes_bitmap(hashes, &mut out[at / 64..][..hashes.len().div_ceil(64)]);
        });
    }

    /// [`absent_hashes`](Self::absent_hashes) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.absent_batch(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn absent_batch<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        probe::each_hashed(&self.hasher, keys, |at, hashes| {
            self.absent_hashes(hashes, |i| each(at + i))
        });
    }

    /// [`remove_hashes`](Self::remove_hashes) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b", "c"])?;
    /// assert_eq!(filter.remove_batch(&["a", "b", "b"]), 2);
    /// assert!(filter.contains("c") && filter.len() == 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        let mut removed = 0;
        probe::each_hashed(&self.hasher, keys, |_, hashes| removed += self.remove_hashes(hashes));
        removed
    }

    /// [`remove_hashes_flagged`](Self::remove_hashes_flagged) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("b")?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_flagged(&["a", "b"], &mut removed), 1);
    /// assert_eq!(removed, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), removed.len());
        let mut sum = 0;
        probe::each_hashed(&self.hasher, keys, |at, hashes| {
            sum += self.remove_hashes_flagged(hashes, &mut removed[at..at + hashes.len()]);
        });
        sum
    }

    /// Inserts the keys in batches: what `Extend` does for filters that are never full.
    ///
    /// # Errors
    ///
    /// As of [`insert_hashes`](Self::insert_hashes). Up to 1023 keys more than were inserted have been taken from the iterator then.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.try_extend(0..1000u32)?;
    /// assert!(filter.contains(&999u32) && filter.len() == 1000);
    ///
    /// let full = filter.try_extend(1000u32..).unwrap_err();
    /// assert_eq!(1000 + full.inserted(), filter.len());
    /// assert!(full.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "extend")]
    pub fn try_extend<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Result<(), InsertError> {
        let mut inserted = 0;
        try_gathered::<HASHED_STRETCH, _, _>(keys.into_iter().map(|key| self.hash(&key)), |hashes| {
            self.insert_after(inserted, hashes)?;
            inserted += hashes.len();
            Ok(())
        })
    }

    /// Inserts hashes that come after so many others.
    fn insert_after(&self, before: usize, hashes: &[u64]) -> Result<(), InsertError> {
        let mut result = Ok(());
        probe::windows(&self.cells, hashes, Purpose::Write, |at, places| {
            for (i, place) in places.iter().enumerate() {
                result = self.insert_place(place, before + at + i);
                if result.is_err() {
                    return false;
                }
            }
            true
        });
        result
    }

    fn remove_each(&self, hashes: &[u64], mut each: impl FnMut(usize, bool)) {
        probe::windows(&self.cells, hashes, Purpose::Write, |at, places| {
            for (i, place) in places.iter().enumerate() {
                each(at + i, self.cells.remove(place));
            }
            true
        });
    }
}

/// The whole filter.
impl<S> DLeftFilter<S> {
    /// Removes all keys. It takes `&mut self` because beside inserts nobody could say which of them survived.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let mut filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.cells.store(0, core::iter::repeat(0));
    }

    /// [`clone`](Clone::clone), with an error instead of an abort where the memory is not to be had.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let copy = filter.try_clone()?;
    /// filter.remove("a");
    /// assert!(copy.contains("a") && !filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        Ok(Self {
            cells: self.cells.try_clone()?,
            hasher: self.hasher.clone(),
            expected_keys: self.expected_keys,
        })
    }
}

/// What the filter is, and how full. Figures from the cells read the whole filter: beside other threads, each word as it was at
/// some moment meanwhile.
impl<S> DLeftFilter<S> {
    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// assert_eq!(DLeftFilter::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The number of cells, of which each holds a key: more than [`expected_keys`](Self::expected_keys), and than can be filled.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1_000_000).build()?;
    /// assert!((0.799..=0.8).contains(&(1e6 / filter.cells() as f64)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells.cells()
    }

    /// How often one key can be inserted: 3 times, as far as its cell counts.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// (0..filter.max_copies()).try_for_each(|_| filter.insert("a"))?;
    /// let error = filter.insert("a").unwrap_err();
    /// assert_eq!(error.to_string(), "the key is in the filter 3 times, which is as often as it can be");
    /// assert!(!error.is_full() && filter.count("a") == 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_copies(&self) -> usize {
        cells::MAX_COUNT as usize
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1_000_000).build()?;
    /// assert!((20.0..20.1).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.expected_keys as f64
    }

    /// Bytes of memory that the cells take, and the stripes beside them: at most 2 KiB, and not more than 1/256, or 8 bytes.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// assert_eq!(DLeftFilter::builder().memory_budget(1 << 20).build()?.memory_bytes(), 1 << 20);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes()
    }

    /// The number of keys in the filter, each as often as it was inserted and not removed. Reads the whole filter.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// filter.try_extend(["a", "b", "a"])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.occupied().1
    }

    /// Whether there is no key in the filter. Reads the filter up to the first key.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).build()?;
    /// assert!(filter.is_empty());
    /// filter.insert("a")?;
    /// assert!(!filter.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = self.cells.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    /// The fraction of the [cells](Self::cells) that hold a key. Reads the whole filter.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(100_000).build()?;
    /// filter.try_extend(0..100_000u32)?;
    /// assert!((0.797..=0.8).contains(&filter.load()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn load(&self) -> f64 {
        self.cells.occupied().0 as f64 / self.cells() as f64
    }

    /// The false-positive rate to expect once `keys` distinct keys are in (beyond the [cells](Self::cells), with all of them filled).
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(100_000).build()?;
    /// assert!((0.00155..=0.00157).contains(&filter.false_positive_rate_at(100_000)));
    /// assert!((0.00077..=0.000785).contains(&filter.false_positive_rate_at(50_000)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let load = keys as f64 / self.cells() as f64;
        cells::rate_at(f64::min(load, 1.0))
    }

    /// The false-positive rate of the filter as it is: exactly the chance that a random hash is taken for present. Reads the whole
    /// filter.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.try_extend(0..100_000u32)?;
    /// assert!((0.00155..=0.00157).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        cells::rate_at(self.load())
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::DLeftFilter;
    ///
    /// let filter = DLeftFilter::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

/// A copy that holds every key whose insertion happened before, and that was not removed. Aborts where the memory is not to be
/// had; [`try_clone`](DLeftFilter::try_clone) does not.
impl<S: Clone> Clone for DLeftFilter<S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<[u64; 8]>(self.cells.buckets());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// A summary; it reads the whole filter for the number of keys.
impl<S: fmt::Debug> fmt::Debug for DLeftFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DLeftFilter")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("hasher", &self.hasher)
            .field("len", &self.len())
            .field("cells", &self.cells())
            .finish_non_exhaustive()
    }
}
