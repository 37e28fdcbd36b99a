//! The cache-penetration guard: a filter of all valid keys that is asked before a store is, so that made-up keys
//! never reach it. Called by request paths; calls a [`GuardFilter`], or two while it is being rebuilt.
//!
//! # A rebuild loses nothing
//!
//! The guard's state is one pointer to a pair: the filter that serves, and the next one while a rebuild runs. An
//! insert goes into both, and then looks whether the state is still the one it used; if not it inserts again. A
//! rebuild publishes the pair first and reads the valid keys after. Both put a `SeqCst` fence between their
//! write and their look at the other's, so for each insert one of two things holds: it saw the pair and
//! inserted into the next filter, or the rebuild began after it, and reads a store that has the key already.
//! A batch is one insert in all this: the store has all its keys before, and the look comes after the last.

use crate::error::RebuildInProgress;
use crate::filter::concurrent::ConcurrentBloom;
use crate::filter::guava::GuavaBloom;
#[cfg(feature = "window")]
use crate::filter::windowed::WindowedBloom;
use crate::funnel::Funnel;
use crate::hash::KeyHasher;
use crate::sync::{AtomicBool, Ordering, Swap, fence};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
// Counts order nothing and are no part of the protocol: the model checker need not try their interleavings.
use core::sync::atomic::{AtomicU64, AtomicUsize};

/// Keeps requests for keys that do not exist away from a store, for many threads at once.
///
/// Fill the filter with every valid key, put the guard before the store, and tell it of every key that is added
/// ([`insert`](Self::insert)). A key that was inserted is never turned away. A made-up key is, but for the filter's
/// false-positive rate. Removed keys stay admitted until the next [`rebuild`](Self::rebuild), which also is the
/// way to grow, and runs while the guard serves.
///
/// Where strangers choose the keys, give the filter a [`SipHash13`](crate::SipHash13): under Murmur3 they can make
/// keys that collide with one that they know to exist.
///
/// `F` is the filter's type, any [`GuardFilter`]: a [`ConcurrentBloom`], or the [`GuavaBloom`] that a Java program left.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom};
/// use std::collections::HashMap;
///
/// let store = HashMap::from([("ann", 1), ("bob", 2)]);
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// (&filter).extend(store.keys());
///
/// let guard = CacheGuard::new(filter);
/// let get = |key| guard.get_with(key, || store.get(key).copied());
/// assert_eq!(get("ann"), Some(1));
/// assert_eq!(get("eve"), None); // the store was not asked
///
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.turned_away), (1, 1, 1));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct CacheGuard<F = ConcurrentBloom> {
    state: Swap<State<F>>,
    /// Whether a [`Rebuild`] exists; only its owner replaces the state.
    rebuilding: AtomicBool,
    counts: Counts,
}

/// Keys of a batch that are looked up and counted before their admissions are given out: their answers are a bitmap of
/// 128 bytes on the stack.
const STRETCH: usize = 1024;

/// What readers see at once.
struct State<F> {
    serving: Arc<F>,
    next: Option<Arc<F>>,
}

