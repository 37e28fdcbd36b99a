//! A pair of Bloom filters that can delete, once: [`TombstoneBloom`] has one for the keys that were added and one for those that were removed
//! since. A key is there if the first has it and the second has not.
//!
//! For keys that come once and go once, such as coupons or one-time tokens. Nothing is ever unset, so that it is as fast and as
//! lock-free as two [`ConcurrentBloom`]s, and pairs from several machines can be [united](TombstoneBloom::union_from) in any order (it is what the
//! literature calls a two-phase set).
//!
//! # Example
//!
//! ```
//! use lanebloom::TombstoneBloom;
//!
//! let coupons = TombstoneBloom::builder().expected_keys(10_000).build()?;
//! coupons.insert("SPRING-1");
//! coupons.insert("SPRING-2");
//! assert!(coupons.remove("SPRING-1"));
//! assert!(!coupons.remove("SPRING-1")); // used already
//! assert!(!coupons.contains("SPRING-1") && coupons.contains("SPRING-2"));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! # When not to use it
//!
//! - **A key that is there may be missing.** What the second filter takes for removed is not found: a false *negative*, at the rate that is chosen
//!   as [`false_negative_rate`](Builder::false_negative_rate), one key in a thousand by default. The first promise of all other filters
//!   here is not kept. It holds for ever, for the same keys: asking again does not help, and inserting again does not either.
//!   Where no key may be missing, take a [`CountingBloom`](crate::CountingBloom).
//! - **A removed key cannot come back.** To insert it again changes nothing.
//! - Keys come and go without end: both filters fill up, by what was ever added and what was ever removed, not by what is there. Beyond the
//!   expected numbers both rates rise, that of the false negatives too.
//!
//! # The rates
//!
//! With `fp` the rate of the first filter at the keys ever added, and `fn` that of the second at the keys ever removed:
//!
//! | a key that | is taken for present at the rate |
//! |---|---|
//! | was never added | `fp * (1 - fn)`: by mistake |
//! | was added | `1 - fn`; it is missing at the rate `fn` |
//! | was added and removed | never, from then on |
//!
//! The second filter knows a key by other bits of its hash than the first, so that the mistakes of one have nothing to do with those of the
//! other. To remove what was never added does harm at the rate `fp` only: there it takes another one of the second filter's places.
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency), with these differences:
//!
//! 1. **Once removed, absent.** If a remove of a key that found it happens before a lookup, the lookup answers false. A key whose insert happens before a
//!    lookup, and that nobody removes, is found, **but for the rate of false negatives**; and it does not go missing unless keys are removed.
//! 2. **Answers.** An insert answers true if this call changed the filter of the added. A remove answers true if the key was found there and this call
//!    changed the filter of the removed: of several threads that race to remove a key that is there, at least one gets true, and with one
//!    [word per key](Builder::words_per_key) exactly one, which makes it a claim: who gets it has the coupon.
//! 3. **Publication.** Who finds a key sees what its inserter had done before, who misses it because it was removed what its remover had.
//! 4. **The whole filter.** In a `clone`, a union and a [snapshot](crate::codec) of a live filter what was removed before is absent, and what was
//!    inserted before and is not removed meanwhile is there, but for the rate of false negatives.

mod snapshot;

use crate::batch::ones;
use crate::bits;
use crate::bulk::Source;
use crate::error::{BuildError, BuildErrorKind, IncompatibleError};
use crate::filter::concurrent::{self, ConcurrentBloom, HASHED_STRETCH, Keys, assert_bitmap_length};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use core::fmt;

/// A pair of lock-free Bloom filters, of keys added and of keys removed, for many threads at once.
///
/// Keys are any [`Funnel`] type; they are hashed by `S`, [`Murmur3`] unless chosen otherwise. All operations but
/// [`clear`](Self::clear) take `&self`: share it as `Arc<TombstoneBloom>`. **It has false negatives**, and a removed key cannot come back:
/// [the module](self) says more.
///
/// # Examples
///
/// ```
/// use lanebloom::TombstoneBloom;
/// use std::thread;
///
/// // With one word per key a remove is a claim.
/// let coupons = TombstoneBloom::builder().expected_keys(1000).words_per_key(1).build()?;
/// coupons.insert("SPRING");
/// let used: usize = thread::scope(|scope| {
///     let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| usize::from(coupons.remove("SPRING")))).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// assert_eq!(used, 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct TombstoneBloom<S = Murmur3> {
    added: ConcurrentBloom<S>,
    /// By hashes alone, and other ones: those of [`tombstone`].
    removed: ConcurrentBloom,
}

