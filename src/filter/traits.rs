//! Traits for code that works with any filter.
//!
//! | a function that | takes a [`Filter<E, S>`](Filter) with |
//! |---|---|
//! | looks keys up, or asks how full a filter is | `E: `[`Engine`] |
//! | builds a filter | `E: `[`Planned`] |
//! | inserts | `E: `[`Insert`] |
//! | removes | `E: `[`Remove`] |
//! | counts the copies of a key | `E: `[`Count`] |
//! | unites and compares | `E: `[`Union`] |
//! | saves and loads | `E: `[`Encode`], which gives the filter the methods of [`Stored`] |
//!
//! Each operation has one trait. An engine implements it for hashes. Then every [`Filter`] over the
//! engine has it too, also for keys. On a type of its own, such as
//! [`ConcurrentBloom`](crate::ConcurrentBloom), the methods of the same names need no trait.
//!
//! [`Filter`](Filter#any-filter) has an example. Only the crates of this workspace implement these
//! traits, so that methods can be added: the hidden ones belong to one exact version.

use crate::chunks::{Answer, HASHED, Source, try_gathered, unpack_into};
use crate::codec::{AskHasher, Hashing, Input, Out, assert_snapshot_length, from_slice, given, murmur3, with_hasher};
use crate::error::{BuildError, IncompatibleError, InsertError, SnapshotError, SnapshotErrorKind};
use crate::filter::{Filter, Statistics};
use crate::funnel::Funnel;
use crate::geometry::sizing::Request;
use crate::hash::{FilterHasher, KeyHasher, Murmur3, assert_same_length};
use crate::kernel::{self, Isa, Plan};
use alloc::vec::Vec;
use core::fmt;

/// The engine of any [`Filter`]: a set of hashes that many threads share.
///
/// ```
/// use lanebloom::traits::Engine;
/// use lanebloom::{ConcurrentBloom, CuckooFilter, Filter};
///
/// fn present<E: Engine>(filter: &Filter<E>, names: &[&str]) -> usize {
///     names.iter().filter(|name| filter.contains(**name)).count()
/// }
///
/// assert_eq!(present(&CuckooFilter::from_keys(["a"], 0.01)?, &["a", "b"]), 1);
/// assert_eq!(present(&ConcurrentBloom::from_keys(["a"], 0.01)?, &["a", "b"]), 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Engine: Sized {
    /// The name of the filter type, for `Debug`.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Whether the hash may be there. `true` ends in an `Acquire`.
    #[doc(hidden)]
    fn contains(&self, hash: u64) -> bool;

    /// The plan of lookups of this many hashes.
    #[doc(hidden)]
    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_hashes(hashes)
    }

    /// Calls `answer` with what belongs to each hash, and with the hash's
    /// [`contains`](Self::contains).
    #[doc(hidden)]
    #[inline(always)]
    fn contains_each<P>(&self, hashes: impl Iterator<Item = (u64, P)>, mut answer: impl FnMut(P, bool)) {
        hashes.for_each(|(hash, of_hash)| answer(of_hash, self.contains(hash)));
    }

    /// [`contains`](Self::contains) of every hash, as a bitmap: bit `i % 64` of word `i / 64`. The
    /// bitmap has a word for every 64 hashes; the bits after the last hash become 0.
    #[doc(hidden)]
    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]);

    /// [`contains_bitmap`](Self::contains_bitmap) for a few hashes, at most 64, with their plan.
    #[doc(hidden)]
    #[inline]
    fn contains_few_bitmap(&self, _: Plan, hashes: &[u64]) -> u64 {
        let mut bitmap = [0];
        self.contains_bitmap(hashes, &mut bitmap[..hashes.len().min(1)]);
        bitmap[0]
    }

    /// [`contains`](Self::contains) for a few hashes, at most 64, with their plan.
    #[doc(hidden)]
    #[inline]
    fn contains_few(&self, plan: Plan, hashes: &[u64], found: &mut [bool]) {
        match plan {
            Plan::Single | Plan::Few => {
                let places = hashes.iter().copied().zip(found);
                self.contains_each(places, |place, found| *place = found);
            }
            _ => kernel::scalar::unpack_few(self.contains_few_bitmap(plan, hashes), found),
        }
    }

    /// The keys that it was sized for.
    #[doc(hidden)]
    fn expected_keys(&self) -> usize;

    /// Bytes of its memory.
    #[doc(hidden)]
    fn memory_bytes(&self) -> usize;

    /// Whether it holds nothing.
    #[doc(hidden)]
    fn is_empty(&self) -> bool;

    /// The share of the bits, counters or slots that are taken.
    #[doc(hidden)]
    fn fill_ratio(&self) -> f64 {
        self.statistics().fill_ratio
    }

    /// The number of keys: exact for slots, otherwise an estimate.
    #[doc(hidden)]
    fn estimated_len(&self) -> usize {
        self.statistics().len
    }

    /// The rate to expect with this many keys.
    #[doc(hidden)]
    fn false_positive_rate_at(&self, keys: usize) -> f64;

    /// The rate now.
    #[doc(hidden)]
    fn current_false_positive_rate(&self) -> f64 {
        self.statistics().false_positive_rate
    }

    /// Fill, number of keys and rate now.
    #[doc(hidden)]
    fn statistics(&self) -> Statistics;

    /// Whether the rate now is above the promised one, beyond what chance explains.
    #[doc(hidden)]
    fn is_overfull(&self) -> bool {
        self.current_false_positive_rate() > self.false_positive_rate_at(Statistics::overfull_at(self.expected_keys()))
    }

    /// A copy that holds at least every insert that happened before.
    #[doc(hidden)]
    fn try_clone(&self) -> Result<Self, BuildError>;

    /// The statistics that only this engine has.
    #[doc(hidden)]
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>);

    /// Works by the kernels of `isa` from now on, if the engine has any.
    #[doc(hidden)]
    fn set_isa(&mut self, _: Isa) {}
}

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
/// assert_eq!(sized(ConcurrentBloom::builder())?.expected_keys(), 1000);
/// assert_eq!(sized(CountingBloom::builder())?.expected_keys(), 1000);
/// # Ok::<(), BuildError>(())
/// ```
pub trait Planned: Engine {
    /// The settings of a builder that only this engine needs.
    #[doc(hidden)]
    type Options: Clone + Default + fmt::Debug;

