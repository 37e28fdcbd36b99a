//! What an engine does: the part of a filter that stores hashes. The families in `methods/`
//! have the rest, once for all engines. `methods/traits.rs` has the traits that a user names.
//!
//! An engine is one of
//!
//! - [`Lined`](crate::filter::parts::lines::Lined): words in lines of the cache,
//! - [`Slotted`](crate::filter::parts::slots::Slotted): a table of slots,
//! - several `Lined` engines: layers, generations, a pair.
//!
//! Only `EngineImpl` and `PlannedImpl` are bounds of public items, and so nameable through
//! `internal`.

use crate::batch::{Answer, Source};
use crate::codec::{Hashing, Input, Out};
use crate::error::{BuildError, IncompatibleError, SnapshotErrorKind};
use crate::geometry::sizing::Request;
use crate::kernel::{self, Isa};
use core::fmt;

/// The result of [`Filter::figures`](crate::filter::Filter::figures).
///
/// ```
/// use lanebloom::{CuckooFilter, Figures};
///
/// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
/// filter.insert_batch(&["a", "b"]).unwrap();
/// let Figures { len, fill_ratio, .. } = filter.figures();
/// assert_eq!((len, fill_ratio), (2, filter.fill_ratio()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The share of the bits, counters or slots that are taken.
    pub fill_ratio: f64,
    /// The number of keys: exact for filters with slots, otherwise an estimate.
    pub len: usize,
    /// The chance that a random hash is taken for present.
    pub false_positive_rate: f64,
}

/// The engine of any [`Filter`](crate::filter::Filter): a set of hashes that many threads share.
///
/// ```
/// use lanebloom::traits::Engine;
/// use lanebloom::{ConcurrentBloom, CuckooFilter, Filter};
///
/// fn present<E: Engine>(filter: &Filter<E>, names: &[&str]) -> usize {
///     names.iter().filter(|name| filter.contains(**name)).count()
/// }
///
/// let cuckoo = CuckooFilter::with_capacity(1000, 0.01)?;
/// cuckoo.insert("a").unwrap();
/// let bloom = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// bloom.insert("a");
/// assert_eq!(present(&cuckoo, &["a", "b"]), 1);
/// assert_eq!(present(&bloom, &["a", "b"]), 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Engine: EngineImpl {}

impl<E: EngineImpl> Engine for E {}

/// The engine of a filter that a [`Builder`](crate::Builder) makes.
///
/// ```
/// use lanebloom::traits::Planned;
/// use lanebloom::{BuildError, Builder, ConcurrentBloom, CountingBloom, Filter};
///
/// fn sized<E: Planned>(builder: Builder<E>) -> Result<Filter<E>, BuildError> {
///     builder.expected_keys(1000).false_positive_rate(1e-3).build()
/// }
///
/// let bloom = sized(ConcurrentBloom::builder())?;
/// let counting = sized(CountingBloom::builder())?;
/// assert_eq!(bloom.expected_keys(), counting.expected_keys());
/// # Ok::<(), BuildError>(())
/// ```
pub trait Planned: Engine + PlannedImpl {}

impl<E: PlannedImpl> Planned for E {}

/// Looks hashes up, and says how full the engine is.
pub trait EngineImpl: Sized {
    /// The name of the filter type, for `Debug`.
    const NAME: &'static str;

    /// Whether the hash may be there. `true` ends in an `Acquire`.
    fn contains(&self, hash: u64) -> bool;

    /// Fewer hashes than so many are looked up by [`contains`](Self::contains), one after another.
    #[inline]
    fn fewest_not_single(&self) -> usize {
        2
    }

    /// Calls `answer` with what belongs to each hash, and with the hash's [`contains`](Self::contains).
    #[inline(always)]
    fn contains_each<P>(&self, hashes: impl Iterator<Item = (u64, P)>, mut answer: impl FnMut(P, bool)) {
        hashes.for_each(|(hash, of_hash)| answer(of_hash, self.contains(hash)));
    }

