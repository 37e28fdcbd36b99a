//! The engine of a [`SplitBlockBloom`](super::SplitBlockBloom) and of a
//! [`SplitBlockView`](super::SplitBlockView), and their hasher: with these, each wraps a
//! [`Filter`](lanebloom::Filter), which has the lookups, the batches and the statistics.
//! `kernel.rs` works on the blocks.

use super::block::{BLOCK_BYTES, Block, block_index};
use super::kernel;
use super::sizing::{self, MOST_BLOCKS};
use super::xxh64;
use alloc::format;
use core::convert::Infallible;
use core::num::NonZeroUsize;
use core::{array, fmt};
use lanebloom::codec::Identity;
use lanebloom::hash::FilterHasher;
use lanebloom::internal::bounds::{Answer, Load, Scratch, Source};
use lanebloom::internal::traits::{Engine, Insert, InsertMut, Union};
use lanebloom::internal::{
    AtomicU64, Bits, Hint, Isa, Plan, Prefetching, Sets, acquire_if, assert_same_length, into_ok,
};
use lanebloom::{BuildError, Funnel, IncompatibleError, KeyHasher, Statistics};

/// The hasher of split-block filters: XXH64 with seed 0 of a key's bytes, as [`hash`](super::hash)
/// makes it.
///
/// ```
/// use lanebloom::KeyHasher;
/// use lanebloom_formats::splitblock::{Xxh64, hash};
///
/// assert_eq!(Xxh64.hash_key("ann"), hash("ann"));
/// let mut hashes = [0; 2];
/// Xxh64.hash_batch(&[7_i64, 8], &mut hashes);
/// assert_eq!(hashes, [7_i64, 8].map(|key| hash(&key)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Xxh64;

impl KeyHasher for Xxh64 {
    #[inline]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        xxh64::of_key(key)
    }

    #[inline]
    fn hash_batch_by<K: Funnel>(&self, isa: Isa, keys: &[K], out: &mut [u64]) {
        assert_same_length(keys.len(), out.len());
        xxh64::of_batch(isa, keys, out);
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

/// The engine of a split-block filter: whole blocks, which `C` holds. It is part of the types that
/// [`with`](super::SplitBlockBloom::with) and [`exclusive`](super::SplitBlockBloom::exclusive)
/// return.
pub struct SplitBlock<C> {
    pub(super) content: C,
    pub(super) isa: Isa,
}

/// The memory that holds the blocks.
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

impl Owned {
    /// Blocks without a bit set: at least one.
    pub(super) fn new(blocks: usize, expected_keys: usize) -> Result<Self, BuildError> {
        if blocks > MOST_BLOCKS {
            return Err(BuildError::new(format!(
                "{blocks} blocks are more than {MOST_BLOCKS}, the limit"
            )));
        }
        let blocks = NonZeroUsize::new(blocks).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            bits: Bits::new(blocks.get().div_ceil(2))?,
            blocks,
            expected_keys,
        })
    }
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
            isa: Isa::best(),
        }
    }

    /// The blocks.
    #[inline(always)]
    pub(super) fn blocks(&self) -> &[Block<C::Word>] {
        self.content.blocks()
    }

    /// Prefetches the blocks of a few hashes, unless they are in the caches. (Zen 4, 16 MiB, ns per
    /// hash without and with: 31 hashes 8.0 and 6.1, 16 10.4 and 8.1. 2 to 4 do not differ.)
    #[inline(always)]
    fn prefetch_few(&self, hashes: &[u64]) {
        let blocks = self.blocks();
        if Prefetching::prefetches(self.memory_bytes()) {
            for hash in hashes {
                Hint::L1.prefetch(&raw const blocks[block_index(*hash, blocks.len())]);
            }
        }
    }

    /// Whether the hash may be there. The caller acquires.
    #[inline(always)]
    fn holds(&self, hash: u64) -> bool {
        kernel::contains(self.isa, self.blocks(), hash)
    }
}

#[doc(hidden)]
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
        let prefetching = Prefetching::lookups(self.memory_bytes(), 1);
        let each = &mut |at, _, bitmap| found[at / 64] = bitmap;
        kernel::contains_each(self.isa, self.blocks(), prefetching, hashes, each);
        acquire_if(C::SHARED);
    }

    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_plain(hashes)
    }

    fn contains_few_bitmap(&self, plan: Plan, hashes: &[u64]) -> u64 {
        let mut found = [0];
        match plan {
            Plan::Single | Plan::Few => {
                self.prefetch_few(hashes);
                for (i, hash) in hashes.iter().enumerate() {
                    found[0] |= u64::from(self.holds(*hash)) << i;
                }
                acquire_if(C::SHARED);
            }
            _ => self.contains_bitmap(hashes, &mut found),
        }
        found[0]
    }

    fn contains_few(&self, plan: Plan, hashes: &[u64], found: &mut [bool]) {
        match plan {
            Plan::Single | Plan::Few => {
                self.prefetch_few(hashes);
                for (hash, found) in hashes.iter().zip(found) {
                    *found = self.holds(*hash);
                }
                acquire_if(C::SHARED);
            }
            _ => self.isa.unpack()(&[self.contains_few_bitmap(plan, hashes)], found),
        }
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
            isa: self.isa,
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("fill_ratio", &self.statistics().fill_ratio);
    }

    fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
    }
}