    /// An empty engine of the size that a builder was asked for.
    #[doc(hidden)]
    fn build(request: Request, options: Self::Options) -> Result<Self, BuildError>;

    /// The expected keys of a filter into which `keys` keys come at once.
    #[doc(hidden)]
    fn at_once(keys: usize) -> usize {
        keys
    }
}

/// Hashes keys, as every [`Filter`] with a [`KeyHasher`] does: what the methods for keys of
/// [`Insert`] and [`Remove`] need.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::traits::{Insert, Keyed};
///
/// fn twice<F: Insert + Keyed>(filter: &F, key: &str) -> Result<bool, F::Error> {
///     Ok(filter.insert(key)? && filter.insert(key)?)
/// }
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// assert_eq!(twice(&filter, "a"), Ok(false));
/// assert!(filter.contains("a"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Keyed {
    /// [`Filter::hash`].
    fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64;

    /// The hashes of keys, as they are taken.
    #[doc(hidden)]
    fn source<'a, K: Funnel>(&'a self, keys: &'a [K]) -> impl Source + 'a;

    /// The instruction set that writes answers.
    #[doc(hidden)]
    fn isa(&self) -> Isa;
}

#[doc(hidden)]
impl<E: Engine, S: KeyHasher> Keyed for Filter<E, S> {
    #[inline]
    fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    #[inline(always)]
    fn source<'a, K: Funnel>(&'a self, keys: &'a [K]) -> impl Source + 'a {
        self.keys(keys)
    }

    #[inline]
    fn isa(&self) -> Isa {
        self.isa
    }
}

