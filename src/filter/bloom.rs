//! [`ConcurrentBloom`]: bits in cache-line blocks. This file hands hashes to the kernels of the
//! filter's shape, and orders memory if an answer depends on another thread's work.

use super::engine::{Engine, Estimate, FixedSize, Insert, InsertFlagged, Stored, Union, sealed};
use super::{Figures, Filter};
use crate::bits::{self, Bits, Load};
use crate::bulk;
use crate::codec::{Hashing, Header, Input, Kind, Out, SNAPSHOT_HEADER, admit, read_words, write_words};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3};
use crate::kernel::{FEW, Isa, Kernels};
use crate::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS, Layout};
use crate::sizing::Request;
use crate::source::{Answer, Keys, Source};
use alloc::vec::Vec;
use core::fmt;

/// A lock-free Bloom filter in cache-line blocks. Many threads can insert and look up at once.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] has the methods, and the chapter
/// [Consistency](crate#consistency) the promises to threads.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use std::sync::Arc;
/// use std::thread;
///
/// let seen = Arc::new(ConcurrentBloom::builder().expected_keys(100_000).build()?);
/// let workers: Vec<_> = (0..4u32)
///     .map(|worker| {
///         let seen = Arc::clone(&seen);
///         thread::spawn(move || {
///             (0..1000u32).filter(|i| seen.insert(&(worker, *i))).count()
///         })
///     })
///     .collect();
/// let new: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
/// assert!(new > 3990); // 4000 but for false positives
/// assert!((0..1000u32).all(|i| seen.contains(&(3u32, i))));
/// assert!(!seen.contains(&(4u32, 0u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type ConcurrentBloom<S = Murmur3> = Filter<Bloom, S>;

/// The engine of [`ConcurrentBloom`]: bits in lines of 64 bytes.
pub struct Bloom {
    pub(crate) bits: Bits,
    pub(crate) kernels: Kernels,
    pub(crate) layout: Layout,
    pub(crate) expected_keys: usize,
}

/// Sizes a [`ConcurrentBloom`]; made by [`ConcurrentBloom::builder`].
///
/// Give the expected keys, or a memory budget, or both:
///
/// | given | size | rate |
/// |---|---|---|
/// | keys, perhaps rate | as needed | the given one, by default 1% |
/// | budget, perhaps rate | the budget | the given one, by default 1%; [`expected_keys`](ConcurrentBloom::expected_keys) returns the number of keys |
/// | keys and budget | the budget | the best that fits; [`false_positive_rate_at`](ConcurrentBloom::false_positive_rate_at) returns it |
/// | keys, rate and budget | as needed; an error if that exceeds the budget | the given one |
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let builder = ConcurrentBloom::builder().expected_keys(1_000_000);
/// let filter = builder.false_positive_rate(1e-3).build()?;
/// assert!((15.8..15.9).contains(&filter.bits_per_key()));
///
/// let filter = ConcurrentBloom::builder().memory_budget(1 << 20).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// assert!((800_000..820_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    pub(super) request: Request,
    hasher: S,
}

