//! Two filters, compared and combined as sets of keys. And folds: a filter becomes one of fewer
//! blocks, without its keys.

use crate::error::{BuildError, IncompatibleError};
use crate::filter::Filter;
use crate::filter::traits::{Engine, Union};
use crate::hash::FilterHasher;
use crate::words::bits;
use alloc::format;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;

/// An engine whose content is blocks of bits, or of counters, which lookups see as bits.
pub trait Sets: Engine + Union {
    /// The words of a block.
    type Block: AsRef<[u64]>;

    /// Every block as lookups see it. The caller acquires.
    fn blocks(&self) -> impl Iterator<Item = Self::Block>;

    /// The number of keys that leave this many bits set.
    fn keys_for(&self, ones: u64) -> usize;

    /// Keeps what `other`, of the same layout, has too; returns whether that changed this engine.
    /// The caller acquires.
    fn keep_common(&mut self, other: &Self) -> bool;

    /// Whether no key can be in both engines, of the same layout.
    fn share_no_key(&self, other: &Self) -> bool;

    /// The number of blocks whose divisors are the factors, and what they are a part of, if not the
    /// whole filter.
    fn blocks_to_fold(&self) -> (usize, &'static str);

    /// The rate after a fold by a divisor.
    fn rate_after(&self, factor: usize) -> f64;

    /// The number of keys that keep `rate` after a fold.
    fn keys_after(&self, factor: usize, rate: f64) -> usize;

    /// The engine after a fold by a divisor.
    fn folded(&self, factor: usize, expected_keys: usize) -> Result<Self, BuildError>;

    /// The blocks of both, each of this engine before that of the other.
    fn both(&self, other: &Self) -> impl Iterator<Item = (Self::Block, Self::Block)> {
        // Pairs with the inserts of a thread that inserts each key into `other` first.
        self.blocks().inspect(|_| bits::acquire()).zip(other.blocks())
    }
}

/// Two filters of one layout and one hasher, as sets of keys; made by
/// [`with`](crate::ConcurrentBloom::with). Both may be in use meanwhile.
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let monday = ConcurrentBloom::with_capacity(100_000, 0.01)?;
/// let tuesday = monday.clone();
/// monday.insert_all(0..50_000);
/// tuesday.insert_all(40_000..80_000);
/// let both = monday.with(&tuesday)?;
/// assert!(both.intersection_len().abs_diff(10_000) < 500);
/// assert!(!both.is_subset() && !both.is_disjoint());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pair<'a, E, S> {
    pub(crate) one: &'a Filter<E, S>,
    pub(crate) other: &'a Filter<E, S>,
}

impl<E, S> Clone for Pair<'_, E, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, S> Copy for Pair<'_, E, S> {}

impl<E: Engine, S: fmt::Debug> fmt::Debug for Pair<'_, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pair").field(self.one).field(self.other).finish()
    }
}

impl<'a, E: Sets, S: FilterHasher> Pair<'a, E, S> {
    /// Fails if layout or hasher differ.
    #[doc(hidden)]
    pub fn of(one: &'a Filter<E, S>, other: &'a Filter<E, S>) -> Result<Self, IncompatibleError> {
        one.check_union(other)?;
        Ok(Self { one, other })
    }
}

