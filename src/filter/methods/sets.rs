//! Two filters, compared and combined as sets of keys: intersection, subset, disjoint sets, and the
//! numbers of keys that both or either have. `unions.rs` has the union, which more types have.

use crate::error::IncompatibleError;
use crate::filter::Filter;
use crate::filter::parts::lines::{Blocked, OwnWords};
use crate::filter::traits::Union;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::hash::FilterHasher;
use crate::words::bits;
use core::array;

/// An engine whose content is blocks of bits, or of counters, which lookups see as bits.
///
/// The functions for two filters fail as [`Union::union_from`]: if layout or hasher differ.
pub trait Sets: Union + Sized {
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
}

impl<W: OwnWords> Sets for Blocked<W> {
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

    /// A key has a bit in every sector of a line; with two lines, in one of each half of the
    /// blocks.
    fn share_no_key(&self, other: &Self) -> bool {
        let Layout { shape, blocks } = self.layout;
        let (sector, part) = (LINE_WORDS / shape.words, blocks / shape.lines);
        let may_share = |(a, b): (Self::Block, Self::Block)| {
            let common: Self::Block = array::from_fn(|i| a[i] & b[i]);
            common
                .chunks_exact(sector)
                .all(|words| words.iter().any(|&word| word != 0))
        };
        (0..shape.lines).any(|half| !self.both(other).skip(half * part).take(part).any(may_share))
    }
}

/// The sets of a type: `sets! { Type: Engine }`, with estimates `sets! { Type: Engine, estimates
/// }`. A type of another crate says before it which: `"its_crate::"`.
#[doc(hidden)]
#[macro_export]
macro_rules! sets {
    ($filter:ident: $engine:ty $(, $estimates:ident)?) => {
        $crate::sets! { "lanebloom::", $filter for [S: $crate::hash::FilterHasher] $filter<S>;
        $engine $(, $estimates)? }
    };

    ($krate:literal, $filter:ident: $engine:ty, $estimates:ident) => {
        $crate::sets! { $krate, $filter for [] $filter; $engine, $estimates }
    };

    ($krate:literal, $filter:ident for [$($hashes:tt)*] $target:ty; $engine:ty, estimates) => {
        $crate::sets! { $krate, $filter for [$($hashes)*] $target; $engine }

        /// Estimates for two filters. They fail as [`union_from`](Self::union_from): if layout or
        /// hasher differ.
        impl<$($hashes)*> $target {
            /// An estimate of the number of distinct keys in either filter: the
            /// [`estimated_len`](Self::estimated_len) of their union, which is not made.
            ///
            /// ```
            #[doc = concat!("let a = ", $krate, stringify!($filter), "::with_capacity(100_000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert_all(0..50_000u32);
            /// b.insert_all(40_000..80_000u32);
            /// assert!(a.estimated_union_len(&b).unwrap().abs_diff(80_000) < 500);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn estimated_union_len(&self, other: &Self) -> Result<usize, $crate::IncompatibleError> {
                let [_, _, either] = <$engine as $crate::internal::Sets>::estimated_lens(self, other)?;
                Ok(either)
            }

            /// An estimate of the number of distinct keys that are in both filters: those of each
            /// less those of either.
            ///
            /// At rates of at most 1%, the standard error is at most `0.5 * sqrt(n)` for two
            /// filters with their `n` expected keys, even if few keys are common: two filters of a
            /// million keys cannot show whether they have 500 keys in common, or none.
            ///
            /// ```
            #[doc = concat!("let a = ", $krate, stringify!($filter), "::with_capacity(100_000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert_all(0..50_000u32);
            /// b.insert_all(40_000..80_000u32);
            /// assert!(a.estimated_intersection_len(&b).unwrap().abs_diff(10_000) < 500);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn estimated_intersection_len(&self, other: &Self) -> Result<usize, $crate::IncompatibleError> {
                let [ours, theirs, either] = <$engine as $crate::internal::Sets>::estimated_lens(self, other)?;
                Ok(ours.saturating_add(theirs).saturating_sub(either))
            }
        }
    };

    ($krate:literal, $filter:ident for [$($hashes:tt)*] $target:ty; $engine:ty) => {
        /// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from): if
        /// layout or hasher differ.
        impl<$($hashes)*> $target {
            /// Keeps only what `other` has too; returns whether that changed this filter. `other`
            /// may be in use meanwhile. It takes `&mut self`: beside inserts, some keys would
            /// survive in part.
            ///
            /// The result answers `true` exactly if both filters would have. So it has every key
            /// that was inserted into both, and a key of only one at the other one's rate. It is
            /// not the filter of the common keys alone: bits that different keys set in the two
            /// filters stay too. [Its rate](Self::current_false_positive_rate) for keys of neither
            /// is at most the lower one of the two. (At 1%, two full filters without a common key
            /// leave 1e-4; if half of the keys are common, 1e-3 to 1.3e-3, where a filter of these
            /// alone has 3e-4 to 6e-4.) A counter keeps the lesser of two values, so what was
            /// inserted into both can be removed again.
            ///
            /// # Memory ordering
            ///
            /// Ends in an `Acquire` on `other`'s content.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let mut both = ", $krate, stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let other = both.clone();
            /// both.insert_batch(&["a", "b"]);
            /// other.insert_batch(&["b", "c"]);
            /// assert_eq!(both.intersection_from(&other), Ok(true));
            /// assert_eq!(both.intersection_from(&other), Ok(false));
            /// assert!(both.contains("b") && !both.contains("a") && !both.contains("c"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("intersect_from", "and", "retain"))]
            pub fn intersection_from(&mut self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::intersection_from(self, other)
            }

            /// Whether no key is in both filters: `true` is certain, `false` may be by chance.
            ///
            /// Only sparse filters can be told apart: with 4 keys per block of 64 bytes in each of
            /// the two, or 3 keys per block of 32 bytes, the result is nearly always `false`. (A
            /// full filter for 1% has 50 or 24.) For fuller filters, use
            /// [`estimated_intersection_len`](lanebloom::ConcurrentBloom::estimated_intersection_len).
            ///
            /// ```
            #[doc = concat!("let a = ", $krate, stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let b = a.clone();
            /// a.insert("a");
            /// b.insert("b");
            /// assert_eq!(a.is_disjoint(&b), Ok(true));
            /// b.insert("a");
            /// assert_eq!(a.is_disjoint(&b), Ok(false));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn is_disjoint(&self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::is_disjoint(self, other)
            }

            /// Whether `other` has every key of this filter: `false` is certain, `true` may be by
            /// chance. It is `true` exactly if `other` [contains](Self::contains) each of the keys:
            /// the ones that it lacks would all have to be false positives.
            ///
            /// If every insert into this filter happens after one of the same key into `other`, and
            /// no key is removed, the answer is `true` beside such inserts too.
            ///
            /// # Memory ordering
            ///
            /// Ends in an `Acquire`, like a lookup's `true`.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let part = ", $krate, stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let all = part.clone();
            /// part.insert("a");
            /// all.insert_batch(&["a", "b"]);
            /// assert_eq!(part.is_subset(&all), Ok(true));
            /// assert_eq!(all.is_subset(&part), Ok(false));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias = "is_superset")]
            pub fn is_subset(&self, other: &Self) -> Result<bool, $crate::IncompatibleError> {
                <$engine as $crate::internal::Sets>::is_subset(self, other)
            }
        }
    };
}
pub(crate) use sets;
