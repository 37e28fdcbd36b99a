//! The cache-penetration guard: a filter of all valid keys that answers before a store does, so
//! that made-up keys never reach the store. Request paths call it. It calls a [`GuardFilter`], or
//! two of them during a rebuild.
//!
//! # A rebuild loses nothing
//!
//! The guard's state is one pointer to a pair: the filter that serves, and the next one while a
//! rebuild runs. An insert goes into both. Then it checks that the state is still the one it used;
//! if not, it inserts again. A rebuild publishes the pair first and reads the valid keys after.
//! Both put a `SeqCst` fence between their own write and their read of the other's write. So for
//! each insert one of two things holds. Either the insert saw the pair and inserted into the next
//! filter, or the rebuild began after the insert and reads a store that has the key already. Here a
//! batch is one insert: the store has all its keys before, and the check comes after the last key.
//!
//! # Why inserts come after the store's commit
//!
//! The second case above needs the order "commit, then insert". An insert *before* the commit is
//! not enough. A rebuild may begin between the two: it does not see the insert's key in flight,
//! reads a store that lacks the row, and replaces the filter that has the key. (An additional
//! insert before the commit does no harm: it costs one read of the store per early request.) But
//! code after an `await` may never run, because its future may be dropped there. So the caller
//! makes [`CacheGuard::insert_on_drop`] before the commit, and it inserts when it is dropped: after
//! the commit, or in place of the code after it. This is the order "commit, then insert" again,
//! wherever the future ends.
//!
//! It cannot order a commit that is still on its way when the future is dropped. The key is then
//! lost only if a rebuild begins after the drop and reads the store before the commit arrives
//! there. Nothing in this process can know of such a commit. So the docs name the remedy: a task of
//! its own for the write.
//!
//! # Who drops a filter
//!
//! Dropping a filter can take long: memory is unmapped, a thread is joined. No reader may do it.
//! The thread that replaces the state waits until every reader has left the old state, and then
//! drops it ([`Swap::replace`]). Readers wait for nobody. A reader holds a state only while the
//! filters' own code runs, never during a caller's code (the loads of [`CacheGuard::get_with`], the
//! closure of [`CacheGuard::check_batch`]). So the wait is as long as the longest running lookup or
//! batch of inserts, and such code may itself commit a rebuild.

pub(crate) mod error;

use crate::error::BuildError;
use crate::filter::bloom::ConcurrentBloom;
use crate::filter::guava::GuavaBloom;
#[cfg(feature = "window")]
use crate::filter::windowed::WindowedBloom;
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, SipHash13};
use crate::sync::{AtomicBool, Ordering, Swap, fence};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
// Counts order nothing and are no part of the protocol: the model checker need not try their
// interleavings.
use core::sync::atomic::{AtomicU64, AtomicUsize};
use error::{RebuildError, RebuildErrorKind};

/// Keeps requests for keys that do not exist away from a store, for many threads at once.
///
/// Fill the guard with every valid key, put it before the store, and tell it of every key that is
/// added ([`insert`](Self::insert)). A key that was inserted is never turned away. A made-up key
/// is, except for the filter's false-positive rate. Removed keys stay admitted until the next
/// [rebuild](Self::rebuild_with_capacity), which runs while the guard serves, and is also the way
/// to grow.
///
/// # Key type
///
/// `K` is the type of the keys in their borrowed form: `u64`, `str`, `[u8]`, `(u32, u64)`. The
/// calls take whatever borrows as `K`. A `CacheGuard<str>` takes `str`, `String`, `&str`,
/// `Box<str>`, `Arc<str>`, `Cow<str>`, one by one and in batches. A key of another type does not
/// compile. A filter alone does not check that, and takes `17i32` and `17u64` as two different
/// keys.
///
/// ```
/// # use lanebloom::CacheGuard;
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&17); // a u64
/// assert!(guard.check(&17u64).is_some());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
/// ```compile_fail,E0277
/// # use lanebloom::CacheGuard;
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&17i32);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
///
/// # Keys from strangers
///
/// [`with_capacity`](Self::with_capacity) hashes with [`SipHash13`] under a random key, so nobody
/// can make keys that pass the guard. Under [`Murmur3`] anybody can: a stranger who knows one valid
/// key can compute any number of others with the same hash. [`new`](Self::new) takes any
/// [`GuardFilter`]. Give it a filter under Murmur3, for example a [`GuavaBloom`], only if strangers
/// cannot choose the keys.
///
/// A false positive stays one until the filter is replaced. A stranger who finds one by trying can
/// ask for it again and again, and every request reaches the store.
/// [`rebuild_with_capacity`](Self::rebuild_with_capacity) draws a new key, under which other
/// made-up keys are false positives. Until then, remember the store's "no" for a while, as for any
/// missing row.
///
/// # Order of insert and commit
///
/// Insert a key **after** the store has committed it. Until then a rebuild can read the store
/// without the row, and the guard turns the key away after the rebuild. (You may insert it before
/// as well, so that it is admitted from the commit on. That costs a read of the store for each
/// request that comes too early.)
///
/// An async handler can be cancelled at any `await`: the store has committed, and the line with the
/// `insert` never runs. Then the guard turns away a valid key until the next rebuild.
/// [`insert_on_drop`](Self::insert_on_drop), called before the commit, inserts when the handler
/// ends, whether it ends by returning, by an error, by a panic or by cancellation.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
/// use std::collections::HashMap;
///
/// let store = HashMap::from([("ann", 1), ("bob", 2)]);
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// for key in store.keys() {
///     guard.insert(key);
/// }
///
/// let get = |key| guard.get_with(key, || store.get(key).copied());
/// assert_eq!(get("ann"), Some(1));
/// assert_eq!(get("eve"), None); // the store was not asked
///
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.turned_away), (1, 1, 1));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct CacheGuard<K: ?Sized, F = ConcurrentBloom<SipHash13>> {
    state: Swap<State<F>>,
    /// Whether a [`Rebuild`] exists; only its owner replaces the state.
    rebuilding: AtomicBool,
    counts: Counts,
    /// Covariant, so that a guard of `&'static str` takes a shorter-lived one; keeps no key, so
    /// that `K` need not be `Send`.
    keys: PhantomData<fn() -> *const K>,
}