#[allow(private_bounds, reason = "all filters that make one")]
impl<E: Sets, S> Pair<'_, E, S> {
    /// Whether the second filter has every key of the first: `false` is certain, `true` may be by
    /// chance. It is `true` exactly if the second [contains](crate::ConcurrentBloom::contains) each
    /// of the keys: the ones that it lacks would all have to be false positives.
    ///
    /// If every insert into the first filter happens after one of the same key into the second, and
    /// no key is removed, the result is `true` beside such inserts too. Ends in an `Acquire`, like
    /// a lookup's `true`.
    ///
    /// ```
    /// let part = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let all = part.clone();
    /// part.insert(&1);
    /// all.insert_batch(&[1, 2]);
    /// assert!(part.with(&all)?.is_subset() && !all.with(&part)?.is_subset());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "is_superset")]
    #[must_use]
    pub fn is_subset(self) -> bool {
        let mut blocks = self.one.engine.both(&self.other.engine);
        let subset = blocks.all(|(a, b)| {
            let words = a.as_ref().iter().zip(b.as_ref());
            words.fold(0, |missing, (a, b)| missing | a & !b) == 0
        });
        bits::acquire();
        subset
    }

    /// Whether no key is in both filters: `true` is certain, `false` may be by chance.
    ///
    /// Only [sparse filters](crate::Filter#two-filters-as-sets) can be told apart.
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let b = a.clone();
    /// a.insert(&1);
    /// b.insert(&2);
    /// assert!(a.with(&b)?.is_disjoint());
    /// b.insert(&1);
    /// assert!(!a.with(&b)?.is_disjoint());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_disjoint(self) -> bool {
        self.one.engine.share_no_key(&self.other.engine)
    }

    /// An estimate of the number of distinct keys in either filter: the number of keys of their
    /// union, which is not made.
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000);
    /// b.insert_all(40_000..80_000);
    /// assert!(a.with(&b)?.union_len().abs_diff(80_000) < 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn union_len(self) -> usize {
        let [_, _, either] = self.lens();
        either
    }

    /// An estimate of the number of distinct keys that are in both filters: those of each less
    /// those of either.
    ///
    /// At rates of at most 1%, the standard error is at most `0.5 * sqrt(n)` for two filters with
    /// their `n` expected keys, even if few keys are common: two filters of a million keys cannot
    /// show whether they have 500 keys in common, or none.
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let b = a.clone();
    /// a.insert_all(0..50_000);
    /// b.insert_all(40_000..80_000);
    /// assert!(a.with(&b)?.intersection_len().abs_diff(10_000) < 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn intersection_len(self) -> usize {
        let [ours, theirs, either] = self.lens();
        ours.saturating_add(theirs).saturating_sub(either)
    }

    /// The numbers of keys in the one filter, in the other, and in either.
    fn lens(self) -> [usize; 3] {
        let mut ones = [0; 3];
        for (a, b) in self.one.engine.both(&self.other.engine) {
            for (a, b) in a.as_ref().iter().zip(b.as_ref()) {
                for (ones, word) in ones.iter_mut().zip([*a, *b, a | b]) {
                    *ones += u64::from(word.count_ones());
                }
            }
        }
        bits::acquire();
        ones.map(|ones| self.one.engine.keys_for(ones))
    }
}

/// A filter that no other thread uses; made by [`exclusive`](crate::ConcurrentBloom::exclusive).
///
/// ```
/// let mut both = lanebloom::ConcurrentBloom::from_keys([1, 2], 0.01)?;
/// let mut other = both.clone();
/// other.clear();
/// other.insert_batch(&[2, 3]);
/// both.exclusive().intersection_from(&other)?;
/// assert!(both.contains(&2) && !both.contains(&1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exclusive<'a, E, S>(pub(crate) &'a mut Filter<E, S>);

impl<E: Engine, S: fmt::Debug> fmt::Debug for Exclusive<'_, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exclusive").field(self.0).finish()
    }
}

impl<'a, E, S> Exclusive<'a, E, S> {
    #[doc(hidden)]
    pub fn of(filter: &'a mut Filter<E, S>) -> Self {
        Self(filter)
    }
}

