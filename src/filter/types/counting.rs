//! A Bloom filter that can delete: [`CountingBloom`] has counters of 4 bits in place of bits. A
//! counter says how many keys share it, so that a key can be removed again. The filter is as
//! lock-free as [`ConcurrentBloom`](crate::ConcurrentBloom), with the same lookups, for four times
//! the memory.
//!
//! Use it for coupons that are used, sessions that end, rows that are deleted. If keys are never
//! removed, use a `ConcurrentBloom`.
//!
//! # Remove only what you inserted
//!
//! Every remove must have its own insert: the insert happened before the remove, and no other
//! remove belongs to it. Then there are no false negatives. If the key is not in the filter, a
//! remove returns `false` and changes nothing, **unless the filter takes it for present**, at the
//! false-positive rate. Then the remove decrements the counters of other keys, and those may be
//! missing from then on. No filter without the keys themselves can tell the difference.
//!
//! So ask the source of truth first. Let only the thread that changed it remove the key: for
//! example, the thread that marked the coupon as used in the database. If several threads race to
//! [remove](Filter::remove) a key that is there once, exactly one gets `true`. That too holds only
//! if the key is not a false positive without that insert.
//!
//! # Keys that are inserted several times
//!
//! Remove such a key as many times. The limit is 15. A counter that reaches 15, by one key or by
//! several, stays there for good ("stuck"). Its keys can no longer be removed in full. A key whose
//! counters are all stuck, inserted 15 times or more, is found for ever.
//! [`stuck_counters`](CountingBloom::stuck_counters) returns the number of stuck counters. With the
//! expected number of distinct keys, a counter gets stuck with a chance of about 1e-15.
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency), with these differences:
//!
//! 1. **No false negatives.** A lookup returns true if an insert of the key happens before it, and
//!    the remove that belongs to this insert neither happens before the end of the lookup nor runs
//!    beside it. Other keys, and other inserts and removes of this key, may come and go meanwhile.
//!    The promise requires that only inserted keys are removed (above).
//! 2. **Answers.** An insert returns true if one of the key's counters was 0: then the key was
//!    certainly not there. If several threads race to insert a new key, at least one gets true;
//!    with one [word per key](Builder::words_per_key), exactly one does. A remove returns whether
//!    the key was there (or was taken for it). If several threads race to remove a key that is
//!    there once, exactly one gets true.
//! 3. **Publication.** A thread that finds, inserts or removes a key sees what the key's inserters
//!    had done before. If its insert or remove returned true, the thread also sees what other
//!    threads had done before they inserted or removed keys in the same words.
//! 4. **Lock-freedom.** An insert or remove is one compare-exchange per word. It retries only if
//!    another thread's compare-exchange has succeeded meanwhile. Nothing allocates.
//! 5. **The whole filter beside changes.** [`union_from`](Filter::union_from), `clone`,
//!    [snapshots](crate::codec) and comparison take each word as it is at some moment. They include
//!    every key whose insert happened before and whose remove had not begun. If a key comes or goes
//!    at that moment, they may include some of its counters, which then stay too high by one. That
//!    causes false positives, never false negatives.
//!
//! **With one word per key** each insert and each remove is one atomic step: all answers are as if
//! the operations had come one after another. With several words there is one exception: the remove
//! of a key that is not there but is taken for present in some of its words. While such a remove
//! races with others, it may decrement some counters and increment them again. Other keys that
//! share these counters can be missing for that moment.
//!
//! # Cost
//!
//! 43.5 bits of memory per key at 1%, and 83.5 with one word per key:
//! [the table](crate::docs::cost#memory) has other rates.

use crate::answers::Answers;
use crate::chunks::{Answer, Source, answered};
use crate::codec::Kind;
use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::methods::inserts::into_ok;
use crate::filter::parts::lines::{LineWords, OwnWords};
use crate::filter::traits::{Insert, Remove};
use crate::filter::types::bloom::Bloom;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::sizing::Unit;
use crate::hash::Murmur3;
use crate::kernel::{CounterChange, CounterKernels, Isa, Lookups};
use crate::key::Key;
use crate::words::bits::{self, Lines};
use crate::words::counters::{self, CounterLines, Counters};
use core::convert::Infallible;
use core::fmt;