/// The hash by which the filter of the removed knows the key that the other knows by this one: a bijection, as good as another hash.
/// Were it the same, two keys that meet in one filter would meet in the other, and the rates would depend on each other.
///
/// (Two rounds of xor-shift and multiplication, with the constants of SplitMix64.)
#[inline(always)]
fn tombstone(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Sizes a [`TombstoneBloom`]; made by [`TombstoneBloom::builder`].
///
/// # Examples
///
/// ```
/// use lanebloom::TombstoneBloom;
///
/// // 10.2 bits for every key, 15.8 for every one that will be removed.
/// let all = TombstoneBloom::builder().expected_keys(100_000).build()?;
/// assert!((26.0..26.2).contains(&all.bits_per_key()));
///
/// let few = TombstoneBloom::builder().expected_keys(100_000).expected_removals(10_000).build()?;
/// assert!((11.8..12.0).contains(&few.bits_per_key()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    added: concurrent::Builder<S>,
    removed: concurrent::Builder,
    keys: usize,
    removals: Option<usize>,
}

impl TombstoneBloom {
    /// A builder with [`Murmur3`], seed 0, rates of 1% of false positives and 0.1% of false negatives.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!((filter.expected_keys(), filter.expected_removals()), (1000, 1000));
    /// assert!(filter.false_positive_rate_at(1000, 0) <= 0.01);
    /// assert!(filter.false_negative_rate_at(1000) <= 0.001);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            added: ConcurrentBloom::builder(),
            removed: ConcurrentBloom::builder().false_positive_rate(0.001),
            keys: 1,
            removals: None,
        }
    }
}

impl Builder {
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys, see [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.added = self.added.seed(seed);
        self
    }
}

impl<S: KeyHasher> Builder<S> {
    /// The number of distinct keys that are ever added, at which the rate of false positives is to hold. 0 means 1, and is the default.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(50_000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32));
    /// assert!(filter.current_false_positive_rate() < 0.011);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.keys = keys.max(1);
        self
    }

    /// The number of distinct keys that are ever removed, at which the rate of false negatives is to hold. 0 means 1; by default all expected
    /// keys.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(50_000).expected_removals(5000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32));
    /// filter.remove_batch(&Vec::from_iter(0..5000u32));
    /// assert!((0.0005..0.0015).contains(&filter.current_false_negative_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_removals(mut self, removals: usize) -> Self {
        self.removals = Some(removals.max(1));
        self
    }

    /// The chance that a key which was never added is taken for present, once the expected keys are in: between 0 and 1, both
    /// excluded. 0.01 by default.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).false_positive_rate(1e-6).build()?;
    /// assert!(filter.false_positive_rate_at(1000, 0) <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.added = self.added.false_positive_rate(rate);
        self
    }

    /// The chance that a key which is there is **not found**, once the expected removals are done: between 0 and 1, both excluded. 0.001 by default.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).false_negative_rate(1e-6).build()?;
    /// assert!(filter.false_negative_rate_at(1000) <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_negative_rate(mut self, rate: f64) -> Self {
        self.removed = self.removed.false_positive_rate(rate);
        self
    }

    /// How many 64-bit words of its line a key touches, in either filter: 1, 2, 4 or 8, as of
    /// [`ConcurrentBloom`](crate::Builder::words_per_key).
    ///
    /// With 1, an insert and a remove are claims: of those that race exactly one gets `true`.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let claims = TombstoneBloom::builder().expected_keys(100_000).words_per_key(1).build()?;
    /// assert!((36.0..36.5).contains(&claims.bits_per_key()));
    ///
    /// let wrong = TombstoneBloom::builder().expected_keys(1000).words_per_key(3).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "3 words per key is not 1, 2, 4 or 8");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.added = self.added.words_per_key(words);
        self.removed = self.removed.words_per_key(words);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says when to take which.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    /// use std::hash::RandomState;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).hasher(RandomState::new()).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: KeyHasher>(self, hasher: T) -> Builder<T> {
        Builder {
            added: self.added.hasher(hasher),
            removed: self.removed,
            keys: self.keys,
            removals: self.removals,
        }
    }

    /// Solves for the two layouts, which takes about a millisecond, and allocates them.
    ///
    /// # Errors
    ///
    /// Where a rate is not between 0 and 1, the words per key are not 1, 2, 4 or 8, a rate would take more than 128 bits per key, the size
    /// is beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 1344 + 1984);
    ///
    /// let error = TombstoneBloom::builder().expected_keys(1000).false_negative_rate(0.0).build().unwrap_err();
    /// assert_eq!(error.to_string(), "false-negative rate 0 is not between 0 and 1, both excluded");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<TombstoneBloom<S>, BuildError> {
        let removed = self.removed.expected_keys(self.removals.unwrap_or(self.keys)).build();
        Ok(TombstoneBloom {
            added: self.added.expected_keys(self.keys).build()?,
            removed: removed.map_err(|BuildError(kind)| {
                BuildError(match kind {
                    BuildErrorKind::Rate(rate) => BuildErrorKind::FalseNegativeRate { rate, limit: None },
                    BuildErrorKind::Unreachable { rate, limit, .. } => BuildErrorKind::FalseNegativeRate {
                        rate,
                        limit: Some(limit),
                    },
                    other => other,
                })
            })?,
        })
    }
}

