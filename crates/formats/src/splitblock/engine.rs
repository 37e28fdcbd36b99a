//! The engine of a [`SplitBlockBloom`](super::SplitBlockBloom) and of a
//! [`SplitBlockView`](super::SplitBlockView), and their hasher: with these, both are a
//! [`Filter`](lanebloom::Filter), which has the lookups, the batches and the statistics.
//! `kernel.rs` works on the blocks.

use super::block::{BLOCK_BYTES, Block, block_index};
use super::kernel::Level;
use super::{sizing, xxh64};
use core::fmt;
use core::num::NonZeroUsize;
use lanebloom::codec::Identity;
use lanebloom::hash::FilterHasher;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{
    AccessPlan, AtomicU64, Bits, Hint, Isa, Plan, acquire_if, assert_same_length, is_cached, prefetch, unpack,
};
use lanebloom::traits::Engine;
use lanebloom::{BuildError, Funnel, KeyHasher, Statistics};

/// The hasher of split-block filters: XXH64 with seed 0 of a key's bytes, as [`hash`](super::hash)
/// makes it.
///
/// ```
/// use lanebloom::KeyHasher;
/// use lanebloom_formats::splitblock::{Xxh64, hash};
///
/// assert_eq!(Xxh64::new().hash_key("ann"), hash("ann"));
/// ```
#[derive(Clone, Copy)]
pub struct Xxh64 {
    pub(super) level: Level,
}

impl Xxh64 {
    /// The hasher, by the best instructions of this machine.
    ///
    /// ```
    /// use lanebloom::KeyHasher;
    /// use lanebloom_formats::splitblock::{Xxh64, hash};
    ///
    /// let mut hashes = [0; 2];
    /// Xxh64::new().hash_batch(&[7_i64, 8], &mut hashes);
    /// assert_eq!(hashes, [7_i64, 8].map(|key| hash(&key)));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self { level: Level::best() }
    }
}

impl Default for Xxh64 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Xxh64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Xxh64")
    }
}

impl KeyHasher for Xxh64 {
    #[inline]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        xxh64::of_key(key)
    }

    #[inline]
    fn hash_batch_by<K: Funnel>(&self, _: Isa, keys: &[K], out: &mut [u64]) {
        assert_same_length(keys.len(), out.len());
        self.level.hash_batch(keys, out);
    }
}

impl FilterHasher for Xxh64 {
    fn identity(&self) -> Identity {
        Identity::Other
    }

    fn fingerprint(&self) -> u64 {
        self.hash_key("lanebloom hasher print")
    }
}

/// The engine of a split-block filter: whole blocks, which `C` holds.
///
/// ```
/// use lanebloom::Filter;
/// use lanebloom::traits::Engine;
/// use lanebloom_formats::splitblock::Xxh64;
/// use lanebloom_formats::{SplitBlockBloom, SplitBlockView};
///
/// fn present<E: Engine>(filter: &Filter<E, Xxh64>, names: &[&str]) -> usize {
///     names.iter().filter(|name| filter.contains(**name)).count()
/// }
///
/// let filter = SplitBlockBloom::with_bytes(1024)?;
/// filter.insert("ann");
/// let bitset = filter.to_bitset();
/// let view = SplitBlockView::new(&bitset)?;
/// assert_eq!(present(&filter, &["ann", "eve"]), 1);
/// assert_eq!(present(&view, &["ann", "eve"]), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SplitBlock<C> {
    pub(super) content: C,
    pub(super) level: Level,
}

/// What holds the blocks.
pub trait Content: Sized {
    /// The words of a block.
    type Word: Load;
    /// The name of the filter type.
    const NAME: &'static str;
    /// Whether other threads may insert meanwhile.
    const SHARED: bool;

    /// At least one.
    fn blocks(&self) -> &[Block<Self::Word>];

    fn expected_keys(&self) -> usize;

    fn try_clone(&self) -> Result<Self, BuildError>;
}

/// The blocks of a [`SplitBlockBloom`](super::SplitBlockBloom).
pub struct Owned {
    pub(super) bits: Bits,
    /// Half a line each; the last line may have one.
    pub(super) blocks: NonZeroUsize,
    pub(super) expected_keys: usize,
}

