//! A pair of Bloom filters that can delete, once. [`TombstoneBloom`] has one filter for the keys
//! that were added and one for the keys that were removed since. A key is there if the first filter
//! has it and the second has not.
//!
//! Use it for keys that come once and go once, such as coupons or one-time tokens. The filter never
//! unsets a bit, so it is as fast and as lock-free as two `ConcurrentBloom`s. Pairs from several
//! machines can be [united](TombstoneBloom::union_from) in any order (the literature calls this a
//! two-phase set).
//!
//! # When not to use it
//!
//! - **A key that is there may be missing.** A lookup misses every key that the second filter takes
//!   for removed: a false *negative*. Its rate is the
//!   [`false_negative_rate`](Builder::false_negative_rate), one key in a thousand by default. So
//!   this filter does not keep the first promise of all other filters here. A missing key stays
//!   missing for ever: neither another lookup nor another insert helps. If no key may be missing,
//!   use a [`CountingBloom`](crate::CountingBloom).
//! - **A removed key cannot come back.** Another insert of it changes nothing.
//! - Both filters fill up if keys come and go without end: every key that was ever added or removed
//!   counts. Beyond the expected numbers both rates rise, and
//!   [`is_overfull`](crate::Statistics::is_overfull) is true once either is too high.
//!
//! # The rates
//!
//! Let `fp` be the rate of the first filter at the keys ever added, and `fn` the rate of the second
//! at the keys ever removed:
//!
//! | a key that | is taken for present at the rate |
//! |---|---|
//! | was never added | `fp * (1 - fn)`: by mistake |
//! | was added | `1 - fn`; it is missing at the rate `fn` |
//! | was added and removed | never, from then on |
//!
//! The errors of the two are independent. The remove of a key that was never added does harm only
//! at the rate `fp`: then it takes a place in the second filter.
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency), with these differences:
//!
//! 1. **Once removed, absent.** If a remove of a key that found it happens before a lookup, the
//!    lookup returns false. A lookup finds every key whose insert happened before and that no
//!    thread removes, **but for the rate of false negatives**. A key does not go missing unless
//!    keys are removed.
//! 2. **Answers.** An insert returns true if this call changed the filter of added keys. A remove
//!    returns true if the key was found there and this call changed the filter of removed keys. If
//!    several threads race to remove a key that is there, at least one gets true. With one [word
//!    per key](Builder::words_per_key) exactly one does, so a remove is a claim: the thread that
//!    gets true has the coupon.
//! 3. **Publication.** A thread that finds a key sees what its inserter had done before. A thread
//!    that misses a key because it was removed sees what its remover had done before.
//! 4. **The whole filter.** In a `clone`, a union and a [snapshot](crate::codec) of a live filter,
//!    every key that was removed before is absent. Every key that was inserted before and is not
//!    removed meanwhile is there, but for the rate of false negatives.

use crate::answers::Answers;
use crate::chunks::{Answer, Source, answered};
use crate::codec::{AskHasher, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_header};
use crate::error::{BuildError, BuildErrorKind, IncompatibleError, SnapshotErrorKind};
use crate::filter::methods::inserts::into_ok;
use crate::filter::parts::several::{SECONDS, fill_of_all, narrow};
use crate::filter::traits::{Encode, Engine, FixedSize, Insert, Planned, Remove, Union};
use crate::filter::types::bloom::Bloom;
use crate::filter::{Filter, Statistics};
use crate::geometry::rates;
use crate::geometry::sizing::Request;
use crate::hash::bytes::mix;
use crate::hash::{FilterHasher, Murmur3};
use crate::kernel::Isa;
use crate::key::Key;
use crate::words::bits;
use alloc::format;
use core::convert::Infallible;
use core::fmt;

/// A pair of lock-free Bloom filters, of keys added and of keys removed, for many threads at once.
///
/// An insert returns `true` if it changed the filter of added keys, and `false` for a key that was
/// added before, or by chance. Inserting a key again changes nothing, also after its removal: **a
/// removed key cannot come back**. Remove only what was inserted.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] says what all filters share,
/// [batches and hashes](Filter#batches) too. **It has false negatives**: see [the module](self).
///
/// ```
/// use lanebloom::TombstoneBloom;
/// use std::thread;
///
/// // With one word per key a remove is a claim.
/// let builder = TombstoneBloom::builder().expected_keys(1000);
/// let coupons = builder.words_per_key(1).build()?;
/// coupons.insert("SPRING");
/// let used: usize = thread::scope(|scope| {
///     let use_it = || usize::from(coupons.remove("SPRING"));
///     let threads: Vec<_> = (0..4).map(|_| scope.spawn(use_it)).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// assert_eq!(used, 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type TombstoneBloom<S = Murmur3> = Filter<Tombstone, S>;

