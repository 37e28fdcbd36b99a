//! Words in lines of the cache, with the kernels that look them up: the bits of a
//! [`ConcurrentBloom`](crate::ConcurrentBloom), the counters of a
//! [`CountingBloom`](crate::CountingBloom), and the snapshot of a [`BloomView`](crate::BloomView).
//! The engine over them is [`Bloom`](crate::bloom::Bloom).

use crate::codec::Kind;
use crate::error::BuildError;
use crate::filter::parts::several;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::sizing::{Request, Unit};
use crate::kernel::{Isa, Kernels, Lookups, Plan};
use crate::words::bits::{self, Bits, Lines, Load};
use core::fmt;

/// Bits, and the kernels that set them and look them up.
#[doc(hidden)]
pub struct BloomBits {
    pub(crate) bits: Bits,
    pub(crate) kernels: Kernels,
    /// 1 or 2: with 2, the kernels are those of one half of the lines.
    pub(crate) lines_per_key: usize,
}

impl BloomBits {
    #[inline(always)]
    pub(crate) fn insert(&self, hash: u64) -> bool {
        let (lines, kernels) = (self.bits.shared(), &self.kernels);
        match kernels.lookups.inlined(lines, hash) {
            Some(true) => false,
            _ if self.lines_per_key > 1 => several::insert_called(kernels, lines, hash),
            _ => kernels.insert_missing(lines, hash),
        }
    }

    /// Whether each hash's insert changed the bits, for a few.
    #[inline]
    pub(crate) fn insert_few(&self, plan: Plan, hashes: &[u64]) -> u64 {
        if self.lines_per_key == 1 {
            return self.kernels.insert_few(plan, self.bits.shared(), hashes);
        }
        let mut changed = [0];
        several::insert_hashes(&self.kernels, self.bits.shared(), hashes, &mut changed);
        changed[0]
    }

    /// Whether each hash's insert changed the bits, as a bitmap.
    #[inline]
    pub(crate) fn insert_hashes(&self, hashes: &[u64], changed: &mut [u64]) {
        match self.lines_per_key {
            1 => self.kernels.insert_hashes(self.bits.shared(), hashes, changed),
            _ => several::insert_hashes(&self.kernels, self.bits.shared(), hashes, changed),
        }
    }
}

/// Words in lines, and the kernels that look them up.
pub(crate) trait LineWords: Sized {
    /// A word of 64 bits, as it lies in memory.
    type Word: Load + 'static;

    /// The name of the filter type.
    const TYPE: &'static str;
    const UNIT: Unit;

    fn lookups(&self) -> &Lookups<Self::Word>;

    fn lines(&self) -> Lines<'_, Self::Word>;

    /// Whether each hash is found in one line, as a bitmap.
    #[inline]
    fn contains_hashes(&self, hashes: &[u64], found: &mut [u64]) {
        self.lookups().contains_hashes(self.lines(), hashes, found);
    }

    /// Every line as lookups see it, and its weight: its ones, or the sum of its counters.
    fn weighed(&self) -> impl Iterator<Item = ([u64; LINE_WORDS], u64)> {
        self.lines().words().map(|line| (line, bits::ones_of(&line)))
    }

    /// The number of keys that leave lines of this weight.
    fn keys_of(layout: Layout, weight: u64) -> usize {
        layout.keys_for(weight)
    }

    fn copy(&self) -> Result<Self, BuildError>;

    /// Replaces the kernels by those of `isa`.
    fn set_kernels(&mut self, layout: Layout, isa: Isa);

    /// The statistics that only this engine has.
    fn debug_more(&self, _: &mut fmt::DebugStruct<'_, '_>) {}
}

/// Words that the engine owns: it can be compared, united and saved.
pub(crate) trait OwnWords: LineWords {
    const KIND: Kind;

    /// Words that are all 0.
    fn empty(layout: Layout) -> Result<Self, BuildError>;

    /// The words of a snapshot.
    fn words(&self) -> impl Iterator<Item = u64>;

    /// Sets words from `first` on.
    fn store_words(&mut self, first: usize, words: impl Iterator<Item = u64>);

    /// Replaces each word of a snapshot by what `new` makes of it and of one of `others`.
    fn replace(&mut self, others: impl Iterator<Item = u64>, new: impl FnMut(u64, u64) -> u64);

    /// Adds the content of `other`, of the same layout; returns whether that changed these words.
    fn add(&self, other: &Self) -> bool;

    /// The word that holds the keys of both words.
    fn united(a: u64, b: u64) -> u64;

    /// The smallest word that holds every key of both words.
    fn common(a: u64, b: u64) -> u64;
}

/// The layout of an engine over such words, and the number of keys for which it is planned.
pub(crate) fn plan<W: LineWords>(request: Request) -> Result<(Layout, usize), BuildError> {
    let unit = W::UNIT;
    Request { unit, ..request }.solve()
}