/// Inserts. One insert returns whether it changed the filter, and many return how many of them did.
/// (Filters that store copies of a key, [`CuckooFilter`](crate::CuckooFilter) and
/// [`DLeftFilter`](crate::DLeftFilter), always change.)
///
/// ```
/// use lanebloom::traits::{Engine, Insert};
/// use lanebloom::{ConcurrentBloom, CuckooFilter, Filter};
///
/// fn refill<E>(filter: &mut Filter<E>, keys: &[u32]) -> Result<usize, E::Error>
/// where
///     E: Engine + Insert,
/// {
///     filter.clear();
///     filter.insert_all(keys)
/// }
///
/// let mut bloom = ConcurrentBloom::with_capacity(10, 0.01)?;
/// let mut cuckoo = CuckooFilter::with_capacity(10, 0.01)?;
/// assert_eq!(refill(&mut bloom, &[7; 100]), Ok(1));
/// let error = refill(&mut cuckoo, &[7; 100]).unwrap_err();
/// assert_eq!(error.inserted(), cuckoo.len());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Insert {
    /// Why an insert is refused: [`InsertError`], or `Infallible` for a filter that takes every
    /// key.
    type Error: fmt::Debug + PartialEq + Into<InsertError> + AsMut<InsertError>;

    /// [`insert`](Self::insert) by hash.
    fn insert_hash(&self, hash: u64) -> Result<bool, Self::Error>;

    /// Inserts in order, up to the first hash that is refused. Passes the answer of each on.
    #[doc(hidden)]
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, Self::Error>;

    /// [`insert_flagged`](Self::insert_flagged) without the answers.
    #[doc(hidden)]
    fn insert_source(&self, source: &impl Source) -> Result<usize, Self::Error> {
        self.insert_flagged(source, None)
    }

    /// The plan of a batch of keys that are not hashed yet.
    #[doc(hidden)]
    #[inline(always)]
    fn plan_of_keys(&self, keys: usize) -> Plan {
        Plan::of_inserts(keys)
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    #[inline]
    fn insert_hashes(&self, hashes: &[u64]) -> Result<usize, Self::Error> {
        self.insert_source(&hashes)
    }

    /// [`insert_batch_flagged`](Self::insert_batch_flagged) by hash.
    fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Self::Error> {
        assert_same_length(hashes.len(), new.len());
        self.insert_flagged(&hashes, Some(&mut unpack_into(Isa::best(), new)))
    }

    /// Removes all keys.
    fn clear(&mut self);

    /// Inserts `key`.
    // Always inlined, since `insert_batch` calls it twice. (A batch of one key took 1.15 times as
    // long as a single insert: Zen 5.)
    #[inline(always)]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<bool, Self::Error>
    where
        Self: Keyed,
    {
        self.insert_hash(self.hash(key))
    }

    /// Inserts the keys in order, up to the first one that is refused.
    // Always inlined, as `insert`.
    #[inline(always)]
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<usize, Self::Error>
    where
        Self: Keyed,
    {
        // Without a loop: it takes 7% longer for one key.
        if let [key] = keys {
            return self.insert(key).map(usize::from);
        }
        if self.plan_of_keys(keys.len()).is_single() {
            let mut changed = 0;
            for (before, key) in keys.iter().enumerate() {
                let inserted = self.insert(key);
                changed += usize::from(inserted.map_err(|refused| after(before, refused))?);
            }
            return Ok(changed);
        }
        self.insert_source(&self.source(keys))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A filter
    /// that refuses a key takes no more from the iterator; it may have taken up to 1023 keys after
    /// that one already.
    fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, Self::Error>
    where
        Self: Keyed,
    {
        let (mut changed, mut before) = (0, 0);
        let hashes = keys.into_iter().map(|key| self.hash(&key));
        try_gathered::<HASHED, _, _>(hashes, |hashes| {
            let inserted = self.insert_hashes(hashes);
            changed += inserted.map_err(|refused| after(before, refused))?;
            before += hashes.len();
            Ok(())
        })?;
        Ok(changed)
    }

    /// [`insert_batch`](Self::insert_batch) that also writes whether each insert changed the filter
    /// to the same place of `new`. Panics if the lengths differ.
    fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> Result<usize, Self::Error>
    where
        Self: Keyed,
    {
        assert_same_length(keys.len(), new.len());
        self.insert_flagged(&self.source(keys), Some(&mut unpack_into(self.isa(), new)))
    }
}

/// The error of a whole batch, if `before` keys precede the part that failed.
fn after<E: AsMut<InsertError>>(before: usize, mut refused: E) -> E {
    refused.as_mut().inserted += before;
    refused
}

#[doc(hidden)]
impl<E: Insert, S> Insert for Filter<E, S> {
    type Error = E::Error;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, E::Error> {
        self.engine.insert_hash(hash)
    }

    #[inline]
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, E::Error> {
        self.engine.insert_flagged(source, answer)
    }

    #[inline]
    fn insert_source(&self, source: &impl Source) -> Result<usize, E::Error> {
        self.engine.insert_source(source)
    }

    #[inline(always)]
    fn plan_of_keys(&self, keys: usize) -> Plan {
        self.engine.plan_of_keys(keys)
    }

    #[inline]
    fn insert_hashes(&self, hashes: &[u64]) -> Result<usize, E::Error> {
        match hashes {
            [hash] if !cfg!(lanebloom_loom) => self.insert_hash(*hash).map(usize::from),
            _ => self.engine.insert_hashes(hashes),
        }
    }

    fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, E::Error> {
        assert_same_length(hashes.len(), new.len());
        self.engine
            .insert_flagged(&hashes, Some(&mut unpack_into(self.isa, new)))
    }

    fn clear(&mut self) {
        self.engine.clear();
    }
}

/// Removes. **Remove only keys that were inserted, and as often.** The removal of a false positive
/// damages another key, and a lookup before it finds the same false positive.
///
/// ```
/// use lanebloom::traits::{Engine, Insert, Remove};
/// use lanebloom::{CountingBloom, CuckooFilter, Filter};
///
/// fn rename<E>(filter: &Filter<E>, old: &str, new: &str) -> Result<(), E::Error>
/// where
///     E: Engine + Insert + Remove,
/// {
///     filter.remove(old); // the caller knows that it is there
///     filter.insert(new).map(drop)
/// }
///
/// let counting = CountingBloom::from_keys(["a"], 0.01)?;
/// let cuckoo = CuckooFilter::from_keys(["a"], 0.01)?;
/// rename(&counting, "a", "b").unwrap();
/// rename(&cuckoo, "a", "b").unwrap();
/// assert!(counting.contains("b") && !counting.contains("a"));
/// assert!(cuckoo.contains("b") && !cuckoo.contains("a"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Remove {
    /// [`remove`](Self::remove) by hash.
    fn remove_hash(&self, hash: u64) -> bool;

    /// Removes in order; returns how many were there. Passes the answer for each on.
    #[doc(hidden)]
    fn remove_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize;

    /// [`remove_batch`](Self::remove_batch) by hash.
    #[inline]
    fn remove_hashes(&self, hashes: &[u64]) -> usize {
        self.remove_flagged(&hashes, None)
    }

    /// [`remove_batch_flagged`](Self::remove_batch_flagged) by hash.
    fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.remove_flagged(&hashes, Some(&mut unpack_into(Isa::best(), removed)))
    }

    /// Removes `key`, or one copy of it; returns whether it was there.
    #[inline]
    fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool
    where
        Self: Keyed,
    {
        self.remove_hash(self.hash(key))
    }

    /// Removes every key; returns how many were there.
    #[inline]
    fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize
    where
        Self: Keyed,
    {
        self.remove_flagged(&self.source(keys), None)
    }

    /// [`remove_batch`](Self::remove_batch) that also writes whether each key was there to the same
    /// place of `removed`. Panics if the lengths differ.
    fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize
    where
        Self: Keyed,
    {
        assert_same_length(keys.len(), removed.len());
        self.remove_flagged(&self.source(keys), Some(&mut unpack_into(self.isa(), removed)))
    }
}

