//! A Bloom filter whose keys have all their bits in one line of the cache: [`ConcurrentBloom`]. The
//! [crate's page](crate) says when to use it, and what threads may rely on.

mod calls;
mod delta;
pub(crate) mod engine;
mod inlined;
mod layout;
#[cfg(feature = "rayon")]
mod parallel;
pub(crate) mod sets;

pub use self::delta::apply_deltas;
pub use self::inlined::{Inlined, inlined};
pub use self::layout::Layout;
#[cfg(feature = "rayon")]
pub use self::parallel::Parallel;
use crate::answers::{Answers, answered_into};
use crate::chunks::{Answer, Source, tell};
use crate::codec::{Input, Kind, OwnHeader, Snapshot};
use crate::error::{BuildError, SnapshotErrorKind};
use crate::filter::methods::inserts::into_ok;
#[doc(hidden)]
pub use crate::filter::parts::lines::BloomBits;
use crate::filter::parts::lines::{LineWords, OwnWords};
use crate::filter::parts::several;
use crate::filter::traits::{Encode, Engine, Insert, InsertMut};
use crate::filter::{Exclusive, Filter};
use crate::geometry::layout::Layout as LineLayout;
use crate::geometry::sizing::Unit;
use crate::hash::Murmur3;
use crate::kernel::plan::TILE;
use crate::kernel::{Isa, Lookups, Plan};
use crate::key::Key;
use crate::sorted_insert;
use crate::words::bits::{self, Bits, Lines, Load};
use crate::words::scratch::Scratch;
use crate::words::sync::AtomicU64;
use alloc::vec::Vec;
use core::convert::Infallible;

/// A lock-free Bloom filter in cache-line blocks. Many threads can insert and look up at once.
///
/// An insert returns `true` if it changed the filter: then the key was new. It returns `false` for
/// a key that is there, and by chance, at the false-positive rate, for a new one. Inserting a key
/// again changes nothing.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] says what all filters share, and
/// the chapter [Consistency](crate#consistency) what threads may rely on. A hash that you have is a
/// key too: [`Hashed`](crate::Hashed). A batch puts its answers [where you point](crate::Answers).
/// A *dense* batch, of at least 1024 keys and 6 per line of the filter, is inserted [in
/// bulk](crate#inserting-in-bulk), which allocates memory. [The module](self) has functions for
/// replicas ([`apply_deltas`]) and for loops over single calls ([`inlined`](inlined())).
///
/// ```
/// let seen = &lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
/// std::thread::scope(|scope| {
///     for worker in 0..4u32 {
///         scope.spawn(move || seen.insert_all((0..1000u32).map(|i| (worker, i))));
///     }
/// });
/// assert!((0..1000u32).all(|i| seen.contains(&(3u32, i))));
/// assert!(!seen.contains(&(4u32, 0u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type ConcurrentBloom<S = Murmur3> = Filter<Bloom, S>;

/// The engine of [`ConcurrentBloom`](crate::ConcurrentBloom): bits in lines of 64 bytes. With other
/// words, that of its relatives.
// `W` has a default, so that compilers print `Filter<Bloom>` in messages.
#[derive(Clone, Copy)]
pub struct Bloom<W = BloomBits> {
    pub(crate) words: W,
    pub(crate) layout: LineLayout,
    pub(crate) expected_keys: usize,
}

/// Sizes a [`ConcurrentBloom`]; made by [`ConcurrentBloom::builder`](Filter::builder).
///
/// By default a key's bits lie in 1 word at rates from 5%, in 2 neighbouring words from 1%, in 4 at
/// 0.1% and in 8 at 1e-4. From 1e-5 down they lie in 4 words of each of [two
/// lines](Self::lines_per_key), and from 1e-8 down in 8 of each.
pub type Builder<S = Murmur3> = crate::filter::Builder<Bloom, S>;

/// Options.
impl<S> Builder<S> {
    /// How many lines of 64 bytes a key touches: 1 or 2. With 2, half of its words are in each.
    ///
    /// Two lines need [less memory](crate::docs::cost#memory) for the same rate, and [more
    /// time](crate::docs::cost#two-lines-per-key). The default is two from a rate of 1e-5 down. If
    /// [`words_per_key`](Self::words_per_key) is given, it takes one. With two, an insert's answer
    /// is not a claim: if several threads race, at least one gets `true`.
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(100_000);
    /// let builder = builder.false_positive_rate(1e-4);
    /// let (one, two) = (builder.clone().build()?, builder.lines_per_key(2).build()?);
    /// assert!(two.memory_bytes() * 100 < one.memory_bytes() * 97);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn lines_per_key(mut self, lines: usize) -> Self {
        self.request.lines = Some(lines);
        self
    }
}

