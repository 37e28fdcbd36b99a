//! A cuckoo filter: keys can be removed again. [`CuckooFilter`] holds a short tag of every key, in one of two buckets that the key
//! chooses, and each bucket is one atomic word.
//!
//! Of the filters that can delete it takes the least memory, and a lookup reads two words. A key may be inserted several times and
//! is then to be removed as often. What it asks of its user in return: **remove only what was inserted.** To remove
//! another key is to remove, at the false-positive rate, somebody else's tag.
//!
//! # Example
//!
//! ```
//! use lanebloom::CuckooFilter;
//!
//! let sessions = CuckooFilter::builder().expected_keys(1_000_000).build()?;
//! sessions.insert("session:17")?;
//! assert!(sessions.contains("session:17"));
//! assert!(sessions.remove("session:17"));
//! assert!(!sessions.contains("session:17"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which tags
//!
//! | bits of a tag | tags per bucket | false-positive rate when full | planned load | bits per key then |
//! |---|---|---|---|---|
//! | 10 | 6 | 1.2% | 98.8% | 10.8 |
//! | 12 | 5 | 0.24% | 97% | 13.2 |
//! | 16 | 4 | 0.012% | 95% | 16.8 |
//!
//! The rate is in proportion to how full the filter is. A builder that is asked for a rate takes the tags with which it takes the
//! least memory, and where the full filter's rate would be higher, a filter that is not filled so far: 12.5 bits at 1%.
//!
//! # When it is full
//!
//! An insert that finds both buckets full moves other keys' tags to their other buckets, after it has found a way to an empty slot.
//! Where there is none within 4096 buckets it answers an [`InsertError`], and nothing that was in the filter is lost. A filter
//! sized for its keys does not come to that, unless one key is inserted too often: each copy takes a slot, and a key has those
//! of two buckets: 12, 10 or 8 ([`max_copies`](CuckooFilter::max_copies)).
//!
//! # Consistency
//!
//! What threads may rely on, in the words of the [crate](crate#consistency):
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal of it does, the lookup answers
//!    true, whatever other threads insert, move and remove meanwhile.
//! 2. **Answers.** Of threads that race to remove a key that was inserted once, exactly one gets `true`: a removal is a claim.
//!    (Two keys with the same tag and buckets are one key to the filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup answers true, everything is visible that the thread which inserted the key had done
//!    before, also if the tag was moved by others since.
//! 4. **Progress.** Lookups are lock-free: they never wait, and look again only when another thread moved a tag meanwhile. An
//!    insert that finds an empty slot in one of its two buckets is lock-free too. *Moves and removals are not*: those of the same stripe of
//!    tags (one of up to 256) exclude each other for the time of a few atomic operations, since a tag that is
//!    being moved is in two places, and no bit is free in a bucket to say so.
//! 5. **The whole filter.** [`clone`](Clone::clone), [`to_compact`](CuckooFilter::to_compact) and [snapshots](crate::codec) of a live
//!    filter hold every key whose insertion happened before; moves and removals wait meanwhile. [`clear`](CuckooFilter::clear) takes `&mut self`.
//!
//! There is no union, since two full filters do not fit into one of them, and no `==`: where a tag lies depends on the order of the
//! inserts. [`try_extend`](CuckooFilter::try_extend) stands for `Extend`, which could not say that the filter is full.
//!
//! Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom" (2014).

mod compact;
pub(crate) mod shape;
mod snapshot;
mod table;

pub use crate::error::InsertError;
pub use compact::CompactCuckoo;

use super::concurrent::{HASHED_STRETCH, assert_bitmap_length, try_gathered};
use super::probe::{self, Probe};
use crate::batch::unpack;
use crate::bits::Purpose;
use crate::error::{BuildError, InsertErrorKind};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use core::fmt;
use shape::{Plan, Request};
use table::{Place, SEARCHED, Table};