/// A filter that a [`CacheGuard`] can serve from: [`ConcurrentBloom`] and `WindowedBloom` under any hasher, [`GuavaBloom`], and with the feature
/// `redis` a `SharedBloom` or a `SharedWindow`.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom, GuardFilter, GuavaBloom};
///
/// fn row<F: GuardFilter>(guard: &CacheGuard<F>, key: &str) -> Option<usize> {
///     guard.get_with(key, || Some(key.len()))
/// }
///
/// let (ours, javas) = (ConcurrentBloom::builder().expected_keys(1000).build()?, GuavaBloom::create(1000, 0.01)?);
/// ours.insert("ann");
/// javas.insert("ann");
/// let (ours, javas) = (CacheGuard::new(ours), CacheGuard::new(javas));
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

    /// What a guard needs of a filter: the calls of these names. Keeps [`GuardFilter`](super::GuardFilter) ours, so that more can
    /// be added.
    pub trait Filter {
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool;
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool;
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize;
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]);
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>);
    }

    impl<S: KeyHasher> Filter for ConcurrentBloom<S> {
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
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) {
            { self }.extend(keys);
        }
    }

    impl Filter for GuavaBloom {
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
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) {
            { self }.extend(keys);
        }
    }

    #[cfg(feature = "window")]
    impl<S: KeyHasher + Clone> Filter for WindowedBloom<S> {
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
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) {
            { self }.extend(keys);
        }
    }

    #[cfg(feature = "redis")]
    impl<S: KeyHasher> Filter for crate::redis::SharedBloom<S> {
        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            (**self).insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            (**self).contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            (**self).insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            (**self).contains_batch_bitmap(keys, out);
        }
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) {
            (&**self).extend(keys);
        }
    }

    #[cfg(all(feature = "redis", feature = "window"))]
    impl<S: KeyHasher + Clone> Filter for crate::redis::SharedWindow<S> {
        #[inline]
        fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            (**self).insert(key)
        }
        #[inline]
        fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
            (**self).contains(key)
        }
        fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
            (**self).insert_batch(keys)
        }
        fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
            (**self).contains_batch_bitmap(keys, out);
        }
        fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) {
            (&**self).extend(keys);
        }
    }
}