/// A lock-free counting Bloom filter. Many threads can insert, look up and remove at once.
///
/// An insert returns `true` if the key was certainly not there, and `false` if it was, or by
/// chance. It counts the key in both cases: a key that was inserted twice takes two removes.
/// **Remove only what was inserted.**
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] says what all filters share,
/// [batches and hashes](Filter#batches) too. [The module](self) has the promises to threads, and
/// says which keys must not be removed.
///
/// ```
/// let live = &lanebloom::CountingBloom::with_capacity(10_000, 0.01)?;
/// live.insert("always there");
/// std::thread::scope(|scope| {
///     for worker in 0..4u32 {
///         scope.spawn(move || {
///             (0..1000u32).for_each(|i| _ = live.insert(&(worker, i)));
///             assert!((0..1000u32).all(|i| live.remove(&(worker, i))));
///         });
///     }
/// });
/// assert!(live.contains("always there") && live.statistics().len == 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias = "CountingBloomFilter")]
pub type CountingBloom<S = Murmur3> = Filter<Counting, S>;

/// The engine of [`CountingBloom`]: counters of 4 bits in lines of 64 bytes.
pub type Counting = Bloom<BloomCounters>;

/// Counters, and the kernels that change them and look them up.
#[doc(hidden)]
pub struct BloomCounters {
    counters: CounterLines,
    kernels: CounterKernels,
}

/// Sizes a [`CountingBloom`]; made by [`CountingBloom::builder`](Filter::builder).
///
/// By default a key's counters lie in 2 words at a rate of 10%, in 4 at 3%, and in 8 from 1% down.
/// With 1, every insert and remove is one atomic step, for [more memory](crate::docs::cost#memory).
/// With 4, a filter for 1% takes 48.6 bits per key instead of 43.5.
///
/// ```
/// use lanebloom::CountingBloom;
///
/// let filter = CountingBloom::with_capacity(1_000_000, 1e-3)?;
/// assert!((76.0..77.0).contains(&filter.statistics().bits_per_key));
///
/// let filter = CountingBloom::builder().memory_budget(1 << 20).build()?;
/// assert!((190_000..195_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<Counting, S>;

/// Inserts and lookups, one key or many.
impl<S> CountingBloom<S> {
    /// Inserts `key`. Returns whether one of its counters was 0: then the key was certainly not
    /// there. If several threads race to insert a new key, at least one of them gets `true`; with
    /// one [word per key](Builder::words_per_key) exactly one does. A key that is inserted again
    /// must be removed as often.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        into_ok(self.try_insert(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before and that was not removed since. `true`
    /// ends in an `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order; returns how many were certainly not there before: how often
    /// [`insert`](Self::insert) returns `true`.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2]);
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        into_ok(self.try_insert_batch(keys))
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.look_up_batch(keys, out);
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on what [`insert`](Self::insert)
    /// returns for each key. [`Answers`] says what `new` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> usize {
        into_ok(self.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100);
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        into_ok(self.try_insert_all(keys))
    }
}

/// Removes.
impl<S> CountingBloom<S> {
    /// Removes one copy of `key`. Returns whether it was there.
    ///
    /// **Remove only what was inserted, and as often.** Removing a false positive damages another
    /// key. A [`contains`](Self::contains) before it does not help: it finds the same false
    /// positive.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::from_keys(["a", "b"], 0.001)?;
    /// assert!(filter.remove("a"));
    /// assert!(!filter.contains("a") && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.take(key)
    }

    /// Removes every key, with the danger of [`remove`](Self::remove) at each; returns how many
    /// were there.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::from_keys([1, 2, 3], 0.001)?;
    /// assert_eq!(filter.remove_batch(&[1, 3]), 2);
    /// assert!(filter.contains(&2) && !filter.contains(&1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        self.take_batch_into(keys, ())
    }

    /// [`remove_batch`](Self::remove_batch) that also passes on whether each key was there: it does
    /// not find absent keys out beforehand. [`Answers`] says what `removed` can be, and when this
    /// panics.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::from_keys([1, 2, 3], 0.001)?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_into(&[3, 1], &mut removed), 2);
    /// assert!(removed == [true, true] && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_into<K: Key<S>>(&self, keys: &[K], removed: impl Answers) -> usize {
        self.take_batch_into(keys, removed)
    }
}