/// A filter from which keys can be removed, for many threads to fill and ask at once: a cuckoo filter.
///
/// Keys are any [`Funnel`] type; they are hashed by `S`, [`Murmur3`] unless chosen otherwise. All operations but
/// [`clear`](Self::clear) take `&self`: share it as `Arc<CuckooFilter>`. What threads may rely on, and what the filter asks of its
/// users, is in [the module](self).
///
/// # Examples
///
/// ```
/// use lanebloom::CuckooFilter;
/// use std::thread;
///
/// let open = CuckooFilter::builder().expected_keys(10_000).build()?;
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
pub struct CuckooFilter<S = Murmur3> {
    table: Table,
    hasher: S,
    expected_keys: usize,
}

/// Sizes a [`CuckooFilter`]; made by [`CuckooFilter::builder`].
///
/// Give the expected keys, or a memory budget, or both:
///
/// | given | size | tags |
/// |---|---|---|
/// | keys, perhaps rate | what they need | those of the least memory at that rate, 1% by default |
/// | budget, perhaps rate | the budget | the same; [`expected_keys`](CuckooFilter::expected_keys) says how many keys that is |
/// | keys and budget | the budget | the longest that fit |
/// | keys, rate and budget | what keys and rate need, or an error where that is more than the budget | as without the budget |
///
/// [`tag_bits`](Self::tag_bits) chooses the tags; without a rate, theirs is taken.
///
/// # Examples
///
/// ```
/// use lanebloom::CuckooFilter;
///
/// let filter = CuckooFilter::builder().expected_keys(1_000_000).false_positive_rate(1e-3).build()?;
/// assert_eq!(filter.tag_bits(), 16);
/// assert!((16.8..17.0).contains(&filter.bits_per_key()));
///
/// let filter = CuckooFilter::builder().memory_budget(1 << 20).tag_bits(12).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((630_000..635_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    request: Request,
    hasher: S,
}

impl CuckooFilter {
    /// A builder with [`Murmur3`], seed 0.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S: KeyHasher> Builder<S> {
    /// The number of keys that are to be in the filter at once, each copy of a key counted. 0 means 1.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(50_000).build()?;
    /// assert!((0..50_000u32).all(|key| filter.insert(&key).is_ok()));
    /// assert!(filter.current_false_positive_rate() <= 0.01);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.request.keys = Some(keys);
        self
    }

    /// The chance that a key which is not in the filter is taken for one that is, once the expected keys are in: between 0 and 1, both
    /// excluded. 0.01 by default, unless the tags are chosen by [`tag_bits`](Self::tag_bits) or by keys and budget.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).false_positive_rate(1e-4).build()?;
    /// assert!(filter.false_positive_rate_at(1000) <= 1e-4);
    ///
    /// let wrong = CuckooFilter::builder().expected_keys(1000).false_positive_rate(1e-6).build();
    /// assert_eq!(
    ///     wrong.unwrap_err().to_string(),
    ///     "a false-positive rate of 1e-6 with tags of 16 bits takes more than the limit of 128 bits per key"
    /// );
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// The most memory that the filter may take, in bytes: at least 64.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().memory_budget(10_000).expected_keys(5000).build()?;
    /// assert!(filter.memory_bytes() <= 10_000);
    /// assert_eq!(filter.tag_bits(), 12); // of 16 bits each they would not fit
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// The length of a tag in bits: 10, 12 or 16, six, five or four to a bucket.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1_000_000).tag_bits(10).build()?;
    /// assert!(filter.bits_per_key() < 10.83);
    /// assert!((0.0115..0.012).contains(&filter.false_positive_rate_at(1_000_000)));
    ///
    /// let wrong = CuckooFilter::builder().expected_keys(1000).tag_bits(8).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "tags of 8 bits are not of 10, 12 or 16");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn tag_bits(mut self, bits: usize) -> Self {
        self.request.tag_bits = Some(bits);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says when to take which.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    /// use std::hash::RandomState;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).hasher(RandomState::new()).build()?;
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
    /// Where neither keys nor budget were given, the rate is not between 0 and 1, the tags are not of 10, 12 or 16 bits, the rate
    /// would take more than 128 bits per key, the budget is below 64 bytes or below what keys and rate need, the size is
    /// beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 1608);
    ///
    /// let error = CuckooFilter::builder().build().unwrap_err();
    /// assert!(error.to_string().starts_with("neither expected keys nor a memory budget was given"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<CuckooFilter<S>, BuildError> {
        let Plan { shape, buckets, keys } = self.request.solve().map_err(BuildError)?;
        Ok(CuckooFilter {
            table: Table::new(shape, buckets)?,
            hasher: self.hasher,
            expected_keys: keys,
        })
    }
}