/// The engine of [`TombstoneBloom`]: the added keys, and the tombstones of the removed ones.
pub struct Tombstone {
    added: Bloom,
    removed: Bloom,
}

/// Maps a key's hash in the filter of added keys to its hash in the filter of removed keys. The map
/// is a bijection, as good as another hash. With the same hash in both, two keys that collide in
/// one filter would collide in the other, and the rates would depend on each other.
#[inline(always)]
fn tombstone(hash: u64) -> u64 {
    mix(hash)
}

/// Sizes a [`TombstoneBloom`]; made by [`TombstoneBloom::builder`](Filter::builder). By default the
/// rates are 1% of false positives and 0.1% of false negatives, and all expected keys are removed.
///
/// ```
/// use lanebloom::TombstoneBloom;
///
/// // 10.8 bits for every key, 16.7 for every one that will be removed.
/// let all = TombstoneBloom::with_capacity(100_000, 0.01)?;
/// assert!((27.5..27.7).contains(&all.statistics().bits_per_key));
///
/// let builder = TombstoneBloom::builder().expected_keys(100_000);
/// let few = builder.expected_removals(10_000).build()?;
/// assert!((12.4..12.6).contains(&few.statistics().bits_per_key));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<Tombstone, S>;

/// Inserts and lookups, one key or many.
impl<S> TombstoneBloom<S> {
    /// Inserts `key`. Returns whether this changed the filter of added keys. The insert of a key
    /// that was removed changes nothing.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        into_ok(self.try_insert(key))
    }

    /// Whether `key` may be in the filter. `true` may be wrong, and `false` too: see the type.
    ///
    /// Never `true` for a key that was removed. `false` for a key that was inserted and not
    /// removed, at the rate of false negatives.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2]);
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        into_ok(self.try_insert_batch(keys))
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.look_up_batch(keys, out);
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter. [`Answers`] says what `new` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> usize {
        into_ok(self.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100);
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        into_ok(self.try_insert_all(keys))
    }
}

/// Removes.
impl<S> TombstoneBloom<S> {
    /// Removes `key` for ever. Returns whether this call did: the key was there, or a false
    /// positive.
    ///
    /// **Remove only what was inserted.** A false positive that is removed takes a place among the
    /// removed keys, and the key cannot be inserted any more.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::from_keys(["a", "b"], 0.001)?;
    /// assert!(filter.remove("a"));
    /// assert!(!filter.contains("a") && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.take(key)
    }

    /// Removes every key, as [`remove`](Self::remove) does; returns how many were there.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::from_keys([1, 2, 3], 0.001)?;
    /// assert_eq!(filter.remove_batch(&[1, 3]), 2);
    /// assert!(filter.contains(&2) && !filter.contains(&1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        self.take_batch_into(keys, ())
    }

    /// [`remove_batch`](Self::remove_batch) that also passes on whether each key was there: it does
    /// not find absent keys out beforehand. [`Answers`] says what `removed` can be, and when this
    /// panics.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::from_keys([1, 2, 3], 0.001)?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_into(&[3, 1], &mut removed), 2);
    /// assert!(removed == [true, true] && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_into<K: Key<S>>(&self, keys: &[K], removed: impl Answers) -> usize {
        self.take_batch_into(keys, removed)
    }
}

/// Unions.
impl<S: FilterHasher> TombstoneBloom<S> {
    /// Inserts every key that was inserted into `other` before, and removes every key that was
    /// removed there; returns whether that changed this filter. Both may be in use meanwhile.
    ///
    /// Fails if layout or hasher (its algorithm, seed or key) differ. Then no key is added.
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// ```
    /// let all = lanebloom::TombstoneBloom::with_capacity(1000, 0.01)?;
    /// let (part, empty) = (all.clone(), all.clone());
    /// let _ = part.insert("a");
    /// assert!(all.union_from(&part)? && all.contains("a"));
    /// assert!(!all.union_from(&empty)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Union::union_from(self, other)
    }
}