/// Keys of a batch that are looked up and counted before their admissions are given out: their
/// answers are a bitmap of 128 bytes on the stack.
const STRETCH: usize = 1024;

/// What readers see at once.
struct State<F> {
    serving: Arc<F>,
    next: Option<Arc<F>>,
}

/// A filter that a [`CacheGuard`] can serve from: [`ConcurrentBloom`] and `WindowedBloom` under any
/// hasher, [`GuavaBloom`], and with the feature `redis` a `SharedBloom` or a `SharedWindow`.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, GuardFilter, GuavaBloom};
///
/// fn row<F: GuardFilter>(guard: &CacheGuard<str, F>, key: &str) -> Option<usize> {
///     guard.get_with(key, || Some(key.len()))
/// }
///
/// let ours = CacheGuard::with_capacity(1000, 0.01)?;
/// let javas = CacheGuard::new(GuavaBloom::create(1000, 0.01)?);
/// ours.insert("ann");
/// javas.insert("ann");
/// assert_eq!((row(&ours, "ann"), row(&javas, "ann")), (Some(3), Some(3)));
/// assert_eq!((row(&ours, "eve"), row(&javas, "eve")), (None, None));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait GuardFilter: sealed::Filter {}

impl<S: KeyHasher> GuardFilter for ConcurrentBloom<S> {}
impl GuardFilter for GuavaBloom {}
#[cfg(feature = "window")]
impl<S: KeyHasher + Clone> GuardFilter for WindowedBloom<S> {}
#[cfg(feature = "redis")]
impl<S: KeyHasher> GuardFilter for crate::redis::SharedBloom<S> {}
#[cfg(all(feature = "redis", feature = "window"))]
impl<S: KeyHasher + Clone> GuardFilter for crate::redis::SharedWindow<S> {}

mod sealed {
    #[cfg(feature = "window")]
    use super::WindowedBloom;
    use super::{ConcurrentBloom, Funnel, GuavaBloom, KeyHasher};

    /// What a guard needs of a filter: the calls of these names. Keeps
    /// [`GuardFilter`](super::GuardFilter) ours, so that more can be added.
    ///
    /// A filter implements either the calls, with itself as `Local`, or `local` alone.
    pub trait Filter {
        type Local: Filter;

