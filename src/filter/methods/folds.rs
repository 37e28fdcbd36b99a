//! Folds: a filter in lines becomes one of fewer lines, without its keys.
//!
//! `pattern.rs` finds the block of a hash as the floor of `hash * blocks / 2^64`. With `blocks / f`
//! blocks it is the floor of that block divided by `f`. The pattern in the block does not depend on
//! the number of blocks. So `f` neighbouring blocks, united, are the block that their keys would
//! have filled. With two lines per key this holds in each half of the blocks.

use crate::error::{BuildError, BuildErrorKind};
use crate::filter::Filter;
use crate::filter::parts::lines::{Blocked, LineWords, OwnWords, empty};
use crate::filter::traits::Engine;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::sizing::Request;
use alloc::format;
use alloc::vec::Vec;
use core::{array, iter};

/// The number of blocks that a key's line is one of: its divisors are the factors of folds.
fn part(layout: Layout) -> usize {
    layout.blocks / layout.shape.lines
}

fn folded(layout: Layout, factor: usize) -> Layout {
    Layout {
        blocks: layout.blocks / factor,
        ..layout
    }
}

/// The rate now, of the filter after a fold.
fn folded_rate<W: LineWords>(engine: &Blocked<W>, factor: usize) -> f64 {
    let mut lines = engine.words.lines().words();
    let unite = |a: [u64; LINE_WORDS], b: [u64; LINE_WORDS]| array::from_fn(|i| a[i] | b[i]);
    let lines = iter::from_fn(|| lines.by_ref().take(factor).reduce(unite));
    folded(engine.layout, factor).mean_rate(lines)
}

/// Folds by a divisor of the [`part`].
fn fold<W: OwnWords>(engine: &mut Blocked<W>, factor: usize, expected_keys: usize) -> Result<(), BuildError> {
    let mut folded = empty::<W>(folded(engine.layout, factor), expected_keys)?;
    let mut words = engine.words.words();
    for block in 0..folded.layout.blocks {
        let mut line = [0; LINE_WORDS];
        for _ in 0..factor {
            for (word, other) in line.iter_mut().zip(&mut words) {
                *word = W::united(*word, other);
            }
        }
        folded.words.store_words(block * LINE_WORDS, line.into_iter());
    }
    drop(words);
    *engine = folded;
    Ok(())
}

/// Fails unless `factor` divides the number of blocks. `of` says what they are a part of, if not
/// the whole filter.
pub fn check_factor(blocks: usize, of: &str, factor: usize) -> Result<(), BuildError> {
    if factor != 0 && blocks % factor == 0 {
        return Ok(());
    }
    let problem = format!("the {blocks} blocks{of} cannot be folded by {factor}, which does not divide them");
    Err(BuildError(BuildErrorKind::Setting(problem)))
}

/// The largest divisor of the number of blocks by which a fold keeps `rate`, or 1. `rate_after`
/// says which rate a fold leaves.
pub fn largest_factor(blocks: usize, rate: f64, rate_after: impl Fn(usize) -> f64) -> Result<usize, BuildError> {
    let request = Request {
        rate: Some(rate),
        ..Request::default()
    };
    request.check().map_err(BuildError)?;
    let factors: Vec<usize> = (1..=blocks).filter(|factor| blocks % factor == 0).collect();
    let kept = factors.partition_point(|&factor| rate_after(factor) <= rate);
    Ok(factors[kept.saturating_sub(1)])
}

fn fold_by<W: OwnWords>(engine: &mut Blocked<W>, factor: usize) -> Result<(), BuildError> {
    let of = if engine.layout.shape.lines == 1 {
        ""
    } else {
        " of each half"
    };
    check_factor(part(engine.layout), of, factor)?;
    fold(engine, factor, usize::max(engine.expected_keys / factor, 1))
}

fn fold_to_rate<W: OwnWords>(engine: &mut Blocked<W>, rate: f64) -> Result<usize, BuildError> {
    let factor = largest_factor(part(engine.layout), rate, |factor| folded_rate(engine, factor))?;
    if factor > 1 {
        fold(engine, factor, folded(engine.layout, factor).keys_at(W::CELL, rate))?;
    }
    Ok(factor)
}

/// Folds.
#[expect(private_bounds, reason = "every engine of this kind has it")]
impl<W: OwnWords, S> Filter<Blocked<W>, S> {
    /// Divides the number of [blocks](Self::blocks), and so the memory, by `factor`. The
    /// keys are not needed: the filter is then, bit for bit, the one that the same inserts
    /// would have made with this many blocks.
    ///
    /// The [expected keys](Self::expected_keys) are divided too, so that the promised rate
    /// stays. The keys that are in stay in: if they were more than that, the filter
    /// [is overfull](Self::is_overfull) now.
    ///
    /// A filter of a memory budget of 2^n bytes can be halved until one block is left, or
    /// two with two lines per key. Any other filter has the factors that its number of
    /// blocks happens to have.
    ///
    /// The content moves to new memory. The old memory is freed at the end, so both are
    /// there for a while.
    ///
    /// # Errors
    ///
    /// Fails if `factor` does not divide the number of blocks (with two lines per key, half
    /// of it), or if the new memory cannot be allocated. Then the filter is as before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let sized = |bytes| ConcurrentBloom::builder().memory_budget(bytes).build();
    /// let (mut filter, small) = (sized(1 << 16)?, sized(1 << 13)?);
    /// filter.insert_all(0..200u32);
    /// small.insert_all(0..200u32);
    /// filter.fold(8)?;
    /// assert!(filter == small && filter.memory_bytes() == 1 << 13);
    /// assert_eq!(filter.expected_keys(), small.expected_keys());
    /// assert!(filter.fold(3).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("shrink", "halve", "compact"))]
    pub fn fold(&mut self, factor: usize) -> Result<(), BuildError> {
        fold_by(&mut self.engine, factor)?;
        self.engine.set_isa(self.isa);
        Ok(())
    }

    /// [Folds](Self::fold) by the largest factor after which the [rate
    /// now](Self::current_false_positive_rate) is at most `rate`; returns the factor. It is
    /// 1, and the filter as before, if every fold would raise the rate beyond that.
    ///
    /// The [expected keys](Self::expected_keys) are then those for which the new filter
    /// keeps this rate. A filter that gets no more keys can give its free memory back so:
    /// before it is saved or sent, say.
    ///
    /// It reads the filter some times: as many as the number of factors has bits. So it
    /// takes it that a larger factor has a higher rate. That holds if each factor divides
    /// the next one, as in a memory budget of 2^n bytes. Otherwise, with a few keys, a
    /// larger factor than the one found may keep the rate too.
    ///
    /// # Errors
    ///
    /// Fails if `rate` is not between 0 and 1, or if the new memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder().memory_budget(1 << 20);
    /// let mut filter = builder.build()?;
    /// filter.insert_all(0..1000u32);
    /// let factor = filter.fold_to_rate(0.01)?;
    /// assert_eq!(filter.memory_bytes(), (1 << 20) / factor);
    /// assert!(factor >= 128 && filter.current_false_positive_rate() <= 0.01);
    /// assert!((0..1000u32).all(|key| filter.contains(&key)));
    /// assert_eq!(filter.fold_to_rate(0.01)?, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("shrink_to_fit"))]
    pub fn fold_to_rate(&mut self, rate: f64) -> Result<usize, BuildError> {
        let factor = fold_to_rate(&mut self.engine, rate)?;
        self.engine.set_isa(self.isa);
        Ok(factor)
    }
}
