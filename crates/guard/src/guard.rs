//! The cache-penetration guard: a filter of all valid keys before a store, which keeps made-up keys
//! away from the store. Request paths call it. It calls a [`GuardFilter`], or two of them during a
//! rebuild.
//!
//! # A rebuild loses nothing
//!
//! The guard has one pointer to a pair: the filter that serves, and during a rebuild the next one.
//! An insert goes into both. Then it checks that the pair is still the one it used; if not, it
//! inserts again. A rebuild first publishes the pair, then reads the valid keys. Both put a
//! `SeqCst` fence between their own write and their read of the other's write. So for each insert
//! one of two things holds. Either the insert saw the pair and inserted into the next filter, or
//! the rebuild began after the insert and reads a store that already has the key: this needs [the
//! order](CacheGuard#order-of-insert-and-commit) "commit, then insert". A batch counts as one
//! insert: the store has all its keys before, and the check comes after the last key.
//!
//! # The drop of a filter
//!
//! Dropping a filter can take long: memory is unmapped, a thread is joined. No reader may do it.
//! The thread that replaces the pair waits until every reader has left the old pair, and then drops
//! it ([`Swap::replace`]). Readers never wait. A reader holds a pair only while the filters' own
//! code runs, never during a caller's code, which may itself commit a rebuild. So the wait is at
//! most as long as the longest running lookup or batch of inserts.
//!
//! # A filter that lacks valid keys
//!
//! A guard that turned away a key because its full filter had refused it would be wrong for good:
//! the store has the row. So [`ServedFilter`] records that its filter refused a key, and admits
//! every key from then on. The record belongs to the filter: the next filter that takes over has
//! none, and holds the refused keys by the argument above (they were in the store before they were
//! refused). A refusal by the next filter fails `Rebuild::commit`. A refusal after the check of
//! `commit` is recorded too, and the guard is open after the commit.
//!
//! [`CacheGuard::new_open`] makes the second record, for a filter that is not filled yet.
//! [`CacheGuard::mark_ready`] deletes this record, so a check must read it *before* the filter. In
//! the other order, the check could miss a key in the filter, then another thread could insert the
//! key and delete the record, and the check would turn the key away.
//!
//! [`CacheGuard::reopen`] makes the second record again, because keys were added of which the guard
//! was not told. It makes it as an insert goes into the filters: for the one that serves, for the
//! next one, and again if the pair was replaced meanwhile. So by the argument above, a rebuild that
//! does not have the record began after the call, and reads a store that has these keys.
//!
//! For refused keys, two alternatives are worse. A list of the refused hashes takes unbounded
//! memory. An error of the insert would give every caller a row to repair, and [`InsertOnDrop`] has
//! no caller.