impl ConcurrentBloom {
    /// A builder with [`Murmur3`], seed 0.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys: see
    /// [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S: KeyHasher> Builder<S> {
    /// The number of distinct keys up to which the false-positive rate holds. 0 means 1.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(50_000).build()?;
    /// assert!((0..50_000u32).filter(|key| filter.insert(key)).count() > 49_500);
    /// assert!(filter.current_false_positive_rate() < 0.011);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.request.keys = Some(keys);
        self
    }

    /// The chance that the filter reports a key that was never inserted, once it holds the expected
    /// keys. Between 0 and 1, both excluded; 0.01 by default.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.false_positive_rate(1e-6).build()?;
    /// assert!(filter.false_positive_rate_at(1000) <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.rate = Some(rate);
        self
    }

    /// The most memory that the bits may take, in bytes: at least one line of 64.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let builder = ConcurrentBloom::builder().memory_budget(10_000);
    /// let filter = builder.expected_keys(5000).build()?;
    /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
    /// assert!(filter.false_positive_rate_at(5000) < 1e-3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// The 64-bit words of its line that a key touches: 1, 2, 4 or 8.
    ///
    /// A fresh insert makes one atomic operation for each word. By default the builder takes the
    /// fewest words whose memory is within 6% of the least: 1 at 10%, 2 at 1%, 4 from 0.1% to 1e-6.
    /// With 1, an insert is a claim: if several threads race to insert a new key, exactly one gets
    /// `true`.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let claims = builder.words_per_key(1).build()?;
    /// assert_eq!(claims.words_per_key(), 1);
    ///
    /// let error = ConcurrentBloom::builder().words_per_key(3).build().unwrap_err();
    /// assert_eq!(error.to_string(), "3 words per key is not 1, 2, 4 or 8");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. The module
    /// [`hash`](crate::hash) compares them.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    /// use std::hash::RandomState;
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
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
    /// Fails if neither keys nor budget were given, the rate is not between 0 and 1, the words per
    /// key are not 1, 2, 4 or 8, the rate would take more than 128 bits per key, the budget is
    /// below one line or below what keys and rate need, the size is beyond addressable memory, or
    /// the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 1344);
    ///
    /// let error = ConcurrentBloom::builder().build().unwrap_err();
    /// assert!(error.to_string().starts_with("neither expected keys nor a memory"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<ConcurrentBloom<S>, BuildError> {
        let (layout, expected_keys) = self.request.solve()?;
        Filter::with_layout(layout, expected_keys, self.hasher)
    }
}

impl Bloom {
    pub(crate) fn new(layout: Layout, expected_keys: usize) -> Result<Self, BuildError> {
        Ok(Self::with_bits(layout, Bits::new(layout.blocks)?, expected_keys))
    }

    /// A filter of this layout with these `bits`; the bits must have the layout's blocks.
    pub(crate) fn with_bits(layout: Layout, bits: Bits, expected_keys: usize) -> Self {
        debug_assert_eq!(bits.blocks(), layout.blocks);
        Self {
            bits,
            kernels: Kernels::of(layout, Isa::detect()),
            layout,
            expected_keys,
        }
    }

    /// An empty engine that is otherwise the same.
    #[cfg(feature = "window")]
    pub(crate) fn blank(&self) -> Result<Self, BuildError> {
        Ok(Self {
            bits: Bits::new(self.layout.blocks)?,
            ..*self
        })
    }

    pub(crate) fn header(&self, hashing: Hashing) -> Header {
        Header {
            kind: Kind::Bloom,
            hashing,
            layout: self.layout,
            expected_keys: self.expected_keys,
            rate: self.layout.rate_at(self.expected_keys),
        }
    }

    fn ones(&self) -> u64 {
        let ones = self.bits.shared().ones();
        bits::acquire();
        ones
    }
}

impl sealed::Sealed for Bloom {}

impl Engine for Bloom {
    const NAME: &'static str = "ConcurrentBloom";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let found = self.kernels.contains(&self.bits, hash);
        bits::acquire_if(found);
        found
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        self.kernels
            .lookups()
            .contains_hashes(self.bits.shared(), hashes, found);
        bits::acquire();
    }

    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        self.kernels.lookups().contains_few(self.bits.shared(), hashes, found);
        bits::acquire();
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.layout.blocks * LINE_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.bits.words().all(|line| line == [0; 8]);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        self.ones() as f64 / (self.layout.blocks * LINE_BITS) as f64
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_at(keys)
    }

    /// The exact chance, computed from the bits.
    fn current_false_positive_rate(&self) -> f64 {
        let rate = self.layout.mean_rate(self.bits.words());
        bits::acquire();
        rate
    }

    fn figures(&self) -> Figures {
        let mut ones = 0;
        let words = self.bits.words().inspect(|line| ones += bits::ones_of(line));
        let false_positive_rate = self.layout.mean_rate(words);
        bits::acquire();
        Figures {
            fill_ratio: ones as f64 / (self.layout.blocks * LINE_BITS) as f64,
            len: self.layout.keys_for(ones),
            false_positive_rate,
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            bits: self.bits.try_clone()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("words_per_key", &self.layout.shape.words)
            .field("bits_per_word", &self.layout.shape.bits)
            .field("fill_ratio", &self.fill_ratio());
    }
}

impl Insert for Bloom {
    type Answer = bool;
    type Total = usize;