/// Options of every filter in lines.
#[allow(private_bounds, reason = "filters that own their words")]
impl<W: OwnWords, S> crate::filter::Builder<Bloom<W>, S> {
    /// The most memory that the filter may take, in bytes: at least one line of 64.
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder();
    /// let filter = builder.memory_budget(100_000).build()?;
    /// assert!((99_000..=100_000).contains(&filter.memory_bytes()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// In how many neighbouring 64-bit words a key's bits lie: 1, 2, 4 or 8, all in one line, or
    /// half of them in each of [two lines](Builder::lines_per_key).
    ///
    /// An insert of a new key, or a remove, takes one atomic operation for each word that has a bit
    /// of it. The default is the fewest words whose memory is within 10% of the least. With 1, an
    /// insert and a remove are claims: if several threads race, exactly one gets `true`. Two lines
    /// have 16 words at most.
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(1000);
    /// let claims = builder.clone().words_per_key(1).build()?;
    /// assert!(claims.memory_bytes() > builder.clone().build()?.memory_bytes());
    /// assert!(builder.words_per_key(3).build().is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }
}

impl Bloom {
    /// Reads the `count` parts of a snapshot, whose bits take exactly `bytes` together.
    pub(crate) fn decode_parts(
        input: &mut dyn Input,
        header: &OwnHeader,
        bytes: u64,
        count: usize,
    ) -> Result<Vec<Self>, SnapshotErrorKind> {
        let mut left = bytes;
        let mut parts = Vec::new();
        for _ in 0..count {
            let part = Self::decode(input, left as usize, &mut |own| own.check(header.hashing))?;
            left -= part.memory_bytes() as u64;
            parts.push(part);
        }
        match left {
            0 => Ok(parts),
            _ => Err(SnapshotErrorKind::Length {
                declared: header.len,
                needed: header.len - left,
            }),
        }
    }

    /// An empty engine that is otherwise the same.
    #[cfg(feature = "std")]
    pub(crate) fn blank(&self) -> Result<Self, BuildError> {
        let words = BloomBits {
            bits: Bits::new(self.layout.blocks)?,
            ..self.words
        };
        Ok(Self { words, ..*self })
    }
}

impl InsertMut for Bloom {
    #[inline]
    fn insert_mut(&mut self, source: &impl Source, answer: Answer<'_>) -> usize {
        let BloomBits {
            bits,
            kernels,
            lines_per_key,
        } = &mut self.words;
        match bits.words_mut() {
            Some(words) => sorted_insert::insert_mut(words, kernels, *lines_per_key, source, answer),
            None => into_ok(self.insert_flagged(source, answer)),
        }
    }
}

impl Insert for Bloom {
    type Error = Infallible;

    // Always inlined, as `Insert::insert`. (A batch of one hash took twice as long as a single
    // insert.)
    #[inline(always)]
    fn insert_hash(&self, hash: u64) -> Result<bool, Infallible> {
        let changed = self.words.insert(hash);
        bits::acquire_if(!changed);
        Ok(changed)
    }

    // A call, so that one key costs what a single insert does.
    #[inline(never)]
    fn insert_source(&self, source: &impl Source) -> Result<usize, Infallible> {
        self.insert_flagged(source, None)
    }

    #[inline(always)]
    fn plan_of_keys(&self, keys: usize) -> Plan {
        match Plan::of_inserts(keys) {
            Plan::Few => self.plan_of_hashes(keys),
            plan => plan,
        }
    }

    #[inline(always)]
    fn plan_of_hashes(&self, hashes: usize) -> Plan {
        self.words.kernels.ladder.plan(hashes)
    }

    #[inline]
    fn insert_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> Result<usize, Infallible> {
        let changed = match self.plan_of_hashes(source.len()) {
            Plan::Pipeline => sorted_insert::insert(&self.words, source, answer),
            few => {
                let mut space = Scratch::<TILE>::default();
                let (mut changed, mut count) = (0, 0);
                let hashes = match source.hashes(0..source.len(), &mut space) {
                    [] => return Ok(0),
                    hashes => hashes,
                };
                if few.is_single() {
                    for (i, &hash) in hashes.iter().enumerate() {
                        let new = self.words.insert(hash);
                        changed |= u64::from(new) << i;
                        count += usize::from(new);
                    }
                } else {
                    changed = self.words.insert_few(few, hashes);
                    count = changed.count_ones() as usize;
                }
                tell(&mut answer, 0, &[changed]);
                count
            }
        };
        bits::acquire();
        Ok(changed)
    }

    fn clear(&mut self) {
        self.words.bits.clear();
    }
}

