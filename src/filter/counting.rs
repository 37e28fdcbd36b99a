//! A Bloom filter that can delete: [`CountingBloom`] counts, in 4 bits each, how many of its keys have a place in common, so that a key can be
//! taken out again. As lock-free as [`ConcurrentBloom`](crate::ConcurrentBloom), with the same lookups, for four times the memory.
//!
//! For coupons that are used, sessions that end, rows that are deleted. Where keys only come, take a `ConcurrentBloom`.
//!
//! # Example
//!
//! ```
//! use lanebloom::CountingBloom;
//!
//! let sessions = CountingBloom::builder().expected_keys(100_000).build()?;
//! assert!(sessions.insert("ann"));
//! assert!(sessions.insert("bob"));
//! assert!(sessions.remove("ann"));
//! assert!(!sessions.contains("ann") && sessions.contains("bob"));
//! assert!(!sessions.remove("ann")); // not there any more
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! # Remove only what you inserted
//!
//! Every remove must be of a key that is in the filter, by an insert that happened before it and that no other remove is for. Then there
//! are no false negatives. Of a key that is not there a remove answers `false` and changes nothing, **unless the filter takes it for present**,
//! at the false-positive rate: then it takes from the counters of other keys, and those may be missing from then on. No filter without
//! the keys themselves can tell the difference.
//!
//! So ask the source of truth first, and let the one who changed it remove: whoever marked the coupon as used in the database, once. Of
//! threads that race to [remove](CountingBloom::remove) a key that is there once, exactly one gets `true`; but that too is true only
//! if the key is no false positive without it.
//!
//! # Keys that are inserted several times
//!
//! are to be removed as many times. That ends at 15: a counter that reaches 15, by one key or by several, stays there for good ("stuck"), and
//! of the keys that have it nothing is lost but the means to be deleted in full. A key whose counters are all stuck, inserted 15
//! times or more, is found for ever. [`stuck_counters`](CountingBloom::stuck_counters) says how many there are; of distinct keys, at the
//! expected number of them, a counter gets there with a chance of about 1e-15.
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency), with these differences:
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and the remove that is for this insert does not happen
//!    before the end of the lookup, nor run beside it, the lookup answers true: whatever other keys, and other inserts and removes of this
//!    one, do meanwhile. As long as nobody removes what was not inserted (above).
//! 2. **Answers.** An insert answers true if one of the key's counters was 0: then the key was certainly not there. Of several threads
//!    that race to insert a new key at least one gets true, and with one [word per key](Builder::words_per_key) exactly one. A remove
//!    answers whether the key was there (or was taken for it), and of several that race for a key that is there once exactly one gets true.
//! 3. **Publication.** Who finds a key, inserts or removes it sees what those had done before who inserted it, and an insert or remove that
//!    answered true also what those had done who inserted or removed keys in the same words.
//! 4. **Lock-freedom.** An insert or remove is one compare-exchange per word; it is tried again only where another thread's has
//!    succeeded meanwhile. Nothing allocates.
//! 5. **The whole filter beside changes.** [`union_from`](CountingBloom::union_from), `clone`, [snapshots](crate::codec) and comparison take each
//!    word as it is at some moment. A key whose insert happened before and whose remove had not begun is in it. Of a key that comes or goes at that
//!    moment some counters may be, which then stay too high by one: false positives, never false negatives.
//!
//! **With one word per key** each insert and each remove is one atomic step, so that all answers are as if they had come one after another.
//! With several that holds but for removes of keys that are not there and are taken for present in some of their words: while such a
//! remove races with others it may take from some counters and give back, and other keys that share them can be missing for that moment.
//!
//! # Cost
//!
//! Bits of memory per key, 4 for each counter, with the words per key that the builder chooses by itself and with one:
//!
//! | rate | 10% | 3% | 1% | 0.1% | 1e-4 | 1e-5 |
//! |---|---|---|---|---|---|---|
//! | textbook counting filter | 19.2 | 29.2 | 38.3 | 57.5 | 76.7 | 95.9 |
//! | here | 20.5 | 33.4 | 45.9 | 79.3 | 136 | 227 |
//! | words per key | 2 | 2 | 4 | 4 | 4 | 4 |
//! | with one word per key | 23.1 | 46.3 | 83.5 | 302 | | |
//!
//! All counters of a key lie in one cache line, which is why it is more than the textbook's: a line of 128 counters holds 11 keys at 1%, and
//! their number varies from line to line. (Half of them in each of two lines would take 40.2 bits at 1% and 62.3 at 0.1%, and a
//! second miss of the cache in every operation.)