/// Single operations.
impl<S: KeyHasher> CuckooFilter<S> {
    /// Inserts `key`, once more if it is there already.
    ///
    /// # Errors
    ///
    /// If there is no room: the filter is full, or the key was inserted [as often as it can be](Self::max_copies). Nothing
    /// that is in the filter is lost then, and the key is not in it once more.
    ///
    /// # Memory ordering
    ///
    /// A `Release`: who finds the key sees everything that this thread had done before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.count("a"), 2);
    ///
    /// let tiny = CuckooFilter::builder().expected_keys(1).build()?;
    /// let full = (0..1000u32).find_map(|key| tiny.insert(&key).err()).unwrap();
    /// assert!(full.is_full());
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// another key's tag removed in its place, which is then a false negative.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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

    /// How often `key` may be in the filter, at most [`max_copies`](Self::max_copies): never less than it is, and more where other
    /// keys are taken for it, at the false-positive rate.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15)?;
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_place(self.table.place(hash), 0)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15)?;
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.table.holds(self.table.place(hash))
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert!(filter.remove_hash(filter.hash("a")));
    /// assert!(!filter.remove_hash(filter.hash("a")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.table.remove(self.table.place(hash))
    }

    /// [`count`](Self::count) by hash.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// assert_eq!(filter.count_hash(filter.hash("a")), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.table.count(self.table.place(hash)) as usize
    }

    #[inline]
    fn insert_place(&self, place: Place, inserted: usize) -> Result<(), InsertError> {
        if self.table.insert(place) {
            return Ok(());
        }
        let limit = self.max_copies();
        let kind = if self.table.count(place) as usize >= limit {
            InsertErrorKind::Copies { limit }
        } else {
            InsertErrorKind::CuckooFull {
                searched: SEARCHED,
                expected_keys: self.expected_keys,
            }
        };
        Err(InsertError { kind, inserted })
    }
}

/// Batches: the same answers as the single calls in order. In a filter beyond the caches the lines of many keys are fetched
/// ahead, all at once.
impl<S: KeyHasher> CuckooFilter<S> {
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        probe::contains(&self.table, hashes, |at, len, found| {
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        probe::contains(&self.table, hashes, |at, _, found| out[at / 64] = found);
    }

    /// Calls `each` with the position of every hash that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.absent_hashes(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn absent_hashes(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        probe::contains(&self.table, hashes, |at, len, found| {
            probe::each_absent(found, len, |i| each(at + i));
        });
    }

    /// Removes every hash, as [`remove_hash`](Self::remove_hash) does; returns how many were there.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.try_extend(0..1000u32)?;
    /// assert!(filter.contains(&999u32) && filter.len() == 1000);
    ///
    /// let full = filter.try_extend(1000u32..).unwrap_err();
    /// assert_eq!(1000 + full.inserted(), filter.len());
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
        probe::windows(&self.table, hashes, Purpose::Write, |at, places| {
            for (i, place) in places.iter().enumerate() {
                result = self.insert_place(*place, before + at + i);
                if result.is_err() {
                    return false;
                }
            }
            true
        });
        result
    }

    fn remove_each(&self, hashes: &[u64], mut each: impl FnMut(usize, bool)) {
        probe::windows(&self.table, hashes, Purpose::Write, |at, places| {
            for (i, place) in places.iter().enumerate() {
                each(at + i, self.table.remove(*place));
            }
            true
        });
    }
}

/// The whole filter.
impl<S> CuckooFilter<S> {
    /// Removes all keys. It takes `&mut self` because beside inserts nobody could say which of them survived.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let mut filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.insert("a")?;
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.table.store(0, core::iter::repeat(0));
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
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
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
            table: self.table.try_clone()?,
            hasher: self.hasher.clone(),
            expected_keys: self.expected_keys,
        })
    }

    /// A copy that can only be asked, and takes 6% to 19% less memory.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100_000).tag_bits(16).build()?;
    /// filter.try_extend(0..100_000u32)?;
    /// let compact = filter.to_compact()?;
    /// assert!((0..100_000u32).all(|key| compact.contains(&key)));
    /// assert!(compact.bits_per_key() < filter.bits_per_key() - 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_compact(&self) -> Result<CompactCuckoo<S>, BuildError>
    where
        S: Clone,
    {
        let _held = self.table.hold_all();
        CompactCuckoo::new(
            self.table.shape(),
            self.table.words(),
            self.hasher.clone(),
            self.expected_keys,
        )
    }
}