impl<F: GuardFilter> CacheGuard<F> {
    /// A guard that serves from `filter`, which should hold every valid key.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("ann");
    /// let guard = CacheGuard::new(filter);
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
        }
    }

    /// Asks the filter, and only if the key may exist calls `load`; records what came of it.
    ///
    /// For a store whose reads can fail or are awaited, [`try_get_with`](Self::try_get_with) and
    /// [`check`](Self::check).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64);
    /// let guard = CacheGuard::new(filter);
    /// assert_eq!(guard.get_with(&17u64, || Some("row")), Some("row"));
    /// assert_eq!(guard.get_with(&18u64, || -> Option<&str> { unreachable!("turned away") }), None);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn get_with<K: Funnel + ?Sized, V>(&self, key: &K, load: impl FnOnce() -> Option<V>) -> Option<V> {
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
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("ann");
    /// let guard = CacheGuard::new(filter);
    /// assert_eq!(guard.try_get_with("ann", || Err::<Option<u32>, _>("timeout")), Err("timeout"));
    /// assert_eq!(guard.try_get_with("eve", || Err::<Option<u32>, _>("timeout")), Ok(None));
    /// assert_eq!((guard.stats().admitted, guard.stats().found), (1, 0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_get_with<K: Funnel + ?Sized, V, E>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        let Some(admission) = self.check(key) else {
            return Ok(None);
        };
        let value = load()?;
        admission.record(value.is_some());
        Ok(value)
    }

    /// The first half of [`get_with`](Self::get_with): `None` turns the key away, for it certainly does not exist.
    /// Otherwise ask the store, and [record](Admission::record) whether it had the key. The two halves may lie on
    /// two sides of an `await`.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// # async fn read_row(_key: &str) -> Option<u32> { None }
    /// async fn get(guard: &CacheGuard, key: &str) -> Option<u32> {
    ///     let admission = guard.check(key)?;
    ///     let row = read_row(key).await;
    ///     admission.record(row.is_some());
    ///     row
    /// }
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # filter.insert("ann");
    /// # let guard = CacheGuard::new(filter);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(get(&guard, "ann")).poll(&mut context).is_ready());
    /// # assert!(std::pin::pin!(get(&guard, "eve")).poll(&mut context).is_ready());
    /// # assert_eq!((guard.stats().false_positives, guard.stats().turned_away), (1, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use = "a key for which this is None must not reach the store"]
    pub fn check<K: Funnel + ?Sized>(&self, key: &K) -> Option<Admission<'_>> {
        let admitted = self.state.load().serving.contains(key);
        self.counts.add_checks(admitted.into(), (!admitted).into());
        admitted.then_some(Admission { counts: &self.counts })
    }

    /// [`check`](Self::check) of many keys, for a multi-get: calls `each` with the position and the [`Admission`] of
    /// every key that may exist, in order. The others certainly do not.
    ///
    /// One filter answers for all of them, and a key is counted before `each` hears of it. The admissions may be kept,
    /// to be recorded once the store has been asked for all the keys at once.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    /// use std::collections::HashMap;
    ///
    /// let store = HashMap::from([("ann", 1), ("bob", 2)]);
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
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
    pub fn check_batch<'a, K: Funnel>(&'a self, keys: &[K], mut each: impl FnMut(usize, Admission<'a>)) {
        let state = self.state.load();
        for (i, keys) in keys.chunks(STRETCH).enumerate() {
            let mut bitmap = [0; STRETCH / 64];
            let bitmap = &mut bitmap[..keys.len().div_ceil(64)];
            state.serving.contains_batch_bitmap(keys, bitmap);
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
    /// Safe at any time, also while the guard is being rebuilt: the key is admitted before the new filter
    /// takes over and after.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
    /// assert!(guard.check("ann").is_none());
    /// assert!(guard.insert("ann"));
    /// assert!(guard.check("ann").is_some());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_by(|filter| filter.insert(key))
    }

    /// [`insert`](Self::insert) of many keys; returns how many of them changed the filter, as
    /// [`ConcurrentBloom::insert_batch`] does. Call it once all of them can be read from the store.
    ///
    /// To be safe beside a rebuild costs a fence and a second look at the guard's state, here once for all keys. If a new
    /// filter took over meanwhile, the number returned is the greater of the two filters'.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
    /// let guard = CacheGuard::new(filter()?);
    /// let rebuild = guard.rebuild(filter()?)?;
    /// assert_eq!(guard.insert_batch(&["ann", "bob", "ann"]), 2);
    /// assert!(guard.check("bob").is_some());
    /// rebuild.commit();
    /// assert!(guard.check("ann").is_some() && guard.check("bob").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        self.insert_by(|filter| filter.insert_batch(keys))
    }

    /// Calls `insert` with every filter that is to have the keys; returns the greatest change to one that served.
    fn insert_by<R: Ord>(&self, insert: impl Fn(&F) -> R) -> R {
        let insert = |state: &State<F>| {
            let changed = insert(&state.serving);
            if let Some(next) = &state.next {
                insert(next);
            }
            changed
        };
        // Partner: the fence in `rebuild`. Either it comes first there, and the pair is seen here; or here, and what
        // the rebuild reads of the store after it has the keys.
        self.state.settle(self.state.load(), insert, Ord::max)
    }

    /// Begins to replace the filter with `filter`, which the caller has built for the keys to come, empty.
    ///
    /// From here on keys that are [inserted](Self::insert) go into both. Read the valid keys from the store **after**
    /// this call (a snapshot of an earlier moment lacks the keys added since), put them into the [`Rebuild`], and
    /// [commit](Rebuild::commit). The guard serves from the old filter meanwhile. Seed and key of the hasher may be
    /// new ones.
    ///
    /// # Errors
    ///
    /// If another rebuild is in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    /// use std::collections::HashSet;
    ///
    /// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
    /// let guard = CacheGuard::new(filter()?);
    /// guard.insert("removed");
    ///
    /// let store = HashSet::from(["ann", "bob"]);
    /// let mut rebuild = guard.rebuild(filter()?)?;
    /// guard.insert("added meanwhile");
    /// rebuild.extend(&store);
    /// rebuild.commit();
    ///
    /// assert!(["ann", "bob", "added meanwhile"].iter().all(|key| guard.check(key).is_some()));
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&self, filter: F) -> Result<Rebuild<'_, F>, RebuildInProgress> {
        // Partner: the store in `Rebuild::drop`, so that its last state is the one that we load.
        if self.rebuilding.swap(true, Ordering::Acquire) {
            return Err(RebuildInProgress(()));
        }
        let serving = Arc::clone(&self.state.load().serving);
        let next = Arc::new(filter);
        self.state.store(State {
            serving: Arc::clone(&serving),
            next: Some(Arc::clone(&next)),
        });
        // Partner: the fence of `insert_by`, in `Swap::settle`.
        fence(Ordering::SeqCst);
        Ok(Rebuild {
            guard: self,
            serving,
            next,
        })
    }

    /// The filter that serves now.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
    /// guard.insert("ann");
    /// assert_eq!(guard.filter().estimated_len(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn filter(&self) -> Arc<F> {
        Arc::clone(&self.state.load().serving)
    }

    /// What the guard has done since it was made, across rebuilds. While other threads are at work, the counts may be of
    /// slightly different moments.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().turned_away, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> GuardStats {
        self.counts.sum()
    }
}