mod snapshot;

use crate::bits;
use crate::bulk::{self, Answer, Source};
use crate::counters::{self, CounterLines, Counters};
use crate::error::{BuildError, IncompatibleError, IncompatibleErrorKind};
use crate::filter::concurrent::{HASHED_STRETCH, Keys, gathered};
use crate::filter::lookup::Lookup;
use crate::funnel::Funnel;
use crate::hash::{self, KeyHasher, Murmur3, assert_same_length};
use crate::simd::{CounterBatch, CounterKernels, Isa};
use crate::sizing::{Cell, LINE_BITS, LINE_BYTES, Layout, Request};
use core::fmt;

/// A lock-free counting Bloom filter, for many threads to fill, to ask and to remove from at once.
///
/// Keys are any [`Funnel`] type; they are hashed by `S`, [`Murmur3`] unless chosen otherwise. All operations but
/// [`clear`](Self::clear) take `&self`: share it as `Arc<CountingBloom>`. What threads may rely on, and what not to remove, is
/// in [the module](self).
///
/// # Examples
///
/// ```
/// use lanebloom::CountingBloom;
/// use std::thread;
///
/// let live = CountingBloom::builder().expected_keys(10_000).build()?;
/// live.insert("always there");
/// thread::scope(|scope| {
///     for worker in 0..4u32 {
///         let live = &live;
///         scope.spawn(move || {
///             for i in 0..1000u32 {
///                 live.insert(&(worker, i));
///                 assert!(live.contains(&(worker, i)) && live.contains("always there"));
///                 assert!(live.remove(&(worker, i)));
///             }
///         });
///     }
/// });
/// assert_eq!(live.estimated_len(), 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias = "CountingBloomFilter")]
pub struct CountingBloom<S = Murmur3> {
    counters: CounterLines,
    kernels: &'static CounterKernels,
    hasher: S,
    layout: Layout,
    expected_keys: usize,
}

/// Sizes a [`CountingBloom`]; made by [`CountingBloom::builder`].
///
/// What follows from expected keys, rate and budget is as in the [builder](crate::Builder) of the filter of bits.
///
/// # Examples
///
/// ```
/// use lanebloom::CountingBloom;
///
/// let filter = CountingBloom::builder().expected_keys(1_000_000).false_positive_rate(1e-3).build()?;
/// assert!((79.0..80.0).contains(&filter.bits_per_key()));
///
/// let filter = CountingBloom::builder().memory_budget(1 << 20).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// assert!((180_000..185_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    request: Request,
    hasher: S,
}

impl CountingBloom {
    /// A builder with [`Murmur3`], seed 0.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            request: Request {
                cell: Cell::Counter,
                ..Request::default()
            },
            hasher: Murmur3::default(),
        }
    }
}

