//! `ConcurrentBloom`: keys in, answers out. Hashes by its [`KeyHasher`], hands the hashes to the kernels of its shape,
//! and orders memory where an answer rests on what another thread did.

use crate::bits::{self, Bits};
use crate::bulk::{self, Answer, Source};
use crate::error::{BuildError, IncompatibleError, IncompatibleErrorKind};
use crate::filter::lookup::Lookup;
use crate::funnel::Funnel;
use crate::hash::{self, KeyHasher, Murmur3, assert_same_length};
use crate::simd::{Isa, Kernels};
use crate::sizing::{LINE_BITS, LINE_BYTES, Layout, Request};
use crate::sync::AtomicU64;
use core::convert::Infallible;
use core::fmt;
use core::ops::Range;

/// A lock-free Bloom filter in cache-line blocks, for many threads to fill and ask at once.
///
/// Keys are any [`Funnel`] type; they are hashed by `S`, [`Murmur3`] unless chosen otherwise. All operations but
/// [`clear`](Self::clear) take `&self`: share it as `Arc<ConcurrentBloom>`. What threads may rely on is in the
/// [Consistency](crate#consistency) chapter.
///
/// # Examples
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
///         thread::spawn(move || (0..1000u32).filter(|i| seen.insert(&(worker, *i))).count())
///     })
///     .collect();
/// let new: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
/// assert!(new > 3990); // 4000 but for false positives
/// assert!((0..1000u32).all(|i| seen.contains(&(3u32, i))));
/// assert!(!seen.contains(&(4u32, 0u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct ConcurrentBloom<S = Murmur3> {
    pub(crate) bits: Bits,
    pub(super) kernels: &'static Kernels,
    pub(super) hasher: S,
    layout: Layout,
    expected_keys: usize,
}

/// Sizes a [`ConcurrentBloom`]; made by [`ConcurrentBloom::builder`].
///
/// Give the expected keys, or a memory budget, or both:
///
/// | given | size | rate |
/// |---|---|---|
/// | keys, perhaps rate | what they need | as asked, 1% by default |
/// | budget, perhaps rate | the budget | as asked, 1% by default; [`expected_keys`](ConcurrentBloom::expected_keys) says how many keys that is |
/// | keys and budget | the budget | the best that fits: [`false_positive_rate_at`](ConcurrentBloom::false_positive_rate_at) says which |
/// | keys, rate and budget | what keys and rate need | as asked, or an error where that is more than the budget |
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1_000_000).false_positive_rate(1e-3).build()?;
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
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys, see [`crate::hash`].
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
    /// The number of distinct keys at which the false-positive rate is to hold. 0 means 1.
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

    /// The chance that a key which was never inserted is taken for one that was, once the expected keys
    /// are in: between 0 and 1, both excluded. 0.01 by default.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).false_positive_rate(1e-6).build()?;
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
    /// let filter = ConcurrentBloom::builder().memory_budget(10_000).expected_keys(5000).build()?;
    /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
    /// assert!(filter.false_positive_rate_at(5000) < 1e-3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// How many 64-bit words of its line a key touches: 1, 2, 4 or 8.
    ///
    /// Each word is one atomic operation of a fresh insert. Left open, the fewest are taken whose memory is within
    /// 6% of the least: 1 at 10%, 2 at 1%, 4 from 0.1% to 1e-6. With 1, an insert is a claim: of racing inserters
    /// of a new key exactly one gets `true`.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let claims = ConcurrentBloom::builder().expected_keys(1000).words_per_key(1).build()?;
    /// assert_eq!(claims.words_per_key(), 1);
    ///
    /// let wrong = ConcurrentBloom::builder().expected_keys(1000).words_per_key(3).build();
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
    /// use lanebloom::ConcurrentBloom;
    /// use std::hash::RandomState;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).hasher(RandomState::new()).build()?;
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
    /// 2, 4 or 8, the rate would take more than 128 bits per key, the budget is below one line or below
    /// what keys and rate need, the size is beyond addressable memory, or the allocation fails.
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
    /// assert!(error.to_string().starts_with("neither expected keys nor a memory budget was given"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<ConcurrentBloom<S>, BuildError> {
        let (layout, expected_keys) = self.request.solve()?;
        ConcurrentBloom::with_layout(layout, expected_keys, self.hasher)
    }
}

impl<S> ConcurrentBloom<S> {
    pub(super) fn with_layout(layout: Layout, expected_keys: usize, hasher: S) -> Result<Self, BuildError> {
        Ok(Self::with_bits(
            layout,
            Bits::new(layout.blocks)?,
            hasher,
            expected_keys,
        ))
    }

