//! The common part of engines whose cells lie in lines of the cache: the bits of a
//! [`ConcurrentBloom`](crate::ConcurrentBloom), the counters of a
//! [`CountingBloom`](crate::CountingBloom), and the snapshot of a
//! [`BloomView`](crate::BloomView). It has lookups, figures, comparison and snapshots. An engine
//! supplies its words, their kernels, and its inserts.

use super::engine::{Engine, Estimate, FixedSize, Insert, Stored, Union, sealed};
use super::{Figures, Filter};
use crate::codec::{Hashing, Header, Input, Kind, Out, SNAPSHOT_HEADER, admit, read_words, write_words};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::geometry::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS, Layout};
use crate::geometry::sizing::Cell;
use crate::hash::Murmur3;
use crate::kernel::{Isa, Lookups};
use crate::words::bits::{self, Lines, Load};
use alloc::vec::Vec;
use core::fmt;

/// An engine that keeps bits or counters in lines of 64 bytes.
///
/// It cannot be implemented further.
pub trait Lined: sealed::Sealed + Sized {
    /// A word of 64 bits, as it lies in memory.
    #[doc(hidden)]
    type Word: Load + 'static;

    #[doc(hidden)]
    const TYPE: &'static str;
    #[doc(hidden)]
    const CELL: Cell;

    #[doc(hidden)]
    fn layout(&self) -> Layout;

    #[doc(hidden)]
    fn planned_keys(&self) -> usize;

    #[doc(hidden)]
    fn lookups(&self) -> &Lookups<Self::Word>;

    #[doc(hidden)]
    fn lines(&self) -> Lines<'_, Self::Word>;

    /// Every line as lookups see it, and its weight: its ones, or the sum of its counters.
    #[doc(hidden)]
    fn weighed(&self) -> impl Iterator<Item = ([u64; LINE_WORDS], u64)> {
        self.lines().words().map(|line| (line, bits::ones_of(&line)))
    }

    /// The number of keys that leave lines of this weight.
    #[doc(hidden)]
    fn keys_of(&self, weight: u64) -> usize {
        self.layout().keys_for(weight)
    }

    #[doc(hidden)]
    fn copy(&self) -> Result<Self, BuildError>;

    /// Replaces the kernels by those of `isa`.
    #[doc(hidden)]
    fn set_kernels(&mut self, isa: Isa);

    /// The figures that only this engine has.
    #[doc(hidden)]
    fn debug_more(&self, _: &mut fmt::DebugStruct<'_, '_>) {}
}

/// An engine that owns its lines: it can be compared, united and saved.
pub trait OwnLines: Lined {
    #[doc(hidden)]
    const KIND: Kind;

    /// An empty engine.
    #[doc(hidden)]
    fn empty(layout: Layout, expected_keys: usize) -> Result<Self, BuildError>;

    /// The words of a snapshot.
    #[doc(hidden)]
    fn words(&self) -> impl Iterator<Item = u64>;

    /// Sets words from `first` on.
    #[doc(hidden)]
    fn store_words(&mut self, first: usize, words: impl Iterator<Item = u64>);

    /// Adds the content of `other`, of the same layout; returns whether that changed this engine.
    #[doc(hidden)]
    fn add(&self, other: &Self) -> bool;
}

/// The layout.
impl<E: Lined, S> Filter<E, S> {
    /// The words that a key touches, in all of its lines: 1, 2, 4 or 8.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.words_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.engine.layout().shape.words_per_key()
    }

    /// The lines that a key touches: 1 or 2.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.lines_per_key(), 1);
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 1e-6)?.lines_per_key(), 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn lines_per_key(&self) -> usize {
        self.engine.layout().shape.lines
    }

    /// The number of bits, or counters, that a key throws in each of its words (two throws may hit
    /// the same one).
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// assert_eq!(ConcurrentBloom::with_capacity(1000, 0.01)?.bits_per_word(), 3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bits_per_word(&self) -> usize {
        self.engine.layout().shape.bits
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
        self.engine.layout().blocks
    }
}

