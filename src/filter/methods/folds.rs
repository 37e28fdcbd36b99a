//! Folds: a filter in lines becomes one of fewer lines, without its keys.
//!
//! `pattern.rs` finds the block of a hash as the floor of `hash * blocks / 2^64`. With `blocks / f`
//! blocks it is the floor of that block divided by `f`. The pattern in the block does not depend on
//! the number of blocks. So `f` neighbouring blocks, united, are the block that their keys would
//! have filled. With two lines per key this holds in each half of the blocks.

use crate::error::{BuildError, BuildErrorKind};
use crate::filter::Filter;
use crate::filter::parts::lines::{Blocked, OwnWords, empty};
use crate::filter::traits::Engine;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::geometry::sizing::Request;
use alloc::format;
use alloc::vec::Vec;
use core::{array, iter};

/// An engine of blocks, in which neighbouring blocks can be united.
pub trait Fold: Engine {
    /// The number of blocks whose divisors are the factors, and what they are a part of, if not the
    /// whole filter.
    fn blocks_to_fold(&self) -> (usize, &'static str);

    /// The rate after a fold by a divisor.
    fn rate_after(&self, factor: usize) -> f64;

    /// The number of keys that keep `rate` after a fold.
    fn keys_after(&self, factor: usize, rate: f64) -> usize;

    /// The engine after a fold by a divisor.
    fn folded(&self, factor: usize, expected_keys: usize) -> Result<Self, BuildError>;

    /// Folds, if `factor` is a divisor.
    fn fold<S>(filter: &mut Filter<Self, S>, factor: usize) -> Result<(), BuildError> {
        let (blocks, of) = filter.engine.blocks_to_fold();
        if factor == 0 || blocks % factor != 0 {
            let problem = format!("the {blocks} blocks{of} cannot be folded by {factor}, which does not divide them");
            return Err(BuildError(BuildErrorKind::Setting(problem)));
        }
        replace(filter, factor, usize::max(filter.expected_keys() / factor, 1))
    }

    /// Folds by the largest divisor that keeps `rate`, or by 1.
    fn fold_to_rate<S>(filter: &mut Filter<Self, S>, rate: f64) -> Result<usize, BuildError> {
        let request = Request {
            rate: Some(rate),
            ..Request::default()
        };
        request.check().map_err(BuildError)?;
        let (blocks, _) = filter.engine.blocks_to_fold();
        let factors: Vec<usize> = (1..=blocks).filter(|factor| blocks % factor == 0).collect();
        let kept = factors.partition_point(|&factor| filter.engine.rate_after(factor) <= rate);
        Self::fold_for_rate(filter, factors[kept.saturating_sub(1)], rate)
    }

    /// Folds by a divisor for as many keys as keep `rate` then; returns the divisor.
    fn fold_for_rate<S>(filter: &mut Filter<Self, S>, factor: usize, rate: f64) -> Result<usize, BuildError> {
        if factor > 1 {
            replace(filter, factor, filter.engine.keys_after(factor, rate))?;
        }
        Ok(factor)
    }
}

fn replace<E: Fold, S>(filter: &mut Filter<E, S>, factor: usize, expected_keys: usize) -> Result<(), BuildError> {
    filter.engine = filter.engine.folded(factor, expected_keys)?;
    filter.engine.set_isa(filter.isa);
    Ok(())
}

fn folded(layout: Layout, factor: usize) -> Layout {
    Layout {
        blocks: layout.blocks / factor,
        ..layout
    }
}

impl<W: OwnWords> Fold for Blocked<W> {
    fn blocks_to_fold(&self) -> (usize, &'static str) {
        match self.layout.shape.lines {
            1 => (self.layout.blocks, ""),
            lines => (self.layout.blocks / lines, " of each half"),
        }
    }

    fn rate_after(&self, factor: usize) -> f64 {
        let mut lines = self.words.lines().words();
        let unite = |a: [u64; LINE_WORDS], b: [u64; LINE_WORDS]| array::from_fn(|i| a[i] | b[i]);
        let lines = iter::from_fn(|| lines.by_ref().take(factor).reduce(unite));
        folded(self.layout, factor).mean_rate(lines)
    }