    /// `bits` as a filter of this layout, whose blocks they have.
    pub(crate) fn with_bits(layout: Layout, bits: Bits, hasher: S, expected_keys: usize) -> Self {
        debug_assert_eq!(bits.blocks(), layout.blocks);
        Self {
            bits,
            kernels: Kernels::of(layout, Isa::detect()),
            hasher,
            layout,
            expected_keys,
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }
}

/// Single operations.
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// Inserts `key`; returns whether this call changed the filter.
    ///
    /// `true` means that the key was not in the filter before. `false` means that it was, or that it was taken
    /// for one that was: a false positive. Where several threads race to insert a key that the filter does not
    /// hold, **at least** one of them gets `true`, and with more than one [word per key](Self::words_per_key) several
    /// may: do not take it for a claim there. With one word per key exactly one gets it. (Bits that
    /// other keys set in the same moment can turn the key into a false positive for all of them.)
    ///
    /// # Memory ordering
    ///
    /// Setting a bit is a `Release`, and `false` ends in an `Acquire`: then everything that the threads which set
    /// these bits had done before is visible. A key that was already there costs loads only, and nothing is
    /// written to its line.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "add")]
    #[doc(alias = "check_and_set")]
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`: everything that the threads which set these bits had done before is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64);
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "might_contain")]
    #[doc(alias = "exists")]
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// `insert(k)` is `insert_hash(hash(k))`: a caller may hash ahead, keep hashes, or send them.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        let changed = self.kernels.insert(&self.bits, hash);
        bits::acquire_if(!changed);
        changed
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let found = self.kernels.contains(&self.bits, hash);
        bits::acquire_if(found);
        found
    }
}

/// Batches: the same answers as the single calls in order, many keys at a time in vectors, with the lines fetched ahead.
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// Inserts every hash; returns how many of them changed the filter.
    ///
    /// Results are those of [`insert_hash`](Self::insert_hash) in order, duplicates within the batch included.
    ///
    /// A batch that is dense in the filter is inserted [in bulk](crate#inserting-in-bulk), which allocates memory: 1024 hashes and 6
    /// per line of the filter, or more. (In a filter beyond 1 MiB, where hashes are sorted for it, the order is that of
    /// the hashes that share a line, to the same effect.)
    ///
    /// # Memory ordering
    ///
    /// As of the single calls; there is one `Acquire` for many keys, before any of their answers is given out.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> usize {
        self.insert_all(&hashes, None)
    }

    /// [`insert_hashes`](Self::insert_hashes) where nobody else has the filter: without atomics, so that a key takes 4.9 ns, not 20
    /// (512 KiB, Emerald Rapids; a dense batch of `insert_hashes` takes 6.8). In a filter beyond 1 MiB hashes are sorted from 4 per line of the
    /// filter on, in memory of 8 bytes for each of at most 8 per line: the filter's size.
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
        match self.bits.words_mut() {
            Some(words) => bulk::insert_mut(words, self.kernels, &hashes),
            None => self.insert_hashes(hashes),
        }
    }

    /// [`insert_hashes`](Self::insert_hashes) that also writes for every hash whether it changed the filter to the
    /// same place of `changed`: "seen for the first time", for a deduplicator. Of duplicates within the batch the first
    /// gets `true`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut first_seen), 2);
    /// assert_eq!(first_seen, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], changed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), changed.len());
        self.insert_all(&hashes, Some(&mut self.unpack_into(changed)))
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes; returns how many changed the filter.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.insert_batch(&[1u64, 2, 1]), 2);
    /// assert_eq!(filter.insert_batch(&["a", "b"]), 2);
    /// assert!(filter.contains(&2u64) && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.insert_all(
            &Keys {
                hasher: &self.hasher,
                keys,
            },
            None,
        )
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
        let (bits, hasher) = (&mut self.bits, &self.hasher);
        match bits.words_mut() {
            Some(words) => bulk::insert_mut(words, self.kernels, &Keys { hasher, keys }),
            None => self.insert_batch(keys),
        }
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut first_seen), 2);
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], changed: &mut [bool]) -> usize {
        assert_same_length(keys.len(), changed.len());
        self.insert_all(
            &Keys {
                hasher: &self.hasher,
                keys,
            },
            Some(&mut self.unpack_into(changed)),
        )
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.absent_batch(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn absent_batch<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.lookup().absent_batch(keys, each);
    }

    /// Inserts hashes; how many changed the filter.
    pub(super) fn insert_all(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        let changed = bulk::insert(&self.bits, self.kernels, source, answer);
        bits::acquire();
        changed
    }

    /// Writes the bits of bitmaps to their places of `out`.
    fn unpack_into(&self, out: &mut [bool]) -> impl FnMut(usize, &[u64]) {
        move |at, bitmap| {
            let end = out.len().min(at + 64 * bitmap.len());
            self.kernels.unpack(bitmap, &mut out[at..end]);
        }
    }

    /// What answers a batch of lookups.
    fn lookup(&self) -> Lookup<'_, AtomicU64, S> {
        Lookup {
            lines: self.bits.shared(),
            lookups: self.kernels.lookups(),
            hasher: &self.hasher,
        }
    }
}

/// Keys that are hashed when their hashes are asked for.
pub(super) struct Keys<'a, K, S> {
    pub(super) hasher: &'a S,
    pub(super) keys: &'a [K],
}

impl<K: Funnel, S: KeyHasher> Source for Keys<'_, K, S> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn each(&self, range: Range<usize>, each: impl FnMut(&[u64])) {
        // To clear the space for a whole stretch takes longer than to work on a few keys.
        if range.len() <= 64 {
            self.each_stretch::<64>(range, each);
        } else {
            self.each_stretch::<HASHED_STRETCH>(range, each);
        }
    }
}

impl<K: Funnel, S: KeyHasher> Keys<'_, K, S> {
    fn each_stretch<const N: usize>(&self, range: Range<usize>, mut each: impl FnMut(&[u64])) {
        let mut hashes = [0; N];
        for keys in self.keys[range].chunks(N) {
            let hashes = &mut hashes[..keys.len()];
            self.hasher.hash_batch(keys, hashes);
            each(hashes);
        }
    }
}

/// Keys that are hashed, 8 KiB on the stack, before the filter is asked.
pub(super) const HASHED_STRETCH: usize = 1024;

/// Calls `each` with every `N` of the hashes, and with those that are left, until it fails.
pub(super) fn try_gathered<const N: usize, H: Copy + Default, E>(
    hashes: impl IntoIterator<Item = H>,
    mut each: impl FnMut(&[H]) -> Result<(), E>,
) -> Result<(), E> {
    let mut stretch = [H::default(); N];
    let mut len = 0;
    for hash in hashes {
        stretch[len] = hash;
        len += 1;
        if len == N {
            each(&stretch)?;
            len = 0;
        }
    }
    each(&stretch[..len])
}

/// [`try_gathered`] of what does not fail.
pub(super) fn gathered<const N: usize, H: Copy + Default>(
    hashes: impl IntoIterator<Item = H>,
    mut each: impl FnMut(&[H]),
) {
    let Ok(()) = try_gathered::<N, H, _>(hashes, |stretch| {
        each(stretch);
        Ok::<_, Infallible>(())
    });
}

#[track_caller]
pub(super) fn assert_bitmap_length(keys: usize, words: usize) {
    assert!(
        keys.div_ceil(64) == words,
        "{keys} keys and {words} words for a bit each: it must be {} words",
        keys.div_ceil(64)
    );
}

/// The whole filter.
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// Adds every key of `other` to this filter; returns whether that changed it. Both may be in use meanwhile.
    ///
    /// Everything that was inserted into `other` before is in this filter after; of what is inserted there
    /// meanwhile, some may be.
    ///
    /// # Errors
    ///
    /// If layout or hasher (its algorithm, seed or key) differ; nothing is changed then.
    ///
    /// # Memory ordering
    ///
    /// `Acquire` on `other`'s bits and `Release` on these: who finds a key here sees what its inserter there had done
    /// before. `false` ends in an `Acquire`, as of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let all = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let part = all.clone();
    /// part.insert("a");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!(all.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_compatible(other)?;
        let changed = self.bits.or_from(&other.bits, 0..self.blocks());
        bits::acquire_if(!changed);
        Ok(changed)
    }

    /// An error if the other's bits mean something else.
    pub(crate) fn check_compatible(&self, other: &Self) -> Result<(), IncompatibleError> {
        if self.layout != other.layout {
            let kind = IncompatibleErrorKind::Layout {
                ours: self.layout,
                theirs: other.layout,
            };
            return Err(IncompatibleError(kind));
        }
        if self.hasher_print() != other.hasher_print() {
            return Err(IncompatibleError(IncompatibleErrorKind::Hasher));
        }
        Ok(())
    }

    pub(crate) fn hasher_print(&self) -> u64 {
        hash::print(&self.hasher)
    }

    /// Removes all keys. It takes `&mut self` because beside inserts nobody could say which of them survived.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let mut filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.clear();
    /// assert!(!filter.contains("a"));
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.bits.clear();
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
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.try_clone()? == filter);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let bits = self.bits.try_clone()?;
        Ok(Self {
            bits,
            hasher: self.hasher.clone(),
            ..*self
        })
    }
}

/// What the filter is, and how full. Figures from the bits read the whole filter: beside inserts, each word as it was at
/// some moment meanwhile.
impl<S> ConcurrentBloom<S> {
    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1_000_000).build()?;
    /// assert!((10.2..10.3).contains(&filter.bits_per_key()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.layout.blocks as f64 * LINE_BITS as f64 / self.expected_keys as f64
    }

    /// The words of its line that a key touches: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::builder().expected_keys(1000).build()?.words_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.layout.shape.words
    }

    /// The bits that a key throws in each of its words (two throws may hit the same bit).
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::builder().expected_keys(1000).build()?.bits_per_word(), 3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_word(&self) -> usize {
        self.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::builder().memory_budget(1 << 20).build()?.blocks(), 1 << 14);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.layout.blocks
    }

    /// Bytes of memory that the bits take.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::builder().memory_budget(1 << 20).build()?.memory_bytes(), 1 << 20);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.layout.blocks * LINE_BYTES
    }

    /// The fraction of the bits that are set. At the expected keys it is a little below one half.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().memory_budget(64).words_per_key(1).build()?;
    /// filter.insert("a");
    /// assert_eq!(filter.fill_ratio(), filter.bits_per_word() as f64 / 512.0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.ones() as f64 / (self.layout.blocks * LINE_BITS) as f64
    }

    /// An estimate of the number of distinct keys inserted, from the fraction of the bits that are set.
    ///
    /// Its relative standard error is about `0.2 / sqrt(n)`, and below `0.3 / sqrt(n)`, for `n` keys up to the expected
    /// ones: 1% at 1000, 0.03% at a million. Far beyond, where few bits are left unset, it grows, and a full filter
    /// answers the least number that would have filled it.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.estimated_len(), 0);
    /// for key in 0..50_000u32 {
    ///     filter.insert(&key);
    /// }
    /// assert!(filter.estimated_len().abs_diff(50_000) < 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        self.layout.keys_for(self.ones())
    }

    /// The false-positive rate to expect once `keys` distinct keys are in, from the model that the filter was sized by.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(100_000).build()?;
    /// assert!(filter.false_positive_rate_at(100_000) <= 0.01);
    /// assert!(filter.false_positive_rate_at(200_000) > 0.05);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_at(keys)
    }

    /// The false-positive rate of the filter as it is: the exact chance, given its bits, that a random hash is
    /// taken for present.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(100_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// for key in 0..100_000u32 {
    ///     filter.insert(&key);
    /// }
    /// assert!((0.0095..0.0105).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        let rate = self.layout.mean_rate(self.bits.words());
        bits::acquire();
        rate
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// An empty filter that is otherwise the same.
    #[cfg(feature = "window")]
    pub(super) fn blank(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let bits = Bits::new(self.layout.blocks)?;
        Ok(Self {
            bits,
            hasher: self.hasher.clone(),
            ..*self
        })
    }

    fn ones(&self) -> u64 {
        let ones = self.bits.shared().ones();
        bits::acquire();
        ones
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts where the memory is not to be had;
/// [`try_clone`](ConcurrentBloom::try_clone) does not.
impl<S: KeyHasher + Clone> Clone for ConcurrentBloom<S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<[u64; 8]>(self.layout.blocks);
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// Same layout, same hasher and same bits. Beside inserts, each word is compared as it was at some moment meanwhile.
impl<S: KeyHasher> PartialEq for ConcurrentBloom<S> {
    fn eq(&self, other: &Self) -> bool {
        let same = self.layout == other.layout
            && self.hasher_print() == other.hasher_print()
            && self.bits.words().eq(other.bits.words());
        bits::acquire();
        same
    }
}

/// A summary; it reads the whole filter for the fill.
impl<S: fmt::Debug> fmt::Debug for ConcurrentBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentBloom")
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("words_per_key", &self.words_per_key())
            .field("bits_per_word", &self.bits_per_word())
            .field("hasher", &self.hasher)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}

/// Inserts the keys in batches. For `&ConcurrentBloom` too, so that a shared filter can be extended.
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let mut filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32) && !filter.contains(&10u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, S: KeyHasher> Extend<K> for ConcurrentBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl<K: Funnel, S: KeyHasher> Extend<K> for &ConcurrentBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        gathered::<HASHED_STRETCH, _>(keys.into_iter().map(|key| self.hash(&key)), |hashes| {
            self.insert_hashes(hashes);
        });
    }
}