#[doc(hidden)]
impl<E: Remove, S> Remove for Filter<E, S> {
    #[inline]
    fn remove_hash(&self, hash: u64) -> bool {
        self.engine.remove_hash(hash)
    }

    #[inline]
    fn remove_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        self.engine.remove_flagged(source, answer)
    }

    fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), removed.len());
        self.engine
            .remove_flagged(&hashes, Some(&mut unpack_into(self.isa, removed)))
    }
}

/// Counts keys: the filters that keep each key in a slot.
///
/// ```
/// use lanebloom::traits::{Count, Engine};
/// use lanebloom::{CuckooFilter, DLeftFilter, Filter};
///
/// fn copies<E: Engine + Count>(filter: &Filter<E>, key: &str) -> [usize; 2] {
///     [filter.count(key), filter.len()]
/// }
///
/// let keys = ["a", "b", "a"];
/// assert_eq!(copies(&CuckooFilter::from_keys(keys, 0.01)?, "a"), [2, 3]);
/// assert_eq!(copies(&DLeftFilter::from_keys(keys, 0.01)?, "a"), [2, 3]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[expect(clippy::len_without_is_empty, reason = "every engine has `is_empty`")]
pub trait Count {
    /// [`count`](Self::count) by hash.
    fn count_hash(&self, hash: u64) -> usize;