/// Single operations.
impl<S: KeyHasher> TombstoneBloom<S> {
    /// Inserts `key`; returns whether this call changed the filter of the added: whether it was certainly never there before.
    ///
    /// A key that was removed does not come back. A new one may be [missing](self#when-not-to-use-it) all the same.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert("a"));
    /// filter.remove("a");
    /// assert!(!filter.insert("a"));
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be there, added and not removed. `true` may be a false positive; `false` is certain of a key that was removed, and of others
    /// but for the rate of false negatives.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire` that pairs with the inserts, `false` of a key that was removed in one that pairs with the removes.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64);
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Removes `key`, for good; returns whether it was there.
    ///
    /// `false` means that it was never added, and nothing was changed, or that it was removed before (or was taken for that). Where several
    /// threads race to remove a key, **at least** one gets `true`, and with one [word per key](Self::words_per_key) exactly one.
    ///
    /// # Memory ordering
    ///
    /// Sees what the inserter had done before, and is a `Release`: who misses the key sees what this thread did before. `false` of a key that was
    /// removed before ends in an `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert!(!filter.remove("a"));
    /// filter.insert("a");
    /// assert!(filter.remove("a"));
    /// assert!(!filter.remove("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// `insert(k)` is `insert_hash(hash(k))`: a caller may hash ahead, keep hashes, or send them.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.added.hash(key)
    }

    /// [`insert`](Self::insert) by hash. All 64 bits must be evenly distributed: those of a good hash function, not
    /// an id as it is.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.added.insert_hash(hash)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.added.contains_hash(hash) && !self.removed.contains_hash(tombstone(hash))
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.remove_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.added.contains_hash(hash) && self.removed.insert_hash(tombstone(hash))
    }
}

/// Batches: the same answers as the single calls in order, many keys at a time in vectors, with the lines fetched ahead. The second filter is
/// asked for what the first has found.
impl<S: KeyHasher> TombstoneBloom<S> {
    /// Inserts every hash; returns how many of them changed the filter of the added.
    ///
    /// A batch that is dense in the filter is inserted [in bulk](crate#inserting-in-bulk).
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> usize {
        self.added.insert_hashes(hashes)
    }