use crate::as_key::AsKey;
use crate::filter::{CHUNK, GuardFilter, admit_all};
use crate::on_drop::{InsertKey, InsertOnDrop};
use crate::stats::{Admission, GuardCounts, GuardStats};
use equivalent::Equivalent;
use lanebloom::internal::{AtomicU64, Swap};
use lanebloom::{Bitmap, BuildError, ConcurrentBloom, Funnel, KeyHasher, Murmur3, SipHash13};
use std::any::type_name;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keeps requests for keys that do not exist away from a store, for many threads at once.
///
/// Fill the guard with every valid key, put it before the store, and [`insert`](Self::insert) every
/// key that is added later. A key that was inserted is never turned away. A made-up key is turned
/// away, except at the filter's false-positive rate. Removed keys stay admitted until the next
/// rebuild, [`rebuild_with_capacity(keys, rate)`](Self::rebuild_with_capacity). It runs while the
/// guard serves, and can also enlarge the filter.
///
/// # Key type
///
/// `K` is the type of the keys in their borrowed form: `u64`, `str`, `[u8]`, `(u32, u64)`. The
/// calls take every [form](crate::AsKey) that borrows as `K`, one by one and in batches. A key of
/// another type does not compile. (A filter alone does not check the type: to it, `17i32` and
/// `17u64` are two keys.)
///
/// ```compile_fail,E0277
/// # use lanebloom_guard::CacheGuard;
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&17i32);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
///
/// # Keys from strangers
///
/// [`with_capacity`](Self::with_capacity) hashes with [`SipHash13`] under a random key, so
/// strangers cannot make keys that pass the guard. Under [`Murmur3`] they can: from one valid key,
/// a stranger computes any number of others with the same hash. [`new`](Self::new) takes any
/// [`GuardFilter`]. Give it a filter under Murmur3, for example the `GuavaBloom` of
/// `lanebloom-formats`, only if strangers cannot choose the keys.
///
/// A stranger can find a false positive by trying, and repeat it: every such request reaches the
/// store, until a [rebuild](Self::rebuild_with_capacity) draws a new key. So remember the store's
/// misses for a while.
///
/// # Order of insert and commit
///
/// Insert a key **after** the store has committed it. Otherwise a rebuild can read the store
/// without the row after your insert, and the guard turns the key away after the rebuild. (You may
/// insert the key before the commit as well, so that it is admitted as soon as it is committed.)
///
/// An async handler can be cancelled at any `await`: the store has committed, and the line with the
/// `insert` never runs. A call of [`insert_on_drop`](Self::insert_on_drop) before the commit covers
/// this case.
///
/// # Open guards
///
/// A guard is **open** while its filter may lack valid keys: it admits every key.
/// [`is_open`](Self::is_open) reports it. A rebuild closes the guard. These are the causes:
///
/// - The filter is not filled yet. [`new_open`](Self::new_open) makes such a guard, for a service
///   that serves before it has read all keys. [`mark_ready`](Self::mark_ready) closes it too.
/// - The filter is full. A [`ScalableBloom`](lanebloom::ScalableBloom) with a limit, a
///   [`CuckooFilter`](lanebloom::CuckooFilter) and a [`DLeftFilter`](lanebloom::DLeftFilter) can
///   refuse a key. Rebuild into a larger filter.
/// - The filter is [`Layered`](crate::Layered), which collects its keys until it is completed: by
///   the commit of the first rebuild.
/// - The guard was not told of some keys, because a feed of changes broke, say.
///   [`reopen`](Self::reopen) declares it.
/// - A `SharedBloom` or `SharedWindow` (feature `redis`) lags above the limit that its builder's
///   `open_above_lag` set. The guard closes by itself once the filter has caught up.
/// - A `SharedBloom` with `open_until_filled` is not filled yet. The guard closes by itself once
///   a process has filled the set and the keys have arrived.
///
/// ```
/// use lanebloom_guard::{CacheGuard, lanebloom::ScalableBloom};
///
/// let builder = ScalableBloom::builder().expected_keys(100);
/// let filter = |layers| builder.clone().max_layers(layers).build();
/// let guard = CacheGuard::<u64, _>::new_open(filter(1)?);
/// guard.insert_batch(&Vec::from_iter(0..80)); // all keys of the store
/// assert!(guard.is_open() && !guard.is_ready());
/// assert!(guard.check(&17_000).is_some());
/// guard.mark_ready();
/// assert!(!guard.is_open() && guard.is_ready());
/// assert!(guard.check(&79).is_some() && guard.check(&17_000).is_none());
///
/// (80..200).for_each(|key| guard.insert(&key)); // the filter is full
/// assert!(guard.is_open() && guard.is_ready());
/// assert!(guard.check(&17_000).is_some());
/// let rebuild = guard.rebuild(filter(9)?)?;
/// rebuild.insert_all(0..200); // as read from the store
/// rebuild.commit()?;
/// assert!(!guard.is_open() && guard.check(&17_000).is_none());
///
/// let early = guard.rebuild(filter(9)?)?;
/// guard.reopen(); // the feed of changes broke
/// early.commit()?;
/// assert!(guard.is_open() && !guard.is_ready());
/// guard.rebuild(filter(9)?)?.commit()?;
/// assert!(!guard.is_open() && guard.is_ready());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Examples
///
/// ```
/// use lanebloom_guard::CacheGuard;
/// use std::collections::HashMap;
///
/// let store = HashMap::from([("ann", 1), ("bob", 2)]);
/// assert!(CacheGuard::<str>::with_capacity(1000, 1.5).is_err());
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// store.keys().for_each(|key| guard.insert(key));
///
/// let get = |key| guard.get_with(key, || store.get(key).copied());
/// assert_eq!(get("ann"), Some(1));
/// assert_eq!(get("eve"), None); // the store was not asked
///
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.turned_away), (1, 1, 1));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct CacheGuard<K: Funnel + ?Sized, F = ConcurrentBloom<SipHash13>> {
    pub(crate) filters: Swap<FilterPair<F>>,
    /// 1 while a `Rebuild` exists; only its owner replaces the pair.
    pub(crate) rebuilding: AtomicU64,
    counts: GuardCounts,
    /// Covariant, so that a guard of `&'static str` takes references that live shorter. The guard
    /// stores no key, so `K` need not be `Send`.
    keys: PhantomData<fn() -> *const K>,
}