impl Builder {
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys, see [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S: KeyHasher> Builder<S> {
    /// The number of distinct keys, in the filter at one time, at which the false-positive rate is to hold. 0 means 1.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(5000).build()?;
    /// for day in 0..10u32 {
    ///     filter.insert_batch(&Vec::from_iter((0..5000u32).map(|key| (day, key))));
    ///     assert!((0.008..0.012).contains(&filter.current_false_positive_rate()));
    ///     filter.remove_batch(&Vec::from_iter((0..5000u32).map(|key| (day, key))));
    /// }
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.request.keys = Some(keys);
        self
    }

    /// The chance that a key which is not there is taken for one that is, once the expected keys are in: between 0 and 1, both
    /// excluded. 0.01 by default.
    ///
    /// It is also the chance that a remove of a key which is not there does harm.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).false_positive_rate(1e-5).build()?;
    /// assert!(filter.false_positive_rate_at(1000) <= 1e-5);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// The most memory that the counters may take, in bytes: at least one line of 64.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().memory_budget(10_000).expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
    /// assert!(filter.false_positive_rate_at(1000) < 1e-3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// How many 64-bit words of its line a key has counters in: 1, 2, 4 or 8.
    ///
    /// Each word is one atomic operation of an insert and of a remove. Left open, the fewest are taken whose memory is within 6% of
    /// the least: 2 at 10% and 3%, 4 from 1% to 1e-5. With 1 every insert and remove is one atomic step, at the price in memory
    /// that [the module](self#cost) tells; with 2 a filter for 1% takes 49.8 bits per key instead of 45.9.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let steps = CountingBloom::builder().expected_keys(1000).false_positive_rate(0.1).words_per_key(1).build()?;
    /// assert_eq!(steps.words_per_key(), 1);
    ///
    /// let wrong = CountingBloom::builder().expected_keys(1000).words_per_key(3).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "3 words per key is not 1, 2, 4 or 8");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says when to take which.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    /// use std::hash::RandomState;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).hasher(RandomState::new()).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: KeyHasher>(self, hasher: T) -> Builder<T> {
        Builder {
            request: self.request,
            hasher,
        }
    }

    /// Solves for the layout, which takes about half a millisecond, and allocates it.
    ///
    /// # Errors
    ///
    /// Where neither keys nor budget were given, the rate is not between 0 and 1, the words per key are not 1,
    /// 2, 4 or 8, the rate would take more than 512 bits per key, the budget is below one line or below
    /// what keys and rate need, the size is beyond addressable memory, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 5760);
    ///
    /// let error = CountingBloom::builder().expected_keys(1000).false_positive_rate(1e-9).build().unwrap_err();
    /// assert_eq!(error.to_string(), "a false-positive rate of 1e-9 takes more than the limit of 512 bits per key");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<CountingBloom<S>, BuildError> {
        let (layout, expected_keys) = self.request.solve()?;
        Ok(CountingBloom {
            counters: CounterLines::new(layout.blocks)?,
            kernels: CounterKernels::of(layout, Isa::detect()),
            hasher: self.hasher,
            layout,
            expected_keys,
        })
    }
}

/// Single operations.
impl<S: KeyHasher> CountingBloom<S> {
    /// Inserts `key`; returns whether it was certainly not there before.
    ///
    /// A key that is inserted several times is to be removed as many times. `false` means that it was there, or that it was taken for one that
    /// was: a false positive. It is counted in either case. Where several threads race to insert a key that the filter does not hold, **at
    /// least** one of them gets `true`, and with one [word per key](Self::words_per_key) exactly one. (Other keys that are inserted
    /// in the same moment can turn it into a false positive for all of them.)
    ///
    /// # Memory ordering
    ///
    /// `AcqRel`: what this thread did before is visible to whoever finds the key, and what those did before who changed the same words is
    /// visible after.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.remove("a") && filter.contains("a")); // once more
    /// assert!(filter.remove("a") && !filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before, and whose remove has not begun.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`: everything that the threads which inserted the key had done before is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
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

    /// Removes `key`, one insert of it; returns whether it was there.
    ///
    /// `false` means that it certainly was not, and that nothing was changed. **Remove only keys that were inserted before**, each as often as
    /// it was: what the filter merely takes for present is taken from other keys' counters, [the module](self) says more. Where
    /// several threads race to remove a key that is there once, exactly one of them gets `true`, with the same reservation.
    ///
    /// # Memory ordering
    ///
    /// `AcqRel` where it is `true`, as of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.insert("b");
    /// assert!(filter.remove("a"));
    /// assert!(!filter.remove("a"));
    /// assert!(!filter.contains("a") && filter.contains("b"));
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    /// [`insert`](Self::insert) by hash. All 64 bits must be evenly distributed: those of a good hash function, not
    /// an id as it is.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.kernels.insert(self.counters.shared(), hash)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let found = self.kernels.lookups().contains(self.counters.shared(), hash);
        bits::acquire_if(found);
        found
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.remove_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.remove_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.kernels.remove(self.counters.shared(), hash)
    }
}