    /// [`insert_hashes`](Self::insert_hashes) that also writes for every hash whether it changed the filter of the added to the same place
    /// of `new`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        self.added.insert_hashes_flagged(hashes, new)
    }

    /// Removes every hash, for good; returns how many of them were there.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.insert_hashes(&hashes);
    /// assert_eq!(filter.remove_hashes(&hashes[..2]), 2);
    /// assert!(!filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
        self.remove_each(&hashes, |_, _| ())
    }

    /// [`remove_hashes`](Self::remove_hashes) that also writes for every hash whether it was there to the same place of `removed`. Of duplicates
    /// within the batch the first gets `true`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut removed = [false; 3];
    /// assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 1);
    /// assert_eq!(removed, [true, false, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.remove_each(&hashes, self.unpack_into(removed))
    }

    /// Writes for every hash whether it may be there to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.look_up_each(&hashes, self.unpack_into(out));
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        self.look_up_each(&hashes, copy_into(out));
    }

    /// Calls `each` with the position of every hash that is absent, in order.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.absent_hashes(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn absent_hashes(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.look_up_each(&hashes, absent(hashes.len(), each));
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.added.hash_batch(keys, out);
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes; returns how many changed the filter of the added.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.insert_batch(&[1u64, 2, 1]), 2);
    /// assert!(filter.contains(&2u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.added.insert_batch(keys)
    }

    /// [`insert_hashes_flagged`](Self::insert_hashes_flagged) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> usize {
        self.added.insert_batch_flagged(keys, new)
    }

    /// [`remove_hashes`](Self::remove_hashes) of the keys' hashes; returns how many were there.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b", "c"]);
    /// assert_eq!(filter.remove_batch(&["a", "b"]), 2);
    /// assert!(!filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.remove_each(&self.keys(keys), |_, _| ())
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b"]);
    /// let mut removed = [false; 3];
    /// assert_eq!(filter.remove_batch_flagged(&["b", "b", "a"], &mut removed), 2);
    /// assert_eq!(removed, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), removed.len());
        self.remove_each(&self.keys(keys), self.unpack_into(removed))
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.look_up_each(&self.keys(keys), self.unpack_into(out));
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        self.look_up_each(&self.keys(keys), copy_into(out));
    }

    /// [`absent_hashes`](Self::absent_hashes) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.absent_batch(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn absent_batch<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.look_up_each(&self.keys(keys), absent(keys.len(), each));
    }

    /// Looks hashes up; calls `each` with where a stretch of them begins and the bitmap of its answers.
    fn look_up_each(&self, source: &impl Source, each: impl FnMut(usize, &[u64])) {
        let is_there = |tombstones: &[u64], answers: &mut [u64]| {
            self.removed.contains_hashes_bitmap(tombstones, answers);
            for answers in answers {
                *answers = !*answers;
            }
        };
        self.ask_both(source, is_there, each);
    }

    /// Removes hashes; calls `each` as [`look_up_each`](Self::look_up_each) does. Returns how many were there.
    fn remove_each(&self, source: &impl Source, mut each: impl FnMut(usize, &[u64])) -> usize {
        let bury = |tombstones: &[u64], answers: &mut [u64]| {
            self.removed
                .kernels
                .insert_hashes(&self.removed.bits, tombstones, answers);
            bits::acquire();
        };
        let mut sum = 0;
        self.ask_both(source, bury, |at, bitmap| {
            sum += ones(bitmap);
            each(at, bitmap);
        });
        sum
    }

    /// Asks the filter of the added for all hashes, and `second` for the tombstones of those that it has; calls `each` with where a stretch
    /// begins and the bitmap of those for which both said yes.
    fn ask_both(&self, source: &impl Source, second: impl Fn(&[u64], &mut [u64]), mut each: impl FnMut(usize, &[u64])) {
        let mut at = 0;
        source.each(0..source.len(), |hashes| {
            for hashes in hashes.chunks(HASHED_STRETCH) {
                // To clear the space for a whole stretch takes longer than to work on a few keys.
                if hashes.len() <= 64 {
                    each(at, self.ask_stretch(hashes, &mut [0; 64], &mut [[0; 1]; 2], &second));
                } else {
                    let answers = &mut [[0; HASHED_STRETCH / 64]; 2];
                    each(at, self.ask_stretch(hashes, &mut [0; HASHED_STRETCH], answers, &second));
                }
                at += hashes.len();
            }
        });
    }

    /// [`ask_both`](Self::ask_both) of a stretch, with space for its tombstones and two bitmaps.
    fn ask_stretch<'a, const N: usize>(
        &self,
        hashes: &[u64],
        tombstones: &mut [u64],
        answers: &'a mut [[u64; N]; 2],
        second: impl Fn(&[u64], &mut [u64]),
    ) -> &'a [u64] {
        let [found, both] = answers;
        let found = &mut found[..hashes.len().div_ceil(64)];
        self.added.contains_hashes_bitmap(hashes, found);
        let mut count = 0;
        for_each_one(found, |i| {
            tombstones[count] = tombstone(hashes[i]);
            count += 1;
        });
        let both = &mut both[..count.div_ceil(64)];
        second(&tombstones[..count], both);
        let mut next = 0;
        for found in &mut *found {
            let mut left = *found;
            while left != 0 {
                if both[next / 64] >> (next % 64) & 1 == 0 {
                    *found &= !(left & left.wrapping_neg());
                }
                left &= left - 1;
                next += 1;
            }
        }
        found
    }

    /// Writes the bits of bitmaps to their places of `out`.
    fn unpack_into(&self, out: &mut [bool]) -> impl FnMut(usize, &[u64]) {
        move |at, bitmap| {
            let end = out.len().min(at + 64 * bitmap.len());
            self.added.kernels.unpack(bitmap, &mut out[at..end]);
        }
    }

    fn keys<'a, K: Funnel>(&'a self, keys: &'a [K]) -> Keys<'a, K, S> {
        Keys {
            hasher: &self.added.hasher,
            keys,
        }
    }
}