        /// The filter in this process that answers.
        fn local(&self) -> &Self::Local;

        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.local().insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.local().contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            self.local().insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            self.local().contains_batch_bitmap(keys, out);
        }
    }

    impl<S: KeyHasher> Filter for ConcurrentBloom<S> {
        type Local = Self;

        fn local(&self) -> &Self {
            self
        }
        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            self.insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            self.contains_batch_bitmap(keys, out);
        }
    }

    impl Filter for GuavaBloom {
        type Local = Self;

        fn local(&self) -> &Self {
            self
        }
        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            self.insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            self.contains_batch_bitmap(keys, out);
        }
    }

    #[cfg(feature = "window")]
    impl<S: KeyHasher + Clone> Filter for WindowedBloom<S> {
        type Local = Self;

        fn local(&self) -> &Self {
            self
        }
        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            self.contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            self.insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            self.contains_batch_bitmap(keys, out);
        }
    }

    #[cfg(feature = "redis")]
    impl<S: KeyHasher> Filter for crate::redis::SharedBloom<S> {
        type Local = ConcurrentBloom<S>;

        #[inline]
        fn local(&self) -> &Self::Local {
            self
        }
    }

    #[cfg(all(feature = "redis", feature = "window"))]
    impl<S: KeyHasher + Clone> Filter for crate::redis::SharedWindow<S> {
        type Local = WindowedBloom<S>;

        #[inline]
        fn local(&self) -> &Self::Local {
            self
        }
    }
}