/// Batches: the same answers as the single calls in order. Lines are fetched ahead, and lookups are done many at a time in vectors.
impl<S: KeyHasher> CountingBloom<S> {
    /// Inserts every hash; returns how many of them were certainly not there before.
    ///
    /// Results are those of [`insert_hash`](Self::insert_hash) in order, duplicates within the batch included.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> usize {
        self.change(CounterKernels::insert_hashes, &hashes, None)
    }

    /// [`insert_hashes`](Self::insert_hashes) that also writes for every hash whether it was new to the same place of `new`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), new.len());
        self.change(CounterKernels::insert_hashes, &hashes, Some(&mut self.unpack_into(new)))
    }

    /// Removes every hash, one insert of each; returns how many of them were there.
    ///
    /// Results are those of [`remove_hash`](Self::remove_hash) in order, duplicates within the batch included; so is what must not be removed.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "c"].map(|key| filter.hash(key));
    /// filter.insert_hashes(&hashes);
    /// assert_eq!(filter.remove_hashes(&hashes[..2]), 2);
    /// assert!(!filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64]) -> usize {
        self.change(CounterKernels::remove_hashes, &hashes, None)
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut removed = [false; 3];
    /// assert_eq!(filter.remove_hashes_flagged(&hashes, &mut removed), 1);
    /// assert_eq!(removed, [true, false, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.change(
            CounterKernels::remove_hashes,
            &hashes,
            Some(&mut self.unpack_into(removed)),
        )
    }

    /// Writes for every hash whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls; there is one `Acquire` for many keys, before any of their answers is given out.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        self.lookup().contains_hashes(hashes, out);
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        self.lookup().contains_hashes_bitmap(hashes, out);
    }

    /// Calls `each` with the position of every hash that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.absent_hashes(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn absent_hashes(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.lookup().absent_hashes(hashes, each);
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes; returns how many were new.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.insert_batch(&[1u64, 2, 1]), 2);
    /// assert_eq!(filter.insert_batch(&["a", "b"]), 2);
    /// assert!(filter.contains(&2u64) && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.change(CounterKernels::insert_hashes, &self.keys(keys), None)
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> usize {
        assert_same_length(keys.len(), new.len());
        let unpack = &mut self.unpack_into(new);
        self.change(CounterKernels::insert_hashes, &self.keys(keys), Some(unpack))
    }

    /// [`remove_hashes`](Self::remove_hashes) of the keys' hashes; returns how many were there.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b", "c"]);
    /// assert_eq!(filter.remove_batch(&["a", "b"]), 2);
    /// assert!(!filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.change(CounterKernels::remove_hashes, &self.keys(keys), None)
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b"]);
    /// let mut removed = [false; 3];
    /// assert_eq!(filter.remove_batch_flagged(&["b", "b", "a"], &mut removed), 2);
    /// assert_eq!(removed, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), removed.len());
        let unpack = &mut self.unpack_into(removed);
        self.change(CounterKernels::remove_hashes, &self.keys(keys), Some(unpack))
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        self.lookup().contains_batch(keys, out);
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.lookup().contains_batch_bitmap(keys, out);
    }

    /// [`absent_hashes`](Self::absent_hashes) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.absent_batch(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn absent_batch<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.lookup().absent_batch(keys, each);
    }

    /// Inserts hashes, or removes them; of how many the answer was yes.
    fn change(&self, kernel: CounterBatch, source: &impl Source, mut answer: Answer<'_>) -> usize {
        bulk::in_stretches(source, &mut answer, |hashes, bitmap| {
            kernel(self.kernels, self.counters.shared(), hashes, bitmap);
        })
    }

    /// Writes the bits of bitmaps to their places of `out`.
    fn unpack_into(&self, out: &mut [bool]) -> impl FnMut(usize, &[u64]) {
        move |at, bitmap| {
            let end = out.len().min(at + 64 * bitmap.len());
            self.kernels.lookups().unpack(bitmap, &mut out[at..end]);
        }
    }

    fn keys<'a, K: Funnel>(&'a self, keys: &'a [K]) -> Keys<'a, K, S> {
        Keys {
            hasher: &self.hasher,
            keys,
        }
    }

    /// What answers a batch of lookups.
    fn lookup(&self) -> Lookup<'_, Counters, S> {
        Lookup {
            lines: self.counters.shared(),
            lookups: self.kernels.lookups(),
            hasher: &self.hasher,
        }
    }
}

