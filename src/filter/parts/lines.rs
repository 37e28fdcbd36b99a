//! The common part of engines whose cells lie in lines of the cache: the bits of a
//! [`ConcurrentBloom`](crate::ConcurrentBloom), the counters of a
//! [`CountingBloom`](crate::CountingBloom), and the snapshot of a [`BloomView`](crate::BloomView).
//! [`Bloom`] has lookups, statistics, comparison and snapshots. Each type of words has its
//! kernels, and inserts of its own.

use crate::codec::{
    AskHasher, BlocksHeader, Hashing, Input, Kind, Out, admit, read_header, read_words, snapshot_bytes, write_words,
};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::filter::Statistics;
use crate::filter::parts::several;
use crate::filter::traits::{Encode, Engine, FixedSize, Planned, Union};
use crate::geometry::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS, Layout};
use crate::geometry::sizing::{Cell, Request};
use crate::kernel::{Isa, Kernels, Lookups, Plan};
use crate::words::bits::{self, Bits, Lines, Load};
use core::fmt;

/// The engine of [`ConcurrentBloom`](crate::ConcurrentBloom): bits in lines of 64 bytes. With other
/// words, that of its relatives.
// `W` has a default, so that compilers print `Filter<Bloom>` in messages.
#[derive(Clone, Copy)]
pub struct Bloom<W = BloomBits> {
    pub(crate) words: W,
    pub(crate) layout: Layout,
    pub(crate) expected_keys: usize,
}

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
    const CELL: Cell;

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

fn fill_ratio(ones: u64, layout: Layout) -> f64 {
    ones as f64 / (layout.blocks * LINE_BITS) as f64
}

/// Whether a key has a line in each half. (Its counters lie in one line.)
#[inline(always)]
fn has_two_lines<W: LineWords>(bloom: &Bloom<W>) -> bool {
    !W::Word::COUNTERS && bloom.layout.shape.lines > 1
}

/// Whether each of a few hashes is found in both lines, as a bitmap.
#[inline(never)]
fn both_of_few<W: LineWords>(bloom: &Bloom<W>, hashes: &[u64]) -> u64 {
    let mut found = [0];
    several::contains_hashes(bloom.words.lookups(), bloom.words.lines(), hashes, &mut found);
    found[0]
}

impl<W: LineWords> Engine for Bloom<W> {
    const NAME: &'static str = W::TYPE;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let found = self.words.lookups().contains(self.words.lines(), hash);
        if W::Word::SHARED {
            bits::acquire_if(found);
        }
        found
    }

    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        self.words.lookups().ladder.plan(hashes)
    }

    #[inline(always)]
    fn contains_each<P>(&self, hashes: impl Iterator<Item = (u64, P)>, answer: impl FnMut(P, bool)) {
        self.words.lookups().contains_each(self.words.lines(), hashes, answer);
        bits::acquire();
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        if has_two_lines(self) {
            several::contains_hashes(self.words.lookups(), self.words.lines(), hashes, found);
        } else {
            self.words.contains_hashes(hashes, found);
        }
        bits::acquire();
    }

    #[inline]
    fn contains_few_bitmap(&self, plan: Plan, hashes: &[u64]) -> u64 {
        let lookups = self.words.lookups();
        let found = if has_two_lines(self) && !plan.is_single() {
            both_of_few(self, hashes)
        } else {
            lookups.contains_few_bitmap(plan, self.words.lines(), hashes)
        };
        bits::acquire();
        found
    }

    #[inline]
    fn contains_few(&self, plan: Plan, hashes: &[u64], found: &mut [bool]) {
        if has_two_lines(self) && !plan.is_single() {
            self.words.lookups().isa().unpack()(&[both_of_few(self, hashes)], found);
        } else {
            let lookups = self.words.lookups();
            lookups.contains_few(plan, self.words.lines(), hashes, found);
        }
        bits::acquire();
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.layout.blocks * LINE_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.words.lines().words().all(|line| line == [0; LINE_WORDS]);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        let ones = self.words.lines().ones();
        bits::acquire();
        fill_ratio(ones, self.layout)
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_of(W::CELL, keys)
    }

    /// The exact chance, computed from the words. (Here a counter above 0 has all its bits set.)
    fn current_false_positive_rate(&self) -> f64 {
        let rate = self.layout.mean_rate(self.words.lines().words());
        bits::acquire();
        rate
    }

    fn statistics(&self) -> Statistics {
        let (mut ones, mut total) = (0, 0);
        let lines = self.words.weighed().map(|(line, weight)| {
            ones += bits::ones_of(&line);
            total += weight;
            line
        });
        let false_positive_rate = self.layout.mean_rate(lines);
        bits::acquire();
        Statistics::new(
            fill_ratio(ones, self.layout),
            W::keys_of(self.layout, total),
            false_positive_rate,
        )
    }

    fn estimated_len(&self) -> usize {
        let total = self.words.weighed().map(|(_, weight)| weight).sum();
        bits::acquire();
        W::keys_of(self.layout, total)
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            words: self.words.copy()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        if self.layout.shape.lines > 1 {
            f.field("lines_per_key", &self.layout.shape.lines);
        }
        f.field("words_per_key", &self.layout.shape.words_per_key())
            .field("bits_per_line", &self.layout.shape.bits)
            .field("fill_ratio", &self.fill_ratio());
        self.words.debug_more(f);
    }

    fn set_isa(&mut self, isa: Isa) {
        self.words.set_kernels(self.layout, isa);
    }
}

