//! A Bloom filter that can delete: [`CountingBloom`] has counters of 4 bits in place of bits. A
//! counter says how many keys share it, so that a key can be removed again. The filter is as
//! lock-free as [`ConcurrentBloom`](crate::ConcurrentBloom), with the same lookups, for four times
//! the memory.
//!
//! Use it for coupons that are used, sessions that end, rows that are deleted. If keys are never
//! removed, use a `ConcurrentBloom`.
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
//! Every remove must have its own insert: the insert happened before the remove, and no other
//! remove belongs to it. Then there are no false negatives. If the key is not in the filter, a
//! remove answers `false` and changes nothing, **unless the filter takes it for present**, at the
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
//! 1. **No false negatives.** A lookup answers true if an insert of the key happens before it, and
//!    the remove that belongs to this insert neither happens before the end of the lookup nor runs
//!    beside it. Other keys, and other inserts and removes of this key, may come and go meanwhile.
//!    The promise requires that nobody removes what was not inserted (above).
//! 2. **Answers.** An insert answers true if one of the key's counters was 0: then the key was
//!    certainly not there. If several threads race to insert a new key, at least one gets true;
//!    with one [word per key](Builder::words_per_key), exactly one does. A remove answers whether
//!    the key was there (or was taken for it). If several threads race to remove a key that is
//!    there once, exactly one gets true.
//! 3. **Publication.** A thread that finds, inserts or removes a key sees what the key's inserters
//!    had done before. If its insert or remove answered true, the thread also sees what other
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
//! Bits of memory per key, 4 for each counter, with the words per key that the builder chooses, and
//! with one word per key:
//!
//! | rate | 10% | 3% | 1% | 0.1% | 1e-4 | 1e-5 |
//! |---|---|---|---|---|---|---|
//! | textbook counting filter | 19.2 | 29.2 | 38.3 | 57.5 | 76.7 | 95.9 |
//! | `CountingBloom` | 20.5 | 33.4 | 45.9 | 79.3 | 136 | 227 |
//! | words per key | 2 | 2 | 4 | 4 | 4 | 4 |
//! | with one word per key | 23.1 | 46.3 | 83.5 | 302 | | |
//!
//! All counters of a key lie in one cache line, so the filter takes more memory than the
//! textbook's: a line of 128 counters holds 11 keys at 1%, and this number varies from line to
//! line. (Half of the counters in each of two lines would take 40.2 bits at 1% and 62.3 at 0.1%,
//! and would cost a second cache miss in every operation.)

use super::engine::{Engine, Estimate, FixedSize, Insert, InsertFlagged, Remove, Stored, Union, sealed};
use super::{Figures, Filter};
use crate::bits::{self, Load};
use crate::codec::{Hashing, Header, Input, Kind, Out, SNAPSHOT_HEADER, admit, read_words, write_words};
use crate::counters::{self, CounterLines};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::hash::{KeyHasher, Murmur3};
use crate::kernel::{CounterBatch, CounterKernels, Isa};
use crate::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS, Layout};
use crate::sizing::{Cell, Request};
use crate::source::{Answer, Source, answers, teller};
use alloc::vec::Vec;
use core::fmt;

/// A lock-free counting Bloom filter. Many threads can insert, look up and remove at once.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] has the methods. [The
/// module](self) has the promises to threads, and says which keys must not be removed.
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
///                 assert!(live.contains(&(worker, i)));
///                 assert!(live.contains("always there"));
///                 assert!(live.remove(&(worker, i)));
///             }
///         });
///     }
/// });
/// assert_eq!(live.estimated_len(), 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias = "CountingBloomFilter")]
pub type CountingBloom<S = Murmur3> = Filter<Counting, S>;

/// The engine of [`CountingBloom`]: counters of 4 bits in lines of 64 bytes.
pub struct Counting {
    counters: CounterLines,
    kernels: CounterKernels,
    layout: Layout,
    expected_keys: usize,
}