impl<K: Funnel + ?Sized> CacheGuard<K> {
    /// A guard for `keys` keys that admits made-up ones at `false_positive_rate`, empty: a
    /// [`ConcurrentBloom`] that hashes with [`SipHash13`] under a new random key.
    ///
    /// `keys` are all that it will get until the next rebuild, not only those of today. The type of
    /// the keys is named, as in the example, or inferred from the first key.
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::build`](crate::Builder::build) does: `keys` is 0, the rate is not
    /// between 0 and 1 or out of reach, or the memory is not there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<u64>::with_capacity(1_000_000, 0.01)?;
    /// guard.insert(&17);
    /// assert!(guard.check(&17).is_some() && guard.check(&18).is_none());
    /// assert!(CacheGuard::<u64>::with_capacity(1_000_000, 1.5).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self::new(keyed_filter(keys, false_positive_rate)?))
    }

    /// [Begins a rebuild](Self::rebuild) into a filter as [`with_capacity`](Self::with_capacity)
    /// makes it: of a new size, and under a new random key. False positives that strangers have
    /// found are none any more.
    ///
    /// # Errors
    ///
    /// Fails if another rebuild of this guard is in progress, or as `with_capacity` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    /// use std::collections::HashSet;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("removed");
    ///
    /// let store = HashSet::from(["ann", "bob"]);
    /// let mut rebuild = guard.rebuild_with_capacity(2000, 0.01)?;
    /// guard.insert("added meanwhile");
    /// rebuild.extend(store); // read after the rebuild began
    /// rebuild.commit();
    ///
    /// assert!(["ann", "bob", "added meanwhile"].iter().all(|key| guard.check(key).is_some()));
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild_with_capacity(&self, keys: usize, false_positive_rate: f64) -> Result<Rebuild<'_, K>, RebuildError> {
        self.begin_rebuild(|| keyed_filter(keys, false_positive_rate))
    }
}

fn keyed_filter(keys: usize, false_positive_rate: f64) -> Result<ConcurrentBloom<SipHash13>, BuildError> {
    ConcurrentBloom::builder()
        .expected_keys(keys)
        .false_positive_rate(false_positive_rate)
        .hasher(SipHash13::random())
        .build()
}

impl<K: Funnel + ?Sized, F: GuardFilter> CacheGuard<K, F> {
    /// A guard that serves from `filter`, which should hold every valid key.
    ///
    /// Whatever was inserted into `filter` before must have been of the type `K`: nothing checks
    /// that. About the filter's hasher see [Keys from strangers](Self#keys-from-strangers).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom, SipHash13};
    ///
    /// let filter = ConcurrentBloom::builder().memory_budget(1 << 20).hasher(SipHash13::random()).build()?;
    /// filter.insert("ann");
    /// let guard = CacheGuard::<str, _>::new(filter);
    /// assert!(guard.check("ann").is_some() && guard.check("eve").is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn new(filter: F) -> Self {
        Self {
            state: Swap::new(State {
                serving: Arc::new(filter),
                next: None,
            }),
            rebuilding: AtomicBool::new(false),
            counts: Counts::new(),
            keys: PhantomData,
        }
    }

    /// Asks the filter, and only if the key may exist calls `load`; records what came of it.
    ///
    /// For a store whose reads can fail or are awaited, [`try_get_with`](Self::try_get_with) and
    /// [`check`](Self::check).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
    /// guard.insert(&17);
    /// assert_eq!(guard.get_with(&17, || Some("row")), Some("row"));
    /// assert_eq!(guard.get_with(&18, || -> Option<&str> { unreachable!("turned away") }), None);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn get_with<Q: Borrow<K> + ?Sized, V>(&self, key: &Q, load: impl FnOnce() -> Option<V>) -> Option<V> {
        let admission = self.check(key)?;
        let value = load();
        admission.record(value.is_some());
        value
    }

    /// [`get_with`](Self::get_with) for a load that can fail; a failure is recorded neither way.
    ///
    /// # Errors
    ///
    /// Those of `load`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// assert_eq!(guard.try_get_with("ann", || Err::<Option<u32>, _>("timeout")), Err("timeout"));
    /// assert_eq!(guard.try_get_with("eve", || Err::<Option<u32>, _>("timeout")), Ok(None));
    /// assert_eq!((guard.stats().admitted, guard.stats().found), (1, 0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_get_with<Q: Borrow<K> + ?Sized, V, E>(
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

    /// The first half of [`get_with`](Self::get_with): `None` turns the key away, for it certainly
    /// does not exist. Otherwise ask the store, and [record](Admission::record) whether it had the
    /// key. The two halves may lie on two sides of an `await`.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// # async fn read_row(_key: &str) -> Option<u32> { None }
    /// async fn get(guard: &CacheGuard<str>, key: &str) -> Option<u32> {
    ///     let admission = guard.check(key)?;
    ///     let row = read_row(key).await;
    ///     admission.record(row.is_some());
    ///     row
    /// }
    /// # let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// # guard.insert("ann");
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(get(&guard, "ann")).poll(&mut context).is_ready());
    /// # assert!(std::pin::pin!(get(&guard, "eve")).poll(&mut context).is_ready());
    /// # assert_eq!((guard.stats().false_positives, guard.stats().turned_away), (1, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use = "a key for which this is None must not reach the store"]
    pub fn check<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> Option<Admission<'_>> {
        let admitted = self.state.load().serving.contains(key.borrow());
        self.counts.add_checks(admitted.into(), (!admitted).into());
        admitted.then_some(Admission { counts: &self.counts })
    }

    /// [`check`](Self::check) of many keys, for a multi-get: calls `each` with the position and the
    /// [`Admission`] of every key that may exist, in order. The others certainly do not.
    ///
    /// A key is counted before `each` hears of it. The admissions may be kept, to be recorded once
    /// the store has been asked for all the keys at once.
    ///
    /// # Panics
    ///
    /// With debug assertions, if the first key writes other bytes than the `K` that it borrows as:
    /// see [Borrowed forms](crate::Funnel#borrowed-forms).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    /// use std::collections::HashMap;
    ///
    /// let store = HashMap::from([("ann", 1), ("bob", 2)]);
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert_batch(&["ann", "bob"]);
    ///
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
    /// let stats = guard.stats();
    /// assert_eq!((stats.admitted, stats.found, stats.turned_away), (2, 2, 2));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn check_batch<'a, Q: Borrow<K> + Funnel>(&'a self, keys: &[Q], mut each: impl FnMut(usize, Admission<'a>)) {
        debug_assert_borrowed_form(keys);
        for (i, keys) in keys.chunks(STRETCH).enumerate() {
            let mut bitmap = [0; STRETCH / 64];
            let bitmap = &mut bitmap[..keys.len().div_ceil(64)];
            // The state is let go of before `each` runs: see "Who drops a filter".
            self.state.load().serving.contains_batch_bitmap(keys, bitmap);
            let admitted = bitmap.iter().map(|word| word.count_ones() as usize).sum();
            self.counts.add_checks(admitted, keys.len() - admitted);
            for (j, word) in bitmap.iter_mut().enumerate() {
                while *word != 0 {
                    let at = i * STRETCH + j * 64 + word.trailing_zeros() as usize;
                    *word &= *word - 1;
                    each(at, Admission { counts: &self.counts });
                }
            }
        }
    }

    /// Admits `key` from now on; returns whether that changed the filter, as
    /// [`ConcurrentBloom::insert`] does. Call it once the key can be read from the store.
    ///
    /// Safe at any time, also while the guard is being rebuilt: the key is admitted before the new
    /// filter takes over and after. In code that can be cancelled between the store's commit and
    /// this call, use [`insert_on_drop`](Self::insert_on_drop) instead: see [the
    /// order](Self#order-of-insert-and-commit).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("ann").is_none());
    /// assert!(guard.insert("ann"));
    /// assert!(guard.check("ann").is_some());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> bool {
        let key = key.borrow();
        self.insert_by(|filter| filter.insert(key))
    }

    /// [`insert`](Self::insert) of many keys; returns how many of them changed the filter, as
    /// [`ConcurrentBloom::insert_batch`] does. Call it once all of them can be read from the store.
    ///
    /// To be safe beside a rebuild costs a fence and a second look at the guard's state, here once
    /// for all keys. If a new filter took over meanwhile, the number returned is the greater of the
    /// two filters'.
    ///
    /// # Panics
    ///
    /// As [`check_batch`](Self::check_batch) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert_eq!(guard.insert_batch(&["ann", "bob", "ann"]), 2);
    /// assert!(guard.check("bob").is_some());
    /// rebuild.commit();
    /// assert!(guard.check("ann").is_some() && guard.check("bob").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> usize {
        debug_assert_borrowed_form(keys);
        self.insert_by(|filter| filter.insert_batch(keys))
    }

    /// Calls `insert` with every filter that is to have the keys; returns the greatest change to
    /// one that served.
    fn insert_by<R: Ord>(&self, insert: impl Fn(&F) -> R) -> R {
        let insert = |state: &State<F>| {
            let changed = insert(&state.serving);
            if let Some(next) = &state.next {
                insert(next);
            }
            changed
        };
        // Partner: the fence in `begin_rebuild`. Either it comes first there, and the pair is seen
        // here; or here, and what the rebuild reads of the store after it has the keys.
        self.state.settle(self.state.load(), insert, Ord::max)
    }

    /// Inserts `key` when the returned value is dropped. Call it before the store's commit, and
    /// keep the value until the commit has returned.
    ///
    /// The key is inserted however the code in between ends: it returns, it fails, it panics, or
    /// its future is dropped while it waits. If the store has certainly not got the key, call
    /// [`abandon`](InsertOnDrop::abandon). Where it is dropped instead, the key is admitted until
    /// the next rebuild: that costs reads of the store for a row that is not there, and nothing
    /// worse.
    ///
    /// A commit that is still on its way when its future is dropped may reach the store later than
    /// a rebuild that begins after the drop. Only such a rebuild can miss the key. To exclude that
    /// too, run commit and insert in a task of their own, which is not dropped with the request
    /// (`tokio::spawn`, say). A value that is leaked (`mem::forget`) never inserts.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// # async fn commit(_key: u64) -> Result<(), &'static str> { Ok(()) }
    /// # async fn tell_others(_key: u64) { std::future::pending().await }
    /// async fn add(guard: &CacheGuard<u64>, key: u64) -> Result<(), &'static str> {
    ///     let insert = guard.insert_on_drop(key);
    ///     commit(key).await?;
    ///     drop(insert); // admitted from here on at the latest, and also if this is never reached
    ///     tell_others(key).await;
    ///     Ok(())
    /// }
    /// # let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(add(&guard, 17)).poll(&mut context).is_pending());
    /// # assert!(guard.check(&17).is_some());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_on_drop<Q: Borrow<K>>(&self, key: Q) -> InsertOnDrop<'_, K, F, Q> {
        InsertOnDrop {
            guard: self,
            key: Some(key),
        }
    }

    /// Begins to replace the filter with `filter`, which the caller has built for the keys to come,
    /// empty.
    ///
    /// From here on keys that are [inserted](Self::insert) go into both. Read the valid keys from
    /// the store **after** this call (a snapshot of an earlier moment lacks the keys added since),
    /// put them into the [`Rebuild`], and [commit](Rebuild::commit). The guard serves from the old
    /// filter meanwhile. Seed and key of the hasher may be new ones, and should be where strangers
    /// choose the keys.
    ///
    /// Waits until the calls that began before have ended. They wait for nothing.
    ///
    /// # Errors
    ///
    /// Fails if another rebuild of this guard is in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom, SipHash13};
    ///
    /// let filter = || ConcurrentBloom::builder().memory_budget(1 << 20).hasher(SipHash13::random()).build();
    /// let guard = CacheGuard::<str, _>::new(filter()?);
    /// guard.insert("removed");
    ///
    /// let mut rebuild = guard.rebuild(filter()?)?;
    /// assert!(guard.rebuild(filter()?).is_err());
    /// guard.insert("added meanwhile");
    /// rebuild.extend(["ann"]);
    /// rebuild.commit();
    ///
    /// assert!(guard.check("ann").is_some() && guard.check("added meanwhile").is_some());
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&self, filter: F) -> Result<Rebuild<'_, K, F>, RebuildError> {
        self.begin_rebuild(|| Ok(filter))
    }

    fn begin_rebuild(&self, filter: impl FnOnce() -> Result<F, BuildError>) -> Result<Rebuild<'_, K, F>, RebuildError> {
        // Partner: the store in `Claim::drop`, so that its last state is the one that we load.
        if self.rebuilding.swap(true, Ordering::Acquire) {
            return Err(RebuildError(RebuildErrorKind::InProgress));
        }
        let claim = Claim(&self.rebuilding);
        let next = Arc::new(filter().map_err(|error| RebuildError(RebuildErrorKind::Build(error)))?);
        let serving = Arc::clone(&self.state.load().serving);
        self.state.replace(State {
            serving: Arc::clone(&serving),
            next: Some(Arc::clone(&next)),
        });
        // Partner: the fence of `insert_by`, in `Swap::settle`.
        fence(Ordering::SeqCst);
        Ok(Rebuild {
            guard: self,
            serving,
            next,
            _claim: claim,
        })
    }

    /// The filter that serves now, for its figures and its own calls. Its calls do not check the
    /// guard's key type.
    ///
    /// The filter stays in memory as long as such an `Arc` of it is held, also after a rebuild has
    /// replaced it. The holder that drops the last `Arc` drops the filter.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// assert_eq!(guard.filter().estimated_len(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn filter(&self) -> Arc<F> {
        Arc::clone(&self.state.load().serving)
    }

    /// What the guard has done since it was made, across rebuilds. While other threads are at work,
    /// the counts may be of slightly different moments.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().turned_away, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> GuardStats {
        self.counts.sum()
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

/// A key was let through; made by [`CacheGuard::check`] and
/// [`check_batch`](CacheGuard::check_batch). Dropped without a record, it counts as admitted only.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// guard.insert("ann");
/// guard.check("ann").unwrap().record(true);
/// drop(guard.check("ann").unwrap()); // the read timed out, say
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.false_positives), (2, 1, 0));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "record whether the store had the key"]
pub struct Admission<'a> {
    counts: &'a Counts,
}

impl Admission<'_> {
    /// Records whether the store had the key: if not, it was a false positive (or has been
    /// removed).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// guard.check("ann").unwrap().record(false);
    /// assert_eq!(guard.stats().false_positives, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn record(self, found: bool) {
        let counts = self.counts.of_this_thread();
        let count = if found { &counts.found } else { &counts.false_positives };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Inserts a key when it is dropped; made by [`CacheGuard::insert_on_drop`].
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let insert = guard.insert_on_drop("ann");
/// assert!(guard.check("ann").is_none());
/// drop(insert);
/// assert!(guard.check("ann").is_some());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[must_use = "the key is inserted at once if this is not kept until the store has committed"]
pub struct InsertOnDrop<'a, K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> {
    guard: &'a CacheGuard<K, F>,
    /// None once it is abandoned.
    key: Option<Q>,
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> InsertOnDrop<'_, K, F, Q> {
    /// Ends without an insert: for a key that the store has certainly not got.
    ///
    /// Where strangers can make commits fail, this keeps their keys from filling the filter.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert_on_drop("ann").abandon();
    /// assert!(guard.check("ann").is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn abandon(mut self) {
        self.key = None;
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> Drop for InsertOnDrop<'_, K, F, Q> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.guard.insert(key);
        }
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K> + fmt::Debug> fmt::Debug for InsertOnDrop<'_, K, F, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InsertOnDrop").field(&self.key).finish()
    }
}

/// A new filter for a guard, being filled; made by [`CacheGuard::rebuild_with_capacity`] and
/// [`CacheGuard::rebuild`]. Dropped before [`commit`](Self::commit), the guard goes on with the old
/// one.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// guard.insert("ann");
/// drop(guard.rebuild_with_capacity(1000, 0.01)?); // the store failed, say
/// assert!(guard.check("ann").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the guard keeps its old filter until `commit`"]
pub struct Rebuild<'a, K: Funnel + ?Sized, F: GuardFilter = ConcurrentBloom<SipHash13>> {
    guard: &'a CacheGuard<K, F>,
    /// What the guard is left with: the old filter, or after `commit` the new one.
    serving: Arc<F>,
    next: Arc<F>,
    /// Given back last, after the drop of the filters.
    _claim: Claim<'a>,
}

/// That no other rebuild exists, until it is dropped.
struct Claim<'a>(&'a AtomicBool);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Partner: the swap in `CacheGuard::begin_rebuild`.
        self.0.store(false, Ordering::Release);
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> Rebuild<'_, K, F> {
    /// Inserts a key into the new filter alone; returns whether that changed it.
    ///
    /// For the keys that are read from the store. A key that is added to the store is told to the
    /// guard.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert!(rebuild.insert("ann"));
    /// rebuild.commit();
    /// assert!(guard.check("ann").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> bool {
        self.next.insert(key.borrow())
    }

    /// [`insert`](Self::insert) of many keys, by any number of threads at once; returns how many
    /// changed the filter.
    ///
    /// # Panics
    ///
    /// As [`CacheGuard::check_batch`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert_eq!(rebuild.insert_batch(&["ann", "bob"]), 2);
    /// rebuild.commit();
    /// assert!(guard.check("bob").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> usize {
        debug_assert_borrowed_form(keys);
        self.next.insert_batch(keys)
    }

    /// The new filter, for its figures and its own calls. Those know nothing of the guard's key
    /// type.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
    /// let mut rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
    /// rebuild.extend(0..600);
    /// assert!(rebuild.filter().estimated_len().abs_diff(600) < 60);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn filter(&self) -> &F {
        &self.next
    }

    /// Serves from the new filter from now on.
    ///
    /// Returns once every call that began on the old filter has ended, and drops the old filter in
    /// this thread, unless somebody holds an `Arc` from [`CacheGuard::filter`]. Other threads are
    /// not stopped and wait for nothing; no call answers from the old filter any more.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("removed");
    /// guard.rebuild_with_capacity(1000, 0.01)?.commit();
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit(mut self) {
        self.serving = Arc::clone(&self.next);
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> Drop for Rebuild<'_, K, F> {
    fn drop(&mut self) {
        self.guard.state.replace(State {
            serving: Arc::clone(&self.serving),
            next: None,
        });
    }
}

/// Inserts the keys into the new filter, in batches.
///
/// ```
/// use lanebloom::CacheGuard;
/// use std::collections::HashSet;
///
/// let store = HashSet::from([String::from("ann"), String::from("bob")]);
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let mut rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
/// rebuild.extend(store.iter().map(String::as_str));
/// rebuild.commit();
/// assert!(guard.check("bob").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K> + Funnel> Extend<Q> for Rebuild<'_, K, F> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, keys: I) {
        let mut keys = keys.into_iter();
        let mut batch = Vec::with_capacity(STRETCH);
        loop {
            batch.extend(keys.by_ref().take(STRETCH));
            if batch.is_empty() {
                return;
            }
            self.insert_batch(&batch);
            batch.clear();
        }
    }
}