fn fill_ratio(ones: u64, layout: Layout) -> f64 {
    ones as f64 / (layout.blocks * LINE_BITS) as f64
}

impl<T: Lined> Engine for T {
    const NAME: &'static str = T::TYPE;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let found = self.lookups().contains(self.lines(), hash);
        if T::Word::SHARED {
            bits::acquire_if(found);
        }
        found
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        self.lookups().contains_hashes(self.lines(), hashes, found);
        bits::acquire();
    }

    #[inline]
    fn contains_few_bitmap(&self, hashes: &[u64]) -> u64 {
        let found = self.lookups().contains_few_bitmap(self.lines(), hashes);
        bits::acquire();
        found
    }

    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        self.lookups().contains_few(self.lines(), hashes, found);
        bits::acquire();
    }

    fn expected_keys(&self) -> usize {
        self.planned_keys()
    }

    fn memory_bytes(&self) -> usize {
        self.layout().blocks * LINE_BYTES
    }

    fn is_empty(&self) -> bool {
        let empty = self.lines().words().all(|line| line == [0; LINE_WORDS]);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        let ones = self.lines().ones();
        bits::acquire();
        fill_ratio(ones, self.layout())
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout().rate_of(T::CELL, keys)
    }

    /// The exact chance, computed from the words. (Here a counter above 0 has all its bits set.)
    fn current_false_positive_rate(&self) -> f64 {
        let rate = self.layout().mean_rate(self.lines().words());
        bits::acquire();
        rate
    }

    fn figures(&self) -> Figures {
        let (mut ones, mut total) = (0, 0);
        let lines = self.weighed().map(|(line, weight)| {
            ones += bits::ones_of(&line);
            total += weight;
            line
        });
        let false_positive_rate = self.layout().mean_rate(lines);
        bits::acquire();
        Figures {
            fill_ratio: fill_ratio(ones, self.layout()),
            len: self.keys_of(total),
            false_positive_rate,
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        self.copy()
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        if self.layout().shape.lines > 1 {
            f.field("lines_per_key", &self.layout().shape.lines);
        }
        f.field("words_per_key", &self.layout().shape.words_per_key())
            .field("bits_per_word", &self.layout().shape.bits)
            .field("fill_ratio", &self.fill_ratio());
        self.debug_more(f);
    }

    fn set_isa(&mut self, isa: Isa) {
        self.set_kernels(isa);
    }
}

impl<T: Lined> Estimate for T {
    fn estimated_len(&self) -> usize {
        let total = self.weighed().map(|(_, weight)| weight).sum();
        bits::acquire();
        self.keys_of(total)
    }
}

impl<T: OwnLines + Insert> Union for T {
    fn same(&self, other: &Self) -> bool {
        let same = self.layout() == other.layout() && self.words().eq(other.words());
        bits::acquire();
        same
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (self.layout(), other.layout());
        if ours == theirs {
            return Ok(());
        }
        Err(IncompatibleError::differs("layout", theirs, ours))
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Ok(self.add(other))
    }
}

fn header<T: OwnLines>(engine: &T, hashing: Hashing) -> Header {
    Header {
        kind: T::KIND,
        hashing,
        layout: engine.layout(),
        expected_keys: engine.planned_keys(),
        rate: engine.false_positive_rate_at(engine.planned_keys()),
    }
}

impl<T: OwnLines> FixedSize for T {}

/// `docs/FORMAT.md` describes the bytes.
impl<T: OwnLines> Stored for T {
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        header(self, Hashing::of(&Murmur3::default())).len()
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let words = self.layout().blocks * LINE_WORDS;
        write_words(out, &header(self, hashing).to_bytes(), words, self.words())
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = Header::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, T::KIND)?;
        let hasher = hasher(header.hashing)?;
        let blocks = header.layout.blocks;
        admit(input, header.len(), (blocks * LINE_BYTES) as u64, limit)?;
        let engine = Self::empty(header.layout, header.expected_keys);
        let mut engine = engine.map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), blocks * LINE_WORDS, |first, words| {
            engine.store_words(first, words.iter().map(Load::load));
        })?;
        Ok((engine, hasher))
    }
}