/// Sizes a [`CountingBloom`]; made by [`CountingBloom::builder`].
///
/// Expected keys, rate and budget have the same meaning as in the [builder](crate::Builder) of
/// `ConcurrentBloom`.
///
/// ```
/// use lanebloom::CountingBloom;
///
/// let builder = CountingBloom::builder().expected_keys(1_000_000);
/// let filter = builder.false_positive_rate(1e-3).build()?;
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
    /// Seeds [`Murmur3`], as [`seed`](crate::Builder::seed) of a `ConcurrentBloom`'s builder.
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
    /// The number of distinct keys, in the filter at one time, up to which the false-positive rate
    /// holds. 0 means 1.
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

    /// The chance that the filter reports a key that it does not hold, once it holds the expected
    /// keys. Between 0 and 1, both excluded; 0.01 by default.
    ///
    /// It is also the chance that the remove of a key that is not there does harm.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let builder = CountingBloom::builder().expected_keys(1000);
    /// let filter = builder.false_positive_rate(1e-5).build()?;
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
    /// let builder = CountingBloom::builder().memory_budget(10_000);
    /// let filter = builder.expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
    /// assert!(filter.false_positive_rate_at(1000) < 1e-3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// The number of 64-bit words of its line in which a key has counters: 1, 2, 4 or 8.
    ///
    /// An insert or a remove makes one atomic operation for each word. By default the builder takes
    /// the fewest words whose memory is within 6% of the least: 2 at 10% and 3%, 4 from 1% to 1e-5.
    /// With 1, every insert and remove is one atomic step, [for more memory](self#cost). With 2, a
    /// filter for 1% takes 49.8 bits per key instead of 45.9.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let builder = CountingBloom::builder().expected_keys(1000);
    /// let steps = builder.false_positive_rate(0.1).words_per_key(1).build()?;
    /// assert_eq!(steps.words_per_key(), 1);
    ///
    /// let error = CountingBloom::builder().words_per_key(3).build().unwrap_err();
    /// assert_eq!(error.to_string(), "3 words per key is not 1, 2, 4 or 8");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// Another hasher, as [`hasher`](crate::Builder::hasher) of a `ConcurrentBloom`'s builder.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    /// use std::hash::RandomState;
    ///
    /// let builder = CountingBloom::builder().expected_keys(1000);
    /// let filter = builder.hasher(RandomState::new()).build()?;
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

    /// Computes the layout, which takes about half a millisecond, and allocates it.
    ///
    /// # Errors
    ///
    /// Fails as [`build`](crate::Builder::build) of a `ConcurrentBloom` does, with a limit of 512
    /// bits per key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 5760);
    ///
    /// let builder = CountingBloom::builder().expected_keys(1000);
    /// let error = builder.false_positive_rate(1e-9).build().unwrap_err();
    /// assert!(error.to_string().ends_with("more than the limit of 512 bits per key"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<CountingBloom<S>, BuildError> {
        let (layout, expected_keys) = self.request.solve()?;
        let counters = CounterLines::new(layout.blocks)?;
        Ok(Filter {
            engine: Counting::new(layout, counters, expected_keys),
            hasher: self.hasher,
        })
    }
}

impl Counting {
    fn new(layout: Layout, counters: CounterLines, expected_keys: usize) -> Self {
        Self {
            counters,
            kernels: CounterKernels::of(layout, Isa::detect()),
            layout,
            expected_keys,
        }
    }

    /// Inserts or removes hashes; returns how many operations answered yes.
    fn change(&self, kernel: CounterBatch, source: &impl Source, mut answer: Answer<'_>) -> usize {
        let change = |hashes: &[u64], bitmap: &mut [u64]| {
            kernel(&self.kernels, self.counters.shared(), hashes, bitmap);
        };
        answers(source, change, teller(&mut answer))
    }

    fn header(&self, hashing: Hashing) -> Header {
        Header {
            kind: Kind::Counting,
            hashing,
            layout: self.layout,
            expected_keys: self.expected_keys,
            rate: self.false_positive_rate_at(self.expected_keys),
        }
    }

    /// The sum of `of` over the words.
    fn sum(&self, of: impl Fn(u64) -> u64) -> u64 {
        let sum = self.counters.words().map(of).sum();
        bits::acquire();
        sum
    }
}

impl sealed::Sealed for Counting {}