/// Batches are hashed as `Q` and single keys as `K`. [`Funnel`] demands that this be the same; here
/// it is tried for the first key, by a hash that needs no memory.
fn debug_assert_borrowed_form<K: Funnel + ?Sized, Q: Borrow<K> + Funnel>(keys: &[Q]) {
    if let (true, Some(key)) = (cfg!(debug_assertions), keys.first()) {
        let hashes = [
            Murmur3::default().hash128(key),
            Murmur3::default().hash128(key.borrow()),
        ];
        assert!(
            hashes[0] == hashes[1],
            "a {} writes other bytes than the {} that it borrows as",
            core::any::type_name::<Q>(),
            core::any::type_name::<K>(),
        );
    }
}

impl<K: Funnel + ?Sized, F: fmt::Debug + GuardFilter> fmt::Debug for Rebuild<'_, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuild")
            .field("filter", &self.next)
            .finish_non_exhaustive()
    }
}

/// What a guard has done.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&100);
/// guard.check(&100).unwrap().record(false); // the store has lost it, say
/// for key in 0..99 {
///     guard.get_with(&key, || None::<()>);
/// }
/// let stats = guard.stats();
/// assert_eq!(stats.turned_away + stats.admitted, 100);
/// assert!((0.0099..0.04).contains(&stats.false_positive_rate().unwrap()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardStats {
    /// Checks that let the key through.
    pub admitted: u64,
    /// Checks that turned the key away.
    pub turned_away: u64,
    /// Admitted keys that the store was recorded to have.
    pub found: u64,
    /// Admitted keys that the store was recorded not to have.
    pub false_positives: u64,
}