impl Counting {
    /// Inserts or removes hashes; returns how many operations changed the filter.
    fn change(&self, kernel: CounterChange, source: &impl Source, mut answer: Answer<'_>) -> usize {
        answered(source, &mut answer, |hashes, bitmap| {
            let lines = self.words.counters.shared();
            self.words.kernels.change_hashes(kernel, lines, hashes, bitmap);
        })
    }
}

impl Insert for Counting {
    type Error = Infallible;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, Infallible> {
        Ok(self
            .words
            .kernels
            .change(self.words.kernels.insert, self.words.counters.shared(), hash))
    }

    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, Infallible> {
        Ok(self.change(self.words.kernels.insert, source, answer))
    }

    #[inline]
    fn clear(&mut self) {
        self.words.counters.clear();
    }
}

impl Remove for Counting {
    #[inline]
    fn remove_hash(&self, hash: u64) -> bool {
        self.words
            .kernels
            .change(self.words.kernels.remove, self.words.counters.shared(), hash)
    }

    fn remove_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        self.change(self.words.kernels.remove, source, answer)
    }
}

impl BloomCounters {
    #[inline]
    fn stuck(&self) -> usize {
        let stuck: u64 = self.counters.words().map(counters::stuck_in).sum();
        bits::acquire();
        stuck as usize
    }
}

impl LineWords for BloomCounters {
    type Word = Counters;
    const TYPE: &'static str = "CountingBloom";
    const UNIT: Unit = Unit::Counter;

    #[inline(always)]
    fn lookups(&self) -> &Lookups<Counters> {
        &self.kernels.lookups
    }

    #[inline(always)]
    fn lines(&self) -> Lines<'_, Counters> {
        self.counters.shared()
    }

    #[inline]
    fn weighed(&self) -> impl Iterator<Item = ([u64; LINE_WORDS], u64)> {
        self.counters.lines()
    }

    #[inline]
    fn keys_of(layout: Layout, total: u64) -> usize {
        (total as f64 / layout.counters_per_key() + 0.5) as usize
    }

    #[inline]
    fn copy(&self) -> Result<Self, BuildError> {
        Ok(Self {
            counters: self.counters.try_clone()?,
            ..*self
        })
    }

    #[inline]
    fn set_kernels(&mut self, layout: Layout, isa: Isa) {
        self.kernels = CounterKernels::of(layout, isa);
    }

    #[inline]
    fn debug_more(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("stuck_counters", &self.stuck());
    }
}

impl OwnWords for BloomCounters {
    const KIND: Kind = Kind::Counting;

    #[inline]
    fn empty(layout: Layout) -> Result<Self, BuildError> {
        Ok(Self {
            counters: CounterLines::new(layout.blocks)?,
            kernels: CounterKernels::of(layout, Isa::best()),
        })
    }

    #[inline]
    fn words(&self) -> impl Iterator<Item = u64> {
        self.counters.words()
    }

    fn store_words(&mut self, first: usize, words: impl Iterator<Item = u64>) {
        self.counters.store_words(first, words);
    }

    fn replace(&mut self, others: impl Iterator<Item = u64>, new: impl FnMut(u64, u64) -> u64) {
        self.counters.replace(others, new);
    }

    /// Adds every copy of every key.
    #[inline]
    fn add(&self, other: &Self) -> bool {
        self.counters.add_from(&other.counters)
    }

    #[inline]
    fn united(a: u64, b: u64) -> u64 {
        counters::sum(a, b)
    }

    #[inline]
    fn common(a: u64, b: u64) -> u64 {
        counters::least(a, b)
    }
}

/// Stuck counters.
impl<S> Filter<Counting, S> {
    /// The number of counters that are stuck at 15 and never decrease again.
    ///
    /// ```
    /// let filter = lanebloom::CountingBloom::builder().memory_budget(64).build()?;
    /// filter.insert_batch(&["a"; 14]);
    /// assert_eq!(filter.stuck_counters(), 0);
    /// filter.insert("a");
    /// assert!(filter.stuck_counters() > 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stuck_counters(&self) -> usize {
        self.engine.words.stuck()
    }
}