/// The whole filter.
impl<S: KeyHasher> CountingBloom<S> {
    /// Adds every key of `other` to this filter, as often as it is there; returns whether that changed any counter. Both may be in
    /// use meanwhile.
    ///
    /// Counters are added, up to 15 each, where they stick. Everything that was inserted into `other` before, and not removed before the
    /// end, is in this filter after, to be removed from it as any other key. Of what comes or goes there meanwhile some counters may
    /// be added: such a key can be a false positive here, and **must not be removed** here.
    ///
    /// # Errors
    ///
    /// If layout or hasher (its algorithm, seed or key) differ; nothing is changed then.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s counters and `AcqRel` on these: who finds a key here sees what its inserter there had done before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let all = CountingBloom::builder().expected_keys(1000).build()?;
    /// let part = all.clone();
    /// all.insert("a");
    /// part.insert("a");
    /// part.insert("b");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert!(all.contains("b"));
    /// assert!(all.remove("a") && all.remove("a") && !all.remove("a")); // both
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        if self.layout != other.layout {
            let kind = IncompatibleErrorKind::Layout {
                ours: self.layout,
                theirs: other.layout,
            };
            return Err(IncompatibleError(kind));
        }
        if hash::print(&self.hasher) != hash::print(&other.hasher) {
            return Err(IncompatibleError(IncompatibleErrorKind::Hasher));
        }
        Ok(self.counters.add_from(&other.counters))
    }

    /// Removes all keys, and what is stuck. It takes `&mut self` because beside inserts nobody could say which of them survived.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let mut filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.clear();
    /// assert!(!filter.contains("a"));
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.counters.clear();
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
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.try_clone()? == filter);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let counters = self.counters.try_clone()?;
        Ok(Self {
            counters,
            hasher: self.hasher.clone(),
            ..*self
        })
    }
}