impl Engine for Counting {
    const NAME: &'static str = "CountingBloom";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let found = self.kernels.lookups().contains(self.counters.shared(), hash);
        bits::acquire_if(found);
        found
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        self.kernels
            .lookups()
            .contains_hashes(self.counters.shared(), hashes, found);
        bits::acquire();
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.layout.blocks * LINE_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.counters.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        // All bits of the counters above 0.
        let ones = self.counters.shared().ones();
        bits::acquire();
        ones as f64 / (self.layout.blocks * LINE_BITS) as f64
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_of(Cell::Counter, keys)
    }

    fn current_false_positive_rate(&self) -> f64 {
        // Each word's nonzero counters have all their bits, so the fraction of set bits is the
        // fraction of nonzero counters.
        let rate = self.layout.mean_rate(self.counters.shared().words());
        bits::acquire();
        rate
    }

    fn figures(&self) -> Figures {
        let (mut ones, mut total) = (0, 0);
        // All bits of the counters above 0, and the sum of the counters.
        let lines = self.counters.lines().map(|(line, sum)| {
            ones += bits::ones_of(&line);
            total += sum;
            line
        });
        let false_positive_rate = self.layout.mean_rate(lines);
        bits::acquire();
        Figures {
            fill_ratio: ones as f64 / (self.layout.blocks * LINE_BITS) as f64,
            len: (total as f64 / self.layout.counters_per_key() + 0.5) as usize,
            false_positive_rate,
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            counters: self.counters.try_clone()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("words_per_key", &self.layout.shape.words)
            .field("counters_per_word", &self.layout.shape.bits)
            .field("fill_ratio", &self.fill_ratio())
            .field("stuck_counters", &self.sum(counters::stuck_in));
    }
}

impl Insert for Counting {
    type Answer = bool;
    type Total = usize;

    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.kernels.insert(self.counters.shared(), hash)
    }

    fn insert_all(&self, source: &impl Source) -> usize {
        self.insert_flagged(source, None)
    }

    fn clear(&mut self) {
        self.counters.clear();
    }
}

impl InsertFlagged for Counting {
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        self.change(CounterKernels::insert_hashes, source, answer)
    }
}

impl Remove for Counting {
    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.kernels.remove(self.counters.shared(), hash)
    }

    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        self.change(CounterKernels::remove_hashes, source, answer)
    }
}

impl Estimate for Counting {
    fn estimated_len(&self) -> usize {
        (self.sum(counters::total) as f64 / self.layout.counters_per_key() + 0.5) as usize
    }
}

impl Union for Counting {
    fn same(&self, other: &Self) -> bool {
        let same = self.layout == other.layout && self.counters.words().eq(other.counters.words());
        bits::acquire();
        same
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        if self.layout == other.layout {
            return Ok(());
        }
        Err(IncompatibleError::differs("layout", other.layout, self.layout))
    }

    /// Adds every key as many times as the other filter has it.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Ok(self.counters.add_from(&other.counters))
    }
}

impl FixedSize for Counting {}

/// Like the snapshots of `ConcurrentBloom`, with another kind. `docs/FORMAT.md` describes the
/// bytes.
impl Stored for Counting {
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        self.header(Hashing::of(&Murmur3::default())).len()
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let words = self.layout.blocks * LINE_WORDS;
        write_words(out, &self.header(hashing).to_bytes(), words, self.counters.words())
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = Header::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Counting)?;
        let hasher = hasher(header.hashing)?;
        let blocks = header.layout.blocks;
        admit(input, header.len(), (blocks * LINE_BYTES) as u64, limit)?;
        let mut counters = CounterLines::new(blocks).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), blocks * LINE_WORDS, |first, words| {
            counters.store_words(first, words.iter().map(Load::load));
        })?;
        Ok((Self::new(header.layout, counters, header.expected_keys), hasher))
    }
}

/// The layout, and the stuck counters.
impl<S> CountingBloom<S> {
    /// The words of its line that a key has counters in: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.words_per_key(), 4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.engine.layout.shape.words
    }

    /// The number of counters that a key throws in each of its words, which have 16. Two throws may
    /// hit the same counter, which then counts once.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.counters_per_word(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn counters_per_word(&self) -> usize {
        self.engine.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// use lanebloom::CountingBloom;
    ///
    /// let filter = CountingBloom::builder().memory_budget(1 << 20).build()?;
    /// assert_eq!(filter.blocks(), 1 << 14);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.engine.layout.blocks
    }

    /// The number of counters that are stuck at 15 and never decrease again.
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
        self.engine.sum(counters::stuck_in) as usize
    }
}