impl<S> Builder<S> {
    /// [`words_per_key`](crate::bloom::Builder::words_per_key) of each Bloom filter.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().expected_keys(1000);
    /// let one = builder.clone().words_per_key(1).build()?;
    /// assert!(one.memory_bytes() > builder.clone().build()?.memory_bytes());
    /// assert!(builder.words_per_key(3).build().is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// [`lines_per_key`](crate::bloom::Builder::lines_per_key) of each Bloom filter.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().false_positive_rate(1e-4);
    /// let builder = builder.expected_keys(100_000);
    /// let (one, two) = (builder.clone().build()?, builder.lines_per_key(2).build()?);
    /// assert!(two.memory_bytes() * 100 < one.memory_bytes() * 97);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn lines_per_key(mut self, lines: usize) -> Self {
        self.request.lines = Some(lines);
        self
    }

    /// The number of distinct keys ever removed, up to which the rate of false negatives holds. 0
    /// means 1. The default is all expected keys.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().expected_keys(50_000);
    /// let filter = builder.expected_removals(5000).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32));
    /// filter.remove_batch(&Vec::from_iter(0..5000u32));
    /// assert!((0.0005..0.0015).contains(&filter.removals().false_positive_rate));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_removals(mut self, removals: usize) -> Self {
        self.options.0 = Some(removals);
        self
    }

    /// The chance that the filter does **not find** a key that is there, once the expected removals
    /// are done. Between 0 and 1, both excluded; 0.001 by default.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().expected_keys(1000);
    /// let filter = builder.false_negative_rate(1e-6).build()?;
    /// assert!(filter.false_negative_rate() <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_negative_rate(mut self, rate: f64) -> Self {
        self.options.1 = Some(rate);
        self
    }
}

impl Planned for Tombstone {
    /// The number of removed keys, and the rate of false negatives.
    type Options = (Option<usize>, Option<f64>);

    fn build(request: Request, (removals, rate): Self::Options) -> Result<Self, BuildError> {
        let removed = Request {
            keys: removals.or(request.keys),
            rate: rate.or(Some(0.001)),
            ..request
        };
        let removed = Bloom::build(removed, ()).map_err(|BuildError(kind)| {
            BuildError(match kind {
                BuildErrorKind::Rate(rate) => BuildErrorKind::Setting(format!(
                    "false-negative rate {rate} is not between 0 and 1, both excluded"
                )),
                BuildErrorKind::Unreachable { rate, limit, .. } => BuildErrorKind::Setting(format!(
                    "a false-negative rate of {rate:e} takes more than the limit of {limit} bits per removed key"
                )),
                other => other,
            })
        });
        Ok(Self {
            added: Bloom::build(request, ())?,
            removed: removed?,
        })
    }
}

impl Tombstone {
    /// Looks hashes up among the added ones; passes the tombstones of those found to `second`.
    fn look_up(&self, hashes: &[u64], answers: &mut [u64], second: impl Fn(&[u64], &mut [u64])) {
        let added = |hashes: &[u64], found: &mut [u64]| self.added.contains_bitmap(hashes, found);
        narrow(
            self.added.words.kernels.lookups.isa(),
            SECONDS,
            hashes,
            answers,
            tombstone,
            added,
            second,
        );
    }
}

impl Engine for Tombstone {
    const NAME: &'static str = "TombstoneBloom";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.added.contains(hash) && !self.removed.contains(tombstone(hash))
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        self.look_up(hashes, found, |tombstones, answers| {
            self.removed.contains_bitmap(tombstones, answers);
            for answers in answers {
                *answers = !*answers;
            }
        });
    }

    fn expected_keys(&self) -> usize {
        self.added.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Without removals.
    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.added.false_positive_rate_at(keys)
    }

    fn statistics(&self) -> Statistics {
        // Reads the filter of added keys last. Beside removes of keys that were just added, the
        // length is then rather too large than too small.
        let removed = self.removed.statistics();
        let added = self.added.statistics();
        let fills = [(removed.fill_ratio, &self.removed), (added.fill_ratio, &self.added)];
        Statistics::new(
            fill_of_all(fills.into_iter()),
            added.len.saturating_sub(removed.len),
            rates::but_not(added.false_positive_rate, removed.false_positive_rate),
        )
    }

    fn is_overfull_at(&self, _: f64) -> bool {
        [&self.added, &self.removed]
            .into_iter()
            .any(|one| one.is_overfull_at(one.statistics().false_positive_rate))
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        // Copies the filter of removed keys last, so that few keys in the copy are removed already.
        let added = self.added.try_clone()?;
        let removed = self.removed.try_clone()?;
        Ok(Self { added, removed })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("expected_removals", &self.removed.expected_keys)
            .field("added", &self.added.statistics().fill_ratio)
            .field("removed", &self.removed.statistics().fill_ratio);
    }

    fn set_isa(&mut self, isa: Isa) {
        self.added.set_isa(isa);
        self.removed.set_isa(isa);
    }
}