/// The filters that a reader or an inserter uses.
pub(crate) struct FilterPair<F> {
    pub(crate) serving: ServedFilter<F>,
    pub(crate) next: Option<ServedFilter<F>>,
}

/// A filter, and a record whether it may lack valid keys. If it may, all keys are admitted.
pub(crate) struct ServedFilter<F> {
    pub(crate) filter: Arc<F>,
    /// Why the filter may lack valid keys: bits of [`UNFILLED`] and [`REFUSED`], or 0. Above them
    /// the number of the filter, which never changes: 0 for the first one, and one more with each
    /// rebuild.
    ///
    /// | operation | ordering | partner, and why |
    /// |---|---|---|
    /// | `insert` | `fetch_or` `Release` | the load: a check that admits a key because of this record sees what the key's inserter did before, like a check that finds the key |
    /// | `reopen` | `fetch_or` `Release` | as `insert` |
    /// | `mark_ready` | `fetch_and` `Release` | the load: a check that does not see `UNFILLED` any more finds all keys that were inserted before |
    /// | `state` | load `Acquire` | as above |
    ///
    /// If a refusal happened before a check, the check sees it, by coherence.
    state: Arc<AtomicU64>,
}

/// The filter is not declared to have all keys, or not any more.
const UNFILLED: u64 = 1;
/// The filter had no room for a key.
const REFUSED: u64 = 2;
/// All bits that are gaps.
const GAPS: u64 = UNFILLED | REFUSED;

impl<F> Clone for ServedFilter<F> {
    fn clone(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            state: Arc::clone(&self.state),
        }
    }
}

impl<F: GuardFilter> ServedFilter<F> {
    fn new(filter: F, state: u64) -> Self {
        Self {
            filter: Arc::new(filter),
            state: Arc::new(AtomicU64::new(state)),
        }
    }

    /// A filter that takes over from this one.
    pub(crate) fn followed_by(&self, filter: F) -> Self {
        Self::new(filter, (self.state() & !GAPS) + GAPS + 1)
    }

    #[inline]
    fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    #[inline]
    fn gaps(&self) -> u64 {
        self.state() & GAPS
    }

    pub(crate) fn has_refused(&self) -> bool {
        self.gaps() & REFUSED != 0
    }

    /// Reads the gaps first: see "A filter that lacks valid keys".
    #[inline]
    fn admits<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let is_open = self.gaps() != 0;
        self.filter.contains(key) || is_open
    }

    fn admit_batch<K: Funnel>(&self, keys: &[K], admitted: Bitmap<'_>) {
        let is_open = self.gaps() != 0;
        self.filter.contains_batch(keys, Bitmap(admitted.0));
        if is_open {
            admit_all(keys.len(), admitted);
        }
    }

    #[inline]
    pub(crate) fn insert<K: Funnel + ?Sized>(&self, key: &K) {
        self.note(self.filter.insert(key));
    }

    pub(crate) fn insert_batch<K: Funnel>(&self, keys: &[K]) {
        self.note(self.filter.insert_batch(keys));
    }

    fn open(&self) {
        self.state.fetch_or(UNFILLED, Ordering::Release);
    }

    /// The lookup of [`CacheGuard::vouches`].
    #[cfg(feature = "cache")]
    fn vouches<K: Funnel + ?Sized>(&self, key: &K, is_told: impl FnOnce(bool, bool) -> bool) -> Option<u64> {
        let state = self.state();
        let is_closed = state & GAPS == 0 && !self.filter.may_lack_keys();
        let vouches = is_closed || is_told(state & UNFILLED != 0, self.filter.lag().is_some());
        // A row may come into the filter before anybody tells it: another number once the filter
        // holds the key.
        vouches.then(|| state & !GAPS | if self.filter.holds(key) { 0 } else { GAPS })
    }

    #[inline]
    fn note(&self, has_room: bool) {
        if !has_room {
            self.state.fetch_or(REFUSED, Ordering::Release);
        }
    }
}

