//! Folds: a filter becomes one of fewer blocks, without its keys.
//!
//! The block of a hash is the floor of its upper half times `blocks / 2^32`. With `blocks / f`
//! blocks, it is the floor of that block divided by `f`. So `f` neighbouring blocks, united, are
//! the block that their keys would have filled.

use super::SplitBlockBloom;
use super::block::Block;
use super::sizing;
use crate::logarithm::pow;
use core::array;
use lanebloom::BuildError;
use lanebloom::internal::bounds::Load;
use lanebloom::internal::{check_factor, engine, engine_mut, largest_factor};

/// Folds.
impl SplitBlockBloom {
    /// Divides the number of [blocks](Self::blocks), and so the memory, by `factor`. The keys are
    /// not needed: the filter is then, bit for bit, the one that the same inserts would have made
    /// with this number of blocks.
    ///
    /// The [expected keys](lanebloom::Filter::expected_keys) are divided too, so that the promised
    /// rate stays. The keys that are in stay in: if they were more than that, the filter [is
    /// overfull](lanebloom::Filter::is_overfull) now.
    ///
    /// A filter of [Parquet's size](Self::with_parquet_size) has a power of two of blocks and can
    /// be halved until one is left. Any other filter has the factors that its number of blocks
    /// happens to have.
    ///
    /// The content moves to new memory. The old memory is freed at the end, so both are there for a
    /// while.
    ///
    /// # Errors
    ///
    /// Fails if `factor` does not divide the number of blocks, or if the new memory cannot be
    /// allocated. Then the filter is as before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let mut filter = SplitBlockBloom::with_bytes(1 << 16)?;
    /// let small = SplitBlockBloom::with_bytes(1 << 13)?;
    /// filter.insert_all(0..200_u32);
    /// small.insert_all(0..200_u32);
    /// filter.fold(8)?;
    /// assert!(filter == small && filter.memory_bytes() == 1 << 13);
    /// assert!(filter.fold(3).is_err());
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("shrink", "halve", "compact"))]
    pub fn fold(&mut self, factor: usize) -> Result<(), BuildError> {
        check_factor(self.blocks(), "", factor)?;
        self.fold_by(factor, usize::max(self.expected_keys() / factor, 1))
    }

    /// [Folds](Self::fold) by the largest factor after which the [rate
    /// now](lanebloom::Filter::current_false_positive_rate) is at most `rate`; returns the factor.
    /// It is 1, and the filter as before, if every fold would raise the rate beyond that.
    ///
    /// The [expected keys](lanebloom::Filter::expected_keys) are then those for which the new
    /// filter keeps this rate. A filter that gets no more keys can give its free memory back so:
    /// before it is written to a file, say.
    ///
    /// It reads the filter some times: as many as the number of factors has bits.
    ///
    /// # Errors
    ///
    /// Fails if `rate` is not between 0 and 1, or if the new memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut filter = lanebloom_formats::SplitBlockBloom::with_bytes(1 << 20)?;
    /// filter.insert_all(0..1000_u32);
    /// let factor = filter.fold_to_rate(0.01)?;
    /// assert_eq!(filter.memory_bytes(), (1 << 20) / factor);
    /// assert!(factor >= 128 && filter.current_false_positive_rate() <= 0.01);
    /// assert!((0..1000_u32).all(|key| filter.contains(&key)));
    /// assert_eq!(filter.fold_to_rate(0.01)?, 1);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("shrink_to_fit"))]
    pub fn fold_to_rate(&mut self, rate: f64) -> Result<usize, BuildError> {
        let factor = largest_factor(self.blocks(), rate, |factor| {
            sizing::statistics_of(self.folded(factor).flatten(), self.blocks() / factor).false_positive_rate
        })?;
        self.fold_by_for(factor, rate)?;
        Ok(factor)
    }

    /// [Folds](Self::fold) by the power of two that parquet-rs chooses for a filter of a file, by
    /// its `fold_to_target_fpp`; returns the factor.
    ///
    /// That is the largest one after which the mean share of set bits, to the power of 8, is
    /// estimated as at most `rate`. The estimate leaves out that keys are not spread evenly, so the
    /// rate may be higher: ask
    /// [`current_false_positive_rate`](lanebloom::Filter::current_false_positive_rate).
    ///
    /// # Errors
    ///
    /// As [`fold_to_rate`](Self::fold_to_rate).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let mut filter = SplitBlockBloom::with_parquet_size(1_000_000, 0.01)?;
    /// filter.insert_all(0..1000_u32);
    /// assert_eq!(filter.fold_as_parquet(0.01)?, 1024);
    /// assert_eq!(filter.memory_bytes(), 2048);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("fold_to_target_fpp"))]
    pub fn fold_as_parquet(&mut self, rate: f64) -> Result<usize, BuildError> {
        sizing::check(rate)?;
        let (mut clear, mut factor) = (1.0 - self.statistics().fill_ratio, 1);
        while self.blocks() % (2 * factor) == 0 {
            clear *= clear;
            if pow(1.0 - clear, 8) > rate {
                break;
            }
            factor *= 2;
        }
        self.fold_by_for(factor, rate)?;
        Ok(factor)
    }

    /// The blocks after a fold by a divisor of their number.
    fn folded(&self, factor: usize) -> impl Iterator<Item = Block<u64>> {
        engine(&self.0).blocks().chunks(factor).map(|blocks| {
            let unite = |united: Block<u64>, block: &Block<_>| array::from_fn(|i| united[i] | Load::load(&block[i]));
            blocks.iter().fold([0; 4], unite)
        })
    }

    fn fold_by_for(&mut self, factor: usize, rate: f64) -> Result<(), BuildError> {
        if factor == 1 {
            return Ok(());
        }
        self.fold_by(factor, usize::max(sizing::keys(self.blocks() / factor, rate), 1))
    }

    fn fold_by(&mut self, factor: usize, expected_keys: usize) -> Result<(), BuildError> {
        let mut folded = Self::new(self.blocks() / factor, expected_keys)?;
        engine_mut(&mut folded.0)
            .content
            .bits
            .store_words(0, self.folded(factor).flatten());
        *self = folded;
        Ok(())
    }
}
