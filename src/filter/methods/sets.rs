//! Two filters, compared and combined as sets of keys (`unions.rs` has the union, which more types
//! have). And folds: a filter becomes one of fewer blocks, without its keys.
//!
//! `pattern.rs` finds the block of a hash as the floor of `hash * blocks / 2^64`. With `blocks / f`
//! blocks it is the floor of that block divided by `f`. The pattern in the block does not depend on
//! the number of blocks. So `f` neighbouring blocks, united, are the block that their keys would
//! have filled. With two lines per key this holds in each half of the blocks.

use crate::error::{BuildError, IncompatibleError};
use crate::filter::Filter;
use crate::filter::parts::lines::{Bloom, OwnWords, empty};
use crate::filter::traits::{Engine, Union};
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::hash::FilterHasher;
use crate::words::bits;
use alloc::format;
use alloc::vec::Vec;
use core::array;

/// An engine whose content is blocks of bits, or of counters, which lookups see as bits.
///
/// The functions for two filters fail as [`Union::union_from`]: if layout or hasher differ.
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

    /// Keeps in the one filter what the other one has too.
    fn intersection_from<S: FilterHasher>(
        filter: &mut Filter<Self, S>,
        other: &Filter<Self, S>,
    ) -> Result<bool, IncompatibleError> {
        filter.check_union(other)?;
        let changed = filter.engine.keep_common(&other.engine);
        bits::acquire();
        Ok(changed)
    }

    /// Whether no key is in both filters.
    fn is_disjoint<S: FilterHasher>(
        filter: &Filter<Self, S>,
        other: &Filter<Self, S>,
    ) -> Result<bool, IncompatibleError> {
        filter.check_union(other)?;
        Ok(filter.engine.share_no_key(&other.engine))
    }

    /// Whether the other filter has every key of the one.
    fn is_subset<S: FilterHasher>(
        filter: &Filter<Self, S>,
        other: &Filter<Self, S>,
    ) -> Result<bool, IncompatibleError> {
        filter.check_union(other)?;
        let mut blocks = filter.engine.both(&other.engine);
        let subset = blocks.all(|(a, b)| {
            let words = a.as_ref().iter().zip(b.as_ref());
            words.fold(0, |missing, (a, b)| missing | a & !b) == 0
        });
        bits::acquire();
        Ok(subset)
    }

    /// The numbers of keys in the one filter, in the other, and in either.
    fn estimated_lens<S: FilterHasher>(
        filter: &Filter<Self, S>,
        other: &Filter<Self, S>,
    ) -> Result<[usize; 3], IncompatibleError> {
        filter.check_union(other)?;
        let mut ones = [0; 3];
        for (a, b) in filter.engine.both(&other.engine) {
            for (a, b) in a.as_ref().iter().zip(b.as_ref()) {
                for (ones, word) in ones.iter_mut().zip([*a, *b, a | b]) {
                    *ones += u64::from(word.count_ones());
                }
            }
        }
        bits::acquire();
        Ok(ones.map(|ones| filter.engine.keys_for(ones)))
    }

    /// Folds, if `factor` is a divisor.
    fn fold<S>(filter: &mut Filter<Self, S>, factor: usize) -> Result<(), BuildError> {
        let (blocks, of) = filter.engine.blocks_to_fold();
        if factor == 0 || blocks % factor != 0 {
            let problem = format!("the {blocks} blocks{of} cannot be folded by {factor}, which does not divide them");
            return Err(BuildError::new(problem));
        }
        replace(filter, factor, usize::max(filter.expected_keys() / factor, 1))
    }

    /// Folds by the largest divisor that keeps `rate`, or by 1.
    fn fold_to_rate<S>(filter: &mut Filter<Self, S>, rate: f64) -> Result<usize, BuildError> {
        BuildError::check_rate(rate)?;
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

fn replace<E: Sets, S>(filter: &mut Filter<E, S>, factor: usize, expected_keys: usize) -> Result<(), BuildError> {
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
        folded(self.layout, factor).keys_at(W::CELL, rate)
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

/// The sets and folds of a type: `sets! { Type: Engine }`, with estimates `sets! { Type: Engine,
/// estimates }`.
///
/// A type of another crate is not an alias of a [`Filter`](crate::Filter), but derefs to one. It
/// has its inserts and its unions from here too: `sets! { "its_crate::", Type: Engine, "a call that
/// makes a filter of some bytes", "one that makes a filter of another layout", "what an insert's
/// answer means" }`. A type that derefs to none has the estimates alone, from a function
/// `estimated_lens` of its module: `sets! { estimates "its_crate::", Name for [] Type; self }`.
#[doc(hidden)]
#[macro_export]
macro_rules! sets {
    ($filter:ident: $engine:ty $(, $estimates:ident)?) => {
        $crate::sets! { "lanebloom::", $filter for [S: $crate::hash::FilterHasher] $filter<S>;
        $engine, "builder().memory_budget(bytes).build()" }
        $($crate::sets! { $estimates "lanebloom::", $filter for [S: $crate::hash::FilterHasher] $filter<S>;
        <$engine as $crate::internal::Sets> })?
    };

    ($krate:literal, $filter:ident: $engine:ty, $sized:literal, $other:literal, $says:literal) => {
        $crate::inserts! { extends $krate, $filter for [] $filter }
        $crate::inserts! { $krate, $filter for [] $filter, [] $filter; $engine => bool, usize, $crate::internal::into_ok; $says, "", "false" }
        $crate::unions! { $krate, $filter for [] $filter; $engine, "", $other }
        $crate::sets! { $krate, $filter for [] $filter; $engine, $sized }
        $crate::sets! { estimates $krate, $filter for [] $filter; <$engine as $crate::internal::Sets> }
    };

    (estimates $krate:literal, $filter:ident for [$($hashes:tt)*] $target:ty; $($sets:tt)+) => {
        /// Estimates for two filters. They fail as [`union_from`](Self::union_from): if layout or
        /// hasher differ.
        impl<$($hashes)*> $target {
            /// An estimate of the number of distinct keys in either filter: the
            /// [`estimated_len`](lanebloom::Filter::estimated_len) of their union, which is not
            /// made.
            #[doc = $crate::example!("a" = $krate $filter "with_capacity(100_000, 0.01)";
                "let b = a.clone();", "a.insert_all(0..50_000);",
                "b.insert_all(40_000..80_000);",
                "assert!(a.estimated_union_len(&b).unwrap().abs_diff(80_000) < 500);")]
            pub fn estimated_union_len(&self, other: &Self) -> Result<usize, $crate::IncompatibleError> {
                $($sets)+::estimated_lens(self, other).map(|[_, _, either]| either)
            }

            /// An estimate of the number of distinct keys that are in both filters: those of each
            /// less those of either.
            ///
            /// At rates of at most 1%, the standard error is at most `0.5 * sqrt(n)` for two
            /// filters with their `n` expected keys, even if few keys are common: two filters of a
            /// million keys cannot show whether they have 500 keys in common, or none.
            #[doc = $crate::example!("a" = $krate $filter "with_capacity(100_000, 0.01)";
                "let b = a.clone();", "a.insert_all(0..50_000);",
                "b.insert_all(40_000..80_000);",
                "assert!(a.estimated_intersection_len(&b).unwrap().abs_diff(10_000) < 500);")]
            pub fn estimated_intersection_len(&self, other: &Self) -> Result<usize, $crate::IncompatibleError> {
                let [ours, theirs, either] = $($sets)+::estimated_lens(self, other)?;
                Ok(ours.saturating_add(theirs).saturating_sub(either))
            }
        }
    };

    ($krate:literal, $filter:ident for [$($hashes:tt)*] $target:ty; $engine:ty, $sized:literal) => {
        /// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from): if
        /// layout or hasher differ.
        impl<$($hashes)*> $target {
            /// Keeps only what `other` has too; returns whether that changed this filter. `other`
            /// may be in use meanwhile. It takes `&mut self`: beside inserts, some keys would
            /// survive in part. Ends in an `Acquire` on `other`'s content.
            ///
            /// The result has every key that was inserted into both, [and
            /// others](lanebloom::Filter#two-filters-as-sets). What was inserted into two filters
            /// with counters can be removed again.
            #[doc = $crate::example!("mut both" = $krate $filter "with_capacity(1000, 0.01)";
                "let other = both.clone();", "both.insert_batch(&[1, 2]);",
                "other.insert_batch(&[2, 3]);",
                "assert_eq!(both.intersection_from(&other), Ok(true));",
                "assert_eq!(both.intersection_from(&other), Ok(false));",
                "assert!(both.contains(&2) && !both.contains(&1) && !both.contains(&3));")]
            #[doc(alias("intersect_from", "and", "retain"))]
            pub fn intersection_from(&mut self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::intersection_from(self, other)
            }

            /// Whether no key is in both filters: `true` is certain, `false` may be by chance.
            ///
            /// Only [sparse filters](lanebloom::Filter#two-filters-as-sets) can be told apart.
            #[doc = $crate::example!("a" = $krate $filter "with_capacity(1000, 0.01)";
                "let b = a.clone();", "a.insert(&1);", "b.insert(&2);",
                "assert_eq!(a.is_disjoint(&b), Ok(true));",
                "b.insert(&1);",
                "assert_eq!(a.is_disjoint(&b), Ok(false));")]
            pub fn is_disjoint(&self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::is_disjoint(self, other)
            }

            /// Whether `other` has every key of this filter: `false` is certain, `true` may be by
            /// chance. It is `true` exactly if `other` [contains](lanebloom::Filter::contains) each
            /// of the keys: the ones that it lacks would all have to be false positives.
            ///
            /// If every insert into this filter happens after one of the same key into `other`, and
            /// no key is removed, the answer is `true` beside such inserts too. Ends in an
            /// `Acquire`, like a lookup's `true`.
            #[doc = $crate::example!("part" = $krate $filter "with_capacity(1000, 0.01)";
                "let all = part.clone();", "part.insert(&1);", "all.insert_batch(&[1, 2]);",
                "assert_eq!(part.is_subset(&all), Ok(true));",
                "assert_eq!(all.is_subset(&part), Ok(false));")]
            #[doc(alias = "is_superset")]
            pub fn is_subset(&self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::is_subset(self, other)
            }
        }

        /// Folds.
        impl<$($hashes)*> $target {
            /// Divides the number of [blocks](Self::blocks), and so the memory and the
            /// [expected keys](lanebloom::Filter::expected_keys), by `factor`. The keys are not
            /// needed: [how a fold works](lanebloom::Filter#folds), and which factors a filter has.
            ///
            /// Fails if `factor` does not divide the number of blocks (with two lines per key, half
            /// of it), or if the new memory cannot be allocated. Then the filter is as before.
            #[doc = $crate::example!(
                concat!("let sized = |bytes| ", $krate, stringify!($filter), "::", $sized, ";"),
                "let (mut filter, small) = (sized(1 << 16)?, sized(1 << 13)?);",
                "filter.insert_all(0..200);", "small.insert_all(0..200);",
                "filter.fold(8)?;",
                "assert!(filter == small && filter.memory_bytes() == 1 << 13);",
                "assert_eq!(filter.expected_keys(), small.expected_keys());",
                "assert!(filter.fold(3).is_err());")]
            #[doc(alias("shrink", "halve", "compact"))]
            pub fn fold(&mut self, factor: usize) -> Result<(), $crate::BuildError> {
                <$engine as $crate::internal::Sets>::fold(self, factor)
            }

            /// [Folds](Self::fold) by the largest factor after which the [rate
            /// now](lanebloom::Filter::current_false_positive_rate) is at most `rate`; returns the
            /// factor. It is 1, and the filter as before, if every fold would raise the rate beyond
            /// that.
            ///
            /// The [expected keys](lanebloom::Filter::expected_keys) are then those for which the
            /// new filter keeps this rate. Fold a filter that gets no more keys before it is saved
            /// or sent. Fails if `rate` is not between 0 and 1, or if the new memory cannot be
            /// allocated.
            #[doc = $crate::example!(
                concat!("let sized = |bytes| ", $krate, stringify!($filter), "::", $sized, ";"),
                "let mut filter = sized(1 << 20)?;", "filter.insert_all(0..1000);",
                "let factor = filter.fold_to_rate(0.01)?;",
                "assert_eq!(filter.memory_bytes(), (1 << 20) / factor);",
                "assert!(factor >= 128 && filter.current_false_positive_rate() <= 0.01);",
                "assert!((0..1000).all(|key| filter.contains(&key)));",
                "assert_eq!(filter.fold_to_rate(0.01)?, 1);")]
            #[doc(alias("shrink_to_fit"))]
            pub fn fold_to_rate(&mut self, rate: f64) -> Result<usize, $crate::BuildError> {
                <$engine as $crate::internal::Sets>::fold_to_rate(self, rate)
            }
        }
    };
}
pub(crate) use sets;