impl<K: Funnel + ?Sized> CacheGuard<K> {
    /// Builds an empty guard that admits made-up keys at `false_positive_rate`: see the [example
    /// above](Self#examples). Its filter is a [`ConcurrentBloom`] that hashes with [`SipHash13`]
    /// under a new random key.
    ///
    /// `keys` is the number of keys until the next rebuild, not only today's. Name the type of the
    /// keys, as in the example, or let the compiler infer it from the first key.
    ///
    /// From the beginning, the guard turns away every key that was not inserted. If it serves while
    /// you fill it, use [`new_open`](Self::new_open).
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::build`](lanebloom::Builder::build) does.
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self::new(keyed_filter(keys, false_positive_rate)?))
    }
}

pub(crate) fn keyed_filter(keys: usize, false_positive_rate: f64) -> Result<ConcurrentBloom<SipHash13>, BuildError> {
    ConcurrentBloom::builder()
        .expected_keys(keys)
        .false_positive_rate(false_positive_rate)
        .hasher(SipHash13::random())
        .build()
}

impl<K: Funnel + ?Sized, F: GuardFilter> CacheGuard<K, F> {
    /// Makes a guard that serves from `filter`, which should hold every valid key.
    ///
    /// Keys already in `filter` must have the type `K`: nothing checks that. [Keys from
    /// strangers](Self#keys-from-strangers) says which hasher the filter should have.
    ///
    /// ```
    /// use lanebloom_guard::{CacheGuard, lanebloom::{ConcurrentBloom, SipHash13}};
    ///
    /// let builder = ConcurrentBloom::builder().memory_budget(1 << 20);
    /// let filter = builder.hasher(SipHash13::random()).build()?;
    /// filter.insert("ann");
    /// let guard = CacheGuard::<str, _>::new(filter);
    /// assert!(guard.check("ann").is_some() && guard.check("eve").is_none());
    /// assert_eq!(guard.filter().statistics().len, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn new(filter: F) -> Self {
        Self::with_gaps(filter, 0)
    }

    /// Makes a guard whose filter is not filled yet. It is [open](Self#open-guards) until
    /// [`mark_ready`](Self::mark_ready) or the commit of a rebuild.
    pub fn new_open(filter: F) -> Self {
        Self::with_gaps(filter, UNFILLED)
    }

    fn with_gaps(filter: F, gaps: u64) -> Self {
        Self {
            filters: Swap::new(FilterPair {
                serving: ServedFilter::new(filter, gaps),
                next: None,
            }),
            rebuilding: AtomicU64::new(0),
            counts: GuardCounts::new(),
            keys: PhantomData,
        }
    }

    /// Calls `load` only if the key may exist, and records whether `load` found it: see the
    /// [example above](Self#examples).
    ///
    /// If reads of the store can fail, use [`try_get_with`](Self::try_get_with). If they are
    /// awaited, use [`check`](Self::check).
    pub fn get_with<Q: AsKey<K> + ?Sized, V>(&self, key: &Q, load: impl FnOnce() -> Option<V>) -> Option<V> {
        let admission = self.check(key)?;
        let value = load();
        admission.record(value.is_some());
        value
    }

    /// [`get_with`](Self::get_with) for a load that can fail. A failure is not recorded.
    ///
    /// # Errors
    ///
    /// Fails if `load` fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let guard = lanebloom_guard::CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// let load = || Err::<Option<u32>, _>("timeout");
    /// assert_eq!(guard.try_get_with("ann", load), Err("timeout"));
    /// assert_eq!(guard.try_get_with("eve", load), Ok(None));
    /// assert_eq!((guard.stats().admitted, guard.stats().found), (1, 0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_get_with<Q: AsKey<K> + ?Sized, V, E>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        let Some(admission) = self.check(key) else {
            return Ok(None);
        };
        let value = load()?;
        admission.record(value.is_some());
        Ok(value)
    }

    /// The first half of [`get_with`](Self::get_with). `None` turns the key away: it certainly does
    /// not exist. Otherwise read the store, and [record](Admission::record) whether it had the key.
    /// An `await` may lie between the two halves. A key without a record counts as admitted only.
    ///
    /// ```
    /// use lanebloom_guard::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// assert!(guard.check("eve").is_none());
    /// let admission = guard.check("ann").unwrap();
    /// let row: Option<u32> = None; // read from the store, or awaited
    /// admission.record(row.is_some());
    /// let stats = guard.stats();
    /// assert_eq!((stats.turned_away, stats.false_positives), (1, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use = "a key for which this is None must not reach the store"]
    pub fn check<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Option<Admission<'_>> {
        self.check_form(key.borrow())
    }

    /// [`check`](Self::check) of a key in another form, such as the borrowed parts of a composite
    /// key. It allocates nothing.
    ///
    /// The form must write the same bytes as the key.
    ///
    /// ```
    /// use lanebloom_guard::{CacheGuard, Parts};
    ///
    /// let guard = CacheGuard::<(u32, String)>::with_capacity(1000, 0.01)?;
    /// guard.insert(&(7, String::from("ann")));
    /// assert!(guard.check_equivalent(&Parts((&7, "ann"))).is_some());
    /// assert!(guard.check_equivalent(&Parts((&8, "ann"))).is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use = "a key for which this is None must not reach the store"]
    pub fn check_equivalent<Q: Funnel + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Admission<'_>> {
        self.check_form(key)
    }

    /// A check of a key in any form.
    #[inline]
    pub(crate) fn check_form<Q: Funnel + ?Sized>(&self, key: &Q) -> Option<Admission<'_>> {
        let admitted = self.admits(key);
        self.counts.add_check(admitted);
        admitted.then_some(Admission { counts: &self.counts })
    }

    /// Whether a [`Rebuild`](crate::Rebuild) exists. `Relaxed`: only a hint.
    #[cfg(feature = "cache")]
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.rebuilding.load(Ordering::Relaxed) != 0
    }

    /// A check that does not count.
    #[inline]
    pub(crate) fn admits<Q: Funnel + ?Sized>(&self, key: &Q) -> bool {
        self.filters.load().serving.admits(key)
    }

    /// For a cache that remembers an admitted key as missing: the number of the filter that serves,
    /// or `None` if a row may have come, or may come, of which the cache is not told. The number is
    /// another one once the filter holds the key.
    ///
    /// A closed guard vouches for every key, since it turns away those that its filter lacks. For
    /// an open guard, `is_told(is_unfilled, is_shared)` decides: whether the cache is told of all
    /// rows that come while the filter is not filled, and those that other processes insert into
    /// it.
    #[cfg(feature = "cache")]
    pub(crate) fn vouches<Q: Funnel + ?Sized>(&self, key: &Q, is_told: impl FnOnce(bool, bool) -> bool) -> Option<u64> {
        self.filters.load().serving.vouches(key, is_told)
    }

    /// [`check`](Self::check) of many keys, for a multi-get. Calls `each(index, admission)` for
    /// every key that may exist, in order. The other keys certainly do not exist.
    ///
    /// A key is counted before the call of `each`. Keep the admissions, read all keys from the
    /// store at once, and then record them.
    ///
    /// # Panics
    ///
    /// Panics, with debug assertions, if the first key writes other bytes than the `K` that it
    /// borrows as: see [Borrowed forms](lanebloom::Funnel#borrowed-forms).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::CacheGuard;
    /// use std::collections::HashMap;
    ///
    /// let store = HashMap::from([("ann", 1), ("bob", 2)]);
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert_batch(&["ann", "bob"]);
    /// let keys = ["eve", "ann", "mallory", "bob"];
    /// let mut admitted = Vec::new();
    /// guard.check_batch(&keys, |i, admission| admitted.push((i, admission)));
    ///
    /// let mut rows = [None; 4];
    /// for (i, admission) in admitted {
    ///     rows[i] = store.get(keys[i]);
    ///     admission.record(rows[i].is_some());
    /// }
    /// assert_eq!(rows, [None, Some(&1), None, Some(&2)]);
    /// assert_eq!((guard.stats().found, guard.stats().turned_away), (2, 2));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn check_batch<'a, Q: AsKey<K> + Funnel>(&'a self, keys: &[Q], mut each: impl FnMut(usize, Admission<'a>)) {
        debug_assert_borrowed_form(keys);
        for (i, keys) in keys.chunks(CHUNK).enumerate() {
            let mut bitmap = [0; CHUNK / 64];
            let bitmap = &mut bitmap[..keys.len().div_ceil(64)];
            // Releases the pair before `each` runs: see "The drop of a filter".
            self.filters.load().serving.admit_batch(keys, Bitmap(bitmap));
            let admitted = bitmap.iter().map(|word| word.count_ones() as usize).sum();
            self.counts.add_checks(admitted, keys.len() - admitted);
            for (j, word) in bitmap.iter_mut().enumerate() {
                while *word != 0 {
                    let at = i * CHUNK + j * 64 + word.trailing_zeros() as usize;
                    *word &= *word - 1;
                    each(at, Admission { counts: &self.counts });
                }
            }
        }
    }

    /// Admits `key` from now on. Call this once the key can be read from the store.
    ///
    /// If the filter has no room for the key, the guard [opens](Self#open-guards). If only the new
    /// filter of a rebuild has no room, its commit fails.
    ///
    /// It may run beside a rebuild: the key is admitted before and after the new filter takes over.
    /// See [the order](Self#order-of-insert-and-commit), and the [example above](Self#examples).
    pub fn insert<Q: AsKey<K> + ?Sized>(&self, key: &Q) {
        let key = key.borrow();
        self.insert_by(|filter| filter.insert(key));
    }

    /// [`insert`](Self::insert) of many keys, once all of them can be read from the store. The
    /// protocol with rebuilds costs a fence and a second load of the guard's filters: here once for
    /// all keys.
    ///
    /// # Panics
    ///
    /// Panics like [`check_batch`](Self::check_batch), whose example calls this method.
    pub fn insert_batch<Q: AsKey<K> + Funnel>(&self, keys: &[Q]) {
        debug_assert_borrowed_form(keys);
        self.insert_by(|filter| filter.insert_batch(keys));
    }

    /// Calls `insert` with every filter that needs the keys, or the record.
    fn insert_by(&self, insert: impl Fn(&ServedFilter<F>)) {
        let insert = |pair: &FilterPair<F>| {
            insert(&pair.serving);
            pair.next.iter().for_each(&insert);
        };
        // Partner: the fence of `Swap::replace` in `begin_rebuild`. If that fence comes first, this
        // thread sees the pair. Otherwise the rebuild reads a store that has the keys.
        self.filters.write_to_current(self.filters.load(), insert, |(), ()| ());
    }

    /// Inserts `key` when the returned value is dropped. Call it before the store's commit, and
    /// keep the value until the commit has returned.
    ///
    /// The key is inserted however the code in between ends: by a return, an error, a panic, or the
    /// drop of its future. If the store certainly lacks the key, call
    /// [`abandon`](InsertOnDrop::abandon). Otherwise the key is admitted until the next rebuild,
    /// which costs reads of a missing row.
    ///
    /// If the future is dropped while the commit is still running, the commit may reach the store
    /// after a rebuild has read it. Only a rebuild that begins after the drop can miss the key in
    /// this way. To exclude this too, run commit and insert in a task of their own (`tokio::spawn`,
    /// say). A leaked value (`mem::forget`) never inserts.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::CacheGuard;
    ///
    /// # async fn commit(_key: u64) -> Result<(), &'static str> { Ok(()) }
    /// # async fn tell_others(_key: u64) { std::future::pending().await }
    /// async fn add(guard: &CacheGuard<u64>, key: u64) -> Result<(), &'static str> {
    ///     let insert = guard.insert_on_drop(key);
    ///     commit(key).await?;
    ///     drop(insert); // admitted from here on, also if the code never gets here
    ///     tell_others(key).await;
    ///     Ok(())
    /// }
    /// # let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(add(&guard, 17)).poll(&mut context).is_pending());
    /// # assert!(guard.check(&17).is_some());
    /// guard.insert_on_drop(18).abandon(); // the commit has failed
    /// assert!(guard.check(&18).is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_on_drop<Q: AsKey<K>>(&self, key: Q) -> InsertOnDrop<'_, K, Q> {
        InsertOnDrop::new(self, key)
    }

    /// The filter that serves now, for its statistics and its own calls, which do not check the
    /// guard's key type. The `Arc` keeps the filter in memory, even after a rebuild has replaced
    /// it. The example of [`new`](Self::new) calls it.
    #[must_use]
    pub fn filter(&self) -> Arc<F> {
        Arc::clone(&self.filters.load().serving.filter)
    }

    /// Declares that the filter has every valid key: a guard of [`new_open`](Self::new_open) turns
    /// made-up keys away from now on. All inserts of the keys must happen before this call.
    ///
    /// A guard whose filter has refused a key stays [open](Self#open-guards).
    pub fn mark_ready(&self) {
        // A filter that takes over meanwhile has no such record.
        self.filters
            .load()
            .serving
            .state
            .fetch_and(!UNFILLED, Ordering::Release);
    }

    /// Declares that the filter may lack valid keys, because the guard was not told of some. From
    /// now on it admits every key, until the commit of a rebuild that begins after this call, or
    /// until [`mark_ready`](Self::mark_ready).
    ///
    /// A rebuild under way does not close the guard, because it may have read the store before
    /// these keys were there. It commits as usual, and the guard stays open.
    pub fn reopen(&self) {
        self.insert_by(ServedFilter::open);
    }

    /// Whether the filter was filled: false after [`new_open`](Self::new_open) and after
    /// [`reopen`](Self::reopen), until [`mark_ready`](Self::mark_ready) or the commit of a rebuild.
    /// It stays true if the filter refuses a key and the guard [opens](Self#open-guards) again.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.filters.load().serving.gaps() & UNFILLED == 0
    }

    /// Whether the guard admits every key, because the filter that serves now may lack valid ones:
    /// see [Open guards](Self#open-guards).
    #[must_use]
    pub fn is_open(&self) -> bool {
        let pair = self.filters.load();
        pair.serving.gaps() != 0 || pair.serving.filter.may_lack_keys()
    }

    /// The [statistics](GuardStats) since the guard was made, across rebuilds. If other threads
    /// count meanwhile, the counts may be of slightly different moments.
    #[must_use]
    pub fn stats(&self) -> GuardStats {
        self.counts.stats()
    }
}

impl<K: Funnel + ?Sized, F: fmt::Debug + GuardFilter> fmt::Debug for CacheGuard<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheGuard")
            .field("filter", &self.filter())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> InsertKey<K> for CacheGuard<K, F> {
    fn insert_key(&self, key: &K) {
        self.insert(key);
    }
}

/// Batches hash keys as `Q`, and single calls hash them as `K`. [`Funnel`] requires that both write
/// the same bytes. This checks the first key, by a hash that allocates nothing.
pub(crate) fn debug_assert_borrowed_form<K: Funnel + ?Sized, Q: Borrow<K> + Funnel>(keys: &[Q]) {
    if let Some(key) = keys.first() {
        debug_assert_same_bytes::<Q, K>(key, key.borrow());
    }
}

/// With debug assertions, `form` must write the bytes of `key`.
pub(crate) fn debug_assert_same_bytes<Q: Funnel + ?Sized, K: Funnel + ?Sized>(form: &Q, key: &K) {
    if cfg!(debug_assertions) {
        let hasher = Murmur3::default();
        assert!(
            hasher.hash_key(form) == hasher.hash_key(key),
            "a {} writes other bytes than the {} that it stands for",
            type_name::<Q>(),
            type_name::<K>(),
        );
    }
}