    /// How often `key` is in the filter.
    fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize
    where
        Self: Keyed,
    {
        self.count_hash(self.hash(key))
    }

    /// The number of keys in the filter, every copy counted.
    fn len(&self) -> usize;

    /// The number of slots.
    fn slots(&self) -> usize;

    /// How often one key can be inserted, if no other key takes its slots.
    fn max_copies(&self) -> usize;
}

#[doc(hidden)]
impl<E: Count, S> Count for Filter<E, S> {
    fn count_hash(&self, hash: u64) -> usize {
        self.engine.count_hash(hash)
    }

    fn len(&self) -> usize {
        self.engine.len()
    }

    fn slots(&self) -> usize {
        self.engine.slots()
    }

    fn max_copies(&self) -> usize {
        self.engine.max_copies()
    }
}

/// Unites filters whose content does not depend on the order of the inserts.
///
/// ```
/// use lanebloom::traits::Union;
/// use lanebloom::{ConcurrentBloom, IncompatibleError};
///
/// fn unite<F: Union>(all: &F, parts: &[F]) -> Result<(), IncompatibleError> {
///     parts.iter().try_for_each(|part| all.union_from(part).map(drop))
/// }
///
/// let all = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// let parts = [all.clone(), all.clone()];
/// parts[1].insert("a");
/// unite(&all, &parts).unwrap();
/// assert!(all.contains("a"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Union {
    /// Fails if `other` cannot be united with this one: if layout or hasher differ.
    #[doc(hidden)]
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError>;

    /// Adds every key of `other` to this filter; returns whether that changed it.
    ///
    /// # Errors
    ///
    /// Fails if layout or hasher differ, or if a filter that grows has no room for the other one's
    /// keys.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError>;

    /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from) requires.
    fn is_compatible(&self, other: &Self) -> bool {
        self.check_union(other).is_ok()
    }

    /// Whether layout, hasher and content are the same.
    #[doc(hidden)]
    fn same(&self, other: &Self) -> bool;
}

#[doc(hidden)]
impl<E: Union, S: FilterHasher> Union for Filter<E, S> {
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        self.engine.check_union(&other.engine)?;
        if self.hasher.fingerprint() != other.hasher.fingerprint() {
            return Err(IncompatibleError::hasher());
        }
        Ok(())
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        self.engine.union_from(&other.engine)
    }

    fn same(&self, other: &Self) -> bool {
        self.hasher.fingerprint() == other.hasher.fingerprint() && self.engine.same(&other.engine)
    }
}

/// An engine that can be saved and loaded: a [`Filter`] over it is [`Stored`].
pub trait Encode: Engine {
    /// [`FixedSize`], or `()` if the size of a filter changes.
    type Size;

    /// Whether encoding blocks changes, so that a slow writer gets a copy.
    #[doc(hidden)]
    const HELD: bool;

    #[doc(hidden)]
    fn snapshot_bytes(&self) -> usize;

    #[doc(hidden)]
    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error>;

    /// Reads an engine of at most `limit` bytes. Tells `hasher` the record of the hasher, once, and
    /// fails if that does. (Without parameters of types, so that it is compiled once.)
    #[doc(hidden)]
    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind>;
}

/// The [`Size`](Stored::Size) of filters whose size never changes, and so the length of their
/// snapshots.
///
/// ```
/// use lanebloom::traits::{FixedSize, Stored};
///
/// /// One after another, in memory of the caller.
/// fn write_all<F: Stored<Size = FixedSize>>(filters: &[F], mut out: &mut [u8]) {
///     for filter in filters {
///         let (here, rest) = out.split_at_mut(filter.snapshot_bytes());
///         filter.write_to_slice(here);
///         out = rest;
///     }
/// }
///
/// let filter = |key| lanebloom::ConcurrentBloom::from_keys([key], 0.01);
/// let filters = [filter("a")?, filter("b")?];
/// let mut out = vec![0; 2 * filters[0].snapshot_bytes()];
/// write_all(&filters, &mut out);
/// assert_eq!(out, filters.map(|filter| filter.to_bytes()).concat());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub enum FixedSize {}