/// What the filter is, and how full. Figures from the tags read the whole filter: beside other threads, each bucket as it was at
/// some moment meanwhile, so that a tag that is moved may count twice or not at all.
impl<S> CuckooFilter<S> {
    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The number of slots, of which each holds one copy of a key: more than [`expected_keys`](Self::expected_keys), and than can
    /// be filled.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1_000_000).tag_bits(12).build()?;
    /// assert!((0.969..=0.97).contains(&(1e6 / filter.slots() as f64)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.table.buckets() * self.table.shape().slots as usize
    }

    /// How often one key can be inserted: as often as two buckets have slots, 12, 10 or 8, if no other key is in them.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).tag_bits(16).build()?;
    /// assert_eq!(filter.max_copies(), 8);
    /// (0..8).try_for_each(|_| filter.insert("a"))?;
    /// let error = filter.insert("a").unwrap_err();
    /// assert_eq!(error.to_string(), "the key is in the filter 8 times, which is as often as it can be");
    /// assert!(!error.is_full() && filter.count("a") == 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_copies(&self) -> usize {
        2 * self.table.shape().slots as usize
    }

    /// The length of a tag in bits: 10, 12 or 16.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::builder().expected_keys(1000).build()?.tag_bits(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn tag_bits(&self) -> usize {
        self.table.shape().tag_bits as usize
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1_000_000).tag_bits(12).build()?;
    /// assert!((13.1..13.25).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.expected_keys as f64
    }

    /// Bytes of memory that the buckets take, and the stripes beside them: at most 2 KiB, and not more than 1/256, or 8 bytes.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// assert_eq!(CuckooFilter::builder().memory_budget(1 << 20).build()?.memory_bytes(), 1 << 20);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    /// The number of keys in the filter, each as often as it was inserted and not removed. Reads the whole filter.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// filter.try_extend(["a", "b", "a"])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.occupied()
    }

    /// Whether there is no key in the filter. Reads the filter up to the first key.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(1000).build()?;
    /// assert!(filter.is_empty());
    /// filter.insert("a")?;
    /// assert!(!filter.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = self.table.words().all(|word| word == 0);
        crate::bits::acquire();
        empty
    }

    /// The fraction of the [slots](Self::slots) that hold a key. Reads the whole filter.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100_000).tag_bits(16).build()?;
    /// filter.try_extend(0..100_000u32)?;
    /// assert!((0.949..=0.95).contains(&filter.load()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn load(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// The false-positive rate to expect once `keys` keys are in (beyond the [slots](Self::slots), with all of them filled).
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100_000).build()?;
    /// assert!((0.0099..=0.01).contains(&filter.false_positive_rate_at(100_000)));
    /// assert!((0.0049..0.0051).contains(&filter.false_positive_rate_at(50_000)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let load = keys as f64 / self.slots() as f64;
        self.table.shape().rate_at(f64::min(load, 1.0))
    }

    /// The false-positive rate of the filter as it is, by the number of keys that are in it. Reads the whole filter.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.try_extend(0..100_000u32)?;
    /// assert!((0.0099..=0.01).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.table.shape().rate_at(self.load())
    }

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
}

/// A copy that holds every key whose insertion happened before, and that was not removed; moves and removals by other threads wait
/// meanwhile. Aborts where the memory is not to be had; [`try_clone`](CuckooFilter::try_clone) does not.
impl<S: Clone> Clone for CuckooFilter<S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<u64>(self.table.buckets());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// A summary; it reads the whole filter for the number of keys.
impl<S: fmt::Debug> fmt::Debug for CuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooFilter")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("tag_bits", &self.tag_bits())
            .field("hasher", &self.hasher)
            .field("len", &self.len())
            .field("slots", &self.slots())
            .finish_non_exhaustive()
    }
}