    #[inline]
    fn insert(&self, hash: u64) -> bool {
        let changed = self.kernels.insert(&self.bits, hash);
        bits::acquire_if(!changed);
        changed
    }

    #[inline]
    fn insert_all(&self, source: &impl Source) -> usize {
        self.insert_flagged(source, None)
    }

    fn clear(&mut self) {
        self.bits.clear();
    }
}

impl InsertFlagged for Bloom {
    #[inline]
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        let changed = if source.len() < FEW {
            let mut changed = 0;
            source.each(0..source.len(), |hashes| {
                changed = self.kernels.insert_few(&self.bits, hashes)
            });
            if let (Some(answer), 1..) = (answer, source.len()) {
                answer(0, &[changed]);
            }
            changed.count_ones() as usize
        } else {
            bulk::insert(&self.bits, &self.kernels, source, answer)
        };
        bits::acquire();
        changed
    }
}

impl Estimate for Bloom {
    fn estimated_len(&self) -> usize {
        self.layout.keys_for(self.ones())
    }
}

impl FixedSize for Bloom {}

impl Stored for Bloom {
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        self.header(Hashing::of(&Murmur3::default())).len()
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let words = self.layout.blocks * LINE_WORDS;
        write_words(
            out,
            &self.header(hashing).to_bytes(),
            words,
            self.bits.words().flatten(),
        )
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = Header::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Bloom)?;
        let hasher = hasher(header.hashing)?;
        let blocks = header.layout.blocks;
        admit(input, header.len(), (blocks * LINE_BYTES) as u64, limit)?;
        let mut bits = Bits::new(blocks).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), blocks * LINE_WORDS, |first, words| {
            bits.store_words(first, words.iter().map(Load::load));
        })?;
        Ok((Self::with_bits(header.layout, bits, header.expected_keys), hasher))
    }
}

impl Union for Bloom {
    fn same(&self, other: &Self) -> bool {
        let same = self.layout == other.layout && self.bits.words().eq(other.bits.words());
        bits::acquire();
        same
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        if self.layout != other.layout {
            return Err(IncompatibleError::differs("layout", other.layout, self.layout));
        }
        Ok(())
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let changed = self.bits.or_from(&other.bits, 0..self.layout.blocks);
        bits::acquire_if(!changed);
        Ok(changed)
    }
}

/// Operations without atomics, for exclusive access.
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// [`insert_hashes`](Self::insert_hashes) without atomics, for exclusive access. A key takes
    /// 4.9 ns instead of 20 (512 KiB, Emerald Rapids; a dense batch of `insert_hashes` takes 6.8).
    /// In a filter beyond 1 MiB, a batch of at least 4 hashes per line of the filter is sorted
    /// first. The sort needs 8 bytes for each hash, of at most 8 hashes per line: as much memory as
    /// the filter.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let mut filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes_mut(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_mut(&mut self, hashes: &[u64]) -> usize {
        match self.engine.bits.words_mut() {
            Some(words) => bulk::insert_mut(words, &self.engine.kernels, &hashes),
            None => self.insert_hashes(hashes),
        }
    }

    /// [`insert_hashes_mut`](Self::insert_hashes_mut) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let mut filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.insert_batch_mut(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_mut<K: Funnel>(&mut self, keys: &[K]) -> usize {
        let hasher = &self.hasher;
        match self.engine.bits.words_mut() {
            Some(words) => bulk::insert_mut(words, &self.engine.kernels, &Keys { hasher, keys }),
            None => self.insert_batch(keys),
        }
    }
}

/// The layout.
impl<S> ConcurrentBloom<S> {
    pub(super) fn with_layout(layout: Layout, expected_keys: usize, hasher: S) -> Result<Self, BuildError> {
        Ok(Self {
            engine: Bloom::new(layout, expected_keys)?,
            hasher,
        })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.engine.layout
    }

    pub(crate) fn bits(&self) -> &Bits {
        &self.engine.bits
    }

    /// The words of its line that a key touches: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.words_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.engine.layout.shape.words
    }

    /// The number of bits that a key throws in each of its words (two throws may hit the same bit).
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.bits_per_word(), 3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_word(&self) -> usize {
        self.engine.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().memory_budget(1 << 20).build()?;
    /// assert_eq!(filter.blocks(), 1 << 14);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.engine.layout.blocks
    }
}