/// What the filter is, and how full. Figures from the counters read the whole filter: beside changes, each word as it was at
/// some moment meanwhile.
impl<S> CountingBloom<S> {
    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// assert_eq!(CountingBloom::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1_000_000).build()?;
    /// assert!((45.8..46.0).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.layout.blocks as f64 * LINE_BITS as f64 / self.expected_keys as f64
    }

    /// The words of its line that a key has counters in: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// assert_eq!(CountingBloom::builder().expected_keys(1000).build()?.words_per_key(), 4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.layout.shape.words
    }

    /// The counters that a key throws in each of its words, of 16 (two throws may hit the same one, which then counts once).
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// assert_eq!(CountingBloom::builder().expected_keys(1000).build()?.counters_per_word(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn counters_per_word(&self) -> usize {
        self.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// assert_eq!(CountingBloom::builder().memory_budget(1 << 20).build()?.blocks(), 1 << 14);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.layout.blocks
    }

    /// Bytes of memory that the counters take.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// assert_eq!(CountingBloom::builder().memory_budget(1 << 20).build()?.memory_bytes(), 1 << 20);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.layout.blocks * LINE_BYTES
    }

    /// The fraction of the counters that are above 0. At the expected keys it is a little below one half.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..1000u32));
    /// assert!((0.4..0.5).contains(&filter.fill_ratio()));
    /// filter.remove_batch(&Vec::from_iter(0..1000u32));
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        // All bits of the counters above 0.
        let ones = self.counters.shared().ones();
        bits::acquire();
        ones as f64 / (self.layout.blocks * LINE_BITS) as f64
    }

    /// How many counters are stuck at 15, never to be lowered again.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().memory_budget(64).build()?;
    /// filter.insert_batch(&["a"; 14]);
    /// assert_eq!(filter.stuck_counters(), 0);
    /// filter.insert("a");
    /// assert!(filter.stuck_counters() > 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stuck_counters(&self) -> usize {
        self.sum(counters::stuck_in) as usize
    }

    /// An estimate of the number of keys that are there, from what all counters add up to: a key that was inserted twice counts twice.
    ///
    /// Its relative standard error for `n` distinct keys is `0.06 / sqrt(n)` at 1% and below `0.2 / sqrt(n)` at any rate, because two throws
    /// of a key may hit the same counter. A stuck counter says 15, whatever it should be.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(100_000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32));
    /// filter.remove_batch(&Vec::from_iter(0..10_000u32));
    /// assert!(filter.estimated_len().abs_diff(40_000) < 150);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        (self.sum(counters::total) as f64 / self.layout.counters_per_key() + 0.5) as usize
    }

    /// The false-positive rate to expect once `keys` distinct keys are there, from the model that the filter was sized by.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(100_000).build()?;
    /// assert!(filter.false_positive_rate_at(100_000) <= 0.01);
    /// assert!(filter.false_positive_rate_at(200_000) > 0.05);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_of(Cell::Counter, keys)
    }

    /// The false-positive rate of the filter as it is: the exact chance, given its counters, that a random hash is
    /// taken for present.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_batch(&Vec::from_iter(0..100_000u32));
    /// assert!((0.0095..0.0105).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        // Of a word whose counters above 0 have all their bits, the fraction of the bits is that of the counters.
        let rate = self.layout.mean_rate(self.counters.shared().words());
        bits::acquire();
        rate
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// What `of` says of the words, added up.
    fn sum(&self, of: impl Fn(u64) -> u64) -> u64 {
        let sum = self.counters.words().map(of).sum();
        bits::acquire();
        sum
    }
}

/// A copy that holds every key whose insertion happened before, and whose remove had not begun. Aborts where the memory is not to be had;
/// [`try_clone`](CountingBloom::try_clone) does not.
impl<S: KeyHasher + Clone> Clone for CountingBloom<S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<[u64; 8]>(self.layout.blocks);
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// Same layout, same hasher and same counters. Beside changes, each word is compared as it was at some moment meanwhile.
impl<S: KeyHasher> PartialEq for CountingBloom<S> {
    fn eq(&self, other: &Self) -> bool {
        let same = self.layout == other.layout
            && hash::print(&self.hasher) == hash::print(&other.hasher)
            && self.counters.words().eq(other.counters.words());
        bits::acquire();
        same
    }
}

/// A summary; it reads the whole filter for the fill.
impl<S: fmt::Debug> fmt::Debug for CountingBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingBloom")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("words_per_key", &self.words_per_key())
            .field("counters_per_word", &self.counters_per_word())
            .field("hasher", &self.hasher)
            .field("fill_ratio", &self.fill_ratio())
            .field("stuck_counters", &self.stuck_counters())
            .finish_non_exhaustive()
    }
}

/// Inserts the keys in batches. For `&CountingBloom` too, so that a shared filter can be extended.
///
/// ```
/// use lanebloom::CountingBloom;
///
/// let mut filter = CountingBloom::builder().expected_keys(1000).build()?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32) && !filter.contains(&10u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, S: KeyHasher> Extend<K> for CountingBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl<K: Funnel, S: KeyHasher> Extend<K> for &CountingBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        gathered::<HASHED_STRETCH, _>(keys.into_iter().map(|key| self.hash(&key)), |hashes| {
            self.insert_hashes(hashes);
        });
    }
}
