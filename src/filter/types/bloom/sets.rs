//! Bloom filters as sets of keys, and their folds.
//!
//! `pattern.rs` finds the block of a hash as the floor of `hash * blocks / 2^64`. With `blocks / f`
//! blocks it is the floor of that block divided by `f`. The pattern in the block does not depend on
//! the number of blocks. So `f` neighbouring blocks, united, are the block that their keys would
//! have filled. With two lines per key this holds in each half of the blocks.

use super::Bloom;
use super::engine::empty;
use crate::error::{BuildError, IncompatibleError};
use crate::filter::methods::sets::Sets;
use crate::filter::parts::lines::OwnWords;
use crate::filter::traits::Union;
use crate::filter::{Exclusive, Filter, Pair};
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::hash::FilterHasher;
use core::array;

/// Two filters as sets.
#[allow(private_bounds, reason = "filters that own their words")]
impl<W: OwnWords, S: FilterHasher> Filter<Bloom<W>, S> {
    /// This filter beside another one, to be compared as sets of keys: [`Pair`] has the
    /// comparisons, and the delta. Fails if layout or hasher differ.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let part = ConcurrentBloom::from_keys([1, 2], 0.01)?;
    /// let all = part.clone();
    /// all.insert(&3);
    /// assert!(part.with(&all)?.is_subset());
    /// let other = ConcurrentBloom::with_capacity(1_000_000, 0.01)?;
    /// assert!(part.with(&other).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("is_subset", "is_disjoint", "isCompatible"))]
    pub fn with<'a>(&'a self, other: &'a Self) -> Result<Pair<'a, Bloom<W>, S>, IncompatibleError> {
        Pair::of(self, other)
    }

    /// Adds every key that was inserted into `other` before; returns whether that changed this
    /// filter. Both may be in use meanwhile. The counters of a
    /// [`CountingBloom`](crate::CountingBloom) add up: a second union counts the keys twice.
    ///
    /// Fails if layout or hasher (its algorithm, seed or key) differ. Then no key is added.
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// ```
    /// let all = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let (part, empty) = (all.clone(), all.clone());
    /// part.insert("a");
    /// assert!(all.union_from(&part)? && all.contains("a"));
    /// assert!(!all.union_from(&empty)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Union::union_from(self, other)
    }
}

impl<W, S> Filter<Bloom<W>, S> {
    /// The operations that no other thread may see, of [`Exclusive`]: inserts without atomics,
    /// intersections, folds.
    ///
    /// ```
    /// let mut filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.exclusive().insert_batch(&["a", "b", "a"]), 2);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn exclusive(&mut self) -> Exclusive<'_, Bloom<W>, S> {
        Exclusive(self)
    }
}

fn folded(layout: Layout, factor: usize) -> Layout {
    Layout {
        blocks: layout.blocks / factor,
        ..layout
    }
}

/// The next line after a fold by `factor`, given the words before: `factor` neighbouring sectors
/// become one.
pub(crate) fn fold(
    words: &mut impl Iterator<Item = u64>,
    layout: Layout,
    factor: usize,
    unite: impl Fn(u64, u64) -> u64,
) -> [u64; LINE_WORDS] {
    let mut line = [0; LINE_WORDS];
    for sector in line.chunks_exact_mut(layout.shape.words) {
        for _ in 0..factor {
            for (word, other) in sector.iter_mut().zip(&mut *words) {
                *word = unite(*word, other);
            }
        }
    }
    line
}

impl<W: OwnWords> Sets for Bloom<W> {
    type Block = [u64; LINE_WORDS];

    fn blocks(&self) -> impl Iterator<Item = Self::Block> {
        self.words.lines().words()
    }

    fn keys_for(&self, ones: u64) -> usize {
        self.layout.keys_for(ones)
    }

    fn keep_common(&mut self, other: &Self) -> bool {
        let mut lost = 0;
        self.words.replace(other.words.words(), |ours, theirs| {
            let common = W::common(ours, theirs);
            lost |= common ^ ours;
            common
        });
        lost != 0
    }

    /// A key has a bit in a sector, and in both halves of one of eight words; with two lines, in
    /// one of each half of the blocks.
    fn share_no_key(&self, other: &Self) -> bool {
        let Layout { shape, blocks } = self.layout;
        let (part, half) = (blocks / shape.lines, LINE_WORDS / shape.draws().0);
        let may_share = |(a, b): (Self::Block, Self::Block)| {
            let common: Self::Block = array::from_fn(|i| a[i] & b[i]);
            common
                .chunks_exact(half)
                .all(|words| words.iter().any(|&word| word != 0))
        };
        (0..shape.lines).any(|half| !self.both(other).skip(half * part).take(part).any(may_share))
    }

    fn blocks_to_fold(&self) -> (usize, &'static str) {
        match self.layout.shape.lines {
            1 => (self.layout.blocks, ""),
            lines => (self.layout.blocks / lines, " of each half"),
        }
    }

    fn rate_after(&self, factor: usize) -> f64 {
        let mut words = self.words.lines().words().flatten();
        let layout = folded(self.layout, factor);
        let lines = (0..layout.blocks).map(|_| fold(&mut words, layout, factor, |a, b| a | b));
        layout.mean_rate(lines)
    }

    fn keys_after(&self, factor: usize, rate: f64) -> usize {
        folded(self.layout, factor).keys_at(W::UNIT, rate)
    }

    fn folded(&self, factor: usize, expected_keys: usize) -> Result<Self, BuildError> {
        let mut folded = empty::<W>(folded(self.layout, factor), expected_keys)?;
        let mut words = self.words.words();
        for block in 0..folded.layout.blocks {
            let line = fold(&mut words, folded.layout, factor, W::united);
            folded.words.store_words(block * LINE_WORDS, line.into_iter());
        }
        Ok(folded)
    }
}