// Bits lie in two lines where that is worth it.
impl<W: OwnWords> Planned for Bloom<W> {
    type Options = ();

    fn build(request: Request, (): ()) -> Result<Self, BuildError> {
        let (layout, expected_keys) = plan::<W>(request)?;
        empty(layout, expected_keys)
    }
}

/// The layout of such an engine, and the number of keys for which it is planned.
pub(crate) fn plan<W: LineWords>(request: Request) -> Result<(Layout, usize), BuildError> {
    let cell = W::CELL;
    Request { cell, ..request }.solve()
}

impl<W: OwnWords> Union for Bloom<W> {
    /// Whether both have the same layout and the same content.
    fn same(&self, other: &Self) -> bool {
        let same = self.layout == other.layout && self.words.words().eq(other.words.words());
        bits::acquire();
        same
    }

    /// Fails if the layouts differ.
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (self.layout, other.layout);
        if ours == theirs {
            return Ok(());
        }
        Err(IncompatibleError::differs("layout", theirs, ours))
    }

    /// Adds the content of `other`, of the same layout; returns whether that changed this engine.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Ok(self.words.add(&other.words))
    }
}

pub(crate) fn empty<W: OwnWords>(layout: Layout, expected_keys: usize) -> Result<Bloom<W>, BuildError> {
    Ok(Bloom {
        words: W::empty(layout)?,
        layout,
        expected_keys,
    })
}

/// `docs/FORMAT.md` describes the bytes.
impl<W: OwnWords> Encode for Bloom<W> {
    type Size = FixedSize;
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(self.layout.blocks * LINE_WORDS)
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let header = BlocksHeader {
            layout: self.layout,
            expected_keys: self.expected_keys,
            rate: self.false_positive_rate_at(self.expected_keys),
            columns: 0,
        };
        let own = header.own(W::KIND, hashing);
        write_words(out, &own.to_bytes(), header.words(), self.words.words())
    }

    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, W::KIND)?;
        let BlocksHeader {
            layout, expected_keys, ..
        } = header.blocks()?;
        hasher(header.hashing)?;
        let words = layout.blocks * LINE_WORDS;
        admit(input, header.len as usize, 8 * words as u64, limit)?;
        let engine = empty::<W>(layout, expected_keys);
        let mut engine = engine.map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, &mut |first, words| {
            engine.words.store_words(first, words.iter().map(Load::load));
        })?;
        Ok(engine)
    }
}