impl Insert for Tombstone {
    type Error = Infallible;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, Infallible> {
        self.added.insert_hash(hash)
    }

    fn insert_source(&self, source: &impl Source) -> Result<usize, Infallible> {
        self.added.insert_source(source)
    }

    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, Infallible> {
        self.added.insert_flagged(source, answer)
    }

    fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
    }
}

impl Remove for Tombstone {
    #[inline]
    fn remove_hash(&self, hash: u64) -> bool {
        self.added.contains(hash) && into_ok(self.removed.insert_hash(tombstone(hash)))
    }

    fn remove_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> usize {
        let bury = |tombstones: &[u64], answers: &mut [u64]| {
            self.removed.words.insert_hashes(tombstones, answers);
            bits::acquire();
        };
        answered(source, &mut answer, |hashes, removed| {
            self.look_up(hashes, removed, bury)
        })
    }
}

impl Union for Tombstone {
    fn same(&self, other: &Self) -> bool {
        self.added.same(&other.added) && self.removed.same(&other.removed)
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        self.added.check_union(&other.added)?;
        self.removed.check_union(&other.removed)
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        // Merges the filter of removed keys first. Otherwise removed keys that are new here would
        // be found until their tombstones have come.
        let buried = self.removed.union_from(&other.removed)?;
        Ok(self.added.union_from(&other.added)? | buried)
    }
}

// A header, and the snapshots of both. `docs/FORMAT.md` describes the bytes.
impl Encode for Tombstone {
    type Size = FixedSize;
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        SNAPSHOT_HEADER + self.added.snapshot_bytes() + self.removed.snapshot_bytes()
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let header = OwnHeader::new(Kind::Tombstone, hashing, self.snapshot_bytes());
        out.put(&header.to_bytes())?;
        // Writes the filter of removed keys last, as in a clone.
        self.added.encode(hashing, out)?;
        self.removed.encode(Hashing::of(&Murmur3::default()), out)
    }

    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, Kind::Tombstone)?;
        hasher(header.hashing)?;
        header.zeros(32..120)?;
        let bytes = header.body_bytes(SNAPSHOT_HEADER, 2)?;
        admit(input, header.len as usize, bytes, limit)?;
        let added = Bloom::decode(input, bytes as usize, &mut |hashing| hashing.check(header.hashing))?;
        let left = bytes as usize - added.memory_bytes();
        let of_murmur3 = Hashing::of(&Murmur3::default());
        let removed = Bloom::decode(input, left, &mut |hashing| hashing.check(of_murmur3))?;
        let engine = Self { added, removed };
        header.check_len(engine.snapshot_bytes())?;
        Ok(engine)
    }
}

/// Removals, and what they cost.
impl<S> Filter<Tombstone, S> {
    /// The number of keys ever removed that the filter was sized for.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().expected_keys(1000);
    /// let filter = builder.expected_removals(10).build()?;
    /// assert_eq!(filter.expected_removals(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_removals(&self) -> usize {
        self.engine.removed.expected_keys
    }

    /// The rate at which keys that are there are **not found**, after the expected removals.
    ///
    /// ```
    /// let builder = lanebloom::TombstoneBloom::builder().expected_keys(1000);
    /// let filter = builder.false_negative_rate(1e-6).build()?;
    /// assert!(filter.false_negative_rate() <= 1e-6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_negative_rate(&self) -> f64 {
        self.engine.removed.false_positive_rate_at(self.expected_removals())
    }

    /// The statistics of the filter of removed keys: its `len` is an estimate of the number of
    /// distinct keys that were removed, and its `false_positive_rate` is the rate at which keys
    /// that are there are **not found**.
    ///
    /// ```
    /// let filter = lanebloom::TombstoneBloom::with_capacity(100_000, 0.01)?;
    /// filter.insert_batch(&Vec::from_iter(0..100_000u32));
    /// assert_eq!(filter.removals().false_positive_rate, 0.0);
    /// filter.remove_batch(&Vec::from_iter(0..50_000u32));
    /// assert!(filter.removals().len.abs_diff(50_000) < 500);
    /// let there = (50_000..100_000u32).filter(|key| filter.contains(key)).count();
    /// assert!(50_000 - there < 50_000 / 1000);
    /// assert!((1e-6..1e-3).contains(&filter.removals().false_positive_rate));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn removals(&self) -> Statistics {
        self.engine.removed.statistics()
    }
}