impl SplitBlock<Owned> {
    /// Inserts. Calls `each(start, len, changed)` for every tile.
    fn insert_each(&self, hashes: &[u64], each: &mut dyn FnMut(usize, usize, u64)) {
        let prefetching = Prefetching::changes(self.memory_bytes(), 1);
        kernel::insert_each(self.isa, self.blocks(), prefetching, hashes, each);
        acquire_if(true);
    }
}

#[doc(hidden)]
impl InsertMut for SplitBlock<Owned> {
    fn insert_mut(&mut self, source: &impl Source, answer: Answer<'_>) -> usize {
        let prefetching = Prefetching::changes(self.memory_bytes(), 1);
        let Self { content, isa } = self;
        match (answer, content.bits.fours_mut()) {
            (None, Some(blocks)) => {
                let (blocks, mut new) = (&mut blocks[..content.blocks.get()], 0);
                source.for_each_chunk(usize::MAX, |_, hashes| {
                    new += kernel::insert_all_mut(*isa, blocks, prefetching, hashes);
                });
                new
            }
            (answer, _) => into_ok(self.insert_flagged(source, answer)),
        }
    }
}

#[doc(hidden)]
impl Insert for SplitBlock<Owned> {
    type Error = Infallible;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, Infallible> {
        let changed = kernel::insert(self.isa, self.blocks(), hash);
        acquire_if(!changed);
        Ok(changed)
    }

    fn insert_flagged(
        &self,
        source: &impl Source,
        mut answer: Option<&mut dyn FnMut(usize, &[u64])>,
    ) -> Result<usize, Infallible> {
        if Plan::of_keys(source.len()).is_few() {
            let mut changed = 0;
            let mut space = Scratch::<{ Prefetching::TILE }>::default();
            let hashes = source.hashes(0..source.len(), &mut space);
            self.insert_each(hashes, &mut |_, _, bits| changed = bits);
            if let (Some(answer), 1..) = (answer, source.len()) {
                answer(0, &[changed]);
            }
            return Ok(changed.count_ones() as usize);
        }
        let mut new = 0;
        source.for_each_chunk(usize::MAX, |start, hashes| {
            self.insert_each(hashes, &mut |at, _, changed| {
                new += changed.count_ones() as usize;
                if let Some(answer) = &mut answer {
                    answer(start + at, &[changed]);
                }
            });
        });
        Ok(new)
    }

    fn clear(&mut self) {
        self.content.bits.clear();
    }
}

#[doc(hidden)]
impl Union for SplitBlock<Owned> {
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (self.blocks().len(), other.blocks().len());
        if ours == theirs {
            return Ok(());
        }
        Err(IncompatibleError::new(format!(
            "the other filter's layout differs: {theirs} blocks there, {ours} here"
        )))
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let (ours, theirs) = (&self.content.bits, &other.content.bits);
        let changed = ours.or_from(theirs, 0..ours.blocks());
        acquire_if(!changed);
        Ok(changed)
    }

    fn same(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.content, &other.content);
        let same = ours.blocks == theirs.blocks && ours.bits.words().eq(theirs.bits.words());
        acquire_if(true);
        same
    }
}

// The block of a hash is the floor of its upper half times `blocks / 2^32`. With `blocks / f`
// blocks, it is the floor of that block divided by `f`. So `f` neighbouring blocks, united, are
// the block that their keys would have filled.
#[doc(hidden)]
impl Sets for SplitBlock<Owned> {
    type Block = Block<u64>;

    fn blocks(&self) -> impl Iterator<Item = Block<u64>> {
        let load = |block: &Block<_>| array::from_fn(|i| Load::load(&block[i]));
        self.content.blocks().iter().map(load)
    }

    fn keys_for(&self, ones: u64) -> usize {
        sizing::keys_for(ones, self.content.blocks.get())
    }

    fn keep_common(&mut self, other: &Self) -> bool {
        self.content.bits.and_from(&other.content.bits)
    }

    /// A key has a bit in each word of 32.
    fn share_no_key(&self, other: &Self) -> bool {
        let share = |word: u64| word as u32 != 0 && word >> 32 != 0;
        !self.both(other).any(|(a, b)| (0..4).all(|i| share(a[i] & b[i])))
    }

    fn blocks_to_fold(&self) -> (usize, &'static str) {
        (self.content.blocks.get(), "")
    }

    fn rate_after(&self, factor: usize) -> f64 {
        let blocks = self.content.blocks.get() / factor;
        sizing::statistics_of(united(self, factor).flatten(), blocks).false_positive_rate
    }

    fn keys_after(&self, factor: usize, rate: f64) -> usize {
        usize::max(sizing::keys(self.content.blocks.get() / factor, rate), 1)
    }

    fn folded(&self, factor: usize, expected_keys: usize) -> Result<Self, BuildError> {
        let mut content = Owned::new(self.content.blocks.get() / factor, expected_keys)?;
        content.bits.store_words(0, united(self, factor).flatten());
        Ok(Self { content, ..*self })
    }
}

/// Every `factor` blocks as one.
fn united(engine: &SplitBlock<Owned>, factor: usize) -> impl Iterator<Item = Block<u64>> {
    let mut blocks = Sets::blocks(engine);
    let unite = |a: Block<u64>, b: Block<u64>| array::from_fn(|i| a[i] | b[i]);
    core::iter::from_fn(move || blocks.by_ref().take(factor).reduce(unite))
}