/// A filter that can be saved and loaded, as a [snapshot](crate::codec).
///
/// ```
/// use lanebloom::traits::Stored;
/// use lanebloom::{CuckooFilter, Murmur3, SnapshotError};
///
/// fn reload<F: Stored<Hasher = Murmur3>>(filter: &F) -> Result<F, SnapshotError> {
///     Ok(F::from_bytes(&filter.to_bytes())?.0)
/// }
///
/// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
/// filter.insert("a")?;
/// assert!(reload(&filter)?.remove("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Stored: Sized {
    /// The filter's hasher.
    type Hasher: FilterHasher;

    /// [`FixedSize`], or `()` if the size of a filter changes.
    type Size;

    /// The length of a snapshot now.
    #[doc(hidden)]
    fn encoded_bytes(&self) -> usize;

    #[doc(hidden)]
    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error>;

    /// [`encode`](Self::encode), of a copy if that blocks changes.
    #[doc(hidden)]
    #[cfg(feature = "std")]
    fn encode_unheld<O: Out<Error = std::io::Error>>(&self, out: &mut O) -> std::io::Result<()> {
        self.encode(out)
    }

    /// Reads a filter of at most `limit` bytes.
    #[doc(hidden)]
    fn decode(
        input: &mut dyn Input,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<Self::Hasher, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind>;

    /// The filter as bytes. Aborts if the allocation fails.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_bytes());
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// [`to_bytes`](Self::to_bytes) to a writer. Fails if the writer fails, or with kind
    /// `OutOfMemory` if a copy cannot be allocated.
    #[cfg(feature = "std")]
    fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        let mut out = crate::codec::Writer::new(writer);
        self.encode_unheld(&mut out)?;
        out.finish()
    }

    /// The length of every snapshot of this filter in bytes.
    fn snapshot_bytes(&self) -> usize
    where
        Self: Stored<Size = FixedSize>,
    {
        self.encoded_bytes()
    }

    /// [`to_bytes`](Self::to_bytes) into the caller's memory. Panics if `out` does not have
    /// [`snapshot_bytes`](Self::snapshot_bytes) bytes.
    fn write_to_slice(&self, mut out: &mut [u8])
    where
        Self: Stored<Size = FixedSize>,
    {
        assert_snapshot_length(out.len(), self.encoded_bytes());
        let Ok(()) = self.encode(&mut out);
    }

    /// The filter with which `bytes` begin, and the bytes after it. Fails if the bytes are not a
    /// snapshot of this type of filter, or if the hasher is not [`Murmur3`].
    fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError>
    where
        Self: Stored<Hasher = Murmur3>,
    {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// [`from_bytes`](Self::from_bytes) for any hasher. Fails if the bytes are not a snapshot of
    /// this type of filter, or if the hasher differs.
    fn from_bytes_with(bytes: &[u8], hasher: Self::Hasher) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// Reads a snapshot of a filter that takes at most `max_bytes` of memory. Fails as
    /// [`from_bytes`](Self::from_bytes), and if the reader fails.
    #[cfg(feature = "std")]
    fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError>
    where
        Self: Stored<Hasher = Murmur3>,
    {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }

    /// [`read_from`](Self::read_from) for any hasher.
    #[cfg(feature = "std")]
    fn read_from_with(
        reader: impl std::io::Read,
        max_bytes: usize,
        hasher: Self::Hasher,
    ) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }
}

#[doc(hidden)]
impl<E: Encode, S: FilterHasher> Stored for Filter<E, S> {
    type Hasher = S;
    type Size = E::Size;

    fn encoded_bytes(&self) -> usize {
        self.engine.snapshot_bytes()
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        self.engine.encode(Hashing::of(&self.hasher), out)
    }

    #[cfg(feature = "std")]
    fn encode_unheld<O: Out<Error = std::io::Error>>(&self, out: &mut O) -> std::io::Result<()> {
        if !E::HELD {
            return self.encode(out);
        }
        let copy = self.engine.try_clone();
        let copy = copy.map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))?;
        copy.encode(Hashing::of(&self.hasher), out)
    }

    fn decode(
        input: &mut dyn Input,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let (engine, hasher) = with_hasher(hasher, |hasher| E::decode(input, limit, hasher))?;
        Ok(Self::of(engine, hasher))
    }
}