impl GuardStats {
    /// What the guard has done since `earlier`: these counts less those. Where one would be
    /// negative, it is 0.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("eve").is_none());
    /// let before = guard.stats();
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!((guard.stats().turned_away, guard.stats().since(&before).turned_away), (2, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // Saturating, because two threads may see the counts grow in different orders.
        Self {
            admitted: self.admitted.saturating_sub(earlier.admitted),
            turned_away: self.turned_away.saturating_sub(earlier.turned_away),
            found: self.found.saturating_sub(earlier.found),
            false_positives: self.false_positives.saturating_sub(earlier.false_positives),
        }
    }

    /// The fraction of the absent keys that was let through, to compare with the filter's promise;
    /// `None` before the first absent key.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert_eq!(guard.stats().false_positive_rate(), None);
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().false_positive_rate(), Some(0.0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> Option<f64> {
        let absent = self.turned_away + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

/// Counters in shards, so that threads do not take a line from each other to count.
#[derive(Debug)]
struct Counts {
    /// A power of two of them.
    shards: Box<[Shard]>,
}

/// Two lines wide, because x86-64 fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    admitted: AtomicU64,
    turned_away: AtomicU64,
    found: AtomicU64,
    false_positives: AtomicU64,
}

impl Counts {
    fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = (0..threads.next_power_of_two().min(64)).map(|_| Shard::default());
        Self {
            shards: shards.collect(),
        }
    }

    fn of_this_thread(&self) -> &Shard {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        std::thread_local! {
            /// A number of its own for every thread, in the order in which they came here first.
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        &self.shards[THREAD.with(|thread| *thread) & (self.shards.len() - 1)]
    }

    fn add_checks(&self, admitted: usize, turned_away: usize) {
        let counts = self.of_this_thread();
        for (count, n) in [(&counts.admitted, admitted), (&counts.turned_away, turned_away)] {
            if n > 0 {
                count.fetch_add(n as u64, Ordering::Relaxed);
            }
        }
    }

    fn sum(&self) -> GuardStats {
        self.shards.iter().fold(GuardStats::default(), |sum, shard| GuardStats {
            admitted: sum.admitted + shard.admitted.load(Ordering::Relaxed),
            turned_away: sum.turned_away + shard.turned_away.load(Ordering::Relaxed),
            found: sum.found + shard.found.load(Ordering::Relaxed),
            false_positives: sum.false_positives + shard.false_positives.load(Ordering::Relaxed),
        })
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Mutex, OnceLock};
    use std::thread::{self, ThreadId};

    /// A filter that holds every reader until it is let go, and notes which thread drops it.
    struct Probe {
        entered: Sender<()>,
        gate: Mutex<Receiver<()>>,
        dropped_by: Arc<OnceLock<ThreadId>>,
    }

    impl Probe {
        /// With the end that hears of every reader, the end that lets one go, and the note.
        fn new() -> (Self, Receiver<()>, Sender<()>, Arc<OnceLock<ThreadId>>) {
            let ((entered, entries), (opener, gate)) = (channel(), channel());
            let dropped_by = Arc::new(OnceLock::new());
            let probe = Self {
                entered,
                gate: Mutex::new(gate),
                dropped_by: Arc::clone(&dropped_by),
            };
            (probe, entries, opener, dropped_by)
        }
    }

    impl Drop for Probe {
        fn drop(&mut self) {
            self.dropped_by.set(thread::current().id()).unwrap();
        }
    }

    impl sealed::Filter for Probe {
        type Local = Self;

        fn local(&self) -> &Self {
            self
        }
        fn contains<K: Funnel + ?Sized>(&self, _: &K) -> bool {
            self.entered.send(()).unwrap();
            self.gate.lock().unwrap().recv().is_ok()
        }
    }
    impl GuardFilter for Probe {}

    /// A reader is in the old filter while that is replaced, since before the rebuild began or
    /// since after. It is the last to leave the filter, and another thread drops it: a
    /// `SharedBloom` may wait for the network then.
    #[test]
    fn the_committing_thread_drops_the_old_filter() {
        for before in [true, false] {
            let (old, entries, opener, dropped_by) = Probe::new();
            let guard = &CacheGuard::<u64, _>::new(old);
            let old = Arc::as_ptr(&guard.filter()).addr();
            let ((tell, told), (go, wait)) = (channel(), channel());
            thread::scope(|scope| {
                let read = || {
                    let reader = scope.spawn(|| guard.check(&1).is_some());
                    entries.recv().unwrap();
                    reader
                };
                let reader = before.then(read);
                let committer = scope.spawn(move || {
                    let rebuild = guard.rebuild(Probe::new().0).unwrap();
                    tell.send(()).unwrap();
                    wait.iter().next().unwrap();
                    rebuild.commit();
                    thread::current().id()
                });
                let reader = reader.unwrap_or_else(|| {
                    told.recv().unwrap();
                    read()
                });
                go.send(()).unwrap();
                // What the reader entered by has been replaced, though the reader is still there.
                let is_replaced = || {
                    let state = guard.state.load();
                    Arc::as_ptr(&state.serving).addr() != old || (before && state.next.is_some())
                };
                while !is_replaced() {
                    thread::yield_now();
                }
                opener.send(()).unwrap();
                assert!(reader.join().unwrap());
                let committer = committer.join().unwrap();
                assert_eq!(dropped_by.get(), Some(&committer));
            });
        }
    }
}