#[allow(private_bounds, reason = "all filters that make one")]
impl<E: Sets, S> Exclusive<'_, E, S> {
    /// Keeps only what `other` has too; returns whether that changed this filter. `other` may be in
    /// use meanwhile. Ends in an `Acquire` on `other`'s content.
    ///
    /// The result has every key that was inserted into both, [and
    /// others](crate::Filter#two-filters-as-sets). Keys that were inserted into two filters with
    /// counters can be removed again.
    ///
    /// # Errors
    ///
    /// Fails if layout or hasher differ.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut both = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let other = both.clone();
    /// both.insert_batch(&[1, 2]);
    /// other.insert_batch(&[2, 3]);
    /// assert!(both.exclusive().intersection_from(&other)?);
    /// assert!(!both.exclusive().intersection_from(&other)?);
    /// assert!(both.contains(&2) && !both.contains(&1) && !both.contains(&3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("intersect_from", "and", "retain"))]
    pub fn intersection_from(self, other: &impl Borrow<Filter<E, S>>) -> Result<bool, IncompatibleError>
    where
        S: FilterHasher,
    {
        let other = other.borrow();
        self.0.check_union(other)?;
        let changed = self.0.engine.keep_common(&other.engine);
        bits::acquire();
        Ok(changed)
    }

    /// Divides the number of [blocks](crate::bloom::Layout::blocks), and so the memory and the
    /// [expected keys](crate::Filter::expected_keys), by `factor`. The keys are not needed: [how a
    /// fold works](crate::Filter#folds), and which factors a filter has.
    ///
    /// # Errors
    ///
    /// Fails if `factor` does not divide the number of blocks (with two lines per key, half of it),
    /// or if the new memory cannot be allocated. Then the filter is as before.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder();
    /// let sized = |bytes| builder.clone().memory_budget(bytes).build();
    /// let (mut filter, small) = (sized(1 << 16)?, sized(1 << 13)?);
    /// filter.insert_all(0..200);
    /// small.insert_all(0..200);
    /// filter.exclusive().fold(8)?;
    /// assert!(filter == small && filter.memory_bytes() == 1 << 13);
    /// assert_eq!(filter.expected_keys(), small.expected_keys());
    /// assert!(filter.exclusive().fold(3).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("shrink", "halve", "compact"))]
    pub fn fold(self, factor: usize) -> Result<(), BuildError> {
        let filter = self.0;
        let (blocks, of) = filter.engine.blocks_to_fold();
        if factor == 0 || blocks % factor != 0 {
            let problem = format!("the {blocks} blocks{of} cannot be folded by {factor}, which does not divide them");
            return Err(BuildError::new(problem));
        }
        replace(filter, factor, usize::max(filter.expected_keys() / factor, 1))
    }

    /// [Folds](Self::fold) by the largest factor after which the [rate
    /// now](crate::Statistics::false_positive_rate) is at most `rate`; returns the factor. It is 1,
    /// and the filter as before, if every fold would raise the rate beyond that.
    ///
    /// The [expected keys](crate::Filter::expected_keys) are then those for which the new filter
    /// keeps this rate. Fold a filter that gets no more keys before it is saved or sent.
    ///
    /// # Errors
    ///
    /// Fails if `rate` is not between 0 and 1, or if the new memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = lanebloom::ConcurrentBloom::builder();
    /// let mut filter = builder.memory_budget(1 << 20).build()?;
    /// filter.insert_all(0..1000);
    /// let factor = filter.exclusive().fold_to_rate(0.01)?;
    /// assert_eq!(filter.memory_bytes(), (1 << 20) / factor);
    /// assert!(factor >= 128 && filter.statistics().false_positive_rate <= 0.01);
    /// assert!((0..1000).all(|key| filter.contains(&key)));
    /// assert_eq!(filter.exclusive().fold_to_rate(0.01)?, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("shrink_to_fit"))]
    pub fn fold_to_rate(self, rate: f64) -> Result<usize, BuildError> {
        BuildError::check_rate(rate)?;
        let filter = self.0;
        let (blocks, _) = filter.engine.blocks_to_fold();
        let factors: Vec<usize> = (1..=blocks).filter(|factor| blocks % factor == 0).collect();
        let kept = factors.partition_point(|&factor| filter.engine.rate_after(factor) <= rate);
        let factor = factors[kept.saturating_sub(1)];
        fold_for_rate(filter, factor, rate)?;
        Ok(factor)
    }
}

/// Folds by a divisor for as many keys as keep `rate` then.
pub fn fold_for_rate<E: Sets, S>(filter: &mut Filter<E, S>, factor: usize, rate: f64) -> Result<(), BuildError> {
    match factor {
        1 => Ok(()),
        _ => replace(filter, factor, filter.engine.keys_after(factor, rate)),
    }
}

fn replace<E: Sets, S>(filter: &mut Filter<E, S>, factor: usize, expected_keys: usize) -> Result<(), BuildError> {
    filter.engine = filter.engine.folded(factor, expected_keys)?;
    filter.engine.set_isa(filter.isa);
    Ok(())
}

/// Same layout, same hasher and same content. Beside inserts, reads each word at some moment.
impl<E: Union, S: FilterHasher> PartialEq for Filter<E, S> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}
