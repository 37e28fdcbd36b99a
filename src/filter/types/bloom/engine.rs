//! [`Bloom`] as an engine: lookups, statistics, comparison and snapshots, for any words in lines.

use super::Bloom;
use crate::codec::{
    AskHasher, BlocksHeader, Hashing, Input, Out, admit, read_header, read_words, snapshot_bytes, write_words,
};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::filter::Statistics;
use crate::filter::parts::lines::{LineWords, OwnWords, plan};
use crate::filter::parts::several;
use crate::filter::traits::{Encode, Engine, FixedSize, Planned, Union};
use crate::geometry::layout::{LINE_BITS, LINE_BYTES, LINE_WORDS, Layout};
use crate::geometry::sizing::Request;
use crate::kernel::{Isa, Plan};
use crate::words::bits::{self, Load};
use core::fmt;

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

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.layout.rate_of(W::UNIT, keys)
    }

    /// The rate is the exact chance, computed from the words. (Here a counter above 0 has all its
    /// bits set.)
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
            ones as f64 / (self.layout.blocks * LINE_BITS) as f64,
            W::keys_of(self.layout, total),
            false_positive_rate,
        )
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
            .field("fill_ratio", &self.statistics().fill_ratio);
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