impl<F: fmt::Debug + GuardFilter> fmt::Debug for CacheGuard<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheGuard")
            .field("filter", &self.filter())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A key was let through; made by [`CacheGuard::check`] and [`check_batch`](CacheGuard::check_batch). Dropped without a
/// record, it counts as admitted only.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom};
///
/// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
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
    /// Records whether the store had the key: if not, it was a false positive (or has been removed).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
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

/// A new filter for a guard, being filled; made by [`CacheGuard::rebuild`]. Dropped before
/// [`commit`](Self::commit), the guard goes on with the old one.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom};
///
/// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
/// let guard = CacheGuard::new(filter()?);
/// guard.insert("ann");
/// drop(guard.rebuild(filter()?)?); // the store failed, say
/// assert!(guard.check("ann").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the guard keeps its old filter until `commit`"]
pub struct Rebuild<'a, F: GuardFilter = ConcurrentBloom> {
    guard: &'a CacheGuard<F>,
    /// What the guard is left with: the old filter, or after `commit` the new one.
    serving: Arc<F>,
    next: Arc<F>,
}

impl<F: GuardFilter> Rebuild<'_, F> {
    /// The new filter, to be filled through any of its calls, by any number of threads.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
    /// let guard = CacheGuard::new(filter()?);
    /// let rebuild = guard.rebuild(filter()?)?;
    /// rebuild.filter().insert_batch(&["ann", "bob"]);
    /// rebuild.commit();
    /// assert!(guard.check("bob").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn filter(&self) -> &F {
        &self.next
    }

    /// Serves from the new filter from now on. Readers are not stopped: each ends on the filter that it began on.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
    /// let guard = CacheGuard::new(filter()?);
    /// guard.insert("removed");
    /// guard.rebuild(filter()?)?.commit();
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit(mut self) {
        self.serving = Arc::clone(&self.next);
    }
}

impl<F: GuardFilter> Drop for Rebuild<'_, F> {
    fn drop(&mut self) {
        self.guard.state.store(State {
            serving: Arc::clone(&self.serving),
            next: None,
        });
        // Partner: the swap in `CacheGuard::rebuild`.
        self.guard.rebuilding.store(false, Ordering::Release);
    }
}

/// Inserts the keys into the new filter.
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom};
///
/// let filter = || ConcurrentBloom::builder().expected_keys(1000).build();
/// let guard = CacheGuard::new(filter()?);
/// let mut rebuild = guard.rebuild(filter()?)?;
/// rebuild.extend(["ann", "bob"]);
/// rebuild.commit();
/// assert!(guard.check("bob").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<K: Funnel, F: GuardFilter> Extend<K> for Rebuild<'_, F> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.next.insert_all(keys);
    }
}

impl<F: fmt::Debug + GuardFilter> fmt::Debug for Rebuild<'_, F> {
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
/// use lanebloom::{CacheGuard, ConcurrentBloom};
///
/// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
/// guard.insert("ann");
/// guard.check("ann").unwrap().record(false);
/// for key in 0..99u32 {
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
    /// What the guard has done since `earlier`: these counts less those. Where one would be negative, it is 0.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
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

    /// The fraction of the absent keys that was let through, to compare with the filter's promise; `None` before
    /// the first absent key.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom};
    ///
    /// let guard = CacheGuard::new(ConcurrentBloom::builder().expected_keys(1000).build()?);
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