/// Writes bitmaps to their places of `out`. All but the last are of whole words.
fn copy_into(out: &mut [u64]) -> impl FnMut(usize, &[u64]) {
    move |at, bitmap| out[at / 64..][..bitmap.len()].copy_from_slice(bitmap)
}

/// Calls `each` with the position of every no among `len` answers.
fn absent(len: usize, mut each: impl FnMut(usize)) -> impl FnMut(usize, &[u64]) {
    move |at, bitmap| {
        for (at, word) in (at..).step_by(64).zip(bitmap) {
            let there = u64::MAX >> (64 - (len - at).min(64));
            for_each_one(&[!word & there], |i| each(at + i));
        }
    }
}

/// Calls `each` with the position of every yes.
fn for_each_one(bitmap: &[u64], mut each: impl FnMut(usize)) {
    for (at, &word) in (0..).step_by(64).zip(bitmap) {
        let mut left = word;
        while left != 0 {
            each(at + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// The whole filter.
impl<S: KeyHasher> TombstoneBloom<S> {
    /// Adds to this filter what was added to `other`, and removes what was removed there; returns whether that changed it. Both may be in use
    /// meanwhile.
    ///
    /// What was removed on either side before is absent here at every moment from the beginning on, and what was added is here after. Of what comes or
    /// goes there meanwhile, some may be.
    ///
    /// # Errors
    ///
    /// If a layout or the hasher (its algorithm, seed or key) differ; nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let all = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// let part = all.clone();
    /// all.insert("a");
    /// part.insert("a");
    /// part.insert("b");
    /// part.remove("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert!(all.contains("b") && !all.contains("a"));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.added.check_compatible(&other.added)?;
        // The removed ones first, or those that are new here would be found until their tombstones have come.
        let buried = self.removed.union_from(&other.removed)?;
        Ok(self.added.union_from(&other.added)? | buried)
    }

    /// Empties the filter, so that removed keys can come back too. It takes `&mut self` because beside inserts nobody could say which of them survived.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let mut filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.remove("a");
    /// filter.clear();
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// assert!(filter.insert("a") && filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
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
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.remove("a");
    /// assert!(filter.try_clone()? == filter);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        // The removed ones last, so that of the keys in the copy as few as can be are removed already.
        let added = self.added.try_clone()?;
        let removed = self.removed.try_clone()?;
        Ok(Self { added, removed })
    }
}

/// What the filter is, and how full. Figures from the bits read the whole filter: beside inserts and removes, each word as it was at
/// some moment meanwhile.
impl<S> TombstoneBloom<S> {
    /// The number of keys ever added that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// assert_eq!(TombstoneBloom::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.added.expected_keys()
    }

    /// The number of keys ever removed that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).expected_removals(10).build()?;
    /// assert_eq!(filter.expected_removals(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_removals(&self) -> usize {
        self.removed.expected_keys()
    }

    /// Bits of memory, of both filters, per expected key.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.bits_per_key(), filter.memory_bytes() as f64 * 8.0 / 1000.0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.expected_keys() as f64
    }

    /// The words of its line that a key touches in the filter of the removed, 1, 2, 4 or 8: with 1 a remove is a claim.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// assert_eq!(TombstoneBloom::builder().expected_keys(1000).build()?.words_per_key(), 4);
    /// assert_eq!(TombstoneBloom::builder().words_per_key(1).build()?.words_per_key(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.removed.words_per_key()
    }

    /// Bytes of memory that both filters take.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// assert_eq!(TombstoneBloom::builder().expected_keys(1).build()?.memory_bytes(), 128); // a line each
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    /// The fraction of the bits of both filters that are set.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..1000u32));
    /// let added = filter.fill_ratio();
    /// filter.remove_batch(&Vec::from_iter(0..1000u32));
    /// assert!(added > 0.1 && filter.fill_ratio() > 2.0 * added);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let added = self.added.fill_ratio() * self.added.memory_bytes() as f64;
        let removed = self.removed.fill_ratio() * self.removed.memory_bytes() as f64;
        (added + removed) / self.memory_bytes() as f64
    }

    /// An estimate of the number of distinct keys that are there: of those added, less those removed.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(100_000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32));
    /// filter.remove_batch(&Vec::from_iter(0..10_000u32));
    /// assert!(filter.estimated_len().abs_diff(40_000) < 1000);
    /// assert!(filter.estimated_removals().abs_diff(10_000) < 200);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        // The added ones last: beside removes of keys that were just added, rather too many than too few.
        let removed = self.estimated_removals();
        self.added.estimated_len().saturating_sub(removed)
    }

    /// An estimate of the number of distinct keys that were removed.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert_eq!(filter.estimated_removals(), 0);
    /// filter.remove("a");
    /// assert_eq!(filter.estimated_removals(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn estimated_removals(&self) -> usize {
        self.removed.estimated_len()
    }

    /// The rate to expect, once `keys` distinct keys were added and `removals` of them removed, at which keys are taken for present that never
    /// were. From the model that the filter was sized by.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(100_000).build()?;
    /// assert!((0.0099..0.01).contains(&filter.false_positive_rate_at(100_000, 0)));
    /// assert!(filter.false_positive_rate_at(200_000, 0) > 0.05);
    /// assert!(filter.false_positive_rate_at(200_000, 10_000_000) < 0.001); // nearly all that is asked for counts as removed
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize, removals: usize) -> f64 {
        self.added.false_positive_rate_at(keys) * (1.0 - self.false_negative_rate_at(removals))
    }

    /// The rate to expect, once `removals` distinct keys were removed, at which keys that are there are **not found**.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.false_negative_rate_at(0), 0.0);
    /// assert!((0.00099..0.001).contains(&filter.false_negative_rate_at(100_000)));
    /// assert!(filter.false_negative_rate_at(200_000) > 0.01);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_negative_rate_at(&self, removals: usize) -> f64 {
        self.removed.false_positive_rate_at(removals)
    }

    /// The false-positive rate of the filter as it is: the chance, given its bits, that a random hash is taken for present.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_batch(&Vec::from_iter(0..100_000u32));
    /// assert!((0.0095..0.0105).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.added.current_false_positive_rate() * (1.0 - self.current_false_negative_rate())
    }

    /// The rate, given the bits, at which keys that are there are **not found**.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(100_000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..100_000u32));
    /// assert_eq!(filter.current_false_negative_rate(), 0.0);
    /// filter.remove_batch(&Vec::from_iter(0..50_000u32));
    /// let there = (50_000..100_000u32).filter(|key| filter.contains(key)).count();
    /// assert!(50_000 - there < 50_000 / 1000);
    /// assert!((1e-6..1e-3).contains(&filter.current_false_negative_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn current_false_negative_rate(&self) -> f64 {
        self.removed.current_false_positive_rate()
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::TombstoneBloom;
    ///
    /// let filter = TombstoneBloom::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        self.added.hasher()
    }
}