impl Content for Owned {
    type Word = AtomicU64;
    const NAME: &'static str = "SplitBlockBloom";
    const SHARED: bool = true;

    #[inline(always)]
    fn blocks(&self) -> &[Block<AtomicU64>] {
        &self.bits.fours()[..self.blocks.get()]
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            bits: self.bits.try_clone()?,
            ..*self
        })
    }
}

/// The blocks of a [`SplitBlockView`](super::SplitBlockView).
impl Content for &[Block<[u8; 8]>] {
    type Word = [u8; 8];
    const NAME: &'static str = "SplitBlockView";
    const SHARED: bool = false;

    #[inline(always)]
    fn blocks(&self) -> &[Block<[u8; 8]>] {
        self
    }

    fn expected_keys(&self) -> usize {
        sizing::keys(self.len(), 0.01)
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(self)
    }
}

impl<C: Content> SplitBlock<C> {
    pub(super) fn new(content: C) -> Self {
        Self {
            content,
            level: Level::best(),
        }
    }

    /// The blocks.
    #[inline(always)]
    pub(super) fn blocks(&self) -> &[Block<C::Word>] {
        self.content.blocks()
    }

    /// Whether a prefetch is not worthwhile.
    #[inline(always)]
    fn is_cached(&self) -> bool {
        is_cached(self.blocks().len() * BLOCK_BYTES)
    }

    /// Prefetches the blocks of a few hashes, unless they are in the caches.
    #[inline(always)]
    fn prefetch_few(&self, hashes: &[u64]) {
        let blocks = self.blocks();
        if !Plan::of_keys(hashes.len()).is_single() && !self.is_cached() {
            for hash in hashes {
                prefetch(&raw const blocks[block_index(*hash, blocks.len())], Hint::L1);
            }
        }
    }

    /// Whether the hash may be there. The caller acquires.
    #[inline(always)]
    fn holds(&self, hash: u64) -> bool {
        self.level.contains(self.blocks(), hash)
    }
}

impl<C: Content> Engine for SplitBlock<C> {
    const NAME: &'static str = C::NAME;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let found = self.holds(hash);
        acquire_if(C::SHARED && found);
        found
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        if hashes.is_empty() {
            return;
        }
        let access = AccessPlan::lookups(self.is_cached(), 1);
        let each = &mut |at, _, bitmap| found[at / 64] = bitmap;
        self.level.contains_each(self.blocks(), access, hashes, each);
        acquire_if(C::SHARED);
    }

    fn contains_few_bitmap(&self, hashes: &[u64]) -> u64 {
        if !Plan::of_scalar(hashes.len()).is_few() {
            let mut found = [0];
            self.contains_bitmap(hashes, &mut found);
            return found[0];
        }
        self.prefetch_few(hashes);
        let bit = |(i, hash): (usize, &u64)| u64::from(self.holds(*hash)) << i;
        let found = hashes.iter().enumerate().map(bit).fold(0, |found, bit| found | bit);
        acquire_if(C::SHARED);
        found
    }

    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        if !Plan::of_scalar(hashes.len()).is_few() {
            return unpack()(&[self.contains_few_bitmap(hashes)], found);
        }
        self.prefetch_few(hashes);
        for (hash, found) in hashes.iter().zip(found) {
            *found = self.holds(*hash);
        }
        acquire_if(C::SHARED);
    }

    fn expected_keys(&self) -> usize {
        self.content.expected_keys()
    }

    fn memory_bytes(&self) -> usize {
        self.blocks().len() * BLOCK_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.blocks().as_flattened().iter().all(|word| word.load() == 0);
        acquire_if(C::SHARED);
        empty
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        sizing::rate(keys as f64 / self.blocks().len() as f64)
    }

    fn statistics(&self) -> Statistics {
        let words = self.blocks().as_flattened().iter().map(Load::load);
        sizing::statistics_of(words, self.blocks().len())
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            content: self.content.try_clone()?,
            level: self.level,
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("fill_ratio", &self.fill_ratio());
    }
}