impl LineWords for BloomBits {
    type Word = AtomicU64;
    const TYPE: &'static str = "ConcurrentBloom";
    const UNIT: Unit = Unit::Bit;

    #[inline(always)]
    fn lookups(&self) -> &Lookups<AtomicU64> {
        &self.kernels.lookups
    }

    #[inline(always)]
    fn lines(&self) -> Lines<'_, AtomicU64> {
        self.bits.shared()
    }

    // A call, so that the kernels of batches are compiled with this crate: other crates share them.
    #[inline(never)]
    fn contains_hashes(&self, hashes: &[u64], found: &mut [u64]) {
        self.lookups().contains_hashes(self.lines(), hashes, found);
    }

    fn copy(&self) -> Result<Self, BuildError> {
        Ok(Self {
            bits: self.bits.try_clone()?,
            ..*self
        })
    }

    fn set_kernels(&mut self, layout: LineLayout, isa: Isa) {
        self.kernels = several::kernels(layout, isa);
    }
}

impl OwnWords for BloomBits {
    const KIND: Kind = Kind::Bloom;

    fn empty(layout: LineLayout) -> Result<Self, BuildError> {
        Ok(Self {
            bits: Bits::new(layout.blocks)?,
            kernels: several::kernels(layout, Isa::best()),
            lines_per_key: layout.shape.lines,
        })
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.lines().all().as_flattened().iter().map(Load::load)
    }

    fn store_words(&mut self, first: usize, words: impl Iterator<Item = u64>) {
        self.bits.store_words(first, words);
    }

    fn replace(&mut self, others: impl Iterator<Item = u64>, new: impl FnMut(u64, u64) -> u64) {
        self.bits.replace(others, new);
    }

    fn add(&self, other: &Self) -> bool {
        let changed = self.bits.or_from(&other.bits, 0..self.bits.blocks());
        bits::acquire_if(!changed);
        changed
    }

    fn united(a: u64, b: u64) -> u64 {
        a | b
    }

    fn common(a: u64, b: u64) -> u64 {
        a & b
    }
}

/// The fill of each block.
impl<'a, S> Snapshot<'a, ConcurrentBloom<S>> {
    /// The number of set bits of each block, 0 to 512, from the first block to the last. It shows
    /// how evenly the keys spread; [`fill_ratio`](crate::Statistics::fill_ratio) is their mean.
    ///
    /// Beside inserts, each word is some value that it had meanwhile.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.snapshot().block_ones().all(|ones| ones == 0));
    /// filter.insert("a");
    /// let ones: Vec<u32> = filter.snapshot().block_ones().collect();
    /// assert_eq!(ones.len(), filter.layout().blocks);
    /// assert_eq!(ones.iter().filter(|&&ones| ones > 0).count(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn block_ones(self) -> impl Iterator<Item = u32> + use<'a, S> {
        self.0.bits().words().map(|line| {
            let ones = bits::ones_of(&line) as u32;
            bits::acquire();
            ones
        })
    }
}

/// Inserts without atomics.
#[allow(private_bounds, reason = "all filters that insert so and take every key")]
impl<E: InsertMut, S> Exclusive<'_, E, S> {
    /// [`insert_batch`](ConcurrentBloom::insert_batch) without atomics: [up to four times as
    /// fast](crate::docs::cost#inserting-in-bulk). In a `ConcurrentBloom` beyond 1 MiB, a batch of
    /// at least 4 keys per line is sorted first, which needs at most as much memory as the filter.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, Hashed};
    ///
    /// let mut filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.exclusive().insert_batch(Hashed::slice(&hashes)), 2);
    /// assert_eq!(filter.exclusive().insert_batch(&["b", "c"]), 1);
    /// assert!(filter.contains("b") && filter.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Key<S>>(&mut self, keys: &[K]) -> usize {
        let Filter { engine, hasher, isa } = &mut *self.0;
        engine.insert_mut(&K::source(keys, hasher, *isa), None)
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter, like [`insert_batch_into`](ConcurrentBloom::insert_batch_into). It never sorts, and
    /// allocates nothing.
    ///
    /// # Panics
    ///
    /// If `new` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.exclusive().insert_batch_into(&["a", "a", "b"], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&mut self, keys: &[K], new: impl Answers) -> usize {
        let Filter { engine, hasher, isa } = &mut *self.0;
        let source = K::source(keys, hasher, *isa);
        answered_into(*isa, keys.len(), new, |answer| engine.insert_mut(&source, answer))
    }
}

impl<S> ConcurrentBloom<S> {
    pub(crate) fn bits(&self) -> &Bits {
        &self.engine.words.bits
    }
}