/// A copy, of the added first and then of the removed: what was removed before is absent in it. Aborts where the memory is not to be had;
/// [`try_clone`](TombstoneBloom::try_clone) does not.
impl<S: KeyHasher + Clone> Clone for TombstoneBloom<S> {
    fn clone(&self) -> Self {
        let added = self.added.clone();
        let removed = self.removed.clone();
        Self { added, removed }
    }
}

/// Same layouts, same hasher and same bits. Beside inserts and removes, each word is compared as it was at some moment meanwhile.
impl<S: KeyHasher> PartialEq for TombstoneBloom<S> {
    fn eq(&self, other: &Self) -> bool {
        self.added == other.added && self.removed == other.removed
    }
}

/// A summary; it reads the whole filter for the fill.
impl<S: fmt::Debug> fmt::Debug for TombstoneBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TombstoneBloom")
            .field("added", &self.added)
            .field("removed", &self.removed)
            .finish()
    }
}

/// Inserts the keys in batches. For `&TombstoneBloom` too, so that a shared filter can be extended.
///
/// ```
/// use lanebloom::TombstoneBloom;
///
/// let mut filter = TombstoneBloom::builder().expected_keys(1000).build()?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32) && !filter.contains(&10u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, S: KeyHasher> Extend<K> for TombstoneBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.added.extend(keys);
    }
}

impl<K: Funnel, S: KeyHasher> Extend<K> for &TombstoneBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&self.added).extend(keys);
    }
}