    fn keys_after(&self, factor: usize, rate: f64) -> usize {
        folded(self.layout, factor).keys_at(W::CELL, rate)
    }

    fn folded(&self, factor: usize, expected_keys: usize) -> Result<Self, BuildError> {
        let mut folded = empty::<W>(folded(self.layout, factor), expected_keys)?;
        let mut words = self.words.words();
        for block in 0..folded.layout.blocks {
            let mut line = [0; LINE_WORDS];
            for _ in 0..factor {
                for (word, other) in line.iter_mut().zip(&mut words) {
                    *word = W::united(*word, other);
                }
            }
            folded.words.store_words(block * LINE_WORDS, line.into_iter());
        }
        Ok(folded)
    }
}

/// The folds of a type: `folds! { Type: Engine }`. A type of another crate says before it which,
/// `"its_crate::"`, and after it how `bytes` make a filter of as many.
#[doc(hidden)]
#[macro_export]
macro_rules! folds {
    ($filter:ident: $engine:ty) => {
        $crate::folds! { "lanebloom::", $filter for [S] $filter<S>; $engine, "builder().memory_budget(bytes).build()" }
    };

    ($krate:literal, $filter:ident: $engine:ty, $sized:literal) => {
        $crate::folds! { $krate, $filter for [] $filter; $engine, $sized }
    };

    ($krate:literal, $filter:ident for [$($any:tt)*] $target:ty; $engine:ty, $sized:literal) => {
        /// Folds.
        impl<$($any)*> $target {
            /// Divides the number of [blocks](Self::blocks), and so the memory, by `factor`. The
            /// keys are not needed: the filter is then, bit for bit, the one that the same inserts
            /// would have made with this many blocks.
            ///
            /// The [expected keys](Self::expected_keys) are divided too, so that the promised rate
            /// stays. The keys that are in stay in: if they were more than that, the filter
            /// [is overfull](Self::is_overfull) now.
            ///
            /// A filter of 2^n bytes can be halved until one block is left, or
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
            #[doc = concat!("let sized = |bytes| ", $krate, stringify!($filter), "::", $sized, ";")]
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
            pub fn fold(&mut self, factor: usize) -> Result<(), $crate::BuildError> {
                <$engine as $crate::internal::Fold>::fold(self, factor)
            }

            /// [Folds](Self::fold) by the largest factor after which the [rate
            /// now](Self::current_false_positive_rate) is at most `rate`; returns the factor. It is
            /// 1, and the filter as before, if every fold would raise the rate beyond that.
            ///
            /// The [expected keys](Self::expected_keys) are then those for which the new filter
            /// keeps this rate. Fold a filter that gets no more keys before it is saved or sent.
            ///
            /// It reads the filter some times: as many as the number of factors has bits. It
            /// assumes that the rate grows with the factor. That holds if each factor divides the
            /// next one, as in a filter of 2^n bytes. Otherwise, with a few keys, a larger factor
            /// than the one found may keep the rate too.
            ///
            /// # Errors
            ///
            /// Fails if `rate` is not between 0 and 1, or if the new memory cannot be allocated.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let sized = |bytes| ", $krate, stringify!($filter), "::", $sized, ";")]
            /// let mut filter = sized(1 << 20)?;
            /// filter.insert_all(0..1000u32);
            /// let factor = filter.fold_to_rate(0.01)?;
            /// assert_eq!(filter.memory_bytes(), (1 << 20) / factor);
            /// assert!(factor >= 128 && filter.current_false_positive_rate() <= 0.01);
            /// assert!((0..1000u32).all(|key| filter.contains(&key)));
            /// assert_eq!(filter.fold_to_rate(0.01)?, 1);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("shrink_to_fit"))]
            pub fn fold_to_rate(&mut self, rate: f64) -> Result<usize, $crate::BuildError> {
                <$engine as $crate::internal::Fold>::fold_to_rate(self, rate)
            }
        }
    };
}
pub(crate) use folds;