    /// [`contains`](Self::contains) of every hash, as a bitmap: bit `i % 64` of word `i / 64`. The
    /// bitmap has a word for every 64 hashes; the bits after the last hash become 0.
    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]);

    /// [`contains_bitmap`](Self::contains_bitmap) for a few hashes, at most 64.
    #[inline]
    fn contains_few_bitmap(&self, hashes: &[u64]) -> u64 {
        let mut bitmap = [0];
        self.contains_bitmap(hashes, &mut bitmap[..hashes.len().min(1)]);
        bitmap[0]
    }

    /// [`contains`](Self::contains) for a few hashes, at most 64.
    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        kernel::scalar::unpack_few(self.contains_few_bitmap(hashes), found);
    }

    /// The keys that it was sized for.
    fn expected_keys(&self) -> usize;

    /// Bytes of its memory.
    fn memory_bytes(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool;

    /// The share of the bits, counters or slots that are taken.
    fn fill_ratio(&self) -> f64 {
        self.figures().fill_ratio
    }

    /// The rate to expect with so many keys.
    fn false_positive_rate_at(&self, keys: usize) -> f64;

    /// The rate now.
    fn current_false_positive_rate(&self) -> f64 {
        self.figures().false_positive_rate
    }

    /// Fill, number of keys and rate now.
    fn figures(&self) -> Figures;

    /// Whether the rate now is above the promised one, beyond what chance explains.
    fn is_overfull(&self) -> bool {
        self.current_false_positive_rate() > self.false_positive_rate_at(noticed(self.expected_keys()))
    }

    /// A copy that holds at least every insert that happened before.
    fn try_clone(&self) -> Result<Self, BuildError>;

    /// The figures that only this engine has.
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>);

    /// Works by the kernels of `isa` from now on, if the engine has any.
    fn set_isa(&mut self, _: Isa) {}
}

/// The number of keys whose rate is above that of the expected `keys` beyond what chance explains.
///
/// Let the rate of a block grow as the power `p` of its keys, `m` in the mean of `b` blocks. Keys
/// per block vary by `sqrt(m)`, the rates by the share `p / sqrt(m)`, and their mean by `p / sqrt(b
/// * m)`. With `n = b * m`, this is what `sqrt(n)` keys more change, for any layout.
pub fn noticed(keys: usize) -> usize {
    keys.saturating_add(4 * keys.isqrt())
}

/// Builds an engine.
pub trait PlannedImpl: EngineImpl {
    /// What a builder collects that only this engine needs.
    type Options: Clone + Default + fmt::Debug;

    /// An empty engine of the size that a builder was asked for.
    fn build(request: Request, options: Self::Options) -> Result<Self, BuildError>;

    /// The expected keys of a filter into which `keys` keys come at once.
    fn at_once(keys: usize) -> usize {
        keys
    }
}

/// Inserts hashes.
pub(crate) trait InsertImpl: EngineImpl {
    /// The answer of one insert.
    type Answer;
    /// The answer of many inserts.
    type Total;

    fn insert(&self, hash: u64) -> Self::Answer;

    /// Inserts in order, up to the first hash that is refused.
    fn insert_all(&self, source: &impl Source) -> Self::Total;

    /// [`insert_all`](Self::insert_all) of hashes: where a few go one by one, inlined.
    #[inline]
    fn insert_hashes(&self, hashes: &[u64]) -> Self::Total {
        self.insert_all(&hashes)
    }

    /// Unsets everything.
    fn clear(&mut self);
}

/// Inserts that report whether the key was new.
pub(crate) trait InsertFlaggedImpl: InsertImpl {
    /// [`insert_all`](InsertImpl::insert_all) that passes each answer on.
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Self::Total;
}

/// Removes hashes.
pub(crate) trait RemoveImpl: EngineImpl {
    fn remove(&self, hash: u64) -> bool;

    /// Removes in order; returns how many were there.
    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize;
}

/// Can only estimate its number of keys.
pub(crate) trait EstimateImpl: EngineImpl {
    fn estimated_len(&self) -> usize;
}

/// Has content that does not depend on the order of the inserts.
pub(crate) trait UnionImpl: EngineImpl {
    /// Whether both have the same layout and the same content.
    fn same(&self, other: &Self) -> bool;

    /// Fails if the layouts differ.
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError>;

    /// Adds the content of `other`; returns whether that changed this engine. Fails if there is no
    /// room.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError>;
}

/// Saves and loads an engine.
pub(crate) trait StoredImpl: EngineImpl {
    /// Whether encoding blocks changes, so that a slow writer gets a copy.
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "`write_to` asks"))]
    const HELD: bool;

    fn snapshot_bytes(&self) -> usize;

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error>;

    /// Reads an engine of at most `limit` bytes. `hasher` turns the record of the hasher into one.
    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind>;
}
